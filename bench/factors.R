# Compares one lengthscale for all levels of a factor, one for each level, and the better by leave-one-out (the default
# up to `most_lengthscales` levels). Held-out log loss of sets with factors from nlme and R, half of the rows held out.
#   Rscript bench/factors.R
#   Rscript bench/factors.R evaluations    seconds of an evaluation by 0/1 columns and by level numbers
#   Rscript bench/factors.R fits           processor seconds and held-out log loss of whole default fits
library(pfdtc)
inside <- asNamespace("pfdtc")

# Prints the seconds that the exact and the Vecchia likelihood take, with slopes, for n rows, numeric inputs and
# factors with one lengthscale each.
seconds_of_evaluations <- function(numeric, factors, levels, n = 1000L) {
  set.seed(1)
  x <- do.call(cbind, c(list(matrix(runif(n * numeric), n)),
                        lapply(seq_len(factors), function(j) outer(sample(levels, n, TRUE), 1:levels, "==") + 0)))
  groups <- c(seq_len(numeric), numeric + rep(seq_len(factors), each = levels))
  kernel <- inside$place_kernel(kernel_matern(5 / 2), x)
  kernel$shared <- inside$shared_by(groups)
  columns <- inside$set_values(inside$compile_kernel(kernel), rep(1, numeric + factors + 1))
  numbers <- inside$by_numbers_of_levels(columns, x)
  near <- inside$native_neighbours(columns, x, 30, rows = seq_len(n), rank = seq_len(n))
  y <- rnorm(n)
  time <- function(x, kernel) {
    model <- list(kernel = inside$set_values(kernel, rep(1, numeric + factors + 1)), noise = 0.1)
    data <- list(x = x, y = y)
    best <- function(f) min(vapply(1:3, function(i) system.time(f())[["user.self"]], 0))
    c(exact = best(function() inside$native_exact_evidence(data, model)),
      vecchia = best(function() inside$native_vecchia(data, model, seq_len(n), near)))
  }
  at <- rbind(columns = time(x, columns), numbers = time(numbers$rows(x), numbers$kernel))
  cat(sprintf("# %d columns: exact %.3f by columns, %.3f by numbers; neighbours %.3f, %.3f s\n", ncol(x), at[1, 1],
              at[2, 1], at[1, 2], at[2, 2]))
}
if ("evaluations" %in% commandArgs(TRUE)) {
  options(pfdtc.threads = 1L)
  seconds_of_evaluations(4L, 1L, 46L)
  seconds_of_evaluations(8L, 11L, 20L)
  quit("no")
}

# The cases are four numeric inputs and a factor of 46 levels, and eight and 11 factors of 20 levels (228 columns).
rows_with_factors <- function(n, numeric, factors, levels, seed = 1) {
  set.seed(seed)
  d <- as.data.frame(matrix(runif(n * numeric), n, dimnames = list(NULL, paste0("x", seq_len(numeric)))))
  for (j in seq_len(factors)) d[[paste0("g", j)]] <- factor(sample(levels, n, TRUE), seq_len(levels))
  f <- sin(5 * d$x1) + d$x2 * d$x3 + rnorm(levels, sd = 0.5)[d$g1]
  if (factors > 1L) f <- f + rnorm(levels, sd = 0.3)[d$g2]
  d$y <- f + rnorm(n, sd = 0.3)
  d
}
if ("fits" %in% commandArgs(TRUE)) {
  options(pfdtc.threads = 1L)
  invisible(suppressMessages(pfdtc(y ~ ., rows_with_factors(100L, 4L, 1L, 3L)))) # lets R compile its code first
  for (case in list(c(506, 4, 1, 46), c(951, 8, 11, 20))) {
    n <- case[1L]
    d <- rows_with_factors(2 * n, case[2L], case[3L], case[4L])
    time <- system.time(fit <- suppressWarnings(suppressMessages(pfdtc(y ~ ., d[seq_len(n), ]))))
    cat(sprintf("# %d rows, %d numeric inputs, %d factors of %d levels: %.1f s, held-out log loss %.4f\n", n, case[2L],
                case[3L], case[4L], sum(time[1:2]), -mean(predict(fit, d[-seq_len(n), ], type = "density"))))
  }
  quit("no")
}
options(pfdtc.transform = "plain")
sets <- list(
  Machines = list(score ~ Machine + Worker, as.data.frame(nlme::Machines)),
  ergoStool = list(effort ~ Type + Subject, as.data.frame(nlme::ergoStool)),
  warpbreaks = list(breaks ~ wool + tension, warpbreaks),
  ToothGrowth = list(len ~ supp + dose, ToothGrowth),
  CO2 = list(uptake ~ Plant + conc, as.data.frame(CO2)),
  ChickWeight = list(weight ~ Time + Diet, as.data.frame(ChickWeight)[seq(1, 578, 3), ]),
  Oats = list(yield ~ Block + Variety + nitro, as.data.frame(nlme::Oats)),
  npk = list(yield ~ block + N + P + K, npk))
