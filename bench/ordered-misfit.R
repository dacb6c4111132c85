# When does pfdtc() replace ordinal() by multinomial() for ordered classes?   Rscript bench/ordered-misfit.R [samples]
# The family of the response is tried again if misfit_of() is above 2.5, and multinomial() is taken if its leave-one-out
# log density is higher by two standard errors.
#
# Samples of ordinal() (60 to 500 rows, 1 to 10 inputs, 3 to 8 classes): misfit_of() is .2 in the median of 58, 1.8 at
# the 90 % quantile, and above 2.5 in 3 samples, which have classes of few rows.
#
# Data sets, three splits each (results/ordered-classes.csv): mean NLPD of held-out rows, and how often multinomial()
# was tried and taken, for other limits of misfit_of(). Before, misfit_of() was the largest z-statistic of an input or
# its square.
#
#   limit            tried  taken  choice  ordinal()  multinomial()  behind the better  least gain where taken
#   1.5                 30     11  1.0236     1.0338         1.0656              .0028                    .011
#   2                   22     10  1.0241                                        .0033                    .011
#   2.5                 16      9  1.0242                                        .0034                    .026
#   3                   14      8  1.0245                                        .0037                    .029
#   5                    8      6  1.0252                                        .0044                    .091
#   largest z > 2.5     46     12  1.0231                                        .0023                    .011
#   largest z > 3       26      8  1.0246                                        .0038                    .011
#   largest z > 5        6      6  1.0252                                        .0044                    .091
#   none                87     12  1.0231                                        .0023                    .011
#
# Two standard errors are needed: four fits with 1.5 to 2 gain .016, -.004, -.061 and .007 of held-out log density.
#
# Seconds of pfdtc() with 3 inputs and 3 classes: ordinal() kept 6.1 (1,000 rows), 10.3 (2,000), 8.8 (5,000), 25.4
# (50,000), of which misfit_of() takes .1 to .3; multinomial() taken 14.3, 22.8, 31.9, 88.4. On the data sets a trial
# takes 1.6 times the seconds of ordinal() in the median, and 2.1 at the upper quartile.
library(pfdtc)
in_order <- function(y) ordered(as.integer(factor(y)))
by_quantiles <- function(y, k) {
  y <- cut(y, unique(quantile(y, 0:k / k, na.rm = TRUE)), include.lowest = TRUE, ordered_result = TRUE)
  ordered(as.integer(y))
}
from <- function(name, package) {
  e <- new.env()
  utils::data(list = name, package = package, envir = e)
  as.data.frame(e[[name]])
}
with_y <- function(d, y, drop = character()) { # rows without missing values
  d <- as.data.frame(d)
  d[drop] <- NULL
  d$y <- y
  d <- d[stats::complete.cases(d), ]
  d$y <- droplevels(d$y)
  d
}
shared <- function(file) utils::read.csv(file.path(Sys.getenv("PFDTC_DATA"), file))
sets <- list(
  wine = function() with_y(ordinal::wine, ordinal::wine$rating, c("response", "rating", "bottle")),
  soup = function() {
    d <- from("soup", "ordinal")
    with_y(d[c("PROD", "DAY", "SOUPTYPE", "SOUPFREQ", "COLD", "EASY", "GENDER", "AGEGROUP", "LOCATION")], d$SURENESS)
  },
  housing = function() {
    d <- MASS::housing[rep(seq_len(72), MASS::housing$Freq), ]
    with_y(d, d$Sat, c("Sat", "Freq"))
  },
  WVS = function() with_y(carData::WVS, carData::WVS$poverty, "poverty"),
  BEPS_economy = function() {
    with_y(carData::BEPS, in_order(carData::BEPS$economic.cond.national), "economic.cond.national")
  },
  BEPS_Blair = function() with_y(carData::BEPS, in_order(carData::BEPS$Blair), "Blair"),
  Chile_education = function() {
    with_y(carData::Chile, ordered(carData::Chile$education, c("P", "S", "PS")), "education")
  },
  Chile_income = function() with_y(carData::Chile, in_order(carData::Chile$income), "income"),
  Womenlf = function() {
    with_y(carData::Womenlf, ordered(carData::Womenlf$partic, c("not.work", "parttime", "fulltime")), "partic")
  },
  vocabulary = function() {
    d <- carData::GSSvocab
    with_y(d, by_quantiles(d$vocab, 5), c("vocab", "year", "ageGroup", "educGroup"))
  },
  health = function() {
    d <- from("NMES1988", "AER")
    with_y(d, ordered(as.integer(d$health)), "health")
  },
  marriage = function() {
    d <- from("Affairs", "AER")
    with_y(d, in_order(d$rating), "rating")
  },
  happiness = function() {
    d <- from("CHFLS", "HSAUR3")
    with_y(d, d$R_happy, "R_happy")
  },
  boston = function() with_y(MASS::Boston, by_quantiles(MASS::Boston$medv, 5), "medv"),
  abalone = function() {
    d <- shared("abalone.csv")
    with_y(d, by_quantiles(d$y, 5))
  },
  white_wine = function() {
    d <- shared("wine-white.csv")
    with_y(d, ordered(pmin(pmax(d$y, 4), 8)))
  },
  quakes_depth = function() with_y(quakes, by_quantiles(quakes$depth, 5), "depth"),
  quakes_mag = function() with_y(quakes, by_quantiles(quakes$mag, 4), "mag"),
  airquality = function() with_y(airquality, by_quantiles(airquality$Ozone, 4), "Ozone"),
  iris = function() with_y(iris, ordered(iris$Species), "Species"),
  wages = function() {
    d <- carData::SLID
    with_y(d, by_quantiles(d$wages, 5), "wages")
  },
  salaries = function() {
    d <- carData::Salaries
    with_y(d, ordered(d$rank), "rank")
  },
  bmi = function() {
    d <- from("bmi.nz", "VGAM")
    with_y(d, by_quantiles(d$BMI, 5), "BMI")
  },
  education = function() {
    d <- psych::sat.act
    with_y(d, in_order(d$education), "education")
  },
  diamonds_cut = function() with_y(ggplot2::diamonds, ggplot2::diamonds$cut, "cut"),
  diamonds_color = function() with_y(ggplot2::diamonds, ggplot2::diamonds$color, "color"),
  diamonds_clarity = function() with_y(ggplot2::diamonds, ggplot2::diamonds$clarity, "clarity"),
  concrete = function() {
    d <- modeldata::concrete
    with_y(d, by_quantiles(d$compressive_strength, 6), "compressive_strength")
  },
  pima_glucose = function() with_y(MASS::Pima.tr, by_quantiles(MASS::Pima.tr$glu, 4), "glu"))

