# Computes linear functionals of f for users: weighted sums, partial dependence, terms, derivatives and coefficients.

#' Compute averages, contrasts, ratios and other weighted sums of f
#'
#' `linear_functional()` returns mean and sd of \eqn{\sum_i w_i f(x_i)}{sum w_i f(x_i)}, or of the average of f over a
#' box (block kriging). Certified intervals contain the values of the exact GP. Use weights `1 / n` for averages over
#' rows and `c(1, -1)` for contrasts. `ratios()` returns ratios of odds, means, times or hazards between rows.
#' @order 1
#' @param fit A fit with one latent function; `ratios()` needs a `family`.
#' @param weights A weight for each row of `newdata`, or a matrix with such weights in each row. Row names are kept.
#' @param newdata Rows at which f is evaluated. Default: the training rows. For `ratios()`, the rows to compare.
#' @param certified `TRUE` adds certified intervals; `FALSE` is fast. If `TRUE` with a non-Gaussian `family`, all
#'   columns use the posterior mode of f instead of its mean.
#' @param effort,reference,m2,max_seconds As in [certify()].
#' @param lower,upper The corners of boxes of the inputs, instead of `weights` and `newdata`: data frames or matrices
#'   with a row for each box, or named vectors. Inputs only in `lower` are constant.
#' @param average `FALSE` returns integrals over boxes, not averages.
#' @param than The rows to compare with: one row, or as many as `newdata` has. A ratio includes the offsets.
#' @param level Probability of the credible interval of a ratio.
#' @param ... For `ratios()` further arguments of `linear_functional()`; otherwise not used.
#' @return A data frame with a row for each sum: `mean` (with constant mean and offsets) and `sd`, and if `certified`
#'   the columns of [certify()] for f. They are in units of f (the scale of transform or link). Uncertified, they agree
#'   with `predict(fit, newdata, type = "link", full_cov = TRUE)`. A sum that needs a missing value is `NA`.
#'   `ratios()`: a data frame with columns `ratio`, `lwr` and `upr`. If `certified`, the interval from `lwr_certified`
#'   to `upr_certified` contains the interval of the exact GP. The attribute `of` names the kind of ratio.
#' @details Averages over boxes have a closed form for most kernels made of squared exponential factors and of Matern
#'   factors with one input each. Otherwise a quadrature rule computes them. Certificates then refer to the quadrature
#'   sum, and the column `quadrature` is its difference from a coarser rule.
#'
#' `ratios()` compares odds for logit links (cumulative odds for ordered classes) and means for log links. It compares
#' hazards for [weibull()], odds of an event for `loglogistic()`, times for `lognormal()`, rates for
#' `truncated_poisson()`. Other links fail.
#' @seealso [certify()], [partial_dependence()], [predict.gp_fit()]
#' @examples
#' fit <- gp_exact(dist ~ speed, cars, kernel = kernel_matern(5/2))
#' new <- data.frame(speed = c(5, 10, 20))
#' linear_functional(fit, rbind(average = rep(1 / 3, 3), "20 - 10" = c(0, -1, 1)), new)
#' linear_functional(fit, certified = FALSE, lower = data.frame(speed = 5 * 1:4),
#'                   upper = data.frame(speed = 5 * 2:5))
#' manual <- pfdtc(am ~ wt, mtcars, family = binomial(), kernel = kernel_se())
#' ratios(manual, data.frame(wt = c(2, 3)), than = data.frame(wt = 4))
#' @export
linear_functional <- function(fit, weights, newdata, certified = is.null(fit$likelihood),
                              effort = c("reference", "fast", "tight"), ..., reference = fit$reference, m2 = NULL,
                              max_seconds = if (effort == "tight") Inf else 10, lower = NULL, upper = NULL,
                              average = TRUE) {
  check_dots_empty()
  fit <- refuse_classes(check_any_fit(fit, "fit"))
  effort <- check_choice(effort)
  ask <- certificate_asked(fit, certified, effort = effort, reference = reference, m2 = m2, max_seconds = max_seconds)
  if (!is.null(lower)) {
    refuse_if(!missing(weights) || !missing(newdata), "lower", "cannot be combined with `weights` or `newdata`")
    return(functionals_of_boxes(fit, lower, upper, check_flag(average, "average"), ask))
  }
  new <- new_rows(fit, newdata)
  check_given("weights", "Give a number for each row of `newdata`.")
  refuse_if(!is.numeric(weights) || !length(dim(weights)) %in% c(0L, 2L) || !all(is.finite(weights)), "weights",
            describe(weights), "a vector or a matrix of finite numbers",
            message = if (is.null(weights)) "`weights` is missing. Give a weight for each row, such as 1 / n.")
  if (is.null(dim(weights))) weights <- t(unname(weights))
  refuse_if(ncol(weights) != length(new$index), "weights",
            sprintf("has %s for %s", count_of(ncol(weights), "number"), count_of(length(new$index), "row")),
            hint = "For several sums give a matrix with a row for each.")
  storage.mode(weights) <- "double"
  # Divide weights by a power of two, so that their squares do not overflow, and multiply the results by that power.
  size <- 2^floor(log2(pmax(apply(abs(weights), 1L, max, 0), 2^-1022)))
  out <- functionals_of_rows(fit, lapply(seq_len(nrow(weights)), function(i) {
    rows <- which(weights[i, ] != 0)
    list(rows = rows, weights = weights[i, rows] / size[i])
  }), rownames(weights), new, ask)
  out[] <- lapply(out, `*`, size)
  out
}

