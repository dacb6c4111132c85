# Tests that the order of rows, blocks and threads change objectives by rounding only.

everything <- function(p, aux = list(aux_sor(rows = p$rows), aux_subset(rows = p$rows), aux_white(0.8))) {
  list(
    pf = lapply(aux, function(a) package_pf(p, package_nu(p, a), constant = TRUE, jitter = 1e-6)),
    vfe = package_vfe(p, jitter = 1e-6)
  )
}

expect_same <- function(object, expected, info) {
  expect_equal(object, expected, tolerance = 1e-11, info = info)
}

test_that("block size, threads and memory change nothing beyond rounding", {
  only_nightly()
  turn <- 0
  for (p in quick(list(problem(), problem("matern12", n = 40, m = 7, d = 3, weighted = TRUE)))) {
    plain <- everything(p)
    for (memory in c(0, 500, 2^27)) {
      turn <- turn + 1
      for (block in in_turn(c(1, 2, 7, 13, 1000), turn, 2)) {
        now <- list(pfdtc.block = block, pfdtc.memory = memory)
        expect_same(with_options(now, everything(p)), plain, deparse(now))
      }
      for (block in in_turn(c(3, 13), turn, 2)) {
        now <- list(pfdtc.block = block, pfdtc.memory = memory, pfdtc.threads = 2L)
        expect_same(with_options(now, everything(p)), plain, deparse(now))
      }
    }
    # Make the auxiliary distribution nu with one memory setting, and use it with another.
    kept <- package_nu(p, aux_sor(rows = p$rows))
    bare <- with_options(list(pfdtc.memory = 0), package_nu(p, aux_sor(rows = p$rows)))
    expect_same(package_pf(p, bare), package_pf(p, kept), "nu without memory")
    expect_same(with_options(list(pfdtc.memory = 0, pfdtc.block = 3), package_pf(p, kept)),
                package_pf(p, kept), "kept nu, no memory")
  }
})

test_that("many rows on several threads give the same numbers", {
  only_nightly()
  p <- problem("matern52", n = 701, m = 20, n_aux = 40, d = 3)
  plain <- with_options(list(pfdtc.threads = 1), everything(p))
  for (block in quick(c(64, 100, 512))) { # 11, 8 and 2 blocks, the last of them not full
    now <- list(pfdtc.block = block, pfdtc.threads = 2)
    expect_same(with_options(now, everything(p)), plain, deparse(now))
  }
  expect_same(with_options(list(pfdtc.block = 64, pfdtc.threads = 3), everything(p)), plain, "three")
})

test_that("the order of the rows changes nothing beyond rounding", {
  for (p in quick(lapply(profiles, problem, weighted = TRUE))) {
    order <- with_seed(3, sample.int(nrow(p$x)))
    moved <- utils::modifyList(p, list(x = p$x[order, ], y = p$y[order], weights = p$weights[order],
                                       rows = match(p$rows, order)))
    expect_same(everything(moved), everything(p), label_of(p))
  }
})

test_that("the order of the inducing points changes the order of the gradient and nothing else", {
  for (p in quick(lapply(profiles, problem))) {
    plain <- everything(p)
    moved <- everything(utils::modifyList(p, list(z = p$z[c(3, 1, 4, 2), ])))
    for (i in 1:3) {
      expect_same(moved$pf[[i]]$value, plain$pf[[i]]$value, label_of(p))
      expect_same(moved$pf[[i]]$gradient, plain$pf[[i]]$gradient[c(3, 1, 4, 2), ], label_of(p))
    }
    expect_same(moved$vfe$value, plain$vfe$value, label_of(p))
    expect_same(moved$vfe$gradient$z, plain$vfe$gradient$z[c(3, 1, 4, 2), ], label_of(p))
  }
})

test_that("the order of the columns changes nothing but their names", {
  p <- problem("matern52", d = 3)
  moved <- utils::modifyList(p, list(x = p$x[, 3:1], z = p$z[, 3:1]))
  moved$kernel$lengthscale <- rev(p$kernel$lengthscale)
  a <- everything(p)
  b <- everything(moved)
  expect_same(b$pf[[2]]$value, a$pf[[2]]$value, "value")
  expect_same(b$pf[[2]]$gradient[, 3:1], a$pf[[2]]$gradient, "gradient")
  expect_same(rev(b$vfe$gradient$log_lengthscale), a$vfe$gradient$log_lengthscale, "lengthscale")
})

test_that("a second call gives the same bits, and no argument is modified", {
  for (p in list(problem(), problem("matern12", n = 600, m = 10, d = 3, weighted = TRUE))) {
    copy <- unserialize(serialize(p, NULL))
    nus <- list(package_nu(p, aux_sor(rows = p$rows)), package_nu(p, aux_subset(rows = p$rows)))
    nu_copies <- unserialize(serialize(nus, NULL))
    first <- list(lapply(nus, function(nu) package_pf(p, nu)), package_vfe(p))
    package_pf(p, nus[[1]], p$x[1:2, ])                          # something else in between
    second <- list(lapply(nus, function(nu) package_pf(p, nu)), package_vfe(p))
    expect_identical(second, first)
    expect_identical(p, copy)
    expect_identical(nus, nu_copies)
  }
})

test_that("no random number is drawn by an objective", {
  p <- problem()
  nu <- package_nu(p, aux_sor(rows = p$rows))
  set.seed(1)
  before <- .Random.seed
  package_pf(p, nu)
  package_vfe(p)
  expect_identical(.Random.seed, before)
})
