# What a fit says of f at rows.

# list(mean, var_sor, resid): the mean, the SoR variance, and what the inducing points leave of the prior variance. The
# exact posterior, of all rows or some, has nothing to tell apart: all its variance is in var_sor.
predict_posterior <- function(fit, x) {
  model <- model_of(fit)
  if (!is.null(fit$x)) {
    p <- native_exact_predict(fit$factors, fit$x, model$kernel, x)
    return(list(mean = p$mean, var_sor = p$variance, resid = numeric(nrow(x))))
  }
  if (!is.null(fit$near)) {
    p <- predict_near(fit$near, near_rows(fit), fit$inducing, model, x, fit$control)
    return(list(mean = p$mean, var_sor = p$var_far, resid = p$var_near))
  }
  p <- native_predict(fit$factors, fit$inducing, model, x)
  list(mean = p$mean, var_sor = p$sor_variance, resid = p$unexplained)
}

# The rows that are near: all, or those that were kept of a source.
near_rows <- function(fit) if (is.null(fit$near$rows)) fit$data else fit$near$rows

predict_covariance <- function(fit, x) {
  model <- model_of(fit)
  if (!is.null(fit$x)) return(native_exact_covariance(fit$factors, fit$x, model$kernel, x))
  if (!is.null(fit$near)) return(covariance_near(fit$near, near_rows(fit), fit$inducing, model, x, fit$control))
  native_covariance(fit$factors, fit$inducing, model, x, sor = gp_family(fit)$sor)
}

fit_variance <- function(fit, p) if (gp_family(fit)$sor) p$var_sor else p$var_sor + p$resid

# Mean without offset and variance of f at the rows of x, in the units of y. Rounding can push a
# variance that is zero in exact arithmetic below zero.
posterior_at <- function(fit, x) {
  if (!nrow(x)) return(list(mean = numeric(), var = numeric()))
  p <- predict_posterior(fit, x)
  list(mean = fit$center + in_units(fit, p$mean), var = in_units(fit, pmax(fit_variance(fit, p), 0), 2))
}

# cbind(fit, lwr, upr): the band of this probability, between these means (of a certificate, else the same) and this
# variance.
normal_band <- function(fit, var, level, lower = fit, upper = fit) {
  half <- stats::qnorm((1 + level) / 2) * sqrt(var)
  cbind(fit = fit, lwr = lower - half, upr = upper + half)
}

# Covariance of f between the rows asked for, in squared units of y.
covariance_at <- function(fit, rows) {
  n <- length(rows$index)
  check_memory(8 * max(n, nrow(rows$x))^2, sprintf("the covariance of %d rows", n))
  cov <- if (nrow(rows$x)) in_units(fit, predict_covariance(fit, rows$x), 2) else matrix(0, 0L, 0L)
  if (!identical(rows$index, seq_len(nrow(rows$x)))) {
    cov <- cov[rows$index, rows$index, drop = FALSE]
  }
  dimnames(cov) <- list(rows$names, rows$names)
  cov
}

# Rows to predict at: list(x = the inputs, each once; index = row of x for each row wanted, NA where
# unknown; offset; names).
new_rows <- function(fit, newdata, na.action) {
  new <- new_inputs(fit, newdata, na.action)
  index <- rep(NA_integer_, length(new$keep))
  index[new$keep] <- seq_len(sum(new$keep))
  list(x = new$x, index = index, offset = new$offset, names = new$row_names)
}

# The same for the training rows as given: merged rows apart again, na.exclude padded.
training_rows <- function(fit) {
  data <- training_data(fit)
  rows <- training_inputs(data)
  offset <- if (is.null(data$offset)) numeric(length(rows$index)) else data$offset
  index <- stats::napredict(fit$na.action, stats::setNames(rows$index, names(data$response)))
  list(x = rows$x, index = unname(index), offset = stats::napredict(fit$na.action, offset),
       names = names(index))
}

# The data a fit has kept, or the error that says how to get on without.
training_data <- function(fit) {
  if (is.null(fit$data) && !is.null(fit$source)) {
    abort_input("newdata", "missing", "rows",
                message = "This needs the training rows, and a fit of a row source keeps none.",
                hint = "Give `newdata`: predict() takes a source.")
  }
  if (is.null(fit$data)) {
    abort_input("keep_data", "FALSE", "TRUE in the fit",
                message = paste("This needs the training rows, and the fit was made with",
                                "`keep_data = FALSE`."),
                hint = "Give `newdata`, or fit with `keep_data = TRUE`.")
  }
  fit$data
}

# list(mean, var) of the latent function, in the units of y
latent_at <- function(fit, newdata) posterior_at(fit, new_inputs(fit, newdata)$x)

# A jitter well above the backward error of the Cholesky factorisation of k(Z, Z) (0.1 to 0.2 m eps on points that
# differ). What is computed then belongs to points with that jitter exactly, see certify.h, and a jitter of this size
# moves nothing by more than rounding does anyway.
rounding_jitter <- function(m) 4 * (m + 8) * .Machine$double.eps

# Of sums over rows and of factorisations, relative to their size, as in posterior_norms(). Errors of n equal terms have
# a common sign: n / 110 eps was seen with a BLAS that adds them one by one.
rounding_growth <- function(m, n) (4 * (sqrt(m) + sqrt(n) + 4) + n / 64) * .Machine$double.eps

# of squared E-norms: certify_slack() in C
rounding_slack <- function(m, n) 4 * (m + sqrt(n) + 32) * .Machine$double.eps

# of C C'
logdet <- function(C) 2 * sum(log(diag(C)))

# On points of which many say the same, errors have a common sign and grow like m^2 / 80 eps.
safe_jitter <- function(m) rounding_jitter(m) + m^2 / 16 * .Machine$double.eps
