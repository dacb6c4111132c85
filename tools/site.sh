#!/usr/bin/env bash
# Makes a site of the help pages and vignettes in site/, by package pkgdown, without network access.
#   bash tools/site.sh [quick]      quick: without running examples and vignettes
. "$(dirname "$0")/env.sh"
bash tools/install.sh
use_own_library
Rscript --vanilla -e 'if (!requireNamespace("pkgdown", quietly = TRUE)) stop("site: needs package pkgdown")'
scratch_folder
mkdir "$scratch/pfdtc"
git ls-files -z | xargs -0 cp --parents -t "$scratch/pfdtc"
quick=${1:-}
cd "$scratch/pfdtc"
Rscript --vanilla - "$quick" <<'R'
options(pkgdown.internet = FALSE, repos = NULL)
quick <- identical(commandArgs(trailingOnly = TRUE), "quick")
pkgdown::init_site(".")
pkgdown::build_home(".", preview = FALSE)
pkgdown::build_reference(".", examples = !quick, run_dont_run = FALSE, lazy = FALSE, preview = FALSE)
if (!quick) pkgdown::build_articles(".", lazy = FALSE, preview = FALSE)
pkgdown::build_news(".", preview = FALSE)
R
rm -rf "$top/site"
cp -r site "$top/site"
say "site: $(find "$top/site" -name '*.html' | wc -l) pages in site/, begin with site/index.html"
