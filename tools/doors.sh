#!/usr/bin/env bash
# Calls every C entry point with a garbage collection at every allocation, and under valgrind. Fails if the package reads
# memory that is uninitialised or not its own.
. "$(dirname "$0")/env.sh"
use_own_library
bash tools/install.sh
Rscript --vanilla tools/doors.R "$rlib"
have valgrind || { say "doors: no valgrind: skipped"; exit 77; }
scratch_folder
# R itself reads beyond the ends of strings. Only complaints whose call stack contains the package are counted.
PFDTC_NO_TORTURE=1 OMP_NUM_THREADS=1 R --vanilla --no-echo --debugger=valgrind \
    --debugger-args="--error-limit=no --num-callers=30 --log-file=$scratch/log" \
    -f tools/doors.R --args "$rlib" || { tail -n 40 "$scratch/log"; exit 1; }
awk -v RS='==[0-9]+== *\n' '/pfdtc\.so|\((ffi_|args)[a-z_]*\.c:/ { n++; print } END { exit n > 0 }' "$scratch/log" ||
    { say "doors: valgrind complains"; exit 1; }
grep 'ERROR SUMMARY' "$scratch/log" | sed 's/^==[0-9]*== /doors: valgrind, R itself included: /'
