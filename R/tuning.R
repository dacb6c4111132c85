# Defines tuned constants, each with its unit and the script that set it: bench/NAME.R with results in bench/results/.

# ---- copies of rows -------------------------------------------------------------------------------------------------

# Rows with equal inputs are copies if the agreement of their responses beyond chance exceeds this kappa. If two rows
# agree by chance with a probability above `chance`, at least `responses` different responses must repeat
# (bench/copies.R). If each row occurs k times, they are copies if all agree by chance with a probability below `whole`.
copy_rule <- c(kappa = 0.5, responses = 6, chance = 0.1, whole = 1e-3)

# ---- weights --------------------------------------------------------------------------------------------------------

# If cutting weights at their median leaves less than this share of the weighted squares of the response, a few rows
# have extreme weights. The unit of the noise then uses the cut weights (test-learn-rows.R).
few_squares <- 1e-3

# ---- noise = 0 ------------------------------------------------------------------------------------------------------

# With noise = 0, fits have the larger of these noise variances, as shares of the variances of response and kernel
# (bench/simulators.R).
least_noise <- c(response = 1e-10, kernel = 1e-13)

# ---- little noise ---------------------------------------------------------------------------------------------------

# If the first search finds at most `noise` (share of the response's variance), a second search with a prior for little
# noise must gain `nats` of log likelihood. It needs responses whose rounding has at most the share `rounded` of their
# variance. A fit with noise fixed at the share `held` wins with up to `behind` nats less, if the leave-one-out log
# density is larger by `left_out` nats per row (bench/simulators.R).
little_noise_rule <- c(nats = 2, noise = 0.1, rounded = 1e-4, held = 1e-3, behind = 1, left_out = 0.5)

# ---- smooth functions -----------------------------------------------------------------------------------------------

# If the exact likelihood is maximised, the prior of log variances has this sd, because smooth functions may have
# variances of hundreds. Up to smooth_limit_rows, searches also start from such values (bench/smooth.R).
wide_variance_sd <- 3
smooth_limit_rows <- 500L

# ---- learning hyperparameters ---------------------------------------------------------------------------------------

# The likelihood of hyperparameters sums the densities of `rows` rows, each given its `near` neighbours (bench/stages.R,
# bench/race.md), in these stages of learning.
learning_sizes <- list(
  population = 1e6,                      # rows among which neighbours are searched
  first = 200L,                          # rows that are in every sum
  starts = c(rows = 4000L, near = 10L),  # for every start of a search
  finals = c(rows = 5000L, near = 15L),  # for the best starts
  response = c(rows = 2000L, near = 15L), # for every transform and noise trend
  kernels = c(rows = 8000L, near = 25L), # for every kernel; with fewer rows chance decides
  few = c(rows = 2000L, near = 20L),     # for every kernel, if the exact likelihood is the last stage
  whole = c(rows = 16000L, near = 30L),  # for the chosen kernel
  exact = c(rows = 2000L, near = 100L),  # to judge the exact likelihood of some rows (bench/cliff.R)
  score = c(rows = 8000L, near = 40L))   # to judge a kernel; neighbours are among all rows

# Up to this number of rows the exact log marginal likelihood is maximised last, in a second or two (bench/stages.R).
exact_learning_rows <- 2000L

# It is first maximised for first_exact_rows of the rows, in an eighth of the time, then for all. A search ends when a
# step predicts a gain below `few` nats (`many` above `rows` rows) (bench/cliff.R). Up to `last` rows the chosen model
# is improved until that is below `sure` (bench/few-seeds.R).
first_exact_rows <- 1000L
exact_enough <- c(few = 0.05, many = 0.25, rows = 1000, last = 200, sure = 1e-7)

# With more rows, the exact log marginal likelihood of some rows also proposes hyperparameters, if the noise is at most
# this share of the response's variance. The log density of rows given neighbours decides between proposals
# (bench/cliff.R).
exact_noise <- 0.1

# With groups, hyperparameters are learned from at most `levels` levels of a group (`few`, if the exact likelihood is
# the last stage), with `rows` rows of each level before others are drawn at random (bench/groups.R).
effect_learning <- c(levels = 500, few = 1000, rows = 3)

