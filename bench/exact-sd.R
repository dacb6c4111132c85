# Compares standard deviations of many new rows from an exact posterior, and from inducing points with neighbours with
# the same hyperparameters (`like = fit`): processor seconds of a million predictions on one thread, extrapolated, and
# the ratio of the two sds.
#   Rscript bench/exact-sd.R [ROWS = 5000] [CELLS = 2000]
#
# Results, 5,000 rows and 1,000 cells. Seconds of a million cells; 1 %, median and 99 % of sd over exact sd; root mean
# square of (mean - exact mean) / exact sd. The machine was busy: seconds may be a tenth too many.
#
#               exact   50 points, 40 neighbours       200, 40                        200, 100
#   map_rough   1383 s  20 s 1.000 1.001 1.002  .017   40 s 1.000 1.000 1.001  .014   112 s 1.000 1.000 1.000  .003
#   map         1042 s  18 s 1.001 1.012 1.029  .105   35 s 1.000 1.005 1.015  .077   113 s 1.000 1.000 1.000  .014
#   six         1141 s  25 s 1.094 1.234 1.383 1.270   41 s 1.055 1.136 1.236  .453   133 s 1.026 1.079 1.157  .346
#   six_smooth  1049 s  24 s 1.758 2.753 3.979 12.67   39 s 1.388 1.765 2.287 2.673   131 s 1.260 1.512 1.918 1.908
#
# So inducing points with neighbours are a cheap method for maps, with bounds by certify(), but not for six inputs.
library(pfdtc)
arguments <- c("5000", "2000")
arguments[seq_along(commandArgs(TRUE))] <- commandArgs(TRUE)
n <- as.integer(arguments[1])
cells <- as.integer(arguments[2])
control <- pfdtc_control(threads = 1, progress = FALSE)
cases <- list( # inputs, kernel, noise sd
  map_rough = list(2, kernel_matern(1 / 2, 0.3, 1), 0.3), map = list(2, kernel_matern(3 / 2, 0.2, 1), 0.1),
  six = list(6, kernel_matern(5 / 2, 1, 1), 0.1), six_smooth = list(6, kernel_se(1, 1), 0.01))
ways <- list("50 / 40" = c(50, 40), "200 / 40" = c(200, 40), "200 / 100" = c(200, 100), "800 / 100" = c(800, 100))
for (name in names(cases)) {
  case <- cases[[name]]
  set.seed(1)
  x <- matrix(runif(n * case[[1]]), n)
  new <- matrix(runif(cells * case[[1]]), cells)
  y <- rowSums(sin(3 * x)) + rnorm(n, sd = case[[3]])
  exact <- gp_exact(x, y, kernel = case[[2]], noise = case[[3]]^2, hyper = "fixed", control = control)
  predict(exact, new[1:2, ], se.fit = TRUE) # computes the Cholesky factor
  spent <- function(code) sum(system.time(code)[1:2])
  seconds <- spent(truth <- predict(exact, new, se.fit = TRUE)) * 1e6 / cells
  cat(sprintf("%-10s exact      %6.0f s\n", name, seconds))
  for (way in names(ways)) {
    set.seed(1)
    made <- spent(fit <- pfdtc(x, y, like = exact, m = ways[[way]][1], neighbours = ways[[way]][2], control = control))
    seconds <- spent(p <- predict(fit, new, se.fit = TRUE)) * 1e6 / cells
    ratio <- quantile(p$se.fit / truth$se.fit, c(0.01, 0.5, 0.99))
    cat(sprintf("%-10s %-10s %6.0f s + %.1f s, sd over exact sd %.3f %.3f %.3f, means off by %.3f sds\n", name, way,
                seconds, made, ratio[1], ratio[2], ratio[3], sqrt(mean(((p$fit - truth$fit) / truth$se.fit)^2))))
  }
}
