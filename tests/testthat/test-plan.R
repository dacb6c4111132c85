# Tests plans of fits and their reasons by tables, because decide() is pure.

facts <- function(n, ...) {
  utils::modifyList(list(n = n, rows = n, keep = TRUE, sample = FALSE, source = FALSE, memory = 2^32), list(...))
}
arguments <- function(...) {
  given <- list(...)
  asked <- list(method = "pfdtc", hyper = "fixed", control = pfdtc_control(progress = FALSE), keep_data = TRUE,
                kernel = kernel_se(1, 1), noise = 0.1, columns = "x", free = character())
  asked[names(given)] <- given
  asked
}
chosen <- function(plan) {
  p <- plan$posterior
  list(kind = p$kind, m = as.integer(p$m), neighbours = as.integer(p$neighbours), move = isTRUE(p$move),
       look = if (is.null(plan$next_look)) "" else plan$next_look)
}

test_that("the reason for inducing points counts distinct rows if some rows are merged", {
  reason <- function(rows) decide(facts(26908, rows = rows), arguments(), list(rho = 1))$because[["posterior"]]
  expect_match(reason(30000), "there are 26,908 distinct rows")
  expect_match(reason(26908), "there are 26,908 rows")
})

test_that("the reason for inducing points says whether rows or memory are missing", {
  reason <- function(...) decide(facts(300, ...), arguments(), list(rho = 0.001))$because[["posterior"]]
  expect_match(reason(keep = FALSE), "because the rows are not kept.", fixed = TRUE)
  expect_match(reason(memory = 1e5), "because an exact posterior takes too much memory.", fixed = TRUE)
})

