# An objective and its gradient over all rows of a source: a pass for the sums and, for a gradient, one for its parts.

# As native_evaluate(). A source that fails ends an optimisation as an interrupt does, see run_stage().
objective_by_passes <- function(whole, name, aux, z, model, jitter, control, gradient = TRUE) {
  if (isTRUE(aux$p > 0)) {
    abort_input("optimise_rows", "more than the sample of the source", "less under this auxiliary distribution",
                hint = "Its objective has sums over pairs of rows, which do not add up over blocks.")
  }
  aux$Wt <- NULL # of the rows that are at hand
  sums <- whole_pass(whole, sums_of_objective(whole, name, aux, z, model, jitter, control), either(sums_merge))
  at_sums <- function(rss = NULL) native_objective(name, aux, z, sums, model, jitter, rss)
  result <- at_sums()
  if (!is.null(result$reason) || !gradient) return(result)
  part <- gradient_of_objective(whole, name, aux, z, model, jitter, control, result$adjoint)
  slopes <- Map(`+`, whole_pass(whole, part, either(add_slopes)), slopes_of_points(name, aux, z, model, jitter, result,
                                                                                     sums$k_sum, control))
  result <- at_sums(slopes$rss) # residuals tell its last digits
  c(slopes[c("gradient", "theta")], result[c("value", "noise", "reason")])
}

add_slopes <- function(a, b) Map(`+`, a, b)

# What the prior of the points has in the gradient, which is no row's.
slopes_of_points <- function(name, aux, z, model, jitter, result, k_sum, control) {
  none <- z[0L, , drop = FALSE]
  native_gradient(name, aux, z, list(x = none, y = numeric()), model, jitter, result$adjoint, k_sum,
                  control)[slope_parts]
}

slope_parts <- c("gradient", "theta", "rss")

sums_of_objective <- function(whole, name, aux, z, model, jitter, control) {
  whole <- without_source(whole)
  lapply(list(name, aux, z, model, jitter, control), force)
  function(block) {
    rows <- clean_block(whole, block)
    if (rows$n) native_sums(name, aux, z, rows, model, jitter, control)
  }
}

gradient_of_objective <- function(whole, name, aux, z, model, jitter, control, adjoint) {
  whole <- without_source(whole)
  lapply(list(name, aux, z, model, jitter, control, adjoint), force)
  function(block) {
    rows <- clean_block(whole, block)
    if (!rows$n) return(NULL)
    native_gradient(name, aux, z, rows, model, jitter, adjoint, control = control)[slope_parts]
  }
}
