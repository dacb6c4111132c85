# Computes the mean k_x'v of the exact GP at x, k_x = k(X, x), by preconditioned conjugate gradients on (K + s2 W^{-1})
# v = y, and bounds rounding errors. K is the kernel matrix, s2 the noise variance, W the diagonal matrix of weights.

# Returns a correction of the reference posterior's mean towards the exact mean: the result of correct_residual(), plus
# `steps`, `stalled` and `stopped` of solve_exact(). Returns NULL if `ratio` is NULL or no time is left. At most
# budget$passes passes over all pairs of rows are allowed, within budget$left() seconds. The other arguments are those
# of the two functions. NULL: `precondition` and `sharp` depend on precondition_by_near_rows().
exact_mean <- function(reference, data, ratio, budget, from = NULL, precondition = NULL, sharp = NULL, ...) {
  n <- nrow(data$x)
  some <- min(n, 2048L)
  # Estimate the seconds of a product of the kernel matrix with a vector, by timing one for at most 2,048 rows.
  pass <- if (budget$left() == Inf) 0 else system.time(
    native_kernel_matvecs(reference$kernel, data$x[seq_len(some), , drop = FALSE], NULL, numeric(some),
                          reference$control), gcFirst = FALSE)[["elapsed"]] * (n / some)^2
  near <- precondition_by_near_rows(reference, data)
  in_time <- function() budget$left() > 0 && (1 + !near) * pass <= budget$left()
  # R evaluates `ratio` where it is first used: kriging for it takes as long as a reference if the data are many.
  if (!in_time() || is.null(ratio) || !in_time()) return(NULL)
  if (near && is.null(precondition)) precondition <- near_preconditioner(reference, data)
  state <- solve_exact(reference, data, budget$passes, ratio, from, precondition = precondition, in_time = in_time, ...)
  c(correct_residual(reference, data, state, sharp = sharp %||% !near), state[c("steps", "stalled", "stopped")])
}

# ---- conjugate gradients --------------------------------------------------------------------------------------------

# Returns the data of `fit`, with y rescaled to the units of `other`, a fit of the same model.
data_in_scale <- function(fit, other) replace(fit$data, "y", list(fit$data$y * (fit$scale / other$scale)))

# Solves (K + s2 I) v = y by conjugate gradients, where K and y include the roots of the weights. The preconditioner is
# the function `precondition` or, if NULL, B^{-1}, B = Q + s2 I, with the reference's approximation Q of K. ratio(s) is
# the certified error over its goal in the state s = list(v, r, c, w_E): r = y - (K + s2 I) v, c = r'B^{-1} r, and w_E
# (or NA) bounds sqrt(w'(K - Q) w) for w = (K + s2 I)^{-1} r. The iterations end
#   * if ratio(s) <= 1, or after `most` steps;
#   * if in_time() is FALSE before another pass over all pairs of rows;
#   * if `keep` is TRUE, at an interrupt or R's time limit (`stopped` is then "interrupted" or "R's time limit");
#   * if the residual may be nothing but rounding error (`stalled`).
# A step may increase sqrt(c), which bounds the error. So the function returns the v that met ratio(s) <= 1, or else the
# v with the smallest bound. `error` is the result of residual_rounding() for this v, `passes` the number of products
# with K so far, and `went` has sqrt(c) before the first step and after each step.
solve_exact <- function(reference, data, most, ratio, from = NULL, keep = FALSE, precondition = NULL,
                        in_time = function() TRUE) {
  enough <- function(s) isTRUE(ratio(s) <= 1)
  system <- exact_system(reference, data)
  now <- if (!is.null(from$residual)) {
    list(v = from$v, r = from$residual, travelled = from$error$travelled) # continues earlier iterations
  } else {
    v <- from$v %||% if (is.null(precondition)) system$by_B(system$y) else precondition(system$y)
    list(v = v, r = system$y - system$product(v), travelled = c(v = norm2(v), r = 0))
  }
  rounding <- function() residual_rounding(reference, system$y, now$travelled)
  tell <- stage_line("exact mean", reference$control$progress, after = 2)
  began <- proc.time()[["elapsed"]]
  stopped <- best <- NULL
  went <- numeric()
  steps <- 0L
  stalled <- found <- FALSE
  repeat {
    z <- system$by_B(now$r)
    c <- sum(z * now$r)
    if (!is.finite(c) || c <= 0) {
      stalled <- !identical(c, 0)
      break
    }
    went <- c(went, sqrt(c))
    error <- rounding()
    bound <- sqrt(c) + error$residual / sqrt(system$noise)
    if (is.null(best) || bound < best$bound) best <- list(v = now$v, r = now$r, error = error, bound = bound)
    s <- list(v = now$v, r = now$r, c = c, w_E = NA)
    tell(passes_ahead(went, ratio(replace(s, "w_E", sqrt(c) / 2)), proc.time()[["elapsed"]] - began,
                      sum(system$passes(), from$passes)))
    found <- enough(s)
    if (found || !in_time()) break
    if (!is.null(precondition)) {
      if (steps >= most) break
      z <- precondition(now$r)
    }
    tried <- stop_by(system$product(z), keep)
    stopped <- tried$stopped
    zr <- sum(z * now$r)
    stalled <- is.null(stopped) && (!is.finite(zr) || zr <= 0)
    if (!is.null(stopped) || stalled) break
    if (is.null(precondition)) {
      s$w_E <- bound_w(zr, sqrt(max(sum(z * tried$value) - zr, 0)))
      found <- enough(s)
      if (found || steps >= most) break
    }
    stalled <- norm2(now$r) < error$residual / 8
    if (stalled) break
    now <- next_solution(now, z, tried$value, zr)
    steps <- steps + 1L
  }
  if (found || is.null(best)) best <- list(v = now$v, r = now$r, error = rounding())
  list(v = best$v, residual = best$r, error = best$error, steps = steps, passes = sum(system$passes(), from$passes),
       went = went, stalled = stalled, stopped = stopped)
}

