# Certificates of linear functionals of f, by the norms that certify its values.

# The intervals of certify(), of functionals: list(mean_lower, mean_upper, sd_lower, sd_upper) in units of y without the
# centre, and what certify() says of how they were made. `at`: list(mean, sd) of the fit.
certify_functionals <- function(fit, fun, at, effort, reference, m2 = NULL, max_seconds = 10) {
  same_chance({
    left <- seconds_left(max_seconds)
    inside <- list(mean_lower = rep(-Inf, fun$n), mean_upper = rep(Inf, fun$n), sd_lower = numeric(fun$n),
                   sd_upper = rep(Inf, fun$n))
    if (is_exact(fit)) {
      inside <- exact_interval(fit, fun)
    } else if (effort == "fast") {
      needs_data(fit, "fit")
      inside <- posterior_interval(own_posterior(fit), fun)
    } else {
      reference <- find_reference(fit, reference, m2, max_seconds)
      left <- seconds_left(max_seconds)
      if (!is.null(fit$data)) inside <- posterior_interval(own_posterior(fit), fun)
      inside <- functionals_by_reference(fit, fun, at, inside, reference, left)
      if (effort == "tight") inside <- functionals_by_all_pairs(fit, fun, at, inside, reference, left)
    }
    structure(inside, m2 = if (effort != "fast" && !is_exact(fit)) reference$m)
  })
}

functionals_by_reference <- function(fit, fun, at, inside, reference, left) {
  inside <- intersect_intervals(inside, posterior_interval(reference, fun))
  data <- fit$data
  if (is.null(data)) return(inside)
  open <- left_open(inside, at, "mean") # whatever passes find, see by_a_reference()
  correction <- if (correction_serves(reference, data)) reference$correction
  if (!is.null(correction)) {
    inside <- intersect_intervals(inside, mean_interval(corrected_mean(reference, correction, data, fun)))
  }
  inside <- functionals_by_kriging(inside, at, fun, reference, data, correction, left)
  open <- union(open, left_open(inside, at, c("mean", "sd")))
  by_exact_posterior(fit, fun, inside, open, function(stage) NULL, left)
}

functionals_by_all_pairs <- function(fit, fun, at, inside, reference, left) {
  data <- needs_data(fit, "fit")
  tight <- dtc_on_points(fit, data, reference$inducing, NULL, fast = FALSE, tight = TRUE)
  inside <- intersect_intervals(inside, posterior_interval(tight, fun))
  tight$correction <- find_correction(tight, data, fit, share = 1 / 1000, most = 50L, left = left)
  if (!is.null(tight$correction)) {
    inside <- intersect_intervals(inside, mean_interval(corrected_mean(tight, tight$correction, data, fun)))
  }
  functionals_by_kriging(inside, at, fun, tight, data, tight$correction, left)
}

# Those whose intervals are wide, the widest first, as far as there is time.
functionals_by_kriging <- function(inside, at, fun, reference, data, correction, left) {
  if (kriging_rows() < 1) return(inside)
  wide <- wide_rows(inside, at, !is.null(correction$residual))
  for (i in wide[fun$size[wide] > 0]) {
    began <- left()
    if (began <= 0) break
    both <- intersect_intervals(lapply(inside, `[`, i),
                                krige_functional(fun, i, reference, data, correction, inside$sd_lower[i]))
    for (what in names(inside)) inside[[what]][i] <- both[[what]]
    if (isTRUE(left() < began - left())) break # another would take longer than there is
  }
  inside
}

# The rows of the data that come first among the nearest to those that the functional is about.
rows_near_functional <- function(fun, i, kernel, data, control) {
  n_c <- min(kriging_rows(), nrow(data$x))
  about <- fun$x[unlist(fun$rows[i]), , drop = FALSE]
  about <- about[evenly(nrow(about), n_c), , drop = FALSE]
  near <- native_neighbours(kernel, data$x, n_c, query = about, control = control)
  rows <- unique(c(t(near)))
  utils::head(rows[rows > 0L], n_c)
}

