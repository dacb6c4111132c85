# Runs when the package is loaded.

.onLoad <- function(libname, pkgname) {
  start_engine()
  when_loaded("marginaleffects", register_marginaleffects)
  when_loaded("mlr3", function(...) {
    mlr3::mlr_learners$add("regr.pfdtc", function() mlr3_learner())
    mlr3::mlr_learners$add("classif.pfdtc", function() mlr3_learner(type = "classif"))
  })
  when_loaded("parsnip", register_parsnip)
}

# Calls `register` now, or as soon as `package` is loaded.
when_loaded <- function(package, register) {
  if (isNamespaceLoaded(package)) register() else setHook(packageEvent(package, "onLoad"), register)
}

#' @keywords internal
#' @aliases pfdtc-package
#' @importFrom stats AIC BIC coef fitted formula logLik model.frame nobs predict residuals sigma simulate terms
#' @importFrom stats variable.names weights
#' @importFrom graphics plot
#' @useDynLib pfdtc, .registration = TRUE
#' @seealso [pfdtc()] to start with, and `vignette("pfdtc")`.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), Scalable Gaussian Process Inference with Finite-data Mean
#'   and Variance Guarantees, AISTATS. \url{https://proceedings.mlr.press/v89/huggins19a.html}
"_PACKAGE"

# rOpenSci's standards for statistical software, General and Regression, each answered by its tag: here what is about
# the package as a whole or about many files, beside the tests what tests do. tools/srr.R collects the tags into
# tools/srr-report.md and complains where one is missing.

#' General: documentation
#'
#' @srrstatsVerbose TRUE
#' @srrstats {G1.0} The literature is in DESCRIPTION, inst/CITATION, the sources of help pages and the theory vignette.
#' @srrstats {G1.1} `?pfdtc` and README.md say what is new: a first implementation in R of pF-DTC, and certificates that
#'   no other package has; `vignette("comparison")` says what else there is.
#' @srrstats {G1.2} NEWS.md and CONTRIBUTING.md: what has changed, what will not change (the public interface), how to
#'   add.
#' @srrstats {G1.3} Terms are defined where they are first used: `vignette("pfdtc")`, "How to read the result" in
#'   README.md, and the table of symbols in `vignette("theory")`.
#' @srrstats {G1.4} Help pages and NAMESPACE are made by roxygen2 (tools/document.R, checked in CI).
#' @srrstats {G1.4a} Internal functions have comments in front of them, which say shapes and units.
#' @srrstats {G1.5} The code of every claim is in the sources: `inst/experiments` (the paper), `bench/`.
#' @srrstats {G1.6} `bench/peers` and `bench/race.md` compare with other packages, by their code.
#' @noRd
NULL

