# Likelihoods that are not Gaussian: what `family` may be, how responses are read, and what predictions of f are on the
# response's scale.
#
# A likelihood is list(name, link, approx = "laplace" or "vi", site = the engine's name, theta = NULL, that of the
# negative binomial or the scale of Student's t, learned = is theta to be learned, df, unit = of f (1 but for
# Student's t), label, levels = of a factor response, trials = may a row have several?). Its rows, `sites`, are
# list(y, size, weight, offset) in the order of data$x; engine_sites() makes of them what the engine reads.

#' Negative binomial responses
#'
#' For `family` of [pfdtc()]: counts whose variance is \eqn{\mu + \mu^2 / \theta}, with the log link.
#'
#' @param theta a positive number; `NULL`: learned with the other hyperparameters.
#' @return An object of class `pfdtc_family`.
#' @section Errors: class `pfdtc_error_input` for a `theta` that is no positive number.
#' @seealso [pfdtc()]
#' @examples
#' nb()
#' nb(theta = 2)
#' @export
nb <- function(theta = NULL) {
  if (!is.null(theta)) theta <- check_positive(theta, "theta", 1L)
  structure(list(family = "nb", link = "log", theta = theta), class = "pfdtc_family")
}

#' @export
print.pfdtc_family <- function(x, ...) {
  theta <- if (x$family == "nb") "theta" else "sigma"
  cat(sprintf("Family: %s, %s\n", if (x$family == "nb") "negative binomial" else
    sprintf("Student's t, %s degrees of freedom", format(x$df)), if (is.null(x$theta)) paste(theta, "learned") else
    sprintf("%s %s", theta, format(x$theta, digits = 4))))
  invisible(x)
}

# NULL for the Gaussian, which needs none. `approx`: how the posterior of f is approximated.
as_likelihood <- function(family, approx = "laplace") {
  if (is.null(family)) return(NULL)
  approx <- check_choice(approx, c("laplace", "vi"), "approx")
  want <- "gaussian(), binomial(), binomial(\"probit\"), poisson(), nb() or student()"
  known <- c("gaussian", "binomial", "poisson", "nb", "student")
  if (is.character(family) && length(family) == 1L && family %in% known) {
    family <- switch(family, nb = nb(), student = student(), get(family, envir = asNamespace("stats"))())
  }
  if (is.function(family)) family <- tryCatch(family(), error = function(e) family)
  if (!inherits(family, c("family", "pfdtc_family"))) abort_input("family", describe(family), want)
  links <- list(gaussian = "identity", binomial = c("logit", "probit"), poisson = "log", nb = "log",
                student = "identity")
  known <- links[[family$family]]
  if (!family$link %in% known) {
    abort_input("family", sprintf("%s with link %s", family$family, family$link), want,
                hint = if (grepl("negative binomial", family$family, ignore.case = TRUE))
                  "The negative binomial is nb(), or nb(2) where theta is 2."
                else if (is.null(known)) paste("Quasi and other families are not fitted: counts that scatter more than",
                                               "Poisson's are for nb(), positive numbers for transform = \"log\"."))
  }
  if (family$family == "gaussian" && approx == "vi") {
    abort_input("approx", "\"vi\" with Gaussian responses", "left out, or beside another `family`",
                hint = "Their posterior is a normal distribution: nothing is to be approximated.")
  }
  if (family$family == "gaussian") return(NULL)
  label <- switch(family$family, binomial = sprintf("binomial, %s link", family$link), poisson = "Poisson, log link",
                  nb = "negative binomial, log link",
                  student = sprintf("Student's t, %s degrees of freedom", format(family$df)))
  list(name = family$family, link = family$link, approx = approx, label = label, theta = family$theta,
       df = family$df, unit = 1, site = switch(family$family, nb = , student = family$family, family$link),
       learned = family$family %in% c("nb", "student") && is.null(family$theta), levels = NULL)
}

