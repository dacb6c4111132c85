# Draws the figure of README.md, with the package installed:   Rscript tools/readme-figure.R
# The left panel is plot() of a fit along one input. The right panel is the predicted mean over both inputs.

library(pfdtc)
source("vignettes/small_png.R")

folder <- file.path("man", "figures")
dir.create(folder, showWarnings = FALSE, recursive = TRUE)

set.seed(1)
fit <- pfdtc(depth ~ lat + long, data = quakes)

draw_map <- function(fit) {
  long <- seq(min(quakes$long), max(quakes$long), length.out = 200)
  lat <- seq(min(quakes$lat), max(quakes$lat), length.out = 200)
  at <- predict(fit, expand.grid(long = long, lat = lat), se.fit = TRUE)
  known <- at$se.fit < 0.35 * sd(quakes$depth)      # elsewhere the prior would show
  depth <- matrix(ifelse(known, pmax(at$fit, 0), NA), length(long))
  colours <- hcl.colors(10, "Blues 3", rev = TRUE)[-(1:2)]
  image(long, lat, depth, breaks = seq(0, 800, 100), col = colours, useRaster = TRUE)
  points(quakes$long, quakes$lat, pch = ".", cex = 2)
  box()
  legend("bottomleft", c("mean depth (km)", "0 to 100", "300 to 400", "600 to 700", "earthquakes"),
         pch = c(NA, 15, 15, 15, 20), col = c(NA, colours[c(1, 4, 7)], "black"),
         pt.cex = c(NA, 1.6, 1.6, 1.6, 0.4), bty = "n", cex = 0.85)
}

file <- file.path(folder, "README-quakes.png")
bmp(file, 840, 355, res = 84)
par(mfrow = c(1, 2), mar = c(4.5, 3.5, 2, 1), mgp = c(2.2, 0.7, 0), cex = 0.85)
plot(fit, inputs = "long")
draw_map(fit)
invisible(dev.off())
invisible(small_png(file))
