# What R users expect a fit to answer: print, summary, coef, fitted, residuals, simulate, ...

#' Methods for Gaussian process fits
#'
#' What [pfdtc()] and the `gp_` functions return answers R's usual questions.
#'
#' * `print()`, `summary()`: the data, the choices made, the hyperparameters, and how the optimiser ended. A kernel
#'   that was chosen comes with what the others fell behind by, in nats a row at rows held out; hyperparameters with
#'   how many of the starts led to the same evidence (one of many: try more `restarts`, see [pfdtc_control()]); near
#'   rows with what the inducing points leave unexplained; an exact posterior of less than 50 rows with leave-one-out
#'   log densities of itself (at its hyperparameters, which flatters it), of a linear model and of the mean alone, in
#'   nats a row. Where the optimiser of inducing points used up its iterations, the share of the descent that the last
#'   tenth of the evaluations brought tells whether more would be worth their time. `summary()` sets the lengthscales
#'   beside the ranges of the inputs: an input whose lengthscale is above 100 times its range has hardly any effect.
#' * `coef()`: the hyperparameters, named `lengthscale.<column>`, `variance` and `noise`:
#'   lengthscales in units of the inputs, the two variances in squared units of the response.
#' * `sigma()`: the noise's standard deviation, `sqrt(coef(fit)["noise"])`.
#' * `logLik()`: of the response as given. Where the posterior is exact ([gp_exact()], or [pfdtc()]
#'   of few rows) it is the exact Gaussian process's log evidence. Of inducing points by [pfdtc()],
#'   [gp_vfe()] and [gp_dtc()] it is the evidence lower bound (ELBO): the log evidence is no smaller.
#'   With near rows it is an *estimate* of the log evidence, by the density of each response given
#'   the inducing points and its near rows: no bound, on either side. For [gp_fitc()] and [gp_sor()]
#'   it is the log evidence of their own models, for [gp_subsample()] that of its rows alone.
#'   Attribute `df` counts the hyperparameters that were learned, `nobs` the rows used; `lower` and
#'   `upper`, which bracket the exact log evidence as [evidence_bounds()] does, are there for exact
#'   posteriors and for those of inducing points by the three above, and with near rows where the fit
#'   carries a reference.
#' * `AIC()`, `BIC()`: from `logLik()` and its `df`, as for any model. Of two fits or more they warn,
#'   with class `pfdtc_warning_evidence`, where what the brackets leave open (that of a log
#'   likelihood without a bracket is taken to be its value) is more than what sets the fits apart:
#'   then they do not tell which one is better. A reference narrows the bracket: `fit$reference <-
#'   reference(fit)`.
#' * `nobs()`: the rows used: without missing values and with positive weight. Of [gp_subsample()] the
#'   rows of its posterior, whose log likelihood `logLik()` is.
#' * `fitted()`, `residuals()`: posterior mean at the training rows, and response minus that.
#'   Pearson residuals are multiplied by the square root of the row's weight, as those of [lm()].
#'   Both are padded with `NA` if the fit used `na.exclude`, and need the data (`keep_data = TRUE`).
#' * `simulate()`: joint draws from the posterior at the training rows or at `newdata`: of a new
#'   response (with the row's own noise, `sigma^2 / weight`, at the training rows; weight 1 at new
#'   ones), or of f.
#' * `formula()`, `terms()`: of a fit from a formula; an error for a fit from a matrix.
#' * `model.frame()`: of a formula fit, evaluated again from its call as for [lm()]; of a matrix fit
#'   the response `y` and the columns of `x`.
#' * `variable.names()`: the columns of the inputs.
#' * `weights()`: the prior weights, or `NULL`.
#'
#' @param object,x,formula A fit. `print()` and `formula()` call it `x`, `model.frame()` calls it
#'   `formula`.
#' @param digits Significant digits to print.
#' @param type For `residuals()`, `"response"` or `"pearson"`; for `simulate()`, draws of a new
#'   `"response"` or of the `"latent"` function.
#' @param nsim Number of draws.
#' @param seed `NULL`, or a number for [set.seed()], after which R's generator is put back, as
#'   [simulate()] describes.
#' @param newdata Rows to draw at, as for [predict.gp_fit()]; when missing, the training rows.
#' @param k Penalty for a parameter.
#' @param ... For `AIC()` and `BIC()`, more fits. Else nothing, or passed on to print methods.
#' @return
#' `coef()` a named vector; `sigma()`, `nobs()` a number; `logLik()` an object of class `logLik`;
#' `AIC()` and `BIC()` a number, or of several fits a data frame with columns `df` and `AIC` or `BIC`;
#' `fitted()` and `residuals()` a named vector with an element a training row; `simulate()` a data
#' frame with a column a draw and attribute `seed`; `summary()` an object with a print method;
#' `print()` its argument, invisibly.
#' @section Invariants:
#' * `fitted(fit)` is `predict(fit)`, and `residuals(fit)` is the response minus that.
#' * The mean and covariance of many draws of `simulate(fit, newdata = new)` approach `predict(fit,
#'   new)` and the `cov` of `predict(fit, new, type = "response", full_cov = TRUE)`.
#' * `simulate()` with a `seed` gives the same draws each time and leaves R's generator as it was.
#' @inherit predict.gp_fit source
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' fit
#' summary(fit)
#' coef(fit)
#' logLik(fit)
#' head(residuals(fit))
#' simulate(fit, nsim = 2, seed = 1, newdata = data.frame(speed = c(5, 20)))
#' @name gp_fit-methods
NULL