# What theta is called; NULL where there is none.
theta_name <- function(likelihood) switch(likelihood$name, nb = "theta", student = "sigma")

# Is log p concave in f, so that there is one mode and no W is negative?
is_log_concave <- function(likelihood) likelihood$name != "student"

is_laplace <- function(fit) !is.null(fit$likelihood)

is_variational <- function(likelihood) identical(likelihood$approx, "vi")

# Is it the exact process's Laplace posterior, to rounding?
is_laplace_limit <- function(fit) {
  is_laplace(fit) && !is_variational(fit$likelihood) && isTRUE(fit$unexplained < 1e-8)
}

has_trials <- function(fit) isTRUE(fit$likelihood$trials)

# Is each response one of two?
has_classes <- function(fit) fit$likelihood$name == "binomial" && !has_trials(fit)

# Every function that is made for Gaussian noise alone says so.
refuse_likelihood <- function(fit, argument, what = "This") {
  if (!is_laplace(fit)) return(fit)
  abort_input(argument, sprintf("a fit with family %s", fit$likelihood$name), "a fit with Gaussian noise",
              message = sprintf("%s is for Gaussian noise, and `%s` has a %s response.", what, argument,
                                response_kind(fit$likelihood)),
              hint = "certify() bounds errors, evidence_bounds() the evidence, cross_validate() compares predictions.")
}

response_kind <- function(likelihood) {
  switch(likelihood$name, nb = "negative binomial", student = "Student-t", poisson = "Poisson", likelihood$name)
}

# Words for the approximation of the posterior: in titles, for estimation and for the value of logLik().
words_for <- function(likelihood) {
  if (is_variational(likelihood)) {
    c(by = "variational approximation", learned = "variational lower bound, with priors",
      evidence = "variational lower bound")
  } else {
    c(by = "Laplace approximation", learned = "Laplace log marginal likelihood, with priors", evidence = "Laplace")
  }
}

# What bounds the distance from Laplace's posterior has nothing to say of another.
refuse_variational <- function(fit, argument = "fit") {
  if (!is_variational(fit$likelihood)) return(invisible())
  abort_input(argument, "a fit by variational inference", "one by Laplace's approximation",
              hint = paste("What is certified is a distance from the exact process's Laplace posterior:",
                           "update(fit, approx = \"laplace\") has it. evidence_bounds() knows this fit."))
}

# ---- responses ------------------------------------------------------------------------------------------------------

# list(response, y, size, weight, levels): what residuals are taken of (a share of successes), successes or counts,
# trials, weights that multiply log likelihoods; the last two NULL where all are 1.
read_response <- function(likelihood, response, weights, argument, n) {
  out <- if (likelihood$name == "binomial") read_binomial(response, weights, argument, n) else
    list(y = if (likelihood$name == "student") check_vector(response, argument, n) else
      read_counts(response, argument, n), weight = weights)
  out$response <- if (is.null(out$size)) out$y else ifelse(out$size > 0, out$y / pmax(out$size, 1e-300), 0)
  if (!is.null(out$weight) && all(out$weight == 1)) out["weight"] <- list(NULL)
  out
}

# Responses of further rows: classes by the names that the fit has for them.
known_classes <- function(fit, response) {
  levels <- fit$likelihood$levels
  if (!is.factor(response) && !is.character(response)) return(response)
  unknown <- setdiff(unique(as.character(response)), c(levels, NA))
  if (length(unknown)) {
    abort_input("newdata", sprintf("the class %s", list_quoted(unknown, "\"")), "of the two classes of the fit")
  }
  as.double(as.character(response) == levels[2L])
}

read_counts <- function(response, argument, n) {
  if (is.factor(response) || is.character(response) || is.logical(response)) {
    abort_input(argument, describe(response), "counts: whole numbers of at least 0")
  }
  y <- check_vector(response, argument, n)
  bad <- which(y < 0 | y != round(y) | y > 1e9)
  if (length(bad)) {
    abort_input(argument, sprintf("%s (element %d)", format(y[bad[1L]]), bad[1L]),
                "counts: whole numbers from 0 to 1e9")
  }
  y
}

