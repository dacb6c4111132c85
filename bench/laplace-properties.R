# Compares certificates of fits with classes and counts with the exact GP's Laplace posterior by dense matrices, on
# random and adversarial problems, and variational bounds with integrals. No bound may be violated.
#
#   Rscript bench/laplace-properties.R [checks = 100000] [seed = 1]
#
# A check is one bound at one row (mode from below and above, sd from below and above, probability or rate, the ends of
# the certified interval), one end of the bounds of the evidence, or one error bound by `tol`. Problems have logit,
# probit, Poisson, negative binomial or Student's t responses with outliers, sizes, weights from 1e-4 to 1e2, and
# offsets up to hundreds (so rows are saturated on either side). They have linearly separated classes, a single class,
# counts that are all 0 or in the millions, equal rows, prior variances up to 1e3, and SE, Matern and rational quadratic
# kernels, two sums and a product. Fits are at the mode or at u that is no mode, with neighbours (one, five, all) or
# points by `tol`. They are certified by their own points, by a reference, and by a kept reference without the rows. For
# Student's t the reference is the mode that descent from the middle of the certified intervals reaches, and an infinite
# certificate is no check. For other families it is a violation, except for rates and the evidence of counts, whose
# bounds may overflow; these are counted. Every third problem also compares the variational bound of one or two rows
# with the log evidence by the trapezoid rule, and checks that scores of folds are finite. The tolerance is 1e-8 max(1,
# prior sd), the accuracy of the dense reference. The status is 1 after any violation, or if no certificate was within
# 1.5 times the actual error.

suppressMessages(library(pfdtc))
args <- commandArgs(TRUE)
wanted <- if (length(args)) as.numeric(args[1L]) else 1e5
seed <- if (length(args) > 1L) as.integer(args[2L]) else 1L
one_of <- function(...) sample(list(...), 1L)[[1L]]

covariance <- function(p, a, b) {
  a0 <- a
  b0 <- b
  a <- sweep(a, 2L, p$l, "/")
  b <- sweep(b, 2L, p$l, "/")
  r2 <- 0
  for (j in seq_len(ncol(a))) r2 <- r2 + outer(a[, j], b[, j], "-")^2
  r <- sqrt(r2)
  m32 <- (1 + sqrt(3) * r) * exp(-sqrt(3) * r)
  switch(p$kernel, se = p$variance * exp(-r2 / 2), m12 = p$variance * exp(-r), m32 = p$variance * m32,
         m52 = p$variance * (1 + sqrt(5) * r + 5 / 3 * r2) * exp(-sqrt(5) * r), rq = p$variance / (1 + r2 / 2),
         "se + linear" = p$variance * exp(-r2 / 2) + 0.5 * tcrossprod(a0, b0), "m32 + constant" = p$variance * m32 + 2,
         "periodic se" = p$variance * exp(-2 * sin(pi * outer(a0[, 1L], b0[, 1L], "-") / 0.4)^2 - r2 / 2))
}

kernel_of_problem <- function(p) {
  switch(p$kernel, se = kernel_se(p$l, p$variance), m12 = kernel_matern(1 / 2, p$l, p$variance),
         m32 = kernel_matern(3 / 2, p$l, p$variance), m52 = kernel_matern(5 / 2, p$l, p$variance),
         rq = kernel_rq(1, p$l, p$variance), "se + linear" = kernel_se(p$l, p$variance) + kernel_linear(0.5),
         "m32 + constant" = kernel_matern(3 / 2, p$l, p$variance) + kernel_constant(2),
         "periodic se" = kernel_periodic(1, p$variance, 0.4, "x1") * kernel_se(p$l, 1))
}

