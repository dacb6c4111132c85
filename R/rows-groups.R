# Reads grouped terms of a formula, such as (1 | g), and codes variables as columns. Grouped terms are taken out before
# model.frame() sees the formula. Each group becomes a column with the numbers of its levels.

# Returns the formula, with grouped terms (also those of `kernel`) replaced by their variables. If there are groups, its
# attribute `grouped` is list(formula, smooth, apart, by, groups): the formula as given, labels of terms that are not
# grouped, labels of terms that only groups or `mean` read, grouping variables, and kernels of the formula's groups.
formula_of_groups <- function(formula, data, kernel = NULL, mean = NULL) {
  split <- split_bars(formula)
  own <- Filter(function(leaf) is_group(leaf) && is.language(leaf$group$by),
                if (inherits(kernel, "pfdtc_kernel")) as_sum(kernel)$leaves)
  groups <- c(split$groups, lapply(own, `[[`, "group"))
  if (!length(groups)) return(formula)
  designs <- unlist(lapply(groups, function(group) design_parts(group$design)$labels))
  names_of_parts <- vapply(unlist(lapply(groups, function(group) by_parts(group$by))), deparse1, "", backtick = TRUE)
  smooth <- offsets <- NULL
  if (!is.null(split$smooth)) {
    terms <- stats::terms(split$smooth, data = if (is.list(data)) data)
    smooth <- attr(terms, "term.labels")
    dot <- "." %in% all.vars(split$smooth[[length(split$smooth)]])
    if (dot) smooth <- setdiff(smooth, names_of_parts) # `.` in a formula omits the groups
    offsets <- as.list(attr(terms, "variables"))[1L + attr(terms, "offset")]
    if (dot) formula[[length(formula)]] <- sum_of_terms(c(lapply(smooth, str2lang), offsets, split$bars))
  }
  of_mean <- if (inherits(mean, "formula") && length(mean) == 2L && !identical(mean[[2L]], quote(.))) {
    attr(stats::terms(mean), "term.labels")
  }
  plain <- function(labels) sub("^`(.*)`$", "\\1", as.character(labels))
  labels <- unique(c(smooth, of_mean, designs, names_of_parts))
  whole <- formula
  whole[[length(whole)]] <- sum_of_terms(c(lapply(labels, str2lang), offsets))
  attr(whole, "grouped") <- list(
    formula = formula, smooth = plain(smooth), apart = plain(setdiff(c(of_mean, designs), smooth)),
    by = lapply(groups, `[[`, "by"), groups = lapply(split$groups, function(group) {
      kernel_group(one_sided(group$by), one_sided(group$design), group$correlated)
    }))
  whole
}

one_sided <- function(term) stats::as.formula(call("~", term), globalenv())

# Splits a formula into list(smooth, groups, bars): the formula without grouped terms, list(by, design, correlated) for
# each grouped term, and these terms as given. (1 | a / b) is (1 | a) + (1 | b:a). Stops at a bar outside of (x | g).
split_bars <- function(formula) {
  groups <- bars <- list()
  add <- function(bar) {
    refuse_if(!is.null(find_bar(bar[[2L]])), "formula", sprintf("has two bars in (%s)", deparse1(bar)),
              hint = "Each group is a term of its own: (x | g) + (x | h).")
    refuse_if(!length(all.vars(bar[[3L]])), "formula", sprintf("has (%s), without a grouping variable", deparse1(bar)),
              hint = "Write the variable after the bar, as in (x | g).")
    bars <<- c(bars, call("(", bar))
    nested <- function(by) if (is_call_of(by, "/")) c(nested(by[[2L]]), by[[3L]]) else list(by)
    parts <- nested(bar[[3L]]) # a / b is list(a, b)
    groups <<- c(groups, lapply(seq_along(parts), function(i) {
      list(by = Reduce(function(a, b) call(":", a, b), rev(parts[seq_len(i)])), design = bar[[2L]],
           correlated = is_call_of(bar, "|"))
    }))
  }
  walk <- function(term) {
    if (is_call_of(term, "(") && is_call_of(term[[2L]], c("|", "||"))) {
      add(term[[2L]])
      return(NULL)
    }
    if (is_call_of(term, c("+", "-")) && length(term) == 3L) {
      left <- walk(term[[2L]])
      right <- if (is_call_of(term, "+")) walk(term[[3L]]) else term[[3L]]
      if (is.null(left)) return(if (is_call_of(term, "+")) right else call("-", right))
      return(if (is.null(right)) left else call(as.character(term[[1L]]), left, right))
    }
    bar <- find_bar(term)
    if (is.null(bar)) return(term)
    abort_input("formula", deparse1(term),
                message = sprintf("`formula` has a bar that is no grouped term: %s.", deparse1(term)),
                hint = sprintf("A group is a term in parentheses, + (%1$s). For a logical \"or\" write I(%1$s).",
                               deparse1(bar)))
  }
  rhs <- walk(formula[[length(formula)]])
  formula[length(formula)] <- list(rhs)
  list(smooth = if (!is.null(rhs)) formula, groups = groups, bars = bars)
}

