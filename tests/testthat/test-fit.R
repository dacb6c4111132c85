# Returns a fit without its times.
timeless <- function(fit) {
  fit$seconds <- fit$trace$seconds <- fit$pilot$trace$seconds <- NULL
  fit
}

every_aux <- function() {
  list(aux_sor(), aux_sor(size = 7), aux_sor(rows = 3:9), aux_subset(size = 9), aux_refresh(5), aux_reference(),
       aux_reference(m2 = 15), aux_reference(samples = 8), aux_refresh(7, aux_reference()),
       aux_refresh(4, aux_subset(9)), aux_white(), aux_white(0.5), aux_refresh(5, aux_white()))
}

test_that("the objective of a fit is pf_objective() at its points, no worse than at the start, and flat", {
  data <- smooth_data(30)
  for (profile in quick(profiles)) {
    kernel <- package_kernel(ref_kernel(profile, c(0.9, 1.6), 1.7))
    for (aux in list(aux_sor(rows = 1:10), aux_subset(rows = 1:10), aux_reference(m2 = 15), aux_white(0.8))) {
      fit <- fit_fixed(data, kernel = kernel, aux = aux, center = FALSE, scale = FALSE, maxit = 2000)
      nu <- auxiliary(data$x, data$y, kernel, 0.3, aux)
      at <- function(z) pf_objective(z, data$x, data$y, kernel, 0.3, nu, jitter = fit$jitter)
      info <- paste(profile, aux$kind)
      expect_identical(fit$convergence, 0L, info = info)
      expect_equal(at(fit$inducing)$value, fit$objective, tolerance = 1e-9, info = info)
      expect_equal(at(data$z)$value, fit$trace$objective[1], tolerance = 1e-9, info = info)
      expect_lt(fit$objective, fit$trace$objective[1])
      # With Matern 1/2 the minima are kinks.
      if (profile != "matern12") expect_lt(max(abs(at(fit$inducing)$gradient)), 1e-3 * max(abs(at(data$z)$gradient)))
    }
  }
})

test_that("set.seed() reproduces a fit to the bit, whatever is random in it", {
  skip_on_cran()
  data <- smooth_data(30)
  cases <- c(lapply(every_aux(), function(aux) list(aux = aux)),
             lapply(c("greedy", "random", "kmeans"), function(i) list(inducing = i)),
             list(list(hyper = "joint"), list(hyper = "evidence"), list(hyper = "evidence", m = NULL),
                  list(control = list(optimise_rows = 20)),
                  list(control = list(threads = 2, block = 10)), list(kernel = kernel_matern(1 / 2))))
  for (case in quick(in_turn(cases, 1, 2))) {
    fit <- function(seed) timeless(do.call(fit_learned, c(list(data, seed = seed, maxit = 6), case)))
    expect_identical(fit(3), fit(3), info = deparse(case))
  }
  random <- function(seed) fit_learned(data, seed = seed, inducing = "random", maxit = 0)$inducing
  expect_false(identical(random(1), random(2)))
})

test_that("a fit leaves its arguments as they were", {
  data <- smooth_data()
  copy <- unserialize(serialize(data, NULL))
  fit_fixed(data, maxit = 5)
  fit_learned(data, maxit = 5)
  expect_identical(data, copy)
})

test_that("the rows that are optimised on have their own responses and weights", {
  p <- problem(n = 50, weighted = TRUE)
  data <- list(x = p$x, y = p$y, weights = p$weights, n = 50L, group = NULL, scale = 1)
  part <- with_seed(1, optimise_rows(data, 20))
  expect_identical(part[c("x", "y", "weights")],
                   list(x = p$x[part$rows, ], y = p$y[part$rows], weights = p$weights[part$rows]))
  expect_identical(part$n, 20L)
  expect_identical(part$rows, sort(unique(part$rows)))
  expect_identical(optimise_rows(data, 50), data)
  # The noise variance learned from a part of the rows is within a factor of 2 of the true 0.01.
  x <- matrix(seq(0, 6, length.out = 400))
  y <- with_seed(2, sin(x[, 1]) + stats::rnorm(400, sd = 0.1))
  fit <- with_seed(3, pfdtc(x, y, m = 10, hyper = "pilot",
                            control = pfdtc_control(optimise_rows = 150, maxit = 30, progress = FALSE)))
  expect_lt(abs(log(fit$noise / 0.01)), log(2))
})

