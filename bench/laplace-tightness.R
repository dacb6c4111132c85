# How many times as large as the actual errors are the errors that certify() bounds, with its default reference? Actual
# errors are distances from the exact GP's Laplace posterior (all rows as points). Prints medians over 200 new rows, for
# the mode and for the sd.
#
#   Rscript bench/laplace-tightness.R > bench/results/laplace-tightness.txt
#
# A line has the ratio, certified and actual distance of the mode, the same of the sd, and the sd of f. First come 1,500
# rows of every family with 100 inducing points and a given kernel, then default fits to 2,500 rows, with points or
# neighbours as the trial chooses.
suppressMessages(library(pfdtc))
responses <- list(
  "binomial" = list(binomial(), function(f) rbinom(length(f), 1, plogis(f))),
  "binomial, sizes" = list(binomial(), function(f) rbinom(length(f), 8, plogis(f))),
  "probit" = list(binomial("probit"), function(f) rbinom(length(f), 1, pnorm(f))),
  "poisson" = list(poisson(), function(f) rpois(length(f), exp(f))),
  "nb" = list(nb(2), function(f) rnbinom(length(f), size = 2, mu = exp(f))),
  "student" = list(student(4, 0.5), function(f) f + 0.5 * rt(length(f), 4)))
kernels <- list("se" = kernel_se(c(0.2, 0.3), 4), "matern 3/2" = kernel_matern(3 / 2, c(0.8, 1), 4))

report <- function(what, fit, data, new, family, ...) {
  if (fit$likelihood$name == "nb") family <- nb(fit$theta)
  if (fit$likelihood$name == "student") family <- student(4, fit$theta)
  data$o <- fit$center
  new$o <- fit$center
  whole <- pfdtc(y ~ x1 + x2 + offset(o), data, m = nrow(data), family = family, kernel = fit$kernel, hyper = "fixed",
                 center = FALSE, ...)
  exact <- predict(whole, new, se.fit = TRUE)
  said <- certify(fit, new)
  sd <- pmax(said$sd_upper - said$sd, said$sd - said$sd_lower)
  compared <- function(certified, actual) { # ratios of rounding errors have no meaning
    ratio <- if (median(actual) < 1e-9) "    -" else sprintf("%5.2f", median(certified / actual))
    sprintf("%s (%.1e, %.1e)", ratio, median(certified), median(actual))
  }
  cat(sprintf("%-34s %3d %s %s  %s  %.2f\n", what, if (is.null(fit$near)) fit$m else fit$neighbours,
              if (is.null(fit$near)) "points" else "near  ", compared(said$mean_error, abs(said$mean - exact$fit)),
              compared(sd, abs(said$sd - exact$se.fit)), median(said$sd)))
}

problem <- function(n, seed, draw, sharp = 1) {
  set.seed(seed)
  d <- data.frame(x1 = runif(n), x2 = runif(n))
  d$y <- draw(2 * sin(7 * sharp * d$x1) + 2 * cos(6 * sharp * d$x2))
  list(data = d, new = data.frame(x1 = runif(200), x2 = runif(200)))
}

for (name in names(kernels)) {
  for (of in names(responses)) {
    p <- problem(1500, 1, responses[[of]][[2L]])
    weights <- if (grepl("sizes", of)) rep(8, 1500)
    if (!is.null(weights)) p$data$y <- p$data$y / 8
    family <- responses[[of]][[1L]]
    fit <- pfdtc(y ~ x1 + x2, p$data, m = 100, family = family, kernel = kernels[[name]], hyper = "fixed",
                 center = FALSE, weights = weights)
    report(paste0(name, ", ", of), fit, p$data, p$new, family, weights = weights)
  }
}
asked <- list(binomial = binomial(), poisson = poisson(), nb = nb(), student = student(4))
for (sharp in c(1, 4)) {
  for (of in names(asked)) {
    p <- problem(2500, 2, responses[[of]][[2L]], sharp)
    fit <- pfdtc(y ~ x1 + x2, p$data, family = asked[[of]])
    report(sprintf("as it comes, %s, %s", if (sharp > 1) "short waves" else "long waves", of), fit, p$data, p$new,
           asked[[of]])
  }
}
