simulator <- function(x) (x - 0.3)^2 * sin(9 * x)

few_runs <- function(noise = 1e-8, w = rep(1, 4)) {
  d <- data.frame(x = c(0, 0.4, 0.6, 1), w = w)
  d$y <- simulator(d$x)
  gp_exact(y ~ x, d, kernel = kernel_se(0.3, 0.1), noise = noise, weights = w, hyper = "fixed")
}

test_that("expected improvement is that of quadrature, with slopes where it is 0 to rounding", {
  for (gap in c(-3, -0.5, 0, 0.2, 4)) {
    for (sd in c(0.3, 1, 2)) {
      truth <- stats::integrate(function(z) (gap + sd * z) * stats::dnorm(z), -gap / sd, 40, rel.tol = 1e-10)$value
      expect_equal(exp(log_improvement(gap, sd)), truth, tolerance = 1e-8)
    }
  }
  # h(z) is phi(z) (1 - |z| M(z)), with Mills' ratio M as a continued fraction.
  for (z in c(-19.9, -20.1, -40, -1000)) {
    mills <- Reduce(function(tail, k) k / (abs(z) + tail), 60:1, 0)  # |z| + k / (|z| + ...)
    expect_equal(log_improvement(z, 1), stats::dnorm(z, log = TRUE) + log(mills / (abs(z) + mills)), tolerance = 1e-6)
  }
  expect_true(all(diff(log_improvement(seq(-1e6, 10, length.out = 1000), 1)) > 0))
  expect_equal(exp(log_improvement(c(2, -2, NA), 0)), c(2, 0, NA))
})

test_that("the proposed row has the largest criterion on a fine grid, for every goal", {
  fit <- few_runs()
  grid <- data.frame(x = seq(0, 1, length.out = 501))
  p <- predict(fit, grid, se.fit = TRUE, type = "latent")
  improvement <- function(sign) {
    best <- min(sign * fitted(fit))
    z <- (best - sign * p$fit) / p$se.fit
    ifelse(p$se.fit > 0, p$se.fit * (stats::dnorm(z) + z * stats::pnorm(z)), 0)
  }
  cases <- list(minimum = improvement(1), maximum = improvement(-1), fill = p$se.fit,
                level = stats::qnorm(0.975) * p$se.fit - abs(p$fit - 0.05))
  for (goal in names(cases)) {
    got <- next_points(fit, goal = goal, lower = 0, upper = 1, level = if (goal == "level") 0.05)
    expect_gte(got$criterion, max(cases[[goal]]) * (1 - 1e-6))
    expect_lt(min(abs(got$x - grid$x[cases[[goal]] >= 0.999 * max(cases[[goal]])])), 0.01)
    # The criterion at candidates is the same as within bounds.
    among <- next_points(fit, goal = goal, candidates = grid, level = if (goal == "level") 0.05)
    expect_equal(among$criterion, max(cases[[goal]]), tolerance = 1e-6)
    expect_identical(among$x, grid$x[which.max(cases[[goal]])])
  }
})

test_that("the second row is that of a fit with the first row added, its mean as response", {
  near <- with_seed(2, data.frame(x = stats::runif(60)))
  near$y <- simulator(near$x)
  fits <- list(few_runs(1e-4), few_runs(0.01, c(1, 2, 1, 3)), with_seed(1, pfdtc(
    y ~ x, near, m = 4, neighbours = 60, kernel = kernel_se(0.3, 0.1), noise = 0.01, hyper = "fixed")))
  for (fit in fits) {
    for (goal in c("minimum", "fill")) {
      both <- next_points(fit, 2, goal)
      first <- cbind(both[1, "x", drop = FALSE], w = 1)
      first$y <- predict(fit, first)
      told <- add_rows(fit, first)
      expect_equal(next_points(told, 1, goal, candidates = both[2, "x", drop = FALSE])$criterion, both$criterion[2],
                   tolerance = 1e-4) # the jitter has this effect
      expect_identical(next_points(fit, 1, goal), both[1, ])
    }
  }
})