test_that("the order of the rows changes nothing beyond rounding", {
  data <- smooth_data()
  weights <- with_seed(2, runif(50, 0.5, 2))
  fit <- function(order) {
    now <- utils::modifyList(data, list(x = data$x[order, ], y = data$y[order]))
    f <- fit_fixed(now, weights = weights[order], aux = aux_sor(rows = match(1:10, order)), maxit = 8)
    list(f$inducing, f$evidence, f$objective, predict(f, data$new, se.fit = TRUE))
  }
  # Eight iterations of the search propagate the rounding.
  expect_equal(fit(50:1), fit(1:50), tolerance = 1e-9)
  expect_equal(fit(with_seed(5, sample(50))), fit(1:50), tolerance = 1e-9)
})

test_that("hyper = \"fixed\" keeps what was given", {
  fit <- fit_fixed()
  expect_identical(coef(fit), c(lengthscale.x1 = 0.9, lengthscale.x2 = 1.6, variance = 1.7, noise = 0.3))
  expect_null(fit$pilot)
  expect_identical(fit$df, 0L)
  expect_identical(names(fit$evaluations), "objective")
})

test_that("the pilot on all rows ends at a maximum of the exact evidence, from any start", {
  only_nightly()
  data <- smooth_data(45)
  for (profile in quick(c("se", "matern32"))) {
    for (start in list(kernel_se(), kernel_se(c(0.9, 1.6), 1.7))) {
      start$profile <- profile
      fit <- fit_learned(data, kernel = start, maxit = 200)
      minus_evidence <- function(par) {
        -ref_exact(data$x, data$y - fit$center, ref_kernel(profile, exp(par[1:2]), exp(par[3])), exp(par[4]))$evidence
      }
      expect_identical(fit$pilot$convergence, 0L)
      expect_identical(fit$df, 4L)
      # From there optim() gains almost nothing: the pilot stops at a millionth of its gain.
      best <- stats::optim(log(coef(fit)), minus_evidence, method = "BFGS")
      expect_lt(minus_evidence(log(coef(fit))), best$value + 1e-4)
    }
  }
})

test_that("\"joint\" ends at a greater ELBO than \"pilot\", where hyperparameters suit the points", {
  data <- smooth_data()
  for (inducing in c("greedy", "random")) {
    pilot <- fit_learned(data, m = 4, inducing = inducing, aux = aux_reference(), maxit = 200)
    joint <- fit_learned(data, m = 4, inducing = inducing, aux = aux_reference(), hyper = "joint", maxit = 200)
    expect_gt(joint$evidence, pilot$evidence)
    expect_named(joint$evaluations, c("pilot", "objective", "hyper"))
    slope <- function(fit) {
      g <- vfe_objective(fit$inducing, data$x, data$y - fit$center, fit$kernel, fit$noise, jitter = 1e-8)$gradient
      max(abs(unlist(g[-1])))
    }
    expect_lt(slope(joint), 0.2 * slope(pilot))
    expect_false(is.null(joint$trace$round))
  }
})

test_that("every auxiliary distribution gives a fit no worse than its start, and is named by it", {
  for (aux in quick(every_aux())) {
    fit <- fit_learned(aux = aux)
    info <- format(aux)
    expect_identical(fit$aux, aux)
    rounds <- if (is.null(fit$trace$round)) rep(1, nrow(fit$trace)) else fit$trace$round
    for (values in split(fit$trace$objective, rounds)) expect_lte(min(values, na.rm = TRUE), values[1])
    expect_identical(fit$objective, min(fit$trace$objective[rounds == max(rounds)], na.rm = TRUE), info = info)
    expect_true(all(is.finite(unlist(predict(fit, se.fit = TRUE)))), info = info)
  }
  expect_identical(fit_fixed(aux = aux_sor)$aux, aux_sor())          # the function itself is accepted
  expect_identical(fit_learned(maxit = 0)$aux, aux_white())
})

