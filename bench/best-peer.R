# How far is pfdtc(y ~ ., data) from the best of other packages, all with their defaults?
#   R_LIBS=LIBRARY Rscript bench/best-peer.R peers     rows of peers that bench/results/best-peer.csv lacks
#   Rscript bench/best-peer.R pfdtc [set;set]          rows of pfdtc, again ("lm;gam": rows of these peers)
#   Rscript bench/best-peer.R                          prints distances to the best peer of each set
# bench/unseen/sets.csv lists the sets. No default was set by them before these measurements. (Two rules that they
# suggested, of copies and of linear means, were decided on bench/sets.csv and confirmed on them.) A set has one split:
# at most 300 rows to learn from, at most 500 to predict. Sets whose response has two classes are in the second table.
#
# NLPD is the mean negative log predictive density of held-out rows. The distance of a set is the NLPD of pfdtc less the
# least NLPD of its peers: pfdtc is first if it is below 0. Means are of distances clipped at .5. RMSE is relative to
# the least RMSE of the peers (geometric mean), coverage is that of 95 % intervals.
#
# 62 sets of numbers, 37 to 300 rows. Peers: lm, earth, ranger, cubist, bart on all, laGP on 61, gam on 57, DiceKriging
# on 44 (it cannot predict repeated test inputs), GpGp on 26, hetGP on 7 (begun last). Fits that failed are empty rows.
# Versions of November 2026, each with the changes of those before; the number is the day:
#                                                         first on   mean   behind by .1 on  coverage  RMSE
#   23, before the changes below                                    -.066        11                    1.075
#   23, simulators transformed (bench/simulators.R),          37    -.065        10            .944    1.066
#       tails and smooth noise compared on equal terms
#   23, few rows climbed to their optimum                     37    -.065        10            .941    1.063
#   26, all transforms and tails for values that repeat; a    41    -.106         7            .942    1.061
#       linear mean alone only if as likely as the kernel
#   26, intervals of Student's t below 50 rows                41    -.106         8            .942    1.061
#   26, tails found again beside the final kernel (tails.R)   41    -.107         8            .942    1.061
#   26, a start with one short lengthscale (individuals.R)    42    -.114         7            .942    1.051
#   26, averages over an uncertain noise variance up to 200   43    -.116         6            .942    1.051
#       rows (few.R)
#   27, logs of skewed inputs up to 2,000 rows and a fixed    43    -.118         6            .942    1.045
#       order of these rows, decided on other sets
# The largest single changes of NLPD came with values that repeat (fulmar 1.67 to -2.89, but its coverage fell from .955
# to .858; smacker 2.97 to .39), with simulators (Electricity1955 -1.43 to -.99, but RMSE .40 to .26) and with the short
# lengthscale (dietox -.49 to -.95, where this start was found). soil was not run again after the 23rd: its package is
# no longer on CRAN.
#
# Where pfdtc lost on 23 November:
#   37 to 54 rows with 12 to 17 held out (columb, States, bodyfat); many zeros (smacker, fulmar: `family` is meant)
#   dietox, where smooth noise was chosen in place of a second optimum
#   USCrudes, chemdiab, biomass, which have one or two held-out outliers; little else is common to the losses
#   RMSE: sums of skewed responses (Electricity1955, Forbes2000, Fatalities), where pfdtc has the least NLPD
#
# 25 sets of two classes, 58 to 300 rows: pfdtc is first on 7, its mean distance is +.018, the worst +.084; it is behind
# by more than .02 on 9, all but one with fewer than 240 rows. Seven peers win on different sets (svm 6, ranger 5, bart
# 4, lasso 4). Two changes of NLPD that were not built (more are in bench/two-classes.R):
#   kernel_additive(): mean -.003; better by .02 or more on HMDA and wpbc, worse on heart and urine, although the log
#     marginal likelihood gains 4 nats on heart
#   rank-normal scores of the inputs, 16 sets: mean -.011, better by .01 on 8, worse on 3; the log marginal likelihood
#     does not show on which
# Kernels of rotated inputs (bench/classes-line.R) change no set by more than .002. With warped inputs
# (bench/warped-inputs.R), as stored, pfdtc is first on 9, its mean distance is +.015, the worst +.084; it is behind by
# more than .02 on 7. A fit takes 1.1 to 1.4 s.
#
# The first 70 development sets (bench/sets.csv, bench/further), beside lm, gam, earth, ranger and bart, some 5 of them
# beside fewer: pfdtc is first on three quarters, behind by .1 on 6. On ctsib (by 3.3) and mpg (.27) rows are copies of
# others, which count once by intention, while trees repeat them. On msleep (.51), cornnit (.41), ethanol (.17) and
# fruitfly (.13), which have 33 to 93 rows, a linear mean alone, a transform or a rough kernel was chosen by a gain of
# one to three nats.
#
# 26 November, 38 sets of 699 to 6,000 rows to learn from (bench/results/middle.csv; 7 are unseen, the others took part
# in decisions), beside lm, gam, earth, ranger, cubist and bart: pfdtc is first on 33, its mean distance is -.215, it is
# behind by at most .015, coverage is .946, RMSE .985. The median fit takes 5.2 s (bart 1.8, gam 1.6). Summary, and rows
# again:
#   export SETS_FOLDER=bench:bench/further:bench/unseen SETS_ROWS=6000 RESULTS=bench/results/middle.csv
#   Rscript bench/best-peer.R; Rscript bench/best-peer.R pfdtc "AER::Guns;plm::Cigar"
Sys.setenv(SETS_FOLDER = Sys.getenv("SETS_FOLDER", "bench/unseen"), SETS_ROWS = Sys.getenv("SETS_ROWS", "300"))
source("bench/sets.R")
results <- Sys.getenv("RESULTS", "bench/results/best-peer.csv")

