#' Sparse Gaussian process regression by pF-DTC
#'
#' Fits a Gaussian process (GP) with `m` inducing points instead of all `n` rows, at a cost of \eqn{O(n m^2)}. The
#' inducing points minimise the preconditioned Fisher (pF) divergence between the approximation, the deterministic
#' training conditional (DTC) posterior, and the exact posterior.
#'
#' The model is \eqn{y_n = f(x_n) + e_n}, \eqn{e_n \sim N(0, \sigma^2 / w_n)}{e_n ~ N(0, s2 / w_n)}, with a GP prior on
#' \eqn{f} around the centre of `y`. A fit has four stages: hyperparameters are learned by a variational (VFE) *pilot*
#' run at `min(200, n)` fixed random rows, as in the paper; the inducing points start; they are optimised; the posterior
#' is computed on all rows. With `hyper = "joint"` points and hyperparameters go on alternating, up to five rounds; the
#' hyperparameters are then those that maximise the ELBO (evidence lower bound) at the points.
#'
#' @param x a numeric matrix or data frame of inputs, a row an observation; a vector is one column. Or a formula.
#' @param y numeric response.
#' @param m the most inducing points wanted. `NULL`: `min(200, n)`; with `tol`, as many as it takes. Greedy selection
#'   stops when what is left of the kernel matrix is rounding; the fit then has fewer and says so.
#' @param tol the accuracy asked for, between 0 and 1, which then chooses the number of inducing points, see the section
#'   below. `NULL`: not asked for.
#' @param kernel a kernel, see [kernel_se()]. Parameters that it leaves `NULL` are learned; given ones are starts,
#'   except under `hyper = "fixed"`.
#' @param noise noise variance, in squared units of `y`; `NULL` as for the kernel.
#' @param hyper how hyperparameters are found: `"pilot"`, `"joint"`, or `"fixed"`, for which kernel and noise must be
#'   complete.
#' @param aux the auxiliary distribution, which stands in for the exact posterior in the objective, see [aux_sor()].
#'   `NULL`: the default below.
#' @param inducing where the inducing points start: `"greedy"`, `"random"`, `"kmeans"`, `"divergence"` (see
#'   [inducing_points()]), a matrix of points in the units of the inputs, or a fit (its points and hyperparameters are
#'   the start). `NULL`: with the default `aux` the better of `"greedy"` and `"divergence"`, see the defaults below;
#'   otherwise `"greedy"`.
#' @param weights precisions of the rows: noise variance `noise / weights`. Positive ones are between 1e-60 and
#'   1e60; a weight of 0 drops the row.
#' @param offset a number for each row, subtracted from the response and added again in predictions.
#' @param center,scale centre `y` at its (weighted) mean, scale it by its sd? Undone in everything returned. The centre
#'   is the prior mean and taken as known. `FALSE`, `FALSE` is the paper's model (a response beyond 2^32 or below 2^-32
#'   is divided by a power of two all the same, which changes no digit of anything). Numeric inputs need neither: a
#'   kernel's lengthscales are in their units.
#' @param control see [pfdtc_control()].
#' @param keep_data keep the rows in the fit? Without them it holds \eqn{O(m^2 + m d)} numbers, needs `newdata` for
#'   predictions, and can be certified only by a reference that it carries (as a fit with `tol` does).
#' @param formula `response ~ inputs`: numeric, logical (0/1), matrix, factor or character variables (a 0/1 column for
#'   every level), once each. An intercept makes no difference.
#' @param data a data frame with the variables.
#' @param subset,na.action as in [lm()].
#' @param ... further arguments of the other method, by name.
#' @return A fit, a plain list of class `c("pfdtc", "gp_fit")`. Among its elements:
#'   * `kernel`, `noise`: learned or given, in the units of the data;
#'   * `inducing`: a matrix of the inducing points, a row a point, in the units of the inputs; `m`, their number, and
#'     `m_asked`, the number asked for;
#'   * `trace`: a data frame with `evaluation`, `objective` and `seconds`. With `aux_refresh()` or `hyper = "joint"` it
#'     also has `round`: values of different rounds are not comparable;
#'   * `inducing_method`: how the points started, of two starts the better one;
#'   * `convergence` (0 done, 1 `maxit`, 2 time, 51 no way around failed evaluations, 52 interrupt) and `message`, both
#'     about the inducing points; `pilot` has the same about the pilot;
#'   * `evaluations`: of the pilot, of the objective (those in `trace`), and of the start that was not gone on with;
#'   * `elbo`, `jitter`, `seconds`, `version`.
#'
#'   Use the methods: [predict()][predict.gp_fit], [summary()][gp_fit-methods], [coef()][gp_fit-methods],
#'   [logLik()][gp_fit-methods], [plot()][plot.gp_fit], [plot_trace()].
#'
#'   Fits survive [saveRDS()]; [set.seed()] reproduces a fit to the bit on one machine, BLAS and thread count.
#'
#'   Fits with `tol`, and those with an `aux = aux_reference()` that was asked for, carry the `reference` that
#'   [certify()] and its like use: \eqn{O(m_2^2)} numbers, measured at 10 times the size of the fit without it and at 5
#'   to 10 % of its time. Others get one by `fit$reference <- reference(fit)`.
#' @section Accuracy: With `tol` the fit has as few inducing points as it takes for the certificate to say that,
#'   compared with the exact GP of the same hyperparameters, at the training inputs
#'   \deqn{|mean - mean_{exact}| \le tol \cdot sd(y), \qquad 1 - tol \le sd_{exact} / sd \le 1 + tol,}{
#'   |mean - exact mean| <= tol * sd(y)   and   1 - tol <= exact sd / sd <= 1 + tol,}
#'   mean and sd those of the latent function, `sd(y)` that of the response (less the offset, weighted). Controlled is
#'   the maximum over all rows used, or with `pfdtc_control(tol_quantile = q)` that quantile, the smallest number that a
#'   share of at least `q` of the rows does not exceed, for the mean and for the sd each. As a rule the sd decides: its
#'   statistic is several times that of the mean.
#'
#'   A [reference()] is doubled until what it leaves open itself is below `tol / 4`. Candidates are then fits with a
#'   given `m`, optimised until they are certified. The first has as many greedy points as do without being optimised;
#'   from one to the next `m` goes to what they predict to be just enough. The smallest that was certified is the fit.
#'   On five data sets it has 1.02 to 1.13 times the smallest `m` that a scan in steps of 5 % finds, and takes 1.2 to
#'   2.0 times as long as one fit with that `m` (`bench/tolerance.R` and `bench/results/tolerance.txt` in the sources).
#'
#'   `m` is the most points that may be tried; without it only the rows limit their number. The reference may have 16
#'   times as many, and as many as a quarter of `getOption("pfdtc.max_memory", 2^32)` bytes allows. Where it leaves too
#'   much open even so, all pairs of rows are used (effort `"tight"` of [certify()]), if there are at most ten times as
#'   many rows as it has points. With `hyper = "joint"` the hyperparameters are those of a joint fit with `min(200, n)`
#'   points, at most `m`; then they are fixed.
#'
#'   Where `tol` is out of reach the fit is the best that was found, and a warning of class `pfdtc_warning_convergence`
#'   tells what is certified and what would be needed. `fit$tol` is a list: `asked`, `quantile`; `mean` and `sd`, the
#'   statistics that are certified (`NA` if an interrupt came first); `met`, do both meet `tol`?; `effort` and `m2` of
#'   the certificate; `needs`, a sentence where it was not met; `tried`, a data frame of the candidates (`m`,
#'   `iterations`, `mean`, `sd`, `met`, `seconds`); `seconds` in all. `trace` is that of the fit returned; `evaluations`
#'   and `seconds` of the fit count all candidates.
#' @section Defaults: The defaults are chosen by how near mean and sd come to those of the exact GP at rows held out.
#'   Medians over ten repetitions of the errors divided by those of [gp_vfe()] from random rows, as in the paper, with
#'   the same hyperparameters and number of iterations, for the mean / the sd, at `m = 200` (synthetic: 46);
#'   `vignette("paper")` has all of them:
#'
#'   | data | pF-DTC as in the paper | VFE, greedy start | default |
#'   |---|---|---|---|
#'   | airfoil | 2.82 / 2.00 | 0.12 / 0.14 | 0.13 / 0.13 |
#'   | abalone | 1.26 / 1.01 | 0.13 / 0.079 | 0.12 / 0.088 |
#'   | wine quality | 1.52 / 1.02 | 0.80 / 0.97 | 1.01 / 0.89 |
#'   | power plant (CCPP) | 1.06 / 0.91 | 0.49 / 0.92 | 0.64 / 0.88 |
#'   | flight delays | 0.98 / 0.76 | 0.054 / 0.049 | 0.047 / 0.042 |
#'   | synthetic, 1-d | 1.01 / 0.89 | 3e-03 / 1e-03 | 4e-03 / 1e-03 |
#'
#'   * Auxiliary distribution: `aux_white()`, white noise around the exact mean. The mean's error is taken in the norm
#'     of the exact posterior, in which errors at the rows count; an evaluation costs no more than one of VFE's. The
#'     paper's choice is `aux_sor()`.
#'   * Start: of two, the better one. `"greedy"` points, which explain the kernel matrix, are best where `m` points
#'     explain nearly all of it; with fewer they sit at the edges of the data, and those of `"divergence"` are better.
#'     Both are optimised for five iterations (a twentieth of `maxit`, if that is less), which count among `maxit`;
#'     `"divergence"` goes on where its \eqn{d^2} is then less by more than 5. With another `aux` it is `"greedy"`.
#'     The paper's choice is `"random"`.
#'   * Hyperparameters: `"pilot"`, as in the paper. The pilot costs the same whatever `m` is, and several fits can share
#'     one: pass `kernel = fit$kernel`, `noise = fit$noise` and `hyper = "fixed"`.
#'   * End of an optimisation: 200 iterations, or three in a row that bring next to nothing, see [pfdtc_control()].
#'
#'   `print()` names what a fit used.
#' @section Errors: class `pfdtc_error_input` for arguments, naming what was given and what would do;
#'   `pfdtc_error_numerical` where no jitter helps a factorisation. An interrupt during a fit returns the best fit so
#'   far with a warning of class `pfdtc_warning_convergence`, as does a `tol` out of reach.
#' @section Invariants: with the rows themselves as inducing points the posterior is the exact GP's; the ELBO is never
#'   above the exact log evidence; the order of rows changes nothing beyond rounding; weights of 2 give the posterior of
#'   doubled rows; where `fit$tol$met`, the exact mean and sd at the training inputs are as near as `tol` says.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), Scalable Gaussian Process Inference with Finite-data Mean
#'   and Variance Guarantees, AISTATS. \url{https://proceedings.mlr.press/v89/huggins19a.html}
#' @seealso [predict.gp_fit()], [plot.gp_fit()], [pf_objective()]; `vignette("pfdtc")` to get started.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 10)
#' fit
#' predict(fit, data.frame(speed = c(5, 15)), interval = "prediction")
#' pfdtc(dist ~ speed, cars, tol = 0.02)
#' @export
pfdtc <- function(x, ...) UseMethod("pfdtc")

#' @rdname pfdtc
#' @export
pfdtc.default <- function(x, y, m = NULL, tol = NULL, kernel = NULL, noise = NULL,
                          hyper = c("evidence", "pilot", "joint", "fixed"), aux = NULL,
                          neighbours = NULL, inducing = NULL, weights = NULL,
                          offset = NULL, center = TRUE, scale = TRUE, control = pfdtc_control(),
                          keep_data = TRUE, ...) {
  matrix_fit("pfdtc", match.call(), environment(), list(...))
}

#' @rdname pfdtc
#' @export
pfdtc.formula <- function(formula, data, ..., subset, weights, na.action, offset) {
  formula_fit("pfdtc", match.call(), parent.frame(), list(...))
}

# The package's default auxiliary distribution.
default_aux <- function() aux_white()
