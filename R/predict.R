# Predicts in three steps: converts newdata to the fit's columns, computes f, and shapes answers like predict.lm().

#' Predict from a Gaussian process fit
#'
#' Returns means, sds, intervals or covariances of f or of responses.
#' @param object a fit of [pfdtc()] or of a `gp_` function.
#' @param newdata rows to predict: a data frame with the variables of the formula, a matrix with the columns of `x`, a
#'   row source ([rows_blocks()]), or an object of \pkg{sf}, \pkg{sp}, \pkg{terra} or \pkg{stars}, which is returned
#'   with predictions. Default: the training rows.
#' @param se.fit return standard deviations?
#' @param interval `"credible"` (or `"confidence"`) for f; `"prediction"` for a new response, of weight 1 at `newdata`
#'   and of the row's weight at a training row; `"conformal"`, without assuming normal noise (not for all families).
#' @param level probability of the interval.
#' @param type quantity, see Details. Default: `"mean"` with Gaussian noise, if the fit chose `loglogistic()`, and for
#'   prediction intervals of numbers or ordered classes; else `"latent"`.
#' @param times times for `type = "survival"`.
#' @param probs probabilities for `type = "quantile"`.
#' @param wrt input of `type = "derivative"`: its name or number.
#' @param certified return an interval that contains the interval of the exact GP (`family`: around the mode of its f),
#'   see [certify()]? If the fit is not exact, store `fit$reference <- reference(fit)`; otherwise each call computes it.
#' @param full_cov return the covariance matrix of all rows? Only with one f.
#' @param hyper_uncertainty include the uncertainty of the hyperparameters, see [vcov.gp_fit()]? This computes two
#'   further posteriors for each hyperparameter.
#' @param re `TRUE` includes effects of groups; a new level has their prior distribution. `FALSE` sets effects to 0.
#' @param na.action treatment of rows with missing values. Default: they predict `NA`; `na.omit` drops them.
#' @param file for a row source, a CSV file for the predictions. After an interrupt the same call continues.
#' @param ... not used. An unknown argument is an error.
#' @return As for [predict.lm()]: a vector; with `interval` a matrix with columns `fit`, `lwr` and `upr`; with `se.fit`
#'   or `full_cov` a list of `fit`, `se.fit` or `cov`. For `type = "terms"` the result is a matrix with attribute
#'   `constant`. Probabilities of several classes are a matrix with a column for each class (log odds: each but the
#'   first), with `interval` an array (rows, ends, classes).
#' @details
#' | `type` | Prediction |
#' | --- | --- |
#' | `"mean"`, `"response"` | mean response averaged over f; probabilities of classes (ordered `"mean"`: class number) |
#' | `"latent"`, `"link"` | f with offset (unordered classes: log odds). Prediction intervals of families: as `"mean"` |
#' | `"median"` | median of the response, except for classes and [gp_family()] |
#' | `"class"` | most probable class; prediction intervals of several classes are sets (a logical matrix) |
#' | `"survival"` | matrix of probabilities of a time above each of `times`; with intervals an array |
#' | `"quantile"` | matrix of quantiles of a new response at `probs`, where `"median"` exists |
#' | `"density"` | log predictive density of the response in `newdata` |
#' | `"loo"`, `"loo_latent"` | leave-one-out prediction of each training row, see [leave_one_out] |
#' | `"terms"` | mean of each term of a sum of kernels, see [kernel_algebra] |
#' | `"derivative"` | derivative of f with respect to `wrt`; not for Matern 1/2 kernels or unordered classes |
#'
#' Densities and prediction intervals average over the noise variance if it is uncertain (few rows or heavy tails). For
#' `"mean"`, `se.fit` is the posterior sd of the mean response; also for `"response"`, except that with Gaussian noise
#' it is the sd of a new response. With a transform T, `"latent"`, `"link"`, `"loo_latent"`, `"terms"` and
#' `"derivative"` are on the scale of T(y). If the fit chose T, values of y far beyond the training responses are cut
#' off in the mean response. For families, except classes without order and [gp_family()], prediction intervals are
#' quantiles of a new response. They are whole numbers for counts, and shares of successes if `newdata` has numbers of
#' trials. With Laplace's approximation, the mode of f stands for its mean, corrected for classes unless `certified`.
#' Credible intervals of a mean response transform quantiles of f (not for several classes). They need not contain
#' `fit`.
#' @section Invariants: Intervals with normal noise are `fit` plus and minus `qnorm((1 + level) / 2)` sds, unless
#'   certified, conformal, transformed, or of uncertain noise. Terms, constant and offset sum to the mean of f. A row is
#'   predicted as if it were the only one, up to rounding.
#' @seealso [gp_fit-methods], [certify()], [leave_one_out], [plot.gp_fit()], `vignette("intervals")`.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' new <- data.frame(speed = c(10, 15, 20))
#' predict(fit, new)
#' predict(fit, new, interval = "prediction")
#' predict(fit, new, interval = "conformal", level = 0.8)
#' predict(fit, new, se.fit = TRUE, full_cov = TRUE)
#' @aliases predict.pfdtc
#' @export
predict.gp_fit <- function(object, newdata, se.fit = FALSE,
                           interval = c("none", "credible", "prediction", "conformal"), level = 0.95,
                           type = c("latent", "response", "loo", "loo_latent", "link", "class", "density", "terms",
                                    "derivative", "median", "mean", "survival", "quantile"), wrt = NULL,
                           times = NULL, probs = 0.5, certified = FALSE, full_cov = FALSE, ..., # later names in full
                           hyper_uncertainty = FALSE, re = TRUE, na.action = stats::na.pass, file = NULL) {
  check_dots_empty()
  refuse_if(identical(sys.function(sys.parent()), stats::termplot), "model", "a Gaussian process",
            message = "termplot() cannot draw the terms of a kernel.",
            hint = "Use plot(fit) or partial_dependence(fit).")
  object <- check_any_fit(object, "object")
  new <- if (!missing(newdata)) newdata
  if (!is.null(file) && !is_source(new)) abort_input("file", "can be used only if `newdata` is a row source")
  response <- response_of(object)
  ask <- check_asked(response, list(
    se.fit = se.fit, interval = interval, level = level, type = type, wrt = wrt, times = times, probs = probs,
    certified = certified, full_cov = full_cov, hyper_uncertainty = hyper_uncertainty, newdata = !is.null(new),
    re = check_flag(re, "re")))
  if (ask$interval == "prediction" && response$conjugate && ask$newdata && is_weighted(object)) {
    warn_classed("weights", paste(
      "The intervals are for new responses of weight 1, but the fit has weights. The noise variance of a response of",
      "weight w is sigma(fit)^2 / w."))
  }
  apart <- is_source(new) || is_spatial(new) && by_formula(object)
  (if (apart) predict_apart else answer_asked)(object, response, new, ask, na.action, file)
}