test_that("aux_refresh() renews its distribution every few iterations, and the trace counts the rounds", {
  fit <- fit_fixed(aux = aux_refresh(5, aux_sor(rows = 1:10)), maxit = 23)
  trace <- fit$trace
  expect_named(trace, c("evaluation", "objective", "seconds", "round"))
  expect_identical(trace$evaluation, seq_len(nrow(trace)))
  expect_identical(unique(trace$round), 1:5)
  expect_false(is.unsorted(trace$seconds))
  # The first round uses the starting distribution.
  once <- fit_fixed(aux = aux_sor(rows = 1:10), maxit = 5)
  expect_identical(trace$objective[trace$round == 1], once$trace$objective)
  expect_null(once$trace$round)
  # The second round begins with an auxiliary distribution on the points of the first round, in the units of the cleaned
  # response.
  d <- fit$data
  kernel <- kernel_se(c(0.9, 1.6), 1.7 / fit$scale^2)
  noise <- 0.3 / fit$scale^2
  dense <- ref_pf(unname(once$inducing), d$x, d$y, ref_kernel("se", c(0.9, 1.6), 1.7 / fit$scale^2), noise,
                  ref_nu_sor(unname(once$inducing), d$x, d$y, ref_kernel("se", c(0.9, 1.6), 1.7 / fit$scale^2), noise))
  expect_equal(trace$objective[match(2, trace$round)], dense, tolerance = 1e-7)
})

test_that("inducing points start where `inducing` says", {
  data <- smooth_data()
  fit <- fit_fixed(data, inducing = "greedy", m = 6, maxit = 0)
  expect_identical(fit$inducing_method, "greedy")
  expect_equal(fit$inducing, inducing_points(data$x, 6, fit$kernel, "greedy"), ignore_attr = TRUE)
  for (method in c("random", "kmeans")) {
    fit <- with_seed(4, fit_fixed(data, inducing = method, m = 6, maxit = 0))
    expect_equal(fit$inducing, with_seed(4, inducing_points(data$x, 6, fit$kernel, method)), ignore_attr = TRUE)
  }
  fit <- fit_fixed(data, inducing = "divergence", m = 6, maxit = 0, center = FALSE, scale = FALSE)
  expect_identical(fit$inducing_method, "divergence")
  expect_equal(fit$inducing, inducing_points(data$x, 6, fit$kernel, "divergence", y = data$y, noise = fit$noise),
               ignore_attr = TRUE)
  expect_identical(fit_fixed(data, inducing = "g", m = 6, maxit = 0)$inducing_method, "greedy")

  given <- fit_fixed(data, maxit = 0)
  expect_equal(given$inducing, data$z, ignore_attr = TRUE)
  expect_identical(c(given$m, given$m_asked), c(6L, 6L))
  named <- data
  colnames(named$x) <- c("u", "v")
  swapped <- cbind(v = data$z[, 2], u = data$z[, 1])
  expect_identical(fit_fixed(named, inducing = swapped, maxit = 0)$inducing, cbind(u = data$z[, 1], v = data$z[, 2]))
  expect_identical(fit_fixed(named, inducing = as.data.frame(swapped), maxit = 0)$inducing,
                   cbind(u = data$z[, 1], v = data$z[, 2]))
  expect_equal(predict(fit_fixed(named, inducing = swapped, maxit = 3), data$new),
               predict(fit_fixed(data, maxit = 3), data$new))

  # There may be more points than rows, and without `m` there are min(200, n).
  expect_identical(fit_fixed(problem(n = 4, m = 7), aux = aux_sor(rows = 1:2), maxit = 0)$m, 7L)
  expect_identical(fit_fixed(data, inducing = "random", maxit = 0)$m, 50L)
})

