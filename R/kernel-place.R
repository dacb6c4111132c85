# Completes kernels for data: finds the columns that each factor reads, its levels and its lengthscales. Finds the
# practical range of a kernel.

# Returns the kernel with its inputs as column numbers of x. A single lengthscale from the user is used for all inputs.
# `variables` has list(name, columns, levels) for each variable; an R factor has several columns.
place_kernel <- function(kernel, x, variables = NULL) {
  if (!ncol(x)) abort_input("x", "has no columns")
  if (is.null(kernel$leaves)) {
    kernel <- place_leaf(kernel, x, "kernel", variables)
    kernel$columns <- colnames(x)
    return(if (kernel$profile %in% kernels_of_before) replace(kernel, "of", NULL) else kernel)
  }
  kernel$leaves <- lapply(kernel$leaves, place_leaf, x, "kernel", variables)
  kernel$label <- formula_of_kernel(kernel)
  with_columns(kernel, x)
}

# Returns `part`, the kernel or noise trend of a fit, for other `data`. Column numbers in `part` are of the fit's data,
# whose columns have the names `from`; they become the numbers of these names in data$x (if all are there).
at_names <- function(part, data, from = part$columns) {
  own <- names(part$lengthscale) # the only names in kernels of earlier versions
  if (is.null(from) && length(own) && length(own) == length(part$inputs)) from[part$inputs] <- own
  places <- if (!isFALSE(data$frame$named)) match(from, colnames(data$x))
  used <- Filter(is.numeric, unclass(part)[intersect(c("inputs", "columns"), names(part))])
  if (!length(part) || !length(places) || anyNA(places[unlist(used)])) return(part)
  part[names(used)] <- lapply(used, function(columns) places[columns])
  lists <- vapply(part, is.list, NA)
  part[lists] <- lapply(part[lists], at_names, data, from)
  part
}

# Sets `inputs` of a sum of kernels to the columns of x that its factors read (or 1), and `columns` to all column names.
with_columns <- function(kernel, x) {
  inputs <- sort(unique(unlist(lapply(kernel$leaves, `[[`, "inputs"))))
  kernel["inputs"] <- list(if (length(inputs)) inputs else 1L)
  kernel$columns <- colnames(x)
  kernel
}

place_leaf <- function(leaf, x, argument, variables) {
  names <- colnames(x)
  if (leaf$profile == "constant") return(replace(leaf, "inputs", list(integer())))
  if (leaf$profile == "group") return(place_group(leaf, x, argument, variables))
  of <- leaf$inputs
  inputs <- leaf_columns(leaf, x, argument, variables)
  leaf$inputs <- inputs
  if (is.null(leaf$of)) leaf$of <- if (is.character(of)) of else column_owners(inputs, names, variables)
  if (leaf$profile == "categorical") leaf <- place_levels(leaf, x, argument, variables)
  if (is_additive(leaf) && is.null(leaf$groups)) leaf$groups <- column_groups(inputs, names, variables)
  if (is.null(leaf$shared) && "lengthscale" %in% factor_parameters[[leaf$profile]]) {
    leaf$shared <- shared_lengthscales(inputs, names, variables, leaf$lengthscale)
  }
  if (is.null(leaf$lengthscale) || shares_lengthscale(leaf)) return(leaf)
  own <- lengthscale_names(leaf, names)
  if (!is.numeric(of) && any(names(leaf$lengthscale) %in% own)) {
    refuse_if(!setequal(names(leaf$lengthscale), own), argument, sprintf(
      "has lengthscales of %s, but its inputs are %s", list_quoted(names(leaf$lengthscale)), list_quoted(own)))
    leaf$lengthscale <- leaf$lengthscale[own]
  }
  leaf <- recycle(leaf, "lengthscale", argument)
  names(leaf$lengthscale) <- own
  leaf
}

# Returns the factor `leaf` with its parameters `what` recycled: a single number is used for all of them.
recycle <- function(leaf, what, argument) {
  n <- parameter_count(leaf, what)
  given <- length(leaf[[what]])
  if (given == 1L && n > 0L) leaf[[what]] <- rep(leaf[[what]], n)
  refuse_if(given > 1L && given != n || given == 1L && n == 0L, argument,
            sprintf("has %d %s%s, but needs %s", given, sub("s$", "", what), plural_s(given),
                    if (n > 1L) sprintf("1 or %d", n) else n))
  leaf
}

