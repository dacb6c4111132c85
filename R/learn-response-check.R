# Lists the models of the response (transform and noise) that may be tried, and checks them on held-out rows, in order
# of decreasing merit. A model with a larger likelihood can predict the mean worse: an inverse transform magnifies
# errors of f in the tail, and a noise trend may explain f by noise.

# Returns `choice` with `best`, the best candidate that is not refused, and `refused`, the reasons against better
# candidates, named by their labels. The first candidate is never refused. If the fit chose a transform, and the noise
# has heavy tails, the predicted variance of y may be too small. Then best$transform$wider, a factor of this variance,
# is the mean of squared error / variance at held-out rows, within [1, most_wider].
checked_response <- function(choice, from) {
  first <- choice$tried[[1L]]
  for (model in choice$tried[order(vapply(choice$tried, `[[`, 0, "score"))]) {
    rivals <- unique(c(first$label, if (!is.null(model$trend)) transform_label(model$transform)))
    rivals <- choice$tried[intersect(rivals, setdiff(names(choice$tried), model$label))]
    reason <- if (model$label != first$label) reason_to_refuse(model, first, from, rivals)
    if (is.null(reason)) break
    choice$refused[model$label] <- reason
  }
  if (isTRUE(model$transform$found) && !is.null(model$tail)) {
    share <- squared_errors(model, from, over_variance = TRUE)[model$held$single]
    model$transform$wider <- min(max(1, mean(share, na.rm = TRUE)), most_wider)
  }
  replace(choice, "best", list(model))
}

# Returns the reason to refuse a model, or NULL. With more than response_rule$held_out rows, its log density of held-out
# rows must be at least that of each rival. Rivals are the first candidate and, for a noise trend, the same transform
# with constant noise. The model's sum of squared errors is at most response_rule$error times that of `first` (or of
# from$least, if given). The row with the largest increase is omitted: one outlier can dominate.
#
# A deterministic response has no outliers, and the shape of f alone can make a transform likely. So the model is
# compared with from$simulator, a model with the transform of `first`. The model must reduce the sum of squared errors
# by the factor little_response$error (`kink` for Yeo-Johnson, whose second derivative jumps at the median). Otherwise
# it must not increase the sum, and its log density must be larger by `gain` nats per row plus `sure` standard errors.
reason_to_refuse <- function(model, first, from, rivals = list(first)) {
  errors <- squared_errors(model, from)
  if (!is.null(from$simulator)) {
    ratio <- sum(errors) / sum(squared_errors(from$simulator, from))
    bent <- identical(model$transform$kind, "yeojohnson")
    if (isTRUE(ratio <= little_response[[if (bent) "kink" else "error"]])) return(NULL)
    if (!isTRUE(ratio <= 1)) return("its squared errors at held-out rows are larger")
    gain <- response_scores(from$simulator) - response_scores(model)
    enough <- mean(gain) - little_response[["sure"]] * se_of_mean(gain) > little_response[["gain"]]
    return(if (!isTRUE(enough)) "neither its squared errors nor its density at held-out rows are much better")
  }
  if (model$problem$pool$n > response_rule[["held_out"]]) {
    behind <- mean(response_scores(model)) - vapply(rivals, function(rival) mean(response_scores(rival)), 0)
    if (!isTRUE(all(behind <= 0))) return("its density at held-out rows is smaller")
  }
  least <- from$least %||% squared_errors(first, from)
  but <- -order(least - errors)[1L]
  if (!isTRUE(sum(errors[but]) <= response_rule[["error"]] * sum(least[but]))) {
    "its squared errors at held-out rows are larger"
  }
}

# Returns the squared errors of the predicted mean responses at held-out rows. With `over_variance` = TRUE, which
# requires a transform, the squared errors are divided by the predicted variances of new responses.
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

# Returns minus the log densities of held-out responses (not transformed), as means over 20 random groups of rows.
# Each row is conditioned on its neighbours among all other rows.
response_scores <- function(model) {
  problem <- model$problem
  pool <- problem$pool
  size <- c(rows = response_rule[["held_out"]], near = learning_sizes$score[["near"]])
  factor <- rep_len(noise_factor(model$trend, pool$x), pool$n)
  problem$pool$weights <- (if (is.null(pool$weights)) 1 else pool$weights) / factor
  rows <- pool$take(min(size[["rows"]], pool$n))
  scores <- conditional_scores(problem, model$theta, size)
  more <- problem$slopes[rows]
  if (length(pool$twins)) {
    noise <- problem$natural(model$theta)$noise * factor
    more <- more + merged_log_density(lapply(pool$twins, `[`, rows), noise[rows])
  }
  scores - means_of_groups(more)
}

