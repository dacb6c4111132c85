# Does the part of setup.sh that needs R.
#   Rscript tools/setup.R missing PACKAGE...            prints those that are not installed
#   Rscript tools/setup.R install LIBRARY PACKAGE...    installs them and their dependencies from CRAN

installed <- function(package) requireNamespace(package, quietly = TRUE)

cran <- function() {
  repos <- getOption("repos")
  if (any(repos == "@CRAN@")) getCRANmirrors(local.only = TRUE)$URL[1] else repos
}

# Returns those packages that are not installed, out of `package` and all packages that it needs.
closure <- function(package, db) {
  tools::package_dependencies(package, db, which = c("Depends", "Imports", "LinkingTo"),
                              recursive = TRUE)[[1]] |>
    union(package) |>
    setdiff(rownames(utils::installed.packages()))
}

install <- function(package, lib, offered, everything) {
  wanted <- closure(package, everything)
  refused <- setdiff(wanted, rownames(offered))
  if (length(refused) > 0) {
    needs <- ifelse(refused %in% rownames(everything),
                    everything[match(refused, rownames(everything)), "Depends"], "not on CRAN")
    message(sprintf("setup: %s is not installed: R is %s, and it needs %s", package, getRversion(),
                    paste0(refused, " (", needs, ")", collapse = ", ")))
    return(invisible())
  }
  message("setup: from CRAN into .Rlib: ", paste(wanted, collapse = " "))
  tryCatch(
    utils::install.packages(wanted, lib = lib, repos = cran(), available = offered,
                            Ncpus = 2L, quiet = TRUE),
    warning = function(w) message("setup: ", conditionMessage(w)),
    error = function(e) message("setup: ", conditionMessage(e))
  )
}

arguments <- commandArgs(trailingOnly = TRUE)
if (arguments[1] == "missing") {
  writeLines(Filter(Negate(installed), arguments[-1]))
} else {
  lib <- arguments[2]
  options(timeout = 600)
  db <- function(filters) {
    suppressWarnings(utils::available.packages(repos = cran(), filters = filters))
  }
  everything <- db(c("OS_type", "duplicates"))
  if (nrow(everything) == 0) {
    message("setup: CRAN cannot be reached")
  } else {
    offered <- db(c("R_version", "OS_type", "duplicates"))
    for (package in arguments[-(1:2)]) install(package, lib, offered, everything)
  }
}
