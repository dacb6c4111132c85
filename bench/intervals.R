# What is the coverage of intervals of responses, and how wide are they?
#   PFDTC_DATA=<folder of the CSVs> Rscript bench/intervals.R
#
# 1. On the six data sets of the paper, at held-out rows: normal and conformal intervals.
# 2. On small sets, each row by a fit to the others: hyperparameters taken as known or as uncertain, and those of lm().
# ?predict.gp_fit has the numbers of bench/results/intervals.txt.

suppressMessages(library(pfdtc))

covers <- function(band, y) band[, "lwr"] <= y & y <= band[, "upr"]
width <- function(band) mean(band[, "upr"] - band[, "lwr"])

six_sets <- function() {
  sets <- subset(paper_datasets(), paper)
  for (name in sets$name) {
    set.seed(7)
    data <- load_dataset(name)
    set <- sets[sets$name == name, ]
    rows <- sample.int(nrow(data))
    train <- data[rows[seq_len(set$n_train)], ]
    test <- data[rows[set$n_train + seq_len(min(set$n_test, nrow(data) - set$n_train))], ]
    fit <- pfdtc(y ~ ., train)
    cat(sprintf("%s: %d rows, %d held out, %s\n", name, nrow(train), nrow(test), fit$posterior))
    for (level in c(0.5, 0.9, 0.95)) {
      normal <- predict(fit, test, interval = "prediction", level = level)
      conformal <- predict(fit, test, interval = "conformal", level = level)
      cat(sprintf("  %2.0f %%: normal %.1f %%, conformal %.1f %% at %.2f of the width (chance: +- %.1f %%)\n",
                  100 * level, 100 * mean(covers(normal, test$y)), 100 * mean(covers(conformal, test$y)),
                  width(conformal) / width(normal),
                  200 * sqrt(level * (1 - level) * (1 / nrow(test) + 1 / nrow(train)))))
    }
  }
}

small_sets <- function() {
  sets <- list(
    npk = list(yield ~ block + N + P + K, npk), stackloss = list(stack.loss ~ ., stackloss),
    longley = list(Employed ~ ., longley), LifeCycleSavings = list(sr ~ ., LifeCycleSavings),
    swiss = list(Fertility ~ ., swiss), trees = list(Volume ~ Girth + Height, trees),
    women = list(weight ~ height, women), attitude = list(rating ~ ., attitude))
  for (name in names(sets)) {
    formula <- sets[[name]][[1L]]
    data <- sets[[name]][[2L]]
    y <- data[[all.vars(formula)[1L]]]
    one <- function(i) {
      set.seed(i)
      fit <- suppressWarnings(pfdtc(formula, data[-i, ]))
      bands <- list(predict(fit, data[i, ], interval = "prediction"),
                    predict(fit, data[i, ], interval = "prediction", hyper_uncertainty = TRUE),
                    predict(lm(formula, data[-i, ]), data[i, ], interval = "prediction"))
      c(vapply(bands, covers, NA, y = y[i]), vapply(bands, width, 0))
    }
    found <- vapply(seq_along(y), one, numeric(6L))
    share <- 100 * rowMeans(found[1:3, ])
    says <- "%s, %d rows: 95 %% intervals cover %.0f %% known, %.0f %% uncertain (%.2f of the width), lm() %.0f %%\n"
    cat(sprintf(says, name, length(y), share[1L], share[2L], stats::median(found[5L, ] / found[4L, ]), share[3L]))
  }
}

six_sets()
small_sets()
