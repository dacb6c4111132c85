# Represents the likelihood of a fit by a row of a table (response-table.R), and makes the input of C code (the engine).
#
# A likelihood is list(name, link, approx = "laplace" or "vi", site = the C code's name, theta = the shape parameter,
# learned = TRUE if theta is learned, df = a given further parameter, unit = unit of f in priors, label, levels = names
# of classes, ordered = TRUE if these have an order, trials = TRUE if a row may have several, open = TRUE if another
# family may replace it). If the fit replaced a family, the likelihood has `from`, the name of that family, and `asked`,
# a list with the likelihood that was asked for, with which cross_validate() fits other rows. The likelihood of a
# Gaussian response is NULL. "Sites" are the responses of the rows of data$x, list(y, size, weight, offset).

# Returns the response of a fit: its row of response_rows, with the fit's link functions, shape parameter and transform.
# `kind` is "normal" or "transformed" (Gaussian), "classes" (two), "labels" (several unordered classes, so that f is a
# vector), "ordered", "times", "own" (a user's likelihood) or "other" (counts, trials, numbers with other families).
response_of <- function(fit) as_response(fit$likelihood, fit$transform)

as_response <- function(likelihood, transform = NULL) {
  row <- if (is.null(likelihood)) response_rows$gaussian else response_row(likelihood)
  row$transform <- transform
  if (is.null(likelihood)) {
    if (identical(transform$kind, "log")) row$rival[names(row$rival$log)] <- row$rival$log
    return(c(row, list(kind = if (is.null(transform)) "normal" else "transformed", link = links$identity, unit = 1,
                       trials = FALSE, approx = "none", predicts = "mean")))
  }
  row[c("site", "full_label", "learned", "levels", "approx", "unit")] <-
    likelihood[c("site", "label", "learned", "levels", "approx", "unit")]
  if (is.function(row$shape)) row$shape <- row$shape(likelihood)
  if (!is.null(likelihood$middle)) row$middle <- likelihood$middle
  row$trials <- isTRUE(likelihood$trials)
  own_kind <- c("labels", "ordered", "times", "own", if (!row$trials) "classes")
  row$kind <- if (row$reads %in% own_kind) row$reads else "other"
  row$in_order <- row$kind == "ordered" || isTRUE(likelihood$ordered)
  row$words <- approximation_words[[likelihood$approx]]
  row$likelihood <- likelihood
  row$link_name <- likelihood$link
  row$link <- links[[row$mean_link %||% likelihood$link]]
  row$theta <- c(likelihood$theta, likelihood$df)
  # A family that the fit found for numbers predicts them like the family that it replaced, and none is censored.
  row$predicts <- if (identical(likelihood$from, "gaussian") && likelihood$link != "identity") "mean" else "latent"
  row$errors_of <- if (row$kind == "ordered") "the class number" else
    if (has_ends(row) && row$predicts == "latent") "uncensored rows"
  row
}

# Returns the number of latent functions: for several unordered classes one less than their number, else 1.
functions_of_f <- function(likelihood) {
  if (identical(response_row(likelihood)$reads, "labels")) length(likelihood$levels) - 1L else 1L
}

# These words name the approximation: `by` in titles, `learned` in the line about estimation, `evidence` for logLik().
approximation_words <- list(
  laplace = c(by = "Laplace approximation", learned = "Laplace log marginal likelihood plus log prior density",
              evidence = "Laplace approximation"),
  vi = c(by = "variational approximation", learned = "variational lower bound plus log prior density",
         evidence = "variational lower bound"))

