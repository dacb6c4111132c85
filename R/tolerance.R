# Fitting to an accuracy that the user names: as few inducing points as the certificate allows.
#
#   grow_reference()  a reference, doubled until what it leaves open at the training inputs is small beside tol
#   greedy_guide()    its first M points nest: the error of their posteriors, nothing optimised, over M
#   search_points()   points started greedily and optimised until certified, at an M that goes down (or up) by what
#                     the last ones predict; the smallest M that met tol is the fit
#
# Where the points would be too many and nothing was asked for that speaks of them, what tolerance_otherwise.R has does.
#
# The statistic: over the training inputs, the quantile `tol_quantile` (1: the maximum) of the certified error of the
# mean in sd(y), and that of |exact sd / sd - 1|. Both are to be at most tol.

fit_to_tolerance <- function(data, s, state) {
  started <- proc.time()[["elapsed"]]
  way <- other_way(data, s)
  asked <- s$neighbours
  s <- tolerance_settings(data, s)
  s$neighbours <- 0L
  s$worth <- if (way == "none") Inf else points_worth_it(nrow(data$x))
  few <- s
  few$m <- min(200L, s$m)
  done <- learn_stage(data, s, state)
  if (s$hyper == "joint") done <- optimise_stage(data, done, points_stage(data, done, few, state)$z, few, state)
  look <- if (way != "none") first_look(data, done, few, state)
  by_points <- way == "none" || !isTRUE(asked > 0L) && !points_fall_short(data, done, look, s, state)
  deadline <- started + s$control$max_seconds
  found <- if (by_points && is.null(state$stopped)) search_points(data, done, s, state)
  other <- if (way != "none" && is.null(state$stopped) && !isTRUE(found$best$met)) {
    s$rho <- look$rho[length(look$rho)]
    search_otherwise(way, data, done, look$z, utils::modifyList(s, list(neighbours = asked)), state, deadline)
  }
  if (is.null(other) && is.null(found$best) && way != "none" && is.null(state$stopped)) {
    s$worth <- Inf # the exact posterior cannot be had
    found <- search_points(data, done, s, state)
  }
  tried <- rbind(found$tried, other$tried)
  tol <- list(asked = s$tol, quantile = s$control$tol_quantile, mean = NA_real_, sd = NA_real_, met = FALSE,
              effort = NA_character_, m2 = NA_integer_, rows = NA_integer_, needs = NULL, tried = tried)
  best <- found$best
  yard <- found$yard
  if (!is.null(other) && (is.null(best) || max(other$error) <= max(best$error))) {
    best <- other
    yard <- other$yard
    fit <- finish_elsewhere(other$fit, state)
  } else {
    if (!is.null(best)) {
      done <- best$done
    } else if (is.null(done$z)) {
      z <- if (is.null(look)) points_stage(data, done, few, state)$z else look$z
      done <- start_now(done, z, s)
    }
    s$m <- nrow(done$z)
    fit <- construct_fit(data, done, s, state)
  }
  if (!is.null(best)) {
    tol[c("mean", "sd")] <- as.list(best$error)
    tol[c("met", "effort", "m2", "rows")] <- list(max(best$error) <= s$tol, yard$effort, yard$m2, yard$rows)
    if (!tol$met) tol$needs <- if (is.null(best$needs)) what_it_needs(found, s) else best$needs
  }
  if (!is.null(yard$reference)) fit$reference <- kept_reference(yard$reference, fit)
  fit$tol <- c(tol, seconds = proc.time()[["elapsed"]] - started)
  fit
}

tolerance_settings <- function(data, s) {
  s$tol <- check_positive(s$tol, "tol", 1L)
  if (s$tol >= 1) abort_input("tol", s$tol, "a number between 0 and 1")
  if (!isTRUE(data$sd_y > 0)) {
    abort_input("tol", s$tol, "NULL for a response without spread", hint = "It is a fraction of the sd of y.")
  }
  if (!is.null(s$inducing) && !is.character(s$inducing)) {
    abort_input("inducing", describe(s$inducing), "NULL or the name of a method where `tol` is given",
                hint = "Hyperparameters of a fit are passed on by kernel = fit$kernel, noise = fit$noise.")
  }
  if (is.null(s$m)) s$m <- data$n
  clean_points(data, s)
}

# ---- the yardstick ---------------------------------------------------------------------------------------------------

# The training rows as the certificate sees them; equal rows count as often as they occur, rows of weight 0 do not.
used_rows <- function(data) {
  offset <- if (is.null(data$offset)) 0 else data$offset
  if (length(offset) > 1L && !is.null(data$prior_weights)) offset <- offset[data$prior_weights > 0]
  list(x = data$x, index = if (is.null(data$group)) seq_len(nrow(data$x)) else data$group, offset = offset,
       names = NULL)
}

