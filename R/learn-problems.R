# Defines the problems of learning: log posterior densities of hyperparameters, to be maximised.
#
#   list(start, lower, upper, natural(theta), evaluate(theta) -> list(value, gradient, information), prior(theta))
#
# theta has the logs of the hyperparameters; natural() returns kernel and noise, at() the same in the engine's form. A
# learning_problem() has vecchia(), the Vecchia likelihood with its Fisher information, from which climb() makes
# evaluate(). exact_density() makes evaluate() from the exact likelihood, without information.

# Returns the parameters of a model with their bounds and priors. Priors are weak, and their precision decreases with
# the rows (prior_share()). Without priors an irrelevant input has an infinite lengthscale, and few rows have no noise.
# In units of the inputs' spread and of y:
#   log l ~ N(log(3 sqrt(d)), 0.7^2),  log variance ~ N(0, 3^2),  log noise ~ N(log 0.1, 2^2).
# The variance has a constant prior sd of 1.5 if the Vecchia likelihood is the last stage. With much noise that
# likelihood does not separate a variance from a hundred times it with longer lengthscales. The random order would
# decide, which costs 0.01 in NLPD. For a kernel of one term the prior is then half as wide. With `little_noise` the
# prior of the noise falls exponentially below exp(-1) times its centre, log prior = -(-q - 1/2) / 4 instead of -q^2 /
# 8, where q = log(noise / centre): 2.8 nats at a millionth of the response's variance, not 16.5.
learning_problem <- function(pool, s, profile, little_noise = FALSE) {
  made <- kernel_to_learn(pool, s, profile)
  compiled <- made$compiled
  kernel <- compiled$kernel
  table <- made$table
  variances <- table$what == "variance"
  table$unit[variances] <- pool$signal / table$over[variances]
  last <- nrow(table) + 1L
  names <- if (last == length(s$names)) s$names else parameter_names(compiled, s$columns)
  unit <- log(c(table$unit, pool$variance * pool$weight))
  given <- log(c(compiled$engine$values, if (is.null(s$noise)) NA else s$noise))
  lower <- unit + log(c(table$low, 1))
  lower[last] <- log(pool$floor * pool$weight)
  upper <- unit + log(c(table$high, 10))
  upper[last] <- max(upper[last], lower[last])
  # The search starts at given values, which may be outside the bounds.
  absurd <- !is.na(given) & (given < lower | given > upper)
  lower <- pmin(lower, given, na.rm = TRUE)
  upper <- pmax(upper, given, na.rm = TRUE)
  season <- !is.null(kernel$season)
  fade <- rep(pool$fade, last)
  composite <- length(kernel$leaves) > 1L
  if (!pool$few && !is_mean(kernel)) fade[which(variances)] <- if (composite) 1 else 4
  free <- !names %in% setdiff(s$names, s$free) & !c(table$held, FALSE)
  if (pool$few) table$sd[variances & !table$keep] <- wide_variance_sd
  if (season) fade[c(table$keep, TRUE)] <- 1
  of_noise <- if (season) season_noise else c(middle = 0.1, sd = 2)
  middle <- unit + c(table$middle, log(of_noise[["middle"]]))
  precision <- fade * if (s$priors) 1 / c(table$sd, of_noise[["sd"]])^2 else numeric(last)
  # `engine` is the engine's form of kernel and noise.
  at <- function(theta, kernel = compiled) {
    value <- exp(unname(theta))
    kernel$engine$values <- value[-last]
    list(kernel = kernel, noise = value[last], engine = list(
      kernel = if (is.null(kernel$engine$tie)) kernel$engine else engine_kernel(kernel), noise = value[last],
      jitter = 0))
  }
  problem <- list(start = unit, lower = lower, upper = upper, at = at, rows = made$by_number$rows,
                  by_number = function(theta) at(theta, made$by_number$kernel), pool = pool, free = free, given = given,
                  natural = function(theta) list(kernel = as_kernel(at(theta)$kernel), noise = exp(theta[[last]])),
                  middle = middle, absurd = absurd & free, unit = unit, last = last, table = table, profile = profile,
                  label = made$label, composite = composite, run = s$run, little_noise = little_noise)
  with_likelihood(problem, precision)
}

