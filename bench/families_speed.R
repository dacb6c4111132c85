# Processor seconds of a fit and of 1,000 predictions at 50,000 rows of two inputs, for every row of the table with one
# f, beside mgcv::bam(discrete = TRUE) where it has the family. Rscript bench/families_speed.R [rows] [families]
# Last run, one thread: Poisson 11.2 s (bam 0.4), gamma 11.2 (0.4), ordered classes 12.4 (3.5), Tweedie 16.6 (3.5) and
# Weibull 14.8; 1,000 predictions .01 to .34 s. The goal of twice bam's time is open.
suppressMessages({
  library(pfdtc)
  library(mgcv)
})
args <- commandArgs(TRUE)
n <- if (length(args)) as.integer(args[1]) else 50000L
set.seed(1)
d <- data.frame(a = runif(n), b = runif(n))
f <- sin(6 * d$a) + d$b^2
time <- exp(f + 0.5 * log(rexp(n)))
end <- rexp(n, 0.1)
d$poisson <- rpois(n, exp(f))
d$gamma <- rgamma(n, 2, 2 / exp(f))
d$tweedie <- rgamma(n, rpois(n, 2 * exp(f / 2)), 1) * exp(f / 2) / 2
d$binomial <- rbinom(n, 1, plogis(f))
d$nb <- rnbinom(n, size = 2, mu = exp(f))
d$ordinal <- factor(findInterval(f + rlogis(n), c(0, 1, 2)) + 1, 1:4, ordered = TRUE)
d$class <- as.integer(d$ordinal)
d$truncated <- pmax(d$poisson, 1)
d$weibull <- survival::Surv(pmin(time, end), time <= end)
own <- list(poisson = poisson(), gamma = Gamma("log"), tweedie = pfdtc::tweedie(), binomial = binomial(),
            nb = pfdtc::nb(), truncated = truncated_poisson(), ordinal = ordinal(), weibull = weibull())
peers <- list(poisson = poisson(), gamma = Gamma("log"), tweedie = tw(), binomial = binomial(), nb = mgcv::nb(),
              ordinal = ocat(R = 4))
seconds <- function(code) sum(system.time(code)[c("user.self", "sys.self")])
for (name in if (length(args) > 1) args[-1] else names(own)) {
  formula <- stats::reformulate(c("a", "b"), as.name(name))
  ours <- seconds(fit <- suppressMessages(pfdtc(formula, d, family = own[[name]])))
  predicting <- seconds(predict(fit, d[1:1000, ], type = "response"))
  line <- sprintf("%-9s pfdtc %.1f s, 1,000 predictions %.2f s", name, ours, predicting)
  if (!is.null(peers[[name]])) {
    y <- if (name == "ordinal") "class" else name
    bam_s <- seconds(bam(stats::as.formula(sprintf("%s ~ te(a, b, k = 10)", y)), data = d, family = peers[[name]],
                         discrete = TRUE))
    line <- sprintf("%s; bam %.1f s, ratio %.1f", line, bam_s, ours / bam_s)
  }
  cat(line, "\n")
}
