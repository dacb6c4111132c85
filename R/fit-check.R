# Checks a fit that the user gives to a function. The fit may be damaged, or come from an earlier version of pfdtc.

# Returns the fit in the current layout, or stops if it is not a valid fit. In fits of version 0.1.0, the signature
# (sums that identify the data) is incomplete; it is computed again if the fit has its data.
check_any_fit <- function(fit, argument) {
  if (missing(fit)) abort_input(argument, "is missing", hint = "Give a fit returned by pfdtc().")
  refuse_if(inherits(fit, "gp_hurdle"), argument, "is a hurdle of two fits", hint = "Use its fit `zero` or `positive`.")
  if (!inherits(fit, "gp_fit")) abort_input(argument, describe(fit), "a fit, such as by pfdtc()")
  if (!is.list(fit)) damaged_fit(list(), argument, "list")
  fit <- with_new_names(fit)
  if (!is.null(fit$reference)) fit$reference <- with_new_names(fit$reference)
  check_fit_parts(fit, argument)
  found <- fit$likelihood # In earlier versions `from` was the replaced likelihood, NULL if Gaussian.
  replaced <- !is.character(found$from) && !isTRUE(found$open)
  if (replaced && isTRUE(grepl(paste0("^", found$name, "[(]"), fit$because["rival"])))
    fit$likelihood[c("from", "asked")] <- list(found$from$name %||% "gaussian", if (!is.null(found$from)) found["from"])
  old <- fit$signature
  if (old_signature(fit) && !is.null(fit$data)) {
    fit$signature <- data_signature(fit$data)
    if (identical(fit$reference$signature, old)) fit$reference$signature <- fit$signature
  }
  fit
}

# Returns the checked fit, or stops if its likelihood is not Gaussian.
check_fit <- function(fit, argument) check_posterior(check_any_fit(fit, argument), "normal", argument)

# Each entry is a property of posteriors that some functions need. `approx` lists the approximations with this property
# ("none": Gaussian noise). `groups` is TRUE if non-Gaussian fits with groups have it too. `hint` is for the error.
posterior_needs <- list(normal = list(approx = "none", hint = "compare_fits() and cross_validate() are available."),
  certificate = list(approx = c("none", "laplace"), groups = TRUE,
    hint = "Use update(fit, approx = \"laplace\"). evidence_bounds() works for this fit too."),
  families = list(approx = c("laplace", "vi"), hint = "With Gaussian noise the posterior needs no such approximation."))

# Returns the fit, or stops if it lacks the property posterior_needs[[need]], which the function or result `what` needs.
check_posterior <- function(fit, need, argument = "fit", what = user_function()) {
  response <- response_of(fit)
  need <- posterior_needs[[need]]
  refuse_if(response$approx != "none" && !is.null(fit$factors$groupings) && !isTRUE(need$groups), argument,
            sprintf("a fit with groups and a %s response", response$label),
            message = sprintf("%s is not available for groups with a %s response beyond %s rows.", what, response$label,
                              show_count(dense_rows)), hint = "Fit fewer rows.")
  if (response$approx %in% need$approx) return(fit)
  with <- if (response$approx == "none") "Gaussian noise" else
    sprintf("family %s (%s)", response$label, response$words[["by"]])
  abort_input(argument, paste("a fit with", with), message = sprintf(
    "%s is not available, because `%s` has %s.", what, argument, with), hint = need$hint)
}

# Version 0.1.0 gave these parts of a fit the names on the left. Its `posterior` was the list that is now `factors`.
renamed <- c(posterior = "factors", elbo = "evidence", rows = "x")

with_new_names <- function(fit) {
  if (!is.list(fit) || is.character(fit$posterior) && is.null(fit$elbo) && is.null(fit$rows)) return(fit)
  old <- intersect(names(renamed)[vapply(fit[renamed], is.null, NA)], names(fit)[!vapply(fit, is.character, NA)])
  names(fit)[match(old, names(fit))] <- renamed[old]
  if (is.null(fit$posterior)) fit$posterior <- posterior_kind(fit)
  fit
}

