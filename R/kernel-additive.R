# The constructor of the additive kernel (kernel-tied.R), its labels and its terms.

#' @export
kernel_additive <- function(kernel = kernel_matern(3 / 2), pairs = FALSE, share = NULL, ratio = NULL) {
  if (is.function(kernel)) kernel <- kernel()
  if (!inherits(kernel, "pfdtc_kernel") || !isTRUE(kernel$profile %in% kernels_of_before)) {
    abort_input("kernel", describe(kernel), "kernel_se() or kernel_matern()")
  }
  if (!is.numeric(pairs)) pairs <- check_flag(pairs, "pairs")
  with_pairs <- !isFALSE(pairs)
  kernel$base <- kernel$profile
  kernel$profile <- if (with_pairs) "pairwise" else "additive"
  kernel$label <- paste0(kernel$label, " of all inputs + each input by itself", if (with_pairs) " + pairs of inputs")
  kernel$additive.share <- positive_or_null(share, "share")
  kernel$additive.ratio <- positive_or_null(ratio, "ratio")
  if (is.numeric(pairs)) kernel$additive.pairs <- check_positive(pairs, "pairs", 1L)
  kernel
}

# Returns the kernel as a sum of products in which an additive factor is the sum of its terms, with their values.
with_own_terms <- function(kernel) {
  parts <- as_sum(kernel)
  if (!has_profile(kernel, c("additive", "pairwise"))) return(parts)
  compiled <- compile_kernel(kernel)
  tie <- expand_additive(parts, compiled$table)
  values <- engine_kernel(compiled)$values
  met <- integer()
  used <- 0L
  take <- function(n) { # the values are in the order of the terms: of a factor not met before, then the variance
    used <<- used + n
    values[used - n + seq_len(n)]
  }
  terms <- lapply(tie$terms, function(own) {
    for (l in setdiff(own, met)) {
      value <- take(length(tie$leaves[[l]]$from))
      if (is.null(tie$leaves[[l]]$label)) { # a term that replaced the factor
        tie$leaves[[l]]$lengthscale <<- value
        inputs <- tie$leaves[[l]]$inputs
        if (is.null(tie$leaves[[l]]$of)) {
          tie$leaves[[l]]$of <<- if (is.null(kernel$columns)) inputs else kernel$columns[inputs]
        }
      }
    }
    met <<- c(met, own)
    list(variance = take(1L), leaves = own)
  })
  structure(list(profile = "composite", leaves = tie$leaves, terms = terms), class = "pfdtc_kernel")
}
