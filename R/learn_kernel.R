# The kernel where none is given: each from where the search of one led, judged by rows given their neighbours.

# The starts have the first.
kernel_candidates <- c("matern32", "matern12", "matern52", "se")

# Two terms over all inputs, which find a long and a short scale.
two_scales <- "matern32+matern32"

# list(problem, theta, kernels, smoother): the kernel with the least score, where its search ended, what was tried, and
# kernel and noise of the smoothest that near rows do not tell from it, NULL where there is none.
choose_kernel <- function(pool, s, theta, tell = function(what) NULL) {
  judged <- list()
  judge <- function(profile, theta, ...) {
    tell(profile_label(profile))
    judged[[profile]] <<- judge_kernel(learning_problem(pool, s, profile), theta, ...)
  }
  judge(kernel_candidates[1L], theta)
  one <- judged[[1L]]
  if (!is_small_enough(pool)) {
    theta <- one$theta
    neighbours <- kernel_neighbours(one$problem, theta) # those of all that begin with the same lengthscales
  }
  for (profile in kernel_candidates[-1L]) {
    if (is_small_enough(pool)) judge(profile, theta)
    else if (may_be_best(profile, judged)) judge(profile, theta, neighbours = neighbours)
  }
  if (!one$problem$composite && best_kernel(judged) %in% c("matern32", "matern12")) { # no mean beside it
    judge(two_scales, two_scales_start(one$theta), least = one$value + length(one$theta) - 1)
  }
  best <- best_kernel(judged)
  c(judged[[best]][c("problem", "theta")],
    list(kernels = table_of_kernels(judged, best), smoother = smoother_kernel(judged, best)))
}

# Scores have one minimum in smoothness: of many rows a kernel is left out where one nearer to Matern 3/2 lost to it.
may_be_best <- function(profile, judged) {
  lost <- function(other) !isTRUE(judged[[other]]$score < judged$matern32$score)
  switch(profile, matern52 = lost("matern12"), se = !is.null(judged$matern52) && !lost("matern52"), TRUE)
}

kernel_neighbours <- function(problem, theta) {
  size <- learning_sizes$kernels
  problem$neighbours(theta, problem$pool$take(min(size[["rows"]], problem$pool$n)), size[["near"]])
}

# Of scores that differ by less than twice the standard error of that.
smoother_kernel <- function(judged, best) {
  for (profile in intersect(rev(by_roughness), names(judged))) {
    if (profile == best || !best %in% by_roughness) return(NULL)
    behind <- judged[[profile]]$scores - judged[[best]]$scores
    alike <- isTRUE(mean(behind) <= 2 * se_of_mean(behind))
    if (alike) return(judged[[profile]]$problem$natural(judged[[profile]]$theta))
  }
}

by_roughness <- c("matern12", "matern32", "matern52", "se")

best_kernel <- function(judged) names(judged)[which.min(vapply(judged, `[[`, 0, "score"))]

# Terms of a sum begin apart: alike they would stay so.
two_scales_start <- function(theta) {
  last <- length(theta)
  lengthscales <- theta[seq_len(last - 2L)]
  variance <- theta[last - 1L]
  c(lengthscales + log(2), variance + log(0.7), lengthscales + log(0.4), variance + log(0.3), theta[last])
}

# A parameter is in the score with two nats over the rows, of many over this number: with less, the sum of two scales is
# taken where there are few rows for many inputs, or where it gains nothing, and predicts worse (bench/race.md).
parameter_rows <- 3000L

# A kernel from where the first one's search led: list(problem, theta, value, scores, score), NULL where some steps do
# not come to `least`.
judge_kernel <- function(problem, theta, least = -Inf, neighbours = NULL) {
  few <- is_small_enough(problem$pool)
  size <- if (few) learning_sizes$few else learning_sizes$kernels
  theta <- pmin(pmax(theta, problem$lower), problem$upper)
  run <- climb(problem, theta, size, 6L, neighbours, enough = 0.1)
  if (run$value < least) return(NULL)
  if (!run$converged || run$moved >= 0.05) {
    run <- climb(problem, run$theta, size, if (few) 8L else 4L, enough = 0.1)
  }
  scores <- conditional_scores(problem, run$theta)
  list(problem = problem, theta = run$theta, value = run$value, scores = scores,
       score = mean(scores) + 2 * sum(problem$free) / min(parameter_rows, problem$pool$n))
}

# `se`: the standard error of the difference to the one that is kept, which is chosen however small that is.
table_of_kernels <- function(judged, best) {
  kernels <- data.frame(
    kernel = vapply(names(judged), profile_label, ""), score = vapply(judged, `[[`, 0, "score"),
    se = vapply(judged, function(one) se_of_mean(one$scores - judged[[best]]$scores), 0),
    chosen = names(judged) == best, row.names = NULL)
  kernels[order(kernels$score), ]
}

se_of_mean <- function(v) stats::sd(v) / sqrt(length(v))

# Means of -log p(y_i | its nearest among all other rows), what a prediction at a row held out would score, over some
# random groups of rows of about equal size.
conditional_scores <- function(problem, theta) {
  size <- learning_sizes$score
  pool <- problem$pool
  rows <- pool$take(min(size[["rows"]], pool$n))
  neighbours <- problem$neighbours(theta, rows, size[["near"]], earlier = FALSE)
  now <- problem$at(theta)
  groups <- split(seq_along(rows), seq_along(rows) %% min(20L, length(rows)))
  scores <- vapply(groups, function(i) {
    value <- native_vecchia(pool, now, rows[i], neighbours[, i, drop = FALSE], slopes = FALSE,
                            control = problem$run)$value
    if (is.finite(value)) -value / length(i) else Inf # where it cannot be computed
  }, 0)
  unname(scores)
}
