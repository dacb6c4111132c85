# Compares the Vecchia likelihood in C and its derivatives with the conditional densities.

# Returns rows given their neighbours, by the joint normal of both: T = K + diag(noise / w) on (S, i).
ref_conditionals <- function(p, rows, neighbours, times) {
  one <- function(t) {
    s <- neighbours[neighbours[, t] > 0, t]
    joint <- function(i) {
      if (!length(i)) return(0)
      x <- p$x[i, , drop = FALSE]
      ref_log_normal(p$y[i], ref_k(p$kernel, x) + diag(p$noise / ref_weights(p$weights, p$x)[i], length(i)))
    }
    joint(c(s, rows[t])) - joint(s)
  }
  sum(times * unlist(lapply(seq_along(rows), one)))
}

# Returns E[dl dl'] by the normal of y_i and y_S: for l = log p(y_S, y_i) - log p(y_S) it is the difference of the two
# Fisher informations, tr(T^-1 T_j T^-1 T_k) / 2.
ref_information <- function(p, rows, neighbours, times) {
  information <- function(i) ref_information_of(p, i)
  Reduce(`+`, lapply(seq_along(rows), function(t) {
    s <- neighbours[neighbours[, t] > 0, t]
    times[t] * (information(c(s, rows[t])) - information(s))
  }))
}

# Returns the Fisher information of rows i.
ref_information_of <- function(p, i) {
  if (!length(i)) return(0)
  theta <- log(c(p$kernel$lengthscale, p$kernel$variance, p$noise))
  d <- length(p$kernel$lengthscale)
  cov_of <- function(i, theta) {
    kernel <- p$kernel
    kernel$lengthscale <- exp(theta[seq_len(d)])
    kernel$variance <- exp(theta[d + 1])
    ref_k(kernel, p$x[i, , drop = FALSE]) + diag(exp(theta[d + 2]) / ref_weights(p$weights, p$x)[i], length(i))
  }
  slopes <- lapply(seq_along(theta), function(j) { # by a complex step
    moved <- theta + 0i
    moved[j] <- moved[j] + 1e-20i
    solve(cov_of(i, theta), Im(cov_of(i, moved)) / 1e-20)
  })
  outer(seq_along(theta), seq_along(theta), Vectorize(function(j, k) sum(slopes[[j]] * t(slopes[[k]])) / 2))
}

likelihood_case <- function(p, s = 4) {
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  n <- nrow(p$x)
  rank <- with_seed(2, sample.int(n))
  rows <- with_seed(3, sample.int(n, n - 3))
  neighbours <- native_neighbours(kernel, p$x, s, rows = rows, rank = rank)
  times <- with_seed(4, stats::runif(length(rows), 0.5, 2))
  list(kernel = kernel, rows = rows, neighbours = neighbours, times = times)
}

test_that("value, score and information are those of the conditional densities, every kernel, with weights", {
  for (p in problems()) {
    m <- likelihood_case(p)
    got <- native_vecchia(p, new_model(m$kernel, p$noise), m$rows, m$neighbours, m$times)
    expect_close(got$value, ref_conditionals(p, m$rows, m$neighbours, m$times), 1e-10, label_of(p))
    at <- log(c(p$kernel$lengthscale, p$kernel$variance, p$noise))
    d <- length(p$kernel$lengthscale)
    slope <- ref_derivative(function(theta) {
      q <- p
      q$kernel$lengthscale <- exp(theta[seq_len(d)])
      q$kernel$variance <- exp(theta[d + 1])
      q$noise <- exp(theta[d + 2])
      ref_conditionals(q, m$rows, m$neighbours, m$times)
    }, at)
    expect_close(got$score, slope, 1e-9, label_of(p))
    expect_close(got$information, ref_information(p, m$rows, m$neighbours, m$times), 1e-8, label_of(p))
    alone <- native_vecchia(p, new_model(m$kernel, p$noise), m$rows, m$neighbours, m$times, slopes = FALSE)
    expect_equal(alone$value, got$value, tolerance = 1e-14)
  }
})

test_that("with all earlier rows the Vecchia likelihood is the exact density; blocks and threads change nothing", {
  p <- problem("matern52", n = 90, m = 4, weighted = TRUE)
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  all_of <- function(s) native_neighbours(kernel, p$x, s, rows = 1:90, rank = 1:90)
  value <- function(near, ...) native_vecchia(p, new_model(kernel, p$noise), 1:90, near, ...)
  exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
  expect_close(value(all_of(89))$value, exact$evidence, 1e-10)
  near <- all_of(10)
  plain <- value(near)
  for (block in c(1, 7, 40)) {
    expect_equal(value(near, control = pfdtc_control(block = block, threads = 2)), plain, tolerance = 1e-12,
                 info = block)
  }
})

