# Functions for each peer and model: they translate a task into the peer's own parameters, and its predictions back.
#
# Each function takes a task (dense.R) and returns list(mean, sd, log_lik), where sd is that of f, and log_lik is NULL
# if the peer has none. If needed the list also has `scale`, the factor by which the peer multiplied variance and noise;
# `jitter`, what it added to the definitions; and `note`.

scaled <- function(x, task) sweep(x, 2L, task$lengthscale, "/")
quietly <- function(expr) {
  utils::capture.output(value <- suppressMessages(suppressWarnings(expr)))
  value
}

# k = exp(-sigma r2) or exp(-sigma r), variance 1, with LU factors. For the Laplace kernel r2 is rounded to 9 decimals.
kernlab_exact <- function(task) {
  kernel <- switch(task$profile, se = kernlab::rbfdot(sigma = 0.5), matern12 = kernlab::laplacedot(sigma = 1))
  unit <- sqrt(task$variance)
  fit <- kernlab::gausspr(scaled(task$x, task), (task$y - task$mean) / unit, scaled = FALSE, kernel = kernel,
                          var = task$noise / task$variance, variance.model = TRUE, fit = FALSE)
  new <- scaled(task$new, task)
  list(mean = task$mean + unit * drop(kernlab::predict(fit, new)),
       sd = unit * drop(kernlab::predict(fit, new, type = "sdeviation")),
       jitter = if (task$profile == "matern12") list(digits = 9),
       note = paste("isotropic, unit variance: inputs and response rescaled",
                    if (task$profile == "matern12") "; r2 rounded to 9 decimals", sep = ""))
}

# Kernels are products over the inputs, so Matern kernels agree with ours for one input. The known noise is noise.var,
# because a nugget would be part of f.
dicekriging_exact <- function(task) {
  type <- c(se = "gauss", matern12 = "exp", matern32 = "matern3_2", matern52 = "matern5_2")[[task$profile]]
  fit <- DiceKriging::km(~1, design = data.frame(task$x), response = task$y, covtype = type, coef.trend = task$mean,
                         coef.cov = task$lengthscale, coef.var = task$variance,
                         noise.var = rep(task$noise, nrow(task$x)))
  p <- DiceKriging::predict(fit, data.frame(task$new), type = "SK", checkNames = FALSE)
  fit@known.param <- "Trend"
  fit@case <- "LLconcentration_beta"
  fit@method <- "MLE"
  list(mean = p$mean, sd = p$sd, note = "logLikFun() at the given parameters",
       log_lik = drop(DiceKriging::logLikFun(c(task$lengthscale, task$variance), fit)))
}

# beta is log10 of 1 / (2 l^2) or 1 / l^2 for the lengthscale l. The nugget is relative to the variance. mean_dist =
# TRUE predicts f.
gaupro_exact <- function(task) {
  type <- c(se = "Gaussian", matern12 = "Exponential", matern32 = "Matern32", matern52 = "Matern52")[[task$profile]]
  beta <- -2 * log10(task$lengthscale) - if (task$profile == "se") log10(2) else 0
  kernel <- getExportedValue("GauPro", type)$new(beta = beta, s2 = task$variance, beta_est = FALSE, s2_est = FALSE)
  trend <- GauPro::trend_c$new(m = task$mean, m_est = FALSE, D = ncol(task$x))
  fit <- quietly(GauPro::GauPro_kernel_model$new(
    task$x, task$y, kernel = kernel, trend = trend, nug = task$noise / task$variance, nug.est = FALSE,
    param.est = FALSE, verbose = -1))
  p <- fit$predict(task$new, se.fit = TRUE, mean_dist = TRUE)
  list(mean = p$mean, sd = p$se, log_lik = fit$loglikelihood(),
       jitter = list(noise = max(0, (fit$nug - task$noise / task$variance) * task$variance)),
       note = "nugget relative to the variance, at least 1e-8")
}

# theta is 2 l^2 (Gaussian) or l (Matern, a product over the inputs). The peer estimates the variance itself, and adds
# eps to the correlation of each distinct site.
hetgp_exact <- function(task) {
  type <- c(se = "Gaussian", matern32 = "Matern3_2", matern52 = "Matern5_2")[[task$profile]]
  theta <- if (task$profile == "se") 2 * task$lengthscale^2 else task$lengthscale
  fit <- hetGP::mleHomGP(unname(task$x), task$y, covtype = type, known = list(
    theta = theta, g = task$noise / task$variance, beta0 = task$mean))
  p <- stats::predict(fit, unname(task$new))
  list(mean = p$mean, sd = sqrt(p$sd2), log_lik = fit$ll, scale = fit$nu_hat / task$variance,
       jitter = list(site = fit$eps * fit$nu_hat), note = "variance estimated by the peer and taken over; eps 1.5e-8")
}

