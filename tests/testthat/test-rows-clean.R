test_that("the matrix method centres and scales y, leaves x unchanged and stores the centre and scale", {
  d <- small_data()
  x <- as.matrix(d[c("a", "b")])
  data <- data_from_matrix(x, d$y)
  expect_s3_class(data, "pfdtc_data")
  expect_identical(data$x, bare_rows(x))
  expect_equal(data$y, as.vector(scale(d$y)))
  expect_equal(data$center, mean(d$y))
  expect_equal(data$scale, stats::sd(d$y))
  expect_equal(data$sd_y, stats::sd(d$y))
  expect_null(data$weights)
  expect_null(data$group)
  expect_identical(data$n, 12L)
  raw <- data_from_matrix(unname(x), d$y, center = FALSE, scale = FALSE)
  expect_identical(raw$y, d$y)
  expect_identical(c(raw$center, raw$scale), c(0, 1))
  expect_identical(colnames(raw$x), c("x1", "x2"))
})

test_that("inputs may be vectors, data frames or one-column matrices, also with a constant column", {
  d <- small_data()
  expect_identical(data_from_matrix(d$a, cbind(d$y))$x, cbind(x1 = d$a))
  data <- data_from_matrix(cbind(d[c("a", "l")], k = 7), d$y)
  expect_identical(data$x[, "l"], as.double(d$l))
  expect_identical(colnames(data_from_matrix(unname(cbind(q = d$a, d$b)), d$y)$x), c("x1", "x2"))
  twice <- structure(cbind(d$a, d$b), dimnames = list(NULL, c("q", "q")))
  expect_identical(colnames(data_from_matrix(twice, d$y)$x), c("q", "q.1"))
})

test_that("a message about constant inputs is true for numbers and for factors, whose other levels are refused", {
  d <- data.frame(cars, g = factor("a"), k = 2)
  quick <- function(formula) pfdtc(formula, d, kernel = kernel_se(6, 2), noise = 0.1, hyper = "fixed")
  expect_message(fit <- quick(dist ~ speed + g), "^`g` is constant, so its effect cannot be learned.\n$",
                 class = "pfdtc_message_constant")
  expect_error(predict(fit, data.frame(speed = 5, g = "b")), "which the fit does not have", class = "pfdtc_error_input")
  expect_message(quick(dist ~ speed + g + k), "^`g` and `k` are constant, so their effects cannot be learned.\n$",
                 class = "pfdtc_message_constant")
})

test_that("weights are precisions, which weight the centre and sd, and a weight of 0 drops the row", {
  d <- small_data()
  w <- c(0, d$g[-1])
  x <- as.matrix(d[c("a", "b")])
  data <- data_from_matrix(x, d$y, weights = w, offset = d$b)
  r <- (d$y - d$b)[-1]
  center <- stats::weighted.mean(r, w[-1])
  sd <- sqrt(sum(w[-1] * (r - center)^2) / sum(w) * 11 / 10)
  expect_equal(data$center, center)
  expect_equal(data$scale, sd)
  expect_equal(data$y, (r - center) / sd)
  expect_identical(data$weights, w[-1])
  expect_identical(data$n, 11L)
  expect_identical(data$prior_weights, w)
  expect_identical(data$response, d$y)
  all_rows <- training_inputs(data)
  expect_identical(unname(all_rows$x[all_rows$index, ]), unname(x))
  expect_null(data_from_matrix(x, d$y, weights = rep(1, 12))$weights)
  expect_equal(data_from_matrix(x, d$y, weights = 5 * w, offset = d$b)$scale, data$scale)
})

test_that("equal rows are merged exactly when that saves a tenth of the rows", {
  x <- matrix(stats::rnorm(40), 20, 2)
  y <- stats::rnorm(20)
  expect_null(data_from_matrix(x, y)$group)
  one <- x
  one[7, ] <- x[3, ]
  expect_null(data_from_matrix(one, y)$group)
  two <- one
  two[20, ] <- x[3, ]
  data <- data_from_matrix(two, y, center = FALSE, scale = FALSE)
  expect_identical(data$group, c(1:6, 3L, 7:18, 3L))
  expect_identical(unname(data$x), two[-c(7, 20), ])
  expect_equal(data$weights, c(1, 1, 3, rep(1, 15)))
  expect_equal(data$y[3], mean(y[c(3, 7, 20)]))
  expect_identical(data$y[-3], y[-c(3, 7, 20)])
  expect_equal(data$shift$ss, 2 * stats::var(y[c(3, 7, 20)]))
  expect_identical(data$shift$rows, 2L)
  expect_null(data_from_matrix(two, y, merge = FALSE)$group)
})

