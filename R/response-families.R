# Defines families beyond glm(): ordered classes, censored numbers and times, and likelihoods by a user's expression.
#
# With a transform T (log for times), T(y) = f + s e for noise e with cdf F. If T(y) is known to be in [L, U],
#
#   p(y | f) = F((U - f) / s) - F((L - f) / s),   or F'((L - f) / s) / s if L = U.
#
# If F' is log-concave, p is log-concave in f.

new_family <- function(family, link, ...) structure(list(family = family, link = link, ...), class = "pfdtc_family")

# Adds defaults to a row of the table of likelihoods (response-table.R).
with_defaults <- function(row) {
  defaults <- list(conjugate = FALSE, concave = TRUE, discrete = FALSE, middle = 1, shown = identity,
                   growth = function(theta) 1,
                   draw = function(mean, size, theta) row$quantile(stats::runif(length(mean)), mean, size, theta))
  c(row, defaults[setdiff(names(defaults), names(row))])
}

# Each entry describes noise e with cdf F in T(y) = f + s e. growth(s) is E e^(s e). best(L, U, s) is the f for which
# T(y) is most likely in [L, U]. `ratio` names the factor e^(-f / s) of hazard or odds. W = -(log p)'' is the sum of the
# W of parts(sites) (normal: one part), with extremes at f in turns(sites). For asymmetric F, `bend` bounds |F''|/2.
noises <- list(
  logistic = list(
    cdf = stats::plogis, quantile = stats::qlogis, ratio = "odds ratio",
    growth = function(s) if (s < 1) pi * s / sin(pi * s) else Inf, best = function(L, U, s) (L + U) / 2,
    parts = function(sites) {
      list(replace(sites, "size", list(Inf + 0 * seq_along(sites$size))),
           replace(sites, "y", list(-Inf + 0 * seq_along(sites$y))))
    },
    turns = function(sites) list(sites$y, sites$size)),
  normal = list(
    cdf = stats::pnorm, quantile = stats::qnorm, growth = function(s) exp(s^2 / 2),
    best = function(L, U, s) (L + U) / 2,
    turns = function(sites) list((sites$y + sites$size) / 2)),
  gumbel = list(
    cdf = function(z) -expm1(-exp(z)), quantile = function(p) log(-log1p(-p)), ratio = "hazard ratio",
    growth = function(s) gamma(1 + s), bend = 0.1547,
    best = function(L, U, s) {
      ifelse(L == U, L, ifelse(is.infinite(U - L), (L + U) / 2, L + s * log(expm1((U - L) / s) / ((U - L) / s))))
    },
    parts = function(sites) gumbel_parts(sites),
    turns = function(sites) list(gumbel_parts(sites)[[2L]]$size - sites$shape[2L] * log(gumbel_turn))))

# gumbel_parts() splits W (minus the second derivative of log p in f) of an interval [L, U] with Gumbel noise into two
# terms. One is W of a response known to be above L, and monotone in f. The other is h (w + h - 1) / s^2, where h = w /
# (e^w - 1), w = e^((U' - f) / s) and e^(U' / s) = e^(U / s) - e^(L / s). It is largest at w = gumbel_turn.
gumbel_turn <- 1.8604709451

gumbel_parts <- function(sites) {
  s <- sites$shape[2L]
  L <- sites$y
  U <- ifelse(L == sites$size, Inf, sites$size + s * log(-expm1(-(sites$size - L) / s)))
  above <- replace(sites, "size", list(Inf + 0 * seq_along(U))) # -(log p)'' is the same if L = U (observed)
  list(above, replace(sites, c("y", "size"), list(-Inf + 0 * seq_along(L), U)))
}

