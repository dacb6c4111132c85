# Transcribes classes (multinomial()) densely: K processes with one covariance matrix, and their Laplace posterior.

ref_softmax <- function(f) {
  E <- exp(f - f[cbind(seq_len(nrow(f)), max.col(f, "first"))])
  E / rowSums(E)
}

# Returns the Laplace posterior of N K latent values, with covariance matrix `prior` of each process: the mode f
# (N x K, centre included), probabilities p, covariance V (N K x N K, class by class) and the evidence.
ref_classes <- function(prior, class, center, w = rep(1, length(class))) {
  n <- length(class)
  K <- length(center)
  Y <- diag(K)[class, ]
  b <- matrix(center, n, K, byrow = TRUE)
  whole <- kronecker(diag(K), prior)
  f <- matrix(0, n, K)
  curvature <- function(P) {
    W <- matrix(0, n * K, n * K)
    for (j in 1:K) for (k in 1:K) {
      diag(W[(j - 1) * n + 1:n, (k - 1) * n + 1:n]) <- w * ((j == k) * P[, j] - P[, j] * P[, k])
    }
    W
  }
  for (i in 1:200) { # f = K (I + W K)^{-1} (W f + g)
    P <- ref_softmax(f + b)
    W <- curvature(P)
    to <- whole %*% solve(diag(n * K) + W %*% whole, W %*% c(f) + c(w * (Y - P)))
    step <- matrix(to, n) - f
    f <- f + step / max(1, max(abs(step)) / 2)
    if (max(abs(step)) < 1e-11) break
  }
  P <- ref_softmax(f + b)
  W <- curvature(P)
  inner <- diag(n * K) + W %*% whole
  alpha <- w * (Y - P)
  value <- sum(w * log(rowSums(Y * P))) - sum(alpha * f) / 2 - as.numeric(determinant(inner)$modulus) / 2
  list(f = f + b, p = P, V = whole %*% solve(inner), evidence = value, g = alpha, W = W, prior = whole)
}

# Returns the mean (T x K) and the covariances (T x K x K) of f at T new rows, with constant means. `cross` and `own`
# are prior covariances.
ref_classes_at <- function(post, cross, own, center) {
  K <- length(center)
  inner <- solve(diag(nrow(post$W)) + post$W %*% post$prior, post$W)
  n <- nrow(cross)
  mean <- crossprod(cross, post$g) + matrix(center, ncol(cross), K, byrow = TRUE)
  cov <- array(0, c(ncol(cross), K, K))
  for (t in seq_len(ncol(cross))) {
    a <- kronecker(diag(K), cross[, t])
    cov[t, , ] <- diag(own[t], K) - t(a) %*% inner %*% a
  }
  list(mean = mean, cov = cov)
}

# Returns the probabilities (T x K) averaged over f ~ N(mean, cov) by a grid over the log odds.
ref_shares <- function(mean, cov, step = 0.4) {
  K <- ncol(mean)
  D <- cbind(-1, diag(K - 1))
  z <- as.matrix(expand.grid(rep(list(seq(-6, 6, by = step)), K - 1)))
  weight <- exp(-rowSums(z^2) / 2)
  t(vapply(seq_len(nrow(mean)), function(t) {
    root <- chol(D %*% cov[t, , ] %*% t(D) + 1e-14 * diag(K - 1))
    odds <- z %*% root + rep(drop(D %*% mean[t, ]), each = nrow(z))
    colSums(weight * ref_softmax(cbind(0, odds))) / sum(weight)
  }, numeric(K)))
}

# Returns list(lwr, upr), T x K: intervals of the probabilities. The log odds of a class against all others are taken as
# normal, linearised at the mean.
ref_class_ends <- function(mean, cov, level) {
  at <- function(end) {
    t(vapply(seq_len(nrow(mean)), function(t) {
      p <- ref_softmax(mean[t, , drop = FALSE])[1, ]
      vapply(seq_along(p), function(k) {
        c <- -p / sum(p[-k])
        c[k] <- 1
        odds <- mean[t, k] - log(sum(exp(mean[t, -k])))
        stats::plogis(odds + end * stats::qnorm((1 + level) / 2) * sqrt(drop(c %*% cov[t, , ] %*% c)))
      }, 0)
    }, mean[1L, ]))
  }
  list(lwr = at(-1), upr = at(1))
}
