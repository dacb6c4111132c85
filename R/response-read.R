# Reads the argument `family` as users give it, and reads and checks responses.

#' @rdname student
#' @export
nb <- function(theta = NULL) new_family("nb", "log", theta = positive_or_null(theta, "theta"))

#' Model outliers, overdispersed counts, and amounts with zeros
#'
#' These functions make families for `family` of [pfdtc()].
#'
#' * `student()` is for responses with outliers: \eqn{y = f + s\,t}{y = f + s t}, where \eqn{t} has Student's
#'   distribution with `df` degrees of freedom. Responses far from \eqn{f} have little influence.
#' * `nb()` is negative binomial with the log link, for counts with variance \eqn{\mu + \mu^2 / \theta}.
#' * `tweedie()` is for numbers of at least 0, some of them exactly 0, such as rain or claims. The mean is \eqn{\mu =
#'   e^f}{mu = e^f} and the variance \eqn{\phi\mu^p}{phi mu^p} with \eqn{1 < p < 2}. Such a response is the sum of a
#'   Poisson number of gamma variables. A learned \eqn{p} is at least 1.01, for small whole numbers at least 1.2.
#' @param df degrees of freedom, at least 1 (4 is common, 1 is Cauchy); learned only if `family` was not given.
#' @param sigma the scale \eqn{s}, in units of the response. Default: learned.
#' @param theta the size parameter of `nb()`, see Details. Default: learned.
#' @param p,phi the power, between 1 and 2, and the dispersion. `phi` requires `p`. Default: learned.
#' @return An object of class `pfdtc_family`.
#' @details With Student's t the posterior may have several modes. Laplace's approximation uses the mode that is reached
#'   from a start at or near the prior mean, by steps that each increase the posterior density. [certify()] tries to
#'   prove that the posterior of the exact GP has exactly one mode in a range around this mode. If the proof fails (many
#'   outliers or few points), intervals are infinite. For `student()`, [evidence_bounds()] needs `approx = "vi"`.
#' @source Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, section 3.7; Dunn and Smyth (2005),
#'   Statistics and Computing 15.
#' @seealso [pfdtc()], [gp_hurdle()] for many zeros, `Gamma("log")` for positive numbers, `vignette("likelihoods")`
#' @examples
#' d <- transform(cars, dist = replace(dist, 10, 400))
#' fit <- pfdtc(dist ~ speed, d, family = student(4), kernel = kernel_se())
#' coef(fit)["sigma"]
#' nb(theta = 2)
#' d <- data.frame(x = 1:40 / 10)
#' d$rain <- pmax(0, round(3 * sin(d$x) + cos(40 * d$x), 2))
#' fit <- pfdtc(rain ~ x, d, family = tweedie(1.5), kernel = kernel_se())
#' predict(fit, data.frame(x = c(1, 3)), type = "response", interval = "prediction")
#' @export
student <- function(df = 4, sigma = NULL) {
  df <- check_positive(df, "df", 1L)
  refuse_if(df < 1, "df", format(df), "at least 1")
  new_family("student", "identity", df = df, theta = positive_or_null(sigma, "sigma"))
}

#' @export
print.pfdtc_family <- print_lines(function(x) {
  if (!is.null(x$row)) return(sprintf("Family: log density %s", x$text))
  response <- as_response(as_likelihood(x))
  value <- if (is.null(x$theta)) "learned" else format(response$shown(x$theta), digits = 4)
  shape <- if (length(response$shape)) paste0(response$shape_label %||% response$shape, ": ", value)
  paste("Family:", paste(c(response$full_label, shape), collapse = ", "))
})

# Returns the family of a fit as an object that the argument `family` accepts.
#' @rdname gp_fit-regression
#' @method family gp_fit
#' @rawNamespace S3method(stats::family,gp_fit)
family.gp_fit <- function(object, ...) {
  likelihood <- object$likelihood
  row <- response_row(likelihood)
  if (!is.null(likelihood$row)) {
    return(new_family("own", "latent", text = sub("^log density ", "", likelihood$label), row = row,
                      theta = likelihood$theta))
  }
  make <- get0(row$name, asNamespace("stats"), inherits = FALSE)
  if (!is.null(make)) {
    given <- likelihood["theta"][!is.null(likelihood$theta)]
    return(structure(c(do.call(make, as.list(likelihood$link)), given), class = "family"))
  }
  kept <- intersect(c("df", "ends", "from"), names(likelihood))
  do.call(new_family, c(list(row$name, likelihood$link), likelihood[kept], likelihood["theta"]))
}

