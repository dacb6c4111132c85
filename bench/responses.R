# Compares ordered classes, times and positive numbers with common packages: mean negative log density of held-out rows
# (lower is better), two splits of two thirds.
#   Rscript bench/responses.R
# Last run. For times no family is named, and survreg() has the likeliest of its three distributions:
#                        pfdtc                                  peer
#   housing              1.040                                  polr     1.043
#   Boston in fifths      .763                                  polr      .887
#   veteran              5.206                                  survreg  5.157
#   lung                 5.061                                  survreg  5.063
#   airquality           4.161 gamma, 4.117 log transform       glm      4.188
#   Boston               2.583 gamma, 2.488 log transform       glm      2.812
# In eight splits of veteran, pfdtc() is .011 (standard error .031) behind survreg(), and with
# weibull() .029 ahead. Two splits of 46 test rows do not show such differences.
suppressMessages(library(pfdtc))
splits <- 2
held_out <- function(data, score) {
  rowMeans(sapply(seq_len(splits), function(seed) {
    set.seed(seed)
    learn <- sample(nrow(data), min(600, floor(2 / 3 * nrow(data))))
    unlist(score(data[learn, ], data[-learn, ]))
  }))
}
line <- function(name, found) {
  cat(sprintf("%-12s %s\n", name, paste(sprintf("%s %.3f", names(found), found), collapse = ", ")))
}
fit_quietly <- function(...) suppressWarnings(suppressMessages(pfdtc(...)))

# ---- ordered classes ----
of_polr <- function(fit, new, y) {
  P <- stats::predict(fit, new, type = "probs")
  -mean(log(P[cbind(seq_along(y), as.integer(y))]))
}
ordered_race <- function(formula, data) {
  held_out(data, function(learn, test) {
    y <- test[[all.vars(formula)[1]]]
    fit <- fit_quietly(formula, learn, family = ordinal())
    list(pfdtc = -mean(predict(fit, test, type = "density")), polr = of_polr(MASS::polr(formula, learn), test, y))
  })
}
housing <- MASS::housing[rep(seq_len(nrow(MASS::housing)), MASS::housing$Freq), c("Sat", "Infl", "Type", "Cont")]
line("housing", ordered_race(Sat ~ Infl + Type + Cont, housing))
boston <- MASS::Boston
boston$medv <- cut(boston$medv, quantile(boston$medv, 0:5 / 5), 1:5, include.lowest = TRUE, ordered_result = TRUE)
line("Boston", ordered_race(medv ~ ., boston))

# ---- times ----
Surv <- survival::Surv
weibull_race <- function(formula, data, time, status) {
  held_out(data, function(learn, test) {
    density <- function(z, s, t, seen, noise) {
      of_seen <- switch(noise, weibull = z - exp(z), lognormal = dnorm(z, log = TRUE),
                        loglogistic = dlogis(z, log = TRUE))
      of_later <- switch(noise, weibull = -exp(z), lognormal = pnorm(-z, log.p = TRUE),
                         loglogistic = plogis(-z, log.p = TRUE))
      ifelse(seen, of_seen - log(s) - log(t), of_later)
    }
    own <- fit_quietly(formula, learn)
    regs <- lapply(c(weibull = "weibull", loglogistic = "loglogistic", lognormal = "lognormal"), function(dist) {
      survival::survreg(formula, learn, dist = dist)
    })
    best <- which.max(vapply(regs, function(fit) fit$loglik[2], 0))
    reg <- regs[[best]]
    z <- (log(test[[time]]) - predict(reg, test, type = "lp")) / reg$scale
    list(pfdtc = -mean(predict(own, test, type = "density")),
         survreg = -mean(density(z, reg$scale, test[[time]], test[[status]] == 1, names(regs)[best])))
  })
}
veteran <- survival::veteran
line("veteran", weibull_race(Surv(time, status) ~ karno + age + celltype + trt + diagtime, veteran, "time", "status"))
lung <- na.omit(survival::lung[c("time", "status", "age", "sex", "ph.ecog", "ph.karno")])
lung$status <- lung$status - 1
line("lung", weibull_race(Surv(time, status) ~ age + sex + ph.ecog + ph.karno, lung, "time", "status"))

# ---- positive numbers ----
gamma_race <- function(formula, data) {
  held_out(data, function(learn, test) {
    y <- test[[all.vars(formula)[1]]]
    glm <- stats::glm(formula, Gamma("log"), learn)
    k <- 1 / MASS::gamma.dispersion(glm)
    list(gamma = -mean(predict(fit_quietly(formula, learn, family = Gamma("log")), test, type = "density")),
         log = -mean(predict(fit_quietly(formula, learn, transform = "log", noise = ~ 1), test, type = "density")),
         glm = -mean(dgamma(y, k, k / predict(glm, test, type = "response"), log = TRUE)))
  })
}
line("airquality", gamma_race(Ozone ~ Solar.R + Wind + Temp + Day, na.omit(airquality)))
line("Boston", gamma_race(medv ~ ., MASS::Boston))
