# Predicts training rows from the other rows (leave-one-out), and scores predictive distributions.

#' Compute leave-one-out predictions, leverage and influence
#'
#' Each training row is predicted as if it had weight 0 in the fit (with neighbours, only roughly); the mean that
#' centres the response includes the row. Hyperparameters and inducing points were learned with the row, which is
#' optimistic for few rows. [cross_validate()] learns them again.
#' @details
#' | Function | Value for each row |
#' | --- | --- |
#' | `predict(fit, type = "loo")` | mean of the response; `type = "loo_latent"`: mean of f |
#' | `residuals(fit, type = "loo")` | response minus its leave-one-out mean |
#' | `residuals(fit, type = "pit")` | probability of a smaller response, ties at random: uniform if the model holds |
#' | `rstandard()` | leave-one-out residual divided by its sd |
#' | `rstudent()` | as `rstandard()`, scale of kernel and noise from other rows (n - p - 1 degrees of freedom) |
#' | `hatvalues()` | leverage; the sum over rows is the effective degrees of freedom |
#' | `cooks.distance()` | weighted squared change of all fitted values without the row, scaled as in [lm()] |
#' | `dfbetas()` | change of the p coefficients of a linear `mean` (constant: p = 1), divided by their sd |
#'
#' With a transform, `rstandard()`, `rstudent()`, `hatvalues()`, `cooks.distance()` and `dfbetas()` refer to the
#' transformed response. If rows are copies of one another, each is predicted from its copies, which is too optimistic;
#' a message reports this. Non-Gaussian families use the approximate posterior, and `rstudent()` returns the values of
#' `rstandard()`. Fits with neighbours lack `rstudent()`, `cooks.distance()` and `dfbetas()`; unordered classes have
#' `hatvalues()` and the first two rows of the table. Rows of weight 0 or not in a [gp_subsample()] have leverage 0.
#' Time is \eqn{O(n m^2)} with m inducing points, else \eqn{O(n^3)}.
#' @usage
#' \method{rstandard}{gp_fit}(model, ...)
#' \method{rstudent}{gp_fit}(model, ...)
#' \method{hatvalues}{gp_fit}(model, ...)
#' \method{cooks.distance}{gp_fit}(model, ...)
#' \method{dfbetas}{gp_fit}(model, ...)
#' @param model,... a fit with its data; `...` is not used.
#' @return A vector with an element for each row, in the order of the data; `dfbetas()`, probabilities and log odds of
#'   classes are matrices with a row for each row. Rows that `na.exclude` omitted have `NA`.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' sqrt(mean(residuals(fit, type = "loo")^2)) # prediction error, in units of dist
#' sum(hatvalues(fit))                        # effective degrees of freedom
#' which.max(cooks.distance(fit))
#' hist(residuals(fit, type = "pit"))         # high in the middle: intervals are too wide
#' @seealso [cross_validate()], [predict.gp_fit()], `vignette("theory")`
#' @aliases rstandard.gp_fit hatvalues.gp_fit cooks.distance.gp_fit rstudent.gp_fit dfbetas.gp_fit
#' @name leave_one_out
NULL