# Returns the likelihood that a family describes, or NULL for Gaussian responses.
as_likelihood <- function(family, approx = "laplace") {
  if (is.null(family)) return(NULL)
  approx <- check_choice(approx, c("laplace", "vi"), "approx")
  if (is.character(family) && length(family) == 1L && family %in% names(response_rows)) {
    family <- get0(family, asNamespace("pfdtc"), inherits = FALSE, ifnotfound = get(family, asNamespace("stats")))
  }
  if (is.function(family)) family <- tryCatch(family(), error = function(e) family)
  if (inherits(family, "family") && grepl("^negative binomial", family$family, ignore.case = TRUE)) {
    # Families of mgcv and MASS have theta, or lack theta if it is to be learned.
    theta <- if (!isTRUE(family$n.theta > 0)) if (is.null(family$n.theta))
      get0(".Theta", environment(family$variance)) else family$getTheta(TRUE)
    family <- replace(nb(theta), "link", family$link)
  }
  refuse_if(!inherits(family, c("family", "pfdtc_family")), "family", describe(family), "a family, such as binomial()",
            hint = c(if (is.character(family)) did_you_mean(family[1L], names(response_rows), TRUE),
                     "See `family` in ?pfdtc."),
            message = if (is.character(family) && length(family) == 1L) sprintf("Unknown `family` \"%s\".", family))
  row <- family$row %||% response_rows[[family$family]]
  if (!family$link %in% row$links) {
    of_mgcv <- c(tweedie = "tweedie()", ordered = "ordinal()", scaled = "student()")
    own <- of_mgcv[tolower(sub("[^A-Za-z].*", "", family$family))]
    abort_input("family", if (is.null(row)) sprintf("%s() is not available", family$family) else
      sprintf("= %s() is not available with the link \"%s\"", family$family, family$link), hint = if (!is.na(own))
        sprintf("Use %s of this package.", own) else if (!is.null(row))
          sprintf("Use %s.", list_quoted(sprintf("%s(\"%s\")", family$family, row$links), "", last = "or")) else
            "See ?pfdtc: nb() is for overdispersed counts, Gamma(\"log\") for positive numbers.")
  }
  refuse_if(row$conjugate && approx == "vi", "approx", "= \"vi\" is only for families of non-Gaussian responses",
            hint = "Give `family`, or leave it out.")
  if (row$conjugate) return(NULL)
  refuse_if(row$reads == "labels" && approx == "vi", "approx", "= \"vi\" is not available for several classes",
            hint = "Leave it out: they are fitted by Laplace's approximation.")
  label <- if (!is.null(family$text)) sprintf("log density %s", family$text) else
    paste(c(row$label, if (!is.null(family$df)) row$known(family$df),
            if (any(is.finite(family$ends))) paste("limits", paste(family$ends, collapse = " and ")),
            if (family$link != "identity") paste(family$link, "link")), collapse = ", ")
  c(list(name = row$name, link = family$link, approx = approx, label = label,
       theta = family$theta, df = family$df, unit = 1, site = row$site %||% family$link,
       learned = !is.null(row$shape) && is.null(family$theta), levels = NULL),
    family[intersect(c("ends", "row", "open", "from"), names(family))])
}

