# How fast is an evaluation of the objective with its gradient, relative to dgemm in the same process?
#
#   OPENBLAS_NUM_THREADS=1 bash tools/openblas.sh Rscript bench/speed.R [rounds]
#
# N = 8000 rows, d = 8, an auxiliary distribution of rank 100, M = 100 and 400. Only the 4 N M^2 + 4 N M r flops of the
# algebra count (r = 0 for VFE), although an evaluation has other work. A round times dgemm on 2000 x 2000 and then
# every case. A fraction is a case's rate over the dgemm rate of its round (median over rounds), or the ratio of the
# best rates. One thread is timed by the processor's clock, which excludes other processes. For two threads only wall
# time has a meaning, on an idle machine, still relative to dgemm on one thread.

suppressMessages(library(pfdtc))
internal <- asNamespace("pfdtc")
N <- 8000
d <- 8
r <- 100
noise <- 0.1

cpu <- function() sum(proc.time()[c("user.self", "sys.self")])
wall <- function() as.numeric(Sys.time())

# Returns seconds of one call, the mean over as many calls as fill `least` seconds.
seconds <- function(f, clock, least = 0.4) {
  calls <- 0
  started <- clock()
  repeat {
    f()
    calls <- calls + 1
    passed <- clock() - started
    if (passed > least) return(passed / calls)
  }
}

make_data <- function() {
  set.seed(1)
  x <- matrix(stats::rnorm(N * d), N)
  list(x = x, y = stats::rnorm(N), weights = NULL, n = N, group = NULL)
}

kernels <- list(se = kernel_se(rep(3, d), 1), matern52 = kernel_matern(5 / 2, rep(3, d), 1))

# Returns the function of one vector that the optimiser calls. `from` is the environment of the package's functions.
make_problem <- function(case, data, from = internal) {
  kernel <- internal$complete_kernel(kernels[[case$kernel]], data$x)
  model <- internal$new_model(kernel, noise)
  control <- pfdtc_control(threads = case$threads, memory = case$memory)
  z <- data$x[seq_len(case$m), ]
  if (case$objective == "vfe") return(from$points_problem(data, z, model, NULL, 0, control))
  set.seed(2)
  nu <- internal$make_auxiliary(aux_sor(size = r), data, model, case$m, control)
  stopifnot(ncol(nu$W) == r + 1, is.null(nu$Wt) == (case$memory == 0))
  from$points_problem(data, z, model, nu, 0, control)
}

flops <- function(case) 4 * N * case$m^2 + if (case$objective == "pf") 4 * N * case$m * r else 0

all_cases <- function() {
  case <- function(objective, kernel = "se", threads = 1L, memory = 2^27) {
    data.frame(objective, kernel, m = c(100, 400), threads, memory)
  }
  rbind(case("pf"), case("vfe"), case("pf", "matern52"), case("vfe", "matern52"), case("pf", memory = 0),
        case("pf", threads = 2L))
}

run_rounds <- function(cases, data, rounds) {
  square <- matrix(stats::rnorm(4e6), 2000)
  problems <- lapply(seq_len(nrow(cases)), function(i) make_problem(cases[i, ], data))
  clocks <- list(cpu, wall)[pmin(cases$threads, 2L)]
  yardstick <- spent <- matrix(0, rounds, nrow(cases))
  for (i in seq_len(rounds)) {
    dgemm <- vapply(list(cpu, wall), function(clock) seconds(function() square %*% square, clock), 0)
    yardstick[i, ] <- 2 * 2000^3 / dgemm[pmin(cases$threads, 2L)]
    for (j in seq_len(nrow(cases))) {
      spent[i, j] <- seconds(function() problems[[j]]$evaluate(problems[[j]]$start), clocks[[j]])
    }
  }
  rates <- vapply(seq_len(nrow(cases)), function(j) flops(cases[j, ]), 0) / t(spent)
  rates <- t(rates)
  cat(sprintf("dgemm 2000 x 2000: median %.1f, best %.1f GF/s\n\n", stats::median(yardstick[, 1]) / 1e9,
              max(yardstick[, 1]) / 1e9))
  column <- function(format, x, f) sprintf(format, apply(x, 2L, f))
  print(data.frame(cases[c("objective", "kernel", "m", "threads")], memory = ifelse(cases$memory == 0, "0", "128 MB"),
                   ms = column("%.1f", 1000 * spent, stats::median),
                   gflops = column("%.1f", rates / 1e9, stats::median),
                   fraction = column("%.2f", rates / yardstick, stats::median),
                   best = sprintf("%.2f", apply(rates, 2L, max) / apply(yardstick, 2L, max))), row.names = FALSE)
}

# Returns what R adds to .Call: for evaluations as the optimiser calls them, and for an optimisation (with L-BFGS).
overhead <- function(case, data) {
  inside <- 0
  count <- 0
  watched <- new.env(parent = internal)
  watched$.Call <- function(...) {
    started <- cpu()
    result <- base::.Call(...)
    inside <<- inside + cpu() - started
    count <<- count + 1
    result
  }
  for (f in c("native_evaluate", "objective_of", "points_problem")) {
    assign(f, get(f, internal), watched)
    environment(watched[[f]]) <- watched
  }
  problem <- make_problem(case, data, watched)
  calls <- ceiling(min(60, max(10, 3 / seconds(function() problem$evaluate(problem$start), cpu))))
  share <- function(f) {
    inside <<- count <<- 0
    started <- cpu()
    f()
    total <- cpu() - started
    c(percent = 100 * (1 - inside / total), `ms a call` = 1000 * (total - inside) / count)
  }
  rbind(evaluations = share(function() for (i in seq_len(calls)) problem$evaluate(problem$start)),
        optimisation = share(function() internal$minimise(problem, maxit = calls)))
}

main <- function(args) {
  rounds <- if (length(args)) as.integer(args[1L]) else 7L
  data <- make_data()
  cat(sprintf("R %s, pfdtc %s, BLAS %s\n", getRversion(), utils::packageVersion("pfdtc"),
              basename(dirname(extSoftVersion()[["BLAS"]]))))
  for (v in c("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")) {
    cat(v, "=", Sys.getenv(v, "(unset)"), "\n")
  }
  cases <- all_cases()
  run_rounds(cases, data, rounds)
  cat("\nWhat R adds around .Call (percent of the whole)\n")
  for (i in 1:4) {
    cat(sprintf("%s, M = %d\n", cases$objective[i], cases$m[i]))
    print(round(overhead(cases[i, ], data), 2))
  }
}

main(commandArgs(TRUE))
