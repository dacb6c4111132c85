# Serves other packages: a model for parsnip, a learner for mlr3, and reports for R Markdown documents.

#' Fit Gaussian processes with parsnip and mlr3
#'
#' `gp_reg()` makes a model specification for parsnip's `fit()`, workflows, recipes and `tune`. `mlr3_learner()` makes
#' an mlr3 learner that fits by [pfdtc()], like `mlr3::lrn("regr.pfdtc")` and `mlr3::lrn("classif.pfdtc")`.
#'
#' Prediction types of `gp_reg()` are `"numeric"`, `"conf_int"` (credible interval), `"pred_int"` and `"raw"`. For
#' classes they are `"class"`, `"prob"`, `"conf_int"` and `"raw"`, for censored times `"time"` (the median),
#' `"survival"`, `"linear_pred"` (f) and `"raw"`. Pass other arguments, such as `tol` or `family = poisson()`, to
#' `parsnip::set_engine()`. `tune()` has ranges for `inducing_points` and `neighbors`. To tune `noise` or kernels, give
#' a grid of values (kernels in a list column). The mlr3 learner predicts means, with `predict_type = "se"` also their
#' posterior sd; for classification it predicts classes, with `"prob"` also probabilities. Its `tol` and `hyper` have
#' ranges for tuning. Case weights are `weights` of [pfdtc()].
#' @param mode `"regression"`, `"classification"` for a factor, or `"censored regression"` for `survival::Surv()`.
#' @param engine `"pfdtc"` ([pfdtc()]), or for regression `"pfdtc_exact"` ([gp_exact()]).
#' @param kernel,inducing_points,neighbors,noise Arguments of the fit: `kernel`, `noise`, and for [pfdtc()] `m` and
#'   `neighbours`.
#' @param object,parameters,fresh A specification, arguments to change, and whether to reset all others, as in
#'   parsnip's `update()`.
#' @param ... For `mlr3_learner()`, arguments of [pfdtc()]: `m`, `tol`, `kernel`, `noise`, `hyper`, `neighbours`,
#'   `inducing`, `aux`, `mean`, `control`.
#' @param type `"regr"` for numbers or `"classif"` for classes.
#' @return A specification of class `c("gp_reg", "model_spec")`, or an R6 object of class `LearnerRegr` or
#'   `LearnerClassif` with the fit in `$model` after training. If parsnip or mlr3 is not installed, the error
#'   has class `pfdtc_error_input`.
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

# Leaves out tuning parameters for `kernel` and `noise`, because the package dials has none for them.
#' @exportS3Method generics::tunable
tunable.gp_reg <- function(x, ...) {
  known <- NextMethod()
  known$call_info[known$name %in% c("kernel", "noise")] <- list(NULL)
  known
}

# If `kernel` is a list of length 1, as in a list column of a tuning grid, its element is used.
#' @exportS3Method parsnip::translate
translate.gp_reg <- function(x, engine = x$engine, ...) {
  x <- NextMethod()
  kernel <- rlang::eval_tidy(x$method$fit$args$kernel)
  if (is.list(kernel) && length(kernel) == 1L && inherits(kernel[[1L]], "pfdtc_kernel")) {
    x$method$fit$args$kernel <- kernel[[1L]]
  }
  x
}

# This list has the arguments of predict() for parsnip's mode and type. `post` names a function of parsnip_posts.
parsnip_types <- list(regression = list(raw = NULL, numeric = list(type = "response"),
    conf_int = list(post = "band", type = "response", interval = "credible", level = quote(level)),
    pred_int = list(post = "band", type = "response", interval = "prediction", level = quote(level))),
  classification = list(raw = NULL, class = list(type = "class"), prob = list(post = "prob", type = "response"),
    conf_int = list(post = "class_bands", type = "response", interval = "credible", level = quote(level))),
  "censored regression" = list(raw = NULL, time = list(type = "median"), linear_pred = list(type = "latent"),
    survival = list(post = "curves", type = "survival", times = quote(eval_time))))

# Each function converts `results` of predict() into the data frame that parsnip expects.
parsnip_posts <- list(band = function(results, object) {
    data.frame(.pred_lower = unname(results[, "lwr"]), .pred_upper = unname(results[, "upr"]))
  },
  prob = function(results, object) class_columns(results, object$lvl),
  class_bands = function(results, object) {
    ends <- if (length(dim(results)) == 3L) results[, c("lwr", "upr"), ] else
      cbind(1 - results[, c("upr", "lwr")], results[, c("lwr", "upr")]) # has intervals of both classes
    out <- as.data.frame(matrix(ends, nrow(results)))
    stats::setNames(out, paste0(c(".pred_lower_", ".pred_upper_"), rep(object$lvl, each = 2L)))
  },
  curves = function(results, object) { # each row gets a data frame of times and survival
    times <- as.numeric(colnames(results))
    list2DF(list(.pred = lapply(seq_len(nrow(results)), function(i) {
      data.frame(.eval_time = times, .pred_survival = unname(results[i, ]))
    })))
  })

