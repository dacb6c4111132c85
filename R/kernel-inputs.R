# Defines which inputs the factors of a kernel read in place of x. The engine computes them from the rows that it is
# given (arg_inputs() in src/args.c), so that everything else is in terms of x.

# ---- rotated inputs --------------------------------------------------------------------------------------------------

# The factors of a kernel may read rotated inputs z = x B in place of some columns of x. leaf$rotation is list(inputs,
# by): the columns and B, the same for all factors that read these columns.

# Returns the rotation of a kernel, or NULL.
rotation_of <- function(kernel) shared_by_leaves(kernel, "rotation", "rotated")

# Returns the element of the factors called `what` (or NULL), which is the same for all factors of its inputs.
shared_by_leaves <- function(kernel, what, word) {
  if (!is.null(kernel$engine)) kernel <- kernel$kernel
  leaves <- if (is.null(kernel$leaves)) list(kernel) else kernel$leaves
  found <- Find(Negate(is.null), lapply(leaves, `[[`, what))
  if (is.null(found)) return(NULL)
  same <- vapply(leaves, function(leaf) identical(leaf[[what]], found) || !any(leaf$inputs %in% found$inputs), NA)
  refuse_if(!all(same), "kernel", sprintf("one with %s inputs and another factor of the same inputs", word),
            sprintf("one whose factors all read %s inputs", word), hint = "Leave out one of the kernels.")
  found
}

# Returns x with rotated or warped columns, as the factors of the kernel read them.
rotated <- function(kernel, x) {
  rotation <- rotation_of(kernel)
  if (!is.null(rotation)) x[, rotation$inputs] <- x[, rotation$inputs, drop = FALSE] %*% rotation$by
  warp <- warp_of(kernel)
  for (k in seq_along(warp$inputs)) {
    x[, warp$inputs[k]] <- warp_at(warp, k, x[, warp$inputs[k]])$value
  }
  x
}

# Returns the rotation as a matrix for the given columns, with 1 on the diagonal for those not rotated.
matrix_of_rotation <- function(rotation, columns = seq_len(max(rotation$inputs))) {
  by <- diag(1, length(columns))
  at <- match(rotation$inputs, columns)
  by[at, at] <- rotation$by
  by
}

# Returns the derivatives of the inputs that a factor reads (columns) with respect to those of x (rows).
slopes_of_rotation <- function(leaf) {
  if (is.null(leaf$rotation)) diag(1, length(leaf$inputs)) else matrix_of_rotation(leaf$rotation, leaf$inputs)
}

# ---- warped inputs ---------------------------------------------------------------------------------------------------

# In place of rotated inputs, the factors may read z_j = w_j(x_j): `leaf$warp` is list(inputs, at, to, share). `at` and
# `to` have a column for each input: warp_knots increasing knots and the values there. w_j is linear between the knots
# and beyond them. All factors that read these inputs have the same warp.

# Returns the warp of a kernel, or NULL.
warp_of <- function(kernel) shared_by_leaves(kernel, "warp", "warped")

# Returns w and its slope at the values x of warped input k, as list(value, slope). At a knot the slope is the left one.
warp_at <- function(warp, k, x) {
  at <- warp$at[, k]
  i <- findInterval(x, at, all.inside = TRUE, left.open = TRUE)
  slope <- (diff(warp$to[, k]) / diff(at))[i]
  list(value = warp$to[i, k] + (x - at[i]) * slope, slope = slope)
}

# Returns the slope of column `column` of the inputs that a kernel reads, at the rows of x.
warp_slope <- function(kernel, x, column) {
  warp <- warp_of(kernel)
  k <- match(column, warp$inputs, nomatch = 0L)
  if (k) warp_at(warp, k, x[, column])$slope else rep(1, nrow(x))
}

# Returns the warp as the engine reads it: the knots and values of all columns up to the last warped one.
table_of_warp <- function(warp) {
  unlist(lapply(seq_len(max(warp$inputs)), function(column) {
    k <- match(column, warp$inputs)
    same <- as.double(seq_len(warp_knots) - 1L) # w(x) = x
    if (is.na(k)) c(same, same) else c(warp$at[, k], warp$to[, k])
  }))
}
