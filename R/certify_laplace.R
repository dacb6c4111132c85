# Certificates of fits with other likelihoods than the Gaussian: laplace_bounds.R at the fit's own points, and at those
# of a reference.

# Bounds the mode and the sd of the exact process's Laplace posterior at functionals of the kind "values".
mode_certificate <- function(fit, fun, effort, reference, m2 = NULL) {
  refuse_variational(fit)
  tell <- stage_line("certify", fit$control$progress)
  on.exit(tell(NULL))
  data <- if (effort != "reference" || is.null(reference)) needs_data(fit, "fit")
  tell("the fit's own points")
  if (effort == "reference" && !is.null(reference)) { # one that is kept has far more points than the fit
    used <- find_laplace_reference(fit, reference)$bounds
    inside <- mode_interval(used, fun$x)
  } else {
    used <- laplace_bounds(fit, data, effort == "tight")
    inside <- mode_interval(used, fun$x)
    if (effort != "fast" && used$t > used$enough) {
      tell("reference")
      used <- laplace_reference(fit, data, m2, effort == "tight")$bounds
      inside <- intersect_intervals(inside, mode_interval(used, fun$x))
    }
  }
  structure(inside, m2 = if (effort != "fast") nrow(used$z), t = used$t)
}

# The averaged probability or rate increases in the mean of f; in its variance a rate increases and a probability goes
# towards one half: it lies between its values at the corners.
with_response <- function(out, likelihood) {
  if (likelihood$link == "identity") return(out) # it is f
  response <- as_response(likelihood)
  corner <- function(mean, sd) response_moments(response, mean, sd^2)$mean
  corners <- cbind(corner(out$mean_lower, out$sd_lower), corner(out$mean_lower, out$sd_upper),
                   corner(out$mean_upper, out$sd_lower), corner(out$mean_upper, out$sd_upper))
  top <- response$link$range[2L]
  room <- response$link$error * if (is.finite(top)) 1 else pmax(corners[, 4L], 0)
  out$response <- corner(out$mean, out$sd)
  out$response_lower <- pmax(pmin(corners[, 1L], corners[, 2L]) - room, 0)
  out$response_upper <- pmax(corners[, 3L], corners[, 4L]) + room
  out$response_upper <- pmin(out$response_upper, top)
  out
}

# Laplace's approximation itself, beside the certificate where it takes less than a second and its averages are numbers.
quick_check <- function(fit, effort) {
  if (effort == "fast" || is.null(fit$data) || !is.null(fit$near)) return(NULL)
  if (nrow(fit$data$x) * as.double(fit$m) > 1e7) return(NULL)
  tryCatch(laplace_check(fit, draws = 500), pfdtc_error_numerical = function(e) NULL)
}

mode_advice <- function(out, effort) {
  if (any(is.infinite(out$sd_upper))) {
    return(paste("Nothing is certified: with so many rows far out, or so few points, more than one mode of the exact",
                 "process may be near."))
  }
  wide <- mean(out$mean_upper - out$mean_lower > 2 * out$sd_upper, na.rm = TRUE)
  if (!is.finite(wide) || wide == 0) return(NULL)
  sprintf("The mode is not usefully certified at %.0f %% of the rows: the bound exceeds the sd. %s", 100 * wide,
          if (effort == "fast") "Take effort = \"reference\"." else "A larger reference (`m2`) tells more.")
}

