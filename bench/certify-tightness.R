# How far are certificates above the actual error at held-out rows, compared with other bounds, and what do they cost?
#
#   PFDTC_DATA=<folder of the CSVs> OPENBLAS_NUM_THREADS=1 bash tools/openblas.sh \
#     Rscript bench/certify-tightness.R [set ...] [M ...] > vignettes/tightness.csv
#
# The data of the paper's Table 1 are split as there (seed 1). VFE on 200 random points learns kernel and noise, for
# squared exponential and Matern 3/2 kernels. M = 50, 100, 200, 400 greedy points (DTC) are then optimised (pfdtc(), 200
# steps). Each row of the table has a set, kernel, M, method of fitting and bound, and numbers for errors at the
# held-out rows:
#   actual_*        median and maximum error against the exact GP, in sd(y) of the training rows
#   mean_*, sd_*    the bound's median and maximum over those of the error
# Bounds: certify() with each effort; `reference, DTC alone`, the same without conjugate gradients, kriging and test
# points; `theorem` and `theorem, sharper`, by error_bounds(); `KL`, sqrt(2 var_exact KL) with the KL divergence itself,
# which favours it; `Burt et al.`, their Proposition 1, which needs 2 KL <= 1/5 and is NA otherwise. `seconds` are of
# the bound at all held-out rows, including all that it needs; `fit_seconds` are of the fit, including its share of the
# pilot. One thread.

suppressMessages(library(pfdtc))
options(pfdtc.threads = 1)

split_set <- function(name) {
  set <- paper_datasets()
  set <- set[set$name == name, ]
  set.seed(1)
  d <- load_dataset(name)
  rows <- sample.int(nrow(d), set$n_train + set$n_test)
  x <- data.matrix(d[names(d) != "y"])
  train <- rows[seq_len(set$n_train)]
  test <- rows[-seq_len(set$n_train)]
  list(x = x[train, , drop = FALSE], y = d$y[train], test = x[test, , drop = FALSE])
}

seconds_of <- function(expr) system.time(expr)[["elapsed"]]

measure_fit <- function(fit, fit_seconds, split, exact, truth, about) {
  unit <- stats::sd(split$y)
  p <- predict(fit, split$test, se.fit = TRUE)
  error <- list(mean = abs(p$fit - truth$fit), sd = abs(p$se.fit - truth$se.fit))
  row <- function(bound, seconds, mean, sd, m2 = NA) {
    about[c("actual_mean_median", "actual_mean_max", "actual_sd_median", "actual_sd_max")] <-
      signif(c(stats::median(error$mean), max(error$mean), stats::median(error$sd), max(error$sd)) / unit, 4)
    ratio <- function(f, what, of) signif(f(of) / f(error[[what]]), 4)
    cat(paste(c(unlist(about), sprintf("\"%s\"", bound), if (is.null(m2)) NA else m2, signif(seconds, 3),
                signif(fit_seconds, 3), ratio(stats::median, "mean", mean), ratio(max, "mean", mean),
                ratio(stats::median, "sd", sd), ratio(max, "sd", sd)), collapse = ","), "\n", sep = "")
  }
  certified <- function(bound, more, ...) {
    seconds <- more + seconds_of(c <- certify(fit, split$test, ...))
    broken <- truth$fit < c$mean_lower - 1e-9 * unit | truth$fit > c$mean_upper + 1e-9 * unit |
      truth$se.fit < c$sd_lower - 1e-7 * unit | truth$se.fit > c$sd_upper + 1e-7 * unit
    if (any(broken)) stop("a certificate is broken: ", bound)
    row(bound, seconds, c$mean_error, pmax(c$sd - c$sd_lower, c$sd_upper - c$sd), attr(c, "m2"))
  }
  made <- seconds_of(fit$reference <- reference(fit))
  certified("fast", 0, effort = "fast")
  plain <- fit$reference
  plain$correction <- NULL
  options(pfdtc.kriging_rows = 0L)
  certified("reference, DTC alone", made, reference = plain, test_points = 0)
  options(pfdtc.kriging_rows = NULL)
  certified("reference", made)
  if (about$m == 200) certified("tight", made, effort = "tight")
  bounds_seconds <- seconds_of(b <- error_bounds(fit, split$test))
  row("theorem", made + bounds_seconds, b$mean_bound, b$sd_bound)
  row("theorem, sharper", made + bounds_seconds, b$mean_bound_sharp, b$sd_bound_sharp)
  kl <- kl_divergence(fit, exact)
  by_kl <- truth$se.fit * sqrt(2 * kl)
  row("KL", NA, by_kl, by_kl)
  burt <- if (2 * kl <= 1 / 5) p$se.fit * sqrt(2 * kl) else NA * p$se.fit
  row("Burt et al.", NA, burt, if (2 * kl <= 1 / 5) p$se.fit * sqrt(6 * kl) else NA * p$se.fit)
}

measure <- function(name, kernel, label, sizes) {
  split <- split_set(name)
  pilot <- seconds_of(learned <- gp_dtc(split$x, split$y, m = 1, kernel = kernel, hyper = "pilot",
                                              inducing = "random"))
  fixed <- list(x = split$x, y = split$y, kernel = learned$kernel, noise = learned$noise, hyper = "fixed")
  exact <- suppressMessages(do.call(gp_exact, fixed))
  truth <- predict(exact, split$test, se.fit = TRUE)
  for (m in sizes) {
    about <- list(set = name, kernel = label, m = m, points = NA, fit = "greedy")
    for (way in c("greedy", "optimised")) {
      set.seed(m)
      args <- c(fixed, m = m, list(control = pfdtc_control(200)))
      seconds <- seconds_of(fit <- do.call(if (way == "greedy") gp_dtc else pfdtc, args))
      about$points <- fit$m
      about$fit <- way
      measure_fit(fit, pilot + seconds, split, exact, truth, about)
      message(sprintf("%s %s %d %s: %.0f s", name, label, m, way, proc.time()[["elapsed"]]))
    }
  }
}

args <- commandArgs(TRUE)
sizes <- as.integer(grep("^[0-9]+$", args, value = TRUE))
if (!length(sizes)) sizes <- c(50L, 100L, 200L, 400L)
sets <- grep("^[0-9]+$", args, value = TRUE, invert = TRUE)
if (!length(sets)) sets <- paper_datasets()$name[paper_datasets()$paper]
cat("set,kernel,m,points,fit,actual_mean_median,actual_mean_max,actual_sd_median,actual_sd_max,bound,m2,seconds,",
    "fit_seconds,mean_median,mean_max,sd_median,sd_max\n", sep = "")
for (name in sets) {
  measure(name, kernel_se(), "se", sizes)
  measure(name, kernel_matern(3 / 2), "matern32", sizes)
}