# Returns the prediction at `new` (the argument newdata) for the other arguments of predict(), in the list `ask`.
answer_asked <- function(fit, response, new, ask, na.action, file = NULL) {
  rows <- if (is.null(new)) training_rows(fit) else new_rows(fit, new, na.action, ask$re)
  if (ask$type == "derivative")
    return(predict_derivative(fit, rows, ask$wrt, ask$se.fit, ask$interval, ask$level, ask$certified))
  if (ask$type == "terms") {
    values <- term_values(fit, rows$x, mean_only = !ask$se.fit)
    p <- lapply(values, function(v) `rownames<-`(v[rows$index, , drop = FALSE], rows$names))
    terms <- structure(p$mean, constant = fit$center)
    return(if (ask$se.fit) list(fit = terms, se.fit = sqrt(p$var)) else terms)
  }
  # The distribution of a response depends on its number of trials.
  rows$size <- rep(1, length(rows$index))
  if (response$trials && (ask$interval == "prediction" || ask$type %in% c("median", "quantile"))) {
    rows$size <- check_responses(rows$index, if (ask$newdata) new_trials(fit, new) else
      stats::napredict(fit$na.action, sizes_given(data <- training_data(fit), if (is.null(data$sites$size)) 1 else NA)))
  }
  loo <- startsWith(ask$type, "loo")
  if (loo) ask$type <- if (ask$type == "loo_latent") "latent" else "response"
  f <- if (loo) {
    given <- loo_rows(fit)
    given <- lapply(given[intersect(c("mean", "var", "noise", "spread"), names(given))], stats::napredict,
                    omit = fit$na.action)
    c(given, list(lower = given$mean, upper = given$mean, top = given$var, size = rows$size))
  } else {
    latent_asked(fit, rows, ask)
  }
  if (ask$type == "density") return(log_densities(fit, response, new, f, rows))
  if (ask$type == "class") return(say_class(fit, response, f, rows$names, ask))
  say <- if (response$kind == "labels" || response$kind == "ordered" && ask$type == "response") say_chances else
    if (ask$type %in% c("survival", "quantile")) say_columns else response_say
  said <- say(response, f, ask)
  if (ask$certified && !is.null(fit$factors$shift)) { # the mean without certificate may differ from the certified mode
    plain <- replace(ask, c("certified", "interval", "se.fit", "full_cov"), list(FALSE, "none", FALSE, FALSE))
    by <- suppressWarnings(max(abs(said$fit - say(response, latent_asked(fit, rows, plain), plain)$fit), na.rm = TRUE))
    if (by > 5e-4) tell_classed("certified", sprintf(paste(
      "`fit` is the certified prediction, at the mode of f. It differs by up to %s from predict() without `certified`,",
      "which uses the posterior mean."), show_bound(by, 2)))
  }
  if (ask$newdata && ask$type == "mean" && is_cut(response$transform)) message_if_cut(response$transform, said$fit, f)
  in_shape(said, rows$names, ask)
}

