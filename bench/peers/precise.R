# If two implementations differ, which is right? Computes the exact GP and FITC to 60 digits for the worst cases.
#
#   PFDTC_DATA=<folder of the CSVs> R_LIBS=<library with Rmpfr> Rscript bench/peers/precise.R
#
# Writes bench/peers/precise.csv: the largest error of mean and sd in units of sd(y), and of the log evidence. `lemma`
# is FITC by the inversion lemma on k(Z, Z) + k(Z, X) D^{-1} k(X, Z), `inverse` is the exact GP by an explicit inverse,
# both in double precision. They show the errors of a peer's algorithm apart from its jitter (gplite has our jitter
# here). Takes minutes.

suppressMessages(library(Rmpfr))
running <- FALSE # so that peers.R only defines its functions
source(file.path("bench", "peers", "peers.R"))
bits <- 200

# Returns outer(u, v, op) for multiple-precision numbers. outer() itself is slow there.
table_of <- function(u, v, op = `*`) {
  mpfr2array(op(rep(u, length(v)), rep(v, each = length(u))), c(length(u), length(v)))
}

# Returns t(a) %*% b for matrices of multiple-precision numbers, one row of a at a time.
cross <- function(a, b) {
  total <- mpfrArray(0, bits, c(ncol(a), ncol(b)))
  for (i in seq_len(nrow(a))) total <- total + table_of(a[i, ], b[i, ])
  total
}

# Returns cbind(a, b) for matrices of multiple-precision numbers.
beside <- function(a, b) {
  n <- nrow(b)
  both <- mpfrArray(0, bits, c(n, length(a) / n + ncol(b)))
  left <- seq_len(length(a) / n)
  both[, left] <- a
  both[, -left] <- b
  both
}

# Returns white = U^{-T} b for U'U = C, and log det C, by elimination of (C, b) one row at a time.
eliminate <- function(C, b) {
  n <- nrow(C)
  w <- beside(C, b)
  logdet <- mpfr(0, bits)
  for (j in seq_len(n)) {
    row <- w[j, ] / sqrt(w[j, j])
    logdet <- logdet + log(w[j, j])
    w[j, ] <- row
    below <- seq_len(n)[-seq_len(j)]
    if (length(below)) {
      keep <- j + seq_len(ncol(w) - j)
      w[below, keep] <- w[below, keep, drop = FALSE] - table_of(row[below], row[keep])
    }
  }
  list(white = w[, -seq_len(n), drop = FALSE], logdet = logdet)
}

mp_kernel <- function(task, x, z) {
  r2 <- mpfrArray(0, bits, c(nrow(x), nrow(z)))
  for (j in seq_len(ncol(x))) {
    r2 <- r2 + (table_of(mpfr(x[, j], bits), mpfr(z[, j], bits), `-`) / mpfr(task$lengthscale[j], bits))^2
  }
  r <- sqrt(r2)
  task$variance * switch(task$profile, se = exp(-r2 / 2), matern12 = exp(-r),
                         matern32 = (1 + sqrt(mpfr(3, bits)) * r) * exp(-sqrt(mpfr(3, bits)) * r))
}

mp_result <- function(task, white_y, white_new, prior, logdet) {
  list(mean = asNumeric(task$mean + drop(cross(white_new, white_y))),
       sd = asNumeric(sqrt(prior - col_sums_mp(white_new^2))),
       log_lik = asNumeric(-(nrow(task$x) * log(2 * Const("pi", bits)) + logdet + sum(white_y^2)) / 2))
}

col_sums_mp <- function(a) {
  total <- a[1L, ]
  for (i in seq_len(nrow(a))[-1L]) total <- total + a[i, ]
  total
}

mp_exact <- function(task) {
  C <- mp_kernel(task, task$x, task$x)
  for (i in seq_len(nrow(C))) C[i, i] <- C[i, i] + task$noise
  e <- eliminate(C, beside(mpfr(task$y, bits) - task$mean, mp_kernel(task, task$x, task$new)))
  mp_result(task, e$white[, 1L, drop = FALSE], e$white[, -1L, drop = FALSE], task$variance, e$logdet)
}

# Returns FITC's posterior: B = A D^{-1} A' + I with D = s2 + k(x, x) - Q(x, x), mean = a'B^{-1} A D^{-1} y and variance
# k - a'a + a'B^{-1} a. For SoR D = s2 and the variance is a'B^{-1} a.
mp_sparse <- function(task, what, points) {
  K <- mp_kernel(task, task$z, task$z)
  for (i in seq_len(nrow(K))) K[i, i] <- K[i, i] + points
  n <- nrow(task$x)
  A <- eliminate(K, beside(mp_kernel(task, task$z, task$x), mp_kernel(task, task$z, task$new)))$white
  a <- A[, -seq_len(n), drop = FALSE]
  A <- A[, seq_len(n), drop = FALSE]
  left <- if (what == "FITC") task$variance - col_sums_mp(A^2) else mpfr(numeric(n), bits)
  D <- left + task$noise
  r <- mpfr(task$y, bits) - task$mean
  scaled <- t(A) / D
  B <- cross(t(A), scaled)
  for (i in seq_len(nrow(B))) B[i, i] <- B[i, i] + 1
  e <- eliminate(B, beside(cross(scaled, mpfr2array(r, c(n, 1L))), a))
  w <- e$white[, -1L, drop = FALSE]
  c_y <- e$white[, 1L, drop = FALSE]
  list(mean = asNumeric(task$mean + drop(cross(w, c_y))),
       sd = asNumeric(sqrt((if (what == "FITC") task$variance - col_sums_mp(a^2) else 0) + col_sums_mp(w^2))),
       log_lik = asNumeric(-(n * log(2 * Const("pi", bits)) + e$logdet + sum(log(D)) + sum(r^2 / D) - sum(c_y^2)) / 2))
}

