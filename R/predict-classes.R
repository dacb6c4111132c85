# Predictions for ordered classes, and predictions, residuals and draws for several classes (multinomial()).

# Computes predict() for several classes. Matrices have a row for each row asked for and a column for each class. Log
# odds have none for the first class. Intervals are arrays [row, c("fit", "lwr", "upr"), class].
predict_labels <- function(fit, response, f, names, ask) {
  if (ask$type == "class" && ask$interval == "conformal") ask$least <- conformal_share(fit, ask$level)
  say_labels(response, f, names, ask)
}

# Returns the prediction from log odds `f`: list(mean, var), perhaps with bounds `lower`, `upper` and `top`.
say_labels <- function(response, f, names, ask) {
  latent <- ask$type == "latent"
  levels <- if (latent) response$levels[-1L] else response$levels
  said <- if (latent) list(mean = f$mean, sd = sqrt(pmax(f$var[, diagonals(ncol(f$mean)), drop = FALSE], 0))) else
    known_moments(f)
  said <- lapply(said, `dimnames<-`, list(names, levels))
  if (ask$type == "class") return(say_class(said$mean, response, ask))
  value <- said$mean
  if (ask$interval != "none") {
    value <- with_ends(value, if (!is.null(f$bounds)) f$bounds(latent, ask$level) else class_ends(f, latent, ask$level))
  }
  if (ask$se.fit) list(fit = value, se.fit = said$sd) else value
}

# Returns an array (rows, ends, classes) from the matrix `fit` and the matrices in `ends`.
with_ends <- function(fit, ends) {
  aperm(array(c(fit, ends$lwr, ends$upr), c(dim(fit), 3L), c(dimnames(fit), list(c("fit", "lwr", "upr")))),
        c(1L, 3L, 2L))
}

# Predicts probabilities and classes for ordered classes, in the forms of predict_labels(). The ends of a credible
# interval are those of the probability given f in its interval.
predict_ordered <- function(fit, response, f, ask) {
  if (ask$type == "class" && ask$interval == "conformal") ask$least <- conformal_share(fit, ask$level)
  said <- shares_asked(response, f$mean, f$var, ask$se.fit)
  if (ask$type == "class") return(say_class(said, response, ask))
  if (ask$interval == "none") return(said)
  value <- if (ask$se.fit) said$fit else said
  known <- which(!is.na(f$mean))
  of_f <- normal_ends(lapply(f[c("lower", "upper", "top")], `[`, known), list(noise = 0), ask$level)
  ends <- shares_between(response, unname(of_f$lwr), unname(of_f$upr))
  value <- with_ends(value, lapply(ends, function(v) replace(NA * value, cbind(known, c(col(v))), v)))
  if (ask$se.fit) replace(said, "fit", list(value)) else value
}

# Returns class_moments(), NA for unknown rows.
known_moments <- function(f) {
  known <- which(!is.na(f$mean[, 1L]))
  found <- class_moments(take_rows_of(f[c("mean", "var")], known))
  lapply(found, function(v) {
    out <- matrix(NA_real_, nrow(f$mean), ncol(v))
    out[known, ] <- v
    out
  })
}

# Returns the ends of credible intervals: of log odds; of the probability of class k through the normal distribution of
# its log odds against all others, log(p_k / (1 - p_k)), at the mean and with the slopes there.
class_ends <- function(f, latent, level) {
  z <- stats::qnorm((1 + level) / 2)
  q <- ncol(f$mean)
  if (latent) {
    half <- z * sqrt(pmax(f$var[, diagonals(q), drop = FALSE], 0))
    return(list(lwr = f$mean - half, upr = f$mean + half))
  }
  p <- softmax_of(f$mean)
  ends <- lapply(seq_len(q + 1L), function(k) {
    share <- p / (1 - p[, k]) # of the other classes among themselves; the class itself has slope 1
    slope <- -share[, -1L, drop = FALSE]
    if (k > 1L) slope[, k - 1L] <- 1
    along <- 0
    for (i in seq_len(q)) for (j in seq_len(q)) along <- along + slope[, i] * slope[, j] * f$var[, i + q * (j - 1L)]
    half <- z * sqrt(pmax(along, 0))
    odds <- stats::qlogis(p[, k])
    cbind(stats::plogis(odds - half), stats::plogis(odds + half))
  })
  list(lwr = vapply(ends, function(e) e[, 1L], p[, 1L]), upr = vapply(ends, function(e) e[, 2L], p[, 1L]))
}

