# Figures of several classes: probabilities along the inputs, calibration, and the table of confusion.

# Draws the averaged probability of each class along an input, at the middle of the other inputs.
classes_figure <- function(fit, inputs, at, n, xlim) {
  s <- slice_frame(fit, inputs, at, n, xlim)
  levels <- response_of(fit)$levels
  p <- class_moments(latent_at(fit, s$grid$x))$mean
  colours <- grDevices::hcl.colors(length(levels), "Dark 3")
  curves <- lapply(seq_along(levels), function(k) {
    cbind(s$grid[c("input", "value", "label")], class = levels[k], probability = p[, k], outside = s$grid$outside)
  })
  panels <- Map(function(d, colour) {
    slice_panels(s, d, paste("probability of", response_name(fit)), c(0, 1), function(p) NULL,
                 function(p) mean_layer(p, p$probability, colour))
  }, curves, colours)
  panels <- Reduce(function(a, b) Map(function(a, b) replace(a, "layers", list(c(a$layers, b$layers))), a, b), panels)
  curves <- do.call(rbind, curves)
  k <- length(panels)
  figure(panels, curves, legend_keys(levels, colours, 1, 2), foot = s$foot,
         par = if (k > 1L) panels_par(grDevices::n2mfrow(k), top = 2.5))
}

# Draws for each class its share among rows with about the same leave-one-out probability.
class_calibration_figure <- function(fit) {
  levels <- response_of(fit)$levels
  at <- loo_shares(fit)
  d <- do.call(rbind, lapply(seq_along(levels), function(k) {
    p <- at$p[, k]
    group <- ceiling(rank(p, ties.method = "average") / length(p) * min(10L, max(1L, length(p) %/% 10L)))
    mean_of <- function(v) as.vector(tapply(v, group, mean))
    rows <- as.vector(table(group))
    data.frame(class = levels[k], predicted = mean_of(p), observed = mean_of(at$y == k),
               sd = sqrt(mean_of(p * (1 - p)) / rows), rows = rows)
  }))
  colours <- grDevices::hcl.colors(length(levels), "Dark 3")
  own <- colours[match(d$class, levels)]
  figure(list(shares_panel(d, "share of the class", grDevices::adjustcolor(own, 0.5), own)), d,
         legend_keys(levels, colours, pch = 16))
}

# Draws the classes (down) against the most probable classes by the other rows (across). Darker boxes have larger shares
# of their row. The value is the table of counts.
confusion_figure <- function(fit) {
  fit <- check_any_fit(fit, "x")
  if (!has_labels(response_of(fit)) && !is_ordered(response_of(fit))) {
    abort_input("which", "\"confusion\"", "\"calibration\" or \"checks\" without several classes")
  }
  levels <- response_of(fit)$levels
  at <- loo_shares(fit)
  as_class <- function(k) factor(levels[k], levels)
  counts <- table(class = as_class(at$y), predicted = as_class(max.col(at$p, "first")))
  K <- length(levels)
  share <- c(counts / pmax(rowSums(counts), 1))
  x <- rep(seq_len(K), each = K)
  y <- rep(rev(seq_len(K)), K)
  shade <- vapply(share, function(v) grDevices::adjustcolor(plot_colours["mean"], 0.05 + 0.9 * v), "")
  boxes <- layer("box", x - 0.5, y - 0.5, x1 = x + 0.5, y1 = y + 0.5, border = "white", col = shade)
  figure(list(list(
    args = list(main = "Confusion", xlab = "most probable class by the other rows", xlim = c(0.5, K + 0.5),
                ylab = paste(response_name(fit), "(first class at the top)"), ylim = c(0.5, K + 0.5)),
    levels = levels, blocks = TRUE, layers = boxes)), counts,
    foot = sprintf("%d of %d rows in their class", sum(diag(counts)), sum(counts)))
}
