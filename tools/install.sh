#!/usr/bin/env bash
# Builds the package in a clean copy and installs it:   bash tools/install.sh [LIBRARY [R CMD INSTALL's options]]
# The default library is .Rlib, into which the package is installed only if sources have changed. tools/check.sh uses the
# tarball and the log that are kept there.
. "$(dirname "$0")/env.sh"
use_own_library
lib=${1:-$rlib}
[ $# -eq 0 ] || shift
stamp=$lib/pfdtc/installed-from-checkout
if [ $# -eq 0 ] && [ -d "$lib.built" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$top" ]; then
    parts=$(ls -d DESCRIPTION NAMESPACE R src inst man data 2>/dev/null || true)
    [ -n "$(find $parts -newer "$stamp" -not -name '*.o' -not -name '*.so')" ] || exit 0
fi
[ -f NAMESPACE ] || { say "install: there is no NAMESPACE: run 'make document' first"; exit 1; }

scratch_folder
(cd "$scratch" && R CMD build --no-build-vignettes --no-manual "$top" >build.log 2>&1) ||
    { cat "$scratch/build.log"; exit 1; }
mkdir -p "$lib"
export _R_SHLIB_BUILD_OBJECTS_SYMBOL_TABLES_=TRUE # R CMD check reads these tables
R CMD INSTALL --no-multiarch "--library=$lib" "$@" "$scratch"/pfdtc_*.tar.gz >"$scratch/install.log" 2>&1 ||
    { cat "$scratch/install.log"; exit 1; }
grep -E 'warning:|Warning' "$scratch/install.log" || true
if [ "$lib" = "$rlib" ]; then
    rm -rf "$lib.built" && mkdir "$lib.built"
    mv "$scratch"/pfdtc_*.tar.gz "$scratch/install.log" "$lib.built"
fi
printf '%s\n' "$top" >"$stamp"
say "install: pfdtc into ${lib#"$top"/}"
