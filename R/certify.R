# Implements certify(), which bounds the mean and sd of the exact Gaussian process, and laplace_check().

#' Certify predictions: guaranteed intervals for the exact GP
#'
#' Returns intervals that are guaranteed to contain the posterior mean and sd of the exact Gaussian process at every row
#' of `newdata`. The guarantee is about the approximation, not the choice of the model.
#' For a non-Gaussian `family`, "exact GP" means Laplace's approximation to its posterior, without inducing points;
#' [laplace_check()] examines it. With four or more unordered classes, probabilities are averaged over f numerically,
#' and their intervals are widened by four estimated standard errors.
#' @param fit A fit with data or a `reference`, but not by `approx = "vi"`.
#' @param newdata Rows to predict at. Default: the training rows.
#' @param effort `"fast"` uses the inducing points of the fit. `"reference"`, the default, adds a [reference()] and, as
#'   far as `max_seconds` allows, the exact posterior and predictions from nearest neighbours. `"tight"` adds sums over
#'   all pairs of rows, in \eqn{O(n^2 m_2)} time with \eqn{m_2} = `m2`.
#' @param reference A [reference()] or a [gp_dtc()] fit of the same data and hyperparameters. `NULL`: a new one.
#' @param m2 Number of inducing points of a new [reference()].
#' @param test_points Number of rows of `newdata` that may join the reference's points. Default: `max(16, m2 / 4)`.
#' @param max_seconds Limit in seconds for the steps after the reference. Default: 10, or `Inf` for `"tight"`.
#'   A non-Gaussian `family` has no such steps and no test points.
#' @param hyper_uncertainty,... As in [predict()][predict.gp_fit] (Gaussian noise). `...` is not used.
#' @return A data frame of class `pfdtc_certificate` with a row for each row of `newdata` (hurdles: see [gp_hurdle()]):
#'   * `mean` (the mode, if not Gaussian) and `sd` of f with offset; `mean_lower`, `mean_upper`, `sd_lower` and
#'     `sd_upper` enclose exact values; `mean_error` bounds |mean - exact mean|;
#'   * with a built-in link other than the identity, the mean response as `response`, with its bounds;
#'   * with a transform, f is on the transformed scale; `median` and `fit` (mean) are of the response `y`, with bounds.
#'
#'   Attributes: `effort`, `seconds`, `advice` (if any) and, for a reference, `m2`, `passes` (over all pairs of rows;
#'   Gaussian noise) and `t` (sum over rows of weight times the prior variance that the reference does not explain).
#'   `print()` uses others, such as `shares` (is `response` the probability of success?) and `moved` (does [predict()]
#'   correct the mode? For unordered classes, the largest change of a probability).
#' @details Unordered classes have a row for each row of `newdata` and class. f is the log odds against the first class.
#'   The column `mode` is the probability at the posterior mode. For ordered classes `response` and its bounds are
#'   matrices. For classes [predict()][predict.gp_fit] corrects the mode: its probabilities can lie outside the bounds.
#'   After `noise = 0` the exact GP has noise variance `fit$noise`.
#' @section Invariants: `mean_lower <= exact mean <= mean_upper`, `sd_lower <= exact sd <= sd_upper`. More effort never
#'   gives wider intervals, up to rounding.
#' @seealso [reference()], [refine()], [error_bounds()], [evidence_bounds()], `vignette("certificates")`
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 4)
#' fit$reference <- reference(fit)
#' certify(fit, data.frame(speed = c(5, 15)))
#' @export
certify <- function(fit, newdata, effort = c("reference", "fast", "tight"), ..., reference = fit$reference, m2 = NULL,
                    test_points = NULL, max_seconds = if (effort == "tight") Inf else 10, hyper_uncertainty = FALSE) {
  check_dots_empty()
  effort <- check_choice(effort)
  check_given("fit", "Give a fit returned by pfdtc().")
  if (inherits(fit, "gp_hurdle")) {
    refuse_if(!is.null(reference), "reference", "cannot be given for a hurdle",
              hint = "Each part has its own, as in fit$zero$reference <- reference(fit$zero).")
    return(certify_hurdle(fit, if (missing(newdata)) rows_of_hurdle(fit) else newdata, effort = effort, m2 = m2,
                          test_points = test_points, max_seconds = max_seconds, hyper_uncertainty = hyper_uncertainty))
  }
  fit <- check_any_fit(fit, "fit")
  refuse_if(!is.null(reference) && !inherits(reference, "gp_fit"), "reference", describe(reference),
            "a fit returned by reference()")
  new <- new_rows(fit, newdata)
  if (!is.null(reference)) reference <- check_any_fit(reference, "reference")
  if (!is.null(m2)) m2 <- check_count(m2, "m2")
  if (!is.null(test_points)) test_points <- check_count(test_points, "test_points", min = 0)
  max_seconds <- check_at_least_0(max_seconds, "max_seconds")
  if (check_flag(hyper_uncertainty, "hyper_uncertainty")) check_posterior(fit, "normal", "fit", "The certified mixture")
  classes <- response_of(fit)$kind == "labels"
  refuse_if(classes && !is.null(reference), "reference", "cannot be given for several classes", hint = "Use `m2`.")
  if (classes) return(certify_classes(fit, new, effort, m2))
  p <- if (hyper_uncertainty) mixture_of(fit) else posterior_of(fit)
  out <- certificate_of(fit, new, effort, reference, m2, test_points, max_seconds, p)
  if (!is.null(fit$transform)) out <- with_transformed(out, fit, noise_law(fit, new)$noise)
  # Unless effort is "fast", check Laplace's approximation if laplace_check() applies and takes little time.
  checked <- !response_of(fit)$conjugate && effort != "fast" && !is.null(fit$data) &&
    nrow(fit$data$x) * as.double(fit$m) <= 1e7 && is.null(c(fit$near, fit$factors$groupings))
  structure(out, class = c("pfdtc_certificate", "data.frame"), sd_y = fit$sd_y, check = if (checked) {
    with_fixed_seed(null_if_failed(laplace_check(fit, draws = 500)))
  })
}