# ---- peers: fit(s) -> list(mean, var) or list(mean, density) for s of split_set() ----------
# Predictive variances are those of bench/race.md. Without a variance of its own, a peer has its generalised
# cross-validation (earth), out-of-bag (ranger) or held-out error (cubist).

smooth_terms <- function(s) {
  k <- apply(s$x, 2, function(column) length(unique(column))) - 1
  v <- paste0("x[, ", seq_along(k), "]")
  if (length(k) <= 2) return(sprintf("s(%s)", toString(v)))
  ifelse(k >= 3, sprintf("s(%s, k = %d)", v, pmin(10, k)), v)
}
gam_of <- function(s, ...) {
  fit <- mgcv::gam(stats::reformulate(smooth_terms(s), "y"), data = list(y = s$y, x = s$x), method = "REML", ...)
  c(list(gam = fit), stats::predict(fit, list(x = s$new), se.fit = TRUE, type = "response"))
}
regressions <- list(
  lm = function(s) {
    p <- stats::predict(fit <- stats::lm(target ~ ., s$train), s$test, se.fit = TRUE)
    list(mean = p$fit, var = p$se.fit^2 + p$residual.scale^2)
  },
  gam = function(s) {
    p <- gam_of(s)
    list(mean = p$fit, var = p$se.fit^2 + p$gam$sig2)
  },
  earth = function(s) {
    fit <- earth::earth(s$x, s$y)
    list(mean = stats::predict(fit, s$new)[, 1], var = fit$gcv)
  },
  ranger = function(s) {
    fit <- ranger::ranger(target ~ ., s$train, num.threads = 1)
    list(mean = stats::predict(fit, s$test, num.threads = 1)$predictions, var = fit$prediction.error)
  },
  cubist = function(s) {
    fit <- function(rows) Cubist::cubist(data.frame(s$x)[rows, , drop = FALSE], s$y[rows], committees = 20)
    held <- sample(length(s$y), ceiling(length(s$y) / 10))
    error <- s$y[held] - stats::predict(fit(-held), data.frame(s$x)[held, , drop = FALSE])
    list(mean = stats::predict(fit(seq_along(s$y)), data.frame(s$new)), var = mean(error^2))
  },
  bart = function(s) {
    fit <- dbarts::bart(s$x, s$y, s$new, verbose = FALSE, keeptrees = FALSE)
    list(mean = fit$yhat.test.mean, var = apply(fit$yhat.test, 2, stats::var) + mean(fit$sigma^2), density = log(
      vapply(seq_along(s$seen), function(i) mean(stats::dnorm(s$seen[i], fit$yhat.test[, i], fit$sigma)), 0)))
  },
  GpGp = function(s) {
    fit <- GpGp::fit_model(s$y, s$x, matrix(1, length(s$y)), "matern15_scaledim", silent = TRUE)
    known <- seq_along(s$y)
    k <- GpGp::matern15_scaledim(fit$covparms, rbind(s$x, s$new))
    w <- solve(k[known, known], k[known, -known])
    list(mean = fit$betahat + drop(crossprod(w, s$y - fit$betahat)),
         var = diag(k)[-known] - colSums(w * k[known, -known]))
  },
  laGP = function(s) {
    range <- laGP::darg(list(mle = TRUE), s$x)
    g <- laGP::garg(list(mle = TRUE), s$y)
    id <- laGP::newGPsep(s$x, s$y, d = range$start, g = g$start, dK = TRUE)
    laGP::jmleGPsep(id, drange = c(range$min, range$max), grange = c(g$min, g$max), dab = range$ab, gab = g$ab)
    p <- laGP::predGPsep(id, s$new, lite = TRUE)
    list(mean = p$mean, var = p$s2)
  },
  hetGP = function(s) {
    p <- stats::predict(hetGP::mleHetGP(s$x, s$y, covtype = "Matern5_2"), s$new)
    list(mean = p$mean, var = p$sd2 + p$nugs)
  },
  DiceKriging = function(s) {
    if (any(duplicated(rbind(s$x, s$new))[-seq_along(s$y)])) stop("test inputs repeat training inputs")
    fit <- DiceKriging::km(design = data.frame(s$x), response = s$y, nugget.estim = TRUE, control = list(trace = FALSE))
    p <- DiceKriging::predict(fit, data.frame(s$new), type = "UK", checkNames = FALSE)
    list(mean = p$mean, var = p$sd^2)
  })