read_binomial <- function(response, weights, argument, n) {
  if (length(dim(response)) == 2L && ncol(response) == 2L) return(read_pairs(response, weights, argument, n))
  levels <- NULL
  if (is.character(response)) response <- factor(response)
  if (is.factor(response)) {
    levels <- base::levels(response)
    if (length(levels) != 2L) {
      abort_input(argument, sprintf("a factor with %d level%s (%s)", length(levels), plural_s(length(levels)),
                                    list_quoted(levels, "\"")), "a factor with two levels",
                  hint = if (length(levels) > 2L) "More than two classes are not fitted.")
    }
    response <- as.double(response == levels[2L])
  } else if (is.logical(response)) {
    levels <- c("FALSE", "TRUE")
    response <- as.double(response)
  }
  y <- check_vector(response, argument, n)
  bad <- which(y < 0 | y > 1)
  if (length(bad)) {
    abort_input(argument, sprintf("%s (element %d)", format(y[bad[1L]]), bad[1L]),
                "two classes, shares of successes between 0 and 1, or cbind(successes, failures)")
  }
  if (all(y == 0 | y == 1)) return(list(y = y, weight = weights, levels = levels))
  if (is.null(weights)) {
    abort_input("weights", "none beside shares of successes", "the number of trials of each row")
  }
  successes <- y * weights
  if (any(abs(successes - round(successes)) > 1e-3)) {
    warn_small("non-integer numbers of successes: `weights` times the response are not whole")
  }
  list(y = successes, size = weights)
}

read_pairs <- function(response, weights, argument, n) {
  pairs <- check_matrix(response, argument)
  bad <- which(pairs < 0 | pairs != round(pairs), arr.ind = TRUE)
  if (nrow(pairs) != n) abort_input(argument, sprintf("%d rows", nrow(pairs)), sprintf("of %d rows", n))
  if (nrow(bad)) {
    abort_input(argument, sprintf("%s in row %d", format(pairs[bad[1L, , drop = FALSE]]), bad[1L, 1L]),
                "numbers of successes and failures: whole, and at least 0")
  }
  size <- unname(rowSums(pairs))
  # a row without trials says nothing, and is left out as one of weight 0
  if (any(size == 0)) weights <- (if (is.null(weights)) 1 else weights) * (size > 0)
  list(y = unname(pairs[, 1L]), size = size, weight = weights)
}

# The rows in use, to data$sites. `read`: of read_response(), of all rows given.
with_sites <- function(data, read, offset) {
  used <- if (is.null(data$prior_weights)) TRUE else data$prior_weights > 0
  of <- function(v) if (!is.null(v)) unname(v[used])
  data$offset <- offset
  data$sites <- list(y = of(read$y), size = of(read$size), weight = of(read$weight),
                     offset = if (is.null(offset)) numeric(nrow(data$x)) else of(offset))
  if (!is.null(data$sites$weight) && all(data$sites$weight == 1)) data$sites["weight"] <- list(NULL)
  data$levels <- read$levels
  data
}

take_sites <- function(sites, rows) lapply(sites, function(v) if (!is.null(v)) v[rows])

# Tells rows from others: with data_signature(), which sees the inputs, shares and weights.
sites_sum <- function(sites) {
  vapply(sites[c("y", "size", "offset")], function(v) if (is.null(v)) 0 else sum(v * cos(seq_along(v))), 0)
}

