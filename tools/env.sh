# The other scripts source this file. It goes to the folder of the checkout, which has its own library of R packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
top=$PWD
export LANG=${LANG:-C.UTF-8}

have() { command -v "$1" >/dev/null 2>&1; }
say() { printf '%s\n' "$*"; }

# Uses one folder for each R version, because compiled packages do not work with another version.
use_own_library() {
    rlib=$top/.Rlib/$(Rscript --vanilla -e 'cat(R.version$major, sub("[.].*", "", R.version$minor), sep = ".")')
    mkdir -p "$rlib"
    export R_LIBS=$rlib${R_LIBS:+:$R_LIBS}
}

r_config() { R CMD config "$1" 2>/dev/null; }

# Makes a folder that is removed when the script ends.
scratch_folder() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
}
