# Returns the exact GP of the problem, without inducing points.
ref_exact_grouped <- function(p, new) {
  k <- function(x, z) p$kernel(x, z) + ref_groups(p$groupings, x, z)
  B <- k(p$x, p$x) + diag(p$model$noise / if (is.null(p$weights)) 1 else p$weights, length(p$y))
  cross <- k(p$x, new)
  list(mean = drop(crossprod(cross, solve(B, p$y))), cov = k(new, new) - crossprod(cross, solve(B, cross)), B = B)
}

# Returns the problem's model: slopes in g, an intercept in h.
grouped_model <- function(p) {
  k <- kernel_matern(3 / 2, c(0.3, 0.5), 1.3, inputs = c("a", "b")) + kernel_group("g", ~ 1 + a, variance = 0.64) +
    kernel_group("h", ~ 0 + b, variance = 0.36)
  k <- place_kernel(k, p$x)
  S <- tcrossprod(p$groupings[[1]]$root)
  angle <- acos(S[1, 2] / sqrt(S[1, 1] * S[2, 2]))
  values <- c(0.3, 0.5, 1.3, sqrt(S[2, 2] / S[1, 1]), angle / (pi - angle), S[1, 1], 0.36)
  replace(p$model, "kernel", list(set_values(compile_kernel(k), values)))
}

near_view_of <- function(p, neighbours, train) {
  model <- grouped_model(p)
  near <- near_grouped_posterior(p, p$z, model, neighbours, train, rank = seq_along(p$y))
  rows <- c(p[names(p) %in% c("x", "y", "weights")],
            list(n = length(p$y), shift = list(rows = 0, ss = 0, constant = 0), response = p$y,
                 prior_weights = p$weights, center = 0, scale = 1))
  structure(list(control = list(threads = 1L, memory = 2^20), model = model, rows = rows, z = p$z, near = near),
            class = c("grouped_near", "near", "posterior"))
}

test_that("the kernel of the tests is that of their dense matrices", {
  p <- effect_problem(n = 30)
  expect_close(native_kernel_matrix(grouped_model(p)$kernel, p$x, p$x), p$kernel(p$x, p$x) +
                 ref_groups(p$groupings, p$x, p$x), 1e-12)
})

test_that("with all rows as neighbours the posterior is that of the exact GP", {
  for (weights in c(FALSE, TRUE)) {
    p <- effect_problem(n = 60, weights = weights)
    view <- near_view_of(p, 60L, 59L)
    new <- effect_new_rows(p)
    expected <- ref_exact_grouped(p, new)
    at <- posterior_values(view, new)
    expect_close(at$mean, expected$mean, 1e-8)
    expect_close(at$var, diag(expected$cov), 1e-8)
    joint <- posterior_values(view, new, TRUE)
    expect_close(joint$cov, expected$cov, 1e-8)
    log_weights <- if (weights) sum(log(p$weights)) / 2 else 0
    expect_equal(log_evidence(view) + log_weights, ref_log_density(p$y, expected$B), tolerance = 1e-9)
  }
})

test_that("terms and sums are those of the exact GP", {
  p <- effect_problem(n = 60)
  view <- near_view_of(p, 60L, 59L)
  new <- effect_new_rows(p)
  expected <- ref_exact_grouped(p, new)
  at <- posterior_at(view, terms_at(kernels_of_terms(view$model$kernel), new))
  of_term <- function(k) {
    cross <- k(p$x, new)
    half <- solve(expected$B, cross)
    cbind(drop(crossprod(half, p$y)), diag(k(new, new) - crossprod(cross, half)))
  }
  terms <- rbind(of_term(p$kernel), of_term(function(x, z) ref_groups(p$groupings[1], x, z)),
                 of_term(function(x, z) ref_groups(p$groupings[2], x, z)))
  expect_close(at$mean, terms[, 1], 1e-8)
  expect_close(at$var, terms[, 2], 1e-8)
  w <- c(1, -2, 0.5)
  sums <- posterior_at(view, sums_at(view$model$kernel, new, list(1:3, 6:8), list(w, w)))
  expect_close(sums$mean, c(sum(w * expected$mean[1:3]), sum(w * expected$mean[6:8])), 1e-8)
  expect_close(sums$var, c(w %*% expected$cov[1:3, 1:3] %*% w, w %*% expected$cov[6:8, 6:8] %*% w), 1e-8)
})

