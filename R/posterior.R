# Defines the posterior distribution of f as a list with a class, and generic functions that serve every class.
#
# A posterior has class "posterior" and one of these classes, with these elements:
#   exact    all rows, or the subsample `chosen`, by a dense factorisation: x, factors, chosen
#   points   inducing points: z, factors, sor (SoR variance), fitc (FITC noise), jitter
#   near     inducing points with nearest neighbours: z, near, rows
#   mixture  posteriors at several hyperparameters: hyper, weights, points (learn-curvature.R)
#   classes  K - 1 functions for K classes on inducing points: z, factors, jitter (classes.R)
# Classes `grouped` and `grouped_near` are points and near with exact effects of groups (posterior-grouped.R). Each
# class also has `model`, `control`, `fit` (the fit that it belongs to) and `rows` (the data, or NULL if not kept).
# Laplace and variational posteriors are exact, points or near, with working responses (posterior-working.R). All
# numbers are in units of data$y (the response, centred and scaled), without the constant mean.
#
# For binomial and ordered responses and classes, `factors$shift` is the mean minus the mode of the whitened values, to
# first order: H^{-1} A s. H is minus the Hessian of the log posterior, and A has the features of the rows. s is the
# derivative, by f at each row, of the determinant terms of Laplace's log marginal likelihood (mainly -log det H / 2).
# Certificates and posteriors with neighbours use the mode.

# Returns the posterior of a fit. If the data came in blocks from a row source, sampled rows (near$rows) are neighbours.
posterior_of <- function(fit) {
  near <- fit$near
  class <- if (!is.null(fit$x)) "exact" else if (!is.null(near$groupings)) c("grouped_near", "near") else
    if (!is.null(near)) "near" else if (!is.null(fit$factors$groupings)) c("grouped", "points") else
      if (!is.null(fit$factors$inverse)) "classes" else "points"
  family <- method_traits(fit)
  new_posterior(class, model_of(fit), fit, near$rows %||% fit$data, x = fit$x, z = fit$inducing, near = near,
                factors = fit$factors, chosen = fit$chosen, sor = family$sor, fitc = family$fitc,
                jitter = fit$jitter, norms = fit$norms)
}

new_posterior <- function(class, model, fit, rows, ..., sor = FALSE, fitc = FALSE, control = fit$control) {
  structure(list(model = model, control = control, fit = fit, rows = rows, sor = sor, fitc = fitc, ...),
            class = c(class, "posterior"))
}

sites_of_fit <- function(fit, data) engine_sites(fit$likelihood, data$sites, fit$center)

# Returns TRUE if Laplace's approximation on inducing points equals, up to rounding, that of the exact GP.
is_laplace_limit <- function(fit) identical(fit$likelihood$approx, "laplace") && isTRUE(fit$unexplained < 1e-8)

# Returns list(mean, var) of the functionals `fun`; rounding may make a variance slightly negative. With `joint`, values
# of f also have their covariance matrix `cov`.
posterior_at <- function(p, fun, joint = FALSE) {
  if (!fun$n) return(list(mean = numeric(), var = numeric(), cov = if (joint) matrix(0, 0L, 0L)))
  UseMethod("posterior_at")
}

# Returns mean and variance of f at the rows of x. With `mean_only`, variances that would take long are NA.
posterior_values <- function(p, x, joint = FALSE, mean_only = FALSE) {
  posterior_at(p, c(values_at(p$model$kernel, x), list(mean_only = mean_only)), joint)
}

# Returns the leave-one-out distribution of f at each training row: list(mean, var, leverage) with an element for each
# row of positive weight, before equal rows are merged. Inducing points and hyperparameters stay the same.
#
# Let g and -W be the first two derivatives of a row's log likelihood by f at the mode (for Gaussian noise, the mean).
# The variance of f is q + left, where data can reduce only q. `shift` is the mean minus the mode of f, s the derivative
# by f of the determinant terms of Laplace's log marginal likelihood (both 0 except for binomial and ordered responses).
#
#   mean_(-n) = mode - (g q - shift + q s) / (1 - W q),  var_(-n) = q / (1 - W q) + left,  leverage W q.
#
# Posteriors with neighbours do not use this formula (posterior_without.near()).
posterior_without <- function(p) UseMethod("posterior_without")

