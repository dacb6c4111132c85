# Proposes where to measure next: maximises a criterion of the mean and sd of f, such as the expected improvement.

#' Choose where to measure next
#'
#' Returns the inputs at which another response would help most. The goal is to find the minimum or the maximum of f, to
#' find where f crosses a level, or to know f everywhere.
#' @param fit A fit with one f; for a minimum or maximum, with its data.
#' @param n Number of rows to propose, at most 10,000. Each row is chosen as if the rows before it had been measured.
#' @param goal `"minimum"` or `"maximum"` of f; `"level"` to find where f equals `level`; `"fill"` to know f everywhere.
#' @param lower,upper Bounds on the numeric inputs: one number, a number for each input, or a named vector. Default: the
#'   range of the data, if known. An input with equal bounds is held constant.
#' @param candidates Rows to choose from, instead of bounds.
#' @param level,... For `goal = "level"`, a value of the response (`family`: of its mean). `...` is not used.
#' @return A data frame with `n` rows: all variables but the response, and `criterion`. For a minimum it is the expected
#'   improvement \eqn{E max(b - f, 0)}, where b is the smallest posterior mean at the training rows and the rows already
#'   proposed. For a maximum it is the same with -f. For a level l it is the straddle criterion \eqn{1.96 sd - |mean -
#'   l|}. For `"fill"` it is the posterior sd.
#' @details The criterion is computed on the scale of f: the link scale of a `family`, or the scale of the transformed
#'   response. Within bounds the search compares hundreds to thousands of rows, then moves numeric inputs of the best by
#'   L-BFGS; it draws no random numbers. For `n` above 1, rows already proposed have the predicted means as responses
#'   (kriging believer). This reduces the sd nearby. With a `family`, f counts as known at them. With `noise = 0` a row
#'   almost equal to a measured row is proposed only if no other remains.
#' @source Jones, Schonlau and Welch (1998), *Journal of Global Optimization* 13 (expected improvement); Bryan et al.
#'   (2005), *NIPS* 18 (straddle); Ginsbourger, Le Riche and Carraro (2010), Kriging is well-suited to parallelize
#'   optimization (believer).
#' @seealso [exceedance()], [add_rows()], `vignette("design")`
#' @examples
#' f <- function(x) (x - 0.3)^2 * sin(9 * x)
#' d <- data.frame(x = c(0, 0.4, 0.6, 1), y = f(c(0, 0.4, 0.6, 1)))
#' fit <- gp_exact(y ~ x, d, kernel = kernel_se(0.3, 0.1), noise = 1e-8, hyper = "fixed")
#' next_points(fit, lower = 0, upper = 1)
#' plot(fit)
#' abline(v = next_points(fit, n = 3)$x, lty = 2)
#' @export
next_points <- function(fit, n = 1, goal = c("minimum", "maximum", "level", "fill"), lower = NULL, upper = NULL,
                        candidates = NULL, level = NULL, ...) {
  check_dots_empty()
  fit <- refuse_classes(check_any_fit(fit, "fit"))
  goal <- check_choice(goal)
  n <- check_count(n, "n", max = 10000)
  refuse_if(if (goal == "level") !is_finite_number(level) else !is.null(level), "level", describe(level),
            if (goal == "level") "a number" else "NULL without goal = \"level\"",
            message = if (is.null(level)) "`level` is missing. Give a number on the scale of the response.")
  refuse_if(!is.null(candidates) && length(c(lower, upper)), "candidates",
            "cannot be combined with `lower` and `upper`")
  if (is.null(candidates)) {
    space <- design_space(fit, lower, upper)
  } else {
    placed <- is.matrix(candidates) && !by_formula(fit) && !(fit$frame$named && length(colnames(candidates)))
    if (placed && ncol(candidates) == length(input_names(fit))) colnames(candidates) <- input_names(fit)
    if (is.data.frame(candidates) || is.matrix(candidates)) candidates <- as.data.frame(candidates)
    refuse_if(!is.data.frame(candidates) || nrow(candidates) < n, "candidates", describe(candidates),
              sprintf("a data frame with at least %.0f row%s", n, plural_s(n)))
    lacking <- setdiff(input_names(fit), names(candidates))
    refuse_if(length(lacking), "candidates", sprintf("lacks %s, which the fit needs", list_quoted(lacking)))
    candidates <- candidates[input_names(fit)]
  }
  design <- list(fit = fit, posterior = posterior_of(fit), sign = c(minimum = 1, maximum = -1)[goal],
                 exact = asks_no_noise(fit$asked$noise))
  improves <- !is.na(design$sign)
  if (improves) design$best <- best_mean(design, training_rows(fit))
  if (goal == "level") {
    design$level <- threshold_of_f(response_of(fit), as.double(level))$lower
    refuse_if(abs(design$level) > 1e300, "level", describe(level), "a mean response that is possible for the fit")
  }
  if (design$exact) design$measured <- fit$data$x
  out <- NULL
  for (i in seq_len(n)) {
    if (is.null(candidates)) {
      found <- best_in_space(space, design)
    } else {
      at <- criterion_at(design, candidates)
      if (all(is.na(at$value))) abort_input("candidates", "has missing values in all rows")
      row <- order(at$measured, -at$value)[1L]
      found <- candidates[row, , drop = FALSE]
      candidates <- candidates[-row, , drop = FALSE]
    }
    value <- criterion_at(design, found)$value
    own <- make.unique(c(names(found), "criterion")) # an input may be called criterion
    out <- rbind(out, stats::setNames(cbind(found, if (improves) exp(value) else value), own))
    new <- new_rows(fit, found)
    if (improves) design$best <- min(design$best, best_mean(design, new))
    design$taken <- rbind(design$taken, new$x)
    if (design$exact || !response_of(fit)$conjugate) design$measured <- rbind(design$measured, new$x)
  }
  rownames(out) <- NULL
  about <- if (improves) sprintf("expected improvement of the %s of f, in units of f", goal) else
    if (goal == "fill") "sd of f" else paste0("1.96 sd of f minus the distance of its mean from ", format(design$level),
      if (!isTRUE(all.equal(design$level, level))) sprintf(", which is f at level %s of the response", format(level)))
  structure(out, class = c("pfdtc_points", "data.frame"), about = paste("Next points; criterion:", about))
}

