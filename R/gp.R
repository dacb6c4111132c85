# The object: how a fit is put together, from each kind of posterior, and what the methods ask of it.

# The exact posterior of all rows, by the verbs of a fit on inducing points: the rows are its points.
construct_exact <- function(data, learned, s, state) {
  done <- c(learned, list(convergence = 0L, message = "nothing to optimise", value = NA_real_))
  announce_memory(8 * as.double(nrow(data$x))^2, nrow(data$x))
  posterior <- posterior_stage(state, function() {
    native_exact(data$x, data$y, data$weights, done$kernel, done$noise, s$control)
  })
  new_fit(data, done, s, state, posterior, exact_evidence(data, posterior, done$noise), list(
    rows = data$x, inducing = data$x, m = nrow(data$x), m_asked = nrow(data$x), inducing_method = "rows",
    neighbours = 0L, small_n = if (length(s$free)) small_n_check(data, posterior)))
}

# NULL where there is so little noise that the rows' matrix has no factor: points and a jitter do then.
exact_if_possible <- function(data, learned, s, state) {
  tryCatch(construct_exact(data, learned, s, state), pfdtc_error_numerical = function(e) NULL)
}

construct_fit <- function(data, done, s, state) {
  if (isTRUE(s$neighbours > 0L)) return(construct_near(data, done, s, state))
  make <- function() {
    native_posterior(done$z, data$x, data$y, data$weights, done$kernel, done$noise, done$jitter, control = s$control,
                     fitc = s$method == "gp_fitc")
  }
  posterior <- posterior_stage(state, make)
  evidence <- switch(s$method, gp_fitc = fitc_evidence, gp_sor = sor_evidence, elbo)
  value <- evidence(data, posterior, done$noise)
  new_fit(data, done, s, state, posterior, value, list(
    inducing = done$z, m = nrow(done$z), m_asked = s$m,
    inducing_method = if (is.null(done$start)) s$inducing_method else done$start,
    neighbours = 0L, unexplained = s$rho,
    aux = if (s$objective == "pf") s$aux, moved = s$move, aux_points = done$aux_points, aux_rows = done$aux_rows,
    jitter = posterior$jitter))
}

# Far and near: what the points alone have (`factors`) is made where it is asked for, see far_part().
construct_near <- function(data, done, s, state) {
  # training neighbours make each row as near as predictions are; the pass costs too much for very many rows
  train <- if (nrow(data$x) <= near_training_rows) min(s$neighbours, nrow(data$x) - 1L) else 0L
  near <- posterior_stage(state, function() {
    near_posterior(data, done$z, done$kernel, done$noise, s$neighbours, train, jitter = done$jitter,
                   control = s$control)
  })
  new_fit(data, done, s, state, NULL, near_evidence(data, near, done$noise), list(
    inducing = done$z, m = nrow(done$z), m_asked = s$m,
    inducing_method = if (is.null(done$start)) s$inducing_method else done$start,
    neighbours = s$neighbours, unexplained = s$rho, aux = s$aux, moved = s$move, aux_points = done$aux_points,
    aux_rows = done$aux_rows, jitter = near$jitter, near = near))
}

near_training_rows <- 1e5

# After one interrupt the fit is still made; a second one ends it. Where nothing was to be learned there is nothing that
# the first could have spared: it ends the call.
posterior_stage <- function(state, make) {
  if (!is.null(state$stopped) || sum(state$evaluations) > 0) {
    return(run_stage(state, "posterior", make(), otherwise = allowInterrupts(make())))
  }
  started <- proc.time()[["elapsed"]]
  value <- allowInterrupts(make())
  state$seconds["posterior"] <- proc.time()[["elapsed"]] - started
  value
}

# `value`: log evidence of y as given, or its bound; `parts`: what is particular to the method.
new_fit <- function(data, done, s, state, posterior, value, parts) {
  unit <- data$scale^2
  kernel <- done$kernel
  kernel$variance <- kernel$variance * unit
  trace <- if (is.null(done$trace)) empty_trace() else done$trace
  if (length(unique(trace$round)) < 2L) trace$round <- NULL
  structure(class = c(s$method, "gp_fit"), c(list(
    call = s$call, method = s$method, kernel = kernel, noise = done$noise * unit), parts, list(
    posterior = posterior_kind(parts), factors = posterior, center = data$center, scale = data$scale,
    frame = make_frame(data, s$keep_data), data = if (s$keep_data) data, signature = data_signature(data),
    nobs = data$n, hyper = s$hyper, objective = done$value, elbo = value, df = length(s$free), sd_y = data$sd_y,
    trace = trace, z_trace = done$z_trace, convergence = done$convergence, message = done$message,
    evaluations = state$evaluations, seconds = state$seconds, pilot = done$pilot, learned = done$learned,
    kernels = done$kernels, control = utils::modifyList(s$control, list(maxit = s$maxit_given), keep.null = TRUE),
    maxit = s$control$maxit, version = utils::packageVersion("pfdtc"),
    terms = if (s$keep_data) data$terms else drop_environment(data$terms), na.action = data$na_action)))
}