test_that("rows are equal if all their numbers are equal to the last bit, and 0 equals -0", {
  x <- rbind(c(0, 1), c(-0, 1), c(0, 1 + 2^-52), c(2^-1074, 1), c(0, 1), c(1e300, -1e300))
  expect_identical(equal_rows(x), c(1L, 1L, 2L, 3L, 1L, 4L))
  expect_null(equal_rows(x, most = 3))
  for (columns in c(3, 6, 7)) { # first every combination, then few of them, then one column without ties
    x <- matrix(sample(0:2, 100 * columns, TRUE) + 0, 100)
    if (columns == 7) x[, 5] <- c(1:98, 1, 1)
    key <- apply(x, 1, paste, collapse = " ")
    expect_identical(equal_rows(x), match(key, unique(key)))
  }
})

test_that("shift turns the log density of the cleaned y into that of y as given", {
  kernel <- ref_kernel("se", c(1, 2), 1.3)
  noise <- 0.4                                                   # the noise variance of the scaled y
  log_normal <- function(y, s) {
    -0.5 * (length(y) * log(2 * pi) + determinant(s)$modulus[1] + sum(y * solve(s, y)))
  }
  for (weighted in c(FALSE, TRUE)) for (repeats in c(FALSE, TRUE)) for (scale in c(FALSE, TRUE)) {
    d <- small_data()
    x <- as.matrix(d[c("a", "b")])
    if (repeats) x[7:12, ] <- x[c(1, 2, 1, 3, 3, 1), ]
    w <- if (weighted) c(d$g[1:10], 0, 2)
    data <- data_from_matrix(x, d$y, weights = w, offset = d$b, scale = scale)
    expect_identical(is.null(data$group), !repeats)
    # The engine's density is sqrt(W_g) y_g ~ N(0, W^{1/2} K W^{1/2} + s2 I).
    root <- sqrt(if (is.null(data$weights)) rep(1, nrow(data$x)) else data$weights)
    here <- log_normal(root * data$y,
                       outer(root, root) * ref_k(kernel, data$x) + diag(noise, length(root)))
    s <- data$shift
    given <- here + s$constant - s$rows / 2 * log(2 * pi * noise) - s$ss / (2 * noise)
    used <- if (weighted) w > 0 else rep(TRUE, 12)
    precision <- if (weighted) w[used] else rep(1, 12)
    direct <- log_normal((d$y - d$b - data$center)[used], data$scale^2 *
                           (ref_k(kernel, x[used, ]) + diag(noise / precision)))
    expect_equal(given, direct, tolerance = 1e-10)
  }
})

test_that("merged rows have the posterior of the rows themselves", {
  d <- small_data()
  x <- as.matrix(d[c("a", "b")])
  x[7:12, ] <- x[c(1, 2, 1, 3, 3, 1), ]
  kernel <- ref_kernel("matern32", c(1, 2), 1.3)
  apart <- data_from_matrix(x, d$y, weights = d$g, merge = FALSE)
  merged <- data_from_matrix(x, d$y, weights = d$g)
  at <- x[1:4, ] + 0.1
  gp <- lapply(list(apart, merged), function(p) ref_exact(p$x, p$y, kernel, 0.3, p$weights))
  expect_equal(gp[[2]]$mean(at), gp[[1]]$mean(at), tolerance = 1e-10)
  expect_equal(gp[[2]]$cov(at, at), gp[[1]]$cov(at, at), tolerance = 1e-10)
})

test_that("the caller's inputs are not changed", {
  d <- small_data()
  before <- serialize(d, NULL)
  x <- as.matrix(d[c("a", "b")])
  x_before <- serialize(x, NULL)
  data_from_matrix(x, d$y, weights = d$g)
  by_formula(y ~ a + f, d, weights = g)
  expect_identical(serialize(d, NULL), before)
  expect_identical(serialize(x, NULL), x_before)
})

