# Calls exported functions with one odd argument at a time. Each call must work or raise a classed error.

odd_values <- list(
  "a named number" = c(a = 1), "a negative number" = -1, "NA" = NA, "a large number" = 1e300, "text" = "nonsense",
  "two texts" = c("a", "b"), "an empty list" = list(), "a list" = list(a = 1, b = "x"), "a function" = function(...) 1,
  "a covariance function" = function(x, z) exp(-(x - z)^2),
  "an object" = structure(1, class = "odd"), "an object of a list" = structure(list(), class = "odd"),
  "a factor" = factor("a"), "a date" = as.Date("2020-01-01"), "a complex number" = 1i, "no number" = numeric(),
  "a formula" = ~ x, "a matrix" = matrix(1:4, 2), "a data frame" = data.frame(a = 1:2), "a name" = quote(x))

# Returns a line for each call that raised an error without a class of the package. In CI an argument has every `of`-th
# value.
raw_errors <- function(calls, values = odd_values, of = 1) {
  said <- character()
  space <- asNamespace("pfdtc") # do.call() gets a name, because errors search all functions for a function without one
  for (name in names(calls)) {
    args <- calls[[name]]
    for (argument in setdiff(names(args), "object")) { # methods are found by their object
      for (kind in in_turn(names(values), match(argument, names(args)), of)) {
        odd <- args
        odd[argument] <- list(values[[kind]])
        e <- tryCatch({
          suppressWarnings(suppressMessages(utils::capture.output(do.call(name, odd, quote = TRUE, envir = space))))
          NULL
        }, error = identity)
        if (is.null(e) || any(startsWith(class(e), "pfdtc_error"))) next
        said <- c(said, sprintf("%s(%s = <%s>): %s", name, argument, kind, conditionMessage(e)))
      }
    }
  }
  said
}

