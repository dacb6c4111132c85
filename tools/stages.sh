# .ci/run and tools/nightly.sh source this file. It runs stages one after another and adds up their numbers of tests.
# A stage that fails does not stop later stages. Status 77 of a stage means that it was skipped.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
export CI=${CI:-true}
if [ -z "${PFDTC_DATA:-}" ] && [ -d ../shared/data ]; then
    PFDTC_DATA=$(cd ../shared/data && pwd)
    export PFDTC_DATA
fi
counts=$(mktemp)
table=$(mktemp)
trap 'rm -f "$counts" "$table"' EXIT
echo "stage,result,seconds,passed,failed,skipped" >"$table"

deadline=${deadline:-4800} # seconds; so there is a report even if a stage hangs

# Stages write only to files, so some may run at the same time: (stage one ...; stage two ...) >LOG & ...; wait
stage() { # name, command...
    local name=$1 begun=$SECONDS status left=$((deadline - SECONDS)) own
    shift
    own=$(mktemp)
    printf '\n== %s\n' "$name"
    if [ $left -gt 0 ]; then
        PFDTC_COUNTS=$own timeout --kill-after=10 $left "$@" </dev/null 2>&1
        status=$?
    else
        status=124
    fi
    case $status in
        0) result=ok ;;
        77) result=skipped && echo "0 0 1" >>"$own" ;;
        # A stage that failed without failed tests of its own counts as one failure.
        *) result=FAILED && { awk '{ f += $2 } END { exit !f }' "$own" || echo "0 1 0" >>"$own"; } ;;
    esac
    printf -- '-- %s: %s (status %d), %d s\n' "$name" "$result" $status $((SECONDS - begun))
    echo "\"$name\",$result,$((SECONDS - begun)),$(awk '{ p += $1; f += $2; s += $3 } END { printf "%d,%d,%d", p, f, s }' "$own")" \
        >>"$table"
    cat "$own" >>"$counts"
    rm -f "$own"
}

# Prints the numbers of passed, failed and skipped tests. The status is 1 if a stage failed.
finish_stages() {
    local failed
    failed=$(grep ',FAILED,' "$table" | cut -d, -f1 | tr -d '"' | paste -sd, | sed 's/,/, /g')
    echo
    [ -z "$failed" ] || echo "failed: $failed"
    echo "$SECONDS s"
    awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$counts"
    [ -z "$failed" ]
}