test_that("by default two starts are tried, and the one with the lower objective after some iterations continues", {
  for (n in c(12, 50)) for (m in in_turn(c(3, 6, 10), n == 12, 2)) {
    data <- smooth_data(n)
    kernel <- kernel_se(c(0.9, 1.6), 1.7)
    by <- function(start, maxit) {
      fit_fixed(data, inducing = start, m = m, kernel = kernel, aux = NULL,
                control = pfdtc_control(maxit = maxit, trace = 1L, progress = FALSE))
    }
    for (maxit in c(0, 19, 40, 60, 300)) {
      some <- min(5, maxit %/% 20)
      trials <- lapply(c(greedy = "greedy", divergence = "divergence"), by, maxit = some)
      values <- vapply(trials, function(fit) fit$objective, 0)
      fit <- by(NULL, maxit)
      info <- paste(n, m, maxit)
      better <- if (values[[2]] < values[[1]] - 5 * (0.3 / fit$scale^2)^2) 2 else 1
      expect_identical(fit$inducing_method, names(trials)[better], info = info)
      first <- trials[[better]]
      expect_identical(fit$trace$objective[seq_len(nrow(first$trace))], first$trace$objective, info = info)
      expect_identical(fit$evaluations[["other start"]], as.numeric(nrow(trials[[3 - better]]$trace)), info = info)
      expect_identical(fit$evaluations[["objective"]], as.numeric(nrow(fit$trace)), info = info)
      expect_identical(fit$trace$evaluation, seq_len(nrow(fit$trace)), info = info)
      expect_null(fit$trace$round)
      expect_lte(length(fit$z_trace), maxit)
      expect_lte(fit$objective, values[[better]])
    }
  }
  # A requested start or distribution is used.
  expect_identical(fit_fixed(m = 6, inducing = NULL, aux = aux_sor(), maxit = 0)$inducing_method, "greedy")
  expect_named(fit_fixed(m = 6, inducing = "greedy", maxit = 40)$evaluations, "objective")
})

test_that("a second start on fewer rows keeps all points, and its failure does not stop the fit", {
  data <- smooth_data(50)
  fit <- fit_fixed(data, inducing = NULL, m = 30, aux = NULL, kernel = kernel_matern(1 / 2, c(0.9, 1.6), 1.7),
                   control = pfdtc_control(maxit = 40, optimise_rows = 12, progress = FALSE))
  expect_identical(fit$m, 30L)
  # With a negative noise, which no user can give, the Cholesky factorisation fails.
  impossible <- list(model = new_model(fit$kernel, -100), z = data$z)
  plan <- list(m = 6L, run = unclass(pfdtc_control())[c("block", "threads", "memory")],
               steps = list(maxit = 40L, until = Inf))
  rows <- data[c("x", "y", "weights")]
  state <- new.env()
  state$seconds <- numeric()
  with_replaced(list(optimise_points = function(rows, now, ...) now), {
    expect_identical(better_start(rows, rows, impossible, plan, state)$now, impossible)
  })
  expect_error(choose_points(data$x, 6, fit$kernel, "divergence", toward = c(rows, list(noise = -100))),
               class = "pfdtc_error_numerical")
})

test_that("optimisation ends at `max_seconds`, and a stage without a first value keeps the earlier result", {
  slow <- pfdtc_control(maxit = 1000, reltol = 1e-15, max_seconds = 0, progress = FALSE)
  fit <- suppressWarnings(fit_fixed(problem(n = 200, m = 6), inducing = NULL, m = 40, aux = NULL, control = slow))
  expect_lte(sum(fit$evaluations), 10)
  now <- list(z = 1, value = 2, trace = data.frame(evaluation = 1:2, objective = 3:2, seconds = 0, round = 1L))
  none <- list(z = 1, value = NA_real_, trace = empty_trace, kept = list())
  expect_identical(take_result(now, none)$value, 2)
  expect_identical(nrow(take_result(now, none)$trace), 2L)
})