# Draws rows of a Matern 3/2 process with 50 levels. If `together`, the rows of a level are close to each other.
rough_grouped <- function(n, together) {
  with_seed(2, {
    g <- sample(rep_len(1:50, n))
    x <- matrix(stats::runif(2 * n), n)
    if (together) x <- x[g, ] + 0.03 * matrix(stats::rnorm(2 * n), n)
    K <- native_kernel_matrix(complete_kernel(kernel_matern(3 / 2, 0.1, 1), x), x, x)
    f <- drop(crossprod(chol(K + diag(1e-8, n)), stats::rnorm(n))) + stats::rnorm(50)[g]
    data.frame(a = x[, 1], b = x[, 2], g = factor(g), y = f + stats::rnorm(n, sd = 0.3))
  })
}
rough_kernel <- kernel_matern(3 / 2, 0.1, 1, inputs = ~ a + b) + kernel_group(~ g, variance = 1)

test_that("neighbours and effects together are nearly exact for a rough function, also for the effects", {
  only_nightly()
  for (together in c(FALSE, TRUE)) {
    d <- rough_grouped(700, together)
    fit <- suppressMessages(pfdtc(y ~ a + b, d[1:600, ], kernel = rough_kernel, noise = 0.09, hyper = "fixed", m = 60,
                                  neighbours = 40))
    if (together) fit$near$neighbours <- neighbours_with_groups
    exact <- suppressMessages(gp_exact(y ~ a + b, d[1:600, ], like = fit))
    expect_s3_class(posterior_of(fit), "grouped_near")
    a <- predict(fit, d[601:700, ], se.fit = TRUE)
    b <- predict(exact, d[601:700, ], se.fit = TRUE)
    expect_lt(sqrt(mean(((a$fit - b$fit) / b$se.fit)^2)), 0.05) # .02 to .04 in bench/groups.R
    expect_lt(sqrt(mean((a$se.fit / b$se.fit - 1)^2)), 0.01)
    first <- exact$x[!duplicated(exact$x[, 3]), ]
    at <- terms_at(kernels_of_terms(model_of(exact)$kernel), first)
    of_group <- nrow(first) + seq_len(nrow(first))
    ours <- posterior_at(posterior_of(fit), at)$var[of_group]
    expect_lt(sqrt(mean((sqrt(ours / posterior_at(posterior_of(exact), at)$var[of_group]) - 1)^2)), 0.01)
    inside <- suppressMessages(certify(fit, d[601:620, ]))
    expect_true(all(inside$mean_lower <= b$fit[1:20] + 1e-7 & b$fit[1:20] <= inside$mean_upper + 1e-7))
    expect_true(all(inside$sd_lower <= b$se.fit[1:20] * (1 + 1e-7) & b$se.fit[1:20] <= inside$sd_upper * (1 + 1e-7)))
  }
})

test_that("with groups a row to predict has 60 neighbours by default, and a training row 40", {
  fit <- with_replaced(list(exact_rows = 100L), suppressMessages(
    pfdtc(y ~ a + b, rough_grouped(300, TRUE), kernel = rough_kernel, noise = 0.09, hyper = "fixed")))
  expect_identical(c(fit$near$neighbours, fit$near$train_neighbours), c(60L, 40L))
  again <- remade_fit(posterior_of(fit), fit$data, model_of(fit))
  expect_identical(again$near[c("neighbours", "C")], fit$near[c("neighbours", "C")])
})

test_that("leave-one-out with all rows as neighbours is that of the exact GP", {
  for (weights in c(FALSE, TRUE)) {
    p <- effect_problem(n = 60, weights = weights)
    view <- near_view_of(p, 60L, 59L)
    found <- posterior_without(view)
    B <- ref_exact_grouped(p, p$x[1, , drop = FALSE])$B
    inverse <- solve(B)
    noise <- p$model$noise / if (weights) p$weights else 1
    expect_close(found$mean, p$y - drop(inverse %*% p$y) / diag(inverse), 1e-7)
    expect_close(found$var, 1 / diag(inverse) - noise, 1e-7)
    expect_close(found$leverage, 1 - noise * diag(inverse), 1e-7)
  }
})

test_that("leave-one-out with few neighbours is that of a fit in which the row has almost no weight", {
  p <- effect_problem(n = 60)
  found <- posterior_without(near_view_of(p, 8L, 8L))
  for (i in c(1L, 20L, 57L)) {
    less <- replace(p, "weights", list(replace(p$weights, i, 1e-10)))
    at <- posterior_values(near_view_of(less, 8L, 8L), p$x[i, , drop = FALSE])
    # The remaining weight is 1e-10.
    expect_equal(c(found$mean[i], found$var[i]), c(at$mean, at$var), tolerance = 1e-6)
  }
})
