# Plans a fit: decide() returns what the fit will do and why, fit_by_plan() does it. No stage of a fit changes its plan.

# Returns what decide() reads about the data. `n` is the number of rows after merging equal rows, `rows` before merging.
facts_of <- function(data, asked) {
  list(n = nrow(data$x), rows = data$n, keep = isTRUE(asked$keep_data), sample = isTRUE(asked$keep_sample),
       source = !is.null(data$whole), effects = count_effects(asked$kernel, data$x),
       memory = getOption("pfdtc.max_memory", 2^32))
}

# Returns a plan. `asked` is the result of complete_settings(). `look` has the measurements so far. A "gain" is a vector
# with the mean difference in log density (`gain`, nats per row), its standard error `se`, and the number of `rows`:
#
#   learned gain of hyperparameters by the exact likelihood over those by the Vecchia likelihood, for rows given their
#           neighbours, or NULL if they were not compared
#   exact   TRUE if the exact posterior could be computed
#   dense   gain of the exact posterior of a sample of rows over inducing points with neighbours
#   few     gain of few inducing points over more, both with neighbours
#   rho     mean weight times mean residual prior variance of the rows, divided by the noise variance
#   left    mean over the rows of the residual prior variance, divided by the mean prior variance
#   trial   gain of inducing points alone over neighbours at held-out rows, or NULL if a posterior failed
#   alone   rho for the kernel and inducing points that were best alone in this trial
#   seconds time until the limit `max_seconds`; afterwards posteriors are not compared, and cheaper ones are chosen
#
# The plan has the parts `learn` (hyperparameters), `posterior`, `goal` (accuracy), `run` (passes over rows), `because`
# (a sentence for each choice) and `next_look`, the measurement to make before the plan is final, or NULL.
decide <- function(facts, asked, look = list()) {
  control <- asked$control
  asked$traits <- method_traits(asked)
  if (is.null(control$maxit)) control$maxit <- most_moves[[if (is.null(reason_to_move(asked))) "default" else "asked"]]
  learn <- learning_settings(asked$kernel, asked$noise, asked$columns, asked$free, control, asked$hyper, asked[["m"]],
                             asked$likelihood, asked[["center"]], !isTRUE(asked$plain), asked$names, asked$began)
  chosen <- if (is.null(asked$likelihood)) decide_posterior(facts, asked, look) else decide_working(facts, asked, look)
  aux <- asked[["aux"]]
  if (is.null(aux) && identical(asked$traits$objective, "pf") && chosen$posterior$kind != "exact") aux <- aux_white()
  inducing <- if (is.null(asked$inducing)) "greedy" else asked$inducing
  joint <- asked$hyper == "joint" && length(asked$free) # hyperparameters are optimised together with the points
  points <- list(inducing = inducing, inducing_method = if (is.matrix(inducing)) "given" else inducing,
                 try_starts = is.null(asked$inducing) && !is.null(aux) && aux_kinds[[aux$kind]]$objective == "white",
                 objective = asked$traits$objective, aux = aux, joint = if (joint) learn)
  c(asked[intersect(names(asked), c("method", "call", "keep_data", "again", "control"))],
    list(learn = learn, posterior = c(chosen$posterior, points, learn[c("rows", "jitter", "steps", "run")]),
         goal = list(tol = asked$tol, quantile = control$tol_quantile), run = learn$run,
         next_look = chosen$next_look, because = c(because_learned(look), chosen$because)))
}

# Returns the plan before any measurement, and in its element `asked` the settings completed by complete_settings().
first_plan <- function(data, asked) {
  asked <- complete_settings(data, asked)
  c(decide(facts_of(data, asked), asked), list(asked = asked))
}

# Fits by a plan. While plan$next_look names a measurement, the function of that name in `steps` makes it, and decide()
# returns a new plan. Then steps$make() computes the posterior. `now` collects results and measurements (`look`).
fit_by_plan <- function(data, asked, state, steps) {
  facts <- facts_of(data, asked)
  plan <- decide(facts, asked)
  # Check that there is memory for an exact posterior that the user asked for.
  m <- plan$posterior$m
  if (plan$posterior$kind == "exact" && !identical(plan$next_look, "exact"))
    announce_memory(8 * (1 + !is.null(plan$posterior$joint)) * as.double(m)^2, m)
  free_memory(data)
  now <- list(data = data, learned = steps$learn(data, plan$learn, state))
  now$look <- list(learned = now$learned$exact)
  free_memory(data)
  while (!is.null(plan$next_look)) {
    now <- steps[[plan$next_look]](now, plan, state)
    now$look$seconds <- plan$learn$steps$until - proc.time()[["elapsed"]]
    plan <- decide(facts, asked, now$look)
  }
  steps$make(now, plan, state)
}

