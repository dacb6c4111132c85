# The rows that hyperparameters are learned from, in which order, and what they say of units and of the least noise.

learning_sizes <- list(
  population = 1e6,                      # rows among which neighbours are looked for: how dense they are matters
  first = 200L,                          # the first rows of the order are always among those that count
  starts = c(rows = 4000L, near = 10L),  # every start: where there is much noise, many rows tell more than many near
  finals = c(rows = 5000L, near = 15L),  # the best of them
  kernels = c(rows = 8000L, near = 25L), # every kernel, from where the best start led: of fewer rows chance decides
  few = c(rows = 2000L, near = 20L),     # the same where the exact evidence has the last word
  whole = c(rows = 16000L, near = 30L),  # the one that is kept
  score = c(rows = 8000L, near = 40L))   # kernels are judged on rows given their neighbours among all

in_time <- function(pool) proc.time()[["elapsed"]] < pool$until

# The population in which neighbours are looked for, in a random order, and the order in which rows come to count. Equal
# rows are merged however few they are: what all of them say of the noise counts then, and not what the few among the
# rows that count happen to say.
learning_rows <- function(data, s) {
  data <- merge_all_equal_rows(data)
  n <- nrow(data$x)
  most <- min(n, s$rows, learning_sizes$population)
  pool <- if (most < n) take_rows(data, sort(sample.int(n, most))) else data # all rows: no copy of them
  pool <- list(x = pool$x, y = pool$y, weights = pool$weights, n = length(pool$y), twins = pool$twins,
               rank = sample.int(length(pool$y)), shift = data$shift, share = length(pool$y) / n,
               floor = noise_floor(data), weight = mean_weight(data),
               signal = signal_power(data), variance = response_variance(data), count = new.env(parent = emptyenv()),
               until = proc.time()[["elapsed"]] + s$steps$max_seconds)
  first <- min(pool$n, learning_sizes$first)
  early <- which(pool$rank <= first)
  early <- early[order(pool$rank[early])]
  others <- sample.int(pool$n)
  others <- others[pool$rank[others] > first]
  free_memory(pool)
  pool$take <- function(count) { # of `count` rows a fifth at most are the first of the order
    some <- min(length(early), max(1L, count %/% 5L))
    c(early[seq_len(some)], utils::head(others, count - some), if (count > some + length(others))
      early[-seq_len(some)])
  }
  pool$count$evaluations <- 0L
  pool
}

response_variance <- function(data) {
  w <- if (is.null(data$weights)) rep(1, length(data$y)) else data$weights
  response_power(data, data$y - sum(w * data$y) / sum(w))
}

# The unit of the kernel's variance: the mean square of y; where a few rows of huge weight have hardly any, that without
# their weight, which says nothing of how f varies.
signal_power <- function(data) {
  power <- response_power(data)
  if (is.null(data$weights)) return(power)
  w <- pmin(data$weights, stats::median(data$weights))
  plain <- sum(w * data$y^2) / sum(w)
  if (plain > 10 * power) plain else power
}

# Responses that are rounded to multiples of delta have noise of at least delta^2 / 12 (Sheppard): less would take the
# rounding for structure. Steps wider than the response's root mean square are no rounding. And no less than a millionth
# of the response's variance, which nothing but interpolation asks for; around a mean that was not taken out, no less
# than the kernel matrix has digits for.
noise_floor <- function(data) {
  r <- data$response - if (is.null(data$offset)) 0 else data$offset
  r <- sort(unique(r)) / data$scale
  gap <- if (length(r) > 1L) min(diff(r)) else 0
  power <- response_variance(data)
  max(1e-6 * power, 1e-11 * response_power(data), min(gap^2, power) / 12)
}
