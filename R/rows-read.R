# The formula method of the front end: formula and data -> model frame -> columns -> clean_data().

# To be called as lm() does it, from a method with arguments formula, data, ..., subset, weights,
# na.action, offset:
#   data_from_formula(match.call(), parent.frame(), center = , scale = )
# `call` is searched for those six by name; `subset`, `weights` and `offset` are evaluated in
# `data`, then in the formula's environment; formula, data and na.action in `envir`.
data_from_formula <- function(call, envir, center = TRUE, scale = TRUE, merge = TRUE, likelihood = NULL) {
  mf <- make_model_frame(call, envir)
  terms <- attr(mf, "terms")
  used <- input_variables(terms)
  # "1", "2", ... of many rows take 64 bytes each
  labels <- if (nrow(mf) <= many_rows || is.character(attr(mf, "row.names"))) row.names(mf)
  if (!nrow(mf)) abort_input("data", "no rows", "of at least one row without missing values")

  inputs <- lapply(names(mf)[used], function(name) code_variable(mf[[name]], name))
  check_levels_return(inputs, nrow(mf))
  rows <- rows_of_frame(mf, inputs, labels)
  data <- clean_rows(rows$x, rows$response, rows$name, rows$w, rows$offset, indicator = columns_of_levels(inputs),
                     labels = labels, center = center, scale = scale, merge = merge, likelihood = likelihood,
                     rows = labels)
  data$na_action <- attr(mf, "na.action")
  data <- add_formula(data, terms, inputs, call)
  data$frame$required <- data_variables(data$frame, terms, call, envir)
  data
}

# list(x, response, name, w, offset) of a model frame; `variables`: how its inputs are coded; `labels`: what messages
# call the rows.
rows_of_frame <- function(mf, variables, labels, argument = "data") {
  response <- attr(attr(mf, "terms"), "response")
  n <- nrow(mf)
  w <- mf[["(weights)"]]
  offset <- tryCatch(stats::model.offset(mf), error = function(e) abort_input("offset", "of another type", "numeric"))
  x <- bind_columns(variables, mf)
  check_complete(x, variables, labels, argument)
  list(x = x, response = mf[[response]], name = names(mf)[response], # model.response() would name each row
       w = if (!is.null(w)) check_weights(w, n), offset = if (!is.null(offset)) check_vector(offset, "offset", n))
}

# Is each column that of a level, or of a logical?
columns_of_levels <- function(variables) {
  unlist(lapply(variables, function(v) rep(v$kind %in% c("factor", "logical"), v$width)))
}

# What the data know of their formula, but for the variables that new rows must have.
add_formula <- function(data, terms, variables, call) {
  data$terms <- terms
  data$var_names <- vapply(variables, `[[`, "", "name")
  data$assign <- rep(seq_along(variables), vapply(variables, `[[`, 1L, "width"))
  levels <- lapply(variables, `[[`, "levels")
  data$xlevels <- stats::setNames(levels, data$var_names)[!vapply(levels, is.null, NA)]
  data$frame <- list(method = "formula", columns = colnames(data$x), terms = input_terms(terms, input_variables(terms)),
                     variables = variables, offset = recomputable_offset(call$offset))
  data
}

# Beyond so many rows memory is looked after.
many_rows <- 1e5

# model.frame() as lm() calls it: unused factor levels are dropped, so a level without a row has no
# column.
make_model_frame <- function(call, envir) {
  if (is.null(call$formula)) abort_input("formula", "missing", "a formula such as y ~ x1 + x2")
  formula <- eval(call$formula, envir)
  if (!inherits(formula, "formula")) {
    abort_input("formula", describe(formula), "a formula such as y ~ x1 + x2")
  }
  if (any(vapply(as.list(formula)[-1L], function(side) is.null(side) || is.character(side), NA))) {
    abort_input("formula", deparse1(formula), "of variables, as y ~ x1 + x2 is, with neither text nor NULL for a side")
  }
  parts <- list(quote(stats::model.frame), formula = formula, drop.unused.levels = TRUE)
  data <- eval(call$data, envir)
  if (!is.null(data)) {
    if (!is.list(data) && !is.environment(data)) {
      abort_input("data", describe(data), "a data frame",
                  hint = "as.data.frame() makes one of a matrix.")
    }
    parts$data <- data
  }
  given <- intersect(c("subset", "weights", "na.action", "offset"), names(call))
  parts[given] <- as.list(call)[given]
  if (NROW(data) > many_rows && is.null(call$na.action) && identical(getOption("na.action"), "na.omit")) {
    whole <- evaluate_frame(c(parts, na.action = quote(stats::na.pass)), envir)
    if (!anyNA(whole, recursive = TRUE)) return(whole) # na.omit() would copy it all the same
  }
  evaluate_frame(parts, envir)
}

