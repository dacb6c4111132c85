# Are the bounds of evidence_bounds(true = TRUE) ever violated? Problems have two rows and nine likelihoods, and are
# compared with quadrature. Half of them have one inducing point for both rows.
#   Rscript bench/evidence_true.R [problems of each] [points: only those with one inducing point] [problems to skip]
# Last run, 556 problems of each likelihood: 10,008 ends, 0 violated; median widths .001 (logit, ordered classes),
# .002 to .005 (Tweedie, probit) and .02 to .03 nats (Poisson, gamma, tobit, weibull, counts above 0).
# With one inducing point, 20 problems of each likelihood: 360 ends, 0 violated. Median widths are .02 (logit, ordered
# classes) to .1 nats (gamma). The upper end is infinite if the point explains too little, as in half of the problems
# of tobit().
suppressMessages(library(pfdtc))
with_seed <- function(seed, code) {
  set.seed(seed)
  code
}
for (name in c("sites_of_fit", "native_likelihood")) assign(name, getFromNamespace(name, "pfdtc"))
source("tests/testthat/helper-true-evidence.R")
args <- commandArgs(TRUE)
n <- if (length(args)) as.integer(args[1]) else 100L
by <- if (length(args) > 1 && args[2] == "points") 2L else 1L # only odd seeds have one inducing point
skip <- if (length(args) > 2) as.integer(args[3]) else 0L
families <- list(binomial = binomial(), probit = binomial("probit"), poisson = poisson(),
                 Gamma = replace(Gamma("log"), "theta", 2), ordinal = ordinal(), tobit = tobit(left = 0, scale = 0.5),
                 weibull = weibull(0.7), tweedie = tweedie(1.5, 1), truncated = truncated_poisson())
for (name in names(families)) {
  each <- vapply((skip + seq_len(n)) * by - by %/% 2L, function(seed) {
    fit <- fit_of_two(two_rows(name, 100 + seed, if (seed %% 2) 0.3 else 1), families[[name]],
                      if (seed %% 3 == 0) "vi" else "laplace", if (seed %% 2) 1)
    ends <- evidence_bounds(fit, true = TRUE)
    truth <- true_log_evidence(fit)
    room <- 1e-6 * (1 + abs(truth))
    c(broken = (truth < ends[["lower"]] - room) + (truth > ends[["upper"]] + room), width = diff(unclass(ends)[1:2]),
      laplace = abs(fit$evidence - truth))
  }, numeric(3))
  cat(sprintf("%-9s %d ends, %d broken; width median %.2g, largest %.2g; Laplace or VI is off by %.2g\n", name, 2 * n,
              sum(each["broken", ]), median(each[2, ]), max(each[2, ]), median(each["laplace", ])))
}
