#!/usr/bin/env bash
# Installs the programs and packages that a job needs, and lists them:   bash tools/setup.sh demo | test | ci
# Installs packages of Debian or Ubuntu if apt can be used (as root, or by sudo without a password), else packages of
# CRAN into .Rlib in this checkout. The user's own library is not changed.
. "$(dirname "$0")/env.sh"

case "${1:-}" in
    demo) needs="" likes="knitr rmarkdown" programs="pandoc" ;;
    test) needs="testthat" likes="generics ggplot2" programs="" ;;
    ci) needs="testthat knitr rmarkdown roxygen2" likes="generics ggplot2 lintr" programs="pandoc clang-format valgrind" ;;
    *) say "usage: bash tools/setup.sh demo | test | ci"; exit 2 ;;
esac

# --- apt -----------------------------------------------------------------------------------------------------------
if ! have apt-get; then may_apt=no root=""
elif [ "$(id -u)" = 0 ]; then may_apt=yes root=""
elif have sudo && sudo -n true 2>/dev/null; then may_apt=yes root="sudo -n"
else may_apt=no root=""
fi

apt_updated=no
apt_install() { # installs those of the packages that apt knows; never fails, because missing ones are found later
    local known="" p
    if [ $apt_updated = no ]; then
        say "setup: apt-get update"
        $root apt-get update -qq || say "setup: apt-get update failed; using the package lists of an earlier update"
        apt_updated=yes
    fi
    for p in "$@"; do
        if apt-cache show "$p" >/dev/null 2>&1; then known="$known $p"; else say "setup: apt does not know $p"; fi
    done
    [ -n "$known" ] || return 0
    say "setup: apt-get install$known"
    local log
    log=$(mktemp)
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $known \
        </dev/null >"$log" 2>&1 || { tail -n 20 "$log"; say "setup: that failed"; }
    rm -f "$log"
}

# --- R, and the compiler it was built for ---------------------------------------------------------------------------
debian_r() { [ "$(R RHOME 2>/dev/null)" = /usr/lib/R ]; }

toolchain_works() { # builds a shared object with R's LAPACK and BLAS, as installing the package does
    local cc out status=0
    cc=$(r_config CC) && [ -n "$cc" ] && have make || return 1
    out=$(mktemp -d)
    printf '#include <Rinternals.h>\nint one(void) { return 1; }\n' >"$out/one.c"
    $cc $(r_config --cppflags) -fPIC -shared "$out/one.c" -o "$out/one.so" $(r_config --ldflags) \
        $(r_config LAPACK_LIBS) $(r_config BLAS_LIBS) $(r_config FLIBS) >/dev/null 2>&1 || status=1
    rm -rf "$out"
    return $status
}

stop_for() { # message, Debian packages
    say "setup: $1, and this user may not install it. Please run as root:"
    shift
    say "    apt-get update && apt-get install -y $*"
    exit 1
}

if ! have Rscript || ! have R; then
    [ $may_apt = yes ] || stop_for "R is missing" r-base-dev
    apt_install r-base-dev
    have Rscript || { say "setup: R is missing and could not be installed"; exit 1; }
fi
version=$(Rscript --vanilla -e 'cat(as.character(getRversion()))')
if ! Rscript --vanilla -e 'quit(status = getRversion() < "4.2")'; then
    say "setup: R $version is here, and pfdtc needs R 4.2 or newer: please install a newer R"
    exit 1
fi
if ! toolchain_works; then
    if debian_r; then compiler="r-base-dev"; else compiler="build-essential gfortran liblapack-dev libblas-dev"; fi
    [ $may_apt = yes ] || stop_for "what compiles packages for R $version is missing" "$compiler"
    apt_install $compiler
    toolchain_works || { say "setup: packages with C code cannot be compiled for R $version"; exit 1; }
fi

# --- programs and packages -----------------------------------------------------------------------------------------
use_own_library
missing() { Rscript --vanilla tools/setup.R missing $needs $likes; }

lacking=$(missing)
wanted=""
for p in $programs; do have "$p" || wanted="$wanted $p"; done
if debian_r; then
    for p in $lacking; do wanted="$wanted r-cran-$(printf %s "$p" | tr '[:upper:]' '[:lower:]')"; done
fi
if [ -n "$wanted" ] && [ $may_apt = yes ]; then apt_install $wanted; fi

# Loading all packages takes seconds, so this is done again only after an installation.
if [ -n "$lacking" ]; then
    if have pandoc || [ -z "$programs" ]; then left=$(missing)
    else left=$(missing | grep -vxE 'knitr|rmarkdown' || true)          # of no use without pandoc
    fi
    [ -z "$left" ] || Rscript --vanilla tools/setup.R install "$rlib" $left
    lacking=$(missing)
fi

# --- report --------------------------------------------------------------------------------------------------------
absent=$lacking
for p in $programs; do have "$p" || absent="$absent $p"; done
say "setup: R $version, $(r_config CC)$(for p in $needs $likes $programs; do
    case " $(echo $absent) " in *" $p "*) ;; *) printf ', %s' "$p" ;; esac
done)"
[ -z "$absent" ] || say "setup: absent:" $absent
for p in $needs; do
    case " $(echo $absent) " in
        *" $p "*) say "setup: $p is needed; as root: apt-get install -y r-cran-$p"; exit 1 ;;
    esac
done