# Returns list(response, y, size, weight, levels). `response` is for residuals (successes as shares). y has numbers,
# counts, successes, classes or lower interval ends, `size` trials or upper ends. NULL `size` and `weight` mean 1.
read_response <- function(likelihood, response, weights, argument, n) {
  row <- response_row(likelihood)
  numbers <- function(want, ok) list(y = read_numbers(response, argument, n, ok, want))
  out <- switch(row$reads,
                classes = read_binomial(response, weights, argument, n),
                labels = read_labels(response, argument, n, FALSE),
                own = numbers("in the support of the family", row$support %||% is.numeric),
                counts = {
                  from <- row$from %||% 0
                  want <- sprintf("counts: whole numbers from %d to 1e9", from)
                  refuse_if(is.factor(response) || is.character(response) || is.logical(response), argument,
                            describe(response), want)
                  numbers(want, function(y) y >= from & y == round(y) & y <= 1e9)
                },
                positive = if (isTRUE(row$zeros)) numbers("numbers of at least 0", function(y) y >= 0) else
                  numbers("positive numbers", function(y) y > 0),
                ordered = read_labels(response, argument, n, TRUE),
                times = read_censored(response, argument, n, likelihood, TRUE),
                censored = read_censored(response, argument, n, likelihood, FALSE),
                numbers = list(y = check_vector(response, argument, n)))
  if (!"weight" %in% names(out)) out["weight"] <- list(weights)
  if (is.null(out$response)) {
    out$response <- if (is.null(out$size)) out$y else ifelse(out$size > 0, out$y / pmax(out$size, 1e-300), 0)
  }
  size <- max(abs(out$response), 0)
  refuse_if(size > 1e30 || size > 0 && size < 1e-30, argument, # so that squares are representable
            sprintf("has values of size %.3g, outside the range from 1e-30 to 1e30", size),
            hint = "Divide it by a constant.")
  out
}

# Returns the response of new rows, classes as a factor with the levels of the fit. Stops at classes that the fit lacks.
known_classes <- function(fit, response) {
  about <- response_of(fit)
  if (!is.factor(response) && !is.character(response) && about$kind != "labels") return(response)
  unknown <- setdiff(unique(as.character(response)), c(about$levels, NA))
  refuse_if(length(unknown), "newdata",
            sprintf("has the class%s %s, which the fit does not have", if (length(unknown) > 1L) "es" else "",
                    list_quoted(unknown, "\"")),
            hint = sprintf("The fit has the classes %s.", list_quoted(about$levels, "\"")))
  factor(as.character(response), about$levels, ordered = about$in_order)
}

# Returns list(y, size, response) of censored responses: lower ends, upper ends, and the values that plots show.
read_censored <- function(response, argument, n, likelihood, positive) {
  if (inherits(response, "Surv")) {
    type <- attr(response, "type")
    refuse_if(!type %in% c("right", "left", "interval"), argument, sprintf("is a Surv object of type \"%s\"", type),
              hint = "Use type right, left or interval. Delayed entry and several events are not available.")
    m <- unclass(response)
    time <- m[, if (type == "interval") "time1" else "time"]
    # A Surv object of type "interval" has the codes 0 right-censored, 1 observed, 2 left-censored, 3 interval.
    status <- if (type == "left") ifelse(m[, "status"] == 1, 1, 2) else m[, "status"]
    L <- ifelse(status == 2, if (positive) 0 else -Inf, time)
    U <- ifelse(status == 0, Inf, if (type == "interval") ifelse(status == 3, m[, "time2"], time) else time)
    bad <- which(is.na(L + U) & !(is.infinite(L) & is.infinite(U)) | L > U | L == Inf | U == -Inf |
                   positive & (L < 0 | U <= 0))
    refuse_if(length(bad), argument, time[bad[1L]], paste0(if (positive) "finite times above 0" else "finite numbers",
                     ", in intervals whose first end is the smaller one"), where = sprintf("row %d", bad[1L]),
              hint = if (positive && any(time <= 0, na.rm = TRUE)) "family = tobit() takes any numbers.")
    L <- unname(as.double(L))
    U <- unname(as.double(U))
  } else {
    y <- if (positive) read_numbers(response, argument, n, function(y) y > 0, "positive numbers") else
      check_vector(response, argument, n)
    limit <- likelihood$ends %||% c(-Inf, Inf)
    L <- ifelse(y <= limit[1L], -Inf, pmin(y, limit[2L]))
    U <- ifelse(y >= limit[2L], Inf, pmax(y, limit[1L]))
  }
  if (!any(is.finite(U) & L > if (positive) 0 else -Inf)) {
    tell_classed("one_value", "All responses are censored. Predictions depend on the priors.")
  }
  known <- known_numbers(L, U)
  list(y = L, size = U, response = ifelse(is.na(known), 0, known))
}

