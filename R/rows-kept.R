# The model frame that a fit of a formula holds. Columns that equal inputs or the response of the cleaned data are not
# stored again, so a fit hardly grows.

# Returns what of a model frame the cleaned data lack: list(names, the names of its columns; columns, those that the
# data do not have in the same form; raw, variables inside of functions, such as x of log(x)).
frame_to_keep <- function(mf, data, raw = list()) {
  known <- columns_of_data(data, mf)
  same <- vapply(names(mf), function(name) identical(known[[name]], mf[[name]]), NA)
  list(names = names(mf), columns = unclass(mf)[names(mf)[!same]], raw = raw)
}

# Returns plain numbers of the cleaned data under the names that they have in a model frame.
columns_of_data <- function(data, names) {
  if (is.list(names)) {
    names <- names(names)[vapply(names, function(v) is.double(v) && is.null(attributes(v)), NA)]
  }
  inputs <- training_inputs(data)
  wanted <- intersect(names, colnames(inputs$x))
  out <- lapply(stats::setNames(nm = wanted), function(name) unname(inputs$x[inputs$index, name]))
  response <- deparse1(data$terms[[2L]])
  if (response %in% names) out[[response]] <- unname(given_response(data))
  out
}

# Returns the variables of the formula and of its offset that the model frame has only inside of functions, at its rows.
# Values of another length, such as constants, stay where they are.
raw_variables <- function(mf, frame, terms, call, envir) {
  names <- setdiff(union(needed_variables(frame), all.vars(attr(terms, "variables"))), names(mf))
  if (!length(names)) return(list())
  data <- eval(call$data, envir)
  labels <- attr(mf, "row.names")
  rows <- if (is.data.frame(data)) nrow(data) else
    NROW(eval(attr(terms, "variables")[[1L + attr(terms, "response")]], data, environment(terms)))
  at <- if (is.data.frame(data) && is.character(attr(data, "row.names"))) match(labels, row.names(data)) else
    if (is.data.frame(data)) match(labels, attr(data, "row.names")) else suppressWarnings(as.integer(labels))
  if (anyNA(at) || any(at > rows)) return(list())
  found <- lapply(stats::setNames(nm = names), function(name) {
    value <- tryCatch(eval(as.name(name), data, environment(terms)), error = function(e) NULL)
    if (is.function(value) || NROW(value) != rows || length(at) != nrow(mf)) return(NULL)
    if (identical(at, seq_len(rows))) return(value)
    if (length(dim(value)) == 2L) value[at, , drop = FALSE] else value[at]
  })
  Filter(Negate(is.null), found)
}

# Returns the names of the variables in a formula and in its offset.
needed_variables <- function(frame) {
  union(all.vars(attr(frame$terms, "variables")), if (is.language(frame$offset)) all.vars(frame$offset))
}

# Returns the model frame that a fit holds, or NULL if it holds none.
kept_frame <- function(fit) {
  kept <- fit$data$kept
  if (is.null(kept)) return(NULL)
  columns <- c(kept$columns, columns_of_data(fit$data, setdiff(kept$names, names(kept$columns))))
  structure(as_data_frame(columns[kept$names], fit$data$response), terms = fit$terms, na.action = fit$na.action)
}

# Returns columns as a data frame whose rows have the names of the response.
as_data_frame <- function(columns, response) {
  labels <- names(response) %||% .set_row_names(length(response))
  if (is.character(labels)) {
    numbers <- suppressWarnings(as.integer(labels))
    if (!anyNA(numbers) && identical(as.character(numbers), labels)) labels <- numbers
  }
  structure(columns, row.names = labels, class = "data.frame")
}

# Returns what is kept of the model frame after the rows of another one, list(mf, raw), were added. NULL: the old rows
# were not kept.
kept_with_rows <- function(fit, added, data) {
  old <- kept_frame(fit)
  if (is.null(old) || !identical(names(old), names(added$mf))) return(NULL)
  raw <- fit$data$kept$raw
  if (!all(names(raw) %in% names(added$raw))) return(NULL)
  both <- function(a, b) {
    if (length(dim(a)) == 2L) return(rbind(a, b))
    if (is.factor(a) && !is.ordered(a)) return(factor(c(as.character(a), as.character(b)), union(levels(a), levels(b))))
    c(a, b)
  }
  mf <- Map(both, unclass(old)[names(old)], unclass(added$mf)[names(old)])
  frame_to_keep(mf, data, Map(both, raw, added$raw[names(raw)]))
}

# Returns what is kept of the model frame after some rows were dropped.
kept_without_rows <- function(kept, rows) {
  without <- function(v) if (length(dim(v)) == 2L) v[-rows, , drop = FALSE] else v[-rows]
  kept[c("columns", "raw")] <- lapply(kept[c("columns", "raw")], lapply, without)
  kept
}

# Returns the variables of the formula at the rows of the fit, with weights and offset as in a model frame. Returns NULL
# if the fit does not hold all of them.
kept_variables <- function(fit) {
  mf <- kept_frame(fit)
  if (is.null(mf)) return(NULL)
  columns <- c(unclass(mf)[names(mf)], fit$data$kept$raw)
  needed <- union(fit$frame$required, all.vars(fit$terms[[2L]]))
  if (!all(needed %in% names(columns))) return(NULL)
  names <- intersect(names(columns), c(all.vars(attr(fit$terms, "variables")), needed, "(weights)", "(offset)"))
  as_data_frame(columns[names], fit$data$response)
}
