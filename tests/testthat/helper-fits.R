# Makes small fits for tests of methods. All but fit_learned() have given hyperparameters.

fixed_control <- function(...) pfdtc_control(maxit = 3, progress = FALSE, ...)

# Fits a formula to data with every kind of variable (see small_data()). `...` goes to pfdtc().
fit_mixed <- function(formula = y ~ a + f + l, data = small_data(20), m = 6, ...) {
  call <- as.call(list(quote(pfdtc), formula = formula, data = quote(data), m = m,
                       kernel = quote(kernel_se(1.3, 2)), noise = 0.4, hyper = "fixed",
                       aux = quote(aux_sor(rows = 1:4)), control = quote(fixed_control())))
  extra <- as.list(substitute(list(...)))[-1L]
  call[names(extra)] <- extra
  eval(call)
}

# Fits a formula with one input and repeated rows: cars.
fit_cars <- function(..., m = 8, data = cars) {
  pfdtc(dist ~ speed, data, m = m, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed",
        aux = aux_sor(rows = 1:5), control = fixed_control(), ...)
}

print_quietly <- function(x) {
  utils::capture.output(value <- withVisible(print(x)))
  if (value$visible) value$value else invisible(value$value)
}

# Returns data with two inputs that suit the hyperparameters of fit_fixed(). Its few points make fits take milliseconds.
smooth_data <- function(n = 50, seed = 1) problem(n = n, m = 6, seed = seed)

fit_fixed <- function(data = smooth_data(), ..., kernel = kernel_se(c(0.9, 1.6), 1.7), maxit = 200) {
  args <- list(x = data$x, y = data$y, kernel = kernel, noise = 0.3, hyper = "fixed", aux = aux_sor(rows = 1:10),
               inducing = data$z, control = pfdtc_control(maxit = maxit, progress = FALSE))
  new <- list(...)
  args[names(new)] <- new
  do.call(pfdtc, args)
}

# Fits with hyperparameters learned as in the paper (hyper = "pilot"), in few iterations.
fit_learned <- function(data = smooth_data(), ..., m = 6, hyper = "pilot", seed = 1, maxit = 20, control = list()) {
  control <- do.call(pfdtc_control, utils::modifyList(list(maxit = maxit, progress = FALSE), control))
  with_seed(seed, pfdtc(data$x, data$y, m = m, hyper = hyper, control = control, ...))
}

# Returns data whose response is a wave in the first input and linear in the second.
wavy <- function(n = 60, seed = 1, noise = 0.1) {
  with_seed(seed, {
    x <- matrix(runif(2 * n), n)
    list(x = x, y = sin(6 * x[, 1]) + x[, 2] + noise * rnorm(n), new = matrix(runif(20), 10))
  })
}

hurdle_data <- function(n = 60) {
  with_seed(4, {
    x <- stats::runif(n, 0, 4)
    open <- stats::runif(n) < stats::plogis(x - 1)
    data.frame(x = x, y = open * (1 + stats::rpois(n, exp(sin(2 * x)))), z = open * stats::rgamma(n, 2, 1))
  })
}

fixed_hurdle <- function(formula, d, ...) {
  gp_hurdle(formula, d, ..., kernel = kernel_se(0.9, 1), hyper = "fixed")
}
