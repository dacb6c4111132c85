# A model is the kernel and the noise of an exact Gaussian process, with the units of the response. Users see kernel and
# noise in units of y. Everything is computed with the cleaned y = (response - center) / scale.

# Makes a model from `kernel` and `noise` in units of y; NULL: to be learned. The model has a compiled kernel in units
# of the cleaned y.
new_model <- function(kernel, noise, center = 0, scale = 1) {
  model <- list(kernel = kernel, noise = noise, center = center, scale = scale)
  if (!is.null(kernel)) model$kernel <- scale_kernel(compile_kernel(kernel), over = scale^2)
  if (!is.null(noise)) model$noise <- noise / scale^2
  model
}

# Returns the model of a fit, or of any list(kernel, noise, center, scale) in units of y.
model_of <- function(fit) new_model(fit$kernel, fit$noise, fit$center, fit$scale)

# Returns the model with other hyperparameters: list(kernel, noise) in units of the cleaned y.
model_with <- function(model, hyper) {
  model[c("kernel", "noise")] <- hyper[c("kernel", "noise")]
  model
}

# Returns list(kernel, noise) in units of y, with the kernel as users see it.
model_units <- function(model) {
  list(kernel = as_kernel(scale_kernel(model$kernel, in_units(model, 1, 2))), noise = in_units(model, model$noise, 2))
}

# Converts a result for the cleaned y to units of y, without the centre. `power` = 2 is for variances. `model` may also
# be a fit or data.
in_units <- function(model, v, power = 1) model$scale^power * v

# Returns the logs of the hyperparameters, in the order of coef().
model_theta <- function(model) log(c(kernel_values(model$kernel), model$noise))

# Returns k(x, x) at the rows of x.
kernel_diagonal <- function(kernel, x) native_kernel_diagonal(kernel, x)

prior_at <- function(model, x) kernel_diagonal(model$kernel, x)

# Returns the largest k(x, x) at the rows of these matrices.
prior_most <- function(model, ...) {
  if (!varies(model$kernel)) return(total_variance(model$kernel))
  max(0, vapply(list(...), function(x) if (NROW(x)) max(prior_at(model, x)) else 0, 0))
}
