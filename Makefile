# The verbs of the house. `make` alone lists them.
#
#   FILE=path     for run: the file to demonstrate with
#   SEED=number   for sim: where all randomness comes from
#   FROM=number   for seeds: the first seed
#   PREFIX=path   for install: the programs go to $(PREFIX)/bin; below $(DESTDIR), if there is one
#   MPICC=path   for install-mpi: the compiler of the MPI; several in quotes
#   PYTHON=path   the Python to make an environment with, 3.11 or newer
#   CARGO_FLAGS   handed to every cargo command, for example --locked or --offline

SHELL := /bin/bash
FILE ?=
SEED ?= 1
FROM ?= 0
PREFIX ?= $(HOME)/.local
CARGO_FLAGS ?=
MPICC ?= mpicc

TARGET := $(or $(CARGO_TARGET_DIR),target)
STARFISH := $(TARGET)/release/starfish
# The list of tests skipped for want of a prerequisite: lines of the reason, a tab and the test.
export STARFISH_SKIPPED ?= $(abspath $(TARGET))/skipped
# The Cargo features of all builds here.
FEATURES := --features starfish/postgres
# The packages of Cargo whose programs and libraries are installed.
INSTALLED := -p starfish -p libpdiol -p libtlv $(FEATURES)
# Where the Python package is built, tested and tried, with all it needs.
PYTHON ?= python3
VENV := $(abspath $(TARGET))/python/venv
RUFF := $(VENV)/bin/ruff
PYTHON_SOURCES := --quiet --no-cache --config python/pyproject.toml python examples/python docs/manual
WHEELS := $(abspath $(TARGET))/python/wheels
# The sources of the viewer's page, and what npm brings to build and test it.
PAGE := crates/traces/viewer/page
NPM := npm --prefix $(PAGE) --silent

.DEFAULT_GOAL := help
.PHONY: help run test check fmt lint docs manual page sim seeds bench bench-sim bench-peers install install-c install-mpi deb test-package \
	clean tools program build python lint-page skipped test-page test-rust test-rust-built test-python test-viewer wheel

help: ## List these verbs
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

run: program ## Build what is needed and show it at work: starfish demo [FILE=...]
	$(STARFISH) demo $(if $(FILE),"$(FILE)")

# Half of their time tests wait: three kinds of them at once take little longer than the longest.
test: test-rust-built ## Build everything needed and run every test
	@rm -f "$(STARFISH_SKIPPED)"; failed=0; \
	$(MAKE) --no-print-directory --keep-going --jobs=3 test-rust test-python test-viewer || failed=1; \
	$(MAKE) --no-print-directory skipped; exit $$failed

check: ## All that is asked of a change: format, lints, tests
	cargo fmt --all --check
	$(MAKE) lint
	$(MAKE) test

fmt: $(VENV)/made ## Format the code
	cargo fmt --all
	$(RUFF) format $(PYTHON_SOURCES)

lint: tools $(VENV)/made ## Look for what the linter dislikes; a warning is an error
	cargo clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings
	$(RUFF) format --check $(PYTHON_SOURCES)
	$(RUFF) check $(PYTHON_SOURCES)
	$(MAKE) --no-print-directory lint-page

docs: tools ## Build the documentation of the code (target/doc)
	RUSTDOCFLAGS="-D warnings" cargo doc $(CARGO_FLAGS) --workspace --no-deps --document-private-items

manual: $(VENV)/made ## Build the manual (target/manual/manual/index.html); a warning is an error
	$(VENV)/bin/sphinx-build --fail-on-warning --keep-going --quiet -c docs/manual docs $(TARGET)/manual

page: $(PAGE)/node_modules/made ## Build the page of starfish view out of its sources in TypeScript, to be committed
	$(NPM) run build

sim: program ## Simulate the reports' patterns by both methods, 8192-byte records [SEED=1]
	$(STARFISH) simulate --pattern all --method all --record 8192 --seed $(SEED)

seeds: tools ## Run the file system by seeds until Ctrl-C, and shrink failures [FROM=0]
	cargo run $(CARGO_FLAGS) --release -p seeds -- --from $(FROM)

bench: program ## Measure this computer: against a bare stripe, with modelled disks, and as the thesis on PDIOL does
	$(STARFISH) bench
	$(STARFISH) bench --modelled --rounds 1
	$(STARFISH) bench pdiol --html $(TARGET)/bench.html

bench-sim: tools ## Measure the simulator: nanoseconds for an event, bare, with all modelled, with the file system
	cargo run $(CARGO_FLAGS) --release -p sim --example golden
	cargo run $(CARGO_FLAGS) --release -p sim --example modelled
	cargo run $(CARGO_FLAGS) --release -p experiment --example speed traditional rc 8 10485760 contiguous 10

