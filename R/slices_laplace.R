# Slices and maps of fits with classes, counts or outliers: on the response's scale or the link's.

# list(mean, sd) of f, or of the averaged probability or rate.
on_scale <- function(fit, p, type) {
  if (!is_laplace(fit) || type == "link") return(list(mean = p$mean, sd = sqrt(p$var)))
  moments_of(fit$likelihood, p$mean, p$var)
}

# What the rows are drawn as: shares of successes as they are; rates times what the slice has over what the fit has at
# the row; numbers as with Gaussian noise. On the link's scale a class or a count of 0 is nowhere.
partial_response <- function(fit, slice, x, keep, alone) {
  data <- fit$data
  y <- data$response[keep]
  if (fit$likelihood$name == "binomial") return(y)
  offset <- if (is.null(data$offset)) 0 else data$offset[keep]
  p <- latent_at(fit, x)
  if (fit$likelihood$name == "student") return(if (alone) y - offset else slice + y - offset - p$mean)
  y / exp(offset) * if (alone) 1 else slice / exp(p$mean + p$var / 2)
}

has_partial_response <- function(fit, type) {
  !is_laplace(fit) || type == "response" || fit$likelihood$link == "identity"
}
