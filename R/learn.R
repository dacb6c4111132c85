# Learns hyperparameters by the log marginal likelihood. Only the search of neighbours costs more for more rows:
#
#   log p(y) = sum_i log p(y_i | earlier rows)  ~  sum over rows I of log p(y_i | y_S(i)),
#
# where S(i) are the nearest rows that a random order puts before i (Vecchia 1988). Every term is a true conditional
# density, so its score has mean 0 at the truth for any S(i) and I: outdated neighbours cost efficiency, not
# consistency. In a random order the first rows have distant neighbours and the last rows close ones: all scales are
# covered.

# Returns list(kernel, noise, pilot = NULL, learned, kernels, smoother, exact). state$so_far has the best result so far,
# for interrupts. state$begun has the results of the search for the response.
learn_evidence <- function(data, s, state) {
  begun <- state$begun
  state$begun <- NULL
  pool <- if (is.null(begun$problem)) learning_rows(data, s) else begun$problem$pool
  copies <- pool$copies
  if (!is.null(copies)) {
    tell_classed("copies", sprintf(paste(
      "%d of %d rows are copies of other rows (same inputs, same response). Hyperparameters were learned from the %d",
      "distinct rows; predictions use all rows."), copies, data$n, data$n - copies))
  }
  counted <- learning_sizes$whole[["rows"]]
  if (counted < pool$n) state$rows[c("learn", "among")] <- c(counted, pool$n)
  on.exit(count_evaluations(state, "learn", list(evaluations = pool$count$evaluations)))
  tell <- stage_line("hyperparameters", s$steps$progress, after = 1)
  on.exit(tell(NULL), add = TRUE)
  keep <- function(model) state$so_far[c("kernel", "noise")] <- model$problem$natural(model$theta)

  if (is.null(begun$problem)) {
    tell("starts")
    problem <- learning_problem(pool, s, "matern32")
    begun <- if (is.null(begun)) search_starts(problem, s$restarts, state) else c(list(problem = problem), begun)
  }
  rival <- begun$rival
  now <- list(label = "", problem = begun$problem, theta = begun$theta, kernels = NULL)
  keep(now)
  smoother <- NULL
  if (is_open(s$kernel) && in_time(pool)) {
    choice <- choose(candidates(pool, s, now$theta, tell), judge_by_rows)
    now <- c(choice$best[c("label", "problem", "theta")], list(kernels = choice$table))
    smoother <- smoother_kernel(choice$tried, best_of(choice$tried))
    if (length(now$theta) > length(begun$theta)) rival <- NULL # two scales contain both explanations
    keep(now)
    state$so_far["kernels"] <- list(now$kernels)
  }
  tell("all rows that count")
  if (in_time(pool)) {
    end <- learn_finally(now, s, rival, begun$terms, state, keep)
    if (end$model$problem$profile != now$problem$profile) smoother <- NULL
    now <- end$model
    last <- now$problem$last
    rival <- end$rival[[1L]]
    if (isTRUE(rival$behind <= 2) && length(find_rival(now$problem, list(now[c("theta", "value")], rival)))) {
      attr(begun$report, "rival") <- list(noise = exp(c(now$theta[[last]], rival$theta[[last]])), behind = rival$behind)
    }
    if (now$problem$little_noise) attr(begun$report, "little_noise") <- TRUE
  }
  if (!in_time(pool)) attr(begun$report, "ended") <- TRUE
  c(now$problem$natural(now$theta),
    list(pilot = NULL, learned = begun$report, kernels = now$kernels, smoother = smoother, exact = now$exact))
}

# Searches from all starts. Returns list(problem, theta, report, rival) and sets state$so_far to the best result.
search_starts <- function(problem, restarts, state) {
  keep <- function(theta) state$so_far[c("kernel", "noise")] <- problem$natural(theta)
  found <- run_starts(problem, restarts, keep)
  theta <- found$thetas[[1L]]
  state$so_far <- c(problem$natural(theta), list(pilot = NULL, learned = found$report))
  rival <- NULL
  if (in_time(problem$pool)) {
    ends <- finish_starts(problem, found$thetas)
    theta <- ends[[1L]]$theta
    rival <- find_rival(problem, ends)
  }
  keep(theta)
  list(problem = problem, theta = theta, report = found$report, rival = rival)
}