# Checks that an exact posterior of n rows may take `bytes` of memory, and sends a message if these exceed 100 MB.
announce_memory <- function(bytes, n) {
  check_memory(bytes, sprintf("the exact posterior of %d rows", as.integer(n)))
  if (bytes < 1e8) return(invisible())
  tell_classed("memory", sprintf("The exact posterior of %d rows takes %s.", as.integer(n), show_bytes(bytes)))
}

with_posterior <- function(plan, ...) replace(plan, "posterior", list(utils::modifyList(plan$posterior, list(...))))

# Returns the reason why the places of inducing points are optimised: an argument, or the function that fits; or NULL.
reason_to_move <- function(asked) {
  given <- c(maxit = !is.null(asked$control$maxit), aux = !is.null(asked[["aux"]]), tol = !is.null(asked$tol))
  if (any(given)) return(sprintf("`%s` was given", names(given)[given][1L]))
  if (asked$hyper %in% c("pilot", "joint")) return(sprintf("`hyper` = \"%s\" was given", asked$hyper))
  if (!identical(asked$traits$objective, "pf")) sprintf("%s() does so", asked$method)
}

exact_is_affordable <- function(facts, most = exact_rows) {
  facts$keep && facts$n <= most && 8 * as.double(facts$n)^2 <= facts$memory
}

# ---- the choice of the posterior ------------------------------------------------------------------------------------
# decide_posterior() and decide_working() return list(posterior = list(kind, m, neighbours, move, ...), next_look,
# because). `kind` is "exact", "points" or "near", and m is the number of inducing points, or of rows for "exact".
# `next_look` names the next computation on the data that the plan needs, or is NULL.

# Plans the posterior for Gaussian responses. gp_exact() has the exact posterior of all rows, gp_subsample() of m rows.
decide_posterior <- function(facts, asked, look) {
  m <- if (is.matrix(asked$inducing)) nrow(asked$inducing) else if (!is.null(asked[["m"]])) asked$m else
    min(default_points, facts$rows)
  if (is.null(asked$traits$objective)) {
    some <- asked$traits$some
    return(list(posterior = list(kind = "exact", m = if (some) m else facts$n, some = some, neighbours = 0L),
                because = c(posterior = sprintf("%s() computes the exact posterior%s.", asked$method,
                                                if (some) sprintf(" of %d random rows", m) else ""))))
  }
  open <- asked$traits$chooses && leaves_points_open(asked)
  pays <- isTRUE(look$dense[["gain"]] > max(look$dense[["se"]], exact_trial[["gain"]]))
  if (open && exact_is_affordable(facts, if (pays) exact_trial[["rows"]] else exact_rows) && !isFALSE(look$exact)) {
    return(list(posterior = list(kind = "exact", m = facts$n, some = FALSE, neighbours = 0L),
                next_look = if (is.null(look$exact)) "exact",
                because = c(posterior = sprintf("The posterior is exact: %s.", if (pays) {
                  paste("this", describe_dense(look$dense))
                } else {
                  sprintf("this is the default for at most %s rows", show_count(exact_rows))
                }), unused = if (isTRUE(asked$neighbours > 0L))
                  "`neighbours` has no effect, because the posterior is exact. `m` requests inducing points.")))
  }
  grouped <- has_groups(asked$kernel)
  if (is.null(look$rho)) return(list(posterior = list(kind = "points", m = m, neighbours = 0L), next_look = "points"))
  one_factor <- facts$n <= near_training[["rows"]] && m + facts$effects <= effect_limits[["dense"]]
  open <- open && (facts$keep || facts$sample) && (!grouped || one_factor && !facts$source)
  too_few <- look$rho >= unexplained_rule[["enough"]]
  undecided <- is.null(asked$neighbours) && open && too_few && look$rho <= unexplained_rule[["trial"]] && !grouped
  default <- if (!open || !too_few) 0L else if (grouped) neighbours_with_groups else default_neighbours
  near <- min(asked$neighbours %||% default, facts$n)
  very_few <- look$rho > unexplained_rule[["short"]]
  short <- very_few && (!isTRUE(look$left <= unexplained_rule[["left"]]) || !is.null(look$few))
  if (open && short && near > 0L) m <- min(m, few_points)
  alone <- undecided && isTRUE(look$trial[["gain"]] > look$trial[["se"]])
  compared <- open && facts$keep && !facts$source && !grouped && !alone && near > 0L && is.null(asked$neighbours) &&
    is.null(look$exact)
  next_look <- setdiff(c(if (undecided && !facts$source) "trial", if (compared) {
    if (facts$n <= more_points[["rows"]]) "dense" else if (very_few && !short) "few"
  }), names(look))
  late <- isTRUE(look$seconds <= 0) && length(next_look) > 0L
  if (length(next_look) && !late) {
    return(list(posterior = list(kind = "near", m = m, neighbours = near, rho = look$rho), next_look = next_look[1L]))
  }
  if (pays) near <- max(near, as.integer(more_points[["neighbours"]]))
  if (pays && !short) m <- more_points[["points"]]
  many <- isTRUE(look$few[["gain"]] <= -few_trial[["gain"]])
  if (many) m <- more_points[["many"]]
  move <- !grouped && (!is.null(reason_to_move(asked)) || (too_few && near == 0L))
  if (alone) near <- 0L
  untrained <- near > 0L && !grouped && facts$n <= near_training[["rows"]] &&
    facts$n * near_training[["seconds"]] > max(look$seconds, asked$control$max_seconds / 4)
  list(posterior = list(kind = if (near > 0L) "near" else "points", m = m, neighbours = near, move = move,
                        untrained = untrained, more = pays || many, trial = look$trial,
                        rho = if (alone) look$alone else look$rho),
       because = c(because_points(facts, asked, look), because_near(asked, look, near, move),
                   move = because_moved(asked, move, near, alone), late = if (late) because_not_compared,
                   untrained = if (untrained) "Because of `max_seconds`, only new rows have neighbours."))
}

