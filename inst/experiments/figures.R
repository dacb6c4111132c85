# Makes the figures of the paper's experiments from the results of run_experiment().

# Methods have the colours of Okabe and Ito, and different symbols and line types.
method_looks <- data.frame(
  method = c("pf", "default", "vfe", "vfe_greedy", "sor", "subsample"),
  label = c("pF-DTC (paper)", "pF-DTC (defaults)", "VFE", "VFE, greedy start", "SoR", "subsample"),
  col = c("#0072B2", "#D55E00", "#000000", "#CC79A7", "#E69F00", "#009E73"), pch = c(16L, 15L, 1L, 2L, 4L, 3L),
  lty = c(1L, 1L, 2L, 4L, 3L, 5L))

# Checks the names of data sets and methods. Returns them in plotting order, with the rows of the results that they
# select, as list(datasets, methods, fits).
pick <- function(results, datasets, methods) {
  choose <- function(wanted, there, argument) {
    lacking <- setdiff(wanted, there)
    refuse_if(length(lacking), argument, describe(lacking[1L]), paste("some of", list_quoted(there, "\"", 10L)))
    if (is.null(wanted)) there else wanted
  }
  order <- c(paper_datasets()$name, unique(results$dataset))
  datasets <- choose(datasets, intersect(order, results$dataset), "datasets")
  methods <- choose(methods, intersect(method_looks$method, results$method), "methods")
  list(datasets = datasets, methods = methods,
       fits = results[results$dataset %in% datasets & results$method %in% methods, ])
}

# Applies `f` to each group of repetitions (same data set, method and number of points) with finite values in `column`.
# The default returns their median and range.
over_repetitions <- function(picked, column, f = function(g) {
                               v <- g[[column]]
                               data.frame(g[1L, c("dataset", "method", "m")], middle = stats::median(v), low = min(v),
                                          high = max(v), n = length(v))
                             }) {
  fits <- picked$fits[is.finite(picked$fits[[column]]), ]
  d <- do.call(rbind, lapply(split(fits, fits[c("m", "method", "dataset")], drop = TRUE), f))
  refuse_if(is.null(d) || !nrow(d), "results", "has no finite values")
  `row.names<-`(d[order(match(d$dataset, picked$datasets), match(d$method, picked$methods), d$m), ], NULL)
}

rmse_figure <- function(results, what = c("mean", "sd", "prediction"), datasets = NULL, methods = NULL) {
  results <- as_experiment(results)
  what <- check_choice(what, c("mean", "sd", "prediction"), "what")
  picked <- pick(results, datasets, methods)
  prediction <- what == "prediction"
  exact <- results[results$method == "exact" & results$dataset %in% picked$datasets, ]
  errors_figure(over_repetitions(picked, if (prediction) "rmse_pred" else paste0("rmse_", what)), "inducing points",
                paste("RMSE of the", if (prediction) what else paste("posterior", what)),
                if (prediction && nrow(exact)) tapply(exact$rmse_pred, exact$dataset, stats::median))
}

kl_figure <- function(results, against = c("m", "error"), kl = c("process", "marginal"), best = FALSE, datasets = NULL,
                      methods = NULL) {
  results <- as_experiment(results)
  against <- check_choice(against, c("m", "error"), "against")
  kl <- check_choice(kl, c("process", "marginal"), "kl")
  picked <- pick(results, datasets, methods)
  column <- c(process = "kl", marginal = "kl_marginal")[[kl]]
  fits <- over_repetitions(picked, column, if (check_flag(best, "best")) function(g) g[which.min(g$rmse_mean), ] else
    identity)
  ylab <- if (kl == "process") "KL(approximation || exact)" else "mean marginal KL"
  picked$fits <- fits
  if (against == "m") return(errors_figure(over_repetitions(picked, column), "inducing points", ylab))
  errors_figure(data.frame(fits[c("dataset", "method", "m", "repetition")], error = fits$rmse_mean,
                           kl = fits[[column]]), "RMSE of the posterior mean", ylab)
}

# Draws a panel for each data set: medians and ranges against the number of points, or the column `kl` against `error`.
# `level` has the error of the exact GP for each data set.
errors_figure <- function(d, xlab, ylab, level = NULL) {
  lines <- !is.null(d$middle)
  looks <- method_looks[method_looks$method %in% d$method, ]
  k <- nrow(looks)
  shift <- if (lines) 1.012^(seq_len(k) - (k + 1) / 2) else 1 # moves the bars of methods side by side
  logarithmic <- function(v) range(v[is.finite(v) & v > 0])
  panels <- lapply(split(d, factor(d$dataset, unique(d$dataset))), function(d) {
    set <- d$dataset[1L]
    ylim <- logarithmic(if (lines) c(d$middle, d$low, d$high, level[set]) else d$kl)
    layers <- lapply(which(looks$method %in% d$method), function(i) {
      look <- looks[i, ]
      here <- d[d$method == look$method, ]
      if (!lines) {
        return(layer("dots", positive(here$error), positive(here$kl), col = grDevices::adjustcolor(look$col, 0.8),
                     pch = look$pch, cex = 0.8))
      }
      at <- here$m * shift[i]
      foot <- ylim[1L] * (ylim[1L] / ylim[2L])^0.04 # draws zeros 4 % of the logarithmic axis below its end
      c(layer("segment", at, pmax(here$low, foot), x1 = at, y1 = here$high, col = look$col),
        layer("line", at, positive(here$middle), col = look$col, lty = look$lty, lwd = 1.5),
        layer("dots", at, positive(here$middle), col = look$col, pch = look$pch))
    })
    list(args = list(main = set, log = "xy", xlim = logarithmic(if (lines) d$m else d$error) * range(shift),
                     ylim = ylim), ticks = if (lines) list(at = unique(d$m)),
         layers = c(if (set %in% names(level)) layer("rule", NULL, level[[set]], lty = 3, col = "grey40", lwd = 1.5),
                    unlist(layers, FALSE)))
  })
  keys <- legend_keys(looks$label, looks$col, if (lines) looks$lty else NA, 1.5, looks$pch)
  if (!is.null(level)) keys <- rbind(keys, legend_keys("exact", "grey40", 3L, 1.5))
  figure(panels, d, keys, sort(grDevices::n2mfrow(length(panels))), list(xlab = xlab, ylab = ylab)) # wider than high
}

