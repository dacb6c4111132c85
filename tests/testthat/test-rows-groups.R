grouped_rows <- function(n = 24) {
  with_seed(3, data.frame(y = rnorm(n), x = runif(n), w = runif(n), g = factor(rep(c("b", "a", "c"), length.out = n)),
                          h = rep(c("u", "v"), each = 2, length.out = n), id = rep(c(7, 5, 9, 11), length.out = n)))
}

read_rows_of <- function(formula, data = grouped_rows(), ...) {
  suppressMessages(data_from_formula(quote(pfdtc(formula = formula, data = data)), environment(), ...))
}

test_that("terms with bars are split off and read as lme4 reads them", {
  show <- function(formula) {
    split <- split_bars(formula)
    c(if (is.null(split$smooth)) "" else deparse1(split$smooth[[3]]), vapply(split$groups, group_label, ""))
  }
  expect_identical(show(y ~ x + w + (1 | g)), c("x + w", "g"))
  expect_identical(show(y ~ (1 | g)), c("", "g"))
  expect_identical(show(y ~ (x | g) + w + (0 + x || h)), c("w", "x | g", "0 + x || h"))
  expect_identical(show(y ~ x + (1 | g / h / id)), c("x", "g", "h:g", "id:h:g"))
  expect_identical(show(y ~ x + (1 | g:h) - w), c("x - w", "g:h"))
  expect_identical(show(log(y) ~ x + I(x > w | g)), "x + I(x > w | g)")
  skip_if_not_installed("lme4")
  for (f in c(y ~ x + (x | g / h), y ~ (1 | g) + (0 + x | h), y ~ x + (1 | g:h))) {
    theirs <- vapply(lme4::findbars(f), function(bar) deparse1(bar[[3L]]), "")
    expect_setequal(vapply(split_bars(f)$groups, function(g) deparse1(g$by), ""), theirs)
  }
})

test_that("a bar in any other place is refused, and the error says what to write", {
  for (f in list(y ~ x | g, y ~ x * (1 | g), y ~ x:(1 | g), y ~ 1 + x || g)) {
    expect_input_error(read_rows_of(f), "I(")
  }
  expect_input_error(read_rows_of(y ~ x + (x:w | g)), "product")
  expect_input_error(read_rows_of(y ~ x + (1 | g + h)), "a/b")
})

test_that("a group is one column of level numbers", {
  d <- grouped_rows()
  data <- read_rows_of(y ~ x + (w | g) + (1 | g:h), d)
  expect_identical(colnames(data$x), c("x", "w", "(g)", "(g:h)"))
  levels <- data$frame$variables[[3]]$levels
  expect_identical(levels[data$x[, "(g)"]], as.character(d$g))
  expect_identical(data$frame$variables[[4]]$levels[data$x[, "(g:h)"]], paste(d$g, d$h, sep = ":"))
  expect_identical(vapply(data$frame$variables, function(v) isTRUE(v$apart), NA), c(FALSE, TRUE, TRUE, TRUE))
  # The smooth part may read the design too. A group may be a number, and also an input.
  expect_identical(colnames(read_rows_of(y ~ x + (x | g), d)$x), c("x", "(g)"))
  expect_identical(colnames(read_rows_of(y ~ id + (1 | id), d)$x), c("id", "(id)"))
  expect_message(data_from_formula(quote(pfdtc(formula = y ~ x + (1 | id), data = d)), environment()), "numeric",
                 class = "pfdtc_message_groups")
  # A dot omits groups; unused levels are dropped.
  expect_identical(colnames(read_rows_of(y ~ . - h + (1 | g), d[c("y", "x", "g", "h")])$x), c("x", "(g)"))
  few <- read_rows_of(y ~ x + (1 | g), d[d$g != "c", ])
  expect_identical(few$frame$variables[[2]]$levels, c("a", "b"))
  # The group of a kernel, and the inputs of a mean, need not be inputs of the formula.
  expect_identical(colnames(read_rows_of(y ~ x, d, kernel = kernel_se() + kernel_group(~ g, ~ 0 + w))$x),
                   c("x", "w", "(g)"))
  expect_identical(colnames(read_rows_of(y ~ (1 | g), d, mean = ~ x + w)$x), c("x", "w", "(g)"))
})

