# What does each second of a default fit gain?
#   PFDTC_DATA=<folder> Rscript bench/stages.R [SEED] > bench/results/stages.csv
# A fifth of the rows (at most 2,000) are held out. The table has, after each stage of learning, processor seconds so
# far and the mean negative log density of the held-out rows (response in training sds) for the posterior that pfdtc()
# then computes. For the last stage it also has those of inducing points alone, for comparison with neighbours.
library(pfdtc)
inside <- asNamespace("pfdtc")
seed <- as.integer(c(commandArgs(TRUE), 101)[1])
control <- pfdtc_control(threads = 1, progress = FALSE)
cpu <- function() sum(proc.time()[1:2])

nlpd <- function(train, test, natural, ...) {
  fit <- pfdtc(train$x, train$y, kernel = natural$kernel, noise = natural$noise, hyper = "fixed", center = FALSE,
               scale = FALSE, control = control, ...)
  p <- predict(fit, test$x, se.fit = TRUE, type = "response")
  -mean(dnorm(test$y, p$fit, p$se.fit, log = TRUE))
}

stages_of <- function(train) {
  data <- inside$data_from_matrix(train$x, train$y, center = FALSE, scale = FALSE)
  s <- inside$first_plan(data, list(method = "pfdtc", hyper = "evidence", mean = ~ 1, control = control,
                                        keep_data = TRUE))$learn
  started <- cpu()
  out <- list()
  keep <- function(stage, problem, theta) {
    force(theta)
    out[[length(out) + 1L]] <<- list(stage = stage, seconds = cpu() - started, natural = problem$natural(theta))
  }
  pool <- inside$learning_rows(data, s)
  problem <- inside$learning_problem(pool, s, "matern32")
  keep("as it starts", problem, problem$unit + log(inside$start_values_of(problem, 1, 0.1)))
  found <- inside$run_starts(problem, NULL)
  keep("starts", problem, found$thetas[[1L]])
  theta <- inside$finish_starts(problem, found$thetas)[[1L]]$theta
  keep("best of them, on more rows", problem, theta)
  best <- inside$choose(inside$candidates(pool, s, theta), inside$judge_by_rows)$best
  keep("kernel", best$problem, best$theta)
  result <- inside$climb(best$problem, best$theta, "whole", c(8L, 6L, 6L))
  keep("all rows that count", best$problem, result$theta)
  if (pool$few) {
    keep("exact evidence", best$problem, inside$learn_exactly(best$problem, result)$theta)
  }
  out
}

rows <- list()
for (name in c("airfoil", "abalone", "ccpp", "delays10k", "protein")) {
  data <- load_dataset(name)
  set.seed(seed)
  held <- sample(nrow(data), min(2000, round(nrow(data) / 5)))
  scaled <- function(v) (v - mean(v[-held])) / sd(v[-held])
  data[] <- lapply(data, scaled)
  x <- as.matrix(data[names(data) != "y"])
  train <- list(x = x[-held, ], y = data$y[-held])
  test <- list(x = x[held, ], y = data$y[held])
  set.seed(seed + 1)
  for (one in stages_of(train)) {
    rows[[length(rows) + 1L]] <- data.frame(
      data = name, stage = one$stage, kernel = one$natural$kernel$label, seconds = round(one$seconds, 2),
      nlpd = round(nlpd(train, test, one$natural), 4))
  }
  rows[[length(rows) + 1L]] <- data.frame(
    data = name, stage = "without near rows", kernel = one$natural$kernel$label, seconds = round(one$seconds, 2),
    nlpd = round(nlpd(train, test, one$natural, m = 200), 4))
}
write.csv(do.call(rbind, rows), stdout(), row.names = FALSE)
