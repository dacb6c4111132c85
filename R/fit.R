# Lists the stages of a fit that fit_by_plan() runs: they learn the hyperparameters, make the measurements that the plan
# asks for, and compute the posterior. If the user gave `tol`, fit_to_tolerance() searches for a fit that meets `tol`.

# These stages fit a Gaussian response. `learn` learns hyperparameters, `make` makes the fit, and the others make the
# measurement that plan$next_look names. The functions that measure return `now`, the results so far, with new elements.
gaussian_steps <- list(learn = function(...) learn_stage(...),
  exact = function(now, plan, state) { # `fit` stays NULL if the Cholesky factorisation fails
    now$fit <- null_if_failed(construct_exact(now$data, now$learned, plan, state))
    now$look$exact <- !is.null(now$fit)
    now
  },
  points = function(now, plan, state) { # also measures the residual prior variance
    now$start <- points_stage(now$data, now$learned, plan$posterior, state)
    now$look$rho <- unexplained_share(now$data, now$learned, now$start)
    now$look$left <- now$start$t / mean(kernel_diagonal(now$learned$model$kernel, utils::head(now$data$x, 1000L)))
    free_memory(now$data)
    now
  },
  trial = function(...) look_at_held_out(...), dense = function(...) look_at_rival(..., "dense", exact_trial),
  few = function(...) look_at_rival(..., "few", few_trial),
  make = function(now, plan, state) {
    if (!is.null(now$fit)) return(now$fit)
    if (plan$posterior$kind == "exact") return(construct_exact(now$data, now$learned, plan, state))
    near <- plan$posterior$neighbours > 0L
    # Merge rows with equal inputs, so that their common residual of f given the inducing points counts once.
    data <- if (near) merge_all_equal_rows(now$data) else now$data
    if (!near && !is.null(now$alone)) now[c("learned", "start")] <- now$alone
    if (isTRUE(plan$posterior$more)) now$start <- points_stage(data, now$learned, plan$posterior, state)
    z <- utils::head(now$start$z, plan$posterior$m)
    done <- optimise_stage(data, now$learned, z, plan$posterior, state)
    free_memory(data)
    if (is.null(data$whole)) construct_fit(data, done, plan, state) else construct_from_source(data, done, plan, state)
  })

# These stages fit a non-Gaussian likelihood by Laplace's approximation on inducing points.
#
#   learn_laplace_stage()  learns kernel, constant mean and the likelihood's shape parameters theta, all with priors
#   working_points()       chooses inducing points; with `aux` they then move to minimise the pF divergence
#   construct_laplace()    finds the posterior mode from all rows, or with approx = "vi" the largest variational bound,
#                          and makes the fit
#
# Except for several classes, the result is a DTC posterior with noise 1, row weights W and responses f + g / W. Here f
# is the mode, and g and -W are the first two derivatives of the log likelihood by f.

working_steps <- list(learn = function(...) learn_laplace_stage(...),
  points = function(now, plan, state) {
    z <- working_points(now$data, now$learned, plan$posterior, state)
    if (plan$posterior$move) { # minimise the pF divergence for the working responses at the mode
      learned <- now$learned
      x <- now$data$x
      likelihood <- replace(plan$learn$likelihood, "theta", list(learned$theta))
      z <- run_stage(state, "points", {
        sites <- engine_sites(likelihood, now$data$sites, learned$center)
        f <- laplace_at(x, sites, learned$kernel, z, rounding_jitter(nrow(z)), plan$run)$f
        rows <- c(working_rows(x, sites, f - sites$offset), n = nrow(x))
        optimise_stage(rows, learned["model"], z, replace(plan$posterior, "try_starts", FALSE), state)$z
      }, otherwise = z)
    }
    now$start <- list(z = z)
    now$look$rho <- NA_real_
    now
  },
  trial = function(now, plan, state) { # keeps neighbours if they predict held-out rows better
    now$look["trial"] <- list(NULL)
    likelihood <- replace(plan$learn$likelihood, "theta", list(now$learned$theta))
    run_stage(state, "trial", {
      now$mode <- laplace_at(now$data$x, engine_sites(likelihood, now$data$sites, now$learned$center),
                             now$learned$kernel, now$start$z, rounding_jitter(nrow(now$start$z)), plan$run, want = 1L)
      fallback_if_not_converged(compare_with_neighbours(now$data, now, likelihood, plan, state), now)
    }, otherwise = now)
  },
  make = function(now, plan, state) {
    construct_laplace(now$data, now$learned, now$start$z, plan, state, now$near, now$mode)
  })