#' @rdname gp_fit-methods
#' @export
print.gp_fit <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  about <- fit_facts(check_fit(x, "x"))
  print_heading(about)
  print_fields(model_fields(about, digits))
  print_lengthscales(about$coefficients, digits)
  if (!is.na(about$optimiser)) print_fields(c(Optimiser = about$optimiser))
  invisible(x)
}

#' @rdname gp_fit-methods
#' @export
summary.gp_fit <- function(object, ...) {
  object <- check_fit(object, "object")
  resid <- if (!is.null(object$data)) stats::residuals(object)
  out <- c(fit_facts(object), list(
    range = input_range(object), residuals = resid,
    rmse = if (is.null(resid)) NA_real_ else sqrt(mean(resid^2, na.rm = TRUE))))
  structure(out, class = "summary.gp_fit")
}

#' @rdname gp_fit-methods
#' @export
print.summary.gp_fit <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  number <- function(v) format(signif(v, digits))
  print_heading(x)
  print_fields(model_fields(x, digits))
  print_lengthscales(x$coefficients, digits, x$range)
  if (!is.null(x$residuals)) {
    cat("Residuals:\n")
    q <- stats::quantile(x$residuals, na.rm = TRUE)
    print(signif(stats::setNames(q, c("Min", "1Q", "Median", "3Q", "Max")), digits))
    cat("\n")
  }
  print_fields(c(
    RMSE = if (is.na(x$rmse)) "not known: the fit has left its data out (keep_data = FALSE)"
      else paste(number(x$rmse), "at the training rows"),
    describe_evidence(x, number),
    Response = if (x$center == 0 && x$scale == 1) "neither centred nor scaled"
      else sprintf("centred at %s, scaled by %s inside the fit", number(x$center),
                   number(x$scale)),
    Jitter = if (!is.null(x$jitter)) paste(format(x$jitter, digits = 2), "of the signal variance"),
    Optimiser = x$optimiser,
    Evaluations = list_named(x$evaluations),
    Seconds = list_named(signif(x$seconds, 3))))
  invisible(x)
}

# `elbo` holds the log evidence itself where the method has one.
describe_evidence <- function(about, number) {
  learned <- sprintf("(%d hyperparameter%s learned)", about$df, plural_s(about$df))
  value <- number(about$elbo)
  switch(about$method,
         gp_exact = c(Evidence = paste0(value, ", the log evidence ", learned)),
         gp_subsample = c(Evidence = sprintf("%s, the log evidence of its %d rows %s", value, about$m,
                                             learned)),
         gp_fitc = ,
         gp_sor = c(Evidence = paste0(value, ", the log evidence of its own model ", learned)),
         describe_elbo(about, value, learned))
}

describe_elbo <- function(about, value, learned) {
  switch(about$posterior,
         exact = c(Evidence = paste0(value, ", the log evidence ", learned)),
         "far + near" = c(Evidence = paste0(value, ", an estimate of the log evidence by near rows, no bound ",
                                            learned)),
         c(ELBO = paste0(value, ", a lower bound of the log evidence ", learned)))
}

