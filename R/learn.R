# Learns hyperparameters by the Vecchia likelihood (Vecchia 1988). Rows are in a random order, S(i) are the nearest rows
# before row i, and I are some or all rows:
#
#   log p(y) = sum_i log p(y_i | earlier rows)  ~  (n / |I|) sum over rows I of log p(y_i | y_S(i)).
#
# Each term is a conditional density. Its derivative has mean 0 at the true hyperparameters for any S(i) and I, so
# neighbours found at other hyperparameters cost efficiency, not consistency. Early rows have distant neighbours and
# late rows close ones, so all lengthscales are covered. If I has a fixed size, only the search of neighbours takes
# longer with more rows.

# Learns hyperparameters and chooses the kernel. Returns a list with the learned kernel and noise; `learned`, the table
# of starts of the first search; `kernels`, the table of kernels tried; `smoother`, a smoother model that is almost as
# good; `exact`, a check by the exact likelihood; and `pilot` = NULL, which other ways of learning set. For interrupts,
# state$so_far keeps the best result. If find_response() has run, state$begun has its first search.
learn_evidence <- function(data, s, state) {
  begun <- state$begun
  state$begun <- NULL
  pool <- if (is.null(begun$problem)) learning_rows(data, s) else begun$problem$pool
  if (!is.null(pool$copies)) {
    tell_classed("copies", sprintf("%d of %d rows are copies of other rows. Hyperparameters are learned without them.",
                                   pool$copies, data$n))
  }
  counted <- learning_sizes$whole[["rows"]]
  if (counted < pool$n) state$rows[c("learn", "among")] <- c(counted, pool$n)
  on.exit(count_evaluations(state, "learn", list(evaluations = pool$count$evaluations)))
  tell <- stage_line("hyperparameters", s$steps$progress, after = 1)
  keep <- function(model) state$so_far$at <- model[c("problem", "theta")]

  if (is.null(begun$problem)) {
    tell("starts")
    problem <- learning_problem(pool, s, "matern32")
    begun <- if (is.null(begun)) search_starts(problem, s$restarts, state) else c(list(problem = problem), begun)
  }
  rival <- begun$rival
  now <- list(label = "", problem = begun$problem, theta = begun$theta, kernels = NULL)
  keep(now)
  smoother <- NULL
  if (is_open(s$kernel) && in_time(pool)) {
    choice <- choose(candidates(pool, s, now$theta, tell), judge_by_rows)
    now <- c(choice$best[c("label", "problem", "theta")], list(kernels = choice$table))
    smoother <- smoother_kernel(choice$tried, best_of(choice$tried))
    if (length(now$theta) > length(begun$theta)) rival <- NULL # a kernel with two lengthscales contains both optima
    keep(now)
    state$so_far["kernels"] <- list(now$kernels)
  }
  tell("final search")
  if (in_time(pool)) {
    end <- learn_finally(now, s, rival, begun$terms, state, keep)
    if (end$model$problem$profile != now$problem$profile) smoother <- NULL
    now <- end$model
    attr(begun$report, "by") <- estimated_by(now)
    last <- now$problem$last
    rival <- end$rival[[1L]]
    if (isTRUE(rival$behind <= 2) && length(find_rival(now$problem, list(now[c("theta", "value")], rival)))) {
      attr(begun$report, "rival") <- list(noise = exp(c(now$theta[[last]], rival$theta[[last]])), behind = rival$behind)
    }
    if (now$problem$little_noise) attr(begun$report, "little_noise") <- TRUE
  }
  if (!in_time(pool)) attr(begun$report, "ended") <- TRUE
  c(now$problem$natural(now$theta),
    list(pilot = NULL, learned = begun$report, kernels = now$kernels, smoother = smoother, exact = now$exact))
}