#' General: input
#'
#' @srrstats {G2.0} Lengths of arguments are in their help; `check_count()`, `check_number()`, `check_flag()`,
#'   `check_choice()`, `check_level()` (util-checks.R) hold them to it.
#' @srrstats {G2.0a} Messages of these checks say what length is wanted and what was given.
#' @srrstats {G2.1} Types likewise.
#' @srrstats {G2.1a} Help pages say the type of each argument.
#' @srrstats {G2.2} More than one value where one is wanted is an error of class `pfdtc_error_input`.
#' @srrstats {G2.3} Character arguments go through `check_choice()`,
#' @srrstats {G2.3a} which permits the values in the usage alone and lists them,
#' @srrstats {G2.3b} and is case-sensitive, as `match.arg()` is; `?pfdtc` says so.
#' @srrstats {G2.4} Conversions are explicit (util-checks.R, rows-read.R):
#' @srrstats {G2.4a} counts by `as.integer()`,
#' @srrstats {G2.4b} inputs and responses by `as.double()`,
#' @srrstats {G2.4c} levels by `as.character()`,
#' @srrstats {G2.4d} character variables of a formula become factors, as of `lm()`,
#' @srrstats {G2.4e} and levels are matched by name, never by code.
#' @srrstats {G2.5} `?pfdtc`: factors may be ordered or not; the order is not used.
#' @srrstats {G2.6} One-dimensional inputs come as vectors, matrices of one column or columns of a class of their own
#'   over numbers.
#' @srrstats {G2.8} `clean_data()` (rows-clean.R) makes one plain list of matrices and vectors, the only thing that the
#'   rest of the package sees.
#' @srrstats {G2.9} What would lose information is refused by name (dates, interactions, `a:b`), not converted; columns
#'   without names are named `x1`, `x2`, ... in `print()`.
#' @srrstats {G2.13} Missing values are looked for before anything is computed (rows-clean.R, rows-new.R).
#' @srrstats {G2.14} `na.action` of formulas and of `predict()`:
#' @srrstats {G2.14a} `na.fail`, and always for matrices,
#' @srrstats {G2.14b} `na.omit` and `na.exclude`, whose number `print()` says,
#' @srrstats {G2.14c} or any function that imputes: it is given the model frame.
#' @srrstats {G2.15} Nothing behind `clean_data()` sees a missing value.
#' @srrstats {G2.16} `NaN` is missing; `Inf` is an error everywhere, which names the column.
#' @noRd
NULL

#' General: algorithms and output
#'
#' @srrstats {G3.0} No two computed numbers are compared for equality; rows of inputs are, as given, when equal rows are
#'   merged (merge.R).
#' @srrstatsNA {G3.1} No covariance matrix is estimated from columns of data: covariances are the kernel's.
#' @srrstatsNA {G3.1a} Likewise; which kernel is an argument.
#' @srrstats {G4.0} `run_experiment()` asks for the name of its file and says that it is a CSV; the trace is beside it,
#'   `<file>-trace.csv`.
#' @noRd
NULL

#' General: tests
#'
#' @srrstats {G5.0} Tests use `cars`, `quakes`, `mtcars`, `npk`, `airquality`, `volcano`, which come with R, and the
#'   paper's sets where they are at hand.
#' @srrstats {G5.1} Data that tests make are made in tests/testthat/helper-problems.R; `load_dataset("synthetic")` is
#'   the paper's.
#' @srrstats {G5.2} Errors and warnings have classes and are tested by class and argument (helper-expect.R),
#' @srrstats {G5.2b} each where it is raised.
#' @srrstats {G5.3} Predictions without missing values are part of `expect_equal()` with dense transcriptions.
#' @srrstats {G5.4} Every number is compared with a dense transcription of its formula (helper-reference.R),
#' @srrstats {G5.4a} in R beside the engine in C, and with limits and inequalities,
#' @srrstats {G5.4b} with seven other packages where methods are theirs, too (bench/peers),
#' @srrstats {G5.4c} and with the figures and tables of the paper (test-paper-examples.R, `vignette("paper")`).
#' @srrstats {G5.8} Edges are in test-pfdtc-nasty.R, test-nasty-defaults.R and test-rows-clean.R:
#' @srrstats {G5.8a} no rows,
#' @srrstats {G5.8b} types that are not for inputs,
#' @srrstats {G5.8c} columns of missing or of equal values,
#' @srrstats {G5.8d} more inputs than rows.
#' @srrstats {G5.10} `PFDTC_TEST_QUICK`, `PFDTC_TEST_MEMORY`, `PFDTC_DATA` turn parts of the suite on and off;
#'   `make mutants` plants faults.
#' @srrstats {G5.11} Large data sets are found by `PFDTC_DATA`; `load_dataset()` says how to get them,
#' @srrstats {G5.11a} and tests skip where they are not there.
#' @srrstats {G5.12} CONTRIBUTING.md and bench/README.md say what the longer ones take.
#' @noRd
NULL

