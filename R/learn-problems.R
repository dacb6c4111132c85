# Defines the log posterior densities of hyperparameters that learning maximises. A problem is a list:
#
#   list(lower, upper, natural(theta), evaluate(theta) -> list(value, gradient, information), prior(theta))
#
# theta are the logs of the hyperparameters, and natural() returns list(kernel, noise). A learning_problem() has at() in
# place of evaluate(). at(theta) returns kernel and noise, also in the form for C (`engine`). vecchia() returns the
# Vecchia likelihood and its Fisher information, with which climb() makes evaluate(). exact_density() makes an
# evaluate() that computes the exact likelihood, without information.

# Returns the problem for a kernel with its bounds and priors. Without priors, the data would often make the lengthscale
# of an irrelevant input infinite, and the noise of few rows 0. Priors weaken with more rows (prior_share()). With
# lengthscales l in units of the spreads of the d inputs, and variances in units of the response's variance:
#   log l ~ N(log(3 sqrt(d)), 0.7^2),  log variance ~ N(0, 3^2),  log noise ~ N(log 0.1, 2^2).
# If no search by the exact likelihood follows, variances keep a prior sd of 1.5 (0.75 for a kernel of one factor). With
# much noise, the Vecchia likelihood hardly changes if the variance grows by a factor of 100 and lengthscales with it,
# so the variance would depend on the random order of rows (and change the NLPD by 0.01). With `little_noise`, q =
# log(noise / prior median) has an exponential lower tail: for q < -1 its log density is (q + 1/2) / 4, not -q^2 / 8. If
# noise is a millionth of the response's variance, this is -2.8 nats, not -16.6.
learning_problem <- function(pool, s, profile, little_noise = FALSE) {
  made <- kernel_to_learn(pool, s, profile)
  compiled <- made$compiled
  kernel <- compiled$kernel
  table <- made$table
  variances <- table$what == "variance"
  table$unit[variances] <- pool$signal / table$over[variances]
  last <- nrow(table) + 1L
  unit <- log(c(table$unit, pool$variance * pool$weight))
  given <- log(c(compiled$engine$values, if (is.null(s$noise)) NA else s$noise))
  lower <- c(unit[-last] + log(table$low), log(pool$floor * pool$weight))
  upper <- pmax(unit + log(c(table$high, 10)), lower)
  # Extend the bounds to the user's values, at which searches start.
  free <- made$free
  absurd <- !is.na(given) & (given < lower | given > upper)
  lower <- pmin(lower, given, na.rm = TRUE)
  upper <- pmax(upper, given, na.rm = TRUE)
  season <- !is.null(kernel$season)
  fade <- rep(pool$fade, last)
  composite <- length(kernel$leaves) > 1L
  if (!pool$few && !is_mean(kernel)) fade[which(variances)] <- if (composite) 1 else 4
  if (pool$few) table$sd[variances & !table$keep] <- smooth_rule[["sd"]]
  if (season) fade[c(table$keep, TRUE)] <- 1
  of_noise <- if (season) season_noise else c(middle = 0.1, sd = 2)
  middle <- unit + c(table$middle, log(of_noise[["middle"]]))
  precision <- fade * if (s$priors) 1 / c(table$sd, of_noise[["sd"]])^2 else numeric(last)
  at <- function(theta, kernel = compiled) {
    value <- exp(unname(theta))
    kernel$engine$values <- value[-last]
    list(kernel = kernel, noise = value[last], engine = list(
      kernel = if (is.null(kernel$engine$tie)) kernel$engine else engine_kernel(kernel), noise = value[last],
      jitter = 0))
  }
  problem <- list(lower = lower, upper = upper, at = at, rows = made$by_number$rows,
                  by_number = function(theta) at(theta, made$by_number$kernel), pool = pool, free = free, given = given,
                  natural = function(theta) list(kernel = as_kernel(at(theta)$kernel), noise = exp(theta[[last]])),
                  middle = middle, absurd = absurd & free, unit = unit, last = last, table = table, profile = profile,
                  label = made$label, composite = composite, run = s$run, little_noise = little_noise,
                  plus_prior = if (s$priors) " plus log prior density") # names what is maximised
  with_likelihood(problem, precision)
}

