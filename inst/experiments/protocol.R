# The protocol of the paper's experiments, the same for every data set. run_experiment() sources this file.
#
# A cell is a number of inducing points m and a repetition. It returns a row for each method. Each random part (split,
# start, rows of nu) has its own seed, derived from the experiment's seed and the name of the cell. So the order of the
# cells, an interrupt and the number of workers change no result.

check_methods <- function(methods) {
  if (!is.character(methods) || !length(methods) || !all(methods %in% experiment_methods)) {
    abort_input("methods", describe(methods), paste("some of", list_quoted(experiment_methods, "\"", 10L)))
  }
  unique(methods)
}

# Has the numbers of inducing points of the paper's sets, in the order in which they run.
paper_points <- list(synthetic = c(21, 10, 30, 46), airfoil = c(200, 100, 50, 25), abalone = c(100, 50, 200, 25),
                     wine = c(100, 50, 200, 25), ccpp = c(100, 50, 200, 25), delays10k = c(100, 50, 200, 25))

default_points <- function(plan) {
  points <- paper_points[[plan$name]]
  if (is.null(points)) points <- min(100, plan$train)
  points
}

# Checks and returns a data set of the user.
check_table <- function(d) {
  odd <- which(!vapply(d, function(v) is_plain_numeric(v) && NCOL(v) == 1L, NA))
  if (length(odd)) {
    abort_input("dataset", sprintf("%s in column `%s`", describe_column(d[[odd[1L]]]), names(d)[odd[1L]]),
                "a data frame of numbers with the response last",
                hint = "model.matrix() makes numbers of factors and character variables.")
  }
  odd <- which(!vapply(d, function(v) all(is.finite(v)), NA))
  if (length(odd)) {
    abort_input("dataset", sprintf("missing or infinite values in column `%s`", names(d)[odd[1L]]),
                "a data frame of finite numbers", hint = "na.omit() leaves out rows with missing values.")
  }
  y <- d[[ncol(d)]]
  if (!(diff(range(y)) > 0)) {
    abort_input("dataset", sprintf("one whose last column, the response `%s`, is constant", names(d)[ncol(d)]),
                "a data frame with the response last, of more than one value")
  }
}

# Returns list(name, data, train, test, n_aux). `data` is NULL if each repetition draws its own data.
experiment_plan <- function(dataset, train, test, n_aux, name, dir) {
  if (is.character(dataset)) {
    sets <- paper_datasets()
    set <- sets[sets$name == check_choice(dataset, sets$name, "dataset"), ]
    data <- if (set$name != "synthetic") load_dataset(set$name, dir)
    n <- if (is.null(data)) Inf else nrow(data)
  } else {
    if (!is.data.frame(dataset) || ncol(dataset) < 2L) {
      abort_input("dataset", describe(dataset), "a name from paper_datasets(), or a data frame with the response last")
    }
    check_table(dataset)
    if (is.character(name) && any(name == paper_datasets()$name)) {
      abort_input("name", describe(name), "another word", hint = "That is one of paper_datasets().")
    }
    if (!is.character(name) || length(name) != 1L || !grepl("^[[:alnum:]_.-]+$", name)) {
      abort_input("name", describe(name), "a word")
    }
    n <- nrow(dataset)
    set <- list(name = name, n_train = floor(0.8 * n), n_test = n - floor(0.8 * n), n_aux = NULL)
    data <- dataset
  }
  train <- if (is.null(train)) set$n_train else check_count(train, "train", min = 2)
  test <- if (is.null(test)) set$n_test else check_count(test, "test")
  if (train + test > n) {
    abort_input("train", sprintf("%d rows, and %d to test on", as.integer(train), as.integer(test)),
                sprintf("so few that with those to test on they are at most %d", n))
  }
  if (is.null(n_aux)) n_aux <- if (is.null(set$n_aux)) min(ceiling(train / 10), 1000) else min(set$n_aux, train)
  list(name = set$name, data = data, train = train, test = test, n_aux = check_count(n_aux, "n_aux", max = train))
}

