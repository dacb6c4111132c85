test_that("a product of rough kernels is 0 at distances whose square is infinite", {
  x <- cbind(a = c(0, 1e200, 1), b = 0)
  for (nu in c(3, 5) / 2) {
    rough <- kernel_matern(nu, 1e-200, 1, inputs = "a")
    expect_identical(unname(kernel_matrix(rough * kernel_se(1, 2, inputs = "b"), x)), diag(2, 3))
    expect_identical(unname(kernel_matrix(rough * kernel_periodic(1, 2, 3, inputs = "b"), x)), diag(2, 3))
  }
})

test_that("kernel_matrix() is the double loop for every factor and for random sums of products", {
  x <- kernel_rows(9)
  z <- kernel_rows(5, 2)
  kernels <- some_kernels(length(some_of(1:40, 15)))
  for (name in names(kernels)) {
    k <- complete_kernel(kernels[[name]], x)
    got <- kernel_matrix(k, x, z)
    size <- sqrt(outer(diag(ref_composite(k, x)), diag(ref_composite(k, z))))
    expect_lt(max(abs(got - ref_composite(k, x, z)) / pmax(size, 1)), 1e-13, label = name) # some dozen roundings
    K <- kernel_matrix(k, x)
    expect_identical(K, t(K), info = name)
    expect_gt(min(eigen(K, TRUE, only.values = TRUE)$values), -1e-13 * sum(diag(K)), label = name)
    expect_equal(diag(K), kernel_diagonal(k, x), tolerance = 1e-14, info = name)
    expect_identical(K[nrow(x), -nrow(x)], K[1, -nrow(x)], info = name) # equal rows are equal
  }
})

test_that("the ELBO's gradient is right in Z and in every parameter, for every factor and random kernels", {
  skip_on_cran()
  x <- kernel_rows(14)
  y <- with_seed(3, stats::rnorm(14))
  w <- with_seed(4, stats::runif(14, 0.5, 2))
  z <- kernel_rows(4, 5)
  kernels <- some_kernels(8, 2)
  for (name in names(kernels)) {
    k <- complete_kernel(kernels[[name]], x)
    args <- check_objective(z, x, y, k, 0.3, w, 0.02)
    theta <- log(kernel_values(k))
    value <- function(z, theta, noise) { # vfe_objective() up to a constant, without its checks
      model <- replace(args$model, c("kernel", "noise"), list(set_values(args$model$kernel, exp(theta)), noise))
      objective_of(args, NULL, z, model, args$jitter)$value
    }
    got <- vfe_objective(z, x, y, k, 0.3, w, jitter = 0.02)$gradient
    expect_named(got$theta, c(kernel_parameter_names(k, colnames(x)), "noise"))
    for (j in seq_along(theta)) {
      expect_slope(got$theta[[j]], function(v) value(z, replace(theta, j, v), 0.3), theta[j],
                   paste(name, names(got$theta)[j]))
    }
    expect_slope(got$theta[["noise"]], function(v) value(z, theta, exp(v)), log(0.3), paste(name, "noise"))
    for (j in smooth_inputs(k)) {
      expect_slope(got$z[2, j], function(v) value(`[<-`(z, 2, j, v), theta, 0.3), z[2, j], paste(name, "z", j))
    }
    expect_true(all(got$z[, setdiff(1:6, k$inputs)] == 0), info = name)
  }
})

test_that("pF has the right gradient where k(z, z) depends on z, its jitter included", {
  skip_on_cran()
  x <- kernel_rows(12)
  y <- with_seed(3, stats::rnorm(12))
  z <- kernel_rows(4, 5)
  kernels <- with_seed(6, c(list(random_factor("polynomial")), lapply(1:8, function(i) {
    random_factor("linear") * random_factor("se") + random_kernel()
  })))
  for (i in seq_along(kernels)) {
    k <- complete_kernel(kernels[[i]], x)
    for (aux in in_turn(list(aux_subset(6), aux_sor(4), aux_white()), i, 2)) {
      nu <- with_seed(1, auxiliary(x, y, k, 0.3, aux))
      value <- function(z) pf_objective(z, x, y, k, 0.3, nu, jitter = 0.05)$value
      got <- pf_objective(z, x, y, k, 0.3, nu, jitter = 0.05)$gradient
      for (j in smooth_inputs(k)) {
        expect_slope(got[3, j], function(v) value(`[<-`(z, 3, j, v)), z[3, j], k$label, 1e-5)
      }
    }
  }
})

