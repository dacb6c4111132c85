# Predictions of ordered classes.

# Returns predictions of type "response": a row of probabilities for each row, with their sd if asked for.
shares_asked <- function(response, mean, var, se, padded = identity) {
  known <- which(!is.na(mean))
  s <- sqrt(pmax(var[known], 0))
  m <- mean[known]
  fill <- function(found) {
    out <- matrix(NA_real_, length(mean), length(response$levels), dimnames = list(names(mean), response$levels))
    out[known, ] <- found
    padded(out)
  }
  P <- class_shares(response, m, s)
  if (!se) return(fill(P))
  square <- normal_average(function(f) class_shares(response, f)^2, m, s)
  list(fit = fill(P), se.fit = fill(sqrt(pmax(square - P^2, 0))))
}

# Returns the class with the largest probability.
likeliest_class <- function(response, mean, var) {
  P <- shares_asked(response, mean, var, FALSE)
  number <- rep(NA_integer_, nrow(P))
  known <- !is.na(P[, 1L])
  number[known] <- max.col(P[known, , drop = FALSE], "first")
  stats::setNames(factor(response$levels[number], response$levels, ordered = TRUE), rownames(P))
}

# Returns numbers of classes as ordered factors, column by column.
classes_of <- function(response, numbers) {
  lapply(as.data.frame(numbers), function(v) factor(response$levels[v], response$levels, ordered = TRUE))
}

# Returns the variance of the number of the class, averaged over f ~ N(mean, sd^2).
variance_of_class <- function(response, mean, sd) {
  known <- which(!is.na(mean))
  P <- class_shares(response, mean[known], sd[known])
  k <- seq_len(ncol(P))
  replace(mean, known, drop(P %*% k^2) - drop(P %*% k)^2)
}
