# Makes the fit in the last stage: computes the posterior from all rows, and collects the elements of the fit object.

# Returns a fit object. `method` is the name of a function that fits, such as "gp_vfe". `parts` has the elements of the
# fit that depend on the kind of posterior, such as `factors` and `evidence`; `about` has the other elements.
new_gp <- function(method, model, parts, about) {
  units <- model_units(model)
  structure(class = c(method, "gp_fit"), home = methods_home, c(
    about["call"], list(method = method, kernel = units$kernel, noise = units$noise), parts,
    list(posterior = posterior_kind(parts), center = model$center, scale = model$scale), about[names(about) != "call"]))
}

# Returns the fit object, from the data, the results of the stages (`done`), the plan `s`, and `parts` as in new_gp().
new_fit <- function(data, done, s, state, parts) {
  trace <- if (is.null(done$trace)) empty_trace else done$trace
  if (length(unique(trace$round)) < 2L) trace$round <- NULL
  trend <- data$noise_trend
  most <- c(trend$largest / (done$model$noise * data$scale^2), Inf)[1L] # more noise than `most` lowers densities
  if (!is.null(trend$smooth)) trend$top <- if (most < trend$range[2L]) most
  new_gp(s$method, done$model, parts, list(
    call = s$call, frame = make_frame(data, s$keep_data), data = if (s$keep_data) data,
    signature = data$signature %||% data_signature(data), nobs = data$n,
    asked = if (s$keep_data) s$again, hyper = s$learn$hyper,
    because = c(state$because, s$because, if (isTRUE(attr(done$learned, "little_noise"))) because_of_noise,
                because_kernel(done$kernels)),
    noise_trend = trend, noise_tail = data$noise_tail, transform = data$transform, response = state$response,
    objective = done$value,
    df = sum(count_learned(done$model$kernel, s$learn, data$frame), data$response_df, done$more_df),
    sd_y = data$sd_y, trace = trace, z_trace = done$z_trace,
    convergence = done$convergence, message = done$message, evaluations = state$evaluations, seconds = state$seconds,
    looked_at = state$rows, pilot = done$pilot, learned = done$learned, kernels = done$kernels,
    control = s$control, maxit = s$posterior$steps$maxit, version = package_version(getNamespaceVersion("pfdtc")[[1L]]),
    terms = if (s$keep_data) data$terms else drop_environment(data$terms), na.action = data$na_action))
}

# Returns a fit with the posterior p, `data`, the elements `...`, and those elements of p$fit that `same` names.
fit_of_posterior <- function(p, data = NULL, call = NULL, ...) {
  same <- c("frame", "signature", "nobs", "df", "sd_y", "noise_trend", "noise_tail", "transform", "control", "version",
            "terms", "na.action")
  exact <- inherits(p, "exact")
  parts <- if (exact) list(x = p$x, m = NULL) else
    list(inducing = p$z, m = nrow(p$z), m_asked = nrow(p$z), inducing_method = "greedy", jitter = p$factors$jitter)
  new_gp(if (exact) "gp_exact" else "gp_dtc", p$model,
         c(parts, list(factors = p$factors, evidence = log_evidence(p)), if (!exact) p["norms"], list(...)),
         c(list(call = call, data = data), p$fit[intersect(same, names(p$fit))], list(
           hyper = "fixed", objective = NA_real_, trace = empty_trace, convergence = 0L,
           message = "nothing to optimise", evaluations = numeric(), seconds = numeric())))
}

# Each fit has this namespace as an attribute, so that reading a saved fit, or sending one to a worker, loads pfdtc.
methods_home <- topenv()

empty_trace <- data.frame(evaluation = integer(), objective = numeric(), seconds = numeric())

