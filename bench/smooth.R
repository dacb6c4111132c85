# Does the search find the smooth limit, with lengthscales far beyond the data and a large variance?
#   Rscript bench/smooth.R
# Griewank's function of ten inputs, 100 rows, noise 0.05 sd, kernel_se(): log marginal likelihood and RMSE / sd of f
# on 2,000 rows, with the starts of the grid alone (restarts = 11) and by default, 23 November 2026:
#
#   draw    grid            default
#   1       -574.5  .953    -555.9  .127
#   2       -573.7  .945    -561.8  .119
#   3       -572.6  .922    -557.9  .133
#
# With a prior sd of 1.5 for log variances RMSE is .164, .161, .177. Starts that first climb by the Vecchia likelihood
# of 30 neighbours do not find it: after 8 steps RMSE is .8 to 1. On the 74 sets of bench/sets.R with at most 120 rows,
# mean NLPD: .7369 with sd 1.5, .7344 with sd 3, .7345 with sd 3 and the starts; 3 better by more than .01 (cpus .154,
# Servo .044, RiceFarms .016), 5 worse, by .021 at most.
library(pfdtc)
options(pfdtc.threads = 1L)

griewank <- function(x) rowSums(x^2) / 4000 - apply(cos(t(t(x) / sqrt(seq_len(ncol(x))))), 1, prod) + 1

for (draw in 1:3) {
  set.seed(100 * draw + 100)
  x <- -600 + 1200 * matrix(runif(21000), ncol = 10)
  f <- griewank(x)
  y <- f + rnorm(2100, sd = 0.05 * sd(f[-(1:100)]))
  colnames(x) <- letters[1:10]
  for (restarts in list(11, NULL)) {
    set.seed(1)
    fit <- suppressWarnings(pfdtc(x[1:100, ], y[1:100], kernel = kernel_se(),
                                  control = list(restarts = restarts, progress = FALSE)))
    error <- predict(fit, x[-(1:100), ]) - y[-(1:100)]
    cat(sprintf("%d: %.1f %.3f\n", draw, logLik(fit), sqrt(mean(error^2)) / sd(y[-(1:100)])))
  }
}
