# Defines tuned constants, each with its unit and the script that set it: bench/NAME.R with results in bench/results/.

# ---- copies of rows -------------------------------------------------------------------------------------------------

# Repeated rows are copies if their responses agree beyond chance by this kappa. If two rows agree by chance more often
# than `chance`, at least `responses` different responses must be repeated (bench/copies.R). If each row occurs k times,
# the rows are copies unless all pairs agree by chance with a probability of at least `whole`.
copy_rule <- c(kappa = 0.5, responses = 6, chance = 0.1, whole = 1e-3)

# ---- weights --------------------------------------------------------------------------------------------------------

# A few rows have weights too large for a unit of the noise if the weighted squares of the response fall below this
# share after cutting weights at their median (test-learn-rows.R).
few_squares <- 1e-3

# ---- noise = 0 ------------------------------------------------------------------------------------------------------

# A fit that interpolates has these noise variances, as shares of the variances of the response and of the kernel
# (bench/simulators.R).
least_noise <- c(response = 1e-10, kernel = 1e-13)

# ---- little noise ---------------------------------------------------------------------------------------------------

# A search whose prior allows little noise must gain `nats` of log likelihood. `noise` is the largest noise of the first
# search, `rounded` the largest rounding, as shares of the response's variance. Noise fixed at the share `held` may have
# `behind` nats less, if the leave-one-out log density increases by `left_out` nats per row (bench/simulators.R).
little_noise_rule <- c(nats = 2, noise = 0.1, rounded = 1e-4, held = 1e-3, behind = 1, left_out = 0.5)

# ---- smooth functions -----------------------------------------------------------------------------------------------

# The prior of log variances has this sd if the exact likelihood decides, because smooth functions have variances of
# hundreds. Up to smooth_limit_rows, searches also start at the smooth limit (bench/smooth.R).
wide_variance_sd <- 3
smooth_limit_rows <- 500L

# ---- learning hyperparameters ---------------------------------------------------------------------------------------

# Each search sums the densities of `rows` rows, each given `near` neighbours (bench/stages.R, bench/race.md).
learning_sizes <- list(
  population = 1e6,                      # rows in which neighbours are searched, because their density matters
  first = 200L,                          # the first rows of the random order are always in the sum
  starts = c(rows = 4000L, near = 10L),  # for every start; with much noise more rows help more than more neighbours
  finals = c(rows = 5000L, near = 15L),  # for the best starts
  response = c(rows = 2000L, near = 15L), # for every transform and noise trend
  kernels = c(rows = 8000L, near = 25L), # for every kernel; with fewer rows chance decides
  few = c(rows = 2000L, near = 20L),     # for every kernel, if the exact likelihood is computed in the end
  whole = c(rows = 16000L, near = 30L),  # for the chosen kernel
  exact = c(rows = 2000L, near = 100L),  # rows that judge the exact likelihood of some rows (bench/cliff.R)
  score = c(rows = 8000L, near = 40L))   # rows that judge a kernel, given their neighbours among all rows

# Up to this number of rows the exact log marginal likelihood is the last stage: a second or two (bench/stages.R).
exact_learning_rows <- 2000L

# The exact log marginal likelihood is first maximised for first_exact_rows, which takes an eighth of the time, then for
# up to exact_learning_rows. A search ends if a step predicts a gain below `few` nats up to `rows` rows, `many` beyond
# (bench/cliff.R). Up to `last` rows the chosen model is improved until a step predicts `sure` nats (bench/few-seeds.R).
first_exact_rows <- 1000L
exact_enough <- c(few = 0.05, many = 0.25, rows = 1000, last = 200, sure = 1e-7)

# Up to this share of noise in the response's variance, the exact log marginal likelihood of some rows also gives
# hyperparameters. The log density of rows given their neighbours then decides (bench/cliff.R).
exact_noise <- 0.1

# With grouped effects, hyperparameters are learned from this many `levels` of a group (`few` if the exact likelihood is
# the last stage), with `rows` rows of each level before others are drawn at random (bench/groups.R).
effect_learning <- c(levels = 500, few = 1000, rows = 3)

# With nearest neighbours, at most this many effects of groups and inducing points are factorised together, which takes
# half a minute (bench/groups.R).
dense_effects <- 4000L

# With grouped effects, the noise is learned again from all rows if residual prior variance over noise variance is at
# most this ratio (bench/groups.R).
most_left <- 0.05

# A parameter costs two nats, divided by at most this number of rows. With a lower price the sum of two scales is chosen
# although there are few rows for the inputs, and predicts worse (bench/choice.R, bench/race.md).
parameter_rows <- 3000L

# A parameter of a linear mean costs this many nats of log marginal likelihood, unless priors decide (bench/choice.R,
# bench/small-n.R).
parameter_nats <- 2

