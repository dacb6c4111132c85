#' Rows more, rows less, other points
#'
#' A fit of further rows, or of fewer, without fitting again: kernel, noise, inducing points, centre and scale stay, and
#' what the posterior is made of is added to or taken from. `update_points()` is for when the points no longer do.
#'
#' With inducing points alone a fit need not have kept its data: the new rows are read, \eqn{O(n m^2)} for `n` of them,
#' and nothing else. Of a fit with its data the posterior is made anew at the same hyperparameters; beside near rows new
#' ones come last in the order. A `reference` that the fit carries is then made anew as well, on the same points; where
#' the data are not at hand it is left out, with a message.
#'
#' Sums from which others are taken keep the rounding of what they were: `drop_rows()` of a fit without its data, of
#' which the rows themselves are given, says how much that may be, and refuses where it would show.
#'
#' @param fit a fit with Gaussian noise, other than by [gp_subsample()].
#' @param newdata a data frame with the variables of the formula, its response and weights included; for a fit of a
#'   matrix a list with `x`, `y` and, if there were any, `weights` and `offset`. Rows with missing values are left out
#'   (in a list, an error). A `subset` of the fit's call is not looked at. Or a row source ([rows_blocks()]).
#' @param rows numbers of the rows to drop, as the fit was given them (those left out for missing values not counted,
#'   those of weight 0 counted); of a fit without its data, the rows themselves, as `newdata`.
#' @param m points wanted; `NULL`: as many as there are.
#' @return The fit of the other rows. `added` and `dropped` count what came and went since it was fitted; of sums that
#'   were taken apart, `allowance` is the most by which rounding may have moved the precision of the inducing variables,
#'   as a share of what their prior has of it: 1e-4 at most.
#'
#'   `update_points()` chooses points anew, greedily among all rows, and returns the fit on these where they leave less
#'   of the prior variance unexplained by a tenth or more; otherwise the fit as it is, with a message.
#' @section Invariants: `add_rows()` gives the posterior, and the `logLik()`, of the fit to all rows with the same
#'   points, hyperparameters, centre and scale, to rounding; `drop_rows()` that of the rows that are left.
#' @section Errors: class `pfdtc_error_input` for variables, levels or columns that the fit does not know, row numbers
#'   that there are not, and rows whose sums cannot be taken away.
#' @examples
#' first <- pfdtc(mag ~ stations + depth, quakes[1:800, ], kernel = kernel_se(c(60, 300), 0.1),
#'                noise = 0.04, hyper = "fixed", m = 20)
#' more <- add_rows(first, quakes[801:1000, ])
#' nobs(more)
#' drop_rows(more, 1:100)
#' @export
add_rows <- function(fit, newdata) {
  fit <- check_growing(fit)
  if (is_source(newdata)) {
    source_pass(newdata, function(block) {
      fit <<- add_rows(fit, block)
      TRUE
    }, `&`)
    return(fit)
  }
  given <- training_rows_from(fit, newdata)
  if (!length(given$response)) return(fit)
  if (!is.null(fit$data)) {
    rows <- extended_rows(rows_of_data(fit$data), given)
    return(fit_of_data(fit, data_of_rows(fit$data, rows, fit), sum(given$keep)))
  }
  with_sums(fit, cleaned(fit, given), 1)
}

#' @rdname add_rows
#' @export
drop_rows <- function(fit, rows) {
  fit <- check_growing(fit)
  if (is.null(fit$data)) return(with_sums(fit, cleaned(fit, training_rows_from(fit, rows)), -1))
  n <- length(fit$data$response)
  if (!is.numeric(rows) || anyNA(rows) || any(rows < 1 | rows > n | rows != round(rows))) {
    abort_input("rows", rows, sprintf("numbers of rows, from 1 to %d", n))
  }
  rows <- unique(as.integer(rows))
  if (!length(rows)) return(fit)
  data <- data_of_rows(fit$data, rows_without(rows_of_data(fit$data), rows), fit)
  data["na_action"] <- fit["na.action"] <- list(NULL) # it speaks of the rows' numbers
  fit_of_data(fit, data, -length(rows))
}

check_growing <- function(fit) {
  fit <- check_fit(fit, "fit")
  if (gp_family(fit)$some) abort_input("fit", sprintf("a fit by %s()", fit$method), "one of all rows")
  fit
}

# ---- a fit without its data: sums -----------------------------------------------------------------------------------

with_sums <- function(fit, rows, sign) {
  if (!rows$n) return(fit)
  if (is.null(fit$inducing) || !is.null(fit$near)) needs_data(fit, "fit")
  model <- model_of(fit)
  p <- fit$factors
  p$jitter <- fit$jitter
  in_force <- if (gp_family(fit)$fitc) fitc_weights(rows, fit$inducing, model, p) else rows$weights
  new <- rows_sums(list(x = rows$x, y = rows$y, weights = in_force), fit$inducing, model, p, fit$control)
  sums <- sums_merge(sums_of(p), lapply(new[names(sums_of(p))], `*`, sign))
  allowance <- if (sign < 0) check_taken(fit, p, sums, model, rows$n)
  sums[c("yy", "k_sum", "t", "rss")] <- lapply(sums[c("yy", "k_sum", "t", "rss")], max, 0)
  sums$n <- fit$nobs + sign * rows$n
  after <- posterior_of_sums(fit$inducing, sums, model, p)
  log_w <- if (is.null(rows$weights)) 0 else sum(log(rows$weights))
  zero <- list(n = 0, scale = fit$scale, shift = list(constant = 0, rows = 0, ss = 0))
  more <- list(n = sign * rows$n, scale = fit$scale,
               shift = log_density_shift(sign * rows$n, sign * log_w, fit$scale, 0, 0))
  evidence <- gp_family(fit)$evidence
  fit$evidence <- fit$evidence + evidence(more, after, model$noise) - evidence(zero, p, model$noise)
  fit$factors <- after
  fit$signature <- signature_with(fit$signature, rows, sign)
  fit$nobs <- fit$nobs + sign * rows$n
  if (is.finite_number(fit$unexplained)) fit$unexplained <- after$t / fit$nobs / model$noise
  if (sign < 0) fit$allowance <- sum(fit$allowance, allowance)
  without_reference(count_rows(fit, sign * rows$n))
}

