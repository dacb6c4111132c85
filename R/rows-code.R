# How the variables of a formula become columns of numbers.

# Returns how one variable becomes columns: list(name, kind, levels, width, columns), the last their names.
code_variable <- function(v, name) {
  place <- code_place(v, name)
  if (!is.null(place)) return(place)
  kind <- variable_kind(v)
  if (is.na(kind)) {
    abort_input("formula", sprintf("`%s`, of %s", name, describe_column(v)),
                "made of numeric, logical, factor or character variables", hint = reason_not_numeric(v))
  }
  levels <- if (kind == "factor") if (is.factor(v)) levels(v) else levels(factor(v))
  width <- if (kind == "factor") length(levels) else if (kind == "matrix") ncol(v) else 1L
  check_memory(8 * NROW(v) * width, sprintf("the %d columns of `%s`", width, name))
  columns <- switch(kind, factor = paste0(name, levels), matrix = { # names as in model.matrix()
    paste0(name, if (!is.null(colnames(v))) colnames(v) else if (width > 1L) seq_len(width) else "")
  }, name)
  list(name = name, kind = kind, levels = levels, width = width, columns = columns)
}

variable_kind <- function(v) {
  if (!is.null(place_kind(v))) return(place_kind(v))
  if (is.factor(v) || (is.character(v) && is.null(dim(v)))) return("factor")
  if (!is_plain_numeric(v) || is.data.frame(v) || length(dim(v)) > 2L) return(NA_character_)
  if (length(dim(v)) == 2L) "matrix" else if (is.logical(v)) "logical" else "numeric"
}

# Refuses factors and text whose values hardly repeat: they identify rows, and learning a column for each takes hours.
check_levels_return <- function(variables, n) {
  for (v in variables) {
    k <- if (v$kind == "factor") length(v$levels) else 0L
    if (k > max(50, 0.9 * n)) {
      abort_input("formula", sprintf("`%s`, with %d different values in %.0f rows", v$name, k, n),
                  "made of factors and text with repeated values",
                  hint = "Leave identifiers of rows out. as.numeric() makes numbers of numbers that were read as text.")
    }
    if (k >= many_levels) {
      text <- paste("`%s` has %d levels, which share one lengthscale. Write (1 | %s) in its place",
                    "for an effect of each level, learned from its rows.")
      tell_classed("levels", sprintf(text, v$name, k, v$name))
    }
  }
}

# Returns for each column the name of its variable.
variable_of_columns <- function(variables) unlist(lapply(variables, function(v) rep(v$name, v$width)))

# Returns TRUE for each column that is an indicator of a level or of TRUE.
columns_of_levels <- function(variables) {
  unlist(lapply(variables, function(v) rep(v$kind %in% c("factor", "logical", "group"), v$width)))
}
