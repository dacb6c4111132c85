# Checks the layers in the tables of CONTRIBUTING.md, and returns status 1 with complaints. In src/, no file includes a
# header of a higher layer or of another file of its own layer, every file is in the table, and headers of BLAS and R
# are included only where allowed. In R/, only native.R calls compiled code, no function calls a file of a higher layer,
# and files of one layer do not call each other in a circle. Posteriors and responses do not call each other, and only
# response-table.R compares the name of a likelihood. Files have at most 400 lines, C entry points stay small, and only
# an exported argument calls the auxiliary distribution `nu`. Run: Rscript tools/check-layers.R

# Returns the files of each layer of `src/` or `R/`, the lowest first, from the table of CONTRIBUTING.md.
layers_of <- function(folder) {
  lines <- readLines("CONTRIBUTING.md")
  from <- grep(sprintf("^[|] layer [|] files in `%s` [|]", folder), lines)
  if (length(from) != 1L) stop("CONTRIBUTING.md has no table of the files in ", folder)
  rows <- lines[(from + 2L):length(lines)]
  rows <- strsplit(rows[cumsum(!startsWith(rows, "| ")) == 0L], " *[|] *")
  stats::setNames(lapply(rows, function(row) strsplit(row[3L], ", ")[[1L]]), vapply(rows, `[`, "", 2L))
}

c_layers <- layers_of("src/")
c_doors <- match("doors", names(c_layers))
r_layers <- layers_of("R/")

# Numerical C neither allocates, prints nor raises errors, so it needs only these headers of the standard library.
plain_headers <- c("float.h", "limits.h", "math.h", "stdbool.h", "stddef.h", "stdint.h",
                   "string.h")
vector_header <- "immintrin.h"
blas_headers <- c("R_ext/BLAS.h", "R_ext/Lapack.h", "Rconfig.h", "R_ext/RS.h")

place <- function(file) {
  stem <- sub("[.][ch]$", "", basename(file))
  layer <- rep(seq_along(c_layers), lengths(c_layers))[unlist(c_layers) == sub("^ffi_.*", "ffi_*", stem)]
  if (length(layer) == 1L) list(layer = layer, stem = stem)
}

includes <- function(file) {
  lines <- readLines(file, warn = FALSE)
  at <- grep("^\\s*#\\s*include\\s*[<\"]", lines) # `#include PAGE` of kinds.h names no file, and is skipped
  header <- sub("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"].*", "\\1", lines[at])
  data.frame(line = at, header, local = grepl("include\\s*\"", lines[at]))
}

complaint_local <- function(from, header) {
  to <- place(header)
  if (is.null(to)) return("which is not in the table of layers")
  if (to$stem == from$stem) return(NULL)
  if (from$layer == c_doors && to$layer == c_doors) return(NULL)
  if (from$layer > c_doors) return(if (to$stem != "ffi") "init.c may include only ffi.h")
  if (to$layer >= from$layer) {
    sprintf("which is of layer %s; files of layer %s may include only lower layers", names(c_layers)[to$layer],
            names(c_layers)[from$layer])
  }
}

complaint_system <- function(from, header, file) {
  if (basename(file) == "linalg.c" && header %in% blas_headers) return(NULL)
  if (basename(file) %in% c("gemm.c", "kinds.h") && header == vector_header) return(NULL)
  if (basename(file) == "blas_threads.c" && header == "dlfcn.h") return(NULL)
  if (grepl("BLAS|Lapack", header)) return("only linalg.c sees BLAS and LAPACK")
  if (from$layer < c_doors && !header %in% plain_headers) {
    return(paste("below the layer of entry points only", paste(plain_headers, collapse = ", ")))
  }
}

check_file <- function(file) {
  from <- place(file)
  if (is.null(from)) return(sprintf("%s: not in the table of layers", file))
  found <- includes(file)
  said <- character()
  for (i in seq_len(nrow(found))) {
    header <- found$header[i]
    complaint <- if (found$local[i]) complaint_local(from, header)
                 else complaint_system(from, header, file)
    if (!is.null(complaint)) {
      said <- c(said, sprintf("%s:%d: includes %s: %s", file, found$line[i], header, complaint))
    }
  }
  said
}

check_calls <- function(file) {
  if (basename(file) == "native.R") return(character())
  doors <- c(".Call", ".External", ".External2", ".C", ".Fortran")
  used <- intersect(doors, all.names(parse(file, keep.source = FALSE)))
  sprintf("%s: calls %s, which only R/native.R does", rep(file, length(used)), used)
}

# ---- R --------------------------------------------------------------------------------------------------------------