test_that("exact evidence and the Vecchia likelihood have the right slopes, and agree with all rows as neighbours", {
  x <- kernel_rows(15)
  x[15, "a"] <- 0.3
  y <- with_seed(3, stats::rnorm(15))
  near <- rbind(sapply(1:15, function(i) c(seq_len(i - 1), rep(0L, 15 - i)))) # 14 x 15: all earlier rows
  storage.mode(near) <- "integer"
  kernels <- some_kernels(12, 5)
  kernels$closed <- kernel_matern(1 / 2, c(0.7, 1.2), 0.8, c("a", "b")) *
    kernel_matern(5 / 2, 0.9, 1, c("b", "c"), TRUE) * kernel_se(1.1, 1, "c") +
    kernel_matern(3 / 2, c(0.4, 2, 1), 0.5, c("a", "b", "c"))
  for (name in names(kernels)) {
    k <- complete_kernel(kernels[[name]], x)
    theta <- log(kernel_values(k))
    data <- list(x = x, y = y)
    value <- function(theta) native_exact_evidence(data, new_model(set_values(k, exp(theta)), 0.3))$value
    exact <- native_exact_evidence(data, new_model(k, 0.3))
    conditional <- native_vecchia(data, new_model(k, 0.3), 1:15, near)
    expect_equal(conditional$value, -exact$value, tolerance = 1e-9, info = name)
    expect_equal(conditional$score, -c(exact$theta, exact$noise), tolerance = 1e-6, info = name)
    for (j in seq_along(theta)) {
      expect_slope(exact$theta[j], function(v) value(replace(theta, j, v)), theta[j], name)
    }
    K <- ref_composite(k, x) + diag(0.3, 15)
    expect_equal(-exact$value, ref_log_normal(y, K), tolerance = 1e-10, info = name)
  }
})

test_that("certificates and brackets contain the exact posterior, whatever the kernel", {
  skip_on_cran()
  for (seed in some_of(1:25, 4)) {
    p <- with_seed(seed, list(n = sample(15:60, 1), m = sample(2:12, 1), noise = 10^stats::runif(1, -3, 0)))
    x <- kernel_rows(p$n, seed)
    y <- with_seed(seed, stats::rnorm(p$n))
    new <- rbind(kernel_rows(6, seed + 100), 3 * kernel_rows(2, seed + 200))
    new[, 4:6] <- pmin(new[, 4:6], 1)
    k <- with_seed(seed, random_kernel())
    suppressMessages({
      fit <- with_seed(seed, pfdtc(x, y, m = p$m, kernel = k, noise = p$noise, hyper = "fixed", center = FALSE,
                                   scale = FALSE, control = pfdtc_control(maxit = 5)))
      bracket <- evidence_bounds(fit)
      fit$reference <- reference(fit) # the same reference for all efforts
      all <- lapply(c("fast", "reference", "tight"), function(effort) certify(fit, new, effort))
    })
    k <- complete_kernel(k, x)
    Ky <- ref_composite(k, x) + diag(p$noise, p$n)
    Kx <- ref_composite(k, x, new)
    mean <- drop(crossprod(Kx, solve(Ky, y)))
    prior <- diag(ref_composite(k, new))
    sd <- sqrt(pmax(prior - colSums(Kx * solve(Ky, Kx)), 0))
    slip <- 1e-9 * (1 + max(diag(Ky)) / p$noise) # allows for rounding of solve()
    info <- paste(seed, k$label)
    for (c in all) {
      expect_true(all(mean >= c$mean_lower - slip & mean <= c$mean_upper + slip), info = info)
      expect_true(all(sd >= c$sd_lower - sqrt(slip) & sd <= c$sd_upper + sqrt(slip)), info = info)
      expect_true(all(c$sd_upper <= sqrt(prior) * (1 + 1e-12)), info = info)
    }
    evidence <- ref_log_normal(y, Ky)
    expect_true(bracket[["lower"]] <= evidence + 1e-6 * abs(evidence) &&
                  evidence <= bracket[["upper"]] + 1e-6 * abs(evidence), info = info)
  }
})

