# Maximises log posterior densities of hyperparameters by Fisher scoring or BFGS, from several starts.

# Maximises the Vecchia likelihood times prior from theta. `size` names an entry of learning_sizes (rows, neighbours).
# `steps` has the number of scoring steps of each round; a round ends earlier if the predicted gain is below `enough`
# nats. Neighbours are fixed during a round. A converged round in which no log hyperparameter moves by 0.05 is the last.
climb <- function(problem, theta, size, steps, enough = 0.1, neighbours = NULL) {
  size <- learning_sizes[[size]]
  rows <- problem$pool$take(min(size[["rows"]], problem$pool$n))
  slopes <- if (problem$last > searched_inputs[["sampled"]]) 2L else TRUE
  problem$evaluate <- function(theta) {
    if (is.null(neighbours)) neighbours <<- problem$neighbours(theta, rows, size[["near"]])
    problem$vecchia(theta, rows, neighbours, slopes)
  }
  for (maxit in steps) {
    run <- ascend(problem, theta, maxit, enough)
    theta <- run$theta
    neighbours <- NULL
    if (!is.finite(run$value) || run$converged && run$moved < 0.05) break
    if (proc.time()[["elapsed"]] >= problem$pool$until) break
  }
  run
}

# Returns theta with each number moved into the bounds of `problem`.
within_bounds <- function(problem, theta) pmin(pmax(theta, problem$lower), problem$upper)

# Returns TRUE before the time limit of a pool or of plan$learn$steps.
in_time <- function(limits) proc.time()[["elapsed"]] < limits$until

# Maximises by Fisher scoring: step = (H + lambda diag(H))^{-1} gradient, H the information matrix. lambda increases if
# a step gains too little, and decreases if it gains as predicted. No log hyperparameter moves by more than 2 in a step.
# The search ends when the predicted gain is below `enough` nats. If evaluate() returns no H, BFGS updates H.
ascend <- function(problem, theta, maxit, enough, information = NULL, least = -Inf) {
  start <- theta
  point <- problem$evaluate(theta)
  if (!is.finite(point$value)) return(list(theta = theta, value = -Inf, converged = FALSE))
  scoring <- !is.null(point$information)
  if (scoring) information <- point$information
  lambda <- 1e-3
  converged <- FALSE
  iteration <- 0L
  while (iteration < maxit && proc.time()[["elapsed"]] < problem$pool$until) {
    at_bound <- (theta <= problem$lower & point$gradient < 0) | (theta >= problem$upper & point$gradient > 0)
    free <- which(problem$free & !at_bound)
    step <- numeric(length(theta))
    H <- information[free, free, drop = FALSE]
    g <- point$gradient[free]
    scale <- pmax.int(diag(H), 1e-8 * max(diag(H), 1e-300))
    damping <- if (length(free)) lambda else Inf
    while (damping <= 1e8) {
      uphill <- tryCatch(solve(H + diag(damping * scale, length(scale)), g), error = function(e) {
        if (is_time_limit(e)) stop(e)
      })
      if (!is.null(uphill) && all(is.finite(uphill)) && sum(uphill * g) > 0) break
      damping <- max(10 * damping, 1e-3)
    }
    step[free] <- if (damping <= 1e8) uphill else g / scale
    step <- step * min(1, 2 / max(abs(step)))
    new_theta <- pmin.int(pmax.int(theta + step, problem$lower), problem$upper)
    step <- new_theta - theta
    promised <- sum(point$gradient * step) - sum(step * (information %*% step)) / 2
    converged <- !length(free) || !(promised > enough)
    if (converged || point$value + exact_enough[["hopeless"]] * max(promised, 0) < least) break
    iteration <- iteration + 1L
    new <- problem$evaluate(new_theta)
    gained <- new$value - point$value
    better <- is.finite(gained) && gained > 0.05 * promised
    if (!scoring && is.finite(gained)) { # B becomes B - B s s'B / s'B s + y y' / s'y (B: information, s: step)
      change <- point$gradient - new$gradient
      sy <- sum(step * change)
      Bs <- drop(information %*% step)
      curvature <- sum(step * Bs)
      if (sy > 1e-8 * curvature && curvature > 0) {
        information <- information - tcrossprod(Bs) / curvature + tcrossprod(change) / sy
      }
    }
    if (better) {
      if (scoring) information <- new$information
      if (gained > 0.5 * promised) lambda <- max(lambda / 10, 1e-6)
      theta <- new_theta
      point <- new
    } else {
      lambda <- if (lambda < 1e-2) 0.1 else lambda * 5
      if (lambda > 1e6) break
    }
  }
  list(theta = theta, value = point$value, converged = converged, information = information,
       moved = max(abs(theta - start)), loo = point$loo)
}

