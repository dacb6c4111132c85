# Chooses a trend and seasons (kernel-place.R) by the log marginal likelihood.

# Returns `now`, or the kernel with a trend and seasons if that increases the log (marginal likelihood times prior) by
# more than profile_price(). Each period is tried alone, then all periods, then a linear mean with the best of them.
# With many rows, a sample of rows decides.
choose_season <- function(now, s) {
  pool <- now$problem$pool
  one <- now$problem$profile
  profiles <- season_profiles(open_leaf(s$kernel), if (one %in% by_roughness) one else "matern32")
  if (!length(profiles) || !s$additive || !is.finite(now$value) || !in_time(pool)) return(now)
  few <- pool$n <= season_rule[["rows"]]
  here <- if (few) now else on_rows(now, s, season_rule[["rows"]])
  some <- here$problem$pool
  candidates <- c(lapply(profiles, function(profile) function(tried) learn_season(some, s, profile, here)),
                  list(mean = function(tried) {
                    best <- tried[[best_of(tried)]]
                    profile <- best$problem$profile
                    if (is_season(profile) && is_bare(s$kernel)) learn_season(some, s, paste0(profile, "+mean"), best)
                  }))
  choice <- choose(c(list(now = function(tried) here), candidates), judge_by_price)
  best <- choice$best
  now <- take_choice(now, choice, some$n, if (!pool$few) some$n)
  if (!few && is_season(best$problem$profile)) {
    problem <- learning_problem(pool, s, best$problem$profile)
    if (pool$few) { # decide by the exact log marginal likelihood of all rows
      end <- ascend(exact_density(problem), best$theta, maxit = 15L, enough = exact_enough[["few"]],
                    information = best$information * (pool$n / some$n))
      best[c("theta", "value")] <- end[c("theta", "value")]
    }
    now[c("problem", "theta", "value")] <- list(problem, best$theta, best$value)
  }
  now
}

# Returns named profiles: each season alone, and all seasons. With inputs other than the time, `rest` is the profile of
# the kernel of all inputs.
season_profiles <- function(open, rest) {
  if (!length(open$periods)) return(NULL)
  if (length(open$inputs) == 1L) rest <- "matern12"
  each <- seq_along(open$periods)
  which <- c(each, if (length(each) > 1L) paste(each, collapse = ","))
  names <- c(vapply(open$periods, `[[`, "", "name"), "all")
  stats::setNames(sprintf("season%s:%s", which, rest), names[seq_along(which)])
}

# Judges a learned model by profile_price() minus its log (marginal likelihood times prior); smaller is better.
judge_by_price <- function(model) list(score = profile_price(model$problem$profile) - model$value)

# Returns how many nats of log marginal likelihood a kernel must gain over a single term of all inputs.
profile_price <- function(profile) {
  if (!is_season(profile)) {
    return(switch(sub(":.*", "", profile), additive = additive_nats, pairwise = additive_nats + pair_nats, 0))
  }
  further <- length(strsplit(sub("^season([0-9,]+):.*$", "\\1", profile), ",")[[1L]]) - 1
  season_rule[["nats"]] + season_rule[["more"]] * further
}

# Returns the best model of a choice whose first candidate is `now`. Its table of kernels includes the other candidates
# and, as an attribute, the gain of the best on `rows` rows (NULL means all rows).
take_choice <- function(now, choice, n, rows = NULL) {
  first <- choice$tried[[1L]]
  best <- choice$best
  now$kernels <- join_choices(now$kernels, choice, n)
  if (best$label == first$label) return(now)
  now$kernels <- with_gain(now$kernels, best$problem$profile, best$value - first$value,
                           best$parameters - first$parameters, rows)
  moved_to(now, best)
}

# Adds the gain of a kernel of several terms to the table of kernels tried.
with_gain <- function(kernels, profile, nats, parameters = NULL, rows = NULL) {
  structure(kernels, gained = list(what = sub("[0-9,]*:.*", "", profile), nats = nats, parameters = parameters,
                                   rows = rows))
}

