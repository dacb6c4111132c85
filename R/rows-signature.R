# Tells whether two fits have the same data, even if one or both dropped their data.

# Returns sums over rows that identify data, however rows are merged or scaled, and the sizes of their terms, which
# separate a difference from rounding. Sums of x and y alone would not notice swapped inputs or reversed residuals; the
# sums of w phi(x) and w y phi(x), with fixed pseudo-random functions phi, do.
data_signature <- function(data) {
  n <- nrow(data$x)
  if (n <= many_rows) return(signature_of(signature_sums(data), data$center))
  sums <- NULL
  for (start in seq(1L, n, by = as.integer(many_rows))) {
    i <- seq.int(start, min(n, start + many_rows - 1))
    part <- data[c("center", "scale", "shift")]
    part[c("x", "y", "weights", "n")] <- list(data$x[i, , drop = FALSE], data$y[i], data$weights[i], length(i))
    if (start > 1L) part$shift$ss <- 0 # counts once
    sums <- add_sums(sums, signature_sums(part))
    gc(FALSE, full = FALSE) # all copies together are as large as the data
  }
  sums$sums[["n"]] <- sums$size[["n"]] <- data$n # rows before merging
  signature_of(sums, data$center)
}

add_sums <- function(a, b) if (is.null(a)) b else Map(`+`, a, b)

# Returns the sums over some rows.
signature_sums <- function(data) {
  w <- merged_weights(data)
  y <- data$center + in_units(data, data$y)
  phi <- native_row_features(data$x, 3L)
  sums <- function(x, y, phi) {
    c(n = data$n, w = sum(w), x = drop(crossprod(x, w)), y = sum(w * y), xy = drop(crossprod(x, w * y)),
      yy = sum(w * y^2) + in_units(data, data$shift$ss, 2), phi = drop(crossprod(phi, w)),
      phi_y = drop(crossprod(phi, w * y)))
  }
  list(sums = sums(data$x, y, phi), size = sums(abs(data$x), abs(y), abs(phi)))
}

# Updates the signature for rows added (`sign` = 1) or removed (`sign` = -1).
signature_with <- function(signature, parts, sign = 1) {
  names <- names(parts$sums)
  signature_of(list(sums = signature$sums[names] + sign * parts$sums,
                    size = signature$size[names] + max(sign, 0) * parts$size), signature$sums[["center"]])
}

signature_of <- function(parts, center) {
  list(sums = c(parts$sums, center = center),
       size = c(parts$size, center = parts$size[["y"]] / parts$size[["w"]]))
}

# Compares two fits by their sums, and row by row if both have their rows.
same_data <- function(a, b) {
  if (!same_sums(a$signature, b$signature)) return(FALSE)
  is.null(a$data) || is.null(b$data) || same_rows(a$data, b$data)
}

# Tests whether sums agree to rounding, relative to the sizes of their terms.
same_sums <- function(a, b) {
  if (length(a$sums) != length(b$sums) || a$sums[["n"]] != b$sums[["n"]]) return(FALSE)
  all(abs(a$sums - b$sums) <= 8 * (sqrt(a$sums[["n"]]) + 16) * .Machine$double.eps * pmax(a$size, b$size))
}

# Tests whether equal inputs, merged, have the same weights and mean responses to rounding, in any order. If the inputs
# differ, perhaps by rounding only, the sums have decided.
same_rows <- function(a, b) {
  if (!identical(a$x, b$x)) {
    a <- ordered_rows(a)
    b <- ordered_rows(b)
    if (!identical(a$x, b$x)) return(TRUE)
  }
  response <- function(data) data$center + in_units(data, data$y)
  size <- pmax(abs(response(a)), abs(response(b))) + abs(a$center)
  units <- 32
  if (!is.null(a$group) || !is.null(b$group)) { # a mean may be smaller than its terms
    size <- pmax(size, max(size))
    units <- 8 * (sqrt(a$n) + 16)
  }
  agree <- function(u, v, size) all(abs(u - v) <= units * .Machine$double.eps * size)
  agree(merged_weights(a), merged_weights(b), merged_weights(a)) && agree(response(a), response(b), size)
}

# Returns the rows with equal inputs merged, in the order of their inputs.
ordered_rows <- function(data) {
  if (is.null(data$group)) {
    merged <- merge_equal_rows(data$x, data$y, data$weights, most = 1)
    data[c("x", "y", "weights")] <- merged[c("x", "y", "weights")]
    if (!is.null(merged$group)) data$group <- merged$group
  }
  by <- do.call(order, c(lapply(seq_len(ncol(data$x)), function(j) data$x[, j]), method = "radix"))
  data$x <- unname(data$x[by, , drop = FALSE])
  data$y <- data$y[by]
  data$weights <- data$weights[by]
  data
}
