# Kernels of warped inputs: a fit of x with the kernel k(w(x)) is the fit of w(x) with the kernel k.

warp_two <- function() {
  knots <- seq(-1.4, 1.4, length.out = warp_knots)
  list(inputs = c(1L, 3L), at = cbind(knots, knots^3 + knots), to = cbind(sinh(2 * knots), 2 * knots))
}

# Transcribes w: interpolation by approx(), and lines through the first and through the last two knots.
warped_by_hand <- function(x, warp = warp_two()) {
  for (k in seq_along(warp$inputs)) {
    v <- x[, warp$inputs[k]]
    at <- warp$at[, k]
    to <- warp$to[, k]
    end <- function(i, j) to[i] + (v - at[i]) * (to[j] - to[i]) / (at[j] - at[i])
    n <- length(at)
    x[, warp$inputs[k]] <- ifelse(v < at[1L], end(1L, 2L), ifelse(v > at[n], end(n, n - 1L),
                                                                  stats::approx(at, to, v, rule = 2)$y))
  }
  x
}

with_warp_two <- function(kernel) change_leaves(kernel, function(leaf) replace(leaf, "warp", list(warp_two())))

kernels_to_warp <- function() {
  line <- mean_leaf(warped_by_hand(kernel_rows(30)), 1:3, 0.7)
  smooth <- function(make, ...) make(..., lengthscale = c(0.9, 1.3, 0.7), variance = 1.4, inputs = c("a", "b", "c"))
  lapply(list(se = smooth(kernel_se), rq = smooth(kernel_rq, alpha = 1.2), line = smooth(kernel_se) + line,
              matern = smooth(kernel_matern), product = smooth(kernel_se) * kernel_linear(1, c("a", "b", "c"))),
         place_kernel, kernel_rows(5), variables = NULL)
}

test_that("a warped kernel is the kernel at warped rows, with its slopes and their variance", {
  x <- kernel_rows(9)
  z <- kernel_rows(7, 2)
  expect_true(any(x[, 1] > 1.4) || any(x[, 1] < -1.4)) # beyond the knots
  h <- 1e-6
  for (name in names(kernels_to_warp())) {
    plain <- kernels_to_warp()[[name]]
    kernel <- with_warp_two(plain)
    expect_equal(rotated(kernel, x), warped_by_hand(x), tolerance = 1e-14)
    expect_close(kernel_matrix(kernel, x, z), kernel_matrix(plain, warped_by_hand(x), warped_by_hand(z)), 1e-13, name)
    expect_close(kernel_diagonal(kernel, x), kernel_diagonal(plain, warped_by_hand(x)), 1e-13, name)
    expect_identical(kernel_matrix(kernel, x[3:9, ], z), kernel_matrix(kernel, x, z)[3:9, ]) # other rows do not matter
    for (column in 1:3) {
      up <- down <- x
      up[, column] <- up[, column] + h
      down[, column] <- down[, column] - h
      fun <- slopes_at(kernel, x, column)
      expect_close(fun$cross(z, 1:9), (kernel_matrix(kernel, z, up) - kernel_matrix(kernel, z, down)) / (2 * h), 1e-7,
                   paste(name, column))
      of_w <- (warped_by_hand(up)[, column] - warped_by_hand(down)[, column]) / (2 * h)
      expect_close(fun$prior, slopes_at(plain, warped_by_hand(x), column)$prior * of_w^2, 1e-7, paste(name, column))
    }
  }
})

# Returns two fits that are the same model: of x by the warped kernel, and of the warped x by the kernel itself.
fits_of_warped <- function(name, ...) {
  x <- kernel_rows(60, 3)
  y <- factor(with_seed(4, stats::rbinom(60, 1, stats::plogis(warped_by_hand(x)[, 1] - x[, 2]))))
  kernel <- kernels_to_warp()[[name]]
  fit <- function(x, kernel) pfdtc(x, y, family = binomial(), kernel = kernel, hyper = "fixed", ...)
  list(own = fit(x, with_warp_two(kernel)), hand = fit(warped_by_hand(x), kernel), new = kernel_rows(8, 5))
}