# Certifies a hurdle model: P(y = 0), and the mean of y, which is P(y > 0) times the mean of y given y > 0.
certify_hurdle <- function(fit, newdata, ...) {
  above <- certify(fit$zero, newdata, ...)
  rest <- certify(fit$positive, rows_above_0(fit$positive, newdata), ...)
  refuse_if(is.null(rest$response), "fit",
            sprintf("is a hurdle with family %s, whose mean has no certificate", response_of(fit$positive)$label),
            hint = "Use certify(fit$zero) and certify(fit$positive).")
  widen <- 8 * .Machine$double.eps # allows for rounding of the products below
  out <- data.frame(response = above$response * rest$response,
                    response_lower = above$response_lower * rest$response_lower * (1 - widen),
                    response_upper = above$response_upper * rest$response_upper * (1 + widen),
                    zero = 1 - above$response, zero_lower = pmax(1 - above$response_upper - widen, 0),
                    zero_upper = pmin(1 - above$response_lower + widen, 1), row.names = row.names(above))
  structure(out, class = c("pfdtc_table", "data.frame"), legend =
              "`response` is the mean, `zero` the probability of 0, with bounds for Laplace's approximation.")
}

# Adds the median and the mean of a transformed response, with their bounds, to the certificate `out`. For a mixture
# over hyperparameters, the mean has infinite bounds, because the noise variance is bounded only from above.
with_transformed <- function(out, fit, noise) {
  t <- fit$transform
  median <- back_bounds(t, out$mean_lower, out$mean_upper)
  out[c("median", "median_lower", "median_upper")] <- c(list(untransformed(t, out$mean)), median)
  out$fit <- response_moments(response_of(fit), out$mean, out$sd^2, noise)$mean
  of_y <- function(sd, side) sqrt(sd^2 + noise) * (1 + side * 4 * .Machine$double.eps)
  out[c("fit_lower", "fit_upper")] <- if (!is.null(attr(out, "weights"))) list(-Inf, Inf) else
    mean_bounds(t, list(lower = out$mean_lower, upper = out$mean_upper),
                list(lower = of_y(out$sd_lower, -1), upper = of_y(out$sd_upper, 1)))
  out
}

plain_rows <- function(x, index = seq_len(nrow(x))) list(x = x, index = index, offset = 0, names = NULL)

