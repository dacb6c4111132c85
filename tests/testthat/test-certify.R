# Compares certificates with a dense transcription, on random and on difficult problems.

# Returns the parts of certificates (src/certify.h) by dense matrices for a posterior with points p$z and a jitter.
dense_certificate <- function(p, jitter) {
  root <- sqrt(ref_weights(p$weights, p$x))
  L <- t(chol(ref_kmm(p$z, p$kernel, jitter)))
  A <- solve(L, t(root * ref_k(p$kernel, p$x, p$z)))
  K <- root * t(root * ref_k(p$kernel, p$x))
  E <- K - crossprod(A)
  y <- root * p$y
  v <- drop(solve(crossprod(A) + diag(p$noise, length(y)), y))
  a <- solve(L, ref_k(p$kernel, p$z, p$new))
  C <- solve(tcrossprod(A) + diag(p$noise, nrow(A)), a)
  list(L = L, A = A, K = K, E = E, y = y, v = v, w = drop(solve(K + diag(p$noise, length(y)), y)), a = a, C = C,
       h = crossprod(A, C), c = sum(y * v), left = p$kernel$variance - colSums(a^2), sor = p$noise * colSums(a * C),
       mean = drop(crossprod(a, A %*% v)))
}

native_dense <- function(p, jitter, t1, t2, order = seq_along(p$y)) {
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  posterior <- native_posterior(p$z, p, new_model(kernel, p$noise), jitter)
  norms <- native_norms(posterior, p$z, p, new_model(kernel, p$noise), order, t1, t2)
  list(kernel = kernel, posterior = posterior, norms = norms)
}

e_norm <- function(E, u) sqrt(pmax(colSums(u * (E %*% u)), 0))

test_that("one group of all rows gives v'Ev and h'Eh themselves, groups their sums", {
  for (p in problems()) {
    d <- dense_certificate(p, 1e-8)
    n <- length(p$y)
    order <- with_seed(3, sample.int(n))
    E <- d$E[order, order]
    v <- d$v[order]
    A <- d$A[, order, drop = FALSE]
    one <- native_dense(p, 1e-8, n, n, order)$norms
    expect_close(one$T1 - one$kappa, c(e_norm(d$E, cbind(d$v))), 1e-7, label_of(p))
    expect_close(one$Psi, d$A %*% d$E %*% t(d$A), 1e-9, label_of(p))
    expect_close(sqrt(colSums(d$C * (one$Psi %*% d$C))), e_norm(d$E, d$h), 1e-7, label_of(p))
    expect_close(one$lam, max(rowSums(abs(d$E))), 1e-9, label_of(p))
    expect_close(one$vv, sum(d$v^2), 1e-9, label_of(p))
    v_k <- p$kernel$variance * sum(ref_weights(p$weights, p$x) * d$v^2)
    expect_close(one$kappa, sqrt(rounding_slack(nrow(p$z), n) * v_k), 1e-9, label_of(p))
    expect_equal(one$spread, 1)

    groups <- split(seq_len(n), (seq_len(n) - 1) %/% 4)                       # 4, 4, 4, 1
    some <- native_dense(p, 1e-8, 4, 4, order)$norms
    expect_close(some$T1 - some$kappa, sum(vapply(groups, function(b) e_norm(E[b, b, drop = FALSE], cbind(v[b])), 0)),
                 1e-7, label_of(p))
    Psi <- Reduce(`+`, lapply(groups, function(b) {
      n / length(b) * A[, b, drop = FALSE] %*% E[b, b, drop = FALSE] %*% t(A[, b, drop = FALSE])
    }))
    expect_close(some$Psi, Psi, 1e-9, label_of(p))
    expect_close(some$lam, sum(vapply(groups, function(b) max(rowSums(abs(E[b, b, drop = FALSE]))), 0)), 1e-9)
    expect_close(some$spread, n / min(lengths(groups)))
  }
})

