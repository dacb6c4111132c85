# What a fit is to do, from what was asked for and what the data are: settings checked and completed, and which
# posterior is to be, where nothing says so.

# Rows up to which the default posterior is the exact one: the factor of their kernel matrix takes 32 MB.
exact_rows <- 2000L

# What is left of the prior variance at the rows, on average, beside the noise, from which on a near field (or moving
# the points) changes predictions: below, held-out log densities differ by less than 0.001.
enough_unexplained <- 0.005

# Inducing points beside a near field where 200 leave more than five times the noise unexplained: on four data sets 50
# then predict as well as 200 or 400 do.
few_points <- 50L

# What choosing points of classes and counts may take, which says among how many rows: of 50,000 flights 400 points of
# 10,000 rows predict as well as those of all, and take 1.4 seconds less.
greedy_memory <- 2^25

# Rows near each prediction that a near field treats exactly, where the fit decides.
default_neighbours <- 40L

# `exact`: the posterior is that of all rows. Only where nothing was asked for that speaks of inducing points, and not
# under the paper's protocol.
choose_posterior <- function(data, s) {
  s$posterior$exact <- s$posterior$open && gp_family(s)$chooses && s$keep_data && nrow(data$x) <= exact_rows &&
    s$points$inducing_method == "greedy" &&
    8 * as.double(nrow(data$x))^2 <= getOption("pfdtc.max_memory", 2^32)
  s
}

# A near field where the points leave too much unexplained, unless the fit was told; points are moved where that is so
# and there is none.
choose_neighbours <- function(data, learned, start, s) {
  rho <- unexplained_share(data, learned, start)
  # a near field needs rows
  open <- s$posterior$open && gp_family(s)$chooses && (s$keep_data || isTRUE(s$keep_sample))
  near <- s$posterior$neighbours
  # of lengthscales this short near rows tell nearly all there is
  short <- open && rho > 5
  s$posterior$undecided <- is.null(near) && open && rho >= enough_unexplained && rho <= 0.5
  if (is.null(near)) near <- if (open && rho >= enough_unexplained) default_neighbours else 0L
  near <- min(near, nrow(data$x))
  if (short && near > 0L) s$points$m <- min(s$points$m, few_points)
  s$points$move <- s$points$move || (rho >= enough_unexplained && near == 0L)
  s$points$unmoved <- paste("points kept where they start:", if (near > 0L) "the rows near by do the rest" else
    "moving them would not change predictions")
  s$posterior[c("neighbours", "rho")] <- list(near, rho)
  s
}

# mean of w E_nn / noise; without a greedy start not known, and taken to be large.
unexplained_share <- function(data, learned, start) {
  if (is.null(start$t)) return(Inf)
  w <- if (is.null(data$weights)) 1 else mean(data$weights)
  w * start$t / learned$model$noise
}

# What a fit is asked for beside its data and control.
asked_of_fits <- c("kernel", "noise", "m", "tol", "hyper", "inducing", "neighbours", "mean", "transform", "center",
                   "scale", "aux", "aux_given")

# Was nothing asked for that speaks of inducing points?
leaves_points_open <- function(s) {
  is.null(s[["m"]]) && is.null(s$inducing) && !isTRUE(s$aux_given) && !s$hyper[1L] %in% c("pilot", "joint")
}

