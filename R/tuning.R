# Constants that were tuned: value, unit, and the script in bench/ that set it or shows what it is worth.

# Rows up to which the default posterior is exact. Its Cholesky factor then takes 32 MB. bench/stages.R
exact_rows <- 2000L

# Default number of inducing points. bench/methods.R
default_points <- 200L

# Number of inducing points beside neighbours where lengthscales are short: on four data sets 50 predict as well as 200
# or 400. bench/near.R
few_points <- 50L

# Default number of nearest neighbours in a prediction. bench/near.R
default_neighbours <- 40L

# Residual prior variance at the rows, on average, over the noise variance. From this share on, neighbours (or moved
# points) change predictions; below, held-out log densities differ by less than 0.001 nats. bench/trial.R
enough_unexplained <- 0.005

# The same ratio up to which held-out rows decide between neighbours and inducing points alone. bench/trial.R
trial_unexplained <- 0.5

# The same ratio above which lengthscales are so short that `few_points` are enough beside neighbours. bench/near.R
short_unexplained <- 5

# Rows in the comparison by held-out rows: those in the posteriors, those held out, those searched for neighbours.
# bench/trial.R
trial_rows <- c(posterior = 20000L, held = 2000L, among = 100000L)

# Most iterations in which inducing points are moved: when the user asks for moved points, and by default.
# bench/methods.R
most_moves <- c(asked = 200L, default = 50L)

# Scratch memory, in bytes, for the greedy choice of points under other likelihoods. It limits the rows that are looked
# at: for 50,000 flights, 400 points from 10,000 rows predict as well as points from all rows. bench/laplace-near.R
greedy_memory <- 2^25

# The comparison by held-out rows under other likelihoods: rows in the posteriors and rows held out; inducing points
# beside neighbours; the root mean square step after which the latent function has settled and the most steps for each
# variance; the largest latent value from which working responses are made; how often, and by which factor, variances
# are raised; the gain in log density (nats a row) from which neighbours are used; the factor within which theta is
# learned again. bench/laplace-near.R
near_trial <- list(rows = 8000L, held = 5000L, points = 200L, settled = 1, steps = 3L, largest = 4, raised = 5L,
                   by = 3, gain = 0.001, theta = 10)
