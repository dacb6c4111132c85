# The first pass over a source: what is to be known of all rows before any of them can be cleaned (centre and scale of
# the response, levels of factors), and a random sample of them, drawn on the way.

# How rows are taken out of a block: what the call of a formula method says, without its data.
source_recipe <- function(call, envir, source) {
  if (is.null(call$formula)) abort_input("formula", "missing", "a formula such as y ~ x1 + x2")
  formula <- eval(call$formula, envir)
  if (!inherits(formula, "formula")) abort_input("formula", describe(formula), "a formula such as y ~ x1 + x2")
  columns <- stats::setNames(as.list(seq_along(source$columns)), source$columns)
  formula <- stats::formula(stats::terms(formula, data = columns)) # what a dot stands for
  input_variables(stats::terms(formula))
  given <- as.list(call)[intersect(c("subset", "weights", "offset"), names(call))]
  if ("na.action" %in% names(call)) given["na.action"] <- list(eval(call$na.action, envir))
  check_variables_in(source$columns, formula, given)
  list(formula = formula, given = given)
}

# A variable from elsewhere with a value for every row would have to come in blocks as well.
check_variables_in <- function(columns, formula, given) {
  used <- unlist(lapply(c(formula, given[names(given) != "na.action"]), all.vars))
  for (name in setdiff(used, columns)) {
    value <- get0(name, environment(formula))
    if (is.null(value) || (!is.function(value) && length(value) != 1L)) {
      abort_input("formula", sprintf("`%s`, which the source has no column of", name),
                  sprintf("of columns of the source: %s", list_quoted(columns, most = 20L)))
    }
  }
}

# The model frame of a block, for which no other row is needed.
block_frame <- function(recipe, block) {
  parts <- c(list(quote(stats::model.frame), formula = recipe$formula, data = block), recipe$given)
  mf <- evaluate_frame(parts, environment(recipe$formula))
  terms <- attr(mf, "terms")
  by_data <- !mapply(identical, as.list(attr(terms, "predvars"))[-1L], as.list(attr(terms, "variables"))[-1L])
  if (any(by_data)) {
    abort_input("formula", sprintf("`%s`, which depends on all rows", names(mf)[which(by_data)[1L]]),
                "one whose variables can be computed row by row, for a row source")
  }
  mf
}

# list(mf, inputs, x, r, w, largest): the rows that na.action and subset leave, those of weight 0 too. `variables`: how
# inputs are coded; NULL: as this block has them.
block_rows <- function(recipe, block, variables = NULL) {
  mf <- block_frame(recipe, block)
  labels <- row.names(mf)
  used <- names(mf)[input_variables(attr(mf, "terms"))]
  inputs <- lapply(used, function(v) code_variable(mf[[v]], v))
  check_known(variables, inputs)
  rows <- rows_of_frame(mf, if (is.null(variables)) inputs else variables, labels)
  response <- check_response(rows$response, rows$name, nrow(mf), labels)
  offset <- if (is.null(rows$offset)) 0 else rows$offset
  list(mf = mf, inputs = inputs, x = rows$x, r = response - offset, w = rows$w, name = rows$name,
       largest = max(0, abs(response), abs(offset)))
}

check_known <- function(variables, inputs) {
  for (i in seq_along(variables)) {
    if (same_kind(variables[[i]], inputs[[i]]) && all(inputs[[i]]$used %in% variables[[i]]$levels)) next
    abort_input("data", sprintf("one where `%s` is other than in the first pass", variables[[i]]$name),
                "a source that gives the same rows in every pass")
  }
}

same_kind <- function(a, b) a$kind == b$kind && (a$kind == "factor" || a$width == b$width)

# ---- visits ---------------------------------------------------------------------------------------------------------