# With neighbours, the effects of groups and the inducing points are in one dense matrix of at most this size, whose
# factorisation takes half a minute (bench/groups.R).
dense_effects <- 4000L

# With groups, the noise is learned again from all rows if the mean residual prior variance is at most this share of it
# (bench/groups.R).
most_left <- 0.05

# A kernel is charged two nats for each parameter, divided by the number of rows, but at most by this number. A lower
# price would choose sums of two kernels for few rows, which predict worse (bench/choice.R, bench/race.md).
parameter_rows <- 3000L

# A parameter of a linear mean is charged this many nats of log marginal likelihood, unless the hyperparameters have
# priors (bench/choice.R, bench/small-n.R).
parameter_nats <- 2

# If a linear mean gains this many nats of log marginal likelihood, the kernel is chosen anew beside the mean
# (bench/few-seeds.R).
line_again <- 10

# A search with a linear mean also starts with one short lengthscale, in spreads of the input, if this input has at
# least `values` different numbers and two rows for each of them. The `others` are long, in spreads times sqrt(d), and
# kernel `variance` and `noise` are small. It goes on from there if the log density is at most `below` nats less than at
# the end of the other search, and must end `nats` above it (bench/individuals.R).
short_lengthscales <- c(0.02, 0.1)
short_rule <- c(values = 10, others = 3, variance = 0.1, noise = 0.02, below = 30, nats = 15)

# From this number of rows on a linear mean is tried. Fewer were not measured (bench/small-n.R).
least_line_rows <- 30L

# Up to this number of rows a linear mean alone counts as many parameters as a kernel. With more rows priors are weak,
# and many lengthscales would fit noise (bench/small-n.R, test-learn-choose.R).
line_as_kernel <- 200L

# The additive kernel must gain additive_nats of log marginal likelihood, and its pairs of inputs pair_nats more. With
# more than `all` rows it is first learned from `some` of them, and dropped if it gains less than `nats`. With more than
# exact_learning_rows it is learned from `beyond` rows, and must also predict `held` other rows better. When transforms
# are compared, its gain is from `merit` rows (bench/structure.R). Non-Gaussian families try it from `classes` rows on
# (bench/two-classes.R).
additive_nats <- 15
additive_rows <- c(all = 300, some = 250, nats = 4, beyond = 800, held = 2000, merit = 150, classes = 300)
pair_nats <- 8

# Up to this number of inputs the additive kernel (`single`) and its pairs (`pairs`) are tried, and up to `noise`
# lengthscales smooth noise. Time grows with the number of terms and the square of the parameters (bench/factors.R).
searched_inputs <- c(single = 60, pairs = 15, noise = 60)

# From this number of parameters on, the Fisher information is computed from a quarter of the rows. Otherwise it would
# take most of the time (bench/factors.R).
sampled_parameters <- 100L

# An R factor may have a lengthscale for each level up to `factor` levels, and all R factors together up to `all`.
# Otherwise its levels share one (bench/factors.R).
most_lengthscales <- c(factor = 20, all = 40)

# If an R factor has at least this many levels, a message suggests the group (1 | g) instead.
many_levels <- 50L

# A trend with a season must gain `nats` of log marginal likelihood on at most `rows` rows, and `more` for each further
# period. Priors of variances have these centres (in units of the response's variance), priors of logs these sds
# (bench/forecasts.R).
season_rule <- c(nats = 10, more = 4, rows = 500)
season_variances <- c(trend = 0.5, cycle = 0.3, rest = 0.1, mean = 2)
season_sd <- c(variance = 1.5, cycle = 0.7, length = 1)
season_noise <- c(middle = 0.05, sd = 1.5)

# The Vecchia likelihood may differ from the exact log marginal likelihood by this many nats (bench/choice.R).
mistaken_nats <- 3

# With more than exact_learning_rows, kernels with and without a linear mean are compared by the exact log marginal
# likelihood of this many rows (bench/choice.R).
line_rows <- 1000L

# ---- the response ---------------------------------------------------------------------------------------------------

