# Draws every figure of the help pages and of the vignettes as PNG files, as wide as a page (7 inches), with the package
# installed:
#   Rscript tools/figures.R [FOLDER [REGEX of names of help pages and vignettes]]
# Also complains about code wider than the page: above 90 columns in help pages, 92 in vignettes.

library(pfdtc)
arguments <- commandArgs(trailingOnly = TRUE)
folder <- if (length(arguments) > 0) arguments[1] else file.path(tempdir(), "figures")
wanted <- function(files) {
  if (length(arguments) > 1) grep(arguments[2], files, value = TRUE) else files
}
dir.create(folder, showWarnings = FALSE, recursive = TRUE)

wide <- function(file, lines, most) {
  too <- which(nchar(lines) > most)
  for (i in too) cat(sprintf("%s: %d columns: %s\n", file, nchar(lines[i]), lines[i]))
}

# Draw the examples of each help page, a file for each page of the device.
for (page in wanted(list.files("man", "[.]Rd$", full.names = TRUE))) {
  name <- sub("[.]Rd$", "", basename(page))
  code <- tempfile(fileext = ".R")
  tools::Rd2ex(page, code)
  if (!file.exists(code)) next
  wide(page, readLines(code), 90)
  png(file.path(folder, paste0(name, "-%02d.png")), 7, 5, "in", res = 96)
  set.seed(1)
  tryCatch(source(code, local = new.env(), echo = FALSE, print.eval = TRUE),
           error = function(e) cat(page, ": ", conditionMessage(e), "\n", sep = ""))
  dev.off()
}

# Draw the figures of each vignette by knitr.
for (page in wanted(list.files("vignettes", "[.]Rmd$", full.names = TRUE))) {
  name <- sub("[.]Rmd$", "", basename(page))
  lines <- readLines(page)
  chunk <- cumsum(grepl("^```", lines))
  head <- lines[grepl("^```", lines)][pmax(chunk, 1)]
  shown <- if (any(grepl("opts_chunk.*echo = FALSE", lines))) grepl("echo = TRUE", head) else
    !grepl("echo = FALSE|include = FALSE", head)
  wide(page, lines[chunk %% 2 == 1 & shown & !grepl("^```", lines)], 92)
  work <- tempfile(name)
  dir.create(work)
  file.copy(list.files("vignettes", full.names = TRUE), work)
  here <- setwd(work)
  knitr::opts_chunk$restore()
  knitr::opts_chunk$set(fig.path = "figure/")
  knitr::knit(basename(page), quiet = TRUE, envir = new.env())
  setwd(here)
  figures <- list.files(file.path(work, "figure"), full.names = TRUE)
  file.copy(figures, file.path(folder, paste0("vignette-", name, "-", basename(figures))), overwrite = TRUE)
}
cat(sprintf("%d figures in %s\n", length(list.files(folder)), folder))