make_problem <- function() {
  p <- list(n = sample(c(8, 30, 80, 150), 1L), d = sample(1:3, 1L), theta = one_of(0.3, 2, 50),
            kernel = one_of("se", "m12", "m32", "m52", "rq", "se + linear", "m32 + constant", "periodic se"),
            family = one_of("logit", "probit", "log", "nb", "student"), variance = one_of(0.1, 1, 4, 30, 1000))
  p$l <- runif(p$d, 0.1, 1)
  p$x <- matrix(runif(p$n * p$d), p$n, p$d, dimnames = list(NULL, paste0("x", seq_len(p$d))))
  if (runif(1) < 0.15) p$x <- p$x[sample(p$n, replace = TRUE), , drop = FALSE]
  p$new <- rbind(matrix(runif(10 * p$d, -0.2, 1.2), 10), matrix(5, 1, p$d))
  p$m <- sample(2:max(2, min(40, p$n)), 1L)
  p$offset <- if (runif(1) < 0.4) rnorm(p$n)
  p$how <- one_of("points", "points", "off", "near", "near", "tol")
  p$off <- if (p$how == "off") one_of(1e-6, 1e-2, 1) else 0
  p$near <- if (p$how == "near") one_of(1L, min(5L, p$n), p$n)
  p$weight <- if (runif(1) < 0.4) one_of(runif(p$n, 0.3, 2), exp(runif(p$n, log(1e-4), log(1e2))))
  count <- p$family %in% c("log", "nb")
  if (count) p$variance <- min(p$variance, 30)
  if (p$family == "student") {
    p$df <- one_of(1, 4, 30)
    p$theta <- sqrt(p$variance) * one_of(0.1, 0.5, 2)
  }
  f <- drop(t(chol(covariance(p, p$x, p$x) + diag(1e-6 * p$variance, p$n))) %*% rnorm(p$n))
  f <- f + if (is.null(p$offset)) 0 else p$offset
  f <- if (count) pmin(f, 8) else f
  if (count && runif(1) < 0.2) { # makes means or exposures of millions
    f <- pmin(f, 2) + log(1e6)
    if (runif(1) < 0.5) p$offset <- (if (is.null(p$offset)) numeric(p$n) else p$offset) + log(1e6)
  }
  p$size <- if (!count && p$family != "student" && runif(1) < 0.3) as.double(sample(1:9, p$n, TRUE))
  m <- if (is.null(p$size)) rep(1, p$n) else p$size
  if (p$family == "student") {
    outliers <- (seq_len(p$n) <= one_of(0, 1, 0.1 * p$n)) * one_of(3, 10, 100) * p$theta
    p$y <- f + rnorm(p$n, sd = p$theta / 2) + outliers
    return(p)
  }
  odd <- runif(1)
  p$y <- if (odd < 0.1) numeric(p$n) else if (odd < 0.2) if (count) rep(3, p$n) else m else
    if (odd < 0.35 && !count) m * (p$x[, 1L] > 0.5) else
      switch(p$family, logit = rbinom(p$n, m, plogis(f)), probit = rbinom(p$n, m, pnorm(f)), log = rpois(p$n, exp(f)),
             nb = rnbinom(p$n, size = p$theta, mu = exp(f)))
  if (!count && runif(1) < 0.15) p$offset <- one_of(500, 30) * one_of(sign(2 * p$y - m), sample(-1:1, p$n, TRUE))
  p
}

site <- function(p, f) {
  f <- f + if (is.null(p$offset)) 0 else p$offset
  y <- p$y
  m <- if (is.null(p$size)) rep(1, p$n) else p$size
  w <- if (is.null(p$weight)) 1 else p$weight
  # Returns phi / Phi - x at -x as 1 / (x + 2 / (x + 3 / ...)), because a difference of logs loses all digits here.
  beyond <- function(x) Reduce(function(rest, k) k / (x + rest), 200:1, numeric(length(x)))
  mills <- function(z) ifelse(z < -10, beyond(-z) - z, exp(dnorm(z, log = TRUE) - pnorm(z, log.p = TRUE)))
  W1 <- function(z) mills(z) * ifelse(z < -10, beyond(-z), mills(z) + z)
  out <- switch(p$family,
    logit = list(y * plogis(f, log.p = TRUE) + (m - y) * plogis(-f, log.p = TRUE), y * plogis(-f) - (m - y) * plogis(f),
                 m * dlogis(f)),
    probit = list(y * pnorm(f, log.p = TRUE) + (m - y) * pnorm(-f, log.p = TRUE), y * mills(f) - (m - y) * mills(-f),
                  y * W1(f) + (m - y) * W1(-f)),
    log = list(y * f - exp(f), y - exp(f), exp(f)),
    nb = {
      f <- f - log(p$theta)
      list(y * f + (y + p$theta) * plogis(-f, log.p = TRUE), y - (y + p$theta) * plogis(f), (y + p$theta) * dlogis(f))
    },
    student = list(-(p$df + 1) / 2 * log1p((y - f)^2 / (p$df * p$theta^2))))
  lapply(out, `*`, w)
}