# What print() and summary() tell of a fit.
fit_facts <- function(fit) {
  parts <- c("call", "method", "kernel", "noise", "m", "m_asked", "aux", "inducing_method",
             "hyper", "center", "scale", "nobs", "df", "elbo", "objective", "jitter", "evaluations",
             "seconds", "convergence", "message", "kernels", "posterior", "neighbours")
  c(unclass(fit)[intersect(parts, names(fit))], list(
    title = fit_title(fit), coefficients = stats::coef(fit), sigma = stats::sigma(fit),
    inputs = length(fit$frame$columns), variables = length(fit$frame$variables),
    omitted = length(fit$na.action), inducing = describe_inducing(fit),
    subsample = if (is.null(fit$chosen)) NA_character_ else
      sprintf("%d random row%s", fit$m, plural_s(fit$m)),
    near = describe_near(fit), few = describe_small_n(fit$small_n), auxiliary = describe_aux(fit),
    accuracy = describe_tolerance(fit),
    learned = describe_hyper(fit), optimiser = describe_convergence(fit)))
}

print_heading <- function(about) {
  cat("Gaussian process by ", about$title, "\n", sep = "")
  if (!is.null(about$call)) {
    call <- clip(deparse_shown(about$call), 400L)
    cat(wrap(paste("Call:", call), exdent = 6), sep = "\n")
  }
  cat("\n")
}

model_fields <- function(about, digits) {
  theta <- about$coefficients
  variance <- function(v) {
    number <- function(v) format(signif(unname(v), digits))
    sprintf("variance %s (sd %s)", number(v), number(sqrt(v)))
  }
  c(Data = describe_data(about), Subsample = about$subsample, Inducing = about$inducing,
    Accuracy = about$accuracy, Auxiliary = about$auxiliary,
    Near = about$near,
    Kernel = sprintf("%s; %s", describe_kernel(about), variance(theta["variance"])),
    Noise = variance(theta["noise"]), Hyper = about$learned,
    Check = about$few)
}

# `range`: of each column, for summary(), which also names the inputs along which f hardly varies.
print_lengthscales <- function(theta, digits, range = NULL) {
  l <- theta[startsWith(names(theta), "lengthscale.")]
  names(l) <- sub("lengthscale.", "", names(l), fixed = TRUE)
  show <- function(v) vapply(signif(v, digits), format, "")
  if (is.null(range)) {
    cat("Lengthscale", plural_s(length(l)), ":\n", sep = "")
    print(show(l), quote = FALSE)
  } else {
    cat("Lengthscale", plural_s(length(l)), ", and range of the data:\n", sep = "")
    range <- range[names(l)]
    print(rbind(lengthscale = show(l), range = show(range)), quote = FALSE, right = TRUE)
    flat <- names(l)[range < l / 100]
    if (length(flat)) {
      text <- paste("Hardly any effect (lengthscale above 100 times the range):",
                    paste(flat, collapse = ", "))
      cat(wrap(text, exdent = 2), sep = "\n")
    }
  }
  cat("\n")
}

# Of each column; a fit without its data has kept minimum, median and maximum.
input_range <- function(fit) {
  x <- slice_rows(fit)
  stats::setNames(apply(x, 2L, max) - apply(x, 2L, min), fit$frame$columns)
}

# "Name   text", the text wrapped and aligned; fields that are NA are left out.
print_fields <- function(fields) {
  fields <- fields[!is.na(fields)]
  for (name in names(fields)) {
    cat(wrap(fields[[name]], initial = formatC(name, width = -12), prefix = strrep(" ", 12)),
        sep = "\n")
  }
}

# strwrap() that never breaks a line at "argument = value" or "10 %".
wrap <- function(text, ...) {
  text <- gsub(" (=|%)", "\001\\1", gsub("= ", "=\001", text, fixed = TRUE))
  gsub("\001", " ", strwrap(text, width = getOption("width"), ...), fixed = TRUE)
}