# Returns the exact GP by an explicit inverse in double precision.
inverse_exact <- function(task) {
  C <- dense_kernel(task, task$x, task$x, no_jitter) + diag(task$noise, nrow(task$x))
  inverse <- chol2inv(chol(C))
  k <- dense_kernel(task, task$x, task$new, no_jitter)
  r <- task$y - task$mean
  list(mean = task$mean + drop(crossprod(k, inverse %*% r)),
       sd = sqrt(pmax(task$variance - colSums(k * (inverse %*% k)), 0)),
       log_lik = -0.5 * (length(r) * log(2 * pi) + as.numeric(determinant(C)$modulus) + sum(r * (inverse %*% r))))
}

lemma_fitc <- function(task, points) {
  Kz <- dense_kernel(task, task$z, task$z, no_jitter) + diag(points, nrow(task$z))
  k <- dense_kernel(task, task$x, task$z, no_jitter)
  L <- t(chol(Kz))
  D <- task$variance + task$noise - colSums(forwardsolve(L, t(k))^2)
  S <- t(chol(Kz + crossprod(k, k / D)))
  r <- task$y - task$mean
  solve_lambda <- function(b) b / D - (k / D) %*% backsolve(t(S), forwardsolve(S, crossprod(k / D, b)))
  A <- forwardsolve(L, t(k))
  a <- forwardsolve(L, dense_kernel(task, task$z, task$new, no_jitter))
  list(mean = task$mean + drop(crossprod(a, A %*% solve_lambda(r))),
       sd = sqrt(pmax(task$variance - colSums(a * (A %*% solve_lambda(t(A)) %*% a)), 0)),
       log_lik = -0.5 * (length(r) * log(2 * pi) + sum(log(D)) - 2 * sum(log(diag(L))) + 2 * sum(log(diag(S))) +
                           sum(r * solve_lambda(r))))
}

precise_row <- function(who, task, what, got, truth) {
  row <- result_row("dense R", task, what, got, truth, "")
  data.frame(who = who, kernel = task$profile, what = what, inputs = ncol(task$x), n = row$n, m = row$m,
             noise_ratio = row$noise_ratio, error_mean = row$max_abs_diff_mean, error_sd = row$max_abs_diff_sd,
             error_logLik = row$diff_logLik, logLik = row$logLik)
}

# Returns a task with few rows to predict at, because computation with many digits is slow.
small_task <- function(data, ...) {
  task <- make_task(data, ..., n_new = 30)
  task$data <- data$name
  task
}

compare_precisely <- function() {
  data <- read_data()
  all_inputs <- seq_len(ncol(data$x))
  rows <- list()
  task <- small_task(data, all_inputs, "se", 1e-6)
  truth <- mp_exact(task)
  for (who in c("pfdtc", "dense R", "inverse", "DiceKriging")) {
    got <- switch(who, pfdtc = ours(task, "exact"), `dense R` = dense_exact(task), inverse = inverse_exact(task),
                  DiceKriging = dicekriging_exact(task))
    rows[[length(rows) + 1L]] <- precise_row(who, task, "exact", got, truth)
  }
  cases <- list(list("FITC", all_inputs, "matern32", 1e-9), list("FITC", all_inputs, "se", 1e-6),
                list("SoR", all_inputs, "se", 1e-6), list("FITC", 1L, "se", NULL))
  for (case in cases) {
    what <- case[[1L]]
    task <- small_task(data, case[[2L]], case[[3L]], case[[4L]])
    we <- ours(task, what)
    truth <- mp_sparse(task, what, we$jitter)
    given <- utils::modifyList(no_jitter, list(points = we$jitter))
    for (who in c("pfdtc", "dense R", if (what == "FITC") c("lemma", "gplite"))) {
      got <- switch(who, pfdtc = we, `dense R` = dense_models[[what]](task, given),
                    lemma = lemma_fitc(task, we$jitter), gplite = gplite_fitc_given(task))
      rows[[length(rows) + 1L]] <- precise_row(who, task, what, got, truth)
    }
  }
  result <- do.call(rbind, rows)
  numbers <- vapply(result, is.double, NA)
  result[numbers] <- lapply(result[numbers], signif, 3)
  utils::write.csv(result, file.path(here, "precise.csv"), row.names = FALSE, na = "")
  print(result, row.names = FALSE)
}

compare_precisely()
