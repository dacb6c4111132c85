fixed_fit <- function(data, ..., method = pfdtc, control = list(maxit = 0), z_seed = 2) {
  set.seed(z_seed)
  method(y ~ a + log(1 + abs(b)) + f + g + l + offset(o), data, weights = w, subset = b < 2, m = 20,
         kernel = kernel_matern(3 / 2, lengthscale = c(0.5, rep(1, 9)), variance = 1), noise = 0.04, hyper = "fixed",
         inducing = cbind(runif(20), runif(20), matrix(rbinom(160, 1, 0.3), 20)), control = control, ...)
}

# Returns the rows with weight 0 after the 200th.
first_200 <- function(d) replace(d, "w", list(replace(d$w, 201:400, 0)))

same_posterior <- function(a, b, new, but = NULL) {
  # The sums have the same terms in another order.
  expect_equal(a$factors[c("G", "Ay", "beta", "C", "yy", "t", "k_sum")],
               b$factors[c("G", "Ay", "beta", "C", "yy", "t", "k_sum")], tolerance = 1e-10)
  expect_equal(a$factors$rss, b$factors$rss, tolerance = 1e-9)
  numbers <- setdiff(c("evidence", "center", "scale", "sd_y", "nobs"), but)
  expect_equal(a[numbers], b[numbers], tolerance = 1e-10)
  expect_equal(a$signature, b$signature, tolerance = 1e-10)
  expect_equal(predict(a, new, se.fit = TRUE), predict(b, new, se.fit = TRUE), tolerance = 1e-8)
}

test_that("a fit of a source is that of its rows in memory, for any blocks", {
  d <- mixed_rows()
  new <- d[c(1:5, 17, 399), ]
  whole <- fixed_fit(d)
  for (sizes in list(400, c(0, 1, 99, 0, 150, 150), c(rep(1, 25), 375))) {
    passes <- new.env()
    part <- fixed_fit(in_blocks(d, sizes, passes = passes))
    same_posterior(part, whole, new)
    expect_equal(passes$n, 2)
    expect_equal(part$frame$columns, whole$frame$columns)
    expect_null(part$data)
  }
  expect_output(print(part), "4 .*na.action")
  expect_output(print(part), "read 2 times\nMean") # nothing comes from a sample
  for (method in list(gp_dtc, gp_sor)) {
    same_posterior(fixed_fit(in_blocks(d), method = method), fixed_fit(d, method = method), new)
  }
  same_posterior(fixed_fit(in_blocks(d), center = FALSE, scale = FALSE),
                 fixed_fit(d, center = FALSE, scale = FALSE), new)
})

test_that("hyperparameters of a source are learned from a sample of its rows", {
  d <- mixed_rows()
  d$y <- sin(5 * d$a) + d$b^2 / 4 + rnorm(400) / 5
  fit <- with_seed(1, pfdtc(y ~ a + b, in_blocks(d[c("y", "a", "b")]), kernel = kernel_se(), m = 8))
  expect_output(print(fit), "kernel, noise and inducing points come from")
  expect_equal(fit$posterior, "far") # because of `m`
  expect_lt(mean((predict(fit, d) - d$y)^2, na.rm = TRUE), 0.7 * var(d$y, na.rm = TRUE))
  again <- with_seed(1, pfdtc(y ~ a + b, in_blocks(d[c("y", "a", "b")]), kernel = kernel_se(), m = 8))
  expect_identical(coef(fit), coef(again))
  dot <- pfdtc(y ~ . - a, in_blocks(d[c("y", "a", "b")]), kernel = kernel_se(1, 1), noise = 1, hyper = "fixed", m = 5)
  expect_equal(dot$frame$columns, "b")
  expect_output(print(dot), "times; inducing points come from")
})

test_that("a sample has the requested size, of rows drawn with equal probability, in their order", {
  set.seed(3)
  times <- 60
  counts <- numeric(60)
  for (i in seq_len(times)) {
    parts <- split(1:60, rep(1:6, c(1, 5, 20, 4, 29, 1)))
    rows <- Reduce(function(a, b) smallest_keys(list(a, b)), lapply(parts, function(i) {
      smallest_keys(list(list(key = runif(length(i)), values = list(v = cbind(i)), r = i + 0, w = NULL)), 12)
    }))
    expect_identical(drop(rows$values$v), as.integer(rows$r))
    expect_length(rows$r, 12)
    expect_false(is.unsorted(rows$r))
    counts[rows$r] <- counts[rows$r] + 1
  }
  # The sum is at most chi squared with 59 degrees of freedom. It exceeds 110 once in ten thousand times.
  expect_lt(sum((counts - times / 5)^2 / (times / 5)), 110)
})

