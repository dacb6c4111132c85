# Is any place certified as above or below a threshold that is not above or below it by dense algebra of the exact GP?
#   Rscript bench/exceedance.R [problems = 500] [seed = 1]      (200 cells a problem; from the source tree)
# 500 problems, 100,000 cells: 0 probabilities outside of their bounds, 0 false above or below, 27,226 undecided because
# of the approximation (with few inducing points and effort = "fast" in a third of them).
#
# How many of 400 places are undecided for many rows, without and with passes over all pairs of rows?
#   Rscript bench/exceedance.R many 30000
# Without a pass all 400 are undecided. With passes, on one thread:
#
# rows     passes  processor seconds  above  below  undecided (data)  undecided (approximation)
# 10,000        3                 10     83    256                61                          0
# 30,000        4                 31     92    267                40                          1
# 100,000       7                160     98    276                20                          6
suppressMessages(library(pfdtc))
many_rows <- function(n, seconds) {
  set.seed(1)
  d <- data.frame(a = stats::runif(n), b = stats::runif(n))
  d$y <- sin(8 * d$a) * cos(6 * d$b) + stats::rnorm(n, 0, 0.3)
  fit <- pfdtc(y ~ a + b, d, kernel = kernel_matern(3 / 2, 0.1, 0.5), noise = 0.09, hyper = "fixed", m = 200,
               neighbours = 30)
  places <- expand.grid(a = seq(0.02, 0.98, length.out = 20), b = seq(0.02, 0.98, length.out = 20))
  took <- sum(system.time({
    fit$reference <- reference(fit, max_seconds = seconds)
    found <- exceedance(fit, places, 0.3, max_seconds = seconds)
  })[1:2])
  count <- function(column, value) sum(found[[column]] %in% value)
  cat(sprintf("%d rows, %d passes, %.0f processor seconds: %d above, %d below, ",
              n, c(fit$reference$correction$passes, 0L)[1L], took, count("region", "above"), count("region", "below")))
  cat(sprintf("%d open by the data, %d by the approximation\n", count("because", "data"),
              count("because", "approximation")))
}
if (identical(commandArgs(TRUE)[1L], "many")) {
  for (seconds in c(0, Inf)) many_rows(as.integer(commandArgs(TRUE)[2L]), seconds)
  quit()
}

args <- as.integer(c(commandArgs(TRUE), "500", "1")[1:2])
if (length(commandArgs(TRUE)) == 1L) args[2L] <- 1L
for (file in c("reference", "exceedance")) source(sprintf("tests/testthat/helper-%s.R", file))
found <- vapply(args[2L] * 100000L + seq_len(args[1L]), attack_exceedance, numeric(5), cells = 200L)
total <- rowSums(found)
cat(sprintf("%d problems, %.0f cells: %.0f probabilities outside of their bounds, %.0f false above or below, ",
            args[1L], total["cells"], total["outside"], total["wrong"]))
cat(sprintf("%.0f wrongly left to the data, %.0f open by the approximation\n", total["because"], total["open"]))
quit(status = as.integer(total["outside"] + total["wrong"] + total["because"] > 0))
