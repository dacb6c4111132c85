small_fit <- function(d, ..., keep_data = TRUE, method = pfdtc, m = 15) {
  set.seed(5)
  method(y ~ a + b + f + offset(o), d, weights = w, center = FALSE, scale = FALSE, noise = 0.04, hyper = "fixed",
         kernel = kernel_matern(3 / 2, lengthscale = c(0.5, 1, 1, 1, 1), variance = 1),
         inducing = cbind(runif(m), rnorm(m), matrix(rbinom(3 * m, 1, 0.3), m)), keep_data = keep_data, ...)
}

# Returns rows whose first rows have all levels of f.
growing_rows <- function() {
  d <- mixed_rows(160, seed = 6)
  d <- d[1:160, ]
  d$f[159] <- "a"
  d
}

expect_same_fit <- function(a, b, new, tolerance = 1e-9) {
  expect_equal(predict(a, new, se.fit = TRUE), predict(b, new, se.fit = TRUE), tolerance = tolerance)
  expect_equal(a$evidence, b$evidence, tolerance = tolerance)
  expect_equal(a$nobs, b$nobs)
  expect_equal(a$signature$sums, b$signature$sums, tolerance = 1e-10)
  if (!is.null(a$data)) {
    expect_equal(unname(fitted(a)), unname(fitted(b)), tolerance = tolerance)
    expect_equal(unname(residuals(a)), unname(residuals(b)), tolerance = tolerance)
    expect_equal(unname(weights(a)), unname(weights(b)))
  }
}

test_that("adding rows gives the fit to all rows, for fits of every kind", {
  d <- growing_rows()
  new <- d[c(1:4, 17, 150:160), ]
  for (method in list(pfdtc, gp_dtc, gp_sor, gp_fitc)) for (keep_data in c(TRUE, FALSE)) {
    control <- list(maxit = 0)
    first <- small_fit(d[1:100, ], keep_data = keep_data, method = method, control = control)
    whole <- small_fit(d, keep_data = keep_data, method = method, control = control)
    more <- add_rows(add_rows(first, d[101:101, ]), d[102:160, ])
    expect_same_fit(more, whole, new)
    expect_equal(more$added, whole$nobs - first$nobs)
    expect_identical(add_rows(first, d[0, ]), first)
    expect_same_fit(add_rows(first, in_blocks(d[101:160, ], c(0, 1, 59))), whole, new)
  }
  exact <- function(d) {
    gp_exact(y ~ a + b, d, weights = w, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed", center = FALSE,
             scale = FALSE)
  }
  expect_same_fit(add_rows(exact(d[1:100, ]), d[101:160, ]), exact(d), new)
  x <- as.matrix(d[c("a", "b")])[-c(17, 40, 41), ]
  y <- d$y[-c(17, 40, 41)]
  of <- function(i) {
    pfdtc(x[i, ], y[i], weights = i %% 3, offset = i / 100, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed",
          center = FALSE, scale = FALSE, inducing = x[1:9, ], control = list(maxit = 0))
  }
  i <- 101:157
  more <- add_rows(of(1:100), list(x = x[i, ], y = y[i], weights = i %% 3, offset = i / 100))
  expect_same_fit(more, of(1:157), x[1:3, ])
})

test_that("places keep their class in the model frame after rows were added or removed", {
  d <- data.frame(lon = 1:20, lat = sin(1:20), y = cos(1:20))
  fit <- pfdtc(y ~ sphere(lon, lat), d, kernel = kernel_se(500, 1), noise = 0.1, hyper = "fixed")
  rows <- list(d[c(1:20, 1:2), ], d[-(1:3), ])
  for (i in 1:2) {
    other <- if (i == 1) add_rows(fit, d[1:2, ]) else drop_rows(fit, 1:3)
    expect_equal(model.frame(other)[[2]], with(rows[[i]], sphere(lon, lat)))
  }
})

test_that("a fit without weights whose noise varies has no weights after rows were added or removed", {
  data <- small_data(40)
  fit <- pfdtc(y ~ a, data, noise = ~ a, kernel = kernel_se(), control = pfdtc_control(restarts = 1))
  for (other in list(add_rows(fit, data[1:2, ]), drop_rows(fit, 1:3))) {
    expect_null(weights(other))
    expect_no_warning(predict(other, data[1, ], interval = "prediction"))
  }
  weighted <- update(fit, weights = rep(1:2, 20))
  expect_equal(unname(weights(drop_rows(weighted, 1:3))), rep(1:2, 20)[-(1:3)])
})

