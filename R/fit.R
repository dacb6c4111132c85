# A sparse fit in stages, each usable alone:
#
#   learn_evidence()  kernel and noise by the evidence (learn.R), or
#   learn_hyper()     by VFE at fixed points (the paper's pilot)
#   points_stage()    where the inducing points start
#   optimise_points() pF-DTC (any auxiliary distribution) or VFE in Z
#   construct_fit()   posterior on all rows, and the object
#
# Where nothing says what the posterior is to be, choose_posterior() does: of few rows the exact one.

# `settings`: what was asked for, see start_fit(), which clean_settings() sorts by stage.
# `finish(fit, data, done, state)`: what is done to the fit in the end.
fit_sparse <- function(data, settings, finish = NULL) {
  run_fit(data, settings, function(data, settings, state) {
    settings$points <- clean_points(data, settings$points)
    settings <- choose_posterior(data, settings)
    sweep_up(data)
    learned <- learn_stage(data, settings$learning, state)
    sweep_up(data)
    exact <- if (settings$posterior$exact) exact_if_possible(data, learned, settings, state)
    if (!is.null(exact)) return(exact)
    start <- points_stage(data, learned, settings$points, state)
    settings <- choose_neighbours(data, learned, start, settings)
    sweep_up(data)
    # equal rows beside one another would each be taken for news of what the points do not know
    if (settings$posterior$neighbours > 0L) data <- merge_all_equal_rows(data)
    now <- try_points_alone(data, list(learned = learned, start = start, settings = settings), state)
    settings <- now$settings
    start <- now$start
    z <- start$z[seq_len(min(nrow(start$z), settings$points$m)), , drop = FALSE]
    done <- optimise_stage(data, now$learned, z, settings$points, state)
    sweep_up(data)
    fit <- if (is.null(data$whole)) construct_fit(data, done, settings, state) else
      construct_from_source(data, done, settings, state)
    if (is.null(finish)) fit else finish(fit, data, done, state)
  })
}

# `stages(data, settings, state)` makes the fit. Of it, `so_far` says how good one is that was ended early, and `unmet`
# what was asked for and not reached (NULL: nothing).
run_fit <- function(data, settings, stages, so_far = function(fit) "", unmet = function(fit) NULL) {
  suspendInterrupts({
    state <- new.env(parent = emptyenv())
    state$seconds <- state$evaluations <- state$rows <- numeric()
    data <- transform_stage(data, settings, state)
    s <- clean_settings(data, settings)
    fit <- stages(noise_stage(data, s, state), s, state)
  })
  if (!is.null(state$stopped)) {
    fit[c("convergence", "message")] <- state$stopped
    warn_convergence(sprintf("The fit was ended early (%s) after %d evaluations: this is the best so far%s.",
                             state$stopped$message, as.integer(sum(state$evaluations)), so_far(fit)), fit = fit)
  } else if (!is.null(unmet(fit))) {
    warn_convergence(unmet(fit), fit = fit)
  }
  warn_rival(fit$learned, in_units(fit, 1, 2))
  warn_small_n(fit$small_n, fit$nobs)
  fit
}

# The data with their response transformed; where learning how was ended, as it is likeliest beside a line.
transform_stage <- function(data, settings, state) {
  settings$control <- check_control(settings$control)
  transform <- asked_transform(settings$transform, data, settings)
  if (is.null(transform)) return(data)
  if (is.na(transform$lambda)) {
    transform <- run_stage(state, "transform", learn_transform(transform, data, settings, state), otherwise = {
      replace(transform, "lambda", lambda_beside_line(transform, rows_for_transform(data)))
    })
  }
  with_transform(data, transform, settings)
}

# The data with the sizes that their noise is found to have; of one size where the stage was ended.
noise_stage <- function(data, s, state) {
  if (is.null(s$trend)) return(data)
  trend <- run_stage(state, "noise", learn_noise_trend(s$trend, data, s$learning, state), otherwise = NULL)
  if (is.null(trend)) data else with_noise_trend(data, trend)
}

# ---- inducing points ------------------------------------------------------------------------------------------------

# The exact posterior, of all rows or some.
fit_dense <- function(data, settings) {
  run_fit(data, settings, function(data, s, state) {
    n <- data$n
    some <- gp_family(s)$some
    if (some) m <- if (is.null(s$points$m)) min(200L, n) else check_points(s$points$m, n)
    size <- if (some) m else nrow(data$x)
    joint <- !is.null(s$points$joint)
    announce_memory(8 * (1 + joint) * as.double(size)^2, size)
    learned <- learn_stage(data, s$learning, state)
    used <- if (!some) data else
      run_stage(state, "start", take_rows(data, sample.int(n, m)), take_rows(data, seq_len(m)))
    done <- c(learned, list(convergence = 0L, message = "nothing to optimise", value = NA_real_))
    if (joint) done <- exact_stage(data, done, s$learning, state)
    posterior <- posterior_stage(state, function() {
      native_exact(used, done$model, s$run)
    })
    new_fit(data, done, s, state, list(
      x = used$x, m = if (some) m, chosen = if (some) used$rows, factors = posterior,
      evidence = exact_evidence(used, posterior, done$model$noise),
      small_n = if (!some && length(s$learning$free)) small_n_check(exact_posterior(data, done$model, posterior))))
  })
}
