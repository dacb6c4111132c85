# What copies of rows do: bootstrap samples of MASS::Boston, NLPD and coverage at rows that were not drawn, and
# the noise as a share of the variance, as the fit is and with each (x, y) once:
#   Rscript bench/copies.R > bench/results/copies.csv
suppressPackageStartupMessages(library(pfdtc))
control <- pfdtc_control(threads = 1, progress = FALSE)
rows <- lapply(1:5, function(seed) {
  set.seed(seed)
  i <- sample(506, 150)
  drawn <- MASS::Boston[sample(i, replace = TRUE), ]
  held <- MASS::Boston[-i, ]
  measure <- function(train, how) {
    fit <- suppressMessages(pfdtc(medv ~ ., train, control = control))
    p <- predict(fit, held, interval = "prediction")
    data.frame(seed = seed, rows = how, nlpd = -mean(predict(fit, held, type = "density")),
               coverage = mean(held$medv >= p[, 2] & held$medv <= p[, 3]), noise = fit$noise / var(train$medv))
  }
  rbind(measure(drawn, "with copies"), measure(unique(drawn), "each once"))
})
write.csv(format(do.call(rbind, rows), digits = 3), stdout(), row.names = FALSE, quote = FALSE)
