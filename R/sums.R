# Sums over rows as plain values. The sums of two sets of rows add up, so that rows can be read in parts and in several
# processes. The posterior is made of the sums over all rows.

# Returns the sums that a posterior on z needs from rows, list(x, y, weights). `start` is a posterior on the same points
# and has their jitter. `rss` is the sum of squares of its residuals, for posterior_of_sums().
rows_sums <- function(rows, z, model, start, control = NULL) {
  sums <- native_sums("vfe", NULL, z, rows, model, start$jitter, control)
  e <- rows$y - native_predict(start, z, model, rows$x)$mean
  sums$rss <- sum(merged_weights(rows) * e^2)
  sums
}

# Returns the parts of a start that rows_sums() and fitc_weights() read, to send them to another process.
as_start <- function(p) p[c("jitter", "L", "C", "beta")]

# Returns the sums that a posterior was made of, with its own residuals.
sums_of <- function(p) {
  c(p[c("G", "Ay", "yy", "k_sum", "t", "rss")], list(log_weights = if (is.null(p$log_weights)) 0 else p$log_weights))
}

# Returns the posterior as native_posterior() does. The residuals of b + s follow from those of b:
#   |y - A'(b + s)|^2 = |y - A'b|^2 - 2 s'(A y - G b) + s'G s,
# No digits cancel, because b is close to the result and the first term dominates.
posterior_of_sums <- function(z, sums, model, start) {
  p <- native_posterior_of_sums(z, sums, model, start$jitter)
  s <- p$beta - start$beta
  rss <- sums$rss - 2 * sum(s * (sums$Ay - sums$G %*% start$beta)) + sum(s * (sums$G %*% s))
  c(list(jitter = start$jitter, L = p$L), sums[c("G", "Ay", "yy", "k_sum", "t")],
    list(C = p$C, beta = p$beta, rss = max(rss, 0), log_weights = sums$log_weights))
}

# Returns FITC's noise of each row, s2 / w_n + E_nn, as a weight.
fitc_weights <- function(rows, z, model, start) {
  left <- native_predict(start, z, model, rows$x)$unexplained
  1 / (1 / merged_weights(rows) + pmax(left, 0) / model$noise)
}

# Converts FITC's posterior into the element `near` of a fit, with the sums it was made of, and back.
near_of_posterior <- function(p, model, neighbours) {
  list(L = p$L, C = p$C / sqrt(model$noise), beta = p$beta, jitter = p$jitter, neighbours = as.integer(neighbours),
       train_neighbours = 0L, sums = sums_of(p))
}

posterior_of_near <- function(near, model) {
  c(near$sums, list(L = near$L, C = near$C * sqrt(model$noise), beta = near$beta, jitter = near$jitter))
}

# Returns the sums of p after rows are added (`sign` = 1) or removed (`sign` = -1).
sums_beside <- function(p, new, sign = 1) sums_merge(sums_of(p), lapply(new[names(sums_of(p))], `*`, sign))
