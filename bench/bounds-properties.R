# Compares the theorem's bounds and the bounds of the log evidence with the exact GP in quadruple precision, on random
# problems. No bound may be violated.
#
#   Rscript bench/bounds-properties.R [count = 2000] [seed = 1]     count problems
#   Rscript bench/bounds-properties.R nasty                         writes tests/testthat/bounds-nasty.csv
#
# Problems are those of bench/certify-properties.R. Every fit has bounds of its evidence without and with a reference,
# and without its data, and DTC posteriors have the theorem's bounds. The status is 1 if any bound is violated. 2,000
# problems take three minutes of one core. bench/results/bounds-properties.txt summarises such a run.

suppressMessages(library(pfdtc))
self <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(self), "quad.R"))
load_quad(self)

# Returns c(violated, width) of bounds of the log evidence. `exact` is a sum of two doubles.
bracket_holds <- function(bracket, exact) {
  c(violated = (bracket[["lower"]] - exact[1L]) - exact[2L] > 0 || (bracket[["upper"]] - exact[1L]) - exact[2L] < 0,
    width = (bracket[["upper"]] - bracket[["lower"]]) / (1 + abs(exact[1L])))
}

run_problem <- function(seed) {
  p <- certify_problem(seed, n_most = 120)
  fit <- tryCatch(suppressWarnings(certify_fit(p)), pfdtc_error_numerical = identity)
  if (inherits(fit, "error")) return("refused")
  exact <- quad_evidence(p, fit$center)
  checked <- function(what, violated, number) data.frame(seed, by = p$by, what, violated, number, row.names = NULL)
  reference <- with_seed(p$seed, reference(fit, p$m2))
  out <- list()
  for (kind in c("own", "no data", "reference")) {
    if (p$by == "gp_exact" || (kind == "no data" && p$by %in% c("gp_fitc", "gp_subsample"))) next
    it <- fit
    if (kind == "no data") it["data"] <- list(NULL)
    if (kind == "reference") it$reference <- reference
    # Without data a fit whose jitter is below rounding is refused.
    bracket <- tryCatch(evidence_bounds(it), pfdtc_error_input = function(e) if (kind == "no data") NULL else stop(e))
    if (is.null(bracket)) next
    held <- bracket_holds(bracket, exact)
    out <- c(out, list(checked(paste("evidence:", kind), held[["violated"]] == 1, held[["width"]])))
  }
  if (p$by %in% c("pfdtc", "gp_vfe", "gp_dtc")) {
    e <- quad(p, fit$center)
    at <- predict(fit, p$new, se.fit = TRUE)
    error <- list(mean = abs((at$fit - e$mean) - e$mean_low), sd = abs(at$se.fit - e$sd),
                  var = abs(at$se.fit - e$sd) * (at$se.fit + e$sd))
    for (effort in c("fast", "reference")) {
      b <- with_seed(p$seed, error_bounds(fit, p$new, effort, reference = reference))
      for (column in names(b)) {
        actual <- error[[sub("_.*", "", column)]]
        ratio <- ifelse(b[[column]] > 0, actual / b[[column]], 0)
        out <- c(out, list(checked(paste(effort, column), any(is.na(ratio) | actual > b[[column]]), max(ratio))))
      }
    }
  }
  do.call(rbind, out)
}

run <- function(count, seed) {
  all <- list()
  refused <- 0
  for (problem in seed * 1e6 + seq_len(count)) {
    one <- run_problem(problem)
    if (identical(one, "refused")) refused <- refused + 1 else all <- c(all, list(one))
  }
  all <- do.call(rbind, all)
  cat(sprintf("%d problems, %d refused by the fit itself\n\n", count, refused))
  cat("evidence: width of the bracket / (1 + |log evidence|); bounds: largest error / bound of a problem\n")
  groups <- split(all, factor(all$what, unique(all$what)))
  print(do.call(rbind, lapply(groups, function(g) {
    q <- signif(stats::quantile(g$number, c(0.05, 0.5, 0.95, 1)), 3)
    data.frame(checked = nrow(g), violated = sum(g$violated), q05 = q[[1L]], median = q[[2L]], q95 = q[[3L]],
               largest = q[[4L]])
  })))
  bad <- all[all$violated, ]
  if (nrow(bad)) print(utils::head(bad, 20))
  cat(if (nrow(bad)) "\nFAILED\n" else "\nall hold\n")
  quit(status = if (nrow(bad)) 1 else 0)
}

write_nasty <- function() {
  cases <- nasty_certify_problems()
  table <- do.call(rbind, lapply(names(cases), function(name) {
    p <- cases[[name]]
    exact <- quad_evidence(p, certify_fit(p)$center)
    data.frame(case = name, evidence = sprintf("%.17g", exact[1L]), evidence_low = sprintf("%.3g", exact[2L]))
  }))
  utils::write.csv(table, file.path(tests, "bounds-nasty.csv"), row.names = FALSE, quote = 1)
}

args <- commandArgs(TRUE)
if (identical(args[1L], "nasty")) {
  write_nasty()
} else {
  run(if (length(args)) as.numeric(args[1L]) else 2000, if (length(args) > 1L) as.numeric(args[2L]) else 1)
}
