# Slices and maps of fits with classes, counts or outliers: on the response's scale or the link's.

# `certified`: with the ends between which the exact process's own interval is.
slice_curve_laplace <- function(v, fit, grid, level, certified, type) {
  p <- posterior_at(fit, grid$x)
  ends <- list(mean_lower = p$mean, mean_upper = p$mean, sd_upper = sqrt(p$var))
  if (certified) ends <- certify_laplace(fit, plain_rows(grid$x), "reference", fit$reference)
  z <- stats::qnorm((1 + level) / 2)
  shown <- on_scale(fit, p, type)
  band <- list(ends$mean_lower - z * ends$sd_upper, ends$mean_upper + z * ends$sd_upper)
  if (type == "response") band <- lapply(band, linkinv(fit$likelihood))
  data.frame(input = v$name, value = grid$value, label = grid$label, fit = shown$mean, se.fit = shown$sd,
             lwr = band[[1L]], upr = band[[2L]], lwr_y = NA_real_, upr_y = NA_real_, outside = grid$outside)
}

# list(mean, sd) of f, or of the averaged probability or rate.
on_scale <- function(fit, p, type) {
  if (type == "link") list(mean = p$mean, sd = sqrt(p$var)) else moments_of(fit$likelihood, p$mean, p$var)
}

# What the rows are drawn as: shares of successes as they are; rates times what the slice has over what the fit has at
# the row; numbers as with Gaussian noise. On the link's scale a class or a count of 0 is nowhere.
partial_response <- function(fit, slice, x, keep, alone) {
  data <- fit$data
  y <- data$response[keep]
  if (fit$likelihood$name == "binomial") return(y)
  offset <- if (is.null(data$offset)) 0 else data$offset[keep]
  p <- posterior_at(fit, x)
  if (fit$likelihood$name == "student") return(if (alone) y - offset else slice + y - offset - p$mean)
  y / exp(offset) * if (alone) 1 else slice / exp(p$mean + p$var / 2)
}

has_partial_response <- function(fit, type) {
  !is_laplace(fit) || type == "response" || fit$likelihood$link == "identity"
}
