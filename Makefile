# The front door: every target is a few commands that can also be typed by hand.
PREFIX ?= /usr/local
PRESET ?= release
SECONDS ?= 60

# Compilation results are shared between checkouts (where ccache is installed).
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := true

# ThreadSanitizer cannot see into the MPI library.
TEST_OPTIONS = -DLIBRA_BUILD_TESTS=ON $(if $(filter tsan,$(PRESET)),,-DLIBRA_WITH_MPI=ON)

.PHONY: help build demo test lint check bench fuzz report format install clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

build: ## the program, to build/release/libra
	@scripts/bootstrap.sh build
	cmake --preset release --log-level=NOTICE
	cmake --build --preset release --target libra

demo: build ## a first complete run on real sample lengths
	@scripts/demo.sh

test: ## build and run every test (PRESET=asan or tsan: under a sanitizer)
	@scripts/bootstrap.sh test report
	cmake --preset $(PRESET) --log-level=NOTICE $(TEST_OPTIONS)
	cmake --build --preset $(PRESET)
	ctest --preset $(PRESET) --parallel 2 --no-tests=error --no-label-summary

lint: ## formatting, clang-tidy, headers, scripts
	@scripts/bootstrap.sh lint
	@scripts/lint.sh

check: ## all that CI runs
	@bash .ci/run

bench: ## build and run the benchmarks
	@scripts/bootstrap.sh bench
	cmake --preset release --log-level=NOTICE -DLIBRA_BUILD_BENCHMARKS=ON
	cmake --build --preset release
	@scripts/bench.sh

fuzz: ## fuzz every reader of files, SECONDS=60 each (clang's libFuzzer)
	@scripts/bootstrap.sh fuzz
	cmake --preset fuzz --log-level=NOTICE
	cmake --build --preset fuzz --target fuzz_programs
	@scripts/fuzz.sh $(SECONDS)

report: build ## a report from real results, checked in a browser, to build/report
	@scripts/check_report.sh

format: ## rewrite the sources with clang-format
	@scripts/bootstrap.sh lint
	@scripts/lint.sh rewrite

install: ## the program, libraries and headers, to PREFIX (default /usr/local)
	@scripts/bootstrap.sh build
	cmake --preset release --log-level=NOTICE
	cmake --build --preset release
	cmake --install build/release --prefix "$(PREFIX)"

clean: ## remove everything that was built
	rm -rf build
