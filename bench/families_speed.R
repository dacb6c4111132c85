# Measures processor seconds of a fit and of 1,000 predictions at 50,000 rows, for every likelihood with one f, and of
# mgcv::bam() with tensor products of pairs, by default (discrete = FALSE) and with discrete = TRUE, if mgcv has the
# family.
#   Rscript bench/families_speed.R [rows] [inputs: 2 or 4] [families]
# Seconds on one thread, and in brackets RMSE of f - mean(f). The last three lines of two inputs are of an earlier run:
#                                              pfdtc         bam()         bam(discrete = TRUE)
#   2 inputs, 50,000 rows   binomial            8.1 (.040)    4.5 (.048)     .4
#                           Poisson             5.4 (.012)    6.6 (.020)     .3
#                           gamma               3.5 (.013)    5.7 (.021)     .4
#                           Tweedie             7.7 (.017)    5.8 (.023)    2.9
#                           negative binomial   4.3 (.019)    7.2 (.025)    1.0
#                           ordered classes     8.7 (.053)   13.1           3.2
#                           Weibull             6.1 (.013)
#                           zero-truncated      6.3
#   4 inputs, 20,000 rows   Poisson             6.4 (.048)   20.9 (.037)    1.1
#                           gamma               6.8 (.040)    7.6 (.040)    1.2
#                           ordered classes     8.1 (.079)   16.7 (.063)    1.6
# With four inputs bam() has te(a, b) + te(c, d), which is the sum that the data have, and pfdtc() a kernel of all four.
# The goal is at most twice the seconds of bam().
suppressMessages({
  library(pfdtc)
  library(mgcv)
})
args <- commandArgs(TRUE)
n <- if (length(args)) as.integer(args[1]) else 50000L
inputs <- if (length(args) > 1) as.integer(args[2]) else 2L
options(pfdtc.threads = 1L)
set.seed(1)
d <- data.frame(a = runif(n), b = runif(n))
f <- sin(6 * d$a) + d$b^2
if (inputs == 4L) {
  d[c("c", "d")] <- list(runif(n), runif(n))
  f <- f + sin(4 * d$c) * d$d
}
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
smooth <- if (inputs == 4L) "te(a, b, k = 10) + te(c, d, k = 10)" else "te(a, b, k = 10)"
error <- function(p) sqrt(mean((p - mean(p) - f[1:5000] + mean(f[1:5000]))^2))
invisible(suppressMessages(pfdtc(poisson ~ a + b, d[1:3000, ], family = poisson()))) # lets R compile its code first
for (name in if (length(args) > 2) args[-(1:2)] else names(own)) {
  ours <- seconds(fit <- suppressMessages(pfdtc(stats::reformulate(letters[seq_len(inputs)], as.name(name)), d,
                                                family = own[[name]])))
  predicting <- seconds(predict(fit, d[1:1000, ], type = "response"))
  line <- sprintf("%-9s pfdtc %.1f s (rmse %.3f), 1,000 predictions %.2f s", name, ours,
                  error(predict(fit, d[1:5000, ])), predicting)
  if (!is.null(peers[[name]])) {
    formula <- stats::as.formula(sprintf("%s ~ %s", if (name == "ordinal") "class" else name, smooth))
    bam_s <- seconds(theirs <- bam(formula, data = d, family = peers[[name]]))
    discrete_s <- seconds(bam(formula, data = d, family = peers[[name]], discrete = TRUE))
    line <- sprintf("%s; bam %.1f s (%.3f), ratio %.2f; discrete %.1f s, %.1f", line, bam_s,
                    error(predict(theirs, d[1:5000, ])), ours / bam_s, discrete_s, ours / discrete_s)
  }
  cat(line, "\n")
}