# The smallest number that a share of at least q of the values does not exceed.
reached_by <- function(v, q) {
  k <- max(1, ceiling(q * length(v)))
  v[is.na(v)] <- Inf
  sort(v, partial = k)[k]
}

# Where the exact GP lies at the training rows: a function error(mean, sd) of a posterior there, in units of y without
# offset, that gives the two statistics; `floor`: those of a posterior in the middle, below which there are none.
yardstick <- function(interval, rows, sd_y, q) {
  lower <- interval$sd_lower
  upper <- interval$sd_upper
  list(
    floor = c(mean = reached_by((interval$mean_upper - interval$mean_lower) / 2, q) / sd_y,
              sd = reached_by((upper - lower) / (upper + lower), q)),
    error = function(mean, sd) {
      i <- rows$index
      mean <- mean[i] + rows$offset
      rounding <- 1 + 8 * .Machine$double.eps
      c(mean = rounding * reached_by(pmax(mean - interval$mean_lower, interval$mean_upper - mean), q) / sd_y,
        sd = reached_by(pmax(1 - lower / sd[i], upper / sd[i] - 1), q) + rounding - 1)
    })
}

make_yardstick <- function(model, data, reference, effort, q) {
  rows <- used_rows(data)
  yard <- yardstick(certify_rows(model, rows, effort, reference, test_points = 0), rows, data$sd_y, q)
  yard$own <- function() { # the larger statistic of the reference, were it the fit
    at <- posterior_at(reference, data$x)
    max(yard$error(at$mean, sqrt(at$var)))
  }
  c(yard, list(reference = reference, effort = effort, m2 = reference$m, rows = length(rows$index)))
}

# Points are doubled until what the reference leaves open is a quarter of tol and the reference, were it the fit, would
# do (kriging on near rows leaves little open long before), or there are no more: `limit` says why it ended. All pairs
# of rows ("tight") where nothing else is left and they cost no more than a few references.
grow_reference <- function(model, data, s, deadline) {
  n <- nrow(data$x)
  q <- s$control$tol_quantile
  most <- most_reference_points(n)
  limit <- if (most < n) "memory" else "rows"
  if (16 * s$m < most) {
    most <- 16L * s$m
    limit <- "m"
  }
  if (max(256, 2 * s$worth) < most) {
    most <- as.integer(max(256, 2 * s$worth))
    limit <- "worth"
  }
  m2 <- min(128L, most)
  repeat {
    made <- reference(model, m2)
    yard <- make_yardstick(model, data, made, "reference", q)
    certifies <- max(yard$floor) <= s$tol / 4
    if (certifies && yard$own() <= enough_of_tol * s$tol) return(c(yard, limit = "none"))
    if (made$m < m2) limit <- "rounding"
    if (made$m < m2 || m2 == most) break
    if (proc.time()[["elapsed"]] > deadline) return(c(yard, limit = "time"))
    m2 <- min(2L * m2, most)
  }
  if (!certifies && limit != "rounding" && n <= 10 * m2 && s$worth == Inf) {
    tight <- make_yardstick(model, data, made, "tight", q)
    if (max(tight$floor) < 0.95 * max(yard$floor)) yard <- tight
  }
  c(yard, limit = limit)
}

# A fit this near to tol has fewer points to be found.
enough_of_tol <- 0.9

# So many that the pivoted Cholesky factor on min(n, 20 m2) rows and the reference's own m2 x m2 matrices take a
# quarter of the memory allowed:  8 m2 (min(n, 20 m2) + 8 m2) bytes.
most_reference_points <- function(n) {
  numbers <- getOption("pfdtc.max_memory", 2^32) / 4 / 8
  as.integer(max(1, min(n, floor(max((sqrt(n^2 + 32 * numbers) - n) / 16, sqrt(numbers / 28))))))
}

# ---- the guide -------------------------------------------------------------------------------------------------------

