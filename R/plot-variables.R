# Chooses the variables that figures show, fixes the others, and makes the grids on which curves are computed.

# Returns the variables of a fit by name, each list(name, columns, values, labels): its columns of x and, for a factor,
# the 0/1 codes of its levels (rows of `values`) and their names. A matrix has a variable for each column. A point on
# the globe has two variables: longitude with `axis` 1, latitude with `axis` 2. A date or time has its coding in `time`.
fit_variables <- function(fit) {
  columns <- fit$frame$columns
  numeric <- function(j) list(name = columns[j], columns = j, values = NULL, labels = NULL)
  matrix <- list(list(kind = "matrix", columns = seq_along(columns)))
  all <- unlist(lapply(if (by_formula(fit)) placed_variables(fit$frame) else matrix, function(v) {
    j <- v$columns
    switch(v$kind, factor = list(list(name = v$name, columns = j, values = diag(v$width), labels = v$levels)),
           logical = list(list(name = v$name, columns = j, values = cbind(0:1), labels = c("FALSE", "TRUE"))),
           group = NULL, time = list(c(numeric(j), list(time = v))),
           sphere = lapply(1:2, function(axis) {
             list(name = v$axes[axis], columns = j, values = NULL, labels = NULL, axis = axis, middle = v$middle)
           }), lapply(j, numeric))
  }), FALSE)
  stats::setNames(as.list(all), panel_names(all))
}

# Returns the variables that `inputs` names or numbers; by default the `most` with the largest range / lengthscale.
choose_variables <- function(all, inputs, x, kernel, most = 9L) {
  if (!is.null(inputs)) {
    i <- match(inputs, if (is.character(inputs)) names(all) else seq_along(all))
    refuse_if(!length(i) || anyNA(i), "inputs", describe(inputs),
              sprintf("names or numbers of variables: %s", list_quoted(names(all), most = 20L)))
    return(all[i])
  }
  span <- apply(rotated(kernel, x), 2L, function(v) diff(range(v)))
  relevance <- span / kernel_lengths(kernel, ncol(x))
  other <- setdiff(kernel$inputs, which(relevance > 0)) # these inputs have no lengthscale
  relevance[other] <- ifelse(span[other] > 0, max(relevance, 1), 0)
  relevance <- vapply(all, function(v) max(relevance[v$columns]), 0)
  all[sort(utils::head(order(-relevance), min(most, max(1L, sum(relevance > 0)))))]
}

# Returns the values at which variables without a panel are fixed: `at`, else median, commonest level, or a new group.
slice_centre <- function(fit, variables, at) {
  x <- slice_rows(fit)
  # A row of merged data counts as often as its inputs occur.
  every <- fit$data$group %||% seq_len(nrow(x))
  centre <- x[1L, , drop = FALSE]
  for (v in variables) {
    rows <- if (is.null(v$values) || !is.null(fit$data)) x[every, , drop = FALSE] else fit_points(fit)
    value <- value_along(v, rows)
    centre <- set_along(v, centre, if (is.null(v$values)) stats::median(value) else which.max(tabulate(value)))
  }
  centre[, group_columns(model_of(fit)$kernel)] <- -2^50 # a new level
  if (is.null(at)) return(centre)
  needed <- if (by_formula(fit)) fit$frame$required else if (fit$frame$named) fit$frame$columns
  if (is.list(at) && length(needed)) {
    refuse_if(!any(needed %in% names(at)), "at", sprintf("has none of the inputs %s", list_quoted(needed, most = 20L)))
    at[setdiff(needed, names(at))] <- NA
    at <- as.data.frame(at, optional = TRUE)
  } else if (by_formula(fit)) {
    abort_input("at", describe(at), "a list of values of inputs, such as list(x = 1)")
  }
  given <- if (by_formula(fit)) rows_by_formula(fit$frame, at, re = FALSE)$x else rows_by_matrix(fit$frame, at)$x
  refuse_if(nrow(given) != 1L, "at", sprintf("has %d rows", nrow(given)), hint = "Give one.")
  replace(centre, which(!is.na(given)), given[!is.na(given)])
}

