test_that("posterior, parts of the variance and evidence are those of the dense formulas", {
  for (p in problems()) {
    for (s in list(c(4, 4), c(3, 5), c(5, 1), c(0, 3), c(3, 0))) {
      got <- near_case(p, s[1], s[2])
      expected <- ref_near_case(p, s[1], s[2], got)
      info <- paste(label_of(p), "s", s[1], s[2])
      expect_near(got, expected, p$kernel$variance, 1e-9, info)
      expect_close(got$var_near, expected$var_near, 1e-9, info)
      expect_close(got$var_far, expected$var_far, 1e-9, info)
    }
  }
})

test_that("the dense formulas hold for every factor, and for sums of products", {
  kernels <- some_kernels(4, 5)
  x <- kernel_rows(18, 3)
  for (name in quick(names(kernels))) {
    p <- list(x = x, y = with_seed(1, stats::rnorm(18)) + x[, 1], z = kernel_rows(4, 9), noise = 0.2,
              kernel = complete_kernel(kernels[[name]], x), weights = seq(0.5, 2, length.out = 18),
              new = rbind(kernel_rows(4, 7), x[1:2, ]))
    variance <- max(diag(ref_k(p$kernel, p$new)))
    for (s in list(c(5, 3), c(0, 4), c(18, 18))) {
      got <- near_case(p, s[1], s[2], jitter = 1e-4) # some kernels have the rank 1
      expect_near(got, ref_near_case(p, s[1], s[2], got), variance, 1e-9, paste(name, s[1], s[2]))
    }
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    expect_near(got, list(mean = exact$mean(p$new), var = ref_variance(exact, p$new), evidence = got$evidence),
                variance, 1e-9, paste(name, "all rows"))
  }
})

test_that("a kernel without inputs has neighbours, too", {
  x <- matrix(seq(0, 1, length.out = 70))
  p <- list(x = x, y = sin(x[, 1]), z = x[1, , drop = FALSE], noise = 0.2, weights = NULL, new = x,
            kernel = complete_kernel(kernel_constant(2), x))
  exact <- ref_exact(p$x, p$y, p$kernel, p$noise)
  for (s in c(4, 70)) {
    got <- near_case(p, s, s)
    expect_near(got, list(mean = exact$mean(x), var = ref_variance(exact, x), evidence = got$evidence), 2, 1e-9, s)
  }
})

test_that("with all rows as neighbours, and all earlier rows in training, the posterior is that of the exact GP", {
  for (p in problems()) {
    n <- nrow(p$x)
    got <- near_case(p, n, n)
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    expected <- list(mean = exact$mean(p$new), var = ref_variance(exact, p$new),
                     evidence = exact$evidence - sum(log(ref_weights(p$weights, p$x))) / 2)
    expect_near(got, expected, p$kernel$variance, 1e-9, label_of(p))
    expect_near(near_case(p, 10 * n, 10 * n), expected, p$kernel$variance, 1e-9, label_of(p)) # more than all rows
  }
})

test_that("without neighbours the posterior is FITC's", {
  for (p in problems()) {
    got <- near_case(p, 0, 0)
    fit <- fit_by("gp_fitc", p)
    expect_close(got$mean, unname(predict(fit, p$new)), 1e-9, label_of(p))
    expect_close(sqrt(got$var_near + got$var_far), unname(predict(fit, p$new, se.fit = TRUE)$se.fit), 1e-9, label_of(p))
    expect_close(got$evidence, as.numeric(logLik(fit)) - sum(log(ref_weights(p$weights, p$x))) / 2, 1e-9, label_of(p))
  }
})

covariance_of <- function(p, got, new = p$new, control = NULL) {
  model <- new_model(got$kernel, p$noise)
  native_near_covariance(got$near, p$z, got$data, model, got$near$neighbours, new, control)$covariance
}