#' @export
print.pfdtc_points <- function(x, ...) {
  if (!is.null(attr(x, "about")) && "criterion" %in% names(x)) cat(wrap(attr(x, "about")), sep = "\n")
  NextMethod()
}

# Returns the smallest mean of f at the rows. If design$sign is -1 (for a maximum), it returns minus the largest mean.
best_mean <- function(design, rows) {
  mean <- latent_at(design$fit, rows$x, mean_only = TRUE)$mean[rows$index] + rows$offset
  min((design$sign * mean)[!is.na(rows$index)])
}

# Returns data.frame(measured, value) for rows. `value` is the criterion (NA if the row is incomplete): for the expected
# improvement its log, which does not underflow. `measured` is TRUE for rows in design$measured, and for rows close to
# one of these if f is known (its variance is at most `least`). Measured rows are proposed last.
criterion_at <- function(design, rows) {
  new <- new_rows(design$fit, rows)
  f <- latent_given(design, new$x)
  known <- f$var <= f$least
  measured <- logical(length(known))
  for (i in if (!is.null(design$measured)) seq_along(known)) {
    width <- if (known[i]) design_search[["next_to"]] * drop(diff(apply(design$measured, 2L, range))) else 0
    measured[i] <- any(colSums(abs(t(design$measured) - new$x[i, ]) > width) == 0)
  }
  mean <- f$mean[new$index] + new$offset
  sd <- sqrt(pmax(f$var * !(known | measured), 0))[new$index]
  data.frame(measured = measured[new$index], value =
               if (!is.null(design$best)) log_improvement(design$best - design$sign * mean, sd) else
                 if (is.null(design$level)) sd else stats::qnorm(0.975) * sd - abs(mean - design$level))
}

# Returns list(mean, var, least) of f at the rows of x, as if the proposed rows design$taken had been measured. Their
# responses are assumed to equal their means. So the mean stays, and the variance decreases by C'V^{-1} C: C are the
# covariances of f(x) with f at the proposed rows, and V is the covariance of their responses. A non-Gaussian response
# is assumed to determine f at its row. f counts as known where var <= least.
latent_given <- function(design, x) {
  fit <- design$fit
  taken <- design$taken
  least <- if (design$exact) 2 * fit$noise else -Inf
  if (is.null(taken)) return(c(latent_at(fit, x, p = design$posterior)[c("mean", "var")], least = least))
  own <- seq_len(nrow(taken))
  conjugate <- response_of(fit)$conjugate
  noise <- if (conjugate) noise_at(fit, taken) else 0
  mean <- var <- numeric(nrow(x))
  for (rows in blocks_of(seq_along(mean), 256L)) {
    f <- latent_at(fit, rbind(taken, x[rows, , drop = FALSE]), joint = TRUE, p = design$posterior)
    V <- f$cov[own, own, drop = FALSE]
    jitter <- 1e-10 * max(diag(V))
    R <- chol(V + diag(rep_len(noise + jitter, length(own)), length(own)))
    mean[rows] <- f$mean[-own]
    var[rows] <- f$var[-own] - colSums(backsolve(R, f$cov[own, -own, drop = FALSE], transpose = TRUE)^2)
  }
  list(mean = mean, var = var, least = if (conjugate) least else 2 * jitter)
}

