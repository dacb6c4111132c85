# Computes how uncertain hyperparameters are, by the curvature of their log density at the estimate.

#' Estimate the uncertainty of the hyperparameters
#'
#' `vcov()` returns the covariance matrix of the estimated hyperparameters on the log scale, `confint()` their
#' confidence intervals. The matrix is minus the inverse of the Hessian of a log density, with log priors
#' if learning used them.
#'
#' The log density is the exact log marginal likelihood up to 2,000 rows, else the Vecchia likelihood of 16,000 rows,
#' scaled to all rows. For additive kernels chosen on a sample of 800 rows it is that of the sample. For `hyper =
#' "pilot"` and `"joint"` it is the ELBO, unless the posterior is exact. For a non-Gaussian likelihood (without
#' neighbours) it is Laplace's approximation or the variational bound, from at most 3,000 rows.
#'
#' Each learned lengthscale is a parameter of its own, even if one number was learned for all (`fit$because["tied"]`).
#' So there can be more rows than `summary()` counts hyperparameters. Parameters of a transform and of `smooth()` noise
#' and, with Gaussian noise, the prior variance of a linear mean count as known. Constant means and coefficients of
#' `mean` and `noise` are not on the log scale. Covariances of coefficients with hyperparameters are 0. On the log
#' scale, combinations of hyperparameters have sds of at most 4. The variance of a hyperparameter at the end of its
#' range is too small.
#' @param object a fit of one latent function with learned hyperparameters.
#' @param complete,... not used.
#' @param log `FALSE`: covariances of `coef(fit)`, by the delta method. `TRUE`: of `coef(fit, log = TRUE)`.
#' @param parm names as in `vcov()` or `coef()`, or row numbers of `vcov()`. Default: all.
#' @param level probability of the intervals.
#' @return `vcov()`: a positive definite matrix. A hyperparameter on the log scale has a name such as `log(noise)`.
#'   `confint()`: a row for each name. `parameters::model_parameters()` and `tidy()` use the units of `coef()`.
#' @source Rasmussen and Williams (2006), section 5.2; Guinness (2021), Statistics and Computing 31.
#' @seealso [predict.gp_fit()], [pfdtc()], `vignette("theory")`
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, kernel = kernel_matern(3/2))
#' cbind(coef(fit), sd = sqrt(diag(vcov(fit, log = FALSE))))
#' exp(confint(fit)) # in units of coef(fit), for names that begin with log
#' @export
vcov.gp_fit <- function(object, complete = TRUE, log = TRUE, ...) {
  check_dots_empty()
  object <- check_any_fit(object, "object")
  linear <- list(mean_coefficients(object), noise_coefficients(object))
  own <- !(object$hyper == "fixed" && any(lengths(linear)))
  learned <- if (own) learned_density(object)
  names <- ifelse(learned$names == "mean", "mean", sprintf("log(%s)", learned$names))
  row <- response_of(object)
  if (own && !is.null(row$shown_slopes)) { # coef() converts some shape parameters
    at <- match(learned$names, row$shape)
    learned$unit <- learned$unit * ifelse(is.na(at), 1, row$shown_slopes(object$theta)[at])
  }
  blocks <- list(linear[[1L]]$covariance,
                 if (own) dimnames_of(learned$unit * t(learned$unit * curvature_inverse(learned)), names),
                 linear[[2L]]$covariance)
  names <- unlist(lapply(blocks, rownames))
  out <- dimnames_of(matrix(0, length(names), length(names)), names)
  for (b in Filter(length, blocks)) out[rownames(b), rownames(b)] <- b
  if (check_flag(log, "log")) return(out)
  plain <- plain_names(names, object) # d theta / d log theta is theta
  value <- stats::setNames(stats::coef(object), names(stats::coef(object, log = TRUE)))
  dimnames_of(out * tcrossprod(ifelse(plain == names, 1, value[names])), plain)
}

#' @rdname vcov.gp_fit
#' @export
confint.gp_fit <- function(object, parm, level = 0.95, ...) {
  check_dots_empty()
  level <- check_level(level)
  sd <- sqrt(diag(stats::vcov(object)))
  plain <- plain_names(names(sd), object)
  given <- if (missing(parm)) parm <- names(sd) else parm
  if (is.character(parm)) parm <- ifelse(parm %in% plain, match(parm, plain), match(parm, names(sd)))
  refuse_if(!all(parm %in% seq_along(sd)), "parm", describe(given),
            sprintf("row numbers, names in coef() or names in vcov(): %s", list_quoted(names(sd), "\"", most = 12L)))
  z <- stats::qnorm((1 + level) / 2)
  middle <- stats::coef(object, log = TRUE)[names(sd)]
  ends <- (1 + c(-1, 1) * level) / 2
  table <- cbind(middle - z * sd, middle + z * sd)
  dimnames(table) <- list(names(sd), paste(format(100 * ends, trim = TRUE, digits = 3), "%"))
  table[parm, , drop = FALSE]
}

