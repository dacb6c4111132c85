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

# Returns the model with the least value, the first of several.
lowest <- function(found) found[[which.min(vapply(found, `[[`, 0, "value"))]]

# Returns the choice among smooth kernels, or the given kernel, each searched from short and from typical lengthscales.
choose_smooth <- function(rows, s, start, state, given) {
  few <- laplace_rows(rows, s, laplace_sizes$few_rows, laplace_sizes$few_points)
  open <- is_open(s$kernel)
  found <- lapply(if (open) c("matern52", "se", "matern32") else s$kernel$profile, function(profile) {
    one <- start
    if (open) {
      kernel <- as_sum(one$kernel)
      of_profile <- vapply(as_sum(s$kernel)$leaves, function(l) is.null(l$profile), NA)
      kernel$leaves[of_profile] <- lapply(kernel$leaves[of_profile], replace, c("profile", "label"),
                                          kernel_of(profile)[c("profile", "label")])
      if (!is.null(kernel$profile)) kernel$label <- formula_of_kernel(kernel)
      one$kernel <- as_kernel(kernel)
    }
    lowest(lapply(if (given || !length(s$free)) 1 else c(0.3, 1), function(scale) {
      if (scale != 1) one$kernel <- change_leaves(one$kernel, function(leaf) {
        if (!is.null(leaf$lengthscale)) leaf$lengthscale <- scale * leaf$lengthscale
        leaf
      })
      try <- search_laplace(few, s, one, start, state, tied = !given)
      if (is.null(state$so_far) || isTRUE(try$value < state$so_far$value)) state$so_far <- try
      try
    }))
  })
  choice <- choose_learned(found, function(model) 0)
  choice$table$score <- choice$table$score / nrow(few$x)
  if (length(found) < 2L || !all(is.finite(choice$table$score))) choice["table"] <- list(NULL)
  choice
}

# Returns the best of these kinds: the smooth kernels found, tied or not; these with a linear mean; one lengthscale;
# additive kernels; and seasons. A kernel with more parameters has a larger maximum by chance: the likelihood is
# averaged over them.
choose_terms <- function(rows, s, smooth, kernels, start, state) {
  now <- smooth[[1L]]
  if (!is.finite(now$value)) return(replace(now, "kernels", list(kernels)))
  few <- nrow(rows$x) <= laplace_sizes$few_rows
  from <- function(model, kernel, tied = FALSE) {
    search_laplace(rows, s, replace(model, c("kernel", "value"), list(as_kernel(kernel), Inf)), start, state, tied)
  }
  found <- c(smooth, line_beside(rows, s, now, start, state))
  if (few && ncol(rows$x) >= laplace_sizes$inputs) {
    # if the inputs share a unit, as in spectra, an input that hardly varies has little information: one lengthscale
    label <- sprintf("%s (isotropic)", now$kernel$label)
    kernel <- place_kernel(new_kernel(now$kernel$profile, label, NULL, NULL, NULL, isotropic = TRUE), rows$x)
    kernel <- with_typical_values(kernel, rows$x, s)
    one <- lowest(lapply(c(0.3, 1), function(scale) {
      from(start, replace(kernel, "lengthscale", scale * kernel$lengthscale))
    }))
    found <- c(found, list(one), line_beside(rows, s, one, start, state))
  }
  if (nrow(rows$x) >= additive_rows[["classes"]] && s$additive && functions_of_f(s$likelihood) == 1L) {
    tied <- lowest(smooth)
    kernel <- with_profile(s$kernel, paste0("additive:", tied$kernel$profile), rows$x)
    if (length(additive_inputs(kernel)) > 1L) {
      kernel <- replace(kernel, "lengthscale", list(tied$kernel$lengthscale))
      found <- c(found, list(from(start, with_typical_values(kernel, rows$x, s), tied$tied)))
    }
  }
  if (few && s$additive) {
    found <- c(found, lapply(season_profiles(s$kernel, "matern32"), function(profile) {
      kernel <- with_profile(s$kernel, profile, rows$x)
      kernel <- with_typical_values(kernel, rows$x, s, function(units) exp(units$middle)) # from the priors' centres
      c(from(now, kernel), list(profile = profile, label = profile_label(profile, s$kernel$periods)))
    }))
  }
  state$so_far <- lowest(found)
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
