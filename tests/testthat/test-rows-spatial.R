places <- function(n = 30, seed = 1) {
  with_seed(seed, {
    d <- data.frame(x = stats::runif(n, 1000, 2000), y = stats::runif(n, 0, 1000), dist = stats::runif(n))
    transform(d, z = sin(x / 200) + cos(y / 300) + dist + stats::rnorm(n) / 10)
  })
}
given <- function(formula, data, ...) {
  gp_exact(formula, data, kernel = kernel_matern(3 / 2, 300, 1), noise = 0.1, hyper = "fixed", ...)
}

test_that("without its package, a spatial object has an error that names the package", {
  skip_if(requireNamespace("stars", quietly = TRUE))
  expect_error(pfdtc(y ~ x, structure(list(y = 1:3, x = 1:3), class = "stars")), "needs the package `stars`",
               class = "pfdtc_error_input")
})

test_that("projected places of every class become x + y, and predictions have the same class", {
  d <- places()
  new <- places(9, 2)
  plain <- given(z ~ dist + x + y, d)
  want <- predict(plain, new, interval = "prediction")
  check <- function(data, at, values) {
    fit <- given(z ~ dist, data)
    expect_equal(unname(coef(fit)[c("lengthscale.x", "lengthscale.y", "lengthscale.dist")]), c(300, 300, 300))
    out <- predict(fit, at, interval = "prediction")
    expect_s4_or_s3(out, class(at)[1L])
    expect_equal(as.matrix(values(out)), want, ignore_attr = TRUE, tolerance = 1e-10)
    expect_equal(predict(fit, new), predict(plain, new), tolerance = 1e-10) # a data frame is accepted too
    with_sd <- predict(fit, at, se.fit = TRUE)
    expect_identical(names(values(with_sd)), c("fit", "se.fit"))
  }
  expect_s4_or_s3 <- function(out, class) expect_true(inherits(out, class))
  skip_if_not_installed("sf")
  as_sf <- function(d) sf::st_as_sf(d, coords = c("x", "y"))
  check(as_sf(d), as_sf(new), sf::st_drop_geometry)
  skip_if_not_installed("sp")
  as_sp <- function(d) sp::SpatialPointsDataFrame(d[c("x", "y")], d[c("dist", "z")])
  check(as_sp(d), as_sp(new), function(v) v@data)
  skip_if_not_installed("terra")
  as_terra <- function(d) terra::vect(d, geom = c("x", "y"))
  check(as_terra(d), as_terra(new), terra::as.data.frame)
})

test_that("geographic places become sphere(lon, lat), also in another reference system", {
  skip_if_not_installed("sf")
  d <- with_seed(3, data.frame(lon = runif(25, 160, 200), lat = runif(25, -60, 60), z = rnorm(25)))
  d$lon <- ifelse(d$lon > 180, d$lon - 360, d$lon)
  kernel <- kernel_matern(3 / 2, 2000, 1)
  at <- sf::st_as_sf(d, coords = c("lon", "lat"), crs = 4326)
  fit <- gp_exact(z ~ 1, at, kernel = kernel, noise = 0.1, hyper = "fixed")
  plain <- gp_exact(z ~ sphere(lon, lat), d, kernel = kernel, noise = 0.1, hyper = "fixed")
  expect_equal(coef(fit), coef(plain))
  expect_equal(sf::st_drop_geometry(predict(fit, at))$fit, unname(predict(plain, d)), tolerance = 1e-12)
  expect_equal(predict(fit, at[1:3, ], type = "density")$fit, unname(predict(plain, d[1:3, ], type = "density")))
  mercator <- sf::st_transform(at[1:5, ], 3857)
  out <- predict(fit, mercator)
  expect_equal(out$fit, unname(predict(plain, d[1:5, ])), tolerance = 1e-7) # coordinates in metres are rounded
  expect_equal(sf::st_crs(out), sf::st_crs(mercator))
  dots <- gp_exact(z ~ ., at, kernel = kernel, noise = 0.1, hyper = "fixed")
  expect_equal(coef(dots), coef(plain))
})

