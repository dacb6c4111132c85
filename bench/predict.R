# Measures mean and sd of 1e6 new rows of 8 inputs from 200 inducing points alone, on one thread, against the time of
# dgemm for the same number of operations, 2 n m^2 (two triangular solves for each row).
#   OPENBLAS_NUM_THREADS=1 bash tools/openblas.sh Rscript bench/predict.R [rounds = 3]
# Seconds are processor seconds, the least of some rounds. dgemm is timed on 2000 x 2000, where it is fastest, and on
# the shape that it would have here (200 x 200 times 200 x 20,000).
suppressMessages(library(pfdtc))
options(pfdtc.threads = 1L)
rounds <- as.integer(c(commandArgs(TRUE), "3")[1L])
n <- 1e6
m <- 200
set.seed(1)
x <- matrix(stats::rnorm(2000 * 8), 2000)
y <- sin(x[, 1]) + stats::rnorm(2000) / 10
fit <- gp_dtc(x, y, kernel = kernel_se(rep(3, 8), 1), noise = 0.01, hyper = "fixed", inducing = x[seq_len(m), ])
new <- matrix(stats::rnorm(n * 8), n)
square <- matrix(stats::rnorm(4e6), 2000)
small <- square[seq_len(m), seq_len(m)]
wide <- matrix(stats::rnorm(m * 20000), m)
tasks <- list(`mean and sd` = function() predict(fit, new, se.fit = TRUE),
              band = function() predict(fit, new, interval = "credible"),
              square = function() square %*% square, wide = function() small %*% wide)
seconds <- vapply(tasks, function(task) {
  min(vapply(seq_len(rounds), function(i) {
    gc(FALSE)
    sum(system.time(task(), gcFirst = FALSE)[1:2])
  }, 0))
}, 0)
rate <- c(square = 2 * 2000^3, wide = 2 * m^2 * 20000) / seconds[c("square", "wide")]
cat(sprintf("dgemm: %.1f GF/s (2000 x 2000), %.1f (200 x 200 times 200 x 20,000)\n", rate[1] / 1e9, rate[2] / 1e9))
limit <- 2 * n * m^2 / rate
print(data.frame(seconds = seconds[1:2], `of the first limit` = limit[[1]] / seconds[1:2],
                 `of the second` = limit[[2]] / seconds[1:2], check.names = FALSE), digits = 3)
