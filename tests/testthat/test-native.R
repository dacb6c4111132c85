test_that("block, threads and memory come from a control, or from options", {
  plain <- with_options(list(pfdtc.threads = 2L, pfdtc.memory = 1e6, pfdtc.block = NULL), engine_control(2000))
  expect_identical(plain[c("block", "threads", "memory")], list(block = 512L, threads = 2L, memory = 1e6))
  chosen <- engine_control(2000, pfdtc_control(block = 100, threads = 2, memory = 7))
  expect_identical(chosen[c("block", "threads", "memory")], list(block = 100L, threads = 2L, memory = 7))
  # A second thread needs some hundred rows, and a block has at most as many rows as the data.
  expect_identical(engine_control(300, pfdtc_control(threads = 2))$threads, 1L)
  expect_identical(engine_control(600, pfdtc_control(threads = 8))[c("block", "threads")],
                   list(block = 300L, threads = 2L))
  expect_identical(engine_control(1, pfdtc_control(threads = 2))[c("block", "threads")], list(block = 1L, threads = 1L))
  expect_identical(engine_control(10, pfdtc_control(block = 1e6))$block, 10L)
  for (bad in list(list(pfdtc.threads = 0), list(pfdtc.memory = -1), list(pfdtc.block = "a"))) {
    expect_input_error(with_options(bad, engine_control(10)), names(bad))
  }
})

test_that("the kept kernels and options are those that are asked for", {
  kernel <- place_kernel(kernel_se(lengthscale = 1, variance = 2) + kernel_linear(variance = 3), matrix(1:4, 4))
  kernels <- lapply(1:6, function(v) scale_kernel(kernel, v))
  for (k in kernels[c(1:6, 6, 1, 4, 5, 4)]) {
    expect_identical(as_kernel(compile_kernel(k)), k)
    again <- compile_kernel(k)
    engine$compiled <- engine$compiled[-1L]
    expect_identical(compile_kernel(k), again)
  }
  expect_lte(length(engine$compiled), 4L)
  changed <- set_values(kernel, kernel_values(kernel) + 1)
  expect_identical(kernel_values(kernel), c(1, 2, 3))
  expect_identical(kernel_values(as_kernel(changed)), c(2, 3, 4))
  for (threads in c(1L, 2L, 1L)) {
    expect_identical(with_options(list(pfdtc.threads = threads), engine_control(2000))$threads, threads)
  }
})

test_that("every status has its own sentence", {
  sentences <- vapply(1:4, status_sentence, "")
  expect_true(all(nchar(sentences) > 15))
  expect_identical(anyDuplicated(sentences), 0L)
  expect_false(any(grepl("[.]$", sentences)))
  ok <- list(status = 0L, value = 3)
  expect_identical(stop_on_status(ok, "Nothing"), ok)
  expect_error(stop_on_status(list(status = 1L), "The posterior"),
               paste0("The posterior failed: ", status_sentence(1L)), fixed = TRUE, class = "pfdtc_error_numerical")
  failed <- as_value(list(status = 1L, value = 5))
  expect_identical(failed, list(value = Inf, reason = status_sentence(1L), status = 1L))
})

test_that("a factorisation that fails is a value for the optimiser and a condition for users", {
  z <- matrix(c(1, 1, 1, 1), 2)
  x <- matrix(1:8 / 8, 4)
  kernel <- complete_kernel(kernel_se(1, 1), x)
  result <- native_evaluate("vfe", NULL, z, list(x = x, y = 1:4 / 4), new_model(kernel, 0.1), 0)
  expect_identical(result$value, Inf)
  expect_match(result$reason, "not positive definite")
  expect_error(vfe_objective(z, x, 1:4, kernel, 0.1), class = "pfdtc_error_numerical")
  # The jitter is not raised beyond the given limit.
  at <- function(...) native_posterior(z, list(x = x, y = 1:4 / 4), new_model(kernel, 0.1), jitter = 0, ...)
  expect_error(at(most = 0), "posterior", class = "pfdtc_error_numerical")
  expect_gt(at()$jitter, 0)
})

test_that("the kernel goes to the C code with its parameters in one vector", {
  x <- matrix(0, 1, 3, dimnames = list(NULL, c("a", "b", "c")))
  kernel <- complete_kernel(kernel_matern(1 / 2, c(2, 3), 1, inputs = c("c", "a")), x)
  engine <- compile_kernel(kernel)$engine
  expect_identical(engine$factors[[1]][c("profile", "columns")],
                   list(profile = "matern12", columns = c(3L, 1L)))
  expect_identical(engine$terms, list(1L))
  expect_identical(engine$values, c(2, 3, 1))
})

