# Hyperparameters by the evidence, at a cost that does not grow with the rows but for the search of neighbours:
#
#   log p(y) = sum_i log p(y_i | earlier rows)  ~  sum over rows I of log p(y_i | y_S(i)),
#
# S(i) the nearest of the rows that a random order puts before i (Vecchia 1988). Every term is a true conditional
# density, so its score has mean 0 at the truth whatever S(i) and I are: neighbours that go stale cost efficiency, never
# consistency. In a random order the first rows have far neighbours and the last near ones, so all scales are seen.
#
# One interface: learn_evidence(data, s, state) -> list(kernel, noise, pilot = NULL, learned, kernels, smoother), the
# best of which so far is in state$so_far for who interrupts it. Parameters are the logs that hyper_parameters() has;
# steps are by Fisher scoring, for which the C code gives the information.

learn_evidence <- function(data, s, state) {
  pool <- learning_rows(data, s)
  counted <- learning_sizes$whole[["rows"]]
  if (counted < pool$n) state$rows[c("learn", "among")] <- c(counted, pool$n)
  on.exit(count_evaluations(state, "learn", list(evaluations = pool$count$evaluations)))
  tell <- stage_line("hyperparameters", s$steps$progress, after = 1)
  on.exit(tell(NULL), add = TRUE)

  tell("starts")
  problem <- learning_problem(pool, s, kernel_candidates[1L])
  found <- run_starts(problem, s$restarts, function(theta) {
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
  kernels <- smoother <- NULL
  if (is_open(s$kernel) && in_time(pool)) {
    best <- choose_kernel(pool, s, theta, tell)
    problem <- best$problem
    theta <- best$theta
    kernels <- best$kernels
    smoother <- best$smoother
    if (length(theta) > length(found$thetas[[1L]])) rival <- NULL # two scales have both explanations
    state$so_far[c("kernel", "noise", "kernels")] <- c(problem$natural(theta), list(kernels))
  }
  tell("all rows that count")
  if (in_time(pool)) {
    steps <- if (is_small_enough(pool)) c(8L, 6L, 6L) else c(5L, 3L)
    result <- climb(problem, theta, learning_sizes$whole, steps, enough = 0.1)
    theta <- result$theta
    state$so_far[c("kernel", "noise")] <- problem$natural(theta)
    if (is_small_enough(pool)) {
      ends <- lapply(c(list(result), rival), learn_exactly, problem = problem)
      ends <- ends[order(-vapply(ends, `[[`, 0, "value"))]
      theta <- ends[[1L]]$theta
      rival <- find_rival(problem, ends)
    }
    if (!is.null(kernels) && is_bare(s$kernel)) { # no mean beside it, nor a family's start
      value <- if (is_small_enough(pool)) ends[[1L]]$value
      best <- choose_line(list(problem = problem, theta = theta, value = value, kernels = kernels), s, result)
      if (best$problem$profile != problem$profile) rival <- smoother <- NULL
      problem <- best$problem
      theta <- best$theta
      kernels <- best$kernels
      state$so_far[c("kernel", "noise", "kernels")] <- c(problem$natural(theta), list(kernels))
    }
    attr(found$report, "rival") <- describe_rival(problem, theta, rival)
  }
  if (!in_time(pool)) attr(found$report, "ended") <- TRUE
  c(problem$natural(theta), list(pilot = NULL, learned = found$report, kernels = kernels, smoother = smoother))
}