# Returns the linear system as list(y, noise, product, by_B, passes). product(v) is (K + s2 I) v, passes() the number of
# such products so far. by_B(v) is (Q + s2 I)^{-1} v with the reference's approximation Q of K.
exact_system <- function(reference, data) {
  model <- model_of(reference)
  root <- root_weights(data)
  control <- reference$control
  passes <- 0L
  product <- function(v) {
    passes <<- passes + 1L
    # If worker processes hold the rows, data$products() makes them compute the product.
    Kv <- if (is.null(data$products)) native_kernel_matvecs(model$kernel, data$x, data$weights, v, control) else
      root * data$products(model$kernel, root * v, control)
    Kv + model$noise * v
  }
  by_B <- function(r) {
    native_response(reference$factors, reference$inducing, list(x = data$x, y = r / root, weights = data$weights),
                    model, whiten = FALSE, control = control)$v
  }
  list(y = root * data$y, noise = model$noise, product = product, by_B = by_B, passes = function() passes)
}

# Returns the state after a step of conjugate gradients. r is the residual, z the preconditioned residual, zr = z'r, Kz
# = (K + s2 I) z. The direction is p = sum_i a_i z_i over all z so far, Kp = (K + s2 I) p, `carried` = sum_i a_i |z_i|.
next_solution <- function(now, z, Kz, zr) {
  along <- if (is.null(now$p)) 0 else sum(z * (now$r - now$r_before)) / now$zr # Polak and Ribiere's formula
  p <- z + if (along > 0) along * now$p else 0
  Kp <- Kz + if (along > 0) along * now$Kp else 0
  carried <- if (along > 0) along * now$carried + norm2(z) else norm2(z)
  alpha <- sum(p * now$r) / sum(p * Kp)
  v <- now$v + alpha * p
  r <- now$r - alpha * Kp
  travelled <- now$travelled + c(abs(alpha) * carried + norm2(v), abs(alpha) * norm2(Kp) + norm2(r))
  list(v = v, r = r, travelled = travelled, p = p, Kp = Kp, carried = carried, r_before = now$r, zr = zr)
}

# Evaluates `expr` and returns list(value, stopped). If `keep`, an interrupt or R's time limit ends the evaluation, and
# `stopped` is then "interrupted" or "R's time limit", else NULL.
stop_by <- function(expr, keep) {
  if (!keep) return(list(value = expr))
  tryCatch(list(value = expr, stopped = NULL), interrupt = function(i) list(stopped = "interrupted"),
           error = function(e) if (is_time_limit(e)) list(stopped = "R's time limit") else stop(e))
}

