by_formula <- function(fit) fit$frame$method == "formula"

# New rows for a fit, in the fit's columns: list(
#   x          the rows without missing values, a double matrix in the fit's columns
#   offset     a number for each element of keep, or 0
#   keep       for each row that na.action left: is it complete, and so in x?
#   row_names  of those rows, or NULL)
# Under na.pass an incomplete row stays with keep FALSE and predicts NA; na.omit and na.exclude take
# it out. A matrix fit has no way to know the offset of a new row and takes it as 0.
new_inputs <- function(fit, newdata, na.action = stats::na.pass) {
  if (is.null(newdata)) abort_input("newdata", "NULL", "rows to predict at")
  new <- if (by_formula(fit)) rows_by_formula(fit$frame, newdata) else
    rows_by_matrix(fit$frame, newdata)
  complete <- rep(TRUE, nrow(new$x))
  if (anyNA(new$x)) complete <- rowSums(is.na(new$x)) == 0
  if (isTRUE(varies(fit$kernel))) check_reach(fit, new$x[complete, , drop = FALSE])
  if (anyNA(new$offset)) complete <- complete & !is.na(new$offset)
  if (all(complete)) return(c(new, list(keep = complete))[c("x", "offset", "keep", "row_names")])

  stay <- rows_left(complete, na.action)
  list(x = new$x[stay & complete, , drop = FALSE],
       offset = if (length(new$offset) == length(stay)) new$offset[stay] else new$offset,
       keep = complete[stay], row_names = new$row_names[stay])
}

# Where the kernel grows with the inputs, so far that its squares are numbers, in units of the response's.
check_reach <- function(fit, x) {
  if (all(kernel_diagonal(fit$kernel, x) < 1e300 * max(1, fit$scale^2))) return(invisible())
  abort_input("newdata", sprintf("of up to %s", format(max(abs(x)), digits = 3)),
              "where variances are numbers: a linear mean or kernel has the inputs' squares")
}

# Which rows na.action leaves, found by showing it rows with and without a missing value.
rows_left <- function(complete, na.action) {
  stay <- rep(TRUE, length(complete))
  if (is.null(na.action)) return(stay)
  rows <- data.frame(value = ifelse(complete, 0, NA))
  left <- tryCatch(match.fun(na.action)(rows), error = function(e) {
    abort_input("newdata", sprintf("missing in row %d", which(!complete)[1L]), "complete",
                hint = sprintf("`na.action` says: %s.", conditionMessage(e)))
  })
  stay[as.integer(attr(left, "na.action"))] <- FALSE
  stay
}

rows_by_matrix <- function(frame, newdata) {
  d <- length(frame$columns)
  if (is.data.frame(newdata)) {
    newdata <- match_columns(frame, newdata)
  } else if (is_plain_numeric(newdata) && is.null(dim(newdata)) && d > 1L) {
    if (length(newdata) != d) {
      abort_input("newdata", describe(newdata),
                  sprintf("a matrix or data frame with %d columns", d))
    }
    newdata <- matrix(newdata, 1L, dimnames = list(NULL, names(newdata)))
  }
  labels <- row_labels(newdata, NULL)
  x <- check_matrix(newdata, "newdata", allow_na = TRUE)
  if (!identical(colnames(x), frame$columns)) x <- match_columns(frame, x)
  if (!is.null(rownames(x)) || !identical(colnames(x), frame$columns)) {
    dimnames(x) <- list(NULL, frame$columns)
  }
  list(x = x, offset = 0, row_names = labels)
}

# Columns by name where both sides have names (others may be there as well), else by position.
match_columns <- function(frame, newdata) {
  d <- length(frame$columns)
  names <- colnames(newdata)
  both <- frame$named && !is.null(names) && all(nzchar(names))
  if (both) {
    if (!is.data.frame(newdata) || !any(vapply(newdata, is.matrix, NA))) {
      at <- match(frame$columns, make.unique(names))
      if (anyNA(at)) {
        lacking <- frame$columns[is.na(at)]
        abort_input("newdata", sprintf("one without %s", list_quoted(lacking)),
                    sprintf("a matrix or data frame with column%s %s", plural_s(d),
                            list_quoted(frame$columns)))
      }
      if (identical(at, seq_len(ncol(newdata)))) return(newdata)
      return(newdata[, at, drop = FALSE])
    }
  } else if (ncol(newdata) != d) {
    abort_input("newdata", sprintf("one with %d", ncol(newdata)),
                sprintf("a matrix or data frame with %d column%s", d, plural_s(d)))
  }
  newdata
}

