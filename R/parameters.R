# Represents the learned hyperparameters for the optimiser: a vector of their logs, in the order of coef().

not_learned <- function(s) setdiff(s$names, s$free)

# For each parameter of a compiled kernel and for the noise, returns TRUE if the settings s of learning leave it free.
are_learned <- function(kernel, s) {
  free <- !c(kernel$table$held, FALSE)
  fixed <- not_learned(s)
  if (length(fixed)) free & !parameter_names(kernel, s$columns) %in% fixed else free
}

# Returns the number of learned hyperparameters. The two 0/1 columns of an R factor with two levels have a lengthscale
# each. These count once, because kernels depend only on the sum of 1 / lengthscale^2.
count_learned <- function(kernel, s, frame) {
  names <- parameter_names(kernel, s$columns)[are_learned(compile_kernel(kernel), s)]
  twins <- lapply(Filter(function(v) length(v$levels) == 2L && v$width == 2L, placed_variables(frame)), function(v) {
    ends <- paste0("lengthscale.", frame$columns[v$columns])
    second <- names[endsWith(names, ends[2L])]
    paste0(substr(second, 1, nchar(second) - nchar(ends[2L])), ends[1L])
  })
  length(names) - sum(unlist(twins) %in% names)
}

# Returns the parameters of kernel and noise for the optimiser, without those in `fixed`. `start` has their logs, `free`
# their positions. at(par) returns list(kernel, noise) with the compiled kernel, natural(par) with the kernel as users
# see it. too_far(par) returns a reason not to evaluate par, or NULL.
hyper_parameters <- function(kernel, noise, columns, fixed = character()) {
  compiled <- compile_kernel(kernel)
  names <- parameter_names(compiled, columns)
  start <- stats::setNames(log(c(compiled$engine$values, noise)), names)
  free <- !names %in% fixed
  last <- length(start)
  variances <- which(compiled$table$what == "variance")
  at <- function(par) {
    value <- exp(unname(replace(start, free, par)))
    list(kernel = set_values(compiled, value[-last]), noise = value[last])
  }
  # Beyond these limits the likelihood hardly changes any more.
  too_far <- function(par) {
    all <- replace(start, free, par)
    moved <- abs(all - start)
    moved[last] <- all[last] - start[last] # small noise has its own limit, two lines below
    if (any(moved > 16)) sprintf("%s is far outside the range of the data", names[which.max(moved)])
    else if (all[last] < max(all[variances]) - log(1e12)) "the noise is below 1e-12 of the signal"
  }
  natural <- function(par) list(kernel = as_kernel(at(par)$kernel), noise = at(par)$noise)
  list(start = unname(start[free]), at = at, natural = natural, too_far = too_far, free = which(free))
}

# Checks that `fix`, the user's names of hyperparameters to keep at their start values, are among `names`.
check_fixed <- function(fix, names) {
  unknown <- setdiff(fix, names)
  refuse_if(length(unknown), "fix", sprintf("has \"%s\", which is no hyperparameter of the fit", unknown[1L]),
            hint = sprintf("Its hyperparameters are %s.", list_quoted(names, "\"", most = 12L)))
  fix
}

