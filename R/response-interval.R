# Rows of responses that are known up to an interval: ordered classes, censored numbers and times. With T(y) = f + s e,
# the noise e has the distribution function F, and T(y) is known to be in [L, U]:
#
#   p(y | f) = F((U - f) / s) - F((L - f) / s),   or F'((L - f) / s) / s if L = U.
#
# Log-concave noise makes log p concave in f.

# Returns a family in the form that users give.
new_family <- function(family, link, ...) structure(list(family = family, link = link, ...), class = "pfdtc_family")

# Adds to a row of the table what it has by default.
with_defaults <- function(row) {
  defaults <- list(conjugate = FALSE, concave = TRUE, discrete = FALSE, middle = 1, shown = identity)
  c(row, defaults[setdiff(names(defaults), names(row))])
}

# ratio: "hazard" or "odds", if that is proportional to e^(-f / s). cdf, quantile: of the noise. growth(s): E e^(s e),
# variance: of e. best(L, U, s): the f that makes [L, U] most likely. parts: the W of an interval as a sum of terms with
# one extreme each, and turns: where these are. bend: half of the largest |F''|, where F is not symmetric.
noises <- list(
  logistic = list(
    cdf = stats::plogis, quantile = stats::qlogis, variance = pi^2 / 3, ratio = "odds ratio",
    growth = function(s) if (s < 1) pi * s / sin(pi * s) else Inf,
    best = function(L, U, s) (L + U) / 2,
    parts = function(sites) {
      list(replace(sites, "size", list(Inf + 0 * seq_along(sites$size))),
           replace(sites, "y", list(-Inf + 0 * seq_along(sites$y))))
    },
    turns = function(sites) list(sites$y, sites$size)),
  normal = list(
    cdf = stats::pnorm, quantile = stats::qnorm, variance = 1, growth = function(s) exp(s^2 / 2),
    best = function(L, U, s) (L + U) / 2,
    turns = function(sites) list((sites$y + sites$size) / 2)),
  gumbel = list(
    cdf = function(z) -expm1(-exp(z)), quantile = function(p) log(-log1p(-p)), variance = pi^2 / 6,
    ratio = "hazard ratio",
    growth = function(s) gamma(1 + s), bend = 0.1547,
    best = function(L, U, s) {
      ifelse(L == U, L, ifelse(is.infinite(U - L), (L + U) / 2, L + s * log(expm1((U - L) / s) / ((U - L) / s))))
    },
    parts = function(sites) gumbel_parts(sites),
    turns = function(sites) list(gumbel_parts(sites)[[2L]]$size - sites$shape[2L] * log(gumbel_turn))))

# W is that of a response above L, which falls in f, and that of a response below U', where e^U' = e^U - e^L in units
# of s. The latter is h(w) (w + h(w) - 1), h(w) = w / (e^w - 1), w = e^((U' - f) / s), with one extreme.
gumbel_turn <- 1.8604709451

gumbel_parts <- function(sites) {
  s <- sites$shape[2L]
  L <- sites$y
  U <- ifelse(L == sites$size, Inf, sites$size + s * log(-expm1(-(sites$size - L) / s)))
  above <- replace(sites, "size", list(Inf + 0 * seq_along(U))) # for a response seen exactly, W is the same
  list(above, replace(sites, c("y", "size"), list(-Inf + 0 * seq_along(L), U)))
}

# Returns a row of the table. link(mean) is f; up(y, theta) is T(y), for a class its upper end; down(t, theta) is the
# response of T(y) = t; ends(sites, theta) is list(L, U, scale).
interval_row <- function(noise, name, link, up, down, ends, ...) {
  e <- noises[[noise]]
  engine <- function(sites, theta) {
    at <- ends(sites, theta)
    utils::modifyList(sites, list(y = at$L, size = at$U, shape = c(1, at$scale)))
  }
  scale <- function(theta) ends(list(y = 1, size = 1), theta)$scale
  draw <- function(p, mean, theta, link) down(link(mean) + scale(theta) * e$quantile(p), theta)
  c(list(...), list(
    name = name, site = noise, engine = engine, parts = e$parts, turns = e$turns, bend = e$bend,
    cdf = function(y, mean, size, theta) e$cdf((up(y, theta) - link(mean)) / scale(theta)),
    quantile = function(p, mean, size, theta) draw(p, mean, theta, link),
    draw = function(mean, size, theta) draw(stats::runif(length(mean)), mean, theta, link),
    limit = function(u, y, size, theta, link) up(y, theta) - scale(theta) * e$quantile(stats::pnorm(-u)),
    best = function(sites, theta) do.call(e$best, unname(ends(sites, theta)))))
}

# ---- ordered classes ------------------------------------------------------------------------------------------------

# Returns the cut points of classes 1 to K. The first is 0, as f has a mean; theta has the widths of inner classes.
cut_points <- function(theta) c(-Inf, 0, cumsum(theta), Inf)

ordinal_row <- function(noise, link) {
  e <- noises[[noise]]
  interval_row(
    noise, paste0("ordinal", if (link != "logit") paste0("_", link)), identity, label = "ordered",
    call = sprintf("ordinal(\"%s\")", link), links = link, mean_link = "identity", reads = "ordered", discrete = TRUE,
    shape = function(likelihood) {
      sprintf("width.%s", likelihood$levels[seq_len(max(length(likelihood$levels) - 2L, 0L)) + 1L])
    },
    middle = function(sites, w, levels) pmax(diff(cuts_of_shares(e, sites, w, length(levels))), 1e-3),
    start = function(sites, w) -cuts_of_shares(e, sites, w, max(sites$y, 2))[1L] - mean(sites$offset),
    up = function(y, theta) cut_points(theta)[pmin(pmax(y, 0), length(theta) + 2) + 1],
    down = function(t, theta) findInterval(t, cut_points(theta), left.open = TRUE),
    ends = function(sites, theta) {
      list(L = cut_points(theta)[sites$y], U = cut_points(theta)[sites$y + 1], scale = 1)
    },
    expected = function(f, theta) 1 + Reduce(`+`, lapply(c(0, cumsum(theta)), function(c) 1 - e$cdf(c - f))))
}

# Returns the weighted number of rows of each class, plus a half.
counts_of_classes <- function(y, w, K) vapply(seq_len(K), function(k) sum(w * (y == k)), 0) + 0.5

cuts_of_shares <- function(noise, sites, w, K) {
  counts <- counts_of_classes(sites$y, w, K)
  noise$quantile(cumsum(counts)[-K] / sum(counts))
}

#' @rdname multinomial
#' @export
ordinal <- function(link = c("logit", "probit", "cloglog")) {
  link <- check_choice(link, c("logit", "probit", "cloglog"), "link")
  new_family(paste0("ordinal", if (link != "logit") paste0("_", link)), link)
}

# Returns the cut points of f without its constant mean.
describe_cuts <- function(fit, response) {
  cuts <- cut_points(fit$theta)
  between <- paste(utils::head(response$levels, -1L), utils::tail(response$levels, -1L), sep = "|")
  sprintf("%s, cut points %s", response$full_label,
          paste(between, format(signif(cuts[is.finite(cuts)] - fit$center, 4)), collapse = ", "))
}