test_that("all rows as inducing points, or as neighbours, give the exact posterior", {
  x <- kernel_rows(20)
  y <- with_seed(3, stats::rnorm(20))
  new <- kernel_rows(7, 4)
  for (seed in 1:6) {
    k <- with_seed(seed, random_kernel())
    fit <- function(by, ...) {
      suppressMessages(by(x, y, kernel = k, noise = 0.2, hyper = "fixed", center = FALSE, scale = FALSE, ...))
    }
    exact <- predict(fit(gp_exact), new, se.fit = TRUE)
    for (other in list(fit(gp_dtc, inducing = x), fit(pfdtc, m = 3, neighbours = 20), fit(gp_fitc, inducing = x))) {
      p <- predict(other, new, se.fit = TRUE)
      expect_equal(p$fit, exact$fit, tolerance = 1e-5, info = seed) # the jitter has this effect
      expect_equal(p$se.fit, exact$se.fit, tolerance = 1e-4, info = seed)
    }
  }
})

test_that("sums and products of kernels are those of the matrices, also for a factor outside brackets", {
  x <- kernel_rows(8)
  a <- kernel_se(c(1, 2), 1.5, c("a", "b"))
  b <- kernel_linear(0.7, "c")
  c <- kernel_categorical(0.4, 2, c("f1", "f2", "f3"))
  K <- function(k) kernel_matrix(k, x)
  expect_equal(K(a + b), K(a) + K(b), tolerance = 1e-15)
  expect_equal(K(a * b), K(a) * K(b), tolerance = 1e-15)
  expect_equal(K((a + b) * c), (K(a) + K(b)) * K(c), tolerance = 1e-14)
  expect_equal(K(3 * (a + b)), 3 * (K(a) + K(b)), tolerance = 1e-15)
  expect_equal(K(a * kernel_constant(2)), 2 * K(a), tolerance = 1e-15)
  expect_equal(K((a + b) * (a + c) + 0.5 * c), (K(a) + K(b)) * (K(a) + K(c)) + 0.5 * K(c), tolerance = 1e-14)
  shared <- (a + b) * c
  expect_length(as_sum(shared)$leaves, 3)
  table <- kernel_parameters(place_kernel(shared, x))
  expect_identical(sum(table$what == "parameters"), 1L)
  expect_equal(K((a + b) * c), K(a * c + b * c), tolerance = 1e-15)
  expect_null(as_sum(kernel_se() * kernel_linear())$terms[[1]]$variance)
  expect_identical(as_sum(kernel_se(variance = 2) * kernel_linear())$terms[[1]]$variance, 2)
  expect_identical((0.5 * kernel_se())$variance, 0.5)
})

