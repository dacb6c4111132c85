# Tests certificates of a fit to rows in blocks, by those without blocks.

rows_for_passes <- function(n = 300) {
  set.seed(8)
  d <- data.frame(a = runif(n, 0, 3), b = rnorm(n), w = sample(0:2, n, TRUE), o = runif(n))
  d$y <- 4 + sin(3 * d$a) + d$b / 2 + d$o + rnorm(n) / 5
  d$a[7] <- NA
  d
}

passes_fit <- function(data, method = pfdtc, ...) {
  method(y ~ a + b + offset(o), data, weights = w, subset = b < 2, kernel = kernel_matern(5 / 2, c(1, 2), 1),
         noise = 0.04, hyper = "fixed", ..., inducing = cbind(seq(0, 3, length.out = 8), rep(-1:2, 2)),
         control = list(maxit = 0))
}

exactly <- function(d, new) {
  exact <- gp_exact(y ~ a + b + offset(o), d, weights = w, subset = b < 2, kernel = kernel_matern(5 / 2, c(1, 2), 1),
                    noise = 0.04, hyper = "fixed")
  c(predict(exact, new, se.fit = TRUE), evidence = exact$evidence)
}

expect_certified <- function(certificate, exact) {
  ok <- !is.na(exact$fit)
  expect_true(all(certificate$mean_lower[ok] <= exact$fit[ok] & exact$fit[ok] <= certificate$mean_upper[ok]))
  expect_true(all(certificate$sd_lower[ok] <= exact$se.fit[ok] & exact$se.fit[ok] <= certificate$sd_upper[ok]))
}

test_that("a reference by passes is that of the rows in memory, and its certificates contain the exact GP", {
  d <- rows_for_passes()
  new <- d[c(1:20, 7), ]
  exact <- exactly(d, new)
  fit <- passes_fit(in_blocks(d))
  in_memory <- reference(passes_fit(d), m2 = 30, max_seconds = 0)
  # With one block, the groups of the norms have the same rows, in another order.
  whole <- reference(fit, m2 = 30, data = in_blocks(d, 300))
  expect_equal(whole$inducing, in_memory$inducing)
  same <- c("jitter", "evidence", "nobs", "signature", "center", "scale")
  expect_equal(whole[same], in_memory[same], tolerance = 1e-10)
  expect_equal(whole$factors[c("G", "beta", "C")], in_memory$factors[c("G", "beta", "C")], tolerance = 1e-9)
  single <- c("weight", "slack", "most", "growth", "vv", "alpha", "beta_error", "t", "c", "w_norm")
  expect_equal(whole$norms[single], in_memory$norms[single], tolerance = 1e-8)
  # All rows are one group of T1, the root of a difference of nearly equal sums.
  expect_equal(reference(fit, m2 = 100, data = d)$norms$v_E,
               reference(passes_fit(d), m2 = 100, max_seconds = 0)$norms$v_E, tolerance = 1e-5)
  for (sizes in list(rep(100, 3), c(0, 1, 99, 2, 198))) {
    fit$reference <- reference(fit, m2 = 30, data = in_blocks(d, sizes))
    certificate <- expect_silent(certify(fit, new))
    expect_certified(certificate, exact)
    # The certificate is almost as narrow as with one block; the difference is due to smaller groups.
    expect_lt(median(certificate$mean_error, na.rm = TRUE),
              4 * median(certify(fit, new, reference = whole)$mean_error, na.rm = TRUE))
  }
  evidence <- exactly(d, new)$evidence
  bounds <- evidence_bounds(fit)
  expect_true(bounds["lower"] <= evidence && evidence <= bounds["upper"])
  fit["reference"] <- list(NULL)
  expect_gt(diff(evidence_bounds(fit)), diff(bounds))
})

test_that("norms of parts are those of all rows in the same groups", {
  p <- problem("matern32", n = 60, m = 6, weighted = TRUE, seed = 3)
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  model <- new_model(kernel, p$noise)
  post <- native_posterior(p$z, p, new_model(kernel, p$noise), 1e-9)
  part <- function(i, size) {
    rows_norms(list(x = p$x[i, ], y = p$y[i], weights = p$weights[i]), post, p$z, model, size, NULL)
  }
  # Compute densely, with G a group: sum of |v_G|_E, of the largest row sums of |E_GG|, and of N / n_G A_G E_GG A_G'.
  L <- t(chol(ref_k(p$kernel, p$z) + diag(1e-9 * kernel$variance, 6)))
  A <- forwardsolve(L, ref_k(p$kernel, p$z, p$x)) %*% diag(sqrt(p$weights))
  E <- diag(sqrt(p$weights)) %*% ref_k(p$kernel, p$x) %*% diag(sqrt(p$weights)) - crossprod(A)
  v <- (sqrt(p$weights) * p$y - drop(crossprod(A, post$beta))) / p$noise
  groups <- list(1:15, 16:50, 51:60)
  found <- Reduce(norms_merge, lapply(groups, function(i) part(i, c(length(i), length(i)))))
  over <- function(f) Reduce(`+`, lapply(groups, f))
  expect_equal(found$T1, over(function(i) sqrt(sum(v[i] * (E[i, i] %*% v[i])))), tolerance = 1e-4) # rounded up
  expect_gte(found$T1, over(function(i) sqrt(sum(v[i] * (E[i, i] %*% v[i])))))
  expect_equal(found$lam, over(function(i) max(rowSums(abs(E[i, i])))), tolerance = 1e-8)
  expect_equal(found$Psi, over(function(i) 60 / length(i) * A[, i] %*% E[i, i] %*% t(A[, i])), tolerance = 1e-8)
  expect_equal(found$vv, sum(v^2), tolerance = 1e-10)
  expect_equal(found[c("n", "spread", "weight")], list(n = 60, spread = 6, weight = max(p$weights)))
})

