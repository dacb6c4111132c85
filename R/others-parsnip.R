# Defines a model for package parsnip and a learner for mlr3, registered when these packages are loaded.

#' Fit Gaussian processes with parsnip and mlr3
#'
#' `gp_reg()` makes a model specification for parsnip's `fit()`, workflows, recipes and `tune`. `mlr3_learner()` makes
#' an mlr3 learner that fits by [pfdtc()]. `mlr3::lrn("regr.pfdtc")` and `mlr3::lrn("classif.pfdtc")` make the same
#' learner.
#'
#' Prediction types of `gp_reg()` are `"numeric"`, `"conf_int"` (credible), `"pred_int"` and `"raw"`. For classes they
#' are `"class"`, `"prob"`, `"conf_int"` and `"raw"`, for censored times `"time"` (the median), `"survival"`,
#' `"linear_pred"` (f) and `"raw"`. Pass other arguments, such as `tol` or `family = poisson()`, to
#' `parsnip::set_engine()`. `tune()` has ranges for `inducing_points` and `neighbors`. Values of `noise` and kernels (in
#' a list column) are tuned by a grid. The learner predicts means, with `predict_type = "se"` also the sd of f; for
#' classification it predicts classes, with `"prob"` also probabilities. Its `m`, `neighbours`, `noise`, `tol` and
#' `hyper` have ranges for tuning. Case weights divide the noise variance.
#' @param mode `"regression"`, `"classification"` for a factor, or `"censored regression"` for `survival::Surv()`.
#' @param engine `"pfdtc"` ([pfdtc()]), or for regression `"pfdtc_exact"` ([gp_exact()]).
#' @param kernel,inducing_points,neighbors,noise Arguments `kernel`, `m`, `neighbours` and `noise` of [pfdtc()].
#' @param object,parameters,fresh A specification, arguments to change, and whether to reset all others, as in
#'   `parsnip::set_args()`.
#' @param ... For `mlr3_learner()`, arguments of [pfdtc()]: `m`, `tol`, `kernel`, `noise`, `hyper`, `neighbours`,
#'   `inducing`, `aux`, `mean`, `control`.
#' @param type `"regr"` for numbers or `"classif"` for classes.
#' @return A specification of class `c("gp_reg", "model_spec")`, or an R6 object of class `LearnerRegr` or
#'   `LearnerClassif` with the fit in `$model` after training. If the package is not installed, the error has class
#'   `pfdtc_error_input`.
#' @seealso [pfdtc()], [gp_exact()]
#' @examples
#' if (requireNamespace("parsnip", quietly = TRUE)) {
#'   fitted <- parsnip::fit(gp_reg(kernel = kernel_se()), dist ~ speed, cars)
#'   predict(fitted, data.frame(speed = c(5, 15)), type = "pred_int")
#' }
#' if (requireNamespace("mlr3", quietly = TRUE)) {
#'   learner <- mlr3_learner(kernel = kernel_se())
#'   learner$train(mlr3::as_task_regr(cars, target = "dist"))
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
#' @export
update.gp_reg <- function(object, parameters = NULL, kernel = NULL, inducing_points = NULL, neighbors = NULL,
                          noise = NULL, fresh = FALSE, ...) {
  args <- list(kernel = rlang::enquo(kernel), inducing_points = rlang::enquo(inducing_points),
               neighbors = rlang::enquo(neighbors), noise = rlang::enquo(noise))
  parsnip::update_spec(object, parameters = parameters, args_enquo_list = args, fresh = fresh, cls = "gp_reg", ...)
}

# Package dials has no parameter for kernels, nor for a noise variance in units of the data.
#' @exportS3Method generics::tunable
tunable.gp_reg <- function(x, ...) {
  known <- NextMethod()
  known$call_info[known$name %in% c("kernel", "noise")] <- list(NULL)
  known
}

# Takes the kernel out of a list column of a grid, whose cells are lists of one kernel.
#' @exportS3Method parsnip::translate
translate.gp_reg <- function(x, engine = x$engine, ...) {
  x <- NextMethod()
  kernel <- rlang::eval_tidy(x$method$fit$args$kernel)
  if (is.list(kernel) && length(kernel) == 1L && inherits(kernel[[1L]], "pfdtc_kernel")) {
    x$method$fit$args$kernel <- kernel[[1L]]
  }
  x
}

# This list has the prediction types of each mode: arguments of predict(), and `post`, which makes parsnip's result.
parsnip_types <- list(
  regression = list(
    raw = NULL, numeric = list(type = "response"),
    conf_int = list(post = "band", type = "response", interval = "credible", level = quote(level)),
    pred_int = list(post = "band", type = "response", interval = "prediction", level = quote(level))),
  classification = list(
    raw = NULL, class = list(type = "class"), prob = list(post = "prob", type = "response"),
    conf_int = list(post = "class_bands", type = "response", interval = "credible", level = quote(level))),
  "censored regression" = list(
    raw = NULL, time = list(type = "median"), linear_pred = list(type = "latent"),
    survival = list(post = "curves", type = "survival", times = quote(eval_time))))

