# Prediction: rows asked for -> inputs in the fit's columns -> posterior in the units of y ->
# the shapes of predict.lm()

#' Predict from a Gaussian process fit
#'
#' Mean, standard deviation, bands and covariance of the approximate posterior at new inputs, in the
#' units of the response as it was given: centring, scaling and offsets are undone.
#'
#' Of inducing points alone (`fit$posterior` is `"far"`), with \eqn{a = L^{-1} k(Z, x)}, \eqn{G = A A'}
#' and \eqn{C_x = (\sigma^2 I + G)^{-1} a} the posterior of \eqn{f(x)} has mean \eqn{C_x' A y} and
#' variance \eqn{\sigma^2 a' C_x + k(x, x) - a'a} (the DTC form; a SoR fit has the first term only).
#' An exact posterior is the same with all rows in place of inducing points.
#'
#' With near rows (`"far + near"`) the prior is cut in two, \eqn{k = Q + E} with
#' \eqn{Q(x, z) = a_x' a_z}: \eqn{Q} is what the inducing points carry, and of \eqn{E} the rows
#' \eqn{S} nearest to \eqn{x} (in lengthscales) count. With
#' \eqn{u = (E_{SS} + \sigma^2 W_S^{-1})^{-1} E_{Sx}}{u = (E_SS + s2 W_S^-1)^-1 E_Sx} and
#' \eqn{r = a - A_S u}
#' \deqn{mean = u' y_S + r'\beta, \qquad var = [E(x, x) - E_{xS} u] + r'P^{-1} r,}{
#' mean = u'y_S + r'beta,   var = [E(x, x) - E_xS u] + r'P^{-1}r,}
#' where \eqn{\beta} and \eqn{P} are the mean and the precision of the inducing variables given all
#' rows, each of these beside its nearest of the rows that a random order puts before it; the two parts
#' of the variance are never negative. With all rows near this is the exact posterior, with none FITC.
#' Means jump, by less than the sd, where the nearest rows change. The joint law of several points is
#' that in which every one has its own near rows,
#' \deqn{cov = r'P^{-1}\tilde r + E(x, \tilde x) - u'E_{S\tilde x} - E_{x\tilde S}\tilde u +
#' u'(E_{S\tilde S} + \sigma^2 W^{-1}_{S\tilde S})\tilde u:}{
#' cov = r'P^{-1}r~ + E(x, x~) - u'E(S, x~) - E(x, S~)u~ + u'(E(S, S~) + s2 W^-1(S, S~))u~:}
#' an entry depends on its two points alone, so that predictions together and apart agree.
#'
#' @param object A fit: the result of [pfdtc()] or of one of the `gp_` functions.
#' @param newdata Rows to predict at. For a fit from a formula, a data frame with its variables; for
#'   a fit from a matrix, a matrix or data frame with d columns, matched by name when both sides
#'   have names, otherwise by position. When missing, the training rows in their original order
#'   (also those that were merged or had weight 0; padded with `NA` if the fit used `na.exclude`).
#' @param se.fit Should standard deviations be returned?
#' @param interval The band to return: none, `"credible"` for f (`"confidence"` is taken as the
#'   same), `"prediction"` for a new response of weight 1, or `"conformal"` for the same from how far the responses
#'   have been from what the other rows predict, see below. It depends on `interval` alone, not on `type`.
#' @param level Probability of the band, between 0 and 1.
#' @param type What `se.fit` and `cov` describe: the `"latent"` function f, or a new `"response"` of
#'   weight 1, whose variance is larger by the noise. The mean is the same for both. `"loo"` and `"loo_latent"`: the
#'   training rows, each given the others, and the sd of its response or of f: see [leave_one_out]. `"link"` is
#'   `"latent"`; `"class"` is for classes, see below.
#'   `"density"` is the log density of each row's response in the distribution predicted for it, for which `newdata` has
#'   the response too. Where the response was transformed (`transform` of [pfdtc()]), `"latent"` is on the transformed
#'   scale, `"response"` the mean of the response itself (and `se.fit` its sd), `"median"` its median, both with
#'   intervals of it: `"prediction"` its quantiles, `"credible"` those of its mean or median given f.
#'   `"terms"`: of each term of a kernel that is a sum ([kernel_algebra]) the mean of its own function at the rows, a
#'   matrix with a column a term and the attribute `constant`, as [stats::predict.lm()] has it; with `se.fit`,
#'   list(fit, se.fit) of two such matrices.
#'   `"derivative"`: of the slope of f along the input `wrt`, in units of y for a unit of that input, with
#'   `se.fit` its sd, with `interval = "credible"` its band, which `certified = TRUE` makes one that contains the exact
#'   process's own. Offsets are taken to stay. Matern 1/2 has no derivative, Matern 3/2 one.
#' @param wrt Name (or number) of the numeric input that `type = "derivative"` is along; not needed of one input.
#' @param certified Should the interval be one that contains the exact Gaussian process's own, by
#'   [certify()]? It then reaches from `mean_lower - z * sd` to `mean_upper + z * sd` with the largest sd that the exact
#'   process can have; the `fit` column stays, and lies outside the band where the fit's mean is further off than the
#'   band is wide: raise `m` there, or see [refine()]. Keep a reference in the fit,
#'   `fit$reference <- reference(fit)`, or each call makes one. With `hyper_uncertainty` the exact mixture's own.
#' @param full_cov Should the covariance matrix of all rows be returned?
#' @param hyper_uncertainty Should the uncertainty of the hyperparameters ([vcov.gp_fit()]) be taken into account? See
#'   below.
#' @param na.action What to do with rows of `newdata` that have missing values: by default they
#'   predict `NA`; `na.omit` drops them, `na.fail` is an error.
#' @param file For a row source as `newdata` ([rows_blocks()], [rows_db()], ...), the CSV file to write the predictions
#'   to, block by block, a line a row: columns `fit`, with an interval `lwr` and `upr`, with `se.fit` that. What it
#'   returns is then the file's name. The file is there when it is complete: until then rows are written to another
#'   beside it, from whose end the same call goes on after an interrupt or an error (with `na.action = na.pass`; the
#'   source must give its rows in the same order). `NULL`: predictions are returned as ever.
#' @param ... Nothing: an unknown argument is an error.
#' @return As [predict.lm()]. Without `se.fit` and `full_cov`: a vector with an element a row, or,
#'   with an `interval`, a matrix with columns `fit`, `lwr` and `upr`. With either: a list with
#'   `fit` (that vector or matrix), `se.fit` (a vector) and, with `full_cov`, `cov` (a square
#'   matrix). Means and standard deviations are in units of y, covariances in squared units. Names
#'   are the row names.
#' @section Classes and counts: With a `family` that is not Gaussian, `"latent"` (or `"link"`) is f, offset included,
#'   with its sd; `"response"` the probability of a success or the rate, averaged over the posterior of f (not the
#'   link's value at its mean), with the sd that its uncertainty gives it; `"class"` the class whose averaged
#'   probability is above one half; `"density"` the log density of each row's response, averaged likewise, for which
#'   `newdata` has responses too; `"loo"` and `"loo_latent"` the probability or rate, and f, of each training row given
#'   the others, by the Gaussian posterior at the mode (the mode and the hyperparameters held). `interval = "credible"`
#'   is of what `type` says, `certified = TRUE` makes it contain the interval of the exact process's Laplace posterior.
#'   `"prediction"` is of a new response of weight 1, whatever the type: the quantiles of its distribution, averaged
#'   over f. Of counts the ends are whole numbers, at least `level` likely to hold a response between them; of successes
#'   they are shares of the trials, which `newdata` has to have: both columns of `cbind(successes, failures)` (their
#'   sum counts) or the `weights` beside shares. Of single classes there are none: the probability says it all.
#'   The covariance is there for the link, which `"terms"` and `"derivative"` are of as well (without certificates).
#' @section Uncertain hyperparameters: predictions take the hyperparameters as known. Of few rows they are not, and
#'   intervals are then too narrow. `hyper_uncertainty = TRUE` predicts by a mixture: with \eqn{p} hyperparameters that
#'   were learned, \eqn{\hat\theta} their logs and \eqn{V = R R'} those of [vcov.gp_fit()], of the posteriors at the
#'   \eqn{2 p} points \eqn{\hat\theta \pm \sqrt{p} R_k}{theta^ +/- sqrt(p) R_k}, the other things of the fit (inducing
#'   points, order of rows, centre) held. A point's weight is proportional to the density of the data there, with the
#'   priors, divided by that of the normal approximation \eqn{N(\hat\theta, V)}{N(theta^, V)}. Mean, variances and
#'   covariances are those of the mixture (the mean of the variances and the variance of the means), and intervals are
#'   normal with these. Of `npk` (24 rows, 14 hyperparameters), each row predicted by a fit to the others, intervals of
#'   95 % contain 20 of the 24 responses without and 23 with it ([lm()]'s contain 22); of thousands of rows it changes
#'   next to nothing. Each call makes \eqn{2 p} posteriors of all rows. Of classes and counts it is f that is mixed (its
#'   constant mean with the rest), taken to be normal with the mixture's moments; responses scatter by the fit's theta.
#' @section Conformal intervals: `interval = "prediction"` is right where the noise is normal and of one size. Of flight
#'   delays, say, most are within minutes of the mean and some are hours away: three quarters of them are then inside
#'   the 50 % interval. `interval = "conformal"` takes its width from the data. With \eqn{\mu_{-i}} and \eqn{s_{-i}} the
#'   mean and the standard deviation of a response given all rows but \eqn{i} ([leave_one_out]), the scores
#'   \eqn{r_i = |y_i - \mu_{-i}(x_i)| / s_{-i}(x_i)} of the \eqn{n} rows, and
#'   \eqn{k = \lceil level\,(n + 1) \rceil}{k = ceiling(level (n + 1))}, its ends are
#'   \deqn{\mu(x) \pm q\, s(x), \quad q \; \textrm{the k-th smallest of} \; r_i.}{mu(x) -/+ q s(x), q the k-th smallest
#'   of the r_i.}
#'   Of an exact posterior (`fit$posterior` is `"exact"`) they are those of full conformal prediction, in closed form: a
#'   response \eqn{t} at \eqn{x} is inside if, with it among the rows, its own score is not among the
#'   \eqn{\lfloor (1 - level) (n + 1) \rfloor}{floor((1 - level) (n + 1))} largest of all \eqn{n + 1}. Of others of up
#'   to 1,000 rows, where there are no near rows (and but for [gp_subsample()]), they are those of the jackknife+:
#'   the \eqn{k}-th largest of \eqn{\mu_{-i}(x) - r_i s_{-i}(x)} and the \eqn{k}-th smallest of
#'   \eqn{\mu_{-i}(x) + r_i s_{-i}(x)}. Where \eqn{k > n}, so few rows cannot give so high a level: the ends are
#'   infinite.
#'
#'   What is guaranteed: if rows old and new are exchangeable (drawn alike: no drift, no groups), and if the
#'   hyperparameters, inducing points, centre and scale had not been learned from these rows, full conformal intervals
#'   would contain a new response with a probability of at least `level` (and at most \eqn{1 / (n + 1)} more, where no
#'   two scores are equal), and jackknife+ intervals of at least \eqn{1 - 2\alpha}, \eqn{\alpha = 1 - level} (Barber et
#'   al. 2021), as a rule of \eqn{1 - \alpha}, whatever the distribution. They were learned from these rows, so that
#'   this holds as far as one row does not matter for them. The first form has no guarantee for finite \eqn{n}: its
#'   coverage tends to `level` as \eqn{n} grows and single rows no longer move predictions. All of this is on average
#'   over rows, and nothing is said about each \eqn{x} by itself. With `weights` the scores are in units of the rows'
#'   own noise, whose shape is then taken to be the same.
#'
#'   Measured, coverage at held-out rows and width beside that of `"prediction"` (whose own coverage is in brackets):
#'
#'   | data | 50 % | 90 % | 95 % |
#'   |---|---|---|---|
#'   | flight delays | 49.6 at 0.54 (75.3) | 89.2 at 0.70 (93.8) | 94.0 at 0.87 (95.3) |
#'   | abalone | 49.0 at 0.82 (57.4) | 90.9 at 1.01 (90.7) | 94.9 at 1.11 (93.8) |
#'   | airfoil | 52.8 at 0.70 (63.7) | 86.5 at 0.94 (88.2) | 94.0 at 1.11 (91.8) |
#'   | power plant | 50.0 at 0.73 (64.4) | 90.8 at 0.86 (93.8) | 94.7 at 0.92 (95.7) |
#'   | wine quality | 50.9 at 0.62 (67.1) | 90.2 at 0.91 (92.3) | 95.4 at 0.96 (95.7) |
#'   | synthetic, normal noise | 50.1 at 1.00 (50.3) | 87.4 at 1.01 (86.8) | 94.0 at 1.00 (93.7) |
#'
#'   (`bench/intervals.R` and `bench/results/intervals.txt` in the sources.)
#'
#'   Each call takes a leave-one-out, see [leave_one_out] for the time, and of an exact posterior
#'   \eqn{O(n^2)} for each new row.
#' @section Invariants:
#' * Without `certified`, `lwr` and `upr` are `fit` minus and plus `qnorm((1 + level) / 2)` standard deviations of f or
#'   of a response.
#' * `se.fit^2` of a response is that of f plus `sigma(object)^2`.
#' * The terms and their constant (and the offset) sum to the mean.
#' * The derivative is what differences of the mean come to; exact derivatives lie within certified bands.
#' * `diag(cov)` is `se.fit^2`, and a submatrix of `cov` is the `cov` of those rows.
#' * Predicting rows together, apart, or in another order changes nothing beyond rounding.
#' @section Errors:
#' Class `pfdtc_error_input`: wrong columns, unknown levels, infinite inputs, a `level` outside (0,
#' 1), `hyper_uncertainty` where nothing was learned or together with `"conformal"`, a covariance matrix
#' above `getOption("pfdtc.max_memory", 2^32)` bytes (said before it is taken), and `newdata` missing from a fit made
#' with `keep_data = FALSE`.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), Scalable Gaussian Process Inference
#'   with Finite-data Mean and Variance Guarantees, AISTATS; theory vignette for near rows.
#' @references Barber, Candes, Ramdas and Tibshirani (2021), Predictive Inference with the Jackknife+, Annals of
#'   Statistics 49; Burnaev and Vovk (2014), Efficiency of Conformalized Ridge Regression, COLT; Papadopoulos
#'   (2024), Guaranteed Coverage Prediction Intervals with Gaussian Process Regression, IEEE TPAMI 46.
#' @seealso [fitted()], [simulate()] and [plot()] methods in [gp_fit-methods] and [plot.gp_fit()].
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' new <- data.frame(speed = c(10, 15, 20))
#' predict(fit, new)
#' predict(fit, new, interval = "prediction")
#' predict(fit, new, interval = "conformal", level = 0.8)
#' predict(fit, new, se.fit = TRUE, full_cov = TRUE)
#' @export
predict.gp_fit <- function(object, newdata, se.fit = FALSE,
                           interval = c("none", "credible", "prediction", "conformal"), level = 0.95,
                           type = c("latent", "response", "loo", "loo_latent", "link", "class", "density", "terms",
                                    "derivative", "median"), wrt = NULL,
                           certified = FALSE, full_cov = FALSE, hyper_uncertainty = FALSE,
                           na.action = stats::na.pass, file = NULL, ...) {
  check_dots_empty(list(...), names(formals(predict.gp_fit)))
  object <- check_any_fit(object, "object")
  new <- if (!missing(newdata)) newdata
  ask <- list(se.fit = se.fit, interval = interval, level = level, type = type, wrt = wrt, certified = certified,
              full_cov = full_cov, hyper_uncertainty = hyper_uncertainty, newdata = !is.null(new))
  if (is_source(new)) return(predict_blocks(object, new, ask, na.action, file))
  if (!is.null(file)) abort_input("file", file, "NULL unless `newdata` is a row source")
  response <- response_of(object)
  ask <- check_asked(response, ask)
  if (startsWith(ask$type, "loo")) return(predict_loo(object, response, ask))
  rows <- if (ask$newdata) new_rows(object, new, na.action) else training_rows(object)
  if (ask$type == "derivative") return(predict_derivative(object, rows, wrt, se.fit, ask$interval, level, certified))
  if (ask$type == "terms") return(predict_terms(object, rows, se.fit))
  rows$size <- sizes_asked(object, response, rows, new, ask)
  f <- latent_asked(object, rows, ask)
  if (ask$type == "class") return(class_of(response$levels, f$mean))
  if (ask$type == "density") return(log_densities(object, response, responses_asked(object, new), f, rows))
  said <- response_say(response, f, f, ask)
  value <- in_shape(said, rows$names)
  if (!se.fit && !full_cov) return(value)
  out <- list(fit = value, se.fit = stats::setNames(said$sd, rows$names))
  if (full_cov) out$cov <- f$cov
  out
}