# Returns list(mean, q, left, g, W, rest, group) for each row of positive weight. `mean` is the mode of f. Its variance
# is q + left, of which data can reduce only q. g and -W are the first two derivatives of the log likelihood by f, and
# rest = 1 - W q. `group` is the row of p$rows$x into which the row was merged.
row_parts <- function(p) UseMethod("row_parts")

# Sets part$rest = 1 - leverage to NaN where it may be only rounding error. part$sure marks rows where it is accurate.
without_rounded <- function(part) {
  part$rest[part$rest < 1e-12 & !(part$sure %||% FALSE)] <- NaN
  part
}

# Returns sum_k W_k Q_kg^2 over the rows k, for each row g of p$rows$x (Cook's distances need it). W has the weights
# divided by the noise variance, and Q is the posterior covariance of f without the residual prior variance.
squared_moves <- function(p) UseMethod("squared_moves")

# Returns the covariance of f at the data rows (rows) with functionals (columns), without the residual prior covariance.
covariance_with_rows <- function(p, fun) UseMethod("covariance_with_rows")

# Returns list(group, y, w) for each row of positive weight: its row of p$rows$x after merging, response and weight.
responses_used <- function(p) {
  data <- p$rows
  if (!is.null(p$fit$likelihood)) return(list(group = seq_len(nrow(data$x)), y = data$y, w = merged_weights(data)))
  y <- response_of_rows(data)
  w <- if (is.null(data$prior_weights)) rep(1, length(y)) else of_used_rows(data, data$prior_weights)
  list(group = if (is.null(data$group)) seq_along(y) else data$group, y = y, w = w)
}

# Returns list(value, lower, upper, is): the log marginal likelihood of y, or its approximation, and bounds on that of
# the exact GP. `is` is the kind of value: "exact", "lower bound", "estimate", or "own model" (SoR, FITC, a subsample).
posterior_evidence <- function(p) {
  is <- if (p$sor || p$fitc || !is.null(p$chosen)) "own model" else
    if (identical(p$fit$likelihood$approx, "vi")) "lower bound" else
      if (!is.null(p$fit$likelihood) || inherits(p, "near")) "estimate" else
        if (inherits(p, "exact")) "exact" else "lower bound"
  value <- p$fit$evidence
  list(value = value, lower = if (is %in% c("exact", "lower bound")) value else -Inf,
       upper = if (is == "exact") value else Inf, is = is)
}

# Returns the largest log marginal likelihood that learning found, for information criteria. With few rows, the learned
# variances may be enlarged afterwards, which lowers fit$evidence.
largest_evidence <- function(fit) fit$evidence + (attr(fit$learned, "below") %||% 0)

# Returns the log_evidence() of a new posterior of class `class`. In `kind`, list(sor, fitc), TRUE marks SoR or FITC.
evidence_of <- function(class, model, rows, factors, kind = NULL) {
  log_evidence(new_posterior(class, model, NULL, rows, factors = factors, near = if (class == "near") factors,
                             sor = isTRUE(kind$sor), fitc = isTRUE(kind$fitc)))
}

# Returns the log marginal likelihood of a posterior, or its approximation. On inducing points, SoR has the model y ~
# N(0, Q + s2 W^{-1}); Q approximates the kernel matrix K, W has weights. DTC returns the variational bound: SoR's value
# minus t / (2 s2), where t is the trace of W (K - Q). FITC adds the diagonal of K - Q to the noise.
log_evidence <- function(p) {
  data <- if (is.null(p$chosen)) p$rows else take_rows(p$rows, p$chosen)
  f <- p$factors
  noise <- p$model$noise
  less <- 0
  if (inherits(p, "exact")) {
    # Use the log density of sqrt(w) y, as for other posteriors: data$shift$constant changes it back to that of y.
    value <- -f$minus_evidence - if (is.null(data$weights)) 0 else sum(log(data$weights)) / 2
  } else if (inherits(p, "near")) {
    value <- p$near$evidence
  } else if (inherits(p, "grouped")) {
    noise <- f$noise
    value <- -((f$n * log(2 * pi * noise) + f$logdet + f$quad) / 2) - f$t / (2 * noise)
  } else {
    n <- data$n - if (p$fitc) 0 else data$shift$rows
    logdet_D <- logdet(f$C) - nrow(f$C) * log(noise)
    value <- -(n / 2 * log(2 * pi * noise) + logdet_D / 2 + (f$rss / noise + sum(f$beta^2)) / 2)
    if (p$fitc) return(value + f$log_weights / 2 - data$n * log(data$scale))
    if (!p$sor) less <- f$t / (2 * noise)
  }
  value + merged_log_density(data$shift, noise) + data$shift$constant - less
}