# Returns list(asked, compiled, table, free, by_number, label) for a profile. `compiled` is the kernel with the user's
# values, `free` marks the learned parameters, `table` has parameter_units() for responses of mean square 1. `by_number`
# is an equal kernel of level numbers in place of 0/1 columns. pool$made keeps the list for problems with the profile.
kernel_to_learn <- function(pool, s, profile) {
  made <- if (!is.null(profile)) pool$made[[profile]]
  asked <- s[c("kernel", "names", "free")]
  if (!is.null(made) && identical(made$asked, asked)) return(made)
  open <- open_leaf(s$kernel)
  chosen <- if (!is.null(profile)) kernel_of(profile, open$periods)
  label <- if (!is.null(profile)) profile_label(profile, open$periods, chosen)
  kernel <- if (is.null(open)) s$kernel else with_profile(s$kernel, profile, pool$x, open, chosen)
  compiled <- compile_kernel(kernel)
  parts <- as_sum(compiled$kernel) # includes the periods of seasons
  made <- list(asked = asked, compiled = compiled, label = label, free = are_learned(compiled, s),
               table = parameter_units(parts, pool$x, 1, compiled$table, pool$spreads))
  made$by_number <- if (is.null(compiled$engine$tie)) list(kernel = compiled, rows = identity) else # no tied values
    by_numbers_of_levels(compiled, pool$x)
  if (!is.null(profile)) pool$made[[profile]] <- made
  made
}

# Adds functions to a problem. neighbours() finds the `near` nearest neighbours of each of `rows`. vecchia() returns the
# log density of `rows` given their neighbours, plus the log prior; if `slopes` is 2, it estimates the information from
# a quarter of the rows. With a `basis` of the log noise, it returns the log likelihood and its derivatives by the
# coefficients of the basis. input(n) returns the arguments `rows` and `control` of C functions, for sums over n rows.
with_likelihood <- function(problem, precision) {
  pool <- problem$pool
  run <- problem$run
  # Priors are independent and normal. With `little_noise`, log noise has an exponential tail from 1 below its centre.
  problem$prior <- function(theta) {
    away <- theta - problem$middle
    value <- -sum(precision * away^2) / 2
    last <- problem$last
    if (problem$little_noise && away[[last]] < -1) {
      value <- value + precision[last] * (away[[last]] + 1)^2 / 2
      precision[last] <- precision[last] / -away[[last]]
    }
    list(value = value, gradient = -precision * away, information = precision)
  }
  # Add the log prior and, if merging removed r rows, -(r/2) log(2 pi s2) - ss/(2 s2): ss is the sum of squares of
  # responses about the means of merged rows, s2 the noise variance.
  problem$posterior <- function(result, noise, share, theta) {
    shift <- pool$shift
    prior <- problem$prior(theta)
    last <- problem$last
    merged <- if (shift$rows == 0 && shift$ss == 0) 0 else share * merged_log_density(shift, noise)
    out <- list(likelihood = result$value + merged)
    out$value <- out$likelihood + prior$value
    if (is.null(result$score)) return(out)
    out$gradient <- result$score + prior$gradient
    out$gradient[last] <- out$gradient[last] + share * (shift$ss / (2 * noise) - shift$rows / 2)
    if (!is.null(result$information)) {
      out$information <- result$information + diag(prior$information, last)
      out$information[last, last] <- out$information[last, last] + share * shift$rows / 2
    }
    out
  }
  problem$neighbours <- function(theta, rows, near, earlier = TRUE) {
    if (nrow(pool$x) > many_rows) gc(FALSE) # frees the search tree of all rows, most of the memory
    now <- problem$by_number(theta)
    to <- if (is.null(pool$levels)) now$engine else engine_model(kernel = smooth_part(now$kernel))
    input <- problem$input(length(rows))
    native_neighbours(NULL, input$rows$x, min(near, pool$n - 1L), rows = rows, rank = if (earlier) pool$rank,
                      at = input$control, to = to)
  }
  made <- list(n = -1L)
  problem$input <- function(n) {
    rows <- if (is.null(made$rows)) engine_rows(replace(pool, "x", list(problem$rows(pool$x)))) else made$rows
    if (made$n != n) made <<- list(n = n, rows = rows, control = engine_control(n, run))
    made
  }
  problem$vecchia <- function(theta, rows, neighbours, slopes = TRUE, weights = pool$weights,
                              basis = matrix(0, nrow(pool$x), 0L)) {
    pool$count$evaluations <- pool$count$evaluations + 1L
    input <- problem$input(length(rows))
    now <- problem$by_number(theta)
    plain <- is.null(pool$levels)
    likelihood <- if (plain) native_vecchia else integrated_likelihood
    result <- likelihood(replace(pool, "weights", list(weights)), now, rows, neighbours, basis = basis, at = input,
                         slopes = if (plain) slopes else slopes > 0)
    if (!is.finite(result$value)) return(list(value = -Inf))
    if (ncol(basis)) result else problem$posterior(result, now$noise, length(rows) / pool$n * pool$share, theta)
  }
  problem
}