# The call of model.frame() in `parts`, and its errors by the argument they are about.
evaluate_frame <- function(parts, envir) {
  tryCatch(eval(as.call(parts), envir), error = function(e) {
    text <- sub("\\.$", "", conditionMessage(e))
    argument <- if (grepl("(weights)", text, fixed = TRUE)) "weights" else
      if (grepl("(offset)", text, fixed = TRUE)) "offset" else
        if (identical(text, "missing values in object")) "na.action" else "formula"
    abort_input(argument, text, "usable with `data`", hint = missing_variable(text, parts$data),
                message = sprintf("`%s` cannot be used with the data: %s.", argument, text))
  })
}

# What may have been meant by what R does not find; NULL for any other error.
missing_variable <- function(text, data) {
  if (grepl("could not find function \"(s|te|ti|t2)\"", text)) {
    return("The process is smooth in every input, and in all of them together: name each once, as in y ~ a + b.")
  }
  name <- regmatches(text, regexec("^object '(.*)' not found$", text))[[1L]][2L]
  if (is.na(name)) return(NULL)
  if (is.null(data)) return("There is no `data` argument.")
  did_you_mean(name, names(data))
}

# The variables of the right-hand side, as columns of the model frame, in the order of its terms.
input_variables <- function(terms) {
  if (!attr(terms, "response")) {
    abort_input("formula", "one without", "a formula with a response, such as y ~ x1 + x2")
  }
  labels <- attr(terms, "term.labels")
  crossed <- labels[attr(terms, "order") > 1L]
  if (length(crossed)) {
    abort_input("formula", sprintf("one with %s", list_quoted(crossed)), "a sum of variables",
                hint = paste("The kernel lets all inputs interact as it is:",
                             "name each variable once, as in y ~ a + b."))
  }
  if (!length(labels)) {
    abort_input("formula", "one without", "a formula with an input on its right-hand side",
                hint = "A constant is no Gaussian process: y ~ x1 + x2 would do.")
  }
  factors <- attr(terms, "factors")
  used <- unname(apply(factors[, labels, drop = FALSE] > 0, 2L, which))
  if (attr(terms, "response") %in% used) {
    abort_input("formula", "one with it on both sides",
                "a formula with the response on its left only")
  }
  used
}

# How one variable becomes columns: list(name, kind, levels, width, columns = their names).
code_variable <- function(v, name) {
  kind <- variable_kind(v)
  if (is.na(kind)) {
    abort_input("formula", sprintf("`%s`, of %s", name, describe_column(v)),
                "made of numeric, logical, factor or character variables",
                hint = reason_not_numeric(v))
  }
  levels <- if (kind == "factor") {
    if (is.factor(v)) levels(v) else levels(factor(v))
  }
  width <- if (kind == "factor") length(levels) else if (kind == "matrix") ncol(v) else 1L
  check_memory(8 * NROW(v) * width, sprintf("the %d columns of `%s`", width, name))
  columns <- switch(kind, factor = paste0(name, levels), matrix = matrix_columns(v, name), name)
  list(name = name, kind = kind, levels = levels, width = width, columns = columns)
}

# A column for every row would take hours to learn, and new rows have none of its values.
check_levels_return <- function(variables, n) {
  for (v in variables) {
    k <- length(v$levels)
    if (k > max(50, 0.9 * n)) {
      abort_input("formula", sprintf("`%s`, with %d different values in %.0f rows", v$name, k, n),
                  "of variables whose values come again, where they are text or factors",
                  hint = paste("as.numeric() makes numbers of numbers that were read as text;",
                               "what identifies a row tells nothing of others."))
    }
  }
}

variable_kind <- function(v) {
  if (is.factor(v) || (is.character(v) && is.null(dim(v)))) return("factor")
  if (!is_plain_numeric(v) || is.data.frame(v)) return(NA_character_)
  if (length(dim(v)) == 2L) return("matrix")
  if (length(dim(v)) > 2L) return(NA_character_)
  if (is.logical(v)) "logical" else "numeric"
}

# As model.matrix() names them.
matrix_columns <- function(v, name) {
  names <- colnames(v)
  if (is.null(names)) names <- if (ncol(v) > 1L) seq_len(ncol(v)) else ""
  paste0(name, names)
}

# The columns of a coded variable, for old rows and new: NA where the value is missing.
variable_columns <- function(v, spec) {
  if (spec$kind != "factor") return(matrix(as.double(v), ncol = spec$width))
  code <- match(as.character(v), spec$levels)
  m <- matrix(0, length(code), spec$width)
  m[cbind(seq_along(code), code)] <- 1
  if (anyNA(code)) m[is.na(code), ] <- NA
  m
}

