# How does the choice of the response (transform and noise) change held-out rows, and how often is constant noise kept?
#   Rscript bench/response.R sets      the sets of bench/sets.R, at most 500 training rows, one split
#   Rscript bench/response.R constant  60 synthetic sets with constant normal noise
#   Rscript bench/response.R uneven    a step and a bump in the noise
# Below, "plain" fits have transform = "none" and noise = ~ 1. NLPD is the mean negative log density of held-out rows in
# units of the training sd, and a change is that of the default from the fit that is named. "trimmed" is a mean of
# changes without the outer tenths, "better" and "worse" are numbers of fits whose NLPD changes by more than .02. RMSE
# is relative to that of the fit that is named, in the geometric mean.
#
# constant: 56 of 60 keep constant noise and the response as given (19 of 20 with 50 rows, 19 with 200, 18 with 600).
# The others have Yeo-Johnson's transform, by gains of .1, .4, 3.0 and 7.8 nats.
#
# sets: 146 fits, 73 sets, at most 300 training rows, two splits, with noise of uncertain size (response-transform.R),
# the mean of y cut, and the scale of few rows:
#                                            NLPD                             RMSE              coverage of 95 %
#                                 mean   trimmed  better  worse      mean  worst  above 1.15   other fit  default
#   default against plain         -.28    -.155     95      6        .978   2.2       4            .931      .940
#   default against noise = ~ 1   -.03    -.017     49     10        .963   1.5       4            .937      .940
#   default without these three   -.04    -.009     35      8        .969   1.1       0            .934      .940
# RMSE is above 1.15 on mammals (1.5 and 2.2), concrete (1.2) and baltimore (1.25). Smooth noise whose variances leave
# out the correlation of its coefficients with the level loses .1 to .2 on boys and geyser.
#
# A parameter costs .0025 nats a row beyond 800 rows. Changes of NLPD, 74 sets, at most 300 training rows, two splits:
#                                                               fits  mean   trimmed  better  worse
#   default against plain                                        148  -.28    -.153     96      4
#   smooth noise against noise = ~ 1, with the same transform     41  -.105   -.098     34      2
#   the same, by a normal density with the mean and the sd        41          -.098     30      6
#   heavy tails against the same fit without (second split)       12          -.048      7      0
# Stricter rules for smooth noise all lose (trimmed; better, worse):
#   leave-one-out log density of the two fits larger by 0, 1, 2 standard errors   -.088; 32, 2   -.084; 30, 2
#                                                                                 -.075; 28, 1
#   merit larger by 2, 4, 8 nats more                                 -.070; 25, 1   -.055; 20, 1   -.017; 10, 1
# At 420 to 800 rows (11 fits with smooth noise) the change is -.077, better on 9, worse on 1. Kernels of two scales do
# not replace smooth noise: they gain as much beside it. Leave-one-out RMSE is no guard for RMSE. Its ratio to that of
# the plain fit, and the ratio of held-out RMSE:
#                     mammals   mammals   baltimore   Electricity1970   GlaucomaM   RiceFarms   imports85
#   leave-one-out       1.14      .93        .99            1.81          1.11        1.07         1.07
#   held-out            1.49     2.19       1.25             .45           .66         .73          .63
#
# A limit of the ratio of squared errors at rows given their neighbours, above which a candidate is refused: 60 sets,
# 119 splits of at most 250 training rows, Matern 3/2. Columns with `T` have the limit for transforms alone, the others
# for smooth noise too (USAirlines: ratio 6, held-out RMSE 2.8 times).
#                           none  T 1.4  T 1.2    1.4    1.2   1.15    1.1   1.05
#   NLPD, trimmed mean      -.159  -.156  -.157  -.156  -.157  -.149  -.142  -.128
#   worse by .05 (splits)       5      7      7      6      6      6      6      5
#   RMSE, geometric mean     .997  1.005  1.005   .996   .996   .997   .999  1.003
#   RMSE above 1.15             4      5      5      4      4      4      4      4
# The four with RMSE above 1.15 are mammals twice (held-out elephants), cpus and USAirlines. Rows given their neighbours
# show none of these (ratios .3 to .9).
#
# The rule now is the limit 1.2 without the row that counts most against a candidate. Without this exception squared
# errors refused the best candidate in six fits (three splits, 300 rows), by one row each:
#                                    ratio                 candidate refused     candidate taken
#                                    all rows  without it   RMSE    NLPD          RMSE    NLPD
#   hormone, log, 25 nats            1.68      1.02         2.35    1.835         2.41    1.708
#   hormone, log, 33 nats            1.84      1.08         2.06    2.127         2.05    2.020
#   Blackmore, both, 150 nats        1.27      1.10         4.05    2.769         2.79    1.998
#   cpus, log, 38 nats               1.63      1.10         56.0    4.80          58.7    4.76
#   USAirlines, log, 16 nats         2.05      1.12         1.6e5   13.0          1.2e5   12.1
#   CHFLS, both, 29 nats             1.24      1.09         672     7.43          628     7.25
# On USAirlines with cost ~ output + price + load smooth noise stays refused (ratios 1.64 and 1.23). Standard
# errors are no guard: one outlier makes them large.
#
# The sd beside the cut mean is that of the cut response. 38 sets with a transform, 300 rows; "rows cut": the 774 rows
# where the cut changes the sd by 5 %. Coverage of mean +- 1.96 sd:
#                                       all rows   rows cut
#   sd of the cut response                .945       .942
#   sd of the response before the cut     .949       .961
# NLPD by a normal density is lower by .010 with the sd of the cut response.
#
# Tried and not built:
#   the median in place of the cut mean: better on 29 of 80 sets, RMSE .992 against .996
#   a penalty of 2 more nats for a transform: trimmed NLPD -.151 against -.157; 9 of 119 splits change
#   exp(m + v / 2) in place of exp(m) as smooth noise: NLPD -.007 on 41 splits, better on 3, worse on 1
#   other responses or searches: 147 sets (bench/sets.csv and half of bench/further), at most 300 rows. Each candidate
#     within 20 nats was continued to its own final kernel and compared by log marginal likelihood, less 2 nats a
#     parameter of the response. Another response ends more than 2 nats higher on 21 sets; held-out errors refuse two of
#     these. Taking the 19 others changes NLPD by -.0003 a set (8 better, 5 worse). Constant noise where smooth noise
#     was chosen (39 sets) changes NLPD by +.065 and is worse on 25. Searches from all ends of the starts gain nothing
#
# Branin's function without noise, three designs of 40 and of 100 points: RMSE is .005 to .07 with Yeo-Johnson, which
# was chosen in all six, and .0003 to .006 as given. Matern 3/2 finds a noise of at most .0007 of the variance
# there. So a response with almost no noise has its own rule (bench/cliff.R).
#
# Values that repeat: 24 sets of at most 200 rows, where one value has more than a fifth of the rows, or there are fewer
# than ten values (bench/zeros/sets.csv, eight of bench/further/sets.csv, two of bench/sets.csv). All candidates are
# tried now, not only a log and constant noise. NLPD falls on all sets that change, most on affairs (9.65 to .920), OFP
# emr (3.237 to 1.093), crime1 (1.613 to -.765) and Doctor (2.620 to 1.003). RMSE is at most 1.02 times as large,
# coverage .83 to 1. On a second split of 21 of them, at most 300 rows, NLPD is lower by .02 on 14 and higher on chicago
# (36 rows, 1.48 to 2.71). RMSE changes on charity (.99 to 1.20), Clothing (.65 to .72), OFP (1.02 to .72) and Doctor
# (.81 to .64), on the others by at most 6 %. Hurdles with 30, 50, 70 % zeros, nine draws of 150 rows: NLPD changes by
# -.53 to -.77, coverage is .90 to .97. Smooth noise is not tried for few values: with it the wine data (3,918 rows)
# have NLPD 1.106 by a normal density, without it .817. The share of rows with one value that leaves out smooth noise is
# .2; with .1, MASS's mcycle had NLPD .645, with smooth noise .281.

