# Finds where f is above a threshold: probabilities, their certified bounds, and regions.

#' Find where f exceeds a threshold, with certified probabilities
#'
#' Returns for each row the probability that f, or a new response, is above a threshold. Certified bounds contain the
#' probability under the exact GP, or with a `family` under Laplace's approximation of it. If `certified`, errors of
#' inducing points or neighbours never make a row "above" or "below".
#' @param fit A fit with one latent function. There are no bounds without data and reference, or with `approx = "vi"`.
#' @param newdata Rows at which f is compared. Default: the training rows.
#' @param threshold A number, or one for each row, on the response's scale, also with a transform. With a `family` and
#'   `of = "f"`, a mean response (probability, time, count, class number), or f if a [gp_family()] has no `mean`.
#' @param prob Probability, above 0.5, from which a row is `"above"`.
#' @param of `"f"` compares the mean response (with a transform its median), `"response"` a new response.
#' @param certified `FALSE` computes no bounds, which is fast.
#' @param draws Number of joint random draws of f for the column `joint`.
#' @param ... Arguments of [certify()]: `effort`, `reference`, `m2`, `max_seconds`, `test_points`.
#' @return A data frame of class `pfdtc_exceedance` with a row for each row of `newdata`:
#'   * `prob`, the fit's probability, and if `certified` bounds of the exact GP's, `prob_lower` and `prob_upper`;
#'   * `region`: `"above"` (the probability, or both bounds, at least argument `prob`), `"below"` (at most `1 - prob`)
#'     or `"undecided"`, and `NA` for missing inputs;
#'   * `because`, for undecided rows if `certified`: `"data"` if both bounds are undecided, else `"approximation"`;
#'   * `joint`, with `draws`: `"above"` for a set of rows at which f is jointly above the threshold with probability
#'     `prob`, `"below"` for a set at which f is below. The first set has the rows of largest probability, as many as
#'     are all above in a share of at least `prob` of the draws. Other rows are `"undecided"`.
#' @details The bounds are the extremes of the probability over the intervals of [certify()]. The column `region` is
#'   about each row alone, `joint` about all rows of a set at once. From about 1e5 training rows on, rows are often
#'   undecided because of the approximation, until passes over all pairs of rows narrow the bounds. Allow time for them
#'   (`max_seconds = 600`). If `certified` with a `family`, the column `prob` uses the mode of f as its mean.
#' @seealso [certify()], [next_points()], `vignette("design")`
#' @examples
#' north <- subset(quakes[1:500, ], lat > -26)
#' fit <- gp_exact(depth ~ long + lat, north, kernel = kernel_matern(3/2, c(2, 4), 45000),
#'                 noise = 2500, hyper = "fixed")
#' grid <- expand.grid(long = seq(166, 188, 0.6), lat = seq(-26, -12, 0.6))
#' deep <- exceedance(fit, grid, threshold = 300)
#' deep
#' plot(deep)
#' @aliases print.pfdtc_exceedance plot.pfdtc_exceedance autoplot.pfdtc_exceedance
#' @export
exceedance <- function(fit, newdata, threshold, prob = 0.95, of = c("f", "response"), certified = TRUE, draws = 0,
                       ...) {
  fit <- refuse_classes(check_any_fit(fit, "fit"))
  # A mixture over hyperparameters is not normal, so exceedance() has no argument `hyper_uncertainty`.
  of_certify <- c("effort", "reference", "m2", "max_seconds", "test_points")
  dots <- list(...)
  known <- !isFALSE(certified) & (names(dots) %||% rep("", length(dots))) %in% of_certify
  check_dots_empty(dots[!known], c(names(formals(exceedance)), if (!isFALSE(certified)) of_certify))
  of <- check_choice(of)
  certified <- check_flag(certified, "certified")
  prob <- check_number(prob, "prob", "a number above 0.5 and below 1", function(p) p > 0.5 && p < 1)
  draws <- check_count(draws, "draws", min = 0)
  new <- if (certified) suppressMessages(new_rows(fit, newdata)) else new_rows(fit, newdata) # certify() sends them
  check_given("threshold", "Give a number on the scale of the response.")
  many <- length(threshold) %in% c(1L, length(new$index))
  refuse_if(!is_plain_numeric(threshold) || !many || !all(is.finite(threshold)), "threshold", describe(threshold),
            "a finite number, or one for each row")
  threshold <- as.double(threshold)
  if (of == "response") check_distribution(fit)
  refuse_if(draws && of == "response", "draws", "cannot be combined with of = \"response\"",
            hint = "Joint draws (`draws` > 0) need of = \"f\".")
  if (certified) {
    fit <- at_mode(check_posterior(fit, "certificate", "fit", "A certificate (`certified = TRUE`)"))
    at <- if (missing(newdata)) certify(fit, ...) else certify(fit, newdata, ...)
  } else {
    p <- latent_at(fit, new$x)
    at <- data.frame(mean = p$mean[new$index] + new$offset, sd = sqrt(p$var[new$index]))
  }
  noise <- if (of == "response" && response_of(fit)$conjugate) noise_law(fit, new) else list(noise = 0, spread = 0)
  out <- exceedance_frame(response_of(fit), at, threshold, noise, of, prob)
  if (draws) out$joint <- joint_regions(fit, new, threshold, out$prob, prob, draws)
  if (!is.null(new$names)) row.names(out) <- make.unique(as.character(new$names))
  x <- fit$data$x # the figure draws at most 2,000 of these rows
  numeric <- Filter(function(v) is.null(v$values), fit_variables(fit))
  along <- function(x) as.data.frame(lapply(numeric, value_along, x), optional = TRUE)
  structure(out, class = c("pfdtc_exceedance", "data.frame"),
            about = list(threshold = threshold, prob = prob, of = of, certified = certified, draws = draws,
                         median = !is.null(fit$transform) || !is.null(fit$likelihood$df), claims = attr(at, "claims"),
                         ordered = response_of(fit)$kind == "ordered", laplace = !response_of(fit)$conjugate,
                         advice = if (!response_of(fit)$conjugate) unname(attr(at, "advice"))),
            figure = list(inputs = along(new$x[new$index, , drop = FALSE]),
                          data = if (!is.null(x)) along(x[evenly(nrow(x), 2000L), , drop = FALSE]),
                          variables = numeric))
}

