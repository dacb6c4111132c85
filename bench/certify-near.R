# Tests certificates of fits with neighbours and rough kernels at held-out rows, by passes over all pairs of rows.
#
#   PFDTC_DATA=<folder of the CSVs> OPENBLAS_NUM_THREADS=1 bash tools/openblas.sh \
#     Rscript bench/certify-near.R [set ...] > bench/results/certify-near.csv
#
# The data are split as in certify-tightness.R. Hyperparameters are learned by the fit itself; "short" divides its
# lengthscales by four. There are 200 points, 40 neighbours and a reference of 800 points. Each row of the table has a
# set, kernel, lengthscales and the number of passes allowed for the mean's correction, without the exact posterior
# (which certify() would use for sets as small as airfoil). Rows "default" are reference() and certify() with their
# defaults, and passes is the number that these took:
#   actual      median error of the mean / exact sd;  mean: median certified error / median error
#   bound       median half width of the mean's interval / exact sd
#   sd_lower, sd_upper    the sd's interval / exact sd: medians, and the worst
#   sd          median certified error of the sd / median error
#   broken      number of violated certificates
# Seconds are processor seconds of one thread: of the reference with its passes, and of certify() with it at `rows`
# held-out rows.

suppressMessages(library(pfdtc))
options(pfdtc.threads = 1)
inside <- function(name) get(name, asNamespace("pfdtc"))
most_rows <- 500

split_set <- function(name) {
  set <- paper_datasets()
  set <- set[set$name == name, ]
  set.seed(1)
  d <- load_dataset(name)
  rows <- sample.int(nrow(d), set$n_train + set$n_test)
  x <- data.matrix(d[names(d) != "y"])
  train <- rows[seq_len(set$n_train)]
  test <- utils::head(rows[-seq_len(set$n_train)], most_rows)
  list(x = x[train, , drop = FALSE], y = d$y[train], test = x[test, , drop = FALSE])
}

kernels <- list("1/2" = kernel_matern(1 / 2), "3/2" = kernel_matern(3 / 2),
                "3/2 + 3/2" = kernel_matern(3 / 2) + kernel_matern(3 / 2))

spent <- function(expr) sum(system.time(expr)[1:2])

measure <- function(name, kernel) {
  split <- split_set(name)
  set.seed(1)
  fit_by <- function(kernel, ...) {
    pfdtc(split$x, split$y, kernel = kernel, ..., m = 200, neighbours = 40, control = pfdtc_control(maxit = 0))
  }
  fit <- fit_by(kernels[[kernel]])
  certify_over_passes(fit, split, name, kernel, "learned")
  lengths <- as.list(coef(fit)[grep("lengthscale", names(coef(fit)))] / 4)
  if (!is.null(fit$kernel$lengthscale)) lengths <- list(lengthscale = fit$kernel$lengthscale / 4)
  short <- do.call(update, c(list(fit$kernel), lengths))
  certify_over_passes(fit_by(short, noise = fit$noise, hyper = "fixed"), split, name, kernel, "short")
}

certify_over_passes <- function(fit, split, name, kernel, lengths) {
  exact <- suppressMessages(gp_exact(split$x, split$y, kernel = fit$kernel, noise = fit$noise, hyper = "fixed"))
  truth <- predict(exact, split$test, se.fit = TRUE)
  row <- function(ref, label, seconds, max_seconds) {
    took <- spent(c <- certify(fit, split$test, reference = ref, max_seconds = max_seconds))
    tiny <- 1e-9 * fit$sd_y
    broken <- truth$fit < c$mean_lower - tiny | truth$fit > c$mean_upper + tiny |
      truth$se.fit < c$sd_lower - tiny | truth$se.fit > c$sd_upper + tiny
    error <- abs(c$mean - truth$fit)
    median <- stats::median
    numbers <- c(median(error / truth$se.fit), median(c$mean_error) / median(error),
                 median((c$mean_upper - c$mean_lower) / 2 / truth$se.fit),
                 median(c$sd_lower / truth$se.fit), min(c$sd_lower / truth$se.fit),
                 median(c$sd_upper / truth$se.fit), max(c$sd_upper / truth$se.fit),
                 median(pmax(c$sd - c$sd_lower, c$sd_upper - c$sd)) / median(abs(c$sd - truth$se.fit)))
    cat(paste(c(name, kernel, lengths, nrow(split$x), nrow(split$test),
                signif(ref$norms$t * ref$scale^2 / fit$noise, 3), label,
                signif(numbers, 4), sum(broken), signif(seconds, 3), signif(took, 3)), collapse = ","), "\n", sep = "")
  }
  seconds <- spent(ref <- reference(fit, 800, max_seconds = 0))
  data <- inside("data_in_scale")(fit, ref)
  old <- options(pfdtc.max_memory = 100 * nrow(split$x)^2) # too little memory for the exact posterior
  for (passes in c(1:3, 5, 7)) {
    set.seed(2)
    corrected <- spent({
      by <- if (inside("precondition_by_near_rows")(ref)) inside("near_preconditioner")(ref, data)
      state <- inside("solve_exact")(ref, data, passes - 1L, function(s) Inf, precondition = by)
      ref$correction <- inside("correct_residual")(ref, data, state, sharp = FALSE)
    })
    row(ref, passes, seconds + corrected, Inf)
  }
  options(old)
  seconds <- spent(ref <- reference(fit))
  passes <- ref$correction$passes
  row(ref, sprintf("default: %d", if (is.null(passes)) 0L else passes), seconds, 10)
}

sets <- commandArgs(TRUE)
if (!length(sets)) sets <- c("airfoil", "ccpp")
cat("set,kernel,lengths,n,rows,t_over_noise,passes,actual,mean,bound,sd_lower,sd_lower_worst,sd_upper,",
    "sd_upper_worst,sd,broken,seconds_reference,seconds_certify\n", sep = "")
for (name in sets) for (kernel in names(kernels)) measure(name, kernel)
