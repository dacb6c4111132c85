# Makes the first pass over a source. It finds properties of all rows for cleaning (centre and scale of the response,
# levels of factors), and draws a random sample. Later passes clean the rows block by block.

# Returns the cleaned sample, like data_from_formula(), with centre and scale of all rows. `whole` is for later passes.
data_from_source <- function(source, call, envir, center, scale, size, kernel = NULL) {
  center <- check_flag(center, "center")
  scale <- check_flag(scale, "scale")
  recipe <- source_recipe(call, envir, source, kernel)
  so_far <- new.env()
  survey <- source_pass(source, survey_visit(recipe, size), survey_merge, so_far)
  m <- survey$moments
  refuse_if(is.null(m), "data", "has no row without missing values")
  m$sd <- sqrt(m$ss / m$total * m$n / (m$n - 1))
  unit <- response_unit(NULL, NULL, survey$largest, center, scale, survey$name, m)
  variables <- lapply(survey$variables, final_variable, given_levels(kernel))
  check_levels(variables, m$n)
  attr(survey$terms, "grouped") <- recipe$grouped
  sample <- survey$sample
  values <- structure(sample$values, class = "data.frame", row.names = seq_along(sample$r)) # matrices are allowed
  x <- bind_columns(variables, values)
  data <- clean_data(x, sample$r, survey$name, if (survey$weighted) sample$w, NULL,
                     columns_of_levels(variables), NULL, center = FALSE, scale = FALSE, merge = FALSE, unit = unit)
  data <- add_formula(data, survey$terms, variables, call)
  data$frame$required <- intersect(needed_variables(data$frame), source$columns)
  if (survey$offset_squares > 0) data$frame$offset_size <- sqrt(survey$offset_squares)
  data$whole <- list(
    source = source, passes = list2env(list(n = 1L)), recipe = recipe, variables = variables, n = m$n,
    seen = so_far$rows, omitted = survey$omitted,
    center = unit$center, scale = unit$scale, shift = log_density_shift(m$n, survey$log_w, unit$scale))
  data
}

# ---- how blocks are read --------------------------------------------------------------------------------------------

# Returns the recipe for reading rows from a block: the call of a formula method without its data.
source_recipe <- function(call, envir, source, kernel = NULL) {
  columns <- stats::setNames(as.list(seq_along(source$columns)), source$columns)
  formula <- formula_of_groups(check_formula(call, envir), columns, kernel)
  grouped <- attr(formula, "grouped")
  formula <- stats::formula(stats::terms(formula, data = columns)) # this replaces a dot
  input_variables(stats::terms(formula))
  given <- as.list(call)[intersect(c("subset", "weights", "offset"), names(call))]
  # A variable from outside the data with more than one value would have to come in blocks as well.
  for (name in setdiff(unlist(lapply(c(formula, given), all.vars)), source$columns)) {
    value <- get0(name, environment(formula))
    refuse_if(is.null(value) || (!is.function(value) && length(value) != 1L), "formula",
              sprintf("has `%s`, which is no column of the source", name),
              hint = sprintf("Its columns are %s.", list_quoted(source$columns, most = 20L)))
  }
  if ("na.action" %in% names(call)) given["na.action"] <- list(eval(call$na.action, envir))
  list(formula = formula, given = given, grouped = grouped)
}

# Returns list(mf, inputs, x, r, w, name, largest) with the rows that na.action and subset keep, including rows of
# weight 0. Inputs are coded by `variables`, or if it is NULL by the variables of this block alone. Stops if a variable
# depends on other rows.
block_rows <- function(recipe, block, variables = NULL) {
  parts <- c(list(quote(stats::model.frame), formula = recipe$formula, data = block), recipe$given)
  mf <- evaluate_frame(parts, environment(recipe$formula))
  terms <- attr(mf, "terms")
  by_data <- !mapply(identical, as.list(attr(terms, "predvars"))[-1L], as.list(attr(terms, "variables"))[-1L])
  refuse_if(any(by_data), "formula", sprintf("has `%s`, which depends on all rows", names(mf)[which(by_data)[1L]]),
            hint = "Variables of a row source are computed block by block.")
  labels <- row.names(mf)
  used <- names(mf)[input_variables(terms)]
  inputs <- coded_variables(mf, match(used, names(mf)), recipe$grouped)
  for (i in seq_along(variables)) {
    seen <- if (inputs[[i]]$kind == "group") inputs[[i]]$levels else inputs[[i]]$used
    if (same_kind(variables[[i]], inputs[[i]]) && all(seen %in% variables[[i]]$levels)) next
    abort_input("data", sprintf("has another `%s` than in the first pass", variables[[i]]$name),
                hint = "A source must give the same rows in every pass.")
  }
  rows <- rows_of_frame(mf, variables %||% inputs, labels)
  response <- check_response(rows$response, rows$name, nrow(mf), labels)
  offset <- rows$offset %||% 0
  list(mf = mf, inputs = inputs, x = rows$x, r = response - offset, w = rows$w, name = rows$name,
       largest = max(0, abs(response), abs(offset)), offset_squares = offset_squares(rows))
}

same_kind <- function(a, b) a$kind == b$kind && (a$kind == "factor" || a$width == b$width)

