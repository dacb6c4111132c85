# Defines tuned constants, each with its unit and the script that set it: bench/NAME.R with results in bench/results/.

# ---- copies of rows -------------------------------------------------------------------------------------------------

# Rows with equal inputs and responses are copies if the agreement of responses at equal inputs beyond chance exceeds
# `kappa`. If two responses agree by chance with a probability above `chance`, at least `responses` different ones must
# repeat (bench/copies.R). If each row occurs k times, rows are copies if chance has a probability below `whole` for it.
copy_rule <- c(kappa = 0.5, responses = 6, chance = 0.1, whole = 1e-3)

# ---- weights --------------------------------------------------------------------------------------------------------

# If cutting weights at their median leaves less than this share of the weighted sum of squares of the response, a few
# rows have extreme weights. The unit of the noise variance then uses the cut weights (test-learn-rows.R).
few_squares <- 1e-3

# ---- noise = 0 ------------------------------------------------------------------------------------------------------

# With noise = 0, the noise variance is the larger of these shares of response and kernel variance (bench/simulators.R).
least_noise <- c(response = 1e-10, kernel = 1e-13)

# ---- little noise ---------------------------------------------------------------------------------------------------

# Two more fits are tried if the noise and the rounding errors of responses have variances below the shares `noise` and
# `rounded` of the response's variance. The one with a prior for little noise must gain `nats` of log likelihood. The
# one with noise fixed at the share `held` may lose `behind` nats, if the leave-one-out log density gains `left_out`
# nats per row (bench/simulators.R).
little_noise_rule <- c(nats = 2, noise = 0.1, rounded = 1e-4, held = 1e-3, behind = 1, left_out = 0.5)

# ---- smooth functions -----------------------------------------------------------------------------------------------

# If the exact likelihood is maximised, the prior of log kernel variances has this sd, because smooth functions may need
# hundreds of times the response's variance. Up to smooth_limit_rows rows, searches also start there (bench/smooth.R).
wide_variance_sd <- 3
smooth_limit_rows <- 500L

# ---- learning hyperparameters ---------------------------------------------------------------------------------------

# In these stages of learning, the Vecchia likelihood sums the log densities of `rows` rows, each given its `near`
# neighbours (bench/stages.R, bench/race.md).
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

# The exact likelihood is first maximised for first_exact_rows of the rows, in an eighth of the time, then for all. A
# search ends when a step predicts a gain below `few` nats (above `rows` rows: `many`) (bench/cliff.R). Up to `last`
# rows the search for the chosen model continues until the predicted gain is below `sure` nats (bench/few-seeds.R).
first_exact_rows <- 1000L
exact_enough <- c(few = 0.05, many = 0.25, rows = 1000, last = 200, sure = 1e-7)

# With more than exact_learning_rows rows, hyperparameters are also learned by the exact likelihood of some of the rows,
# if the noise is at most this share of the response's variance. The log density of rows given neighbours decides
# between these and the ones learned by the Vecchia likelihood (bench/cliff.R).
exact_noise <- 0.1

# With groups, hyperparameters are learned from at most `levels` levels of a group, or `few` if the exact likelihood is
# the last stage. The sample has `rows` rows of each level before further rows are drawn at random (bench/groups.R).
effect_learning <- c(levels = 500, few = 1000, rows = 3)

# With neighbours, the effects of groups and the inducing points are in one dense matrix of at most this size, whose
# factorisation takes half a minute (bench/groups.R).
dense_effects <- 4000L

# With groups, the noise is learned again from all rows if the mean residual prior variance is below this share of the
# noise variance (bench/groups.R).
most_left <- 0.05

# The penalty for a kernel's parameter, in nats per row, is two over the number of rows, or over this number if there
# are more rows. With a lower penalty sums of two kernels would win that predict worse (bench/choice.R, bench/race.md).
parameter_rows <- 3000L

