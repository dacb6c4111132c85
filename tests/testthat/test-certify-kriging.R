# Compares certificates by local kriging with a dense transcription.

# Returns a fit on few points, its reference, `root` = sqrt(weights), and in the reference's units: the matrix
# Ky = root K root + s2 I, k = root k(X, new), the prior variance, root y, and the exact posterior variance.
kriging_problem <- function(profile, weighted, n = 60, noise = 0.1, n_new = 24, seed = 1, ...) {
  p <- problem(profile, n = n, m = 5, weighted = weighted, noise = noise, seed = seed)
  p$new <- rbind(with_seed(seed + 1, spread_points(n_new, 2)), p$x[1:2, ], 1e3)
  fit <- gp_dtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", inducing = p$z,
                weights = p$weights, ...)
  ref <- with_seed(1, reference(fit, 12))
  root <- sqrt(ref_weights(p$weights, p$x))
  unit <- ref$scale^2
  Ky <- (root * t(root * ref_k(p$kernel, p$x)) + diag(p$noise, n)) / unit
  k <- root * ref_k(p$kernel, p$x, p$new) / unit
  list(p = p, fit = fit, ref = ref, Ky = Ky, k = k, prior = p$kernel$variance / unit, root = root,
       y = root * (p$y - fit$center) / ref$scale,
       var = p$kernel$variance / unit - colSums(k * solve(Ky, k)))
}

# Returns the weights that krige() found as columns over all rows, in the order of the requested rows.
dense_weights <- function(found, n) {
  W <- matrix(0, n, length(found$order))
  for (j in seq_along(found$order)) W[found$rows[, found$group[j]], found$order[j]] <- found$W[, j]
  W
}

test_that("weights, J and the bounds of the variance are the dense ones, for any groups, blocks and threads", {
  for (profile in quick(profiles)) {
    for (weighted in c(FALSE, TRUE)) {
      for (group in in_turn(c(1, 4), match(profile, profiles) + weighted, 2)) {
        made <- kriging_problem(profile, weighted)
        info <- paste(profile, weighted, group)
        found <- krige(made$ref, made$fit$data, values_at(model_of(made$ref)$kernel, made$p$new), 9L, group)
        W <- dense_weights(found, nrow(made$Ky))
        expect_identical(sort(found$order), seq_len(nrow(made$p$new)))
        for (j in seq_len(ncol(W))) {
          S <- which(W[, j] != 0)
          if (length(S)) expect_close(W[S, j], solve(made$Ky[S, S, drop = FALSE], made$k[S, j]), 1e-10, info)
        }
        H <- made$k - made$Ky %*% W
        J <- made$prior - 2 * colSums(W * made$k) + colSums(W * (made$Ky %*% W))
        at <- found$order
        expect_close(found$J, J[at], 1e-10, info)
        expect_close(found$ww, colSums(W^2)[at], 1e-10, info)
        # q = h'B^{-1}h by the reference's B = A'A + s2 I, but at most J.
        L <- t(chol(ref_kmm(made$ref$inducing, made$p$kernel, made$ref$jitter))) / made$ref$scale
        A <- solve(L, t(made$root * ref_k(made$p$kernel, made$p$x, made$ref$inducing))) / made$ref$scale^2
        s2 <- made$p$noise / made$ref$scale^2
        B <- crossprod(A) + diag(s2, nrow(H))
        q <- colSums(H * solve(B, H))
        expect_close(found$q, pmin(q, J)[at], 1e-6, info)
        expect_true(all(found$q >= pmin(q, J)[at] * (1 - 1e-9)), info = info)
        # Compute L1 of the theory vignette.
        a <- solve(L, ref_k(made$p$kernel, made$ref$inducing, made$p$new)) / made$ref$scale^2
        h_x <- solve(B, crossprod(A, a))
        sor <- s2 * colSums(a * solve(tcrossprod(A) + diag(s2, nrow(A)), a))
        J_Q <- colSums((a - A %*% W)^2) + s2 * colSums(W^2)
        y <- colSums((h_x - W) * H) - (J_Q - sor)
        z <- q - (J_Q - sor) - 2 * y
        lower <- pmax(J - q, sor + pmax(J - J_Q - y, 0)^2 / (J - J_Q + z))
        expect_close(found$var_lower, lower[at], 1e-6, info)
        tolerance <- 1e-10 * made$prior
        expect_true(all(found$var_lower <= made$var[at] + tolerance), info = info)
        expect_true(all(found$var_upper >= made$var[at] - tolerance), info = info)
        expect_true(all(found$var_upper <= J[at] * (1 + 1e-9)), info = info)
        for (block in in_turn(c(7, 1000), weighted, 2)) {
          made$ref$control[c("block", "threads")] <- list(block, 2)
          again <- krige(made$ref, made$fit$data, values_at(model_of(made$ref)$kernel, made$p$new), 9L, group)
          for (what in c("W", "J", "q", "var_lower", "var_upper")) {
            expect_close(again[[what]], found[[what]], 1e-9, paste(info, what))
          }
        }
      }
    }
  }
})