# Returns the values that a file gives to names at its top level.
definitions <- function(file) {
  found <- list()
  for (e in parse(file, keep.source = FALSE)) {
    if (is.call(e) && identical(e[[1L]], quote(`<-`)) && is.name(e[[2L]])) found[[as.character(e[[2L]])]] <- e[[3L]]
  }
  found
}

# Returns all names in code. all.names() omits those in default arguments.
names_in <- function(e) {
  if (is.name(e)) as.character(e) else if (is.call(e) || is.pairlist(e)) unlist(lapply(as.list(e), names_in_part))
}
names_in_part <- function(part) if (!missing(part)) names_in(part)

# Returns those of `names` that a function or a constant uses, by codetools, which detects local variables but is slow.
used_of <- function(value, names) {
  every <- names_in(value)
  names <- intersect(c(every, paste0(every, "<-")), names)
  if (!length(names)) return(names)
  f <- if (is.call(value) && identical(value[[1L]], quote(`function`))) eval(value) else
    eval(call("function", NULL, value))
  intersect(codetools::findGlobals(f), names)
}

# Returns data.frame(from, name, to, uses): the names that files use of one another where `matters(from, to)`.
uses_of_files <- function(files, matters) {
  defined <- lapply(stats::setNames(files, stem_of(files)), definitions)
  owner <- rep(names(defined), lengths(defined))
  names(owner) <- unlist(lapply(defined, names))
  twice <- unique(names(owner)[duplicated(names(owner))])
  if (length(twice)) stop("defined twice in R/: ", toString(twice))
  rows <- lapply(names(defined), function(file) {
    others <- names(owner)[owner != file & matters(file, owner)]
    do.call(rbind, lapply(names(defined[[file]]), function(name) {
      used <- used_of(defined[[file]][[name]], others)
      if (length(used)) data.frame(from = file, name = name, to = unname(owner[used]), uses = used)
    }))
  })
  do.call(rbind, rows)
}

# Returns files of a layer that have no order: those left after repeatedly removing files that use no other.
in_circles <- function(files, edges) {
  repeat {
    edges <- edges[edges$from %in% files & edges$to %in% files, ]
    ends <- setdiff(files, edges$from)
    if (!length(ends)) return(files)
    files <- setdiff(files, ends)
  }
}

stem_of <- function(files) sub("[.][rR]$", "", basename(files))

# Returns TRUE for a posterior and a response, which must not use each other: predict.R and leave-one-out combine them.
is_apart <- function(from, to) {
  grepl("^posterior-", from) & grepl("^response(-|$)", to) |
    grepl("^response(-|$)", from) & grepl("^posterior(-|$)", to)
}

check_r_layers <- function(files) {
  layer <- rep(seq_along(r_layers), lengths(r_layers))
  names(layer) <- unlist(r_layers)
  said <- sprintf("R/%s.R: not in the table of layers", setdiff(stem_of(files), names(layer)))
  edges <- uses_of_files(files[stem_of(files) %in% names(layer)],
                         function(from, to) layer[to] >= layer[from] | is_apart(from, to))
  up <- edges[layer[edges$to] > layer[edges$from], ]
  apart <- edges[is_apart(edges$from, edges$to), ]
  said <- c(said, sprintf("R/%s.R: %s uses %s of %s.R, which is of a higher layer", up$from, up$name, up$uses, up$to),
            sprintf("R/%s.R: %s uses %s of %s.R, and posteriors and responses do not call each other", apart$from,
                    apart$name, apart$uses, apart$to))
  for (files in r_layers) {
    circle <- in_circles(files, edges)
    if (length(circle)) said <- c(said, sprintf("R/: %s use one another in a circle", toString(circle)))
  }
  said
}

# Checks that only response-table.R compares the name of a likelihood, by ==, %in%, switch() etc. or `likelihood$name`.
check_names_of_likelihoods <- function(file) {
  if (basename(file) == "response-table.R") return(character())
  compares <- c("==", "!=", "%in%", "identical", "switch", "match", "match.arg")
  found <- character()
  visit <- function(e) {
    if (!is.call(e)) return(if (is.pairlist(e)) for (part in as.list(e)) if (!missing(part)) visit(part))
    name <- if (is.name(e[[1L]])) as.character(e[[1L]]) else ""
    strings <- if (name == "switch") names(e) else
      if (name %in% compares) unlist(lapply(as.list(e)[-1L], strings_in))
    found <<- c(found, intersect(strings, likelihood_names))
    if (name == "$" && identical(e[[3L]], quote(name)) && grepl("likelihood$", deparse(e[[2L]])[1L])) {
      found <<- c(found, "likelihood$name")
    }
    for (part in as.list(e)) if (!missing(part)) visit(part)
  }
  for (e in parse(file, keep.source = FALSE)) visit(e)
  sprintf("%s: compares a likelihood's name (%s), which only response-table.R does", rep(file, length(unique(found))),
          unique(found))
}

