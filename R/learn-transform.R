# Responses that are transformed: what is asked for, and the data.

# Returns the data with a transformed response; `given_response` is the original.
with_transform <- function(data, transform, s) {
  inputs <- training_inputs(data)
  y <- data$response
  out <- clean_again(data, inputs$x[inputs$index, , drop = FALSE], unname(transformed(transform, y)),
                     data$prior_weights, data$offset, s$center, s$scale, merges_rows(s$method), labels = names(y))
  kept <- c("na_action", "input_center", "input_scale")
  out[kept] <- data[kept]
  used <- if (is.null(data$prior_weights)) TRUE else data$prior_weights > 0
  out$shift$constant <- out$shift$constant + sum(log_slope(transform, unname(y))[used])
  out$given_response <- y
  transform$ends <- transformed(transform, range(y[used]))
  out$transform <- transform
  out
}

# ---- the rows that candidates are learned from -----------------------------------------------------------------------

# Returns the rows whose density counts, list(x, y, w, offset, group): used rows at the distinct inputs `taken`, without
# copies. `y` is as given, and `group` is the number of the distinct input.
rows_for_response <- function(data, taken) {
  inputs <- training_inputs(data)
  used <- if (is.null(data$prior_weights)) seq_along(data$response) else which(data$prior_weights > 0)
  copy <- copies_in(data)
  if (!is.null(copy)) used <- used[!duplicated(copy)]
  x <- inputs$x[inputs$index[used], , drop = FALSE]
  group <- equal_rows(x)
  if (is.null(group)) group <- seq_along(used)
  kept <- group %in% taken
  used <- used[kept]
  list(x = x[kept, , drop = FALSE], y = unname(data$response[used]), w = data$prior_weights[used],
       offset = data$offset[used], group = match(group[kept], unique(group[kept])), data = data)
}

# Returns list(rows, theta, until, size, n, order), from which candidates are learned. With many rows, `rows` are those
# that count and their neighbours, because in a thinned sample what f does between its rows looks like noise. `n` is the
# number of all rows, `order` the order of `rows` among them.
rows_around <- function(data, problem, theta, size) {
  pool <- problem$pool
  taken <- seq_len(pool$n)
  thinned <- pool$n > transform_rows
  if (thinned) {
    near <- function(rows, count, ...) c(rows, problem$neighbours(theta, rows, count, ...))
    taken <- if (!is.null(pool$levels)) pool$take(transform_rows) else
      c(near(counted_rows(problem, size), learning_sizes[[size]][["near"]]),
        near(pool$take(response_rule[["predicted"]]), learning_sizes$score[["near"]], earlier = FALSE))
    taken <- sort(unique(taken[taken > 0L]))
  }
  list(rows = rows_for_response(data, if (is.null(pool$of)) taken else pool$of[taken]), theta = theta,
       until = pool$until, size = size, n = pool$n, order = if (thinned && is.null(pool$levels)) {
         list(rank = rank(pool$rank[taken]), take = function(count) match(pool$take(count), taken))
       })
}

counted_rows <- function(problem, size) problem$pool$take(min(learning_sizes[[size]][["rows"]], problem$pool$n))

# Returns log T'(y) less the log of the unit of T(y), summed over the rows of each distinct input.
slopes_of_rows <- function(rows, transform, scale) {
  each <- (if (is.null(transform)) 0 * rows$y else log_slope(transform, rows$y)) - log(scale)
  drop(rowsum(each, rows$group, reorder = FALSE))
}

# Returns the cleaned rows with the transformed response, equal ones merged.
rows_transformed <- function(rows, transform) {
  y <- if (is.null(transform)) rows$y else transformed(transform, rows$y)
  out <- clean_again(rows$data, rows$x, y, rows$w, rows$offset, TRUE, TRUE, FALSE)
  out[c("transform", "given_response")] <- list(transform, rows$y)
  if (anyDuplicated(rows$group)) merge_all_equal_rows(out) else out
}

# ---- what is asked for -----------------------------------------------------------------------------------------------

# Returns NULL or a transform. Its lambda is NA if it is to be learned; the transform of a fit is taken as it is.
asked_transform <- function(transform, data, s) {
  if (!asks_for_transform(transform)) return(NULL)
  known <- inherits(transform, "pfdtc_transform")
  if (!known) {
    kind <- check_choice(transform, transforms, "transform")
    transform <- new_transform(kind, data$response)
  }
  if (transform$kind == "log") check_positive_response(data$response)
  if (is.na(transform$lambda) && !s$hyper[1L] %in% "evidence") {
    abort_input("transform", sprintf("\"%s\" beside `hyper = \"%s\"`", transform$kind, s$hyper[1L]),
                "\"log\", or a fit's own", hint = "It is learned by `hyper = \"evidence\"`; fit$transform is known.")
  }
  transform
}

new_transform <- function(kind, y) {
  if (kind == "log") return(structure(list(kind = kind, lambda = 0), class = "pfdtc_transform"))
  structure(list(kind = kind, lambda = NA_real_, centre = stats::median(y), unit = column_spread(y)),
            class = "pfdtc_transform")
}
