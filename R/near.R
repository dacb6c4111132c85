# Far and near: inducing points for what all rows say, and the rows near by treated exactly. With E = k - a'a, what the
# points leave of the prior, and rows in a random order (`rank`), row i beside its nearest earlier rows p:
#
#   u = (E_pp + s2 I)^{-1} E_pi,  d = E_ii + s2 - E_ip u,  a~ = (a_i - A_p u)/sqrt(d),  y~ = (y_i - u'y_p)/sqrt(d)
#   C C' = I + sum a~a~',  beta = (C C')^{-1} sum a~y~
#
# and at x, beside its nearest rows S:  u = (E_SS + s2 I)^{-1} e,  r = a - A_S u,
#
#   mean = u'y_S + r'beta,  var f = [E(x,x) - e'u] + |C^{-1} r|^2
#
# Rows carry the roots of their weights. No neighbours in training is FITC, all of them the exact Gaussian process.
# Everything is in the units of the cleaned y.

# The O(M^2) numbers that predict_near() needs beside the rows, and their order, for leave-one-out. `evidence`: log
# density of the rows as cleaned, scaled by the roots of their weights: an estimate of the exact one, no bound.
near_posterior <- function(data, z, model, neighbours, train_neighbours, rank = sample.int(nrow(data$x)),
                           jitter = 1e-12, control = NULL) {
  near <- native_near(z, data, model, train_neighbours, rank, jitter, control = control)
  list(L = near$L, C = near$C, beta = near$beta, jitter = near$jitter, neighbours = as.integer(neighbours),
       train_neighbours = as.integer(train_neighbours), rank = rank, evidence = -near$minus_log)
}

# list(mean, var_near, var_far): what is left beside the near rows, and what the points do not know of it.
predict_near <- function(near, data, z, model, x, control = NULL) {
  native_near_predict(near, z, data, model, near$neighbours, x, control)[c("mean", "var_near", "var_far")]
}

# The joint law of f at the rows of x. Given the inducing variables, f(x) less its mean is what the near rows leave of
# the prior, g(x) = e(x) - u'(e + noise)_S, and two of them have the covariance that the prior gives them:
#
#   Cov(f(x), f(x~)) = r'(C C')^{-1} r~ + E(x,x~) - u'E(S,x~) - E(x,S~)u~ + u'N(S,S~)u~
#
# an entry needs its two rows alone, so that the matrix of some rows is that part of the matrix of all, its diagonal is
# predict_near()'s variance, and no order of the rows is chosen; it is positive semidefinite, being a covariance of
# random variables; and it is the exact posterior's where all rows are near.
covariance_near <- function(near, data, z, model, x, control = NULL) {
  native_near_covariance(near, z, data, model, near$neighbours, x, control)$covariance
}
