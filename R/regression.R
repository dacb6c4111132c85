# Methods that functions for lm() and glm() use.

#' Methods that linear models have
#'
#' Methods of R's functions for regression models, with the same meaning as for [lm()] and [glm()].
#'
#' * `deviance()`: the weighted sum of squared residuals, or for a non-Gaussian likelihood the deviance of [glm()].
#' * `df.residual()`: the number of rows minus `sum(hatvalues(fit))`, not a whole number, at least 0.
#' * `extractAIC()`: the number of learned hyperparameters and the AIC, so that [step()] and [drop1()] work on fits from
#'   a formula. If `logLik()` is a bound or an estimate, [anova()][anova.gp_fit] shows whether fits can be compared.
#' * `family()`: the family of the response. `labels()`: the terms of the formula, or the columns of a matrix.
#'   `case.names()`: names of the rows, by default without those of weight 0.
#' * `update()`: as in R. Data that the caller cannot see are looked up where the formula was written; a fit from a
#'   matrix provides its own `x` and `y`.
#'
#' @param object,fit A fit.
#' @param scale,k Not used, and the penalty for a parameter.
#' @param full Should rows of weight 0 be named, too?
#' @param formula. Changes to the formula.
#' @param evaluate `FALSE` returns the new call instead of the fit.
#' @param ... For `update()`, arguments to change or to add.
#' @return Numbers, a `family`, text, or for `update()` a fit.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' c(sqrt(deviance(fit) / df.residual(fit)), sigma(fit))
#' update(fit, log(dist) ~ .)
#' @seealso [gp_fit-methods], [leave_one_out], [anova.gp_fit()]
#' @aliases df.residual.gp_fit labels.gp_fit
#' @name gp_fit-regression
NULL

#' @rdname gp_fit-regression
#' @importFrom stats deviance
#' @usage NULL
#' @export
deviance.gp_fit <- function(object, ...) {
  sum(stats::residuals(check_any_fit(object, "object"), "deviance")^2, na.rm = TRUE)
}

#' @importFrom stats df.residual
#' @export
df.residual.gp_fit <- function(object, ...) {
  max(0, stats::nobs(object) - sum(stats::hatvalues(object), na.rm = TRUE))
}

#' @rdname gp_fit-regression
#' @importFrom stats extractAIC
#' @export
extractAIC.gp_fit <- function(fit, scale, k = 2, ...) c(fit$df, stats::AIC(fit, k = k))

#' @rdname gp_fit-regression
#' @method family gp_fit
#' @rawNamespace S3method(stats::family,gp_fit)
family.gp_fit <- function(object, ...) {
  family_of(object$likelihood)
}

#' @rdname gp_fit-regression
#' @importFrom stats case.names
#' @export
case.names.gp_fit <- function(object, full = FALSE, ...) {
  data <- training_data(object)
  names <- names(data$response)
  if (is.null(names)) names <- as.character(seq_along(data$response))
  if (full || is.null(data$prior_weights)) names else names[data$prior_weights > 0]
}

#' @export
labels.gp_fit <- function(object, ...) {
  if (is.null(object$terms)) object$frame$columns else attr(object$terms, "term.labels")
}

#' @rdname gp_fit-regression
#' @importFrom stats update
#' @export
update.gp_fit <- function(object, formula., ..., evaluate = TRUE) {
  call <- stats::getCall(object)
  extras <- match.call(expand.dots = FALSE)$...
  if (!missing(formula.)) {
    if (is.null(object$terms)) abort_input("formula.", "given", "left out of a fit from a matrix")
    call$formula <- stats::update(stats::formula(object), formula.)
  }
  known <- names(extras) %in% names(call)
  for (name in names(extras)[known]) call[[name]] <- extras[[name]] # NULL removes the argument
  call <- as.call(c(as.list(call), extras[!known]))
  if (!isTRUE(evaluate)) return(call)
  eval(call, frame_of_update(object, call, names(extras), parent.frame()))
}

# Returns the environment with the data of the call: the caller's frame, or that of the formula with the caller's values
# of `new` arguments. A fit from a matrix provides its own data.
frame_of_update <- function(object, call, new, caller) {
  # arguments that are evaluated in the data may name its columns
  asked <- if (is.null(object$terms)) c("x", "y", "weights", "offset") else
    setdiff(names(call)[-1L], c("formula", "subset", "weights", "offset"))
  asked <- setdiff(intersect(asked, names(call)), new)
  lacking <- Filter(function(argument) missing_in(call[[argument]], caller), asked)
  if (!length(lacking)) return(caller)
  frame <- new.env(parent = if (is.null(object$terms)) caller else environment(object$terms))
  if (is.null(object$terms)) {
    data <- training_data(object)
    inputs <- training_inputs(data)
    own <- list(x = inputs$x[inputs$index, , drop = FALSE], y = given_response(data), weights = data$prior_weights,
                offset = data$offset)
    for (argument in lacking) {
      if (is.symbol(call[[argument]])) assign(as.character(call[[argument]]), own[[argument]], envir = frame)
    }
    return(frame)
  }
  for (name in all.vars(as.call(c(quote(list), as.list(call)[new])))) {
    if (exists(name, envir = caller)) assign(name, get(name, envir = caller), envir = frame)
  }
  frame
}

# Returns TRUE if a name in the expression has no value there. R's own functions, such as data(), are not values.
missing_in <- function(expression, frame) {
  own <- c(list(NULL), lapply(c("utils", "stats"), asNamespace))
  !all(vapply(all.vars(expression), function(name) {
    value <- get0(name, envir = frame, ifnotfound = sum)
    !is.function(value) || !any(vapply(own, identical, NA, environment(value)))
  }, NA))
}
