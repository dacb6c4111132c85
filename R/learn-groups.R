# Learns a model of groups and a linear mean alone by restricted maximum likelihood (REML). It has N rows with weights
# W, noise s2, effects with design Z and covariance Lam Lam', and a mean with basis X (p columns). Then
#
#   -2 log REML = (N - p) log 2 pi + log det H + log det X'H^{-1}X + y'(H^{-1} - H^{-1}X (X'H^{-1}X)^{-1}X'H^{-1})y,
#   H = s2 W^{-1} + Z Lam Lam'Z',   T = I + Lam'Z'W Z Lam / s2,   log det H = log det T - sum log(w / s2).
#
# The sums Z'W Z, Z'W X, Z'W y are computed once. In T, the part of the group with most effects is block diagonal, so
# its effects are eliminated level by level. All terms follow from a Cholesky factor of the Schur complement.

# Learns kernel and noise by REML. Returns them in a list; its element learned_all is TRUE, as REML uses all rows.
learn_groups <- function(data, s, state) {
  start <- start_values(s$kernel, s$noise, data)
  compiled <- compile_kernel(start$kernel)
  of <- response_units(data)
  units <- parameter_units(compiled, data$x, of$signal)
  free <- s$names %in% s$free
  theta <- log(c(compiled$engine$values, start$noise))
  lower <- pmin(log(c(units$unit * units$low, of$floor * of$weight)), theta)
  upper <- pmax(log(c(units$unit * units$high, 10 * (of$variance * of$weight))), theta)
  last <- length(theta)
  model_at <- function(theta) {
    list(kernel = as_kernel(set_values(compiled, exp(theta[-last]))), noise = exp(theta[last]))
  }
  sums <- group_sums(start$kernel, data)
  evaluations <- 0L
  # If noise and variances of all groups are learned, multiply them by the factor `by` that maximises REML.
  variances <- c(compiled$table$leaf == 0L & !compiled$table$mean, FALSE)
  profiled <- all(free[variances]) && free[last]
  if (profiled) free[last] <- FALSE
  rows <- sums$n + data$shift$rows - sums$sizes[length(sums$sizes) - 1L]
  best <- -Inf
  objective <- function(par) {
    evaluations <<- evaluations + 1L
    theta[free] <- par
    now <- model_at(theta)
    found <- restricted_likelihood(sums, group_roots(now$kernel), now$noise, data$shift)
    by <- if (profiled) max(found$square / rows, exp(lower[last]) / now$noise) else 1
    reml <- found$reml + if (profiled) (found$square * (1 - 1 / by) - rows * log(by)) / 2 else 0
    if (reml > best) { # keeps the best parameters, for use after an interrupt
      best <<- reml
      theta[c(which(variances), last)] <- theta[c(which(variances), last)] + log(by)
      state$so_far <- c(model_at(theta), list(pilot = NULL, learned = NULL, kernels = NULL, learned_all = TRUE))
    }
    -reml
  }
  stats::nlminb(theta[free], objective, lower = lower[free], upper = upper[free],
                control = list(rel.tol = 1e-12, x.tol = 1e-8, iter.max = 500L, eval.max = 2000L))
  count_evaluations(state, "learn", list(evaluations = evaluations))
  state$so_far
}

