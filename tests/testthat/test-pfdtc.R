# These six rows have known results, and these arguments make a fit of them fast.
x6 <- matrix(c(1, 2, 3, 4, 5, 6, 2, 1, 4, 3, 6, 5), 6)
y6 <- c(1, 3, 2, 5, 4, 6)

fit6 <- function(x = x6, y = y6, ..., kernel = kernel_se(2, 3), noise = 1, hyper = "fixed",
                 control = pfdtc_control(maxit = 2, progress = FALSE)) {
  pfdtc(x, y, ..., kernel = kernel, noise = noise, hyper = hyper, control = control)
}

test_that("the formula method gives the numbers of the matrix method", {
  data <- small_data(30)
  # The noise is given and fixed, so that only the other hyperparameters are learned.
  args <- list(m = 6, noise = 1, control = pfdtc_control(fix = "noise", maxit = 5, progress = FALSE))
  w <- rep(c(1, 2, 0.5), 10)
  o <- seq(0, 3, length.out = 30)
  by_matrix <- with_seed(1, do.call(pfdtc, c(list(data[c("a", "b", "l")], data$y, weights = w, offset = o), args)))
  by_formula <- with_seed(1, pfdtc(y ~ a + b + l, data, weights = w, offset = o, m = 6, noise = 1,
                                    control = args$control))
  expect_identical(coef(by_formula), coef(by_matrix))
  expect_identical(by_formula$inducing, by_matrix$inducing)
  expect_identical(by_formula$trace$objective, by_matrix$trace$objective)
  expect_identical(by_formula$evidence, by_matrix$evidence)
  expect_equal(unname(fitted(by_formula)), unname(fitted(by_matrix)), tolerance = 1e-14)
  # An intercept in the formula has no effect.
  bare <- with_seed(1, pfdtc(y ~ a + b + l - 1, data, weights = w, offset = o, m = 6, noise = 1,
                              control = args$control))
  expect_identical(coef(bare), coef(by_formula))
})

test_that("a factor is a 0/1 column for every level", {
  data <- small_data(30)
  fit <- function(...) {
    f <- pfdtc(..., m = 6, kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed", aux = aux_sor(rows = 1:5),
               control = fixed_control())
    list(f$inducing, unname(fitted(f)), f$evidence)
  }
  columns <- cbind(a = data$a, fu = data$f == "u", fv = data$f == "v", fw = data$f == "w")
  expect_equal(fit(y ~ a + f, data), fit(columns, data$y), tolerance = 1e-12)
  data$f <- as.character(data$f)
  expect_equal(fit(y ~ a + f, data), fit(columns, data$y), tolerance = 1e-12)
})

test_that("matrices, data frames, integers and vectors are the same inputs", {
  plain <- predict(fit6())
  expect_identical(unname(predict(fit6(as.data.frame(x6)))), plain)
  whole <- x6
  storage.mode(whole) <- "integer"
  expect_identical(predict(fit6(whole, as.integer(y6))), plain)
  expect_identical(predict(fit6(y = cbind(y6))), plain)
  expect_identical(predict(fit6(x6[, 1])), predict(fit6(x6[, 1, drop = FALSE])))
})

test_that("values that are not finite are refused, with their place", {
  for (bad in c(NaN, NA, Inf, -Inf)) {
    expect_input_error(fit6(replace(x6, 9, bad)), "row 3")
    expect_input_error(fit6(y = replace(y6, 2, bad)), "`y`")
    expect_input_error(fit6(weights = replace(rep(1, 6), 4, bad)), "`weights`")
    expect_input_error(fit6(offset = replace(rep(1, 6), 4, bad)), "`offset`")
    expect_input_error(fit6(inducing = replace(x6, 9, bad)), "`inducing`")
    expect_input_error(fit6(noise = bad), "`noise`")
    if (!is.na(bad)) expect_input_error(pfdtc(y ~ a, data.frame(y = y6, a = replace(y6, 2, bad))), "`a`")
  }
  expect_identical(nobs(pfdtc(y ~ a, data.frame(y = y6, a = replace(y6, 2, NA)), hyper = "fixed", noise = 1,
                              kernel = kernel_se(1, 1))), 5L)
  expect_input_error(pfdtc(y ~ a, data.frame(y = y6, a = replace(y6, 2, NA)), na.action = na.fail), "na.action")
  expect_input_error(pfdtc(y ~ a, data.frame(y = y6, a = replace(y6, 2, NA)), na.action = na.pass), "`a`")
})

