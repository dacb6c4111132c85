# Equal input rows are merged: one row with the sum of their weights and the weighted mean of their responses. The
# posterior and the exact GP stay the same. Rows that also repeat a response may be copies, which are recognised here.

# Returns for each row the number of its group of equal rows, groups in order of appearance; NULL if more than `most`
# rows are distinct. Each column separates rows further; rows that no other row equals so far are not looked at again.
# So data without repeats take a sort or two, and memory for a column, not for a copy of x. Numbers are compared as
# floating-point numbers (0 equals -0).
equal_rows <- function(x, most = nrow(x)) {
  n <- nrow(x)
  if (n < 2L || !ncol(x)) return(NULL)
  row <- seq_len(n) # rows that may still equal another: group by group, ascending within a group
  id <- NULL        # the group of each of them; NULL: one group
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

# Merges equal rows if at most the share `most` of the rows is left. With W_g = sum of w_n and m_g the weighted mean
# over a group of equal rows,
#   log p(y) = log p(merged) + (sum_n log w_n - sum_g log W_g)/2
#              - (N - N_g) log(2 pi s2)/2 - ss/(2 s2),   ss = sum_n w_n (y_n - m_g)^2.
# `twins` has the further rows and the squares of each group.
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

# Returns for each used row the number of its group of copies, rows with equal inputs and equal response; NULL if the
# repeats are not copies. Repeats are copies, as in bootstrap samples and merged tables, if rows with equal inputs agree
# in their response far more often than chance gives: kappa = (agreement - chance) / (1 - chance) > copies$kappa. Chance
# is the agreement of two rows drawn from all. Few different responses (grades, counts of few) are never copies.
# `y`: the response of each row; `group`: the groups of equal inputs.
copies_of <- function(y, group) {
  if (is.null(group) || !anyDuplicated(group)) return(NULL)
  each <- equal_rows(cbind(group, y))
  if (is.null(each)) return(NULL)
  times <- tabulate(each)                # rows with these inputs and this response
  of <- group[!duplicated(each)]         # their group of equal inputs
  rows <- tabulate(group)
  if (length(unique(y[!duplicated(each)][times > 1L])) < copy_rule[["responses"]]) return(NULL)
  agree <- drop(rowsum(times * (times - 1), of)) / (rows * pmax(rows - 1, 1)) # pairs of a group that agree
  chance <- sum((tabulate(match(y, y)) / length(y))^2)
  agreement <- sum((rows - 1) * agree) / sum(rows - 1)
  if ((agreement - chance) / (1 - chance) > copy_rule[["kappa"]]) each
}

# Returns the cleaned response of each used row, before equal rows were merged.
response_of_rows <- function(data) {
  r <- data$response - if (is.null(data$offset)) 0 else data$offset
  if (!is.null(data$prior_weights)) r <- r[data$prior_weights > 0]
  unname((r - data$center) / data$scale)
}

# Returns the groups of copies among the used rows of the data, see copies_of(). Non-Gaussian likelihoods, working
# responses and samples of a source's rows have none.
copies_in <- function(data) {
  if (!is.null(data$sites) || is.null(data$center)) return(NULL)
  group <- merge_all_equal_rows(data)$group
  y <- response_of_rows(data)
  if (length(group) == length(y)) copies_of(y, group)
}

# Returns the data with each (x, y) once, with the mean weight of its copies. `copies`: how many rows were left out.
without_copies <- function(data) {
  copy <- copies_in(data)
  if (is.null(copy)) return(data)
  first <- which(!duplicated(copy))
  w <- data$prior_weights[data$prior_weights > 0]
  data$x <- if (is.null(data$group)) data$x[first, , drop = FALSE] else data$x[data$group[first], , drop = FALSE]
  data$y <- response_of_rows(data)[first]
  data["weights"] <- list(if (length(w)) drop(unname(rowsum(w, copy, reorder = FALSE))) / tabulate(copy))
  data[c("group", "twins")] <- list(NULL, NULL)
  data$shift[c("rows", "ss")] <- list(0, 0)
  data$copies <- length(copy) - length(first)
  data$n <- length(first)
  data
}
