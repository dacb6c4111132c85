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

#' @exportS3Method marginaleffects::get_predict
get_predict.gp_fit <- function(model, newdata, type = "response", ...) {
  fit <- check_any_fit(model, "model")
  draws <- attr(model, "draws")
  if (is.null(draws)) draws <- new_draws()
  rows <- new_rows(fit, as.data.frame(newdata), stats::na.pass)
  rowid <- if (is.null(newdata$rowid)) seq_along(rows$index) else newdata$rowid
  response <- response_of(fit)
  labels <- has_labels(response)
  f <- if (labels) contrast_draws(fit, rows$x, draws)[rows$index, , , drop = FALSE] else
    joint_draws(fit, rows$x, draws)[rows$index, , drop = FALSE]
  p <- if (!labels) latent_at(fit, rows$x)
  if (labels || is_ordered(response) && type != "link") {
    # a row for each class and row: all rows for the first class, then the next
    share <- function(f) {
      if (!labels) return(class_shares(response, f[, 1L]))
      softmax_of(as_log_odds(list(mean = f, var = matrix(0, nrow(f), ncol(f)^2)), fit$center)$mean)
    }
    if (!labels) f <- array(f + p$mean[rows$index], c(nrow(f), 1L, ncol(f))) + rows$offset
    shown <- stats::predict(fit, as.data.frame(newdata), type = "response")
    each <- apply(f, 3L, function(v) share(matrix(v, nrow(f))))
    group <- factor(rep(response$levels, each = nrow(f)), response$levels)
    return(structure(data.frame(rowid = rep(rowid, ncol(shown)), group, estimate = c(shown)), posterior_draws = each))
  }
  mean <- p$mean[rows$index] + rows$offset
  noise <- rep_len(noise_at(fit, rows$x), nrow(rows$x))[rows$index]
  f <- f + mean
  if (type != "link") {
    f <- if (is.null(response$transform)) response_given(response, f) else
      t(vapply(seq_len(nrow(f)), function(i) { # a spline in f replaces a quadrature
        ends <- range(f[i, ])
        if (ends[1L] == ends[2L]) return(response_given(response, f[i, ], noise[i]))
        at <- seq(ends[1L], ends[2L], length.out = 200L)
        stats::spline(at, response_given(response, at, noise[i]), xout = f[i, ])$y
      }, f[1L, ]))
  }
  estimate <- on_scale(fit, list(mean = mean, var = p$var[rows$index]), type, noise)$mean
  structure(data.frame(rowid, estimate), posterior_draws = f)
}

# Returns draws of the contrasts of several classes at the rows of x, n x (K - 1) x draws. The effect of the inducing
# points is drawn once, the rest of each contrast as joint_draws() does.
contrast_draws <- function(fit, x, draws) {
  p <- posterior_of(fit)
  q <- ncol(p$factors$beta)
  if (is.null(draws$u)) {
    z <- matrix(stats::rnorm(nrow(p$factors$C) * half_of_draws()), nrow(p$factors$C))
    draws$u <- c(mean_weights(p$factors)) + solve_t(p$factors$C, cbind(z, -z))
    draws$rest <- replicate(q, new_draws(), simplify = FALSE)
  }
  rest <- function(x) {
    native_kernel_matrix(p$model$kernel, x, x) -
      crossprod(forwardsolve(p$factors$L, native_kernel_matrix(p$model$kernel, p$z, x)))
  }
  m <- nrow(p$factors$beta)
  size <- prior_most(p$model, x)
  each <- lapply(seq_len(q), function(j) {
    times_features(p$model$kernel, p$z, p$factors$L, x, draws$u[(j - 1L) * m + seq_len(m), , drop = FALSE]) +
      joint_draws(fit, x, draws$rest[[j]], size, rest)
  })
  aperm(array(unlist(each), c(nrow(x), ncol(draws$u), q)), c(1L, 3L, 2L))
}

#' @exportS3Method marginaleffects::get_vcov
get_vcov.gp_fit <- function(model, vcov = NULL, ...) NULL

# This option holds the names of classes that marginaleffects accepts.
register_marginaleffects <- function(...) {
  options(marginaleffects_model_classes = union(getOption("marginaleffects_model_classes"), "gp_fit"))
}

# ---- joint draws, batch after batch ---------------------------------------------------------------------------------

# Draws come in pairs around the mean.
half_of_draws <- function() ceiling(check_count(getOption("pfdtc.draws", 2000), "pfdtc.draws", min = 2) / 2)

new_draws <- function() {
  list2env(list(x = NULL, R = matrix(0, 0L, 0L), z = NULL), parent = emptyenv())
}

# Draws f minus its mean at the rows of x, jointly with the draws at all rows that `draws` has. `draws` keeps the rows
# that determine the others to rounding, the factor C = R'R of their covariance, and z with f = R'z. With
# V = R^{-T} C(kept, x)
#   f(x) = V'z + S'z_2,   S'S = C(x, x) - V'V.
# `covariance` is for f or another process; `size` is its largest variance, to which rounding is relative.
joint_draws <- function(fit, x, draws, size = max(diag(C)), covariance = function(x) {
                          covariance_at(fit, list(x = x, index = seq_len(nrow(x)), names = NULL))
                        }) {
  n <- nrow(x)
  kept <- NROW(draws$x)
  half <- half_of_draws()
  check_memory(8 * as.double(n + kept) * (3 * (n + kept) + 2 * half), sprintf("joint draws at %d rows", n + kept))
  if (!n) return(matrix(0, 0L, 2L * half))
  all <- rbind(draws$x, x)
  C <- covariance(all)
  old <- seq_len(kept)
  new <- kept + seq_len(n)
  V <- if (kept) backsolve(draws$R, C[old, new, drop = FALSE], transpose = TRUE) else matrix(0, 0L, n)
  left <- C[new, new, drop = FALSE] - crossprod(V)
  rounding <- nrow(all) * .Machine$double.eps * size
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
