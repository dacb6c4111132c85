# Measures rows a second that a fit with neighbours predicts.
#   bash tools/openblas.sh Rscript bench/near.R [rounds]
# Also runs without tools/openblas.sh, as nothing calls the BLAS at this M. 20,000 normal rows of 3 or 8 inputs, 200
# inducing points, 40 neighbours, mean and sd at 20,000 new rows. The times are the best of some rounds, with cases in
# turn: wall time, which other work disturbs, and the processor time of the process, divided by its threads.
library(pfdtc)
inside <- asNamespace("pfdtc")
n <- 20000
m <- 200
profiles <- c("matern32", "matern12", "se")
cases <- expand.grid(kernel = profiles, d = c(3, 8), threads = 1:2, stringsAsFactors = FALSE)

set_up <- function(profile, d) {
  set.seed(1)
  x <- matrix(rnorm(n * d), n)
  data <- inside$data_from_matrix(x, sin(x[, 1]) + rnorm(n) / 10, center = FALSE, scale = FALSE)
  x_new <- matrix(rnorm(n * d), n)
  z <- x[seq_len(m), ]
  kernel <- inside$kernel_of(profile)
  kernel[c("lengthscale", "variance")] <- list(rep(3, d), 1)
  model <- inside$new_model(inside$complete_kernel(kernel, x), 0.1)
  near <- inside$near_posterior(data, z, model, 40L, 0L)
  posterior <- inside$new_posterior("near", model, NULL, data, z = z, near = near)
  function(threads) {
    started <- proc.time()
    inside$predict_given(replace(posterior, "control", list(pfdtc_control(threads = threads))), x_new)
    spent <- proc.time() - started
    c(wall = spent[["elapsed"]], processor = sum(spent[1:2]) / threads)
  }
}

runs <- Map(set_up, cases$kernel, cases$d)
rounds <- as.integer(c(commandArgs(TRUE), 5)[1])
best <- Reduce(pmin, lapply(seq_len(rounds), function(round) {
  mapply(function(run, threads) run(threads), runs, cases$threads)
}))
print(cbind(cases, `rows/s by the wall` = signif(n / best["wall", ], 3),
            `by the processors` = signif(n / best["processor", ], 3)), row.names = FALSE)