test_that("the matrix method refuses bad input, naming the argument", {
  d <- small_data()
  x <- as.matrix(d[c("a", "b")])
  expect_input_error(data_from_matrix(y = d$y), "`x`")
  expect_input_error(data_from_matrix(x), "`y`")
  expect_input_error(data_from_matrix(x[0, ], d$y[0]), "`x`")
  expect_input_error(data_from_matrix(x[, 0], d$y), "`x`")
  expect_input_error(data_from_matrix(x, d$y[-1]), "`y`")
  expect_input_error(data_from_matrix(replace(x, 15, NA), d$y), "row 3")
  expect_input_error(data_from_matrix(x, replace(d$y, 4, NaN)), "NaN")
  expect_input_error(data_from_matrix(x, replace(d$y, 4, -Inf)), "-Inf")
  expect_input_error(data_from_matrix(x, d$l), "`y`")
  expect_input_error(data_from_matrix(x, d$f), "`y`")
  expect_input_error(data_from_matrix(x, cbind(d$y, d$y)), "`y`")
  expect_input_error(data_from_matrix(x, d$y, weights = -d$g), "`weights`")
  expect_input_error(data_from_matrix(x, d$y, weights = replace(d$g, 2, NA)), "`weights`")
  expect_input_error(data_from_matrix(x, d$y, weights = 0 * d$g), "`weights`")
  expect_input_error(data_from_matrix(x, d$y, weights = 1), "`weights`")
  expect_input_error(data_from_matrix(x, d$y, offset = 1:3), "`offset`")
  expect_input_error(data_from_matrix(x, d$y, center = NA), "`center`")
  expect_input_error(data_from_matrix(x, d$y, scale = 2), "`scale`")
  huge <- 1e308 * rep(c(-1, 1), 6)
  expect_input_error(data_from_matrix(x, huge, offset = -huge), "`y`")
  expect_input_error(data_from_matrix(x, d$y, weights = rep(1e308, 12)), "`weights`")
})

test_that("one row and constant y are refused only where y is scaled", {
  expect_input_error(data_from_matrix(1, 1), "scale")
  expect_input_error(data_from_matrix(1:9, rep(0.1, 9)), "scale")
  expect_input_error(data_from_matrix(1:9, 0.1 + 1:9, offset = 1:9), "scale")
  expect_identical(data_from_matrix(1, 3, scale = FALSE)$y, 0)
  expect_identical(data_from_matrix(1:9, rep(3, 9), scale = FALSE)$y, numeric(9))
  expect_equal(data_from_matrix(1:2, 1e8 + c(0, 1))$y, c(-1, 1) / sqrt(2))
})

test_that("names of the rows are kept with the response", {
  expect_identical(names(data_from_matrix(cbind(c(u = 1, v = 2)), 1:2)$response), c("u", "v"))
  expect_identical(names(data_from_matrix(1:2, c(u = 1, v = 2))$response), c("u", "v"))
  expect_null(names(data_from_matrix(data.frame(a = 1:2), 1:2)$response))
  expect_identical(names(by_formula(dist ~ speed, cars[3:9, ])$response), as.character(3:9))
})

test_that("new rows for a matrix fit are matched by name if both sides have names, else by position", {
  d <- small_data()
  x <- as.matrix(d[c("a", "b")])
  named <- fit_of(data_from_matrix(x, d$y))
  bare <- fit_of(data_from_matrix(unname(x), d$y))
  new <- function(fit, newdata, ...) unname(new_inputs(fit, newdata, ...)$x)
  plain <- unname(x)
  expect_identical(new(named, x), plain)
  expect_identical(colnames(new_inputs(bare, x)$x), c("x1", "x2"))
  expect_identical(new(named, x[, 2:1]), plain)
  expect_identical(new(named, d), plain)
  expect_identical(new(named, plain), plain)
  expect_identical(new(bare, x[, 2:1]), plain[, 2:1])
  expect_identical(new(named, c(b = 2, a = 1)), rbind(c(1, 2)))
  expect_identical(new(bare, c(1, 2)), rbind(c(1, 2)))
  expect_identical(new(fit_of(data_from_matrix(d$a, d$y)), 1:3), cbind(c(1, 2, 3)))
  expect_identical(new(named, x[0, ]), plain[0, ])
  expect_identical(new_inputs(named, d)$offset, 0)
  expect_identical(new_inputs(named, rbind(q = x[3, ]))$row_names, "q")
  expect_input_error(new(named, d["a"]), "`b`")
  expect_input_error(new(named, c(1, 2, 3)), "newdata")
  expect_input_error(new(bare, d[c("a", "b", "g")]), "newdata")
  expect_input_error(new(named, NULL), "`newdata`")
  expect_input_error(new(named, transform(d, a = "u")), "`a`")
  expect_input_error(new(named, replace(x, 2, Inf)), "row 2")
})

