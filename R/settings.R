# Defines the settings of the functions that fit, in a table of their arguments, and checks them.

# Each argument of the functions that fit has a row, except x, y, weights, offset, family, approx, like and workers,
# which other functions check. A new setting also needs a line of help. An entry is a function of the value and of the
# name of the function that fits, and returns the checked value. It is not called for NULL unless in `never_null`.
settings <- list(
  m = function(value, method) check_count(value, "m"),
  tol = function(value, method) {
    check_number(value, "tol", "a number between 0 and 1", function(x) !is.logical(x) && x > 0 && x < 1)
  },
  kernel = function(value, method) check_kernel(value),
  noise = function(value, method) { # NULL: the noise is learned
    if (identical(value, "auto")) return(NULL)
    if (inherits(value, "formula")) return(value)
    check_number(value, "noise", "a variance (0 interpolates), a formula such as ~ x, or NULL to learn it",
                 function(x) !is.logical(x) && is.finite(x) && x >= 0)
  },
  hyper = function(value, method) {
    check_choice(value, c("evidence", "pilot", if (gp_families[[method]]$joint) "joint", "fixed"), "hyper")
  },
  aux = function(value, method) check_aux(value),
  neighbours = function(value, method) check_count(value, "neighbours", min = 0),
  mean = function(value, method) value,
  plain = function(value, method) check_flag(value, "plain"),
  transform = function(value, method) {
    if (is.null(value)) return("none")
    given <- inherits(value, "pfdtc_transform") || identical(value, "plain") # "plain" also means constant noise
    if (given) value else check_choice(value, c("auto", "none", transforms), "transform")
  },
  inducing = function(value, method) {
    if (is.character(value)) return(check_choice(value, point_methods, "inducing"))
    if (!inherits(value, "gp_fit")) return(check_matrix(value, "inducing"))
    fit <- check_any_fit(value, "inducing")
    if (!is.null(fit$inducing)) return(if (response_of(fit)$conjugate) fit else fit$inducing)
    abort_input("inducing", sprintf("is a fit by %s(), which has no inducing points", fit$method))
  },
  center = function(value, method) value, scale = function(value, method) value,
  control = function(value, method) check_control(value),
  keep_data = function(value, method) check_flag(value, "keep_data"))

# A value NULL of these settings is checked too. For the other settings NULL means the default.
never_null <- c("hyper", "plain", "transform", "control", "keep_data")

# Checks the arguments as far as possible without data. Returns them with the method, the call and the likelihood.
check_settings <- function(method, call, args) {
  likelihood <- as_likelihood(args$family, args$approx)
  more <- c("keep_sample", "like_columns", "noise_trend", "noise_tail", "began")
  args <- args[intersect(names(args), c(names(settings), more))]
  for (name in intersect(names(settings), names(args))) {
    if (!is.null(args[[name]]) || name %in% never_null) args[name] <- list(settings[[name]](args[[name]], method))
  }
  refuse_if(isTRUE(args$neighbours > 0L) && !args$keep_data && !isTRUE(args$keep_sample), "keep_data", "FALSE",
            "TRUE if `neighbours` is above 0", hint = "Predictions by nearest neighbours read the rows.")
  c(list(method = method, call = if (args$keep_data) call else slim_call(call)), args, list(likelihood = likelihood))
}

# Returns `args` with kernel, noise, transform and units of the fit args$like. With args$plain, there is no transform.
model_asked <- function(args) {
  plain <- isTRUE(args$plain)
  if (is.null(args$like) && !plain) return(args)
  given <- c(kernel = !is.null(args$kernel), noise = !is.null(args$noise),
             family = !is.null(as_likelihood(args$family)), transform = asks_for_transform(args$transform),
             hyper = length(args$hyper) == 1L && !is_fixed(args$hyper), plain = plain)
  if (is.null(args$like)) {
    given <- c(given["transform"], noise = inherits(args$noise, "formula"))
    if (any(given)) abort_input("plain", sprintf("= TRUE cannot be combined with `%s`", names(given)[given][1L]))
    return(replace(args, "transform", "plain"))
  }
  like <- check_any_fit(args$like, "like")
  refuse_if(!is.null(like$likelihood), "like", sprintf("is a fit with family %s", like$likelihood$label), hint = paste0(
    "It must have Gaussian noise", if (identical(like$likelihood$from, "gaussian"))
      ", as update(f, noise = ~ 1) has", ". For its family use pfdtc() with family = family(f), center = f$center, ",
    "kernel = f$kernel and hyper = \"fixed\", where f is `like`."))
  refuse_if(any(given), names(given)[given][1L], "cannot be combined with `like`",
            hint = "To learn again, take parts of the fit: kernel = fit$kernel, transform = fit$transform.")
  scaled <- if (is.null(like$asked)) list(like$center != 0, like$scale != 1) else like$asked[c("center", "scale")]
  args[c("kernel", "noise", "hyper", "noise_trend", "noise_tail", "transform", "like", "center", "scale")] <-
    c(list(like$kernel, like$noise, "fixed", like$noise_trend, like$noise_tail),
      list(like$transform %||% "none", NULL), scaled)
  args$kernel$columns <- like$frame$columns
  args$like_columns <- if (!is.null(like$terms)) like$frame$columns
  args
}