# Returns a fit with the exact posterior of all rows or, for gp_subsample(), of a random subset. In a fit by pfdtc(),
# all rows count as inducing points (elements `inducing` and `m`).
construct_exact <- function(data, learned, s, state) {
  some <- isTRUE(s$posterior$some)
  m <- s$posterior$m
  used <- if (!some) data else
    run_stage(state, "start", take_rows(data, sample.int(data$n, m)), take_rows(data, seq_len(m)))
  done <- c(learned, list(convergence = 0L, message = "nothing to optimise", value = NA_real_))
  if (!is.null(s$posterior$joint)) { # hyper = "joint"
    done <- run_stage(state, "objective", {
      parameters <- free_parameters(done$model, s$learn)
      problem <- hyper_problem(data, parameters, function(now, z) native_exact_evidence(data, now, s$learn$run))
      result <- run_minimise(problem, s$learn$steps, "hyperparameters", state, "objective")
      done$model <- model_with(done$model, parameters$natural(result$par))
      done[c("value", "trace", "convergence", "message")] <- result[c("value", "trace", "convergence", "message")]
      done
    }, otherwise = done)
  }
  posterior <- posterior_stage(state, function() exact_factors(used, done$model, s$run))
  factor <- attr(done$learned, "factor")
  if (!is.null(factor)) {
    # learn_stage() multiplied the covariance K1 of n responses by c > 1, so K = c K1 does not maximise log p(y | K):
    #   log p(y | K1) - log p(y | K) = (n log(c) - (c - 1) y' K^{-1} y) / 2.
    quadratic <- sum(used$y * posterior$alpha) + used$shift$ss / done$model$noise
    attr(done$learned, "below") <- (used$n * log(factor) - (factor - 1) * quadratic) / 2
  }
  n <- nrow(data$x)
  p <- new_posterior("exact", done$model, NULL, data, x = data$x, factors = posterior, control = s$run)
  if (!some) data <- with_final_tail(data, p, done$learned, state)
  data$noise_tail <- data$noise_tail %||% attr(done$learned, "spread") # predictions average over the uncertain noise
  new_fit(data, done, s, state, c(list(x = used$x), if (method_traits(s)$chooses) {
    list(inducing = data$x, m = n, m_asked = n, inducing_method = "rows", neighbours = 0L)
  } else {
    list(m = if (some) m, chosen = if (some) used$rows)
  }, list(factors = posterior, evidence = evidence_of("exact", done$model, used, posterior),
          small_n = if (!some && length(s$learn$free)) small_n_check(p))))
}

# Learns again how heavy the tails of the noise are, with the posterior p of the final model, because the misfit of an
# earlier kernel may have hidden them. Returns the data, with the new tails if the leave-one-out log density increases
# by more than the penalty for a parameter (bench/tails.R). Learns nothing if noise is tiny, above first_exact_rows rows
# (to save time), or below few_rows rows, for which learn_stage() widens intervals instead.
with_final_tail <- function(data, p, learned, state) {
  if (!isTRUE(state$tails) || data$n < few_rows || data$n > first_exact_rows ||
        isTRUE(attr(learned, "little_noise"))) return(data)
  units <- response_units(data)
  if (p$model$noise <= 2 * units$floor * units$weight) return(data)
  loo <- posterior_without(p)
  used <- responses_used(p)
  known <- is.finite(loo$mean) & is.finite(loo$var)
  spread <- rep_len(noise_spread(data["noise_trend"], data$x), nrow(data$x))[used$group]
  f <- list(mean = loo$mean, var = pmax(loo$var, 0), noise = p$model$noise / used$w, spread = spread)
  f <- lapply(f, `[`, known)
  y <- used$y[known]
  tail <- likeliest_tail(y, f)
  now <- replace(f, "spread", list(f$spread + sum(data$noise_tail)))
  gain <- tail[["gain"]] - sum(noisy_log_density(y, now) - noisy_log_density(y, f))
  price <- max(parameter_nats, response_rule[["nats"]] * length(y))
  if (!isTRUE(gain > price) || tail[["tail"]] == 0) return(data)
  state$because["tails"] <- sprintf(
    "Heavy-tailed noise: leave-one-out log density %s higher than with normal noise, after a penalty of %s.",
    show_nats(tail[["gain"]] - price), show_nats(price))
  replace(data, "noise_tail", tail[["tail"]])
}

