# The exact posterior of all rows, or of a subsample of them.

posterior_at.exact <- function(p, fun, joint = FALSE) {
  if (fun$kind == "values") {
    at <- native_exact_predict(p$factors, p$x, p$model$kernel, fun$x)
    cov <- if (joint) native_exact_covariance(p$factors, p$x, p$model$kernel, fun$x)
    return(list(mean = at$mean, var = at$variance, cov = cov))
  }
  K <- fun$cross(p$x, seq_len(fun$n))
  list(mean = drop(crossprod(K, p$factors$alpha)), var = fun$prior - colSums(forwardsolve(p$factors$L, K)^2))
}
