# Plants faults, which the tests must notice.
#   Rscript tools/mutants.R check            checks that every edit of mutants.txt still applies
#   Rscript tools/mutants.R run [NAME...]    plants them (all, or those whose name contains a NAME), one at a time
#   Rscript tools/mutants.R own [NAME...]    does the same with the tests of their own files alone, to work on them
# A mutant is the package with one edit. The tests of its own file run first, all others only if it survives those and
# mutants.txt does not explain why. Its build is kept in .Rlib/mutants under a hash of its sources, and the verdict
# under a hash of the tests, so that unchanged work is not repeated. The status is 1 if a mutant survives without an
# explanation, or dies with one.

home <- ".Rlib/mutants"
sources <- c("DESCRIPTION", "NAMESPACE", "R", "src", "inst", "data")

## The list ------------------------------------------------------------------------------------------------------------

# Reads records, which empty lines separate: `key: value` (name, file, tests, survives), then lines to take out ("- ")
# and to put in ("+ "). Old text that is one line is found anywhere in a line, without its indentation.
read_mutants <- function(path = "tools/mutants.txt") {
  lines <- readLines(path)
  lines <- lines[!grepl("^#", lines)]
  records <- split(lines, cumsum(lines == ""))
  records <- lapply(records, function(r) r[r != ""])
  lapply(unname(records[lengths(records) > 0]), function(r) {
    field <- function(key) trimws(sub("^[a-z]+:", "", r[startsWith(r, paste0(key, ":"))]))
    text <- function(mark) paste(substring(r[startsWith(r, mark)], 3), collapse = "\n")
    list(name = field("name"), file = field("file"), tests = unlist(strsplit(field("tests"), " +")),
         survives = field("survives"), old = text("-"), new = text("+"))
  })
}

read_text <- function(file) paste0(paste(readLines(file), collapse = "\n"), "\n")

# Returns the reason why a mutant cannot be planted, or NULL.
complaint <- function(mutant) {
  if (length(mutant$name) != 1 || length(mutant$file) != 1) return("not one name and one file")
  if (!file.exists(mutant$file)) return(sprintf("there is no %s", mutant$file))
  if (!nzchar(mutant$old) || identical(mutant$old, mutant$new)) return("there is no edit")
  found <- lengths(regmatches(read_text(mutant$file), gregexpr(mutant$old, read_text(mutant$file), fixed = TRUE)))
  if (found != 1) return(sprintf("%s has its old text %d times", mutant$file, found))
  missing <- !file.exists(sprintf("tests/testthat/test-%s.R", mutant$tests))
  if (!length(mutant$tests) || any(missing)) return(paste("no tests:", toString(mutant$tests[missing])))
}

check <- function(mutants) {
  said <- unlist(lapply(mutants, function(m) {
    what <- complaint(m)
    if (length(what)) sprintf("mutants: %s: %s", toString(m$name), what)
  }))
  names <- unlist(lapply(mutants, `[[`, "name"))
  said <- c(said, sprintf("mutants: two are called '%s'", names[duplicated(names)]))
  writeLines(c(said, sprintf("mutants: %d, %d complaints", length(mutants), length(said))))
  length(said) == 0
}

## Builds --------------------------------------------------------------------------------------------------------------

hash_of <- function(files, ...) {
  files <- sort(files)
  note <- tempfile()
  writeLines(c(paste(files, unname(tools::md5sum(files))), ...), note)
  unname(tools::md5sum(note))
}

files_in <- function(parts) {
  files <- list.files(parts[dir.exists(parts)], recursive = TRUE, full.names = TRUE)
  c(files[!grepl("[.](o|so)$", files)], parts[file.exists(parts) & !dir.exists(parts)])
}

run <- function(command, args, log, seconds = 0, env = character()) {
  suppressWarnings(system2(command, shQuote(args), stdout = log, stderr = log, timeout = seconds, env = env))
}

