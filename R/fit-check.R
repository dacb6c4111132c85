# Checks fits when a function takes them. A fit may come from a file or an earlier version, or may have been changed.

# Returns a fit of any likelihood in the current layout.
check_any_fit <- function(fit, argument) {
  if (missing(fit)) abort_input(argument, "missing", "a fit, such as pfdtc() returns")
  if (inherits(fit, "gp_hurdle")) abort_input(argument, "a hurdle of two fits", "one of its fits, `zero` or `positive`")
  if (!inherits(fit, "gp_fit")) abort_input(argument, describe(fit), "a fit, such as pfdtc() returns")
  current_fit(fit, argument)
}

# Does what check_any_fit() does, but refuses non-Gaussian likelihoods.
check_fit <- function(fit, argument) check_posterior(check_any_fit(fit, argument), "normal", argument)

# Brings a fit of version 0.1.0 to the current layout. There `posterior` was the list of factors, `evidence` had the
# name of its bound, and the signature lacked sums that can be computed again if the fit has its data.
current_fit <- function(fit, argument) {
  if (!is.list(fit)) damaged_fit(list(), argument, "list")
  if (is.list(fit$posterior) && is.null(fit$factors)) {
    fit$factors <- fit$posterior
    fit$posterior <- posterior_kind(fit)
  }
  if (is.null(fit$evidence)) {
    fit["evidence"] <- list(fit[["elbo"]])
    fit["elbo"] <- NULL
  }
  fit <- with_x(fit)
  if (is.list(fit$reference)) fit$reference <- with_x(fit$reference)
  check_fit_parts(fit, argument)
  old <- fit$signature
  if (old_signature(fit) && !is.null(fit$data)) {
    fit$signature <- data_signature(fit$data)
    if (identical(fit$reference$signature, old)) fit$reference$signature <- fit$signature
  }
  fit
}

# Renames the inputs of an exact posterior, which version 0.1.0 called `rows`.
with_x <- function(fit) {
  if (is.null(fit[["x"]]) && is.matrix(fit$rows)) names(fit)[names(fit) == "rows"] <- "x"
  fit
}

old_signature <- function(fit) !"phi1" %in% names(fit$signature$sums)

# ---- parts of a fit -------------------------------------------------------------------------------------------------

