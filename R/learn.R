# Hyperparameters by the evidence, at a cost that does not grow with the rows but for the search of neighbours:
#
#   log p(y) = sum_i log p(y_i | earlier rows)  ~  sum over rows I of log p(y_i | y_S(i)),
#
# S(i) the nearest of the rows that a random order puts before i (Vecchia 1988). Every term is a true conditional
# density, so its score has mean 0 at the truth whatever S(i) and I are: neighbours that go stale cost efficiency, never
# consistency. In a random order the first rows have far neighbours and the last near ones, so all scales are seen.
#
# One interface: learn_evidence(data, s, state) -> list(kernel, noise, pilot = NULL, learned, kernels), the best of
# which so far is in state$so_far for who interrupts it. Parameters are the logs that hyper_parameters() has; steps are
# by Fisher scoring, for which the C code gives the information.

learning_sizes <- list(
  population = 1e6,                      # rows among which neighbours are looked for
  first = 200L,                          # the first rows of the order are always among those that count
  starts = c(rows = 4000L, near = 10L),  # every start: where there is much noise, many rows tell more than many near
  finals = c(rows = 5000L, near = 15L),  # the best of them
  kernels = c(rows = 3000L, near = 20L), # every kernel, from where the best start led
  whole = c(rows = 8000L, near = 30L),   # the one that is kept
  score = c(rows = 8000L, near = 40L))   # kernels are judged on rows given their neighbours among all

learn_evidence <- function(data, s, state) {
  pool <- learning_rows(data, s)
  on.exit(count_evaluations(state, "learn", list(evaluations = pool$count$evaluations)))
  candidates <- if (is.null(s$kernel$profile)) kernel_candidates else s$kernel$profile
  tell <- stage_line("hyperparameters", s$control$progress, after = 1)
  on.exit(tell(NULL), add = TRUE)

  tell("starts")
  problem <- learning_problem(pool, s, candidates[1L])
  found <- run_starts(problem, s$control, function(theta) {
    state$so_far[c("kernel", "noise")] <- problem$natural(theta)
  })
  state$so_far <- c(problem$natural(found$thetas[[1L]]), list(pilot = NULL, learned = found$report))
  theta <- found$thetas[[1L]]
  rival <- NULL
  if (in_time(pool)) {
    ends <- finish_starts(problem, found$thetas)
    theta <- ends[[1L]]$theta
    rival <- find_rival(problem, ends)
  }
  state$so_far[c("kernel", "noise")] <- problem$natural(theta)
  kernels <- NULL
  if (length(candidates) > 1L && in_time(pool)) {
    judged <- lapply(candidates, function(profile) {
      tell(profile_label(profile))
      judge_kernel(learning_problem(pool, s, profile), theta)
    })
    scores <- vapply(judged, function(one) mean(one$scores), 0)
    best <- best_kernel(lapply(judged, `[[`, "scores"))
    problem <- judged[[best]]$problem
    theta <- judged[[best]]$theta
    kernels <- data.frame(kernel = vapply(candidates, profile_label, ""), score = scores,
                          chosen = seq_along(scores) == best, row.names = NULL)
    kernels <- kernels[order(kernels$score), ]
    state$so_far[c("kernel", "noise", "kernels")] <- c(problem$natural(theta), list(kernels))
  }
  tell("all rows that count")
  if (in_time(pool)) {
    result <- climb(problem, theta, learning_sizes$whole, c(8L, 6L, 6L), enough = 0.1)
    theta <- result$theta
    state$so_far[c("kernel", "noise")] <- problem$natural(theta)
    if (is_small_enough(pool)) {
      ends <- lapply(c(list(result), rival), learn_exactly, problem = problem)
      ends <- ends[order(-vapply(ends, `[[`, 0, "value"))]
      theta <- ends[[1L]]$theta
      rival <- find_rival(problem, ends)
    }
    attr(found$report, "rival") <- describe_rival(problem, theta, rival)
  }
  if (!in_time(pool)) attr(found$report, "ended") <- TRUE
  c(problem$natural(theta), list(pilot = NULL, learned = found$report, kernels = kernels))
}

in_time <- function(pool) proc.time()[["elapsed"]] < pool$until

