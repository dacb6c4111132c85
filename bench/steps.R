# What does each step of a default fit cost, and what does it change, on the sets of bench/sets.R and bench/further?
#   SETS_FOLDER=bench:bench/further R_LIBS=LIBRARY Rscript bench/steps.R FILE          default fits
#   STEP=shared SETS="MASS::crabs;AER::Journals" ... Rscript bench/steps.R FILE         without one step, on some sets
# Adds a row for each set to FILE: held-out NLPD, RMSE and coverage, log marginal likelihood, kernel, response,
# processor seconds of the fit and of its steps (a step includes the steps that it calls), and the steps that had an
# effect. Results are in bench/RESULTS.md, "Steps of a default fit".
suppressMessages(library(pfdtc))
options(pfdtc.threads = 1L)
inside <- asNamespace("pfdtc")
source("bench/sets.R")
put <- function(name, value) {
  unlockBinding(name, inside)
  assign(name, value, inside)
}
cpu <- function() sum(proc.time()[1:2])

# ---- omit one step --------------------------------------------------------------------------------------------------

same <- function(first, ...) first
none <- function(...) NULL
old <- mget(c("responses_to_try", "candidates", "linear_model", "may_be_additive", "finish_starts"), inside)
# Returns a function for the models of the response that are tried, without transforms of this `kind`.
transforms_but <- function(kind) {
  function(...) {
    open <- old$responses_to_try(...)
    replace(open, "transforms", list(Filter(function(one) !identical(one$kind, kind), open$transforms)))
  }
}
kernels_but <- function(name) function(...) replace(old$candidates(...), name, NULL)
without <- list(
  log = list(responses_to_try = transforms_but("log")),
  yeojohnson = list(responses_to_try = transforms_but("yeojohnson")),
  smooth_noise = list(responses_to_try = function(...) replace(old$responses_to_try(...), "trends", list(list(NULL)))),
  tails = list(responses_to_try = function(...) replace(old$responses_to_try(...), "tails", FALSE)),
  final_tails = list(with_final_tail = same), simulators = list(with_smoother_profile = same),
  little_noise = list(may_lack_noise = function(...) FALSE), refusals = list(reason_to_refuse = none),
  log_inputs = list(warp_to_logs = none), additive_in_merit = list(with_terms_in_merit = same),
  additive = list(choose_additive = same, choose_additive_on_some = same),
  pairs = list(may_be_additive = function(kernel, terms = "single") terms == "single" && old$may_be_additive(kernel)),
  individuals = list(identifying_columns = function(pool) integer()), seasons = list(choose_season = same),
  shared = list(choose_shared = function(now, s) list(now = now, s = s)), linear = list(choose_line = same),
  linear_alone = list(linear_model = function(problem) replace(old$linear_model(problem), "value", -Inf)),
  kernel_again = list(line_rule = replace(old$line_rule, "again", Inf)), smooth_limit = list(smooth_runs = none),
  rivals = list(find_rival = none),
  further_ends = list(finish_starts = function(problem, thetas) old$finish_starts(problem, thetas[1L])),
  two_scales = list(candidates = kernels_but("two_scales")), matern12 = list(candidates = kernels_but("matern12")),
  matern52 = list(candidates = kernels_but("matern52")), se = list(candidates = kernels_but("se")))
step <- Sys.getenv("STEP")
for (name in names(without[[step]])) put(name, without[[step]][[name]])

# ---- seconds and effects --------------------------------------------------------------------------------------------

book <- new.env()
label_differs <- function(result, first) !identical(result$label, first$label)
theta_differs <- function(result, first) !identical(result$theta, first$theta)
best_differs <- function(result, first) inside$best_of(result) != inside$best_of(first)
timed <- list(response_stage = NULL, with_tail = NULL, with_uneven_noise = NULL, run_starts = NULL,
              finish_starts = NULL, learn_finally = NULL, search_beside_line = NULL, learn_exactly = NULL, climb = NULL,
              choose_line = label_differs, choose_season = label_differs, choose_additive = label_differs,
              with_terms_in_merit = best_differs, with_short_lengthscale = best_differs,
              explain_noise = theta_differs, compare_little_noise = theta_differs,
              choose_shared = function(result, first) isTRUE(result$gain > 0),
              choose_exactly = function(result, first) isTRUE(result$exact[["gain"]] > 0),
              with_smoother_profile = function(result, first) !identical(result, first),
              with_log_inputs = function(result, first) !is.null(result$data$warp),
              with_final_tail = function(result, first) !identical(result$noise_tail, first$noise_tail),
              checked_response = function(result, first) length(result$refused) > 0L)
for (name in names(timed)) local({
  what <- name
  run <- get(what, inside)
  put(what, function(...) {
    begun <- cpu()
    result <- run(...)
    book$seconds[what] <- sum(book$seconds[what], cpu() - begun, na.rm = TRUE)
    if (!is.null(timed[[what]]) && isTRUE(timed[[what]](result, ..1))) book$effects <- union(book$effects, what)
    result
  })
})

file <- commandArgs(TRUE)[1]
for (name in sets()) {
  s <- train_and_test(name)
  book$seconds <- numeric()
  book$effects <- character()
  set.seed(1)
  begun <- cpu()
  fit <- tryCatch(suppressMessages(suppressWarnings(pfdtc(s$formula, s$train))), error = function(e) NULL)
  if (is.null(fit)) next
  seconds <- cpu() - begun
  row <- data.frame(
    set = name, rows = nrow(s$train), t(held_out_scores(fit, s$test, stats::sd(s$train[[1]]))), seconds = seconds,
    loglik = as.numeric(stats::logLik(fit)), kernel = fit$kernel$label,
    response = c(fit$response$candidate[fit$response$chosen], "")[1], effects = toString(book$effects),
    steps = paste(sprintf("%s %.3f", names(book$seconds), book$seconds), collapse = ", "))
  more <- file.exists(file)
  utils::write.table(row, file, sep = ",", row.names = FALSE, col.names = !more, append = more)
}