# Returns a data frame with a row for some inputs. y and z are means of responses and of transformed responses. `f` and
# `var` are mean and variance of f given other rows. Noise variances are `noise` (of z) and `size` (of one response).
# `single` is TRUE for an input with one response. The other rows are the nearest ones or, if `earlier`, the nearest
# before the row in the random order. With groups and few rows, they are all others: the nearest may have other levels.
held_out_response <- function(model, from, earlier = FALSE) {
  problem <- model$problem
  pool <- problem$pool
  exact <- !is.null(pool$levels) && pool$few && pool$n <= response_rule[["grouped"]]
  if (exact && earlier && !is.null(model$held)) return(model$held) # computed before, from all other rows
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
    native_vecchia(pool, problem$by_number(model$theta), rows, near, slopes = FALSE, at = problem$input(length(rows)))
  }
  if (!length(at$residual)) at[c("residual", "variance")] <- NA_real_ # a factorisation failed
  count <- tabulate(from$rows$group)
  y <- drop(rowsum(from$rows$y, from$rows$group, reorder = FALSE) / count)[rows]
  list2DF(list(y = unname(y), z = pool$y[rows], f = pool$y[rows] - at$residual, var = pmax(at$variance - noise, 0),
               noise = noise, size = now$noise * factor[rows], single = count[rows] == 1,
               spread = noise_spread(list(noise_trend = model$trend), pool$x[rows, , drop = FALSE]) + 0 * rows))
}

# Returns list(data, chosen). data$warp is set if the kernel reads logs of skewed inputs. `chosen` is the model of the
# response that find(data, open) chose among the transforms and trends `open`. If the user's arguments allow a choice
# (state$open), logs are also tried, and win if they gain more merit than their penalty. `state` keeps the results.
with_log_inputs <- function(data, asked, open, state, find, first) {
  kept <- c("begun", "response", "because", "asked", "so_far", "tails")
  values <- function() mget(kept, envir = state, ifnotfound = list(NULL))
  before <- values()
  warp <- if (isTRUE(state$open) && is.null(asked$noise)) warp_to_logs(data)
  open$errors <- !is.null(warp)
  given <- list(data = data, chosen = find(data, open, list(transform = first)))
  if (is.null(warp) || is.null(given$chosen$score)) return(given)
  open$least <- given$chosen$errors # errors of the model that may be replaced
  after <- values()
  list2env(before, state)
  data$warp <- warp
  open$trends <- lapply(open$trends, function(trend) {
    if (!is.null(trend)) noise_trend_of(data, trend$columns, trend$smooth)
  })
  logs <- list(data = data, chosen = find(data, open))
  gain <- given$chosen$score - logs$chosen$score - log_inputs[["nats"]]
  if (!isTRUE(gain > 0)) {
    list2env(after, state)
    return(given)
  }
  state$because["inputs"] <- sprintf(
    "Logs of inputs (%s): Vecchia log likelihood %.3g higher than with the inputs as given, after a penalty of %.1f.",
    toString(colnames(data$x)[warp$inputs]), gain, log_inputs[["nats"]])
  logs
}

# Returns a warp (a piecewise linear map of inputs) of positive, skewed inputs to their logs, or NULL without such
# inputs, with groups or times, or for many rows. log(x) has evenly spaced knots, from min(x) / 4 to 4 max(x).
warp_to_logs <- function(data) {
  x <- data$x
  if (nrow(x) > log_inputs[["rows"]] || length(data$groups) ||
        length(time_periods(x, placed_variables(data$frame), data$y))) return(NULL)
  skewed <- function(v) {
    away <- v - mean(v)
    min(v) > 0 && length(unique(v)) >= log_inputs[["values"]] &&
      isTRUE(mean(away^3) > log_inputs[["skewness"]] * mean(away^2)^1.5)
  }
  inputs <- which(apply(x, 2L, skewed))
  if (!length(inputs)) return(NULL)
  to <- vapply(inputs, function(j) {
    ends <- log(range(x[, j])) + log(4) * c(-1, 1)
    seq(ends[1L], ends[2L], length.out = warp_knots)
  }, numeric(warp_knots))
  warp <- list(inputs = unname(inputs), at = unname(exp(to)), to = unname(to), logs = TRUE)
  if (all(diff(warp$at) > 0)) warp # rounding may make knots equal
}

