# Compares Laplace's approximation with the true posterior, by importance sampling and a variational lower bound.

#' Compare Laplace's approximation with the true posterior
#'
#' Estimates the error of Laplace's approximation by importance sampling from the fit's posterior. Only `elbo` is a
#' bound. For log-concave likelihoods `evidence_bounds(fit, true = TRUE)` bounds the error. [certify()] bounds the error
#' that the inducing points add.
#' @param fit A fit by [pfdtc()] with its data, without neighbours and with a non-Gaussian `family` other than
#'   [multinomial()].
#' @param draws Number of draws, with \eqn{2 n m} multiplications each.
#' @return A list of class `pfdtc_laplace_check`, in nats: `laplace`, Laplace's log marginal likelihood (`NA` with
#'   `approx = "vi"`); `log_evidence`, the estimate of the true log marginal likelihood by importance sampling, with
#'   standard error `se`; `elbo`, a lower bound on the true log marginal likelihood of the exact GP; `khat`, the shape
#'   of the generalised Pareto distribution of the largest weights (estimates are reliable below 0.7); `ess`, the
#'   effective sample size divided by `draws`; `shift`, the largest difference between true and approximate posterior
#'   mean of f at the rows, in posterior sds; `sd_ratio`, the smallest and largest ratio of true to approximate
#'   posterior sd; `draws`.
#' @source Vehtari, Simpson, Gelman, Yao and Gabry (2024), JMLR 25; Hensman, Matthews and Ghahramani (2015), AISTATS,
#'   for `elbo`; Zhang and Stephens (2009), Technometrics 51, for `khat`.
#' @seealso [evidence_bounds()], [certify()]
#' @examples
#' d <- data.frame(x = 1:40 / 10)
#' d$y <- rep(c(0, 1, 0, 1), c(8, 14, 10, 8))
#' fit <- pfdtc(y ~ x, d, family = binomial(), kernel = kernel_se(1, 3), hyper = "fixed")
#' laplace_check(fit, draws = 500)
#' @export
laplace_check <- function(fit, draws = 2000) {
  fit <- refuse_classes(check_any_fit(fit, "fit"))
  if (!is.null(fit$near)) abort_input("fit", "uses neighbours", hint = "Fit with neighbours = 0.")
  check_posterior(fit, "families")
  draws <- check_count(draws, "draws", min = 100)
  data <- needs_data(fit, "fit")
  sites <- sites_of_fit(fit, data)
  at <- mode_again(fit, data, replace(sites, "variational", 1L))
  elbo <- variational_bound(at, sites, prior_most(new_model(fit$kernel, 1), data$x, fit$inducing))
  laplace <- if (sites$variational == 1L) NA_real_ else
    sum(native_likelihood(sites, at$f)[1L, ], sites$constant) - (sum(at$beta^2) + logdet(at$C)) / 2
  m <- nrow(fit$inducing)
  z <- matrix(stats::rnorm(m * draws), m)
  U <- at$beta + backsolve(at$C, z, upper.tri = FALSE, transpose = TRUE)
  l <- native(ffi_paths, engine_posterior(at, fit$inducing, kernel = fit$kernel), data$x, sites, t(U),
              engine_control(nrow(data$x), fit$control))
  # Compute log p(y, u) - log q(u), both without their factors 2 pi.
  logs <- sum(sites$constant) + l - colSums(U^2) / 2 - (sum(log(diag(at$C))) - colSums(z^2) / 2)
  weights <- exp(logs - max(logs))
  weights <- weights / sum(weights)
  # Compute weighted moments at no more than a thousand rows.
  rows <- evenly(nrow(data$x), 1000)
  A <- forwardsolve(at$L, native_kernel_matrix(fit$kernel, fit$inducing, data$x[rows, , drop = FALSE]))
  left <- at$left[rows]
  mean <- drop(U %*% weights)
  spread <- (U - mean) %*% (sqrt(weights) * diag(1, length(weights)))
  plain <- sqrt(at$q[rows] + left)
  structure(list(khat = pareto_shape(logs), ess = 1 / sum(weights^2) / draws, laplace = laplace,
                 log_evidence = max(logs) + log(mean(exp(logs - max(logs)))),
                 se = sqrt(max(sum(weights^2) - 1 / draws, 0)), elbo = elbo, draws = draws,
                 shift = max(abs(crossprod(A, mean - at$beta)) / plain),
                 sd_ratio = range(sqrt(colSums(crossprod(spread, A)^2) + left) / plain)),
            class = "pfdtc_laplace_check")
}

# Returns the shape of the generalised Pareto distribution of the excess of the largest weights, by Zhang and Stephens.
# The estimate is shrunk towards 1/2 with the weight of ten further values.
pareto_shape <- function(logs) {
  n <- length(logs)
  some <- min(floor(n / 5), ceiling(3 * sqrt(n)))
  top <- sort(logs, decreasing = TRUE)[seq_len(some + 1L)]
  excess <- rev(exp(top[seq_len(some)] - top[1L]) - exp(top[some + 1L] - top[1L]))
  if (!(excess[1L] > 0)) return(0)
  j <- seq_len(30 + floor(sqrt(some)))
  b <- 1 / excess[some] + (1 - sqrt(length(j) / (j - 0.5))) / (3 * excess[floor(some / 4 + 0.5)])
  k <- vapply(b, function(b) -mean(log1p(-b * excess)), 0)
  profile <- some * (log(b / k) + k - 1)
  share <- vapply(profile, function(p) 1 / sum(exp(profile - p)), 0)
  b <- sum(b * share)
  (some * mean(log1p(-b * excess)) + 5) / (some + 10)
}

# Returns lines: Pareto k, the error of the log marginal likelihood, and those of the mean and sd of f.
laplace_check_lines <- function(x) {
  number <- function(v) format(signif(v, 2))
  variational <- is.na(x$laplace)
  reliable <- isTRUE(x$khat <= 0.7)
  c(sprintf("%s (%s 0.7)", number(x$khat), if (reliable) "reliable below" else "not reliable above"),
    sprintf("the %s log marginal likelihood minus the estimate is %s (standard error %s)",
            if (variational) "variational bound of the" else "Laplace",
            number((if (variational) x$elbo else x$laplace) - x$log_evidence), number(x$se)),
    if (reliable) {
      c(sprintf("the true mean of f differs from the %2$s by about %1$s sd at most, at the rows", number(x$shift),
                if (variational) "fit's mean" else "mode"),
        sprintf("the true sd of f is about %s to %s times that of the fit", number(x$sd_ratio[1L]),
                number(x$sd_ratio[2L])))
    })
}
