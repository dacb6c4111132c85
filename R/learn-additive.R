# The choice of the additive kernel (kernel-compile.R) by the log marginal likelihood: each input by itself beside the
# kernel of all inputs.

# Returns `now`, or its model with kernel_additive() of its kernel if that gains `additive_nats` of log (marginal
# likelihood times prior). Pairs of inputs follow if they gain `pair_nats` more. `first` is the additive kernel, with
# its `gain`, as learned from fewer rows or for the choice of the response.
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
  now$kernels <- join_choices(now$kernels, choice, pool$n)
  if (choice$best$label != now$label) {
    now$kernels <- with_gain(now$kernels, choice$best$problem$profile, choice$best$value - now$value,
                             choice$best$parameters - now$parameters)
  }
  same <- c("label", "problem", "theta", "value", "parameters")
  replace(now, same, choice$best[same])
}

# Returns `now`, or the additive kernel that choose_additive() takes on some rows, if rows are too many for exact
# learning. Held-out rows may refuse it: given the rows it was learned from, its log density there must exceed that of
# `now` by over the standard error. `now` is given the same rows, or the nearest rows among all.
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

# Returns the model with an additive kernel of this kind. With many rows it is first learned from some of them; NULL if
# it gains almost nothing there. `first` is the model learned from those rows, if it gains.
learn_additive <- function(kind, from, s, first = NULL) {
  pool <- from$problem$pool
  profile <- paste0(kind, ":", sub(".*[:+]", "", from$problem$profile))
  search <- function(pool, thetas) {
    wide <- learning_problem(pool, s, profile)
    ends <- lapply(thetas(wide), function(theta) learn_exactly(wide, climb(wide, theta, "few", 8L)))
    model_of_run(wide, ends[[which.max(vapply(ends, `[[`, 0, "value"))]])
  }
  starts <- function(wide) additive_starts(from, wide)
  from_first <- function(wide) list(first$theta)
  if (!is.null(first)) return(search(pool, from_first))
  if (pool$n <= additive_rows[["all"]]) return(search(pool, starts))
  some <- some_of_pool(pool, additive_rows[["some"]])
  first <- search(some, starts)
  before <- exact_density(learning_problem(some, s, from$problem$profile))$evaluate(from$theta)$value
  if (isTRUE(first$value > before + additive_rows[["nats"]])) search(pool, from_first)
}

# Returns two starts of an additive kernel: where the search of `from` ended, with less variance; and long lengthscales
# beside short ones of single inputs. Held parameters keep their values.
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
  lapply(list(near, far), function(theta) {
    ifelse(wide$free, pmin(pmax(theta, wide$lower), wide$upper), wide$given)
  })
}

# Returns the means of conditional_scores(), where the rows of the pool `some` take the place of neighbours; Inf if
# they cannot be computed.
scores_given <- function(problem, theta, some, rows) {
  pool <- problem$pool
  now <- problem$at(theta)
  exact <- tryCatch(native_exact(some, now, problem$run), pfdtc_error_numerical = function(e) NULL)
  if (is.null(exact)) return(Inf)
  at <- native_exact_predict(exact, some$x, now$kernel, pool$x[rows, , drop = FALSE])
  noise <- now$noise / if (is.null(pool$weights)) 1 else pool$weights[rows]
  means_of_groups(-stats::dnorm(pool$y[rows], at$mean, sqrt(pmax(at$variance, 0) + noise), log = TRUE))
}