because_gain <- function(kernels) {
  gained <- attr(kernels, "gained")
  if (is.null(gained)) return(NULL)
  terms <- if (gained$what == "season") "A trend and a season gain" else "One term per input gains"
  c(kernel = paste0(sprintf("%s %.0f nats of log marginal likelihood", terms, gained$nats),
                    if (!is.null(gained$rows)) sprintf(" on %d rows", as.integer(gained$rows)),
                    if (!is.null(gained$parameters)) sprintf(" (%+d parameters)", as.integer(gained$parameters)), "."))
}

# Returns what a choice gains over a plainer one, in words.
gain_over <- function(plain, nats, penalty) {
  sprintf("log marginal likelihood %s nats higher than with %s, after a penalty of %s nats", show_nats(nats), plain,
          show_nats(penalty))
}

show_nats <- function(nats) if (abs(nats) < 9.95) sprintf("%.1f", nats) else sprintf("%.0f", nats)

# Returns the model learned again from `count` rows, starting at its present hyperparameters.
on_rows <- function(model, s, count) {
  problem <- learning_problem(some_of_pool(model$problem$pool, count), s, model$problem$profile)
  moved_to(model, best_from(problem, list(model$theta)))
}

# Returns the model of a season, learned from the rows of a pool. The search starts at the centre of the priors. With a
# linear mean it starts at the end of `from`, a model without that mean.
learn_season <- function(pool, s, profile, from) {
  problem <- learning_problem(pool, s, profile)
  last <- problem$last
  theta <- problem$middle
  if (grepl("+mean", profile, fixed = TRUE)) {
    theta <- c(from$theta[-(last - 1L)], problem$middle[last - 1L], from$theta[last - 1L])
  }
  theta <- ifelse(problem$free, pmin(pmax(theta, problem$lower), problem$upper), problem$given)
  rows <- seq_len(pool$n)
  near <- problem$neighbours(theta, rows, learning_sizes$few[["near"]])
  start <- c(list(theta = theta), problem$vecchia(theta, rows, near)[c("value", "information")])
  run <- learn_exactly(problem, start)
  c(model_of_run(problem, run), list(information = run$information))
}

# Chooses an additive kernel (kernel-compile.R) by the log marginal likelihood: terms of single inputs are added to the
# kernel of all inputs.

# Returns `now`, or its model with kernel_additive() of its kernel if the log (marginal likelihood times prior)
# increases by `additive_nats`. Pairs of inputs are added if it increases by `pair_nats` more. `first` is the additive
# kernel, with its `gain`, learned before from fewer rows or for the choice of the response.
choose_additive <- function(now, s, first = NULL) {
  pool <- now$problem$pool
  if (isTRUE(first$gain < additive_rows[["nats"]])) return(now)
  if (!now$problem$profile %in% c(by_roughness, two_scales) || !is.finite(now$value)) return(now)
  if (!may_be_additive(s$kernel)) return(now)
  choice <- choose(list(now = function(tried) now, additive = function(tried) learn_additive("additive", now, s, first),
                        pairwise = function(tried) {
                          one <- tried$additive
                          if (isTRUE(one$score < tried$now$score) && may_be_additive(s$kernel, "pairs")) {
                            learn_additive("pairwise", one, s)
                          }
                        }), judge_by_price)
  take_choice(now, choice, pool$n)
}

# If there are too many rows for exact learning, compares `now` with the additive kernel of choose_additive(), learned
# from some rows, and returns the better model. The held-out log density of the additive kernel, given the rows it was
# learned from, must exceed that of `now` by more than a standard error. `now` is scored twice, given the same rows and
# given the nearest neighbours among all rows; the better score counts.
choose_additive_on_some <- function(now, s) {
  pool <- now$problem$pool
  if (!may_be_additive(s$kernel) || !in_time(pool)) return(now)
  few <- on_rows(now, s, additive_rows[["some"]])
  first <- learn_additive("additive", few, s)
  if (!isTRUE(first$value > few$value + additive_rows[["nats"]])) return(now)
  chosen <- choose_additive(on_rows(now, s, most_exact_rows(additive_rows[["beyond"]])), s, first)
  some <- chosen$problem$pool
  if (chosen$problem$profile == now$problem$profile) return(now)
  attr(chosen$kernels, "gained")$rows <- some$n
  chosen[c("problem", "exact")] <- list(learning_problem(pool, s, chosen$problem$profile), NULL)
  held <- setdiff(pool$take(min(pool$n, some$n + additive_rows[["held"]])), pool$take(some$n))
  of_now <- list(scores_given(now$problem, now$theta, some, held),
                 conditional_scores(now$problem, now$theta, rows = held))
  behind <- scores_given(chosen$problem, chosen$theta, some, held) - of_now[[which.min(vapply(of_now, mean, 0))]]
  if (isTRUE(mean(behind) < -se_of_mean(behind))) chosen else now
}