is_call_of <- function(term, names) is.call(term) && is.name(term[[1L]]) && as.character(term[[1L]]) %in% names

# Returns the first term a | b or a || b in a sum of terms, or NULL.
find_bar <- function(term) {
  if (!is.call(term) || !is.name(term[[1L]])) return(NULL)
  if (is_call_of(term, c("|", "||"))) return(term)
  if (!is_call_of(term, c("+", "-", "*", ":", "/", "^", "("))) return(NULL)
  for (part in as.list(term)[-1L]) if (!is.null(bar <- find_bar(part))) return(bar)
}

# Stops at special terms of coxph(), such as strata(), which model.frame() would take as inputs.
refuse_survival_terms <- function(term) {
  if (!is.call(term)) return()
  shown <- deparse1(term)
  of <- if (length(term) > 1L) deparse1(term[[2L]]) else "g"
  name <- sub("^survival::", "", deparse1(term[[1L]]))
  refuse_if(name %in% c("strata", "cluster", "frailty", "tt"), "formula", sprintf("one with %s", shown),
            "a sum of inputs and groups", message = sprintf("`formula` has %s, a term of survival's models.", shown),
            hint = if (name == "tt") sprintf("Use `%s` as an input.", of) else
              sprintf("Write (1 | %s) for an effect of each level, or use `%s` as an input.", of, of))
  for (part in as.list(term)[-1L]) if (!missing(part)) refuse_survival_terms(part)
}

# Returns the variables of a group, such as a and b of a:b.
by_parts <- function(by) {
  if (is_call_of(by, "(")) return(by_parts(by[[2L]]))
  if (is_call_of(by, ":")) return(c(by_parts(by[[2L]]), by_parts(by[[3L]])))
  refuse_if(is_call_of(by, c("+", "*", "|", "||", "/")), "formula", sprintf("has a group by %s", deparse1(by)),
            hint = "Groups are a variable, a:b or a/b.")
  list(by)
}

# Returns a function (expr, rows) that evaluates an expression in `data` or, given `rows`, with these rows of
# `variables` only. It returns NULL after an error, and keeps the state of random numbers.
evaluator <- function(variables, data, around) {
  if (is.environment(data)) around <- data
  inside <- if (!is.environment(data)) as.list(data)
  function(expr, rows = NULL) {
    if (!is.null(rows)) inside[names(variables)] <- take_rows_of(variables, rows)
    with_fixed_seed(tryCatch(suppressWarnings(eval(expr, inside, around)), error = function(e) NULL))
  }
}

# Evaluates `expr`, which has the values v at all rows, in three sets of rows: that with the smallest v, that with the
# largest v, and every second row. Returns for each set TRUE if its values equal those in v, else FALSE; NA if it fails.
same_without_others <- function(expr, v, value_of) {
  plain <- function(v) {
    if (inherits(v, "difftime")) units(v) <- "secs"
    if (is.factor(v) || is.character(v)) as.character(v) else as.numeric(v)
  }
  all <- plain(v)[seq_len(NROW(v))]
  size <- if (is.numeric(all)) max(1e-300, abs(all), na.rm = TRUE)
  order <- if (is.numeric(all)) all else match(all, unique(all))
  every_second <- seq_len(min(length(all), 2000L))[c(FALSE, TRUE)]
  vapply(list(which.min(order), which.max(order), every_second), function(rows) {
    alone <- if (length(rows)) value_of(expr, rows)
    if (is.null(alone) || NROW(alone) != length(rows)) return(NA)
    # Values may differ by rounding errors, because products of matrices round differently in fewer rows.
    isTRUE(all.equal(plain(take_rows_of(v, rows)), plain(alone), tolerance = 1e-8, scale = size))
  }, NA)
}

