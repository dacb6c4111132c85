# Reads further rows for a fit: rows to predict at, rows with a response, and the fit's own data, looked up by name.

by_formula <- function(fit) fit$frame$method == "formula"

# Returns rows to predict at, with inputs as columns like those of the fit: list(
#   x          the rows without missing values, a double matrix
#   offset     0, or a number for each element of keep
#   keep       for each row that na.action keeps: TRUE if it is complete, so that it is in x
#   row_names  names of the rows that na.action keeps, or NULL)
# With na.pass an incomplete row has keep FALSE, and its prediction is NA; na.omit and na.exclude drop such rows. A fit
# of a matrix has no offset in new rows. With `re` FALSE the variables of groups may be missing.
new_inputs <- function(fit, newdata, na.action = stats::na.pass, re = TRUE) {
  refuse_if(is.null(newdata), "newdata", "is NULL", hint = "Give the rows to predict at.")
  new <- if (by_formula(fit)) rows_by_formula(fit$frame, newdata, re) else rows_by_matrix(fit$frame, newdata)
  complete <- stats::complete.cases(new$x)
  most <- 1e300 * max(1, fit$scale^2) # a linear mean's variance at x grows like x^2, and would overflow
  if (isTRUE(varies(fit$kernel)) && !all(kernel_diagonal(fit$kernel, new$x[complete, , drop = FALSE]) < most)) {
    largest <- sprintf("up to %s", format(max(abs(new$x[complete, ])), digits = 3))
    abort_input("newdata", largest,
                message = sprintf("`newdata` has inputs of %s, whose squares are too large for the kernel.", largest))
  }
  if (anyNA(new$offset)) complete <- complete & !is.na(new$offset)
  if (all(complete)) return(c(new, list(keep = complete))[c("x", "offset", "keep", "row_names")])
  # Apply na.action to a column that is NA in incomplete rows, to see which rows it drops.
  left <- if (!is.null(na.action)) tryCatch({
    match.fun(na.action)(data.frame(value = ifelse(complete, 0, NA)))
  }, error = function(e) {
    abort_input("newdata", sprintf("has missing values in row %d", which(!complete)[1L]),
                hint = sprintf("The error of `na.action`: %s.", sub("[.]$", "", conditionMessage(e))))
  })
  stay <- !seq_along(complete) %in% attr(left, "na.action")
  list(x = new$x[stay & complete, , drop = FALSE],
       offset = if (length(new$offset) == length(stay)) new$offset[stay] else new$offset,
       keep = complete[stay], row_names = new$row_names[stay])
}

rows_by_matrix <- function(frame, newdata) {
  d <- length(frame$columns)
  if (is_plain_numeric(newdata) && is.null(dim(newdata)) && d > 1L) {
    refuse_if(length(newdata) != d, "newdata", describe(newdata), sprintf("a matrix or data frame with %d columns", d))
    newdata <- matrix(newdata, 1L, dimnames = list(NULL, names(newdata)))
  }
  if (is.data.frame(newdata)) newdata <- match_columns(frame, newdata)
  labels <- row_labels(newdata, NULL)
  x <- check_matrix(newdata, "newdata", allow_na = TRUE)
  if (!identical(colnames(x), frame$columns)) x <- match_columns(frame, x)
  if (!is.null(rownames(x)) || !identical(colnames(x), frame$columns)) dimnames(x) <- list(NULL, frame$columns)
  list(x = x, offset = 0, row_names = labels)
}

# Returns newdata with the fit's columns: matched by name if both have names, else by position.
match_columns <- function(frame, newdata) {
  d <- length(frame$columns)
  names <- colnames(newdata)
  if (!frame$named || is.null(names) || !all(nzchar(names))) {
    if (ncol(newdata) == d) return(newdata)
    abort_input("newdata", sprintf("has %s, but the fit has %d", count_of(ncol(newdata), "column"), d))
  }
  if (is.data.frame(newdata) && any(vapply(newdata, is.matrix, NA))) return(newdata)
  check_columns(frame$columns, make.unique(names))
  at <- match(frame$columns, make.unique(names))
  if (identical(at, seq_len(ncol(newdata)))) newdata else newdata[, at, drop = FALSE]
}