test_that("with more than the 256 rows of a block, sums are those of parts", {
  p <- problem("matern32", n = 600, m = 4)
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  near <- native_neighbours(kernel, p$x, 8, rows = 1:600, rank = 1:600)
  value <- function(rows, threads = 1) {
    native_vecchia(list(x = p$x, y = p$y), new_model(kernel, p$noise), rows, near[, rows, drop = FALSE],
                   control = pfdtc_control(threads = threads))[c("value", "score", "information")]
  }
  parts <- lapply(list(1:150, 151:400, 401:600), value) # each in one block
  whole <- Reduce(function(a, b) Map(`+`, a, b), parts)
  for (threads in 1:2) expect_equal(value(1:600, threads), whole, tolerance = 1e-11)
})

test_that("gradients include the terms of merged rows and of the prior", {
  x <- with_seed(5, matrix(round(stats::runif(60), 1)))
  y <- with_seed(6, stats::rnorm(60))
  data <- data_from_matrix(x, y)
  s <- learning_settings(place_kernel(kernel_se(), data$x), NULL, colnames(data$x),
                         c("lengthscale.x1", "variance", "noise"), pfdtc_control(progress = FALSE))
  problem <- with_seed(7, learning_problem(learning_rows(data, s), s, "se"))
  theta <- log(c(0.3, 0.8, 0.5))
  rows <- seq_len(problem$pool$n)
  near <- problem$neighbours(theta, rows, 5)
  at <- problem$vecchia(theta, rows, near)
  value <- function(theta) problem$vecchia(theta, rows, near)$value
  expect_gradient(value, theta, at$gradient)
  # With all rows, merged, and all earlier rows as neighbours, the likelihood is the log density of the rows as given,
  # up to half the logs of the weights.
  all_near <- problem$neighbours(theta, rows, length(rows) - 1)
  exact <- ref_exact(data$x[data$group, , drop = FALSE], (y - mean(y)) / stats::sd(y),
                     ref_kernel("se", 0.3, 0.8), 0.5)
  expect_close(problem$vecchia(theta, rows, all_near)$likelihood,
               exact$evidence + sum(log(data$weights)) / 2, 1e-9)
})

test_that("with all earlier rows score and information are those of the exact evidence", {
  for (profile in quick(profiles)) {
    p <- problem(profile, n = 25, d = 2, weighted = TRUE)
    kernel <- complete_kernel(package_kernel(p$kernel), p$x)
    rank <- with_seed(2, sample.int(25))
    near <- native_neighbours(kernel, p$x, 24, rows = 1:25, rank = rank)
    got <- native_vecchia(p, new_model(kernel, p$noise), 1:25, near)
    exact <- native_exact_evidence(p, new_model(kernel, p$noise))
    expect_close(got$value, -exact$value, 1e-10, profile)
    expect_close(got$score, -c(exact$theta, exact$noise), 1e-9, profile)
    # The information is tr(T^-1 T_j T^-1 T_k) / 2.
    expect_close(got$information, ref_information_of(p, 1:25), 1e-8, profile)
    expect_identical(got$information, t(got$information))
    expect_gt(min(eigen(got$information, symmetric = TRUE, only.values = TRUE)$values), 0)
  }
})

test_that("the Vecchia likelihood allows no neighbours, one row, no rows, many neighbours and rows that count twice", {
  p <- problem("matern32", n = 30, d = 1, weighted = TRUE)
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  value <- function(rows, near, ...) native_vecchia(p, new_model(kernel, p$noise), rows, near, ...)
  alone <- value(1:30, matrix(0L, 1, 30))
  expect_close(alone$value, sum(stats::dnorm(p$y, sd = sqrt(1.7 + p$noise / p$weights), log = TRUE)), 1e-12)
  expect_identical(alone$score[1], 0)            # has no information on distances
  expect_identical(value(1:30, matrix(0L, 0, 30)), alone)
  none <- value(integer(), matrix(0L, 3, 0))
  expect_identical(unlist(none[c("value", "score", "information")], use.names = FALSE), numeric(1 + 3 + 9))
  one <- value(5L, matrix(c(3L, 9L), 2))
  three <- value(c(5L, 5L, 5L), matrix(c(3L, 9L), 2, 3))
  for (part in c("value", "score", "information")) {
    expect_equal(three[[part]], 3 * one[[part]], tolerance = 1e-13)
    expect_equal(value(5L, matrix(c(3L, 9L), 2), 3)[[part]], 3 * one[[part]], tolerance = 1e-13)
    # The order of the neighbours and zeros after them have no effect.
    expect_equal(value(5L, matrix(c(9L, 3L), 2))[[part]], one[[part]], tolerance = 1e-12)
    expect_identical(value(5L, matrix(c(3L, 9L, 0L), 3))[[part]], one[[part]])
  }
})

