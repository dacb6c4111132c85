# Draws data with two crossed groups, slopes in one of them, and a smooth part.
crossed <- function(n = 90) {
  with_seed(7, {
    d <- data.frame(x = runif(n), w = rnorm(n), g = factor(sample(letters[1:9], n, TRUE)),
                    h = sample(c("u", "v", "t", "s"), n, TRUE))
    d$y <- sin(6 * d$x) + rnorm(9)[d$g] * (1 + d$w / 2) + rnorm(4)[factor(d$h)] + rnorm(n, sd = 0.3)
    d
  })
}

crossed_fit <- local({
  fit <- NULL
  function() {
    if (is.null(fit)) {
      fit <<- pfdtc(y ~ x + (w | g) + (1 | h), crossed(), plain = TRUE, control = pfdtc_control(restarts = 2))
    }
    fit
  }
})

# Returns Z, the covariance of all effects, and K of the smooth part, as dense matrices.
dense_groups <- function(fit, d) {
  terms <- groups_of_fit(fit)
  Z <- do.call(cbind, lapply(terms, function(t) {
    u <- list(g = cbind(1, d$w), h = cbind(rep(1, nrow(d))))[[t$by]]
    do.call(cbind, lapply(t$levels, function(l) u * (as.character(d[[t$by]]) == l)))
  }))
  S <- lapply(terms, function(t) kronecker(diag(length(t$levels)), tcrossprod(t$root)))
  all <- matrix(0, ncol(Z), ncol(Z))
  at <- cumsum(c(0, vapply(S, nrow, 0L)))
  for (i in seq_along(S)) all[at[i] + seq_len(nrow(S[[i]])), at[i] + seq_len(nrow(S[[i]]))] <- S[[i]]
  smooth <- fit$kernel
  smooth$terms <- smooth$terms[!plain_groups(smooth)]
  list(Z = Z, S = all, K = ref_composite(smooth, fit$data$x), smooth = smooth)
}

test_that("effects, their covariances and population predictions are those of dense algebra", {
  d <- crossed()
  fit <- crossed_fit()
  dense <- dense_groups(fit, d)
  B <- solve(dense$K + dense$Z %*% dense$S %*% t(dense$Z) + diag(fit$noise, nrow(d)))
  r <- d$y - fit$center
  C <- dense$S %*% t(dense$Z) %*% B
  b <- drop(C %*% r)
  V <- dense$S - C %*% dense$Z %*% dense$S
  found <- ranef.gp_fit(fit, se = TRUE)
  expect_named(found, c("g", "h"))
  expect_equal(unname(as.matrix(found$g)), matrix(b[1:18], 9, byrow = TRUE), tolerance = 1e-9)
  expect_identical(dimnames(found$g), list(letters[1:9], c("(Intercept)", "w")))
  expect_equal(found$h[[1]], b[19:22], tolerance = 1e-9)
  expect_equal(unname(attr(found$g, "postVar")[, , 3]), V[5:6, 5:6], tolerance = 1e-8)
  expect_equal(c(attr(found$h, "postVar")), unname(diag(V)[19:22]), tolerance = 1e-8)
  table <- as.data.frame(found)
  expect_equal(table$condsd[table$grpvar == "g" & table$term == "w"], sqrt(diag(V)[seq(2, 18, 2)]), tolerance = 1e-8)

  new <- data.frame(x = c(0.2, 0.9), w = 1:2, g = c("a", "none"), h = "new")
  k <- ref_composite(dense$smooth, fit$data$x, cbind(new$x, new$w, 0, 0))
  at <- expect_silent(predict(fit, new[c("x", "w")], re = FALSE, se.fit = TRUE))
  expect_length(predict(fit, new[0L, c("x", "w")], re = FALSE), 0L)
  expect_equal(unname(at$fit), fit$center + drop(t(k) %*% B %*% r), tolerance = 1e-9)
  prior <- ref_composite(dense$smooth, cbind(new$x, new$w, 0, 0))
  expect_equal(unname(at$se.fit)^2, diag(prior) - colSums(k * (B %*% k)), tolerance = 1e-8)
  # New levels have the population's mean, and the variance of a level is added.
  expect_message(p <- predict(fit, new, se.fit = TRUE), "New level", class = "pfdtc_message_new_levels")
  S <- lapply(VarCorr.gp_fit(fit), function(v) unclass(v)[seq_len(nrow(v)), seq_len(nrow(v)), drop = FALSE])
  expect_equal(p$fit[[2]], at$fit[[2]], tolerance = 1e-12)
  u <- c(1, new$w[2])
  expect_equal(p$se.fit[[2]]^2, at$se.fit[[2]]^2 + drop(u %*% S$g %*% u) + c(S$h), tolerance = 1e-10)
  told <- testthat::capture_messages(predict(fit, new))
  expect_identical(length(told), 1L) # one message for both groups
  # A missing level gives a missing prediction, except with re = FALSE.
  lacks <- transform(new, g = c("a", NA))
  missing <- suppressMessages(predict(fit, lacks, se.fit = TRUE))
  expect_identical(is.na(missing$fit), c("1" = FALSE, "2" = TRUE))
  expect_identical(is.na(missing$se.fit), is.na(missing$fit))
  expect_named(suppressMessages(predict(fit, lacks, na.action = na.omit)), "1")
  expect_equal(predict(fit, lacks, re = FALSE), at$fit, tolerance = 1e-12)
  # Two new rows of the same new level share its effect.
  joint <- function(g) suppressMessages(predict(fit, data.frame(x = 0.5, w = 0, g = g, h = "u"), full_cov = TRUE)$cov)
  expect_equal(joint(c("n", "n"))[1, 2] - joint(c("n", "m"))[1, 2], S$g[1, 1], tolerance = 1e-10)
  whole <- predict(fit, new, re = FALSE, full_cov = TRUE, se.fit = TRUE)
  expect_equal(unname(whole$cov), unname(prior - crossprod(k, B %*% k)), tolerance = 1e-8)
  expect_equal(whole$fit, at$fit, tolerance = 1e-12)
})