test_that("certified predictions use the reference", {
  d <- rows_for_passes()
  new <- d[1:9, ]
  fit <- passes_fit(in_blocks(d))
  fit$reference <- reference(fit, m2 = 30, data = in_blocks(d))
  band <- predict(fit, new, interval = "credible", certified = TRUE)
  exact <- exactly(d, new)
  ok <- !is.na(exact$fit)
  half <- qnorm(0.975) * exact$se.fit
  expect_true(all(band[ok, "lwr"] <= (exact$fit - half)[ok] & (exact$fit + half)[ok] <= band[ok, "upr"]))
})

test_that("other rows than the fit's, and arguments that need them, are refused by name", {
  d <- rows_for_passes()
  fit <- passes_fit(in_blocks(d))
  refused <- function(expr, text, class = "pfdtc_error_input") expect_error(expr, text, class = class)
  refused(reference(fit, data = in_blocks(transform(d, y = y + (a > 2.9)))), "data")
  refused(reference(fit, data = d[-1, ]), "data")
  refused(reference(fit, data = d["a"]), "data")
  refused(reference(fit, data = 1:3), "data")
  refused(reference(fit), "data")
  refused(certify(fit, d[1:3, ]), "data")
  refused(predict(fit), "newdata")
  matrix_fit <- pfdtc(as.matrix(d[8:300, 1:2]), d$y[8:300], kernel = kernel_se(1, 1), noise = 1, hyper = "fixed", m = 5)
  refused(reference(matrix_fit, data = d), "formula")
  classes <- pfdtc(I(y > 4) ~ a, d, family = binomial(), kernel = kernel_se(1, 1), hyper = "fixed", m = 5)
  refused(reference(classes, data = d), "data")
  refused(reference(fit, data = in_blocks(d, fails = 2)), "the disk is gone", "pfdtc_error_source")
  expect_output(print(summary(fit)), "row source")
})

test_that("refine() reads the rows of a source, and parts of products add up", {
  d <- rows_for_passes()
  new <- d[c(1:20, 7), ]
  fit <- passes_fit(in_blocks(d))
  exact <- exactly(d, new)
  ok <- !is.na(exact$fit)
  reference <- reference(fit, m2 = 30, data = in_blocks(d))
  found <- refine(fit, new, 1e-6, reference = reference, data = in_blocks(d))
  in_memory <- refine(passes_fit(d), new, 1e-6, reference = reference)
  expect_true(attr(found, "met"))
  expect_true(all(abs(found$mean - exact$fit)[ok] <= found$mean_error[ok]))
  expect_equal(found$mean, in_memory$mean, tolerance = 1e-6)
  expect_message(alone <- refine(fit, new, 1e-6, data = d), class = "pfdtc_message_reference") # a reference is computed
  expect_equal(alone$mean, found$mean, tolerance = 1e-6)
  expect_error(refine(fit, new, 0.1), "data", class = "pfdtc_error_input")
  expect_error(refine(fit, new, 0.1, data = in_blocks(d[-1, ], 299)), "data",
               class = "pfdtc_error_input")
  with_options(list(pfdtc.max_memory = 2^12), {
    expect_error(refine(fit, new, 0.1, data = d), "max_memory", class = "pfdtc_error_input")
  })
  # Workers share the pairs of rows, and each gets all rows once, also if a worker is lost.
  p <- problem("matern32", n = 90, m = 6, weighted = TRUE, seed = 3)
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  control <- pfdtc_control(block = 7, threads = 2)
  whole <- drop(ref_k(p$kernel, p$x) %*% p$y)
  for (shares in c(1L, 2L, 5L)) {
    each <- lapply(seq_len(shares), function(i) native_kernel_matvecs(kernel, p$x, NULL, p$y, control, i, shares))
    expect_equal(Reduce(`+`, each), whole, tolerance = 1e-12)
    if (shares > 1L) for (share in each) expect_gt(max(abs(share - whole)), 0.1 * max(abs(whole)))
  }
  sent <- new.env()
  products <- products_on_workers(p$x, fake_crew(3, sent = sent))
  expect_equal(products(kernel, p$y, control), whole, tolerance = 1e-12)
  expect_equal(products(kernel, 2 * p$y, control), 2 * whole, tolerance = 1e-12)
  expect_identical(vapply(sent$parts, function(p) is.null(p[[2]]), NA), rep(c(FALSE, TRUE), each = 3))
  rm(list = ls(kept_parts), envir = kept_parts)
  expect_equal(products(kernel, p$y, control), whole, tolerance = 1e-12)
})

test_that("the points of a reference are a random sample also if set.seed(1) made the data", {
  set.seed(1)
  d <- data.frame(a = runif(2000), b = runif(2000)) # runif() after set.seed(1) orders rows by `a`
  d$y <- sin(6 * d$a) + d$b
  fit <- pfdtc(y ~ ., in_blocks(d, 2000), m = 5, kernel = kernel_se(0.3, 1), noise = 0.04, hyper = "fixed",
               control = list(maxit = 0), keep_data = FALSE)
  made <- reference(fit, m2 = 20, data = in_blocks(d, 2000))
  expect_gt(min(apply(made$inducing, 2, function(v) diff(range(v)))), 0.9)
})