leaf_columns <- function(leaf, x, argument, variables) {
  inputs <- leaf$inputs
  names <- colnames(x)
  if (is.null(inputs)) {
    if (leaf$profile != "categorical") return(smooth_columns(x, variables))
    factors <- Filter(function(v) !is.null(v$levels), variables)
    if (length(factors) == 1L) return(factors[[1L]]$columns)
    abort_input(argument, "is categorical, but has no `inputs`",
                hint = "Name an R factor, as in kernel_categorical(inputs = ~ site).")
  }
  if (is.character(inputs)) {
    known <- vapply(variables, `[[`, "", "name")
    columns <- lapply(inputs, function(name) {
      if (name %in% known) variables[[match(name, known)]]$columns else match(name, names)
    })
    lost <- vapply(columns, anyNA, NA)
    one <- inputs[lost][1L]
    refuse_if(isTRUE(sprintf("(%s)", one) %in% known), argument,
              sprintf("has the input `%s`, which is a group of the formula", one),
              hint = "A group of the formula has its own kernel: leave out one of the two.")
    refuse_if(any(lost), argument, sprintf("has the input `%s`, which is no column of the data", one),
              hint = sprintf("The columns are %s.", list_quoted(unique(c(known, names)))))
    return(unique(unlist(columns)))
  }
  if (length(inputs) && max(inputs) > ncol(x)) abort_input(
    argument, sprintf("has column %d as an input, but there are %d columns of inputs", max(inputs), ncol(x)))
  inputs
}

# Returns the name of each column's variable, or NULL if no variable (such as an R factor) has several of the columns.
column_groups <- function(inputs, names, variables) {
  groups <- names[inputs] %||% as.character(inputs)
  for (v in variables) if (!is.null(v$levels) || identical(v$kind, "sphere")) groups[inputs %in% v$columns] <- v$name
  if (anyDuplicated(groups)) groups
}

# Returns for each column of `inputs` the number of its lengthscale, or NULL if each column has its own. Columns of an R
# factor with many levels, or of sphere(), share one. `given` has lengthscales from the user.
shared_lengthscales <- function(inputs, names, variables, given = NULL) {
  variables <- Filter(function(v) any(inputs %in% v$columns), variables)
  factors <- vapply(variables, function(v) identical(v$kind, "factor"), NA) & length(given) != length(inputs)
  levels <- lengths(lapply(variables, `[[`, "columns"))
  many <- factors & (levels > most_lengthscales[["factor"]] | sum(levels[factors]) > most_lengthscales[["all"]])
  one <- variables[many | vapply(variables, function(v) identical(v$kind, "sphere"), NA)]
  if (length(one)) shared_by(column_groups(inputs, names, one))
}

# Returns the names of the columns `inputs`. A variable's name replaces the names of its columns if all are there.
column_owners <- function(inputs, names, variables) {
  for (v in variables) if (length(v$columns) > 1L && all(v$columns %in% inputs)) names[v$columns] <- v$name
  unique(names[inputs]) %||% inputs
}

# Returns, for each row of x, which of `columns` is 1, or NULL unless each row has a single 1 and otherwise zeros.
ones_of_rows <- function(x, columns) {
  number <- numeric(nrow(x))
  for (k in seq_along(columns)) {
    v <- x[, columns[k]]
    one <- which(v == 1)
    if (sum(v != 0) > length(one) || any(number[one] > 0)) return(NULL)
    number[one] <- k
  }
  if (all(number > 0)) number
}

# Returns a categorical kernel with the levels of its variable. Stops unless the kernel's columns code one R factor.
place_levels <- function(leaf, x, argument, variables) {
  refuse_if(length(leaf$inputs) < 2L || is.null(ones_of_rows(x, leaf$inputs)), argument,
            sprintf("is categorical, but %s is no factor", list_quoted(leaf$of)),
            hint = "Convert a number or a logical by factor(). Columns of 0 and 1 need a single 1 in each row.")
  owner <- Filter(function(v) setequal(v$columns, leaf$inputs), variables)
  leaf$levels <- if (length(owner)) owner[[1L]]$levels[match(leaf$inputs, owner[[1L]]$columns)] else
    colnames(x)[leaf$inputs] %||% leaf$inputs
  R <- if (leaf$correlation == "given") leaf$given
  levels <- leaf$levels
  refuse_if(!is.null(R) && nrow(R) != length(levels), argument,
            sprintf("has a correlation matrix of %d levels, but the factor has %d", nrow(R), length(levels)))
  if (!is.null(dimnames(R))) { # sorts R by the levels
    refuse_if(!setequal(rownames(R), levels) || !setequal(colnames(R), levels), argument,
              sprintf("has a correlation matrix of the levels %s, but the factor has %s",
                      list_quoted(rownames(R), "\""), list_quoted(levels, "\"")))
    leaf$given <- R[match(levels, rownames(R)), match(levels, colnames(R))]
  }
  refuse_if(leaf$correlation == "full" && length(leaf$inputs) > 20L, argument,
            sprintf("has a full correlation matrix of %d levels", length(leaf$inputs)),
            hint = "At most 20 are possible. \"exchangeable\" has one parameter, however many levels there are.")
  recycle(leaf, "parameters", argument)
}