test_that("insight and emmeans report terms, variances and population means of grouped fits", {
  fit <- crossed_fit()
  skip_if_not_installed("insight")
  expect_identical(insight::find_random(fit, flatten = TRUE), c("g", "h"))
  expect_setequal(insight::find_predictors(fit, flatten = TRUE), c("x", "w"))
  expect_true(insight::model_info(fit)$is_mixed)
  v <- insight::get_variance(fit)
  S <- lapply(VarCorr.gp_fit(fit), function(v) unclass(v)[seq_len(nrow(v)), seq_len(nrow(v)), drop = FALSE])
  U <- cbind(1, crossed()$w)
  expect_equal(v$var.random, mean(rowSums((U %*% S$g) * U)) + c(S$h), tolerance = 1e-12)
  expect_equal(v$var.intercept, c(g = S$g[1L], h = c(S$h)), tolerance = 1e-12)
  expect_equal(v$var.slope, c(g.w = S$g[2L, 2L]), tolerance = 1e-12)
  expect_equal(v$cor.slope_intercept, c(g = stats::cov2cor(S$g)[[2L]]), tolerance = 1e-12)
  expect_equal(v$var.residual, fit$noise)
  expect_equal(v$var.fixed, var(predict(fit, re = FALSE)), tolerance = 1e-10)
  expect_identical(insight::get_variance(fit, "random"), v$var.random)
  skip_if_not_installed("emmeans")
  means <- as.data.frame(emmeans::emmeans(fit, ~ x, at = list(x = c(0.2, 0.8), w = 0), data = crossed()))
  at <- predict(fit, data.frame(x = c(0.2, 0.8), w = 0), re = FALSE, se.fit = TRUE)
  expect_equal(means$emmean, unname(at$fit), tolerance = 1e-10)
  expect_equal(means$SE, unname(at$se.fit), tolerance = 1e-10)
})