rule <- function(most, chosen) {
  ns <- asNamespace("pfdtc")
  put <- function(name, value) {
    unlockBinding(name, ns)
    assign(name, value, ns)
  }
  put("most_lengthscales", c(factor = most[[1L]], all = most[[length(most)]]))
  put("choose_shared", if (chosen) original else function(now, s) list(now = now, s = s))
}
original <- getFromNamespace("choose_shared", "pfdtc")
most <- getFromNamespace("most_lengthscales", "pfdtc")
for (name in names(sets)) {
  d <- sets[[name]][[2L]]
  for (v in names(d)) if (is.factor(d[[v]])) d[[v]] <- factor(as.character(d[[v]]))
  loss <- vapply(list(each = list(Inf, FALSE), one = list(1, FALSE), chosen = list(most, TRUE)), function(r) {
    rule(r[[1L]], r[[2L]])
    mean(vapply(1:2, function(split) {
      set.seed(split)
      held <- sample(nrow(d), nrow(d) %/% 2)
      fit <- suppressWarnings(suppressMessages(try(pfdtc(sets[[name]][[1L]], d[-held, ], noise = ~1), silent = TRUE)))
      p <- try(predict(fit, d[held, ], type = "density"), silent = TRUE)
      if (is.numeric(p)) -mean(p) else NA_real_
    }, 0), na.rm = TRUE)
  }, 0)
  cat(sprintf("# %-12s each %.3f, one %.3f, chosen %.3f\n", name, loss[1L], loss[2L], loss[3L]))
}

# Machines     each 1.903, one 1.847, chosen 1.903
# ergoStool    each 1.724, one 1.718, chosen 1.724
# warpbreaks   each 4.005, one 4.041, chosen 4.020
# ToothGrowth  each 2.911, one 2.899, chosen 2.903
# CO2          each 2.802, one 2.807, chosen 2.802
# ChickWeight  each 5.116, one 5.116, chosen 5.116
# Oats         each 4.159, one 4.179, chosen 4.159
# npk          each 4.406, one 4.252, chosen 4.410
# With 60 levels of 6 or 7 rows (sin of x + levels) the fit of one lengthscale takes 3 s of a processor.
# Seconds of an evaluation with slopes, one thread (4 numeric inputs and a factor of 46 levels; 8 and 11 factors of 20):
# 50 columns: exact 0.067 by columns, 0.045 by numbers; neighbours 0.024, 0.006 s
# 228 columns: exact 0.143 by columns, 0.065 by numbers; neighbours 0.158, 0.020 s
# Whole default fits, processor seconds on a busy core, one thread (before: many terms and pairs of inputs were tried,
# and 20 levels had a lengthscale each):
# 506 rows, 4 numeric inputs, 1 factor of 46 levels: 1.2 s, held-out log loss 0.2665 (before the same)
# 951 rows, 8 numeric inputs, 11 factors of 20 levels: 8.3 s on a core shared by eight, where the case above takes
# 2.6 s, 0.2852 (before columns that share a lengthscale counted as one input in may_lack_noise(): 33 s in the same
# hour, 0.2852; at first 75 s where the case above takes 1.2 s, 0.2878)
# AppliedPredictiveModeling's solubility, 208 0/1 columns and 20 others, 350 of its rows: 11.1 s, 1.954 (before, without
# additive terms, 29.3 s, 1.983); all 951 rows: 24.9 s, 0.7475 (with the information of all rows 41.8 s, 0.7471)
# More than 40 levels together, half of the rows held out, two splits: one lengthscale a factor | one a level
# imports85 (65 columns): 8.713, 8.683 in 1.2 s | 8.769, 8.799 in 1.5 s
# attrition (47 columns, 500 rows, MonthlyIncome): 8.727, 8.728 in 1.6 s | 8.729, 8.826 in 3.1 s
