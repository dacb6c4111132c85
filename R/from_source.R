# The last stage where the rows come from a source: a pass over them for the sums, the posterior of these.

# Sums and signature of a block.
sums_visit <- function(whole, z, model, start, control) {
  whole$source <- NULL # it stays where it is
  force(z)
  force(model)
  force(start)
  force(control)
  function(block) {
    rows <- clean_block(whole, block)
    if (!rows$n) return(list(n = 0))
    list(n = rows$n, sums = rows_sums(rows, z, model, start, control), signature = signature_sums(rows))
  }
}

merge_sums <- function(a, b) {
  if (!b$n) return(a)
  if (!a$n) return(b)
  list(n = a$n + b$n, sums = sums_merge(a$sums, b$sums), signature = Map(`+`, a$signature, b$signature))
}

# `data`: the sample, on which everything else has been done.
construct_from_source <- function(data, done, s, state) {
  whole <- data$whole
  model <- done$model
  start <- posterior_stage(state, function() dtc_posterior(done$z, data, model, done$jitter, control = s$control))
  visit <- sums_visit(whole, done$z, model, start, s$control)
  so_far <- new.env()
  finish <- function(value) fit_of_sums(value, data, done, start, s, state)
  value <- tryCatch(
    run_stage(state, "posterior", source_pass(whole$source, visit, merge_sums, so_far),
              otherwise = so_far$value),
    pfdtc_error_source = function(e) {
      e$fit <- finish(so_far$value)
      e$message <- sprintf(paste("%s. What was learned is kept: the condition's `fit` is of the %s rows read",
                                 "until then, and can be given as `inducing`."), sub("[.]$", "", conditionMessage(e)),
                           show_count(e$fit$nobs))
      stop(e)
    })
  if (is.null(state$stopped) && value$n != whole$n) {
    abort_input("data", sprintf("one of %s rows in the first pass and %s in the second", show_count(whole$n),
                                show_count(value$n)), "a source that gives the same rows in every pass")
  }
  finish(value)
}

# Of as many rows as the sums are of; where there are none, of the sample.
fit_of_sums <- function(value, data, done, start, s, state) {
  whole <- data$whole
  model <- done$model
  if (is.null(value) || !value$n) {
    value <- list(n = data$n, sums = rows_sums(data, done$z, model, start, s$control),
                  signature = signature_sums(data))
  }
  posterior <- posterior_of_sums(done$z, value$sums, model, start)
  data$n <- value$n
  data$shift <- log_density_shift(value$n, posterior$log_weights, whole$scale, 0, 0)
  data$signature <- signature_of(value$signature, whole$center)
  new_fit(data, done, s, state, c(points_and_start(done, s), list(
    neighbours = 0L, factors = posterior, evidence = gp_family(s)$evidence(data, posterior, model$noise),
    jitter = posterior$jitter, source = list(
      label = whole$source$label, rows = whole$seen, omitted = whole$omitted, sample = nrow(data$x), passes = 2L))))
}