# If a linear mean gains this many nats of log marginal likelihood, the kernel is chosen again with the mean
# (bench/few-seeds.R).
line_again <- 10

# A linear mean is tried from this number of rows on; fewer rows were not measured (bench/small-n.R).
least_line_rows <- 30L

# Up to this number of rows a linear mean alone counts as many parameters as the kernel. With more rows the priors are
# weak, and the lengthscales of many inputs fit pure noise (bench/small-n.R, test-learn-choose.R).
line_as_kernel <- 200L

# The additive kernel must gain additive_nats of log marginal likelihood, and pairs of inputs pair_nats more. With more
# rows than `all` it is learned from `some` first, and dropped if it does not gain `nats`. Beyond exact learning it is
# learned from `beyond` rows, and `held` other rows may refuse it. `merit` rows determine its gain in the merit of a
# response (bench/structure.R). Other families with one latent function compare it from `classes` rows on
# (bench/two-classes.R).
additive_nats <- 15
additive_rows <- c(all = 300, some = 250, nats = 4, beyond = 800, held = 2000, merit = 150, classes = 300)
pair_nats <- 8

# The additive kernel is tried up to `single` inputs, its pairs up to `pairs` inputs, and smooth noise up to `noise`
# lengthscales. The time of an evaluation grows with the terms, and with the square of the parameters (bench/factors.R).
searched_inputs <- c(single = 60, pairs = 15, noise = 60)

# From this number of parameters on, a search computes the Fisher information from a quarter of the rows. Otherwise it
# would take most of the time of an evaluation (bench/factors.R).
sampled_parameters <- 100L

# Up to `factor` levels an R factor may have a lengthscale for each level, and all R factors together may have `all`.
# Otherwise the levels of an R factor share one lengthscale (bench/factors.R).
most_lengthscales <- c(factor = 20, all = 40)

# From this number of levels on, a message offers (1 | g) in place of g.
many_levels <- 50L

# A trend and a season must gain `nats` of log marginal likelihood, and `more` for each further period, on `rows` rows.
# Priors of variances have these centres, in units of the response's variance, priors of logs these sds
# (bench/forecasts.R).
season_rule <- c(nats = 10, more = 4, rows = 500)
season_variances <- c(trend = 0.5, cycle = 0.3, rest = 0.1, mean = 2)
season_sd <- c(variance = 1.5, cycle = 0.7, length = 1)
season_noise <- c(middle = 0.05, sd = 1.5)

# The Vecchia likelihood may differ from the exact log marginal likelihood by this many nats (bench/choice.R).
mistaken_nats <- 3

# Beyond exact_learning_rows, the exact log marginal likelihood of this many rows compares a kernel with a linear mean
# (bench/choice.R).
line_rows <- 1000L

# ---- the response ---------------------------------------------------------------------------------------------------

# Up to this number of distinct rows, all are used to choose the response. Of more rows, the rows of the sum and their
# neighbours are used (bench/stages.R, bench/satellite.R).
transform_rows <- 10000L

# The response is chosen from `rows` rows on. Beyond `held_out` rows, the density at as many held-out rows may refuse a
# candidate. Any candidate is refused if its squared errors at `predicted` rows, without its worst row, are larger by
# more than this factor (bench/response.R). Up to `terms` rows the merit of a transform includes the gain of the
# additive kernel (bench/structure.R). Up to `grouped` rows with groups, all other rows predict each row. A parameter
# costs 2 nats, or `nats` for each row of the sum: beyond 800 rows, a smaller gain is not worth an error far from the
# data (bench/satellite.R).
response_rule <- c(rows = 15, held_out = 2000, predicted = 500, error = 1.2, terms = 600, grouped = 1000,
                   nats = 0.0025)

# If the noise variance with Matern 3/2 is below the share `look` of the response's variance, Matern 5/2 and SE are also
# tried, and the best of the three is used to choose the transform. If its noise is below `noise` and held-out squared
# errors are below the share `left`, the response is deterministic. Then a transform must lower held-out squared errors
# by the factor `error` (`kink` for Yeo-Johnson); or its increase in held-out log density per row, minus `sure` standard
# errors, must exceed `gain` nats, without larger squared errors (bench/cliff.R).
little_response <- c(look = 0.02, noise = 1e-3, left = 0.05, error = 0.6, kink = 0.4, gain = 0.5, sure = 3)

# A transform counts as this number of parameters of 2 nats, like smooth noise (bench/response.R).
transform_parameters <- 2L

# If the fit chose the transform, the mean response is cut at the outermost response, or this number of sds before its
# mean if that is further out (bench/point-predictions.R).
sure_sds <- 1

