# Reads the rows of a formula: makes a model frame, codes its variables as columns, and calls clean_rows().

# Returns the list of clean_data() for a `call` with a formula. As in lm(), subset, weights and offset are evaluated in
# `data`, then in the formula's environment; other arguments in `envir`. Factors keep levels that are named in `kernel`.
data_from_formula <- function(call, envir, center = TRUE, scale = TRUE, merge = TRUE, likelihood = NULL,
                              kernel = NULL, mean = NULL) {
  mf <- make_model_frame(call, envir, kernel, mean)
  terms <- attr(mf, "terms")
  used <- input_variables(terms)
  own <- if (is.list(kernel)) kernel$columns # those of the fit whose kernel it is
  without <- if (is.null(kernel) || !is.null(own)) without_identifiers(mf, terms, used, own)
  if (!is.null(without)) {
    call$formula <- without
    return(data_from_formula(call, envir, center, scale, merge, likelihood, kernel, mean))
  }
  if (isTRUE(center) && !attr(stats::terms(eval(call$formula, envir), allowDotAsName = TRUE), "intercept"))
    tell_classed("intercept", paste("`- 1` or `+ 0` in a formula changes nothing: the constant mean stays.",
                                    "center = FALSE leaves it out if f has no linear mean."))
  # Omit the default names "1", "2", ... of many rows, which take 64 bytes each.
  labels <- if (nrow(mf) <= many_rows || is.character(attr(mf, "row.names"))) row.names(mf)
  if (!nrow(mf)) {
    call$na.action <- quote(stats::na.pass)
    mf <- make_model_frame(call, envir)
    lost <- vapply(mf, function(v) mean(is.na(v)), 0) # NaN without rows
    unknown <- !is.null(call$subset) && all(lost %in% 1)
    what <- if (unknown) "`subset` is NA, or has only row numbers that the data lack." else if (nrow(mf))
      "`data` has no rows without missing values." else
        if (is.null(call$subset)) "`data` has no rows." else "`data` and `subset` leave no rows."
    abort_input("data", "no rows", message = what, hint = if (nrow(mf) && !unknown) {
      empty <- sub("^[(](weights|offset)[)]$", "\\1", names(mf)[lost == 1])
      if (length(empty)) sprintf("All values of %s are missing.", list_quoted(empty)) else
        sprintf("Leave out variables with many missing values, such as `%s` (%.0f %%).", names(mf)[which.max(lost)],
                100 * max(lost))
    })
  }
  settled <- settle_family(likelihood, mf[[attr(terms, "response")]], names(mf)[attr(terms, "response")])
  likelihood <- settled$likelihood
  inputs <- coded_variables(mf, used, attr(terms, "grouped"))
  ordered <- unlist(lapply(inputs, function(v) if (v$kind == "factor" && is.ordered(mf[[v$name]])) v$name))
  if (is.null(kernel) && length(ordered)) tell_classed("ordered", sprintf(
    "The order of the levels of %s is not used. To use it, give `kernel`, such as kernel_se()%s.", list_quoted(ordered),
    paste0(" * kernel_categorical(\"ordered\", inputs = ~ ", ordered, ")", collapse = "")))
  check_levels(inputs, nrow(mf), is.null(likelihood))
  rows <- rows_of_frame(mf, inputs, labels)
  message_if_constant(rows$x, variable_of_columns(inputs))
  message_if_degrees(rows$x)
  data <- clean_rows(rows$x, rows$response, rows$name, rows$w, rows$offset, labels = labels, center = center,
                     scale = scale, merge = merge, likelihood = likelihood, rows = labels)
  data$family <- settled$family
  data$na_action <- attr(mf, "na.action")
  given <- eval(call$data, envir)
  variables <- as.call(c(quote(list), attr(terms, "variables"), call$offset, Filter(is.call, list(call$weights))))
  by_row <- variables_by_row(all.vars(variables), mf, terms, given)
  exprs <- expressions_of_rows(mf, terms, call, evaluator(by_row, given, environment(terms)))
  attr(terms, "predvars")[-1L] <- exprs[seq_along(attr(terms, "predvars"))[-1L] - 1L]
  own <- intersect(c("weights", "offset"), names(call)) # a column of `data` may be called (offset)
  data <- add_formula(data, terms, inputs, replace(call, own, exprs[sprintf("(%s)", own)]))
  data$frame$together <- attr(exprs, "together")
  data$frame$response_unit <- unit_fields(mf[[attr(terms, "response")]], "", "numeric")$unit
  # newdata must have the variables that are in `data` or that have a value for each row. Otherwise R would silently
  # take a missing variable from the formula's environment.
  known <- c(if (is.data.frame(given)) names(given), if (!identical(nrow(given), 1L)) names(by_row))
  data$frame$required <- intersect(data$frame$required, known)
  data$kept <- frame_to_keep(mf, data, by_row[setdiff(names(by_row), names(mf))])
  data$frame$place <- attr(given, "place", exact = TRUE)
  data
}

