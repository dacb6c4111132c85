test_that("a formula's variables become columns, once each", {
  d <- small_data()
  data <- by_formula(y ~ a + f + l + log(b) - 1, d)
  expect_identical(colnames(data$x), c("a", "fu", "fv", "fw", "l", "log(b)"))
  expect_identical(unname(data$x),
                   cbind(d$a, d$f == "u", d$f == "v", d$f == "w", d$l, log(d$b)))
  variables <- placed_variables(data$frame)
  expect_identical(lapply(variables, `[[`, "columns"), list(1L, 2:4, 5L, 6L))
  expect_identical(vapply(variables, `[[`, "", "name"), c("a", "f", "l", "log(b)"))
  expect_identical(lapply(variables, `[[`, "levels"), list(NULL, c("u", "v", "w"), NULL, NULL))
  expect_identical(by_formula(y ~ a + a + b, d)$x, by_formula(y ~ b + a, d)$x[, 2:1])
  expect_identical(by_formula(y ~ . - l - f, d)$x, bare_rows(as.matrix(d[c("a", "b", "g")])))
  expect_equal(by_formula(y ~ as.character(f), d, merge = FALSE)$x, data$x[, 2:4],
               ignore_attr = TRUE)
})

test_that("an unknown function of survival times has an error with a hint", {
  expect_error(by_formula(Surv(a, b) ~ g, small_data()), "survival::Surv", fixed = TRUE, class = "pfdtc_error_input")
})

test_that("the formula method gives what the matrix method gives", {
  d <- small_data()
  f <- by_formula(y ~ a + l, d, weights = g, offset = b)
  m <- data_from_matrix(d[c("a", "l")], d$y, weights = d$g, offset = d$b)
  same <- c("x", "y", "weights", "center", "scale", "n", "shift",
            "sd_y", "offset", "prior_weights")
  expect_equal(unclass(f)[same], unclass(m)[same])
})

test_that("matrices, polynomials and scale() keep their columns and meaning in new rows", {
  d <- small_data()
  d$M <- cbind(p = d$a, q = d$b)
  expect_identical(colnames(by_formula(y ~ M, d)$x), c("Mp", "Mq"))
  expect_identical(colnames(by_formula(y ~ unname(M), d)$x), c("unname(M)1", "unname(M)2"))
  fit <- fit_of(by_formula(y ~ poly(a, 2) + scale(b), d))
  expect_identical(fit$frame$columns, c("poly(a, 2)1", "poly(a, 2)2", "scale(b)"))
  expect_equal(new_inputs(fit, d[3:4, ])$x, by_formula(y ~ poly(a, 2) + scale(b), d)$x[3:4, ])
})

test_that("subset, weights, offset and na.action work as in lm()", {
  d <- small_data()
  d$a[2] <- NA
  lim <- 1.1
  data <- by_formula(y ~ a, d, subset = b > lim, weights = g, offset = 2 * b)
  ref <- stats::lm(y ~ a, d, subset = b > lim, weights = g, offset = 2 * b)
  rows <- names(stats::residuals(ref))
  expect_identical(names(data$response), rows)
  expect_identical(data$prior_weights, d[rows, "g"])
  expect_identical(data$offset, 2 * d[rows, "b"])
  expect_identical(data$na_action, stats::na.action(ref))
  expect_s3_class(by_formula(y ~ a, d, na.action = na.exclude)$na_action, "exclude")
  inside <- function(data, w) by_formula(y ~ a, data, weights = w)
  expect_identical(inside(d, d$g)$prior_weights, d$g[-2])
  expect_identical(by_formula(d$y ~ d$a)$n, 11L)
  both <- by_formula(y ~ a + offset(b), d, offset = g)
  expect_equal(both$offset, (d$b + d$g)[-2])
  # Columns of these names are inputs.
  odd <- stats::setNames(d[c("y", "a", "b")], c("y", "(weights)", "(offset)"))
  expect_null(by_formula(y ~ ., odd)$prior_weights)
  expect_null(by_formula(y ~ ., odd)$offset)
  expect_identical(by_formula(y ~ ., odd, weights = 1:12, offset = 12:1)[c("prior_weights", "offset")],
                   list(prior_weights = as.double((1:12)[-2]), offset = as.double((12:1)[-2])))
})

