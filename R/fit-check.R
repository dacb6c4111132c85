# Checks fits at the door of every function that takes one. A fit may come from a file or an earlier version, or may
# have been changed.

# Returns a fit of any likelihood in the current layout.
check_any_fit <- function(fit, argument) {
  if (missing(fit)) abort_input(argument, "missing", "a fit, such as pfdtc() returns")
  if (inherits(fit, "gp_hurdle")) abort_input(argument, "a hurdle of two fits", "one of them, `zero` or `positive`")
  if (!inherits(fit, "gp_fit")) abort_input(argument, describe(fit), "a fit, such as pfdtc() returns")
  current_fit(fit, argument)
}

# Does the same, but refuses non-Gaussian likelihoods.
check_fit <- function(fit, argument) check_posterior(check_any_fit(fit, argument), "normal", argument)

# Brings a fit of version 0.1.0 to the current layout. There `posterior` was the list of factors, `evidence` had the
# name of its bound, and the signature lacked sums that can be computed again if the fit has its data.
current_fit <- function(fit, argument) {
  if (!is.list(fit)) damaged_fit(fit, argument, "it is not a list")
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
# does not depend on the number of rows, except for the group of each merged row.
check_fit_parts <- function(fit, argument) {
  need <- function(ok, what) if (!isTRUE(ok)) damaged_fit(fit, argument, what)
  need(is_one_of(fit$method, names(gp_families)), "`method` is unknown")
  need(is.list(fit$frame) && is_one_of(fit$frame$method, c("matrix", "formula")), "`frame` is damaged")
  d <- length(fit$frame$columns)
  need(d > 0L && is.character(fit$frame$columns), "`frame` does not name its columns")
  check_fit_kernel(fit$kernel, d, need)
  for (what in c("noise", "scale", "nobs")) {
    need(is_number(fit[[what]]) && fit[[what]] > 0, sprintf("`%s` is not a positive number", what))
  }
  need(is.numeric(fit$center) && length(fit$center) > 0L && all(is.finite(fit$center)), "`center` is not a number")
  for (what in c("evidence", "sd_y")) { # `evidence` may be infinite and `sd_y` NA
    need(is.null(fit[[what]]) || (is.numeric(fit[[what]]) && length(fit[[what]]) == 1L),
         sprintf("`%s` is not a number", what))
  }
  m <- fit[["m"]]
  need(is.null(m) || (is_number(m) && m >= 1 && m < 2^31), "`m` is not a number of points")
  for (what in c("evaluations", "seconds")) {
    need(is.null(fit[[what]]) || is.numeric(fit[[what]]), sprintf("`%s` are not numbers", what))
  }
  need(is.null(fit$control) || inherits(fit$control, "pfdtc_control"), "`control` is not made by pfdtc_control()")
  need(is.null(fit$aux) || inherits(fit$aux, "pfdtc_aux") && is.character(fit$aux$kind) && length(fit$aux$kind) == 1L,
       "`aux` is not an auxiliary distribution")
  need(is.null(fit$reference) || inherits(fit$reference, "gp_fit"), "`reference` is not a fit")
  need(is.null(fit$data) || is.list(fit$data), "`data` is not a list")
  signature <- fit$signature
  need(is.list(signature) && is_plain_double(signature$sums) && all(c("n", "yy") %in% names(signature$sums)) &&
         are_numbers(signature$size, length(signature$sums)) && !anyNA(unlist(signature[c("sums", "size")])),
       "`signature` is damaged")
  check_fit_factors(fit, d, need)
  if (!is.null(fit$norms)) check_fit_norms(fit, need)
  if (!is.null(fit$data)) check_fit_data(fit$data, d, need)
}

is_one_of <- function(v, known) is.character(v) && length(v) == 1L && v %in% known
is_plain_double <- function(v) is.double(v) && !is.object(v)
is_number <- function(v) is.numeric(v) && !is.object(v) && length(v) == 1L && is.finite(v)
is_table <- function(v, rows, columns) is_plain_double(v) && identical(dim(v), as.integer(c(rows, columns)))
are_numbers <- function(v, n) is_plain_double(v) && length(v) == n

check_fit_kernel <- function(kernel, d, need) {
  need(inherits(kernel, "pfdtc_kernel") && is.list(kernel), "`kernel` is not a kernel")
  if (!is.null(kernel$leaves)) return(check_composite(kernel, d, need))
  inputs <- kernel$inputs
  some <- length(inputs) > 0L || identical(kernel$profile, "constant")
  need(is.numeric(inputs) && some && all(inputs %in% seq_len(d)) && !anyDuplicated(inputs),
       sprintf("`kernel$inputs` are not among the %d columns of the inputs", d))
  l <- kernel$lengthscale
  need(is.character(kernel$profile) && length(kernel$profile) == 1L, "`kernel$profile` is not a name")
  if ("lengthscale" %in% leaf_parameters(kernel)) {
    size <- parameter_count(kernel, "lengthscale")
    need(is.numeric(l) && length(l) == size && all(is.finite(l) & l > 0),
         "`kernel$lengthscale` is not a positive number for each input")
  }
  need(is_number(kernel$variance) && kernel$variance > 0, "`kernel$variance` is not a positive number")
  if (is_additive(kernel)) check_values(kernel, need)
}

check_composite <- function(kernel, d, need) {
  known <- vapply(kernel$leaves, function(l) is_one_of(l$profile, names(factor_parameters)), NA)
  need(length(known) > 0L && all(known), "`kernel$leaves` are not factors")
  at <- unlist(lapply(kernel$leaves, `[[`, "inputs"))
  need(all(at %in% seq_len(d)), sprintf("`kernel` reads columns that are not among the %d of the inputs", d))
  terms <- unlist(lapply(kernel$terms, `[[`, "leaves"))
  need(length(terms) > 0L && all(terms %in% seq_along(kernel$leaves)), "`kernel$terms` are not of its factors")
  check_values(kernel, need)
}

check_values <- function(kernel, need) {
  values <- kernel_values(kernel)
  need(all(is.finite(values) & values > 0), "`kernel` has parameters that are not positive numbers")
}

check_fit_factors <- function(fit, d, need) {
  dense <- !is.null(fit$x) || is.null(method_traits(fit)$objective)
  f <- fit$factors
  if (dense && is.null(fit$x) && is.null(f)) return() # without its posterior a fit still has an evidence
  name <- if (dense) "x" else "inducing"
  points <- fit[[name]]
  m <- NROW(points)
  need(m > 0L && is_table(points, m, d), sprintf("`%s` is not a matrix with the %d columns of the inputs", name, d))
  near <- fit$near
  if (!is.null(near)) {
    need(is.list(near) && is.numeric(near$neighbours) && length(near$neighbours) %in% 1:2 &&
           isTRUE(all(near$neighbours >= 0)) && !is.unsorted(near$neighbours) &&
           is_number(near$train_neighbours) && near$train_neighbours >= 0 && (is.null(near$rows) || is.list(near$rows)),
         "`near` is not a list with `neighbours` and `train_neighbours`, two numbers")
    rank <- near$rank
    need(is.null(rank) || is.numeric(rank) && all(is.finite(rank)) &&
           (is.null(fit$data) || length(rank) == NROW(fit$data$x)),
         "`near$rank` is not a number for each row of the data")
    kept <- near$rows
    need(is.list(kept) || !is.null(fit$data), "`data` are missing, which its neighbours need")
    n <- NROW(kept$x)
    need(is.null(kept) || (n > 0L && is_table(kept$x, n, d) && are_numbers(kept$y, n) &&
                             (is.null(kept$weights) || are_numbers(kept$weights, n))),
         "`near$rows` are not rows with the columns of the inputs")
    k <- m + sum(vapply(near$groupings, effects_of_grouping, 0))
    need(is_table(near$L, m, m) && is_table(near$C, k, k) && are_numbers(near$beta, k),
         "`near` is not of the size of `inducing`")
    if (is.null(f)) return() # it is computed when needed
  }
  need(is.list(f), "`factors` is not a list")
  if (!is.null(f$groupings)) {
    k <- NROW(f$W)
    q <- sum(vapply(f$groupings, effects_of_grouping, 0))
    return(need(k >= m && is_table(f$W, k, k) && is_table(f$L, m, m) && are_numbers(f$gamma, k) &&
                  are_numbers(f$b, q) && is_plain_double(f$sums) && length(f$sums) > m^2 + k * q,
                "`factors` are not of the size of `inducing` and of the groups"))
  }
  if (!response_of(fit)$conjugate) {
    q <- functions_of_f(fit$likelihood)
    good <- is_table(f$L, m, m) && is_table(f$C, m * q, m * q) && length(f$beta) == m * q &&
      if (q > 1L || !is.null(f$inverse)) is_table(f$inverse, m, m * q * (q + 1) / 2) else is_table(f$G, m, m)
    return(need(good && is.list(fit$likelihood), "`factors` are not of the size of `inducing`"))
  }
  of_points <- function(what, good) need(good, sprintf("`factors$%s` is not of the size of `%s`", what, name))
  # without its Cholesky factor, an exact posterior has the names of the rows that it was made of
  made_of <- dense && is.null(f$L)
  need(!made_of || is.list(f$model) && is_number(f$model$noise) && (is.null(f$weights) || are_numbers(f$weights, m)),
       "`factors` do not have the model and the weights that they were made of")
  for (what in if (!dense) c("L", "G", "C") else if (!made_of) "L") of_points(what, is_table(f[[what]], m, m))
  for (what in if (dense) "alpha" else c("Ay", "beta")) of_points(what, are_numbers(f[[what]], m))
  if (dense) return()
  for (what in c("yy", "k_sum", "t", "rss")) {
    need(is_number(f[[what]]) && f[[what]] >= 0, sprintf("`factors$%s` is not a sum of squares", what))
  }
  need(is_number(fit$jitter) && fit$jitter >= 0, "`jitter` is not a number")
}

# Checks the norms of a reference posterior and the correction of its mean.
check_fit_norms <- function(fit, need) {
  m <- NROW(fit$inducing)
  each <- function(norms) {
    numbers <- setdiff(names(norms), "Psi")
    lacking <- setdiff(c("weight", "spread", "slack", "growth", "vv", "alpha", "beta_error", "t", "lam", "v_E", "c",
                         "w_norm", "w_E"), numbers)
    bad <- Filter(function(what) !are_numbers(norms[[what]], 1L) || is.na(norms[[what]]), numbers)
    bad <- c(lacking, bad)
    need(!length(bad), sprintf("`norms$%s` is not a number", bad[1L]))
  }
  need(is.list(fit$norms) && is_table(fit$norms$Psi, m, m), "`norms` are not of the size of `inducing`")
  each(fit$norms)
  correction <- fit$correction
  if (is.null(correction)) return()
  need(is.list(correction) && is.list(correction$norms) && is.list(correction$response) &&
         is_plain_double(correction$v), "`correction` is damaged")
  each(correction$norms)
  response <- correction$response
  need(length(correction$v) > 0L && is_number(correction$rounding) && are_numbers(response$Ay, m) &&
         are_numbers(response$beta, m) && is_number(response$yy) && is_number(response$rss),
       "`correction` is not of the size of `inducing`")
  need(!is.list(correction$made_from) && length(correction$made_from) > 0L, "`correction` does not name its rows")
}

check_fit_data <- function(data, d, need) {
  n <- NROW(data$x)
  need(n > 0L && is_table(data$x, n, d), sprintf("`data$x` is not a matrix with the %d columns of the inputs", d))
  need(are_numbers(data$y, n) && is.finite(sum(data$y)), "`data$y` does not have a number for each row of `data$x`")
  w <- data$weights
  need(is.null(w) || (are_numbers(w, n) && is.finite(sum(w)) && min(w) > 0),
       "`data$weights` does not have a positive number for each row of `data$x`")
  group <- data$group
  used <- if (is.null(group)) n else length(group)
  need(is.null(group) || (is.integer(group) && !anyNA(group) && min(group) >= 1L && max(group) <= n),
       "`data$group` does not have a row of `data$x` for each row")
  need(is_number(data$n) && data$n == used, "`data$n` is not the number of rows")
  for (what in c("center", "scale", "sd_y")) {
    need(is.numeric(data[[what]]) && length(data[[what]]) == 1L, sprintf("`data$%s` is not a number", what))
  }
  need(is.list(data$shift) && all(vapply(data$shift[c("constant", "rows", "ss")], is_number, NA)),
       "`data$shift` is damaged")
  zero <- data$x_zero
  need(is.null(zero) || is_table(zero, NROW(zero), d), "`data$x_zero` does not have the columns of `data$x`")
  given <- used + NROW(zero)
  need(are_numbers(data$response, given), "`data$response` does not have a number for each row")
  for (what in c("offset", "prior_weights")) {
    need(is.null(data[[what]]) || are_numbers(data[[what]], given),
         sprintf("`data$%s` does not have a number for each row", what))
  }
  need(is.null(zero) || sum(data$prior_weights == 0) == NROW(zero),
       "`data$prior_weights` are not those of `data$x_zero`")
}

# Refuses a fit. The hint depends on whether another version made the fit.
damaged_fit <- function(fit, argument, what) {
  made_by <- tryCatch(as.character(fit$version), error = function(e) character())
  here <- as.character(utils::packageVersion("pfdtc"))
  other <- length(made_by) == 1L && made_by != here
  abort_input(argument, sprintf("a damaged fit: %s", what), "a fit as it was made",
              message = sprintf("`%s` cannot be used: %s.", argument, what),
              hint = if (other) sprintf("It was made by pfdtc %s, and this is %s. Fit again.", made_by, here) else
                "It was changed after it was made. Fit again.")
}

# ---- fits of the same exact Gaussian process -----------------------------------------------------------------------

check_exact <- function(exact, fit) {
  if (missing(exact)) {
    abort_input("exact", "missing", "a fit by gp_exact()",
                hint = "Use gp_exact() of the same data with like = fit.")
  }
  exact <- check_any_fit(exact, "exact")
  if (!is_exact(exact) && !is_laplace_limit(exact)) {
    abort_input("exact", sprintf("a fit by %s()", exact$method), "a fit by gp_exact()")
  }
  check_same_model(exact, fit, "exact", "fit")
  exact
}

# Checks that two fits approximate the same exact GP: data, centre, kernel and noise agree. For non-Gaussian likelihoods
# family, numbers of trials, offset and mean take the place of the noise.
check_same_model <- function(a, b, argument, other) {
  close <- function(u, v) length(u) == length(v) && all(abs(u - v) <= 1e-12)
  same_kernel <- identical(kernel_structure(a$kernel), kernel_structure(b$kernel))
  differ <- c(data = !same_data(a, b), likelihood = !same_likelihood(a, b), kernel = !same_kernel,
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

same_likelihood <- function(a, b) {
  if (response_of(a)$conjugate && response_of(b)$conjugate) return(TRUE)
  what <- c("name", "link", "df", "theta")
  !response_of(a)$conjugate && !response_of(b)$conjugate && identical(a$likelihood[what], b$likelihood[what]) &&
    identical(a$sum_of_sites, b$sum_of_sites) && all(abs(a$center - b$center) <= 1e-12 * (1 + abs(b$center)))
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
  hint <- if (any(strays)) {
    shown <- paste(sprintf("%s = <fit>", names(dots)[strays]), collapse = ", ")
    sprintf("Fits go in one list: %s(list(%s), ...).", caller, sub("^ = ", "", shown))
  }
  abort_input("fits", if (lacking) "missing" else "fits outside of it", "a fit or a list of all fits", hint = hint)
}

# Checks the second argument, `exact`. A hint covers other values that users put there.
check_exact_given <- function(exact, caller) {
  if (is.null(exact)) return()
  if (inherits(exact, "gp_fit") && (is_exact(check_any_fit(exact, "exact")) || is_laplace_limit(exact))) return()
  if (inherits(exact, "gp_fit")) {
    abort_input("exact", sprintf("a fit by %s()", exact$method), "a fit by gp_exact()",
                hint = sprintf("Fits to compare go in one list: %s(list(<fit>, <fit>), ...).", caller))
  }
  abort_input("exact", describe(exact), "a fit by gp_exact(), or NULL",
              hint = if (is.data.frame(exact) || is.numeric(exact)) "Rows go by name: newdata = <rows>.")
}
