# Slices through a fit: the data frames that plot() and autoplot() draw.

# list(variables = those shown, curves, points, inducing: data frames with a column `input`).
# `type`: "response" or "link", which differ where the response is a class or a count.
slices <- function(fit, inputs, at, level, n, points = TRUE, certified = FALSE, xlim = NULL, type = "response") {
  fit <- check_any_fit(fit, "x")
  level <- check_level(level)
  n <- check_count(n, "n", min = 2)
  x <- slice_rows(fit)
  all <- fit_variables(fit)
  shown <- choose_variables(all, inputs, x, fit$kernel)
  centre <- slice_centre(fit, all, at)
  xlim <- check_xlim(xlim, shown)
  curves <- lapply(shown, function(v) {
    grid <- slice_grid(v, centre, x, n, xlim[[v$name]])
    slice_curve(v, fit, grid, level, certified, type)
  })
  curves <- do.call(rbind, curves)
  list(variables = shown, curves = curves,
       points = if (points && !is.null(fit$data) && has_partial_response(fit, type))
         partial_points(fit, all, shown, curves),
       inducing = inducing_marks(fit, shown))
}

# The variables that panels are for: list(name, columns = their numbers in x, values = NULL for a
# numeric one, or the rows of 0/1 columns that stand for `labels`). A matrix variable counts a
# variable a column.
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
      logical = list(list(name = v$name, columns = j, values = cbind(0:1),
                          labels = c("FALSE", "TRUE"))),
      lapply(j, numeric)))
  }
  out
}

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
  other <- setdiff(kernel$inputs, which(relevance > 0)) # read, but not by a length
  relevance[other] <- ifelse(span[other] > 0, max(relevance, 1), 0)
  relevance <- vapply(all, function(v) max(relevance[v$columns]), 0)
  shown <- utils::head(order(-relevance), min(most, max(1L, sum(relevance > 0))))
  all[sort(shown)]
}

# The point that slices go through.
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

# The level each row is nearest to: inducing points are moved off the 0/1 corners.
nearest_level <- function(x, v) {
  distance <- apply(v$values, 1L, function(level) colSums((t(x) - level)^2))
  max.col(-matrix(distance, nrow(x)), ties.method = "first")
}

# A range for each numeric variable shown: one for all of them, or a list by name.
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