# Returns the log expected improvement log E max(gap + sd Z, 0) for Z ~ N(0, 1). It is log sd + log h(z), z = gap / sd,
# h(z) = phi(z) + z Phi(z). For z far below 0, h = phi(z) (1 / z^2 - 3 / z^4 + 15 / z^6 - ...).
log_improvement <- function(gap, sd) {
  sd <- pmax(sd, 1e-150)
  z <- pmin(pmax(gap / sd, -1e153), 1e153)
  far <- !is.na(z) & z < -20
  near <- ifelse(far, 0, z)
  h <- log(stats::dnorm(near) + near * stats::pnorm(near))
  w <- 1 / z[far]^2
  h[far] <- stats::dnorm(z[far], log = TRUE) + log(w) + log1p(-3 * w + 15 * w^2 - 105 * w^3)
  log(sd) + h
}

# ---- the search over inputs -----------------------------------------------------------------------------------------

input_names <- function(fit) if (by_formula(fit)) fit$frame$required else fit$frame$columns

# Returns the search space: for each variable list(lower, upper, spec) if it is a number or time, else its levels.
design_space <- function(fit, lower, upper) {
  names <- input_names(fit)
  known <- fit_variables(fit)
  of_groups <- Filter(function(spec) identical(spec$kind, "group"), if (by_formula(fit)) fit$frame$variables)
  space <- lapply(stats::setNames(nm = names), function(name) {
    v <- known[[name]]
    if (identical(v$values, cbind(0:1))) return(c(FALSE, TRUE))
    if (!is.null(v$values)) return(factor(v$labels, v$labels))
    levels <- Find(function(spec) identical(spec$vars, name), of_groups)$levels
    if (!is.null(levels)) factor(levels, levels)
  })
  numeric <- names[vapply(space, is.null, NA)]
  x <- slice_rows(fit)
  specs <- lapply(stats::setNames(nm = numeric), function(name) {
    Find(function(spec) spec$name == name, if (by_formula(fit)) fit$frame$variables)
  })
  # A variable that the formula uses inside a function has no known range.
  ends <- lapply(known[numeric], function(v) if (is.null(v)) c(NA, NA) else range(value_along(v, x)))
  lower <- bounds_given(lower, "lower", specs, vapply(ends, `[`, 0, 1L))
  upper <- bounds_given(upper, "upper", specs, vapply(ends, `[`, 0, 2L))
  crossed <- which(lower > upper)[1L]
  refuse_if(!is.na(crossed), "lower",
            sprintf("is %s for `%s`, above `upper`, %s", format(lower[[crossed]]), numeric[crossed],
                    format(upper[[crossed]])))
  space[numeric] <- Map(function(lower, upper, spec) list(lower = lower, upper = upper, spec = spec), lower, upper,
                        specs)
  space
}

# Checks the user's bounds `given` and returns a number for each numeric input; bounds not given have their `default`.
bounds_given <- function(given, argument, specs, default) {
  names <- names(specs)
  out <- stats::setNames(default, names)
  refuse_if(!is.list(given) && !is.numeric(given) && !is_time(given) && !is.null(given), argument, describe(given),
            "numbers")
  given <- as.list(given)
  own <- names(given) %||% names
  good <- vapply(given, function(v) length(v) == 1L && (is.numeric(v) || is_time(v)), NA)
  strange <- setdiff(own, names)
  refuse_if(length(strange), argument,
            sprintf("has %s, but numeric inputs are %s", list_quoted(strange), list_quoted(names)),
            hint = "Rows to choose from are the argument `candidates`.")
  refuse_if(!length(given) %in% c(0L, 1L, length(own)) || !all(good), argument, describe(given),
            sprintf("a number for each of %s", list_quoted(names)))
  if (length(given)) out[own] <- mapply(function(spec, v, name) { # a variable inside a function has no `spec`
    time <- identical(spec$kind, "time")
    ok <- if (time) inherits(v, c("Date", "POSIXt")) else is.numeric(v) || inherits(v, "difftime") && length(spec$unit)
    refuse_if(!is.null(spec) && !ok, argument, describe(v),
              sprintf("a %s for `%s`", if (time) "date or time" else "number", name))
    numbers_of(spec, v)
  }, specs[own], rep_len(given, length(own)), own)
  lacking <- names[!is.finite(out)]
  refuse_if(length(lacking), argument, sprintf("has no finite value for %s", list_quoted(lacking)),
            hint = "Set `lower` and `upper` to a range, or set both to one constant. Or give `candidates`.")
  out
}

