# Whether two fits are of the same data, also where one or both have left theirs out.

# Sums that tell one data set from another however its rows are merged or scaled, and the size of their terms, which
# tells a difference from rounding. Those of x and y alone are the same of rows that have swapped inputs, or residuals
# that have changed their signs; the sums w phi(x) and w y phi(x) of fixed pseudo-random functions phi are not.
data_signature <- function(data) {
  n <- nrow(data$x)
  if (n <= many_rows) return(signature_of(signature_sums(data), data$center))
  sums <- NULL
  for (start in seq(1L, n, by = as.integer(many_rows))) {
    i <- seq.int(start, min(n, start + many_rows - 1))
    part <- data[c("x", "y", "weights", "center", "scale", "shift")]
    part$x <- part$x[i, , drop = FALSE]
    part$y <- part$y[i]
    part$weights <- part$weights[i]
    part$n <- length(i)
    if (start > 1L) part$shift$ss <- 0 # once
    of_part <- signature_sums(part)
    sums <- if (is.null(sums)) of_part else Map(`+`, sums, of_part)
    gc(FALSE, full = FALSE) # copies of a part as large as the data, in all
  }
  sums$sums[["n"]] <- sums$size[["n"]] <- data$n # merged rows count as often as they occur
  signature_of(sums, data$center)
}

# What adds up over rows of it.
signature_sums <- function(data) {
  w <- merged_weights(data)
  y <- data$center + in_units(data, data$y)
  phi <- native_row_features(data$x, 3L)
  sums <- function(x, y, phi) {
    c(n = data$n, w = sum(w), x = drop(crossprod(x, w)), y = sum(w * y), xy = drop(crossprod(x, w * y)),
      yy = sum(w * y^2) + in_units(data, data$shift$ss, 2), phi = drop(crossprod(phi, w)),
      phi_y = drop(crossprod(phi, w * y)))
  }
  list(sums = sums(data$x, y, phi), size = sums(abs(data$x), abs(y), abs(phi)))
}

# Of rows more, or (`sign` -1) less.
signature_with <- function(signature, parts, sign = 1) {
  names <- names(parts$sums)
  signature_of(list(sums = signature$sums[names] + sign * parts$sums,
                    size = signature$size[names] + max(sign, 0) * parts$size), signature$sums[["center"]])
}

signature_of <- function(parts, center) {
  list(sums = c(parts$sums, center = center),
       size = c(parts$size, center = parts$size[["y"]] / parts$size[["w"]]))
}

# By their sums, and row by row where both fits have theirs.
same_data <- function(a, b) {
  if (!same_sums(a$signature, b$signature)) return(FALSE)
  is.null(a$data) || is.null(b$data) || same_rows(a$data, b$data)
}

# Equal inputs, once each, have the same weights and (weighted mean) responses, to rounding; in any order. Inputs that
# were computed twice and differ by rounding are left to the sums.
same_rows <- function(a, b) {
  if (!identical(a$x, b$x)) {
    a <- ordered_rows(a)
    b <- ordered_rows(b)
    if (!identical(a$x, b$x)) return(TRUE)
  }
  weight <- function(data) merged_weights(data)
  response <- function(data) data$center + in_units(data, data$y)
  size <- pmax(abs(response(a)), abs(response(b))) + abs(a$center)
  units <- 32
  if (!is.null(a$group) || !is.null(b$group)) { # a mean may be small beside what went into it
    size <- pmax(size, max(size))
    units <- 8 * (sqrt(a$n) + 16)
  }
  agree <- function(u, v, size) all(abs(u - v) <= units * .Machine$double.eps * size)
  agree(weight(a), weight(b), weight(a)) && agree(response(a), response(b), size)
}

# Each input once, by size.
ordered_rows <- function(data) {
  if (is.null(data$group)) {
    merged <- merge_equal_rows(data$x, data$y, data$weights, most = 1)
    data[c("x", "y", "weights")] <- merged[c("x", "y", "weights")]
    if (!is.null(merged$group)) data$group <- merged$group
  }
  by <- do.call(order, c(lapply(seq_len(ncol(data$x)), function(j) data$x[, j]), method = "radix"))
  data$x <- unname(data$x[by, , drop = FALSE])
  data$y <- data$y[by]
  data$weights <- data$weights[by]
  data
}

# Sums agree to rounding beside the size of their terms.
same_sums <- function(a, b) {
  if (length(a$sums) != length(b$sums) || a$sums[["n"]] != b$sums[["n"]]) return(FALSE)
  all(abs(a$sums - b$sums) <= 8 * (sqrt(a$sums[["n"]]) + 16) * .Machine$double.eps * pmax(a$size, b$size))
}
