# Slices and maps of fits with classes, counts or outliers: on the response's scale or the link's.

# list(mean, sd) of f, or of the averaged probability or rate.
on_scale <- function(fit, p, type) {
  if (response_of(fit)$conjugate || type == "link") return(list(mean = p$mean, sd = sqrt(p$var)))
  response_moments(response_of(fit), p$mean, p$var)
}

# What the rows are drawn as: shares of successes as they are; rates times what the slice has over what the fit has at
# the row; numbers as with Gaussian noise. On the link's scale a class or a count of 0 is nowhere.
partial_response <- function(fit, slice, x, keep, alone) {
  data <- fit$data
  y <- data$response[keep]
  if (response_of(fit)$reads == "classes") return(y)
  offset <- if (is.null(data$offset)) 0 else data$offset[keep]
  p <- latent_at(fit, x)
  if (response_of(fit)$link_name == "identity") return(if (alone) y - offset else slice + y - offset - p$mean)
  y / exp(offset) * if (alone) 1 else slice / exp(p$mean + p$var / 2)
}

has_partial_response <- function(fit, type) {
  response_of(fit)$conjugate || type == "response" || fit$likelihood$link == "identity"
}