# Returns how each input of a model frame is coded as columns: list(name, kind, levels, width, columns, apart). `width`
# is the number of columns and `columns` their names. `apart` is TRUE for variables that only groups or `mean` use.
coded_variables <- function(mf, used, grouped) {
  code <- function(name) {
    v <- mf[[name]]
    kind <- variable_kind(v)
    refuse_if(is.na(kind), "formula", sprintf("has `%s`, which is %s", name, describe_column(v)),
              hint = reason_not_numeric(v) %||% "Inputs are numbers, logicals, factors or text.")
    levels <- if (kind == "factor") levels(as.factor(v))
    if (is.character(v) && length(levels) && !anyNA(as_number(levels))) tell_classed("text", sprintf(paste(
      "`%s` is text whose values are numbers. It is coded as a factor with %s. as.numeric() makes a numeric input",
      "of it."), name, count_of(length(levels), "level")))
    width <- switch(kind, factor = length(levels), matrix = ncol(v), sphere = 3L, 1L)
    check_memory(8 * NROW(v) * width, sprintf("the %d columns of `%s`", width, name))
    columns <- switch(kind, factor = paste0(name, levels), matrix = { # as model.matrix() does
      paste0(name, colnames(v) %||% if (width > 1L) seq_len(width) else "")
    }, sphere = paste0(name, c("x", "y", "z")), name)
    c(list(name = name, kind = kind, levels = levels, width = width, columns = columns), unit_fields(v, name, kind))
  }
  if (is.null(grouped)) return(lapply(names(mf)[used], code))
  apart <- lapply(unique(grouped$apart), function(name) c(code(name), list(apart = TRUE)))
  groups <- lapply(grouped$by, function(by) {
    parts <- vapply(by_parts(by), deparse1, "")
    values <- mf[parts]
    for (part in parts) refuse_if(variable_kind(values[[part]]) %in% c(NA, "matrix"), "formula",
                                  sprintf("has a group by `%s`, which is %s", part, describe_column(values[[part]])),
                                  hint = "Groups are factors, text or numbers.")
    name <- group_variable(by)
    v <- list(name = name, kind = "group", parts = parts, vars = all.vars(by), width = 1L, columns = name, apart = TRUE,
              plain = parts[vapply(values, is.numeric, NA)])
    values <- values[!duplicated(values), , drop = FALSE]
    in_order <- do.call(order, unname(lapply(values, function(u) as.integer(factor(u)))))
    c(v, list(levels = group_keys(v, values)[in_order]))
  })
  c(lapply(grouped$smooth, code), apart, groups[!duplicated(vapply(groups, `[[`, "", "name"))])
}

# Stops if the variance of a group cannot be learned from `n` rows. Stops if hardly any value of a factor repeats,
# because learning would take hours. Sends messages about numeric groups and about factors with many levels.
check_levels <- function(variables, n, gaussian = TRUE) {
  refuse <- function(got, hint) abort_input("formula", got, hint = hint)
  for (v in variables) {
    k <- length(v$levels)
    if (v$kind == "group") {
      what <- sub("^[(](.*)[)]$", "\\1", v$name)
      if (k < 2L) refuse(sprintf("has the group `%s` with %d level", what, k), "A group needs two levels or more.")
      if (gaussian && k == n) refuse(sprintf("has the group `%s` with a level for each row", what),
                                     "Its effects equal the noise: only the sum of the two variances can be learned.")
      if (length(v$plain)) tell_classed("groups", sprintf(
        "%s %s numeric. Each distinct value is a level of the grouping factor.", list_quoted(v$plain),
        if (length(v$plain) == 1L) "is" else "are"))
    } else if (v$kind == "factor") {
      if (k > max(50, 0.9 * n)) refuse(
        sprintf("has `%s`, a factor with %d different values in %.0f rows", v$name, k, n), hint_for_text(v$levels) %||%
          sprintf(paste("Leave out identifiers of rows, as in y ~ . - %s. Write text that holds numbers as",
                        "as.numeric(as.character(%s))."), v$name, v$name))
      if (k >= many_levels) tell_classed("levels", sprintf(
        "`%s` has %d levels, which share one lengthscale. To learn an effect of each level, write (1 | %s) instead.",
        v$name, k, v$name))
    }
  }
}

