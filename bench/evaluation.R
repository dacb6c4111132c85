# Prints the time of one evaluation of the default objective over that of VFE's, the median of seven, on one thread.
#   OPENBLAS_NUM_THREADS=1 bash tools/openblas.sh Rscript bench/evaluation.R
suppressMessages(library(pfdtc))
options(pfdtc.threads = 1L)
cases <- data.frame(n = c(7568, 7568, 1103, 3177, 1103), m = c(100, 200, 200, 100, 50), d = c(4, 8, 5, 8, 5))
cases$ratio <- mapply(function(n, m, d) {
  set.seed(1)
  x <- matrix(stats::rnorm(n * d), n)
  y <- stats::rnorm(n)
  z <- x[seq_len(m), ]
  kernel <- kernel_se(rep(2, d), 1)
  nu <- auxiliary(x, y, kernel, 0.1, aux_white())
  times <- ceiling(2e7 / (n * m))
  seconds <- function(f) system.time(for (i in seq_len(times)) f())[["elapsed"]]
  stats::median(replicate(7, {
    vfe <- seconds(function() vfe_objective(z, x, y, kernel, 0.1, jitter = 1e-6))
    seconds(function() pf_objective(z, x, y, kernel, 0.1, nu, jitter = 1e-6)) / vfe
  }))
}, cases$n, cases$m, cases$d)
print(cases, digits = 3, row.names = FALSE)