kernel_candidates <- c("matern32", "matern12", "matern52", "se")

profile_label <- function(profile) kernel_of(profile)$label

# ---- the rows -------------------------------------------------------------------------------------------------------

# The population in which neighbours are looked for, in a random order, and the order in which rows come to count. Equal
# rows are merged however few they are: what all of them say of the noise counts then, and not what the few among the
# rows that count happen to say.
learning_rows <- function(data, s) {
  data <- merge_the_few(data)
  n <- nrow(data$x)
  most <- min(n, s$control$optimise_rows, learning_sizes$population)
  rows <- if (most < n) sort(sample.int(n, most)) else seq_len(n)
  pool <- list(x = data$x[rows, , drop = FALSE], y = data$y[rows], weights = data$weights[rows], n = length(rows),
               rank = sample.int(length(rows)), shift = data$shift, share = length(rows) / n,
               floor = noise_floor(data), weight = mean_weight(data),
               signal = signal_power(data), variance = response_variance(data), count = new.env(parent = emptyenv()),
               until = proc.time()[["elapsed"]] + s$control$max_seconds)
  early <- order(pool$rank)[seq_len(min(pool$n, learning_sizes$first))]
  others <- setdiff(sample.int(pool$n), early)
  pool$take <- function(count) { # of `count` rows a fifth at most are the first of the order
    some <- min(length(early), max(1L, count %/% 5L))
    c(early[seq_len(some)], utils::head(others, count - some), if (count > some + length(others))
      early[-seq_len(some)])
  }
  pool$count$evaluations <- 0L
  pool
}

# Mean square of y about 0, the prior mean, or about its own, and what merged rows no longer show of it.
response_power <- function(data, y = data$y) {
  w <- if (is.null(data$weights)) 1 else data$weights
  power <- (sum(w * y^2) + data$shift$ss) / sum(w + 0 * y)
  if (power > 0) power else 1
}

response_variance <- function(data) {
  w <- if (is.null(data$weights)) rep(1, length(data$y)) else data$weights
  response_power(data, data$y - sum(w * data$y) / sum(w))
}

# The unit of the kernel's variance: the mean square of y; where a few rows of huge weight have hardly any, that without
# their weight, which says nothing of how f varies.
signal_power <- function(data) {
  power <- response_power(data)
  if (is.null(data$weights)) return(power)
  w <- pmin(data$weights, stats::median(data$weights))
  plain <- sum(w * data$y^2) / sum(w)
  if (plain > 10 * power) plain else power
}

# Responses that are rounded to multiples of delta have noise of at least delta^2 / 12 (Sheppard): less would take the
# rounding for structure. Steps wider than the response's root mean square are no rounding. And no less than a millionth
# of the response's variance, which nothing but interpolation asks for; around a mean that was not taken out, no less
# than the kernel matrix has digits for.
noise_floor <- function(data) {
  r <- data$response - if (is.null(data$offset)) 0 else data$offset
  r <- sort(unique(r)) / data$scale
  gap <- if (length(r) > 1L) min(diff(r)) else 0
  power <- response_variance(data)
  max(1e-6 * power, 1e-11 * response_power(data), min(gap^2, power) / 12)
}

# ---- the problem: value, gradient and information of log posterior in the free logs ---------------------------------