# Returns the criterion of gp_exact(noise = 0) with kernel_se(0.3, 0.1) by dense matrices. `x` and `y` are the measured
# rows, then the proposed rows with their means as responses.
dense_criterion <- function(fit, x, y, at, goal, level) {
  kernel <- function(a, b) 0.1 * exp(-outer(a, b, "-")^2 / (2 * 0.3^2))
  K <- kernel(x, x) + diag(fit$noise, length(x))
  C <- kernel(x, at)
  mean <- fit$center + drop(crossprod(C, solve(K, y - fit$center, tol = 0)))
  sd <- sqrt(pmax(0.1 - colSums(C * solve(K, C, tol = 0)), 0))
  improvement <- function(gap) sd * stats::dnorm(gap / sd) + gap * stats::pnorm(gap / sd)
  switch(goal, minimum = improvement(min(y) - mean), maximum = improvement(mean - max(y)), fill = sd,
         level = stats::qnorm(0.975) * sd - abs(mean - level))
}

test_that("without noise several rows are distinct, none is measured, and each has the largest criterion", {
  skip_on_cran()
  d <- data.frame(x = c(0, 0.4, 0.6, 1))
  d$y <- simulator(d$x)
  fit <- gp_exact(y ~ x, d, kernel = kernel_se(0.3, 0.1), noise = 0, hyper = "fixed")
  grid <- seq(0, 1, length.out = 201)
  for (goal in c("minimum", "maximum", "level", "fill")) {
    level <- if (goal == "level") d$y[3] # so that a measured row has the largest criterion of all
    got <- next_points(fit, 4, goal, level = level)
    expect_gt(min(stats::dist(c(got$x, d$x))), 1e-4)
    x <- d$x
    y <- d$y
    for (i in 1:3) {
      away <- grid[vapply(grid, function(g) min(abs(g - x)) > 0.003, NA)]
      best <- max(dense_criterion(fit, x, y, away, goal, level))
      expect_gte(got$criterion[i], best - 1e-4 * max(abs(best), 1e-3)) # proposed rows have a jitter
      expect_equal(got$criterion[i], dense_criterion(fit, x, y, got$x[i], goal, level), tolerance = 1e-3)
      x <- c(x, got$x[i])
      y <- c(y, predict(fit, got[i, "x", drop = FALSE]))
    }
    # A measured row is chosen last, with an expected improvement of 0.
    among <- next_points(fit, 6, goal, candidates = rbind(d["x"], data.frame(x = c(0.7, 0.2))), level = level)
    expect_setequal(among$x[1:2], c(0.2, 0.7))
    nothing <- if (goal == "level") -abs(d$y - level)[match(among$x[3:6], d$x)] else 0
    expect_equal(among$criterion[3:6], nothing + numeric(4), tolerance = 1e-6)
  }
})

test_that("factors, logical variables, times and places keep their kinds, within bounds", {
  d <- transform(mtcars, am = am > 0, cyl = factor(cyl))
  fit <- pfdtc(mpg ~ wt + cyl + am, d, kernel = kernel_se(c(1, 1, 1, 1, 1), 30), noise = 4, hyper = "fixed")
  got <- next_points(fit, 3, "maximum", lower = c(wt = 2), upper = c(wt = 4))
  expect_identical(levels(got$cyl), levels(d$cyl))
  expect_type(got$am, "logical")
  expect_true(all(got$wt >= 2 & got$wt <= 4))
  all <- expand.grid(wt = seq(2, 4, 0.01), cyl = levels(d$cyl), am = c(FALSE, TRUE))
  expect_gte(got$criterion[1], next_points(fit, 1, "maximum", candidates = all)$criterion * (1 - 1e-4))
  expect_identical(next_points(fit, 1, "fill", lower = 3, upper = 3)$wt, 3)
  d <- with_seed(1, data.frame(x = stats::runif(40), g = factor(rep(c("a", "b"), 20))))
  d$y <- sin(5 * d$x) + (d$g == "b")
  got <- next_points(pfdtc(y ~ x + (1 | g), d), 1, "maximum")
  expect_identical(as.character(got$g), "b")
  times <- data.frame(t = as.Date("2020-01-01") + c(0, 40, 80, 160))
  times$y <- c(0, 1, 0.5, 2)
  fit <- pfdtc(y ~ t, times, kernel = kernel_se(20, 1), noise = 0.01, hyper = "fixed")
  got <- next_points(fit, 1, "fill", upper = as.Date("2020-05-01"))
  expect_s3_class(got$t, "Date")
  expect_equal(as.numeric(got$t), as.numeric(as.Date("2020-04-30")), tolerance = 1e-4)
})

