# A pass over rows on two worker processes: what a worker does a row, what comes back, and what that makes of 1e9 rows
# on 100 workers.
#   Rscript bench/workers.R [rows]
# Seconds are those that workers have had of the processors: on a machine with other work the wall clock says little.
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

# the second pass alone, with the processors' time of every block
model <- inside$model_of(one)
recipe <- inside$source_recipe(quote(pfdtc(formula = y ~ .)), environment(), source)
survey <- inside$source_pass(source, inside$survey_visit(recipe, 100L), inside$survey_merge)
whole <- list(recipe = recipe, variables = lapply(survey$variables, inside$final_variable), center = one$center,
              scale = one$scale)
sums <- inside$sums_visit(whole, one$inducing, model, one$factors, control)
timed <- local({
  sums <- sums
  function(block) {
    before <- proc.time()
    out <- list(sums = sums(block))
    out$spent <- sum((proc.time() - before)[1:2])
    out
  }
})
add <- local({
  merge_sums <- inside$merge_sums
  function(a, b) list(sums = merge_sums(a$sums, b$sums), spent = a$spent + b$spent)
})
wall <- system.time(made <- inside$source_pass(source, timed, add))[["elapsed"]]
there <- length(serialize(list(timed, z), NULL))
back <- length(serialize(made$sums, NULL))
each <- made$spent / n
cat(sprintf("a pass: %.2f s by the wall; a worker spends %.2f us a row; %.0f kB to a worker, %.0f kB back\n", wall,
            1e6 * each, there / 1e3, back / 1e3))
cat(sprintf("1e9 rows on 100 workers, one thread each: %.0f s a pass, and %.1f MB in all that travel\n", 1e7 * each,
            100 * (there + back) / 1e6))
