# Figures of several classes: probabilities along the inputs, calibration, and the table of confusion.

# Draws the averaged probability of each class along an input, at the middle of the other inputs.
classes_figure <- function(fit, inputs, at, n, xlim) {
  s <- slice_frame(fit, inputs, at, n, xlim)
  levels <- response_of(fit)$levels
  curves <- s$grid[c("input", "value", "label", "outside")]
  columns <- paste("class", seq_along(levels))
  curves[columns] <- class_moments(latent_at(fit, s$grid$x))$mean
  looks <- series_looks(length(levels))
  label <- paste("probability of", response_name(fit))
  panels <- slice_panels(s, curves, label, c(0, 1), function(p) NULL, function(p) {
    unlist(Map(function(k, col, lty) mean_layer(p, k, col, lty), columns, looks$col, looks$lty), FALSE)
  })
  value <- data.frame(s$grid[c("input", "value", "label")], class = rep(levels, each = nrow(curves)),
                      probability = unlist(curves[columns], use.names = FALSE), outside = curves$outside)
  figure(panels, value, legend_keys(levels, looks$col, looks$lty, 2), foot = s$foot)
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
  colours <- series_looks(length(levels))$col
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
  figure(list(list(
    args = list(main = "Confusion", xlab = "most probable class by the other rows", ylab = response_name(fit)),
    levels = levels, yticks = list(at = rev(seq_len(K)), labels = levels),
    layers = c(layer("box", x - 0.5, y - 0.5, x1 = x + 0.5, y1 = y + 0.5, border = "white", col = shade),
               layer("text", x, y, labels = c(counts), col = ifelse(share > 0.5, "white", "black"))))), counts,
    foot = sprintf("%d of %d rows in their class", sum(diag(counts)), sum(counts)))
}