# Predicts at the rows of a source, block by block.
predict_blocks <- function(fit, source, ask, na.action, file) {
  if (!isFALSE(ask$full_cov)) abort_input("full_cov", ask$full_cov, "FALSE for a row source")
  args <- ask[!names(ask) %in% c("full_cov", "newdata")]
  # with na.pass a line is a row
  request <- if (identical(na.action, stats::na.pass)) list(prediction_signature(fit), source$columns, args)
  predict_source(source, function(block) {
    do.call(stats::predict, c(list(fit, block, na.action = na.action), args))
  }, file, request)
}

# Returns a vector, or with an interval a matrix, as predict.lm() does.
in_shape <- function(said, names) {
  if (is.null(said$lwr)) return(stats::setNames(said$fit, names))
  out <- cbind(fit = said$fit, lwr = said$lwr, upr = said$upr)
  rownames(out) <- names
  out
}

# ---- rows -> f ------------------------------------------------------------------------------------------------------

# Returns f at the rows asked for: list(mean, var, lower, upper, top, noise, size, cov, conformal). `lower`, `upper` and
# `top` bound the exact mean and variance if certified.
latent_asked <- function(fit, rows, ask) {
  conjugate <- is.null(fit$likelihood)
  p <- if (ask$hyper_uncertainty) mixture_at(fit, rows, ask$full_cov) else
    c(latent_at(fit, rows$x), list(noise = if (conjugate) noise_at(fit, rows$x)))
  f <- list(mean = p$mean[rows$index] + rows$offset, var = p$var[rows$index], size = rows$size)
  if (conjugate) f$noise <- rep_len(p$noise, nrow(rows$x))[rows$index]
  f[c("lower", "upper", "top")] <- f[c("mean", "mean", "var")]
  if (ask$certified) {
    exact <- certificate_of(fit, rows, p = if (ask$hyper_uncertainty) mixture_of(fit) else posterior_of(fit))
    f[c("lower", "upper", "top")] <- list(exact$mean_lower, exact$mean_upper, exact$sd_upper^2)
    if (ask$hyper_uncertainty) { # the largest noise of the mixture
      f$noise_top <- attr(exact, "noise") * rep_len(noise_factor(fit$noise_trend, rows$x), nrow(rows$x))[rows$index]
    }
  }
  if (ask$interval == "conformal") f$conformal <- conformal_band(fit, rows, p, ask$level)
  if (ask$full_cov) f$cov <- if (ask$hyper_uncertainty) p$cov else covariance_at(fit, rows)
  if (ask$full_cov && conjugate) diag(f$cov) <- f$var + if (ask$type == "response") f$noise else 0
  if (ask$type %in% c("class", "density")) f$mean <- stats::setNames(f$mean, rows$names)
  f
}