test_that("rows that are added come last in the order of the neighbours' rows", {
  d <- growing_rows()
  first <- small_fit(d[1:100, ], neighbours = 6)
  more <- add_rows(first, d[101:160, ])
  data <- more$data
  expect_identical(sort(more$near$rank), seq_len(nrow(data$x)))
  old <- seq_len(nrow(first$data$x))
  expect_identical(data$x[old, ], first$data$x)
  expect_identical(more$near$rank[old], first$near$rank) # new rows come after the old ones
  set.seed(1)
  whole <- small_fit(d, neighbours = 6)
  by_rank <- near_posterior(whole$data, whole$inducing, model_of(whole), 6, 6, more$near$rank, whole$jitter)
  expect_equal(more$near[c("L", "C", "beta")], by_rank[c("L", "C", "beta")], tolerance = 1e-10)
  whole$near <- by_rank
  whole$evidence <- evidence_of("near", model_of(whole), whole$data, by_rank)
  expect_same_fit(more, whole, d[1:9, ])
})

test_that("a reference is extended with the added rows, or removed with a message", {
  d <- growing_rows()
  fit <- small_fit(d[1:100, ], control = list(maxit = 0))
  fit$reference <- reference(fit, m2 = 40)
  more <- add_rows(fit, d[101:160, ])
  expect_equal(more$reference$inducing, fit$reference$inducing)
  certificate <- certify(more, d[1:20, ])
  exact <- gp_exact(y ~ a + b + f + offset(o), d, weights = w, center = FALSE, scale = FALSE, noise = 0.04,
                    hyper = "fixed", kernel = more$kernel)
  p <- predict(exact, d[1:20, ], se.fit = TRUE)
  ok <- !is.na(p$fit)
  expect_true(all(certificate$mean_lower[ok] <= p$fit[ok] & p$fit[ok] <= certificate$mean_upper[ok]))
  expect_true(all(certificate$sd_lower[ok] <= p$se.fit[ok] & p$se.fit[ok] <= certificate$sd_upper[ok]))
  bare <- small_fit(d[1:100, ], control = list(maxit = 0), keep_data = FALSE)
  bare$reference <- fit$reference
  expect_message(more <- add_rows(bare, d[101:160, ]), class = "pfdtc_message_reference")
  expect_null(more$reference)
})

test_that("dropping rows gives the fit to the other rows", {
  d <- growing_rows()
  new <- d[c(1:4, 150:160), ]
  control <- list(maxit = 0)
  complete <- which(complete.cases(d))
  gone <- c(3, 50, 101:120)
  left <- d[complete[-gone], ]
  left$f[1:3] <- c("a", "b", "c") # keeps all levels
  d[complete[-gone], ] <- left
  for (method in list(pfdtc, gp_fitc)) {
    whole <- small_fit(d, method = method, control = control)
    less <- drop_rows(whole, c(gone, gone))
    expect_same_fit(less, small_fit(left, method = method, control = control), new)
    expect_equal(less$dropped, whole$nobs - less$nobs) # without rows of weight 0, as in `added`
  }
  bare <- small_fit(d, control = control, keep_data = FALSE)
  less <- drop_rows(bare, d[complete[gone], ])
  expect_lt(less$allowance, 1e-8)
  expect_same_fit(less, small_fit(left, control = control, keep_data = FALSE), new, tolerance = 1e-8)
  back <- drop_rows(add_rows(bare, d[1:20, ]), d[1:20, ])
  expect_same_fit(back, bare, new, tolerance = 1e-8)
  near <- small_fit(d, neighbours = 6)
  less <- drop_rows(near, gone)
  rank <- near$near$rank[match(as.data.frame(t(less$data$x)), as.data.frame(t(near$data$x)))]
  expect_identical(order(less$near$rank), order(rank))
})