# Checks that need the data; kernel and noise come in units of y and leave in those of the cleaned y, and what came as
# one list, see start_fit(), leaves by stage.
clean_settings <- function(data, s) {
  s$control <- check_control(s$control)
  s$objective <- gp_family(s)$objective
  if (identical(s$objective, "pf") && is.null(s[["aux"]])) s$aux <- default_aux() # not `aux_given`
  # the paper's protocol has its inducing points moved, and nothing else
  s$move <- !is.null(s$control$maxit) || s$hyper[1L] %in% c("pilot", "joint") || isTRUE(s$aux_given) ||
    !identical(s$objective, "pf") || !is.null(s$tol)
  s$open <- leaves_points_open(s)
  if (!is.null(s$neighbours)) {
    s$neighbours <- check_count(s$neighbours, "neighbours", min = 0)
    if (s$neighbours > 0L && !isTRUE(s$keep_data) && !isTRUE(s$keep_sample)) {
      abort_input("keep_data", "FALSE", "TRUE where `neighbours` is asked for",
                  hint = "A near field reads the rows near each prediction: it needs them all.")
    }
  }
  s$hyper <- check_choice(s$hyper, c("evidence", "pilot", if (gp_family(s)$joint) "joint", "fixed"), "hyper")
  if (inherits(s$inducing, "gp_fit")) {
    old <- check_fit(s$inducing, "inducing")
    if (is.null(old$inducing)) {
      abort_input("inducing", sprintf("a fit by %s()", old$method), "a fit that has inducing points")
    }
    if (ncol(old$inducing) != ncol(data$x)) {
      abort_input("inducing", sprintf("a fit with %d inputs", ncol(old$inducing)),
                  sprintf("a fit with the %d inputs of the data", ncol(data$x)))
    }
    if (is.null(s$kernel) || is_bare(s$kernel)) s$kernel <- old$kernel
    if (is.null(s$noise)) s$noise <- old$noise
    s$inducing <- old$inducing
  }
  s$asked <- s[intersect(names(s), asked_of_fits)] # for a fit of other rows, see cross_validate()
  choose_kernel <- is.null(s$kernel) && s$hyper == "evidence"
  if (is.null(s$kernel) && s$hyper == "fixed") {
    abort_input("kernel", "none", "a kernel with lengthscales and variance",
                hint = "`hyper = \"fixed\"` learns nothing. Give it as in kernel_se(lengthscale = 1, variance = 1).")
  }
  if (is.null(s$kernel)) s$kernel <- kernel_se()
  s$kernel <- place_kernel(s$kernel, data$x, variables = data_variables_of(data))
  if (choose_kernel) s$kernel["profile"] <- list(NULL)
  s$kernel <- with_mean(s$kernel, s$mean, data)
  if (inherits(s$noise, "formula")) {
    s["trend"] <- list(asked_noise_trend(s$noise, data, s))
    s["noise"] <- list(NULL)
  }
  if (!is.null(s$noise)) s$noise <- check_positive(s$noise, "noise", 1L)
  s$columns <- colnames(data$x)
  s$fixed <- check_fixed(s$control$fix, s$kernel, s$columns)
  s$free <- learned_names(s)
  check_learnable(s$kernel, data, s$free, s$columns)
  if (length(s$free) && data$n == 1L) {
    abort_input("hyper", "one row to learn from", "\"fixed\", with kernel and, of Gaussian responses, noise given")
  }
  if (length(s$free) && diff(range(data$y)) == 0 && is.null(data$group) && is.null(s$likelihood)) {
    abort_input("y", "constant", "of at least two different values to learn from",
                hint = "With `hyper = \"fixed\"`, and kernel and noise given, it would do.")
  }
  start <- new_model(s$kernel, s$noise, data$center, data$scale)
  if (!varies(start$kernel)) {
    for (t in as_sum(start$kernel)$terms) check_beside_response(t$variance, "kernel", "a variance")
  }
  s$kernel <- as_kernel(start$kernel)
  s$noise <- check_beside_response(start$noise, "noise", "a variance")
  in_stages(s)
}

# What each stage is told, and no more: `learning` (hyper.R, learn.R, laplace.R), `points` (points.R), `posterior`
# (which it is to be), `goal` (the accuracy wanted: tolerance.R), `run` (how passes over rows are done). The rest is
# what the fit says of itself, the control as it was given among it.
in_stages <- function(s) {
  control <- s$control
  # what more iterations bring hardly shows in predictions
  if (is.null(control$maxit)) control$maxit <- if (s$move) 200L else 50L
  learning <- learning_settings(s$kernel, s$noise, s$columns, s$free, control, s$hyper, s[["m"]], s$likelihood,
                                s[["center"]])
  c(s[intersect(names(s), c("method", "call", "keep_data", "keep_sample", "asked", "control", "trend"))],
    list(learning = learning, points = points_settings(s, control, learning),
         posterior = list(open = s$open, neighbours = s$neighbours), run = run_settings(control),
         goal = goal_settings(s$tol, control)))
}

# `most`: inducing points beside which Laplace's approximation is learned.
learning_settings <- function(kernel, noise, columns, free, control, hyper = "evidence", most = NULL, likelihood = NULL,
                              center = TRUE) {
  list(kernel = kernel, noise = noise, columns = columns, free = free, hyper = hyper, most = most,
       likelihood = likelihood, center = center, restarts = control$restarts, priors = control$priors,
       rows = control$optimise_rows, jitter = control$jitter, steps = steps_settings(control),
       run = run_settings(control))
}