# Returns the variables of a formula, each with its column numbers in x; an empty list for a fit of a matrix.
placed_variables <- function(frame) {
  last <- cumsum(vapply(frame$variables, `[[`, 1L, "width"))
  Map(function(v, last) replace(v, "columns", list(last - v$width + seq_len(v$width))), frame$variables, last)
}

# Returns the columns of x without those that only groups read.
smooth_columns <- function(x, variables) {
  setdiff(seq_len(ncol(x)), unlist(lapply(Filter(function(v) isTRUE(v$apart), variables), `[[`, "columns")))
}

# Returns a group with column numbers of its levels and design. A design with intercept omits a factor's first column.
place_group <- function(leaf, x, argument, variables) {
  if (!is.null(leaf$inputs)) return(leaf)
  columns <- function(name) leaf_columns(list(inputs = name, profile = "group"), x, argument, variables)
  design <- design_parts(leaf$group$design)
  coded <- vapply(Filter(function(v) length(v$levels) && length(v$columns) > 1L, variables), `[[`, "", "name")
  of_design <- lapply(sub("^`(.*)`$", "\\1", design$labels), function(name) {
    own <- columns(name)
    if (design$intercept && name %in% coded) own[-1L] else own
  })
  leaf$inputs <- unique(c(columns(group_variable(leaf$group$by)), unlist(of_design)))
  leaf$intercept <- as.integer(design$intercept)
  read <- leaf$inputs[-1L]
  leaf$levels <- c(if (design$intercept) "(Intercept)", colnames(x)[read] %||% read)
  leaf$correlation <- if (leaf$group$correlated && table_rows(leaf) > 1L) "full" else "given"
  recycle(leaf, "scale", argument)
}

# Returns the kernel with its inputs as column numbers of x. Stops if one of its parameters has no value.
complete_kernel <- function(kernel, x) {
  kernel <- place_kernel(at_names(check_kernel(kernel), list(x = x)), x)
  compiled <- compile_kernel(kernel)
  lacking <- unique(compiled$table$what[is.na(compiled$engine$values)])
  refuse_if(length(lacking), "kernel",
            sprintf("has no value for %s", paste(sub("parameters", "correlation", lacking), collapse = " and ")),
            hint = "Give the kernel with all its parameters.")
  kernel
}

#' @rdname kernel_algebra
#' @export
kernel_matrix <- function(kernel, x, z = x) {
  check_given("kernel", "Give a kernel, such as kernel_se().")
  check_given("x", "Give a numeric matrix of inputs.")
  x <- check_matrix(x, "x")
  z <- check_same_columns(check_matrix(z, "z"), x, "z")
  kernel <- complete_kernel(kernel, x)
  check_memory(8 * nrow(x) * as.double(nrow(z)), "the kernel matrix")
  K <- native_kernel_matrix(kernel, x, z)
  if (!is.null(rownames(x)) || !is.null(rownames(z))) dimnames(K) <- list(rownames(x), rownames(z))
  K
}

# Returns z with its columns in the order of x: by name if both have names, else by position.
check_same_columns <- function(z, x, argument, other = "`x` has", names = colnames(x)) {
  refuse_if(ncol(z) != ncol(x), argument, sprintf("has %d columns, but %s %d", ncol(z), other, ncol(x)))
  if (is.null(names) || is.null(colnames(z)) || !all(nzchar(c(names, colnames(z))))) return(z)
  at <- match(make.unique(names), make.unique(colnames(z)))
  refuse_if(anyNA(at), argument, sprintf("lacks the columns %s", list_quoted(names[is.na(at)])),
            hint = "Without column names, columns are taken by position.")
  if (identical(at, seq_along(at))) z else z[, at, drop = FALSE]
}

