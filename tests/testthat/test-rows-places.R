globe <- function(n, seed = 1) {
  with_seed(seed, {
    z <- stats::runif(n, -1, 1)
    lon <- stats::runif(n, -180, 180)
    data.frame(lon, lat = asin(z) * 180 / pi, depth = stats::runif(n),
               y = cospi(lon / 90) * (1 - z^2) + z + stats::rnorm(n) / 10)
  })
}

# Returns chords of the unit sphere by the haversine formula.
chords <- function(a, b = a) {
  rad <- pi / 180
  sqrt(4 * outer(a$lat, b$lat, function(p, q) sin((p - q) * rad / 2)^2) +
         4 * outer(cos(a$lat * rad), cos(b$lat * rad)) * outer(a$lon, b$lon, function(p, q) sin((p - q) * rad / 2)^2))
}

test_that("longitudes of any range, the date line and the poles are exact", {
  expect_identical(sphere(-180, 12), sphere(180, 12))
  expect_identical(sphere(c(0, 90, -90, 17), 90), sphere(c(360, 450, 270, 377), 90))
  expect_identical(sphere(c(-170, 0), -90), sphere(c(3, 190), -90))
  expect_identical(sphere(-170, 40), sphere(190, 40))
  expect_identical(sphere(-170, 40), sphere(550, 40))
  expect_identical(1 / unclass(sphere(-170, -90))[1, 1:2], c(x = Inf, y = Inf)) # a -0 would give -Inf
  at <- globe(50)
  expect_equal(as.matrix(stats::dist(unclass(sphere(at$lon, at$lat)))), earth_radius * chords(at), tolerance = 1e-12,
               ignore_attr = TRUE)
  expect_equal(degrees_of(sphere(at$lon, at$lat)), as.matrix(at[c("lon", "lat")]), tolerance = 1e-12)
  expect_equal(degrees_of(sphere(-179, 1), 170)[[1]], 181)
})

test_that("sphere() refuses values that are no degrees, and accepts missing ones", {
  expect_error(sphere(10, 91), class = "pfdtc_error_input", "longitude first")
  expect_error(sphere("a", 1), class = "pfdtc_error_input", "lon")
  expect_error(sphere(1:3, 1:2), class = "pfdtc_error_input", "lat")
  expect_identical(rowSums(is.na(sphere(c(NA, 1), 1))) > 0, c(TRUE, FALSE))
})

test_that("a formula finds sphere() where the package is not attached", {
  formula <- eval(quote(y ~ sphere(lon, lat)), baseenv())
  fit <- gp_exact(formula, globe(20), kernel = kernel_se(3000, 1), noise = 0.1, hyper = "fixed")
  expect_length(predict(fit, globe(3, 2)), 3L)
})

test_that("kernel matrices for places on the sphere are positive semidefinite", {
  at <- globe(80)
  x <- sphere(c(at$lon, 10, 50), c(at$lat, 90, -90))
  for (k in list(kernel_matern(1 / 2, 3000, 1), kernel_matern(3 / 2, 8000, 1), kernel_se(5000, 1))) {
    values <- eigen(kernel_matrix(k, unclass(x)), TRUE, TRUE)$values
    expect_gt(min(values), -1e-12 * max(values)) # the rounding error for 82 rows
  }
})

test_that("a place has one lengthscale, other inputs have their own, and predictions are those of the dense formula", {
  d <- globe(60)
  new <- globe(7, 2)
  kernel <- kernel_matern(3 / 2, lengthscale = c(4000, 0.5), variance = 2)
  fit <- gp_exact(y ~ sphere(lon, lat) + depth, d, kernel = kernel, noise = 0.1, hyper = "fixed")
  expect_identical(names(coef(fit))[1:2], c("lengthscale.sphere(lon, lat)", "lengthscale.depth"))
  r <- function(a, b) sqrt(3 * ((chords(a, b) * earth_radius / 4000)^2 + (outer(a$depth, b$depth, "-") / 0.5)^2))
  k <- function(a, b) 2 * (1 + r(a, b)) * exp(-r(a, b))
  mean <- k(new, d) %*% solve(k(d, d) + diag(0.1, 60), d$y - fit$center) + fit$center
  expect_equal(unname(predict(fit, new)), drop(mean), tolerance = 1e-10) # the condition number of 60 rows is 1e3
  # Only distances matter, so rotate all points about the axis, with longitudes in another range.
  turned <- function(d) transform(d, lon = (lon + 77.25) %% 360)
  again <- gp_exact(y ~ sphere(lon, lat) + depth, turned(d), kernel = kernel, noise = 0.1, hyper = "fixed")
  expect_equal(predict(again, turned(new)), predict(fit, new), tolerance = 1e-10)
  expect_error(predict(fit, new[c("lon", "depth")]), class = "pfdtc_error_input", "lat")
  loaded <- unserialize(serialize(fit, NULL))
  expect_identical(predict(loaded, new), predict(fit, new))
})

