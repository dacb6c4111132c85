# Defines tuned constants, each with its unit, if it has one, and the script or test that set it (bench/NAME.R).

# ---- copies of rows, and weights ------------------------------------------------------------------------------------

# Rows with equal inputs and responses are copies if Cohen's kappa of responses at equal inputs exceeds `kappa`. If two
# random rows have equal responses with a probability above `chance`, the equal rows must also have at least `responses`
# different responses. If every row occurs k > 1 times, all are copies if random responses at equal inputs would agree
# like this with a probability below `whole` (bench/copies.R).
copy_rule <- c(kappa = 0.5, responses = 6, chance = 0.1, whole = 1e-3)

# A few rows have extreme weights if cutting weights at their median reduces the response's weighted sum of squares to
# less than this share. The unit of the noise then uses the reduced sum (test-learn-rows.R).
few_squares <- 1e-3

# ---- noise = 0, and little noise ------------------------------------------------------------------------------------

# With noise = 0, the noise variance is `response` times the response's variance or, if larger, `kernel` times the
# kernel's. Learned noise has at least `learned` times the response's variance (bench/simulators.R).
least_noise <- c(response = 1e-10, kernel = 1e-13, learned = 1e-6)

# Two more fits are tried if noise has less than the share `noise` of the response's variance, and rounding of the
# response to its last decimal less than `rounded`. One fit has a prior for little noise and must gain `nats` of log
# likelihood. The other has the fixed share `held` of noise. It may lose `behind` nats of log likelihood if it gains
# `left_out` nats of leave-one-out log density per row (bench/simulators.R).
little_noise_rule <- c(nats = 2, noise = 0.1, rounded = 1e-4, held = 1e-3, behind = 1, left_out = 0.5)

# ---- learning hyperparameters ---------------------------------------------------------------------------------------

# The prior of log kernel variances has the sd `sd` for the exact likelihood, because smooth functions may need hundreds
# of times the response's variance. Up to `rows` rows, some starts have such variances (bench/smooth.R).
smooth_rule <- c(sd = 3, rows = 500)

# In each stage of learning, the Vecchia likelihood sums the log densities of `rows` rows, each given its `near`
# neighbours (bench/stages.R, bench/race.md). `population` and `first` are for all stages.
learning_sizes <- list(
  population = 1e6,                      # rows that can be neighbours
  first = 200L,                          # rows that are in every sum
  starts = c(rows = 4000L, near = 10L),  # for every start of a search
  finals = c(rows = 5000L, near = 15L),  # for the best starts
  response = c(rows = 2000L, near = 15L), # for noise trends and transforms (for transforms alone, `finals`)
  kernels = c(rows = 8000L, near = 25L), # for every kernel; with fewer rows chance decides
  few = c(rows = 2000L, near = 20L),     # for every kernel, if the exact likelihood is the last stage
  whole = c(rows = 16000L, near = 30L),  # for the chosen kernel
  exact = c(rows = 2000L, near = 100L),  # to compare exact and Vecchia likelihood (bench/cliff.R)
  score = c(rows = 8000L, near = 40L))   # to judge a kernel; all rows can be neighbours

# Up to this number of rows the exact log marginal likelihood is maximised last, in some seconds (bench/stages.R).
exact_learning_rows <- 2000L

# With over 1.5 first_exact_rows rows, the exact likelihood is first maximised for this number of rows, then for all.
first_exact_rows <- 1000L

# A search by the exact likelihood ends when the predicted gain of a step is below `few` nats (`many` with over `rows`
# rows), or below 1 / `hopeless` of what the model lacks to win (bench/cliff.R). Up to `last` rows, the chosen model is
# learned by the exact likelihood alone, until this gain is below `sure` nats. A search for an additive kernel, by the
# Vecchia likelihood, then ends when it is below `additive` nats (bench/few-seeds.R).
exact_enough <- c(few = 0.05, many = 0.25, rows = 1000, last = 200, sure = 1e-7, additive = 1, hopeless = 20)

# A second candidate has hyperparameters learned by the exact likelihood of some rows, if all rows are too many for it
# (exact_learning_rows) and the noise is at most this share of the response's variance. The log density of rows given
# neighbours decides between this candidate and that of the Vecchia likelihood (bench/cliff.R).
exact_noise <- 0.1

# With groups, hyperparameters are learned from at most `levels` levels of each group. If the exact likelihood is the
# last stage, `few` replaces `levels`. Each level gives up to `rows` rows; further rows are random (bench/groups.R).
effect_learning <- c(levels = 500, few = 1000, rows = 3)