fit_title <- function(x) {
  titles <- c(pfdtc = "pF-DTC", gp_vfe = "VFE (sparse variational)", gp_dtc = "DTC", gp_sor = "SoR",
              gp_fitc = "FITC", gp_subsample = "the exact posterior of a subsample",
              gp_exact = "the exact posterior")
  if (x$method == "pfdtc" && isTRUE(x$posterior != "far")) return(posterior_title(x))
  title <- titles[x$method]
  if (is.na(title)) x$method else unname(title)
}

posterior_title <- function(fit) {
  if (is_exact(fit)) return("the exact posterior (of so few rows, pfdtc() needs no inducing points)")
  "inducing points and near rows"
}

describe_data <- function(about) {
  omitted <- if (about$omitted) sprintf(" (%d more left out by na.action)", about$omitted) else ""
  variables <- if (about$variables && about$variables != about$inputs) {
    sprintf(" (%d variable%s)", about$variables, plural_s(about$variables))
  } else {
    ""
  }
  sprintf("%d row%s%s, %d input%s%s", about$nobs, plural_s(about$nobs), omitted, about$inputs,
          plural_s(about$inputs), variables)
}

# Fewer points than asked for: greedy selection has explained k(X, X), the others ran out of rows.
describe_inducing <- function(fit) {
  if (is.null(fit$inducing) || is_exact(fit)) return(NA_character_)
  tried <- if (is.na(fit$evaluations["other start"])) "" else " (the better of two tried)"
  how <- switch(fit$inducing_method, greedy = paste0("greedy start", tried),
                divergence = paste0("start greedy in the divergence", tried), random = "started at random rows",
                kmeans = "started by k-means", given = "start given", fit$inducing_method)
  fewer <- ""
  if (!is.null(fit$m_asked) && fit$m < fit$m_asked) {
    why <- if (fit$inducing_method %in% c("greedy", "divergence")) "they explain the kernel matrix to rounding" else
      "there are no more different rows"
    fewer <- sprintf(" of %d asked for (%s)", fit$m_asked, why)
  }
  sprintf("%d point%s%s, %s", fit$m, plural_s(fit$m), fewer, how)
}

describe_near <- function(fit) {
  if (fit$method != "pfdtc" || is_exact(fit) || is.null(fit$neighbours)) return(NA_character_)
  left <- if (is.null(fit$unexplained) || !is.finite(fit$unexplained)) "" else
    sprintf("; what the points leave unexplained is %s of the noise variance", format(signif(fit$unexplained, 2)))
  if (fit$neighbours == 0L) return(paste0("none", left))
  sprintf("the %d nearest rows of each prediction are treated exactly%s", fit$neighbours, left)
}

# With the sizes that a description leaves to the data.
describe_aux <- function(fit) {
  aux <- fit$aux
  if (is.null(aux) || isFALSE(fit$moved)) return(NA_character_)
  n <- min(fit$nobs, fit$control$optimise_rows)
  fill <- function(aux, fit) {
    if (aux$kind == "refresh") aux$start <- fill(aux$start, fit[c("m", "nobs")])
    if (aux$kind == "reference") {
      made <- nrow(fit$aux_points)     # fewer where these explain the kernel matrix to rounding
      aux$m2 <- if (!is.null(made)) made else if (is.null(aux$m2)) min(4 * fit$m, n) else aux$m2
    }
    if (aux$kind %in% c("sor", "subset") && is.null(aux$rows) && is.null(aux$size)) {
      aux$size <- min(ceiling(n / 10), 1000)
    }
    aux
  }
  format(fill(aux, fit))
}

describe_hyper <- function(fit) {
  text <- switch(fit$hyper, fixed = "fixed as given", evidence = describe_starts(fit$learned),
                 pilot = "learned by a pilot VFE run, then fixed",
                 joint = describe_joint(fit), fit$hyper)
  code <- fit$pilot$convergence
  if (is.null(code) || code == 0L) return(text)
  stopped <- switch(as.character(code), "1" = "`maxit`", "2" = "its time limit",
                    "52" = "an interrupt", paste("code", code))
  sprintf("%s (the pilot was ended by %s)", text, stopped)
}

