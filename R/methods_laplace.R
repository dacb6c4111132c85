# What fits with classes or counts answer to residuals() and simulate().

# Padded as na.action says.
residuals_laplace <- function(fit, type) {
  if (type == "pit") return(pit_laplace(fit))
  data <- training_data(fit)
  padded <- function(v) stats::naresid(fit$na.action, v)
  mean <- stats::predict(fit, type = if (type == "loo") "loo" else "response")
  r <- padded(data$response) - mean
  if (type %in% c("response", "loo")) return(r)
  w <- if (is.null(data$prior_weights)) 1 else padded(data$prior_weights)
  size <- padded(sizes_given(data))
  if (type == "pearson") return(r * sqrt(w / scatter(fit, mean, 0, size)))
  sign(r) * sqrt(pmax(w * unit_deviance(fit, padded(data$response), mean, size), 0))
}

# Twice what the log density of y falls short by of the largest that there is for it.
unit_deviance <- function(fit, y, mean, size) {
  theta <- fit$theta
  switch(fit$likelihood$name, binomial = stats::binomial()$dev.resids(y, mean, size),
         poisson = stats::poisson()$dev.resids(y, mean, 1 + 0 * y),
         nb = 2 * (ifelse(y > 0, y * log(y / mean), 0) - (y + theta) * log((y + theta) / (mean + theta))),
         student = (fit$likelihood$df + 1) * log1p((y - mean)^2 / (fit$likelihood$df * theta^2)))
}

# Responses drawn given f, on the response's scale: of new rows one trial each; NA at weight 0, as a response there has
# no distribution.
draw_responses <- function(fit, f, training) {
  mean <- linkinv(fit$likelihood)(f)
  size <- 1
  if (training) {
    data <- training_data(fit)
    padded <- function(v) stats::napredict(fit$na.action, v)
    size <- padded(sizes_given(data))
    mean[padded(all_rows(data, FALSE, TRUE)) == 1, ] <- NA
  }
  known <- !is.na(mean)
  out <- mean
  out[known] <- switch(fit$likelihood$name, poisson = stats::rpois(sum(known), mean[known]),
                       nb = stats::rnbinom(sum(known), size = fit$theta, mu = mean[known]),
                       student = mean[known] + fit$theta * stats::rt(sum(known), fit$likelihood$df),
                       stats::rbinom(sum(known), rep_len(size, length(f))[known], mean[known]))
  out
}