# Returns the data frame of certify() at the rows `new`, a result of new_rows(). For a mixture over hyperparameters it
# has the attributes `weights` (with bounds) and `noise`, an upper bound on the noise variance of the exact mixture.
certificate_of <- function(fit, new, effort = "reference", reference = fit$reference, m2 = NULL, test_points = NULL,
                           max_seconds = 10, p = posterior_of(fit)) {
  started <- proc.time()[["elapsed"]]
  fun <- values_at(model_of(fit)$kernel, new$x)
  inside <- posterior_certificate(p, fun, effort, reference, m2, test_points, max_seconds)
  about <- attributes(inside)
  out <- certificate_frame(fit, new, about$at %||% functionals_in_units(at_mode(fit), fun), inside)
  if (!response_of(fit)$conjugate) out <- with_response(out, fit$likelihood)
  advice <- certificate_advice(out, effort, about, response_of(fit))
  structure(out, effort = effort, m2 = about$m2, t = about$t, passes = about$passes,
            seconds = proc.time()[["elapsed"]] - started, advice = advice, likelihood = fit$likelihood$label,
            claims = stated_claims(fit$likelihood), moved = !is.null(fit$factors$shift),
            weights = about$weights, noise = about$noise, shares = response_of(fit)$reads == "classes")
}

# Adds the mean response and its bounds to the certificate `out`. The mean response increases with the mean of f. A
# larger variance of f increases means with a log link, and moves probabilities towards 1/2. So the ends of the
# intervals of mean and sd of f give bounds. For ordered classes, P(y <= k) decreases with the mean of f. response$bend,
# if it exists, bounds the absolute derivative of P(y <= k) with respect to the variance of f.
with_response <- function(out, likelihood) {
  response <- as_response(likelihood)
  if (likelihood$link %in% c("identity", "latent") && response$kind != "ordered") return(out) # the response is f itself
  if (response$kind == "ordered") {
    bent <- if (is.null(response$bend)) 0 else response$bend * (out$sd_upper^2 - out$sd_lower^2) / 2
    room <- links$logit$error + bent
    ends <- function(mean, furthest) {
      one <- shares_upto(response, mean, out$sd_lower)
      other <- shares_upto(response, mean, out$sd_upper)
      if (is.null(response$bend)) furthest(one, other) else (one + other) / 2
    }
    K <- length(response$levels)
    none <- numeric(nrow(out))
    low <- cbind(none, pmax(ends(out$mean_upper, pmin) - room, 0))
    high <- cbind(none, pmin(ends(out$mean_lower, pmax) + room, 1))
    low[, K + 1L] <- high[, K + 1L] <- 1
    labelled <- function(P) `colnames<-`(P, response$levels)
    out$response <- class_shares(response, out$mean, out$sd)
    out$response_lower <- labelled(pmax(low[, -1L, drop = FALSE] - high[, -(K + 1L), drop = FALSE], 0))
    out$response_upper <- labelled(pmin(high[, -1L, drop = FALSE] - low[, -(K + 1L), drop = FALSE], 1))
    return(out)
  }
  corner <- function(mean, sd) response_moments(response, mean, sd^2)$mean
  last <- corner(out$mean_upper, out$sd_upper)
  top <- response$link$range[2L]
  room <- response$link$error * if (is.finite(top)) 1 else pmax(last, 0)
  out$response <- corner(out$mean, out$sd)
  low <- pmin(corner(out$mean_lower, out$sd_lower), corner(out$mean_lower, out$sd_upper))
  out$response_lower <- pmax(pmin(low, .Machine$double.xmax) - room, 0) # `low` and `room` may both be Inf
  out$response_upper <- pmin(pmax(corner(out$mean_upper, out$sd_lower), last) + room, top)
  out
}

# Returns a data frame of the fit's mean and sd (`of_fit`) at rows `new`, with intervals for the exact GP (`inside`).
certificate_frame <- function(fit, new, of_fit, inside) {
  rows <- function(v) lapply(v, `[`, new$index)
  rounding <- response_rounding(fit, new$x)
  out <- interval_frame(rows(of_fit), rows(inside), function(v) fit$center + v + new$offset, function(v) {
    4 * .Machine$double.eps * (abs(fit$center) + abs(v) + abs(new$offset)) + rounding
  })
  if (!is.null(new$names)) row.names(out) <- make.unique(as.character(new$names))
  out
}

