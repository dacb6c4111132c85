# Noise of more than one size (response-noise.R) is learned with the Vecchia likelihood, beside the hyperparameters of
# one kernel.

# Returns the problem with gamma ~ N(0, v) after its own parameters; `v` has the variance of each coefficient.
problem_with_trend <- function(problem, trend, v) {
  pool <- problem$pool
  last <- problem$last
  own <- seq_len(last)
  q <- length(v)
  B <- noise_basis(trend, pool$x)
  w <- if (is.null(pool$weights)) rep(1, pool$n) else pool$weights
  twins <- pool$twins
  x <- problem$rows(pool$x)
  wide <- problem
  wide$own <- own
  wide$free <- c(problem$free, rep(TRUE, q))
  wide$lower <- c(problem$lower, rep(-6, q))
  wide$upper <- c(problem$upper, rep(6, q))
  wide$neighbours <- function(theta, ...) problem$neighbours(theta[own], ...)
  wide$vecchia <- function(theta, rows, neighbours, slopes = TRUE) {
    pool$count$evaluations <- pool$count$evaluations + 1L
    input <- problem$input(length(rows))
    now <- problem$by_number(theta[own])
    gamma <- theta[-own]
    log_factor <- drop(B %*% gamma)
    basis <- B * (abs(log_factor) < most_trend)
    factor <- exp(within_trend(log_factor))
    used <- list(x = x, y = pool$y, weights = w / factor, levels = pool$levels)
    input$rows$scale <- sqrt(used$weights)
    result <- if (is.null(pool$levels)) {
      native_vecchia(used, now, rows, neighbours, basis = basis, at = input)
    } else {
      integrated_likelihood(used, now, rows, neighbours, TRUE, input, basis)
    }
    if (!is.finite(result$value)) return(list(value = -Inf))
    prior <- problem$prior(theta[own])
    at <- list(value = result$value + prior$value - sum(gamma^2 / v) / 2,
               gradient = result$score + c(prior$gradient, -gamma / v),
               information = result$information + diag(c(prior$information, 1 / v)))
    if (!length(twins)) return(at)
    # merged rows have -(rows / 2) log(2 pi noise) - ss / (2 noise), with the noise of each distinct row
    noise <- now$noise * factor
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

# Learns the trend from theta: gamma and v, one for each part, which starts at 0.3. v moves by MacKay's fixed point:
# with V the covariance of gamma and e = q - trace(V) / v, v <- |gamma|^2 / e. Returns list(theta, value, trend) of
# the round with the largest value,
#
#   log p(y | theta, gamma) + log prior(theta) - |gamma|^2 / (2 v) - (q / 2) log v - log det(S) / 2,   S = V^{-1},
#
# Laplace's log evidence of the noise model, which can be compared with that of constant noise. NULL: not computable.
# trend$level has the covariance of log s2 with itself and with gamma. If the value is below `least` and v falls, the
# search ends: the noise becomes constant.
learn_noise <- function(problem, theta, trend, size, least = -Inf) {
  pool <- problem$pool
  trend <- place_noise_trend(trend, pool$x, kernel_lengths(problem$natural(theta)$kernel, ncol(pool$x)))
  part <- noise_parts(trend)
  v <- rep(0.3, max(part))
  own <- seq_along(theta)
  now <- c(theta, numeric(length(part)))
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

# Returns the information on the parameters after those at `own`, of which the `free` ones are unknown.
information_of_rest <- function(information, own, free) {
  S <- information[-own, -own, drop = FALSE]
  if (!length(free)) return(S)
  A <- information[free, free, drop = FALSE]
  C <- information[-own, free, drop = FALSE]
  S - C %*% solve(A + diag(1e-9 * max(diag(A)), nrow(A)), t(C))
}
