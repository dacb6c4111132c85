#!/usr/bin/env bash
# Checks the style of R (lintr, .lintr) and of C (clang-format, .clang-format); `make format` formats C. Also checks that
# the planted faults of tools/mutants.txt apply, and that tools/srr-report.md agrees with the tags in the code.
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

# Releases of clang-format differ in details, so the check fails only by complaints of the release below.
made_by=14
sources=$(ls src/*.[ch] tools/*.[ch] 2>/dev/null || true)
if ! have clang-format; then
    say "lint: clang-format is absent: C is skipped"
elif [ -n "$sources" ]; then
    version=$(clang-format --version | grep -oE 'version [0-9]+' | grep -oE '[0-9]+')
    changes=$(clang-format --dry-run $sources 2>&1 | grep -E '^[^ ]+:[0-9]+:[0-9]+: ' || true)
    [ -z "$changes" ] || say "$changes" "These lines are not laid out as 'make format' does."
    ugly=$(printf %s "$changes" | cut -d: -f1 | sort -u | grep -c . || true)
    say "lint: $(echo "$sources" | wc -l) files of C, $ugly of them not laid out by clang-format"
    if [ "$version" = $made_by ]; then
        [ $ugly = 0 ] || failed=1
    elif [ $ugly != 0 ]; then
        say "lint: this is clang-format $version, and the tree is formatted by $made_by: not counted"
    fi
fi
exit $failed
