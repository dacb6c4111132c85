# Computes in twofold ("double-double") arithmetic: numbers high + low with 106 bits, by error-free sums and products
# (Dekker 1971). This gives log marginal likelihoods independent of the package.

two_sum <- function(a, b) {
  s <- a + b
  t <- s - a
  list(high = s, low = (a - (s - t)) + (b - t))
}

two_product <- function(a, b) {
  split <- function(v) {
    t <- 134217729 * v
    high <- t - (t - v)
    list(high = high, low = v - high)
  }
  p <- a * b
  a <- split(a)
  b <- split(b)
  list(high = p, low = ((a$high * b$high - p) + a$high * b$low + a$low * b$high) + a$low * b$low)
}

tf <- function(high, low = 0 * high) list(high = high, low = low)
tf_add <- function(a, b) {
  s <- two_sum(a$high, b$high)
  two_sum(s$high, s$low + a$low + b$low)
}
tf_minus <- function(a) tf(-a$high, -a$low)
tf_times <- function(a, b) {
  p <- two_product(a$high, b$high)
  two_sum(p$high, p$low + a$high * b$low + a$low * b$high)
}
tf_over <- function(a, b) {
  q <- a$high / b$high
  rest <- tf_add(a, tf_minus(tf_times(tf(q), b)))
  two_sum(q, rest$high / b$high)
}

# Returns log N(y; 0, K) in twofold arithmetic by L D L', for twofold K (lists of matrices) and y (lists of vectors).
tf_log_evidence <- function(K, y) {
  n <- length(y$high)
  at <- function(v, i, j = NULL) if (is.null(j)) tf(v$high[i], v$low[i]) else tf(v$high[i, j], v$low[i, j])
  logdet <- 0
  quadratic <- tf(0)
  for (k in seq_len(n)) {
    pivot <- at(K, k, k)
    z <- at(y, k)
    logdet <- logdet + log(pivot$high) + pivot$low / pivot$high
    quadratic <- tf_add(quadratic, tf_over(tf_times(z, z), pivot))
    for (i in seq_len(n)[seq_len(n) > k]) {
      l <- tf_over(at(K, i, k), pivot)
      for (j in k:n) {
        less <- tf_add(at(K, i, j), tf_minus(tf_times(l, at(K, k, j))))
        K$high[i, j] <- less$high
        K$low[i, j] <- less$low
      }
      less <- tf_add(at(y, i), tf_minus(tf_times(l, z)))
      y$high[i] <- less$high
      y$low[i] <- less$low
    }
  }
  -(logdet + quadratic$high + n * log(2 * pi)) / 2
}
