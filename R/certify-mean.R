# The exact mean, by preconditioned conjugate gradients on (K + s2 W^{-1}) v = y, as a correction of a reference's mean.

# Corrects the mean of a reference until goal(near)(s) is TRUE of where conjugate gradients are (see solve_exact()), by
# at most budget$passes passes over all pairs of rows, none of which would end after budget$left() seconds. Returns the
# correction, with how the iterations ended: steps, stalled, stopped. Returns NULL where there is no goal or no time.
# `near`: is the preconditioner made of points and near rows? If not, `sharp` norms cost another pass.
exact_mean <- function(reference, data, goal, budget, from = NULL, precondition = NULL, sharp = NULL, ...) {
  if (is.null(goal)) return(NULL)
  pass <- seconds_a_pass(reference, data, budget$left())
  near <- precondition_by_near_rows(reference)
  in_time <- function() (1 + !near) * pass <= budget$left()
  if (budget$left() <= 0 || !in_time()) return(NULL)
  if (near && is.null(precondition)) precondition <- near_preconditioner(reference, data)
  state <- solve_exact(reference, data, budget$passes, goal(near), from, precondition = precondition,
                       in_time = in_time, ...)
  c(correct_residual(reference, data, state, sharp = if (is.null(sharp)) !near else sharp),
    state[c("steps", "stalled")], list(stopped = state$stopped))
}

# What exact_mean() goes on from: the solution so far.
solution_so_far <- function(correction) correction[c("v", "residual", "error", "passes")]

# ---- goals of exact_mean() ------------------------------------------------------------------------------------------

# The goal that certificates are a share of the distance between the fit's mean and the reference's, in the median of
# some of the rows; NULL if they are so already.
share_of_distance <- function(reference, data, fit, share) {
  n <- nrow(data$x)
  x <- data$x[sort(sample.int(n, min(200L, n))), , drop = FALSE]
  mean <- in_units(fit, posterior_values(posterior_of(fit), x)$mean)
  r <- certify_posterior(reference, values_at(model_of(reference)$kernel, x))
  ratio <- share * stats::median(abs(mean - r$mean)) / stats::median(r$mean_error)
  if (!is.finite(ratio) || ratio >= 1 || !is.finite(stats::median(r$mean_error))) return(NULL)
  function(near) {
    kriged <- if (near && kriging_rows() > 0) few_kriged(reference, data, x, mean)
    function(s) isTRUE(s$w_E <= ratio * reference$norms$w_E) || (!is.null(kriged) && kriged(s))
  }
}

# The goal that certificates are at most `accuracy`, in units of y: kriging's, sqrt(c) times `kriged`, or the
# reference's own, which scale by |w_r|_E: `own` is the largest of them.
accuracy_of <- function(reference, accuracy, kriged, own) {
  wide <- if (reference$norms$w_E > 0) own / reference$norms$w_E else 0
  list(goal = function(near) function(s) isTRUE(min(kriged * sqrt(s$c), wide * s$w_E, na.rm = TRUE) <= accuracy),
       ahead = function(s) min(kriged * sqrt(s$c), wide * min(s$w_E, sqrt(s$c) / 2, na.rm = TRUE)) / accuracy)
}

# The same at the rows of x, as far as a few of them tell.
accuracy_at <- function(reference, data, x, accuracy) {
  few <- x[evenly(nrow(x), 64L), , drop = FALSE]
  kriged <- if (kriging_rows() < 1) Inf else
    reference$scale * max(sqrt(kriged_h2(krige(reference, data, few, min(64L, kriging_rows()), group = 1))))
  own <- max(certify_posterior(reference, values_at(model_of(reference)$kernel, few))$mean_error)
  accuracy_of(reference, accuracy, kriged, own)$goal
}

