# Times the search for the 40 nearest rows of 2,000 rows among n, beside an input and a factor whose levels share a
# lengthscale:   Rscript bench/factor-levels.R [n]
# `ratio` is the time with lengthscales that differ by 1e-12 of themselves, for which the search has a coordinate for
# each level, divided by the time with equal lengthscales, for which it has one for the factor. For 20,000 rows, one
# thread: 6 with 20 levels, 69 with 100 and 185 with 400. All neighbours were equal, but 4 in 10,000 with 400 levels,
# where rows of other levels are almost equally near.
library(pfdtc)
options(pfdtc.threads = 1L)
n <- as.integer(c(commandArgs(TRUE), 20000)[1])
set.seed(1)
for (levels in c(20, 100, 400)) {
  x <- cbind(rnorm(n), diag(levels)[sample.int(levels, n, TRUE), ])
  seconds <- function(lengthscale) {
    kernel <- pfdtc:::complete_kernel(kernel_se(c(1, lengthscale), 1), x)
    system.time(near <<- pfdtc:::native_neighbours(kernel, x, 40L, rows = 1:2000))[[1]]
  }
  equal <- seconds(rep(0.5, levels))
  found <- near
  each <- seconds(0.5 * (1 + 1e-12 * seq_len(levels)))
  cat(sprintf("%d levels: %.2f s, %.2f s with a coordinate for each level, ratio %.0f, equal neighbours %.4f\n", levels,
              equal, each, each / equal, mean(found == near)))
}