# Returns coef()'s names of vcov()'s parameters, such as "noise" for "log(noise)". Linear coefficients keep their names.
plain_names <- function(names, fit) {
  ifelse(names %in% rownames(linear_coefficients(fit)), names, sub("^log[(](.*)[)]$", "\\1", names))
}

# Returns the covariance matrix of log hyperparameters: the inverse information, with sds of at most most_sd.
curvature_inverse <- function(learned) {
  e <- eigen(learned$information(), symmetric = TRUE)
  e$vectors %*% (t(e$vectors) / pmax(e$values, 1 / most_sd^2))
}

# Returns the log density that learning maximised, a list: value(par) for log hyperparameters par called `names`; the
# estimate `at`; prior(par), the log prior density; information(), minus the Hessian at the estimate; natural(par),
# list(kernel, noise); lower, upper and unit of par. If `exact`, value - prior is the exact log marginal likelihood.
learned_density <- function(fit) {
  data <- training_data(fit)
  if (!response_of(fit)$conjugate) return(with_fixed_seed(density_of_laplace(fit, data)))
  names <- parameter_names(fit$kernel, fit$frame$columns)
  held <- c(fit$control$fix, held_names(fit$kernel, fit$frame$columns), if (asks_no_noise(fit$asked$noise)) "noise")
  free <- if (fit$hyper == "fixed") character() else setdiff(names, held)
  refuse_if(!length(free), "object", "given", message = "The fit has no learned hyperparameters: all were given.")
  model <- model_of(fit)
  s <- learning_settings(model$kernel, model$noise, fit$frame$columns, free, replace(fit$control, "max_seconds", Inf))
  if (fit$hyper == "evidence") {
    return(c(list(names = free, unit = 1), with_fixed_seed(density_of_evidence(fit, data, s))))
  }
  # With hyper = "pilot" or "joint", the exact log marginal likelihood or the ELBO was maximised, without priors.
  parameters <- free_parameters(model, s)
  exact <- !is.null(fit$x)
  problem <- if (exact) hyper_problem(data, parameters, function(now, z) native_exact_evidence(data, now, s$run)) else
    vfe_hyper_problem(data, fit$inducing, parameters, max(fit$jitter, 1e-8), s$run)
  density_of_minus(problem, free, exact)
}

# Returns the log density that learn_evidence() maximised; if an additive kernel was chosen on a sample, that of the
# sample. With few rows, learn_stage() enlarged the learned variances: theta has the original, natural() the new ones.
density_of_evidence <- function(fit, data, s) {
  pool <- learning_rows(data, s)
  gained <- attr(fit$kernels, "gained")
  some <- !is.null(gained$rows) && gained$what %in% c("additive", "pairwise")
  if (some) pool <- some_of_pool(pool, gained$rows)
  problem <- learning_problem(pool, s, NULL, little_noise = isTRUE(attr(fit$learned, "little_noise")))
  model <- model_of(fit)
  wider <- log(attr(fit$learned, "factor") %||% 1) * c(kernel_parameters(model$kernel)$what == "variance", TRUE)
  theta <- model_theta(model) - wider
  all <- function(par) replace(theta, problem$free, par)
  rows <- pool$take(min(learning_sizes$whole[["rows"]], pool$n))
  near <- if (!pool$few) problem$neighbours(theta, rows, learning_sizes$whole[["near"]])
  evaluate <- if (pool$few) exact_density(problem)$evaluate else function(theta) problem$vecchia(theta, rows, near)
  times <- if (pool$few) 1 else pool$n / length(rows) / pool$share
  prior <- function(par) problem$prior(all(par))$value
  list(at = theta[problem$free], natural = function(par) problem$natural(all(par) + wider),
       lower = problem$lower[problem$free], upper = problem$upper[problem$free], exact = pool$few && !some,
       prior = prior, value = function(par) {
         now <- evaluate(all(par))
         if (is.finite(now$value)) times * now$likelihood + prior(par) else -Inf
       }, information = function() {
         if (pool$few) {
           return(differences(function(par) -evaluate(all(par))$gradient[problem$free], theta[problem$free]))
         }
         prior <- diag(problem$prior(theta)$information, length(theta))
         (times * (evaluate(theta)$information - prior) + prior)[problem$free, problem$free]
       })
}

