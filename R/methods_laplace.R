# What fits with classes or counts answer to residuals() and simulate().

residuals_laplace <- function(fit, type) {
  if (type == "pit") return(pit_laplace(fit))
  data <- training_data(fit)
  if (type == "loo") return(stats::naresid(fit$na.action, data$response) - stats::predict(fit, type = "loo"))
  mean <- stats::fitted(fit)
  r <- stats::naresid(fit$na.action, data$response) - mean
  if (type == "response") return(r)
  w <- if (is.null(data$prior_weights)) 1 else stats::naresid(fit$na.action, data$prior_weights)
  df <- fit$likelihood$df
  variance <- switch(fit$likelihood$name, poisson = mean, nb = mean + mean^2 / fit$theta,
                     student = if (df > 2) fit$theta^2 * df / (df - 2) else NA, {
    size <- data$sites$size
    if (!is.null(size) && length(size) == length(mean)) mean * (1 - mean) / size else mean * (1 - mean)
  })
  r * sqrt(w / variance)
}

# Responses drawn given f, on the response's scale: of new rows one trial each.
draw_responses <- function(fit, f, training) {
  mean <- linkinv(fit$likelihood)(f)
  n <- length(f)
  rows <- nrow(f)
  size <- if (training && length(fit$data$sites$size) == rows) fit$data$sites$size else 1
  known <- !is.na(mean)
  out <- mean
  out[known] <- switch(fit$likelihood$name, poisson = stats::rpois(sum(known), mean[known]),
                       nb = stats::rnbinom(sum(known), size = fit$theta, mu = mean[known]),
                       student = mean[known] + fit$theta * stats::rt(sum(known), fit$likelihood$df),
                       stats::rbinom(sum(known), rep_len(size, n)[known], mean[known]))
  out
}