test_that("the joint covariance is the dense formula, has the variances of predictions, and is positive semidefinite", {
  for (p in problems()) {
    p$new <- rbind(p$new, p$x[1:3, , drop = FALSE], p$new[1, , drop = FALSE] + 1e-4)
    got <- near_case(p, 4, 4)
    cov <- covariance_of(p, got)
    expect_close(cov, ref_near_case(p, 4, 4, got)$cov, 1e-9, label_of(p))
    expect_identical(diag(cov), got$var_near + got$var_far)
    expect_close(covariance_of(p, got, p$new[c(7, 2, 4), , drop = FALSE]), cov[c(7, 2, 4), c(7, 2, 4)], 1e-12,
                 label_of(p))
    expect_gt(min(eigen(cov, symmetric = TRUE, only.values = TRUE)$values), -1e-12 * p$kernel$variance)
    n <- nrow(p$x)
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    expect_close(covariance_of(p, near_case(p, n, n)), exact$cov(p$new, p$new), 1e-9, label_of(p))
    fitc <- ref_fitc(p$z, p$x, p$y, p$kernel, p$noise, p$weights, 1e-12)
    expect_close(covariance_of(p, near_case(p, 0, 0)), fitc$cov(p$new, p$new), 1e-9, label_of(p))
  }
})

test_that("rows far from the data have more neighbours, in predictions, draws and functionals", {
  far <- integer()
  for (p in problems()) {
    p$new <- rbind(p$new, p$new[1:2, , drop = FALSE] + 2 * diff(range(p$x)))
    got <- near_case(p, c(3, 12), 4)
    expected <- ref_near_case(p, c(3, 12), 4, got)
    expect_near(got, expected, p$kernel$variance, 1e-9, label_of(p))
    cov <- covariance_of(p, got)
    expect_close(cov, expected$cov, 1e-9, label_of(p))
    expect_identical(diag(cov), got$var_near + got$var_far)
    view <- new_posterior("near", new_model(got$kernel, p$noise), NULL, got$data, z = p$z, near = got$near)
    far <- c(far, sum(predict_given(view, p$new, keep = TRUE)$rows[4, ] > 0L))
    # Compute values of f by the code for other functionals.
    at <- functionals_near(view, replace(values_at(got$kernel, p$new), "kind", "terms"))
    expect_close(predict_given(view, p$new, at)$mean, got$mean, 1e-9, label_of(p))
  }
  expect_true(all(far >= 1L)) # in every problem some row has more than three neighbours
})

test_that("one row, no new rows and more neighbours than rows give the exact posterior", {
  for (p in list(problem(n = 1, m = 1), problem(n = 2, m = 3, d = 1, weighted = TRUE))) {
    n <- nrow(p$x)
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    got <- near_case(p, 5, 5)
    expect_close(got$mean, exact$mean(p$new), 1e-9)
    expect_close(covariance_of(p, got), exact$cov(p$new, p$new), 1e-9)
    none <- p$new[0, , drop = FALSE]
    for (near in list(got, near_case(p, 0, 0))) {
      expect_identical(unname(lengths(near_parts(near$near, near$data, p$z, new_model(near$kernel, p$noise), none))),
                       c(0L, 0L, 0L))
      expect_identical(dim(covariance_of(p, near, none)), c(0L, 0L))
    }
  }
})

test_that("a matrix without Cholesky factor raises a classed error", {
  p <- problem("se", m = 4)
  p$z <- p$z[c(1, 1, 1, 1), ]
  data <- p[c("x", "y", "weights")]
  expect_error(native_near(p$z, list(x = p$x, y = p$y),
                           new_model(complete_kernel(package_kernel(p$kernel), p$x), p$noise), 3, 1:13, 0, most = 0),
               class = "pfdtc_error_numerical")
  # With equal rows and almost no noise, the noise is raised to the size of rounding. Predictions are the data's means.
  p <- problem("matern32", n = 8, m = 2, noise = 1e-300)
  p$x <- p$x[rep(1:4, 2), ]
  p$y <- p$y[rep(1:4, 2)]
  p$new <- p$x[1:4, ]
  got <- near_case(p, 8, 8)
  expect_lt(max(abs(got$mean - p$y[1:4])), 1e-6)
  expect_true(all(is.finite(unlist(got[c("mean", "var_near", "var_far", "evidence")]))))
})

