# Returns the rows of a data frame as a source, in blocks of these sizes. Block number `fails` of a pass cannot be read.
in_blocks <- function(data, sizes = rep(ceiling(nrow(data) / 3), 3), fails = Inf, passes = new.env(),
                      failing_pass = 1) {
  ends <- pmin(cumsum(sizes), nrow(data))
  stopifnot(ends[length(ends)] == nrow(data))
  at <- 0
  passes$n <- 0
  rows_blocks(
    rewind = function() {
      passes$n <- passes$n + 1
      at <<- 0
    },
    next_block = function() {
      at <<- at + 1
      if (at == fails && passes$n == failing_pass) stop("the disk is gone")
      if (at <= length(sizes)) data[c(0, ends)[at] + seq_len(ends[at] - c(0, ends)[at]), , drop = FALSE]
    },
    columns = names(data))
}

# Raises the condition of Ctrl-C.
interrupt_now <- function() stop(interrupt_signal)

mixed_rows <- function(n = 400, seed = 1) {
  set.seed(seed)
  d <- data.frame(a = runif(n), b = rnorm(n), f = sample(letters[1:3], n, TRUE), g = factor(sample(3:1, n, TRUE), 4:1),
                  l = runif(n) < 0.5, w = sample(0:2, n, TRUE), o = runif(n))
  d$y <- 5 + sin(5 * d$a) + d$b^2 / 4 + (d$f == "b") + d$l + d$o + rnorm(n) / 5
  d$f[n - 1] <- "z"       # a level of the last block
  d$a[17] <- d$y[40] <- d$w[41] <- NA
  d$f[20] <- NA
  d[300:320, ] <- d[100, ] # equal rows
  d
}

# Returns a crew of fake workers, which run in this process. fails(what, i) is TRUE if the worker that has part i dies
# at "start" or "value". `sent` records in order what the workers get.
fake_crew <- function(size, fails = function(what, i) FALSE, sent = new.env()) {
  sent$parts <- list()
  list(name = "test", size = function() size, start = function(f, args) {
    if (fails("start", args[[2]])) stop("no such worker")
    sent$parts <- c(sent$parts, list(args[2:3]))
    list(f = f, args = args)
  }, landed = function(flight) TRUE, value = function(flight) {
    if (fails("value", flight$args[[2]])) stop("gone")
    do.call(flight$f, flight$args)
  })
}