# Maximises the exact marginal likelihood times prior, first on fewer rows. Starts at the result of `run`, a search by
# the Vecchia likelihood. Ends when the predicted gain is below `enough` nats, or too small to reach the value `least`.
learn_exactly <- function(problem, run, least = -Inf,
                          enough = exact_enough[[if (problem$pool$n <= exact_enough[["rows"]]) "few" else "many"]]) {
  pool <- problem$pool
  counted <- min(pool$n, learning_sizes$whole[["rows"]])
  for (m in pool$exact) {
    if (is.null(run$information)) return(run) # the Vecchia likelihood could not be computed
    run <- ascend(exact_density(problem, if (m < pool$n) pool$take(m)), run$theta, maxit = 30L, enough = enough,
                  information = run$information * (m / counted), least = if (m < pool$n) -Inf else least)
    counted <- m
  }
  run
}

model_of_run <- function(problem, run) {
  list(label = problem$label, problem = problem, theta = run$theta, value = run$value, parameters = sum(problem$free))
}

best_first <- function(runs) runs[order(-vapply(runs, `[[`, 0, "value"))]

# Searches from each of `starts`, and returns the best model. Ends searches that cannot reach the log density `least`.
best_from <- function(problem, starts, size = "few", least = -Inf, enough = 0.1) {
  best <- best_first(lapply(starts, function(theta) {
    learn_exactly(problem, climb(problem, within_bounds(problem, theta), size, 8L, enough), least)
  }))[[1L]]
  c(model_of_run(problem, best), best["loo"])
}

# Returns the model that a search from theta finds, or NULL if its first steps do not reach the log density `least`.
learned_model <- function(problem, theta, neighbours = NULL, least = -Inf) {
  few <- problem$pool$few
  size <- if (few) "few" else "kernels"
  run <- climb(problem, within_bounds(problem, theta), size, 6L, neighbours = neighbours)
  if (run$value < least) return(NULL)
  if (!run$converged || run$moved >= 0.05) run <- climb(problem, run$theta, size, if (few) 8L else 4L)
  model_of_run(problem, run)
}

moved_to <- function(model, end) {
  same <- c("label", "problem", "theta", "value", "parameters")
  replace(model, same, end[same])
}

# Returns starting values as multiples of problem$unit. Lengthscales differ between terms, or they would stay equal.
start_values_of <- function(problem, lengthscale, noise) {
  table <- problem$table
  start <- table$start
  leaf <- table$leaf[table$ard]
  start[table$ard] <- start[table$ard] * lengthscale * 5^(1 - match(leaf, unique(leaf)))
  c(start, noise)
}

# Returns a start for each c(lengthscale, variance, noise) in `values`. For d inputs, the unit of a lengthscale is
# sqrt(d) times the spread of its input; that of variances is the response's variance. Other values are from `theta`.
further_starts <- function(problem, values, theta) {
  lapply(values, function(at) {
    value <- start_values_of(problem, at[1L], at[3L])
    value[problem$table$what == "variance"] <- at[2L]
    ifelse(problem$free, within_bounds(problem, problem$unit + log(value)), theta)
  })
}

# Returns further starts for smooth functions, with long lengthscales and large variances, as results of climb() without
# steps. A search by the Vecchia likelihood, which is inaccurate for smooth functions of many inputs, would drop these
# starts before the exact likelihood decides. Returns NULL for many rows, several terms, or given values or `restarts`.
smooth_runs <- function(problem, s, theta) {
  if (problem$composite || problem$pool$n > smooth_rule[["rows"]] || !is.null(s$restarts) ||
        !all(is.na(problem$given[problem$free]))) return(NULL)
  lapply(further_starts(problem, list(c(3, 30, 0.0025), c(5, 300, 0.0025)), theta), function(theta) {
    climb(problem, theta, "whole", 0L)
  })
}

# Returns starts theta, without repeats. Attribute "grid" has their lengthscales, in units of sqrt(d) times the spread
# of the d inputs, and noise, in units of the response's variance. Starts with short lengthscales and little noise avoid
# optima that explain all variation by noise. For d <= 2, very short lengthscales suit series with many waves.
starts_of <- function(problem, restarts) {
  d <- sum(problem$table$ard)
  short <- if (d == 1L) c(0.01, 0.03) else if (d == 2L) 0.03
  grid <- rbind(expand.grid(lengthscale = c(0.3, 1, 3, 0.1, short), noise = 0.05),
                expand.grid(lengthscale = c(1, 0.3, 3), noise = 0.5), data.frame(lengthscale = 10, noise = 0.8))
  if (!is.null(restarts)) {
    more <- max(restarts - nrow(grid), 0)
    grid <- rbind(utils::head(grid, restarts), data.frame(lengthscale = exp(stats::runif(more, log(0.03), log(5))),
                             noise = exp(stats::runif(more, log(0.01), log(0.8)))))
  }
  from <- function(known) {
    lapply(seq_len(nrow(grid)), function(i) {
      theta <- problem$unit + log(start_values_of(problem, grid$lengthscale[i], grid$noise[i]))
      within_bounds(problem, replace(theta, known, problem$given[known]))
    })
  }
  known <- !is.na(problem$given)
  thetas <- from(known)
  # The user's values beyond the default bounds of the search may not suit the data, so also start without them.
  if (any(problem$absurd)) {
    thetas <- c(thetas, from(known & !problem$absurd))
    grid <- rbind(grid, grid)
  }
  kept <- !duplicated(thetas)
  structure(thetas[kept], grid = grid[kept, ])
}

