# Compares certificates with the exact GP in quadruple precision, on random problems. No certificate may be violated.
#
#   Rscript bench/certify-properties.R [count = 100000] [seed = 1] [file]     count rows of newdata for each effort
#   Rscript bench/certify-properties.R near [count] [seed] [file]             fits with neighbours (near-problems.R)
#   Rscript bench/certify-properties.R nasty                                  writes tests/testthat/certify-nasty.csv
#
# tests/testthat/helper-certify.R makes the problems (kernels, dimensions, N up to 200, weights, jitters, offsets, Z on
# and off the data, fits of every kind). Fits with neighbours are tested by certify() with every effort, the interval of
# predict(certified = TRUE), refine(), and kriging alone. `file` (pfdtc-certify-<seed>.csv in the folder of R's
# temporary folder) has a row for each problem and effort, and these are not computed again: a run can be ended and
# continued, also with another count. The status is 1 if a certificate is violated, or if the largest ratio of error to
# certificate stays below 0.9 for any effort, as certificates were then not tested where they are tight. Needs gcc with
# __float128. 100,000 rows take two minutes of one core. bench/results/certify-properties.txt summarises such a run.

suppressMessages(library(pfdtc))
self <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(self), "quad.R"))
source(file.path(dirname(self), "near-problems.R"))

breaks <- c(-Inf, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, Inf)
counted <- c("<= 1e-4", "1e-4..1e-3", "1e-3..0.01", "0.01..0.1", "0.1..0.3", "0.3..0.5", "0.5..0.7", "0.7..0.9",
             "0.9..0.99", "> 0.99")

# Returns a row for each effort of one problem, or one row that says that the fit is refused.
run_problem <- function(seed, near) {
  p <- if (near) near_problem(seed) else certify_problem(seed)
  about <- data.frame(seed = seed, by = p$by, kernel = name_of(p$kernel), n = nrow(p$x), d = ncol(p$x),
                      noise = signif(p$noise / (if (near) p$y_unit^2 else p$kernel$variance), 3))
  refused <- cbind(about, effort = "refused", rows = 0, violated = 0, wider = 0, mean = 0, sd = 0,
                   matrix(0, 1, 2 * length(counted)))
  fit <- tryCatch(suppressWarnings(if (near) near_fit(p) else certify_fit(p)), pfdtc_error_numerical = identity)
  if (inherits(fit, "error")) return(refused)
  if (near) p$kernel <- kernel_of_model(p$kernel, fit, p$x)
  exact <- quad(p, fit$center)
  # With these limits kriging on neighbours is usually not exact, and the exact posterior may or may not fit in
  # memory.
  options(pfdtc.kriging_rows = with_seed(seed, one_of(1L, 3L, 8L, 20L, 60L, 400L)), pfdtc.max_memory = p$memory)
  all <- tryCatch(if (near) near_certificates(fit, p, exact) else
    c(certify_all(fit, p), list(kriging = kriging_alone(fit, p))), pfdtc_error_numerical = identity)
  if (inherits(all, "error")) return(refused)
  before <- NULL
  do.call(rbind, lapply(names(all), function(effort) {
    certificate <- all[[effort]]
    ratio <- tightness(certificate, exact)
    wider <- if (!is.null(before) && effort %in% c("reference", "tight")) sum(is_wider(certificate, before)) else 0
    before <<- certificate
    count <- function(v) tabulate(cut(v, breaks), length(counted))
    cbind(about, effort = effort, rows = nrow(certificate), violated = sum(violated(certificate, exact)), wider = wider,
          mean = signif(max(ratio[, "mean"]), 6), sd = signif(max(ratio[, "sd"]), 6),
          t(c(count(ratio[, "mean"]), count(ratio[, "sd"]))))
  }))
}