test_that("rows of newdata with missing values follow na.action", {
  d <- small_data()[1:4, ]
  d$a[2] <- NA
  for (fit in list(fit_of(data_from_matrix(small_data()[c("a", "b")], small_data()$y)),
                   fit_of(by_formula(y ~ a + b, small_data())))) {
    pass <- new_inputs(fit, d, stats::na.pass)
    expect_identical(pass$keep, c(TRUE, FALSE, TRUE, TRUE))
    expect_identical(unname(pass$x), unname(as.matrix(d[-2, c("a", "b")])))
    for (drop in list(stats::na.omit, stats::na.exclude, "na.omit")) {
      omit <- new_inputs(fit, d, drop)
      expect_identical(omit$keep, c(TRUE, TRUE, TRUE))
      expect_identical(omit$x, pass$x)
    }
    expect_input_error(new_inputs(fit, d, stats::na.fail), "row 2")
    expect_identical(new_inputs(fit, transform(d, a = NA))$keep, rep(FALSE, 4))
    expect_identical(new_inputs(fit, d[0, ])$keep, logical(0))
  }
  expect_identical(pass$row_names, as.character(1:4))
  expect_identical(omit$row_names, c("1", "3", "4"))
})

test_that("a response of any size that is not scaled has the fit and certificates of a response of moderate size", {
  d <- smooth_data(60)
  fitted_at <- function(unit) {
    given <- list(x = d$x, y = unit * d$y, kernel = kernel_se(c(0.9, 1.6), 1.7 * unit^2), noise = 0.3 * unit^2,
                  hyper = "fixed", center = FALSE, scale = FALSE, control = pfdtc_control(maxit = 5, progress = FALSE))
    fit <- do.call(pfdtc, c(given, list(inducing = d$z)))
    fit$reference <- with_seed(1, reference(fit, m2 = 20))
    exact <- do.call(gp_exact, given)
    mean_of <- predict(exact, d$new, se.fit = TRUE)
    certificate <- with_seed(2, certify(fit, d$new))
    fine <- with_seed(3, refine(fit, d$new, 1e-6))
    inside <- function(lower, v, upper) all(lower <= v & v <= upper)
    expect_true(inside(certificate$mean_lower, mean_of$fit, certificate$mean_upper), label = paste("mean at", unit))
    expect_true(inside(certificate$sd_lower, mean_of$se.fit, certificate$sd_upper), label = paste("sd at", unit))
    # The exact fit itself errs by some 1e3 eps here.
    expect_true(all(abs(fine$mean - mean_of$fit) <= fine$mean_error + 1e-12 * unit), label = paste("refine at", unit))
    bracket <- evidence_bounds(fit)
    expect_true(inside(bracket[[1]], exact$evidence, bracket[[2]]), label = paste("evidence at", unit))
    list(as.matrix(certificate) / unit, fine$mean / unit, exact$evidence + 60 * log(unit), pf_divergence(fit, exact))
  }
  plain <- fitted_at(1)
  for (power in c(-450, -266, -140, 140, 266, 450)) { # powers of 2 leave all digits the same
    expect_equal(fitted_at(2^power), plain, tolerance = 1e-10, label = paste("2 to the power of", power))
  }
  expect_identical(data_from_matrix(d$x, d$y, scale = FALSE)$scale, 1)
})