# Takes a few search steps from each start, and continues from the better half (at least three). Calls note(theta) for
# each new best theta. Returns list(thetas, report): at most three distinct optima, best first; a table of all starts.
run_starts <- function(problem, restarts, note = function(theta) NULL) {
  pool <- problem$pool
  thetas <- starts_of(problem, restarts)
  grid <- attr(thetas, "grid")
  size <- learning_sizes$starts
  rows <- pool$take(min(size[["rows"]], pool$n))
  # In each start, lengthscales are equal multiples of the inputs' spreads, so all starts have the same neighbours.
  equal <- !problem$composite && !any(!is.na(problem$given) & c(problem$table$ard, FALSE))
  shared <- if (equal) problem$neighbours(thetas[[1L]], rows, size[["near"]])
  most <- -Inf
  runs <- lapply(thetas, function(theta) {
    run <- climb(problem, theta, "starts", 5L, 0.5, shared)
    if (run$value > most) {
      most <<- run$value
      note(run$theta)
    }
    run
  })
  value <- vapply(runs, `[[`, 0, "value")
  better <- if (in_time(pool)) utils::head(order(-value), max(3L, length(runs) %/% 2L))
  runs[better] <- lapply(runs[better], function(run) climb(problem, run$theta, "starts", c(6L, 6L), 0.2))
  value <- vapply(runs, `[[`, 0, "value")
  report <- data.frame(start = seq_along(runs), lengthscale = grid$lengthscale, noise = grid$noise,
                       evidence = value * pool$n / length(rows) / pool$share,
                       kept = seq_along(runs) == which.max(value))
  attr(report, "by") <- paste0("Vecchia log likelihood", problem$plus_prior)
  attr(report, "same") <- 2 * pool$n / length(rows) / pool$share # a difference of 2 nats on `rows` is a tie
  ends <- list()
  for (run in best_first(runs[value >= max(value) - 30])) {
    new <- all(vapply(ends, function(other) max(abs(run$theta - other)) > 0.3, NA))
    if (new && length(ends) < 3L) ends <- c(ends, list(run$theta))
  }
  list(thetas = ends, report = report)
}

# Continues the searches of run_starts() from `thetas`, on more rows. Returns the runs, best first.
finish_starts <- function(problem, thetas) {
  few <- problem$pool$few
  steps <- c(6L, if (few) 6L else 2L)
  runs <- best_first(lapply(thetas, function(theta) climb(problem, theta, "finals", steps)))
  longer <- if (!few) lengthened(problem, runs[[1L]]$theta)
  if (is.null(longer)) runs else best_first(c(list(climb(problem, longer, "finals", steps)), runs))
}

# Moves each lengthscale alone to its prior's centre, and returns the theta of largest log density, or NULL if the given
# theta is best. With several short lengthscales, a search may end a hundred nats below the optimum, because each
# lengthscale is best given the others. Returns NULL if there are too many rows to search neighbours for each theta.
lengthened <- function(problem, theta) {
  if (problem$pool$n > learning_sizes$whole[["rows"]] || !in_time(problem$pool)) return(NULL)
  tried <- lapply(which(problem$table$ard & problem$free[-problem$last]), function(j) {
    replace(theta, j, problem$unit[[j]] + problem$table$middle[[j]])
  })
  best <- which.max(densities_at(problem, c(list(theta), tried), "kernels", "kernels"))
  if (best > 1L) tried[[best - 1L]]
}

# Returns Vecchia log likelihood + log prior at each theta. `rows` and `near` name entries of learning_sizes.
densities_at <- function(problem, thetas, rows, near) {
  rows <- problem$pool$take(min(learning_sizes[[rows]][["rows"]], problem$pool$n))
  vapply(thetas, function(theta) {
    problem$vecchia(theta, rows, problem$neighbours(theta, rows, learning_sizes[[near]][["near"]]), FALSE)$value
  }, 0)
}

