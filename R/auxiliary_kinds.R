# How auxiliary distributions are made of data. A new one is an entry of aux_kinds and a function in auxiliary.R that
# describes it; or, with no line here, aux_custom().

# `data`: x, y, weights and, where equal rows were merged, group (rows are drawn before merging). `m`: inducing points.
# `reference`: one of the same model, whose first points serve aux_reference().
make_auxiliary <- function(how, data, model, m, control = NULL, reference = NULL) {
  aux <- aux_kinds[[how$kind]]$make(how, data, model, m, control, reference)
  aux$made_from <- fingerprint(data)
  keep_rows(aux, data, control)
}

# The one that a fit was optimised under.
auxiliary_of_fit <- function(fit, data, model) {
  if (is.null(fit$aux_points) || !is.null(fit$aux$make)) return(make_auxiliary(fit$aux, data, model, fit$m))
  if (!is.null(fit$aux_rows)) return(exact_on_rows(data, fit$aux_rows, model))
  make_auxiliary(aux_on_points(fit$aux_points), data, model, fit$m)
}

fill_size <- function(how, n, ...) {
  if (is.null(how$rows)) how$size <- subset_size(how, n)
  how
}

# The kinds of descriptions: `objective`, the name under which the engine knows the pF objective under such a one;
# `text(how)`; `make(how, data, model, m, control, reference)` -> the distribution, see low_rank_auxiliary(). Where it
# leaves a size to the data, `fill(how, n, m, made)` completes it, see fill_aux(); `keeps_reference`: beside the fit.
aux_kinds <- list(
  # at the rows the exact posterior's mean, which the objective needs no value of, and independent noise
  white = list(objective = "white", text = function(how) white_text(how$variance),
               make = function(how, data, model, ...) {
                 new_auxiliary("white", model, label = white_text(how$variance), variance = as.double(how$variance))
               }),
  sor = list(objective = "pf", fill = fill_size, text = function(how) paste("SoR on", aux_rows_text(how)),
             make = function(how, data, model, m, control, ...) {
               sor_on_points(data, data$x[auxiliary_rows(how, data), , drop = FALSE], model, control)
             }),
  subset = list(objective = "pf", fill = fill_size,
                text = function(how) paste("exact posterior on", aux_rows_text(how)),
                make = function(how, data, model, ...) {
                  rows <- auxiliary_rows(how, data)
                  aux <- exact_on_rows(data, rows, model)
                  aux$rows <- rows
                  aux
                }),
  refresh = list(objective = "pf", text = function(how) {
    sprintf("SoR on the inducing points, renewed every %d iterations (start: %s)", how$every, format(how$start))
  }, make = function(how, ...) aux_kinds[[how$start$kind]]$make(how$start, ...)),
  points = list(objective = "pf", make = function(how, data, model, m, control, ...) {
    sor_on_points(data, how$z, model, control)
  }),
  reference = list(objective = "pf", keeps_reference = TRUE, fill = function(how, n, m, made) {
    how$m2 <- if (is.null(made)) reference_size(how, m, n) else made
    how
  }, text = function(how) {
    sprintf("SoR on %s greedy points%s", if (is.null(how$m2)) "4 m" else how$m2,
            if (!is.null(how$samples)) sprintf(", %d sample paths", how$samples)
            else if (how$tail > 0) sprintf(", leading directions (tail %s)", format(how$tail)) else "")
  }, make = function(how, data, model, m, control, reference) {
    if (is.null(reference)) {
      U <- data$x[reference_rows(data, model$kernel, reference_size(how, m, nrow(data$x))), , drop = FALSE]
      return(sor_on_points(data, U, model, control, how, m))
    }
    points <- seq_len(reference_size(how, m, reference$m))
    post <- first_points(reference$factors, length(points), model$noise)
    sor_auxiliary(post, reference$inducing[points, , drop = FALSE], model, how, m)
  }),
  custom = list(objective = "pf", text = function(how) how$label, make = function(how, data, model, m, ...) {
    given <- how$make(data$x, data$y, data$weights, as_kernel(model$kernel), model$noise, m)
    given <- check_low_rank(given, ncol(data$x))
    low_rank_auxiliary(given$U, given$W, given$sign, given$mean, given$p, model, how$label)
  }))

