# Log evidence of y as given, and its bounds, from the sums of a posterior.

# log N(y; 0, Q + s2 I) of the rows as cleaned and weighted, from the posterior's sums.
log_density_dtc <- function(p, n, noise) {
  logdet_D <- 2 * sum(log(diag(p$C))) - nrow(p$C) * log(noise)
  -(n / 2 * log(2 * pi * noise) + logdet_D / 2 + (p$rss / noise + sum(p$beta^2)) / 2)
}

# ELBO of y as given; noise in the units of the cleaned y.
elbo <- function(data, p, noise) sor_evidence(data, p, noise) - p$t / (2 * noise)

# SoR's own log evidence, log N(y; 0, Q + s2 I).
sor_evidence <- function(data, p, noise) {
  log_density_dtc(p, data$n - data$shift$rows, noise) + merged_log_density(data$shift, noise) + data$shift$constant
}

# FITC's own log evidence, log N(y; 0, Q + diag(s2 / w_n + E_nn)): no bound of anything.
fitc_evidence <- function(data, p, noise) {
  log_density_dtc(p, data$n, noise) + p$log_weights / 2 - data$n * log(data$scale)
}

# log density of y as given, from near_posterior()
near_evidence <- function(data, near, noise) {
  near$evidence + merged_log_density(data$shift, noise) + data$shift$constant
}

# log evidence of y as given. The dense factor has the weights in its noise: its density is that of y, not of sqrt(w) y.
exact_evidence <- function(data, posterior, noise) {
  volume <- if (is.null(data$weights)) 0 else sum(log(data$weights)) / 2
  -posterior$minus_evidence - volume + merged_log_density(data$shift, noise) + data$shift$constant
}
