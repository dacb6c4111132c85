# Draws small seeded problems. A problem is a list x, y, z, kernel (plain, see helper-reference.R), noise, weights, rows
# (of an auxiliary distribution) and new (points to predict at).

profiles <- c("se", "matern12", "matern32", "matern52")

# Returns random points in [-3, 3]^d, one in each of n slices of every axis and never closer than 40 % of a slice, so
# that solve() keeps ten digits for k(Z, Z) and k(U, U).
spread_points <- function(n, d) {
  one_axis <- function(j) (sample.int(n) - stats::runif(n, 0.2, 0.8)) / n * 6 - 3
  matrix(vapply(seq_len(d), one_axis, numeric(n)), n, d)
}

problem <- function(profile = "se", n = 13, d = 2, m = 4, n_aux = 5, weighted = FALSE, seed = 1,
                    lengthscale = seq(0.9, 1.6, length.out = d), variance = 1.7, noise = 0.3) {
  with_seed(seed, {
    x <- spread_points(n, d)
    list(
      x = x,
      y = sin(x[, 1]) + 0.3 * rowSums(x) + stats::rnorm(n, sd = sqrt(noise)),
      z = spread_points(m, d),
      kernel = ref_kernel(profile, lengthscale, variance),
      noise = noise,
      weights = if (weighted) stats::runif(n, 0.4, 2.5),
      rows = sort(sample.int(n, min(n, n_aux))),
      new = rbind(spread_points(5, d), 40)          # and one point far from everything
    )
  })
}

# Returns problems with every kernel, one to three inputs, with and without weights.
problems <- function() {
  cases <- expand.grid(profile = profiles, weighted = c(FALSE, TRUE), stringsAsFactors = FALSE)
  quick(lapply(seq_len(nrow(cases)), function(i) {
    problem(cases$profile[i], d = 1 + i %% 3, weighted = cases$weighted[i], seed = i)
  }))
}

label_of <- function(p) {
  paste0(p$kernel$profile, ", N = ", nrow(p$x), ", d = ", ncol(p$x), ", M = ", nrow(p$z),
         if (!is.null(p$weights)) ", weighted")
}

# Returns problems that break careless code but that the reference can solve. `jitter` is the smallest one at which the
# problem is solvable; `u_rows` are rows with the span of `rows`.
nasty_problems <- function() {
  edit <- function(..., base = problem(n_aux = 4)) utils::modifyList(base, list(...))
  base <- problem(n_aux = 4)
  single <- problem(n = 1, m = 1, n_aux = 1)
  narrow <- problem("matern32", lengthscale = c(1e-6, 1e-6))
  far <- 1e8
  list(
    "N = 1, M = 1" = single,
    "M = 1" = problem(m = 1),
    "M = N" = problem("matern52", n = 7, m = 7),
    "M > N" = problem("matern32", n = 3, m = 5, n_aux = 2),
    "one auxiliary row" = problem(n_aux = 1),
    "all rows auxiliary" = problem("matern12", n_aux = 13),
    "duplicated rows" = edit(
      x = base$x[c(1:13, 1:13, 2), ], y = c(base$y, base$y + 0.1, 1), rows = c(1:4, 14:17, 27),
      u_rows = 1:4
    ),
    "constant columns" = edit(
      x = cbind(base$x, 7), z = cbind(base$z, 7), new = cbind(base$new, 7),
      kernel = ref_kernel("se", c(0.9, 1.6, 1e-3), 1.7)
    ),
    "all inputs equal" = edit(
      x = base$x[rep(3, 13), ], z = base$z[1, , drop = FALSE], rows = 1:4, u_rows = 1,
      base = problem(m = 1)
    ),
    "lengthscale 1e-6" = edit(z = rbind(narrow$x[2:3, ], narrow$z[1:2, ]), base = narrow),
    "lengthscale 1e6, one point" = problem(m = 1, n_aux = 1, lengthscale = c(1e6, 1e6)),
    "one lengthscale 1e6" = problem("matern12", lengthscale = c(0.9, 1e6)),
    "one lengthscale 1e-6" = problem("matern52", lengthscale = c(0.9, 1e-6)),
    "noise 1e-12" = problem("matern12", n = 9, noise = 1e-12),
    "noise 1e6" = problem(noise = 1e6),
    "inputs around 1e8" = edit(x = base$x + far, z = base$z + far, new = base$new + far),
    "inputs of 1e-8" = edit(
      x = base$x * 1e-8, z = base$z * 1e-8, new = base$new * 1e-8,
      kernel = ref_kernel("se", c(0.9, 1.6) * 1e-8, 1.7)
    ),
    "inducing points far away" = edit(z = base$z + 1e3),
    "the first inducing point far away" = edit(z = unname(rbind(1e12, base$z))),
    "the first row far away" = edit(x = unname(rbind(-1e12, base$x)), y = c(1, base$y), rows = 1:5),
    "an inducing point on a row" = edit(
      z = rbind(base$x[2, ], base$z[1:3, ]), kernel = ref_kernel("matern12", c(0.9, 1.6), 1.7)
    ),
    "weights over ten decades" = edit(weights = 10^seq(-5, 5, length.out = 13)),
    "constant response" = edit(y = rep(2, 13)),
    "huge response" = edit(y = base$y * 1e8)
  )
}

## The package's functions on such a problem -------------------------------------------------------

package_kernel <- function(k) {
  if (inherits(k, "pfdtc_kernel")) return(k)
  if (k$profile == "se") {
    return(kernel_se(lengthscale = k$lengthscale, variance = k$variance, inputs = k$inputs))
  }
  nu <- c(matern12 = 1 / 2, matern32 = 3 / 2, matern52 = 5 / 2)[[k$profile]]
  kernel_matern(nu, lengthscale = k$lengthscale, variance = k$variance, inputs = k$inputs)
}

package_nu <- function(p, aux) {
  auxiliary(p$x, p$y, package_kernel(p$kernel), p$noise, aux, weights = p$weights)
}

package_pf <- function(p, nu, z = p$z, ...) {
  pf_objective(z, p$x, p$y, package_kernel(p$kernel), p$noise, nu, weights = p$weights, ...)
}

package_vfe <- function(p, z = p$z, ...) {
  vfe_objective(z, p$x, p$y, package_kernel(p$kernel), p$noise, weights = p$weights, ...)
}

# Returns list(nu, reference) for each kind of auxiliary distribution, by the package and by the reference, which is
# given the greedy points of `reference`.
nu_pairs <- function(p) {
  sor <- function(u) ref_nu_sor(u, p$x, p$y, p$kernel, p$noise, p$weights)
  u_rows <- if (is.null(p$u_rows)) p$rows else p$u_rows
  greedy <- package_nu(p, aux_reference(m2 = length(u_rows)))
  list(
    sor = list(nu = package_nu(p, aux_sor(rows = p$rows)),
               reference = sor(p$x[u_rows, , drop = FALSE])),
    subset = list(nu = package_nu(p, aux_subset(rows = p$rows)),
                  reference = ref_nu_subset(p$rows, p$x, p$y, p$kernel, p$noise, p$weights)),
    reference = list(nu = greedy, reference = sor(greedy$U))
  )
}
