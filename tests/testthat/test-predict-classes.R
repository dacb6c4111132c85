test_that("fits of iris predict, print and certify", {
  rows <- c(seq(1, 150, by = 3), 71, 120)
  fit <- pfdtc(Species ~ Petal.Length + Petal.Width, iris[rows, ], family = multinomial(), kernel = kernel_se())
  new <- iris[c(1, 71, 120), ]
  p <- predict(fit, new, type = "response")
  expect_identical(dimnames(p), list(c("1", "71", "120"), levels(iris$Species)))
  expect_equal(unname(rowSums(p)), rep(1, 3), tolerance = 1e-12)
  expect_identical(predict(fit, new, type = "class")[["1"]], factor("setosa", levels(iris$Species)))
  expect_gt(mean(predict(fit, type = "class") == iris$Species[rows]), 0.9)
  expect_equal(unname(predict(fit, new, type = "density")), unname(log(p[cbind(1:3, c(1, 2, 3))])), tolerance = 1e-12)
  expect_identical(fitted(fit), predict(fit, type = "response"))
  expect_output(print(summary(fit)), "3 classes")
  said <- function(fit, new) paste(capture.output(print(certify(fit, new, effort = "fast"))), collapse = " ")
  of_classes <- said(fit, new)
  expect_match(of_classes, "at the mode")
  expect_match(of_classes, "mean +of f; its +probabilities differ +from `response` +by up to")
  counts <- said(pfdtc(dist ~ speed, cars, family = poisson(), kernel = kernel_se(9, 1), hyper = "fixed"), cars[1:2, ])
  expect_match(counts, "at the mode")
  for (text in c(of_classes, counts)) expect_no_match(text, "times the sd") # f is in other units than the response
  expect_no_match(counts, "posterior mean *of f: its probabilities differ") # predict() stays at the mode
  expect_error(predict(fit, new, type = "prob"), "response", class = "pfdtc_error_input")
})

test_that("classes of an ordered factor are an ordered factor, whatever the family", {
  d <- data.frame(x = seq(0, 1, length.out = 40), three = ordered(rep(c("lo", "mid", "hi"), c(14, 13, 13)),
                                                                   c("lo", "mid", "hi")))
  d$two <- ordered(d$three == "hi", labels = c("no", "yes"))
  for (case in list(list("three", multinomial()), list("two", binomial()), list("three", ordinal()))) {
    fit <- pfdtc(stats::reformulate("x", case[[1L]]), d, family = case[[2L]], kernel = kernel_se(0.3, 4),
                 hyper = "fixed")
    given <- d[[case[[1L]]]]
    fewer <- drop_rows(fit, 1:2)
    for (one in list(fit, fewer, add_rows(fewer, d[1:2, ]), update(fewer, hyper = "fixed"))) {
      expect_identical(unname(predict(one, d[1, ], type = "class")), given[1L])
      expect_identical(class(simulate(one, 1, seed = 1)$sim_1), class(given))
    }
  }
})

test_that("leave-one-out probabilities of ordered and unordered classes are padded for rows that are missing", {
  d <- data.frame(x = seq(0, 1, length.out = 30), y = factor(rep(c("u", "v", "w"), 10)))
  d$x[3] <- NA
  for (ordered in c(FALSE, TRUE)) {
    d$y <- factor(d$y, ordered = ordered)
    fit <- pfdtc(y ~ x, d, family = if (ordered) ordinal() else multinomial(), kernel = kernel_se(0.2, 2),
                 hyper = "fixed", na.action = na.exclude)
    loo <- predict(fit, type = "loo", se.fit = TRUE)
    for (part in loo) {
      expect_identical(dim(part), c(30L, 3L))
      expect_true(all(is.na(part[3, ])) && !anyNA(part[-3, ]))
    }
    expect_equal(unname(rowSums(loo$fit)[-3]), rep(1, 29), tolerance = 1e-9)
  }
})

test_that("rows without a leave-one-out probability are left out together with their class", {
  d <- data.frame(x = seq(0, 1, length.out = 30), y = factor(rep(c("u", "v", "w"), 10)), w = rep(c(0, 1), c(2, 28)))
  fit <- pfdtc(y ~ x, d, family = multinomial(), kernel = kernel_se(0.2, 2), hyper = "fixed", weights = w)
  rows <- loo_rows(fit)
  rows$mean[5, ] <- NaN
  shares_of <- loo_shares
  environment(shares_of) <- list2env(list(loo_rows = function(fit) rows), parent = environment(loo_shares))
  shares <- shares_of(fit)
  expect_identical(shares$y, as.double(as.integer(d$y)[-c(1, 2, 5)]))
  expect_identical(nrow(shares$p), 27L)
})

