# Runs the paper's experiments: every (set, M) of design.csv, ten repetitions, six methods. A new call resumes the run.
#
#   PFDTC_DATA=<folder of the CSVs> OPENBLAS_NUM_THREADS=1 bash tools/openblas.sh \
#     Rscript inst/experiments/run.R --out inst/experiments/results
#
#   --out FOLDER    folder for paper.csv.gz, paper-trace.csv.gz and about.dcf
#   --workers N     number of processes (default 2)
#   --stages 1,2    runs only these stages of the design
#   --forecast      prints the expected time and stops
#   --reduced       runs two small sets with two repetitions in a minute and checks the results; --out is optional
#
# Without tools/openblas.sh R's own BLAS is used. The seed is always 1.

suppressMessages(library(pfdtc))
options(pfdtc.threads = 1L)

seed <- 1
methods <- c("pf", "vfe", "sor", "subsample", "default", "vfe_greedy")
control <- pfdtc_control(maxit = 150, reltol = 1e-5)
repetitions <- 10
traced <- 200 # the M with a trace, on airfoil (figure 1)

main <- function(args) {
  option <- function(name, default) {
    i <- match(name, args)
    if (is.na(i)) default else args[i + 1L]
  }
  known <- c("--out", "--workers", "--stages", "--forecast", "--reduced")
  flags <- grep("^--", args, value = TRUE)
  if (!all(flags %in% known)) stop("unknown option: ", setdiff(flags, known)[1L], call. = FALSE)
  workers <- as.integer(option("--workers", 2L))
  if ("--reduced" %in% args) return(reduced(option("--out", tempfile("experiments")), workers))
  design <- utils::read.csv(file.path(script_folder(), "design.csv"))
  stages <- as.integer(strsplit(option("--stages", paste(unique(design$stage), collapse = ",")), ",")[[1L]])
  design <- design[design$stage %in% stages, ]
  if ("--forecast" %in% args) return(print_forecast(design, workers))
  out <- option("--out", NULL)
  if (is.null(out)) stop("--out must name a folder", call. = FALSE)
  dir.create(out, FALSE, TRUE)
  print_forecast(design, workers)
  write_about(out, args, workers)
  for (stage in unique(design$stage)) {
    here <- design[design$stage == stage, ]
    for (set in unique(here$dataset)) {
      m <- here$m[here$dataset == set]
      say("stage %d, %s, M = %s", stage, set, paste(m, collapse = ", "))
      run_experiment(set, methods, m, repetitions, seed, file.path(out, "paper.csv.gz"),
                     trace = if (set == "airfoil") intersect(traced, m), control = control, workers = workers, progress = TRUE)
    }
  }
  results <- utils::read.csv(file.path(out, "paper.csv.gz"))
  all <- utils::read.csv(file.path(script_folder(), "design.csv"))
  lacking <- sum(!complete(all, results, repetitions))
  if (!lacking) unlink(file.path(out, "paper-cache"), recursive = TRUE)
  say("%d rows; %s", nrow(results), if (lacking) sprintf("%d of the design's (set, M) are not complete", lacking) else
    "the design is complete")
}

say <- function(...) cat(format(Sys.time(), "%H:%M:%S "), sprintf(...), "\n", sep = "")

script_folder <- function() {
  file <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
  if (length(file)) dirname(file) else system.file("experiments", package = "pfdtc")
}

# Returns TRUE for each (set, M) of the design that has all methods and repetitions.
complete <- function(design, results, repetitions) {
  wanted <- expand.grid(method = methods, repetition = seq_len(repetitions))
  mapply(function(set, m) {
    here <- results[results$dataset == set & results$m == m, ]
    all(paste(wanted$method, wanted$repetition) %in% paste(here$method, here$repetition))
  }, design$dataset, design$m)
}

# Prints the expected seconds for each (set, M). It times an evaluation of each objective and a dense product, and
# counts the rest in these units.
print_forecast <- function(design, workers) {
  a <- matrix(stats::rnorm(1e6), 1000)
  flop <- system.time(for (i in 1:3) crossprod(a, a))[[1L]] / 3 / 1e9 # dsyrk needs half as many
  sets <- paper_datasets()
  seconds <- mapply(function(set, m) forecast_cell(sets[sets$name == set, ], m, flop), design$dataset, design$m)
  n <- sets$n_train[match(design$dataset, sets$name)]
  exact <- ifelse(duplicated(design$dataset), 0, flop * (n^3 * 1.5 + n^2 * 4000))
  minutes <- repetitions * (seconds + exact) / workers / 60
  cat("forecast, minutes, for an idle machine:\n")
  print(round(tapply(minutes, design[c("dataset", "stage")], sum), 1), na.print = "")
  cat(sprintf("in all: %.0f\n", sum(minutes)))
}

