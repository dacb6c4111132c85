# Kernels of rotated inputs: a fit of x with the kernel k(x B) is the fit of x B with the kernel k.

rotation <- list(inputs = 1:3, by = matrix(c(1, 0, 0, -0.8, 1, 0, 0.5, -1.2, 1), 3))

turned <- function(x) {
  x[, 1:3] <- x[, 1:3] %*% rotation$by
  x
}

with_turn <- function(kernel) {
  change_leaves(kernel, function(leaf) {
    if (any(leaf$inputs %in% 1:3)) replace(leaf, "rotation", list(rotation)) else leaf
  })
}

rotated_kernels <- function() {
  line <- mean_leaf(turned(kernel_rows(30)), 1:3, 0.7)
  smooth <- function(make, ...) make(..., lengthscale = c(0.9, 1.3, 0.7), variance = 1.4, inputs = c("a", "b", "c"))
  placed <- function(kernel) place_kernel(kernel, kernel_rows(5), variables = NULL)
  kernels <- list(se = smooth(kernel_se), matern = smooth(kernel_matern), rq = smooth(kernel_rq, alpha = 1.2),
                  linear = kernel_linear(0.8, c("a", "b", "c")),
                  square = kernel_polynomial(2, 0.5, 0.9, c("a", "b", "c")),
                  line = smooth(kernel_se) + line, product = smooth(kernel_se) * kernel_linear(1, c("a", "b", "c")),
                  levels = smooth(kernel_matern) * kernel_categorical("exchangeable", 1, c("f1", "f2", "f3")))
  kernels$levels$leaves[[2L]]$parameters <- 0.8
  lapply(kernels, placed)
}

test_that("a rotated kernel is the kernel at rotated rows, with its slopes and their variance", {
  x <- kernel_rows(9)
  z <- kernel_rows(7, 2)
  for (name in names(rotated_kernels())) {
    plain <- rotated_kernels()[[name]]
    kernel <- with_turn(plain)
    expect_close(kernel_matrix(kernel, x, z), kernel_matrix(plain, turned(x), turned(z)), 1e-13, name)
    expect_close(kernel_diagonal(kernel, x), kernel_diagonal(plain, turned(x)), 1e-13, name)
    expect_identical(kernel_matrix(kernel, x[3:9, ], z), kernel_matrix(kernel, x, z)[3:9, ]) # rows are independent
    for (column in 1:3) {
      fun <- slopes_at(kernel, x, column)
      expect_close(fun$cross(z, 1:9), ref_slopes(kernel, z, x, column), 1e-6, paste(name, column))
      if (name != "matern" && name != "levels") {
        expect_close(fun$prior, ref_slope_variance(kernel, x, column), 1e-4, paste(name, column))
      }
    }
  }
})

# Returns two fits that are the same model: of x by the rotated kernel, and of the rotated x by the kernel itself.
two_fits <- function(name, family, ...) {
  x <- kernel_rows(60, 3)
  y <- with_seed(4, {
    p <- turned(x)[, 1:3] + matrix(stats::rlogis(180), 60)
    factor(letters[max.col(if (identical(family, "two")) p[, 1:2] else p)])
  })
  kernel <- rotated_kernels()[[name]]
  family <- if (identical(family, "two")) binomial() else multinomial()
  fit <- function(x, kernel) pfdtc(x, y, family = family, kernel = kernel, hyper = "fixed", ...)
  list(own = fit(x, with_turn(kernel)), hand = fit(turned(x), kernel), new = kernel_rows(8, 5))
}

test_that("predictions, leave-one-out, draws, evidence and certificates are those of rotated inputs", {
  cases <- list(c("line", "two"), c("matern", "two", 12), c("se", "three"), c("line", "three", 12))
  for (case in some_of(cases, 2)) {
    m <- if (length(case) > 2L) as.integer(case[3L])
    fits <- if (is.null(m)) two_fits(case[1L], case[2L]) else two_fits(case[1L], case[2L], m = m)
    expect_same_answers(fits, turned)
  }
})

test_that("slopes of f and coefficients of a linear mean are those of x", {
  fits <- two_fits("line", "two")
  expect_slopes_of_x(fits, 1e-4)
  own <- mean_coefficients(fits$own)
  hand <- mean_coefficients(fits$hand)
  expect_equal(unname(own$estimate[-1L]), drop(rotation$by %*% hand$estimate[-1L]), tolerance = 1e-8)
  expect_equal(own$estimate[[1L]], hand$estimate[[1L]], tolerance = 1e-8)
  expect_equal(unname(own$covariance[-1L, -1L]), unname(rotation$by %*% hand$covariance[-1L, -1L] %*% t(rotation$by)),
               tolerance = 1e-7)
})

