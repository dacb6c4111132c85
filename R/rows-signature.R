# Merges rows with equal inputs into one row with the sum of their weights and the weighted mean of their responses,
# which does not change posteriors. Recognises copies, rows that also have equal responses. Identifies data by sums.

# With more rows than this, the code saves memory: it sums over parts of the rows, copies less, and frees memory early.
many_rows <- 1e5

# Returns the number of each row's group of equal rows (0 equals -0), in order of appearance, or NULL if more than
# `most` rows are distinct. To save time, columns with few ties come first, and columns are sorted only for rows that
# equal another in earlier columns.
equal_rows <- function(x, most = nrow(x)) {
  n <- nrow(x)
  if (n < 2L || !ncol(x)) return(NULL)
  row <- seq_len(n) # rows that may still equal another, ordered by group
  id <- rep(1L, n)  # groups of these rows
  few <- x[seq_len(min(n, 64L)), , drop = FALSE]
  for (j in order(colSums(few == rep(few[1L, ], each = nrow(few))))) { # few ties first
    v <- x[row, j]
    o <- order(id, v, method = "radix")
    same <- diff(v[o]) == 0 & diff(id[o]) == 0L
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

# Merges equal rows if at most the share `most` of the rows is distinct. With the noise variance s2, the sum W_g of the
# weights w_n and their weighted mean response m_g over a group g, N rows and N_g groups, the log density of all rows is
#   log p(y) = log p(merged) + (sum_n log w_n - sum_g log W_g)/2
#              - (N - N_g) log(2 pi s2)/2 - ss/(2 s2),   ss = sum_n w_n (y_n - m_g)^2.
# `twins` in the result has, for each group, the number of further rows and the terms of `ss`.
merge_equal_rows <- function(x, y, weights, most = 0.9, group = if (most > 0) equal_rows(x, most = most * nrow(x))) {
  if (is.null(group)) return(list(x = x, y = y, weights = weights, group = NULL, rows = 0, ss = 0))
  first <- which(!duplicated(group))
  w <- weights %||% rep(1, length(y))
  # Differences from the first response of a group have no rounding error if all its responses are equal.
  origin <- y[first]
  sums <- unname(rowsum(cbind(w, w * (y - origin[group])), group, reorder = FALSE))
  mean_y <- origin + sums[, 2L] / sums[, 1L]
  squares <- w * (y - mean_y[group])^2
  twins <- unname(rowsum(cbind(rep(1, length(y)), squares), group, reorder = FALSE))
  list(x = x[first, , drop = FALSE], y = mean_y, weights = sums[, 1L], group = group,
       rows = length(y) - length(first), ss = sum(squares), twins = list(rows = twins[, 1L] - 1, ss = twins[, 2L]))
}

# Merges all equal rows, even if there are few. `group` has the number of each row's group of equal rows.
merge_all_equal_rows <- function(data, group = equal_rows(data$x, nrow(data$x) - 1)) {
  if (!is.null(data$group)) return(data)
  m <- merge_equal_rows(data$x, data$y, data$weights, group = group)
  if (is.null(m$group)) return(data)
  data[c("x", "y", "weights", "group", "twins")] <- m[c("x", "y", "weights", "group", "twins")]
  data$shift[c("rows", "ss")] <- m[c("rows", "ss")]
  data
}

# Returns the number of each row's group of copies (equal inputs and response), or NULL if there are no copies. `group`
# has the groups of equal inputs. Rows are copies, as in bootstrap samples, if responses of equal inputs agree more
# often than by chance: kappa = (agreement - chance) / (1 - chance) > copy_rule["kappa"]. Two random rows have equal
# responses with probability `chance`. All rows are copies (a repeated table) if each (x, y) occurs a multiple of k >= 2
# times, and this is unlikely by chance. Else rows are no copies, as with grades, if chance > copy_rule["chance"] and
# repeated (x, y) have fewer than copy_rule["responses"] different responses.
copies_of <- function(y, group) {
  if (is.null(group) || !anyDuplicated(group)) return(NULL)
  each <- equal_rows(cbind(group, y))
  times <- tabulate(each)                # rows in each group of equal (x, y)
  of <- group[!duplicated(each)]         # the group of equal x
  rows <- tabulate(group)
  chance <- sum((tabulate(match(y, y)) / length(y))^2)
  whole <- min(times) > 1L && any(vapply(seq(2L, min(times)), function(k) all(times %% k == 0L), NA))
  if (whole && length(y) / 2 * log(chance) < log(copy_rule[["whole"]])) return(each)
  few <- length(unique(y[!duplicated(each)][times > 1L])) < copy_rule[["responses"]]
  if (few && chance > copy_rule[["chance"]]) return(NULL)
  agree <- drop(rowsum(times * (times - 1), of)) / (rows * pmax(rows - 1, 1)) # is the share of pairs that agree
  agreement <- sum((rows - 1) * agree) / sum(rows - 1)
  if ((agreement - chance) / (1 - chance) > copy_rule[["kappa"]]) each
}

# Returns the elements of v for the rows of positive weight. v has an element for each given row.
of_used_rows <- function(data, v) if (is.null(data$prior_weights)) v else v[data$prior_weights > 0]

# Returns the centred and scaled response of each row of positive weight, before equal rows were merged.
response_of_rows <- function(data) {
  y <- if (is.null(data$offset)) data$response else data$response - data$offset
  unname((of_used_rows(data, y) - data$center) / data$scale)
}

# Returns the number of each row's group of copies (equal inputs and response). Data with a non-Gaussian likelihood,
# working rows and samples of a row source have no copies.
copies_in <- function(data) {
  if (!is.null(data$sites) || is.null(data$center)) return(NULL)
  group <- merge_all_equal_rows(data)$group
  y <- response_of_rows(data)
  if (length(group) == length(y)) copies_of(y, group)
}

# Returns the data with each distinct (x, y) once, with the mean weight of its copies. `copies` counts the omitted rows.
without_copies <- function(data) {
  copy <- copies_in(data)
  if (is.null(copy)) return(data)
  first <- which(!duplicated(copy))
  w <- data$prior_weights[data$prior_weights > 0]
  data$x <- if (is.null(data$group)) data$x[first, , drop = FALSE] else data$x[data$group[first], , drop = FALSE]
  data$y <- response_of_rows(data)[first]
  data["weights"] <- list(if (length(w)) drop(unname(rowsum(w, copy, reorder = FALSE))) / tabulate(copy))
  data[c("group", "twins")] <- list(NULL)
  data$shift[c("rows", "ss")] <- 0
  data$copies <- length(copy) - length(first)
  data$n <- length(first)
  data
}

merged_weights <- function(data) if (is.null(data$weights)) rep(1, nrow(data$x)) else data$weights
root_weights <- function(data) if (is.null(data$weights)) 1 else sqrt(data$weights)

# Returns the mean weight, to get a unit of the noise variance s2 from the mean square of y (row n has the noise
# variance s2 / w_n). If most of sum_n w_n (y_n - mean)^2 is from a few rows with huge weights, the mean weight is
# multiplied by the share of this sum that remains if weights are at most their median.
mean_weight <- function(data) {
  w <- data$weights
  if (is.null(w)) return(1)
  squares <- (data$y - sum(w * data$y) / sum(w))^2
  share <- sum(pmin(w, stats::median(w)) * squares) / sum(w * squares)
  sum(w) / data$n * if (isTRUE(share < few_squares)) share else 1
}

given_response <- function(data) data$given_response %||% data$response

# Returns the smallest difference between two distinct responses, or 0 if all are equal.
smallest_step <- function(y) {
  y <- sort(unique(unname(y)))
  if (length(y) > 1L) min(diff(y)) else 0
}

# Returns the part of log p(y) that merging lost: shift$rows rows with the sum of squares shift$ss about group means.
merged_log_density <- function(shift, noise) -(shift$rows / 2) * log(2 * pi * noise) - shift$ss / (2 * noise)

# Returns a few sums that hardly ever agree for other rows, or for another order of the rows.
fingerprint <- function(data) {
  i <- seq_along(data$y) / length(data$y)
  w <- merged_weights(data)
  unname(c(dim(data$x), colSums(data$x), crossprod(data$x, i), sum(data$y), sum(data$y * i), sum(w), sum(w * i)))
}

# Returns numbers that differ if inputs and weights are in another order.
order_of_rows <- function(data) fingerprint(list(x = data$x, y = numeric(nrow(data$x)), weights = data$weights))

# ---- comparison of the data of two fits, with or without their rows -------------------------------------------------

# Returns list(sums, size). `sums` over rows identify data however rows are merged or scaled. `size` has the sums of
# absolute terms: rounding errors are relative to it. Because sums of x and y would not notice swapped inputs, there are
# also sums of w phi(x) and w y phi(x) with pseudo-random functions phi.
data_signature <- function(data) {
  n <- nrow(data$x)
  if (n <= many_rows) return(signature_of(signature_sums(data), data$center))
  sums <- NULL
  for (start in seq(1L, n, by = as.integer(many_rows))) {
    i <- seq.int(start, min(n, start + many_rows - 1))
    part <- data[c("center", "scale", "shift")]
    part[c("x", "y", "weights", "n")] <- list(data$x[i, , drop = FALSE], data$y[i], data$weights[i], length(i))
    if (start > 1L) part$shift$ss <- 0 # counts the squares only once
    now <- signature_sums(part)
    sums <- if (is.null(sums)) now else Map(`+`, sums, now)
    gc(FALSE, full = FALSE) # frees the part's memory
  }
  sums$sums[["n"]] <- sums$size[["n"]] <- data$n # counts rows before merging
  signature_of(sums, data$center)
}

# Returns sums over a part of the rows that identify the data, and `size`, the sums of absolute terms.
signature_sums <- function(data) {
  w <- merged_weights(data)
  y <- data$center + in_units(data, data$y)
  phi <- native(ffi_row_features, data$x, 3L)
  sums <- function(x, y, phi) {
    c(n = data$n, w = sum(w), x = drop(crossprod(x, w)), y = sum(w * y), xy = drop(crossprod(x, w * y)),
      yy = sum(w * y^2) + in_units(data, data$shift$ss, 2), phi = drop(crossprod(phi, w)),
      phi_y = drop(crossprod(phi, w * y)))
  }
  list(sums = sums(data$x, y, phi), size = sums(abs(data$x), abs(y), abs(phi)))
}

signature_of <- function(parts, center) {
  list(sums = c(parts$sums, center = center), size = c(parts$size, center = parts$size[["y"]] / parts$size[["w"]]))
}

# Returns TRUE if two fits have data with equal sums, see data_signature(), and equal rows, if both fits keep them.
same_data <- function(a, b) {
  same_sums(a$signature, b$signature) && (is.null(a$data) || is.null(b$data) || same_rows(a$data, b$data))
}

# Returns TRUE if two signatures list(sums, size) agree up to rounding errors, which are relative to `size`.
same_sums <- function(a, b) {
  if (length(a$sums) != length(b$sums) || a$sums[["n"]] != b$sums[["n"]]) return(FALSE)
  all(abs(a$sums - b$sums) <= 8 * (sqrt(a$sums[["n"]]) + 16) * .Machine$double.eps * pmax(a$size, b$size))
}

# Returns TRUE if merged rows have the same weights and mean responses up to rounding, in any order. Returns TRUE also
# if inputs differ: rounding may be the cause, and the caller has compared sums over the rows.
same_rows <- function(a, b) {
  if (!identical(a$x, b$x)) {
    a <- ordered_rows(a)
    b <- ordered_rows(b)
    if (!identical(a$x, b$x)) return(TRUE)
  }
  response <- function(data) data$center + in_units(data, data$y)
  size <- pmax(abs(response(a)), abs(response(b))) + abs(a$center)
  units <- 32
  if (!is.null(a$group) || !is.null(b$group)) { # large responses of both signs may have a small mean
    size <- pmax(size, max(size))
    units <- 8 * (sqrt(a$n) + 16)
  }
  agree <- function(u, v, size) all(abs(u - v) <= units * .Machine$double.eps * size)
  agree(merged_weights(a), merged_weights(b), merged_weights(a)) && agree(response(a), response(b), size)
}

# Returns the data with equal rows merged and rows sorted by their inputs.
ordered_rows <- function(data) {
  data <- merge_all_equal_rows(data)
  by <- do.call(order, c(lapply(seq_len(ncol(data$x)), function(j) data$x[, j]), method = "radix"))
  data$x <- unname(data$x[by, , drop = FALSE])
  data$y <- data$y[by]
  data$weights <- data$weights[by]
  data
}