# Returns a block as cleaned rows of positive weight, see cleaned().
clean_block <- function(whole, block) {
  rows <- block_rows(whole$recipe, block, whole$variables)
  cleaned(whole, list(x = rows$x, response = rows$r, w = rows$w))
}

# Reads the source of `whole`, joins the values of f(rows, ...) for cleaned rows, and counts the pass. `more` has
# further arguments of f.
whole_pass <- function(whole, f, more, merge, so_far = new.env()) {
  whole$passes$n <- whole$passes$n + 1L
  needed <- whole[setdiff(names(whole), c("source", "passes"))] # visits on workers do not take the source with them
  source_pass(whole$source, visit_rows(clean_block, needed, f, more), merge, so_far)
}

# ---- the first pass -------------------------------------------------------------------------------------------------

survey_visit <- function(recipe, size) {
  list(recipe, size) # a visit takes them to a worker
  function(block) {
    rows <- block_rows(recipe, block)
    mf <- rows$mf
    variables <- lapply(rows$inputs, function(v) {
      value <- mf[[v$name]]
      if (v$kind == "factor") v[c("used", "declared")] <- list(as.character(unique(value)), is.factor(value))
      v
    })
    keep <- (rows$w %||% TRUE) > 0
    r <- rows$r[keep]
    w <- rows$w[keep]
    names <- unique(unlist(lapply(variables, function(v) if (v$kind == "group") v$parts else v$name)))
    values <- lapply(stats::setNames(nm = names), function(name) {
      value <- mf[[name]]
      if (is.factor(value)) value <- as.character(value)
      if (is.matrix(value)) unclass(value)[keep, , drop = FALSE] else value[keep]
    })
    c(rows[c("largest", "offset_squares", "name")], list(
      omitted = length(attr(mf, "na.action")), variables = variables, moments = weighted_moments(r, w),
      log_w = sum_of_logs(w), weighted = any(rows$w != 1), terms = attr(mf, "terms"),
      sample = smallest_keys(list(list(key = stats::runif(length(r)), values = values, r = r, w = w)), size)))
  }
}

survey_merge <- function(a, b) {
  if (length(b$moments)) {
    a$moments <- if (length(a$moments)) merge_moments(a$moments, b$moments) else b$moments
    a$variables <- Map(merge_variables, a$variables, b$variables)
  }
  for (what in c("omitted", "log_w", "offset_squares")) a[[what]] <- a[[what]] + b[[what]]
  a$weighted <- a$weighted || b$weighted
  a$largest <- max(a$largest, b$largest)
  a$sample <- smallest_keys(list(a$sample, b$sample))
  a
}

merge_variables <- function(a, b) {
  if (setequal(c(a$kind, b$kind), c("logical", "numeric"))) a$kind <- b$kind <- "numeric" # a block of NA is logical
  refuse_if(!same_kind(a, b), "data",
            sprintf("has `%s` as %s in one block and as %s in another", a$name, a$kind, b$kind))
  joined <- switch(a$kind, group = c("levels", "plain"), factor = c("levels", "used"))
  a[joined] <- Map(union, a[joined], b[joined])
  if (a$kind == "factor") a$declared <- a$declared && b$declared
  a
}

# Returns a variable with the levels of all rows. Levels of factors keep their order, and those of text are
# alphabetical. Levels without rows stay if they are the row names of a given correlation matrix. Levels of a group are
# in numeric order if all are numbers.
final_variable <- function(v, given = list()) {
  if (v$kind == "group") v$levels <- v$levels[order(utils::type.convert(v$levels, as.is = TRUE))]
  if (v$kind != "factor") return(v)
  keep <- any(vapply(given, setequal, NA, v$levels))
  if (!v$declared) v$levels <- levels(factor(v$used)) else if (!keep) v$levels <- v$levels[v$levels %in% v$used]
  v[c("used", "declared")] <- NULL
  v$width <- length(v$levels)
  v$columns <- paste0(v$name, v$levels)
  v
}

# Returns number, total weight, mean, weighted squares about the mean, and range of a response.
weighted_moments <- function(r, w) {
  if (!length(r)) return(NULL)
  total <- if (is.null(w)) length(r) else sum(w)
  mean <- r[1L] + sum((w %||% 1) * (r - r[1L])) / total
  list(n = length(r), total = total, mean = mean, ss = sum((w %||% 1) * (r - mean)^2), range = range(r))
}

merge_moments <- function(a, b) {
  total <- a$total + b$total
  apart <- b$mean - a$mean
  list(n = a$n + b$n, total = total, mean = a$mean + apart * (b$total / total),
       ss = a$ss + b$ss + apart^2 * (a$total * (b$total / total)), range = range(a$range, b$range))
}

# ---- a random sample of successive rows ------------------------------------------------------------------------------

# Returns a random sample of the rows of some parts, list(key, values, r, w, size). Rows have random keys, and the
# sample has the rows with the smallest keys, in their order.
smallest_keys <- function(parts, size = parts[[1L]]$size) {
  rows <- bind_blocks(parts)
  if (length(rows$key) > size) rows <- take_sampled(rows, which(rows$key <= sort(rows$key, partial = size)[size]))
  rows$size <- size
  rows
}

take_sampled <- function(rows, i) {
  lapply(rows, function(v) if (is.list(v)) take_sampled(v, i) else if (is.matrix(v)) v[i, , drop = FALSE] else v[i])
}
