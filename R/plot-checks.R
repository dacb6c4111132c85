# Defines plot() of a fit, and draws all its figures except slices and maps.

# The argument `which` of plot() has these values. Several checks can be drawn together, but each figure only alone.
checks_drawn <- c("residuals", "qq", "pit", "observed", "semivariogram")
figures_drawn <- c("slices", "map", "checks", "calibration", "confusion", "choices", "groups")

checks_figure <- function(fit, which) {
  numeric <- Filter(function(v) is.null(v$values), fit_variables(fit))
  if (identical(which, "checks")) which <- if (length(numeric)) checks_drawn else setdiff(checks_drawn, "semivariogram")
  loo <- loo_rows(fit)
  response <- response_of(fit)
  # Quantile residuals are the normal quantiles of the (randomised) probability integral transform `pit`. If the model
  # holds, they are standard normal (Dunn and Smyth 1996). For normal noise, they are residuals divided by their sds.
  normal_noise <- response$conjugate && !is_spread(loo)
  pit <- pit_of(fit, loo)
  quantiles <- stats::qnorm(pmin(pmax(pit, 1e-15), 1 - 1e-15))
  noise <- if (response$conjugate) loo$noise else 0
  all <- list(mean = response_moments(response, loo$mean, loo$var + noise)$mean,
              observed = given_response(training_data(fit)),
              rstandard = if (response$conjugate) standardised(loo) else quantiles)
  used <- is.finite(all$rstandard)
  all <- lapply(c(all, list(pit = pit)), function(v) unname(v[used]))
  quantiles <- if (normal_noise) all$rstandard else unname(quantiles[used])
  name <- paste0(if (response$kind == "ordered") "class number of ", response_name(fit))
  mean <- paste("leave-one-out mean of", name)
  label <- function(ratio) paste("leave-one-out", if (ratio) "residual / sd" else "quantile residual")
  half <- stats::qnorm(0.975)
  panels <- lapply(stats::setNames(nm = which), switch,
    residuals = scatter_panel(all[c("mean", "rstandard")], "Residuals", mean, label(response$conjugate),
                              c(level_line(-half), level_line(0, 1), level_line(half))),
    qq = scatter_panel(list(normal = stats::qqnorm(quantiles, plot.it = FALSE)$x, rstandard = quantiles),
                       "Normal quantiles", "normal quantile", label(normal_noise), diagonal),
    observed = scatter_panel(all[c("mean", "observed")], "Observed against predicted", mean, name, diagonal),
    pit = pit_panel(all$pit), semivariogram = semivariogram_panel(fit, numeric, used, all$rstandard))
  value <- lapply(panels, `[[`, "table")
  figure(panels, if (length(value) == 1L) value[[1L]] else value, shape = rev(grDevices::n2mfrow(length(panels))))
}

# Draws the empirical semivariogram of the residuals `score` at the rows `used`, or at `most` of them. Distances are
# in lengthscales of the `numeric` inputs. Pairs up to the median distance form `classes` groups of equal size.
semivariogram_panel <- function(fit, numeric, used, score, most = 1000L, classes = 12L) {
  j <- unlist(lapply(numeric, `[[`, "columns"))
  refuse_if(!length(j), "which", "= \"semivariogram\" needs a numeric input")
  rows <- training_inputs(training_data(fit))
  x <- rotated(fit$kernel, rows$x)[rows$index[used], j, drop = FALSE]
  lengths <- kernel_lengths(fit$kernel, ncol(rows$x))[j]
  keep <- evenly(nrow(x), most)
  x <- x[keep, , drop = FALSE] / rep(lengths, each = length(keep)) # infinite lengthscales add no distance
  distance <- c(stats::dist(x))
  half <- c(stats::dist(score[keep]))^2 / 2
  near <- which(distance <= stats::median(distance))
  class <- ceiling(rank(distance[near], ties.method = "min") / length(near) * classes)
  by_class <- function(v, of = mean) as.vector(tapply(v[near], class, of))
  d <- data.frame(distance = by_class(distance), semivariance = by_class(half), pairs = by_class(half, length))
  list(table = d, args = list(main = "Semivariogram of residuals", xlab = "distance in lengthscales",
                              ylab = "semivariance", ylim = c(0, max(1, d$semivariance, na.rm = TRUE)),
                              xlim = c(0, max(d$distance))),
       layers = c(level_line(1), layer("line", d$distance, d$semivariance),
                  layer("dots", d$distance, d$semivariance, pch = 16)))
}