construct_fit <- function(data, done, s, state) {
  if (s$posterior$neighbours > 0L) return(construct_near(data, done, s, state))
  traits <- method_traits(s)
  parts <- c(points_and_start(done, s), list(neighbours = 0L))
  if (!has_own_levels(done$model$kernel) || traits$sor || traits$fitc) {
    factors <- posterior_stage(state, function() {
      native_posterior(done$z, data, done$model, done$jitter, control = s$run, fitc = traits$fitc)
    })
    # Replace the residual prior variance in the plan, which is that before the inducing points moved.
    if (parts$moved && is_finite_number(parts$unexplained)) parts$unexplained <- factors$t / data$n / done$model$noise
    return(new_fit(data, done, s, state, c(parts, list(
      factors = factors, evidence = evidence_of("points", done$model, data, factors, traits),
      jitter = factors$jitter))))
  }
  # With groups, learn the variances of groups and the noise again, from all rows.
  factors <- posterior_stage(state, function() {
    factors <- effect_posterior(done$z, data, done$model, done$jitter, s$run)
    if (isTRUE(done$learned_all)) factors else relearned_variances(factors, data, done$model, s$learn)
  })
  done$model <- model_of_effects(done$model, factors)
  fit <- new_fit(data, done, s, state, c(parts, list(factors = factors, jitter = factors$jitter, evidence = NA_real_)))
  fit$evidence <- log_evidence(posterior_of(replace(fit, "data", list(data))))
  fit
}

points_and_start <- function(done, s) {
  list(inducing = done$z, m = nrow(done$z), m_asked = s$posterior$m,
       inducing_method = done$start %||% s$posterior$inducing_method,
       unexplained = s$posterior$rho, trial = s$posterior$trial, aux = s$posterior$aux,
       moved = s$posterior$move && !identical(method_traits(s)$objective, "none"),
       aux_points = done$aux_points, aux_rows = done$aux_rows)
}

# Returns a fit with nearest neighbours. posterior_on_points() returns the `factors` of its inducing points alone.
construct_near <- function(data, done, s, state) {
  # With more than near_training["rows"] rows, finding neighbours of training rows would take too long.
  some <- s$posterior$neighbours
  trained <- nrow(data$x) <= near_training[["rows"]] && !isTRUE(s$posterior$untrained)
  train <- if (trained) min(some, nrow(data$x) - 1L) else 0L
  near <- posterior_stage(state, function() {
    if (has_own_levels(done$model$kernel)) {
      if (is.null(s$again$neighbours)) train <- min(train, default_neighbours)
      return(near_grouped_posterior(data, done$z, done$model, some, train, sample.int(nrow(data$x)),
                                    done$jitter, s$run, free_groups(done$model$kernel, s$learn)))
    }
    if (is.null(s$again$neighbours)) some <- c(some, far_neighbours)
    near_posterior(data, done$z, done$model, some, train, jitter = done$jitter, control = s$run)
  })
  done$model <- model_of_effects(done$model, c(near["groupings"], done$model["noise"]))
  new_fit(data, done, s, state, c(points_and_start(done, s), list(
    neighbours = s$posterior$neighbours, factors = NULL, evidence = evidence_of("near", done$model, data, near),
    jitter = near$jitter, near = near)))
}

# learn_stage(), free_parameters() and learn_hyper() learn hyperparameters. Their `s` is the element `learn` of a plan.

