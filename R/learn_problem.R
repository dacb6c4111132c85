# What learning maximises: value, gradient and information of the log posterior in the free logs, by neighbours or
# exactly.

# Priors are weak and fade (prior_share()): without them an input that says nothing has a lengthscale that goes to
# infinity, and few rows have no noise. In units of the inputs' spread and of y:
#   log l ~ N(log(3 sqrt(d)), 0.7^2),  log variance ~ N(0, 1.5^2),  log noise ~ N(log 0.1, 2^2).
# That of the variance stays where the neighbours' likelihood has the last word: in much noise this does not tell a
# variance from a hundred times it with longer lengthscales, and the order of the rows decides, at a hundredth of NLPD.
# Of one term it is half as wide there.
learning_problem <- function(pool, s, profile) {
  kernel <- s$kernel
  if (is_open(kernel)) kernel <- with_profile(kernel, profile, pool$x)
  table <- parameter_units(kernel, pool$x, pool$signal)
  same <- nrow(table) == length(kernel_values(s$kernel)) # then the names are those of s$free
  names <- parameter_names(if (same) s$kernel else kernel, s$columns)
  last <- length(names)
  unit <- log(c(table$unit, pool$variance * pool$weight))
  given <- log(c(kernel_values(kernel), if (is.null(s$noise)) NA else s$noise))
  kernel <- name_lengthscales(set_values(kernel, ifelse(is.na(given), unit, given)[-last]), pool$x)
  compiled <- compile_kernel(kernel)
  lower <- unit + log(c(table$low, 1))
  lower[last] <- log(pool$floor * pool$weight)
  upper <- unit + log(c(table$high, 10))
  upper[last] <- max(upper[last], lower[last])
  # values given are where the search starts, and may lie outside
  absurd <- !is.na(given) & (given < lower | given > upper)
  lower <- pmin(lower, given, na.rm = TRUE)
  upper <- pmax(upper, given, na.rm = TRUE)
  middle <- unit + c(table$middle, log(0.1))
  fade <- rep(prior_share(pool$n, ncol(pool$x)), last)
  if (!is_small_enough(pool) && !is_mean(kernel)) {
    fade[which(table$what == "variance")] <- if (has_one_factor(kernel)) 4 else 1
  }
  free <- !names %in% not_learned(s)
  precision <- fade * if (s$priors) 1 / c(table$sd, 2)^2 else numeric(last)
  at <- function(theta) {
    value <- exp(unname(theta))
    list(kernel = set_values(compiled, value[-last]), noise = value[last])
  }
  problem <- list(pool = pool, at = at, natural = function(theta) as_users_see(at(theta)), free = free, given = given, absurd = absurd & free, unit = unit,
                  lower = lower, upper = upper, last = last, table = table,
                  profile = profile, composite = !has_one_factor(kernel), run = s$run)
  problem$neighbours <- function(theta, rows, near, earlier = TRUE) {
    sweep_up(pool) # a tree of all rows is most of what learning takes: one at a time
    native_neighbours(at(theta)$kernel, pool$x, min(near, pool$n - 1L), rows = rows,
                      rank = if (earlier) pool$rank, control = s$run)
  }
  problem$prior <- function(theta) {
    list(value = -sum(precision * (theta - middle)^2) / 2, gradient = -precision * (theta - middle),
         information = precision)
  }
  problem$evaluate <- function(theta, rows, neighbours, slopes = TRUE) {
    pool$count$evaluations <- pool$count$evaluations + 1L
    now <- at(theta)
    result <- native_vecchia(pool, now, rows, neighbours, slopes = slopes, control = s$run)
    if (!is.finite(result$value)) return(list(value = -Inf))
    add_merged(result, problem, now$noise, length(rows) / pool$n * pool$share, theta)
  }
  problem
}

# Of a sum the terms go by their profiles alone.
kernel_of <- function(profile) {
  terms <- strsplit(profile, "+", fixed = TRUE)[[1L]]
  if (length(terms) > 1L) {
    return(Reduce(`+`, lapply(terms, function(term) replace(kernel_of(term), "of", list(character())))))
  }
  switch(profile, se = kernel_se(), matern12 = kernel_matern(1 / 2), matern32 = kernel_matern(3 / 2),
         matern52 = kernel_matern(5 / 2), mean = new_kernel("mean", "linear mean", NULL, NULL, NULL))
}

# The log likelihood with the prior, and with the share that merged rows have in it: -(rows/2) log(2 pi s2) - ss/(2 s2).
add_merged <- function(result, problem, noise, share, theta) {
  shift <- problem$pool$shift
  prior <- problem$prior(theta)
  last <- problem$last
  out <- list(likelihood = result$value + share * merged_log_density(shift, noise))
  out$value <- out$likelihood + prior$value
  if (is.null(result$score)) return(out)
  out$gradient <- result$score + prior$gradient
  out$gradient[last] <- out$gradient[last] + share * (shift$ss / (2 * noise) - shift$rows / 2)
  if (!is.null(result$information)) {
    out$information <- result$information + diag(prior$information, last)
    out$information[last, last] <- out$information[last, last] + share * shift$rows / 2
  }
  out
}

# Is its profile still to be chosen, alone or beside a mean?
is_open <- function(kernel) any(vapply(as_sum(kernel)$leaves, function(l) is.null(l$profile), NA))

with_profile <- function(kernel, profile, x) {
  chosen <- kernel_of(profile)
  value <- c("lengthscale", "variance")
  if (has_one_factor(chosen)) chosen[value] <- kernel[value] # of one term: where the search starts
  if (has_one_factor(kernel)) return(place_kernel(with_basis(chosen, x), x))
  open <- vapply(kernel$leaves, function(l) is.null(l$profile), NA)
  kernel$leaves[open] <- lapply(kernel$leaves[open], function(l) {
    l[c("profile", "label")] <- chosen[c("profile", "label")]
    l
  })
  kernel$label <- formula_of_kernel(kernel)
  kernel
}

profile_label <- function(profile) sum_label(kernel_of(profile))

# n^3 flops an evaluation, some ten of them: a second or two at 2,000 rows.
is_small_enough <- function(pool) {
  pool$share == 1 && pool$n <= 2000L && 8 * 2 * pool$n^2 <= getOption("pfdtc.max_memory", 2^32)
}

# Log of the exact evidence times the prior, with its slope.
evaluate_exactly <- function(problem, theta) {
  pool <- problem$pool
  pool$count$evaluations <- pool$count$evaluations + 1L
  now <- problem$at(theta)
  result <- native_exact_evidence(pool, now, problem$run)
  if (!is.null(result$reason)) return(list(value = -Inf))
  add_merged(list(value = -result$value, score = -c(result$theta, result$noise)), problem, now$noise, 1, theta)
}