level_line <- function(y, lty = 2) layer("rule", NULL, y, lty = lty, col = plot_colours["mean"])

diagonal <- layer("rule", NULL, 0, slope = 1, col = plot_colours["mean"])

# Returns a panel that plots the second column of `points` against the first, at most 2,000 rows. `table` has all rows.
scatter_panel <- function(points, title, xlab, ylab, lines) {
  table <- data.frame(points)
  shown <- table[evenly(nrow(table), 2000L), , drop = FALSE]
  list(table = table, args = list(main = title, xlab = xlab, ylab = ylab),
       layers = c(data_layer(stats::setNames(shown, c("at", "y"))), lines))
}

# Returns a panel with the histogram of `pit` (values of the predictive distribution function at the responses), in 4 to
# 20 classes. If the PIT is uniform, the band contains each height with a probability of at least 95 %.
pit_panel <- function(pit) {
  n <- length(pit)
  classes <- max(4L, min(20L, n %/% 10L))
  at <- (seq_len(classes) - 1) / classes
  height <- tabulate(pmin(classes, floor(pit * classes) + 1L), classes) / n * classes
  band <- stats::qbinom(c(0.025, 0.975), n, 1 / classes) / n * classes
  list(table = data.frame(pit), args = list(main = "Probability integral transform", ylab = "density, with a 95 % band",
                                            xlab = "predicted probability of a smaller response",
                                            ylim = c(0, max(height, band))),
       layers = c(layer("box", 0, band[1L], x1 = 1, y1 = band[2L], border = NA, col = band_colour()),
                  layer("box", at, 0, x1 = at + 1 / classes, y1 = height, border = "black",
                        col = grDevices::adjustcolor(plot_colours["data"], 0.15)), level_line(1)))
}

# Returns a figure of observed shares of successes, or of each of several classes, against leave-one-out probabilities.
# For other non-Gaussian responses, the figure is the histogram of the PIT.
calibration_figure <- function(fit) {
  response <- response_of(fit)
  if (response$reads == "classes") {
    data <- training_data(fit)
    loo <- loo_rows(fit)
    p <- response_moments(response, loo$mean, loo$var)$mean
    use <- which(!is.na(p))
    d <- shares_table(p[use], data$response[use], unname(sizes_given(data)[use]), 5L)
    return(figure(list(shares_panel(d, "share of successes", band_colour(), lwd = 6, lend = 1)), d))
  }
  if (!response$kind %in% c("labels", "ordered")) {
    pit <- unname(stats::naresid(fit$na.action, pit_of(fit, loo_rows(fit))))
    return(figure(list(pit_panel(pit[!is.na(pit)])), data.frame(pit = pit)))
  }
  levels <- response$levels
  at <- loo_shares(fit)
  d <- do.call(rbind, lapply(seq_along(levels), function(k) {
    data.frame(class = levels[k], shares_table(at$p[, k], at$y == k, rep(1, nrow(at$p)), 10L))
  }))
  colours <- series_looks(length(levels))$col
  own <- colours[match(d$class, levels)]
  figure(list(shares_panel(d, "share of the class", grDevices::adjustcolor(own, 0.5), own)), d,
         legend_keys(levels, colours, pch = 16))
}

# Returns a table of at most ten groups of rows with similar probabilities p: mean probability, share y of successes
# among `size` trials, sd of this share if p is right, and number of rows (if possible at least `least`).
shares_table <- function(p, y, size, least) {
  group <- ceiling(rank(p, ties.method = "average") / length(p) * min(10L, max(1L, length(p) %/% least)))
  each <- function(v) as.vector(tapply(v, group, sum))
  trials <- each(size)
  data.frame(predicted = each(size * p) / trials, observed = each(size * y) / trials,
             sd = sqrt(each(size * p * (1 - p))) / trials, rows = as.vector(table(group)))
}

