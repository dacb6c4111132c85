# The variables that figures have panels for, the values they are held at, and the grids that curves are drawn over.

# Returns list(name, columns, values, labels) for each variable. `values` are the 0/1 rows of the levels of a factor,
# NULL for a numeric variable. Each column of a matrix variable is a variable.
fit_variables <- function(fit) {
  columns <- fit$frame$columns
  numeric <- function(j) list(name = columns[j], columns = j, values = NULL, labels = NULL)
  if (!by_formula(fit)) return(lapply(seq_along(columns), numeric))
  out <- list()
  end <- 0L
  for (v in fit$frame$variables) {
    j <- end + seq_len(v$width)
    end <- end + v$width
    out <- c(out, switch(
      v$kind,
      factor = list(list(name = v$name, columns = j, values = diag(v$width), labels = v$levels)),
      logical = list(list(name = v$name, columns = j, values = cbind(0:1), labels = c("FALSE", "TRUE"))),
      lapply(j, numeric)))
  }
  out
}

# Without `inputs`, chooses the variables whose range is longest in lengthscales.
choose_variables <- function(all, inputs, x, kernel, most = 9L) {
  names <- vapply(all, `[[`, "", "name")
  if (!is.null(inputs)) {
    i <- if (is.character(inputs)) match(inputs, names) else match(inputs, seq_along(all))
    if (!length(i) || anyNA(i)) {
      abort_input("inputs", describe(inputs),
                  sprintf("names or numbers of variables: %s", list_quoted(names, most = 20L)))
    }
    return(all[i])
  }
  span <- apply(x, 2L, function(v) diff(range(v)))
  relevance <- span / kernel_lengths(kernel, ncol(x))
  other <- setdiff(kernel$inputs, which(relevance > 0)) # inputs that the kernel reads without a lengthscale
  relevance[other] <- ifelse(span[other] > 0, max(relevance, 1), 0)
  relevance <- vapply(all, function(v) max(relevance[v$columns]), 0)
  shown <- utils::head(order(-relevance), min(most, max(1L, sum(relevance > 0))))
  all[sort(shown)]
}

# Returns the row that slices go through: medians and most frequent levels, or `at`.
slice_centre <- function(fit, variables, at) {
  if (!is.null(at)) {
    centre <- new_inputs(fit, at, stats::na.pass)$x
    if (nrow(centre) != 1L) {
      abort_input("at", sprintf("%d complete rows", nrow(centre)), "one row without missing values")
    }
    return(centre)
  }
  x <- slice_rows(fit)
  group <- fit$data$group
  all_rows <- function(x, j) if (is.null(group)) x[, j, drop = FALSE] else x[group, j, drop = FALSE]
  centre <- x[1L, , drop = FALSE]
  for (v in variables) {
    j <- v$columns
    centre[j] <- if (is.null(v$values)) {
      stats::median(all_rows(x, j))
    } else {
      rows <- all_rows(if (is.null(fit$data)) fit_points(fit) else x, j)
      v$values[which.max(tabulate(nearest_level(rows, v))), ]
    }
  }
  centre
}

# Returns the nearest level of each row, because moved inducing points have other values than 0 and 1.
nearest_level <- function(x, v) {
  distance <- apply(v$values, 1L, function(level) colSums((t(x) - level)^2))
  max.col(-matrix(distance, nrow(x)), ties.method = "first")
}

# Returns values, or numbers of levels.
value_along <- function(v, x) {
  if (is.null(v$values)) x[, v$columns] else nearest_level(x[, v$columns, drop = FALSE], v)
}

# Returns a list of ranges by the names of numeric variables.
check_xlim <- function(xlim, shown) {
  if (is.null(xlim)) return(list())
  names <- vapply(shown[vapply(shown, function(v) is.null(v$values), NA)], `[[`, "", "name")
  if (!is.list(xlim)) xlim <- stats::setNames(rep(list(xlim), length(names)), names)
  good <- function(v) is.numeric(v) && length(v) == 2L && all(is.finite(v)) && v[1L] < v[2L]
  if (!all(names(xlim) %in% names) || is.null(names(xlim)) && length(xlim) || !all(vapply(xlim, good, NA))) {
    abort_input("xlim", describe(if (length(xlim)) xlim[[1L]] else xlim),
                "two increasing finite numbers, or a list of such by the names of numeric inputs shown")
  }
  xlim
}

# Returns how many points a curve needs: 12 for each shortest lengthscale or period along the variable.
slice_points <- function(fit, v, values, least = 200L, most = 2000L) {
  size <- 12 * diff(range(values)) / shortest_length(fit, v$columns)
  as.integer(min(most, max(least, ceiling(size) + 1)))
}

# Names in coef() have the inputs of a factor in parentheses, unless the factor reads all inputs. The lengthscale of a
# periodic kernel has no unit: below 1 it is the share of the period over which f changes.
shortest_length <- function(fit, columns) {
  theta <- stats::coef(fit)
  periods <- grep("(^|[.])period$", names(theta), value = TRUE)
  theta[periods] <- theta[periods] * pmin(1, theta[sub("period$", "lengthscale", periods)])
  column <- fit$frame$columns[columns]
  has_any <- function(inputs) any(strsplit(inputs, ",", fixed = TRUE)[[1L]] %in% column)
  along <- vapply(names(theta), function(name) {
    inputs <- sub("^[^(]*[(](.*?)[)].*$", "\\1", name, perl = TRUE)
    if (inputs != name && !has_any(inputs)) return(FALSE)
    if (grepl("(^|[.])period$", name)) return(TRUE)
    if (grepl("^periodic", name)) return(FALSE)
    grepl("(^|[.])lengthscale$", name) || any(endsWith(name, paste0("lengthscale.", column)))
  }, NA)
  min(theta[along], Inf)
}

# Returns list(value, label, x, outside): where a slice is evaluated, and whether that is beyond the data.
slice_grid <- function(v, centre, x, n, xlim = NULL) {
  outside <- FALSE
  if (is.null(v$values)) {
    data <- range(x[, v$columns])
    ends <- if (is.null(xlim)) data else xlim
    value <- unique(seq(ends[1L], ends[2L], length.out = n))
    # lines change at the ends of the data
    value <- sort(unique(c(value, data[data > ends[1L] & data < ends[2L]])))
    outside <- value < data[1L] | value > data[2L]
    at <- cbind(value)
  } else {
    value <- seq_along(v$labels)
    at <- v$values
  }
  x <- centre[rep(1L, length(value)), , drop = FALSE]
  x[, v$columns] <- at
  list(value = value, label = if (is.null(v$labels)) NA_character_ else v$labels, x = x, outside = outside)
}

# Returns the text below a figure: how many of `panels` are shown, and the values that other variables are held at.
# `shown` are the names of the variables that have panels.
slices_foot <- function(all, centre, shown, panels = length(shown), axes = 1L, most = 12L) {
  held <- Filter(function(v) length(shown) > axes || !v$name %in% shown, all)
  if (!length(held)) return(NULL)
  values <- vapply(held, function(v) {
    if (is.null(v$labels)) format(signif(centre[v$columns], 4)) else
      v$labels[nearest_level(centre[, v$columns, drop = FALSE], v)]
  }, "")
  text <- paste(vapply(held, `[[`, "", "name"), "=", values)
  if (length(text) > most) text <- c(utils::head(text, most), sprintf("and %d more", length(text) - most))
  c(if (length(shown) < panels) sprintf("%d of %d panels are shown.", length(shown), panels),
    if (length(all) > 1L) sprintf("Other inputs are held at %s.", paste(text, collapse = ", ")))
}
