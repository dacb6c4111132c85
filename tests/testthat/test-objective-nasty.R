# Tests objectives on problems that break careless code (helper-problems.R).

test_that("nasty problems give the reference's numbers", {
  skip_on_cran()
  turn <- 0
  for (name in names(nasty_problems())) {
    p <- nasty_problems()[[name]]
    for (pair in nu_pairs(p)) {
      turn <- turn + 1
      for (jitter in in_turn(c(0, 1e-6), turn, 2)) {
        ref <- function(z) {
          ref_pf(z, p$x, p$y, p$kernel, p$noise, pair$reference, p$weights, jitter)
        }
        terms <- ref_pf_terms(p$z, p$x, p$y, p$kernel, p$noise, pair$reference, p$weights, jitter)
        # The value is a small difference of large terms, and has their rounding errors.
        got <- package_pf(p, pair$nu, jitter = jitter)
        value <- ref(p$z)
        expect_lt(abs(got$value - value), 1e-11 * (terms$constant + abs(value)), label = name)
        slope <- ref_derivative(ref, p$z)
        slack <- 1e-10 * terms$constant / min(p$kernel$lengthscale)
        error <- max(abs(got$gradient - slope))
        expect_lt(error, 1e-8 * max(abs(slope)) + slack, label = name)
      }
    }
    # The reference inverts Q + s2 I and keeps as many digits as its condition allows.
    lost <- 2e-16 * nrow(p$x) * p$kernel$variance / p$noise
    got <- package_vfe(p, jitter = 1e-6)
    elbo <- ref_elbo(p$z, p$x, p$y, p$kernel, p$noise, p$weights, 1e-6)
    expect_close(got$value, -elbo, max(1e-9, lost), name)
    ref <- ref_vfe_gradient(p$z, p$x, p$y, p$kernel, p$noise, p$weights, 1e-6)
    expect_close(unlist(got$gradient[names(ref)[-1]]), unlist(ref[-1]), max(1e-8, lost), name)
  }
})

test_that("duplicated inducing points with a jitter are one point with a smaller jitter", {
  for (p in quick(lapply(profiles, problem))) {
    twice <- rbind(p$z, p$z[2, ])
    jitter <- 1e-8
    split <- c(jitter, jitter / 2, jitter, jitter)
    for (pair in nu_pairs(p)) {
      # The tolerance allows for rounding errors with a Kmm of condition 1e8 (two equal points). The reference has each
      # point once, so its Kmm is well conditioned.
      expect_close(
        package_pf(p, pair$nu, twice, jitter = jitter)$value,
        ref_pf(p$z, p$x, p$y, p$kernel, p$noise, pair$reference, jitter = split), 1e-7
      )
      expect_finite_or_refused(package_pf(p, pair$nu, twice))
    }
    expect_close(package_vfe(p, twice, jitter = jitter)$value,
                 -ref_elbo(p$z, p$x, p$y, p$kernel, p$noise, jitter = split), 1e-7)
    expect_finite_or_refused(package_vfe(p, twice))
  }
})

test_that("hopeless problems give finite numbers or a classed error", {
  wide <- problem(lengthscale = c(1e6, 1e6), n_aux = 6)
  quiet <- problem(noise = 1e-12)
  both <- utils::modifyList(wide, list(noise = 1e-12))
  expect_finite_or_refused(package_pf(quiet, package_nu(quiet, aux_sor(rows = 1:6))))
  expect_finite_or_refused(package_vfe(quiet))
  for (jitter in c(0, 1e-12, 1e-8, 1e-4)) {
    for (aux in list(aux_sor(rows = wide$rows), aux_subset(rows = wide$rows))) {
      expect_finite_or_refused(package_pf(wide, package_nu(wide, aux), jitter = jitter))
    }
    expect_finite_or_refused(package_vfe(wide, jitter = jitter))
    expect_finite_or_refused(package_vfe(both, jitter = jitter))
  }
})

test_that("an almost constant kernel is a constant kernel", {
  # At lengthscale 1e6 covariances differ from the variance by 1e-12, so the points act as one with jitter / M.
  p <- problem(lengthscale = c(1e6, 1e6), n_aux = 5)
  jitter <- 1e-6
  one <- p$z[1, , drop = FALSE]
  pair <- list(package_nu(p, aux_sor(rows = p$rows)),
               ref_nu_sor(p$x[p$rows[1], , drop = FALSE], p$x, p$y, p$kernel, p$noise))
  expect_close(
    package_pf(p, pair[[1]], jitter = jitter)$value,
    ref_pf(one, p$x, p$y, p$kernel, p$noise, pair[[2]], jitter = jitter / nrow(p$z)), 1e-7
  )
  expect_close(package_vfe(p, jitter = jitter)$value,
               -ref_elbo(one, p$x, p$y, p$kernel, p$noise, jitter = jitter / nrow(p$z)), 1e-7)
})

# N = 12, M = 5, Kmm of condition 3e3, 9e5 and 2e8 at lengthscales 1, 2 and 4, and numbers that are exact in binary. The
# expected values are the terms of Proposition 2 and the ELBO in 80-digit arithmetic, with gradients by central
# differences with step 1e-25.
precise_problem <- function(lengthscale, noise) {
  list(x = matrix((0:11) / 4), y = (7 * (0:11)) %% 5 / 4 - 1 / 2, z = matrix((1:5) / 2),
       kernel = ref_kernel("se", lengthscale, 1), noise = noise, rows = c(1, 4, 7, 10))
}