# Returns `given` as a numeric vector. Stops unless ok(y) is TRUE for all elements, with an error that names `want`.
read_numbers <- function(given, argument, n, ok, want) {
  y <- check_vector(given, argument, n)
  bad <- which(!ok(y))
  if (length(bad)) abort_input(argument, y[bad[1L]], want, where = sprintf("element %d", bad[1L]))
  y
}

# Returns list(y, size, weight, levels) of a binomial response: successes y in `size` trials (NULL: 1 in each row).
read_binomial <- function(response, weights, argument, n) {
  if (length(dim(response)) == 2L && ncol(response) == 2L) {
    pairs <- check_matrix(response, argument)
    bad <- which(pairs < 0 | pairs != round(pairs), arr.ind = TRUE)
    refuse_if(nrow(pairs) != n, argument, sprintf("has %d rows, but there are %d", nrow(pairs), n))
    refuse_if(nrow(bad), argument, format(pairs[bad[1L, , drop = FALSE]]), "whole numbers of successes and failures",
              where = sprintf("row %d, column %d", bad[1L, 1L], bad[1L, 2L]))
    size <- unname(rowSums(pairs))
    # Rows without trials get weight 0, because they have no information.
    if (any(size == 0)) weights <- (weights %||% 1) * (size > 0)
    return(list(y = unname(pairs[, 1L]), size = size, weight = weights))
  }
  levels <- NULL
  if (is.character(response)) response <- factor(response)
  if (is.logical(response)) response <- factor(response, c(FALSE, TRUE))
  if (is.factor(response)) {
    levels <- check_classes(base::levels(response), argument, FALSE)
    response <- as.double(response == levels[2L])
  }
  y <- read_numbers(response, argument, n, function(y) y >= 0 & y <= 1,
                    "two classes, shares of successes between 0 and 1, or cbind(successes, failures)")
  if (all(y == 0 | y == 1)) return(list(y = y, levels = levels))
  refuse_if(is.null(weights), "weights", "is missing",
            hint = "Shares of successes need the number of trials of each row.")
  successes <- y * weights
  if (any(abs(successes - round(successes)) > 1e-3)) {
    warn_classed("small", "Numbers of successes, `weights` times the response, are not whole. Check `weights`.")
  }
  list(y = successes, size = weights, weight = if (any(weights == 0)) as.double(weights > 0))
}

# Returns list(y, levels): the number of each row's class, and the names of the classes.
read_labels <- function(response, argument, n, ordered) {
  refuse_if(ordered && !is.ordered(response), argument,
            if (is.factor(response)) "a factor without an order" else describe(response), "an ordered factor",
            hint = sprintf(if (is.numeric(response)) "For numbers use cut(%s, breaks, ordered_result = TRUE)." else
              "Make it one: ordered(%s, levels = <its classes in their order>).", argument))
  refuse_if(is.numeric(response) || length(dim(response)) == 2L || !is.atomic(response), argument, describe(response),
            "a factor, or text, with the class of each row",
            hint = if (is.numeric(response)) "factor() makes classes of numbers.")
  if (!is.factor(response)) response <- factor(response)
  if (length(response) != n) abort_input(argument, sprintf("has length %d, but there are %d rows", length(response), n))
  if (anyNA(response)) abort_input(argument, sprintf("has a missing value at element %d", which(is.na(response))[1L]))
  list(y = as.double(response), levels = check_classes(levels(response), argument, TRUE))
}

# Returns the levels of a factor. Stops unless there are two levels, or at least two if `several`.
check_classes <- function(levels, argument, several) {
  K <- length(levels)
  if (K == 2L || several && K > 2L) return(levels)
  abort_input(argument, sprintf("has %d level%s (%s), but %s are needed", K, plural_s(K), list_quoted(levels, "\""),
                      if (several) "at least two" else "two"),
              hint = if (K > 2L) "Use family = multinomial() for more than two classes.")
}

