# Which point prediction should a fit with a transformed response return? Its median, its mean, or the mean of y
# truncated at the outermost training response (q = -Inf), or q sds of T(y) from its mean if that is further out
# (R/response-transform.R).
#   Rscript bench/point-predictions.R     RMSE over that of the untransformed response, if T gains 2 nats of evidence
#
# 102 pairs of a set and a transform (most on sets of bench/sets.R at 400 rows), before the additive kernel was tried:
#                        none median  mean  q=0  q=.5   q=1 q=1.5   q=2
#   geometric mean       1.00  .935   .944 .936  .932  .929  .930  .935
#   worst over none      1.00  1.73   1.65 1.59  1.59  1.59  1.59  1.59
#   worst over the best   3.3  1.27   5.07 2.19  2.19  2.19  2.19  3.17
# The mean explodes on gamma, counts, mammals and spikes with the log (.97 for .82, .98 for .74, .49 for .32, .54 for
# .33); cut with q = 1 it is .79, .82, .21, .35. Where it extrapolates correctly (extra, few) a cut costs 5 to 15 %.
# With the additive kernel the log is far worse on plm::RiceFarms, 4.7 with q = 1, and 1.5 on MASS::mammals.
#
# Cuts closer to the responses. 43 default fits of at most 300 rows with a transform: the RMSE of q = -Inf is .92 times
# that of q = 1 in the geometric mean, worst 1.08. RMSE as given, with q = 1, and with q = -Inf: RiceFarms .72, 2.63,
# .52; cpus .69, 1.84, .39; CHFLS 1.14, 1.60, .99; Davis 2.09, 1.68, 1.43. Also tried there: the inverse continues as
# its tangent beyond the responses (cpus 1.08, mammals .66 for .29), and the mean over f alone.
#   q = -2, the mean cut 2 sds before its middle where that is beyond all responses: the same as q = -Inf on mammals,
#     cpus,
#   RiceFarms (.72; q = -1 .52, q = 0 1.75), CHFLS, Davis and Electricity1970.
#   Branin's function, 40 runs with noise of .05 sd, three designs where Yeo-Johnson is chosen: RMSE .102, .141, .126
#     with
#   q = -Inf, most of it in a corner that f knows to be beyond all runs; the median has .076, .070, .057; q = -2 has
#     .090,
#   .128, .101, and its sd is not 0 there.
#
# The rule now is q = -1. 48 default fits of at most 300 rows with a transform (39 of bench/sets.R, 5 above, 4 that
# extrapolate), RMSE over that of q = -Inf: 1 to three digits on 43 of 44, and .759 on RiceFarms (q = -2 1, q = -.5
# .938). CHFLS has 1 (q = -.5 1.021, q = 0 1.206). AirPassengers, 24 months: q = -2 1, q = -1 .915, q = -.5 .825, median
# .629. exp(.3 x + .1 noise), x to 10, at x to 13, three draws: q = -2 .35 to .56, q = -1 .19 to .33, median .01 to .02.
#   The cut is by (sd / range)^2 sds if the sd of T(y) is above the range of all T(y). Of 124 default fits with a
#     transform
#   (bench/sets.R with 60 and 150 rows, bench/unseen with 60 and 300) this changes one: mammals with two elephants held
#     out
#   has RMSE 7e5 sd(y) before and 6 after. A price of 1, 2, 4 nats for the linear mean, which is what extrapolates
#     there,
#   is worse: 74 sets, NLPD of the fits that change +.003, +.008, +.006 with 60 rows, -.002, +.003, -.004 with 120 rows.
#
# 26 November 2026, can leave-one-out choose the point prediction? 146 default fits of bench/sets.csv and bench/further
# with a transform or smooth noise, at most 300 rows, RMSE over that of constant noise without a transform: geometric
# mean .977, above 1.05 on 16: Labour 6.1, cpus, mammals 1.5, sniffer 1.2, environmental 1.14, Highway 1.10, all others
# below 1.1. The smaller of the two RMSE on each set would be .972 of the default's. No: the cut mean stays.
#   The fit without a transform where its leave-one-out RMSE is smaller by the factor 1, 1.05, 1.1, 1.2: 1.007, .997,
#     .990,
#   .989 of the default's RMSE; better by 5 % on 8, 4, 3, 2, worse on 17, 8, 3, 1. Without Labour nothing is gained, and
#     a
#   second fit takes twice as long.
#   99 fits with a transform, 45 rows: the median where its leave-one-out RMSE is smaller 1.029 (1.004 if the row that
#   matters most does not count), mean and median weighted by leave-one-out 1.029, half of each 1.090, the mean shrunk
#     by
#   its leave-one-out slope 1.001; each is worse by 5 % on as many sets as it is better.
#
# 27 November 2026, 115 default fits with a transform, split 1, at most 300 rows, RMSE over that of no transform: .974
# in the geometric mean, above 1.15 on seven. The cause is one or two rows beyond all training responses on Labour,
# engel and RiceFarms, where f returns to its mean and a line is right; the cut on races2000; one row of 14 on
# hills2000. Tried, geometric mean and number above 1.15:
#   the cut at sure_sds = .5: .972, seven (races2000 1.50 for 1.71)
#   fewer sds where the sd is small beside the range: .970 to .974, seven; no cut there: .981, eight (campus 3.3)
#   means times their leave-one-out slopes, which are 1.00 on all seven but campus (.98): .972, seven
#   Duan's smearing: .973, seven
#   the response as given also learned to the end, and the larger final likelihood taken: .967 for .977, three for
#     eight,
#     but NLPD +.0077 (.0061), better by .02 on 5, worse on 8 (by leave-one-out density +.010, 4 and 11)
# None was built. Logs of inputs beyond 200 rows help (bench/log-inputs.R): .964, five (Labour 3.2, engel 1.9, races2000
# 1.7, campus 1.5, hills2000 1.3).
#
# The same day: transforms and logs of inputs are chosen beside a kernel without a linear mean, which joins later. With
# the gain of a linear mean (price as later) in the merit of every candidate, split 1, 220 sets: NLPD +.0036 (.0023), 3
# better and 6 worse by .02 (University +.38, Electricity1970 +.23), RMSE .998; engel 1.88 -> 1.12, the other four stay.
# In the merit of the power law alone (logs of response and inputs), which split 1 suggested, split 2: 4 of 73 sets
# change, -.16 (Wong), +.02, +.03, +.45 (UBSprices). Neither was built.
library(pfdtc)
source("bench/sets.R")
internal <- asNamespace("pfdtc")