# Returns a function of where conjugate gradients are: is the mean certified by kriging to a tenth of its distance from
# `mean`, the fit's at the rows of x, in the median of a few of them? Each has 64 near rows of its own.
few_kriged <- function(reference, data, x, mean) {
  few <- round(seq(1, nrow(x), length.out = min(32L, nrow(x))))
  found <- krige(reference, data, x[few, , drop = FALSE], 64L, group = 1)
  mean <- mean[few][found$order] / reference$scale
  x <- x[few, , drop = FALSE][found$order, , drop = FALSE]
  half <- stats::median(sqrt(kriged_h2(found)))
  root <- root_weights(data)
  kernel <- model_of(reference)$kernel
  function(s) {
    centre <- native_kernel_cross_matvec(kernel, data$x, root * s$v, x, reference$control) +
      kriged_sums(found, s$r)
    half * sqrt(s$c) <= stats::median(abs(centre - mean)) / 10
  }
}

# Returns the seconds of a product with K, from a product with some of the rows; 0 where time has no limit.
seconds_a_pass <- function(reference, data, left) {
  if (left == Inf) return(0)
  n <- nrow(data$x)
  some <- min(n, 2048L)
  x <- data$x[seq_len(some), , drop = FALSE]
  took <- system.time(native_kernel_matvecs(reference$kernel, x, NULL, numeric(some), reference$control),
                      gcFirst = FALSE)[["elapsed"]]
  took * (n / some)^2
}

# ---- conjugate gradients --------------------------------------------------------------------------------------------

# Rows as the fit has them, y in the scale of another fit of the same model.
data_in_scale <- function(fit, other) {
  data <- fit$data
  if (other$scale != fit$scale) data$y <- data$y * (fit$scale / other$scale)
  data
}

# K v, weights being in K: here, or where the rows' `products` are made.
all_pairs <- function(data, kernel, v, control) {
  if (is.null(data$products)) return(native_kernel_matvecs(kernel, data$x, data$weights, v, control))
  root <- root_weights(data)
  root * data$products(kernel, root * v, control)
}