# What a function says of the distribution, complete.
check_low_rank <- function(given, d) {
  need <- function(ok, want) if (!isTRUE(ok)) abort_input("make", "one that returns something else", want)
  need(is.list(given) && all(c("U", "W", "mean") %in% names(given)), "a function that returns list(U, W, sign, mean)")
  given <- given[intersect(c("U", "W", "sign", "mean", "p"), names(given))]
  if (is.null(given$p)) given$p <- 0
  given$U <- check_matrix(given$U, "U")
  given$W <- check_matrix(given$W, "W")
  need(ncol(given$U) == d && nrow(given$U) > 0L, "one whose `U` has the columns of `x`")
  need(nrow(given$W) == nrow(given$U), "one whose `W` has a row for each of `U`")
  given$mean <- check_vector(given$mean, "mean", nrow(given$U))
  given$sign <- if (is.null(given$sign)) rep(1, ncol(given$W)) else rep_len(as.double(given$sign), ncol(given$W))
  need(all(given$sign %in% c(-1, 1)), "one whose `sign` is 1 or -1 for each column of `W`")
  need(length(given$p) == 1L && given$p %in% 0:1, "one whose `p` is 0 or 1")
  given
}

# Rows of data$x (after merging) that the auxiliary distribution is made of.
auxiliary_rows <- function(how, data) {
  n <- if (is.null(data$group)) nrow(data$x) else length(data$group)
  rows <- how$rows
  if (is.null(rows)) {
    size <- subset_size(how, n)
    if (size > n) abort_input("size", describe(size), sprintf("a whole number from 1 to %d, the rows of the data", n))
    rows <- sample.int(n, size)
  } else if (max(rows) > n) {
    abort_input("rows", max(rows), sprintf("row numbers from 1 to %d", n))
  }
  if (is.null(data$group)) rows else unique(data$group[rows])
}

# The SoR posterior on U: b(x) = chol(I + A_u A_u'/s2)^{-1} a_u(x) = sqrt(s2) C^{-1} L^{-1} k(U, x), C C' = s2 I + G_u.
# Points that the others already explain down to rounding are dropped first: they change nothing but the conditioning.
# `how`: may ask for sample paths or leading directions in place of the whole covariance.
sor_on_points <- function(data, U, model, control = NULL, how = NULL, m = NULL) {
  U <- choose_greedy(U, nrow(U), model$kernel, Inf)$z
  post <- native_posterior(U, data, model, jitter = 0, control = control)
  sor_auxiliary(post, U, model, how, m)
}

sor_auxiliary <- function(post, U, model, how, m) {
  noise <- model$noise
  W <- if (is.null(how$tail) || how$tail == 0) {
    sqrt(noise) * solve_t(post$L, t(forwardsolve(post$C, diag(nrow(U)))))
  } else {
    solve_t(post$L, leading_directions(post$G, noise, how$tail, m))
  }
  if (!is.null(how$samples)) { # sample paths: E[Omega Omega'] / samples = I
    W <- W %*% matrix(stats::rnorm(ncol(W) * how$samples), ncol(W)) / sqrt(how$samples)
  }
  low_rank_auxiliary(U, W, rep(1, ncol(W)), solve_t(post$L, post$beta), 0L, model, "SoR posterior")
}

# The posterior on the first m of its points: L, G and A y have those of the first rows of A in their corners.
first_points <- function(post, m, noise) {
  i <- seq_len(m)
  G <- post$G[i, i, drop = FALSE]
  C <- t(chol(G + diag(noise, m)))
  list(L = post$L[i, i, drop = FALSE], G = G, C = C, beta = solve_t(C, forwardsolve(C, post$Ay[i])))
}

