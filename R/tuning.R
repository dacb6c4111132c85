# Constants that were tuned. Each has its unit, and the script that set it: bench/NAME.R with results in bench/results/.

# ---- copies of rows -------------------------------------------------------------------------------------------------

# Repeated rows are copies if their responses agree beyond chance by this kappa. If two rows agree by chance more often
# than `chance`, at least `responses` different responses must be repeated (bench/copies.R). If each row occurs k times,
# the rows are copies unless all pairs agree by chance with a probability of at least `whole`.
copy_rule <- c(kappa = 0.5, responses = 6, chance = 0.1, whole = 1e-3)

# ---- weights --------------------------------------------------------------------------------------------------------

# If weights are cut at their median, and less than this share of the weighted squares of the response is left, a few
# rows have weights too large for a unit of the noise (test-learn-rows.R).
few_squares <- 1e-3

# ---- noise = 0 ------------------------------------------------------------------------------------------------------

# The noise variance of a fit that interpolates, as shares of the variance of the response and of the kernel
# (bench/simulators.R).
least_noise <- c(response = 1e-10, kernel = 1e-13)

# ---- little noise ---------------------------------------------------------------------------------------------------

# Rule for searches whose prior allows little noise. Such a search must gain `nats` of log likelihood. `noise` is the
# largest noise of the first search, `rounded` the largest rounding, as shares of the response's variance. Noise held at
# the share `held` may have `behind` nats less, if the leave-one-out log density gains `left_out` nats per row
# (bench/simulators.R).
little_noise_rule <- c(nats = 2, noise = 0.1, rounded = 1e-4, held = 1e-3, behind = 1, left_out = 0.5)

# ---- smooth functions -----------------------------------------------------------------------------------------------

# The sd of the prior of log variances if the exact likelihood decides: smooth functions have variances of
# hundreds. Rows up to which searches also start at the smooth limit (bench/smooth.R).
wide_variance_sd <- 3
smooth_limit_rows <- 500L

# ---- learning hyperparameters ---------------------------------------------------------------------------------------

# Numbers of rows whose densities count, and of the neighbours that each is given (bench/stages.R, bench/race.md).
learning_sizes <- list(
  population = 1e6,                      # rows in which neighbours are searched, because their density matters
  first = 200L,                          # the first rows of the random order always count
  starts = c(rows = 4000L, near = 10L),  # every start: against much noise, more rows help more than neighbours
  finals = c(rows = 5000L, near = 15L),  # the best starts
  response = c(rows = 2000L, near = 15L), # every transform and noise
  kernels = c(rows = 8000L, near = 25L), # every kernel: with fewer rows chance decides
  few = c(rows = 2000L, near = 20L),     # every kernel, if the exact likelihood is computed in the end
  whole = c(rows = 16000L, near = 30L),  # the kernel that is kept
  exact = c(rows = 2000L, near = 100L),  # rows that judge the exact likelihood of some rows (bench/cliff.R)
  score = c(rows = 8000L, near = 40L))   # rows that judge a kernel, given their neighbours among all rows

# Rows up to which the exact log marginal likelihood is the last stage: a second or two (bench/stages.R).
exact_learning_rows <- 2000L

# The exact log marginal likelihood is first maximised for first_exact_rows, which takes an eighth of the time, then for
# up to exact_learning_rows. A step must promise `few` nats up to `rows` rows, `many` beyond (bench/cliff.R). Up to
# `last` rows the chosen model is climbed until a step promises `sure` nats (bench/few-seeds.R).
first_exact_rows <- 1000L
exact_enough <- c(few = 0.05, many = 0.25, rows = 1000, last = 200, sure = 1e-7)

# If the noise is at most this share of the response's variance, hyperparameters by the exact log marginal likelihood of
# some rows compete with those by the Vecchia likelihood, by log density of rows given their neighbours (bench/cliff.R).
exact_noise <- 0.1

# With grouped effects: levels of a group that hyperparameters are learned from (`few`: if the exact likelihood is the
# last stage), and rows taken from each level before others are drawn at random (bench/groups.R).
effect_learning <- c(levels = 500, few = 1000, rows = 3)

# Largest number of effects of groups and inducing points that are factorised together beside nearest neighbours, which
# takes half a minute (bench/groups.R).
dense_effects <- 4000L

# With grouped effects, residual prior variance over the noise variance up to which the noise is learned again from all
# rows (bench/groups.R).
most_left <- 0.05