# The mean of a transformed response is cut off near the outermost training response. Sends a message if a mean was cut
# by so much that it is more than half an sd away from the median, on the transformed scale.
message_if_cut <- function(transform, mean, f) {
  away <- (f$mean - transformed(transform, mean)) / sqrt(f$var + f$noise)
  n <- sum(if (curves_up(transform)) away > 0.5 else away < -0.5, na.rm = TRUE)
  if (n) tell_classed("cut", sprintf(paste(
    "The prediction of %s is cut off near the outermost training response. type = \"median\" is not cut off, so",
    "it can follow a trend."), count_of(n, "row")))
}

# Predicts at a row source block by block, or at a spatial object, which is returned with predictions.
predict_apart <- function(fit, response, new, ask, na.action, file) {
  if (ask$full_cov) abort_input("full_cov", "is not available for a row source or a spatial object")
  at <- function(rows, ...) answer_asked(fit, response, rows, ask, ...)
  if (!is_source(new)) return(predictions_at(new, at(rows_at_places(fit$frame, new), stats::na.pass)))
  # With na.pass, each row has its own line in the file, so that a call with an equal `request` can continue the file
  # after an interrupt. The elements of the fit in `request` differ between fits with different predictions.
  request <- if (identical(na.action, stats::na.pass)) {
    own <- c(fit[c("signature", "noise", "center", "scale", "inducing", "neighbours")], list(
      kernel = kernel_values(fit$kernel), near = fit$near$beta, factors = fit$factors[c("beta", "alpha")],
      reference = fit$reference$inducing))
    list(own, new[c("columns", "items")], ask)
  }
  told <- FALSE
  withCallingHandlers(predict_source(new, function(block) at(block, na.action), file, request),
                      pfdtc_message_copies = function(m) if (told) invokeRestart("muffleMessage") else told <<- TRUE)
}

# Returns predictions in the form of predict.lm(): a vector, a matrix with an interval, or a list with `se.fit` or
# `full_cov`. With several numbers a row (classes, times, quantiles), vectors become matrices, and matrices arrays.
in_shape <- function(said, names, ask) {
  shaped <- function(v) {
    if (is.matrix(v)) `dimnames<-`(v, list(names, colnames(said$fit))) else stats::setNames(v, names)
  }
  value <- shaped(said$fit)
  if (!is.null(said$lwr)) {
    value <- array(c(value, said$lwr, said$upr), c(dim(value) %||% length(value), 3L),
                   c(dimnames(value) %||% list(names), list(c("fit", "lwr", "upr"))))
    if (length(dim(value)) == 3L && ask$type != "survival") value <- aperm(value, c(1L, 3L, 2L))
  }
  if (!ask$se.fit && !ask$full_cov) return(value)
  c(list(fit = value, se.fit = shaped(said$sd)), if (ask$full_cov) list(cov = said$cov))
}

