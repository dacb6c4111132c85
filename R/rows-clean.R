# Cleans the rows of a formula or of a matrix. rows-read.R reads formulas, rows-signature.R merges rows.
#
# clean_data() returns a list of class "pfdtc_data" with N merged rows of d inputs:
#   x               N x d double matrix with column names, without rows of weight 0; equal rows are merged
#   y               N doubles, (response - offset - center) / scale; for merged rows their weighted mean
#   weights         NULL (all 1), or N positive doubles; for merged rows their sum
#   center, scale   mean and sd of response - offset; if not wanted, 0 and 1 or a power of 2 (see response_unit())
#   n               number of rows with positive weight, before merging
#   group           NULL, or n integers: the row of x that each row was merged into
#   twins           NULL, or list(rows, ss): the number of further rows merged into each row of x, and the sum of
#                   squares of their responses about the mean
#   x_zero          NULL, or the inputs of rows of weight 0, which have fitted values
#   shift           list(constant, rows, ss): from the log density of y to that of the response as given, see
#                   log_density_shift()
#   sd_y            sd of response - offset, in units of the response
#   response, offset, prior_weights   all given rows; the last two may be NULL; names(response) are row names
#   na_action, terms, groups   of the formula method, else NULL; `groups` has the kernels of its groups
#   frame           what a fit keeps to read new rows, see make_frame()

data_from_matrix <- function(x, y, weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                             merge = TRUE, likelihood = NULL) {
  refuse_if(missing(x) || is.null(x), "x", "is missing",
            hint = "Give a formula and `data`, or a matrix `x` and a response `y`.")
  refuse_if(missing(y) || is.null(y), "y", "is missing", hint = "Give a vector with a number for each row of `x`.")
  labels <- row_labels(x, y)
  x <- check_matrix(x, "x")
  n <- nrow(x)
  refuse_if(!n || !ncol(x), "x", sprintf("has %s and %s", count_of(n, "row"), count_of(ncol(x), "column")),
            hint = "It needs at least one of each.")
  given <- colnames(x)
  named <- !is.null(given) && !anyNA(given) && all(nzchar(given))
  names <- column_names(x)
  if (!is.null(rownames(x)) || !identical(given, names)) dimnames(x) <- list(NULL, names)
  message_if_constant(x, colnames(x))
  message_if_degrees(x)
  settled <- settle_family(likelihood, y, "y")
  data <- clean_rows(x, y, "y", weights = if (!is.null(weights)) check_weights(weights, n),
                     offset = if (!is.null(offset)) check_vector(offset, "offset", n),
                     labels = labels, center = center, scale = scale, merge = merge, likelihood = settled$likelihood)
  data$family <- settled$family
  data$frame <- list(method = "matrix", columns = colnames(x), named = named)
  data
}

# Sends a message that names constant inputs. `owner` has the name of the input that each column of x belongs to.
message_if_constant <- function(x, owner) {
  constant <- nrow(x) > 1L & vapply(seq_len(ncol(x)), function(j) min(x[, j]) == max(x[, j]), NA)
  names <- names(which(tapply(constant, owner, all)))
  if (length(names))
    tell_classed("constant", sprintf(if (length(names) == 1L) "%s is constant, so its effect cannot be learned." else
      "%s are constant, so their effects cannot be learned.", list_quoted(names)))
}

# Sends a message if longitude and latitude are plain numbers but degrees distort distances. They do if the length of a
# degree of longitude varies by a factor of 1.5 or more, or if longitudes span a quarter of the globe.
message_if_degrees <- function(x) {
  at <- c(grep("^(lon|long|lng|longitude)$", colnames(x), TRUE)[1L], grep("^(lat|latitude)$", colnames(x), TRUE)[1L])
  if (anyNA(at)) return(invisible())
  lon <- range(x[, at[1L]])
  lat <- x[, at[2L]]
  if (!isTRUE(max(abs(lat)) <= 90 && max(abs(lon)) <= 360)) return(invisible())
  width <- cospi(range(abs(lat)) / 180)
  if (width[1L] < 1.5 * width[2L] && diff(lon) < 90) return(invisible())
  names <- colnames(x)[at]
  tell_classed("degrees", sprintf(paste(
    "`%s` and `%s` are used as plain numbers, though a degree of longitude is up to %.0f km and down to %.0f km long",
    "in the data. sphere(%s, %s) in the formula has the right distances."), names[1L], names[2L], 111.2 * width[1L],
    111.2 * width[2L], names[1L], names[2L]))
}

