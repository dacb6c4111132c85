# Methods for package emmeans, registered when it is loaded.

#' @rdname insight-methods
#' @exportS3Method emmeans::recover_data
recover_data.gp_fit <- function(object, data = NULL, ...) {
  object <- check_any_fit(object, "object")
  if (is.null(object$terms)) abort_input("object", "a fit from a matrix", "a fit from a formula")
  terms <- stats::delete.response(object$terms)
  group <- vapply(object$frame$variables, function(v) v$kind == "group", NA)
  if (any(group)) {
    inputs <- vapply(object$frame$variables[!group], `[[`, "", "name")
    if (!length(inputs)) abort_input("object", "a fit of groups alone", "a fit with an input")
    terms <- stats::terms(stats::reformulate(inputs))
  }
  emmeans::recover_data(object$call, terms, object$na.action, data = data, ...)
}

#' @exportS3Method emmeans::emm_basis
emm_basis.gp_fit <- function(object, trms, xlev, grid, ...) {
  if (has_labels(response_of(object))) {
    abort_input("object", "a fit of several classes", "a fit with one latent function",
                hint = "Average predict(type = \"response\") over the rows of a grid.")
  }
  p <- stats::predict(object, grid, full_cov = TRUE, re = FALSE)
  response <- response_of(object)
  label <- if (response$reads == "classes") "prob" else if (response$discrete) "rate" else "response"
  list(X = diag(nrow(grid)), bhat = unname(p$fit), nbasis = matrix(NA), V = unname(p$cov),
       dffun = function(k, dfargs) Inf, dfargs = list(), # `misc` is what emmeans needs to go from f to the response
       misc = if (fit_link(object) == "identity") list() else list(tran = fit_link(object), inv.lbl = label))
}