# Returns the values of a variable v from fit_variables() at the rows of x. For a factor, these are the numbers of the
# levels with the nearest codes, because inducing points may have codes between 0 and 1.
value_along <- function(v, x) {
  x <- x[, v$columns, drop = FALSE]
  if (!is.null(v$axis)) return(degrees_of(x, v$middle)[, v$axis])
  if (is.null(v$values)) return(x[, 1L])
  distance <- apply(v$values, 1L, function(level) colSums((t(x) - level)^2))
  max.col(-matrix(distance, nrow(x)), ties.method = "first")
}

# Returns x with `value` (for a factor, the number of a level) as the values of the variable v at its rows.
set_along <- function(v, x, value) {
  if (!is.null(v$axis)) {
    at <- degrees_of(x[, v$columns, drop = FALSE], v$middle)
    at[, v$axis] <- value
    value <- sphere(at[, 1L], at[, 2L])
  } else if (!is.null(v$values)) {
    value <- v$values[value, ]
  }
  x[, v$columns] <- value
  x
}

# Returns list(at, labels), ticks for an axis of dates or degrees with the range `lim`, or NULL for plain numbers.
variable_ticks <- function(v, lim) {
  if (!is.null(v$time)) {
    at <- pretty(times_of(v$time, lim))
    return(list(at = numbers_of(v$time, at), labels = attr(at, "labels")))
  }
  if (is.null(v$axis)) return(NULL)
  at <- pretty(lim)
  degrees <- if (v$axis == 1L) at - 360 * round(at / 360) else at # the longitude 190 is 170 degrees west
  side <- if (v$axis == 1L) c("W", "", "E") else c("S", "", "N")
  list(at = at, labels = trimws(paste0(format(abs(degrees), trim = TRUE), "\u00b0 ", side[sign(degrees) + 2L])))
}

# Returns the number of points of a curve along the variable v: 12 per shortest lengthscale or period, from `least` to
# `most`. A periodic kernel of lengthscale below 1 changes over that fraction of its period.
slice_points <- function(fit, v, values, least = 200L, most = 2000L) {
  shortest <- min(Inf, unlist(lapply(as_sum(fit$kernel)$leaves, function(leaf) {
    along <- leaf$inputs %in% v$columns
    if (is.null(leaf$lengthscale) || !any(along)) return(NULL)
    if (leaf$profile == "periodic") return(leaf$period * min(1, leaf$lengthscale))
    rep_len(column_lengthscales(leaf), length(along))[along]
  })))
  unit <- if (is.null(v$axis)) 1 else earth_radius * pi / 180 # km in a degree
  as.integer(min(most, max(least, ceiling(12 * unit * diff(range(values)) / shortest) + 1)))
}

# Returns a data frame with a row for each point of a curve: the name of the input, its value there (for a factor, also
# the level's `label`), `outside` (TRUE beyond the range of the data), and a matrix column x of all inputs.
grid_frame <- function(input, value, label, x, outside = FALSE) {
  grid <- data.frame(input = input, value = rep_len(value, nrow(x)), label = label, outside = outside)
  grid$x <- unname(x)
  grid
}

complete_rows <- function(fit, newdata) {
  x <- new_inputs(fit, newdata)$x
  refuse_if(!nrow(x), "newdata", "has no complete rows")
  x
}

# Returns the grid of a curve along the only input, with a point for each distinct complete row of `newdata`.
grid_of_rows <- function(fit, name, newdata) {
  x <- complete_rows(fit, newdata)
  value <- sort(unique(x[, 1L]))
  grid_frame(name, value, NA_character_, x[match(value, x[, 1L]), , drop = FALSE])
}

