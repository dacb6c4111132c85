# Tests figures of an artificial experiment, whose medians, ranges and slopes are known.

made_up <- function() {
  d <- expand.grid(repetition = 1:3, m = c(10, 100), method = c("pf", "vfe", "sor", "subsample"),
                   dataset = c("airfoil", "synthetic"), stringsAsFactors = FALSE)
  exact <- data.frame(repetition = 1:3, m = 500, method = "exact", dataset = rep(c("airfoil", "synthetic"), each = 3))
  d <- rbind(d, exact)
  out <- experiment_code()$empty_table(experiment_code()$result_columns)[seq_len(nrow(d)), ]
  out[names(d)] <- d
  size <- match(d$method, c("pf", "vfe", "sor", "subsample", "exact"))
  out$rmse_mean <- size * d$repetition / d$m
  out$rmse_sd <- 2 * out$rmse_mean
  out$rmse_pred <- 1 + out$rmse_mean
  out$rmse_mean[d$method == "exact"] <- 0
  out$kl <- ifelse(d$method == "sor", Inf, out$rmse_mean^2)
  out$kl_marginal <- out$rmse_mean^2 / 10
  row.names(out) <- NULL
  t <- expand.grid(evaluation = c(1, 5, 9), repetition = 1:3, method = c("pf", "vfe"), stringsAsFactors = FALSE)
  t <- data.frame(dataset = "airfoil", m = 100, t, seconds = t$evaluation / 10, objective = 100 / t$evaluation,
                  divergence = ifelse(t$method == "pf", 4 * t$repetition / t$evaluation, NA),
                  divergence_exact = 8 * t$repetition / t$evaluation)
  t$rmse_mean <- t$divergence_exact^0.5
  t$rmse_sd <- t$divergence_exact / 3
  experiment_code()$new_experiment(out, t[experiment_code()$trace_columns])
}

test_that("lines are medians over the repetitions, bars the range", {
  results <- made_up()
  shown <- draw_nowhere(plot_rmse(results))
  expect_identical(unique(shown$dataset), c("synthetic", "airfoil")) # in the order of Table 1
  expect_identical(unique(shown$method), c("pf", "vfe", "sor", "subsample"))
  vfe <- shown[shown$method == "vfe" & shown$dataset == "airfoil", ]
  expect_identical(vfe$m, c(10, 100))
  expect_equal(vfe$middle, 2 * 2 / c(10, 100))
  expect_equal(vfe$low, 2 / c(10, 100))
  expect_equal(vfe$high, 2 * 3 / c(10, 100))
  expect_identical(vfe$n, c(3L, 3L))
  expect_equal(draw_nowhere(plot_rmse(results, "sd"))$middle, 2 * shown$middle)
  one <- draw_nowhere(plot_rmse(results, "prediction", datasets = "airfoil", methods = c("vfe", "pf")))
  expect_identical(unique(one[c("dataset", "method")])$method, c("vfe", "pf"))
  expect_equal(one$middle[one$method == "vfe"], 1 + vfe$middle)
  for (lacking in list("airfoil", c("airfoil", "synthetic"))) { # sets without rows of the exact process
    some <- results[!(results$method == "exact" & results$dataset %in% lacking), ]
    expect_equal(draw_nowhere(plot_rmse(some, "prediction", datasets = "airfoil", methods = c("vfe", "pf"))), one)
  }
})

test_that("plot_kl() omits infinite values, and shows fits or the best of them", {
  results <- made_up()
  shown <- draw_nowhere(plot_kl(results))
  expect_false("sor" %in% shown$method)
  expect_true("sor" %in% draw_nowhere(plot_kl(results, kl = "marginal"))$method)
  all <- draw_nowhere(plot_kl(results, against = "error"))
  expect_identical(nrow(all), 2L * 2L * 3L * 3L)
  expect_equal(all$kl, all$error^2)
  best <- draw_nowhere(plot_kl(results, against = "error", best = TRUE))
  expect_identical(nrow(best), 2L * 2L * 3L)
  expect_true(all(best$repetition == 1))
})