# Returns the problem of maximising the exact log marginal likelihood of `rows` (NULL: all) plus the log prior. Element
# `loo` of a result has leave-one-out log densities. With row weights W, noise variance s2, B = (K + s2 W^{-1})^{-1},
# alpha = B y and p = diag(B), the prediction of row i has the mean y_i - alpha_i / p_i and the variance 1 / p_i.
exact_density <- function(problem, rows = NULL) {
  pool <- problem$pool
  used <- if (is.null(rows)) pool else take_rows_of(pool[c("x", "y", "weights")], rows)
  used$x <- problem$rows(used$x)
  n <- length(used$y)
  input <- engine_input(used, n, problem$run)
  problem$evaluate <- function(theta) {
    pool$count$evaluations <- pool$count$evaluations + 1L
    now <- problem$by_number(theta)
    result <- native_exact_evidence(used, now, at = input)
    if (!is.null(result$reason)) return(list(value = -Inf))
    c(problem$posterior(list(value = -result$value, score = -c(result$theta, result$noise)), now$noise,
                        n / pool$n * pool$share, theta),
      list(loo = (log(result$precision) - result$alpha^2 / result$precision - log(2 * pi)) / 2))
  }
  problem
}

# Returns the kernel with the name `profile`. "a+b" is a sum of kernels over the same inputs. "additive:a" is
# kernel_additive() of a, "pairwise:a" with pairs = TRUE. A seasonal kernel, such as "season1,2:a", needs its `periods`.
kernel_of <- function(profile, periods = NULL) {
  one <- plain_kernels[[profile]]
  if (!is.null(one)) return(one)
  if (is_season(profile)) {
    parts <- parts_of_season(profile, periods)
    terms <- c(list(kernel_se(inputs = parts$periods[[1L]]$column)), lapply(parts$periods, function(p) {
      kernel_periodic(period = p$period, inputs = p$column) * kernel_matern(5 / 2, inputs = p$column)
    }), list(kernel_of(parts$rest)), if (parts$mean) list(kernel_of("mean")))
    kernel <- Reduce(`+`, terms)
    kernel$season <- c("trend", rep(c("cycle", "change"), length(parts$periods)), "rest", if (parts$mean) "mean")
    return(kernel)
  }
  terms <- strsplit(profile, "+", fixed = TRUE)[[1L]]
  if (length(terms) > 1L) {
    return(Reduce(`+`, lapply(terms, function(term) replace(kernel_of(term), "of", list(character())))))
  }
  part <- strsplit(profile, ":", fixed = TRUE)[[1L]]
  if (length(part) > 1L) kernel_additive(kernel_of(part[2L]), pairs = part[1L] == "pairwise")
}