bench-peers: tools ## Measure the simulator beside SimPy and SimGrid
	@command -v python3 > /dev/null || { echo "python3 is missing: sudo apt-get install python3 python3-venv" >&2; exit 1; }
	python3 benches/peers/run.py

python: PROFILE = release
python: wheel ## Build the Python package: a wheel in target/python/wheels, installed in target/python/venv

install: build ## Install the programs and the C libraries, with their man pages and completions [PREFIX=~/.local]
	DESTDIR="$(DESTDIR)" packaging/install.sh "$(TARGET)/release" "$(PREFIX)"

install-c: tools ## Install the C libraries alone: libpdiol and libtlv, headers, pkg-config files, man pages [PREFIX=~/.local]
	cargo build $(CARGO_FLAGS) --release -p libpdiol -p libtlv
	for library in pdiol tlv; do \
		DESTDIR="$(DESTDIR)" packaging/install-library.sh $$library "$(TARGET)/release" "$(PREFIX)" || exit; \
	done

install-mpi: tools ## Install what goes in front of an MPI, so that its programs have files on agents [MPICC=mpicc PREFIX=~/.local]
	cargo build $(CARGO_FLAGS) --release -p mpi-io
	DESTDIR="$(DESTDIR)" packaging/install-mpi.sh "$(TARGET)/release" "$(PREFIX)" $(MPICC)

# The package also has what goes in front of an MPI.
deb: INSTALLED += -p mpi-io
deb: build ## Make a Debian package of all of it (target/debian)
	packaging/deb.sh "$(TARGET)/release" "$(abspath $(TARGET))/debian"

test-package: test-rust-built ## Make the Debian package, install it below a directory of its own, try and remove it
	packaging/test.sh "$(TARGET)/debug"

clean: ## Remove all that was built
	cargo clean

# The program starfish, optimised: each program that is linked takes minutes of its own.
program: tools
	cargo build $(CARGO_FLAGS) --release -p starfish $(FEATURES)

# All that is installed, optimised. Built at once, what the programs share is built once.
build: tools
	cargo build $(CARGO_FLAGS) --release $(INSTALLED)

# Every test of Rust's, and every one of Python's; the latter in the profile of the former, to build things once.
# The examples are checked by the linter; to compile and link them takes as long as several crates.
# More tests than processors at a time: those of real nodes mostly wait, for a node that is silent or a disk that is slow.
test-rust: export RUST_TEST_THREADS ?= $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2))
test-rust: tools
	@failed=0; \
	cargo test $(CARGO_FLAGS) --workspace --no-fail-fast --tests || failed=1; \
	cargo test $(CARGO_FLAGS) --workspace --no-fail-fast --doc || failed=1; \
	exit $$failed

# What the tests of Rust start, and no more: in their profile, to build things once.
test-rust-built: tools
	cargo test $(CARGO_FLAGS) --quiet --workspace --tests --no-run

test-python: PROFILE = dev
test-python: wheel
	@[ -x $(TARGET)/debug/starfish ] || cargo build $(CARGO_FLAGS) -p starfish
	STARFISH=$(abspath $(TARGET))/debug/starfish $(VENV)/bin/pytest --quiet python

# The page of the viewer is part of the sources, so that cargo needs no npm: it must be what its own sources give.
lint-page:
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory $(PAGE)/node_modules/made && $(NPM) run check; \
	else echo "the viewer's page is not checked: npm is missing (sudo apt-get install npm)"; fi

# The page in Chromium, by itself and from the program.
test-viewer: tools
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory test-page; \
	else printf "no program npm (sudo apt-get install npm)\tall of test-viewer\n" >> "$(STARFISH_SKIPPED)"; fi

skipped: # List the tests skipped since `make test` began, by the prerequisite they lack
	@if [ -s "$(STARFISH_SKIPPED)" ]; then echo "Skipped tests, by the prerequisite they lack:"; \
	sort -u "$(STARFISH_SKIPPED)" | awk -F'\t' '$$1 != why { why = $$1; print "  " why ":" } { print "    " $$2 }'; fi

# The tests of Rust have made the program; made by itself, what it is made of would be compiled again.
test-page: $(PAGE)/node_modules/made
	@[ -x $(TARGET)/debug/starfish ] || cargo build $(CARGO_FLAGS) -p starfish
	STARFISH=$(abspath $(TARGET))/debug/starfish $(NPM) test

$(PAGE)/node_modules/made: $(PAGE)/package-lock.json
	$(NPM) ci --ignore-scripts --no-audit --no-fund
	@touch $@

# The Python package, in an environment of its own.
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

# What has to be there before anything can be built.
tools:
	@command -v cargo > /dev/null || { echo "cargo is missing: install Rust, see https://rustup.rs" >&2; exit 1; }
	@command -v cc > /dev/null || { echo "a C compiler and linker are missing: sudo apt-get install build-essential" >&2; exit 1; }