test_that("any residual gives an interval of the exact mean, and all of it holds with offset and scale", {
  for (profile in quick(profiles)) {
    for (weighted in c(FALSE, TRUE)) {
      made <- kriging_problem(profile, weighted)
      info <- paste(profile, weighted)
      w <- solve(made$Ky, made$y)
      exact <- made$fit$center + made$ref$scale * drop(crossprod(made$k, w))
      sd <- made$ref$scale * sqrt(pmax(made$var, 0))
      found <- krige(made$ref, made$fit$data, values_at(model_of(made$ref)$kernel, made$p$new), 9L, 16)
      for (size in c(0, 1e-3, 1)) {
        v <- w + size * with_seed(3, stats::rnorm(length(w)))
        state <- list(v = v, residual = made$y - drop(made$Ky %*% v), passes = 1L, went = 1,
                      error = residual_rounding(made$ref, made$y, c(v = sqrt(sum(v^2)), r = 0)))
        correction <- correct_residual(made$ref, made$fit$data, state)
        r <- kriged_interval(found, made$ref, correction, made$fit$data)
        tolerance <- 1e-10 * max(abs(made$p$y))
        expect_true(all(made$fit$center + r$mean_lower <= exact + tolerance), info = info)
        expect_true(all(made$fit$center + r$mean_upper >= exact - tolerance), info = info)
        # Compare with the bound |h| |r|, where |h|^2 is q, or J - var_lower if that is less.
        h <- sqrt(pmin(found$q, found$J - found$var_lower))
        half <- made$ref$scale * h * sqrt(correction$norms$c)
        expect_close(((r$mean_upper - r$mean_lower) / 2)[found$order], half, if (size > 0) 1e-6 else Inf, info)
        # With the exact sd (in units of y), |h|^2 is at most J minus the exact variance, so the bound is narrower.
        r2 <- kriged_interval(found, made$ref, correction, made$fit$data, sd)
        h <- sqrt(pmin(found$q, pmax(found$J - pmax(found$var_lower, made$var[found$order]), 0)))
        half <- made$ref$scale * h * sqrt(correction$norms$c)
        expect_close(((r2$mean_upper - r2$mean_lower) / 2)[found$order], half, if (size > 0) 1e-5 else Inf, info)
        if (size == 1) expect_true(any(abs(exact - made$fit$center - (r$mean_lower + r$mean_upper) / 2) > 0.02 *
                                         (r$mean_upper - r$mean_lower)), info = info)
        expect_true(all(r$sd_lower <= sd + 1e-6 & r$sd_upper >= sd - 1e-6), info = info)
        # Certify a functional: the sum of all these values.
        model <- model_of(made$ref)
        fun <- sums_at(model$kernel, made$p$new, list(seq_along(exact)), list(rep(1, length(exact))))
        one <- kriged_interval(krige(made$ref, made$fit$data, fun), made$ref, correction, made$fit$data)
        total <- sum(exact - made$fit$center)
        expect_true(one$mean_lower <= total + tolerance && total - tolerance <= one$mean_upper, info = info)
        # With all rows h is 0, so the middle of the interval is the exact mean, up to rounding in the weights: 1e-16
        # times the condition of K + s2 I, below 1e9 here.
        middle <- with_options(list(pfdtc.kriging_rows = 1000L), {
          one <- kriged_interval(krige(made$ref, made$fit$data, fun), made$ref, correction, made$fit$data)
          (one$mean_lower + one$mean_upper) / 2
        })
        expect_equal(middle, total, tolerance = 1e-6, info = info)
      }
    }
  }
})

