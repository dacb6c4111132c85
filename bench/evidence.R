# How close is the evidence that pfdtc() learns to the best that restarts of exact maximum likelihood find?
#   PFDTC_DATA=<folder> Rscript bench/evidence.R [seeds] [restarts] > bench/results/evidence.csv
# Each row of the table has a set and kernel: the best of the restarts, which are run once (no priors, log parameters,
# BFGS on the exact evidence from random values and from the best learned values), the number of random ones within two
# nats of it, and the difference of the exact evidence at the learned values, for each seed. `ahead` is the difference
# from the best random restart.
suppressMessages(library(pfdtc))
inside <- asNamespace("pfdtc")
counts <- as.integer(c(commandArgs(TRUE), 10, 4)[if (length(commandArgs(TRUE)) == 1L) c(1, 3) else 1:2])
control <- pfdtc_control(progress = FALSE, threads = 1)
of <- function(data, y, rows) {
  set.seed(1)
  data <- data[sample(nrow(data), rows), ]
  list(x = as.matrix(data[setdiff(names(data), y)]), y = data[[y]])
}
sets <- list(boston = function() of(MASS::Boston, "medv", 506),
             airfoil = function() of(load_dataset("airfoil"), "y", 1202),
             abalone = function() of(load_dataset("abalone"), "y", 1000))
kernels <- list(kernel_matern(3 / 2), kernel_matern(1 / 2), kernel_matern(5 / 2), kernel_se())
evidence <- function(fit) as.numeric(logLik(fit))

# Returns the log evidence and logs of the parameters where BFGS ends, in units of y less its mean, as in gp_exact().
maximise <- function(set, kernel, start) {
  y <- set$y - mean(set$y)
  d <- ncol(set$x)
  kernel <- inside$place_kernel(kernel, set$x)
  last <- NULL
  at <- function(u) {
    if (identical(u, last$u)) return(last)
    k <- inside$set_values(kernel, exp(u[-length(u)]))
    result <- inside$native_exact_evidence(list(x = set$x, y = y), new_model(k, exp(u[length(u)])), control)
    last <<- if (is.null(result$reason)) list(u = u, value = result$value, slope = c(result$theta, result$noise)) else
      list(u = u, value = 1e10, slope = 0 * u)
    last
  }
  -stats::optim(start, function(u) at(u)$value, function(u) at(u)$slope, method = "BFGS",
                control = list(maxit = 150, reltol = 1e-7))$value
}

cat("set,n,kernel,best,restarts_within_2,behind_median,behind_worst,ahead_of_restarts,seeds\n")
for (name in names(sets)) {
  set <- sets[[name]]()
  spread <- apply(set$x, 2, stats::sd)
  for (kernel in kernels) {
    learned <- lapply(seq_len(counts[1L]), function(seed) {
      set.seed(seed)
      gp_exact(set$x, set$y, kernel = kernel, control = control)
    })
    likely <- vapply(learned, evidence, 0)
    set.seed(1)
    restarts <- vapply(seq_len(counts[2L]), function(i) {
      lengthscale <- spread * sqrt(ncol(set$x)) * exp(stats::runif(ncol(set$x), log(0.2), log(3)))
      maximise(set, kernel, log(c(lengthscale, stats::var(set$y) * c(1, exp(stats::runif(1, log(0.01), log(0.5)))))))
    }, 0)
    best <- max(restarts, likely, maximise(set, kernel, log(coef(learned[[which.max(likely)]]))))
    cat(sprintf("%s,%d,%s,%.1f,%d,%.2f,%.2f,%.2f,%d\n", name, nrow(set$x), kernel$label, best, sum(restarts > best - 2),
                best - stats::median(likely), best - min(likely), min(likely) - max(restarts), length(likely)))
  }
}
