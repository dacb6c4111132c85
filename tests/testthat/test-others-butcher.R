test_that("a butchered fit has the same predictions to the bit, and is small", {
  skip_if_not_installed("butcher")
  hidden <- local({
    heavy <- runif(1e5)
    data <- data.frame(x = seq(0, 6, length.out = 400))
    data$y <- sin(data$x)
    f <- y ~ x
    pfdtc(f, data, m = 8, neighbours = 0, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed")
  })
  new <- data.frame(x = c(0.3, 2))
  small <- butcher::butcher(hidden)
  expect_null(small$data)
  all_of <- function(fit) predict(fit, new, se.fit = TRUE, full_cov = TRUE)
  expect_identical(all_of(small), all_of(hidden))
  size <- function(fit) length(serialize(fit, NULL))
  expect_gt(size(hidden), 8e5)                # the environment of the formula
  expect_lt(size(small), 3e4)
  expect_error(residuals(small), class = "pfdtc_error_input")
  expect_output(print(small), "8")
  expect_identical(butcher::axe_data(small), small)
})

test_that("rows that predictions need stay", {
  skip_if_not_installed("butcher")
  data <- smooth_data(50)
  near <- fit_fixed(data, neighbours = 5)
  exact <- gp_exact(data$x, data$y, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed")
  new <- data$x[1:3, ] + 0.1
  for (fit in list(near, exact)) {
    expect_identical(predict(butcher::butcher(fit), new, se.fit = TRUE), predict(fit, new, se.fit = TRUE))
  }
  expect_null(butcher::butcher(exact)$data)
})

test_that("a butchered fit keeps its reference, without the rows", {
  skip_if_not_installed("butcher")
  fit <- fit_cars()
  fit$reference <- reference(fit, m2 = 10)
  small <- butcher::butcher(fit)
  expect_null(small$reference$data)
  new <- data.frame(speed = c(5, 12))
  inside <- certify(small, new)
  expect_true(all(inside$sd_lower <= inside$sd_upper))
})

test_that("vetiver serves the results of predict()", {
  skip_if_not_installed("vetiver")
  fit <- pfdtc(y ~ a + f + l, small_data(20), m = 6, kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed",
               neighbours = 0)
  v <- vetiver::vetiver_model(fit, "mixed")
  expect_identical(names(v$prototype), c("a", "f", "l"))
  expect_identical(levels(v$prototype$f), levels(droplevels(small_data(20)$f)))     # the levels that the fit has seen
  expect_identical(v$metadata$required_pkgs, "pfdtc")
  new <- small_data(3, seed = 4)[c("a", "f", "l")]
  sent <- transform(new, f = as.character(f))     # as JSON has it
  expect_equal(vetiver::handler_predict(v)(list(body = sent))$.pred, unname(predict(fit, new)))
  band <- vetiver::handler_predict(v, interval = "prediction")(list(body = sent))
  expect_equal(do.call(cbind, unname(band)), predict(fit, new, interval = "prediction"), ignore_attr = TRUE)

  curved <- pfdtc(dist ~ log(speed), cars, m = 6, kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed")
  expect_input_error(vetiver::vetiver_model(curved, "log"), "prototype_data")
  expect_identical(names(vetiver::vetiver_model(curved, "log", prototype_data = cars["speed"])$prototype), "speed")
  expect_identical(names(vetiver::vetiver_ptype(fit_fixed())), fit_fixed()$frame$columns)
})

test_that("butchered fits of classes and counts predict, and are certified by their reference", {
  fit <- pfdtc(am ~ wt + hp, mtcars, family = binomial(), kernel = kernel_se(c(1, 80), 4), hyper = "fixed", m = 8)
  fit$reference <- reference(fit, 20)
  small <- axe_env.gp_fit(axe_data.gp_fit(axe_fitted.gp_fit(axe_call.gp_fit(fit))))
  expect_null(small$data)
  expect_identical(predict(small, mtcars, type = "response"), predict(fit, mtcars, type = "response"))
  expect_equal(certify(small, mtcars[1:2, ])$mean_upper, certify(fit, mtcars[1:2, ])$mean_upper)
  expect_output(print(small), "binomial")
})
