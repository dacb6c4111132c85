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

# Returns the model with the hyperparameters `hyper`, list(kernel, noise) in units of the cleaned y.
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

prior_at <- function(model, x) kernel_diagonal(model$kernel, x)

# Returns the largest k(x, x) at the rows of these matrices.
prior_most <- function(model, ...) {
  if (!varies(model$kernel)) return(total_variance(model$kernel))
  max(0, vapply(list(...), function(x) if (NROW(x)) max(prior_at(model, x)) else 0, 0))
}

# ---- the functions that fit a model ---------------------------------------------------------------------------------

# The properties of the functions that fit. A new function is a row here and a function in pfdtc.R.
#
#   title       the name in print() and in figures
#   objective   the objective of the inducing points: "pf", "vfe" or "none" (they stay); NULL: no inducing points
#   joint       can hyperparameters be learned together with the objective?
#   chooses     does the function choose the kind of its posterior?
#   dtc         is it a DTC posterior? The theorem and the pF divergence need one.
#   reference   can it be a reference?
#   sor, fitc   is it one of these two?
#   some        is it the exact posterior of some of the rows?
family <- function(title, objective = "none", joint = FALSE, chooses = FALSE, dtc = FALSE, reference = FALSE,
                   sor = FALSE, fitc = FALSE, some = FALSE) {
  as.list(environment())
}

gp_families <- list(
  pfdtc = family("pF-DTC", "pf", joint = TRUE, chooses = TRUE, dtc = TRUE),
  gp_vfe = family("VFE (sparse variational)", "vfe", joint = TRUE, dtc = TRUE),
  gp_dtc = family("DTC", dtc = TRUE, reference = TRUE),
  gp_sor = family("SoR", sor = TRUE),
  gp_fitc = family("FITC", fitc = TRUE),
  gp_subsample = family("the exact posterior of a subsample", NULL, some = TRUE),
  gp_exact = family("the exact posterior", NULL, joint = TRUE))

# Returns the row of gp_families for a fit, for settings, or for any list with a `method`.
method_traits <- function(fit) gp_families[[fit$method]]

# Returns TRUE if equal rows are merged. A subsample draws rows, and FITC has a variance for each row.
merges_rows <- function(method) !gp_families[[method]]$some && !gp_families[[method]]$fitc

check_dtc <- function(fit, hint) {
  if (!is.null(fit$factors$groupings)) {
    abort_input("fit", "one with groups beside inducing points", "one without groups", hint = hint)
  }
  if (method_traits(fit)$dtc) return(invisible(fit))
  abort_input("fit", sprintf("a fit by %s()", fit$method), "a fit by pfdtc(), gp_vfe() or gp_dtc()", hint = hint)
}