old_signature <- function(fit) !"phi1" %in% names(fit$signature$sums)

# Checks types and sizes of the parts of a fit that other functions read, and that numbers are finite. need(part =
# condition, ...) stops at the first condition that is neither TRUE nor NULL, so a condition may assume that the earlier
# conditions hold. If a condition is a string, it names the damaged element of the part.
check_fit_parts <- function(fit, argument) {
  need <- function(...) {
    for (i in seq_len(...length())) {
      ok <- ...elt(i)
      if (isTRUE(ok) || is.null(ok)) next
      part <- names(substitute(list(...)))[i + 1L]
      damaged_fit(fit, argument, if (is.character(ok)) paste0(part, "$", ok) else part)
    }
  }
  need(method = is_one_of(fit$method, names(gp_families)),
       frame = is.list(fit$frame) && is_one_of(fit$frame$method, c("matrix", "formula")) &&
         length(fit$frame$columns) > 0L && is.character(fit$frame$columns))
  d <- length(fit$frame$columns)
  sums <- fit$signature$sums
  positive <- function(v) is_finite_number(v) && v > 0
  number <- function(v) is.null(v) || is.numeric(v) && length(v) == 1L # `evidence` may be infinite and `sd_y` NA
  for (part in names(part_classes)) {
    if (!is.null(fit[[part]]) && !inherits(fit[[part]], part_classes[[part]])) damaged_fit(fit, argument, part)
  }
  need(kernel = is_good_kernel(fit$kernel, d), noise = positive(fit$noise), scale = positive(fit$scale),
       nobs = positive(fit$nobs), evidence = number(fit$evidence), sd_y = number(fit$sd_y),
       center = is.numeric(fit$center) && length(fit$center) > 0L && all(is.finite(fit$center)),
       m = is.null(fit[["m"]]) || is_finite_number(fit[["m"]]) && fit[["m"]] >= 1 && fit[["m"]] < 2^31,
       aux = is.null(fit$aux) || is_one_of(fit$aux$kind, names(aux_kinds)),
       signature = has_shapes(fit$signature, list(sums = length(sums), size = length(sums))),
       `signature$sums` = all(c("n", "yy") %in% names(sums)) && !anyNA(c(sums, fit$signature$size)))
  check_fit_posterior(fit, d, need)
  data <- fit$data
  if (is.null(data)) return()
  n <- NROW(data$x)
  group <- data$group
  used <- length(group %||% data$y)
  zero <- NROW(data$x_zero)
  given <- used + zero
  need(data = has_shapes(data, list(x = c(n, d), y = n, center = 1, scale = 1, response = given, weights = n,
                                    x_zero = c(zero, d), offset = given, prior_weights = given),
                         optional = c("weights", "x_zero", "offset", "prior_weights")),
       `data$x` = n > 0L, `data$y` = is.finite(sum(data$y)), `data$n` = is_finite_number(data$n) && data$n == used,
       `data$weights` = is.null(data$weights) || is.finite(sum(data$weights)) && min(data$weights) > 0,
       `data$group` = is.null(group) || is.integer(group) && !anyNA(group) && min(group) >= 1L && max(group) <= n,
       `data$shift` = is.list(data$shift) && all(vapply(data$shift[c("constant", "rows", "ss")], is_finite_number, NA)),
       `data$prior_weights` = is.null(data$x_zero) || sum(data$prior_weights == 0) == zero)
}

part_classes <- list(control = "pfdtc_control", aux = "pfdtc_aux", reference = "gp_fit", near = "list", norms = "list",
                     correction = "list", evaluations = c("numeric", "integer"), seconds = c("numeric", "integer"))

is_one_of <- function(v, known) is.character(v) && length(v) == 1L && v %in% known