# The kernel of a seasonal series is a sum: a smooth trend, for each period a periodic term of slowly changing shape,
# and a kernel of all inputs for other variation. The profile "season1,2:matern32+mean" means periods 1 and 2 of
# time_periods(), the kernel matern32 for other variation, and a linear mean. A factor's role in kernel$season is trend;
# cycle and change (periodic and slow factor of a period); rest (other variation); mean; or "beside" (other terms).

# Returns list(column, period, name) for each possible period of an input. The input is a time, a ts, or years in steps
# of months or quarters, or y repeats exactly along it, and it spans two periods of at least 2.5 steps each.
time_periods <- function(x, variables, y = NULL) {
  out <- list()
  for (v in variables) {
    if (length(v$columns) != 1L || identical(v$kind, "factor")) next
    value <- sort(unique(x[, v$columns]))
    known <- if (identical(v$kind, "time")) c(day = 1, week = 7, year = 365.2425) else # periods in days
      if (in_decimal_years(value)) c(year = 1) else v[["period"]] %||% exact_period(x[, v$columns], y)
    seen <- length(value) > 4L & diff(range(value)) >= 2 * known & stats::median(diff(value)) < known / 2.5
    for (name in names(known)[seen]) out <- c(out, list(list(column = v$columns, period = known[[name]], name = name)))
  }
  out
}

# Returns c(cycle = period) if x has equal steps and y repeats up to rounding, else NULL.
exact_period <- function(x, y) {
  step <- diff(sort(x))
  if (length(step) < 5L || length(y) != length(x) || max(abs(step - step[1L])) > 1e-6 * step[1L]) return(NULL)
  y <- y[order(x)]
  rounding <- 1e-8 * diff(range(y))
  lags <- which(abs(y - y[1L]) <= rounding)[-1L] - 1L
  for (lag in utils::head(lags[lags > 2L & 2L * lags <= length(y)], if (rounding > 0) 20L else 0L)) {
    if (all(abs(diff(y, lag)) <= rounding)) return(c(cycle = lag * mean(step)))
  }
}

# Returns TRUE for numbers that look like years in steps of months or quarters, such as 2020.25.
in_decimal_years <- function(value) {
  if (length(value) < 9L || value[1L] < 1500 || value[length(value)] > 2500) return(FALSE)
  any(vapply(c(12, 4), function(times) {
    steps <- diff(value) * times
    stats::median(abs(steps - 1)) < 0.1 && all(steps > 0.5) && all(abs(steps - round(steps)) < 0.15)
  }, NA))
}

# Returns `table`, a result of parameter_units(), with the priors for a seasonal kernel (set by bench/forecasts.R). The
# priors do not weaken with more rows (column `keep`), because a series has few periods. The factor with the role "rest"
# keeps the usual priors if it has other inputs than the time.
season_priors <- function(table, kernel, x) {
  leaves <- kernel$leaves
  span <- diff(range(x[, leaves[[1L]]$inputs]))
  alone <- length(leaves[[match("rest", kernel$season)]]$inputs) == 1L
  shortest <- min(unlist(lapply(leaves, `[[`, "period")))
  for (i in seq_len(nrow(table))) {
    of <- if (table$leaf[i]) table$leaf[i] else kernel$terms[[table$term[i]]]$leaves[1L]
    role <- kernel$season[of]
    if (role == "beside" || role == "rest" && !alone) next
    value <- switch(table$what[i], lengthscale = switch(role, cycle = 1, trend = span, change = 3 * span,
                                                        rest = 0.3 * shortest) / table$unit[i],
                    variance = season_variances[[role]])
    if (is.null(value)) next
    sd <- if (table$what[i] == "variance") "variance" else if (role == "cycle") "cycle" else "length"
    table[i, c("middle", "sd", "keep")] <- list(log(value), season_sd[[sd]], TRUE)
  }
  table
}

# Returns the distance along a column at which the correlation of f is 0.05 (the practical range), or Inf.
practical_range <- function(column, kernel, d) {
  share <- function(log_r) {
    z <- replace(numeric(d), column, exp(log_r))
    native_kernel_matrix(kernel, matrix(0, 1L, d), t(z))[1L] / total_variance(kernel) - 0.05
  }
  ends <- log(range(kernel_lengths(kernel, d))) + c(-5, 12)
  if (!all(is.finite(ends)) || share(ends[2L]) > 0) Inf else exp(stats::uniroot(share, ends, tol = 1e-8)$root)
}