# Conjugate gradients on (K + s2 I) v = y, weights being in K and y, all in the reference's scale, preconditioned by B
# or as asked: list(v, residual, error, steps, passes, went, stalled, stopped). They begin at from$v and end when
# enough(s) is TRUE of s = list(v, r, c, w_E), c = r'B^{-1}r and, with B, w_E a bound of |w_r|_E,
# w_r = (K + s2 I)^{-1} r (else NA): with z = B^{-1} r,
#   |z|_E^2 = z'(K + s2 I) z - z'r,   c = z'r,
# which costs nothing beside the product that the next step takes anyway; or when in_time() is FALSE of another pass
# over all pairs of rows. `ahead(s)`: how many times too large what is wanted still is, for progress. `keep`: an
# interrupt or R's time limit end them as well, and `stopped` says so. The residual is carried along; `error` bounds
# what it is off by, see residual_rounding(). `went`: sqrt(c) after each pass. Steps shorten w_r in its own norm, not
# sqrt(c), the bound of it that certificates have: where nothing is enough, v is that of the least bound on the way.
solve_exact <- function(reference, data, most, enough, from = NULL, keep = FALSE, precondition = NULL,
                        in_time = function() TRUE, ahead = function(s) NA) {
  model <- model_of(reference)
  root <- root_weights(data)
  control <- reference$control
  passes <- 0L
  product <- function(v) {
    passes <<- passes + 1L
    all_pairs(data, model$kernel, v, control) + model$noise * v
  }
  by_B <- function(r) {
    native_response(reference$factors, reference$inducing, list(x = data$x, y = r / root, weights = data$weights),
                    model, whiten = FALSE, control = control)$v
  }
  size <- function(v) sqrt(sum(v^2))
  y <- root * data$y
  v <- from$v
  if (is.null(from$residual)) {
    if (is.null(v)) v <- if (is.null(precondition)) by_B(y) else precondition(y)
    r <- y - product(v)
    travelled <- c(v = size(v), r = 0)
  } else {
    r <- from$residual
    travelled <- from$error$travelled
  }
  tell <- stage_line("exact mean", control$progress, after = 2)
  on.exit(tell(NULL))
  began <- proc.time()[["elapsed"]]
  p <- Kp <- before <- stopped <- best <- NULL
  went <- numeric()
  steps <- 0L
  stalled <- found <- FALSE
  repeat {
    z <- by_B(r)
    c <- sum(z * r)
    if (!is.finite(c) || c <= 0) {
      stalled <- !identical(c, 0)
      break
    }
    went <- c(went, sqrt(c))
    here <- list(v = v, r = r, error = residual_rounding(reference, y, travelled))
    here$bound <- sqrt(c) + here$error$residual / sqrt(model$noise)
    if (is.null(best) || here$bound < best$bound) best <- here
    tell(passes_ahead(went, ahead(list(v = v, r = r, c = c, w_E = NA)), proc.time()[["elapsed"]] - began))
    found <- enough(list(v = v, r = r, c = c, w_E = NA))
    if (found || !in_time()) break
    if (!is.null(precondition)) {
      if (steps >= most) break
      z <- precondition(r)
    }
    Kz <- if (!keep) product(z) else tryCatch(product(z), interrupt = function(i) "interrupted", error = function(e) {
      if (is_time_limit(e)) "R's time limit" else stop(e)
    })
    if (is.character(Kz)) {
      stopped <- Kz
      break
    }
    zr <- sum(z * r)
    if (!is.finite(zr) || zr <= 0) {
      stalled <- TRUE
      break
    }
    if (is.null(precondition)) {
      w_E <- bound_w(zr, sqrt(max(sum(z * Kz) - zr, 0)))
      found <- enough(list(v = v, r = r, c = c, w_E = w_E))
      if (found || steps >= most) break
    }
    stalled <- size(r) < here$error$residual / 8
    if (stalled) break
    along <- if (is.null(p)) 0 else sum(z * (r - before$r)) / before$zr # Polak-Ribiere: forgives an inexact B^{-1}
    p <- z + if (along > 0) along * p else 0
    Kp <- Kz + if (along > 0) along * Kp else 0
    alpha <- sum(p * r) / sum(p * Kp)
    before <- list(r = r, zr = zr)
    v <- v + alpha * p
    r <- r - alpha * Kp
    # Kp is a sum of products itself: what those err by is that of z and of what came before
    carried <- if (along > 0) along * carried + size(z) else size(z)
    travelled <- travelled + c(abs(alpha) * carried + size(v), abs(alpha) * size(Kp) + size(r))
    steps <- steps + 1L
  }
  if (found || is.null(best)) best <- list(v = v, r = r, error = residual_rounding(reference, y, travelled))
  list(v = best$v, residual = best$r, error = best$error, steps = steps,
       passes = passes + if (is.null(from$passes)) 0L else from$passes, went = went, stalled = stalled,
       stopped = stopped)
}

# What progress says after passes that brought sqrt(c) to what `went` has, in so many seconds.
passes_ahead <- function(went, ratio, seconds) {
  steps <- length(went) - 1L
  said <- sprintf("%d passes over all pairs of rows", steps)
  if (!is.finite(ratio) || ratio <= 1) return(said)
  left <- if (steps > 0L) passes_until(went, 1 / ratio)
  sprintf("%s, certificate %s times too large%s", said, format(ratio, digits = 2),
          if (is.null(left)) "" else sprintf(", about %.0f s left", left * seconds / steps))
}

# Passes until sqrt(c) is this share of what it is, from how the last ones went; NULL where they led nowhere.
passes_until <- function(went, share) {
  went <- utils::tail(went, 5L)
  rate <- if (length(went) < 2L) 0.5 else (went[length(went)] / went[1L])^(1 / (length(went) - 1))
  passes <- ceiling(log(share) / log(rate))
  if (is.finite(rate) && rate < 0.999 && passes < .Machine$integer.max) as.integer(passes)
}