# Returns TRUE if each element of `part` named in `shapes` is plain doubles of the length or c(rows, columns) given
# there, else the name of the first wrong element. A single number must not be NA. `optional` elements may be NULL.
has_shapes <- function(part, shapes, optional = NULL) {
  for (name in names(shapes)) {
    v <- if (is.list(part)) part[[name]]
    size <- shapes[[name]]
    if (is.null(v) && name %in% optional) next
    good <- is.double(v) && !is.object(v) && length(v) == prod(size) && !(length(v) == 1L && is.na(v))
    if (!good || length(size) > 1L && !identical(dim(v), as.integer(size))) return(name)
  }
  TRUE
}

# Returns TRUE if `kernel` is a kernel of inputs among 1, ..., d, and has all parameters of its factors.
is_good_kernel <- function(kernel, d) {
  inherits(kernel, "pfdtc_kernel") && is.list(kernel) && isTRUE(tryCatch({
    parts <- as_sum(kernel)
    positive <- function(v, n) length(v) == n && all(is.finite(v) & v > 0)
    good <- vapply(parts$leaves, function(l) {
      alone <- is.null(kernel$leaves) && l$profile != "constant"
      is_one_of(l$profile, names(factor_parameters)) && all(l$inputs %in% seq_len(d)) && !anyDuplicated(l$inputs) &&
        all(l$rotation$inputs %in% l$inputs) && all(is.finite(l$rotation$by)) && is_good_warp(l$warp, l$inputs) &&
        (!alone || length(l$inputs)) &&
        all(vapply(factor_parameters[[l$profile]], function(what) positive(l[[what]], parameter_count(l, what)), NA))
    }, NA)
    all(good) && length(parts$terms) && all(vapply(parts$terms, function(t) positive(t$variance, 1L), NA))
  }, error = function(e) FALSE))
}

# Returns TRUE if `warp` is NULL, or maps some of the kernel's `inputs` by finite knots that increase.
is_good_warp <- function(warp, inputs) {
  if (is.null(warp)) return(TRUE)
  size <- c(warp_knots, length(warp$inputs))
  all(warp$inputs %in% inputs) && identical(dim(warp$at), size) && identical(dim(warp$to), size) &&
    all(is.finite(warp$to)) && all(is.finite(warp$at)) && all(diff(warp$at) > 0)
}

