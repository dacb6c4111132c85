# The choices of a fit as a figure: how far each candidate is behind the one chosen.

# Returns list(response, kernels) with the tables of the choices that were made: candidate, behind (nats behind the best
# for a response, nats a row for a kernel), se and chosen.
choice_tables <- function(fit) {
  behind <- function(candidate, score, se, chosen) {
    used <- is.finite(score)
    d <- data.frame(candidate, behind = score - score[chosen][1L], se, chosen)[used, ]
    `rownames<-`(d[order(d$behind), ], NULL)
  }
  Filter(function(d) !is.null(d) && nrow(d) > 1L, list(
    response = if (!is.null(fit$response)) {
      behind(fit$response$candidate, -fit$response$merit, NA_real_, fit$response$chosen)
    },
    kernels = if (!is.null(fit$kernels)) {
      behind(fit$kernels$kernel, fit$kernels$score, fit$kernels$se, fit$kernels$chosen)
    }))
}

choices_figure <- function(fit) {
  fit <- check_any_fit(fit, "x")
  tables <- choice_tables(fit)
  if (!length(tables)) abort_input("which", "\"choices\" of a fit that chose nothing", "another figure")
  titles <- c(response = "Response", kernels = "Kernel")
  units <- c(response = "nats behind", kernels = "nats a row behind")
  figure(Map(choice_panel, tables, titles[names(tables)], units[names(tables)]),
         if (length(tables) == 1L) tables[[1L]] else tables,
         par = if (length(tables) > 1L) panels_par(c(1L, length(tables)), c(3.5, 3.5, 1.8, 1)))
}

# Draws the candidates of one choice. The axis ends at four times the median, because differences at the top matter;
# labels have the values beyond the axis.
choice_panel <- function(d, title, unit) {
  n <- nrow(d)
  edge <- max(4 * stats::median(d$behind), 1e-3)
  at <- pmin(d$behind, edge)
  half <- 2 * replace(d$se, is.na(d$se), 0)
  labels <- ifelse(d$behind > edge, sprintf("%s: %.2g", d$candidate, d$behind), d$candidate)
  list(args = list(main = title, xlab = "", ylab = unit, xlim = c(0.5, n + 0.5), ylim = range(0, at - half, at + half)),
       levels = labels,
       layers = c(layer("rule", NULL, 0, lty = 2, col = plot_colours["mean"]),
                  layer("segment", seq_len(n), at - half, x1 = seq_len(n), y1 = at + half),
                  layer("dots", seq_len(n), at, pch = ifelse(d$chosen, 16, 1))))
}