# Adds the offset, levels and `sites` (responses of positive weight) to `data`. `read` is made by read_response().
with_sites <- function(data, read, offset) {
  of <- function(v) if (!is.null(v)) unname(of_used_rows(data, v))
  data[c("y", "scale")] <- list(data$y * data$scale, 1) # the sites are in the unit of the response
  data$offset <- offset
  data$sites <- list(y = of(read$y), size = of(read$size), weight = of(read$weight),
                     offset = if (is.null(offset)) numeric(nrow(data$x)) else of(offset))
  if (!is.null(data$sites$weight) && all(data$sites$weight == 1)) data$sites["weight"] <- list(NULL)
  data[c("levels", "ordered")] <- read[c("levels", "ordered")]
  data
}

# Returns list(family, likelihood). If `likelihood` is "by response", the response determines it: NULL (Gaussian) for
# numbers, a family for classes for factors, text and logicals. For survival::Surv(), `family` is "times". An `open`
# family may give way to its rival (see rival_if_better()).
settle_family <- function(likelihood, response, name) {
  if (!identical(likelihood, "by response")) return(list(likelihood = likelihood))
  if (inherits(response, "Surv")) return(list(family = "times", likelihood = as_likelihood(weibull())))
  has_levels <- is.factor(response) || is.character(response) || is.logical(response)
  levels <- if (has_levels) levels(as.factor(response))
  K <- length(levels)
  # A response with too many levels for classes gets NULL, so that check_response() stops with a hint.
  if (!has_levels || !is.null(dim(response)) || K > max(2, length(response) / 2)) return(list(likelihood = NULL))
  refuse_if(K < 2L, name, sprintf("has a single class, %s", list_quoted(levels, "\"")),
            hint = "Classes need two different values.")
  found <- if (K == 2L) {
    list(stats::binomial(), "binomial()", sprintf("two classes, with success \"%s\"", levels[2L]))
  } else if (is.ordered(response)) {
    list(replace(ordinal(), "open", TRUE), "ordinal()", sprintf("%d classes in order", K))
  } else {
    list(multinomial(), "multinomial()", sprintf("%d classes", K))
  }
  numbers <- K > 2L && is.character(response) && !anyNA(as_number(levels))
  tell_classed("family", paste0(sprintf("`%s` has %s, so family = %s.", name, found[[3L]], found[[2L]]), if (numbers)
    " Its text looks like numbers: as.numeric() makes a numeric response of it."))
  list(family = found[[1L]], likelihood = as_likelihood(found[[1L]]))
}

# Fits each family of times by fit_with(family) and returns the fit with the largest log marginal likelihood.
best_of_times <- function(fit_with) {
  fits <- lapply(list(`weibull()` = weibull(), `loglogistic()` = loglogistic(), `lognormal()` = lognormal()), fit_with)
  evidence <- vapply(fits, `[[`, 0, "evidence")
  best <- which.max(evidence)
  below <- vapply(signif(max(evidence) - evidence[-best], 2), format, "")
  text <- sprintf("Family: %s has the largest log marginal likelihood; %s.", names(fits)[best],
                  paste(sprintf("%s is %s below", names(fits)[-best], below), collapse = ", "))
  tell_classed("family", text)
  fit <- fits[[best]]
  fit$seconds <- c(fit$seconds, families = sum(unlist(lapply(fits[-best], `[[`, "seconds"))))
  replace(fit, "because", list(c(family = text, fit$because)))
}

#' @rdname gp_family
#' @export
check_family <- function(family, y, f = seq(-6, 6, by = 0.25)) {
  check_given("family", "Give a family, such as poisson().")
  likelihood <- as_likelihood(family)
  response <- as_response(likelihood)
  refuse_if(missing(y) || !length(y), "y", "is missing or empty", hint = "Give responses to check at, as in y = 0:5.")
  refuse_if(response$conjugate || !response$reads %in% c("numbers", "counts", "positive", "own"), "family",
            paste("the family", response$label), "poisson(), nb(), Gamma(\"log\"), tweedie(), student() or gp_family()")
  failures_of(likelihood, read_response(likelihood, y, NULL, "y", length(y))$y, check_vector(f, "f"))
}

