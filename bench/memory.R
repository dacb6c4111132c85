# Measures peak memory of the posterior at fixed inducing points and of predicting 1,000 rows, at N = 1e4 and 1e6, for
# 8 inputs and M = 100.
#
#   bash tools/openblas.sh Rscript bench/memory.R
#
# Each size runs in a child process that reports VmHWM (the most memory it ever held, Linux) after each stage. The
# larger size should need, beyond the smaller, the data, one copy of them, and less than 150 MB. The three cases are
# pfdtc() with maxit = 0 (which still evaluates its objective, in the scratch that `memory` allows), gp_dtc() (the
# posterior alone), and gp_dtc() without keeping the data.

cases <- c("pfdtc", "gp_dtc", "gp_dtc, keep_data = FALSE")

child <- function(n, case) {
  suppressMessages(library(pfdtc))
  d <- 8
  set.seed(1)
  peak <- function() {
    status <- readLines("/proc/self/status")
    as.numeric(gsub("[^0-9]", "", grep("^VmHWM", status, value = TRUE))) / 1024
  }
  at <- c(start = peak())
  x <- stats::rnorm(n * d)
  dim(x) <- c(n, d)
  y <- stats::rnorm(n)
  at["data"] <- peak()
  kernel <- kernel_se(rep(3, d), 1)
  z <- x[1:100, ]
  fit <- if (case == "pfdtc") {
    pfdtc(x, y, kernel = kernel, noise = 0.1, hyper = "fixed", inducing = z, aux = aux_sor(size = 100),
          control = pfdtc_control(maxit = 0))
  } else {
    gp_dtc(x, y, kernel = kernel, noise = 0.1, hyper = "fixed", inducing = z, keep_data = case == "gp_dtc")
  }
  at["fit"] <- peak()
  p <- predict(fit, x[1:1000, ], se.fit = TRUE)
  at["predict"] <- peak()
  cat(at, as.numeric(utils::object.size(x) + utils::object.size(y)) / 2^20, "\n")
}

main <- function() {
  self <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
  run <- function(n, case) {
    out <- system2(file.path(R.home("bin"), "Rscript"), c(self, "child", n, shQuote(case)), stdout = TRUE)
    as.numeric(strsplit(trimws(utils::tail(out, 1L)), " +")[[1L]])
  }
  for (case in cases) {
    table <- rbind(`1e4` = run(10000L, case), `1e6` = run(1000000L, case))
    colnames(table) <- c("start", "data", "fit", "predict", "size of data")
    cat(sprintf("\n%s: VmHWM in MB after each stage\n", case))
    print(round(table, 1))
    more <- unname(table[2, ] - table[1, ])
    rest <- more[4] - 2 * more[5]
    cat(sprintf("difference %.0f MB = data and one copy %.0f MB + %.0f MB (goal: < 150): %s\n", more[4], 2 * more[5],
                rest, if (rest < 150) "met" else "NOT met"))
  }
}

args <- commandArgs(TRUE)
if (length(args)) child(as.integer(args[2L]), args[3L]) else main()
