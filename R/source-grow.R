#' Add or remove rows, or replace inducing points
#'
#' Updates a fit without learning: kernel, noise, and centre and scale of `y` stay. `add_rows()` and `drop_rows()` keep
#' the inducing points. An exact posterior stays exact. If all rows of a non-Gaussian fit are inducing points, new rows
#' become points, up to 2,000. `update_points()` replaces the points.
#'
#' The posterior equals the posterior of a fit to the present rows with the same inducing points and centre, up to
#' rounding. To add or drop n rows, a Gaussian fit with inducing points, without groups and transform, needs no data and
#' \eqn{O(n m^2)} time; other fits need their data. With data, `fit$reference` is replaced by one of the present
#' rows. Without, it is removed, large rounding errors raise an error, and rows that the fit lacks can go unnoticed.
#' @param fit a fit, but not by [gp_subsample()] or [gp_hurdle()]; for `update_points()` not an exact fit.
#' @param newdata a data frame with the variables of the formula, response and weights included, or a row source
#'   ([rows_blocks()]). For a fit from a matrix, a list with `x`, `y` and, if used, `weights` and `offset`.
#' @param rows numbers of rows of `model.frame(fit)` to remove. For a fit without its data, a data frame or list as for
#'   `newdata`.
#' @param m number of inducing points. Default: the present number.
#' @return The fit, without its certificate for `tol`. Elements `added` and `dropped` count rows of positive weight.
#'   After `drop_rows()` without data, `allowance` bounds rounding errors relative to the noise variance.
#'   `update_points()` keeps the inducing points unless others reduce the unexplained prior variance by a tenth.
#' @examples
#' first <- pfdtc(mag ~ stations + depth, quakes[1:800, ], kernel = kernel_se(c(60, 300), 0.1),
#'                noise = 0.04, hyper = "fixed", m = 20)
#' more <- add_rows(first, quakes[801:1000, ])
#' nobs(more)
#' drop_rows(more, 1:100)
#' @seealso [pfdtc()], [rows_blocks()], [refine()]
#' @export
add_rows <- function(fit, newdata) {
  fit <- check_growing(fit)
  check_given("newdata", "Give the rows to add.")
  if (is_source(newdata) && read_elsewhere(newdata)) {
    refuse_if(!is.null(fit$data) || !is.null(fit$near) || is.null(fit$inducing), "newdata",
              "has rows on workers, but the fit keeps its rows here",
              hint = "Only fits with `keep_data = FALSE` and `neighbours = 0` take rows from workers.")
    more <- list(fit$inducing, model_of(fit), as_start(posterior_of_fit(fit)), method_traits(fit)$fitc, fit$control)
    new <- source_pass(newdata, visit_rows(added_rows, fit_recipe(fit, TRUE), sums_with_signature, more), sums_merge)
    return(if (is.null(new)) fit else with_new_sums(fit, new, 1))
  }
  if (is_source(newdata)) {
    source_pass(newdata, function(block) {
      fit <<- add_rows(fit, block)
      TRUE
    }, `&`)
    return(fit)
  }
  given <- training_rows_from(fit, newdata)
  if (!length(given$response)) return(fit)
  if (!is.null(given$variables)) fit$frame$variables <- given$variables # groups may have new levels
  if (is.null(fit$data)) return(with_sums(fit, cleaned(fit, given), 1))
  data <- data_of_rows(fit$data, extended_rows(rows_of_data(fit$data), given), fit)
  data["kept"] <- list(kept_with_rows(fit, given$frame, data))
  fit_of_data(fit, data)
}

