# Predictions at the rows of a source, block by block.

# `predict_block(block)`: what predict() makes of a block. With a file, a CSV of what predict() returns, a line a row;
# without, that itself.
predict_source <- function(source, predict_block, file) {
  if (is.null(file)) {
    blocks <- source_pass(source, function(block) list(predict_block(block)), c)
    return(bind_predictions(blocks))
  }
  if (!is.character(file) || length(file) != 1L || is.na(file)) abort_input("file", file, "the name of a file")
  con <- tryCatch(suppressWarnings(file(file, "w")), error = function(e) {
    abort_input("file", sprintf("\"%s\"", file), "a file that can be written", hint = conditionMessage(e))
  })
  on.exit(close(con))
  first <- TRUE
  write_rows <- function(p) {
    table <- as_table(p)
    utils::write.table(table, con, sep = ",", row.names = FALSE, col.names = first, qmethod = "double")
    first <<- FALSE
    nrow(table)
  }
  rows <- if (read_elsewhere(source)) write_rows(predict_source(source, predict_block, NULL)) else
    source_pass(source, function(block) write_rows(predict_block(block)), `+`)
  if (is.null(rows)) abort_input("newdata", "a source without rows", "of at least one row")
  invisible(file)
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