# Runs a cell and returns list(results, trace).
run_cell <- function(cell, plan) {
  threads <- options(pfdtc.threads = 1L)
  old <- get0(".Random.seed", globalenv(), inherits = FALSE)
  on.exit({
    options(threads)
    if (is.null(old)) rm(".Random.seed", envir = globalenv()) else assign(".Random.seed", old, globalenv())
  })
  rows <- repetition_rows(plan, cell$repetition)
  truth <- repetition_truth(plan, cell$repetition, rows)
  start <- with_cell_seed(plan, cell, "start", inducing_points(rows$x, cell$m, truth$kernel, "random"))
  keep <- new.env(parent = emptyenv()) # keeps the exact factor once a method has needed it
  done <- lapply(cell$methods, function(method) {
    tryCatch(run_method(method, cell, plan, rows, truth, start, keep), error = function(e) {
      list(failed = sprintf("%s, m = %g, repetition %g, %s: %s", plan$name, cell$m, cell$repetition, method,
                            conditionMessage(e)))
    })
  })
  bind <- function(part, columns) do.call(rbind, c(list(empty_table(columns)), lapply(done, `[[`, part)))
  list(results = bind("results", result_columns), trace = bind("trace", trace_columns),
       failed = unlist(lapply(done, `[[`, "failed")))
}

# Returns a seed for a purpose, by a linear congruential step for each character and number. Doubles hold it exactly.
derived_seed <- function(seed, ...) {
  words <- unlist(lapply(list(...), function(w) if (is.character(w)) utf8ToInt(w) else w))
  Reduce(function(h, w) (h * 69069 + w + 1) %% (2^31 - 1), words, seed %% (2^31 - 1))
}

with_cell_seed <- function(plan, cell, purpose, code) {
  set.seed(derived_seed(plan$seed, plan$name, cell$repetition, cell$m, purpose), "Mersenne-Twister", "Inversion",
           "Rejection")
  force(code)
}

# Returns list(x, y, test, y_test), standardised by the training rows.
repetition_rows <- function(plan, repetition) {
  with_cell_seed(plan, list(repetition = repetition, m = 0), "split", {
    data <- if (is.null(plan$data)) draw_synthetic(plan$train + plan$test) else plan$data
    rows <- sample.int(nrow(data), plan$train + plan$test)
  })
  data <- data[rows, ]
  train <- seq_len(plan$train)
  u <- as.matrix(data[-ncol(data)])
  storage.mode(u) <- "double"
  dimnames(u) <- list(NULL, colnames(u))
  y <- data[[ncol(data)]]
  center <- colMeans(u[train, , drop = FALSE])
  unit <- apply(u[train, , drop = FALSE], 2L, stats::sd)
  unit[!(unit > 0)] <- 1
  if (!(stats::sd(y[train]) > 0)) {
    abort_input("dataset", sprintf("one whose response is constant in the training rows of repetition %g", repetition),
                "a data frame whose response has more values", hint = "Or give another `seed`.")
  }
  u <- (u - rep(center, each = nrow(u))) / rep(unit, each = nrow(u))
  y <- (y - mean(y[train])) / stats::sd(y[train])
  list(x = u[train, , drop = FALSE], y = y[train], test = u[-train, , drop = FALSE], y_test = y[-train])
}

# Returns the pilot and the exact posterior of a repetition: list(kernel, noise, mean, var, fit, trace_P, seconds, cpu,
# pilot). `fit` is the exact fit without rows and factor, `pilot` the number of evaluations. The cache keeps the result,
# because every m needs it.
repetition_truth <- function(plan, repetition, rows) {
  path <- file.path(plan$cache, sprintf("%s-%d-%.0f.rds", plan$name, as.integer(repetition), plan$seed))
  print <- list(fingerprint(rows), dim(rows$test), sum(rows$test))
  if (file.exists(path)) {
    truth <- tryCatch(readRDS(path), error = function(e) NULL)
    if (identical(truth$made_from, print)) return(truth)
  }
  pilot <- with_cell_seed(plan, list(repetition = repetition, m = 0), "pilot", {
    whole_fit(gp_dtc(rows$x, rows$y, m = 1, kernel = kernel_se(), hyper = "pilot", inducing = "random", center = FALSE,
                     scale = FALSE, keep_data = FALSE, control = pfdtc_control(200, threads = 1L, progress = FALSE)))
  })
  started <- proc.time()
  exact <- exact_fit(rows, pilot)
  at <- latent_at(exact, rows$test)
  used <- proc.time() - started
  slim <- exact
  slim["factors"] <- slim["x"] <- list(NULL)
  truth <- list(kernel = pilot$kernel, noise = pilot$noise, mean = at$mean, var = at$var, fit = slim,
                trace_P = trace_of_inverse(exact), seconds = used[["elapsed"]], cpu = cpu_of(used),
                pilot = sum(pilot$evaluations), made_from = print)
  part <- tempfile(basename(path), dirname(path))
  saveRDS(truth, part)
  file.rename(part, path)
  truth
}