# Returns the responses `sites` in the form that the C code reads, with `constant` (the terms of log p(y | f) without
# f), `concave` (is log p concave in f?) and `unit`, the scale of f for this likelihood.
engine_sites <- function(likelihood, sites, center) {
  response <- as_response(likelihood)
  if (response$kind == "labels") { # `center` has the constant mean of each class
    K <- length(response$levels)
    return(list(y = sites$y - 1, weight = sites$weight, center = rep_len(as.double(center), K),
                contrasts = class_contrasts(K), variational = 0L, constant = 0 * sites$y, concave = TRUE,
                skewed = TRUE, unit = 1))
  }
  constant <- if (is.null(response$constant)) 0 else response$constant(sites$y, sites$size, response$theta)
  out <- list(name = response$site, y = as.double(sites$y), size = sites$size, weight = sites$weight,
              offset = sites$offset + center, shape = NULL, variational = as.integer(response$approx == "vi"),
              constant = (sites$weight %||% 1) * constant + numeric(length(sites$y)), concave = response$concave,
              unit = likelihood$unit %||% 1,
              skewed = response$reads %in% c("classes", "ordered") && response$approx == "laplace")
  if (is.null(response$shape) && is.null(likelihood$row)) return(out)
  if (is.null(response$engine)) replace(out, "size", list(rep(response$theta, length(out$y)))) else
    response$engine(out, response$theta)
}

# Returns what learning needs from the responses: list(learned, shape, unit, theta_middle, slope, at). `learned` is TRUE
# if theta is learned, `shape` has its names, `unit` is the unit of f, theta_middle the middle of its prior. at(theta,
# center) calls engine_sites() for theta. slope(theta, engine, e) returns the derivative by log theta of Laplace's log
# marginal likelihood or the variational bound, for the sites `engine` = at(theta, center) and their approximation e.
response_to_learn <- function(likelihood, sites) {
  with_theta <- function(theta) replace(likelihood, "theta", list(theta))
  response <- as_response(likelihood)
  w <- sites$weight %||% 1
  slope <- function(theta, engine, e) {
    response <- as_response(with_theta(theta))
    slopes <- function(f) {
      if (is.null(response$theta_slopes)) return(theta_differences(response, sites, f))
      learned <- seq_along(theta) # leaves out parameters that the user gave
      each <- response$theta_slopes(response$theta, engine$y, f) # a column for each shape parameter
      lapply(each, function(v) matrix(v, length(f))[, learned, drop = FALSE])
    }
    if (response$approx == "vi") return(colSums(w * normal_average(function(f) slopes(f)$l, e$f, sqrt(e$q + e$left))))
    at <- slopes(e$f)
    of_penalty <- ifelse(e$W > 0, e$left / (1 + e$left * pmax(e$W, 0)), 0)
    colSums(w * (at$l + e$p * at$g - at$W * (e$q + of_penalty) / 2))
  }
  c(response[c("learned", "shape", "unit")], list(theta_middle = response$middle * response$unit, slope = slope,
    at = function(theta, center) engine_sites(with_theta(theta), sites, center)))
}

# Returns list(l, g, W): the derivatives by log theta of log p(y | f), its first derivative in f, and minus its second,
# from differences of four points. Their error is h^4 / 30 = 3.3e-14 times the fifth derivative, plus rounding.
theta_differences <- function(response, sites, f, h = 1e-3) {
  theta <- response$theta
  sites$weight <- NULL
  base <- engine_sites(response$likelihood, sites, 0)$offset
  at <- function(theta) {
    s <- engine_sites(replace(response$likelihood, "theta", list(theta)), sites, 0)
    value <- native_likelihood(s, f - base + s$offset)
    cbind(value[1L, ] + s$constant, value[2L, ], value[3L, ])
  }
  each <- lapply(seq_along(theta), function(j) {
    move <- function(t) at(replace(theta, j, theta[j] * exp(t)))
    (8 * (move(h) - move(-h)) - (move(2 * h) - move(-2 * h))) / (12 * h)
  })
  lapply(c(l = 1, g = 2, W = 3), function(k) do.call(cbind, lapply(each, function(slope) slope[, k])))
}