# Returns the trials of each row where a distribution of responses is asked for, else 1.
sizes_asked <- function(fit, response, rows, newdata, ask) {
  ones <- rep(1, length(rows$index))
  if (!response$trials || !(ask$interval == "prediction" || ask$type == "median")) return(ones)
  check_responses(ones, if (ask$newdata) new_trials(fit, newdata) else
    stats::napredict(fit$na.action, sizes_given(training_data(fit))))
}

# Returns the class whose averaged probability is above one half, which is that of the sign of f: links are symmetric.
class_of <- function(levels, mean) {
  if (is.null(levels)) return(stats::setNames(as.integer(mean > 0), names(mean)))
  if (identical(levels, c("FALSE", "TRUE"))) return(mean > 0)
  stats::setNames(factor(levels[1L + (mean > 0)], levels = levels), names(mean))
}

# Returns list(y, size), the responses of the rows asked for.
responses_asked <- function(fit, newdata) {
  if (!is.null(fit$likelihood)) {
    return(if (is.null(newdata)) all_sites(training_data(fit)) else new_sites(fit, newdata))
  }
  list(y = if (is.null(newdata)) stats::napredict(fit$na.action, given_response(training_data(fit))) else
    as.double(responses_in(fit, newdata)))
}

# Returns log p(y) of each row's response, averaged over f.
log_densities <- function(fit, response, given, f, rows) {
  check_responses(f$mean, given$y)
  known <- which(!is.na(f$mean) & !is.na(given$y))
  given <- take_sites(given[intersect(c("y", "size"), names(given))], known)
  out <- stats::setNames(rep(NA_real_, length(f$mean)), rows$names)
  out[known] <- response_log_density(response, given, lapply(f[c("mean", "var", "noise")], `[`, known))
  out
}