profile_label <- function(profile, periods = NULL, kernel = kernel_of(profile, periods)) {
  if (is.null(kernel$leaves)) return(kernel$label)
  if (!is_season(profile)) return(sum_label(kernel))
  parts <- parts_of_season(profile, periods)
  seasons <- vapply(parts$periods, function(p) {
    if (p$name == "cycle") sprintf("season of period %.3g", p$period) else paste("season of a", p$name)
  }, "")
  paste(c("trend", seasons, sum_label(kernel_of(parts$rest)), if (parts$mean) "linear mean"), collapse = " + ")
}

# Returns the kernel's factor without a profile, which the fit will choose, or NULL if there is none.
open_leaf <- function(kernel) {
  if (!is.null(kernel$engine)) kernel <- kernel$kernel
  Find(function(l) is.null(l$profile), if (is.null(kernel$leaves)) list(kernel) else kernel$leaves)
}

is_open <- function(kernel) !is.null(open_leaf(kernel))

with_profile <- function(kernel, profile, x, leaf = open_leaf(kernel), chosen = kernel_of(profile, leaf$periods)) {
  if (is.null(kernel$leaves)) {
    value <- c("lengthscale", "variance")
    if (is.null(chosen$leaves)) chosen[value] <- kernel[value] # a kernel of one term keeps its start values
    chosen <- change_leaves(chosen, function(l) {
      l$warp <- kernel$warp
      if (l$profile == "mean") return(replace(l, c("centre", "rate"), basis_units(rotated(l, x))))
      if (l$profile %in% c("additive", "pairwise")) l$groups <- kernel$groups
      if (is.null(l$inputs)) {
        l$inputs <- kernel$inputs
        l$shared <- kernel$shared
      }
      l
    })
    # If `chosen` is one squared exponential or Matern factor without a lengthscale, keep the columns of `kernel`.
    placed <- isTRUE(chosen$profile %in% kernels_of_before) && is.null(chosen$lengthscale)
    return(if (placed) replace(chosen, "columns", list(kernel$columns)) else place_kernel(chosen, x))
  }
  open <- vapply(kernel$leaves, function(l) is.null(l$profile), NA)
  if (is_season(profile)) { # the season replaces the open factor
    season <- with_profile(leaf, profile, x)
    others <- Filter(function(t) !any(open[t$leaves]), kernel$terms)
    kernel <- with_columns(combine_kernels(season, list(leaves = kernel$leaves, terms = others)), x)
    kernel$season <- c(season$season, rep("beside", length(kernel$leaves) - length(season$season)))
    return(kernel)
  }
  kernel$leaves[open] <- lapply(kernel$leaves[open], function(l) {
    own <- intersect(c("profile", "label", "base"), names(chosen))
    replace(l, own, chosen[own])
  })
  kernel$label <- formula_of_kernel(kernel)
  kernel
}

is_season <- function(profile) isTRUE(startsWith(profile, "season"))

# Splits a seasonal kernel's name, such as "season1,2:matern32+mean": list(periods, name of the rest, linear mean?).
parts_of_season <- function(profile, periods) {
  parts <- regmatches(profile, regexec("^season([0-9,]+):([a-z0-9]+)([+]mean)?$", profile))[[1L]]
  list(periods = periods[as.integer(strsplit(parts[2L], ",")[[1L]])], rest = parts[3L], mean = nzchar(parts[4L]))
}

# Returns the pool: rows that hyperparameters are learned from, their random order `rank`, and units derived from them.
# Equal rows are always merged; otherwise the information on the noise would depend on how many of them a sample has. A
# pool of up to exact_learning_rows rows always has the same random order, so that the seed has no effect. With other
# orders, three seeds chose different models for 44 % of 57 data sets, equally good for held-out rows.
learning_rows <- function(data, s) {
  data <- merge_all_equal_rows(without_copies(data)) # a row's copies do not tell about the noise
  if (nrow(data$x) <= exact_learning_rows) with_fixed_seed(pool_of_rows(data, s)) else pool_of_rows(data, s)
}

