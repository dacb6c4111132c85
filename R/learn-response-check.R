# Held-out rows may refuse the response with the largest merit. A candidate can have the larger likelihood but predict
# the mean worse. Inverse transforms magnify errors of f in the tail; uneven noise may mistake f for noise.

# Returns `choice` with `best`, the best candidate that is not refused, and `refused`, the reasons against better
# candidates, named by their labels. The first candidate is never refused.
checked_response <- function(choice, from) {
  tried <- choice$tried[order(vapply(choice$tried, `[[`, 0, "score"))]
  first <- choice$tried[[1L]]
  for (model in tried) {
    reason <- if (model$label != first$label) reason_to_refuse(model, first, from)
    if (is.null(reason)) break
    choice$refused[model$label] <- reason
  }
  choice$best <- model
  choice
}

# Returns the reason to refuse a model, or NULL. Beyond response_rule$held_out rows, its held-out density must be at
# least that of the first candidate. Its squared errors must not exceed the first's by more than the factor
# response_rule$error, without the row that is worst for the model: one outlier can dominate all squared errors. A
# deterministic response has no outliers, and the shape of f alone can make a transform likely: there the squared errors
# of all rows must be smaller by a factor, little_response$error or, if f is predicted sharply, $kink for Yeo-Johnson,
# whose second derivative jumps at the median.
reason_to_refuse <- function(model, first, from) {
  if (model$problem$pool$n > response_rule[["held_out"]]) {
    behind <- response_scores(model, from) - response_scores(first, from)
    if (!isTRUE(mean(behind) <= 0)) return("its density at held-out rows is smaller")
  }
  errors <- squared_errors(model, from)
  least <- squared_errors(if (is.null(from$simulator)) first else from$simulator, from)
  if (!is.null(from$simulator)) {
    sharp <- isTRUE(model$transform$kind == "yeojohnson") && mean(least) < little_response[["sharp"]] * from$simulator$var
    if (isTRUE(sum(errors) <= little_response[[if (sharp) "kink" else "error"]] * sum(least))) return(NULL)
    return("its squared errors at held-out rows are not much smaller")
  }
  but <- -order(least - errors)[1L]
  if (!isTRUE(sum(errors[but]) <= response_rule[["error"]] * sum(least[but]))) {
    "its squared errors at held-out rows are larger"
  }
}

# Returns `from` with the best profile for the first response, if Matern 3/2 leaves little noise: smooth functions would
# otherwise choose a transform by what that kernel cannot follow. `simulator` is its model if the response counts as
# deterministic: there is next to no noise and f predicts held-out rows, or f explains what noise would
# (explain_noise()). A skewed response, whose outliers f follows, may have little noise too.
with_smoother_profile <- function(from, transform) {
  noise <- function(model) model$problem$natural(model$theta)$noise
  if (noise(list(problem = response_problem(from, transform), theta = from$theta)) >= little_response[["look"]]) {
    return(from)
  }
  models <- lapply(if (is_open(from$s$kernel)) c("matern32", "matern52", "se") else from$profile, function(profile) {
    response_model(replace(from, "profile", profile), transform)
  })
  best <- models[[which.max(vapply(models, `[[`, 0, "value"))]]
  from$profile <- best$problem$profile
  model <- explain_noise(best, from$s)
  model$problem[c("center", "scale")] <- best$problem[c("center", "scale")]
  model$held <- held_out_response(model, from)
  model$var <- stats::var(model$held$y)
  left <- mean(squared_errors(model, from)) / model$var
  little <- noise(model) < little_response[["noise"]] && isTRUE(left < little_response[["left"]])
  if (model$problem$little_noise || little) from$simulator <- model
  from
}

# Returns the squared errors of the predicted mean responses at held-out rows.
squared_errors <- function(model, from) {
  held <- if (is.null(model$held)) held_out_response(model, from) else model$held
  mean <- model$problem$center + model$problem$scale * held$f
  transform <- model$transform
  if (!is.null(transform)) {
    transform$ends <- transformed(transform, range(from$rows$y))
    mean <- moments_back(transform, mean, model$problem$scale^2 * (held$var + held$size))$mean
  }
  (held$y - mean)^2
}