exact_fit <- function(rows, hyper) {
  suppressMessages(gp_exact(rows$x, rows$y, kernel = hyper$kernel, noise = hyper$noise, hyper = "fixed", center = FALSE,
                            scale = FALSE, control = pfdtc_control(threads = 1L)))
}

# Passes an interrupt on, so that it ends the experiment: an interrupted fit is no result.
whole_fit <- function(fit) {
  withCallingHandlers(fit, pfdtc_warning_convergence = function(w) {
    if (identical(w$fit$convergence, 52L)) stop(structure(class = c("interrupt", "condition"),
                                                          list(message = "interrupted", call = NULL)))
  })
}

cpu_of <- function(time) sum(time[c("user.self", "sys.self")])

run_method <- function(method, cell, plan, rows, truth, start, keep) {
  if (method == "exact") return(list(results = exact_row(cell, plan, rows, truth)))
  traced <- cell$m %in% plan$trace && method %in% c("pf", "vfe", "default", "vfe_greedy")
  started <- proc.time()
  fit <- with_cell_seed(plan, cell, method, fit_method(method, cell, plan, rows, truth, start, traced))
  cpu <- cpu_of(proc.time() - started)
  at <- latent_at(fit, rows$test)
  row <- result_row(plan, cell$m, cell$repetition, method, at, rows, truth)
  row$points <- fit$m
  row$objective <- fit$objective
  row$kl <- kl_divergence(fit, truth$fit)
  row$seconds <- sum(fit$seconds)
  row$evaluations <- sum(fit$evaluations)
  row$cpu <- cpu
  row$convergence <- fit$convergence
  if (method == "pf") row$divergence <- pf_divergence(fit)
  if (fit$method %in% c("pfdtc", "gp_vfe")) {
    if (is.null(keep$exact)) keep$exact <- exact_fit(rows, truth)
    row$divergence_exact <- divergence_from_exact(fit, keep$exact, truth$trace_P)
  }
  if (plan$certify) row <- certified_row(row, fit, plan, cell, rows, truth)
  list(results = row, trace = if (traced) course(fit, row, plan, cell, rows, truth, start, keep$exact))
}

fit_method <- function(method, cell, plan, rows, truth, start, traced) {
  control <- plan$control
  if (traced) control$trace <- 5L
  args <- list(rows$x, rows$y, kernel = truth$kernel, noise = truth$noise, hyper = "fixed", center = FALSE,
               scale = FALSE, control = control)
  by_m <- method %in% c("subsample", "default", "vfe_greedy")
  args <- c(args, if (by_m) list(m = cell$m) else list(inducing = start),
            if (method == "pf") list(aux = aux_sor(size = plan$n_aux)),
            if (method %in% c("pf", "default")) list(neighbours = 0),
            if (method == "vfe_greedy") list(inducing = "greedy"))
  fit <- switch(method, pf = , default = pfdtc, vfe = , vfe_greedy = gp_vfe, sor = gp_sor, subsample = gp_subsample)
  whole_fit(do.call(fit, args))
}

