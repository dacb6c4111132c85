# Measures the cost of an exact mean at 1,000 rows: refine() to 1e-3 sd(y) for normal rows with 8 inputs, squared
# exponential kernel, two threads. Also compares its products with all pairs of rows with their exponentials alone (also
# with one input), and these with exp() of R's C library.
#   Rscript bench/refine.R [rows]
# Prints wall time and the processor time divided by the threads, because wall time has no meaning if other work runs.
suppressMessages(library(pfdtc))
inside <- asNamespace("pfdtc")
n <- as.integer(c(commandArgs(TRUE), 1e5)[1])
d <- 8
threads <- 2
spent <- function(expr) {
  before <- proc.time()
  force(expr)
  after <- proc.time() - before
  c(wall = after[["elapsed"]], processor = sum(after[1:2]) / threads)
}

set.seed(1)
x <- matrix(rnorm((n + 1000) * d), ncol = d)
f <- sin(x[, 1]) + x[, 2] * x[, 3] / 2 + cos(2 * x[, 4])
new <- n + seq_len(1000)
y <- f[-new] + rnorm(n) / 2
kernel <- kernel_se(c(2.1, 2.3, 2.4, 1, 55, 230, 1000, 950), 1.8)
control <- pfdtc_control(threads = threads, maxit = 0)
fit <- pfdtc(x[-new, ], y, m = 200, kernel = kernel, noise = 0.25, hyper = "fixed", neighbours = 0, control = control)
cost <- rbind(
  reference = spent(fit$reference <- reference(fit)),
  refine = spent(refined <- refine(fit, x[new, ], tol = 1e-3)))
cat(sprintf("%d rows: %d iterations, met: %s, largest certified error %.2g sd(y), RMSE of f %.3f\n", n,
            attr(refined, "iterations"), attr(refined, "met"), max(refined$mean_error) / sd(y),
            sqrt(mean((refined$mean - f[new])^2))))
print(round(cost, 1))

# Returns kernel values for each second and thread. Each value is two entries of K.
rate <- function(d, profile, columns = 1) {
  some <- 8192
  u <- matrix(rnorm(some * d), ncol = d)
  k <- inside$complete_kernel(profile(rep(2, d), 1), u)
  v <- matrix(rnorm(some * columns), some)
  took <- min(replicate(5, spent(inside$native_kernel_matvecs(k, u, NULL, v, control))[["processor"]]))
  some^2 / 2 / (took * threads)
}
values <- runif(1e6, -10, 0)
library_exp <- 1e6 / min(replicate(5, sum(system.time(exp(values))[1:2])))
matern <- function(lengthscale, variance) kernel_matern(3 / 2, lengthscale, variance)
cat("1e9 kernel values a second and thread\n")
print(round(1e-9 * c("8 inputs" = rate(8, kernel_se), "8 inputs, 8 vectors" = rate(8, kernel_se, 8),
                     "Matern 3/2" = rate(8, matern), "1 input: exp and the products" = rate(1, kernel_se),
                     "R's exp()" = library_exp), 2))
