# Chooses among models. A candidate is a function(tried) that returns a learned model, or NULL if the model is not worth
# trying after the models in `tried`. A judge is a function(model) that returns list(score, scores): the score, smallest
# for the best model, and optionally scores of groups of rows.

# Returns list(table, tried, best). `table` has the candidates, best first: kernel (a label), score, se (standard error
# of the difference to the best, from `scores`), parameters, chosen. `tried` has all models, `best` the best one.
choose <- function(candidates, judge) {
  tried <- list()
  for (name in names(candidates)) {
    model <- candidates[[name]](tried)
    if (!is.null(model)) tried[[name]] <- c(model, judge(model))
  }
  best <- tried[[best_of(tried)]]
  se <- function(one) if (is.null(one$scores)) NA_real_ else se_of_mean(one$scores - best$scores)
  label <- vapply(tried, `[[`, "", "label")
  table <- list(kernel = label, score = vapply(tried, `[[`, 0, "score"), se = vapply(tried, se, 0),
                parameters = vapply(tried, `[[`, 0L, "parameters"), chosen = label == best$label)
  table <- list2DF(lapply(table, unname))[order(table$score), ] # models with equal labels share a row
  list(table = `rownames<-`(table[!duplicated(table$kernel), ], NULL), tried = tried, best = best)
}

best_of <- function(tried) names(tried)[which.min(vapply(tried, `[[`, 0, "score"))]

# Appends the table of a `later` choice to `table`. The first candidate of `later` is the model chosen in `table`,
# perhaps with another label. Scores of `table` are nats per row, those of `later` sums over n rows.
join_choices <- function(table, later, n) {
  if (is.null(table)) return(NULL)
  table$kernel[table$chosen] <- later$tried[[1L]]$label
  first <- later$table$kernel == later$tried[[1L]]$label
  later$table$score <- table$score[table$chosen] + (later$table$score - later$table$score[first]) / n
  kept <- list(gained = attr(table, "gained"), first = c(attr(table, "first"), table$kernel[table$se %in% 0])[1L])
  table <- rbind(table, later$table[!first & is.finite(later$table$score), ])
  table$chosen <- table$kernel == later$table$kernel[later$table$chosen]
  table$se[table$kernel == later$tried[[1L]]$label & !table$chosen] <- NA # this difference has no standard error
  do.call(structure, c(list(`rownames<-`(table[order(table$score), ], NULL)), kept))
}

se_of_mean <- function(v) stats::sd(v) / sqrt(length(v))

gain_summary <- function(gain) c(gain = mean(gain), se = se_of_mean(gain), rows = length(gain))

# ---- Gaussian responses: kernels, judged by rows given their neighbours ---------------------------------------------

by_roughness <- c("matern12", "matern32", "matern52", "se")

# This profile is a sum of two Matern 3/2 kernels of the same inputs: one may have long and one short lengthscales.
two_scales <- "matern32+matern32"

# Returns the candidates for the default kernel. `theta` are log parameters learned with Matern 3/2. With many rows,
# Matern 5/2 is tried only if Matern 1/2 is not better than Matern 3/2, and SE only if Matern 5/2 is better: the score
# is assumed to have one minimum as a function of smoothness. tell(label) reports progress.
candidates <- function(pool, s, theta, tell = function(what) NULL) {
  few <- pool$few
  shared <- NULL # the neighbours that all kernels share
  learn <- function(profile, ...) {
    if (profile != "matern32" && proc.time()[["elapsed"]] >= pool$until) return(NULL)
    problem <- learning_problem(pool, s, profile)
    tell(problem$label)
    learned_model(problem, ...)
  }
  after <- function(first, profile) {
    if (few) return(learn(profile, theta))
    size <- learning_sizes$kernels
    if (is.null(shared)) {
      shared <<- first$problem$neighbours(first$theta, pool$take(min(size[["rows"]], pool$n)), size[["near"]])
    }
    learn(profile, first$theta, shared)
  }
  lost <- function(tried, profile) !isTRUE(tried[[profile]]$score < tried$matern32$score)
  list(
    matern32 = function(tried) learn("matern32", theta), matern12 = function(tried) after(tried$matern32, "matern12"),
    matern52 = function(tried) if (few || lost(tried, "matern12")) after(tried$matern32, "matern52"),
    se = function(tried) if (few || !is.null(tried$matern52) && !lost(tried, "matern52")) after(tried$matern32, "se"),
    two_scales = function(tried) {
      one <- tried$matern32
      if (one$problem$composite || !best_of(tried) %in% c("matern32", "matern12")) return(NULL)
      last <- length(one$theta)
      lengthscales <- one$theta[seq_len(last - 2L)]
      variance <- one$theta[last - 1L]
      # Two equal terms would stay equal, so their lengthscales start at different values.
      start <- c(lengthscales + log(2), variance + log(0.7), lengthscales + log(0.4), variance + log(0.3),
                 one$theta[last])
      learn(two_scales, start, least = one$value + last - 1)
    })
}

