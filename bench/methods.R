# How close is each method's posterior to that of the exact GP, by set and M?
#
#   PFDTC_DATA=<folder of the CSVs> Rscript bench/methods.R [set ...] [repetitions]
#
# Appends a row for each fit to bench/results/methods.csv and skips rows that exist. The outermost loop is over
# repetitions and cheap sets come first, so that an unfinished table already has every set. bench/methods-table.R reads
# it.
#
# A repetition draws its own split (sizes of the paper's Table 1), standardises inputs and response by the training
# rows, and learns kernel and noise by the package's pilot (VFE at 200 random rows). These are then fixed for every
# method. The truth is the exact GP by a dense Cholesky factor. Every method has the same start and at most 60
# iterations. Seconds are processor seconds (user and system) of one thread, on which other work has little effect.

suppressMessages(library(pfdtc))
options(pfdtc.threads = 1L)

sets <- list(
  synthetic = list(train = 1000, test = 1000, m = c(10, 20, 50)),
  airfoil = list(train = 1103, test = 400, m = c(50, 100, 200)),
  abalone = list(train = 3177, test = 1000, m = c(50, 100, 200)),
  `wine-white` = list(train = 3898, test = 1000, m = c(50, 100, 200)),
  ccpp = list(train = 7568, test = 2000, m = c(50, 100, 200)),
  delays10k = list(train = 8000, test = 2000, m = c(50, 100, 200)))

# Each method is a function from the number of points to the auxiliary distribution, and NULL for VFE.
methods <- list(
  vfe = function(m) NULL,
  sor = function(m) aux_sor(),
  refresh = function(m) aux_refresh(10, aux_reference()),
  reference = function(m) aux_reference(),
  reference100 = function(m) aux_reference(samples = 100),
  tail = function(m) aux_reference(tail = 0.1))
runs <- data.frame(method = c(names(methods), "vfe", "sor", "reference100"),
                   start = rep(c("greedy", "random"), c(length(methods), 3)))

columns <- c("set", "rep", "m", "method", "start", "rmse_mean", "rmse_sd", "seconds", "evaluations", "convergence",
             "objective", "points", "pilot_seconds", "pilot_evaluations", "seed")

main <- function(args, file = file.path("bench", "results", "methods.csv")) {
  numbers <- grepl("^[0-9]+$", args)
  repetitions <- if (any(numbers)) as.integer(args[numbers][1L]) else 5L
  wanted <- if (all(numbers)) names(sets) else match.arg(args[!numbers], names(sets), several.ok = TRUE)
  if (!file.exists(file)) {
    dir.create(dirname(file), FALSE, TRUE)
    cat(paste(columns, collapse = ","), "\n", sep = "", file = file)
  }
  for (repetition in seq_len(repetitions)) for (set in wanted) {
    run_repetition(set, repetition, file)
  }
}

run_repetition <- function(set, repetition, file) {
  left <- merge(runs, data.frame(m = sets[[set]]$m))
  left <- left[order(left$m, match(left$start, runs$start), match(left$method, names(methods))), ]
  done <- utils::read.csv(file)
  done <- done[done$set == set & done$rep == repetition, ]
  key <- function(d) paste(d$m, d$method, d$start)
  left <- left[!(key(left) %in% key(done)), ]
  if (!nrow(left)) return(invisible())
  seed <- 100L * repetition + match(set, names(sets))
  set.seed(seed)
  split <- draw_split(set)
  pilot <- run_pilot(split)
  say("%s %d: pilot %.0f s, %d evaluations, noise %.3g", set, repetition, pilot$seconds, pilot$evaluations, pilot$noise)
  truth <- exact_gp(split, pilot)
  for (i in seq_len(nrow(left))) {
    set.seed(seed) # gives every method the same start and rows
    result <- run_method(left[i, ], split, pilot, truth)
    row <- c(list(set = set, rep = repetition), left[i, ], result, seed = seed, pilot_seconds = pilot$seconds,
             pilot_evaluations = pilot$evaluations)
    cat(paste(vapply(row[columns], format, "", digits = 6), collapse = ","), "\n", sep = "", file = file, append = TRUE)
    say("%s %d: m %d %s %s: mean %.2e sd %.2e, %d evaluations, %.1f s", set, repetition, left$m[i], left$method[i],
        left$start[i], result$rmse_mean, result$rmse_sd, result$evaluations, result$seconds)
  }
}