test_that("a fit as `inducing` gives the start of points, kernel and noise", {
  data <- smooth_data()
  first <- fit_learned(data)
  again <- pfdtc(data$x, data$y, hyper = "fixed", inducing = first, control = pfdtc_control(maxit = 0))
  expect_identical(again$inducing, first$inducing)
  expect_equal(coef(again), coef(first), tolerance = 1e-14)
  expect_equal(again$evidence, first$evidence, tolerance = 1e-9)
  expect_equal(predict(again), predict(first), tolerance = 1e-9)
  # On other data, in other units of y, given values override those of the fit.
  scaled <- pfdtc(data$x, 10 * data$y, hyper = "fixed", inducing = first, noise = 50, control = list(maxit = 0))
  expect_equal(unname(coef(scaled)), c(unname(coef(first))[1:3], 50), tolerance = 1e-14)
  pilot <- fit_learned(data, m = NULL, inducing = first)
  expect_equal(coef(pilot), coef(first), tolerance = 1e-5)
  expect_lt(pilot$evaluations[["pilot"]], 30)
})

test_that("greedy selection that stops early leaves fewer points, and the fit says so", {
  data <- smooth_data()
  fit <- fit_fixed(data, inducing = "greedy", m = 40, kernel = kernel_se(c(30, 30), 1.7), maxit = 2)
  expect_lt(fit$m, 40)
  expect_identical(fit$m_asked, 40L)
  expect_identical(nrow(fit$inducing), fit$m)
  expect_output(print(fit), sprintf("\\b%d\\b.*\\b40\\b", fit$m))
  expect_output(print(summary(fit)), sprintf("\\b%d\\b.*\\b40\\b", fit$m))
  expect_false(any(grepl("asked", utils::capture.output(print(fit_fixed(data, maxit = 0))))))
})

test_that("without its data a fit has O(m^2 + m d) numbers and predicts the same", {
  size <- function(fit) length(serialize(fit, NULL))
  fit <- function(n, keep) fit_fixed(smooth_data(n), maxit = 2, keep_data = keep)
  # The size may differ by digits of counts and a few lines of trace, but must not grow with the rows.
  expect_lt(abs(size(fit(3000, FALSE)) - size(fit(60, FALSE))), 2000)
  expect_lt(size(fit(3000, FALSE)), 20000)
  expect_gt(size(fit(3000, TRUE)), 3000 * 3 * 8)
  new <- smooth_data()$new
  expect_identical(predict(fit(60, FALSE), new, se.fit = TRUE), predict(fit(60, TRUE), new, se.fit = TRUE))

  in_function <- function(keep) {
    ballast <- rnorm(1e5)
    d <- data.frame(a = 1:30 / 5, b = cos(1:30))
    d$y <- sin(d$a)
    pfdtc(y ~ a + exp(b), d, m = 4, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed", keep_data = keep,
          control = pfdtc_control(maxit = 2, progress = FALSE))
  }
  small <- in_function(FALSE)
  expect_lt(size(small), 20000)
  expect_identical(predict(small, data.frame(a = 1:3, b = 0)), predict(in_function(TRUE), data.frame(a = 1:3, b = 0)))
})