test_that("variances too large or too small relative to the response are refused", {
  d <- smooth_data(20)
  for (unit in c(1e-40, 1e40)) {
    fit_at <- function(variance, noise, scale) {
      gp_dtc(d$x, unit * d$y, m = 4, kernel = kernel_se(1, variance), noise = noise, hyper = "fixed", scale = scale)
    }
    for (scale in c(TRUE, FALSE)) {
      expect_input_error(fit_at(1, unit^2, scale), "kernel")
      expect_input_error(fit_at(unit^2, 1, scale), "noise")
      expect_true(all(is.finite(fitted(fit_at(unit^2, unit^2, scale)))))
    }
  }
})

test_that("ordered classes without rows are dropped for a matrix, too", {
  k <- factor(rep(c("low", "high"), 10), c("none", "low", "middle", "high"), ordered = TRUE)
  fit <- pfdtc(matrix(1:20 / 4), k, family = ordinal(), kernel = kernel_se(1, 1), hyper = "fixed")
  expect_identical(colnames(predict(fit, matrix(1), type = "response")), c("low", "high"))
})

test_that("a given kernel is in units of f beside a family, also for responses of 1e-12 and 1e12", {
  d <- with_seed(1, data.frame(x = seq(0, 3, length.out = 20), y = exp(stats::rnorm(20, sin(1:20)))))
  at <- function(unit, family, variance) {
    fit <- pfdtc(y ~ x, transform(d, y = y * unit), family = family, kernel = kernel_se(1, variance), hyper = "fixed")
    fit <- drop_rows(add_rows(fit, data.frame(x = 5, y = unit)), 21)
    c(predict(fit, data.frame(x = 1:2), type = "response"), sqrt(coef(fit)[["variance"]]))
  }
  gamma <- replace(Gamma("log"), "theta", 2)
  for (unit in c(1e-12, 1e12)) {
    expect_equal(at(unit, gamma, 1), at(1, gamma, 1) * c(unit, unit, 1), tolerance = 1e-6)
    expect_equal(at(unit, student(4, unit), unit^2), at(1, student(4, 1), 1) * unit, tolerance = 1e-6)
  }
})

test_that("summaries of columns in a formula keep their values at new rows", {
  set.seed(2)
  d <- data.frame(x = runif(40, 3, 9), z = rnorm(40), g = rep_len(c("b", "a"), 40))
  d$y <- sin(d$x) + 0.1 * rnorm(40)
  fixed <- function(formula, data = d, ...) {
    pfdtc(formula, data, hyper = "fixed", kernel = kernel_se(1, 1), noise = 0.1, ...)
  }
  own <- transform(d, centred = x - mean(x))
  expect_equal(predict(fixed(y ~ I(x - mean(x))), d[1:3, ]), predict(fixed(y ~ centred, own), own[1:3, ]))
  for (formula in c(y ~ I(x - x[1]), y ~ x + offset(z - mean(z)), y ~ I(x / max(x, na.rm = TRUE)), I(y - mean(y)) ~ x,
                    log(y + 2) ~ factor(g, levels = unique(g)),
                    y ~ as.integer(cut(x, quantile(x, 0:4 / 4), include.lowest = TRUE)))) {
    expect_no_message(fit <- fixed(formula))
    expect_equal(predict(fit, d[3:5, ]), predict(fit, d)[3:5])
  }
  fit <- pfdtc(y ~ x, d, offset = z - mean(z), hyper = "fixed", kernel = kernel_se(1, 1), noise = 0.1)
  expect_equal(predict(fit, d[3:5, ]), predict(fit, d)[3:5])
  some <- fixed(y ~ I(x - mean(x)), subset = x > 4) # as in lm(), mean(x) is that of all rows of `data`
  expect_equal(predict(some, d[3:5, ]), predict(fixed(y ~ centred, own, subset = x > 4), own[3:5, ]))
  fit <- fixed(y ~ I(x - mean(x)))
  more <- add_rows(fixed(y ~ centred, own), own[1:9, ])
  expect_equal(predict(add_rows(fit, d[1:9, ]), d[3:5, ]), predict(more, own[3:5, ]))
  for (data in list(d, as.list(d))) {
    fit <- pfdtc(y ~ x, data, offset = z - mean(z), hyper = "fixed", kernel = kernel_se(1, 1), noise = 0.1)
    expect_equal(predict(fit, d[3:5, ]), predict(fit)[3:5])
  }
  own$level <- d$z - mean(d$z)
  given <- pfdtc(y ~ x, own, offset = level, hyper = "fixed", kernel = kernel_se(1, 1), noise = 0.1)
  fit <- pfdtc(y ~ x, d, offset = z - mean(z), hyper = "fixed", kernel = kernel_se(1, 1), noise = 0.1)
  expect_equal(predict(add_rows(fit, d[1:9, ]), d[3:5, ]), predict(add_rows(given, own[1:9, ]), own[3:5, ]))
  for (formula in c(y ~ apply(rbind(x, z), 2, max), y ~ matrix(c(x, z), ncol = 2))) {
    expect_identical(attr(fixed(formula)$terms, "predvars")[[3L]], formula[[3L]])
  }
  d$x[7] <- NA
  fit <- fixed(y ~ I(x - mean(x, na.rm = TRUE)))
  expect_equal(predict(fit, d[3:5, ]), predict(fit, d)[3:5])
})