# Returns a row of the table of likelihoods for responses y with T(y) = f + scale e (noise e, shape parameters theta).
# link(mean) returns f, up(y, theta) T(y) (for a class its upper cut point), down(t, theta) the y with T(y) = t, and
# ends(sites, theta) list(L, U, scale) with T(y) in [L, U]. By default, learning starts f at the median over rows of the
# middle (or the finite end) of [L, U], or at 0 if no end is finite.
interval_row <- function(noise, name, link, up, down, ends, start = NULL, ...) {
  e <- noises[[noise]]
  engine <- function(sites, theta) {
    at <- ends(sites, theta)
    utils::modifyList(sites, list(y = at$L, size = at$U, shape = c(1, at$scale)))
  }
  scale <- function(theta) ends(list(y = 1, size = 1), theta)$scale
  if (is.null(start)) start <- function(sites, w) {
    at <- ends(sites, 1)
    known <- known_numbers(at$L, at$U) - sites$offset
    if (all(is.na(known))) 0 else stats::median(known, na.rm = TRUE)
  }
  c(list(...), list(
    name = name, site = noise, engine = engine, start = start, parts = e$parts, turns = e$turns, bend = e$bend,
    cdf = function(y, mean, size, theta) e$cdf((up(y, theta) - link(mean)) / scale(theta)),
    quantile = function(p, mean, size, theta) down(link(mean) + scale(theta) * e$quantile(p), theta),
    limit = function(u, y, size, theta, link) up(y, theta) - scale(theta) * e$quantile(stats::pnorm(-u)),
    best = function(sites, theta) do.call(e$best, unname(ends(sites, theta)))))
}

# Returns the cut points of f between classes. The first finite one is 0, as f has a constant mean. theta has the gaps.
cut_points <- function(theta) c(-Inf, 0, cumsum(theta), Inf)

ordinal_row <- function(noise, link) {
  e <- noises[[noise]]
  cuts <- function(sites, w, K) { # cut points from the shares of classes
    counts <- counts_of_classes(sites$y, w, K)
    e$quantile(cumsum(counts)[-K] / sum(counts))
  }
  interval_row(noise, paste0("ordinal", if (link != "logit") paste0("_", link)), identity, label = "ordered",
    call = sprintf("ordinal(\"%s\")", link), links = link, mean_link = "identity", reads = "ordered", discrete = TRUE,
    shape = function(likelihood) {
      sprintf("width.%s", likelihood$levels[seq_len(max(length(likelihood$levels) - 2L, 0L)) + 1L])
    },
    middle = function(sites, w, levels) pmax(diff(cuts(sites, w, length(levels))), 1e-3),
    start = function(sites, w) -cuts(sites, w, max(sites$y, 2))[1L] - mean(sites$offset),
    # In 3 of 58 samples of ordered classes, leave-one-out misfit exceeded 2.5 standard errors (bench/ordered-misfit.R).
    rival = list(family = "multinomial", beyond = 2.5, errors = 2, instead = "`family = ordinal()` has one f.",
                 why = "inputs change the odds of single classes in ways that this family does not allow"),
    up = function(y, theta) cut_points(theta)[pmin(pmax(y, 0), length(theta) + 2) + 1],
    down = function(t, theta) findInterval(t, cut_points(theta), left.open = TRUE),
    ends = function(sites, theta) list(L = cut_points(theta)[sites$y], U = cut_points(theta)[sites$y + 1], scale = 1),
    expected = function(f, theta) 1 + Reduce(`+`, lapply(c(0, cumsum(theta)), function(c) 1 - e$cdf(c - f))))
}

# Returns the weighted number of rows of each class, plus 1/2 so that none is 0.
counts_of_classes <- function(y, w, K) vapply(seq_len(K), function(k) sum(w * (y == k)), 0) + 0.5

#' @rdname multinomial
#' @export
ordinal <- function(link = c("logit", "probit", "cloglog")) {
  refuse_if(identical(link, "log"), "link", describe(link), "\"logit\", \"probit\" or \"cloglog\"") # would be "logit"
  link <- check_choice(link, c("logit", "probit", "cloglog"), "link")
  new_family(paste0("ordinal", if (link != "logit") paste0("_", link)), link)
}

# Returns a row of the table of likelihoods for Weibull, log-logistic or log-normal times y = e^(f + theta e), e: noise.
times_row <- function(noise, name, label) {
  growth <- noises[[noise]]$growth
  ratio <- noises[[noise]]$ratio
  interval_row(
    noise, name, log, label = label, call = paste0(name, "()"), links = "log", reads = "times", shape = "scale",
    shape_label = "scale of the log response", middle = 0.5,
    up = function(y, theta) log(y), down = function(t, theta) exp(t),
    ends = function(sites, theta) list(L = log(sites$y), U = log(sites$size), scale = theta),
    constant = function(y, size, theta) ifelse(y == size, -log(y), 0),
    ratio = function(theta) if (is.null(ratio)) c("time ratio" = 1) else stats::setNames(-1 / theta, ratio),
    growth = growth, variance = function(mean, sd, size, theta) {
      if (is.finite(growth(2 * theta))) (mean^2 + sd^2) * (growth(2 * theta) / growth(theta)^2 - 1) else Inf + 0 * mean
    })
}