is_fixed <- function(hyper) is_one_of(hyper, substring("fixed", 1L, 1:5))

# Returns the settings `asked`, completed by the data. The kernel gets its inputs, inducing points are checked against
# the columns of x, and kernel and noise get the unit of data$y (centred and scaled). `free` has the names of
# hyperparameters to learn. asked$again keeps the arguments as given, to fit other rows in the same way.
complete_settings <- function(data, asked) {
  asked <- complete_points(data, asked)
  asked$again <- asked[intersect(setdiff(names(settings), c("control", "keep_data")), names(asked))]
  asked$columns <- colnames(data$x)
  asked$kernel <- complete_kernel_asked(data, asked)
  if (inherits(asked$noise, "formula")) asked["noise"] <- list(NULL) # is learned by response_stage()
  zero <- asks_no_noise(asked$noise)
  if (zero) asked$noise <- interpolation_noise(asked$kernel, data)
  compiled <- compile_kernel(asked$kernel)
  asked$names <- parameter_names(compiled, asked$columns)
  asked$fixed <- c(check_fixed(asked$control$fix, asked$names), if (zero) "noise")
  asked$free <- learned_names(asked, compiled)
  check_learnable(asked$kernel, compiled$table, data, asked$names, asked$free)
  refuse_if(length(asked$free) && data$n == 1L, "hyper", sprintf("= \"%s\" cannot learn from one row", asked$hyper),
            hint = one_row_hint)
  # If all responses are equal, the noise or shape of their density has no best value.
  noisy <- is.null(asked$likelihood) || asked$likelihood$learned && !isTRUE(response_row(asked$likelihood)$discrete)
  equal <- diff(range(data$y)) == 0 && diff(range(data$sites$offset, 0)) == 0 && all(data$sites$size == data$sites$y)
  refuse_if(length(asked$free) && noisy && equal && is.null(data$group),
            if (is.null(data$terms)) "y" else deparse1(data$terms[[2L]]), "is constant",
            hint = c("Learning needs two different values.", one_row_hint))
  start <- new_model(compiled, asked$noise, data$center, data$scale)
  # Stop at extreme variances, because their squares must be finite and above 0.
  variances <- list(noise = start$noise,
                    kernel = if (!varies(asked$kernel)) start$kernel$engine$values[compiled$table$leaf == 0L])
  for (argument in names(variances)) {
    far <- Filter(function(v) !is.na(v) && !(v >= 1e-60 && v <= 1e60), variances[[argument]])
    refuse_if(length(far), argument, sprintf("has a variance of %.3g for the scaled response", far[1L]),
              hint = "It must be between 1e-60 and 1e60.")
  }
  asked$kernel <- as_kernel(start$kernel)
  asked["noise"] <- start["noise"]
  asked
}

# Returns the kernel with inputs, groups and linear mean. If its `profile` (such as "se") is NULL, the fit chooses it.
complete_kernel_asked <- function(data, asked) {
  refuse_if(is.null(asked$kernel) && asked$hyper == "fixed", "kernel",
            "is missing, and hyper = \"fixed\" learns nothing",
            hint = "Give it as in kernel_se(lengthscale = 1, variance = 1).")
  variables <- placed_variables(data$frame)
  smooth <- length(smooth_columns(data$x, variables)) > 0L
  kernel <- if (is.null(asked$kernel) && smooth) kernel_se() else asked$kernel
  if (!is.null(kernel)) kernel <- place_kernel(at_names(kernel, data), data$x, variables = variables)
  if (is.null(asked$kernel) && asked$hyper == "evidence" && smooth) {
    kernel["profile"] <- list(NULL)
    kernel$groups <- column_groups(kernel$inputs, asked$columns, variables)
    kernel$periods <- time_periods(data$x, variables, data$y)
    kernel$warp <- data$warp
  }
  if (length(data$groups)) {
    if (!is.null(kernel) && has_one_factor(kernel) && is.null(as_sum(kernel)$leaves[[1L]]$of)) {
      kernel$of <- column_owners(kernel$inputs, asked$columns, variables)
    }
    for (leaf in data$groups) { # groups that the kernel already has are not added again
      if (!is.null(kernel) && leaf_name(leaf) %in% vapply(group_roots(kernel), `[[`, "", "name")) next
      leaf <- place_group(leaf, data$x, "formula", variables)
      kernel <- if (is.null(kernel)) leaf else combine_kernels(kernel, leaf)
    }
    kernel <- with_columns(as_sum(kernel), data$x)
  }
  for (term in group_roots(kernel)) { # the data cannot separate collinear effects
    design <- t(design_of(term, data$x))
    refuse_if(qr(design)$rank < ncol(design), "formula",
              sprintf("has a group with the effects %s, which are linearly dependent", list_quoted(term$effects)),
              hint = "Its design must have full rank: leave out a variable that is constant or a sum of others.")
  }
  with_mean(kernel, asked$mean, data)
}

