# The front end that pfdtc() and the gp_ functions share: data as users give them -> one cleaned
# list. Here the matrix method and what both methods share; formula.R has the formula method,
# merge.R the merging of equal rows, newdata.R new rows for a fit.
#
# The list (class "pfdtc_data"):
#   x               N x d double with column names; rows of weight 0 left out, equal rows merged
#   y               N doubles, (response - offset - center) / scale; merged rows: weighted mean
#   weights         NULL (all 1), or N positive doubles; merged rows: sum
#   center, scale   of the response: 0 and 1 where not wanted; see plain_unit() for the exception
#   input_center, input_scale   d numbers, for starts and the optimiser's units; x keeps its units
#   n               rows used: with positive weight, before merging
#   group           NULL, or n integers: the row of x each used row went to
#   twins           NULL, or of each row of x how many more went to it, and their squares about the mean: list(rows, ss)
#   x_zero          NULL, or the input rows of weight 0 (fitted values need them)
#   shift           list(constant, rows, ss), see log_density_shift()
#   sd_y            sd of response - offset, in units of the response
#   response, offset, prior_weights   every row given, also those of weight 0; the last two may be
#                   NULL; names(response) are the row names, if any
#   na_action, terms, xlevels, assign, var_names   formula method, else NULL; assign: the variable
#                   (index into var_names) that each column of x belongs to
#   frame           what new_inputs() needs, see make_frame()

data_from_matrix <- function(x, y, weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                             merge = TRUE, likelihood = NULL) {
  if (missing(x) || is.null(x)) abort_input("x", "missing", "a numeric matrix of inputs")
  if (missing(y) || is.null(y)) {
    abort_input("y", "missing", "a numeric vector with an element for each row of `x`")
  }
  # 0/1 columns keep their unit, as those of the formula method do
  indicator <- if (is.data.frame(x)) vapply(x, function(v) is.logical(v) && is.null(dim(v)), NA)
  labels <- row_labels(x, y)
  x <- check_matrix(x, "x")
  if (!nrow(x) || !ncol(x)) {
    abort_input("x", sprintf("%d x %d", nrow(x), ncol(x)), "of at least one row and one column")
  }
  given <- colnames(x)
  named <- !is.null(given) && !anyNA(given) && all(nzchar(given))
  if (!is.null(rownames(x)) || !identical(given, column_names(x))) {
    dimnames(x) <- list(NULL, column_names(x))
  }
  n <- nrow(x)
  data <- clean_rows(
    x, y, "y",
    weights = if (!is.null(weights)) check_weights(weights, n),
    offset = if (!is.null(offset)) check_vector(offset, "offset", n),
    indicator = if (length(indicator) == ncol(x)) unname(indicator) else logical(ncol(x)),
    labels = labels, center = center, scale = scale, merge = merge, likelihood = likelihood)
  data$frame <- list(method = "matrix", columns = colnames(x), named = named)
  data
}

# The response is read as its likelihood wants it: then there are `sites`, and `y` is for the eye. `rows`: what messages
# call the rows, NULL: their numbers.
clean_rows <- function(x, response, name, weights, offset, indicator, labels, center, scale, merge, likelihood,
                       rows = NULL) {
  if (is.null(likelihood)) {
    return(clean_data(x, check_response(response, name, nrow(x), rows), name, weights, offset, indicator, labels,
                      center, scale, merge))
  }
  check_flag(scale, "scale")
  read <- read_response(likelihood, response, weights, name, nrow(x))
  if (!is_finite_number(center)) check_flag(center, "center")
  data <- clean_data(x, read$response, name, read$weight, NULL, indicator, labels, center = FALSE, scale = FALSE,
                     merge = FALSE)
  with_sites(data, read, offset)
}

