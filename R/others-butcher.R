# Methods for packages butcher and vetiver, registered when these are loaded.

#' @exportS3Method butcher::axe_data
axe_data.gp_fit <- function(x, verbose = FALSE, ...) {
  x <- check_any_fit(x, "x")
  if (is.null(x$data) || !is.null(x$near)) return(x)
  x$frame <- make_frame(c(list(frame = x$frame), x$data[c("x", "offset", "prior_weights")]), keep_data = FALSE)
  x["data"] <- x["asked"] <- list(NULL)
  if (!is.null(x$reference)) x$reference <- axe_data.gp_fit(kept_reference(x$reference, x))
  x
}

#' @exportS3Method butcher::axe_env
axe_env.gp_fit <- function(x, verbose = FALSE, ...) {
  x <- check_any_fit(x, "x")
  x["terms"] <- list(drop_environment(x$terms))
  x$frame["terms"] <- list(drop_environment(x$frame$terms))
  if (!is.null(x$data)) x$data[c("terms", "frame")] <- list(x$terms, x$frame)
  if (!is.null(x$call)) x$call <- slim_call(x$call)
  x
}

#' @exportS3Method butcher::axe_call
axe_call.gp_fit <- function(x, verbose = FALSE, ...) {
  x["call"] <- list(NULL)
  x
}

#' @exportS3Method butcher::axe_fitted
axe_fitted.gp_fit <- function(x, verbose = FALSE, ...) {
  x["z_trace"] <- list(NULL)
  x
}

# ---- vetiver --------------------------------------------------------------------------------------------------------

#' @exportS3Method vetiver::vetiver_create_description
vetiver_create_description.gp_fit <- function(model) paste("A", fit_title(check_any_fit(model, "model")))

#' @exportS3Method vetiver::vetiver_create_meta
vetiver_create_meta.gp_fit <- function(model, metadata) vetiver::vetiver_meta(metadata, required_pkgs = "pfdtc")

#' @exportS3Method vetiver::vetiver_prepare_model
vetiver_prepare_model.gp_fit <- function(model) {
  axe_env.gp_fit(axe_data.gp_fit(axe_fitted.gp_fit(axe_call.gp_fit(model))))
}

#' @exportS3Method vetiver::vetiver_ptype
vetiver_ptype.gp_fit <- function(model, ...) {
  model <- check_any_fit(model, "model")
  given <- list(...)$prototype_data
  if (!is.null(given)) return(given[0L, , drop = FALSE])
  frame <- model$frame
  if (!by_formula(model)) {
    return(as.data.frame(matrix(0, 0L, length(frame$columns), dimnames = list(NULL, frame$columns))))
  }
  of_kind <- function(v) {
    if (v$name %in% frame$required && v$kind != "matrix") {
      return(switch(v$kind, factor = factor(levels = v$levels), logical = logical(), numeric()))
    }
    abort_input("prototype_data", sprintf("missing where the formula has `%s`", v$name), "some rows of the data")
  }
  names <- vapply(frame$variables, `[[`, "", "name")
  as.data.frame(stats::setNames(lapply(frame$variables, of_kind), names), optional = TRUE)
}

#' @exportS3Method vetiver::handler_startup
handler_startup.gp_fit <- function(vetiver_model) vetiver::attach_pkgs(vetiver_model$metadata$required_pkgs)

#' @exportS3Method vetiver::handler_predict
handler_predict.gp_fit <- function(vetiver_model, ...) {
  function(req) {
    new <- vetiver::vetiver_type_convert(req$body, vetiver_model$prototype)
    p <- stats::predict(vetiver_model$model, as.data.frame(new), ...)
    if (!is.matrix(p)) return(list(.pred = unname(p)))
    list(.pred = unname(p[, "fit"]), .pred_lower = unname(p[, "lwr"]), .pred_upper = unname(p[, "upr"]))
  }
}
