# The lambda of a transformed response, by the Vecchia likelihood of the response itself, and the data with it.

# Alternates between the hyperparameters, of the given kernel or Matern 3/2, at one lambda, and the lambda that makes
# the responses most likely with these. Hyperparameters are those of the transformed response in units of its sd.
learn_transform <- function(transform, data, settings, state) {
  rows <- rows_for_transform(data)
  tell <- stage_line("transform", settings$control$progress, after = 1)
  on.exit(tell(NULL), add = TRUE)
  tell("its lambda")
  transform$lambda <- lambda_beside_line(transform, rows)
  theta <- NULL
  for (round in 1:2) {
    part <- data_with_lambda(transform, rows, data)
    s <- replace(first_plan(part, settings)$learn, "rows", list(NULL))
    pool <- learning_rows(part, s)
    problem <- learning_problem(pool, s, "matern32")
    if (is.null(theta)) theta <- run_starts(problem, s$restarts)$thetas[[1L]]
    theta <- climb(problem, theta, budget("finals", c(6L, 6L)))$theta
    count_evaluations(state, "transform", list(evaluations = pool$count$evaluations))
    transform$lambda <- likeliest_lambda(transform, rows, data, problem, theta)
  }
  transform
}

# Returns the first of equal rows, at most transform_rows at random: list(x, y, w, offset).
rows_for_transform <- function(data) {
  inputs <- training_inputs(data)
  used <- if (is.null(data$prior_weights)) seq_along(data$response) else which(data$prior_weights > 0)
  rows <- used[!duplicated(inputs$index[used])]
  group <- equal_rows(inputs$x[inputs$index[rows], , drop = FALSE])
  if (!is.null(group)) rows <- rows[!duplicated(group)]
  if (length(rows) > transform_rows) rows <- sort(sample(rows, transform_rows))
  list(x = inputs$x[inputs$index[rows], , drop = FALSE], y = unname(data$response[rows]), w = data$prior_weights[rows],
       offset = data$offset[rows])
}

data_with_lambda <- function(transform, rows, data) {
  clean_again(data, rows$x, transformed(transform, rows$y), rows$w, rows$offset, TRUE, TRUE, FALSE)
}

# Returns the lambda of the largest profile likelihood of a linear model (Box and Cox).
lambda_beside_line <- function(transform, rows) {
  H <- cbind(1, rows$x)
  each <- function(lambda) {
    transform$lambda <- lambda
    z <- transformed(transform, rows$y) - if (is.null(rows$offset)) 0 else rows$offset
    w <- if (is.null(rows$w)) 1 else rows$w
    rss <- sum(stats::lm.fit(H * sqrt(w), z * sqrt(w))$residuals^2)
    sum(log_slope(transform, rows$y)) - length(z) * log(max(rss, 1e-300)) / 2
  }
  stats::optimize(each, c(0, 2), maximum = TRUE, tol = 0.01)$maximum
}

# Hyperparameters are in units of the transformed response's sd and stay. The log density of the response at another
# lambda is that of the scaled transformed one plus the log slope of the transform.
likeliest_lambda <- function(transform, rows, data, problem, theta) {
  pool <- problem$pool
  counted <- pool$take(min(learning_sizes$finals[["rows"]], pool$n))
  neighbours <- problem$neighbours(theta, counted, learning_sizes$finals[["near"]])
  now <- problem$at(theta)
  each <- function(lambda) {
    transform$lambda <- lambda
    part <- data_with_lambda(transform, rows, data)
    value <- native_vecchia(part, now, counted, neighbours, slopes = FALSE, control = problem$run)$value
    if (!is.finite(value)) return(-1e300)
    value + sum(log_slope(transform, rows$y[counted])) - length(counted) * log(part$scale)
  }
  stats::optimize(each, pmin(pmax(transform$lambda + c(-0.7, 0.7), 0), 2), maximum = TRUE, tol = 0.005)$maximum
}

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

# ---- what is asked for -----------------------------------------------------------------------------------------------

# Returns NULL or a transform. Its lambda is NA if it is to be learned; the transform of a fit is taken as it is.
asked_transform <- function(transform, data, s) {
  if (is.null(transform)) return(NULL)
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

check_positive_response <- function(y) {
  if (!all(y > 0)) {
    abort_input("transform", sprintf("\"log\" of a response that goes down to %s", format(min(y))),
                "\"log\" of positive responses", hint = "\"yeojohnson\" is for any.")
  }
}
