# The family of a response when none is given: numbers are Gaussian, factors, text and logicals are classes, and a
# survival::Surv() object has times.

# Returns likelihood as it is, or, if it is "by response", list(family, likelihood) by the response.
settle_family <- function(likelihood, response, name) {
  if (!identical(likelihood, "by response")) return(list(likelihood = likelihood))
  family <- family_of_response(response, name)
  list(family = family, likelihood = as_likelihood(if (identical(family, "times")) weibull() else family))
}

# Returns NULL for numbers, and "times" where the family has to be found by fits.
family_of_response <- function(response, name) {
  told <- function(family, call, what) {
    tell_classed("family", sprintf("`%s` %s, so family = %s.", name, what, call))
    family
  }
  if (inherits(response, "Surv")) return("times")
  if (!is.factor(response) && !is.character(response) && !is.logical(response)) return(NULL)
  if (!is.null(dim(response))) return(NULL)
  levels <- if (is.factor(response)) levels(response) else sort(unique(as.character(response)))
  if (length(levels) > max(2, length(response) / 2)) return(NULL) # text that is no class is refused elsewhere
  classes <- sprintf("%d classes", length(levels))
  if (length(levels) < 2L) {
    abort_input(name, sprintf("with the one class %s", list_quoted(levels, "\"")), "numbers, or two classes or more")
  }
  if (length(levels) > 2L) {
    if (is.ordered(response)) return(told(ordinal(), "ordinal()", paste("has", classes, "in order")))
    return(told(multinomial(), "multinomial()", paste("has", classes)))
  }
  told(stats::binomial(), "binomial()", sprintf("has two classes, with success \"%s\"", levels[2L]))
}

# Fits each family of times, and returns the fit with the largest log marginal likelihood. fit_with(family) fits.
best_of_times <- function(fit_with) {
  fits <- lapply(list(`weibull()` = weibull(), `loglogistic()` = loglogistic(), `lognormal()` = lognormal()), fit_with)
  evidence <- vapply(fits, `[[`, 0, "evidence")
  best <- which.max(evidence)
  behind <- max(evidence) - evidence[-best]
  others <- paste(sprintf("%s is %.1f nats below", names(fits)[-best], behind), collapse = ", ")
  text <- sprintf("Family: %s has the largest log marginal likelihood; %s.", names(fits)[best], others)
  tell_classed("family", text)
  fit <- fits[[best]]
  fit$because <- c(family = text, fit$because)
  fit
}
