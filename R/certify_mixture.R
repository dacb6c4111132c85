# Certificates of the mixture over hyperparameters: it is held against the one of the exact posteriors at the same
# hyperparameters, weighted by the exact evidence.

# As certify_rows(); attributes: `weights`, a row for each setting of the hyperparameters (weight, and the ends between
# which the exact one lies), and `noise`, the most that the exact mixture's noise variance may be.
certify_mixture <- function(fit, new, effort, reference, m2 = NULL, test_points = NULL, max_seconds = 10) {
  started <- proc.time()[["elapsed"]]
  points <- hyper_points(fit)
  z <- reference$inducing
  seconds <- max_seconds / length(points$hyper)
  parts <- mixture_parts(fit, points$hyper, function(one) {
    if (effort != "fast" && !is_exact(one)) {
      one$reference <- if (is.null(z)) reference(one, m2, seconds) else
        same_chance(reference_on(one, needs_data(one, "fit"), z, NULL, max_seconds = seconds))
    }
    list(at = c(latent_at(one, new$x), list(noise = one$noise)), m2 = one$reference$m,
         inside = certify_rows(one, new, effort, one$reference, NULL, test_points, seconds),
         evidence = if (is.null(points$gain)) evidence_bounds(one))
  })
  weights <- weights_between(points, lapply(parts, `[[`, "evidence"))
  out <- bounds_of_mixture(mixture_of_parts(lapply(parts, `[[`, "at"), points$weights),
                           lapply(parts, `[[`, "inside"), weights, new)
  noise <- vapply(parts, function(part) part$at$noise, 0)
  structure(out, effort = effort, m2 = if (length(parts[[1L]]$m2)) parts[[1L]]$m2,
            seconds = proc.time()[["elapsed"]] - started, weights = weights,
            noise = most_of_mean(matrix(noise, 1L), weights))
}

# The weights, and the ends of each: those of its share where its own density is at one end of the bracket and all
# others are at the other.
weights_between <- function(points, evidence) {
  gain <- points$gain
  ends <- if (is.null(gain)) {
    cbind(lower = vapply(evidence, `[[`, 0, "lower"), upper = vapply(evidence, `[[`, 0, "upper")) + points$apart
  } else {
    cbind(lower = gain, upper = gain)
  }
  g <- pmax(exp(ends - max(ends)), 1e-300)   # an end that underflows is no zero
  share <- function(own, others) own / (own + sum(others) - others)
  data.frame(weight = points$weights, lower = share(g[, "lower"], g[, "upper"]),
             upper = share(g[, "upper"], g[, "lower"]), least = g[, "lower"], most = g[, "upper"])
}

# The largest mean of each row of v (a column a point) over densities between least and most: those of the points with
# the largest values are at their upper ends, the others at their lower ones.
most_of_mean <- function(v, weights) {
  apply(v, 1L, function(one) {
    o <- order(one, decreasing = TRUE)
    upper <- weights$most[o]
    lower <- weights$least[o]
    rest <- function(x) sum(x) - cumsum(x)
    max((cumsum(upper * one[o]) + rest(lower * one[o])) / (cumsum(upper) + rest(lower)))
  })
}

least_of_mean <- function(v, weights) -most_of_mean(-v, weights)

# Mean and sd of the exact mixture from those of its parts. Its variance is the least mean square distance from any
# value, and that from its own mean:
#   var <= E (f - c)^2 with c in the middle of where the mean lies,  var >= E [sd^2 + (distance of parts from that)^2].
bounds_of_mixture <- function(of_fit, inside, weights, new) {
  all <- function(what) matrix(vapply(inside, `[[`, numeric(length(new$index)), what), length(new$index))
  lower <- all("mean_lower")
  upper <- all("mean_upper")
  eps <- 64 * .Machine$double.eps
  known <- which(!is.na(new$index))
  ends <- matrix(NA_real_, length(new$index), 4L,
                 dimnames = list(NULL, c("mean_lower", "mean_upper", "sd_lower", "sd_upper")))
  if (length(known)) {
    part <- function(v) v[known, , drop = FALSE]
    room <- eps * apply(pmax(abs(part(lower)), abs(part(upper))), 1L, max)
    low <- least_of_mean(part(lower), weights) - room
    high <- most_of_mean(part(upper), weights) + room
    middle <- (low + high) / 2
    farthest <- pmax(abs(part(upper) - middle), abs(part(lower) - middle))
    nearest <- pmax(part(lower) - high, low - part(upper), 0)
    ends[known, ] <- cbind(low, high,
                           sqrt((1 - eps) * least_of_mean(part(all("sd_lower"))^2 + nearest^2, weights)),
                           sqrt((1 + eps) * most_of_mean(part(all("sd_upper"))^2 + farthest^2, weights)))
  }
  mean <- of_fit$mean[new$index] + new$offset
  data.frame(mean = mean, mean_error = (1 + eps) * pmax(mean - ends[, "mean_lower"], ends[, "mean_upper"] - mean),
             mean_lower = ends[, "mean_lower"], mean_upper = ends[, "mean_upper"], sd = sqrt(of_fit$var[new$index]),
             sd_lower = ends[, "sd_lower"], sd_upper = ends[, "sd_upper"], row.names = row.names(inside[[1L]]))
}
