# The choice of a season (kernel-season.R) by the log marginal likelihood.

# Returns `now`, or the kernel with a trend and seasons if the log (marginal likelihood times prior) of that is larger
# by `season_rule`. Each period is tried alone, then all of them, then a linear mean beside the best. Many rows choose
# by some of them.
choose_season <- function(now, s) {
  pool <- now$problem$pool
  periods <- s$kernel$periods
  if (!length(periods) || !s$additive || !is.finite(now$value) || !in_time(pool)) return(now)
  few <- pool$n <= season_rule[["rows"]]
  some <- if (few) pool else some_of_pool(pool, season_rule[["rows"]])
  here <- if (few) now else on_rows(now, s, some)
  rest <- if (ncol(pool$x) == 1L) "matern12" else if (now$problem$profile %in% by_roughness) now$problem$profile else
    "matern32"
  learn <- function(which, from = here, mean = "") {
    learn_season(some, s, sprintf("season%s:%s%s", paste(which, collapse = ","), rest, mean), from)
  }
  all <- seq_along(periods)
  each <- lapply(all, function(i) function(tried) learn(i))
  names(each) <- vapply(periods, `[[`, "", "name")
  candidates <- c(list(now = function(tried) here), each, list(
    all = function(tried) if (length(periods) > 1L) learn(all),
    mean = function(tried) {
      best <- tried[[best_of(tried)]]
      if (is_season(best$problem$profile)) learn(numbers_of_season(best$problem$profile), best, "+mean")
    }))
  choice <- choose(candidates, function(model) {
    list(score = season_price(model$problem$profile) - model$value)
  })
  now$kernels <- join_choices(now$kernels, choice, some$n)
  best <- choice$best
  if (!is_season(best$problem$profile)) return(now)
  gained <- c(nats = best$value - here$value, parameters = best$parameters - here$parameters)
  attr(now$kernels, "season") <- c(gained, if (!pool$few) c(rows = some$n))
  if (!few) best <- on_all_rows(best, s, pool)
  same <- c("label", "problem", "theta", "value", "parameters")
  replace(now, same, best[same])
}

numbers_of_season <- function(profile) strsplit(sub("^season([0-9,]+):.*$", "\\1", profile), ",")[[1L]]

season_price <- function(profile) {
  if (!is_season(profile)) return(0)
  season_rule[["nats"]] + season_rule[["more"]] * (length(numbers_of_season(profile)) - 1)
}

# Returns the model with its value on the rows of another pool.
on_rows <- function(model, s, pool) {
  problem <- learning_problem(pool, s, model$problem$profile)
  replace(model, c("problem", "value"), list(problem, exact_density(problem)$evaluate(model$theta)$value))
}

# Returns the model on all rows, learned again if the exact log marginal likelihood has the last word.
on_all_rows <- function(model, s, pool) {
  problem <- learning_problem(pool, s, model$problem$profile)
  if (!pool$few) return(replace(model, "problem", list(problem)))
  more <- pool$n / model$problem$pool$n
  end <- ascend(exact_density(problem), model$theta, maxit = 15L, enough = exact_enough[["few"]],
                information = model$information * more)
  replace(model, c("problem", "theta", "value"), list(problem, end$theta, end$value))
}

# Returns the season learned from the rows of a pool. It starts at the centre of its priors; with a linear mean, where
# the season without it ended.
learn_season <- function(pool, s, profile, from) {
  problem <- learning_problem(pool, s, profile)
  last <- problem$last
  theta <- problem$middle
  if (is_season(from$problem$profile)) {
    theta <- c(from$theta[-(last - 1L)], problem$middle[last - 1L], from$theta[last - 1L])
  }
  theta <- ifelse(problem$free, pmin(pmax(theta, problem$lower), problem$upper), problem$given)
  rows <- seq_len(pool$n)
  near <- problem$neighbours(theta, rows, learning_sizes$few[["near"]])
  start <- c(list(theta = theta), given_neighbours(problem, rows, near)$evaluate(theta)[c("value", "information")])
  run <- learn_exactly(problem, start)
  c(model_of_run(problem, run), list(information = run$information))
}

# `kernels`: the table of the kernels tried.
because_season <- function(kernels) {
  gained <- attr(kernels, "season")
  if (is.null(gained)) return(NULL)
  some <- if ("rows" %in% names(gained)) sprintf(" on %d rows", gained[["rows"]]) else ""
  c(kernel = sprintf("A trend and a season gain %.0f nats of log marginal likelihood%s (%+d parameters).",
                     gained[["nats"]], some, as.integer(gained[["parameters"]])))
}