test_that("T1, T2 and the bounds of |E|_2 and |w|_E are bounds, whatever the groups", {
  for (p in problems()) {
    d <- dense_certificate(p, 1e-8)
    for (size in c(1, 2, 5, 13)) {
      norms <- native_dense(p, 1e-8, size, size, with_seed(size, sample.int(13)))$norms
      expect_gte(norms$T1, e_norm(d$E, cbind(d$v)))
      expect_gte(norms$lam * (1 + 1e-12), norm(d$E, "2"))
      slack <- sqrt(pmax(colSums(d$C * (norms$Psi %*% d$C)), 0)) - e_norm(d$E, d$h)
      expect_gte(min(slack), -1e-7)
    }
    w_E <- e_norm(d$E, cbind(d$w))
    v_E <- e_norm(d$E, cbind(d$v))
    expect_lte(w_E, bound_w(d$c, v_E) * (1 + 1e-9))
    for (scale in c(1, 2, 100)) expect_gte(bound_w(d$c, v_E * scale), bound_w(d$c, v_E) * (1 - 1e-12))
  }
  expect_identical(bound_w(0, 0), 0)
  expect_identical(bound_w(4, Inf), 1)
})

test_that("blocks of any size and threads give the same norms", {
  p <- problem("matern32", n = 40, m = 5, weighted = TRUE)
  sizes <- list(c(40, 40), c(20, 20), c(12, 6), c(0, 7))
  norms <- function(block, threads, size) {
    with_options(list(pfdtc.block = block, pfdtc.threads = threads), native_dense(p, 1e-10, size[1], size[2])$norms)
  }
  for (size in sizes) {
    whole <- norms(40, 1, size)
    for (block in c(1, 3, 7, 13)) {
      parts <- norms(block, 2, size)
      expect_close(parts$Psi, whole$Psi, 1e-11)
      expect_close(parts$lam, whole$lam, 1e-11)
      expect_close(parts$vv, whole$vv, 1e-11)
      if (size[1] == 40) expect_close(parts$T1, whole$T1, 1e-7)               # larger groups consist of whole blocks
      if (size[1] == 0) expect_identical(parts$T1, Inf)
    }
  }
})

test_that("certificates are the formulas, up to the allowance for rounding", {
  for (p in problems()) {
    d <- dense_certificate(p, 1e-8)
    n <- length(p$y)
    made <- native_dense(p, 1e-8, n, n)
    data <- list(x = p$x, y = p$y, weights = p$weights)
    norms <- with_seed(1, posterior_norms(made$posterior, p$z, data, new_model(made$kernel, p$noise), tight = TRUE))
    r <- certify_with(made$posterior, norms, p$z, new_model(made$kernel, p$noise), values_at(made$kernel, p$new))
    root <- sqrt(pmax(d$left, 0))
    eta <- pmin(e_norm(d$E, d$h), sqrt(norms$lam * colSums(d$h^2)))
    w_E <- bound_w(d$c, e_norm(d$E, cbind(d$v)))
    near <- function(got, want) expect_close(got, want, 1e-4, label_of(p))
    near(r$mean, d$mean)
    near(r$mean_error, (root + eta) * w_E)
    near(r$var_upper, pmin(d$sor + (root + eta)^2, p$kernel$variance))
    near(r$var_lower, d$sor + pmax(root - eta, 0)^2 / (1 + norms$lam / p$noise))
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    expect_true(all(abs(r$mean - exact$mean(p$new)) <= r$mean_error))
    expect_true(all(r$var_lower <= ref_variance(exact, p$new) & ref_variance(exact, p$new) <= r$var_upper))
  }
})