# Returns a list with `mean` and `var` of f at the rows to predict at. If certified, the exact mean is between `lower`
# and `upper`, and the exact variance at most `top`. `noise` is the mean noise variance, `spread` the variance of its
# log; `noise_new` replaces `noise` in prediction intervals. `size` has the numbers of trials.
latent_asked <- function(fit, rows, ask) {
  conjugate <- is.null(fit$likelihood)
  if (ask$certified) fit <- at_mode(fit)
  posterior <- if (ask$hyper_uncertainty) mixture_of(fit) else posterior_of(fit)
  if (inherits(posterior, "classes")) {
    return(c(take_rows_of(latent_at(fit, rows$x), rows$index),
             list(bounds = if (ask$certified) certified_class_ends(fit, rows))))
  }
  mean_only <- ask$interval == "none" && !ask$se.fit && !ask$full_cov && !ask$certified && conjugate &&
    (ask$type == "latent" || is.null(fit$transform) && ask$type %in% c("mean", "median", "response"))
  p <- latent_at(fit, rows$x, ask$full_cov, posterior, mean_only, ask$re)
  f <- list(mean = p$mean[rows$index] + rows$offset, var = p$var[rows$index], size = rows$size)
  if (conjugate) f[c("noise", "spread")] <- noise_law(fit, rows, p$noise %||% fit$noise)
  f[c("lower", "upper", "top")] <- f[c("mean", "mean", "var")]
  if (ask$certified) {
    exact <- certificate_of(fit, rows, p = posterior)
    f[c("lower", "upper", "top")] <- list(exact$mean_lower, exact$mean_upper, exact$sd_upper^2)
    if (ask$hyper_uncertainty) f$noise_new <- noise_law(fit, rows, attr(exact, "noise"))$noise # an upper bound
  }
  # A new response at a training row has the weight of the row, but weight 1 for type = "mean".
  own <- if (conjugate && !ask$newdata) noise_by_weight(fit, f$noise_new %||% f$noise)
  if (!is.null(own)) f$noise_new <- own
  if (!is.null(own) && ask$type %in% c("response", "density", "quantile")) f$noise <- own
  if (ask$interval == "conformal") f$conformal <- conformal_band(fit, rows, p, ask$level)
  if (ask$full_cov) f$cov <- covariance_at(fit, rows, p)
  if (ask$full_cov && conjugate) diag(f$cov) <- f$var + if (ask$type == "response") f$noise else 0
  f
}

# Returns the log of the density of each row's response, after averaging this density over f.
log_densities <- function(fit, response, newdata, f, rows) {
  given <- if (response$conjugate) {
    list(y = if (is.null(newdata)) stats::napredict(fit$na.action, given_response(training_data(fit))) else
      as.double(responses_in(fit, newdata)))
  } else {
    if (is.null(newdata)) lapply(training_data(fit)$sites, stats::napredict, omit = fit$na.action) else
      new_sites(fit, newdata)
  }
  refuse_if(!response$conjugate && is.null(newdata) && !is.null(fit$data$x_zero), "newdata", "missing",
            hint = "Give `newdata`.", message = "The fit has rows of weight 0, whose densities do not exist.")
  check_responses(rows$index, given$y)
  known <- which(!is.na(rowSums(as.matrix(f$mean))) & !is.na(given$y))
  given <- take_rows_of(given[intersect(c("y", "size"), names(given))], known)
  out <- stats::setNames(rep(NA_real_, length(rows$index)), rows$names)
  f <- f[intersect(c("mean", "var", "noise", "spread"), names(f))]
  out[known] <- response_log_density(response, given, take_rows_of(f, known))
  out
}

# Returns the responses in newdata. If newdata lacks them, stops if they are `needed`, else returns NULL.
responses_in <- function(fit, newdata, needed = TRUE) {
  if (!needed && (is.null(fit$terms) || !is.data.frame(newdata))) return(NULL)
  refuse_if(is.null(fit$terms), "newdata", "rows for a fit from a matrix",
            message = "`newdata` has no responses, because the fit was made from a matrix.",
            hint = "Fit a formula: it finds responses and numbers of trials in `newdata`.")
  expression <- attr(fit$terms, "variables")[[2L]]
  lacking <- setdiff(all.vars(expression), names(newdata))
  if (!needed && length(lacking)) return(NULL)
  refuse_if(length(lacking), "newdata", sprintf("lacks %s, the response", list_quoted(lacking)))
  in_unit(eval(expression, newdata, environment(fit$terms)), fit$frame$response_unit)
}

