# What fits with classes or counts answer to residuals() and simulate().

# Padded as na.action says.
residuals_laplace <- function(fit, type) {
  if (type == "pit") return(pit_laplace(fit))
  response <- response_of(fit)
  data <- training_data(fit)
  padded <- function(v) stats::naresid(fit$na.action, v)
  mean <- stats::predict(fit, type = if (type == "loo") "loo" else "response")
  r <- padded(data$response) - mean
  if (type %in% c("response", "loo")) return(r)
  w <- if (is.null(data$prior_weights)) 1 else padded(data$prior_weights)
  size <- padded(sizes_given(data))
  if (type == "pearson") return(r * sqrt(w / response$variance(mean, 0, size, response$theta)))
  sign(r) * sqrt(pmax(w * response$deviance(padded(data$response), mean, size, response$theta), 0))
}

# Responses drawn given f, on the response's scale: of new rows one trial each; NA at weight 0, as a response there has
# no distribution.
draw_responses <- function(fit, f, training) {
  response <- response_of(fit)
  mean <- response$link$inv(f)
  size <- 1
  if (training) {
    data <- training_data(fit)
    padded <- function(v) stats::napredict(fit$na.action, v)
    size <- padded(sizes_given(data))
    mean[padded(all_rows(data, FALSE, TRUE)) == 1, ] <- NA
  }
  known <- !is.na(mean)
  out <- mean
  out[known] <- response$draw(mean[known], rep_len(size, length(f))[known], response$theta)
  out
}
