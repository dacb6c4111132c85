# Of few rows a Gaussian process may well predict worse than a straight line, or than nothing: leave-one-out tells, and
# the fit says so.

few_rows <- 50L

# list(fit, linear, mean): mean log density of each response given the others, of a fit whose posterior is exact (at its
# hyperparameters, so it flatters), of a linear model in the same columns and of the mean alone; NULL of more rows.
small_n_check <- function(data, posterior) {
  n <- nrow(data$x)
  if (data$n >= few_rows || n < 4L || !is.null(data$group)) return(NULL)
  w <- merged_weights(data)
  linear <- cbind(1, data$x)
  list(fit = mean(loo_exact(data$y, posterior)), linear = mean(loo_linear(linear, data$y, w)),
       mean = mean(loo_linear(linear[, 1L, drop = FALSE], data$y, w)))
}

# log p(y_i | the others) of the exact GP: mean y_i - alpha_i / P_ii, variance 1 / P_ii, P = (K + s2 W^{-1})^{-1}.
loo_exact <- function(y, posterior) {
  P <- diag(chol2inv(t(posterior$L)))
  stats::dnorm(posterior$alpha / P, sd = sqrt(1 / P), log = TRUE)
}

# The same of weighted least squares, its residual variance estimated without the row: with h_i the leverage,
# e_i / (1 - h_i) is the error without row i, and its variance s_i^2 / (w_i (1 - h_i)).
loo_linear <- function(X, y, w) {
  fit <- stats::lm.wfit(X, y, w)
  free <- fit$df.residual - 1L
  if (free < 1L) return(-Inf)
  Q <- qr.qy(fit$qr, diag(1, length(y), fit$rank))
  h <- rowSums(Q^2)
  e <- sqrt(w) * fit$residuals
  if (any(h > 1 - 1e-8)) return(-Inf)
  s2 <- pmax((sum(e^2) - e^2 / (1 - h)) / free, 1e-300)
  stats::dnorm(e / (1 - h), sd = sqrt(s2 / (1 - h)), log = TRUE) + log(w) / 2
}

# A warning where another does better by more than chance would have it.
warn_small_n <- function(check, n) {
  if (is.null(check)) return(invisible())
  other <- if (check$linear >= check$mean) "linear" else "mean"
  ahead <- check[[other]] - check$fit
  if (!is.finite(ahead) || ahead <= max(0.05, 2 / n)) return(invisible())
  warn_small(sprintf(paste("Leave-one-out says that %s predicts these %d rows better than this fit: its log density is",
                           "higher by %.2f a row. So few rows may not bear a Gaussian process."),
                     if (other == "linear") "a linear model" else "their mean alone", n, ahead), check)
}

describe_small_n <- function(check) {
  if (is.null(check)) return(NA_character_)
  sprintf("leave-one-out log density a row %.2f; of a linear model %.2f, of the mean alone %.2f", check$fit,
          check$linear, check$mean)
}