check_columns <- function(needed, names, hint = NULL) {
  lacking <- setdiff(needed, names)
  refuse_if(length(lacking), "newdata", sprintf("lacks %s, which the fit needs", list_quoted(lacking)), hint = hint)
}

rows_by_formula <- function(frame, newdata, re) {
  newdata <- rows_at_places(frame, newdata)
  refuse_if(!is.list(newdata), "newdata", describe(newdata), "a data frame with the variables of the formula",
            hint = c(reason_not_numeric(newdata), if (is.matrix(newdata)) "as.data.frame() converts it.")[1L])
  rows <- if (is.data.frame(newdata)) newdata else evaluate_new(as.data.frame(newdata, optional = TRUE))
  of_groups <- unlist(lapply(frame$variables, `[[`, "vars"))
  if (!re) for (name in setdiff(of_groups, names(rows))) rows[[name]] <- rep(NA, nrow(rows))
  lacking <- setdiff(frame$required, names(rows))
  check_columns(frame$required, names(rows), if (length(lacking) && all(lacking %in% of_groups))
    "With re = FALSE predict() needs no groups: their effects are 0 then.")
  n <- nrow(rows)
  columns <- unlist(lapply(frame$variables, `[[`, "columns"))
  if (!n) return(list(x = matrix(0, 0L, length(columns)), offset = numeric(), row_names = row.names(rows)))
  mf <- evaluate_new(stats::model.frame(frame$terms, rows, na.action = stats::na.pass))
  refuse_if(nrow(mf) != n, "newdata", sprintf("has %d rows, but a variable of the formula has %d values", n, nrow(mf)),
            hint = "Fit with variables of `data`, by name: y ~ x, not y ~ d$x.")
  labels <- row.names(mf)
  mf <- check_new_variables(mf, frame)
  x <- evaluate_new(bind_columns(frame$variables, mf))
  if (re) x <- check_new_levels(frame$variables, x)
  check_finite(x, "newdata", TRUE, labels, variable_of_columns(frame$variables))
  # Add up the offset() terms and the offset argument, evaluated in newdata, like predict.lm(). model.offset() gets
  # columns without names, because a column of newdata may be called (offset).
  total <- evaluate_new(stats::model.offset(stats::setNames(mf, rep("", length(mf))))) %||% 0
  if (!is.null(frame$offset)) {
    hint <- "Fit with offset(<variable>) in the formula to predict at new rows."
    refuse_if(identical(frame$offset, NA) || "(offset)" %in% frame$together, "offset",
              "has values for the training rows only", hint = hint)
    value <- evaluate_new(eval(frame$offset, rows, environment(frame$terms)))
    refuse_if(!is_plain_numeric(value) || !length(value) %in% c(1L, n), "offset", describe(value),
              sprintf("a number for each of the %d rows of newdata", n), hint = hint)
    total <- total + as.double(value)
  }
  refuse_if(any(is.infinite(total)), "newdata", "has an infinite offset")
  if (length(total) == 1L && !identical(total, 0)) total <- rep(total, n)
  list(x = x, offset = as.double(total), row_names = labels)
}

evaluate_new <- function(expr) {
  tryCatch(expr, error = function(e) {
    text <- sub("\\.$", "", conditionMessage(e))
    abort_input("newdata", sprintf("cannot be used with the formula of the fit: %s", text))
  })
}

# Returns `rows` with NA for levels of factors that `fit`, the part of a hurdle model for responses above 0, lacks.
rows_above_0 <- function(fit, rows) {
  for (v in Filter(function(v) v$kind == "factor" && v$name %in% names(rows), fit$frame$variables)) {
    lacks <- !rows[[v$name]] %in% c(v$levels, NA)
    if (any(lacks)) warn_classed("undefined", sprintf(
      "The mean is NA where `%s` is %s: all responses of the data are 0 there, so those above 0 are unknown.",
      v$name, list_quoted(unique(as.character(rows[[v$name]][lacks])), "\"")))
    rows[[v$name]][lacks] <- NA
  }
  rows
}