#' Regression: input
#'
#' @srrstats {RE1.0} All functions that fit have a formula method.
#' @srrstats {RE1.1} `?pfdtc` says how variables become columns: numeric, logical as 0/1, a 0/1 column a level.
#' @srrstats {RE1.2} `?pfdtc` says what is taken and what is refused.
#' @srrstats {RE1.3} Row names and column names go to what methods return; `terms`, `na.action` are kept.
#' @srrstats {RE1.3a} Other attributes of columns are dropped, as `?pfdtc` says.
#' @srrstats {RE1.4} Normal noise of one size, and a stationary function, unless a kernel or family says otherwise; what
#'   to do where they do not hold: `predict(interval = "conformal")`, `plot(which = "checks")`,
#'   `vignette("troubleshooting")`, and tests (test-conformal.R).
#' @srrstats {RE2.0} `center` and `scale` of the response are undone in all that is returned and turned off by `FALSE`;
#'   inputs are not transformed.
#' @srrstats {RE2.1} `na.action`, with `NA` and `NaN` apart from `Inf`.
#' @srrstats {RE2.2} Missing responses drop rows of the fit; `predict()` needs inputs alone.
#' @srrstats {RE2.3} `center`, `scale`, `offset`.
#' @srrstats {RE2.4} What collinearity would break in a linear model is no trouble here; tests show it.
#' @noRd
NULL

#' Regression: algorithms and results
#'
#' @srrstats {RE3.0} Warnings of class `pfdtc_warning_convergence`.
#' @srrstats {RE3.1} Suppressed by class; `fit$convergence`, `fit$message`, `fit$trace`, `fit$learned` stay.
#' @srrstats {RE3.2} `?pfdtc_control` gives the defaults and why.
#' @srrstats {RE3.3} `pfdtc_control(maxit = , reltol = )`.
#' @srrstats {RE4.0} A fit of class `c("pfdtc", "gp_fit")`.
#' @srrstats {RE4.1} `hyper = "fixed"` with `maxit = 0` optimises nothing; `gp_reg()` is a specification without data.
#' @srrstats {RE4.2} `coef()`.
#' @srrstats {RE4.3} `confint()`, of logs.
#' @srrstats {RE4.4} `formula()`, `terms()`.
#' @srrstats {RE4.5} `nobs()`.
#' @srrstats {RE4.6} `vcov()`, of logs.
#' @srrstats {RE4.7} `fit$convergence`, `fit$trace`, `plot_trace()`.
#' @srrstats {RE4.8} `model.frame()`, `augment()`.
#' @srrstats {RE4.9} `fitted()`.
#' @srrstats {RE4.10} `residuals()`: response, Pearson, leave-one-out and probability integral transform; `rstandard()`.
#' @srrstats {RE4.11} `logLik()`, `AIC()`, `anova()`, `cross_validate()`, `performance::model_performance()`.
#' @srrstats {RE4.12} `fit$center`, `fit$scale`.
#' @srrstats {RE4.13} `model.frame()`, `variable.names()`, `labels()`.
#' @srrstats {RE4.16} New levels of a factor are refused by default, which is said; `kernel_categorical()` learns the
#'   correlation of known ones.
#' @srrstats {RE4.17} `print()`.
#' @srrstats {RE4.18} `summary()`.
#' @srrstats {RE5.0} `?pfdtc`, README.md, `bench/README.md`: cost against rows, points and inputs.
#' @srrstats {RE6.0} `plot()`.
#' @srrstatsNA {RE6.1} The method is that of the generic.
#' @srrstats {RE6.2} The mean with credible and prediction bands.
#' @srrstats {RE6.3} Beyond the data the mean is dotted and the band paler (test-plot.R).
#' @srrstatsNA {RE7.0a} Noiseless inputs are the rule for a Gaussian process: nothing is to be rejected.
#' @srrstats {RE7.3} Accessors are tested in test-methods.R, test-regression.R and test-curvature.R.
#' @noRd
NULL
