# What the functions that fit are, and what can be asked of a fit by each: a new one is a row here and a function in
# baselines.R.
#
#   title       in print() and in figures
#   objective   what its inducing points minimise: "pf", "vfe" or "none" (they stay); NULL: it has none
#   joint       may hyperparameters be learned together with what it minimises?
#   chooses     does it decide what its posterior is made of?
#   dtc         is that a DTC posterior, which the theorem and the pF divergence are about?
#   reference   may it serve as a reference?
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

# Of a fit, of settings, or of what else has a `method`.
gp_family <- function(fit) gp_families[[fit$method]]

# Rows are drawn for a subsample, and variances belong to rows in FITC, as they are.
merges_rows <- function(method) !gp_families[[method]]$some && !gp_families[[method]]$fitc

check_dtc <- function(fit, hint) {
  if (gp_family(fit)$dtc) return(invisible(fit))
  abort_input("fit", sprintf("a fit by %s()", fit$method), "a fit by pfdtc(), gp_vfe() or gp_dtc()", hint = hint)
}