test_that("expressions that are no kernel are refused, with the reason", {
  expect_error(kernel_se() - kernel_se(), class = "pfdtc_error_input")
  expect_error(-kernel_se(), class = "pfdtc_error_input")
  expect_error(kernel_se() + 1, "kernel_constant", class = "pfdtc_error_input")
  expect_error(-2 * kernel_se(), class = "pfdtc_error_input")
  expect_error(kernel_constant() + kernel_constant(), class = "pfdtc_error_input")
  expect_error(kernel_linear(inputs = "a") + kernel_linear(inputs = "a"), class = "pfdtc_error_input")
  for (bad in list(1.2, c(0.2, 0.3), 0, "foo", NA)) {
    expect_error(kernel_categorical(bad), "\"full\", a number between 0 and 1, or a correlation matrix; it is",
                 class = "pfdtc_error_input")
  }
  expect_error(kernel_se(c(1, 2), isotropic = TRUE), class = "pfdtc_error_input")
  expect_error(kernel_se(inputs = y ~ a), class = "pfdtc_error_input")
  x <- kernel_rows(6)
  expect_error(kernel_matrix(kernel_se(1, 1, "a") + kernel_se(1, 1, "e"), x), "`e`", class = "pfdtc_error_input")
  expect_error(kernel_matrix(kernel_categorical(0.5, 1, c("a", "f1")), x), "`f1`|inputs",
               class = "pfdtc_error_input")
  expect_error(kernel_matrix(kernel_categorical(0.5, 1), x), "inputs", class = "pfdtc_error_input")
  ordered <- update(kernel_categorical("ordered", 1, c("f1", "f2", "f3")), parameters = 1:3)
  expect_error(kernel_matrix(ordered, x), "has 3 parameters, but needs 1 or 2", class = "pfdtc_error_input")
  expect_input_error(update(kernel_se(isotropic = TRUE), lengthscale = 1:2), "lengthscale")
  expect_input_error(update(kernel_periodic(), lengthscale = 1:2), "lengthscale")
  expect_input_error(update(kernel_polynomial(), degree = 3), "update() changes `variance`, `inputs` and `offset`.")
  expect_input_error(update(kernel_group(~g, ~x), lengthscale = 2), "changes `variance`, `scale` and `parameters`.")
  expect_input_error(update(kernel_linear(), lengthscale = 2), "changes `variance` and `inputs`.")
  expect_error(kernel_matrix(kernel_se(1, 1, "a") + kernel_linear(), x), "variance", class = "pfdtc_error_input")
})

test_that("inputs are variables of the data, so a factor has one name, and names of parameters contain their term", {
  d <- data.frame(u = cars$speed, v = rep_len(c(1, 4, 2, 5), 50), g = factor(rep_len(c("x", "y", "z"), 50)),
                  y = cars$dist)
  k <- kernel_se(inputs = ~ u + v) * kernel_categorical("ordered", inputs = ~ g) + kernel_rq(inputs = "u") +
    kernel_se(inputs = ~ g, isotropic = TRUE)
  fit <- suppressWarnings(gp_exact(y ~ u + v + g, d, kernel = k))
  expect_named(coef(fit), c(
    "se(u,v).lengthscale.u", "se(u,v).lengthscale.v", "categorical(g).gap.x.y", "categorical(g).gap.y.z",
    "se(u,v)*categorical(g).variance", "rq(u).lengthscale.u", "rq(u).alpha", "rq(u).variance", "se(g).lengthscale",
    "se(g).variance", "noise"))
  expect_output(print(fit), "categorical (ordered) in g: gap.x.y", fixed = TRUE)
  expect_output(print(fit$kernel), "gap|parameters")
  expect_identical(update(fit$kernel, "se(u,v).lengthscale.v" = 2)$leaves[[1]]$lengthscale[[2]], 2)
  moved <- update(fit$kernel, "rq(u).alpha" = 3, "se(g).variance" = 7)
  again <- gp_exact(y ~ u + v + g, d, kernel = moved, noise = fit$noise, hyper = "fixed")
  expect_identical(unname(coef(again)[c("rq(u).alpha", "se(g).variance")]), c(3, 7))
  expect_error(update(fit$kernel, wrong = 1), "parameters are", class = "pfdtc_error_input")
  expect_input_error(update(fit$kernel, 2), "a value without the name")
  expect_input_error(update(kernel_se(1, 1), variance = 2, 3), "a value without the name")
  held <- suppressWarnings(gp_exact(y ~ u + v + g, d, kernel = moved, control = pfdtc_control(fix = "rq(u).alpha")))
  expect_equal(coef(held)[["rq(u).alpha"]], 3)
  expect_identical(attr(logLik(held), "df"), 10L)
  expect_error(gp_exact(y ~ u, d, kernel = kernel_se(inputs = ~ w)), "`w`", class = "pfdtc_error_input")
  expect_error(gp_exact(y ~ u, d, kernel = kernel_categorical(inputs = ~ u)), "`u`|inputs", class = "pfdtc_error_input")
})

