# Do other packages compute the same numbers at equal hyperparameters?
#
#   PFDTC_DATA=<folder of the CSVs> R_LIBS=<library of install.sh> Rscript bench/peers/peers.R
#
# Runs the peers that are installed and writes bench/peers/results.csv, with a row for each comparison. The data are 300
# rows of airfoil and 100 others to predict at, or R's quakes without PFDTC_DATA, with all inputs and with the first
# alone, whose many repeated values pfdtc merges. Hyperparameters are learned by gp_exact() and rounded to three digits,
# with noise at least 0.01 of the variance. A second comparison has noise 1e-6 of the variance, where rounding and
# jitters show. Differences of predictions are the largest over the rows in units of sd(y), those of the log evidence
# are absolute. A row "its own jitter" compares the peer with dense.R, which computes the definitions with N x N
# matrices and adds the peer's jitter. The differences that remain are rounding or unexplained.

suppressMessages(library(pfdtc))
here <- file.path("bench", "peers")
source(file.path(here, "dense.R"))
source(file.path(here, "adapters.R"))

profile_kernel <- function(profile, ...) {
  switch(profile, se = kernel_se(...), matern12 = kernel_matern(1 / 2, ...), matern32 = kernel_matern(3 / 2, ...),
         matern52 = kernel_matern(5 / 2, ...))
}

read_data <- function() {
  path <- Sys.glob(file.path(Sys.getenv("PFDTC_DATA", "."), "airfoil.csv*"))
  if (length(path)) {
    d <- utils::read.csv(path[1L])
    return(list(name = "airfoil", x = as.matrix(d[setdiff(names(d), "y")]), y = d$y))
  }
  d <- datasets::quakes
  list(name = "quakes", x = as.matrix(d[c("lat", "long")]), y = d$depth)
}

make_task <- function(data, inputs, profile, noise_ratio = NULL, n = 300, n_new = 100, m = 40) {
  set.seed(1)
  rows <- sample.int(nrow(data$x), n + n_new)
  x <- data$x[rows, inputs, drop = FALSE]
  task <- list(x = x[seq_len(n), , drop = FALSE], y = data$y[rows[seq_len(n)]],
               new = x[-seq_len(n), , drop = FALSE], profile = profile)
  learned <- signif(stats::coef(gp_exact(task$x, task$y, kernel = profile_kernel(profile), hyper = "joint")), 3)
  task$mean <- mean(task$y)
  task$lengthscale <- unname(learned[seq_along(inputs)])
  task$variance <- learned[["variance"]]
  task$noise <- if (is.null(noise_ratio)) max(learned[["noise"]], 0.01 * task$variance) else noise_ratio * task$variance
  distinct <- which(!duplicated(task$x))
  task$z <- task$x[distinct[seq_len(min(m, length(distinct) %/% 2))], , drop = FALSE]
  task
}

# Returns list(mean, sd, log_lik) of the package, and the task with the final inducing points.
ours <- function(task, what) {
  fit_by <- switch(what, exact = gp_exact, FITC = gp_fitc, DTC = gp_dtc, SoR = gp_sor, VFE = gp_vfe, pFDTC = pfdtc)
  args <- list(task$x, task$y, kernel = profile_kernel(task$profile, task$lengthscale, task$variance),
               noise = task$noise, hyper = "fixed", control = pfdtc_control(maxit = 30, progress = FALSE))
  if (what != "exact") args$inducing <- task$z
  fit <- withCallingHandlers(do.call(fit_by, args), pfdtc_warning_convergence = function(w) {
    invokeRestart("muffleWarning") # thirty steps are enough to move the points
  })
  p <- stats::predict(fit, task$new, se.fit = TRUE)
  if (what != "exact") task$z <- fit$inducing
  list(mean = unname(p$fit), sd = unname(p$se.fit), log_lik = as.numeric(stats::logLik(fit)), task = task,
       jitter = if (is.null(fit$jitter)) 0 else fit$jitter * task$variance)
}

# For DTC and pF-DTC the `elbo` is VFE's bound of the exact evidence, not the evidence of a model of their own.
dense_models <- list(exact = dense_exact, FITC = dense_fitc, SoR = dense_sor, DTC = dense_vfe, VFE = dense_vfe,
                     pFDTC = dense_vfe)

# ---- one comparison --------------------------------------------------------------------------------------------------

package_version <- function(package) {
  if (package == "dense R") paste(R.version$major, R.version$minor, sep = ".") else
    utils::packageDescription(package)$Version
}