# With neighbours, the effects of groups and the inducing points have one dense covariance matrix with at most `dense`
# rows. Its factorisations then take half a minute. With groups, the noise variance is learned again by the variational
# bound. The bound counts residual prior variances as noise, so their mean must be below the share `left` of the noise
# variance (bench/groups.R).
effect_limits <- c(dense = 4000, left = 0.05)

# When kernels are compared by nats per row, the penalty for a parameter is 2 / min(n, parameter_rows) for n rows. With
# a lower penalty, sums of two kernels would win although they predict worse (bench/choice.R, bench/race.md).
parameter_rows <- 3000L

# When models are compared by log likelihood, a parameter has a penalty of this many nats. Parameters of a transform, a
# noise trend or heavy tails have at least this penalty (response_rule). If rows are few, priors are strong, and the
# penalty for a linear mean is smaller, down to 0 (bench/choice.R, bench/small-n.R).
parameter_nats <- 2

# A linear mean is tried from `least` rows on; fewer were not measured (bench/small-n.R). If rows are too many for the
# exact likelihood, that of `rows` rows decides (bench/choice.R). Up to `as_kernel` rows, a model with only a linear
# mean has the penalty of the kernel it competes with. With more rows, priors are weak and lengthscales could fit noise,
# so it pays for its own parameters only (bench/small-n.R). If a linear mean gains `again` nats of log marginal
# likelihood, the kernel is chosen again (bench/few-seeds.R). Differences in Vecchia log likelihood may be wrong by
# `mistaken` nats (bench/choice.R).
line_rule <- c(least = 30, rows = 1000, as_kernel = 200, again = 10, mistaken = 3)

# A second search with a linear mean starts with one short lengthscale, short_lengthscales times the input's spread.
# This input must have at least `values` different numbers, on average in two rows each. With d inputs, other
# lengthscales start at `others` sqrt(d) spreads, and variances at the shares `variance` and `noise` of the response's.
# The log posterior may start `below` nats under the first search's, and must end `nats` over it (bench/individuals.R).
short_lengthscales <- c(0.02, 0.1)
short_rule <- c(values = 10, others = 3, variance = 0.1, noise = 0.02, below = 30, nats = 15)

# The additive kernel must have additive_nats more of log marginal likelihood than the best kernel so far, and pair_nats
# more than that if it has terms for pairs.
# With more than `all` rows it is first learned from `some` rows, and dropped if it gains fewer than `nats` nats there.
# If rows are too many for the exact likelihood, it is learned from `beyond` rows, and must also improve predictions of
# `held` other rows. When transforms are compared, its gain is measured on `merit` rows (bench/structure.R). With
# non-Gaussian families it is tried from `classes` rows on (bench/two-classes.R).
additive_nats <- 15
additive_rows <- c(all = 300, some = 250, nats = 4, beyond = 800, held = 2000, merit = 150, classes = 300)
pair_nats <- 8

# An additive kernel is tried with at most `single` inputs, and with terms for pairs of at most `pairs` inputs. Noise
# trends are tried with at most `noise` hyperparameters. Time grows with the square of these numbers. With more than
# `sampled` parameters, the Fisher information is computed from a quarter of the rows (bench/factors.R).
searched_inputs <- c(single = 60, pairs = 15, noise = 60, sampled = 100)

# An R factor of at most `factor` levels has one lengthscale per level, if all R factors together have at most `all`
# levels. Otherwise its levels share a lengthscale (bench/factors.R).
most_lengthscales <- c(factor = 20, all = 40)

# If an R factor has at least this many levels, a message suggests the group (1 | g) instead.
many_levels <- 50L

# A seasonal kernel has terms for a trend, for seasons and for the rest. It must gain `nats` nats of log marginal
# likelihood, and `more` for each further period, on at most `rows` rows. Priors of log parameters have sds season_sd:
# `cycle` for lengthscales of seasons, `length` for others. Prior medians of variances are season_variances, as shares
# of the response's (`mean`: of the linear mean). season_noise has prior median and sd of the noise (bench/forecasts.R).
season_rule <- c(nats = 10, more = 4, rows = 500)
season_variances <- c(trend = 0.5, cycle = 0.3, rest = 0.1, mean = 2)
season_sd <- c(variance = 1.5, cycle = 0.7, length = 1)
season_noise <- c(middle = 0.05, sd = 1.5)

# ---- the response ---------------------------------------------------------------------------------------------------