# Returns for each row: mean (with offset) and variance of f given all other rows, residual (response minus mean), noise
# variance and leverage, in units of y (of f if not Gaussian). A row of weight 0 has noise variance NA. Its prediction
# is the ordinary one for Gaussian noise, else NA. For several classes, mean and variance are matrices of log odds.
loo_rows <- function(fit) {
  data <- training_data(fit)
  copy <- copies_in(data) # a row's copies predict the row
  if (!is.null(copy)) {
    tell_classed("copies", sprintf(paste(
      "%d of %d rows repeat an earlier row (same inputs and response). Leave-one-out predicts them from that row and",
      "is too optimistic. cross_validate() leaves out such rows together."), length(copy) - max(copy), length(copy)))
  }
  loo <- posterior_without(posterior_of(fit))
  lost <- sum(is.nan(rowSums(as.matrix(loo$mean))))
  if (lost > 0) {
    tell_classed("leverage", sprintf(paste(
      "%d of %d rows have leverage 1 up to rounding, because of their weights. Their leave-one-out values cannot be",
      "computed and are NaN; scores leave these rows out."), lost, data$n))
  }
  w <- weights_given(data)
  hat <- all_rows(data, loo$leverage, 0)
  if (is.matrix(loo$mean)) {
    each <- function(v) apply(v, 2L, function(one) all_rows(data, one, NA_real_))
    return(c(lapply(as_log_odds(loo, fit$center), each), list(noise = all_rows(data, 1, NA_real_) / w, hat = hat)))
  }
  offset <- data$offset %||% numeric(length(w))
  at_zero <- if (is.null(fit$likelihood) && !is.null(data$x_zero)) latent_at(fit, data$x_zero) else
    list(mean = NA_real_, var = NA_real_)
  used <- if (is.null(data$sites)) offset[w > 0] else data$sites$offset
  mean <- all_rows(data, fit$center + in_units(fit, loo$mean) + used, at_zero$mean + offset[w == 0])
  list(mean = mean, var = all_rows(data, in_units(fit, pmax(loo$var, 0), 2), at_zero$var),
       residual = data$response - mean, noise = fit$noise / replace(w, w == 0, NA),
       spread = noise_law(fit, training_inputs(data))$spread, hat = hat)
}

standardised <- function(loo) loo$residual / sqrt(loo$var + loo$noise)

# Returns the number of trials of each row, or 1 if there are none. Rows of weight 0, which a fit drops, get `dropped`.
sizes_given <- function(data, dropped = 1) all_rows(data, data$sites$size %||% 1, dropped)

weights_given <- function(data) data$prior_weights %||% rep(1, length(data$response))

root_mean_square <- function(e) sqrt(mean(e^2, na.rm = TRUE))

# Returns an S3 method that checks its argument `model` and returns answer(model), a value for each row of the data.
loo_method <- function(answer) {
  function(model, ...) {
    check_dots_empty()
    model <- check_any_fit(model, "model")
    training_data(model, "model")
    stats::naresid(model$na.action, answer(model))
  }
}

# Returns the posterior of a fit. Stops if the fit has neighbours, because then a row's effect on others is unknown.
posterior_of_rows <- function(model) {
  if (is.null(model$near)) return(posterior_of(model))
  abort_input("model", "uses nearest neighbours",
              hint = "Fit with neighbours = 0. rstandard() and hatvalues() work for this fit.")
}

# Returns leave-one-out residuals divided by their sds, for any likelihood, or NA for rows of weight 0.
residuals_in_sds <- function(model) {
  response <- response_of(model)
  refuse_classes(model)
  check_distribution(model)
  loo <- loo_rows(model)
  if (response$conjugate) return(standardised(loo))
  data <- training_data(model)
  p <- response_moments(response, loo$mean, loo$var)
  # The variance of an ordered response does not depend on its weight.
  var <- if (is.null(response$variance)) variance_of_class(response, loo$mean, sqrt(loo$var)) else
    response$variance(p$mean, p$sd, sizes_given(data), response$theta) / weights_given(data) + p$sd^2
  (data$response - p$mean) / sqrt(var)
}

#' @export
rstandard.gp_fit <- loo_method(residuals_in_sds)

# Omits messages on leave-one-out predictions, such as those on copies of rows.
#' @export
hatvalues.gp_fit <- loo_method(function(model) suppressMessages(loo_rows(model)$hat, classes = "pfdtc_message"))

#' @export
cooks.distance.gp_fit <- loo_method(function(model) {
  p <- posterior_of_rows(model)
  part <- without_rounded(row_parts(p))
  all_rows(training_data(model), (part$g / part$rest)^2 * squared_moves(p)[part$group] / sum(part$W * part$q), 0)
})

#' @export
rstudent.gp_fit <- loo_method(function(model) {
  r <- residuals_in_sds(model)
  if (response_of(model)$conjugate) r / scale_without(model, r) else r
})

#' @export
dfbetas.gp_fit <- loo_method(function(model) {
  p <- posterior_of_rows(model)
  b <- mean_functionals(refuse_classes(model))
  refuse_if(is.null(b), "model", "has no linear mean", hint = "Fit with `mean = ~ x` to have coefficients.")
  part <- without_rounded(row_parts(p))
  fun <- some_functionals(b$fun, seq_along(b$names))
  change <- covariance_with_rows(p, fun)[part$group, , drop = FALSE] * (part$g / part$rest)
  change <- in_units(model, change %*% t(b$to)) / rep(mean_coefficients(model)$sd, each = nrow(change))
  scale <- if (response_of(model)$conjugate) scale_without(model, standardised(loo_rows(model))) else 1
  structure(apply(change, 2L, function(v) all_rows(model$data, v, 0)) / scale,
            dimnames = list(names(model$data$response), b$names))
})

