# Measures how often 95 % bands of f contain f, for data drawn from the model: f has the kernel 2 exp(-d^2 / .08) on
# equally spaced x from 0 to 1, and each row is a yes or a no, or a count. Three x are tested in each set.
#   Rscript bench/bands.R [sets]          default: 120 sets
# Columns: hyperparameters known, learned, and learned with hyper_uncertainty = TRUE; then the standard error of the
# last two. 28 November 2026:
#   binomial    60 rows  0.942  0.822  0.889  (0.021, 0.016)
#   binomial   150 rows  0.950  0.842  0.881  (0.022, 0.019)
#   binomial   300 rows  0.947  0.864  0.889  (0.019, 0.017)
#   binomial   600 rows  0.967  0.886  0.906  (0.019, 0.018)
#   poisson     60 rows  0.936  0.844  0.878  (0.020, 0.019)
#   poisson    150 rows  0.961  0.914  0.939  (0.015, 0.013)
#   poisson    300 rows  0.950  0.914  0.922  (0.015, 0.014)
#   poisson    600 rows  0.964  0.917  0.931  (0.016, 0.015)
library(pfdtc)
sets <- as.integer(c(commandArgs(TRUE), 120)[1L])

covered <- function(fit, d, ...) {
  rows <- round(c(0.12, 0.5, 0.85) * nrow(d))
  band <- suppressWarnings(predict(fit, d[rows, ], interval = "credible", ...))
  mean(band[, "lwr"] <= d$f[rows] & d$f[rows] <= band[, "upr"])
}

one_set <- function(seed, n, family) {
  set.seed(seed)
  x <- seq(0, 1, length.out = n)
  f <- drop(crossprod(chol(2 * exp(-outer(x, x, "-")^2 / 0.08) + diag(1e-9, n)), stats::rnorm(n)))
  y <- if (family$family == "binomial") stats::rbinom(n, 1, stats::plogis(f)) else stats::rpois(n, exp(f))
  d <- data.frame(x, y, f)
  suppressMessages({
    known <- pfdtc(y ~ x, d, family = family, kernel = kernel_se(0.2, 2), hyper = "fixed")
    learned <- suppressWarnings(pfdtc(y ~ x, d, family = family, kernel = kernel_se()))
  })
  c(known = covered(known, d), learned = covered(learned, d),
    uncertain = tryCatch(covered(learned, d, hyper_uncertainty = TRUE), pfdtc_error = function(e) NA))
}

for (family in list(stats::binomial(), stats::poisson())) for (n in c(60, 150, 300, 600)) {
  found <- vapply(seq_len(sets), one_set, numeric(3), n = n, family = family)
  error <- apply(found, 1L, stats::sd, na.rm = TRUE) / sqrt(sets)
  cat(sprintf("%-9s %4d rows  %.3f  %.3f  %.3f  (%.3f, %.3f)  %d without\n", family$family, n, mean(found[1L, ]),
              mean(found[2L, ]), mean(found[3L, ], na.rm = TRUE), error[2L], error[3L], sum(is.na(found[3L, ]))))
}