test_that("residuals, intervals, sets and draws have the documented shapes", {
  case <- data.frame(x = seq(0, 1, length.out = 60))
  set.seed(2)
  case$y <- factor(sample(c("u", "v", "w"), 60, TRUE))
  case$y[3] <- NA
  fit <- pfdtc(y ~ x, case, family = multinomial(), kernel = kernel_se(0.2, 2), hyper = "fixed", na.action = na.exclude)
  r <- residuals(fit)
  expect_identical(dim(r), c(60L, 3L))
  expect_true(all(is.na(r[3, ])))
  expect_equal(unname(rowSums(r)[-3]), rep(0, 59), tolerance = 1e-12)
  expect_length(residuals(fit, "deviance"), 60)
  p <- predict(fit, data.frame(x = c(0.5, NA)), type = "response", interval = "credible", level = 0.9)
  expect_identical(dim(p), c(2L, 3L, 3L))
  expect_true(all(p[1, "lwr", ] < p[1, "upr", ]) && all(is.na(p[2, , ])))
  sets <- predict(fit, data.frame(x = 0.5), type = "class", interval = "prediction", level = 0.8)
  expect_gte(attr(sets, "probability"), 0.8)
  expect_true(predict(fit, data.frame(x = 0.5), type = "class", interval = "conformal")[1, predict(
    fit, data.frame(x = 0.5), type = "class")])
  grid <- data.frame(x = c(0.1, 0.5, 0.9))
  p <- predict(fit, grid, type = "response")
  for (level in c(0.5, 0.8)) { # classes inside are at least as probable as those outside, in every row
    inside <- predict(fit, grid, type = "class", interval = "conformal", level = level)
    expect_true(all(apply(ifelse(inside, p, Inf), 1, min) >= apply(ifelse(inside, -Inf, p), 1, max)))
  }
  expect_gt(sum(predict(fit, grid, type = "class", interval = "conformal", level = 0.8)), 3)
  draws <- simulate(fit, 200, seed = 1, newdata = data.frame(x = c(0.2, 0.9)))
  expect_identical(dim(draws), c(2L, 200L))
  p <- predict(fit, data.frame(x = c(0.2, 0.9)), type = "response")
  share <- rowMeans(draws == "u")
  expect_lt(max(abs(share - p[, "u"])), 4 * 0.5 / sqrt(200)) # four standard errors
  expect_identical(simulate(fit, 2, seed = 3), simulate(fit, 2, seed = 3))
})

test_that("methods that fits of several classes lack are refused by name", {
  fit <- pfdtc(Species ~ Petal.Length, iris, family = multinomial(), kernel = kernel_se(2, 5), hyper = "fixed")
  for (call in expression(rstandard(fit), cooks.distance(fit), predict(fit, type = "terms"), residuals(fit, "pit"),
                          predict(fit, iris[1, ], interval = "prediction"))) {
    expect_error(eval(call), class = "pfdtc_error_input")
  }
  # The hint names settings that work.
  expect_error(predict(fit, iris[1, ], interval = "prediction"), "type = \"response\" gives intervals", fixed = TRUE)
  expect_true(all(is.finite(predict(fit, iris[1, ], interval = "credible", type = "response"))))
  bad <- function(...) expect_error(pfdtc(...), class = "pfdtc_error_input")
  bad(Sepal.Width ~ Petal.Length, iris, family = multinomial())
  bad(factor(rep("a", 150)) ~ Petal.Length, iris, family = multinomial())
  bad(Species ~ Petal.Length, iris, family = multinomial(), approx = "vi")
  bad(Species ~ Petal.Length, iris, family = multinomial(), neighbours = 5)
  bad(Species ~ Petal.Length, iris, family = multinomial(), offset = rep(1, 150))
  expect_error(predict(fit, data.frame(Petal.Length = 1, Species = "rose"), type = "density"), "rose")
})

test_that("levels without rows are dropped, and classes separated by a line have a finite fit", {
  y <- factor(mtcars$gear, 3:6)
  fit <- pfdtc(cbind(wt = mtcars$wt), y, family = multinomial(), kernel = kernel_se(1, 2), hyper = "fixed")
  expect_identical(colnames(predict(fit, type = "response")), c("3", "4", "5"))
  x <- data.frame(x = c(1:20, 31:50, 61:80), y = factor(rep(c("a", "b", "c"), each = 20)))
  fit <- pfdtc(y ~ x, x, family = multinomial(), kernel = kernel_se())
  expect_true(all(is.finite(coef(fit))))
  expect_identical(unname(predict(fit, type = "class")), x$y)
})

