# Compares variational inference with Laplace's approximation by held-out log density (NLPD).
#
#   Rscript bench/approx.R [truth | learned] ...
#
# truth: 30 to 100 responses of 0 or 1, and a large variance of f. Kernel and responses are drawn from the model, and
#   the kernel is given. Another column has the true posterior's predictions, by elliptical slice sampling (Murray,
#   Adams and MacKay 2010). There are 12 problems.
# learned: Pima, Sonar (splits of bench/laplace-table.R), quine and 40 rows of Pima, with everything learned.
#   "vi, Laplace's" is variational inference at the hyperparameters that Laplace's approximation learned.
# Writes bench/results/approx-<which>.csv.
suppressMessages(library(pfdtc))
options(pfdtc.threads = 1L)
seconds_of <- function(expr) {
  time <- system.time(expr)
  time[["user.self"]] + time[["sys.self"]] # processor seconds, because other work shares the machine
}

# Returns the mean of p at the columns of Kx over draws of f from its posterior given 0/1 responses.
slice_sample <- function(K, y, Kx, variance, draws = 6000L, burn = 1000L) {
  n <- nrow(K)
  U <- chol(K + diag(1e-8 * K[1L, 1L], n))
  A <- backsolve(U, backsolve(U, Kx, transpose = TRUE))
  sd <- sqrt(pmax(variance - colSums(Kx * A), 0))
  nodes <- seq(-6, 6, length.out = 61)
  share <- stats::dnorm(nodes) / sum(stats::dnorm(nodes))
  log_likelihood <- function(f) sum(stats::plogis((2 * y - 1) * f, log.p = TRUE))
  f <- numeric(n)
  now <- log_likelihood(f)
  p <- 0
  for (i in seq_len(draws * 3L)) {
    other <- drop(stats::rnorm(n) %*% U)
    level <- now + log(stats::runif(1))
    angle <- stats::runif(1, 0, 2 * pi)
    from <- angle - 2 * pi
    to <- angle
    repeat {
      try <- f * cos(angle) + other * sin(angle)
      value <- log_likelihood(try)
      if (value > level) break
      if (angle < 0) from <- angle else to <- angle
      angle <- stats::runif(1, from, to)
    }
    f <- try
    now <- value
    if (i > burn * 3L && i %% 30L == 0L) {
      at <- drop(f %*% A)
      p <- p + Reduce(`+`, Map(function(z, s) s * stats::plogis(at + sd * z), nodes, share))
    }
  }
  p / sum(seq_len(draws * 3L) > burn * 3L & seq_len(draws * 3L) %% 30L == 0L)
}

truth <- function() {
  kinds <- data.frame(n = c(30, 60, 60, 60, 100, 100), variance = c(25, 9, 100, 25, 25, 100), d = c(1, 2, 2, 8, 2, 5),
                      lengthscale = c(0.15, 0.5, 0.5, 2, 0.5, 1))
  do.call(rbind, lapply(seq_len(12L), function(i) {
    k <- kinds[(i + 1L) %/% 2L, ]
    set.seed(i)
    x <- matrix(stats::runif((k$n + 400) * k$d), ncol = k$d, dimnames = list(NULL, paste0("x", seq_len(k$d))))
    K <- k$variance * exp(-as.matrix(stats::dist(x))^2 / (2 * k$lengthscale^2))
    f <- drop(stats::rnorm(nrow(K)) %*% chol(K + diag(1e-6 * k$variance, nrow(K))))
    rows <- seq_len(k$n)
    y <- stats::rbinom(k$n, 1, stats::plogis(f[rows]))
    p <- stats::plogis(f[-rows])
    # Returns the Kullback-Leibler divergence of q from the exact predictions p, in nats for each new response.
    kl <- function(q, p) mean(p * log(p / q) + (1 - p) * log((1 - p) / (1 - q)))
    nlpd <- function(q) -mean(p * log(q) + (1 - p) * log1p(-q))
    exact <- slice_sample(K[rows, rows], y, K[rows, -rows], k$variance)
    out <- data.frame(k, seed = i, truth = nlpd(exact))
    for (approx in c("laplace", "vi")) {
      out[paste0("seconds.", approx)] <- seconds_of(
        fit <- pfdtc(x[rows, , drop = FALSE], y, family = binomial(), kernel = kernel_se(k$lengthscale, k$variance),
                     hyper = "fixed", center = FALSE, approx = approx))
      q <- unname(predict(fit, x[-rows, , drop = FALSE], type = "response"))
      out[approx] <- nlpd(q)
      out[paste0("kl.", approx)] <- kl(q, exact)
      out[paste0("evidence.", approx)] <- as.double(logLik(fit))
    }
    check <- laplace_check(fit)
    out[c("log_evidence", "se", "khat")] <- check[c("log_evidence", "se", "khat")]
    out
  }))
}