# Returns the argument `ask` of answer_of_functionals(): list(certified, ...), where `...` are arguments of certify().
certificate_asked <- function(fit, certified, ...) {
  if (check_flag(certified, "certified")) check_posterior(fit, "certificate", "fit", "A certificate of a functional")
  list(certified = as.vector(certified), ...)
}

# Returns the data frame of linear_functional() for weighted sums, each list(rows, weights) with row numbers in `new`.
functionals_of_rows <- function(fit, functionals, names, new, ask) {
  offset <- rep_len(new$offset, length(new$index))
  sums <- vapply(functionals, function(f) {
    size <- sum(abs(f$weights)) * (1 + length(f$rows) / 64)
    c(weight = sum(f$weights), size = size, offset = sum(f$weights * offset[f$rows]),
      offset_size = size * max(0, abs(offset[f$rows])), known = !anyNA(new$index[f$rows]))
  }, numeric(5))
  rownames(sums) <- c("weight", "size", "offset", "offset_size", "known") # vapply() drops names if there are no sums
  known <- which(sums["known", ] == 1)
  fun <- sums_at(model_of(fit)$kernel, new$x, lapply(functionals[known], function(f) new$index[f$rows]),
                 lapply(functionals[known], `[[`, "weights"))
  shift <- unname(fit$center * sums["weight", ] + sums["offset", ])
  rounding <- 4 * .Machine$double.eps * unname(abs(fit$center) * sums["size", ] + sums["offset_size", ])
  spread <- function(v) replace(rep(NA_real_, ncol(sums)), known, v)
  out <- answer_of_functionals(fit, fun, shift, rounding, spread, ask)
  if (!is.null(names)) row.names(out) <- make.unique(names)
  out
}

