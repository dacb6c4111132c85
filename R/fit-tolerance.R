# Fits with a certified accuracy `tol`: a search over plans, by inducing points, then neighbours or the exact posterior.
#
# The statistics, over the training inputs: the quantile `tol_quantile` (1: the maximum) of the certified error of the
# mean over sd(y), and that of |exact sd / sd - 1|. Both must be at most tol. With another likelihood the mean is the
# mode and its error is divided by the sd of f at the row.
#
# A search returns list(best, yard, tried), or NULL if it was ended early:
#
#   best   the candidate that met tol, else the one nearest to it, see new_candidate(), with `needs` (advice)
#   yard   the bounds of the exact GP at the rows, see yardstick()
#   tried  a data frame of the candidates

fit_to_tolerance <- function(data, asked, state) {
  started <- proc.time()[["elapsed"]]
  search <- if (is.null(asked$likelihood)) search_plans else search_working
  found <- search(data, asked, state, started + asked$control$max_seconds)
  goal <- goal_settings(asked$tol, asked$control)
  tol <- list(asked = goal$tol, quantile = goal$quantile, mean = NA_real_, sd = NA_real_, met = FALSE,
              effort = NA_character_, m2 = NA_integer_, rows = found$yard$rows, needs = NULL, tried = found$tried)
  best <- found$best
  if (is.null(best)) {
    tol["rows"] <- list(if (is.null(asked$likelihood)) NA_integer_ else data$n)
  } else {
    tol[c("mean", "sd")] <- as.list(best$error)
    tol[c("met", "effort", "m2", "rows")] <- list(best$met, found$yard$effort, found$yard$m2, found$yard$rows)
    if (!best$met) tol$needs <- best$needs
  }
  fit <- found$fit
  if (!is.null(found$yard$reference)) fit$reference <- kept_reference(found$yard$reference, fit)
  fit$tol <- c(tol, seconds = proc.time()[["elapsed"]] - started)
  fit
}

# Tries one kind of posterior after the other until tol is met. Returns list(best, yard, tried, fit).
search_plans <- function(data, asked, state, deadline) {
  plan <- tolerance_plan(data, asked)
  few <- with_posterior(plan, m = min(default_points, plan$posterior$m))
  learned <- learn_for_search(data, few, state)
  way <- alternative_posterior(facts_of(data, asked), asked)
  worth <- most_points_to_search(nrow(data$x))
  look <- if (way != "none") first_look(data, learned, few$posterior, state)
  left <- function() deadline - proc.time()[["elapsed"]]
  among_points <- function(worth) search_points(data, learned, plan, worth, state, deadline)
  searches <- list(
    function(found) {
      if (way == "none") return(among_points(Inf))
      if (!isTRUE(asked$neighbours > 0L) && !points_fall_short(data, learned, look, plan, worth, state)) {
        among_points(worth)
      }
    },
    function(found) {
      alone <- with_posterior(plan, rho = look$rho[length(look$rho)])
      switch(way, exact = search_exact(data, learned, alone, state),
             near = search_near(data, learned, look$z, alone, asked$neighbours, state, left))
    },
    function(found) if (is.null(found$best) && way != "none") among_points(Inf)) # the exact posterior is not possible
  found <- NULL
  for (search in searches) {
    if (!is.null(state$stopped) || isTRUE(found$best$met)) break
    found <- better_search(found, search(found))
  }
  c(found[c("best", "yard", "tried")], list(fit = fit_of_search(data, found$best, learned, look, plan, few, state)))
}

better_search <- function(a, b) {
  if (is.null(b)) return(a)
  keep <- is.null(b$best) || (!is.null(a$best) && max(a$best$error) < max(b$best$error))
  list(best = if (keep) a$best else b$best, yard = if (keep && !is.null(a)) a$yard else b$yard,
       tried = rbind(a$tried, b$tried))
}

# Makes the fit of the best candidate; without one, on the points that are at hand.
fit_of_search <- function(data, best, learned, look, plan, few, state) {
  if (!is.null(best$fit)) return(replace(best$fit, c("evaluations", "seconds"), list(state$evaluations, state$seconds)))
  done <- if (is.null(best)) learned else best$done
  if (is.null(done$z)) {
    z <- if (is.null(look)) points_stage(data, learned, few$posterior, state)$z else look$z
    done <- start_now(learned, z, plan$posterior$jitter)
  }
  construct_fit(data, done, with_posterior(plan, m = nrow(done$z)), state)
}

# Returns the plan of the search: inducing points alone, at most `m`, which are moved.
tolerance_plan <- function(data, asked) {
  if (!isTRUE(data$sd_y > 0)) {
    abort_input("tol", asked$tol, "NULL for a response without spread", hint = "It is a fraction of the sd of y.")
  }
  if (!is.null(asked$inducing) && !is.character(asked$inducing)) {
    abort_input("inducing", describe(asked$inducing), "NULL or the name of a method where `tol` is given",
                hint = "Pass hyperparameters by kernel = fit$kernel, noise = fit$noise.")
  }
  facts <- facts_of(data, asked)
  m <- if (is.null(asked[["m"]])) facts$rows else asked[["m"]]
  plan <- decide(facts, replace(asked, c("m", "neighbours"), list(m, 0L)), list(exact = FALSE, rho = Inf))
  because <- c(posterior = sprintf("The posterior is the smallest one found that is certified to tol = %s.",
                                   format(asked$tol)))
  with_posterior(replace(plan, "because", list(because)), rho = NULL)
}

