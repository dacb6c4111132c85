# Predictions with several numbers for each row: of classes, ordered or not, of survival at times, and quantiles.

# Computes predict() for classes. Matrices have a row for each row asked for and a column for each class. Log odds have
# none for the first class. Intervals are arrays [row, c("fit", "lwr", "upr"), class].
predict_classes <- function(fit, response, f, names, ask) {
  latent <- ask$type == "latent"
  said <- if (latent) list(mean = f$mean, sd = sqrt(pmax(f$var[, diagonals(ncol(f$mean)), drop = FALSE], 0))) else
    class_chances(response, f, ask$se.fit)
  said <- lapply(said, `dimnames<-`, list(names, if (latent) response$levels[-1L] else response$levels))
  value <- said$mean
  if (ask$type == "class") return(say_class(fit, value, response, ask))
  if (ask$interval != "none") {
    ends <- if (!is.null(f$bounds)) f$bounds(latent, ask$level) else
      (if (is_ordered(response)) ordered_ends else class_ends)(response, f, latent, ask$level)
    value <- aperm(array(c(value, ends$lwr, ends$upr), c(dim(value), 3L),
                         c(dimnames(value), list(c("fit", "lwr", "upr")))), c(1L, 3L, 2L))
  }
  if (ask$se.fit) list(fit = value, se.fit = said$sd) else value
}

# Returns list(mean, sd): the averaged probability of each class (columns), and if asked for its sd, NA for unknown
# rows. `f` has log odds if the classes have no order.
class_chances <- function(response, f, se = FALSE) {
  known <- which(!is.na(as.matrix(f$mean)[, 1L]))
  at <- lapply(take_rows_of(f[c("mean", "var")], known), unname)
  s <- sqrt(pmax(at$var, 0))
  found <- if (has_labels(response)) class_moments(at) else list(mean = class_shares(response, at$mean, s))
  if (se && is.null(found$sd)) {
    square <- normal_average(function(f) class_shares(response, f)^2, at$mean, s)
    found$sd <- sqrt(pmax(square - found$mean^2, 0))
  }
  lapply(found, pad_rows, known, NROW(f$mean))
}

# Returns a matrix of n rows, of which those in `known` are the rows of v and the others NA.
pad_rows <- function(v, known, n) unname(v)[match(seq_len(n), known), , drop = FALSE]

# Returns the ends of credible intervals of the probabilities of ordered classes where f is in its interval: list(lwr,
# upr). A probability is largest where its class is most likely, and falls from there on both sides.
ordered_ends <- function(response, f, latent, level) {
  known <- which(!is.na(f$mean))
  of_f <- lapply(normal_ends(lapply(f[c("lower", "upper", "top")], `[`, known), list(noise = 0), level), unname)
  at <- lapply(of_f, class_shares, response = response)
  top <- vapply(seq_along(response$levels), function(k) {
    best <- pmin(pmax(response$best(list(y = k), response$theta), of_f$lwr), of_f$upr)
    class_shares(response, best)[, k]
  }, of_f$lwr)
  lapply(list(lwr = pmin(at$lwr, at$upr), upr = matrix(top, length(known))), pad_rows, known, length(f$mean))
}

# Returns the ends of credible intervals: of log odds; of the probability of class k through the normal distribution of
# its log odds against all others, log(p_k / (1 - p_k)), at the mean and with the slopes there.
class_ends <- function(response, f, latent, level) {
  q <- ncol(f$mean)
  if (latent) {
    return(ends_of_odds(list(f$mean, f$mean), sqrt(pmax(f$var[, diagonals(q), drop = FALSE], 0)), level, identity))
  }
  p <- softmax_of(f$mean)
  sd <- vapply(seq_len(q + 1L), function(k) {
    slope <- -(p / (1 - p[, k]))[, -1L, drop = FALSE] # shares of the other classes; the class itself has slope 1
    if (k > 1L) slope[, k - 1L] <- 1
    along <- 0
    for (i in seq_len(q)) for (j in seq_len(q)) along <- along + slope[, i] * slope[, j] * f$var[, i + q * (j - 1L)]
    sqrt(pmax(along, 0))
  }, p[, 1L])
  ends_of_odds(list(stats::qlogis(p), stats::qlogis(p)), sd, level, stats::plogis)
}

