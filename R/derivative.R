# predict(type = "derivative"): the posterior of d f / d x_j, f's own slope (offsets do not move).

predict_derivative <- function(fit, rows, wrt, se.fit, interval, level, certified) {
  column <- derivative_column(fit, wrt)
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
    value <- normal_band(value, shape(ends$sd_upper^2), level, shape(ends$mean_lower), shape(ends$mean_upper))
  }
  if (!se.fit) return(value)
  list(fit = value, se.fit = shape(at$sd))
}

# The column of the inputs that the derivative is taken along: a numeric one.
derivative_column <- function(fit, wrt) {
  columns <- fit$frame$columns
  variables <- fit_variables_numeric(fit)
  if (is.null(wrt) && length(columns) == 1L) return(1L)
  column <- if (is.character(wrt) && length(wrt) == 1L) match(wrt, columns) else
    if (is.numeric(wrt) && length(wrt) == 1L) match(wrt, seq_along(columns)) else NA
  if (is.na(column) || !column %in% variables) {
    abort_input("wrt", describe(wrt), sprintf("the name of a numeric input: %s", list_quoted(columns[variables])))
  }
  column
}

# Columns that are numbers of their own, not levels of a factor or logical.
fit_variables_numeric <- function(fit) {
  if (!by_formula(fit)) return(seq_along(fit$frame$columns))
  which(!columns_of_levels(fit$frame$variables))
}
