# The last stage of a fit: the posterior of all rows, and the fit object.

# Builds a fit, for every function that fits. `parts` are the posterior (`factors` of the rows `x` or of `inducing`
# points, or `near`), `evidence`, and elements that only this kind of posterior has. `about` has facts about the data
# and the stages.
new_gp <- function(method, model, parts, about) {
  units <- model_units(model)
  structure(class = c(method, "gp_fit"), home = methods_home, c(
    about["call"], list(method = method, kernel = units$kernel, noise = units$noise), parts,
    list(posterior = posterior_kind(parts), center = model$center, scale = model$scale),
    about[names(about) != "call"]))
}

# Builds the fit object from the results of all stages. `s` is the plan.
new_fit <- function(data, done, s, state, parts) {
  trace <- if (is.null(done$trace)) empty_trace() else done$trace
  if (length(unique(trace$round)) < 2L) trace$round <- NULL
  kernel <- compile_kernel(done$model$kernel)
  names <- parameter_names(kernel, s$learn$columns)
  learned <- setdiff(names, c(not_learned(s$learn), names[c(kernel$table$held, FALSE)]))
  new_gp(s$method, done$model, parts, list(
    call = s$call, frame = make_frame(data, s$keep_data), data = if (s$keep_data) data,
    signature = if (is.null(data$signature)) data_signature(data) else data$signature, nobs = data$n,
    asked = if (s$keep_data) s$again, hyper = s$learn$hyper,
    because = c(state$because, s$because, because_of_noise(done$learned), because_gain(done$kernels)),
    noise_trend = data$noise_trend, noise_tail = data$noise_tail, transform = data$transform, response = state$response,
    objective = done$value, df = length(learned) + noise_df(data$noise_trend) + sum(done$more_df),
    sd_y = data$sd_y, trace = trace, z_trace = done$z_trace,
    convergence = done$convergence, message = done$message, evaluations = state$evaluations, seconds = state$seconds,
    looked_at = state$rows,
    pilot = done$pilot, learned = done$learned, kernels = done$kernels,
    control = s$control, maxit = s$posterior$steps$maxit,
    version = utils::packageVersion("pfdtc"), terms = if (s$keep_data) data$terms else drop_environment(data$terms),
    na.action = data$na_action))
}

# Returns a fit with the posterior p, whose model and rows are those of p$fit. Nothing is optimised. The fit keeps the
# rows `data`.
fit_of_posterior <- function(p, data = NULL, call = NULL, evidence = log_evidence(p), ...) {
  same <- c("frame", "signature", "nobs", "df", "sd_y", "noise_trend", "noise_tail", "transform", "control", "version",
            "terms", "na.action")
  exact <- inherits(p, "exact")
  parts <- if (exact) list(x = p$x, m = NULL) else
    list(inducing = p$z, m = nrow(p$z), m_asked = nrow(p$z), inducing_method = "greedy", jitter = p$factors$jitter)
  new_gp(if (exact) "gp_exact" else "gp_dtc", p$model,
         c(parts, list(factors = p$factors, evidence = evidence), if (!exact) p["norms"], list(...)),
         c(list(call = call, data = data), p$fit[intersect(same, names(p$fit))], list(
           hyper = "fixed", objective = NA_real_, trace = empty_trace(), convergence = 0L,
           message = "nothing to optimise", evaluations = numeric(), seconds = numeric())))
}

# Every fit contains this package's namespace. So a saved fit, or a fit on a worker, loads the package, and its methods
# work without library().
methods_home <- topenv()

empty_trace <- function() data.frame(evaluation = integer(), objective = numeric(), seconds = numeric())

# ---- the posterior of all rows --------------------------------------------------------------------------------------

# Returns a fit with the exact posterior of all rows.
construct_exact <- function(data, learned, s, state) {
  done <- c(learned, list(convergence = 0L, message = "nothing to optimise", value = NA_real_))
  n <- nrow(data$x)
  posterior <- posterior_stage(state, function() exact_factors(data, done$model, s$run))
  new_fit(data, done, s, state, list(
    x = data$x, inducing = data$x, m = n, m_asked = n, inducing_method = "rows",
    neighbours = 0L, factors = posterior, evidence = evidence_of("exact", done$model, data, posterior),
    small_n = if (length(s$learn$free)) small_n_check(exact_posterior(data, done$model, posterior))))
}

