# Demonstrates the main use on real data: depths of earthquakes near Fiji (R's `quakes`) by location and by the number
# of stations that reported them.   Rscript tools/demo.R LIBRARY FOLDER

arguments <- commandArgs(trailingOnly = TRUE)
library(pfdtc, lib.loc = arguments[1])
folder <- arguments[2]
dir.create(folder, showWarnings = FALSE)
begun <- proc.time()[["elapsed"]]

# ---- fit, and predict what the fit has not seen -------------------------------------------------

set.seed(20)
held_out <- sample(nrow(quakes), 200)
train <- quakes[-held_out, ]
test <- quakes[held_out, ]

fit <- pfdtc(depth ~ lat + long + stations, data = train)
shown <- utils::capture.output(print(summary(fit)))
cat(shown, sep = "\n")

band <- predict(fit, test, interval = "prediction", level = 0.95)
rmse <- sqrt(mean((test$depth - band[, "fit"])^2))
inside <- mean(test$depth >= band[, "lwr"] & test$depth <= band[, "upr"])
scores <- c(
  sprintf("Root mean square error on %d held-out earthquakes: %.1f km (their sd is %.0f km).",
          nrow(test), rmse, sd(test$depth)),
  sprintf("Of their depths %.1f %% lie inside the 95 %% prediction intervals.", 100 * inside)
)
cat("", scores, sep = "\n")

# Fit the same model on 60 inducing points, as pfdtc() does for many rows, and add a reference for certificates.
few <- pfdtc(depth ~ lat + long + stations, data = train, m = 60, kernel = fit$kernel, noise = fit$noise,
             hyper = "fixed")
few$reference <- reference(few)

# ---- figures ------------------------------------------------------------------------------------

figure <- function(name, draw, width = 1200, height = 800) {
  grDevices::png(file.path(folder, name), width, height, res = 130)
  on.exit(grDevices::dev.off())
  draw()
}

draw_held_out <- function() {
  plot(range(band[, "fit"]), range(band, test$depth), type = "n", xlab = "predicted depth (km)",
       ylab = "observed depth (km)", main = "Held-out earthquakes, 95 % prediction intervals")
  abline(0, 1, col = "grey60")
  segments(band[, "fit"], band[, "lwr"], y1 = band[, "upr"], col = "grey85")
  points(band[, "fit"], test$depth, pch = 20, cex = 0.7, col = "#2166ac")
}

# Draw the subducting slab under Fiji: depth over the map for a typical number of stations.
draw_map <- function() {
  grid <- expand.grid(long = seq(min(quakes$long), max(quakes$long), length.out = 160),
                      lat = seq(min(quakes$lat), max(quakes$lat), length.out = 160),
                      stations = median(quakes$stations))
  at <- predict(fit, grid, se.fit = TRUE)
  # Draw only regions with data, because elsewhere the map would show the prior.
  depth <- ifelse(at$se.fit < 0.35 * sd(train$depth), at$fit, NA)
  long <- unique(grid$long)
  lat <- unique(grid$lat)
  filled.contour(long, lat, matrix(depth, length(long)), nlevels = 24,
                 color.palette = function(n) hcl.colors(n, "YlGnBu", rev = TRUE),
                 xlab = "longitude", ylab = "latitude", key.title = title("km", cex.main = 0.9),
                 main = "Predicted depth", plot.axes = {
                   axis(1)
                   axis(2)
                   points(train$long, train$lat, pch = 20, cex = 0.3)
                 })
}

figures <- list(
  list("fit.png", "The fit along each input, the others held at their medians.",
       function() plot(fit), 1400, 900),
  list("map.png", paste("Predicted depth where the data determine it (white: they do not).",
                        "Dots are earthquakes."),
       draw_map, 1100, 1000),
  list("held-out.png", "Observed against predicted depth of the held-out earthquakes.",
       draw_held_out, 1000, 800),
  list("certificate.png", paste("A fit on sixty inducing points, along each input: its predictions, and",
                                "the guaranteed interval for those of the exact GP."),
       function() plot_certificate(few), 1400, 900)
)
for (f in figures) figure(f[[1]], f[[3]], f[[4]], f[[5]])

# ---- report -------------------------------------------------------------------------------------

title_text <- "Depths of earthquakes near Fiji"
intro <- paste("A Gaussian process for the depth of", nrow(train), "earthquakes near Fiji, given",
               "latitude, longitude and the number of stations that reported them, fitted by",
               "pfdtc", paste0(utils::packageVersion("pfdtc"), "."), "An input whose lengthscale is far",
               "above its range has hardly any effect.")

style <- paste("<style>body { max-width: 60em; margin: 2em auto; font-family: sans-serif; }",
               "img { max-width: 100%; }</style>")

write_markdown <- function(file) {
  writeLines(c("---", paste("title:", title_text), "output:", "  html_document:",
               "    theme: null", "    highlight: null", "    mathjax: null", "---", "", style, "",
               intro, "",
               "```", shown, "```", "", rbind(scores, ""),
               unlist(lapply(figures, function(f) c(sprintf("![%s](%s)", f[[2]], f[[1]]), "")))),
             file)
}

write_html <- function(file) {
  escape <- function(x) gsub("<", "&lt;", gsub("&", "&amp;", x, fixed = TRUE), fixed = TRUE)
  pictures <- vapply(figures, function(f) {
    sprintf("<figure><img src='%s'><figcaption>%s</figcaption></figure>", f[[1]], escape(f[[2]]))
  }, "")
  writeLines(c("<!DOCTYPE html>", "<meta charset='utf-8'>", style,
               sprintf("<title>%s</title>", title_text), sprintf("<h1>%s</h1>", title_text),
               sprintf("<p>%s</p>", escape(intro)), "<pre>", escape(shown), "</pre>",
               sprintf("<p>%s</p>", escape(scores)), pictures), file)
}

report <- file.path(folder, "report.html")
by_pandoc <- requireNamespace("rmarkdown", quietly = TRUE) && rmarkdown::pandoc_available()
if (by_pandoc) {
  source <- file.path(folder, "report.md")
  write_markdown(source)
  rmarkdown::render(source, output_file = "report.html", quiet = TRUE)
  unlink(source)
} else {
  write_html(report)
}

cat("", "Written:", paste0("  ", file.path(folder, c(vapply(figures, `[[`, "", 1), "report.html"))),
    sprintf("%.1f s", proc.time()[["elapsed"]] - begun), sep = "\n")
