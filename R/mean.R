# A linear mean: a term of the kernel,
#
#   v (1 + sum_j u_j(x) u_j(z)),   u_j(x) = (x_j - centre_j) rate_j,
#
# which integrates out a level and slopes b ~ N(0, v I) for inputs in units of their spread. v is 10^4 times the mean
# square of the response: this shrinks coefficients by about 1e-4 and costs four of sixteen digits. v is not learned,
# and the distances that find nearest neighbours leave this term out.

vague_mean <- 1e4

# Returns the kernel with a term for the mean. A kernel that has such a term keeps it.
with_mean <- function(kernel, mean, data) {
  columns <- mean_columns(mean, data)
  if (!length(columns) || has_profile(kernel, "mean")) return(kernel)
  power <- data$scale^2 * (mean(data$y^2) + data$shift$ss / data$n)
  variables <- data_variables_of(data)
  if (has_one_factor(kernel) && is.null(kernel$of)) {
    kernel$of <- column_owners(kernel$inputs, colnames(data$x), variables)
  }
  leaf <- mean_leaf(data$x, columns, vague_mean * if (power > 0) power else 1)
  add_mean(kernel, place_leaf(leaf, data$x, "mean", variables), data$x)
}

mean_leaf <- function(x, columns, variance) {
  u <- basis_units(x[, columns, drop = FALSE])
  new_kernel("mean", "linear mean", NULL, variance, columns, centre = u$centre, rate = u$rate)
}

# Gives the linear means of a kernel over all inputs the units of x.
with_basis <- function(kernel, x) {
  change_leaves(kernel, function(leaf) {
    if (is_mean(leaf)) leaf[c("centre", "rate")] <- basis_units(x)
    leaf
  })
}

add_mean <- function(kernel, leaf, x) with_columns(add_kernels(kernel, leaf), x)

# Returns the centre and rate of each input of a linear function: mean and 1 / spread, or 0 and 1 for 0/1 columns.
basis_units <- function(x) {
  coded <- apply(x, 2L, function(v) all(v %in% c(0, 1)))
  unit <- ifelse(coded, 1, apply(x, 2L, column_spread))
  list(centre = unname(ifelse(coded, 0, colMeans(x))), rate = 1 / unname(unit))
}

# Returns the columns of x that the mean (or the log noise) is linear in. The formula ~ 1 has none.
mean_columns <- function(mean, data, argument = "mean") {
  if (!inherits(mean, "formula") || length(mean) != 2L) {
    abort_input(argument, describe(mean), "a one-sided formula of inputs, such as ~ 1 or ~ x1 + x2")
  }
  variables <- data_variables_of(data)
  names <- c(vapply(variables, `[[`, "", "name"), colnames(data$x))
  if (identical(mean[[2L]], quote(.))) return(seq_len(ncol(data$x)))
  terms <- stats::terms(mean)
  labels <- attr(terms, "term.labels")
  if (!attr(terms, "intercept")) {
    abort_input(argument, deparse1(mean), "a formula with its intercept",
                hint = if (argument == "mean") "`center = FALSE` leaves the level out.")
  }
  labels <- gsub("`", "", labels, fixed = TRUE)
  unknown <- setdiff(labels, names)
  if (length(unknown)) {
    abort_input(argument, sprintf("a formula with `%s`", unknown[1L]),
                sprintf("one of the inputs (%s)", list_quoted(unique(names))),
                hint = "Use inputs of the fit. Transform them in the formula of the fit.")
  }
  sort(unique(unlist(lapply(labels, function(name) {
    i <- match(name, vapply(variables, `[[`, "", "name"))
    if (is.na(i)) match(name, colnames(data$x)) else variables[[i]]$columns
  }))))
}

# Returns TRUE for the parameters of the kernel that are the variance of a mean.
is_mean_variance <- function(kernel) {
  table <- kernel_parameters(kernel)
  kernel <- as_sum(kernel)
  of_mean <- vapply(kernel$terms, function(t) is_mean(kernel$leaves[[t$leaves[1L]]]), NA)
  table$leaf == 0L & of_mean[table$term]
}

# Returns the names of the parameters that are given and not learned: a period that was given, the variance of a mean.
held_names <- function(kernel, columns) {
  table <- kernel_parameters(kernel)
  leaves <- as_sum(kernel)$leaves
  given <- vapply(seq_len(nrow(table)), function(i) {
    table$leaf[i] > 0L && table$what[i] %in% leaves[[table$leaf[i]]]$held
  }, NA)
  kernel_parameter_names(kernel, columns)[given | is_mean_variance(kernel)]
}
