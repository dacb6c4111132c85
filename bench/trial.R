# Up to which residual prior variance is a comparison of inducing points with neighbours on held-out rows worth its time
# (R/fit-points.R, `unexplained_rule` in R/tuning.R)? Prints the result of the comparison without a limit.
#   PFDTC_DATA=<folder> Rscript bench/trial.R > bench/results/trial.csv
# Smooth and rough functions, and splits that the race does not use. `gain` of points alone in log density at rows held
# out of the fit, with its standard error; NLPD (in sds of the response) and seconds of the resulting fit.
suppressMessages(library(pfdtc))
utils::assignInNamespace("unexplained_rule", replace(pfdtc:::unexplained_rule, "trial", Inf), "pfdtc")

one <- function(name, data, held) {
  set.seed(1)
  used <- system.time(fit <- pfdtc(y ~ ., data[-held, ], control = pfdtc_control(threads = 1, progress = FALSE)))
  p <- predict(fit, data[held, ], se.fit = TRUE, type = "response")
  z <- (data$y[held] - p$fit) / p$se.fit
  trial <- if (is.null(fit$trial)) c(gain = NA, se = NA) else fit$trial
  cat(sprintf("%s,%s,%.3g,%.4f,%.4f,%s,%.4f,%.1f\n", name, fit$kernels$kernel[fit$kernels$chosen], fit$unexplained,
              trial[["gain"]], trial[["se"]], fit$posterior,
              mean(z^2 / 2 + log(sqrt(2 * pi) * p$se.fit / stats::sd(data$y[-held]))), sum(used[1:2])))
}
made <- function(name, n, d, f, sd) {
  set.seed(9)
  x <- matrix(stats::runif(d * (n + 2000)), n + 2000)
  one(name, data.frame(x, y = f(x) + sd * stats::rnorm(n + 2000)), n + 1:2000)
}
cat("problem,kernel,unexplained,gain,se,posterior,nlpd,seconds\n")
made("one wave of five inputs", 2500, 5, function(x) sin(6 * x[, 1]) + x[, 2]^2, 0.5)
made("one wave, more noise", 2500, 5, function(x) sin(6 * x[, 1]) + x[, 2]^2, 1)
made("waves", 2500, 3, function(x) sin(8 * x[, 1]) * cos(6 * x[, 2]), 1)
made("waves of five inputs", 2500, 5, function(x) sin(8 * x[, 1]) * cos(6 * x[, 2]), 1)
made("many waves", 5000, 2, function(x) sin(30 * x[, 1]) * cos(30 * x[, 2]), 0.5)
made("many waves and much noise", 20000, 2, function(x) sin(40 * x[, 1]) * cos(40 * x[, 2]), 1)
made("steps", 5000, 2, function(x) floor(4 * x[, 1]) + floor(4 * x[, 2]), 0.3)
made("eight inputs", 5000, 8, function(x) sin(12 * x[, 1]) * x[, 2] + 4 * sin(7 * x[, 3]) + x[, 4] * x[, 5], 0.1)
for (name in c("abalone", "wine", "ccpp", "delays10k")) {
  data <- load_dataset(name)
  set.seed(103)
  held <- sample(nrow(data), min(2000, round(nrow(data) / 5)))
  one(name, data, held)
}