# Returns the list of clean_data(). For a `likelihood` (NULL: Gaussian) it also has the responses `sites`, and its `y`
# is used only in plots. `rows` are names for the rows in messages, by default their numbers.
clean_rows <- function(x, response, name, weights, offset, labels, center, scale, merge, likelihood, rows = NULL) {
  if (is.null(likelihood)) return(clean_data(
    x, check_response(response, name, nrow(x), rows), name, weights, offset, labels, check_flag(center, "center"),
    check_flag(scale, "scale"), merge))
  check_flag(scale, "scale")
  drops <- c("labels", if (length(unique(response)) > 1L) "ordered") # with one ordered class, empty classes stay
  kind <- as_response(likelihood)$kind
  if (is.factor(response) && kind %in% drops) response <- droplevels(response)
  read <- c(read_response(likelihood, response, weights, name, nrow(x)), ordered = is.ordered(response))
  reads <- response_row(likelihood)$reads
  refuse_if(reads == "positive" && all(read$y == 0), name, "is 0 in all rows")
  refuse_if(reads == "censored" && !inherits(response, "Surv") && !any(is.finite(likelihood$ends)), "family",
            "= tobit() has no limit, so no response would be censored",
            hint = "Give a limit, as in tobit(left = 0), or a Surv response. Leave out `family` for normal noise.")
  means <- is.numeric(center) && all(is.finite(center)) # a mean, or one for each of several classes
  if (!means || !length(center) %in% c(1L, if (kind == "labels") length(read$levels))) check_flag(center, "center")
  with_sites(clean_data(x, read$response, name, read$weight, NULL, labels, FALSE, FALSE, merge = FALSE), read, offset)
}

# Returns rows of finite numbers as "pfdtc_data". `name` is the response's name in messages, and `labels` are row names.
# Equal rows are merged if the share of distinct rows is at most `merge` (TRUE: 0.9). The response is centred if
# `center` and scaled if `scale`; instead, `unit` may give its centre, scale and sd.
clean_data <- function(x, response, name, weights, offset, labels, center, scale, merge, unit = NULL) {
  r <- if (is.null(offset)) response else response - offset
  w <- weights
  x_zero <- NULL
  if (!is.null(w) && any(w == 0)) {
    if (all(w == 0)) abort_input("weights", "is 0 in all rows")
    x_zero <- x[w == 0, , drop = FALSE]
    x <- x[w > 0, , drop = FALSE]
    r <- r[w > 0]
    w <- w[w > 0]
  }
  if (!is.null(w) && all(w == 1)) w <- NULL
  if (is.null(unit))
    unit <- response_unit(r, w, max(abs(response), if (!is.null(offset)) abs(offset)), center, scale, name)
  y <- (r - unit$center) / unit$scale
  m <- merge_equal_rows(x, y, w, if (isTRUE(merge)) 0.9 else merge)
  names(response) <- labels
  structure(class = "pfdtc_data", list(
    x = m$x, y = m$y, weights = m$weights, center = unit$center, scale = unit$scale, n = length(y),
    group = m$group, twins = m$twins, x_zero = x_zero,
    shift = log_density_shift(length(y), sum_of_logs(w), unit$scale, m$rows, m$ss), sd_y = unit$sd,
    response = response, offset = offset, prior_weights = weights, na_action = NULL, terms = NULL, frame = NULL))
}

# Returns rows with a response in the units of `fit` (its centre and scale), without rows of weight 0: list(x, y,
# weights, n, center, scale, shift, offset_squares = sum w offset^2). `given` is list(x, response, w, offset).
cleaned <- function(fit, given) {
  keep <- rep_len(given$w %||% 1, length(given$response)) > 0
  y <- ((given$response - (given$offset %||% 0))[keep] - fit$center) / fit$scale
  list(x = given$x[keep, , drop = FALSE], y = y, weights = given$w[keep], n = length(y), center = fit$center,
       scale = fit$scale, shift = list(constant = 0, rows = 0, ss = 0), offset_squares = offset_squares(given))
}

clean_again <- function(data, x, response, w, offset, center, scale, merge, name = "transform", labels = NULL) {
  kept <- c("frame", "terms", "groups")
  replace(clean_data(x, response, name, w, offset, labels, center, scale, merge), kept, data[kept])
}

# Returns the terms that convert the computed log density, of merged, centred and scaled responses times root weights,
# to that of y as given, for the noise variance s2:
#   log p(y as given) = log p(computed) + constant - (rows/2) log(2 pi s2) - ss/(2 s2),
#   constant = sum_n log(w_n)/2 - n log(scale).
# `constant` is the log Jacobian of sqrt(w_n) y_n / scale for weights w_n. `rows` is the number of rows that were merged
# away, and `ss` their weighted sum of squares about the means of equal rows.
log_density_shift <- function(n, log_w, scale, rows = 0, ss = 0) {
  list(constant = log_w / 2 - n * log(scale), rows = rows, ss = ss)
}

sum_of_logs <- function(w) if (is.null(w)) 0 else sum(log(w))