# ---- along optimisations --------------------------------------------------------------------------------------------

trace_of <- function(results, method, dataset, m) {
  trace <- attr(results, "trace")
  refuse_if(is.null(trace) || !nrow(trace), "results", "has no trace",
            hint = "Use run_experiment() with its argument `trace`.")
  if (is.null(dataset)) dataset <- trace$dataset[1L]
  trace <- trace[trace$dataset == dataset & trace$method %in% method, ]
  trace <- trace[trace$m %in% if (is.null(m)) trace$m[1L] else m, ]
  refuse_if(!nrow(trace), "results",
            sprintf("has no trace of %s, %s, m = %s", dataset, paste(method, collapse = ", "),
                    if (is.null(m)) "any" else format(m)))
  trace
}

repetition_colours <- function(n) grDevices::hcl.colors(max(n, 2L), "Viridis", rev = TRUE)[seq_len(n)]

divergence_figure <- function(results, divergence = c("own", "exact"), method = "pf", dataset = NULL, m = NULL) {
  results <- as_experiment(results)
  divergence <- check_choice(divergence, c("own", "exact"), "divergence")
  method <- check_choice(method, setdiff(experiment_methods, c("sor", "subsample")), "method")
  t <- trace_of(results, method, dataset, m)
  d <- if (divergence == "own") t$divergence else t$divergence_exact
  refuse_if(all(is.na(d)), "divergence", divergence, "\"exact\" for a method that has no divergence of its own")
  out <- data.frame(repetition = t$repetition, evaluation = t$evaluation, divergence = d,
                    what = rep(c("mean", "sd"), each = nrow(t)), error = c(t$rmse_mean, t$rmse_sd))
  out <- out[is.finite(out$divergence) & out$divergence > 0 & out$error > 0, ]
  slope <- lapply(split(out, out$what), function(o) {
    stats::coef(stats::lm(log(error) ~ log(divergence), o)) # intercept and exponent of error = exp(a) d^b
  })
  label <- paste("pF divergence", if (divergence == "own") "(auxiliary distribution)" else "from the exact posterior")
  panels <- lapply(unique(out$what), function(what) {
    d <- out[out$what == what, ]
    runs <- split(d, d$repetition)
    layers <- Map(function(run, colour) {
      run <- run[order(run$evaluation), ]
      ends <- run[c(1L, nrow(run)), ]
      c(layer("line", run$divergence, run$error, col = colour),
        layer("dots", run$divergence, run$error, col = colour, pch = 16, cex = 0.4),
        layer("dots", ends$divergence, ends$error, bg = c("white", colour), pch = 21))
    }, runs, repetition_colours(length(runs)))
    x <- range(d$divergence)
    fit <- slope[[what]]
    list(args = list(main = sprintf("slope %.2f", fit[2L]), xlab = label, ylab = paste("RMSE of the posterior", what),
                     log = "xy", xlim = x, ylim = range(d$error)),
         layers = c(unlist(unname(layers), FALSE), layer("line", x, exp(fit[1L]) * x^fit[2L], lwd = 2.5, lty = 2)))
  })
  figure(panels, structure(out, slope = slope, label = label), shape = 1:2)
}

# Draws the course of each repetition: the divergence from the exact posterior if known, else the objective minus its
# lowest value in the run (each run has other data).
trace_figure <- function(results, against = c("evaluation", "seconds"), method = NULL, dataset = NULL, m = NULL) {
  results <- as_experiment(results)
  against <- check_choice(against, c("evaluation", "seconds"), "against")
  t <- trace_of(results, if (is.null(method)) c("pf", "vfe") else method, dataset, m)
  run <- interaction(t$method, t$repetition, drop = TRUE)
  above <- t$objective - stats::ave(t$objective, run, FUN = min)
  known <- stats::ave(!is.na(t$divergence), t$method, FUN = all) > 0
  d <- data.frame(fit = sprintf("repetition %g", t$repetition), objective_of = t$method, evaluation = t$evaluation,
                  seconds = t$seconds, objective = ifelse(known, t$divergence, above),
                  axis = ifelse(known, "pF divergence", "objective minus its smallest value"), along = against,
                  repetition = t$repetition)
  repetitions <- unique(t$repetition)
  looks <- data.frame(col = repetition_colours(length(repetitions))[match(t$repetition, repetitions)], lty = 1L)
  figure_of_runs(d, against, d$objective, run, looks, method_looks$label[match(t$method, method_looks$method)], d$axis,
               ifelse(stats::ave(d$objective, t$method, FUN = max) > 0, "y", ""))
}
