# What do composed kernels gain on real data, compared with the best single kernel (pfdtc() by default) and with other
# common methods? Held-out RMSE, NLPD and coverage of 95 % intervals, and log evidence (comparable for equal rows only).
#   PFDTC_DATA=<folder> Rscript bench/kernels.R [set ...]       (results/kernels.csv: rows of a set are renewed)
# Sets are skipped if their package (mgcv, ggplot2, GpGp) or file is not available.
suppressMessages(library(pfdtc))
file <- "bench/results/kernels.csv"
score <- function(p, y) {
  data.frame(rmse = signif(sqrt(mean((y - p$fit)^2)), 3),
             nlpd = signif(-mean(stats::dnorm(y, p$fit, p$se.fit, log = TRUE)), 4),
             coverage = signif(mean(abs(y - p$fit) < stats::qnorm(0.975) * p$se.fit), 3))
}
ours <- function(set, label, formula, train, test, ..., uncertain = FALSE) {
  set.seed(1)
  began <- proc.time()[["elapsed"]]
  fit <- suppressWarnings(pfdtc(formula, train, ...))
  p <- predict(fit, test, se.fit = TRUE, type = "response", hyper_uncertainty = uncertain)
  if (uncertain) label <- paste(label, "(hyper_uncertainty)")
  cbind(set, model = label, score(p, test[[all.vars(formula)[1L]]]),
        log_evidence = signif(as.numeric(fit$evidence), 4), seconds = round(proc.time()[["elapsed"]] - began, 1))
}
other <- function(set, model, p, y, began) {
  cbind(set, model, score(p, y), log_evidence = NA, seconds = round(proc.time()[["elapsed"]] - began, 1))
}
# Returns scores of a Gaussian model with the variance of a new response.
of_gam <- function(set, model, fit, test, y, began) {
  p <- stats::predict(fit, test, se.fit = TRUE)
  sigma2 <- if (is.null(fit$sig2)) stats::sigma(fit)^2 else fit$sig2
  other(set, model, list(fit = p$fit, se.fit = sqrt(p$se.fit^2 + sigma2)), y, began)
}

# ---- series: the last fifth, or from 1990 on -------------------------------------------------------------------------

season <- function() kernel_periodic(period = 1) * kernel_matern(3 / 2)
series <- function(set, v, from) {
  d <- data.frame(t = as.numeric(stats::time(v)), y = as.numeric(v))
  d$t <- d$t - d$t[1L] # linear kernels are centred at 0
  train <- d[seq_len(from), ]
  test <- d[-seq_len(from), ]
  kernels <- list(
    default = NULL, "matern32 + periodic * matern32" = kernel_matern(3 / 2) + season(),
    "se + periodic * matern32 + matern12" = kernel_se() + season() + kernel_matern(1 / 2),
    "matern32 + periodic * matern32 + matern12" = kernel_matern(3 / 2) + season() + kernel_matern(1 / 2))
  began <- proc.time()[["elapsed"]]
  a <- stats::predict(stats::arima(stats::ts(train$y, frequency = 12), c(1, 1, 1), seasonal = c(0, 1, 1)), nrow(test))
  rbind(
    do.call(rbind, lapply(names(kernels), function(name) {
      ours(set, name, y ~ t, train, test, kernel = kernels[[name]])
    })),
    ours(set, names(kernels)[4L], y ~ t, train, test, kernel = kernels[[4L]], uncertain = TRUE),
    ours(set, paste("mean = ~ t,", names(kernels)[4L]), y ~ t, train, test, kernel = kernels[[4L]], mean = ~ t),
    other(set, "arima(1,1,1)(0,1,1)", list(fit = as.numeric(a$pred), se.fit = as.numeric(a$se)), test$y, began))
}

# ---- rows -----------------------------------------------------------------------------------------------------------

gam_sim <- function() {
  set.seed(1)
  d <- mgcv::gamSim(1, n = 1400, scale = 2, verbose = FALSE)[c("y", "x0", "x1", "x2", "x3")]
  train <- d[1:400, ]
  test <- d[-(1:400), ]
  began <- proc.time()[["elapsed"]]
  g <- mgcv::gam(y ~ s(x0) + s(x1) + s(x2) + s(x3), data = train, method = "REML")
  rbind(ours("gamSim 1", "default", y ~ ., train, test),
        ours("gamSim 1", "se(x0) + se(x1) + se(x2) + se(x3)", y ~ ., train, test,
             kernel = kernel_se(inputs = ~ x0) + kernel_se(inputs = ~ x1) + kernel_se(inputs = ~ x2) +
               kernel_se(inputs = ~ x3)),
        of_gam("gamSim 1", "mgcv::gam", g, test, test$y, began))
}

diamonds <- function() {
  all <- as.data.frame(ggplot2::diamonds)
  set.seed(1)
  d <- all[sample(nrow(all), 2500), ]
  d <- data.frame(price = log(d$price), carat = log(d$carat), d[c("cut", "color", "clarity")])
  train <- d[1:1500, ]
  test <- d[-(1:1500), ]
  of <- function(correlation) {
    kernel_matern(5 / 2, inputs = ~ carat) + kernel_categorical(correlation, inputs = ~ cut) +
      kernel_categorical(correlation, inputs = ~ color) + kernel_categorical(correlation, inputs = ~ clarity)
  }
  ordered <- function(v) kernel_categorical("ordered", inputs = v)
  product <- kernel_matern(5 / 2, inputs = ~ carat) * ordered("color") * ordered("clarity")
  began <- proc.time()[["elapsed"]]
  g <- mgcv::gam(price ~ s(carat) + cut + color + clarity, data = train, method = "REML")
  rbind(ours("diamonds", "default (0/1 columns)", price ~ ., train, test),
        ours("diamonds", "matern52(carat) + exchangeable factors", price ~ ., train, test, kernel = of("exchangeable")),
        ours("diamonds", "matern52(carat) + ordered factors", price ~ ., train, test, kernel = of("ordered")),
        ours("diamonds", "the ordered sum + matern52(carat) * color * clarity", price ~ ., train, test,
             kernel = of("ordered") + product),
        of_gam("diamonds", "mgcv::gam", g, test, test$price, began))
}

