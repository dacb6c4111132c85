# Learns with a non-Gaussian likelihood: hyperparameters, constant mean and shape parameters maximise log (Laplace
# marginal likelihood times prior). With approx = "vi", a last search maximises the variational bound. Each round of
# L-BFGS begins with new inducing points. choose_smooth() compares kernels on few rows. With up to dense_rows rows,
# choose_terms() tries more kernels.

# Returns list(model, center, theta, learned, kernels, trace, ...). With many classes, learns from the rows of the
# largest classes; constant means of the other classes keep their start values. All classes share one kernel.
learn_laplace_stage <- function(data, s, state) {
  start <- laplace_start(data, s)
  center <- start$center
  levels <- s$likelihood$levels
  kept <- if (response_of(s)$kind == "labels" && length(levels) > class_points[["learn"]]) {
    sort(order(tabulate(data$sites$y, length(levels)), decreasing = TRUE)[seq_len(class_points[["learn"]])])
  }
  found <- run_stage(state, "learn", if (is.null(kept)) {
    learn_laplace(data, s, start, state)
  } else {
    if (length(s$free) || isTRUE(s$center)) {
      tell_classed("classes", sprintf("Hyperparameters are learned on the %d classes with most rows, of %d classes.",
                                      length(kept), length(levels)))
    }
    own <- which(data$sites$y %in% kept)
    sites <- take_rows_of(data$sites, own)
    sites$y <- match(sites$y, kept)
    few <- s
    few$likelihood$levels <- levels[kept]
    found <- learn_laplace(list(x = data$x[own, , drop = FALSE], sites = sites), few,
                           replace(start, "center", list(center[kept])), state)
    center[kept] <- found$center + mean(center[kept]) - mean(found$center)
    replace(found, "center", list(center))
  }, otherwise = state$so_far) %||% start
  if (length(found$center) < length(center)) found$center <- start$center # interrupted while learning from some classes
  found$model <- new_model(found$kernel, 1)
  kernel <- compile_kernel(found$kernel)
  scales <- count_learned(kernel, s, data$frame) -
    sum(are_learned(kernel, s)[c(kernel$table$what != "lengthscale", TRUE)])
  tied <- isTRUE(found$tied) && scales > 1L # tied lengthscales are one parameter
  if (tied) state$because["tied"] <- "Lengthscales: one learned number times the sd of each kernel input."
  found$more_df <- c(isTRUE(s$center) * functions_of_f(s$likelihood), s$likelihood$learned * length(found$theta),
                     if (tied) 1L - scales)
  found
}

laplace_start <- function(data, s) {
  response <- response_of(s)
  kernel <- if (is_open(s$kernel)) with_profile(s$kernel, "matern52", data$x) else s$kernel
  list(kernel = name_lengthscales(with_typical_values(kernel, data$x, s), data$x),
       center = if (isTRUE(s$center)) center_start(s$likelihood, data$sites) else
         rep_len(as.double(s$center), max(1L, if (response$kind == "labels") length(response$levels))),
       theta = if (response$learned) response$middle * response$unit else s$likelihood$theta, trace = NULL,
       convergence = 0L, message = "nothing to optimise", value = NA_real_)
}