test_that("sums over all rows for new rows are h'e, e'B^-1 e and e'e, for any blocks and threads, and narrow the sd", {
  for (p in problems()) {
    d <- dense_certificate(p, 1e-8)
    made <- native_dense(p, 1e-8, 5, 5)
    root <- sqrt(ref_weights(p$weights, p$x))
    e <- root * ref_k(p$kernel, p$x, p$new) - crossprod(d$A, d$a)
    B <- crossprod(d$A) + diag(p$noise, length(p$y))
    crossing <- NULL
    for (block in c(1, 4, 50)) {
      crossing <- with_options(list(pfdtc.block = block, pfdtc.threads = 2), {
        native_cross(made$posterior, p$z, p, new_model(made$kernel, p$noise), p$new)
      })
      expect_close(crossing$cross, colSums(d$h * e), 1e-7, label_of(p))
      expect_close(crossing$gain, colSums(e * solve(B, e)), 1e-7, label_of(p))
      expect_close(crossing$size, colSums(e^2), 1e-7, label_of(p))
    }
    norms <- with_seed(1, posterior_norms(made$posterior, p$z, list(x = p$x, y = p$y, weights = p$weights),
                                          new_model(made$kernel, p$noise)))
    certified <- function(...) {
      certify_with(made$posterior, norms, p$z, new_model(made$kernel, p$noise), values_at(made$kernel, p$new), ...)
    }
    plain <- certified()
    sharp <- certified(crossing)
    exact <- ref_variance(ref_exact(p$x, p$y, p$kernel, p$noise, p$weights), p$new)
    expect_identical(sharp$mean_error, plain$mean_error)
    expect_true(all(sharp$var_lower >= plain$var_lower & sharp$var_upper <= plain$var_upper))
    expect_true(all(sharp$var_lower <= exact & exact <= sharp$var_upper))
    left <- function(r) stats::median(r$var_upper - r$var_lower)
    expect_lt(left(sharp), left(plain))
  }
})

test_that("more new rows than one block has are certified like each row alone", {
  p <- problem("matern32", n = 20, m = 4, weighted = TRUE)
  made <- native_dense(p, 1e-8, 20, 20)
  x <- with_seed(4, matrix(stats::runif(4200, -4, 4), 2100))
  crossing <- native_cross(made$posterior, p$z, p, new_model(made$kernel, p$noise), x)
  last <- native_cross(made$posterior, p$z, p, new_model(made$kernel, p$noise), x[2040:2100, ])
  for (what in names(last)) expect_equal(unname(crossing[[what]][2040:2100]), unname(last[[what]]), tolerance = 1e-12)
  exact <- fit_by("gp_exact", p)
  truth <- predict(exact, x, se.fit = TRUE)
  of_exact <- certify(exact, x)
  last <- certify(exact, x[2040:2100, ])
  for (what in names(last)) expect_equal(of_exact[[what]][2040:2100], last[[what]], tolerance = 1e-12)
  # Intervals are sharpened at 2,000 of the rows only; all contain the exact values, up to the error of the dense solve.
  fit <- fit_by("gp_dtc", p)
  certified <- with_seed(5, certify(fit, x, reference = reference(fit, 8), test_points = 0))
  room <- 1e-10 * sqrt(p$kernel$variance)
  expect_true(all(certified$sd_lower - room <= truth$se.fit & truth$se.fit <= certified$sd_upper + room))
  expect_true(all(abs(certified$mean - truth$fit) <= certified$mean_error + 1e-10 * max(abs(p$y))))
})

# Returns the exact GP by a dense solve with one step of refinement, in the units of y.
dense_exact <- function(p, center) {
  n <- length(p$y)
  w <- ref_weights(p$weights, p$x)
  K <- native_kernel_matrix(complete_kernel(package_kernel(p$kernel), p$x), p$x, p$x) + diag(p$noise / w, n)
  Kx <- native_kernel_matrix(complete_kernel(package_kernel(p$kernel), p$x), p$x, p$new)
  y <- p$y - center - if (is.null(p$offset)) 0 else p$offset
  refined <- function(b) {
    u <- solve(K, b, tol = 0)
    u + solve(K, b - K %*% u, tol = 0)
  }
  list(mean = center + drop(crossprod(Kx, refined(y))),
       sd = sqrt(pmax(p$kernel$variance - colSums(Kx * refined(Kx)), 0)))
}

