# Fits with a certified accuracy `tol`: tries inducing points alone first, then neighbours or the exact posterior.
#
# Two numbers over the training inputs must be at most tol: the quantile `tol_quantile` (1 is the maximum) of the
# certified error of the mean over sd(y), and the same quantile of |exact sd / sd - 1|. For another likelihood the mode
# replaces the mean, and its error is divided by the sd of f at the row.
#
# A search tries candidates (new_candidate()) one after the other and compares them with a yardstick(), the bounds on
# the exact GP at the rows. `job` is an environment with:
#
#   data, learned, plan, goal, control, state, late()   what every search reads; late() is TRUE when the time is over
#   candidates, best, yard   all candidates, the best of them, and the yardstick of the last search

fit_to_tolerance <- function(data, asked, state) {
  started <- proc.time()[["elapsed"]]
  job <- list2env(list(data = data, goal = list(tol = asked$tol, quantile = asked$control$tol_quantile),
                       control = asked$control, state = state, candidates = list(), started = started))
  job$left <- function() started + asked$control$max_seconds - proc.time()[["elapsed"]]
  job$late <- function() job$left() <= 0
  fit <- if (is.null(asked$likelihood)) search_plans(job, asked) else search_working(job, asked)
  best <- job$best
  yard <- best$yard %||% job$yard
  tol <- list(asked = job$goal$tol, quantile = job$goal$quantile, mean = NA_real_, sd = NA_real_, met = FALSE,
              effort = NA_character_, m2 = NA_integer_, rows = yard$rows %||% NA_integer_,
              needs = NULL, tried = do.call(rbind, lapply(job$candidates, function(one) data.frame(one[1:8]))))
  if (!is.null(best)) {
    tol[c("mean", "sd", "met", "effort", "m2")] <- c(best[c("mean", "sd", "met")], yard[c("effort", "m2")])
    if (!best$met) tol$needs <- best$needs
  }
  if (!is.null(yard$reference)) fit$reference <- kept_reference(yard$reference, fit)
  fit$tol <- c(tol, seconds = proc.time()[["elapsed"]] - started)
  fit
}

# Searches among inducing points alone, then among neighbours or the exact posterior. Returns the fit.
search_plans <- function(job, asked) {
  data <- job$data
  state <- job$state
  job$plan <- plan <- tolerance_plan(data, asked)
  few <- with_posterior(plan, m = min(default_points, plan$posterior$m))
  job$learned <- learn_stage(data, few$learn, state)
  first_points <- function() points_stage(data, job$learned, few$posterior, state)$z
  # With `hyper = "joint"`, take the hyperparameters of a joint fit with few points.
  if (few$learn$hyper == "joint") {
    job$learned <- optimise_stage(data, job$learned, first_points(), few$posterior, state)
  }
  way <- alternative_posterior(facts_of(data, asked), asked)
  n <- nrow(data$x)
  # With an alternative, `worth` is the largest number of points for which a search is worth its time.
  worth <- if (way == "none") Inf else as.integer(min(n, max(50, min(1000, n %/% 4))))
  # Choose the first greedy points, each with rho: the residual prior variance after its inclusion over the noise.
  look <- if (way != "none") run_stage(state, "start", {
    chosen <- start_points(data, job$learned$model, few$posterior$m, few$posterior$inducing, few$posterior$run)
    left <- if (few$posterior$inducing == "greedy") chosen$t / chosen$looked
    list(z = chosen$z, rho = unexplained_share(data, job$learned, list(t = left)))
  }, otherwise = NULL)
  alone <- way == "none" || !isTRUE(asked$neighbours > 0L) &&
    !points_fall_short(data, job$learned, look, plan, worth, state)
  if (alone) search_points(job, worth)
  if (way != "none" && is.null(state$stopped) && !isTRUE(job$best$met)) {
    job$plan <- with_posterior(plan, rho = look$rho[length(look$rho)])
    search_rows(job, if (way == "near") look$z, asked$neighbours)
    job$plan <- plan
    # Without a candidate so far, move inducing points until they meet tol.
    if (is.null(job$best) && is.null(state$stopped)) search_points(job, Inf)
  }
  best <- job$best
  if (!is.null(best$fit)) return(replace(best$fit, c("evaluations", "seconds"), list(state$evaluations, state$seconds)))
  done <- best$done %||% job$learned
  if (is.null(done$z)) done <- start_now(job$learned, look$z %||% first_points(), plan$posterior$jitter)
  construct_fit(data, done, with_posterior(plan, m = nrow(done$z)), state)
}

