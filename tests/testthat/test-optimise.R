# Defines problems with known minima, list(start, evaluate) as for minimise().

smooth <- function(start, value, gradient) {
  list(start = start, evaluate = function(par) list(value = value(par), gradient = gradient(par)))
}

rosenbrock <- function(d) {
  i <- seq_len(d - 1)
  smooth(rep_len(c(-1.2, 1), d),
         function(p) sum(100 * (p[i + 1] - p[i]^2)^2 + (1 - p[i])^2),
         function(p) {
           a <- 200 * (p[i + 1] - p[i]^2)
           c(-2 * a * p[i] - 2 * (1 - p[i]), 0) + c(0, a)
         })
}

# Returns the problem sum h (p - 2)^2 / 2, whose condition number is max(h) / min(h).
quadratic <- function(h) {
  smooth(rep(1, length(h)), function(p) sum(h * (p - 2)^2) / 2, function(p) h * (p - 2))
}

# Returns the problem with an evaluation that fails where outside(par) is TRUE.
only_inside <- function(problem, outside, failed = list(value = Inf, reason = "outside")) {
  list(start = problem$start,
       evaluate = function(par) if (outside(par)) failed else problem$evaluate(par))
}

by_optim <- function(problem, method, control) {
  stats::optim(problem$start, function(p) problem$evaluate(p)$value, function(p) problem$evaluate(p)$gradient,
               method = method, control = control)
}

test_that("smooth functions end at optim()'s minimum, with about as many evaluations as its L-BFGS-B", {
  problems <- c(lapply(c(2, 5, 20), rosenbrock), lapply(10^c(0, 2, 4, 6), function(k) {
    quadratic(exp(seq(0, log(k), length.out = 10)))
  }))
  for (p in quick(problems)) {
    found <- minimise(p, maxit = 3000, reltol = 0)
    bfgs <- by_optim(p, "BFGS", list(maxit = 3000, reltol = 1e-15))
    lbfgsb <- by_optim(p, "L-BFGS-B", list(maxit = 3000, factr = 0, lmm = 10))
    scale <- p$evaluate(p$start)$value
    expect_lt(found$value, min(bfgs$value, lbfgsb$value) + 1e-12 * scale)
    expect_equal(found$par, lbfgsb$par, tolerance = 1e-6)
    expect_identical(found$convergence, 0L)
    expect_lt(found$evaluations, 2 * lbfgsb$counts[["function"]] + 40)
  }
})

test_that("a logistic regression has the coefficients of glm()", {
  x <- cbind(1, as.matrix(mtcars[c("wt", "hp")]))
  y <- mtcars$am
  p <- smooth(numeric(3), function(b) sum(log1p(exp(x %*% b)) - y * (x %*% b)),
              function(b) drop(crossprod(x, stats::plogis(x %*% b) - y)))
  found <- minimise(p, maxit = 2000, reltol = 1e-14)
  expect_equal(unname(found$par), unname(stats::coef(stats::glm(am ~ wt + hp, binomial, mtcars))), tolerance = 1e-5)
})

test_that("a failed evaluation shortens the step, and the search ends at the minimum inside the valid region", {
  bowl <- quadratic(c(200, 2))
  log_barrier <- smooth(c(9, 0.01), function(p) sum(p - log(p)), function(p) 1 - 1 / p)
  failures <- list(
    list(value = Inf, reason = "outside"), list(value = NaN, gradient = c(NaN, NaN)), list(value = NA_real_),
    list(value = 1, gradient = c(NA, 1)), list(value = -Inf, gradient = c(0, 0)))
  for (failed in failures) {
    for (edge in c(3, 2.1, 2.001)) {
      found <- minimise(only_inside(bowl, function(p) p[1] > edge, failed))
      expect_equal(found$par, c(2, 2), tolerance = 1e-4)
      expect_identical(found$convergence, 0L)
    }
    found <- minimise(only_inside(log_barrier, function(p) any(p <= 0), failed))
    expect_equal(found$par, c(1, 1), tolerance = 1e-4)
    expect_true(all(is.finite(found$par)))
  }
  # The first step would overshoot by 8 orders of magnitude.
  found <- minimise(only_inside(log_barrier, function(p) any(p <= 0)), first_step = 1e8)
  expect_equal(found$par, c(1, 1), tolerance = 1e-4)
  expect_gt(sum(is.na(found$trace$objective)), 0)
})