# Returns the formula without factors whose values hardly ever repeat, and sends a message. Returns NULL if all or no
# inputs are such factors. Factors in `columns` of a kernel stay, as does text of dates or of numbers such as 5%.
without_identifiers <- function(mf, terms, used, columns) {
  n <- nrow(mf)
  names <- names(mf)[used]
  identifies <- vapply(names, function(name) {
    v <- mf[[name]]
    if (!is.factor(v) && !is.character(v) || !is.null(dim(v)) || any(paste0(name, v) %in% columns)) return(FALSE)
    k <- length(unique(v))
    (k == n && k > 4L || k > max(50, 0.9 * n)) && is.null(hint_for_text(v))
  }, NA)
  grouped <- attr(terms, "grouped")
  if (!is.null(grouped)) identifies <- identifies & names %in% grouped$smooth
  if (!any(identifies) || all(identifies)) return(NULL)
  left <- names[identifies]
  numbers <- Filter(function(name) !anyNA(as_number(mf[[name]])), left)
  tell_classed("levels", paste0(list_quoted(left), if (length(left) == 1L) " is" else " are",
    " left out: hardly any value repeats, so effects of values are part of the noise.",
    if (length(numbers)) sprintf(" as.numeric(as.character(%s)) makes numbers of a factor.", numbers[1L])))
  stats::update(grouped$formula %||% stats::formula(terms),
                paste("~ . -", paste(attr(terms, "term.labels")[identifies], collapse = " - ")))
}

# ---- the model frame ------------------------------------------------------------------------------------------------

# Calls model.frame() as lm() does. Drops levels without rows, unless `kernel` has a correlation matrix of the levels.
make_model_frame <- function(call, envir, kernel = NULL, mean = NULL) {
  data <- eval(call$data, envir)
  formula <- formula_of_groups(check_formula(call, envir), data, kernel, mean)
  parts <- list(quote(stats::model.frame), formula = formula)
  if (!is.null(data)) {
    refuse_if(!is.list(data) && !is.environment(data), "data", describe(data), "a data frame",
              hint = if (is.character(data)) "Give the data frame itself, not its name." else
                c(reason_not_numeric(data), if (is.matrix(data)) "as.data.frame() converts it.")[1L])
    parts$data <- data
  }
  given <- intersect(c("subset", "weights", "na.action", "offset"), names(call))
  parts[given] <- as.list(call)[given]
  refuse_if(is.character(parts$subset) && !all(parts$subset %in% row.names(data)), "subset", describe(parts$subset),
            "a logical expression such as x > 1, row numbers or row names")
  for (name in c("weights", "offset"))
    refuse_if(is.character(parts[[name]]) || is_call_of(parts[[name]], "~"), name, describe(parts[[name]]),
              "a column or a vector, without quotes or ~")
  mf <- NULL
  if (NROW(data) > many_rows && is.null(call$na.action) && identical(getOption("na.action"), "na.omit")) {
    mf <- evaluate_frame(c(parts, na.action = quote(stats::na.pass)), envir)
    if (anyNA(mf, recursive = TRUE)) mf <- NULL # without missing values, na.pass avoids a copy by na.omit()
  }
  if (is.null(mf)) mf <- evaluate_frame(parts, envir)
  for (j in which(vapply(mf, is.factor, NA))) {
    empty <- any(tabulate(mf[[j]], nlevels(mf[[j]])) == 0L)
    if (empty && !has_given_levels(kernel, levels(mf[[j]]))) mf[[j]] <- droplevels(mf[[j]])
  }
  attr(attr(mf, "terms"), "grouped") <- attr(formula, "grouped")
  mf
}

# Returns the formula of a call. Stops if it is no formula or has no variables.
check_formula <- function(call, envir) {
  formula <- eval(call$formula, envir)
  refuse_if(!inherits(formula, "formula"), "formula", if (is.null(call$formula)) "is missing" else describe(formula),
            if (!is.null(call$formula)) "a formula such as y ~ x1 + x2")
  if (inherits(formula, "terms")) formula <- stats::formula(formula) # step() uses terms as formulas
  refuse_if(any(vapply(as.list(formula)[-1L], function(side) is.null(side) || is.character(side), NA)), "formula",
            deparse1(formula), "made of variables, such as y ~ x1 + x2")
  refuse_survival_terms(formula[[length(formula)]])
  around <- environment(formula) # sphere() may be unknown there
  if (!is.null(around) && "sphere" %in% all.names(formula) && !exists("sphere", around, mode = "function"))
    environment(formula) <- list2env(list(sphere = sphere), parent = around)
  formula
}