# Returns the rows of a hurdle model without those that have missing values. With na.exclude and `padded`, these are NA.
rows_of_hurdle <- function(fit, padded = TRUE) {
  omitted <- fit$zero$na.action
  pad <- padded && inherits(omitted, "exclude")
  if (pad) fit$data[omitted, ] <- NA
  if (pad || is.null(omitted)) fit$data else fit$data[-omitted, , drop = FALSE]
}

# Evaluates `rows`. An error about `newdata` becomes one about `argument`, the user's name for these rows.
naming_argument <- function(argument, rows) {
  tryCatch(rows, pfdtc_error_input = function(e) {
    message <- gsub("`newdata`", sprintf("`%s`", argument), conditionMessage(e), fixed = TRUE)
    abort_input(argument, e$got, message = message)
  })
}

# Returns the model frame of new rows. Stops if a variable depends on the other rows, has another kind than in the fit,
# or levels that the fit lacks (grouping factors may). A column of NA may have any kind; logical values may be numbers.
check_new_variables <- function(mf, frame) {
  together <- sub("^[(](weights|offset)[)]$", "\\1", intersect(frame$together, names(mf)))
  refuse_if(length(together), "newdata", "has other rows", hint = "Fit with a column of `data` instead.", message =
    sprintf("Values of %s in `newdata` alone differ from those among the rows of the fit.", list_quoted(together)))
  for (spec in Filter(function(v) v$kind != "group", frame$variables)) {
    v <- mf[[spec$name]]
    kind <- variable_kind(v)
    if (identical(kind, "logical") && all(is.na(v))) {
      if (spec$kind == "matrix" && spec$width > 1L) mf[[spec$name]] <- matrix(NA, length(v), spec$width)
      next
    }
    same <- identical(kind, spec$kind) || (identical(kind, "logical") && spec$kind == "numeric") ||
      (spec$kind == "matrix" && spec$width == 1L && identical(kind, "numeric"))
    unknown <- if (same && kind == "factor") setdiff(as.character(unique(v)), c(spec$levels, NA))
    wrong <- if (!same) {
      want <- switch(spec$kind, factor = "a factor or character", time = "a date or time,", paste0(spec$kind, ","))
      got <- if (is.na(kind)) describe_column(v) else if (kind == "factor") class(v)[1L] else kind
      sprintf("must be %s as in the fit; it is %s", want, got)
    } else if (kind == "matrix" && ncol(v) != spec$width) {
      sprintf("has %d columns, but the fit needs %d", ncol(v), spec$width)
    } else if (length(unknown)) {
      sprintf("has the level%s %s, which the fit does not have", plural_s(length(unknown)), list_quoted(unknown, "\""))
    }
    refuse_if(!is.null(wrong), "newdata", wrong, message = sprintf("Variable `%s` of `newdata` %s.", spec$name, wrong),
              hint = if (length(unknown)) paste0("The fit has the levels ", list_quoted(spec$levels, "\"", most = 10L),
                ". If the level is replaced by NA, the row's prediction is NA",
                if (length(spec$levels) > 5L) sprintf("; a fit with (1 | %s) predicts new levels", spec$name), "."))
    if (kind == "matrix") {
      names <- substring(spec$columns, nchar(spec$name) + 1L)
      named <- any(names != seq_along(names)) || all(names %in% colnames(v)) # 1, 2, ... are given if there are none
      mf[[spec$name]] <- check_same_columns(v, v, paste0("newdata$", spec$name), names = if (named) names)
    }
  }
  mf
}

