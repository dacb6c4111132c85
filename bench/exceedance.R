# Are places certified as above or below a threshold that are not, under the exact process by dense algebra?
#   Rscript bench/exceedance.R [problems = 500] [seed = 1]      (200 cells a problem; from the source tree)
# 500 problems, 100,000 cells: 0 probabilities outside of their bounds, 0 false above or below, 27,226 open by the
# approximation (with few inducing points and effort = "fast" in a third of them).
suppressMessages(library(pfdtc))
args <- as.integer(c(commandArgs(TRUE), "500", "1")[1:2])
if (length(commandArgs(TRUE)) == 1L) args[2L] <- 1L
for (file in c("reference", "exceedance")) source(sprintf("tests/testthat/helper-%s.R", file))
found <- vapply(args[2L] * 100000L + seq_len(args[1L]), attack_exceedance, numeric(5), cells = 200L)
total <- rowSums(found)
cat(sprintf("%d problems, %.0f cells: %.0f probabilities outside of their bounds, %.0f false above or below, ",
            args[1L], total["cells"], total["outside"], total["wrong"]))
cat(sprintf("%.0f wrongly left to the data, %.0f open by the approximation\n", total["because"], total["open"]))
quit(status = as.integer(total["outside"] + total["wrong"] + total["because"] > 0))