# Plans the posterior for non-Gaussian likelihoods.
decide_working <- function(facts, asked, look) {
  n <- facts$n
  near <- min(asked$neighbours %||% 0L, n)
  move <- !is.null(asked[["aux"]])
  few <- move || near > 0L || !is.null(asked$tol)
  functions <- functions_of_f(asked$likelihood)
  m <- asked[["m"]] %||% if (n <= dense_rows && !few) n else min(laplace_sizes$most, n)
  if (is.null(asked[["m"]]) && functions > 1L) m <- min(m, max(class_points[["least"]],
                                                             class_points[["most"]] %/% functions))
  # A mode on m inducing points takes about 8 n (m functions)^2 / 1e10 seconds, as in check_size_of_classes(). This may
  # be a quarter of `max_seconds`.
  most <- max(class_points[["least"]], floor(sqrt(1e10 * asked$control$max_seconds / (4 * 8 * n)) / functions))
  fewer <- leaves_points_open(asked) && n > dense_rows && most < m
  if (fewer) m <- as.integer(most)
  undecided <- is.null(asked$neighbours) && leaves_points_open(asked) && facts$keep && n > dense_rows &&
    n <= near_training[["rows"]] && response_of(asked)$concave && response_of(asked)$approx == "laplace" &&
    functions == 1L && !has_groups(asked$kernel)
  late <- undecided && is.null(look$trial) && isTRUE(look$seconds <= 0)
  next_look <- if (!"rho" %in% names(look)) "points" else if (undecided && !late && !"trial" %in% names(look)) "trial"
  if (undecided && isTRUE(look$trial[["gain"]] < -near_trial$gain)) near <- default_neighbours
  list(posterior = list(kind = if (near > 0L) "near" else "points", m = m, neighbours = near, move = move,
                        trial = look$trial), next_look = next_look,
       because = c(because_points(facts, asked, list(m = m)), because_near(asked, look, near, move),
                   late = if (late) because_not_compared, most = if (fewer) "`max_seconds` limits inducing points."))
}

# ---- reasons for the plan, which print() shows ----------------------------------------------------------------------

because_not_compared <- "Posteriors were not compared on held-out rows, because `max_seconds` was reached."

because_learned <- function(look) {
  by <- look$learned
  if (is.null(by)) return(NULL)
  better <- by[["gain"]] > 0
  c(learned = sprintf(paste("Hyperparameters maximise the %s: the log density of rows given their neighbours is",
                            "higher by %.3g per row (standard error %.2g) than with the %s."),
                      if (better) sprintf("exact log marginal likelihood of %d rows", as.integer(by[["rows"]])) else
                        "Vecchia likelihood", abs(by[["gain"]]), by[["se"]],
                      if (better) "Vecchia likelihood" else "exact log marginal likelihood"))
}

