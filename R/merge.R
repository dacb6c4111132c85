# Equal input rows count once, with the sum of their weights and the weighted mean of their
# responses: same posterior, same exact GP, fewer rows.

# The row of the first equal row, numbered by first appearance; NULL when more than `most` rows are
# distinct. One column after another tells rows apart, and those that no other row equals so far are done with: data
# without repeats are done after a sort or two, and what is held at a time is a column, never a copy of x. Equality is
# of floating-point numbers (0 and -0 are equal).
equal_rows <- function(x, most = nrow(x)) {
  n <- nrow(x)
  if (n < 2L || !ncol(x)) return(NULL)
  row <- seq_len(n) # those in doubt, group by group, ascending in each
  id <- NULL        # the group of each; NULL: one
  for (j in seq_len(ncol(x))) {
    v <- x[row, j]
    o <- if (is.null(id)) order(v, method = "radix") else order(id, v, method = "radix")
    same <- diff(v[o]) == 0
    if (!is.null(id)) same <- same & diff(id[o]) == 0L
    if (n - sum(same) > most) return(NULL)
    again <- c(FALSE, same)
    doubtful <- again | c(same, FALSE)
    id <- cumsum(!again)[doubtful]
    row <- row[o[doubtful]]
    if (!length(row)) break
  }
  first <- seq_len(n)
  first[row] <- row[match(id, id)]
  cumsum(first == seq_len(n))[first]
}

# With W_g = sum of w_n and m_g the weighted mean over a group of equal rows,
#   log p(y) = log p(merged) + (sum_n log w_n - sum_g log W_g)/2
#              - (N - N_g) log(2 pi s2)/2 - ss/(2 s2),   ss = sum_n w_n (y_n - m_g)^2.
# `twins`: both by groups. Merges only when that leaves at most the share `most` of the rows.
merge_equal_rows <- function(x, y, weights, most = 0.9) {
  group <- equal_rows(x, most = most * nrow(x))
  if (is.null(group)) return(list(x = x, y = y, weights = weights, group = NULL, rows = 0, ss = 0))
  first <- which(!duplicated(group))
  w <- if (is.null(weights)) rep(1, length(y)) else weights
  # differences from the group's first response: exact for a row on its own and for equal responses
  origin <- y[first]
  sums <- unname(rowsum(cbind(w, w * (y - origin[group])), group, reorder = FALSE))
  mean_y <- origin + sums[, 2L] / sums[, 1L]
  squares <- w * (y - mean_y[group])^2
  twins <- unname(rowsum(cbind(rep(1, length(y)), squares), group, reorder = FALSE))
  list(x = x[first, , drop = FALSE], y = mean_y, weights = sums[, 1L], group = group,
       rows = length(y) - length(first), ss = sum(squares), twins = list(rows = twins[, 1L] - 1, ss = twins[, 2L]))
}

# Merges equal rows however few they are.
merge_all_equal_rows <- function(data) {
  if (!is.null(data$group)) return(data)
  m <- merge_equal_rows(data$x, data$y, data$weights, most = 1 - 1 / nrow(data$x))
  if (is.null(m$group)) return(data)
  data[c("x", "y", "weights", "group", "twins")] <- m[c("x", "y", "weights", "group", "twins")]
  data$shift[c("rows", "ss")] <- m[c("rows", "ss")]
  data
}
