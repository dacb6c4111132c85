# Do fits speak of the same exact Gaussian process?

check_exact <- function(exact, fit) {
  if (missing(exact)) {
    abort_input("exact", "missing", "a fit by gp_exact()",
                hint = "Of the same data, with kernel = fit$kernel, noise = fit$noise and hyper = \"fixed\".")
  }
  exact <- check_any_fit(exact, "exact")
  if (!is_exact(exact) && !is_laplace_limit(exact)) {
    abort_input("exact", sprintf("a fit by %s()", exact$method), "a fit by gp_exact()")
  }
  check_same_model(exact, fit, "exact", "fit")
  exact
}

# Two fits speak of the same exact GP when data, centre, kernel and noise agree, and what stands for the noise: family,
# numbers of trials, offset and mean.
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
                  "Pass kernel = fit$kernel, noise = fit$noise and hyper = \"fixed\"."
                } else if (old_signature(a) != old_signature(b)) {
                  "pfdtc 0.1.0 kept too little of data that it left out: make that fit anew."
                } else {
                  "Data, weights, offset and `center` must agree."
                })
  }
}

same_likelihood <- function(a, b) {
  if (response_of(a)$conjugate && response_of(b)$conjugate) return(TRUE)
  what <- c("name", "link", "df", "theta")
  !response_of(a)$conjugate && !response_of(b)$conjugate && identical(a$likelihood[what], b$likelihood[what]) &&
    identical(a$sum_of_sites, b$sum_of_sites) && abs(a$center - b$center) <= 1e-12 * (1 + abs(b$center))
}

same_model <- function(a, b) {
  if (!inherits(a, "gp_fit") || !inherits(b, "gp_fit")) return(FALSE)
  tryCatch({
    check_same_model(check_any_fit(a, "a"), check_any_fit(b, "b"), "a", "b")
    TRUE
  }, pfdtc_error_input = function(e) FALSE)
}

# Fits that are not in one list, as in f(a = fit1, b = fit2): `lacking`: is `fits` missing?
check_fits_given <- function(lacking, dots, caller) {
  strays <- vapply(dots, inherits, NA, "gp_fit")
  if (!lacking && !any(strays)) return()
  hint <- if (any(strays)) {
    shown <- paste(sprintf("%s = <fit>", names(dots)[strays]), collapse = ", ")
    sprintf("Fits go in one list: %s(list(%s), ...).", caller, sub("^ = ", "", shown))
  }
  abort_input("fits", if (lacking) "missing" else "fits outside of it", "a fit or a list of all fits", hint = hint)
}

# What else the second argument may have been meant to be.
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
