# The last stage of a fit to a row source: a pass for the sums over the rows, then the posterior of the sums.

# Returns the sums and the signature of rows. `beside`: for a posterior with neighbours, in which every row has FITC's
# noise.
sums_with_signature <- function(rows, z, model, start, beside, control) {
  in_force <- rows[c("x", "y", "weights")]
  if (beside) in_force$weights <- fitc_weights(rows, z, model, start)
  list(n = rows$n, sums = rows_sums(in_force, z, model, start, control), signature = signature_sums(rows),
       log_w = if (is.null(rows$weights)) 0 else sum(log(rows$weights)),
       offset_squares = sum(rows$offset_squares))
}

merge_sums <- function(a, b) {
  list(n = a$n + b$n, sums = sums_merge(a$sums, b$sums), signature = Map(`+`, a$signature, b$signature),
       log_w = a$log_w + b$log_w, offset_squares = a$offset_squares + b$offset_squares)
}

# Returns the fit. `data` is the sample, on which all earlier stages worked.
construct_from_source <- function(data, done, s, state) {
  whole <- data$whole
  model <- done$model
  beside <- s$posterior$neighbours > 0L
  start <- posterior_stage(state, function() {
    native_posterior(done$z, data, model, done$jitter, control = s$run, fitc = beside)
  })
  visit <- visit_rows(clean_block, without_source(whole), sums_with_signature,
                      list(done$z, model, as_start(start), beside, s$run))
  so_far <- new.env()
  finish <- function(value) fit_of_sums(value, data, done, start, s, state)
  value <- run_stage(state, "posterior", whole_pass(whole, visit, either(merge_sums), so_far), otherwise = so_far$value)
  failed <- state$stopped$error
  if (!is.null(failed)) {
    failed$fit <- finish(value)
    failed$message <- sprintf("%s. The condition's `fit`, of %s rows, has the learned values: use it as `inducing`.",
                              sub("[.]$", "", conditionMessage(failed)), show_count(failed$fit$nobs))
    stop(failed)
  }
  if (is.null(state$stopped) && sum(value$n) != whole$n) {
    abort_input("data", sprintf("one of %s rows in the first pass and %s in the second", show_count(whole$n),
                                show_count(sum(value$n))), "a source that gives the same rows in every pass")
  }
  finish(value)
}

# Returns the fit of the rows in the sums, or of the sample if there are no sums.
fit_of_sums <- function(value, data, done, start, s, state) {
  whole <- data$whole
  model <- done$model
  beside <- s$posterior$neighbours > 0L
  if (is.null(value)) value <- sums_with_signature(data, done$z, model, start, beside, s$run)
  posterior <- posterior_of_sums(done$z, value$sums, model, start)
  sample <- data[c("x", "y", "weights", "n", "shift")]
  data$n <- value$n
  data$shift <- log_density_shift(value$n, value$log_w, whole$scale, 0, 0)
  data$signature <- signature_of(value$signature, whole$center)
  about <- list(label = whole$source$label, rows = whole$seen, omitted = whole$omitted, sample = nrow(data$x),
                passes = whole$passes$n)
  parts <- if (beside) near_of_sums(sample, posterior, data, done, s) else
    list(neighbours = 0L, factors = posterior, evidence = evidence_of("points", model, data, posterior, gp_family(s)))
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