# Scores a model by the mean over rows i of -log p(y_i | neighbours), plus 2 nats for each parameter divided by the
# number of rows (at most parameter_rows). With groups, such densities would depend on an estimate of the level's
# effect. Then the exact log marginal likelihood of some rows replaces them.
judge_by_rows <- function(model) {
  pool <- model$problem$pool
  if (!is.null(pool$levels)) return(list(score = (2 * model$parameters - value_of_some(model)) / pool$n))
  scores <- conditional_scores(model$problem, model$theta)
  list(scores = scores, score = mean(scores) + 2 * model$parameters / min(parameter_rows, pool$n))
}

# Returns the means of -log p(y_i | nearest other rows) over at most 20 groups of the given `rows`.
conditional_scores <- function(problem, theta, size = learning_sizes$score,
                               rows = problem$pool$take(min(size[["rows"]], problem$pool$n))) {
  neighbours <- problem$neighbours(theta, rows, size[["near"]], earlier = FALSE)
  at <- native_vecchia(problem$pool, problem$by_number(theta), rows, neighbours, slopes = FALSE,
                       at = problem$input(length(rows)))
  loss <- if (is.null(at$residual)) rep(Inf, length(rows)) else
    (log(2 * pi * at$variance) + at$residual^2 / at$variance) / 2
  means_of_groups(loss)
}

means_of_groups <- function(v) unname(vapply(split(v, seq_along(v) %% min(20L, length(v))), mean, 0))

# ---- Gaussian responses: the exact log marginal likelihood of some rows ---------------------------------------------

# Returns TRUE if the exact likelihood is worth computing: there are no groups, enough rows and enough time. The noise
# must also be so small that distant rows have information, which the Vecchia likelihood does not use.
has_little_noise <- function(problem, theta) {
  in_time(problem$pool) && is.null(problem$pool$levels) && max(problem$pool$exact) >= first_exact_rows &&
    exp(theta[[problem$last]] - problem$unit[[problem$last]]) <= exact_noise
}

# Compares two estimates of the log hyperparameters theta: by the Vecchia likelihood, and by the exact likelihood of
# some rows, which may count variation of f between these rows as noise. The larger log density of rows given neighbours
# wins. Returns list(theta, exact = c(rows, gain, se)), where `gain` per row is that of the second over the first.
choose_exactly <- function(now, run) {
  thetas <- list(now$theta, learn_exactly(now$problem, run)$theta)
  scores <- lapply(thetas, conditional_scores, problem = now$problem, size = learning_sizes$exact)
  gain <- scores[[1L]] - scores[[2L]]
  list(theta = thetas[[which.min(vapply(scores, mean, 0))]],
       exact = if (all(is.finite(gain))) c(rows = max(now$problem$pool$exact), gain_summary(gain)[-3L]))
}

