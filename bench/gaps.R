# Compares predictions in two held-out discs of a grid with the exact Gaussian process, for Matern fields. Predictions
# use 40 nearest rows, 200, or 40 near the data and 200 (the default of pfdtc()) or 100 far from it.
#   Rscript bench/gaps.R
# Prints the root mean square of (mean - exact mean) / exact sd, and the mean of sd / exact sd, at the held-out cells.
# Some of its 18 lines and 4 columns:
#
#                                               40             40, far 200    200
# Matern 1/2, lengthscale 0.2, 200 points       0.103 1.002    0.056 1.001    0.020 1.000
# Matern 3/2, lengthscale 0.2,  50 points       0.170 1.022    0.096 1.008    0.044 1.002
# Matern 3/2, lengthscale 0.2, 200 points       0.105 1.005    0.058 1.002    0.029 1.000
# Matern 3/2, lengthscale 0.8, 200 points       0.019 0.998    0.013 0.999    0.007 1.000
library(pfdtc)
grid <- expand.grid(a = 1:40, b = 1:40) / 40
held <- with(grid, pmin((a - 0.3)^2 + (b - 0.35)^2 - 0.17^2, (a - 0.75)^2 + (b - 0.7)^2 - 0.12^2)) < 0
train <- grid[!held, ]
test <- grid[held, ]
counts <- list("40" = 40L, "40, far 100" = c(40L, 100L), "40, far 200" = c(40L, 200L), "200" = 200L)
for (nu in c(1 / 2, 3 / 2, 5 / 2)) {
  for (length in c(0.05, 0.2, 0.8)) {
    kernel <- kernel_matern(nu, length, 1)
    set.seed(1)
    x <- as.matrix(train[c("a", "b")])
    root <- chol(kernel_matrix(kernel, x, x) + diag(1e-8, nrow(x)))
    train$y <- drop(crossprod(root, stats::rnorm(nrow(x)))) + stats::rnorm(nrow(x)) / 5
    of <- function(...) pfdtc(y ~ a + b, train, kernel = kernel, noise = 0.04, hyper = "fixed", transform = "none", ...)
    exact <- predict(of(), test, se.fit = TRUE)
    for (m in c(50, 200)) {
      fit <- of(m = m, neighbours = 40)
      found <- vapply(counts, function(count) {
        fit$near$neighbours <- count
        p <- predict(fit, test, se.fit = TRUE)
        c(error = sqrt(mean(((p$fit - exact$fit) / exact$se.fit)^2)), sd = mean(p$se.fit / exact$se.fit))
      }, c(0, 0))
      cat(sprintf("Matern %g/2, lengthscale %.2f, %3d points: ", 2 * nu, length, m),
          sprintf("%s: %.3f %.3f  ", names(counts), found[1L, ], found[2L, ]), "\n")
    }
  }
}