# Checks the parts that other functions read without a check: sizes that match and numbers that are finite. The cost
# does not depend on the number of rows, except for the group of each merged row. need() stops at the first of its
# arguments, named by the parts, that is not TRUE; later ones may rely on those before.
check_fit_parts <- function(fit, argument) {
  need <- function(...) {
    for (i in seq_len(...length())) {
      if (!isTRUE(...elt(i))) damaged_fit(fit, argument, names(substitute(list(...)))[i + 1L])
    }
  }
  need(method = is_one_of(fit$method, names(gp_families)),
       frame = is.list(fit$frame) && is_one_of(fit$frame$method, c("matrix", "formula")) &&
         length(fit$frame$columns) > 0L && is.character(fit$frame$columns))
  d <- length(fit$frame$columns)
  m <- fit[["m"]]
  signature <- fit$signature
  positive <- function(v) is_finite_number(v) && v > 0
  optional <- function(v, class) is.null(v) || inherits(v, class)
  one <- function(v) is.numeric(v) && length(v) == 1L
  number <- function(v) is.null(v) || one(v) # `evidence` may be infinite and `sd_y` NA
  need(kernel = is_good_kernel(fit$kernel, d), noise = positive(fit$noise), scale = positive(fit$scale),
       nobs = positive(fit$nobs),
       center = is.numeric(fit$center) && length(fit$center) > 0L && all(is.finite(fit$center)),
       evidence = number(fit$evidence), sd_y = number(fit$sd_y),
       m = is.null(m) || is_finite_number(m) && m >= 1 && m < 2^31,
       evaluations = is.null(fit$evaluations) || is.numeric(fit$evaluations),
       seconds = is.null(fit$seconds) || is.numeric(fit$seconds), control = optional(fit$control, "pfdtc_control"),
       aux = optional(fit$aux, "pfdtc_aux") && (is.null(fit$aux) || is_one_of(fit$aux$kind, names(aux_kinds))),
       reference = optional(fit$reference, "gp_fit"), data = is.null(fit$data) || is.list(fit$data),
       signature = is.list(signature) && is_plain_double(signature$sums) &&
         all(c("n", "yy") %in% names(signature$sums)) && are_numbers(signature$size, length(signature$sums)) &&
         !anyNA(unlist(signature[c("sums", "size")])))
  check_fit_factors(fit, d, need)
  if (!is.null(fit$norms)) check_fit_norms(fit, need)
  data <- fit$data
  if (is.null(data)) return()
  n <- NROW(data$x)
  group <- data$group
  used <- length(group %||% data$y)
  w <- data$weights
  zero <- data$x_zero
  given <- used + NROW(zero)
  for_each <- function(v) is.null(v) || are_numbers(v, given)
  need(`data$x` = n > 0L && is_table(data$x, n, d), `data$y` = are_numbers(data$y, n) && is.finite(sum(data$y)),
       `data$weights` = is.null(w) || are_numbers(w, n) && is.finite(sum(w)) && min(w) > 0,
       `data$group` = is.null(group) || is.integer(group) && !anyNA(group) && min(group) >= 1L && max(group) <= n,
       `data$n` = is_finite_number(data$n) && data$n == used,
       `data$center` = one(data$center), `data$scale` = one(data$scale), `data$sd_y` = one(data$sd_y),
       `data$shift` = is.list(data$shift) && all(vapply(data$shift[c("constant", "rows", "ss")], is_finite_number, NA)),
       `data$x_zero` = is.null(zero) || is_table(zero, NROW(zero), d),
       `data$response` = are_numbers(data$response, given), `data$offset` = for_each(data$offset),
       `data$prior_weights` = for_each(data$prior_weights) &&
         (is.null(zero) || sum(data$prior_weights == 0) == NROW(zero)))
}

is_one_of <- function(v, known) is.character(v) && length(v) == 1L && v %in% known
is_plain_double <- function(v) is.double(v) && !is.object(v)
is_table <- function(v, rows, columns) is_plain_double(v) && identical(dim(v), as.integer(c(rows, columns)))
are_numbers <- function(v, n) is_plain_double(v) && length(v) == n

# Returns TRUE for a kernel of d columns with all parameters.
is_good_kernel <- function(kernel, d) {
  if (!inherits(kernel, "pfdtc_kernel") || !is.list(kernel)) return(FALSE)
  parts <- as_sum(kernel)
  of_columns <- vapply(parts$leaves, function(l) {
    is_one_of(l$profile, names(factor_parameters)) && all(l$inputs %in% seq_len(d)) && !anyDuplicated(l$inputs)
  }, NA)
  factors <- unlist(lapply(parts$terms, `[[`, "leaves"))
  if (!all(of_columns) || !length(factors) || !all(factors %in% seq_along(parts$leaves))) return(FALSE)
  if (is.null(kernel$leaves)) {
    some <- is.numeric(kernel$inputs) && length(kernel$inputs) > 0L || kernel$profile == "constant"
    lengths <- !"lengthscale" %in% factor_parameters[[c(kernel$profile, "se")[1L]]] || is.numeric(kernel$lengthscale) &&
      length(kernel$lengthscale) == parameter_count(kernel, "lengthscale")
    if (!some || !lengths || !is_finite_number(kernel$variance)) return(FALSE)
  }
  values <- kernel_values(kernel)
  all(is.finite(values) & values > 0)
}

