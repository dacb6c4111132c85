# The posterior on inducing points: DTC, SoR and FITC.

# With features a = L^{-1} cross(Z):  mean = a'beta,  var = prior - |a|^2 + s2 |C^{-1} a|^2; SoR has the last term alone.
posterior_at.points <- function(p, fun, joint = FALSE) {
  if (fun$kind == "values") {
    at <- native_predict(p$factors, p$z, p$model, fun$x)
    cov <- if (joint) native_covariance(p$factors, p$z, p$model, fun$x, sor = p$sor)
    var <- if (p$sor) at$sor_variance else at$sor_variance + at$unexplained
    return(list(mean = at$mean, var = var, cov = cov))
  }
  a <- features_of(fun, p$z, p$factors$L)
  sor <- p$model$noise * colSums(forwardsolve(p$factors$C, a)^2)
  list(mean = drop(crossprod(a, p$factors$beta)), var = sor + if (p$sor) 0 else pmax(fun$prior - colSums(a^2), 0))
}
