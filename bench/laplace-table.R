# Classes and counts beside glm(), glm.nb() and mgcv::gam(): held-out log density and accuracy over five splits, and
# seconds of a fit.    Rscript bench/laplace-table.R > bench/results/laplace-table.txt
suppressMessages(library(pfdtc))
stopifnot(requireNamespace("MASS"), requireNamespace("mgcv"))

score_class <- function(p, y) c(nlpd = -mean(log(ifelse(y, p, 1 - p))), accuracy = mean((p > 0.5) == y))

pima <- rbind(MASS::Pima.tr, MASS::Pima.te)
one_pima <- function(train, test) {
  y <- test$type == "Yes"
  smooth <- type ~ s(npreg, k = 5) + s(glu) + s(bp) + s(skin) + s(bmi) + s(ped) + s(age)
  list(pfdtc = function() score_class(predict(pfdtc(type ~ ., train, family = binomial()), test, type = "response"), y),
       glm = function() score_class(predict(glm(type ~ ., binomial(), train), test, type = "response"), y),
       gam = function() score_class(predict(mgcv::gam(smooth, binomial(), train), test, type = "response"), y))
}

one_quine <- function(train, test) {
  nb_score <- function(mu, theta) {
    c(nlpd = -mean(dnbinom(test$Days, size = theta, mu = mu, log = TRUE)), accuracy = NA)
  }
  formula <- Days ~ Eth + Sex + Age + Lrn
  list(pfdtc = function() {
         fit <- pfdtc(formula, train, family = nb())
         c(nlpd = -mean(predict(fit, test, type = "density")), accuracy = NA)
       },
       "pfdtc, Poisson" = function() {
         fit <- pfdtc(formula, train, family = poisson())
         c(nlpd = -mean(predict(fit, test, type = "density")), accuracy = NA)
       },
       glm.nb = function() {
         fit <- MASS::glm.nb(formula, train)
         nb_score(predict(fit, test, type = "response"), fit$theta)
       },
       "gam, nb" = function() {
         fit <- mgcv::gam(formula, mgcv::nb(), train)
         nb_score(predict(fit, test, type = "response"), fit$family$getTheta(TRUE))
       })
}

run <- function(name, data, one, share) {
  rows <- NULL
  for (split in 1:5) {
    set.seed(split)
    at <- sample(nrow(data), round(share * nrow(data)))
    methods <- one(data[at, ], data[-at, ])
    for (method in names(methods)) {
      seconds <- system.time(score <- suppressMessages(methods[[method]]()))[["elapsed"]]
      rows <- rbind(rows, data.frame(data = name, method, t(score), seconds))
    }
  }
  mean <- aggregate(cbind(nlpd, accuracy, seconds) ~ data + method, rows, mean, na.action = na.pass)
  se <- aggregate(nlpd ~ data + method, rows, function(v) sd(v) / sqrt(length(v)))
  # what differences from the first method have of spread is what tells them apart
  first <- rows$nlpd[rows$method == "pfdtc"]
  apart <- aggregate(nlpd ~ method, rows, function(v) sd(v - first) / sqrt(length(v)))
  cbind(mean, se = se$nlpd, se_of_difference = apart$nlpd)
}

options(width = 120, digits = 4)
print(run("Pima (532 rows, 266 to learn from)", pima, one_pima, 0.5), row.names = FALSE)
print(run("quine (146 rows, 117 to learn from)", MASS::quine, one_quine, 0.8), row.names = FALSE)
