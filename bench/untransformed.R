# Would leave-one-out predictions of the final models show where pfdtc() should keep the response as given?
#   Rscript bench/untransformed.R [package::frame:response ...]     splits 1 to SPLITS (3) of each, at most 300 rows
# The inputs are all other columns. RESULTS.md ("Leave-one-out of the final models") has the results.
#
# For each split in which the default has a transform and an exact posterior, prints, each beside transform = "none":
#   rmse, nlpd     RMSE of held-out rows as a ratio, and the difference of NLPD (above 0: the default is worse)
#   loo, t         leave-one-out RMSE as a ratio; mean difference of squared errors in standard errors
#   density, t     mean difference of leave-one-out log densities (above 0: the default is worse), in standard errors
# and the same leave-one-out numbers beside the final kernel, learned again for the response as given (`kernel`).
library(pfdtc)
internal <- asNamespace("pfdtc")
seen <- new.env()

replace_internal <- function(name, with) {
  unlockBinding(name, internal)
  assign(name, with, internal)
}

# Keeps the data, the final model and its settings in `seen`.
local({
  stage <- internal$response_stage
  shared <- internal$choose_shared
  last <- internal$learn_finally
  replace_internal("response_stage", function(data, ...) stage(seen$data <- data, ...))
  replace_internal("choose_shared", function(now, s) {
    out <- shared(now, s)
    seen$s <- out$s
    out
  })
  replace_internal("learn_finally", function(now, s, ...) {
    seen$s <- s
    out <- last(now, s, ...)
    seen$model <- out$model
    out
  })
})

# Returns leave-one-out errors and log densities of the rows in units of y.
left_out <- function(fit, y) {
  f <- internal$loo_rows(fit)
  slope <- if (is.null(fit$transform)) 0 else internal$log_slope(fit$transform, y)
  list(error = unname(y - predict(fit, type = "loo")),
       density = internal$noisy_log_density(internal$transformed(fit$transform, y), f) + slope)
}

# The same with the final kernel, learned again for the response as given, for the distinct inputs numbered by `group`.
# Returns NULL if they are under nine tenths of the rows, because means of responses have other densities.
final_kernel_left_out <- function() {
  rows <- internal$rows_for_response(seen$data, seq_along(seen$data$y))
  given <- internal$rows_transformed(rows, NULL)
  old <- seen$model$problem
  if (old$pool$n < 0.9 * length(rows$group)) return(NULL)
  problem <- internal$learning_problem(internal$pool_of_response(old$pool, given), seen$s, old$profile)
  theta <- pmin(pmax(seen$model$theta, problem$lower), problem$upper)
  run <- internal$learn_exactly(problem, internal$climb(problem, theta, "whole", 0L), enough = 0.1)
  at <- internal$native_exact_evidence(problem$pool, problem$at(run$theta), problem$run)
  error <- at$alpha / at$precision
  list(group = rows$group, error = error * given$scale,
       density = stats::dnorm(error, 0, 1 / sqrt(at$precision), log = TRUE) - log(given$scale))
}

compare <- function(one, other) {
  if (is.null(other)) return(rep(NA_real_, 4L))
  if (!is.null(other$group)) one <- lapply(one, function(v) tapply(v, other$group, mean))
  in_errors <- function(d) mean(d) / stats::sd(d) * sqrt(length(d))
  more <- other$density - one$density
  c(sqrt(mean(one$error^2) / mean(other$error^2)), in_errors(one$error^2 - other$error^2), mean(more), in_errors(more))
}

one_split <- function(d, seed) {
  set.seed(seed)
  rows <- sample(nrow(d))
  n <- min(300L, ceiling(0.75 * nrow(d)))
  train <- d[rows[seq_len(n)], ]
  test <- d[utils::head(rows[-seq_len(n)], 400L), ]
  formula <- stats::reformulate(".", as.name(names(d)[1L]))
  fit <- pfdtc(formula, train)
  if (is.null(fit$transform) || fit$posterior != "exact") return(cat("no transform\n"))
  kernel <- final_kernel_left_out()
  none <- pfdtc(formula, train, transform = "none")
  loo <- lapply(list(fit, none), left_out, train[[1L]])
  rmse <- function(fit) sqrt(mean((test[[1L]] - predict(fit, test))^2))
  nlpd <- function(fit) -mean(predict(fit, test, type = "density"))
  words <- "loo %.3f t %.2f density %+.3f t %.2f"
  show <- function(other) do.call(sprintf, c(words, as.list(compare(loo[[1L]], other))))
  cat(sprintf("rmse %.3f nlpd %+.3f", rmse(fit) / rmse(none), nlpd(fit) - nlpd(none)), show(loo[[2L]]), "kernel",
      show(kernel), "\n")
}

if (sys.nframe() == 0L) {
  asked <- commandArgs(TRUE)
  if (!length(asked)) {
    asked <- c("modeldata::concrete:blast_furnace_slag", "mlbench::Vehicle:Pr.Axis.Rect",
               "mlbench::BostonHousing:zn", "mlbench::BostonHousing:ptratio")
  }
  for (name in asked) {
    part <- strsplit(name, "::?")[[1L]]
    place <- new.env()
    utils::data(list = part[2L], package = part[1L], envir = place)
    d <- stats::na.omit(as.data.frame(place[[part[2L]]]))
    d <- d[c(part[3L], setdiff(names(d), part[3L]))]
    for (seed in seq_len(as.integer(Sys.getenv("SPLITS", "3")))) {
      cat(sprintf("%-42s %d  ", name, seed))
      suppressMessages(suppressWarnings(one_split(d, seed)))
    }
  }
}
