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

# The exact evidence as the last stage, where it is cheap.
learn_exactly <- function(problem, result) {
  if (is.null(result$information)) return(result) # the neighbours' likelihood cannot be computed there: nor can this
  # the information of the neighbours' likelihood, per row as in all rows
  ascend(function(theta) evaluate_exactly(problem, theta), result$theta, problem, maxit = 30L, enough = 0.05,
         information = result$information * max(1, problem$pool$n / learning_sizes$whole[["rows"]]))
}
