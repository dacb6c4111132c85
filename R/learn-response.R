# Chooses the model of the response: its transform T, and the trend and tails of its noise. This model is chosen before
# the kernel, by the Vecchia likelihood with the user's kernel or Matern 3/2 (with little noise, a smoother kernel).
# Searches start from the hyperparameters learned for the first candidate. With sums over the rows of the Vecchia
# likelihood, which are the same for all candidates, a candidate has
#
#   merit = log p(T(y)) + sum log T'(y) + log prior + Laplace's terms for a noise trend (learn_noise()),
#   score = penalty for parameters - merit; the smallest score is best.

# Returns the data with the chosen model of the response, or after an interrupt with that of the first candidate. Sets
# state$open to TRUE if no argument excludes a choice of the transform. Stops if the data lack inputs of the fit `like`.
response_stage <- function(data, asked, state) {
  other <- if (!is.null(data$terms)) setdiff(asked$like_columns, colnames(data$x))
  refuse_if(length(other) > 0L, "like",
            sprintf("has the input%s %s, which the data do not have", plural_s(length(other)), list_quoted(other)),
            hint = sprintf("The data have %s.", list_quoted(colnames(data$x))))
  if (!is.null(asked$noise_trend) || !is.null(asked$noise_tail)) {
    trend <- at_names(asked$noise_trend, data, asked$kernel$columns)
    refuse_if(any(trend$columns > ncol(data$x)), "like", sprintf("has input %d, but the data have %s",
                                                                 max(trend$columns), count_of(ncol(data$x), "input")))
    like <- list(transform = asked_transform(asked$transform, data, asked), tail = asked$noise_tail, trend = trend)
    return(data_as_modelled(data, like, asked))
  }
  open <- responses_to_try(data, asked)
  state$open <- identical(asked$transform, "auto") && c(open$plain, "rows")[1L] == "rows"
  first <- open$transforms[[1L]]
  lambda_is_open <- !is.null(first) && is.na(first$lambda)
  if (max(length(open$transforms), length(open$trends)) == 1L && is.null(open$trends[[1L]]) && !lambda_is_open) {
    why <- switch(c(open$plain, "")[1L], groups = "there is no smooth part", data = "rows come from a source",
                  m = sprintf("%s was given", argument_for_points(asked)),
                  mean = "the coefficients of the given `mean` are in units of the response",
                  tol = , noise = , kernel = , offset = , center = , scale = sprintf("`%s` was given", open$plain))
    if (!is.null(why)) {
      state$because <- stats::setNames(sprintf("No transform was tried, and the noise is constant, because %s.", why),
                                       if (identical(open$plain[1L], "mean")) "given_mean" else "response")
    }
    return(data_as_modelled(data, list(transform = first), asked))
  }
  if (lambda_is_open) first$lambda <- lambda_of_line(first, rows_for_response(data, seq_along(data$y)))
  find <- function(data, open, otherwise = NULL) {
    run_stage(state, "response", find_response(data, asked, open, first, state), otherwise = otherwise)
  }
  found <- with_log_inputs(data, asked, open, state, find, first)
  chosen <- found$chosen
  out <- data_as_modelled(found$data, chosen, asked)
  # Count lambda of a transform and the noise trend as parameters, but not the tails: logLik() assumes normal noise.
  lambda <- identical(chosen$transform$kind, "yeojohnson") && !inherits(asked$transform, "pfdtc_transform")
  out$response_df <- lambda + noise_df(chosen$trend)
  out
}

# Returns the data for the response model list(transform, trend, tail), with the untransformed data$given_response.
data_as_modelled <- function(data, model, asked) {
  transform <- model$transform
  if (!is.null(transform)) {
    inputs <- training_inputs(data)
    y <- data$response
    out <- clean_again(data, inputs$x[inputs$index, , drop = FALSE], unname(transformed(transform, y)),
                       data$prior_weights, data$offset, asked$center, asked$scale, merges_rows(asked$method),
                       labels = names(y))
    out[c("na_action", "warp")] <- data[c("na_action", "warp")]
    used <- of_used_rows(data, y)
    out$shift$constant <- out$shift$constant + sum(log_slope(transform, unname(used)))
    transform$ends <- transformed(transform, range(used))
    out[c("given_response", "transform")] <- list(y, transform)
    data <- out
  }
  if (!is.null(model$trend)) data <- with_noise_trend(data, model$trend)
  replace(data, "noise_tail", list(model$tail))
}