test_that("the largest sd within bounds is found in a corner", {
  runs <- with_seed(12, {
    d <- as.data.frame(matrix(stats::runif(45), 15))
    list(d = transform(d, y = sin(4 * V1) + 0.05 * stats::rnorm(15)), l = stats::runif(1, 0.3, 1))
  })
  fit <- gp_exact(y ~ ., runs$d, kernel = kernel_se(rep(runs$l, 3), 1), noise = 0.01, hyper = "fixed")
  corners <- stats::setNames(expand.grid(rep(list(0:1), 3)), c("V1", "V2", "V3"))
  best <- next_points(fit, 1, "fill", candidates = corners)$criterion
  expect_gte(next_points(fit, 1, "fill", lower = 0, upper = 1)$criterion, best * (1 - 1e-6))
})

test_that("a bound is a number, or a time, as its input is", {
  d <- data.frame(x = c(1, 3, 4, 6), t = as.POSIXct("2024-01-01", tz = "UTC") + 86400 * 0:3,
                  wait = as.difftime(c(1, 2, 4, 5), units = "mins"), y = c(1, 3, 2, 4))
  fit <- gp_exact(y ~ x + t + wait, d, kernel = kernel_se(c(1, 1, 1), 1), noise = 0.1, hyper = "fixed")
  held <- function(...) next_points(fit, 1, "fill", lower = list(...), upper = list(...))
  expect_input_error(held(x = as.Date("2024-01-01")), "lower")
  expect_input_error(held(x = d$wait[1]), "lower")
  expect_input_error(held(wait = as.Date("2024-01-01")), "lower")
  expect_input_error(held(t = 19723), "lower")
  noon <- as.POSIXct("2024-01-02 12:00", tz = "UTC")
  expect_equal(held(t = noon)$t, noon)
  expect_equal(held(t = as.POSIXlt(noon))$t, noon)
  expect_equal(held(t = as.Date("2024-01-02"))$t, noon - 43200)
  expect_equal(as.numeric(held(wait = as.difftime(180, units = "secs"))$wait), 3)
  attr(d$t, "tzone") <- "Asia/Tokyo" # times are shown in the zone of the data
  fit <- gp_exact(y ~ x + t + wait, d, kernel = kernel_se(c(1, 1, 1), 1), noise = 0.1, hyper = "fixed")
  expect_identical(format(held(t = noon)$t), "2024-01-02 21:00:00")
})

test_that("a transformed response, other families and fits of matrices have the same goals", {
  d <- data.frame(x = c(0, 0.3, 0.5, 0.8, 1))
  d$y <- exp(simulator(d$x) * 10)
  fit <- gp_exact(y ~ x, d, kernel = kernel_se(0.3, 1), noise = 1e-6, hyper = "fixed", transform = "log")
  got <- next_points(fit, goal = "level", level = 1.5)
  p <- predict(fit, got, type = "latent", se.fit = TRUE)
  expect_equal(got$criterion, unname(stats::qnorm(0.975) * p$se.fit - abs(p$fit - log(1.5))), tolerance = 1e-6)
  expect_match(attr(got, "about"), "from 0.4054651, which is f at level 1.5 of the response", fixed = TRUE)
  x <- cbind(a = d$x, b = rev(d$x)^2)
  fit <- pfdtc(x, c(0, 1, 1, 0, 1), family = binomial(), kernel = kernel_se(0.5, 1), hyper = "fixed")
  got <- next_points(fit, 4, "level", level = 0.5)
  expect_named(got, c("a", "b", "criterion"))
  expect_gt(min(stats::dist(got[1:2])), 0.05) # proposed rows count as known
})