# The response (its transform and noise) is chosen from all rows up to this number, else from the rows of the Vecchia
# likelihood and their neighbours (bench/stages.R, bench/satellite.R).
transform_rows <- 10000L

# A transform or noise trend ("candidate") is tried from `rows` rows on. With more than `held_out` rows, it may be
# refused by the log density of as many held-out rows; and always if its squared errors at `predicted` rows, without the
# worst, are larger by this factor `error` (bench/response.R). Up to `terms` rows the additive kernel is tried with each
# transform (bench/structure.R). Up to `grouped` rows with groups, leave-one-out decides. A parameter is charged 2 nats,
# or `nats` for each row of the Vecchia likelihood if that is more: a small gain is not worth an error far from the data
# (bench/satellite.R).
response_rule <- c(rows = 15, held_out = 2000, predicted = 500, error = 1.2, terms = 600, grouped = 1000,
                   nats = 0.0025)

# If the noise variance with Matern 3/2 is below the share `look` of the response's variance, Matern 5/2 and SE are
# tried as well before a transform is chosen. A response is deterministic if the noise is below `noise` and held-out
# squared errors are below the share `left`. Then a transform must lower held-out squared errors by the factor `error`
# (`kink` for Yeo-Johnson); or increase the held-out log density per row by `gain` nats plus `sure` standard errors,
# without larger squared errors (bench/cliff.R).
little_response <- c(look = 0.02, noise = 1e-3, left = 0.05, error = 0.6, kink = 0.4, gain = 0.5, sure = 3)

# A transform is charged as this many parameters of 2 nats, and so is smooth noise (bench/response.R).
transform_parameters <- 2L

# If the fit chose the transform, the response is cut before its mean is taken: at the outermost training response, or
# this number of sds from the mean if that is further out (bench/point-predictions.R).
sure_sds <- 1

# If the fit chose a transform and heavy tails, the variance of a new response is multiplied by the mean of squared
# error / variance of held-out rows, but at most by this factor, because one extreme row can dominate that mean
# (bench/second-moments.R).
most_wider <- 100

# A response with fewer than `values` distinct values, or one value in more than the share `share` (and in more than
# `times`) of the rows, gets no transform (bench/response.R).
response_values <- c(share = 0.2, times = 5, values = 10)

# The log noise has at most this variance: 95 % of the noise is within a factor of 50 (bench/response.R).
most_spread <- 4

# With n rows, at most `rows`, and p learned hyperparameters, the log noise has at least the variance few / (n - p) in
# predictions: twice that of a sample variance with n - p degrees of freedom (bench/few.R).
uncertain_noise <- c(rows = 200, few = 4)

# Smooth noise has this number of `points` (features). Its prior variances are updated in `rounds` rounds. The search
# ends if they decrease while the value is `behind` nats below constant noise; no data set recovered from there
# (bench/response.R).
noise_trend_sizes <- c(points = 20L, rounds = 4L, behind = 10L)

# ---- learning with a non-Gaussian likelihood ------------------------------------------------------------------------

# Learning with a non-Gaussian likelihood uses `points` inducing points and `rows` rows in its last search; few_points
# and few_rows when starts or kernels are compared. A search has `rounds`, each with new points, and ends if two steps
# gain less than `gain` nats. Posteriors of many rows have at most `most` points. With Student's t, pivots of the
# Hessian H must be at least `pivot`, because log det H has no bound near a saddle. From `inputs` inputs on, one
# lengthscale for all is tried, unless the log spreads of the inputs differ by less than `alike`. Lengthscales of each
# input must gain `apart` nats over tied ones (bench/laplace-table.R, bench/laplace-near.R). Several classes have
# `contrasts` points times latent functions, and Newton steps end at `decrement` (bench/classes-table.R). Up to `levels`
# levels of groups have points of their own.
laplace_sizes <- list(points = 120L, rows = 3000L, few_points = 60L, few_rows = 1000L, rounds = 3L, gain = 1e-3,
                      most = 400L, pivot = 0.1, inputs = 10L, contrasts = 240L, levels = 150L, decrement = 1e-6,
                      alike = 0.05, apart = 0.05)

