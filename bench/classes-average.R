# Measures the error of averaged probabilities of several classes: normal_rule() against 400,000 antithetic draws, for
# log odds with means N(0, 2^2) and covariances of random factors with sds of about `size`.
#   Rscript bench/classes-average.R
#   K   size   largest error   mean error   (standard error of the draws: 5e-4 at most; K = 3 has no other error)
#   3      1   6.9e-05         2.7e-05
#   3      8   5.9e-04         2.0e-04
#   4      1   2.7e-04         8.0e-05
#   4      8   1.6e-03         5.4e-04
#   6      1   1.9e-04         6.7e-05
#   6      8   4.9e-03         1.3e-03
#  11      1   1.1e-03         1.5e-04
#  11      8   7.6e-03         2.1e-03
library(pfdtc)
set.seed(1)
for (K in c(3, 4, 6, 11)) for (size in c(1, 3, 8)) {
  q <- K - 1
  errors <- replicate(4, {
    factor <- matrix(stats::rnorm(q^2), q) * size / sqrt(q)
    f <- list(mean = matrix(stats::rnorm(q, 0, 2), 1), var = matrix(c(tcrossprod(factor)), 1))
    z <- matrix(stats::rnorm(2e5 * q), 2e5) %*% t(factor)
    draws <- (colMeans(pfdtc:::softmax_of(z + rep(f$mean, each = 2e5))) +
                colMeans(pfdtc:::softmax_of(-z + rep(f$mean, each = 2e5)))) / 2
    abs(pfdtc:::class_moments(f)$mean - draws)
  })
  cat(sprintf("%3d %6g   %.1e         %.1e\n", K, size, max(errors), mean(errors)))
}