# Returns sentences on how to narrow wide intervals, or NULL. There is no advice for exact posteriors and mixtures.
certificate_advice <- function(out, effort, about, response) {
  conjugate <- response$conjugate
  if (!nrow(out) || conjugate && is.null(about$left)) return(NULL)
  if (response$reads == "own" && is.null(c(response$curvature, response$kappa)))
    return("Bounds are wide or infinite, because the gp_family() has neither `kappa` nor `curvature`.")
  if (!conjugate && any(is.infinite(out$sd_upper))) {
    return(paste("Nothing is certified: the exact GP may have more than one mode nearby. Outliers or few inducing",
                 "points can cause this."))
  }
  fast <- effort == "fast"
  ratio <- (out$mean_upper - out$mean_lower) / (2 * out$sd_upper)
  wide <- out$mean_upper - out$mean_lower > 2 * out$sd_upper
  vague <- conjugate & out$sd_upper > 2 * out$sd_lower
  share <- function(v) sprintf("%.0f %% of the rows", 100 * mean(v, na.rm = TRUE))
  is_wide <- any(wide, na.rm = TRUE)
  # Estimate how many products with the kernel matrix refine() needs for a median error of 1/10 sd at the rows `wide`.
  passes <- if (conjugate && !fast && is_wide) passes_until(about$went, 0.1 / stats::median(ratio[wide], na.rm = TRUE))
  c(if (is_wide) sprintf(
    "The error bound of the %s exceeds the sd at %s. %s", if (conjugate) "mean" else "mode", share(wide),
    if (fast) "Use effort = \"reference\"." else if (!conjugate) "A larger reference (`m2`) narrows it." else
      if (is.null(passes)) "refine() certifies the mean by products with the n x n kernel matrix." else
        sprintf("refine() would need about %d more products with the n x n kernel matrix.", passes)),
    if (any(vague, na.rm = TRUE)) sprintf(
      "The bounds of the sd differ by more than a factor of two at %s: %s.", share(vague),
      if (fast) "use effort = \"reference\"" else if (about$left <= 0) "a larger `max_seconds` may narrow them" else
        "a larger reference (`m2`) narrows them"))
}

# Certifies a mixture over hyperparameters: certifies each part and combines the results. The exact mixture has the same
# hyperparameters, with weights by the exact log marginal likelihood.
#' @export
posterior_certificate.mixture <- function(p, fun, effort, reference, m2 = NULL, test_points = NULL, max_seconds = 10,
                                          ...) {
  fit <- p$fit
  z <- reference$inducing
  seconds <- max_seconds / length(p$points$hyper)
  parts <- mixture_parts(fit, p$points$hyper, function(one) {
    if (effort != "fast" && !is_exact(one)) {
      one$reference <- if (is.null(z)) reference(one, m2, seconds) else
        with_fixed_seed(reference_on(one, training_data(one, "fit"), z, NULL, max_seconds = seconds))
    }
    part <- posterior_of(one)
    own <- fun$under(part$model$kernel)
    at <- posterior_at(part, own)
    moved <- one$center - fit$center
    inside <- posterior_certificate(part, own, effort, one$reference, NULL, test_points, seconds)
    size <- abs(one$center) + abs(fit$center) + pmax(abs(inside$mean_lower), abs(inside$mean_upper))
    room <- response_rounding(one, fun$x) + 4 * .Machine$double.eps * size
    inside$mean_lower <- inside$mean_lower + moved - room
    inside$mean_upper <- inside$mean_upper + moved + room
    list(at = c(in_response_units(one, at, moved), list(noise = one$noise)), m2 = one$reference$m, inside = inside,
         evidence = if (is.null(p$points$gain)) own_bracket(one))
  })
  each <- function(what) lapply(parts, `[[`, what)
  weights <- weights_between(p$points, each("evidence"))
  at <- mixture_of_parts(each("at"), p$points$weights)
  noise <- vapply(each("at"), `[[`, 0, "noise")
  structure(bounds_of_mixture(each("inside"), weights), at = list(mean = at$mean, sd = sqrt(at$var)), weights = weights,
            noise = largest_mixture_mean(matrix(noise, 1L), weights), m2 = if (length(parts[[1L]]$m2)) parts[[1L]]$m2)
}

# Returns a data frame of the mixture's weights with bounds, and of bounds `least` and `most` on unnormalised weights. A
# normalised weight is smallest if its unnormalised weight is `least` and all others are `most`.
weights_between <- function(points, evidence) {
  end <- function(side) points$gain %||% (vapply(evidence, `[[`, 0, side) + points$apart)
  ends <- cbind(lower = end("lower"), upper = end("upper"))
  g <- pmax(exp(ends - max(ends)), 1e-300) # positive even if exp() underflows
  share <- function(own, others) own / (own + sum(others) - others)
  data.frame(weight = points$weights, lower = share(g[, "lower"], g[, "upper"]),
             upper = share(g[, "upper"], g[, "lower"]), least = g[, "lower"], most = g[, "upper"])
}