test_that("candidates of a fit of a matrix need no names, and an input may be called criterion", {
  x <- cbind(c(0, 0.4, 0.6, 1), c(1, 0, 1, 0))
  y <- c(1, 0, 2, 1)
  fit_of <- function(x) gp_exact(x, y, kernel = kernel_se(0.5, 1), noise = 0.01, hyper = "fixed")
  at <- rbind(c(0.2, 0.1), c(0.5, 0.5))
  want <- next_points(fit_of(x), 2, candidates = data.frame(x1 = at[, 1], x2 = at[, 2]))
  names <- c("criterion", "b")
  named <- fit_of(`colnames<-`(x, names))
  for (got in list(next_points(fit_of(x), 2, candidates = at),
                   next_points(fit_of(x), 2, candidates = `colnames<-`(at, c("b", "a"))),
                   next_points(named, 2, candidates = at),
                   next_points(named, 2, candidates = `colnames<-`(at, names)[, 2:1]))) {
    expect_equal(unname(as.list(got)), unname(as.list(want)))
  }
  expect_named(got, c("criterion", "b", "criterion.1"))
  expect_input_error(next_points(named, candidates = at[, 1, drop = FALSE]), "candidates")
})

test_that("bounds, candidates and levels are refused by name", {
  fit <- few_runs()
  expect_input_error(next_points(fit, lower = 2, upper = 1), "lower")
  expect_input_error(next_points(fit, lower = c(z = 1)), "`lower` has `z`, but numeric inputs are")
  expect_input_error(next_points(fit, upper = "a"), "upper")
  expect_input_error(next_points(fit, goal = "level"), "level")
  expect_input_error(next_points(fit, level = 1), "level")
  expect_input_error(next_points(fit, n = 3, candidates = data.frame(x = 1:2)), "candidates")
  expect_input_error(next_points(fit, candidates = data.frame(x = NA_real_)), "candidates")
  expect_input_error(next_points(fit, candidates = data.frame(x = 1), lower = 0), "candidates")
  d <- data.frame(x = 1:5, y = c(1, 3, 2, 4, 1))
  inside <- gp_exact(y ~ log(x), d, kernel = kernel_se(0.5, 1), noise = 0.1, hyper = "fixed")
  expect_input_error(next_points(inside), "x")
  expect_input_error(next_points(fit, threshold = 3), "threshold")
  # A variable of the offset has no range, and the message tells how to fix it.
  d$o <- 5:1
  shifted <- gp_exact(y ~ x, d, offset = o, kernel = kernel_se(0.5, 1), noise = 0.1, hyper = "fixed")
  expect_input_error(next_points(shifted), "has no finite value for `o`. Set `lower` and `upper`")
  expect_identical(next_points(shifted, goal = "fill", lower = c(o = 2), upper = c(o = 2))$o, 2)
  got <- next_points(inside, goal = "fill", lower = 1, upper = 9)
  expect_equal(got$x, 9, tolerance = 1e-6)
})

test_that("a loop ends near the minimum of a simulator", {
  only_nightly()
  d <- data.frame(x = c(0, 0.5, 1))
  d$y <- simulator(d$x)
  for (i in 1:6) {
    fit <- suppressWarnings(pfdtc(y ~ x, d, noise = 0))
    new <- next_points(fit)
    d <- rbind(d, data.frame(x = new$x, y = simulator(new$x)))
  }
  expect_lt(min(d$y) - min(simulator(seq(0, 1, 1e-4))), 1e-3)
})
