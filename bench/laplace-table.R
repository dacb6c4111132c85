# Compares classes and counts with other packages: held-out log density, Brier score and accuracy over splits, seconds.
#
#   PFDTC_DATA=<folder> Rscript bench/laplace-table.R [set[:splits] ...]
#
# Appends to bench/results/laplace-table.csv; a split in this file is not run again. Sets: pima, sonar, spam (log
# inputs), quine, mack, quakes (counts of earthquakes in cells of 2 degrees), late (flights more than 15 minutes late:
# the first 70,000 of the file, of which 50,000 random ones are learned from and the others scored; all other sets are
# complete), and with few rows crabs (by species), biopsy, birthwt and kyphosis. Packages that are not installed are
# skipped, and so are gplite and kernlab for more than 2,000 rows, because of their cubic cost. At the end the script
# prints differences from pfdtc, the numbers of bench/README.md.
suppressMessages(library(pfdtc))
options(pfdtc.threads = 1L)
has <- function(p) requireNamespace(p, quietly = TRUE)
of_class <- function(p, y) {
  p <- pmin(pmax(as.numeric(p), 1e-6), 1 - 1e-6) # forests predict 0 and 1
  c(nlpd = -mean(log(ifelse(y, p, 1 - p))), brier = mean((p - y)^2), accuracy = mean((p > 0.5) == y))
}
of_count <- function(density) c(nlpd = -mean(density), brier = NA, accuracy = NA)

# Returns list(fit, new = the other rows' inputs) of gplite with its defaults (one lengthscale) on inputs in sds.
gplite_fit <- function(formula, train, test, y, likelihood, approximation) {
  frame <- stats::model.matrix(stats::delete.response(stats::terms(formula, data = train)), rbind(train, test))
  x <- scale(frame[, colnames(frame) != "(Intercept)", drop = FALSE])
  rows <- seq_len(nrow(train))
  gp <- gplite::gp_init(gplite::cf_sexp(), likelihood, approx = approximation)
  list(fit = gplite::gp_optim(gp, x[rows, ], y, verbose = FALSE), new = x[-rows, , drop = FALSE])
}
gplites <- c("gplite, Laplace" = "approx_laplace", "gplite, EP" = "approx_ep")
with_approximation <- function(name, f) {
  force(name)
  function() f(getExportedValue("gplite", name)())
}

classes <- function(formula, smooth = NULL, many = FALSE) {
  function(train, test) {
    response <- all.vars(formula)[1L]
    train[[response]] <- factor(train[[response]])
    y <- test[[response]] == levels(train[[response]])[2L]
    score <- function(p) of_class(p, y)
    methods <- list(
      pfdtc = function() score(predict(pfdtc(formula, train, family = binomial()), test, type = "response")),
      glm = function() score(predict(glm(formula, binomial(), train), test, type = "response")))
    if (has("mgcv") && !is.null(smooth)) methods$mgcv <- function() {
      fit <- if (many) mgcv::bam(smooth, binomial(), train) else mgcv::gam(smooth, binomial(), train, method = "REML")
      score(predict(fit, test, type = "response"))
    }
    if (has("ranger")) methods$ranger <- function() {
      fit <- ranger::ranger(formula, train, probability = TRUE, num.threads = 1)
      score(predict(fit, test, num.threads = 1)$predictions[, 2L])
    }
    if (has("kernlab") && nrow(train) < 2000) methods$kernlab <- function() {
      fit <- kernlab::gausspr(formula, train)
      score(kernlab::predict(fit, test, type = "probabilities")[, 2L])
    }
    if (has("gplite") && nrow(train) < 2000) {
      truth <- as.integer(train[[response]]) - 1L
      for (name in names(gplites)) methods[[name]] <- with_approximation(gplites[[name]], function(approximation) {
        gp <- gplite_fit(formula, train, test, truth, gplite::lik_bernoulli(), approximation)
        score(gplite::gp_pred(gp$fit, gp$new, var = TRUE, transform = TRUE)$mean)
      })
    }
    methods
  }
}