# Checks the parts that define the posterior of a fit to d inputs. need(part = condition) stops if the condition fails.
check_fit_posterior <- function(fit, d, need) {
  dense <- !is.null(fit$x) || is.null(method_traits(fit)$objective)
  f <- fit$factors
  if (dense && is.null(fit$x) && is.null(f)) return() # a fit without a posterior still serves functions that need none
  points <- if (dense) "x" else "inducing"
  m <- NROW(fit[[points]])
  square <- c(m, m)
  need(fit = has_shapes(fit, stats::setNames(list(c(m, d)), points)), inducing = m > 0L)
  near <- fit$near
  if (!is.null(near)) {
    kept <- near$rows
    n <- if (is.list(kept)) NROW(kept$x)
    k <- m + sum(vapply(near$groupings, effects_of_grouping, 0))
    count <- near$neighbours
    need(`near$neighbours` = is.numeric(count) && length(count) %in% 1:2 && isTRUE(all(count >= 0)) &&
           !is.unsorted(count) && is_finite_number(near$train_neighbours) && near$train_neighbours >= 0,
         `near$rank` = is.null(near$rank) || is.numeric(near$rank) && all(is.finite(near$rank)) &&
           (is.null(fit$data) || length(near$rank) == NROW(fit$data$x)), data = is.list(kept) || !is.null(fit$data),
         `near$rows` = if (!is.null(kept)) has_shapes(kept, list(x = c(n, d), y = n, weights = n), "weights"),
         `near$rows$x` = is.null(kept) || n > 0L, near = has_shapes(near, list(L = c(m, m), C = c(k, k), beta = k)))
    if (is.null(f)) return() # `factors` are computed when needed
  }
  need(factors = is.list(f))
  if (!is.null(f$groupings)) {
    k <- NROW(f$W)
    q <- sum(vapply(f$groupings, effects_of_grouping, 0))
    return(need(factors = has_shapes(f, list(W = c(k, k), L = square, gamma = k, b = q, sums = length(f$sums))),
                `factors$W` = k >= m && length(f$sums) > m^2 + k * q))
  }
  if (!is.null(fit$likelihood)) {
    q <- functions_of_f(fit$likelihood)
    shapes <- c(list(L = square, C = q * square, beta = m * q),
                if (q == 1L && is.null(f$inverse)) list(G = square) else list(inverse = c(m, m * q * (q + 1) / 2)))
    return(need(factors = has_shapes(f, shapes), likelihood = is.list(fit$likelihood)))
  }
  if (dense) { # without the Cholesky factor L, `model` is needed to compute it
    return(need(factors = has_shapes(f, c(list(alpha = m), if (is.null(f$L)) list(weights = m) else list(L = square)),
                                     optional = "weights"),
                `factors$model` = !is.null(f$L) || is.list(f$model) && is_finite_number(f$model$noise)))
  }
  need(factors = has_shapes(f, list(L = square, G = square, C = square, Ay = m, beta = m, yy = 1, k_sum = 1, t = 1,
                                      rss = 1)), `factors$rss` = all(unlist(f[c("yy", "k_sum", "t", "rss")]) >= 0),
       jitter = is_finite_number(fit$jitter) && fit$jitter >= 0)
  if (is.null(fit$norms)) return()
  numbers <- c(weight = 1, spread = 1, slack = 1, growth = 1, vv = 1, alpha = 1, beta_error = 1, t = 1, lam = 1,
               v_E = 1, c = 1, w_norm = 1, w_E = 1) # certificates read these norms
  made <- fit$correction
  need(norms = has_shapes(fit$norms, c(list(Psi = c(m, m)), numbers)))
  if (is.null(made)) return()
  need(correction = has_shapes(made, list(v = max(1L, length(made$v)), rounding = 1)),
       `correction$norms` = has_shapes(made$norms, numbers),
       `correction$response` = has_shapes(made$response, list(yy = 1, rss = 1, Ay = m, beta = m)),
       `correction$made_from` = !is.list(made$made_from) && length(made$made_from) > 0L)
}

# Stops because `part` of the fit is damaged. If another version of pfdtc made the fit, the hint names that version.
damaged_fit <- function(fit, argument, part) {
  made_by <- tryCatch(as.character(fit$version), error = function(e) character())
  here <- as.character(utils::packageVersion("pfdtc"))
  other <- length(made_by) == 1L && made_by != here
  abort_input(argument, "a damaged fit", "a fit as it was made",
              message = sprintf("`%s` cannot be used: its part `%s` is damaged or missing.", argument, part),
              hint = if (other) sprintf("It was made by pfdtc %s, and this is %s. Fit again.", made_by, here) else
                "It was changed after it was made. Fit again.")
}

# ---- fits of the same exact Gaussian process -----------------------------------------------------------------------

# Returns `exact` if it is a fit with the exact posterior of the same model as all `fits`, else stops. `exact` may be
# NULL if `caller`, the name of the user's function, is given.
check_exact <- function(exact, fits, caller = NULL) {
  check_given("exact", "Give gp_exact() of the same data with like = fit.")
  if (is.null(exact) && !is.null(caller)) return(NULL)
  more <- if (!is.null(caller)) sprintf("Fits to compare go in one list: %s(list(<fit>, <fit>), ...).", caller)
  is_fit <- inherits(exact, "gp_fit")
  if (is_fit) exact <- check_any_fit(exact, "exact")
  if (!is_fit || (!is_exact(exact) && !is_laplace_limit(exact))) {
    hint <- if (is.data.frame(exact) || is.numeric(exact)) "Pass the rows by name: newdata = <rows>." else
      if (is_fit) more
    abort_input("exact", if (is_fit) sprintf("a fit by %s() with m = %d", exact$method, exact$m) else describe(exact),
                "a fit with the exact posterior, such as by gp_exact()", hint = hint)
  }
  for (i in seq_along(fits)) check_same_model(
    exact, fits[[i]], "exact", if (length(fits) == 1L) "fit" else sprintf("fits[[%d]]", i), more)
  exact
}