# The penalty for a parameter is this many nats of log marginal likelihood. For a linear mean it decreases to 0 as
# priors become stronger with fewer rows (bench/choice.R, bench/small-n.R).
parameter_nats <- 2

# If a linear mean gains this many nats of log marginal likelihood, the kernel is chosen again, together with the mean
# (bench/few-seeds.R).
line_again <- 10

# A second search with a linear mean starts with one short lengthscale (in spreads of the input), if this input has at
# least `values` different numbers, and two rows for each on average. `others` is the start of other lengthscales (in
# spreads times sqrt(d)); those of kernel `variance` and `noise` are shares of the response's variance. The start may be
# `below` nats under the end of the first search, but the end must be `nats` above it (bench/individuals.R).
short_lengthscales <- c(0.02, 0.1)
short_rule <- c(values = 10, others = 3, variance = 0.1, noise = 0.02, below = 30, nats = 15)

# A linear mean is tried from this number of rows on; fewer rows were not measured (bench/small-n.R).
least_line_rows <- 30L

# Up to this number of rows the penalty for a linear mean alone is that for a kernel. With more rows it is smaller:
# priors are then weak, and many lengthscales could fit noise (bench/small-n.R, test-learn-choose.R).
line_as_kernel <- 200L

# The additive kernel must gain additive_nats of log marginal likelihood, and with pairs of inputs pair_nats more. With
# more than `all` rows the additive kernel is first learned from `some` rows, and dropped if it gains less than `nats`
# there. With more than exact_learning_rows rows it is learned from `beyond` rows, and must also predict `held` other
# rows better. For the comparison of transforms its gain is from `merit` rows (bench/structure.R). With non-Gaussian
# families it is tried from `classes` rows on (bench/two-classes.R).
additive_nats <- 15
additive_rows <- c(all = 300, some = 250, nats = 4, beyond = 800, held = 2000, merit = 150, classes = 300)
pair_nats <- 8

# Up to `single` inputs the additive kernel is tried, up to `pairs` inputs that with pairs; smooth noise if at most
# `noise` hyperparameters are learned. Time grows with terms and squared numbers of parameters (bench/factors.R).
searched_inputs <- c(single = 60, pairs = 15, noise = 60)

# With more than this number of parameters, the Fisher information is computed from a quarter of the rows. From all rows
# it would take most of the time (bench/factors.R).
sampled_parameters <- 100L

# An R factor of at most `factor` levels has a lengthscale for each level, if all R factors together have at most `all`
# levels. Otherwise its levels share one lengthscale (bench/factors.R).
most_lengthscales <- c(factor = 20, all = 40)

# If an R factor has at least this many levels, a message suggests the group (1 | g) instead.
many_levels <- 50L

# A trend with a season must gain `nats` of log marginal likelihood on at most `rows` rows, and `more` for each further
# period. season_variances are centres of priors of variances, in units of the response's variance; season_sd are sds of
# priors of logs; season_noise is the centre and sd for the noise (bench/forecasts.R).
season_rule <- c(nats = 10, more = 4, rows = 500)
season_variances <- c(trend = 0.5, cycle = 0.3, rest = 0.1, mean = 2)
season_sd <- c(variance = 1.5, cycle = 0.7, length = 1)
season_noise <- c(middle = 0.05, sd = 1.5)

# Differences in Vecchia likelihood may be wrong by this many nats of log marginal likelihood (bench/choice.R).
mistaken_nats <- 3

# With more than exact_learning_rows, kernels with and without a linear mean are compared by the exact log marginal
# likelihood of this many rows (bench/choice.R).
line_rows <- 1000L

# ---- the response ---------------------------------------------------------------------------------------------------

# Transform and noise are chosen from all rows if there are at most this many, else from the rows of the Vecchia
# likelihood and their neighbours (bench/stages.R, bench/satellite.R).
transform_rows <- 10000L

