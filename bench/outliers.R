# Shows when the default finds another family because of outliers (vignette("defaults"), Outliers).
# Log-normal samples (log y = 1 + sin(2 x), noise sd .3, n = 120): scores of 400 new responses, means of five samples.
# NLPD of the default before, of Student's t for log y, of loglogistic(), and of the default without outliers: one
# response times 100 .44, .34, .33, .31; three .58, .37, .43, .31; eight random ones .59, .40, .51, .31.
# RMSE of the mean in sds: .66, .52, .51, .51; 1.39, .51, .51, .51; 1.02, .51, .52, .51. The default finds another
# family in 10 of 15 samples of 60 to 250 such responses or of three inputs, noise sd .3 or .7, one or three times 100.
# A rule that asks for a larger sum of log densities finds few of them, because the outliers have most of this sum.
#   Rscript bench/outliers.R          RMSE of f for a sine with outliers: the default, normal noise, and student(3)
#   Rscript bench/outliers.R samples  in how many of 40 samples with eight outliers Student's t noise is found
#   Rscript bench/outliers.R sets     data sets for which Student's t noise is tried, and scores of held-out rows
#   Rscript bench/outliers.R small    22 to 40 rows without outliers, 27 or 40 with one response times 10
# The sets are those of bench/sets.R. SETS_FOLDER=bench:bench/further has those of the vignette: sets of 50 to 300 rows.
suppressPackageStartupMessages(library(pfdtc))
options(pfdtc.threads = 1L)
quietly <- function(fit) suppressWarnings(suppressMessages(fit))

score_outliers <- function(value, count, n = 200) {
  set.seed(4)
  d <- data.frame(x = runif(n, -2, 2))
  set.seed(5)
  d$y <- sin(2 * d$x) + 0.1 * rnorm(n)
  wrong <- 16 + seq_len(count)
  d$y[wrong] <- value * (-1)^(wrong + 1)
  at <- data.frame(x = seq(-1.9, 1.9, 0.05))
  error <- function(...) {
    set.seed(2)
    fit <- quietly(pfdtc(y ~ x, d, kernel = kernel_se(), ...))
    c(sqrt(mean((predict(fit, at) - sin(2 * at$x))^2)), sum(fit$seconds), !is.null(fit$likelihood))
  }
  found <- error()
  data.frame(value, count, student = found[3], found = found[1], normal = error(noise = ~ 1)[1],
             given = error(family = student(3))[1], seconds = found[2])
}

# Returns c(found, by_density): whether Student's t noise is chosen, and whether the log density alone would choose it.
score_sample <- function(seed, n = 120) {
  set.seed(seed)
  d <- data.frame(x = runif(n, -2, 2))
  d$y <- sin(2 * d$x) + 0.2 * rnorm(n)
  wrong <- sample(n, 8)
  d$y[wrong] <- d$y[wrong] + sample(c(-1, 1), 8, TRUE) * runif(8, 1.5, 6)
  fit <- quietly(pfdtc(y ~ x, d, kernel = kernel_se()))
  found <- !is.null(fit$likelihood)
  c(found = found, by_density = found && diff(fit$response$merit) > 2 * fit$response$se[1])
}

score_set <- function(name) {
  s <- train_and_test(name)
  if (is.factor(s$train[[1]]) || nrow(s$train) < 50) return(NULL)
  set.seed(1)
  fit <- quietly(pfdtc(s$formula, s$train))
  if (is.na(fit$seconds["families"])) return(NULL)
  scores <- held_out_scores(fit, s$test, sd(s$train[[1]]))
  data.frame(name, n = nrow(s$train), student = !is.null(fit$likelihood), nlpd = scores[[1]], rmse = scores[[2]],
             cover95 = scores[[3]], share_of_seconds = fit$seconds[["families"]] / sum(fit$seconds))
}

# Returns NULL unless another family is found, else the RMSE of the mean at 200 new rows in sds of the mean (`found`),
# the share of them inside their 95 % intervals (`inside`), and both with normal noise of constant variance.
score_small <- function(i, wrong) {
  set.seed(i)
  n <- c(15, 18, 22, 27, 33, 40)[(i - 1) %% 6 + 1]
  p <- i %% 3 + 1
  f <- function(x) if (i %% 2) sin(1.5 * x[, 1]) + rowSums(x) / 3 else x[, 1]^2 / 2
  x <- matrix(runif(n * p, -2, 2), n)
  new <- matrix(runif(200 * p, -2, 2), 200)
  noise <- c("normal", "exponential", "t3", "log-normal")[(i %/% 6) %% 4 + 1]
  size <- c(0.1, 0.3)[i %% 2 + 1]
  e <- switch(noise, exponential = rexp(n) - 1, t3 = rt(n, 3) / sqrt(3), rnorm(n))
  logs <- noise == "log-normal"
  d <- data.frame(x = x, y = if (logs) exp(f(x) + size * e) else f(x) + size * e)
  if (n < 20 || wrong && i %% 2) return(NULL)
  if (wrong) d$y[k] <- 10 * d$y[k <- sample(n, 1)]
  fit <- function(...) {
    set.seed(3)
    quietly(pfdtc(y ~ ., d, ...))
  }
  found <- fit()
  if (is.null(found$likelihood)) return(NULL)
  mean <- if (logs) exp(f(new) + size^2 / 2) else f(new)
  scores <- function(fit) {
    at <- setNames(data.frame(new), names(d)[seq_len(p)])
    band <- quietly(predict(fit, at, type = "mean", interval = "credible"))
    c(sqrt(mean((band[, 1] - mean)^2)) / sd(mean), mean(band[, 2] <= mean & mean <= band[, 3]))
  }
  here <- scores(found)
  normal <- scores(fit(noise = ~ 1))
  data.frame(i, n, noise, family = found$likelihood$name, found = here[1], normal = normal[1], inside = here[2],
             inside_normal = normal[2])
}

if ("small" %in% commandArgs(TRUE)) {
  for (wrong in c(FALSE, TRUE)) print(do.call(rbind, lapply(1:240, score_small, wrong)), digits = 3)
} else if ("sets" %in% commandArgs(TRUE)) {
  source("bench/sets.R")
  print(do.call(rbind, lapply(sets(), score_set)), digits = 3)
} else if ("samples" %in% commandArgs(TRUE)) {
  print(rowSums(vapply(1:40, score_sample, numeric(2))))
} else {
  cases <- expand.grid(value = c(5, 40, 100, 1000, 1e5, 1e12), count = c(1, 10))
  print(do.call(rbind, Map(score_outliers, cases$value, cases$count)), digits = 3)
}
