# Fits a million levels of one or two rows each, from a data frame to certificates: processor seconds, memory, and the
# error of effects.   Rscript bench/many-levels.R [levels]
library(pfdtc)
options(pfdtc.threads = 1L)
asked <- commandArgs(TRUE)
levels <- if (length(asked)) as.integer(asked[[1L]]) else 1000000L
set.seed(1)
n <- 2L * levels - levels %/% 2L
d <- data.frame(x = runif(n), g = c(seq_len(levels), sample.int(levels, n - levels)))
effect <- rnorm(levels)
d$y <- sin(6 * d$x) + effect[d$g] + 0.5 * rnorm(n)
d$g <- factor(d$g)
seconds <- function(label, value) {
  took <- system.time(out <- value, gcFirst = FALSE)
  cat(sprintf("# %-36s %6.1f s of the processor, %5.0f MB at most so far\n", label, sum(took[1:2]),
              sum(gc()[, ncol(gc())])))
  out
}
kernel <- kernel_se(0.3, 1, inputs = ~ x) + kernel_group(~ g, variance = 1)
fit <- seconds("fit, hyperparameters held", suppressMessages(
  pfdtc(y ~ x, d, kernel = kernel, noise = 0.25, hyper = "fixed", m = 20, neighbours = 0, transform = "none")))
new <- data.frame(x = runif(1000), g = factor(sample.int(levels, 1000), levels = seq_len(levels)))
at <- seconds("1,000 predictions", predict(fit, new, se.fit = TRUE))
truth <- sin(6 * new$x) + effect[as.integer(new$g)]
inside <- seconds("1,000 certificates by own points", suppressMessages(certify(fit, new, effort = "fast")))
cat(sprintf("# coverage of f at 95 %%: %.3f; largest half width of the mean %.1e sd, of the sd %.1e\n",
            mean(abs(at$fit - truth) < 1.96 * at$se.fit),
            max((inside$mean_upper - inside$mean_lower) / 2 / inside$sd_upper),
            max((inside$sd_upper - inside$sd_lower) / 2 / inside$sd_upper)))

# One thread of a busy machine. 1,000,000 levels, 1,500,000 rows (certificates were not computed):
# fit, hyperparameters held               7.4 s of the processor,   537 MB at most so far
# 1,000 predictions                       0.2 s of the processor,   537 MB at most so far
# 100,000 levels, 150,000 rows:
# fit, hyperparameters held               0.9 s of the processor,   127 MB at most so far
# 1,000 predictions                       0.1 s of the processor,   127 MB at most so far
# 1,000 certificates by own points        2.5 s of the processor,   184 MB at most so far
# coverage of f at 95 %: 0.941; largest half width of the mean 2.2e-04 sd, of the sd 5.3e-07
