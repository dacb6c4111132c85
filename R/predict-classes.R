# Predicts several numbers for each row (probabilities of classes, survival, quantiles), and at the rows of a source.

# Returns predictions for classes, list(fit, sd, lwr, upr), with a column for each class (log odds: all but the first).
say_chances <- function(response, f, ask) {
  latent <- ask$type == "latent"
  at <- if (latent) list(mean = f$mean, sd = sqrt(pmax(f$var[, diagonals(ncol(f$mean)), drop = FALSE], 0))) else
    class_chances(response, f, ask$se.fit)
  colnames(at$mean) <- if (latent) response$levels[-1L] else response$levels
  if (ask$interval == "none") return(list(fit = at$mean, sd = at$sd))
  ends <- if (!is.null(f$bounds)) f$bounds(latent, ask$level) else
    (if (response$kind == "ordered") ordered_ends else class_ends)(response, f, latent, ask$level)
  # The averaged probability may be outside of the interval, whose ends are probabilities at quantiles of f.
  list(fit = at$mean, sd = at$sd, lwr = pmin(ends$lwr, at$mean), upr = pmax(ends$upr, at$mean))
}

# Returns list(lwr, upr), the smallest and largest probability of each ordered class over the credible interval of f. A
# probability increases with f up to its maximum, if it has one, and then decreases.
ordered_ends <- function(response, f, latent, level) {
  where_known(f[c("mean", "lower", "upper", "top")], function(f) {
    of_f <- lapply(normal_ends(f, list(noise = 0), level), unname)
    at <- lapply(of_f, class_shares, response = response)
    top <- vapply(seq_along(response$levels), function(k) {
      best <- pmin(pmax(response$best(list(y = k), response$theta), of_f$lwr), of_f$upr)
      class_shares(response, best)[, k]
    }, of_f$lwr)
    list(lwr = pmin(at$lwr, at$upr), upr = matrix(top, length(f$mean)))
  })
}

# Returns the ends of credible intervals for unordered classes: of log odds if `latent`, else of probabilities p_k. The
# intervals of p_k take log(p_k / (1 - p_k)) to be linear in f near the mean of f, and therefore normal.
class_ends <- function(response, f, latent, level) {
  q <- ncol(f$mean)
  ends <- function(mean, var) normal_ends(list(lower = mean, upper = mean, top = pmax(var, 0)), list(noise = 0), level)
  if (latent) return(ends(f$mean, f$var[, diagonals(q), drop = FALSE]))
  each <- lapply(seq_len(q + 1L), function(k) log_odds_of_class(f$mean, k))
  var <- vapply(each, function(of_class) {
    slope <- of_class$slope[, -1L, drop = FALSE]
    along <- 0
    for (i in seq_len(q)) for (j in seq_len(q)) along <- along + slope[, i] * slope[, j] * f$var[, i + q * (j - 1L)]
    along
  }, f$mean[, 1L])
  middle <- matrix(vapply(each, `[[`, f$mean[, 1L], "value"), nrow(f$mean), q + 1L)
  lapply(ends(middle, var), stats::plogis)
}

# Returns the most probable class of each row, or with an interval a logical matrix of sets of classes. The most
# probable classes enter a set until their total probability is at least `level`. A conformal set has the most probable
# class, and classes at least as probable as a quantile of the leave-one-out probabilities of the observed classes.
say_class <- function(fit, response, f, names, ask) {
  levels <- response$levels
  if (!response$kind %in% c("labels", "ordered")) {
    # The averaged probability exceeds 1/2 if the mean of f is positive, because links are symmetric.
    best <- f$mean > 0
    return(stats::setNames(if (is.null(levels)) as.integer(best) else
      if (identical(levels, c("FALSE", "TRUE"))) best else
        factor(levels[1L + best], levels, ordered = response$in_order), names))
  }
  p <- `dimnames<-`(class_chances(response, f)$mean, list(names, levels))
  best <- max.col(p, "first") # NA if p is missing
  if (ask$interval == "none") return(stats::setNames(factor(levels[best], levels, ordered = response$in_order), names))
  if (ask$interval == "prediction") {
    inside <- p > 0
    for (i in seq_len(nrow(p))) {
      sorted <- sort(p[i, ], decreasing = TRUE)
      inside[i, ] <- (cumsum(sorted) - sorted < ask$level)[rank(-p[i, ], ties.method = "first")]
    }
  } else {
    loo <- loo_shares(fit)
    k <- ceiling(ask$level * (length(loo$own) + 1) * (1 - 1e-12))
    inside <- p >= if (k > length(loo$own)) 0 else sort(loo$own, decreasing = TRUE)[k]
    inside[cbind(seq_along(best), best)[!is.na(best), , drop = FALSE]] <- TRUE
  }
  structure(matrix(inside, nrow(p), ncol(p), dimnames = dimnames(p)), probability = rowSums(p * inside))
}

