# How good a fit is, as pictures: what plot(which = ) draws beside slices.

# Names of the checks, in the order in which they are drawn.
checks_drawn <- c("residuals", "qq", "pit", "observed", "semivariogram")

check_which <- function(which) {
  if (identical(which, "checks")) return("checks")
  known <- c("slices", "map", checks_drawn)
  alone <- length(which) == 1L || !any(c("slices", "map") %in% which)
  if (!is.character(which) || !length(which) || !all(which %in% known) || !alone) {
    abort_input("which", describe(which), paste("\"slices\", \"map\", \"checks\" or some of",
                                                list_quoted(checks_drawn, "\"")))
  }
  unique(which)
}

# What each of these checks draws, by name.
check_tables <- function(fit, which) {
  tables <- if (is_laplace(fit)) laplace_scores(fit) else gaussian_scores(fit)
  used <- is.finite(tables$rstandard)
  tables <- lapply(tables, function(v) unname(v[used]))
  numeric <- Filter(function(v) is.null(v$values), fit_variables(fit))
  if (identical(which, "checks")) which <- if (length(numeric)) checks_drawn else setdiff(checks_drawn, "semivariogram")
  lapply(stats::setNames(nm = which), function(name) {
    switch(name,
           residuals = data.frame(tables[c("mean", "rstandard")]),
           qq = data.frame(normal = stats::qqnorm(tables$rstandard, plot.it = FALSE)$x, rstandard = tables$rstandard),
           pit = data.frame(pit = stats::pnorm(tables$rstandard)),
           observed = data.frame(tables[c("mean", "observed")]),
           semivariogram = semivariogram(fit, numeric, used, tables$rstandard))
  })
}

plot_checks <- function(fit, which, args) {
  fit <- check_any_fit(fit, "x")
  tables <- check_tables(fit, which)
  if (length(tables) > 1L) {
    old <- graphics::par(no.readonly = TRUE)
    on.exit(graphics::par(old))
    graphics::par(mfrow = rev(grDevices::n2mfrow(length(tables))), mar = c(3.5, 3.5, 1.8, 1), mgp = c(2.2, 0.7, 0))
    graphics::par(cex = 0.85)
  }
  for (name in names(tables)) draw_check(name, tables[[name]], response_name(fit), args)
  invisible(if (length(tables) == 1L) tables[[1L]] else tables)
}

gaussian_scores <- function(fit) {
  loo <- loo_rows(fit)
  list(mean = loo$mean, observed = loo$mean + loo$residual, rstandard = standardised(loo))
}

# Normal quantiles of the randomised PIT: standard normal where the model holds (Dunn and Smyth 1996).
laplace_scores <- function(fit) {
  data <- training_data(fit)
  loo <- loo_laplace(fit)
  list(mean = moments_of(fit$likelihood, loo$mean, loo$var)$mean, observed = unname(data$response),
       rstandard = stats::qnorm(pmin(pmax(pit_of(fit, loo), 1e-15), 1 - 1e-15)))
}

# Classes of equally many pairs of rows, by how many lengthscales they are apart.
semivariogram <- function(fit, numeric, used, score, most = 1000L, classes = 12L) {
  j <- unlist(lapply(numeric, `[[`, "columns"))
  if (!length(j)) abort_input("which", "\"semivariogram\" of a fit without numeric inputs", "another check")
  rows <- training_inputs(training_data(fit))
  x <- rows$x[rows$index[used], j, drop = FALSE]
  lengths <- kernel_lengths(fit$kernel, ncol(rows$x))[j]
  keep <- unique(round(seq(1, nrow(x), length.out = min(nrow(x), most))))
  x <- x[keep, , drop = FALSE] / rep(lengths, each = length(keep)) # an input without effect is nowhere apart
  distance <- c(stats::dist(x))
  half <- c(stats::dist(score[keep]))^2 / 2
  near <- which(distance <= stats::median(distance))
  class <- ceiling(rank(distance[near], ties.method = "min") / length(near) * classes)
  by_class <- function(v, of = mean) as.vector(tapply(v[near], class, of))
  data.frame(distance = by_class(distance), semivariance = by_class(half),
             pairs = by_class(half, length))
}

# ---- drawing --------------------------------------------------------------------------------------------------------

# At most 2,000 points, evenly spaced in the order of rows.
thinned <- function(d, most = 2000L) d[unique(round(seq(1, nrow(d), length.out = min(nrow(d), most)))), , drop = FALSE]

