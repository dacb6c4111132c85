# How much do more inducing points gain for several classes? Their posterior has one Cholesky factor of (K - 1) m rows,
# without a search by conjugate gradients. Five classes, 2,000 rows, three inputs, seconds of a busy processor, and the
# expected negative log density at 1,000 new rows (entropy of the classes .97326):
#   Rscript bench/classes-points.R
#   (K - 1) m    200      400      1,000    2,000
#   seconds      1.6      2.3      2.1      4.3
#   expected     1.00409  1.00397  1.00397  1.00397
# So more points are not needed, and pfdtc() keeps (K - 1) m below 4,000. Many classes, 3,000 rows, default fits with a
# lower limit (not by this script), excess over the entropy:
#   30 classes, log odds linear in four inputs     m = 34: .026 (11 s)   137: .026 (21 s, 600 MB)
#   30 classes, 3 sin(w'x + u), sd of w 6, two inputs   m = 34: .1112 (8 s)   68 and 137: .1111 (10 and 21 s)
#   100 classes, log odds linear in four inputs    m = 20: .097 (30 s)   40: .097 (41 s, 850 MB)
# The rest of the excess is due to the few rows of each class, so there are no conjugate gradients. Rough functions were
# not measured.
library(pfdtc)
options(pfdtc.threads = 1L)
shares <- function(x) {
  p <- exp(3 * cbind(sin(6 * x[, 1]), cos(5 * x[, 2]), x[, 3], 0, sin(4 * (x[, 1] + x[, 2]))))
  p / rowSums(p)
}
set.seed(2)
x <- matrix(stats::runif(6000), 2000)
y <- factor(apply(shares(x), 1, function(p) sample(5, 1, prob = p)))
new <- matrix(stats::runif(3000), 1000)
for (m in c(50, 100, 250, 500)) {
  begun <- sum(proc.time()[1:2])
  fit <- suppressMessages(pfdtc(x, y, family = multinomial(), kernel = kernel_se(0.5, 4), hyper = "fixed", m = m))
  seconds <- sum(proc.time()[1:2]) - begun
  p <- predict(fit, new, type = "response")
  cat(4 * fit$m, round(seconds, 1), round(-mean(rowSums(shares(new) * log(p))), 5), "\n")
}