# The larger of the two statistics of the DTC posterior on the reference's first m points, over m:
# list(m, slope): the smallest m that meets the goal by bisection, and by how much log error falls with log m before it.
# The default number of points where what can be certified says nothing.
greedy_guide <- function(yard, data, goal) {
  ref <- yard$reference
  if (!(goal < 1)) return(list(m = min(200L, ref$m), slope = 4))
  noise <- ref$noise / ref$scale^2
  kernel <- scaled_kernel(ref)
  error_at <- function(m) {
    z <- ref$inducing[seq_len(m), , drop = FALSE]
    p <- native_predict(first_points(ref$factors, m, noise), z, kernel, noise, data$x)
    max(yard$error(ref$center + ref$scale * p$mean, ref$scale * sqrt(pmax(p$sor_variance + p$unexplained, 0))))
  }
  low <- 0
  high <- ref$m
  m <- error <- numeric()
  while (high > max(low + 1, 1.05 * low)) {
    at <- max(low + 1, round(sqrt(max(low, 1) * high)))
    m <- c(m, at)
    error <- c(error, error_at(at))
    if (error[length(error)] <= goal) high <- at else low <- at
  }
  above <- which(m < high & error > goal & is.finite(error))
  near <- above[which.min(abs(log(error[above] / (8 * goal))))]
  slope <- if (length(near)) log(error[near] / goal) / log(high / m[near]) else 4
  list(m = as.integer(high), slope = min(max(slope, 0.5), 8))
}

# ---- the search ------------------------------------------------------------------------------------------------------

# list(yard, guide, best, tried, ...): best is the smallest candidate that met tol, else the one nearest to it.
search_points <- function(data, learned, s, state) {
  started <- proc.time()[["elapsed"]]
  deadline <- started + s$control$max_seconds
  # hyperparameters, data and units, for references and certificates
  one <- s
  one[c("m", "keep_data")] <- list(1L, TRUE)
  model <- construct_fit(data, start_now(learned, data$x[1L, , drop = FALSE], one), one, state)
  yard <- run_stage(state, "reference", grow_reference(model, data, s, deadline), otherwise = NULL)
  if (is.null(yard)) return(NULL)
  # where tol cannot be certified at all: as many points as come within a quarter of the reference, optimised once
  least <- yard$own()
  within_reach <- least <= enough_of_tol * s$tol
  guide <- run_stage(state, "start", greedy_guide(yard, data, if (within_reach) s$tol else 1.25 * least),
                     otherwise = NULL)
  if (is.null(guide)) return(list(yard = yard))
  if (s$worth < Inf && (!within_reach || guide$m > s$worth)) return(list(yard = yard))
  s$reference <- yard$reference
  rows <- optimise_rows(data, s$control)
  top <- as.integer(min(s$m, nrow(data$x), 4L * guide$m, s$worth))
  candidates <- list()
  tell <- tell_candidates(s, started)
  m <- min(guide$m, top)
  late <- function() proc.time()[["elapsed"]] > deadline
  while (!is.na(m) && length(candidates) < 10L) {
    s$control$max_seconds <- max(0, deadline - proc.time()[["elapsed"]])
    one <- try_points(m, model, data, rows, learned, s, state, yard,
                      last = m == top && s$worth == Inf || !within_reach)
    if (is.null(one)) break
    candidates <- c(candidates, list(one))
    tell(one)
    if (one$m < m) top <- one$m # there are no more that differ
    if (!is.null(state$stopped) || late() || !within_reach) break
    m <- next_m(candidates, guide$slope, top, s$control$maxit, s$tol)
  }
  list(yard = yard, guide = guide, within_reach = within_reach, top = top, late = late(),
       best = best_candidate(candidates), tried = candidates_frame(candidates, s$tol))
}

# What a candidate came to, where nothing else tells that a search is under way; the first line after some seconds.
tell_candidates <- function(s, started, after = 5) {
  if (s$control$progress || !isFALSE(s$control$quiet)) return(function(one) invisible())
  function(one) {
    seconds <- proc.time()[["elapsed"]] - started
    if (seconds < after) return(invisible())
    number <- function(v) format(signif(v, 2))
    message(structure(class = c("pfdtc_message_progress", "message", "condition"), list(
      message = sprintf("tol = %s: %d points%s certify %s for the mean and %s for the sd, %.0f s\n", number(s$tol),
                        one$m, if (is.null(one$neighbours)) "" else sprintf(" and %d near rows", one$neighbours),
                        number(one$error[["mean"]]), number(one$error[["sd"]]), seconds),
      call = NULL, m = one$m, error = one$error, seconds = seconds)))
  }
}

best_candidate <- function(candidates) {
  met <- Filter(function(one) one$met, candidates)
  by <- if (length(met)) vapply(met, function(one) one$m, 1) else
    vapply(candidates, function(one) max(one$error), 1)
  if (length(met)) candidates <- met
  if (length(candidates)) candidates[[which.min(by)]]
}