test_that("plans are those of a table of cases", {
  won <- c(gain = 0.02, se = 0.01, rows = 500)
  lost <- c(gain = 0.01, se = 0.02, rows = 500)
  dense <- c(gain = 0.03, se = 0.01, rows = 500)
  table <- list(
    # An entry has: rows, arguments, measurements; kind, m, neighbours, whether points move, next measurement.
    list(300, list(), list(), "exact", 300, 0, FALSE, "exact"),
    list(300, list(), list(exact = TRUE), "exact", 300, 0, FALSE, ""),
    list(300, list(), list(exact = FALSE), "points", 200, 0, FALSE, "points"),
    list(300, list(m = 30L), list(), "points", 30, 0, FALSE, "points"),
    list(300, list(inducing = "greedy"), list(rho = 1), "points", 200, 0, TRUE, ""),
    list(300, list(neighbours = 20L), list(), "exact", 300, 0, FALSE, "exact"),
    list(6000, list(), list(), "points", 200, 0, FALSE, "points"),
    list(6000, list(), list(rho = 0.001), "points", 200, 0, FALSE, ""),
    list(6000, list(), list(rho = 0.1), "near", 200, 40, FALSE, "trial"),
    list(6000, list(), list(rho = 0.1, trial = lost), "near", 200, 40, FALSE, "dense"),
    list(6000, list(), list(rho = 0.1, trial = lost, dense = lost), "near", 200, 40, FALSE, ""),
    list(6000, list(), list(rho = 0.1, trial = lost, dense = dense), "exact", 6000, 0, FALSE, "exact"),
    list(17000, list(), list(rho = 0.1, trial = lost), "near", 200, 40, FALSE, ""),
    list(6000, list(), list(rho = 0.1, trial = won, alone = 0.02), "points", 200, 0, FALSE, ""),
    list(6000, list(), list(rho = 1), "near", 200, 40, FALSE, "dense"),
    list(6000, list(), list(rho = 1, dense = lost), "near", 200, 40, FALSE, ""),
    list(6000, list(), list(rho = 1, dense = replace(dense, "gain", 0.015)), "near", 200, 40, FALSE, ""),
    list(6000, list(), list(rho = 1, dense = replace(dense, "se", 0.04)), "near", 200, 40, FALSE, ""),
    list(6000, list(), list(rho = 1, dense = NULL), "near", 200, 40, FALSE, ""), # the comparison failed
    list(6000, list(), list(rho = 1, dense = dense), "exact", 6000, 0, FALSE, "exact"),
    list(6000, list(), list(rho = 1, dense = dense, exact = TRUE), "exact", 6000, 0, FALSE, ""),
    list(6000, list(), list(rho = 1, dense = dense, exact = FALSE), "near", 800, 100, FALSE, ""),
    list(9000, list(), list(rho = 1), "near", 200, 40, FALSE, "dense"),
    list(9000, list(), list(rho = 1, dense = lost), "near", 200, 40, FALSE, ""),
    list(9000, list(), list(rho = 1, dense = dense), "near", 800, 100, FALSE, ""),
    list(9000, list(), list(rho = 6, dense = dense), "near", 50, 100, FALSE, ""),
    list(9000, list(), list(rho = 600, left = 0.4, dense = dense), "near", 800, 100, FALSE, ""),
    list(17000, list(), list(rho = 1), "near", 200, 40, FALSE, ""),
    list(17000, list(), list(rho = 6), "near", 50, 40, FALSE, ""),
    list(17000, list(), list(rho = 6, left = 0.6), "near", 50, 40, FALSE, ""),
    # There is little noise, and lengthscales are long.
    list(17000, list(), list(rho = 600, left = 0.4), "near", 200, 40, FALSE, "few"),
    list(17000, list(), list(rho = 600, left = 0.4, few = lost), "near", 50, 40, FALSE, ""),
    list(17000, list(), list(rho = 600, left = 0.4, few = c(gain = -0.03, se = 0.01)), "near", 400, 40, FALSE, ""),
    list(17000, list(), list(rho = 600, left = 0.4, few = NULL), "near", 200, 40, FALSE, ""), # the comparison failed
    list(17000, list(m = 30L, neighbours = 40L), list(rho = 600, left = 0.4), "near", 30, 40, FALSE, ""),
    list(6000, list(neighbours = 0L), list(rho = 1), "points", 200, 0, TRUE, ""),
    list(6000, list(neighbours = 20L), list(rho = 0.001), "near", 200, 20, FALSE, ""),
    list(6000, list(neighbours = 20L), list(rho = 6), "near", 50, 20, FALSE, ""),
    list(6000, list(m = 40L, neighbours = 10L), list(rho = 6), "near", 40, 10, FALSE, ""),
    list(6000, list(m = 40L), list(rho = 0.001), "points", 40, 0, FALSE, ""),
    list(6000, list(m = 40L), list(rho = 6), "points", 40, 0, TRUE, ""),
    list(6000, list(inducing = matrix(0, 7, 1)), list(rho = Inf), "points", 7, 0, TRUE, ""),
    list(6000, list(aux = aux_sor()), list(rho = 0.001), "points", 200, 0, TRUE, ""),
    list(17000, list(control = pfdtc_control(maxit = 5, progress = FALSE)), list(rho = 1), "near", 200, 40, TRUE, ""),
    list(6000, list(method = "gp_dtc"), list(rho = 1), "points", 200, 0, TRUE, ""),
    list(300, list(method = "gp_exact"), list(), "exact", 300, 0, FALSE, ""),
    list(300, list(method = "gp_subsample", m = 30L), list(), "exact", 30, 0, FALSE, ""))
  for (row in table) {
    plan <- decide(facts(row[[1L]]), do.call(arguments, row[[2L]]), row[[3L]])
    expect_identical(chosen(plan), list(kind = row[[4L]], m = as.integer(row[[5L]]), neighbours = as.integer(row[[6L]]),
                                        move = row[[7L]], look = row[[8L]]), info = deparse(row))
    if (row[[8L]] == "") expect_true(all(nzchar(plan$because)), info = deparse(row))
  }
  # Without rows there are neither neighbours nor the exact posterior; a sample has neighbours, but no comparison.
  expect_identical(chosen(decide(facts(300, keep = FALSE), arguments(), list(rho = 1)))$neighbours, 0L)
  expect_identical(chosen(decide(facts(300, keep = FALSE, sample = TRUE, source = TRUE), arguments(),
                                 list(rho = 0.1)))[c("neighbours", "look")], list(neighbours = 40L, look = ""))
  expect_identical(chosen(decide(facts(300, memory = 1e5), arguments()))$kind, "points")
})

test_that("with four or more classes the reason does not claim that inducing points give the prior at all rows", {
  reason <- function(rows, K) {
    likelihood <- replace(as_likelihood(multinomial()), "levels", list(letters[1:K]))
    decide(facts(rows), arguments(likelihood = likelihood), list(rho = 0))$because[["posterior"]]
  }
  expect_match(reason(1500, 3), "at all rows")
  expect_match(reason(1300, 4), "at all rows")
  expect_match(reason(1500, 4), "at most 1333 inducing points")
  expect_match(reason(2500, 4), "Each of the 3 latent functions has at most 400 inducing points.")
  expect_match(reason(2500, 2), "Up to 2,000 rows their number is not limited.")
})