# The uncensored number of a censored normal response is f + theta e, for standard normal noise e.
tobit_row <- interval_row(
  "normal", "tobit", identity, label = "censored normal", call = "tobit()", links = "identity", reads = "censored",
  shape = "scale", shape_label = "noise sd", middle = 0.5, up = function(y, theta) y, down = function(t, theta) t,
  ends = function(sites, theta) list(L = sites$y, U = sites$size, scale = theta),
  variance = function(mean, sd, size, theta) theta^2 + 0 * mean)

# Returns the middle of each interval [L, U], its finite end if the other is infinite, or NA if both are infinite.
known_numbers <- function(L, U) {
  ifelse(is.finite(L) & is.finite(U), (L + U) / 2, ifelse(is.finite(L), L, ifelse(is.finite(U), U, NA)))
}

# Returns TRUE for times and censored numbers, which are known to be from sites$y to sites$size.
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
#' `predict()` has `type = "median"`, `"survival"` at `times`, `"quantile"` at `probs` and `"response"`, the mean
#' time, which is infinite for `loglogistic()` with a scale of 1 or more. All types average over the posterior
#' of f. `tobit()` has all of these types except `"survival"`; they predict the uncensored number. If the limits
#' differ between rows, use a `Surv` response.
#' @param scale,... the scale \eqn{s}; for `tobit()` the noise sd, in units of the response. Default: learned. `...` is
#'   not used.
#' @param left,right limits: one finite at least, or a `Surv` response. A response beyond a limit is censored at it.
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
weibull <- function(scale = NULL) new_family("weibull", "log", theta = positive_or_null(scale, "scale"))

#' @rdname weibull
#' @export
loglogistic <- function(scale = NULL) new_family("loglogistic", "log", theta = positive_or_null(scale, "scale"))

#' @rdname weibull
#' @export
lognormal <- function(scale = NULL) new_family("lognormal", "log", theta = positive_or_null(scale, "scale"))

#' @rdname weibull
#' @export
tobit <- function(left = -Inf, right = Inf, scale = NULL, ...) {
  check_dots_empty()
  left <- check_number(left, "left", "a number", is.numeric)
  right <- check_number(right, "right", "a number", is.numeric)
  if (left >= right) abort_input("left", sprintf("is %s, but must be below `right`, %s", format(left), format(right)))
  new_family("tobit", "identity", theta = positive_or_null(scale, "scale"), ends = c(left, right))
}

# Defines a likelihood by a user's expression of log p(y | f). stats::D() gives derivatives. C code evaluates log p and
# its derivatives as programs (vectors of numbers, see program_of()).

