# Compares pf_objective() and vfe_objective() with the dense transcription in helper-reference.R.

kinds <- c("sor", "subset", "reference")

test_that("the pF objective and its gradient are those of Proposition 2, for every auxiliary, kernel and weight", {
  turn <- 0
  for (p in problems()) {
    pairs <- nu_pairs(p)
    for (kind in kinds) {
      nu <- pairs[[kind]]$nu
      turn <- turn + 1
      for (jitter in in_turn(c(0, 1e-6), turn, 2)) {
        ref_nu <- pairs[[kind]]$reference
        ref <- function(z, constant = FALSE) {
          ref_pf(z, p$x, p$y, p$kernel, p$noise, ref_nu, p$weights, jitter, constant)
        }
        info <- paste(kind, label_of(p), "jitter", jitter)
        got <- package_pf(p, nu, jitter = jitter)
        expect_close(got$value, ref(p$z), 1e-9, info)
        expect_close(got$gradient, ref_derivative(ref, p$z), 1e-8, info)
        whole <- package_pf(p, nu, jitter = jitter, constant = TRUE)
        expect_close(whole$value, ref(p$z, TRUE), 1e-9, info)
        expect_close(whole$gradient, got$gradient, 1e-14, info)
      }
    }
  }
})

test_that("under white noise the objective is its closed form, for every kernel, weight and jitter", {
  skip_on_cran()
  turn <- 0
  for (p in problems()) {
    for (share in c(1, 0.3)) {
      nu <- package_nu(p, aux_white(share))
      turn <- turn + 1
      for (jitter in in_turn(c(0, 1e-6, 0.1), turn, 3)) {
        ref <- function(z) ref_white(z, p$x, p$y, p$kernel, p$noise, share, p$weights, jitter)
        got <- package_pf(p, nu, jitter = jitter)
        info <- paste(label_of(p), "jitter", jitter)
        expect_close(got$value, ref(p$z), 1e-10, info)
        expect_close(got$gradient, ref_derivative(ref, p$z), 1e-8, info)
      }
    }
    expect_gradient(function(z) package_pf(p, nu, z)$value, p$z, package_pf(p, nu)$gradient, info = label_of(p))
  }
})

test_that("for white noise the closed form is the defined pF divergence plus the mean's squared error at the rows", {
  for (p in problems()) {
    share <- 0.7
    nu <- ref_nu_white(share, p$x, p$y, p$kernel, p$noise, p$weights)
    off <- drop(ref_dtc(p$z, p$x, p$y, p$kernel, p$noise, p$weights)$mean(p$x) - nu$mean(p$x))
    w <- ref_weights(p$weights, p$x)
    # Compute the covariance part at Q = K, its least value.
    K <- outer(sqrt(w), sqrt(w)) * ref_k(p$kernel, p$x)
    inverse <- solve(diag(nrow(K)) + K / p$noise)
    least <- share * p$noise * trace_of(K %*% inverse %*% inverse)
    whole <- ref_pf_definition(p$z, p$x, p$y, p$kernel, p$noise, nu, p$weights) + p$noise * sum(w * off^2)
    got <- package_pf(p, package_nu(p, aux_white(share)), constant = TRUE)
    expect_close(got$value + least, whole, 1e-8, label_of(p)) # cancellation loses digits
    expect_gt(got$value, 0)
    at_x <- package_pf(p, package_nu(p, aux_white(share)), p$x, constant = TRUE)$value
    expect_lt(abs(at_x), 1e-9 * (got$value + p$noise^2 * sum(w * p$y^2) + least))
  }
})

test_that("nasty problems have a white-noise objective, or an error that says why not", {
  for (name in names(nasty_problems())) {
    p <- nasty_problems()[[name]]
    got <- package_pf(p, package_nu(p, aux_white()), jitter = 1e-9)
    expect_true(is.finite(got$value) && all(is.finite(got$gradient)), info = name)
    expect_close(got$value, ref_white(p$z, p$x, p$y, p$kernel, p$noise, 1, p$weights, 1e-9), 1e-6, name)
  }
})

test_that("every coordinate of the pF gradient is the limit of central differences", {
  skip_on_cran()
  all <- problems()
  for (i in seq_along(all)) {
    p <- all[[i]]
    pairs <- nu_pairs(p)
    for (kind in in_turn(kinds, i, 3)) {
      value <- function(z) package_pf(p, pairs[[kind]]$nu, z)$value
      gradient <- package_pf(p, pairs[[kind]]$nu)$gradient
      expect_gradient(value, p$z, gradient, info = paste(kind, label_of(p)))
    }
  }
})