# Returns for each row the factor by which the sds of kernel and noise would change if estimated from the other rows:
# the root of (y'K^{-1} y - r^2) / (n - p - 1), as in rstudent() of lm(). K is the covariance of the n responses y, r
# the row's standardised residual, p the number of coefficients of the mean. For a row outside a subsample, the factor
# is the root of y'K^{-1} y / (n - p). y'K^{-1} y is computed as sum(g y), g = K^{-1} y.
scale_without <- function(fit, r) {
  p <- posterior_of_rows(fit)
  part <- row_parts(p)
  used <- part$q > 0 # FALSE for rows outside of a subsample
  coefficients <- max(length(mean_functionals(fit)$names), fit$center != 0)
  seen <- all_rows(training_data(fit), as.double(used), 0)
  rest <- sum(used) - coefficients - seen
  sqrt(pmax(sum(part$g * responses_used(p)$y) - seen * r^2, 0) / replace(rest, rest <= 0, NaN))
}

# Returns scores of leave-one-out predictions of the training rows or, if `seen`, of ordinary predictions. If `each`,
# returns those of score_each() for each row, with the number of the row and the predicted mean of f.
training_scores <- function(fit, seen = FALSE, each = FALSE) {
  data <- training_data(fit)
  response <- response_of(fit)
  f <- if (seen) latent_at(fit, data$x) else loo_rows(fit)
  if (seen) f$mean <- f$mean + data$sites$offset # the offset is 0 for several classes
  used <- which(!is.na(rowSums(as.matrix(f$mean)) + if (seen) 0 else f$noise)) # rows of positive weight
  y <- if (response$conjugate) list(y = unname(given_response(data)[used])) else
    lapply(data$sites[c("y", "size")], function(v) if (seen || is.null(v)) v else unname(all_rows(data, v, NA)[used]))
  f <- take_rows_of(f[intersect(c("mean", "var", "noise", "spread"), names(f))], used)
  scores <- score_each(response, y, f)
  if (each) c(scores, list(row = used, f = f$mean)) else summarise_scores(response, scores)
}

# Judges a family by leave-one-out predictions. Returns list(misfit, fit, rows) with the judged fit (of random rows if
# `fit` has more than dense_rows) and its rows. rival_if_better() rejects the family if `misfit` exceeds rival$beyond.
# Poisson counts: mean square of Pearson residuals minus 1, in standard errors; a square has variance 2 + 1 / mean.
# Ordered classes: the largest (X - r) / sqrt(2 r) of a class, where X is the score statistic of r further effects
# (inputs and their squares) on the log odds of this class alone: chi-squared with r degrees of freedom.
# Gaussian: the largest distance of a residual of T(y) from the median of residuals, in mads. The list also has `scores`
# and `family`, the rival for residuals of y.
misfit_of <- function(fit) {
  n <- length(fit$data$response)
  rows <- if (n > dense_rows) with_fixed_seed(sort(sample.int(n, laplace_sizes$few_rows))) else seq_len(n)
  if (length(rows) < n) fit <- drop_rows(fit, seq_len(n)[-rows])
  response <- response_of(fit)
  if (response$kind == "ordered") {
    loo <- loo_shares(fit)
    x <- fit$data$x[loo$row, , drop = FALSE]
    z <- scale(cbind(x, scale(x)^2)) # NaN for constant inputs
    z <- z[, is.finite(colSums(z)), drop = FALSE]
    each <- vapply(seq_len(ncol(loo$p)), function(k) {
      sd <- sqrt(pmax(loo$p[, k] * (1 - loo$p[, k]), 1e-10))
      effects <- qr(z * sd)
      (sum(qr.fitted(effects, ((loo$y == k) - loo$p[, k]) / sd)^2) - effects$rank) / sqrt(2 * effects$rank)
    }, 0)
    return(list(misfit = max(each), fit = fit, rows = rows))
  }
  if (response$conjugate) {
    scores <- training_scores(fit, each = TRUE)
    r <- transformed(fit$transform, scores$y) - scores$f
    shape <- response$rival$shape(scores$y - untransformed(fit$transform, scores$f))
    return(list(misfit = max(abs(r - stats::median(r))) / stats::mad(r), fit = fit, rows = rows, scores = scores,
                family = do.call(response$rival$family, shape)))
  }
  loo <- loo_rows(fit)
  known <- !is.na(loo$mean) # rows of weight 0 have no prediction
  m <- response_moments(response, loo$mean[known], loo$var[known])
  square <- (unname(fit$data$response[known]) - m$mean)^2 / (m$sd^2 + m$mean)
  used <- which(!is.na(square))
  list(misfit = sum(square[used] - 1) / sqrt(sum(2 + 1 / m$mean[used])), fit = fit)
}