# Returns TRUE if the inputs of an open kernel are few enough for terms of single inputs, or of `pairs` of inputs.
may_be_additive <- function(kernel, terms = "single") {
  inputs <- length(additive_inputs(as_sum(kernel)$leaves[[1L]]))
  inputs >= 2L && inputs <= searched_inputs[[terms]]
}

# Returns the model with an additive kernel of this kind. With many rows it is first learned from some of them. Returns
# NULL if the log marginal likelihood hardly rises there. `first` is the model learned from those rows, if it rose.
learn_additive <- function(kind, from, s, first = NULL) {
  pool <- from$problem$pool
  profile <- paste0(kind, ":", sub(".*[:+]", "", from$problem$profile))
  search <- function(pool, first = NULL) {
    wide <- learning_problem(pool, s, profile)
    best_from(wide, if (is.null(first)) additive_starts(from, wide) else list(first$theta))
  }
  if (!is.null(first) || pool$n <= additive_rows[["all"]]) return(search(pool, first))
  some <- some_of_pool(pool, additive_rows[["some"]])
  first <- search(some)
  before <- exact_density(learning_problem(some, s, from$problem$profile))$evaluate(from$theta)$value
  if (isTRUE(first$value > before + additive_rows[["nats"]])) search(pool, first)
}

# Returns two starts of an additive kernel: the end of the search of `from`, with less variance; and long lengthscales,
# with short ones for the terms of single inputs. Held parameters keep their values.
additive_starts <- function(from, wide) {
  old <- from$problem$table
  table <- wide$table
  last <- wide$last
  unit <- wide$unit
  at <- function(what) which(table$what == what)
  near <- wide$unit + log(c(table$start, 0.05))
  near[at("lengthscale")] <- from$theta[which(old$what == "lengthscale" & old$leaf == 1L)]
  near[last] <- from$theta[from$problem$last]
  if (any(old$what == "additive.share")) {
    same <- c("additive.share", "additive.ratio", "variance")
    near[match(same, table$what)] <- from$theta[match(same, old$what)]
    near[at("additive.pairs")] <- near[at("additive.share")] + log(0.2)
  } else {
    whole <- sum(exp(from$theta[which(old$what == "variance")] - unit[at("variance")])) * 0.3
    near[at("variance")] <- unit[at("variance")] + log(whole + 0.7)
    near[at("additive.share")] <- log(0.7 / whole)
    near[at("additive.ratio")] <- mean((near - unit)[at("lengthscale")])
  }
  far <- wide$unit + log(c(table$start, 0.02))
  far[at("additive.share")] <- log(5)
  lapply(list(near, far), function(theta) ifelse(wide$free, pmin(pmax(theta, wide$lower), wide$upper), wide$given))
}

# Returns the means of conditional_scores(), with the rows of the pool `some` for neighbours, or Inf if this fails.
scores_given <- function(problem, theta, some, rows) {
  pool <- problem$pool
  now <- problem$at(theta)
  exact <- tryCatch(native_exact(some, now, problem$run), pfdtc_error_numerical = function(e) NULL)
  if (is.null(exact)) return(Inf)
  at <- native_exact_predict(exact, some$x, now$kernel, pool$x[rows, , drop = FALSE])
  noise <- now$noise / if (is.null(pool$weights)) 1 else pool$weights[rows]
  means_of_groups(-stats::dnorm(pool$y[rows], at$mean, sqrt(pmax(at$variance, 0) + noise), log = TRUE))
}
