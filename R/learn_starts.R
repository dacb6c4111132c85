# Several starts, where they lead, and whether the best two ends explain the data differently.

# Lengthscales and noise to start from, in units of sqrt(d) spreads and of the response: optima at which noise explains
# everything are many, and it is the short lengthscales and the low noise that escape from them. In one dimension a
# series may have dozens of waves.
start_grid <- function(d, restarts) {
  short <- if (d == 1L) c(0.01, 0.03) else if (d == 2L) 0.03
  grid <- rbind(expand.grid(lengthscale = c(0.3, 1, 3, 0.1, short), noise = 0.05),
                expand.grid(lengthscale = c(1, 0.3, 3), noise = 0.5), data.frame(lengthscale = 10, noise = 0.8))
  if (is.null(restarts)) return(grid)
  if (restarts <= nrow(grid)) return(grid[seq_len(restarts), ])
  more <- restarts - nrow(grid)
  rbind(grid, data.frame(lengthscale = exp(stats::runif(more, log(0.03), log(5))),
                         noise = exp(stats::runif(more, log(0.01), log(0.8)))))
}

# Beside the units. Two terms over the same inputs begin apart: alike they would stay so.
start_values_of <- function(problem, lengthscale, noise) {
  table <- problem$table
  start <- ifelse(table$ard, table$start * lengthscale, table$start)
  for (what in unique(table$what[table$leaf > 0L])) {
    leaves <- unique(table$leaf[table$what == what & table$ard])
    for (i in seq_along(leaves)) start[table$leaf == leaves[i] & table$ard] <-
      start[table$leaf == leaves[i] & table$ard] * 5^(1 - i)
  }
  c(start, noise)
}

# Every start a few steps, the better half of them some more, the best three to the end.
# `note(theta)` is told the best after each.
run_starts <- function(problem, restarts, note = function(theta) NULL) {
  pool <- problem$pool
  grid <- start_grid(sum(problem$table$ard), restarts)
  starts <- function(known) {
    lapply(seq_len(nrow(grid)), function(i) {
      theta <- problem$unit + log(start_values_of(problem, grid$lengthscale[i], grid$noise[i]))
      theta[known] <- problem$given[known]
      pmin(pmax(theta, problem$lower), problem$upper)
    })
  }
  known <- !is.na(problem$given)
  thetas <- starts(known)
  # values far from any that data of this size have may lead nowhere: not from them alone
  if (any(problem$absurd)) {
    thetas <- c(thetas, starts(known & !problem$absurd))
    grid <- rbind(grid, grid)
  }
  kept <- !duplicated(thetas)
  thetas <- thetas[kept]
  size <- learning_sizes$starts
  rows <- pool$take(min(size[["rows"]], pool$n))
  # in units of the spreads all lengthscales are equal in every start: so are the neighbours
  equal <- !problem$composite && !any(known & c(problem$table$ard, FALSE))
  shared <- if (equal) problem$neighbours(thetas[[1L]], rows, size[["near"]])
  most <- -Inf
  runs <- lapply(thetas, function(theta) {
    run <- climb(problem, theta, size, steps = 5L, neighbours = shared, enough = 0.5)
    if (run$value > most) {
      most <<- run$value
      note(run$theta)
    }
    run
  })
  value <- vapply(runs, `[[`, 0, "value")
  better <- utils::head(order(-value), max(3L, length(runs) %/% 2L))
  runs[better] <- lapply(runs[better], function(run) climb(problem, run$theta, size, c(6L, 6L), enough = 0.2))
  value <- vapply(runs, `[[`, 0, "value")
  report <- data.frame(start = seq_along(runs), lengthscale = grid$lengthscale[kept], noise = grid$noise[kept],
                       evidence = value * pool$n / length(rows) / pool$share, kept = FALSE)
  best <- order(-value)
  report$kept[best[1L]] <- TRUE
  attr(report, "same") <- 2 * pool$n / length(rows) / pool$share # 2 nats on the rows that were looked at
  list(thetas = apart(lapply(runs[best[value[best] >= max(value) - 30]], `[[`, "theta")), report = report)
}

