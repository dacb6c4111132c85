# Reads data sets of CRAN packages that decide about defaults. None of them is in bench/race.md.
#   source("bench/sets.R"); sets(); train_and_test("ethanol", seed = 1); held_out_scores(fit, test)
#   Rscript bench/sets.R 'transform = "none"' ''      compares two lists of arguments of pfdtc() on all sets
#   SETS="MASS::cats;sm::trawl" SEEDS=2 Rscript bench/sets.R ...   on some sets, with other splits

# The sets (package::set) and their models. SETS_FOLDER=bench/further has 148 further sets, bench/zeros 14 with many
# zeros or few values, and bench/unseen sets that decide nothing. Colons separate several folders. A set with a second
# formula has the response after a colon (wooldridge::bwght:cigs). Rows with missing values are omitted.
set_folders <- strsplit(Sys.getenv("SETS_FOLDER", "bench"), ":")[[1]]
sets_table <- do.call(rbind, lapply(file.path(set_folders, "sets.csv"), utils::read.csv))
set_formulas <- stats::setNames(sets_table$formula, sets_table$set)

# `SETS_ROWS` is the largest number of training rows of a set, by default 1,500.
most_rows <- as.integer(Sys.getenv("SETS_ROWS", "1500"))

# Returns the names of the sets, or of those `asked` for, that can be loaded, and a message names the others.
sets <- function(asked = strsplit(Sys.getenv("SETS"), ";")[[1]]) {
  all <- if (length(asked)) intersect(asked, names(set_formulas)) else names(set_formulas)
  loads <- vapply(all, function(name) !inherits(try(suppressWarnings(one_set(name)), silent = TRUE), "try-error"), NA)
  if (!all(loads)) message("Skipped, because they cannot be loaded: ", toString(all[!loads]))
  all[loads]
}

# Returns list(formula, data) with the response and the inputs only.
one_set <- function(name) {
  place <- new.env()
  what <- strsplit(sub("([^:]):[^:]+$", "\\1", name), "::")[[1]]
  utils::data(list = what[2], package = what[1], envir = place)
  d <- as.data.frame(get(what[2], place))
  for (j in names(d)) {
    if (is.ordered(d[[j]]) || is.character(d[[j]])) d[[j]] <- factor(as.character(d[[j]]))
    if (inherits(d[[j]], "Date")) d[[j]] <- as.numeric(d[[j]])
  }
  formula <- stats::as.formula(set_formulas[[name]])
  frame <- stats::model.frame(stats::terms(formula, data = d), d, na.action = stats::na.omit, drop.unused.levels = TRUE)
  attr(frame, "terms") <- NULL
  list(formula = stats::as.formula(paste(names(frame)[1], "~ .")), data = as.data.frame(frame))
}

# Returns list(formula, train, test). A quarter of the rows is held out, less those with levels not in `train`.
train_and_test <- function(name, seed = 1) {
  set <- one_set(name)
  set.seed(seed)
  n <- nrow(set$data)
  rows <- sample(n)
  train <- set$data[utils::head(rows, min(most_rows, ceiling(0.75 * n))), , drop = FALSE]
  test <- set$data[utils::head(rev(rows), min(1500, floor(0.25 * n))), , drop = FALSE]
  for (j in names(train)) if (is.factor(train[[j]])) test <- test[test[[j]] %in% train[[j]], , drop = FALSE]
  for (j in names(train)) if (is.factor(train[[j]])) {
    train[[j]] <- droplevels(train[[j]])
    test[[j]] <- factor(test[[j]], levels(train[[j]]))
  }
  list(formula = set$formula, train = train, test = test)
}

# Returns NLPD on the response's own scale in units of the training sd, RMSE over that sd, coverage of 95 % intervals.
held_out_scores <- function(fit, test, sd_of_training, response = names(test)[1]) {
  y <- test[[response]]
  density <- stats::predict(fit, test, type = "density")
  band <- stats::predict(fit, test, interval = "prediction", level = 0.95, type = "response")
  if (is.list(band) && !is.data.frame(band)) band <- band$fit
  point <- band[, "fit"]
  c(nlpd = -mean(density) - log(sd_of_training), rmse = sqrt(mean((y - point)^2)) / sd_of_training,
    coverage = mean(y >= band[, "lwr"] & y <= band[, "upr"]))
}

# Returns the scores of a fit with a list of arguments. If the fit fails, prints the error and returns NA scores.
score_one <- function(name, arguments, seed = 1) {
  s <- train_and_test(name, seed)
  set.seed(seed)
  begun <- proc.time()
  tryCatch({
    fit <- suppressMessages(suppressWarnings(do.call(pfdtc::pfdtc, c(list(s$formula, s$train), arguments))))
    seconds <- sum((proc.time() - begun)[1:2])
    c(held_out_scores(fit, s$test, stats::sd(s$train[[1]])), seconds = seconds)
  }, error = function(e) {
    message(name, ": ", conditionMessage(e))
    c(nlpd = NA, rmse = NA, coverage = NA, seconds = NA)
  })
}

compare_on_sets <- function(first, second, seeds = 1) {
  rows <- lapply(sets(), function(name) {
    each <- lapply(seeds, function(seed) c(score_one(name, first, seed), score_one(name, second, seed)))
    m <- Reduce(`+`, each) / length(each)
    cat(sprintf("%-30s nlpd %7.3f %7.3f (%+.3f)  rmse %.3f %.3f  cover %.3f %.3f  seconds %5.1f %5.1f\n",
                name, m[1], m[5], m[5] - m[1], m[2], m[6], m[3], m[7], m[4], m[8]))
    m
  })
  m <- do.call(rbind, rows)
  m <- m[stats::complete.cases(m), , drop = FALSE]
  change <- m[, 5] - m[, 1]
  ratio <- m[, 6] / m[, 2]
  cat(sprintf("%d sets: change of NLPD mean %.4f, trimmed %.4f, median %.4f\n", nrow(m), mean(change),
              mean(change, trim = 0.1), stats::median(change)))
  cat(sprintf("better by .02 on %d, worse by .02 on %d, by .05 on %d\n", sum(change < -0.02), sum(change > 0.02),
              sum(change > 0.05)))
  cat(sprintf("RMSE ratio geometric mean %.4f, worst %.3f; coverage mean %.3f and %.3f; seconds %.1f and %.1f\n",
              exp(mean(log(ratio))), max(ratio), mean(m[, 3]), mean(m[, 7]), sum(m[, 4]), sum(m[, 8])))
  invisible(m)
}

if (sys.nframe() == 0L) {
  asked <- commandArgs(trailingOnly = TRUE)
  read <- function(text) eval(parse(text = sprintf("list(%s)", text)))
  compare_on_sets(read(asked[1]), read(asked[2]), seq_len(as.integer(Sys.getenv("SEEDS", "1"))))
}