# A parameter costs two nats, shared by at most this number of rows. With a lower price the sum of two scales is chosen
# where rows are few for the inputs, and predicts worse (bench/choice.R, bench/race.md).
parameter_rows <- 3000L

# Nats of log marginal likelihood that a parameter of a linear mean costs, unless priors decide (bench/choice.R,
# bench/small-n.R).
parameter_nats <- 2

# Nats that a linear mean beside the kernel must gain before the kernel is chosen again beside it
# (bench/few-seeds.R).
line_again <- 10

# Rows from which a linear mean is tried: with fewer it was not measured (bench/small-n.R).
least_line_rows <- 30L

# Rows up to which a linear mean alone counts as many parameters as the kernel. With more rows the priors are weak, and
# the lengthscales of many inputs fit pure noise (bench/small-n.R, test-learn-choose.R).
line_as_kernel <- 200L

# Nats of log marginal likelihood that the additive kernel must gain, and further nats for pairs of inputs. With more
# rows than `all` it is learned from `some` first, and dropped if it does not gain `nats`. Beyond exact learning it is
# learned from `beyond` rows, and `held` other rows may refuse it. Its gain in the merit of a response is learned from
# `merit` rows (bench/structure.R). Other families with one latent function compare it from `classes` rows on
# (bench/two-classes.R).
additive_nats <- 15
additive_rows <- c(all = 300, some = 250, nats = 4, beyond = 800, held = 2000, merit = 150, classes = 300)
pair_nats <- 8

# Inputs up to which the additive kernel is tried, pairs of inputs in it, and lengthscales up to which smooth noise is
# tried: the time of an evaluation grows with the terms, and with the square of the parameters (bench/factors.R).
searched_inputs <- c(single = 60, pairs = 15, noise = 60)

# From this number of parameters on, a search computes the Fisher information from a quarter of the rows. Otherwise it
# would take most of the time of an evaluation (bench/factors.R).
sampled_parameters <- 100L

# Up to `factor` levels an R factor may have a lengthscale for each level, and all R factors together may have `all`.
# Otherwise the levels of an R factor share one lengthscale (bench/factors.R).
most_lengthscales <- c(factor = 20, all = 40)

# From this number of levels on, a message offers (1 | g) in place of g.
many_levels <- 50L

# A trend and a season: the nats of log marginal likelihood that they must gain, and more for each further period; the
# number of rows that choose them. Centres of the priors of variances, in units of the response's, and sds of the priors
# of logs (bench/forecasts.R).
season_rule <- c(nats = 10, more = 4, rows = 500)
season_variances <- c(trend = 0.5, cycle = 0.3, rest = 0.1, mean = 2)
season_sd <- c(variance = 1.5, cycle = 0.7, length = 1)
season_noise <- c(middle = 0.05, sd = 1.5)

# Number of nats by which the Vecchia likelihood may differ from the exact log marginal likelihood (bench/choice.R).
mistaken_nats <- 3

# Beyond exact_learning_rows, the exact log marginal likelihood of this many rows compares a kernel with a linear mean
# (bench/choice.R).
line_rows <- 1000L

# ---- the response ---------------------------------------------------------------------------------------------------

# Up to this number of distinct rows all are used while the response is chosen. Of more rows, those that count and their
# neighbours are used (bench/stages.R, bench/satellite.R).
transform_rows <- 10000L

# The response is chosen from `rows` rows on. Beyond `held_out` rows, the density at as many held-out rows may refuse a
# candidate. Any candidate is refused if its squared errors at `predicted` rows, without the row that is worst for it,
# are larger by more than this factor (bench/response.R). Up to `terms` rows the merit of a transform includes the gain
# of the additive kernel (bench/structure.R). Up to `grouped` rows with groups all others predict each row.
# A parameter costs 2 nats, or `nats` for each row that counts: beyond 800 rows, a smaller gain is not worth an error
# far from the data (bench/satellite.R).
response_rule <- c(rows = 15, held_out = 2000, predicted = 500, error = 1.2, terms = 600, grouped = 1000,
                   nats = 0.0025)

# If the noise of Matern 3/2 is below the share `look` of the response's variance, a smoother profile may choose the
# response. If its noise is below `noise` and held-out squared errors are below the share `left`, the response is
# deterministic: a transform must lower held-out squared errors by the factor `error` (`kink` for Yeo-Johnson), or gain
# `gain` nats of held-out log density a row, less `sure` standard errors, while squared errors do not rise
# (bench/cliff.R).
little_response <- c(look = 0.02, noise = 1e-3, left = 0.05, error = 0.6, kink = 0.4, gain = 0.5, sure = 3)