describe_starts <- function(learned) {
  if (is.null(learned)) return("as they start: the fit was ended before they were learned")
  starts <- nrow(learned)
  if (isTRUE(attr(learned, "ended"))) return("learned by the evidence as far as `max_seconds` went")
  if (starts == 1L) return("learned by the evidence, from the one start given")
  agree <- sum(max(learned$evidence) - learned$evidence <= attr(learned, "same"))
  sprintf("learned by the evidence, best of %d starts (%s)", starts,
          if (agree == 1L) "found by one of them" else sprintf("found by %d of them", agree))
}

# The kernel, and where it was chosen the mean held-out log densities by which the others fell behind.
describe_kernel <- function(about) {
  kernels <- about$kernels
  if (is.null(kernels)) return(about$kernel$label)
  others <- kernels[!kernels$chosen, ]
  sprintf("%s, chosen by held-out score (%s)", about$kernel$label,
          paste(sprintf("%s %+.3f", others$kernel, others$score - kernels$score[kernels$chosen]), collapse = ", "))
}

describe_joint <- function(fit) {
  if (fit$method == "gp_exact") "learned by the exact evidence" else "learned together with the inducing points"
}

describe_convergence <- function(fit) {
  how <- switch(as.character(fit$convergence),
                "1" = sprintf("stopped after %d iterations (`maxit`)%s", fit$control$maxit,
                              describe_late_gain(fit$trace)),
                "52" = "interrupted: best fit so far", fit$message)
  if (is.null(how) || !nzchar(how)) how <- paste("code", fit$convergence)
  if (how %in% c("no lower value can be found in double precision", "the gradient is zero")) {
    how <- paste("converged:", how)
  }
  made <- fit$evaluations[setdiff(names(fit$evaluations), "pilot")]
  if (!sum(made)) return(how)
  sprintf("%s; %d evaluation%s", how, as.integer(sum(made)), plural_s(sum(made)))
}

# How much of the whole descent the last tenth of the evaluations brought: is more `maxit` worth it?
describe_late_gain <- function(trace) {
  if (!is.null(trace$round)) return("")     # a renewed objective is another one
  value <- trace$objective[!is.na(trace$objective)]
  if (length(value) < 20L) return("")
  best <- cummin(value)
  n <- length(best)
  whole <- best[1L] - best[n]
  if (!(whole > 0)) return("")
  late <- 100 * (best[floor(0.9 * n)] - best[n]) / whole
  sprintf(", whose last tenth brought %s %% of the descent",
          if (late < 0.01) "less than 0.01" else format(signif(late, 2)))
}

list_named <- function(x) {
  if (!length(x)) return("none")
  paste(sprintf("%s %s", names(x), format(unlist(x), trim = TRUE, drop0trailing = TRUE)),
        collapse = ", ")
}

#' @rdname gp_fit-methods
#' @export
coef.gp_fit <- function(object, ...) {
  object <- check_fit(object, "object")
  stats::setNames(c(object$kernel$lengthscale, object$kernel$variance, object$noise),
                  parameter_names(object$kernel, object$frame$columns))
}

#' @rdname gp_fit-methods
#' @export
sigma.gp_fit <- function(object, ...) sqrt(object$noise)

#' @rdname gp_fit-methods
#' @export
nobs.gp_fit <- function(object, ...) if (object$method == "gp_subsample") object$m else object$nobs

#' @rdname gp_fit-methods
#' @export
logLik.gp_fit <- function(object, ...) {
  object <- check_fit(object, "object")
  # what brackets the evidence is beside a near field a pass over all rows, and of no use without a reference
  open <- !is.null(object$near) && is.null(object$reference)
  bounds <- if (!open && object$method %in% c("pfdtc", "gp_vfe", "gp_dtc", "gp_exact")) {
    tryCatch(evidence_bounds(object), pfdtc_error_input = function(e) NULL) # it may need the data
  }
  structure(object$elbo, df = object$df, nobs = stats::nobs(object), lower = bounds[["lower"]],
            upper = bounds[["upper"]], class = "logLik")
}

#' @rdname gp_fit-methods
#' @export
fitted.gp_fit <- function(object, ...) stats::predict(object)

#' @rdname gp_fit-methods
#' @export
residuals.gp_fit <- function(object, type = c("response", "pearson"), ...) {
  type <- check_choice(type, c("response", "pearson"), "type")
  data <- training_data(object)
  r <- stats::naresid(object$na.action, data$response) - stats::fitted(object)
  if (type == "response" || is.null(data$prior_weights)) return(r)
  r * sqrt(stats::weights(object))
}