# Returns TRUE if two fits have the same responses, judged by sums over the rows. A continuous and a discrete response
# always differ, because the density of numbers cannot be compared with the probability of counts or classes.
same_response <- function(a, b) {
  discrete <- response_of(a)$discrete
  if (discrete != response_of(b)$discrete) return(FALSE)
  if (discrete && !isTRUE(all.equal(a$sum_of_sites, b$sum_of_sites))) return(FALSE)
  # A transform or a noise trend changes the response or the weights, so compare the user's responses and weights.
  modelled <- function(fit) !is.null(fit$transform) || !is.null(fit$noise_trend)
  if (modelled(a) || modelled(b)) {
    as_given <- function(data) list(unname(given_response(data)), users_weights(data), data$offset)
    return(!is.null(a$data) && !is.null(b$data) && isTRUE(all.equal(as_given(a$data), as_given(b$data))))
  }
  values <- lapply(list(a$data, b$data), function(data) sort(unname(as.double(of_used_rows(data, data$response)))))
  if (all(lengths(values)) && !isTRUE(all.equal(values[[1L]], values[[2L]]))) return(FALSE)
  of_response <- function(fit) lapply(fit$signature[c("sums", "size")], `[`, c("n", "w", "y", "yy"))
  same_sums(of_response(a), of_response(b))
}

# Stops unless two fits approximate the same exact GP: they must have the same data, constant mean, kernel and
# likelihood. `argument` and `other` name the fits; `more` is a further hint.
check_same_model <- function(a, b, argument, other, more = NULL) {
  close <- function(u, v, unit = 1) length(u) == length(v) && all(abs(u - v) <= 1e-12 * unit)
  gaussian <- response_of(b)$conjugate
  what <- c("name", "link", "df", "theta")
  same_likelihood <- identical(a$likelihood[what], b$likelihood[what]) && identical(a$sum_of_sites, b$sum_of_sites)
  same_mean <- gaussian || close(a$center, b$center, 1 + abs(b$center)) # same_data() compares it for Gaussian noise
  differ <- c(data = !same_data(a, b), likelihood = !same_likelihood, "constant mean" = !same_mean,
              kernel = !identical(kernel_structure(a$kernel), kernel_structure(b$kernel)),
              hyperparameters = !close(model_theta(a), model_theta(b)))
  if (any(differ)) {
    what <- names(differ)[differ]
    shown <- sub("^data$", if (!identical(a$transform, b$transform)) "data (as transformed)" else
      if (same_response(a, b)) "inputs, noise or centre" else "data", what)
    hint <- if ("data" %in% what && old_signature(a) != old_signature(b))
      "pfdtc 0.1.0 kept too little information on dropped data. Fit again." else if (!gaussian)
      paste0("Fit `", argument, "` to these data with family = family(f), center = f$center, ",
             "kernel = f$kernel, hyper = \"fixed\", and the same trials and offset, where f is `", other, "`.") else
        c(if ("data" %in% what) "Rows, inputs, weights, offset, `center` and `transform` must agree.",
          sprintf(if (identical(a$center, b$center)) "Make `%s` with like = %s." else
            "Make `%s` with like = %s and the same `center`. After add_rows(), add the rows to both.", argument, other))
    abort_input(argument, sprintf("is of another model than `%s`: they differ in %s", other, list_quoted(shown, "")),
                hint = paste(c(hint, more), collapse = " "))
  }
}

same_model <- function(a, b) {
  tryCatch({
    check_same_model(check_any_fit(a, "a"), check_any_fit(b, "b"), "a", "b")
    TRUE
  }, pfdtc_error_input = function(e) FALSE)
}

