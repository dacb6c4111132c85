# How much more than the actual distance of the mode certify() says with its default reference: 1,500 classes, 100 of
# them inducing points, against the exact process's Laplace posterior (all rows as points). Medians over 200 rows.
#
#   Rscript bench/laplace-tightness.R
suppressMessages(library(pfdtc))
kernels <- list(se = kernel_se(c(0.2, 0.3), 4), "matern 3/2" = kernel_matern(3 / 2, c(0.8, 1), 4))
for (name in names(kernels)) {
  for (seed in 1:2) {
    set.seed(seed)
    n <- 1500
    x <- matrix(runif(2 * n), n)
    y <- rbinom(n, 1, plogis(2 * sin(7 * x[, 1]) + 2 * cos(6 * x[, 2])))
    new <- matrix(runif(400), 200)
    of_points <- function(m) {
      pfdtc(x, y, m = m, family = binomial(), kernel = kernels[[name]], hyper = "fixed", center = FALSE)
    }
    said <- certify(of_points(100), new)
    actual <- abs(said$mean - predict(of_points(n), new))
    cat(sprintf("%s, seed %d: certified / actual %.2f (actual %.1e, sd of f %.2f)\n", name, seed,
                median(said$mean_error / actual), median(actual), median(said$sd)))
  }
}