# Returns the most probable class, or with an interval a logical matrix: is the class in the set? The set has the most
# probable classes until their probability is at least `level`. A conformal set has at least one class, and all that are
# as probable as a quantile of the leave-one-out probabilities of the training rows' classes. Attribute "probability"
# has the probability of each set.
say_class <- function(fit, p, response, ask) {
  best <- rep(NA_integer_, nrow(p))
  known <- which(!is.na(p[, 1L]))
  best[known] <- max.col(p[known, , drop = FALSE], "first")
  levels <- response$levels
  if (ask$interval == "none") {
    return(stats::setNames(factor(levels[best], levels, ordered = is_ordered(response)), rownames(p)))
  }
  if (ask$interval == "prediction") {
    inside <- t(apply(p, 1L, function(row) {
      before <- cumsum(sort(row, decreasing = TRUE)) - sort(row, decreasing = TRUE)
      (before < ask$level)[rank(-row, ties.method = "first")]
    }))
  } else {
    loo <- loo_shares(fit)
    own <- loo$p[cbind(seq_along(loo$y), loo$y)]
    k <- ceiling(ask$level * (length(own) + 1) * (1 - 1e-12))
    inside <- p >= if (k > length(own)) 0 else sort(own, decreasing = TRUE)[k]
    inside[cbind(known, best[known])] <- TRUE
  }
  structure(matrix(inside, nrow(p), dimnames = dimnames(p)), probability = rowSums(p * inside))
}

# Returns list(p, y): leave-one-out probabilities and classes of the training rows.
loo_shares <- function(fit) {
  p <- class_chances(response_of(fit), loo_rows(fit))$mean
  list(p = p[!is.na(p[, 1L]), , drop = FALSE], y = training_data(fit)$sites$y)
}

# ---- leave-one-out, residuals, draws --------------------------------------------------------------------------------

# Returns the residuals of several classes: indicator of the class minus probability, a column for each class; the
# deviance is a number for each row.
residuals_labels <- function(fit, type) {
  data <- training_data(fit)
  if (type == "pit") {
    abort_input("type", "\"pit\" with several classes", "\"response\", \"pearson\", \"loo\" or \"deviance\"",
                hint = "Classes without an order have no distribution function.")
  }
  p <- stats::predict(fit, type = if (type == "loo") "loo" else "response")
  y <- stats::naresid(fit$na.action, data$response)
  w <- if (is.null(data$prior_weights)) 1 else stats::naresid(fit$na.action, data$prior_weights)
  if (type == "deviance") return(stats::setNames(sqrt(-2 * w * log(p[cbind(seq_along(y), y)])), rownames(p)))
  hit <- outer(unname(y), seq_len(ncol(p)), "==")
  if (type == "pearson") (hit - p) * sqrt(w / (p * (1 - p))) else hit - p
}

# Returns draws at rows: of classes (a factor for each draw), or of log odds (named "sim_1.class").
simulate_labels <- function(fit, rows, nsim, type) {
  levels <- response_of(fit)$levels
  p <- posterior_of(fit)
  q <- length(levels) - 1L
  m <- nrow(p$z)
  normal <- function(rows, n) matrix(stats::rnorm(rows * n), rows)
  u <- c(mean_weights(p$factors)) + solve_t(p$factors$C, normal(q * m, nsim))
  at <- array(0, c(nrow(rows$x), q, nsim)) # the contrasts
  for (j in seq_len(q)) {
    at[, j, ] <- times_features(p$model$kernel, p$z, p$factors$L, rows$x, u[(j - 1L) * m + seq_len(m), , drop = FALSE])
    at[, j, ] <- at[, j, ] + residual_paths(p$model, p$z, p$jitter, rows$x, nsim, normal, p$control)$draws
  }
  out <- lapply(seq_len(nsim), function(i) {
    drawn <- matrix(at[, , i], nrow(rows$x))
    odds <- as_log_odds(list(mean = drawn, var = matrix(0, nrow(rows$x), q^2)), fit$center)$mean
    odds <- odds[rows$index, , drop = FALSE]
    if (type == "latent") return(`colnames<-`(odds, levels[-1L]))
    known <- which(!is.na(odds[, 1L]))
    above <- t(apply(softmax_of(odds[known, , drop = FALSE]), 1L, cumsum)) # P(class <= k)
    drawn <- rep(NA_integer_, nrow(odds))
    drawn[known] <- 1L + rowSums(above[, -length(levels), drop = FALSE] < stats::runif(length(known)))
    factor(levels[drawn], levels)
  })
  do.call(data.frame, c(stats::setNames(out, paste0("sim_", seq_len(nsim))), list(check.names = FALSE)))
}

# ---- times and quantiles --------------------------------------------------------------------------------------------

# Returns P(y > t) at each time (columns), averaged over f; with a credible interval the ends are those given f, in the
# third dimension.
survival_asked <- function(response, f, names, times, ask) {
  if (is.null(times)) abort_input("times", "missing", "the times of the survival probabilities",
                                  hint = "For example, times = c(1, 5).")
  times <- check_vector(times, "times")
  known <- which(!is.na(f$mean))
  each <- function(probability) {
    there <- vapply(times, function(t) 1 - probability(rep(t, length(known))), 0 * known)
    out <- pad_rows(matrix(there, length(known), length(times)), known, length(f$mean))
    `dimnames<-`(out, list(names, format(times, trim = TRUE, digits = 15)))
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