# Returns bounds on mean and sd under the exact GP: list(mean_lower, mean_upper, sd_lower, sd_upper).
posterior_certificate <- function(p, fun, ...) UseMethod("posterior_certificate")

# Returns mean and variance of f at the rows of x, in units of y if y is Gaussian. With `joint`, also returns their
# covariance `cov`. The mean includes the constant mean but no offset. If `re` is FALSE, effects of groups are omitted.
# Variances are at least 0. A mixture over hyperparameters also has `noise`.
latent_at <- function(fit, x, joint = FALSE, p = posterior_of(fit), mean_only = FALSE, re = TRUE) {
  if (joint) check_memory(8 * as.double(nrow(x))^2, sprintf("the covariance of %d rows", nrow(x)))
  group <- if (!joint) equal_rows(x, nrow(x) / 2)
  if (!is.null(group)) { # f is computed once for equal rows
    at <- latent_at(fit, x[!duplicated(group), , drop = FALSE], FALSE, p, mean_only, re)
    return(replace(at, c("mean", "var"), take_rows_of(at[c("mean", "var")], group)))
  }
  at <- if (re || !has_groups(p$model$kernel)) posterior_values(p, x, joint, mean_only) else
    posterior_at(p, population_at(p$model$kernel, x))
  if (joint && is.null(at$cov)) { # each row gets a new level of its own
    refuse_if(!has_own_levels(p$model$kernel), "re", "FALSE", "TRUE if `full_cov` is TRUE",
              hint = "The levels of the group are also an input of another term.")
    for (column in group_columns(p$model$kernel)) x[, column] <- -2^50 - seq_len(nrow(x))
    at$cov <- posterior_values(p, x, TRUE)$cov
    diag(at$cov) <- at$var
  }
  if (inherits(p, "classes")) as_log_odds(at, fit$center) else c(in_response_units(fit, at, fit$center), at["noise"])
}

in_response_units <- function(fit, p, shift = 0) {
  c(list(mean = shift + in_units(fit, p$mean), var = in_units(fit, pmax(p$var, 0), 2)),
    if (!is.null(p$cov)) list(cov = in_units(fit, p$cov, 2)))
}

functionals_in_units <- function(fit, fun) {
  p <- posterior_at(posterior_of(fit), fun)
  list(mean = in_units(fit, p$mean), sd = in_units(fit, sqrt(pmax(p$var, 0))))
}

# Returns a certificate as a data frame in units of y, from mean and sd (`of_fit`) and their intervals (`inside`). at(v)
# adds the constant mean and the offset to v, and room(v) bounds the rounding error of this sum.
interval_frame <- function(of_fit, inside, at, room) {
  eps <- 4 * .Machine$double.eps
  lower <- at(inside$mean_lower) - room(inside$mean_lower)
  upper <- at(inside$mean_upper) + room(inside$mean_upper)
  mean <- at(of_fit$mean)
  data.frame(mean = mean, mean_error = (1 + eps) * pmax(mean - lower, upper - mean), mean_lower = lower,
             mean_upper = upper, sd = of_fit$sd, sd_lower = (1 - eps) * inside$sd_lower,
             sd_upper = (1 + eps) * inside$sd_upper)
}

# Returns mean and sd of functionals, or their certificate, as a data frame. `shift`, with a rounding error of at most
# `rounding`, is added to means. spread(v) inserts NA for rows with missing inputs. `ask` has arguments of certify().
answer_of_functionals <- function(fit, fun, shift, rounding, spread, ask) {
  started <- proc.time()[["elapsed"]]
  at <- functionals_in_units(if (ask$certified) at_mode(fit) else fit, fun)
  if (!ask$certified) return(data.frame(mean = spread(at$mean) + shift, sd = spread(at$sd)))
  inside <- posterior_certificate(posterior_of(fit), fun, ask$effort, ask$reference, ask$m2,
                                  max_seconds = ask$max_seconds)
  structure(functional_frame(fit, fun, at, inside, shift, rounding, spread), effort = ask$effort,
            m2 = attr(inside, "m2"), seconds = proc.time()[["elapsed"]] - started, likelihood = fit$likelihood$label)
}

