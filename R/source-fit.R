# The last stage of a fit to a row source: a pass for the sums over the rows, then the posterior of the sums.

# Sums over rows as plain values. The sums of two sets of rows add up, so that rows can be read in parts and in several
# processes. The posterior is made of the sums over all rows.

# Returns the parts of a start that sums_with_signature() reads, to send them to another process.
as_start <- function(p) p[intersect(c("jitter", "L", "C", "beta", "groupings"), names(p))]

# Returns the sums that a posterior was made of, with its own residuals.
sums_of <- function(p) {
  c(p[c("G", "Ay", "yy", "k_sum", "t", "rss")], list(log_weights = p$log_weights %||% 0))
}

# Returns the posterior as native_posterior() does. The residuals of b + s follow from those of b:
#   |y - A'(b + s)|^2 = |y - A'b|^2 - 2 s'(A y - G b) + s'G s,
# No digits cancel, because b is close to the result and the first term dominates.
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

# Converts FITC's posterior into the element `near` of a fit, with the sums it was made of, and back.
near_of_posterior <- function(p, model, neighbours) {
  list(L = p$L, C = p$C / sqrt(model$noise), beta = p$beta, jitter = p$jitter, neighbours = as.integer(neighbours),
       train_neighbours = 0L, sums = sums_of(p))
}

posterior_of_near <- function(near, model) {
  c(near$sums, list(L = near$L, C = near$C * sqrt(model$noise), beta = near$beta, jitter = near$jitter))
}

# ---- the fit --------------------------------------------------------------------------------------------------------

# Returns the sums that a posterior on z needs from rows, list(x, y, weights), and the signature of the rows. `start` is
# a posterior on the same points and has their jitter. `rss` is the sum of squares of its residuals, for
# posterior_of_sums(). If `start` has groups, the sums are those by level. `beside`: for a posterior with neighbours, in
# which every row has FITC's noise s2 / w_n + E_nn.
sums_with_signature <- function(rows, z, model, start, beside, control) {
  used <- rows[c("x", "y", "weights")]
  at <- if (is.null(start$groupings)) native_predict(start, z, model, rows$x)
  if (beside) used$weights <- 1 / (1 / merged_weights(rows) + pmax(at$unexplained, 0) / model$noise)
  sums <- if (is.null(at)) {
    native_effect_sums(z, used, smooth_model(model), start$groupings, start$jitter, start$jitter, control)["sums"]
  } else {
    c(native_sums("vfe", NULL, z, used, model, start$jitter, control),
      list(rss = sum(merged_weights(used) * (used$y - at$mean)^2)))
  }
  list(n = rows$n, sums = sums, signature = signature_sums(rows), log_w = sum_of_logs(rows$weights),
       offset_squares = sum(rows$offset_squares))
}

# Returns the fit. `data` is the sample, on which all earlier stages worked.
construct_from_source <- function(data, done, s, state) {
  whole <- data$whole
  model <- done$model
  beside <- s$posterior$neighbours > 0L
  groupings <- if (has_own_levels(model$kernel)) { # with the levels of all rows
    variable <- rep(seq_along(whole$variables), vapply(whole$variables, `[[`, 1L, "width"))
    groupings_of(model$kernel, lapply(group_columns(model$kernel), function(column) {
      length(whole$variables[[variable[column]]]$levels)
    }))
  }
  if (!is.null(groupings) && beside) {
    abort_input("neighbours", s$posterior$neighbours, "0 for groups of a row source")
  }
  start <- posterior_stage(state, function() {
    if (!is.null(groupings)) return(effect_posterior(done$z, data, model, done$jitter, s$run, groupings))
    native_posterior(done$z, data, model, done$jitter, control = s$run, fitc = beside)
  })
  more <- list(done$z, model, as_start(start), beside, s$run)
  so_far <- new.env()
  value <- run_stage(state, "posterior", whole_pass(whole, sums_with_signature, more, sums_merge, so_far),
                     otherwise = so_far$value)
  if (is.null(state$stopped) && sum(value$n) != whole$n) {
    abort_input("data", sprintf("one of %s rows in the first pass and %s in the second", show_count(whole$n),
                                show_count(sum(value$n))), "a source that gives the same rows in every pass")
  }
  fit <- fit_of_sums(value, data, done, start, s, state)
  failed <- state$stopped$error
  if (is.null(failed)) return(fit)
  failed$fit <- fit
  failed$message <- sprintf("%s. The condition's `fit`, of %s rows, has the learned values: use it as `inducing`.",
                            sub("[.]$", "", conditionMessage(failed)), show_count(fit$nobs))
  stop(failed)
}

# Returns the fit of the rows in the sums, or of the sample if there are no sums.
fit_of_sums <- function(value, data, done, start, s, state) {
  whole <- data$whole
  model <- done$model
  beside <- s$posterior$neighbours > 0L
  if (is.null(value)) value <- sums_with_signature(data, done$z, model, start, beside, s$run)
  sample <- data[c("x", "y", "weights", "n", "shift")]
  data$n <- value$n
  data$shift <- log_density_shift(value$n, value$log_w, whole$scale, 0, 0)
  data$signature <- signature_of(value$signature, whole$center)
  about <- list(label = whole$source$label, rows = whole$seen, omitted = whole$omitted, sample = nrow(data$x),
                passes = whole$passes$n)
  posterior <- relearned_variances(posterior_of_sums(done$z, value$sums, model, start, s$run), data, model, s$learn)
  done$model <- model <- model_of_effects(model, posterior)
  parts <- if (beside) near_of_sums(sample, posterior, data, done, s) else
    list(neighbours = 0L, factors = posterior,
         evidence = evidence_of(if (is.null(start$groupings)) "points" else "grouped", model, data, posterior,
                                method_traits(s)))
  new_fit(data, done, s, state, c(points_and_start(done, s), parts, list(jitter = posterior$jitter, source = about)))
}

# Returns the parts of a fit with neighbours: FITC's posterior on the inducing points from all rows, and the rows of the
# sample as possible neighbours. C C' in near_posterior() is FITC's in units of the noise. If the sample has all rows,
# the result is near_posterior() itself.
near_of_sums <- function(sample, posterior, data, done, s) {
  model <- done$model
  if (sample$n == data$n) {
    sample <- merge_all_equal_rows(c(sample, list(group = NULL)))
    train <- min(s$posterior$neighbours, nrow(sample$x) - 1L)
    near <- near_posterior(sample, done$z, model, s$posterior$neighbours, train, jitter = done$jitter,
                           control = s$run)
    sample$shift$constant <- data$shift$constant
    evidence <- evidence_of("near", model, sample, near)
  } else {
    near <- near_of_posterior(posterior, model, s$posterior$neighbours)
    evidence <- evidence_of("points", model, data, posterior, list(fitc = TRUE))
  }
  near$rows <- sample[c("x", "y", "weights", "n", "shift")]
  list(neighbours = s$posterior$neighbours, factors = NULL, evidence = evidence, near = near)
}