# Returns the pool of distinct rows. pool$take(count) returns `count` row numbers: a search adds up the log densities of
# these rows. pool$made keeps compiled kernels. pool$few is TRUE if learning ends with the exact likelihood of all rows.
pool_of_rows <- function(data, s) {
  n <- nrow(data$x)
  most <- min(n, s$rows, learning_sizes$population)
  columns <- group_columns(s$kernel)
  if (length(columns)) most <- min(most, learning_sizes$whole[["rows"]])
  of <- if (length(columns)) rows_of_levels(data$x, columns, most) else if (most < n) sort(sample.int(n, most))
  x <- if (is.null(of)) data$x else data$x[of, , drop = FALSE]
  n <- nrow(x)
  pool <- list(of = of, x = x, n = n, copies = data$copies, rank = sample.int(n), share = n / nrow(data$x),
               count = new.env(parent = emptyenv()), made = new.env(parent = emptyenv()), spreads = spreads_of(x),
               fade = prior_share(n, ncol(x)), until = s$steps$until)
  first <- min(n, learning_sizes$first)
  early <- order(pool$rank)[seq_len(first)]
  others <- sample.int(n)
  others <- others[pool$rank[others] > first]
  if (n > many_rows) gc(FALSE)
  pool$take <- function(count) { # at most a fifth of these rows are early in the random order, if others suffice
    some <- min(length(early), max(1L, count %/% 5L))
    c(early[seq_len(some)], utils::head(others, count - some), if (count > some + length(others)) early[-seq_len(some)])
  }
  pool$count$evaluations <- 0L
  pool$exact <- exact_sizes(n)
  pool$few <- pool$share == 1 && n == max(pool$exact)
  pool <- pool_of_response(pool, data)
  if (!length(columns)) return(pool)
  # Renumber the levels from 1. take() returns the first rows of the random order. Neighbours come before a row in this
  # order, so they are taken too: the likelihood with group effects integrated out needs them all.
  for (column in columns) pool$x[, column] <- match(pool$x[, column], sort(unique(pool$x[, column])))
  pool$levels <- apply(pool$x[, columns, drop = FALSE], 2L, max)
  by_rank <- order(pool$rank)
  pool$take <- function(count) by_rank[seq_len(min(count, pool$n))]
  pool
}

# Returns the pool with the responses of `data`, which has the same rows, and with response_units() of them.
pool_of_response <- function(pool, data) {
  some <- if (is.null(pool$of)) data else take_rows(data, pool$of) # pool$of = NULL: all rows
  pool[c("y", "weights", "twins", "shift")] <- list(some$y, some$weights, some$twins, data$shift)
  units <- response_units(data)
  pool[names(units)] <- units
  pool
}

# Returns how many rows (up to `most`) the exact log marginal likelihood may have: memory must hold two matrices.
most_exact_rows <- function(most = exact_learning_rows) min(most, floor(sqrt(getOption("pfdtc.max_memory", 2^32) / 16)))

# Returns the numbers of rows for successive maximisations of the exact log marginal likelihood of n rows.
exact_sizes <- function(n) {
  most <- min(n, most_exact_rows())
  c(if (most > 1.5 * first_exact_rows) first_exact_rows, most)
}

# Returns a pool with only those rows of `pool` that take(count) selects.
some_of_pool <- function(pool, count) {
  rows <- pool$take(count)
  some <- pool
  some[c("x", "y")] <- list(pool$x[rows, , drop = FALSE], pool$y[rows])
  some[c("weights", "n")] <- list(pool$weights[rows], length(rows))
  some[c("spreads", "fade", "made")] <- list(spreads_of(some$x), prior_share(some$n, ncol(some$x)),
                                             new.env(parent = emptyenv()))
  some$rank <- rank(pool$rank[rows])
  some$shift[] <- lapply(pool$shift, `*`, pool$share * some$n / pool$n)
  some$share <- 1
  some$exact <- exact_sizes(some$n)
  some$few <- some$n == max(some$exact)
  some$take <- function(count) seq_len(min(count, some$n))
  some
}