# All variables side by side; `values` holds them by name.
bind_columns <- function(variables, values) {
  columns <- unlist(lapply(variables, `[[`, "columns"))
  x <- matrix(0, nrow(values), length(columns), dimnames = list(NULL, make.unique(columns)))
  at <- 0L
  for (v in variables) {
    x[, at + seq_len(v$width)] <- variable_columns(values[[v$name]], v)
    at <- at + v$width
  }
  x
}

# What na.action let through: Inf always, NA under na.pass. Rows by their names, as users know them.
check_complete <- function(x, variables, labels, argument, allow_na = FALSE) {
  i <- first_not_finite(x, allow_na)
  if (is.na(i)) return(invisible(NULL))
  at <- arrayInd(i, dim(x))
  owner <- rep(seq_along(variables), vapply(variables, `[[`, 1L, "width"))[at[2L]]
  name <- variables[[owner]]$name
  row <- if (is.null(labels)) at[1L] else labels[at[1L]]
  abort_input(argument, sprintf("%s in row %s of `%s`", format(x[i]), row, name),
              "finite in every variable of the formula",
              hint = if (is.na(x[i])) "`na.action = na.omit` leaves rows with missing values out.")
}

# Terms of what prediction needs: the inputs in use and offset() terms. Without the response, and
# without variables taken out again (y ~ . - id), which newdata need not have.
input_terms <- function(terms, used) {
  a <- attributes(terms)
  keep <- sort(c(used, a$offset))
  body <- terms
  if (length(body) == 3L) body[[2L]] <- NULL
  a$variables <- a$variables[c(1L, 1L + keep)]
  a$predvars <- a$predvars[c(1L, 1L + keep)]
  a$factors <- a$factors[keep, , drop = FALSE]
  a$offset <- if (length(a$offset)) match(a$offset, keep)
  a$dataClasses <- a$dataClasses[keep]
  a$response <- 0L
  attributes(body) <- a
  body
}

# The offset argument's expression, evaluated again in newdata. A vector spliced into the call
# (do.call()) belongs to the training rows alone; a single number holds for every row.
recomputable_offset <- function(offset) {
  if (is.null(offset) || is.language(offset) || length(offset) == 1L) offset else NA
}

# Names that newdata must have: the columns of `data` in use and, for variables found elsewhere,
# those with a value for each row. Without this a variable that newdata lacks would be found where
# the training rows are, silently.
data_variables <- function(frame, terms, call, envir) {
  names <- needed_variables(frame)
  env <- environment(terms)
  data <- eval(call$data, envir)
  if (is.data.frame(data)) {
    columns <- intersect(names, names(data))
    rest <- setdiff(names, columns)
    rows <- nrow(data)
  } else {
    columns <- character()
    rest <- names
    rows <- NROW(eval(attr(terms, "variables")[[1L + attr(terms, "response")]], data, env))
  }
  if (is.data.frame(data) && rows == 1L) return(columns)
  full <- vapply(rest, function(v) {
    value <- tryCatch(eval(as.name(v), data, env), error = function(e) NULL)
    !is.function(value) && NROW(value) == rows
  }, NA)
  c(columns, rest[full])
}

needed_variables <- function(frame) {
  union(all.vars(attr(frame$terms, "variables")), if (is.language(frame$offset)) all.vars(frame$offset))
}

# The part of `data` that a fit carries to read newdata. A fit without its data must not drag along
# the environment the formula was written in (it may hold the data): functions and constants of the
# formula are then looked for in the workspace and the attached packages, where log(), poly() and
# the like are found.
make_frame <- function(data, keep_data = TRUE) {
  frame <- data$frame
  if (!keep_data) {
    if (length(data$offset)) frame$offset_size <- offset_size(data) # certificates allow for its rounding
    if (!is.null(frame$terms)) frame$terms <- drop_environment(frame$terms)
    # least, median and greatest of each input: what plot() needs to know of the rows
    frame$outline <- vapply(seq_len(ncol(data$x)), function(j) { # a column at a time: x may be large
      stats::quantile(data$x[, j], c(0, 0.5, 1), names = FALSE)
    }, numeric(3L))
  }
  frame
}

drop_environment <- function(terms) {
  if (is.null(terms)) return(NULL)
  attr(terms, ".Environment") <- globalenv()
  terms
}

# A call without environments or data spliced into it by do.call(): formulas lose theirs, and a
# value in place of an argument's expression becomes the argument's name, unless it is a single
# number, string or flag.
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