responses_in <- function(fit, newdata) {
  if (is.null(fit$terms)) {
    abort_input("newdata", "rows for a fit from a matrix, without responses", "rows for a fit from a formula",
                hint = "Responses of new rows, and numbers of trials, are known by a formula alone.")
  }
  expression <- attr(fit$terms, "variables")[[2L]]
  lacking <- setdiff(all.vars(expression), names(newdata))
  if (length(lacking)) {
    abort_input("newdata", sprintf("one without %s", list_quoted(lacking)), "with the response")
  }
  eval(expression, newdata, environment(fit$terms))
}

# Checks that responses, or trials, exist for each row predicted: na.omit leaves rows out.
check_responses <- function(rows, given) {
  if (length(given) == length(rows)) return(given)
  abort_input("newdata", "rows with missing values", "complete where responses are looked at")
}

# Returns the responses of all training rows.
all_sites <- function(data) {
  if (is.null(data$x_zero)) return(data$sites)
  abort_input("newdata", "left out of a fit with rows of weight 0", "given for type = \"density\"")
}

# Returns the responses of new rows, by the fit's formula.
new_sites <- function(fit, newdata) {
  response <- responses_in(fit, newdata)
  known <- stats::complete.cases(response)
  all <- length(known)
  response <- if (length(dim(response)) == 2L) response[known, , drop = FALSE] else response[known]
  read <- if (response_of(fit)$trials && length(dim(response)) != 2L) {
    size <- new_trials(fit, newdata)[known]
    list(y = response * size, size = size)
  } else {
    read_response(fit$likelihood, known_classes(fit, response), rep(1, sum(known)), "newdata", sum(known))
  }
  lapply(read[intersect(c("y", "size"), names(read))], function(v) replace(rep(NA_real_, all), known, v))
}