# Returns the text of a progress line: passes so far, certified error over its goal (`ratio`), and seconds left. `went`
# has the error (without rounding) before and after each step of conjugate gradients; all steps took `seconds`.
passes_ahead <- function(went, ratio, seconds, passes) {
  steps <- length(went) - 1L
  said <- sprintf("%d pass%s over all pairs of rows", passes, if (passes == 1L) "" else "es")
  if (!is.finite(ratio) || ratio <= 1) return(said)
  left <- if (steps > 0L) passes_until(went, 1 / ratio)
  sprintf("%s, certified error %s times its goal%s", said, format(ratio, digits = 2),
          if (is.null(left)) "" else sprintf(", about %.0f s left", left * seconds / steps))
}

# Estimates how many more passes over all pairs of rows multiply the error bound by `share`; NULL if it hardly falls.
# `went` has the bound before the first pass and after each. The last five give the rate; before any pass it is 1/2.
passes_until <- function(went, share) {
  went <- utils::tail(went, 5L)
  rate <- if (length(went) < 2L) 0.5 else (went[length(went)] / went[1L])^(1 / (length(went) - 1))
  passes <- ceiling(log(share) / log(rate))
  if (is.finite(rate) && rate < 0.999 && passes < .Machine$integer.max) as.integer(passes)
}

# Returns the correction of the reference's mean by an approximate solution u of (K + s2 W^{-1}) u = y, W: row weights.
# For any u, the exact mean at x is k_x'u plus the exact mean for the response r = y - (K + s2 W^{-1}) u, which the
# reference certifies. The result has u (`v`), r (`residual`), the reference's posterior (`response`) and error bounds
# (`norms`) for r, and bounds on rounding errors. If `sharp`, a pass over all pairs of rows makes `norms` smaller.
correct_residual <- function(reference, data, state, sharp = TRUE) {
  model <- model_of(reference)
  r <- state$residual
  error <- state$error
  data$y <- r / root_weights(data)
  response <- native_response(reference$factors, reference$inducing, data, model,
                              control = reference$control)[c("Ay", "beta", "yy", "rss")]
  norms <- posterior_norms(replace(reference$factors, names(response), response), reference$inducing, data, model,
                           control = reference$control, same = reference$norms, sharp = sharp)
  norms$Psi <- NULL # Psi does not depend on the response, so corrected_mean() uses reference$norms$Psi
  rounding <- sqrt(prior_most(model, data$x)) * (error$residual / (2 * sqrt(model$noise)) + error$sum)
  list(v = state$v, residual = r, response = response, norms = norms, rounding = rounding, error = error,
       passes = state$passes + sharp, went = state$went, made_from = order_of_rows(data))
}

# Returns a bound on the rounding error of K v, divided by |K| |v|, for n rows in blocks of `block` rows. The errors of
# kernel values are not included.
product_growth <- function(n, block) {
  n_blocks <- n / block
  (12 + 4 * (sqrt(block) + sqrt(n_blocks) + 4) + (block + n_blocks) / 64) * .Machine$double.eps
}

# Returns bounds on the rounding errors of r = y - (K + s2 W^{-1}) v (`residual`; W: row weights), which grow with each
# step, and of k_x'v / sqrt(k(x, x)) (`sum`). `travelled` is c(v, r): the sum of the norms of all vectors that were
# multiplied by K, and the sum of the norms of all vectors that were added to r.
residual_rounding <- function(reference, y, travelled) {
  eps <- .Machine$double.eps
  model <- model_of(reference)
  norms <- norms_for(reference$norms, reference$factors, model, reference$inducing)
  size <- travelled[["v"]]
  growth <- norms$unit + product_growth(length(y), engine_control(length(y), reference$control)$block)
  list(residual = growth * norms$K_norm * size + 4 * eps * (model$noise * size + norm2(y) + travelled[["r"]]),
       sum = (norms$unit + norms$growth) * sqrt(norms$K_norm) * size, travelled = travelled)
}

# Returns the reference's stored correction (correct_residual()) if it was computed from the rows of `data`, else NULL.
correction_for <- function(reference, data) {
  correction <- reference$correction
  if (!is.null(correction) && !is.null(data) && identical(correction$made_from, order_of_rows(data))) correction
}