# Returns a log density like learned_density(), for a problem of minimise() whose value is minus a log density. `times`
# multiplies the log likelihood but not the log prior. `unit` has the units of the problem's parameters.
density_of_minus <- function(problem, names, exact, unit = 1, times = 1) {
  at <- problem$start
  prior <- function(par) if (is.null(problem$prior)) list(value = 0, slope = 0) else problem$prior(par)
  list(names = names, unit = unit, at = at, natural = problem$natural, lower = at - 16, upper = at + 16, exact = exact,
       prior = function(par) prior(par)$value,
       value = function(par) -times * problem$evaluate(par)$value - (times - 1) * prior(par)$value,
       information = function() {
         differences(function(par) times * problem$evaluate(par)$gradient + (times - 1) * prior(par)$slope, at)
       })
}

# Returns the log density that learn_laplace() maximises, from at most 3,000 rows, scaled to all rows. Its parameters
# are the logs of free kernel parameters, the constant mean and the logs of shape parameters.
density_of_laplace <- function(fit, data) {
  refuse_classes(fit)
  refuse_if(!is.null(fit$near), "object", sprintf("has neighbours and family %s", fit$likelihood$label),
            hint = "Its kernel was learned without a log density of the responses. Fit with neighbours = 0.")
  likelihood <- fit$likelihood
  names <- setdiff(parameter_names(fit$kernel, fit$frame$columns), "noise")
  given <- if (is.null(fit$asked$kernel)) names[kernel_parameters(fit$kernel)$held] else
    held_names(fit$kernel, fit$frame$columns)
  free <- if (fit$hyper == "fixed") character() else setdiff(names, c(fit$control$fix, given))
  with_center <- isTRUE(fit$asked$center)
  all <- c(free, if (with_center) "mean", if (likelihood$learned) as_response(likelihood)$shape)
  refuse_if(!length(all), "object", "given", message = "The fit has no learned hyperparameters: all were given.")
  s <- learning_settings(fit$kernel, 1, fit$frame$columns, free, fit$control, "evidence", NULL, likelihood, with_center)
  rows <- laplace_rows(data, s, laplace_sizes$rows, laplace_sizes$points)
  problem <- laplace_problem(rows, greedy_points(rows, s, fit$kernel), s, fit[c("kernel", "center", "theta")],
                             laplace_start(data, s), tied = FALSE)
  density_of_minus(problem, all, FALSE, ifelse(all == "mean", likelihood$unit, 1), nrow(data$x) / nrow(rows$x))
}

# Returns the mixture of posteriors over uncertain hyperparameters. theta are the p learned log hyperparameters, theta^
# their estimate, and V = R R' their covariance. The 2 p points theta^ +- sqrt(p) R_j have mean theta^ and covariance V,
# unless bounds of the hyperparameters cut them. The weight of a point is proportional to the ratio of its posterior
# density to exp(-|R^{-1}(theta - theta^)|^2 / 2), the normal approximation. The mixture has no parts of negligible
# weight, and computes parts when they are needed. Its element `points` is list(hyper, weights, apart, gain): `hyper`
# has list(kernel, noise) for each point. `gain` has the logs of the ratios, or is NULL if the likelihood is not exact.
# `apart` has these logs without the log marginal likelihood, to which callers add one that is more accurate.
mixture_of <- function(fit) {
  learned <- learned_density(fit)
  e <- eigen(curvature_inverse(learned), symmetric = TRUE)
  p <- length(learned$at)
  steps <- e$vectors %*% diag(sqrt(p * e$values), p)
  points <- pmin(pmax(learned$at + cbind(steps, -steps), learned$lower), learned$upper)
  far <- colSums((crossprod(e$vectors, points - learned$at) / sqrt(e$values))^2) / 2
  gain <- apply(points, 2L, learned$value) + far
  if (!any(is.finite(gain))) {
    abort_numerical("The log marginal likelihood cannot be computed near the hyperparameters of the fit.")
  }
  weights <- exp(gain - max(gain))
  points <- list(hyper = apply(points, 2L, learned$natural, simplify = FALSE), weights = weights / sum(weights),
                 apart = far + apply(points, 2L, learned$prior), gain = if (learned$exact) gain)
  used <- points$weights > 1e-10
  new_posterior("mixture", model_of(fit), fit, fit$data, hyper = points$hyper[used], weights = points$weights[used],
                points = points)
}

# Makes a fit with each element list(kernel, noise) of `hyper`. Returns the results of of(fit).
mixture_parts <- function(fit, hyper, of) {
  p <- posterior_of(fit)
  training_data(fit)
  lapply(hyper, function(one) of(posterior_again(p, model = replace(p$model, names(one), one))$fit))
}