# Returns the data frame of probabilities and regions. `at` has mean and sd of f at the rows, with bounds if certified.
# `noise` is the result of noise_law() for a new response; for f, which has no noise, its elements are 0.
exceedance_frame <- function(response, at, threshold, noise, of, prob) {
  bounds <- if (of == "f" || response$conjugate) {
    t <- threshold_of_f(response, threshold)
    function(mean, sd) noisy_exceedance(mean, sd, t, noise)
  } else {
    function(mean, sd) response_exceedance(response, mean, sd, threshold)
  }
  same <- function(v) list(lower = v, upper = v)
  middle <- bounds(same(at$mean), same(at$sd))
  out <- data.frame(prob = (middle$lower + middle$upper) / 2)
  certified <- !is.null(at$mean_lower)
  ends <- if (certified) bounds(list(lower = at$mean_lower, upper = at$mean_upper),
                                list(lower = at$sd_lower, upper = at$sd_upper)) else same(out$prob)
  if (certified) out[c("prob_lower", "prob_upper")] <- ends
  out$region <- factor(ifelse(ends$lower >= prob, "above", ifelse(ends$upper <= 1 - prob, "below", "undecided")),
                       region_levels)
  if (!certified) return(out)
  by <- ifelse(out$prob_upper < prob & out$prob_lower > 1 - prob, "data", "approximation")
  out$because <- factor(ifelse(out$region == "undecided", by, NA), c("data", "approximation"))
  out
}

region_levels <- c("above", "below", "undecided")