# The same posterior on more points, which nobody optimised, and its bounds: a fit without rows.
laplace_reference <- function(fit, data, m2 = NULL, tight = FALSE) {
  refuse_variational(fit)
  n <- nrow(data$x)
  m2 <- if (is.null(m2)) min(max(4L * fit$m, 600L), n) else check_count(m2, "m2", max = n)
  kernel <- fit$kernel
  z <- data$x[reference_rows(data, kernel, m2), , drop = FALSE]
  found <- laplace_at(data, fit$likelihood, fit$center, kernel, z, rounding_jitter(nrow(z)), fit$control)
  fit$inducing <- z
  fit$m <- nrow(z)
  fit$jitter <- found$jitter
  fit$factors <- found[c("L", "C", "G", "beta", "residual", "jitter", "decrement", "steps")]
  bounds <- laplace_bounds(fit, data, tight)
  fit$unexplained <- mean(bounds$left)
  if (as_response(fit$likelihood)$concave) bounds$bracket <- laplace_bracket(bounds)
  fit$evidence <- found$evidence + sum(log_constant(fit$likelihood, data$sites)) - sum(log1p(bounds$left)) / 2
  fit$bounds <- bounds_alone(bounds)
  fit["data"] <- fit["reference"] <- fit["near"] <- list(NULL)
  fit[c("posterior", "neighbours")] <- list("far", 0L)
  fit
}

find_laplace_reference <- function(fit, given) {
  given <- check_any_fit(given, "reference")
  if (is.null(given$bounds)) abort_input("reference", "a fit without bounds", "one made by reference()")
  check_same_model(given, fit, "reference", "fit")
  given
}

# ---- the evidence ---------------------------------------------------------------------------------------------------

# Bounds of the exact process's Laplace evidence, log det(I + W^{1/2} K W^{1/2}) from both sides.
laplace_bracket <- function(b) {
  at <- b$at
  n <- nrow(b$data$x)
  slack <- b$slack * b$most
  psi <- -(at$evidence + logdet(at$C) / 2)
  squares <- ifelse(at$g^2 == 0, 0, at$g^2 / b$W_lower)
  c <- sum(squares) + sum((at$beta - at$residual)^2)
  share <- if (c > 0) c / (c + b$g_E^2) else 0
  gap <- min(b$gamma^2, if (is.finite(c)) b$g_E^2 * share + b$r^2 + 2 * b$r * b$g_E) / 2
  G <- b$lo$factors$G
  most <- min(sqrt(sum(G^2)), max(rowSums(abs(G))))
  low <- logdet(b$lo$factors$C) + log1p(max(sum(b$W_lower * (at$left - slack)), 0) / (1 + most))
  high <- if (is.null(b$hi)) Inf else
    logdet(b$hi$factors$C) + sum(log1p(b$W_upper * (at$left + slack))) + 2 * slack * sum(b$W_upper)
  constant <- sum(log_constant(b$fit$likelihood, b$data$sites))
  room <- b$growth * (abs(psi) + sum(abs(native_likelihood(b$sites, at$f)[1L, ])) + abs(constant) + n + abs(low) +
                        nrow(G) * sqrt(1 + most)) + sum(abs(at$g) * rounding_of_f(at, slack, b$sites$offset))
  c(lower = -psi - high / 2 + constant - room,
    upper = -psi + gap - low / 2 + constant + room + slack * sum(b$W_lower))
}

laplace_evidence_bounds <- function(fit) {
  if (is_variational(fit$likelihood)) return(c(lower = fit$evidence, upper = Inf))
  if (!as_response(fit$likelihood)$concave) {
    abort_input("fit", sprintf("a fit with family %s", response_of(fit)$label), "one with a log-concave likelihood",
                hint = "Where the posterior may have several modes no bracket of its Laplace evidence is known.")
  }
  same_chance({
    kept <- if (!is.null(fit$reference)) find_laplace_reference(fit, fit$reference)$bounds$bracket
    if (is.null(fit$data) && !is.null(kept)) return(kept)
    data <- needs_data(fit, "fit")
    own <- laplace_bounds(fit, data)
    found <- laplace_bracket(own)
    if (own$t > own$enough || !is.null(kept)) {
      better <- if (is.null(kept)) laplace_reference(fit, data)$bounds$bracket else kept
      found <- c(lower = max(found["lower"], better["lower"]), upper = min(found["upper"], better["upper"]))
    }
    stats::setNames(found, c("lower", "upper"))
  })
}