# From this number of rows an input on, rotated inputs are tried. The kernel must gain rotation_nats["pair"] nats for
# each pair of inputs, and at least rotation_nats["least"] (bench/classes-line.R).
rotation_rows <- 10
rotation_nats <- c(least = 1, pair = 0.1)

# Up to `warp_rows` rows, classes have kernels of inputs that are moved by these shares to their normal scores, with
# score_knots knots for each input (bench/warped-inputs.R, bench/several-classes.R).
warp_rows <- 600L
warp_shares <- c(0.5, 1)
score_knots <- 17L

# The number of knots of all warps (WARP_KNOTS in src/kernel.h). With it, logs of inputs show no bends in figures.
warp_knots <- 65L

# Up to `rows` rows, the default kernel may read logs of positive inputs, with this skewness and at least `values`
# different values, if that gains more than `nats` of log marginal likelihood (bench/log-inputs.R).
log_inputs <- c(rows = 200, skewness = 1.5, values = 10, nats = 2)

# Several classes have at most `most` points times latent functions (a Cholesky factor takes a second), and at least
# `least` points. Up to `learn` classes hyperparameters are learned, with a message if that may take `seconds`. Averages
# over f use class_draws points. Three classes have another rule if the sd of log odds exceeds wide_odds. Certificates
# need no posterior with other weights if all weights are at least `narrow` times W (bench/classes-table.R,
# bench/classes-average.R).
class_points <- c(most = 4000, least = 20, learn = 12, seconds = 60, narrow = 0.5)
class_draws <- 1024L
wide_odds <- 4

# The mean of f is at most this number of sds from its mode. If a class has one row and the prior variance is very
# large, the true distance is about two sds of Laplace's posterior.
most_shift <- 2

# With a non-Gaussian likelihood, the prior of the kernel's variance has the centre `variance`, and the priors of the
# constant mean and of the log shape parameter theta have the sds `center` and `theta` (bench/laplace-table.R).
laplace_priors <- list(variance = 2, center = 3, theta = 2)

# ---- uncertainty of hyperparameters ---------------------------------------------------------------------------------

# Posterior sds of log hyperparameters are at most this, a factor of 2,500 either way for 95 %.
most_sd <- 4

# ---- the plan of a fit ---------------------------------------------------------------------------------------------

# Up to this number of rows the default posterior is exact. Its Cholesky factor takes 2 s of a thread (n^3 / 3
# operations at 2e10 a second), and 200 MB while it is used (bench/cliff.R).
exact_rows <- 5000L

# A session keeps the last Cholesky factor of an exact posterior, and others up to this number of bytes: one of 5,000
# rows, or eight of 2,000 (bench/cliff.R).
most_kept <- 2^28

# Up to this number of rows, non-Gaussian fits have all rows as inducing points, a row source is fitted exactly, and
# summary() computes leave-one-out (bench/stages.R).
dense_rows <- 2000L

# Fits have this number of inducing points by default (bench/methods.R).
default_points <- 200L

# With neighbours and short lengthscales, fits have this number of inducing points. On four data sets 50 predict as well
# as 200 or 400 (bench/near.R).
few_points <- 50L

# Predictions use this number of nearest neighbours by default (bench/near.R).
default_neighbours <- 40L

# With groups, predictions use this number of neighbours, because rows of a level are often close together. The RMSE of
# the mean, in sds of the exact posterior, is .03 to .05, and .07 with 40 neighbours (bench/groups.R). Training rows
# have 40.
neighbours_with_groups <- 60L

# Far from the data, as under clouds of a satellite image, predictions use this number of neighbours, because the
# nearest are all on one side (src/neighbours.c). In holes of Matern fields the error of the mean is half of that with
# 40 (bench/gaps.R). For 4,000 cells under clouds, RMSE is 1.58 (1.70 with 40, 1.61 with 100), interval score 6.99 (7.29
# and 7.08) (bench/satellite.R).
far_neighbours <- 200L