# Returns the sums over rows that REML needs. "Terms" are the groups, the one with most effects first, then the basis of
# the mean, then y; the last two count as groups with one level. The elements are
#   blocks   for each level of the first term (p effects) a row: the p^2 sums of products of its design columns
#   crossed  crossed[[j]][[k]] has sums of products of the designs of later terms j and k; levels vary fastest
#   pairs    list(of_term, order, start, column). of_term: sums_of_pairs() of the first and each later term. `order`
#            sorts the sums by level of the first term; level l begins at start[l]. `column`: each sum's later effect
#   order, sizes, log_w, n  the order of the groups, the numbers of effects of the terms, sum of log weights, rows
group_sums <- function(kernel, data) {
  terms <- lapply(group_roots(kernel), function(term) {
    level <- data$x[, term$level]
    list(code = match(level, unique(level)), levels = length(unique(level)), design = t(design_of(term, data$x)))
  })
  effects <- function(t) t$levels * ncol(t$design)
  order <- order(-vapply(terms, effects, 0))
  n <- length(data$y)
  one <- function(design) list(code = rep(1L, n), levels = 1L, design = design)
  terms <- c(terms[order], list(one(flat_basis(kernel, data$x)), one(cbind(data$y))))
  w <- merged_weights(data)
  sizes <- vapply(terms, effects, 0)
  check_memory(16 * sum(sizes[-1L])^2, "the sums over pairs of levels of two groups")
  first <- terms[[1L]]
  p <- ncol(first$design)
  at <- expand.grid(a = seq_len(p), b = seq_len(p))
  blocks <- rowsum(w * first$design[, at$a, drop = FALSE] * first$design[, at$b, drop = FALSE], first$code)
  dense <- function(one, two) {
    found <- sums_of_pairs(one, two, w)
    p <- ncol(one$design)
    out <- matrix(0, p * one$levels, found$effects * found$size)
    at <- expand.grid(a = seq_len(p) - 1, b = seq_len(found$effects) - 1)
    for (i in seq_len(nrow(at))) {
      out[cbind(at$a[i] * one$levels + found$level, at$b[i] * found$size + found$other)] <- found$sums[, i]
    }
    out
  }
  crossed <- lapply(seq_along(terms), function(j) {
    lapply(seq_along(terms), function(k) if (j > 1L && k >= j) dense(terms[[j]], terms[[k]]))
  })
  pairs <- lapply(terms[-1L], sums_of_pairs, one = first, w = w)
  before <- cumsum(c(0, vapply(pairs, function(t) t$size * t$effects, 0)))
  column <- unlist(Map(function(t, before) {
    before + rep(seq_len(t$effects) - 1, each = length(t$other)) * t$size + t$other
  }, pairs, before[seq_along(pairs)]))
  level <- unlist(lapply(pairs, function(t) rep(t$level, t$effects)))
  in_order <- order(level, column)
  pairs <- list(of_term = pairs, order = in_order, start = 1L + c(0L, cumsum(tabulate(level, first$levels))),
                column = as.integer(column[in_order]))
  list(order = order, blocks = blocks, pairs = pairs, crossed = crossed, sizes = sizes,
       log_w = sum_of_logs(data$weights), n = n)
}

# Returns independent basis columns of the linear mean. Attribute `rate` converts slopes to units of the inputs.
flat_basis <- function(kernel, x) {
  leaf <- Find(is_mean, as_sum(kernel)$leaves)
  if (is.null(leaf)) return(matrix(0, nrow(x), 0L))
  U <- mean_basis(leaf, x)
  qr <- qr(U, tol = 1e-9)
  kept <- sort(qr$pivot[seq_len(qr$rank)])
  structure(U[, kept, drop = FALSE], rate = c(1, leaf$rate)[kept])
}

# Returns logLik() of a fit of groups and a linear mean alone, in units of y and the inputs. Unless `restricted` is TRUE
# or the user fixed a variance, all variances first get the common factor that maximises the likelihood, as in lme4.
likelihood_of_groups <- function(fit, restricted) {
  model <- model_of(fit)
  kernel <- as_kernel(model$kernel)
  sums <- group_sums(kernel, fit$data)
  found <- restricted_likelihood(sums, group_roots(kernel), model$noise, fit$data$shift)
  rate <- attr(flat_basis(kernel, fit$data$x), "rate")
  n <- sums$n + fit$data$shift$rows
  given <- fit$hyper == "fixed" || any(grepl("(variance|^noise)$", fit$control$fix)) || asks_no_noise(fit$asked$noise)
  value <- if (restricted) found$reml + sum(log(rate)) + length(rate) * log(model$scale) else
    found$ml + if (given) 0 else (found$square - n - n * log(found$square / n)) / 2
  structure(value - sums$log_w / 2 + fit$data$shift$constant, df = fit$df + length(rate), nobs = fit$nobs,
            class = "logLik")
}

# Returns list(level, other, size, effects, sums) for two terms. For each pair of their levels that occurs in a row, it
# has the first term's level (`level`), the second term's (`other`), and sums of products of their design columns (the
# first term's vary faster). `size` and `effects` are the numbers of levels and effects of the second term.
sums_of_pairs <- function(one, two, w) {
  pair <- one$code + one$levels * (two$code - 1)
  met <- sort(unique(pair)) - 1
  at <- expand.grid(a = seq_len(ncol(one$design)), b = seq_len(ncol(two$design)))
  sums <- Map(function(a, b) rowsum(w * one$design[, a] * two$design[, b], pair), at$a, at$b)
  list(level = as.integer(met %% one$levels) + 1L, other = as.integer(met %/% one$levels) + 1L, size = two$levels,
       effects = ncol(two$design), sums = unname(do.call(cbind, c(list(matrix(0, length(met), 0L)), sums))))
}

