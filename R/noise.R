# Models heteroscedastic noise. Its log variance is linear in features b_n of the inputs of row n, which has weight w_n:
#
#   var(e_n) = s2 exp(b_n'gamma) / w_n.
#
# Linear features are b_nj = (x_nj - centre_j) rate_j. Smooth features are K(x_n, Z) R, where Z are some of the rows, K
# is the Matern 3/2 correlation and R R' = K(Z, Z)^{-1}. With gamma ~ N(0, v I), the smooth part of b_n'gamma is a
# Gaussian process, whose kernel at Z is v K. gamma is learned once, with one kernel of the latent function f. Searches
# for other kernels keep gamma: row n then has the weight w_n exp(-b_n'gamma).

# Returns the trend of the log noise variance that the formula `noise` describes, or NULL for constant noise. Its
# `columns` are the columns of x with linear features, `smooth` those inside of smooth().
asked_noise_trend <- function(noise, data, s) {
  parts <- if (inherits(noise, "formula") && length(noise) == 2L) smooth_terms(noise[[2L]])
  refuse_if(!all(lengths(lapply(parts$smooth, all.vars))), "noise", deparse1(noise), "a formula of inputs")
  smooth <- if (length(parts$smooth)) mean_columns(one_sided(sum_of_terms(parts$smooth)), data, "noise")
  linear <- if (!length(parts$smooth)) noise else if (identical(parts$smooth, list(quote(.)))) ~ . else
    one_sided(parts$all)
  columns <- mean_columns(linear, data, "noise")
  if (!length(columns)) return(NULL)
  refuse_if(!is.null(data$whole), "noise", "is a formula, which is not available for a row source",
            hint = "If the noise variances are known, use `weights` = 1 / variance.")
  refuse_if(!s$hyper[1L] %in% "evidence", "noise",
            sprintf("is a formula, which hyper = \"%s\" does not learn", s$hyper[1L]),
            hint = "Use hyper = \"evidence\". If the variances are known, use `weights` = 1 / variance.")
  noise_trend_of(data, columns, smooth, deparse1(if (is.null(smooth)) linear else noise))
}

noise_trend_of <- function(data, columns, smooth = NULL, label = "~.") {
  trend <- list(columns = columns, names = colnames(data$x)[columns], label = label, smooth = smooth)
  trend$warp <- data$warp # the trend has the same warped inputs as the kernel
  c(trend, basis_units(rotated(trend, data$x)[, columns, drop = FALSE]))
}

# Returns list(all, smooth): `term`, a sum, with each smooth() replaced by its arguments, and a list of these arguments.
smooth_terms <- function(term) {
  if (!is.call(term)) return(list(all = term, smooth = list()))
  parts <- lapply(as.list(term)[-1L], smooth_terms)
  all <- lapply(parts, `[[`, "all")
  if (identical(term[[1L]], quote(smooth)) && length(all)) return(list(all = sum_of_terms(all), smooth = all))
  list(all = as.call(c(term[[1L]], all)), smooth = do.call(c, lapply(parts, `[[`, "smooth")))
}

# Adds the points Z of the kernel of log noise to a smooth noise trend. The first is the row of x nearest to the mean,
# each further one the row farthest from earlier points. Lengthscales are twice those of f, within 0.3 to 1e6 input sds.
place_noise_trend <- function(trend, x, lengthscale) {
  columns <- trend$smooth
  if (!is.numeric(columns)) return(trend)
  x <- rotated(trend, x)[, columns, drop = FALSE]
  spread <- apply(x, 2L, stats::sd)
  lengths <- pmax(2 * lengthscale[columns], 0.3 * spread)
  lengths <- pmin(lengths, 1e6 * ifelse(spread > 0, spread, 1))
  u <- t(x) / lengths
  distance <- function(to) colSums((u - to)^2)
  rows <- which.min(distance(rowMeans(u)))
  nearest <- distance(u[, rows])
  while (length(rows) < noise_trend_sizes[["points"]] && max(nearest) > 1e-10) {
    rows <- c(rows, which.max(nearest))
    nearest <- pmin(nearest, distance(u[, rows[length(rows)]]))
  }
  z <- x[rows, , drop = FALSE]
  smooth <- list(columns = columns, z = unname(z), lengthscale = unname(lengths))
  e <- eigen(smooth_values(smooth, z), symmetric = TRUE)
  kept <- e$values > 1e-6 * e$values[1L]
  smooth$root <- e$vectors[, kept, drop = FALSE] %*% diag(1 / sqrt(e$values[kept]), sum(kept))
  replace(trend, "smooth", list(smooth))
}

