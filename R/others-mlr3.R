# A learner for package mlr3, registered when it is loaded.

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