counts <- function(formula, smooth, offset = NULL) {
  function(train, test) {
    y <- test[[all.vars(formula)[1L]]]
    nb_score <- function(mu, theta) of_count(dnbinom(y, size = theta, mu = mu, log = TRUE))
    methods <- list(
      pfdtc = function() of_count(predict(pfdtc(formula, train, family = nb()), test, type = "density")),
      "pfdtc, Poisson" = function() {
        of_count(predict(pfdtc(formula, train, family = poisson()), test, type = "density"))
      })
    if (has("MASS")) methods$glm.nb <- function() {
      fit <- MASS::glm.nb(formula, train)
      nb_score(predict(fit, test, type = "response"), fit$theta)
    }
    if (has("mgcv")) methods$mgcv <- function() {
      fit <- mgcv::gam(smooth, mgcv::nb(), train, method = "REML")
      nb_score(predict(fit, test, type = "response"), fit$family$getTheta(TRUE))
    }
    if (has("gplite") && is.null(attr(terms(formula), "offset"))) { # gplite has no offsets and no negative binomial
      # Its expectation propagation for counts fails (quine) or does not end (quakes).
      methods[["gplite, Laplace"]] <- function() {
        gp <- gplite_fit(formula, train, test, train[[all.vars(formula)[1L]]], gplite::lik_poisson(),
                         gplite::approx_laplace())
        f <- gplite::gp_pred(gp$fit, gp$new, var = TRUE)
        at <- seq(-8, 8, by = 0.1)
        rate <- exp(outer(sqrt(f$var), at) + f$mean)
        of_count(log(drop(matrix(stats::dpois(y, rate), length(y)) %*% (0.1 * stats::dnorm(at)))))
      }
    }
    methods
  }
}

smooths <- function(response, numeric, others = character(), k = -1) {
  stats::reformulate(c(sprintf("s(%s, k = %d)", numeric, as.integer(k)), others), response)
}

sets <- list(
  pima = function() {
    d <- rbind(MASS::Pima.tr, MASS::Pima.te)
    list(d, 266, classes(type ~ ., smooths("type", names(d)[1:7], k = 5)))
  },
  sonar = function() {
    e <- new.env()
    utils::data("Sonar", package = "mlbench", envir = e)
    list(e$Sonar, 140, classes(Class ~ .))
  },
  crabs = function() {
    d <- MASS::crabs[c("sp", "FL", "RW", "CL", "CW", "BD")]
    list(d, 60, classes(sp ~ ., smooths("sp", names(d)[-1L], k = 5)))
  },
  biopsy = function() list(na.omit(MASS::biopsy[-1L]), 60, classes(class ~ .)),
  birthwt = function() {
    d <- MASS::birthwt[setdiff(names(MASS::birthwt), "bwt")]
    d$race <- factor(d$race)
    list(d, 130, classes(low ~ ., smooths("low", c("age", "lwt"), c("race", "smoke", "ptl", "ht", "ui", "ftv"), k = 5)))
  },
  kyphosis = function() {
    list(rpart::kyphosis, 50, classes(Kyphosis ~ ., smooths("Kyphosis", c("Age", "Number", "Start"), k = 5)))
  },
  spam = function() {
    e <- new.env()
    utils::data("spam", package = "kernlab", envir = e)
    d <- e$spam
    d[1:57] <- lapply(d[1:57], function(v) log(v + 0.1))
    list(d, 3000, classes(type ~ ., smooths("type", names(d)[1:57], k = 4), many = TRUE))
  },
  quine = function() {
    list(MASS::quine, 117, counts(Days ~ Eth + Sex + Age + Lrn, Days ~ Eth + Sex + Age + Lrn))
  },
  mack = function() {
    e <- new.env()
    utils::data("mack", package = "gamair", envir = e)
    d <- na.omit(e$mack[c("egg.count", "lon", "lat", "b.depth", "c.dist", "temp.surf", "temp.20m", "net.area")])
    d$log.depth <- log(d$b.depth)
    list(d, 450, counts(egg.count ~ lon + lat + log.depth + c.dist + temp.20m + offset(log(net.area)),
                        egg.count ~ s(lon, lat) + s(log.depth) + s(c.dist) + s(temp.20m) + offset(log(net.area))))
  },
  quakes = function() {
    at <- function(v, by) by * floor(v / by) + by / 2
    d <- as.data.frame(table(long = at(datasets::quakes$long, 1), lat = at(datasets::quakes$lat, 1)),
                       stringsAsFactors = FALSE)
    d[] <- lapply(d, as.numeric)
    list(d, round(0.7 * nrow(d)), counts(Freq ~ long + lat, Freq ~ s(long, lat, k = 60)))
  },
  late = function() {
    d <- utils::read.csv(file.path(Sys.getenv("PFDTC_DATA"), "delays800k.csv.gz"))
    names(d)[ncol(d)] <- "delay"
    d$late <- d$delay > 15
    d$delay <- NULL
    inputs <- setdiff(names(d), "late")
    d <- d[seq_len(70000), ]
    many <- inputs[vapply(d[inputs], function(v) length(unique(v)) > 15, NA)]
    list(d, 50000, classes(late ~ ., smooths("late", many, setdiff(inputs, many)), many = TRUE))
  })

