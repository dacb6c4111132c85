# A learner for package mlr3, registered when it is loaded.

#' @rdname gp_reg
#' @export
mlr3_learner <- function(...) {
  needs_package("mlr3", "mlr3_learner()", "install.packages(\"mlr3\"), or call pfdtc() itself.")
  learner <- mlr3_class()$new()
  learner$param_set$set_values(...)
  learner
}

mlr3_class <- function() {
  self <- private <- super <- NULL # R6 binds these in methods
  R6::R6Class("LearnerRegrPfdtc", inherit = mlr3::LearnerRegr, public = list(
    initialize = function() {
      super$initialize("regr.pfdtc", packages = c("mlr3", "pfdtc"), param_set = mlr3_parameters(),
                       feature_types = c("logical", "integer", "numeric", "character", "factor", "ordered"),
                       predict_types = c("response", "se"), properties = "weights", man = "pfdtc::mlr3_learner",
                       label = "Gaussian process regression")
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
      found <- stats::predict(self$model, new, se.fit = TRUE)
      list(response = unname(found$fit), se = if (self$predict_type == "se") unname(found$se.fit))
    }
  ))
}

mlr3_parameters <- function() {
  any <- function() paradox::p_uty(tags = "train")
  paradox::ps(m = paradox::p_int(1, tags = "train"), tol = paradox::p_dbl(0, 1, tags = "train"), kernel = any(),
              noise = paradox::p_dbl(0, tags = "train"),
              hyper = paradox::p_fct(c("evidence", "pilot", "joint", "fixed"), tags = "train"),
              neighbours = paradox::p_int(0, tags = "train"), inducing = any(), aux = any(), mean = any(),
              control = any())
}