test_that("reused scratch memory gives the same numbers", {
  p <- problem(n = 50, m = 6, seed = 4)
  model <- new_model(complete_kernel(package_kernel(p$kernel), p$x), p$noise)
  data <- list(x = p$x, y = p$y)
  aux <- package_nu(p, aux_sor(rows = p$rows))
  for (name in c("vfe", "pf")) {
    scratch <- new.env()
    value <- function(...) native_evaluate(name, if (name == "pf") aux, p$z, data, model, 1e-10, ...)
    plain <- value()
    for (i in 1:3) expect_identical(value(scratch = scratch), plain)
    scratch$room[] <- NaN
    expect_identical(value(scratch = scratch), plain)
    expect_false(all(is.nan(scratch$room)))
  }
})

test_that("forked processes can use a fit of a threaded parent, and fit anew", {
  skip_on_os("windows")
  skip_if_not_installed("parallel")
  p <- problem(n = 700, m = 5, seed = 2)
  fit_it <- function() {
    with_seed(3, pfdtc(p$x, p$y, kernel = kernel_se(c(0.9, 1.6), 1.7), noise = 0.3, hyper = "fixed", inducing = p$z,
                       aux = aux_sor(rows = 1:20), control = pfdtc_control(maxit = 2, threads = 2, progress = FALSE)))
  }
  fit <- fit_it()
  with_options(list(pfdtc.threads = 2L), {
    here <- predict(fit, p$x, se.fit = TRUE)
    there <- parallel::mclapply(1:2, function(i) predict(fit, p$x, se.fit = TRUE), mc.cores = 2)
  })
  for (one in there) expect_equal(one, here, tolerance = 1e-12)
  again <- parallel::mclapply(1:2, function(i) predict(fit_it(), p$x, se.fit = TRUE), mc.cores = 2)
  for (one in again) expect_equal(one, here, tolerance = 1e-9)
})

