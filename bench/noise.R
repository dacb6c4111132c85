# How much do uneven noise and a transformed response gain? Prints held-out NLPD of the response (in its sds), the
# paired difference from the default with its standard error, RMSE / sd, and coverage of 50 and 95 % intervals. Lines
# with "(1000 rows)" and the line of hetGP, which only split 301 has, learn from 1,000 of the rows; their difference is
# not computed and printed as 0.
#   PFDTC_DATA=<folder> Rscript bench/noise.R [set ...] > bench/results/noise.csv
# For each seed a random fifth of the rows (at most 2,000) is held out; models learn from at most 6,000 of the others.
# bench/race.md uses other seeds.
suppressMessages(library(pfdtc))
control <- pfdtc_control(threads = 1, progress = FALSE)
sets <- if (length(commandArgs(TRUE))) commandArgs(TRUE) else c("airfoil", "delays10k", "protein")
cat("set,split,rows,model,nlpd,difference,se,rmse,cover50,cover95,seconds\n")
processor <- function() sum(proc.time()[1:2])
told <- function(set, split, n, model, density, mean, low, high, y, sd, seconds, default = NULL) {
  nlpd <- -density + -log(sd)
  d <- if (is.null(default)) 0 * nlpd else nlpd - default
  inside <- function(i) mean(low[, i] < y & y < high[, i])
  cat(sprintf("%s,%d,%d,%s,%.4f,%.4f,%.4f,%.4f,%.3f,%.3f,%.1f\n", set, split, n, model, mean(nlpd), mean(d),
              stats::sd(d) / sqrt(length(d)), sqrt(mean((y - mean)^2)) / stats::sd(y), inside(1L), inside(2L), seconds))
  invisible(nlpd)
}
ours <- function(set, split, train, test, model, default = NULL, ...) {
  set.seed(1)
  began <- processor()
  fit <- suppressWarnings(pfdtc(y ~ ., train, control = control, ...))
  seconds <- processor() - began
  band <- lapply(c(0.5, 0.95), function(level) {
    predict(fit, test, interval = "prediction", level = level, type = "response")
  })
  told(set, split, nrow(train), model, predict(fit, test, type = "density"), band[[1L]][, "fit"],
       sapply(band, function(b) b[, "lwr"]), sapply(band, function(b) b[, "upr"]), test$y, stats::sd(train$y), seconds,
       default)
}
peer <- function(set, split, train, test) {
  if (!requireNamespace("hetGP", quietly = TRUE)) return(invisible())
  x <- as.matrix(train[names(train) != "y"])
  scaled <- function(v) scale(as.matrix(v[names(v) != "y"]), colMeans(x), apply(x, 2L, stats::sd))
  began <- processor()
  utils::capture.output( # hides what hetGP prints
    fit <- hetGP::mleHetGP(scaled(train), (train$y - mean(train$y)) / stats::sd(train$y), covtype = "Matern3_2",
                           settings = list(checkHom = FALSE), maxit = 50))
  seconds <- processor() - began
  p <- stats::predict(fit, scaled(test))
  at <- mean(train$y) + stats::sd(train$y) * p$mean
  sd <- stats::sd(train$y) * sqrt(p$sd2 + p$nugs)
  half <- outer(sd, stats::qnorm(c(0.75, 0.975)))
  told(set, split, nrow(train), "hetGP", stats::dnorm(test$y, at, sd, log = TRUE), at, at - half, at + half, test$y,
       stats::sd(train$y), seconds)
}
for (set in sets) for (split in c(301, 302)) {
  data <- load_dataset(set)
  set.seed(split)
  held <- sample(nrow(data), min(2000, round(nrow(data) / 5)))
  rows <- setdiff(seq_len(nrow(data)), held)
  if (length(rows) > 6000L) rows <- sample(rows, 6000L)
  train <- data[rows, ]
  test <- data[held, ]
  default <- ours(set, split, train, test, "default")
  ours(set, split, train, test, "noise = ~ .", default, noise = ~ .)
  ours(set, split, train, test, "yeojohnson", default, transform = "yeojohnson", noise = ~ 1)
  ours(set, split, train, test, "both", default, noise = ~ ., transform = "yeojohnson")
  few <- train[sample(nrow(train), min(1000L, nrow(train))), ]
  ours(set, split, few, test, "default (1000 rows)")
  ours(set, split, few, test, "both (1000 rows)", noise = ~ ., transform = "yeojohnson")
  if (split == 301) try(peer(set, split, few, test), silent = TRUE)
}