test_that("plans of other likelihoods are those of a table of cases", {
  binary <- as_likelihood(binomial())
  won <- c(gain = -0.02, se = 0.01, rows = 500)
  lost <- c(gain = 0, se = 0.01, rows = 500)
  done <- list(rho = NA_real_)
  table <- list(
    list(300, list(), list(), "points", 300, 0, FALSE, "points"),
    list(300, list(), done, "points", 300, 0, FALSE, ""),
    list(300, list(m = 20L), done, "points", 20, 0, FALSE, ""),
    list(500, list(neighbours = 10L), done, "near", 400, 10, FALSE, ""),
    list(500, list(aux = aux_white()), done, "points", 400, 0, TRUE, ""),
    list(2500, list(), done, "points", 400, 0, FALSE, "trial"),
    list(2500, list(m = 20L), done, "points", 20, 0, FALSE, ""),
    list(2500, list(neighbours = 0L), done, "points", 400, 0, FALSE, ""),
    list(2500, list(), c(done, list(trial = won)), "near", 400, 40, FALSE, ""),
    list(2500, list(), c(done, list(trial = lost)), "points", 400, 0, FALSE, ""),
    list(2e5, list(), done, "points", 400, 0, FALSE, ""),
    list(2500, list(likelihood = as_likelihood(student())), done, "points", 400, 0, FALSE, ""),
    list(2500, list(likelihood = as_likelihood(binomial(), "vi")), done, "points", 400, 0, FALSE, ""))
  for (row in table) {
    asked <- do.call(arguments, utils::modifyList(list(likelihood = binary), row[[2L]]))
    expect_identical(chosen(decide(facts(row[[1L]]), asked, row[[3L]])),
                     list(kind = row[[4L]], m = as.integer(row[[5L]]), neighbours = as.integer(row[[6L]]),
                          move = row[[7L]], look = row[[8L]]), info = deparse(row[-2L]))
  }
})

# ---- plans within `max_seconds` -------------------------------------------------------------------------------------

test_that("no posteriors are compared after the time limit, and the plan says so", {
  lost <- c(gain = 0, se = 0.01, rows = 500)
  late <- function(n, look, ...) decide(facts(n), arguments(...), c(look, seconds = -1))
  table <- list( # rows and measurements, without a time limit the next measurement
    list(6000, list(rho = 0.1), "trial"), list(6000, list(rho = 1), "dense"),
    list(17000, list(rho = 600, left = 0.4), "few"), list(6000, list(rho = 0.1, trial = lost), "dense"))
  for (row in table) {
    expect_identical(decide(facts(row[[1L]]), arguments(), row[[2L]])$next_look, row[[3L]])
    expect_identical(decide(facts(row[[1L]]), arguments(), c(row[[2L]], seconds = 1))$next_look, row[[3L]])
    plan <- late(row[[1L]], row[[2L]])
    expect_identical(chosen(plan)[c("kind", "look")], list(kind = "near", look = ""))
    expect_match(plan$because[["late"]], "`max_seconds` was reached")
  }
  expect_false("late" %in% names(late(6000, list(rho = 0.001))$because))
  binary <- late(2500, list(rho = NA_real_), likelihood = as_likelihood(binomial()))
  expect_null(binary$next_look)
  expect_match(binary$because[["late"]], "`max_seconds` was reached")
  expect_identical(late(300, list())$next_look, "exact") # the posterior itself is always computed
  expect_identical(late(6000, list())$next_look, "points")
})

test_that("cheaper posteriors are planned if the usual one takes over a quarter of `max_seconds`", {
  hurried <- function(n, look, seconds, ...) {
    decide(facts(n), arguments(control = pfdtc_control(max_seconds = seconds), ...), look)
  }
  near <- function(...) hurried(80000, list(rho = 1, few = NULL, ...), 16)
  expect_true(near(seconds = 7)$posterior$untrained)
  expect_match(near(seconds = 7)$because[["untrained"]], "`max_seconds`")
  expect_false(near(seconds = 9)$posterior$untrained) # 80,000 rows take 8 s
  expect_false(hurried(80000, list(rho = 1), Inf)$posterior$untrained)
  # Classes: 8 (m functions)^2 n / 1e10 seconds of 2.
  m <- function(n, seconds, family, ...) {
    likelihood <- replace(as_likelihood(family), "levels", list(letters[1:3]))
    plan <- hurried(n, list(rho = NA_real_, trial = NULL), seconds, likelihood = likelihood, ...)
    expect_identical("most" %in% names(plan$because), plan$posterior$m < 400 && !"m" %in% names(list(...)))
    plan$posterior$m
  }
  expect_identical(m(1e5, 8, multinomial()), as.integer(sqrt(2 * 1e10 / 8e5) / 2))
  expect_identical(m(1e5, 8, binomial()), as.integer(sqrt(2 * 1e10 / 8e5)))
  expect_identical(m(1e5, 0, binomial()), 20L)
  expect_identical(m(1e5, 0, binomial(), m = 50L), 50L)
  expect_equal(m(1e5, Inf, binomial()), 400)
  expect_equal(hurried(1500, list(rho = NA_real_), 0, likelihood = as_likelihood(binomial()))$posterior$m, 1500)
})

