# Certificates of fits with classes and counts held against the exact process's Laplace posterior, by dense matrices, on
# random and adversarial problems: none may be violated.
#
#   Rscript bench/laplace-properties.R [checks = 100000] [seed = 1]
#
# A check is one bound at one row (mode from below and above, sd from below and above, probability or rate), or one end
# of the evidence's bracket. Problems: logit, probit, Poisson, negative binomial, Student's t with outliers; sizes,
# weights from 1e-4 to 1e2, offsets; classes parted by a line, one class alone, counts all 0 or up to e^8, equal rows,
# prior variances up to 1e3; SE, Matern and rational quadratic kernels, two sums and a product; the mode, and u that are
# not the mode at all. Of Student's t the mode held against is the one that descent from the fit's leads to, and what is
# not certified (infinite) is no check. Tolerance: 1e-8 max(1, prior sd), what the dense oracle itself is good for.
# Status 1 on any violation, or when no certificate was within 1.5 of the actual error.

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
  p
}

site <- function(p, f) {
  f <- f + if (is.null(p$offset)) 0 else p$offset
  y <- p$y
  m <- if (is.null(p$size)) rep(1, p$n) else p$size
  w <- if (is.null(p$weight)) 1 else p$weight
  mills <- function(z) exp(dnorm(z, log = TRUE) - pnorm(z, log.p = TRUE))
  W1 <- function(z) ifelse(z < -1e3, 1 - 1 / z^2, mills(z) * (mills(z) + z))
  out <- switch(p$family,
    logit = list(y * plogis(f, log.p = TRUE) + (m - y) * plogis(-f, log.p = TRUE), y * plogis(-f) - (m - y) * plogis(f),
                 m * dlogis(f)),
    probit = list(y * pnorm(f, log.p = TRUE) + (m - y) * pnorm(-f, log.p = TRUE), y * mills(f) - (m - y) * mills(-f),
                  y * W1(f) + (m - y) * W1(-f)),
    log = list(y * f - exp(f), y - exp(f), exp(f)),
    nb = {
      f <- f - log(p$theta)
      list(y * f + (y + p$theta) * plogis(-f, log.p = TRUE), y - (y + p$theta) * plogis(f), (y + p$theta) * dlogis(f))
    })
  lapply(out, `*`, w)
}

# Of Student's t, by reweighted least squares from `f`; W may be negative. NULL where they end at no mode.
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
  root <- sqrt(site(p, f)[[3L]])
  R <- chol(diag(n) + root * t(root * K))
  at <- function(x) {
    k <- covariance(p, p$x, x)
    explained <- colSums(backsolve(R, root * k, transpose = TRUE)^2)
    list(mean = drop(crossprod(k, alpha)), var = diag(covariance(p, x, x)) - explained)
  }
  w <- if (is.null(p$weight)) 1 else p$weight
  constant <- switch(p$family, log = -lgamma(p$y + 1),
    nb = lgamma(p$y + p$theta) - lgamma(p$theta) - lgamma(p$y + 1) + 0 * p$y,
    if (is.null(p$size)) 0 * p$y else lchoose(p$size, p$y))
  list(at = at, evidence = best - sum(log(diag(R))) + sum(w * constant))
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

fit_problem <- function(p) {
  family <- switch(p$family, logit = binomial(), probit = binomial("probit"), log = poisson(), nb = nb(p$theta),
                   student = student(p$df, p$theta))
  response <- if (is.null(p$size)) p$y else cbind(p$y, p$size - p$y)
  fit <- pfdtc(p$x, response, m = p$m, kernel = kernel_of_problem(p), hyper = "fixed", center = FALSE, family = family,
               weights = p$weight, offset = p$offset, control = pfdtc_control(threads = 1L))
  if (p$off) fit$factors$beta <- fit$factors$beta + rnorm(length(fit$factors$beta), sd = p$off)
  fit
}

checks <- broken <- 0
closest <- Inf
problem <- 0
ratios <- NULL
said <- c(0, 0)
while (checks < wanted) {
  problem <- problem + 1
  set.seed(seed * 1e6 + problem)
  p <- make_problem()
  p$off <- if (runif(1) < 0.2) one_of(1e-6, 1e-2, 1) else 0
  fit <- tryCatch(suppressMessages(suppressWarnings(fit_problem(p))), pfdtc_error_numerical = function(e) NULL)
  if (is.null(fit)) next # of many outliers: no mode where steps end
  x <- rbind(p$x, p$new)
  plain <- fit
  plain["data"] <- list(`$<-`(fit$data, "offset", NULL))
  plain$data$offset <- NULL
  plain$frame$offset <- NULL
  student <- p$family == "student"
  exact <- tryCatch(if (student) exact_student(p, unname(predict(plain, p$x))) else exact_laplace(p),
                    error = function(e) NULL)
  if (is.null(exact)) next # the oracle's own factorisation fails
  tol <- 1e-8 * max(1, sqrt(diag(covariance(p, x, x))))
  truth <- exact$at(x)
  sd <- sqrt(pmax(truth$var, 0))
  rate <- average(p, truth$mean, pmax(truth$var, 0))
  for (effort in c("fast", "reference")) {
    c <- tryCatch(suppressWarnings(certify(plain, x, effort, m2 = if (effort == "reference") min(p$n, 4 * p$m))),
                  pfdtc_error_numerical = function(e) if (student && p$off) NULL else stop(e))
    if (is.null(c)) next # there is no Laplace posterior around any u where W is negative
    wrong <- cbind(truth$mean < c$mean_lower - tol, truth$mean > c$mean_upper + tol, sd < c$sd_lower - tol,
                   sd > c$sd_upper + tol,
                   if (!student) cbind(rate < c$response_lower * (1 - 1e-8) - 1e-8,
                                       rate > c$response_upper * (1 + 1e-8) + 1e-8))
    if (student) {
      said <- said + c(all(is.finite(c$mean_error)), 1)
      if (!all(is.finite(c$mean_error))) next
    }
    checks <- checks + length(wrong)
    broken <- broken + sum(wrong)
    if (any(wrong)) cat("problem", seed * 1e6 + problem, p$family, p$kernel, effort, "off", p$off, "broken",
                        colSums(wrong), "\n")
    actual <- abs(c$mean - truth$mean)
    if (!p$off) ratios <- rbind(ratios, data.frame(family = p$family, kernel = p$kernel, effort,
                                       ratio = median(c$mean_error / pmax(actual, 1e-9))))
  }
  if (student) next
  e <- evidence_bounds(plain)
  room <- 1e-7 * max(1, abs(exact$evidence))
  wrong <- c(exact$evidence < e[["lower"]] - room, exact$evidence > e[["upper"]] + room)
  checks <- checks + 2
  broken <- broken + sum(wrong)
  if (any(wrong)) cat("problem", seed * 1e6 + problem, p$family, "evidence", e, exact$evidence, "\n")
}
cat(sprintf("seed %d: %d problems, %d checks, %d broken; of Student's t %d of %d certificates were finite\n", seed,
            problem, checks, broken, said[1L], said[2L]))
print(aggregate(ratio ~ kernel + effort, ratios, function(v) signif(quantile(v, c(0.1, 0.5, 0.9)), 3)))
quit(status = as.integer(broken > 0 || !any(ratios$ratio < 1.5)))
