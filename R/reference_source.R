# A reference where the rows are in a source: by passes, in which a block at a time is in memory, here or on workers.

# Three of them: a sample from which points are chosen, and a look at whether these are the fit's rows; the sums of a
# posterior on the points; what its norms are made of. Groups of rows do not go beyond a block.
reference_of_source <- function(fit, source, m2, call, tell) {
  model <- model_of(fit)
  recipe <- fit_recipe(fit)
  tell("a sample of the rows")
  found <- source_pass(source, sample_visit(recipe, 20 * m2), either(sample_merge))
  check_rows_are(fit, found$signature)
  sample <- reservoir_rows(reservoir_cut(found$sample))
  sample <- list(x = sample$values$x, y = sample$r, weights = sample$w, n = length(sample$r))
  z <- sample$x[reference_rows(sample, model$kernel, min(m2, sample$n)), , drop = FALSE]
  start <- native_posterior(z, sample, model, rounding_jitter(nrow(z)), control = fit$control)
  tell(sprintf("posterior on %d points", nrow(z)))
  sums <- source_pass(source, reference_sums_visit(recipe, z, model, start, fit$control), either(sums_merge))
  posterior <- posterior_of_sums(z, sums, model, start)
  tell("norms")
  visit <- norms_visit(recipe, z, model, posterior[c("L", "C", "beta")], fit$control)
  norms <- source_pass(source, visit, either(norms_merge))
  rows <- list(n = fit$nobs, scale = fit$scale, shift = log_density_shift(fit$nobs, found$log_w, fit$scale, 0, 0))
  gp_beside(fit, "gp_dtc", call = call, parts = list(
    inducing = z, m = nrow(z), m_asked = nrow(z), inducing_method = "greedy", jitter = posterior$jitter,
    factors = posterior, evidence = elbo(rows, posterior, model$noise), norms = finish_norms(norms, posterior, model),
    source = list(label = source$label, rows = NA, omitted = 0L, sample = sample$n, passes = 3L)))
}

check_rows_are <- function(fit, signature) {
  same <- !is.null(signature) && same_sums(fit$signature, signature_of(signature, fit$center))
  if (!same) refuse_other_rows()
}

# ---- visits: what is said of a block, NULL where it has no rows that count -----------------------------------------

sample_visit <- function(recipe, size) {
  force(recipe)
  force(size)
  function(block) {
    rows <- cleaned(recipe, fitted_rows(recipe, block))
    if (!rows$n) return(NULL)
    weights <- merged_weights(rows)
    list(signature = signature_sums(rows), log_w = sum(log(weights)),
         sample = reservoir(list(values = list(x = rows$x), r = rows$y, w = weights), rows$n, size))
  }
}

sample_merge <- function(a, b) {
  list(signature = Map(`+`, a$signature, b$signature), log_w = a$log_w + b$log_w,
       sample = reservoir_merge(a$sample, b$sample))
}

reference_sums_visit <- function(recipe, z, model, start, control) {
  lapply(list(recipe, z, model, control), force)
  start <- as_start(start)
  function(block) {
    rows <- cleaned(recipe, fitted_rows(recipe, block))
    if (rows$n) rows_sums(rows, z, model, start, control)
  }
}

norms_visit <- function(recipe, z, model, posterior, control) {
  lapply(list(recipe, z, model, posterior, control), force)
  function(block) {
    rows <- cleaned(recipe, fitted_rows(recipe, block))
    if (rows$n) rows_norms(posterior, z, rows, model, pmin(rows$n, norm_groups(nrow(z))), control)
  }
}