# Learns the hyperparameters. Returns list(model, pilot, learned, kernels, exact, learned_all, smoother): `pilot` has
# the trace of a search, `learned` is a report on the learned values, `kernels` the table of kernels tried, `exact`
# compares exact and Vecchia likelihood (choose_exactly()). `learned_all` is TRUE if groups and noise were learned from
# all rows, `smoother` a model with a smoother kernel that predicts as well. All but `model` may be NULL.
learn_stage <- function(data, s, state) {
  start <- function() {
    start_values(if (is_open(s$kernel)) with_profile(s$kernel, "matern32", data$x) else s$kernel, s$noise, data)
  }
  found <- if (!length(s$free)) {
    start()
  } else if (s$hyper == "evidence") {
    if (is.null(state$so_far)) state$so_far <- start()
    learn <- if (is_groups_only(s$kernel) && is.null(s$likelihood)) learn_groups else learn_evidence
    run_stage(state, "learn", learn(data, s, state), otherwise = {
      at <- state$so_far$at # learn_evidence() stores its best theta in `at`
      c(if (!is.null(at)) at$problem$natural(at$theta), state$so_far)
    })
  } else {
    run_stage(state, "pilot", {
      rows <- optimise_rows(data, s$rows, 200L)
      if (!is.null(rows$rows)) state$rows["learn"] <- rows$n
      drawn <- sample.int(rows$n, min(200L, rows$n)) # row numbers from before equal rows were merged
      z <- rows$x[if (is.null(rows$group)) drawn else unique(rows$group[drawn]), , drop = FALSE]
      learn_hyper(rows, z[!duplicated(z), , drop = FALSE], start(), s, state, "pilot")
    }, otherwise = start())
  }
  if (isTRUE(state$open) && length(s$free) && is_bare(s$kernel) && data$n <= exact_learning_rows) {
    # With few rows, estimated variances are too small, as in a linear model (bench/few.R). Multiply kernel
    # and noise variances by n / (n - p), for p learned hyperparameters (n / 2 at most). Below few_rows rows, also
    # multiply by (t / z)^2, where t and z are the 97.5 % quantiles of Student's t (n - 1 degrees of freedom) and of the
    # normal. Then 95 % intervals are as wide as those of Student's t (bench/fewer.R). Predictions also average over the
    # noise variance, whose log has the variance attr(learned, "spread").
    n <- without_copies(data)$n
    p <- count_learned(found$kernel, s, data$frame) + noise_df(data$noise_trend)
    growth <- n / (n - min(p, n / 2))
    widening <- if (n < few_rows) (stats::qt(0.975, n - 1) / stats::qnorm(0.975))^2 else 1
    factor <- growth * widening
    if (factor >= 1.005) { # a smaller factor would be printed as 1.00
      of <- if (is_mean(found$kernel)) c("variance", "coefficients") else
        c(if (is.null(data$noise_trend$smooth)) "hyperparameter" else "effective parameter", # see noise_df()
          if (any(kernel_parameters(found$kernel)$mean)) "kernel, linear mean" else "kernel")
      state$because["scale"] <- sprintf(paste(
        "Variance inflation: variances of %1$s and noise are multiplied by %2$.2f, because estimation makes",
        "them too small with %3$s of %1$s and noise estimated from %4$d rows%5$s."),
        of[2L], growth, count_of(as.integer(p), of[1L]), as.integer(n), if (widening > 1)
          sprintf(paste(". They are multiplied by %.2f too, so that 95 %% credible intervals are as wide as with",
                        "Student's t (%s of freedom)"), widening, count_of(as.integer(n) - 1L, "degree")) else "")
    }
    found$kernel <- scale_kernel(found$kernel, factor)
    found$noise <- factor * found$noise
    if (!is.null(found$learned)) attr(found$learned, "factor") <- factor
    if (!is.null(found$learned) && n <= uncertain_noise[["rows"]]) {
      attr(found$learned, "spread") <- uncertain_noise["few"] / (n - min(p, n / 2))
    }
  }
  with_values <- function(found) {
    found$kernel <- name_lengthscales(found$kernel, data$x)
    model_with(new_model(NULL, NULL, data$center, data$scale), found)
  }
  list(model = with_values(found), pilot = found$pilot, learned = found$learned, kernels = found$kernels,
       exact = found$exact, learned_all = found$learned_all,
       smoother = if (!is.null(found$smoother)) with_values(found$smoother))
}

# Returns the hyperparameters to learn, in the form of hyper_parameters(). The others keep their values.
free_parameters <- function(model, s) hyper_parameters(model$kernel, model$noise, s$columns, not_learned(s))