#' Compute partial dependence, with certified intervals
#'
#' Sets one variable to the same value in all rows, and returns the average of f over the rows as a function of this
#' value. The sd is the posterior sd of the average. `type = "response"` averages the mean response (ordered
#' classes: class number); with a transform or `family` its sd is approximate, not certified.
#' @param fit,certified,effort,reference,m2,max_seconds,... As in [linear_functional()].
#' @param variable Name of a variable of the data, or for a fit from a matrix the name or number of a column.
#' @param newdata Rows to average over. Default: up to 200 training rows.
#' @param at,n Values of the variable. Default: at most `n` over the range, or all levels of a factor.
#' @param weights Relative weights of the rows. Default: equal weights.
#' @param type `"link"` for f, or `"response"` (default with a transform, or if [loglogistic()] replaced [gaussian()]).
#' @return A data frame of class `pfdtc_dependence`, which `plot()` and `autoplot()` draw. Each row has a value of the
#'   variable, in the first column, and the columns of [linear_functional()].
#' @source Friedman (2001), Greedy function approximation: a gradient boosting machine, *Annals of Statistics* 29.
#' @seealso [linear_functional()], [plot.gp_fit()]
#' @examples
#' fit <- gp_exact(mpg ~ wt + hp, mtcars, kernel = kernel_se())
#' partial_dependence(fit, "wt", at = c(2, 3, 4))
#' plot(partial_dependence(fit, "wt"))
#' @export
partial_dependence <- function(fit, variable, newdata, at = NULL, weights = NULL, certified = is.null(fit$likelihood),
                               effort = c("reference", "fast", "tight"), ..., reference = fit$reference, m2 = NULL,
                               max_seconds = if (effort == "tight") Inf else 10, n = 20, type = c("link", "response")) {
  check_dots_empty()
  fit <- refuse_classes(check_any_fit(fit, "fit"))
  type <- if (missing(type) && response_of(fit)$predicts == "mean") "response" else check_choice(type)
  of_mean <- type == "response" && !(response_of(fit)$conjugate && is.null(fit$transform))
  effort <- check_choice(effort)
  ask <- certificate_asked(fit, if (missing(certified) && of_mean) FALSE else certified, effort = effort,
                           reference = reference, m2 = m2, max_seconds = max_seconds)
  values <- check_count(n, "n", min = 2)
  refuse_if(ask$certified && of_mean, "certified", "is not available for averages of the mean response",
            hint = "Use type = \"link\" for certified averages of f.")
  rows <- if (missing(newdata)) rows_to_average(fit) else newdata
  good <- is.data.frame(rows) || is.matrix(rows) || (is.list(rows) && !is.object(rows))
  if (good) rows <- as.data.frame(rows)
  refuse_if(!good || !nrow(rows), "newdata", describe(newdata), "a data frame with rows")
  check_given("variable", sprintf("Give %s.", list_quoted(names(rows), "\"", last = "or")))
  if (is.numeric(variable) && length(variable) == 1L && is.null(fit$terms)) variable <- names(rows)[variable]
  refuse_if(!is_one_of(variable, names(rows)), "variable", describe(variable),
            list_quoted(names(rows), "\"", last = "or"))
  v <- rows[[variable]]
  if (is.null(at)) at <- if (is.factor(v)) factor(levels(v), levels(v), ordered = is.ordered(v)) else
    if (!is.numeric(v) && !is_time(v) || length(unique(v)) <= values) sort(unique(v)) else
      c(v[0L], seq(min(v, na.rm = TRUE), max(v, na.rm = TRUE), length.out = values)) # v[0L] keeps the class of v
  refuse_if(!is.atomic(at) || anyNA(at) || !length(at) || (is.object(at) && !is.factor(at) && !is_time(at)), "at",
            describe(at), "values of the variable")
  n <- nrow(rows)
  weights <- if (is.null(weights)) rep(1, n) else check_positive(weights, "weights", n)
  moved <- rows[rep(seq_len(n), length(at)), , drop = FALSE]
  moved[[variable]] <- rep(at, each = n)
  new <- naming_argument(if (missing(newdata)) "at" else "newdata", new_rows(fit, moved))
  each <- lapply(seq_along(at), function(i) (i - 1L) * n + seq_len(n))
  weights <- weights / sum(weights)
  scale <- if (type == "response") response_slopes(fit, new)
  functionals <- lapply(each, function(i) list(rows = i, weights = weights * if (is.null(scale)) 1 else scale$slope[i]))
  out <- functionals_of_rows(fit, functionals, NULL, new, ask)
  if (!is.null(scale)) out$mean <- vapply(each, function(i) sum(weights * scale$mean[i]), 0)
  label <- slice_label(fit, type)
  own <- utils::tail(make.unique(c(names(out), variable)), 1L) # a variable `mean` has the column `mean.1`
  structure(cbind(stats::setNames(data.frame(at), own), as.data.frame(unclass(out))), effort = attr(out, "effort"),
            m2 = attr(out, "m2"), sd_y = attr(out, "sd_y"), label = paste("average of", label),
            legend = sprintf("`mean` is the average of %s over %s.", label, count_of(n, "row")),
            class = c("pfdtc_dependence", "pfdtc_table", "data.frame"))
}

