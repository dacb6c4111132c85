# Compares certificates and evidence bounds of random sums of products of all kernels with the exact GP by dense
# algebra. No bound may be violated.
#   Rscript bench/kernels-properties.R [count = 1000] [seed = 1]      (from the source tree)
# 1,000 problems take 12 minutes of a processor, 50 take 35 s. Every 25 problems the script prints a line.
# The reference is solve() in double precision. Its own errors, eps times the condition number of K + s2 I, are allowed.
suppressMessages(library(pfdtc))
args <- c(commandArgs(TRUE), "1000", "1")[1:2]
if (length(commandArgs(TRUE)) == 1L) args[2L] <- "1"
inside <- asNamespace("pfdtc")
with_seed <- function(seed, expr) {
  set.seed(seed)
  expr
}
attach(as.list(inside), warn.conflicts = FALSE) # the helpers call internal functions
source("tests/testthat/helper-reference.R")
source("tests/testthat/helper-kernels.R")

one <- function(seed) {
  set.seed(seed)
  n <- sample(10:120, 1)
  m <- sample(2:min(n, 20), 1)
  noise <- 10^stats::runif(1, -4, 0.5)
  k <- random_kernel()
  x <- kernel_rows(n, seed)
  y <- with_seed(seed, stats::rnorm(n)) + x[, 1]
  new <- rbind(kernel_rows(8, seed + 1e6), x[1:2, ])
  new[7:8, 1:3] <- 4 * new[7:8, 1:3]
  out <- suppressMessages(tryCatch({
    fit <- pfdtc(x, y, m = m, kernel = k, noise = noise, hyper = "fixed", center = FALSE, scale = FALSE,
                 neighbours = sample(c(0L, 0L, 10L), 1), control = pfdtc_control(maxit = 3))
    c(lapply(c(fast = "fast", reference = "reference", tight = "tight"), function(e) certify(fit, new, e)),
      list(bracket = evidence_bounds(fit)))
  }, pfdtc_error_numerical = identity))
  if (inherits(out, "error")) return(data.frame(seed, refused = TRUE, rows = 0, broken = 0, brackets = 0, ratio = NA))
  k <- kernel_of_model(k, fit, x)
  Ky <- ref_composite(k, x) + diag(noise, n)
  Kx <- ref_composite(k, x, new)
  mean <- drop(crossprod(Kx, solve(Ky, y)))
  var <- diag(ref_composite(k, new)) - colSums(Kx * solve(Ky, Kx))
  error <- 100 * .Machine$double.eps * n * max(diag(Ky)) / noise
  slip <- error * max(1, abs(mean))
  slip_var <- error * max(1, diag(Ky))
  broken <- vapply(out[1:3], function(c) {
    sum(mean < c$mean_lower - slip | mean > c$mean_upper + slip | c$sd_lower^2 > pmax(var, 0) + slip_var |
          c$sd_upper^2 < var - slip_var)
  }, 0)
  evidence <- ref_log_normal(y, Ky)
  bracket <- evidence < out$bracket[["lower"]] - 1e-6 * abs(evidence) - slip ||
    evidence > out$bracket[["upper"]] + 1e-6 * abs(evidence) + slip
  data.frame(seed, refused = FALSE, rows = 3 * nrow(new), broken = sum(broken), brackets = bracket + 0,
             ratio = max(abs(mean - out$tight$mean) / pmax(out$tight$mean_error, slip)))
}

all <- NULL
for (i in seq_len(as.integer(args[1L]))) {
  all <- rbind(all, one(as.integer(args[2L]) * 100000L + i))
  if (i %% 25L == 0L) cat(sprintf("%d problems, %d broken\n", i, as.integer(sum(all$broken, all$brackets))))
}
print(all[all$broken > 0 | all$brackets > 0, ])
cat(sprintf("%d problems (%d refused), %d certificates: %d broken; %d brackets broken\n", nrow(all), sum(all$refused),
            sum(all$rows), sum(all$broken), sum(all$brackets)))
cat(sprintf("largest error / certificate %.3f\n", max(all$ratio, na.rm = TRUE)))
quit(status = as.integer(sum(all$broken) + sum(all$brackets) > 0))