# Transforms and noise trends are tried from `rows` rows on. They are refused if their squared errors at `predicted`
# held-out rows are larger by the factor `error`, or with more than `held_out` rows if the log density of that many
# held-out rows is smaller (bench/response.R). Up to `terms` rows an additive kernel is tried with each transform
# (bench/structure.R). With groups and up to `grouped` rows, held-out predictions are leave-one-out. The penalty for a
# parameter is 2 nats, or `nats` for each row of the Vecchia likelihood if that is more, because a small gain is not
# worth an error far from the data (bench/satellite.R).
response_rule <- c(rows = 15, held_out = 2000, predicted = 500, error = 1.2, terms = 600, grouped = 1000,
                   nats = 0.0025)

# If the noise variance with Matern 3/2 is below the share `look` of the response's variance, Matern 5/2 and SE are
# tried as well before a transform is chosen. A response is deterministic if noise variance and held-out squared errors
# are below the shares `noise` and `left` of its variance. Then a transform must multiply held-out squared errors by at
# most `error` (`kink` for Yeo-Johnson); or they must not increase, and the held-out log density must increase by `gain`
# nats per row plus `sure` standard errors (bench/cliff.R).
little_response <- c(look = 0.02, noise = 1e-3, left = 0.05, error = 0.6, kink = 0.4, gain = 0.5, sure = 3)

# The penalty for a transform is that for this many parameters, and so is that for smooth noise (bench/response.R).
transform_parameters <- 2L

# If the fit chose the transform, mean responses are computed from responses cut at the outermost training response or,
# if that is further out, where T(y) is this number of sds inside its mean (bench/point-predictions.R).
sure_sds <- 1

# If the fit chose a transform and heavy tails, the variance of a new response is multiplied by the mean over held-out
# rows of squared error / variance, but at most by this factor, because one extreme row can dominate this mean
# (bench/second-moments.R).
most_wider <- 100

# A response with fewer than `values` distinct values, and less than half as many as rows, has constant noise. Then a
# message is sent; also if one value has more than the share `share` of rows and over `times` rows (bench/response.R).
response_values <- c(share = 0.2, times = 5, values = 10)

# The log noise variance has at most this variance: 95 % of variances are within a factor of 50 (bench/response.R).
most_spread <- 4

# With n rows, at most `rows`, and p learned hyperparameters, the log noise variance has at least the variance few /
# (n - p) in predictions: twice that of the log of a sample variance with n - p degrees of freedom (bench/few.R).
uncertain_noise <- c(rows = 200, few = 4)

# Smooth noise has at most `points` features. The prior variances of their coefficients are updated in `rounds` rounds.
# The search ends if these variances decrease while the value is `behind` nats below that of constant noise; no data set
# recovered from there (bench/response.R).
noise_trend_sizes <- c(points = 20L, rounds = 4L, behind = 10L)

# ---- learning with a non-Gaussian likelihood ------------------------------------------------------------------------

# Learning with a non-Gaussian likelihood uses `points` inducing points and `rows` rows in its last search; few_points
# and few_rows when starts or kernels are compared. A search has `rounds`, each with new points, and ends if two steps
# gain less than `gain` nats. Posteriors of many rows have at most `most` points. With Student's t, pivots of the
# Hessian H must be at least `pivot`, because log det H has no bound near a saddle. From `inputs` inputs on, one
# lengthscale for all is tried, unless log spreads of inputs differ by at most `alike`. Separate lengthscales must gain
# `apart` nats over tied ones (bench/laplace-table.R, bench/laplace-near.R). For several classes, points times latent
# functions are at most `contrasts`, and Newton steps end at `decrement` (bench/classes-table.R). With groups, rows are
# from at most `levels` levels, and each effect adds an inducing point.
laplace_sizes <- list(points = 120L, rows = 3000L, few_points = 60L, few_rows = 1000L, rounds = 3L, gain = 1e-3,
                      most = 400L, pivot = 0.1, inputs = 10L, contrasts = 240L, levels = 150L, decrement = 1e-6,
                      alike = 0.05, apart = 0.05)

