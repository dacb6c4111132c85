test_that("certificates print a summary and some rows, and stay data frames", {
  fit <- fit_cars(m = 4)
  fit$reference <- with_seed(1, reference(fit, m2 = 8))
  x <- with_seed(2, certify(fit))
  expect_s3_class(x, c("pfdtc_certificate", "data.frame"), exact = TRUE)
  said <- utils::capture.output(shown <- withVisible(print(x, n = 3)))
  expect_identical(shown, list(value = x, visible = FALSE))
  text <- paste(said, collapse = " ")
  number <- function(v) show_bound(v, 3)
  expect_match(text, "50 rows.*\"reference\".*\\b8\\b")
  told <- paste(utils::capture.output(print(structure(x, passes = 3L, seconds = 12.34), n = 0)), collapse = " ")
  expect_match(told, "\\b8\\b.*\\b3\\s+products.*12.3 s")
  largest <- max(x$mean_error)
  expect_match(gsub("\\s+", " ", text), fixed = TRUE,
               sprintf("at most %s (%s times the sd of the response)", number(largest),
                       number(largest / sd(cars$dist))))
  expect_false(grepl("transformed", text))
  logs <- gp_exact(dist ~ speed, cars, transform = "log", kernel = kernel_se(5, 1), noise = ~ 1)
  said_logs <- paste(trimws(utils::capture.output(print(certify(logs, cars[1:2, ])))), collapse = " ")
  expect_match(said_logs, "sd of the transformed response.*`median` and `fit` \\(mean\\) are of y")
  ratio <- list(min(x$sd_lower / x$sd), max(x$sd_upper / x$sd))
  expect_match(text, sprintf("%s to %s times `sd`", show_bound(ratio[[1]], 3, up = FALSE), show_bound(ratio[[2]], 4)),
               fixed = TRUE)
  expect_match(text, "\\b47\\b")
  expect_length(grep("^[123] ", said), 3L)
  expect_output(print(structure(x, advice = "More of this would help.")), "More of this")
  # Some rows of a certificate print as one; some columns have no summary.
  expect_output(print(x[2:3, ]), "2 rows")
  expect_identical(x[2:3, "mean"], x$mean[2:3])
  expect_output(print(x[c("mean", "sd")]), "^ +mean +sd")
  expect_output(print(x[0, ]), "0 rows")
  expect_output(print(certify(fit, data.frame(speed = c(NA, 5)))), "2 rows.*NA")
  expect_output(print(certify(fit, data.frame(speed = NA_real_))), "1 row")
  expect_s3_class(rbind(x, x), "data.frame")
  expect_identical(nrow(merge(x, x[1:3, ], by = "mean_error")) >= 3L, TRUE)
  expect_input_error(print(x, n = -1), "n")
  expect_output(print(certify(gp_exact(dist ~ speed, cars, kernel = fit$kernel, noise = fit$noise, hyper = "fixed"))),
                "50 rows.*\"reference\"")
})

test_that("printed bounds are rounded outwards, by less than a unit of the last digit", {
  v <- c(with_seed(1, exp(stats::rnorm(200, 0, 9))), 1, 9.996, 9.994, 1e-300, 0.1 + 0.2, 123456789)
  v <- c(v, -v, 0)
  for (digits in 1:8) {
    upper <- as.numeric(show_bound(v, digits))
    lower <- as.numeric(show_bound(v, digits, up = FALSE))
    expect_true(all(lower <= v & v <= upper))
    expect_lte(max((upper - lower)[v != 0] / abs(v[v != 0])), 10^(1 - digits) * 1.0001)
    expect_identical(lower == upper, signif(v, digits) == v)
  }
  expect_identical(show_bound(c(-Inf, NA, Inf), 3), c("-Inf", "NA", "Inf"))
  x <- certify(fit_cars(m = 4), cars[c(1, 30), , drop = FALSE], effort = "fast")
  text <- utils::capture.output(print(x, digits = 3))
  shown <- utils::read.table(text = utils::tail(text, 3), header = TRUE)
  expect_true(all(shown$mean_lower <= x$mean_lower & shown$mean_upper >= x$mean_upper))
  expect_true(all(shown$sd_lower <= x$sd_lower & shown$sd_upper >= x$sd_upper & shown$mean_error >= x$mean_error))
  expect_match(paste(gsub("\\s+", " ", text), collapse = " "), fixed = TRUE,
               sprintf("%s to %s times", show_bound(min(x$sd_lower / x$sd), 3, up = FALSE),
                       show_bound(max(x$sd_upper / x$sd), 4)))
  ends <- structure(c(lower = -1234.56789, upper = -1234.56781), within = 0.12345, class = "pfdtc_true_evidence")
  expect_output(print(ends), "between -1234.5679 and -1234.5678$|between -1234.5679 and -1234.5678")
  expect_output(print(ends), "at most\\s+0.13[.]")
})

