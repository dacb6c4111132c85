#!/bin/sh
# The packages that bench/peers/peers.R compares with: what is there, or an installation of it.
#
#   sh bench/peers/install.sh <library> [package ...]
#
# Prints what it does. Debian's binary packages come first (as root, where apt-get is), then the repositories of R's own
# option `repos`, into <library> alone: one job, niced, at most PEERS_MINUTES (10) minutes a package. What fails is
# named with the installer's own last lines in not-installed.csv; a run of some packages leaves the others' rows there.
set -u
[ $# -ge 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
library=$1
shift
wanted=${*:-kernlab DiceKriging GauPro hetGP laGP mlegp gplite gpboost}
minutes=${PEERS_MINUTES:-10}
here=$(cd "$(dirname "$0")" && pwd)
failed=$here/not-installed.csv

mkdir -p "$library"
library=$(cd "$library" && pwd)
log=$library/install.log
export R_LIBS="$library${R_LIBS:+:$R_LIBS}" MAKEFLAGS=-j1
[ -f "$failed" ] || echo "package,version,outcome,last_line" >"$failed"

version() { Rscript -e "v <- suppressWarnings(packageDescription('$1', fields = 'Version')); cat(if (is.na(v)) '' else v)" 2>/dev/null; }
offered() { Rscript -e "cat(tryCatch(available.packages()['$1', 'Version'], error = function(e) ''))" 2>/dev/null; }

# Binary packages with the peers' own names, and what laGP needs.
from_apt() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  names="r-cran-$(echo "$1" | tr '[:upper:]' '[:lower:]')"
  apt-cache show "$names" >/dev/null 2>&1 || {
    [ "$1" = laGP ] && nice apt-get install -y --no-install-recommends r-cran-tgp r-cran-maptree
    return 1
  }
  nice apt-get install -y --no-install-recommends "$names"
}

# An installation stopped by the clock has the compiler's line as its last.
from_source() {
  nice -n 10 timeout "$((minutes * 60))" Rscript -e "
    if (identical(unname(getOption('repos')['CRAN']), '@CRAN@')) stop('set the option repos first')
    install.packages('$1', lib = '$library', Ncpus = 1L, quiet = FALSE)"
}

# Without paths and hosts, and without the compiler's long command lines.
last_line() {
  grep -v -e '^[[:space:]]*$' -e '^The downloaded source packages' -e 'downloaded_packages' "$log" | tail -n 1 |
    sed -e "s#[a-z]*://[^ '\"]*/##g" -e "s#/[^ '\"]*/##g" -e 's/"/'"'"'/g' | cut -c 1-160
}

for package in $wanted; do
  sed -i "/^$package,/d" "$failed"
  found=$(version "$package")
  if [ -z "$found" ]; then
    echo "== $package: not here"
    from_apt "$package" >"$log" 2>&1 || from_source "$package" >"$log" 2>&1
    status=$?
    found=$(version "$package")
  fi
  if [ -n "$found" ]; then
    echo "== $package $found"
  else
    outcome="exit status $status"
    [ "$status" = 124 ] && outcome="stopped after $minutes minutes"
    echo "$package,$(offered "$package"),$outcome,\"$(last_line)\"" >>"$failed"
    echo "== $package: $outcome: $(last_line)"
  fi
done
