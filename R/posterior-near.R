# Inducing points with nearest neighbours (near.R): at x, given the rows S that are nearest to it,
#
#   u = (E_SS + s2 W^{-1})^{-1} e,  r = a - A_S u,  mean = u'y_S + r'beta,  var = prior - |a|^2 - e'u + |C^{-1} r|^2
#
# with a = L^{-1} cross(Z), e = cross(S) - A_S'a and E = k - a'a, the residual prior variance.

posterior_at.near <- function(p, fun, joint = FALSE) {
  if (fun$kind == "values") {
    at <- native_near_predict(p$near, p$z, p$rows, p$model, p$near$neighbours, fun$x, p$control)
    cov <- if (joint) native_near_covariance(p$near, p$z, p$rows, p$model, p$near$neighbours, fun$x, p$control)
    return(list(mean = at$mean, var = at$var_far + at$var_near, cov = cov$covariance))
  }
  if (fun$kind == "sums") sums_beside_near(p, fun) else one_row_beside_near(p, fun)
}

one_row_beside_near <- function(p, fun) {
  near <- p$near
  data <- p$rows
  w <- merged_weights(data)
  rows <- native_neighbours(p$model$kernel, data$x, near$neighbours, query = fun$x, control = p$control)
  a <- features_of(fun, p$z, near$L)
  out <- list(mean = numeric(fun$n), var = numeric(fun$n))
  for (of_row in split(seq_len(fun$n), fun$rows)) {
    S <- rows[, fun$rows[of_row[1L]]]
    S <- S[S > 0L]
    x_S <- data$x[S, , drop = FALSE]
    A_S <- forwardsolve(near$L, native_kernel_matrix(p$model$kernel, p$z, x_S))
    N <- native_kernel_matrix(p$model$kernel, x_S, x_S) - crossprod(A_S) + diag(p$model$noise / w[S], length(S))
    e <- fun$cross(x_S, of_row) - crossprod(A_S, a[, of_row])
    u <- solve(N, e)
    r <- a[, of_row] - A_S %*% u
    out$mean[of_row] <- drop(crossprod(u, data$y[S]) + crossprod(r, near$beta))
    out$var[of_row] <- pmax(fun$prior[of_row] - colSums(a[, of_row, drop = FALSE]^2) - colSums(e * u), 0) +
      colSums(forwardsolve(near$C, r)^2)
  }
  out
}

# The mean of a sum is the sum of means; its variance uses the covariance of the rows.
sums_beside_near <- function(p, fun) {
  mean <- posterior_values(p, fun$x)$mean
  list(mean = mapply(function(rows, w) sum(w * mean[rows]), fun$rows, fun$weights),
       var = mapply(function(rows, w) {
         sum(w * (posterior_values(p, fun$x[rows, , drop = FALSE], TRUE)$cov %*% w))
       }, fun$rows, fun$weights))
}