# The covariance a'(I + G/s2)^{-1} a in the axes of G, the directions that carry most of its trace over the rows,
# w_j = g_j / (1 + g_j/s2), first. No m points can follow more than m directions: kept are as many as leave at most
# `tail` times what lies beyond the first m.
leading_directions <- function(G, noise, tail, m) {
  axes <- eigen(G, symmetric = TRUE)
  g <- pmax(axes$values, 0)
  w <- g / (1 + g / noise)
  beyond <- rev(cumsum(rev(w))) - w # of direction r + 1, r + 2, ...
  m <- min(m, length(w))
  r <- max(m, which(beyond <= tail * beyond[m])[1L])
  axes$vectors[, seq_len(r), drop = FALSE] / rep(sqrt(1 + g[seq_len(r)] / noise), each = nrow(G))
}

# The exact posterior given some rows: p = 1, b(x) = chol(Kuu + s2/w)^{-1} k(U, x) with sign -1.
exact_on_rows <- function(data, rows, model) {
  U <- data$x[rows, , drop = FALSE]
  w <- merged_weights(data)[rows]
  check_memory(24 * as.double(length(rows))^2, "the exact posterior of the auxiliary rows")
  K <- native_kernel_matrix(model$kernel, U, U)
  L <- tryCatch(t(chol(K + diag(model$noise / w, length(rows)))), error = function(e) {
    abort_numerical("The exact posterior on the auxiliary rows failed: the noise is too small beside the signal.")
  })
  Wb <- t(forwardsolve(L, diag(length(rows))))
  alpha <- solve_t(L, forwardsolve(L, data$y[rows]))
  low_rank_auxiliary(U, Wb, rep(-1, length(rows)), alpha, 1L, model, "exact posterior")
}

solve_t <- function(L, b) backsolve(L, b, upper.tri = FALSE, transpose = TRUE)

# One with covariance p k(x, x') + sum_j sign_j b_j(x) b_j(x'), b(x) = W'k(U, x), and mean mean'k(U, x). The engine
# wants the mean as a last column of W.
low_rank_auxiliary <- function(U, W, sign, mean, p, model, label) {
  W <- cbind(W, mean, deparse.level = 0)
  dimnames(W) <- NULL
  new_auxiliary("pf", model, label, p = as.integer(p), U = U, W = W, sign = c(sign, 1))
}

# `objective`: of which this is the distribution, see aux_kinds.
new_auxiliary <- function(objective, model, label, ...) {
  structure(list(objective = objective, label = label, model = model, ...), class = "pfdtc_auxiliary")
}

# W_x at the rows of the data, while it takes at most half of the memory for scratch.
keep_rows <- function(aux, data, control = NULL) {
  if (is.null(aux$W)) return(aux)
  memory <- if (is.null(control)) getOption("pfdtc.memory", 2^27) else control$memory
  if (8 * ncol(aux$W) * as.double(nrow(data$x)) <= memory / 2) {
    aux$Wt <- native_lowrank_rows(aux, data)
  }
  aux
}

white_text <- function(variance) {
  sprintf("white noise around the exact mean, with %s the noise",
          if (variance == 1) "the variance of" else sprintf("%s times the variance of", format(variance)))
}

aux_rows_text <- function(x) {
  if (!is.null(x$rows)) return(sprintf("%d given rows", length(x$rows)))
  if (is.null(x$size)) "a tenth of the rows (at most 1000)" else sprintf("%d random rows", x$size)
}

subset_size <- function(how, n) if (is.null(how$size)) min(ceiling(n / 10), 1000) else how$size

reference_size <- function(how, m, n) min(if (is.null(how$m2)) 4 * m else how$m2, n)

# The SoR posterior on points that need not be rows.
aux_on_points <- function(z) structure(list(kind = "points", z = z), class = "pfdtc_aux")
