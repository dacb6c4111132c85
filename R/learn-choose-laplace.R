# The choice of a model for a non-Gaussian likelihood, by the log marginal likelihood.

# Returns the choice among learned models by minus the log marginal likelihood plus price(model).
choose_learned <- function(found, price) {
  candidates <- lapply(found, function(one) {
    if (is.null(one$label)) one$label <- sum_label(one$kernel)
    model <- c(one, list(parameters = nrow(kernel_parameters(one$kernel))))
    function(tried) model
  })
  names(candidates) <- seq_along(found)
  choice <- choose(candidates, function(model) list(score = model$value + price(model)))
  choice$best <- choice$best[setdiff(names(choice$best), c("label", "parameters", "score"))]
  choice
}

# Returns the choice among smooth kernels, or the given kernel, each searched from short and from typical lengthscales.
choose_smooth <- function(rows, s, start, state, given) {
  few <- laplace_rows(rows, s, laplace_sizes$few_rows, laplace_sizes$few_points)
  open <- is_open(s$kernel)
  found <- lapply(if (open) c("matern52", "se", "matern32") else s$kernel$profile, function(profile) {
    one <- start
    if (open) one$kernel <- with_smooth(one$kernel, s$kernel, kernel_of(profile)[c("profile", "label")])
    best <- NULL
    for (scale in if (given || !length(s$free)) 1 else c(0.3, 1)) {
      try <- one
      if (scale != 1) try$kernel <- change_leaves(one$kernel, function(leaf) {
        if (!is.null(leaf$lengthscale)) leaf$lengthscale <- scale * leaf$lengthscale
        leaf
      })
      try <- search_laplace(few, s, try, start, state, tied = !given)
      if (is.null(best) || try$value < best$value) best <- try
      if (is.null(state$so_far) || isTRUE(best$value < state$so_far$value)) state$so_far <- best
    }
    best
  })
  choice <- choose_learned(found, function(model) 0)
  choice$table$score <- choice$table$score / nrow(few$x)
  if (length(found) < 2L || !all(is.finite(choice$table$score))) choice["table"] <- list(NULL)
  choice
}

# Returns the kernel with other elements of the factors whose profile is open in `asked`.
with_smooth <- function(kernel, asked, elements) {
  kernel <- as_sum(kernel)
  open <- vapply(as_sum(asked)$leaves, function(l) is.null(l$profile), NA)
  kernel$leaves[open] <- lapply(kernel$leaves[open], function(l) replace(l, names(elements), elements))
  if (!is.null(kernel$profile)) kernel$label <- formula_of_kernel(kernel)
  as_kernel(kernel)
}

# Returns the best of three kinds: the smooth kernels found, tied or not; these with a linear mean; and these with one
# lengthscale. A kernel with more parameters has a larger maximum by chance: the likelihood is averaged over them.
choose_terms <- function(rows, s, smooth, kernels, start, state) {
  if (!is.finite(smooth[[1L]]$value)) return(replace(smooth[[1L]], "kernels", list(kernels)))
  few <- nrow(rows$x) <= laplace_sizes$few_rows
  found <- c(smooth, line_beside(rows, s, smooth[[1L]], start, state))
  if (few && ncol(rows$x) >= laplace_sizes$inputs) {
    one <- one_scale(rows, s, smooth[[1L]], start, state)
    found <- c(found, list(one), line_beside(rows, s, one, start, state))
  }
  found <- c(found, inputs_apart(rows, s, smooth[[which.min(vapply(smooth, `[[`, 0, "value"))]], start, state))
  if (few && s$additive) found <- c(found, seasons_tried(rows, s, smooth[[1L]], start, state))
  state$so_far <- found[[which.min(vapply(found, `[[`, 0, "value"))]]
  averaged <- few && s$priors && is.null(state$stopped)
  choice <- choose_learned(found, function(model) {
    price <- if (is.null(model$profile)) 0 else profile_price(model$profile)
    price + if (averaged) occam_penalty(rows, s, model, start) else if (is_additive(model$kernel)) additive_nats else 0
  })
  kernels <- join_choices(kernels, choice, nrow(rows$x))
  best <- choice$best
  if (!is.null(best$profile)) kernels <- with_gain(kernels, best$profile, choice$tried[[1L]]$value - best$value)
  replace(best, "kernels", list(kernels))
}