# What the engine reads. f of a negative binomial response is there the log of the rate over theta; of Student's t it is
# without offset and mean, which are taken off y: responses far from 0 lose no digits in each row's y - f.
engine_sites <- function(likelihood, sites, center) {
  out <- list(name = likelihood$site, y = as.double(sites$y), size = sites$size, weight = sites$weight,
              offset = sites$offset + center, shape = NULL,
              variational = as.integer(is_variational(likelihood)))
  if (likelihood$name == "student") {
    out$shape <- c(likelihood$df, likelihood$theta)
    out$y <- out$y - out$offset
    out$offset <- 0 * out$offset
  }
  if (likelihood$name == "nb") {
    out$size <- rep(likelihood$theta, length(out$y))
    out$offset <- out$offset - log(likelihood$theta)
  }
  out
}

# What the engine leaves out of log p: it has no f.
log_constant <- function(likelihood, sites) {
  y <- sites$y
  w <- if (is.null(sites$weight)) 1 else sites$weight
  each <- switch(likelihood$name,
    binomial = if (is.null(sites$size)) 0 else lchoose(sites$size, y),
    poisson = -lgamma(y + 1), student = student_constant(likelihood$df, likelihood$theta),
    # log Gamma(y + theta) / (Gamma(theta) y!), whose terms may be far larger
    nb = ifelse(y > 0, -lbeta(pmax(y, 1), likelihood$theta) - log(pmax(y, 1)), 0))
  w * each + 0 * y
}

# Slope of the penalised evidence, or of the variational bound, in log theta, from what the engine has at the rows of
# its `sites`.
theta_slope <- function(likelihood, sites, at) {
  w <- if (is.null(sites$weight)) 1 else sites$weight
  slopes <- function(f) {
    if (likelihood$name == "nb") nb_slopes(likelihood$theta, sites$y, f) else
      student_slopes(likelihood$df, likelihood$theta, sites$y - f)
  }
  if (is_variational(likelihood)) {
    return(sum(w * normal_average(function(f) slopes(f)$l, at$f, sqrt(at$q + at$left))))
  }
  slope <- slopes(at$f)
  of_penalty <- ifelse(at$W > 0, at$left / (1 + at$left * pmax(at$W, 0)), 0)
  sum(w * (slope$l + at$p * slope$g - slope$W * (at$q + of_penalty) / 2))
}

# Derivatives of l (its constant included), g and W along d log theta: n = y + theta grows by theta, f (with offset, log
# theta taken off) falls by 1; p the probability there.
nb_slopes <- function(theta, y, f) {
  n <- y + theta
  p <- stats::plogis(f)
  q <- stats::plogis(-f)
  list(l = theta * (digamma(n) - digamma(theta) + stats::plogis(-f, log.p = TRUE)) - (y - n * p),
       g = -theta * p + n * p * q, W = theta * p * q - n * p * q * (q - p))
}

# The constant mean to start from.
center_start <- function(likelihood, sites) {
  w <- if (is.null(sites$weight)) 1 else sites$weight
  if (likelihood$name == "binomial") {
    size <- if (is.null(sites$size)) 1 else sites$size
    return(linkfun(likelihood)((sum(w * sites$y) + 0.5) / (sum(w * size + 0 * sites$y) + 1)) -
             mean(sites$offset))
  }
  if (likelihood$name == "student") return(stats::median(sites$y - sites$offset))
  top <- max(sites$offset)
  log(sum(w * sites$y) + 0.5) - log(sum(w * exp(sites$offset - top)) + 0.5) - top
}

# ---- the response's scale -------------------------------------------------------------------------------------------

linkfun <- function(likelihood) {
  switch(likelihood$link, logit = stats::qlogis, probit = stats::qnorm, log = log, identity = identity)
}

linkinv <- function(likelihood) {
  switch(likelihood$link, logit = stats::plogis, probit = stats::pnorm, log = exp, identity = identity)
}

