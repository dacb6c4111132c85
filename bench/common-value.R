# Compares pfdtc() with and without the rule `common_value` (R/tuning.R) on responses of which over 80 % are equal:
#   Rscript bench/common-value.R
# Draws one such column from each data set of some CRAN packages as the response, with all other numeric columns as
# inputs, at most 250 training rows and 400 test rows. Prints NLPD of both fits in units of the response's sd.

library(pfdtc)
packages <- c("wooldridge", "Ecdat", "AER", "MASS", "carData", "TH.data", "HSAUR2", "VGAM", "ISLR", "mlbench",
              "modeldata", "faraway", "DAAG", "MPV", "earth", "spData", "sandwich", "locfit", "robustbase", "ade4")

# Returns list(name, data, response) for a data set, or NULL if no column qualifies.
one_case <- function(package, name) {
  place <- new.env()
  suppressWarnings(utils::data(list = name, package = package, envir = place))
  d <- tryCatch(as.data.frame(get(name, place)), error = function(e) data.frame())
  d <- stats::na.omit(d[vapply(d, function(v) is.numeric(v) && is.null(dim(v)), NA)])
  d <- d[vapply(d, function(v) length(unique(v)) > 1L, NA)]
  if (ncol(d) < 4L || ncol(d) > 25L || nrow(d) < 120L) return(NULL)
  share <- vapply(d, function(v) max(table(v)) / length(v), 0)
  fit <- names(d)[share > 0.8 & share < 0.985]
  if (!length(fit)) return(NULL)
  response <- fit[sample.int(length(fit), 1L)]
  list(name = paste0(package, "::", name, ":", response), data = d, response = response)
}

set.seed(11)
cases <- list()
for (package in packages[vapply(packages, requireNamespace, NA, quietly = TRUE)]) {
  names <- unique(sub(" .*", "", utils::data(package = package)$results[, "Item"]))
  cases <- c(cases, lapply(names, function(name) one_case(package, name)))
}
cases <- cases[!vapply(cases, is.null, NA)]

# Evaluates `code` with another share in the rule. A share of 1 switches the rule off.
with_share <- function(share, code) {
  rule <- getFromNamespace("common_value", "pfdtc")
  on.exit(assignInNamespace("common_value", rule, "pfdtc"))
  assignInNamespace("common_value", replace(rule, "share", share), "pfdtc")
  code
}

change <- vapply(cases, function(case) {
  set.seed(5)
  rows <- sample(nrow(case$data))
  n <- min(250L, floor(0.7 * length(rows)))
  train <- case$data[rows[seq_len(n)], ]
  test <- case$data[utils::head(rows[-seq_len(n)], 400L), ]
  train <- train[vapply(train, function(v) length(unique(v)) > 1L, NA)]
  if (is.null(train[[case$response]])) return(NA)
  formula <- stats::reformulate(setdiff(names(train), case$response), as.name(case$response))
  nlpd <- function(share) {
    fit <- with_share(share, suppressMessages(suppressWarnings(pfdtc(formula, train))))
    -mean(predict(fit, test, type = "density")) - log(stats::sd(train[[case$response]]))
  }
  both <- tryCatch(c(nlpd(1), nlpd(0.8)), error = function(e) c(NA, NA))
  cat(sprintf("%-45s n %3d  without %7.3f  with %7.3f\n", case$name, n, both[1L], both[2L]))
  both[2L] - both[1L]
}, 0)
change <- change[!is.na(change)]
cat(sprintf("%d sets, %d changed: mean change of NLPD %.3f, cut at .5 nats %.3f, worst %+.3f\n", length(change),
            sum(change != 0), mean(change), mean(pmax(change, -0.5)), max(change)))