# A transform counts as this number of parameters of 2 nats, as smooth noise does (bench/response.R).
transform_parameters <- 2L

# If the fit found the transform, the mean response is cut at the outermost response. A quantile of the response, this
# number of sds before its mean, replaces that end if it is further out (bench/point-predictions.R).
sure_sds <- 1

# The largest factor of the variance of a new response, where heavy tails beside a found transform raise it: one row
# far out says little of the others (bench/second-moments.R; a mean z^2 of 3.95 over 17 fits).
most_wider <- 100

# A response has few values if there are fewer than `values`, or if one has more than the share `share` and more than
# `times` rows (bench/response.R).
response_values <- c(share = 0.2, times = 5, values = 10)

# The largest variance of a log noise: 95 % of the noise is within a factor of 50 either way (bench/response.R).
most_spread <- 4

# `points`: features of smooth noise. `rounds` in which the variances of the coefficients are moved. Falling variances
# are not followed from `behind` nats below constant noise: of 16 sets none then gained over 12 (bench/response.R).
noise_trend_sizes <- c(points = 20L, rounds = 4L, behind = 10L)

# ---- learning with a non-Gaussian likelihood ------------------------------------------------------------------------

# Inducing points and rows in the last search, and in the searches that compare starts and kernels; searches with new
# points; nats that two steps must gain; most inducing points of a posterior of many rows; the smallest pivot of H,
# which only Student's t has below 1: near a saddle log det H falls without end, and with it Laplace's approximation is
# meaningless; inputs from which one common lengthscale is tried (bench/laplace-table.R, bench/laplace-near.R).
# `contrasts`: points times latent functions of several classes; `levels` of a group, each with points of its own;
# `decrement` at which Newton's steps for several classes end while hyperparameters are searched
# (bench/classes-table.R: the same NLPD to four digits); `alike`: the most by which the logs of the spreads of inputs
# that vary alike differ.
laplace_sizes <- list(points = 120L, rows = 3000L, few_points = 60L, few_rows = 1000L, rounds = 3L, gain = 1e-3,
                      most = 400L, pivot = 0.1, inputs = 10L, contrasts = 240L, levels = 150L, decrement = 1e-6,
                      alike = 0.05)

# Several classes. `most` points times latent functions, whose Cholesky factor takes a second; at least `least` points;
# learning from the rows of at most `learn` classes; a message from `seconds` on. class_draws: points of the average
# over f (bench/classes-table.R, bench/classes-average.R). wide_odds: the sd of log odds from which three classes are
# averaged along the widest of them (bench/classes-average.R).
class_points <- c(most = 4000, least = 20, learn = 12, seconds = 60)
class_draws <- 1024L
wide_odds <- 4

# The largest distance of the mean of a skewed posterior from its mode, in sds. With one row of a class and an unbounded
# prior variance, the true distance is about two sds of Laplace's posterior.
most_shift <- 2

# The centre of the prior of the kernel's variance; sds of the priors of the constant mean and of log theta
# (bench/laplace-table.R).
laplace_priors <- list(variance = 2, center = 3, theta = 2)

# ---- uncertainty of hyperparameters ---------------------------------------------------------------------------------

# Largest sd of a direction of log hyperparameters: 95 % are within a factor of 2,500 either way.
most_sd <- 4

# ---- the plan of a fit ---------------------------------------------------------------------------------------------

# Rows up to which the default posterior is exact. Its Cholesky factor takes 2 s of a thread (n^3 / 3 operations at 2e10
# a second), and 200 MB while it is used. bench/cliff.R
exact_rows <- 5000L

# Bytes of the Cholesky factors of exact posteriors that the session keeps beside the last one: one of 5,000 rows, or
# eight of 2,000. bench/cliff.R
most_kept <- 2^28

# Rows up to which other likelihoods take all rows as inducing points, a row source is fitted exactly and summary()
# computes leave-one-out. bench/stages.R
dense_rows <- 2000L

# Default number of inducing points. bench/methods.R
default_points <- 200L

# Number of inducing points beside neighbours if lengthscales are short. On four data sets 50 points predict as well as
# 200 or 400. bench/near.R
few_points <- 50L

# Default number of nearest neighbours in a prediction. bench/near.R
default_neighbours <- 40L

# The same beside groups, whose rows often lie together, as at the sites of a map. The RMSE of the mean, in sds of the
# exact posterior, is .03 to .05, with 40 neighbours .07 (bench/groups.R). Training rows keep 40.
neighbours_beside_groups <- 60L