# Adds columns to the table of kernel_parameters(): unit, start (in units of `unit`), middle and sd of the normal prior
# of the log (in this unit), low and high (limits of the search), ard (TRUE for a lengthscale of inputs), keep (TRUE if
# the prior does not weaken with more rows). The unit of a lengthscale is its input's spread, that of a period the
# input's range. A variance has the unit `power`, a variance of the response, over the mean of k(x, x) at variance 1.
parameter_units <- function(kernel, x, power, table = kernel_parameters(kernel), spreads = spreads_of(x)) {
  if (is.null(kernel$leaves)) kernel <- as_sum(kernel)
  leaves <- kernel$leaves
  terms <- kernel$terms
  given <- x
  if (any(lengths(lapply(leaves, function(leaf) c(leaf$rotation, leaf$warp))))) {
    x <- rotated(kernel, x)
    spreads <- spreads_of(x)
  }
  usual <- list(unit = 1, over = 1, start = 1, middle = 0, sd = 1, low = 1e-3, high = 1e3, ard = FALSE, keep = FALSE)
  additive <- function(leaf) length(additive_inputs(leaf))
  of_lengthscale <- function(leaf, at) {
    if (identical(leaf$profile, "periodic")) return(list(low = 0.03, high = 1e2))
    d <- length(leaf$inputs)
    levels <- function(columns) length(columns) > 1L && all(are_coded(x, columns))
    own <- leaf$inputs[if (is.null(leaf$shared)) at else leaf$shared == at]
    on_sphere <- length(own) == 3L && !levels(own)
    if (!is.null(leaf$shared)) { # a sphere has two dimensions, an R factor one
      each <- split(leaf$inputs, leaf$shared)
      d <- length(each) + sum(vapply(each, function(columns) length(columns) == 3L && !levels(columns), NA))
    }
    list(unit = if (isTRUE(leaf$isotropic)) exp(mean(log(spreads[leaf$inputs]))) else
           if (on_sphere) sqrt(sum(apply(x[, own], 2L, stats::var)) / 2) else if (levels(own)) 1 else spreads[[own]],
         start = sqrt(d), middle = learning_priors$middle + learning_priors$dimension * log(d),
         sd = learning_priors$sd, ard = TRUE)
  }
  rows <- lapply(seq_len(nrow(table)), function(i) {
    leaf <- if (table$leaf[i]) leaves[[table$leaf[i]]]
    row <- switch(table$what[i], variance = {
      n <- length(terms)
      own <- leaves[terms[[table$term[i]]]$leaves]
      varying <- any(unlist(lapply(own, `[[`, "profile")) %in% varying_profiles)
      over <- if (varying) max(prior_of_term(own, given), 1e-300) else 1
      if (!is.finite(over)) abort_input("kernel", "has an infinite variance at the inputs", hint = "Use larger units.")
      list(unit = power / over, over = over, start = 1 / n, sd = 1.5, low = if (n > 1L) 1e-6 else 1e-4)
    }, lengthscale = of_lengthscale(leaf, table$at[i]), period = {
      range <- max(apply(x[, leaf$inputs, drop = FALSE], 2L, function(v) max(v) - min(v)))
      list(unit = if (range > 0) range else 1, start = 0.2, middle = log(0.2), sd = 1.5, high = 10)
    }, offset = list(unit = mean_square(leaf, x), sd = 1.5), alpha = list(low = 1e-2),
    parameters = list(low = 1e-4, high = 1e2), scale = unit_of_scale(leaf, table$at[i], x),
    additive.share = list(start = 2, sd = 2, low = 1e-4, high = 1e4),
    additive.pairs = list(start = 0.5, middle = log(0.5), sd = 2, low = 1e-6, high = 1e4),
    additive.ratio = list(start = sqrt(additive(leaf)), middle = log(additive(leaf)) / 2, sd = learning_priors$sd,
                          low = 0.03, high = 100))
    replace(usual, names(row), row)
  })
  table[names(usual)] <- lapply(names(usual), function(name) vapply(rows, `[[`, usual[[name]], name))
  if (is.null(kernel$season)) table else season_priors(table, kernel, x)
}

# Returns the mean of k(x, x) over the rows of x for the product k of `leaves`. Unknown parameters are 1 in their unit.
prior_of_term <- function(leaves, x) {
  leaves <- lapply(leaves, function(l) {
    if (identical(l$profile, "polynomial") && is.null(l$offset)) l$offset <- mean_square(l, x)
    if (is_group(l)) {
      l$scale <- vapply(seq_len(table_rows(l) - 1L), function(at) unit_of_scale(l, at, x)$unit, 0)
      l$parameters <- rep(1, parameter_count(l, "parameters"))
    }
    if (is.null(l$profile)) c(l, profile = "se") else l
  })
  term <- list(leaves = leaves, terms = list(list(variance = 1, leaves = seq_along(leaves))))
  if (varies(term)) mean(kernel_diagonal(term, x)) else 1
}

# Returns the row of parameter_units() for the sd of a group's effect `at` + 1 divided by the sd of its first effect.
# The unit is the root mean square of the first effect's input divided by that of the other effect's input.
unit_of_scale <- function(leaf, at, x) {
  size <- sqrt(c(rep(1, leaf$intercept), colMeans(x[, leaf$inputs[-1L], drop = FALSE]^2)))
  list(unit = if (all(size[c(1L, at + 1L)] > 0)) size[1L] / size[at + 1L] else 1, sd = 1.5, low = 1e-4, high = 1e4)
}

mean_square <- function(leaf, x) {
  s <- mean(rowSums(x[, leaf$inputs, drop = FALSE]^2))
  if (s > 0) s else 1
}

name_lengthscales <- function(kernel, x) {
  change_leaves(kernel, function(leaf) {
    if (is.null(leaf$lengthscale) || shares_lengthscale(leaf)) return(leaf)
    names(leaf$lengthscale) <- lengthscale_names(leaf, colnames(x))
    leaf
  })
}