test_that("blocks, threads and memory change nothing beyond rounding", {
  skip_on_cran()
  # There are more rows than a wave has (near_field.h), and more neighbours than a memory of 0 allows at a time.
  for (p in quick(list(problem("matern12", n = 700, d = 2, m = 12, weighted = TRUE),
                       problem("se", n = 4200, d = 3, m = 6)))) {
    p$new <- with_seed(4, rbind(p$new, p$x[sample.int(nrow(p$x), 400), ] + 0.01))
    near <- function(s, ...) near_case(p, s, s, pfdtc_control(...))
    for (s in c(0, 6)) {
      plain <- near(s, threads = 1)
      same <- function(got, info) {
        for (part in c("mean", "var_near", "var_far", "evidence")) expect_close(got[[part]], plain[[part]], 1e-11, info)
      }
      same(near(s, threads = 2), "threads")
      same(near(s, threads = 3, block = 17), "blocks of 17")
      same(near(s, threads = 2, block = 40, memory = 0), "no memory")
      same(near(s, threads = 1, memory = 3e4), "little memory")
    }
    new <- p$new[1:90, ]
    cov <- covariance_of(p, plain, new, pfdtc_control(threads = 1))
    expect_close(covariance_of(p, plain, new, pfdtc_control(threads = 2, block = 7, memory = 0)), cov, 1e-11)
    # Predict rows together, apart, and in another order.
    model <- new_model(plain$kernel, p$noise)
    predict <- function(new) as.data.frame(near_parts(plain$near, plain$data, p$z, model, new))
    o <- with_seed(8, sample.int(nrow(p$new)))
    expect_close(as.matrix(predict(p$new[o, ])), as.matrix(predict(p$new))[o, ], 1e-11)
    expect_close(as.matrix(predict(p$new[5, , drop = FALSE])), as.matrix(predict(p$new))[5, , drop = FALSE], 1e-11)
  }
})

test_that("a call does not change its arguments, and a second call gives the same result", {
  p <- problem("matern52", weighted = TRUE)
  before <- rapply(p, function(v) v + 0, "numeric", how = "replace")
  one <- near_case(p, 4, 4)
  two <- near_case(p, 4, 4)
  expect_identical(p, before)
  expect_identical(one, two)
})

test_that("whole weights equal numbers of merged rows", {
  p <- problem("matern32", n = 12)
  times <- rep(1:3, 4)
  p$weights <- as.numeric(times)
  n <- nrow(p$x)
  got <- near_case(p, n, n)
  many <- ref_exact(p$x[rep(1:n, times), ], rep(p$y, times), p$kernel, p$noise)
  expect_close(got$mean, many$mean(p$new), 1e-9)
  expect_close(got$var_near + got$var_far, ref_variance(many, p$new), 1e-9)
})

test_that("a new row equal to a training row with little noise is that row", {
  p <- problem("matern32", n = 40, m = 5, noise = 1e-9)
  p$new <- p$x
  got <- near_case(p, 8, 8)
  expect_lt(max(abs(got$mean - p$y)), 1e-6 * sqrt(p$kernel$variance))
  expect_lt(max(got$var_near + got$var_far), 1.01e-9)
})

