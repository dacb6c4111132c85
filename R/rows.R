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
