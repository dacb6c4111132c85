# The kernel where none is given: each from where the search of one led, judged by rows given their neighbours.

kernel_candidates <- c("matern32", "matern12", "matern52", "se")

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
