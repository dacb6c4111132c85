# Compares two installed versions by the milliseconds of processor time of one evaluation (value and gradient, of VFE's
# and the default objective), in alternating processes on one thread: the least of all, and new over old.
#   Rscript bench/versions.R LIBRARY_OLD LIBRARY_NEW
arguments <- commandArgs(trailingOnly = TRUE)
cases <- data.frame(n = c(7568, 1103, 3177), m = c(200, 200, 100), d = c(8, 5, 8))

seconds_here <- function() {
  library(pfdtc)
  options(pfdtc.threads = 1L)
  unlist(lapply(seq_len(nrow(cases)), function(i) {
    set.seed(1)
    x <- matrix(stats::rnorm(cases$n[i] * cases$d[i]), cases$n[i])
    y <- stats::rnorm(cases$n[i])
    z <- x[seq_len(cases$m[i]), ]
    kernel <- kernel_se(rep(2, cases$d[i]), 1)
    nu <- auxiliary(x, y, kernel, 0.1, aux_white())
    least <- function(f) min(replicate(4, sum(system.time(for (k in 1:2) f())[1:2]))) / 2
    c(least(function() vfe_objective(z, x, y, kernel, 0.1, jitter = 1e-6)),
      least(function() pf_objective(z, x, y, kernel, 0.1, nu, jitter = 1e-6)))
  }))
}

if (identical(arguments[1L], "here")) {
  suppressMessages(cat(format(seconds_here(), digits = 8), "\n"))
} else {
  script <- sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))
  ask <- function(library) {
    out <- system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script, "here"), stdout = TRUE,
                   env = paste0("R_LIBS=", library))
    scan(text = utils::tail(out, 1L), quiet = TRUE)
  }
  old <- new <- NULL
  for (i in seq_len(5L)) { # alternates which goes first
    if (i %% 2L) old <- cbind(old, ask(arguments[1L]))
    new <- cbind(new, ask(arguments[2L]))
    if (!i %% 2L) old <- cbind(old, ask(arguments[1L]))
  }
  least <- function(v) apply(v, 1L, min)
  table <- data.frame(cases[rep(seq_len(nrow(cases)), each = 2L), ], objective = c("vfe", "white"),
                      old_ms = 1e3 * least(old), new_ms = 1e3 * least(new), ratio = least(new) / least(old))
  print(table, digits = 3, row.names = FALSE)
}
