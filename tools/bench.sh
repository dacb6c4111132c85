#!/usr/bin/env bash
# Installs the package and measures speed and memory, with OpenBLAS on one thread if it can be downloaded:
#   bash tools/bench.sh
. "$(dirname "$0")/env.sh"
bash tools/install.sh
use_own_library
export OPENBLAS_NUM_THREADS=1
measure() {
    local status=0
    bash tools/openblas.sh Rscript "$1" || status=$?
    [ $status -ne 77 ] && return $status # 77: there is no OpenBLAS besides R's own BLAS
    Rscript "$1"
}
measure bench/speed.R
measure bench/memory.R