small_fits <- function() {
  fixed <- function(f, ...) f(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed", ...)
  points <- fixed(gp_vfe, m = 5, control = pfdtc_control(maxit = 0))
  points$reference <- suppressMessages(reference(points, m2 = 8))
  list(exact = fixed(gp_exact), points = points,
       counts = pfdtc(dist ~ speed, cars, family = poisson(), kernel = kernel_se(5, 1), hyper = "fixed"))
}

test_that("odd arguments of functions of a fit have errors with a class", {
  fits <- small_fits()
  new <- data.frame(speed = c(5, 11))
  for (i in seq_along(fits)) {
    fit <- fits[[i]]
    values <- in_turn(odd_values, i, 5) # CI calls each function with three of five odd arguments, each for one fit
    expect_identical(raw_errors(values = values, list(
      predict.gp_fit = list(object = fit, newdata = new, type = "response", interval = "credible", level = 0.9,
                            se.fit = FALSE, full_cov = FALSE, certified = FALSE),
      certify = list(fit = fit, newdata = new, effort = "fast", reference = NULL, max_seconds = 1)
    )), character())
    expect_identical(raw_errors(values = values, list(
      partial_dependence = list(fit = fit, variable = "speed", at = NULL, newdata = cars[1:4, ]),
      linear_functional = list(fit = fit, weights = c(1, -1), newdata = new),
      exceedance = list(fit = fit, newdata = new, threshold = 40, prob = 0.9, draws = 2),
      next_points = list(fit = fit, n = 1, lower = 5, upper = 20, goal = "level", level = 40),
      residuals.gp_fit = list(object = fit, type = "response"),
      simulate.gp_fit = list(object = fit, nsim = 2, seed = 1, newdata = new),
      confint.gp_fit = list(object = fit, level = 0.9))), character())
  }
})

test_that("odd arguments of functions that fit and of constructors have errors with a class", {
  d <- cars[1:12, ]
  kernel <- kernel_se(5, 500)
  expect_identical(raw_errors(of = 4, list(
    gp_exact = list(formula = dist ~ speed, data = d, kernel = kernel, noise = 200, hyper = "fixed",
                            weights = rep(1, 12), offset = rep(0, 12), center = TRUE, scale = TRUE, mean = NULL,
                            control = pfdtc_control(maxit = 1)),
    gp_vfe = list(x = d$speed, y = d$dist, weights = NULL, offset = NULL, kernel = kernel, noise = 200,
                          m = 3, hyper = "fixed", inducing = "greedy", control = pfdtc_control(maxit = 0)),
    pfdtc_control = formals(pfdtc_control)[c("maxit", "threads", "jitter", "memory", "max_seconds", "progress")],
    kernel_se = list(lengthscale = 1, variance = 1, isotropic = FALSE, inputs = NULL),
    kernel_categorical = list(correlation = 0.5, variance = 1, inputs = NULL),
    kernel_group = list(by = ~g, design = ~1, correlated = TRUE, variance = 1, scale = NULL),
    rows_blocks = list(rewind = function() NULL, next_block = function() NULL, columns = "a"),
    rows_parts = list(parts = list(cars)), rows_csv = list(files = "none", block = 5),
    nb = list(theta = 1), student = list(df = 4, sigma = 1))), character())
})

test_that("misspelt arguments of methods and functions are errors that name the right one", {
  fit <- small_fits()$exact
  for (f in list(coef, logLik, deviance, nobs, sigma, formula)) expect_input_error(f(fit, foo = 1), "foo")
  expect_error(residuals(fit, tipe = "loo"), "`type`", class = "pfdtc_error_input")
  expect_error(summary(fit, digts = 3), "`digits`", class = "pfdtc_error_input")
  expect_error(pfdtc(mpg ~ wt, mtcars, weight = cyl), "`weights`", class = "pfdtc_error_input")
  expect_error(exceedance(fit, threshold = 3, porb = 0.9), "`prob`", class = "pfdtc_error_input")
  expect_input_error(exceedance(fit, threshold = 3, certified = FALSE, effort = "fast"), "effort")
  expect_identical(nobs(fit, use.fallback = TRUE), nobs(fit))
  learned <- gp_exact(dist ~ speed, cars, kernel = kernel_se())
  expect_identical(vcov(learned, complete = FALSE), vcov(learned))
})

test_that("errors of exported functions name a missing first argument, and in functions of a fit the second", {
  space <- asNamespace("pfdtc")
  said <- function(code) {
    tryCatch({
      suppressMessages(code)
      "nothing"
    }, pfdtc_error_input = function(e) "an input error", error = conditionMessage)
  }
  has_no_default <- function(f, i) length(formals(f)) >= i && identical(formals(f)[[i]], formals(function(x) 1)$x)
  fit <- small_fits()$exact
  for (name in getNamespaceExports("pfdtc")) {
    f <- get(name, space)
    if (!is.function(f) || !has_no_default(f, 1L) || names(formals(f))[1L] == "...") next
    expect_identical(said(f()), "an input error", info = name)
    optional <- c("newdata", "...")
    if (names(formals(f))[1L] != "fit" || !has_no_default(f, 2L) || names(formals(f))[2L] %in% optional) next
    expect_identical(said(f(fit)), "an input error", info = name)
  }
  expect_input_error(exceedance(fit), "`threshold` is missing")
  expect_input_error(add_rows(fit), "`newdata` is missing")
  expect_input_error(check_family(poisson()), "`y` is missing")
})

test_that("an argument that would be ignored, or give NA without a reason, is refused by its name", {
  d <- data.frame(x = 1:9 / 9, y = sin(1:9))
  fit <- gp_exact(y ~ x, d, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed")
  expect_input_error(next_points(fit, level = "a"), "level")
  expect_input_error(next_points(fit, goal = "fill", level = NA), "level")
  expect_input_error(partial_dependence(fit, "x", at = c(1, NaN)), "at")
  expect_input_error(partial_dependence(fit, "x", newdata = d[0L, ]), "newdata")
  expect_input_error(kernel_group(2.5), "by")
  expect_input_error(check_family(poisson(), y = numeric()), "y")
  expect_input_error(check_family(poisson(), y = -1), "`y` must be counts")
  expect_input_error(check_family(Gamma("log"), y = 0), "`y` must be positive numbers")
  expect_input_error(check_family(gp_family(~ y * f - exp(f), support = function(y) y >= 0), y = -1), "support")
  for (name in c("x", "y", "type")) {
    expect_input_error(draw_nowhere(do.call(plot_fits, c(list(fit), stats::setNames("a", name)))),
                       sprintf("`%s` is not an argument", name))
  }
  expect_no_match(tryCatch(gp_dtc(y ~ x, d, m = 3, inducing = kernel_additive()), error = conditionMessage), "unlist")
  expect_input_error(gp_hurdle(nosuch ~ x, d), "formula")
  expect_input_error(gp_hurdle(abs(y) ~ x, d, subset = nosuch > 1), "subset")
  expect_input_error(gp_exact(y ~ x, d, kernel = function(x, z) exp(-(x - z)^2)), "kernel")
  expect_input_error(gp_vfe(y ~ x, d, kernel = kernel_group), "by") # the constructor's own error
})

test_that("a formula may have the name of the first argument, `x`", {
  d <- data.frame(x = 1:9 / 9, y = sin(1:9))
  fit <- gp_exact(y ~ x, d, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed")
  expect_identical(update(fit)$factors, gp_exact(x = y ~ x, d, kernel = kernel_se(1, 1), noise = 0.1,
                                                 hyper = "fixed")$factors)
  named <- gp_exact(x = y ~ x, data = d, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed")
  expect_identical(predict(named, d[1:2, ]), predict(fit, d[1:2, ]))
  expect_identical(named$call[c("formula", "data")], fit$call[c("formula", "data")])
  expect_input_error(gp_exact(x = y ~ x, data = d, nosuch = 1), "nosuch")
})

test_that("an error names the type of a prediction only if another type would help", {
  d <- data.frame(x = 1:9 / 9, y = rep(c(0, 1, 1), 3))
  fit <- pfdtc(y ~ x, d, kernel = kernel_se(1, 1), family = binomial(), hyper = "fixed")
  expect_input_error(predict(fit, d, type = "response", interval = "prediction"), "available with binomial responses")
  fit <- gp_exact(y ~ x, d, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed")
  expect_input_error(predict(fit, d, type = "terms", interval = "prediction"), "available for type = \"terms\"")
})

test_that("errors name the cause and what helps", {
  d <- data.frame(x = 1:9 / 9, y = c(0, 1, 3, 2, 0, 1, 4, 2, 1), g = rep(c("a", "b", "c"), 3))
  counts <- function(...) pfdtc(y ~ x, d, family = poisson(), kernel = kernel_se(1, 1), hyper = "fixed", ...)
  expect_input_error(counts(approx = "vi", m = 3, neighbours = 2), "`neighbours` is not available with approx = \"vi\"")
  expect_input_error(counts(approx = "vi", tol = 0.1), "`tol` is not available with approx = \"vi\"")
  expect_input_error(counts(transform = "log"), "family Poisson. Leave it out: the family describes")
  expect_input_error(pfdtc(y ~ (x | 1), d), "(x | 1), without a grouping variable")
  expect_input_error(gp_dtc(y ~ x + (1 | g), d, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed"), "out `hyper`")
  expect_input_error(pfdtc(y ~ x, d, mean = ~ x - 1), "For a line through 0 give kernel_linear() and center = FALSE.")
  expect_input_error(gp_hurdle(cbind(y, x) ~ x, d), "one for each row; it is a 9 x 2")
  fit <- gp_dtc(y ~ x, d, m = 3, kernel = kernel_matern(1 / 2, 1, 1), noise = 1, hyper = "fixed")
  expect_input_error(certify(fit, reference = counts()), "by reference() or gp_dtc(); it is a fit by pfdtc()")
  expect_input_error(predict(fit, type = "derivative"), "factor matern12 of its kernel")
  exact <- gp_exact(y ~ I(x^2), d, kernel = kernel_matern(1 / 2, 1, 1), noise = 1, hyper = "fixed")
  expect_input_error(kl_divergence(fit, exact), "they differ in inputs, noise or centre.")
  slopes <- gp_vfe(y ~ x + (x | g), d, m = 3, kernel = kernel_se(1), control = pfdtc_control(maxit = 2))
  expect_input_error(predict(slopes, type = "derivative", wrt = "x"), "groups with slopes such as (x | group) beside")
  expect_input_error(multinomial("probit"), "`link` must be \"softmax\"; it is \"probit\"")
  expect_input_error(tobit(lower = 1), "`lower` is not an argument of this function. Possible names: `left`")
  expect_input_error(check_family(weibull(), 1), "it is the family Weibull")
  expect_input_error(refine(fit, tol = 2), "`tol` must be a number between 0 and 1; it is 2")
  expect_input_error(cross_validate(fit, by = ~ z), "`by` = ~z cannot be evaluated: ")
  expect_input_error(plot(fit, which = "foo"), "\"slices\", \"map\", \"checks\" or \"choices\", or some of the checks")
  three <- pfdtc(g ~ x, d, kernel = kernel_se(1, 1), hyper = "fixed", family = multinomial())
  expect_input_error(predict(three, d, interval = "prediction"), "with type = \"class\" gives sets of classes")
})