test_that("with many classes hyperparameters come from those with most rows, and all have a probability", {
  set.seed(4)
  d <- data.frame(x = stats::runif(150, 0, 14))
  d$y <- factor(letters[ceiling(d$x)])
  kernel <- kernel_se(0.6, 10)
  expect_message(fit <- pfdtc(y ~ x, d, family = multinomial(), kernel = kernel, hyper = "fixed", m = 20), "12 classes",
                 class = "pfdtc_message_classes")
  kept <- names(sort(-table(d$y)))[1:12] # sort() keeps the order of equal numbers
  part <- droplevels(d[d$y %in% kept, ])
  own <- pfdtc(y ~ x, part, family = multinomial(), kernel = kernel, hyper = "fixed", m = 20)
  expect_equal(diff(fit$center[kept]), diff(own$center[kept]), tolerance = 1e-10)
  expect_identical(dim(predict(fit, d[1:3, ], type = "response")), c(3L, 14L))
  expect_gt(mean(predict(fit, type = "class") == d$y), 0.8)
})

test_that("a hundred classes have probabilities, and a message comes before too many points for memory or time", {
  set.seed(5)
  d <- data.frame(x = stats::runif(100), y = factor(1:100))
  kernel <- kernel_se(0.02, 30)
  fit <- pfdtc(y ~ x, d, family = multinomial(), kernel = kernel, hyper = "fixed", center = FALSE, m = 2)
  p <- predict(fit, d[1:2, ], type = "response")
  expect_identical(ncol(p), 100L)
  expect_equal(unname(rowSums(p)), c(1, 1), tolerance = 1e-12)
  old <- options(pfdtc.max_memory = 1e7)
  on.exit(options(old))
  expect_error(pfdtc(y ~ x, d, family = multinomial(), kernel = kernel, hyper = "fixed", center = FALSE, m = 30),
               "classes", class = "pfdtc_error_input")
  options(pfdtc.max_memory = 2^34)
  expect_message(check_size_of_classes(99L, 100L, 1000L), "minutes", class = "pfdtc_message_classes")
  expect_silent(check_size_of_classes(10L, 100L, 1000L))
})

test_that("intervals of nearly certain classes are those of their log odds, also if 1 - p is 0 in double precision", {
  odds <- rbind(c(-60, -80), c(60, -80), c(-900, -950), c(900, 0), c(0.3, -0.7), c(30, 30))
  var <- matrix(c(900, 400, 400, 1600), nrow(odds), 4, byrow = TRUE)
  ends <- class_ends(NULL, list(mean = odds, var = var), FALSE, 0.9)
  expect_false(anyNA(unlist(ends)))
  f <- cbind(0, odds)
  for (i in seq_len(nrow(f))) {
    for (k in 1:3) {
      others <- f[i, -k]
      share <- exp(others - max(others)) / sum(exp(others - max(others)))
      c <- append(-share, 1, k - 1)[-1]
      half <- stats::qnorm(0.95) * sqrt(drop(c %*% matrix(var[i, ], 2) %*% c))
      middle <- f[i, k] - max(others) - log(sum(exp(others - max(others))))
      expect_equal(c(ends$lwr[i, k], ends$upr[i, k]), stats::plogis(middle + c(-1, 1) * half), tolerance = 1e-12)
    }
  }
  one <- class_ends(NULL, list(mean = odds[1, , drop = FALSE], var = var[1, , drop = FALSE]), FALSE, 0.9)
  expect_identical(one, lapply(ends, function(end) end[1, , drop = FALSE]))
})

test_that("credible intervals of classes far apart contain the probability, certified or not", {
  only_nightly()
  d <- with_seed(3, data.frame(x = c(stats::rnorm(8), stats::rnorm(8, 20), stats::rnorm(8, 40))))
  d$class <- gl(3, 8)
  kernel <- kernel_linear(100) + kernel_constant(100)
  fit <- pfdtc(class ~ x, d, family = multinomial(), kernel = kernel, hyper = "fixed")
  new <- data.frame(x = c(-3e4, 15, 300))
  for (certified in c(FALSE, TRUE)) {
    p <- predict(fit, new, type = "response", interval = "credible", certified = certified)
    expect_false(anyNA(p))
    expect_true(all(p[, "lwr", ] <= p[, "fit", ] & p[, "fit", ] <= p[, "upr", ]))
  }
})
