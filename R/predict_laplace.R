# Prediction where responses are classes or counts: f as for any fit, and what it is on the response's scale.

# `interval` "credible": of f by type "latent", of the probability or the rate by "response"; "prediction": of
# responses, whatever the type.
predict_laplace <- function(fit, training, newdata, se.fit, interval, level, type, certified, full_cov, na.action,
                            hyper_uncertainty) {
  likelihood <- fit$likelihood
  if (type == "link") type <- "latent"
  refuse_interval(fit, interval, certified)
  if (interval == "prediction" && type == "latent") type <- "response"
  if (full_cov && type != "latent") {
    abort_input("full_cov", "TRUE", sprintf("FALSE with type = \"%s\"", type), hint = "The link's is there.")
  }
  if (type == "class") {
    if (response_of(fit)$reads != "classes") abort_input("type", "\"class\"", "\"latent\" or \"response\" for counts")
    if (se.fit || interval != "none") abort_input("type", "\"class\" with an interval or sd", "\"class\" alone")
  }
  rows <- if (training) training_rows(fit) else new_rows(fit, newdata, na.action)
  if (type == "density") return(log_density_at(fit, rows, if (training) NULL else newdata))
  p <- if (hyper_uncertainty) mixture_at(fit, rows, full_cov) else latent_at(fit, rows$x)
  mean <- stats::setNames(p$mean[rows$index] + rows$offset, rows$names)
  var <- stats::setNames(p$var[rows$index], rows$names)
  if (type == "class") return(class_of(likelihood, mean))
  latent <- type == "latent"
  moments <- if (!latent) response_moments(response_of(fit), mean, var)
  value <- if (latent) mean else moments$mean
  if (interval == "prediction") {
    size <- if (!response_of(fit)$trials) rep(1, length(mean)) else check_responses(mean, if (!training)
      new_trials(fit, newdata) else stats::napredict(fit$na.action, sizes_given(training_data(fit))))
    value <- predictive_band(fit, value, mean, var, level, size)
  } else if (interval != "none") {
    # the exact posterior's own interval lies inside
    ends <- if (certified) certificate_of(fit, rows) else
      list(sd_upper = sqrt(var), mean_lower = mean, mean_upper = mean)
    value <- latent_band(fit, value, mean, ends$sd_upper^2, level, latent, ends$mean_lower, ends$mean_upper)
  }
  if (!se.fit && !full_cov) return(value)
  out <- list(fit = value, se.fit = if (latent) sqrt(var) else moments$sd)
  if (full_cov) out$cov <- if (hyper_uncertainty) p$cov else covariance_at(fit, rows)
  out
}

# The class whose averaged probability is above one half: that of f's sign, links being symmetric.
class_of <- function(likelihood, mean) {
  levels <- likelihood$levels
  if (is.null(levels)) return(stats::setNames(as.integer(mean > 0), names(mean)))
  if (identical(levels, c("FALSE", "TRUE"))) return(mean > 0)
  out <- factor(levels[1L + (mean > 0)], levels = levels)
  stats::setNames(out, names(mean))
}

# log p(y) of each row's response, averaged over f.
log_density_at <- function(fit, rows, newdata) {
  sites <- if (is.null(newdata)) all_sites(training_data(fit)) else new_sites(fit, newdata)
  p <- latent_at(fit, rows$x)
  index <- rows$index
  check_responses(index, sites$y)
  out <- stats::setNames(rep(NA_real_, length(index)), rows$names)
  known <- which(!is.na(index) & !is.na(sites$y))
  mean <- p$mean[index[known]] + rows$offset[if (length(rows$offset) == 1L) 1L else known]
  sites <- take_sites(sites[intersect(c("y", "size"), names(sites))], known)
  out[known] <- log_predictive(fit$likelihood, sites, mean, p$var[index[known]])
  out
}

# Of every row given, those of weight 0 too.
all_sites <- function(data) {
  if (is.null(data$x_zero)) return(data$sites)
  abort_input("newdata", "left out of a fit with rows of weight 0", "given for type = \"density\"")
}

# The responses of new rows, by the fit's formula.
new_sites <- function(fit, newdata) {
  response <- responses_in(fit, newdata)
  known <- stats::complete.cases(response)
  all <- length(known)
  response <- if (length(dim(response)) == 2L) response[known, , drop = FALSE] else response[known]
  read <- if (response_of(fit)$trials && length(dim(response)) != 2L) {
    size <- new_trials(fit, newdata)[known]
    list(y = response * size, size = size)
  } else {
    read_response(fit$likelihood, known_classes(fit, response), rep(1, sum(known)), "newdata", sum(known))
  }
  lapply(read[intersect(c("y", "size"), names(read))], function(v) replace(rep(NA_real_, all), known, v))
}

# A number a row: both columns of a response that has two, or the `weights` of shares.
new_trials <- function(fit, newdata) {
  if (is.null(fit$terms) || attr(fit$terms, "dataClasses")[1L] == "nmatrix.2") {
    return(rowSums(responses_in(fit, newdata)))
  }
  size <- tryCatch(eval(fit$call$weights, newdata, environment(fit$terms)), error = function(e) NULL)
  if (is.numeric(size) && length(size) == nrow(newdata)) return(size)
  abort_input("newdata", sprintf("one without `%s`", deparse1(fit$call$weights)),
              "with the numbers of trials, which were the weights of the fit")
}