say <- function(...) cat(format(Sys.time(), "%H:%M:%S "), sprintf(...), "\n", sep = "")

draw_split <- function(set) {
  size <- sets[[set]]
  all <- if (set == "synthetic") synthetic(size$train + size$test) else read_set(set)
  if (size$train + size$test > nrow(all)) stop(set, " has too few rows")
  rows <- sample.int(nrow(all), size$train + size$test)
  train <- rows[seq_len(size$train)]
  test <- rows[-seq_len(size$train)]
  x <- as.matrix(all[setdiff(names(all), "y")])
  u <- scale(x[train, , drop = FALSE])
  by_train <- function(x) scale(x, attr(u, "scaled:center"), attr(u, "scaled:scale"))
  bare <- function(x) matrix(x, nrow(x), dimnames = list(NULL, colnames(x)))
  list(x = bare(u), y = as.vector(scale(all$y[train])), test = bare(by_train(x[test, , drop = FALSE])))
}

# Returns a smooth function of one input, with noise.
synthetic <- function(n) {
  x <- stats::runif(n, 0, 10)
  data.frame(x = x, y = sin(3 * pi * x / 4) + 0.3 * x + stats::rnorm(n, sd = 0.3))
}

read_set <- function(set) {
  folder <- Sys.getenv("PFDTC_DATA")
  if (folder == "") stop("PFDTC_DATA must name the folder of the CSVs")
  path <- Sys.glob(file.path(folder, paste0(set, ".csv*")))
  if (length(path) != 1L) stop("there is no ", set, ".csv or ", set, ".csv.gz in PFDTC_DATA")
  utils::read.csv(path)
}

run_pilot <- function(split) {
  started <- cpu()
  fit <- gp_dtc(split$x, split$y, m = 1, kernel = kernel_se(), hyper = "pilot", inducing = "random", center = FALSE,
                scale = FALSE, keep_data = FALSE)
  list(kernel = fit$kernel, noise = fit$noise, seconds = cpu() - started, evaluations = sum(fit$evaluations))
}

cpu <- function() sum(proc.time()[c("user.self", "sys.self")])

# Returns mean and sd of f at the test rows.
exact_gp <- function(split, pilot) {
  K <- kernel_matrix(pilot$kernel, split$x)
  diag(K) <- diag(K) + pilot$noise
  R <- chol(K)
  rm(K)
  V <- backsolve(R, kernel_matrix(pilot$kernel, split$x, split$test), transpose = TRUE)
  list(mean = drop(crossprod(V, backsolve(R, split$y, transpose = TRUE))),
       sd = sqrt(pmax(pilot$kernel$variance - colSums(V^2), 0)))
}

run_method <- function(run, split, pilot, truth) {
  aux <- methods[[run$method]](run$m)
  started <- cpu()
  args <- list(split$x, split$y, m = run$m, kernel = pilot$kernel, noise = pilot$noise, hyper = "fixed",
               inducing = run$start, center = FALSE, scale = FALSE, control = pfdtc_control(maxit = 60),
               keep_data = FALSE)
  fit <- if (is.null(aux)) do.call(gp_vfe, args) else do.call(pfdtc, c(args, list(aux = aux)))
  seconds <- cpu() - started
  p <- predict(fit, split$test, se.fit = TRUE)
  rms <- function(e) sqrt(mean(e^2))
  list(rmse_mean = rms(p$fit - truth$mean), rmse_sd = rms(p$se.fit - truth$sd), seconds = seconds,
       evaluations = sum(fit$evaluations), convergence = fit$convergence, objective = fit$objective, points = fit$m)
}

main(commandArgs(TRUE))
