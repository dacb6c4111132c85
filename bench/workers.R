# Compares a fit by two worker processes with that of one process, and products with all pairs of rows by shares.
# RESULTS.md has the times of single passes, measured with functions of an earlier version.
#   Rscript bench/workers.R [rows]
# Seconds are processor seconds of the workers, because wall time has no meaning if other work runs.
suppressMessages(library(pfdtc))
inside <- asNamespace("pfdtc")
n <- as.integer(c(commandArgs(TRUE), 4e5)[1])
m <- 200
d <- 8
future::plan(future::multisession, workers = 2)

part <- function(seed) {
  force(seed)
  rows <- n / 2
  inputs <- d
  function() {
    set.seed(seed)
    out <- as.data.frame(matrix(stats::rnorm(rows * inputs), rows))
    out$y <- sin(out$V1) + stats::rnorm(rows) / 2
    out
  }
}
source <- rows_parts(list(part(1), part(2)))
set.seed(1)
z <- matrix(rnorm(m * d), m)
control <- pfdtc_control(threads = 1, maxit = 0)
fit_of <- function(data) {
  pfdtc(y ~ ., data, m = m, kernel = kernel_se(rep(3, d), 1), noise = 0.25, hyper = "fixed", inducing = z,
        neighbours = 0, control = control)
}
fit <- fit_of(source)
one <- fit_of(rbind(part(1)(), part(2)()))
cat(sprintf("%d rows: largest relative difference of the weights from one process's: %.1g\n", n,
            max(abs(fit$factors$beta - one$factors$beta)) / max(abs(one$factors$beta))))

model <- inside$model_of(one)

# Computes K v for some of the rows. Each worker takes a share of the pairs of rows.
some <- as.matrix(part(1)()[seq_len(min(n / 2, 3e4)), seq_len(d)])
products <- inside$products_on_workers(some)
v <- rnorm(nrow(some))
first <- products(model$kernel, v, control)
wall <- system.time(again <- products(model$kernel, v, control))[["elapsed"]]
whole_product <- system.time(alone <- inside$native_kernel_matvecs(model$kernel, some, NULL, v, control))
cat(sprintf(paste("a product with all pairs of %d rows: %.2f s by the wall on two workers, %.2f s of the processor",
                  "here, relative difference %.1g; %.1f MB to each worker once, then %.2f MB there and back a",
                  "product\n"),
            nrow(some), wall, sum(whole_product[1:2]), max(abs(again - alone)) / max(abs(alone)),
            length(serialize(some, NULL)) / 1e6, 2 * length(serialize(v, NULL)) / 1e6))