test_that("a large jitter is part of the objective and of its gradient", {
  all <- problems()
  for (i in seq_along(all)) {
    p <- all[[i]]
    pairs <- nu_pairs(p)
    for (kind in in_turn(kinds, i, 3)) {
      ref <- function(z) {
        ref_pf(z, p$x, p$y, p$kernel, p$noise, pairs[[kind]]$reference, p$weights, 0.1)
      }
      got <- package_pf(p, pairs[[kind]]$nu, jitter = 0.1)
      expect_close(got$value, ref(p$z), 1e-10, paste(kind, label_of(p)))
      expect_close(got$gradient, ref_derivative(ref, p$z), 1e-9, paste(kind, label_of(p)))
    }
    ref <- ref_vfe_gradient(p$z, p$x, p$y, p$kernel, p$noise, p$weights, 0.1)
    expect_close(package_vfe(p, jitter = 0.1)$gradient$log_variance, ref$log_variance, 1e-10)
  }
})

test_that("the VFE objective is minus the ELBO, its gradients the derivatives", {
  for (p in problems()) {
    for (jitter in c(0, 1e-6)) {
      got <- package_vfe(p, jitter = jitter)
      ref <- ref_elbo(p$z, p$x, p$y, p$kernel, p$noise, p$weights, jitter)
      expect_close(got$value, -ref, 1e-10, label_of(p))
      gradient <- ref_vfe_gradient(p$z, p$x, p$y, p$kernel, p$noise, p$weights, jitter)
      expect_named(got$gradient, c(names(gradient), "theta"))
      expect_identical(unname(got$gradient$theta), unlist(got$gradient[names(gradient)[-1]], use.names = FALSE))
      for (part in names(gradient)) {
        expect_close(as.vector(got$gradient[[part]]), as.vector(gradient[[part]]), 1e-8,
                     paste(part, label_of(p)))
      }
      expect_identical(dim(got$gradient$z), dim(p$z))
    }
  }
})

test_that("every VFE derivative is the limit of central differences", {
  for (p in problems()) {
    value <- function(theta) {
      q <- p
      d <- ncol(p$x)
      q$z[] <- theta[seq_along(p$z)]
      hyper <- exp(theta[-seq_along(p$z)])
      q$kernel$lengthscale <- hyper[seq_len(d)]
      q$kernel$variance <- hyper[d + 1]
      q$noise <- hyper[d + 2]
      package_vfe(q, jitter = 1e-6)$value
    }
    at <- c(p$z, log(c(p$kernel$lengthscale, p$kernel$variance, p$noise)))
    gradient <- unlist(package_vfe(p, jitter = 1e-6)$gradient[c("z", "theta")])
    expect_gradient(value, at, gradient, info = label_of(p))
  }
})

test_that("inputs that the kernel does not use have no derivative", {
  p <- problem("matern32", d = 3)
  p$kernel <- ref_kernel("matern32", c(0.9, 1.4), 1.7, inputs = c(3, 1))
  for (pair in nu_pairs(p)) {
    ref <- function(z) ref_pf(z, p$x, p$y, p$kernel, p$noise, pair$reference)
    got <- package_pf(p, pair$nu)
    expect_close(got$value, ref(p$z))
    expect_close(got$gradient, ref_derivative(ref, p$z))
    expect_identical(got$gradient[, 2], rep(0, nrow(p$z)))
  }
  got <- package_vfe(p)$gradient
  ref <- ref_vfe_gradient(p$z, p$x, p$y, p$kernel, p$noise)
  expect_close(got$z, ref$z)
  expect_close(as.vector(got$log_lengthscale), ref$log_lengthscale)
})

test_that("one lengthscale for all inputs has the sum of the derivatives of a lengthscale for each", {
  p <- problem(d = 3, lengthscale = rep(1.2, 3))
  each <- package_vfe(p)
  p$kernel$lengthscale <- 1.2
  one <- package_vfe(p)
  expect_equal(one$value, each$value, tolerance = 1e-14)
  expect_equal(sum(one$gradient$log_lengthscale), sum(each$gradient$log_lengthscale))
})

