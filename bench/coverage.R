# Prints the coverage of 95 % intervals of default fits for held-out rows of the race and of seeds.R. From the source
# tree:
#   Rscript bench/coverage.R
# The status is 1 if a set's coverage is outside 93 to 97 % by more than two of its standard errors.
read <- function(file) utils::read.csv(file.path("bench", "results", file))
race <- subset(read("race.csv"), method == "pfdtc")
few <- c(lynx = 25, co2 = 100, boston = 120, npk = 24, sine8 = 500, sincos2d = 1000)
race$held <- ifelse(race$data %in% names(few), few[race$data], pmin(2000, round(race$n / 4)))
race$set <- paste0(race$data, " (", race$n, ")")
seeds <- read("seeds.csv")
seeds$held <- c(airfoil = 301, abalone = 835, wine = 980, ccpp = 1914, delays10k = 2000, protein = 2000)[seeds$data]
seeds$set <- paste0(seeds$data, ", split ", seeds$split)

# Returns the coverage of each set. Splits in the race count as one sample; fits with other seeds have the same rows.
covers <- function(rows, cover, together) {
  do.call(rbind, lapply(split(rows, factor(rows$set, unique(rows$set))), function(d) {
    held <- if (together) sum(d$held) else d$held[1L]
    data.frame(set = d$set[1L], held = held, cover = round(stats::weighted.mean(d[[cover]], d$held), 3))
  }))
}
table <- rbind(covers(race, "cov95", TRUE), covers(seeds, "cover95", FALSE))
nearest <- pmin(pmax(table$cover, 0.93), 0.97)
table$beyond <- round(abs(table$cover - nearest) / sqrt(nearest * (1 - nearest) / table$held), 1)
names(table)[4L] <- "standard errors outside 0.93 to 0.97"
print(table, row.names = FALSE)
quit(status = as.integer(any(table[[4L]] > 2)))