check_fit_factors <- function(fit, d, need) {
  dense <- !is.null(fit$x) || is.null(method_traits(fit)$objective)
  f <- fit$factors
  if (dense && is.null(fit$x) && is.null(f)) return() # without its posterior a fit still has an evidence
  points <- if (dense) fit$x else fit$inducing
  m <- NROW(points)
  if (dense) need(x = m > 0L && is_table(points, m, d)) else need(inducing = m > 0L && is_table(points, m, d))
  near <- fit$near
  if (!is.null(near)) {
    need(near = is.list(near) && is.numeric(near$neighbours) && length(near$neighbours) %in% 1:2 &&
           isTRUE(all(near$neighbours >= 0)) && !is.unsorted(near$neighbours) &&
           is_finite_number(near$train_neighbours) && near$train_neighbours >= 0 &&
           (is.null(near$rows) || is.list(near$rows)))
    rank <- near$rank
    kept <- near$rows
    n <- NROW(kept$x)
    k <- m + sum(vapply(near$groupings, effects_of_grouping, 0))
    need(`near$rank` = is.null(rank) || is.numeric(rank) && all(is.finite(rank)) &&
           (is.null(fit$data) || length(rank) == NROW(fit$data$x)),
         data = is.list(kept) || !is.null(fit$data),
         `near$rows` = is.null(kept) || n > 0L && is_table(kept$x, n, d) && are_numbers(kept$y, n) &&
           (is.null(kept$weights) || are_numbers(kept$weights, n)),
         near = is_table(near$L, m, m) && is_table(near$C, k, k) && are_numbers(near$beta, k))
    if (is.null(f)) return() # it is computed when needed
  }
  need(factors = is.list(f))
  if (!is.null(f$groupings)) {
    k <- NROW(f$W)
    q <- sum(vapply(f$groupings, effects_of_grouping, 0))
    return(need(factors = k >= m && is_table(f$W, k, k) && is_table(f$L, m, m) && are_numbers(f$gamma, k) &&
                  are_numbers(f$b, q) && is_plain_double(f$sums) && length(f$sums) > m^2 + k * q))
  }
  if (!response_of(fit)$conjugate) {
    q <- functions_of_f(fit$likelihood)
    good <- is_table(f$L, m, m) && is_table(f$C, m * q, m * q) && length(f$beta) == m * q &&
      if (q > 1L || !is.null(f$inverse)) is_table(f$inverse, m, m * q * (q + 1) / 2) else is_table(f$G, m, m)
    return(need(factors = good && is.list(fit$likelihood)))
  }
  if (dense) { # without its Cholesky factor, it has the model and the weights of the rows that it was made of
    return(need(factors = are_numbers(f$alpha, m) && if (!is.null(f$L)) is_table(f$L, m, m) else
      is.list(f$model) && is_finite_number(f$model$noise) && (is.null(f$weights) || are_numbers(f$weights, m))))
  }
  squares <- f[c("yy", "k_sum", "t", "rss")]
  need(factors = all(vapply(f[c("L", "G", "C")], is_table, NA, m, m)) && are_numbers(f$Ay, m) &&
         are_numbers(f$beta, m) && all(vapply(squares, is_finite_number, NA)) && all(unlist(squares) >= 0),
       jitter = is_finite_number(fit$jitter) && fit$jitter >= 0)
}

# Checks the norms of a reference posterior and the correction of its mean.
check_fit_norms <- function(fit, need) {
  m <- NROW(fit$inducing)
  complete <- function(norms) {
    numbers <- norms[setdiff(names(norms), "Psi")]
    all(c("weight", "spread", "slack", "growth", "vv", "alpha", "beta_error", "t", "lam", "v_E", "c", "w_norm",
          "w_E") %in% names(numbers)) && all(vapply(numbers, are_numbers, NA, 1L)) && !anyNA(unlist(numbers))
  }
  correction <- fit$correction
  need(norms = is.list(fit$norms) && is_table(fit$norms$Psi, m, m) && complete(fit$norms),
       correction = is.null(correction) || is.list(correction) && is.list(correction$norms) &&
         is.list(correction$response) && is_plain_double(correction$v) && length(correction$v) > 0L)
  if (is.null(correction)) return()
  response <- correction$response
  numbers <- list(correction$rounding, response$yy, response$rss)
  need(correction = complete(correction$norms) && all(vapply(numbers, is_finite_number, NA)) &&
         are_numbers(response$Ay, m) && are_numbers(response$beta, m) && !is.list(correction$made_from) &&
         length(correction$made_from) > 0L)
}