test_that("all tables with bounds print them rounded outwards", {
  fit <- fit_cars(m = 4)
  at <- cars[c(1, 30), , drop = FALSE]
  more <- fit_cars(m = 6)
  fit$reference <- reference(fit)
  manual <- pfdtc(am ~ wt, mtcars, family = binomial(), kernel = kernel_se(1, 4), hyper = "fixed", m = 4)
  d <- data.frame(x = 1:30 / 3, y = rep(c(0, 0, 2, 5, 1), 6))
  hurdle <- gp_hurdle(y ~ x, d, kernel = kernel_se(1, 1), hyper = "fixed", m = 5)
  tables <- list(
    partial_dependence(fit, "speed", at = c(3, 7)), refine(fit, at, 0.01),
    certify(fit, at)[c("mean_lower", "sd_upper")],
    ratios(manual, data.frame(wt = 2:3), data.frame(wt = 4), certified = TRUE),
    error_bounds(fit, at, effort = "fast"), certify(hurdle, d[1:3, ]), anova(fit, more))
  for (x in tables) for (digits in c(3, 6)) {
    text <- utils::capture.output(print(x, digits = digits, width = 200))
    shown <- utils::read.table(text = utils::tail(text, nrow(x) + 1L), header = TRUE, fill = TRUE)
    for (name in grep("(upper|_error|_bound|_sharp)$|^at_most|upr_cert", names(x), value = TRUE)) {
      expect_true(all(shown[[name]] >= x[[name]], na.rm = TRUE), info = name)
    }
    for (name in grep("lower$|^at_least|lwr_cert", names(x), value = TRUE)) {
      expect_true(all(shown[[name]] <= x[[name]], na.rm = TRUE), info = name)
    }
  }
  named <- stats::setNames(cars, c("a_upper", "dist")) # values of a variable are rounded to nearest, whatever its name
  fit <- gp_exact(dist ~ a_upper, named, kernel = kernel_se(5, 400), noise = 200, hyper = "fixed")
  expect_output(print(partial_dependence(fit, "a_upper", at = 5.123), digits = 3), "\n1 +5.12 ")
})

printed <- function(x) paste(utils::capture.output(print(x)), collapse = "\n")

test_that("steps that the fit did not take are not printed, and standard errors only where they are defined", {
  fit <- gp_exact(mpg ~ wt + hp, mtcars, kernel = kernel_se(c(2, 60), 30), noise = 6, hyper = "fixed")
  text <- printed(summary(fit))
  for (word in c("Certified", "Neighbours", "Optimisation", "Kernels tried", "Posterior")) expect_no_match(text, word)
  fit$kernels <- data.frame(kernel = c("Matern 3/2", "Matern 5/2", "linear mean"), score = c(0, 0.01, 1),
                            se = c(0, 0.02, NA), chosen = c(TRUE, FALSE, FALSE))
  lines <- strsplit(printed(summary(fit)), "\n")[[1L]]
  expect_match(grep("^Matern 3/2", lines, value = TRUE), "selected$")
  expect_match(grep("^Matern 5/2", lines, value = TRUE), "0.010 +0.020$")
  expect_match(grep("^linear mean", lines, value = TRUE), "log marginal likelihood +1.000$")
})

test_that("a certificate of a functional is printed as such", {
  fit <- fit_cars(m = 4)
  one <- linear_functional(fit, c(1, -1), data.frame(speed = c(5, 12)))
  expect_match(printed(one), "^Certificate of 1 weighted sum ")
  expect_no_match(printed(one), "row")
})

