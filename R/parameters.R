# Hyperparameters: natural values <-> the vector of free logs that the optimiser moves. The order is that of coef():
# lengthscales, variance, noise.

parameter_names <- function(kernel, columns) {
  c(paste0("lengthscale.", columns[kernel$inputs]), "variance", "noise")
}

# `fixed`: names to hold at their values. Variances are those of the cleaned (scaled) response.
hyper_parameters <- function(kernel, noise, columns, fixed = character()) {
  names <- parameter_names(kernel, columns)
  start <- stats::setNames(log(c(kernel$lengthscale, kernel$variance, noise)), names)
  free <- !names %in% fixed
  d <- length(kernel$lengthscale)
  natural <- function(par) {
    all <- start
    all[free] <- par
    value <- exp(unname(all))
    kernel$lengthscale[] <- value[seq_len(d)]
    kernel$variance <- value[d + 1L]
    list(kernel = kernel, noise = value[d + 2L])
  }
  # nothing in the data can tell values as far as this apart
  too_far <- function(par) {
    all <- start
    all[free] <- par
    moved <- abs(all - start)
    moved[d + 2L] <- all[d + 2L] - start[d + 2L] # how far down is decided beside the signal: data may have no noise
    if (any(moved > 16)) sprintf("%s has left the range of the data", names[which.max(moved)])
    else if (all[d + 2L] < all[d + 1L] - log(1e12)) "the noise is below 1e-12 of the signal"
  }
  list(start = unname(start[free]), natural = natural, too_far = too_far, free = which(free), kernel = kernel)
}

check_fixed <- function(fix, kernel, columns) {
  names <- parameter_names(kernel, columns)
  unknown <- setdiff(fix, names)
  if (length(unknown)) {
    abort_input("fix", sprintf("\"%s\"", unknown[1L]), sprintf("among %s", list_quoted(names, "\"", most = 12L)))
  }
  fix
}

# Kernel and noise to start from where they are not given: sd_j * sqrt(d) for the lengthscales (a typical distance
# between two rows), the mean square of y for the variance, a tenth of it for the noise.
start_values <- function(kernel, noise, data) {
  x <- data$x
  w <- if (is.null(data$weights)) 1 else data$weights
  power <- (sum(w * data$y^2) + data$shift$ss) / sum(w + 0 * data$y) # ss: what merged rows no longer show
  if (!(power > 0)) power <- 1
  if (is.null(kernel$lengthscale)) {
    spread <- vapply(kernel$inputs, function(j) column_spread(x[, j]), 0)
    kernel$lengthscale <- stats::setNames(spread * sqrt(length(kernel$inputs)), colnames(x)[kernel$inputs])
  }
  if (is.null(kernel$variance)) kernel$variance <- power
  list(kernel = kernel, noise = if (is.null(noise)) mean_weight(data) * power / 10 else noise)
}

# The sd; where that is of a few values far out (ten times what the middle half would have it), of the middle half.
column_spread <- function(v) {
  range <- max(v) - min(v)
  if (!(range > 0) || !is.finite(range)) return(1)
  sd <- range * sqrt(mean(((v - mean(v)) / range)^2))
  middle <- diff(stats::quantile(v, c(0.25, 0.75), names = FALSE)) / 1.349
  if (middle > 0 && 10 * middle < sd) middle else sd
}
