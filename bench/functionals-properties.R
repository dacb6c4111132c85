# Compares certificates of sums, contrasts, averages and derivatives under random sums of products of all kernels with
# the exact GP by dense algebra. No certificate may be violated.
#   Rscript bench/functionals-properties.R [count = 500] [seed = 1]      (problems of each kind; from the source tree)
# The reference is solve() in double precision. Its own errors, eps times the condition number of K + s2 I, are allowed.
suppressMessages(library(pfdtc))
args <- as.integer(c(commandArgs(TRUE), "500", "1")[1:2])
if (length(commandArgs(TRUE)) == 1L) args[2L] <- 1L
inside <- asNamespace("pfdtc")
for (name in ls(inside, all.names = TRUE)) if (!exists(name)) assign(name, get(name, inside))
with_seed <- function(seed, expr) {
  set.seed(seed)
  expr
}
for (file in c("reference", "kernels", "functionals")) source(sprintf("tests/testthat/helper-%s.R", file))
broken <- 0
for (kind in c("sums", "slopes")) {
  found <- vapply(args[2L] * 100000L + seq_len(args[1L]), attack_functionals, numeric(4), kind = kind)
  most <- function(what) max(found[what, ], na.rm = TRUE)
  cat(sprintf("%s: %d problems (%d refused), %d certificates, %d broken; ", kind, ncol(found),
              sum(found["rows", ] == 0), sum(found["rows", ]), sum(found["broken", ])))
  cat(sprintf("largest error / certificate %.4f, %.4f by kriging alone\n", most("ratio"), most("kriging")))
  print(args[2L] * 100000L + which(found["broken", ] > 0))
  broken <- broken + sum(found["broken", ])
}
quit(status = as.integer(broken > 0))