# `joint`: what learning is told, where hyperparameters are moved with the points.
points_settings <- function(s, control, learning) {
  list(inducing = s$inducing, m = s[["m"]], objective = s$objective, aux = s[["aux"]], move = s$move,
       joint = if (s$hyper == "joint" && length(s$free)) learning, rows = control$optimise_rows,
       jitter = control$jitter, steps = steps_settings(control), run = run_settings(control))
}

# `tell`: what candidates come to, where nothing else tells that a search is under way.
goal_settings <- function(tol, control) {
  list(tol = tol, quantile = control$tol_quantile, tell = !control$progress && isFALSE(control$quiet))
}

steps_settings <- function(control) unclass(control)[c("maxit", "reltol", "max_seconds", "trace", "progress")]

run_settings <- function(control) unclass(control)[c("block", "threads", "memory")]

# Fourth powers of sds are computed with.
check_beside_response <- function(variance, argument, what) {
  if (!is.null(variance) && !(variance >= 1e-60 && variance <= 1e60)) {
    abort_input(argument, sprintf("%.3g times that", variance),
                sprintf("%s within a factor of 1e60 of the square of the response's size", what))
  }
  variance
}

# Names of the hyperparameters to learn. What is fixed must be given.
learned_names <- function(s) {
  given <- c(!is.na(kernel_values(s$kernel)), !is.null(s$noise))
  names <- parameter_names(s$kernel, s$columns)
  held <- if (s$hyper == "fixed") names else union(s$fixed, held_names(s$kernel, s$columns))
  if (!is.null(s$likelihood)) held <- union(held, "noise") # it has none
  lacking <- setdiff(held, names[given])
  if (length(lacking)) {
    what <- sub("[.].*", "", lacking[1L])
    argument <- if (what == "noise") "noise" else "kernel"
    by <- if (s$hyper == "fixed") "`hyper = \"fixed\"`" else "`fix`"
    abort_input(argument, sprintf("without a value for %s", lacking[1L]), "complete",
                message = sprintf("`%s` must be complete: it has no value for %s, which %s needs.", argument,
                                  lacking[1L], by),
                hint = if (what == "noise") "Give noise = <variance>." else
                  if (has_one_factor(s$kernel)) sprintf("Give it as in kernel_se(%s = <value>).", what) else
                    "Give it to the factor that it belongs to.")
  }
  setdiff(names, held)
}

# `s`: what points_settings() makes, completed.
clean_points <- function(data, s) {
  n <- data$n
  s$try_starts <- is.null(s$inducing) && identical(s$objective, "pf") && aux_objective(s$aux) == "white"
  if (is.null(s$inducing)) s$inducing <- "greedy"
  if (is.character(s$inducing)) {
    s$inducing <- check_choice(s$inducing, point_methods, "inducing")
    s$m <- if (is.null(s$m)) min(200L, n) else check_points(s$m, n)
    s$inducing_method <- s$inducing
  } else {
    z <- check_same_columns(check_matrix(s$inducing, "inducing"), data$x, "inducing", "the data")
    if (!nrow(z)) abort_input("inducing", "without rows", "a matrix of at least one inducing point")
    if (!is.null(s$m) && check_count(s$m, "m") != nrow(z)) {
      abort_input("m", s$m, sprintf("the %d rows of `inducing`, or left out", nrow(z)))
    }
    z <- match_input_names(z, data$x, !isFALSE(data$frame$named))
    s$inducing <- z
    s$m <- nrow(z)
    s$inducing_method <- "given"
  }
  s
}

# A matrix whose columns carry the inputs' names in another order is put in order.
match_input_names <- function(z, x, named) {
  names <- colnames(z)
  if (!is.null(names) && named) {
    lacking <- setdiff(colnames(x), names)
    if (length(lacking)) {
      abort_input("inducing", sprintf("one without %s", list_quoted(lacking)),
                  sprintf("a matrix with columns %s", list_quoted(colnames(x))),
                  hint = "Without column names they are taken by position.")
    }
    z <- z[, colnames(x), drop = FALSE]
  }
  dimnames(z) <- list(NULL, colnames(x))
  z
}