# list(value, label, x, outside): where a slice is evaluated, and whether that is beyond the data.
slice_grid <- function(v, centre, x, n, xlim = NULL) {
  outside <- FALSE
  if (is.null(v$values)) {
    data <- range(x[, v$columns])
    ends <- if (is.null(xlim)) data else xlim
    value <- unique(seq(ends[1L], ends[2L], length.out = n))
    # the data's own ends, which are where lines change
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

# On the response's scale or the link's; `certified`: with the ends between which the exact process's own interval is.
slice_curve <- function(v, fit, grid, level, certified, type) {
  laplace <- !response_of(fit)$conjugate
  p <- latent_at(fit, grid$x)
  ends <- list(mean_lower = p$mean, mean_upper = p$mean, sd_upper = sqrt(p$var))
  if (certified) ends <- certificate_of(fit, plain_rows(grid$x))
  band <- function(noise) {
    normal_band(p$mean, ends$sd_upper^2 + noise, level, ends$mean_lower, ends$mean_upper)[, 2:3, drop = FALSE]
  }
  f <- band(0)
  if (laplace && type == "response") f[] <- response_of(fit)$link$inv(f)
  curve_frame(v, grid, on_scale(fit, p, type), f, if (!laplace) band(noise_at(fit, grid$x)))
}

# A row a point of a curve; `f`, `y`: both ends of the bands.
curve_frame <- function(v, grid, shown, f, y = NULL) {
  if (is.null(y)) y <- NA * f
  data.frame(input = v$name, value = grid$value, label = grid$label, fit = shown$mean, se.fit = shown$sd, lwr = f[, 1L],
             upr = f[, 2L], lwr_y = y[, 1L], upr_y = y[, 2L], outside = grid$outside)
}

# list(keep, x, y): some rows of the data, with responses less their offsets.
rows_to_draw <- function(fit, most = 2000L) {
  data <- fit$data
  rows <- training_inputs(data)
  keep <- evenly(length(rows$index), most)
  list(keep = keep, x = rows$x[rows$index[keep], , drop = FALSE],
       y = data$response[keep] - if (is.null(data$offset)) 0 else data$offset[keep])
}

# Where rows are along a variable: values, or numbers of levels.
value_along <- function(v, x) {
  if (is.null(v$values)) x[, v$columns] else nearest_level(x[, v$columns, drop = FALSE], v)
}

# `at`: where they are drawn.
point_frame <- function(v, value, y) {
  data.frame(input = v$name, value = value, y = y, at = if (is.null(v$values)) value else spread(value))
}

# Mean along the slice plus the row's residual; with a single variable that is the response (less
# its offset).
partial_points <- function(fit, all, shown, curves) {
  rows <- rows_to_draw(fit)
  alone <- length(all) == 1L
  laplace <- !response_of(fit)$conjugate
  residual <- if (!laplace && !alone) rows$y - latent_at(fit, rows$x)$mean
  do.call(rbind, lapply(shown, function(v) {
    curve <- rows_of(curves, v)
    value <- value_along(v, rows$x)
    slice <- if (nrow(curve) > 1L) stats::approx(curve$value, curve$fit, value)$y else curve$fit
    point_frame(v, value, if (laplace) partial_response(fit, slice, rows$x, rows$keep, alone) else
      if (alone) rows$y else slice + residual)
  }))
}

# The rows of an exact posterior are no points to mark.
drawn_points <- function(fit) {
  if (!is_exact(fit) && !is_laplace_limit(fit)) fit$inducing
}

inducing_marks <- function(fit, shown) {
  if (is.null(drawn_points(fit))) return(NULL)
  marks <- lapply(shown, function(v) {
    if (is.null(v$values)) data.frame(input = v$name, value = fit$inducing[, v$columns])
  })
  do.call(rbind, marks)
}

rows_of <- function(d, v) if (!is.null(d)) d[d$input == v$name, , drop = FALSE]

slice_range <- function(s, interval) {
  bands <- if (interval == "credible") c("lwr", "upr") else c("lwr_y", "upr_y")
  range(unlist(s$curves[bands]), s$points$y, finite = TRUE)
}

response_name <- function(fit) if (is.null(fit$terms)) "y" else deparse1(fit$terms[[2L]])

# What the vertical axis has.
slice_label <- function(fit, type) {
  name <- response_name(fit)
  if (response_of(fit)$conjugate || fit$likelihood$link == "identity") return(name)
  if (type == "link") return(sprintf("%s of %s", fit$likelihood$link, name))
  if (response_of(fit)$reads != "classes") return(paste("rate of", name))
  success <- fit$likelihood$levels[2L]
  if (!is.null(success)) sprintf("P(%s = %s)", name, success) else "P(success)"
}

# A list of fits, each by a name of its own; `name`: of a fit that comes without.
label_fits <- function(fits, name) {
  if (inherits(fits, "gp_fit")) fits <- list(fits)
  if (!is.list(fits) || !length(fits) || !all(vapply(fits, inherits, NA, "gp_fit"))) {
    abort_input("fits", describe(fits), "a fit or a list of fits")
  }
  label <- names(fits)
  if (is.null(label)) label <- character(length(fits))
  blank <- !nzchar(label)
  label[blank] <- vapply(fits[blank], name, "")
  for (i in seq_along(fits)) fits[[i]] <- check_any_fit(fits[[i]], sprintf("fits[[%d]]", i))
  stats::setNames(fits, make.unique(label, " "))
}