# Returns the name of the function that the last search maximised, such as "log marginal likelihood".
estimated_by <- function(model) {
  pool <- model$problem$pool
  rows <- attr(model$kernels, "gained")$rows %||% # rows from which a kernel of several terms was chosen
    if (isTRUE(model$exact[["gain"]] > 0)) model$exact[["rows"]] else
      if (model$problem$profile == "mean") min(pool$n, learning_sizes$whole[["rows"]])
  paste0(if (pool$few) "log marginal likelihood" else if (is.null(rows)) "Vecchia log likelihood" else
    sprintf("log marginal likelihood of %d rows", as.integer(rows)), model$problem$plus_prior)
}

# Improves the chosen model by the Vecchia likelihood on more rows, or by the exact likelihood if rows are few. If the
# user gave no kernel, tries a seasonal term, a linear mean and an additive kernel. `terms` is an additive kernel
# learned from fewer rows, or NULL. Calls keep(model) with each improved model. Returns list(model, rival).
learn_finally <- function(now, s, rival, terms, state, keep) {
  problem <- now$problem
  exact <- problem$pool$few
  few <- problem$pool$n <= exact_enough[["last"]] # then the Vecchia likelihood takes no steps
  run <- climb(problem, now$theta, "whole", if (!exact) c(5L, 3L) else if (few) 0L else c(8L, 6L, 6L))
  now[c("theta", "value")] <- run[c("theta", "value")]
  keep(now)
  if (exact) {
    starts <- c(list(run), rival, smooth_runs(problem, s, run$theta))
    ends <- best_first(lapply(starts, learn_exactly, problem = problem))
    now[c("theta", "value")] <- ends[[1L]][c("theta", "value")]
    rival <- find_rival(problem, ends)
  } else if (has_little_noise(problem, now$theta)) {
    now[c("theta", "exact")] <- choose_exactly(now, run)
  }
  if (!is.null(now$kernels) && is_bare(open_leaf(s$kernel))) { # the kernel was chosen, and has no given values
    alone <- is_bare(s$kernel) # FALSE with a mean or groups
    if (exact && alone) {
      shared <- choose_shared(now, s)
      now <- shared$now
      s <- shared$s
      one <- isTRUE(shared$gain > 0)
      if (one) terms <- NULL # `terms` have a lengthscale for each level
      if (!is.null(shared$gain)) state$because["factors"] <- sprintf(
        "Factors have %s: this raises the leave-one-out log density by %.2g per row.",
        if (one) "one lengthscale each" else "a lengthscale for each level (one for two levels)", abs(shared$gain))
    }
    now$parameters <- sum(now$problem$free)
    now <- choose_season(now, s)
    if (!is_season(now$problem$profile)) {
      line <- if (exact && alone && problem$pool$n >= line_rule[["least"]] && length(identifying_columns(problem$pool)))
        search_beside_line(now$problem, now$theta, s)
      short <- isTRUE(line$short)
      if (short) now <- choose_line(now, s, run, line)
      if (alone && s$additive) now <- if (exact) choose_additive(now, s, terms) else choose_additive_on_some(now, s)
      # An additive kernel almost contains a linear mean, so no linear mean is tried beside it.
      if (alone && !short && !is_additive(now$problem$natural(now$theta)$kernel)) now <- choose_line(now, s, run, line)
    }
    if (now$problem$profile != problem$profile) rival <- NULL
    keep(now)
    state$so_far["kernels"] <- list(now$kernels)
  }
  now <- compare_little_noise(now, s)
  if (exact && problem$pool$n <= exact_enough[["last"]] && in_time(problem$pool)) {
    # Continue to the optimum, so that estimates do not depend on the seed.
    end <- learn_exactly(now$problem, climb(now$problem, now$theta, "whole", 0L), enough = exact_enough[["sure"]])
    if (is.finite(end$value)) now[c("theta", "value")] <- end[c("theta", "value")]
  }
  list(model = now, rival = if (!now$problem$little_noise) rival)
}