# Returns searches of a trend with seasons (kernel-season.R) from the centres of their priors.
seasons_tried <- function(rows, s, now, start, state) {
  lapply(season_profiles(s$kernel, "matern32"), function(profile) {
    kernel <- with_profile(s$kernel, profile, rows$x)
    units <- parameter_units(kernel, rows$x, laplace_priors$variance * s$likelihood$unit^2)
    given <- kernel_values(kernel)
    kernel <- set_values(kernel, ifelse(is.na(given), units$unit * exp(units$middle), given))
    one <- replace(now, c("kernel", "value"), list(as_kernel(kernel), Inf))
    c(search_laplace(rows, s, one, start, state, tied = FALSE),
      list(profile = profile, label = profile_label(profile, s$kernel$periods)))
  })
}

# Returns searches with a linear mean (mean.R), whose variance is learned, beside the kernel. Classes that differ in
# small differences of correlated inputs need a linear mean; a smooth kernel imitates it only with lengthscales and
# variance far from their priors. The search starts with large slopes and a tenth of the kernel's variance.
line_beside <- function(rows, s, now, start, state) {
  kernel <- now$kernel
  kernel["of"] <- list(character())
  leaf <- replace(mean_leaf(rows$x, seq_len(ncol(rows$x)), NULL), "of", list(character()))
  kernel <- with_columns(add_kernels(kernel, leaf), rows$x)
  units <- parameter_units(kernel, rows$x, laplace_priors$variance * s$likelihood$unit^2)
  value <- kernel_values(kernel)
  variances <- which(units$what == "variance")
  value[variances] <- c(0.1 * value[variances[1L]], 30 * units$unit[variances[2L]])
  line <- replace(now, c("kernel", "value"), list(as_kernel(set_values(kernel, value)), Inf))
  line <- search_laplace(rows, s, line, start, state, tied = TRUE)
  c(list(line), if (isTRUE(line$value < now$value)) list(search_laplace(rows, s, line, start, state, tied = FALSE)))
}

# Returns the search with the additive kernel of the smooth kernel `now`, in a list that is empty if it is not tried.
inputs_apart <- function(rows, s, now, start, state) {
  if (nrow(rows$x) < additive_rows[["classes"]] || !s$additive || functions_of_f(s$likelihood) > 1L) return(list())
  kernel <- with_profile(s$kernel, paste0("additive:", now$kernel$profile), rows$x)
  if (length(additive_inputs(kernel)) < 2L) return(list())
  kernel <- with_typical_values(replace(kernel, "lengthscale", list(now$kernel$lengthscale)), rows$x, s)
  one <- replace(start, c("kernel", "value"), list(as_kernel(kernel), Inf))
  list(search_laplace(rows, s, one, start, state, now$tied))
}

# Returns the search with one lengthscale for all inputs. If the inputs share a unit, as in spectra and images, an input
# that hardly varies has little information. Separate lengthscales would have to learn that.
one_scale <- function(rows, s, now, start, state) {
  label <- sprintf("%s (isotropic)", now$kernel$label)
  kernel <- place_kernel(new_kernel(now$kernel$profile, label, NULL, NULL, NULL, isotropic = TRUE), rows$x)
  kernel <- as_kernel(with_typical_values(kernel, rows$x, s))
  searches <- lapply(c(0.3, 1), function(scale) {
    one <- replace(kernel, "lengthscale", scale * kernel$lengthscale)
    search_laplace(rows, s, replace(start, c("kernel", "value"), list(one, Inf)), start, state, tied = FALSE)
  })
  searches[[which.min(vapply(searches, `[[`, 0, "value"))]]
}

# Returns the increase of minus the log marginal likelihood when it is averaged over the parameters, by Laplace's
# approximation: log sqrt(curvature / the prior's curvature) for each direction in which the data exceed the prior.
occam_penalty <- function(rows, s, found, start) {
  if (!is.finite(found$value)) return(Inf)
  problem <- laplace_problem(rows, greedy_points(rows, s, found$kernel), s, found, start, found$tied)
  curvature <- function(slope, step) {
    here <- slope(problem$start)
    columns <- vapply(seq_along(here), function(i) {
      (slope(problem$start + step * (seq_along(here) == i)) - here) / step
    }, here)
    (columns + t(columns)) / 2
  }
  H <- curvature(function(par) {
    slope <- problem$evaluate(par)$gradient
    if (is.null(slope)) NaN * par else slope
  }, 0.01)
  if (!all(is.finite(H))) return(Inf)
  R <- chol(curvature(function(par) -problem$prior(par)$slope, 1)) # the priors' curvature is constant
  told <- backsolve(R, t(backsolve(R, H, transpose = TRUE)), transpose = TRUE)
  sum(log(pmax(eigen(told, TRUE, TRUE)$values, 1))) / 2
}
