# Would an average of several models predict better than the one that a default fit of few rows chooses? Fits the
# default, the default without transform and with constant noise ("plain"), and a linear kernel to 35, 60 or 100 rows
# (at most three quarters) of each set. Averages of their densities are scored at up to 300 other rows, by NLPD in
# training sds.
#   SETS_FOLDER=bench:bench/further:bench/zeros Rscript bench/average-of-fits.R
# 28 November 2026, an earlier form of this script with other draws of rows, 192 cases of these sets. Change of NLPD
# from the default (clipped at .5), and numbers of cases better and worse by .02:
#   half default, half plain     +.022   30   78        a fifth plain               -.002   28   38
#   half default, half linear    +.073   42  109        a fifth linear              +.003   44   70
#   a third of each              +.045   46  103        best of three (hindsight)   -.024   42    0
# 362 cases with data frames of 12 other packages gave the same. So no average was built.
source("bench/sets.R")
suppressMessages(library(pfdtc))
options(warn = -1)
settings <- list(default = list(), plain = list(transform = "none", noise = ~1),
                 linear = list(kernel = kernel_linear()))
weights <- list("default + plain" = c(1, 1, 0) / 2, "default + linear" = c(1, 0, 1) / 2, "all three" = c(1, 1, 1) / 3,
                "default + .2 plain" = c(.8, .2, 0), "default + .2 linear" = c(.8, 0, .2))

# Returns the log densities of the held-out rows, a column for each fit, or nothing if a fit is impossible.
densities <- function(data, seed) {
  set.seed(seed)
  rows <- sample(nrow(data))
  n <- min(ceiling(0.75 * nrow(data)), sample(c(35, 60, 100), 1))
  train <- droplevels(data[rows[seq_len(n)], , drop = FALSE])
  test <- data[utils::head(rows[-seq_len(n)], 300), , drop = FALSE]
  train <- train[vapply(train, function(v) length(unique(v)) > 1, NA)]
  test <- test[names(train)]
  for (j in names(train)) if (is.factor(train[[j]])) {
    test <- test[test[[j]] %in% train[[j]], , drop = FALSE]
    test[[j]] <- factor(test[[j]], levels(train[[j]]))
  }
  if (!is.numeric(train[[1]]) || ncol(train) < 2 || ncol(train) > 26 || nrow(test) < 8) return(NULL)
  formula <- stats::reformulate(".", as.name(names(train)[1]))
  fits <- lapply(settings, function(s) suppressMessages(do.call(pfdtc, c(list(formula, train), s))))
  unit <- stats::sd(train[[1]])
  vapply(fits, function(fit) as.numeric(predict(fit, test, type = "density")) + log(unit), numeric(nrow(test)))
}

changes <- NULL
for (name in sets()) for (seed in 1:2) {
  l <- tryCatch(densities(one_set(name)$data, seed), error = function(e) NULL)
  if (is.null(l) || !all(is.finite(l))) next
  most <- apply(l, 1, max)
  averages <- vapply(weights, function(w) -mean(most + log(exp(l - most) %*% w)), 0)
  changes <- rbind(changes, c(averages, best = min(-colMeans(l))) + mean(l[, "default"]))
}
clipped <- pmin(pmax(changes, -0.5), 0.5)
for (j in colnames(changes)) {
  cat(sprintf("%-20s change of NLPD, clipped at .5: %+.4f; better by .02 on %d, worse on %d of %d\n", j,
              mean(clipped[, j]), sum(changes[, j] < -0.02), sum(changes[, j] > 0.02), nrow(changes)))
}