# Returns units for the hyperparameters, computed from the cleaned response:
#
#   variance  of the response about its mean
#   signal    the unit of the kernel's variance: the weighted mean square of y. If a few huge weights make this less
#             than a tenth of the mean square with weights of at most their median, the second mean square is the unit
#   floor     the smallest noise variance. Responses rounded to multiples of delta have noise of at least delta^2 / 12
#             (Sheppard). delta is at most the sd of y, and 0 if is_regular(). With a transform T, delta is multiplied
#             by the median slope of T, because the smallest is almost 0 where T is flat. The floor is at least 1e-6 of
#             the variance, and 1e-11 of the mean square of y, so that kernel matrices have a Cholesky factor.
#   weight    the mean weight
response_units <- function(data) {
  y <- data$y
  w <- if (is.null(data$weights)) rep(1, length(y)) else data$weights
  variance <- response_power(data, y - sum(w * y) / sum(w))
  power <- response_power(data)
  even <- if (!is.null(data$weights)) pmin(w, stats::median(w))
  plain <- if (is.null(even)) 0 else sum(even * y^2) / sum(even)
  used <- if (is.null(data$prior_weights)) TRUE else data$prior_weights > 0
  given <- (if (is.null(data$given_response)) data$response else data$given_response)[used]
  plain_given <- given - if (is.null(data$offset) || !is.null(data$transform)) 0 else data$offset[used]
  step <- if (is_regular(data, plain_given)) 0 else if (is.null(data$transform)) smallest_step(plain_given) else
    smallest_step(given) * stats::median(exp(log_slope(data$transform, given)))
  list(variance = variance, signal = if (plain > 10 * power) plain else power,
       floor = max(least_noise[["learned"]] * variance, 1e-11 * power, min((step / data$scale)^2, variance) / 12),
       weight = if (is.null(even)) 1 else mean_weight(data))
}

# Returns the weighted mean square of y, including deviations within merged rows, or 1 if it is 0.
response_power <- function(data, y = data$y) {
  w <- if (is.null(data$weights)) 1 else data$weights
  power <- (sum(w * y^2) + data$shift$ss) / sum(w + 0 * y)
  if (power > 0) power else 1
}

# Returns TRUE if the smallest difference between responses need not come from rounding: no two rows have the same
# response, or y is a sum of quadratic functions of single inputs (perhaps on a grid). y has no rows of weight 0.
is_regular <- function(data, y) {
  n <- nrow(data$x)
  if (data$shift$ss > 1e-12 * data$n) return(FALSE) # equal inputs have different responses
  if (!is.null(data$group)) y <- y[match(seq_len(n), data$group)]
  if (length(y) != n || anyDuplicated(y) == 0L) return(length(y) == n)
  rows <- evenly(n, 1000L)
  basis <- cbind(1, data$x, data$x^2)[rows, , drop = FALSE]
  length(rows) > 2L * ncol(basis) &&
    max(abs(stats::lm.fit(basis, y[rows] / max(abs(y)))$residuals)) <= 1e-9 * diff(range(y)) / max(abs(y))
}

# Returns kernel and noise with start values for unknown parameters: lengthscales sqrt(d) times the spread of the input
# (a typical distance of two rows), the mean square of y as variance, a tenth of it times the mean weight as noise.
start_values <- function(kernel, noise, data) {
  power <- response_power(data)
  list(kernel = name_lengthscales(with_typical_values(kernel, data$x, power = power), data$x),
       noise = noise %||% (mean_weight(data) * power / 10))
}