# Evaluates `parts`, a call of model.frame(). Its errors are raised again with the name of the argument at fault.
evaluate_frame <- function(parts, envir) {
  tryCatch(eval(as.call(parts), envir), error = function(e) {
    text <- sub("\\.$", "", conditionMessage(e))
    lost <- sub("^object '(.*)' not found$", "\\1", text)
    argument <- if (grepl("(weights)", text, fixed = TRUE)) "weights" else
      if (grepl("(offset)", text, fixed = TRUE)) "offset" else
        if (identical(text, "missing values in object")) "na.action" else
          Find(function(name) lost %in% all.vars(parts[[name]]), c("formula", "weights", "offset", "subset"))
    argument <- argument %||% "formula"
    size <- if (argument %in% c("weights", "offset"))
      tryCatch(NROW(eval(parts[[argument]], parts$data, environment(parts$formula))), error = function(e) NULL)
    rows <- if (is.data.frame(parts$data)) nrow(parts$data)
    absent <- if (!is.null(rows) && argument != "na.action") Filter(function(name) {
      !name %in% names(parts$data) && is.function(get0(name, environment(parts$formula)))
    }, all.vars(parts[[argument]]))
    abort_input(argument, text, hint = if (length(absent)) did_you_mean(absent[1L], names(parts$data)) else
      hint_for_frame(text, parts$data), message = if (length(absent)) {
        sprintf("`data` has no column `%s`; R has only a function of this name.", absent[1L])
      } else if (!is.null(size) && !is.null(rows) && size != rows) {
        sprintf("`%s` has %s, and `data` has %s.", argument, count_of(size, "value"), count_of(rows, "row"))
      } else if (argument == "na.action") {
        "The data have missing values, and `na.action` = na.fail refuses them."
      } else {
        sprintf("`%s` cannot be used with the data: %s.", argument, text)
      })
  })
}

# Returns a hint on how to avoid the error `text` of model.frame(), or NULL.
hint_for_frame <- function(text, data) {
  if (grepl("function \"Surv\"", text, fixed = TRUE)) return("Write survival::Surv().")
  if (grepl("(function \"|variable ')(s|te|ti|t2|ns|bs|lo)(\"|\\()", text))
    return(paste("Write the variables without s(), te() or ns(): the Gaussian process is smooth in all inputs",
                 "together, as in y ~ a + b. kernel_additive() is a sum of functions of single inputs."))
  name_in <- function(pattern) regmatches(text, regexec(pattern, text))[[1L]][2L]
  odd <- name_in("^invalid type [(].*[)] for variable '(.*)'$")
  if (!is.na(odd) && is.list(data))
    return(if (is.data.frame(data[[odd]])) "do.call(data.frame, data) makes columns of a nested data frame." else
      reason_not_numeric(data[[odd]]))
  name <- name_in("^object '(.*)' not found$")
  if (is.na(name)) return(NULL)
  if (is.null(data)) return("Give the data frame with the variables as `data`.")
  if (name %in% names(data))
    return(sprintf("Its column is out of reach through another function. Give the values, `data$%s`.", name))
  did_you_mean(name, names(data))
}

# Returns list(x, response, name, w, offset) from a model frame: inputs by the coding `variables`, and weights w.
rows_of_frame <- function(mf, variables, labels, argument = "data", unit = NULL) {
  response <- attr(attr(mf, "terms"), "response")
  n <- nrow(mf)
  own <- seq_along(attr(attr(mf, "terms"), "variables"))[-1L] - 1L # a column of the data may be called (weights)
  given <- stats::setNames(mf, replace(names(mf), own, ""))
  w <- given[["(weights)"]]
  offset <- tryCatch(stats::model.offset(given), error = function(e) abort_input("offset", "is not numeric"))
  x <- bind_columns(variables, mf)
  check_finite(x, argument, labels = labels, variables = variable_of_columns(variables)) # na.action may keep NA
  y <- in_unit(mf[[response]], unit) # model.response() would add names
  list(x = x, response = y, name = names(mf)[response],
       w = if (!is.null(w)) check_weights(w, n), offset = if (!is.null(offset)) check_vector(offset, "offset", n))
}

