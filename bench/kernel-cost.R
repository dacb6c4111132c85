# Compares the cost of a kernel of several factors with that of one of them: values, and an evaluation of the ELBO with
# its gradient, as ratios of processor times, the least of some rounds.
#   Rscript bench/kernel-cost.R [rounds = 7]
suppressMessages(library(pfdtc))
rounds <- as.integer(c(commandArgs(TRUE), "7")[1L])
set.seed(1)
n <- 4000L
x <- matrix(stats::runif(4 * n), n)
y <- sin(4 * x[, 1]) + stats::rnorm(n, sd = 0.1)
z <- x[1:200, ]
some <- x[1:500, ] # few enough for the processor's cache
a <- kernel_se(rep(0.5, 2), 1, 1:2)
b <- kernel_matern(3 / 2, rep(0.5, 2), 1, 3:4)
kernels <- list(one = kernel_se(rep(0.5, 4), 1), "product of two" = a * b,
                "product with a period" = a * kernel_periodic(1, 1, 0.5, 3:4),
                "sum of three" = kernel_se(rep(0.5, 4), 1) + kernel_se(rep(2, 4), 1) + kernel_se(rep(9, 4), 1),
                "sum of three roughnesses" = kernel_se(rep(0.5, 4), 1) + kernel_matern(3 / 2, rep(0.5, 4), 1) +
                  kernel_matern(5 / 2, rep(0.5, 4), 1))
least <- function(run) min(vapply(seq_len(rounds), function(i) sum(system.time(run())[1:2]), 0))
options(pfdtc.threads = 1L)
seconds <- vapply(kernels, function(k) {
  c(values = least(function() for (i in 1:200) kernel_matrix(k, some, z)),
    evaluation = least(function() vfe_objective(z, x, y, k, 0.01)))
}, numeric(2))
print(round(seconds / seconds[, "one"], 2))
