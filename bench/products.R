# Compares the package's own products and solves with those of the installed BLAS: VFE with its gradient, and the exact
# posterior, one thread, in milliseconds, the least of several alternating runs.
#   OPENBLAS_NUM_THREADS=1 bash tools/openblas.sh Rscript bench/products.R
suppressMessages(library(pfdtc))
options(pfdtc.threads = 1L)
own_products <- getFromNamespace("native_own_products", "pfdtc")

problem <- function(n, d) {
  set.seed(1)
  list(x = matrix(stats::rnorm(n * d), n), y = stats::rnorm(n), kernel = kernel_se(rep(2, d), 1))
}
tasks <- c(
  lapply(c(100, 200, 400), function(m) {
    p <- problem(8000, 8)
    z <- p$x[seq_len(m), ]
    list(name = paste("VFE, 8,000 rows, M =", m),
         run = function() vfe_objective(z, p$x, p$y, p$kernel, 0.1, jitter = 1e-6))
  }),
  lapply(c(500, 2000), function(n) {
    p <- problem(n, 8)
    list(name = paste("exact posterior,", n, "rows"),
         run = function() gp_exact(p$x, p$y, kernel = p$kernel, noise = 0.1, hyper = "fixed"))
  }))
measured <- do.call(rbind, lapply(tasks, function(task) {
  seconds <- replicate(9, vapply(c(0L, 8L), function(lanes) {
    before <- own_products(lanes)
    on.exit(own_products(before))
    system.time(task$run())[["elapsed"]]
  }, 0))
  best <- 1000 * apply(seconds, 1, min)
  data.frame(task = task$name, blas = best[1], own = best[2], ratio = best[2] / best[1])
}))
cat(basename(extSoftVersion()[["BLAS"]]), "\n")
print(measured, digits = 3, row.names = FALSE)