# Returns the certificate of functionals as a data frame. For Gaussian noise, intervals include rounding of responses.
# An error e of y moves the mean by at most |e| sqrt(size / noise) / 2, where `size` is at least the prior variance.
functional_frame <- function(fit, fun, at, inside, shift, rounding, spread) {
  eps <- 4 * .Machine$double.eps
  of_response <- if (!response_of(fit)$conjugate) 0 else
    eps * response_size(fit) * sqrt(in_units(fit, fun$size, 2) / fit$noise) / 2
  inside$mean_lower <- inside$mean_lower - of_response
  inside$mean_upper <- inside$mean_upper + of_response
  out <- interval_frame(lapply(at, spread), lapply(inside, spread), function(v) shift + v,
                        function(v) eps * abs(v) + rounding)
  structure(out, class = c("pfdtc_certificate", "data.frame"), sd_y = fit$sd_y, of = "weighted sum",
            transformed = !is.null(fit$transform))
}

# Returns a bound on |y| + |offset| for the user's responses y; both norms weight the squares by the rows' weights.
response_size <- function(fit) {
  offset <- fit$frame$offset_size %||% if (length(fit$data$offset)) offset_size(fit$data)
  sqrt(fit$signature$sums[["yy"]]) + (offset %||% 0)
}

# Returns the covariance matrix of f at the rows to predict at, in squared units of y.
covariance_at <- function(fit, rows, at = latent_at(fit, rows$x, TRUE)) {
  check_memory(8 * as.double(length(rows$index))^2, sprintf("the covariance of %d rows", length(rows$index)))
  dimnames_of(at$cov[rows$index, rows$index, drop = FALSE], rows$names)
}

# Returns the rows to predict at, list(x, index, offset, names). x has the inputs of rows without missing values, and
# `index` the row of x for each row, or NA. If all are NA, x still has one row, because computations need one.
new_rows <- function(fit, newdata, na.action = stats::na.pass, re = TRUE) {
  if (missing(newdata)) return(training_rows(fit))
  new <- new_inputs(fit, newdata, na.action, re)
  index <- rep(NA_integer_, length(new$keep))
  index[new$keep] <- seq_len(sum(new$keep))
  if (!nrow(new$x)) new$x <- rbind(new$x, if (is.null(fit$inducing)) 0 else fit$inducing[1L, ])
  list(x = new$x, index = index, offset = new$offset, names = new$row_names)
}

# Returns the training rows as list(x, index, offset, names), where index[i] is the row of x with the inputs of row i.
# Rows that the fit merged are separate, and rows omitted by na.exclude are NA.
training_rows <- function(fit) {
  data <- training_data(fit)
  rows <- training_inputs(data)
  offset <- data$offset %||% numeric(length(rows$index))
  index <- stats::napredict(fit$na.action, stats::setNames(rows$index, names(data$response)))
  list(x = rows$x, index = unname(index), offset = stats::napredict(fit$na.action, offset), names = names(index))
}

# Returns the kind of posterior: "exact", "far" (inducing points alone), or "far + near" (with neighbours).
posterior_kind <- function(parts) if (!is.null(parts$x)) "exact" else if (is.null(parts$near)) "far" else "far + near"

is_exact <- function(fit) identical(fit$posterior, "exact") && is.null(fit$chosen)

# Returns the data of a fit, or stops with an error that names `argument`. The default error recommends `newdata`.
training_data <- function(fit, argument = "newdata") {
  if (!is.null(fit$data)) return(fit$data)
  source <- !is.null(fit$source)
  keep <- if (source) "fit a data frame." else "fit with `keep_data = TRUE`."
  hint <- if (argument == "newdata") paste("Give `newdata` if possible, or", keep) else if (source)
    "reference() and refine() take the source as `data`." else "Fit with `keep_data = TRUE`."
  abort_input(argument, "a fit without its data", message = sprintf("%s the training rows, but %s.",
    if (argument == "newdata") "This call needs" else sprintf("`%s` must have", argument),
    if (source) "a fit of a row source keeps none" else "the fit was made with `keep_data = FALSE`"), hint = hint)
}