# Both methods from here on: everything is a double of the right length and finite, weights >= 0.
# `name`: what messages call the response; `indicator`: which columns are 0/1 and keep that unit;
# `labels`: row names or NULL.
clean_data <- function(x, response, name, weights, offset, indicator, labels, center, scale,
                       merge) {
  center <- check_flag(center, "center")
  scale <- check_flag(scale, "scale")
  r <- if (is.null(offset)) response else response - offset
  w <- weights
  x_zero <- NULL
  if (!is.null(w) && any(w == 0)) {
    if (all(w == 0)) abort_input("weights", "all zero", "positive for at least one row")
    x_zero <- x[w == 0, , drop = FALSE]
    x <- x[w > 0, , drop = FALSE]
    r <- r[w > 0]
    w <- w[w > 0]
  }
  if (!is.null(w) && all(w == 1)) w <- NULL
  size <- max(abs(response), if (!is.null(offset)) abs(offset))
  unit <- response_unit(r, w, size, center, scale, name)
  input <- input_units(x, indicator, center, scale)
  y <- (r - unit$center) / unit$scale
  n <- length(y)
  log_w <- if (is.null(w)) 0 else sum(log(w))
  m <- if (merge) merge_equal_rows(x, y, w) else
    list(x = x, y = y, weights = w, group = NULL, rows = 0, ss = 0)
  names(response) <- labels
  structure(class = "pfdtc_data", list(
    x = m$x, y = m$y, weights = m$weights,
    center = unit$center, scale = unit$scale,
    input_center = input$center, input_scale = input$scale,
    n = n, group = m$group, twins = m$twins, x_zero = x_zero,
    shift = log_density_shift(n, log_w, unit$scale, m$rows, m$ss),
    sd_y = unit$sd, response = response, offset = offset, prior_weights = weights,
    na_action = NULL, terms = NULL, xlevels = NULL, assign = NULL, var_names = NULL, frame = NULL))
}

# Rows of the data with a response of their own, cleaned as the data were.
clean_again <- function(data, x, response, w, offset, center, scale, merge, name = "transform", labels = NULL) {
  out <- clean_data(x, response, name, w, offset, data$input_center == 0 & data$input_scale == 1, labels, center, scale,
                    merge)
  kept <- c("frame", "terms", "xlevels", "assign", "var_names")
  out[kept] <- data[kept]
  out
}

# From the log density (or ELBO) of the cleaned y to that of y as given. "Here" is what the engine
# computes: the density of sqrt(W_g) y_g as N(0, W^{1/2} K W^{1/2} + s2 I), s2 in scaled units. Then
#   log p(y as given) = log p(here) + constant - (rows/2) log(2 pi s2) - ss/(2 s2),
#   constant = sum_n log(w_n)/2 - n log(scale):
# sqrt(w_n) and scale change the volume; merging's sum_g log(W_g)/2 has cancelled against here's
# own.
log_density_shift <- function(n, log_w, scale, rows, ss) {
  list(constant = log_w / 2 - n * log(scale), rows = rows, ss = ss)
}

# Centre and scale of the response. The sd is sqrt(sum w (r - mean)^2 / sum w * n/(n - 1)), mean and
# squares weighted alike: with equal weights it is sd(), and it does not change when all weights are
# multiplied by a number. `size`: the largest number that went into r, which tells a constant from
# rounding.
response_unit <- function(r, w, size, center, scale, name) {
  n <- length(r)
  total <- if (is.null(w)) n else sum(w)
  mean_r <- if (is.null(w)) mean(r) else r[1L] + sum(w * (r - r[1L])) / total
  spread <- max(abs(r - mean_r))
  q <- if (isTRUE(spread > 0)) ((r - mean_r) / spread)^2 else 0 * r   # no overflow
  sd_r <- spread * sqrt((if (is.null(w)) sum(q) else sum(w * q)) / total * n / (n - 1))
  unit_of(n, mean_r, sd_r, range(r), size, center, scale, name)
}

# The same from the moments of n numbers.
unit_of <- function(n, mean_r, sd_r, range, size, center, scale, name) {
  if (n == 1L) sd_r <- NA_real_
  if (!is.finite(mean_r) || (n > 1L && !is.finite(sd_r))) {
    abort_input(name, "too large to average", "of moderate size",
                hint = "Rescale the response or `weights`.")
  }
  if (scale && (n == 1L || diff(range) <= 8 * .Machine$double.eps * size)) {
    abort_input(name, if (n == 1L) "a single row" else "constant",
                "of at least two different values to be scaled by its sd",
                hint = "With `scale = FALSE` it would do.")
  }
  # variances are squares: these must stay numbers
  square <- if (scale) sd_r^2 else size^2
  if (!is.finite(square) || (size > 0 && square < .Machine$double.xmin)) {
    abort_input(name, sprintf("of size %.3g", if (scale) sd_r else size), "of moderate size",
                hint = "The square of its unit is not a number that can be computed with: rescale it.")
  }
  middle <- if (center) mean_r else 0
  list(center = middle, scale = if (scale) sd_r else plain_unit(max(abs(range - middle))), sd = sd_r)
}

# A response that is not to be scaled is computed with as it is where the fourth power of its size is far from the ends
# of double precision. Elsewhere a power of two is taken out and put back: multiplying by it is exact, so the numbers
# are those without it, could these be represented.
plain_unit <- function(size) {
  power <- if (size > 0) floor(log2(size)) else 0
  if (abs(power) <= 32) 1 else 2^power
}