draw_check <- function(name, d, response, args) {
  switch(
    name,
    residuals = scatter_check(d, args, "Residuals", paste("mean of", response), "residual, in its sd", function() {
      graphics::abline(h = c(-1, 0, 1) * stats::qnorm(0.975), lty = c(2, 1, 2), col = plot_colours["mean"])
    }, ends = TRUE),
    qq = scatter_check(d, args, "Normal quantiles", "normal quantile", "residual, in its sd", function() {
      graphics::abline(0, 1, col = plot_colours["mean"])
    }),
    observed = scatter_check(d, args, "Observed against predicted", paste("mean of", response), response, function() {
      graphics::abline(0, 1, col = plot_colours["mean"])
    }),
    pit = draw_pit(d$pit, args),
    semivariogram = draw_semivariogram(d, args))
}

scatter_check <- function(d, args, title, xlab, ylab, lines, ends = FALSE) {
  d <- thinned(d)
  args <- utils::modifyList(list(main = title, cex.main = 1, font.main = 1, xlab = xlab, ylab = ylab,
                                 ylim = range(d[[2L]], if (ends) c(-2.1, 2.1))), args)
  do.call(graphics::plot.default, c(list(x = d[[1L]], y = d[[2L]], type = "n"), args))
  draw_data(stats::setNames(d, c("at", "y")))
  lines()
}

# Classes of at least ten expected rows; the band has 95 % of binomial heights.
pit_histogram <- function(pit) {
  n <- length(pit)
  classes <- max(4L, min(20L, n %/% 10L))
  list(at = (seq_len(classes) - 1) / classes, width = 1 / classes,
       height = tabulate(pmin(classes, floor(pit * classes) + 1L), classes) / n * classes,
       band = stats::qbinom(c(0.025, 0.975), n, 1 / classes) / n * classes)
}

draw_pit <- function(pit, args) {
  h <- pit_histogram(pit)
  args <- utils::modifyList(list(main = "PIT histogram", cex.main = 1, font.main = 1,
                                 xlab = "probability below", ylab = "density", xlim = c(0, 1),
                                 ylim = c(0, max(h$height, h$band))), args)
  do.call(graphics::plot.default, c(list(x = 0, y = 0, type = "n"), args))
  graphics::rect(0, h$band[1L], 1, h$band[2L], border = NA, col = band_colour())
  graphics::rect(h$at, 0, h$at + h$width, h$height, col = grDevices::adjustcolor(plot_colours["data"], 0.15))
  graphics::abline(h = 1, lty = 2, col = plot_colours["mean"])
}

draw_semivariogram <- function(d, args) {
  args <- utils::modifyList(list(
    main = "Semivariogram of residuals", cex.main = 1, font.main = 1, xlab = "distance in lengthscales",
    ylab = "semivariance", ylim = c(0, max(1, d$semivariance, na.rm = TRUE)), xlim = c(0, max(d$distance))), args)
  do.call(graphics::plot.default, c(list(x = d$distance, y = d$semivariance, type = "n"), args))
  graphics::abline(h = 1, lty = 2, col = plot_colours["mean"])
  graphics::lines(d$distance, d$semivariance, type = "b", pch = 16, col = plot_colours["data"])
}

# Are there shares of successes to be drawn? Gaussian noise has no calibration.
has_calibration <- function(fit) {
  if (!is_laplace(fit)) {
    abort_input("which", "\"calibration\"", "\"pit\" or \"observed\" where the noise is Gaussian")
  }
  fit$likelihood$name == "binomial"
}

# Of classes shares of successes against probabilities, of counts the PIT's histogram.
plot_calibration <- function(fit, args) {
  fit <- check_any_fit(fit, "x")
  if (!has_calibration(fit)) {
    pit <- unname(pit_laplace(fit))
    draw_pit(pit[!is.na(pit)], args)
    return(invisible(data.frame(pit = pit)))
  }
  d <- calibration_table(fit)
  args <- utils::modifyList(list(main = "Calibration", cex.main = 1, font.main = 1, xlim = 0:1, ylim = 0:1,
                                 xlab = "probability by the other rows", ylab = "share of successes"), args)
  do.call(graphics::plot.default, c(list(x = d$predicted, y = d$observed, type = "n"), args))
  graphics::abline(0, 1, col = plot_colours["mean"])
  half <- stats::qnorm(0.975) * d$sd
  graphics::segments(d$predicted, pmax(d$predicted - half, 0), d$predicted, pmin(d$predicted + half, 1), lwd = 6,
                     lend = 1, col = band_colour())
  graphics::points(d$predicted, d$observed, pch = 16)
  invisible(d)
}