# d is 2 l^2. laGP integrates the variance out, so predictions are Student's t: phi / n stands for the variance in their
# squared scale. llik lacks constants, and is converted to the normal log likelihood at variance phi / n. nonug = TRUE
# leaves a nugget of 1.5e-8 in the sd.
lagp_exact <- function(task) {
  n <- nrow(task$x)
  g <- task$noise / task$variance
  id <- laGP::newGPsep(unname(task$x), task$y - task$mean, d = 2 * task$lengthscale^2, g = g)
  on.exit(laGP::deleteGPsep(id))
  new <- unname(task$new)
  p <- laGP::predGPsep(id, new, lite = TRUE, nonug = TRUE)
  noisy <- laGP::predGPsep(id, new, lite = TRUE, nonug = FALSE)
  nugget <- sqrt(.Machine$double.eps)
  variance <- mean((noisy$s2 - p$s2) / (g - nugget)) # phi / n
  list(mean = task$mean + p$mean, sd = sqrt(p$s2), scale = variance / task$variance,
       log_lik = p$llik + n / 2 * (log(n * variance / 2) - log(2 * pi * variance) - 1),
       jitter = list(predicted = nugget * variance), note = "scale of the t distribution; nugget 1.5e-8 in the sd of f")
}

# beta is 1 / (2 l^2), and solve() inverts the covariance.
mlegp_exact <- function(task) {
  fit <- quietly(mlegp::createGP(unname(task$x), matrix(task$y), 1 / (2 * task$lengthscale^2), rep(2, ncol(task$x)),
                                 task$mean, task$variance, task$noise))
  p <- stats::predict(fit, unname(task$new), se.fit = TRUE)
  list(mean = drop(p$fit), sd = drop(p$se.fit), log_lik = drop(fit$loglike),
       note = "createGP() at the given parameters; explicit inverse")
}

# magn and sigma are sds. The jitter of K, or of k(Z, Z) and the diagonal of K, is 1e-6, absolute, unless given.
gplite_fit <- function(task, method, jitter) {
  cf <- switch(task$profile, se = gplite::cf_sexp, matern32 = gplite::cf_matern32, matern52 = gplite::cf_matern52)
  gp <- gplite::gp_init(cf(lscale = 1, magn = sqrt(task$variance)), gplite::lik_gaussian(sqrt(task$noise)), method)
  gp <- gplite::gp_fit(gp, scaled(task$x, task), task$y - task$mean, jitter = jitter)
  p <- gplite::gp_pred(gp, scaled(task$new, task), var = TRUE, jitter = jitter)
  whose <- if (is.null(jitter)) "default" else "given"
  given <- if (is.null(jitter)) 1e-6 else jitter
  list(mean = task$mean + p$mean, sd = sqrt(pmax(p$var, 0)), log_lik = -gplite::gp_energy(gp, include_prior = FALSE),
       jitter = list(noise = given, points = given),
       note = sprintf("isotropic: inputs rescaled; jitter %.2g (%s)", given, whose))
}

gplite_exact <- function(task) gplite_fit(task, gplite::method_full(), NULL)
gplite_exact_given <- function(task) gplite_fit(task, gplite::method_full(), 1e-12 * task$variance)
gplite_fitc <- function(task) gplite_fit(task, gplite::method_fitc(inducing = scaled(task$z, task)), NULL)
gplite_fitc_given <- function(task) {
  gplite_fit(task, gplite::method_fitc(inducing = scaled(task$z, task)), 1e-12 * task$variance)
}

all_profiles <- c("se", "matern12", "matern32", "matern52")

# Each adapter has the peer, our model, profiles that both have (`one`: those that agree for one input), the function.
adapters <- list(
  list(peer = "kernlab", what = "exact", run = kernlab_exact, profiles = c("se", "matern12")),
  list(peer = "DiceKriging", what = "exact", run = dicekriging_exact, profiles = "se", one = all_profiles),
  list(peer = "GauPro", what = "exact", run = gaupro_exact, profiles = all_profiles),
  list(peer = "hetGP", what = "exact", run = hetgp_exact, profiles = "se", one = c("se", "matern32", "matern52")),
  list(peer = "laGP", what = "exact", run = lagp_exact, profiles = "se"),
  list(peer = "mlegp", what = "exact", run = mlegp_exact, profiles = "se"),
  list(peer = "gplite", what = "exact", run = gplite_exact, profiles = c("se", "matern32", "matern52")),
  list(peer = "gplite", what = "exact", run = gplite_exact_given, profiles = "se"),
  list(peer = "gplite", what = "FITC", run = gplite_fitc, profiles = c("se", "matern32", "matern52")),
  list(peer = "gplite", what = "FITC", run = gplite_fitc_given, profiles = c("se", "matern32", "matern52")))