# Mean and sd of each numeric input; 0 and 1 for 0/1 columns of factors and logicals and for
# constant columns.
input_units <- function(x, indicator, center, scale) {
  d <- ncol(x)
  n <- nrow(x)
  out <- list(center = numeric(d), scale = rep(1, d))
  for (j in which(!indicator)) {
    v <- x[, j]
    middle <- mean(v)
    spread <- max(v) - min(v)
    if (!spread > 0 || !is.finite(spread)) next
    if (center) out$center[j] <- middle
    if (scale) out$scale[j] <- spread * sqrt(sum(((v - middle) / spread)^2) / (n - 1))
  }
  out
}

check_response <- function(y, argument, n = NULL, labels = NULL) {
  reason <- if (is.character(y) && !anyNA(suppressWarnings(as.numeric(y)))) {
    "as.numeric() makes numbers of such text."
  } else if (is.logical(y) || is.factor(y) || is.character(y)) {
    "The model has Gaussian noise: for two classes take family = binomial()."
  } else if (length(dim(y)) == 2L && ncol(y) > 1L) {
    "Several responses need a fit each."
  } else if (is_time(y)) {
    reason_not_numeric(y)
  }
  if (!is.null(reason)) {
    abort_input(argument, describe(y), "a numeric vector, one response", hint = reason)
  }
  check_vector(y, argument, n, labels)
}

check_weights <- function(weights, n) {
  weights <- check_vector(weights, "weights", n)
  bad <- which(weights < 0)
  if (length(bad)) {
    abort_input("weights", sprintf("%s (element %d)", format(weights[bad[1L]]), bad[1L]),
                "precisions, zero or positive")
  }
  check_weight_sizes(weights)
}

# Names the rows go by: those of x, else those of y.
row_labels <- function(x, y) {
  if (is.data.frame(x)) return(if (is.character(attr(x, "row.names"))) row.names(x))
  labels <- if (is.null(dim(x))) names(x) else rownames(x)
  if (is.null(labels) && !is.null(y)) labels <- if (is.null(dim(y))) names(y) else rownames(y)
  if (length(labels) == NROW(x)) labels
}

# Every column has a name and no two the same: x1, x2, ... where there is none.
column_names <- function(x) {
  names <- colnames(x)
  if (is.null(names)) names <- character(ncol(x))
  blank <- is.na(names) | !nzchar(names)
  names[blank] <- paste0("x", seq_along(names))[blank]
  make.unique(names)
}

# The training rows as given, weight 0 included: list(x, index), the row i of the response is at
# x[index[i], ].
training_inputs <- function(data) {
  index <- if (is.null(data$group)) seq_len(data$n) else data$group
  if (is.null(data$x_zero)) return(list(x = data$x, index = index))
  used <- data$prior_weights > 0
  all <- integer(length(used))
  all[used] <- index
  all[!used] <- nrow(data$x) + seq_len(nrow(data$x_zero))
  list(x = rbind(data$x, data$x_zero), index = all)
}

# What is asked of rows: list(x, y, weights, ...) as given, or as frontend.R has cleaned them.

# Data taken as they are: list(x, y, weights).
check_rows <- function(x, y, weights) {
  x <- check_matrix(x, "x")
  if (!nrow(x)) abort_input("x", "without rows", "of at least one row")
  y <- check_vector(y, "y", nrow(x))
  if (!is.null(weights)) {
    weights <- check_vector(weights, "weights", nrow(x))
    weights <- check_weight_sizes(check_positive(weights, "weights", nrow(x)))
  }
  list(x = x, y = y, weights = weights)
}

# Numbers that tell one set of rows (in their order) from another.
fingerprint <- function(data) {
  i <- seq_along(data$y) / length(data$y)
  w <- data$weights
  unname(c(dim(data$x), colSums(data$x), crossprod(data$x, i), sum(data$y), sum(data$y * i),
           if (is.null(w)) c(length(i), sum(i)) else c(sum(w), sum(w * i))))
}

# A correction belongs to the rows in their order.
order_of_rows <- function(data) fingerprint(list(x = data$x, y = numeric(nrow(data$x)), weights = data$weights))

# Pure noise of variance s2 / w_n has the weighted mean square s2 / mean(w): units of the noise are mean(w) mean
# squares, so that multiplying all weights and the noise by a number changes nothing.
mean_weight <- function(data) if (is.null(data$weights)) 1 else sum(data$weights) / data$n

