# Defines the rows of responses that are known up to an interval: ordered classes, censored numbers and times. With T(y)
# = f + s e, the noise e has the distribution function F, and T(y) is known to be in [L, U]:
#
#   p(y | f) = F((U - f) / s) - F((L - f) / s),   or F'((L - f) / s) / s if L = U.
#
# Log-concave noise makes log p concave in f.

# Returns a family in the form that users give.
new_family <- function(family, link, ...) structure(list(family = family, link = link, ...), class = "pfdtc_family")

# Adds the default elements to a row of the table.
with_defaults <- function(row) {
  defaults <- list(conjugate = FALSE, concave = TRUE, discrete = FALSE, middle = 1, shown = identity,
                   draw = function(mean, size, theta) row$quantile(stats::runif(length(mean)), mean, size, theta))
  c(row, defaults[setdiff(names(defaults), names(row))])
}

# Each noise has cdf, quantile, `ratio` ("hazard" or "odds" if that is proportional to e^(-f / s)), growth(s) = E e^(s
# e), `variance` of e, best(L, U, s), the f that makes [L, U] most likely, `parts`, the W of an interval as a sum of
# terms with one extreme each, at `turns`, and `bend`, half of the largest |F''| if F is not symmetric.
noises <- list(
  logistic = list(
    cdf = stats::plogis, quantile = stats::qlogis, variance = pi^2 / 3, ratio = "odds ratio",
    growth = function(s) if (s < 1) pi * s / sin(pi * s) else Inf,
    best = function(L, U, s) (L + U) / 2,
    parts = function(sites) {
      list(replace(sites, "size", list(Inf + 0 * seq_along(sites$size))),
           replace(sites, "y", list(-Inf + 0 * seq_along(sites$y))))
    },
    turns = function(sites) list(sites$y, sites$size)),
  normal = list(
    cdf = stats::pnorm, quantile = stats::qnorm, variance = 1, growth = function(s) exp(s^2 / 2),
    best = function(L, U, s) (L + U) / 2,
    turns = function(sites) list((sites$y + sites$size) / 2)),
  gumbel = list(
    cdf = function(z) -expm1(-exp(z)), quantile = function(p) log(-log1p(-p)), variance = pi^2 / 6,
    ratio = "hazard ratio",
    growth = function(s) gamma(1 + s), bend = 0.1547,
    best = function(L, U, s) {
      ifelse(L == U, L, ifelse(is.infinite(U - L), (L + U) / 2, L + s * log(expm1((U - L) / s) / ((U - L) / s))))
    },
    parts = function(sites) gumbel_parts(sites),
    turns = function(sites) list(gumbel_parts(sites)[[2L]]$size - sites$shape[2L] * log(gumbel_turn))))

# W is the sum of W for a response above L, which decreases in f, and of W for a response below U', where e^U' = e^U -
# e^L in units of s. The second is h(w) (w + h(w) - 1), h(w) = w / (e^w - 1), w = e^((U' - f) / s), with one extreme.
gumbel_turn <- 1.8604709451

gumbel_parts <- function(sites) {
  s <- sites$shape[2L]
  L <- sites$y
  U <- ifelse(L == sites$size, Inf, sites$size + s * log(-expm1(-(sites$size - L) / s)))
  above <- replace(sites, "size", list(Inf + 0 * seq_along(U))) # an exactly observed response has the same W
  list(above, replace(sites, c("y", "size"), list(-Inf + 0 * seq_along(L), U)))
}

# Returns a row of the table. link(mean) is f; up(y, theta) is T(y), or the upper end of a class; down(t, theta) is the
# response with T(y) = t; ends(sites, theta) is list(L, U, scale).
interval_row <- function(noise, name, link, up, down, ends, ...) {
  e <- noises[[noise]]
  engine <- function(sites, theta) {
    at <- ends(sites, theta)
    utils::modifyList(sites, list(y = at$L, size = at$U, shape = c(1, at$scale)))
  }
  scale <- function(theta) ends(list(y = 1, size = 1), theta)$scale
  c(list(...), list(
    name = name, site = noise, engine = engine, parts = e$parts, turns = e$turns, bend = e$bend,
    cdf = function(y, mean, size, theta) e$cdf((up(y, theta) - link(mean)) / scale(theta)),
    quantile = function(p, mean, size, theta) down(link(mean) + scale(theta) * e$quantile(p), theta),
    limit = function(u, y, size, theta, link) up(y, theta) - scale(theta) * e$quantile(stats::pnorm(-u)),
    best = function(sites, theta) do.call(e$best, unname(ends(sites, theta)))))
}

# ---- ordered classes ------------------------------------------------------------------------------------------------

# Returns the cut points of classes 1 to K. The first is 0, because f has a mean; theta has the widths of inner classes.
cut_points <- function(theta) c(-Inf, 0, cumsum(theta), Inf)