# Searches by the Vecchia likelihood from theta, with a linear mean beside the kernel of `problem`, and again from a
# start with one short lengthscale. Returns list(problem, run, short); `short` is TRUE if the second search is better.
search_beside_line <- function(problem, theta, s) {
  wide <- learning_problem(problem$pool, s, paste0(problem$profile, "+mean"))
  last <- problem$last
  # Start with a large variance of the mean, and a tenth of the kernel's variance.
  start <- theta - log(10) * c(problem$table$what == "variance", FALSE)
  start <- c(start[-last], wide$unit[[last]], start[last])
  run <- climb(wide, within_bounds(wide, start), "whole", 8L)
  short <- short_run(wide, run$theta, run$value)
  list(problem = wide, run = if (is.null(short)) run else short, short = !is.null(short))
}

# Returns the columns of the pool's inputs that may identify individuals with several rows: columns with at least
# short_rule$values different numbers, and on average at least two rows for each.
identifying_columns <- function(pool) {
  values <- apply(pool$x, 2L, function(v) length(unique(v)))
  which(values >= short_rule[["values"]] & 2 * values <= pool$n)
}

# Searches from the best start with one short lengthscale and a linear mean. Returns NULL unless the start is less than
# short_rule["below"] nats below the log density `least`, and the result more than short_rule["nats"] above `least`. An
# input that identifies individuals with several rows needs a lengthscale far below the others, so searches start there.
short_run <- function(problem, theta, least) {
  pool <- problem$pool
  columns <- identifying_columns(pool)
  if (!length(columns) || !is.null(pool$levels) || !in_time(pool)) return(NULL)
  table <- problem$table
  last <- problem$last
  start <- further_starts(problem, list(short_rule[c("others", "variance", "noise")]), theta)[[1L]]
  start[last - 1L] <- problem$unit[[last - 1L]] # of the mean
  leaf <- as_sum(problem$natural(theta)$kernel)$leaves[[1L]]
  own <- match(columns, leaf$inputs)
  own <- which(table$ard & problem$free[-last] & table$at %in% (if (is.null(leaf$shared)) own else leaf$shared[own]))
  starts <- unlist(lapply(own, function(j) {
    lapply(problem$unit[[j]] + log(short_lengthscales), function(short) replace(start, j, max(short, problem$lower[j])))
  }), recursive = FALSE)
  value <- densities_at(problem, starts, "whole", "starts")
  if (!isTRUE(max(value, -Inf) > least - short_rule[["below"]])) return(NULL)
  run <- climb(problem, starts[[which.max(value)]], "whole", c(8L, 4L))
  if (isTRUE(run$value > least + short_rule[["nats"]])) run
}

# Searches from all starts. Returns list(problem, theta, report, rival), where `rival` is a second optimum or NULL.
search_starts <- function(problem, restarts, state) {
  keep <- function(theta) state$so_far$at <- list(problem = problem, theta = theta)
  found <- run_starts(problem, restarts, keep)
  first <- found$thetas[[1L]]
  state$so_far$learned <- found$report
  keep(first)
  if (!in_time(problem$pool)) return(list(problem = problem, theta = first, report = found$report))
  ends <- finish_starts(problem, found$thetas)
  keep(ends[[1L]]$theta)
  list(problem = problem, theta = ends[[1L]]$theta, report = found$report, rival = find_rival(problem, ends))
}

# Returns a list with the rival: the best of the other `ends` of searches that explains by noise what ends[[1]] explains
# by f, or vice versa. Returns NULL if there is none. The larger of the two noise variances is over twice the smaller,
# and exceeds it by a tenth of the response's variance. `behind` is the log density at ends[[1]] minus the rival's.
find_rival <- function(problem, ends) {
  last <- problem$last
  other <- Filter(function(end) {
    noise <- exp(c(ends[[1L]]$theta[[last]], end$theta[[last]]))
    max(noise) > 2 * min(noise) && max(noise) - min(noise) > 0.1 * exp(problem$unit[[last]])
  }, ends)
  if (!length(other)) return(NULL)
  pool <- problem$pool
  other[[1L]]$behind <- (ends[[1L]]$value - other[[1L]]$value) * pool$n / pool$share /
    min(pool$n, learning_sizes$finals[["rows"]])
  other[1L]
}

# Warns about a second optimum (a rival). `unit` is the unit of the noise variance.
warn_rival <- function(learned, unit) {
  rival <- attr(learned, "rival")
  if (is.null(rival)) return(invisible())
  warn_convergence(sprintf(paste(
    "Two sets of hyperparameters fit the data about equally well, with noise variance %.3g or %.3g. The fit uses the",
    "first; the %s of the second is lower by %s. If you know the noise variance, give `noise`."),
    unit * rival$noise[1L], unit * rival$noise[2L], attr(learned, "by") %||% "log marginal likelihood",
    if (rival$behind < 0.05) "less than 0.1" else sprintf("%.1f", rival$behind)),
    noise = unit * rival$noise, behind = rival$behind)
}