# Returns the most probable class, or with an interval a logical matrix: is the class in the set? The set has the most
# probable classes until their probability is at least `level`, or all classes that are at least as probable as
# `ask$least`, and at least one. Attribute "probability" has the probability of each set.
say_class <- function(p, response, ask) {
  best <- rep(NA_integer_, nrow(p))
  known <- which(!is.na(p[, 1L]))
  best[known] <- max.col(p[known, , drop = FALSE], "first")
  levels <- response$levels
  if (ask$interval == "none") {
    return(stats::setNames(factor(levels[best], levels, ordered = is_ordered(response)), rownames(p)))
  }
  if (is.null(ask$least)) {
    inside <- t(apply(p, 1L, function(row) {
      before <- cumsum(sort(row, decreasing = TRUE)) - sort(row, decreasing = TRUE)
      (before < ask$level)[rank(-row, ties.method = "first")]
    }))
  } else {
    inside <- p >= ask$least
    inside[cbind(known, best[known])] <- TRUE
  }
  structure(matrix(inside, nrow(p), dimnames = dimnames(p)), probability = rowSums(p * inside))
}

# Returns the least probability of a class in a conformal set: a quantile of the leave-one-out probabilities of the
# training rows' classes.
conformal_share <- function(fit, level) {
  loo <- loo_shares(fit)
  own <- loo$p[cbind(seq_along(loo$y), loo$y)]
  k <- ceiling(level * (length(own) + 1) * (1 - 1e-12))
  if (k > length(own)) 0 else sort(own, decreasing = TRUE)[k]
}

# Returns list(p, y): leave-one-out probabilities and classes of the training rows.
loo_shares <- function(fit) {
  loo <- loo_rows(fit)
  used <- which(!is.na(as.matrix(loo$mean)[, 1L]))
  f <- take_rows_of(loo[c("mean", "var")], used)
  response <- response_of(fit)
  list(p = if (is_ordered(response)) class_shares(response, f$mean, sqrt(pmax(f$var, 0))) else class_moments(f)$mean,
       y = training_data(fit)$sites$y)
}

# ---- leave-one-out, residuals, draws --------------------------------------------------------------------------------

loo_labels <- function(fit, response, loo, ask) {
  latent <- ask$type == "loo_latent"
  ask$type <- if (latent) "latent" else "response"
  said <- say_labels(response, loo[c("mean", "var")], names(training_data(fit)$response), ask)
  padded <- function(v) {
    if (is.null(fit$na.action) || length(dim(v)) != 2L) return(v)
    apply(v, 2L, function(one) stats::napredict(fit$na.action, one))
  }
  if (ask$se.fit) lapply(said, padded) else padded(said)
}

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
  own <- cbind(seq_along(y), y)
  w <- if (is.null(data$prior_weights)) 1 else stats::naresid(fit$na.action, data$prior_weights)
  if (type == "deviance") return(stats::setNames(sqrt(-2 * w * log(p[own])), rownames(p)))
  hit <- 0 * p
  hit[own[!is.na(y), , drop = FALSE]] <- 1
  if (type == "pearson") (hit - p) * sqrt(w / (p * (1 - p))) else hit - p
}

# Returns draws at rows: of classes (a factor for each draw), or of log odds (named "sim_1.class").
simulate_labels <- function(fit, rows, nsim, type) {
  levels <- response_of(fit)$levels
  at <- draw_classes(posterior_of(fit), rows$x, nsim)
  zero <- matrix(0, nrow(rows$x), ncol(at)^2)
  out <- lapply(seq_len(nsim), function(i) {
    drawn <- matrix(at[, , i], nrow(rows$x))
    odds <- as_log_odds(list(mean = drawn, var = zero), fit$center)$mean
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