#' @rdname add_rows
#' @export
drop_rows <- function(fit, rows) {
  fit <- check_growing(fit)
  check_given("rows", "Give numbers of rows, or the rows if the fit keeps none.")
  if (is.null(fit$data)) {
    refuse_if(is_source(rows) || is.numeric(rows) && is.null(dim(rows)), "rows", describe(rows),
              "a data frame with the rows to remove",
              hint = if (is.numeric(rows)) "Row numbers are those of the data, which the fit does not have.")
    return(with_sums(fit, naming_argument("rows", added_rows(fit, rows)), -1))
  }
  n <- length(fit$data$response)
  refuse_if(!is.numeric(rows) || anyNA(rows) || any(rows < 1 | rows > n | rows != round(rows)), "rows", describe(rows),
            sprintf("numbers of rows, from 1 to %d", n))
  rows <- unique(as.integer(rows))
  if (!length(rows)) return(fit)
  data <- data_of_rows(fit$data, take_rows_of(rows_of_data(fit$data), -rows), fit)
  data["na_action"] <- fit["na.action"] <- list(NULL) # the numbers of omitted rows are of the old data
  frame <- c("columns", "raw")
  data["kept"] <- fit$data["kept"]
  data$kept[frame] <- take_rows_of(data$kept[frame], -rows)
  fit_of_data(fit, data)
}

check_growing <- function(fit) {
  fit <- check_any_fit(fit, "fit")
  if (method_traits(fit)$some) abort_input("fit", sprintf("is a fit by %s(), which does not use all rows", fit$method))
  family <- if (!response_of(fit)$conjugate) paste("family", response_of(fit)$label)
  needs <- c(family, if (!is.null(fit$factors$groupings)) "groups", if (!is.null(fit$transform)) "a transform")[1L]
  refuse_if(is.null(fit$data) && length(needs), "fit", sprintf("has %s, but not its data", needs), hint = paste0(
    "Fit with keep_data = TRUE.",
    if (!is.null(family)) " Its mode depends on all rows, so sums over the old rows are not enough."))
  fit
}

# ---- add or remove rows without the fit's data, by sums over rows ---------------------------------------------------

# Returns the factors of the posterior on the inducing points, with the sums over rows from which they were computed.
posterior_of_fit <- function(fit) {
  near <- fit$near
  if (!is.null(near)) return(c(near$sums, near[c("L", "beta", "jitter")], list(C = near$C * sqrt(model_of(fit)$noise))))
  c(fit$factors[setdiff(names(fit$factors), "jitter")], fit["jitter"])
}

# Returns the fit after adding (`sign` = 1) or removing (`sign` = -1) `rows`, in units of the fit, by sums over rows.
with_sums <- function(fit, rows, sign) {
  if (!rows$n) return(fit)
  near <- fit$near
  refuse_if(!is.null(near) && sign < 0, "fit", "keeps a sample of its rows as neighbours",
            hint = "Fit the remaining rows, starting from this fit: pfdtc(<formula>, <source>, inducing = fit).")
  # Fits of version 0.1.0 lack `shift` and need their data.
  if (is.null(fit$inducing) || !is.null(near) && is.null(near$rows$shift)) training_data(fit, "fit")
  if (!is.null(near) && is.null(near$sums)) { # new rows are conditioned on after the old ones
    old <- near$rows
    data <- merge_all_equal_rows(list(
      x = rbind(old$x, rows$x), y = c(old$y, rows$y), group = NULL, n = old$n + rows$n, shift = list(rows = 0, ss = 0),
      weights = if (!is.null(c(old$weights, rows$weights))) c(merged_weights(old), merged_weights(rows))))
    more <- log_density_shift(rows$n, sum_of_logs(rows$weights), fit$scale, data$shift$rows, data$shift$ss)
    data$shift <- Map(`+`, old$shift[names(more)], more)
    fit$near$rank <- order_after(near$rank, data, old)
    fit <- posterior_again(posterior_of(fit), rows = data)$fit
    fit$near$rows <- data[c("x", "y", "weights", "n", "shift")]
    return(count_rows(fit, rows$n, list(signature = signature_sums(rows), offset_squares = sum(rows$offset_squares))))
  }
  new <- sums_with_signature(rows, fit$inducing, model_of(fit), posterior_of_fit(fit),
                             !is.null(near) || method_traits(fit)$fitc, fit$control)
  if (!is.null(near)) fit$near$rows <- resampled(near$rows, rows, fit$nobs)
  with_new_sums(fit, new, sign)
}

