# A line in all inputs beside the kernel that was chosen, or in its place: smooth kernels have one where lengthscales
# and variance are large, with freedom that learns some of the noise.

# A parameter takes so many nats of evidence, as in the score of kernels, but for the share that its prior has taken.
parameter_nats <- 2

# Nats by which the neighbours' likelihood may be mistaken about what the exact evidence will come to.
mistaken_nats <- 3

# Rows whose exact evidence tells beyond those of which it is the last stage.
line_rows <- 1000L

# list(problem, theta, kernels) of what was found, `now`, which has its `value` too, or of that with a line which has
# more of
#   log (evidence times prior) - 2 (1 - prior_share()) parameters.
# `result`: where the neighbours' likelihood ended before. Of many rows only the line alone is looked at: beside a
# kernel it would take as long as that did. Of so few that priors decide, none.
choose_line <- function(now, s, result) {
  pool <- now$problem$pool
  share <- prior_share(pool$n, ncol(pool$x))
  if (share == 1) return(now)
  nats <- parameter_nats * (1 - share)
  merit <- function(end) end$value - nats * sum(end$problem$free)
  tried <- list(now, line_alone(learning_problem(pool, s, "mean")))
  if (is_small_enough(pool)) {
    tried <- c(tried, beside_kernel(now, s, result, function(end) merit(end) > max(vapply(tried, merit, 0))))
  } else {
    tried[[1L]]$value <- max(result$value, tried[[2L]]$value + value_of_some(now) - value_of_some(tried[[2L]]))
  }
  merits <- vapply(tried, merit, 0)
  if (!is.finite(merits[1L])) return(now) # what cannot be computed may be right
  best <- which.max(merits)
  kernels <- now$kernels
  kernels$chosen <- kernels$chosen & best == 1L
  score <- now$kernels$score[now$kernels$chosen] - (merits - merits[1L])[-1L] / pool$n # of held-out rows: that of now
  lines <- data.frame(kernel = vapply(tried[-1L], function(end) profile_label(end$problem$profile), ""),
                      score = score, se = NA_real_, chosen = seq_along(score) + 1L == best)
  kernels <- rbind(kernels, lines)
  kernels <- `rownames<-`(kernels[order(kernels$score), ], NULL)
  c(tried[[best]][c("problem", "theta")], list(kernels = kernels))
}

# A list of where the search ends with the line beside the kernel, empty where it will not be `better()`.
beside_kernel <- function(now, s, result, better) {
  problem <- learning_problem(now$problem$pool, s, paste0(now$problem$profile, "+mean"))
  run <- climb(problem, start_beside(now, problem), learning_sizes$whole, 8L, enough = 0.1)
  hoped <- list(value = now$value + run$value - result$value + mistaken_nats, problem = problem)
  if (isTRUE(better(hoped))) list(c(learn_exactly(problem, run)[c("theta", "value")], list(problem = problem)))
}

# Of as many rows as are learned from, as the exact evidence of some has it. The neighbours' likelihood says too little
# of long lengthscales, some rows too little of what many tell: of a kernel that which has more is believed.
value_of_some <- function(end) {
  problem <- end$problem
  pool <- problem$pool
  rows <- pool$take(line_rows)
  now <- problem$at(end$theta)
  some <- list(x = pool$x[rows, , drop = FALSE], y = pool$y[rows], weights = pool$weights[rows])
  result <- native_exact_evidence(some, now, replace(problem$run, "threads", 1L)) # to the bit
  if (!is.null(result$reason)) return(-Inf)
  counted <- min(pool$n, learning_sizes$whole[["rows"]])
  add_merged(list(value = -result$value * counted / length(rows)), problem, now$noise, counted / pool$n * pool$share,
             end$theta)$value
}

# Some of the rest beside large slopes.
start_beside <- function(now, beside) {
  last <- now$problem$last
  variances <- now$problem$table$what == "variance"
  theta <- now$theta - log(10) * c(variances, FALSE)
  theta <- c(theta[-last], beside$unit[[last]], theta[last])
  pmin(pmax(theta, beside$lower), beside$upper)
}

# Where the exact evidence of the line alone, v U U' + noise / w, U = [1 u(x)] (mean.R), is largest, with the prior. In
# the eigenbasis of W^{1/2} U U' W^{1/2} the responses are independent: q of variance v lambda + noise, n - q of
# variance noise.
line_alone <- function(problem) {
  pool <- problem$pool
  rows <- pool$take(min(pool$n, learning_sizes$whole[["rows"]]))
  n <- length(rows)
  w <- if (is.null(pool$weights)) rep(1, n) else pool$weights[rows]
  U <- sqrt(w) * mean_basis(problem$natural(problem$unit)$kernel, pool$x[rows, , drop = FALSE])
  y <- sqrt(w) * pool$y[rows]
  eigen <- eigen(crossprod(U), symmetric = TRUE)
  lambda <- eigen$values[eigen$values > 1e-12 * eigen$values[1L]]
  q <- length(lambda)
  squares <- drop(crossprod(eigen$vectors[, seq_len(q), drop = FALSE], crossprod(U, y)))^2 / lambda
  rest <- max(sum(y^2) - sum(squares), 0)
  evaluate <- function(theta) {
    noise <- exp(theta[[2L]])
    variance <- exp(theta[[1L]]) * lambda + noise
    share <- cbind(1 - noise / variance, noise / variance) # slopes of the log variance
    excess <- squares / variance - 1
    result <- list(value = (sum(log(w)) - n * log(2 * pi) - sum(log(variance) + squares / variance) -
                              (n - q) * log(noise) - rest / noise) / 2,
                   score = (colSums(share * excess) + c(0, rest / noise - (n - q))) / 2,
                   information = (crossprod(share) + diag(c(0, n - q))) / 2)
    add_merged(result, problem, noise, n / pool$n * pool$share, theta)
  }
  start <- pmin(pmax(problem$unit - c(0, log(2)), problem$lower), problem$upper)
  c(ascend(evaluate, start, problem, maxit = 50L, enough = 1e-3)[c("theta", "value")], list(problem = problem))
}