test_that("with all rows as neighbours, kriging gives the exact posterior", {
  made <- kriging_problem("matern12", TRUE)
  found <- krige(made$ref, made$fit$data, values_at(model_of(made$ref)$kernel, made$p$new), 60L, 16)
  expect_close(found$var_lower, made$var[found$order], 1e-8)
  expect_close(found$var_upper, made$var[found$order], 1e-8)
})

test_that("rows so close that K has no Cholesky factor still have weights and valid bounds", {
  p <- problem("se", n = 40, m = 5, noise = 1e-17, lengthscale = c(8, 8))
  fit <- gp_dtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", inducing = p$z)
  found <- krige(with_seed(1, reference(fit, 12)), fit$data, values_at(model_of(fit)$kernel, p$new), 30L, 16)
  expect_true(all(is.finite(found$W)))
  expect_true(all(found$var_lower >= 0 & found$var_lower <= found$var_upper))
})

test_that("groups hold every row once, and share the rows that their members are nearest to", {
  x <- with_seed(1, matrix(stats::runif(100), 50))
  kernel <- complete_kernel(kernel_se(c(0.1, 10), 1), x)
  for (most in c(1, 7, 16, 50, 60)) {
    groups <- near_groups(kernel, x, most)
    expect_identical(sort(groups$order), 1:50)
    expect_true(all(diff(groups$start) >= 1 & diff(groups$start) <= most))
    rows <- shared_rows(kernel, list(x = x), x, groups, 5L, NULL)
    expect_identical(dim(rows), c(5L, length(groups$start) - 1L))
    expect_false(any(apply(rows, 2, anyDuplicated) > 0))
    # A row is nearest to itself.
    if (most <= 5) expect_true(all(vapply(seq_along(groups$order), function(i) groups$order[i] %in% rows[, i], NA)))
  }
})

test_that("kriging narrows certify()'s intervals, and they are valid without time for more", {
  made <- kriging_problem("matern32", FALSE, n = 120)
  new <- made$p$new
  exact <- list(mean = made$fit$center + made$ref$scale * drop(crossprod(made$k, solve(made$Ky, made$y))),
                sd = made$ref$scale * sqrt(pmax(made$var, 0)))
  by <- function(...) with_seed(1, certify(made$fit, new, reference = made$ref, test_points = 0, ...))
  with <- with_options(list(pfdtc.kriging_rows = 30L), by())
  without <- with_options(list(pfdtc.kriging_rows = 0L), by())
  hurried <- by(max_seconds = 0)
  inner <- seq_len(24)
  loose <- function(certificate) {
    certificate$sd_lower <- certificate$sd_lower - 1e-8
    certificate$sd_upper <- certificate$sd_upper + 1e-8
    certificate
  }
  for (certificate in list(with, without, hurried)) expect_false(any(violated(loose(certificate), exact)))
  expect_false(any(is_wider(with, without)))
  expect_lt(stats::median(with$sd_upper[inner] - with$sd_lower[inner]),
            0.5 * stats::median(without$sd_upper[inner] - without$sd_lower[inner]))
  expect_true(attr(with, "seconds") >= 0)
  expect_identical(attr(with, "passes"), made$ref$correction$passes)
  expect_input_error(by(max_seconds = -1), "max_seconds")
  expect_input_error(reference(made$fit, max_seconds = NA), "max_seconds")
  expect_null(with_seed(1, reference(made$fit, 12, max_seconds = 0))$correction)
})