survey_visit <- function(recipe, size) {
  force(recipe)
  force(size)
  function(block) {
    rows <- block_rows(recipe, block)
    mf <- rows$mf
    variables <- lapply(rows$inputs, function(v) {
      if (v$kind == "factor") {
        v$used <- as.character(unique(mf[[v$name]]))
        v$declared <- is.factor(mf[[v$name]])
      }
      v
    })
    keep <- if (is.null(rows$w)) TRUE else rows$w > 0
    r <- rows$r[keep]
    w <- rows$w[keep]
    values <- lapply(stats::setNames(nm = vapply(variables, `[[`, "", "name")), function(name) {
      value <- mf[[name]]
      if (is.factor(value)) value <- as.character(value)
      if (is.matrix(value)) unclass(value)[keep, , drop = FALSE] else value[keep]
    })
    list(omitted = length(attr(mf, "na.action")), variables = variables, moments = weighted_moments(r, w),
         log_w = if (is.null(w)) 0 else sum(log(w)), weighted = any(rows$w != 1), largest = rows$largest,
         name = rows$name, terms = attr(mf, "terms"),
         sample = reservoir(list(values = values, r = r, w = w), length(r), size))
  }
}

survey_merge <- function(a, b) {
  if (length(b$moments)) a$variables <- Map(merge_variables, a$variables, b$variables)
  for (what in c("omitted", "log_w")) a[[what]] <- a[[what]] + b[[what]]
  a$weighted <- a$weighted || b$weighted
  a$largest <- max(a$largest, b$largest)
  a$moments <- merge_moments(a$moments, b$moments)
  a$sample <- reservoir_merge(a$sample, b$sample)
  a
}

merge_variables <- function(a, b) {
  if (a$kind == "logical" && b$kind == "numeric") a$kind <- "numeric" # a block of nothing but missing values
  if (b$kind == "logical" && a$kind == "numeric") b$kind <- "numeric"
  if (!same_kind(a, b)) {
    abort_input("data", sprintf("one where `%s` is %s in one block and %s in another", a$name, a$kind, b$kind),
                "a source whose columns are of one kind")
  }
  if (a$kind != "factor") return(a)
  a$levels <- union(a$levels, b$levels)
  a$used <- union(a$used, b$used)
  a$declared <- a$declared && b$declared
  a
}

# Levels that some row has; those of a factor in its order, of characters by the alphabet.
final_variable <- function(v) {
  if (v$kind != "factor") return(v)
  levels <- if (v$declared) v$levels[v$levels %in% v$used] else levels(factor(v$used))
  v[c("used", "declared")] <- NULL
  v$levels <- levels
  v$width <- length(levels)
  v$columns <- paste0(v$name, levels)
  v
}

# Number, weight, mean, weighted squares around it, and ends of a response.
weighted_moments <- function(r, w) {
  if (!length(r)) return(NULL)
  total <- if (is.null(w)) length(r) else sum(w)
  mean <- r[1L] + (if (is.null(w)) sum(r - r[1L]) else sum(w * (r - r[1L]))) / total
  squares <- (if (is.null(w)) 1 else w) * (r - mean)^2
  list(n = length(r), total = total, mean = mean, ss = sum(squares), range = range(r))
}

merge_moments <- function(a, b) {
  if (is.null(a)) return(b)
  if (is.null(b)) return(a)
  total <- a$total + b$total
  apart <- b$mean - a$mean
  list(n = a$n + b$n, total = total, mean = a$mean + apart * (b$total / total),
       ss = a$ss + b$ss + apart^2 * (a$total * (b$total / total)), range = range(a$range, b$range))
}

# ---- a random sample of rows that come one after the other ----------------------------------------------------------

# Every row has a random key; the sample is the rows with the least keys, in the order in which they came. Rows beyond
# `most`, the largest key that can still be among them, are left out at once, the others when there are too many.
reservoir <- function(rows, n, size) {
  reservoir_cut(list(size = size, most = 1, chunks = list(c(list(key = stats::runif(n)), rows))))
}

reservoir_merge <- function(a, b) {
  a$most <- min(a$most, b$most)
  a$chunks <- c(a$chunks, lapply(b$chunks, function(rows) take_sampled(rows, which(rows$key <= a$most))))
  if (sum(sampled_in(a)) > 2 * a$size) reservoir_cut(a) else a
}

reservoir_cut <- function(sample) {
  rows <- reservoir_rows(sample)
  if (length(rows$key) > sample$size) {
    sample$most <- sort(rows$key, partial = sample$size)[sample$size]
    rows <- take_sampled(rows, which(rows$key <= sample$most))
  }
  sample$chunks <- list(rows)
  sample
}