test_that("a fit that was saved gives the same numbers in a fresh R process", {
  skip_if_not(file.exists(system.file("Meta", "package.rds", package = "pfdtc")), "pfdtc is not installed")
  data <- small_data(25)
  fits <- list(fit_mixed(data = data), fit_mixed(data = data, keep_data = FALSE),
               fit_learned(keep_data = FALSE, kernel = kernel_matern(3 / 2), maxit = 5))
  new <- list(data[1:5, ], data[1:5, ], smooth_data()$new)
  ask <- function(fits, new) {
    Map(function(fit, new) {
      list(predict(fit, new, interval = "prediction", se.fit = TRUE), logLik(fit), coef(fit))
    }, fits, new)
  }
  from <- tempfile(fileext = ".rds")
  to <- tempfile(fileext = ".rds")
  saveRDS(list(fits = fits, new = new, ask = ask, threads = getOption("pfdtc.threads")), from)
  script <- tempfile(fileext = ".R")
  writeLines(deparse(substitute({
    .libPaths(paths)
    saved <- readRDS(from)
    options(pfdtc.threads = saved$threads)
    loadNamespace("pfdtc")
    environment(saved$ask) <- globalenv()
    saveRDS(saved$ask(saved$fits, saved$new), to)
  }, list(paths = .libPaths(), from = from, to = to))), script)
  out <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", shQuote(script)), stdout = TRUE,
                                  stderr = TRUE))
  expect_true(file.exists(to), info = paste(out, collapse = "\n"))
  expect_equal(readRDS(to), ask(fits, new), tolerance = 1e-13)
})

test_that("the parts of a fit are those its help names", {
  fit <- fit_learned(maxit = 5)
  expect_s3_class(fit, c("pfdtc", "gp_fit"), exact = TRUE)
  expect_true(all(c("kernel", "noise", "inducing", "trace", "convergence", "message", "evidence", "jitter",
                    "version") %in% names(fit)))
  expect_named(fit$trace, c("evaluation", "objective", "seconds"))
  expect_identical(fit$version, utils::packageVersion("pfdtc"))
  expect_identical(fit$posterior, "far")
  made <- fit$evaluations
  expect_named(made, c("pilot", "objective", "other start"))
  expect_identical(sum(made[c("pilot", "objective")]), as.numeric(nrow(fit$trace) + nrow(fit$pilot$trace)))
  expect_true(all(c("pilot", "start", "points", "posterior") %in% names(fit$seconds)))
  fit <- fit_learned(maxit = 5, hyper = "evidence")
  expect_named(fit$evaluations, c("learn", "objective", "other start"))
  expect_true(all(c("learn", "start", "points", "posterior") %in% names(fit$seconds)))
  expect_null(fit$pilot)
  expect_named(fit$learned, c("start", "lengthscale", "noise", "evidence", "kept"))
  expect_identical(sum(fit$learned$kept), 1L)
  expect_named(fit$kernels, c("kernel", "score", "se", "parameters", "chosen"))
  expect_identical(sum(fit$kernels$chosen), 1L)
  expect_true(all(fit$seconds >= 0))
  expect_false(any(rapply(unclass(fit), function(v) typeof(v) == "externalptr", how = "unlist")))
})

test_that("a short fit shows no progress, a silent one never", {
  quiet <- function(progress) {
    utils::capture.output(type = "message", fits <- list(
      fit_learned(maxit = 2, control = list(progress = progress)),
      fit_learned(smooth_data(20), hyper = "evidence", control = list(progress = progress))))
  }
  expect_identical(quiet(TRUE), character())
  expect_identical(quiet(FALSE), character())
})

test_that("the residual prior variance of a fit is that of its own inducing points, also if they moved", {
  for (move in c(TRUE, FALSE)) {
    fit <- pfdtc(dist ~ speed, cars, m = 3, neighbours = 0, kernel = kernel_se(3, 500), noise = 200, hyper = "fixed",
                 control = if (!move) pfdtc_control(maxit = 0) else pfdtc_control())
    K <- kernel_matrix(fit$kernel, fit$inducing)
    across <- kernel_matrix(fit$kernel, matrix(cars$speed), fit$inducing)
    left <- 500 - rowSums(across * t(solve(K + diag(fit$jitter * 500, nrow(K)), t(across))))
    expect_equal(fit$unexplained, mean(left) / 200, tolerance = 1e-6) # a sum of 50 differences of numbers up to 500
  }
})
