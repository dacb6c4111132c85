# How the noise differs between rows: the slopes of its log (noise_trend.R), by the near-neighbour likelihood.

# The trend with gamma and its covariance: by the near-neighbour likelihood (learn.R) beside a kernel that is given, or
# Matern 3/2, whose parameters are moved with it.
learn_noise_trend <- function(trend, data, s, state) {
  pool <- learning_rows(data, s)
  on.exit(count_evaluations(state, "noise", list(evaluations = pool$count$evaluations)))
  tell <- stage_line("noise", s$steps$progress, after = 1)
  on.exit(tell(NULL), add = TRUE)
  tell("its sizes")
  problem <- learning_problem(pool, s, kernel_candidates[1L])
  theta <- finish_starts(problem, run_starts(problem, s$restarts)$thetas)[[1L]]$theta
  wide <- problem_with_trend(problem, trend, s$priors)
  size <- learning_sizes$finals
  end <- climb(wide, c(theta, numeric(length(trend$columns))), size, c(10L, 10L, 10L), enough = 0.1)
  own <- wide$own
  trend$gamma <- unname(end$theta[-own])
  counted <- min(size[["rows"]], pool$n)
  information <- end$information * pool$n / counted / pool$share # of all rows
  all <- solve(information + diag(1e-8 * max(diag(information)), nrow(information)))
  trend$covariance <- all[-own, -own, drop = FALSE]
  trend
}

# With gamma behind the problem's own parameters. Its prior, N(0, 1) in units of the inputs' spreads, does not fade: of
# many rows on a rough function that have hardly any noise nothing else would hold it.
problem_with_trend <- function(problem, trend, priors) {
  pool <- problem$pool
  last <- problem$last
  own <- seq_len(last)
  q <- length(trend$columns)
  B <- noise_basis(trend, pool$x)
  w <- if (is.null(pool$weights)) rep(1, pool$n) else pool$weights
  twins <- pool$twins
  precision <- if (priors) 1 else 0
  wide <- problem
  wide$own <- own
  wide$free <- c(problem$free, rep(TRUE, q))
  wide$lower <- c(problem$lower, rep(-5, q))
  wide$upper <- c(problem$upper, rep(5, q))
  wide$neighbours <- function(theta, ...) problem$neighbours(theta[own], ...)
  wide$evaluate <- function(theta, rows, neighbours) {
    pool$count$evaluations <- pool$count$evaluations + 1L
    now <- problem$at(theta[own])
    gamma <- theta[-own]
    log_factor <- drop(B %*% gamma)
    basis <- B * (abs(log_factor) < most_trend)
    factor <- exp(within_trend(log_factor))
    result <- native_vecchia(list(x = pool$x, y = pool$y, weights = w / factor), now, rows, neighbours,
                             control = problem$run, basis = basis)
    if (!is.finite(result$value)) return(list(value = -Inf))
    prior <- problem$prior(theta[own])
    at <- list(value = result$value + prior$value - precision * sum(gamma^2) / 2,
               gradient = result$score + c(prior$gradient, -precision * gamma),
               information = result$information + diag(c(prior$information, rep(precision, q))))
    if (!length(twins)) return(at)
    add_twins(at, twins, cbind(1, basis), now$noise * factor, last, length(rows) / pool$n * pool$share)
  }
  wide
}

# What equal rows say of the noise, each row of x by itself: -(rows / 2) log(2 pi noise) - ss / (2 noise).
add_twins <- function(at, twins, basis, noise, last, share) {
  of_noise <- last - 1L + seq_len(ncol(basis))
  at$value <- at$value - share * sum(twins$rows * log(2 * pi * noise) + twins$ss / noise) / 2
  at$gradient[of_noise] <- at$gradient[of_noise] + share * colSums(basis * (twins$ss / noise - twins$rows)) / 2
  at$information[of_noise, of_noise] <- at$information[of_noise, of_noise] +
    share * crossprod(basis, basis * twins$rows) / 2
  at
}
