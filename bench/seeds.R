# How much do predictions of default fits depend on the seed, and what is the coverage of their 95 % intervals?
#   PFDTC_DATA=<folder> Rscript bench/seeds.R [SET ...] > bench/results/seeds.csv
# Two seeds hold out a fifth of the rows each (at most 2,000), with five fits by other seeds; bench/race.md has other
# seeds. A row has the kernel that a fit chose, NLPD and RMSE (in sds of the response), coverage and seconds.
suppressMessages(library(pfdtc))
sets <- commandArgs(TRUE)
if (!length(sets)) sets <- c("airfoil", "abalone", "wine", "ccpp", "delays10k", "protein")
cat("data,split,seed,kernel,nlpd,rmse,cover95,seconds\n")
for (name in sets) for (split in c(101, 102)) {
  data <- load_dataset(name)
  set.seed(split)
  held <- sample(nrow(data), min(2000, round(nrow(data) / 5)))
  unit <- stats::sd(data$y[-held])
  for (seed in 1:5) {
    set.seed(seed)
    used <- system.time(fit <- pfdtc(y ~ ., data[-held, ], control = pfdtc_control(threads = 1, progress = FALSE)))
    p <- predict(fit, data[held, ], se.fit = TRUE, type = "response")
    z <- (data$y[held] - p$fit) / p$se.fit
    kernel <- fit$kernels$kernel[fit$kernels$chosen]
    cat(sprintf("%s,%d,%d,%s,%.4f,%.4f,%.4f,%.1f\n", name, split, seed, kernel,
                mean(z^2 / 2 + log(sqrt(2 * pi) * p$se.fit / unit)), sqrt(mean((data$y[held] - p$fit)^2)) / unit,
                mean(abs(z) < stats::qnorm(0.975)), sum(used[1:2])))
  }
}