# Returns the chosen model of the response. Sets state$begun (searches that learn_evidence() can continue) and
# state$response (the table of candidates). `first` is the transform of the first candidate.
find_response <- function(data, asked, open, first, state) {
  tell <- stage_line("transform and noise", asked$control$progress, after = 1)
  tell("starts")
  start <- data_as_modelled(data, list(transform = first), asked)
  plan <- first_plan(start, asked)
  s <- plan$learn
  problem <- learning_problem(learning_rows(start, s), s, "matern32")
  begun <- search_starts(problem, s$restarts, state)
  if (!in_time(problem$pool) && is.null(open$trends[[1L]])) {
    because <- c(response = "No transform was tried, and the noise is constant, because `max_seconds` was reached.")
    list2env(list(begun = begun, asked = plan$asked, because = because), state)
    return(list(transform = first))
  }
  if (sum(problem$free) > searched_inputs[["noise"]]) open$trends <- open$trends[1L]
  from <- rows_around(data, problem, begun$theta, if (length(open$trends) > 1L) "response" else "finals")
  from[c("s", "scale", "profile", "least")] <- list(replace(s, "rows", list(NULL)), start$scale, "matern32", open$least)
  state$tails <- from$tails <- open$tails # state$tails is for with_final_tail()
  if (max(length(open$transforms), length(open$trends)) > 1L && is.null(open$trends[[1L]])) {
    from <- with_smoother_profile(from, first)
    if (!is.null(from$simulator)) {
      if (length(open$trends) > 1L) {
        state$because <- c(noise_variance = "The noise is constant, because it is almost 0.")
      }
      open$trends <- list(NULL)
      from$tails <- FALSE
    }
  }
  candidates <- response_candidates(open, from)
  choice <- choose(lapply(stats::setNames(nm = names(candidates)), function(label) {
    function(tried) {
      if (length(tried) && !in_time(problem$pool)) return(NULL)
      tell(label)
      started <- proc.time()[["elapsed"]]
      model <- with_tail(candidates[[label]](tried), from)
      if (!is.null(model)) c(model, list(label = label, seconds = proc.time()[["elapsed"]] - started))
    }
  }), function(model) list(score = price_of_response(model$problem) * model$parameters - model$merit))
  choice$tried <- with_short_lengthscale(with_terms_in_merit(choice$tried, from), from)
  choice <- checked_response(choice, from)
  best <- choice$best
  if (open$errors) best$errors <- squared_errors(best, from)
  state$response <- table_of_responses(choice, names(candidates))
  state$because <- c(state$because, because_response(choice, open, price_of_response(best$problem)))
  unchanged <- identical(best$transform, first) && is.null(best$trend)
  state$begun <- if (unchanged) begun else if (isTRUE(asked$center) && isTRUE(asked$scale))
    list(theta = best$theta, report = begun$report)
  if (!is.null(state$begun)) state$begun$terms <- best$terms
  if (has_groups(s$kernel) && !is.null(best$transform) && length(open$transforms) > 1L) {
    tell_classed("transformed", sprintf("The response is %s; effects of groups are on that scale. %s",
                                        sub("^Yeo", "a Yeo", describe_transform(best$transform)),
                                        "transform = \"none\" keeps the response as given."))
  }
  if (unchanged) {
    state$asked <- plan$asked
    return(best)
  }
  count_evaluations(state, "response", list(evaluations = problem$pool$count$evaluations))
  state$so_far <- NULL
  best
}

# Returns the candidates, named by their labels. A noise trend is tried with the first transform and with the best one.
# If `noise` is a formula, every candidate has its noise trend, or constant noise if that cannot be learned.
response_candidates <- function(open, from) {
  labels <- vapply(open$transforms, transform_label, "")
  trend <- open$trends[[length(open$trends)]]
  constant <- stats::setNames(lapply(open$transforms, function(transform) {
    function(tried) response_model(from, transform)
  }), labels)
  if (is.null(trend)) return(constant)
  given <- length(open$trends) == 1L
  uneven <- lapply(labels, function(label) {
    function(tried) {
      if (given) {
        one <- constant[[label]](tried)
        model <- with_uneven_noise(one, trend, from)
        if (!is.null(model)) return(model)
        warn_convergence(sprintf(paste("The noise %s cannot be learned: its log marginal likelihood is not finite.",
                                       "The fit has constant noise. Leave inputs out of `noise`."), trend$label))
        return(one)
      }
      worth_it <- label == labels[1L] || identical(best_of(tried[intersect(labels, names(tried))]), label)
      one <- tried[[label]]
      if (!worth_it || is.null(one) || at_floor(one)) return(NULL)
      with_uneven_noise(one, trend, from, one$value - noise_trend_sizes[["behind"]])
    }
  })
  names(uneven) <- paste0(labels, if (is.null(trend$smooth)) ", linear noise" else ", smooth noise")
  if (given) uneven else c(constant[1L], uneven[1L], constant[-1L], uneven[-1L])
}

