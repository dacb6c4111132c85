# Checks the response with the largest merit (see learn-response.R) on held-out rows. A candidate can have the larger
# likelihood but predict the mean worse. Inverse transforms magnify errors of f in the tail; a noise trend may explain f
# by noise.

# Returns `choice` with `best`, the best candidate that is not refused, and `refused`, the reasons against better
# candidates, named by their labels. The first candidate is never refused.
checked_response <- function(choice, from) {
  tried <- choice$tried[order(vapply(choice$tried, `[[`, 0, "score"))]
  first <- choice$tried[[1L]]
  for (model in tried) {
    rivals <- unique(c(first$label, if (!is.null(model$trend)) transform_label(model$transform)))
    rivals <- choice$tried[intersect(rivals, setdiff(names(choice$tried), model$label))]
    reason <- if (model$label != first$label) reason_to_refuse(model, first, from, rivals)
    if (is.null(reason)) break
    choice$refused[model$label] <- reason
  }
  choice$best <- model
  choice
}

# Returns the reason to refuse a model, or NULL. Beyond response_rule$held_out rows, its held-out density must be at
# least that of each rival: the first candidate and, for a noise trend, the same transform with constant noise. Its
# squared errors must not exceed the first's by more than the factor response_rule$error. The model's worst row is
# omitted, because one outlier can dominate all squared errors.
reason_to_refuse <- function(model, first, from, rivals = list(first)) {
  errors <- squared_errors(model, from)
  if (!is.null(from$simulator)) return(reason_to_refuse_simulator(model, errors, from))
  if (model$problem$pool$n > response_rule[["held_out"]]) {
    scores <- mean(response_scores(model, from))
    behind <- scores - vapply(rivals, function(rival) mean(response_scores(rival, from)), 0)
    if (!isTRUE(all(behind <= 0))) return("its density at held-out rows is smaller")
  }
  least <- squared_errors(first, from)
  but <- -order(least - errors)[1L]
  if (!isTRUE(sum(errors[but]) <= response_rule[["error"]] * sum(least[but]))) {
    "its squared errors at held-out rows are larger"
  }
}

# Returns the reason to refuse a transform of a deterministic response, or NULL. Such a response has no outliers, and
# the shape of f alone can make a transform likely. The squared errors of all held-out rows must be smaller by the
# factor little_response$error, or $kink for Yeo-Johnson, whose second derivative jumps at the median. Or they must not
# be larger, while the held-out log density is larger by little_response$gain nats a row with near certainty.
reason_to_refuse_simulator <- function(model, errors, from) {
  ratio <- sum(errors) / sum(squared_errors(from$simulator, from))
  bent <- identical(model$transform$kind, "yeojohnson")
  if (isTRUE(ratio <= little_response[[if (bent) "kink" else "error"]])) return(NULL)
  if (!isTRUE(ratio <= 1)) return("its squared errors at held-out rows are larger")
  gain <- response_scores(from$simulator, from) - response_scores(model, from)
  least <- mean(gain) - little_response[["sure"]] * stats::sd(gain) / sqrt(length(gain))
  if (!isTRUE(least > little_response[["gain"]])) {
    "neither its squared errors nor its density at held-out rows are much better"
  }
}

# Returns the squared errors of the predicted mean responses at held-out rows. With `over_variance` they are divided by
# the variances of new responses, which a transform must have.
squared_errors <- function(model, from, over_variance = FALSE) {
  held <- if (is.null(model$held)) held_out_response(model, from) else model$held
  transform <- model$transform
  unit <- model$problem$scale
  f <- list(mean = model$problem$center + unit * held$f, var = unit^2 * held$var, noise = unit^2 * held$size)
  if (!is.null(transform)) {
    transform$ends <- transformed(transform, range(from$rows$y))
    spread <- held$spread + if (is.null(model$tail)) 0 else model$tail
    f <- if (over_variance) moments_of_response(transform, f$mean, f$var, f$noise, spread) else
      moments_back(transform, f$mean, f$var + f$noise)
  }
  (held$y - f$mean)^2 / if (over_variance) f$sd^2 else 1
}

# Returns the model. If it has heavy tails and chose its transform, it gets transform$wider: the mean squared error of
# held-out rows over their variance, between 1 and most_wider. Squares of a transformed response depend on its far tail.
with_wider_moments <- function(model, from) {
  if (!isTRUE(model$transform$found) || is.null(model$tail)) return(model)
  share <- squared_errors(model, from, over_variance = TRUE)[model$held$single]
  model$transform$wider <- min(max(1, mean(share, na.rm = TRUE)), most_wider)
  model
}

# Returns minus the mean log density of the response, on its own scale, in groups of rows. Each row is given its
# neighbours among all other rows.
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
# all others or among `earlier` ones. With groups and few rows, all other rows are given, because nearest rows may be of
# other levels. Equal inputs have their mean response; `single` marks other inputs. `size` is the noise of one response.
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
    native_vecchia(pool, now, rows, near, slopes = FALSE,
                   at = list(rows = engine_rows(pool), control = problem$input(length(rows))$control))
  }
  if (!length(at$residual)) at[c("residual", "variance")] <- NA_real_ # it cannot be computed
  count <- tabulate(from$rows$group)
  y <- drop(rowsum(from$rows$y, from$rows$group, reorder = FALSE) / count)[rows]
  data.frame(y, z = pool$y[rows], f = pool$y[rows] - at$residual, var = pmax(at$variance - noise, 0), noise,
             size = now$noise * factor[rows], single = count[rows] == 1,
             spread = noise_spread(list(noise_trend = model$trend), pool$x[rows, , drop = FALSE]))
}