# Checks `m` and `inducing`. A Gaussian fit as `inducing` gives inducing points and, if its transform is the same, start
# values. Another fit gives only inducing points.
complete_points <- function(data, asked) {
  if (inherits(asked$inducing, "gp_fit")) {
    old <- asked$inducing
    refuse_if(ncol(old$inducing) != ncol(data$x), "inducing",
              sprintf("is a fit with %s, but the data have %d", count_of(ncol(old$inducing), "input"), ncol(data$x)))
    old$kernel$columns <- old$frame$columns
    own <- c("kind", "lambda", "centre", "unit")
    if (identical(old$transform[own], data$transform[own])) { # else hyperparameters have other units
      if (is.null(asked$kernel) || is_bare(asked$kernel)) asked$kernel <- old$kernel
      if (is.null(asked$noise)) asked$noise <- old$noise
    }
    asked$inducing <- old$inducing
  }
  if (!is.matrix(asked$inducing)) {
    if (!is.null(asked$m)) asked$m <- check_count(asked$m, "m", data$n, max_is = "the number of rows")
    return(asked)
  }
  z <- check_same_columns(asked$inducing, data$x, "inducing", "the data have",
                          if (!isFALSE(data$frame$named)) colnames(data$x))
  if (!nrow(z)) abort_input("inducing", "has no rows")
  refuse_if(!is.null(asked$m) && asked$m != nrow(z), "m",
            sprintf("is %d, but `inducing` has %d rows", asked$m, nrow(z)), hint = "Leave out `m`.")
  dimnames(z) <- list(NULL, colnames(data$x))
  asked$inducing <- z
  asked
}

# Returns the names of the hyperparameters to learn. Stops if a hyperparameter that is not learned has no value.
learned_names <- function(asked, compiled) {
  given <- c(!is.na(compiled$engine$values), !is.null(asked$noise))
  names <- asked$names
  held <- if (asked$hyper == "fixed") names else
    union(asked$fixed, names[c(compiled$table$held | compiled$table$mean, FALSE)])
  if (!is.null(asked$likelihood)) held <- union(held, "noise")
  lacking <- setdiff(held, names[given])
  if (length(lacking)) {
    by <- if (asked$hyper == "fixed") "`hyper = \"fixed\"`" else "`fix`"
    refuse_if(lacking[1L] == "noise", "noise", sprintf("is missing, which %s needs", by),
              hint = "Give noise = <variance>.")
    abort_input("kernel", sprintf("has no value for %s, which %s needs", lacking[1L], by),
                hint = if (startsWith(lacking[1L], "group(")) "It is to be learned. Leave out `hyper`." else
                  if (!has_one_factor(asked$kernel)) "Give it in its term, as in kernel_se(1, variance = 1)." else
                  sprintf("Give %s = <value> to the function that makes the kernel.",
                          sub("^distance$", "correlation", gsub("^additive[.]|[.].*", "", lacking[1L]))))
  }
  setdiff(names, held)
}

# Stops if the data cannot separate two hyperparameters that are to be learned.
check_learnable <- function(kernel, table, data, names, free) {
  if (!length(free) || has_one_factor(kernel)) return(invisible())
  table$free <- names[-length(names)] %in% free
  leaves <- kernel$leaves
  for (t in seq_along(kernel$terms)) {
    own <- kernel$terms[[t]]$leaves
    smooth <- own[vapply(leaves[own], function(l) identical(l$profile, "se"), NA)]
    read <- unlist(lapply(smooth, function(l) if (any(table$free[table$leaf == l])) leaves[[l]]$inputs))
    if (anyDuplicated(read)) {
      twice <- colnames(data$x)[read[duplicated(read)][1L]]
      abort_input("kernel", sprintf("has a product of two squared exponentials of `%s`", twice),
                  hint = "Their product is one squared exponential with 1 / l^2 = 1 / l1^2 + 1 / l2^2.")
    }
    white <- length(own) == 1L && identical(leaves[[own]]$profile, "white")
    if (white && table$free[table$term == t & table$leaf == 0L] && "noise" %in% free && is.null(data$group) &&
        !anyDuplicated(data$x[, leaves[[own]]$inputs, drop = FALSE])) {
      name <- leaf_name(leaves[[own]])
      abort_input("kernel", name, hint = sprintf("Leave out %s, or fix its variance.", name),
                  message = sprintf("%s equals the noise, because no two rows have the same inputs.", name))
    }
  }
}

