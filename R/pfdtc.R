#' Gaussian process regression for few and for many rows
#'
#' Fits a Gaussian process (GP): learns its hyperparameters by the evidence, chooses its kernel, and represents its
#' posterior as the number of rows and what the data say ask for: exactly, by inducing points, or by inducing points and
#' the rows near each prediction. How far that is from the exact posterior is computable, see [certify()].
#'
#' The model is \eqn{y_n = f(x_n) + e_n}, \eqn{e_n \sim N(0, \sigma^2 / w_n)}{e_n ~ N(0, s2 / w_n)}, with a GP prior on
#' \eqn{f} around the centre of `y`. A fit has three stages:
#'
#' 1. Kernel, its parameters and the noise are *learned* by the near-neighbour likelihood (Vecchia, 1988): the sum, over
#'    rows, of the log density of a response given the nearest of the rows that a random order puts before it. Several
#'    starts, Fisher scoring, at a cost that does not grow with the rows but for finding neighbours; of few rows the
#'    exact evidence has the last word.
#' 2. `m` *inducing points* are placed, and moved where that changes predictions: they then minimise the preconditioned
#'    Fisher (pF) divergence between the deterministic training conditional (DTC) posterior and the exact one. Of up to
#'    2,000 rows there is no need of any: the posterior is the exact one, \eqn{O(n^3)}.
#' 3. The *posterior* of all rows is computed, \eqn{O(n m^2)}. Where inducing points leave too much unexplained, the
#'    rows nearest to each prediction are treated exactly beside them (far + near).
#'
#' The section on what is chosen has the rules, and how to choose otherwise.
#'
#' @param x a numeric matrix or data frame of inputs, a row an observation; a vector is one column. Or a formula.
#' @param y numeric response; with another `family`, classes or counts.
#' @param m the most inducing points wanted. `NULL`: up to 2,000 rows none but the rows themselves, otherwise 200, or 50
#'   where near rows do nearly all; with `tol`, as many as it takes. Greedy selection stops when what is left of the
#'   kernel matrix is rounding; the fit then has fewer and says so.
#' @param tol the accuracy asked for, between 0 and 1, which then chooses the number of inducing points or, where
#'   these would be too many, the exact posterior or near rows, see the section below. `NULL`: not asked for.
#' @param kernel a kernel, see [kernel_se()]. Parameters that it leaves `NULL` are learned; given ones are starts,
#'   except under `hyper = "fixed"`. `NULL`: under `hyper = "evidence"` the best of the squared exponential, Matern 1/2,
#'   3/2 and 5/2 and a sum of two; otherwise the squared exponential.
#' @param noise noise variance, in squared units of `y`; `NULL`: learned. 0 interpolates: the noise is held at 1e-10 of the
#'   variance of `y` (or 1e-13 of the kernel's). A one-sided formula of inputs (`~ x1 + x2`; `~ .`: all of them): noise
#'   whose log variance is linear in them, see the section on it.
#' @param hyper how hyperparameters are found: `"evidence"` as above; `"pilot"`, by variational inference (VFE) at
#'   `min(200, n)` fixed random rows, as in the paper; `"joint"`, which starts so and goes on to alternate points and
#'   hyperparameters, up to five rounds; or `"fixed"`, for which kernel and noise must be complete.
#' @param aux the auxiliary distribution, which stands in for the exact posterior in the objective of the inducing
#'   points, see [aux_sor()]. `NULL`: [aux_white()]. One that is given has points moved in any case; with a `family`, of
#'   the Gaussian responses at the mode on the points as they start.
#' @param neighbours how many rows near each prediction to treat exactly; 0: none. `NULL`: the fit decides, 40 or none.
#'   Where the posterior is the exact one, all rows are near and the number is not used.
#' @param mean a linear mean, as a one-sided formula of inputs of the fit (`~ x1 + x2`; `~ .`: all of them); `~ 1`: the
#'   centre of the response alone. See the section on means.
#' @param family [gaussian()], [binomial()] (link `"logit"` or `"probit"`), [poisson()], [nb()] or [student()]: how
#'   responses are distributed given \eqn{f}, see the section on classes and counts.
#' @param approx of classes and counts: Laplace's approximation of the posterior of \eqn{f}, or `"vi"`, the normal
#'   distribution with the largest variational lower bound, see there.
#' @param transform `"log"` or `"yeojohnson"`: the response is transformed before it is modelled, see the section on it;
#'   or that of another fit, `fit$transform`, whose lambda is then kept.
#' @param workers `TRUE`: the rows of `data` go to the workers of the plan in force (of \pkg{future}, or the daemons of
#'   \pkg{mirai}), and the fit is made there, as of a row source: see [rows_parts()], which is for rows that are there
#'   already.
#' @param inducing where the inducing points start: `"greedy"`, `"random"`, `"kmeans"`, `"divergence"` (see
#'   [inducing_points()]), a matrix of points in the units of the inputs, or a fit (its points and hyperparameters are
#'   the start). `NULL`: `"greedy"`; where points are moved under [aux_white()], the better of `"greedy"` and
#'   `"divergence"`.
#' @param weights precisions of the rows: noise variance `noise / weights`. Positive ones are between 1e-60 and
#'   1e60; a weight of 0 drops the row.
#' @param offset a number for each row, subtracted from the response and added again in predictions.
#' @param center,scale centre `y` at its (weighted) mean, scale it by its sd? Undone in everything returned. The centre
#'   is the prior mean and taken as known. `FALSE`, `FALSE` is the paper's model (a response beyond 2^32 or below 2^-32
#'   is divided by a power of two all the same, which changes no digit of anything). Numeric inputs need neither: a
#'   kernel's lengthscales are in their units.
#' @param control see [pfdtc_control()].
#' @param keep_data keep the rows in the fit? Without them it has inducing points and no near rows, holds \eqn{O(m^2 +
#'   m d)} numbers, needs `newdata` for predictions, and can be certified only by a reference that it carries (as a
#'   fit with `tol` does).
#' @param formula `response ~ inputs`: numeric, logical (0/1), matrix, factor or character variables (a 0/1 column for
#'   every level, whose order is not used), once each. An intercept makes no difference. Attributes of columns (units,
#'   labels) are dropped.
#' @param data a data frame with the variables, or a row source ([rows_blocks()]), see the section on row sources.
#' @param subset,na.action as in [lm()].
#' @param ... further arguments of the other method, by name.
#' @return A fit, a plain list of class `c("pfdtc", "gp_fit")`. Among its elements:
#'   * `posterior`: `"exact"`, `"far"` (inducing points alone) or `"far + near"`;
#'   * `kernel`, `noise`: learned or given, in the units of the data;
#'   * `kernels`: where the kernel was chosen, a data frame of the candidates, best first: `kernel`, `score` (mean of
#'     minus the log density of a scaled response given its 40 nearest rows, plus two for each parameter over the rows
#'     learned from: less is better), `se` (standard error of its difference to the best: what is printed beside the
#'     difference), `chosen`; of kernels with a line the score is the chosen one's but for the difference in evidence a
#'     row, and `se` is `NA`. A sum has `fit$kernel$terms`, and its parameters go by the term:
#'     `matern32_1.lengthscale.x`, see [kernel_algebra];
#'   * `learned`: a data frame with a row for each start of the search: `start`, `lengthscale` (in units of
#'     \eqn{\sqrt d}{sqrt(d)} sds of the inputs) and `noise` (of the response's mean square) that it began with,
#'     `evidence`, the log evidence of the scaled response with the priors that it led to, as the rows looked at have
#'     it, and `kept`. Starts are said to agree whose `evidence` is within `attr(learned, "same")` of the best;
#'   * `inducing`: a matrix of the inducing points, a row a point, in the units of the inputs (of an exact posterior,
#'     all rows); `m`, their number, and `m_asked`, the number asked for; `inducing_method`, how they started, of two
#'     starts the better one;
#'   * `unexplained`: what the inducing points leave of the prior variance at the rows, on average, divided by the noise
#'     variance; `Inf` where it is not known (points that were not greedy);
#'   * `neighbours`: the number of near rows; `near`: what predictions by far + near need beside the rows;
#'   * `factors`: the sums and Cholesky factors of the posterior (`NULL` for far + near);
#'   * `small_n`: for an exact posterior of less than 50 rows, mean leave-one-out log densities of a scaled response:
#'     `fit`, `linear` (a linear model in the same columns) and `mean` (the mean alone);
#'   * `evidence`: what `logLik()` gives, see [gp_fit-methods];
#'   * `trace`: a data frame with `evaluation`, `objective` and `seconds`, empty where points were not moved. With
#'     `aux_refresh()` or `hyper = "joint"` it also has `round`: values of different rounds are not comparable;
#'   * `convergence` (0 done, 1 `maxit`, 2 time, 51 no way around failed evaluations, 52 interrupt) and `message`, both
#'     about the inducing points; `maxit`, the most iterations that these had; `pilot` has the same about a pilot;
#'   * `evaluations`: of the likelihood that is learned by (`learn`), of the objective (those in `trace`), and of the
#'     start that was not gone on with; `seconds` of the stages; `jitter`, `version`.
#'
#'   Use the methods: [predict()][predict.gp_fit], [summary()][gp_fit-methods], [coef()][gp_fit-methods],
#'   [logLik()][gp_fit-methods], [plot()][plot.gp_fit], [plot_trace()].
#'
#'   Fits survive [saveRDS()]; [set.seed()] reproduces a fit to the bit on one machine, BLAS and thread count.
#'
#'   Fits with `tol`, and those with an `aux = aux_reference()` that was asked for, carry the `reference` that
#'   [certify()] and its like use: \eqn{O(m_2^2)} numbers, measured at 10 times the size of the fit without it and at 5
#'   to 10 % of its time. Others get one by `fit$reference <- reference(fit)`.
#' @section What is chosen: `print()` names what a fit chose and what the choice rests on.
#'
#'   * Hyperparameters: by the near-neighbour likelihood and weak priors. Otherwise: `hyper`; `kernel` and `noise` as
#'     starts; `control = pfdtc_control(fix = )` holds single ones.
#'   * Kernel: that with the least score at rows held out, plus twice the number of its parameters over that of the
#'     rows, at most 3,000; of two that score alike predictions differ as little. Candidates are Matern 3/2, 1/2 and
#'     5/2, the squared exponential, of more than 2,000 rows only while scores fall on the way from Matern 3/2, and,
#'     where one of the two rougher kernels is the best of these, a sum of two Matern 3/2 kernels, which begin at a long
#'     and a short scale; given up early where it does not gain a nat for each parameter more. Otherwise: `kernel`.
#'   * A line: a level and slopes in all inputs, normal with a variance that is learned (the kernel `mean`), in place of
#'     that kernel, or of up to 2,000 rows beside it, where the log evidence with the priors is larger by two for each
#'     parameter more, less the share of it that priors hold; of more rows neither the near-neighbour likelihood nor
#'     the exact evidence of 1,000 may speak against it; of 50, or 15 an input, none is tried. `coef()` has level and
#'     slopes. Otherwise: `kernel`; `mean` for a line that is not drawn in.
#'   * Posterior: the exact one up to 2,000 rows, where nothing is asked for that speaks of inducing points (`m`, `tol`,
#'     `inducing`, `aux`, `hyper = "pilot"` or `"joint"`) and the data are kept; inducing points as well where the noise
#'     is so small that the rows' matrix has no Cholesky factor.
#'   * Points: 200, greedy; the first 50 of them beside near rows where 200 leave more than five times the noise
#'     variance unexplained, which predicts as well. Otherwise: `m`, `inducing`.
#'   * Near rows: 40, where the points leave 0.005 of the noise variance or more unexplained (`fit$unexplained`;
#'     below, held-out log densities differ by less than 0.001) and, again, nothing is asked for that speaks of
#'     inducing points. Where they leave less than half the noise variance, up to 2,000 rows held out decide: points
#'     alone are kept where the log density of these is larger by more than its standard error, with the kernel chosen
#'     or the smoothest single one that scores within two standard errors of it (`fit$trial`: `gain`, `se`, `rows`).
#'     Otherwise: `neighbours`.
#'   * Moving the points, at most 200 iterations: where they leave as much as that unexplained and there are no near
#'     rows; under `"pilot"`, `"joint"`, a given `aux` or `tol` in any case. Otherwise: `maxit` of [pfdtc_control()], a
#'     number moves them in any case, 0 leaves them where they start.
#'   * Starts: 8 (9 with two inputs, 10 with one), of short, medium and long lengthscales with little and much noise,
#'     all on 4,000 rows given 10 others each, with the Matern 3/2 kernel; the best three go on with 5,000 and 15.
#'     From where the best of them ends the kernels are learned on 8,000 rows given 25 others and scored on 8,000
#'     rows given the 40 nearest of *all* rows, as predictions are; the one that is kept is learned on 16,000
#'     rows given 30. Of at most 2,000 different rows the exact evidence is then
#'     maximised from there. Neighbours are looked for among at most a million rows: what rows this dense tell of one
#'     another, a sample does not show.
#'   * Priors, with \eqn{d} inputs, in units of the inputs' and the response's sd: log lengthscales \eqn{N(\log
#'     3\sqrt{d}, 0.7^2)}{N(log(3 sqrt(d)), 0.7^2)}, log variance \eqn{N(0, 1.5^2)}, log noise variance \eqn{N(\log 0.1,
#'     2^2)}{N(log 0.1, 2^2)}. They decide up to 50 rows or 15 an input, and at thousands nothing of them is left but,
#'     where the exact evidence is not maximised, of that of the variance; `pfdtc_control(priors = FALSE)` is without.
#'   * The noise variance is no less than \eqn{\delta^2/12}{delta^2/12}, with \eqn{\delta}{delta} the smallest
#'     difference between responses (a response rounded to multiples of \eqn{\delta}{delta} has that noise), nor than a
#'     millionth of the response's variance. A `noise` that is given may be less. Steps wider than the response's sd are
#'     not taken for rounding: of 0/1 responses the least is a twelfth of the variance.
#'   * Equal rows of `x` are merged while learning however few they are, since what they say of the noise counts; in the
#'     posterior beside near rows, and where that saves a tenth of the rows, which changes nothing but its time.
#'   * Of less than 50 rows a Gaussian process may predict worse than a straight line. Leave-one-out compares, and
#'     where a linear model or the mean alone is clearly better a warning of class `pfdtc_warning_small` says so.
#'
#'   The paper's method, and what [run_experiment()] means by it, is
#'   `pfdtc(y ~ ., data, m = m, hyper = "pilot", kernel = kernel_se(), aux = aux_sor(), inducing = "random")`.
#'
#'   Several fits can share hyperparameters: pass `kernel = fit$kernel`, `noise = fit$noise`, `hyper = "fixed"`.
#' @section Classes and counts: With another `family` than the Gaussian, responses are as [glm()] takes them: for
#'   [binomial()] a factor with two levels (the second is success, which `print()` names), logical or 0/1, shares of
#'   successes with `weights` the numbers of trials, or `cbind(successes, failures)`; counts for [poisson()] and [nb()].
#'   `weights` multiply the rows' log likelihoods; `offset` is added to \eqn{f} and must be there in `newdata` too (the
#'   log of an exposure, for rates). [student()] is for numbers with outliers.
#'
#'   \eqn{f} is a constant mean plus the Gaussian process. The mean is learned, under `hyper = "fixed"` too, unless
#'   `center` is `FALSE`, for 0, or a number. The posterior is Laplace's
#'   approximation: the normal distribution around the mode, found by Newton's method in whitened coordinates,
#'   \eqn{O(n m^2)} a step, whose steps are cut until the objective falls, so that it gets there from anywhere. Up to
#'   2,000 rows are all inducing points unless `m` says otherwise, as far as they tell anything new; above, 400 greedy
#'   ones, which stay unless `aux` is given: moved points have a third of the error of the mode or less, but twice as
#'   many greedy ones take a tenth of the time and are about as good (`bench/README.md`). With `neighbours` rows near
#'   each prediction are treated exactly, as Gaussian ones at the mode (responses \eqn{f + g / W}, g and W the slope and
#'   curvature of the log likelihood), which is found anew beside them. With all rows near the posterior is that of the
#'   exact process. Not for [student()].
#'
#'   Of 2,001 to 100,000 rows held-out ones decide, where nothing is asked for that speaks of inducing points: the
#'   kernel is learned once more, of the other rows' Gaussian responses at the mode by the near-neighbour likelihood,
#'   which knows of shorter lengthscales than 120 points carry; that with its variances times 3, 9, ... is tried beside
#'   40 near rows, since these responses are drawn towards the mode; and near rows, with 200 points, are taken where
#'   the log density of up to 5,000 rows held out is larger by 0.001 than that of points alone (`fit$trial`: `gain` of
#'   points alone, `se`, `rows`). theta of [nb()] is then learned once more, by these. The mode beside near rows is
#'   left after a step of less than 1 on the link's scale (root mean square): what [certify()] says is of the fit as it
#'   is. Otherwise: `neighbours`, a number or 0, whose mode is at rest.
#'
#'   `approx = "vi"` goes on from there, by steps along the natural gradient that are cut until the bound rises, to the
#'   normal distribution q of the inducing variables with the largest
#'   \eqn{\sum_n E_q \log p(y_n | f_n) - KL(q, p)}{sum E_q log p(y_n | f_n) - KL(q, p)}, some ten to fifty passes
#'   more. That is a lower bound of the *true* log evidence of the exact process at these hyperparameters, whatever the
#'   inducing points: `logLik()` and [evidence_bounds()] have it, less what rounding may add. The hyperparameters are
#'   Laplace's first and then those of the largest bound. It predicts better where Laplace's approximation is poor: few
#'   rows and a large variance of f (of 140 of Sonar's rows by 0.03 of NLPD; `bench/README.md`). What bounds distances
#'   from Laplace's posterior is not for it: [certify()], [reference()], `tol`, and no near rows.
#'
#'   Kernel parameters, the mean and theta of [nb()] maximise the Laplace evidence at 120 greedy points and at most
#'   3,000 rows (60 and 1,000 for starts and kernels), less a penalty for what the points leave unexplained,
#'   \eqn{\sum_n \log(1 + W_n E_{nn})/2}{sum log(1 + W_n E_nn) / 2} with \eqn{W} the curvature of the log likelihood,
#'   and priors that do not fade: of the log lengthscales, in sds of the inputs, the mean
#'   \eqn{N(\log(3 \sqrt d), 0.7^2)}{N(log(3 sqrt(d)), 0.7^2)} and what each has beyond it
#'   \eqn{N(0, 0.7^2)}{N(0, 0.7^2)}, log variance \eqn{N(\log 2, 1.5^2)}{N(log 2, 1.5^2)}, the mean
#'   \eqn{N(b_0, 3^2)}{N(b0, 3^2)} around the link of the overall share or rate, log theta
#'   \eqn{N(0, 2^2)}{N(0, 2^2)}. With one class alone, or classes that a line parts, there is no largest evidence
#'   without; and where they are vaguer, some lengthscales come out short by chance. Without `kernel` the best of the
#'   squared exponential and Matern 3/2 and 5/2 by that evidence is taken, of up to 2,000 rows with or without a
#'   linear term (`mean`: a level and slopes, in units of the inputs' spread, normal with a variance that is learned).
#'   Of up to 1,000 rows both are tried with one factor for all lengthscales too, and of ten inputs or more with one
#'   lengthscale in the inputs' own units, as spectra have them (`isotropic`): by the evidence averaged over the
#'   parameters, so that many have to be worth it. Sums and products of kernels are learned like any.
#'   Of [student()] all of this is in units of the response's spread.
#'
#'   `tol` speaks of the exact process's Laplace posterior at these hyperparameters: at the training inputs its mode is
#'   within `tol` sds of f there, and its sd within `tol` of the fit's. A [reference()] is doubled until it leaves open
#'   a quarter of that; the fit has the fewest of its points, which are greedy and stay, that are certified to meet
#'   `tol`. What is not met is said in the same warning, and `fit$tol` is the same list, as in the section on accuracy.
#'
#'   `coef()` has the mean (and theta) in place of the noise. [predict()][predict.gp_fit], [certify()], [plot()] and
#'   [evidence_bounds()] know these fits; what is for Gaussian noise alone says so. `noise`, `aux`, `hyper = "pilot"`
#'   and `"joint"` are refused beside them, and `scale` is not used. A response that is all failures, all successes or
#'   all 0 is said in a message (class `pfdtc_message_one_value`), and so are searches for hyperparameters that are left
#'   out since the mode cannot be computed where they begin (`pfdtc_message_search`; where none could begin, a warning
#'   of class `pfdtc_warning_convergence`, and the hyperparameters are those that the priors have).
#' @section Row sources: of a source no more than a block and a sample of 100,000 rows (`options(pfdtc.sample = )`)
#'   is held at a time. Two passes are made. The first finds the number of rows, the centre and scale of the response
#'   and the levels of factors, and draws the sample, by which kernel, noise and inducing points are found as from a
#'   data frame (the units of a linear `mean` are the sample's). The second adds up what the posterior is made of, over
#'   *all* rows: the same as of the rows in memory, to rounding. Formulas, factors, weights, offsets, `subset` and
#'   `na.action` are as ever, but that each row stands for itself: `poly(x, 2)`, which depends on all rows, is refused,
#'   and so are `tol` and `family`. `pfdtc_control(optimise_rows = Inf)` moves the points on all rows, by two passes
#'   more for each evaluation.
#'
#'   The fit keeps no rows, but for a sample where the points leave too much unexplained: its rows are then the near
#'   ones, beside points that know of all rows. (Of 42,000 rows of the protein data and a sample of 10,000, the RMSE is
#'   .608 sd of the response so, .757 by points alone, .614 by the sample alone, .519 with all rows near; of 120,000
#'   flight delays and 40,000, .871, .887, .870 and .854.) `neighbours = 0` or `keep_data = FALSE` has points alone. So
#'   few rows that a data frame of them would be fitted exactly are, and are kept. [gp_vfe()], [gp_dtc()] and
#'   [gp_sor()] take sources as well.
#'
#'   What needs the rows takes the source again: [reference()] for certificates, [refine()], [add_rows()], [predict()].
#'   When reading fails after the first pass, the error (class `pfdtc_error_source`) has as `fit` what was learned, with
#'   the posterior of the rows read until then (of the sample, where there are none); an interrupt returns that with a
#'   warning.
#' @section Costs: learning takes some hundred evaluations of a likelihood of at most 16,000 terms, each \eqn{O(30^3)}:
#'   one to fifteen seconds whatever `n` is. Finding neighbours takes \eqn{O(n \log n)}{O(n log n)} in few inputs and up
#'   to \eqn{O(n)} for each of the rows that count in many. An exact posterior takes \eqn{n^3/3} multiplications and
#'   \eqn{8 n^2} bytes (32 MB at 2,000 rows); inducing points \eqn{O(n m^2)}, and as much again for each step where
#'   they are moved; near rows \eqn{O(n k^2 m)} once, with \eqn{k} of them (left out above 100,000 rows), and
#'   \eqn{O(k^3 + k^2 m)} for each prediction. `bench/race.md` in the sources has seconds on real data.
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
#'   Rough kernels and short lengthscales take more points than a search is worth. Up to 2,000 rows the posterior is
#'   then the exact one, certified against its own rounding. Of more rows it is far + near with 200 points and 40, then
#'   80, then 160 near rows, certified by kriging and by passes over all pairs of rows, as many as `max_seconds` of
#'   [pfdtc_control()] allows, at 2,000 random training inputs (`fit$tol$rows`; `print()` says so): no statement about
#'   the maximum over the others. This is done where a quarter of the rows, at least 50 and at most 1,000 greedy points,
#'   would not do: because of what 200 of them leave unexplained, because their sd is further than 1.6 `tol` from that
#'   of far + near, or because the reference says that more are needed or a search among so many has failed.
#'   An `m` that is given speaks of points, as do `inducing`, `aux`, `hyper = "pilot"` or `"joint"` and
#'   `keep_data = FALSE`: then there are only these. `neighbours = 0` is without near rows; a number asks for
#'   far + near (up to 2,000 rows, without `m`, for the exact posterior), with at most `m` points, in place of a search.
#'
#'   Among points alone `m` is the most that may be tried. The reference may have 16 times as many, and as many as a
#'   quarter of `getOption("pfdtc.max_memory", 2^32)` bytes allows (twice as many as are worth it, where there is
#'   another way). Where it leaves too much open and there is no other way, all pairs of rows are used (effort `"tight"`
#'   of [certify()]), if there are at most ten times as many rows as it has points. With `hyper = "joint"` the
#'   hyperparameters are those of a joint fit with `min(200, n)` points, at most `m`; then they are fixed.
#'
#'   Where `tol` is out of reach the fit is the best that was found, and a warning of class `pfdtc_warning_convergence`
#'   tells what is certified and what would be needed. `fit$tol` is a list: `asked`, `quantile`; `mean` and `sd`, the
#'   statistics that are certified (`NA` if an interrupt came first); `met`, do both meet `tol`?; `effort` (`"exact"`
#'   for an exact posterior) and `m2` of the certificate; `rows`, the number of training inputs that it speaks of;
#'   `needs`, a sentence where it was not met; `tried`, a data frame of the candidates (`m`, `iterations`, `mean`, `sd`,
#'   `met`, `seconds`, `posterior`, `neighbours`); `seconds` in all. `trace` is that of the fit returned; `evaluations`
#'   and `seconds` of the fit count all candidates.
#' @section Moved points: what moving them is worth depends on how the exact posterior is stood in for, and on where
#'   they start. Medians over ten repetitions of the errors of the inducing points' mean and sd at held-out rows
#'   against the exact GP's, divided by those of [gp_vfe()] from random rows, as in the paper, with the same
#'   hyperparameters (`"pilot"`, squared exponential) and number of iterations, at `m = 200` (synthetic: 46);
#'   `vignette("paper")` has all of them:
#'
#'   | data | pF-DTC as in the paper | VFE, greedy start | pF-DTC by [aux_white()], better start |
#'   |---|---|---|---|
#'   | airfoil | 2.82 / 2.00 | 0.12 / 0.14 | 0.13 / 0.13 |
#'   | abalone | 1.26 / 1.01 | 0.13 / 0.079 | 0.12 / 0.088 |
#'   | wine quality | 1.52 / 1.02 | 0.80 / 0.97 | 1.01 / 0.89 |
#'   | power plant (CCPP) | 1.06 / 0.91 | 0.49 / 0.92 | 0.64 / 0.88 |
#'   | flight delays | 0.98 / 0.76 | 0.054 / 0.049 | 0.047 / 0.042 |
#'   | synthetic, 1-d | 1.01 / 0.89 | 3e-03 / 1e-03 | 4e-03 / 1e-03 |
#'
#'   * `aux_white()`, white noise around the exact mean: the mean's error is taken in the norm of the exact posterior,
#'     in which errors at the rows count; an evaluation costs no more than one of VFE's. The paper's choice is
#'     `aux_sor()`.
#'   * Start: of two, the better one. `"greedy"` points, which explain the kernel matrix, are best where `m` points
#'     explain nearly all of it; with fewer they sit at the edges of the data, and those of `"divergence"` are better.
#'     Both are optimised for five iterations (a twentieth of `maxit`, if that is less), which count among `maxit`;
#'     `"divergence"` goes on where its \eqn{d^2} is then less by more than 5. With another `aux` it is `"greedy"`.
#'     The paper's choice is `"random"`.
#'   * End of an optimisation: 200 iterations, or three in a row that bring next to nothing, see [pfdtc_control()].
#' @section Errors: class `pfdtc_error_input` for arguments, naming what was given and what would do (`neighbours`
#'   with `keep_data = FALSE` or with `tol` among them); `pfdtc_error_numerical` where no jitter helps a factorisation.
#'   Character arguments may be abbreviated and are case-sensitive.
#'   An interrupt during a fit returns the best fit so far with a warning of class `pfdtc_warning_convergence`, as does
#'   a `tol` out of reach. A warning of that class also says where the search of hyperparameters ended at two
#'   explanations of the data that the log evidence (with the priors) does not tell apart, being within 2, and of which
#'   the one takes for noise what the other takes for structure: noise variances that differ by more than a factor of 2,
#'   and by more than a tenth of the response's mean square (the condition's `noise`, that of the fit first, and
#'   `behind`).
#' @section A linear mean: `mean = ~ x1 + x2` adds a level and slopes with a vague normal prior, integrated out, to the
#'   Gaussian process: a term of the kernel, `mean(x1,x2)`, of fixed variance, \eqn{v (1 + \sum_j u_j(x) u_j(z))}{v (1 +
#'   sum u_j(x) u_j(z))} with u the inputs about their means in units of their spread (0/1 columns as they are), and v
#'   10,000 times the mean square of the centred response. So predictions go on along the line where there are no data,
#'   with the coefficients' uncertainty in their sd, and everything else (near rows, certificates, leave-one-out,
#'   `predict(type = "terms")`) is what it is for any kernel. `coef()` has the coefficients' posterior means. They are
#'   generalised least squares' up to a ten thousandth. The log evidence contains the prior: it compares kernels, not
#'   means. What the mean reads is to be among the inputs of the fit; the kernel may leave it out (`inputs`).
#' @section Noise of more than one size: `noise = ~ x1 + x2` has noise of the variance
#'   \eqn{\sigma^2 \exp(\sum_j \gamma_j u_j(x)) / w_n}{s2 exp(sum gamma_j u_j(x)) / w_n}, u the inputs about their
#'   means in units of their spread (0/1 columns as they are); `fit$noise` is \eqn{\sigma^2}{s2}, what it is in the
#'   middle. The slopes are learned first, by the near-neighbour likelihood of at most 5,000 rows given 15 others, with
#'   the hyperparameters of the kernel that is given, or Matern 3/2, by Fisher scoring in all of them; of each the prior
#'   (per spread) is \eqn{N(0, 1)}, and no noise variance is further than a factor of 1,100 from the middle's. That
#'   takes about as long as learning does again. Everything else is then what it is for rows with the weights that they
#'   have by it: certificates, leave-one-out, near rows, and what learns kernel and \eqn{\sigma^2}{s2}; they speak of
#'   the process with this noise. New responses have the noise that their inputs say. It needs `hyper = "evidence"`, and
#'   is refused for row sources and with a `family`. `coef()` has the slopes per unit of the inputs, `summary()` their
#'   standard deviations. It pays where the noise does differ: `bench/README.md` in the sources has what it came to.
#' @section A transformed response: `transform = "log"` models the log of a positive response, `"yeojohnson"` (Yeo and
#'   Johnson 2000) any response by
#'   \deqn{T(y) = ((1 + u)^\lambda - 1) / \lambda \; (u \ge 0), \quad
#'     -((1 - u)^{2 - \lambda} - 1) / (2 - \lambda) \; (u < 0), \quad u = (y - centre) / unit,}{
#'     T(y) = ((1 + u)^lambda - 1) / lambda (u >= 0),   -((1 - u)^(2 - lambda) - 1) / (2 - lambda) (u < 0),
#'     u = (y - centre) / unit,}
#'   centre and unit the response's median and spread, lambda between 0 and 2, where T maps all numbers onto all
#'   numbers. lambda is learned first, by turns with the hyperparameters of the kernel that is given, or Matern 3/2, by
#'   the near-neighbour likelihood of the response itself on at most 5,000 of 10,000 rows; that takes about as long as
#'   learning does again. f, kernel and noise, `sigma()`, `certify()`, leave-one-out, terms, slopes and figures are then
#'   about T(y), to which offsets are added; `logLik()` is that of y, so that fits with and without compare.
#'
#'   `predict(type = "response")` is the mean of y (by quadrature; with `se.fit` the sd of a new y), `type = "median"`
#'   its median, and their intervals are those of y: of `"prediction"` the quantiles. `fitted()`, `residuals()` and
#'   [cross_validate()] (without CRPS) are on the scale of y. It pays where responses are skewed: `bench/README.md` in
#'   the sources has what it came to. It is refused for row sources and with a `family`, and such fits are not extended
#'   by [add_rows()].
#' @section Invariants: up to 2,000 rows the posterior is the exact GP's; with the rows themselves as inducing points,
#'   or all rows near, it is as well; the ELBO is never above the exact log evidence; the order of rows changes
#'   nothing beyond rounding, given the same order of neighbours; weights of 2 give the posterior of doubled rows;
#'   where `fit$tol$met`, the exact mean and sd at the training inputs that were looked at (`fit$tol$rows`, as a rule
#'   all) are as near as `tol` says.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), Scalable Gaussian Process Inference with Finite-data Mean
#'   and Variance Guarantees, AISTATS. \url{https://proceedings.mlr.press/v89/huggins19a.html} Vecchia (1988),
#'   Estimation and model identification for continuous spatial processes, JRSS B 50; Snelson and Ghahramani (2007),
#'   Local and global sparse Gaussian process approximations, AISTATS; Gyger, Furrer and Sigrist (2025),
#'   Vecchia-inducing-points full-scale approximations for Gaussian processes, for far + near; Yeo and Johnson (2000), A
#'   new family of power transformations to improve normality or symmetry, Biometrika 87.
#' @seealso [predict.gp_fit()], [certify()], [plot.gp_fit()], [pf_objective()]; `vignette("pfdtc")` to get started.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' fit
#' predict(fit, data.frame(speed = c(5, 15)), interval = "prediction")
#' # inducing points, at the same hyperparameters
#' pfdtc(dist ~ speed, cars, m = 10, kernel = fit$kernel, noise = fit$noise, hyper = "fixed")
#' pfdtc(dist ~ speed, cars, tol = 0.02, kernel = kernel_se(), hyper = "pilot")
#' # classes
#' manual <- pfdtc(am ~ wt + hp, mtcars, family = binomial(), kernel = kernel_se())
#' predict(manual, data.frame(wt = 3, hp = 120), type = "response", se.fit = TRUE)
#' @export
pfdtc <- function(x, ...) UseMethod("pfdtc")

#' @rdname pfdtc
#' @export
pfdtc.default <- function(x, y, m = NULL, tol = NULL, kernel = NULL, noise = NULL,
                          hyper = c("evidence", "pilot", "joint", "fixed"), aux = NULL,
                          neighbours = NULL, family = stats::gaussian(), approx = c("laplace", "vi"), mean = ~1,
                          transform = NULL, workers = NULL, inducing = NULL, weights = NULL, offset = NULL,
                          center = TRUE, scale = TRUE, control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit(.Generic, match.call(), environment(), list(...))
}

#' @rdname pfdtc
#' @export
pfdtc.formula <- function(formula, data, ..., subset, weights, na.action, offset) {
  formula_fit(.Generic, match.call(), parent.frame(), list(...))
}