functionals_of_boxes <- function(fit, lower, upper, average, ask) {
  box <- read_boxes(fit, lower, upper)
  kernel <- model_of(fit)$kernel
  fun <- if (is.null(fit$factors$groupings)) boxes_at(kernel, box$lower, box$upper)
  error <- NULL
  if (is.null(fun)) {
    # Without a closed form of the averages of f, use quadrature. Its difference from a coarser rule estimates
    # the error. A wide box needs more points. Matern kernels make kinks, so their coarser rule has half the points.
    width <- rotated(kernel, box$upper) - rotated(kernel, box$lower)
    wide <- max(abs(width) / rep(kernel_lengths(kernel, ncol(box$lower)), each = nrow(box$lower)))
    each <- as.integer(min(26, ceiling(6 + 3 * wide)))
    kinks <- any(startsWith(vapply(with_own_terms(kernel)$leaves, `[[`, "", "profile"), "matern"))
    coarse <- if (kinks) ceiling(each / 2) else each - 2
    rules <- lapply(as.integer(c(each, coarse)), function(each) points_in_boxes(box$lower, box$upper, each))
    funs <- lapply(rules, function(r) sums_at(kernel, r$x, r$rows, r$weights))
    fun <- funs[[1L]]
    at <- lapply(funs, functionals_in_units, fit = fit)
    error <- pmax(abs(at[[1L]]$mean - at[[2L]]$mean), abs(at[[1L]]$sd - at[[2L]]$sd))
  }
  rounding <- 4 * .Machine$double.eps * (abs(fit$center) + abs(box$offset))
  out <- answer_of_functionals(fit, fun, fit$center + box$offset, rounding, identity, ask)
  out$quadrature <- error
  if (!average) out[] <- lapply(out, `*`, apply(box$upper - box$lower, 1L, function(w) prod(w[w > 0])))
  row.names(out) <- if (is.null(box$names)) NULL else make.unique(as.character(box$names))
  out
}

# Returns boxes of inputs as list(lower, upper, offset, names). An input that `upper` lacks is constant in each box.
read_boxes <- function(fit, lower, upper) {
  as_rows <- function(v, argument) {
    if (!by_formula(fit) && is.numeric(v) && is.null(names(v))) v <- rows_by_matrix(fit$frame, v)$x
    if (is.data.frame(v) || is.matrix(v)) return(as.data.frame(v))
    rows <- if (is.list(v) || is.numeric(v) || is_time(v)) tryCatch(as.data.frame(as.list(v)), error = function(e) NULL)
    if (is.null(rows)) abort_input(argument, describe(v), "a data frame, or a named vector for one box")
    rows
  }
  lower <- as_rows(lower, "lower")
  lacking <- setdiff(fit$frame$required, names(lower))
  refuse_if(length(lacking), "lower", sprintf("lacks %s", list_quoted(lacking)),
            hint = "Give all variables of the fit, including those of the offset.")
  given <- if (is.null(upper)) lower[0L] else as_rows(upper, "upper")
  refuse_if(nrow(given) != nrow(lower) && length(given) || !all(names(given) %in% names(lower)), "upper",
            describe(upper), "a data frame with the rows and variables of `lower`")
  upper <- lower
  upper[names(given)] <- given
  at <- Map(function(v, end) {
    naming_argument(end, new_rows(fit, v, stats::na.fail))
  }, list(lower, upper), c("lower", "upper"))
  lower <- at[[1L]]$x
  upper <- at[[2L]]$x
  others <- if (by_formula(fit)) setdiff(
    variable_of_columns(fit$frame$variables)[colSums(lower != upper) > 0], intersect(names(given), vapply(
      Filter(function(v) v$kind %in% c("numeric", "time"), fit$frame$variables), `[[`, "", "name")))
  refuse_if(length(others), "upper", list_quoted(others), "those of `lower`",
            message = sprintf("`lower` and `upper` must have the same values of %s.", list_quoted(others)),
            hint = "A box has widths only along numeric inputs, not along factors or functions of inputs.")
  if (any(lower > upper)) abort_input("upper", "is below `lower`", hint = "Exchange the two ends.")
  offset <- rep_len(at[[1L]]$offset, nrow(lower))
  if (any(offset != at[[2L]]$offset)) abort_input("upper", "has another offset than `lower`")
  list(lower = lower, upper = upper, offset = offset, names = at[[1L]]$names)
}

# Returns the mean response at each row, and its derivative in the mean of f (1 for y = f + noise, else by differences).
response_slopes <- function(fit, new) {
  p <- latent_at(fit, new$x)
  mean <- p$mean[new$index] + new$offset
  var <- p$var[new$index]
  if (response_of(fit)$conjugate && is.null(fit$transform)) return(list(mean = mean, slope = rep(1, length(mean))))
  noise <- noise_law(fit, new)$noise
  at <- function(h) response_moments(response_of(fit), mean + h, var, noise)$mean
  step <- if (is.null(fit$transform)) 1e-4 else 1e-4 * sqrt(fit$noise)
  list(mean = at(0), slope = (at(step) - at(-step)) / (2 * step))
}

