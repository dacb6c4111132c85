# The kernel where none is given: each from where the search of one led, judged by rows given their neighbours.

# The starts have the first.
kernel_candidates <- c("matern32", "matern12", "matern52", "se")

# Two terms over all inputs, which find a long and a short scale.
two_scales <- "matern32+matern32"

# list(problem, theta, kernels): the kernel with the least score, where its search ended, and what was tried.
choose_kernel <- function(pool, s, theta, tell = function(what) NULL) {
  judged <- list()
  judge <- function(profile, theta, least = -Inf) {
    tell(profile_label(profile))
    judged[[profile]] <<- judge_kernel(learning_problem(pool, s, profile), theta, least)
  }
  for (profile in kernel_candidates) if (is_small_enough(pool) || may_be_best(profile, judged)) judge(profile, theta)
  one <- judged$matern32
  if (!one$problem$composite && best_kernel(judged) %in% c("matern32", "matern12")) { # no mean beside it
    judge(two_scales, two_scales_start(one$theta), least = one$value + length(one$theta) - 1)
  }
  best <- best_kernel(judged)
  c(judged[[best]][c("problem", "theta")], list(kernels = table_of_kernels(judged, best)))
}

# Scores have one minimum in smoothness: of many rows a kernel is left out where one nearer to Matern 3/2 lost to it.
may_be_best <- function(profile, judged) {
  lost <- function(other) !isTRUE(judged[[other]]$score < judged$matern32$score)
  switch(profile, matern52 = lost("matern12"), se = !is.null(judged$matern52) && !lost("matern52"), TRUE)
}

best_kernel <- function(judged) names(judged)[which.min(vapply(judged, `[[`, 0, "score"))]

# Terms of a sum begin apart: alike they would stay so.
two_scales_start <- function(theta) {
  last <- length(theta)
  lengthscales <- theta[seq_len(last - 2L)]
  variance <- theta[last - 1L]
  c(lengthscales + log(2), variance + log(0.7), lengthscales + log(0.4), variance + log(0.3), theta[last])
}

# A kernel from where the first one's search led: list(problem, theta, value, scores, score), NULL where some steps do
# not come to `least`. A parameter is in the score with two nats over the rows learned from: with one, the sum of two
# scales is taken where there are few rows for many inputs and predicts worse (bench/race.md).
judge_kernel <- function(problem, theta, least = -Inf) {
  size <- learning_sizes$kernels
  theta <- pmin(pmax(theta, problem$lower), problem$upper)
  run <- climb(problem, theta, size, 6L, enough = 0.1)
  if (run$value < least) return(NULL)
  if (!run$converged || run$moved >= 0.05) run <- climb(problem, run$theta, size, 8L, enough = 0.1)
  scores <- conditional_scores(problem, run$theta)
  list(problem = problem, theta = run$theta, value = run$value, scores = scores,
       score = mean(scores) + 2 * sum(problem$free) / min(size[["rows"]], problem$pool$n))
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
  now <- problem$natural(theta)
  groups <- split(seq_along(rows), seq_along(rows) %% min(20L, length(rows)))
  scores <- vapply(groups, function(i) {
    value <- native_vecchia(pool$x, pool$y, pool$weights, now$kernel, now$noise, rows[i], neighbours[, i, drop = FALSE],
                            slopes = FALSE, control = problem$run)$value
    if (is.finite(value)) -value / length(i) else Inf # where it cannot be computed
  }, 0)
  unname(scores)
}
