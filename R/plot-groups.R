# The effects of groups as a figure: a panel for each effect, its levels in the order of their estimates.

groups_figure <- function(fit, level) {
  table <- as.data.frame(ranef.gp_fit(fit_with_groups(fit, "x"), se = TRUE))
  half <- stats::qnorm((1 + check_level(level)) / 2) * table$condsd
  table <- data.frame(group = table$grpvar, effect = table$term, level = table$grp, estimate = table$condval,
                      lwr = table$condval - half, upr = table$condval + half)
  by <- order(match(table$group, table$group), match(table$effect, table$effect), table$estimate)
  table <- `rownames<-`(table[by, ], NULL)
  name <- paste(table$group, table$effect, sep = ": ")
  parts <- split(table, factor(name, unique(name)))
  columns <- ceiling(sqrt(length(parts)))
  figure(Map(effect_panel, parts, names(parts)), table,
         par = if (length(parts) > 1L) panels_par(c(ceiling(length(parts) / columns), columns), c(3.5, 3.5, 1.8, 1)))
}

# Up to forty levels have their names below the axis.
effect_panel <- function(d, title) {
  at <- seq_len(nrow(d))
  few <- nrow(d) <= 40L
  list(args = list(main = title, xlab = if (few) "" else "level", ylab = "effect", xlim = c(0.5, nrow(d) + 0.5),
                   ylim = range(0, d$lwr, d$upr)),
       levels = if (few) d$level, las = if (few) 2,
       layers = c(layer("rule", NULL, 0, lty = 2, col = plot_colours["mean"]),
                  layer("segment", at, d$lwr, x1 = at, y1 = d$upr), layer("dots", at, d$estimate, pch = 16)))
}