# Transform and noise trend are chosen from all rows if there are at most this many, else from the rows of the Vecchia
# likelihood and their neighbours (bench/stages.R, bench/satellite.R).
transform_rows <- 10000L

# These rules are for transforms and noise trends (bench/response.R, bench/structure.R, bench/satellite.R).
response_rule <- c(
  rows = 15,        # transforms and noise trends are tried from this number of rows on
  held_out = 2000,  # with more rows, a model is also refused if it lowers the log density of so many held-out rows
  predicted = 500,  # number of held-out rows at which squared errors are computed
  error = 1.2,      # a model is refused if the sum of these squared errors is larger by this factor
  terms = 600,      # up to this number of rows an additive kernel is tried with each transform
  grouped = 1000,   # with groups and up to this number of rows, held-out predictions are leave-one-out
  nats = 0.0025)    # penalty for a parameter: this for each row of the Vecchia likelihood, but at least 2 nats

# If the noise variance with Matern 3/2 is below the share `look` of the response's variance, Matern 5/2 and SE are
# tried as well before a transform is chosen. A response is deterministic if its noise variance is below `noise` times
# its variance, and the mean squared error of held-out rows below `left` times. Then a transform must reduce this error
# to at most `error` times its value (`kink` for Yeo-Johnson). Or, without a larger error, it must gain `gain` nats of
# held-out log density per row plus `sure` standard errors (bench/cliff.R).
little_response <- c(look = 0.02, noise = 1e-3, left = 0.05, error = 0.6, kink = 0.4, gain = 0.5, sure = 3)

# A transform has the penalty of this many parameters when models are compared (bench/response.R).
transform_parameters <- 2L

# If the fit chose a transform T, the mean of y replaces values of y beyond a cut by the cut. If T^-1 is convex, T(cut)
# is the larger of T(largest training response) and mean - sure_sds sds of T(y). If it is concave, it is the smaller of
# T(smallest training response) and mean + sure_sds sds (bench/point-predictions.R). If the sd exceeds the range of
# training T(y), sure_sds is multiplied by the square of their ratio.
sure_sds <- 1

# If the fit chose a transform and heavy tails, the variance of a new response is multiplied by the mean over held-out
# rows of squared error / predicted variance. One row may dominate the mean, so it has a limit (bench/second-moments.R).
most_wider <- 100

# A response with fewer than `values` different values, each in over two rows on average, gets constant noise and a
# message. A value in more than `times` rows and the share `share` of all also causes a message (bench/response.R).
response_values <- c(share = 0.2, times = 5, values = 10)

# If more than the share `share` of the responses are equal, a linear kernel is also tried. It is used if its log
# density of held-out rows (in `folds` folds) is higher by `errors` standard errors (bench/common-value.R).
common_value <- c(share = 0.8, folds = 3, errors = 2)

# A log noise variance has at most this variance: 95 % are within a factor of 50 of the median (bench/response.R).
most_spread <- 4

# In predictions from n <= `rows` rows with p learned hyperparameters, the log noise variance has at least the variance
# few / (n - p). The log of a sample variance with n - p degrees of freedom has half of this variance (bench/few.R).
uncertain_noise <- c(rows = 200, few = 4)

# A noise trend has at most `points` features. The prior variances of their coefficients are updated in `rounds` rounds.
# The rounds end if these decrease and the log density is `behind` nats below that of constant noise (bench/response.R).
noise_trend_sizes <- c(points = 20L, rounds = 4L, behind = 10L)

# ---- learning with a non-Gaussian likelihood ------------------------------------------------------------------------

# These constants are set by bench/laplace-table.R, bench/laplace-near.R and bench/classes-table.R.
laplace_sizes <- list(
  points = 120L, rows = 3000L,         # inducing points and rows in the last search
  few_points = 60L, few_rows = 1000L,  # inducing points and rows when starts or kernels are compared
  rounds = 3L, gain = 1e-3,            # searches, each with new inducing points; nats that two steps of one must gain
  most = 400L,                         # default number of inducing points with many rows
  pivot = 0.1,                         # least pivot of the Hessian at a mode: Student's t could make it singular
  inputs = 10L,                        # from this number of inputs on, one lengthscale for all inputs is tried
  contrasts = 240L,                    # for several classes, largest number of inducing points times latent functions
  levels = 150L,                       # with groups, rows are from at most this many levels
  decrement = 1e-6,                    # for several classes, Newton decrement at which the search for the mode ends
  alike = 0.05,                        # one lengthscale is not tried if log spreads of inputs differ by at most this
  apart = 0.05)                        # nats that free lengthscales must gain over those tied to input spreads

