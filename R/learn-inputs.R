# For classes, chooses inputs that the kernel reads in place of x (kernel-compile.R): rotated inputs, uncorrelated
# within classes, or warped inputs, between x and its normal scores. Logs of inputs are in learn-response-check.R.

# Returns TRUE if the response of each row is one class.
one_class_a_row <- function(rows, s) {
  response <- response_of(s)
  has_labels(response) || has_classes(response) && all((rows$sites$size %||% 1) == 1)
}

# ---- rotated inputs --------------------------------------------------------------------------------------------------

# Returns a rotation (kernel-compile.R) to inputs z that are uncorrelated within classes: z_1 = x_1, and z_j is x_j
# minus its regression on x_1, ..., x_{j-1}, in the unit of x_j. Columns of 0 and 1 are not rotated. Returns NULL for
# responses without classes, with groups or shared lengthscales, with fewer than `rotation_rows` rows an input, or if
# inputs are linearly dependent.
rotation_by_classes <- function(rows, s) {
  x <- rows$x
  leaves <- as_sum(s$kernel)$leaves
  inputs <- which(vapply(seq_len(ncol(x)), function(j) !all(x[, j] %in% 0:1), NA))
  if (!one_class_a_row(rows, s) || length(leaves) > 1L || !is.null(leaves[[1L]]$shared) || length(inputs) < 2L ||
        nrow(x) < rotation_rows * ncol(x)) return(NULL)
  apart <- apply(x[, inputs, drop = FALSE], 2L, function(v) v - stats::ave(v, rows$sites$y))
  unit <- sqrt(colMeans(apart^2))
  R <- tryCatch(chol(crossprod(t(t(apart) / unit)) / nrow(x)), error = function(e) NULL) # factor of correlations
  if (is.null(R) || min(diag(R)) < 1e-4) return(NULL)
  list(inputs = inputs, by = backsolve(R, diag(diag(R))) * outer(1 / unit, unit))
}

# Returns the number of nats that a kernel must gain if its inputs are rotated, and 0 if they are not.
price_of_rotation <- function(kernel) {
  d <- length(rotation_of(kernel)$inputs)
  if (d) max(rotation_nats[["least"]], rotation_nats[["pair"]] * d * (d - 1) / 2) else 0
}

# ---- warped inputs ---------------------------------------------------------------------------------------------------

# Moves the inputs of the kernel of `now` halfway, then fully, to their normal scores. Returns the model of moved inputs
# with the largest log marginal likelihood, or NULL if `now` has a larger one. search() learns each model, also with a
# linear mean (element `line`). Normal scores do not depend on responses, so moved inputs need no penalty.
choose_inputs <- function(rows, s, now, search) {
  inputs <- inputs_to_warp(rows, s)
  likeliest <- function(one) min(one$value, one$line$value)
  best <- now
  for (share in if (length(inputs)) warp_shares) {
    moved <- search(now, TRUE, with_moved_inputs(now$kernel, warp_to_scores(rows$x, inputs, share), rows$x))
    moved$line <- search(moved, TRUE, kernel_beside_line(moved$kernel, rows, s))
    if (likeliest(moved) >= likeliest(best)) break # moving inputs further would hardly ever help
    best <- moved
  }
  if (!is.null(warp_of(best$kernel))) best
}

# Returns the start of a search with a linear mean: the kernel with a tenth of its variance, plus a linear mean with a
# large variance.
kernel_beside_line <- function(kernel, rows, s) {
  leaf <- mean_leaf(rotated(kernel, rows$x), seq_len(ncol(rows$x)), NULL)
  leaf[c("of", "rotation", "warp")] <- list(character(), rotation_of(kernel), warp_of(kernel))
  kernel <- with_columns(add_kernels(replace(kernel, "of", list(character())), leaf), rows$x)
  units <- parameter_units(kernel, rows$x, laplace_priors$variance * s$likelihood$unit^2)
  value <- kernel_values(kernel)
  variances <- which(units$what == "variance")
  value[variances] <- c(0.1 * value[variances[1L]], 30 * units$unit[variances[2L]])
  set_values(kernel, value)
}

# Returns the columns that may be warped: those with three values or more. Returns none if a row has several classes, if
# kernel values are given, beyond `warp_rows` rows, with groups, and if three columns are a place on a sphere.
inputs_to_warp <- function(rows, s) {
  x <- rows$x
  leaves <- as_sum(s$kernel)$leaves
  coded <- vapply(seq_len(ncol(x)), function(j) all(x[, j] %in% 0:1), NA)
  alone <- length(leaves) == 1L && all(!duplicated(leaves[[1L]]$shared) | coded[leaves[[1L]]$inputs])
  open <- is_open(s$kernel) && is.null(s$kernel$lengthscale) && is.null(s$kernel$variance)
  if (!open || !s$additive || !one_class_a_row(rows, s) || !alone || nrow(x) > warp_rows) return(integer())
  which(!coded & vapply(seq_len(ncol(x)), function(j) length(unique(x[, j])) > 2L, NA))
}

# Returns the warp (kernel-compile.R) of these inputs to (1 - share) x + share (m + s q(x)). m and s are mean and sd of
# the input, and q(x) is its normal score, the normal quantile of (rank - 1/2) / n. The knots are quantiles of x.
warp_to_scores <- function(x, inputs, share) {
  each <- lapply(inputs, function(j) {
    v <- x[, j]
    scores <- mean(v) + stats::sd(v) * stats::qnorm((rank(v) - 0.5) / length(v))
    at <- unique(stats::quantile(v, seq(0, 1, length.out = score_knots), names = FALSE, type = 1))
    to <- (1 - share) * at + share * scores[match(at, v)]
    last <- length(at)
    more <- seq_len(warp_knots - last) # if x has few values, the last piece continues
    list(at = c(at, at[last] + more * (at[last] - at[last - 1L])),
         to = c(to, to[last] + more * (to[last] - to[last - 1L])))
  })
  list(inputs = inputs, at = do.call(cbind, lapply(each, `[[`, "at")), to = do.call(cbind, lapply(each, `[[`, "to")),
       share = share)
}

# Returns the kernel with its inputs moved by the rotation or warp `move`. Lengthscales relative to the spreads of the
# inputs do not change.
with_moved_inputs <- function(kernel, move, x) {
  if (is.null(move)) return(kernel)
  turned <- !is.null(move$by)
  word <- if (turned) "rotated" else paste0(if (move$share < 1) "half ", "warped inputs")
  change_leaves(kernel, function(leaf) {
    leaf[[if (turned) "rotation" else "warp"]] <- move
    times <- spreads_of(rotated(leaf, x)) / spreads_of(x)
    own <- if (isTRUE(leaf$isotropic)) mean(times[leaf$inputs]) else
      if (is.null(leaf$shared)) times[leaf$inputs] else times[leaf$inputs][!duplicated(leaf$shared)]
    leaf$lengthscale <- leaf$lengthscale * own
    leaf$label <- sprintf("%s (%s)", leaf$label, word)
    leaf
  })
}
