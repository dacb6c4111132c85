# How sure the hyperparameters are: the curvature of the log density that they maximise, at where they are.

#' Uncertainty of the hyperparameters
#'
#' Covariance matrix of, and intervals for, the logarithms of the hyperparameters: by the curvature, where they are, of
#' the density of the data that they were learned by.
#'
#' With \eqn{\theta} the logs of what was learned and \eqn{l(\theta)} the log density with the priors (see [pfdtc()]),
#' `vcov()` is \eqn{(-\nabla^2 l)^{-1}} at the fit's \eqn{\theta}: the normal approximation of what the data leave open,
#' and where the data say nothing the priors. Which \eqn{l} that is depends on how the fit learned:
#'
#' * `hyper = "evidence"` of up to 2,000 rows, and [gp_exact()] with `hyper = "joint"` or `"pilot"`: the exact log
#'   evidence, by differences of its gradient (the latter two without priors);
#' * `hyper = "evidence"` of more: the likelihood of 8,000 rows given their near neighbours, whose expected information
#'   is computed in closed form and scaled to all rows;
#' * `"pilot"` and `"joint"` of others: the ELBO on the fit's inducing points. It is the curvature of a bound;
#' * classes, counts and Student's t: Laplace's penalised evidence (of `approx = "vi"` the variational bound) of up to
#'   3,000 rows on 120 points, scaled to all rows. The constant `mean` is among what was learned there, as it is and not
#'   as a log, and so is `theta` or `sigma`, as a log. Not beside near rows, where the kernel is learned otherwise.
#'
#' Logarithms are what the normal approximation is good for: `exp(confint(fit))` are intervals for `coef(fit)` itself
#' (`broom::tidy(fit, conf.int = TRUE)` has both beside one another). A
#' direction in which the curvature is less than that of a standard deviation of 4, so that 95 % of it are more than a
#' factor of two thousand either way, is taken to have that: nothing in the data tells it. That is what an input without
#' effect has, whose lengthscale may be anything that is long, where `pfdtc_control(priors = FALSE)` leaves out the
#' priors. Hyperparameters at the end of their range (noise at its floor) are no maximum, and their variances too small.
#'
#' Coefficients of a linear `mean` come first and those of `noise = ~` last (as in `coef()`), as they are and not as
#' logs: of the mean, their posterior given the hyperparameters (that of generalised least squares, as [lm()] has it);
#' of the noise, the inverse information of the likelihood that they were learned by. What one of the three says of the
#' others is left out: the blocks between them are 0.
#'
#' Predictions take this into account by `predict(fit, newdata, hyper_uncertainty = TRUE)`.
#'
#' @param object A fit with its data (`keep_data = TRUE`) that has learned hyperparameters.
#' @param parm Names of hyperparameters, as in `coef()`, or their numbers among those learned; all by default.
#' @param level Probability of the intervals.
#' @param ... Nothing: an unknown argument is an error.
#' @return `vcov()`: a matrix with a row and a column for each hyperparameter that was learned, named as in `coef()`, of
#'   logs and so without unit, and for each coefficient of a `mean` and of `noise = ~`. `confint()`: a matrix with a row
#'   for each and two columns, named as by [confint.lm()]: lower and upper ends for the log of the hyperparameter (in
#'   the units of `coef()`), or for the coefficient.
#' @section Errors: class `pfdtc_error_input` for a fit without its data, one with `hyper = "fixed"` (nothing was
#'   learned) and without a linear mean, classes or counts beside near rows, or unknown names.
#' @section Invariants: the matrix is symmetric and positive definite; the same call gives the same numbers and leaves
#'   R's random numbers as they were; `log(coef(fit))` (of
#'   coefficients, `coef(fit)`) is in the middle of `confint(fit)`; with an exact posterior and a linear mean alone (a
#'   kernel of next to no variance) the coefficients have the variances of [lm()].
#' @source Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, section 5.2; Guinness (2021),
#'   Gaussian process learning via Fisher scoring of Vecchia's approximation, Statistics and Computing 31.
#' @seealso [predict.gp_fit()], [pfdtc()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, kernel = kernel_matern(3/2))
#' sqrt(diag(vcov(fit)))
#' exp(confint(fit)) # in units of coef(fit)
#' @importFrom stats vcov
#' @export
vcov.gp_fit <- function(object, ...) {
  check_dots_empty(list(...), "object")
  object <- check_any_fit(object, "object")
  linear <- if (response_of(object)$conjugate) list(mean_coefficients(object), noise_coefficients(object))
  own <- !(object$hyper == "fixed" && any(lengths(linear)))
  learned <- if (own) learned_density(object)
  blocks <- list(linear[[1L]]$covariance,
                 if (own) dimnames_of(learned$unit * t(learned$unit * curvature_inverse(learned)), learned$names),
                 linear[[2L]]$covariance)
  block_diagonal(blocks[lengths(blocks) > 0L])
}