test_that("no certificate of random problems and fits of every kind is violated, and more effort never widens one", {
  n_new <- 12
  seeds <- quick(some_of(seq_len(170), 48))
  best <- list()
  held <- 0
  for (seed in seeds) {
    p <- certify_problem(seed, n_most = 60, n_new = n_new, mild = TRUE)
    p$by <- all_methods[1 + seed %% length(all_methods)]
    if (p$by == "pfdtc" && seed %% 2 == 0) p$neighbours <- as.integer(seed %% 9)
    fit <- suppressWarnings(certify_fit(p))
    exact <- dense_exact(p, fit$center)
    # The tolerance is the error of the dense solve: sd^2 by cancellation, means by the condition number.
    y <- max(abs(p$y), 1e-300)
    tolerance <- list(mean = 1e-11 * y, var = 1e-12 * p$kernel$variance)
    before <- NULL
    all <- certify_all(fit, p)
    for (effort in names(all)) {
      certificate <- all[[effort]]
      loose <- certificate
      loose$mean_lower <- loose$mean_lower - tolerance$mean
      loose$mean_upper <- loose$mean_upper + tolerance$mean
      loose$sd_lower <- sqrt(pmax(loose$sd_lower^2 - tolerance$var, 0))
      loose$sd_upper <- sqrt(loose$sd_upper^2 + tolerance$var)
      expect_true(!any(violated(loose, exact)), info = sprintf("seed %d, %s, %s", seed, p$by, effort))
      if (!is.null(before)) {
        expect_true(!any(is_wider(certificate, before)), info = sprintf("seed %d, %s, %s", seed, p$by, effort))
      }
      before <- certificate
      ratio <- tightness(certificate, exact)
      # Use only rows whose error is more than a million times the tolerance.
      best[[effort]] <- max(0, best[[effort]], ratio[abs(certificate$mean - exact$mean) > 1e6 * tolerance$mean, "mean"])
    }
    held <- held + n_new
  }
  if (length(seeds) > 2) {
    expect_gte(held, if (length(seeds) == 170) 2000 else 560)
    for (effort in names(best)) expect_gte(best[[effort]], 0.9)               # some tested certificates must be tight
  }
})

test_that("more effort never widens certificates of fits with neighbours, also if the reference has fewer points", {
  p <- problem("se", n = 60, m = 12)
  fit <- with_seed(1, pfdtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", m = 12,
                            neighbours = 5, control = pfdtc_control(maxit = 0)))
  by <- function(effort) certify(fit, p$new, effort, reference = reference(fit, 2, max_seconds = 0), max_seconds = 0)
  expect_false(any(is_wider(by("reference"), by("fast"))))
})

test_that("certificates of the nasty problems contain the exact GP in quadruple precision", {
  skip_on_cran()
  truth <- utils::read.csv(test_path("certify-nasty.csv"))
  cases <- nasty_certify_problems()
  expect_setequal(names(cases), unique(truth$case))
  for (name in quick(names(cases))) {
    exact <- truth[truth$case == name, ]
    for (by in in_turn(c("gp_dtc", "gp_fitc", "gp_exact"), match(name, names(cases)), 3)) {
      p <- cases[[name]]
      p$by <- by
      fit <- tryCatch(suppressWarnings(certify_fit(p)), pfdtc_error_numerical = identity)
      if (inherits(fit, "error")) next                                          # may have no Cholesky factor
      all <- certify_all(fit, p)
      for (effort in names(all)) {
        info <- paste(name, by, effort, sep = ", ")
        expect_false(anyNA(all[[effort]]), info = info)
        expect_true(all(is.finite(as.matrix(all[[effort]]))), info = info)
        expect_true(!any(violated(all[[effort]], exact)), info = info)
      }
    }
  }
})