# Returns the constant mean at which learning starts; for several classes, the centred log of each class's share.
center_start <- function(likelihood, sites) {
  w <- sites$weight %||% 1
  response <- as_response(likelihood)
  if (response$kind == "labels") {
    log_share <- log(counts_of_classes(sites$y, w, length(response$levels)))
    return(log_share - mean(log_share))
  }
  if (response$reads == "classes") {
    share <- (sum(w * sites$y) + 0.5) / (sum(w * (sites$size %||% 1) + 0 * sites$y) + 1)
    return(response$link$fun(share) - mean(sites$offset))
  }
  (response$start %||% response$link$start)(sites, w)
}

# Returns list(lower, upper), the range of W (minus the second derivative of log p) for f between f - e and f + e.
curvature_range <- function(likelihood, sites, f, e) {
  row <- likelihood$row
  if (!is.null(row$curvature)) { # argument `curvature` of gp_family(), whose result may lack these names
    ends <- c("lower", "upper")
    given <- row$curvature(f - e, f + e, sites$y)
    if (is.list(given) && length(given) == 2L && is.null(names(given))) names(given) <- ends
    refuse_if(!is.list(given) || !all(lengths(given[ends]) %in% c(1L, length(f))), "curvature",
              paste("returns", describe(given)), hint = "It must return list(lower, upper) with a number for each row.")
    return(lapply(given[ends], function(end) rep_len(end, length(f)) * (sites$weight %||% 1)))
  }
  if (!is.null(row)) {
    if (is.null(row$kappa)) return(list(lower = if (row$concave) 0 * f else -Inf + 0 * f, upper = Inf + 0 * f))
    at <- native_likelihood(sites, f)
    # Terms of W that cancel in tails are about as large as kappa times the slope of log p. W may have their rounding.
    room <- 1e-14 * (abs(at[3L, ]) + row$kappa * abs(at[2L, ]))
    growth <- exp(pmin(row$kappa * e, 700))
    return(list(lower = pmax(at[3L, ] - room, 0) / growth, upper = pmax(at[3L, ] + room, 0) * growth))
  }
  range_of_parts(as_response(likelihood), sites, 1e-12, function(part, turns) {
    inside <- lapply(turns, function(turn) pmin(pmax(turn, f - e), f + e))
    lapply(c(list(f - e, f + e), inside), function(at) native_likelihood(part, at)[3L, ])
  })
}

# Returns list(lower, upper), bounds at each row on the average of W = -(log p)'' between f and f + t, for all |t| <= e.
# `range` has bounds on W. If W (or each part of a sum W) has one extreme, its averages are between the smallest and the
# largest of W(f), the averages for t = -e and t = e, and the extreme. Returns `range` if W hardly varies: computed
# averages would lose digits.
average_curvature_range <- function(likelihood, sites, f, e, range) {
  response <- as_response(likelihood)
  wide <- is.finite(e) & range$upper > 1.001 * range$lower
  if (!any(wide)) return(range)
  found <- if (!is.null(likelihood$row)) {
    if (is.null(response$kappa)) return(range)
    o <- pmin(pmax(response$kappa * e, 1e-8), 700)
    Map(`*`, list(lower = -expm1(-o) / o, upper = expm1(o) / o), curvature_range(likelihood, sites, f, 0))
  } else {
    range_of_parts(response, sites, 1e-8, function(part, turns) {
      at <- native_likelihood(part, f)
      average <- function(t) (at[2L, ] - native_likelihood(part, f + t)[2L, ]) / t
      at_turns <- lapply(turns, function(turn) {
        inside <- (abs(turn - f) < e) %in% TRUE
        ifelse(inside, native_likelihood(part, ifelse(inside, turn, f))[3L, ], at[3L, ])
      })
      c(list(at[3L, ], average(-e), average(e)), at_turns)
    })
  }
  sharper <- function(end, tighter) {
    ifelse(wide & is.finite(found[[end]]), tighter(found[[end]], range[[end]]), range[[end]])
  }
  list(lower = sharper("lower", pmax), upper = sharper("upper", pmin))
}