# Returns the number of trials of each row: the sum of a response with two columns, or the `weights` of shares.
new_trials <- function(fit, newdata) {
  if (is.null(fit$terms) || attr(fit$terms, "dataClasses")[1L] == "nmatrix.2") {
    return(rowSums(responses_in(fit, newdata)))
  }
  size <- tryCatch(eval(fit$call$weights, newdata, environment(fit$terms)), error = function(e) NULL)
  if (is.numeric(size) && length(size) == nrow(newdata)) return(size)
  abort_input("newdata", sprintf("one without `%s`", deparse1(fit$call$weights)),
              "with the numbers of trials, which were the weights of the fit")
}

# ---- leave-one-out ---------------------------------------------------------------------------------------------------

# predict(type = "loo") of any fit.
predict_loo <- function(fit, response, ask) {
  padded <- function(v) stats::napredict(fit$na.action, v)
  loo <- loo_rows(fit)
  f <- list(mean = loo$mean, var = loo$var, lower = loo$mean, upper = loo$mean, top = loo$var, noise = loo$noise,
            size = if (!response$conjugate) sizes_given(training_data(fit)))
  ask$type <- if (ask$type == "loo_latent") "latent" else "response"
  # a leave-one-out prediction of a transformed response stays on the scale of f
  said <- response_say(if (response$conjugate) response_of(list()) else response, f, f, ask)
  value <- padded(if (ask$interval == "none") said$fit else in_shape(said, names(said$fit)))
  if (ask$se.fit) list(fit = value, se.fit = padded(said$sd)) else value
}