# Returns rows with a response as list(x, response, offset, w, keep). x has columns like the fit; `keep` marks rows of
# positive weight. Further elements: y and size for a non-Gaussian likelihood; `given`, the response before a transform;
# labels, variables and frame for a formula. `fit` is a fit or a result of fit_recipe().
training_rows_from <- function(fit, newdata) {
  rows <- if (by_formula(fit)) {
    formula_rows_again(fit, rows_at_places(fit$frame, newdata))
  } else {
    refuse_if(!is.list(newdata) || is.data.frame(newdata) || !all(c("x", "y") %in% names(newdata)), "newdata",
              describe(newdata), "a list with `x` and `y`, because the fit is of a matrix")
    x <- check_finite(rows_by_matrix(fit$frame, newdata$x)$x, "newdata")
    list(x = x, response = newdata$y, name = "y",
         w = if (!is.null(newdata$weights)) check_weights(newdata$weights, nrow(x)),
         offset = if (!is.null(newdata$offset)) check_vector(newdata$offset, "offset", nrow(x)))
  }
  n <- nrow(rows$x)
  if (!n && is.logical(rows$response)) rows$response <- numeric() # all responses were NA
  given <- if (response_of(fit)$conjugate) {
    list(response = check_response(rows$response, rows$name, n, rows$labels), w = rows$w)
  } else {
    read <- read_response(fit$likelihood, known_classes(fit, rows$response), rows$w, rows$name, n)
    list(response = read$response, w = read$weight, y = read$y, size = read$size)
  }
  given <- c(rows[c("x", "offset")], given, rows[intersect(c("labels", "variables", "frame"), names(rows))])
  if (!is.null(fit$noise_trend)) given$w <- (given$w %||% 1) / noise_factor(fit$noise_trend, given$x)
  if (!is.null(fit$transform)) {
    if (fit$transform$kind == "log") check_positive_response(given$response, "newdata")
    given[c("given", "response")] <- list(given$response, transformed(fit$transform, given$response))
  }
  given$keep <- (given$w %||% rep(1, length(given$response))) > 0
  given
}

added_rows <- function(fit, newdata) cleaned(fit, training_rows_from(fit, newdata))

# Returns rows with a response for a fit by a formula: list(x, response, name, w, offset, labels, variables, frame).
formula_rows_again <- function(fit, newdata) {
  refuse_if(!is.data.frame(newdata), "newdata", describe(newdata),
            "a data frame with the variables of the formula and the response")
  check_columns(c(fit$frame$required, all.vars(stats::formula(fit$terms)[[2L]])), names(newdata))
  given <- as.list(fit$call)[intersect(c("weights", "offset", fit$subset), names(fit$call))]
  for (name in names(Filter(is.call, given))) given[[name]] <- fit$frame[[name]] %||% given[[name]]
  mf <- evaluate_frame(c(list(quote(stats::model.frame), formula = fit$terms, data = newdata,
                              na.action = quote(stats::na.omit)), given), environment(fit$terms))
  labels <- row.names(mf)
  mf <- check_new_variables(mf, fit$frame)
  variables <- lapply(fit$frame$variables, function(v) { # add the levels of groups in the new rows
    if (v$kind == "group") v$levels <- union(v$levels, stats::na.omit(group_keys(v, mf)))
    v
  })
  kept <- fit$data$kept
  frame <- if (!is.null(kept)) list(mf = mf, raw = variables_by_row(names(kept$raw), mf, fit$terms, newdata))
  c(rows_of_frame(mf, variables, labels, "newdata", fit$frame$response_unit),
    list(labels = labels, variables = variables, frame = frame))
}

# Returns all rows of the data before merging: list(x, response, offset, w, given, y, size). `w` has weights, `given`
# the response before a transform, `y` and `size` responses and trials of a non-Gaussian likelihood.
rows_of_data <- function(data) {
  inputs <- training_inputs(data)
  sites <- data$sites
  list(x = inputs$x[inputs$index, , drop = FALSE], response = data$response, offset = data$offset,
       w = data$prior_weights, given = data$given_response, y = if (!is.null(sites)) unname(all_rows(data, sites$y, 0)),
       size = if (!is.null(sites$size)) unname(all_rows(data, sites$size, 1)))
}