# Checks that the log density of a user's family is concave, if it claims so, and has the claimed bounds. The points f
# are up to 6 units from 0 or a response y, for units from 0.001 to 1e4, if p(y | f) is above e^-500 of its largest
# value. W = -(log p)'' may err by 1e-6 of its maximum.
claims_in_units <- function(likelihood, y) {
  grid <- expand.grid(step = seq(-6, 6, by = 0.25), unit = 10^(-3:4), around = 0:1, y = y)
  grid$f <- grid$unit * grid$step + grid$around * grid$y
  sites <- engine_sites(likelihood, list(y = grid$y, offset = numeric(nrow(grid))), 0)
  now <- native_likelihood(sites, grid$f)
  W <- now[3L, ]
  largest <- function(v, ok) stats::ave(ifelse(ok, v, -Inf), grid$y, FUN = max)
  finite <- colSums(!is.finite(now)) == 0
  used <- finite & now[1L, ] >= largest(now[1L, ], finite) - 500
  room <- 1e-6 * largest(abs(W), used)
  row <- likelihood$row
  e <- rep_len(c(0.1, 0.5, 2), nrow(grid)) * grid$unit
  range <- curvature_range(likelihood, sites, grid$f, e)
  within <- function(t) {
    there <- native_likelihood(sites, grid$f + t * e)[3L, ]
    !is.finite(there) | there >= range$lower - room & there <= range$upper + room
  }
  inside <- if (is.null(row$curvature) && !is.null(row$kappa)) abs(now[4L, ]) <= row$kappa * (1.001 * W + room) else
    Reduce(`&`, lapply(c(-1, -0.6, -0.2, 0.2, 0.6, 1), within))
  claims <- list("the log density is concave" = if (row$concave) W >= -room,
                 "bounds on derivatives (`kappa`, `curvature`)" = inside)
  list(grid = grid[c("f", "y")], claims = lapply(Filter(Negate(is.null), claims), function(ok) ok | !used))
}

# Returns list(lower, upper), bounds on W = -(log p)'', or on averages of W over f. W is a sum over the elements of
# response$parts(sites) or, without it, has one part. The smallest and largest value in values(part, turns) bound the W
# (or its average) of a part, which has its only extremes at f = `turns`. `rounding` widens the bounds.
range_of_parts <- function(response, sites, rounding, values) {
  parts <- if (is.null(response$parts)) list(sites) else response$parts(sites)
  turns <- if (!is.null(response$turns)) response$turns(sites)
  each <- lapply(parts, values, turns)
  lower <- Reduce(`+`, lapply(each, function(part) do.call(pmin, part)))
  upper <- Reduce(`+`, lapply(each, function(part) do.call(pmax, part)))
  list(lower = lower * (1 - rounding * sign(lower)), upper = upper * (1 + rounding * sign(upper)))
}

# Returns P(Y <= t) of counts: a row for each t, a column for each f ~ N(mu, s^2). Columns share values of limit_of_f().
cdf_of_wide <- function(response, t, mu, s) {
  known <- list()
  limit <- function(u, rows) {
    key <- format(u[1L], digits = 15)
    if (is.null(known[[key]])) known[[key]] <<- limit_of_f(response, t, rep(1, length(t)), u[1L])
    known[[key]][rows]
  }
  upto <- function(n) average_over_u(seq_along(t), function(u, i) stats::pnorm((limit(u, i) - mu[n]) / s[n]), 1)
  matrix(vapply(seq_along(mu), upto, t), length(t))
}

# Returns the f at which P(Y <= y | f) = pnorm(-u), by the response's function `limit` or else by bisection.
limit_of_f <- function(response, y, size, u) {
  if (!is.null(response$limit)) return(response$limit(u, y, size, response$theta, response$link))
  bisect(function(f) response$cdf(y, response$link$inv(f), size, response$theta) > stats::pnorm(-u), 0 * y - 700,
         0 * y + 700)
}