# Returns the rows over which averages are taken by default: at most 200 rows of the data, evenly chosen.
rows_to_average <- function(fit) {
  rows <- kept_variables(fit) %||% stats::model.frame(fit)
  rows <- rows[evenly(nrow(rows), 200L), , drop = FALSE]
  if (is.null(fit$terms)) return(rows[-1L])
  inputs <- fit$frame$required
  if (all(inputs %in% names(rows))) return(rows[inputs])
  # If the fit keeps no data, read variables that the formula transforms (as in log(x)) from the data of the call.
  data <- tryCatch(eval(fit$call$data, environment(fit$terms)), error = function(e) NULL)
  refuse_if(!is.data.frame(data) || !all(inputs %in% names(data)), "newdata", "is missing",
            hint = sprintf("The fit does not keep all of its variables: %s.", list_quoted(inputs)))
  as.data.frame(data)[match(row.names(rows), row.names(data)), inputs, drop = FALSE]
}

# ---- terms, derivatives, coefficients -------------------------------------------------------------------------------

# Returns list(mean, var) of each term of f (columns) at the rows of x, in units of y.
term_values <- function(fit, x, mean_only = FALSE) {
  kernel <- with_own_terms(fit$kernel)
  names <- if (has_one_factor(kernel)) {
    leaf_name(utils::modifyList(fit$kernel, list(of = fit$frame$columns[fit$kernel$inputs])))
  } else {
    term_names(kernel)
  }
  fun <- terms_at(kernels_of_terms(model_of(fit)$kernel), x)
  at <- posterior_at(posterior_of(fit), c(fun, list(mean_only = mean_only)))
  lapply(in_response_units(fit, at), matrix, nrow(x), dimnames = list(NULL, names))
}

# Returns var(m_t) / sum of var(m_t), m_t the mean of term t at up to `most` distinct training inputs. Returns NULL for
# one term or under 2 stored rows.
term_shares <- function(fit, most = 500L) {
  if (length(as_sum(fit$kernel)$terms) < 2L || is.null(fit$data)) return(NULL)
  x <- fit$data$x[evenly(nrow(fit$data$x), most), , drop = FALSE]
  if (nrow(x) < 2L) return(NULL)
  spread <- apply(term_values(fit, x, mean_only = TRUE)$mean, 2L, stats::var)
  spread / sum(spread)
}

# Returns a data frame with shares of the variance of f's posterior mean. `alone` is the share that an input explains by
# itself, `total` includes its interactions (formulas of Saltelli and Jansen for two quasi-random samples). Inputs are
# treated as independent. Returns NULL for one input, under 5 stored rows, fixed hyperparameters or a constant mean.
input_shares <- function(fit) {
  x <- fit$data$x
  groups <- column_groups(seq_along(fit$frame$columns), fit$frame$columns, placed_variables(fit$data$frame))
  if (is.null(groups)) groups <- fit$frame$columns
  inputs <- split(seq_along(groups), factor(groups, unique(groups)))
  G <- length(inputs)
  if (is.null(x) || nrow(x) < 5L || G < 2L || identical(fit$hyper, "fixed")) return(NULL)
  each <- if (is.null(fit$near)) nrow(fit_points(fit)) else share_sample[["near"]] # kernel values for a prediction
  n <- min(share_sample[["rows"]], ceiling(share_sample[["values"]] / (each * (G + 2))))
  u <- roberts_sequence(n, 2 * G)
  sample_of <- function(shift) {
    out <- matrix(0, n, ncol(x))
    for (j in seq_len(G)) {
      own <- x[, inputs[[j]], drop = FALSE]
      sorted <- do.call(order, lapply(seq_len(ncol(own)), function(c) own[, c]))
      out[, inputs[[j]]] <- own[sorted[ceiling(u[, j + shift] * nrow(x))], ]
    }
    out
  }
  # For several classes, f has a column for each orthonormal contrast of the classes. Variances of columns add up.
  f <- function(x) as.matrix(posterior_values(posterior_of(fit), x, mean_only = TRUE)$mean)
  centred <- function(f) sweep(f, 2L, colMeans(f))
  a <- sample_of(0L)
  b <- sample_of(G)
  f_a <- f(a)
  f_b <- f(b)
  var <- sum(centred(rbind(f_a, f_b))^2) / (2 * n)
  if (!isTRUE(var > 0)) return(NULL)
  shares <- vapply(inputs, function(j) {
    f_c <- f(replace(a, cbind(rep(seq_len(n), length(j)), rep(j, each = n)), b[, j]))
    c(alone = sum(centred(f_b) * (f_c - f_a)) / n / var, total = sum((f_a - f_c)^2) / n / (2 * var))
  }, numeric(2L))
  # By sampling errors, `total` may be below `alone`, a share below 0, or the sum of `alone` above 1. Correct this.
  alone <- pmax(shares["alone", ], 0) / max(1, sum(pmax(shares["alone", ], 0)))
  data.frame(input = names(inputs), alone = alone, total = pmin(pmax(shares["total", ], alone), 1), row.names = NULL)
}

