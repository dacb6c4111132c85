# Lints R: names by the rule below, the rest by lintr with .lintr if lintr is installed.
#   Rscript tools/lint.R          lintr reads the files that changed since the commit in tools/linted.txt
#   Rscript tools/lint.R --all    lintr reads all files; without complaints it writes the commit into tools/linted.txt
# Reading all files takes two minutes or more. In .Rlib, which git ignores, linted.txt has the hash of .lintr and the
# hashes of the files in which lintr found nothing; it does not read these files again in this checkout.

# Parts of names between underscores or dots are lower case, or a matrix of the paper with its suffix (A, Kmm, At, L2):
# predict_posterior, W_x, add_A_At, predict.pfdtc. R's own names may be used.
good_piece <- paste0("([a-z0-9]*|[A-Z][a-z0-9]{0,3}|logLik|AIC|BIC|extractAIC|onLoad|onUnload|dataClasses|VarCorr|",
                     "Anova|REML|\\[)")
good_name <- sprintf("^%s([._]+%s)*$", good_piece, good_piece)

# Returns the names that a file gives to arguments and by `<-` and `=`.
names_given <- function(file) {
  d <- utils::getParseData(parse(file, keep.source = TRUE))
  arguments <- d[d$token == "SYMBOL_FORMALS", ]
  arrows <- d[d$token %in% c("LEFT_ASSIGN", "EQ_ASSIGN"), ]
  beside <- d[d$parent %in% arrows$parent, ]
  arrow <- arrows[match(beside$parent, arrows$parent), ]
  before <- beside[beside$line1 < arrow$line1 | beside$line1 == arrow$line1 & beside$col1 < arrow$col1, ]
  targets <- tapply(before$id, before$parent, max)
  rbind(arguments, d[d$token == "SYMBOL" & d$parent %in% targets, ])
}

lint_names <- function(file) {
  given <- names_given(file)
  given <- given[!grepl(good_name, gsub("`|%.*%", "", given$text)), ]
  sprintf("%s:%d:%d: name %s: snake_case, or a matrix's letter", rep(file, nrow(given)),
          given$line1, given$col1, given$text)
}

# Checks lines of examples, which help pages show verbatim but cut at 100 characters in print.
lint_examples <- function(file) {
  lines <- readLines(file, warn = FALSE)
  starts <- grepl("^#' @", lines) | !startsWith(lines, "#'")
  of_examples <- c(FALSE, grepl("^#' @examples", lines[starts]))[cumsum(starts) + 1L] & !starts
  at <- which(of_examples & nchar(sub("^#' ?", "", lines)) > 100)
  sprintf("%s:%d: a line of an example above 100 characters", rep(file, length(at)), at)
}

files <- list.files(c("R", "tests", "tools", "bench"), "[.][rR]$", full.names = TRUE,
                    recursive = TRUE)
vignettes <- list.files("vignettes", "[.]Rmd$", full.names = TRUE)
said <- c(unlist(lapply(files, lint_names)),
          unlist(lapply(list.files("R", "[.]R$", full.names = TRUE), lint_examples)))
if (requireNamespace("lintr", quietly = TRUE)) {
  git <- function(...) system2("git", c(...), stdout = TRUE, stderr = FALSE)
  since <- "tools/linted.txt"
  # Without git, or if the commit is unknown, the status is not 0, and lintr reads all files.
  changed <- suppressWarnings(tryCatch(git("diff", "--name-only", readLines(since)),
                                       error = function(e) structure(character(), status = 1L)))
  all <- "--all" %in% commandArgs(TRUE) || !is.null(attr(changed, "status")) || ".lintr" %in% changed
  changed <- c(changed, if (!all) git("ls-files", "--others", "--exclude-standard"))
  rule <- unname(tools::md5sum(".lintr"))
  sums <- unname(tools::md5sum(c(files, vignettes)))
  cache <- ".Rlib/linted.txt"
  known <- if (file.exists(cache)) readLines(cache)
  known <- if (identical(known[1], rule)) known[-1]
  due <- (all | c(files, vignettes) %in% changed) & !sums %in% known
  found <- unlist(lapply(c(files, vignettes)[due], function(file) {
    lapply(lintr::lint(file), function(l) {
      sprintf("%s:%d:%d: %s", file, l$line_number, l$column_number, l$message)
    })
  }))
  said <- c(said, found)
  complained <- c(files, vignettes) %in% sub(":.*", "", found)
  if (dir.exists(".Rlib")) writeLines(c(rule, sort(unique(c(known, sums[due & !complained])))), cache)
  if ("--all" %in% commandArgs(TRUE) && !length(said) && !length(git("status", "--porcelain"))) {
    writeLines(git("rev-parse", "HEAD"), since)
  }
} else {
  cat("lint: lintr is absent: R is checked for names alone\n")
}
writeLines(c(said, sprintf("lint: %d files of R, %d complaints", length(c(files, vignettes)),
                           length(said))))
quit(status = as.integer(length(said) > 0))