# For classes, rotated inputs are tried if there are at least `rows` rows per input. The kernel must then gain `pair`
# nats for each pair of inputs, and at least `least` (bench/classes-line.R).
rotation_rule <- c(rows = 10, least = 1, pair = 0.1)

# For classes and at most `warp_rows` rows, kernels are also tried with inputs moved by these shares of the way to
# normal scores, interpolated between score_knots quantiles (bench/warped-inputs.R, bench/several-classes.R).
warp_rows <- 600L
warp_shares <- c(0.5, 1)
score_knots <- 17L

# A warped input is piecewise linear between this number of knots (WARP_KNOTS in C). With fewer, bends show in figures.
warp_knots <- 65L

# Up to `rows` rows, the default kernel is also tried with logs of positive inputs that have a `skewness` above this and
# at least `values` different values. Logs must gain more than `nats` of log marginal likelihood (bench/log-inputs.R).
log_inputs <- c(rows = 2000, skewness = 1.5, values = 10, nats = 2)

# For several classes, inducing points (at least `least`) times latent functions are at most `most`: a Cholesky factor
# then takes a second. Hyperparameters are learned from at most `learn` classes. A message is sent if the posterior may
# take over `seconds` seconds. If W = -(log p)'' between the modes of fit and exact GP exceeds `narrow` times W at the
# fit's mode, certificates scale the fit's covariances, instead of computing others (bench/classes-table.R). With over
# two latent functions, class probabilities average over `draws` points of f. With fewer, wide_moments() is used if the
# sd of log odds exceeds `wide` (bench/classes-average.R).
class_points <- c(most = 4000, least = 20, learn = 12, seconds = 60, narrow = 0.5, draws = 1024, wide = 4)

# Corrected for skewness, the mean of f is at most this number of posterior sds from its mode. If a class has one row
# and the prior variance is very large, the mean is about two sds of Laplace's posterior from the mode.
most_shift <- 2

# For a non-Gaussian likelihood, the kernel variance has a prior with centre `variance`. The priors of the constant mean
# and of log shape parameters have the sds `center` and `theta` (bench/laplace-table.R).
laplace_priors <- list(variance = 2, center = 3, theta = 2)

# Posterior sds of log hyperparameters are limited to this number: 95 % intervals reach a factor of 2,500 either way.
most_sd <- 4

# ---- the plan of a fit ---------------------------------------------------------------------------------------------

# Up to this number of rows the default posterior of Gaussian fits is exact. Its Cholesky factor takes 2 s of one thread
# (n^3 / 3 operations at 2e10 a second), and 200 MB while it is used (bench/cliff.R).
exact_rows <- 5000L

# A session keeps the last Cholesky factor of an exact posterior, and others up to this many bytes (bench/cliff.R).
most_kept <- 2^28

# Up to this number of rows, non-Gaussian fits have all rows as inducing points, or fewer that reproduce the prior
# covariance up to rounding (for several classes, see class_points). A row source is then fitted exactly, and summary()
# computes leave-one-out (bench/stages.R).
dense_rows <- 2000L

# Gaussian fits have this number of inducing points by default. A trial may choose more_points (bench/methods.R).
default_points <- 200L

# With neighbours and short lengthscales, this number of inducing points predicts as well as 200 or 400 (bench/near.R).
few_points <- 50L

# Predictions use this number of nearest neighbours by default (bench/near.R).
default_neighbours <- 40L

# With groups, predictions use this number of neighbours, as rows of a level are often close together. The error of the
# mean is then .03 to .05 posterior sds; with 40 neighbours it is .06 to .07 (bench/groups.R).
neighbours_with_groups <- 60L

# With neighbours, a posterior takes about `seconds` seconds for each training row. With over `rows` rows, or if
# `max_seconds` leaves less time, only new rows have neighbours (bench/budget.R).
near_training <- c(rows = 1e5, seconds = 1e-4)

# Far from the data, as under clouds of a satellite image, predictions use this number of neighbours, because the
# nearest are all on one side. In holes of Matern fields this halves the error of the mean with 40 neighbours
# (bench/gaps.R). For 4,000 cells under clouds, 40, 100 and 200 have RMSE 1.70, 1.61 and 1.58 (bench/satellite.R).
far_neighbours <- 200L