# Returns a panel of observed shares against leave-one-out probabilities, for `d` with the columns predicted, observed
# and sd. Bars around the diagonal contain about 95 % of the observed shares if the probabilities are right.
shares_panel <- function(d, ylab, bar, dot = "black", ...) {
  half <- stats::qnorm(0.975) * d$sd
  list(args = list(main = "Calibration", xlim = 0:1, ylim = 0:1, xlab = "leave-one-out probability", ylab = ylab),
       layers = c(diagonal, layer("segment", d$predicted, pmax(d$predicted - half, 0), x1 = d$predicted,
                                    y1 = pmin(d$predicted + half, 1), col = bar, ...),
                  layer("dots", d$predicted, d$observed, pch = 16, col = dot)))
}

bars_panel <- function(title, ylab, at, lwr, upr, labels, pch = 16) {
  i <- seq_along(at)
  list(args = list(main = title, xlab = if (is.null(labels)) "level" else "", ylab = ylab), levels = labels,
       layers = c(level_line(0), layer("segment", i, lwr, x1 = i, y1 = upr), layer("dots", i, at, pch = pch)))
}

# Draws how far the log density of each candidate model is below that of the chosen one, in nats for transforms, noise
# models and families, in nats per row for kernels. The axis ends at 4 times the median difference; larger ones have
# labels.
choices_figure <- function(fit) {
  behind <- function(candidate, score, se, chosen) {
    d <- data.frame(candidate, behind = score - score[chosen][1L], se, chosen)[is.finite(score), ]
    `rownames<-`(d[order(d$behind), ], NULL)
  }
  r <- fit$response
  k <- fit$kernels
  tables <- Filter(function(d) !is.null(d) && nrow(d) > 1L, list(
    response = if (!is.null(r)) behind(r$candidate, -r$merit, r[["se"]] %||% NA_real_, r$chosen),
    kernels = if (!is.null(k)) behind(k$kernel, k$score, k$se, k$chosen)))
  refuse_if(!length(tables), "which", "= \"choices\" is for fits that compared transforms, noise, families or kernels")
  panels <- Map(function(d, what) {
    edge <- max(4 * stats::median(d$behind), 1e-3)
    at <- pmin(d$behind, edge)
    half <- 2 * replace(d$se, is.na(d$se), 0)
    words <- if (what == "response") c("Response", "score below the chosen (nats)") else
      c("Kernel", "score per row below the chosen (nats)")
    bars_panel(words[1L], words[2L], at, at - half, at + half,
               ifelse(d$behind > edge, paste0(d$candidate, ": ", signif(d$behind, 2)), d$candidate),
               ifelse(d$chosen, 16, 1))
  }, tables, names(tables))
  figure(panels, if (length(tables) == 1L) tables[[1L]] else tables, shape = c(1L, length(tables)))
}

# Draws the effects of groups: a panel for each effect, with the levels in the order of their estimates.
groups_figure <- function(fit, level) {
  table <- as.data.frame(ranef.gp_fit(fit_with_groups(fit, "x"), se = TRUE))
  half <- stats::qnorm((1 + check_level(level)) / 2) * table$condsd
  table <- data.frame(group = table$grpvar, effect = table$term, level = table$grp, estimate = table$condval,
                      lwr = table$condval - half, upr = table$condval + half)
  by <- order(match(table$group, table$group), match(table$effect, table$effect), table$estimate)
  table <- `rownames<-`(table[by, ], NULL)
  name <- paste(table$group, table$effect, sep = ": ")
  parts <- split(table, factor(name, unique(name)))
  figure(Map(function(d, title) {
    bars_panel(title, "effect", d$estimate, d$lwr, d$upr, if (nrow(d) <= 40L) d$level)
  }, parts, names(parts)), table, shape = rev(grDevices::n2mfrow(length(parts))))
}

# Draws the probability of each class, averaged over f, along each of `inputs`. slice_centre() fixes the other inputs.
classes_figure <- function(fit, inputs, at, n, xlim) {
  s <- slice_frame(fit, inputs, at, n, xlim)
  levels <- response_of(fit)$levels
  curves <- s$grid[c("input", "value", "label", "outside")]
  columns <- paste("class", seq_along(levels))
  curves[columns] <- class_moments(latent_at(fit, s$grid$x))$mean
  looks <- series_looks(length(levels))
  label <- paste("probability of", response_name(fit))
  panels <- slice_panels(s, curves, label, c(0, 1), function(p) NULL, function(p) {
    unlist(Map(function(k, col, lty) mean_layer(p, k, col, lty), columns, looks$col, looks$lty), FALSE)
  })
  value <- data.frame(s$grid[c("input", "value", "label")], class = rep(levels, each = nrow(curves)),
                      probability = unlist(curves[columns], use.names = FALSE), outside = curves$outside)
  figure(panels, value, legend_keys(levels, looks$col, looks$lty, 2), foot = s$foot)
}