test_that("posteriors are accurate with little noise, points among the rows or as many as rows, and rows 1e-9 apart", {
  skip_on_cran()
  for (profile in quick(profiles)) {
    for (noise in in_turn(10^-c(2, 6, 10), match(profile, profiles), 2)) {
      base <- problem(profile, n = 40, d = 2, m = 8, lengthscale = c(0.6, 0.8), noise = noise, weighted = TRUE,
                      seed = 3)
      cases <- list(plain = base, "points among the rows" = replace(base, "z", list(base$x[1:8, ])),
                    "as many points as rows" = replace(base, "z", list(base$x)),
                    "rows 1e-9 apart" = replace(base, "x", list(rbind(base$x[1:20, ], base$x[1:20, ] + 1e-9))))
      for (name in names(cases)) {
        p <- cases[[name]]
        p$y <- with_seed(2, sin(p$x[, 1]) + rnorm(40, sd = sqrt(noise)))
        p$new <- rbind(p$new, p$x[c(1, 5), ])
        for (s in in_turn(c(10, 40), match(profile, profiles) + match(name, names(cases)), 2)) {
          got <- near_case(p, s, s)
          expected <- ref_near_case(p, s, s, got)
          variance <- p$kernel$variance
          info <- paste(name, profile, noise, s)
          # Rounding errors of kernel values are multiplied by weights of 1 / sqrt(noise), because equal rows have
          # responses that differ by noise.
          expect_lt(max(abs(got$mean - expected$mean)),
                    1e-9 * sqrt(variance) + 4 * .Machine$double.eps * variance * 40 / sqrt(noise), label = info)
          expect_lt(max(abs(got$var_near + got$var_far - expected$var)), 1e-9 * variance, label = info)
          # The squares of the response over the noise cancel in the log marginal likelihood.
          expect_lt(abs(got$evidence - expected$evidence),
                    1e-9 * abs(expected$evidence) + 100 * .Machine$double.eps * sum(p$weights * p$y^2) / noise,
                    label = info)
        }
      }
    }
  }
})

test_that("hundreds of inducing points work, more than a matrix product packs at a time", {
  only_nightly()
  p <- problem("matern12", n = 280, d = 3, m = 260, weighted = TRUE)
  got <- near_case(p, 5, 5, pfdtc_control(threads = 2, block = 60))
  expect_near(got, ref_near_case(p, 5, 5, got), p$kernel$variance, 1e-9, "m = 260")
  got <- near_case(p, 0, 0, pfdtc_control(threads = 2, block = 60))
  fit <- fit_by("gp_fitc", p)
  expect_close(got$mean, unname(predict(fit, p$new)), 1e-9)
  expect_close(got$evidence, as.numeric(logLik(fit)) - sum(log(p$weights)) / 2, 1e-9)
})

test_that("slopes and terms given neighbours are those of the dense formulas; values too, if they are given as such", {
  d <- with_seed(3, data.frame(a = runif(60), b = runif(60), w = runif(60, 0.5, 2)))
  d$y <- sin(9 * d$a) + d$b
  fit <- pfdtc(y ~ a + b, d, weights = w, m = 5, neighbours = 6, noise = 0.02, hyper = "fixed", scale = FALSE,
               kernel = kernel_matern(5 / 2, 0.3, 1, inputs = "a") + kernel_se(0.5, 0.7, inputs = "b"))
  p <- posterior_of(fit)
  x <- cbind(c(0.2, 0.71, 0.4), c(0.3, 0.31, 0.9))
  K <- function(a, b) native_kernel_matrix(p$model$kernel, a, b)
  A_of <- function(b) forwardsolve(p$near$L, K(p$z, b))
  dense <- function(fun, i) {
    S <- native_neighbours(p$model$kernel, p$rows$x, 6L, query = x)[, fun$rows[i]]
    x_S <- p$rows$x[S, ]
    a <- forwardsolve(p$near$L, fun$cross(p$z, i))
    e <- fun$cross(x_S, i) - crossprod(A_of(x_S), a)
    u <- solve(K(x_S, x_S) - crossprod(A_of(x_S)) + diag(0.02 / p$rows$weights[S]), e)
    r <- a - A_of(x_S) %*% u
    c(mean = sum(u * p$rows$y[S]) + sum(r * p$near$beta),
      var = fun$prior[i] - sum(a^2) - sum(e * u) + sum(forwardsolve(p$near$C, r)^2))
  }
  values <- values_at(p$model$kernel, x)
  for (fun in list(values, slopes_at(p$model$kernel, x, 1L), terms_at(kernels_of_terms(p$model$kernel), x),
                   replace(values, "kind", "slopes"))) {
    expected <- vapply(seq_len(fun$n), function(i) dense(fun, i), c(mean = 0, var = 0))
    got <- posterior_at(p, fun)
    # In e = cross - A_S'a (near.h) digits cancel if the inducing points explain most of f.
    expect_close(got$mean, unname(expected["mean", ]), 1e-9)
    expect_close(got$var, unname(expected["var", ]), 1e-9)
  }
})