# list(mean, sd) of the probability or the rate where f ~ N(mu, v)
response_moments <- function(likelihood, mu, v) {
  if (likelihood$link == "identity") return(list(mean = mu, sd = sqrt(v)))
  if (likelihood$link == "log") {
    rate <- exp(mu + v / 2)
    return(list(mean = rate, sd = rate * sqrt(expm1(v))))
  }
  s <- sqrt(v)
  if (likelihood$link == "probit") {
    mean <- stats::pnorm(mu / sqrt(1 + v))
    wide <- which(s > 4)
    narrow <- setdiff(seq_along(mu), wide)
    square <- 0 * mu
    square[narrow] <- normal_average(function(f) stats::pnorm(f)^2, mu[narrow], s[narrow])
    for (t in seq(-9, 9, by = 0.1)) { # by parts: the slope of Phi^2 times P(f > t)
      mass <- 0.1 * 2 * stats::dnorm(t) * stats::pnorm(t)
      square[wide] <- square[wide] + mass * stats::pnorm((mu[wide] - t) / s[wide])
    }
    return(list(mean = mean, sd = sqrt(pmax(square - mean^2, 0))))
  }
  # where f varies by little its own average is smooth, elsewhere that over the logistic distribution is
  mean <- slope <- 0 * mu
  wide <- which(s > 4)
  narrow <- setdiff(seq_along(mu), wide)
  mean[narrow] <- normal_average(stats::plogis, mu[narrow], s[narrow])
  slope[narrow] <- normal_average(stats::dlogis, mu[narrow], s[narrow])
  at <- seq(-40, 40, by = 0.25)
  for (t in at) {
    mass <- 0.25 * stats::dlogis(t)
    mean[wide] <- mean[wide] + mass * stats::pnorm((mu[wide] - t) / s[wide])
    slope[wide] <- slope[wide] + mass * stats::dnorm((mu[wide] - t) / s[wide]) / s[wide]
  }
  list(mean = mean, sd = sqrt(pmax(mean - slope - mean^2, 0))) # p^2 = p - p (1 - p)
}

# the same, NA where it is not known
moments_of <- function(likelihood, mean, var) {
  known <- !is.na(mean)
  out <- list(mean = mean, sd = mean)
  found <- response_moments(likelihood, mean[known], var[known])
  out$mean[known] <- found$mean
  out$sd[known] <- found$sd
  out
}

# E h(f), f ~ N(mu, s^2): the trapezoid rule, which is as good as exact for what is analytic
normal_average <- function(h, mu, s) {
  out <- 0 * mu
  for (z in seq(-9, 9, by = 0.1)) out <- out + 0.1 * stats::dnorm(z) * h(mu + s * z)
  out
}

# log of the average of p(y | f) where f ~ N(mu, v), a number a row of `sites` (whose offset is in mu): the trapezoid
# rule around the mode of the product.
log_predictive <- function(likelihood, sites, mu, v) {
  if (likelihood$name == "student") return(student_predictive(likelihood$df, likelihood$theta, sites$y, mu, v))
  sites$offset <- numeric(length(mu))
  plain <- engine_sites(likelihood, sites, 0)
  at <- function(f) native_likelihood(plain, f + plain$offset)
  v <- pmax(v, 1e-12)
  f <- mu
  for (i in 1:100) {
    d <- at(f)
    step <- (d[2L, ] - (f - mu) / v) / (d[3L, ] + 1 / v)
    step <- pmax(pmin(step, 2), -2) # exp() in the slope: no further than it can be trusted
    f <- f + step
    if (all(abs(step) < 1e-8)) break
  }
  s <- 1 / sqrt(at(f)[3L, ] + 1 / v)
  grid <- seq(-12, 12, by = 0.1)
  logs <- vapply(grid, function(z) at(f + s * z)[1L, ] + stats::dnorm(f + s * z, mu, sqrt(v), log = TRUE), 0 * mu)
  logs <- matrix(logs, length(mu))
  top <- logs[cbind(seq_along(mu), max.col(logs, "first"))]
  top + log(rowSums(exp(logs - top)) * 0.1 * s) + log_constant(likelihood, sites)
}