# With d inputs, the prior of a log lengthscale (in units of the input's spread) is N(log(3 d^0.5), 0.7^2), chosen on a
# dozen data sets of 20 to 50 rows (bench/small-n.R). Its precision is constant up to n = 50 rows, and up to 15 rows per
# input, because many lengthscales overfit. Then it is multiplied by (50 / n)^2 or, if that is larger, (15 d / n)^6: a
# constant precision costs a Matern 1/2 kernel 10 nats of log marginal likelihood at 300 rows.
learning_priors <- list(middle = log(3), dimension = 0.5, sd = 0.7, rows = 50, rows_an_input = 15)

# Returns the factor, at most 1, that multiplies the prior precisions of log hyperparameters for n rows of d inputs.
prior_share <- function(n, d) min(1, max(learning_priors$rows / n, (learning_priors$rows_an_input * d / n)^3)^2)

# Returns the kernel with typical values for its unknown parameters: typical(units) times the units of
# parameter_units(). `power` is the unit of variances, by default that of f's prior. `s` has settings of learning.
with_typical_values <- function(kernel, x, s, typical = function(units) units$start,
                                power = laplace_priors$variance * s$likelihood$unit^2) {
  units <- parameter_units(kernel, x, power)
  value <- kernel_values(kernel)
  as_kernel(set_values(kernel, ifelse(is.na(value), units$unit * typical(units), value)))
}

# Returns a spread of each column: its sd, or 1 if its range is 0 or infinite. The interquartile range / 1.349 (the sd
# for a normal distribution) replaces the sd if it is positive and below a tenth of the sd.
spreads_of <- function(x) {
  vapply(seq_len(ncol(x)), function(j) {
    v <- x[, j]
    range <- max(v) - min(v)
    if (!(range > 0) || !is.finite(range)) return(1)
    sd <- range * sqrt(mean(((v - mean(v)) / range)^2))
    # Either condition means that `middle` is 0 or above sd / 10. They save the time of median() and quantile().
    if (mean(v == min(v)) > 0.9 || 2 * sum(abs(v - stats::median(v)) < 0.2 * sd) < length(v)) return(sd)
    middle <- diff(stats::quantile(v, c(0.25, 0.75), names = FALSE)) / 1.349
    if (middle > 0 && 10 * middle < sd) middle else sd
  }, 0)
}

dimnames_of <- function(v, names) `dimnames<-`(v, list(names, names))

# Adds a linear mean to the kernel as a term,
#
#   v (1 + sum_j u_j(x) u_j(z)),   u_j(x) = (x_j - centre_j) rate_j.
#
# The term integrates out an intercept and slopes b ~ N(0, v I). v is 10^4 times the mean square of the response, and
# not learned. The prior shrinks coefficients by 1e-4 of their size at most. So large a v costs four digits of accuracy.

vague_mean <- 1e4

# Returns the kernel with a linear mean in the inputs of the formula `mean`, unless it already has one.
with_mean <- function(kernel, mean, data) {
  columns <- mean_columns(mean, data)
  groups <- sum(plain_groups(kernel))
  flat <- !length(columns) && groups == length(as_sum(kernel)$terms) # with groups alone, the mean is an intercept
  if (has_profile(kernel, "mean") || !length(columns) && !flat) return(kernel)
  variables <- placed_variables(data$frame)
  # With groups, the first level of an R factor has no coefficient in the linear mean, as in lm().
  first <- lapply(variables, function(v) if (identical(v$kind, "factor")) v$columns[1L])
  if (groups) columns <- setdiff(columns, unlist(first))
  power <- data$scale^2 * (mean(data$y^2) + data$shift$ss / data$n)
  if (has_one_factor(kernel) && is.null(kernel$of)) {
    kernel$of <- column_owners(kernel$inputs, colnames(data$x), variables)
  }
  leaf <- mean_leaf(data$x, columns, vague_mean * if (power > 0) power else 1)
  leaf <- if (flat) replace(leaf, c("inputs", "of"), list(integer(), character())) else
    place_leaf(leaf, data$x, "mean", variables)
  with_columns(combine_kernels(kernel, leaf), data$x)
}

mean_leaf <- function(x, columns, variance) {
  u <- basis_units(x[, columns, drop = FALSE])
  new_kernel("mean", "linear mean", NULL, variance, columns, centre = u$centre, rate = u$rate)
}

# Returns TRUE for each of the columns of x that has only the numbers 0 and 1.
are_coded <- function(x, columns = seq_len(ncol(x))) {
  vapply(columns, function(j) sum(x[, j] == 0) + sum(x[, j] == 1) == nrow(x), NA)
}