candidates <- function(fit, new, q = c(-Inf, 0, 0.5, 1, 1.5, 2)) {
  f <- stats::predict(fit, new, type = "latent", se.fit = TRUE)
  t <- fit$transform
  tau <- sqrt(f$se.fit^2 + internal$noise_at(fit, internal$new_rows(fit, new, stats::na.pass)$x))
  up <- internal$curves_up(t)
  z <- seq(-8, 8, length.out = 801)
  w <- stats::dnorm(z) * 0.02
  cut_mean <- function(q) {
    vapply(seq_along(tau), function(i) {
      end <- if (up) max((t$ends[2] - f$fit[i]) / tau[i], q) else min((t$ends[1] - f$fit[i]) / tau[i], -q)
      sum(w * internal$untransformed(t, f$fit[i] + tau[i] * if (up) pmin(z, end) else pmax(z, end)))
    }, 0)
  }
  c(list(median = stats::predict(fit, new, type = "median"), mean = cut_mean(Inf)),
    stats::setNames(lapply(q, cut_mean), paste0("q", q)))
}

compare_points <- function(name, train, test, formula = y ~ .) {
  y <- test[[all.vars(formula)[1]]]
  rmse <- function(p) sqrt(mean((y - p)^2, na.rm = TRUE))
  plain <- pfdtc(formula, train, plain = TRUE)
  for (kind in c("yeojohnson", if (all(train[[all.vars(formula)[1]]] > 0)) "log")) {
    fit <- pfdtc(formula, train, transform = kind)
    if (fit$evidence < plain$evidence + 2) next
    ratio <- vapply(candidates(fit, test), rmse, 0) / rmse(predict(plain, test))
    cat(sprintf("%-24s %-10s", name, kind), sprintf("%s %.3f", names(ratio), ratio), "\n")
  }
}

synthetic <- list(
  gamma = function(x) stats::rgamma(nrow(x), 0.7, 0.7 / exp(1 + 2 * sin(4 * x[, 1]) * x[, 2])),
  lognormal = function(x) exp(2 * sin(6 * x[, 1]) + 2 * stats::rnorm(nrow(x))),
  spikes = function(x) 20 * exp(-40 * ((x[, 1] - 0.3)^2 + (x[, 2] - 0.6)^2)) + stats::rexp(nrow(x)),
  rough = function(x) exp(2 * sin(40 * x[, 1]) + 2 * cos(37 * x[, 2])),
  pareto = function(x) (2 + x[, 1] + sin(6 * x[, 2])) * stats::runif(nrow(x))^(-0.4))

if (sys.nframe() == 0L) {
  for (name in names(synthetic)) {
    set.seed(1)
    x <- matrix(stats::runif(3 * 1200), ncol = 3)
    d <- data.frame(x, y = synthetic[[name]](x))
    compare_points(name, d[1:300, ], d[-(1:300), ])
  }
  for (name in sets()) {
    s <- train_and_test(name)
    tryCatch(compare_points(name, utils::head(s$train, 400), s$test, s$formula),
             error = function(e) message(name, ": ", conditionMessage(e)))
  }
}