# Returns the mode for Student's t by reweighted least squares from `f`, or NULL if these do not converge. W may be < 0.
exact_student <- function(p, f) {
  n <- p$n
  w <- if (is.null(p$weight)) rep(1, n) else p$weight
  target <- p$y - if (is.null(p$offset)) 0 else p$offset
  a <- p$df * p$theta^2
  K <- covariance(p, p$x, p$x)
  for (i in 1:5000) {
    weight <- w * (p$df + 1) / (a + (target - f)^2)
    alpha <- weight * (target - drop(K %*% (sqrt(weight) * solve(diag(n) + sqrt(weight) * t(sqrt(weight) * K),
                                                               sqrt(weight) * target))))
    moved <- drop(K %*% alpha) - f
    f <- f + moved
    if (max(abs(moved)) < 1e-12 * max(1, abs(f))) break
  }
  r <- target - f
  W <- w * (p$df + 1) * (a - r^2) / (a + r^2)^2
  inner <- diag(n) + K %*% diag(W, n)
  if (i == 5000 || min(Re(eigen(inner, only.values = TRUE)$values)) <= 0) return(NULL)
  list(evidence = NA_real_, at = function(x) {
    k <- covariance(p, p$x, x)
    list(mean = drop(crossprod(k, alpha)), var = diag(covariance(p, x, x)) - colSums(k * (W * solve(inner, k))))
  })
}

exact_laplace <- function(p) {
  n <- p$n
  K <- covariance(p, p$x, p$x)
  alpha <- f <- numeric(n)
  value <- function(alpha, f) sum(site(p, f)[[1L]]) - sum(alpha * f) / 2
  best <- value(alpha, f)
  for (i in 1:300) {
    s <- site(p, f)
    root <- sqrt(s[[3L]])
    b <- s[[3L]] * f + s[[2L]]
    step <- b - root * solve(diag(n) + root * t(root * K), root * drop(K %*% b)) - alpha
    t <- 1
    repeat {
      new <- alpha + t * step
      f_new <- drop(K %*% new)
      v <- value(new, f_new)
      if (is.finite(v) && v >= best - 1e-10 * abs(best)) break
      t <- t / 2
      if (t < 1e-10) break
    }
    moved <- max(abs(f_new - f))
    alpha <- new
    f <- f_new
    best <- v
    if (moved < 1e-12 * max(1, abs(f)) || t < 1e-10) break
  }
  # Take Newton steps without a check of the value, whose rounding errors hide the last improvements.
  for (i in 1:5) {
    s <- site(p, f)
    alpha <- s[[2L]] + s[[3L]] * solve(diag(n) + K %*% diag(s[[3L]], n), f - drop(K %*% s[[2L]]))
    f <- drop(K %*% alpha)
  }
  best <- value(alpha, f)
  root <- sqrt(site(p, f)[[3L]])
  R <- chol(diag(n) + root * t(root * K))
  at <- function(x) {
    k <- covariance(p, p$x, x)
    explained <- colSums(backsolve(R, root * k, transpose = TRUE)^2)
    list(mean = drop(crossprod(k, alpha)), var = diag(covariance(p, x, x)) - explained)
  }
  list(at = at, evidence = best - sum(log(diag(R))) + log_constants(p))
}

log_constants <- function(p) {
  w <- if (is.null(p$weight)) 1 else p$weight
  sum(w * switch(p$family, log = -lgamma(p$y + 1),
                 nb = lgamma(p$y + p$theta) - lgamma(p$theta) - lgamma(p$y + 1) + 0 * p$y,
                 student = rep(dt(0, p$df, log = TRUE) - log(p$theta), p$n),
                 if (is.null(p$size)) 0 * p$y else lchoose(p$size, p$y)))
}

average <- function(p, mean, var) {
  if (p$family == "student") return(mean)
  if (p$family %in% c("log", "nb")) return(exp(mean + var / 2))
  if (p$family == "probit") return(pnorm(mean / sqrt(1 + var)))
  average_logit <- function(m, s) {
    if (s < 1e-6) return(plogis(m))
    stats::integrate(function(z) plogis(m + s * z) * dnorm(z), -10, 10, rel.tol = 1e-11, subdivisions = 2000L,
                     stop.on.error = FALSE)$value
  }
  mapply(average_logit, mean, sqrt(var))
}

