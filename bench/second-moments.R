# Is the sd of predict(type = "response") the root of E(y - mean)^2? A normal density, by which bench/race.md scores all
# packages, needs that sd.
#   Rscript bench/second-moments.R [split]       sets of bench/sets.R, at most 300 training rows
# Prints mean z^2 and the NLPD of a normal density (units of the training sd) for each kind of response, where z is the
# error of the mean over the sd.
#
# Two versions of the sd; both cut responses y that are beyond all training responses. "Old": that of normal noise, with
# y cut 1 sd of f before its mean. "New": the root of E(y - reported mean)^2, with y cut at its median. With heavy tails
# the new square is averaged over the random noise variance and, if a transform was found, multiplied by the mean z^2 of
# held-out rows. 222 fits, 74 sets, three splits; "better" and "worse" count fits whose NLPD changes by .01:
#                              mean z^2        change of NLPD by the new sd
#                        fits   old    new     mean   trimmed  worst  better  worse
#   as given               88   1.15   1.15    none
#   as given, tails        15   1.42   1.42    none: noise is learned from squares
#   transform             102   1.24   1.24    -.001   .000     .02     5      2
#   transform, tails       17   3.95   2.33    -.70   -.22      .09     8      5
# The trimmed change of the 17 fits is -.06 by the average over the noise, -.15 with the cut at the median, too, and
# -.21 with held-out errors, too. Cuts at 1, 2 and 3 sds beyond the median have about the same change. Held-out errors
# change nothing for fits without tails.
#
# Larger data, splits 101 and 102, a fifth of the rows held out (flights: 24,000 rows of 800,000). NLPD by a normal
# density on both splits; "plain" has no transform and constant noise:
#                    plain          old sd         new sd         mean z^2, old   new
#   delays 10k       1.478  1.715   1.431  2.230   1.278  1.700   2.0  3.6        1.2  1.8
#   delays 24,000    1.412  1.341   1.441  1.196   1.302  1.148   2.0  1.3        1.2  1.0
#   airfoil          -.381  -.374   -.451  -.391   -.452  -.400   1.0  1.3        1.0  1.2
# On power plant (tails, constant noise, as given) no sd would be better: most errors are small, which no normal density
# shows.
#
# The factor of the variance is at most 100 (most_wider in R/tuning.R). Of 148 default fits of bench/sets.R (split 1
# with 150 rows, split 7 with 300) 9 have heavy tails beside a found transform. Their factors are 1 to 1.73, so the
# limit changes none.
#
# 27 November 2026, 219 default fits, split 1, mean z^2 of held-out rows: 1.58 with a transform (115), 1.07 without.
# The sd is not too small in general: without the worst row of each set mean z^2 is .88 and .85, by leave-one-out .92
# and .89. On infmort, Leinhardt (the same data) and Davis one row makes up most of mean z^2, which is 14. So a
# factor or a constant added to the variance was not tried.
suppressPackageStartupMessages(library(pfdtc))
options(pfdtc.threads = 1L)
Sys.setenv(SETS_ROWS = "300")
source("bench/sets.R")

split <- if (length(commandArgs(TRUE))) as.integer(commandArgs(TRUE)[1]) else 1L
rows <- lapply(sets(), function(name) {
  s <- train_and_test(name, split)
  set.seed(split)
  fit <- tryCatch(suppressWarnings(suppressMessages(pfdtc(s$formula, s$train))), error = function(e) NULL)
  if (is.null(fit)) return(NULL)
  p <- predict(fit, s$test, se.fit = TRUE, type = "response")
  z <- (s$test[[1]] - p$fit) / p$se.fit
  kind <- paste0(if (is.null(fit$transform)) "as given" else "transform", if (!is.null(fit$noise_tail)) ", tails")
  data.frame(name, kind, square = mean(z^2), normal = mean(z^2 + log(2 * pi * p$se.fit^2)) / 2 - log(sd(s$train[[1]])),
             own = -mean(predict(fit, s$test, type = "density")) - log(sd(s$train[[1]])))
})
rows <- do.call(rbind, rows)
print(rows, digits = 3, row.names = FALSE)
print(aggregate(cbind(square, normal, own) ~ kind, rows, mean, trim = 0.1), digits = 3)