# What is left of sums has the rounding of what they were: s2 I + G may be off by this share of s2.
check_taken <- function(fit, p, sums, model, n) {
  gone <- fit$nobs - n
  if (gone <= 0) {
    abort_input("rows", sprintf("%s of %s", show_count(n), show_count(fit$nobs)), "fewer than there are")
  }
  if (sums$yy < -1e-8 * p$yy || sums$t < -1e-8 * p$t || min(diag(sums$G)) < -1e-8 * max(diag(p$G))) {
    abort_input("rows", "rows of which the fit has no sums", "rows of the fit")
  }
  off <- rounding_growth(nrow(p$G), fit$nobs) * sum(diag(p$G)) / model$noise
  if (off > 1e-4) {
    abort_input("rows", sprintf("rows whose sums leave %s of the noise to rounding", format(off, digits = 2)),
                "less than 1e-4 of it", hint = "Fit the rows that are left.")
  }
  off
}

is.finite_number <- function(v) is.numeric(v) && length(v) == 1L && is.finite(v)

count_rows <- function(fit, n) {
  if (n == 0) return(fit)
  what <- if (n > 0) "added" else "dropped"
  fit[[what]] <- sum(fit[[what]], abs(n))
  fit
}

without_reference <- function(fit) {
  if (!is.null(fit$reference)) {
    message("The reference is of other rows and is left out: it needs the data.")
    fit["reference"] <- list(NULL)
  }
  fit
}

# ---- a fit with its data --------------------------------------------------------------------------------------------

# The fit's posterior, made of other data. Rows that were there keep their order among near rows.
fit_of_data <- function(fit, data, n) {
  model <- model_of(fit)
  old <- fit$data
  fit$data <- data
  if (is_exact(fit)) {
    fit$factors <- exact_posterior(data, model, fit$control)
    fit$evidence <- exact_evidence(data, fit$factors, model$noise)
    if (!is.null(fit$inducing)) fit$inducing <- data$x
    fit$x <- data$x
    fit["small_n"] <- list(NULL)
    if (!is.null(fit[["m"]])) fit$m <- fit$m_asked <- nrow(data$x)
  } else if (!is.null(fit$near)) {
    rank <- order_after(fit$near$rank, nrow(old$x), data, old)
    fit$near <- near_posterior(data, fit$inducing, model, fit$neighbours, fit$near$train_neighbours, rank, fit$jitter,
                               fit$control)
    fit$evidence <- near_evidence(data, fit$near, model$noise)
  } else {
    fit$factors <- dtc_posterior(fit$inducing, data, model, fit$jitter, control = fit$control,
                                 fitc = gp_family(fit)$fitc)
    fit$evidence <- gp_family(fit)$evidence(data, fit$factors, model$noise)
    if (is.finite_number(fit$unexplained)) fit$unexplained <- fit$factors$t / data$n / model$noise
  }
  fit$nobs <- data$n
  fit$signature <- data_signature(data)
  if (!is.null(fit$reference)) fit$reference <- reference_on(fit, data, fit$reference$inducing, NULL)
  count_rows(fit, n)
}

# Ranks of rows that were there in the order they had, of others after them.
order_after <- function(rank, n, data, old) {
  was <- match_rows(data$x, old$x)
  new <- is.na(was)
  place <- order(ifelse(new, n + seq_along(was), rank[was]))
  order(place)
}

# Which row of `old` each row of x is, NA for none: rows are the same where all their numbers are.
match_rows <- function(x, old) {
  group <- equal_rows(rbind(old, x))
  n <- nrow(old)
  if (is.null(group)) return(rep(NA_integer_, nrow(x)))
  match(group[n + seq_len(nrow(x))], group[seq_len(n)])
}

# ---- points ---------------------------------------------------------------------------------------------------------

#' @rdname add_rows
#' @export
update_points <- function(fit, m = NULL) {
  fit <- check_growing(fit)
  data <- needs_data(fit, "fit")
  if (is.null(fit$inducing) || is_exact(fit)) {
    abort_input("fit", "an exact posterior", "one on inducing points", hint = "Its points are its rows.")
  }
  m <- if (is.null(m)) nrow(fit$inducing) else check_count(m, "m", max = nrow(data$x))
  model <- model_of(fit)
  z <- start_points(data, model, m, "greedy", fit$control)$z
  left <- function(z) dtc_posterior(z, data, model, fit$jitter, control = fit$control)$t
  before <- left(fit$inducing)
  after <- left(z)
  if (after > 0.9 * before) {
    message(sprintf("The points still do: others would leave %.3g of the prior variance unexplained, these leave %.3g.",
                    in_units(fit, after / data$n, 2), in_units(fit, before / data$n, 2)))
    return(fit)
  }
  fit$inducing <- z
  fit$m <- nrow(z)
  fit$m_asked <- m
  fit$inducing_method <- "greedy"
  fit$unexplained <- after / data$n / model$noise
  fit$moved <- FALSE
  fit_of_data(fit, data, 0)
}