#' Set options of the computation
#'
#' Makes the argument `control` of [pfdtc()]. Only `priors` and `fix` change the model.
#' @param maxit maximum number of iterations of each optimisation of inducing points, or of hyperparameters with `hyper
#'   = "pilot"`. With 0 the inducing points are never moved. Default: 50, but 200 with `aux`, `tol`, `"pilot"`,
#'   `"joint"` or [gp_vfe()].
#' @param reltol an optimisation ends after three iterations in a row that each gain less than this share of the total
#'   reduction.
#' @param jitter number added to the diagonal of \eqn{k(Z, Z)}, in units of the signal variance. Default: tiny, such as
#'   `1e-12`, multiplied by 10 until the Cholesky factorisation succeeds.
#' @param block number of rows processed at once. Default: at most 512.
#' @param threads number of threads, also of the BLAS.
#' @param memory scratch memory in bytes. It changes results only by rounding.
#' @param optimise_rows number of random rows for learning and for moving inducing points, or `Inf` for all rows.
#'   Default: several thousand for learning, and max(20000, 100 m) for moving m inducing points.
#' @param restarts number of starts of the search for hyperparameters. Default: 8 to 10, all different.
#' @param priors use weak priors on the hyperparameters, see `vignette("defaults")`?
#' @param fix names of hyperparameters of kernel and noise in [coef()] that keep their given values, such as `"noise"`.
#' @param tol_quantile quantile of the errors at the training inputs that `tol` limits: 1 is the maximum.
#' @param trace store the inducing points every `trace` iterations in `fit$z_trace`; 0 stores none.
#' @param progress show progress of long fits? A given `FALSE` also silences messages of class `pfdtc_message_progress`.
#' @param max_seconds,... seconds for a fit, besides reading data. Searches end with the best so far; later
#'   stages, except one pass for the posterior, are cheaper or left out. `...` is empty.
#' @return A list of class `pfdtc_control`. A plain list of some of these arguments is also a valid `control`.
#' @examples
#' pfdtc_control(maxit = 50, threads = 1)
#' @export
pfdtc_control <- function(maxit = NULL, reltol = 1e-8, jitter = NULL, block = NULL,
                          threads = getOption("pfdtc.threads", 2L), memory = getOption("pfdtc.memory", 2^27),
                          optimise_rows = NULL, restarts = NULL, priors = TRUE, fix = character(),
                          tol_quantile = 1, trace = 0L, progress = interactive(), max_seconds = Inf, ...) {
  check_dots_empty()
  values <- mget(names(control_checks), environment())
  checked <- Map(function(check, value, name) check(value, name), control_checks, values, names(values))
  structure(class = "pfdtc_control", c(checked, quiet = !missing(progress) && !progress))
}

check_control <- function(control) {
  if (inherits(control, "pfdtc_control")) return(control)
  named <- names(control)
  good <- is.list(control) && !is.object(control) &&
    (!length(control) || !is.null(named) && all(nzchar(named)) && !anyDuplicated(named))
  if (!good) abort_input("control", describe(control), "made by pfdtc_control(), or a named list of its arguments")
  unknown <- setdiff(named, names(control_checks))
  refuse_if(length(unknown), "control", sprintf("has `%s`, which is no argument of pfdtc_control()", unknown[1L]),
            hint = did_you_mean(unknown[1L], names(control_checks)))
  do.call(pfdtc_control, control)
}

#' @export
print.pfdtc_control <- print_lines(function(x) {
  shown <- vapply(names(control_checks), function(name) {
    v <- x[[name]]
    if (is.null(v)) "NULL" else if (!length(v)) "none" else
      if (is.character(v)) paste0("\"", v, "\"", collapse = ", ") else
        paste0(format(v, digits = 4), switch(name, memory = " bytes", max_seconds = " s"))
  }, "")
  text <- paste(sprintf("%s = %s", names(shown), shown), collapse = ", ")
  c("Options of pfdtc_control():", wrap(text, initial = "  ", prefix = "  "))
})