# Returns the fit after adding or removing the sums `new` over rows X. fit$allowance sums up the rounding errors,
# relative to the noise variance, that removed rows leave in G = A A', A = L^{-1} k(Z, X), L L' = k(Z, Z).
with_new_sums <- function(fit, new, sign) {
  model <- model_of(fit)
  p <- posterior_of_fit(fit)
  n <- fit$nobs + sign * new$n
  sums <- sums_merge(sums_of(p), lapply(new$sums[names(sums_of(p))], `*`, sign))
  if (sign < 0) {
    refuse_if(n <= 0, "rows", sprintf("removes %s rows, but the fit has %s", show_count(new$n), show_count(fit$nobs)),
              hint = "A fit needs at least one row.")
    refuse_if(sums$yy < -1e-8 * p$yy || sums$t < -1e-8 * p$t || min(diag(sums$G)) < -1e-8 * max(diag(p$G)), "rows",
              "has rows that the fit does not have")
    off <- rounding_growth(nrow(p$G), fit$nobs) * sum(diag(p$G)) / model$noise
    if (off > 1e-4) {
      shown <- format(off, digits = 2)
      abort_input("rows", shown,
                  message = sprintf("Without these rows, rounding errors could reach %s of the noise.", shown),
                  hint = "Fit the remaining rows instead.")
    }
    fit$allowance <- sum(fit$allowance, off)
  }
  squares <- c("yy", "k_sum", "t", "rss")
  sums[squares] <- lapply(sums[squares], max, 0)
  sums$n <- n
  after <- posterior_of_sums(fit$inducing, sums, model, p)
  near <- fit$near
  evidence <- function(n, log_w, factors) {
    rows <- list(n = n, scale = fit$scale, shift = log_density_shift(n, log_w, fit$scale))
    evidence_of("points", model, rows, factors, if (is.null(near)) method_traits(fit) else list(fitc = TRUE))
  }
  fit$evidence <- fit$evidence + evidence(sign * new$n, sign * new$log_w, after) - evidence(0, 0, p)
  if (!is.null(near)) {
    fit$near <- c(near_of_posterior(after, model, fit$neighbours), near["rows"])
  } else {
    fit$factors <- after
    if (is_finite_number(fit$unexplained)) fit$unexplained <- after$t / n / model$noise
  }
  count_rows(fit, sign * new$n, new, sign)
}

# Returns the fit with n rows added (removed if n < 0) in its counts and in its signature, the sums of data_signature().
# `new` has the rows' `signature` and sum w offset^2. Removes `tol` and the reference, which belong to the old rows.
count_rows <- function(fit, n, new, sign = 1) {
  old <- fit$signature
  names <- names(new$signature$sums)
  fit$signature <- signature_of(list(sums = old$sums[names] + sign * new$signature$sums,
                                     size = old$size[names] + max(sign, 0) * new$signature$size), old$sums[["center"]])
  # Certificates allow for rounding of the offset, in proportion to its size.
  if (sign > 0 && new$offset_squares > 0)
    fit$frame$offset_size <- sqrt(sum(fit$frame$offset_size^2) + new$offset_squares)
  fit$nobs <- fit$nobs + n
  if (!is.null(fit$reference)) {
    tell_classed("reference", "The reference was computed from other rows and is left out. A new one needs the data.")
    fit["reference"] <- list(NULL)
  }
  note_rows(fit, n)
}

# Counts n rows added (removed if n < 0), and removes `tol`, which belongs to the old rows and inducing points. Without
# data, computes the sd of the response by sums, unless its square is so small beside yy that most digits would be lost.
note_rows <- function(fit, n) {
  what <- if (n > 0) "added" else "dropped"
  fit$because[] <- sub("there are ([0-9,]+( distinct)? rows)", "the original fit had \\1", fit$because)
  s <- as.list(fit$signature$sums)
  left <- s$yy - s$y^2 / s$w
  if (is.null(fit$data) && n != 0 && isTRUE(left > 1e-10 * s$yy)) fit$sd_y <- sqrt(left / s$w * s$n / (s$n - 1))
  replace(fit, c(if (n != 0) what, "tol"), c(if (n != 0) sum(fit[[what]], abs(n)), list(NULL)))
}

# ---- a fit to a row source that keeps rows as neighbours ------------------------------------------------------------