# Returns NULL if the Cholesky factorisation fails because the noise is tiny. The caller then uses inducing points.
exact_if_possible <- function(data, learned, s, state) {
  tryCatch(construct_exact(data, learned, s, state), pfdtc_error_numerical = function(e) NULL)
}

construct_fit <- function(data, done, s, state) {
  if (s$posterior$neighbours > 0L) return(construct_near(data, done, s, state))
  traits <- method_traits(s)
  if (has_own_levels(done$model$kernel) && !traits$sor && !traits$fitc) return(construct_grouped(data, done, s, state))
  make <- function() {
    native_posterior(done$z, data, done$model, done$jitter, control = s$run, fitc = method_traits(s)$fitc)
  }
  posterior <- posterior_stage(state, make)
  new_fit(data, done, s, state, c(points_and_start(done, s), list(
    neighbours = 0L, factors = posterior, evidence = evidence_of("points", done$model, data, posterior, traits),
    jitter = posterior$jitter)))
}

# Returns a fit of grouped effects beside inducing points. The variances of groups and noise are learned again from all
# rows.
construct_grouped <- function(data, done, s, state) {
  factors <- posterior_stage(state, function() {
    factors <- effect_posterior(done$z, data, done$model, done$jitter, s$run)
    if (isTRUE(done$learned_all)) factors else relearned_variances(factors, data, done$model, s$learn)
  })
  done$model <- model_of_effects(done$model, factors)
  fit <- new_fit(data, done, s, state, c(points_and_start(done, s), list(
    neighbours = 0L, factors = factors, jitter = factors$jitter, evidence = NA_real_)))
  fit$evidence <- log_evidence(posterior_of(replace(fit, "data", list(data))))
  fit
}

points_and_start <- function(done, s) {
  list(inducing = done$z, m = nrow(done$z), m_asked = s$posterior$m,
       inducing_method = if (is.null(done$start)) s$posterior$inducing_method else done$start,
       unexplained = s$posterior$rho, trial = s$posterior$trial, aux = s$posterior$aux, moved = s$posterior$move,
       aux_points = done$aux_points, aux_rows = done$aux_rows)
}

# Returns a fit with nearest neighbours. Its `factors` are NULL: posterior_on_points() computes them where needed.
construct_near <- function(data, done, s, state) {
  # with very many rows, training has no neighbours, because that pass would take too long
  some <- s$posterior$neighbours
  train <- if (nrow(data$x) <= near_training_rows) min(some, nrow(data$x) - 1L) else 0L
  near <- posterior_stage(state, function() {
    if (has_own_levels(done$model$kernel)) {
      return(near_grouped_posterior(data, done$z, done$model, some, train, sample.int(nrow(data$x)),
                                    done$jitter, s$run, free_groups(done$model$kernel, s$learn)))
    }
    if (is.null(s$again$neighbours)) some <- c(some, far_neighbours)
    near_posterior(data, done$z, done$model, some, train, jitter = done$jitter, control = s$run)
  })
  if (!is.null(near$groupings)) done$model <- model_of_effects(done$model, c(near["groupings"], done$model["noise"]))
  new_fit(data, done, s, state, c(points_and_start(done, s), list(
    neighbours = s$posterior$neighbours, factors = NULL, evidence = evidence_of("near", done$model, data, near),
    jitter = near$jitter, near = near)))
}

near_training_rows <- 1e5

# Checks the memory that an exact posterior takes, and reports it if it is more than 100 MB.
announce_memory <- function(bytes, n) {
  check_memory(bytes, sprintf("the exact posterior of %d rows", as.integer(n)))
  if (bytes < 1e8) return(invisible())
  tell_classed("memory", sprintf("The exact posterior of %d rows takes %s.", as.integer(n), show_bytes(bytes)))
}