# Rotated inputs are tried if there are at least this many rows for each input. The kernel must then gain
# rotation_nats["pair"] nats for each pair of inputs, and at least rotation_nats["least"] (bench/classes-line.R).
rotation_rows <- 10
rotation_nats <- c(least = 1, pair = 0.1)

# For classes and at most `warp_rows` rows, kernels are also tried on warped inputs: moved by these shares of the way to
# their normal scores, linearly between score_knots quantiles (bench/warped-inputs.R, bench/several-classes.R).
warp_rows <- 600L
warp_shares <- c(0.5, 1)
score_knots <- 17L

# Every warp has this number of knots (WARP_KNOTS in src/kernel.h). With fewer, logs of inputs show bends in figures.
warp_knots <- 65L

# Up to `rows` rows, the default kernel may read logs of positive inputs that have more than this `skewness` and at
# least `values` different values. Logs must gain more than `nats` of log marginal likelihood (bench/log-inputs.R).
log_inputs <- c(rows = 2000, skewness = 1.5, values = 10, nats = 2)

# For several classes, inducing points times latent functions are at most `most` (a Cholesky factorisation takes a
# second), with at least `least` points. Hyperparameters are learned from at most `learn` classes. A message is sent if
# the posterior may take `seconds`. Averages over more than two latent functions use class_draws points; others use
# another rule if the sd of log odds exceeds wide_odds. Certificates need no posterior with other weights if all weights
# are at least `narrow` times W (bench/classes-table.R, bench/classes-average.R).
class_points <- c(most = 4000, least = 20, learn = 12, seconds = 60, narrow = 0.5)
class_draws <- 1024L
wide_odds <- 4

# The corrected mean of f is at most this number of posterior sds from its mode. If a class has one row and the prior
# variance is very large, the true distance is about two sds of Laplace's posterior.
most_shift <- 2

# With a non-Gaussian likelihood, the prior of the kernel's variance has the centre `variance`, and the priors of the
# constant mean and of the log shape parameter theta have the sds `center` and `theta` (bench/laplace-table.R).
laplace_priors <- list(variance = 2, center = 3, theta = 2)

# ---- uncertainty of hyperparameters ---------------------------------------------------------------------------------

# Posterior sds of log hyperparameters are limited to this number: 95 % intervals reach a factor of 2,500 either way.
most_sd <- 4

# ---- the plan of a fit ---------------------------------------------------------------------------------------------

# Up to this number of rows the default posterior is exact. Its Cholesky factor takes 2 s of one thread (n^3 / 3
# operations at 2e10 a second), and 200 MB while it is used (bench/cliff.R).
exact_rows <- 5000L

# A session keeps the last Cholesky factor of an exact posterior, and others up to this number of bytes: one of 5,000
# rows, or eight of 2,000 (bench/cliff.R).
most_kept <- 2^28

# Up to this number of rows, non-Gaussian fits have all rows as inducing points, a row source is fitted exactly, and
# summary() computes leave-one-out (bench/stages.R).
dense_rows <- 2000L

# Fits have at most this number of inducing points by default (bench/methods.R).
default_points <- 200L

# With neighbours and short lengthscales, fits have this number of inducing points. On four data sets 50 points predict
# as well as 200 or 400 (bench/near.R).
few_points <- 50L

# Predictions use this number of nearest neighbours by default (bench/near.R).
default_neighbours <- 40L

# With groups, predictions use this number of neighbours, because rows of a level are often close together. Compared
# with the exact posterior, the RMSE of the mean is .03 to .05 posterior sds, and .07 with 40 neighbours
# (bench/groups.R). Training rows have 40 neighbours.
neighbours_with_groups <- 60L

# Far from the data, as under clouds of a satellite image, predictions use this number of neighbours, because the
# nearest are all on one side (src/neighbours.c). In holes of Matern fields this halves the error of the mean with 40
# neighbours (bench/gaps.R). For 4,000 cells under clouds, 40, 100 and 200 neighbours have RMSE 1.70, 1.61 and 1.58, and
# interval scores 7.29, 7.08 and 6.99 (bench/satellite.R).
far_neighbours <- 200L

