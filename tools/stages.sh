# Sourced by .ci/run and tools/nightly.sh: runs stages one after another and sums what they counted.
# A stage that fails does not stop those after it. Status 77 of a stage means that it was skipped.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
export CI=${CI:-true}
if [ -z "${PFDTC_DATA:-}" ] && [ -d ../shared/data ]; then
    PFDTC_DATA=$(cd ../shared/data && pwd)
    export PFDTC_DATA
fi
PFDTC_COUNTS=$(mktemp)
export PFDTC_COUNTS
table=$(mktemp)
trap 'rm -f "$PFDTC_COUNTS" "$table"' EXIT
echo "stage,result,seconds,passed,failed,skipped" >"$table"

deadline=${deadline:-4800} # seconds; a stage that hangs must not take the report with it
failed="" skipped=0

# Sums the counts that were appended after line $1.
counts_after() { tail -n "+$(($1 + 1))" "$PFDTC_COUNTS" | awk '{ p += $1; f += $2; s += $3 } END { printf "%d,%d,%d", p, f, s }'; }

stage() { # name, command...
    local name=$1 begun=$SECONDS status left=$((deadline - SECONDS)) before result
    shift
    printf '\n== %s\n' "$name"
    before=$(wc -l <"$PFDTC_COUNTS")
    if [ $left -gt 0 ]; then timeout --kill-after=10 $left "$@" </dev/null 2>&1; status=$?; else status=124; fi
    case $status in
        0) result=ok ;;
        77) result=skipped skipped=$((skipped + 1)) ;;
        *) result=FAILED failed="$failed, $name"
            # A stage that failed without failed tests of its own counts as one failure.
            case $(counts_after "$before") in *,0,*) echo "0 1 0" >>"$PFDTC_COUNTS" ;; esac ;;
    esac
    printf -- '-- %s: %s (status %d), %d s\n' "$name" "$result" $status $((SECONDS - begun))
    echo "\"$name\",$result,$((SECONDS - begun)),$(counts_after "$before")" >>"$table"
}

# Prints the sums; its status is 1 if a stage failed.
finish_stages() {
    echo
    [ -z "$failed" ] || echo "failed: ${failed#, }"
    echo "$SECONDS s"
    awk -v skips=$skipped '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s + skips }' "$PFDTC_COUNTS"
    [ -z "$failed" ]
}