# Stops if the argument `fits` is missing (`lacking`), or if fits are among the further arguments `dots` instead.
check_fits_given <- function(lacking, dots, caller) {
  strays <- vapply(dots, inherits, NA, "gp_fit")
  if (!lacking && !any(strays)) return()
  shown <- sub("^ = ", "", paste(sprintf("%s = <fit>", names(dots)[strays]), collapse = ", "))
  hint <- if (any(strays)) sprintf("Write %s(list(%s), ...).", caller, shown)
  abort_input("fits", if (lacking) "is missing" else "must be one list of fits", hint = hint)
}

# ---- help pages: the elements of a fit, other functions that fit ----------------------------------------------------

#' Read the elements of a fit
#'
#' A fit is a plain list. If a method returns the value of an element, prefer the method.
#' @name pfdtc_fit
#' @format A list of class `c("pfdtc", "gp_fit")`. Other functions put their name in place of `"pfdtc"`. Numbers are in
#'   units of the data, or of f with a transform or `family`. Unused elements are `NULL`.
#'   * General: `call`, `method` and `version`; `posterior` is `"exact"`, `"far"` (inducing points) or `"far + near"`
#'     (with nearest neighbours); `because` explains each choice.
#'   * Response: `likelihood` and its parameters `theta` for a non-Gaussian family; `transform`; `noise_trend`, the
#'     model of the log noise variance; `noise_tail`, the variance of the part of the log noise variance that inputs do
#'     not explain. `response` is a data frame of transforms and noise models compared: `merit` is the Vecchia log
#'     likelihood minus at least 2 nats for each of the `parameters`, `chosen`: selected, `refused`: poor predictions of
#'     held-out rows, `tail`: `noise_tail`. If two families were compared and the fit is not Gaussian, it has these
#'     (`merit`: leave-one-out).
#'   * Kernel: `kernel`; `noise`, the noise variance; `kernels`, a data frame of the kernels compared. `score` is a
#'     penalty for `parameters` minus the log density per held-out scaled response (or, if `se` is `NA`, the log
#'     marginal likelihood per row). `se`: standard error of the difference from the best by density.
#'   * Learning: `learned`, the starts of the first search (Matern 3/2 unless `kernel` is given): `lengthscale` and
#'     `noise` (data scaled), objective reached (`evidence`). Starts within `attr(learned, "same")` nats of the best
#'     count as equal. `pilot`, if `hyper = "pilot"`, has `trace`, `convergence`, `message` and `evaluations` of that
#'     search. `evidence`: see [logLik()][gp_fit-methods]. `small_n` may have, below 50 rows, leave-one-out log
#'     densities of `fit`, a `linear` model and `mean`.
#'   * Inducing points: `inducing` is a matrix of the `m` (at most `m_asked`) inducing points, or of all rows if the
#'     posterior is exact; `moved` (optimised?), `jitter`, `inducing_method`; `unexplained` is the mean prior variance
#'     that they do not explain, divided by the noise variance (`Inf` if unknown). `factors` has sums over rows and
#'     Cholesky factors of the posterior.
#'   * Neighbours: `neighbours` is their number, `near` has what predictions from neighbours need. `trial` compares
#'     predictions of held-out rows: `gain` is the mean log density without neighbours minus that with neighbours, `se`
#'     its standard error.
#'   * Optimisation: `trace` is a data frame (objectives are comparable within a `round`, if any); `convergence` is 0
#'     (done), 1 (`maxit`), 2 (time), 51 (failed) or 52 (interrupt); `message`, `maxit`; `evaluations` and `seconds` by
#'     stage.
#'   * Accuracy: `tol` is a list with the certified errors `mean` and `sd`, `met` (was `tol` met?) and `needs` (advice
#'     if not). `reference` is the result of [reference()].
#'   * Rows: `frame` and `terms`; `data` and `na.action`, if `keep_data` is `TRUE`.
#' @seealso [pfdtc()], [gp_fit-methods]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se())
#' fit$because
NULL