# Adds terms, groups and `frame` (the coding of inputs, for new rows) to the data.
add_formula <- function(data, terms, variables, call) {
  data$terms <- terms
  data$groups <- attr(terms, "grouped")$groups
  # Predictions evaluate the offset argument in newdata. They cannot if do.call() put training offsets into the call.
  recomputable <- is.null(call$offset) || is.language(call$offset) || length(call$offset) == 1L
  # Reduce terms to inputs and offset() terms. So newdata may lack the response, and variables removed as in y ~ . - id.
  a <- attributes(terms)
  keep <- sort(c(input_variables(terms), a$offset))
  if (length(terms) == 3L) terms[[2L]] <- NULL
  a$variables <- a$variables[c(1L, 1L + keep)]
  a$predvars <- a$predvars[c(1L, 1L + keep)]
  a$factors <- a$factors[keep, , drop = FALSE]
  a$offset <- if (length(a$offset)) match(a$offset, keep)
  a$dataClasses <- a$dataClasses[keep]
  a$response <- 0L
  attributes(terms) <- a
  data$frame <- list(method = "formula", columns = colnames(data$x), terms = terms, variables = variables,
                     offset = if (recomputable) call$offset else NA)
  data$frame$required <- all.vars(call("list", a$predvars, data$frame$offset))
  if (is.call(call$weights)) data$frame$weights <- call$weights # for add_rows()
  data
}

# Returns the columns of the model frame that are inputs, in the order of the terms. Stops if the formula is not usable.
input_variables <- function(terms) {
  labels <- attr(terms, "term.labels")
  used <- if (length(labels)) unname(apply(attr(terms, "factors")[, labels, drop = FALSE] > 0, 2L, which))
  wrong <- if (!attr(terms, "response")) "has no response" else if (!length(labels)) "has no inputs" else
    if (attr(terms, "response") %in% used) "has the response on both sides"
  refuse_if(!is.null(wrong), "formula", wrong, hint = "Write y ~ x1 + x2.")
  crossed <- labels[attr(terms, "order") > 1L]
  refuse_if(length(crossed), "formula", sprintf("has %s", list_quoted(crossed)),
            hint = "The kernel includes all interactions. Name each variable once, as in y ~ a + b.")
  used
}

# Returns the columns of a model frame as expressions that can be evaluated row by row: I(x - mean(x)) becomes I(x -
# 3.5). `together` names columns for which this fails, such as rank(x). Warns if predictions need such a column.
expressions_of_rows <- function(mf, terms, call, value_of) {
  # Returns `expr` with constants for parts without n values, such as mean(x), and with the parameters of scale(x).
  with_constants <- function(expr, n) {
    for (i in seq_along(expr)[-1L]) if (is.call(expr[[i]]) && !is_call_of(expr[[i]], "function")) {
      value <- value_of(expr[[i]])
      fixed <- if (is.atomic(value) && length(value) %% n) value else stats::makepredictcall(value, expr[[i]])
      expr[[i]] <- if (identical(fixed, expr[[i]])) with_constants(fixed, n) else fixed
    }
    expr
  }
  exprs <- as.list(attr(terms, "predvars"))[-1L]
  names(exprs) <- names(mf)[seq_along(exprs)]
  exprs <- c(exprs, list(`(weights)` = call$weights, `(offset)` = call$offset))[names(mf)]
  for (name in names(Filter(is.call, exprs))) {
    same <- same_without_others(exprs[[name]], mf[[name]], value_of)
    if (all(same %in% TRUE)) next
    fixed <- with_constants(exprs[[name]], NROW(value_of(exprs[[name]])))
    now <- same_without_others(fixed, mf[[name]], value_of)
    if (any(now %in% TRUE) && !any(now %in% FALSE)) exprs[[name]] <- fixed else
      if (any(same %in% FALSE)) attr(exprs, "together") <- c(attr(exprs, "together"), name)
  }
  lost <- setdiff(attr(exprs, "together"), c(names(mf)[attr(terms, "response")], "(weights)"))
  if (length(lost)) warn_classed("undefined", sprintf(paste(
    "Values of %s differ between a row alone and all rows together, so there are no predictions at new rows. Use a",
    "column of `data` instead, or give numbers, such as the breaks of cut()."), list_quoted(lost)))
  exprs
}

# Returns a call without environments and data, to be kept in a small fit. A value that do.call() put into the call
# becomes the name of its argument, unless it is a single number, string or flag.
slim_call <- function(call) {
  for (i in seq_along(call)[-1L]) {
    if (is.symbol(call[[i]]) || is.null(call[[i]])) next
    value <- call[[i]]
    if (inherits(value, "formula")) {
      call[[i]] <- drop_environment(value)
    } else if (!is.language(value) && !(is.atomic(value) && length(value) == 1L)) {
      name <- names(call)[i]
      call[[i]] <- as.name(if (length(name) && nzchar(name)) name else "...")
    }
  }
  call
}