# Returns list(z, weight), points and weights of an average over q independent standard normals. For q up to 2 they are
# those of the trapezoid rule, with an error below 1e-5 if the sd of log odds is at most class_points["wide"]. For
# larger q, they are points of a lattice (multiples of roots of primes) and their mirror images. Their error is in
# bench/classes-average.R.
normal_rule <- function(q, step = 0.3, unit = seq_len(class_points[["draws"]])) {
  if (q <= 2L) {
    z <- as.matrix(expand.grid(rep(list(seq(-6.6, 6.6, by = step)), q)))
    weight <- exp(-rowSums(z^2) / 2)
    return(list(z = unname(z), weight = weight / sum(weight)))
  }
  primes <- seq(2, 20 * q)
  for (p in seq(2, sqrt(20 * q))) primes <- primes[primes == p | primes %% p > 0]
  u <- abs(2 * ((unit %o% sqrt(primes[seq_len(q)]) + 0.5) %% 1) - 1)
  z <- stats::qnorm(pmin(pmax(u, 1e-12), 1 - 1e-12))
  list(z = rbind(z, -z), weight = rep(0.5 / length(unit), 2L * length(unit)))
}

# Returns list(mean, sd), n x K matrices: the class probabilities averaged over the log odds `f`, and their sds. For two
# or three classes, wide_moments() averages over log odds with a large variance.
class_moments <- function(f, step = 0.3, ...) {
  q <- ncol(f$mean)
  n <- nrow(f$mean)
  rule <- normal_rule(q, step, ...)
  L <- row_choleskys(f$var, q)
  mean <- square <- matrix(0, n, q + 1L)
  if (q > 2L) { # a product of matrices evaluates all points of the rule for a row
    for (row in seq_len(n)) {
      p <- softmax_of(tcrossprod(rule$z, matrix(L[row, ], q)) + rep(f$mean[row, ], each = nrow(rule$z)))
      mean[row, ] <- rule$weight %*% p
      square[row, ] <- rule$weight %*% p^2
    }
  } else {
    for (s in seq_along(rule$weight)) {
      odds <- f$mean
      for (j in seq_len(q)) odds <- odds + rule$z[s, j] * L[, q * (j - 1L) + seq_len(q), drop = FALSE]
      p <- softmax_of(odds)
      mean <- mean + rule$weight[s] * p
      square <- square + rule$weight[s] * p^2
    }
    for (row in which(widest_odds(f$var, q) > class_points[["wide"]])) {
      at <- wide_moments(f$mean[row, ], matrix(f$var[row, ], q), step)
      mean[row, ] <- at$mean
      square[row, ] <- at$square
    }
  }
  list(mean = pmin(mean, 1), sd = sqrt(pmax(square - mean^2, 0)))
}

# Returns for each row the largest sd of the log odds between two of the q + 1 classes, for q = 1 or 2.
widest_odds <- function(var, q) {
  sqrt(pmax(if (q == 1L) var[, 1L] else pmax(var[, 1L], var[, 4L], var[, 1L] + var[, 4L] - 2 * var[, 2L]), 0))
}