ordinal_row <- function(noise, link) {
  e <- noises[[noise]]
  interval_row(
    noise, paste0("ordinal", if (link != "logit") paste0("_", link)), identity, label = "ordered",
    call = sprintf("ordinal(\"%s\")", link), links = link, mean_link = "identity", reads = "ordered", discrete = TRUE,
    shape = function(likelihood) {
      sprintf("width.%s", likelihood$levels[seq_len(max(length(likelihood$levels) - 2L, 0L)) + 1L])
    },
    middle = function(sites, w, levels) pmax(diff(cuts_of_shares(e, sites, w, length(levels))), 1e-3),
    start = function(sites, w) -cuts_of_shares(e, sites, w, max(sites$y, 2))[1L] - mean(sites$offset),
    up = function(y, theta) cut_points(theta)[pmin(pmax(y, 0), length(theta) + 2) + 1],
    down = function(t, theta) findInterval(t, cut_points(theta), left.open = TRUE),
    ends = function(sites, theta) {
      list(L = cut_points(theta)[sites$y], U = cut_points(theta)[sites$y + 1], scale = 1)
    },
    expected = function(f, theta) 1 + Reduce(`+`, lapply(c(0, cumsum(theta)), function(c) 1 - e$cdf(c - f))))
}

# Returns the weighted number of rows of each class, plus a half.
counts_of_classes <- function(y, w, K) vapply(seq_len(K), function(k) sum(w * (y == k)), 0) + 0.5

cuts_of_shares <- function(noise, sites, w, K) {
  counts <- counts_of_classes(sites$y, w, K)
  noise$quantile(cumsum(counts)[-K] / sum(counts))
}

#' @rdname multinomial
#' @export
ordinal <- function(link = c("logit", "probit", "cloglog")) {
  link <- check_choice(link, c("logit", "probit", "cloglog"), "link")
  new_family(paste0("ordinal", if (link != "logit") paste0("_", link)), link)
}

# Defines the rows of censored times and numbers. sites$y and sites$size are the ends of the interval of a response,
# which are equal if it was observed exactly.

# Weibull, log-logistic and log-normal times have log y = f + s e, where theta is s.
times_row <- function(noise, name, label) {
  growth <- noises[[noise]]$growth
  ratio <- noises[[noise]]$ratio
  interval_row(
    noise, name, log, label = label, call = paste0(name, "()"), links = "log", reads = "times", shape = "scale",
    middle = 0.5, up = function(y, theta) log(y), down = function(t, theta) exp(t),
    ends = function(sites, theta) list(L = log(sites$y), U = log(sites$size), scale = theta),
    constant = function(y, size, theta) ifelse(y == size, -log(y), 0),
    start = function(sites, w) middle_of_ends(log(sites$y), log(sites$size), sites$offset),
    ratio = function(theta) if (is.null(ratio)) c("time ratio" = 1) else stats::setNames(-1 / theta, ratio),
    growth = growth, variance = function(mean, sd, size, theta) {
      if (is.finite(growth(2 * theta))) (mean^2 + sd^2) * (growth(2 * theta) / growth(theta)^2 - 1) else Inf + 0 * mean
    })
}

# A censored normal response has y = f + s e.
tobit_row <- interval_row(
  "normal", "tobit", identity, label = "censored normal", call = "tobit()", links = "identity", reads = "censored",
  shape = "scale", middle = 0.5, up = function(y, theta) y, down = function(t, theta) t,
  ends = function(sites, theta) list(L = sites$y, U = sites$size, scale = theta),
  start = function(sites, w) middle_of_ends(sites$y, sites$size, sites$offset),
  variance = function(mean, sd, size, theta) theta^2 + 0 * mean)

# Returns the median of the middles of the intervals, or of their known ends; 0 if no end is known.
middle_of_ends <- function(L, U, offset) {
  known <- known_numbers(L, U) - offset
  if (all(is.na(known))) 0 else stats::median(known, na.rm = TRUE)
}

known_numbers <- function(L, U) {
  ifelse(is.finite(L) & is.finite(U), (L + U) / 2, ifelse(is.finite(L), L, ifelse(is.finite(U), U, NA)))
}

# Returns TRUE if responses are known up to an interval, whose upper end is in sites$size.
has_ends <- function(response) response$reads %in% c("times", "censored")