test_that("methods of a fit include its groups", {
  d <- crossed()
  fit <- crossed_fit()
  expect_output(print(fit), "2 grouping factors")
  expect_output(print(summary(fit)), "Group's share of prior variance")
  expect_output(print(VarCorr.gp_fit(fit)), "Residual")
  expect_output(print(ranef.gp_fit(fit)), "$g", fixed = TRUE)
  table <- group_table(fit)
  expect_identical(table$levels, c(9L, NA, 4L))
  expect_lt(sum(table$share, na.rm = TRUE), 1)
  vc <- as.data.frame(VarCorr.gp_fit(fit))
  expect_equal(vc$sdcor[vc$grp == "Residual"], sigma(fit))
  expect_equal(vc$vcov[is.na(vc$var2)], vc$sdcor[is.na(vc$var2)]^2)
  expect_identical(fixef.gp_fit(fit), c("(Intercept)" = fit$center))
  expect_input_error(ranef.gp_fit(pfdtc(dist ~ speed, cars, kernel = kernel_se(), plain = TRUE)), "(1 | g)")
  # marginaleffects asks for predictions at the levels of its rows.
  at <- get_predict.gp_fit(sanitize_model_specific.gp_fit(fit), d[1:3, ])
  expect_equal(at$estimate, unname(predict(fit, d[1:3, ])), tolerance = 1e-10)
  # Leaving out a level is predicting a new level.
  held <- cross_validate(fit, folds = 3, by = ~ g, hyper = "held")
  expect_identical(sum(held$n), nrow(d))
  expect_gt(attr(held, "overall")$rmse, attr(cross_validate(fit, folds = 3, hyper = "held"), "overall")$rmse)
  p <- attr(held, "predictions")
  first <- p$row[p$fold == p$fold[1]]
  rest <- pfdtc(y ~ x + (w | g) + (1 | h), d[-first, ], kernel = fit$kernel, noise = fit$noise, hyper = "fixed",
                center = TRUE, plain = TRUE)
  expect_equal(suppressMessages(unname(predict(rest, d[first, ]))), p$mean[p$fold == p$fold[1]], tolerance = 1e-8)
  # Draws of a known level vary less.
  new <- data.frame(x = 0.5, w = 0, g = c("a", "new"), h = "u")
  draws <- suppressMessages(simulate(fit, 400, seed = 1, newdata = new, type = "latent"))
  expect_gt(sd(unlist(draws[2, ])), 2 * sd(unlist(draws[1, ])))
  # A level of added rows becomes known.
  more <- suppressMessages(add_rows(fit, data.frame(y = rep(4, 5), x = 0.5, w = 0, g = "new", h = "u")))
  expect_identical(utils::tail(rownames(ranef.gp_fit(more)$g), 1L), "new")
  all <- rbind(d, data.frame(y = 4, x = 0.5, w = 0, g = "new", h = "u")[rep(1, 5), ])
  again <- pfdtc(y ~ x + (w | g) + (1 | h), all,
                 kernel = fit$kernel, noise = fit$noise, hyper = "fixed", plain = TRUE)
  new$g <- "new"
  expect_equal(unname(suppressMessages(predict(more, new)) - predict(again, new)), c(0, 0), tolerance = 0.05)
  expect_true(all(suppressMessages(certify(fit, new))$mean_error < 1e-6))
})

test_that("a design without full rank is refused, and the formula is the one given", {
  d <- crossed()
  d$one <- 1
  d$w2 <- 2 * d$w
  for (f in list(y ~ x + (one | g), y ~ x + (w + w2 | g))) {
    expect_input_error(suppressMessages(pfdtc(f, d, plain = TRUE)), "rank")
  }
  expect_identical(deparse1(formula(crossed_fit())), "y ~ x + (w | g) + (1 | h)")
})

test_that("a message names the transform found for a grouped response, because effects are on its scale", {
  d <- crossed()
  d$skewed <- exp(1.5 * d$y)
  fit_of <- function(...) pfdtc(skewed ~ x + (1 | g), d, kernel = kernel_se(), noise = ~ 1, ...)
  expect_message(fit <- fit_of(transform = "auto"), "log-transformed", class = "pfdtc_message_transformed")
  expect_identical(fit$transform$kind, "log")
  logged <- pfdtc(log(skewed) ~ x + (1 | g), d, kernel = fit$kernel, noise = fit$noise, hyper = "fixed", plain = TRUE)
  expect_equal(ranef.gp_fit(fit)$g, ranef.gp_fit(logged)$g, tolerance = 1e-6)
  expect_silent(fit_of(transform = "none"))
})