test_that("predictions, leave-one-out, draws, evidence and certificates are those of warped inputs", {
  only_nightly()
  for (case in list("line", "se", c("matern", 12))) {
    fits <- if (length(case) < 2L) fits_of_warped(case) else fits_of_warped(case[1L], m = as.integer(case[2L]))
    expect_same_answers(fits, warped_by_hand)
  }
})

test_that("slopes of f are those of x, and a linear mean of warped inputs has no coefficients", {
  fits <- fits_of_warped("line")
  expect_slopes_of_x(fits, 1e-5)
  expect_null(mean_coefficients(fits$own))
  expect_false(is.null(mean_coefficients(fits$hand)))
  expect_output(print(summary(fits$own)), "Lengthscale")
})

test_that("the gradient in inducing points is in terms of x", {
  expect_gradient_of_x(with_warp_two(kernels_to_warp()$line))
})

test_that("warped kernels have no boxes, refuse other factors of their inputs, and have units of warped rows", {
  kernel <- with_warp_two(kernels_to_warp()$se)
  x <- kernel_rows(40)
  expect_null(boxes_at(kernel, x[1:2, ], x[1:2, ] + 1))
  expect_error(kernel_matrix(kernel + place_kernel(kernel_se(1, 1, "a"), x[1:5, ]), x[1:5, ]), "warped inputs",
               class = "pfdtc_error_input")
  for (name in c("se", "line")) {
    plain <- kernels_to_warp()[[name]]
    expect_equal(parameter_units(with_warp_two(plain), x, 2), parameter_units(plain, warped_by_hand(x), 2),
                 tolerance = 1e-12)
  }
})

test_that("the warp moves an input by a share to its normal scores, through quantiles", {
  v <- with_seed(2, exp(stats::rnorm(81)))
  x <- cbind(few = rep(1:4, length.out = 81), v = v)
  scores <- mean(v) + stats::sd(v) * stats::qnorm((rank(v) - 0.5) / 81)
  for (share in c(0.5, 1)) {
    warp <- warp_to_scores(x, 1:2, share)
    expect_true(is_good_warp(warp, 1:2))
    knots <- sort(v)[1 + 5 * 0:16] # sixteenths of 81 values
    expect_equal(warp$at[1:17, 2], knots)
    at_knots <- match(knots, v)
    expect_equal(warp_at(warp, 2L, knots)$value, (1 - share) * knots + share * scores[at_knots], tolerance = 1e-12)
    expect_true(all(diff(warp$to) > 0)) # increasing
    expect_equal(warp$at[1:4, 1], 1:4)
    expect_equal(unique(diff(warp$at[-(1:3), 1])), 1) # the last line continues
    expect_equal(diff(warp$to[-(1:3), 1]), rep(warp$to[4, 1] - warp$to[3, 1], warp_knots - 4L), tolerance = 1e-12)
  }
})

skewed_rows <- function(n) {
  with_seed(3, {
    d <- data.frame(a = exp(2 * stats::rnorm(n)), b = stats::rnorm(n), f = factor(sample(3, n, TRUE)))
    transform(d, y = factor(stats::rbinom(n, 1, stats::plogis(2 * log(a)))))
  })
}

test_that("two classes with skewed inputs have a warp to normal scores, which predicts better and is kept in files", {
  d <- skewed_rows(120)
  fit <- pfdtc(y ~ ., d)
  expect_match(fit$kernels$kernel[fit$kernels$chosen], "warped inputs)", fixed = TRUE)
  expect_identical(warp_of(fit$kernel)$inputs, 1:2) # not the levels of f
  expect_output(print(fit), "normal score")
  plain <- pfdtc(y ~ ., d, plain = TRUE)
  expect_null(warp_of(plain$kernel))
  new <- skewed_rows(400)[121:400, ]
  nlpd <- function(fit) -mean(predict(fit, new, type = "density"))
  expect_lt(nlpd(fit), nlpd(plain))
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  saveRDS(fit, file)
  expect_identical(predict(readRDS(file), new[1:3, ], type = "response"), predict(fit, new[1:3, ], type = "response"))
  again <- pfdtc(y ~ ., d, kernel = fit$kernel, hyper = "fixed")
  expect_equal(predict(again, new, type = "response"), predict(fit, new, type = "response"), tolerance = 0.02)
  damaged <- fit
  damaged$kernel <- change_leaves(fit$kernel, function(leaf) {
    leaf$warp$at[2L, 1L] <- leaf$warp$at[1L, 1L]
    leaf
  })
  expect_error(predict(damaged, new), class = "pfdtc_error_input")
})