# Returns list(mean, mean_error), in units of y: means of functionals by correct_residual(), with their error bounds.
corrected_mean <- function(reference, correction, data, fun) {
  model <- model_of(reference)
  norms <- replace(correction$norms, "Psi", reference$norms["Psi"])
  rest <- certify_with(utils::modifyList(reference$factors, correction$response), norms, reference$inducing, model, fun)
  u <- root_weights(data) * correction$v
  known <- if (fun$kind == "values") native_kernel_cross_matvec(model$kernel, data$x, u, fun$x, reference$control) else
    Reduce(`+`, lapply(blocks_of(seq_along(u), 2048L), function(i) {
      drop(crossprod(fun$cross(data$x[i, , drop = FALSE], seq_len(fun$n)), u[i]))
    }))
  mean <- known + rest$mean
  rounding <- carried_rounding(correction, model, data, fun, rest$var_upper)
  error <- (rest$mean_error + rounding) * (1 + 1e-14) + 4 * .Machine$double.eps * abs(mean)
  list(mean = in_units(model, mean), mean_error = in_units(model, error))
}

# Returns a bound on the rounding error of corrected_mean(): of k_x'u, where u almost solves (K + s2 W^{-1}) u = y with
# row weights W, and of a mean for the residual. Corrections saved by version 0.1.0 have one bound for both, `rounding`.
carried_rounding <- function(correction, model, data, fun, var_upper) {
  most <- prior_most(model, data$x)
  # `size` bounds the ratio of each functional's prior sd to the largest prior sd of f at the data.
  size <- if (fun$kind != "values") sqrt(fun$size / max(most, 1e-300)) else if (!varies(model$kernel)) 1 else
    sqrt(max(1, prior_most(model, fun$x) / max(most, 1e-300)))
  error <- correction$error
  if (is.null(error)) return(correction$rounding * size)
  pmin(correction$rounding * size, sqrt(var_upper / model$noise) * error$residual + sqrt(most * size^2) * error$sum)
}

# Returns a lower bound on y'(K + s2 I)^{-1} y from the DTC posterior `post`. If it has a stored approximation u of
# (K + s2 I)^{-1} y, a product with K gives a second lower bound, 2 u'y - u'(K + s2 I) u, and the larger is returned.
least_quadratic <- function(post, data) {
  model <- model_of(post)
  noise <- model$noise
  least <- quadratic_bracket(post$factors, post$norms, model)$least
  u <- correction_for(post, data)$v
  if (is.null(u)) return(least)
  y <- data$y * root_weights(data)
  Ku <- native_kernel_matvecs(model$kernel, data$x, data$weights, u, post$control)
  norms <- norms_for(post$norms, post$factors, model, data$x)
  growth <- norms$unit + norms$growth
  size <- sum(u^2)
  error <- growth * (2 * sqrt(size * sum(y^2)) + (noise + norms$K_norm) * size)
  max(least, 2 * sum(u * y) - sum(u * Ku) - noise * size - error)
}

# near_preconditioner() approximates (K + s2 I)^{-1} by m inducing points Z and s nearest neighbours; a product with a
# vector costs O(n (s + m)). With L L' = k(Z, Z) and A = L^{-1} k(Z, X), regressions of rows on their nearest earlier
# rows give a triangular F such that F'F approximates (K - A'A + s2 I)^{-1}. The preconditioner is
#   F'(I - (F A') P^{-1} (F A')') F,   P = I + A F'F A',   which is positive definite.

# Returns TRUE if near_preconditioner() should need fewer steps than a preconditioner by the reference's points: for
# groups with many levels and, at over 400 rows, for rough kernels with a large residual prior variance.
precondition_by_near_rows <- function(reference, data) {
  model <- model_of(reference)
  has_profile(model$kernel, rough_profiles) && reference$nobs > 400 && reference$norms$t > 100 * model$noise ||
    has_many_levels(model, data$x)
}