run <- function(count, seed, file, near) {
  load_quad(self)
  done <- if (file.exists(file)) utils::read.csv(file, check.names = FALSE)
  rows <- if (is.null(done)) 0 else sum(done$rows[done$effort == "fast"])
  problem <- if (is.null(done)) seed * 1e6 else max(done$seed)
  started <- proc.time()[["elapsed"]]
  while (rows < count) {
    problem <- problem + 1
    result <- run_problem(problem, near)
    names(result)[-(1:12)] <- c(paste("mean", counted), paste("sd", counted))
    utils::write.table(result, file, append = file.exists(file), sep = ",", row.names = FALSE,
                       col.names = !file.exists(file), qmethod = "double")
    rows <- rows + sum(result$rows[result$effort == "fast"])
    if (problem %% 100 == 0) {
      cat(sprintf("%d of %d rows, %.0f s\n", rows, count, proc.time()[["elapsed"]] - started))
    }
  }
  summarise(utils::read.csv(file, check.names = FALSE), file)
}

summarise <- function(all, file) {
  cat(sprintf("\n%d problems, %d refused by the fit itself; results in %s\n", length(unique(all$seed)),
              sum(all$effort == "refused"), file))
  efforts <- intersect(c("fast", "reference", "tight", "band", "refine", "kriging"), all$effort)
  each <- function(f) vapply(efforts, function(e) f(all[all$effort == e, ]), 0)
  cat("\ncertificates (rows of newdata), of mean and sd each\n")
  table <- rbind(certificates = each(function(a) sum(a$rows)), violated = each(function(a) sum(a$violated)),
                 `wider than a cheaper one` = each(function(a) sum(a$wider)),
                 `mean: largest error / certificate` = each(function(a) max(a$mean)),
                 `the same where N > 1` = each(function(a) max(a$mean[a$n > 1])),
                 `sd: largest error / certificate` = each(function(a) max(a$sd)))
  print(noquote(array(format(c(table), digits = 6, drop0trailing = TRUE, scientific = FALSE, trim = TRUE), dim(table),
                      dimnames(table))))
  cat("\nerror / certificate, share of the rows in percent\n")
  for (what in c("mean", "sd")) {
    cat(what, "\n")
    shares <- t(sapply(efforts, function(e) {
      counts <- colSums(all[all$effort == e, paste(what, counted)])
      round(100 * counts / sum(counts), 2)
    }))
    colnames(shares) <- counted
    print(shares)
  }
  worst <- all[order(-all$violated, -all$wider, -pmax(all$mean, all$sd)), 1:12]
  cat("\nworst cases: certify_problem(seed)\n")
  print(utils::head(worst, 12), row.names = FALSE)
  sharp <- each(function(a) if (a$effort[1L] %in% c("band", "refine")) max(a$mean) else min(max(a$mean), max(a$sd)))
  # Fits with neighbours have few inducing points, so `fast` certificates are loose. So are those of kriging alone,
  # which bound an error by the product of two norms.
  least <- if ("band" %in% efforts) ifelse(efforts %in% c("fast", "kriging"), 0.5, 0.9) else 0.9
  good <- sum(all$violated) == 0 && sum(all$wider) == 0 && all(sharp >= least)
  cat(if (good) "\nall hold\n" else "\nFAILED\n")
  quit(status = if (good) 0 else 1)
}

# Writes the exact numbers for the tests of nasty problems.
write_nasty <- function() {
  load_quad(self)
  cases <- nasty_certify_problems()
  table <- do.call(rbind, lapply(names(cases), function(name) {
    p <- cases[[name]]
    exact <- quad(p, certify_fit(p)$center)
    data.frame(case = name, row = seq_along(exact$mean), mean = sprintf("%.17g", exact$mean),
               mean_low = sprintf("%.3g", exact$mean_low), sd = sprintf("%.17g", exact$sd))
  }))
  utils::write.csv(table, file.path(tests, "certify-nasty.csv"), row.names = FALSE, quote = 1)
}

args <- commandArgs(TRUE)
if (identical(args[1L], "nasty")) {
  write_nasty()
} else {
  near <- identical(args[1L], "near")
  if (near) args <- args[-1L]
  seed <- if (length(args) > 1L) as.numeric(args[2L]) else 1
  file <- sprintf("pfdtc-certify-%s%d.csv", if (near) "near-" else "", seed)
  run(if (length(args)) as.numeric(args[1L]) else 1e5, seed,
      if (length(args) > 2L) args[3L] else file.path(dirname(tempdir()), file), near)
}