# Stops unless each row has a response (or number of trials): na.omit may have dropped rows of newdata.
check_responses <- function(rows, given) {
  if (length(given) == length(rows)) return(given)
  abort_input("newdata", "has missing values in its variables or the response")
}

# Returns list(y, size): the responses and numbers of trials of new rows, NA if they are unknown.
new_sites <- function(fit, newdata, response = responses_in(fit, newdata)) {
  known <- stats::complete.cases(response)
  all <- length(known)
  response <- if (length(dim(response)) == 2L) response[known, , drop = FALSE] else response[known]
  read <- if (response_of(fit)$trials && length(dim(response)) != 2L) {
    size <- new_trials(fit, newdata)[known]
    list(y = response * size, size = size)
  } else {
    read_response(fit$likelihood, known_classes(fit, response), rep(1, sum(known)), "newdata", sum(known))
  }
  lapply(read[intersect(c("y", "size"), names(read))], function(v) replace(rep(NA_real_, all), known, v))
}

# Returns the number of trials in each new row: successes plus failures, or the weight if the response is a share.
new_trials <- function(fit, newdata) {
  if (is.null(fit$terms) || attr(fit$terms, "dataClasses")[1L] == "nmatrix.2")
    return(rowSums(responses_in(fit, newdata)))
  size <- tryCatch(eval(fit$call$weights, newdata, environment(fit$terms)), error = function(e) NULL)
  if (is.numeric(size) && length(size) == nrow(as.data.frame(newdata))) return(size)
  abort_input("newdata", sprintf("lacks `%s`, the numbers of trials, which were the weights of the fit",
                                 deparse1(fit$call$weights)))
}

