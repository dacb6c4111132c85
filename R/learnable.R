# Hyperparameters that no data could tell apart are refused where they are to be learned.

check_learnable <- function(kernel, data, free, columns) {
  if (!length(free) || has_one_factor(kernel)) return(invisible())
  table <- kernel_parameters(kernel)
  names <- kernel_parameter_names(kernel, columns)
  table$free <- names %in% free
  leaves <- kernel$leaves
  for (t in seq_along(kernel$terms)) {
    own <- kernel$terms[[t]]$leaves
    smooth <- own[vapply(leaves[own], function(l) identical(l$profile, "se"), NA)]
    read <- unlist(lapply(smooth, function(l) if (any(table$free[table$leaf == l])) leaves[[l]]$inputs))
    if (anyDuplicated(read)) {
      twice <- columns[read[duplicated(read)][1L]]
      abort_input("kernel", sprintf("a product with two squared exponentials of `%s`", twice), "a product of one",
                  hint = paste("Their product is one with 1 / l^2 = 1 / l1^2 + 1 / l2^2: no data tell l1 from l2, as",
                               "none tell the two variances of a product."))
    }
    white <- length(own) == 1L && identical(leaves[[own]]$profile, "white")
    if (white && table$free[table$term == t & table$leaf == 0L] && "noise" %in% free && is.null(data$group) &&
        !anyDuplicated(data$x[, leaves[[own]]$inputs, drop = FALSE])) {
      abort_input("kernel", sprintf("%s, and no two rows are equal there", leaf_name(leaves[[own]])),
                  "a white part of inputs that some rows share",
                  hint = "It is the noise by another name: only the sum of the two variances would show.")
    }
  }
}