test_that("each new level has a number of its own, the same in all calls", {
  v <- read_rows_of(y ~ x + (1 | g))$frame$variables[[2]]
  codes <- function(g) group_codes(v, list(g = g))
  expect_identical(codes(c("b", "a")), c(2, 1))
  new <- codes(c("b", "new", NA, "other", "new", NA))
  expect_identical(new[1], 2)
  expect_true(all(new[-1] < 0))
  expect_identical(new[2], new[5])
  expect_identical(anyDuplicated(new[-5]), 0L)
  expect_identical(codes(c("other", "new")), new[c(4, 2)])
  # Names with equal numbers are distinct levels.
  with_replaced(list(name_number = function(text) -5), {
    expect_identical(codes(c("new", "b", "other", "new", "third")), c(-5, 2, -6, -5, -7))
  })
  expect_lt(max(abs(codes(c(strrep("z", 200), NA)))), 2^53 - 2^41) # so that numbered() can add 2^40 without rounding
})

test_that("groups that cannot be learned are refused", {
  d <- grouped_rows()
  d$one <- "a"
  d$each <- seq_len(nrow(d))
  d$many <- matrix(1, nrow(d), 2)
  expect_input_error(read_rows_of(y ~ x + (1 | one), d), "1 level")
  expect_input_error(read_rows_of(y ~ x + (1 | each), d), "each row")
  expect_input_error(read_rows_of(y ~ x + (1 | many), d), "many")
  d$none <- NA
  expect_input_error(read_rows_of(y ~ x + (1 | none), d), "none")
  d$g[3] <- NA
  expect_identical(nrow(read_rows_of(y ~ x + (1 | g), d)$x), nrow(d) - 1L) # as lme4 does
})