# Returns list(p, y, own, row) for the training rows with a leave-one-out prediction: its probabilities of all classes,
# the row's class, the probability of this class, and the number of the row of data$x.
loo_shares <- function(fit) {
  p <- class_chances(response_of(fit), loo_rows(fit))$mean
  known <- which(!is.na(p[, 1L]))
  data <- training_data(fit)
  of <- function(v) unname(all_rows(data, v, NA))[known]
  y <- of(data$sites$y)
  list(p = p[known, , drop = FALSE], y = y, own = p[cbind(known, y)], row = of(seq_len(nrow(data$x))))
}

# If the data are a table of counts of classes, returns a number for each row, equal for rows with equal inputs; else
# NULL. If a row of such a table were left out alone, all cases of one class at its inputs would be missing.
rows_of_table <- function(fit, data) {
  w <- weights_given(data)
  if (any(w > 1) && all(w == round(w)) && response_of(fit)$kind %in% c("labels", "ordered")) equal_rows(data$x)
}

# Scores responses y = list(y, size) under predictions with f ~ N(f$mean, f$var). A Gaussian likelihood has the noise
# variance f$noise, whose log has the variance f$spread. Returns a row for each response: y (a share of `size` trials),
# mean and sd of its predictive distribution, log density, CRPS, P(< y) as `below` and P(<= y) as `upto`. The CRPS of a
# non-Gaussian likelihood takes milliseconds a row, and is NA unless `crps` is TRUE. For unordered classes `mean` is the
# probability of the observed class. For several classes, `error` is the sum of squared differences between the
# probabilities and 1 (observed class) or 0 (others); `right` is TRUE if the observed class is the likeliest.
score_each <- function(response, y, f, crps = response$conjugate) {
  own <- cbind(seq_along(y$y), y$y)
  errors_of_classes <- function(p) {
    data.frame(error = rowSums((replace(0 * p, own, 1) - p)^2), right = max.col(p, "first") == y$y)
  }
  if (response$kind == "labels") {
    p <- class_moments(f)
    return(data.frame(y = y$y, size = 1, mean = p$mean[own], sd = p$sd[own], density = log(p$mean[own]),
                      crps = NA_real_, below = NA_real_, upto = NA_real_, errors_of_classes(p$mean)))
  }
  size <- y$size %||% rep(1, length(y$y))
  f <- list(mean = unname(f$mean), var = unname(f$var), noise = f$noise, spread = f$spread, size = size)
  m <- if (response$conjugate) new_moments(response, f) else response_moments(response, f$mean, f$var)
  ends <- pit_ends(response, y$y, f)
  # The error of a censored response is unknown.
  seen <- if (has_ends(response)) ifelse(y$y == size, y$y, NA) else y$y
  if (crps && !response$conjugate) crps <- !is.null(response$cdf) && !anyNA(seen)
  each <- data.frame(y = seen / if (response$reads == "classes") pmax(size, 1) else 1, size = size, mean = m$mean,
                     sd = m$sd, density = response_log_density(response, y, f),
                     crps = if (crps) response_crps(response, y$y, f) else NA_real_, ends)
  if (response$kind != "ordered") return(each)
  cbind(each, errors_of_classes(class_shares(response, f$mean, sqrt(pmax(f$var, 0)))))
}