# ---- what a correction certifies ------------------------------------------------------------------------------------

# By linearity the exact mean at x is k_x'u + (the exact mean that the response r gives), r = y - (K + s2 W^{-1}) u, for
# any u. The second term is the reference's own on r, certified as always with r for y. Kept are u, r, what the
# reference makes of r, the norms of that, and what rounding in r and in the sum k_x'u may do, with |K| <= |G| + |E|:
#   |error of r| <= residual_rounding(), which h_x carries to the mean: |h_x| <= sqrt(k) / (2 sqrt(s2)) and, since the
#     exact variance is |(1, -h_x)|_K^2 + s2 |h_x|^2, s2 |h_x|^2 <= its upper bound;
#   |error of k_x'u| <= unit sqrt(k |K|) |v|.
# `sharp`: |B^{-1} r|_E by groups of rows, as many as a pass over all pairs takes; else from |r| alone.
correct_residual <- function(reference, data, state, sharp = TRUE) {
  model <- model_of(reference)
  root <- root_weights(data)
  y <- root * data$y
  r <- state$residual
  error <- state$error
  data$y <- r / root
  response <- native_response(reference$factors, reference$inducing, data, model,
                              control = reference$control)[c("Ay", "beta", "yy", "rss")]
  norms <- posterior_norms(replace_response(reference$factors, response), reference$inducing, data, model,
                           control = reference$control, same = reference$norms, sharp = sharp)
  norms$Psi <- NULL # the reference has it
  rounding <- sqrt(prior_most(model, data$x)) * (error$residual / (2 * sqrt(model$noise)) + error$sum)
  list(v = state$v, residual = r, response = response, norms = norms, rounding = rounding, error = error,
       passes = state$passes + sharp, went = state$went, made_from = order_of_rows(data))
}

# Of products with K of n rows in blocks: values, sums in a block, sums of blocks; as in rounding_growth().
product_growth <- function(n, block) {
  n_blocks <- n / block
  (16 + 4 * (sqrt(block) + sqrt(n_blocks) + 4) + (block + n_blocks) / 64) * .Machine$double.eps
}

# Bounds of |error of r| and of |error of k_x'v| / sqrt(k), r = y - (K + s2 W^{-1}) v carried along a way of products
# with K. `travelled`: sizes of v and of all that was multiplied by K, sizes of all that was added to r.
residual_rounding <- function(reference, y, travelled) {
  eps <- .Machine$double.eps
  model <- model_of(reference)
  unit <- product_growth(length(y), engine_control(length(y), reference$control)$block)
  unit_of_sum <- 4 * eps + reference$norms$growth
  K_norm <- sqrt(sum(reference$factors$G^2)) + reference$norms$lam
  size <- travelled[["v"]]
  list(residual = unit * K_norm * size + 4 * eps * (model$noise * size + sqrt(sum(y^2)) + travelled[["r"]]),
       sum = unit_of_sum * sqrt(K_norm) * size, travelled = travelled)
}

correction_serves <- function(reference, data) {
  !is.null(reference$correction) && !is.null(data) && identical(reference$correction$made_from, order_of_rows(data))
}

replace_response <- function(p, response) {
  p[names(response)] <- response
  p
}

# Returns list(mean, mean_error) of functionals, in units of y without the centre.
corrected_mean <- function(reference, correction, data, fun) {
  model <- model_of(reference)
  norms <- correction$norms
  norms$Psi <- reference$norms$Psi
  rest <- certify_with(replace_response(reference$factors, correction$response), norms, reference$inducing, model, fun)
  u <- if (is.null(data$weights)) correction$v else sqrt(data$weights) * correction$v
  known <- if (fun$kind != "values") sum_over_rows(fun, data$x, u) else
    native_kernel_cross_matvec(model$kernel, data$x, u, fun$x, reference$control)
  mean <- known + rest$mean
  rounding <- carried_rounding(correction, model, data, fun, rest$var_upper)
  error <- (rest$mean_error + rounding) * (1 + 1e-14) + 4 * .Machine$double.eps * abs(mean)
  list(mean = in_units(model, mean), mean_error = in_units(model, error))
}

