# The properties of the functions that fit. A new function is a row here and a function in baselines.R.
#
#   title       the name in print() and in figures
#   objective   the objective of the inducing points: "pf", "vfe" or "none" (they stay); NULL: no inducing points
#   joint       can hyperparameters be learned together with the objective?
#   chooses     does the function choose the kind of its posterior?
#   dtc         is it a DTC posterior? The theorem and the pF divergence need one.
#   reference   can it be a reference?
#   sor, fitc   is it one of these two?
#   some        is it the exact posterior of some of the rows?
family <- function(title, objective = "none", joint = FALSE, chooses = FALSE, dtc = FALSE, reference = FALSE,
                   sor = FALSE, fitc = FALSE, some = FALSE) {
  as.list(environment())
}

gp_families <- list(
  pfdtc = family("pF-DTC", "pf", joint = TRUE, chooses = TRUE, dtc = TRUE),
  gp_vfe = family("VFE (sparse variational)", "vfe", joint = TRUE, dtc = TRUE),
  gp_dtc = family("DTC", dtc = TRUE, reference = TRUE),
  gp_sor = family("SoR", sor = TRUE),
  gp_fitc = family("FITC", fitc = TRUE),
  gp_subsample = family("the exact posterior of a subsample", NULL, some = TRUE),
  gp_exact = family("the exact posterior", NULL, joint = TRUE))

# Returns the row of a fit, of settings, or of any list with a `method`.
gp_family <- function(fit) gp_families[[fit$method]]

# Returns TRUE if equal rows are merged. A subsample draws rows, and FITC has a variance for each row.
merges_rows <- function(method) !gp_families[[method]]$some && !gp_families[[method]]$fitc

check_dtc <- function(fit, hint) {
  if (gp_family(fit)$dtc) return(invisible(fit))
  abort_input("fit", sprintf("a fit by %s()", fit$method), "a fit by pfdtc(), gp_vfe() or gp_dtc()", hint = hint)
}