test_that("if only rounding errors are left, certificates are as narrow as these", {
  cases <- nasty_certify_problems()
  certified <- function(name) {
    p <- cases[[name]]
    p$new <- p$new[p$new > min(p$x) & p$new < max(p$x), , drop = FALSE]
    certify_all(certify_fit(p), p)$reference
  }
  width <- function(c) max(c$mean_upper - c$mean_lower)
  near <- certified("t near rounding")
  expect_gt(nrow(near), 3)
  expect_lt(width(near), 1e-6)
  expect_lt(max(near$sd_upper - near$sd_lower), 1e-6)
  expect_lt(width(certified("t near rounding, noise 1e-6")), 1e-2)
  expect_lt(width(certified("M = N")), 1e-6)
  expect_lt(width(certified("inputs at 1e8")), 1e-6)
  zero <- certified("y = 0")
  expect_identical(max(abs(unlist(zero[c("mean", "mean_error")]))), 0)
})

test_that("responses that cancel where equal rows are merged leave their rounding behind", {
  y <- c(1000.02, -1.02)
  w <- c(0.798, 28.031)
  for (method in list(gp_exact, gp_dtc, gp_sor)) {
    fit <- method(matrix(0.25, 2), y, kernel = kernel_se(0.475, 0.279), noise = 0.006, hyper = "fixed", weights = w)
    c <- certify(fit, matrix(c(0.2, 0.9)), effort = "fast")
    expect_gt(min(c$mean_upper - c$mean_lower), max(abs(y)) * .Machine$double.eps) # rounding error of the centre
  }
})

test_that("ends of disjoint intervals are exchanged if rounding explains them, else both are covered, with a warning", {
  one <- function(lower, upper) list(mean_lower = lower, mean_upper = upper, sd_lower = c(0, 0), sd_upper = c(Inf, Inf))
  expect_silent(near <- narrow(one(c(0, 0), c(1, 2)), one(c(1 + 1e-15, 1), c(3, 3))))
  expect_identical(near$mean_lower, c(1, 1))
  expect_identical(near$mean_upper, c(1 + 1e-15, 2))
  expect_warning(far <- narrow(one(c(0, 0), c(1, 2)), one(c(2, 1), c(3, 3))),
                 class = "pfdtc_warning_convergence")
  expect_identical(far$mean_lower, c(0, 1))
  expect_identical(far$mean_upper, c(3, 2))
})

test_that("certificates follow scale, centre and offset of the response, and give rows without values NA", {
  p <- problem(n = 30, m = 5)
  fit <- function(y, variance, noise, ...) {
    gp_dtc(p$x, y, kernel = kernel_se(p$kernel$lengthscale, variance), noise = noise, hyper = "fixed",
           inducing = p$z, ...)
  }
  new <- rbind(p$new, NA)
  one <- with_seed(1, certify(fit(p$y, 1.7, 0.3), new, effort = "fast"))
  big <- with_seed(1, certify(fit(1e6 * p$y + 5e6, 1.7e12, 0.3e12), new, effort = "fast"))
  expect_equal(big$mean_error, 1e6 * one$mean_error, tolerance = 1e-6)
  expect_equal(big$mean_lower, 1e6 * one$mean_lower + 5e6, tolerance = 1e-6)
  expect_equal(big$sd_upper, 1e6 * one$sd_upper, tolerance = 1e-6)
  expect_true(all(is.na(one[nrow(new), ])))
  named <- fit(p$y, 1.7, 0.3)
  training <- with_seed(1, certify(named, effort = "fast"))
  expect_identical(nrow(training), 30L)
  expect_equal(training$mean, unname(fitted(named)))
  none <- certify(named, p$new[0, ], effort = "fast")
  expect_identical(nrow(none), 0L)
})