result_row <- function(plan, m, repetition, method, at, rows, truth) {
  row <- empty_table(result_columns)
  row[1L, ] <- NA
  error_mean <- abs(at$mean - truth$mean)
  error_sd <- abs(sqrt(at$var) - sqrt(truth$var))
  rms <- function(e) sqrt(mean(e^2))
  e <- rows$y_test - at$mean
  var <- at$var + truth$noise
  new <- list(
    dataset = plan$name, m = m, repetition = repetition, method = method, rmse_mean = rms(error_mean),
    rmse_sd = rms(error_sd), kl_marginal = kl_marginal(at, truth), rmse_pred = rms(e),
    nlpd = mean(log(2 * pi * var) + e^2 / var) / 2, coverage = mean(abs(e) <= stats::qnorm(0.975) * sqrt(var)),
    max_mean = max(error_mean), max_sd = max(error_sd), median_mean = stats::median(error_mean), noise = truth$noise,
    maxit = plan$control$maxit, reltol = plan$control$reltol, seed = plan$seed,
    version = as.character(utils::packageVersion("pfdtc")))
  row[names(new)] <- new
  row
}

exact_row <- function(cell, plan, rows, truth) {
  row <- result_row(plan, plan$train, cell$repetition, "exact", truth, rows, truth)
  new <- list(points = nrow(rows$x), kl = 0, divergence_exact = 0, seconds = truth$seconds, cpu = truth$cpu,
              evaluations = truth$pilot, objective = -truth$fit$evidence, convergence = 0)
  row[names(new)] <- new
  row
}

certified_row <- function(row, fit, plan, cell, rows, truth, at, keep) {
  # Each fit has its own reference, because its size depends on the fit.
  bounds <- with_cell_seed(plan, cell, "certify", {
    certify(fit, rows$test, reference = reference(fit, min(4 * cell$m, nrow(rows$x))))
  })
  sd <- sqrt(truth$var)
  row$certified_mean_error <- max(bounds$mean_error)
  row$certified_median <- stats::median(bounds$mean_error)
  row$certified_sd_error <- max(bounds$sd - bounds$sd_lower, bounds$sd_upper - bounds$sd)
  room <- 1e-9 # allows for the rounding of the exact posterior
  row$outside <- sum(truth$mean < bounds$mean_lower - room | truth$mean > bounds$mean_upper + room |
                       sd < bounds$sd_lower - room | sd > bounds$sd_upper + room)
  row
}

# Returns errors and divergences at the inducing points that the trace kept, and at the start if it is known.
course <- function(fit, row, plan, cell, rows, truth, start, exact) {
  kept <- fit$z_trace
  if (fit$inducing_method == "given") kept <- c(list(list(evaluation = 1L, z = start)), kept)
  if (!length(kept)) return(NULL)
  at <- fit$trace[match(vapply(kept, `[[`, 0, "evaluation"), fit$trace$evaluation), ]
  # The objective is s2^2 d^2 minus a constant, which follows from the divergence at the end.
  squares <- at$objective - fit$objective + (row$divergence * truth$noise)^2
  out <- data.frame(dataset = plan$name, m = cell$m, repetition = cell$repetition, method = row$method,
                    evaluation = at$evaluation, seconds = at$seconds, objective = at$objective,
                    divergence = sqrt(pmax(squares, 0)) / truth$noise)
  errors <- vapply(kept, function(k) {
    dtc <- gp_dtc(rows$x, rows$y, kernel = truth$kernel, noise = truth$noise, hyper = "fixed", inducing = k$z,
                  center = FALSE, scale = FALSE, control = plan$control)
    p <- latent_at(dtc, rows$test)
    c(divergence_from_exact(dtc, exact, truth$trace_P), sqrt(mean((p$mean - truth$mean)^2)),
      sqrt(mean((sqrt(p$var) - sqrt(truth$var))^2)))
  }, numeric(3))
  cbind(out, divergence_exact = errors[1L, ], rmse_mean = errors[2L, ], rmse_sd = errors[3L, ])
}

# Returns tr (W^{1/2} K W^{1/2} + s2 I)^{-1}, which many fits share. `exact` is an unscaled fit.
trace_of_inverse <- function(exact) {
  P <- diag(chol2inv(t(cholesky_of(posterior_of(exact)))))
  sum(if (is.null(exact$data$weights)) P else P / exact$data$weights)
}