# Returns the Matern 3/2 correlation of rows of x with Z. The first row of Z is subtracted first, because distances
# computed from squares of large inputs, such as seconds since 1970, would lose all digits.
smooth_values <- function(smooth, x) {
  scaled <- function(x) cut_far((t(x) - smooth$z[1L, ]) / smooth$lengthscale)
  u <- scaled(x)
  z <- scaled(smooth$z)
  r <- sqrt(3 * pmax(outer(colSums(u^2), colSums(z^2), `+`) - 2 * crossprod(u, z), 0))
  (1 + r) * exp(-r)
}

# Cuts scaled inputs at 1e100, so that their products are finite. pmin() would make three copies of x.
cut_far <- function(x) if (max(0, x) > 1e100 || min(0, x) < -1e100) pmin(pmax(x, -1e100), 1e100) else x

# Returns the features of each row of x for its log noise variance, the linear features first.
noise_basis <- function(trend, x) {
  x <- rotated(trend, x)
  linear <- x[, trend$columns, drop = FALSE]
  moved <- which(trend$centre != 0 | trend$rate != 1) # not columns of 0 and 1
  linear[, moved] <- cut_far(t((t(linear[, moved, drop = FALSE]) - trend$centre[moved]) * trend$rate[moved]))
  if (is.null(trend$smooth)) return(linear)
  cbind(linear, smooth_values(trend$smooth, x[, trend$smooth$columns, drop = FALSE]) %*% trend$smooth$root)
}

# Returns for each feature of the log noise variance whether it is linear (1) or smooth (2).
noise_parts <- function(trend) {
  rep(1:2, c(length(trend$columns), if (is.null(trend$smooth)) 0L else ncol(trend$smooth$root)))
}

# The log of the noise factor (noise variance / s2) is cut to at most 7 in size, so the factor is 1 / 1,100 to 1,100.
most_trend <- 7

# Returns the noise factor, the noise variance at the rows of x divided by s2. The log noise variance has the posterior
# N(log s2 + m, v), so the factor's mean is exp(m + v / 2). Its log is cut to [-most_trend, trend$most]. trend$most is
# at most log(largest / s2), because noise above `largest`, the largest squared deviation from the mean response (times
# weight, averaged over equal inputs), lowers densities. For smooth noise, trend$range has limits from training rows.
noise_factor <- function(trend, x) {
  if (is.null(trend)) return(1)
  B <- noise_basis(trend, x)
  log_factor <- drop(B %*% trend$gamma) + trend_spread(trend, B) / 2
  factor <- exp(pmin(pmax(log_factor, -most_trend), if (is.null(trend$most)) most_trend else trend$most))
  if (is.null(trend$smooth) || is.null(trend$range)) factor else pmin(pmax(factor, trend$range[1L]), trend$range[2L])
}

# Returns the posterior variance of the log noise variance at the features B, or 0 if the noise is not smooth (B is then
# not evaluated). trend$level has the variance of log s2 and its covariances with trend$gamma; older fits lack it.
trend_spread <- function(trend, B) {
  if (is.null(trend$smooth)) return(0)
  level <- if (is.null(trend$level)) numeric(ncol(B) + 1L) else trend$level
  pmin(pmax(level[1L] + 2 * drop(B %*% level[-1L]) + native(ffi_row_forms, B, trend$covariance), 0), most_spread)
}

# Returns the noise variance of a new response of weight 1 at rows of x, in squared units of y. As s2 is learned again
# after smooth noise, trend$top keeps this noise below trend$largest, the largest squared deviation in the data.
noise_at <- function(fit, x, noise = fit$noise) {
  noise * pmin(noise_factor(fit$noise_trend, x), fit$noise_trend$top %||% Inf)
}

# Returns list(noise, spread) at new rows: the mean of the noise variance, and the variance of its log. `spread` is the
# posterior variance of smooth noise plus a variance that gives the noise heavy tails.
noise_law <- function(fit, rows, noise = fit$noise) {
  each <- function(v) rep_len(v, nrow(rows$x))[rows$index]
  list(noise = each(noise_at(fit, rows$x, noise)), spread = each(noise_spread(fit, rows$x)))
}

# Returns `noise` divided by the weight of each training row (NA at weight 0), or NULL without weights.
noise_by_weight <- function(fit, noise) {
  w <- if (is_weighted(fit) || !is.null(users_weights(fit$data))) stats::weights(fit)
  if (!is.null(w)) ifelse(w > 0, noise / w, NA)
}

noise_spread <- function(fit, x) trend_spread(fit$noise_trend, noise_basis(fit$noise_trend, x)) + sum(fit$noise_tail)