# Returns list(rows, theta, until, size, n, weight, order), from which candidates are learned until the time `until`.
# With many rows and no groups, `rows` are those of the Vecchia likelihood (learning_sizes[[size]]), held-out rows, and
# neighbours of both: without neighbours, variation of f would look like noise. All `n` rows have the mean weight
# `weight`. `order` is list(rank, take), the random order of `rows`, or NULL if `rows` are all rows or there are groups.
rows_around <- function(data, problem, theta, size) {
  pool <- problem$pool
  taken <- seq_len(pool$n)
  thinned <- pool$n > transform_rows
  if (thinned) {
    near <- function(rows, count, ...) c(rows, problem$neighbours(theta, rows, count, ...))
    taken <- if (!is.null(pool$levels)) pool$take(transform_rows) else
      c(near(pool$take(min(learning_sizes[[size]][["rows"]], pool$n)), learning_sizes[[size]][["near"]]),
        near(pool$take(response_rule[["predicted"]]), learning_sizes$score[["near"]], earlier = FALSE))
    taken <- sort(unique(taken[taken > 0L]))
  }
  list(rows = rows_for_response(data, if (is.null(pool$of)) taken else pool$of[taken]), theta = theta,
       until = pool$until, size = size, n = pool$n, weight = pool$weight, order = if (thinned && is.null(pool$levels)) {
         list(rank = rank(pool$rank[taken]), take = function(count) match(pool$take(count), taken))
       })
}

# Returns list(x, y, w, offset, group, made): rows of positive weight at the distinct inputs numbered `taken`, without
# copies. y is the response before its transform, `group` the number of the input; `made` will store a pool.
rows_for_response <- function(data, taken) {
  inputs <- training_inputs(data)
  used <- of_used_rows(data, seq_along(data$response))
  copy <- copies_in(data)
  if (!is.null(copy)) used <- used[!duplicated(copy)]
  x <- inputs$x[inputs$index[used], , drop = FALSE]
  group <- equal_rows(x)
  if (is.null(group)) group <- seq_along(used)
  kept <- group %in% taken
  used <- used[kept]
  w <- data$prior_weights[used]
  list(x = x[kept, , drop = FALSE], y = unname(data$response[used]), w = if (!all(w == 1)) w,
       offset = data$offset[used], group = match(group[kept], unique(group[kept])), made = new.env())
}

# Returns the learning problem for the transformed response. `counted` has the rows whose log densities are summed.
response_problem <- function(from, transform) {
  data <- rows_transformed(from$rows, transform)
  by <- (from$scale / data$scale)^2
  given <- list(scale_kernel(from$s$kernel, by), if (!is.null(from$s$noise)) from$s$noise * by)
  s <- replace(from$s, c("kernel", "noise"), given)
  made <- from$rows$made
  if (is.null(made$pool)) made$pool <- with_fixed_seed(pool_of_rows(data, s)) # rows always have the same order
  pool <- pool_of_response(made$pool, data)
  pool[names(from$order)] <- from$order
  pool$until <- from$until
  c(learning_problem(pool, s, from$profile), data[c("center", "scale", "slopes")],
    list(counted = pool$take(min(learning_sizes[[from$size]][["rows"]], pool$n))))
}

# Returns the model of a response with constant noise. Searches start at from$theta, and learn transform$lambda if NA.
response_model <- function(from, transform) {
  if (!is.null(from$first) && identical(from$first$transform, transform)) return(from$first)
  theta <- from$theta
  if (!is.null(transform) && is.na(transform$lambda)) {
    transform$lambda <- lambda_of_line(transform, from$rows)
    for (round in 1:2) {
      problem <- response_problem(from, transform)
      theta <- climb(problem, theta, from$size, c(6L, 4L), 0.05)$theta
      transform$lambda <- likeliest_lambda(transform, from, problem, theta)
    }
  }
  problem <- response_problem(from, transform)
  run <- climb(problem, theta, from$size, c(6L, 6L), 0.05)
  model_of_response(list(transform = transform, problem = problem, theta = run$theta), run$value)
}