# Returns d_pF with nu the exact posterior, from its Cholesky factor, in O(N^2 M). With P = (K + s2 I)^{-1}, w = P y and
# H = A P A', terms (I) to (III) of Proposition 2 (theory vignette) have
#
#   k^_XX = s2 I - s2^2 P,  L^{-1} k^_mX = s2 A P,  L^{-1} k^_mm L^{-T} = I - J - H,  mu^_X - y = -s2 w,
#
# and J = jitter L^{-1} L^{-T}, because k^_mm has no jitter. With weights, A, y and w are multiplied by their square
# roots, and the factor has them in its noise. The fits have `center` and `scale` FALSE.
divergence_from_exact <- function(fit, exact, trace_P) {
  x <- exact$data$x
  s2 <- fit$noise
  n <- nrow(x)
  post <- fit$factors
  weights <- merged_weights(exact$data)
  alpha <- exact$factors$alpha # W^{1/2} w
  G <- post$G
  m <- nrow(G)
  A <- forwardsolve(post$L, kernel_matrix(fit$kernel, fit$inducing, x)) # has no weights: the factor has them
  H <- crossprod(forwardsolve(cholesky_of(posterior_of(exact)), t(A)))
  Aw <- drop(A %*% alpha)
  Li <- forwardsolve(post$L, diag(m))
  J <- fit$jitter * Li %*% (kernel_diagonal(fit$kernel, fit$inducing) * t(Li))
  D <- diag(m) + G / s2
  D_2 <- crossprod(solve(D)) # D^{-2}
  S_mm <- G %*% D_2 %*% G
  trace_K <- sum(kernel_diagonal(fit$kernel, x) * weights)
  A_k_At <- s2 * G - s2^2 * H
  trace_k_K <- s2 * trace_K - s2^2 * n + s2^3 * trace_P
  covariance <- trace_k_K - sum(diag(A_k_At)) + sum(D_2 * A_k_At) + sum((diag(m) - J - H) * S_mm) -
    2 * s2 * sum(H * (D_2 %*% G))
  w_K_w <- sum(alpha * exact$data$y) - s2 * sum(alpha^2 / weights)
  mean <- s2^2 * (w_K_w - sum(Aw^2)) + sum(solve(D, post$Ay - s2 * Aw - G %*% Aw)^2)
  sqrt(max(covariance + mean, 0)) / s2
}

draw_synthetic <- function(n) {
  x <- stats::runif(n, 0, 2)
  data.frame(x = x, y = sin(12 * x) + 0.66 * cos(25 * x) + 3 + stats::rnorm(n, sd = 0.1))
}

# Returns one of the data sets of paper_datasets(): the synthetic one is drawn, others are read from files in `dir`.
read_dataset <- function(name, dir) {
  sets <- paper_datasets()
  set <- sets[sets$name == check_choice(name, sets$name, "name"), ]
  rows <- set$n_train + set$n_test
  if (set$name == "synthetic") return(draw_synthetic(rows))
  if (!is.character(dir) || length(dir) != 1L || is.na(dir)) abort_input("dir", describe(dir), "the name of a folder")
  files <- paste0(set$file, c(".csv", ".csv.gz"))
  path <- Find(file.exists, if (nzchar(dir)) file.path(dir, files))
  if (is.null(path)) {
    where <- if (nzchar(dir)) sprintf("there is no %s in %s", files[1L], dir) else "PFDTC_DATA is not set"
    abort_input("dir", where, "a folder with the file", message = sprintf(
      "`dir` must be a folder with %s or %s (%s). The file comes from: %s. To prepare it: %s.", files[1L], files[2L],
      where, set$source, set$prepare))
  }
  data <- utils::read.csv(path)
  bad <- !vapply(data, is.numeric, NA) | vapply(data, anyNA, NA)
  got <- if (any(bad)) sprintf("values that are no numbers in column %s", names(data)[bad][1L]) else
    if (ncol(data) != set$d + 1L) sprintf("%d columns", ncol(data)) else
      if (names(data)[ncol(data)] != "y") sprintf("`%s` last", names(data)[ncol(data)]) else
        if (nrow(data) < rows) sprintf("%d rows", nrow(data))
  if (is.null(got)) return(data)
  abort_input("dir", got, "a folder with the file", message = sprintf(
    "The file of data set \"%s\" must have %d numeric columns, the last named `y`, and at least %d rows: it has %s.",
    set$name, set$d + 1L, rows, got))
}