test_that("centre and scale of a response in blocks are those of the whole response, also far from 0", {
  set.seed(4)
  for (weighted in c(FALSE, TRUE)) for (shift in c(0, 1e6)) {
    r <- shift + rnorm(500)
    w <- if (weighted) rexp(500)
    m <- Reduce(merge_moments, lapply(split(1:500, rep(1:4, c(1, 100, 300, 99))), function(i) {
      weighted_moments(r[i], w[i])
    }))
    whole <- response_unit(r, w, max(abs(r)), TRUE, TRUE, "y")
    m$sd <- sqrt(m$ss / m$total * m$n / (m$n - 1))
    expect_equal(response_unit(NULL, NULL, max(abs(r)), TRUE, TRUE, "y", m), whole, tolerance = 1e-12)
  }
})

test_that("a source that fails has an error, which holds the fit to the rows before", {
  d <- mixed_rows()
  sizes <- rep(100, 4)
  e <- expect_error(fixed_fit(in_blocks(d, sizes, fails = 3)), class = "pfdtc_error_source")
  expect_match(conditionMessage(e), "200.*the disk is gone")
  expect_null(e$fit)
  e <- expect_error(fixed_fit(in_blocks(d, sizes, fails = 3, failing_pass = 2), center = FALSE, scale = FALSE),
                    class = "pfdtc_error_source")
  same_posterior(e$fit, fixed_fit(first_200(d), center = FALSE, scale = FALSE), d[1:3, ], but = "sd_y")
  expect_match(conditionMessage(e), "200")
  expect_false(anyNA(predict(e$fit, d[1:3, ], interval = "credible")))
  e <- expect_error(fixed_fit(in_blocks(d, sizes, fails = 1, failing_pass = 2)), class = "pfdtc_error_source")
  expect_equal(e$fit$nobs, fixed_fit(d)$nobs) # the sample has all rows
})

test_that("a source that returns other rows in the second pass is refused, and one that cannot start is closed", {
  d <- mixed_rows()
  passes <- new.env()
  source <- in_blocks(d, rep(100, 4), passes = passes)
  read <- source$next_block
  source$next_block <- function() if (passes$n == 1) read() else read()[1:50, ]
  expect_error(fixed_fit(source), class = "pfdtc_error_input")
  closed <- FALSE
  source <- in_blocks(d)
  source$rewind <- function() stop("no disk")
  source$finish <- function() closed <<- TRUE
  expect_error(fixed_fit(source), "no disk", class = "pfdtc_error_source")
  expect_true(closed)
})

test_that("an interrupt while sums are read returns the fit to the rows read so far, with a warning", {
  d <- mixed_rows()
  passes <- new.env()
  source <- in_blocks(d, rep(100, 4), passes = passes)
  read <- source$next_block
  blocks <- 0
  source$next_block <- function() {
    blocks <<- blocks + 1
    if (passes$n == 2 && blocks == 5 + 3) interrupt_now()
    read()
  }
  expect_warning(fit <- fixed_fit(source), class = "pfdtc_warning_convergence")
  expect_equal(fit$convergence, 52L)
  expect_equal(fit$nobs, fixed_fit(first_200(d))$nobs)
})

