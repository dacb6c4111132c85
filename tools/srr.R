# Collects the answers to rOpenSci's standards for statistical software (General, Regression) from their tags in R/ and
# tests/:
#   Rscript tools/srr.R            writes tools/srr-report.md
#   Rscript tools/srr.R --check    complains of standards without an answer or with two, and of a stale report

sub <- function(number, letters) c(number, paste0(number, letters))
standards <- c(
  paste0("G1.", 0:3), sub("G1.4", "a"), paste0("G1.", 5:6),
  sub("G2.0", "a"), sub("G2.1", "a"), "G2.2", sub("G2.3", c("a", "b")), sub("G2.4", c("a", "b", "c", "d", "e")),
  paste0("G2.", 5:13), sub("G2.14", c("a", "b", "c")), paste0("G2.", 15:16), "G3.0", sub("G3.1", "a"), "G4.0",
  paste0("G5.", 0:1), sub("G5.2", c("a", "b")), "G5.3", sub("G5.4", c("a", "b", "c")), "G5.5",
  sub("G5.6", c("a", "b")), "G5.7", sub("G5.8", c("a", "b", "c", "d")), sub("G5.9", c("a", "b")), "G5.10",
  sub("G5.11", "a"), "G5.12",
  paste0("RE1.", 0:2), sub("RE1.3", "a"), "RE1.4", paste0("RE2.", 0:3), sub("RE2.4", c("a", "b")), paste0("RE3.", 0:3),
  paste0("RE4.", 0:18), "RE5.0", paste0("RE6.", 0:3), sub("RE7.0", "a"), sub("RE7.1", "a"), paste0("RE7.", 2:4))

answers_of <- function(file) {
  lines <- readLines(file)
  starts <- grep("^#' @srrstats(NA)? [{]", lines)
  do.call(rbind, lapply(starts, function(i) {
    more <- i
    while (more < length(lines) && grepl("^#'   ", lines[more + 1L])) more <- more + 1L
    text <- paste(gsub("^#' *", "", lines[i:more]), collapse = " ")
    data.frame(standard = gsub(".*[{](.*?)[}].*", "\\1", lines[i]), applies = !grepl("@srrstatsNA", lines[i]),
               text = gsub("^@srrstats(NA)? [{][^}]*[}] *", "", text), file = file)
  }))
}

files <- sort(list.files(c("R", file.path("tests", "testthat")), "[.]R$", full.names = TRUE))
found <- do.call(rbind, lapply(files, answers_of))
complaints <- c(
  sprintf("%s: no answer", setdiff(standards, found$standard)),
  sprintf("%s: more than one answer", unique(found$standard[duplicated(found$standard)])),
  sprintf("%s: no such standard", setdiff(found$standard, standards)))

found <- found[order(match(found$standard, standards)), ]
report <- c(
  "# rOpenSci's standards for statistical software: General and Regression", "",
  "Made by `Rscript tools/srr.R` from the tags `@srrstats` in the code.", "",
  sprintf("%d standards: %d met, %d do not apply.", length(standards), sum(found$applies), sum(!found$applies)), "",
  "| standard | answer | where |", "| --- | --- | --- |",
  sprintf("| %s | %s%s | `%s` |", found$standard, ifelse(found$applies, "", "*Does not apply.* "),
          gsub("|", "\\|", found$text, fixed = TRUE), found$file))

page <- file.path("tools", "srr-report.md")
if (identical(commandArgs(trailingOnly = TRUE), "--check")) {
  if (!file.exists(page) || !identical(readLines(page), report)) complaints <- c(complaints, paste(page, "is stale"))
} else {
  writeLines(report, page)
}
writeLines(c(complaints, sprintf("standards: %d, %d complaints", length(standards), length(complaints))))
quit(status = as.integer(length(complaints) > 0))
