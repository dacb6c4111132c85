#!/usr/bin/env bash
# Runs R CMD check --no-manual on the built tarball. Fails on an error or a warning, and prints the notes.
#   bash tools/check.sh [OPTION OF R CMD check, such as --no-tests]
#   bash tools/check.sh once [OPTION...]    checks the package that tools/install.sh installed, and runs the code of all
#                                           vignettes but two with it. Nightly runs this script without `once`: then all
#                                           vignettes are built, and the package is installed two more times.
. "$(dirname "$0")/env.sh"
use_own_library
once=no
if [ "${1:-}" = once ]; then
    once=yes
    shift
    bash tools/install.sh
fi
scratch_folder
built="" checked="--no-build-vignettes" # R CMD build has just built them; the check only runs their code
if ! have pandoc || ! Rscript --vanilla -e 'stopifnot(requireNamespace("rmarkdown"))' 2>/dev/null; then
    say "check: no pandoc or no rmarkdown: the vignettes are left out"
    built="--no-build-vignettes" checked="--ignore-vignettes"
elif [ $once = yes ]; then
    cp -R vignettes "$scratch"
    for vignette in $(ls vignettes/*.Rmd | grep -vE '(paper|theory)[.]Rmd$'); do # these two take 40 s
        echo "knitr::opts_chunk\$set(error = FALSE); knitr::knit('$(basename $vignette)', quiet = TRUE, envir = new.env())"
        echo "knitr::opts_chunk\$restore()"
    done >"$scratch/vignettes.R"
    (cd "$scratch/vignettes" && Rscript --vanilla ../vignettes.R >../vignettes.log 2>&1) ||
        { tail -n 40 "$scratch/vignettes.log"; say "check: the code of a vignette failed"; exit 1; }
    checked="--ignore-vignettes"
fi
export _R_CHECK_FORCE_SUGGESTS_=false _R_CHECK_SYSTEM_CLOCK_=false _R_CHECK_CRAN_INCOMING_=false
export PFDTC_TEST_QUICK=${PFDTC_TEST_QUICK-1} OMP_THREAD_LIMIT=2
cd "$scratch"
if [ $once = yes ]; then
    cp "$rlib.built"/pfdtc_*.tar.gz .
    checked="$checked --install=check:$rlib.built/install.log --library=$rlib"
    # codetools takes two thirds of the rest, and only adds notes. Nightly runs it.
    export _R_CHECK_USE_CODETOOLS_=false
else
    R CMD build $built "$top" >build.log 2>&1 || { cat build.log; exit 1; }
fi
ls -l pfdtc_*.tar.gz | awk '{ print "check: " $NF ", " $5 " bytes" }'
R CMD check --no-manual $checked "$@" pfdtc_*.tar.gz >check.log 2>&1 || true

status=$(grep '^Status:' check.log || echo "Status: did not finish")
record=$(grep -hoE '\[ FAIL [0-9]+ \| WARN [0-9]+ \| SKIP [0-9]+ \| PASS [0-9]+ \]' \
    pfdtc.Rcheck/tests/testthat.Rout* 2>/dev/null | tail -n 1 || true)
if [ -n "$record" ]; then
    say "check: tests $record"
    [ -z "${PFDTC_COUNTS:-}" ] || echo "$record" | awk '{ print $12, $3, $9 }' >>"$PFDTC_COUNTS"
fi
case $status in
    *ERROR* | *WARNING* | *finish*)
        cat check.log
        tail -n 60 pfdtc.Rcheck/tests/*.fail 2>/dev/null || true
        if grep -q 'can be installed .*ERROR' check.log; then tail -n 60 pfdtc.Rcheck/00install.out; fi
        say "check: $status"
        exit 1 ;;
    *NOTE*) awk '/^\* /{ show = /NOTE$/ } show' check.log ;;
esac
say "check: $status"