test_that("inputs far from 0, unused columns and equal rows give the same numbers or a status, never NaN", {
  p <- problem("matern12", n = 20, d = 2)
  m <- likelihood_case(p)
  plain <- native_vecchia(list(x = p$x, y = p$y), new_model(m$kernel, p$noise), m$rows, m$neighbours, m$times)
  for (at in c(1e6, -1e6)) { # x loses digits, to 1e-10
    far <- native_vecchia(list(x = p$x + at, y = p$y), new_model(m$kernel, p$noise), m$rows, m$neighbours, m$times)
    for (part in c("value", "score", "information")) expect_close(far[[part]], plain[[part]], 1e-8)
  }
  wide <- m$kernel
  wide$inputs <- c(2L, 4L)
  x <- cbind(1e300, p$x[, 1], -1, p$x[, 2])
  more <- native_vecchia(list(x = x, y = p$y), new_model(wide, p$noise), m$rows, m$neighbours, m$times)
  for (part in c("value", "score", "information")) expect_identical(more[[part]], plain[[part]])

  for (profile in profiles) {
    kernel <- complete_kernel(package_kernel(ref_kernel(profile, c(0.9, 1.6), 1.7)), p$x)
    for (noise in 10^-c(5, 20, 100, 300)) for (case in c("apart", "equal", "near")) {
      x <- p$x
      if (case == "equal") x[11:20, ] <- x[1:10, ]
      if (case == "near") x[11:20, ] <- x[1:10, ] + 1e-13
      near <- native_neighbours(kernel, x, 8, rows = 1:20, rank = 1:20)
      got <- native_vecchia(list(x = x, y = p$y), new_model(kernel, noise), 1:20, near)
      info <- paste(profile, noise, case)
      if (identical(got$value, Inf)) {
        expect_match(got$reason, "[a-z]", info = info)
      } else {
        expect_true(all(is.finite(unlist(got[c("value", "score", "information")]))), info = info)
      }
      if (case == "apart" && profile == "matern12") expect_lt(got$value, Inf)
    }
  }
  # An overflow is a status as well.
  huge <- native_vecchia(list(x = p$x, y = p$y * 1e200), new_model(m$kernel, p$noise), m$rows, m$neighbours, m$times)
  expect_identical(huge$value, Inf)
})

test_that("the likelihood of one row given its neighbours leaves arguments as they were", {
  p <- problem("se", n = 15, weighted = TRUE)
  m <- likelihood_case(p)
  before <- rapply(list(p, m), function(v) v + 0L, "numeric", how = "replace")
  first <- native_vecchia(p, new_model(m$kernel, p$noise), m$rows, m$neighbours, m$times)
  expect_identical(list(p, m), before)
  expect_identical(native_vecchia(p, new_model(m$kernel, p$noise), m$rows, m$neighbours, m$times), first)
})

test_that("in expectation the score is 0 at the truth and its variance the information, whatever the neighbours", {
  only_nightly()
  p <- problem("matern32", n = 12, d = 1, noise = 0.5)
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  near <- matrix(c(order(p$x)[c(1, 4, 12)], 0L)) # not those nearest to the seventh row
  row <- order(p$x)[7]
  at <- function(y) native_vecchia(list(x = p$x, y = y), new_model(kernel, p$noise), row, near)
  R <- chol(ref_k(p$kernel, p$x) + diag(p$noise, 12))
  scores <- with_seed(9, replicate(3000, at(drop(crossprod(R, stats::rnorm(12))))$score))
  information <- at(p$y)$information
  expect_true(all(abs(rowMeans(scores)) < 5 * sqrt(diag(information) / 3000)))
  # Scores are quadratic in normal variables, so the variance of their squares is at most 14 v^2.
  v <- diag(information)
  expect_true(all(abs(stats::cov(t(scores)) - information) < 5 * sqrt(14 * outer(v, v) / 3000)))
})

