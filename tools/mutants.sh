#!/usr/bin/env bash
# Plants the faults of tools/mutants.txt one by one and runs the tests on each:   bash tools/mutants.sh run | own [NAME...]
. "$(dirname "$0")/env.sh"
use_own_library
export OMP_THREAD_LIMIT=${OMP_THREAD_LIMIT-2}
exec Rscript --vanilla tools/mutants.R "$@"