test_that("data of the wrong shape or kind are refused", {
  expect_input_error(fit6(y = y6[-1]), "`y`")
  expect_input_error(fit6(weights = 1:3), "`weights`")
  expect_input_error(fit6(weights = c(-1, rep(1, 5))), "`weights`")
  expect_input_error(fit6(weights = rep(0, 6)), "`weights`")
  expect_input_error(fit6(offset = 1:2), "`offset`")
  expect_input_error(fit6(x6[0, ], numeric()), "`x`")
  expect_input_error(fit6(x6[, 0]), "`x`")
  expect_input_error(pfdtc(y ~ a, data.frame(y = y6, a = y6)[0, ]), "`data`")
  for (x in list(matrix("a", 6, 2), list(1, 2), letters, factor(letters[1:6]), NULL, mean, Sys.Date() + 1:6)) {
    expect_input_error(fit6(x), "`x`")
  }
  for (y in list(letters[1:6], factor(y6), y6 > 2, cbind(y6, y6), list(1), NULL, Sys.Date() + 1:6)) {
    expect_input_error(fit6(y = y), "`y`")
  }
  expect_input_error(pfdtc(x6), "`y`")
  expect_input_error(pfdtc(y = y6), "`x`")
  expect_input_error(pfdtc(), "`x`")
  expect_input_error(pfdtc(y ~ d, data.frame(y = y6, d = complex(6))), "`d`")
  expect_input_error(pfdtc(y ~ a * b, small_data()), "`a:b`")
  expect_input_error(pfdtc(y ~ 1, small_data()), "`formula`")
})

test_that("new rows with wrong columns, names or levels are refused", {
  fit <- fit6()
  expect_input_error(predict(fit, x6[, 1, drop = FALSE]), "newdata")
  expect_input_error(predict(fit, matrix("a", 1, 2)), "`newdata`")
  named <- fit6(cbind(u = x6[, 1], v = x6[, 2]))
  expect_input_error(predict(named, cbind(u = 1, w = 2)), "`v`")
  mixed <- fit_mixed(y ~ a + f)
  expect_input_error(predict(mixed, data.frame(a = 1, f = "new")), "\"new\"")
  expect_input_error(predict(mixed, data.frame(a = 1, f = "unused")), "\"unused\"")
  expect_input_error(predict(mixed, data.frame(a = 1)), "`f`")
  expect_input_error(predict(mixed, data.frame(a = "1", f = "u")), "`a`")
})

test_that("m is a whole number from 1 to the number of rows", {
  for (m in list(0, -1, 7, 2.5, NA, Inf, NaN, c(1, 2), "3", TRUE, numeric())) expect_input_error(fit6(m = m), "`m`")
  expect_input_error(fit6(m = 7), "`m`")
  for (m in c(1, 6)) expect_identical(fit6(m = m)$m_asked, as.integer(m))
  expect_input_error(fit6(m = 3, inducing = x6), "`m`")
  expect_identical(fit6(m = 6, inducing = x6)$m, 6L)
})

test_that("kernel and noise are positive, of the right length and, where fixed, complete", {
  expect_input_error(fit6(kernel = kernel_se(0, 1)), "`lengthscale`")
  expect_input_error(fit6(kernel = kernel_se(c(1, -1), 1)), "`lengthscale`")
  expect_input_error(fit6(kernel = kernel_se(1, 0)), "`variance`")
  expect_input_error(fit6(kernel = kernel_matern(2)), "`nu`")
  expect_input_error(fit6(kernel = kernel_se(1:3, 1)), "lengthscale")
  for (noise in list(-1, c(1, 2), "a", NA, Inf, numeric(), TRUE)) expect_input_error(fit6(noise = noise), "`noise`")
  for (kernel in list(kernel_se, "se", NULL, 3)) expect_input_error(fit6(kernel = kernel), "`kernel`")
  for (kernel in list("se", 3)) {
    expect_input_error(pfdtc(dist ~ speed, cars[1:9, ], kernel = kernel, transform = "auto"), "`kernel`")
  }
  expect_identical(pfdtc(dist ~ speed, cars[1:9, ], kernel = kernel_se, transform = "auto")$kernel$profile, "se")
  expect_input_error(fit6(kernel = kernel_se(1, 1, inputs = "q")), "`q`")
  expect_input_error(fit6(kernel = kernel_se(1, 1, inputs = 3)), "3")
  expect_input_error(fit6(kernel = kernel_se(1, 1, inputs = integer())), "`inputs`")

  expect_input_error(fit6(kernel = kernel_se()), "lengthscale")
  expect_input_error(fit6(kernel = kernel_se(variance = 1)), "lengthscale")
  expect_input_error(fit6(kernel = kernel_se(1)), "variance")
  expect_input_error(fit6(noise = NULL), "noise")
  for (hyper in list("foo", NA, 1, c("pilot", "fixed"), NULL)) expect_input_error(fit6(hyper = hyper), "`hyper`")
})