test_that("certify() refuses fits that it cannot certify and says what to do", {
  p <- problem(n = 30, m = 5)
  args <- list(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", inducing = p$z)
  bare <- do.call(gp_dtc, c(args, keep_data = FALSE))
  expect_input_error(certify(bare, p$new), "reference")
  expect_input_error(certify(bare, p$new, effort = "fast"), "keep_data")
  kept <- do.call(gp_dtc, args)
  expect_input_error(certify(kept, p$new, effort = "most"), "effort")
  expect_input_error(certify(kept, p$new, referense = 1), "referense")
  expect_input_error(certify(kept, p$new, test_points = -1), "test_points")
  expect_input_error(certify(lm(dist ~ speed, cars), p$new), "fit")
  expect_message(certify(kept, p$new), class = "pfdtc_message_reference")
  expect_no_message(expect_input_error(certify(kept, p$new, m2 = -1), "m2"))
  expect_input_error(certify(gp_exact(dist ~ speed, cars), m2 = -1), "m2")
  expect_input_error(stats::termplot(kept), "plot(fit)")
  kept$reference <- reference(kept)
  expect_silent(certify(kept, p$new))
  # The fit has lost its data but keeps the reference.
  bare$reference <- kept$reference
  expect_silent(held <- certify(bare, p$new))
  exact <- dense_exact(c(p, list(offset = NULL)), kept$center)
  expect_false(any(violated(held, exact)))
})

test_that("a reference that is not a fit, and damaged neighbours, are refused by name", {
  p <- with_seed(1, data.frame(x = stats::runif(60), y = stats::rnorm(60)))
  fit <- pfdtc(y ~ x, p, neighbours = 6, m = 5, kernel = kernel_se(0.2, 1), noise = 0.1, hyper = "fixed")
  for (bad in list(c(a = 1), "x", list(), 3)) for (mixture in c(FALSE, TRUE)) {
    expect_input_error(certify(fit, p[1:2, ], reference = bad, hyper_uncertainty = mixture), "reference")
  }
  for (bad in list("a", 3, c(a = 1), NA, function(x) x, list(), replace(fit$near, "neighbours", "a"),
                   replace(fit$near, "neighbours", -1), replace(fit$near, "rank", "x"), replace(fit$near, "rows", 3),
                   replace(fit$near, "train_neighbours", NA), replace(fit$near, "train_neighbours", list(NULL)),
                   replace(fit$near, "rank", -1), replace(fit$near, "rank", list(rep(Inf, 60))))) {
    expect_input_error(certify(replace(fit, "near", list(bad)), p[1:2, ]), "near")
    expect_input_error(predict(replace(fit, "near", list(bad)), p[1:2, ]), "near")
    expect_input_error(residuals(replace(fit, "near", list(bad)), type = "loo"), "near")
  }
})

test_that("certificates of many rows show their progress if it is asked for, and clear the line at the end", {
  late <- stage_line
  shown <- function(fit, new) {
    at_once <- function(label, on, ...) do.call(late, list(label, on), envir = parent.frame())
    with_replaced(list(stage_line = at_once), {
      paste(utils::capture.output(certify(fit, new), type = "message"), collapse = "")
    })
  }
  d <- transform(cars, far = cut(dist, 3))
  fits <- function(progress) {
    control <- pfdtc_control(progress = progress)
    list(exact = gp_exact(dist ~ speed, d, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", control = control),
         classes = pfdtc(far ~ speed, d, family = multinomial(), kernel = kernel_se(6, 4), hyper = "fixed",
                         control = control))
  }
  asked <- fits(TRUE)
  expect_match(shown(asked$exact, cars), "certify: row 1 of 50.*\r {78}\r$")
  expect_match(shown(asked$classes, cars), "certify: probabilities at 50 rows.*\r {78}\r$")
  for (fit in fits(FALSE)) expect_no_match(shown(fit, cars), "certify: ")
})