# Returns centre and finite rate of each input of a linear function: mean and 1 / spread, or 0 and 1 for 0/1 columns.
basis_units <- function(x) {
  other <- which(!are_coded(x))
  units <- list(centre = numeric(ncol(x)), rate = rep(1, ncol(x)))
  units$centre[other] <- colMeans(x[, other, drop = FALSE])
  units$rate[other] <- pmin(1 / spreads_of(x[, other, drop = FALSE]), .Machine$double.xmax)
  units
}

# Returns the design of a linear model in x. Powers of 2 scale its columns, as lm.fit() fails for subnormal numbers.
linear_design <- function(x) cbind(1, x * rep(2^pmin(-floor(log2(apply(abs(x), 2L, max))), 1000), each = nrow(x)))

# Returns the columns of x for the inputs in `mean`, the formula of a linear mean or of the log noise; none for ~ 1.
mean_columns <- function(mean, data, argument = "mean") {
  refuse_if(!inherits(mean, "formula") || length(mean) != 2L, argument, describe(mean),
            "a one-sided formula of inputs, such as ~ 1 or ~ x1 + x2")
  variables <- placed_variables(data$frame)
  names <- c(vapply(variables, `[[`, "", "name"), colnames(data$x))
  if (identical(mean[[2L]], quote(.))) return(smooth_columns(data$x, variables))
  terms <- stats::terms(mean)
  labels <- attr(terms, "term.labels")
  refuse_if(length(attr(terms, "offset")), argument, deparse1(mean), "a formula without offset()")
  refuse_if(!attr(terms, "intercept"), argument, deparse1(mean), "a formula with its intercept",
            hint = if (argument == "mean") "For a line through 0 give kernel_linear() and center = FALSE.")
  labels <- sub("^`(.*)`$", "\\1", labels)
  unknown <- setdiff(labels, names)
  refuse_if(length(unknown), argument, sprintf("a formula with `%s`", unknown[1L]), "a formula of inputs",
            message = sprintf("`%s` has `%s`, but may use only inputs of the fit: %s.", argument, unknown[1L],
                              list_quoted(unique(names))), hint = "Add it to the formula of the fit.")
  sort(unique(unlist(lapply(labels, function(name) {
    i <- match(name, vapply(variables, `[[`, "", "name"))
    if (is.na(i)) match(name, colnames(data$x)) else variables[[i]]$columns
  }))))
}

# Returns the names of parameters that are never learned: a period given by the user, the variance of a linear mean.
held_names <- function(kernel, columns) {
  kernel <- compile_kernel(kernel)
  kernel_parameter_names(kernel, columns)[kernel$table$held | kernel$table$mean]
}

# Returns list(kernel, rows): a kernel in which a column of level numbers replaces the 0/1 columns of each R factor with
# a shared lengthscale, and a function that makes these columns from rows of x. So the time of kernel values does not
# grow with the levels. Columns belong to a factor if each row of x and of z has a single 1 among zeros in them.
by_numbers_of_levels <- function(kernel, x, z = x[0L, , drop = FALSE]) {
  sets <- list()
  numbered <- change_leaves(as_kernel(kernel), function(leaf) {
    if (!has_shared(leaf)) return(leaf)
    leaf$number <- rep(1L, length(leaf$inputs))
    for (at in split(seq_along(leaf$inputs), leaf$shared)) {
      columns <- leaf$inputs[at]
      if (length(at) < 2L || is.null(ones_of_rows(z, columns)) || is.null(ones_of_rows(x, columns))) next
      sets <<- union(sets, list(columns))
      leaf$inputs[at] <- c(ncol(x) + match(list(columns), sets), rep(0L, length(at) - 1L))
      leaf$number[at] <- 2L
    }
    keep <- leaf$inputs > 0L
    for (what in c("inputs", "number", "shared", "groups")) leaf[[what]] <- leaf[[what]][keep]
    if (!anyDuplicated(leaf$shared)) leaf$shared <- NULL
    leaf
  })
  if (!length(sets)) return(list(kernel = kernel, rows = identity))
  read <- sort(unique(unlist(lapply(as_sum(numbered)$leaves, `[[`, "inputs"))))
  numbered <- change_leaves(numbered, function(leaf) {
    for (what in c("rotation", "warp")) {
      if (!is.null(leaf[[what]])) leaf[[what]]$inputs <- match(leaf[[what]]$inputs, read)
    }
    replace(leaf, "inputs", list(match(leaf$inputs, read)))
  })
  list(kernel = compile_kernel(numbered), rows = function(x) {
    cbind(x[, read[read <= ncol(x)], drop = FALSE], do.call(cbind, lapply(sets, ones_of_rows, x = x)))
  })
}
