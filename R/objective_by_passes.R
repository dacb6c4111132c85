# An objective and its gradient over all rows of a source: a pass for the sums and, for a gradient, one for its parts.

# As native_evaluate(). A source that fails ends an optimisation as an interrupt does, see run_stage().
objective_by_passes <- function(whole, name, aux, z, model, jitter, control, gradient = TRUE) {
  if (isTRUE(aux$p > 0)) {
    abort_input("optimise_rows", "more than the sample of the source", "less under this auxiliary distribution",
                hint = "Its objective has sums over pairs of rows, which do not add up over blocks.")
  }
  aux$Wt <- NULL # of the rows that are at hand
  pass <- function(f, merge, ...) {
    visit <- visit_rows(clean_block, without_source(whole), f, list(name, aux, z, model, jitter, control, ...))
    whole_pass(whole, visit, either(merge))
  }
  sums <- pass(sums_of_objective, sums_merge)
  at_sums <- function(rss = NULL) native_objective(name, aux, z, sums, model, jitter, rss)
  result <- at_sums()
  if (!is.null(result$reason) || !gradient) return(result)
  no_rows <- list(x = z[0L, , drop = FALSE], y = numeric())
  slopes <- add_slopes(pass(slopes_of_objective, add_slopes, result$adjoint),
                       slopes_of_objective(no_rows, name, aux, z, model, jitter, control, result$adjoint,
                                           sums$k_sum))
  result <- at_sums(slopes$rss) # residuals tell its last digits
  c(slopes[c("gradient", "theta")], result[c("value", "noise", "reason")])
}

add_slopes <- function(a, b) Map(`+`, a, b)

sums_of_objective <- function(rows, name, aux, z, model, jitter, control) {
  native_sums(name, aux, z, rows, model, jitter, control)
}

# `k_sum` of all rows: with what the prior of the points has in the gradient, which is no row's.
slopes_of_objective <- function(rows, name, aux, z, model, jitter, control, adjoint, k_sum = NULL) {
  native_gradient(name, aux, z, rows, model, jitter, adjoint, k_sum, control)[c("gradient", "theta", "rss")]
}