test_that("plot_divergence_error() estimates the power law of the points", {
  results <- made_up()
  shown <- draw_nowhere(plot_divergence_error(results, "exact"))
  expect_identical(unique(shown$what), c("mean", "sd"))
  slope <- attr(shown, "slope")
  expect_equal(unname(slope$mean), c(0, 0.5))
  expect_equal(unname(slope$sd), c(-log(3), 1))
  expect_equal(unname(attr(draw_nowhere(plot_divergence_error(results)), "slope")$mean), c(log(2) / 2, 0.5))
  expect_input_error(plot_divergence_error(results, method = "vfe"), "divergence")
  expect_silent(draw_nowhere(plot_divergence_error(results, "exact", method = "vfe")))
  expect_input_error(plot_divergence_error(results, m = 10), "results")
  expect_input_error(plot_divergence_error(results, dataset = "wine"), "results")
})

test_that("plot_trace() draws searches with Laplace's approximation in a panel of their own", {
  moved <- pfdtc(dist ~ speed, cars, m = 3, kernel = kernel_se(3, 500), noise = 200, hyper = "fixed")
  counts <- with_seed(1, pfdtc(dist ~ speed, cars, family = poisson(), kernel = kernel_se()))
  trace <- draw_nowhere(plot_trace(list(moved, counts)))
  expect_identical(unique(trace$objective_of), c("pfdtc", "Laplace approximation"))
})

test_that("plot_trace() of an experiment shows the divergence or, if unknown, the excess over the run's lowest value", {
  shown <- draw_nowhere(plot_trace(made_up()))
  pf <- shown[shown$objective_of == "pf", ]
  expect_equal(pf$objective, 4 * rep(1:3, each = 3) / c(1, 5, 9))
  vfe <- shown[shown$objective_of == "vfe", ]
  expect_equal(vfe$objective, rep(100 / c(1, 5, 9) - 100 / 9, 3))
  expect_identical(draw_nowhere(plot_trace(made_up(), "seconds", method = "vfe"))$fit, vfe$fit)
  constant <- made_up() # without a descent there is no logarithmic axis
  attr(constant, "trace")$objective <- 1
  expect_silent(draw_nowhere(plot_trace(constant, method = "vfe")))
})

test_that("results may come from a file, and par() is as before", {
  results <- made_up()
  file <- tempfile(fileext = ".csv")
  experiment_code()$write_results(as.data.frame(results), file)
  experiment_code()$write_results(attr(results, "trace"), sub("[.]csv$", "-trace.csv", file))
  expect_equal(draw_nowhere(plot_rmse(file)), draw_nowhere(plot_rmse(results)))
  expect_equal(draw_nowhere(plot_divergence_error(file)), draw_nowhere(plot_divergence_error(results)))
  for (plot in list(plot_rmse, plot_kl, plot_divergence_error, plot_trace)) expect_graphics_kept(plot(results))
})

test_that("bad arguments are refused", {
  results <- made_up()
  expect_input_error(plot_rmse(mtcars), "results")
  expect_input_error(plot_rmse("no-such.csv"), "file")
  expect_input_error(plot_rmse(results, "median"), "what")
  expect_input_error(plot_rmse(results, datasets = "iris"), "datasets")
  expect_input_error(plot_rmse(results, methods = "gpt"), "methods")
  expect_input_error(plot_kl(results, best = NA), "best")
  expect_input_error(plot_trace(results, method = "sor"), "results")
  bare <- as.data.frame(results)
  attr(bare, "trace") <- NULL
  expect_input_error(plot_trace(bare), "results")
})

test_that("autoplot() shows the same numbers", {
  only_nightly()
  skip_if_not_installed("ggplot2")
  results <- made_up()
  g <- ggplot2::autoplot(results, "rmse", what = "sd")
  expect_s3_class(g, "ggplot")
  values <- function(g, geom) sort(unique(10^drawn_by(g, geom)$y))
  expect_equal(values(g, "GeomPath"), sort(unique(draw_nowhere(plot_rmse(results, "sd"))$middle)))
  expect_equal(values(ggplot2::autoplot(results, "kl", against = "error"), "GeomPoint"),
               sort(unique(draw_nowhere(plot_kl(results, against = "error"))$kl)))
  expect_equal(values(ggplot2::autoplot(results, "divergence"), "GeomPoint"),
               sort(unique(draw_nowhere(plot_divergence_error(results))$error)))
  drawn <- draw_nowhere(plot_trace(results))$objective
  expect_equal(values(ggplot2::autoplot(results, "trace"), "GeomPath"), sort(unique(drawn[drawn > 0])))
  for (figure in quick(c("rmse", "kl", "divergence", "trace"))) {
    expect_silent(draw_nowhere(print(ggplot2::autoplot(results, figure))))
  }
  expect_input_error(ggplot2::autoplot(results, "rmse", wat = 1), "wat")
})
