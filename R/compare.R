#' Compare fits
#'
#' One data frame, a row a fit: how far each is from the exact Gaussian process, and how well it predicts.
#'
#' @param fits a list of fits (names become the `method` column), or one fit.
#' @param exact a [gp_exact()] fit of the same data and hyperparameters (of classes and counts one whose points leave
#'   nothing unexplained); without it the columns that need it are `NA`.
#' @param newdata rows to compare at.
#' @param y responses at `newdata`, for predictive measures. `NULL`: taken from `newdata` where the fits have a
#'   formula and it holds the response, else those measures are `NA`. Of classes and counts they are taken so alone.
#' @param pf compute `pf_divergence`, at a cost of \eqn{O(n^3)}? `NULL`: where `exact` has at most 2,000 rows.
#' @param certify compute `certified_mean_error`, and with what effort (see [certify()])? `TRUE` is `"reference"`, in
#'   time \eqn{O(n m_2^2)}{O(n m2^2)}: fits of the same model share one reference, the largest that one of them carries,
#'   or one made here with four times the points of the largest of them. `FALSE`: not at all.
#' @param ... not used.
#' @return A data frame with columns
#'   \describe{
#'   \item{method}{name of the fit, or its method.}
#'   \item{m}{inducing points, or rows of a subsample; `NA` for the exact GP.}
#'   \item{objective}{final value of what was minimised (of the scaled response; comparable within a method only).}
#'   \item{rmse_mean, rmse_sd}{root mean square error of posterior mean and sd of the latent function against the
#'     exact GP's over `newdata`, in units of `y`.}
#'   \item{kl, kl_marginal}{[kl_divergence()] of the processes, and mean marginal one over `newdata`, in nats.}
#'   \item{rmse_pred, nlpd, coverage}{root mean square error of the predictions, mean negative log predictive density
#'     of a new response, share of responses inside the 95 % prediction interval.}
#'   \item{certified_mean_error}{the largest `mean_error` of [certify()] over `newdata`: the fit's mean is nowhere
#'     further from the exact GP's of its own hyperparameters, in units of `y`. It takes no `exact`; `NA` where neither
#'     data nor a reference are at hand.}
#'   \item{seconds, evaluations}{of the whole fit and of its objectives.}
#'   \item{pf_divergence}{[pf_divergence()] with the exact posterior, `NA` for SoR, FITC and subsample.}
#'   }
#' @section Errors: class `pfdtc_error_input` where a fit and `exact` differ in data or hyperparameters, saying in
#'   which, and where fits are not given as one list or rows not as `newdata`.
#' @section Invariants: `rmse_mean <= certified_mean_error` where both are of the same exact GP. R's random numbers are
#'   left as they were.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), section 6, whose measures these are.
#' @examples
#' exact <- gp_exact(dist ~ speed, cars)
#' same <- list(kernel = exact$kernel, noise = exact$noise, hyper = "fixed", m = 4)
#' fits <- list(pF = do.call(pfdtc, c(list(dist ~ speed, quote(cars)), same)),
#'              SoR = do.call(gp_sor, c(list(dist ~ speed, quote(cars)), same)))
#' compare_fits(fits, exact, cars)
#' @export
compare_fits <- function(fits, exact = NULL, newdata, y = NULL, pf = NULL, certify = TRUE, ...) {
  check_fits_given(missing(fits), list(...), "compare_fits")
  check_dots_empty(list(...), names(formals(compare_fits)))
  if (inherits(fits, "gp_fit")) fits <- list(fits)
  if (!is.list(fits) || !length(fits)) abort_input("fits", describe(fits), "a list of fits")
  for (i in seq_along(fits)) fits[[i]] <- check_any_fit(fits[[i]], sprintf("fits[[%d]]", i))
  check_exact_given(exact, "compare_fits")
  if (missing(newdata)) abort_input("newdata", "missing", "rows to compare at")
  if (!is.null(exact)) for (fit in fits) exact <- check_exact(exact, fit)
  if (is.null(pf)) pf <- !is.null(exact$x) && nrow(exact$x) <= 2000
  pf <- check_flag(pf, "pf") && !is.null(exact)
  effort <- compare_effort(certify)
  y <- compare_response(fits, newdata, y)
  truth <- if (!is.null(exact)) latent_at(exact, new_inputs(exact, newdata)$x)
  rows <- lapply(fits, compare_one, exact = exact, truth = truth, newdata = newdata, y = y, pf = pf)
  out <- do.call(rbind, rows)
  if (!is.null(effort)) out$certified_mean_error <- certified_errors(fits, newdata, effort)
  labels <- names(fits)
  given <- if (is.null(labels)) logical(nrow(out)) else nzchar(labels)
  out$method[given] <- labels[given]
  row.names(out) <- NULL
  out
}