# Returns list(lower, upper), bounds on the f at which the mean response (with a transform, the median) equals the
# threshold up to rounding. If there is no such f, both bounds are above 1e307 or both below -1e307.
threshold_of_f <- function(response, threshold) {
  if (!is.null(response$expected) && !is.na(response$expected(0, response$theta))) {
    given <- function(f) response$expected(f, response$theta)
    refuse_if(!all(diff(given(c(-1, 0, 1))) > 0), "fit", "has a mean response that does not increase with f")
    end <- rep(709, length(threshold))
    # Search over asinh(f). A mean response that overflows to NaN is small for f < 0 and large for f > 0.
    at <- function(mean) {
      sinh(bisect(function(u) ifelse(is.na(given(sinh(u))), u < 0, given(sinh(u)) < mean), -end, end))
    }
    room <- back_rounding * abs(threshold)
    return(list(lower = at(threshold - room), upper = at(threshold + room)))
  }
  if (!is.null(response$growth)) threshold <- threshold / response$growth(response$theta)
  plain <- is.null(response$transform) && response$link$range[1L] == -Inf
  t <- if (is.null(response$transform)) {
    response$link$fun(pmin(pmax(threshold, response$link$range[1L]), response$link$range[2L]))
  } else {
    transformed(response$transform, threshold)
  }
  t <- pmin(pmax(t, -.Machine$double.xmax), .Machine$double.xmax)
  room <- if (plain) 0 else back_rounding * pmin(abs(t), 1e300)
  list(lower = t - room, upper = t + room)
}

# Bounds P(f > t) = Phi((mean - t) / sd) for a normal f, where mean, sd and t are known to lie in intervals list(lower,
# upper). The bounds include rounding and, if the sd is not known, underflow.
normal_exceedance <- function(mean, sd, t) {
  # largest() returns the largest gap / sd for an sd in the interval, or Inf if the gap is 0 and the sd may be 0.
  largest <- function(gap) {
    z <- ifelse(gap == 0 & sd$lower == 0, Inf, gap / ifelse(gap >= 0, sd$lower, sd$upper))
    z * (1 + sign(z) * 16 * .Machine$double.eps)
  }
  list(lower = pmax(stats::pnorm(-largest(t$upper - mean$lower)) * (1 - 1e-13), 0),
       upper = pmin(pmax(stats::pnorm(largest(mean$upper - t$lower)), 3e-308 * (sd$lower < sd$upper)) * (1 + 1e-13), 1))
}

# Bounds P(y > t), where y is f plus noise that may have heavy tails. law$spread is the variance of the log noise
# variance. The bounds of normal_exceedance() are averaged over the noise variance, with errors below 1e-7 if the spread
# is at most 9. Unless mean and sd are known exactly, the averages are widened by 1e-6.
noisy_exceedance <- function(mean, sd, t, law) {
  at <- function(step) normal_exceedance(mean, lapply(sd, function(s) sd_at_step(c(list(var = s^2), law), step)), t)
  if (!is_spread(law)) return(at(0))
  steps <- seq(-8, 8, by = 0.25)
  weights <- stats::dnorm(steps) / sum(stats::dnorm(steps))
  out <- list(lower = 0, upper = 0)
  for (i in seq_along(steps)) out <- Map(function(sum, p) sum + weights[i] * p, out, at(steps[i]))
  room <- ifelse(mean$lower == mean$upper & sd$lower == sd$upper, 0, 1e-6)
  list(lower = pmax(out$lower - room, 0), upper = pmin(out$upper + room, 1))
}

