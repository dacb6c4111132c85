# Defines a likelihood by the user's expression in f and y. Its derivatives come from stats::D(), and the engine reads
# it as programs (src/program.h).

#' Define a likelihood
#'
#' `gp_family()` makes a likelihood for the argument `family` of [pfdtc()]. The log density l of a response is an
#' expression in the latent value `f`, the response `y` and parameters; [stats::D()] computes its derivatives.
#' `check_family()` checks the stated properties of a log density at some responses and a grid of `f`. The properties
#' are derivatives, concavity, and bounds on the second derivative, which certificates use.
#' @param log_density a formula such as `~ y * f - exp(f)`, or a function of `f` and `y` (and parameters) whose body is
#'   one expression.
#' @param parameters a named list of positive numbers. `NA` are learned.
#' @param concave is the log density concave in `f` for every `y`?
#' @param kappa a number such that the second and third derivatives of l in `f` satisfy \eqn{|l'''| \le \kappa
#'   |l''|}{|l'''| <= kappa |l''|} for all `f`.
#' @param curvature a function of `lower`, `upper` and `y` that returns `list(lower, upper)`: bounds on minus the second
#'   derivative for `f` between `lower` and `upper`.
#' @param expected a formula in `f` and `y`: a positive weight for the search for the mode, if the log density is not
#'   concave.
#' @param mean a formula in `f` for the mean response.
#' @param support a function of `y` that returns `TRUE` for possible responses.
#' @param family a family for numeric responses with one latent function, such as a result of `gp_family()` or
#'   [poisson()]. Parameters to be learned are set to 1.
#' @param y,f responses and values of the latent function to check at.
#' @return `gp_family()`: an object of class `pfdtc_family`. `check_family()`: a data frame with the columns `claim`,
#'   `holds`, and `f` and `y` of the first failure.
#' @details A fit checks the stated properties at its responses on a grid of `f`, and raises an error if one fails. A
#'   grid is no proof: certificates of the fit are valid only if the stated properties hold. Without `kappa` and
#'   `curvature` certified intervals are wide. A log density that is not concave requires `expected`, for example the
#'   expected value of minus the second derivative. The posterior may then have several modes, and without `curvature`
#'   nothing is certified.
#'
#' Terms with `f` may use `exp`, `log`, `sqrt`, `log1p`, `expm1`, `sin`, `cos`, `pnorm` and `dnorm`; other terms may use
#' any function. Omitting a term without `f` and without learned parameters shifts the log marginal likelihood by a
#' constant.
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
  concave <- check_flag(concave, "concave")
  parameters <- unlist(parameters)
  known <- parameters[!is.na(parameters)]
  refuse_if(length(parameters) && is.null(names(parameters)), "parameters", "has no names",
            hint = "Name them, as in list(k = 2).")
  if (length(known)) check_positive(known, "parameters")
  if (!is.null(kappa)) kappa <- check_at_least_0(kappa, "kappa")
  names <- c("f", "y", names(parameters))
  whole <- expression_of(log_density, "log_density", names)
  terms <- terms_of_sum(whole)
  in_f <- vapply(terms, function(term) "f" %in% all.vars(term), NA)
  if (!any(in_f)) abort_input("log_density", sprintf("has no `f`: %s", deparse1(whole)))
  sum_of <- function(terms) Reduce(function(a, b) call("+", a, b), terms)
  l <- sum_of(terms[in_f])
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
  lapply(programs, program_of, values = values(rep(1, length(learned)))) # stops if the engine cannot compute a program
  row <- with_defaults(list(
    name = "own", label = "user-defined", call = "gp_family()", links = "latent", reads = "own", concave = concave,
    site = if (concave) "own" else "own_expected", shape = if (length(learned)) learned, support = support,
    kappa = kappa, curvature = curvature,
    constant = if (!all(in_f)) {
      rest <- sum_of(terms[!in_f])
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
  new_family("own", "latent", row = row, text = deparse1(whole), has_mean = !is.null(mean))
}

# Returns the expression of a one-sided formula, or of the body of a function.
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

# Returns the terms of a sum, each with its sign.
terms_of_sum <- function(e) {
  operator <- if (is.call(e)) as.character(e[[1L]])[1L] else ""
  if (operator == "(") return(terms_of_sum(e[[2L]]))
  if (!operator %in% c("+", "-")) return(list(e))
  last <- terms_of_sum(e[[length(e)]])
  if (operator == "-") last <- lapply(last, function(term) call("-", term))
  c(if (length(e) == 3L) terms_of_sum(e[[2L]]), last)
}

# ---- programs -------------------------------------------------------------------------------------------------------

# These are the numbers of operations in src/program.c.
program_steps <- c(number = 0, f = 1, y = 2, "+" = 3, "-" = 4, "*" = 5, "/" = 6, "^" = 7, negate = 8, exp = 9, log = 10,
                   sqrt = 11, log1p = 12, expm1 = 13, sin = 14, cos = 15, pnorm = 16, dnorm = 17)

# Returns the steps of an expression, with parameters replaced by `values`.
program_of <- function(e, values) {
  if (!any(c("f", "y") %in% all.vars(e))) {
    return(c(program_steps[["number"]], as.double(eval(e, values, asNamespace("stats")))))
  }
  if (is.name(e)) return(program_steps[[as.character(e)]])
  operator <- as.character(e[[1L]])[1L]
  if (operator == "(") return(program_of(e[[2L]], values))
  if (operator == "+" && length(e) == 2L) return(program_of(e[[2L]], values))
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
  start <- 7 + cumsum(c(0, lengths(steps)))[seq_along(steps)]
  as.double(c(1, 1, start, unlist(steps)))
}

# ---- checks --------------------------------------------------------------------------------------------------------

# Stops if the user defined the likelihood, because a distribution of responses is needed.
check_distribution <- function(fit, argument = "fit") {
  if (is.null(fit$likelihood$row)) return(invisible())
  abort_input(argument, "has a family by gp_family(), whose distribution function is unknown")
}

# Returns a sentence for certificates, or NULL for likelihoods of the table.
stated_claims <- function(likelihood) {
  row <- likelihood$row
  if (is.null(row)) return(NULL)
  said <- c(if (row$concave) "the log density is concave",
            if (!is.null(row$kappa)) sprintf("|l'''| is at most %s |l''|", format(row$kappa)),
            if (!is.null(row$curvature)) "`curvature` bounds its second derivative")
  if (length(said)) sprintf("as stated by the family: %s", paste(said, collapse = ", "))
}
