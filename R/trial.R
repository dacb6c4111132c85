# Near rows or points alone, by rows held out.

# Rows of which posteriors are made for that, rows held out, and rows among which near ones are looked for.
trial_rows <- c(posterior = 20000L, held = 2000L, among = 100000L)

# Near rows know of f what so many noisy responses tell, points what all rows do: of many rows of a smooth function that
# is more. Where near rows are the fit's own choice and the points leave less than half the noise unexplained, rows held
# out decide: points alone are kept where their log density is larger by more than its standard error, with the kernel
# that is kept or with a smoother one that near rows do not tell from it. `now`: list(learned, start, settings).
try_points_alone <- function(data, now, state) {
  s <- now$settings
  if (!s$posterior$undecided || !is.null(data$whole)) return(now) # the near rows of a source are a sample
  run_stage(state, "trial", {
    tried <- list(now[c("learned", "start")])
    if (!is.null(now$learned$smoother)) tried[[2L]] <- with_smoother(data, now$learned, s, state)
    gains <- held_gains(data, tried, s)
    if (is.null(gains)) now else take_better(data, now, tried, gains)
  }, otherwise = now)
}

take_better <- function(data, now, tried, gains) {
  best <- which.max(colMeans(gains))
  gain <- gains[, best]
  posterior <- now$settings$posterior
  posterior$trial <- c(gain = mean(gain), se = se_of_mean(gain), rows = length(gain))
  if (mean(gain) > se_of_mean(gain)) {
    now[c("learned", "start")] <- tried[[best]]
    posterior[c("neighbours", "rho")] <- list(0L, unexplained_share(data, now$learned, now$start))
    now$settings$points$unmoved <- "points kept where they start"
  }
  now$settings$posterior <- posterior
  now
}

# What was learned with the smoother kernel in place of the one that was kept, and its points.
with_smoother <- function(data, learned, s, state) {
  learned$model <- learned$smoother
  learned$kernels$chosen <- learned$kernels$kernel == learned$model$kernel$label
  list(learned = learned, start = points_stage(data, learned, s$points, state))
}

# What points alone have more of log density than the points and near rows of the first at each row held out: a column
# for each that was tried. NULL where it cannot be computed.
held_gains <- function(data, tried, s) {
  n <- nrow(data$x)
  held <- sample.int(n, min(trial_rows[["held"]], n %/% 5L))
  others <- sample(setdiff(seq_len(n), held), min(trial_rows[["among"]], n - length(held)))
  around <- take_rows(data, others)
  some <- take_rows(data, utils::head(others, trial_rows[["posterior"]]))
  at <- take_rows(data, held)
  density <- function(model, mean, var) {
    noise <- model$noise / if (is.null(at$weights)) 1 else at$weights
    stats::dnorm(at$y, mean, sqrt(pmax(var, 0) + noise), log = TRUE)
  }
  alone <- function(one) {
    model <- one$learned$model
    posterior <- native_posterior(one$start$z, some, model, 1e-12, control = s$run)
    p <- native_predict(posterior, one$start$z, model, at$x)
    density(model, p$mean, p$sor_variance + p$unexplained)
  }
  beside <- function(one) {
    model <- one$learned$model
    near <- near_posterior(some, one$start$z, model, s$posterior$neighbours, s$posterior$neighbours, control = s$run)
    p <- predict_near(near, around, one$start$z, model, at$x, s$run)
    density(model, p$mean, p$var_near + p$var_far)
  }
  tryCatch(vapply(tried, alone, at$y) - beside(tried[[1L]]), pfdtc_error_numerical = function(e) NULL)
}
