# How much do neighbours gain for classes? The responses are winds of the jason3 satellite (package GpGp) above their
# median or not, 8,000 rows to learn from and 4,000 to score, with a Matern 3/2 kernel as learned at points alone, the
# same with shortened lengthscales, and the default fit.
#
#   Rscript bench/laplace-near.R
#
# Prints the held-out log density, accuracy and processor seconds of the posterior and the predictions.
suppressMessages(library(pfdtc))
options(pfdtc.threads = 1L)
e <- new.env()
utils::data("jason3", package = "GpGp", envir = e)
winds <- with(e$jason3, data.frame(lon, lat, hour = time / 3600, windy = windspeed > stats::median(windspeed)))
set.seed(1)
rows <- sample(nrow(winds), 12000)
train <- winds[rows[1:8000], ]
test <- winds[rows[8001:12000], ]
learned <- pfdtc(windy ~ ., train, family = binomial(), kernel = kernel_matern(3 / 2), neighbours = 0)$kernel
score <- function(of, ...) {
  time <- system.time({
    fit <- pfdtc(windy ~ ., train, family = binomial(), ...)
    p <- predict(fit, test, type = "response")
  })
  cat(sprintf("%s: NLPD %.4f, accuracy %.4f, %.1f s\n", of, -mean(log(ifelse(test$windy, p, 1 - p))),
              mean((p > 0.5) == test$windy), time[["user.self"]] + time[["sys.self"]]))
}
for (shorter in c(1, 2, 4)) {
  kernel <- learned
  kernel$lengthscale <- learned$lengthscale / shorter
  for (what in list(c(200, 0), c(400, 0), c(800, 0), c(1600, 0), c(200, 40))) {
    score(sprintf("lengthscales / %g, %4g points, %2g near rows", shorter, what[1L], what[2L]), kernel = kernel,
          hyper = "fixed", m = what[1L], neighbours = what[2L])
  }
}
score("points alone, as they come", neighbours = 0)
score("as it comes")
