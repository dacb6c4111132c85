# Prediction on the scale of a response that was transformed (transform.R), and log densities of responses.

# `value`: of T(y), the mean or with an interval its matrix, with the sd and noise of f beside it. Quantiles go back as
# they are; a credible interval of type "response" is that of the mean of y given f, which increases in f.
predict_back <- function(transform, mean, var, noise, value, interval, type, se.fit) {
  if (type == "median" && se.fit) {
    abort_input("se.fit", "TRUE beside `type = \"median\"`", "FALSE there",
                hint = "interval = \"credible\" has the median's; type = \"response\" the sd of a new response.")
  }
  moments <- if (type == "response") moments_back(transform, mean, var + noise)
  out <- if (type == "median") untransformed(transform, mean) else stats::setNames(moments$mean, names(mean))
  if (interval != "none") {
    ends <- value[, c("lwr", "upr"), drop = FALSE]
    back <- if (type == "response" && interval == "credible") {
      apply(ends, 2L, function(f) moments_back(transform, f, noise)$mean)
    } else {
      untransformed(transform, ends)
    }
    out <- cbind(fit = out, matrix(back, ncol = 2L, dimnames = list(NULL, c("lwr", "upr"))))
    rownames(out) <- rownames(value)
  }
  if (!se.fit) return(out)
  list(fit = out, se.fit = stats::setNames(moments$sd, names(mean)))
}

refuse_beside_back <- function(full_cov) {
  if (!full_cov) return(invisible())
  abort_input("full_cov", "TRUE", "FALSE on the scale of the response", hint = "type = \"latent\" has it.")
}

# log p(y) of each row's response, as it was given; the predictive distribution of (the transformed) y is normal.
log_density_of <- function(fit, newdata, mean, var, noise) {
  y <- if (is.null(newdata)) {
    data <- training_data(fit)
    stats::napredict(fit$na.action, given_response(data))
  } else {
    as.double(responses_in(fit, newdata))
  }
  check_responses(mean, y)
  t <- fit$transform
  z <- if (is.null(t)) y else transformed(t, y)
  out <- stats::dnorm(unname(z), mean, sqrt(var + noise), log = TRUE)
  if (!is.null(t)) out <- out + log_slope(t, unname(y))
  stats::setNames(out, names(mean))
}

responses_in <- function(fit, newdata) {
  if (is.null(fit$terms)) {
    abort_input("newdata", "rows for a fit from a matrix, without responses", "rows for a fit from a formula",
                hint = "Responses of new rows, and numbers of trials, are known by a formula alone.")
  }
  expression <- attr(fit$terms, "variables")[[2L]]
  lacking <- setdiff(all.vars(expression), names(newdata))
  if (length(lacking)) {
    abort_input("newdata", sprintf("one without %s", list_quoted(lacking)), "with the response")
  }
  eval(expression, newdata, environment(fit$terms))
}

# Responses, or trials, are of all rows of newdata; na.omit leaves some out of those that are predicted.
check_responses <- function(rows, given) {
  if (length(given) == length(rows)) return(given)
  abort_input("newdata", "rows with missing values", "complete where responses are looked at")
}
