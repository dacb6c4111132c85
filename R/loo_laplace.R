# Scores of fits with classes and counts.

# What is left of P(response below), each row given the others: uniform where the model holds. Of classes and counts
# between P(< y) and P(<= y), at random (Czado, Gneiting and Held 2009).
pit_laplace <- function(fit) stats::naresid(fit$na.action, pit_of(fit, loo_rows(fit)))

# `loo`: of loo_rows(). NA at weight 0.
pit_of <- function(fit, loo) {
  known <- which(!is.na(loo$mean))
  ends <- pit_ends(fit, training_data(fit)$sites, loo$mean[known], loo$var[known])
  pit <- ends$below + stats::runif(nrow(ends)) * (ends$upto - ends$below)
  replace(loo$mean, known, pmin(pmax(pit, 0), 1))
}

# Rows in ten classes of about equal size by what the others predict: mean prediction, mean response, and the sd that
# this mean has if predictions hold.
calibration_table <- function(fit, classes = 10L) {
  data <- training_data(fit)
  loo <- loo_rows(fit)
  mean <- response_moments(response_of(fit), loo$mean, loo$var)$mean
  use <- which(!is.na(mean))
  size <- if (is.null(data$sites$size)) rep(1, length(use)) else data$sites$size
  p <- mean[use]
  y <- data$response[use]
  class <- ceiling(rank(p, ties.method = "average") / length(p) * min(classes, max(1L, length(p) %/% 5L)))
  each <- function(v) as.vector(tapply(v, class, sum))
  trials <- each(size)
  data.frame(predicted = each(size * p) / trials, observed = each(size * y) / trials,
             sd = sqrt(each(size * p * (1 - p))) / trials, rows = as.vector(table(class)))
}

# Mean squared distance of single trials, of which a row has `size` and a share `y` are successes, from the probability.
brier_score <- function(y, size, p) sum(size * (y * (1 - p)^2 + (1 - y) * p^2)) / sum(size + 0 * y)

# Scores of the rows in use, where f with its offset has these means and variances.
score_rows <- function(fit, mean, var) {
  score_fold_laplace(fit, predicted_sites(fit, training_data(fit)$sites, mean, var))
}

scores_seen <- function(fit) {
  data <- training_data(fit)
  p <- latent_at(fit, data$x)
  score_rows(fit, p$mean + data$sites$offset, p$var)
}

scores_left_out <- function(fit) {
  loo <- loo_rows(fit)
  used <- !is.na(loo$mean) # not at weight 0
  score_rows(fit, loo$mean[used], loo$var[used])
}

predicted_sites <- function(fit, sites, mean, var) {
  size <- if (is.null(sites$size)) 1 else sites$size
  data.frame(y = sites$y / pmax(size, 1), size = size, mean = response_moments(response_of(fit), mean, var)$mean,
             density = log_predictive(fit$likelihood, sites, mean, var))
}

# The probabilities of less than the response, and of no more.
pit_ends <- function(fit, sites, mean, var) {
  response <- response_of(fit)
  size <- if (is.null(sites$size)) rep(1, length(mean)) else sites$size
  upto <- function(y) predictive_cdf(response, y, size, mean, sqrt(pmax(var, 0)))
  upper <- upto(sites$y)
  data.frame(below = if (response$discrete) upto(sites$y - 1) else upper, upto = upper)
}

scored_sites <- function(...) data.frame(predicted_sites(...), pit_ends(...))

# Brier scores and shares of right classes are of classes and trials, coverage is of all but classes.
score_fold_laplace <- function(fit, p) {
  trials <- response_of(fit)$reads == "classes"
  inside <- function(level) {
    if (has_classes(response_of(fit))) NA_real_ else mean(p$upto >= (1 - level) / 2 & p$below < (1 + level) / 2)
  }
  out <- data.frame(n = nrow(p), rmse = sqrt(mean((p$y - p$mean)^2)), nlpd = -mean(p$density),
                    brier = if (trials) brier_score(p$y, p$size, p$mean) else NA_real_,
                    accuracy = if (trials) mean((p$mean > 0.5) == (p$y > 0.5)) else NA_real_)
  if (is.null(p$upto)) out else data.frame(out, cover50 = inside(0.5), cover95 = inside(0.95))
}

# `out`: of the rows in use. data.frame(y, mean, density) there, of a fit to the others.
predict_fold_laplace <- function(fit, data, settings, hyper, out) {
  part <- data
  part$x <- data$x[-out, , drop = FALSE]
  part$sites <- take_sites(data$sites, -out)
  part[c("y", "response")] <- list(data$y[-out], data$y[-out])
  part[c("x_zero", "prior_weights", "weights")] <- list(NULL)
  part["offset"] <- list(if (!is.null(data$offset)) part$sites$offset)
  part$n <- nrow(part$x)
  settings$likelihood <- fit$likelihood
  settings["noise"] <- settings$control["maxit"] <- list(NULL)
  if (hyper == "held") {
    settings$likelihood$learned <- FALSE
  } else if (fit$likelihood$learned) {
    settings$likelihood["theta"] <- list(NULL)
  }
  if (!is.null(settings$m)) settings$m <- min(settings$m, part$n)
  one <- suppressMessages(fit_as_asked(part, settings))
  p <- latent_at(one, data$x[out, , drop = FALSE])
  sites <- take_sites(data$sites, out)
  scored_sites(one, sites, p$mean + sites$offset, p$var)
}