#' Define a likelihood
#'
#' `gp_family()` makes a likelihood for the argument `family` of [pfdtc()]. The log density l of a response is an
#' expression in the latent value `f`, the response `y` and parameters; [stats::D()] computes its derivatives.
#' `check_family()` checks derivatives, concavity and the bounds `kappa` and `curvature` on a grid of `f`.
#' @param log_density a formula such as `~ y * f - exp(f)`, or a one-line function of `f`, `y` and parameters.
#' @param parameters a named list of positive numbers. `NA`: learned.
#' @param concave is the log density concave in `f` for every `y`?
#' @param kappa a number such that the second and third derivatives of l in `f` satisfy \eqn{|l'''| \le \kappa
#'   |l''|}{|l'''| <= kappa |l''|} for all `f`.
#' @param curvature a function of `lower`, `upper` and `y` that returns `list(lower, upper)`: bounds on minus the second
#'   derivative for `f` between `lower` and `upper`.
#' @param expected a formula in `f` and `y`: a positive weight for the mode search if the log density is not concave.
#' @param mean a formula in `f` for the mean response, needed to predict it.
#' @param support a function of `y` that returns `TRUE` for possible responses.
#' @param family [poisson()], [nb()], `Gamma("log")`, [tweedie()], [student()] or a `gp_family()`.
#'   Parameters to learn are checked at 1.
#' @param y,f responses and values of `f` to check at. For `gp_family()`, concavity and bounds are also checked for `f`
#'   within 0.006, 0.06, ..., 60,000 of 0 and of `y`.
#' @return `gp_family()`: an object of class `pfdtc_family`. `check_family()`: a data frame with the columns `claim`,
#'   `holds`, and `f` and `y` of the first failure.
#' @details A fit checks the stated properties at up to 40 responses on grids of `f`, and raises an error if one fails.
#'   A grid is no proof: certificates of the fit are valid only if the stated properties hold. Without `kappa` and
#'   `curvature`, certified intervals of the sd can be wide. A log density that is not concave requires `expected`, for
#'   example the expected value of minus the second derivative. The posterior may then have several modes, and without
#'   `curvature` nothing is certified.
#'
#' Terms with `f` may use `exp`, `log`, `sqrt`, `log1p`, `expm1`, `sin`, `cos`, `pnorm` and `dnorm`; other terms may use
#' any function. If a term without `f` and without learned parameters is omitted, the log marginal likelihood shifts by
#' a constant. There are no prediction intervals, quantiles, draws or deviance; only `"response"` and `"loo"` residuals.
#' @seealso [pfdtc()], [certify()], `vignette("likelihoods")`
#' @examples
#' # Poisson counts
#' counts <- gp_family(~ y * f - exp(f) - lgamma(y + 1), kappa = 1, mean = ~ exp(f),
#'                     support = function(y) y >= 0 & y == round(y))
#' check_family(counts, y = 0:5)
#' fit <- pfdtc(count ~ as.numeric(spray), InsectSprays, family = counts, kernel = kernel_se())
#' predict(fit, type = "response")[1:3]
#' @export
gp_family <- function(log_density, parameters = list(), concave = TRUE, kappa = NULL, curvature = NULL,
                      expected = NULL, mean = NULL, support = NULL) {
  check_given("log_density", "Give a formula such as ~ y * f - exp(f).")
  concave <- check_flag(concave, "concave")
  parameters <- unlist(parameters)
  refuse_if(length(parameters) && any((names(parameters) %||% "") %in% c("", "f", "y")), "parameters",
            "has no names, or one that is empty, `f` or `y`", hint = "Name them, as in list(k = 2).")
  known <- parameters[!is.na(parameters)]
  if (length(known)) check_positive(known, "parameters")
  if (!is.null(kappa)) kappa <- check_at_least_0(kappa, "kappa")
  refuse_if(!is.null(curvature) && !is.function(curvature), "curvature", describe(curvature), "a function")
  refuse_if(!is.null(support) && !is.function(support), "support", describe(support), "a function of `y`")
  names <- c("f", "y", names(parameters))
  whole <- expression_of(log_density, "log_density", names)
  terms <- terms_of_sum(whole)
  in_f <- vapply(terms, function(term) "f" %in% all.vars(term), NA)
  if (!any(in_f)) abort_input("log_density", sprintf("has no `f`: %s", deparse1(whole)))
  l <- sum_of_terms(terms[in_f])
  slope <- function(e) {
    tryCatch(stats::D(e, "f"), error = function(e) {
      abort_input("log_density", sprintf("has no derivative: %s", deparse1(whole)), hint = conditionMessage(e))
    })
  }
  g <- slope(l)
  W <- call("-", slope(g))
  weight <- if (is.null(expected)) W else expression_of(expected, "expected", names)
  refuse_if(!concave && is.null(expected), "expected", "is missing",
            hint = "The log density is not concave. Give a positive weight.")
  programs <- list(l, g, W, call("-", slope(W)), weight)
  learned <- names(parameters)[is.na(parameters)]
  values <- function(theta) c(as.list(known), stats::setNames(as.list(theta), learned))
  lapply(programs, program_of, values = values(rep(1, length(learned)))) # stops at functions that the engine lacks
  row <- with_defaults(list(
    name = "own", label = "user-defined", call = "gp_family()", links = "latent", reads = "own", concave = concave,
    site = if (concave) "own" else "own_expected", shape = if (length(learned)) learned, support = support,
    kappa = kappa, curvature = curvature,
    constant = if (!all(in_f)) {
      rest <- sum_of_terms(terms[!in_f])
      function(y, size, theta) eval(rest, c(values(theta), list(y = y)), asNamespace("stats"))
    },
    engine = function(sites, theta) {
      replace(sites, c("size", "shape"), list(NULL, engine_programs(programs, values(theta))))
    },
    expected = if (!is.null(mean)) {
      mean_given <- expression_of(mean, "mean", names)
      function(f, theta) eval(mean_given, c(values(theta), list(f = f)), asNamespace("stats")) + 0 * f
    } else {
      function(f, theta) NA_real_ * f
    }))
  new_family("own", "latent", row = row, text = deparse1(whole))
}