result_row <- function(peer, task, what, a, b, note) {
  sd_y <- stats::sd(task$y)
  data.frame(
    peer = peer, version = package_version(peer), kernel = task$profile, what = what, n = nrow(task$x),
    m = if (grepl("^exact", what)) NA else nrow(task$z),
    max_abs_diff_mean = max(abs(a$mean - b$mean)) / sd_y, max_abs_diff_sd = max(abs(a$sd - b$sd)) / sd_y,
    diff_logLik = if (is.null(a$log_lik)) NA else abs(a$log_lik - b$log_lik), note = note, data = task$data,
    inputs = ncol(task$x), noise_ratio = task$noise / task$variance, logLik = b$log_lik)
}

run_adapter <- function(adapter, task) {
  got <- adapter$run(task)
  if (!is.null(got$scale)) {
    task$variance <- task$variance * got$scale
    task$noise <- task$noise * got$scale
  }
  note <- if (is.null(got$note)) "" else got$note
  first <- result_row(adapter$peer, task, adapter$what, got, ours(task, adapter$what), note)
  jitter <- utils::modifyList(no_jitter, as.list(got$jitter))
  if (is.null(jitter$predicted)) jitter$predicted <- 0
  if (all(unlist(jitter) == 0)) return(first)
  expected <- dense_models[[adapter$what]](task, jitter)
  expected$sd <- sqrt(expected$sd^2 + jitter$predicted)
  rbind(first, result_row(adapter$peer, task, paste0(adapter$what, ", its own jitter"), got, expected,
                          "peer against the dense transcription with the peer's jitter"))
}

# Compares the package with the transcription, which has the package's jitter.
run_dense <- function(task, what) {
  we <- ours(task, what)
  jitter <- utils::modifyList(no_jitter, list(points = we$jitter))
  result_row("dense R", we$task, what, dense_models[[what]](we$task, jitter), we,
             if (what %in% c("VFE", "pFDTC")) "at the points that the fit ended with" else "")
}

# Returns the effect of rounding alone: dense.R against itself with entries of K changed by at most about 1
# ulp.
run_rounding <- function(task) {
  set.seed(2)
  off <- dense_exact(task, utils::modifyList(no_jitter, list(ulps = 1)))
  result_row("dense R", task, "exact, k off by rounding", off, dense_exact(task),
             "entries of k times 1 + u, |u| <= 2.2e-16: what cannot be asked for")
}

# ---- all comparisons -------------------------------------------------------------------------------------------------

main <- function() {
  data <- read_data()
  cases <- rbind(
    expand.grid(profile = all_profiles, one = c(FALSE, TRUE), ratio = NA, stringsAsFactors = FALSE),
    data.frame(profile = "se", one = FALSE, ratio = 1e-6))
  rows <- list()
  add <- function(expr, label) {
    row <- tryCatch(expr, error = function(e) {
      message(label, ": ", conditionMessage(e))
      NULL
    })
    if (!is.null(row)) rows[[length(rows) + 1L]] <<- row
  }
  for (i in seq_len(nrow(cases))) {
    case <- cases[i, ]
    inputs <- if (case$one) 1L else seq_len(ncol(data$x))
    task <- make_task(data, inputs, case$profile, if (!is.na(case$ratio)) case$ratio)
    task$data <- data$name
    add(run_rounding(task), "rounding")
    for (what in names(dense_models)) add(run_dense(task, what), paste("dense R", what))
    for (adapter in adapters) {
      if (!(case$profile %in% if (case$one) c(adapter$one, adapter$profiles) else adapter$profiles)) next
      if (adapter$peer == "kernlab" && task$noise < 1e-3 * task$variance) next # gausspr() refuses it
      if (!suppressMessages(requireNamespace(adapter$peer, quietly = TRUE))) next
      add(run_adapter(adapter, task), paste(adapter$peer, adapter$what, case$profile))
    }
    cat(format(Sys.time(), "%H:%M:%S"), task$profile, ncol(task$x), "inputs\n")
  }
  result <- do.call(rbind, rows)
  numbers <- c("max_abs_diff_mean", "max_abs_diff_sd", "diff_logLik", "noise_ratio")
  result[numbers] <- lapply(result[numbers], signif, 3)
  result$logLik <- signif(result$logLik, 8)
  utils::write.csv(result, file.path(here, "results.csv"), row.names = FALSE, na = "")
  absent <- setdiff(unique(vapply(adapters, `[[`, "", "peer")), result$peer)
  if (length(absent)) cat("not installed:", toString(absent), "\n")
}

if (!exists("running")) main() # precise.R uses the functions only