# Returns list(now, s, gain), the model and settings. If an R factor has a lengthscale for each level, tries one for all
# levels, and keeps it if the leave-one-out log density increases. `gain` is the increase per row, or NULL.
choose_shared <- function(now, s) {
  groups <- s$kernel$groups
  pool <- now$problem$pool
  kept <- list(now = now, s = s)
  if (is.null(groups) || !has_one_factor(s$kernel) || identical(names(s$kernel$shared), groups) || !in_time(pool)) {
    return(kept)
  }
  tied <- s
  tied$kernel$shared <- shared_by(groups)
  tied$names <- parameter_names(tied$kernel, s$columns)
  tied$free <- setdiff(tied$names, not_learned(s))
  problem <- learning_problem(pool, tied, now$problem$profile)
  is_length <- now$problem$table$what == "lengthscale"
  shared <- problem$table$what == "lengthscale"
  theta <- problem$unit
  theta[c(!shared, TRUE)] <- now$theta[c(!is_length, TRUE)]
  for (leaf in unique(problem$table$leaf[shared])) {
    old <- now$theta[which(is_length & now$problem$table$leaf == leaf)]
    if (!is.null(s$kernel$shared)) old <- old[s$kernel$shared]
    theta[which(shared & problem$table$leaf == leaf)] <- tapply(old, tied$kernel$shared, mean)
  }
  end <- best_from(problem, list(theta))
  if (is.null(end$loo)) return(kept)
  gain <- mean(end$loo - exact_density(now$problem)$evaluate(now$theta)$loo)
  if (isTRUE(gain > 0)) kept <- list(now = moved_to(now, end), s = tied)
  c(kept, gain = gain)
}

# Returns list(kernel, noise) of the smoothest kernel within two standard errors of `best`, or NULL if that is `best`.
smoother_kernel <- function(tried, best) {
  for (profile in intersect(rev(by_roughness), names(tried))) {
    if (profile == best || !best %in% by_roughness) return(NULL)
    behind <- tried[[profile]]$scores - tried[[best]]$scores
    if (isTRUE(mean(behind) <= 2 * se_of_mean(behind))) return(tried[[profile]]$problem$natural(tried[[profile]]$theta))
  }
}

# ---- Gaussian responses: a linear mean, judged by the log marginal likelihood ---------------------------------------

# Returns `now`, or a model with a linear mean, alone or beside the kernel, whichever has the largest
#   log (marginal likelihood times prior) - 2 (1 - pool$fade) (number of parameters).
# With few rows, priors are strong, and pool$fade is 1: no further penalty. `run` is the result of a search by the
# Vecchia likelihood, and `line` that of search_beside_line(), if it was called before. With many rows only the linear
# mean alone is tried, because a search for mean and kernel takes as long as one for the kernel. Up to
# line_rule["as_kernel"] rows, a linear mean alone is penalised like the kernel, because few functions are linear.
choose_line <- function(now, s, run, line = NULL) {
  pool <- now$problem$pool
  if (pool$n < line_rule[["least"]]) return(now)
  few <- pool$few
  alone <- linear_model(learning_problem(pool, s, "mean"))
  if (!few) now$value <- max(run$value, alone$value + value_of_some(now) - value_of_some(alone))
  if (!is.finite(now$value)) return(now) # the density could not be computed
  price <- parameter_nats * (1 - pool$fade)
  counted <- if (pool$n <= line_rule[["as_kernel"]]) now$parameters
  judge <- function(model) list(score = price * max(model$parameters, counted) - model$value)
  beside <- function(tried) {
    if (!few) return(NULL)
    if (is.null(line)) line <- search_beside_line(now$problem, now$theta, s)
    problem <- line$problem
    own <- line$run
    # Compute the exact likelihood only if, according to the Vecchia likelihood, the linear mean may help.
    hoped <- list(value = now$value + own$value - run$value + line_rule[["mistaken"]], parameters = sum(problem$free))
    least <- judge(hoped)$score + hoped$value - tried[[best_of(tried)]]$score # the smallest value that would win
    if (isTRUE(least < hoped$value)) model_of_run(problem, learn_exactly(problem, own, least))
  }
  # The kernel was chosen without a linear mean. If adding a linear mean gains much, choose the kernel again with it.
  again <- lapply(stats::setNames(nm = by_roughness), function(profile) {
    function(tried) {
      first <- tried$beside
      if (is.null(first) || profile == now$problem$profile || !now$problem$profile %in% by_roughness ||
            tried$now$score - first$score < line_rule[["again"]]) return(NULL)
      best_from(learning_problem(pool, s, paste0(profile, "+mean")), list(first$theta), "whole")
    }
  })
  choice <- choose(c(list(now = function(tried) now, alone = function(tried) alone, beside = beside), again), judge)
  c(choice$best[c("label", "problem", "theta")],
    list(kernels = join_choices(now$kernels, choice, pool$n), exact = choice$best$exact))
}

