# How far certificates are above the actual error at held-out rows, and what the test points of certify() change.
#
#   PFDTC_DATA=<folder of the CSVs> bash tools/openblas.sh Rscript bench/certify-tightness.R [M ...]
#
# Hyperparameters by VFE on 200 points; DTC on M greedy points (200 if not given), references of 2 M and 4 M points,
# with and without test points; 500 rows (at most a tenth) held out. Error in sd(y); ratios certified / actual are
# median over median and maximum over maximum; seconds of the call, the reference being there.

suppressMessages(library(pfdtc))
options(pfdtc.threads = 1)

read_set <- function(name) {
  file <- c(airfoil = "airfoil.csv", wine = "wine-white.csv")[[name]]
  d <- utils::read.csv(file.path(Sys.getenv("PFDTC_DATA"), file))
  list(x = data.matrix(d[-ncol(d)]), y = d[[ncol(d)]])
}

measure <- function(name, kernel, label, sizes) {
  set.seed(1)
  d <- read_set(name)
  out <- sample.int(length(d$y), min(500, length(d$y) %/% 10))
  x <- d$x[-out, ]
  y <- d$y[-out]
  control <- pfdtc_control(maxit = 40, progress = FALSE)
  learned <- gp_vfe(x, y, m = 200, kernel = kernel, control = control)
  fixed <- list(x = x, y = y, kernel = learned$kernel, noise = learned$noise, hyper = "fixed")
  exact <- predict(suppressMessages(do.call(gp_exact, fixed)), d$x[out, ], se.fit = TRUE)
  for (m in sizes) {
    fit <- do.call(gp_dtc, c(fixed, m = m))
    show <- function(what, ...) {
      seconds <- system.time(c <- certify(fit, d$x[out, ], ...))[["elapsed"]]
      error <- abs(c$mean - exact$fit)
      sd_error <- abs(c$sd - exact$se.fit)
      sd_certified <- pmax(c$sd - c$sd_lower, c$sd_upper - c$sd)
      points <- attr(c, "m2")
      cat(sprintf("%-8s %-9s %4d  %-22s %5s  %.1e %.1e  %7.2f %7.2f  %7.2f %7.2f  %6.1f\n", name, label, m, what,
                  if (is.null(points)) "" else points, stats::median(error) / stats::sd(y), max(error) / stats::sd(y),
                  stats::median(c$mean_error) / stats::median(error), max(c$mean_error) / max(error),
                  stats::median(sd_certified) / stats::median(sd_error), max(sd_certified) / max(sd_error), seconds))
    }
    show("fast", effort = "fast")
    for (times in c(2L, 4L)) {
      seconds <- system.time(ref <- reference(fit, times * m))[["elapsed"]]
      show(sprintf("%d M (made in %.1f s)", times, seconds), reference = ref, test_points = 0)
      show(sprintf("%d M and test points", times), reference = ref)
    }
  }
}

sizes <- as.integer(commandArgs(TRUE))
if (!length(sizes)) sizes <- 200L
cat("set      kernel       M  certificate            points  actual: med max   mean: med     max   sd: med      max",
    "seconds\n")
for (name in c("airfoil", "wine")) {
  measure(name, kernel_se(), "se", sizes)
  measure(name, kernel_matern(3 / 2), "matern32", sizes)
}
