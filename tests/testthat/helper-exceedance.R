# Compares exceedance() with the dense exact GP on a random problem with many cells. Returns counts: cells,
# probabilities outside their bounds, cells wrongly above or below, cells wrongly undecided because of the data, and
# cells undecided because of the approximation.
attack_exceedance <- function(seed, cells = 100L) {
  set.seed(seed)
  n <- sample(20:80, 1)
  x <- matrix(stats::runif(2 * n), n)
  y <- sin(5 * x[, 1]) + x[, 2] + stats::rnorm(n, 0, 0.3)
  new <- matrix(stats::runif(2 * cells, -0.2, 1.2), cells)
  profile <- sample(c("se", "matern12", "matern32", "matern52"), 1)
  length <- stats::runif(1, 0.1, 0.6)
  noise <- 10^stats::runif(1, -4, -0.5)
  k <- switch(profile, se = kernel_se(length, 1), matern12 = kernel_matern(1 / 2, length, 1),
              matern32 = kernel_matern(3 / 2, length, 1), matern52 = kernel_matern(5 / 2, length, 1))
  by <- sample(list(gp_exact, gp_dtc, gp_sor, pfdtc, pfdtc), 1)[[1]]
  args <- list(x, y, kernel = k, noise = noise, hyper = "fixed", center = FALSE)
  if (!identical(by, gp_exact)) args <- c(args, m = sample(2:15, 1))
  if (identical(by, pfdtc)) args <- c(args, neighbours = sample(c(0L, 6L), 1), list(control = pfdtc_control(maxit = 2)))
  t <- stats::quantile(y, stats::runif(1, 0.2, 0.8), names = FALSE)
  prob <- stats::runif(1, 0.6, 0.99)
  of <- sample(c("f", "response"), 1)
  options(pfdtc.kriging_rows = sample(c(0L, 5L, 400L), 1))
  on.exit(options(pfdtc.kriging_rows = NULL))
  got <- suppressMessages(tryCatch({
    exceedance(do.call(by, args), new, t, prob, of, effort = sample(c("fast", "reference", "reference"), 1))
  }, pfdtc_error_numerical = identity))
  if (inherits(got, "error")) return(c(cells = 0, outside = 0, wrong = 0, because = 0, open = 0))
  gp <- ref_exact(x, y, ref_kernel(profile, length), noise)
  # solve() errs by eps times the condition of K + s2 I in mean and variance; a probability moves by that over the sd.
  slip <- 100 * .Machine$double.eps * n^2 / noise
  sd <- sqrt(pmax(ref_variance(gp, new), 0) + if (of == "f") 0 else noise)
  z <- (gp$mean(new) - t) / sd
  move <- slip * (1 + abs(z) / sd) / sd
  low <- stats::pnorm(z - move)
  high <- stats::pnorm(z + move)
  c(cells = cells, outside = sum(high < got$prob_lower | low > got$prob_upper),
    wrong = sum(high[got$region == "above"] < prob) + sum(low[got$region == "below"] > 1 - prob),
    because = sum((low >= prob | high <= 1 - prob) & got$because %in% "data"),
    open = sum(got$because %in% "approximation"))
}