suppressMessages(library(pfdtc))
options(pfdtc.threads = 1L)
what <- commandArgs(TRUE)[1]

if (identical(what, "sets")) {
  Sys.setenv(SETS_ROWS = "500")
  source("bench/sets.R")
  compare_on_sets(list(transform = "none", noise = ~ 1), list())
}

if (identical(what, "constant")) {
  one <- function(n, seed) {
    set.seed(100 + seed)
    d <- 1 + seed %% 3
    x <- matrix(runif(n * d), n)
    f <- sin(6 * x[, 1]) + if (d > 1) x[, 2] else 0
    rows <- data.frame(y = f + c(0.1, 0.3, 1)[d] * rnorm(n), x)
    table <- suppressWarnings(pfdtc(y ~ ., rows, kernel = kernel_matern(3 / 2)))$response
    data.frame(n, seed, candidate = table$candidate[table$chosen])
  }
  print(table(do.call(rbind, Map(one, rep(c(50, 200, 600), each = 20), rep(1:20, 3)))[c("n", "candidate")]))
}

if (identical(what, "uneven")) { # with f = sin(8 x)
  noises <- list(step = function(x) ifelse(x > 0.6, 0.6, 0.05), bump = function(x) 0.05 + 0.2 * dnorm(x, 0.5, 0.1))
  for (name in names(noises)) {
    set.seed(3)
    x <- runif(1200)
    d <- data.frame(x, y = sin(8 * x) + noises[[name]](x) * rnorm(1200))
    nlpd <- function(...) {
      fit <- pfdtc(y ~ x, d[1:150, ], ...)
      -mean(predict(fit, d[-(1:150), ], type = "density")) - log(sd(d$y[1:150]))
    }
    cat(sprintf("%s: NLPD %.3f, with constant noise %.3f\n", name, nlpd(), nlpd(noise = ~ 1)))
  }
}
