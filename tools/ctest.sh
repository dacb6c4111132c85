#!/usr/bin/env bash
# Runs the tests of C without R (tools/ctest*.c) under AddressSanitizer and UndefinedBehaviorSanitizer, and under
# valgrind. Then runs each tool again on a program with one planted overrun, which the tool must find.
. "$(dirname "$0")/env.sh"
cc=$(r_config CC)
headers=$(r_config --cppflags | sed 's/-I/-isystem /g')
numerical=$(ls src/*.c | grep -vE '^src/(init|args|ffi_[a-z_0-9]*)\.c$')
scratch_folder

# The objects that valgrind runs are those of tools/strict.sh.
strict=$top/.Rlib/strict
if [ ! -f "$strict/finished" ] || [ -n "$(find src -name '*.[ch]' -newer "$strict/finished")" ]; then bash tools/strict.sh; fi

build() { # PROGRAM, files, options of the compiler: builds PROGRAM, and PROGRAM-planted, whose tests have one overrun
    local program=$1 files=$2
    shift 2
    mkdir -p "$program.o" "$program.planted.o"
    (cd "$program.o" && $cc -std=c11 -g -Wall "$@" $headers -I"$top/src" -c $(printf "$top/%s " $files))
    (cd "$program.planted.o" && $cc -std=c11 -g -Wall "$@" -DPLANT_OVERRUN $headers -I"$top/src" \
        -c $(grep -l PLANTED "$top"/tools/ctest*.c))
    $cc "$@" "$program.o"/*.o -o "$program" -llapack -lblas -lm -fopenmp
    cp "$program.planted.o"/*.o "$program.o"
    $cc "$@" "$program.o"/*.o -o "$program-planted" -llapack -lblas -lm -fopenmp
}
build "$scratch/sanitized" "$numerical tools/ctest*.c" -O0 -fno-omit-frame-pointer -fsanitize=address,undefined \
    -fno-sanitize-recover=all
mkdir "$scratch/plain.o"
for file in $numerical; do cp "$strict/$(basename "$file" .c).o" "$scratch/plain.o"; done
build "$scratch/plain" "tools/ctest*.c" -O1

export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1      # valgrind finds leaks
passes() { # name, command...
    local name=$1
    shift
    say "ctest: $name"
    "$@" || { say "ctest: $name: FAILED with status $?"; exit 1; }
}
finds_the_overrun() { # name, regular expression for the tool's message, command...
    local name=$1 words=$2
    shift 2
    if CTEST_SHARE=5 "$@" >"$scratch/log" 2>&1; then
        say "ctest: $name missed the planted overrun"; exit 1
    elif ! grep -qE "$words" "$scratch/log"; then
        cat "$scratch/log"
        say "ctest: $name failed with the planted overrun, but not for it"; exit 1
    fi
    say "ctest: $name finds the planted overrun: $(grep -m1 -oE "$words.*" "$scratch/log")"
}

passes "sanitizers" "$scratch/sanitized"
finds_the_overrun "sanitizers" "(AddressSanitizer: [a-z-]*overflow|with insufficient space)" "$scratch/sanitized-planted"
if have valgrind; then
    memcheck="valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite"
    export OMP_NUM_THREADS=1
    # A case takes 25 times as long under valgrind. It runs a fifth of the largest loops; sanitizers run all.
    CTEST_SHARE=5 passes "valgrind" $memcheck "$scratch/plain"
    finds_the_overrun "valgrind" "Invalid (write|read)" $memcheck --exit-on-first-error=yes "$scratch/plain-planted"
else
    say "ctest: valgrind is absent: skipped"
fi