test_that("with islands of failed evaluations the search ends at the minimum, or says that it did not converge", {
  with_seed(1, for (i in quick(1:60)) {
    d <- sample(2:5, 1)
    h <- crossprod(matrix(rnorm(d * d), d)) + diag(d) / 10
    start <- 2 * rnorm(d)
    island <- 2 * rnorm(d)
    radius <- 0.9 * min(sqrt(sum(island^2)), sqrt(sum((start - island)^2)))
    p <- smooth(start, function(p) sum(p * (h %*% p)) / 2, function(p) drop(h %*% p))
    found <- minimise(only_inside(p, function(p) sum((p - island)^2) < radius^2), maxit = 500)
    there <- found$value < 1e-6 * p$evaluate(start)$value
    expect_true(there || found$convergence == 51L, info = i)
    if (!there) expect_match(found$message, "outside")
  })
})

test_that("a minimum at the edge of the valid region is approached, and reported as an edge", {
  falling <- smooth(c(0, 0), function(p) p[2]^2 - p[1], function(p) c(-1, 2 * p[2]))
  found <- minimise(only_inside(falling, function(p) p[1] > 1))
  expect_lt(found$par[1], 1 + 1e-12)
  expect_identical(found$convergence, 51L)
  expect_gt(found$par[1], 0.3)
})

test_that("a start that cannot be evaluated is reported, and gives an error in a fit", {
  p <- list(start = c(1, 2), evaluate = function(par) list(value = Inf, reason = "the matrix is singular"))
  found <- minimise(p)
  expect_identical(found$convergence, 3L)
  expect_identical(found$message, "the matrix is singular")
  expect_identical(found$par, c(1, 2))
  expect_identical(found$evaluations, 1L)
  expect_error(run_minimise(p, c(pfdtc_control(progress = FALSE), until = Inf), "inducing points", no_state(), ""),
               "inducing points.*the matrix is singular", class = "pfdtc_error_numerical")
  expect_match(minimise(list(start = 1, evaluate = function(par) list(value = NaN, gradient = NaN)))$message,
               "not a number")
})

test_that("minimise() returns at once without parameters, and at a minimum or a kink", {
  found <- minimise(list(start = numeric(), evaluate = function(par) list(value = 3, gradient = numeric())))
  expect_identical(found[c("par", "value", "convergence", "evaluations")],
                   list(par = numeric(), value = 3, convergence = 0L, evaluations = 1L))
  found <- minimise(smooth(2, function(p) 5, function(p) 0))
  expect_identical(found[c("par", "value", "convergence", "iterations")],
                   list(par = 2, value = 5, convergence = 0L, iterations = 0L))
  # At a kink the search ends, because nothing lower can be found.
  found <- minimise(smooth(1.3, abs, sign))
  expect_equal(found$value, 0, tolerance = 1e-8)
  expect_identical(found$convergence, 0L)
})

test_that("the trace has a row for each evaluation, and the best evaluation is returned", {
  p <- only_inside(rosenbrock(4), function(p) p[1] > 1.05)
  seen <- numeric()
  recorded <- list(start = p$start, evaluate = function(par) {
    point <- p$evaluate(par)
    seen[length(seen) + 1L] <<- point$value
    point
  })
  found <- minimise(recorded, maxit = 60)
  expect_named(found$trace, c("evaluation", "objective", "seconds"))
  expect_identical(nrow(found$trace), found$evaluations)
  expect_identical(found$trace$evaluation, seq_along(seen))
  expect_identical(found$trace$objective, ifelse(is.finite(seen), seen, NA))
  expect_false(is.unsorted(found$trace$seconds))
  expect_identical(found$value, min(seen))
  expect_identical(p$evaluate(found$par)$value, found$value)
})