# Refuses a fit as damaged. The hint depends on whether another version made the fit.
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

# Returns the exact fit of the same model as all `fits`. For a `caller` that compares fits, NULL is allowed, and a hint
# covers other values that users put there.
check_exact <- function(exact, fits, caller = NULL) {
  if (missing(exact)) {
    abort_input("exact", "missing", "a fit by gp_exact()", hint = "Use gp_exact() of the same data with like = fit.")
  }
  if (is.null(exact) && !is.null(caller)) return(NULL)
  is_fit <- inherits(exact, "gp_fit")
  if (is_fit) exact <- check_any_fit(exact, "exact")
  if (!is_fit || (!is_exact(exact) && !is_laplace_limit(exact))) {
    hint <- if (is.data.frame(exact) || is.numeric(exact)) "Rows go by name: newdata = <rows>." else
      if (is_fit && !is.null(caller)) sprintf("Fits to compare go in one list: %s(list(<fit>, <fit>), ...).", caller)
    abort_input("exact", if (is_fit) sprintf("a fit by %s()", exact$method) else describe(exact), "a fit by gp_exact()",
                hint = hint)
  }
  for (fit in fits) check_same_model(exact, fit, "exact", "fit")
  exact
}

# Checks that two fits approximate the same exact GP: data, centre, kernel and noise agree. For non-Gaussian likelihoods
# family, numbers of trials, offset and mean take the place of the noise.
check_same_model <- function(a, b, argument, other) {
  close <- function(u, v) length(u) == length(v) && all(abs(u - v) <= 1e-12)
  conjugate <- c(response_of(a)$conjugate, response_of(b)$conjugate)
  what <- c("name", "link", "df", "theta")
  same_likelihood <- all(conjugate) || !any(conjugate) && identical(a$likelihood[what], b$likelihood[what]) &&
    identical(a$sum_of_sites, b$sum_of_sites) && all(abs(a$center - b$center) <= 1e-12 * (1 + abs(b$center)))
  same_kernel <- identical(kernel_structure(a$kernel), kernel_structure(b$kernel))
  differ <- c(data = !same_data(a, b), likelihood = !same_likelihood, kernel = !same_kernel,
              hyperparameters = !close(model_theta(a), model_theta(b)))
  if (any(differ)) {
    what <- names(differ)[differ]
    abort_input(argument, sprintf("one with other %s than `%s`", paste(what, collapse = " and "), other),
                sprintf("a fit of the same model as `%s`", other),
                hint = if ("likelihood" %in% what) {
                  paste("Pass family = family(fit), center = coef(fit)[[\"mean\"]], kernel = fit$kernel and",
                        "hyper = \"fixed\", with the same numbers of trials and offset.")
                } else if (!"data" %in% what) {
                  "Pass like = fit."
                } else if (old_signature(a) != old_signature(b)) {
                  "pfdtc 0.1.0 kept too little information on dropped data. Fit again."
                } else {
                  "Data, weights, offset, `center` and `transform` must agree: pass like = fit."
                })
  }
}

same_model <- function(a, b) {
  if (!inherits(a, "gp_fit") || !inherits(b, "gp_fit")) return(FALSE)
  tryCatch({
    check_same_model(check_any_fit(a, "a"), check_any_fit(b, "b"), "a", "b")
    TRUE
  }, pfdtc_error_input = function(e) FALSE)
}

# Refuses fits that are not in one list, as in f(a = fit1, b = fit2). `lacking`: `fits` is missing.
check_fits_given <- function(lacking, dots, caller) {
  strays <- vapply(dots, inherits, NA, "gp_fit")
  if (!lacking && !any(strays)) return()
  shown <- sub("^ = ", "", paste(sprintf("%s = <fit>", names(dots)[strays]), collapse = ", "))
  hint <- if (any(strays)) sprintf("Fits go in one list: %s(list(%s), ...).", caller, shown)
  abort_input("fits", if (lacking) "missing" else "fits outside of it", "a fit or a list of all fits", hint = hint)
}
