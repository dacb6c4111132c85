# The search for the fewest inducing points that meet a tolerance, for other likelihoods than the Gaussian.
#
# The first points of a reference are those of smaller fits, so that a bisection finds the fewest.

search_working <- function(data, asked, state, deadline) {
  if (!is.null(asked$inducing) && !identical(asked$inducing, "greedy")) {
    abort_input("inducing", describe(asked$inducing), sprintf("NULL or \"greedy\" where `tol` is given with family %s",
                                                              as_response(asked$likelihood)$label),
                hint = "The first of greedy points are those of a smaller fit.")
  }
  most <- if (is.null(asked[["m"]])) nrow(data$x) else asked[["m"]]
  plan_with <- function(m) {
    decide(facts_of(data, asked), replace(asked, c("m", "neighbours"), list(m, 0L)), list(rho = NA_real_))
  }
  few <- plan_with(min(laplace_sizes$points, most))
  learn <- decide(facts_of(data, asked), asked)$learn
  learned <- learn_laplace_stage(data, learn, state)
  z <- working_points(data, learned, few$posterior, few$posterior$m, state)
  fit <- construct_laplace(data, learned, z, few, state)
  yard <- run_stage(state, "reference", same_chance(grow_laplace_reference(fit, data, few$goal, most, deadline)),
                    otherwise = NULL)
  found <- if (!is.null(yard)) {
    run_stage(state, "certificate", fewest_points(fit, data, yard, asked$tol), otherwise = NULL)
  }
  if (is.null(found)) return(list(yard = yard, fit = fit))
  z <- utils::head(yard$reference$inducing, min(found$m, most))
  fit <- construct_laplace(data, learned, z, plan_with(nrow(z)), state)
  best <- candidate_of(fit, yard, data$x, asked$tol, 0, fit$center)
  best$needs <- laplace_needs(yard, found, asked$tol, most)
  list(best = best, yard = yard, tried = found$tried, fit = fit)
}

# Doubles the points until the reference leaves a quarter of tol open, or no more are possible; `limit` says why.
grow_laplace_reference <- function(fit, data, goal, m, deadline) {
  rows <- plain_rows(data$x)
  grow_until(nrow(data$x), m, Inf, deadline, function(m2) {
    made <- laplace_reference(fit, data, m2)
    c(yardstick(mode_interval(made$bounds, data$x), rows, NULL, goal$quantile),
      list(reference = made, effort = "reference", m2 = made$m, rows = data$n))
  }, function(yard) max(yard$floor) <= goal$tol / 4)
}

# Bisects the number of points. Returns list(m, tried). If tol is out of reach, the goal is 1.25 times what the
# reference leaves open.
fewest_points <- function(fit, data, yard, tol) {
  ref <- yard$reference
  least <- max(yard$floor)
  goal <- if (least <= tol) tol else 1.25 * least
  if (!is.finite(least)) return(list(m = min(laplace_sizes$most, ref$m)))
  offset <- engine_sites(fit$likelihood, data$sites, fit$center)$offset
  error_at <- function(m) {
    at <- laplace_at(data, fit$likelihood, fit$center, fit$kernel, ref$inducing[seq_len(m), , drop = FALSE],
                     rounding_jitter(m), fit$control, start = list(beta = ref$factors$beta[seq_len(m)]), want = 1L)
    yard$error(at$f - offset, sqrt(at$q + at$left))
  }
  low <- 0L
  high <- ref$m
  tried <- NULL
  while (high > max(low + 1, 1.05 * low)) {
    m <- as.integer(max(low + 1, round(sqrt(max(low, 1) * high))))
    started <- proc.time()[["elapsed"]]
    error <- error_at(m)
    met <- max(error) <= goal * (1 - 1e-6)
    tried <- rbind(tried, data.frame(m = m, iterations = 0L, mean = error[["mean"]], sd = error[["sd"]],
                                     met = max(error) <= tol, seconds = proc.time()[["elapsed"]] - started,
                                     posterior = "far", neighbours = 0L))
    if (met) high <- m else low <- m
  }
  list(m = high, tried = tried)
}

laplace_needs <- function(yard, found, tol, most) {
  open <- max(yard$floor)
  if (open <= tol) return(sprintf("`m` = %d is too few: about %d points would do.", most, found$m))
  if (!is.finite(open)) return("The reference is not certified: more than one mode of the exact process may be near.")
  several <- !as_response(yard$reference$likelihood)$concave
  paste0(sprintf("With %d points, the reference itself leaves %s open: ", yard$reference$m, show_percent(open)),
         limit_text(yard, if (several) "that there is one mode near is not proved any closer." else
           "more would differ by rounding only: `tol` is too small."))
}
