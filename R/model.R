# A model: kernel and noise of one exact Gaussian process, and the units of the response. Users have both in units of y;
# everything is computed with those of the cleaned y = (response - center) / scale. Here one is turned into the other.

# `kernel` and `noise` in units of y; what is to be learned is NULL. In the model they are those of the cleaned y.
new_model <- function(kernel, noise, center = 0, scale = 1) {
  model <- list(kernel = kernel, noise = noise, center = center, scale = scale)
  if (!is.null(kernel)) model$kernel <- scale_kernel(compile_kernel(kernel), over = scale^2)
  if (!is.null(noise)) model$noise <- noise / scale^2
  model
}

# That of a fit, or of anything else that has kernel and noise in units of y beside `center` and `scale`.
model_of <- function(fit) new_model(fit$kernel, fit$noise, fit$center, fit$scale)

# The model with other hyperparameters: list(kernel, noise), as computed with.
model_with <- function(model, hyper) {
  model[c("kernel", "noise")] <- hyper[c("kernel", "noise")]
  model
}

# list(kernel, noise) in units of y.
model_units <- function(model) {
  list(kernel = as_kernel(scale_kernel(model$kernel, in_units(model, 1, 2))), noise = in_units(model, model$noise, 2))
}

# What was computed with the cleaned y in units of y, without the centre. `power` 2: a variance. `model`: or a fit, or
# data.
in_units <- function(model, v, power = 1) model$scale^power * v

# Logs of the hyperparameters, in the order of coef().
model_theta <- function(model) log(c(kernel_values(model$kernel), model$noise))

# Returns k(x, x) at the rows of x.
kernel_diagonal <- function(kernel, x) native_kernel_diagonal(kernel, x)

prior_at <- function(model, x) kernel_diagonal(model$kernel, x)

# The most that k(x, x) is at the rows of these matrices; where it is the same everywhere, that.
prior_most <- function(model, ...) {
  if (!varies(model$kernel)) return(total_variance(model$kernel))
  max(0, vapply(list(...), function(x) if (NROW(x)) max(prior_at(model, x)) else 0, 0))
}