# Returns the plan of the search with inducing points alone: at most `m`, which are moved.
tolerance_plan <- function(data, asked) {
  refuse_if(!isTRUE(data$sd_y > 0), "tol", "cannot be used for a constant response",
            hint = "It is a fraction of the sd of y.")
  refuse_if(!is.null(asked$inducing) && !is.character(asked$inducing), "inducing", describe(asked$inducing),
            "NULL or the name of a method where `tol` is given",
            hint = "Pass hyperparameters by kernel = fit$kernel, noise = fit$noise.")
  facts <- facts_of(data, asked)
  plan <- decide(facts, replace(asked, c("m", "neighbours"), list(asked[["m"]] %||% facts$rows, 0L)),
                 list(exact = FALSE, rho = Inf))
  plan$because <- c(posterior = sprintf("The posterior is the smallest one found that meets tol = %s.",
                                        format(asked$tol)))
  with_posterior(plan, rho = NULL)
}

# Returns the alternative to inducing points alone: "exact", "near" or "none". Arguments that require inducing points
# exclude the alternative; a number of neighbours makes it "near".
alternative_posterior <- function(facts, asked) {
  open <- facts$keep && leaves_points_open(asked)
  if (open && exact_is_affordable(facts)) return("exact")
  if (facts$n > 1L && (isTRUE(asked$neighbours > 0L) || open && is.null(asked$neighbours))) "near" else "none"
}

# The search tries these numbers of neighbours one after the other.
neighbours_tried <- c(40L, 80L, 160L)

# Tries the exact posterior or, with inducing points z, more and more neighbours until tol is met. It has no candidate
# if the noise is too small for a Cholesky factorisation.
search_rows <- function(job, z = NULL, neighbours = NULL) {
  goal <- job$goal
  exact <- is.null(z)
  data <- if (exact) job$data else merge_all_equal_rows(job$data)
  rows <- used_rows(data, if (exact) Inf else certified_rows)
  counts <- if (exact) 0L else unique(pmin(neighbours %||% neighbours_tried, nrow(data$x)))
  if (!exact) job$yard <- NULL
  try_settings(job, counts[1L], function(count) {
    run_stage(job$state, "certificate", {
      started <- proc.time()[["elapsed"]]
      fit <- if (exact) {
        exact_if_possible(data, job$learned, job$plan, no_state())
      } else {
        plan <- with_posterior(job$plan, m = nrow(z), neighbours = count, move = FALSE)
        construct_near(data, start_now(job$learned, z, plan$posterior$jitter), plan, no_state())
      }
      if (!is.null(fit)) {
        if (count == counts[1L]) job$yard <- if (!exact) near_yardstick(fit, data, rows, goal, job$left) else
          yardstick(certificate_of(fit, rows, "reference", NULL), rows, data$sd_y, goal$quantile, effort = "exact")
        error <- job$yard$error_of(fit, rows$x)
        new_candidate(fit$m, error, goal$tol, started, fit$neighbours, fit$posterior, fit = fit)
      }
    }, otherwise = NULL)
  }, function(tried) {
    open <- !tried[[length(tried)]]$met && max(job$yard$floor) <= goal$tol
    if (open && length(tried) < length(counts)) counts[length(tried) + 1L]
  }, function(best, tried) {
    if (exact) return("Rounding allows no smaller error: increase `noise` or `tol`.")
    least <- max(job$yard$floor)
    tolerance_advice(job$yard, if (least > goal$tol) least, job$late(), limit = if (job$late()) "time" else "quantile",
                     sprintf("Use more `neighbours` than %d, or pfdtc_control(tol_quantile = 0.95).",
                             counts[length(tried)]))
  })
}