learned <- function() {
  e <- new.env()
  utils::data("Sonar", package = "mlbench", envir = e)
  pima <- rbind(MASS::Pima.tr, MASS::Pima.te)
  sets <- list("pima of 40 rows" = list(pima, 40, type ~ ., binomial()), pima = list(pima, 266, type ~ ., binomial()),
               quine = list(MASS::quine, 117, Days ~ Eth + Sex + Age + Lrn, nb()),
               sonar = list(e$Sonar, 140, Class ~ ., binomial()))
  do.call(rbind, lapply(names(sets), function(set) {
    s <- sets[[set]]
    do.call(rbind, lapply(1:5, function(split) {
      set.seed(split)
      at <- sample(nrow(s[[1L]]), s[[2L]])
      train <- s[[1L]][at, ]
      fit_by <- function(...) {
        set.seed(split)
        suppressMessages(suppressWarnings(pfdtc(s[[3L]], train, family = s[[4L]], ...)))
      }
      score <- function(fit) -mean(predict(fit, s[[1L]][-at, ], type = "density"))
      time <- c(laplace = seconds_of(laplace <- fit_by()), vi = seconds_of(vi <- fit_by(approx = "vi")))
      family <- if (is.null(laplace$theta)) s[[4L]] else nb(laplace$theta)
      held <- suppressMessages(pfdtc(s[[3L]], train, family = family, kernel = laplace$kernel, hyper = "fixed",
                                     approx = "vi"))
      message(set, " ", split)
      data.frame(set, split, laplace = score(laplace), vi = score(vi), vi.laplaces = score(held),
                 seconds.laplace = time[["laplace"]], seconds.vi = time[["vi"]],
                 bound.vi = as.double(logLik(vi)), bound.laplaces = as.double(logLik(held)))
    }))
  }))
}

asked <- commandArgs(TRUE)
for (which in if (length(asked)) asked else c("truth", "learned")) {
  table <- get(which)()
  number <- vapply(table, is.numeric, NA)
  table[number] <- lapply(table[number], signif, 5)
  utils::write.csv(table, sprintf("bench/results/approx-%s.csv", which), row.names = FALSE, quote = FALSE)
  if (which == "truth") {
    each <- transform(table, laplace = laplace - truth, vi = vi - truth)
    print(stats::aggregate(cbind(laplace, vi, kl.laplace, kl.vi, khat) ~ n + variance + d, each, mean), digits = 2)
  } else {
    print(data.frame(set = unique(table$set), t(vapply(unique(table$set), function(set) {
      d <- table[table$set == set, ]
      gain <- d$laplace - d$vi
      c(laplace = mean(d$laplace), gain = mean(gain), se = stats::sd(gain) / sqrt(nrow(d)),
        at_laplaces = mean(d$laplace - d$vi.laplaces), seconds.laplace = stats::median(d$seconds.laplace),
        seconds.vi = stats::median(d$seconds.vi))
    }, numeric(6)))), digits = 2, row.names = FALSE)
  }
}
