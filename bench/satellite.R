# The competition of Heaton et al. (2019), "A Case Study Competition Among Methods for Analyzing Large Spatial Data",
# JABES 24, 398-425: 105,569 cells of land surface temperature to learn from, 42,740 held out under clouds.
# Prints MAE, RMSE, CRPS, interval score (of 95 % intervals) and coverage at the cells held out, and seconds.
#   PFDTC_DATA=folder Rscript bench/satellite.R [ARGUMENTS OF pfdtc(), such as "m = 200, neighbours = 100"]
#
# RMSE and interval score, with the default's 100 neighbours for grids with holes (hole_neighbours in R/tuning.R):
#   default (Yeo-Johnson, smooth noise, heavy tails)    1.71  7.65   (40 neighbours: 1.76 7.81)
#   transform = "yeojohnson"                            1.72  7.53
#   transform = "none"                                  1.58  6.88   (40 neighbours: 1.67 7.14)
# SPDE has 1.53 and 8.85, NNGP 1.64 and 7.57 in the paper.

library(pfdtc)
cells <- utils::read.csv(gzfile(file.path(Sys.getenv("PFDTC_DATA"), "satellite.csv.gz")))
train <- cells[cells$held == 0, ]
test <- cells[cells$held == 1, ]
more <- eval(parse(text = sprintf("list(%s)", paste(commandArgs(trailingOnly = TRUE), collapse = ", "))))

set.seed(1)
seconds <- c(
  fit = system.time(fit <- do.call(pfdtc, c(list(y ~ lon + lat, train), more)))[["elapsed"]],
  predict = system.time(p <- predict(fit, test, se.fit = TRUE, type = "response"))[["elapsed"]])

# For a normal distribution with mean m and standard deviation s.
crps <- function(y, m, s) {
  z <- (y - m) / s
  mean(s * (z * (2 * stats::pnorm(z) - 1) + 2 * stats::dnorm(z) - 1 / sqrt(pi)))
}
interval_score <- function(y, lower, upper, alpha = 0.05) {
  mean(upper - lower + 2 / alpha * (pmax(lower - y, 0) + pmax(y - upper, 0)))
}
z <- stats::qnorm(0.975)
lower <- p$fit - z * p$se.fit
upper <- p$fit + z * p$se.fit
score <- c(MAE = mean(abs(test$y - p$fit)), RMSE = sqrt(mean((test$y - p$fit)^2)), CRPS = crps(test$y, p$fit, p$se.fit),
           `interval score` = interval_score(test$y, lower, upper), coverage = mean(test$y >= lower & test$y <= upper))
print(signif(c(score, seconds), 4))