# Continues the chosen model on all rows of the sum, by the exact likelihood if rows are few, and tries a linear mean if
# the kernel was open. `terms` is the additive kernel learned for the response. Returns list(model, rival).
learn_finally <- function(now, s, rival, terms, state, keep) {
  problem <- now$problem
  exact <- problem$pool$few
  run <- climb(problem, now$theta, "whole", if (exact) c(8L, 6L, 6L) else c(5L, 3L))
  now[c("theta", "value")] <- run[c("theta", "value")]
  keep(now)
  if (exact) {
    ends <- lapply(c(list(run), rival, smooth_runs(problem, s, run$theta)), learn_exactly, problem = problem)
    ends <- ends[order(-vapply(ends, `[[`, 0, "value"))]
    now[c("theta", "value")] <- ends[[1L]][c("theta", "value")]
    rival <- find_rival(problem, ends)
  } else if (has_little_noise(problem, now$theta)) {
    choice <- choose_exactly(now, run)
    now[c("theta", "exact")] <- choice[c("theta", "exact")]
  }
  if (!is.null(now$kernels) && is_bare(open_leaf(s$kernel))) { # the start of a non-Gaussian fit lacks them
    alone <- is_bare(s$kernel) # FALSE with a given mean or groups
    if (exact && alone) {
      shared <- choose_shared(now, s)
      now <- shared$now
      s <- shared$s
      one <- isTRUE(shared$gain > 0)
      if (one) terms <- NULL # `terms` have a lengthscale for each level
      if (!is.null(shared$gain)) state$because["factors"] <- sprintf(
        "Factors have one lengthscale%s: this raises the leave-one-out log density by %.2g per row.",
        if (one) "" else " for each level", abs(shared$gain))
    }
    now$parameters <- sum(now$problem$free)
    now <- choose_season(now, s)
    if (!is_season(now$problem$profile)) {
      if (alone && s$additive) now <- if (exact) choose_additive(now, s, terms) else choose_additive_on_some(now, s)
      kernel <- now$problem$natural(now$theta)$kernel
      if (alone && !is_additive(kernel)) now <- choose_line(now, s, run) # additive kernels almost contain a line
    }
    if (now$problem$profile != problem$profile) rival <- NULL
    keep(now)
    state$so_far["kernels"] <- list(now$kernels)
  }
  now <- compare_little_noise(now, s)
  if (exact && problem$pool$n <= exact_enough[["last"]] && in_time(problem$pool)) {
    # Continue to the optimum, so that estimates do not depend on the seed.
    end <- learn_exactly(now$problem, climb(now$problem, now$theta, "whole", 0L), exact_enough[["sure"]])
    if (is.finite(end$value)) now[c("theta", "value")] <- end[c("theta", "value")]
  }
  list(model = now, rival = if (!now$problem$little_noise) rival)
}

# Returns the model of explain_noise(), or the best end of searches from there and from two smooth kernels, whose prior
# allows little noise. The log likelihood without priors must increase by two nats (learning_problem()).
compare_little_noise <- function(model, s) {
  if (!may_lack_noise(model$problem, model$theta, s)) return(model)
  model <- explain_noise(model, s)
  best <- little_noise_model(model, s, model$problem$profile)
  likelihood <- function(one) exact_density(best$problem)$evaluate(one$theta)$likelihood
  if (isTRUE(likelihood(best) - likelihood(model) > little_noise_rule[["nats"]])) best else model
}

