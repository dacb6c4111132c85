# A reference where the rows are in a source: by passes, in which a block at a time is in memory, here or on workers.

# Three of them: a sample from which points are chosen, and a look at whether these are the fit's rows; the sums of a
# posterior on the points; what its norms are made of. Groups of rows do not go beyond a block.
reference_of_source <- function(fit, source, m2, call, tell) {
  model <- model_of(fit)
  recipe <- fit_recipe(fit)
  pass <- function(f, merge, ...) {
    source_pass(source, visit_rows(cleaned_rows, recipe, f, list(...)), either(merge))
  }
  tell("a sample of the rows")
  found <- pass(sampled_rows, sample_merge, 20 * m2)
  check_rows_are(fit, found$signature)
  sample <- reservoir_rows(reservoir_cut(found$sample))
  sample <- list(x = sample$values$x, y = sample$r, weights = sample$w, n = length(sample$r))
  z <- sample$x[reference_rows(sample, model$kernel, min(m2, sample$n)), , drop = FALSE]
  start <- native_posterior(z, sample, model, rounding_jitter(nrow(z)), control = fit$control)
  tell(sprintf("posterior on %d points", nrow(z)))
  sums <- pass(rows_sums, sums_merge, z, model, as_start(start), fit$control)
  posterior <- posterior_of_sums(z, sums, model, start)
  tell("norms")
  norms <- pass(norms_of_block, norms_merge, posterior[c("L", "C", "beta")], z, model, fit$control)
  rows <- list(n = fit$nobs, scale = fit$scale, shift = log_density_shift(fit$nobs, found$log_w, fit$scale, 0, 0))
  gp_beside(fit, "gp_dtc", call = call, parts = list(
    inducing = z, m = nrow(z), m_asked = nrow(z), inducing_method = "greedy", jitter = posterior$jitter,
    factors = posterior, evidence = evidence_of("points", model, rows, posterior), norms = finish_norms(norms, posterior, model),
    source = list(label = source$label, rows = NA, omitted = 0L, sample = sample$n, passes = 3L)))
}

check_rows_are <- function(fit, signature) {
  same <- !is.null(signature) && same_sums(fit$signature, signature_of(signature, fit$center))
  if (!same) refuse_other_rows()
}

# ---- what is said of the rows of a block ----------------------------------------------------------------------------

cleaned_rows <- function(recipe, block) cleaned(recipe, fitted_rows(recipe, block))

norms_of_block <- function(rows, p, z, model, control) {
  rows_norms(p, z, rows, model, pmin(rows$n, norm_groups(nrow(z))), control)
}

sampled_rows <- function(rows, size) {
  weights <- merged_weights(rows)
  list(signature = signature_sums(rows), log_w = sum(log(weights)),
       sample = reservoir(list(values = list(x = rows$x), r = rows$y, w = weights), rows$n, size))
}

sample_merge <- function(a, b) {
  list(signature = Map(`+`, a$signature, b$signature), log_w = a$log_w + b$log_w,
       sample = reservoir_merge(a$sample, b$sample))
}