test_that("kriging alone has valid certificates for the nasty problems, by the exact GP in quadruple precision", {
  skip_on_cran()
  truth <- utils::read.csv(test_path("certify-nasty.csv"))
  cases <- nasty_certify_problems()
  for (name in quick(names(cases))) {
    exact <- truth[truth$case == name, ]
    for (seed in some_of(1:3, 1)) {
      p <- utils::modifyList(cases[[name]], list(seed = seed))
      fit <- suppressWarnings(certify_fit(p))
      for (rows in in_turn(c(1L, 9L, 40L), match(name, names(cases)), 2)) {
        alone <- with_options(list(pfdtc.kriging_rows = rows), kriging_alone(fit, p))
        info <- paste(name, rows, seed)
        expect_true(all(is.finite(as.matrix(alone))), info = info)
        expect_true(!any(violated(alone, exact)), info = info)
      }
    }
  }
})

test_that("a message says that a mean has no useful certificate, and how many passes would give one", {
  p <- problem("matern12", n = 300, m = 5, noise = 1e-3, lengthscale = c(2, 3))
  fit <- gp_dtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", inducing = p$z)
  with_options(list(pfdtc.kriging_rows = 8L, pfdtc.max_memory = 1e6), {
    none <- with_seed(1, reference(fit, 12, max_seconds = 0))
    expect_match(attr(certify(fit, p$new, reference = none), "advice"), "refine\\(\\)",
                 all = FALSE)
    expect_identical(attr(certify(fit, p$new, reference = none), "passes"), 0L)
    expect_match(attr(certify(fit, p$new, "fast"), "advice"), "effort = \"reference\"", all = FALSE)
  })
  expect_identical(passes_until(c(8, 4, 2), 0.1 / 10), 7L)      # the error halves in each pass, and 2^-7 < 1 / 100
  expect_identical(passes_until(5, 0.1 / 10), 7L)
  expect_identical(passes_until(c(9, 3), 0.1 / 1), 3L)
  expect_identical(passes_until(c(100, 90, 16, 8, 4, 2, 1), 0.1 / 10), 7L)    # only the last five passes count
  expect_null(passes_until(c(8, 8, 8), 0.1 / 10))
  # The residual at the start costs a pass, unless an earlier correction has it.
  expect_match(passes_ahead(c(4, 2), 0.5, 1, 2L), "^2 passes over all pairs of rows$")
  expect_match(passes_ahead(4, 0.5, 1, 1L), "^1 pass over all pairs of rows$")
  told <- NULL
  count <- function(went, ratio, seconds, passes) told <<- c(told, passes)
  made <- with_replaced(list(passes_ahead = count, stage_line = function(...) identity),
                        solve_exact(none, data_in_scale(fit, none), 3, function(s) Inf))
  expect_identical(told[1:3], 1:3)
  told <- NULL
  again <- list(v = made$v, residual = made$residual, error = made$error, passes = made$passes)
  with_replaced(list(passes_ahead = count, stage_line = function(...) identity),
                solve_exact(none, data_in_scale(fit, none), 1, function(s) Inf, from = again))
  expect_identical(told[1L], made$passes)
  expect_null(attr(certify(fit, p$new[1:3, ], reference = with_seed(1, reference(fit, 300))), "advice"))
})