# Returns a data frame with a row for each row of u, whose columns have shares in [0, 1] of the range of each variable.
rows_in_space <- function(space, u) {
  as.data.frame(Map(function(v, j) {
    if (!is.list(v)) return(v[pmin(floor(u[, j] * length(v)) + 1L, length(v))])
    value <- v$lower + u[, j] * (v$upper - v$lower)
    if (identical(v$spec$kind, "time")) times_of(v$spec, value) else value
  }, space, seq_along(space)), optional = TRUE)
}

# Returns the row with the largest criterion. L-BFGS moves the numeric inputs. It starts
# from the best of quasi-random rows, of the corners if inputs are few and, if design$best is not NULL, of rows around
# the data rows with the best means.
best_in_space <- function(space, design) {
  d <- length(space)
  u <- roberts_sequence(min(design_search[["rows"]] * d, design_search[["most"]]), d)
  if (d <= design_search[["corners"]]) u <- rbind(u, as.matrix(expand.grid(rep(list(0:1), d))))
  x <- if (!is.null(design$best)) design$fit$data$x
  known <- fit_variables(design$fit)[names(space)]
  if (!is.null(x) && !any(vapply(known, is.null, NA))) { # add rows around the three data rows with the best means
    best <- utils::head(order(design$sign * latent_at(design$fit, x, mean_only = TRUE)$mean), 3L)
    centre <- pmin(pmax(matrix(unlist(Map(function(v, one) {
      own <- value_along(one, x[best, , drop = FALSE])
      if (is.list(v)) (own - v$lower) / max(v$upper - v$lower, 1e-300) else (own - 0.5) / length(v)
    }, space, known)), length(best)), 0), 1)
    cloud <- roberts_sequence(design_search[["cloud"]] * d, d + 1L)
    away <- 10^(-3 * cloud[, d + 1L]) * (cloud[, -(d + 1L), drop = FALSE] - 0.5)
    u <- rbind(u, pmin(pmax(centre[rep_len(seq_len(nrow(centre)), nrow(away)), , drop = FALSE] + away, 0), 1))
  }
  merit <- function(u) criterion_at(design, rows_in_space(space, u))
  at <- merit(u)
  free <- which(vapply(space, function(v) is.list(v) && v$upper > v$lower, NA))
  open <- ifelse(at$measured & !all(at$measured), NA, at$value)
  most <- design_search[["starts"]]
  starts <- integer()
  for (i in utils::head(order(-open, na.last = NA), 50L * most)) { # starts that are not close to one another
    if (all(vapply(starts, function(k) max(abs(u[k, ] - u[i, ])) > 0.05, NA))) starts <- c(starts, i)
    if (length(starts) == most) break
  }
  all <- u[starts, , drop = FALSE]
  if (length(free)) {
    ends <- t(apply(all, 1L, climb_in_space, merit = function(u) merit(u)$value, free = free))
    dim(ends) <- dim(all)
    all <- rbind(all, ends)
  }
  at <- merit(all)
  rows_in_space(space, all[order(at$measured, -at$value)[1L], , drop = FALSE])
}

# Maximises merit() by L-BFGS from u, and returns the point reached. Only the columns `free` move. One call of merit()
# gives the value and central differences at a point.
climb_in_space <- function(u, merit, free, step = 1e-4) {
  k <- length(free)
  seen <- NULL
  look <- function(part) {
    if (identical(seen$part, part)) return(seen)
    both <- pmin(pmax(rbind(0, diag(step, k), diag(-step, k)) + rep(part, each = 2L * k + 1L), 0), 1)
    all <- matrix(u, nrow(both), length(u), byrow = TRUE)
    all[, free] <- both
    value <- -merit(all)
    up <- 1L + seq_len(k)
    seen <<- list(part = part, value = value[1L], slope = (value[up] - value[up + k]) /
                    diag(both[up, , drop = FALSE] - both[up + k, , drop = FALSE]))
  }
  end <- stats::optim(u[free], function(part) look(part)$value, function(part) look(part)$slope, method = "L-BFGS-B",
                      lower = 0, upper = 1, control = list(maxit = 50))
  replace(u, free, end$par)
}