# With heavy tails and a transform chosen by the fit, the variance of a new response is multiplied by the mean of
# squared error / variance over held-out rows. It is multiplied by at most this factor, because one extreme row can
# dominate that mean (bench/second-moments.R).
most_wider <- 100

# A response has few values if there are fewer than `values`, or if one has more than the share `share` and more than
# `times` rows (bench/response.R).
response_values <- c(share = 0.2, times = 5, values = 10)

# A log noise has at most this variance: 95 % of the noise is within a factor of 50 either way (bench/response.R).
most_spread <- 4

# Smooth noise has `points` features. The variances of its coefficients move in `rounds` rounds. The search ends if they
# decrease and the value is `behind` nats below constant noise: none of 16 sets then gained over 12 (bench/response.R).
noise_trend_sizes <- c(points = 20L, rounds = 4L, behind = 10L)

# ---- learning with a non-Gaussian likelihood ------------------------------------------------------------------------

# The last search uses `points` inducing points and `rows` rows, and comparisons of starts and kernels few_points and
# few_rows. A search has `rounds` with new points, and ends if two steps gain less than `gain` nats. A posterior of many
# rows has at most `most` points. H has pivots of at least `pivot`, and only for Student's t below 1: near a saddle log
# det H decreases without end, and Laplace's approximation is meaningless. One lengthscale for all is tried from
# `inputs` inputs on, unless the log spreads of inputs differ by less than `alike` (bench/laplace-table.R,
# bench/laplace-near.R). Several classes have `contrasts` points times latent functions, and Newton steps end at
# `decrement` in searches (bench/classes-table.R: the same NLPD to four digits). Groups have up to `levels` levels with
# their own points.
laplace_sizes <- list(points = 120L, rows = 3000L, few_points = 60L, few_rows = 1000L, rounds = 3L, gain = 1e-3,
                      most = 400L, pivot = 0.1, inputs = 10L, contrasts = 240L, levels = 150L, decrement = 1e-6,
                      alike = 0.05)

# A kernel of rotated inputs is compared from `rotation_rows` rows an input on. It must gain rotation_nats["pair"] nats
# for each pair of inputs, and at least rotation_nats["least"] (bench/classes-line.R).
rotation_rows <- 10
rotation_nats <- c(least = 1, pair = 0.1)

# Several classes have at most `most` points times latent functions, whose Cholesky factor takes a second, and at least
# `least` points. They are learned from at most `learn` classes, with a message from `seconds` on. Averages over f have
# class_draws points (bench/classes-table.R, bench/classes-average.R). From the sd wide_odds of log odds on, three
# classes are averaged along the widest log odds (bench/classes-average.R).
class_points <- c(most = 4000, least = 20, learn = 12, seconds = 60)
class_draws <- 1024L
wide_odds <- 4

# The mean of a skewed posterior is at most this number of sds from its mode. With one row of a class and an unbounded
# prior variance, the true distance is about two sds of Laplace's posterior.
most_shift <- 2

# The prior of the kernel's variance has the centre `variance`. The priors of the constant mean and of log theta have
# the sds `center` and `theta` (bench/laplace-table.R).
laplace_priors <- list(variance = 2, center = 3, theta = 2)

# ---- uncertainty of hyperparameters ---------------------------------------------------------------------------------

# Log hyperparameters have at most this sd in any direction: 95 % are within a factor of 2,500 either way.
most_sd <- 4

# ---- the plan of a fit ---------------------------------------------------------------------------------------------

# Up to this number of rows the default posterior is exact. Its Cholesky factor takes 2 s of a thread (n^3 / 3
# operations at 2e10 a second), and 200 MB while it is used (bench/cliff.R).
exact_rows <- 5000L

# In addition to the last Cholesky factor, a session keeps factors of exact posteriors up to this number of bytes: one
# of 5,000 rows, or eight of 2,000 (bench/cliff.R).
most_kept <- 2^28

# Up to this number of rows other likelihoods use all rows as inducing points, a row source is fitted exactly, and
# summary() computes leave-one-out (bench/stages.R).
dense_rows <- 2000L

# Fits have this number of inducing points by default (bench/methods.R).
default_points <- 200L

# Fits with neighbours have this number of inducing points if lengthscales are short. On four data sets 50 points
# predict as well as 200 or 400 (bench/near.R).
few_points <- 50L

# Predictions use this number of nearest neighbours by default (bench/near.R).
default_neighbours <- 40L

# Predictions with groups use this number of neighbours, because rows of a group are often close together, as at the
# sites of a map. The RMSE of the mean, in sds of the exact posterior, is .03 to .05; with 40 neighbours it is .07
# (bench/groups.R). Training rows have 40.
neighbours_with_groups <- 60L