# The same for a row to predict that is far from the data, as under clouds: its nearest rows lie on one side
# (src/neighbours.c). In holes of Matern fields the error of the mean is about half of that with 40 (bench/gaps.R), and
# 4,000 cells under clouds have RMSE 1.58, not 1.70, and interval score 6.99, not 7.29; with 100 for each row 1.61 and
# 7.08 (bench/satellite.R). As many neighbours from random subsamples, which lie in farther rings, are worse.
far_neighbours <- 200L

# Mean residual prior variance at the rows over the noise variance. From this ratio on, neighbours (or moved points)
# change predictions; below it, held-out log densities differ by less than 0.001 nats. bench/trial.R
enough_unexplained <- 0.005

# Held-out rows decide between neighbours and points alone up to this ratio (see enough_unexplained). bench/trial.R
trial_unexplained <- 0.5

# Above this ratio (see enough_unexplained) `few_points` are enough beside neighbours. bench/near.R
short_unexplained <- 5

# Lengthscales do not count as short if residual over prior variance is below this ratio, even without noise. For 6,000
# rows 200 points are then better than 50 by .10 (Hartmann) and .35 nats (borehole) in .1 s. bench/cliff.R
short_left <- 0.5

# Rows in the comparison by held-out rows: in the posteriors, held out, and searched for neighbours. bench/trial.R
trial_rows <- c(posterior = 20000L, held = 2000L, among = 100000L)

# The exact posterior of more rows than `exact_rows`, up to `rows` (a Cholesky factor takes 9 s of a thread and 512 MB).
# It replaces neighbours if it gains more than `gain` nats a row at `held` rows given `posterior` others
# (bench/cliff.R).
exact_trial <- c(rows = 8000, posterior = 3000, held = 500, among = 3000, gain = 0.02)

# If the exact posterior of some rows gains as much, more inducing points and neighbours serve larger data, with up to
# `rows` rows. For more rows, `many` inducing points serve where few of them lose, see few_trial (bench/cliff.R).
more_points <- c(rows = 16000, points = 800, neighbours = 100, many = 400)

# For more rows, short residual lengthscales and `short_left`: few points are kept unless they lose more than `gain`
# nats per held-out row. They predict twice as fast. bench/cliff.R, bench/satellite.R
few_trial <- c(posterior = 20000, held = 2000, among = 20000, gain = 0.02)

# Operations of the standard deviations of an exact posterior from which a message offers neighbours: 100 s of a thread.
# bench/exact-sd.R
slow_prediction <- 2e12

# Largest number of iterations that move inducing points: if the user asks for moved points, and by default.
# bench/methods.R
most_moves <- c(asked = 200L, default = 50L)

# Scratch memory, in bytes, for the greedy choice of points under other likelihoods. It limits the rows that are looked
# at: for 50,000 flights, 400 points from 10,000 rows predict as well as points from all rows. bench/laplace-near.R
greedy_memory <- 2^25

# From `least` rows on, the mode is first searched with every eighth row, in at most `steps` steps
# (bench/families_speed.R).
mode_rows <- c(least = 16000, by = 8, steps = 5)

# Shares of inputs in summary(): rows of a sample; kernel values that all predictions may take, and kernel values that a
# prediction from neighbours is worth (bench/structure.R).
share_sample <- c(rows = 2000, values = 2e7, near = 10000)

# The comparison by held-out rows under other likelihoods: rows in the posteriors and rows held out; inducing points
# beside neighbours; the root mean square step after which the latent function has settled and the most steps for each
# variance; the largest latent value from which working responses are made; how often, and by which factor, variances
# are raised; the gain in log density (nats a row) from which neighbours are used; the factor within which theta is
# learned again; the gain that residuals of neighbours must promise, or the comparison ends.
# bench/laplace-near.R, bench/families_speed.R
near_trial <- list(rows = 8000L, held = 5000L, points = 200L, settled = 1, steps = 3L, largest = 4, raised = 5L,
                   by = 3, gain = 0.001, theta = 10, residuals = 0.0007)

# ---- where to measure next ------------------------------------------------------------------------------------------

# next_points() first looks at `rows` rows for each input (at most `most`) and at `cloud` rows about the best data for
# each input. L-BFGS then starts from the best `starts` of them (bench/next-points.R). Without noise, a row is next to a
# measured one if it differs from it by at most `next_to` of the range in each input.
design_search <- c(rows = 250, most = 2000, cloud = 50, starts = 4, next_to = 1e-4)