test_that("the rows of a raster are its cells, and predictions are rasters with gaps where values are missing", {
  skip_if_not_installed("terra")
  grid <- terra::rast(nrows = 6, ncols = 8, xmin = 0, xmax = 8, ymin = 0, ymax = 6, crs = "EPSG:32633",
                      nlyrs = 1, names = "z")
  terra::values(grid) <- replace(sin(1:48), c(3, 20), NA)
  kernel <- kernel_matern(3 / 2, 2, 1)
  fit <- gp_exact(z ~ 1, grid, kernel = kernel, noise = 0.1, hyper = "fixed")
  expect_identical(fit$nobs, 46L)
  d <- data.frame(terra::xyFromCell(grid, 1:48))
  out <- predict(fit, grid, interval = "credible")
  expect_equal(terra::values(out), predict(fit, d, interval = "credible"), ignore_attr = TRUE)
  expect_identical(names(out), c("fit", "lwr", "upr"))
  skip_if_not_installed("stars")
  as_stars <- stars::st_as_stars(grid)
  names(as_stars) <- "z"
  again <- gp_exact(z ~ 1, as_stars, kernel = kernel, noise = 0.1, hyper = "fixed")
  expect_equal(coef(again), coef(fit))
  cells <- predict(again, as_stars, se.fit = TRUE)
  expect_identical(dim(cells), dim(as_stars))
  xy <- as.data.frame(cells)
  expect_equal(xy$fit, unname(predict(fit, xy)), tolerance = 1e-12)
})

test_that("polygons are represented by their centroids, and coordinates do not take the names of variables", {
  skip_if_not_installed("sf")
  square <- function(x, y) sf::st_polygon(list(cbind(x + c(0, 2, 2, 0, 0), y + c(0, 0, 2, 2, 0))))
  d <- places(12)
  corners <- sf::st_sf(x = d$dist, z = d$z, geometry = sf::st_sfc(Map(square, d$x - 1, d$y - 1)))
  fit <- given(z ~ x, corners)
  expect_identical(fit$frame$columns, c("x", "x.1", "y"))
  plain <- given(z ~ dist + x + y, d)
  expect_equal(unname(fitted(fit)), unname(fitted(plain)), tolerance = 1e-8)
  expect_error(given(z ~ x, corners[0, ]), class = "pfdtc_error_input", "places")
  expect_error(predict(given(z ~ dist, d), sf::st_geometry(corners)), class = "pfdtc_error_input", "data frame")
})

test_that("summary() has nugget, partial sill and practical range of two coordinates", {
  d <- places()
  kernel <- kernel_matern(1 / 2, 100, 1.5) + kernel_se(300, 0.5)
  fit <- gp_exact(z ~ x + y, d, kernel = kernel, noise = 0.2, hyper = "fixed")
  r <- practical_range(1L, fit$kernel, 2L)
  expect_equal((1.5 * exp(-r / 100) + 0.5 * exp(-r^2 / 300^2 / 2)) / 2, 0.05, tolerance = 1e-6)
  expect_output(print(summary(fit)),
                "nugget .noise variance. 0.2, partial sill .kernel variance. 2,[[:space:]]+practical range")
  two <- gp_exact(z ~ x + y, d, kernel = kernel_se(c(100, 200), 1), noise = 0.2, hyper = "fixed")
  # At the distance 100 sqrt(2 log 20), exp(-r^2 / 2 / 100^2) is 1 / 20.
  expect_output(print(two), "245 along x, 490 along")
  expect_no_match(capture.output(print(gp_exact(z ~ x + dist, d, kernel = kernel_se(1, 1), noise = 0.2,
                                                hyper = "fixed"))), "nugget")
})

test_that("maps have the outline of the data, and degrees with compass letters", {
  d <- places(40)
  fit <- gp_exact(z ~ x + y, d, kernel = kernel_se(300, 1), noise = 0.2, hyper = "fixed")
  s <- map_table(fit, NULL, NULL, 4, TRUE, "response")
  expect_identical(s$asp, 1)
  expect_identical(s$outline[1, ], s$outline[nrow(s$outline), ])
  expect_equal(range(s$outline[, 1]), range(d$x))
  labels <- function(axis, lim) variable_ticks(list(axis = axis), lim)$labels
  expect_identical(labels(1L, c(160, 200)), paste0(c(160, 170, 180, 170, 160), "\u00b0 ", c("E", "E", "E", "W", "W")))
  expect_identical(labels(1L, c(-10, 0)), c(paste0(c(10, 8, 6, 4, 2), "\u00b0 W"), "0\u00b0"))
  expect_identical(labels(2L, c(-20, 20)), c("20\u00b0 S", "10\u00b0 S", "0\u00b0", "10\u00b0 N", "20\u00b0 N"))
})