test_that("summaries of columns are refused in a row source, which is read block by block", {
  d <- data.frame(x = (1:20 * 7) %% 20 / 20, y = 1 + (1:20 * 3) %% 20)
  file <- withr::local_tempfile(fileext = ".csv")
  utils::write.csv(d, file, row.names = FALSE)
  from_file <- function(formula, ...) {
    eval(bquote(pfdtc(.(formula), data = rows_csv(file, block = 10), hyper = "fixed", kernel = kernel_se(1, 1),
                      noise = 0.1, m = 2, ..(as.list(substitute(list(...)))[-1L])), splice = TRUE))
  }
  refused <- function(...) expect_error(from_file(...), "depends on all rows", class = "pfdtc_error_input")
  for (formula in c(y ~ I(x - mean(x)), y ~ x + cut(x, quantile(x)), y ~ scale(x), scale(y) ~ x,
                    y ~ x + offset(x / max(x)), y ~ rank(x), y ~ I(scale(x)), y ~ ave(x), y ~ cut(x, 3),
                    cumsum(y) ~ x)) refused(formula)
  refused(y ~ x, weights = y / mean(y))
  refused(y ~ x, subset = rank(x) > 2)
  refused(y ~ x, offset = y - mean(y))
  refused(y ~ x, subset = x >= median(x))
  expect_no_error(from_file(log(y) ~ exp(x) + factor(x > 0.4), weights = 1 + y, offset = 0 * y, subset = x > 0.1))
})

test_that("a variable that is not found is looked for in the argument that needs it", {
  refused <- function(argument, ...) {
    expect_identical(expect_error(pfdtc(...), "speeed", class = "pfdtc_error_input")$argument, argument)
  }
  refused("weights", dist ~ speed, cars, weights = speeed)
  refused("offset", dist ~ speed, cars, offset = speeed)
  refused("subset", dist ~ speed, cars, subset = speeed > 5)
  refused("formula", dist ~ speeed, cars, weights = speeed)
})

test_that("a fit does not depend on the user's kind of generator, which stays; a given seed uses this kind", {
  kinds <- RNGkind()
  on.exit(suppressWarnings(do.call(RNGkind, as.list(kinds))))
  draws <- function() c(runif(1), rnorm(1), sample(1e6, 1))
  d <- with_seed(2, data.frame(x = runif(60), z = rnorm(60), g = sample(letters[1:6], 60, TRUE), e = rnorm(60) / 10))
  d$y <- exp(sin(6 * d$x) + (d$g == "a") + d$e)
  # The choice of the transform scores rows in a random order.
  fit <- function() coef(with_options(list(pfdtc.transform = "auto"), pfdtc(y ~ x + z + g, d)))
  fixed <- with_fixed_seed(draws())
  given <- from_seed(1, draws())
  usual <- fit()
  suppressWarnings(RNGkind("Wichmann-Hill", "Box-Muller", "Rounding"))
  expect_identical(with_fixed_seed(draws()), fixed)
  expect_identical(fit(), usual)
  expect_identical(RNGkind(), c("Wichmann-Hill", "Box-Muller", "Rounding"))
  expect_false(identical(as.vector(from_seed(1, draws())), as.vector(given)))
})