test_that("a period that is given is kept, one that is not is learned", {
  d <- data.frame(t = 1:80 / 10)
  d$y <- sin(2 * pi * d$t / 1.7) + with_seed(1, stats::rnorm(80)) / 10
  given <- gp_exact(y ~ t, d, kernel = kernel_periodic(period = 1.7))
  expect_identical(coef(given)[["period"]], 1.7)
  expect_identical(attr(logLik(given), "df"), 3L)
  learned <- gp_exact(y ~ t, d, kernel = kernel_periodic())
  expect_lt(abs(coef(learned)[["period"]] / 1.7 - round(coef(learned)[["period"]] / 1.7)), 0.02)
  expect_gt(as.numeric(logLik(learned)), as.numeric(logLik(given)) - 2)
  expect_identical(coef(gp_exact(y ~ t, d, kernel = update(kernel_periodic(), period = 1.7))), coef(given))
  open <- update(kernel_periodic(period = 1.7), period = NULL)
  expect_identical(coef(gp_exact(y ~ t, d, kernel = open)), coef(learned))
})

test_that("a period given to update() is kept as well, also for the kernel of a fit", {
  y <- sin(1:40)
  one <- gp_exact(1:40, y, kernel = kernel_periodic(1, 1, 6), noise = 0.1, hyper = "fixed")$kernel
  two <- gp_exact(1:40, y, kernel = kernel_se(9, 1) + kernel_periodic(1, 1, 6), noise = 0.1, hyper = "fixed")$kernel
  one$held <- two$leaves[[2]]$held <- NULL # as if the period had been learned
  expect_identical(update(one, period = 5)[c("period", "held")], list(period = 5, held = "period"))
  expect_null(update(one, variance = 2)$held)
  leaves <- update(two, "periodic(x1).period" = 5, "se(x1).variance" = 3)$leaves
  expect_identical(leaves[[2]][c("period", "held")], list(period = 5, held = "period"))
  expect_null(leaves[[1]]$held)
})

test_that("inducing points have levels of the data", {
  d <- data.frame(u = rep(cars$speed, 3) + rep(c(0, 0.3, 0.7), each = 50), g = factor(rep(c("p", "q", "r"), each = 50)),
                  y = rep(cars$dist, 3) + rep(c(0, 20, -10), each = 50))
  k <- kernel_se(inputs = ~ u) + kernel_matern(inputs = ~ u) * kernel_categorical(inputs = ~ g)
  fit <- pfdtc(y ~ u + g, d, m = 12, kernel = k, control = pfdtc_control(maxit = 30))
  levels <- fit$inducing[, c("gp", "gq", "gr")]
  expect_true(all(levels %in% 0:1) && all(rowSums(levels) == 1))
  expect_false(all(fit$inducing[, "u"] %in% d$u)) # other columns of points move
  alone <- pfdtc(y ~ g, d, m = 3, kernel = kernel_categorical(inputs = ~ g), control = pfdtc_control(maxit = 5))
  expect_true(all(alone$inducing %in% 0:1))
})

test_that("fits of composites survive a file, and can be distinguished", {
  k <- kernel_se() + kernel_linear()
  fit <- pfdtc(dist ~ speed, cars, m = 5, kernel = k)
  file <- tempfile(fileext = ".rds")
  saveRDS(fit, file)
  expect_identical(predict(readRDS(file), cars), predict(fit, cars))
  damaged <- fit
  damaged$kernel$terms[[1]]$variance <- -1
  expect_error(predict(damaged, cars), "kernel", class = "pfdtc_error_input")
  exact <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed")
  expect_error(kl_divergence(fit, exact), "kernel", class = "pfdtc_error_input")
})

