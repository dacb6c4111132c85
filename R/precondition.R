# A preconditioner for (K + s2 I) v = r from inducing points and near rows: with F the rows' decorrelation from their
# nearest earlier ones under what the points leave of the prior (see near.R), (K + s2 I)^{-1} is nearly
#   F'(I - (F A') P^{-1} (F A')') F,   P = I + A F'F A',
# positive definite by construction, at O(n (s + m)) a product beside the kernel values of n rows and m points.

# Points, and earlier rows of each row. With 200 points passes are a half to twice as many (bench/README.md).
near_size <- c(points = 800L, rows = 40L)

# Where the reference leaves much unexplained beside the noise and the kernel is rough, its own B takes several times as
# many steps; with smooth kernels B is better.
precondition_by_near_rows <- function(reference) {
  model <- model_of(reference)
  is_rough(model$kernel) && reference$nobs > 400 &&
    reference$norms$t > 100 * model$noise
}

# A function r -> preconditioned r
near_preconditioner <- function(reference, data, size = near_size) {
  model <- model_of(reference)
  control <- reference$control
  z <- reference$inducing[seq_len(min(size[["points"]], reference$m)), , drop = FALSE]
  near <- native_near(z, data, model, size[["rows"]], sample.int(nrow(data$x)), reference$jitter, control = control,
                      keep = TRUE)
  root <- root_weights(data)
  twice <- function(v) native_decorrelate(near, native_decorrelate(near, v), transpose = TRUE)
  function(r) {
    q <- twice(r)
    b <- forwardsolve(near$L, native_kernel_cross_matvec(model$kernel, data$x, root * q, z, control))
    b <- solve_t(near$L, solve_t(near$C, forwardsolve(near$C, b)))
    q - twice(root * native_kernel_cross_matvec(model$kernel, z, b, data$x, control))
  }
}