# ---- transforms and the additive kernel -----------------------------------------------------------------------------

# Returns the candidates `tried`. For a kernel of all inputs, a sum of functions of single inputs looks like a skewed
# response, or like noise that depends on the inputs. So the gain of an additive kernel in log marginal likelihood is
# added to the merit of candidates with constant noise. For this, rows must be few, a noise trend must gain less than
# `additive_nats` over the best transform, and the additive kernel more than that for the best or first transform.
# `terms` is this kernel, learned from some rows, with its gain for all rows. Later searches start there.
with_terms_in_merit <- function(tried, from) {
  constant <- names(Filter(function(model) is.null(model$trend), tried))
  leader <- best_of(tried)
  best <- transform_label(tried[[leader]]$transform)
  pool <- tried[[1L]]$problem$pool
  open <- is_open(from$s$kernel) && length(constant) > 1L && best %in% constant &&
    tried[[leader]]$score > tried[[best]]$score - additive_nats
  few <- open && pool$n <= response_rule[["terms"]] && in_time(pool) && may_be_additive(from$s$kernel)
  if (!few) return(tried)
  terms <- list()
  add <- function(labels) {
    for (label in labels) {
      some <- some_of_pool(tried[[label]]$problem$pool, min(pool$n, additive_rows[["merit"]]))
      problem <- learning_problem(some, from$s, from$profile)
      one <- best_from(problem, list(tried[[label]]$theta))
      first <- Find(function(one) !is.null(one$theta), terms)
      wide <- learn_additive("additive", one, from$s, first)
      gain <- max(0, wide$value - one$value, na.rm = TRUE) * pool$n / some$n
      terms[[label]] <<- c(wide, list(gain = gain))
    }
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

# ---- the rows that candidates are learned from ----------------------------------------------------------------------

# Returns the rows that enter the density, list(x, y, w, offset, group): used rows at the distinct inputs `taken`,
# without copies. `y` is as given, and `group` is the number of the distinct input. `made` keeps the pool of these rows.
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
  w <- data$prior_weights[used]
  list(x = x[kept, , drop = FALSE], y = unname(data$response[used]), w = if (!all(w == 1)) w,
       offset = data$offset[used], group = match(group[kept], unique(group[kept])), made = new.env())
}

# Returns list(rows, theta, until, size, n, order), from which candidates are learned. With many rows, `rows` are the
# rows of the sum and their neighbours, because in a thinned sample variation of f between rows looks like noise. `n` is
# the number of all rows, `order` the order of `rows` among them.
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

# Returns log T'(y) minus the log of the unit of T(y), summed over the rows of each distinct input.
slopes_of_rows <- function(rows, transform, scale) {
  each <- (if (is.null(transform)) 0 * rows$y else log_slope(transform, rows$y)) - log(scale)
  drop(rowsum(each, rows$group, reorder = FALSE))
}

# Returns the cleaned rows with the transformed response, after merging equal rows.
rows_transformed <- function(rows, transform) {
  y <- if (is.null(transform)) rows$y else transformed(transform, rows$y)
  r <- if (is.null(rows$offset)) y else y - rows$offset
  unit <- response_unit(r, rows$w, max(abs(c(y, rows$offset))), TRUE, TRUE, "transform")
  out <- list(x = rows$x, y = (r - unit$center) / unit$scale, weights = rows$w, n = length(r), center = unit$center,
              scale = unit$scale, shift = list(constant = 0, rows = 0, ss = 0),
              offset = rows$offset, transform = transform, given_response = rows$y)
  if (anyDuplicated(rows$group)) merge_all_equal_rows(out, rows$group) else out
}

# ---- the arguments of the user --------------------------------------------------------------------------------------

# Returns NULL or a transform. Its lambda is NA if it is to be learned; the transform of a fit is taken as it is.
asked_transform <- function(transform, data, s) {
  if (!asks_for_transform(transform)) return(NULL)
  known <- inherits(transform, "pfdtc_transform")
  if (!known) {
    kind <- check_choice(transform, transforms, "transform")
    transform <- new_transform(kind, data$response)
  }
  if (transform$kind == "log") check_positive_response(data$response)
  refuse_if(is.na(transform$lambda) && !s$hyper[1L] %in% "evidence", "transform",
            sprintf("= \"%s\" has a parameter, which hyper = \"%s\" does not learn", transform$kind, s$hyper[1L]),
            hint = "Use hyper = \"evidence\", transform = \"log\" or transform = fit$transform.")
  transform
}

new_transform <- function(kind, y) {
  if (kind == "log") return(structure(list(kind = kind, lambda = 0), class = "pfdtc_transform"))
  structure(list(kind = kind, lambda = NA_real_, centre = stats::median(y), unit = spreads_of(matrix(y))),
            class = "pfdtc_transform")
}
