# Computes the exact GP in quadruple precision (exact-quad.c) for the scripts that test properties. `self` is the script
# that sources this file. Needs gcc with __float128 and libquadmath. Helpers of the tests make the random problems.

tests <- file.path(dirname(self), "..", "tests", "testthat")
for (name in c("complete_kernel", "factor_parameters", "as_sum", "place_group", "table_rows", "parameter_count")) {
  assign(name, get(name, asNamespace("pfdtc")))
}
for (name in c("setup", "reference", "problems", "kernels", "baselines", "certify")) {
  source(file.path(tests, sprintf("helper-%s.R", name)))
}

load_quad <- function(self) {
  folder <- tempfile("quad")
  dir.create(folder)
  file.copy(file.path(dirname(self), "exact-quad.c"), folder)
  old <- setwd(folder)
  on.exit(setwd(old))
  Sys.setenv(PKG_LIBS = "-lquadmath")
  status <- system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "exact-quad.c"), stdout = FALSE, stderr = FALSE)
  if (status != 0) stop("exact-quad.c does not compile: this needs gcc with __float128 and libquadmath")
  dyn.load(file.path(folder, paste0("exact-quad", .Platform$dynlib.ext)))
}

quad_profiles <- c("se", "matern12", "matern32", "matern52", "rq", "periodic", "linear", "mean", "polynomial",
                   "constant", "white", "exchangeable", "ordered", "full", "group", "additive")

# Returns a kernel in the format of exact-quad.c. `kernel` is one of the package or of helper-reference.R.
quad_kernel <- function(kernel, x) {
  kernel <- complete_kernel(package_kernel(kernel), x)
  factor <- function(leaf) {
    profile <- if (leaf$profile == "categorical") leaf$correlation else leaf$profile
    if (profile == "pairwise") profile <- "additive"
    pairs <- if (leaf$profile == "pairwise") leaf$additive.pairs else 0
    parameters <- switch(
      profile, rq = leaf$alpha, periodic = leaf$period, polynomial = c(leaf$offset, leaf$degree),
      group = c(leaf$intercept, leaf$correlation == "full", leaf$scale, leaf$parameters),
      additive = c(match(leaf$base, quad_profiles) - 1, leaf$additive.ratio, leaf$additive.share, pairs),
      leaf$parameters)
    n <- length(leaf$inputs)
    lengths <- if (profile == "mean") leaf$rate else if (is.null(leaf$lengthscale)) 1 else leaf$lengthscale
    centre <- switch(profile, mean = leaf$centre, additive = term_of_input(leaf), 0)
    c(match(profile, quad_profiles) - 1, n, length(parameters), parameters,
      rbind(leaf$inputs - 1, rep_len(lengths, n), rep_len(centre, n)))
  }
  kernel <- as_sum(kernel)
  leaves <- kernel$leaves
  terms <- kernel$terms
  as.double(c(length(terms), unlist(lapply(terms, function(term) {
    c(term$variance, length(term$leaves), unlist(lapply(leaves[term$leaves], factor)))
  }))))
}

# Returns the number of the term that each input of an additive kernel belongs to.
term_of_input <- function(leaf) {
  if (is.null(leaf$groups)) seq_along(leaf$inputs) else match(leaf$groups, unique(leaf$groups))
}

quad_arguments <- function(p, center) {
  n <- nrow(p$x)
  or <- function(a, b) as.double(if (is.null(a)) rep(b, n) else a)
  list(quad_kernel(p$kernel, p$x), as.double(p$noise), n, as.double(p$x), as.double(p$y), or(p$offset, 0),
       as.double(center), or(p$weights, 1))
}

quad_result <- function(r, names) {
  if (r$status != 0) stop("not positive definite in quadruple precision either")
  r[names]
}

# Returns list(mean, mean_low, sd). The mean is mean + mean_low, for the fit's `center`, as in certificates.
quad <- function(p, center) {
  m <- nrow(p$new)
  r <- do.call(.C, c("exact_quad", quad_arguments(p, center), list(
    m, as.double(p$new), mean = double(m), mean_low = double(m), sd = double(m), status = integer(1))))
  quad_result(r, c("mean", "mean_low", "sd"))
}

# Returns the log evidence of y as a sum of two doubles.
quad_evidence <- function(p, center) {
  r <- do.call(.C, c("evidence_quad", quad_arguments(p, center), list(evidence = double(2), status = integer(1))))
  quad_result(r, "evidence")$evidence
}
