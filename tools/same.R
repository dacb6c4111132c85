# Compares the numbers of two installed versions of the package, bit by bit.
#   Rscript tools/same.R OLD_LIBRARY NEW_LIBRARY [REGEX]
# Each version runs the cases below in a process of its own, with one thread. Results are compared by identical();
# where they differ, the largest difference relative to the largest number is printed. Nothing is stored, because bits
# depend on the machine. REGEX selects cases by name ("near", "poisson", "certify", ...).

arguments <- commandArgs(trailingOnly = TRUE)

# ---- the fits -------------------------------------------------------------------------------------------------------

# Lists an expression for each kind of fit. The data `d` come from make_data().
fits <- alist(
  exact = pfdtc(y ~ a + b, d),
  matrix = pfdtc(as.matrix(d[c("a", "b")]), d$y, kernel = kernel_se(), m = 20),
  points = pfdtc(y ~ a + b, d, m = 15, neighbours = 0),
  near = pfdtc(y ~ a + b, d, m = 15, neighbours = 8),
  moved = pfdtc(y ~ a + b, d, m = 10, control = pfdtc_control(maxit = 15)),
  sor = gp_sor(y ~ a + b, d, m = 15),
  fitc = gp_fitc(y ~ a + b, d, m = 15),
  vfe = gp_vfe(y ~ a + b, d, m = 10, control = pfdtc_control(maxit = 15)),
  subsample = gp_subsample(y ~ a + b, d, m = 40),
  gp_exact = gp_exact(y ~ a + b, d, kernel = kernel_matern(3 / 2)),
  fixed = pfdtc(y ~ a + b, d, kernel = kernel_se(c(.3, .4), 1), noise = .05, hyper = "fixed", m = 20),
  composite = pfdtc(y ~ a + b, d,
                    kernel = kernel_se(inputs = "a") + kernel_periodic(inputs = "b") * kernel_linear(inputs = "a")),
  factor = pfdtc(y ~ a + g, d),
  weights = pfdtc(y ~ a + b, d, weights = w, m = 15, neighbours = 5),
  copies_of_x = pfdtc(y ~ r, d),
  log = pfdtc(p ~ a + b, d, transform = "log"),
  yeojohnson = pfdtc(p ~ a + b, d, transform = "yeojohnson", m = 15, neighbours = 5),
  noise_trend = pfdtc(y ~ a + b, d, noise = ~ a),
  linear_mean = pfdtc(y ~ a + b, d, mean = ~ a + b, m = 15),
  tolerance = pfdtc(y ~ a + b, d, tol = .2),
  binomial = pfdtc(k ~ a + b, d, family = binomial()),
  probit = pfdtc(k ~ a + b, d, family = binomial("probit"), m = 12, neighbours = 6),
  trials = pfdtc(cbind(s, 6 - s) ~ a + b, d, family = binomial()),
  poisson = pfdtc(n ~ a + b, d, family = poisson()),
  nb = pfdtc(n ~ a + b, d, family = nb()),
  student = pfdtc(y ~ a + b, d, family = student()),
  vi = pfdtc(k ~ a, d, family = binomial(), approx = "vi"),
  large = pfdtc(y ~ a + b, big),
  large_poisson = pfdtc(n ~ a + b, big, family = poisson(), m = 30, neighbours = 5)
)

make_data <- function(n, seed) {
  set.seed(seed)
  a <- stats::runif(n)
  b <- stats::runif(n)
  f <- sin(6 * a) + b^2
  data.frame(a, b, g = factor(sample(letters[1:4], n, TRUE)), r = round(6 * a) / 6, w = stats::runif(n, .5, 2),
             y = f + stats::rnorm(n, sd = .2), p = exp(f + stats::rnorm(n, sd = .2)),
             k = stats::rbinom(n, 1, stats::plogis(2 * f - 1)), s = stats::rbinom(n, 6, stats::plogis(f - 1)),
             n = stats::rpois(n, exp(f)))
}

# ---- results of each fit --------------------------------------------------------------------------------------------

# Returns the columns of a data frame without its other attributes, which hold times and whole posteriors.
plain <- function(v) if (is.data.frame(v)) lapply(unclass(v), as.vector) else v

