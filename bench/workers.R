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
sums <- inside$sums_visit(whole, one$inducing, model, one$factors, FALSE, control)
# A pass whose visits are timed by the processors where they are made: list(value, spent, there, back, wall).
timed_pass <- function(visit, merge) {
  timed <- local({
    visit <- visit
    function(block) {
      before <- proc.time()
      value <- visit(block)
      list(value = value, spent = sum((proc.time() - before)[1:2]))
    }
  })
  add <- local({
    merge <- merge
    function(a, b) list(value = merge(a$value, b$value), spent = a$spent + b$spent)
  })
  wall <- system.time(made <- inside$source_pass(source, timed, add))[["elapsed"]]
  c(made, list(there = length(serialize(timed, NULL)), back = length(serialize(made$value, NULL)), wall = wall))
}

say <- function(what, made) {
  each <- made$spent / n
  cat(sprintf(paste("%s: %.2f s by the wall; a worker spends %.2f us a row; %.0f kB to a worker, %.0f kB back;",
                    "1e9 rows on 100 workers: %.0f s, %.1f MB\n"), what, made$wall, 1e6 * each, made$there / 1e3,
              made$back / 1e3, 1e7 * each, 100 * (made$there + made$back) / 1e6))
}

say("sums of the posterior", timed_pass(sums, inside$merge_sums))

# an evaluation of the objective that moves points: sums, and the parts of the gradient
aux <- inside$make_auxiliary(aux_white(), list(x = z, y = numeric(m), weights = NULL, n = m), model, m, control)
found <- timed_pass(inside$sums_of_objective(whole, "white", aux, one$inducing, model, 1e-9, control),
                    inside$sums_merge)
say("sums of the objective", found)
adjoint <- inside$native(inside$ffi_objective, inside$engine_objective("white", aux),
                         inside$engine_points(one$inducing, model, 1e-9), found$value, NULL)$adjoint
say("its gradient", timed_pass(inside$gradient_of_objective(whole, "white", aux, one$inducing, model, 1e-9, control,
                                                            adjoint), inside$add_slopes))

# a reference on twice as many points: sums and norms
recipe <- inside$fit_recipe(fit)
points <- rbind(one$inducing, matrix(rnorm(m * d), m, dimnames = list(NULL, colnames(one$inducing))))
start <- inside$native_posterior(points, list(x = points, y = numeric(2 * m), weights = NULL, n = 2 * m), model, 1e-12,
                              control = control)
made <- timed_pass(inside$reference_sums_visit(recipe, points, model, start, control), inside$sums_merge)
say(sprintf("sums of a reference on %d points", 2 * m), made)
posterior <- inside$posterior_of_sums(points, made$value, model, start)
say("its norms", timed_pass(inside$norms_visit(recipe, points, model, posterior[c("L", "C", "beta")], control),
                            inside$norms_merge))

# a product with all pairs of some of the rows, by shares
some <- as.matrix(part(1)()[seq_len(min(n, 3e4)), seq_len(d)])
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