# Returns a copy of the sources with their objects, made once for a state of the checkout.
base_tree <- function(base) {
  tree <- file.path(home, base, "tree")
  if (!dir.exists(tree)) {
    dir.create(tree, recursive = TRUE)
    parts <- sources[file.exists(sources)]
    file.copy(parts, tree, recursive = TRUE, copy.date = TRUE)
    unlink(list.files(file.path(tree, "src"), "[.](o|so)$", full.names = TRUE))
    if (install(tree, file.path(home, base)) != 0) {
      unlink(tree, recursive = TRUE) # the next run tries again
      stop("the package itself does not install: see its log")
    }
  }
  tree
}

# Installs a tree. R CMD INSTALL moves the package into the library only when the build is complete.
install <- function(tree, folder) {
  dir.create(folder, showWarnings = FALSE, recursive = TRUE)
  run("R", c("CMD", "INSTALL", "--no-docs", "--no-multiarch", "--no-test-load", "--no-byte-compile",
             paste0("--library=", folder), tree), file.path(folder, "log"))
}

# Installs the unedited package with a new shared object. Only the edited file is newer than its object file; if a
# header was edited, no object files are there.
relink <- function(tree, folder, base) {
  part <- file.path(folder, "part")
  dir.create(part, showWarnings = FALSE, recursive = TRUE)
  file.copy(file.path(home, base, "pfdtc"), part, recursive = TRUE, copy.date = TRUE)
  to <- normalizePath(file.path(part, "pfdtc", "libs", "pfdtc.so"))
  log <- file.path(normalizePath(folder), "log")
  old <- setwd(file.path(tree, "src"))
  on.exit(setwd(old))
  status <- run("R", c("CMD", "SHLIB", "-o", "pfdtc.so", list.files(pattern = "[.]c$")), log)
  if (status != 0 || !file.copy("pfdtc.so", to, overwrite = TRUE)) return(1L)
  setwd(old)
  as.integer(!file.rename(file.path(part, "pfdtc"), file.path(folder, "pfdtc")))
}

build <- function(mutant, base) {
  edited <- sub(mutant$old, mutant$new, read_text(file.path(base_tree(base), mutant$file)), fixed = TRUE)
  folder <- file.path(home, hash_of(character(), base, mutant$file, edited))
  if (dir.exists(file.path(folder, "pfdtc"))) return(folder)
  tree <- file.path(tempdir(), "tree")
  unlink(tree, recursive = TRUE)
  dir.create(tree)
  file.copy(list.files(base_tree(base), full.names = TRUE), tree, recursive = TRUE, copy.date = TRUE)
  cat(edited, file = file.path(tree, mutant$file))
  if (grepl("[.]h$", mutant$file)) unlink(list.files(file.path(tree, "src"), "[.]o$", full.names = TRUE))
  if (startsWith(mutant$file, "src/")) relink(tree, folder, base) else install(tree, folder)
  folder
}

## Verdicts ------------------------------------------------------------------------------------------------------------

all_tests <- function() sub("^test-(.*)[.]R$", "\\1", list.files(file.path(frozen, "tests/testthat"), "^test-.*[.]R$"))

# Freeze the tests at the start of a run, because the checkout may change meanwhile.
frozen <- file.path(tempdir(), "checkout")

freeze <- function() {
  dir.create(file.path(frozen, "tools"), recursive = TRUE)
  file.copy("tests", frozen, recursive = TRUE)
  file.copy("tools/test.R", file.path(frozen, "tools"))
}

hash_of_tests <- function(names, ...) {
  old <- setwd(frozen)
  on.exit(setwd(old))
  all <- files_in("tests")
  hash_of(c(sprintf("tests/testthat/test-%s.R", names), all[!startsWith(all, "tests/testthat/test-")]), ...)
}

