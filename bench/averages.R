# How much do averages of W = -d^2 log p(y | f) / df^2 over f tighten bounds of the mode, compared with the range of W?
# The ratio is the bound by averages over the bound by the range, both on the fit's own points (effort "fast"), for six
# families and two kernels.
#   Rscript bench/averages.R
# Last run, ratios with 8 of 150 rows as inducing points (bounds of .1 to .7 by the range): Weibull .72 (SE) and .62
# (Matern 5/2), gamma .85, Poisson .9, negative binomial, binomial and Tweedie .96 to .99. With 16 points: Weibull 1.00
# and .95 or more.
suppressMessages(library(pfdtc))
options(warn = -1)
ranges <- getFromNamespace("average_curvature_range", "pfdtc")
with_averages <- function(fun) {
  unlockBinding("average_curvature_range", asNamespace("pfdtc"))
  assign("average_curvature_range", fun, asNamespace("pfdtc"))
}
draws <- list(
  poisson = list(poisson(), function(f) rpois(length(f), exp(f + 1))),
  binomial = list(binomial(), function(f) rbinom(length(f), 1, plogis(f))),
  Gamma = list(replace(Gamma("log"), "theta", 2), function(f) rgamma(length(f), 2, 2 / exp(f))),
  tweedie = list(tweedie(1.5, 0.5), function(f) rgamma(length(f), rpois(length(f), 4 * exp(f / 2))) * exp(f / 2) / 4),
  nb = list(nb(2), function(f) rnbinom(length(f), size = 2, mu = exp(f + 1))),
  weibull = list(weibull(0.6), function(f) exp(f + 0.6 * log(rexp(length(f))))))
for (name in names(draws)) {
  found <- NULL
  for (seed in 1:4) for (m in c(8, 12, 16)) {
    set.seed(seed)
    n <- 150
    x <- sort(runif(n, 0, 4))
    d <- data.frame(x = x, y = draws[[name]][[2]](sin(3 * x + seed)))
    kernel <- if (seed %% 2) kernel_se(0.5, 1) else kernel_matern(2.5, 0.8, 1)
    fit <- pfdtc(y ~ x, d, family = draws[[name]][[1]], kernel = kernel, hyper = "fixed", m = m)
    new <- data.frame(x = seq(0, 4, length.out = 50))
    with_averages(ranges)
    now <- certify(fit, new, effort = "fast")$mean_error
    with_averages(function(likelihood, sites, f, e, range) range)
    before <- certify(fit, new, effort = "fast")$mean_error
    found <- rbind(found, data.frame(m, kernel = seed %% 2, ratio = median(now / before), before = median(before)))
  }
  mean <- tapply(found$ratio, found[c("kernel", "m")], mean)
  cat(sprintf("%-9s ratio by m = 8, 12, 16: SE %s; Matern 5/2 %s; before %s\n", name,
              paste(sprintf("%.2f", mean["1", ]), collapse = " "), paste(sprintf("%.2f", mean["0", ]), collapse = " "),
              paste(sprintf("%.2g", tapply(found$before, found$m, median)), collapse = " ")))
}
