# Times what reads a factor of many levels that share a lengthscale, beside an input, for n rows, one thread:
#   Rscript bench/factor-levels.R [n]
# `search` is for the 40 nearest rows of 2,000 rows. Its ratio is the time with lengthscales that differ by 1e-12 of
# themselves, for which the search has a coordinate for each level, divided by the time with equal lengthscales, for
# which it has one for the factor. For 20,000 rows: 6 with 20 levels, 69 with 100 and 219 with 400. All neighbours were
# equal, but 4 in 10,000 with 400 levels, where rows of other levels are almost equally near.
# `points` chooses 100 points greedily, `near` computes the posterior on these and 10 neighbours. Their ratios are the
# time with 0/1 inputs divided by that with a column of level numbers. For 20,000 rows: 1.6, 3.9 and 9.1 (points), 1.1,
# 1.5 and 3.4 (near).
library(pfdtc)
options(pfdtc.threads = 1L)
n <- as.integer(c(commandArgs(TRUE), 20000)[1])
set.seed(1)
seconds <- function(expr) system.time(expr)[[1]]
for (levels in c(20, 100, 400)) {
  x <- cbind(rnorm(n), diag(levels)[sample.int(levels, n, TRUE), ])
  search <- function(lengthscale) {
    kernel <- pfdtc:::complete_kernel(kernel_se(c(1, lengthscale), 1), x)
    seconds(near <<- pfdtc:::native_neighbours(kernel, x, 40L, rows = 1:2000))
  }
  equal <- search(rep(0.5, levels))
  found <- near
  each <- search(0.5 * (1 + 1e-12 * seq_len(levels)))
  cat(sprintf("%d levels, search: %.2f s, ratio %.0f, equal neighbours %.4f\n", levels, equal, each / equal,
              mean(found == near)))
  kernel <- pfdtc:::place_kernel(kernel_matern(5 / 2), x)
  kernel$shared <- pfdtc:::shared_by(rep(1:2, c(1, levels)))
  model <- pfdtc:::new_model(pfdtc:::set_values(pfdtc:::compile_kernel(kernel), c(1, 0.5, 1)), 0.1)
  data <- list(x = x, y = rnorm(n))
  rank <- sample.int(n)
  rows <- NULL
  points <- seconds(rows <- pfdtc:::choose_greedy(x, 100, model$kernel)$rows)
  near <- seconds(pfdtc:::near_posterior(data, x[rows, ], model, 10L, 10L, rank))
  select <- seconds(pfdtc:::native(pfdtc:::ffi_select, pfdtc:::engine_model(kernel = model$kernel), x, 100L, 1e-13))
  wide <- seconds(pfdtc:::native_near(x[rows, ], data, model, 10L, rank, 1e-12))
  cat(sprintf("%d levels, points: %.2f s, ratio %.1f; near: %.2f s, ratio %.1f\n", levels, points, select / points,
              near, wide / near))
}