test_that("all stages of a fit have one time limit, and so have the fits that it compares", {
  seen <- NULL
  n <- 70
  d <- with_seed(1, data.frame(x = stats::runif(n), noise = stats::rnorm(n)))
  learn <- learning_rows
  noted <- function(data, s) {
    seen <<- c(seen, s$steps$until)
    learn(data, s)
  }
  for (y in list(exp(sin(6 * d$x) + d$noise / 3), c(rep(1, 60), d$noise[1:10]))) { # a transform; a linear kernel
    seen <- NULL
    with_replaced(list(learning_rows = noted), suppressWarnings(suppressMessages(
      pfdtc(y ~ x, d, transform = "auto", control = pfdtc_control(max_seconds = 1000, progress = FALSE)))))
    expect_gt(length(seen), 1)
    expect_identical(unique(seen), seen[1L])
  }
})

test_that("fits follow their plans, and keep the reasons", {
  skip_on_cran()
  n <- 2300
  data <- with_seed(1, data.frame(a = stats::runif(n), b = stats::runif(n)))
  data$y <- with_seed(2, sin(9 * data$a) * cos(8 * data$b) + stats::rnorm(n) / 2)
  kernel <- kernel_matern(3 / 2, c(0.2, 0.25), 1)
  for (given in list(list(), list(m = 30), list(neighbours = 0), list(neighbours = 20), list(m = 40, neighbours = 10),
                     list(m = 30, aux = aux_sor()), list(keep_data = FALSE, m = 20))) {
    for (rows in list(1:200, 1:n)) {
      args <- c(list(y ~ a + b, data[rows, ], kernel = kernel, noise = 0.25, hyper = "fixed",
                     control = pfdtc_control(progress = FALSE)), given)
      fit <- with_few_exact(suppressWarnings(with_seed(3, do.call(pfdtc, args))))
      asked <- do.call(arguments, c(list(kernel = kernel, noise = 0.25, control = args$control), given))
      if (!is.null(given$m)) asked$m <- as.integer(given$m)
      exact <- if (fit$posterior == "exact") TRUE
      look <- list(exact = exact, rho = fit$unexplained, trial = fit$trial, alone = fit$unexplained)
      plan <- with_few_exact(decide(facts(length(rows), keep = asked$keep_data), asked, look))
      info <- paste(deparse(given), length(rows))
      expect_null(plan$next_look, info = info)
      expect_identical(c(exact = "exact", points = "far", near = "far + near")[[plan$posterior$kind]], fit$posterior,
                       info = info)
      expect_equal(c(plan$posterior$m, plan$posterior$neighbours), c(fit$m_asked, fit$neighbours), info = info)
      if (fit$posterior != "exact") expect_identical(isTRUE(plan$posterior$move), fit$moved, info = info)
      expect_identical(names(plan$because), names(fit$because), info = info)
    }
  }
})

test_that("the table of settings has the arguments that are not read before, and no others", {
  takes <- lapply(paste0(names(gp_families), ".default"), function(name) names(formals(get(name))))
  before <- c("x", "y", "weights", "offset", "family", "approx", "like", "workers", "...")
  expect_setequal(names(settings), setdiff(unlist(takes), before))
})

test_that("a setting is checked once, at the start, under its name", {
  for (name in c("m", "tol", "hyper", "aux", "neighbours", "inducing", "control", "keep_data")) {
    wrong <- stats::setNames(list(quote(list("wrong"))), name)
    expect_error(do.call(pfdtc, c(list(dist ~ speed, cars), wrong)), class = "pfdtc_error_input")
  }
})

test_that("`neighbours` without effect is reported", {
  given <- list(dist ~ speed, cars, kernel = kernel_se(10, 400), noise = 200, plain = TRUE, hyper = "fixed")
  expect_output(print(do.call(pfdtc, c(given, neighbours = 5))), "`neighbours` has no effect")
  expect_no_match(utils::capture.output(print(do.call(pfdtc, c(given, neighbours = 0)))), "no effect")
})
