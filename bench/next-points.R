# How far from the minimum does a loop with next_points() end? Branin (10 + 15 runs) and Hartmann 6 (60 + 40 runs),
# without noise: a random Latin hypercube, then a new fit for each proposal by expected improvement. Beside it
# DiceOptim's defaults (EGO.nsteps(), km() with Matern 5/2 and a constant) from the same designs.
#   Rscript bench/next-points.R > bench/results/next-points.csv
#   Rscript bench/next-points.R branin|hartmann pfdtc|DiceOptim first_seed last_seed      (rows without a header)
# Median above the minimum: Branin, 11 designs, 0.0063 (largest 0.031), DiceOptim 0.022 (largest 5.1); Hartmann 6, 5
# designs, 4.5e-07, DiceOptim 5.3e-04. One design of Hartmann 6 ends in a local minimum (0.12), two by DiceOptim (0.87,
# 0.93).
suppressMessages(library(pfdtc))
cases <- list(branin = list(d = 2L, first = 10L, more = 15L, least = 0.3978873577, seeds = 1:11),
              hartmann = list(d = 6L, first = 60L, more = 40L, least = -3.322368, seeds = 1:5))
branin <- function(u) {
  a <- 15 * u[, 1] - 5
  b <- 15 * u[, 2]
  (b - 5.1 / (4 * pi^2) * a^2 + 5 / pi * a - 6)^2 + 10 * (1 - 1 / (8 * pi)) * cos(a) + 10
}
hartmann <- function(u) {
  A <- rbind(c(10, 3, 17, 3.5, 1.7, 8), c(0.05, 10, 17, 0.1, 8, 14), c(3, 3.5, 1.7, 10, 17, 8),
             c(17, 8, 0.05, 10, 0.1, 14))
  P <- rbind(c(1312, 1696, 5569, 124, 8283, 5886), c(2329, 4135, 8307, 3736, 1004, 9991),
             c(2348, 1451, 3522, 2883, 3047, 6650), c(4047, 8828, 8732, 5743, 1091, 381)) / 1e4
  -colSums(c(1, 1.2, 3, 3.2) * exp(-apply(u, 1L, function(x) rowSums(A * (rep(x, each = 4) - P)^2))))
}
hypercube <- function(n, d) (apply(matrix(0, n, d), 2L, function(v) sample(n)) - matrix(stats::runif(n * d), n)) / n
# by_pfdtc() and by_diceoptim() return the responses after the first design.
by_pfdtc <- function(f, design, more) {
  for (i in seq_len(more)) {
    fit <- suppressWarnings(suppressMessages(pfdtc(y ~ ., design, noise = 0)))
    new <- next_points(fit, lower = 0, upper = 1)[names(design) != "y"]
    new$y <- f(as.matrix(new))
    design <- rbind(design, new)
  }
  utils::tail(design$y, more)
}
by_diceoptim <- function(f, design, more) {
  d <- ncol(design) - 1L
  model <- DiceKriging::km(~1, design[seq_len(d)], design$y, covtype = "matern5_2", control = list(trace = FALSE))
  DiceOptim::EGO.nsteps(model, function(x) f(t(as.numeric(x))), more, rep(0, d), rep(1, d),
                        control = list(print.level = 0))$value
}
methods <- list(pfdtc = by_pfdtc, DiceOptim = by_diceoptim)

run <- function(name, method, seed) {
  f <- get(name)
  case <- cases[[name]]
  set.seed(seed)
  design <- as.data.frame(hypercube(case$first, case$d))
  design$y <- f(as.matrix(design))
  seconds <- sum(system.time(found <- methods[[method]](f, design, case$more))[1:2])
  cat(sprintf("%s,%s,%d,%.3g,%.3g,%.0f\n", name, method, seed, min(design$y) - case$least,
              min(design$y, found) - case$least, seconds))
}

args <- commandArgs(TRUE)
if (length(args)) {
  for (seed in args[3L]:args[4L]) run(args[1L], args[2L], seed)
} else {
  cat("problem,method,seed,first,end,seconds\n")
  for (name in names(cases)) for (method in names(methods)) for (seed in cases[[name]]$seeds) run(name, method, seed)
}