test_that("a linear mean of one column has a table of its own", {
  flat <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 600), mean = ~ speed, noise = 200, hyper = "fixed")
  lines <- strsplit(printed(flat), "\n")[[1L]]
  table <- summary(flat)$linear
  for (name in rownames(table)) {
    cells <- vapply(signif(table[name, ], 4), format, "")
    expect_match(lines, sprintf("^%s +%s +%s$", sub("([(])(.*)([)])", "[(]\\2[)]", name), cells[[1]], cells[[2]]),
                 all = FALSE)
  }
  trend <- pfdtc(dist ~ speed, cars, noise = ~ speed, kernel = kernel_se(5, 600))
  expect_identical(nrow(summary(trend)$linear), 1L) # a single coefficient is a table, too
  expect_match(printed(trend), sprintf("noise[.]speed +%s", format(signif(summary(trend)$linear[1, 1], 4))))
})

test_that("composite kernels are printed in words, with a row for each input and its range", {
  kernel <- kernel_se(c(2, 60), 30) + kernel_matern(3 / 2, 3, 2, inputs = ~ wt)
  fit <- gp_exact(mpg ~ wt + hp, mtcars, kernel = kernel, noise = 6, hyper = "fixed")
  text <- printed(fit)
  expect_match(text, "Kernel +squared exponential, sd 5[.]477; Matern 3/2 in wt, sd 1[.]414")
  expect_match(text, "Lengthscales +squared exponential +Matern 3/2 +Range")
  expect_match(text, "\nhp +60 +283\n?")
  expect_match(text, sprintf("\nwt +2 +3 +%s", format(signif(diff(range(mtcars$wt)), 4))))
  expect_no_match(text, "wt,hp|matern32")
  kernel <- kernel_se(1, 4) * kernel_periodic(lengthscale = 1, period = 2) + kernel_se(2, 30)
  periodic <- gp_exact(mpg ~ wt, mtcars, kernel = kernel, noise = 6, hyper = "fixed")
  text <- gsub("\\s+", " ", printed(summary(periodic)))
  expect_match(text, "squared exponential (1) times periodic, sd 2; squared exponential (2), sd 5.477", fixed = TRUE)
  expect_match(text, "Lengthscales squared exponential (1) squared exponential (2) Range", fixed = TRUE)
  expect_match(text, "periodic: period 2", fixed = TRUE)
  expect_match(text, "exponential [(]1[)] times periodic [0-9]+ %, squared exponential [(]2[)] [0-9]+ %")
})

test_that("if only one start is best, the difference to the next is printed", {
  learned <- structure(data.frame(evidence = c(-10, -14.5, -30)), same = 2)
  expect_match(describe_starts(learned), fixed = TRUE,
               "first search: 3 starts (1 within 2 nats of the best value; the next best is 4.5 lower)")
  expect_match(describe_starts(structure(learned, same = 5)), "3 starts [(]2 within 5 nats of the best value[)]$")
  expect_match(describe_starts(structure(learned, same = 20)), "(3 within 20 nats", fixed = TRUE)
})

test_that("the line about estimation names the likelihood that was maximised last", {
  d <- with_seed(3, data.frame(x = stats::runif(2100), e = stats::rnorm(2100)))
  d$y <- sin(40 * d$x) + 0.3 * d$e
  line <- function(rows, ...) {
    fit <- with_seed(1, pfdtc(y ~ x, d[seq_len(rows), ], kernel = kernel_matern(3 / 2), transform = "none", ...))
    describe_starts(fit$learned)
  }
  expect_match(line(200), "^log marginal likelihood plus log prior density, ")
  expect_match(line(200, control = pfdtc_control(priors = FALSE)), "^log marginal likelihood, ")
  expect_match(line(2100), "^Vecchia log likelihood plus log prior density, ")
  model <- list(problem = list(pool = list(few = FALSE, n = 9000L), profile = "matern32"), kernels = NULL,
                exact = c(rows = 2000, gain = 0.1, se = 0.01))
  expect_identical(estimated_by(model), "log marginal likelihood of 2000 rows") # little noise, see choose_exactly()
  model$exact["gain"] <- -0.1
  expect_identical(estimated_by(model), "Vecchia log likelihood")
  model$kernels <- structure(list(), gained = list(rows = 800))
  expect_identical(estimated_by(model), "log marginal likelihood of 800 rows") # they chose an additive kernel
  model[c("kernels", "exact")] <- list(NULL)
  model$problem$profile <- "mean" # a linear mean alone has an exact likelihood
  expect_identical(estimated_by(model), "log marginal likelihood of 9000 rows")
})