test_that("three classes on a logarithmic scale have warped inputs, which predict better than inputs as given", {
  only_nightly()
  made <- with_seed(2, {
    d <- data.frame(a = exp(2 * stats::rnorm(300)), b = stats::rnorm(300))
    transform(d, y = cut(log(a) + stats::rnorm(300, sd = 0.5), c(-Inf, -1, 1, Inf), labels = c("low", "mid", "high"),
                         ordered_result = FALSE))
  })
  fit <- pfdtc(y ~ ., made[1:100, ])
  expect_identical(warp_of(fit$kernel)$inputs, 1:2)
  raw <- pfdtc(y ~ ., made[1:100, ], plain = TRUE)
  expect_gt(as.numeric(logLik(fit)), as.numeric(logLik(raw)))
  density <- function(fit) mean(predict(fit, made[101:300, ], type = "density"))
  expect_gt(density(fit), density(raw))
  # All rows are inducing points, so only rounding separates the bounds of the exact posterior.
  bounds <- certify(fit, made[101:120, ])
  expect_true(all(bounds$response_lower <= bounds$response & bounds$response <= bounds$response_upper))
  expect_lt(max(bounds$response_upper - bounds$response_lower), 1e-3)
})

test_that("the table of kernels tried has a chosen kernel of warped inputs without a linear mean", {
  d <- data.frame(x = 1:80 / 10)
  d$y <- with_seed(1, stats::runif(80) > 0.3)
  fit <- pfdtc(y ~ x, d, family = binomial())
  expect_match(fit$kernel$label, "[(]warped inputs[)]$")
  expect_identical(fit$kernels$kernel[fit$kernels$chosen], fit$kernel$label)
  expect_match(with(report(fit)$table, value[what == "Inputs"]), "warped input is replaced by .* normal score")
})

test_that("inputs are warped only for classes with one trial, open kernels and few rows", {
  x <- as.matrix(kernel_rows(40))
  rows <- list(x = x, sites = list(y = rep(0:1, 20)))
  open <- replace(place_kernel(kernel_se(), x), "profile", list(NULL))
  s <- list(likelihood = as_likelihood(binomial()), kernel = open, additive = TRUE)
  expect_identical(inputs_to_warp(rows, s), 1:3) # not the 0/1 columns
  expect_length(inputs_to_warp(rows, replace(s, "additive", FALSE)), 0L)
  expect_length(inputs_to_warp(rows, replace(s, "likelihood", list(as_likelihood(poisson())))), 0L)
  expect_identical(inputs_to_warp(rows, replace(s, "likelihood", list(as_likelihood(multinomial())))), 1:3)
  for (given in list(place_kernel(kernel_se(), x), replace(open, "lengthscale", list(1)))) {
    expect_length(inputs_to_warp(rows, replace(s, "kernel", list(given))), 0L)
  }
  rows$sites$size <- rep(2, 40)
  expect_length(inputs_to_warp(rows, s), 0L)
  many <- list(x = kernel_rows(601), sites = list(y = rep(0, 601)))
  expect_length(inputs_to_warp(many, s), 0L)
})

test_that("if half warped inputs were tried, summary() explains them", {
  shown <- summary(gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed"))
  shown$kernels <- data.frame(kernel = paste0("squared exponential", c("", " (warped inputs)")), score = 1:2,
                              se = NA_real_, parameters = 3L, chosen = c(TRUE, FALSE))
  printed <- function() gsub("\\s+", " ", paste(utils::capture.output(print(shown)), collapse = " "))
  expect_no_match(printed(), "half")
  shown$kernels$kernel[2] <- "squared exponential (half warped inputs)"
  expect_match(printed(), "A half warped input is the average of the input and its warped value.", fixed = TRUE)
})