# Of where runs ended, the best first, at most three no two of which are much the same.
apart <- function(thetas) {
  out <- thetas[1L]
  for (theta in thetas[-1L]) {
    if (length(out) == 3L) break
    if (all(vapply(out, function(other) max(abs(theta - other)) > 0.3, NA))) out <- c(out, list(theta))
  }
  out
}

# The best starts on more rows: where they end, the best first.
finish_starts <- function(problem, thetas) {
  few <- is_small_enough(problem$pool)
  finish <- function(theta) climb(problem, theta, learning_sizes$finals, c(6L, if (few) 6L else 2L), enough = 0.1)
  best_first <- function(runs) runs[order(-vapply(runs, `[[`, 0, "value"))]
  runs <- best_first(lapply(thetas, finish))
  longer <- if (!few) lengthened(problem, runs[[1L]]$theta)
  if (is.null(longer)) runs else best_first(c(list(finish(longer)), runs))
}

# One lengthscale may have stayed short since the others were, a hundred nats behind: then the likelihood is larger at
# once where that one is as long as its prior has it. theta with the one of which that is most so, NULL: of none, or of
# more rows than to be looked through for neighbours that often.
lengthened <- function(problem, theta) {
  pool <- problem$pool
  if (pool$n > learning_sizes$whole[["rows"]]) return(NULL)
  size <- learning_sizes$kernels
  rows <- pool$take(min(size[["rows"]], pool$n))
  tried <- lapply(which(problem$table$ard & problem$free[-problem$last]), function(j) {
    replace(theta, j, problem$unit[[j]] + problem$table$middle[[j]])
  })
  value <- vapply(c(list(theta), tried), function(theta) {
    problem$evaluate(theta, rows, problem$neighbours(theta, rows, size[["near"]]), slopes = FALSE)$value
  }, 0)
  best <- which.max(value)
  if (best > 1L) tried[[best - 1L]]
}

# Whether two ends explain the data differently: what the one takes for noise the other takes for structure, twice the
# noise variance, and a tenth of the response's more.
explains_otherwise <- function(problem, theta, other) {
  last <- problem$last
  noise <- exp(c(theta[[last]], other[[last]]))
  max(noise) > 2 * min(noise) && max(noise) - min(noise) > 0.1 * exp(problem$unit[[last]])
}

# Of several ends, the best first, the next that explains the data otherwise, as a list of one (or none); `behind`: by
# how many nats, of all rows.
find_rival <- function(problem, ends) {
  other <- Filter(function(end) explains_otherwise(problem, ends[[1L]]$theta, end$theta), ends)
  if (!length(other)) return(NULL)
  pool <- problem$pool
  other[[1L]]$behind <- (ends[[1L]]$value - other[[1L]]$value) * pool$n / pool$share /
    min(pool$n, learning_sizes$finals[["rows"]])
  other[1L]
}

# The noise variances of what was learned and of a rival that the evidence does not tell from it, being within two nats.
describe_rival <- function(problem, theta, rival) {
  if (is.null(rival) || !isTRUE(rival[[1L]]$behind <= 2)) return(NULL)
  other <- rival[[1L]]$theta
  if (!explains_otherwise(problem, theta, other)) return(NULL)
  list(noise = exp(c(theta[[problem$last]], other[[problem$last]])), behind = rival[[1L]]$behind)
}

# `unit`: of the noise variance
warn_rival <- function(learned, unit) {
  rival <- attr(learned, "rival")
  if (is.null(rival)) return(invisible())
  warn_convergence(sprintf(paste(
    "Two explanations of the data are about as likely: noise of variance %.3g, and of variance %.3g (log evidence less",
    "by %.1f). The first was taken; more rows, or a `noise` or lengthscale that is known, would decide."),
    unit * rival$noise[1L], unit * rival$noise[2L], rival$behind), noise = unit * rival$noise, behind = rival$behind)
}
