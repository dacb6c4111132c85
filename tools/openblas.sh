#!/usr/bin/env bash
# Runs a command with OpenBLAS as R's BLAS, without changing the system:   bash tools/openblas.sh COMMAND...
# The Debian package is unpacked under .Rlib. The status is 77 if OpenBLAS cannot be used.
. "$(dirname "$0")/env.sh"
blas() { Rscript --vanilla -e 'cat(extSoftVersion()[["BLAS"]])'; }
case $(blas) in *openblas*) say "openblas: it is the machine's BLAS already: skipped"; exit 77 ;; esac

folder=$top/.Rlib/openblas
library() { find "$folder" -name libblas.so.3 2>/dev/null | head -n 1; }
if [ -z "$(library)" ]; then
    have apt-get && have dpkg || { say "openblas: no apt here: skipped"; exit 77; }
    mkdir -p "$folder"
    (cd "$folder" && apt-get download libopenblas0-pthread >log 2>&1) ||
        { cat "$folder/log"; say "openblas: apt cannot download it: skipped"; exit 77; }
    dpkg -x "$folder"/libopenblas0-pthread*.deb "$folder"
fi
# R searches the folders of this variable before those of LD_LIBRARY_PATH.
paths=$(Rscript --vanilla -e 'cat(Sys.getenv("LD_LIBRARY_PATH"))')
R_LD_LIBRARY_PATH=$(dirname "$(library)"):$paths
export R_LD_LIBRARY_PATH
case $(blas) in
    *openblas*) exec "$@" ;;
    *) say "openblas: this R does not take its BLAS from the system: skipped"; exit 77 ;;
esac