# Bounds P(y > threshold) for a new response of one trial. Given f, this probability does not decrease with f. So its
# averages over f with the smallest sd (low) and the largest sd (high) differ by at most
#   max_t |Phi(t / low) - Phi(t / high)|  at  (t / low)^2 = 2 log(r) / (1 - 1 / r^2),  r = high / low.
response_exceedance <- function(response, mean, sd, threshold) {
  threshold <- rep_len(threshold, length(mean$lower))
  r <- sd$upper / sd$lower
  t <- sqrt(2 * log(r) / (1 - 1 / r^2))
  apart <- ifelse(sd$upper == sd$lower, 0, ifelse(is.finite(t), stats::pnorm(t) - stats::pnorm(t / r), 0.5))
  known <- which(is.finite(mean$lower + mean$upper + sd$lower + sd$upper))
  at <- function(mean, sd) 1 - predictive_cdf(response, threshold[known], rep(1, length(known)), mean[known], sd[known])
  room <- apart[known] + 1e-6 # 1e-6 is far above the quadrature error of predictive_cdf()
  lower <- ifelse(is.na(mean$lower), NA, 0)
  upper <- lower + 1
  lower[known] <- pmax(pmax(at(mean$lower, sd$lower), at(mean$lower, sd$upper)) - room, 0)
  upper[known] <- pmin(pmin(at(mean$upper, sd$lower), at(mean$upper, sd$upper)) + room, 1)
  list(lower = lower, upper = upper)
}

# Returns a factor of regions. Rows enter the set "above" in decreasing order of the probabilities `p`, as long as in a
# share `prob` of the draws, f is above the threshold at all rows of the set. The set "below" is formed likewise.
joint_regions <- function(fit, new, threshold, p, prob, draws) {
  n <- length(new$index)
  check_memory(16 * as.double(n) * draws, sprintf("%.0f draws at %d places", as.double(draws), n))
  f <- fit$center + in_units(fit, posterior_draws(posterior_of(fit), new$x, draws))
  above <- f[new$index, , drop = FALSE] + new$offset > threshold_of_f(response_of(fit), threshold)$lower
  known <- which(!is.na(p))
  set <- function(holds, order) {
    order <- known[order]
    # `first` is, for each draw, the first row in this order at which f is on the wrong side of the threshold.
    first <- apply(holds[order, , drop = FALSE], 2L, match, x = FALSE, nomatch = length(order) + 1L)
    utils::head(order, sort(first, decreasing = TRUE)[ceiling(prob * draws)] - 1L)
  }
  out <- replace(rep(NA, n), known, "undecided")
  out[set(above, order(-p[known]))] <- "above"
  out[set(!above, order(p[known]))] <- "below"
  factor(out, region_levels)
}

# ---- print, and the figure: a line for one numeric input, a map for two ---------------------------------------------

#' @export
print.pfdtc_exceedance <- function(x, n = 6, digits = max(3L, getOption("digits") - 3L), ...) {
  check_count(digits, "digits")
  about <- attr(x, "about")
  if (!is.null(about) && "region" %in% names(x)) {
    count <- function(what, where) sum(x[[where]] == what, na.rm = TRUE)
    cat(wrap(sprintf("Probability that %s exceeds %s, at %d row%s", if (about$of != "f") "a new response" else
      if (isTRUE(about$median)) "the median response" else
        if (isTRUE(about$ordered)) "the mean class number (1, 2, ... in order)" else "the mean response",
                     if (length(about$threshold) == 1L) format(about$threshold) else "thresholds", nrow(x),
                     plural_s(nrow(x))), exdent = 2), sep = "\n")
    print_fields(list(Above = sprintf("%d (probability at least %s)", count("above", "region"), format(about$prob)),
      Below = sprintf("%d (probability at most %s)", count("below", "region"), format(1 - about$prob)),
      Undecided = paste0(count("undecided", "region"), if (about$certified && count("undecided", "region") > 0L) {
        sprintf(" (%d because of the data, %d because of the approximation)", count("data", "because"),
                count("approximation", "because"))
      }), Unknown = if (anyNA(x$region)) sprintf("%d (missing inputs)", sum(is.na(x$region))),
      Bounds = if (about$certified) paste0("certified: they contain the probability under ", if (isTRUE(about$laplace))
        "Laplace's approximation without inducing points" else "the exact GP", "; `prob` may lie outside"),
      Claims = about$claims, Advice = if (any(x$because %in% "approximation"))
        about$advice %||% "effort \"reference\", a larger `m2` or more `max_seconds` may narrow the bounds",
      Joint = if (about$draws > 0) {
        sprintf("%s jointly above and %d jointly below, each with probability at least %s (from %.0f draws)",
                count_of(count("above", "joint"), "row"), count("below", "joint"), format(about$prob),
                as.double(about$draws))
      }))
  }
  empty <- names(x) == "because" & all(is.na(x[["because"]]))
  tiny <- function(v) if (is.numeric(v)) ifelse(v < 1e-16, "< 1e-16", vapply(signif(v, digits), format, "")) else v
  print_rows(as.data.frame(lapply(round_bounds(x[!empty], digits), tiny), row.names = row.names(x)), n, digits, ...)
  invisible(x)
}

