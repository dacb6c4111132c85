# How near the evidence that pfdtc() learns comes to the best that restarts of exact maximum likelihood find:
#   PFDTC_DATA=<folder> Rscript bench/evidence.R [SEEDS]
# For each set and kernel: the exact log evidence at the learned values by seed, less the best of exact maximum
# likelihood (gp_exact(hyper = "joint")) started from what each of the seeds learned and from what the pilot gives.
library(pfdtc)
seeds <- seq_len(as.integer(c(commandArgs(TRUE), 10)[1]))
control <- pfdtc_control(progress = FALSE)
sets <- list(airfoil = function() {
  data <- load_dataset("airfoil")
  list(x = as.matrix(data[names(data) != "y"]), y = data$y)
}, boston = function() {
  names <- setdiff(names(MASS::Boston), "medv")
  list(x = as.matrix(MASS::Boston[names]), y = MASS::Boston$medv)
})
kernels <- list(kernel_matern(3 / 2), kernel_matern(1 / 2), kernel_matern(5 / 2), kernel_se())
evidence <- function(fit) as.numeric(logLik(fit))

for (name in names(sets)) {
  set <- sets[[name]]()
  set.seed(1)
  rows <- sample(nrow(set$x), min(1202, nrow(set$x)))
  x <- set$x[rows, ]
  y <- set$y[rows]
  for (kernel in kernels) {
    learned <- lapply(seeds, function(seed) {
      set.seed(seed)
      gp_exact(x, y, kernel = kernel, control = control)
    })
    starts <- c(learned, list(gp_exact(x, y, kernel = kernel, hyper = "pilot", control = control)))
    likely <- vapply(starts, function(fit) {
      evidence(gp_exact(x, y, kernel = fit$kernel, noise = fit$noise, hyper = "joint", control = control))
    }, 0)
    gap <- max(likely) - vapply(learned, evidence, 0)
    cat(sprintf("%-8s %-20s best %.1f; behind by %.2f (median), %.2f (worst of %d seeds)\n", name, kernel$label,
                max(likely), stats::median(gap), max(gap), length(seeds)))
  }
}
