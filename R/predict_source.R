# Predictions at the rows of a source, block by block.

# `predict_block(block)`: what predict() makes of a block. With a file, a CSV of what predict() returns, a line a row;
# without, that itself. `request`: what tells one such call from another, for one that was broken off to go on; NULL:
# from the beginning.
predict_source <- function(source, predict_block, file, request = NULL) {
  if (is.null(file)) return(bind_predictions(source_pass(source, function(block) list(predict_block(block)), c)))
  if (!is.character(file) || length(file) != 1L || is.na(file)) abort_input("file", file, "the name of a file")
  part <- part_of_file(file, request)
  if (is.null(request)) unlink(part)
  done <- rows_written(part)
  con <- open_part_of_file(part, file)
  finished <- FALSE
  on.exit({
    close(con)
    if (!finished) leave_part_of_file(part, file, request)
  })
  first <- done == 0
  write_rows <- function(p) {
    table <- as_table(p)
    utils::write.table(table, con, sep = ",", row.names = FALSE, col.names = first, qmethod = "double")
    first <<- FALSE
  }
  seen <- 0
  visit <- function(block) {
    left <- seq_len(nrow(block))[seen + seq_len(nrow(block)) > done]
    if (length(left)) write_rows(predict_block(block[left, , drop = FALSE]))
    seen <<- seen + nrow(block)
    seen
  }
  if (read_elsewhere(source)) write_rows(predict_source(source, predict_block, NULL)) else
    source_pass(source, visit, max)
  finished <- TRUE
  close(con)
  on.exit()
  if (first) {
    unlink(part)
    abort_input("newdata", "a source without rows", "of at least one row")
  }
  file.rename(part, file)
  invisible(file)
}

# What is not yet complete has another name, that of the request in it.
part_of_file <- function(file, request) {
  if (is.null(request)) return(paste0(file, ".part"))
  noted <- tempfile()
  on.exit(unlink(noted))
  saveRDS(request, noted, compress = FALSE)
  sprintf("%s.%s.part", file, substr(tools::md5sum(noted), 1L, 8L))
}

open_part_of_file <- function(part, file) {
  tryCatch(suppressWarnings(file(part, "a")), error = function(e) {
    abort_input("file", sprintf("\"%s\"", file), "a file that can be written", hint = conditionMessage(e))
  })
}

leave_part_of_file <- function(part, file, request) {
  rows <- rows_written(part)
  if (is.null(request) || !rows) return(unlink(part))
  tell_classed("kept", sprintf("The predictions of %s rows are kept beside \"%s\". The same call continues from there.",
                               show_count(rows), basename(file)))
}

# Lines of a file below the first; one that was broken off is taken out.
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

# A vector, a matrix or a list of both, as predict() has them, as a data frame.
as_table <- function(p) {
  fit <- if (is.list(p)) p$fit else p
  table <- if (is.matrix(fit)) as.data.frame(fit) else data.frame(fit = unname(fit))
  if (is.list(p)) table$se.fit <- unname(p$se.fit)
  table
}

bind_predictions <- function(blocks) {
  if (is.null(blocks)) abort_input("newdata", "a source without rows", "of at least one row")
  bind <- function(parts) if (is.matrix(parts[[1L]])) do.call(rbind, parts) else unlist(parts)
  if (!is.list(blocks[[1L]])) return(bind(blocks))
  lapply(stats::setNames(nm = names(blocks[[1L]])), function(part) bind(lapply(blocks, `[[`, part)))
}

# What predictions by a fit depend on.
prediction_signature <- function(fit) {
  c(fit[c("signature", "noise", "center", "scale", "inducing", "neighbours")], list(
    kernel = kernel_values(fit$kernel), near = fit$near$beta, factors = fit$factors[c("beta", "alpha")],
    reference = fit$reference$inducing))
}
