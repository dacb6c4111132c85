# The distribution predicted for a response: P(y | f) averaged over f ~ N(mu, s^2), which has the row's offset in it, of
# a count, of successes among `size` trials, or of Student's t. With u standard normal and P(Y <= y | f) = P(U > f),
#
#   P(Y <= y) = E P(Y <= y | mu + s u) = E Phi((U(u) - mu) / s),
#
# and the trapezoid rule sums over the wider of f and U, inside of which the other is smooth.

predictive_cdf <- function(likelihood, y, size, mu, s) {
  if (likelihood$name == "student") return(student_mixture(likelihood, y - mu, s^2, stats::pnorm))
  y <- floor(y + 1e-7)
  limit <- function(u, rows) limit_of_f(likelihood, y[rows], size[rows], u)
  out <- as.double(y >= 0)
  inner <- which(if (likelihood$name == "binomial") y >= 0 & y < size else y >= 0)
  wide <- inner[(limit(1, inner) - limit(-1, inner)) / 2 < s[inner]]
  narrow <- setdiff(inner, wide)
  grid <- seq(-6.5, 6.5, by = 0.25)
  average <- function(h) Reduce(`+`, lapply(grid, function(u) stats::dnorm(u) * h(u))) / sum(stats::dnorm(grid))
  out[narrow] <- average(function(u) {
    below_given(likelihood, y[narrow], size[narrow], mu[narrow] + s[narrow] * u)
  })
  out[wide] <- average(function(u) stats::pnorm((limit(u, wide) - mu[wide]) / s[wide]))
  out
}

below_given <- function(likelihood, y, size, f) {
  mean <- linkinv(likelihood)(f)
  switch(likelihood$name, binomial = stats::pbinom(y, size, mean), poisson = stats::ppois(y, mean),
         nb = stats::pnbinom(y, size = likelihood$theta, mu = mean))
}

# U, as large as Phi(u) of it: log G, G ~ Gamma(y + 1), of Poisson counts; else the link of B ~ Beta(y + 1, size - y),
# or log(theta B / (1 - B)), B ~ Beta(y + 1, theta).
limit_of_f <- function(likelihood, y, size, u) {
  p <- stats::pnorm(u)
  if (likelihood$name == "poisson") {
    return(ifelse(y > large_count, log(y) + u / sqrt(y), log(stats::qgamma(p, pmin(y, large_count) + 1))))
  }
  counts <- likelihood$name == "nb"
  beyond <- if (counts) log(y) + log(likelihood$theta) - log(stats::qgamma(p, likelihood$theta, lower.tail = FALSE))
  far <- counts & y > large_count
  y <- pmin(y, large_count)
  rest <- if (counts) likelihood$theta else size - y
  quantile <- function(...) suppressWarnings(stats::qbeta(p, ...)) # it warns where one of the two is 1 to rounding
  low <- quantile(y + 1, rest)
  high <- quantile(rest, y + 1, lower.tail = FALSE)
  if (likelihood$link == "probit") return(ifelse(low < 0.5, stats::qnorm(low), -stats::qnorm(high)))
  logit <- log(low) - log(high)
  if (counts) ifelse(far, beyond, logit + log(likelihood$theta)) else logit
}

# Beyond, 1 / y is less than digits tell and R's quantiles take ages or have none: Gamma(y) is y + sqrt(y) u, a negative
# binomial count its rate times Gamma(theta) / theta.
large_count <- 1e9

# The least response that is not above with a probability of at least p. Half of 1 - p beyond a quantile of f, and half
# beyond a quantile given that f, are no more than 1 - p; likewise below.
predictive_quantile <- function(likelihood, p, size, mu, s) {
  if (likelihood$name == "student") return(mu + student_quantile(likelihood, p, s))
  given <- function(p) {
    mean <- linkinv(likelihood)(mu + s * stats::qnorm(p))
    if (likelihood$name == "binomial") return(stats::qbinom(p, size, mean))
    theta <- likelihood$theta
    mean <- pmin(mean, .Machine$double.xmax)
    few <- pmin(mean, large_count)
    count <- if (likelihood$name == "poisson") {
      ifelse(mean > few, mean + sqrt(mean) * stats::qnorm(p), stats::qpois(p, few))
    } else {
      ifelse(mean > few, mean * (stats::qgamma(p, theta) / theta), stats::qnbinom(p, size = theta, mu = few))
    }
    pmin(count, .Machine$double.xmax)
  }
  low <- given(p / 2) - 1
  high <- given((1 + p) / 2)
  while (length(open <- which(high - low > pmax(1, 1e-12 * high)))) {
    middle <- floor(low[open] + (high[open] - low[open]) / 2)
    above <- predictive_cdf(likelihood, middle, size[open], mu[open], s[open]) >= p
    high[open[above]] <- middle[above]
    low[open[!above]] <- middle[!above]
  }
  high
}

# Of the distance from mu. Beyond the middle the distribution function is concave: Newton's steps from where the
# quantile cannot be below, that of either part alone, never go too far.
student_quantile <- function(likelihood, p, s) {
  side <- sign(p - 0.5)
  p <- max(p, 1 - p)
  x <- pmax(s * stats::qnorm(p), likelihood$theta * stats::qt(p, likelihood$df))
  for (i in 1:100) {
    step <- (p - student_mixture(likelihood, x, s^2, stats::pnorm)) / student_mixture(likelihood, x, s^2, stats::dnorm)
    x <- x + step
    if (!any(step > 1e-9 * x)) break
  }
  side * x
}

# cbind(fit, lwr, upr) of new responses, on their scale: of successes the shares.
predictive_band <- function(fit, value, mean, var, level, size) {
  known <- which(!is.na(mean) & size > 0)
  ends <- lapply((1 + c(-1, 1) * level) / 2, function(p) {
    q <- predictive_quantile(fit$likelihood, p, size[known], mean[known], sqrt(pmax(var[known], 0)))
    if (fit$likelihood$name == "binomial") q <- q / size[known]
    replace(rep(NA_real_, length(mean)), known, q)
  })
  out <- cbind(fit = value, lwr = ends[[1L]], upr = ends[[2L]])
  rownames(out) <- names(mean)
  out
}