# Bounds what rounding in r and in k_x'u does to the mean, see correct_residual(). Corrections of fits by version 0.1.0
# do not have it in parts.
carried_rounding <- function(correction, model, data, fun, var_upper) {
  size <- beyond_rows(model, data, fun)
  error <- correction$error
  if (is.null(error)) return(correction$rounding * size)
  k <- prior_most(model, data$x) * size^2
  pmin(correction$rounding * size, sqrt(var_upper / model$noise) * error$residual + sqrt(k) * error$sum)
}

# y'w is at least this: from a posterior with its norms and, where its mean is corrected, from the solution u of its
# correction, y'w >= 2 u'y - u'(K + s2 I) u, at the price of one pass over the pairs of rows.
least_quadratic <- function(post, data) {
  model <- model_of(post)
  noise <- model$noise
  least <- quadratic_bracket(post$factors, post$norms, model)$least
  if (!correction_serves(post, data)) return(least)
  u <- post$correction$v
  y <- data$y * root_weights(data)
  Ku <- native_kernel_matvecs(model$kernel, data$x, data$weights, u, post$control)
  K_norm <- sqrt(sum(post$factors$G^2)) + post$norms$lam
  growth <- 4 * .Machine$double.eps + post$norms$growth
  size <- sum(u^2)
  error <- growth * (2 * sqrt(size * sum(y^2)) + (noise + K_norm) * size)
  max(least, 2 * sum(u * y) - sum(u * Ku) - noise * size - error)
}

# Returns how much larger sqrt(k(x, x)), or the root of the size of functionals, may be than at the rows.
beyond_rows <- function(model, data, fun) {
  if (fun$kind != "values") return(sqrt(fun$size / max(prior_most(model, data$x), 1e-300)))
  if (!varies(model$kernel)) return(1)
  sqrt(max(1, prior_most(model, fun$x) / max(prior_most(model, data$x), 1e-300)))
}

# ---- the preconditioner ---------------------------------------------------------------------------------------------

# A preconditioner for (K + s2 I) v = r from inducing points and near rows: with F the rows' decorrelation from their
# nearest earlier ones under what the points leave of the prior (see near.R), (K + s2 I)^{-1} is nearly
#   F'(I - (F A') P^{-1} (F A')') F,   P = I + A F'F A',
# positive definite by construction, at O(n (s + m)) a product beside the kernel values of n rows and m points.

# Points, and earlier rows of each row. With 200 points passes are a half to twice as many (bench/README.md).
near_size <- c(points = 800L, rows = 40L)

# Where the reference leaves much unexplained beside the noise and the kernel is rough, its own B takes several times as
# many steps; with smooth kernels B is better.
precondition_by_near_rows <- function(reference) {
  model <- model_of(reference)
  is_rough(model$kernel) && reference$nobs > 400 &&
    reference$norms$t > 100 * model$noise
}

# A function r -> preconditioned r
near_preconditioner <- function(reference, data, size = near_size) {
  model <- model_of(reference)
  control <- reference$control
  z <- reference$inducing[seq_len(min(size[["points"]], reference$m)), , drop = FALSE]
  near <- native_near(z, data, model, size[["rows"]], sample.int(nrow(data$x)), reference$jitter, control = control,
                      keep = TRUE)
  root <- root_weights(data)
  twice <- function(v) native_decorrelate(near, native_decorrelate(near, v), transpose = TRUE)
  function(r) {
    q <- twice(r)
    b <- forwardsolve(near$L, native_kernel_cross_matvec(model$kernel, data$x, root * q, z, control))
    b <- solve_t(near$L, solve_t(near$C, forwardsolve(near$C, b)))
    q - twice(root * native_kernel_cross_matvec(model$kernel, z, b, data$x, control))
  }
}