pit_ends <- function(response, y, f) {
  if (response$conjugate) {
    upto <- noisy_cdf(transformed(response$transform, y) - f$mean, f)
    return(data.frame(below = upto, upto = upto))
  }
  cdf <- function(y) predictive_cdf(response, y, f$size, f$mean, sqrt(pmax(f$var, 0)))
  if (is.null(response$cdf)) return(data.frame(below = NA_real_ * y, upto = NA_real_ * y))
  if (has_ends(response)) return(data.frame(below = cdf(y), upto = cdf(f$size)))
  upto <- cdf(y)
  below <- if (response$discrete) cdf(y - 1) else if (isTRUE(response$zeros)) ifelse(y > 0, upto, 0) else upto
  data.frame(below = below, upto = upto)
}

# Returns one row of scores from the rows of score_each(): n, rmse, nlpd and crps. For classes and trials it also has
# accuracy and brier, the mean squared difference between outcomes of trials and probabilities. cover50 and cover95 are
# the shares of responses in central 50 % and 95 % intervals, or NA for unordered classes.
summarise_scores <- function(response, each) {
  p <- each$mean
  labels <- response$kind == "labels"
  trials <- response$reads == "classes"
  several <- labels || response$kind == "ordered"
  brier <- if (several) mean(each$error) else
    sum(each$size * (each$y * (1 - p)^2 + (1 - each$y) * p^2)) / sum(each$size)
  right <- if (several) each$right else (p > 0.5) == (each$y > 0.5)
  inside <- function(level) {
    if (labels || response$kind == "classes") return(NA_real_)
    mean(each$upto >= (1 - level) / 2 & each$below < (1 + level) / 2)
  }
  data.frame(n = nrow(each),
             rmse = if (labels || all(is.na(each$y - p))) NA_real_ else sqrt(mean((each$y - p)^2, na.rm = TRUE)),
             nlpd = -mean(each$density), crps = mean(each$crps), brier = if (several || trials) brier else NA_real_,
             accuracy = if (several || trials) mean(right) else NA_real_, cover50 = inside(0.5), cover95 = inside(0.95))
}

# Returns the continuous ranked probability score of each response, the integral of (F(t) - 1{y <= t})^2 over t, where F
# is the predictive distribution function. Numbers of successes are divided by the numbers of trials, f$size.
response_crps <- function(response, y, f) {
  if (response$conjugate && is.null(response$transform) && !is_spread(f)) {
    sd <- sqrt(f$var + f$noise)
    z <- (y - f$mean) / sd
    return(sd * (z * (2 * stats::pnorm(z) - 1) + 2 * stats::dnorm(z) - 1 / sqrt(pi)))
  }
  if (!length(y)) return(numeric())
  sd <- sqrt(if (response$conjugate) f$var + f$noise else pmax(f$var, 0))
  if (!is.null(response$averaged$crps)) {
    out <- response$averaged$crps(response$theta, y, f$mean, sd)
    rest <- which(is.na(out))
    response$averaged$crps <- NULL
    return(replace(out, rest, response_crps(response, y[rest], lapply(f[c("mean", "var", "size")], `[`, rest))))
  }
  if (response$discrete)
    return(crps_of_counts(response, y, f$size, f$mean, sd) / if (response$reads == "classes") f$size else 1)
  noisy <- lapply(Filter(length, list(var = f$var, noise = f$noise, spread = f$spread)), rep_len, length(y))
  cdf <- function(n, t) { # `n` has the row of each t
    if (!response$conjugate) return(predictive_cdf(response, t, f$size[n], f$mean[n], sd[n]))
    noisy_cdf(transformed(response$transform, t) - f$mean[n], take_rows_of(noisy, n))
  }
  # Find ends such that each tail of the distribution beyond them has the probability 1e-6 (with heavy tails, more).
  ends <- matrix(vapply(c(1e-6, 1 - 1e-6), function(p) {
    if (response$conjugate) return(untransformed(response$transform, f$mean + sd * stats::qnorm(p)))
    predictive_quantile(response, p, f$size, f$mean, sd)
  }, numeric(length(y))), ncol = 2L)
  blocks <- blocks_of(seq_along(y), 256L)
  positive <- response$reads %in% c("positive", "times") || identical(response$transform$kind, "log")
  unlist(lapply(blocks, function(n) crps_by_halves(cdf, n, y[n], ends[n, , drop = FALSE], positive)), use.names = FALSE)
}

