# Methods for package marginaleffects, registered when it is loaded.

# One call of marginaleffects asks for predictions more than once. An environment beside the fit keeps the draws of that
# call, so that equal rows have equal draws.
#' @exportS3Method marginaleffects::sanitize_model_specific
sanitize_model_specific.gp_fit <- function(model, ...) {
  model <- check_any_fit(model, "model")
  if (is.null(model$terms)) abort_input("model", "a fit from a matrix", "a fit from a formula")
  attr(model, "draws") <- new_draws()
  model
}

#' @rdname insight-methods
#' @exportS3Method marginaleffects::get_predict
get_predict.gp_fit <- function(model, newdata, type = "response", ...) {
  draws <- attr(model, "draws")
  fit <- check_any_fit(model, "model")
  rows <- new_rows(fit, as.data.frame(newdata), stats::na.pass)
  f <- joint_draws(fit, rows$x, if (is.null(draws)) new_draws() else draws)[rows$index, , drop = FALSE]
  p <- latent_at(fit, rows$x)
  mean <- p$mean[rows$index] + rows$offset
  noise <- rep_len(noise_at(fit, rows$x), nrow(rows$x))[rows$index]
  link <- if (type == "link") identity else function(f) draws_given(response_of(fit), f, noise)
  estimate <- on_scale(fit, list(mean = mean, var = p$var[rows$index]), type, noise)$mean
  rowid <- if (is.null(newdata$rowid)) seq_along(estimate) else newdata$rowid
  structure(data.frame(rowid, estimate), posterior_draws = link(f + mean))
}

# Returns E(y | f) for draws of f, a row for each row of the data. For a transform, a spline in f replaces a quadrature.
draws_given <- function(response, f, noise) {
  if (is.null(response$transform)) return(response$link$inv(f))
  t(vapply(seq_len(nrow(f)), function(i) {
    ends <- range(f[i, ])
    if (ends[1L] == ends[2L]) return(response_given(response, f[i, ], noise[i]))
    at <- seq(ends[1L], ends[2L], length.out = 200L)
    stats::spline(at, response_given(response, at, noise[i]), xout = f[i, ])$y
  }, f[1L, ]))
}

#' @exportS3Method marginaleffects::get_vcov
get_vcov.gp_fit <- function(model, vcov = NULL, ...) NULL

# This option holds the names of classes that marginaleffects accepts.
register_marginaleffects <- function(...) {
  options(marginaleffects_model_classes = union(getOption("marginaleffects_model_classes"), "gp_fit"))
}

# ---- joint draws, batch after batch ---------------------------------------------------------------------------------

new_draws <- function() {
  list2env(list(x = NULL, R = matrix(0, 0L, 0L), z = NULL), parent = emptyenv())
}

# Draws f minus its mean at the rows of x, jointly with the draws at all rows that `draws` has. `draws` keeps the rows
# that determine the others to rounding, the factor C = R'R of their covariance, and z with f = R'z. With
# V = R^{-T} C(kept, x)
#   f(x) = V'z + S'z_2,   S'S = C(x, x) - V'V.
joint_draws <- function(fit, x, draws) {
  n <- nrow(x)
  kept <- NROW(draws$x)
  half <- ceiling(check_count(getOption("pfdtc.draws", 2000), "pfdtc.draws", min = 2) / 2)
  check_memory(8 * as.double(n + kept) * (3 * (n + kept) + 2 * half), sprintf("joint draws at %d rows", n + kept))
  if (!n) return(matrix(0, 0L, 2L * half))
  all <- rbind(draws$x, x)
  C <- covariance_at(fit, list(x = all, index = seq_len(n + kept), names = NULL))
  old <- seq_len(kept)
  new <- kept + seq_len(n)
  V <- if (kept) backsolve(draws$R, C[old, new, drop = FALSE], transpose = TRUE) else matrix(0, 0L, n)
  left <- C[new, new, drop = FALSE] - crossprod(V)
  rounding <- nrow(all) * .Machine$double.eps * max(diag(C))
  S <- suppressWarnings(chol(left, pivot = TRUE, tol = rounding)) # the rank may be below n
  rank <- attr(S, "rank")
  pivot <- attr(S, "pivot")
  S <- S[seq_len(rank), order(pivot), drop = FALSE]
  z <- matrix(stats::rnorm(rank * half), rank, half)
  z <- cbind(z, -z)
  f <- crossprod(S, z)
  if (kept) f <- f + crossprod(V, draws$z)
  add <- pivot[seq_len(rank)]
  draws$R <- rbind(cbind(draws$R, V[, add, drop = FALSE]), cbind(matrix(0, rank, kept), S[, add, drop = FALSE]))
  draws$x <- rbind(draws$x, x[add, , drop = FALSE])
  draws$z <- rbind(draws$z, z)
  f
}