# Checks settings of a non-Gaussian fit. Sets noise to 1, and those settings of the likelihood that responses determine.
complete_likelihood <- function(data, asked) {
  refuse_with_likelihood(asked)
  check_own_family(asked$likelihood, data$sites$y)
  response <- response_of(asked)
  refuse_if(response$kind == "labels" && !is.null(data$offset), "offset", "is not available for several classes",
            hint = "It would add to all classes alike.")
  asked$noise <- 1
  sites <- data$sites
  classes <- response$reads == "classes"
  asked$likelihood[c("levels", "ordered", "trials")] <- c(data[c("levels", "ordered")], classes && !is.null(sites$size))
  known <- if (has_ends(response)) known_numbers(sites$y, sites$size) else sites$y
  # `unit` is the unit of f in priors. It is 1 for ordered classes, because their latent response has noise of scale 1.
  asked$likelihood$unit <- if (is.null(response$link$unit) || response$kind == "ordered") 1 else
    response$link$unit(replace(sites, "y", list(known)))
  shapes <- length(as_response(asked$likelihood)$shape)
  if (is.function(response$middle)) {
    asked$likelihood$middle <- utils::head(response$middle(sites, sites$weight %||% 1, data$levels), shapes)
    if (!length(asked$likelihood$middle)) asked$likelihood[c("learned", "theta")] <- list(FALSE, numeric())
  }
  if (!is.null(response$least)) asked$likelihood$least <- utils::head(response$least(sites), shapes)
  y <- sites$y
  size <- sites$size %||% 1
  one <- if (response$kind == "ordered") {
    if (all(y == y[1L])) sprintf("All responses are \"%s\"", data$levels[y[1L]])
  } else if (all(y == 0) && (classes || response$reads == "counts")) {
    if (classes) "All responses are failures" else "All counts are 0"
  } else if (classes && all(y == size)) {
    "All responses are successes"
  }
  if (!is.null(one)) tell_classed("one_value", paste0(one, ". A learned constant mean stays at its prior mean."))
  asked
}

refuse_with_likelihood <- function(s) {
  response <- response_of(s)
  labels <- response$kind == "labels"
  vi <- response$approx == "vi"
  tol <- !is.null(s$tol)
  several <- !response$concave || tol || labels
  near <- isTRUE(s$neighbours > 0)
  family <- sprintf("family %s", response$label)
  limit <- if (vi) "approx = \"vi\"" else family
  refuse <- function(argument, given, hint, with = family) {
    if (given) abort_input(argument, paste("is not available with", with), hint = hint)
  }
  scatter <- "Leave it out: the family describes how responses scatter."
  refuse("noise", !is.null(s$noise), scatter)
  refuse("transform", asks_for_transform(s$transform), scatter)
  refuse("aux", !is.null(s[["aux"]]) && (several || vi || near || isTRUE(aux_kinds[[s[["aux"]]$kind]]$keeps_reference)),
         "Use aux_white() or aux_sor(), a log-concave likelihood, and neither `tol`, `neighbours` nor approx = \"vi\".")
  refuse("tol", tol && (vi || labels), if (labels) "With several classes, use `m` and then certify()." else
    "Certificates are about Laplace's posterior. Use approx = \"laplace\".", limit)
  refuse("neighbours", near && (several || vi),
         "Neighbours are for log-concave likelihoods of one latent function with approx = \"laplace\", without `tol`.",
         if (tol) "`tol`" else limit)
  refuse("mean", !is.null(s$mean) && !identical(s$mean[[2L]], 1), "Without `mean`, a linear mean may be chosen.")
  refuse("hyper", s$hyper %in% c("pilot", "joint"), "Use \"evidence\" or \"fixed\".")
  refuse("inducing", identical(s$inducing, "divergence"), "Use another method of inducing_points().")
}

