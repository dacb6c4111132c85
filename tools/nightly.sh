#!/usr/bin/env bash
# Runs what .ci/run leaves out: other BLAS and memory settings, sanitizers, valgrind, experiments, planted faults.
# It takes about ninety minutes on two cores. The table of its stages, bench/results/nightly.csv, is committed. So is
# tools/linted.txt, the commit in which lint of all files found nothing.
#   bash tools/nightly.sh            all stages
#   bash tools/nightly.sh quick      without the planted faults
deadline=20000
. "$(dirname "$0")/stages.sh" || exit 1
stage setup bash tools/setup.sh ci
. tools/env.sh && set +eu && use_own_library
export PFDTC_TEST_ALL=1 # every case of loops of which CI runs some

# Writes the table of the finished stages, even if the run ends early.
write_table() {
    { echo "# commit $(git rev-parse --short HEAD), R $(Rscript --vanilla -e 'cat(as.character(getRversion()))')"; cat "$table"; } \
        >bench/results/nightly.csv
    rm -f "$counts" "$table"
}
trap write_table EXIT
trap 'exit 1' INT TERM

# On two cores, planted faults run at the same time as the other stages, because they have their own libraries.
beside=$(mktemp)
[ "${1:-}" = quick ] || stage "planted faults" bash tools/mutants.sh run >"$beside" 2>&1 &
stage lint Rscript --vanilla tools/lint.R --all
stage doors bash tools/doors.sh
stage "tests, sanitizers" bash tools/sanitize.sh
stage "threads, ratio" bash tools/openblas.sh Rscript --vanilla bench/threads.R quick
stage "tests, OpenBLAS" bash tools/openblas.sh bash tools/test.sh
stage experiments Rscript --vanilla inst/experiments/run.R --reduced
stage "tests, nothing kept between passes" env PFDTC_TEST_MEMORY=0 bash tools/test.sh
stage "check with tests" bash tools/check.sh
wait
cat "$beside"
rm -f "$beside"

finish_stages