# These are limits of the mean residual prior variance, divided by the noise variance. Below `enough`, neighbours or
# moved points change held-out log densities by less than 0.001 nats, and are not used. Between `enough` and `trial`,
# held-out rows decide between neighbours and inducing points alone (bench/trial.R). Above `short`, neighbours explain
# nearly all of f, and few_points inducing points suffice (bench/near.R), if residual over prior variance also exceeds
# `left`. Below `left`, even without noise, 200 points gain .10 (Hartmann) and .35 nats (borehole) of held-out log
# density over 50 points, for 6,000 rows (bench/cliff.R).
unexplained_rule <- c(enough = 0.005, trial = 0.5, short = 5, left = 0.5)

# Inducing points alone are compared with neighbours by posteriors of `posterior` rows, at `held` held-out rows, with
# neighbours among `among` rows (bench/trial.R).
trial_rows <- c(posterior = 20000L, held = 2000L, among = 100000L)

# With more than `exact_rows` and up to `rows` rows, the exact posterior (Cholesky factor: 9 s of one thread and 512 MB)
# is compared with neighbours. It is used if it gains more than `gain` nats of log density per row at `held` held-out
# rows, with posteriors of `posterior` other rows (bench/cliff.R).
exact_trial <- c(rows = 8000, posterior = 3000, held = 500, among = 3000, gain = 0.02)

# If the exact posterior of some rows gains more than exact_trial's `gain`, but there are too many rows for it, fits of
# up to `rows` rows use this many inducing points and neighbours. Fits of more rows use `many` inducing points if
# few_points lose too much by few_trial (bench/cliff.R).
more_points <- c(rows = 16000, points = 800, neighbours = 100, many = 400)

# With more than more_points["rows"] rows, few_points inducing points are used unless they lose more than `gain` nats of
# log density per held-out row (other elements: trial_rows). They predict twice as fast (bench/cliff.R, satellite.R).
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
# rows. 400 points chosen from 10,000 of 50,000 rows predict as well as from all (bench/laplace-near.R).
greedy_memory <- 2^25

# From `least` rows on, the search for the posterior mode first uses every eighth row (`by`), for at most `steps` steps
# (bench/families_speed.R).
mode_rows <- c(least = 16000, by = 8, steps = 5)

# Shares of inputs in summary() are computed from at most `rows` rows, and `values` kernel values. A prediction from
# neighbours counts as `near` kernel values (bench/structure.R).
share_sample <- c(rows = 2000, values = 2e7, near = 10000)

# With a non-Gaussian likelihood, inducing points alone are compared with neighbours (and `points` inducing points) at
# `held` rows, by posteriors of `rows` others. The search for the mode ends at steps of root mean square `settled`, or
# after `steps` steps. Working responses are from latent values up to `largest`. Kernel variances are multiplied by `by`
# up to `raised` times, and theta is learned again within the factor `theta`. Neighbours are used if they gain `gain`
# nats of log density per row. The comparison ends early unless residuals of neighbours predict a gain of `residuals`
# nats (bench/laplace-near.R, bench/families_speed.R).
near_trial <- list(rows = 8000L, held = 5000L, points = 200L, settled = 1, steps = 3L, largest = 4, raised = 5L,
                   by = 3, gain = 0.001, theta = 10, residuals = 0.0007)

# ---- where to measure next ------------------------------------------------------------------------------------------

# next_points() evaluates its criterion at `rows` rows for each input (at most `most`) and at `cloud` rows for each
# input near the best data. L-BFGS starts from the best `starts` of them (bench/next-points.R). Without noise, a row
# that differs from a measured one by at most `next_to` of the range in each input counts as measured.
design_search <- c(rows = 250, most = 2000, cloud = 50, starts = 4, next_to = 1e-4)