test_that("rows that cannot be added or removed are refused by name", {
  d <- growing_rows()
  fit <- small_fit(d, control = list(maxit = 0), keep_data = FALSE)
  refused <- function(expr, text) expect_error(expr, text, class = "pfdtc_error_input")
  refused(add_rows(fit, d["a"]), "newdata")
  refused(add_rows(fit, transform(d, f = "new")), "new")
  refused(add_rows(fit, transform(d, a = Inf)), "Inf")
  refused(add_rows(fit, transform(d, w = -1)), "weights")
  refused(add_rows(fit, 1:3), "newdata")
  refused(drop_rows(fit, rbind(d, d)), "")
  strange <- d[1:50, ]
  strange$w <- 1e4
  refused(drop_rows(fit, strange), "")
  refused(drop_rows(fit, d["a"]), "^`rows` lacks") # the argument's own name
  for (change in list(add_rows, drop_rows)) expect_identical(nobs(change(fit, d[0, ])), nobs(fit))
  refused(drop_rows(fit, rows_blocks(function() NULL, function() NULL, columns = names(d))), "rows")
  kept <- small_fit(d, control = list(maxit = 0))
  refused(drop_rows(kept, 0), "")
  refused(drop_rows(kept, 1e6), "")
  refused(drop_rows(kept, seq_along(kept$data$response)), "")
  refused(update_points(fit), "data")
  classes <- pfdtc(l ~ a, d, family = binomial(), kernel = kernel_se(1, 1), hyper = "fixed", m = 5, keep_data = FALSE)
  refused(add_rows(classes, d), "keep_data = TRUE")
  some <- gp_subsample(y ~ a, d, m = 9, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed")
  refused(add_rows(some, d), "gp_subsample")
  strict <- small_fit(transform(d, w = 1e9), control = list(maxit = 0), keep_data = FALSE)
  refused(drop_rows(strict, transform(d[1:50, ], w = 1e9)), "")
})

test_that("after an update, the number of rows in a reason is that of the original fit", {
  fit <- pfdtc(dist ~ speed, cars, m = 3, kernel = kernel_se(3, 500), noise = 200, hyper = "fixed")
  fit$because[["posterior"]] <- "Inducing points are used, because there are 8,500 distinct rows."
  for (more in list(add_rows(fit, cars[1:2, ]), drop_rows(fit, 1))) {
    expect_match(more$because[["posterior"]], "because the original fit had 8,500 distinct rows.", fixed = TRUE)
    expect_identical(names(more$because), names(fit$because))
  }
})

test_that("points are chosen anew if that reduces the unexplained variance, and stay otherwise", {
  d <- growing_rows()
  fit_of <- function(d, ...) {
    pfdtc(y ~ a + b, d, kernel = kernel_se(c(0.2, 1), 1), noise = 0.04, hyper = "fixed", center = FALSE, scale = FALSE,
          control = list(maxit = 0), ...)
  }
  fit <- fit_of(d[d$a < 0.3, ], m = 12)
  more <- add_rows(fit, d[!is.na(d$a) & d$a >= 0.3, ])
  expect_no_message(better <- update_points(more))
  expect_lt(better$factors$t, 0.5 * more$factors$t)
  expect_equal(better$nobs, more$nobs)
  expect_message(expect_identical(update_points(better), better), class = "pfdtc_message_points")
  expect_message(update_points(better, m = 4), "4 new points (`m`) would not reduce", fixed = TRUE)
  expect_equal(nrow(update_points(more, m = 20)$inducing), 20)
  expect_null(update_points(replace(more, "tol", list(list(met = TRUE))))$tol) # it belongs to the old points
  expect_equal(better$factors$G, fit_of(d, inducing = better$inducing)$factors$G, tolerance = 1e-8)
  moved <- pfdtc(dist ~ speed, cars, m = 3, neighbours = 0, kernel = kernel_se(3, 500), noise = 200, hyper = "fixed")
  anew <- update_points(moved, 12)
  expect_identical(c(is.na(moved$objective), is.na(anew$objective)), c(FALSE, TRUE)) # belongs to the moved points
  expect_output(print(moved), "\nOptimisation")
  near <- update(moved, neighbours = NULL)
  left <- as.numeric(sub(".*moved was ([0-9.e+-]+) times.*", "\\1", near$because[["neighbours"]]))
  expect_gt(left, 1.5 * near$unexplained) # the reason is about the points before they moved
  expect_false(any(grepl("^Optimisation|because `m` = 3", utils::capture.output(print(anew)))))
})

test_that("a fit of a source with neighbours grows by all new rows, or by their share of its sample", {
  d <- growing_rows()
  new <- d[c(1:4, 150:158), ]
  # All rows are kept as neighbours, so the fit equals that of the same rows in memory, in the same order.
  for (more in list(d[101:160, ], d[90:110, ])) { # some of the second are equal to old rows
    first <- small_fit(in_blocks(d[1:100, ]), neighbours = 6)
    expect_null(first$data)
    in_memory <- small_fit(d[1:100, ], neighbours = 6)
    in_memory$near <- near_posterior(in_memory$data, in_memory$inducing, model_of(in_memory), 6, 6, first$near$rank,
                                     in_memory$jitter)
    whole <- add_rows(in_memory, more)
    first <- add_rows(first, in_blocks(more))
    expect_equal(first$near$rank, whole$near$rank)
    expect_same_fit(first, whole, new, tolerance = 1e-8)
    expect_equal(first$near$rows$n, whole$nobs)
  }
  old <- options(pfdtc.sample = 40)
  on.exit(options(old))
  first <- small_fit(in_blocks(d[1:100, ]), neighbours = 6)
  whole <- small_fit(in_blocks(d), neighbours = 6)
  set.seed(4)
  more <- add_rows(add_rows(first, d[101:130, ]), d[131:160, ])
  expect_equal(more$near[c("L", "C", "beta")], whole$near[c("L", "C", "beta")], tolerance = 1e-9)
  expect_equal(more$evidence, whole$evidence, tolerance = 1e-9)
  expect_equal(more$nobs, whole$nobs)
  expect_equal(more$signature$sums, whole$signature$sums, tolerance = 1e-10)
  of_new <- match(as.data.frame(t(more$near$rows$x)), as.data.frame(t(first$near$rows$x)))
  expect_true(anyNA(of_new) && !all(is.na(of_new)))
  expect_false(anyNA(predict(more, new[1:3, ])))
  expect_error(drop_rows(more, d[1:9, ]), "inducing = fit", class = "pfdtc_error_input")
  # Each row has the same probability in a sample of 30 from 30 + 90.
  kept <- list(x = matrix(0, 30, 1), y = numeric(30), weights = NULL)
  rows <- list(x = matrix(1:90 + 0, 90, 1), y = 1:90 + 0, weights = NULL, n = 90)
  counts <- table(factor(replicate(400, resampled(kept, rows, 30)$y), 0:90))
  expect_lt(abs(counts[["0"]] / 400 - 7.5), 0.4) # the mean has an sd of 0.10
  expect_lt(sum((counts[-1] - 100)^2 / 100), 165) # chi squared with 89 degrees of freedom exceeds it once in 1e6
})

test_that("sums of rows on workers are added, and a fit that keeps rows refuses them", {
  d <- growing_rows()
  bare <- small_fit(d[1:100, ], control = list(maxit = 0), keep_data = FALSE)
  there <- with_replaced(list(find_crew = function() fake_crew(2)), {
    source <- rows_parts(list(d[101:130, ], d[131:160, ]))
    expect_error(add_rows(small_fit(d[1:100, ]), source), "workers", class = "pfdtc_error_input")
    add_rows(bare, source)
  })
  expect_same_fit(there, add_rows(bare, d[101:160, ]), d[1:9, ])
})

# ---- classes and counts ---------------------------------------------------------------------------------------------

test_that("adding and dropping rows of classes and counts gives the fit to the resulting rows, on the same points", {
  d <- with_seed(2, data.frame(a = stats::runif(50), b = stats::runif(50), n = sample(2:8, 50, TRUE),
                               w = stats::runif(50)))
  d$s <- with_seed(3, stats::rbinom(50, d$n, stats::plogis(3 * sin(5 * d$a))))
  d$class <- c("no", "yes")[1 + (d$s > 2)]
  some <- d[1:36, ]
  of <- function(...) { # weights are the name of a column
    asked <- list(kernel = kernel_matern(3 / 2, 0.3, 2), hyper = "fixed", center = 0.2)
    eval(as.call(c(quote(pfdtc), as.list(substitute(list(...)))[-1L], asked)), parent.frame())
  }
  agree <- function(one, two) {
    p <- predict(one, d, se.fit = TRUE)
    q <- predict(two, d, se.fit = TRUE)
    expect_equal(p$fit, q$fit, tolerance = 1e-7)
    expect_equal(p$se.fit, q$se.fit, tolerance = 1e-6)
    expect_equal(one$evidence, two$evidence, tolerance = 1e-8)
    expect_equal(unname(residuals(one, "deviance")), unname(residuals(two, "deviance")), tolerance = 1e-6)
    expect_identical(nobs(one), nobs(two))
    expect_true(same_model(one, two))
  }
  few <- of(s / n ~ a + b, some, weights = n, family = binomial(), m = 6)
  more <- of(s / n ~ a + b, d, weights = n, family = binomial(), inducing = few$inducing)
  agree(add_rows(few, d[37:50, ]), more)
  agree(drop_rows(more, 37:50), few)
  few <- of(s ~ a + b + offset(log(n)), some, weights = w, family = nb(2), m = 6, approx = "vi")
  agree(add_rows(few, d[37:50, ]), of(s ~ a + b + offset(log(n)), d, weights = w, family = nb(2), approx = "vi",
                                      inducing = few$inducing))
  few <- of(s ~ a, some, weights = as.double(a > 0.2), family = poisson(), m = 5)
  few$reference <- reference(few, 12)
  grown <- add_rows(few, d[37:50, ])
  agree(grown, of(s ~ a, d, weights = as.double(a > 0.2), family = poisson(), inducing = few$inducing))
  exact <- of(s ~ a, d, weights = as.double(a > 0.2), family = poisson())
  c <- certify(grown, d)
  expect_true(all(c$mean_lower - 1e-7 <= predict(exact, d) & predict(exact, d) <= c$mean_upper + 1e-7))
  all <- of(class ~ a + b, some, family = binomial())
  agree(add_rows(all, d[37:50, ]), of(class ~ a + b, d, family = binomial()))
  expect_lt(update_points(of(class ~ a + b, d, family = binomial(), m = 5), 20)$unexplained, 0.5)
  expect_input_error(add_rows(all, transform(d[1:2, ], class = "maybe")), "newdata")
  expect_null(drop_rows(of(s ~ a, d, family = poisson(), tol = 0.2), 1:3)$tol)
})

test_that("new rows come last among neighbours, and with all rows as neighbours the fit is the exact GP", {
  d <- with_seed(2, data.frame(a = stats::runif(50), b = stats::runif(50)))
  d$y <- with_seed(3, stats::rbinom(50, 1, stats::plogis(3 * sin(5 * d$a))))
  k <- kernel_matern(3 / 2, 0.3, 2)
  near <- pfdtc(y ~ a + b, d, family = binomial(), kernel = k, hyper = "fixed", center = 0, m = 5, neighbours = 50)
  less <- drop_rows(near, 41:50)
  exact <- pfdtc(y ~ a + b, d[1:40, ], family = binomial(), kernel = k, hyper = "fixed", center = 0)
  expect_equal(unname(predict(less, d)), unname(predict(at_mode(exact), d)), tolerance = 1e-4)
  again <- add_rows(less, d[41:50, ])
  expect_identical(sort(again$near$rank[41:50]), 41:50)
  expect_identical(order(again$near$rank[1:40]), order(less$near$rank))
  expect_equal(stats::rstandard(again)[1:40], stats::rstandard(near)[1:40], tolerance = 0.02)
})

test_that("after rows were added or dropped, the sd of the response is that of all rows", {
  d <- transform(cars, dist = dist + 1e4)
  fit <- pfdtc(dist ~ speed, d[1:30, ], kernel = kernel_se(5, 500), noise = 200, hyper = "fixed", m = 8)
  more <- add_rows(fit, d[31:50, ])
  expect_equal(more$sd_y, stats::sd(d$dist), tolerance = 1e-8) # sums of squares lose (mean / sd)^2 = 2e5 roundings
  expect_equal(drop_rows(more, 31:50)$sd_y, fit$sd_y, tolerance = 1e-8)
  expect_match(report(more)$text, sprintf("sd of the response %s", format(stats::sd(d$dist), digits = 3)), fixed = TRUE)
  for (keep in c(TRUE, FALSE)) { # with a mean of 6e10 sds, sums have no digit of the sd
    far <- transform(cars, dist = dist + 1e12)
    old <- pfdtc(dist ~ speed, far[1:30, ], kernel = kernel_se(5, 500), noise = 200, hyper = "fixed", m = 8,
                 keep_data = keep)
    expect_equal(add_rows(old, far[31:50, ])$sd_y, if (keep) stats::sd(cars$dist) else old$sd_y, tolerance = 1e-5)
  }
  trend <- pfdtc(dist ~ speed, cars[1:30, ], kernel = kernel_se(5, 500), noise = ~ speed)
  expect_equal(drop_rows(add_rows(trend, cars[31:50, ]), 31:50)$sd_y, trend$sd_y) # without the weights of the trend
  exact <- gp_exact(dist ~ speed, d, like = fit)
  expect_error(kl_divergence(more, exact), "add the rows to both", class = "pfdtc_error_input")
  both <- add_rows(gp_exact(dist ~ speed, d[1:30, ], like = fit), d[31:50, ])
  expect_gt(kl_divergence(more, both), 0)
})