# Returns NULL if the tests pass, else the reason of the failure.
stopped_by <- function(folder, tests, seconds) {
  log <- file.path(normalizePath(folder), "tests.log")
  old <- setwd(frozen)
  on.exit(setwd(old))
  filter <- sprintf("^(%s)$", paste(tests, collapse = "|"))
  status <- run("Rscript", c("--vanilla", "tools/test.R", dirname(log), filter), log, seconds,
                c("PFDTC_TEST_STOP=1", "PFDTC_TEST_ALL=1", "PFDTC_COUNTS="))
  if (status == 0) return(NULL)
  if (status == 124) return(sprintf("no end within %.0f s", seconds))
  lines <- readLines(log, warn = FALSE)
  said <- sub("^failed: ", "", grep("^failed: ", lines, value = TRUE))
  if (!length(said)) said <- paste("ended by status", status)
  substr(said[1], 1, 120)
}

# Returns the verdict on a mutant. If its own tests kill it, other tests do not matter.
verdict_of <- function(mutant, base, seconds, own) {
  folder <- build(mutant, base)
  if (!dir.exists(file.path(folder, "pfdtc"))) return(list(broken = TRUE))
  kept <- file.path(folder, paste0("verdict-", c(hash_of_tests(mutant$tests),
                                                 hash_of_tests(all_tests(), mutant$tests))))
  for (file in kept[file.exists(kept)]) return(readRDS(file))
  by <- stopped_by(folder, mutant$tests, min(seconds, 600))
  verdict <- list(by = by, first = !is.null(by))
  if ((own || length(mutant$survives)) && !verdict$first) return(verdict)
  if (!verdict$first) verdict$by <- stopped_by(folder, setdiff(all_tests(), mutant$tests), seconds)
  saveRDS(verdict, kept[if (verdict$first) 1 else 2])
  verdict
}

run_mutants <- function(mutants, own) {
  freeze()
  base <- hash_of(files_in(sources))
  base_tree(base)
  begun <- proc.time()[["elapsed"]]
  kept <- file.path(home, base, paste0("passed-", hash_of_tests(all_tests())))
  if (!file.exists(kept) && !own) {
    by <- stopped_by(file.path(home, base), all_tests(), 0)
    if (!is.null(by)) stop("the tests fail without a fault: ", by)
    writeLines(format(proc.time()[["elapsed"]] - begun), kept)
  }
  seconds <- if (own) 120 else 120 + 4 * as.numeric(readLines(kept)) # with some faults the tests never end
  wrong <- 0L
  for (m in mutants) {
    since <- proc.time()[["elapsed"]]
    v <- verdict_of(m, base, seconds, own)
    explained <- length(m$survives) > 0
    wrong <- wrong + (is.null(v$by) != explained || isTRUE(v$broken))
    said <- if (isTRUE(v$broken)) "DOES NOT BUILD"
      else if (is.null(v$by)) "SURVIVES"
      else if (v$first) "killed"
      else "killed by others' tests"
    why <- if (is.null(v$by)) m$survives else v$by
    cat(sprintf("%-52s %s%s, %.0f s: %s\n", m$name, said, if (is.null(v$by) && explained) " (explained)" else "",
                proc.time()[["elapsed"]] - since, paste(why, collapse = " ")))
    flush(stdout())
  }
  cat(sprintf("mutants: %d, %d not as they should be, %.0f s\n", length(mutants), wrong,
              proc.time()[["elapsed"]] - begun))
  wrong == 0
}

arguments <- commandArgs(trailingOnly = TRUE)
mutants <- read_mutants()
fine <- check(mutants)
if (fine && arguments[1] %in% c("run", "own")) {
  some <- arguments[-1]
  if (length(some)) {
    named <- vapply(mutants, function(m) any(vapply(some, grepl, NA, x = m$name, fixed = TRUE)), NA)
    mutants <- mutants[named]
    if (!length(mutants)) stop("no mutant is called like that")
  }
  fine <- run_mutants(mutants, arguments[1] == "own")
}
quit(status = as.integer(!fine))