# Updates a random sample of the first `before` rows of a source (reservoir sampling). With probability size / (before +
# i), row number before + i replaces a random row of the sample of `size` rows.
resampled <- function(kept, rows, before) {
  size <- nrow(kept$x)
  taken <- which(stats::runif(rows$n) * (before + seq_len(rows$n)) < size)
  if (!length(taken)) return(kept)
  place <- sample.int(size, length(taken), replace = TRUE)
  kept$x[place, ] <- rows$x[taken, , drop = FALSE]
  kept$y[place] <- rows$y[taken]
  if (!is.null(kept$weights) || !is.null(rows$weights)) {
    kept$weights <- merged_weights(kept)
    kept$weights[place] <- merged_weights(rows)[taken]
  }
  kept
}

# Returns the fit with its posterior computed anew for `data`, at the same hyperparameters.
fit_of_data <- function(fit, data) {
  model <- model_of(fit)
  n <- data$n - fit$nobs
  if (!is.null(fit$near)) fit$near$rank <- order_after(fit$near$rank, data, fit$data)
  fit <- posterior_again(posterior_of(fit), rows = data)$fit
  if (is_exact(fit)) {
    fit["small_n"] <- list(NULL)
    if (!is.null(fit[["m"]])) fit$m <- fit$m_asked <- nrow(data$x)
  } else if (response_of(fit)$conjugate && is.null(fit$near) && is_finite_number(fit$unexplained)) {
    fit$unexplained <- fit$factors$t / data$n / model$noise
  }
  if (!is.null(fit$learned)) attr(fit$learned, "below") <- NULL # the maximum of the likelihood is unknown here
  sd <- if (!response_of(fit)$conjugate) data$sd_y else data$scale *
    response_unit(response_of_rows(data), of_used_rows(data, users_weights(data)), 0, TRUE, FALSE, "newdata")$sd
  fit[c("nobs", "signature", "sd_y")] <- list(data$n, data_signature(data), sd)
  if (!is.null(fit$reference))
    fit$reference <- if (!response_of(fit)$conjugate)
      with_fixed_seed(laplace_reference(fit, data, min(fit$reference$m, data$n))) else
      reference_on(fit, data, fit$reference$inducing, NULL)
  note_rows(fit, n)
}

# Returns the ranks (order of conditioning) of the rows of `data`. Rows of `old` come first, in the order of `rank`.
order_after <- function(rank, data, old) {
  own <- seq_len(nrow(old$x))
  all <- rbind(old$x, data$x)
  group <- equal_rows(all) %||% seq_len(nrow(all))
  was <- match(group[-own], group[own]) # the number of an equal row of `old`, or NA
  order(order(ifelse(is.na(was), length(own) + seq_along(was), rank[was])))
}

#' @rdname add_rows
#' @export
update_points <- function(fit, m = NULL) {
  fit <- check_growing(fit)
  data <- training_data(fit, "fit")
  refuse_if(is.null(fit$inducing) || is_exact(fit), "fit",
            "has an exact posterior, in which all rows are inducing points",
            hint = "Use pfdtc(<formula>, <data>, m = <number>, like = fit) for fewer points.")
  m <- if (is.null(m)) nrow(fit$inducing) else check_count(m, "m", max = nrow(data$x),
                                                             max_is = "the number of distinct rows")
  model <- model_of(fit)
  z <- start_points(data, model, m, "greedy", fit$control)$z
  left <- function(z) native_posterior(z, data, model, fit$jitter, control = fit$control)$t
  after <- left(z)
  if (after > 0.9 * left(fit$inducing)) {
    tell_classed("points", sprintf(paste("The inducing points are kept: %d new points (`m`) would not reduce the",
                                         "residual prior variance by a tenth."), nrow(z)))
    return(fit)
  }
  changed <- c("inducing", "m", "m_asked", "inducing_method", "unexplained", "moved", "message", "objective")
  fit[changed] <- list(z, nrow(z), m, "greedy", after / data$n / model$noise, FALSE, "nothing to optimise", NA_real_)
  fit_of_data(fit, data)
}