fit_problem <- function(p, ...) {
  family <- switch(p$family, logit = binomial(), probit = binomial("probit"), log = poisson(), nb = nb(p$theta),
                   student = student(p$df, p$theta))
  response <- if (is.null(p$size)) p$y else cbind(p$y, p$size - p$y)
  of <- function(...) {
    pfdtc(p$x, response, kernel = kernel_of_problem(p), hyper = "fixed", center = FALSE, family = family,
          weights = p$weight, offset = p$offset, control = pfdtc_control(threads = 1L), ...)
  }
  if (length(list(...))) return(of(m = p$m, ...))
  fit <- if (p$how == "tol") of(tol = 0.1) else if (p$how != "near" || p$family == "student") of(m = p$m) else
    of(m = p$m, neighbours = p$near)
  if (p$off) fit$factors$beta <- fit$factors$beta + rnorm(length(fit$factors$beta), sd = p$off)
  fit
}

# Returns the fit without its offset, so that predictions and certificates are of f alone.
without_offset <- function(fit) {
  fit$data["offset"] <- fit$frame["offset"] <- NULL
  fit
}

# Returns for the rows `some` alone whether the variational bound is below the log evidence, and whether the scores of
# the folds are finite. The trapezoid rule around the variational mean, in units of its sds, is also used on a wider and
# finer grid, and the result is NA if the two integrals differ.
variational_holds <- function(p, some) {
  n <- length(some)
  p$x <- p$x[some, , drop = FALSE]
  for (what in c("y", "size", "weight", "offset")) p[what] <- list(p[[what]][some])
  p[c("n", "m")] <- list(n, n)
  whole <- without_offset(fit_problem(p, approx = "vi"))
  p$m <- sample.int(n, 1L)
  fit <- fit_problem(p, approx = "vi")
  at <- predict(whole, p$x, full_cov = TRUE, se.fit = TRUE)
  root <- t(chol(at$cov))
  L <- t(chol(covariance(p, p$x, p$x)))
  integral <- function(far, by) {
    z <- t(expand.grid(rep(list(seq(-far, far, by = by)), n)))
    f <- unname(at$fit) + root %*% z
    logs <- apply(f, 2L, function(f) sum(site(p, f)[[1L]])) - colSums(forwardsolve(L, f)^2) / 2 +
      sum(log(diag(root) / diag(L)))
    max(logs) + log(sum(exp(logs - max(logs)))) + n * log(by / sqrt(2 * pi))
  }
  exact <- c(integral(9, 0.3), integral(14, 0.2)) + log_constants(p)
  room <- 1e-9 * max(1, abs(exact[2L])) + 2 * abs(diff(exact))
  if (!(room < 1e-3 * max(1, abs(exact[2L])))) return(NA)
  holds <- isTRUE(fit$evidence <= exact[2L] + room) &&
    (n == 1L || all(is.finite(cross_validate(fit, folds = n)$nlpd)))
  if (!holds) cat("variational bound of", n, "rows", fit$evidence, "log evidence", exact, "\n")
  holds
}

