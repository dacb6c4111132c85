# Measures coverage and NLPD of default fits of 3 to 14 rows, on six functions.
#   Rscript bench/fewer.R [draws]        (12 by default: half an hour)
#
# 26 November 2026, 90 draws for each number of rows, 50 new responses each. p is the number of learned hyperparameters,
# 3 to 5. The rules none, df and t multiply the kernel's variance and the noise by a factor, so means do not change:
#
#   none     1, the rule until then
#   df       n / (n - p), p at most n / 2
#   t        n / (n - p) (t / z)^2, the 97.5 % quantiles of Student's t with n - 1 degrees of freedom and of the normal
#   mixture  no factor, but hyper_uncertainty = TRUE averages over hyperparameters
#
#             coverage of 95 % intervals                  NLPD in units of the sd of the training rows
#   rows       3    4    5    6    8    10   12   14      3     4     5     6     8     10    12    14
#   none      .679 .757 .801 .839 .858 .856 .897 .901    13.75 2.82  1.52  1.37  .97   .96   .28   .12
#   df        .780 .848 .906 .921 .932 .913 .943 .935    7.42  1.89  1.17  1.10  .76   .75   .24   .08
#   t         .938 .935 .966 .964 .962 .940 .962 .952    2.91  1.58  1.17  1.12  .76   .68   .25   .08
#   mixture   .795 .857 .894 .911 .920 .913 .941 .937    7.10  1.92  1.24  1.14  .77   .71   .26   .08
#
# Numeric inputs of the 72 sets of bench/sets.R, n random rows, at most 100 others predicted. From 16 rows on `none`
# already has n / (n - p), so that the gain is that of (t / z)^2. "better" and "worse" count the sets whose NLPD changed
# by more than .01.
#
#             8 rows                    12 rows                   16 rows                   24 rows (58 sets)
#             cover NLPD better worse   cover NLPD better worse   cover NLPD better worse   cover NLPD better worse
#   none      .833  1.99                .821  1.90                .909  1.55                .923  .965
#   df        .906  1.56   45    23     .883  1.53   52    15
#   t         .932  1.46   41    29     .908  1.44   49    22     .923  1.49   30    32     .933  .949   25    24
#
# So `t` is in the package below 50 rows; (t / z)^2 is at most 1.051 from there on (learn_stage()).
suppressPackageStartupMessages(library(pfdtc))
options(pfdtc.threads = 1L)
arguments <- commandArgs(TRUE)
draws <- if (length(arguments)) as.integer(arguments) else 12L

make <- function(d, low, noise, f) {
  function(n) {
    x <- matrix(if (low) runif(n * d) else rnorm(n * d), n)
    data.frame(y = f(x) + noise * rnorm(n), x)
  }
}
functions <- list(
  wave = make(1, TRUE, 0.3, function(x) sin(6 * x[, 1])),
  line = make(1, TRUE, 0.5, function(x) 2 * x[, 1]),
  three = make(3, FALSE, 0.3, function(x) x[, 1] + sin(2 * x[, 2])),
  noise = make(1, TRUE, 1, function(x) 0 * x[, 1]),
  exact = make(1, TRUE, 0, function(x) exp(-2 * x[, 1]) * cos(5 * x[, 1])),
  quadratic = make(2, TRUE, 0.1, function(x) x[, 1] * x[, 2] + x[, 1]^2))

cases <- expand.grid(n = c(3, 4, 5, 6, 8, 10, 12, 14), f = names(functions), seed = seq_len(draws))
scores <- t(vapply(seq_len(nrow(cases)), function(i) {
  n <- cases$n[i]
  set.seed(1000 * cases$seed[i] + n)
  d <- functions[[as.character(cases$f[i])]](n + 50)
  train <- d[seq_len(n), ]
  test <- d[-seq_len(n), ]
  fit <- suppressWarnings(suppressMessages(pfdtc(y ~ ., train, control = list(progress = FALSE))))
  p <- predict(fit, test, se.fit = TRUE, type = "response")
  c(nlpd = -mean(dnorm(test$y, p$fit, p$se.fit, log = TRUE)) - log(sd(train$y)),
    cover = mean(abs(test$y - p$fit) < qnorm(0.975) * p$se.fit))
}, numeric(2)))
print(aggregate(scores, cases["n"], mean), digits = 3)
print(aggregate(scores, cases["f"], mean), digits = 3)
