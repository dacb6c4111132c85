if (requireNamespace("testthat", quietly = TRUE)) {
  library(testthat)
  library(pfdtc)
  test_check("pfdtc")
}