# Adds the model to parsnip's table. `...` comes from the hook that calls this function.
register_parsnip <- function(...) {
  if ("gp_reg" %in% parsnip::get_model_env()$models) return(invisible())
  parsnip::set_new_model("gp_reg")
  posts <- list(
    band = function(results, object) {
      data.frame(.pred_lower = unname(results[, "lwr"]), .pred_upper = unname(results[, "upr"]))
    },
    prob = function(results, object) class_columns(results, object$lvl),
    class_bands = class_bands_for_parsnip,
    curves = function(results, object) { # a data frame for each row; columns are named by times
      out <- data.frame(row.names = seq_len(nrow(results)))
      times <- as.numeric(colnames(results))
      out$.pred <- lapply(seq_len(nrow(results)), function(i) {
        data.frame(.eval_time = times, .pred_survival = unname(results[i, ]))
      })
      out
    })
  for (mode in names(parsnip_types)) {
    parsnip::set_model_mode("gp_reg", mode)
    funs <- c(pfdtc = "pfdtc", if (mode == "regression") c(pfdtc_exact = "gp_exact"))
    for (engine in names(funs)) {
      parsnip::set_model_engine("gp_reg", mode, engine)
      parsnip::set_dependency("gp_reg", engine, "pfdtc", mode = mode)
      parsnip::set_encoding("gp_reg", mode, engine, options = list(
        predictor_indicators = "none", compute_intercept = FALSE, remove_intercept = FALSE, allow_sparse_x = FALSE))
      parsnip::set_fit("gp_reg", mode, engine, value = list(
        interface = "formula", protect = c("formula", "data", "weights"), func = c(pkg = "pfdtc", fun = funs[[engine]]),
        defaults = list()))
      for (type in names(parsnip_types[[mode]])) {
        ask <- parsnip_types[[mode]][[type]]
        parsnip::set_pred("gp_reg", mode, engine, type = type, value = list(
          pre = NULL, post = if (!is.null(ask$post)) posts[[ask$post]], func = c(fun = "predict"),
          args = c(list(object = quote(object$fit), newdata = quote(new_data)), ask[setdiff(names(ask), "post")])))
      }
    }
  }
  dials <- function(fun, range) list(pkg = "dials", fun = fun, range = range)
  own <- list(pkg = "pfdtc", fun = "gp_reg") # dials has no such parameter
  ours <- list(pfdtc = list(kernel = own, noise = own, inducing_points = dials("num_terms", c(20L, 500L)),
                            neighbors = dials("neighbors", c(0L, 80L))), pfdtc_exact = list(kernel = own, noise = own))
  for (engine in names(ours)) {
    for (arg in names(ours[[engine]])) {
      original <- switch(arg, inducing_points = "m", neighbors = "neighbours", arg)
      parsnip::set_model_arg("gp_reg", engine, parsnip = arg, original = original, has_submodel = FALSE,
                             func = ours[[engine]][[arg]])
    }
  }
}

# Returns a data frame with a column of probabilities for each class.
class_columns <- function(p, levels) {
  if (is.matrix(p)) return(as.data.frame(p, row.names = FALSE))
  stats::setNames(data.frame(1 - unname(p), unname(p)), levels)
}

class_bands_for_parsnip <- function(results, object) {
  ends <- if (length(dim(results)) == 3L) results[, c("lwr", "upr"), ] else
    cbind(1 - results[, c("upr", "lwr")], results[, c("lwr", "upr")]) # probabilities of the second class
  out <- as.data.frame(matrix(ends, nrow(results)))
  stats::setNames(out, paste0(c(".pred_lower_", ".pred_upper_"), rep(object$lvl, each = 2L)))
}

# ---- mlr3 -----------------------------------------------------------------------------------------------------------

#' @rdname gp_reg
#' @export
mlr3_learner <- function(..., type = c("regr", "classif")) {
  needs_package("mlr3", "mlr3_learner()", "install.packages(\"mlr3\"), or call pfdtc() itself.")
  type <- check_choice(type, c("regr", "classif"), "type")
  classes <- type == "classif"
  self <- private <- super <- NULL # R6 binds these in methods
  any <- function() paradox::p_uty(tags = "train")
  parameters <- paradox::ps(
    m = paradox::p_int(1, tags = "train"), tol = paradox::p_dbl(0, 1, tags = "train"), kernel = any(),
    noise = paradox::p_dbl(0, tags = "train"), neighbours = paradox::p_int(0, tags = "train"), inducing = any(),
    hyper = paradox::p_fct(c("evidence", "pilot", "joint", "fixed"), tags = "train"), aux = any(), mean = any(),
    control = any())
  parent <- if (classes) mlr3::LearnerClassif else mlr3::LearnerRegr
  made <- R6::R6Class(if (classes) "LearnerClassifPfdtc" else "LearnerRegrPfdtc", inherit = parent, public = list(
    initialize = function() {
      super$initialize(paste0(type, ".pfdtc"), packages = c("mlr3", "pfdtc"), param_set = parameters,
                       feature_types = c("logical", "integer", "numeric", "character", "factor", "ordered"),
                       predict_types = c("response", if (classes) "prob" else "se"),
                       properties = c("weights", if (classes) c("twoclass", "multiclass")),
                       man = "pfdtc::mlr3_learner", label = "Gaussian process regression")
    }
  ), private = list(
    .train = function(task) {
      data <- as.data.frame(task$data())
      data$.weights <- private$.get_weights(task)
      weights <- if (!is.null(data$.weights)) list(weights = quote(.weights))
      formula <- stats::reformulate(sprintf("`%s`", task$feature_names), as.name(task$target_names))
      eval(as.call(c(list(quote(pfdtc), formula, data = quote(data)), weights,
                     self$param_set$get_values(tags = "train"))))
    },
    .predict = function(task) {
      new <- as.data.frame(task$data(cols = task$feature_names))
      if (self$predict_type == "prob") {
        p <- stats::predict(self$model, new, type = "response")
        return(list(prob = as.matrix(class_columns(p, response_of(self$model)$levels))))
      }
      if (classes) return(list(response = unname(stats::predict(self$model, new, type = "class"))))
      found <- stats::predict(self$model, new, se.fit = TRUE)
      list(response = unname(found$fit), se = if (self$predict_type == "se") unname(found$se.fit))
    }
  ))
  learner <- made$new()
  learner$param_set$set_values(...)
  learner
}
