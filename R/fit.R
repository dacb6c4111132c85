# A fit: learn the hyperparameters, follow the plan, make the posterior.

# Makes a fit by `make(data, asked, state)`, with complete `asked`. After an interrupt, `so_far(fit)` describes the
# result. `unmet(fit)` describes a goal that was not reached, or returns NULL.
run_fit <- function(data, asked, make, so_far = function(fit) "", unmet = function(fit) NULL) {
  suspendInterrupts({
    state <- no_state()
    data <- response_stage(data, asked, state)
    asked <- if (is.null(state$asked)) complete_settings(data, asked) else state$asked # the response is as given
    fit <- make(data, asked, state)
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

# Follows the plan: learns, measures until the plan is final, and makes the posterior. `now` collects the results: data,
# learned, start (inducing points) and look (measurements). `finish(fit, data, done, state)` may change the fit at the
# end.
fit_by_plan <- function(data, asked, state, finish = NULL) {
  facts <- facts_of(data, asked)
  plan <- decide(facts, asked)
  steps <- if (is.null(asked$likelihood)) gaussian_steps else working_steps
  # reports the memory of an exact posterior that the user asked for
  m <- plan$posterior$m
  if (plan$posterior$kind == "exact" && !identical(plan$next_look, "exact")) {
    announce_memory(8 * (1 + !is.null(plan$posterior$joint)) * as.double(m)^2, m)
  }
  free_memory(data)
  now <- list(data = data, learned = steps$learn(data, plan$learn, state))
  now$look <- list(learned = now$learned$exact)
  free_memory(data)
  while (!is.null(plan$next_look)) {
    now <- steps[[plan$next_look]](now, plan, state)
    plan <- decide(facts, asked, now$look)
  }
  steps$make(now, plan, state, finish)
}

# The stages of a fit: `learn`, the measurements by the names that decide() gives them, and `make`.
gaussian_steps <- list(
  learn = function(...) learn_stage(...),
  exact = function(now, plan, state) { # the Cholesky factor is missing if the noise is too small
    now$fit <- exact_if_possible(now$data, now$learned, plan, state)
    now$look$exact <- !is.null(now$fit)
    now
  },
  points = function(now, plan, state) { # chooses inducing points and measures the residual prior variance
    now$start <- points_stage(now$data, now$learned, plan$posterior, state)
    now$look$rho <- unexplained_share(now$data, now$learned, now$start)
    if (!is.null(now$start$t)) {
      now$look$left <- now$start$t / mean(kernel_diagonal(now$learned$model$kernel, utils::head(now$data$x, 1000L)))
    }
    free_memory(now$data)
    now
  },
  trial = function(...) look_at_held_out(...),
  dense = function(...) look_at_rival(..., "dense", exact_trial),
  few = function(...) look_at_rival(..., "few", few_trial),
  make = function(now, plan, state, finish = NULL) {
    if (!is.null(now$fit)) return(now$fit)
    if (plan$posterior$kind == "exact") return(construct_exact(now$data, now$learned, plan, state))
    near <- plan$posterior$neighbours > 0L
    # equal rows beside one another would each count as new information
    data <- if (near) merge_all_equal_rows(now$data) else now$data
    if (!near && !is.null(now$alone)) now[c("learned", "start")] <- now$alone
    if (isTRUE(plan$posterior$more)) now$start <- points_stage(data, now$learned, plan$posterior, state)
    z <- utils::head(now$start$z, plan$posterior$m)
    done <- optimise_stage(data, now$learned, z, plan$posterior, state)
    free_memory(data)
    fit <- if (is.null(data$whole)) construct_fit(data, done, plan, state) else
      construct_from_source(data, done, plan, state)
    if (is.null(finish)) fit else finish(fit, data, done, state)
  })