region_colours <- c(above = "#D55E00", below = "#0072B2", data = "#D9D9D9", approximation = "#F0E442")

figure_of_table.pfdtc_exceedance <- function(x, log = NULL) {
  about <- attr(x, "about")
  figure <- attr(x, "figure")
  inputs <- figure$inputs
  refuse_if(is.null(inputs) || nrow(inputs) != nrow(x) || !all(c("prob", "region") %in% names(x)), "x",
            "lacks rows or columns that exceedance() returned")
  vary <- which(vapply(inputs, function(v) length(unique(v[!is.na(v)])) > 1L, NA))
  refuse_if(!length(vary) || length(vary) > 2L, "x", sprintf("has %d inputs that vary", length(vary)),
            hint = "A figure shows one or two numeric inputs. Hold the others at one value in `newdata`.")
  if (length(vary) == 2L && are_coordinates(rev(names(vary)))) vary <- rev(vary)
  shown <- as.character(x$region)
  shown[shown %in% "undecided"] <- if (is.null(x$because)) "data" else as.character(x$because)[shown %in% "undecided"]
  shown <- factor(shown, names(region_colours))
  used <- levels(droplevels(shown))
  text <- c(above = sprintf("above (probability at least %s)", format(about$prob)), below = "below",
            data = "undecided", approximation = "undecided because of the approximation")
  regions <- legend_keys(text[used], "grey40", pch = 22, size = 1.5, bg = region_colours[used])
  label <- sprintf("P(%s > %s)", if (about$of != "f") "y" else if (isTRUE(about$median)) "median" else "mean",
                   if (length(about$threshold) == 1L) format(about$threshold) else "threshold")
  data <- figure$data[vary]
  axes <- figure$variables[names(inputs)[vary]]
  if (length(vary) == 1L) {
    panel <- exceedance_line(x, inputs[vary], data[[1L]], shown, about, axes[[1L]], label)
    kinds <- seq_len(1L + about$certified)
    keys <- rbind(legend_keys(c("probability", "certified bounds")[kinds],
                              plot_colours[c("mean", "certified")][kinds], 1, c(2, 6)[kinds]), regions)
  } else {
    panel <- exceedance_map(inputs[vary], data, shown, axes)
    keys <- rbind(regions, mark_keys(list(points = data)))
  }
  figure(list(panel), x, keys, foot = if (length(vary) == 2L) sprintf("Regions by %s.", label))
}

# Returns the panel along one input: the probability, its bounds if certified, and a strip that shows the regions.
exceedance_line <- function(x, inputs, data, shown, about, variable, label) {
  o <- order(inputs[[1L]], na.last = NA)
  at <- inputs[[1L]][o]
  edges <- c(at[1L], (at[-1L] + at[-length(at)]) / 2, at[length(at)])
  colours <- region_colours[as.character(shown[o])]
  own <- which(!is.na(colours))
  strip <- layer("box", edges[own], rep(-0.09, length(own)), x1 = edges[own + 1L], y1 = rep(-0.04, length(own)),
                 col = colours[own], border = NA)
  layers <- c(if (about$certified) layer("band", at, x$prob_lower[o], y1 = x$prob_upper[o],
                               col = grDevices::adjustcolor(plot_colours["certified"], 0.4)),
    layer("rule", NULL, c(about$prob, 1 - about$prob), lty = 3, col = "grey40"),
    layer("line", at, x$prob[o], col = plot_colours["mean"], lwd = 2), strip,
    if (!is.null(data)) layer("tick", data, lwd = 0.5, col = data_colour(length(data))))
  list(args = list(xlab = names(inputs), ylab = label, xlim = range(at), ylim = c(-0.09, 1)), layers = layers,
       ticks = variable_ticks(variable, range(at)))
}

