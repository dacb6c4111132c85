# The terms of a kernel are the covariances of independent functions whose sum is f: the posterior of each, from
# cov(f_t(x), f(.)) = k_t(x, .) alone.

# The terms as kernels of their own.
kernels_of_terms <- function(kernel) {
  if (!is_composite(kernel)) return(list(kernel))
  lapply(kernel$terms, function(t) {
    kernel$terms <- list(t)
    kernel
  })
}

# list(mean, var), a column a term, at the rows of x, in units of y and without the centre.
terms_at <- function(fit, x) {
  model <- model_of(fit)
  parts <- kernels_of_terms(model$kernel)
  names <- if (is_composite(model$kernel)) term_names(model$kernel) else
    leaf_name(utils::modifyList(model$kernel, list(of = fit$frame$columns[model$kernel$inputs])))
  at <- if (!is.null(fit$x)) exact_terms else if (is.null(fit$near)) point_terms else near_terms_at
  found <- at(fit, parts, x)
  shape <- function(v) matrix(unlist(v), nrow(x), dimnames = list(NULL, names))
  list(mean = in_units(fit, shape(lapply(found, `[[`, "mean"))),
       var = in_units(fit, shape(lapply(found, function(p) pmax(p$var, 0))), 2))
}

exact_terms <- function(fit, parts, x) {
  lapply(parts, function(k) {
    K <- native_kernel_matrix(k, fit$x, x)
    list(mean = drop(crossprod(K, fit$factors$alpha)),
         var = kernel_diagonal(k, x) - colSums(forwardsolve(fit$factors$L, K)^2))
  })
}

# a_t = L^{-1} k_t(Z, x):  mean = a_t'beta,  var = k_t(x,x) - |a_t|^2 + s2 |C^{-1} a_t|^2, of SoR the last alone
point_terms <- function(fit, parts, x) {
  p <- fit$factors
  lapply(parts, function(k) {
    a <- forwardsolve(p$L, native_kernel_matrix(k, fit$inducing, x))
    sor <- model_of(fit)$noise * colSums(forwardsolve(p$C, a)^2)
    list(mean = drop(crossprod(a, p$beta)),
         var = sor + if (gp_family(fit)$sor) 0 else pmax(kernel_diagonal(k, x) - colSums(a^2), 0))
  })
}

# Beside the near rows S, with E = k - a'a and e_t = k_t(S, x) - A_S'a_t:  u = (E_SS + s2 W^{-1})^{-1} e_t,
# r = a_t - A_S u,  mean = u'y_S + r'beta,  var = k_t(x,x) - |a_t|^2 - e_t'u + |C^{-1} r|^2
near_terms_at <- function(fit, parts, x) {
  near <- fit$near
  data <- fit$data
  model <- model_of(fit)
  w <- merged_weights(data)
  rows <- native_neighbours(model$kernel, data$x, near$neighbours, query = x, control = fit$control)
  a <- lapply(parts, function(k) forwardsolve(near$L, native_kernel_matrix(k, fit$inducing, x)))
  prior <- lapply(parts, kernel_diagonal, x)
  out <- lapply(parts, function(k) list(mean = numeric(nrow(x)), var = numeric(nrow(x))))
  for (i in seq_len(nrow(x))) {
    S <- rows[rows[, i] > 0L, i]
    x_S <- data$x[S, , drop = FALSE]
    A_S <- forwardsolve(near$L, native_kernel_matrix(model$kernel, fit$inducing, x_S))
    N <- native_kernel_matrix(model$kernel, x_S, x_S) - crossprod(A_S) + diag(model$noise / w[S], length(S))
    for (t in seq_along(parts)) {
      a_t <- a[[t]][, i]
      e <- drop(native_kernel_matrix(parts[[t]], x_S, x[i, , drop = FALSE])) - drop(crossprod(A_S, a_t))
      u <- solve(N, e)
      r <- a_t - drop(A_S %*% u)
      out[[t]]$mean[i] <- sum(u * data$y[S]) + sum(r * near$beta)
      out[[t]]$var[i] <- max(prior[[t]][i] - sum(a_t^2) - sum(e * u), 0) + sum(forwardsolve(near$C, r)^2)
    }
  }
  out
}

# predict(type = "terms"): as predict.gam() has it.
predict_terms <- function(fit, rows, se.fit) {
  p <- terms_at(fit, rows$x)
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
  if (!is_composite(fit$kernel) || length(fit$kernel$terms) < 2L || is.null(fit$data)) return(NULL)
  x <- fit$data$x
  x <- x[unique(round(seq(1, nrow(x), length.out = min(most, nrow(x))))), , drop = FALSE]
  if (nrow(x) < 2L) return(NULL)
  spread <- apply(terms_at(fit, x)$mean, 2L, stats::var)
  spread / sum(spread)
}