# rho is the mean residual prior variance over the noise variance. If rho is below `enough`, neighbours or optimised
# inducing points would change held-out log densities by less than 0.001 nats, and are not used. If rho is from `enough`
# to `trial`, held-out rows decide between neighbours and inducing points alone (bench/trial.R). If rho is above `short`
# and the residual prior variance above `left` times the prior variance, neighbours explain nearly all of f, and
# few_points inducing points suffice (bench/near.R). Below `left`, 200 points gain .10 (Hartmann) and .35 nats
# (borehole) of held-out log density over 50 points, for 6,000 rows without noise (bench/cliff.R).
unexplained_rule <- c(enough = 0.005, trial = 0.5, short = 5, left = 0.5)

# Inducing points alone are compared with neighbours on up to `held` held-out rows, at most a fifth of all. The compared
# posteriors use up to `posterior` rows, with neighbours among up to `among` rows (bench/trial.R).
trial_rows <- c(posterior = 20000L, held = 2000L, among = 100000L)

# With over exact_rows and up to `rows` rows, the exact posterior is used if its gain over neighbours exceeds `gain`
# nats per held-out row, and its standard error. Its Cholesky factor takes 9 s of one thread and 512 MB. The gain is
# measured on `held` rows, with posteriors of `posterior` other rows and neighbours among `among` (bench/cliff.R).
exact_trial <- c(rows = 8000, posterior = 3000, held = 500, among = 3000, gain = 0.02)

# All rows may be too many for the exact posterior, although that of a sample predicts better than neighbours. Then fits
# of up to `rows` rows use `points` inducing points and `neighbours` neighbours. Fits of more rows use `many` inducing
# points if few_points (50) of them lose more than few_trial["gain"] nats per held-out row (bench/cliff.R).
more_points <- c(rows = 16000, points = 800, neighbours = 100, many = 400)

# With neighbours and over more_points["rows"] rows, few_points (50) inducing points predict twice as fast as
# more_points["many"] (400), which must gain `gain` nats per row on `held` rows. Posteriors of `posterior` rows, with
# neighbours among `among` rows, measure this gain (bench/satellite.R).
few_trial <- c(posterior = 20000, held = 2000, among = 20000, gain = 0.02)

# A message suggests neighbours if computing sds takes more operations than `sds`: 100 s of a thread (bench/exact-sd.R).
# A computation with an exact posterior shows a line of progress beyond `silent` operations: 2 s of a thread.
slow_operations <- c(sds = 2e12, silent = 4e10)

# Inducing points are optimised in up to `asked` iterations if the user asked for it, else `default` (bench/methods.R).
most_moves <- c(asked = 200L, default = 50L)

# The greedy choice of m inducing points from n rows computes an m x n factor. n is reduced so that the factor has at
# most this many bytes (half of this in a Gaussian fit, a quarter in others). 400 points chosen from 10,000 of 50,000
# rows predict as well as 400 chosen from all (bench/laplace-near.R).
greedy_memory <- 2^27

# From `least` rows on, the first `steps` Newton steps to the mode of f use every `by`-th row (bench/families_speed.R).
mode_rows <- c(least = 16000, by = 8, steps = 5)

# The share of variance that each input explains (summary()) is computed from at most `rows` rows and `values` values of
# the kernel. A prediction from neighbours counts as `near` values (bench/structure.R).
share_sample <- c(rows = 2000, values = 2e7, near = 10000)

# These constants are for a trial of neighbours with a non-Gaussian likelihood (bench/laplace-near.R).
near_trial <- list(
  rows = 8000L, held = 5000L,  # rows that inform the inducing points; held-out rows
  points = 200L,               # inducing points beside neighbours
  settled = 1, steps = 3L,     # Newton steps end if one has a root mean square below this (units of f); most steps
  largest = 4,                 # latent values are cut at this size (units of f) to compute working responses
  raised = 5L, by = 3,         # kernel variances are multiplied by `by` up to `raised` times
  gain = 0.001, theta = 10,    # least gain of neighbours (nats per row); a learned theta changes by at most this factor
  residuals = 0.0007)          # the trial ends early if residuals predict a smaller gain (nats per row)

# With d inputs, next_points() evaluates its criterion (such as expected improvement) at `rows` d rows, at most `most`,
# and at `cloud` d rows near the best data. With up to `corners` inputs, it adds their extremes. L-BFGS starts from the
# best `starts` rows (bench/next-points.R). Without noise, a row counts as measured if each input is within the share
# `next_to` of its range from a measured row.
design_search <- c(rows = 250, most = 2000, cloud = 50, starts = 4, next_to = 1e-4, corners = 6)
