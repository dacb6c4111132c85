# Compares the accuracy on Pima with glm() and mgcv over splits that share their 532 rows. Differences have standard
# errors over the splits and over the rows. For the latter each row's differences are summed over the splits that hold
# it out, because a difference should be valid for other rows.
#
#   Rscript bench/laplace-accuracy.R [splits] > bench/results/laplace-accuracy.txt
#
# The splits are those of bench/laplace-table.R.
suppressMessages(library(pfdtc))
options(pfdtc.threads = 1L)
splits <- as.integer(c(commandArgs(TRUE), 25)[1L])
data <- rbind(MASS::Pima.tr, MASS::Pima.te)
smooth <- stats::reformulate(sprintf("s(%s, k = 5)", names(data)[1:7]), "type")

right <- do.call(rbind, lapply(seq_len(splits), function(split) {
  set.seed(split)
  at <- sample(nrow(data), 266)
  train <- data[at, ]
  test <- data[-at, ]
  set.seed(split)
  fits <- list(pfdtc = suppressMessages(pfdtc(type ~ ., train, family = binomial())),
               glm = glm(type ~ ., binomial(), train),
               mgcv = suppressWarnings(mgcv::gam(smooth, binomial(), train, method = "REML")))
  data.frame(split, row = setdiff(seq_len(nrow(data)), at), lapply(fits, function(fit) {
    (as.numeric(predict(fit, test, type = "response")) > 0.5) == (test$type == "Yes")
  }))
}))

for (used in unique(pmin(c(5L, splits), splits))) for (peer in c("glm", "mgcv")) {
  some <- right[right$split <= used, ]
  apart <- some[[peer]] - some$pfdtc
  of_split <- tapply(apart, some$split, mean)
  of_row <- tapply(apart, some$row, sum)
  cat(sprintf(paste("%d splits: %s right of %.4f more, se %.4f over the splits, %.4f over the rows",
                    "(%d right alone, %d wrong alone)\n"), used, peer, mean(apart),
              stats::sd(of_split) / sqrt(used), sqrt(sum((of_row - mean(of_row))^2)) / nrow(some), sum(apart > 0),
              sum(apart < 0)))
}