# Returns `model`, or a model whose noise is fixed at a small share of the variance of the response. The second model
# needs a much larger leave-one-out density, and a log likelihood without priors at most one nat smaller. The likelihood
# alone cannot decide: for few rows of a simulator, noise and a wiggly f explain the data equally well.
explain_noise <- function(model, s) {
  if (!may_lack_noise(model$problem, model$theta, s)) return(model)
  last <- model$problem$last
  held <- min(model$theta[[last]], model$problem$unit[[last]] + log(little_noise_rule[["held"]]))
  profiles <- unique(c(model$problem$profile, if (is_open(s$kernel)) c("matern52", "se")))
  ends <- lapply(profiles, function(profile) little_noise_model(model, s, profile, held))
  at <- lapply(c(list(model), ends), function(one) exact_density(one$problem)$evaluate(one$theta))
  gain <- vapply(at, `[[`, 0, "likelihood") - at[[1L]]$likelihood
  best <- 1L + which.max(gain[-1L])
  taken <- isTRUE(gain[best] > -little_noise_rule[["behind"]] &&
                    mean(at[[best]]$loo - at[[1L]]$loo) > little_noise_rule[["left_out"]])
  if (taken) ends[[best - 1L]] else model
}

# Returns the model learned with a prior that allows little noise. `held` is the log noise, or NULL if it is learned.
little_noise_model <- function(model, s, profile, held = NULL) {
  problem <- learning_problem(model$problem$pool, s, profile, little_noise = TRUE)
  last <- problem$last
  if (!is.null(held)) problem$lower[last] <- problem$upper[last] <- held
  starts <- c(if (profile == model$problem$profile) list(model$theta),
              further_starts(problem, list(c(1, 2, 1e-5), c(2, 20, 1e-5)), model$theta))
  if (profile != model$problem$profile && !is.null(model$kernels)) {
    model$kernels$chosen <- model$kernels$kernel == profile_label(profile)
    attr(model$kernels, "additive") <- NULL
  }
  moved_to(model, best_from(problem, starts, "whole"))
}

# Returns TRUE if the prior alone may keep the noise large: the prior still matters, and the noise is already small.
# Rounded or repeated responses have noise. With many inputs, a kernel explains few rows without noise by its
# lengthscales. Columns that share a lengthscale are one input.
may_lack_noise <- function(problem, theta, s) {
  pool <- problem$pool
  last <- problem$last
  shared <- as_sum(s$kernel)$leaves[[1L]]$shared
  inputs <- if (is.null(shared)) ncol(pool$x) else max(shared)
  s$priors && pool$few && problem$free[last] && !problem$composite && pool$shift$ss == 0 &&
    pool$floor <= little_noise_rule[["rounded"]] * pool$variance &&
    theta[[last]] - problem$unit[[last]] < log(little_noise_rule[["noise"]]) &&
    pool$n > max(15, 3 * sum(problem$free)) && prior_share(pool$n, inputs) > 0.1
}

because_of_noise <- c(noise = paste("The fit has little noise, as a deterministic simulator does: the log marginal",
                                   "likelihood without priors or the leave-one-out log density is larger."))

# Learns heteroscedastic noise (response-noise.R) and the hyperparameters of one kernel by the Vecchia likelihood.

# Returns the problem with the parameters gamma ~ N(0, v) added. `v` has the variance of each coefficient.
problem_with_trend <- function(problem, trend, v) {
  pool <- problem$pool
  last <- problem$last
  own <- seq_len(last)
  q <- length(v)
  B <- noise_basis(trend, pool$x)
  twins <- pool$twins
  wide <- problem
  wide$free <- c(problem$free, rep(TRUE, q))
  wide$lower <- c(problem$lower, rep(-6, q))
  wide$upper <- c(problem$upper, rep(6, q))
  wide$neighbours <- function(theta, ...) problem$neighbours(theta[own], ...)
  wide$vecchia <- function(theta, rows, neighbours, slopes = TRUE) {
    gamma <- theta[-own]
    log_factor <- drop(B %*% gamma)
    basis <- B * (abs(log_factor) < most_trend)
    factor <- exp(within_trend(log_factor))
    weights <- (if (is.null(pool$weights)) rep(1, pool$n) else pool$weights) / factor
    result <- problem$vecchia(theta[own], rows, neighbours, TRUE, weights, basis)
    if (!is.finite(result$value)) return(list(value = -Inf))
    prior <- problem$prior(theta[own])
    at <- list(value = result$value + prior$value - sum(gamma^2 / v) / 2,
               gradient = result$score + c(prior$gradient, -gamma / v),
               information = result$information + diag(c(prior$information, 1 / v)))
    if (!length(twins)) return(at)
    # Merged rows contribute -(rows / 2) log(2 pi noise) - ss / (2 noise), with the noise of each distinct row.
    noise <- exp(theta[[last]]) * factor
    share <- length(rows) / pool$n * pool$share / 2
    own_noise <- last - 1L + seq_len(ncol(basis) + 1L)
    basis <- cbind(1, basis)
    at$value <- at$value - share * sum(twins$rows * log(2 * pi * noise) + twins$ss / noise)
    at$gradient[own_noise] <- at$gradient[own_noise] + share * colSums(basis * (twins$ss / noise - twins$rows))
    at$information[own_noise, own_noise] <- at$information[own_noise, own_noise] +
      share * crossprod(basis, basis * twins$rows)
    at
  }
  wide
}

