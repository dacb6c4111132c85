# Predictions with several numbers for each row: probabilities of ordered classes, of survival, and quantiles.

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

# Returns the ends of the probability of each class where f is between `low` and `high`: list(lwr, upr), matrices with a
# column for each class. A probability is largest where its class is most likely, and falls from there on both sides.
shares_between <- function(response, low, high) {
  at <- lapply(list(low, high), class_shares, response = response)
  top <- vapply(seq_along(response$levels), function(k) {
    best <- pmin(pmax(response$best(list(y = k), response$theta), low), high)
    class_shares(response, best)[, k]
  }, low)
  list(lwr = pmin(at[[1L]], at[[2L]]), upr = matrix(top, length(low)))
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

# Returns P(y > t) at each time (columns), averaged over f; with a credible interval the ends are those given f, in the
# third dimension.
survival_asked <- function(response, f, names, times, ask) {
  if (is.null(times)) abort_input("times", "missing", "times at which to survive", hint = "As in times = c(1, 5).")
  times <- check_vector(times, "times")
  known <- which(!is.na(f$mean))
  each <- function(probability) {
    columns <- format(times, trim = TRUE, digits = 15)
    out <- matrix(NA_real_, length(f$mean), length(times), dimnames = list(names, columns))
    for (k in seq_along(times)) out[known, k] <- 1 - probability(rep(times[k], length(known)))
    out
  }
  size <- rep(1, length(known))
  fit <- each(function(t) predictive_cdf(response, t, size, f$mean[known], sqrt(pmax(f$var[known], 0))))
  if (ask$interval == "none") return(fit)
  certain <- lapply(f[c("lower", "upper", "top")], `[`, known)
  ends <- lapply(normal_ends(certain, list(noise = 0), ask$level), function(end) {
    each(function(t) response$cdf(t, response$link$inv(end), size, response$theta))
  })
  array(c(fit, ends$lwr, ends$upr), c(dim(fit), 3L), c(dimnames(fit), list(c("fit", "lwr", "upr"))))
}

quantiles_asked <- function(response, f, names, probs) {
  probs <- check_vector(probs, "probs")
  bad <- which(!(probs > 0 & probs < 1))
  if (length(bad)) abort_input("probs", format(probs[bad[1L]]), "probabilities between 0 and 1")
  each <- vapply(probs, function(p) response_quantile(response, p, f$mean, f$var, f), f$mean)
  matrix(each, length(f$mean), dimnames = list(names, format(probs, trim = TRUE)))
}