checks <- broken <- 0
problem <- 0
ratios <- NULL
said <- c(0, 0)
bounds <- c(0, 0)
open <- 0
# Counts violations. An end that is no number is one, and so is an infinite end unless `may_be_open`.
count <- function(what, truth, lower, upper, room, may_be_open = FALSE) {
  wrong <- sum(!((truth >= lower - room) %in% TRUE), !((truth <= upper + room) %in% TRUE))
  infinite <- sum(is.infinite(c(lower, upper)))
  if (!may_be_open) wrong <- wrong + infinite
  checks <<- checks + 2 * length(truth)
  open <<- open + infinite
  broken <<- broken + wrong
  if (wrong) cat(sprintf("problem %d: %s %s %s %g: %s: %d do not hold\n", problem, p$family, p$kernel, p$how, p$off,
                         what, wrong))
}
while (checks < wanted) {
  problem <- problem + 1
  set.seed(seed * 1e6 + problem)
  p <- make_problem()
  if (Sys.getenv("TELL") != "") cat(problem, "")
  student <- p$family == "student"
  counts <- p$family %in% c("log", "nb")
  fit <- tryCatch(suppressMessages(suppressWarnings(fit_problem(p))), pfdtc_error_numerical = function(e) NULL)
  if (is.null(fit)) next # with many outliers steps may not reach a mode
  plain <- without_offset(fit)
  exact <- tryCatch(if (student) exact_student(p, unname(predict(plain, p$x))) else exact_laplace(p),
                    error = function(e) NULL)
  if (is.null(exact)) next # the dense reference has no factorisation
  x <- rbind(p$x[sample.int(p$n, min(p$n, 12L)), , drop = FALSE], p$new)
  tol <- 1e-8 * max(1, sqrt(diag(covariance(p, x, x))))
  truth <- exact$at(x)
  sd <- sqrt(pmax(truth$var, 0))
  rate <- average(p, truth$mean, pmax(truth$var, 0))
  link <- switch(p$family, logit = plogis, probit = pnorm, student = identity, exp)
  kept <- plain
  for (effort in c("fast", "reference", "kept")) {
    m2 <- if (effort == "reference") min(p$n, 4 * p$m)
    if (effort == "kept") {
      kept$reference <- reference(plain)
      kept["data"] <- list(NULL)
    }
    certified <- function(x) {
      suppressWarnings(certify(if (effort == "kept") kept else plain, x, sub("kept", "reference", effort), m2 = m2))
    }
    c <- tryCatch(certified(x), pfdtc_error_numerical = function(e) if (student && p$off) NULL else stop(e))
    if (is.null(c)) next # without a Laplace posterior, as W is negative
    if (student) {
      said <- said + c(all(is.finite(c$mean_error)), 1)
      if (!all(is.finite(c$mean_error))) next
      inside <- certified(p$x)
      exact <- exact_student(p, (inside$mean_lower + inside$mean_upper) / 2)
      if (is.null(exact)) next
      truth <- exact$at(x)
      sd <- sqrt(pmax(truth$var, 0))
    }
    count(paste(effort, "mode"), truth$mean, c$mean_lower, c$mean_upper, tol)
    count(paste(effort, "distance"), abs(truth$mean - c$mean), 0 * sd, c$mean_error, tol)
    count(paste(effort, "sd"), sd, c$sd_lower, c$sd_upper, tol)
    if (!student) count(paste(effort, "response"), rate, c$response_lower, c$response_upper, 1e-8 * (1 + rate), counts)
    if (effort != "fast" && !p$off) {
      ratios <- rbind(ratios, data.frame(family = p$family, kernel = p$kernel, how = p$how,
                                         ratio = median(c$mean_error / pmax(abs(c$mean - truth$mean), 1e-9))))
    }
  }
  if (student) next
  for (type in c("link", "response")) {
    band <- predict(kept, x, interval = "credible", certified = TRUE, type = type)
    ends <- truth$mean + outer(qnorm(0.975) * sd, c(-1, 1))
    if (type == "response") ends <- link(ends)
    count(paste("interval", type), c(ends), rep(band[, "lwr"], 2), rep(band[, "upr"], 2),
          c(tol, tol) * (1 + abs(ends)), counts && type == "response")
  }
  for (it in list(plain, kept)) {
    e <- evidence_bounds(it)
    count("evidence", exact$evidence, e[["lower"]], e[["upper"]], 1e-7 * max(1, abs(exact$evidence)), counts)
  }
  if (!is.null(fit$tol)) {
    at <- predict(pfdtc:::at_mode(plain), p$x, se.fit = TRUE)
    actual <- exact$at(p$x)
    actual <- c(max(abs(at$fit - actual$mean) / at$se.fit), max(abs(sqrt(pmax(actual$var, 0)) / at$se.fit - 1)))
    count("tol", actual, c(0, 0), c(fit$tol$mean, fit$tol$sd), 1e-7 * max(1, sqrt(p$variance) / at$se.fit))
  }
  if (problem %% 3 > 0 || p$variance > 100) next
  some <- sample(which(!duplicated(p$x)), sample(1:2, 1L))
  holds <- suppressMessages(suppressWarnings(variational_holds(p, some)))
  if (is.na(holds)) next
  bounds <- bounds + c(1, !holds)
}
cat(sprintf("seed %d: %d problems, %d checks, %d broken, %.0f ends of counts open; ", seed, problem, checks, broken,
            open),
    sprintf("of Student's t %d of %d certificates were finite; ", said[1L], said[2L]),
    sprintf("%d variational bounds, %d broken\n", bounds[1L], bounds[2L]), sep = "")
print(aggregate(ratio ~ kernel + how, ratios, function(v) signif(quantile(v, c(0.1, 0.5, 0.9)), 3)))
quit(status = as.integer(broken + bounds[2L] > 0 || !any(ratios$ratio < 1.5)))
