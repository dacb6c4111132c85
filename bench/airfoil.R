# Compares pF-DTC (with the package's auxiliary distribution and start) and VFE from greedy points by their error
# against the exact GP on airfoil. Both have the hyperparameters of a pilot (squared exponential kernel) and the same
# number of iterations. There are five random splits with 1,103 training rows, standardised, each with its own pilot.
#   PFDTC_DATA=<folder> Rscript bench/airfoil.R [splits] [m]       prints a table
library(pfdtc)
args <- as.integer(commandArgs(TRUE))
splits <- if (length(args) > 0) args[1] else 5L
m <- if (length(args) > 1) args[2] else 200L
data <- read.csv(file.path(Sys.getenv("PFDTC_DATA"), "airfoil.csv"))

rms <- function(e) sqrt(mean(e^2))
one_split <- function(seed) {
  set.seed(seed)
  train <- sample.int(nrow(data), 1103)
  test <- sample(setdiff(seq_len(nrow(data)), train), 400)
  centre <- colMeans(data[train, ])
  spread <- apply(data[train, ], 2, sd)
  z <- scale(as.matrix(data), centre, spread)
  train <- as.data.frame(z[train, ])
  test <- as.data.frame(z[test, ])
  fit <- pfdtc(y ~ ., train, m = m, hyper = "pilot", kernel = kernel_se())
  same <- list(kernel = fit$kernel, noise = fit$noise, hyper = "fixed")
  exact <- do.call(gp_exact, c(list(y ~ ., quote(train)), same))
  vfe <- do.call(gp_vfe, c(list(y ~ ., quote(train), m = m), same))
  table <- compare_fits(list(pfdtc = fit, vfe = vfe), exact, test, pf = FALSE)
  data.frame(split = seed, mean_pf = table$rmse_mean[1], mean_vfe = table$rmse_mean[2], sd_pf = table$rmse_sd[1],
             sd_vfe = table$rmse_sd[2], evaluations_pf = fit$evaluations[["objective"]],
             evaluations_vfe = vfe$evaluations[["objective"]], seconds_pf = fit$seconds[["points"]],
             seconds_vfe = vfe$seconds[["points"]])
}
results <- do.call(rbind, lapply(seq_len(splits), one_split))
results$ratio_mean <- results$mean_pf / results$mean_vfe
results$ratio_sd <- results$sd_pf / results$sd_vfe
print(results, digits = 3)
cat(sprintf("median ratio to VFE: mean %.2f, sd %.2f\n", median(results$ratio_mean), median(results$ratio_sd)))