working_points <- function(data, learned, s, state) {
  if (is.matrix(s$inducing)) return(s$inducing)
  if (nrow(data$x) > dense_rows) learned$kernel <- smooth_part(learned$kernel)
  run_stage(state, "start", choose_points(data$x, s$m, learned$kernel, s$inducing, greedy_memory / 4,
                                          control = s$run)$z, otherwise = choose_points(data$x, s$m, NULL, "random")$z)
}

# Makes the fit at the posterior mode. `near` (posterior with neighbours) and `start` (mode on z) may be known already.
construct_laplace <- function(data, learned, z, plan, state, near = NULL, start = NULL) {
  likelihood <- replace(plan$learn$likelihood, "theta", list(learned$theta))
  sites <- engine_sites(likelihood, data$sites, learned$center)
  labels <- response_of(plan$learn)$kind == "labels"
  if (labels) check_size_of_classes(functions_of_f(likelihood), nrow(z), nrow(data$x))
  parts <- laplace_parts(data, sites, learned, z, plan$run, state, start, function(f) {
    neighbours <- plan$posterior$neighbours
    if (!is.null(near) || neighbours == 0L) return(near)
    run_stage(state, "near", near_laplace(data, z, f, sites, learned$model, neighbours, plan$run), otherwise = NULL)
  })
  learned$model$center <- if (labels) stats::setNames(learned$center, likelihood$levels) else learned$center
  new_fit(data, learned, plan, state, c(parts, list(m_asked = if (is.null(plan$again$m)) nrow(z) else plan$posterior$m,
    inducing_method = plan$posterior$inducing_method, aux = if (plan$posterior$move) plan$posterior$aux,
    trial = plan$posterior$trial, likelihood = likelihood, theta = learned$theta)))
}

# Stops if the posterior of q + 1 classes on m inducing points and n rows takes too much memory. Sends a message if its
# estimated time (eight Newton steps at 1e10 operations a second) is long.
check_size_of_classes <- function(q, m, n) {
  size <- as.double(q) * m
  check_memory(8 * (3 * size^2 + as.double(n) * q^2), sprintf("%d classes on %d inducing points", q + 1L, m))
  seconds <- 8 * (size^2 * n + size^3 / 3) / 1e10
  if (seconds > class_points[["seconds"]]) {
    tell_classed("classes", sprintf(
      "%d classes on %d inducing points take about %.0f minutes. A smaller `m` is faster.", q + 1L, m,
      ceiling(seconds / 60)))
  }
}

# Searches for a fit that meets the accuracy `tol`: two errors are at most tol at a share of at least `tol_quantile` of
# the training inputs. They are the certified error of the mean, divided by sd(y), and |exact sd / sd - 1|. For a
# non-Gaussian likelihood, the first is the certified error of the mode, divided by the sd of f at the row.
#
# Candidate fits are tried one after the other. Their errors are computed by error_of() of a yardstick(), which has
# bounds on the exact GP.
# `job` is an environment with data, learned, plan, goal, control, state, late() (TRUE when time is over), all
# `candidates`, the `best` one, and `yard`, the last yardstick.

