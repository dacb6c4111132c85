# What composed kernels gain on series: forecasts of the last fifth, beside the default kernel and arima().
#   Rscript bench/kernels.R [file = bench/results/kernels.csv]
suppressMessages(library(pfdtc))
file <- c(commandArgs(TRUE), "bench/results/kernels.csv")[1L]
score <- function(set, model, p, y) {
  data.frame(set, model, rmse = signif(sqrt(mean((y - p$fit)^2)), 3),
             nlpd = signif(-mean(stats::dnorm(y, p$fit, p$se.fit, log = TRUE)), 4),
             coverage = signif(mean(abs(y - p$fit) < stats::qnorm(0.975) * p$se.fit), 3))
}
season <- function() kernel_periodic(period = 1) * kernel_matern(3 / 2)
kernels <- list(default = NULL, "se + periodic * matern32 + matern12" = kernel_se() + season() + kernel_matern(1 / 2),
                "linear + se + periodic * matern32 + matern12" =
                  kernel_linear() + kernel_se() + season() + kernel_matern(1 / 2))
one <- function(set, series, from) {
  d <- data.frame(t = as.numeric(stats::time(series)), y = as.numeric(series))
  d$t <- d$t - d$t[1L] # straight lines are about 0
  train <- seq_along(d$t) <= from
  rows <- lapply(names(kernels), function(name) {
    set.seed(1)
    fit <- pfdtc(y ~ t, d[train, ], kernel = kernels[[name]])
    cbind(score(set, name, predict(fit, d[!train, ], se.fit = TRUE, type = "response"), d$y[!train]),
          log_evidence = signif(as.numeric(stats::logLik(fit)), 4))
  })
  first <- stats::ts(d$y[train], frequency = 12)
  a <- stats::predict(stats::arima(first, c(1, 1, 1), seasonal = c(0, 1, 1)), sum(!train))
  rbind(do.call(rbind, rows),
        cbind(score(set, "arima(1,1,1)(0,1,1)", list(fit = as.numeric(a$pred), se.fit = as.numeric(a$se)), d$y[!train]),
              log_evidence = NA))
}
table <- rbind(one("co2", datasets::co2, 372L), one("nottem", datasets::nottem, 192L),
               one("log AirPassengers", log(datasets::AirPassengers), 115L))
utils::write.csv(table, file, row.names = FALSE)
print(table, row.names = FALSE)