# Returns an upper bound on the mixture's mean for each row of v. A column has the values of a part whose unnormalised
# weight is from `least` to `most`. The mean is largest if parts with the largest v have their largest weights.
largest_mixture_mean <- function(v, weights) {
  apply(v, 1L, function(one) {
    o <- order(one, decreasing = TRUE)
    upper <- weights$most[o]
    lower <- weights$least[o]
    rest <- function(x) sum(x) - cumsum(x)
    max((cumsum(upper * one[o]) + rest(lower * one[o])) / (cumsum(upper) + rest(lower)))
  })
}

# Bounds the mean m and the sd of the exact mixture. Let E average over the parts k, with means m_k and variances v_k.
# For any c, variance = E v_k + E (m_k - m)^2 <= E v_k + E (m_k - c)^2. The upper bound has c in the middle of the
# interval of m. The lower bound has the smallest |m_k - m| that the intervals allow.
bounds_of_mixture <- function(inside, weights) {
  n <- length(inside[[1L]]$mean_lower)
  if (!n) return(inside[[1L]])
  all <- function(what) matrix(vapply(inside, `[[`, numeric(n), what), n)
  lower <- all("mean_lower")
  upper <- all("mean_upper")
  eps <- 64 * .Machine$double.eps
  room <- eps * apply(pmax(abs(lower), abs(upper)), 1L, max)
  low <- -largest_mixture_mean(-lower, weights) - room
  high <- largest_mixture_mean(upper, weights) + room
  middle <- (low + high) / 2
  farthest <- pmax(abs(upper - middle), abs(lower - middle))
  nearest <- pmax(lower - high, low - upper, 0)
  list(mean_lower = low, mean_upper = high,
       sd_lower = sqrt((1 - eps) * -largest_mixture_mean(-(all("sd_lower")^2 + nearest^2), weights)),
       sd_upper = sqrt((1 + eps) * largest_mixture_mean(all("sd_upper")^2 + farthest^2, weights)))
}

#' Compare Laplace's approximation with the true posterior
#'
#' Estimates the error of Laplace's approximation by importance sampling from the fit's posterior. Only `elbo` is
#' certain: it is a lower bound. For log-concave likelihoods `evidence_bounds(fit, true = TRUE)` bounds the error.
#' [certify()] bounds the error that the inducing points add.
#' @param fit A fit by [pfdtc()] with its data, without neighbours and with a non-Gaussian `family` other than
#'   [multinomial()].
#' @param draws Number of random draws, at least 100.
#' @return A list of class `pfdtc_laplace_check`: `log_evidence`, an estimate of the log marginal likelihood of the
#'   model with the fit's inducing points, with standard error `se`; `laplace`, Laplace's value (`NA` with `"vi"`);
#'   `elbo`, a lower bound on the true log marginal likelihood of the exact GP; `khat`, the shape of the generalised
#'   Pareto distribution of the largest weights (below 0.7, estimates are reliable); `ess`, the effective sample size
#'   divided by `draws`; `shift`, the largest difference between true and approximate posterior mean of f at up to 1,000
#'   rows, in posterior sds; `sd_ratio`, the range of ratios of true to approximate posterior sd; `draws`.
#' @source Vehtari, Simpson, Gelman, Yao and Gabry (2024), JMLR 25; Hensman, Matthews and Ghahramani (2015), AISTATS,
#'   for `elbo`; Zhang and Stephens (2009), Technometrics 51, for `khat`.
#' @seealso [evidence_bounds()], [certify()]
#' @examples
#' d <- data.frame(x = 1:40 / 10)
#' d$y <- rep(c(0, 1, 0, 1), c(8, 14, 10, 8))
#' fit <- pfdtc(y ~ x, d, family = binomial(), kernel = kernel_se(1, 3), hyper = "fixed")
#' laplace_check(fit, draws = 500)
#' @export
laplace_check <- function(fit, draws = 2000) {
  fit <- refuse_classes(check_any_fit(fit, "fit"))
  if (!is.null(fit$near)) abort_input("fit", "uses neighbours", hint = "Fit with neighbours = 0.")
  check_posterior(fit, "families")
  draws <- check_count(draws, "draws", min = 100)
  data <- training_data(fit, "fit")
  sites <- sites_of_fit(fit, data)
  at <- mode_again(fit, data, replace(sites, "variational", 1L))
  elbo <- variational_bound(at, sites, prior_most(new_model(fit$kernel, 1), data$x, fit$inducing))
  laplace <- if (sites$variational == 1L) NA_real_ else
    sum(native_likelihood(sites, at$f)[1L, ], sites$constant) - (sum(at$beta^2) + logdet(at$C)) / 2
  m <- nrow(fit$inducing)
  rows <- evenly(nrow(data$x), 1000)
  # Each draw takes about six numbers for each inducing point (in z, U and copies) and two for each of `rows`.
  check_memory(8 * (6 * m + 2 * length(rows)) * as.double(draws),
               sprintf("%.0f draws at %d inducing points", as.double(draws), m))
  z <- matrix(stats::rnorm(m * draws), m)
  U <- at$beta + backsolve(at$C, z, upper.tri = FALSE, transpose = TRUE)
  l <- native(ffi_paths, engine_posterior(at, fit$inducing, kernel = fit$kernel), data$x, sites, t(U),
              engine_control(nrow(data$x), fit$control))
  # Compute log importance weights log p(y, u) - log q(u) of draws of u = L^{-1} f(Z), L L' = k(Z, Z), from posterior q.
  logs <- sum(sites$constant) + l - colSums(U^2) / 2 - (sum(log(diag(at$C))) - colSums(z^2) / 2)
  weights <- prop.table(exp(logs - max(logs)))
  A <- forwardsolve(at$L, native_kernel_matrix(fit$kernel, fit$inducing, data$x[rows, , drop = FALSE]))
  left <- at$left[rows]
  mean <- drop(U %*% weights)
  spread <- (U - mean) * rep(sqrt(weights), each = m)
  plain <- sqrt(at$q[rows] + left)
  structure(list(khat = pareto_shape(logs), ess = 1 / sum(weights^2) / draws, laplace = laplace,
                 log_evidence = max(logs) + log(mean(exp(logs - max(logs)))),
                 se = sqrt(max(sum(weights^2) - 1 / draws, 0)), elbo = elbo, draws = draws,
                 shift = max(abs(crossprod(A, mean - at$beta)) / plain),
                 sd_ratio = range(sqrt(colSums(crossprod(spread, A)^2) + left) / plain)), class = "pfdtc_laplace_check")
}