test_that("a correlation that is given is kept, by the names of the levels, and nothing of it is learned", {
  R <- matrix(c(1, 0.5, -0.2, 0.5, 1, 0.1, -0.2, 0.1, 1), 3, dimnames = list(c("c", "a", "b"), c("c", "a", "b")))
  d <- data.frame(y = with_seed(1, stats::rnorm(30)), x = 1:30, f = factor(rep(c("a", "b", "c"), 10)))
  k <- kernel_se(5, 1, ~ x) + kernel_categorical(R, 2, ~ f)
  fit <- gp_exact(y ~ x + f, d, kernel = k, noise = 0.5, hyper = "fixed")
  K <- exp(-outer(d$x, d$x, "-")^2 / 50) + 2 * unname(R[as.character(d$f), as.character(d$f)])
  expect_equal(unname(fitted(fit)), mean(d$y) + drop(K %*% solve(K + diag(0.5, 30), d$y - mean(d$y))))
  # The columns of x, fa, fb and fc may be given in any order.
  by_number <- kernel_se(5, 1, ~ x) + kernel_categorical(R, 2, c(3, 4, 2))
  expect_equal(fitted(gp_exact(y ~ x + f, d, kernel = by_number, noise = 0.5, hyper = "fixed")), fitted(fit))
  k <- kernel_se(inputs = ~ x) + kernel_categorical(R, inputs = ~ f)
  learned <- suppressWarnings(gp_exact(y ~ x + f, d, kernel = k))
  expect_identical(names(coef(learned)), c("se(x).lengthscale.x", "se(x).variance", "categorical(f).variance", "noise"))
  expect_error(kernel_categorical(R * 2), "diagonal", class = "pfdtc_error_input")
  expect_error(kernel_categorical(matrix(c(1, 2, 2, 1), 2)), "eigenvalue", class = "pfdtc_error_input")
  other <- function(R) gp_exact(y ~ x + f, d, kernel = kernel_categorical(R, 1, ~ f), noise = 1, hyper = "fixed")
  expect_error(other(diag(2)), "factor has 3", class = "pfdtc_error_input")
  expect_error(other(`dimnames<-`(diag(3), list(1:3, 1:3))), "\"a\"", class = "pfdtc_error_input")
})

test_that("kernels with indistinguishable parameters are refused if these are to be learned", {
  d <- with_seed(1, data.frame(y = stats::rnorm(20), a = stats::runif(20), b = rep(1:5, 4)))
  fit <- function(k, ...) {
    suppressWarnings(gp_exact(y ~ a + b, d, kernel = k, control = pfdtc_control(restarts = 1), ...))
  }
  expect_error(fit(kernel_se(inputs = ~ a) * kernel_se(inputs = ~ a + b)), "`a`", class = "pfdtc_error_input")
  expect_error(fit(kernel_se(inputs = ~ b) + kernel_white(inputs = ~ a)), "noise", class = "pfdtc_error_input")
  expect_error(fit(kernel_se(inputs = ~ a) + kernel_white(inputs = ~ b)), NA) # rows share b
  expect_error(fit(kernel_se(1, 1, "a") * kernel_se(1, 1, c("a", "b")), noise = 1, hyper = "fixed"), NA)
})

test_that("points move only in numeric inputs, and greedy points are rows of the data with all levels", {
  d <- with_seed(1, data.frame(x = stats::runif(60), f = factor(sample(c("a", "b", "c"), 60, TRUE)), n = rep(1:3, 20)))
  d$y <- sin(6 * d$x) + as.integer(d$f) + 0.1 * with_seed(2, stats::rnorm(60))
  k <- kernel_se(0.3, 1, ~ x) * kernel_categorical(0.3, 1, ~ f) + kernel_white(0.1, ~ n)
  for (by in list(gp_vfe, pfdtc)) {
    fit <- by(y ~ x + f + n, d, kernel = k, noise = 0.01, hyper = "fixed", m = 9, control = pfdtc_control(maxit = 20))
    z <- fit$inducing
    expect_true(all(z[, c("fa", "fb", "fc")] %in% c(0, 1)) && all(rowSums(z[, c("fa", "fb", "fc")]) == 1))
    expect_true(all(z[, "n"] %in% 1:3))
    expect_false(all(z[, "x"] %in% d$x)) # they have moved
    expect_true(all(colSums(z[, c("fa", "fb", "fc")]) > 0))
  }
})