# Mean square of y about 0, the prior mean, or about its own, and what merged rows no longer show of it.
response_power <- function(data, y = data$y) {
  w <- if (is.null(data$weights)) 1 else data$weights
  power <- (sum(w * y^2) + data$shift$ss) / sum(w + 0 * y)
  if (power > 0) power else 1
}

# What merging adds to the log density of y as cleaned; `constant` does not move and is added at the end.
merged_log_density <- function(shift, noise) {
  -(shift$rows / 2) * log(2 * pi * noise) - shift$ss / (2 * noise)
}

# Some of so many rows, evenly spaced in their order.
evenly <- function(n, most) unique(round(seq(1, n, length.out = min(n, most))))

# A random part of the rows, `asked` or as many as are enough for m points: what merging adds to the density is left
# out. Of a source more than its sample is asked for: all rows, by passes.
optimise_rows <- function(data, asked, m) {
  n <- nrow(data$x)
  most <- if (is.null(asked)) max(enough_rows, 100 * m) else asked
  if (most >= n) {
    some <- !is.null(data$whole) && data$whole$n > data$n
    if (some && !is.null(asked) && most > n) data$by_passes <- data$whole
    else if (some) data$rows <- seq_len(n)
    return(data)
  }
  rows <- sort(sample.int(n, most))
  list(x = data$x[rows, , drop = FALSE], y = data$y[rows], weights = data$weights[rows], n = length(rows), rows = rows,
       group = NULL, shift = list(constant = 0, rows = 0, ss = 0))
}

# Points moved on so many rows predict as those moved on all to 0.001 in log density, see bench/large.R.
enough_rows <- 20000L

# Random rows as drawn before merging, each kept once.
random_points <- function(data, m) {
  rows <- sample.int(data$n, m)
  if (!is.null(data$group)) rows <- unique(data$group[rows])
  z <- data$x[rows, , drop = FALSE]
  z[!duplicated(z), , drop = FALSE]
}

# Some rows of data that were not merged; `rows`: which.
take_rows <- function(data, rows) {
  w <- data$weights[rows]
  shift <- log_density_shift(length(rows), if (is.null(w)) 0 else sum(log(w)), data$scale, 0, 0)
  list(x = data$x[rows, , drop = FALSE], y = data$y[rows], weights = w, n = length(rows), rows = rows,
       scale = data$scale, shift = shift, twins = lapply(data$twins, `[`, rows))
}

# The training rows as the certificate sees them; equal rows count as often as they occur, rows of weight 0 do not.
used_rows <- function(data) {
  offset <- if (is.null(data$offset)) 0 else data$offset
  if (length(offset) > 1L && !is.null(data$prior_weights)) offset <- offset[data$prior_weights > 0]
  list(x = data$x, index = if (is.null(data$group)) seq_len(nrow(data$x)) else data$group, offset = offset,
       names = NULL)
}

# Training rows, drawn at random, that far + near is certified at where there are more.
certified_rows <- 2000L

# used_rows(), or so many of them at random
some_rows <- function(data, most = certified_rows) {
  rows <- used_rows(data)
  if (length(rows$index) <= most) return(rows)
  taken <- sort(sample.int(length(rows$index), most))
  distinct <- unique(rows$index[taken])
  list(x = data$x[distinct, , drop = FALSE], index = match(rows$index[taken], distinct),
       offset = if (length(rows$offset) > 1L) rows$offset[taken] else rows$offset, names = NULL)
}

# Returns the root of the weighted sum of squares of the offset.
offset_size <- function(data) {
  w <- if (is.null(data$prior_weights)) 1 else data$prior_weights
  sqrt(sum(w * data$offset^2))
}

# The weight of each row of data$x, and its root.
merged_weights <- function(data) if (is.null(data$weights)) rep(1, nrow(data$x)) else data$weights
root_weights <- function(data) if (is.null(data$weights)) 1 else sqrt(data$weights)

# The data's variables by name, with their columns and, of a factor, its levels.
data_variables_of <- function(data) {
  lapply(seq_along(data$var_names), function(i) {
    list(name = data$var_names[i], columns = which(data$assign == i), levels = data$xlevels[[data$var_names[i]]])
  })
}

# A number for each row as given, from those of the rows used and those of weight 0; named as the response.
all_rows <- function(data, used, zero) {
  value <- stats::setNames(numeric(length(data$response)), names(data$response))
  w <- data$prior_weights
  if (is.null(w)) {
    value[] <- used
  } else {
    value[w > 0] <- used
    value[w == 0] <- zero
  }
  value
}