# Learns hyperparameters by maximising the VFE bound at fixed inducing points z. Returns list(kernel, noise, pilot),
# where `pilot` has the trace of the search.
learn_hyper <- function(data, z, model, s, state, stage, maxit = s$steps$maxit) {
  # Changing lengthscales may make k(Z, Z) singular, so the jitter is at least 1e-8.
  problem <- vfe_hyper_problem(data, z, free_parameters(model, s), max(s$jitter, 1e-8), s$run)
  result <- run_minimise(problem, s$steps, "hyperparameters", state, stage, maxit, max(s$steps$reltol, 1e-6))
  c(problem$natural(result$par), list(pilot = result[c("trace", "convergence", "message", "evaluations")]))
}

# The functions below compute the posterior of a fit to a row source from sums over its rows. Several processes can
# compute sums over parts of the rows, which then add up.

# Returns the parts of a posterior that another process needs for sums_with_signature().
as_start <- function(p) p[intersect(c("jitter", "L", "C", "beta", "groupings"), names(p))]

# Returns the sums over rows from which the posterior p was made, and the residual sum of squares of p.
sums_of <- function(p) c(p[c("G", "Ay", "yy", "k_sum", "t", "rss")], list(log_weights = p$log_weights %||% 0))

# Returns the posterior in the form of native_posterior(), from sums over the rows. With A = L^{-1} k(Z, X) and G = A
# A', the posterior `start` has coefficients b and the residual sum of squares sums$rss. If b changes by s, this sum
# becomes
#   |y - A'(b + s)|^2 = |y - A'b|^2 - 2 s'(A y - G b) + s'G s.
# Few digits cancel, because s is small and the first term dominates.
posterior_of_sums <- function(z, sums, model, start, control = NULL) {
  if (!is.null(start$groupings)) {
    return(c(start[c("L", "jitter")], factors_of_effects(sums$sums, nrow(z), start$columns, start$groupings,
                                                         model$noise, control)))
  }
  p <- native(ffi_posterior_of_sums, engine_points(z, model, start$jitter), sums,
              doing = "The posterior on the inducing points")
  s <- p$beta - start$beta
  rss <- sums$rss - 2 * sum(s * (sums$Ay - sums$G %*% start$beta)) + sum(s * (sums$G %*% s))
  c(list(jitter = start$jitter, L = p$L), sums[c("G", "Ay", "yy", "k_sum", "t")],
    list(C = p$C, beta = p$beta, rss = max(rss, 0), log_weights = sums$log_weights))
}

# Returns the element `near` of a fit with neighbours, from the FITC posterior p on its inducing points.
near_of_posterior <- function(p, model, neighbours) {
  list(L = p$L, C = p$C / sqrt(model$noise), beta = p$beta, jitter = p$jitter, neighbours = as.integer(neighbours),
       train_neighbours = 0L, sums = sums_of(p))
}

# Returns the sums over the rows for a posterior on inducing points z, and sums that identify the rows (`signature`).
# The earlier posterior `start` on z gives the jitter and a residual sum of squares. With groups, the sums are those of
# native_effect_sums(). If `has_near`, residual prior variances are added to the noise (FITC).
sums_with_signature <- function(rows, z, model, start, has_near, control) {
  used <- rows[c("x", "y", "weights")]
  at <- if (is.null(start$groupings)) native_predict(start, z, model, rows$x)
  if (has_near) used$weights <- 1 / (1 / merged_weights(rows) + pmax(at$unexplained, 0) / model$noise)
  sums <- if (is.null(at)) {
    native_effect_sums(z, used, smooth_model(model), start$groupings, start$jitter, start$jitter, control)["sums"]
  } else {
    c(native_sums("vfe", NULL, z, used, model, start$jitter, control),
      list(rss = sum(merged_weights(used) * (used$y - at$mean)^2)))
  }
  list(n = rows$n, sums = sums, signature = signature_sums(rows), log_w = sum_of_logs(rows$weights),
       offset_squares = sum(rows$offset_squares))
}