test_that("with one lengthscale for all inputs, score and information are sums over those of many equal lengthscales", {
  for (profile in profiles) {
    p <- problem(profile, n = 25, d = 2, weighted = TRUE)
    iso <- complete_kernel(package_kernel(ref_kernel(profile, c(0.8, 0.8), 1.3)), p$x)
    many <- new_model(iso, p$noise)
    iso$isotropic <- TRUE
    iso$lengthscale <- 0.8
    near <- native_neighbours(iso, p$x, 6, rows = 1:25, rank = 1:25)
    one <- native_vecchia(p, new_model(iso, p$noise), 1:25, near)
    all <- native_vecchia(p, many, 1:25, near)
    sums <- rbind(c(1, 1, 0, 0), c(0, 0, 1, 0), c(0, 0, 0, 1))
    expect_close(one$value, all$value, 1e-12, profile)
    expect_close(one$score, drop(sums %*% all$score), 1e-10, profile)
    expect_close(one$information, sums %*% all$information %*% t(sums), 1e-10, profile)
  }
})

test_that("a factor as one column of level numbers has the value and slopes of its 0/1 columns", {
  x <- with_seed(4, cbind(a = stats::runif(61), outer(sample(7L, 61, TRUE), 1:7, "==") + 0, b = stats::rnorm(61)))
  colnames(x)[2:8] <- paste0("g", 1:7)
  groups <- c("a", rep("g", 7L), "b")
  y <- with_seed(5, stats::rnorm(61))
  kernels <- list(kernel_se(), kernel_matern(1 / 2), kernel_matern(5 / 2), kernel_rq(),
                  kernel_additive(kernel_matern(3 / 2), pairs = TRUE))
  for (kernel in kernels) {
    kernel <- place_kernel(kernel, x)
    if (is_additive(kernel)) kernel$groups <- groups
    kernel$shared <- shared_by(groups)
    columns <- compile_kernel(kernel)
    values <- with_seed(6, stats::runif(nrow(columns$table), 0.5, 1.5))
    numbers <- by_numbers_of_levels(columns, x)
    at <- list(list(x = x, y = y), new_model(set_values(columns, values), 0.3))
    by <- list(list(x = numbers$rows(x), y = y), new_model(set_values(numbers$kernel, values), 0.3))
    expect_equal(ncol(by[[1L]]$x), 3L)
    near <- native_neighbours(at[[2L]]$kernel, x, 9, rows = 1:61, rank = 1:61)
    exact <- function(p) native_exact_evidence(p[[1L]], p[[2L]])[c("value", "theta", "noise")]
    vecchia <- function(p) native_vecchia(p[[1L]], p[[2L]], 1:61, near)
    # Squared distances are sums of the same squares in another order.
    expect_equal(exact(by), exact(at), tolerance = 1e-11, info = kernel$label)
    expect_equal(vecchia(by), vecchia(at), tolerance = 1e-11, info = kernel$label)
    neighbours <- function(p, ...) native_neighbours(p[[2L]]$kernel, p[[1L]]$x, 9, ...)
    expect_identical(neighbours(by, rows = 1:61, rank = 61:1), neighbours(at, rows = 1:61, rank = 61:1), kernel$label)
    expect_identical(neighbours(by, query = by[[1L]]$x), neighbours(at, query = x), kernel$label)
    # Greedy points and the posterior with neighbours read level numbers, unless a point is between levels.
    expect_identical(choose_greedy(x, 9, at[[2L]]$kernel)$rows, choose_greedy(by[[1L]]$x, 9, by[[2L]]$kernel)$rows)
    for (z in list(x[1:9, ], x[1:9, ] - 0.1)) {
      found <- near_posterior(at[[1L]], z, at[[2L]], 5, 5, 61:1)
      want <- native_near(z, at[[1L]], at[[2L]], 5, 61:1, 1e-12)
      expect_equal(found[c("L", "C", "beta")], want[c("L", "C", "beta")], tolerance = 1e-9, info = kernel$label)
      expect_equal(found$evidence, -want$minus_log, tolerance = 1e-11, info = kernel$label)
    }
  }
})