test_that("at Z = X the divergence is 0; elsewhere it is positive", {
  for (p in problems()) {
    for (pair in nu_pairs(p)) {
      size <- ref_pf_terms(p$x, p$x, p$y, p$kernel, p$noise, pair$reference, p$weights)$constant
      at_x <- package_pf(p, pair$nu, p$x, constant = TRUE)
      # The value is a difference of terms of size C(X); the condition number of Kmm is at most 120.
      expect_lt(abs(at_x$value), 1e-11 * size)
      expect_gt(package_pf(p, pair$nu, constant = TRUE)$value, 0)
    }
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)$evidence
    expect_close(-package_vfe(p, p$x)$value, exact, 1e-10)
    expect_lt(-package_vfe(p)$value, exact)
    expect_lt(-package_vfe(p, jitter = 1e-2)$value, -package_vfe(p)$value)
  }
})

test_that("one more inducing point never lowers the ELBO", {
  for (p in problems()) {
    elbo <- vapply(1:4, function(m) -package_vfe(p, p$z[1:m, , drop = FALSE])$value, numeric(1))
    expect_true(all(diff(elbo) >= 0))
  }
})

test_that("d_pF at the exact posterior bounds the errors of mean and sd (the theorem)", {
  for (p in problems()) {
    exact <- package_nu(p, aux_subset(rows = seq_along(p$y)))
    d2 <- package_pf(p, exact, constant = TRUE)$value / p$noise^2
    truth <- predict(exact, p$new)
    dtc <- ref_dtc(p$z, p$x, p$y, p$kernel, p$noise, p$weights)
    sd_dtc <- sqrt(ref_variance(dtc, p$new))
    error <- (dtc$mean(p$new) - truth$fit)^2 + (sd_dtc - truth$se.fit)^2
    expect_true(all(error <= p$kernel$variance * d2))
  }
})

test_that("a weight of 2 is a row written twice", {
  for (p in quick(lapply(profiles, problem))) {
    n <- nrow(p$x)
    two <- utils::modifyList(p, list(weights = rep(2, n)))
    doubled <- utils::modifyList(p, list(x = rbind(p$x, p$x), y = c(p$y, p$y)))
    again <- c(p$rows, p$rows + n)
    nus <- list(
      list(package_nu(two, aux_sor(rows = p$rows)), package_nu(doubled, aux_sor(rows = p$rows))),
      list(package_nu(two, aux_subset(rows = p$rows)),
           package_nu(doubled, aux_subset(rows = again)))
    )
    for (nu in nus) {
      weighted <- package_pf(two, nu[[1]], constant = TRUE)
      expect_close(weighted$value, package_pf(doubled, nu[[2]], constant = TRUE)$value, 1e-10)
      expect_close(weighted$gradient, package_pf(doubled, nu[[2]])$gradient, 1e-9)
    }
    weighted <- package_vfe(two)
    as_rows <- package_vfe(doubled)
    expect_close(as_rows$value, weighted$value + n / 2 * log(4 * pi * p$noise), 1e-12)
    expect_close(as_rows$gradient$z, weighted$gradient$z, 1e-10)
    expect_close(as_rows$gradient$log_noise, weighted$gradient$log_noise + n / 2, 1e-10)
  }
})

test_that("weights of one equal no weights", {
  p <- problem("matern52")
  ones <- utils::modifyList(p, list(weights = rep(1, nrow(p$x))))
  nu <- package_nu(p, aux_sor(rows = p$rows))
  nu_ones <- package_nu(ones, aux_sor(rows = p$rows))
  expect_equal(package_pf(ones, nu_ones), package_pf(p, nu), tolerance = 1e-14)
  expect_equal(package_vfe(ones), package_vfe(p), tolerance = 1e-14)
})

test_that("units of inputs and response do not matter, but the value scales with the fourth power of y", {
  p <- problem("matern32")
  big <- utils::modifyList(p, list(
    x = p$x * 10, z = p$z * 10, y = p$y * 3, noise = p$noise * 9,
    kernel = ref_kernel("matern32", p$kernel$lengthscale * 10, p$kernel$variance * 9)
  ))
  for (aux in list(aux_sor(rows = p$rows), aux_subset(rows = p$rows))) {
    small <- package_pf(p, package_nu(p, aux), constant = TRUE, jitter = 1e-6)
    scaled <- package_pf(big, package_nu(big, aux), constant = TRUE, jitter = 1e-6)
    expect_close(scaled$value, 81 * small$value, 1e-11)
    expect_close(scaled$gradient, 8.1 * small$gradient, 1e-11)
  }
  expect_close(package_vfe(big)$value, package_vfe(p)$value + nrow(p$x) * log(3), 1e-12)
})

## Bad input ---------------------------------------------------------------------------------------