#' Model times until an event, and censored numbers
#'
#' These functions make families for the argument `family` of [pfdtc()]. `weibull()`, `loglogistic()` and `lognormal()`
#' are for positive times with \eqn{\log y = f + s\,e}{log y = f + s e}, which may be censored. The response is
#' `survival::Surv(time, event)` of type right, left or interval, or a vector of uncensored times. `tobit()` is for
#' numbers with normal noise that are censored below `left` or above `right`, such as concentrations under a detection
#' limit.
#'
#' The noise \eqn{e} has a Gumbel (`weibull()`), logistic (`loglogistic()`) or normal (`lognormal()`) distribution, as
#' in `survival::survreg()`. Larger \eqn{f} means longer times. For a `Surv` response without `family`, all three are
#' fitted, and the fit with the largest log marginal likelihood is returned.
#'
#' `predict()` has `type = "median"`, `"survival"` at `times`, `"quantile"` at `probs` and `"response"`. The latter is
#' the mean time, which is infinite for `loglogistic()` with a scale of 1 or more. All types average over the posterior
#' of f. For `tobit()` they predict the uncensored number. If the limits differ between rows, use a `Surv` response
#' instead of `tobit()`.
#' @param scale the scale \eqn{s}; for `tobit()` the noise sd, in units of the response. Default: learned.
#' @param left,right limits, `left` below `right`. A response at or beyond a limit is censored at the limit.
#' @return An object of class `pfdtc_family`.
#' @source Kalbfleisch and Prentice (2002), *The Statistical Analysis of Failure Time Data*, section 3; Tobin (1958),
#'   Econometrica 26.
#' @seealso [pfdtc()], [predict.gp_fit()], `vignette("survival")`
#' @examples
#' if (requireNamespace("survival", quietly = TRUE)) {
#'   fit <- pfdtc(survival::Surv(time, status) ~ karno + age, survival::veteran, family = weibull(),
#'                kernel = kernel_se())
#'   print(fit)
#'   new <- data.frame(karno = c(30, 90), age = 60)
#'   predict(fit, new, type = "survival", times = c(30, 180, 365))
#' }
#' d <- transform(cars, dist = pmin(dist, 60))
#' fit <- pfdtc(dist ~ speed, d, family = tobit(right = 60), kernel = kernel_se())
#' predict(fit, data.frame(speed = 24))
#' @export
weibull <- function(scale = NULL) times_family("weibull", scale)

#' @rdname weibull
#' @export
loglogistic <- function(scale = NULL) times_family("loglogistic", scale)

#' @rdname weibull
#' @export
lognormal <- function(scale = NULL) times_family("lognormal", scale)

times_family <- function(name, scale, link = "log", ...) {
  if (!is.null(scale)) scale <- check_positive(scale, "scale", 1L)
  new_family(name, link, theta = scale, ...)
}

#' @rdname weibull
#' @export
tobit <- function(left = -Inf, right = Inf, scale = NULL) {
  number <- function(v, name) check_number(v, name, "a number", function(v) TRUE)
  left <- number(left, "left")
  right <- number(right, "right")
  if (left >= right) abort_input("left", sprintf("is %s, but must be below `right`, %s", format(left), format(right)))
  times_family("tobit", scale, "identity", ends = c(left, right))
}

# ---- reading --------------------------------------------------------------------------------------------------------

# Returns list(y, size, response): the ends of the interval of each row, and a number to draw in figures.
read_censored <- function(response, argument, n, likelihood, positive) {
  if (inherits(response, "Surv")) {
    type <- attr(response, "type")
    refuse_if(!type %in% c("right", "left", "interval"), argument, sprintf("is a Surv object of type \"%s\"", type),
              hint = "Use type right, left or interval. Delayed entry and several events are not available.")
    m <- unclass(response)
    time <- m[, if (type == "interval") "time1" else "time"]
    # In the code of an interval, 0 is right-censored, 1 observed, 2 left-censored and 3 an interval.
    status <- if (type == "left") ifelse(m[, "status"] == 1, 1, 2) else m[, "status"]
    L <- ifelse(status == 2, if (positive) 0 else -Inf, time)
    U <- ifelse(status == 0, Inf, if (type == "interval") ifelse(status == 3, m[, "time2"], time) else time)
    bad <- which(is.na(L + U) & !(is.infinite(L) & is.infinite(U)) | L > U | L == Inf | U == -Inf |
                   positive & (L < 0 | U <= 0))
    if (length(bad)) {
      abort_input(argument, time[bad[1L]],
                  paste0(if (positive) "finite times above 0" else "finite numbers",
                         ", in intervals whose first end is the smaller one"),
                  where = sprintf("row %d", bad[1L]))
    }
    L <- unname(as.double(L))
    U <- unname(as.double(U))
  } else {
    y <- if (positive) read_numbers(response, argument, n, function(y) y > 0, "positive numbers") else
      check_vector(response, argument, n)
    limit <- likelihood$ends %||% c(-Inf, Inf)
    L <- ifelse(y <= limit[1L], -Inf, pmin(y, limit[2L]))
    U <- ifelse(y >= limit[2L], Inf, pmax(y, limit[1L]))
  }
  if (!any(is.finite(U) & is.finite(L))) {
    tell_classed("one_value", "All responses are censored. Predictions depend on the priors.")
  }
  known <- known_numbers(L, U)
  list(y = L, size = U, response = ifelse(is.na(known), 0, known))
}

# Returns a numeric response whose elements are all ok().
read_numbers <- function(response, argument, n, ok, want) {
  y <- check_vector(response, argument, n)
  bad <- which(!ok(y))
  if (length(bad)) abort_input(argument, y[bad[1L]], want, where = sprintf("element %d", bad[1L]))
  y
}
