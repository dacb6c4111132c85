#' @rdname gp_family
#' @export
check_family <- function(family, y, f = seq(-6, 6, by = 0.25)) {
  likelihood <- as_likelihood(family)
  response <- as_response(likelihood)
  if (response$conjugate || !response$reads %in% c("numbers", "counts", "positive", "own")) {
    abort_input("family", describe(family), "a family of numbers or counts")
  }
  y <- check_vector(y, "y")
  failures_of(likelihood, y, check_vector(f, "f"))
}

failures_of <- function(likelihood, y, f = seq(-6, 6, by = 0.25)) {
  response <- as_response(likelihood)
  if (is.null(likelihood$theta) && length(response$shape)) likelihood$theta <- rep(1, length(response$shape))
  grid <- expand.grid(f = f, y = unique(y))
  n <- nrow(grid)
  sites <- engine_sites(likelihood, list(y = grid$y, offset = numeric(n)), 0)
  at <- function(f) native_likelihood(sites, f + sites$offset)
  now <- at(grid$f)
  h <- 1e-4
  slope <- (at(grid$f + h) - at(grid$f - h)) / (2 * h)
  near <- function(a, b, scale) abs(a - b) <= 1e-4 * (1 + abs(b) + scale)
  finite <- colSums(!is.finite(now)) == 0
  W <- now[3L, ]
  e <- rep_len(c(0.1, 0.5, 2), n)
  range <- curvature_range(likelihood, sites, grid$f + sites$offset, e)
  averages <- average_curvature_range(likelihood, sites, grid$f + sites$offset, e, range)
  inside <- Reduce(`&`, lapply(c(-1, -0.6, -0.2, 0.2, 0.6, 1), function(t) {
    there <- at(grid$f + t * e)
    within <- function(v, range) v >= range$lower - 1e-8 * (1 + abs(v)) & v <= range$upper + 1e-8 * (1 + abs(v))
    within(there[3L, ], range) & (!response$concave | within((now[2L, ] - there[2L, ]) / (t * e), averages))
  }))
  weight <- function() { # its program in place of each
    sites$shape[3:6] <- sites$shape[7L]
    native_likelihood(sites, grid$f)[1L, ]
  }
  claims <- list(
    "log density and slopes are finite" = finite,
    "the first slope is that of the log density" = near(now[2L, ], slope[1L, ], abs(now[1L, ]) * 1e-4),
    "the second slope is that of the first" = near(W, -slope[2L, ], 0),
    "the third slope is that of the second" = near(now[4L, ], -slope[3L, ], 0),
    "the log density is concave" = if (response$concave) W >= -1e-10 * (1 + max(abs(W[finite]), 0)),
    "the weight is positive" = if (!is.null(likelihood$row) && !response$concave) weight() > 0,
    "the second derivative is inside its bounds" = inside)
  claims <- claims[!vapply(claims, is.null, NA)]
  first <- vapply(claims, function(ok) which(!(ok %in% TRUE) & (finite | !all(finite)))[1L], 1L)
  structure(data.frame(claim = names(claims), holds = is.na(first), f = grid$f[first], y = grid$y[first],
                       row.names = NULL), class = c("pfdtc_family_check", "data.frame"))
}

#' @export
print.pfdtc_family_check <- function(x, ...) {
  at <- ifelse(x$holds, "", sprintf(" (f = %s, y = %s)", format(x$f, digits = 3), format(x$y, digits = 3)))
  cat(sprintf("%-7s %s%s\n", ifelse(x$holds, "holds", "FAILS"), x$claim, at), sep = "")
  cat("Checked on a grid, which is no proof.\n")
  invisible(x)
}

# Refuses a family if the properties that it states do not hold at the responses.
check_own_family <- function(likelihood, y) {
  if (is.null(likelihood$row)) return(invisible())
  y <- unique(y)
  found <- failures_of(likelihood, y[round(seq(1, length(y), length.out = min(40L, length(y))))])
  bad <- which(!found$holds)[1L]
  if (is.na(bad)) return(invisible())
  where <- sprintf("(f = %s, y = %s)", format(found$f[bad]), format(found$y[bad]))
  abort_input("family", sprintf("one for which this fails: %s %s", found$claim[bad], where),
              "a log density with what it states", hint = "See check_family().")
}