# Returns list(asked, compiled, table, by_number, label) for a profile: the kernel with the given values, and the units
# of its parameters (of variances for responses of mean square 1). The pool keeps it for other problems.
kernel_to_learn <- function(pool, s, profile) {
  made <- if (!is.null(profile)) pool$made[[profile]]
  if (!is.null(made) && identical(made$asked, s$kernel)) return(made)
  open <- open_leaf(s$kernel)
  chosen <- if (!is.null(profile)) kernel_of(profile, open$periods)
  compiled <- compile_kernel(if (is.null(open)) s$kernel else with_profile(s$kernel, profile, pool$x, open, chosen))
  table <- parameter_units(compiled$kernel, pool$x, 1, compiled$table, pool$spreads) # the kernel has its periods
  made <- list(asked = s$kernel, compiled = compiled, table = table, by_number = by_numbers_of_levels(compiled, pool$x),
               label = if (!is.null(profile)) profile_label(profile, open$periods, chosen))
  if (!is.null(profile)) pool$made[[profile]] <- made
  made
}

# Adds the prior and the Vecchia likelihood to a problem: neighbours(theta, rows, near) finds neighbours, and
# vecchia(theta, rows, neighbours, slopes) returns the log density of `rows` given these neighbours, with priors. With
# `slopes` 2 a quarter of the rows estimates the information. With other `weights` and a `basis` of the log noise, it
# returns the log likelihood with derivatives in the coefficients of the basis. input(n) is made once for n rows.
with_likelihood <- function(problem, precision) {
  pool <- problem$pool
  run <- problem$run
  # Priors are independent and normal. With `little_noise` the noise's log prior is linear below its middle minus 1.
  problem$prior <- function(theta) {
    away <- theta - problem$middle
    value <- -sum(precision * away^2) / 2
    last <- problem$last
    if (problem$little_noise && away[[last]] < -1) {
      value <- value + precision[last] * (away[[last]] + 1)^2 / 2
      precision[last] <- precision[last] / -away[[last]]
    }
    list(value = value, gradient = -precision * away, information = precision)
  }
  # Add the prior and the share of merged rows in the log likelihood: -(rows/2) log(2 pi s2) - ss/(2 s2).
  problem$posterior <- function(result, noise, share, theta) {
    shift <- pool$shift
    prior <- problem$prior(theta)
    last <- problem$last
    merged <- if (shift$rows == 0 && shift$ss == 0) 0 else share * merged_log_density(shift, noise)
    out <- list(likelihood = result$value + merged)
    out$value <- out$likelihood + prior$value
    if (is.null(result$score)) return(out)
    out$gradient <- result$score + prior$gradient
    out$gradient[last] <- out$gradient[last] + share * (shift$ss / (2 * noise) - shift$rows / 2)
    if (!is.null(result$information)) {
      out$information <- result$information + diag(prior$information, last)
      out$information[last, last] <- out$information[last, last] + share * shift$rows / 2
    }
    out
  }
  problem$neighbours <- function(theta, rows, near, earlier = TRUE) {
    if (nrow(pool$x) > many_rows) gc(FALSE) # a tree of all rows takes most of the memory, so free the last one
    now <- problem$at(theta)
    to <- if (is.null(pool$levels)) now$engine else engine_model(kernel = smooth_part(now$kernel))
    native_neighbours(NULL, pool$x, min(near, pool$n - 1L), rows = rows, rank = if (earlier) pool$rank,
                      at = problem$input(length(rows))$control, to = to)
  }
  made <- list(n = -1L)
  problem$input <- function(n) {
    rows <- if (is.null(made$rows)) engine_rows(replace(pool, "x", list(problem$rows(pool$x)))) else made$rows
    if (made$n != n) made <<- list(n = n, rows = rows, control = engine_control(n, run))
    made
  }
  problem$vecchia <- function(theta, rows, neighbours, slopes = TRUE, weights = pool$weights,
                              basis = matrix(0, nrow(pool$x), 0L)) {
    pool$count$evaluations <- pool$count$evaluations + 1L
    input <- problem$input(length(rows))
    trend <- ncol(basis) > 0L
    if (trend) input$rows$scale <- sqrt(weights)
    now <- problem$by_number(theta)
    plain <- is.null(pool$levels)
    likelihood <- if (plain) native_vecchia else integrated_likelihood
    result <- likelihood(replace(pool, "weights", list(weights)), now, rows, neighbours, basis = basis, at = input,
                         slopes = if (plain) slopes else slopes > 0)
    if (!is.finite(result$value)) return(list(value = -Inf))
    if (trend) result else problem$posterior(result, now$noise, length(rows) / pool$n * pool$share, theta)
  }
  problem
}