# Returns the scores of one split: misfit_of(), the gain of multinomial() with its standard error, and held-out NLPD.
score_split <- function(name, split) {
  d <- sets[[name]]()
  set.seed(split)
  d <- d[sample(nrow(d)), ]
  most <- c(600, if (name == "diamonds_cut") 600 else 300, 450)[split]
  n <- min(most, round(0.7 * nrow(d)), if (nlevels(d$y) > 6) 400)
  train <- d[seq_len(n), ]
  test <- utils::head(d[-seq_len(n), ], 2000)
  for (v in names(train)) if (is.factor(train[[v]])) test <- test[test[[v]] %in% train[[v]], ]
  fit <- function(family) suppressWarnings(suppressMessages(pfdtc(y ~ ., train, family = family)))
  own <- function(fit) log(suppressMessages(pfdtc:::loo_shares(fit))$own)
  nlpd <- function(fit) -mean(suppressMessages(predict(fit, test, type = "density")))
  one <- fit(ordinal())
  two <- fit(multinomial())
  gain <- own(two) - own(one)
  row <- data.frame(set = name, split, rows = n, classes = nlevels(d$y), inputs = ncol(d) - 1, misfit =
    suppressMessages(pfdtc:::misfit_of(one))$misfit, gain = mean(gain), se = sd(gain) / sqrt(n), ordinal = nlpd(one),
    multinomial = nlpd(two))
  row$choice <- if (row$misfit > 2.5 && row$gain > 2 * row$se) row$multinomial else row$ordinal
  row
}

score_samples <- function() {
  largest <- numeric()
  for (seed in 1:60) {
    set.seed(seed)
    n <- sample(c(60, 200, 500), 1)
    d <- sample(c(1, 3, 10), 1)
    k <- sample(c(3, 5, 8), 1)
    x <- matrix(if (seed %% 2) rnorm(n * d) else rexp(n * d)^1.5, n)
    latent <- 2 * sin(2 * x[, 1]) + (if (d > 1) pmin(x[, 2]^2, 9) - x[, 3] else 0) + rlogis(n)
    y <- cut(latent, c(-Inf, sort(sample(latent, k - 1)), Inf), labels = seq_len(k), ordered_result = TRUE)
    if (any(table(y) == 0)) next
    fit <- suppressMessages(suppressWarnings(pfdtc(y ~ ., data.frame(x, y = y), family = ordinal())))
    largest <- c(largest, suppressMessages(pfdtc:::misfit_of(fit))$misfit)
  }
  print(quantile(largest, c(0.5, 0.9, 0.95, 1)))
}

if ("samples" %in% commandArgs(TRUE)) {
  score_samples()
} else {
  rows <- do.call(rbind, lapply(names(sets), function(name) do.call(rbind, lapply(1:3, score_split, name = name))))
  print(rows, digits = 3)
  print(colMeans(rows[c("ordinal", "multinomial", "choice")]))
}