# Learns the noise trend: its coefficients gamma, and v for each part, which starts at 0.3. v moves by MacKay's fixed
# point: with V the covariance of gamma and e = q - trace(V) / v, v <- |gamma|^2 / e. Returns list(theta, value, trend)
# of the round with the largest value,
#
#   log p(y | theta, gamma) + log prior(theta) - |gamma|^2 / (2 v) - (q / 2) log v - log det(S) / 2,   S = V^{-1},
#
# which is Laplace's approximation of the log marginal likelihood, comparable with that of constant noise. Returns NULL
# if it cannot be computed. trend$level has the covariance of log s2 with itself and with gamma. The search ends if the
# value is below `least` and v decreases, because the noise becomes constant.
learn_noise <- function(problem, theta, trend, size, least = -Inf) {
  pool <- problem$pool
  trend <- place_noise_trend(trend, pool$x, kernel_lengths(problem$natural(theta)$kernel, ncol(pool$x)))
  part <- noise_parts(trend)
  v <- rep(0.3, max(part))
  own <- seq_along(theta)
  now <- c(theta, numeric(length(part)))
  most_deviation <- max((pool$y - mean(pool$y))^2)
  best <- NULL
  for (round in seq_len(noise_trend_sizes[["rounds"]])) {
    steps <- if (round == 1L) c(10L, 6L) else 6L
    run <- climb(problem_with_trend(problem, trend, v[part]), now, size, steps, 0.05)
    if (!is.finite(run$value)) break
    now <- run$theta
    S <- information_of_rest(run$information, own, own[problem$free])
    gamma <- unname(now[-own])
    V <- solve(S)
    occam <- -(sum(log(v[part])) + as.numeric(determinant(S)$modulus)) / 2
    if (is.null(best) || run$value + occam > best$value) {
      level <- if (problem$free[problem$last]) {
        others <- own[-problem$last]
        solve(information_of_rest(run$information, others, others[problem$free[others]]))[1L, ]
      } else {
        numeric(length(gamma) + 1L)
      }
      trend[c("gamma", "v", "covariance", "level")] <- list(gamma, v, V, level)
      trend$most <- min(max(log(most_deviation) - now[[problem$last]], 0), most_trend)
      best <- list(theta = now[own], value = run$value + occam, trend = trend)
    }
    old <- v
    v <- vapply(seq_along(v), function(p) {
      known <- sum(part == p) - sum(diag(V)[part == p]) / v[p]
      if (known < 0.05) v[p] / 4 else sum(gamma[part == p]^2) / known
    }, 0)
    v <- pmin(pmax(v, 1e-3), 10)
    if (all(abs(log(v / old)) < 0.2) || all(v < old) && run$value + occam < least || !in_time(pool)) break
  }
  best
}

# Returns the information on the parameters not in `own`, if those in `free` are unknown.
information_of_rest <- function(information, own, free) {
  S <- information[-own, -own, drop = FALSE]
  if (!length(free)) return(S)
  A <- information[free, free, drop = FALSE]
  C <- information[-own, free, drop = FALSE]
  S - C %*% solve(A + diag(1e-9 * max(diag(A)), nrow(A)), t(C))
}