test_that("reltol is relative to the decrease since the start, and must hold in three consecutive iterations", {
  for (reltol in c(1e-3, 1e-6)) {
    for (p in list(rosenbrock(6), quadratic(10^(0:5)))) {
      found <- minimise(p, maxit = 1000, reltol = reltol, keep = 1L)
      value <- c(found$trace$objective[1], vapply(found$kept, function(k) p$evaluate(k$par)$value, 0))
      small <- -diff(value) <= reltol * (value[1] - value[-length(value)])
      last <- length(small)
      expect_true(all(small[last - 0:2]))
      runs <- rle(small[-last])
      expect_lt(max(0, runs$lengths[runs$values]), 3)
      expect_identical(found$message, "converged")
      # Adding a constant to the objective has no effect.
      shifted <- smooth(p$start, function(x) p$evaluate(x)$value + 2^20, function(x) p$evaluate(x)$gradient)
      expect_equal(minimise(shifted, maxit = 1000, reltol = reltol)$par, found$par, tolerance = 1e-3)
    }
  }
})

test_that("maxit and max_seconds end a search with the best so far", {
  p <- rosenbrock(10)
  none <- minimise(p, maxit = 0)
  expect_identical(none[c("par", "convergence", "evaluations")],
                   list(par = p$start, convergence = 1L, evaluations = 1L))
  few <- minimise(p, maxit = 7, keep = 2L)
  expect_identical(few[c("convergence", "iterations")], list(convergence = 1L, iterations = 7L))
  expect_match(few$message, "maxit")
  expect_length(few$kept, 3)
  expect_lt(few$value, p$evaluate(p$start)$value)
  for (k in few$kept) expect_equal(p$evaluate(k$par)$value, few$trace$objective[k$evaluation])

  slow <- list(start = p$start, evaluate = function(par) {
    Sys.sleep(0.02)
    p$evaluate(par)
  })
  soon <- minimise(slow, max_seconds = 0.1, maxit = 1e5, reltol = 0)
  expect_identical(soon$convergence, 2L)
  expect_match(soon$message, "max_seconds")
  expect_identical(soon$value, min(soon$trace$objective, na.rm = TRUE))
  expect_lt(soon$value, p$evaluate(p$start)$value)
})

test_that("R's time limits end a search with the best so far", {
  p <- rosenbrock(10)
  slow <- list(start = p$start, evaluate = function(par) {
    Sys.sleep(0.02)
    p$evaluate(par)
  })
  on.exit(setTimeLimit())
  setTimeLimit(elapsed = 0.15, transient = TRUE)
  found <- minimise(slow, maxit = 1e5, reltol = 0)
  setTimeLimit()
  expect_identical(found$convergence, 2L)
  expect_match(found$message, "time limit")
  expect_identical(found$stopped, stopped_by_time)
  expect_gt(found$evaluations, 1)
  expect_identical(found$value, min(found$trace$objective, na.rm = TRUE))
})

test_that("an interrupt ends a search with the best so far; other errors pass", {
  p <- rosenbrock(4)
  count <- 0
  stopping <- function(what) {
    count <<- 0
    list(start = p$start, evaluate = function(par) {
      count <<- count + 1
      if (count == 12) what()
      p$evaluate(par)
    })
  }
  interrupt <- function() {
    signalCondition(interrupt_signal)
  }
  found <- minimise(stopping(interrupt))
  expect_identical(found$convergence, 52L)
  expect_identical(found$convergence, 52L)
  expect_identical(found$evaluations, 11L)
  expect_identical(nrow(found$trace), 11L)
  expect_identical(found$value, min(found$trace$objective))
  expect_identical(p$evaluate(found$par)$value, found$value)
  expect_error(minimise(stopping(function() stop("out of paper"))), "out of paper")
  # Interrupt before the first value.
  none <- minimise(list(start = 1:2 / 2, evaluate = function(par) interrupt()))
  expect_identical(none[c("par", "value", "convergence", "evaluations")],
                   list(par = c(0.5, 1), value = NA_real_, convergence = 52L, evaluations = 0L))
})