strings_in <- function(e) {
  if (is.character(e)) return(e)
  if (is.call(e) && identical(e[[1L]], quote(c))) unlist(lapply(as.list(e)[-1L], strings_in))
}

# Returns the names of the rows of response-table.R, except "gaussian", which other tables also use.
likelihood_names <- local({
  lines <- grep("^  name = \"", readLines("R/response-table.R"), value = TRUE)
  setdiff(sub("^  name = \"([a-z_]+)\".*", "\\1", lines), "gaussian")
})

# ---- sizes ----------------------------------------------------------------------------------------------------------

count_lines <- function(files) sum(vapply(files, function(file) length(readLines(file, warn = FALSE)), 0L))

# Checks that a file has at most 400 lines.
check_size <- function(file) {
  n <- count_lines(file)
  if (n > 400L) sprintf("%s: %d lines, more than 400", file, n)
}

# Returns the number of lines between the braces of each C entry point. Entry points unpack, run and pack.
lines_of_doors <- function(files) {
  unlist(lapply(files, function(file) {
    lines <- readLines(file, warn = FALSE)
    at <- grep("^SEXP ffi_", lines)
    end <- which(lines == "}")
    start <- which(lines == "{")
    body <- vapply(at, function(i) min(end[end > i]) - min(start[start > i]) - 1L, 0L)
    stats::setNames(body, sub("^SEXP (ffi_[a-z_0-9]+).*", "\\1", lines[at]))
  }))
}

check_doors <- function(files) {
  doors <- grepl("^(ffi|args|init)", basename(files))
  body <- lines_of_doors(files[grepl("^ffi_.*c$", basename(files))])
  lines <- c(count_lines(files[doors]), count_lines(files[!doors]))
  c(sprintf("%s(): %d lines, more than 40", names(body), body)[body > 40L],
    if (stats::median(body) > 12) sprintf("entry points: %g lines in the median, more than 12", stats::median(body)),
    if (2 * lines[1L] > lines[2L]) {
      sprintf("entry points: %d lines, above half of the %d of numerical C", lines[1L], lines[2L])
    })
}

# ---- names ----------------------------------------------------------------------------------------------------------

# The auxiliary distribution is `aux`; `nu` is a parameter of kernels and likelihoods, and an exported argument.
nu_stays <- c("kernel_matern", "pf_objective", "pf_divergence")

check_nu <- function(r_files, c_files) {
  says_nu <- function(code) {
    grepl("\\bnu\\b", gsub("(?s)\"[^\"]*\"|/[*].*?[*]/", "", paste(code, collapse = "\n"), perl = TRUE))
  }
  stays <- function(e) is.call(e) && as.character(e[[2L]])[1L] %in% nu_stays
  in_r <- vapply(r_files, function(file) {
    any(vapply(Filter(Negate(stays), parse(file, keep.source = FALSE)), function(e) says_nu(deparse(e)), NA))
  }, NA)
  in_c <- vapply(c_files, function(file) basename(file) != "responses.c" && says_nu(readLines(file, warn = FALSE)), NA)
  sprintf("%s: `nu`, where the auxiliary distribution is `aux`", c(r_files[in_r], c_files[in_c]))
}

check_c_places <- function(files) {
  stems <- sub("^ffi_.*", "ffi_*", sub("[.][ch]$", "", basename(files)))
  sprintf("%s: in the table of layers, but not a file in src/", setdiff(unlist(c_layers), stems))
}

sources <- list.files("src", "[.][ch]$", full.names = TRUE)
tests <- list.files(c("tests/testthat", "tools"), "[.]([chR]|sh)$", full.names = TRUE)
pages <- list.files("R", "[.][rR]$", full.names = TRUE)
said <- c(check_c_places(sources), unlist(lapply(sources, check_file)), unlist(lapply(pages, check_calls)),
          check_r_layers(pages), unlist(lapply(pages, check_names_of_likelihoods)),
          unlist(lapply(c(sources, pages, tests), check_size)), check_doors(sources),
          check_nu(pages, sources))
writeLines(c(said, sprintf("layers: %d files in src, %d in R, %d complaints", length(sources),
                           length(pages), length(said))))
quit(status = as.integer(length(said) > 0))