# Returns what a fit keeps to restore its model frame: list(names, columns, raw) with the names of all columns, the
# columns that differ from `data`, and variables that occur only inside of functions, such as x of log(x).
frame_to_keep <- function(mf, data, raw = list()) {
  known <- columns_of_data(data, names(mf))
  same <- vapply(names(mf), function(name) identical(known[[name]], mf[[name]]), NA)
  list(names = names(mf), columns = unclass(mf)[names(mf)[!same]], raw = raw)
}

# Returns those inputs, and the response, of `data` that are among the columns `names` of a model frame.
columns_of_data <- function(data, names) {
  inputs <- training_inputs(data)
  wanted <- intersect(names, colnames(inputs$x))
  out <- lapply(stats::setNames(nm = wanted), function(name) unname(inputs$x[inputs$index, name]))
  response <- deparse1(data$terms[[2L]])
  if (response %in% names) out[[response]] <- unname(given_response(data))
  out
}

# Returns the variables `names` that have a value per row of `data`, at the rows of mf; none if mf has other rows.
variables_by_row <- function(names, mf, terms, data) {
  value_of <- function(expr) tryCatch(eval(expr, data, environment(terms)), error = function(e) NULL)
  rows_of <- function(v) row_labels(v, NULL) %||% seq_len(NROW(v))
  labels <- if (is.data.frame(data)) attr(data, "row.names") else
    rows_of(value_of(attr(terms, "variables")[[1L + attr(terms, "response")]]))
  values <- lapply(stats::setNames(nm = names), function(name) value_of(as.name(name)))
  values <- Filter(function(v) !is.function(v) && NROW(v) == length(labels), values)
  at <- match(attr(mf, "row.names"), labels)
  if (anyNA(at)) list() else if (identical(at, seq_along(labels))) values else lapply(values, take_rows_of, at)
}

# Returns the model frame of a fit, restored from what it keeps, or NULL.
kept_frame <- function(fit) {
  kept <- fit$data$kept
  if (is.null(kept)) return(NULL)
  columns <- c(kept$columns, columns_of_data(fit$data, setdiff(kept$names, names(kept$columns))))
  structure(as_data_frame(columns[kept$names], fit$data$response), terms = fit$terms, na.action = fit$na.action)
}

# Returns columns as a data frame, with row names from the names of the response.
as_data_frame <- function(columns, response) {
  labels <- names(response) %||% .set_row_names(length(response))
  numbers <- suppressWarnings(as.integer(labels))
  if (!anyNA(numbers) && identical(as.character(numbers), labels)) labels <- numbers
  structure(columns, row.names = labels, class = "data.frame")
}

# Returns what a fit keeps of its model frame after rows were added. `added` has their model frame mf and, in `raw`, the
# variables inside of functions. Returns NULL if the fit kept no model frame or `added` has other columns.
kept_with_rows <- function(fit, added, data) {
  old <- kept_frame(fit)
  if (is.null(old) || !identical(names(old), names(added$mf))) return(NULL)
  raw <- fit$data$kept$raw
  if (!all(names(raw) %in% names(added$raw))) return(NULL)
  both <- function(a, b) {
    own <- attributes(a)[setdiff(names(attributes(a)), c("dim", "dimnames"))] # such as the class of places and times
    if (length(dim(a)) == 2L) return(do.call(structure, c(list(rbind(a, check_same_columns(b, a, "newdata"))), own)))
    text <- c(as.character(a), as.character(b)) # because c() makes codes of a factor beside text
    if (is.factor(a)) return(factor(text, union(levels(a), levels(as.factor(b))), ordered = is.ordered(a)))
    if (is.factor(b)) text else c(a, b)
  }
  mf <- Map(both, unclass(old)[names(old)], unclass(added$mf)[names(old)])
  frame_to_keep(mf, data, Map(both, raw, added$raw[names(raw)]))
}

# Returns the formula's variables, weights and offset at the rows of the fit, or NULL if the fit does not keep them all.
kept_variables <- function(fit) {
  mf <- kept_frame(fit)
  if (is.null(mf)) return(NULL)
  columns <- c(unclass(mf)[names(mf)], fit$data$kept$raw)
  needed <- union(fit$frame$required, all.vars(fit$terms[[2L]]))
  if (!all(needed %in% names(columns))) return(NULL)
  names <- intersect(names(columns), c(all.vars(attr(fit$terms, "variables")), needed, "(weights)", "(offset)"))
  as_data_frame(columns[names], fit$data$response)
}