test_that("auxiliary distributions and inducing points that do not suit the data are refused by name", {
  for (aux in list("sor", 3, TRUE, kernel_se())) expect_input_error(fit6(aux = aux), "`aux`")
  for (aux in list(aux_sor(7), aux_subset(99), aux_refresh(5, aux_sor(7)))) {
    expect_input_error(fit6(aux = aux), "`size`")
  }
  expect_input_error(fit6(aux = aux_sor(rows = 9)), "`rows`")
  expect_input_error(fit6(aux = aux_sor(rows = c(1, 1))), "`rows`")
  expect_input_error(fit6(aux = aux_sor(rows = 0)), "`rows`")
  expect_input_error(fit6(aux = aux_sor(rows = integer())), "`rows`")

  for (bad in list("best", c("greedy", "random"), NA, TRUE, x6[, 1, drop = FALSE], x6[0, ], list(1), mean)) {
    expect_input_error(fit6(inducing = bad), "`inducing`")
  }
  expect_input_error(fit6(inducing = fit6(x6[, 1])), "`inducing`")
  # The names differ from those of the data.
  expect_input_error(fit6(cbind(u = x6[, 1], v = x6[, 2]), inducing = cbind(u = 1:2, w = 3:4)), "`inducing`")
})

test_that("a data frame without its response is refused with the formula that fits it", {
  expect_input_error(pfdtc(mtcars), "pfdtc(mpg ~ ., mtcars)")
  expect_input_error(gp_exact(mtcars), "gp_exact(mpg ~ ., mtcars)")
  expect_input_error(pfdtc(mtcars, "hp"), "pfdtc(hp ~ ., mtcars)")
  expect_input_error(pfdtc(mtcars, hp ~ wt), "pfdtc(hp ~ wt, mtcars)")
  expect_input_error(pfdtc(mtcars[1:3]), "pfdtc(mpg ~ ., data)")
  expect_input_error(pfdtc(as.matrix(mtcars)), "`y`")
})

test_that("data may come first if the formula has its name, as with lm()", {
  usual <- pfdtc(mpg ~ wt, mtcars, kernel = kernel_se(2, 40), noise = 9, hyper = "fixed", weights = qsec)
  piped <- mtcars |> pfdtc(formula = mpg ~ wt, kernel = kernel_se(2, 40), noise = 9, hyper = "fixed", weights = qsec)
  expect_equal(piped[setdiff(names(piped), "seconds")], usual[setdiff(names(usual), "seconds")], ignore_attr = TRUE)
  expect_identical(deparse(piped$call$formula), "mpg ~ wt")
  inside <- function(d, fo) gp_exact(data = d, formula = fo, kernel = kernel_se(2, 40), noise = 9, hyper = "fixed")
  expect_identical(nobs(inside(mtcars, mpg ~ wt)), 32L)
  expect_input_error(mtcars |> pfdtc(formula = mpg ~ wt, wieghts = qsec), "`weights`")
})

test_that("an impossible noise and an unknown family raise errors that name what is possible", {
  for (bad in list(-1, "a", c(1, 2), NA, TRUE, Inf)) {
    expect_input_error(fit6(noise = bad), "formula")
    expect_input_error(fit6(noise = bad), "`noise`")
  }
  expect_input_error(pfdtc(x6, y6, family = "gausian"), "\"gaussian\"?")
  expect_input_error(pfdtc(x6, y6, family = "multinom"), "\"multinomial\"?")
  expect_input_error(pfdtc(x6, y6, family = "xyz"), "`family`")
})