test_that("the passes in the message bring the mean within a tenth of the sd, up to one pass", {
  p <- problem("matern52", n = 420, m = 10, noise = 1e-4, lengthscale = c(2, 3))
  fit <- gp_dtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", inducing = p$z)
  ref <- with_seed(1, reference(fit, 30, max_seconds = 0))
  data <- data_in_scale(fit, ref)
  new <- with_seed(2, matrix(stats::runif(120, -3, 3), 60))
  after <- function(passes) {
    by <- with_seed(1, near_preconditioner(ref, data, c(points = 30L, rows = 15L)))
    state <- solve_exact(ref, data, passes - 1, function(s) Inf, precondition = by)
    ref$correction <- correct_residual(ref, data, state, sharp = FALSE)
    # Allow few rows for kriging, and no memory for the exact posterior.
    with_options(list(pfdtc.kriging_rows = 8L, pfdtc.max_memory = 1e6), {
      certify(fit, new, reference = ref, test_points = 0)
    })
  }
  all <- lapply(1:9, after)
  shares <- lapply(all, function(c) (c$mean_upper - c$mean_lower) / 2 / c$sd_upper)
  for (passes in c(2, 3, 5)) {
    said <- attr(all[[passes]], "advice")
    more <- as.integer(sub(".* about ([0-9]+) more products.*", "\\1", said[1]))
    wide <- shares[[passes]] > 1
    needed <- which(vapply(shares, function(share) stats::median(share[wide]), 0) <= 0.1)[1] - passes
    expect_lte(abs(more - needed), 1)
    expect_output(print(all[[passes]]), "refine\\(\\)")
  }
})

test_that("more passes never widen what is certified, though bounds may rise on the way", {
  p <- problem("matern32", n = 60, m = 5, noise = 1e-3, lengthscale = c(2, 3), seed = 3)
  fit <- gp_dtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", inducing = p$z)
  ref <- with_seed(1, reference(fit, 12, max_seconds = 0))
  data <- data_in_scale(fit, ref)
  by <- function(passes) {
    state <- solve_exact(ref, data, passes, function(s) Inf)
    ref$correction <- correct_residual(ref, data, state)
    # The rows are few enough for the exact posterior, which certifies the same rows after any number of passes.
    certificate <- with_options(list(pfdtc.kriging_rows = 5L), certify(fit, p$new, reference = ref, test_points = 0))
    list(state = state, width = certificate$mean_upper - certificate$mean_lower,
         bound = sqrt(ref$correction$norms$c) + state$error$residual / sqrt(model_of(ref)$noise))
  }
  made <- lapply(0:9, by)
  bound <- vapply(made, `[[`, 0, "bound")
  rises <- which(diff(made[[10]]$state$went) > 0)
  expect_gt(length(rises), 0)
  expect_true(all(diff(bound) <= 0))
  expect_identical(bound[rises + 1L], bound[rises])
  expect_lt(bound[10], 0.05 * bound[1])
  for (i in 2:10) expect_true(all(made[[i]]$width <= made[[i - 1]]$width * (1 + 1e-9)), info = i)
})

test_that("the errors of A enlarge q by 1 / (1 - tau / s2), tau = slack k max w", {
  # With growth 0 the bounds allow for no rounding errors but those of A, which `slack` bounds.
  x <- matrix(c(0, 1, 2))
  fit <- gp_dtc(x, c(1, 2, 0), kernel = kernel_se(1, 1), noise = 0.5, hyper = "fixed", inducing = x)
  ref <- reference(fit, 3)
  model <- model_of(ref)
  fun <- values_at(model$kernel, matrix(c(0.4, 1.7)))
  certified <- function(share) { # here tau is share times s2
    ref$norms[c("growth", "weight", "most", "lam")] <- list(0, 2, fun$prior[1L], 0)
    ref$norms$slack <- share * model$noise / (2 * fun$prior[1L])
    krige(ref, fit$data, fun, 1L, 1)
  }
  plain <- certified(0)
  enlarged <- certified(0.4)
  expect_gt(min(plain$q), 1e-3 * min(plain$J))
  expect_equal(enlarged$q, plain$q / (1 - 0.4), tolerance = 1e-6)
  expect_equal(enlarged$var_lower, plain$J - enlarged$q, tolerance = 1e-6)
})
