# A named accuracy for classes and counts: as few greedy points as the certificate allows.
#
#   grow_laplace_reference()  a reference, doubled until what it leaves open at the training inputs is small beside tol
#   fewest_points()           its first points nest: by bisection the fewest of them whose posterior meets tol
#
# The statistic: over the training inputs, the quantile `tol_quantile` (1: the maximum) of the certified distance of the
# exact process's Laplace mode in sds of f there, and that of |exact sd / sd - 1|. Both are to be at most tol. A class
# has no spread that an error could be a share of; and whatever f is used for, an error well below its sd is not seen.

laplace_to_tolerance <- function(data, settings) {
  fit_laplace(data, settings, laplace_to_tolerance, so_far = tolerance_so_far, unmet = tolerance_unmet)
}

laplace_to_tolerance <- function(data, asked, state) {
  started <- proc.time()[["elapsed"]]
  if (!is.null(asked$inducing) && !identical(asked$inducing, "greedy")) {
    abort_input("inducing", describe(asked$inducing), sprintf("NULL or \"greedy\" where `tol` is given with family %s",
                                                              as_response(asked$likelihood)$label),
                hint = "Of greedy points the first are those of a smaller fit.")
  }
  s <- decide(facts_of(data, asked), replace(asked, "neighbours", list(0L)), list(rho = NA_real_))
  deadline <- started + s$posterior$steps$max_seconds
  learned <- learn_laplace_stage(data, s$learn, state)
  most <- if (is.null(asked[["m"]])) nrow(data$x) else asked[["m"]]
  s$again$m <- s$posterior$m <- min(laplace_sizes$points, most)
  fit <- construct_laplace(data, learned, working_points(data, learned, s$posterior, s$posterior$m, state), s, state)
  yard <- run_stage(state, "reference", same_chance(grow_laplace_reference(fit, data, s$goal, most, deadline)),
                    otherwise = NULL)
  tol <- list(asked = s$goal$tol, quantile = s$goal$quantile, mean = NA_real_, sd = NA_real_, met = FALSE,
              effort = NA_character_, m2 = NA_integer_, rows = data$n, needs = NULL, tried = NULL)
  found <- if (!is.null(yard)) {
    run_stage(state, "certificate", fewest_points(fit, data, yard, s$goal$tol), otherwise = NULL)
  }
  if (!is.null(found)) {
    z <- yard$reference$inducing[seq_len(min(found$m, most)), , drop = FALSE]
    s$again$m <- s$posterior$m <- nrow(z)
    fit <- construct_laplace(data, learned, z, s, state)
    at <- latent_at(fit, data$x)
    error <- yard$error(at$mean - fit$center, sqrt(at$var))
    tol[c("mean", "sd")] <- as.list(error)
    tol[c("met", "effort", "m2")] <- list(max(error) <= s$goal$tol, "reference", yard$reference$m)
    tol["tried"] <- list(found$tried)
    if (!tol$met) tol$needs <- laplace_needs(yard, found, s$goal$tol, most)
  }
  if (!is.null(yard)) fit$reference <- yard$reference
  fit$tol <- c(tol, seconds = proc.time()[["elapsed"]] - started)
  fit
}

# Points are doubled until what the reference leaves open is a quarter of tol, or there are no more: `limit` says why.
grow_laplace_reference <- function(fit, data, goal, m, deadline) {
  rows <- plain_rows(data$x)
  grow_until(nrow(data$x), m, Inf, deadline, function(m2) {
    made <- laplace_reference(fit, data, m2)
    c(yardstick(mode_interval(made$bounds, data$x), rows, NULL, goal$quantile), list(reference = made))
  }, function(yard) max(yard$floor) <= goal$tol / 4)
}

# list(m, tried). Where tol is out of reach, as many points as come within a quarter of what the reference leaves open.
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