test_that("a formula that is no sum of variables is refused with the reason", {
  d <- small_data()
  d$day <- Sys.Date() + 1:12
  d$z <- complex(real = d$a)
  expect_input_error(by_formula(y ~ a:b, d), "`a:b`")
  expect_input_error(by_formula(y ~ a * b, d))
  expect_input_error(by_formula(y ~ (a + b)^2, d), "`a:b`")
  expect_input_error(by_formula(y ~ 1, d), "`formula`")
  expect_input_error(by_formula(y ~ 0, d), "`formula`")
  expect_input_error(by_formula(y ~ offset(a), d), "`formula`")
  expect_input_error(by_formula(~ a, d), "response")
  expect_input_error(by_formula(y ~ y + a, d), "formula")
  d$local <- as.POSIXlt(d$day)
  expect_input_error(by_formula(y ~ local, d), "as.POSIXct")
  expect_input_error(by_formula(y ~ z, d), "complex")
  expect_input_error(by_formula(y ~ a, transform(d, a = structure(a, class = "integer64"))), "bit64")
  expect_input_error(by_formula(y ~ a, transform(d, y = structure(y, class = "integer64"))), "`y`")
  d$text <- format(d$day)
  for (text in list(d$text, format(d$day, "%d.%m.%Y"), format(d$local, "%Y/%m/%d %H:%M"), factor(d$text))) {
    expect_input_error(pfdtc(data.frame(a = d$a, text), d$y), "`text`")
    expect_input_error(pfdtc(data.frame(a = d$a, text), d$y), "as.Date")
  }
  expect_input_error(by_formula(text ~ a, d), "as.Date")
  expect_input_error(pfdtc(y ~ text, data.frame(y = 1:60, text = format(Sys.Date() + 1:60))), "as.Date")
  many <- data.frame(y = 1:60, id = sprintf("%.2f", 1:60 / 7))
  expect_input_error(pfdtc(y ~ id, many), "60")
  expect_identical(ncol(by_formula(y ~ id, transform(many, id = rep(id[1:40], length.out = 60)))$x), 40L)
  expect_input_error(by_formula(f ~ a, d), "`f`")
  expect_input_error(by_formula(l ~ a, d), "`l`")
  expect_input_error(by_formula(cbind(y, b) ~ a, d))
  expect_input_error(by_formula(y ~ nosuch, d), "nosuch")
  expect_input_error(by_formula(y ~ daay, d), "`day`")
  expect_input_error(by_formula(y ~ elsewhere, d), "elsewhere")
  expect_input_error(by_formula(y ~ s(a), d), "\"s\"")
  expect_input_error(pfdtc(y ~ nosuch), "`data`")
  for (formula in list(time ~ a, y ~ a + time, log(time) ~ a)) {
    expect_input_error(by_formula(formula, d), "no column `time`")
  }
  expect_input_error(by_formula(y ~ a, d, weights = time), "no column `time`")
  d$list <- as.list(d$a)
  expect_input_error(by_formula(y ~ list, d), "unlist()")
  expect_input_error(by_formula(f ~ a, d), "binomial()")
  expect_input_error(by_formula(y ~ a, transform(d, y = as.character(y))), "as.numeric()")
  expect_input_error(by_formula(data = d), "`formula`")
  expect_input_error(by_formula("y ~ a", d), "`formula`")
})

