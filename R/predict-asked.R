# Which combinations of arguments of predict() exist, for which responses.

predict_types <- c("latent", "response", "loo", "loo_latent", "link", "class", "density", "terms", "derivative",
                   "median", "mean", "survival", "quantile")
predict_intervals <- c("none", "credible", "prediction", "conformal")

# The combinations that exist. Each kind of response has a row for each type, with the intervals and the arguments that
# go with it. Kinds are "normal" (Gaussian), "transformed" (Gaussian after a transform), "other" (counts and numbers),
# "classes" (one of two), "labels" (one of several), "ordered" (one of several in an order), "times", and "own" (a
# likelihood that the user defines).
allowed <- local({
  each <- c("none", "credible", "prediction")
  row <- function(intervals, ...) list(intervals = intervals, with = c(...))
  all <- c("se.fit", "certified", "full_cov", "hyper_uncertainty", "newdata")
  plain <- list(
    terms = row("none", "se.fit", "newdata"),
    derivative = row(c("none", "credible"), "se.fit", "certified", "newdata"),
    density = row("none", "hyper_uncertainty", "newdata"))
  every <- c(each, "conformal")
  normal <- c(plain, list(
    latent = row(every, all), mean = row(every, all), response = row(every, all), median = row(every, all),
    loo = row(each, "se.fit"), loo_latent = row(each, "se.fit")))
  transformed <- utils::modifyList(normal, list(
    response = row(every, setdiff(all, "full_cov")), median = row(every, setdiff(all, c("full_cov", "se.fit")))))
  plain$derivative$with <- setdiff(plain$derivative$with, "certified")
  plain$density$with <- "newdata"
  other <- c(plain, list(
    latent = row(each, all), mean = row(each, setdiff(all, "full_cov")), response = row(each, setdiff(all, "full_cov")),
    median = row(each, "hyper_uncertainty", "newdata"), quantile = row("none", "hyper_uncertainty", "newdata"),
    loo = row(each, "se.fit"), loo_latent = row(each, "se.fit")))
  classes <- lapply(other[setdiff(names(other), c("median", "quantile"))], function(row) {
    replace(row, "intervals", list(setdiff(row$intervals, "prediction")))
  })
  classes$class <- row("none", "hyper_uncertainty", "newdata")
  ordered <- utils::modifyList(other[setdiff(names(other), c("median", "quantile"))], list(
    response = row(c("none", "credible"), "se.fit", "certified", "hyper_uncertainty", "newdata"),
    loo = row("none", "se.fit"), class = row(c("none", "prediction", "conformal"), "hyper_uncertainty", "newdata")))
  own <- other[setdiff(names(other), c("median", "quantile"))]
  own <- lapply(own, function(row) replace(row, "intervals", list(setdiff(row$intervals, "prediction"))))
  times <- c(other, list(survival = row(c("none", "credible"), "certified", "hyper_uncertainty", "newdata")))
  each_class <- row(c("none", "credible"), "se.fit", "certified", "newdata")
  labels <- list(latent = each_class, mean = each_class, response = each_class, density = plain$density,
                 class = row(c("none", "prediction", "conformal"), "newdata"),
                 loo = row(c("none", "credible"), "se.fit"), loo_latent = row(c("none", "credible"), "se.fit"))
  list(normal = normal, transformed = transformed, other = other, classes = classes, labels = labels,
       ordered = ordered, times = times, own = own)
})

# Checks the arguments of predict() and their combination. `ask` is a named list of the arguments.
check_asked <- function(response, ask) {
  if (is.numeric(ask$hyper_uncertainty)) { # R reads `h` as the start of this name
    abort_input("hyper_uncertainty", ask$hyper_uncertainty, "TRUE or FALSE", hint =
                  "If `h` was a number of steps: use forecast(<fit>, h = <steps>), or give their times as `newdata`.")
  }
  flags <- c("se.fit", "certified", "full_cov", "hyper_uncertainty")
  for (flag in flags) ask[[flag]] <- check_flag(ask[[flag]], flag)
  other <- !response$conjugate
  if (is.null(ask$type) || identical(ask$type, predict_types)) ask$type <- if (other) "latent" else "mean"
  rows <- allowed[[response_kind(response)]]
  type <- if (is.character(ask$type) && length(ask$type) == 1L) predict_types[pmatch(ask$type, predict_types)]
  if (identical(type, "link")) type <- "latent"
  of <- sprintf("with %s responses", response$label)
  row <- if (is.character(type)) rows[[type]]
  if (is.null(row)) {
    hint <- if (is.character(type)) did_you_mean(ask$type, names(rows), TRUE)
    if (is.character(type) && isTRUE(grepl("^prob", ask$type))) hint <- "Probabilities have type = \"response\"."
    abort_input("type", paste(describe(ask$type), of), paste("one of", list_quoted(names(rows), "\"", 12L)), hint)
  }
  ask$type <- type
  if (identical(ask$interval, "confidence")) ask$interval <- "credible"
  ask$level <- check_level(ask$level)
  known <- is.character(ask$interval) && all(ask$interval %in% predict_intervals)
  ask$interval <- check_choice(ask$interval, if (known) predict_intervals else row$intervals, "interval")
  beside <- sprintf("beside type = \"%s\" %s", type, of)
  interval <- sprintf("interval = \"%s\"", ask$interval)
  if (!ask$interval %in% row$intervals) {
    abort_input("interval", sprintf("\"%s\" %s", ask$interval, beside), list_quoted(row$intervals, "\""), hint =
                  if (response$reads %in% c("classes", "ordered")) "Use type = \"response\" for probabilities.")
  }
  for (flag in c(flags, "newdata")) {
    if (ask[[flag]] && !flag %in% row$with) abort_input(flag, paste("given", beside), "left out there")
  }
  # pairs of arguments that exclude each other, whatever the type
  refuse <- function(wrong, argument, beside, hint = NULL) {
    if (wrong) abort_input(argument, paste("TRUE beside", beside), "FALSE there", hint = hint)
  }
  refuse(ask$certified && ask$interval %in% c("none", "conformal"), "certified", interval,
         "Certificates need interval = \"credible\" or \"prediction\".")
  refuse(other && ask$certified && ask$interval == "prediction", "certified", interval, "Use interval = \"credible\".")
  refuse(other && ask$certified && ask$hyper_uncertainty, "certified", "`hyper_uncertainty`")
  refuse(!is.null(response$transform) && ask$certified && ask$hyper_uncertainty && ask$interval == "credible" &&
           type %in% c("mean", "response"), "certified", "`hyper_uncertainty`", "Use type = \"median\".")
  if (!ask$re && (ask$certified || ask$interval == "conformal" ||
                    type %in% c("loo", "loo_latent", "terms", "derivative"))) {
    abort_input("re", "FALSE", "TRUE beside `certified`, conformal intervals, terms, slopes and leave-one-out")
  }
  refuse(ask$hyper_uncertainty && ask$interval == "conformal", "hyper_uncertainty", interval)
  refuse(other && ask$full_cov && ask$interval == "prediction", "full_cov", interval)
  if (type == "mean" && other && !is_ordered(response)) ask$type <- "response"
  ask
}