fit_to_tolerance <- function(data, asked, state) {
  started <- proc.time()[["elapsed"]]
  job <- list2env(list(data = data, goal = list(tol = asked$tol, quantile = asked$control$tol_quantile),
                       control = asked$control, state = state, candidates = list(), started = started))
  job$left <- function() (asked$began %||% started) + asked$control$max_seconds - proc.time()[["elapsed"]]
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
  fit$because["posterior"] <- sprintf(
    if (tol$met) "The posterior is the smallest one found that meets `tol` = %s." else
      "No posterior tried meets `tol` = %s.", show_asked(tol$asked))
  if (!is.null(yard$reference)) fit$reference <- kept_reference(yard$reference, fit)
  fit$tol <- c(tol, seconds = proc.time()[["elapsed"]] - started)
  fit
}

# Searches for a fit that meets `tol`: by inducing points if few may suffice, then by neighbours or the exact posterior.
search_plans <- function(job, asked) {
  data <- job$data
  state <- job$state
  job$plan <- plan <- tolerance_plan(data, asked)
  few <- with_posterior(plan, m = min(default_points, plan$posterior$m))
  job$learned <- learn_stage(data, few$learn, state)
  first_points <- function() points_stage(data, job$learned, few$posterior, state)$z
  if (few$learn$hyper == "joint") job$learned <- optimise_stage(data, job$learned, first_points(), few$posterior, state)
  way <- alternative_posterior(facts_of(data, asked), asked)
  n <- nrow(data$x)
  # With more than `worth` inducing points, the alternative (exact posterior or neighbours), if any, is faster.
  worth <- if (way == "none") Inf else as.integer(min(n, max(50, min(1000, n %/% 4))))
  # Choose inducing points z greedily. rho[i] is mean residual prior variance / noise variance for the first i points.
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
    # If no candidate was found, move inducing points until they meet tol.
    if (is.null(job$best) && is.null(state$stopped)) search_points(job, Inf)
  }
  best <- job$best
  if (!is.null(best$fit)) return(replace(best$fit, c("evaluations", "seconds"), list(state$evaluations, state$seconds)))
  done <- best$done %||% job$learned
  if (is.null(done$z)) done <- start_now(job$learned, look$z %||% first_points(), plan$posterior$jitter)
  construct_fit(data, done, with_posterior(plan, m = nrow(done$z)), state)
}

# Returns the plan for a fit that meets `tol` by at most `m` inducing points, which move, without neighbours.
tolerance_plan <- function(data, asked) {
  refuse_if(!isTRUE(data$sd_y > 0), "tol", "cannot be used for a constant response",
            hint = "It is a fraction of the sd of y.")
  refuse_if(!is.null(asked$inducing) && !is.character(asked$inducing), "inducing", describe(asked$inducing),
            "NULL or the name of a method where `tol` is given",
            hint = "Pass hyperparameters by kernel = fit$kernel, noise = fit$noise.")
  facts <- facts_of(data, asked)
  plan <- decide(facts, replace(asked, c("m", "neighbours"), list(asked[["m"]] %||% facts$rows, 0L)),
                 list(exact = FALSE, rho = Inf))
  plan$because <- NULL
  with_posterior(plan, rho = NULL)
}

# Returns an alternative to inducing points: "exact" if the exact posterior is affordable and no argument requires
# inducing points; "near" if `neighbours` is positive, or missing and no argument requires inducing points; else "none".
alternative_posterior <- function(facts, asked) {
  open <- facts$keep && leaves_points_open(asked)
  if (open && exact_is_affordable(facts)) return("exact")
  if (facts$n > 1L && (isTRUE(asked$neighbours > 0L) || open && is.null(asked$neighbours))) "near" else "none"
}