test_that("bad values are refused with the row's name", {
  d <- small_data()
  row.names(d) <- letters[1:12]
  expect_input_error(by_formula(y ~ a, transform(d, a = replace(a, 3, Inf))), "`a`")
  expect_input_error(by_formula(log(y - y) ~ a, d), "log(y - y)")
  holes <- transform(d, a = replace(a, 3, NA), f = replace(f, 5, NA))
  expect_input_error(by_formula(y ~ a, holes, na.action = na.pass), "row c")
  expect_input_error(by_formula(y ~ f, holes, na.action = na.pass), "row e")
  expect_input_error(by_formula(y ~ a, holes, na.action = na.fail), "`na.action`")
  expect_identical(by_formula(y ~ a + f, holes)$n, 10L)
  expect_input_error(by_formula(y ~ a, d[0, ]), "`data`")
  expect_input_error(by_formula(y ~ a, transform(d, a = NA_real_)), "`data`")
  expect_input_error(by_formula(y ~ a, as.matrix(d[c("y", "a")])), "`data`")
  expect_input_error(by_formula(y ~ a, d, weights = -g), "`weights`")
  expect_input_error(by_formula(y ~ a, d, weights = 1:3), "`weights`")
  expect_input_error(by_formula(y ~ a, d, offset = f), "`offset`")
  expect_input_error(by_formula(y ~ a, d, offset = 1 / (b * 0)), "`offset`")
})

test_that("new rows for a formula fit have its columns", {
  d <- small_data()
  data <- by_formula(y ~ a + f + l, d)
  fit <- fit_of(data)
  new <- new_inputs(fit, d[5:2, ])
  expect_identical(new$x, data$x[5:2, ])
  expect_identical(new$row_names, as.character(5:2))
  expect_identical(new_inputs(fit, transform(d, f = as.character(f)))$x, data$x)
  expect_identical(new_inputs(fit, d[d$f == "v", ])$x, data$x[d$f == "v", , drop = FALSE])
  expect_identical(new_inputs(fit, list(a = 1L, f = "w", l = FALSE))$x[1, ],
                   c(a = 1, fu = 0, fv = 0, fw = 1, l = 0))
  expect_identical(new_inputs(fit, data.frame(a = TRUE, f = "w", l = FALSE))$x[1, "a"], c(a = 1))
  holes <- data.frame(a = 1:2, f = c("u", NA), l = c(TRUE, FALSE))
  expect_identical(new_inputs(fit, holes)$keep, c(TRUE, FALSE))
  expect_identical(new_inputs(fit, transform(holes, l = NA))$keep, c(FALSE, FALSE))
})

test_that("newdata that does not fit the formula is refused, naming the variable", {
  d <- small_data()
  fit <- fit_of(by_formula(y ~ a + f + l, d))
  expect_input_error(new_inputs(fit, d[c("a", "f")]), "`l`")
  expect_input_error(new_inputs(fit, transform(d, f = "z")), "level \"z\"")
  expect_input_error(new_inputs(fit, transform(d, f = "z")), "replaced by NA, the row's prediction is NA")
  expect_input_error(new_inputs(fit, transform(d, f = "unused")), "`f`")
  expect_input_error(new_inputs(fit, transform(d, f = 1)), "`f`")
  expect_input_error(new_inputs(fit, transform(d, a = f)), "`a`")
  expect_input_error(new_inputs(fit, transform(d, l = a)), "`l`")
  expect_input_error(new_inputs(fit, transform(d, a = 1 / 0)), "row 1")
  expect_input_error(new_inputs(fit, as.matrix(d[c("a", "l")])), "newdata")
  expect_input_error(new_inputs(fit, "a"), "`newdata`")
  M <- cbind(d$a, d$b)
  wide <- fit_of(by_formula(d$y ~ M))
  expect_input_error(new_inputs(wide, list(M = cbind(M, M))), "`newdata`")
})

test_that("a variable that newdata lacks is not taken from the environment of the training rows", {
  d <- small_data()
  a <- d$a
  y <- d$y
  k <- 2
  fit <- fit_of(by_formula(y ~ I(a * k)))
  expect_identical(fit$frame$required, "a")
  expect_identical(unname(new_inputs(fit, data.frame(a = 1:2))$x[, 1]), c(2, 4))
  expect_input_error(new_inputs(fit, data.frame(b = 1:12)), "`a`")
  dollar <- fit_of(by_formula(d$y ~ d$a))
  expect_input_error(new_inputs(dollar, data.frame(a = 1:2)), "`d`")
})