# Returns the candidates `tried`, some with a larger merit. Under a kernel of all inputs, a sum of functions of single
# inputs looks like a skewed response, or like noise that depends on the inputs. So the gain of an additive kernel in
# log marginal likelihood is added to the merit of candidates with constant noise, if it exceeds `additive_nats`.
# Nothing changes if rows are many, or if a noise trend gains `additive_nats` over constant noise. Element `terms` of a
# candidate is its additive kernel, learned from some rows, with its gain. Later searches start from this kernel.
with_terms_in_merit <- function(tried, from) {
  constant <- names(Filter(function(model) is.null(model$trend), tried))
  leader <- best_of(tried)
  best <- transform_label(tried[[leader]]$transform)
  pool <- tried[[1L]]$problem$pool
  if (!is_open(from$s$kernel) || length(constant) < 2L || !best %in% constant ||
        tried[[leader]]$score <= tried[[best]]$score - additive_nats ||
        pool$n > response_rule[["terms"]] || !in_time(pool) || !may_be_additive(from$s$kernel)) return(tried)
  terms <- list()
  add <- function(labels) {
    for (label in labels) {
      some <- some_of_pool(tried[[label]]$problem$pool, min(pool$n, additive_rows[["merit"]]))
      one <- best_from(learning_problem(some, from$s, from$profile), list(tried[[label]]$theta))
      wide <- learn_additive("additive", one, from$s, first = Find(function(m) !is.null(m$theta), terms), n = pool$n)
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

# Returns the candidates `tried`, some with a larger merit. If an input identifies individuals with several rows each,
# differences between individuals look like noise that depends on the inputs, or like a skewed response. A kernel with a
# short lengthscale in that input and a linear mean (short_run()) represents individuals. Its gain is added to the merit
# of the first candidate, and of the best transform with constant noise. The gain, minus the lead of the best candidate
# and minus the gain of the best candidate from such a kernel, must exceed `additive_nats`.
with_short_lengthscale <- function(tried, from) {
  best <- tried[[best_of(tried)]]
  pool <- best$problem$pool
  if (!pool$few || pool$n < line_rule[["least"]] || !is_open(from$s$kernel) || !is_bare(from$s$kernel) ||
        !length(identifying_columns(pool))) return(tried)
  gain_of <- function(model) {
    weights <- if (is.null(pool$weights)) 1 else pool$weights
    if (!is.null(model$trend)) model$problem$pool$weights <- weights / noise_factor(model$trend, pool$x)
    problem <- learning_problem(model$problem$pool, from$s, from$profile)
    now <- climb(problem, model$theta, "whole", 0L)$value
    wide <- learning_problem(problem$pool, from$s, paste0(from$profile, "+mean"))
    short <- short_run(wide, wide$unit, now)
    if (is.null(short)) 0 else short$value - now
  }
  rivals <- setdiff(intersect(c(names(tried)[1L], transform_label(best$transform)), names(tried)), best$label)
  gains <- vapply(tried[rivals], gain_of, 0)
  lead <- vapply(tried[rivals], `[[`, 0, "score") - best$score
  if (!any(gains > lead + additive_nats)) return(tried)
  lead <- lead + gain_of(best)
  for (label in rivals[gains > lead + additive_nats]) {
    tried[[label]]$merit <- tried[[label]]$merit + gains[[label]]
    tried[[label]]$score <- tried[[label]]$score - gains[[label]]
    tried[[label]]$short <- gains[[label]]
  }
  tried
}

# Returns list(transforms, trends, tails, plain): transforms to try (NULL: none), noise trends to try (NULL: constant
# noise), and TRUE if the noise may have heavy tails. `plain` is the reason to try neither transforms nor trends: the
# first name in `given` with TRUE. It is NULL if there is no reason, or if `transform` is not "auto".
responses_to_try <- function(data, asked) {
  auto <- identical(asked$transform, "auto")
  smooth <- smooth_columns(data$x, placed_variables(data$frame))
  given <- c(plain = isTRUE(asked$plain) || identical(asked$transform, "plain"),
    family = !is.null(asked$likelihood), data = !is.null(data$whole), hyper = !asked$hyper[1L] %in% "evidence",
    m = !leaves_points_open(asked), tol = !is.null(asked$tol), noise = is.numeric(asked$noise),
    kernel = !is.null(asked$kernel) &&
      !all(vapply(as_sum(asked$kernel)$terms, function(term) is.na(c(term$variance, NA)[1L]), NA)),
    offset = !is.null(data$offset), groups = length(data$groups) > 0L && !length(smooth),
    mean = !is.null(asked$mean) && !identical(as.list(asked$mean)[2L], list(1)),
    center = !isTRUE(asked$center), scale = !isTRUE(asked$scale), fix = length(asked$control$fix) > 0L,
    priors = !asked$control$priors, method = !method_traits(asked)$chooses,
    rows = data$n < response_rule[["rows"]] || diff(range(data$y)) == 0)
  plain <- if (any(given)) names(given)[given][1L]
  y <- unname(of_used_rows(data, data$response))
  values <- if (is.null(plain)) values_of_response(y, auto) else "given"
  open <- values %in% c("few", "many")
  curved <- diff(range(y)) > sqrt(.Machine$double.eps) * max(abs(y)) # else the log is linear up to rounding
  kinds <- if (open) c(if (all(y > 0) && curved) "log", "yeojohnson")
  transforms <- if (!auto) list(asked_transform(asked$transform, data, asked)) else
    c(list(NULL), lapply(kinds, function(kind) replace(new_transform(kind, y), "found", TRUE)))
  open <- open && is.null(asked$noise)
  uneven <- open && values == "many" # with few values, the learned noise would be smallest at copies of rows
  trends <- if (inherits(asked$noise, "formula")) list(asked_noise_trend(asked$noise, data, asked)) else
    c(list(NULL), if (uneven && length(smooth)) list(noise_trend_of(data, smooth, smooth)))
  list(transforms = transforms, trends = trends, tails = open, plain = if (auto) plain)
}

# Returns "two" if more than four responses have only two values, "few" if they have few different values, else "many".
# With `tell`, a message suggests families for few values, or if many rows have the same value, which no density fits.
values_of_response <- function(y, tell) {
  distinct <- unique(y)
  times <- tabulate(match(y, distinct))
  if (length(times) == 2L && length(y) > 4L) {
    if (tell) tell_classed("two_values", paste("The response has two values and is modelled as numeric. For classes",
      if (all(y %in% 0:1)) "use `family = binomial()`." else "make it a factor()."))
    return("two")
  }
  atom <- max(times) > max(response_values[["share"]] * length(y), response_values[["times"]])
  few <- length(times) < response_values[["values"]] && 2L * length(times) < length(y)
  if (tell && (atom || few)) {
    # The variance of counts is about their mean or larger. For years it is much smaller than their mean.
    whole <- all(y >= 0 & y == round(y))
    advice <- c(if (whole && stats::var(y) > mean(y) / 20) "for counts use `family = poisson()` or `nb()`",
                if (whole && length(distinct) <= 6L) "for classes make the response a factor() or ordered()")
    if (!length(advice)) advice <- c("a density cannot describe a repeated value",
                                     if (min(y) == 0 && distinct[which.max(times)] == 0) "compare gp_hurdle()")
    tell_classed("few_values", sprintf("%.0f %% of the responses are %s: %s.", 100 * max(times) / length(y),
                                       format(distinct[which.max(times)], digits = 4), paste(advice, collapse = "; ")))
  }
  if (few) "few" else "many"
}

# Returns the transform that the user asked for, or NULL. Its lambda is NA if lambda is to be learned.
asked_transform <- function(transform, data, s) {
  if (!asks_for_transform(transform)) return(NULL)
  if (!inherits(transform, "pfdtc_transform")) {
    transform <- new_transform(check_choice(transform, transforms, "transform"), of_used_rows(data, data$response))
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

# Compares leave-one-out scores of a family and of its rival at the same rows: `scores` has two results of score_each().
# Returns list(better, merit, gain, why, family): TRUE if the rival wins, sums of log densities, the mean gain of the
# rival, words, and the rival, Student's t with its degrees of freedom. The rival wins if its sum is larger and its
# gain is above rival$errors standard errors.
#
# With Gaussian noise, outliers have most of this sum, and they move the mean of the response. So the sum does not count
# there. The gain, or else the decrease of squared errors of the mean, must be above rival$errors standard errors, and
# the gain not below minus one. With the log transform, errors are relative to the rival's mean.
compare_with_rival <- function(scores, rival) {
  merit <- vapply(scores, function(s) sum(s$density), 0)
  gains <- scores[[2L]]$density - scores[[1L]]$density
  ends <- stats::quantile(gains, rival$limits %||% 0:1, names = FALSE)
  gains <- pmin(pmax(gains, ends[1L]), ends[2L])
  gain <- gain_summary(gains)
  sure <- gain[["gain"]] / gain[["se"]] # in standard errors
  out <- list(better = isTRUE(diff(merit) > 0 && sure > rival$errors), merit = merit, gain = gain, why = "")
  if (is.null(rival$limits)) return(out)
  unit <- if (is.null(rival$relative)) 1 else scores[[2L]]$mean
  r <- vapply(scores, function(s) (s$y - s$mean) / unit, gains)
  if (!all(is.finite(r))) return(replace(out, c("better", "why"), list(FALSE, "; its mean response may be infinite")))
  closer <- drop(pmin(abs(r), stats::quantile(abs(r), 0.95))^2 %*% c(1, -1))
  closer <- mean(closer) / se_of_mean(closer)
  enough <- isTRUE(sure > -1 && max(sure, closer, na.rm = TRUE) > rival$errors)
  out$better <- enough && abs(mean(r[, 2L])) < rival$bias * se_of_mean(r[, 2L])
  if (enough && !out$better) out$why <- "; its f would not be the mean of the response"
  if (out$better && isTRUE(closer > rival$errors))
    out$why <- sprintf("; errors are smaller by %.2g standard errors", closer)
  out$family <- do.call(rival$family, rival$shape(r[, 2L]))
  out
}
