# The object: how a fit is put together, from each kind of posterior, and what the methods ask of it.

# The one constructor of fits. `parts`: the posterior (`factors` on the rows of `x` or on `inducing` points, or `near`
# rows by them), `evidence`, the log evidence of y or its bound, and what else is particular to it. `about`: what is
# known of the data and of how the fit came about.
new_gp <- function(method, model, parts, about) {
  units <- model_units(model)
  structure(class = c(method, "gp_fit"), home = methods_home, c(
    about["call"], list(method = method, kernel = units$kernel, noise = units$noise), parts,
    list(posterior = posterior_kind(parts), center = model$center, scale = model$scale),
    about[names(about) != "call"]))
}

# What the stages have come to.
new_fit <- function(data, done, s, state, parts) {
  trace <- if (is.null(done$trace)) empty_trace() else done$trace
  if (length(unique(trace$round)) < 2L) trace$round <- NULL
  learned <- setdiff(parameter_names(done$model$kernel, s$learn$columns), not_learned(s$learn))
  new_gp(s$method, done$model, parts, list(
    call = s$call, frame = make_frame(data, s$keep_data), data = if (s$keep_data) data,
    signature = if (is.null(data$signature)) data_signature(data) else data$signature, nobs = data$n,
    asked = if (s$keep_data) s$again, because = s$because, hyper = s$learn$hyper, noise_trend = data$noise_trend,
    transform = data$transform,
    objective = done$value, df = length(learned) + length(data$noise_trend$gamma) + sum(done$more_df),
    sd_y = data$sd_y, trace = trace, z_trace = done$z_trace,
    convergence = done$convergence, message = done$message, evaluations = state$evaluations, seconds = state$seconds,
    looked_at = state$rows,
    pilot = done$pilot, learned = done$learned, kernels = done$kernels,
    control = s$control, maxit = s$posterior$steps$maxit,
    version = utils::packageVersion("pfdtc"), terms = if (s$keep_data) data$terms else drop_environment(data$terms),
    na.action = data$na_action))
}

# Another posterior of a fit's model, for which nothing is optimised.
gp_beside <- function(fit, method, parts, call = NULL, data = NULL) {
  same <- c("frame", "signature", "nobs", "df", "sd_y", "noise_trend", "transform", "control", "version", "terms",
            "na.action")
  new_gp(method, model_of(fit), parts, c(list(call = call, data = data), fit[intersect(same, names(fit))], list(
    hyper = "fixed", objective = NA_real_, trace = empty_trace(), convergence = 0L, message = "nothing to optimise",
    evaluations = numeric(), seconds = numeric())))
}

# A reference to this package's namespace, in every fit: where a fit arrives that was saved or sent to a worker, the
# package is then loaded, and its methods are there without library().
methods_home <- topenv()

# What a fit's posterior is made of: the exact one of its rows, the inducing points alone (far), or with rows near by.
posterior_kind <- function(parts) {
  if (!is.null(parts$x)) "exact" else if (is.null(parts$near)) "far" else "far + near"
}

# The exact posterior of all rows, by whatever function it was fitted.
is_exact <- function(fit) identical(fit$posterior, "exact") && is.null(fit$chosen)

# What a fit has of a DTC posterior, which the theorem, the divergences and their like speak of: of far and near, that
# of its points alone; of the exact one, that with all rows as inducing points, from which it differs by a jitter of
# rounding size.
far_part <- function(fit) {
  if (!is_exact(fit) && is.null(fit$near)) return(fit)
  data <- needs_data(fit, "fit")
  z <- if (is_exact(fit)) data$x else fit$inducing
  model <- model_of(fit)
  fit$factors <- native_posterior(z, data, model, jitter = 1e-12, control = fit$control)
  fit$jitter <- fit$factors$jitter
  fit$inducing <- z
  fit$evidence <- evidence_of("points", model, data, fit$factors)
  fit["x"] <- fit["near"] <- list(NULL)
  if (is.null(fit$aux)) fit$aux <- default_aux()
  fit$posterior <- "far"
  fit
}

empty_trace <- function() data.frame(evaluation = integer(), objective = numeric(), seconds = numeric())

needs_data <- function(fit, argument) {
  if (is.null(fit$data)) {
    if (is.null(fit$source)) abort_input(argument, "a fit without its data", "a fit made with `keep_data = TRUE`")
    abort_input(argument, "a fit of a row source, which keeps no rows", "a fit of a data frame",
                hint = "reference(), refine() and add_rows() take a source.")
  }
  fit$data
}

# Rows that tell the range and the middle of every input: the data, else what the frame kept of them
# (rows minimum, median, maximum).
slice_rows <- function(fit) {
  if (!is.null(fit$data)) return(fit$data$x)
  if (!is.null(fit$frame$outline)) fit$frame$outline else fit_points(fit)
}

# What the posterior rests on: inducing points, or the rows of an exact posterior.
fit_points <- function(fit) if (is.null(fit$inducing)) fit$x else fit$inducing
