# The choice of a trend and seasons (kernel-season.R) by the log marginal likelihood.

# Returns `now`, or the kernel with a trend and seasons if its log (marginal likelihood times prior) is larger by its
# price. Each period is tried alone, then all of them, then a linear mean beside the best. With many rows some rows
# choose.
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
  now$kernels <- join_choices(now$kernels, choice, some$n)
  if (!is_season(best$problem$profile)) return(now)
  now$kernels <- with_gain(now$kernels, best$problem$profile, best$value - here$value,
                           best$parameters - here$parameters, if (!pool$few) some$n)
  if (!few) {
    problem <- learning_problem(pool, s, best$problem$profile)
    if (pool$few) { # the exact log marginal likelihood of all rows decides
      end <- ascend(exact_density(problem), best$theta, maxit = 15L, enough = exact_enough[["few"]],
                    information = best$information * (pool$n / some$n))
      best[c("theta", "value")] <- end[c("theta", "value")]
    }
    best$problem <- problem
  }
  same <- c("label", "problem", "theta", "value", "parameters")
  replace(now, same, best[same])
}

# Returns profiles by name: each season alone, and all of them. With other inputs than the time, `rest` is the profile
# of the kernel of all inputs.
season_profiles <- function(open, rest) {
  if (!length(open$periods)) return(NULL)
  if (length(open$inputs) == 1L) rest <- "matern12"
  each <- seq_along(open$periods)
  which <- c(each, if (length(each) > 1L) paste(each, collapse = ","))
  names <- c(vapply(open$periods, `[[`, "", "name"), "all")
  stats::setNames(sprintf("season%s:%s", which, rest), names[seq_along(which)])
}

# Judges a model that has been learned by its log (marginal likelihood times prior) and the price of its structure.
judge_by_price <- function(model) list(score = profile_price(model$problem$profile) - model$value)

# Returns the nats of log marginal likelihood that a kernel must gain over one term of all inputs.
profile_price <- function(profile) {
  if (!is_season(profile)) {
    return(switch(sub(":.*", "", profile), additive = additive_nats, pairwise = additive_nats + pair_nats, 0))
  }
  further <- length(strsplit(sub("^season([0-9,]+):.*$", "\\1", profile), ",")[[1L]]) - 1
  season_rule[["nats"]] + season_rule[["more"]] * further
}

# Adds what a kernel of several terms gains to the table of kernels tried.
with_gain <- function(kernels, profile, nats, parameters = NULL, rows = NULL) {
  structure(kernels, gained = list(what = sub("[0-9,]*:.*", "", profile), nats = nats, parameters = parameters,
                                   rows = rows))
}

because_gain <- function(kernels) {
  gained <- attr(kernels, "gained")
  if (is.null(gained)) return(NULL)
  terms <- if (gained$what == "season") "A trend and a season gain" else "Each input by itself beside all inputs gains"
  c(kernel = paste0(sprintf("%s %.0f nats of log marginal likelihood", terms, gained$nats),
                    if (!is.null(gained$rows)) sprintf(" on %d rows", as.integer(gained$rows)),
                    if (!is.null(gained$parameters)) sprintf(" (%+d parameters)", as.integer(gained$parameters)), "."))
}

# Returns the model learned again from `count` rows, starting at its present hyperparameters.
on_rows <- function(model, s, count) {
  problem <- learning_problem(some_of_pool(model$problem$pool, count), s, model$problem$profile)
  end <- learn_exactly(problem, climb(problem, model$theta, "few", 8L))
  replace(model, c("problem", "theta", "value"), list(problem, end$theta, end$value))
}

# Returns the season learned from the rows of a pool. It starts at the centre of its priors. With a linear mean, it
# starts where `from` ended, a model without that mean.
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
