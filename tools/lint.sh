#!/usr/bin/env bash
# Lint of R (lintr, .lintr) and of C (clang-format, .clang-format); `make format` mends the latter. The planted faults
# of tools/mutants.txt must still apply, and tools/srr-report.md must be what the code's tags say.
. "$(dirname "$0")/env.sh"
use_own_library
failed=0
Rscript --vanilla tools/lint.R || failed=1
Rscript --vanilla tools/mutants.R check || failed=1
Rscript --vanilla tools/srr.R --check || failed=1
if git grep -nE '^(<<<<<<<|>>>>>>>) ' 2>/dev/null; then
    say "lint: a merge was not finished"
    failed=1
fi

# Releases of clang-format differ in details: another one than the tree was formatted with may complain, not fail.
made_by=14
sources=$(ls src/*.[ch] tools/*.[ch] 2>/dev/null || true)
if ! have clang-format; then
    say "lint: clang-format is absent: C is skipped"
elif [ -n "$sources" ]; then
    version=$(clang-format --version | grep -oE 'version [0-9]+' | grep -oE '[0-9]+')
    ugly=0
    for file in $sources; do
        changes=$(clang-format "$file" | diff "$file" - | grep -c '^<' || true)
        [ "$changes" = 0 ] || { say "$file: $changes lines are not laid out as 'make format' does"; ugly=$((ugly + 1)); }
    done
    say "lint: $(echo "$sources" | wc -l) files of C, $ugly complaints"
    if [ "$version" = $made_by ]; then
        [ $ugly = 0 ] || failed=1
    elif [ $ugly != 0 ]; then
        say "lint: this is clang-format $version, and the tree is formatted by $made_by: not counted"
    fi
fi
exit $failed