learn_laplace <- function(data, s, start, state) {
  if (!length(s$free) && !isTRUE(s$center) && !s$likelihood$learned) return(start)
  asked <- s
  s <- replace(s, "likelihood", list(replace(s$likelihood, "approx", "laplace")))
  rows <- laplace_rows(data, s, laplace_sizes$rows, laplace_sizes$points)
  given <- !is_open(s$kernel) && !has_one_factor(s$kernel) || !is.null(s$kernel$lengthscale) ||
    !is.null(s$kernel$variance)
  # Searches from the parameters of `model`. If `kernel` is given, it replaces the kernel of `model`.
  search <- function(model, tied = FALSE, kernel = NULL, on = rows, by = s) {
    model$line <- NULL
    if (!is.null(kernel)) model[c("kernel", "value")] <- list(as_kernel(kernel), Inf)
    end <- search_laplace(on, by, model, start, state, tied)
    if (is.null(state$so_far) || isTRUE(end$value < state$so_far$value)) state$so_far <- end
    end
  }
  found <- choose_smooth(rows, s, start, given, search)
  # found$best was learned from fewer rows, so search again from it.
  best <- tied <- search(found$best, tied = !given, found$best$kernel)
  state$so_far <- best
  if (!given && length(s$free) && sum(kernel_parameters(best$kernel)$what == "lengthscale") > 1L) {
    best <- c(apart_if_likelier(best, search), list(best))[[1L]]
  }
  best$kernels <- found$table
  if (is.null(s$kernel$profile) && nrow(data$x) <= dense_rows && is.null(state$stopped)) {
    state$so_far <- best
    best <- choose_terms(rows, s, c(list(tied), if (!best$tied) list(best)), found$table, start, state, search)
  }
  if (response_of(asked)$approx == "vi") {
    state$so_far <- best
    best <- search(best, by = asked)
  }
  best$steps <- NULL
  reasons <- state$left_out # why searches could not start
  if (!length(reasons)) return(best)
  text <- paste0("Searches for hyperparameters could not begin: ", paste(unique(reasons), collapse = "; "), ".")
  if (is.finite(min(best$value, found$best$value)))
    tell_classed("search", paste(text, "The fit uses the best result of the other searches.")) else
    warn_convergence(paste(text, "Nothing was learned: parameters keep the values at which the search began."))
  best
}

# Chooses among learned models by `scores`: minus log (marginal likelihood times prior), plus penalties for parameters.
choose_learned <- function(found, scores) {
  candidates <- Map(function(one, score) {
    model <- c(one, list(parameters = nrow(kernel_parameters(one$kernel)), penalised = score))
    model$label <- one$label %||% sum_label(one$kernel)
    function(tried) model
  }, found, scores)
  names(candidates) <- seq_along(found)
  choice <- choose(candidates, function(model) list(score = model$penalised))
  choice$best <- choice$best[setdiff(names(choice$best), c("label", "parameters", "penalised", "score", "line"))]
  choice
}

# Returns list(model) with the model of a search with separate lengthscales, or list() if it gains at most
# laplace_sizes$apart nats over `model` with tied lengthscales.
apart_if_likelier <- function(model, search) {
  apart <- search(model)
  if (isTRUE(apart$value < model$value - laplace_sizes$apart)) list(apart) else list()
}

lowest <- function(found) found[[which.min(vapply(found, `[[`, 0, "value"))]]

# Chooses among smooth kernels by a sample of the rows, unless the user gave a kernel. Searches with the first kernel
# start at short and at typical lengthscales, and searches with other kernels at the optima of the first.
choose_smooth <- function(rows, s, start, given, search) {
  few <- laplace_rows(rows, s, laplace_sizes$few_rows, laplace_sizes$few_points)
  open <- is_open(s$kernel)
  of_profile <- vapply(as_sum(s$kernel)$leaves, function(l) is.null(l$profile), NA)
  ends <- NULL
  found <- lapply(if (open) c("matern52", "se", "matern32") else s$kernel$profile, function(profile) {
    with_own <- function(kernel) {
      kernel <- as_sum(kernel)
      if (open) {
        kernel$leaves[of_profile] <- lapply(kernel$leaves[of_profile], replace, c("profile", "label"),
                                            kernel_of(profile)[c("profile", "label")])
        if (!is.null(kernel$profile)) kernel$label <- formula_of_kernel(kernel)
      }
      kernel
    }
    starts <- ends %||% starts_of_scales(start, if (given || !length(s$free)) 1 else c(0.3, 1))
    run <- lapply(starts, function(one) search(one, !given, with_own(one$kernel), few))
    if (is.null(ends)) ends <<- distinct_ends(run)
    lowest(run)
  })
  choice <- choose_learned(found, vapply(found, `[[`, 0, "value"))
  choice$table$score <- choice$table$score / nrow(few$x)
  if (length(found) < 2L || !all(is.finite(choice$table$score))) choice["table"] <- list(NULL)
  choice
}