# Priors are weak and fade like 1 / n^2: without them an input that says nothing has a lengthscale that goes to
# infinity, and few rows have no noise. In units of the inputs' spread and of y:
#   log l ~ N(log(3 sqrt(d)), 0.7^2),  log variance ~ N(0, 1.5^2),  log noise ~ N(log 0.1, 2^2).
# That of the variance stays where the neighbours' likelihood has the last word: in much noise this does not tell a
# variance from a hundred times it with longer lengthscales, and the order of the rows decides, at a hundredth of NLPD.
learning_problem <- function(pool, s, profile) {
  kernel <- s$kernel
  if (is.null(kernel$profile)) kernel <- place_kernel(kernel_of(profile), pool$x)
  table <- parameter_units(kernel, pool$x, pool$signal)
  names <- parameter_names(kernel, s$columns)
  last <- length(names)
  unit <- log(c(table$unit, pool$variance * pool$weight))
  given <- log(c(kernel_values(kernel, table), if (is.null(s$noise)) NA else s$noise))
  kernel <- name_lengthscales(kernel_with(kernel, ifelse(is.na(given), unit, given)[-last], table), pool$x)
  lower <- unit + log(c(table$low, 1))
  lower[last] <- log(pool$floor * pool$weight)
  upper <- unit + log(c(table$high, 10))
  upper[last] <- max(upper[last], lower[last])
  # values given are where the search starts, and may lie outside
  absurd <- !is.na(given) & (given < lower | given > upper)
  lower <- pmin(lower, given, na.rm = TRUE)
  upper <- pmax(upper, given, na.rm = TRUE)
  middle <- unit + c(table$middle, log(0.1))
  fade <- rep(min(1, learning_priors$rows / pool$n)^2, last)
  if (!is_small_enough(pool)) fade[which(table$what == "variance")] <- 1
  precision <- fade * if (s$control$priors) 1 / c(table$sd, 2)^2 else numeric(last)
  held <- names %in% setdiff(names, s$free)
  natural <- function(theta) {
    value <- exp(unname(theta))
    list(kernel = kernel_with(kernel, value[-last], table), noise = value[last])
  }
  problem <- list(pool = pool, natural = natural, free = !held, given = given, absurd = absurd & !held, unit = unit,
                  lower = lower, upper = upper, last = last, table = table,
                  composite = is_composite(kernel), control = s$control)
  problem$neighbours <- function(theta, rows, near, earlier = TRUE) {
    native_neighbours(natural(theta)$kernel, pool$x, min(near, pool$n - 1L), rows = rows,
                      rank = if (earlier) pool$rank, control = s$control)
  }
  problem$prior <- function(theta) {
    list(value = -sum(precision * (theta - middle)^2) / 2, gradient = -precision * (theta - middle),
         information = precision)
  }
  problem$evaluate <- function(theta, rows, neighbours) {
    pool$count$evaluations <- pool$count$evaluations + 1L
    now <- natural(theta)
    result <- native_vecchia(pool$x, pool$y, pool$weights, now$kernel, now$noise, rows, neighbours,
                             control = s$control)
    if (!is.finite(result$value)) return(list(value = -Inf))
    add_merged(result, problem, now$noise, length(rows) / pool$n * pool$share, theta)
  }
  problem
}

kernel_of <- function(profile) {
  switch(profile, se = kernel_se(), matern12 = kernel_matern(1 / 2), matern32 = kernel_matern(3 / 2),
         matern52 = kernel_matern(5 / 2))
}

