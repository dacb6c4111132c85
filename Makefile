# `make demo`, `test`, `setup`, `ci` and `nightly` install missing programs and packages, and name them. The other
# targets expect these to be installed.
SHELL = /bin/bash

help:
	@echo "make demo       fit R's quakes, write figures and a report into demo-output/"
	@echo "make test       install the package into .Rlib/ and run its tests (FILTER=name for some)"
	@echo "make check      R CMD check of the built package"
	@echo "make document   help pages and NAMESPACE from the comments in R/"
	@echo "make site       help pages by task and vignettes as a site in site/ (needs pkgdown)"
	@echo "make lint       lint of R and C;  make format lays out the C"
	@echo "make layers     check that files of C and R use only files of lower layers"
	@echo "make strict     compile the C code as strict C11, with warnings as errors"
	@echo "make ctest      the numerical C without R, under sanitizers and valgrind"
	@echo "make sanitize   the tests under sanitizers"
	@echo "make doors      call every C entry point under gctorture and valgrind: some minutes"
	@echo "make mutants    plant faults that the tests must notice (ONLY=name for some): half an hour"
	@echo "make bench      speed and memory (bench/README.md): some minutes"
	@echo "make ci         what every commit has to pass: under ten minutes"
	@echo "make nightly    the rest: OpenBLAS, sanitizers, doors, experiments, threads, planted faults (about ninety minutes)"
	@echo "make clean      remove what the other targets create"

demo:
	@bash tools/setup.sh demo
	@bash tools/demo.sh

test:
	@bash tools/setup.sh test
	@bash tools/test.sh "$(FILTER)"

setup:
	@bash tools/setup.sh ci

check:
	@bash tools/check.sh

document:
	@source tools/env.sh && use_own_library && Rscript --vanilla tools/document.R

site:
	@bash tools/site.sh

lint:
	@bash tools/lint.sh

format:
	clang-format -i $(wildcard src/*.[ch] tools/*.[ch])

layers:
	@Rscript --vanilla tools/check-layers.R

strict:
	@bash tools/strict.sh

ctest:
	@bash tools/ctest.sh

sanitize:
	@bash tools/sanitize.sh "$(FILTER)"

doors:
	@bash tools/doors.sh

mutants:
	@bash tools/mutants.sh run $(if $(ONLY),"$(ONLY)")

bench:
	@bash tools/bench.sh

ci:
	@bash .ci/run

nightly:
	@bash tools/nightly.sh

clean:
	rm -rf demo-output site .Rlib *.tar.gz *.Rcheck src/*.o src/*.so

.PHONY: help demo test setup check document site lint format layers strict ctest sanitize doors mutants bench ci nightly clean