# Draws the confusion matrix: observed classes in rows, most probable leave-one-out classes in columns.
confusion_figure <- function(fit) {
  levels <- response_of(fit)$levels
  at <- loo_shares(fit)
  as_class <- function(k) factor(levels[k], levels)
  counts <- table(class = as_class(at$y), predicted = as_class(max.col(at$p, "first")))
  short <- abbreviate(levels, 20L, named = FALSE)
  K <- length(levels)
  share <- c(counts / pmax(rowSums(counts), 1))
  x <- rep(seq_len(K), each = K)
  y <- rep(rev(seq_len(K)), K)
  shade <- vapply(share, function(v) grDevices::adjustcolor(plot_colours["mean"], 0.05 + 0.9 * v), "")
  figure(list(list(
    args = list(main = "Confusion", xlab = "leave-one-out most probable class", ylab = response_name(fit)),
    levels = levels, yticks = list(at = rev(seq_len(K)), labels = short), left = 0.5 * max(nchar(short)) + 3,
    layers = c(layer("box", x - 0.5, y - 0.5, x1 = x + 0.5, y1 = y + 0.5, border = "white", col = shade),
               layer("text", x, y, labels = c(counts), col = ifelse(share > 0.5, "white", "black"))))), counts,
    foot = sprintf("%d of %d rows classified correctly", sum(diag(counts)), sum(counts)))
}

#' Plot a Gaussian process fit
#'
#' Draws the mean along one or two inputs, or checks of the fit.
#'
#' * `"slices"` shows data, mean, credible band of f (shaded) and prediction band of a new response (dashed) along each
#'   input. Ticks mark inducing points. The other inputs are held at the values that are printed below the figure. With
#'   several inputs points are partial residuals: mean along the slice plus residual, or (log link) times response /
#'   prediction. Classes have their responses. Unordered classes show probabilities.
#' * `"map"` shows mean and sd over two numeric inputs. The mean is blank where the sd of f is above 0.7 prior sds.
#' * `"checks"` (like `"map"`, not for unordered classes) compares leave-one-out predictions and responses. Panels, also
#'   as values of `which`, are `"residuals"`, `"qq"`, `"pit"`, `"observed"` and `"semivariogram"`.
#' * `"calibration"`, for a non-Gaussian likelihood, shows the share of successes (or of each class) against the
#'   predicted probability, or the histogram of `"pit"`. `"confusion"` is a table of several
#'   classes against leave-one-out predictions.
#' * `"choices"` shows the difference in score of each transform, noise model, family and kernel from the chosen.
#' * `"groups"` shows the effects of the levels of grouped terms, ordered by their estimates, with credible intervals.
#'   Slices and maps omit these effects. Prediction bands and certified bands are for a new level.
#' @param x A fit.
#' @param inputs Names or numbers of variables. Default: the nine (for a map two) with the largest ratio of range to
#'   lengthscale.
#' @param at Values of inputs that are held, as in `list(x = 1)`. Default: medians and most frequent levels.
#' @param level Probability of the bands.
#' @param interval Bands. Most families have only `"credible"`.
#' @param n Number of values of each numeric input. Default: 100 for a map, otherwise at least 200.
#' @param points Should the data be drawn (at most 2,000 rows)?
#' @param which Figure to draw, see Details.
#' @param scales `"own"` gives each panel its own vertical axis.
#' @param certified Should the bands be widened so that they contain the bands of the exact GP, as in [certify()]?
#' @param xlim Range of the horizontal axis, or a named list of ranges. Beyond the data the mean is dotted.
#' @param terms Should each term of a sum of kernels have its own panels?
#' @param type With a `family` or transform, `"response"` (mean response) or `"link"` (f).
#' @param ... Arguments of [plot.default()]; for a map also `useRaster` and `zlim` of [image()].
#' @return Invisibly, the values drawn, without offsets. Slices have `input`, `value`, `label` (of a level), `fit`,
#'   `se.fit`, `lwr` and `upr` (credible), `lwr_y` and `upr_y` (prediction), or `class` and `probability`, and `outside`
#'   (beyond the data?). A map has the inputs, `fit` and `se.fit`. Several checks: a list of data frames.
#' @seealso [plot_certificate()], [plot_trace()], [partial_dependence()], [cross_validate()]
#' @examples
#' fit <- pfdtc(mpg ~ wt + hp + cyl, mtcars, m = 15)
#' plot(fit, inputs = "wt", at = data.frame(wt = 3, hp = 200, cyl = 8))
#' plot(fit, which = "map", inputs = c("wt", "hp"))
#' @export
plot.gp_fit <- function(x, inputs = NULL, at = NULL, level = 0.95,
                        interval = c("both", "credible", "prediction"), n = NULL, points = TRUE,
                        which = "slices", scales = c("common", "own"), certified = FALSE, xlim = NULL, terms = FALSE,
                        type = c("response", "link"), ...) {
  draw_figure(figure_of_fit(x, as.list(environment())), list(...))
}

