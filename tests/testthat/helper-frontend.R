# Returns a dozen rows with every kind of variable; one level of f has no row.
small_data <- function(n = 12, seed = 1) {
  with_seed(seed, data.frame(
    y = stats::rnorm(n, 5), a = stats::rnorm(n), b = stats::runif(n, 1, 2),
    f = factor(sample(c("u", "v", "w"), n, TRUE), levels = c("u", "v", "w", "unused")),
    l = stats::rnorm(n) > 0, g = stats::rexp(n)))
}

# Reads a formula as a formula method does. fit_of() makes the part of a fit that new_inputs() reads.
by_formula <- function(formula, data, ..., subset, weights, na.action, offset) {
  data_from_formula(match.call(), parent.frame(), ...)
}
fit_of <- function(data, keep_data = TRUE) list(frame = make_frame(data, keep_data))

bare_rows <- function(x) {
  rownames(x) <- NULL
  x
}
