# Fits come from files and other sessions: they may have been saved by an earlier version, or changed since. Every
# function that is given a fit takes it through here once, at its door.

# The fit in today's layout. Until 0.1.0 `posterior` was the list of factors, and the signature had sums of x and y
# alone: these are made again where the fit has its data.
current_fit <- function(fit, argument) {
  if (!is.list(fit)) damaged_fit(fit, argument, "it is not a list")
  if (is.list(fit$posterior) && is.null(fit$factors)) {
    fit$factors <- fit$posterior
    fit$posterior <- posterior_kind(fit)
  }
  check_fit_parts(fit, argument)
  old <- fit$signature
  if (old_signature(fit) && !is.null(fit$data)) {
    fit$signature <- data_signature(fit$data)
    if (identical(fit$reference$signature, old)) fit$reference$signature <- fit$signature
  }
  fit
}

old_signature <- function(fit) !"phi1" %in% names(fit$signature$sums)

# What is read without a further look: sizes that fit together, and numbers that can be computed with. Costs nothing
# that grows with the rows.
check_fit_parts <- function(fit, argument) {
  need <- function(ok, what) if (!isTRUE(ok)) damaged_fit(fit, argument, what)
  number <- function(v, positive = FALSE) {
    is.numeric(v) && length(v) == 1L && is.finite(v) && (!positive || v > 0)
  }
  table <- function(v, rows, columns) is.double(v) && identical(dim(v), c(as.integer(rows), as.integer(columns)))
  numbers <- function(v, n) is.double(v) && length(v) == n

  need(is.character(fit$method) && length(fit$method) == 1L && fit$method %in% names(method_table),
       "`method` is none that is known")
  d <- length(fit$frame$columns)
  need(d > 0L && is.character(fit$frame$columns), "`frame` does not name its columns")
  check_fit_kernel(fit$kernel, d, need, number)
  for (what in c("noise", "scale")) need(number(fit[[what]], TRUE), sprintf("`%s` is not a positive number", what))
  need(number(fit$center), "`center` is not a number")
  need(number(fit$nobs, TRUE), "`nobs` is not a number of rows")

  dense <- !is.null(fit$rows) || fit$method %in% c("gp_exact", "gp_subsample")
  name <- if (dense) "rows" else "inducing"
  f <- fit$factors
  # an exact fit whose posterior was taken out still has its evidence; beside a near field factors are made on demand
  if (!(dense && is.null(fit$rows) && is.null(f)) && is.null(fit$near)) {
    points <- fit[[name]]
    m <- NROW(points)
    need(m > 0L && table(points, m, d), sprintf("`%s` is not a matrix with the %d columns of the inputs", name, d))
    need(is.list(f), "`factors` is not a list")
    shapes <- if (dense) list(L = c(m, m), alpha = m) else
      list(L = c(m, m), G = c(m, m), C = c(m, m), Ay = m, beta = m, yy = 1, k_sum = 1, t = 1, rss = 1)
    for (what in names(shapes)) {
      shape <- shapes[[what]]
      good <- if (length(shape) == 2L) table(f[[what]], m, m) else numbers(f[[what]], shape)
      need(good, sprintf("`factors$%s` is not of the size of `%s`", what, name))
    }
  }
  near <- fit$near
  if (!is.null(near)) {
    m <- NROW(fit$inducing)
    need(!is.null(fit$data), "`data` are gone, which its near field reads")
    need(is.list(near) && table(near$L, m, m) && table(near$C, m, m) && numbers(near$beta, m),
         "`near` is not of the size of `inducing`")
  }
  if (!is.null(fit$data)) check_fit_data(fit$data, d, need, table, numbers)
  sums <- fit$signature$sums
  need(is.double(sums) && all(c("n", "yy") %in% names(sums)) && length(fit$signature$size) == length(sums),
       "`signature` is not one")
}

check_fit_kernel <- function(kernel, d, need, number) {
  need(inherits(kernel, "pfdtc_kernel") && is.list(kernel), "`kernel` is not a kernel")
  inputs <- kernel$inputs
  need(is.numeric(inputs) && length(inputs) > 0L && all(inputs %in% seq_len(d)),
       sprintf("`kernel$inputs` are not among the %d columns of the inputs", d))
  l <- kernel$lengthscale
  need(is.numeric(l) && length(l) == length(inputs) && all(is.finite(l) & l > 0),
       "`kernel$lengthscale` is not a positive number for each input")
  need(number(kernel$variance, TRUE), "`kernel$variance` is not a positive number")
  need(is.character(kernel$profile) && length(kernel$profile) == 1L, "`kernel$profile` is not a name")
}

check_fit_data <- function(data, d, need, table, numbers) {
  need(is.list(data), "`data` is not a list")
  n <- NROW(data$x)
  need(n > 0L && table(data$x, n, d), sprintf("`data$x` is not a matrix with the %d columns of the inputs", d))
  need(numbers(data$y, n), "`data$y` has not a number for each row of `data$x`")
  need(is.null(data$weights) || numbers(data$weights, n), "`data$weights` has not a number for each row of `data$x`")
  group <- data$group
  need(is.null(group) || (is.numeric(group) && length(group) == data$n && all(group %in% seq_len(n))),
       "`data$group` does not say which row of `data$x` each row went to")
}

damaged_fit <- function(fit, argument, what) {
  made_by <- tryCatch(as.character(fit$version), error = function(e) character())
  here <- as.character(utils::packageVersion("pfdtc"))
  other <- length(made_by) == 1L && made_by != here
  abort_input(argument, sprintf("a damaged fit: %s", what), "a fit as it was made",
              message = sprintf("`%s` cannot be used: %s.", argument, what),
              hint = if (other) sprintf("It was made by pfdtc %s, this is %s: fit anew.", made_by, here) else
                "It was changed after it was made: fit anew.")
}
