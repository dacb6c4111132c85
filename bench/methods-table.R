# Summarises bench/methods.csv: medians over the repetitions of each method's error and time over those of VFE from the
# greedy start, for the same set, M and repetition.
#
#   Rscript bench/methods-table.R [csv]

main <- function(args) {
  file <- if (length(args)) args[1L] else file.path("bench", "results", "methods.csv")
  all <- utils::read.csv(file)
  all$label <- ifelse(all$start == "random", paste0(all$method, "*"), all$method)
  base <- all[all$label == "vfe", c("set", "rep", "m", "rmse_mean", "rmse_sd", "seconds", "evaluations")]
  d <- merge(all, base, by = c("set", "rep", "m"), suffixes = c("", "_vfe"))
  for (v in c("rmse_mean", "rmse_sd", "seconds")) d[[paste0(v, "_ratio")]] <- d[[v]] / d[[paste0(v, "_vfe")]]
  d$set <- factor(d$set, intersect(c("synthetic", "airfoil", "abalone", "wine-white", "ccpp", "delays10k"), d$set))
  labels <- unique(all$label)
  d$label <- factor(d$label, c(labels[!endsWith(labels, "*")], labels[endsWith(labels, "*")]))
  cat("Medians over repetitions. * marks a random start, all else starts greedily; the yardstick is vfe, greedy.\n")
  show(d, "rmse_mean", "RMSE of the mean against the exact GP, vfe", "%.1e", labels = "vfe")
  show(d, "rmse_sd", "RMSE of the sd against the exact GP, vfe", "%.1e", labels = "vfe")
  show(d, "rmse_mean_ratio", "mean: ratio to vfe", "%.2f")
  show(d, "rmse_sd_ratio", "sd: ratio to vfe", "%.2f")
  show(d, "seconds_ratio", "processor seconds: ratio to vfe", "%.2f")
  show(d, "seconds", "processor seconds", "%.1f")
  show(d, "evaluations", "evaluations", "%.0f")
}

# Prints a table of medians with a row for each set and M, and a column for each method.
show <- function(d, value, title, format, labels = levels(d$label)) {
  d <- d[d$label %in% labels, ]
  cells <- stats::aggregate(d[[value]], list(label = d$label, m = d$m, set = d$set), stats::median)
  rows <- unique(cells[c("set", "m")])
  of_row <- function(i) {
    own <- cells[cells$set == rows$set[i] & cells$m == rows$m[i], ]
    ifelse(labels %in% own$label, sprintf(format, own$x[match(labels, own$label)]), "-")
  }
  numbers <- matrix(vapply(seq_len(nrow(rows)), of_row, character(length(labels))), nrow(rows), byrow = TRUE)
  counted <- stats::aggregate(d$rep, list(m = d$m, set = d$set), function(r) length(unique(r)))
  cat("\n", title, "\n", sep = "")
  out <- data.frame(rows, n = counted$x[match(paste(rows$set, rows$m), paste(counted$set, counted$m))], numbers)
  names(out) <- c("set", "M", "reps", labels)
  print(out, row.names = FALSE, right = TRUE)
}

options(width = 140)
main(commandArgs(TRUE))