# Returns mean and total variance of functionals under the mixture. `noise` is the mean noise variance in units of y^2.
posterior_at.mixture <- function(p, fun, joint = FALSE) {
  each <- mixture_parts(p$fit, p$hyper, function(one) {
    part <- posterior_of(one)
    at <- posterior_at(part, fun$under(part$model$kernel), joint)
    at$mean <- at$mean + (one$center - p$fit$center) / p$model$scale
    at$var <- pmax(at$var, 0)
    c(at, noise = one$noise)
  })
  mixture_of_parts(each, p$weights, if (joint) seq_len(fun$n))
}

# Returns the moments of a mixture of parts list(mean, var, noise, cov) with weights w; cov for the functionals `index`.
mixture_of_parts <- function(each, w, index = NULL) {
  sum_of <- function(what) Reduce(`+`, Map(function(one, w) w * what(one), each, w))
  mean <- sum_of(function(one) one$mean)
  off <- function(one) (one$mean - mean)[index]
  list(mean = mean, var = sum_of(function(one) one$var + (one$mean - mean)^2), noise = sum_of(function(one) one$noise),
       cov = if (!is.null(index)) sum_of(function(one) one$cov + outer(off(one), off(one))))
}

# Returns list(fun, to, names, pairs) for the coefficients of a linear mean, or NULL if there is none or if inputs are
# warped other than to their logs. The functionals `fun` are first the linear mean at the centre of the inputs and its
# slopes per spread of an input, then sums of two of these (their numbers: `pairs`). The matrix `to` converts the mean
# and the slopes to coefficients in units of the inputs.
mean_functionals <- function(fit) {
  kernel <- as_sum(model_of(fit)$kernel)
  term <- Find(function(t) is_mean(kernel$leaves[[t$leaves[1L]]]), kernel$terms)
  warp <- warp_of(kernel)
  if (is.null(term) || !is.null(warp) && !isTRUE(warp$logs)) return(NULL)
  leaf <- kernel$leaves[[term$leaves]]
  d <- length(leaf$inputs)
  pairs <- which(upper.tri(diag(1, d + 1L)), arr.ind = TRUE)
  of_b <- with_pairs(d + 1L, pairs)
  x <- fit_points(fit)[1L, , drop = FALSE] # the functionals do not depend on this row
  prior <- term$variance * rowSums(of_b^2)
  cross <- function(u, i) term$variance * tcrossprod(mean_basis(leaf, u), of_b[i, , drop = FALSE])
  list(fun = new_functionals("coefficients", cross, prior, prior, x, rep(1L, nrow(of_b)), under = NULL),
       to = rbind(c(1, -leaf$centre * leaf$rate),
                  cbind(numeric(d), matrix_of_rotation(leaf$rotation, leaf$inputs) %*% diag(leaf$rate, d))),
       names = c("(Intercept)", ifelse(leaf$inputs %in% warp$inputs, sprintf("log(%s)", fit$frame$columns[leaf$inputs]),
                                       fit$frame$columns[leaf$inputs])), pairs = pairs)
}

# Returns intercept and slopes of a linear mean in units of y and inputs: list(estimate, sd, covariance), or NULL.
mean_coefficients <- function(fit) {
  b <- if (length(fit$center) == 1L) mean_functionals(fit)
  if (is.null(b)) return(NULL)
  p <- functionals_in_units(fit, b$fun)
  each <- seq_along(b$names)
  V <- diag(p$sd[each]^2, length(each))
  V[b$pairs] <- (p$sd[-each]^2 - diag(V)[b$pairs[, 1L]] - diag(V)[b$pairs[, 2L]]) / 2
  V[lower.tri(V)] <- t(V)[lower.tri(V)]
  covariance <- dimnames_of(b$to %*% V %*% t(b$to), b$names)
  estimate <- drop(b$to %*% p$mean[each]) + c(fit$center, numeric(length(each) - 1L))
  list(estimate = stats::setNames(estimate, b$names), sd = sqrt(diag(covariance)), covariance = covariance)
}

# Returns a matrix of the coefficients of the linear mean and of a linear noise trend, with sds, or NULL.
linear_coefficients <- function(fit) {
  parts <- list(mean_coefficients(fit), noise_coefficients(fit))
  estimate <- unlist(lapply(parts, `[[`, "estimate"))
  if (!is.null(estimate)) cbind(Estimate = estimate, "Std. Dev." = unlist(lapply(parts, `[[`, "sd")))
}