# Returns the yardstick at some rows: bounds on the exact GP by a reference and by kriging on neighbours. First come
# passes over all pairs of rows, until the mean is known to an eighth of tol at a few rows.
near_yardstick <- function(fit, data, rows, goal, left) {
  points <- reference_rows(data, model_of(fit)$kernel, min(4L * points_of_fit(fit), nrow(data$x)))
  reference <- dtc_on_points(fit, data, data$x[points, , drop = FALSE], NULL, fast = FALSE)
  few <- values_at(model_of(reference)$kernel, rows$x[evenly(nrow(rows$x), 64L), , drop = FALSE])
  reference$correction <- iterate_to(reference, data, few, goal$tol * data$sd_y / 8, 50L, left, FALSE,
                                     min(64L, kriging_rows()), 1)$correction
  inside <- certificate_of(fit, rows, "reference", reference, test_points = 0, max_seconds = max(left(), 0))
  yardstick(inside, rows, data$sd_y, goal$quantile, reference)
}

# Searches among the first points of a reference for a non-Gaussian likelihood, and returns the fit.
search_working <- function(job, asked) {
  refuse_if(!is.null(asked$inducing) && !identical(asked$inducing, "greedy"), "inducing", describe(asked$inducing),
            sprintf("NULL or \"greedy\" where `tol` is given with family %s", response_of(asked)$label),
            hint = "The first greedy points are those of a smaller fit.")
  data <- job$data
  state <- job$state
  tol <- job$goal$tol
  facts <- facts_of(data, asked)
  most <- asked[["m"]] %||% nrow(data$x)
  plan_with <- function(m) decide(facts, replace(asked, c("m", "neighbours"), list(m, 0L)), list(rho = NA_real_))
  few <- plan_with(min(laplace_sizes$points, most))
  learned <- learn_laplace_stage(data, decide(facts, asked)$learn, state)
  fit <- construct_laplace(data, learned, working_points(data, learned, few$posterior, few$posterior$m, state), few,
                           state)
  job$yard <- yard <- run_stage(state, "reference", with_fixed_seed({
    grow_reference(nrow(data$x), most, Inf, job$late, function(m2) {
      made <- laplace_reference(fit, data, m2)
      rows <- values_at(made$kernel, data$x)
      yardstick(mode_interval(made$bounds, rows), plain_rows(data$x), NULL, job$goal$quantile, made, n = data$n)
    }, function(yard) max(yard$floor) <= tol / 4)
  }), otherwise = NULL)
  if (is.null(yard)) return(fit)
  least <- max(yard$floor)
  ref <- yard$reference
  # Approximate on the first points of the reference. If tol is out of reach, aim at 1.25 times the error of all points.
  found <- run_stage(state, "certificate", if (is.finite(least)) {
    sites <- sites_of_fit(fit, data)
    search_first(yard, (if (least <= tol) tol else 1.25 * least) * (1 - 1e-6), tol, function(m) {
      at <- laplace_at(data$x, sites, fit$kernel, ref$inducing[seq_len(m), , drop = FALSE], rounding_jitter(m),
                       fit$control, start = list(beta = ref$factors$beta[seq_len(m)]), want = 1L)
      list(at$f - sites$offset, sqrt(at$q + at$left))
    })
  } else {
    list(m = min(laplace_sizes$most, ref$m))
  }, otherwise = NULL)
  if (is.null(found)) return(fit)
  z <- utils::head(ref$inducing, min(found$m, most))
  fit <- construct_laplace(data, learned, z, plan_with(nrow(z)), state)
  job$best <- new_candidate(fit$m, yard$error_of(fit, data$x, fit$center), tol, 0, yard = yard, needs =
    tolerance_advice(yard, if (least > tol) least, FALSE, too_few(most, found$m)))
  job$candidates <- found$tried
  fit
}