test_that("summary() of several classes has no shares of terms, whatever the kernel", {
  fit <- pfdtc(Species ~ Petal.Length + Petal.Width, iris[seq(1, 150, 5), ], family = "multinomial", hyper = "fixed",
               kernel = kernel_se(c(2, 1), 4) + kernel_se(2, 1, inputs = ~ Petal.Length))
  expect_output(print(summary(fit)), "3 classes")
})

test_that("no number of print() has hundreds of digits, and tables of many inputs are shortened", {
  d <- data.frame(x = 1:40, y = c(rep(0, 39), 1))
  text <- utils::capture.output(print(suppressMessages(pfdtc(y ~ x, d))))
  expect_lt(max(nchar(text)), 120)
  expect_lt(max(nchar(unlist(strsplit(text, " ")))), 30)
  table <- data.frame(name = paste0("x", 1:50), value = 1:50)
  cut <- utils::capture.output(print_columns(table, rank = 50:1, rest = ": coef(fit)"))
  expect_identical(cut[c(2L, 22L)], c("x50      50", "... and 30 more: coef(fit)"))
  expect_length(utils::capture.output(print_columns(table)), 51L)
  expect_length(utils::capture.output(print_columns(table[1:20, ], rank = 20:1)), 21L)
})

test_that("only the number of inducing points that the user gave is compared with the number used", {
  print_of <- function(fit) paste(trimws(utils::capture.output(print(fit))), collapse = " ")
  expect_match(print_of(fit_cars(m = 40)), "; fewer than `m` = 40, because", fixed = TRUE)
  not_asked <- pfdtc(dist ~ speed, cars, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", keep_data = FALSE)
  expect_no_match(print_of(not_asked), "fewer than", fixed = TRUE)
})

test_that("summaries of other families and of several classes have the shares of the inputs", {
  only_nightly()
  ill <- pfdtc(am ~ wt + qsec, mtcars, family = binomial(), kernel = kernel_se(c(2, 300), 4),
               control = pfdtc_control(restarts = 1))
  shares <- summary(ill)$input_shares
  expect_identical(shares$input, c("wt", "qsec"))
  expect_true(all(shares$total >= 0))
  classes <- with_seed(1, pfdtc(Species ~ Petal.Length + Sepal.Width, iris, kernel = kernel_se(),
                                control = pfdtc_control(restarts = 1)))
  shares <- summary(classes)$input_shares
  expect_identical(shares$input[which.max(shares$total)], "Petal.Length")
  expect_output(print(summary(classes)), "with interactions")
})

test_that("main effects do not add up to more than all", {
  d <- with_seed(5, as.data.frame(matrix(stats::rexp(36)^2, 12)))
  d$y <- d$V1 + 3 * (d$V2 > 1) - d$V3
  shares <- input_shares(gp_exact(y ~ ., d, kernel = kernel_linear())) # f is linear, so all variance is main effects
  expect_equal(sum(shares$alone), 1, tolerance = 1e-12)
})

test_that("a call is printed as R writes it, and data in it are described", {
  d <- stats::setNames(cars, c("the speed", "dist"))
  fit <- pfdtc(dist ~ `the speed`, d, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed")
  expect_output(print(fit), "dist ~ `the speed`, data = d,", fixed = TRUE)
  fit <- do.call(pfdtc, list(dist ~ `the speed`, d, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed"))
  expect_output(print(fit), "data = <a data frame with 50 rows", fixed = TRUE)
})

test_that("the call of a time series can be run again, and report() names the series", {
  fit <- pfdtc(lh, kernel = kernel_se(2, 0.2), noise = 0.1, hyper = "fixed")
  shown <- deparse_shown(fit$call)
  expect_match(shown, "^pfdtc[(]lh, kernel")
  expect_equal(fitted(eval(str2lang(shown))), fitted(fit))
  expect_equal(coef(update(fit, noise = 0.2))[["noise"]], 0.2)
  expect_match(report(fit)$text, "fitted to lh by", fixed = TRUE)
  # Data with an attribute of this name are no series.
  d <- structure(data.frame(y = 1:9, time = 1:9), series = quote(z))
  fit <- do.call(pfdtc, list(y ~ time, d, kernel = kernel_se(2, 9), noise = 1, hyper = "fixed"))
  expect_match(deparse_shown(fit$call), "y ~ time, data", fixed = TRUE)
})

test_that("only factors have columns of levels", {
  fixed <- function(formula, k) {
    fit <- pfdtc(formula, mtcars, kernel = kernel_se(rep(1, k), 30), noise = 9, hyper = "fixed")
    paste(utils::capture.output(print(fit)), collapse = "\n")
  }
  expect_match(fixed(mpg ~ poly(wt, 2) + hp, 3), "2 inputs (3 columns)", fixed = TRUE)
  expect_match(fixed(mpg ~ factor(cyl) + hp, 4), "2 inputs (4 columns: a factor has one for each level)", fixed = TRUE)
})

test_that("a certificate without rows prints its classes, and no difference", {
  fit <- pfdtc(Species ~ Petal.Width, iris[c(1:5, 51:55, 101:105), ], family = multinomial(), hyper = "fixed",
               kernel = kernel_se(1, 1))
  said <- utils::capture.output(print(certify(fit, iris[0, ])))
  expect_match(said[1], "0 rows and 3 classes")
  expect_no_match(paste(said, collapse = " "), "differ")
})

test_that("cut points of ordered classes are printed relative to the intercept of a linear mean", {
  d <- transform(cars, far = cut(dist, c(-Inf, 20, 50, Inf), c("near", "middle", "far"), ordered_result = TRUE))
  fit <- with_seed(1, suppressMessages(pfdtc(far ~ speed, d)))
  beta <- coef(fit)
  cuts <- signif(cumsum(c(0, beta[["width.middle"]])) - beta[["(Intercept)"]], 4)
  shown <- paste(utils::capture.output(print(fit)), collapse = "\n")
  expect_match(shown, sprintf("near|middle %s, middle|far %s", cuts[1], cuts[2]), fixed = TRUE)
  expect_false(grepl("(Intercept)", shown, fixed = TRUE))
  # Where slope * speed is the first printed cut point, f = intercept + slope * speed is 0, the first cut point of f.
  f <- beta[["(Intercept)"]] + beta[["speed"]] * (cuts[1] / beta[["speed"]])
  expect_lt(abs(f), 1e-3 * abs(cuts[1]))
})

test_that("summary() has the value and the parameters of logLik(), also for a model of groups only", {
  fits <- list(pfdtc(dist ~ speed, cars, kernel = kernel_se()),
               pfdtc(weight ~ (1 | Chick), ChickWeight[1:100, ], mean = ~ Time))
  for (fit in fits) expect_equal(summary(fit)$evidence, as.double(logLik(fit)))
  expect_output(print(summary(fits[[2L]])), "restricted likelihood; 4 parameters")
})

test_that("inducing points that no optimisation moves are not printed as optimised", {
  same <- list(dist ~ speed, cars, m = 4, kernel = kernel_se(10, 500), noise = 200, hyper = "fixed")
  expect_false(any(grepl("optimised", utils::capture.output(print(do.call(gp_sor, same))))))
  expect_output(print(do.call(gp_vfe, same)), "optimised locations")
})

test_that("the summary of counts names nb() if they are overdispersed, and not if they are Poisson", {
  said <- function(formula, d, family = poisson()) {
    fit <- pfdtc(formula, d, family = family, kernel = kernel_se(1, 1), hyper = "fixed")
    any(grepl("nb()", capture.output(print(summary(fit)))[-(1:3)], fixed = TRUE))
  }
  expect_true(said(breaks ~ wool + tension, warpbreaks))
  expect_false(said(breaks ~ wool + tension, warpbreaks, nb(10)))
  d <- data.frame(x = 1:60 / 10)
  d$y <- with_seed(1, rpois(60, exp(1 + sin(d$x))))
  expect_false(said(y ~ x, d))
})

test_that("print() and summary() refuse digits below 1", {
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed")
  certified <- certify(fit, cars[1:2, ])
  compared <- compare_fits(list(one = fit, two = fit), fit, cars[1:2, ])
  folds <- cross_validate(fit, folds = 2, hyper = "held")
  above <- exceedance(fit, cars[1:2, ], threshold = 40)
  for (digits in list(0, -1, 2.5, "a")) {
    expect_error(print(fit, digits = digits), "digits", class = "pfdtc_error_input")
    expect_error(summary(fit, digits = digits), "digits", class = "pfdtc_error_input")
    expect_error(print(summary(fit), digits = digits), "digits", class = "pfdtc_error_input")
    expect_error(print(certified, digits = digits), "digits", class = "pfdtc_error_input")
    expect_error(print(compared, digits = digits), "digits", class = "pfdtc_error_input")
    expect_error(print(folds, digits = digits), "digits", class = "pfdtc_error_input")
    expect_error(print(above, digits = digits), "digits", class = "pfdtc_error_input")
  }
})

test_that("the kernel is among the choices, and the table of responses has a legend", {
  fit <- with_seed(1, pfdtc(dist ~ speed, cars, transform = "auto"))
  expect_match(fit$because[["kernel"]], sprintf("The kernel %s was selected from %d kernels", fit$kernel$label,
                                                nrow(fit$kernels)), fixed = TRUE)
  said <- function(...) because_kernel(data.frame(kernel = 1:2, chosen = c(TRUE, FALSE), se = c(...)))[["kernel"]]
  expect_match(said(0, 0.1), "by the log density of rows given other rows[.]$")
  expect_match(said(0, NA), "by the log density of rows given other rows and log marginal likelihood[.]$")
  expect_match(said(NA, NA), "kernels by log marginal likelihood[.]$")
  # The kernel with which others were compared is named, also if a kernel of a later comparison is selected.
  before <- data.frame(kernel = c("a", "b"), score = c(1, 2), se = c(0, 0.1), chosen = c(TRUE, FALSE))
  later <- list(table = data.frame(kernel = c("a", "c"), score = c(5, 1), se = NA, chosen = c(FALSE, TRUE)),
                tried = list(a = list(label = "a")))
  fit$kernels <- join_choices(before, later, 10)
  expect_identical(fit$kernels$kernel[fit$kernels$chosen], "c")
  expect_match(paste(capture.output(print(summary(fit))), collapse = " "), "difference from a, best by density[.]")
  expect_false("kernel" %in% names(pfdtc(dist ~ speed, cars, kernel = kernel_se())$because))
  expect_false(any(grepl("was selected from", capture.output(print(fit)), fixed = TRUE)))
  expect_output(print(fit$response), "NA: not.*candidate")
  expect_s3_class(fit$response[1:2, ], "data.frame")
  # One effect has no scale and no correlation; two have both.
  expect_no_match(utils::capture.output(print(kernel_group(3))), "scale|correlation")
  expect_no_match(utils::capture.output(print(kernel_se() + kernel_group(~ g))), "\\bscale|correlation|parameters")
  expect_match(toString(utils::capture.output(print(kernel_group(~ g, ~ 1 + x)))), "scale.*correlation")
  # Parameters of categorical kernels are printed as what they are.
  expect_match(toString(utils::capture.output(print(kernel_categorical(0.25)))), "correlation: +0.25")
  given <- kernel_categorical(matrix(c(1, 0.5, 0.5, 1), 2L))
  expect_match(toString(utils::capture.output(print(given))), "correlation: +given")
  gaps <- replace(kernel_categorical("ordered"), "parameters", list(c(0.2, 0.3)))
  expect_match(toString(utils::capture.output(print(gaps))), "gaps of levels: +0.2, 0.3 [(]correlation exp")
  expect_match(toString(utils::capture.output(print(kernel_group(~ g, ~ x, correlated = FALSE)))), "correlation: +0")
  expect_output(print(kernel_group(3)), "grouping factor: column 3")
  expect_output(print(kernel_group(~ g)), "grouping factor: g")
})

test_that("a factor has one row of lengthscales if they are equal up to rounding", {
  fit <- pfdtc(uptake ~ conc + Type, datasets::CO2, kernel = kernel_se())
  expect_output(print(fit), "Type [(]factor[)]")
  w <- rep(NA_real_, 84)
  message <- tryCatch(pfdtc(uptake ~ conc, datasets::CO2, weights = w), error = conditionMessage)
  expect_match(message, "All values of `weights` are missing.", fixed = TRUE)
})

test_that("the choices give the reason why a given mean excludes transforms", {
  fit <- with_seed(1, pfdtc(dist ~ speed, cars, mean = ~ speed, transform = "auto"))
  shown <- paste(trimws(utils::capture.output(fit)), collapse = " ")
  expect_match(shown, "Choices +No transform was tried, .* because the coefficients of the given `mean` are in units")
  expect_identical(sum(names(fit$because) == "given_mean"), 1L)
  # With transform = "auto", the response of groups alone is not transformed, whether or not there is a mean.
  teeth <- data.frame(y = c(1.2, 1.9, 3.1, 2.2, 3.3, 3.9), x = c(1, 2, 3, 1, 2, 3), g = gl(2, 3))
  grouped <- suppressWarnings(with_seed(1, pfdtc(y ~ (1 | g), teeth, mean = ~ x, transform = "auto")))
  expect_no_match(paste(utils::capture.output(grouped), collapse = " "), "Response")
  found <- with_seed(1, pfdtc(dist ~ speed, cars, transform = "auto"))
  expect_no_match(paste(utils::capture.output(found), collapse = " "), "was tried")
})

test_that("a constant input is not listed as an input with almost no effect", {
  fit <- pfdtc(dist ~ speed + one, transform(cars, one = 1), kernel = kernel_se(c(5, 1), 1), noise = 200,
               hyper = "fixed")
  expect_no_match(utils::capture.output(fit), "almost no effect")
})

test_that("the table of inputs cuts long names, so that its lines fit", {
  long <- stats::setNames(cars, c(strrep("speed", 20), "dist"))
  fit <- pfdtc(dist ~ ., long, kernel = kernel_se(5, 1), noise = 200, hyper = "fixed")
  expect_match(utils::capture.output(fit), "^speed[sped]*[.]{3} +[0-9]", all = FALSE)
})

test_that("tied lengthscales, weights and the shares of censored responses are printed only where they exist", {
  shown <- function(fit) paste(utils::capture.output(print(fit)), collapse = "\n")
  tied <- pfdtc(case ~ age + parity, infert[1:80, ], family = binomial(), weights = rep(1:2, 40))
  lengths <- stats::coef(tied)[1:2] / apply(as.matrix(infert[1:80, c("age", "parity")]), 2, stats::sd)
  expect_equal(lengths[[1]], lengths[[2]])
  expect_match(shown(tied), "80 rows with weights, 2 inputs.*Lengthscales: one learned number times the sd")
  own <- pfdtc(case ~ age + parity, infert[1:80, ], family = binomial(), kernel = kernel_se(c(5, 2), 1),
               hyper = "fixed")
  expect_no_match(shown(own), "with weights|one learned number")
  trials <- data.frame(x = 1:8, n = c(0, 3, 4, 5, 3, 6, 7, 3))
  none <- pfdtc(cbind(pmin(n, 2), n - pmin(n, 2)) ~ x, trials, family = binomial(), kernel = kernel_se(2, 1),
                hyper = "fixed")
  expect_match(shown(none), "Data +7 rows, 1 input")
  expect_match(paste(utils::capture.output(print(summary(none))), collapse = " "), "Training rows  mean negative log")
  above <- c(4, 1, 2, 6, 3, 5, 2, 1)
  time <- function(family) pfdtc(above ~ x, trials, family = family, kernel = kernel_se(2, 1), hyper = "fixed")
  expect_match(shown(time(tobit(right = 5))), "6 observed, 2 right-censored")
  expect_no_match(shown(time(lognormal())), "events|observed")
})