# Registers the model with parsnip. when_loaded() may call it with arguments (`...`), which are not used.
register_parsnip <- function(...) {
  if ("gp_reg" %in% parsnip::get_model_env()$models) return(invisible())
  parsnip::set_new_model("gp_reg")
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
          pre = NULL, post = if (!is.null(ask$post)) parsnip_posts[[ask$post]], func = c(fun = "predict"),
          args = c(list(object = quote(object$fit), newdata = quote(new_data)), ask[setdiff(names(ask), "post")])))
      }
    }
  }
  dials <- function(fun, range) list(pkg = "dials", fun = fun, range = range)
  own <- list(pkg = "pfdtc", fun = "gp_reg") # marks parameters that dials lacks
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

class_columns <- function(p, levels) {
  if (is.matrix(p)) return(as.data.frame(p, row.names = FALSE))
  stats::setNames(data.frame(1 - unname(p), unname(p)), levels)
}

#' @rdname gp_reg
#' @export
mlr3_learner <- function(..., type = c("regr", "classif")) {
  needs_package("mlr3", "mlr3_learner()", "install.packages(\"mlr3\"), or call pfdtc() itself.")
  type <- check_choice(type)
  classes <- type == "classif"
  self <- private <- super <- NULL # avoids notes of R CMD check: R6 defines these in methods
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

#' Report on a fit
#'
#' Returns a paragraph and a table with data, kernel, hyperparameters, posterior, log marginal likelihood, time and, if
#' known, certified error and leave-one-out scores. In R Markdown a chunk that ends in `report(fit)` shows both.
#' @param x A fit. For `print()`, a report.
#' @param newdata Rows at which the report certifies predictions, as in [certify()]. By default it certifies none, and a
#'   fit with `tol` reports the error certified during the fit.
#' @param digits,... Significant digits of most numbers. `...` is not used.
#' @return An object of class `pfdtc_report`: a list with `text`, a string, and `table`, a data frame with columns
#'   `what` and `value` (character). The table has `coef()` (without `noise` if that is smooth), the sd for each
#'   variance, and correlations of group effects instead of `coef()`'s angles ([kernel_group()]).
#' @seealso [summary()][gp_fit-methods], [certify()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se())
#' report(fit)
#' @export
report <- function(x, ...) {
  check_given("x", "Give a fit returned by pfdtc().")
  UseMethod("report")
}

# The package report has a generic report(), which pfdtc's generic masks if pfdtc is attached later. If report is
# loaded, this method passes objects other than fits to report::report(). Otherwise they are an error.
#' @export
report.default <- function(x, ...) {
  if (isNamespaceLoaded("report")) return(getExportedValue("report", "report")(x, ...))
  abort_input("x", describe(x), "a fit, such as by pfdtc()")
}

#' @rdname report
#' @export
#' @rawNamespace S3method(report::report,gp_fit)
report.gp_fit <- function(x, newdata = NULL, digits = 3, ...) {
  check_dots_empty()
  fit <- check_any_fit(x, "x")
  refuse_if(is.character(newdata), "newdata", "must be rows to certify the fit at",
            hint = "report() writes no file: use writeLines(report(fit)$text, file).")
  digits <- check_count(digits, "digits")
  number <- function(v) vapply(signif(unname(v), digits), show_count, "", scientific = NA)
  about <- fit_facts(fit)
  fact <- lapply(about$fields, function(text) if (!is.null(text)) fill_numbers(text, number))
  response <- response_of(fit)
  name <- response_name(fit)
  scale <- if (fit_link(fit) != "identity") sprintf("on the %s scale", sub("softmax", "log-odds", fit_link(fit))) else
    if (is.null(fit$transform)) paste("in units of", name) else
      if (fit$transform$kind == "log") sprintf("in units of log(%s)", name) else "in units of the transformed response"
  inputs <- about$inputs
  warp <- warp_of(fit$kernel)
  logs <- if (isTRUE(warp$logs)) about$columns[warp$inputs]
  notes <- c(sprintf("%s in %s", inputs$name, inputs$unit)[nzchar(inputs$unit)],
             if (length(logs)) paste("without unit for the logs of", toString(logs)),
             if (any(grepl("periodic.*lengthscale", names(stats::coef(fit))))) "without unit for the periodic kernel",
             if (any(nzchar(inputs$factor))) "each level of a factor is a column of 0 and 1")
  notes <- if (length(notes)) sprintf(" (%s)", paste(notes, collapse = "; "))
  evidence <- stats::logLik(fit)
  ends <- sprintf("%.1f", c(floor(10 * attr(evidence, "lower")), ceiling(10 * attr(evidence, "upper"))) / 10)
  gap <- attr(evidence, "upper") - attr(evidence, "lower")
  evidence <- if (is_exact(fit) || !length(ends)) sprintf("%.1f", evidence) else
    if (gap < 0.01) sprintf("%.1f", attr(evidence, "upper")) else
      if (is.infinite(gap)) paste("at least", ends[1L]) else sprintf("between %s and %s", ends[1L], ends[2L])
  of <- c(if (has_own_likelihood(fit)) "restricted likelihood", describe_evidence(fit, length(ends) > 0L),
          if (length(ends) && response$conjugate && !is_exact(fit)) "of the exact GP")
  facts <- c(Response = name, Family = if (is.null(fit$theta)) fit$likelihood$label else fact$Response,
    Success = if (response$reads == "classes" && length(response$levels) == 2L) sprintf("\"%s\"", response$levels[2L]),
    Transform = if (!is.null(fit$transform)) fact$Response,
    Data = fact$Data, Method = about$title, unlist(fact[c("Mean", "Kernel", "Noise", "Noise tails", "Noise sd")]),
    "Variance inflation" = unname(sub("^.*?: (v.*)[.]$", "\\1", unlist(fit$because)["scale"], perl = TRUE)),
    Units = paste0("sds are ", scale,
      if (any(grepl("lengthscale", names(stats::coef(fit))))) paste0(", lengthscales in units of their inputs", notes)),
    Inputs = if (!is.null(rotation_of(fit$kernel))) rotation_note else if (!is.null(warp) && is.null(logs))
      warp_note(isTRUE(warp$share < 1), "; its lengthscale is on this scale"),
    unlist(fact[c("Estimation", "Posterior", "Neighbours")]),
    "Certified error" = report_certificate(fit, newdata, digits),
    "Log marginal likelihood" = paste0(evidence, if (length(of)) sprintf(" (%s)", paste(of, collapse = "; "))),
    "Leave-one-out" = report_loo(fit, number), Time = sprintf("%s s", number(sum(fit$seconds))),
    Software = sprintf("pfdtc %s", format(fit$version)))
  facts <- facts[!is.na(facts)]

  made_of <- if (is_exact(fit)) "exact" else if (method_traits(fit)$some) posterior_title(fit) else
    paste(stats::na.omit(facts[c("Posterior", "Neighbours")]), collapse = "; ")
  before <- c("Transform", "Mean", "Kernel", "Noise", "Noise tails", "Noise sd", "Variance inflation", "Units",
              "Inputs", "Estimation")
  told <- c(facts[c("Family", before)], Posterior = made_of, if (!is_exact(fit)) facts["Certified error"],
            facts[c("Log marginal likelihood", "Leave-one-out", "Time")])
  told <- told[!is.na(told)]
  own <- c(Family = "Likelihood:", "Certified error" = "Certified:", Time = "The fit took")[names(told)]
  text <- paste(c(
    sprintf("A %s was fitted to %s by %s. Data: %s.", if (is_groups_only(fit$kernel)) "linear mixed model" else
      "Gaussian process", name, facts["Software"], facts["Data"]),
    sprintf("%s %s.", ifelse(is.na(own), paste0(names(told), ":"), own), sub("[.]$", "", told))), collapse = " ")
  # A coefficient may have the name of a fact, such as "Time", so it is added after facts were selected by name.
  table <- append(facts, report_coefficients(fit, about, number), max(which(names(facts) %in% c("Units", "Inputs"))))
  structure(list(text = text, table = data.frame(what = names(table), value = unname(table))), class = "pfdtc_report")
}

# Returns the values of coef() as text. Their names are words such as "periodic: period".
report_coefficients <- function(fit, about, number) {
  theta <- stats::coef(fit)
  if (!is.null(fit$noise_trend$smooth)) theta <- theta[names(theta) != "noise"] # the row `Noise` has the noise sd
  is_variance <- grepl("(^|[.])variance$|^noise$", names(theta))
  value <- paste0(number(theta), ifelse(is_variance, sprintf(" (sd %s)", number(sqrt(abs(theta)))), ""))
  words <- parameter_words(names(theta), fit$kernel, about$columns)
  for (g in group_roots(fit$kernel)) { # replace each angle by the correlation of its two effects
    pairs <- which(lower.tri(g$root), arr.ind = TRUE)
    a <- g$effects[pairs[, 1L]]
    b <- g$effects[pairs[, 2L]]
    at <- match(sprintf("%s.angle.%s.%s", g$name, a, b), names(theta))
    known <- !is.na(at)
    words[at[known]] <- sprintf("group %s: correlation of %s and %s", g$of, b, a)[known]
    value[at[known]] <- number(stats::cov2cor(tcrossprod(g$root))[pairs][known])
  }
  if (response_of(fit)$kind == "ordered")
    words <- sub("^([(]Intercept[)]|Constant mean)$", "\\1 of f, with the first cut point at 0", words)
  stats::setNames(value, words)
}

report_certificate <- function(fit, newdata, digits) {
  if (is.null(newdata)) {
    return(if (!is.null(fit$tol)) describe_tolerance(fit) else
      if (is_exact(fit)) "only rounding, because the posterior is exact (bounds: certify())" else NA_character_)
  }
  certified <- certify(fit, newdata)
  most <- function(v) show_bound(max(v, na.rm = TRUE), digits)
  conjugate <- response_of(fit)$conjugate
  off <- pmax(certified$response_upper - certified$response, certified$response - certified$response_lower)
  sprintf("posterior %s within %s (%s %s) of the exact GP at %d rows%s", if (conjugate) "mean" else "mode of f",
          most(certified$mean_error), most(certified$mean_error / if (conjugate) fit$sd_y else certified$sd),
          if (!conjugate) "posterior sd of f" else if (is.null(fit$transform)) "sd of the response" else
            "sd of the transformed response", nrow(certified) %/% max(1L, nlevels(certified$class)),
          if (conjugate || !length(off)) "" else sprintf(", `response` of certify() within %s", most(off)))
}

report_loo <- function(fit, number) {
  if (is.null(fit$data) || !is.null(rows_of_table(fit, fit$data))) return(NA_character_)
  s <- training_scores(fit)
  if (response_of(fit)$conjugate) {
    return(sprintf("RMSE %s (sd of the response %s); 95 %% intervals contain %.0f %% of the responses", number(s$rmse),
                   number(if (is.null(fit$transform)) fit$sd_y else stats::sd(given_response(fit$data))),
                   100 * s$cover95))
  }
  paste0("mean negative log predictive density ", number(s$nlpd), if (!is.na(s$brier)) {
    sprintf("; Brier score %s; accuracy %.0f %%", number(s$brier), 100 * s$accuracy)
  } else if (!is.na(s$rmse)) {
    paste0("; RMSE", sprintf(" of %s", response_of(fit)$errors_of), " ", number(s$rmse))
  })
}

#' @rdname report
#' @export
print.pfdtc_report <- function(x, ...) {
  cat(wrap(x$text), "", sep = "\n")
  print_fields(stats::setNames(as.list(x$table$value), x$table$what), width = max(nchar(x$table$what)) + 2L)
  invisible(x)
}

#' @exportS3Method knitr::knit_print
knit_print.pfdtc_report <- function(x, ...) {
  knitr::asis_output(paste0("\n\n", x$text, "\n\n", paste(knitr::kable(x$table), collapse = "\n"), "\n\n"))
}

.onLoad <- function(libname, pkgname) {
  engine$pid <- Sys.getpid()
  engine$optimised_blas <- grepl("openblas|mkl|blis|accelerate|veclib|armpl|flexiblas|atlas|essl",
                                 unname(extSoftVersion()["BLAS"]), ignore.case = TRUE)
  native_own_products(own_lanes) # R's reference BLAS takes four to six times as long (bench/README.md)
  when_loaded("marginaleffects", function(...) { # adds "gp_fit" to the classes that the package accepts
    options(marginaleffects_model_classes = union(getOption("marginaleffects_model_classes"), "gp_fit"))
  })
  when_loaded("mlr3", function(...) {
    mlr3::mlr_learners$add("regr.pfdtc", function() mlr3_learner())
    mlr3::mlr_learners$add("classif.pfdtc", function() mlr3_learner(type = "classif"))
  })
  when_loaded("parsnip", register_parsnip)
}

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
#' @section Conditions: Checks of arguments raise errors of class `pfdtc_error_input` with fields `argument` and `got`.
#'   Failed computations have class `pfdtc_error_numerical`, failing row sources `pfdtc_error_source`. Classes of
#'   warnings begin with `pfdtc_warning_`: `convergence`, `evidence`, `small` (the rows are so few that a linear model
#'   is better, or successes are not whole numbers), `undefined` (`NA`) or `weights` (new rows count with weight 1).
#'   Messages have class `pfdtc_message`. See [pfdtc()], `vignette("pfdtc")`.
"_PACKAGE"
