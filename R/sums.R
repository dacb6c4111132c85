# Sums over rows as plain values: of some rows and of others they add up, wherever and whenever the rows are read, and
# the posterior is made of the sums of all.

# What a posterior on z wants of rows: list(x, y, weights). `start`: some posterior on the same points, with their
# jitter; rss is the sum of the squares of the residuals it leaves, for posterior_of_sums().
rows_sums <- function(rows, z, model, start, control = NULL) {
  sums <- native_sums("vfe", NULL, z, rows, model, start$jitter, control)
  e <- rows$y - native_predict(start, z, model, rows$x)$mean
  sums$rss <- sum(merged_weights(rows) * e^2)
  sums
}

# What rows_sums() and fitc_weights() read of a start, for who is far away.
as_start <- function(p) p[c("jitter", "L", "C", "beta")]

# The sums that a posterior was made of, with its own residuals.
sums_of <- function(p) {
  c(p[c("G", "Ay", "yy", "k_sum", "t", "rss")], list(log_weights = if (is.null(p$log_weights)) 0 else p$log_weights))
}

# As native_posterior() gives it. Residuals of b + s from those of b:
#   |y - A'(b + s)|^2 = |y - A'b|^2 - 2 s'(A y - G b) + s'G s,
# which loses no digits: b is near the end, and the first term is what the result is.
posterior_of_sums <- function(z, sums, model, start) {
  p <- native_posterior_of_sums(z, sums, model, start$jitter)
  s <- p$beta - start$beta
  rss <- sums$rss - 2 * sum(s * (sums$Ay - sums$G %*% start$beta)) + sum(s * (sums$G %*% s))
  c(list(jitter = start$jitter, L = p$L), sums[c("G", "Ay", "yy", "k_sum", "t")],
    list(C = p$C, beta = p$beta, rss = max(rss, 0), log_weights = sums$log_weights))
}

# FITC's noise of rows as a weight: s2 / w_n + E_nn.
fitc_weights <- function(rows, z, model, start) {
  left <- native_predict(start, z, model, rows$x)$unexplained
  1 / (1 / merged_weights(rows) + pmax(left, 0) / model$noise)
}

# What prediction beside near rows takes of FITC's posterior, with the sums it was made of, and back.
near_of_posterior <- function(p, model, neighbours) {
  list(L = p$L, C = p$C / sqrt(model$noise), beta = p$beta, jitter = p$jitter, neighbours = as.integer(neighbours),
       train_neighbours = 0L, sums = sums_of(p))
}

posterior_of_near <- function(near, model) {
  c(near$sums, list(L = near$L, C = near$C * sqrt(model$noise), beta = near$beta, jitter = near$jitter))
}

# Sums of p with those of rows more, or (`sign` -1) less.
sums_beside <- function(p, new, sign = 1) sums_merge(sums_of(p), lapply(new[names(sums_of(p))], `*`, sign))