# Returns the model with a noise trend, or NULL if none can be learned. Learning may stop if log density < `least`.
with_uneven_noise <- function(model, trend, from, least = -Inf) {
  learned <- learn_noise(model$problem, model$theta, trend, from$size, least)
  if (is.null(learned)) return(NULL)
  share <- from$n / length(model$problem$counted)
  for (what in c("covariance", "level")) learned$trend[[what]] <- learned$trend[[what]] / share
  learned$trend$largest <- learned$trend$largest * model$problem$scale^2 # in units of y
  model_of_response(c(model[c("transform", "problem")], learned[c("trend", "theta")]), learned$value)
}

# Returns the model with heavy tails of the noise, if these increase the log density of responses given neighbours
# (among all other rows) by more than the penalty for a parameter. Inputs with several responses are left out: means
# have lighter tails. The merit increases by the gain in log density given neighbours among earlier rows.
with_tail <- function(model, from) {
  if (is.null(model) || !from$tails || at_floor(model)) return(model)
  tail_of <- function(held) {
    used <- held[held$single & is.finite(held$f), ]
    if (nrow(used) < response_rule[["rows"]]) return(c(tail = 0, gain = 0))
    likeliest_tail(used$z, list(mean = used$f, var = used$var, noise = used$noise, spread = used$spread))
  }
  model$held <- held_out_response(model, from)
  price <- price_of_response(model$problem)
  tail <- tail_of(model$held)
  counted <- length(model$problem$counted) / nrow(model$held)
  gain <- tail[["gain"]] * counted
  if (min(tail[["gain"]] * price / parameter_nats, gain) <= price) return(model)
  model[c("tail", "tail_gain")] <- c(tail[["tail"]], gain)
  model$merit <- model$merit + tail_of(held_out_response(model, from, earlier = TRUE))[["gain"]] * counted
  model$parameters <- model$parameters + 1L
  model
}

# Returns TRUE if the noise is at most twice its lower limit. Trends and tails of such noise cannot be learned.
at_floor <- function(model) {
  last <- model$problem$last
  model$theta[[last]] <= model$problem$lower[[last]] + log(2)
}

price_of_response <- function(problem) max(parameter_nats, response_rule[["nats"]] * length(problem$counted))

# Returns the model with its `value`, `merit` (value plus the sum of log T'(y) for its transform T) and `parameters`.
model_of_response <- function(model, value) {
  model$value <- value
  model$merit <- value + sum(model$problem$slopes[model$problem$counted])
  model$parameters <- (if (is.null(model$transform)) 0L else transform_parameters) + length(model$trend$v)
  model
}

# Returns `from`, a result of rows_around(). If Matern 3/2 leaves little noise, sets from$profile to the kernel profile
# of largest likelihood, and from$first to its model. Otherwise the misfit of Matern 3/2 to a smooth f could decide on
# the transform. Sets from$simulator to a model if the response counts as deterministic: noise is almost 0 and f
# predicts held-out rows, or explain_noise() explains noise by f. Little noise is not enough: f may follow outliers.
with_smoother_profile <- function(from, transform) {
  noise <- function(model) exp(model$theta[[length(model$theta)]]) / from$weight
  if (noise(from) >= little_response[["look"]]) return(from)
  profiles <- if (is_open(from$s$kernel)) c("matern32", "matern52", "se") else from$profile
  best <- best_first(lapply(profiles, function(profile) {
    response_model(replace(from, "profile", profile), transform)
  }))[[1L]]
  from[c("profile", "first")] <- list(best$problem$profile, best)
  model <- explain_noise(best, from$s)
  own <- c("center", "scale", "slopes", "counted")
  model$problem[own] <- best$problem[own]
  model$held <- held_out_response(model, from)
  left <- mean(squared_errors(model, from)) / stats::var(model$held$y)
  little <- noise(model) < little_response[["noise"]] && isTRUE(left < little_response[["left"]])
  if (model$problem$little_noise || little) from$simulator <- model
  from
}

# Returns the lambda from 0 to 2 of the transform T that maximises the profile likelihood of a linear model of T(y). For
# d columns, QR takes time n d^2. So if a factor has many levels, only some 5 d rows are used.
lambda_of_line <- function(transform, rows) {
  d <- ncol(rows$x)
  if (d > many_levels) rows <- take_rows_of(rows[c("x", "y", "w", "offset")], evenly(nrow(rows$x), 5L * d))
  w <- if (is.null(rows$w)) 1 else rows$w
  line <- qr(linear_design(rows$x) * sqrt(w))
  each <- function(lambda) {
    transform$lambda <- lambda
    z <- transformed(transform, rows$y) - if (is.null(rows$offset)) 0 else rows$offset
    rss <- sum(qr.resid(line, z * sqrt(w))^2)
    sum(log_slope(transform, rows$y)) - length(z) * log(max(rss, 1e-300)) / 2
  }
  stats::optimize(each, c(0, 2), maximum = TRUE, tol = 0.01)$maximum
}

