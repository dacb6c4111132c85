#!/usr/bin/env bash
# Installs the package and runs its tests:   bash tools/test.sh [FILTER]
. "$(dirname "$0")/env.sh"
bash tools/install.sh
use_own_library
exec Rscript --vanilla tools/test.R "$rlib" "${1:-}"