test_that("the information of some rows is that of every fourth of 16, for all lanes and threads", {
  x <- with_seed(4, matrix(stats::runif(3 * 301), 301))
  data <- list(x = x, y = with_seed(5, stats::rnorm(301)))
  model <- new_model(place_kernel(kernel_matern(3 / 2, c(0.4, 0.5, 0.6), 1), x), 0.3)
  rows <- with_seed(6, sample(301L, 290L))
  near <- native_neighbours(model$kernel, x, 9, rows = rows, rank = 1:301) # the first ranks have fewer neighbours
  whole <- native_vecchia(data, model, rows, near)
  counted <- (seq_along(rows) - 1L) %/% 16L %% 4L == 0L
  some <- native_vecchia(data, model, rows, near, slopes = 2L)
  expect_equal(some[c("value", "score")], whole[c("value", "score")], tolerance = 1e-12) # sums in another order
  part <- native_vecchia(data, model, rows, near, times = as.double(counted))
  expect_equal(some$information, part$information * length(rows) / sum(counted), tolerance = 1e-12)
  # The estimate is from 80 of 290 rows: a sum of squares of normals has the relative sd sqrt(2 / 80).
  expect_lt(max(abs(diag(some$information) / diag(whole$information) - 1)), 0.5)
  asked <- function(last) {
    climb(list(last = last, pool = list(n = 1L, take = identity), vecchia = function(theta, rows, near, slopes) {
      list(value = -Inf, seen = slopes_seen <<- slopes)
    }, neighbours = function(...) 1L), 0, "few", 1L)
    slopes_seen
  }
  slopes_seen <- NULL
  expect_identical(asked(101L), 2L)
  expect_true(asked(100L))
})

test_that("three columns that share a lengthscale are levels of a factor only if each row has one 1 in them", {
  x <- with_seed(7, matrix(stats::runif(60), 20L))
  sphere <- place_kernel(kernel_se(), x)
  sphere$shared <- shared_by(rep("s", 3L))
  expect_identical(by_numbers_of_levels(compile_kernel(sphere), x)$rows(x), x)
  two <- cbind(rep(0:1, 10), rep(1, 20), 0)
  expect_identical(by_numbers_of_levels(compile_kernel(sphere), two)$rows(two), two)
})

test_that("a search ends early only if it cannot reach the value at which its model would be chosen", {
  steps <- function(least) {
    count <- 0
    problem <- list(lower = -9, upper = 9, free = TRUE, pool = list(until = Inf), evaluate = function(theta) {
      count <<- count + 1
      list(value = -theta^2 / 2, gradient = -theta)
    })
    # The first step predicts a gain of 1/4.
    end <- ascend(problem, 1, maxit = 30L, enough = 1e-6, information = matrix(2), least = least)
    c(count, end$value)
  }
  expect_identical(steps(4.6), c(1, -0.5))
  expect_gt(steps(4)[1L], 1)
  expect_gt(steps(-0.1)[2L], -1e-5)
  expect_identical(steps(-0.1), steps(-Inf))
})

test_that("a noise basis of 0/1 columns has the derivatives of an equal basis without zeros", {
  n <- 150
  q <- 40
  x <- with_seed(3, matrix(stats::runif(2 * n), n))
  B <- cbind(x, outer(with_seed(4, sample(q, n, TRUE)), seq_len(q), `==`))
  data <- list(x = x, y = with_seed(5, stats::rnorm(n)), weights = with_seed(6, stats::runif(n, 0.5, 2)))
  model <- list(kernel = place_kernel(kernel_se(lengthscale = c(0.3, 0.4), variance = 0.8), x), noise = 0.3)
  rows <- 31:n
  near <- with_seed(7, vapply(rows, function(i) sample.int(i - 1L, 12L), integer(12)))
  at <- function(B, slopes) native_vecchia(data, model, rows, near, slopes = slopes, basis = B)
  A <- diag(q + 2)
  A[seq_len(q), ] <- A[seq_len(q), ] + 0.1
  J <- diag(q + 6)
  J[-(1:4), -(1:4)] <- A
  expect_true(all(B %*% A != 0))
  for (slopes in 1:2) {
    sparse <- at(B, slopes)
    dense <- at(B %*% A, slopes)
    expect_identical(sparse$value, dense$value)
    expect_equal(drop(crossprod(J, sparse$score)), dense$score, tolerance = 1e-12) # rounding
    expect_equal(crossprod(J, sparse$information %*% J), dense$information, tolerance = 1e-12)
  }
})