# Returns TRUE if heavy tails of the noise were learned. If few rows leave the noise variance uncertain, predictions
# also have heavy tails, and `noise_tail` has the name "few".
has_learned_tails <- function(fit) !is.null(fit$noise_tail) && is.null(names(fit$noise_tail))

# Divides the weights of `data` by noise_factor(), the noise variance over s2; given_weights are the user's.
with_noise_trend <- function(data, trend) {
  factor <- noise_factor(trend, data$x)
  each <- if (is.null(data$group)) factor else factor[data$group]
  data$weights <- merged_weights(data) / factor
  data$shift$constant <- data$shift$constant - sum(log(each)) / 2
  if (!is.null(data$group)) data$shift$ss <- sum(data$twins$ss / factor)
  data["given_weights"] <- list(data$prior_weights)
  if (is.null(data$prior_weights)) data$prior_weights <- rep(1, length(data$response))
  used <- data$prior_weights > 0
  data$prior_weights[used] <- data$prior_weights[used] / each
  trend[c("range", "mean")] <- list(range(factor), mean(each))
  data$noise_trend <- trend
  data
}

# Returns the coefficients of a linear log noise variance, per unit of input, and their sds; NULL for smooth noise.
noise_coefficients <- function(fit) {
  trend <- fit$noise_trend
  if (is.null(trend) || !is.null(trend$smooth)) return(NULL)
  names <- paste0("noise.", trend$names)
  covariance <- dimnames_of(trend$covariance * tcrossprod(trend$rate), names)
  sd <- if (identical(fit$hyper, "fixed")) NA * trend$rate else sqrt(diag(covariance)) # given values have no sd
  list(estimate = stats::setNames(trend$gamma * trend$rate, names), sd = sd, covariance = covariance)
}

# Returns the number of coefficients of the log noise variance; for smooth noise, their effective number.
noise_df <- function(trend) {
  if (is.null(trend$smooth)) return(length(trend$gamma))
  round(length(trend$gamma) - sum(diag(trend$covariance) / trend$v[noise_parts(trend)]))
}

asks_no_noise <- function(noise) is.numeric(noise) && length(noise) == 1L && identical(as.double(noise), 0)

# Returns the noise variance of a fit that interpolates (`noise = 0`), in squared units of the response: about the
# smallest variance with which kernel matrices of smooth kernels have a Cholesky factor.
interpolation_noise <- function(kernel, data) {
  power <- response_units(data)$variance
  refuse_if(merge_all_equal_rows(data)$shift$ss > 1e-12 * power * data$n, "noise", "0",
            message = paste("`noise` = 0 cannot interpolate: rows with equal inputs have different responses.",
                            "Leave out `noise` to learn it."))
  variances <- kernel_values(kernel)[kernel_parameters(kernel)$what == "variance"]
  max(least_noise[["response"]] * in_units(data, power, 2), least_noise[["kernel"]] * sum(variances, na.rm = TRUE))
}

# Adds the coefficients gamma ~ N(0, v) of the log noise variance log s2 + B gamma to the parameters of a learning
# problem and of its Vecchia likelihood. `v` has a prior variance for each coefficient, `B` the features of the rows.
problem_with_trend <- function(problem, trend, v, B = noise_basis(trend, problem$pool$x)) {
  pool <- problem$pool
  last <- problem$last
  own <- seq_len(last)
  q <- length(v)
  given <- if (is.null(pool$weights)) 1 else pool$weights
  twins <- pool$twins
  wide <- problem
  wide$free <- c(problem$free, rep(TRUE, q))
  wide$lower <- c(problem$lower, rep(-6, q))
  wide$upper <- c(problem$upper, rep(6, q))
  wide$neighbours <- function(theta, ...) problem$neighbours(theta[own], ...)
  wide$vecchia <- function(theta, rows, neighbours, slopes = TRUE) {
    gamma <- theta[-own]
    log_factor <- drop(B %*% gamma)
    inside <- abs(log_factor) < most_trend
    basis <- if (all(inside)) B else B * inside
    factor <- exp(pmin(pmax(log_factor, -most_trend), most_trend))
    result <- problem$vecchia(theta[own], rows, neighbours, TRUE, given / factor, basis)
    if (!is.finite(result$value)) return(list(value = -Inf))
    prior <- problem$prior(theta[own])
    at <- list(value = result$value + prior$value - sum(gamma^2 / v) / 2,
               gradient = result$score + c(prior$gradient, -gamma / v),
               information = result$information + diag(c(prior$information, 1 / v)))
    if (!length(twins)) return(at)
    # Merging removed twins$rows rows with sums of squares twins$ss. Add -share (rows log(2 pi noise) + ss / noise),
    # where `share` is half of this sum's share of the log likelihood of all rows.
    noise <- exp(theta[[last]]) * factor
    share <- length(rows) / pool$n * pool$share / 2
    own_noise <- last - 1L + seq_len(ncol(basis) + 1L)
    basis <- cbind(1, basis)
    at$value <- at$value - share * sum(twins$rows * log(2 * pi * noise) + twins$ss / noise)
    at$gradient[own_noise] <- at$gradient[own_noise] + share * colSums(basis * (twins$ss / noise - twins$rows))
    at$information[own_noise, own_noise] <- at$information[own_noise, own_noise] +
      share * crossprod(basis, basis * twins$rows)
    at
  }
  wide
}