# Returns the CRPS of each count y, the sum over whole numbers t of (P(Y <= t) - 1{y <= t})^2. If t has many values, the
# square is interpolated between some values of t: those near y and the median, or equally spaced in log(t).
crps_of_counts <- function(response, y, size, mu, s) {
  out <- if (response$kind == "ordered") NA * y else vapply(seq_along(y), function(i) {
    crps_by_masses(response, y[i], size[i], mu[i], max(s[i], 1e-6), response$from %||% 0)
  }, 0)
  rest <- which(is.na(out))
  # The first and last of `ends` leave out tails of at most 1e-6: 5e-7 for f, and 5e-7 for a count given f.
  ends <- matrix(vapply(c(5e-7, 0.5, 1 - 5e-7), function(p) {
    quantile_given(response, p, size[rest], mu[rest], s[rest])
  }, 0 * rest), ncol = 3L)
  area <- function(t, upto, y) {
    square <- (upto - (y <= t))^2
    rise <- diff(square)
    square[1L] + sum(diff(t) * (square[-1L] - rise / 2) + rise / 2)
  }
  wide <- which(response$reads == "counts" & s[rest] >= 0.5)
  if (length(wide)) {
    n <- rest[wide]
    t <- c(0, y[n] - 1, y[n], round(exp(seq(0, log(max(ends[wide, 3L], y[n])) + 0.1, by = min(s[n] / 16, 0.05)))))
    t <- sort(unique(t[t >= 0]))
    upto <- cdf_of_wide(response, t, mu[n], s[n])
    out[n] <- vapply(seq_along(n), function(i) area(t, upto[, i], y[n[i]]), 0)
  }
  away <- unique(round(c(0:20, 20 * 1.12^(1:700))))
  for (k in setdiff(seq_along(rest), wide)) {
    i <- rest[k]
    from <- max(min(ends[k, 1L], y[i]) - 1, 0)
    to <- max(ends[k, 3L], y[i])
    t <- c(from, to, outer(c(y[i], ends[k, 2L]), c(-away, away), `+`))
    t <- sort(unique(t[t >= from & t <= to]))
    same <- rep(1, length(t))
    out[i] <- area(t, predictive_cdf(response, t, size[i] * same, mu[i] * same, s[i] * same), y[i])
  }
  out
}

# Returns the CRPS of one count y, a sum over counts t, or NA if this needs more than 2e5 probabilities. P(Y <= t)
# averages over f by the trapezoid rule, with steps below the sd of f and 1 / sqrt(W), W = -d^2 log p(y | f) / df^2.
crps_by_masses <- function(response, y, size, mu, s, least) {
  values <- function(y, f) { # log p and W at all pairs of a count and an f
    sites <- engine_sites(response$likelihood, list(y = y, size = rep(size, length(y)), offset = 0 * y), 0)
    pairs <- intersect(c("y", "size", "offset"), names(sites))
    sites[pairs] <- lapply(sites[pairs], rep, length(f))
    at <- native_likelihood(sites, rep(f, each = length(y)) + sites$offset)
    list(log = matrix(at[1L, ] + sites$constant, length(y)), W = at[3L, ])
  }
  from <- max(min(quantile_given(response, 5e-7, size, mu, s), y), least)
  to <- max(quantile_given(response, 1 - 5e-7, size, mu, s), y)
  wide <- mu + s * seq(-5.5, 5.5, by = 0.5)
  at_mean <- round(response$link$inv(wide) * if (response$reads == "classes") size else 1)
  width <- 1 / sqrt(max(values(unique(pmin(pmax(at_mean, from), to)), wide)$W))
  steps <- 1 + ceiling(11 / 0.8 * max(1, s / width))
  if (!isTRUE((to - from + 1) * steps < 2e5)) return(NA_real_)
  z <- seq(-5.5, 5.5, length.out = steps)
  t <- from:to
  mass <- exp(values(t, mu + s * z)$log)
  weight <- stats::dnorm(z)
  sum((cumsum(drop(mass %*% weight) / sum(weight)) - (y <= t))^2)
}
