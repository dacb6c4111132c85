#!/usr/bin/env bash
# Compiles every file of src/ as strict C11 with warnings as errors, with OpenMP and without, and by clang if present.
# Keeps the objects in .Rlib/strict for tools/ctest.sh, which runs them under valgrind.
. "$(dirname "$0")/env.sh"
cc=$(r_config CC)
headers=$(r_config --cppflags | sed 's/-I/-isystem /g')
strict="-std=c11 -O2 -Wall -Wextra -Wpedantic -Wstrict-prototypes -Werror"
kept=$top/.Rlib/strict
rm -rf "$kept" && mkdir -p "$kept"
scratch_folder
files=$(ls src/*.c)
failed=0
for file in $files; do
    $cc $strict -g -fopenmp $headers -c "$file" -o "$kept/$(basename "$file" .c).o" || failed=$((failed + 1))
    $cc ${strict/-O2/-fsyntax-only} -Wno-unknown-pragmas $headers "$file" 2>"$scratch/log" ||
        { say "$file, without OpenMP:"; cat "$scratch/log"; failed=$((failed + 1)); }
    ! have clang || clang ${strict/-O2/-fsyntax-only} $headers "$file" || failed=$((failed + 1))
done
say "strict: $(echo "$files" | wc -l) files, $failed failed"
[ $failed = 0 ] || exit 1
touch "$kept/finished"