candidates_frame <- function(candidates, tol) {
  if (!length(candidates)) return(NULL)
  column <- function(name) vapply(candidates, function(one) one[[name]], 1)
  error <- vapply(candidates, function(one) one$error, c(mean = 0, sd = 0))
  data.frame(m = as.integer(column("m")), iterations = as.integer(column("iterations")), mean = unname(error["mean", ]),
             sd = unname(error["sd", ]), met = unname(pmax(error["mean", ], error["sd", ]) <= tol),
             seconds = column("seconds"), posterior = "far", neighbours = 0L)
}

# Points started as the settings say and optimised until tol is met. `last`: there is no larger m to go to, so it is
# not given up. NULL where an interrupt came before the first certificate.
try_points <- function(m, model, data, rows, learned, s, state, yard, last) {
  started <- proc.time()[["elapsed"]]
  z <- if (s$inducing_method == "greedy" && m <= yard$reference$m) yard$reference$inducing[seq_len(m), , drop = FALSE]
  if (is.null(z)) {
    z <- run_stage(state, "start", choose_points(data$x, m, learned$kernel, s$inducing, s$control$memory,
                                               c(data[c("y", "weights")], learned["noise"]), s$control)$z,
                   otherwise = NULL)
    if (is.null(z)) return(NULL)
  }
  s$label <- sprintf("inducing points, m = %d", nrow(z))
  now <- start_now(learned, z, s)
  watch <- new_watch(function(z, jitter) certified_error(model, data, z, jitter, yard), s$tol,
                     hopeful = if (last) Inf else s$control$maxit, every = ceiling(5 * nrow(data$x) / nrow(rows$x)))
  look <- function() run_stage(state, "points", watch$look(now$z, now$jitter, now$value), otherwise = NULL)
  end <- look()
  if (is.null(end) && is.null(state$stopped)) {
    now <- optimise_points(rows, now, s, state, watch)
    if (!watch$ended && is.null(state$stopped)) look()
  } else {
    now[names(end)] <- end
  }
  best <- watch$best
  if (is.null(best)) return(NULL)
  now[c("z", "value", "jitter")] <- best[c("z", "value", "jitter")]
  list(m = nrow(z), done = now, error = best$error, met = max(best$error) <= s$tol, iterations = watch$iterations,
       done_with = if (watch$ended) watch$iterations else s$control$maxit,
       seconds = proc.time()[["elapsed"]] - started)
}

# Looks at the certificate every few iterations, seldom where only some of the rows are optimised on and looking at all
# of them would take the time. look() and after() return NULL to go on, or list(convergence, message).
#
# Errors fall about like iterations^(-1/2): one far above what that leads to in `hopeful` iterations is given up.
new_watch <- function(error_of, tol, hopeful, every) {
  watch <- new.env(parent = emptyenv())
  watch$iterations <- 0L
  watch$ended <- FALSE
  watch$look <- function(z, jitter, value) {
    error <- error_of(z, jitter)
    if (is.null(watch$best) || max(error) < max(watch$best$error)) {
      watch$best <- list(z = z, jitter = jitter, value = value, error = error)
    }
    met <- max(error) <= tol
    k <- watch$iterations
    hopeless <- k >= 20L && max(watch$best$error) > 1.6 * sqrt(max(1, hopeful / k)) * tol
    watch$ended <- met || hopeless
    if (met) list(convergence = 0L, message = "certified to be as accurate as asked for")
    else if (hopeless) list(convergence = 1L, message = "given up: more points are needed")
  }
  watch$after <- function(z, jitter, value) {
    watch$iterations <- watch$iterations + 1L
    if (watch$iterations %% every == 0) watch$look(z, jitter, value)
  }
  watch
}

# The two statistics of the fit on points z, which is made as the final one will be.
certified_error <- function(model, data, z, jitter, yard) {
  model$inducing <- z
  model$factors <- native_posterior(z, data$x, data$y, data$weights, scaled_kernel(model),
                                      model$noise / model$scale^2, jitter, control = model$control)
  at <- posterior_at(model, data$x)
  yard$error(at$mean, sqrt(at$var))
}

