# Calls every C entry point once with small arguments, and again with a garbage collection at every allocation. The
# numbers must be the same.   Rscript tools/doors.R LIBRARY      (tools/doors.sh also runs it under valgrind)
arguments <- commandArgs(trailingOnly = TRUE)
library(pfdtc, lib.loc = arguments[1])
here <- new.env(parent = asNamespace("pfdtc"))
for (file in list.files("tests/testthat", "^helper.*[.]R$", full.names = TRUE)) sys.source(file, here)

made <- here$door_examples()
lanes <- here$call_door("linalg_own", list(0L)) # returns the earlier choice, which the next line restores
invisible(here$call_door("linalg_own", list(lanes)))
doors <- c(made$doors, list(select_guided = list(t(made$p$x), diag(2), 3L, 0.1), row_features = list(made$p$x, 5L),
                            status = list(1L), linalg_own = list(lanes), blas_threads = list(0L)))
walked <- paste0("ffi_", sub(" .*", "", names(doors)))
left <- setdiff(names(getDLLRegisteredRoutines("pfdtc")$.Call), walked)
if (length(left)) stop("no arguments for ", paste(left, collapse = ", "))

torture <- !nzchar(Sys.getenv("PFDTC_NO_TORTURE"))
same <- vapply(names(doors), function(name) {
  plain <- here$call_door(name, doors[[name]])
  if (!torture) return(TRUE)
  gctorture(TRUE)
  again <- here$call_door(name, doors[[name]])
  gctorture(FALSE)
  identical(plain, again)
}, NA)
cat(sprintf("doors: %d entry points called, %d with other results under gctorture%s\n", length(doors), sum(!same),
            if (torture) "" else " (not run)"))
if (any(!same)) cat(names(doors)[!same], sep = "\n")
quit(status = as.integer(any(!same)))