# Returns the expression in a one-sided formula, or in the body of a function.
expression_of <- function(given, argument, names) {
  e <- if (inherits(given, "formula")) given[[length(given)]] else if (is.function(given)) body(given)
  if (is.call(e) && identical(e[[1L]], as.name("{")) && length(e) == 2L) e <- e[[2L]]
  if (is.null(e)) abort_input(argument, describe(given), "a formula such as ~ y * f - exp(f)")
  unknown <- setdiff(all.vars(e), c(names, "pi"))
  refuse_if(length(unknown), argument,
            sprintf("has %s, which is neither `f`, `y` nor a parameter", list_quoted(unknown)),
            hint = sprintf("Give its value, as in parameters = list(%s = 2).", unknown[1L]))
  e
}

sum_of_terms <- function(terms) Reduce(function(a, b) call("+", a, b), terms)

# Returns the terms of a sum of calls, each with its sign.
terms_of_sum <- function(e) {
  operator <- if (is.call(e)) as.character(e[[1L]])[1L] else ""
  if (operator == "(") return(terms_of_sum(e[[2L]]))
  if (!operator %in% c("+", "-")) return(list(e))
  last <- terms_of_sum(e[[length(e)]])
  if (operator == "-") last <- lapply(last, function(term) call("-", term))
  c(if (length(e) == 3L) terms_of_sum(e[[2L]]), last)
}

# A program is a vector of these numbers, which C code reads as an expression of f and y in reverse Polish notation.
program_steps <- c(number = 0, f = 1, y = 2, "+" = 3, "-" = 4, "*" = 5, "/" = 6, "^" = 7, negate = 8, exp = 9, log = 10,
                   sqrt = 11, log1p = 12, expm1 = 13, sin = 14, cos = 15, pnorm = 16, dnorm = 17)

# Returns the program that evaluates expression e, a vector of operations and constants. `values` has e's parameters.
program_of <- function(e, values) {
  if (!any(c("f", "y") %in% all.vars(e))) {
    return(c(program_steps[["number"]], as.double(eval(e, values, asNamespace("stats")))))
  }
  if (is.name(e)) return(program_steps[[as.character(e)]])
  operator <- as.character(e[[1L]])[1L]
  if (operator == "(" || operator == "+" && length(e) == 2L) return(program_of(e[[2L]], values))
  if (operator == "-" && length(e) == 2L) operator <- "negate"
  wanted <- if (operator %in% c("+", "-", "*", "/", "^")) 3L else 2L
  refuse_if(!operator %in% names(program_steps)[-(1:3)] || length(e) != wanted, "log_density",
            sprintf("has %s, which is not available", deparse1(e)),
            hint = sprintf("Terms with `f` may have %s. Terms without `f` may have any function.",
                           toString(names(program_steps)[-c(1:3, 9)])))
  c(unlist(lapply(as.list(e)[-1L], program_of, values)), program_steps[[operator]])
}

engine_programs <- function(programs, values) {
  steps <- lapply(programs, function(e) {
    step <- program_of(e, values)
    c(length(step), step)
  })
  as.double(c(1, 1, 7 + cumsum(c(0, lengths(steps)))[seq_along(steps)], unlist(steps)))
}

check_distribution <- function(fit, argument = "fit") {
  if (is.null(fit$likelihood$row)) return(invisible())
  abort_input(argument, "has a family by gp_family(), whose distribution function is unknown")
}

# Returns a sentence on what certificates assume without proof about a family by gp_family(); NULL for other families.
stated_claims <- function(likelihood) {
  row <- likelihood$row
  if (is.null(row)) return(NULL)
  said <- c(if (row$concave) "the log density l is concave in f",
            if (!is.null(row$kappa)) sprintf("|l'''| <= %s |l''|", format(row$kappa)),
            if (!is.null(row$curvature)) "`curvature` bounds l''")
  if (length(said)) sprintf("stated by the family, not proved: %s", paste(said, collapse = ", "))
}