extended_rows <- function(old, new) {
  both <- function(what, default) {
    if (is.null(old[[what]]) && is.null(new[[what]])) return(NULL)
    unlist(lapply(list(old, new), function(rows) rows[[what]] %||% rep(default, length(rows$response))))
  }
  names <- names(old$response)
  if (!is.null(names)) names <- make.unique(c(names, new$labels %||% (length(names) + seq_along(new$response))))
  list(x = rbind(old$x, new$x), response = stats::setNames(c(old$response, new$response), names),
       offset = both("offset", 0), w = both("w", 1), given = c(old$given, new$given), y = c(old$y, new$y),
       size = both("size", 1))
}

# Returns the data of a fit with `rows` instead of its own. A fit with neighbours merges all equal rows. Another
# Gaussian fit merges them if its method does so and at most 90 % of the rows are distinct.
data_of_rows <- function(data, rows, fit) {
  w <- rows$w
  keep <- (w %||% rep(1, nrow(rows$x))) > 0
  refuse_if(!any(keep), "rows", "removes all rows", hint = "A fit needs at least one.")
  if (!response_of(fit)$conjugate) {
    out <- clean_again(data, rows$x, unname(rows$response), w, NULL, FALSE, FALSE, FALSE, labels = names(rows$response))
    out["na_action"] <- data["na_action"]
    return(with_sites(out, list(y = rows$y, size = rows$size, weight = w, levels = data$levels,
                               ordered = data$ordered), rows$offset))
  }
  most <- if (!is.null(fit$near)) 1 - 1 / sum(keep) else if (merges_rows(fit$method)) 0.9 else 0
  made <- clean_data(rows$x, unname(rows$response), "newdata", w, rows$offset, names(rows$response),
                     FALSE, FALSE, most, unit = data)
  changed <- c("x", "y", "weights", "group", "twins", "x_zero", "n", "shift", "response", "offset", "prior_weights")
  data[changed] <- made[changed]
  if (!is.null(fit$transform)) {
    data$given_response <- stats::setNames(rows$given, names(rows$response))
    data$shift$constant <- data$shift$constant + sum(log_slope(fit$transform, unname(rows$given))[keep])
  }
  given <- if (!is.null(fit$noise_trend)) w * noise_factor(fit$noise_trend, rows$x)
  if (length(given)) data["given_weights"] <- list(if (any(abs(given - 1) > 1e-12)) given) # omits weights of 1
  data
}

# Returns the small part of a fit that workers need to read rows by training_rows_from(). If `new` is FALSE, the rows
# are those of the fit, so the argument `subset` of its call is evaluated.
fit_recipe <- function(fit, new = FALSE) {
  call <- as.list(fit$call)[intersect(c("weights", "offset", "subset"), names(fit$call))]
  terms <- if (!is.null(fit$terms)) with_global_objects(fit$terms, call, fit$frame$required)
  c(fit[c("frame", "center", "scale")], list(terms = terms, call = call, subset = if (!new) "subset"))
}

# Returns `data`, a data frame or a source with the rows of the fit, as a row source.
source_of_fit <- function(fit, data) {
  refuse_if(!by_formula(fit), "fit", "is a fit from a matrix", hint = "Rows can be read again only by a formula.")
  if (is.data.frame(data)) return(rows_in_memory(data))
  refuse_if(!is_source(data), "data", describe(data), "a row source or a data frame")
  data
}

# Returns the fit with all rows of a source as data, for products k(x, x) v (computed by workers if they hold the rows).
with_rows_of <- function(fit, source) {
  numbers <- 2 * length(fit$frame$columns) + 6
  check_memory(8 * fit$nobs * numbers, sprintf("all %s rows, for products over their pairs,", show_count(fit$nobs)))
  rows <- Reduce(extended_rows, source_pass(source, visit_rows(training_rows_from, fit_recipe(fit)), c))
  fit$data <- data_of_rows(list(center = fit$center, scale = fit$scale, sd_y = fit$sd_y), rows, fit)
  if (!same_sums(fit$signature, data_signature(fit$data))) refuse_other_rows()
  if (read_elsewhere(source)) fit$data$products <- products_on_workers(fit$data$x)
  fit
}

refuse_other_rows <- function() {
  abort_input("data", "has other rows than the fit", hint = "Give the rows of the fit, in any order.")
}