only_in_memory <- "Give the rows as a data frame to use a family, a transform or `tol`."

check_response <- function(y, argument, n, labels, for_classes = NULL) {
  reason <- if (is.character(y) && !anyNA(as_number(y))) {
    "as.numeric() makes numbers of such text."
  } else if (is_time(y) || inherits(y, "Surv") || !is.null(hint_for_text(y))) {
    hint_for_text(y) %||% reason_not_numeric(y)
  } else if (is.logical(y) || is.factor(y) || is.character(y)) {
    classes <- length(unique(y))
    refuse_if(2 * classes > length(y), argument, describe(y), hint = "For classes give family = multinomial().",
              message = sprintf("`%s` has %d different values, which are no numbers.", argument, classes))
    for_classes %||%
      "The model has Gaussian noise. For two classes use family = binomial(), for more multinomial() or ordinal()."
  } else if (is.data.frame(y) && ncol(y) == 1L) {
    sprintf("Give its column, as in data[[\"%s\"]].", names(y))
  } else if (length(dim(y)) == 2L && ncol(y) > 1L) {
    sprintf("Fit each response by itself: %s[, %s]. Successes and failures need family = binomial().", argument,
            show_values(c(colnames(y), 1L)[1L]))
  }
  if (!is.null(reason)) abort_input(argument, describe(y), "a single response, a numeric vector", hint = reason)
  check_vector(y, argument, n, labels)
}

# Returns a hint for text that holds dates, or marked numbers such as "12 %", "$1,234" or "0,5"; NULL for other values.
hint_for_text <- function(x) {
  if (is_dates_as_text(x)) return(reason_not_numeric(x))
  text <- if (is.factor(x) || is.character(x)) as.character(x[!is.na(x)])
  numbers <- length(text) && all(grepl("^[^0-9A-Za-z]*[0-9][0-9., ]*[^0-9A-Za-z]*$", text))
  unread <- if (numbers) text[is.na(as_number(text))]
  if (length(unread))
    sprintf("R does not read \"%s\" as a number: remove the marks by gsub(), then use as.numeric().", unread[1L])
}

# Checks weights: 0, which drops the row, or numbers whose fourth powers neither overflow nor underflow.
check_weights <- function(weights, n) {
  weights <- check_vector(weights, "weights", n)
  bad <- which(weights != 0 & !(weights >= 1e-60 & weights <= 1e60))[1L]
  refuse_if(!is.na(bad), "weights", weights[bad], "0 or numbers from 1e-60 to 1e60",
            hint = if (weights[bad] > 0) "Divide all weights by one number.", where = sprintf("element %d", bad))
  weights
}

check_rows <- function(x, y, weights) {
  x <- check_matrix(x, "x")
  if (!nrow(x)) abort_input("x", "has no rows")
  list(x = x, y = check_vector(y, "y", nrow(x)),
       weights = if (!is.null(weights)) check_weights(check_positive(weights, "weights", nrow(x)), nrow(x)))
}

# Returns labels of the rows: row names (or names) of x or, unless x is a data frame, those of y; NULL without labels.
row_labels <- function(x, y) {
  if (is.data.frame(x)) return(if (is.character(attr(x, "row.names"))) row.names(x))
  own <- function(v) if (is.null(dim(v))) names(v) else rownames(v)
  labels <- own(x) %||% own(y)
  if (length(labels) == NROW(x)) labels
}

column_names <- function(x) {
  names <- colnames(x) %||% character(ncol(x))
  make.unique(ifelse(is.na(names) | !nzchar(names), paste0("x", seq_along(names)), names))
}

random_state <- function() {
  if (!exists(".Random.seed", envir = globalenv(), inherits = FALSE)) stats::runif(1)
  get(".Random.seed", envir = globalenv())
}

# Evaluates `draws`, an expression that makes random numbers, from `seed` if that is given. The result has the attribute
# `seed`, and the state of R's generator is restored, as in stats::simulate().
from_seed <- function(seed, draws) {
  state <- random_state()
  if (is.null(seed)) return(structure(draws, seed = state))
  check_count(seed, "seed", min = -.Machine$integer.max, max = .Machine$integer.max)
  structure(with_fixed_seed(draws, seed, NULL), seed = structure(seed, kind = as.list(RNGkind())))
}

# Evaluates `expr` with random numbers from `seed` by a `kind` of generator (NULL: the user's). Restores R's generator.
with_fixed_seed <- function(expr, seed = 1, kind = "Mersenne-Twister") {
  state <- random_state()
  on.exit(assign(".Random.seed", state, envir = globalenv()))
  if (is.null(kind)) set.seed(seed) else set.seed(seed, kind, "Inversion", "Rejection")
  expr
}