# Returns a list of all results of `fit`, or the classes of their errors.
asked <- function(fit, new) {
  try_it <- function(e) {
    tryCatch(plain(suppressMessages(suppressWarnings(e))), error = function(e) paste("error:", class(e)[1L]))
  }
  out <- list(coef = try_it(coef(fit)), logLik = try_it(as.numeric(logLik(fit))), vcov = try_it(vcov(fit)),
              loo = try_it(residuals(fit, type = "loo")), pit = try_it({set.seed(3); residuals(fit, type = "pit")}),
              rstandard = try_it(rstandard(fit)), hat = try_it(hatvalues(fit)), cook = try_it(cooks.distance(fit)),
              evidence_bounds = try_it(evidence_bounds(fit)), fitted = try_it(fitted(fit)),
              deviance = try_it(deviance(fit)), linear = try_it(linear_functional(fit, rep(1, nrow(new)), new)),
              partial = try_it(partial_dependence(fit, "a", n = 4)))
  types <- eval(formals(getS3method("predict", "gp_fit", envir = asNamespace("pfdtc")))$type)
  for (type in types) for (interval in c("none", "credible", "prediction", "conformal")) {
    for (certified in c(FALSE, TRUE)) {
      if (certified && interval %in% c("none", "conformal")) next
      label <- paste("predict", type, interval, if (certified) "certified")
      out[[label]] <- try_it(
        if (startsWith(type, "loo")) predict(fit, type = type, interval = interval, se.fit = TRUE) else
          predict(fit, new, type = type, interval = interval, se.fit = !certified && !type %in% c("class", "density"),
                  certified = certified, wrt = if (type == "derivative") "a"))
    }
  }
  out$cov <- try_it(predict(fit, new, full_cov = TRUE))
  out$mixture <- try_it(predict(fit, new, hyper_uncertainty = TRUE, interval = "prediction"))
  for (effort in c("fast", "reference", "tight")) {
    out[[paste("certify", effort)]] <- try_it(certify(fit, new, effort = effort))
  }
  out$simulate <- try_it({
    set.seed(4)
    as.matrix(simulate(fit, 2, seed = 5))
  })
  out$refine <- try_it(refine(fit, new, tol = 1e-3))
  out
}

# Runs all cases with the package in `library`, and writes their results to `file`.
run_cases <- function(library, file, regex) {
  library("pfdtc", lib.loc = library, character.only = TRUE)
  options(pfdtc.threads = 1L, digits = 15)
  space <- list2env(list(d = make_data(120, 1), big = make_data(2300, 2)))
  new <- make_data(7, 9)
  results <- list()
  for (name in grep(regex, names(fits), value = TRUE)) {
    set.seed(11)
    fit <- tryCatch(suppressMessages(suppressWarnings(eval(fits[[name]], space))),
                    error = function(e) paste("error:", class(e)[1L]))
    results[[name]] <- if (is.character(fit)) list(fit = fit) else asked(fit, new)
  }
  saveRDS(results, file)
}

# ---- comparing ------------------------------------------------------------------------------------------------------

numbers <- function(v) suppressWarnings(as.numeric(unlist(v, use.names = FALSE)))

# Describes how `new` differs from `old`, or returns NULL if identical() holds.
difference <- function(old, new) {
  if (identical(old, new, ignore.environment = TRUE, ignore.bytecode = TRUE)) return(NULL)
  if (is.character(old) || is.character(new)) {
    words <- function(v) if (is.character(v)) v[1L] else "a result"
    return(sprintf("%s -> %s", words(old), words(new)))
  }
  a <- numbers(old)
  b <- numbers(new)
  if (length(a) != length(b)) return(sprintf("%d numbers -> %d numbers", length(a), length(b)))
  gap <- abs(a - b)
  gap[(is.na(a) & is.na(b)) | a == b] <- 0
  if (all(gap %in% 0)) return("other attributes, names or types")
  sprintf("%.2g of the largest number", max(gap, na.rm = FALSE) / max(abs(a[is.finite(a)]), 0))
}

if (identical(arguments[1L], "--run")) {
  run_cases(arguments[2L], arguments[3L], arguments[4L])
} else {
  regex <- if (length(arguments) > 2L) arguments[3L] else "."
  script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
  results <- lapply(arguments[1:2], function(library) {
    file <- tempfile(fileext = ".rds")
    status <- system2("Rscript", c("--vanilla", script, "--run", shQuote(normalizePath(library)), file, shQuote(regex)))
    if (status != 0) stop("the run of ", library, " failed")
    readRDS(file)
  })
  total <- same <- 0L
  for (name in names(results[[1L]])) for (what in union(names(results[[1L]][[name]]), names(results[[2L]][[name]]))) {
    total <- total + 1L
    told <- difference(results[[1L]][[name]][[what]], results[[2L]][[name]][[what]])
    if (is.null(told)) same <- same + 1L else cat(sprintf("%-14s %-44s %s\n", name, what, told))
  }
  cat(sprintf("%d of %d results are identical\n", same, total))
}