test_that("a factor of a kernel reads a place, and neighbours are the nearest on the globe", {
  d <- globe(200)
  kernel <- kernel_matern(3 / 2, 3000, 1, inputs = ~ sphere(lon, lat)) + kernel_se(0.5, 1, inputs = ~ depth)
  fit <- gp_exact(y ~ sphere(lon, lat) + depth, d, kernel = kernel, noise = 0.1, hyper = "fixed")
  expect_identical(leaf_names(fit$kernel$leaves), c("matern32(sphere(lon, lat))", "se(depth)"))
  alone <- gp_exact(y ~ sphere(lon, lat), d, kernel = kernel_matern(5 / 2, 3000, 1), noise = 0.1, hyper = "fixed")
  x <- alone$data$x
  got <- native_neighbours(alone$kernel, x, 6L, rows = 1:20, rank = NULL)
  want <- vapply(1:20, function(i) order(chords(d[i, ], d))[2:7], 1:6)
  expect_equal(apply(got, 2L, sort), apply(want, 2L, sort), ignore_attr = TRUE)
})

test_that("slopes of the Vecchia likelihood in a shared lengthscale are central differences", {
  d <- globe(20)
  x <- cbind(unclass(sphere(d$lon, d$lat)) / earth_radius, d$depth)
  leaf <- kernel_rq(1.5, c(1, 0.5), 1)
  leaf$shared <- stats::setNames(c(1L, 1L, 1L, 2L), c("s", "s", "s", "depth"))
  for (k in list(leaf, replace(kernel_additive(kernel_se(c(1, 0.5), 1), share = 2, ratio = 3),
                               c("shared", "groups"), list(leaf$shared, names(leaf$shared))))) {
    k <- compile_kernel(complete_kernel(k, x))
    neighbours <- vapply(1:20, function(i) c(setdiff(seq_len(i - 1L), 0L), integer(20L))[1:8], integer(8L))
    p <- length(kernel_values(k)) + 1L
    value <- function(theta) {
      native_vecchia(list(x = x, y = d$y), list(kernel = set_values(k, exp(theta[-p])), noise = exp(theta[p])), 1:20,
                     neighbours)
    }
    theta <- c(log(kernel_values(k)), log(0.1))
    at <- value(theta)
    expect_length(at$score, p)
    for (j in seq_len(p)) expect_slope(at$score[j], function(v) value(replace(theta, j, v))$value, theta[j], j, 1e-8)
  }
})

test_that("the default fit learns one lengthscale for a place, with any response", {
  d <- globe(120)
  fit <- pfdtc(y ~ sphere(lon, lat) + depth, d, kernel = kernel_matern(3 / 2))
  expect_identical(sum(grepl("lengthscale", names(coef(fit)))), 2L)
  new <- globe(100, 5)
  expect_lt(sqrt(mean((predict(fit, new) - new$y)^2)), 0.3) # the noise has an sd of 0.1, the function of 0.7
  expect_output(print(fit), "sphere[(]lon, lat[)], km.*degrees")
  by_class <- pfdtc(I(y > 0) ~ sphere(lon, lat) + depth, d, family = binomial(), kernel = kernel_se())
  expect_identical(sum(grepl("lengthscale", names(coef(by_class)))), 2L)
})