test_that("variables that the formula removes again need not be in newdata", {
  d <- small_data()
  fit <- fit_of(by_formula(y ~ . - g - l - f, d))
  expect_identical(new_inputs(fit, d[1:2, c("b", "a")])$x,
                   bare_rows(as.matrix(d[1:2, c("a", "b")])))
})

test_that("offsets are evaluated again in newdata, both kinds", {
  d <- small_data()
  fit <- fit_of(by_formula(y ~ a + offset(log(b)) + offset(b), d, offset = 2 * g))
  expect_equal(new_inputs(fit, d[1:3, ])$offset, (log(d$b) + d$b + 2 * d$g)[1:3])
  expect_input_error(new_inputs(fit, d[c("a", "b")]), "`g`")
  holes <- transform(d[1:3, ], b = c(1, NA, 2))
  expect_identical(new_inputs(fit, holes)$keep, c(TRUE, FALSE, TRUE))
  expect_equal(nrow(new_inputs(fit, holes)$x), 2)
  fixed <- fit_of(by_formula(y ~ a, d, offset = rep(3, 12)))
  expect_equal(new_inputs(fixed, d)$offset, rep(3, 12))
  expect_input_error(new_inputs(fixed, d[1:2, ]), "`offset`")
  spliced <- fit_of(do.call("by_formula", list(y ~ a, d, offset = d$b)))
  expect_input_error(new_inputs(spliced, d), "`offset`")
})

test_that("a fit's frame without data is small, has no environment and still reads newdata", {
  make <- function() {
    big <- stats::rnorm(1e5)
    by_formula(log(y) ~ log(b) + poly(a, 2), small_data())
  }
  data <- make()
  frame <- make_frame(data, keep_data = FALSE)
  expect_lt(length(serialize(frame, NULL)), 10000)
  expect_identical(environment(frame$terms), globalenv())
  again <- unserialize(serialize(frame, NULL))
  expect_equal(new_inputs(list(frame = again), small_data())$x, data$x)
  call <- as.call(list(quote(pfdtc), formula = y ~ a, data = small_data(), m = 5,
                       weights = quote(g)))
  slim <- slim_call(call)
  expect_identical(slim$data, quote(data))
  expect_identical(slim$m, 5)
  expect_identical(slim$weights, quote(g))
  expect_identical(environment(slim$formula), globalenv())
})

test_that("text or nothing for a formula is refused, and the error says what a formula is", {
  for (f in list(NULL ~ speed, dist ~ NULL, dist ~ "speed", "dist" ~ speed)) {
    expect_error(pfdtc(f, cars), "made of variables", class = "pfdtc_error_input")
  }
  expect_error(pfdtc("dist ~ speed", cars), "as.formula", class = "pfdtc_error_input")
})

test_that("terms of mgcv, spatial objects and columns without a value have errors that name them", {
  d <- data.frame(y = c(1, 3, 2, 5), x = 1:4, empty = NA_real_)
  read <- function(f, data = d) data_from_formula(quote(pfdtc(formula = f, data = data)), environment())
  s <- function(...) structure(list(term = "x"), class = "tp.smooth.spec") # as mgcv's s() returns
  expect_input_error(read(y ~ s(x)), "s()")
  expect_input_error(read(y ~ x + empty), "`empty`")
  expect_input_error(read(y ~ x, d[0, ]), "`data`")
  places <- d
  places$geometry <- structure(list(c(1, 2), c(1, 3), c(2, 2), c(4, 4)), class = c("sfc_POINT", "sfc"))
  expect_input_error(read(y ~ geometry, places), "st_coordinates")
  skip_if_not_installed("sp")
  points <- sp::SpatialPointsDataFrame(cbind(1:4, c(2, 1, 5, 3)), d)
  expect_input_error(read(y ~ x, points), "as.data.frame()")
})

