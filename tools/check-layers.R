# Who may see whom. Complains (status 1) when an #include in src/ points up or sideways, when a
# file has no place in the table, when BLAS or R are seen where they should not be, when compiled
# code is called from R outside R/native.R, and when a function in R/ calls one in a file to the
# right of its own, or files of one layer call each other in a circle.   Rscript tools/check-layers.R

# A file includes its own header and those of the layers from 0 up to `sees`, never a neighbour's.
layers <- read.table(header = TRUE, text = "
  file       layer  sees
  status     0      -1
  simd       0      -1
  arena      0      -1
  profile    0      -1
  responses  0      -1
  gemm       0      0
  gemm_tile  0      -1
  vectors    0      -1
  exp_series 0      -1
  strip      1       0
  strip_tile 0      -1
  linalg     1       0
  vexp       1       0
  small      2       1
  blas_threads 1     0
  factor     1       0
  kernel     2       1
  block      2       1
  row_features 2     1
  model      3       2
  sink       3       2
  noise      3       2
  select     3       2
  coordinates 3      2
  self_slopes 3      2
  inducing   4       3
  lowrank    4       3
  neighbours 4       3
  stats      5       4
  pairs      5       4
  kriging    5       4
  vecchia    5       4
  near       5       4
  pass       6       5
  posterior  7       6
  dtc        8       7
  exact      8       7
  laplace    7       6
  pf         7       6
  gradient   7       6
  gram       7       6
  likelihood 7       6
  vfe        8       7
  white      8       7
  certify    8       7
  objective  9       8
  divergence 9       8
  crossing   9       8
  norms      9       8
  local      9       8
  args       10      9
  ffi        10      9
  ffi_*      10      9
  init       11     10
")

# Numerical C neither allocates, prints nor raises: of the standard library it needs only these.
plain_headers <- c("float.h", "limits.h", "math.h", "stdbool.h", "stddef.h", "stdint.h",
                   "string.h")
vector_header <- "immintrin.h"
blas_headers <- c("R_ext/BLAS.h", "R_ext/Lapack.h", "Rconfig.h", "R_ext/RS.h")

place <- function(file) {
  stem <- sub("[.][ch]$", "", basename(file))
  row <- layers[layers$file == sub("^ffi_.*", "ffi_*", stem), ]
  if (nrow(row) == 1) c(as.list(row), stem = stem)
}

includes <- function(file) {
  lines <- readLines(file, warn = FALSE)
  at <- grep("^\\s*#\\s*include\\b", lines)
  header <- sub("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"].*", "\\1", lines[at])
  data.frame(line = at, header, local = grepl("include\\s*\"", lines[at]))
}

complaint_local <- function(from, header) {
  to <- place(header)
  if (is.null(to)) return("which is not in the table of layers")
  if (to$stem == from$stem) return(NULL)
  if (from$layer == 10 && to$stem %in% c("args", "ffi", "ffi_near_pass")) return(NULL)
  if (from$layer == 11 && to$file != "ffi") return("init.c needs ffi.h alone")
  if (from$layer < 11 && to$layer > from$sees) {
    return(sprintf("layer %d sees layers up to %d, and that is layer %d",
                   from$layer, from$sees, to$layer))
  }
}

complaint_system <- function(from, header, file) {
  if (basename(file) == "linalg.c" && header %in% blas_headers) return(NULL)
  if (basename(file) == "strip.c" && header == vector_header) return(NULL)
  if (basename(file) == "blas_threads.c" && header == "dlfcn.h") return(NULL)
  if (grepl("BLAS|Lapack", header)) return("only linalg.c sees BLAS and LAPACK")
  if (from$layer <= 9 && !header %in% plain_headers) {
    return(paste("layers 0 to 9 see only", paste(plain_headers, collapse = ", ")))
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

# A layer a line, the lowest first: a file calls what stands above it, and files of its own line without a circle.
# CONTRIBUTING.md says what each layer is for.
r_layers <- strsplit(split = " +", x = c(
  "text:        conditions",
  "checks:      checks control",
  "native:      kernel_parts native",
  "kernels:     kernels kernel_algebra kernel_place model student likelihood slopes",
  "rows:        merge frontend formula newdata rows signature source survey",
  "sums:        sums parameters inducing near objective auxiliary_kinds auxiliary evidence small_n",
  "optimise:    progress optimise stages learn_rows learn_problem ascend learn_starts learn_kernel learn",
  "gp:          family gp current_fit same_model posterior functionals",
  "fit:         settings hyper points construct from_source fit laplace",
  paste("certify:     norms kriging precondition dtc exact_interval exact_mean laplace_bounds laplace_check",
        "certify_laplace reference certify certify_functionals refine"),
  "bounds:      evidence_bounds divergence bounds",
  "tolerance:   yardstick tolerance_otherwise tolerance_points tolerance",
  "doors:       doors baselines pfdtc pfdtc-package",
  "checking:    curvature mixture loo_near pathwise loo loo_laplace conformal cross_validate",
  paste("methods:     linear_functional partial_dependence terms derivative predict_laplace predict methods_laplace",
        "methods regression criteria anova compare summary print_certificate"),
  "experiments: datasets experiment_files experiments",
  paste("figures:     draw slices plot_checks plot_map plot plot_fits plot_certificate plot_experiments plot_trace",
        "ggplot_fit ggplot_experiments"),
  "others:      tidiers insight marginaleffects emmeans butcher parsnip report",
  "load:        zzz"
))
r_layers <- lapply(r_layers, `[`, -1L)

# The top-level names of a file with what their values use, as codetools sees it: functions and constants alike.
uses <- function(file) {
  found <- list()
  for (e in parse(file, keep.source = FALSE)) {
    if (!is.call(e) || !identical(e[[1L]], quote(`<-`)) || !is.name(e[[2L]])) next
    value <- e[[3L]]
    f <- if (is.call(value) && identical(value[[1L]], quote(`function`))) eval(value) else
      eval(call("function", NULL, value))
    found[[as.character(e[[2L]])]] <- codetools::findGlobals(f)
  }
  found
}

# data.frame(from, name, to, uses): what files use of one another.
uses_of_files <- function(files) {
  used <- lapply(stats::setNames(files, sub("[.][rR]$", "", basename(files))), uses)
  owner <- rep(names(used), lengths(used))
  names(owner) <- unlist(lapply(used, names))
  twice <- unique(names(owner)[duplicated(names(owner))])
  if (length(twice)) stop("defined twice in R/: ", toString(twice))
  rows <- lapply(names(used), function(file) {
    do.call(rbind, lapply(names(used[[file]]), function(name) {
      other <- intersect(used[[file]][[name]], names(owner)[owner != file])
      if (length(other)) data.frame(from = file, name = name, to = unname(owner[other]), uses = other)
    }))
  })
  do.call(rbind, rows)
}

# Files of a layer that can be put in no order: what is left when those that use no other are taken out, over and over.
in_circles <- function(files, edges) {
  repeat {
    edges <- edges[edges$from %in% files & edges$to %in% files, ]
    ends <- setdiff(files, edges$from)
    if (!length(ends)) return(files)
    files <- setdiff(files, ends)
  }
}

check_r_layers <- function(files) {
  stems <- sub("[.][rR]$", "", basename(files))
  layer <- rep(seq_along(r_layers), lengths(r_layers))
  names(layer) <- unlist(r_layers)
  said <- c(sprintf("R/%s.R: not in the table of layers", setdiff(stems, names(layer))),
            sprintf("%s: in the table of layers, and there is no such file in R/", setdiff(names(layer), stems)))
  edges <- uses_of_files(files)
  edges <- edges[edges$from %in% names(layer) & edges$to %in% names(layer), ]
  up <- edges[layer[edges$to] > layer[edges$from], ]
  said <- c(said, sprintf("R/%s.R: %s uses %s of %s.R, which is of a higher layer", up$from, up$name, up$uses, up$to))
  for (files in r_layers) {
    circle <- in_circles(files, edges)
    if (length(circle)) said <- c(said, sprintf("R/: %s use one another in a circle", toString(circle)))
  }
  said
}

# ---- sizes ----------------------------------------------------------------------------------------------------------

# A file that can be read in one sitting.
most_lines <- 400L

check_size <- function(file) {
  n <- length(readLines(file, warn = FALSE))
  if (n > most_lines) sprintf("%s: %d lines, more than %d", file, n, most_lines)
}

sources <- list.files("src", "[.][ch]$", full.names = TRUE)
pages <- list.files("R", "[.][rR]$", full.names = TRUE)
said <- c(unlist(lapply(sources, check_file)), unlist(lapply(pages, check_calls)), check_r_layers(pages),
          unlist(lapply(pages, check_size)))
writeLines(c(said, sprintf("layers: %d files in src, %d in R, %d complaints", length(sources),
                           length(pages), length(said))))
quit(status = as.integer(length(said) > 0))