test_that("flags and unknown arguments are refused, with the nearest known one", {
  for (name in c("center", "scale", "keep_data")) {
    for (bad in list(NA, 3, "yes", c(TRUE, FALSE))) {
      expect_input_error(do.call(fit6, stats::setNames(list(bad), name)), sprintf("`%s`", name))
    }
  }
  expect_input_error(pfdtc(x6, y6, nosie = 1), "`noise`")
  expect_input_error(pfdtc(y ~ a, small_data(), kernal = kernel_se()), "`kernel`")
  expect_input_error(pfdtc(y ~ a, small_data(), weigths = 1), "`weights`")
  expect_input_error(pfdtc(y ~ a, small_data(), 5))
  expect_input_error(pfdtc(y ~ a, small_data(), control = list(maxitt = 5)), "`control` has `maxitt`")
})

test_that("the start of \"fixed\" is \"fixed\", also with `like`", {
  fit <- pfdtc(y ~ a, small_data(), kernel = kernel_se(1, 1), noise = 0.1, hyper = "fix")
  expect_identical(fit$hyper, "fixed")
  expect_identical(pfdtc(y ~ a, small_data(), like = fit, hyper = "fix")$kernel, fit$kernel)
  expect_input_error(pfdtc(y ~ a, small_data(), like = fit, hyper = "evidence"), "hyper")
})

test_that("constant y and one row are refused only if something is to be learned or scaled", {
  expect_input_error(pfdtc(x6, rep(2, 6)), "`y`")
  expect_input_error(pfdtc(x6, rep(2, 6), scale = FALSE), "`y`")
  expect_input_error(fit6(y = rep(2, 6)), "`y`")
  expect_equal(predict(fit6(y = rep(2, 6), scale = FALSE)), rep(2, 6), tolerance = 1e-12)
  zero <- fit6(y = rep(2, 6), scale = FALSE, center = FALSE)
  expect_equal(predict(zero), ref_exact(x6, rep(2, 6), ref_kernel("se", c(2, 2), 3), 1)$mean(x6), tolerance = 1e-7)

  # The first error names everything that one row needs.
  for (needed in c("`y`", "kernel", "noise = 1", "hyper = \"fixed\"", "scale = FALSE")) {
    expect_input_error(pfdtc(1, 1), needed)
  }
  expect_input_error(pfdtc(1, 1, scale = FALSE), "`hyper`")
  expect_input_error(pfdtc(1, 1, scale = FALSE), "kernel = ")
  expect_input_error(fit6(1, 1), "`y`")
  one <- fit6(1, 5, scale = FALSE, center = FALSE)
  p <- predict(one, c(1, 3, 100), se.fit = TRUE)
  k <- 3 * exp(-c(0, 2, 99)^2 / 8)
  expect_equal(p$fit, k * 5 / 4, tolerance = 1e-10)
  expect_equal(p$se.fit, sqrt(3 - k^2 / 4), tolerance = 1e-10)
  expect_equal(one$evidence, dnorm(5, 0, 2, log = TRUE), tolerance = 1e-10)
  expect_equal(predict(fit6(1, 5, scale = FALSE), 1:2), c(5, 5))
})

test_that("a search that `max_seconds` ends gives a warning, and a constant response is refused at once", {
  expect_warning(fit <- pfdtc(dist ~ speed, cars, control = pfdtc_control(max_seconds = 0, progress = FALSE)),
                 "max_seconds", class = "pfdtc_warning_convergence")
  expect_identical(fit$convergence, 2L)
  expect_match(fit$message, "max_seconds")
  expect_warning(whole <- pfdtc(dist ~ speed, cars, control = pfdtc_control(progress = FALSE)), NA)
  expect_identical(whole$convergence, 0L)
  expect_error(pfdtc(y ~ x, data.frame(x = 1:20, y = 3)), "two different values", class = "pfdtc_error_input")
  expect_error(pfdtc(y ~ x, data.frame(x = 1:20, y = letters[1:20])), "20 different values.*multinomial\\(\\)",
               class = "pfdtc_error_input")
  expect_error(pfdtc(y ~ x, data.frame(x = 1:20, y = paste(1:20, "%"))), "gsub", class = "pfdtc_error_input")
  padded <- data.frame(x = 1:20, y = c("7 ", paste(2:20, "%")))
  expect_error(pfdtc(y ~ x, padded), "\"2 %\"", class = "pfdtc_error_input")
  nested <- data.frame(y = 1:20, x = I(data.frame(a = 1:20)))
  expect_error(pfdtc(y ~ x, nested), "nested data frame", class = "pfdtc_error_input")
})