# Returns the lambda that maximises the likelihood at the hyperparameters theta, which are for T(y) divided by its sd.
likeliest_lambda <- function(transform, from, problem, theta) {
  counted <- problem$counted
  neighbours <- problem$neighbours(theta, counted, learning_sizes[[from$size]][["near"]])
  now <- problem$by_number(theta)
  at <- problem$input(length(counted))
  each <- function(lambda) {
    transform$lambda <- lambda
    part <- rows_transformed(from$rows, transform)
    at$rows$y <- part$y
    value <- native_vecchia(part, now, counted, neighbours, slopes = FALSE, at = at)$value
    if (!is.finite(value)) return(-1e300)
    merged <- if (part$shift$rows > 0) merged_log_density(part$shift, now$noise) else 0
    value + merged * length(counted) / problem$pool$n + sum(part$slopes[counted])
  }
  stats::optimize(each, pmin(pmax(transform$lambda + c(-0.7, 0.7), 0), 2), maximum = TRUE, tol = 0.005)$maximum
}

# Returns the table of candidates, best first. Candidates that were not tried have no merit. `tail` is the variance of
# the log noise variance at given inputs, which makes tails heavy.
table_of_responses <- function(choice, labels) {
  of <- function(value, none = NA_real_) {
    vapply(unname(choice$tried[labels]), function(model) if (is.null(model)) none else value(model), none)
  }
  table <- data.frame(candidate = labels, merit = of(function(model) -model$score),
                      parameters = of(function(model) model$parameters, NA_integer_),
                      seconds = of(function(model) model$seconds), chosen = labels == choice$best$label,
                      refused = labels %in% names(choice$refused), tail = of(function(model) sum(model$tail)))
  structure(`rownames<-`(table[order(-table$merit), ], NULL), class = c("pfdtc_table", "data.frame"), legend = paste(
    "`merit`: Vecchia log likelihood minus a penalty for parameters. `refused`: predicts held-out rows poorly.",
    "`tail`: variance of the log noise variance that the inputs do not explain. NA: not tried."))
}

# Returns a sentence on the choice of the transform and one on that of the noise, if there was a choice.
because_response <- function(choice, open, price) {
  gain_over <- function(plain, nats, what = "Vecchia log likelihood") {
    sprintf("%s %s higher than with %s, after penalties for parameters", what, show_nats(nats), plain)
  }
  # Returns a text: the gain of the best model over the best without `what`.
  gain <- function(what, plain) {
    without <- Filter(function(m) is.null(m[[what]]) && !m$label %in% names(choice$refused), choice$tried)
    gain_over(plain, min(vapply(without, `[[`, 0, "score")) - choice$best$score)
  }
  transform <- choice$best$transform
  trend <- choice$best$trend
  c(response = if (length(open$transforms) > 1L) {
    paste0(if (is.null(transform)) {
      sprintf("No transform of the response%s raises the Vecchia log likelihood by more than its penalty, %s.",
              if (length(choice$refused)) " that is not refused" else "", show_nats(price * transform_parameters))
    } else {
      sprintf("Transform %s: %s.", transform_label(transform), gain("transform", "no transform"))
    }, if (length(choice$refused)) sprintf(" Refused: %s (%s).", names(choice$refused)[1L], choice$refused[[1L]]))
  }, noise_variance = if (length(open$trends) > 1L) {
    if (!is.null(trend)) {
      sprintf("Noise variance varies smoothly with the inputs: %s.", gain("trend", "constant noise"))
    } else if (any(grepl("smooth noise$", names(choice$refused)))) {
      "The noise variance is constant: smooth noise does not predict held-out rows better."
    } else {
      sprintf("The noise variance is constant: smooth noise does not raise the Vecchia log likelihood by more than %s.",
              if (!is.null(choice$best$short)) "a short lengthscale with a linear mean" else
                sprintf("its penalty, %s", show_nats(2 * price)))
    }
  }, tails = if (!is.null(choice$best$tail)) {
    sprintf("Heavy-tailed noise: %s.", gain_over("normal noise", choice$best$tail_gain - price,
                                                 "log density of responses given their neighbours"))
  })
}