test_that("the best so far is not the last so far", {
  calls <- 0
  # The first step is too long, and the search ends before the next.
  too_long <- list(start = 1, evaluate = function(par) {
    calls <<- calls + 1
    if (calls == 3) stop(interrupt_signal)
    list(value = 1e4 * (par - 0.99)^2, gradient = 2e4 * (par - 0.99))
  })
  result <- minimise(too_long)
  expect_identical(result$evaluations, 2L)
  expect_identical(result$par, 1)
  expect_identical(result$value, min(result$trace$objective))
})

test_that("a second search gives the same bits, draws no random numbers and leaves the problem as it was", {
  p <- rosenbrock(5)
  start <- p$start + 0
  set.seed(1)
  before <- .Random.seed
  first <- minimise(p, keep = 3L)
  second <- minimise(p, keep = 3L)
  first$trace$seconds <- second$trace$seconds <- NULL
  expect_identical(second, first)
  expect_identical(.Random.seed, before)
  expect_identical(p$start, start)
})

test_that("a search that starts at the minimum ends there soon, rounding or not", {
  for (p in c(lapply(c(2, 6), rosenbrock), list(quadratic(10^(0:5))))) {
    shifted <- smooth(p$start, function(x) p$evaluate(x)$value + 36.6, function(x) p$evaluate(x)$gradient)
    shifted$start <- minimise(shifted, maxit = 2000, reltol = 1e-12)$par
    again <- minimise(shifted)
    expect_equal(again$par, shifted$start, tolerance = 1e-3)
    expect_lt(again$evaluations, 40)
    expect_identical(again$convergence, 0L)
  }
})

test_that("units of a common factor in objective or parameters do not matter", {
  p <- rosenbrock(4)
  found <- minimise(p)
  for (unit in c(2^-40, 2^40)) {
    other <- smooth(p$start, function(x) unit * p$evaluate(x)$value, function(x) unit * p$evaluate(x)$gradient)
    expect_identical(minimise(other)$par, found$par)
    other <- smooth(p$start * unit, function(x) p$evaluate(x / unit)$value,
                    function(x) p$evaluate(x / unit)$gradient / unit)
    expect_identical(minimise(other, first_step = 0.1 * unit)$par / unit, found$par)
  }
})

test_that("progress is updated at every evaluation, and shown only after two seconds", {
  calls <- list()
  found <- minimise(rosenbrock(3), maxit = 5, progress = function(evaluation, iteration, best) {
    calls[[length(calls) + 1L]] <<- c(evaluation, iteration, best)
  })
  expect_length(calls, found$evaluations)
  expect_identical(calls[[found$evaluations]][c(1, 3)], c(found$evaluations, found$value))

  # Test the progress line of run_minimise().
  shown <- function(e) paste(utils::capture.output(e, type = "message"), collapse = "")
  search <- function() {
    control <- c(pfdtc_control(maxit = 200, progress = TRUE), until = Inf)
    run_minimise(rosenbrock(3), control, "inducing points", no_state(), "points")
  }
  expect_identical(shown(search()), "")
  line <- stage_line("inducing points", TRUE, after = 2, every = 0.5)
  expect_identical(shown(line("iteration 1")), "")
  environment(line)$started <- environment(line)$started - 65
  expect_match(shown(line("iteration 3, objective 1.5")), "inducing points: iteration 3, objective 1.5, 65 s")
  expect_identical(shown(line("iteration 4")), "")
  # The line is cleared at the end of the function that called stage_line(), if it was shown.
  ended <- function(...) {
    line <- stage_line("inducing points", TRUE, ...)
    line("iteration 1")
  }
  expect_identical(shown(ended(after = 2)), "")
  expect_match(shown(ended()), "^\rinducing points: iteration 1, 0 s *\r *\r$")
  late <- stage_line
  with_replaced(list(stage_line = function(...) late("inducing points", TRUE)), {
    expect_match(shown(search()), "inducing points: iteration [0-9]+, objective [-0-9.e]+, 0 s")
  })
})