# Returns simulated classes at the rows, a factor for each draw, or log odds in columns such as "sim_1.class".
simulate_labels <- function(fit, rows, nsim, type) {
  levels <- response_of(fit)$levels
  p <- posterior_of(fit)
  q <- length(levels) - 1L
  m <- nrow(p$z)
  normal <- function(rows, n) matrix(stats::rnorm(rows * n), rows)
  u <- c(mean_weights(p$factors)) + solve_t(p$factors$C, normal(q * m, nsim))
  at <- array(0, c(nrow(rows$x), q, nsim)) # contrasts of classes
  for (j in seq_len(q)) {
    at[, j, ] <- times_features(p$model$kernel, p$z, p$factors$L, rows$x, u[(j - 1L) * m + seq_len(m), , drop = FALSE])
    at[, j, ] <- at[, j, ] + residual_paths(p$model, p$z, p$jitter, rows$x, nsim, normal, p$control)$draws
  }
  out <- lapply(seq_len(nsim), function(i) {
    drawn <- matrix(at[, , i], nrow(rows$x))
    odds <- as_log_odds(list(mean = drawn, var = matrix(0, nrow(rows$x), q^2)), fit$center)$mean
    odds <- odds[rows$index, , drop = FALSE]
    if (type == "latent") return(`colnames<-`(odds, levels[-1L]))
    known <- which(!is.na(odds[, 1L]))
    above <- t(apply(softmax_of(odds[known, , drop = FALSE]), 1L, cumsum)) # P(y <= k) for each class k
    drawn <- rep(NA_integer_, nrow(odds))
    drawn[known] <- 1L + rowSums(above[, -length(levels), drop = FALSE] < stats::runif(length(known)))
    factor(levels[drawn], levels, ordered = response_of(fit)$in_order)
  })
  do.call(data.frame, c(stats::setNames(out, paste0("sim_", seq_len(nsim))), list(check.names = FALSE)))
}

check_probs <- function(probs) {
  read_numbers(probs, "probs", NULL, function(p) p > 0 & p < 1, "probabilities between 0 and 1")
}

# Returns list(fit) with a column for each quantile (`probs`) of a response, or for P(y > t) at each of `times`, after
# averaging over f. With an interval, P(y > t) also has `lwr` and `upr`, its values at the ends of the interval of f.
say_columns <- function(response, f, ask) {
  columns <- function(values, answer, ...) {
    each <- vapply(values, answer, f$mean)
    matrix(each, length(f$mean), length(values), dimnames = list(NULL, format(values, trim = TRUE, ...)))
  }
  if (ask$type == "quantile") {
    return(list(fit = columns(check_probs(ask$probs), function(p) response_quantile(response, p, f))))
  }
  refuse_if(is.null(ask$times), "times", "is missing", hint = "type = \"survival\" needs times, as in times = c(1, 5).")
  times <- read_numbers(ask$times, "times", NULL, function(t) t >= 0 | response$kind != "times",
                        "numbers of at least 0")
  f <- c(f[c("mean", "var", "size")], if (ask$interval != "none") normal_ends(f, list(noise = 0), ask$level))
  above <- function(cdf) {
    columns(times, function(t) 1 - where_known(f, function(f) cdf(rep(t, length(f$mean)), f)), digits = 15)
  }
  given <- function(end) above(function(t, f) response$cdf(t, response$link$inv(f[[end]]), f$size, response$theta))
  fit <- above(function(t, f) predictive_cdf(response, t, f$size, f$mean, sqrt(pmax(f$var, 0))))
  c(list(fit = fit), if (ask$interval != "none") list(lwr = given("lwr"), upr = given("upr")))
}

