# Noise of more than one size: a variance whose log is linear in inputs,
#
#   var(e_n) = s2 exp(b_n'gamma) / w_n,   b_nj = (x_nj - centre_j) rate_j.
#
# gamma is learned first, beside one kernel; for everything that comes after these are rows of weight
# w_n exp(-b_n'gamma) and the noise s2.

# Returns list(columns, centre, rate, label) of the noise formula, or NULL for constant noise.
asked_noise_trend <- function(noise, data, s) {
  columns <- mean_columns(noise, data, "noise")
  if (!length(columns)) return(NULL)
  if (!is.null(data$whole)) {
    abort_input("noise", "a formula", "a number or NULL where rows come from a source",
                hint = "`weights` may have the sizes of their noise.")
  }
  if (!s$hyper[1L] %in% "evidence") {
    abort_input("noise", sprintf("a formula beside `hyper = \"%s\"`", s$hyper[1L]), "a number or NULL there",
                hint = "It is learned by `hyper = \"evidence\"`. `weights` may have what is known.")
  }
  c(list(columns = columns, names = colnames(data$x)[columns], label = deparse1(noise)),
    basis_units(data$x[, columns, drop = FALSE]))
}

noise_basis <- function(trend, x) {
  x <- x[, trend$columns, drop = FALSE]
  (x - rep(trend$centre, each = nrow(x))) * rep(trend$rate, each = nrow(x))
}

# No noise is further than this in log from that in the middle of the inputs: a factor of 1,100 in its variance.
most_trend <- 7

within_trend <- function(log_factor) pmin(pmax(log_factor, -most_trend), most_trend)

# Beside the noise's variance s2; 1 without a trend.
noise_factor <- function(trend, x) {
  if (is.null(trend)) return(1)
  exp(within_trend(drop(noise_basis(trend, x) %*% trend$gamma)))
}

# Noise variance of a new response of weight 1 at rows of x, in squared units of y.
noise_at <- function(fit, x) fit$noise * noise_factor(fit$noise_trend, x)

# The data with the weights that the trend gives their rows. `given_weights`: what they were.
with_noise_trend <- function(data, trend) {
  factor <- noise_factor(trend, data$x)
  each <- if (is.null(data$group)) factor else factor[data$group]
  data$weights <- merged_weights(data) / factor
  data$shift$constant <- data$shift$constant - sum(log(each)) / 2
  if (!is.null(data$group)) data$shift$ss <- sum(data$twins$ss / factor)
  data["given_weights"] <- list(data$prior_weights)
  if (is.null(data$prior_weights)) data$prior_weights <- rep(1, length(data$response))
  used <- data$prior_weights > 0
  data$prior_weights[used] <- data$prior_weights[used] / each
  data$noise_trend <- trend
  data
}

describe_noise_trend <- function(trend) {
  if (is.null(trend)) return("")
  sprintf(" at the mean of %s; log variance per standardised unit: %s", paste(trend$names, collapse = ", "),
          paste(sprintf("%s %+.2g", trend$names, trend$gamma), collapse = ", "))
}

# Returns the slope of the log noise variance along each input, in its units, with its sd.
noise_coefficients <- function(fit) {
  trend <- fit$noise_trend
  if (is.null(trend)) return(NULL)
  names <- paste0("noise.", trend$names)
  covariance <- dimnames_of(trend$covariance * tcrossprod(trend$rate), names)
  list(estimate = stats::setNames(trend$gamma * trend$rate, names), sd = sqrt(diag(covariance)),
       covariance = covariance)
}