# The next number of points to try, NA where none is worth it. A candidate with error e after i iterations would reach
# about e sqrt(i / maxit); with log error falling by `slope` a unit of log m, that says which m would just do. 8 % more
# is taken: another fit costs more than they do.
next_m <- function(candidates, slope, top, maxit, tol) {
  m <- vapply(candidates, function(one) one$m, 1)
  met <- vapply(candidates, function(one) one$met, NA)
  ratio <- vapply(candidates, function(one) max(one$error) / tol / sqrt(max(1, maxit / max(one$done_with, 2))), 1)
  now <- length(m)
  if (now > 1L) {
    other <- order(abs(log(m[-now] / m[now])))[1L]
    seen <- -log(ratio[other] / ratio[now]) / log(m[other] / m[now])
    if (is.finite(seen)) slope <- min(max(seen, slope / 2), 2 * slope)
  }
  wanted <- ceiling(m[now] * min(max(1.08 * ratio[now]^(1 / slope), 0.55), 2))
  least <- min(m[met], Inf)
  failed <- max(m[!met & m < least], 0)
  if (!any(met)) {
    if (failed >= top) return(NA_integer_)
    return(as.integer(min(top, max(wanted, ceiling(1.05 * failed) + 1))))
  }
  wanted <- max(wanted, ceiling(1.05 * failed), 1)
  if (wanted > least / 1.08) {
    # what failed says that more points than did are needed: the truth lies between
    if (met[now] || least <= 1.2 * failed) return(NA_integer_)
    wanted <- round(sqrt(failed * least))
  }
  if (wanted > failed && wanted < least) as.integer(wanted) else NA_integer_
}

# ---- what is said of it ----------------------------------------------------------------------------------------------

# Why tol was not met, and what would do.
what_it_needs <- function(found, s) {
  yard <- found$yard
  best <- found$best
  if (!found$within_reach) {
    matern <- if (yard$reference$kernel$profile != "se") {
      " A Matern kernel takes many points; refine() certifies the mean at single rows to any accuracy."
    }
    certifies <- max(yard$floor) <= s$tol / 4
    return(paste0(sprintf(if (certifies) "The reference itself, of %d points, is certified to be within %s: " else
                            "With %d points, the reference itself leaves %s open: ", yard$reference$m,
                          show_percent(if (certifies) yard$own() else max(yard$floor))), switch(
      yard$limit,
      memory = "options(pfdtc.max_memory) would have to allow more points.",
      m = "`m` would have to be larger (it has 16 times as many).",
      time = "`max_seconds` would have to be larger.",
      "more would differ by rounding only: `noise` is too small beside the signal, or `tol` too small."), matern))
  }
  if (found$late) return("The search was ended by `max_seconds`.")
  if (found$top >= s$m) {
    more <- min(found$guide$m, ceiling(1.05 * best$m * (max(best$error) / s$tol)^(1 / found$guide$slope)))
    if (more > s$m) return(sprintf("`m` = %d is too few: about %d points would do.", s$m, as.integer(more)))
  }
  "More iterations (`maxit`), points started greedily, or a smaller `jitter` if one was given, may do."
}

# Rounded up to two digits, so that it is never less than what is certified.
show_percent <- function(v) {
  if (!is.finite(v)) return("more than any number of %")
  v <- 100 * v
  unit <- if (v > 0) 10^(floor(log10(v)) - 1) else 1
  paste(format(ceiling(v / unit * (1 - 1e-12)) * unit, digits = 3, scientific = v < 1e-4), "%")
}

# "certified 1.7 % at M = 184 (tight)", the larger of the two statistics, and what that means; NA for a fit without tol.
describe_tolerance <- function(fit) {
  tol <- fit$tol
  if (is.null(tol)) return(NA_character_)
  if (is.na(tol$mean)) return(sprintf("not certified (%s asked for)", show_percent(tol$asked)))
  sprintf("certified %s %s, %s %s asked for: %s", show_percent(max(tol$mean, tol$sd)), certified_at(fit),
          if (tol$met) "with" else "short of the", show_percent(tol$asked), describe_statistics(fit))
}

certified_at <- function(fit) {
  switch(fit$posterior, exact = "of the exact posterior as computed",
         far = sprintf("at M = %d (%s)", fit$m, fit$tol$effort),
         sprintf("at M = %d and %d near rows (%s)", fit$m, fit$neighbours, fit$tol$effort))
}

describe_statistics <- function(fit) {
  tol <- fit$tol
  inputs <- if (tol$rows < fit$nobs) sprintf("%d random training inputs", tol$rows) else "the training inputs"
  at <- if (tol$quantile < 1) {
    sprintf("each at %s %% of %s", format(100 * tol$quantile), inputs)
  } else if (tol$rows < fit$nobs) {
    paste("both at", inputs)
  } else {
    "both at every training input"
  }
  sprintf("exact mean within %s of sd(y), exact sd within %s of the fit's, %s, at these hyperparameters",
          show_percent(tol$mean), show_percent(tol$sd), at)
}

unreached_text <- function(fit) {
  tol <- fit$tol
  sprintf("The accuracy tol = %s was not reached. Certified %s: %s. %s", format(tol$asked), certified_at(fit),
          describe_statistics(fit), tol$needs)
}