# Returns Zhang and Stephens' estimate of the shape k of the Pareto tail of importance weights with logarithms `logs`.
# As in Pareto smoothed importance sampling, ten pseudo-observations shrink k towards 1/2.
pareto_shape <- function(logs) {
  n <- length(logs)
  some <- min(floor(n / 5), ceiling(3 * sqrt(n)))
  top <- sort(logs, decreasing = TRUE)[seq_len(some + 1L)]
  excess <- rev(exp(top[seq_len(some)] - top[1L]) - exp(top[some + 1L] - top[1L]))
  if (!(excess[1L] > 0)) return(0)
  j <- seq_len(30 + floor(sqrt(some)))
  b <- 1 / excess[some] + (1 - sqrt(length(j) / (j - 0.5))) / (3 * excess[floor(some / 4 + 0.5)])
  k <- vapply(b, function(b) -mean(log1p(-b * excess)), 0)
  profile <- some * (log(b / k) + k - 1)
  b <- sum(b * vapply(profile, function(p) 1 / sum(exp(profile - p)), 0)) # the mean, with normalised weights
  (some * mean(log1p(-b * excess)) + 5) / (some + 10)
}

# Returns lines to print: Pareto k, the error of the log marginal likelihood and, if k <= 0.7, errors of mean and sd.
laplace_check_lines <- function(x) {
  number <- function(v) format(signif(v, 2))
  variational <- is.na(x$laplace)
  reliable <- isTRUE(x$khat <= 0.7)
  c(sprintf("%s (%s 0.7)", number(x$khat), if (reliable) "reliable estimates below" else "no reliable estimates above"),
    sprintf("the %s log marginal likelihood minus the estimate of the true one is %s (standard error %s)",
            if (variational) "variational bound of the" else "Laplace",
            number((if (variational) x$elbo else x$laplace) - x$log_evidence), number(x$se)), if (reliable) {
      c(sprintf("at the training rows, the true mean of f differs from the %s by at most about %s posterior sd",
                if (variational) "fit's mean" else "mode", number(x$shift)),
        paste("the true sd of f is", if (max(abs(x$sd_ratio - 1)) < 0.01) "within about 1 % of that of the fit" else
          sprintf("about %.3g to %.3g times that of the fit", x$sd_ratio[1L], x$sd_ratio[2L])))
    })
}