starts_of_scales <- function(model, scales) {
  lapply(scales, function(scale) {
    replace(model, "kernel", list(change_leaves(model$kernel, function(leaf) {
      if (!is.null(leaf$lengthscale)) leaf$lengthscale <- scale * leaf$lengthscale
      leaf
    })))
  })
}

# Returns the results of searches, best first, without those whose log parameters are within 0.1 of a better result's.
distinct_ends <- function(found) {
  found <- found[order(vapply(found, `[[`, 0, "value"))]
  at <- lapply(found, function(one) log(kernel_values(one$kernel)))
  repeated <- function(i) any(vapply(at[seq_len(i - 1L)], function(lower) max(abs(lower - at[[i]])) < 0.1, NA))
  found[!vapply(seq_along(found), repeated, NA)]
}

# Returns TRUE if many inputs may have the same unit, as in spectra. Then one lengthscale in this unit is tried, so that
# inputs that hardly vary have little effect. Columns of 0 and 1 share no unit with numbers (bench/classes-unit.R).
# Returns FALSE if all inputs have the same spread, because one lengthscale was tried already.
may_share_unit <- function(x) {
  coded <- are_coded(x)
  ncol(x) >= laplace_sizes$inputs && all(coded == coded[1L]) && diff(range(log(spreads_of(x)))) > laplace_sizes$alike
}

# Returns the best kernel: one of `smooth`, or with a linear mean, of warped or rotated inputs, with one lengthscale for
# all inputs, additive, or seasonal. With few rows, a kernel with more parameters has a larger maximum by chance. If
# there are priors, occam_penalty() then averages the likelihoods over parameters.
choose_terms <- function(rows, s, smooth, kernels, start, state, search) {
  now <- smooth[[1L]]
  if (!is.finite(now$value)) return(replace(now, "kernels", list(kernels)))
  few <- nrow(rows$x) <= laplace_sizes$few_rows
  with_line <- function(now) { # a linear mean helps if classes differ in small differences between correlated inputs
    line <- now$line %||% search(now, TRUE, kernel_beside_line(now$kernel, rows, s))
    c(list(line), if (isTRUE(line$value < now$value)) apart_if_likelier(line, search))
  }
  line <- with_line(now)
  found <- c(smooth, line)
  moved <- choose_inputs(rows, s, c(now, line = line[1L]), search)
  if (!is.null(moved)) found <- c(found, list(moved), apart_if_likelier(moved, search), with_line(moved))
  # After warping with two classes, rotation is not tried: even if likelier, it predicts worse (bench/warped-inputs.R).
  rotation <- if (s$additive && (is.null(moved) || response_of(s)$kind == "labels")) rotation_by_classes(rows, s)
  if (!is.null(rotation)) {
    turned <- search(now, TRUE, with_moved_inputs(now$kernel, rotation, rows$x))
    if (turned$value < now$value) found <- c(found, list(turned, search(turned)), with_line(turned))
  }
  if (few && may_share_unit(rows$x)) {
    label <- sprintf("%s (isotropic)", kernel_of(now$kernel$profile)$label)
    kernel <- place_kernel(new_kernel(now$kernel$profile, label, NULL, NULL, NULL, isotropic = TRUE), rows$x)
    starts <- starts_of_scales(replace(start, "kernel", list(with_typical_values(kernel, rows$x, s))), c(0.3, 1))
    one <- lowest(lapply(starts, function(from) search(from, FALSE, from$kernel)))
    found <- c(found, list(one), with_line(one))
  }
  if (nrow(rows$x) >= additive_rows[["classes"]] && s$additive && functions_of_f(s$likelihood) == 1L) {
    tied <- lowest(smooth)
    kernel <- with_profile(s$kernel, paste0("additive:", tied$kernel$profile), rows$x)
    if (length(additive_inputs(kernel)) > 1L) {
      kernel <- replace(kernel, "lengthscale", list(tied$kernel$lengthscale))
      found <- c(found, list(search(start, tied$tied, with_typical_values(kernel, rows$x, s))))
    }
  }
  if (few && s$additive) {
    found <- c(found, lapply(season_profiles(s$kernel, "matern32"), function(profile) {
      kernel <- with_profile(s$kernel, profile, rows$x)
      kernel <- with_typical_values(kernel, rows$x, s, function(units) exp(units$middle)) # centres of the priors
      c(search(now, FALSE, kernel), list(profile = profile, label = profile_label(profile, s$kernel$periods)))
    }))
  }
  state$so_far <- lowest(found)
  averaged <- few && s$priors && is.null(state$stopped)
  price <- function(model) {
    profile_price(model$profile %||% "") + price_of_rotation(model$kernel) +
      if (!averaged && is_additive(model$kernel)) additive_nats else 0
  }
  scores <- vapply(found, function(model) model$value + price(model), 0)
  least <- Inf
  for (i in if (averaged) order(scores)) if (scores[i] <= least) { # a penalty can only increase a score
    scores[i] <- scores[i] + occam_penalty(rows, s, found[[i]], start)
    least <- min(least, scores[i])
  }
  choice <- choose_learned(found, scores)
  kernels <- join_choices(kernels, choice, nrow(rows$x))
  best <- choice$best
  if (!is.null(best$profile)) kernels <- with_gain(kernels, best$profile, choice$tried[[1L]]$value - best$value)
  replace(best, "kernels", list(kernels))
}

