# The build targets. `make` without a target lists them.
#
#   FILE=path     for run: the file for the demonstration
#   SEED=number   for sim: the seed of all random numbers
#   FROM=number   for seeds: the first seed
#   PREFIX=path   for install: programs are installed in $(PREFIX)/bin, below $(DESTDIR) if set
#   MPICC=path   for install-mpi: the compiler of the MPI library, or several in quotes
#   PYTHON=path   the Python for the virtual environment, 3.11 or newer
#   CARGO_FLAGS   options of every cargo command, for example --locked or --offline

SHELL := /bin/bash
FILE ?=
SEED ?= 1
FROM ?= 0
PREFIX ?= $(HOME)/.local
CARGO_FLAGS ?=
MPICC ?= mpicc

TARGET := $(or $(CARGO_TARGET_DIR),target)
STARFISH := $(TARGET)/release/starfish
# List of tests skipped because a prerequisite is missing: each line has the reason, a tab and the test.
export STARFISH_SKIPPED ?= $(abspath $(TARGET))/skipped
# Cargo features of all builds.
FEATURES := --features starfish/postgres
# Cargo packages with the programs and libraries that are installed.
INSTALLED := -p starfish -p libpdiol -p libtlv $(FEATURES)
# Virtual environment in which the Python package is built and tested.
PYTHON ?= python3
VENV := $(abspath $(TARGET))/python/venv
RUFF := $(VENV)/bin/ruff
PYTHON_SOURCES := --quiet --no-cache --config python/pyproject.toml python examples/python docs/manual
WHEELS := $(abspath $(TARGET))/python/wheels
# Sources of the viewer's page, and the npm command that builds and tests it.
PAGE := crates/traces/viewer/page
NPM := npm --prefix $(PAGE) --silent

.DEFAULT_GOAL := help
.PHONY: help run test check fmt lint docs manual page sim seeds bench bench-sim bench-peers install install-c install-mpi deb test-package \
	clean tools program build python lint-page skipped test-page test-rust test-rust-built test-python test-viewer wheel

help: ## List these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

run: program ## Build the program and run a demonstration: starfish demo [FILE=...]
	$(STARFISH) demo $(if $(FILE),"$(FILE)")

# Tests wait during half of their time, so three kinds of tests at the same time take little longer than the longest kind.
test: test-rust-built ## Build everything needed and run every test
	@rm -f "$(STARFISH_SKIPPED)"; failed=0; \
	$(MAKE) --no-print-directory --keep-going --jobs=3 test-rust test-python test-viewer || failed=1; \
	$(MAKE) --no-print-directory skipped; exit $$failed

check: ## Run all checks that a change must pass: format, lints, tests
	cargo fmt --all --check
	$(MAKE) lint
	$(MAKE) test

fmt: $(VENV)/made ## Format the code
	cargo fmt --all
	$(RUFF) format $(PYTHON_SOURCES)

lint: tools $(VENV)/made ## Run the linters; a warning is an error
	cargo clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings
	$(RUFF) format --check $(PYTHON_SOURCES)
	$(RUFF) check $(PYTHON_SOURCES)
	$(MAKE) --no-print-directory lint-page

docs: tools ## Build the documentation of the code (target/doc)
	RUSTDOCFLAGS="-D warnings" cargo doc $(CARGO_FLAGS) --workspace --no-deps --document-private-items

manual: $(VENV)/made ## Build the manual (target/manual/manual/index.html); a warning is an error
	$(VENV)/bin/sphinx-build --fail-on-warning --keep-going --quiet -c docs/manual docs $(TARGET)/manual

page: $(PAGE)/node_modules/made ## Build the page of starfish view from its TypeScript sources; commit the result
	$(NPM) run build

sim: program ## Simulate the reports' patterns by all methods, with records of 8192 bytes [SEED=1]
	$(STARFISH) simulate --pattern all --method all --record 8192 --seed $(SEED)

seeds: tools ## Test the file system with random seeds until Ctrl-C, and shrink failures [FROM=0]
	cargo run $(CARGO_FLAGS) --release -p seeds --features marks -- --from $(FROM)

bench: program ## Measure this computer: against a bare stripe, with modelled disks, and as in the thesis on PDIOL
	$(STARFISH) bench
	$(STARFISH) bench --modelled --rounds 1
	$(STARFISH) bench pdiol --html $(TARGET)/bench.html

bench-sim: tools ## Measure the simulator in ns per event: events only, with all models, with the file system
	cargo run $(CARGO_FLAGS) --release -p sim --example golden
	cargo run $(CARGO_FLAGS) --release -p sim --example modelled
	cargo run $(CARGO_FLAGS) --release -p experiment --example speed traditional rc 8 10485760 contiguous 10

bench-peers: tools ## Compare the speed of the simulator with SimPy and SimGrid
	@command -v python3 > /dev/null || { echo "python3 is missing: sudo apt-get install python3 python3-venv" >&2; exit 1; }
	python3 benches/peers/run.py

python: PROFILE = release
python: wheel ## Build the Python package: a wheel in target/python/wheels, installed in target/python/venv

install: build ## Install the programs and the C libraries, with their man pages and completions [PREFIX=~/.local]
	DESTDIR="$(DESTDIR)" packaging/install.sh "$(TARGET)/release" "$(PREFIX)"