# With `hyper = "joint"` hyperparameters are those of a joint fit with few points.
learn_for_search <- function(data, few, state) {
  learned <- learn_stage(data, few$learn, state)
  if (few$learn$hyper != "joint") return(learned)
  optimise_stage(data, learned, points_stage(data, learned, few$posterior, state)$z, few$posterior, state)
}

# Returns the number of points up to which a search among them is worth its time, if there is an alternative.
most_points_to_search <- function(n) as.integer(min(n, max(50, min(1000, n %/% 4))))

# Returns the alternative to inducing points alone: "exact", "near" or "none". Arguments that ask for inducing points
# exclude it, except that a number of neighbours asks for neighbours.
alternative_posterior <- function(facts, asked) {
  open <- facts$keep && leaves_points_open(asked)
  if (open && exact_is_affordable(facts)) return("exact")
  if (facts$n > 1L && (isTRUE(asked$neighbours > 0L) || open && is.null(asked$neighbours))) "near" else "none"
}

# ---- neighbours, or the exact posterior -----------------------------------------------------------------------------

# Numbers of neighbours that are tried one after the other.
neighbours_tried <- c(40L, 80L, 160L)

# Returns NULL if the noise is too small for a Cholesky factorisation.
search_exact <- function(data, learned, plan, state) {
  run_stage(state, "certificate", {
    started <- proc.time()[["elapsed"]]
    fit <- exact_if_possible(data, learned, plan, no_state())
    if (!is.null(fit)) {
      rows <- used_rows(data)
      yard <- yardstick(certificate_of(fit, rows, "reference", NULL), rows, data$sd_y, plan$goal$quantile,
                        effort = "exact")
      one <- candidate_of(fit, yard, data$x, plan$goal$tol, started)
      one$needs <- "Rounding allows no smaller error: increase `noise` or `tol`."
      list(best = one, yard = yard, tried = candidates_frame(list(one)))
    }
  }, otherwise = NULL)
}

# Increases the number of neighbours until tol is met. state$otherwise has the best so far, for an interrupt.
search_near <- function(data, learned, z, plan, neighbours, state, left) {
  run_stage(state, "certificate", {
    data <- merge_all_equal_rows(data)
    rows <- used_rows(data, certified_rows)
    counts <- unique(pmin(if (is.null(neighbours)) neighbours_tried else neighbours, nrow(data$x)))
    tell <- tell_candidates(plan$goal, proc.time()[["elapsed"]])
    candidates <- list()
    yard <- NULL
    for (count in counts) {
      started <- proc.time()[["elapsed"]]
      near <- with_posterior(plan, m = nrow(z), neighbours = count, move = FALSE)
      fit <- construct_near(data, start_now(learned, z, plan$posterior$jitter), near, no_state())
      if (is.null(yard)) yard <- near_yardstick(fit, data, rows, plan$goal, left)
      one <- candidate_of(fit, yard, rows$x, plan$goal$tol, started)
      candidates <- c(candidates, list(one))
      tell(one)
      late <- left() <= 0
      least <- max(yard$floor)
      best <- best_candidate(candidates)
      best$needs <- tolerance_advice(
        yard, if (least > plan$goal$tol) least, late, limit = if (late) "time" else "quantile",
        sprintf("Use more `neighbours` than %d, or pfdtc_control(tol_quantile = 0.95).", count))
      state$otherwise <- list(best = best, yard = yard, tried = candidates_frame(candidates))
      if (one$met || late || least > plan$goal$tol) break
    }
    state$otherwise
  }, otherwise = state$otherwise)
}

# Bounds the exact GP at some rows by a reference, by kriging on neighbours, and by as many passes over all pairs of
# rows as the mean needs to be known to a quarter of tol. A few rows predict the number of passes. If that was too few,
# a second round follows.
near_yardstick <- function(fit, data, rows, goal, left) {
  points <- reference_rows(data, model_of(fit)$kernel, min(4L * points_of_fit(fit), nrow(data$x)))
  reference <- dtc_on_points(fit, data, data$x[points, , drop = FALSE], NULL, fast = FALSE)
  least <- goal$tol * data$sd_y / 8
  for (again in c(FALSE, TRUE)) {
    correction <- exact_mean(reference, data, accuracy_at(reference, data, rows$x, least),
                             list(passes = 50L, left = left), solution_so_far(reference$correction))
    if (!is.null(correction)) reference$correction <- correction
    inside <- certificate_of(fit, rows, "reference", reference, test_points = 0, max_seconds = max(left(), 0))
    yard <- yardstick(inside, rows, data$sd_y, goal$quantile, reference)
    open <- yard$floor[["mean"]]
    if (again || open <= goal$tol / 4 || left() <= 0) return(yard)
    least <- least * goal$tol / 8 / open
  }
}