precise_values <- list(
  list(
    lengthscale = 2, noise = 1 / 16, jitter = 0,
    sor = -0.74092867998523777,
    sor_z = c(3.1985351161898369e-5, 1.8106393921356299e-5, 1.2640896048164393e-5,
              1.0009745167429158e-5, 8.2191270824809717e-6),
    subset = -3.6072486638196678,
    subset_z = c(3.6918920012964024e-5, 9.3087856459662832e-6, 5.3596377529209673e-6,
                 2.8763877348559364e-6, -1.3575705794948171e-5),
    vfe = 10.53567230246487,
    vfe_z = c(0.0040957530810360095, 0.0023186222862271214, 0.0016176913923951466,
              0.001278776949376665, 0.0010466035939253155)
  ),
  list(
    lengthscale = 2, noise = 1 / 16, jitter = 2^-30,
    sor = -0.74092866205484504,
    sor_z = c(3.2084388634843035e-5, 1.8167221773532206e-5, 1.263025799089553e-5,
              9.969508609910484e-6, 8.1848598758254045e-6),
    subset = -3.6072486475139334,
    subset_z = c(3.7017798687914088e-5, 9.3416060874695683e-6, 5.354201829551257e-6,
                 2.8550618077988526e-6, -1.3631304994983617e-5),
    vfe = 10.535674595339754,
    vfe_z = c(0.0041084172881989908, 0.0023263980936711723, 0.0016163276681547967,
              0.0012736355245882497, 0.0010422261226823028)
  ),
  list(
    lengthscale = 4, noise = 1 / 16, jitter = 0,
    sor = -0.74284252076279471,
    sor_z = c(6.4915718480614977e-8, 3.7683754009005149e-8, 2.5643548381617859e-8,
              2.1450043019944164e-8, 2.2773651351465929e-8),
    subset = -2.6476277387415938,
    subset_z = c(3.3093918342158117e-8, 1.025987294524576e-8, 6.6224329599262414e-9,
                 3.9794790776212197e-9, -6.7825267512421759e-9),
    vfe = 9.9234918060839211,
    vfe_z = c(8.3089859024280746e-6, 4.8233883612909396e-6, 3.2822729626618982e-6,
              2.7454943090448961e-6, 2.9148851240972991e-6)
  ),
  list(
    lengthscale = 4, noise = 1 / 16, jitter = 2^-30,
    sor = -0.74284248444889273,
    sor_z = c(2.6702701478631206e-7, 1.7030180183142391e-7, 7.5400034491344935e-9,
              -5.4585626783720563e-8, -4.3899651880487839e-8),
    subset = -2.647627723055343,
    subset_z = c(1.1667005011513209e-7, 4.7235003389173432e-8, 2.0001336745641942e-9,
                 -1.8448502149705598e-8, -6.6921888263037951e-8),
    vfe = 9.9234964538764291,
    vfe_z = c(3.4175513565437838e-5, 2.1796043925152261e-5, 9.6510370637656199e-7,
              -6.9859653095860001e-6, -5.6186176897353841e-6)
  ),
  list(
    lengthscale = 1, noise = 2^-40, jitter = 0,
    sor = -0.0034240412918575936,
    sor_z = c(0.00061444239672353673, 0.00085719500692818269, 0.001066999933474764,
              0.0012323673411163949, 0.0013464974424833353),
    subset = -3.252183927558955,
    subset_z = c(0.0079712058888202505, 0.00057391774082380008, -2.3233451588202416e-5,
                 -0.00064521778903025988, -0.0079535792532559068),
    vfe = 724722302681.2543,
    vfe_z = c(84880590546.418446, 56655664389.487783, 47160542362.452683,
              40981202868.629157, 31834199672.18514)
  ),
  list(
    lengthscale = 1, noise = 2^-40, jitter = 2^-30,
    sor = -0.0034240399226093949,
    sor_z = c(0.0006144425939442178, 0.00085719664960611628, 0.001066999816954937,
              0.0012323619820531098, 0.0013464912926761963),
    subset = -3.2521839222736903,
    subset_z = c(0.0079712274319298526, 0.00057391757583256426, -2.3233305973116634e-5,
                 -0.00064521847293452142, -0.0079535959116354425),
    vfe = 724722338220.10047,
    vfe_z = c(84880772768.786169, 56655732209.070853, 47160519166.336826,
              40981143104.318853, 31834123404.700513)
  )
)

test_that("where solve() has eight digits or none, numbers are those of 80-digit arithmetic", {
  for (v in precise_values) {
    p <- precise_problem(v$lengthscale, v$noise)
    info <- paste("lengthscale", v$lengthscale, "noise", v$noise, "jitter", v$jitter)
    # In the value, rounding of 2e-16 is multiplied by at most the root of the condition number of Kmm, 2e4. Errors of
    # the gradient, some 4e-14 here, are relative to the terms of the value (Z has little effect at lengthscale 4).
    for (kind in c("sor", "subset")) {
      aux <- if (kind == "sor") aux_sor(rows = p$rows) else aux_subset(rows = p$rows)
      got <- package_pf(p, package_nu(p, aux), jitter = v$jitter)
      expect_close(got$value, v[[kind]], 1e-11, paste(kind, info))
      error <- max(abs(got$gradient - v[[paste0(kind, "_z")]]))
      expect_lt(error, 1e-12, label = paste(kind, info))
    }
    got <- package_vfe(p, jitter = v$jitter)
    expect_close(got$value, v$vfe, 1e-12, info)
    error <- max(abs(got$gradient$z - v$vfe_z))
    expect_lt(error, 1e-11 * v$vfe, label = info)
  }
})