#' Fit a Gaussian process exactly or by other approximations
#'
#' These functions learn and choose the kernel as [pfdtc()] does with `transform = "none"` and `noise = ~ 1`, but
#' compute the posterior differently, without neighbours. Methods work as for [pfdtc()].
#'
#' * `gp_exact()`: the exact posterior. It takes \eqn{O(n^3)}{O(n^3)} time and \eqn{8 n^2}{8 n^2} bytes, which may be at
#'   most `getOption("pfdtc.max_memory", 2^32)`. `gp_subsample()`: the exact posterior of `m` random rows.
#' * `gp_vfe()`: the variational posterior of Titsias (2009). Its inducing points minimise the Kullback-Leibler
#'   divergence to the exact posterior.
#' * `gp_dtc()`, `gp_sor()`, `gp_fitc()`: deterministic training conditional, subset of regressors, fully independent
#'   training conditional (Quinonero-Candela and Rasmussen, 2005). Their inducing points are not moved.
#' @usage
#' gp_exact(x, ...)
#' gp_vfe(x, ...)
#' gp_dtc(x, ...)
#' gp_sor(x, ...)
#' gp_fitc(x, ...)
#' gp_subsample(x, ...)
#' \method{gp_vfe}{default}(x, y, m = NULL, kernel = NULL, noise = NULL,
#'   hyper = c("evidence", "pilot", "joint", "fixed"), mean = ~1, transform = "none",
#'   like = NULL, inducing = NULL, weights = NULL, offset = NULL, center = TRUE,
#'   scale = TRUE, control = pfdtc_control(), keep_data = TRUE, ...)
#' \method{gp_vfe}{formula}(formula, data, ..., subset, weights, na.action, offset)
#' @param x,y,kernel,noise,mean,transform,like,inducing,weights,offset as in [pfdtc()]; `y` must be numeric.
#' @param center,scale,control,keep_data,formula,data,... as in [pfdtc()].
#' @param subset,na.action as in [lm()].
#' @param m maximum number of inducing points, or number of rows for `gp_subsample()`. Default: `min(200, n)`.
#' @param hyper as in [pfdtc()]. `"joint"` starts from `"pilot"`: `gp_vfe()` then maximises the ELBO, `gp_exact()` the
#'   exact log marginal likelihood. `gp_dtc()`, `gp_sor()`, `gp_fitc()` and `gp_subsample()` have no `"joint"`.
#' @return A fit, see [pfdtc_fit], of class `c("gp_vfe", "gp_fit")` and so on. For `gp_exact()` and `gp_subsample()` the
#'   element `x` has the rows of the posterior. The element `evidence` is the log marginal likelihood of the approximate
#'   model for `gp_fitc()` and `gp_sor()`, and of the drawn rows for `gp_subsample()`.
#' @details All functions have the arguments shown for `gp_vfe()`, except that `gp_subsample()` has no `inducing` and
#'   `gp_exact()` has neither `inducing` nor `m`.
#' @section Invariants: With all rows as inducing points (or all rows drawn) every method gives the exact
#'   posterior; SoR gives it only at the rows.
#' @seealso [compare_fits()], [kl_divergence()], `vignette("comparison")`
#' @name baselines
#' @aliases gp_vfe.default gp_vfe.formula gp_exact gp_vfe gp_dtc gp_sor gp_fitc gp_subsample
#' @examples
#' exact <- gp_exact(dist ~ speed, cars)
#' vfe <- gp_vfe(dist ~ speed, cars, m = 5, like = exact)
#' kl_divergence(vfe, exact)
#' @rawNamespace export(gp_exact)
#' export(gp_vfe)
#' export(gp_dtc)
#' export(gp_sor)
#' export(gp_fitc)
#' export(gp_subsample)
#' S3method(gp_exact,default); S3method(gp_exact,formula); S3method(gp_vfe,default); S3method(gp_vfe,formula)
#' S3method(gp_dtc,default); S3method(gp_dtc,formula); S3method(gp_sor,default); S3method(gp_sor,formula)
#' S3method(gp_fitc,default); S3method(gp_fitc,formula); S3method(gp_subsample,default); S3method(gp_subsample,formula)
NULL