# Returns minus the mean log density of the response, on its own scale, in groups of rows given their neighbours among
# all others.
response_scores <- function(model, from) {
  problem <- model$problem
  pool <- problem$pool
  size <- c(rows = response_rule[["held_out"]], near = learning_sizes$score[["near"]])
  factor <- rep_len(noise_factor(model$trend, pool$x), pool$n)
  problem$pool$weights <- (if (is.null(pool$weights)) 1 else pool$weights) / factor
  rows <- pool$take(min(size[["rows"]], pool$n))
  scores <- conditional_scores(problem, model$theta, size)
  more <- slopes_of_rows(from$rows, model$transform, problem$scale)[rows]
  if (length(pool$twins)) {
    noise <- problem$natural(model$theta)$noise * factor
    more <- more + merged_log_density(lapply(pool$twins, `[`, rows), noise[rows])
  }
  scores - means_of_groups(more)
}

# Returns y, the modelled response z, mean and variance of f and its noise at some rows, given their nearest rows among
# all others or among `earlier` ones, or given all others if there are groups and few rows: nearest rows may be of other
# levels. Equal inputs have their mean response; `single` marks other inputs. `size`: the noise of one response.
held_out_response <- function(model, from, earlier = FALSE) {
  problem <- model$problem
  pool <- problem$pool
  exact <- !is.null(pool$levels) && pool$few && pool$n <= response_rule[["grouped"]]
  rows <- if (exact) seq_len(pool$n) else pool$take(min(pool$n, response_rule[["predicted"]]))
  now <- problem$at(model$theta)
  factor <- rep_len(noise_factor(model$trend, pool$x), pool$n)
  pool$weights <- (if (is.null(pool$weights)) 1 else pool$weights) / factor
  noise <- now$noise / pool$weights[rows]
  at <- if (exact) {
    all <- native_exact_evidence(pool, now, problem$run)
    list(residual = all$alpha / all$precision, variance = 1 / all$precision)
  } else {
    near <- problem$neighbours(model$theta, rows, learning_sizes$score[["near"]], earlier = earlier)
    native_vecchia(pool, now, rows, near, slopes = FALSE, control = problem$run)
  }
  if (!length(at$residual)) at[c("residual", "variance")] <- NA_real_ # not computable
  count <- tabulate(from$rows$group)
  y <- drop(rowsum(from$rows$y, from$rows$group, reorder = FALSE) / count)[rows]
  data.frame(y, z = pool$y[rows], f = pool$y[rows] - at$residual, var = pmax(at$variance - noise, 0), noise,
             size = now$noise * factor[rows], single = count[rows] == 1,
             spread = noise_spread(list(noise_trend = model$trend), pool$x[rows, , drop = FALSE]))
}

# ---- transforms beside the additive kernel --------------------------------------------------------------------------

# A sum of functions of single inputs looks like a skewed response to a kernel of all inputs, and a transform hides the
# sum. Returns the candidates with merits that include the gain of the additive kernel for their transform, if rows are
# few, the best candidate has constant noise, and the kernel gains `additive_nats` for it or for the first candidate.
with_terms_in_merit <- function(tried, from) {
  constant <- names(Filter(function(model) is.null(model$trend), tried))
  best <- best_of(tried)
  pool <- tried[[1L]]$problem$pool
  open <- is_open(from$s$kernel) && length(constant) > 1L && best %in% constant
  few <- open && pool$n <= response_rule[["terms"]] && in_time(pool) && may_be_additive(from$s$kernel)
  if (!few) return(tried)
  terms <- list()
  add <- function(labels) {
    for (label in labels) terms[[label]] <<- gain_of_terms(tried[[label]], from, if (length(terms)) terms[[1L]])
  }
  add(unique(c(constant[1L], if (best == constant[1L]) constant[2L], best)))
  if (isTRUE(max(vapply(terms, `[[`, 0, "gain")) > additive_nats)) {
    add(setdiff(constant, names(terms)))
    for (label in names(terms)) {
      tried[[label]]$merit <- tried[[label]]$merit + terms[[label]]$gain
      tried[[label]]$score <- tried[[label]]$score - terms[[label]]$gain
    }
  }
  for (label in names(terms)) tried[[label]]$terms <- terms[[label]]
  tried
}

# Returns the additive kernel of Matern 3/2, learned from some of the rows, with `gain`, the nats that it gains over
# Matern 3/2 for all rows. The search starts at `first`, such a kernel for another response.
gain_of_terms <- function(model, from, first = NULL) {
  pool <- some_of_pool(model$problem$pool, min(model$problem$pool$n, additive_rows[["merit"]]))
  problem <- learning_problem(pool, from$s, "matern32")
  run <- learn_exactly(problem, climb(problem, model$theta, "few", 8L))
  wide <- learn_additive("additive", model_of_run(problem, run), from$s, first)
  c(wide, gain = max(0, wide$value - run$value, na.rm = TRUE) * model$problem$pool$n / pool$n)
}