# Returns the problem whose value is the exact log marginal likelihood with priors, of all rows of the pool or of some.
# `loo` has the log density of each row given all others. With B = (K + s2 W^{-1})^{-1}, alpha = B y and p = diag(B),
# row i has the mean y_i - alpha_i / p_i and the variance 1 / p_i.
exact_density <- function(problem, rows = NULL) {
  pool <- problem$pool
  used <- if (is.null(rows)) pool else
    list(x = pool$x[rows, , drop = FALSE], y = pool$y[rows], weights = pool$weights[rows])
  used$x <- problem$rows(used$x)
  n <- length(used$y)
  input <- engine_input(used, n, problem$run)
  problem$evaluate <- function(theta) {
    pool$count$evaluations <- pool$count$evaluations + 1L
    now <- problem$by_number(theta)
    result <- native_exact_evidence(used, now, at = input)
    if (!is.null(result$reason)) return(list(value = -Inf))
    c(problem$posterior(list(value = -result$value, score = -c(result$theta, result$noise)), now$noise,
                        n / pool$n * pool$share, theta),
      list(loo = (log(result$precision) - result$alpha^2 / result$precision - log(2 * pi)) / 2))
  }
  problem
}

# ---- kernels by the names of their profiles -------------------------------------------------------------------------

# Returns the kernel with this profile; "a+b" is the sum of two kernels over the same inputs, and "additive:a" and
# "pairwise:a" are kernel_additive() of a. A season (kernel-place.R) needs its `periods`.
kernel_of <- function(profile, periods = NULL) {
  one <- plain_kernels[[profile]]
  if (!is.null(one)) return(one)
  if (is_season(profile)) {
    parts <- parts_of_season(profile, periods)
    return(season_kernel(parts$periods, kernel_of(parts$rest), if (parts$mean) kernel_of("mean")))
  }
  terms <- strsplit(profile, "+", fixed = TRUE)[[1L]]
  if (length(terms) > 1L) {
    return(Reduce(`+`, lapply(terms, function(term) replace(kernel_of(term), "of", list(character())))))
  }
  part <- strsplit(profile, ":", fixed = TRUE)[[1L]]
  if (length(part) > 1L) kernel_additive(kernel_of(part[2L]), pairs = part[1L] == "pairwise")
}

profile_label <- function(profile, periods = NULL, kernel = kernel_of(profile, periods)) {
  if (is.null(kernel$leaves)) return(kernel$label)
  if (!is_season(profile)) return(sum_label(kernel))
  parts <- parts_of_season(profile, periods)
  paste(c("trend", paste("season of a", vapply(parts$periods, `[[`, "", "name")), sum_label(kernel_of(parts$rest)),
          if (parts$mean) "linear mean"), collapse = " + ")
}

# Returns the factor whose profile is still to be chosen, in a kernel of one or more terms, or NULL if there is none.
open_leaf <- function(kernel) {
  if (!is.null(kernel$engine)) kernel <- kernel$kernel
  Find(function(l) is.null(l$profile), if (is.null(kernel$leaves)) list(kernel) else kernel$leaves)
}

is_open <- function(kernel) !is.null(open_leaf(kernel))

with_profile <- function(kernel, profile, x, leaf = open_leaf(kernel), chosen = kernel_of(profile, leaf$periods)) {
  if (is.null(kernel$leaves)) {
    value <- c("lengthscale", "variance")
    if (is.null(chosen$leaves)) chosen[value] <- kernel[value] # given values start the search of a one-term kernel
    chosen <- change_leaves(chosen, function(l) {
      if (l$profile == "mean") return(replace(l, c("centre", "rate"), basis_units(x)))
      if (l$profile %in% c("additive", "pairwise")) l$groups <- kernel$groups
      if (is.null(l$inputs)) {
        l$inputs <- kernel$inputs
        l$shared <- kernel$shared
      }
      l
    })
    # `kernel` has been compiled for the inputs, so a factor over the same inputs fits them.
    placed <- isTRUE(chosen$profile %in% kernels_of_before) && is.null(chosen$lengthscale)
    return(if (placed) chosen else place_kernel(chosen, x))
  }
  open <- vapply(kernel$leaves, function(l) is.null(l$profile), NA)
  if (is_season(profile)) return(replace_by_season(with_profile(leaf, profile, x), kernel, open, x))
  kernel$leaves[open] <- lapply(kernel$leaves[open], function(l) {
    own <- intersect(c("profile", "label", "base"), names(chosen))
    replace(l, own, chosen[own])
  })
  kernel$label <- formula_of_kernel(kernel)
  kernel
}
