#' @keywords internal
#' @aliases pfdtc-package
#' @importFrom stats AIC BIC coef fitted formula logLik model.frame nobs predict residuals sigma simulate terms
#' @importFrom stats variable.names weights
#' @importFrom graphics plot
#' @useDynLib pfdtc, .registration = TRUE
#' @seealso [pfdtc()] to start with, and `vignette("pfdtc")`.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), Scalable Gaussian Process Inference with Finite-data Mean
#'   and Variance Guarantees, AISTATS. \url{https://proceedings.mlr.press/v89/huggins19a.html}
"_PACKAGE"