# kriging.R and certify.h, of one functional: weights w on few rows S, J and h = k - (K + s2 I) w on all of them.
# `sd_lower`: what is known of the exact sd, in units of y.
krige_functional <- function(fun, i, reference, data, correction, sd_lower) {
  model <- model_of(reference)
  kernel <- model$kernel
  s2 <- model$noise
  p <- reference$factors
  root <- root_weights(data)
  k <- numeric(nrow(data$x))
  one <- some_functionals(fun, i)
  cross_at(one, data$x, function(rows, K) k[rows] <<- drop(K))
  k <- root * k
  S <- rows_near_functional(fun, i, kernel, data, reference$control)
  x_S <- data$x[S, , drop = FALSE]
  root_S <- rep_len(root, nrow(data$x))[S]
  K_S <- native_kernel_matrix(kernel, x_S, x_S) * outer(root_S, root_S)
  w <- kriging_weights(K_S, s2, k[S])

  h <- k - root * native_kernel_cross_matvec(kernel, x_S, root_S * w, data$x, reference$control)
  h[S] <- h[S] - s2 * w
  wh <- sum(w * h[S])
  Ah <- native_response(p, reference$inducing, list(x = data$x, y = h / root, weights = data$weights),
                        new_model(kernel, s2), control = reference$control)$Ay
  a <- drop(features_of(one, reference$inducing, p$L))
  Aw <- drop(forwardsolve(p$L, native_kernel_matrix(kernel, reference$inducing, x_S)) %*% (root_S * w)) - a
  ca <- forwardsolve(p$C, a)
  ch <- forwardsolve(p$C, Ah)
  ww <- sum(w^2)
  n_terms <- length(S) + one$terms
  found <- native_certify_kriged(
    p, reference$inducing, new_model(kernel, s2), reference$norms, n_terms, sum(merged_weights(data)),
    list(prior = one$prior + 16 * .Machine$double.eps * one$size, size = one$size, sor = s2 * sum(ca^2),
         J = one$prior - sum(w * k[S]) - wh, wh = wh, ww = ww, w1 = sum(root_S * abs(w)), hh = sum(h^2),
         ch = sum(ch^2), xh = sum(ca * ch), JQ = sum(Aw^2) + s2 * ww))
  out <- list(mean_lower = -Inf, mean_upper = Inf, sd_lower = in_units(model, sqrt(found$var_lower)),
              sd_upper = in_units(model, sqrt(found$var_upper)))
  if (is.null(correction$residual)) return(out)
  found$w <- w
  found$ww <- ww
  mean <- kriged_mean(found, S, k, one, model, correction, sd_lower)
  utils::modifyList(out, lapply(mean, in_units, model = model))
}

# (K_S + s2 I)^{-1} k_S; any weights will do where that cannot be had
kriging_weights <- function(K_S, s2, k_S) {
  jitter <- max(diag(K_S)) * (nrow(K_S) + 16) * .Machine$double.eps
  for (more in c(0, jitter * 10^(0:7))) {
    R <- tryCatch(chol(K_S + diag(s2 + more, nrow(K_S))), error = function(e) NULL)
    if (!is.null(R)) return(backsolve(R, backsolve(R, k_S, transpose = TRUE)))
  }
  0 * k_S
}

# |exact mean - (k'v + w'r)| <= |h| |r| and rounding, as in kriged_interval()
kriged_mean <- function(found, S, k, one, model, correction, sd_lower) {
  eps <- .Machine$double.eps
  error <- correction$error
  r_S <- correction$residual[S]
  h <- sqrt(kriged_h2(found, (sd_lower / model$scale)^2 * (1 - 8 * eps)))
  mean <- sum(k * correction$v) + sum(found$w * r_S)
  n_c <- length(S) + one$terms
  half <- h * (sqrt(correction$norms$c) + error$residual / sqrt(model$noise)) + sqrt(one$size) * error$sum +
    sqrt(found$ww) * error$residual + (4 * sqrt(n_c) + n_c / 64) * eps * sqrt(found$ww * sum(r_S^2)) +
    4 * eps * abs(mean)
  half <- half * (1 + 1e-14)
  list(mean_lower = mean - half, mean_upper = mean + half)
}