test_that("an input with one value is named by a message, and other inputs are not", {
  d <- data.frame(y = c(1, 3, 2, 5, 4), x = 1:5, one = 7, level = "a", two = c(1, 1, 1, 1, 2))
  told <- function(expr) {
    text <- ""
    withCallingHandlers(expr, pfdtc_message_constant = function(m) {
      text <<- conditionMessage(m)
      invokeRestart("muffleMessage")
    })
    text
  }
  text <- told(data_from_formula(quote(pfdtc(formula = y ~ x + one + level + two, data = d)), environment()))
  expect_match(text, "`level` and `one`")
  expect_no_match(text, "`x`|`two`")
  expect_match(told(data_from_matrix(d[c("x", "one")], d$y)), "`one`")
  expect_identical(told(data_from_matrix(d[c("x", "two")], d$y)), "")
})

test_that("a level without rows is kept if a correlation matrix defines it", {
  R <- matrix(0.3, 3, 3, dimnames = list(c("a", "b", "c"), c("a", "b", "c")))
  diag(R) <- 1
  R["a", "c"] <- R["c", "a"] <- 0.6
  d <- data.frame(y = c(1, 3, 2, 5, 4, 2), x = 1:6, f = factor(rep(c("a", "b"), 3), levels = c("a", "b", "c")))
  k <- kernel_se(2, 1, ~ x) * kernel_categorical(R, 1, ~ f)
  new <- data.frame(x = c(2.5, 4), f = "c")
  cov <- function(a, b) exp(-outer(a$x, b$x, "-")^2 / 8) * unname(R[as.character(a$f), as.character(b$f)])
  mean <- mean(d$y) + drop(cov(new, d) %*% solve(cov(d, d) + diag(0.5, 6), d$y - mean(d$y)))
  fit <- gp_exact(y ~ x + f, d, kernel = k, noise = 0.5, hyper = "fixed")
  expect_equal(unname(predict(fit, new)), mean)
  few <- pfdtc(y ~ x + f, rows_in_memory(d), kernel = k, noise = 0.5, hyper = "fixed")
  expect_equal(unname(predict(few, new)), mean)
  # Other factors drop such levels, like lm().
  plain <- gp_exact(y ~ x + f, d, kernel = kernel_se(2, 1), noise = 0.5, hyper = "fixed")
  expect_input_error(predict(plain, new), "\"c\"")
})

test_that("a message names inputs with numbers as text, and no other text", {
  d <- data.frame(y = 1:4 + 0.5, a = c("1", "2.5", "1", "-3e2"), b = c("u", "1", "1", "u"), c = factor(c(1, 2, 1, 2)))
  read <- function(formula) data_from_formula(call("pfdtc", formula = formula, data = quote(d)), environment())
  expect_message(read(y ~ a), "as.numeric", class = "pfdtc_message_text")
  expect_silent(read(y ~ b + c))
})