# Learns a linear mean without kernel by the exact likelihood: y ~ N(0, v U U' + noise W^{-1}), with U = [1 u(x)],
# scaled inputs u(x), prior variance v, weights W. W^{1/2} U U' W^{1/2} has q eigenvalues lambda > 0. In its eigenbasis,
# the elements of W^{1/2} y are independent. q of them have variance v lambda + noise, the others have variance noise.
linear_model <- function(problem) {
  pool <- problem$pool
  rows <- pool$take(min(pool$n, learning_sizes$whole[["rows"]]))
  n <- length(rows)
  w <- if (is.null(pool$weights)) rep(1, n) else pool$weights[rows]
  U <- sqrt(w) * mean_basis(problem$natural(problem$unit)$kernel, pool$x[rows, , drop = FALSE])
  y <- sqrt(w) * pool$y[rows]
  eigen <- eigen(crossprod(U), symmetric = TRUE)
  lambda <- eigen$values[eigen$values > 1e-12 * eigen$values[1L]]
  q <- length(lambda)
  squares <- drop(crossprod(eigen$vectors[, seq_len(q), drop = FALSE], crossprod(U, y)))^2 / lambda
  rest <- max(sum(y^2) - sum(squares), 0)
  problem$evaluate <- function(theta) {
    noise <- exp(theta[[2L]])
    variance <- exp(theta[[1L]]) * lambda + noise
    share <- cbind(1 - noise / variance, noise / variance) # derivatives of the log variances
    excess <- squares / variance - 1
    result <- list(value = (sum(log(w)) - n * log(2 * pi) - sum(log(variance) + squares / variance) -
                              (n - q) * log(noise) - rest / noise) / 2,
                   score = (colSums(share * excess) + c(0, rest / noise - (n - q))) / 2,
                   information = (crossprod(share) + diag(c(0, n - q))) / 2)
    problem$posterior(result, noise, n / pool$n * pool$share, theta)
  }
  start <- ifelse(is.na(problem$given), problem$unit - c(0, log(2)), problem$given) # keeps the user's values
  model_of_run(problem, ascend(problem, within_bounds(problem, start), maxit = 50L, enough = 1e-3))
}

# Returns a model's log posterior density for all rows, extrapolated from the exact likelihood of some rows, or
# -Inf if this fails. The Vecchia likelihood is too low for long lengthscales, but line_rule["rows"] rows have little
# information on short ones. So choose_line() takes the larger of both densities to decide about a linear mean.
value_of_some <- function(model) {
  problem <- model$problem
  pool <- problem$pool
  rows <- pool$take(line_rule[["rows"]])
  now <- problem$at(model$theta)
  result <- native_exact_evidence(take_rows_of(pool[c("x", "y", "weights")], rows), now,
                                  replace(problem$run, "threads", 1L)) # threads change no rounding
  if (!is.null(result$reason)) return(-Inf)
  counted <- min(pool$n, learning_sizes$whole[["rows"]])
  problem$posterior(list(value = -result$value * counted / length(rows)), now$noise, counted / pool$n * pool$share,
                    model$theta)$value
}

# ---- Gaussian responses: kernels with a trend and seasons -----------------------------------------------------------

# Returns `now`, or a model with a trend and seasons if its log (marginal likelihood times prior) is larger by more than
# profile_price(). Tries each period alone, all together, and the best with a linear mean (many rows: on a sample).
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
    if (pool$few) { # finish with the exact likelihood of all rows
      end <- ascend(exact_density(problem), best$theta, maxit = 15L, enough = exact_enough[["few"]],
                    information = best$information * (pool$n / some$n))
      best[c("theta", "value")] <- end[c("theta", "value")]
    }
    now[c("problem", "theta", "value")] <- list(problem, best$theta, best$value)
  }
  now
}