# Returns list(reml, ml, square): restricted and ordinary log likelihood (-Inf if the factorisation fails), and the term
# of -2 log REML that is quadratic in y. If noise and variances are multiplied by c, the log likelihood of n rows
# changes by (square (1 - 1 / c) - n log c) / 2. For REML with p columns of the mean, n - p replaces n.
restricted_likelihood <- function(sums, roots, noise, shift) {
  last <- length(sums$sizes)
  lam <- c(lapply(roots[sums$order], `[[`, "root"), list(diag(1, sums$sizes[last - 1L])), list(diag(1)))
  scaled <- function(j, k) t(with_root(t(with_root(sums$crossed[[j]][[k]], lam[[j]])), lam[[k]])) / noise
  first <- lam[[1L]]
  p <- nrow(first)
  P <- sums$blocks %*% kronecker(first, first) / noise
  diagonal <- seq(1L, p^2, by = p + 1L)
  P[, diagonal] <- P[, diagonal] + 1
  L <- row_choleskys(P, p)
  later <- seq_len(last)[-1L]
  size <- sum(sums$sizes[later])
  end <- cumsum(sums$sizes[later])
  K <- matrix(0, size, size)
  for (j in later) for (k in later[later >= j]) {
    K[end[j - 1L] - sums$sizes[j] + seq_len(sums$sizes[j]), end[k - 1L] - sums$sizes[k] + seq_len(sums$sizes[k])] <-
      scaled(j, k)
  }
  effects <- seq_len(size - sum(sums$sizes[last - 1:0]))
  K[cbind(effects, effects)] <- K[cbind(effects, effects)] + 1
  # The sums form a matrix: L L' for the first term, K for later terms, B between. With C = L^{-1} B, K becomes K - C'C.
  pairs <- sums$pairs
  entries <- Map(function(t, root) {
    scaled <- t$sums %*% kronecker(root, first) / noise
    of_level <- L[t$level, , drop = FALSE]
    lapply(seq_len(t$effects), function(b) level_solve(of_level, scaled[, (b - 1L) * p + seq_len(p), drop = FALSE]))
  }, pairs$of_term, lam[-1L])
  entries <- do.call(rbind, unlist(entries, recursive = FALSE))[pairs$order, , drop = FALSE]
  K <- t(K - native(ffi_level_products, t(entries), pairs$start, pairs$column, as.integer(size)))
  diag(K) <- diag(K) - 1
  R <- with_dense_products(native(ffi_factor, K, numeric(size), 0L), engine_control(size))
  if (R$status != 0L) return(list(reml = -Inf, ml = -Inf, square = 1))
  R <- diag(R$C)
  logs <- 2 * log(R)
  flat <- length(effects) + seq_len(sums$sizes[last - 1L])
  ml <- -(sums$n * log(2 * pi * noise) - sums$log_w + 2 * sum(log(L[, diagonal])) + sum(logs[effects]) +
            R[size]^2) / 2 + merged_log_density(shift, noise)
  list(reml = ml + (length(flat) * log(2 * pi) - sum(logs[flat])) / 2, ml = ml, square = R[size]^2 + shift$ss / noise)
}

# Multiplies the p effects of each level by root', a p x p matrix. Row (a - 1) levels + l of m has effect a of level l.
with_root <- function(m, root) {
  p <- nrow(root)
  if (p < 2L) return(m * if (p) c(root) else 1)
  levels <- nrow(m) / p
  do.call(rbind, lapply(seq_len(p), function(a) {
    Reduce(`+`, lapply(a:p, function(b) root[b, a] * m[(b - 1L) * levels + seq_len(levels), , drop = FALSE]))
  }))
}

# Solves L u = v for each row v of C. The argument L has the p x p Cholesky factor for row i of C as its row i.
level_solve <- function(L, C) {
  p <- ncol(C)
  for (a in seq_len(p)) {
    for (b in seq_len(a - 1L)) C[, a] <- C[, a] - L[, a + p * (b - 1L)] * C[, b]
    C[, a] <- C[, a] / L[, a + p * (a - 1L)]
  }
  C
}