test_that("every C entry point refuses arguments that it would read out of bounds", {
  made <- door_examples()
  doors <- made$doors
  list2env(made[c("p", "good", "ec", "nu")], environment())
  refused <- function(name, args, what) {
    said <- tryCatch({ # expect_error() would take 40 times as long
      call_door(name, args)
      "no error"
    }, error = conditionMessage)
    expect_match(said, "internal: ", info = paste(name, what))
  }
  # Returns the path of each argument in `args`, or of its elements if it is rows, a model or a posterior.
  leaves <- function(args) {
    parts <- function(i) {
      parts <- names(args[[i]])
      if (!is.list(args[[i]]) || !any(c("kernel", "scale") %in% parts)) return(list(list(i)))
      lapply(parts, function(name) list(i, name))
    }
    unlist(lapply(seq_along(args), parts), recursive = FALSE)
  }
  get_leaf <- function(args, at) Reduce(`[[`, at, args)
  set_leaf <- function(args, at, value) {
    if (length(at) == 1L) return(replace(args, at[[1L]], list(value)))
    replace(args, at[[1L]], list(set_leaf(args[[at[[1L]]]], at[-1L], value)))
  }
  of_factor <- function(part, value) {
    good$factors[[1]][[part]] <- value
    good
  }
  spoil <- function(name, args) {
    for (at in leaves(args)) {
      leaf <- get_leaf(args, at)
      what <- paste(unlist(at), collapse = "$")
      if (is.matrix(leaf)) { # a column or a row too few
        any_width <- paste(name, what) %in% c("vecchia 4", "integrated 5", "softmax_at 3") # any number of columns
        refused(name, set_leaf(args, at, if (any_width) leaf[-1, , drop = FALSE] else leaf[, -1, drop = FALSE]), what)
        if (ncol(leaf) %in% dim(leaf)[1]) refused(name, set_leaf(args, at, leaf[-1, , drop = FALSE]), what)
      } else if (is.double(leaf) && length(leaf) > 1L) {
        refused(name, set_leaf(args, at, leaf[-1]), what)
      }
      if (!is.null(leaf)) refused(name, set_leaf(args, at, "text"), what)
      for (bad in if (identical(leaf, good)) list(c(1L, 3L), c(0L, 1L), c(1L, NA))) {
        refused(name, set_leaf(args, at, of_factor("columns", bad)), "kernel columns")
      }
      if (identical(leaf, good)) refused(name, set_leaf(args, at, replace(good, "values", list(1))), "lengthscales")
      for (bad in if (identical(leaf, good)) list("text", c(1, 0, 0), diag(30))) { # more columns than the rows have
        refused(name, set_leaf(args, at, replace(good, "rotation", list(bad))), "rotation")
      }
      for (bad in if (identical(leaf, good)) list("text", numeric(35), numeric(34 * 30))) {
        refused(name, set_leaf(args, at, replace(good, "warp", list(bad))), "warp")
      }
      bad_controls <- list(list(threads = 0L), list(block = -1L), list(memory = NaN), list(memory = -1))
      for (bad in if (identical(leaf, ec)) bad_controls) {
        refused(name, set_leaf(args, at, utils::modifyList(ec, bad)), names(bad))
      }
    }
  }
  for (i in seq_along(doors)) {
    expect_error(call_door(names(doors)[[i]], doors[[i]]), NA, info = names(doors)[[i]])
    spoil(names(doors)[[i]], doors[[i]])
  }
  set <- function(name, at, value) set_leaf(doors[[name]], as.list(at), value)
  refused("kriging", set("kriging", 6, c(0L, 4L)), "groups that do not cover the rows")
  refused("kriging", set("kriging", 6, c(0L, 0L, 6L)), "an empty group")
  refused("kriging", set("kriging", 7, c(3:8, 21L)), "near rows beyond the rows")
  refused("kriging", set("kriging", 8, matrix(c(1:5, 8L), 3)), "rows beyond the near ones")
  refused("kriging", set("kriging", 8, matrix(0:5, 3)), "rows from 0")
  refused("near", set("near", 4, 19:0), "ranks from 0")
  refused("near", set("near", 4, 1:19), "a rank too few")
  given <- near_given(nrow(p$new), nrow(p$z))
  functionals <- function(...) set("near_predict of functionals", 5, utils::modifyList(given, list(...)))
  refused("near_predict", functionals(rows = given$rows + 19L), "neighbours beyond the rows")
  refused("near_predict", functionals(rows = given$rows - 1L), "neighbours below 0")
  refused("near_predict", functionals(rows = given$rows[, -1]), "a functional without neighbours")
  refused("decorrelate", set("decorrelate", 3, matrix(21L, 2, 20)), "rows beyond the rows")
  refused("norms", set("norms", 3, 2:21), "an order beyond the rows")
  refused("norms", set("norms", 3, c(0L, 1:19)), "an order from 0")
  empty <- replace(set("norms", 2, engine_rows(list(x = p$x[0, ], y = numeric()))), 3, list(integer()))
  refused("norms", empty, "no rows")
  refused("select", set("select", 3, -1L), "a count below 0")
  expect_length(call_door("select", set("select", 2, p$x[0, ]))$pivots, 0L)
  refused("select_guided", list(t(p$x), diag(2), -1L, 0.1), "a count below 0")
  expect_length(call_door("select_guided", list(t(p$x[0, ]), diag(2), 2L, 0.1)), 0L)
  refused("row_features", list(p$x, -1L), "a count below 0")
  refused("lowrank_rows", set("lowrank_rows", 2, replace(nu, "p", list(2L))), "p")
  refused("lowrank_rows", set("lowrank_rows", 2, replace(nu, "W", list(nu$W[, 0]))), "no columns in W")
  for (bad in list(list(name = "elbo"), list(name = "pf"), list(share = "text"))) {
    refused("evaluate", set("evaluate", 1, utils::modifyList(engine_objective("vfe"), bad)), names(bad))
  }
  refused("evaluate", set("evaluate", list(3, "y"), NULL), "no response")
})

test_that("an optimised BLAS is used only for n x n matrices, and its settings are restored however the call ends", {
  old <- list(engine$optimised_blas, .Call(ffi_blas_threads, 0L))
  on.exit({
    engine$optimised_blas <- old[[1]]
    .Call(ffi_blas_threads, old[[2]])
  })
  p <- problem(n = 600, m = 12, seed = 6)
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  exact <- function(kernel) native_exact(p[c("x", "y")], new_model(kernel, p$noise), pfdtc_control(threads = 1))
  engine$optimised_blas <- FALSE
  by_engine <- exact(kernel)
  engine$optimised_blas <- TRUE
  .Call(ffi_blas_threads, 2L)
  threads <- .Call(ffi_blas_threads, 0L) # 0 if it is unknown
  lanes <- function() native_own_products(own_lanes)
  expect_equal(exact(kernel), by_engine, tolerance = 1e-9) # two orders of the same sums, condition 1e4
  expect_identical(c(lanes(), .Call(ffi_blas_threads, 0L)), c(own_lanes, threads))
  expect_error(exact(replace(kernel, "inputs", list(8:9))), "internal")
  expect_identical(c(lanes(), .Call(ffi_blas_threads, 0L)), c(own_lanes, threads))
  # R's time limit takes effect where an interrupt does: between the steps of the factorisation.
  big <- problem(n = 3000, m = 2, seed = 6)
  expect_error({
    setTimeLimit(elapsed = 0.05, transient = TRUE)
    native_exact(list(x = big$x, y = big$y), new_model(kernel, big$noise))
  }, "time limit")
  setTimeLimit()
  expect_identical(c(lanes(), .Call(ffi_blas_threads, 0L)), c(own_lanes, threads))
})