# Returns the panel of a map of the regions. Rows on a full grid are drawn as cells that touch, other rows as dots.
exceedance_map <- function(inputs, data, shown, axes) {
  values <- lapply(inputs, function(v) sort(unique(v)))
  whole <- prod(lengths(values)) <= sum(!duplicated(inputs)) # <=, as rows with NA count, too
  own <- which(!is.na(shown))
  col <- region_colours[as.character(shown[own])]
  ends <- function(k, side) {
    half <- diff(values[[k]]) / 2
    i <- match(inputs[[k]][own], values[[k]])
    inputs[[k]][own] + side * (if (side < 0) c(half[1L], half) else c(half, half[length(half)]))[i]
  }
  marks <- if (whole) {
    layer("box", ends(1L, -1), ends(2L, -1), x1 = ends(1L, 1), y1 = ends(2L, 1), col = col, border = NA)
  } else {
    layer("dots", inputs[[1L]][own], inputs[[2L]][own], pch = 16, cex = 0.7, col = col)
  }
  rows <- if (!is.null(data)) data_layer(data.frame(at = data[[1L]], y = data[[2L]]), 0.6)
  asp <- map_asp(axes, values[[2L]])
  list(args = c(list(xlab = names(inputs)[1L], ylab = names(inputs)[2L], xlim = range(values[[1L]]),
                     ylim = range(values[[2L]])), if (!is.na(asp)) list(asp = asp)), layers = c(marks, rows))
}

#' @rdname linear_functional
#' @order 2
#' @export
ratios <- function(fit, newdata, than, level = 0.95, certified = FALSE, ...) {
  fit <- refuse_classes(check_any_fit(fit, "fit"))
  level <- check_level(level)
  certified <- check_flag(certified, "certified")
  response <- response_of(fit)
  kind <- if (!is.null(response$ratio)) response$ratio(response$theta) else if (!response$conjugate)
    list(logit = c("odds ratio" = 1), log = c("ratio of means" = 1))[[response$link_name]]
  refuse_if(is.null(kind), "fit", sprintf("has family %s", response$label), hint = "Ratios need a logit or log link.")
  check_given("newdata", "Give a data frame.")
  if (!is.data.frame(newdata)) abort_input("newdata", describe(newdata), "a data frame")
  check_given("than", "Give a data frame with the rows to compare `newdata` with.")
  n <- nrow(newdata)
  refuse_if(!is.data.frame(than) || !nrow(than) %in% c(1L, n) || !all(names(than) %in% names(newdata)), "than",
            describe(than), "a data frame with the variables of `newdata`, and one row or as many rows as `newdata`")
  naming_argument("than", new_rows(fit, than))
  weights <- cbind(diag(n), if (nrow(than) == 1L) matrix(-1, n, 1) else -diag(n))
  new_rows(fit, newdata)
  both <- rbind(newdata[names(than)], than)
  found <- suppressMessages(linear_functional(fit, weights, both, certified = certified, ...),
                            classes = "pfdtc_message_new_levels") # new_rows() has sent it
  z <- stats::qnorm((1 + level) / 2)
  ends <- function(lower, upper, sd) {
    one <- exp(unname(kind) * (lower - z * sd))
    other <- exp(unname(kind) * (upper + z * sd))
    list(pmin(one, other), pmax(one, other))
  }
  out <- data.frame(ratio = exp(unname(kind) * found$mean))
  out[c("lwr", "upr")] <- ends(found$mean, found$mean, found$sd)
  if (certified) out[c("lwr_certified", "upr_certified")] <- ends(found$mean_lower, found$mean_upper, found$sd_upper)
  structure(out, of = names(kind), row.names = row.names(newdata), class = c("pfdtc_table", "data.frame"))
}
