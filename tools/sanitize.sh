#!/usr/bin/env bash
# Runs the R tests with the package (not R itself) built under AddressSanitizer and UndefinedBehaviorSanitizer.
. "$(dirname "$0")/env.sh"
cc=$(r_config CC)
runtime=""
for name in libasan.so libubsan.so; do
    file=$($cc -print-file-name=$name)
    case $file in
        /*) runtime="$runtime $(readlink -f "$file")" ;;
        *) say "sanitize: $cc has no $name: skipped"; exit 77 ;;
    esac
done
use_own_library
scratch_folder
cat >"$scratch/Makevars" <<'MAKEVARS'
CFLAGS = -g -O2 -fno-omit-frame-pointer -fsanitize=address,undefined
LDFLAGS = -fsanitize=address,undefined
MAKEVARS
R_MAKEVARS_USER=$scratch/Makevars bash tools/install.sh "$scratch/library" --no-test-load --no-docs
grep -q __asan_report "$scratch/library/pfdtc/libs/pfdtc.so" ||
    { say "sanitize: the package was built without them"; exit 1; }

# R itself reports a failed allocation. Memory that R keeps until its end is not a leak of the package.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export PFDTC_TEST_QUICK=1
unset PFDTC_DATA # tests on real data measure accuracy, so they are not needed here
LD_PRELOAD=${runtime# } TESTTHAT_PARALLEL=FALSE Rscript --vanilla tools/test.R "$scratch/library" "${1:-}"