test_that("figures have panels for longitude and latitude, across the date line", {
  d <- transform(globe(60), lon = (lon / 10 + 180) %% 360, lat = lat / 3)
  d$lon <- ifelse(d$lon > 180, d$lon - 360, d$lon)
  fit <- gp_exact(y ~ sphere(lon, lat), d, kernel = kernel_matern(3 / 2, 4000, 1), noise = 0.1, hyper = "fixed")
  variables <- fit_variables(fit)
  expect_identical(panel_names(variables), c("lon", "lat"))
  lon <- value_along(variables[[1]], fit$data$x)
  expect_lt(diff(range(lon)), 37)
  expect_equal(lon %% 360, d$lon %% 360, tolerance = 1e-12)
  pdf(NULL)
  on.exit(dev.off())
  curves <- plot(fit)
  expect_identical(unique(curves$input), c("lon", "lat"))
  map <- plot(fit, which = "map", n = 5)
  expect_equal(map$fit, unname(predict(fit, map[c("lon", "lat")])), tolerance = 1e-9)
  small <- gp_exact(y ~ sphere(lon, lat), d, kernel = kernel_matern(3 / 2, 4000, 1), noise = 0.1, hyper = "fixed",
                    keep_data = FALSE)
  expect_equal(range(value_along(variables[[2]], slice_rows(small))), range(d$lat), tolerance = 1e-9)
})

test_that("a message says that longitude and latitude are plain numbers if that distorts distances", {
  d <- globe(30)
  told <- function(d) {
    classes <- NULL
    withCallingHandlers(gp_exact(y ~ lon + lat, d, kernel = kernel_se(30, 1), noise = 0.1, hyper = "fixed"),
                        message = function(m) {
                          classes <<- class(m)
                          invokeRestart("muffleMessage")
                        })
    "pfdtc_message_degrees" %in% classes
  }
  expect_true(told(d))
  expect_false(told(transform(d, lon = lon / 10, lat = lat / 10)))
  expect_true(told(transform(d, lon = lon / 10, lat = 50 + lat / 10 * 2)))
  expect_false(told(transform(d, lat = 100 + lat)))
})

# ---- times ----------------------------------------------------------------------------------------------------------

test_that("dates and times are inputs in days, and seconds lose no digit", {
  start <- as.POSIXct("2024-03-30 23:00:00.25", tz = "Europe/Berlin")
  time <- start + 0:9 / 8 # eighths of seconds are exact in binary
  d <- data.frame(time, day = as.Date("2024-01-31") + 0:9 * 7, y = sin(0:9))
  kernel <- kernel_se(c(1e-5, 20), 1)
  fit <- gp_exact(y ~ time + day, d, kernel = kernel, noise = 0.01, hyper = "fixed")
  expect_identical(unname(fit$data$x[, 1]), (0.25 + 0:9 / 8) / 86400)
  expect_identical(unname(fit$data$x[, 2]), 0:9 * 7)
  numbers <- data.frame(time = (0.25 + 0:9 / 8) / 86400, day = 0:9 * 7, y = d$y)
  plain <- gp_exact(y ~ time + day, numbers, kernel = kernel, noise = 0.01, hyper = "fixed")
  new <- data.frame(time = start + c(0.5, 3), day = as.POSIXct(c("2024-02-03", "2025-01-31"), tz = "UTC"))
  expect_identical(predict(fit, new), predict(plain, data.frame(time = c(0.75, 3.25) / 86400, day = c(3, 366))))
  expect_identical(predict(fit, d[3, ]), predict(plain, numbers[3, ]))
  expect_error(predict(fit, transform(new, day = 3)), class = "pfdtc_error_input", "day")
  expect_output(print(fit), "time, days")
  expect_identical(times_of(fit$frame$variables[[2]], 7), as.Date("2024-02-07"))
  pdf(NULL)
  on.exit(dev.off())
  v <- fit_variables(fit)
  ticks <- variable_ticks(v[[2]], c(0, 63))
  expect_identical(ticks$at, as.numeric(pretty(as.Date("2024-01-31") + c(0, 63)) - as.Date("2024-01-31")))
  expect_match(ticks$labels[2], "Feb")
  hours <- variable_ticks(v[[1]], c(0, 0.5))
  expect_identical(hours$labels[2], format(times_of(v[[1]]$time, hours$at[2]), "%H:%M"))
  expect_s3_class(plot(fit, inputs = "day"), "data.frame")
  expect_match(slice_frame(fit, "time", NULL, 5L)$foot, "day = 2024-03-02")
  expect_match(slice_frame(fit, "day", NULL, 5L)$foot, "time = 2024-03-30 23:00")
  proposed <- next_points(fit, goal = "fill")
  expect_identical(attr(proposed$time, "tzone"), "Europe/Berlin")
  expect_identical(attr(times_of(replace(fit$frame$variables[[1]], "zone", NULL), 0), "tzone"), "UTC") # older fits
})