because_points <- function(facts, asked, look) {
  most <- if (is.null(asked$likelihood)) exact_rows else dense_rows
  c(posterior = if (isFALSE(look$exact)) {
    "Inducing points are used, because the noise is too small for a Cholesky factorisation of the exact posterior."
  } else if (!asked$traits$chooses) {
    sprintf("Inducing points are used, because %s() requires them.", asked$method)
  } else if (!leaves_points_open(asked)) {
    sprintf("Inducing points are used, because %s was given.", argument_for_points(asked))
  } else if (functions_of_f(asked$likelihood) > 1L && look$m < facts$n) {
    sprintf("Each of the %2$d latent functions has at most %1$d inducing points.", as.integer(look$m),
            functions_of_f(asked$likelihood))
  } else if (facts$n > most) {
    n <- paste0(show_count(facts$n), if (isTRUE(facts$n < facts$rows)) " distinct")
    sprintf("Inducing points are used, because there are %s rows. %s", n, if (!is.null(look$dense)) {
      sprintf("The exact posterior %s, which is too little.", describe_dense(look$dense))
    } else if (!is.null(asked$likelihood)) {
      sprintf("Up to %s rows their number is not limited.", show_count(most))
    } else {
      sprintf("By default the posterior is exact up to %s rows, and up to %s if that predicts better.",
              show_count(most), show_count(exact_trial[["rows"]]))
    })
  } else if (isTRUE(asked$neighbours > 0L)) {
    "Inducing points are used, because `neighbours` was given."
  } else if (!is.null(asked$likelihood)) {
    sprintf("Inducing points give the prior covariance at all rows up to rounding. This is the default up to %s rows.",
            show_count(most))
  } else {
    paste("Inducing points are used, because", if (facts$keep) "an exact posterior takes too much memory." else
      "the rows are not kept.")
  })
}

# Returns TRUE if no argument requires inducing points, so that the plan may use none.
leaves_points_open <- function(asked) is.null(argument_for_points(asked))

# Returns a text that names the argument that requires inducing points, or NULL if there is none.
argument_for_points <- function(asked) {
  if (!is.null(asked[["m"]])) return("`m`")
  if (!is.null(asked$inducing)) return("`inducing`")
  if (!is.null(asked[["aux"]])) return("`aux`")
  if (asked$hyper[1L] %in% c("pilot", "joint")) sprintf("`hyper` = \"%s\"", asked$hyper[1L])
}

# Returns a text on look$dense: the gain of the exact posterior of a sample of rows over the posterior with neighbours.
describe_dense <- function(dense) {
  sprintf("changes the log density at %d held-out rows by %+.2g per row relative to neighbours (standard error %.2g)",
          as.integer(dense[["rows"]]), dense[["gain"]], dense[["se"]])
}

because_near <- function(asked, look, near, move) {
  if (!asked$traits$chooses) return(NULL)
  c(neighbours = if (!is.null(asked$neighbours)) {
    sprintf("Predictions use %d nearest neighbours, because `neighbours` was given.", near)
  } else if (!is.null(look$trial)) {
    use <- if (near == 0L) "no neighbours" else sprintf("%d nearest neighbours%s", near, if (is.null(asked$likelihood))
      ", the default unless the gain without them exceeds its standard error" else "")
    sprintf(paste("Predictions use %s. The log density per row, without neighbours minus with, is %+.3g at %d held-out",
                  "rows (standard error %.2g)."), use, look$trial[["gain"]], as.integer(look$trial[["rows"]]),
            look$trial[["se"]])
  } else if (is_finite_number(look$rho)) {
    sprintf("The mean residual prior variance %s %.2g times the noise variance: %s.",
            if (move && !isTRUE(asked$control$maxit == 0)) "before inducing points moved was" else "is", look$rho,
            if (near > 0L) sprintf("predictions use %d nearest neighbours", near) else
              if (look$rho < unexplained_rule[["enough"]]) "nearest neighbours would not change predictions" else
                "nearest neighbours could change predictions, but are not used")
  })
}

because_moved <- function(asked, move, near, alone) {
  if (isTRUE(asked$control$maxit == 0)) return("Inducing points are not moved: `maxit` is 0.")
  if (!move) {
    return(paste0("Inducing points are not moved", if (near > 0L) ": neighbours explain the rest of f" else
      if (!alone) ": moving them would not change predictions", "."))
  }
  if (identical(asked$traits$objective, "none")) "Inducing points are not moved." else
    sprintf("Locations of inducing points are optimised, because %s.",
            reason_to_move(asked) %||% "fixed ones leave a residual prior variance above 0.5 % of the noise variance")
}

# Returns plan$learn. Learning uses at most `most` inducing points, and may choose an additive kernel if `additive`. All
# searches end control$max_seconds after the time `began` (default: now).
learning_settings <- function(kernel, noise, columns, free, control, hyper = "evidence", most = NULL, likelihood = NULL,
                              center = TRUE, additive = TRUE, names = parameter_names(kernel, columns), began = NULL) {
  list(kernel = kernel, noise = noise, columns = columns, names = names, free = free, hyper = hyper, most = most,
       likelihood = likelihood, center = center, additive = additive, restarts = control$restarts,
       priors = control$priors, rows = control$optimise_rows, jitter = control$jitter,
       steps = c(unclass(control)[c("maxit", "reltol", "trace", "progress")],
                 until = control$max_seconds + if (is.null(began)) proc.time()[["elapsed"]] else began),
       run = unclass(control)[c("block", "threads", "memory")])
}