failures_of <- function(likelihood, y, f = seq(-6, 6, by = 0.25)) {
  response <- as_response(likelihood)
  if (is.null(likelihood$theta) && length(response$shape)) likelihood$theta <- rep(1, length(response$shape))
  grid <- expand.grid(f = f, y = unique(y))
  n <- nrow(grid)
  sites <- engine_sites(likelihood, list(y = grid$y, offset = numeric(n)), 0)
  at <- function(f) native_likelihood(sites, f + sites$offset)
  now <- at(grid$f)
  quotient <- function(h) (at(grid$f + h) - at(grid$f - h)) / (2 * h)
  slope <- (4 * quotient(5e-5) - quotient(1e-4)) / 3 # Richardson: the error is of order h^4
  near <- function(a, b, scale) abs(a - b) <= 1e-4 * (1 + abs(b) + scale)
  finite <- colSums(!is.finite(now)) == 0
  W <- now[3L, ]
  e <- rep_len(c(0.1, 0.5, 2), n)
  range <- curvature_range(likelihood, sites, grid$f + sites$offset, e)
  averages <- average_curvature_range(likelihood, sites, grid$f + sites$offset, e, range)
  inside <- Reduce(`&`, lapply(c(-1, -0.6, -0.2, 0.2, 0.6, 1), function(t) {
    there <- at(grid$f + t * e)
    within <- function(v, range) !is.finite(v) | abs(pmin(pmax(v, range$lower), range$upper) - v) <= 1e-8 * (1 + abs(v))
    within(there[3L, ], range) & (!response$concave | within((now[2L, ] - there[2L, ]) / (t * e), averages))
  }))
  weight <- function() { # evaluates the user's `weight` like a log density
    sites$shape[3:6] <- sites$shape[7L]
    native_likelihood(sites, grid$f)[1L, ]
  }
  claims <- list("log density and derivatives are finite" = finite,
    "first derivative is correct" = near(now[2L, ], slope[1L, ], abs(now[1L, ]) * 1e-4),
    "second derivative is correct" = near(W, -slope[2L, ], 0),
    "third derivative is correct" = near(now[4L, ], -slope[3L, ], 0),
    "the log density is concave" = if (response$concave) W >= -1e-10 * (1 + max(abs(W[finite]), 0)),
    "the weight is positive" = if (!is.null(likelihood$row) && !response$concave) weight() > 0,
    "bounds on derivatives (`kappa`, `curvature`)" = inside)
  # Where a value is not finite, as after overflow of exp(), only the first claim fails.
  claims <- c(claims[1L], lapply(claims[-1L][lengths(claims[-1L]) > 0L], `|`, !finite))
  if (!is.null(likelihood$row)) {
    far <- claims_in_units(likelihood, unique(y))
    grid <- rbind(grid, far$grid)
    claims[names(far$claims)] <- Map(c, claims[names(far$claims)], far$claims)
  }
  first <- vapply(claims, function(ok) which(!(ok %in% TRUE))[1L], 1L)
  structure(data.frame(claim = names(claims), holds = is.na(first), f = grid$f[first], y = grid$y[first],
                       row.names = NULL), class = c("pfdtc_family_check", "data.frame"))
}

#' @export
print.pfdtc_family_check <- print_lines(function(x) {
  at <- ifelse(x$holds, "holds", sprintf("FAILS at f = %.7g, y = %.7g", x$f, x$y))
  c(sprintf("%s: %s", x$claim, at), "This check on a grid is not a proof.")
})

# Stops if a property that a user's family states (such as concavity) fails at one of up to 40 distinct responses.
check_own_family <- function(likelihood, y) {
  if (is.null(likelihood$row)) return(invisible())
  y <- unique(y)
  found <- failures_of(likelihood, y[round(seq(1, length(y), length.out = min(40L, length(y))))])
  bad <- which(!found$holds)[1L]
  if (is.na(bad)) return(invisible())
  where <- sprintf("f = %s, y = %s", format(found$f[bad]), format(found$y[bad]))
  abort_input("family", sprintf("fails the check \"%s\" at %s", found$claim[bad], where), hint = c(if (bad == 1L)
    "Rescale the response or rewrite terms that overflow: exp(710) is infinite.", "See check_family()."))
}