test_that("bad arguments are refused by name", {
  p <- problem()
  k <- package_kernel(p$kernel)
  nu <- package_nu(p, aux_sor(rows = p$rows))
  pf <- function(z = p$z, x = p$x, y = p$y, kernel = k, noise = p$noise, nu. = nu, ...) {
    pf_objective(z, x, y, kernel, noise, nu., ...)
  }
  vfe <- function(z = p$z, x = p$x, y = p$y, kernel = k, noise = p$noise, ...) {
    vfe_objective(z, x, y, kernel, noise, ...)
  }
  nan <- function(a) replace(a, 2, NaN)
  for (objective in list(pf, vfe)) {
    expect_input_error(objective(z = p$z[, 1]), "`z`")
    expect_input_error(objective(z = nan(p$z)), "`z`")
    expect_input_error(objective(z = p$z[0, ]), "`z`")
    expect_input_error(objective(x = nan(p$x)), "`x`")
    expect_input_error(objective(x = p$x[0, ], y = numeric()), "`x`")
    expect_input_error(objective(x = array("a", dim(p$x))), "`x`")
    expect_input_error(objective(y = p$y[-1]), "`y`")
    expect_input_error(objective(y = nan(p$y)), "`y`")
    expect_input_error(objective(y = as.character(p$y)), "`y`")
    expect_input_error(objective(kernel = "se"), "`kernel`")
    expect_input_error(objective(kernel = kernel_se(lengthscale = 1)), "variance")
    expect_input_error(objective(kernel = kernel_se(variance = 1)), "lengthscale")
    for (noise in list(0, -1, NA_real_, Inf, c(1, 2), "a", NULL)) {
      expect_input_error(objective(noise = noise), "`noise`")
    }
    expect_input_error(objective(weights = rep(1, 3)), "`weights`")
    expect_input_error(objective(weights = replace(rep(1, 13), 1, -1)), "`weights`")
    expect_input_error(objective(weights = nan(rep(1, 13))), "`weights`")
    expect_input_error(objective(jitter = -1), "`jitter`")
    expect_input_error(objective(jitter = NaN), "`jitter`")
  }
  expect_input_error(pf(constant = NA), "`constant`")
})

test_that("an auxiliary distribution is refused with other data", {
  p <- problem(weighted = TRUE)
  nu <- package_nu(p, aux_sor(rows = p$rows))
  refuse <- function(...) {
    expect_input_error(package_pf(utils::modifyList(p, list(...)), nu), "`nu`")
  }
  refuse(x = p$x + 1)
  refuse(x = p$x[13:1, ])
  refuse(x = cbind(p$x[, 1], p$x[13:1, 2]))
  refuse(y = p$y[13:1])
  refuse(y = p$y + 1e-3)
  refuse(x = p$x[-13, ], y = p$y[-13], weights = p$weights[-13])
  refuse(noise = p$noise * 2)
  refuse(weights = p$weights * 2)
  refuse(kernel = ref_kernel("se", p$kernel$lengthscale, 2))
  refuse(kernel = ref_kernel("matern12", p$kernel$lengthscale, p$kernel$variance))
  expect_input_error(package_pf(p, "sor"), "`nu`")
  expect_input_error(package_pf(p, aux_sor()), "`nu`")
})

test_that("the optimiser's objective has the gradient of its value, in any units of the inputs and with merged rows", {
  p <- problem(n = 20, m = 3)
  data <- data_from_matrix(p$x[rep(1:20, 2), ], c(p$y, p$y + 1))
  kernel <- complete_kernel(package_kernel(p$kernel), data$x)
  control <- pfdtc_control(progress = FALSE)
  points <- points_problem(data, data$x[1:3, ] + 0.1, new_model(kernel, 0.3), NULL, 1e-6, control)
  expect_gradient(function(par) points$evaluate(par)$value, points$start, points$evaluate(points$start)$gradient)
  hyper <- vfe_hyper_problem(data, data$x[1:3, ], hyper_parameters(kernel, 0.3, colnames(data$x)), 1e-6, control)
  expect_gradient(function(par) hyper$evaluate(par)$value, hyper$start, hyper$evaluate(hyper$start)$gradient)
  both <- vfe_hyper_problem(data, data$x[1:3, ], hyper_parameters(kernel, 0.3, colnames(data$x)), 1e-6, control, points)
  expect_gradient(function(par) both$evaluate(par)$value, both$start, both$evaluate(both$start)$gradient)
  at <- both$evaluate(c(points$start, hyper$start))$value # the points alone have no terms of merged rows
  expect_equal(at, points$evaluate(points$start)$value - merged_log_density(data$shift, 0.3), tolerance = 1e-12)
})