block_diagonal <- function(blocks) {
  names <- unlist(lapply(blocks, rownames))
  out <- matrix(0, length(names), length(names), dimnames = list(names, names))
  for (b in blocks) out[rownames(b), rownames(b)] <- b
  out
}

#' @rdname vcov.gp_fit
#' @importFrom stats confint
#' @export
confint.gp_fit <- function(object, parm, level = 0.95, ...) {
  check_dots_empty(list(...), c("object", "parm", "level"))
  level <- check_level(level)
  sd <- sqrt(diag(stats::vcov(object)))
  if (missing(parm)) parm <- names(sd)
  known <- if (is.numeric(parm)) parm %in% seq_along(sd) else parm %in% names(sd)
  if (!all(known)) {
    abort_input("parm", describe(parm), sprintf("among %s", list_quoted(names(sd), "\"", most = 12L)))
  }
  z <- stats::qnorm((1 + level) / 2)
  middle <- stats::coef(object)[names(sd)]
  logs <- are_logs(names(sd), object)
  middle[logs] <- log(middle[logs])
  ends <- (1 + c(-1, 1) * level) / 2
  table <- cbind(middle - z * sd, middle + z * sd)
  dimnames(table) <- list(names(sd), paste(format(100 * ends, trim = TRUE, digits = 3), "%"))
  table[parm, , drop = FALSE]
}

are_logs <- function(names, fit) {
  !names %in% if (response_of(fit)$conjugate) rownames(linear_coefficients(fit)) else "mean"
}

# Inverse of minus the second derivative, its eigenvalues no less than those of what nothing tells.
curvature_inverse <- function(learned) {
  e <- eigen(learned$information(), symmetric = TRUE)
  e$vectors %*% (t(e$vectors) / pmax(e$values, 1 / most_sd^2))
}

# The log density that the fit's hyperparameters maximise, in the logs of those that were learned: list(names, at =
# their logs in the units of the model, value(par), prior(par), its part, exact: is the rest the exact evidence?,
# information(), natural(par) = list(kernel, noise) of the model, lower, upper, unit = of each). Random orders in it are
# the same each time.
learned_density <- function(fit) {
  data <- training_data(fit)
  if (!response_of(fit)$conjugate) return(same_chance(density_of_laplace(fit, data)))
  names <- parameter_names(fit$kernel, fit$frame$columns)
  held <- c(fit$control$fix, held_names(fit$kernel, fit$frame$columns), if (asks_no_noise(fit$asked$noise)) "noise")
  free <- if (fit$hyper == "fixed") character() else setdiff(names, held)
  if (!length(free)) refuse_fixed()
  model <- model_of(fit)
  s <- learning_settings(model$kernel, model$noise, fit$frame$columns, free, fit$control)
  s$steps$max_seconds <- Inf
  learned <- if (fit$hyper == "evidence") same_chance(density_of_evidence(fit, data, s)) else
    density_of_objective(fit, data, s)
  c(list(names = free, unit = 1, at = model_theta(model)[names %in% free]), learned)
}

refuse_fixed <- function() {
  abort_input("object", "a fit with fixed ones", "a fit that has learned hyperparameters",
              message = "Nothing was learned by this fit: its hyperparameters were given.")
}