test_that("vectors of every width give the same numbers to rounding", {
  p <- problem(n = 300, m = 40, seed = 7)
  evaluate <- function(lanes) {
    before <- native_own_products(lanes)
    on.exit(native_own_products(before))
    vfe_objective(p$z, p$x, p$y, package_kernel(p$kernel), p$noise, jitter = 1e-6)
  }
  wanted <- evaluate(0L)
  # Sums have another order, so the tolerance is 1e-16 times the condition of k(Z, Z) + 1e-6, at most 1e8.
  for (lanes in c(1L, 2L, 4L, 8L)) expect_equal(evaluate(lanes), wanted, tolerance = 1e-8, info = lanes)
})

test_that("sums of parts of the rows add up to the posterior, value and gradient of all rows", {
  for (case in c("vfe", "white", "pf")) for (weighted in c(FALSE, TRUE)) {
    p <- problem("matern52", n = 60, m = 6, weighted = weighted, seed = 3)
    kernel <- complete_kernel(package_kernel(p$kernel), p$x)
    jitter <- 1e-9
    nu <- if (case != "vfe") package_nu(p, if (case == "white") aux_white(0.7) else aux_sor(rows = p$rows))
    whole <- native_evaluate(case, nu, p$z, p, new_model(kernel, p$noise), jitter, TRUE, NULL, NULL)
    nu$Wt <- NULL # is computed anew for each part
    parts <- lapply(list(1:7, 8:40, 41:60), function(i) {
      list(x = p$x[i, , drop = FALSE], y = p$y[i], weights = p$weights[i])
    })
    of <- function(f, part, ...) f(case, nu, p$z, part, new_model(kernel, p$noise), jitter, ...)
    sums <- Reduce(sums_merge, lapply(parts, function(part) of(native_sums, part)))
    value <- function(rss = NULL) {
      as_value(native(ffi_objective, engine_objective(case, nu), engine_points(p$z, new_model(kernel, p$noise), jitter),
                      sums, rss))
    }
    adjoint <- value()$adjoint
    slopes <- lapply(seq_along(parts), function(i) of(native_gradient, parts[[i]], adjoint, if (i == 2) sums$k_sum))
    add <- function(name) Reduce(`+`, lapply(slopes, `[[`, name))
    unit <- max(abs(whole$value), sum(p$y^2)) # rounding, of sums of positive terms
    expect_lt(abs(value(add("rss"))$value - whole$value), 1e-11 * unit, label = case)
    expect_lt(abs(value()$value - whole$value), 1e-8 * unit, label = case) # this noise costs about two digits
    expect_lt(max(abs(add("gradient") - whole$gradient)), 1e-9 * max(abs(whole$gradient)), label = case)
    expect_lt(max(abs(add("theta") - whole$theta)), 1e-9 * max(1, abs(whole$theta)), label = case)
    expect_lt(abs(value(add("rss"))$noise - whole$noise), 1e-9 * unit, label = case)
    post <- native_posterior(p$z, p, new_model(kernel, p$noise), jitter)
    got <- native(ffi_posterior_of_sums, engine_points(p$z, new_model(kernel, p$noise), jitter), sums)
    for (part in c("L", "C", "beta")) {
      expect_lt(max(abs(got[[part]] - post[[part]])), 1e-8 * max(abs(post[[part]])), label = part)
    }
    expect_equal(sums$n, 60)
    expect_equal(sums$log_weights, if (weighted) sum(log(p$weights)) else 0, tolerance = 1e-12)
  }
  pair <- list(G = diag(1), AKA = diag(1))
  expect_error(sums_merge(pair, pair), "pairs of rows")
})