# Returns list(x, index) for all given rows, including those of weight 0: row i has the inputs x[index[i], ].
training_inputs <- function(data) {
  index <- data$group %||% seq_len(data$n)
  if (is.null(data$x_zero)) return(list(x = data$x, index = index))
  zero <- nrow(data$x) + seq_len(nrow(data$x_zero))
  list(x = rbind(data$x, data$x_zero), index = as.integer(all_rows(data, index, zero)))
}

# Returns a number for each given row: from `used` for rows of positive weight, from `zero` for the others.
all_rows <- function(data, used, zero) {
  value <- stats::setNames(numeric(length(data$response)), names(data$response))
  dropped <- (data$prior_weights %||% rep(1, length(value))) == 0
  replace(replace(value, !dropped, used), dropped, zero)
}

# Fits with neighbours are certified at no more than this number of training rows.
certified_rows <- 2000L

# Returns the training rows to certify as list(x, index, offset), where row i has the inputs x[index[i], ]: all
# rows of positive weight, before merging, or `most` random ones.
used_rows <- function(data, most = Inf) {
  index <- data$group %||% seq_len(nrow(data$x))
  offset <- if (is.null(data$offset)) 0 else of_used_rows(data, data$offset)
  if (length(index) <= most) return(list(x = data$x, index = index, offset = offset))
  taken <- sort(sample.int(length(index), most))
  distinct <- unique(index[taken])
  list(x = data$x[distinct, , drop = FALSE], index = match(index[taken], distinct),
       offset = if (length(offset) > 1L) offset[taken] else offset)
}

# Returns the part of `data` with the merged rows numbered `rows`. `twins` describes the rows merged into each of them.
take_rows <- function(data, rows) {
  w <- data$weights[rows]
  list(x = data$x[rows, , drop = FALSE], y = data$y[rows], weights = w, n = length(rows), rows = rows,
       scale = data$scale, shift = log_density_shift(length(rows), sum_of_logs(w), data$scale),
       twins = lapply(data$twins, `[`, rows))
}

# Inducing points are optimised on this many rows. More rows change log densities by 0.001 per row (bench/large.R).
enough_rows <- 20000L

# Returns the random sample of rows on which m inducing points are optimised. Its size is `asked`, by default the larger
# of enough_rows and 100 m. If `asked` exceeds the sample that is kept of a row source, all rows of the source are used,
# in passes (element `by_passes`).
optimise_rows <- function(data, asked, m) {
  n <- nrow(data$x)
  most <- asked %||% max(enough_rows, 100 * m)
  if (most >= n) {
    some <- !is.null(data$whole) && data$whole$n > data$n
    if (some && !is.null(asked) && most > n) data$by_passes <- data$whole
    else if (some) data$rows <- seq_len(n)
    return(data)
  }
  take_rows(data, sort(sample.int(n, most)))
}

evenly <- function(n, most) unique(round(seq(1, n, length.out = min(n, most))))

# Returns the user's weights, or NULL. With a noise trend, data$prior_weights are not the user's weights.
users_weights <- function(data) if (is.null(data$noise_trend)) data$prior_weights else data$given_weights

# Returns TRUE for a fit with weights other than 0 and 1 or, for a fit without its data, if its call has `weights`.
is_weighted <- function(fit) !all(users_weights(fit$data) %in% 0:1) || is.null(fit$data) && !is.null(fit$call$weights)

offset_size <- function(data) sqrt(offset_squares(list(w = data$prior_weights, offset = data$offset)))

offset_squares <- function(rows) sum((rows$w %||% 1) * rows$offset^2)

# Returns what a fit keeps to read newdata. Without keep_data, drops the environment of the terms, which may hold data.
make_frame <- function(data, keep_data = TRUE) {
  frame <- data$frame
  if (!keep_data) {
    if (length(data$offset)) frame$offset_size <- offset_size(data) # certificates allow for its rounding
    if (!is.null(frame$terms)) frame$terms <- drop_environment(frame$terms)
    # Keep minimum, median and maximum of each input for plot(), one column at a time to save memory.
    frame$outline <- vapply(seq_len(ncol(data$x)), function(j) {
      stats::quantile(data$x[, j], c(0, 0.5, 1), names = FALSE)
    }, numeric(3L))
    # For points on the globe, keep the ranges of longitude and latitude.
    for (v in Filter(function(v) v$kind == "sphere", placed_variables(frame))) {
      at <- apply(degrees_of(data$x[, v$columns], v$middle), 2L, stats::quantile, c(0, 0.5, 1), names = FALSE)
      frame$outline[, v$columns] <- sphere(at[, 1L], at[, 2L])
    }
  }
  frame
}

drop_environment <- function(terms) if (!is.null(terms)) `attr<-`(terms, ".Environment", globalenv())