test_that("terms and arguments that a source does not allow are refused by name", {
  d <- mixed_rows()[1:60, c("y", "a", "b", "f", "l")]
  refused <- function(expr, text, class = "pfdtc_error_input") {
    e <- expect_error(expr, class = class)
    expect_match(conditionMessage(e), text)
  }
  refused(pfdtc(y ~ poly(b, 2), in_blocks(d)), "poly")
  refused(pfdtc(y ~ id, in_blocks(transform(d, id = as.character(1:60)))), "`id`")
  again <- in_blocks(data.frame(y = sin(1:120), id = as.character(1:60)), c(60, 60)) # names repeat in another block
  expect_s3_class(pfdtc(y ~ id, again, m = 5, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed"), "pfdtc")
  refused(pfdtc(y ~ a + nowhere, in_blocks(d)), "nowhere")
  elsewhere <- rnorm(60)
  refused(pfdtc(y ~ a + elsewhere, in_blocks(d)), "elsewhere")
  refused(pfdtc(y ~ a:b, in_blocks(d)), "a:b")
  refused(gp_exact(y ~ a, in_blocks(d)), "gp_exact")
  refused(gp_fitc(y ~ a, in_blocks(d)), "gp_fitc")
  refused(pfdtc(y ~ a, in_blocks(d), tol = 0.1), "tol")
  refused(pfdtc(l ~ a, in_blocks(d), family = binomial()), "family")
  refused(pfdtc(y ~ a, in_blocks(d), neighbours = 5, keep_data = FALSE), "keep_data")
  refused(pfdtc(l ~ a, in_blocks(d)), "1 to 20")
  refused(pfdtc(y ~ a, in_blocks(d, c(20, 40)), na.action = na.fail), "na.action")
  refused(pfdtc(y ~ a, in_blocks(d), weights = -b), "weights")
  refused(pfdtc(y ~ a, in_blocks(d[0, ], 0)), "no row")
  refused(pfdtc(y ~ a, rows_blocks(function() NULL, function() 1:3, c("y", "a"))), "data frame")
  refused(pfdtc(y ~ a, rows_blocks(function() NULL, function() data.frame(y = 1), c("y", "a"))), "`a`")
  refused(rows_blocks(1, function() NULL), "rewind")
  refused(rows_blocks(function() NULL, 1), "next_block")
  refused(rows_blocks(function() NULL, function() NULL), "columns")
  d$m <- c(rep("u", 30), 1:30)
  two <- list(transform(d[1:30, ], m = 1), transform(d[31:60, ], m = "u"))
  at <- 0
  mixed <- rows_blocks(function() at <<- 0, function() if (at < 2) two[[at <<- at + 1]], names(d))
  refused(pfdtc(y ~ m, mixed), "`m`")
})

test_that("predictions at the rows of a source are those of the same rows in memory, returned or written", {
  d <- mixed_rows()
  fit <- fixed_fit(d)
  source <- in_blocks(d, c(100, 0, 1, 299))
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  plain <- function(p) if (is.list(p)) lapply(p, unname) else unname(p)
  for (args in list(list(), list(interval = "prediction", level = 0.8), list(se.fit = TRUE, type = "response"),
                    list(interval = "credible", se.fit = TRUE))) {
    warns <- identical(args$interval, "prediction")
    ask <- function(...) expect_warned(do.call(predict, c(list(fit, ...), args)), "weights", warns)
    want <- ask(d)
    expect_equal(plain(ask(source)), plain(want), tolerance = 1e-10)
    expect_identical(ask(source, file = file), file)
    got <- read.csv(file)
    expect_equal(nrow(got), 400)
    expect_equal(got$fit, unname(if (is.list(want)) as.matrix(want$fit)[, 1] else as.matrix(want)[, 1]),
                 tolerance = 1e-12)
    if (is.list(want)) expect_equal(got$se.fit, unname(want$se.fit), tolerance = 1e-12)
  }
  # A failure leaves the complete file, and the next call continues where it ended.
  whole <- readLines(file)
  expect_message(expect_error(predict(fit, in_blocks(d, fails = 2), file = file), class = "pfdtc_error_source",
                              "134"), class = "pfdtc_message_kept")
  expect_identical(readLines(file), whole)
  part <- list.files(dirname(file), paste0(basename(file), ".*part"), full.names = TRUE)
  expect_length(part, 1)
  cat("0.123", file = part, append = TRUE) # an incomplete line
  expect_message(expect_error(predict(fit, in_blocks(d, fails = 3), file = file), class = "pfdtc_error_source"),
                 "268", class = "pfdtc_message_kept")
  unlink(file)
  predicted <- new.env()
  predicted$rows <- 0
  counting <- in_blocks(d, c(250, 150))
  with_replaced(list(as_table = function(p) {
    predicted$rows <- predicted$rows + length(p)
    data.frame(fit = unname(p))
  }), predict(fit, counting, file = file))
  expect_equal(predicted$rows, 400 - 268)
  expect_equal(read.csv(file)$fit, unname(predict(fit, d)), tolerance = 1e-12)
  expect_length(list.files(dirname(file), paste0(basename(file), ".*part")), 0)
  # An interrupt has the same effect. Another call starts anew. A file without a complete line is removed.
  at <- 0
  stops <- rows_blocks(function() at <<- 0, function() if ((at <<- at + 1) == 1) d[1:9, ] else interrupt_now(),
                       names(d))
  expect_message(tryCatch(predict(fit, stops, file = file), interrupt = function(i) NULL), "\\b9\\b",
                 class = "pfdtc_message_kept")
  predict(fit, in_blocks(d), se.fit = TRUE, file = file)
  expect_equal(nrow(read.csv(file)), 400)
  expect_no_message(expect_error(predict(fit, in_blocks(d, fails = 2), file = file, na.action = na.omit)))
  expect_length(list.files(dirname(file), paste0(basename(file), ".*part")), 1)
  unlink(list.files(dirname(file), paste0(basename(file), ".*part"), full.names = TRUE))
  expect_error(predict(fit, d, file = file), class = "pfdtc_error_input", "file")
  expect_error(predict(fit, source, full_cov = TRUE), class = "pfdtc_error_input", "full_cov")
  expect_error(predict(fit, source, file = file.path(file, "x")), class = "pfdtc_error_input", "file")
})

test_that("a fit of a source with neighbours keeps some rows, and its points use FITC's sums over all rows", {
  d <- mixed_rows()
  whole <- fixed_fit(d, neighbours = 6)
  part <- fixed_fit(in_blocks(d), neighbours = 6) # the sample has all rows
  expect_equal(part$nobs, whole$nobs)
  expect_equal(part$signature, whole$signature, tolerance = 1e-10)
  expect_output(print(part), "229")
  # The order of rows is random, but has no effect if all rows are neighbours.
  expect_equal(predict(fixed_fit(in_blocks(d), neighbours = 300), d[1:5, ], se.fit = TRUE),
               predict(fixed_fit(d, neighbours = 300), d[1:5, ], se.fit = TRUE), tolerance = 1e-7)
  # With fewer neighbours, compare with dense algebra: FITC's posterior on the points, and u and r of the kept rows.
  old <- options(pfdtc.sample = 50)
  on.exit(options(old), add = TRUE)
  some <- fixed_fit(in_blocks(d), neighbours = 7)
  expect_lte(nrow(some$near$rows$x), 50) # equal rows are merged
  fitc <- fixed_fit(d, method = gp_fitc)
  model <- model_of(fitc)
  expect_equal(some$near$beta, fitc$factors$beta, tolerance = 1e-8)
  expect_equal(some$evidence, fitc$evidence, tolerance = 1e-8)
  expect_equal(some$signature, whole$signature, tolerance = 1e-10)
  x <- new_inputs(some, d[3, ])$x
  near <- some$near$rows
  k <- function(a, b) native_kernel_matrix(model$kernel, a, b)
  S <- native_neighbours(model$kernel, near$x, 7L, query = x)[, 1]
  x_S <- near$x[S, ]
  L <- t(chol(k(fitc$inducing, fitc$inducing) +
                diag(some$jitter * kernel_diagonal(model$kernel, fitc$inducing[1, , drop = FALSE]), 20)))
  a <- forwardsolve(L, k(fitc$inducing, x))
  A <- forwardsolve(L, k(fitc$inducing, x_S))
  u <- solve(k(x_S, x_S) - crossprod(A) + diag(model$noise / near$weights[S]), k(x_S, x) - crossprod(A, a))
  r <- a - A %*% u
  mean <- sum(u * near$y[S]) + sum(r * fitc$factors$beta)
  far <- model$noise * sum(forwardsolve(fitc$factors$C, r)^2)
  left <- drop(k(x, x)) - sum(a^2) - sum(u * (k(x_S, x) - crossprod(A, a)))
  p <- predict(some, d[3, ], se.fit = TRUE)
  expect_equal(unname(p$fit), some$center + some$scale * mean + d$o[3], tolerance = 1e-7)
  expect_equal(unname(p$se.fit), some$scale * sqrt(far + left), tolerance = 1e-6)
  # A path whose normal numbers are all zero is the mean.
  expect_equal(drop(draw_paths(some, x, 1L, function(n, nsim) matrix(0, n, nsim))) + d$o[3], unname(p$fit))
  path <- tempfile(fileext = ".rds")
  on.exit(unlink(path), add = TRUE)
  saveRDS(some, path)
  expect_equal(predict(readRDS(path), d[1:9, ]), predict(some, d[1:9, ]))
  for (call in list(quote(certify(some, d[1:3, ])), quote(drop_rows(some, d[1:9, ])), quote(evidence_bounds(some)),
                    quote(residuals(some)), quote(predict(some)))) {
    expect_error(eval(call), class = "pfdtc_error_input")
  }
})

test_that("if rows are many a sample is used, and print() says how many", {
  data <- list(x = matrix(0, 25000, 1), y = numeric(25000), weights = NULL, n = 25000, scale = 1)
  expect_equal(optimise_rows(data, NULL, 10)$n, 20000)
  expect_identical(optimise_rows(data, NULL, 250), data) # 100 rows for each point
  expect_equal(optimise_rows(data, 9, 250)$n, 9)
  expect_null(fit_fields[["Rows used"]](list(nobs = 10)))
  used <- fit_fields[["Rows used"]](list(nobs = 1e6, looked_at = c(learn = 8000, among = 50000, points = 20000)))
  expect_match(used, "8,000.*50,000.*20,000 of 1,000,000 rows")
})

test_that("sums of very many rows are sums of those of their parts, and automatic row names are not kept", {
  n <- many_rows + 3
  d <- data.frame(y = rep(c(1, 2, 4), length.out = n), a = seq_len(n) / n)
  data <- data_from_formula(quote(f(formula = y ~ a, data = d)), environment())
  expect_null(names(data$response))
  whole <- signature_of(signature_sums(data), data$center)
  expect_equal(data_signature(data), whole, tolerance = 1e-12)
  d$a[n] <- NA # na.omit drops this row
  expect_equal(data_from_formula(quote(f(formula = y ~ a, data = d)), environment())$n, n - 1)
})

test_that("points of a source are moved on all rows, as in memory, if optimise_rows is above its sample", {
  skip_on_cran()
  d <- mixed_rows(300, seed = 9)[c("y", "a", "b", "w")]
  d <- d[complete.cases(d), ]
  d <- d[!duplicated(d), ]
  moved <- function(data, method = pfdtc, hyper = "fixed", aux = NULL, inducing = cbind(seq(0, 1, 0.2), -2:3), ...) {
    set.seed(2)
    args <- list(y ~ a + b, data, weights = quote(w), kernel = kernel_matern(5 / 2, c(0.3, 1), 1), noise = 0.1,
                 hyper = hyper, inducing = inducing, control = list(maxit = 4, optimise_rows = Inf), ...)
    if (!is.null(aux)) args$aux <- aux
    suppressWarnings(do.call(method, args), classes = "pfdtc_warning_convergence")
  }
  old <- options(pfdtc.sample = 80)
  on.exit(options(old))
  for (case in list(list(), list(aux = aux_white(0.5)), list(method = gp_vfe))) {
    whole <- do.call(moved, c(list(d), case))
    passes <- new.env()
    by_passes <- do.call(moved, c(list(in_blocks(d, c(50, 0, 1, nrow(d) - 51), passes = passes)), case))
    # The sums are in another order, and a few steps of the optimiser enlarge the differences.
    expect_equal(by_passes$trace$objective, whole$trace$objective, tolerance = 1e-6)
    expect_equal(by_passes$inducing, whole$inducing, tolerance = 1e-4)
    expect_equal(coef(by_passes), coef(whole), tolerance = 1e-5)
    expect_equal(by_passes$factors$G, whole$factors$G, tolerance = 1e-4)
    expect_gt(passes$n, 2 + 2 * nrow(by_passes$trace))
    expect_equal(by_passes$source$passes, passes$n)
  }
  # Compare the derivatives in the hyperparameters too.
  call <- quote(f(formula = y ~ a + b, weights = w))
  part <- data_from_source(in_blocks(d), call, environment(), TRUE, TRUE, 80)
  data <- data_from_formula(quote(f(formula = y ~ a + b, data = d, weights = w)), environment())
  model <- model_of(whole)
  now <- objective_of(list(by_passes = part$whole), NULL, whole$inducing, model, 1e-9, pfdtc_control(), NULL)
  there <- objective_of(data, NULL, whole$inducing, model, 1e-9, pfdtc_control(), NULL)
  expect_equal(now[c("value", "gradient", "theta", "noise")], there[c("value", "gradient", "theta", "noise")],
               tolerance = 1e-8)
  expect_gt(abs(there$noise), 1e-3)
  some <- pfdtc(y ~ a, in_blocks(d), kernel = kernel_se(1, 1), noise = 1, hyper = "fixed", m = 3,
                control = list(maxit = 2))
  expect_output(print(some), "80")
  expect_error(moved(in_blocks(d), aux = aux_subset(20)), "optimise_rows", class = "pfdtc_error_input")
})

test_that("a source that fails while points are moved has an error, which holds the fit with the best points", {
  d <- mixed_rows(300, seed = 9)[c("y", "a", "b")]
  d <- d[complete.cases(d), ]
  old <- options(pfdtc.sample = 80)
  on.exit(options(old))
  for (failing_pass in c(2, 9)) {
    source <- in_blocks(d, rep(ceiling(nrow(d) / 3), 3), fails = 2, failing_pass = failing_pass)
    e <- expect_error(pfdtc(y ~ a + b, source, kernel = kernel_matern(5 / 2, c(0.3, 1), 1), noise = 0.1,
                            hyper = "fixed", inducing = cbind(seq(0, 1, 0.2), -2:3), aux = aux_white(0.5),
                            control = list(maxit = 4, optimise_rows = 1e6)),
                      "the disk is gone", class = "pfdtc_error_source")
    expect_match(conditionMessage(e), "`fit`.*80")
    expect_false(anyNA(predict(e$fit, d[1:3, ])))
    expect_equal(max(abs(e$fit$inducing - cbind(seq(0, 1, 0.2), -2:3))) > 1e-3, failing_pass == 9)
  }
})

test_that("a source of few rows has the exact fit of a data frame of them, and its fit keeps them", {
  d <- mixed_rows()
  open_fit <- function(data, ...) {
    pfdtc(y ~ a + b + f + offset(o), data, weights = w, subset = b < 2, kernel = kernel_matern(3 / 2, rep(1, 6), 1),
          noise = 0.04, hyper = "fixed", ...)
  }
  passes <- new.env()
  few <- open_fit(in_blocks(d, passes = passes))
  whole <- open_fit(d)
  expect_equal(few$posterior, "exact")
  expect_equal(passes$n, 2)
  same <- c("evidence", "center", "scale", "sd_y", "nobs", "signature", "factors")
  expect_equal(few[same], whole[same], tolerance = 1e-12)
  same <- c("x", "y", "weights", "group", "response", "offset", "prior_weights", "x_zero")
  expect_equal(few$data[same], whole$data[same], tolerance = 1e-12)
  expect_equal(unname(fitted(few)), unname(fitted(whole)))
  expect_equal(unname(residuals(few)), unname(residuals(whole)))
  expect_output(print(few), "read 2 times")
  expect_s3_class(certify(few, d[1:3, ]), "pfdtc_certificate")
  expect_equal(nobs(add_rows(few, d[1:9, ])), nobs(add_rows(whole, d[1:9, ])))
  expect_null(open_fit(in_blocks(d), keep_data = FALSE)$data)
  d <- d[c("y", "a")]
  set.seed(1)
  learned <- pfdtc(y ~ a, in_blocks(d), kernel = kernel_se())
  set.seed(1)
  expect_equal(coef(learned), coef(pfdtc(y ~ a, d, kernel = kernel_se())), tolerance = 1e-12)
})

test_that("a source can have a linear mean, in units of the sample, but no family", {
  d <- mixed_rows()[1:99, c("y", "a", "b")]
  d <- d[complete.cases(d), ]
  d$y <- d$y + 10 * d$b
  of <- function(data) {
    pfdtc(y ~ a + b, data, mean = ~ b, kernel = kernel_se(c(0.3, 1), 1), noise = 0.1, hyper = "fixed", m = 30,
          neighbours = 0, inducing = as.matrix(d[seq(1, 60, 2), c("a", "b")]), control = list(maxit = 0))
  }
  new <- data.frame(a = 0.5, b = c(-2, 3, 6))
  expect_equal(predict(of(in_blocks(d)), new, se.fit = TRUE), predict(of(d), new, se.fit = TRUE), tolerance = 1e-8)
  old <- options(pfdtc.sample = 40)
  on.exit(options(old))
  # The mean's centre and unit come from 40 rows, so its vague prior differs.
  expect_equal(predict(of(in_blocks(d)), new), predict(of(d), new), tolerance = 1e-2)
  expect_gt(diff(predict(of(in_blocks(d)), new))[2], 20) # the slope is 10
  expect_error(pfdtc(I(y > 5) ~ a, in_blocks(d), family = binomial()), "`family`", class = "pfdtc_error_input")
})