# What a fit's posterior is made of: the exact one of its rows, the inducing points alone (far), or with rows near by.
posterior_kind <- function(parts) {
  if (!is.null(parts$rows)) "exact" else if (is.null(parts$near)) "far" else "far + near"
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
  noise <- fit$noise / fit$scale^2
  fit$factors <- native_posterior(z, data$x, data$y, data$weights, scaled_kernel(fit), noise, jitter = 1e-12,
                                  control = fit$control)
  fit$jitter <- fit$factors$jitter
  fit$inducing <- z
  fit$elbo <- elbo(data, fit$factors, noise)
  fit["rows"] <- fit["near"] <- list(NULL)
  if (is.null(fit$aux)) fit$aux <- default_aux()
  fit$posterior <- "far"
  fit
}

empty_trace <- function() data.frame(evaluation = integer(), objective = numeric(), seconds = numeric())

# log N(y; 0, Q + s2 I) of the rows as cleaned and weighted, from the posterior's sums.
log_density_dtc <- function(p, n, noise) {
  logdet_D <- 2 * sum(log(diag(p$C))) - nrow(p$C) * log(noise)
  -(n / 2 * log(2 * pi * noise) + logdet_D / 2 + (p$rss / noise + sum(p$beta^2)) / 2)
}

# ELBO of y as given; noise in the units of the cleaned y.
elbo <- function(data, p, noise) sor_evidence(data, p, noise) - p$t / (2 * noise)

# SoR's own log evidence, log N(y; 0, Q + s2 I).
sor_evidence <- function(data, p, noise) {
  log_density_dtc(p, nrow(data$x), noise) + merged_log_density(data$shift, noise) + data$shift$constant
}

# FITC's own log evidence, log N(y; 0, Q + diag(s2 / w_n + E_nn)): no bound of anything.
fitc_evidence <- function(data, p, noise) {
  log_density_dtc(p, nrow(data$x), noise) + p$log_weights / 2 - data$n * log(data$scale)
}

# ---- what predict() reads, in the units of the cleaned y -------------------------------------------------------------

scaled_kernel <- function(fit) {
  kernel <- fit$kernel
  kernel$variance <- kernel$variance / fit$scale^2
  kernel
}

# list(mean, var_sor, resid): the mean, the SoR variance, and what the inducing points leave of the prior variance. The
# exact posterior, of all rows or some, has nothing to tell apart: all its variance is in var_sor.
predict_posterior <- function(fit, x) {
  if (!is.null(fit$rows)) {
    p <- native_exact_predict(fit$factors, fit$rows, scaled_kernel(fit), x)
    return(list(mean = p$mean, var_sor = p$variance, resid = numeric(nrow(x))))
  }
  if (!is.null(fit$near)) {
    p <- predict_near(fit$near, fit$data, fit$inducing, scaled_kernel(fit), fit$noise / fit$scale^2, x,
                      fit$control)
    return(list(mean = p$mean, var_sor = p$var_far, resid = p$var_near))
  }
  p <- native_predict(fit$factors, fit$inducing, scaled_kernel(fit), fit$noise / fit$scale^2, x)
  list(mean = p$mean, var_sor = p$sor_variance, resid = p$unexplained)
}

predict_covariance <- function(fit, x) {
  if (!is.null(fit$rows)) return(native_exact_covariance(fit$factors, fit$rows, scaled_kernel(fit), x))
  if (!is.null(fit$near)) {
    return(covariance_near(fit$near, fit$data, fit$inducing, scaled_kernel(fit), fit$noise / fit$scale^2, x,
                           fit$control))
  }
  native_covariance(fit$factors, fit$inducing, scaled_kernel(fit), fit$noise / fit$scale^2, x,
                    sor = fit$method == "gp_sor")
}

fit_variance <- function(fit, p) if (fit$method == "gp_sor") p$var_sor else p$var_sor + p$resid