# Returns the model frame of the rows that the fit keeps or, if it keeps none, of the `data` that its call names.
# `given` has further arguments of model.frame(). Stops if the data have changed since the fit.
frame_by_name <- function(fit, given, caller) {
  call <- fit$call
  call <- call[c(1L, match(c("data", "subset", "weights", "na.action", "offset"), names(call), 0L))]
  call[[1L]] <- quote(stats::model.frame)
  call$formula <- fit$terms
  call$drop.unused.levels <- TRUE
  held <- kept_variables(fit)
  arguments <- c("formula", "data", "subset", "na.action", "drop.unused.levels", "xlev")
  extra <- unlist(lapply(given[setdiff(names(given), arguments)], all.vars))
  if (!is.null(held) && all(extra %in% names(held)) && !"data" %in% names(given)) {
    call <- with_kept_rows(call, held)
  } else if (!"data" %in% names(given) && !is.null(call$data)) {
    data <- tryCatch(eval(call$data, environment(fit$terms)), error = function(e) NULL)
    if (is_source(data)) data <- do.call(rbind, source_pass(data, function(block) list(as.data.frame(block)), c))
    if (is_spatial(data)) data <- call_with_places(fit$call, environment(fit$terms))$data
    if (!is.list(data) && !is.environment(data)) refuse_lost_data(fit, call$data)
    call$data <- data
  }
  call[names(given)] <- given
  mf <- eval(call, environment(call$formula), caller)
  other <- any(c("formula", "data", "subset", "na.action") %in% names(given))
  if (other || is.null(fit$data) || nrow(mf) != length(fit$data$response)) return(mf)
  inputs <- training_inputs(fit$data)
  now <- tryCatch(bind_columns(fit$frame$variables, mf), error = function(e) NULL)
  same <- isTRUE(all.equal(now, inputs$x[inputs$index, , drop = FALSE], check.attributes = FALSE, tolerance = 1e-12))
  refuse_if(!same, "data", "changed", "as they were", message = sprintf(
    "`%s` is not the data of the fit any more: its rows have changed.", deparse1(fit$call$data)), hint = "Fit again.")
  mf
}

# Returns `call` with `held`, the rows that a fit keeps, as data. Weights and offset become names of its columns.
with_kept_rows <- function(call, held) {
  call$data <- held
  call[c("subset", "na.action")] <- NULL
  for (name in intersect(c("weights", "offset"), names(call)))
    call[[name]] <- if (sprintf("(%s)", name) %in% names(held)) as.name(sprintf("(%s)", name))
  call
}

refuse_lost_data <- function(fit, name, instead = "Give the rows as `newdata`") {
  abort_input("data", "lost", "found by its name",
              message = sprintf("The fit does not hold its rows, and `%s` is not a data frame here.", deparse1(name)),
              hint = if (is.null(fit$data)) paste0(instead, ", or fit with `keep_data = TRUE`.") else
                "Make these data available again, or fit again.")
}

# Returns TRUE if the call's `data` is a name under which no data are found, in `caller` or the formula's environment.
is_data_lost <- function(object, call, caller) {
  if (is.null(object$terms) || !is.symbol(call$data)) return(FALSE)
  data <- lapply(list(caller, environment(object$terms)), function(envir) get0(as.character(call$data), envir))
  !any(vapply(data, function(v) is.list(v) || is.environment(v) || is_source(v) || is_spatial(v), NA))
}

# Returns the fit with its own rows as `data` in its call, so that update() uses the same rows.
on_kept_rows <- function(fit) {
  held <- kept_variables(fit)
  if (is.null(held)) return(fit)
  fit$call <- with_home(with_kept_rows(fit$call, held), emptyenv())
  fit$call$formula <- stats::formula(fit)
  fit
}

# Returns a call that works if the package is not attached: its function becomes pfdtc::name.
with_home <- function(call, caller) {
  name <- call[[1L]]
  known <- !is.symbol(name) || exists(as.character(name), caller, mode = "function")
  if (!known) call[[1L]] <- call("::", quote(pfdtc), name)
  call
}