forecast_cell <- function(set, m, flop) {
  n <- min(set$n_train, 2000)
  x <- matrix(stats::runif(n * set$d), n)
  y <- stats::rnorm(n)
  kernel <- kernel_se(rep(0.5, set$d), 1)
  z <- x[seq_len(m), , drop = FALSE]
  cpu <- function(code) {
    code <- substitute(code)
    frame <- parent.frame()
    stats::median(vapply(1:3, function(i) sum(system.time(eval(code, frame))[1:2]), 0)) * set$n_train / n
  }
  paper <- auxiliary(x, y, kernel, 0.1, aux_sor(rows = seq_len(min(n, set$n_aux))))
  default <- auxiliary(x, y, kernel, 0.1, aux_white())
  evaluations <- 1.05 * control$maxit
  fits <- evaluations * (2 * cpu(vfe_objective(z, x, y, kernel, 0.1, jitter = 1e-6)) +
                           cpu(pf_objective(z, x, y, kernel, 0.1, paper, jitter = 1e-6)) +
                           cpu(pf_objective(z, x, y, kernel, 0.1, default, jitter = 1e-6)))
  n <- set$n_train
  fits + flop * (n^3 / 3 + 2 * n^2 * (set$n_aux + 6 * m) + 150 * n * m^2)
}

# ---- description of the run ------------------------------------------------------------------------------------------

write_about <- function(out, args, workers) {
  run <- c(
    Date = format(Sys.time(), "%Y-%m-%d %H:%M UTC", tz = "UTC"),
    Command = paste(c("Rscript inst/experiments/run.R", args), collapse = " "), Seed = seed, Workers = workers,
    Package = paste("pfdtc", utils::packageVersion("pfdtc")), Commit = commit(), R = R.version.string, BLAS = blas(),
    Machine = machine())
  file <- file.path(out, "about.dcf")
  write.dcf(t(run), file, append = file.exists(file), width = 500)
}

commit <- function() {
  git <- function(...) {
    suppressWarnings(tryCatch(system2("git", c(...), stdout = TRUE, stderr = FALSE), error = function(e) character()))
  }
  id <- git("rev-parse", "--short=12", "HEAD")
  if (length(id) != 1L) return("unknown")
  paste0(id, if (length(git("status", "--porcelain", "--", "R", "src"))) ", with changes to R or src")
}

blas <- function() {
  path <- extSoftVersion()[["BLAS"]]
  name <- if (grepl("openblas", path, ignore.case = TRUE)) "OpenBLAS" else basename(path)
  paste0(name, ", one thread; LAPACK ", La_version())
}

machine <- function() {
  info <- if (file.exists("/proc/cpuinfo")) readLines("/proc/cpuinfo") else character()
  model <- unique(sub(".*: *", "", grep("^model name", info, value = TRUE)))
  paste0(if (length(model)) paste(model, collapse = ", ") else R.version$platform, ", ",
         parallel::detectCores(), " cores")
}

# ---- the reduced run -------------------------------------------------------------------------------------------------

reduced <- function(out, workers) {
  dir.create(out, FALSE, TRUE)
  file <- file.path(out, "reduced.csv")
  quick <- pfdtc_control(maxit = 40, reltol = 1e-5)
  run <- function(set, m, ...) {
    run_experiment(set, methods, m, reps = 2, seed = seed, file = file, control = quick, workers = workers,
                   progress = TRUE, ...)
  }
  small <- function() run("synthetic", c(21, 10), train = 400, test = 200, trace = 21)
  results <- small()
  if (nzchar(Sys.getenv("PFDTC_DATA"))) {
    results <- rbind(results, run("airfoil", c(50, 20), train = 500, test = 200, trace = 50))
  } else {
    say("PFDTC_DATA is not set: airfoil is left out")
  }
  again <- small()
  sets <- unique(results$dataset)
  fits <- results[results$method != "exact", ]
  best <- function(method) fits$rmse_mean[fits$method == method]
  checks <- c(
    "every fit is there" = nrow(results) == length(sets) * (2 * 2 * length(methods) + 2),
    "no certificate is broken" = all(fits$outside == 0),
    "certificates are no less than the errors" = all(fits$certified_mean_error >= fits$max_mean - 1e-9),
    "optimised points are better than those they started from" =
      stats::median(best("pf") / best("sor")) < 1 && stats::median(best("vfe") / best("sor")) < 1,
    "run again, nothing is computed again" = isTRUE(all.equal(again, results[results$dataset == "synthetic", ],
                                                              check.attributes = FALSE)))
  print(stats::aggregate(cbind(rmse_mean, rmse_sd, certified_mean_error, cpu) ~ method + m + dataset, fits,
                         stats::median), digits = 3)
  for (check in names(checks)) say("%s: %s", if (checks[[check]]) "ok" else "FAILED", check)
  if (!all(checks)) quit(status = 1)
}

main(commandArgs(TRUE))
