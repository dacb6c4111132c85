# Terms of a kernel that is a sum, as slices(): a panel for each term and each variable that it reads, the others held.

term_slices <- function(fit, inputs, at, level, n, points = TRUE) {
  fit <- check_any_fit(fit, "x")
  level <- check_level(level)
  n <- check_count(n, "n", min = 2)
  if (has_one_factor(fit$kernel)) {
    abort_input("terms", "TRUE of a kernel of one factor", "FALSE there",
                hint = "Terms are those of sums, such as kernel_se() + kernel_periodic().")
  }
  x <- slice_rows(fit)
  all <- fit_variables(fit)
  chosen <- if (is.null(inputs)) all else choose_variables(all, inputs, x, fit$kernel)
  centre <- slice_centre(fit, all, at)
  shown <- term_panels(fit$kernel, chosen)
  if (!length(shown)) abort_input("inputs", describe(inputs), "variables that some term reads")
  curves <- lapply(shown, term_curve, fit = fit, centre = centre, x = x, level = level, n = n)
  curves <- do.call(rbind, curves)
  drawn <- points && !is.null(fit$data) && has_partial_response(fit, "link")
  list(variables = shown, curves = curves, points = if (drawn) term_points(fit, shown), inducing = NULL)
}

# The variables, once for each term that reads them, by the term's name and, where it reads several, theirs; at most so
# many.
term_panels <- function(kernel, variables, most = 16L) {
  leaves <- kernel$leaves
  names <- term_names(kernel)
  panels <- lapply(seq_along(kernel$terms), function(t) {
    read <- unlist(lapply(leaves[kernel$terms[[t]]$leaves], `[[`, "inputs"))
    of <- Filter(function(v) any(v$columns %in% read), variables)
    lapply(of, function(v) {
      v$term <- t
      v$name <- if (length(of) > 1L) sprintf("%s: %s", names[t], v$name) else names[t]
      v
    })
  })
  utils::head(unlist(panels, recursive = FALSE), most)
}

term_curve <- function(v, fit, centre, x, level, n) {
  grid <- slice_grid(v, centre, x, n)
  p <- term_values(fit, grid$x)
  shown <- list(mean = p$mean[, v$term], sd = sqrt(p$var[, v$term]))
  f <- normal_band(shown$mean, p$var[, v$term], level)[, 2:3, drop = FALSE]
  curve_frame(v, grid, shown, f, f)
}

# Partial residuals: the term's mean at each row plus the row's residual.
term_points <- function(fit, shown) {
  rows <- rows_to_draw(fit)
  mean <- term_values(fit, rows$x)$mean
  residual <- unname(rows$y) - fit$center - rowSums(mean)
  do.call(rbind, lapply(shown, function(v) point_frame(v, value_along(v, rows$x), mean[, v$term] + residual)))
}