#' @rdname gp_fit-tidiers
#' @exportS3Method ggplot2::autoplot
autoplot.gp_fit <- function(object, inputs = NULL, at = NULL, level = 0.95,
                            interval = c("both", "credible", "prediction"), n = NULL, points = TRUE, which = "slices",
                            scales = c("common", "own"), certified = FALSE, xlim = NULL, terms = FALSE,
                            type = c("response", "link"), ...) {
  check_dots_empty()
  ggplot_figure(figure_of_fit(object, as.list(environment())))
}

# Returns the figure that plot() of a fit draws. `ask` is a list of plot()'s arguments.
figure_of_fit <- function(fit, ask) {
  fit <- check_any_fit(fit, "x")
  choices <- lapply(formals(plot.gp_fit)[c("interval", "scales", "type")], eval)
  for (argument in names(choices)) ask[[argument]] <- check_choice(ask[[argument]], choices[[argument]], argument)
  for (argument in c("points", "certified", "terms")) ask[[argument]] <- check_flag(ask[[argument]], argument)
  type <- if (ask$terms) "link" else ask$type
  n <- if (!is.null(ask$n)) check_count(ask$n, "n", min = 2)
  response <- response_of(fit)
  labels <- response$kind == "labels"
  drawn <- setdiff(figures_drawn, c(if (labels) c("map", "checks"), if (response$conjugate) "calibration",
                                    if (!response$kind %in% c("labels", "ordered")) "confusion",
                                    if (!has_groups(model_of(fit)$kernel)) "groups"))
  which <- ask$which
  if (is.numeric(which) && length(which) && all(which %in% seq_along(checks_drawn))) which <- checks_drawn[which]
  single <- is.character(which) && length(which) == 1L
  refuse_if(!is.character(which) || !length(which) || !all(which %in% c(if (!labels) checks_drawn, if (single) drawn)),
            "which", describe(which), paste0("one of the figures ", list_quoted(drawn, "\"", 7L, "or"),
              if (!labels) paste(", or some of the checks", list_quoted(checks_drawn, "\""))),
            hint = if (single) did_you_mean(which, drawn, TRUE))
  which <- unique(which)
  if (which[1L] == "slices" && is.null(ask$inputs) && !length(fit_variables(fit))) which <- "groups"
  refuse_if(labels && which[1L] == "slices" && (ask$certified || type != "response"), "which",
            "= \"slices\" shows probabilities of unordered classes",
            hint = "Give type = \"response\", and neither `terms` nor `certified`.")
  switch(which[1L],
    slices = if (labels) {
      classes_figure(fit, ask$inputs, ask$at, n, ask$xlim)
    } else {
      s <- slices(fit, ask$inputs, ask$at, ask$level, n, ask$points, ask$certified, ask$xlim, type, ask$terms)
      if (all(is.na(s$curves$lwr_y))) ask$interval <- "credible"
      slices_figure(s, ask$level, ask$interval, ask$scales == "own", ask$certified, slice_label(fit, type))
    }, map = map_figure(map_table(fit, ask$inputs, ask$at, n, ask$points, type)),
    calibration = calibration_figure(fit), confusion = confusion_figure(fit), choices = choices_figure(fit),
    groups = groups_figure(fit, ask$level), checks_figure(fit, which))
}