classes <- list( # fit(s) returns list(mean = probability of the second class)
  glm = function(s) {
    list(mean = stats::predict(stats::glm(target ~ ., "binomial", s$train), s$test, type = "response"))
  },
  lasso = function(s) {
    fit <- glmnet::cv.glmnet(s$x, s$y, family = "binomial")
    list(mean = drop(stats::predict(fit, s$new, s = "lambda.min", type = "response")))
  },
  lda = function(s) list(mean = stats::predict(MASS::lda(target ~ ., s$train), s$test)$posterior[, 2]),
  gam = function(s) list(mean = gam_of(s, family = "binomial")$fit),
  ranger = function(s) {
    fit <- ranger::ranger(target ~ ., s$train, probability = TRUE, num.threads = 1)
    list(mean = stats::predict(fit, s$test, num.threads = 1)$predictions[, 2])
  },
  svm = function(s) {
    fit <- e1071::svm(target ~ ., s$train, probability = TRUE)
    p <- attr(stats::predict(fit, s$test, probability = TRUE), "probabilities")
    list(mean = p[, levels(s$train$target)[2]])
  },
  bart = function(s) {
    list(mean = colMeans(stats::pnorm(dbarts::bart(s$x, s$y, s$new, verbose = FALSE, keeptrees = FALSE)$yhat.test)))
  })

# ---- one row ---------------------------------------------------------------------------------------------------------

# Returns data frames `train` and `test` with response `target` and numbers scaled by the training rows; the matrices
# `x` and `new` of inputs; and the responses `y` and `seen`.
split_set <- function(name) {
  s <- train_and_test(name)
  s$test <- utils::head(s$test, 500)
  for (j in names(s$train)) if (is.numeric(s$train[[j]])) {
    unit <- stats::sd(s$train[[j]])
    middle <- mean(s$train[[j]])
    for (part in c("train", "test")) s[[part]][[j]] <- (s[[part]][[j]] - middle) / if (unit > 0) unit else 1
  }
  names(s$train)[1] <- names(s$test)[1] <- "target"
  both <- stats::model.matrix(target ~ ., rbind(s$train, s$test))[, -1, drop = FALSE]
  n <- nrow(s$train)
  s[c("x", "new")] <- list(both[seq_len(n), , drop = FALSE], both[-seq_len(n), , drop = FALSE])
  s[c("y", "seen")] <- lapply(s[c("train", "test")], function(rows) rows$target)
  if (is.factor(s$y)) s[c("y", "seen")] <- lapply(s[c("y", "seen")], function(y) as.numeric(y) - 1)
  s
}

scores <- function(s, p, seconds) {
  two <- is.factor(s$train$target)
  if (two) p$mean <- pmin(pmax(p$mean, 1e-4), 1 - 1e-4)
  density <- if (two) log(ifelse(s$seen == 1, p$mean, 1 - p$mean)) else if (!is.null(p$density)) p$density else
    stats::dnorm(s$seen, p$mean, sqrt(pmax(p$var, 1e-12)), log = TRUE)
  inside <- if (!is.null(p$inside)) p$inside else if (two) NA else abs(s$seen - p$mean) <= 1.96 * sqrt(p$var)
  data.frame(nlpd = -mean(density), rmse = sqrt(mean((s$seen - p$mean)^2)), cover = mean(inside), seconds)
}