# Returns the penalty for parameters: log sqrt(curvature / prior curvature), summed over directions in which the ratio
# exceeds 1 (Inf if unknown). If all ratios exceed 1, the maximal log density minus the penalty is Laplace's
# approximation of the log integral.
occam_penalty <- function(rows, s, found, start) {
  if (!is.finite(found$value)) return(Inf)
  problem <- laplace_problem(rows, greedy_points(rows, s, found$kernel), s, found, start, found$tied)
  curvature <- function(slope, step) differences(slope, problem$start, step, here = slope(problem$start))
  H <- curvature(function(par) problem$evaluate(par)$gradient %||% (NaN * par), 0.01)
  if (!all(is.finite(H))) return(Inf)
  R <- chol(curvature(function(par) -problem$prior(par)$slope, 1)) # the prior's curvature is constant
  told <- backsolve(R, t(backsolve(R, H, transpose = TRUE)), transpose = TRUE)
  sum(log(pmax(eigen(told, TRUE, TRUE)$values, 1))) / 2
}

# Minimises laplace_problem() from `now` in rounds, each with new inducing points. Returns `now` with new parameters and
# the minimum `value` (Inf if none was computed). If the search cannot start, adds the reason to state$left_out.
search_laplace <- function(rows, s, now, origin, state, tied) {
  if (is.na(now$value)) now$value <- Inf
  if (!is.null(state$stopped)) return(now)
  if (!in_time(s$steps) && !is.null(state$so_far)) {
    return(replace(now, c("convergence", "message"), list(2L, "`max_seconds` was reached")))
  }
  now$tied <- tied
  step <- 0.1
  for_parameters <- list(tied, kernel_parameters(now$kernel)[c("what", "leaf", "held")],
                         lengths(now[c("center", "theta")]))
  # L-BFGS steps of an earlier search are used if it had the same parameters.
  pairs <- if (identical(now$steps$for_parameters, for_parameters)) now$steps$pairs else list()
  enough <- function(par, value) { # ends the search if two steps gained little
    little <- last_values[1L] - value < laplace_sizes$gain
    last_values <<- c(last_values[2L], value)
    if (little) list(convergence = 0L, message = "converged")
  }
  for (round in seq_len(if (min(rows$points, s$most) < nrow(rows$x)) laplace_sizes$rounds else 1L)) {
    problem <- laplace_problem(rows, greedy_points(rows, s, now$kernel), s, now, origin, tied)
    last_values <- c(Inf, Inf)
    result <- tryCatch(run_minimise(problem, s$steps, "hyperparameters", state, "learn", min(s$steps$maxit, 60L), 1e-5,
                                    first_step = step, enough = enough, pairs = pairs,
                                    least = laplace_sizes$gain / 2), pfdtc_error_start = function(e) e)
    if (inherits(result, "pfdtc_error_start")) {
      state$left_out <- c(state$left_out, result$reason)
      break
    }
    if (is.na(result$value)) result$value <- now$value
    step <- min(max(result$last_step, 1e-3), 0.1)
    pairs <- result$pairs
    now[c("kernel", "center", "theta")] <- problem$natural(result$par)
    now[c("value", "convergence", "message", "trace")] <- result[c("value", "convergence", "message", "trace")]
    if (!is.null(state$stopped) || max(abs(result$par - problem$start), 0) < 0.05) break
  }
  now$steps <- list(pairs = pairs, for_parameters = for_parameters)
  now
}