compare_one <- function(fit, exact, truth, newdata, y, pf) {
  new <- new_inputs(fit, newdata)
  at <- latent_at(fit, new$x)
  rms <- function(e) sqrt(mean(e^2))
  out <- data.frame(
    method = fit$method, m = if (is.null(fit$m)) NA_integer_ else fit$m, objective = fit$objective,
    rmse_mean = NA_real_, rmse_sd = NA_real_, kl = NA_real_, kl_marginal = NA_real_, rmse_pred = NA_real_,
    nlpd = NA_real_, coverage = NA_real_, certified_mean_error = NA_real_, seconds = sum(fit$seconds),
    evaluations = sum(fit$evaluations), pf_divergence = NA_real_)
  if (!is.null(truth)) {
    out$rmse_mean <- rms(at$mean - truth$mean)
    out$rmse_sd <- rms(sqrt(at$var) - sqrt(truth$var))
    family <- gp_family(fit)
    # a kl that needs the data of a fit without them stays NA
    # nor has far and near one: its rows are others at every point
    has_kl <- is.null(fit$near) && response_of(fit)$conjugate && (!is.null(fit$data) || !(family$fitc || family$some))
    if (has_kl) out$kl <- kl_divergence(fit, exact)
    out$kl_marginal <- kl_marginal(at, truth)
    if (pf && has_kl && family$dtc && !is.null(fit$data)) {
      out$pf_divergence <- pf_divergence(fit, exact)
    }
  }
  if (!response_of(fit)$conjugate && has_response(fit, newdata)) {
    sites <- new_sites(fit, newdata)
    p <- stats::predict(fit, newdata, se.fit = TRUE)
    known <- which(!is.na(p$fit) & !is.na(sites$y))
    score <- score_fold_laplace(fit, scored_sites(fit, take_sites(sites, known), p$fit[known], p$se.fit[known]^2))
    out[c("rmse_pred", "nlpd", "coverage")] <- score[c("rmse", "nlpd", "cover95")]
  } else if (!is.null(y) && response_of(fit)$conjugate) {
    offset <- if (length(new$offset) > 1L) new$offset[new$keep] else new$offset
    var <- at$var + noise_at(fit, new$x)
    t <- fit$transform
    y <- y[new$keep]
    e <- (if (is.null(t)) y else transformed(t, y)) - offset - at$mean
    seen <- !is.na(e)
    out$rmse_pred <- rms(if (is.null(t)) e[seen] else (y - moments_back(t, at$mean + offset, var)$mean)[seen])
    slope <- if (is.null(t)) 0 * e else log_slope(t, y)
    out$nlpd <- mean((log(2 * pi * var) + e^2 / var - 2 * slope)[seen]) / 2
    out$coverage <- mean((abs(e) <= stats::qnorm(0.975) * sqrt(var))[seen])
  }
  out
}

compare_effort <- function(certify) {
  if (is.logical(certify)) return(if (check_flag(certify, "certify")) "reference")
  check_choice(certify, c("reference", "fast", "tight"), "certify")
}

# The largest certified error of each fit's mean, NA where it cannot be had. Fits of the same model share a reference.
certified_errors <- function(fits, newdata, effort) {
  references <- vector("list", length(fits))
  if (effort != "fast") {
    left <- which(!vapply(fits, is_exact, NA)) # these need none
    while (length(left)) {
      group <- left[vapply(fits[left], same_model, NA, fits[[left[1L]]])]
      references[group] <- list(shared_reference(fits[group]))
      left <- setdiff(left, group)
    }
  }
  mapply(function(fit, reference) {
    has_data <- !is.null(fit$data) || is_exact(fit)
    if (if (effort == "reference") !has_data && is.null(reference) else !has_data) return(NA_real_)
    error <- same_chance(certify(fit, newdata, effort, reference = reference))$mean_error
    if (all(is.na(error))) NA_real_ else max(error, na.rm = TRUE)
  }, fits, references)
}

# The largest reference that fits of one model carry, else one made by the largest fit that has its data, or NULL.
shared_reference <- function(fits) {
  kept <- Filter(Negate(is.null), lapply(fits, function(fit) fit$reference))
  if (length(kept)) return(kept[[which.max(vapply(kept, points_of_fit, 1))]])
  with_data <- Filter(function(fit) !is.null(fit$data), fits)
  if (length(with_data)) same_chance(reference(with_data[[which.max(vapply(with_data, points_of_fit, 1))]]))
}

compare_response <- function(fits, newdata, y) {
  if (!is.null(y)) return(check_vector(y, "y", NROW(newdata)))
  known <- which(vapply(fits, function(fit) response_of(fit)$conjugate && has_response(fit, newdata), NA))
  if (!length(known)) return(NULL)
  terms <- fits[[known[1L]]]$terms
  as.double(eval(response_variable(terms), newdata, environment(terms)))
}

response_variable <- function(terms) attr(terms, "variables")[[1L + attr(terms, "response")]]

has_response <- function(fit, newdata) {
  !is.null(fit$terms) && is.data.frame(newdata) && all(all.vars(response_variable(fit$terms)) %in% names(newdata))
}
