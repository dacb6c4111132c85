# Compares runs with no variable set with the best manual setting of the two variables for the sizes of thread pools:
# milliseconds of one VFE objective with gradient (N = 8,000, d = 8). Each run is a process of its own, settings take
# turns, and numbers are medians over rounds of the runs' medians.
#   bash tools/openblas.sh Rscript bench/threads.R [rounds]
# "quick" for the rounds runs two rounds of two threads with M = 100 and 400 only.
arguments <- commandArgs(trailingOnly = TRUE)
quick <- identical(arguments, "quick")
rounds <- if (quick) 2L else if (length(arguments)) as.integer(arguments) else 5L
settings <- list(nothing = character(), "OPENBLAS_NUM_THREADS=1" = "OPENBLAS_NUM_THREADS=1",
                 "OMP_NUM_THREADS=1" = "OMP_NUM_THREADS=1",
                 both = c("OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=2"))
cases <- expand.grid(m = c(100, 200, 400), threads = c(1, 2, 4), where = c("here", "forks", "workers"),
                     stringsAsFactors = FALSE)
if (quick) cases <- cases[cases$where == "here" & cases$threads == 2 & cases$m != 200, ]
cases <- cases[cases$where == "here" | (cases$threads == 2 & cases$m == 200), ]

child <- quote({
  suppressMessages(library(pfdtc))
  arguments <- as.list(commandArgs(trailingOnly = TRUE))
  m <- as.integer(arguments[[1]])
  threads <- as.integer(arguments[[2]])
  one <- function(i, m, threads) {
    set.seed(i)
    x <- matrix(stats::rnorm(8000 * 8), 8000)
    y <- stats::rnorm(8000)
    options(pfdtc.threads = threads)
    kernel <- pfdtc::kernel_se(rep(2, 8), 1)
    evaluate <- function() pfdtc::vfe_objective(x[seq_len(m), ], x, y, kernel, 0.1, jitter = 1e-6)
    evaluate()
    stats::median(replicate(5, system.time(evaluate())[["elapsed"]]))
  }
  seconds <- switch(arguments[[3]],
    here = one(1, m, threads),
    forks = mean(unlist(parallel::mclapply(1:2, one, m, threads, mc.cores = 2))),
    workers = {
      cluster <- parallel::makePSOCKcluster(2)
      on.exit(parallel::stopCluster(cluster))
      parallel::clusterCall(cluster, .libPaths, .libPaths())
      mean(unlist(parallel::clusterApply(cluster, 1:2, one, m, threads)))
    })
  cat(1e3 * seconds, "\n")
})
script <- tempfile(fileext = ".R")
writeLines(deparse(child), script)
run <- function(setting, case) {
  said <- system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script, case$m, case$threads, case$where),
                  env = setting, stdout = TRUE)
  as.numeric(utils::tail(said, 1))
}
for (i in seq_len(nrow(cases))) {
  ms <- replicate(rounds, vapply(settings, run, 0, case = cases[i, ]))
  cases[i, names(settings)] <- round(apply(ms, 1, stats::median))
  by_hand <- ms[-1, , drop = FALSE]
  cases$ratio[i] <- stats::median(ms[1, ]) / min(apply(by_hand, 1, stats::median))
}
options(width = 120)
cat("ms of one objective with gradient, and with nothing set over the best setting by hand\n")
print(cases, digits = 3, row.names = FALSE)