# Returns predict(type = "derivative"): the derivative of f, without the offset, by the numeric input `wrt`.
predict_derivative <- function(fit, rows, wrt, se.fit, interval, level, certified) {
  columns <- fit$frame$columns
  # Leave out columns that code levels or logicals as 0 and 1, or have the numbers of levels.
  numeric <- if (!by_formula(fit)) seq_along(columns) else which(unlist(lapply(fit$frame$variables, function(v) {
    rep(!v$kind %in% c("factor", "logical", "group"), v$width)
  })))
  refuse_if(!length(numeric), "type", "= \"derivative\" needs a numeric input, but the fit has none")
  column <- if (is.null(wrt) && length(columns) == 1L) 1L else if (length(wrt) != 1L) NA else
    if (is.character(wrt)) match(wrt, columns) else if (is.numeric(wrt)) match(wrt, seq_along(columns)) else NA
  refuse_if(is.na(column) || !column %in% c(numeric, if (is.null(wrt)) 1L), "wrt", describe(wrt),
            paste("a numeric input:", list_quoted(columns[numeric], "\"", last = "or")))
  check_differentiable(fit$kernel, column, fit$frame$columns[column])
  fun <- slopes_at(model_of(fit)$kernel, rows$x, column)
  at <- functionals_in_units(fit, fun)
  shape <- function(v) stats::setNames(v[rows$index], rows$names)
  value <- shape(at$mean)
  if (interval != "none") {
    ends <- if (certified) {
      functional_frame(fit, fun, at, posterior_certificate(posterior_of(fit), fun), 0, 0, identity)
    } else {
      list(mean_lower = at$mean, mean_upper = at$mean, sd_upper = at$sd)
    }
    f <- lapply(list(lower = ends$mean_lower, upper = ends$mean_upper, top = ends$sd_upper^2), shape)
    value <- do.call(cbind, c(list(fit = value), normal_ends(f, list(noise = 0), level)))
  }
  if (!se.fit) value else list(fit = value, se.fit = shape(at$sd))
}

# Returns a matrix whose rows are weights of sums of p values: each value alone, then the sum of each pair. The
# variances of these sums determine all covariances of the values: 2 cov(a, b) = var(a + b) - var(a) - var(b).
with_pairs <- function(p, pairs = which(upper.tri(diag(1, p)), arr.ind = TRUE)) {
  one <- diag(1, p)
  rbind(one, one[pairs[, 1L], , drop = FALSE] + one[pairs[, 2L], , drop = FALSE])
}

# ---- names of f and of the response in legends and figures ----------------------------------------------------------

fit_link <- function(fit) if (response_of(fit)$conjugate) "identity" else response_of(fit)$link_name

# Returns the name of the response, of a time series, or of the time in a survival::Surv() object.
response_name <- function(fit) {
  if (is.null(fit$terms)) return("y")
  left <- fit$terms[[2L]]
  if (identical(left, quote(y)) && is.language(series <- attr(fit$call$data, "series"))) left <- series
  times <- response_of(fit)$reads == "times" && is.call(left) && grepl("Surv$", deparse1(left[[1L]]))
  deparse1(if (times && !isTRUE(grepl("^interval", left$type))) left[[2L]] else left)
}

slice_label <- function(fit, type) {
  name <- response_name(fit)
  link <- fit_link(fit)
  response <- response_of(fit)
  if (link == "identity") return(if (type == "link" && !is.null(fit$transform)) paste("f, transformed", name) else name)
  if (response$reads == "own") return(paste(if (type == "link") "f for" else "mean of", name))
  if (type == "link") return(sprintf("f (%s scale of %s)", link, name))
  if (response$kind == "ordered") return(paste("mean class number of", name))
  if (link == "log") return(paste(if (any(fit$data$sites$offset != 0)) "rate of" else "mean of", name))
  if (!is.null(response$levels)) sprintf("P(%s = %s)", name, response$levels[2L]) else
    if (grepl("^as[.]numeric[(].* > 0[)]$", name)) sub("as.numeric", "P", name) else "P(success)" # gp_hurdle()'s name
}
