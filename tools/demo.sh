#!/usr/bin/env bash
# Installs the package and runs the demo.
. "$(dirname "$0")/env.sh"
bash tools/install.sh
use_own_library
exec Rscript --vanilla tools/demo.R "$rlib" demo-output