# Returns `model` or, if may_lack_noise(), a model with less noise: that of explain_noise(), or one learned with a prior
# for little noise if its log likelihood without priors is larger by little_noise_rule["nats"].
compare_little_noise <- function(model, s) {
  if (!may_lack_noise(model$problem, model$theta, s)) return(model)
  model <- explain_noise(model, s)
  best <- little_noise_model(model, s, model$problem$profile)
  likelihood <- function(one) exact_density(best$problem)$evaluate(one$theta)$likelihood
  if (isTRUE(likelihood(best) - likelihood(model) > little_noise_rule[["nats"]])) best else model
}

# Returns `model`, or a model whose noise is fixed at a small share of the response's variance. That model must have a
# much larger leave-one-out log density, and a log likelihood at most one nat smaller. The likelihood alone cannot
# decide: for few rows of a simulator, noise and an f with short lengthscales explain the data equally well.
explain_noise <- function(model, s) {
  if (!may_lack_noise(model$problem, model$theta, s)) return(model)
  last <- model$problem$last
  held <- min(model$theta[[last]], model$problem$unit[[last]] + log(little_noise_rule[["held"]]))
  profiles <- unique(c(model$problem$profile, if (is_open(s$kernel)) c("matern52", "se")))
  ends <- lapply(profiles, function(profile) little_noise_model(model, s, profile, held))
  at <- lapply(c(list(model), ends), function(one) exact_density(one$problem)$evaluate(one$theta))
  gain <- vapply(at, function(end) end$likelihood %||% -Inf, 0) - at[[1L]]$likelihood
  best <- 1L + which.max(gain[-1L])
  taken <- isTRUE(gain[best] > -little_noise_rule[["behind"]] &&
                    mean(at[[best]]$loo - at[[1L]]$loo) > little_noise_rule[["left_out"]])
  if (taken) ends[[best - 1L]] else model
}

# Returns the model of kernel `profile` learned with a prior for little noise, or with the log noise fixed at `held`.
little_noise_model <- function(model, s, profile, held = NULL) {
  problem <- learning_problem(model$problem$pool, s, profile, little_noise = TRUE)
  last <- problem$last
  if (!is.null(held)) problem$lower[last] <- problem$upper[last] <- held
  starts <- c(if (profile == model$problem$profile) list(model$theta),
              further_starts(problem, list(c(1, 2, 1e-5), c(2, 20, 1e-5)), model$theta))
  if (profile != model$problem$profile && !is.null(model$kernels)) {
    model$kernels$chosen <- model$kernels$kernel == profile_label(profile)
  }
  moved_to(model, best_from(problem, starts, "whole"))
}

# Returns TRUE if the noise may be above 0 only because of its prior. Rows are then few, the learned noise is small, and
# neither rounding nor different responses at equal inputs show noise. Returns FALSE for at most 15 rows or three rows
# for each parameter, because lengthscales can then explain any data without noise.
may_lack_noise <- function(problem, theta, s) {
  pool <- problem$pool
  last <- problem$last
  noisy <- pool$shift$ss > 0 || pool$floor > little_noise_rule[["rounded"]] * pool$variance ||
    theta[[last]] - problem$unit[[last]] >= log(little_noise_rule[["noise"]])
  if (noisy || !s$priors || !pool$few || !problem$free[last] || problem$composite ||
        pool$n <= max(15, 3 * sum(problem$free))) return(FALSE)
  shared <- as_sum(s$kernel)$leaves[[1L]]$shared
  prior_share(pool$n, if (is.null(shared)) ncol(pool$x) else max(shared)) > 0.1
}

because_of_noise <- c(noise = paste("The fit has little noise, as for a deterministic simulator: this raises the log",
                                   "marginal likelihood without priors, or the leave-one-out log density."))

