# Copies of rows: bootstrap samples and merged tables. Rows that repeat inputs with other responses are no copies.

test_that("copies are recognised, and true repeats, whole numbers and grades are not", {
  found <- function(x, y) {
    x <- as.matrix(x)
    copies_of(y, equal_rows(x))
  }
  boot <- with_seed(1, sample(150, 150, replace = TRUE))
  x <- with_seed(2, matrix(stats::rnorm(300), 150))
  y <- with_seed(3, stats::rnorm(150))
  expect_identical(found(x[boot, ], y[boot]), match(boot, unique(boot)))
  expect_null(found(x, y))
  expect_null(found(cars$speed, cars$dist))
  expect_null(found(as.integer(InsectSprays$spray), InsectSprays$count))
  cells <- with_seed(4, sample(4, 1000, TRUE))
  expect_null(found(cells, with_seed(5, sample(5, 1000, TRUE))))
  expect_null(found(cells, cells)) # a response that its cell determines has few values
  mostly <- with_seed(7, ifelse(stats::runif(1000) < 0.8, 0, sample(9, 1000, TRUE)))
  expect_null(found(cells, mostly)) # so often 0 that two rows agree by chance
  rounded <- with_seed(6, round(10 * rep(1:20, 10) / 20 + stats::rnorm(200)))
  expect_null(found(rep(1:20, 10), rounded))
})

test_that("copies of rows leave what is learned as it is without them, with a message, and weigh in predictions", {
  set.seed(1)
  boston <- MASS::Boston
  i <- sample(506, 150)
  s <- boston[sample(i, replace = TRUE), ]
  held <- boston[-i, ]
  expect_message(fit <- pfdtc(medv ~ ., s, control = list(progress = FALSE)), "copies", class = "pfdtc_message_copies")
  expect_no_message(once <- pfdtc(medv ~ ., unique(s), control = list(progress = FALSE)))
  # the noise is a share of the variance as without copies; with each copy as news it was 1.2e-5
  expect_gt(fit$noise / stats::var(s$medv), 0.01)
  expect_equal(fit$noise, once$noise, tolerance = 0.5) # the response's units differ a little
  p <- predict(fit, held, interval = "prediction")
  expect_gt(mean(held$medv >= p[, "lwr"] & held$medv <= p[, "upr"]), 0.85)
  expect_lt(-mean(predict(fit, held, type = "density")), 3.1) # 5.47 with each copy as news; lm() 3.15
  expect_identical(fit$nobs, 150L)
  # a copy would be predicted by its twin: copies share a fold, and leave-one-out has a message
  fold <- attr(suppressMessages(cross_validate(fit, folds = 5, hyper = "held")), "predictions")$fold
  copy <- copies_in(fit$data)
  expect_true(all(tapply(fold, copy, function(v) length(unique(v))) == 1L))
  expect_identical(max(copy), nrow(unique(s)))
  expect_message(residuals(fit, type = "loo"), class = "pfdtc_message_copies")
})

test_that("each (x, y) counts once in learning, with the mean weight of its copies", {
  x <- with_seed(1, matrix(stats::rnorm(20)))
  y <- with_seed(2, stats::rnorm(20))
  i <- c(1:20, 1:8, 1:3)
  w <- seq(0.5, 2, length.out = 31)
  data <- without_copies(data_from_matrix(x[i, , drop = FALSE], y[i], weights = w))
  expect_identical(c(data$copies, data$n), c(11L, 20L))
  expect_equal(data$y, (y - data$center) / data$scale)
  expect_equal(unname(data$x), x)
  expect_equal(data$weights, as.vector(tapply(w, i, mean)))
  # rows that repeat a copy's inputs with another response stay
  twin <- without_copies(data_from_matrix(x[c(i, 20), , drop = FALSE], c(y[i], 9)))
  expect_identical(twin$n, 21L)
})

test_that("families and given working responses never take repeats for copies", {
  d <- data.frame(x = rep(1:20, 3), y = rep(with_seed(1, stats::rpois(20, 1:20)), 3))
  expect_no_message(pfdtc(y ~ x, d, family = poisson(), control = list(progress = FALSE)))
})