# This table has the arguments that predict() allows, by type (rows) and kind of response (columns, see response_of()).
# An entry has letters of allowed intervals (predict_intervals), a slash, and letters of allowed arguments.
predict_intervals <- c(none = "n", credible = "c", prediction = "p", conformal = "f")
predict_arguments <- c(se.fit = "s", certified = "c", full_cov = "v", hyper_uncertainty = "h", newdata = "d")
allowed <- as.matrix(utils::read.table(header = TRUE, row.names = 1L, text = "
             normal      transformed  other      classes   labels  ordered    times      own
  terms      n/sd        n/sd         n/sd       n/sd      -       n/sd       n/sd       n/sd
  derivative nc/scd      nc/scd       nc/sd      nc/sd     -       nc/sd      nc/sd      nc/sd
  density    n/hd        n/hd         n/d        n/d       n/d     n/d        n/d        n/d
  latent     ncpf/scvhd  ncpf/scvhd   ncp/scvhd  nc/scvhd  nc/scd  ncp/scvhd  ncp/scvhd  nc/scvhd
  mean       ncpf/scvhd  ncpf/scvhd   ncp/schd   nc/schd   nc/scd  ncp/schd   ncp/schd   nc/schd
  response   ncpf/scvhd  ncpf/schd    ncp/schd   nc/schd   nc/scd  nc/schd    ncp/schd   nc/schd
  median     ncpf/scvhd  ncpf/chd     ncp/hd     -         -       -          ncp/hd     -
  quantile   n/hd        n/hd         n/hd       -         -       -          n/hd       -
  loo        ncp/s       ncp/s        ncp/s      nc/s      nc/s    n/s        ncp/s      nc/s
  loo_latent ncp/s       ncp/s        ncp/s      nc/s      nc/s    ncp/s      ncp/s      nc/s
  class      -           -            -          n/hd      npf/d   npf/hd     -          -
  survival   -           -            -          -         -       -          nc/chd     -"))

# Returns list(intervals, with), the intervals and arguments that a type allows for a kind of response, or NULL if none.
allowed_with <- function(type, kind) {
  letters <- if (isTRUE(type %in% rownames(allowed))) strsplit(allowed[type, kind], "/")[[1L]]
  if (length(letters) < 2L) return(NULL)
  of <- function(table, letters) names(table)[vapply(table, grepl, NA, letters, fixed = TRUE)]
  list(intervals = of(predict_intervals, letters[1L]), with = of(predict_arguments, letters[2L]))
}

# Checks the arguments of predict(), in the list `ask`, and their combination.
check_asked <- function(response, ask) {
  for (flag in setdiff(names(predict_arguments), "newdata")) ask[[flag]] <- check_flag(ask[[flag]], flag)
  types <- eval(formals(predict.gp_fit)$type)
  if (is.null(ask$type) || identical(ask$type, types)) ask$type <- response$predicts
  other <- !response$conjugate
  kind <- response$kind
  type <- if (is.character(ask$type) && length(ask$type) == 1L) types[pmatch(ask$type, types)]
  if (identical(type, "link")) type <- "latent"
  of <- sprintf("with %s responses%s", response$label, if (kind == "classes") " of two classes" else "")
  row <- allowed_with(type, kind)
  if (is.null(row)) {
    known <- c(rownames(allowed)[allowed[, kind] != "-"], "link")
    hint <- if (anyNA(type)) did_you_mean(ask$type, known, TRUE)
    if (response$reads == "classes" && any(grepl("^prob", ask$type))) hint <- "Probabilities have type = \"response\"."
    abort_input("type", describe(ask$type), paste(list_quoted(known, "\"", 13L, "or"), of), hint)
  }
  ask$type <- type
  # "conf" means "confidence" as in predict.lm(), not "conformal".
  if (is.character(ask$interval) && length(ask$interval) == 1L && isTRUE(nchar(ask$interval) >= 2L) &&
        startsWith("confidence", ask$interval)) ask$interval <- "credible"
  ask$level <- check_level(ask$level)
  known <- is.character(ask$interval) && all(ask$interval %in% names(predict_intervals))
  ask$interval <- check_choice(ask$interval, if (known) names(predict_intervals) else row$intervals, "interval")
  some_type <- any(grepl(paste0(predict_intervals[[ask$interval]], ".*/"), allowed[, kind]))
  beside <- paste(c(if (some_type) sprintf("for type = \"%s\"", type), of), collapse = " ")
  interval <- sprintf("interval = \"%s\"", ask$interval)
  refuse_if(!ask$interval %in% row$intervals, "interval",
            sprintf("= \"%s\" is not available %s", ask$interval, beside), hint = paste0(
              "Use ", list_quoted(row$intervals, "\"", last = "or"), ".",
              if (response$reads %in% c("classes", "ordered", "labels") && type != "response")
                " interval = \"credible\" with type = \"response\" gives intervals for probabilities.",
              if (ask$interval %in% setdiff(allowed_with("class", kind)$intervals, row$intervals))
                " interval = \"prediction\" with type = \"class\" gives sets of classes."))
  for (flag in names(predict_arguments)) {
    refuse_if(ask[[flag]] && !flag %in% row$with, flag, if (flag != "newdata") paste("is not available", beside) else
      sprintf("is not available for type = \"%s\", which predicts the training rows", type))
  }
  refuse <- function(wrong, argument, beside, hint = NULL) {
    refuse_if(wrong, argument, paste("cannot be combined with", beside), hint = hint)
  }
  refuse(!is.null(ask$wrt) && type != "derivative", "wrt", sprintf("type = \"%s\"", type))
  refuse(ask$certified && ask$interval %in% c("none", "conformal"), "certified", interval,
         "Certificates need interval = \"credible\" or \"prediction\".")
  refuse(other && ask$certified && ask$interval == "prediction", "certified", interval, "Use interval = \"credible\".")
  refuse(other && ask$certified && ask$hyper_uncertainty, "certified", "`hyper_uncertainty`")
  refuse(!is.null(response$transform) && ask$certified && ask$hyper_uncertainty && ask$interval == "credible" &&
           type %in% c("mean", "response"), "certified", "`hyper_uncertainty`", "Use type = \"median\".")
  refuse_if(!ask$re && (ask$certified || ask$interval == "conformal" ||
                          type %in% c("loo", "loo_latent", "terms", "derivative")), "re",
            "= FALSE is not available with `certified`, conformal intervals, terms, slopes and leave-one-out")
  refuse(ask$hyper_uncertainty && ask$interval == "conformal", "hyper_uncertainty", interval)
  refuse(other && ask$full_cov && ask$interval == "prediction", "full_cov", interval)
  if (type == "mean" && other && response$kind != "ordered") ask$type <- "response"
  given <- response$reads != "own" || !is.na(response$expected(0, response$theta))
  refuse_if(!given && ask$type %in% c("response", "loo"), "mean", "is missing in gp_family(); the mean is unknown",
            hint = "Fit with `mean`, such as mean = ~ exp(f). type = \"link\" predicts f without it.")
  ask
}