# Returns the fit to a row source. `data` is the sample of rows from which hyperparameters were learned.
construct_from_source <- function(data, done, s, state) {
  whole <- data$whole
  model <- done$model
  has_near <- s$posterior$neighbours > 0L
  groupings <- if (has_own_levels(model$kernel)) { # groupings with the levels of all rows, not only of the sample
    variable <- rep(seq_along(whole$variables), vapply(whole$variables, `[[`, 1L, "width"))
    groupings_of(model$kernel, lapply(group_columns(model$kernel), function(column) {
      length(whole$variables[[variable[column]]]$levels)
    }))
  }
  refuse_if(!is.null(groupings) && has_near, "neighbours", s$posterior$neighbours, "0 for groups of a row source")
  start <- posterior_stage(state, function() {
    if (!is.null(groupings)) return(effect_posterior(done$z, data, model, done$jitter, s$run, groupings))
    native_posterior(done$z, data, model, done$jitter, control = s$run, fitc = has_near)
  })
  more <- list(done$z, model, as_start(start), has_near, s$run)
  so_far <- new.env()
  value <- run_stage(state, "posterior", whole_pass(whole, sums_with_signature, more, sums_merge, so_far),
                     otherwise = so_far$value)
  refuse_if(is.null(state$stopped) && sum(value$n) != whole$n, "data",
            sprintf("has %s rows in the first pass and %s in the second", show_count(whole$n),
                    show_count(sum(value$n))), hint = "A source must give the same rows in every pass.")
  if (is.null(value)) value <- sums_with_signature(data, done$z, model, start, has_near, s$run) # pass was interrupted
  sample <- data[c("x", "y", "weights", "n", "shift")]
  data$n <- value$n
  data$shift <- log_density_shift(value$n, value$log_w, whole$scale, 0, 0)
  data$signature <- signature_of(value$signature, whole$center)
  posterior <- relearned_variances(posterior_of_sums(done$z, value$sums, model, start, s$run), data, model, s$learn)
  done$model <- model_of_effects(model, posterior)
  parts <- if (has_near) near_of_sums(sample, posterior, data, done, s) else list(neighbours = 0L, factors = posterior,
         evidence = evidence_of(if (is.null(groupings)) "points" else "grouped", done$model, data, posterior,
                                method_traits(s)))
  fit <- new_fit(data, done, s, state, c(points_and_start(done, s), parts, list(
    jitter = posterior$jitter, source = list(label = whole$source$label, rows = whole$seen, omitted = whole$omitted,
                                             sample = nrow(data$x), passes = whole$passes$n))))
  failed <- state$stopped$error
  if (is.null(failed)) return(fit)
  failed$fit <- fit
  failed$message <- sprintf("%s. The element `fit` of this error is a fit to %s rows. To go on, pass it as `inducing`.",
                            sub("[.]$", "", conditionMessage(failed)), show_count(fit$nobs))
  stop(failed)
}

# Returns the parts of a fit to a row source with neighbours: FITC's posterior on the inducing points from all rows, and
# the sampled rows, which may be neighbours. If the sample has all rows, training rows have neighbours too.
near_of_sums <- function(sample, posterior, data, done, s) {
  model <- done$model
  if (sample$n == data$n) {
    sample <- merge_all_equal_rows(c(sample, list(group = NULL)))
    train <- min(s$posterior$neighbours, nrow(sample$x) - 1L)
    near <- near_posterior(sample, done$z, model, s$posterior$neighbours, train, jitter = done$jitter, control = s$run)
    sample$shift$constant <- data$shift$constant
    evidence <- evidence_of("near", model, sample, near)
  } else {
    near <- near_of_posterior(posterior, model, s$posterior$neighbours)
    evidence <- evidence_of("points", model, data, posterior, list(fitc = TRUE))
  }
  near$rows <- sample[c("x", "y", "weights", "n", "shift")]
  list(neighbours = s$posterior$neighbours, factors = NULL, evidence = evidence, near = near)
}