# These are limits of the mean residual prior variance, divided by the noise variance. Below `enough`, neighbours or
# moved points change held-out log densities by less than 0.001 nats, and are not used. Between `enough` and `trial`,
# held-out rows decide between neighbours and inducing points alone (bench/trial.R). Above `short`, neighbours do nearly
# all, and need only `few_points` inducing points (bench/near.R). For this, residual over prior variance must also
# exceed `left`. Below it, even without noise, 200 points gain .10 (Hartmann) and .35 nats (borehole) of held-out log
# density over 50, for 6,000 rows (bench/cliff.R).
unexplained_rule <- c(enough = 0.005, trial = 0.5, short = 5, left = 0.5)

# The comparison has this many rows in posteriors, held out, and as possible neighbours (bench/trial.R).
trial_rows <- c(posterior = 20000L, held = 2000L, among = 100000L)

# With more than `exact_rows` and up to `rows` rows, the exact posterior competes with neighbours (its Cholesky factor
# takes 9 s of a thread and 512 MB). It is used if it gains more than `gain` nats of log density per row at `held`
# held-out rows, with posteriors of `posterior` other rows (bench/cliff.R).
exact_trial <- c(rows = 8000, posterior = 3000, held = 500, among = 3000, gain = 0.02)

# If the exact posterior of some rows gains more than exact_trial's `gain`, but there are too many rows for it, fits of
# up to `rows` rows use this many inducing points and neighbours. Larger ones use `many` inducing points if few lose too
# much, see few_trial (bench/cliff.R).
more_points <- c(rows = 16000, points = 800, neighbours = 100, many = 400)

# With more rows than that, few_points is kept unless it loses more than `gain` nats of log density per held-out row. It
# predicts twice as fast (bench/cliff.R, bench/satellite.R).
few_trial <- c(posterior = 20000, held = 2000, among = 20000, gain = 0.02)

# A message suggests neighbours if sds of an exact posterior take more operations than this: 100 s of a thread
# (bench/exact-sd.R).
slow_prediction <- 2e12

# A computation with an exact posterior shows a line of progress beyond this number of operations: 2 s of a thread.
slow_silent <- 4e10

# Inducing points move in at most `asked` iterations if the user asked for moved points, else in at most `default`
# (bench/methods.R).
most_moves <- c(asked = 200L, default = 50L)

# For non-Gaussian likelihoods, the greedy choice of points has this scratch memory in bytes, which limits the candidate
# rows. For 50,000 rows, 400 points from 10,000 of them predict as well as from all (bench/laplace-near.R).
greedy_memory <- 2^25

# From `least` rows on, the mode is first searched with every eighth row (`by`), in at most `steps` steps
# (bench/families_speed.R).
mode_rows <- c(least = 16000, by = 8, steps = 5)

# Shares of inputs in summary() are computed from at most `rows` rows, and `values` kernel values. A prediction from
# neighbours counts as `near` kernel values (bench/structure.R).
share_sample <- c(rows = 2000, values = 2e7, near = 10000)

# With a non-Gaussian likelihood, neighbours and `points` inducing points are compared at `held` rows, by posteriors of
# `rows` others. The search for the mode ends at steps of root mean square `settled`, or after `steps` steps. Working
# responses come from latent values up to `largest`. Kernel variances are increased up to `raised` times, by the factor
# `by`, and theta is learned again within the factor `theta`. Neighbours are used if they gain `gain` nats of log
# density per row; the comparison ends early unless residuals of neighbours promise `residuals` (bench/laplace-near.R,
# bench/families_speed.R).
near_trial <- list(rows = 8000L, held = 5000L, points = 200L, settled = 1, steps = 3L, largest = 4, raised = 5L,
                   by = 3, gain = 0.001, theta = 10, residuals = 0.0007)

# ---- where to measure next ------------------------------------------------------------------------------------------

# next_points() evaluates its criterion at `rows` rows for each input (at most `most`) and at `cloud` rows for each
# input near the best data. L-BFGS starts from the best `starts` of them (bench/next-points.R). Without noise, a row
# that differs from a measured one by at most `next_to` of the range in each input counts as measured.
design_search <- c(rows = 250, most = 2000, cloud = 50, starts = 4, next_to = 1e-4)