install-c: tools ## Install only the C libraries: libpdiol and libtlv, headers, pkg-config files, man pages [PREFIX=~/.local]
	cargo build $(CARGO_FLAGS) --release -p libpdiol -p libtlv
	for library in pdiol tlv; do \
		DESTDIR="$(DESTDIR)" packaging/install-library.sh $$library "$(TARGET)/release" "$(PREFIX)" || exit; \
	done

install-mpi: tools ## Install the MPI-IO library and its shims, with which MPI programs use files on agents [MPICC=mpicc PREFIX=~/.local]
	cargo build $(CARGO_FLAGS) --release -p mpi-io
	DESTDIR="$(DESTDIR)" packaging/install-mpi.sh "$(TARGET)/release" "$(PREFIX)" $(MPICC)

# The package also contains the MPI-IO library and its shims.
deb: INSTALLED += -p mpi-io
deb: build ## Make a Debian package of all programs and libraries (target/debian)
	packaging/deb.sh "$(TARGET)/release" "$(abspath $(TARGET))/debian"

test-package: test-rust-built ## Make the Debian package, install it in a temporary root directory, test and remove it
	packaging/test.sh "$(TARGET)/debug"

clean: ## Remove all build results
	cargo clean

# The optimised program starfish alone, because linking each program takes minutes.
program: tools
	cargo build $(CARGO_FLAGS) --release -p starfish $(FEATURES)

# All installed programs and libraries, optimised. In one cargo command, so that shared dependencies are built once.
build: tools
	cargo build $(CARGO_FLAGS) --release $(INSTALLED)

# All Rust tests. The Python tests below use the same profile, so that dependencies are built once.
# The linter checks the examples; compiling and linking them takes as long as several crates.
# More concurrent tests than processors: tests of real nodes mostly wait, for a silent node or a slow disk.
test-rust: export RUST_TEST_THREADS ?= $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2))
test-rust: tools
	@failed=0; \
	cargo test $(CARGO_FLAGS) --workspace --no-fail-fast --tests || failed=1; \
	cargo test $(CARGO_FLAGS) --workspace --no-fail-fast --doc || failed=1; \
	exit $$failed

# Only the programs that the Rust tests start, in the profile of the tests, so that dependencies are built once.
test-rust-built: tools
	cargo test $(CARGO_FLAGS) --quiet --workspace --tests --no-run

test-python: PROFILE = dev
test-python: wheel
	@[ -x $(TARGET)/debug/starfish ] || cargo build $(CARGO_FLAGS) -p starfish
	STARFISH=$(abspath $(TARGET))/debug/starfish $(VENV)/bin/pytest --quiet python

# The built page of the viewer is committed, so that cargo needs no npm. Check that it is up to date with its sources.
lint-page:
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory $(PAGE)/node_modules/made && $(NPM) run check; \
	else echo "the viewer's page is not checked: npm is missing (sudo apt-get install npm)"; fi

# Tests of the page in Chromium, self-contained and served by the program.
test-viewer: tools
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory test-page; \
	else printf "npm is missing (sudo apt-get install npm)\tall of test-viewer\n" >> "$(STARFISH_SKIPPED)"; fi

skipped: # List the tests skipped since `make test` began, by the prerequisite they lack
	@if [ -s "$(STARFISH_SKIPPED)" ]; then echo "Skipped tests, by the prerequisite they lack:"; \
	sort -u "$(STARFISH_SKIPPED)" | awk -F'\t' '$$1 != why { why = $$1; print "  " why ":" } { print "    " $$2 }'; fi

# The Rust tests usually have built the program; a separate build would compile its dependencies again.
test-page: $(PAGE)/node_modules/made
	@[ -x $(TARGET)/debug/starfish ] || cargo build $(CARGO_FLAGS) -p starfish
	STARFISH=$(abspath $(TARGET))/debug/starfish $(NPM) test

$(PAGE)/node_modules/made: $(PAGE)/package-lock.json
	$(NPM) ci --ignore-scripts --no-audit --no-fund
	@touch $@

# The Python package, installed in its virtual environment.
wheel: tools $(VENV)/made
	@mkdir -p $(WHEELS) && rm -f $(WHEELS)/starfish*.whl
	cd python && CARGO_TARGET_DIR=$(abspath $(TARGET)) $(VENV)/bin/maturin build $(CARGO_FLAGS) --quiet \
		--interpreter $(VENV)/bin/python --profile $(PROFILE) --out $(WHEELS)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall \
		$(WHEELS)/starfish_io-*.whl

$(VENV)/made: python/requirements.txt python/environment.py
	@command -v $(PYTHON) > /dev/null || { echo "$(PYTHON) is missing: sudo apt-get install python3 python3-venv" >&2; exit 1; }
	$(PYTHON) python/environment.py $(VENV)
	@touch $@

# Tools required for any build.
tools:
	@command -v cargo > /dev/null || { echo "cargo is missing: install Rust, see https://rustup.rs" >&2; exit 1; }
	@command -v cc > /dev/null || { echo "a C compiler and linker are missing: sudo apt-get install build-essential" >&2; exit 1; }
