# Learning with grouped effects: the Vecchia likelihood of the smooth part with the effects integrated out
# (src/integrated.h). One likelihood of smooth part and groups would see neighbours through the noise of their levels.

# Returns the rows to learn from, at most `most`: as many levels as effect_learning allows, some rows of each, and
# rows at random beyond. With whole levels, few levels would have little information about their variance.
rows_of_levels <- function(x, columns, most,
                           most_levels = effect_learning[[if (nrow(x) <= exact_learning_rows) "few" else "levels"]]) {
  rows <- seq_len(nrow(x))
  if (nrow(x) > most) most_levels <- min(most_levels, max(2, most %/% effect_learning[["rows"]]))
  for (column in columns[order(-apply(x[, columns, drop = FALSE], 2L, max))]) {
    levels <- unique(x[rows, column])
    if (length(levels) > most_levels) {
      rows <- rows[x[rows, column] %in% levels[sample.int(length(levels), most_levels)]]
    }
  }
  if (length(rows) <= most) return(rows)
  rows <- rows[sample.int(length(rows))]
  first <- stats::ave(seq_along(rows), x[rows, columns[1L]], FUN = seq_along) <= effect_learning[["rows"]]
  sort(rows[order(!first)[seq_len(most)]])
}

# Numbers the levels of a pool from 1. Its first rows are those of the lowest rank: their neighbours are among them, as
# the likelihood with effects integrated out needs it.
with_levels <- function(pool, columns) {
  for (column in columns) pool$x[, column] <- match(pool$x[, column], sort(unique(pool$x[, column])))
  pool$levels <- apply(pool$x[, columns, drop = FALSE], 2L, max)
  by_rank <- order(pool$rank)
  pool$take <- function(count) by_rank[seq_len(min(count, pool$n))]
  pool
}

# Returns list(value, score, information) in the logs of the parameters of now$kernel and of the noise, and in the
# coefficients of the columns of `basis` (native_vecchia()). The information about the smooth part is that for known
# effects.
integrated_likelihood <- function(pool, now, rows, neighbours, slopes, at, basis = matrix(0, nrow(pool$x), 0L)) {
  groupings <- groupings_of(now$kernel, pool$levels)
  to <- engine_model(smooth_model(now))
  # V and b are the effects' covariance and mean
  result <- as_value(native(ffi_integrated, to, groupings, at$rows, pool$weights, basis, rows, neighbours,
                            as.integer(slopes), at$control), to)
  if (!is.finite(result$value) || !slopes) return(result["value"])
  table <- now$kernel$table
  own <- c(!table$term %in% vapply(groupings, `[[`, 0L, "term"), rep(TRUE, 1L + ncol(basis)))
  found <- list(value = result$value, score = numeric(length(own)), information = matrix(0, length(own), length(own)))
  of_smooth <- utils::tail(seq_along(result$score), sum(own)) # a smooth part that is not there has a variance of 0
  found$score[own] <- result$score[of_smooth]
  found$information[own, own] <- result$information[of_smooth, of_smooth]
  first <- 0L
  for (g in groupings) {
    i <- which(table$term == g$term)
    slope <- slopes_of_group(g, result, first, now$kernel, i)
    found$score[i] <- slope$score
    found$information[i, i] <- slope$information
    first <- first + effects_of_grouping(g)
  }
  found
}

# With b and V the mean and the covariance of the effects, S = sum_l (b_l b_l' + V_l) and the covariance C of a level:
#
#   score = tr(C^{-1} dC C^{-1} (S - G C)) / 2,   information ~ G tr(B dC B dC) / 2,   B = C^{-1} (C - mean V_l) C^{-1}.
#
# Parameters `at` of the kernel are those of the group; dC is a central difference for all but the variance.
slopes_of_group <- function(g, result, first, kernel, at) {
  p <- nrow(g$root)
  C <- tcrossprod(g$root)
  inverse <- chol2inv(t(g$root))
  own <- first + matrix(seq_len(p * g$levels), p)
  b <- matrix(result$b[own], p)
  V <- matrix(0, p, p)
  for (i in seq_len(p)) for (j in seq_len(p)) V[i, j] <- sum(result$V[cbind(own[i, ], own[j, ])])
  excess <- inverse %*% (tcrossprod(b) + V - g$levels * C) %*% inverse
  B <- inverse %*% (C - V / g$levels) %*% inverse
  which_root <- match(g$term, which(plain_groups(kernel)))
  values <- kernel$engine$values
  moved <- function(i, step) {
    tcrossprod(group_roots(set_values(kernel, replace(values, i, values[i] * exp(step))))[[which_root]]$root)
  }
  slopes <- lapply(at, function(i) {
    if (kernel$table$leaf[i] == 0L) C else (moved(i, 1e-4) - moved(i, -1e-4)) / 2e-4
  })
  weighted <- lapply(slopes, function(d) B %*% d)
  list(score = vapply(slopes, function(d) sum(excess * d), 0) / 2,
       information = outer(seq_along(slopes), seq_along(slopes), Vectorize(function(i, j) {
         g$levels * sum(weighted[[i]] * t(weighted[[j]])) / 2
       })))
}