# Predicts each row by a fit to the 23 others.
npk <- function() {
  factor_kernel <- function(name) kernel_categorical(inputs = name)
  kernel <- factor_kernel("block") + factor_kernel("N") + factor_kernel("P") + factor_kernel("K")
  d <- datasets::npk
  each <- function(fit) {
    began <- proc.time()[["elapsed"]]
    rows <- lapply(seq_len(24L), function(i) fit(d[-i, ], d[i, ]))
    p <- list(fit = vapply(rows, function(r) r$fit[[1L]], 0), se.fit = vapply(rows, function(r) r$se.fit[[1L]], 0))
    list(p = p, began = began)
  }
  gp <- function(kernel) {
    each(function(train, test) {
      set.seed(1)
      predict(suppressWarnings(pfdtc(yield ~ ., train, kernel = kernel)), test, se.fit = TRUE, type = "response")
    })
  }
  lm_each <- each(function(train, test) {
    m <- stats::lm(yield ~ ., train)
    p <- stats::predict(m, test, se.fit = TRUE)
    list(fit = p$fit, se.fit = sqrt(p$se.fit^2 + stats::sigma(m)^2))
  })
  plain <- gp(kernel_se())
  sum <- gp(kernel)
  rbind(other("npk", "se (0/1 columns)", plain$p, d$yield, plain$began),
        other("npk", "block + N + P + K, categorical", sum$p, d$yield, sum$began),
        other("npk", "lm", lm_each$p, d$yield, lm_each$began))
}

jason3 <- function() {
  e <- new.env()
  utils::data("jason3", package = "GpGp", envir = e)
  d <- with(e$jason3, data.frame(wind = windspeed, lon, lat, time))
  d$time <- (d$time - min(d$time)) / 3600
  set.seed(1)
  held <- sample(nrow(d), 2000)
  train <- d[-held, ]
  test <- d[held, ]
  rbind(ours("jason3", "default", wind ~ ., train, test),
        ours("jason3", "matern32(lon,lat) * matern32(time)", wind ~ ., train, test,
             kernel = kernel_matern(3 / 2, inputs = ~ lon + lat) * kernel_matern(3 / 2, inputs = ~ time)))
}

delays10k <- function() {
  d <- load_dataset("delays10k")
  set.seed(1)
  i <- sample(nrow(d), 8000)
  train <- d[i, ]
  test <- d[-i, ]
  names <- setdiff(names(d), "y")
  one <- function(v) kernel_se(inputs = v)
  additive <- Reduce(`+`, lapply(names, one))
  crossed <- utils::combn(c("dep_time", "arr_time", "air_time", "distance"), 2L, simplify = FALSE)
  pairs <- Reduce(`+`, lapply(crossed, one))
  began <- proc.time()[["elapsed"]]
  smooth <- vapply(names, function(v) sprintf("s(%s, k = %d)", v, min(10L, length(unique(train[[v]])) - 1L)), "")
  g <- mgcv::bam(stats::reformulate(smooth, "y"), data = train)
  added <- of_gam("delays10k", "mgcv::bam, additive", g, test, test$y, began)
  began <- proc.time()[["elapsed"]]
  both <- vapply(crossed, function(v) sprintf("ti(%s)", paste(v, collapse = ", ")), "")
  g2 <- mgcv::bam(stats::reformulate(c(smooth, both), "y"), data = train)
  rbind(ours("delays10k", "default", y ~ ., train, test),
        # Neighbours do not determine additive terms of one or two inputs, so these are learned at points.
        ours("delays10k", "additive, 300 points", y ~ ., train, test, kernel = additive, hyper = "pilot", m = 300),
        ours("delays10k", "additive + six pairs, 300 points", y ~ ., train, test, kernel = additive + pairs,
             hyper = "pilot", m = 300),
        ours("delays10k", "additive + matern32 of all", y ~ ., train, test, kernel = additive + kernel_matern(3 / 2)),
        added, of_gam("delays10k", "mgcv::bam, additive + six pairs", g2, test, test$y, began))
}

sets <- list(co2 = function() series("co2", datasets::co2, 372L),
             nottem = function() series("nottem", datasets::nottem, 192L),
             "log AirPassengers" = function() series("log AirPassengers", log(datasets::AirPassengers), 115L),
             "gamSim 1" = gam_sim, diamonds = diamonds, npk = npk, jason3 = jason3, delays10k = delays10k)
for (set in if (length(commandArgs(TRUE))) commandArgs(TRUE) else names(sets)) {
  found <- tryCatch(sets[[set]](), error = function(e) message(set, " is left out: ", conditionMessage(e)))
  if (is.null(found)) next
  print(found, row.names = FALSE)
  known <- if (file.exists(file)) utils::read.csv(file) else found[0L, ]
  if (!"seconds" %in% names(known)) known <- found[0L, ]
  utils::write.csv(rbind(known[known$set != set, ], found), file, row.names = FALSE)
}