#' @rdname gp_fit-methods
#' @export
weights.gp_fit <- function(object, ...) {
  stats::naresid(object$na.action, training_data(object)$prior_weights)
}

#' @rdname gp_fit-methods
#' @export
terms.gp_fit <- function(x, ...) {
  if (is.null(x$terms)) abort_input("x", "a fit from a matrix", "a fit from a formula")
  x$terms
}

#' @rdname gp_fit-methods
#' @export
formula.gp_fit <- function(x, ...) stats::formula(stats::terms(x))

#' @rdname gp_fit-methods
#' @export
variable.names.gp_fit <- function(object, ...) object$frame$columns

#' @rdname gp_fit-methods
#' @export
model.frame.gp_fit <- function(formula, ...) {
  if (is.null(formula$terms)) {
    data <- training_data(formula)
    rows <- training_inputs(data)
    return(data.frame(y = unname(data$response), rows$x[rows$index, , drop = FALSE],
                      row.names = names(data$response), check.names = FALSE))
  }
  call <- formula$call
  parts <- match(c("data", "subset", "weights", "na.action", "offset"), names(call), 0L)
  call <- call[c(1L, parts)]
  call[[1L]] <- quote(stats::model.frame)
  call$formula <- stats::terms(formula)
  call$drop.unused.levels <- TRUE
  given <- list(...)
  call[names(given)] <- given
  eval(call, environment(call$formula), parent.frame())
}

#' @rdname gp_fit-methods
#' @export
simulate.gp_fit <- function(object, nsim = 1, seed = NULL, newdata,
                            type = c("response", "latent"), ...) {
  check_dots_empty(list(...), names(formals(simulate.gp_fit)))
  object <- check_fit(object, "object")
  nsim <- check_count(nsim, "nsim")
  if (!is.null(seed)) check_count(seed, "seed", min = -.Machine$integer.max, max = .Machine$integer.max)
  type <- check_choice(type, c("response", "latent"), "type")
  training <- missing(newdata) || is.null(newdata)
  rows <- if (training) training_rows(object) else new_rows(object, newdata, stats::na.pass)
  n <- length(rows$index)
  check_memory(24 * as.double(max(n, nrow(rows$x))) * nsim, sprintf("%.0f draws at %d rows", as.double(nsim), n))

  # seed and the generator's state as stats::simulate() promises
  if (!exists(".Random.seed", envir = globalenv(), inherits = FALSE)) stats::runif(1)
  state <- get(".Random.seed", envir = globalenv())
  if (!is.null(seed)) {
    on.exit(assign(".Random.seed", state, envir = globalenv()))
    set.seed(seed)
    state_used <- structure(seed, kind = as.list(RNGkind()))
  } else {
    state_used <- state
  }

  f <- draw_normal(nsim, posterior_at(object, rows$x)$mean,
                   covariance_at(object, list(x = rows$x, index = seq_len(nrow(rows$x)))))
  draws <- f[rows$index, , drop = FALSE] + rows$offset
  if (type == "response") {
    w <- if (training) stats::weights(object)
    sd <- sqrt(object$noise / if (is.null(w)) rep(1, n) else w)
    sd[!is.finite(sd)] <- NA     # a response of weight 0 has no distribution
    draws <- draws + ifelse(is.na(sd), NA, 1) * sd * stats::rnorm(n * nsim)
  }
  colnames(draws) <- paste0("sim_", seq_len(nsim))
  structure(data.frame(draws, row.names = if (!is.null(rows$names)) make.unique(rows$names)),
            seed = state_used)
}

# nsim columns from N(mean, cov). Pivoting copes with a covariance singular to rounding: cov[p, p] =
# R'R, rows of R beyond the rank are rounding.
draw_normal <- function(nsim, mean, cov) {
  n <- length(mean)
  if (!n) return(matrix(0, 0L, nsim))
  R <- suppressWarnings(chol(cov, pivot = TRUE))
  R[seq_len(n) > attr(R, "rank"), ] <- 0
  z <- matrix(stats::rnorm(n * nsim), n)
  f <- matrix(0, n, nsim)
  f[attr(R, "pivot"), ] <- crossprod(R, z)
  mean + f
}