file <- "bench/results/laplace-table.csv"
asked <- commandArgs(TRUE)
if (!length(asked)) { # 25 splits for sets that take seconds
  asked <- c("pima:25", "sonar:25", paste0(c("crabs", "biopsy", "birthwt", "kyphosis"), ":10"),
             paste0(c("quine", "mack", "quakes", "spam", "late"), ":5"))
}
for (one in strsplit(asked, ":")) {
  set <- tryCatch(sets[[one[1L]]](), error = function(e) NULL)
  if (is.null(set)) next
  for (split in seq_len(if (length(one) > 1L) as.integer(one[2L]) else 5L)) {
    set.seed(split)
    at <- sample(nrow(set[[1L]]), set[[2L]])
    methods <- set[[3L]](set[[1L]][at, ], set[[1L]][-at, ])
    done <- if (file.exists(file)) utils::read.csv(file)
    done <- done$method[done$set == one[1L] & done$split == split]
    for (method in setdiff(names(methods), done)) {
      set.seed(split)
      time <- system.time(score <- tryCatch(suppressWarnings(suppressMessages(methods[[method]]())),
                                            error = function(e) rep(NA_real_, 3)))
      seconds <- time[["user.self"]] + time[["sys.self"]] # processor seconds, because other work shares the machine
      row <- data.frame(set = one[1L], split, method, t(signif(unname(score), 5)), seconds = round(seconds, 2))
      names(row)[4:6] <- c("nlpd", "brier", "accuracy")
      utils::write.table(row, file, sep = ",", row.names = FALSE, col.names = !file.exists(file),
                         append = file.exists(file))
    }
  }
}

# Prints means over the splits of a method's NLPD and accuracy less those of pfdtc, standard errors, median seconds.
all <- utils::read.csv(file)
own <- all[all$method == "pfdtc", ]
others <- merge(all[all$method != "pfdtc", ], own, by = c("set", "split"), suffixes = c("", ".own"))
table <- do.call(rbind, lapply(split(others, others[c("method", "set")], drop = TRUE), function(d) {
  apart <- d$nlpd - d$nlpd.own
  right <- d$accuracy - d$accuracy.own
  data.frame(d[1L, c("set", "method")], splits = nrow(d), pfdtc = mean(d$nlpd.own), nlpd = mean(d$nlpd),
             apart = mean(apart), se = stats::sd(apart) / sqrt(nrow(d)), accuracy = mean(right),
             se.accuracy = stats::sd(right) / sqrt(nrow(d)),
             seconds = stats::median(d$seconds), seconds.pfdtc = stats::median(d$seconds.own))
}))
print(table, row.names = FALSE, digits = 3)
