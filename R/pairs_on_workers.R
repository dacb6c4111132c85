# Products with the kernel matrix of all pairs of rows, made by workers. Each has all rows, which are sent once, and
# takes a share of the pairs: to and fro go v and as many numbers for each worker and product.

# A function (kernel, v, control) -> k(x, x) v
products_on_workers <- function(x, crew = find_crew()) {
  id <- next_source()
  sent <- FALSE
  shares <- max(1L, crew$size())
  function(kernel, v, control) {
    task <- function(i, whole) list(share_of_product, list(id, i, if (whole) x, kernel, v, control, shares))
    results <- crew_run(crew, shares, !sent, task)
    sent <<- TRUE
    Reduce(`+`, lapply(results, `[[`, "value"))
  }
}

# On a worker: as visit_part().
share_of_product <- function(id, share, x, kernel, v, control, shares) {
  as_result({
    x <- kept_of(id, "x", x)
    if (is.null(x)) list(absent = TRUE) else
      list(value = native_kernel_matvecs(kernel, x, NULL, v, control, share, shares))
  })
}
