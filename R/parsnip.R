# A model specification for package parsnip, whose table of models learns of it when that is loaded.

#' Gaussian process regression as a model of parsnip
#'
#' `gp_reg()` is a model specification, as those of package parsnip are: for `fit()`, workflows, recipes and `tune`.
#' Loading both packages is all it takes. Engines: `"pfdtc"`, which is [pfdtc()], and `"pfdtc_exact"`, [gp_exact()].
#'
#' Predictions: `type = "numeric"`, `"conf_int"` (credible intervals of the mean), `"pred_int"` (of a new response) and
#' `"raw"`, as [predict.gp_fit()] returns them by default; of classes `"class"`, `"prob"`, `"conf_int"` (of the
#' probabilities) and `"raw"`. Factors go to the engine as they are. Case weights are precisions. Other arguments of the
#' engine, `control` or `tol` among them, are given by `parsnip::set_engine()`, so is `family = poisson()` for counts.
#'
#' @param mode `"regression"`, or `"classification"` for a factor of two levels by [stats::binomial()], whose `"prob"`
#'   are averaged over f.
#' @param engine `"pfdtc"` or, for regression, `"pfdtc_exact"`.
#' @param kernel a kernel, see [kernel_se()]; `NULL`: chosen by the fit.
#' @param inducing_points the most inducing points wanted, `m` of [pfdtc()]; of no effect on the exact engine, which
#'   refuses it. As everywhere in parsnip, `tune()` marks what is to be tuned: there are ranges for this and for
#'   `neighbors`; for `noise` and `kernel` the grid has to be given, of the latter as a list column of kernels.
#' @param neighbors how many rows near each prediction are treated exactly, `neighbours` of [pfdtc()].
#' @param noise the variance to start from, or with `hyper = "fixed"` to use; `NULL`: learned.
#' @param object a specification.
#' @param parameters a data frame of one row, as of `tune`, or a list, with values for arguments of the specification.
#' @param fresh start anew, instead of changing what is given?
#' @param ... not used.
#' @return A specification of class `c("gp_reg", "model_spec")`.
#' @section Errors: class `pfdtc_error_input` where parsnip is not installed.
#' @section Invariants: what a fitted specification predicts is `predict()` of the engine's fit.
#' @seealso [pfdtc()], [gp_exact()]
#' @examples
#' if (requireNamespace("parsnip", quietly = TRUE)) {
#'   spec <- gp_reg(kernel = kernel_se())
#'   fitted <- parsnip::fit(spec, dist ~ speed, cars)
#'   predict(fitted, data.frame(speed = c(5, 15)), type = "pred_int")
#' }
#' @export
gp_reg <- function(mode = "regression", engine = "pfdtc", kernel = NULL, inducing_points = NULL, neighbors = NULL,
                   noise = NULL) {
  needs_package("parsnip", "gp_reg()", "install.packages(\"parsnip\"), or call pfdtc() itself.")
  args <- list(kernel = rlang::enquo(kernel), inducing_points = rlang::enquo(inducing_points),
               neighbors = rlang::enquo(neighbors), noise = rlang::enquo(noise))
  parsnip::new_model_spec("gp_reg", args = args, eng_args = NULL, mode = mode, user_specified_mode = !missing(mode),
                          method = NULL, engine = engine, user_specified_engine = !missing(engine))
}

#' @rdname gp_reg
#' @importFrom stats update
#' @export
update.gp_reg <- function(object, parameters = NULL, kernel = NULL, inducing_points = NULL, neighbors = NULL,
                          noise = NULL, fresh = FALSE, ...) {
  args <- list(kernel = rlang::enquo(kernel), inducing_points = rlang::enquo(inducing_points),
               neighbors = rlang::enquo(neighbors), noise = rlang::enquo(noise))
  parsnip::update_spec(object, parameters = parameters, args_enquo_list = args, fresh = fresh, cls = "gp_reg", ...)
}