test_that("a subset that is text, an empty subset and a response of several columns are refused by name", {
  d <- data.frame(y = 1:4 + 0.5, a = 1:4, row.names = letters[1:4])
  expect_input_error(pfdtc(y ~ a, d, subset = "z"), "subset")
  fixed <- function(...) pfdtc(y ~ a, d, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed", ...)
  expect_identical(nobs(fixed(subset = c("a", "c"))), 2L) # selects by row names
  expect_error(pfdtc(y ~ a, d, subset = a > 9), "`subset` leave no rows", class = "pfdtc_error_input")
  expect_error(pfdtc(y ~ a, d[0, ]), "`data` has no rows[.]$", class = "pfdtc_error_input")
  gaps <- data.frame(y = 1:20, a = replace(1:20, 1:15, NA), b = replace(1:20, 16:20, NA))
  expect_error(pfdtc(y ~ ., gaps), "such as `a` \\(75 %\\)", class = "pfdtc_error_input")
  expect_error(pfdtc(EuStockMarkets ~ seq_len(1860)), "[, \"DAX\"]", fixed = TRUE, class = "pfdtc_error_input")
  expect_error(pfdtc(EuStockMarkets), "pfdtc(EuStockMarkets[, \"DAX\"])", fixed = TRUE, class = "pfdtc_error_input")
})

test_that("terms of survival's models are refused with an alternative", {
  skip_if_not_installed("survival")
  lung <- survival::lung
  for (term in c("strata(inst)", "survival::cluster(inst)", "frailty(inst)", "log(frailty(inst))")) {
    formula <- stats::as.formula(paste("time ~ age +", term))
    expect_error(pfdtc(formula, lung), "Write \\(1 \\| inst\\)", class = "pfdtc_error_input")
  }
  expect_error(pfdtc(time ~ tt(age), lung), "Use `age` as an input", class = "pfdtc_error_input")
})

test_that("messages and errors of formulas say what to do", {
  given <- function(formula, data = mtcars, ...) {
    pfdtc(formula, data, kernel = kernel_se(2, 30), noise = 5, hyper = "fixed", plain = TRUE, ...)
  }
  for (f in c(mpg ~ wt - 1, mpg ~ 0 + wt, mpg ~ wt + 0)) {
    expect_message(given(f), "center = FALSE", class = "pfdtc_message_intercept")
  }
  expect_no_message(given(mpg ~ wt + 1), class = "pfdtc_message_intercept")
  expect_no_message(given(mpg ~ wt - 1, center = FALSE), class = "pfdtc_message_intercept")
  expect_error(pfdtc(mpg ~ wt, mtcars, weights = 1:3), "`weights` has 3 values, and `data` has 32 rows",
               class = "pfdtc_error_input")
  expect_error(pfdtc(mtcars[-1], mtcars["mpg"]), 'data\\[\\["mpg"\\]\\]', class = "pfdtc_error_input")
  ordered <- transform(mtcars, gear = factor(gear, ordered = TRUE), vs = factor(vs, ordered = TRUE))
  expect_message(pfdtc(mpg ~ wt + gear + vs, ordered, plain = TRUE, control = pfdtc_control(restarts = 1)),
                 "inputs = ~ gear\\) \\* kernel_categorical\\(\"ordered\", inputs = ~ vs\\)",
                 class = "pfdtc_message_ordered")
  of_matrix <- gp_exact(as.matrix(mtcars[3:4]), mtcars$mpg, kernel = kernel_se(200, 30), noise = 5, hyper = "fixed")
  expect_error(formula(of_matrix), "The fit was made from a matrix", class = "pfdtc_error_input")
  fit <- given(mpg ~ wt)
  expect_error(partial_dependence(fit), "`variable`", class = "pfdtc_error_input")
  expect_error(compare_fits(fit, given(mpg ~ hp)), "Fits to compare go in one list: compare_fits\\(list",
               class = "pfdtc_error_input")
  count <- pfdtc(carb ~ wt, mtcars, family = poisson(), kernel = kernel_se(2, 1), hyper = "fixed")
  expect_error(ratios(count, mtcars[1:2, ]), "`than`", class = "pfdtc_error_input")
  expect_error(ratios(count), "`newdata`", class = "pfdtc_error_input")
  expect_message(pfdtc(cyl ~ mpg, mtcars, transform = "auto", control = pfdtc_control(restarts = 1)),
                 "factor\\(\\) or ordered",
                 class = "pfdtc_message_few_values")
  tw <- structure(list(family = "Tweedie", link = "log"), class = "family")
  expect_error(pfdtc(mpg ~ wt, mtcars, family = tw), "Use tweedie\\(\\)", class = "pfdtc_error_input")
  expect_error(pfdtc(mpg ~ wt, mtcars, family = replace(tw, "family", "scaled t")), "Use student",
               class = "pfdtc_error_input")
  expect_error(pfdtc(mpg ~ wt, mtcars, family = replace(tw, "family", "Ordered Categorical")), "Use ordinal",
               class = "pfdtc_error_input")
})

test_that("time differences are numbers in the unit of the fit", {
  d <- data.frame(x = 1:20 / 4, y = sin(1:20 / 4))
  hours <- transform(d, x = as.difftime(x, units = "hours"), y = as.difftime(y, units = "mins"))
  minutes <- hours
  units(minutes$x) <- "mins"
  units(minutes$y) <- "secs"
  fit <- function(data) pfdtc(y ~ x, data, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed", transform = "none")
  plain <- fit(d)
  of_hours <- fit(hours)
  expect_identical(predict(of_hours, interval = "prediction"), predict(plain, interval = "prediction"))
  expect_output(print(of_hours), "x, hours")
  expect_equal(predict(of_hours, minutes), predict(plain, d))
  expect_equal(predict(of_hours, minutes, type = "density"), predict(plain, d, type = "density"))
  expect_equal(predict(add_rows(of_hours, minutes[1:3, ])), predict(add_rows(plain, d[1:3, ])))
})

test_that("a response that is an array of one dimension is read as a vector", {
  d <- data.frame(x = as.double(1:20))
  d$y <- array(sin(d$x), 20L)
  plain <- transform(d, y = as.vector(y))
  fits <- lapply(list(d, plain), function(d) pfdtc(y ~ x, d, kernel = kernel_se(2, 1), noise = 0.01, hyper = "fixed"))
  expect_identical(predict(fits[[1L]], d), predict(fits[[2L]], d))
  expect_identical(summary(fits[[1L]])$rmse_loo, summary(fits[[2L]])$rmse_loo)
})

test_that("factors and text that identify rows are left out with a message, and new rows need not have them", {
  d <- small_data()
  d[["an id"]] <- paste("row", seq_len(nrow(d)))
  left_out <- function(formula, data = d) {
    expect_message(out <- by_formula(formula, data), "left out", class = "pfdtc_message_levels")
    out
  }
  data <- left_out(y ~ .)
  expect_identical(data$x, by_formula(y ~ . - `an id`, d)$x)
  expect_equal(data$frame$required, setdiff(names(d), c("y", "an id")))
  expect_identical(left_out(y ~ a + factor(`an id`) + offset(g))$offset, by_formula(y ~ a + offset(g), d)$offset)
  grouped <- left_out(y ~ a + `an id` + (1 | f))
  expect_identical(grouped$x, by_formula(y ~ a + (1 | f), d)$x)
  fit <- pfdtc(y ~ a, d, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed")
  expect_message(same <- gp_exact(y ~ a + `an id`, d, like = fit), "left out")
  expect_identical(fitted(same), fitted(gp_exact(y ~ a, d, like = fit)))
  both <- with_seed(1, pfdtc(y ~ a + `an id`, d[1:9, ], kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed"))
  expect_identical(gp_exact(y ~ a + `an id`, d[1:9, ], like = both)$frame$columns, both$frame$columns)
  d$number <- factor(d$a + 0.25)
  expect_message(by_formula(y ~ b + number, d), "as.numeric(as.character(number))", fixed = TRUE)
  # An identifier alone stays. Dates as text may hold information: the error has a hint.
  expect_identical(ncol(by_formula(y ~ `an id`, d)$x), nrow(d))
  d <- data.frame(y = 1:60 / 7, x = 1:60, day = format(as.Date("2026-01-01") + 1:60))
  expect_error(by_formula(y ~ x + day, d), "as.Date", class = "pfdtc_error_input")
  d$day <- paste("day", c(1:55, 1:5)) # hardly any value repeats
  expect_identical(left_out(y ~ ., d)$x, by_formula(y ~ x, d)$x)
  d$day <- paste("day", c(1:53, 1:7))
  expect_identical(ncol(by_formula(y ~ ., d)$x), 54L)
})
