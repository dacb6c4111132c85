# The terms of a kernel are the covariances of independent functions whose sum is f: the posterior of each, from
# cov(f_t(x), f(.)) = k_t(x, .) alone.

# list(mean, var), a column a term, at the rows of x, in units of y and without the centre.
term_values <- function(fit, x) {
  model <- model_of(fit)
  parts <- kernels_of_terms(model$kernel)
  names <- if (has_one_factor(fit$kernel)) {
    leaf_name(utils::modifyList(fit$kernel, list(of = fit$frame$columns[fit$kernel$inputs])))
  } else {
    term_names(fit$kernel)
  }
  found <- posterior_at(posterior_of(fit), terms_at(parts, x))
  shape <- function(v) matrix(v, nrow(x), dimnames = list(NULL, names))
  list(mean = in_units(fit, shape(found$mean)), var = in_units(fit, shape(pmax(found$var, 0)), 2))
}

# predict(type = "terms"): as predict.gam() has it.
predict_terms <- function(fit, rows, se.fit) {
  p <- term_values(fit, rows$x)
  shape <- function(v) {
    v <- v[rows$index, , drop = FALSE]
    rownames(v) <- rows$names
    v
  }
  terms <- structure(shape(p$mean), constant = fit$center)
  if (!se.fit) return(terms)
  list(fit = terms, se.fit = shape(sqrt(p$var)))
}

# Share of each term in the variance that all of them have over the training rows, or some of them; NULL of one term.
term_shares <- function(fit, most = 500L) {
  if (length(as_sum(fit$kernel)$terms) < 2L || is.null(fit$data)) return(NULL)
  x <- fit$data$x
  x <- x[evenly(nrow(x), most), , drop = FALSE]
  if (nrow(x) < 2L) return(NULL)
  spread <- apply(term_values(fit, x)$mean, 2L, stats::var)
  spread / sum(spread)
}