test_that("figures and tidy tables have the effects", {
  fit <- crossed_fit()
  pdf(NULL)
  on.exit(dev.off())
  table <- plot(fit, which = "groups", level = 0.9)
  expect_identical(nrow(table), 22L)
  expect_false(is.unsorted(table$estimate[table$group == "g" & table$effect == "w"]))
  b <- as.data.frame(ranef.gp_fit(fit, se = TRUE))
  at <- match(paste(table$group, table$effect, table$level), paste(b$grpvar, b$term, b$grp))
  expect_equal(table$upr - table$lwr, 2 * qnorm(0.95) * b$condsd[at])
  slice <- plot(fit, inputs = "x", n = 5)
  new <- data.frame(x = slice$value, w = median(crossed()$w))
  expect_equal(slice$fit, unname(predict(fit, new, re = FALSE)), tolerance = 1e-8)
  # Certified bands are for a new level, whatever the level of the first row.
  sure <- plot(fit, inputs = "x", n = 5, certified = TRUE)
  new[c("g", "h")] <- "new"
  band <- suppressMessages(predict(fit, new, interval = "credible", certified = TRUE))
  expect_equal(as.matrix(sure[c("fit", "lwr", "upr")]), band, ignore_attr = TRUE, tolerance = 1e-8)
  expect_equal(sure[c("lwr_y", "upr_y")], slice[c("lwr_y", "upr_y")], tolerance = 1e-6)
  shown <- plot_certificate(fit, inputs = "x", n = 5, effort = "fast")
  expect_equal(shown$fit, slice$fit, tolerance = 1e-8)
  tidy <- tidy.gp_fit(fit, effects = c("fixed", "ran_pars", "ran_vals"), conf.int = TRUE)
  expect_identical(as.integer(table(tidy$effect)[c("fixed", "ran_pars", "ran_vals")]), c(1L, 5L, 22L))
  expect_identical(tidy$term[tidy$effect == "ran_pars"], c("sd__(Intercept)", "sd__w", "cor__(Intercept).w",
                                                           "sd__(Intercept)", "sd__Observation"))
  expect_input_error(tidy.gp_fit(fit, effects = "all"), "ran_vals")
})

test_that("inducing points and families have groups, too", {
  d <- crossed()
  fit <- crossed_fit()
  points <- pfdtc(y ~ x + (w | g) + (1 | h), d, kernel = fit$kernel, noise = fit$noise, hyper = "fixed", m = 80)
  expect_equal(as.matrix(ranef.gp_fit(points)$g), as.matrix(ranef.gp_fit(fit)$g), tolerance = 0.02)
  near <- pfdtc(y ~ x + (w | g) + (1 | h), d, kernel = fit$kernel, noise = fit$noise, hyper = "fixed", m = 20,
                neighbours = 40)
  expect_equal(as.matrix(ranef.gp_fit(near)$g), as.matrix(ranef.gp_fit(fit)$g), tolerance = 0.05)
  new <- data.frame(x = c(0.2, 0.7), w = 1)
  for (f in list(points, near)) {
    at <- predict(f, new, re = FALSE, se.fit = TRUE)
    expect_equal(at$fit, predict(fit, new, re = FALSE), tolerance = 0.02)
    expect_equal(at$se.fit, predict(fit, new, re = FALSE, se.fit = TRUE)$se.fit, tolerance = 0.02)
    expect_equal(unlist(lapply(ranef.gp_fit(f, se = TRUE), attr, "postVar")),
                 unlist(lapply(ranef.gp_fit(fit, se = TRUE), attr, "postVar")), tolerance = 0.05)
  }
  d$z <- d$y > 0
  b <- pfdtc(z ~ x + (1 | g), d, family = binomial())
  expect_identical(unname(vapply(as_sum(b$kernel)$leaves, is_group, NA)), c(FALSE, TRUE))
  p <- suppressMessages(predict(b, data.frame(x = 0.5, g = c("a", "new")), se.fit = TRUE))
  alone <- predict(b, data.frame(x = 0.5), re = FALSE, se.fit = TRUE)
  expect_equal(p$fit[[2]], alone$fit[[1]], tolerance = 1e-10)
  whole <- predict(b, data.frame(x = 0.5), re = FALSE, full_cov = TRUE)$cov # omits the variance of levels
  expect_equal(sqrt(whole[[1]]), alone$se.fit[[1]], tolerance = 1e-8)
  expect_equal(p$se.fit[[2]]^2, alone$se.fit[[1]]^2 + c(VarCorr.gp_fit(b)$g), tolerance = 1e-8)
  expect_identical(dim(ranef.gp_fit(b)$g), c(9L, 1L))
})

test_that("the residual sd of VarCorr() is sigma(), also if the noise varies smoothly", {
  fit <- pfdtc(weight ~ Time + (1 | Chick), ChickWeight, noise = ~ smooth(Time), kernel = kernel_se(),
               transform = "log")
  sd <- sqrt(fit$noise * fit$noise_trend$mean)
  expect_equal(attr(VarCorr.gp_fit(fit), "sc"), sd)
  expect_gt(abs(log(sd / sqrt(fit$noise))), 0.1)
  kernel <- kernels_of_terms(fit$kernel)
  each <- vapply(kernel, function(k) mean(kernel_diagonal(k, fit$data$x)), 0)
  expect_equal(group_table(fit)$share, each[[2L]] / (sum(each) + sd^2), tolerance = 1e-10)
})