# Returns the profiles of kernels with seasons: each period alone, then all periods together. `rest` is the profile of
# the kernel of all inputs; if the time is the only input, "matern12" replaces it. Without periods the result is NULL.
season_profiles <- function(open, rest) {
  if (!length(open$periods)) return(NULL)
  if (length(open$inputs) == 1L) rest <- "matern12"
  each <- seq_along(open$periods)
  which <- c(each, if (length(each) > 1L) paste(each, collapse = ","))
  names <- c(vapply(open$periods, `[[`, "", "name"), "all")
  stats::setNames(sprintf("season%s:%s", which, rest), names[seq_along(which)])
}

judge_by_price <- function(model) list(score = profile_price(model$problem$profile) - model$value)

# Returns how many nats a seasonal or additive kernel must gain over one without these terms; 0 for other kernels.
profile_price <- function(profile) {
  if (!is_season(profile)) {
    return(switch(sub(":.*", "", profile), additive = additive_nats, pairwise = additive_nats + pair_nats, 0))
  }
  commas <- nchar(gsub("[^,]", "", profile)) # are between the numbers of periods
  season_rule[["nats"]] + season_rule[["more"]] * commas
}

# Returns the best model of `choice`, a result of choose() for `now` and other models on n rows. Adds the others to
# now$kernels, whose attribute `gained` gets the best model's gain in nats on `rows` rows (NULL: all).
take_choice <- function(now, choice, n, rows = NULL) {
  first <- choice$tried[[1L]]
  best <- choice$best
  now$kernels <- join_choices(now$kernels, choice, n)
  if (best$label == first$label) return(now)
  now$kernels <- with_gain(now$kernels, best$problem$profile, best$value - first$value,
                           best$parameters - first$parameters, rows)
  moved_to(now, best)
}

with_gain <- function(kernels, profile, nats, parameters = NULL, rows = NULL) {
  structure(kernels, gained = list(what = sub("[0-9,]*:.*", "", profile), nats = nats, parameters = parameters,
                                   rows = rows))
}

# Returns a sentence for the choice of the kernel, if several were tried.
because_kernel <- function(kernels) {
  gained <- attr(kernels, "gained")
  if (is.null(gained)) {
    if (NROW(kernels) < 2L || sum(kernels$chosen) != 1L) return(NULL)
    by <- c("the log density of rows given other rows", "log marginal likelihood")[unique(sort(1L + is.na(kernels$se)))]
    return(c(kernel = sprintf("The kernel %s was selected from %d kernels by %s.", kernels$kernel[kernels$chosen],
                              nrow(kernels), paste(by, collapse = " and "))))
  }
  c(kernel = paste0(
    "With ", if (gained$what == "season") "a trend (squared exponential) and a season (periodic times Matern 5/2)" else
      "a term for each input", sprintf(", log marginal likelihood plus log prior is %.0f above that of", gained$nats),
    " the best kernel without these terms", if (!is.null(gained$rows)) sprintf(" on %d rows", as.integer(gained$rows)),
    if (isTRUE(gained$parameters > 0)) sprintf(", which has %d parameters fewer", as.integer(gained$parameters)), "."))
}

show_nats <- function(nats) if (abs(nats) < 9.95) sprintf("%.1f", nats) else sprintf("%.0f", nats)

# Returns the model learned again from `count` of its rows, starting from its parameters.
on_rows <- function(model, s, count) {
  problem <- learning_problem(some_of_pool(model$problem$pool, count), s, model$problem$profile)
  moved_to(model, best_from(problem, list(model$theta)))
}

# Returns the model of a kernel with seasons, learned from the rows of `pool`. If `profile` has a linear mean, the
# search starts from `from`, the model without this mean, else from the centres of the priors.
learn_season <- function(pool, s, profile, from) {
  problem <- learning_problem(pool, s, profile)
  last <- problem$last
  theta <- problem$middle
  if (grepl("+mean", profile, fixed = TRUE)) {
    theta <- c(from$theta[-(last - 1L)], problem$middle[last - 1L], from$theta[last - 1L])
  }
  theta <- ifelse(problem$free, within_bounds(problem, theta), problem$given)
  rows <- seq_len(pool$n)
  near <- problem$neighbours(theta, rows, learning_sizes$few[["near"]])
  run <- learn_exactly(problem, c(list(theta = theta), problem$vecchia(theta, rows, near)[c("value", "information")]))
  c(model_of_run(problem, run), list(information = run$information))
}
