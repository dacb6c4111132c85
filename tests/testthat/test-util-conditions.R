test_that("an input error has its class, the argument and the value it got", {
  e <- tryCatch(abort_input("m", 0, "a whole number from 1 to 100"), error = identity)
  expect_s3_class(e, c("pfdtc_error_input", "error", "condition"), exact = TRUE)
  expect_identical(e$argument, "m")
  expect_identical(e$got, "0")
  expect_identical(conditionMessage(e), "`m` must be a whole number from 1 to 100; it is 0.")
})

test_that("a string is used as the description, and a hint follows as its own sentence", {
  e <- tryCatch(abort_input("x", "NaN", "finite", hint = "Leave it out.", where = "row 3"), error = identity)
  expect_identical(conditionMessage(e), "`x` must be finite; row 3 is NaN. Leave it out.")
  e <- tryCatch(abort_input("x", "has no rows"), error = identity)
  expect_identical(conditionMessage(e), "`x` has no rows.")
  e <- tryCatch(abort_input("x", "text", "", message = "All of it."), error = identity)
  expect_identical(conditionMessage(e), "All of it.")
})

test_that("values are described in a few words", {
  got <- function(x) tryCatch(abort_input("a", x, "b"), error = function(e) e$got)
  expect_identical(got(NULL), "NULL")
  expect_identical(got(c(1.5, 2)), "c(1.5, 2)")
  expect_identical(got(1:3 + 0L), "c(1, 2, 3)")
  expect_identical(got(c("a", NA)), "c(\"a\", NA)")
  expect_identical(got(numeric(0)), "a numeric vector of length 0")
  expect_identical(got(1:100), "an integer vector of length 100")
  expect_identical(got(matrix(0, 2, 3)), "a 2 x 3 numeric matrix")
  expect_identical(got(array(FALSE, c(1, 2, 3))), "a 1 x 2 x 3 logical array")
  expect_identical(got(data.frame(a = 1)), "a data frame with 1 row and 1 column")
  expect_identical(got(gl(2, 3)), "a factor of length 6")
  expect_identical(got(list(1, 2)), "a list of length 2")
  expect_identical(got(Sys.Date()), "an object of class \"Date\"")
  expect_identical(got(mean), "a function")
  expect_identical(got(quote(a + b)), "a + b")
  expect_lte(nchar(got(strrep("a", 1000))), 1000)
  expect_lte(nchar(got(c(strrep("a", 1000), "b"))), 60)
})

test_that("numerical errors and convergence warnings have their classes and fields", {
  e <- tryCatch(abort_numerical("no factor", jitter = 1e-4), error = identity)
  expect_s3_class(e, c("pfdtc_error_numerical", "error", "condition"), exact = TRUE)
  expect_identical(e$jitter, 1e-4)
  w <- tryCatch(warn_convergence("stopped", evaluations = 3), warning = identity)
  expect_s3_class(w, c("pfdtc_warning_convergence", "warning", "condition"), exact = TRUE)
  expect_identical(w$evaluations, 3)
})

test_that("the call is that of the package's outermost function, shortened if it contains data", {
  home <- topenv(environment(user_call))
  door <- function(m, x = NULL) check_count(m, "m")
  environment(door) <- home
  f <- function() door(m = 0)
  environment(f) <- list2env(list(door = door), parent = baseenv())
  skip_if(identical(home, globalenv()), "the package is not loaded as a namespace")
  e <- tryCatch(f(), error = identity)
  expect_identical(conditionCall(e), quote(door(m = 0)))
  e <- tryCatch(do.call("door", list(m = 0, x = stats::rnorm(1e4))), error = identity)
  expect_identical(conditionCall(e), quote(door(m = 0, x = `<a numeric vector of length 10000>`)))
})

test_that("lists of names have 'and' before the last, and long ones end in a number", {
  expect_identical(list_quoted("a"), "`a`")
  expect_identical(list_quoted(c("a", "b", "c")), "`a`, `b` and `c`")
  expect_identical(list_quoted(letters[1:4], "\"", most = 2), "\"a\", \"b\" and 2 more")
})

test_that("data that do.call() puts into a call are not shown, in errors or by print()", {
  x <- matrix(0.123456, 30, 2)
  kept <- quote(pfdtc(y ~ x[1, ], cars, m = 4, control = list(maxit = -1L), f = function(a) a + 1))
  expect_identical(shown_call(kept), kept)
  call <- as.call(list(pfdtc, x, y = numeric(9), m = c(1, 2), kernel = kernel_se(), z = quote(f(a))))
  call$z[[2]] <- x
  text <- deparse_shown(call)
  expect_match(text, "pfdtc(<a 30 x 2 numeric matrix>, y = <a numeric vector of length 9>, m = c(1, 2), kernel = ",
               fixed = TRUE)
  expect_match(text, "z = f(<a 30 x 2 numeric matrix>))", fixed = TRUE)
  raised <- tryCatch(do.call(pfdtc, list(x, seq_len(30), m = "a")), error = identity)
  expect_lt(nchar(paste(deparse(conditionCall(raised)), collapse = "")), 200)
  expect_match(deparse(conditionCall(raised))[1], "^pfdtc")
  fit <- do.call(gp_dtc, list(dist ~ speed, cars, m = 3, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed"))
  said <- utils::capture.output(print(fit), print(summary(fit)))
  expect_false(any(grepl("structure(", said, fixed = TRUE)))
  expect_identical(fit$call$data, cars) # update() needs the data
})

test_that("a similar name is suggested; without one, all known names are listed", {
  expect_match(did_you_mean("spead", c("dist", "speed")), "`speed`?", fixed = TRUE)
  expect_false(grepl("dist", did_you_mean("spead", c("dist", "speed"))))
  for (name in c("dist", "speed")) expect_match(did_you_mean("weight", c("dist", "speed")), name)
})
