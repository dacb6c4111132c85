# Sourced by the scripts beside it: the checkout, and a library of packages that is the checkout's own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
top=$PWD
export LANG=${LANG:-C.UTF-8}

have() { command -v "$1" >/dev/null 2>&1; }
say() { printf '%s\n' "$*"; }

# One folder for each R version: compiled packages do not survive a change of it.
use_own_library() {
    rlib=$top/.Rlib/$(Rscript --vanilla -e 'cat(R.version$major, sub("[.].*", "", R.version$minor), sep = ".")')
    mkdir -p "$rlib"
    export R_LIBS=$rlib${R_LIBS:+:$R_LIBS}
}

r_config() { R CMD config "$1" 2>/dev/null; }

# A folder that goes away with the script that asked for it.
scratch_folder() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
}