# Returns list(x, sites, points): at most `most` random rows, and how many inducing points suit groups and classes.
laplace_rows <- function(data, s, most, points) {
  n <- nrow(data$x)
  most <- min(n, most, s$rows)
  columns <- group_columns(s$kernel)
  rows <- if (length(columns) && n > dense_rows) rows_of_levels(data$x, columns, most, laplace_sizes$levels) else
    if (most < n) sort(sample.int(n, most)) else seq_len(n)
  if (length(columns)) points <- points + count_effects(s$kernel, data$x[rows, , drop = FALSE])
  points <- min(points, max(10L, laplace_sizes$contrasts %/% functions_of_f(s$likelihood)))
  list(x = data$x[rows, , drop = FALSE], sites = take_rows_of(data$sites, rows), points = points)
}

greedy_points <- function(rows, s, kernel) choose_greedy(rows$x, min(rows$points, nrow(rows$x), s$most), kernel)$z

# Returns a problem for minimise(): minus log (Laplace marginal likelihood, or variational bound, times prior), at
# inducing points z. Its parameters are log theta (shape parameters) and differences from `now`: of logs of free kernel
# parameters (one for all lengthscales if `tied`) and of the constant mean (in units of f). `origin` has prior centres.
#
# Without priors, separable classes have no maximum, and classes have little information on lengthscales. Priors are the
# same for any number of rows. The d lengthscales l of a factor have one prior for their common size, one for ratios:
#   mean of log(l / spread) ~ N(log(3 sqrt(d)), 0.7^2),  log(l / spread) - this mean ~ N(0, 0.7^2),
#   log variance ~ N(log 2, 1.5^2),  constant mean ~ N(start, 3^2),  log theta ~ N(log middle, 2^2)
# The likelihood determines `middle`. With Student's t, f and theta are in units of the spread of y.
laplace_problem <- function(rows, z, s, now, origin, tied) {
  response <- response_to_learn(s$likelihood, rows$sites)
  unit <- response$unit
  names <- parameter_names(now$kernel, s$columns)
  known <- c(names[c(kernel_parameters(now$kernel)$held, TRUE)], if (!is_open(s$kernel)) setdiff(names, s$free))
  parameters <- hyper_parameters(now$kernel, unit^2, s$columns, known) # has a noise variance, which is not used
  free <- parameters$free
  prior <- laplace_prior(now$kernel, rows$x, unit, s$priors)
  lengthscale <- c(kernel_parameters(now$kernel)$what, "noise")[free] == "lengthscale"
  basis <- diag(length(free)) # free parameters; tied lengthscales share a column
  if (tied && sum(lengthscale) > 1L) basis <- cbind(as.double(lengthscale), basis[, !lengthscale, drop = FALSE])
  with_center <- isTRUE(s$center)
  with_theta <- response$learned
  lowest <- s$likelihood$least %||% 0
  sizes <- c(ncol(basis), if (with_center) length(now$center) else 0L, if (with_theta) length(now$theta) else 0L)
  part <- rep(1:3, sizes)
  sd <- rep(c(laplace_priors$center, laplace_priors$theta), sizes[-1L])
  logs <- function(par) parameters$start + drop(basis %*% par[part == 1L])
  at_par <- function(par) {
    par <- unname(par)
    list(kernel = parameters$at(logs(par))$kernel, center = now$center + if (with_center) unit * par[part == 2L] else 0,
         theta = if (with_theta) pmax(exp(par[part == 3L]), lowest) else now$theta)
  }
  warm <- least <- NULL
  # With few rows take one thread, because starting another thread takes longer than a pass.
  run <- s$run
  if (nrow(rows$x) * nrow(z) < 2e5) run$threads <- 1L
  log_prior <- function(at, par) { # below the lowest theta, where the likelihood is constant, the prior goes on
    beyond <- log(kernel_values(at$kernel)) - prior$middle
    pull <- drop(prior$precision %*% beyond)
    more <- c(if (with_center) (at$center - origin$center) / unit,
              if (with_theta) par[part == 3L] - log(response$theta_middle)) / sd
    list(value = -(sum(beyond * pull) + sum(more^2)) / 2, slope = -c(crossprod(basis, pull[free]), more / sd))
  }
  evaluate <- function(par) {
    at <- at_par(par)
    too_far <- parameters$too_far(logs(par))
    if (!is.null(too_far)) return(list(value = Inf, reason = too_far))
    if (with_theta && !all(at$theta > 1e-6 * unit & at$theta < 1e8 * unit)) {
      return(list(value = Inf, reason = sprintf("%s is out of range", response$shape[1L])))
    }
    sites <- response$at(at$theta, at$center)
    e <- native_laplace(z, rows$x, sites, at$kernel, 1e-8, warm, want = 2L, control = run,
                        enough = if (is.null(sites$contrasts)) 1e-9 else laplace_sizes$decrement)
    if (e$status != 0L) return(list(value = Inf, reason = status_sentence(e$status)))
    warm <<- e
    pivot <- min(diag(e$C))^2
    if (is.null(least)) least <<- min(laplace_sizes$pivot, 0.9 * pivot)
    if (pivot < least) return(list(value = Inf, reason = "the posterior has almost no curvature at its mode"))
    prior <- log_prior(at, par)
    value <- e$evidence - e$penalty + sum(sites$constant) + prior$value
    slope <- prior$slope + c(crossprod(basis, e$theta[free]), if (with_center) unit * e$constant,
                             if (with_theta) response$slope(at$theta, sites, e) * (at$theta > lowest))
    list(value = -value, gradient = -slope)
  }
  list(start = c(numeric(sizes[1L]), if (with_center) 0 * now$center, if (with_theta) log(now$theta)),
       natural = function(par) replace(at_par(par), "kernel", list(as_kernel(at_par(par)$kernel))),
       prior = function(par) log_prior(at_par(par), par), evaluate = evaluate)
}

laplace_prior <- function(kernel, x, unit, wanted) {
  units <- parameter_units(kernel, x, laplace_priors$variance * unit^2)
  precision <- diag(units$sd^-2, nrow(units))
  for (at in split(seq_len(nrow(units)), ifelse(units$what == "lengthscale", units$leaf, 0L))[-1L]) {
    d <- length(at)
    precision[at, at] <- precision[at, at] + (1 / d^2 - 1 / d) * units$sd[at[1L]]^-2
  }
  list(middle = log(units$unit) + units$middle, precision = if (wanted) precision else 0 * precision)
}
