kept_case <- function(...) {
  df <- mtcars
  df$f <- factor(df$cyl)
  df$text <- ifelse(df$am == 1, "a", "b")
  pfdtc(mpg ~ log(wt) + hp + f + text, df, weights = qsec, offset = drat, kernel = kernel_se(), plain = TRUE,
        subset = gear < 5, control = pfdtc_control(restarts = 1), ...)
}

test_that("a fit holds its model frame, and changes of the data by name change nothing", {
  fit <- with_seed(1, kept_case())
  home <- environment(fit$terms)
  lm_frame <- model.frame(fit$terms, home$df, weights = qsec, offset = drat, subset = gear < 5)
  expect_equal(model.frame(fit), lm_frame, ignore_attr = TRUE)
  expect_identical(row.names(model.frame(fit)), row.names(lm_frame))
  averaged <- partial_dependence(fit, "wt")
  augmented <- generics::augment(fit)
  home$df$wt <- home$df$wt * 100
  home$df <- home$df[32:1, ]
  expect_identical(partial_dependence(fit, "wt"), averaged)
  expect_identical(generics::augment(fit), augmented)
  expect_equal(model.frame(fit), lm_frame, ignore_attr = TRUE)
  expect_error(model.frame(fit, by = quote(carb)), "its rows have changed", class = "pfdtc_error_input")
  # A fit does not store columns of the cleaned data twice.
  expect_false(any(c("mpg", "log(wt)", "hp") %in% names(fit$data$kept$columns)))
})

test_that("methods of a saved fit work in a session without its data", {
  fit <- with_seed(1, kept_case())
  averaged <- partial_dependence(fit, "wt")
  dropped <- with_seed(1, drop1(fit))
  assign("df", stats::df, environment(fit$terms)) # in a new session this name is a function
  expect_identical(partial_dependence(fit, "wt"), averaged)
  expect_identical(with_seed(1, drop1(fit)), dropped)
  again <- with_seed(1, update(fit, . ~ . - hp))
  expect_equal(c(again$evidence, nobs(again)), c(extractAIC(again)[2L] / -2 + again$df, nobs(fit)))
  expect_identical(again$nobs, fit$nobs)
  expect_equal(extractAIC(again)[2L], dropped["hp", "AIC"])
  slim <- with_seed(1, kept_case(keep_data = FALSE))
  expect_null(slim$data)
  expect_error(model.frame(slim), "does not hold its rows", class = "pfdtc_error_input")
})

test_that("methods of a saved fit work in a fresh process", {
  skip_on_cran()
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  df <- mtcars
  fit <- pfdtc(mpg ~ log(wt) + hp, df, kernel = kernel_se(4, 30), noise = 5, hyper = "fixed", plain = TRUE)
  environment(fit$terms) <- globalenv()
  saveRDS(fit, file)
  code <- sprintf(".libPaths(%s); library(pfdtc); fit <- readRDS(%s); cat(partial_dependence(fit, 'wt', at = 3)$mean,
                  nrow(drop1(fit)), nrow(generics::augment(fit)), class(update(fit, noise = 6))[1])",
                  deparse1(.libPaths()), deparse1(file))
  script <- tempfile(fileext = ".R")
  writeLines(code, script)
  said <- system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script), stdout = TRUE, stderr = FALSE)
  said <- strsplit(utils::tail(said, 1L), " ")[[1L]]
  expect_equal(as.numeric(said[1]), partial_dependence(fit, "wt", at = 3)$mean, tolerance = 1e-6)
  expect_identical(said[-1], c("3", "32", "pfdtc"))
})

test_that("drop1() refits the rows of the full model where values are missing", {
  d <- airquality
  fit <- with_seed(1, pfdtc(Ozone ~ Solar.R + Wind + Temp, d, kernel = kernel_se(), plain = TRUE,
                            control = pfdtc_control(restarts = 1)))
  dropped <- with_seed(1, drop1(fit))
  complete <- d[complete.cases(d[c("Ozone", "Solar.R", "Wind", "Temp")]), ]
  alone <- with_seed(1, drop1(update(fit, data = complete)))
  expect_equal(dropped$AIC, alone$AIC, tolerance = 1e-3) # the optimiser's random starts differ
  expect_true(all(is.finite(dropped$AIC)))
})

test_that("rows that are added to or dropped from a fit are those of its model frame", {
  fit <- gp_exact(dist ~ log(speed), cars[1:40, ], kernel = kernel_se(1, 900), noise = 200, hyper = "fixed")
  whole <- add_rows(fit, cars[41:50, ])
  expect_equal(model.frame(whole), model.frame(dist ~ log(speed), cars), ignore_attr = TRUE)
  expect_equal(nrow(partial_dependence(whole, "speed", at = 10)), 1L)
  less <- drop_rows(whole, 3:5)
  expect_equal(model.frame(less), model.frame(dist ~ log(speed), cars[-(3:5), ]), ignore_attr = TRUE)
})

test_that("text and factors are joined by their values when rows are added", {
  d <- with_seed(1, data.frame(x = stats::runif(30), y = stats::rnorm(30), t = rep(c("u", "v", "w"), 10)))
  d$o <- factor(d$t, c("w", "u", "v"), ordered = TRUE)
  fit <- pfdtc(y ~ x + t + o, d[1:20, ], kernel = kernel_se(rep(1, 7), 1), noise = 1, hyper = "fixed")
  new <- transform(d[21:30, ], t = factor(t), o = as.character(o))
  kept <- model.frame(add_rows(fit, new))
  expect_identical(kept$t, d$t) # c() of text and a factor has the factor's codes
  expect_identical(kept$o, d$o)
  kernel <- kernel_se(1, 1) + kernel_group(~ t, variance = 1)
  group <- pfdtc(y ~ x + (1 | t), transform(d[1:20, ], t = factor(t)), kernel = kernel, noise = 1, hyper = "fixed")
  kept <- model.frame(add_rows(group, transform(d[21:30, ], t = "new")))
  expect_identical(as.character(kept$t), c(d$t[1:20], rep("new", 10)))
})