sampled_in <- function(sample) vapply(sample$chunks, function(rows) length(rows$key), 0L)

reservoir_rows <- function(sample) {
  chunks <- sample$chunks
  bind <- function(parts) if (is.matrix(parts[[1L]])) do.call(rbind, parts) else unlist(parts, use.names = FALSE)
  of <- function(what) bind(lapply(chunks, `[[`, what))
  values <- lapply(stats::setNames(nm = names(chunks[[1L]]$values)), function(name) {
    bind(lapply(chunks, function(rows) rows$values[[name]]))
  })
  list(key = of("key"), values = values, r = of("r"), w = of("w"))
}

take_sampled <- function(rows, i) {
  some <- function(v) if (is.matrix(v)) v[i, , drop = FALSE] else v[i]
  list(key = rows$key[i], values = lapply(rows$values, some), r = rows$r[i], w = rows$w[i])
}

# ---- the front end --------------------------------------------------------------------------------------------------

# data_from_formula() of a source: the sample as cleaned data, with center and scale of all rows; `whole` has the rest.
data_from_source <- function(source, call, envir, center, scale, size) {
  center <- check_flag(center, "center")
  scale <- check_flag(scale, "scale")
  recipe <- source_recipe(call, envir, source)
  so_far <- new.env()
  survey <- source_pass(source, survey_visit(recipe, size), survey_merge, so_far)
  if (is.null(survey$moments)) {
    abort_input("data", "a source of no rows that could be used", "of at least one row without missing values")
  }
  m <- survey$moments
  unit <- unit_of(m$n, m$mean, sqrt(m$ss / m$total * m$n / (m$n - 1)), m$range, survey$largest, center, scale,
                  survey$name)
  variables <- lapply(survey$variables, final_variable)
  check_levels_return(variables, survey$moments$n)
  sample <- reservoir_rows(reservoir_cut(survey$sample))
  x <- bind_columns(variables, list2DF(sample$values, length(sample$r)))
  data <- clean_data(x, sample$r, survey$name, if (survey$weighted) sample$w, NULL,
                     columns_of_levels(variables), NULL, center = FALSE, scale = FALSE, merge = FALSE)
  data$y <- (data$response - unit$center) / unit$scale
  data[c("center", "scale")] <- unit[c("center", "scale")]
  data$sd_y <- unit$sd
  data$shift <- log_density_shift(data$n, if (is.null(data$weights)) 0 else sum(log(data$weights)), unit$scale, 0, 0)
  data <- add_formula(data, survey$terms, variables, call)
  data$frame$required <- intersect(needed_variables(data$frame), source$columns)
  n <- survey$moments$n
  data$whole <- list(
    source = source, passes = list2env(list(n = 1L)), recipe = recipe, variables = variables, n = n,
    seen = so_far$rows, omitted = survey$omitted,
    center = unit$center, scale = unit$scale, shift = log_density_shift(n, survey$log_w, unit$scale, 0, 0))
  data
}

# ---- later passes ---------------------------------------------------------------------------------------------------

# A pass over the source of `whole`, counted.
whole_pass <- function(whole, visit, merge, so_far = new.env()) {
  whole$passes$n <- whole$passes$n + 1L
  source_pass(whole$source, visit, merge, so_far)
}

# What reading a block takes: the source stays where it is.
without_source <- function(whole) {
  whole[c("source", "passes")] <- NULL
  whole
}

# A block as cleaned rows: list(x, y, weights, n, center, scale, shift), those of weight 0 left out.
clean_block <- function(whole, block) {
  rows <- block_rows(whole$recipe, block, whole$variables)
  keep <- if (is.null(rows$w)) TRUE else rows$w > 0
  w <- rows$w[keep]
  y <- (rows$r[keep] - whole$center) / whole$scale
  list(x = rows$x[keep, , drop = FALSE], y = y, weights = w, n = length(y), center = whole$center,
       scale = whole$scale, shift = list(constant = 0, rows = 0, ss = 0))
}
