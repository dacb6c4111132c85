# How much do moved inducing points gain for classes and counts? Prints the root mean squared distance of mode and sd
# from those of the exact GP's Laplace posterior at 500 new inputs, for m greedy points, for these points moved by the
# pF divergence of the Gaussian responses at the mode (aux = aux_white()), and for 2 m greedy points. 1,500 rows.
#
#   Rscript bench/laplace-moved.R > bench/results/laplace-moved.txt
suppressMessages(library(pfdtc))
options(pfdtc.threads = 1L)
cases <- list("binomial, se" = list(binomial(), kernel_se(c(0.2, 0.3), 4)),
              "binomial, matern 3/2" = list(binomial(), kernel_matern(3 / 2, c(0.8, 1), 4)),
              "poisson, matern 5/2" = list(poisson(), kernel_matern(5 / 2, c(0.4, 0.5), 2)))
for (name in names(cases)) {
  set.seed(1)
  d <- data.frame(x1 = runif(1500), x2 = runif(1500))
  f <- 2 * sin(7 * d$x1) + 2 * cos(6 * d$x2)
  family <- cases[[name]][[1L]]
  d$y <- if (family$family == "poisson") rpois(1500, exp(f / 2)) else rbinom(1500, 1, plogis(f))
  new <- data.frame(x1 = runif(500), x2 = runif(500))
  of <- function(...) {
    pfdtc(y ~ x1 + x2, d, family = family, kernel = cases[[name]][[2L]], hyper = "fixed", center = FALSE, ...)
  }
  exact <- predict(of(m = 1500), new, se.fit = TRUE)
  rms <- function(v) sqrt(mean(v^2))
  report <- function(what, ...) {
    time <- system.time(fit <- of(...))
    at <- predict(fit, new, se.fit = TRUE)
    cat(sprintf("%-21s %3d points, %-7s: mode %.1e, sd %.1e, %.2f s\n", name, fit$m, what, rms(at$fit - exact$fit),
                rms(at$se.fit - exact$se.fit), time[["user.self"]] + time[["sys.self"]]))
  }
  for (m in c(25, 50, 100)) {
    report("greedy", m = m)
    report("moved", m = m, aux = aux_white())
    report("greedy", m = 2 * m)
  }
}