# Returns the parts of a figure that need no predictions: list(all, variables, grid, foot). `all` has all variables of
# the fit, `variables` those with a panel, `grid` a row for each point of a curve, and `foot` is text. A numeric input
# has n points, by default slice_points(). If `terms`, at most 16 panels show a term of the kernel along one variable.
slice_frame <- function(fit, inputs, at, n, xlim = NULL, terms = FALSE, most = 9L) {
  x <- slice_rows(fit)
  all <- fit_variables(fit)
  centre <- slice_centre(fit, all, at)
  panels <- if (terms && is.null(inputs)) all else choose_variables(all, inputs, x, fit$kernel, most)
  if (terms) panels <- term_panels(with_own_terms(fit$kernel), panels, fit$frame$columns)
  refuse_if(!length(panels), "inputs", describe(inputs), "variables of at least one term")
  shown <- unname(if (terms) utils::head(panels, 16L) else panels)
  numeric <- panel_names(Filter(function(v) is.null(v$values), shown))
  if (is.null(xlim)) xlim <- list()
  if (!is.list(xlim)) xlim <- stats::setNames(rep(list(xlim), length(numeric)), numeric)
  for (v in shown) if (!is.null(v$time) && is_time(ends <- xlim[[v$name]])) xlim[[v$name]] <- numbers_of(v$time, ends)
  good <- function(v) is.numeric(v) && length(v) == 2L && all(is.finite(v)) && v[1L] < v[2L]
  refuse_if(!all(names(xlim) %in% numeric) || is.null(names(xlim)) && length(xlim) || !all(vapply(xlim, good, NA)),
            "xlim", describe(if (length(xlim)) xlim[[1L]] else xlim),
            "two increasing finite numbers, or a list of such pairs with names of numeric inputs")
  grids <- lapply(shown, function(v) {
    data <- range(value_along(v, x))
    value <- seq_along(v$labels)
    if (is.null(v$values)) {
      ends <- xlim[[v$name]] %||% data
      k <- n %||% slice_points(fit, v, c(data, ends))
      # Include the ends of the data, at which the solid line becomes dotted.
      value <- sort(unique(c(seq(ends[1L], ends[2L], length.out = k), data[data > ends[1L] & data < ends[2L]])))
    }
    at <- set_along(v, centre[rep(1L, length(value)), , drop = FALSE], value)
    grid_frame(v$name, value, v$labels %||% NA_character_, at,
               is.null(v$values) & (value < data[1L] | value > data[2L]))
  })
  there <- if (terms) length(panels) else if (is.null(inputs) && most > 1L) length(all) else 0L
  list(all = all, variables = shown, grid = do.call(rbind, grids),
       foot = slices_foot(all, centre, panel_names(shown), there))
}

panel_names <- function(shown) vapply(shown, `[[`, "", "name", USE.NAMES = FALSE)

# Returns `variables` once for each term of the kernel that reads them. `name` has the term's name, followed by the
# variable's name if the term reads several. `title` has both in words.
term_panels <- function(kernel, variables, columns) {
  names <- term_names(kernel)
  words <- term_words(kernel, columns)
  short <- sub(" in .*$", "", words)
  if (!anyDuplicated(short)) words <- short
  panels <- lapply(seq_along(kernel$terms), function(t) {
    read <- unlist(lapply(kernel$leaves[kernel$terms[[t]]$leaves], `[[`, "inputs"))
    of_term <- Filter(function(v) any(v$columns %in% read), variables)
    lapply(of_term, function(v) {
      name <- if (length(of_term) > 1L) sprintf("%s: %s", names[t], v$name) else names[t]
      utils::modifyList(v, list(term = t, name = name, title = sprintf("%s: %s", words[t], v$name)))
    })
  })
  unname(unlist(panels, recursive = FALSE))
}

# Returns the text below a figure: how many of `panels` panels are shown, and the values at which variables are fixed
# (NULL if none is). `shown` has the names of variables with panels, `axes` is the number of variables in a panel.
slices_foot <- function(all, centre, shown, panels = length(shown), axes = 1L, most = 12L) {
  held <- Filter(function(v) length(shown) > axes || !v$name %in% shown, all)
  if (!length(held)) return(NULL)
  values <- vapply(held, function(v) {
    value <- value_along(v, centre)
    if (!is.null(v$time)) return(format(times_of(v$time, value)))
    if (is.null(v$labels)) format(signif(value, 4)) else v$labels[value]
  }, "")
  text <- paste(panel_names(held), "=", values)
  if (length(text) > most) text <- c(utils::head(text, most), sprintf("and %d more", length(text) - most))
  c(if (length(shown) < panels) sprintf("%d of %d panels are shown.", length(shown), panels),
    if (length(all) > 1L) sprintf("Other inputs are held at %s.", paste(text, collapse = ", ")))
}