# Tries the exact posterior if z is NULL, else inducing points z with more and more neighbours, until tol is met. Adds
# no candidate if the noise is too small for the Cholesky factorisation of the exact posterior.
search_rows <- function(job, z = NULL, neighbours = NULL) {
  goal <- job$goal
  exact <- is.null(z)
  data <- if (exact) job$data else merge_all_equal_rows(job$data)
  rows <- used_rows(data, if (exact) Inf else certified_rows)
  counts <- if (exact) 0L else unique(pmin(neighbours %||% c(40L, 80L, 160L), nrow(data$x)))
  if (!exact) job$yard <- NULL
  try_settings(job, counts[1L], function(count) {
    run_stage(job$state, "certificate", {
      started <- proc.time()[["elapsed"]]
      fit <- if (exact) {
        null_if_failed(construct_exact(data, job$learned, job$plan, no_state()))
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

# Returns a yardstick() with bounds on the exact GP at `rows`, from a reference and kriging on neighbours. At most 50
# passes over all pairs of rows try to reduce the error of the reference's mean at 64 of the rows to tol / 8 sds of y.
near_yardstick <- function(fit, data, rows, goal, left) {
  points <- reference_rows(data, model_of(fit)$kernel, min(4L * points_of_fit(fit), nrow(data$x)))
  reference <- dtc_on_points(fit, data, data$x[points, , drop = FALSE], NULL, fast = FALSE)
  few <- values_at(model_of(reference)$kernel, rows$x[evenly(nrow(rows$x), 64L), , drop = FALSE])
  reference$correction <- iterate_to(reference, data, few, goal$tol * data$sd_y / 8, 50L, left, FALSE,
                                     min(64L, kriging_rows()), 1)$correction
  inside <- certificate_of(fit, rows, "reference", reference, test_points = 0, max_seconds = max(left(), 0))
  yardstick(inside, rows, data$sd_y, goal$quantile, reference)
}

# Searches for a non-Gaussian fit that meets `tol`. Its inducing points are the first inducing points of a reference.
search_working <- function(job, asked) {
  refuse_if(!is.null(asked$inducing) && !identical(asked$inducing, "greedy"), "inducing", describe(asked$inducing),
            sprintf("NULL or \"greedy\" where `tol` is given with family %s", response_of(asked)$label),
            hint = "With `tol`, the points are the first greedy points of a reference.")
  data <- job$data
  state <- job$state
  tol <- job$goal$tol
  facts <- facts_of(data, asked)
  most <- asked[["m"]] %||% nrow(data$x)
  plan_with <- function(m) decide(facts, replace(asked, c("m", "neighbours"), list(m, 0L)), list(rho = NA_real_))
  few <- plan_with(min(laplace_sizes$points, most))
  learned <- learn_laplace_stage(data, decide(facts, asked)$learn, state)
  fit <- construct_laplace(data, learned, working_points(data, learned, few$posterior, state), few, state)
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
  # Find the fewest first points of the reference with an error of tol or, if the reference cannot certify such errors,
  # of 1.25 times the smallest that it can certify.
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

# Returns the result of fit_with(), or NULL if it stops with an error of this package or is interrupted.
unless_it_fails <- function(fit_with, data, asked) {
  state <- no_state()
  none <- function(e) NULL
  fit <- tryCatch(suppressMessages(fit_with(data, asked, state)), pfdtc_error_input = none,
                  pfdtc_error_numerical = none)
  if (is.null(state$stopped)) fit
}

# Fits to all but one fold in turn by fit_with(). Returns the log densities of held-out responses, or NA if a fit fails.
log_density_of_folds <- function(data, asked, fold, fit_with) {
  rows <- take_rows_of(rows_of_data(data), of_used_rows(data, seq_along(data$response)))
  y <- unname(rows$response)
  out <- rep(NA_real_, length(y))
  for (held in split(seq_along(y), fold)) {
    part <- clean_again(data, rows$x[-held, , drop = FALSE], y[-held], rows$w[-held], NULL, asked$center, asked$scale,
                        TRUE, "y")
    fit <- unless_it_fails(fit_with, part, asked)
    if (is.null(fit)) return(NA)
    at <- rows$x[held, , drop = FALSE]
    f <- c(latent_at(fit, at), noise_law(fit, list(x = at, index = seq_along(held))))
    f$noise <- f$noise / (rows$w[held] %||% 1)
    out[held] <- response_log_density(response_of(fit), list(y = y[held]), f)
  }
  out
}