# Learns the coefficients gamma of the log noise variance, and their prior variance v in each part (linear, smooth),
# which starts at 0.3. In each round, MacKay's formula changes v to |gamma|^2 / e, e = q - trace(V) / v, where V is the
# posterior covariance of the part's q coefficients. Returns list(theta, value, trend) of the round with the largest
# Laplace approximation of the log marginal likelihood (here for one part),
#
#   log p(y | theta, gamma) + log prior(theta) - |gamma|^2 / (2 v) - (q / 2) log v - log det(V^{-1}) / 2,
#
# or NULL if the first search fails. trend$level has the variance of log s2 and its covariances with gamma. The search
# ends if the value is below `least` and v decreases, because the noise then becomes constant.
learn_noise <- function(problem, theta, trend, size, least = -Inf) {
  pool <- problem$pool
  trend <- place_noise_trend(trend, pool$x, kernel_lengths(problem$natural(theta)$kernel, ncol(pool$x)))
  B <- noise_basis(trend, pool$x)
  part <- noise_parts(trend)
  v <- rep(0.3, max(part))
  own <- seq_along(theta)
  now <- c(theta, numeric(length(part)))
  squares <- (pool$weights %||% 1) * (pool$y - mean(pool$y))^2 + (pool$twins$ss %||% 0)
  trend$largest <- max(squares / (1 + (pool$twins$rows %||% 0)))
  best <- NULL
  for (round in seq_len(noise_trend_sizes[["rounds"]])) {
    run <- climb(problem_with_trend(problem, trend, v[part], B), now, size, if (round == 1L) c(10L, 6L) else 6L, 0.05)
    if (!is.finite(run$value)) break
    now <- run$theta
    S <- information_of_rest(run$information, own, own[problem$free])
    gamma <- unname(now[-own])
    V <- information_inverse(S)
    occam <- -(sum(log(v[part])) + as.numeric(determinant(S)$modulus)) / 2
    if (is.null(best) || run$value + occam > best$value) {
      level <- if (problem$free[problem$last]) {
        others <- own[-problem$last]
        information_inverse(information_of_rest(run$information, others, others[problem$free[others]]))[1L, ]
      } else {
        numeric(length(gamma) + 1L)
      }
      trend[c("gamma", "v", "covariance", "level")] <- list(gamma, v, V, level)
      trend$most <- min(max(log(trend$largest) - now[[problem$last]], 0), most_trend)
      best <- list(theta = now[own], value = run$value + occam, trend = trend)
    }
    old <- v
    v <- vapply(seq_along(v), function(p) {
      known <- sum(part == p) - sum(diag(V)[part == p]) / v[p]
      if (known < 0.05) v[p] / 4 else sum(gamma[part == p]^2) / known
    }, 0)
    v <- pmin(pmax(v, 1e-3), 10)
    if (all(abs(log(v / old)) < 0.2) || all(v < old) && run$value + occam < least || !in_time(pool)) break
  }
  best
}

# Returns the information matrix of all parameters but `own`. The parameters `free` of `own` are integrated out.
information_of_rest <- function(information, own, free) {
  S <- information[-own, -own, drop = FALSE]
  if (!length(free)) return(S)
  A <- information[free, free, drop = FALSE]
  C <- information[-own, free, drop = FALSE]
  S - C %*% solve(A + diag(1e-9 * max(diag(A)), nrow(A)), t(C))
}

# Returns the inverse of an information matrix. A row with an extreme input gives its diagonal very different sizes. The
# matrix can then be singular to rounding errors, so it is scaled to a unit diagonal.
information_inverse <- function(S) {
  scale <- if (rcond(S) < .Machine$double.eps) tcrossprod(1 / sqrt(diag(S))) else 1
  scale * solve(scale * S)
}
