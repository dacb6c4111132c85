# How close is the number of inducing points that `tol` chooses to the smallest that meets it, and what does it cost?
#
#   PFDTC_DATA=<folder of the CSVs> OPENBLAS_NUM_THREADS=1 bash tools/openblas.sh Rscript bench/tolerance.R [set ...]
#
# The pilot learns hyperparameters of a squared exponential kernel. The scan then fits at given m with these
# hyperparameters, moves points for at most 200 iterations, and has defaults otherwise. It goes up in steps of 5 % from
# below half of the chosen number, until three in a row meet tol by the same reference. Errors are the maxima over the
# training inputs: of the mean in sd(y), of the sd relative to itself.

suppressMessages(library(pfdtc))
options(pfdtc.threads = 1)

read_rows <- function(file, n) {
  d <- utils::read.csv(file.path(Sys.getenv("PFDTC_DATA"), file))
  d <- d[vapply(d, is.numeric, NA)]
  d <- d[sample.int(nrow(d), min(n, nrow(d))), ]
  list(x = data.matrix(d[-ncol(d)]), y = d[[ncol(d)]])
}
synthetic <- function(n) {
  x <- matrix(stats::runif(2 * n), n)
  list(x = x, y = sin(12 * x[, 1]) * cos(9 * x[, 2]) + 0.2 * stats::rnorm(n))
}
sets <- list(
  synthetic = list(tol = 0.01, data = function() synthetic(3000)),
  abalone = list(tol = 0.02, data = function() read_rows("abalone.csv", 3000)),
  delays10k = list(tol = 0.02, data = function() read_rows("delays10k.csv.gz", 3000)),
  ccpp = list(tol = 0.05, data = function() read_rows("ccpp.csv.gz", 3000)),
  airfoil = list(tol = 0.1, data = function() read_rows("airfoil.csv", 1503)))

quietly <- pfdtc_control(progress = FALSE)
moved <- pfdtc_control(200, progress = FALSE)

one_set <- function(name) {
  set.seed(1)
  d <- sets[[name]]$data()
  tol <- sets[[name]]$tol
  fit <- pfdtc(d$x, d$y, tol = tol, kernel = kernel_se(), hyper = "pilot", control = quietly)
  spent <- fit$tol$seconds - fit$seconds[["pilot"]]
  scanned <- function(m) {
    seconds <- system.time({
      one <- pfdtc(d$x, d$y, m = m, kernel = fit$kernel, noise = fit$noise, hyper = "fixed", control = moved)
    })[["elapsed"]]
    c <- certify(one, reference = fit$reference, test_points = 0)
    data.frame(m = m, seconds = seconds, mean = max(c$mean_error) / fit$sd_y,
               sd = max(1 - c$sd_lower / c$sd, c$sd_upper / c$sd - 1))
  }
  at <- unique(round(0.6 * fit$m * 1.05^(0:16)))
  scan <- NULL
  for (m in at) {
    scan <- rbind(scan, scanned(m))
    met <- pmax(scan$mean, scan$sd) <= tol
    if (nrow(scan) > 2 && all(utils::tail(met, 3))) break
  }
  smallest <- scan$m[met][1]
  cat(sprintf("\n%s: %d rows, tol %g\n", name, nrow(d$x), tol))
  cat("tried by `tol`\n")
  print(fit$tol$tried, digits = 2, row.names = FALSE)
  cat("scan\n")
  print(cbind(scan, met = met), digits = 2, row.names = FALSE)
  near <- scan$seconds[which.min(abs(scan$m - fit$m))]
  data.frame(set = name, rows = nrow(d$x), tol = tol, mean = fit$tol$mean, sd = fit$tol$sd, met = fit$tol$met,
             effort = fit$tol$effort, m2 = fit$tol$m2, m = fit$m, smallest = smallest, ratio = fit$m / smallest,
             fits = nrow(fit$tol$tried), seconds = spent, one_fit = near)
}

wanted <- commandArgs(TRUE)
if (!length(wanted)) wanted <- names(sets)
options(width = 150)
results <- do.call(rbind, lapply(wanted, one_set))
cat("\nm chosen and smallest m of the scan; seconds of the search without the pilot, and of one fit with that m\n")
print(results, digits = 3, row.names = FALSE)