# No parameter of package dials holds kernels, or noises in the units of the data: their values come from the grid.
#' @exportS3Method generics::tunable
tunable.gp_reg <- function(x, ...) {
  known <- NextMethod()
  known$call_info[known$name %in% c("kernel", "noise")] <- list(NULL)
  known
}

# A cell of a grid's list column comes as a list of the kernel.
#' @exportS3Method parsnip::translate
translate.gp_reg <- function(x, engine = x$engine, ...) {
  x <- NextMethod()
  kernel <- rlang::eval_tidy(x$method$fit$args$kernel)
  if (is.list(kernel) && length(kernel) == 1L && inherits(kernel[[1L]], "pfdtc_kernel")) {
    x$method$fit$args$kernel <- kernel[[1L]]
  }
  x
}

# What parsnip's table of models is to know. `...`: of the hook that calls this.
tell_parsnip <- function(...) {
  if ("gp_reg" %in% parsnip::get_model_env()$models) return(invisible())
  parsnip::set_new_model("gp_reg")
  ours <- list(kernel = c("kernel", NA), noise = c("noise", NA), inducing_points = c("m", "num_terms"),
               neighbors = c("neighbours", "neighbors"))
  tell_engine("regression", "pfdtc", "pfdtc", list())
  tell_engine("regression", "pfdtc_exact", "gp_exact", list())
  tell_engine("classification", "pfdtc", "pfdtc", list(family = quote(stats::binomial())))
  known <- list(pfdtc = names(ours), pfdtc_exact = c("kernel", "noise"))
  for (engine in names(known)) {
    for (arg in known[[engine]]) {
      range <- switch(arg, inducing_points = c(20L, 500L), neighbors = c(0L, 80L))
      parsnip::set_model_arg("gp_reg", engine, parsnip = arg, original = ours[[arg]][1L], has_submodel = FALSE,
                             func = if (is.null(range)) list(pkg = "pfdtc", fun = "gp_reg") else
                               list(pkg = "dials", fun = ours[[arg]][2L], range = range))
    }
  }
}

tell_engine <- function(mode, engine, fun, defaults) {
  parsnip::set_model_mode("gp_reg", mode)
  parsnip::set_model_engine("gp_reg", mode, engine)
  parsnip::set_dependency("gp_reg", engine, "pfdtc", mode = mode)
  parsnip::set_encoding("gp_reg", mode, engine, options = list(
    predictor_indicators = "none", compute_intercept = FALSE, remove_intercept = FALSE, allow_sparse_x = FALSE))
  parsnip::set_fit("gp_reg", mode, engine, value = list(
    interface = "formula", protect = c("formula", "data", "weights"), func = c(pkg = "pfdtc", fun = fun),
    defaults = defaults))
  tell <- function(what, post = NULL, ...) {
    parsnip::set_pred("gp_reg", mode, engine, type = what, value = list(
      pre = NULL, post = post, func = c(fun = "predict"),
      args = list(object = quote(object$fit), newdata = quote(new_data), ...)))
  }
  tell("raw")
  tell("conf_int", if (mode == "regression") band_for_parsnip else class_bands_for_parsnip, type = "response",
       interval = "credible", level = quote(level))
  if (mode == "regression") {
    tell("numeric", type = "response")
    tell("pred_int", band_for_parsnip, type = "response", interval = "prediction", level = quote(level))
  } else {
    tell("class", type = "class")
    tell("prob", probabilities_for_parsnip, type = "response")
  }
}

band_for_parsnip <- function(results, object) {
  data.frame(.pred_lower = unname(results[, "lwr"]), .pred_upper = unname(results[, "upr"]))
}

# A column a class; parsnip names those of probabilities.
probabilities_for_parsnip <- function(results, object) {
  stats::setNames(data.frame(1 - unname(results), unname(results)), object$lvl)
}

class_bands_for_parsnip <- function(results, object) {
  lower <- unname(results[, "lwr"])
  upper <- unname(results[, "upr"])
  stats::setNames(data.frame(1 - upper, 1 - lower, lower, upper),
                  paste0(c(".pred_lower_", ".pred_upper_"), rep(object$lvl, each = 2L)))
}