pfdtc_on <- function(s) {
  fit <- pfdtc::pfdtc(target ~ ., s$train)
  if (is.factor(s$train$target)) return(list(mean = stats::predict(fit, s$test, type = "response")))
  band <- stats::predict(fit, s$test, interval = "prediction", level = 0.95, type = "response")
  list(mean = band[, "fit"], density = stats::predict(fit, s$test, type = "density"),
       inside = s$seen >= band[, "lwr"] & s$seen <= band[, "upr"])
}

# Runs a method in a process of its own, for at most five minutes.
run <- function(set, method) {
  fit <- if (method == "pfdtc") pfdtc_on else c(regressions, classes)[[method]]
  job <- parallel::mcparallel(suppressMessages(suppressWarnings({
    s <- split_set(set)
    if (is.factor(s$train$target)) fit <- if (method == "pfdtc") fit else classes[[method]]
    set.seed(1)
    begun <- proc.time()
    p <- fit(s)
    cbind(rows = nrow(s$train), inputs = ncol(s$train) - 1, classes = is.factor(s$train$target),
          round(scores(s, p, sum((proc.time() - begun)[1:2])), 4))
  })), silent = TRUE)
  found <- parallel::mccollect(job, wait = FALSE, timeout = 300)[[1]]
  if (is.null(found)) tools::pskill(job$pid)
  if (!is.data.frame(found)) {
    message(set, " ", method, ": ", if (is.null(found)) "takes more than 5 minutes" else found)
    found <- data.frame(rows = NA, inputs = NA, classes = method %in% setdiff(names(classes), names(regressions)),
                        nlpd = NA, rmse = NA, cover = NA, seconds = NA)
  }
  cat(sprintf("%-30s %-12s nlpd %7.3f rmse %6.3f cover %5.3f %5.1f s\n", set, method, found$nlpd, found$rmse,
              found$cover, found$seconds))
  cbind(set, method, found)
}

# ---- all rows --------------------------------------------------------------------------------------------------------

summarise <- function(table, limit) {
  ours <- table[table$method == "pfdtc", ]
  peers <- table[table$method != "pfdtc" & !is.na(table$nlpd), ]
  best <- do.call(rbind, lapply(ours$set, function(set) {
    rows <- peers[peers$set == set, ]
    rows <- rows[order(rows$nlpd), ]
    data.frame(peer = rows$method[1], nlpd_peer = rows$nlpd[1], least_rmse = min(rows$rmse),
               rmse_peer = rows$method[which.min(rows$rmse)])
  }))
  d <- cbind(ours[c("set", "rows", "inputs", "nlpd")], best[1:2], behind = round(ours$nlpd - best$nlpd_peer, 3),
             rmse = round(ours$rmse / best$least_rmse, 2), rmse_peer = best$rmse_peer, cover = ours$cover)
  print(d[order(d$behind), ], row.names = FALSE)
  clipped <- pmin(pmax(d$behind, -0.5), 0.5)
  cat(sprintf("%d sets: first on %d, mean distance %.3f, behind by more than %.2f on %d; ", nrow(d), sum(d$behind <= 0),
              mean(clipped), limit, sum(d$behind > limit)))
  cat(sprintf("RMSE over the least of all peers' %.3f; coverage %.3f; %.1f s a fit\n\n", exp(mean(log(d$rmse))),
              mean(d$cover), mean(ours$seconds)))
}

arguments <- commandArgs(TRUE)
table <- if (file.exists(results)) utils::read.csv(results)
if (length(arguments)) {
  for (set in if (length(arguments) > 1L) sets(strsplit(arguments[2], ";")[[1]]) else sets()) {
    peers <- names(if (is.factor(one_set(set)$data[[1]])) classes else regressions)
    peers <- setdiff(peers, table$method[table$set == set])
    methods <- if (arguments[1] == "peers") peers else
      intersect(strsplit(arguments[1], ";")[[1]], c("pfdtc", peers))
    for (method in methods) {
      table <- rbind(table[!(table$set == set & table$method == method), ], run(set, method))
      utils::write.csv(table, results, row.names = FALSE, quote = FALSE, na = "")
    }
  }
} else {
  summarise(table[!table$classes, ], 0.1)
  summarise(table[table$classes, ], 0.02)
}