# Returns `now`, or a model with an additive kernel if log (marginal likelihood times prior) gains additive_nats, and
# with terms for pairs of inputs if they gain pair_nats more. An additive kernel has the kernel of all inputs plus terms
# of single inputs. `first` is NULL, or an additive kernel learned from fewer rows, with its `gain`.
choose_additive <- function(now, s, first = NULL) {
  if (isTRUE(first$gain < additive_rows[["nats"]]) || !may_be_additive(s$kernel)) return(now)
  if (!now$problem$profile %in% c(by_roughness, two_scales) || !is.finite(now$value)) return(now)
  additive <- function(tried) learn_additive("additive", now, s, now$value + additive_nats, first)
  pairwise <- function(tried) {
    one <- tried$additive
    wanted <- isTRUE(one$score < tried$now$score) && may_be_additive(s$kernel, "pairs")
    if (wanted) learn_additive("pairwise", one, s, one$value + pair_nats)
  }
  choice <- choose(list(now = function(tried) now, additive = additive, pairwise = pairwise), judge_by_price)
  take_choice(now, choice, now$problem$pool$n)
}

# With too many rows for the exact likelihood, compares `now` with an additive kernel learned from some rows. The
# additive kernel wins if it predicts held-out rows from these rows with a log density that is larger by over a standard
# error. `now` predicts from the same rows and from nearest neighbours among all rows; its better prediction counts.
choose_additive_on_some <- function(now, s) {
  pool <- now$problem$pool
  if (!may_be_additive(s$kernel) || !in_time(pool)) return(now)
  few <- on_rows(now, s, additive_rows[["some"]])
  enough <- few$value + additive_rows[["nats"]]
  first <- learn_additive("additive", few, s, enough)
  if (!isTRUE(first$value > enough)) return(now)
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

# Returns TRUE if the kernel has at least two inputs, and few enough for terms of single inputs ("single") or "pairs".
may_be_additive <- function(kernel, terms = "single") {
  inputs <- length(additive_inputs(as_sum(kernel)$leaves[[1L]]))
  inputs >= 2L && inputs <= searched_inputs[[terms]]
}

# Returns the model with an additive kernel of this `kind`, "additive" or "pairwise". Searches may end if they cannot
# reach the value `least`. `first` is an additive model of some rows; with many rows it is learned if NULL. If it then
# gains less than additive_rows["nats"] over `from`, returns NULL. If n is small, Vecchia searches are short.
learn_additive <- function(kind, from, s, least = -Inf, first = NULL, n = from$problem$pool$n) {
  pool <- from$problem$pool
  search <- function(pool, first, least) {
    wide <- learning_problem(pool, s, paste0(kind, ":", sub(".*[:+]", "", from$problem$profile)))
    best_from(wide, list(if (is.null(first)) additive_start(from, wide) else first$theta), least = least,
              enough = if (n <= exact_enough[["last"]]) exact_enough[["additive"]] else 0.1)
  }
  if (!is.null(first) || pool$n <= additive_rows[["all"]]) return(search(pool, first, least))
  some <- some_of_pool(pool, additive_rows[["some"]])
  enough <- additive_rows[["nats"]] +
    exact_density(learning_problem(some, s, from$problem$profile))$evaluate(from$theta)$value
  first <- search(some, NULL, enough)
  if (isTRUE(first$value > enough)) search(pool, first, least)
}

# Returns the start for `wide`, the problem of an additive kernel: parameters of the model `from`, whose kernel of all
# inputs keeps 0.3 of its variance. The user's values are kept. A second start, with long lengthscales and most of the
# variance in terms of single inputs, was never more than 1.2 nats better (bench/structure.R).
additive_start <- function(from, wide) {
  old <- from$problem$table
  table <- wide$table
  last <- wide$last
  unit <- wide$unit
  at <- function(what) which(table$what == what)
  theta <- unit + log(c(table$start, 0.05))
  theta[at("lengthscale")] <- from$theta[which(old$what == "lengthscale" & old$leaf == 1L)]
  theta[last] <- from$theta[from$problem$last]
  if (any(old$what == "additive.share")) {
    same <- c("additive.share", "additive.ratio", "variance")
    theta[match(same, table$what)] <- from$theta[match(same, old$what)]
    theta[at("additive.pairs")] <- theta[at("additive.share")] + log(0.2)
  } else {
    whole <- sum(exp(from$theta[which(old$what == "variance")] - unit[at("variance")])) * 0.3
    theta[at("variance")] <- unit[at("variance")] + log(whole + 0.7)
    theta[at("additive.share")] <- log(0.7 / whole)
    theta[at("additive.ratio")] <- mean((theta - unit)[at("lengthscale")])
  }
  ifelse(wide$free, within_bounds(wide, theta), wide$given)
}

# Returns minus log densities of `rows` given the rows `some`, as means over 20 groups of rows, or Inf after a failure.
scores_given <- function(problem, theta, some, rows) {
  pool <- problem$pool
  now <- problem$at(theta)
  exact <- null_if_failed(native_exact(some, now, problem$run))
  if (is.null(exact)) return(Inf)
  at <- native_exact_predict(exact, some$x, now$kernel, pool$x[rows, , drop = FALSE])
  noise <- now$noise / merged_weights(pool)[rows]
  means_of_groups(-stats::dnorm(pool$y[rows], at$mean, sqrt(pmax(at$variance, 0) + noise), log = TRUE))
}

# ---- rotated or warped inputs, for responses that are classes -------------------------------------------------------

# Returns TRUE if the response of each row is one of several classes without an order.
one_class_a_row <- function(rows, s) {
  response <- response_of(s)
  response$kind == "labels" || response$kind == "classes" && all((rows$sites$size %||% 1) == 1)
}

# Returns a rotation list(inputs, by) to z = x B that is uncorrelated within classes: z_1 = x_1, and z_j is x_j minus
# its regression on x_1, ..., x_{j-1}, in the unit of x_j. Columns of 0 and 1 are not rotated. Returns NULL for
# responses without classes, kernels of several factors or with shared lengthscales, fewer than two inputs to rotate,
# fewer than rotation_rule["rows"] rows an input, or linearly dependent inputs.
rotation_by_classes <- function(rows, s) {
  x <- rows$x
  leaves <- as_sum(s$kernel)$leaves
  inputs <- which(!are_coded(x))
  if (!one_class_a_row(rows, s) || length(leaves) > 1L || !is.null(leaves[[1L]]$shared) || length(inputs) < 2L ||
        nrow(x) < rotation_rule[["rows"]] * ncol(x)) return(NULL)
  apart <- apply(x[, inputs, drop = FALSE], 2L, function(v) v - stats::ave(v, rows$sites$y))
  unit <- sqrt(colMeans(apart^2))
  R <- tryCatch(chol(crossprod(t(t(apart) / unit)) / nrow(x)), error = function(e) NULL) # factor of correlations
  if (is.null(R) || min(diag(R)) < 1e-4) return(NULL)
  list(inputs = inputs, by = backsolve(R, diag(diag(R))) * outer(1 / unit, unit))
}

# Returns how many nats a kernel of rotated inputs must gain over a kernel without rotation; 0 for other kernels.
price_of_rotation <- function(kernel) {
  d <- length(rotation_of(kernel)$inputs)
  if (d) max(rotation_rule[["least"]], rotation_rule[["pair"]] * d * (d - 1) / 2) else 0
}

# Moves the inputs of the kernel of `now` halfway, then fully, to their normal scores. Returns the model of moved inputs
# with the largest log marginal likelihood, or NULL if `now` has a larger one. search() learns each model, also with a
# linear mean (element `line`). Normal scores do not depend on responses, so they are not counted as parameters.
choose_inputs <- function(rows, s, now, search) {
  inputs <- inputs_to_warp(rows, s)
  likeliest <- function(one) min(one$value, one$line$value)
  best <- now
  for (share in if (length(inputs)) warp_shares) {
    moved <- search(now, TRUE, with_moved_inputs(now$kernel, warp_to_scores(rows$x, inputs, share), rows$x))
    moved$line <- search(moved, TRUE, kernel_beside_line(moved$kernel, rows, s))
    if (likeliest(moved) >= likeliest(best)) break # moving inputs further would hardly ever help
    best <- moved
  }
  if (!is.null(warp_of(best$kernel))) best
}

# Returns the start of a search: the kernel with a tenth of its variance, plus a linear mean of large variance.
kernel_beside_line <- function(kernel, rows, s) {
  leaf <- mean_leaf(rotated(kernel, rows$x), seq_len(ncol(rows$x)), NULL)
  leaf[c("of", "rotation", "warp")] <- list(character(), rotation_of(kernel), warp_of(kernel))
  kernel <- with_columns(combine_kernels(replace(kernel, "of", list(character())), leaf), rows$x)
  units <- parameter_units(kernel, rows$x, laplace_priors$variance * s$likelihood$unit^2)
  value <- kernel_values(kernel)
  variances <- which(units$what == "variance")
  value[variances] <- c(0.1 * value[variances[1L]], 30 * units$unit[variances[2L]])
  set_values(kernel, value)
}

# Returns the columns with over two values, which may be warped. Returns none if responses are not classes, plain =
# TRUE, the user gave a kernel or parameter values, rows exceed `warp_rows`, or there are groups or points on a sphere.
inputs_to_warp <- function(rows, s) {
  x <- rows$x
  leaves <- as_sum(s$kernel)$leaves
  coded <- are_coded(x)
  alone <- length(leaves) == 1L && all(!duplicated(leaves[[1L]]$shared) | coded[leaves[[1L]]$inputs])
  open <- is_open(s$kernel) && is.null(s$kernel$lengthscale) && is.null(s$kernel$variance)
  if (!open || !s$additive || !one_class_a_row(rows, s) || !alone || nrow(x) > warp_rows) return(integer())
  which(!coded & vapply(seq_len(ncol(x)), function(j) length(unique(x[, j])) > 2L, NA))
}

# Returns the warp (a piecewise linear map) of `inputs` to (1 - share) x + share (m + s q(x)). m and s are mean and sd
# of the input, and q(x) is its normal score, the normal quantile of (rank - 1/2) / n. The knots are quantiles of x.
warp_to_scores <- function(x, inputs, share) {
  each <- lapply(inputs, function(j) {
    v <- x[, j]
    scores <- mean(v) + stats::sd(v) * stats::qnorm((rank(v) - 0.5) / length(v))
    at <- unique(stats::quantile(v, seq(0, 1, length.out = score_knots), names = FALSE, type = 1))
    to <- (1 - share) * at + share * scores[match(at, v)]
    last <- length(at)
    more <- seq_len(warp_knots - last) # if x has few values, further knots continue the last piece
    list(at = c(at, at[last] + more * (at[last] - at[last - 1L])),
         to = c(to, to[last] + more * (to[last] - to[last - 1L])))
  })
  list(inputs = inputs, at = do.call(cbind, lapply(each, `[[`, "at")), to = do.call(cbind, lapply(each, `[[`, "to")),
       share = share)
}

# Returns the kernel with the rotation or warp `move` of its inputs. It keeps the ratio of each lengthscale to the
# spread of its input; an isotropic kernel keeps the mean ratio.
with_moved_inputs <- function(kernel, move, x) {
  turned <- !is.null(move$by)
  word <- if (turned) "rotated" else paste0(if (move$share < 1) "half ", "warped inputs")
  change_leaves(kernel, function(leaf) {
    leaf[[if (turned) "rotation" else "warp"]] <- move
    times <- spreads_of(rotated(leaf, x)) / spreads_of(x)
    own <- if (isTRUE(leaf$isotropic)) mean(times[leaf$inputs]) else
      if (is.null(leaf$shared)) times[leaf$inputs] else times[leaf$inputs][!duplicated(leaf$shared)]
    leaf$lengthscale <- leaf$lengthscale * own
    leaf$label <- sprintf("%s (%s)", leaf$label, word)
    leaf
  })
}