rows_by_formula <- function(frame, newdata) {
  if (!is.list(newdata)) {
    abort_input("newdata", describe(newdata), "a data frame with the variables of the formula",
                hint = "as.data.frame() makes one of a matrix.")
  }
  rows <- newdata
  if (!is.data.frame(rows)) rows <- evaluate_new(as.data.frame(newdata, optional = TRUE))
  lacking <- setdiff(frame$required, names(rows))
  if (length(lacking)) {
    abort_input("newdata", sprintf("one without %s", list_quoted(lacking)),
                "a data frame with the variables of the formula")
  }
  n <- nrow(rows)
  mf <- evaluate_new(stats::model.frame(frame$terms, rows, na.action = stats::na.pass))
  if (nrow(mf) != n) {
    abort_input("newdata", sprintf("%d for %d rows of newdata", nrow(mf), n),
                "the source of every variable, with a value for each row",
                hint = "Fit with variables of `data`, by name: y ~ x, not y ~ d$x.")
  }
  labels <- row.names(mf)
  for (spec in frame$variables) mf[[spec$name]] <- check_new_variable(mf[[spec$name]], spec)
  x <- bind_columns(frame$variables, mf)
  check_complete(x, frame$variables, labels, "newdata", allow_na = TRUE)
  list(x = x, offset = new_offset(frame, mf, rows), row_names = labels)
}

evaluate_new <- function(expr) {
  tryCatch(expr, error = function(e) {
    text <- sub("\\.$", "", conditionMessage(e))
    abort_input("newdata", text, "usable with the formula", message =
                  sprintf("`newdata` cannot be used with the formula of the fit: %s.", text))
  })
}

# The same kind of variable as in the fit; a column of nothing but NA fits any.
check_new_variable <- function(v, spec) {
  kind <- variable_kind(v)
  if (identical(kind, "logical") && all(is.na(v))) {
    if (spec$kind == "matrix" && spec$width > 1L) return(matrix(NA, length(v), spec$width))
    return(v)
  }
  same <- identical(kind, spec$kind) || (identical(kind, "logical") && spec$kind == "numeric") ||
    (spec$kind == "matrix" && spec$width == 1L && identical(kind, "numeric"))
  if (!same) {
    want <- switch(spec$kind, factor = "a factor or character", paste0(spec$kind, ","))
    got <- if (is.na(kind)) describe_column(v) else if (kind == "factor") class(v)[1L] else kind
    abort_input("newdata", sprintf("`%s` of another kind", spec$name), "of the same kind",
                message = sprintf("Variable `%s` of `newdata` must be %s as in the fit, not %s.",
                                  spec$name, want, got))
  }
  if (kind == "matrix" && ncol(v) != spec$width) {
    abort_input("newdata", sprintf("%d", ncol(v)),
                sprintf("a source of %d columns for variable `%s`", spec$width, spec$name))
  }
  if (kind == "factor") {
    unknown <- setdiff(unique(as.character(v)), spec$levels)
    unknown <- unknown[!is.na(unknown)]
    if (length(unknown)) {
      got <- sprintf("level%s %s", plural_s(length(unknown)), list_quoted(unknown, "\""))
      abort_input("newdata", got, sprintf("of known levels in `%s`", spec$name),
                  hint = sprintf("The fit knows %s.", list_quoted(spec$levels, "\"", most = 10L)))
    }
  }
  v
}

# As predict.lm() does: offset() terms and the offset argument, both evaluated in newdata.
new_offset <- function(frame, mf, newdata) {
  n <- nrow(mf)
  offset <- evaluate_new(stats::model.offset(mf))
  total <- if (is.null(offset)) 0 else offset
  if (!is.null(frame$offset)) {
    if (identical(frame$offset, NA)) {
      abort_input("offset", "a vector for the training rows",
                  "an expression in the variables of newdata",
                  hint = "Fit with offset(<variable>) in the formula to predict at new rows.")
    }
    value <- evaluate_new(eval(frame$offset, newdata, environment(frame$terms)))
    if (!is_plain_numeric(value) || !length(value) %in% c(1L, n)) {
      abort_input("offset", describe(value),
                  sprintf("a number for each of the %d rows of newdata", n),
                  hint = "Fit with offset(<variable>) in the formula to predict at new rows.")
    }
    total <- total + as.double(value)
  }
  if (any(is.infinite(total))) {
    abort_input("newdata", "Inf in the offset", "finite in every variable")
  }
  if (length(total) == 1L && !identical(total, 0)) total <- rep(total, n)
  as.double(total)
}