test_that("a row source codes places and times as a data frame does", {
  d <- transform(globe(40), day = as.Date("2024-01-01") + 0:39)
  kernel <- kernel_se(c(3000, 20), 1)
  whole <- gp_vfe(y ~ sphere(lon, lat) + day, d, m = 10, kernel = kernel, noise = 0.1, hyper = "fixed",
                  inducing = unclass(gp_exact(y ~ sphere(lon, lat) + day, d, kernel = kernel, noise = 0.1,
                                              hyper = "fixed")$x)[1:10, ], control = pfdtc_control(maxit = 0))
  parts <- rows_blocks(function() at <<- 0L, function() {
    at <<- at + 1L
    if (at <= 2L) d[(at - 1L) * 20L + 1:20, ]
  }, names(d))
  at <- 0L
  of_source <- gp_vfe(y ~ sphere(lon, lat) + day, parts, m = 10, kernel = kernel, noise = 0.1, hyper = "fixed",
                      inducing = whole$inducing, control = pfdtc_control(maxit = 0))
  expect_equal(predict(of_source, d[3:7, ]), predict(whole, d[3:7, ]), tolerance = 1e-8)
})

test_that("rows with missing dates are omitted, and na.exclude puts NA in their places", {
  d <- data.frame(day = as.Date(c("2024-01-01", NA, "2024-01-03", "2024-01-09")), y = c(1, 2, 1.5, 3))
  fit <- gp_exact(y ~ day, d, kernel = kernel_se(3, 1), noise = 0.1, hyper = "fixed", na.action = na.exclude)
  expect_identical(fit$nobs, 3L)
  expect_identical(unname(is.na(fitted(fit))), is.na(d$day))
  expect_true(is.na(predict(fit, d)[[2]]))
})

test_that("dates and times of a source are the same inputs as in a data frame", {
  set.seed(5)
  d <- data.frame(date = as.Date("2020-01-01") + sort(sample(400, 90)), b = runif(90))
  d$time <- as.POSIXct(d$date, tz = "UTC") + 3600
  d$y <- sin(as.numeric(d$date) / 50)
  for (f in c(y ~ date + b, y ~ time + b)) {
    of <- function(data) {
      pfdtc(f, data, kernel = kernel_se(c(40, 3), 1), noise = 1e-3, hyper = "fixed", m = 90, neighbours = 0)
    }
    # With all rows as points both fits are exact to rounding, times a condition number of 1e3.
    expect_equal(predict(of(in_blocks(d)), d[c(1, 50, 90), ]), predict(of(d), d[c(1, 50, 90), ]), tolerance = 1e-6)
  }
})

# ---- units ----------------------------------------------------------------------------------------------------------

test_that("new rows and responses in another unit are converted to the unit of the fit", {
  skip_if_not_installed("units")
  in_units_of <- function(v, unit) getExportedValue("units", "set_units")(v, unit, mode = "standard")
  plain <- data.frame(x = 0:9, y = sin(0:9))
  d <- data.frame(x = in_units_of(plain$x, "m/s"), y = in_units_of(plain$y, "kg"))
  of <- function(data) gp_exact(y ~ x, data, kernel = kernel_se(2, 1), noise = 0.1, hyper = "fixed")
  fit <- of(d)
  want <- of(plain)
  expect_identical(predict(fit, d), predict(want, plain))
  other <- data.frame(x = in_units_of(3.6 * plain$x, "km/h"), y = in_units_of(1000 * plain$y, "g"))
  expect_close(predict(fit, other), predict(want, plain), 1e-12) # 3.6 is rounded in binary
  expect_close(predict(add_rows(fit, other[1:3, ])), predict(add_rows(want, plain[1:3, ])), 1e-12)
  expect_output(print(fit), "x, m/s")
  expect_input_error(predict(fit, data.frame(x = in_units_of(1, "kg"))), "cannot convert kg into m/s")
})

test_that("months and quarters of zoo are numeric inputs in years", {
  skip_if_not_installed("zoo")
  month <- getExportedValue("zoo", "as.yearmon")(2000 + 0:19 / 12)
  d <- data.frame(month, quarter = getExportedValue("zoo", "as.yearqtr")(2000 + 0:19 / 4), y = sin(0:19))
  plain <- transform(d, month = 2000 + 0:19 / 12, quarter = 2000 + 0:19 / 4)
  of <- function(data) gp_exact(y ~ month + quarter, data, kernel = kernel_se(c(1, 4), 1), noise = 0.1, hyper = "fixed")
  expect_identical(predict(of(d), d[2:3, ]), predict(of(plain), plain[2:3, ]))
})
