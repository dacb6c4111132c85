# Do fits end within `max_seconds`? Prints for responses of several kinds the seconds of a fit divided by `max_seconds`.
#   Rscript bench/budget.R [rows and max_seconds, default: 1e5 6]
# Rows have 8 inputs; "levels" has a factor of 300 levels too. Results are in bench/RESULTS.md. The constants in
# near_training (R/tuning.R) are those of these rows: 100,000 training rows with neighbours take 8 s of one thread.

suppressMessages(library(pfdtc))
given <- as.numeric(commandArgs(TRUE))
a <- if (length(given)) given else c(1e5, 6)
n <- a[1L]
for (kind in c("exp", "binary", "counts", "censored", "ordered", "classes", "tails", "levels")) {
  set.seed(1)
  d <- data.frame(matrix(runif(8 * n), n))
  f <- sin(6 * d$X1) + d$X2^2 + .3 * d$X3 * d$X4
  d$y <- switch(kind, exp = exp(f + .3 * rnorm(n) * (.3 + d$X3)), binary = factor(rbinom(n, 1, plogis(f))),
                counts = rpois(n, exp(f)), censored = pmax(0, f + rnorm(n) - 1), tails = f + .3 * rt(n, 1.5),
                ordered = cut(f + rnorm(n), c(-Inf, 0, 1, Inf), ordered_result = TRUE), levels = f + rnorm(n),
                classes = factor(c("a", "b", "c")[1 + rbinom(n, 1, plogis(f)) + rbinom(n, 1, plogis(d$X3))]))
  if (kind == "levels") d$g <- factor(sample(300, n, TRUE))
  seconds <- system.time(fit <- suppressWarnings(suppressMessages(pfdtc(y ~ ., d, control = pfdtc_control(
    max_seconds = a[2L], threads = 1)))))
  cat(sprintf("%-9s %4.1f times `max_seconds`, %s: %s\n", kind, seconds[["elapsed"]] / a[2L], fit$posterior,
              paste(names(fit$seconds), sprintf("%.1f", fit$seconds), collapse = ", ")))
}
