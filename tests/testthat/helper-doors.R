# Returns valid arguments for each C entry point. test-native.R checks that an entry point refuses other arguments.
# tools/doors.R calls each under valgrind and with garbage collection at every allocation.
door_examples <- function() {
  p <- problem(n = 20, m = 3, seed = 5)
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  good <- compile_kernel(kernel)$engine
  ec <- engine_control(20)
  nu <- package_nu(p, aux_sor(rows = p$rows))
  data <- list(x = p$x, y = p$y)
  of <- new_model(kernel, p$noise)
  post <- native_posterior(p$z, data, of, 1e-10)
  exact <- native_exact(data, of)
  norms <- posterior_norms(post, p$z, data, of)
  model <- engine_model(of)
  rows <- engine_rows(data)
  post_of <- function(parts, z = p$z) c(model, list(z = z, jitter = 1e-10), parts)
  points <- post_of(NULL)
  sums <- native_sums("vfe", NULL, p$z, data, of, 1e-10)
  adjoint <- native(ffi_objective, engine_objective("vfe"), engine_points(p$z, of, 1e-10), sums, NULL)$adjoint
  own <- post[c("L", "C", "beta")]
  with_G <- post[c("L", "C", "beta", "G")]
  classes <- list(y = rep_len(c(0, 1, 2), 20), weight = NULL, center = numeric(3), contrasts = class_contrasts(3))
  sites <- list(name = "log", y = abs(round(p$y)), size = NULL, weight = NULL, offset = numeric(20),
                shape = NULL, variational = 0L)
  kriged <- list(cross = matrix(0.1, 20, 6), features = matrix(0.1, 3, 6), prior = rep(1, 6), size = rep(1, 6),
                 terms = 1L)
  grouped <- list(x = replace(p$x, 1:20, rep(1:4, 5)), y = p$y) # the levels are an input too
  groups <- list(list(column = 1L, levels = 4L, design = 0:1, root = diag(2)))
  sums_grouped <- native_effect_sums(grouped$x[1:3, ], grouped, of, groups, 1e-10)
  of_groups <- factors_of_effects(sums_grouped$sums, 3L, ncol(grouped$x), groups, p$noise)
  of_groups$L <- sums_grouped$L
  near_grouped <- native_near(grouped$x[1:3, ], grouped, of, 2L, 1:20, 1e-10, keep = 2L)[c("u", "d", "rows", "r")]
  grouped_points <- post_of(NULL, grouped$x[1:3, ])
  newton <- list(enough = 1e-9, maxit = 5L, most_jitter = 1e-4)
  doors <- list(
    kernel_matrix = list(model, p$x, p$z, ec),
    kernel_diagonal = list(model, p$x),
    kernel_slopes = list(model, p$x, p$z, 1L),
    slope_variance = list(model, p$x, 1L),
    evaluate = list(engine_objective("vfe"), points, rows, 1L, ec, NULL),
    "evaluate white" = list(list(name = "white", aux = NULL, Wt = NULL, share = 0.5), points, rows, 1L, ec, NULL),
    "evaluate pf" = list(engine_objective("pf", nu), points, rows, 1L, ec, NULL),
    sums = list(engine_objective("vfe"), points, rows, ec),
    objective = list(engine_objective("vfe"), points, sums, NULL),
    gradient = list(engine_objective("vfe"), points, rows, adjoint, NULL, ec),
    posterior_of_sums = list(points, sums),
    pf_constant = list(model, rows, nu, ec),
    pf_divergence = list(points, rows, nu, ec),
    lowrank_rows = list(model, nu, rows, ec),
    posterior = list(points, rows, 1e-4, 0L, 1L, ec),
    predict = list(post_of(own), p$x, ec),
    "predict of an exact posterior" = list(post_of(list(L = exact$L, C = NULL, beta = exact$alpha), p$x), p$new, ec),
    covariance = list(post_of(own["L"]), own$C, p$x, 0L),
    "covariance of an exact posterior" = list(post_of(exact["L"], p$x), NULL, p$new, 0L),
    select = list(model, p$x, 3L, 1e-10),
    laplace = list(points, p$x, sites, list(beta = NULL, G = NULL), newton, 2L, ec),
    "laplace vi" = list(points, p$x, replace(sites, "variational", 1L), list(beta = 1:3 / 4, G = diag(3)), newton,
                        2L, ec),
    softmax = list(points, p$x, classes, list(beta = NULL, C = NULL), newton, 2L, ec),
    softmax_at = list(points, diag(3), matrix(0, 3, 2), cbind(diag(3), diag(3), diag(3)), p$x, ec),
    forms = list(post_of(own), list(diag(3)), p$x, ec),
    paths = list(post_of(own), p$x, sites, rbind(diag(3), 1), ec),
    sites = list(sites, p$y),
    row_forms = list(rbind(diag(3), 1), diag(3)),
    norms = list(post_of(own), rows, 1:20, 5L, 5L, ec),
    cross = list(post_of(own), rows, p$new, ec),
    certify = list(post_of(with_G), norms, p$x, NULL, NULL, ec),
    "certify of functionals" = list(post_of(with_G), norms, p$x, replace(kriged, "cross", list(numeric())), NULL, ec),
    kriging = list(post_of(with_G), norms, rows, p$new, NULL, c(0L, 2L, 6L), 3:9, matrix(1:6, 3), ec),
    "kriging of functionals" = list(post_of(with_G), norms, rows, p$new, kriged, c(0L, 2L, 6L), 3:9, matrix(1:6, 3),
                                    ec),
    decorrelate = list(matrix(0.1, 2, 20), rep(1, 20), matrix(rep(c(1L, 0L), 20), 2), p$y, 0L),
    kernel_matvecs = list(model, rows, cbind(p$y), 0L, 1L, ec),
    kernel_cross_matvec = list(model, p$x, p$y, p$new, ec),
    response = list(post_of(own), rows, 1L, ec),
    exact = list(model, rows, NULL, 0L, ec),
    "exact slopes" = list(model, rows, NULL, 1L, ec),
    exact_precision = list(exact$L, ec),
    effect_sums = list(grouped_points, groups, engine_rows(grouped), 1e-4, ec),
    eliminate = list(3L, ncol(grouped$x), groups, of_groups$sums, 0.1, ec),
    effect_solve = list(3L, ncol(grouped$x), groups, of_groups, 0.1, ec),
    effect_predict = list(grouped_points, groups, of_groups, grouped$x, 1L, ec),
    integrated = list(model, groups, engine_rows(grouped), NULL, cbind(p$y), 1:4, matrix(5:8, 1), 1L, ec),
    near_effects = list(model, groups, engine_rows(grouped), near_grouped, ec),
    level_products = list(matrix(0.5, 2, 5), c(1L, 3L, 6L), c(1L, 3L, 1L, 2L, 3L), 3L),
    factor = list(diag(3), c(1, 2, 3), 1L),
    near = list(points, rows, 2L, 20:1, 1e-4, 1L, ec),
    near_predict = list(post_of(own), rows, 2L, p$new, NULL, 1L, ec),
    "near_predict of functionals" = list(post_of(own), rows, 2L, p$new, near_given(nrow(p$new), nrow(p$z)), 1L, ec),
    near_covariance = list(post_of(own), rows, 2L, p$new, ec),
    vecchia = list(model, rows, NULL, cbind(p$y), 1:4, matrix(5:8, 1), rep(1, 4), 1L, ec),
    neighbours = list(model, p$x, 2L, p$new, NULL, NULL, ec),
    "neighbours of rows" = list(model, p$x, 2L, NULL, 1:5, 20:1, ec))
  as.list(environment())
}

call_door <- function(name, args) {
  do.call(".Call", c(list(get(paste0("ffi_", sub(" .*", "", name)), asNamespace("pfdtc"))), args), quote = TRUE)
}

# Returns functionals for predict_given(), with two neighbours each; the last one has a single neighbour.
near_given <- function(n, m) {
  list(rows = matrix(replace(rep(1:2, n), 2 * n, 0L), 2L), cross = matrix(0.1, 2L, n), features = matrix(0.1, m, n),
       prior = rep(1, n))
}
