test_that("an input error carries its class, the argument and what it got", {
  e <- tryCatch(abort_input("m", 0, "a whole number from 1 to 100"), error = identity)
  expect_s3_class(e, c("pfdtc_error_input", "error", "condition"), exact = TRUE)
  expect_identical(e$argument, "m")
  expect_identical(e$got, "0")
  expect_identical(conditionMessage(e), "`m` must be a whole number from 1 to 100, not 0.")
})

test_that("a string is a description made already; a hint follows as its own sentence", {
  e <- tryCatch(abort_input("x", "NaN in row 3", "finite", hint = "Leave it out."),
                error = identity)
  expect_identical(conditionMessage(e), "`x` must be finite, not NaN in row 3. Leave it out.")
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

test_that("numerical errors and convergence warnings have their class and fields", {
  e <- tryCatch(abort_numerical("no factor", jitter = 1e-4), error = identity)
  expect_s3_class(e, c("pfdtc_error_numerical", "error", "condition"), exact = TRUE)
  expect_identical(e$jitter, 1e-4)
  w <- tryCatch(warn_convergence("stopped", evaluations = 3), warning = identity)
  expect_s3_class(w, c("pfdtc_warning_convergence", "warning", "condition"), exact = TRUE)
  expect_identical(w$evaluations, 3)
})

test_that("the call is that of the package's outermost function, cut when data are spliced in", {
  home <- topenv(environment(user_call))
  door <- function(m, x = NULL) check_count(m, "m")
  environment(door) <- home
  f <- function() door(m = 0)
  environment(f) <- list2env(list(door = door), parent = baseenv())
  skip_if(identical(home, globalenv()), "the package is not loaded as a namespace")
  e <- tryCatch(f(), error = identity)
  expect_identical(conditionCall(e), quote(door(m = 0)))
  e <- tryCatch(do.call("door", list(m = 0, x = stats::rnorm(1e4))), error = identity)
  expect_identical(conditionCall(e), quote(door()))
})

test_that("lists of names end in 'and', and long ones in a number", {
  expect_identical(list_quoted("a"), "`a`")
  expect_identical(list_quoted(c("a", "b", "c")), "`a`, `b` and `c`")
  expect_identical(list_quoted(letters[1:4], "\"", most = 2), "\"a\", \"b\" and 2 more")
})
