# Runs when the package is loaded.

.onLoad <- function(libname, pkgname) {
  start_engine()
  when_loaded("marginaleffects", register_marginaleffects)
  when_loaded("mlr3", function(...) {
    mlr3::mlr_learners$add("regr.pfdtc", function() mlr3_learner())
    mlr3::mlr_learners$add("classif.pfdtc", function() mlr3_learner(type = "classif"))
  })
  when_loaded("parsnip", register_parsnip)
}

# Calls `register` now, or as soon as `package` is loaded.
when_loaded <- function(package, register) {
  if (isNamespaceLoaded(package)) register() else setHook(packageEvent(package, "onLoad"), register)
}

#' @keywords internal
#' @aliases pfdtc-package
#' @importFrom stats add1 AIC anova BIC case.names coef confint cooks.distance deviance df.residual dfbetas drop1
#' @importFrom stats extractAIC fitted formula hatvalues influence logLik model.frame nobs predict residuals rstandard
#' @importFrom stats rstudent sigma simulate terms update variable.names vcov weights
#' @importFrom graphics plot
#' @useDynLib pfdtc, .registration = TRUE
#' @section Conditions: Errors about arguments have class `pfdtc_error_input` and the fields `argument` and `got`.
#'   Failed computations have class `pfdtc_error_numerical`, failures of row sources `pfdtc_error_source`. Warnings have
#'   the classes `pfdtc_warning_convergence`, `pfdtc_warning_evidence` and `pfdtc_warning_small`, messages
#'   `pfdtc_message`. Start with [pfdtc()] and `vignette("pfdtc")`.
"_PACKAGE"