# Predicts at the rows of a source, block by block, with predict_block(block). Returns the predictions, or writes them
# as lines of the CSV file `file`. A later call with an equal `request` (not NULL) continues an interrupted file.
predict_source <- function(source, predict_block, file, request = NULL) {
  none <- function() abort_input("newdata", "has no rows")
  if (is.null(file)) {
    blocks <- source_pass(source, function(block) list(predict_block(block)), c)
    return(if (is.null(blocks)) none() else bind_blocks(blocks))
  }
  # R's connections report a full disk for large writes only, so also check the size of the file and its lines.
  full <- function(written = NULL) {
    only <- if (is.null(written)) "" else sprintf("; it has only %s", show_count(written))
    abort_input("file", "not written completely", hint = "The disk may be full.",
                message = sprintf("Writing %s rows to `file` \"%s\" failed%s.", show_count(wanted), file, only))
  }
  check_output_file(file)
  part <- part_of_file(file, request)
  check_output_file(part)
  if (is.null(request) || read_elsewhere(source)) unlink(part) # workers write all rows at once
  wanted <- done <- rows_written(part)
  con <- tryCatch(suppressWarnings(file(part, "a")), error = function(e) {
    abort_input("file", sprintf("cannot be written: \"%s\"", file), hint = conditionMessage(e))
  })
  on.exit({
    close(con)
    rows <- rows_written(part)
    if (is.null(request) || !rows) unlink(part) else
      tell_classed("kept", sprintf("The predictions of %s rows are kept beside \"%s\". %s", show_count(rows),
                                   basename(file), "The same call continues from there."))
  })
  write_rows <- function(p) {
    table <- as_table(p)
    size <- file.size(part)
    first <- wanted == 0
    wanted <<- wanted + nrow(table)
    tryCatch({
      utils::write.table(table, con, sep = ",", row.names = FALSE, col.names = first, qmethod = "double")
      flush(con)
    }, error = function(e) if (is_time_limit(e)) stop(e) else full())
    if (file.size(part) == size) full()
  }
  seen <- 0
  visit <- function(block) {
    left <- seq_len(nrow(block))[seen + seq_len(nrow(block)) > done]
    seen <<- seen + nrow(block)
    if (length(left)) write_rows(predict_block(block[left, , drop = FALSE]))
  }
  if (read_elsewhere(source)) write_rows(predict_source(source, predict_block, NULL)) else source_pass(source, visit, c)
  flush(con)
  written <- rows_written(part)
  if (written < wanted) full(written)
  close(con)
  on.exit()
  if (wanted == 0) unlink(part)
  if (wanted == 0) none()
  refuse_if(!file.rename(part, file), "file", sprintf("cannot be replaced: \"%s\"", file))
  invisible(file)
}

# Checks that `file` can be written safely: it is new or a regular file, no device, pipe or link.
check_output_file <- function(file) {
  refuse_if(!is.character(file) || length(file) != 1L || is.na(file), "file", file, "the name of a file")
  link <- Sys.readlink(file)
  odd <- dir.exists(file) || (!is.na(link) && nzchar(link)) ||
    (file.exists(file) && .Platform$OS.type == "unix" && system2("test", c("-f", shQuote(path.expand(file)))) != 0L)
  refuse_if(odd, "file", sprintf("is a folder, device, pipe or link: \"%s\"", file))
}

# Returns the name of the file that is written until all rows are done. It has a hash of the request, if there is one.
part_of_file <- function(file, request) {
  if (is.null(request)) return(paste0(file, ".part"))
  noted <- tempfile()
  on.exit(unlink(noted))
  saveRDS(request, noted, compress = FALSE)
  sprintf("%s.%s.part", file, substr(tools::md5sum(noted), 1L, 8L))
}

# Returns the number of complete lines of a file after its header, 0 without file, and cuts off an incomplete last line.
rows_written <- function(file) {
  if (!file.exists(file)) return(0)
  con <- file(file, "r+b")
  on.exit(close(con))
  lines <- size <- complete <- 0
  while (length(bytes <- readBin(con, "raw", 2^20))) {
    ends <- which(bytes == as.raw(10L))
    lines <- lines + length(ends)
    if (length(ends)) complete <- size + ends[length(ends)]
    size <- size + length(bytes)
  }
  if (complete < size) {
    seek(con, complete, rw = "write")
    truncate(con)
  }
  max(lines - 1, 0)
}