test_that("leave-one-out, cross-validation and conformal intervals exist for sums and products", {
  x <- kernel_rows(40)
  y <- with_seed(3, stats::rnorm(40)) + 2 * x[, 1]
  k <- with_seed(2, random_factor("se") * random_factor("categorical") + random_factor("linear") + random_factor("rq"))
  exact <- gp_exact(x, y, kernel = k, noise = 0.3, hyper = "fixed")
  inverse <- solve(ref_composite(complete_kernel(k, x), exact$x) +
                     diag(0.3 / if (is.null(exact$data$weights)) rep(1, nrow(exact$x)) else exact$data$weights))
  merged <- exact$data$y * exact$scale
  loo <- drop(inverse %*% merged) / diag(inverse)
  alone <- which(tabulate(training_inputs(exact$data)$index)[training_inputs(exact$data)$index] == 1L)
  at <- training_inputs(exact$data)$index[alone]
  expect_equal(unname(residuals(exact, type = "loo"))[alone], loo[at], tolerance = 1e-8)
  for (fit in list(exact, pfdtc(x, y, kernel = k, noise = 0.3, hyper = "fixed", m = 10, neighbours = 6))) {
    band <- predict(fit, x[1:3, ], interval = "conformal", level = 0.8)
    expect_true(all(band[, "lwr"] < band[, "fit"] & band[, "fit"] < band[, "upr"]))
    cv <- cross_validate(fit, folds = 3)
    expect_true(all(is.finite(unlist(cv[vapply(cv, is.numeric, NA)]))))
  }
})

test_that("kernels of more inputs than the vectorised code takes agree with the formula, slopes and information too", {
  for (d in c(70L, 515L)) { # 512 inputs fit into strips (strip.h)
    x <- with_seed(d, cbind(matrix(stats::rbinom(18 * (d - 3L), 1, 0.4), 18), matrix(stats::rnorm(54), 18)))
    y <- with_seed(3, stats::rnorm(18))
    k <- complete_kernel(kernel_matern(3 / 2, with_seed(4, stats::runif(d, 0.5, 2)) * sqrt(d), 1.3), x)
    r <- sqrt(3) * unname(as.matrix(stats::dist(t(t(x) / k$lengthscale))))
    K <- 1.3 * (1 + r) * exp(-r)
    expect_equal(kernel_matrix(k, x), K, tolerance = 1e-13)
    near <- rbind(sapply(1:18, function(i) c(seq_len(i - 1), rep(0L, 18 - i)))) # all earlier rows
    storage.mode(near) <- "integer"
    got <- native_vecchia(list(x = x, y = y), new_model(k, 0.3), 1:18, near)
    P <- solve(K + diag(0.3, 18))
    slopes <- lapply(c(1L, d), function(j) { # dK / dlog l_j = v 3 exp(-r) (x_j - z_j)^2 / l_j^2
      P %*% (1.3 * 3 * exp(-r) * outer(x[, j], x[, j], "-")^2 / k$lengthscale[[j]]^2)
    })
    Py <- P %*% y
    score <- vapply(slopes, function(S) (sum(y * (S %*% Py)) - sum(diag(S))) / 2, 0)
    expect_equal(got$value, ref_log_normal(y, K + diag(0.3, 18)), tolerance = 1e-10)
    expect_equal(got$score[c(1L, d)], score, tolerance = 1e-8)
    expect_equal(got$information[1L, d], sum(slopes[[1]] * t(slopes[[2]])) / 2, tolerance = 1e-8)
    expect_identical(got$information, t(got$information))
  }
})