# The log likelihood with the prior, and with the share that merged rows have in it: -(rows/2) log(2 pi s2) - ss/(2 s2).
add_merged <- function(result, problem, noise, share, theta) {
  shift <- problem$pool$shift
  prior <- problem$prior(theta)
  last <- problem$last
  out <- list(likelihood = result$value + share * merged_log_density(shift, noise))
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

# ---- the search -----------------------------------------------------------------------------------------------------

# Maximises by scoring: step = (information + lambda diag)^{-1} gradient, lambda up where a step brings too little and
# down where it brings what it promised; no log moves further than 2. Ends when a step promises less than `enough`.
# Where `evaluate` gives no information, that of the start is corrected by BFGS.
ascend <- function(evaluate, theta, problem, maxit, enough = 0.02, information = NULL) {
  start <- theta
  point <- evaluate(theta)
  if (!is.finite(point$value)) return(list(theta = theta, value = -Inf, converged = FALSE))
  scoring <- !is.null(point$information)
  if (scoring) information <- point$information
  lambda <- 1e-3
  converged <- FALSE
  iteration <- 0L
  while (iteration < maxit && in_time(problem$pool)) {
    at_bound <- (theta <= problem$lower & point$gradient < 0) | (theta >= problem$upper & point$gradient > 0)
    free <- which(problem$free & !at_bound)
    if (!length(free)) {
      converged <- TRUE
      break
    }
    step <- numeric(length(theta))
    step[free] <- scoring_step(information[free, free, drop = FALSE], point$gradient[free], lambda)
    size <- max(abs(step))
    if (size > 2) step <- step * (2 / size)
    new_theta <- pmin(pmax(theta + step, problem$lower), problem$upper)
    step <- new_theta - theta
    promised <- sum(point$gradient * step) - sum(step * (information %*% step)) / 2
    if (!(promised > enough)) {
      converged <- TRUE
      break
    }
    iteration <- iteration + 1L
    new <- evaluate(new_theta)
    gained <- new$value - point$value
    if (is.finite(gained) && gained > 0.05 * promised) {
      if (!scoring) information <- bfgs_update(information, step, point$gradient - new$gradient)
      else information <- new$information
      if (gained > 0.5 * promised) lambda <- max(lambda / 10, 1e-6)
      theta <- new_theta
      point <- new
    } else {
      if (!scoring && is.finite(gained)) information <- bfgs_update(information, step, point$gradient - new$gradient)
      lambda <- if (lambda < 1e-2) 0.1 else lambda * 5
      if (lambda > 1e6) break
    }
  }
  list(theta = theta, value = point$value, converged = converged, information = information,
       moved = max(abs(theta - start)))
}

scoring_step <- function(information, gradient, lambda) {
  scale <- pmax(diag(information), 1e-8 * max(diag(information), 1e-300))
  repeat {
    step <- tryCatch(solve(information + diag(lambda * scale, length(scale)), gradient), error = function(e) {
      if (is_time_limit(e)) stop(e)
    })
    if (!is.null(step) && all(is.finite(step)) && sum(step * gradient) > 0) return(step)
    lambda <- max(10 * lambda, 1e-3)
    if (lambda > 1e8) return(gradient / scale)
  }
}

# B <- B - B s s'B / s'B s + y y' / s'y, left alone without positive curvature
bfgs_update <- function(B, step, change) {
  sy <- sum(step * change)
  Bs <- drop(B %*% step)
  curvature <- sum(step * Bs)
  if (!(sy > 1e-8 * curvature) || !(curvature > 0)) return(B)
  B - tcrossprod(Bs) / curvature + tcrossprod(change) / sy
}

# Some steps with neighbours as they are, then with new ones, until no log moves by more than 0.05.
climb <- function(problem, theta, size, steps, neighbours = NULL, enough = 0.02) {
  rows <- problem$pool$take(min(size[["rows"]], problem$pool$n))
  for (maxit in steps) {
    if (is.null(neighbours)) neighbours <- problem$neighbours(theta, rows, size[["near"]])
    result <- ascend(function(theta) problem$evaluate(theta, rows, neighbours), theta, problem, maxit, enough)
    theta <- result$theta
    neighbours <- NULL
    if (!is.finite(result$value) || result$converged && result$moved < 0.05 || !in_time(problem$pool)) break
  }
  result
}

# Lengthscales and noise to start from, in units of sqrt(d) spreads and of the response: optima at which noise explains
# everything are many, and it is the short lengthscales and the low noise that escape from them. In one dimension a
# series may have dozens of waves.
start_grid <- function(d, restarts) {
  short <- if (d == 1L) c(0.01, 0.03) else if (d == 2L) 0.03
  grid <- rbind(expand.grid(lengthscale = c(0.3, 1, 3, 0.1, short), noise = 0.05),
                expand.grid(lengthscale = c(1, 0.3, 3), noise = 0.5), data.frame(lengthscale = 10, noise = 0.8))
  if (is.null(restarts)) return(grid)
  if (restarts <= nrow(grid)) return(grid[seq_len(restarts), ])
  more <- restarts - nrow(grid)
  rbind(grid, data.frame(lengthscale = exp(stats::runif(more, log(0.03), log(5))),
                         noise = exp(stats::runif(more, log(0.01), log(0.8)))))
}

# Beside the units. Two terms over the same inputs begin apart: alike they would stay so.
start_values_of <- function(problem, lengthscale, noise) {
  table <- problem$table
  start <- ifelse(table$ard, table$start * lengthscale, table$start)
  for (what in unique(table$what[table$leaf > 0L])) {
    leaves <- unique(table$leaf[table$what == what & table$ard])
    for (i in seq_along(leaves)) start[table$leaf == leaves[i] & table$ard] <-
      start[table$leaf == leaves[i] & table$ard] * 5^(1 - i)
  }
  c(start, noise)
}

# Every start a few steps, the better half of them some more, the best three to the end.
# `note(theta)` is told the best after each.
run_starts <- function(problem, control, note = function(theta) NULL) {
  pool <- problem$pool
  grid <- start_grid(sum(problem$table$ard), control$restarts)
  starts <- function(known) {
    lapply(seq_len(nrow(grid)), function(i) {
      theta <- problem$unit + log(start_values_of(problem, grid$lengthscale[i], grid$noise[i]))
      theta[known] <- problem$given[known]
      pmin(pmax(theta, problem$lower), problem$upper)
    })
  }
  known <- !is.na(problem$given)
  thetas <- starts(known)
  # values far from any that data of this size have may lead nowhere: not from them alone
  if (any(problem$absurd)) {
    thetas <- c(thetas, starts(known & !problem$absurd))
    grid <- rbind(grid, grid)
  }
  kept <- !duplicated(thetas)
  thetas <- thetas[kept]
  size <- learning_sizes$starts
  rows <- pool$take(min(size[["rows"]], pool$n))
  # in units of the spreads all lengthscales are equal in every start: so are the neighbours
  equal <- !problem$composite && !any(known & c(problem$table$ard, FALSE))
  shared <- if (equal) problem$neighbours(thetas[[1L]], rows, size[["near"]])
  most <- -Inf
  runs <- lapply(thetas, function(theta) {
    run <- climb(problem, theta, size, steps = 5L, neighbours = shared, enough = 0.5)
    if (run$value > most) {
      most <<- run$value
      note(run$theta)
    }
    run
  })
  value <- vapply(runs, `[[`, 0, "value")
  better <- utils::head(order(-value), max(3L, length(runs) %/% 2L))
  runs[better] <- lapply(runs[better], function(run) climb(problem, run$theta, size, c(6L, 6L), enough = 0.2))
  value <- vapply(runs, `[[`, 0, "value")
  report <- data.frame(start = seq_along(runs), lengthscale = grid$lengthscale[kept], noise = grid$noise[kept],
                       evidence = value * pool$n / length(rows) / pool$share, kept = FALSE)
  best <- order(-value)
  report$kept[best[1L]] <- TRUE
  attr(report, "same") <- 2 * pool$n / length(rows) / pool$share # 2 nats on the rows that were looked at
  list(thetas = apart(lapply(runs[best[value[best] >= max(value) - 30]], `[[`, "theta")), report = report)
}

# Of where runs ended, the best first, at most three no two of which are much the same.
apart <- function(thetas) {
  out <- thetas[1L]
  for (theta in thetas[-1L]) {
    if (length(out) == 3L) break
    if (all(vapply(out, function(other) max(abs(theta - other)) > 0.3, NA))) out <- c(out, list(theta))
  }
  out
}

# The best starts on more rows: where they end, the best first.
finish_starts <- function(problem, thetas) {
  runs <- lapply(thetas, climb, problem = problem, size = learning_sizes$finals, steps = c(6L, 6L), enough = 0.1)
  runs[order(-vapply(runs, `[[`, 0, "value"))]
}

# Whether two ends explain the data differently: what the one takes for noise the other takes for structure, twice the
# noise variance, and a tenth of the response's more.
explains_otherwise <- function(problem, theta, other) {
  last <- problem$last
  noise <- exp(c(theta[[last]], other[[last]]))
  max(noise) > 2 * min(noise) && max(noise) - min(noise) > 0.1 * exp(problem$unit[[last]])
}

# Of several ends, the best first, the next that explains the data otherwise, as a list of one (or none); `behind`: by
# how many nats, of all rows.
find_rival <- function(problem, ends) {
  other <- Filter(function(end) explains_otherwise(problem, ends[[1L]]$theta, end$theta), ends)
  if (!length(other)) return(NULL)
  pool <- problem$pool
  other[[1L]]$behind <- (ends[[1L]]$value - other[[1L]]$value) * pool$n / pool$share /
    min(pool$n, learning_sizes$finals[["rows"]])
  other[1L]
}

# The noise variances of what was learned and of a rival that the evidence does not tell from it, being within two nats.
describe_rival <- function(problem, theta, rival) {
  if (is.null(rival) || !isTRUE(rival[[1L]]$behind <= 2)) return(NULL)
  other <- rival[[1L]]$theta
  if (!explains_otherwise(problem, theta, other)) return(NULL)
  list(noise = exp(c(theta[[problem$last]], other[[problem$last]])), behind = rival[[1L]]$behind)
}

# `unit`: of the noise variance
warn_rival <- function(learned, unit) {
  rival <- attr(learned, "rival")
  if (is.null(rival)) return(invisible())
  warn_convergence(sprintf(paste(
    "Two explanations of the data are about as likely: noise of variance %.3g, and of variance %.3g (log evidence less",
    "by %.1f). The first was taken; more rows, or a `noise` or lengthscale that is known, would decide."),
    unit * rival$noise[1L], unit * rival$noise[2L], rival$behind), noise = unit * rival$noise, behind = rival$behind)
}

# Another kernel from where the first one's search led: list(problem, theta, score).
judge_kernel <- function(problem, theta) {
  start <- pmin(pmax(theta, problem$lower), problem$upper)
  run <- climb(problem, start, learning_sizes$kernels, c(6L, 8L), enough = 0.1)
  list(problem = problem, theta = run$theta, scores = conditional_scores(problem, run$theta))
}

# The first kernel, unless another is better by more than two standard errors of the difference: of few rows the choice
# would be chance.
best_kernel <- function(scores) {
  means <- vapply(scores, mean, 0)
  if (means[1L] == Inf) return(which.min(means))
  clear <- means < Inf & vapply(scores, function(one) {
    gain <- scores[[1L]] - one
    length(gain) < 2L || isTRUE(mean(gain) > 2 * stats::sd(gain) / sqrt(length(gain)))
  }, NA)
  clear[1L] <- TRUE
  which(clear)[which.min(means[clear])]
}

# Means of -log p(y_i | its nearest among all other rows), what a prediction at a row held out would score, over some
# random groups of rows of about equal size.
conditional_scores <- function(problem, theta) {
  size <- learning_sizes$score
  pool <- problem$pool
  rows <- pool$take(min(size[["rows"]], pool$n))
  neighbours <- problem$neighbours(theta, rows, size[["near"]], earlier = FALSE)
  now <- problem$natural(theta)
  groups <- split(seq_along(rows), seq_along(rows) %% min(20L, length(rows)))
  scores <- vapply(groups, function(i) {
    value <- native_vecchia(pool$x, pool$y, pool$weights, now$kernel, now$noise, rows[i], neighbours[, i, drop = FALSE],
                            slopes = FALSE, control = problem$control)$value
    if (is.finite(value)) -value / length(i) else Inf # where it cannot be computed
  }, 0)
  unname(scores)
}

# ---- the exact evidence as the last stage, where it is cheap --------------------------------------------------------

# n^3 flops an evaluation, some ten of them: a second or two at 2,000 rows.
is_small_enough <- function(pool) {
  pool$share == 1 && pool$n <= 2000L && 8 * 2 * pool$n^2 <= getOption("pfdtc.max_memory", 2^32)
}

learn_exactly <- function(problem, result) {
  if (is.null(result$information)) return(result) # the neighbours' likelihood cannot be computed there: nor can this
  # the information of the neighbours' likelihood, per row as in all rows
  ascend(function(theta) evaluate_exactly(problem, theta), result$theta, problem, maxit = 30L, enough = 0.05,
         information = result$information * max(1, problem$pool$n / learning_sizes$whole[["rows"]]))
}

# Log of the exact evidence times the prior, with its slope.
evaluate_exactly <- function(problem, theta) {
  pool <- problem$pool
  pool$count$evaluations <- pool$count$evaluations + 1L
  now <- problem$natural(theta)
  result <- native_exact_evidence(pool$x, pool$y, pool$weights, now$kernel, now$noise, problem$control)
  if (!is.null(result$reason)) return(list(value = -Inf))
  add_merged(list(value = -result$value, score = -c(result$theta, result$noise)), problem, now$noise, 1, theta)
}