# Returns a function that multiplies a vector by an approximation of (K + s2 I)^{-1} by inducing points and neighbours,
# or for groups with many levels effects_preconditioner(). `size` has the numbers of inducing points and neighbours.
# With 200 points instead of 800, the log of the residual decreases 1.3 to 2.7 times more slowly (bench/README.md).
near_preconditioner <- function(reference, data, size = c(points = 800L, rows = 40L)) {
  model <- model_of(reference)
  control <- reference$control
  z <- reference$inducing[seq_len(min(size[["points"]], reference$m)), , drop = FALSE]
  if (has_many_levels(model, data$x)) return(effects_preconditioner(z, data, model, control))
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

# Returns the result of exact_interval() for the functionals. Returns NULL if the exact posterior would take more than
# `seconds` or 1/16 of the option pfdtc.max_memory, or if its Cholesky factorisation fails.
exact_if_cheap <- function(fit, fun, seconds) {
  n <- as.double(nrow(fit$data$x))
  # Factorisations and triangular solves are taken to be three times as slow per flop as products.
  cheap <- 16 * n^2 <= getOption("pfdtc.max_memory", 2^32) / 16 &&
    seconds_for(fit, 3 * (n^3 / 3 + 3 * n^2 * fun$n)) <= seconds
  exact <- if (cheap) null_if_failed(exact_of_fit(fit))
  if (!is.null(exact)) exact_interval(exact, fun)
}

# Returns intervals for the mean and sd of functionals under the exact posterior p, rounding included. The computed
# Cholesky factor is that of H + Delta, where H = K + s2 W^{-1}, W: row weights, |D^{-1/2} Delta D^{-1/2}| <= growth n,
# and D is the diagonal of H. With alpha = H^{-1} y and h = H^{-1} k_x, the mean errs by h'Delta alpha, the variance by
# h'Delta h. |D^{1/2} h| is computed only if a bound on it is too large (theory vignette, section 10).
exact_interval <- function(p, fun) {
  model <- p$model
  alpha <- p$factors$alpha
  k <- if (fun$kind == "values") prior_most(model, p$x, fun$x) else fun$size
  L <- cholesky_of(p)
  n <- nrow(L)
  growth <- 2 * ((4 * sqrt(n) + 12) * .Machine$double.eps + kernel_value_error(model$kernel, p$x, fun$x))
  root <- sqrt(rowSums(L^2))                # roots of the diagonal of K + s2 W^{-1}
  v <- pmax(root^2 - kernel_diagonal(model$kernel, p$x), 0)
  ratio <- max(root^2 / v)
  do_solve <- !(growth * n * ratio <= 1e-8) # FALSE if the bound on |D^{1/2} h| is small enough
  mean <- var <- h <- numeric(fun$n)
  tell <- stage_line("certify", p$control$progress, after = 1, every = 0.5)
  for (rows in blocks_of(seq_along(h), 256)) {
    tell(sprintf("row %d of %d", rows[1L], fun$n))
    K <- fun$cross(p$x, rows)
    mean[rows] <- drop(crossprod(K, alpha))
    u <- forwardsolve(L, K)
    var[rows] <- pmax(fun$prior[rows] - colSums(u^2), 0)
    h[rows] <- if (do_solve) sqrt(colSums((root * solve_t(L, u))^2)) else sqrt(2 * ratio * (var[rows] + 1e-8 * min(v)))
  }
  mean_error <- growth * norm2(root * alpha) * (n * h + sqrt(n * k))
  var_error <- growth * (n * h^2 + 2 * sqrt(n * k) * h + k)
  interval <- list(mean_lower = mean - mean_error, mean_upper = mean + mean_error,
                   sd_lower = sqrt(pmax(var - var_error, 0)), sd_upper = sqrt(var + var_error))
  lapply(interval, in_units, model = model)
}

# Estimates the seconds for `flops` operations of matrix products and for `kernel_values` evaluations of the kernel.
# Both speeds are measured once in a session for each kind of kernel, which takes some milliseconds.
seconds_for <- function(fit, flops, kernel_values = 0) {
  kernel <- fit$kernel
  threads <- engine_control(65536L, fit$control)$threads
  profiles <- vapply(as_sum(kernel)$leaves, `[[`, "", "profile")
  key <- paste(paste(profiles, collapse = " "), length(kernel$inputs), threads)
  if (is.null(engine$speed[[key]])) {
    x <- fit$inducing %||% fit$x
    x <- x[rep_len(seq_len(nrow(x)), 256L), , drop = FALSE]
    seconds <- function(run) max(min(replicate(2L, system.time(run(), gcFirst = FALSE)[["elapsed"]])), 1e-4)
    K <- native_kernel_matrix(kernel, x, x)
    values <- seconds(function() for (i in 1:4) native_kernel_matrix(kernel, x, x)) / (4 * 256^2)
    each <- seconds(function() crossprod(K)) / (2 * 256^3)
    engine$speed[[key]] <- c(flop = each, kernel = values) / max(1, threads * 0.7)
  }
  sum(c(flops, kernel_values) * engine$speed[[key]])
}