test_that("columns of a matrix are matched by name in new rows, and by position if one of the two has no names", {
  d <- small_data()
  d$M <- cbind(p = d$a, q = d$b)
  fit <- fit_of(by_formula(y ~ M, d))
  here <- by_formula(y ~ M, d)$x[1:3, ]
  frame_of <- function(M) {
    new <- data.frame(y = seq_len(nrow(M)))
    new[c("M", "N")] <- list(M, M)
    new
  }
  rows <- function(M) new_inputs(fit, frame_of(M))$x
  expect_identical(rows(d$M[1:3, 2:1]), here)
  expect_identical(rows(unname(d$M[1:3, ])), here)
  expect_input_error(rows(cbind(p = 1, r = 2)), "lacks the columns `q`")
  unnamed <- fit_of(by_formula(y ~ unname(M), d))
  expect_identical(unname(new_inputs(unnamed, d[1:3, ])$x), unname(here))
  d$N <- unname(d$M)
  expect_identical(unname(new_inputs(fit_of(by_formula(y ~ N, d)), frame_of(d$M[1:3, ]))$x), unname(here))
  curved <- gp_exact(y ~ exp(M), d, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed")
  added <- d[1:2, ]
  added$M <- added$M[, 2:1]
  both <- add_rows(curved, added)
  expect_equal(utils::tail(fitted(both), 2), utils::tail(fitted(add_rows(curved, d[1:2, ])), 2))
  expect_identical(unname(utils::tail(kept_variables(both)$M, 2)), unname(d$M[1:2, ]))
})

test_that("any part of a formula that depends on all rows keeps its value, or new rows are refused", {
  set.seed(2)
  d <- data.frame(x = runif(40, 3, 9), z = rnorm(40), g = rep_len(c("b", "a", "c"), 40), k = rep_len(1:5, 40))
  d$y <- sin(d$x) + 0.1 * rnorm(40)
  d$w <- d$x / mean(d$x)
  fixed <- function(formula, data = d, ...) {
    eval(bquote(pfdtc(formula, data, hyper = "fixed", kernel = kernel_se(1, 1), noise = 0.1,
                      ..(as.list(substitute(list(...)))[-1L])), splice = TRUE))
  }
  for (formula in c(y ~ I(x - max(x)), y ~ I(x / length(x)), y ~ I(scale(x)), y ~ poly(x, 2)[, 1],
                    log(y + 2) ~ scale(x)[, 1], y ~ as.vector(table(g)[g]), y ~ pmin(x, sum(x[z > 0]) / 20),
                    y ~ x + offset(z / var(z)),
                    y ~ as.integer(cut(k, quantile(k, 0:2 / 2), include.lowest = TRUE)))) {
    expect_no_warning(fit <- fixed(formula))
    expect_equal(predict(fit, d[3, ]), predict(fit)[3])
    expect_equal(predict(fit, d[5:4, ]), predict(fit)[5:4])
  }
  refused <- function(fit, again, ...) {
    expect_error(again(fit, d[3:5, ]), class = "pfdtc_error_input", ...)
  }
  for (formula in c(y ~ rank(x), y ~ ave(x, g), y ~ I(x - ave(x, g)), y ~ cumsum(x), y ~ rev(x), y ~ cut(x, 5),
                    y ~ order(x), y ~ findInterval(x, sort(x)), y ~ match(x, unique(x)), y ~ seq_along(x),
                    y ~ as.integer(factor(g)), y ~ I(c(0, x[-length(x)])), y ~ jitter(x), y ~ fitted(lm(z ~ x)),
                    y ~ x + offset(rank(x)))) {
    expect_warning(fit <- fixed(formula), "no predictions at new rows", class = "pfdtc_warning_undefined")
    expect_length(predict(fit, interval = "prediction"), 120L)
    refused(fit, predict, "in `newdata` alone differ")
    refused(fit, add_rows, "in `newdata` alone differ")
  }
  expect_warning(fit <- fixed(y ~ x, offset = rank(z)), class = "pfdtc_warning_undefined")
  refused(fit, predict, "has values for the training rows only")
  expect_no_warning(fit <- fixed(rank(y) ~ x, weights = ave(w)))
  expect_equal(predict(fit, d[3:5, ]), predict(fit)[3:5])
  refused(fit, add_rows, "`rank(y)` and `weights`", fixed = TRUE)
})

test_that("added rows have the numbers of the fit in weights, and need no variables of which only numbers are left", {
  d <- data.frame(x = (1:20 * 7) %% 20 / 20, v = 1:20, z = 20:1, y = cos(1:20))
  d$w <- d$v / mean(d$v)
  d$u <- d$x - mean(d$z)
  fit_of <- function(...) pfdtc(..., hyper = "fixed", kernel = kernel_se(1, 1), noise = 0.1)
  a <- add_rows(fit_of(y ~ I(x - mean(z)), d, weights = v / mean(v)), d[15:20, c("x", "y", "v")])
  b <- add_rows(fit_of(y ~ u, d, weights = w), d[15:20, ])
  expect_equal(predict(a, d["x"]), predict(b, d))
  y <- stats::setNames(d$y, letters[1:20])
  x <- d$x
  new <- data.frame(x = x[3:5])
  expect_equal(predict(fit_of(y ~ I(x - mean(x))), new), predict(fit_of(y ~ x), new))
})
