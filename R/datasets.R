# The data of the paper's Table 1, and two larger sets.

#' The data sets of the paper
#'
#' The six data sets of Table 1 of Huggins et al. (2019) with the sizes printed there, and two larger ones beyond the
#' paper.
#'
#' @details
#' The package has no data inside: [load_dataset()] reads CSV files that you prepare once, from the places named in
#' `source` (or draws the synthetic set). The paper's text says that 20 % of the rows were held out; its table prints
#' sizes that are not all 20 %, and those are used here.
#' @return A data frame with a row a set: `name`; `n_train`, `n_test`, rows to train and to test on; `d`, inputs;
#'   `n_aux`, the paper's K, rows that the auxiliary distribution is made of (beyond the paper what [aux_sor()] takes);
#'   `paper`, is it in Table 1?; `file`, name of the file without `.csv` or `.csv.gz` (`NA`: none needed); `source`;
#'   `prepare`, what to do with what is found there.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), Table 1.
#' @seealso [load_dataset()], [run_experiment()]
#' @examples
#' paper_datasets()[1:5]
#' @export
paper_datasets <- function() {
  uci <- function(title, doi) sprintf("UCI Machine Learning Repository, %s, doi:%s", title, doi)
  flights <- paste("US Bureau of Transportation Statistics and FAA, as in the ASA Data Expo 2009",
                   "(doi:10.7910/DVN/HG7NV7)")
  as_is <- "name the columns in a header line, the response `y` last; change nothing else"
  joined <- paste("flights of January to April 2008 joined to aircraft by tail number; columns plane_age (2008 less",
                  "its year), distance, air_time, dep_time and arr_time (minutes since midnight), day_of_week,",
                  "day_of_month, month, and last `y`, arrival delay in minutes; rows with missing values left out,",
                  "the others in random order;")
  data.frame(
    name = c("synthetic", "delays10k", "abalone", "airfoil", "ccpp", "wine", "protein", "delays"),
    n_train = c(1000L, 8000L, 3177L, 1103L, 7568L, 3898L, 36584L, 700000L),
    n_test = c(1000L, 2000L, 1000L, 400L, 2000L, 1000L, 9146L, 100000L),
    d = c(1L, 8L, 8L, 5L, 4L, 11L, 9L, 8L),
    n_aux = c(100L, 800L, 300L, 100L, 700L, 300L, 1000L, 1000L),
    paper = rep(c(TRUE, FALSE), c(6L, 2L)),
    file = c(NA, "delays10k", "abalone", "airfoil", "ccpp", "wine-white", "protein", "delays800k"),
    source = c("drawn by load_dataset()", flights, uci("Abalone", "10.24432/C55C7W"),
               uci("Airfoil Self-Noise", "10.24432/C5VW2C"), uci("Combined Cycle Power Plant", "10.24432/C5002N"),
               uci("Wine Quality (white)", "10.24432/C56S3T"),
               uci("Physicochemical Properties of Protein Tertiary Structure", "10.24432/C5QW3H"), flights),
    prepare = c("nothing", paste(joined, "the first 10,000 of them"),
                "write sex as 1 (male), -1 (female), 0 (infant); name the columns, the response (rings) `y` last",
                as_is, as_is, as_is, "move the response to the last column and name it `y`",
                paste(joined, "the first 800,000 of them")))
}

#' Load a data set of the paper
#'
#' @param name a name from [paper_datasets()].
#' @param dir the folder with the CSV files, one header line each, numbers only, the response in the last column, named
#'   `y`; plain or gzipped. The synthetic set needs none.
#' @return A data frame, the response `y` last, in the units of the file: nothing is centred or scaled.
#'
#'   `"synthetic"` has 2,000 rows drawn from R's random numbers: one input `x`, uniform on \eqn{[0, 2]}{[0, 2]}, and
#'   \eqn{y = \sin(12 x) + 0.66 \cos(25 x) + 3 + e}{y = sin(12 x) + 0.66 cos(25 x) + 3 + e},
#'   \eqn{e \sim N(0, 0.01)}{e ~ N(0, 0.01)}: as in the scripts that the paper's authors published.
#' @section Errors: class `pfdtc_error_input` for an unknown name; for a file that is missing, saying where the data
#'   come from and how to prepare them; for a file with other columns or fewer rows than Table 1 says.
#' @source [paper_datasets()] names the source of each.
#' @examples
#' set.seed(1)
#' str(load_dataset("synthetic"))
#' @export
load_dataset <- function(name, dir = Sys.getenv("PFDTC_DATA")) {
  sets <- paper_datasets()
  name <- check_choice(name, sets$name, "name")
  set <- sets[sets$name == name, ]
  if (name == "synthetic") return(draw_synthetic(set$n_train + set$n_test))
  check_dataset(utils::read.csv(dataset_path(set, dir)), set)
}

draw_synthetic <- function(n) {
  x <- stats::runif(n, 0, 2)
  data.frame(x = x, y = sin(12 * x) + 0.66 * cos(25 * x) + 3 + stats::rnorm(n, sd = 0.1))
}

dataset_path <- function(set, dir) {
  if (!is.character(dir) || length(dir) != 1L || is.na(dir)) abort_input("dir", describe(dir), "the name of a folder")
  files <- paste0(set$file, c(".csv", ".csv.gz"))
  paths <- file.path(dir, files)
  found <- if (nzchar(dir)) paths[file.exists(paths)]
  if (length(found)) return(found[1L])
  where <- if (nzchar(dir)) sprintf("there is no %s in %s", files[1L], dir) else "PFDTC_DATA is not set"
  abort_input("dir", where, "a folder with the file", message = sprintf(
    "`dir` must be a folder with %s or %s (%s). It comes from: %s. To prepare it: %s.", files[1L], files[2L], where,
    set$source, set$prepare))
}

check_dataset <- function(data, set) {
  bad <- !vapply(data, is.numeric, NA) | vapply(data, anyNA, NA)
  complain <- function(got) {
    abort_input("dir", got, "a folder with the file", message = sprintf(
      "The file of data set \"%s\" must have %d numeric columns, the last named `y`, and at least %d rows: it has %s.",
      set$name, set$d + 1L, set$n_train + set$n_test, got))
  }
  if (any(bad)) complain(sprintf("values that are no numbers in column %s", names(data)[bad][1L]))
  if (ncol(data) != set$d + 1L) complain(sprintf("%d columns", ncol(data)))
  if (names(data)[ncol(data)] != "y") complain(sprintf("`%s` last", names(data)[ncol(data)]))
  if (nrow(data) < set$n_train + set$n_test) complain(sprintf("%d rows", nrow(data)))
  data
}