# Returns the level of a group in each row as text, such as "a:b", or NA if a part is missing. If there are several
# parts, a colon in a part gets a backslash: "a:b" and "c" are another level than "a" and "b:c". The text of a time or
# number, unlike as.character()'s, does not depend on time zone, type or other rows.
group_keys <- function(v, values) {
  keys <- lapply(values[v$parts], function(u) {
    if (inherits(u, "POSIXt")) return(sub(" 00:00:00$", "", format(u, "%Y-%m-%d %H:%M:%S", tz = "UTC")))
    if (is.numeric(u)) ifelse(is.na(u), NA, sprintf("%.15g", u + 0)) else as.character(u) # -0 + 0 is 0
  })
  if (length(keys) > 1L) keys <- lapply(keys, gsub, pattern = "([:\\\\])", replacement = "\\\\\\1")
  ifelse(Reduce(`|`, lapply(keys, is.na)), NA_character_, do.call(paste, c(unname(keys), sep = ":")))
}

# Returns the number of each row's level. A level that the fit lacks gets a negative number computed from its name, the
# same in all calls. Missing levels get distinct numbers below all others.
group_codes <- function(v, values) {
  keys <- group_keys(v, values)
  new <- setdiff(keys, c(v$levels, NA))
  numbers <- vapply(new, name_number, 0, USE.NAMES = FALSE)
  while (any(twice <- duplicated(numbers))) numbers[twice] <- numbers[twice] - 1
  code <- c(seq_along(v$levels), numbers)[match(keys, c(v$levels, new))]
  missing <- which(is.na(keys))
  code[missing] <- -2^52 - 2^32 - seq_along(missing)
  code
}

# Returns a hash of a text, a whole number between -2^52 and -1.
name_number <- function(text) {
  high <- low <- 7
  for (byte in as.integer(charToRaw(enc2utf8(text)))) {
    high <- (high * 1000003 + byte) %% 2147483647
    low <- (low * 69069 + byte) %% 2097143
  }
  -1 - high * 2097152 - low
}

# Returns the coded rows `x` with NA for missing levels. Sends a message if rows have levels that the fit does not have.
check_new_levels <- function(variables, x) {
  columns <- unlist(lapply(variables, function(v) if (v$kind == "group") v$columns))
  codes <- x[, columns, drop = FALSE]
  x[, columns] <- replace(codes, codes < -2^52 - 2^31, NA) # group_codes() codes missing levels below this
  new <- which(rowSums(x[, columns, drop = FALSE] < 0, na.rm = TRUE) > 0)
  if (!length(new)) return(x)
  columns <- columns[colSums(x[, columns, drop = FALSE] < 0, na.rm = TRUE) > 0]
  tell_classed("new_levels", sprintf("New level of %s in %s. %s",
    list_quoted(gsub("^[(]|[)]$", "", columns), last = "or"),
    if (length(new) == 1L) paste("row", new) else count_of(length(new), "row"),
    "Its effect has mean 0 and the variance between levels. predict(re = FALSE) leaves out the effects of all groups."))
  x
}

# Returns the coded variables as one matrix. `values` is a list or data frame of the variables by name.
bind_columns <- function(variables, values) {
  columns <- unlist(lapply(variables, `[[`, "columns"))
  x <- matrix(0, nrow(values), length(columns), dimnames = list(NULL, make.unique(columns)))
  at <- 0L
  for (v in variables) {
    value <- if (v$kind == "group") group_codes(v, values) else values[[v$name]]
    if (v$kind == "factor") {
      code <- match(as.character(value), v$levels)
      value <- matrix(0, length(code), v$width)
      value[cbind(seq_along(code), code)] <- 1
      value[is.na(code), ] <- NA
    }
    x[, at + seq_len(v$width)] <- numbers_of(v, value)
    at <- at + v$width
  }
  x
}

variable_of_columns <- function(variables) unlist(lapply(variables, function(v) rep(v$name, v$width)))

# Returns TRUE if the user gave the correlation matrix of a factor with these `levels`.
has_given_levels <- function(kernel, levels) {
  factors <- if (inherits(kernel, "pfdtc_kernel")) as_sum(kernel)$leaves
  any(vapply(factors, function(f) is.matrix(f$given) && setequal(rownames(f$given), levels), NA))
}

# Returns `call` without terms of `mean` and `noise` whose variables were in the formula `before`, but no longer are.
with_inputs_of <- function(call, before) {
  lost <- setdiff(all.vars(before[[3L]]), all.vars(call$formula[[3L]]))
  for (name in Filter(function(name) is_call_of(call[[name]], "~"), c("mean", "noise"))) {
    of <- attr(stats::terms(stats::as.formula(call[[name]]), allowDotAsName = TRUE), "term.labels")
    gone <- Filter(function(term) any(all.vars(str2lang(term)) %in% lost), of)
    if (length(gone)) call[[name]] <- stats::reformulate(c("1", setdiff(of, gone)))
  }
  call
}