# Returns inputs that show the range of every input: those of the data, or if these are not kept, three rows of minimum,
# median and maximum. If the fit lacks both, returns its inducing points.
slice_rows <- function(fit) fit$data$x %||% fit$frame$outline %||% fit_points(fit)

fit_points <- function(fit) fit$inducing %||% fit$x

# Returns the positions of the variances in a q x q covariance matrix that is stored as a row.
diagonals <- function(q) seq(1L, by = q + 1L, length.out = q)

# Returns the weights of whitened features in the mean of f: those of the mode plus, if stored, the shift to the mean.
mean_weights <- function(factors) if (is.null(factors$shift)) factors$beta else factors$beta + factors$shift

refuse_classes <- function(fit) {
  refuse_if(length(fit$center) > 1L, "model", "a fit of several classes",
            message = paste(user_function(), "is for fits with one latent function, not several unordered classes."),
            hint = "For example, predict(), certify(), residuals() and hatvalues() accept this fit.")
  fit
}

# Returns the fit without its shift from mode to mean, so that predictions use the mode.
at_mode <- function(fit) {
  fit$factors$shift <- NULL
  fit
}

# ---- bounds on rounding errors --------------------------------------------------------------------------------------

# Returns a jitter (a share of each k(z, z)) for m inducing points Z that is well above rounding: the factorisation of
# k(Z, Z) has a relative error of 0.1 to 0.2 m eps for distinct points. Certificates need at least this jitter.
rounding_jitter <- function(m) 4 * (m + 8) * .Machine$double.eps

# Bounds the relative rounding error of sums over n rows and of factorisations of size m. The term n / 64 is for sums of
# equal numbers, whose errors have a common sign: n eps / 110 was measured with a BLAS that adds terms one by one.
rounding_growth <- function(m, n) (4 * (sqrt(m) + sqrt(n) + 4) + n / 64) * .Machine$double.eps

# Bounds the relative rounding error of v'(K - Q) v, where K - Q is the residual prior covariance.
rounding_slack <- function(m, n) 4 * (m + sqrt(n) + 32) * .Machine$double.eps

# Returns `b` with its allowances for rounding, b$growth and b$slack, enlarged if errors of kernel values at the rows
# `...` may exceed b$unit.
allowing_for <- function(b, ...) {
  unit <- b$unit %||% (32 * .Machine$double.eps) # the allowances of rounding_growth() and rounding_slack() are above it
  more <- max(1, kernel_value_error(b$model$kernel, ...) / unit)
  replace(b, c("growth", "slack", "unit"), list(more * b$growth, more * b$slack, more * unit))
}

norm2 <- function(v) sqrt(sum(v^2))

logdet <- function(C) 2 * sum(log(diag(C)))

# Returns a jitter for m inducing points of which many may be almost equal. The errors of the factorisation of k(Z, Z)
# then have a common sign and grow like m^2 eps / 80.
safe_jitter <- function(m) rounding_jitter(m) + m^2 / 16 * .Machine$double.eps

# Returns the bounds v as text with `digits` significant digits, upper bounds (`up` TRUE) rounded up, lower ones down.
show_bound <- function(v, digits, up = TRUE) vapply(round_bound(v, digits, up), format, "", digits = max(7L, digits))

round_bound <- function(v, digits, up) {
  shown <- signif(v, digits)
  inwards <- is.finite(v) & (if (up) shown < v else shown > v)
  step <- 10^(floor(log10(abs(v))) + 1 - digits)
  ifelse(inwards, signif(shown + (if (up) step else -step), digits + 1L), shown)
}

# Rounds the columns of a data frame that are bounds (by their names) outwards. If `text`, these columns are returned as
# text, because print() would append zeros, as in 1.0520 below 0.9993, which look like digits of the bound.
round_bounds <- function(x, digits, text = FALSE) {
  up <- grepl("(^|_)upper$|mean_error$|_bound(_sharp)?$|^at_most$|^upr_certified$", names(x))
  bounds <- (up | grepl("(^|_)lower$|^at_least$|^lwr_certified$", names(x))) & vapply(x, is.numeric, NA)
  for (i in which(bounds)) x[[i]] <- round_bound(x[[i]], digits, up[i])
  if (text) x[bounds] <- lapply(unclass(x)[bounds], function(v) format(as.character(v), justify = "right"))
  x
}