# Predictions far from the data, as under clouds, use this number of neighbours, because the nearest rows are on one
# side (src/neighbours.c). In holes of Matern fields the error of the mean is about half of that with 40 (bench/gaps.R).
# 4,000 cells under clouds have RMSE 1.58, not 1.70, and interval score 6.99, not 7.29; with 100 for each row 1.61 and
# 7.08 (bench/satellite.R). As many neighbours from random subsamples, which are in farther rings, are worse.
far_neighbours <- 200L

# From this ratio of mean residual prior variance to noise variance on, neighbours (or moved points) change predictions.
# Below it, held-out log densities differ by less than 0.001 nats (bench/trial.R).
enough_unexplained <- 0.005

# Up to this ratio (see enough_unexplained), held-out rows decide between neighbours and points alone (bench/trial.R).
trial_unexplained <- 0.5

# Above this ratio (see enough_unexplained), neighbours need only `few_points` (bench/near.R).
short_unexplained <- 5

# Lengthscales do not count as short if residual over prior variance is below this ratio, even without noise. For 6,000
# rows 200 points then gain .10 (Hartmann) and .35 nats (borehole) of held-out log density over 50 (bench/cliff.R).
short_left <- 0.5

# The comparison by held-out rows has these rows: in posteriors, held out, searched for neighbours (bench/trial.R).
trial_rows <- c(posterior = 20000L, held = 2000L, among = 100000L)

# The exact posterior may have more rows than `exact_rows`, up to `rows` (a Cholesky factor takes 9 s of a thread and
# 512 MB). It replaces neighbours if it gains more than `gain` nats of log density a row at `held` rows given
# `posterior` others (bench/cliff.R).
exact_trial <- c(rows = 8000, posterior = 3000, held = 500, among = 3000, gain = 0.02)

# If the exact posterior of some rows gains as much, larger data up to `rows` rows use more inducing points and
# neighbours. For more rows, `many` inducing points are used if few lose too much, see few_trial (bench/cliff.R).
more_points <- c(rows = 16000, points = 800, neighbours = 100, many = 400)

# For more rows with short residual lengthscales and `short_left`, few points are kept unless they lose more than `gain`
# nats of log density per held-out row. They predict twice as fast (bench/cliff.R, bench/satellite.R).
few_trial <- c(posterior = 20000, held = 2000, among = 20000, gain = 0.02)

# A message offers neighbours if the standard deviations of an exact posterior take more operations than this: 100 s of
# a thread (bench/exact-sd.R).
slow_prediction <- 2e12

# A computation with an exact posterior shows a line of progress beyond this number of operations: 2 s of a thread.
slow_silent <- 4e10

# Inducing points move in at most this number of iterations: `asked` if the user asks for moved points, else `default`
# (bench/methods.R).
most_moves <- c(asked = 200L, default = 50L)

# The greedy choice of points under other likelihoods has this much scratch memory, in bytes. It limits the candidate
# rows: for 50,000 flights, 400 points from 10,000 rows predict as well as points from all rows (bench/laplace-near.R).
greedy_memory <- 2^25

# From `least` rows on, a first search for the mode uses every eighth row, in at most `steps` steps
# (bench/families_speed.R).
mode_rows <- c(least = 16000, by = 8, steps = 5)

# Shares of inputs in summary() use a sample of `rows` rows. All predictions may take `values` kernel values, and a
# prediction from neighbours counts as `near` kernel values (bench/structure.R).
share_sample <- c(rows = 2000, values = 2e7, near = 10000)

# The comparison by held-out rows under other likelihoods uses `rows` rows in the posteriors, `held` held-out rows, and
# `points` inducing points with neighbours. The latent function has settled at the root mean square step `settled`,
# after at most `steps` steps for each variance. Working responses are made from latent values up to `largest`.
# Variances are raised up to `raised` times by the factor `by`. Neighbours are used from a gain of `gain` nats of log
# density a row on, and theta is learned again within the factor `theta`. The comparison ends unless residuals of
# neighbours predict a gain of `residuals` (bench/laplace-near.R, bench/families_speed.R).
near_trial <- list(rows = 8000L, held = 5000L, points = 200L, settled = 1, steps = 3L, largest = 4, raised = 5L,
                   by = 3, gain = 0.001, theta = 10, residuals = 0.0007)

# ---- where to measure next ------------------------------------------------------------------------------------------

# next_points() first evaluates `rows` rows for each input (at most `most`) and `cloud` rows about the best data for
# each input. L-BFGS then starts from the best `starts` of them (bench/next-points.R). Without noise, a row nearly
# equals a measured row if they differ by at most `next_to` of the range in each input.
design_search <- c(rows = 250, most = 2000, cloud = 50, starts = 4, next_to = 1e-4)