# As learn_evidence() has it.
density_of_evidence <- function(fit, data, s) {
  pool <- learning_rows(data, s)
  problem <- learning_problem(pool, s, NULL)
  theta <- model_theta(model_of(fit))
  all <- function(par) replace(theta, problem$free, par)
  common <- list(natural = function(par) problem$natural(all(par)), lower = problem$lower[problem$free],
                 upper = problem$upper[problem$free], exact = is_small_enough(pool),
                 prior = function(par) problem$prior(all(par))$value)
  if (common$exact) {
    exact <- exact_density(problem)
    evaluate <- function(par) exact$evaluate(all(par))
    information <- function() {
      differences(function(par) -evaluate(par)$gradient[problem$free], theta[problem$free])
    }
    return(c(common, list(value = function(par) evaluate(par)$value, information = information)))
  }
  rows <- pool$take(min(learning_sizes$whole[["rows"]], pool$n))
  held <- given_neighbours(problem, rows, problem$neighbours(theta, rows, learning_sizes$whole[["near"]]))
  times <- pool$n / length(rows) / pool$share
  c(common, list(value = function(par) {
    now <- held$evaluate(all(par))
    if (!is.finite(now$value)) return(-Inf)
    times * now$likelihood + common$prior(par)
  }, information = function() {
    prior <- diag(problem$prior(theta)$information, length(theta))
    (times * (held$evaluate(theta)$information - prior) + prior)[problem$free, problem$free]
  }))
}

# The exact evidence or the ELBO, without priors.
density_of_objective <- function(fit, data, s) {
  parameters <- free_parameters(model_of(fit), s)
  problem <- if (!is.null(fit$x)) {
    exact_problem(data, parameters, s$run)
  } else {
    vfe_hyper_problem(data, fit$inducing, parameters, max(fit$jitter, 1e-8), s$run)
  }
  list(natural = problem$natural, lower = parameters$start - 16, upper = parameters$start + 16,
       value = function(par) -problem$evaluate(par)$value, exact = !is.null(fit$x), prior = function(par) 0,
       information = function() differences(function(par) problem$evaluate(par)$gradient, parameters$start))
}

# Of classes and counts as learn_laplace() has it: the penalised evidence, or the variational bound, of at most 3,000
# rows, counted for all. Parameters are the free logs of the kernel beyond the fit's own, the mean in units of f, and
# log theta.
density_of_laplace <- function(fit, data) {
  if (!is.null(fit$near)) {
    abort_input("object", "a fit with near rows", sprintf("one of points alone with family %s", fit$likelihood$label),
                hint = "Beside near rows the kernel is learned of Gaussian responses at the mode: neighbours = 0.")
  }
  likelihood <- fit$likelihood
  names <- setdiff(parameter_names(fit$kernel, fit$frame$columns), "noise")
  given <- if (!is.null(fit$asked$kernel)) held_names(fit$kernel, fit$frame$columns)
  free <- if (fit$hyper == "fixed") character() else setdiff(names, c(fit$control$fix, given))
  with_center <- isTRUE(fit$asked$center)
  all <- c(free, if (with_center) "mean", if (likelihood$learned) as_response(likelihood)$shape)
  if (!length(all)) refuse_fixed()
  s <- learning_settings(fit$kernel, 1, fit$frame$columns, free, fit$control, "evidence", NULL, likelihood, with_center)
  rows <- laplace_rows(data, s, laplace_sizes$rows, laplace_sizes$points)
  z <- greedy_points(rows, s, fit$kernel)
  now <- fit[c("kernel", "center", "theta")]
  problem <- laplace_problem(rows, z, s, now, laplace_start(data, s, fit$kernel), tied = FALSE)
  unit <- ifelse(all == "mean", likelihood$unit, 1)
  at <- problem$start / unit
  times <- nrow(data$x) / nrow(rows$x) # but the prior counts once
  slope <- function(par) {
    (times * problem$evaluate(par * unit)$gradient + (times - 1) * problem$prior(par * unit)$slope) * unit
  }
  prior <- function(par) problem$prior(par * unit)$value
  list(names = all, unit = unit, at = at, natural = function(par) problem$natural(par * unit), lower = at - 16,
       upper = at + 16, exact = FALSE, prior = prior,
       value = function(par) -times * problem$evaluate(par * unit)$value - (times - 1) * prior(par),
       information = function() differences(slope, at))
}

# Derivatives of a gradient, by central differences; symmetric. A step of 0.002 leaves errors of about a millionth.
differences <- function(gradient, par, step = 0.002) {
  columns <- vapply(seq_along(par), function(i) {
    move <- replace(numeric(length(par)), i, step)
    sides <- lapply(list(par + move, par - move), gradient)
    if (any(lengths(sides) != length(par))) {
      abort_numerical("The evidence's curvature cannot be computed: right beside the hyperparameters there is none.")
    }
    (sides[[1L]] - sides[[2L]]) / (2 * step)
  }, numeric(length(par)))
  columns <- matrix(columns, length(par))
  (columns + t(columns)) / 2
}
