# How large is misfit_of(), by which summary() names multinomial() for ordered classes?   Rscript bench/ordered-misfit.R
# Samples of ordinal() with 60 to 500 rows, 1 to 10 inputs (normal or skewed) and 3 to 8 classes: at most 3.8 in
# 40 samples; the limit is 5. Data, with the gain of multinomial() in leave-one-out log density per row (`cut` of the
# diamonds depends on the distances of two inputs from ideal values):
#   600 diamonds, cut: 8.3, .089   clarity: 3.6, -.234   Boston in 4 classes: 3.1, .027   iris: 1.0, -.001
#   500 rows of housing: 1.6, -.008
library(pfdtc)
largest <- numeric()
for (seed in 1:40) {
  set.seed(seed)
  n <- sample(c(60, 200, 500), 1)
  d <- sample(c(1, 3, 10), 1)
  k <- sample(c(3, 5, 8), 1)
  x <- matrix(if (seed %% 2) rnorm(n * d) else rexp(n * d)^1.5, n)
  latent <- 2 * sin(2 * x[, 1]) + (if (d > 1) pmin(x[, 2]^2, 9) - x[, 3] else 0) + rlogis(n)
  y <- cut(latent, c(-Inf, sort(sample(latent, k - 1)), Inf), labels = seq_len(k), ordered_result = TRUE)
  if (any(table(y) == 0)) next
  fit <- suppressMessages(suppressWarnings(pfdtc(y ~ ., data.frame(x, y = y))))
  largest <- c(largest, pfdtc:::misfit_of(fit))
  cat(sprintf("%d samples: median %.2f, largest %.2f\n", length(largest), median(largest), max(largest)))
}