# Returns list(mean, square): the averages of the probabilities of two or three classes, and of their squares. The log
# odds against the first class have the distribution N(mean, S). Let b be the log odds between the two classes for which
# their variance is largest. The trapezoid rule averages over b, in steps of at most 4 times `step`. Given b,
# logistic_moments() averages over the log odds of the third class, whose regression on b has slopes from 0 to 1. Logs
# of averages have a relative error of about 1e-6, except that of a third class with an average below 1e-6.
wide_moments <- function(mean, S, step) {
  q <- length(mean)
  D <- rbind(0, diag(q))
  pairs <- utils::combn(q + 1L, 2L)
  gaps <- D[pairs[1L, ], , drop = FALSE] - D[pairs[2L, ], , drop = FALSE]
  var <- rowSums((gaps %*% S) * gaps)
  widest <- which.max(var)
  sd <- sqrt(var[widest])
  pair <- pairs[, widest]
  middle <- sum(gaps[widest, ] * mean)
  top <- 6.6 + min(sd, abs(middle) / sd, 30) # a small average has its mass at a z of up to sd and |middle| / sd
  z <- seq(-top, top, length.out = 1 + ceiling(2 * top / min(step, max(4 * step / sd, 1e-4))))
  weight <- stats::dnorm(z) / sum(stats::dnorm(z))
  b <- middle + sd * z
  rest <- third <- list(mean = 1, square = 1) # two classes have no third one: `-pair` below is then empty
  if (q == 2L) {
    c <- D[-pair, ] - D[pair[2L], ]
    along <- sum(gaps[widest, ] * (S %*% c)) / sd
    odds <- sum(c * mean) + along * z - pmax(b, 0) - log1p(exp(-abs(b)))
    spread <- sqrt(max(sum(c * (S %*% c)) - along^2, 0))
    third <- logistic_moments(odds, spread)
    rest <- logistic_moments(-odds, spread)
  }
  p <- stats::plogis(cbind(b, -b))
  out <- list(mean = numeric(q + 1L), square = numeric(q + 1L))
  out$mean[pair] <- colSums(weight * rest$mean * p)
  out$square[pair] <- colSums(weight * rest$square * p^2)
  out$mean[-pair] <- sum(weight * third$mean)
  out$square[-pair] <- sum(weight * third$square)
  out
}

# Returns the lower Cholesky factors of q x q covariance matrices. Each matrix is a row of `var`, and each factor a row
# of the result. A pivot that rounding makes negative counts as 0.
row_choleskys <- function(var, q) {
  at <- function(i, j) i + q * (j - 1L)
  for (j in seq_len(q)) {
    for (k in seq_len(j - 1L)) var[, at(j:q, j)] <- var[, at(j:q, j)] - var[, at(j:q, k)] * var[, at(j, k)]
    pivot <- sqrt(pmax(var[, at(j, j)], 0))
    var[, at(j:q, j)] <- var[, at(j:q, j)] / ifelse(pivot > 0, pivot, Inf)
    var[, at(j, j)] <- pivot
    var[, at(seq_len(j - 1L), j)] <- 0
  }
  var
}

# Returns the CRPS of rows `n`: integrals of F(t)^2 over t < y and (1 - F(t))^2 over t > y, F = cdf(n, t). The trapezoid
# rule in z converges exponentially (Takahasi and Mori 1974), with t = y -+ unit exp(pi / 2 sinh(z)), or t = y / (1 +
# exp(pi sinh(z))) below a positive y. `unit` is an eighth of the range of y and `ends`, two quantiles.
crps_by_halves <- function(cdf, n, y, ends, positive) {
  h <- 0.05
  z <- rep(seq(-4, 4, by = h), each = length(n))
  unit <- pmax(ends[, 2L] - ends[, 1L], abs(y - ends[, 1L]), abs(y - ends[, 2L])) / 8
  away <- unit * exp(pi / 2 * sinh(z)) # z repeats each of its values for all rows, so `unit` is recycled
  slope <- pi / 2 * cosh(z) * away
  at <- function(t) cdf(rep_len(n, length(z)), t)
  above <- (1 - at(pmin(y + away, 1e300)))^2 * slope
  below <- if (positive) {
    share <- stats::plogis(-pi * sinh(z))
    at(pmax(y * share, 1e-300))^2 * y * share * (1 - share) * pi * cosh(z)
  } else {
    at(pmax(y - away, -1e300))^2 * slope
  }
  total <- ifelse(is.finite(slope), above, 0) + ifelse(positive | is.finite(slope), below, 0)
  h * rowSums(matrix(total, length(n)))
}