test_that("names of groups, their designs and other inputs may be any text", {
  plain <- data.frame(y = sin(1:30 / 4), x = 1:30 / 10, g = rep(c("a", "b", "c"), 10))
  odd <- stats::setNames(plain, c("y", "my x", "the g"))
  for (text in c("y ~ X + (1 | G)", "y ~ log(X) + (1 | G)", "y ~ X + (1 + X | G)", "y ~ . + (1 | G)",
                 "y ~ X + (1 | G:z)")) {
    rows <- function(x, g, d) read_rows_of(stats::as.formula(gsub("G", g, gsub("X", x, text))), cbind(d, z = 1:2))
    expect_identical(unname(rows("`my x`", "`the g`", odd)$x), unname(rows("x", "g", plain)$x))
  }
  fit <- pfdtc(y ~ `my x` + (1 + `my x` | `the g`), odd, kernel = kernel_se(1, 1, inputs = ~ `my x`), noise = 0.1,
               control = pfdtc_control(maxit = 1, restarts = 1))
  like <- pfdtc(y ~ x + (1 + x | g), plain, kernel = kernel_se(1, 1, inputs = ~ x), noise = 0.1,
                control = pfdtc_control(maxit = 1, restarts = 1))
  expect_equal(predict(fit, odd[1:2, ]), predict(like, plain[1:2, ]))
  expect_identical(names(ranef.gp_fit(fit)), "the g")
  found <- find_formula.gp_fit(fit)
  expect_identical(all.vars(found$conditional), c("y", "my x"))
  expect_identical(all.vars(found$random), c("my x", "the g"))
  linear <- pfdtc(y ~ log(`my x`), odd, mean = ~ log(`my x`), kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed")
  expect_true("log(`my x`)" %in% names(coef(linear)))
})

test_that("the error for newdata without the group names re = FALSE", {
  fit <- pfdtc(weight ~ Time + (1 | Chick), ChickWeight[1:60, ], plain = TRUE, control = pfdtc_control(restarts = 1))
  expect_error(predict(fit, data.frame(Time = 3)), "re = FALSE", class = "pfdtc_error_input")
  expect_message(predict(fit, data.frame(Time = 3, Chick = "new")), "leaves out the effects",
                 class = "pfdtc_message_new_levels")
  d <- data.frame(x = 1:8, y = c(3, 1, 2, 4, 6, 5, 7, 8), a = rep(1:2, 4), b = rep(1:4, each = 2))
  two <- pfdtc(y ~ x + (1 | a) + (1 | b), d, plain = TRUE, control = pfdtc_control(restarts = 1))
  expect_message(predict(two, data.frame(x = 3, a = 9, b = 1)), "New level of `a` in row 1",
                 class = "pfdtc_message_new_levels")
})

test_that("names in backticks work in categorical kernels and in functions of inputs", {
  d <- with_seed(1, data.frame(x = stats::runif(40), y = stats::rnorm(40), g = factor(rep(1:5, 8))))
  odd <- stats::setNames(d, c("my x", "my y", "my g"))
  fit <- function(...) pfdtc(..., noise = 1, hyper = "fixed")
  same <- function(a, b) expect_equal(predict(a, odd[1:3, ]), predict(b, d[1:3, ]))
  levels <- function(by) kernel_se(1, 1, inputs = by[[2]]) * kernel_categorical(0.5, inputs = by[[1]])
  same(fit(`my y` ~ `my x` + `my g`, odd, kernel = levels(list(~`my g`, ~`my x`))),
       fit(y ~ x + g, d, kernel = levels(list(~g, ~x))))
  same(fit(`my y` ~ log(`my x`), odd, kernel = kernel_se(1, 1, inputs = ~ log(`my x`))),
       fit(y ~ log(x), d, kernel = kernel_se(1, 1)))
  expect_input_error(kernel_se(inputs = ~.), "formula of variables")
})

test_that("levels of two factors with colons in their names are not mixed up", {
  d <- with_seed(1, data.frame(g = rep(c("a:b", "a", "a:b\\", "a\\"), 10), h = rep(c("c", "b:c"), 20),
                               x = stats::runif(40)))
  d$y <- c(-2, 2, 0, 4)[rep(1:4, 10)] + with_seed(2, 0.1 * stats::rnorm(40))
  fit <- pfdtc(y ~ x + (1 | g:h), d, kernel = kernel_se())
  expect_identical(nrow(ranef.gp_fit(fit)[[1L]]), 4L)
  expect_lt(max(abs(predict(fit, d) - d$y)), 0.5) # five sds of the noise
})

test_that("the level of a time or a number does not depend on other rows, the time zone or the type of the number", {
  d <- data.frame(t = as.POSIXct("2026-03-01", tz = "UTC") + 43200 * rep(0:5, 5),
                  id = rep(c(1, 5, 1e5, 2e5, 3e5), each = 6))
  d$y <- with_seed(1, as.numeric(factor(d$t)) + d$id / 1e5 + 0.1 * stats::rnorm(30))
  d$x <- seq(0, 1, length.out = 30)
  kernel <- kernel_se(1, 1) + kernel_group(~ t, variance = 1) + kernel_group(~ id, variance = 1)
  fit <- suppressMessages(pfdtc(y ~ x + (1 | t) + (1 | id), d, kernel = kernel, noise = 0.1, hyper = "fixed"))
  want <- unname(predict(fit))
  expect_identical(rownames(ranef.gp_fit(fit)$t)[1:2], c("2026-03-01", "2026-03-01 12:00:00")) # as as.character()
  expect_equal(unname(predict(fit, d)), want)
  midnights <- which(format(d$t, "%H") == "00")
  expect_silent(expect_equal(unname(predict(fit, d[midnights, ])), want[midnights]))
  attr(d$t, "tzone") <- "America/New_York"
  expect_silent(expect_equal(unname(predict(fit, transform(d, id = as.integer(id)))), want))
  near <- data.frame(t = seq(-1.4, 1.4, by = 0.2), y = sin(1:15)) # round(-0.4) is -0, which equals 0
  kernel <- kernel_se(1, 1, ~ t) + kernel_group(~ round(t), variance = 1)
  rounded <- suppressMessages(pfdtc(y ~ t + (1 | round(t)), near, kernel = kernel, noise = 0.1, hyper = "fixed"))
  expect_identical(rownames(ranef.gp_fit(rounded)[[1L]]), c("-1", "0", "1"))
  expect_silent(expect_equal(predict(rounded, near), predict(rounded)))
})

test_that("text in Latin-1 has the levels of the same text in UTF-8", {
  utf8 <- data.frame(x = 1:12, g = rep(c("\u00e9clair", "th\u00e9", "5\u00b0"), 4), y = sin(1:12))
  latin1 <- transform(utf8, g = iconv(g, "UTF-8", "latin1"))
  of <- function(data, formula = y ~ x + g) {
    gp_exact(formula, data, kernel = kernel_se(2, 1), noise = 0.1, hyper = "fixed")
  }
  expect_identical(predict(of(latin1), utf8), predict(of(utf8), utf8))
  expect_identical(predict(of(utf8), latin1), predict(of(utf8), utf8))
  expect_message(pfdtc(g ~ x, latin1, kernel = kernel_se(2, 1), hyper = "fixed"), "3 classes")
  expect_input_error(of(latin1, g ~ x), "multinomial()")
  labels <- transform(latin1, g = paste(g, x)) # a level for each row
  expect_message(pfdtc(y ~ x + g, labels), "left out", class = "pfdtc_message_levels")
  expect_identical(is.na(as_number(c("1.5", latin1$g[1], "\xe9", NA))), c(FALSE, TRUE, TRUE, TRUE))
})