# ---- stages that a time limit ends (test-interrupt.R tests interrupts) -----------------------------------------------

test_that("R's time limit ends a fit as a whole, with the best so far", {
  data <- smooth_data(1000)                      # its pilot takes some tenths of a second at least
  limited <- function() {
    on.exit(setTimeLimit())
    setTimeLimit(elapsed = 0.1, transient = TRUE)
    suppressWarnings(fit_learned(data, maxit = 200))
  }
  fit <- limited()
  expect_identical(fit$pilot$convergence, 2L)
  expect_match(fit$pilot$message, "time limit")
  expect_true(all(is.finite(predict(fit, data$new))))
  # R forgets a limit that was reached, so the fit must not continue as if there had been none.
  expect_identical(fit$convergence, 2L)
  expect_identical(names(fit$evaluations), "pilot")
})

test_that("steps of an earlier search make the next one shorter, and promised gains end it", {
  h <- c(100, 10, 1, 0.1)
  first <- minimise(quadratic(h), maxit = 100, reltol = 1e-14)
  other <- quadratic(h)
  other$start <- c(1.2, 0.7, 1.1, 0.4)
  plain <- minimise(other, maxit = 100, reltol = 1e-14)
  again <- minimise(other, maxit = 100, reltol = 1e-14, pairs = first$pairs)
  expect_equal(again$par, rep(2, 4), tolerance = 1e-6)
  expect_lt(again$evaluations, plain$evaluations)
  for (least in c(1e-1, 1e-3)) {
    ended <- minimise(other, maxit = 100, reltol = 1e-14, pairs = first$pairs, least = least)
    expect_lt(ended$value, 2 * least) # the minimum is 0; for a quadratic the predicted gain is exact
    expect_lt(ended$evaluations, again$evaluations)
  }
  # At its minimum, a search with pairs needs one evaluation; the first search never ends before its first step.
  there <- replace(other, "start", list(first$par))
  expect_identical(minimise(there, pairs = first$pairs, least = 1e-6)$evaluations, 1L)
  expect_gt(minimise(other, least = 1e6)$evaluations, 1L)
})

test_that("R's time limit ends learning by the evidence, wherever it comes, with the best so far", {
  data <- smooth_data(400)
  whole <- system.time(fit_learned(data, hyper = "evidence", m = NULL, control = list(restarts = 3)))[["elapsed"]]
  for (share in c(0.02, 0.1, 0.4)) {
    for (kernel in list(NULL, kernel_matern(5 / 2))) {
      limited <- function() {
        on.exit(setTimeLimit())
        setTimeLimit(elapsed = max(0.05, share * whole), transient = TRUE) # the rows are read before
        fit_learned(data, hyper = "evidence", m = NULL, kernel = kernel, control = list(restarts = 3))
      }
      warned <- FALSE
      fit <- withCallingHandlers(limited(), pfdtc_warning_convergence = function(w) {
        warned <<- TRUE
        invokeRestart("muffleWarning")
      })
      # On a faster machine later limits may not be reached.
      if (is.null(kernel) && share < 0.2) expect_true(warned, info = share)
      expect_identical(fit$convergence, if (warned) 2L else 0L)
      expect_identical(fit$posterior, "exact")
      # If the limit is not reached, the choice of a kernel is complete and may be a sum.
      if (warned || !is.null(kernel)) expect_true(fit$kernel$profile %in% c(profiles, kernel$profile))
      if (!is.null(kernel)) expect_identical(fit$kernel$profile, "matern52")
      p <- predict(fit, data$new, se.fit = TRUE)
      expect_true(all(is.finite(unlist(p))) && all(p$se.fit > 0))
      expect_output(print(summary(fit)), if (warned) "ended|starts" else "starts")
    }
  }
})
