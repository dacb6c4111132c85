# Who may see whom. Complains (status 1) when an #include in src/ points up or sideways, when a
# file has no place in the table, when BLAS or R are seen where they should not be, and when
# compiled code is called from R outside R/native.R.   Rscript tools/check-layers.R

# A file includes its own header and those of the layers from 0 up to `sees`, never a neighbour's.
layers <- read.table(header = TRUE, text = "
  file       layer  sees
  status     0      -1
  simd       0      -1
  linalg     1       0
  blas_threads 1     0
  kernel     2       1
  block      2       1
  row_features 2     1
  inducing   3       2
  lowrank    3       2
  select     3       2
  neighbours 3       2
  stats      4       3
  pairs      4       3
  kriging    4       3
  vecchia    4       3
  near       4       3
  posterior  5       4
  exact      5       4
  pf         6       4
  vfe        6       5
  white      6       5
  gradient   6       4
  certify    6       5
  args       7       6
  ffi        7       6
  ffi_*      7       6
  init       8       6
")

# Numerical C neither allocates, prints nor raises: of the standard library it needs only these.
plain_headers <- c("float.h", "limits.h", "math.h", "stdbool.h", "stddef.h", "stdint.h",
                   "string.h")
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
  if (from$layer == 7 && to$stem %in% c("args", "ffi", "ffi_blocks", "ffi_near_pass")) return(NULL)
  if (from$layer == 8 && to$file != "ffi") return("init.c needs ffi.h alone")
  if (from$layer < 8 && to$layer > from$sees) {
    return(sprintf("layer %d sees layers up to %d, and that is layer %d",
                   from$layer, from$sees, to$layer))
  }
}

complaint_system <- function(from, header, file) {
  if (basename(file) == "linalg.c" && header %in% blas_headers) return(NULL)
  if (basename(file) == "blas_threads.c" && header == "dlfcn.h") return(NULL)
  if (grepl("BLAS|Lapack", header)) return("only linalg.c sees BLAS and LAPACK")
  if (from$layer <= 6 && !header %in% plain_headers) {
    return(paste("layers 0 to 6 see only", paste(plain_headers, collapse = ", ")))
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

sources <- list.files("src", "[.][ch]$", full.names = TRUE)
pages <- list.files("R", "[.][rR]$", full.names = TRUE)
said <- c(unlist(lapply(sources, check_file)), unlist(lapply(pages, check_calls)))
writeLines(c(said, sprintf("layers: %d files in src, %d in R, %d complaints", length(sources),
                           length(pages), length(said))))
quit(status = as.integer(length(said) > 0))