test_that("the gradient in inducing points is in terms of x", {
  expect_gradient_of_x(with_turn(rotated_kernels()$line))
})

test_that("a model that asks for other inputs of a rotated kernel is refused", {
  kernel <- with_turn(rotated_kernels()$se)
  expect_error(kernel_matrix(kernel + place_kernel(kernel_se(1, 1, "a"), kernel_rows(5)), kernel_rows(5)),
               "rotated inputs", class = "pfdtc_error_input")
  expect_null(boxes_at(kernel, kernel_rows(2), kernel_rows(2) + 1))
})

test_that("units, priors and effective lengthscales are those of rotated rows", {
  x <- kernel_rows(40)
  for (name in c("se", "line", "square", "levels")) {
    plain <- rotated_kernels()[[name]]
    kernel <- with_turn(plain)
    expect_equal(parameter_units(kernel, x, 2), parameter_units(plain, turned(x), 2), tolerance = 1e-12)
  }
  kernel <- with_turn(rotated_kernels()$se)
  lengths <- kernel_lengths(kernel, ncol(x))
  for (j in 1:3) { # se falls to exp(-1/2) at a distance of one lengthscale along x_j
    at <- x[c(1, 1), ]
    at[2, j] <- at[2, j] + lengths[j]
    expect_equal(kernel_matrix(kernel, at)[2, 1], 1.4 * exp(-0.5), tolerance = 1e-12)
  }
  expect_identical(lengths[4:6], rep(Inf, 3))
})

crab_rows <- function() {
  d <- MASS::crabs[c(TRUE, TRUE, FALSE), ]
  data.frame(d[c("FL", "RW", "CL", "CW", "BD")], class = interaction(d$sp, d$sex))
}

test_that("crabs have rotated inputs, in which classes scatter alike; plain = TRUE and few rows have none", {
  skip_on_cran()
  skip_if_not_installed("MASS")
  d <- crab_rows()
  fit <- pfdtc(class ~ ., d, family = multinomial())
  expect_match(fit$kernels$kernel[fit$kernels$chosen], "(rotated)", fixed = TRUE)
  z <- rotated(fit$kernel, as.matrix(d[1:5]))
  apart <- apply(z, 2, function(v) v - ave(v, d$class))
  expect_equal(cor(apart), diag(5), tolerance = 1e-8, ignore_attr = TRUE)
  expect_output(print(fit), "linear\\s+regression\\s+on\\s+the\\s+rotated\\s+inputs\\s+listed\\s+before\\s+it")
  expect_identical(price_of_rotation(fit$kernel), 1) # 10 pairs of inputs
  plain <- pfdtc(class ~ ., d, family = multinomial(), plain = TRUE)
  expect_false(any(grepl("rotated", plain$kernels$kernel)))
  few <- pfdtc(class ~ ., d[seq(1, 133, 3), ], family = multinomial()) # 45 rows of 5 inputs
  expect_false(any(grepl("rotated", few$kernels$kernel)))
  # Another fit can have the same kernel, and saved fits keep it.
  again <- pfdtc(class ~ ., d, family = multinomial(), kernel = fit$kernel, hyper = "fixed")
  expect_equal(predict(again, d, type = "response"), predict(fit, d, type = "response"), tolerance = 0.01)
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  saveRDS(fit, file)
  expect_identical(predict(readRDS(file), d[1:3, ], type = "response"), predict(fit, d[1:3, ], type = "response"))
  learned <- pfdtc(class ~ ., d, family = multinomial(), kernel = fit$kernel)
  expect_gt(as.numeric(logLik(learned)), as.numeric(logLik(fit)) - 1)
  damaged <- fit
  damaged$kernel$leaves[[1L]]$rotation$inputs[1L] <- 9L
  expect_error(predict(damaged, d), class = "pfdtc_error_input")
})

test_that("classes that a rotation does not help keep their inputs, and other responses are never rotated", {
  x <- kernel_rows(90, 8)[, 1:3]
  y <- with_seed(9, rbinom(90, 1, plogis(4 * sin(3 * x[, 1]))))
  fit <- pfdtc(x, factor(y))
  expect_null(rotation_of(fit$kernel))
  s <- list(likelihood = as_likelihood(poisson()), kernel = kernel_se())
  expect_null(rotation_by_classes(list(x = x, sites = list(y = y)), s))
  s$likelihood <- as_likelihood(binomial())
  expect_false(is.null(rotation_by_classes(list(x = x, sites = list(y = y)), s)))
  twice <- cbind(x, x[, 1] + x[, 2])
  expect_null(rotation_by_classes(list(x = twice, sites = list(y = y)), s)) # linearly dependent inputs
})
