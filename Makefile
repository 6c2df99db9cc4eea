# xtradb: build, demonstrate, test, check, install. `make help` lists the commands.

PROFILE ?= release
PREFIX  ?= /usr/local
DESTDIR ?=
CARGO   ?= cargo

# Where cargo puts things; build.rs puts the C programs beside the library that they load.
TARGET   := $(or $(CARGO_TARGET_DIR),target)
OUT      := $(TARGET)/$(PROFILE)
profile   = $(if $(filter release,$(PROFILE)),--release,)
PROGRAMS := $(patsubst c_shim/%/main.c,xtradb-%,$(wildcard c_shim/*/main.c))

.PHONY: help setup build demo test soak-powercut soak-kill soak-damage fuzz sanitize miri bench check lint install uninstall clean test-build

help:
	@echo 'make demo      installs what is missing, builds, and shows the engine at work'
	@echo 'make test      all tests (builds what they need)'
	@echo 'make soak-powercut   500 000 power cuts; goes on where it was stopped (SOAK_DIR=$(SOAK_DIR))'
	@echo 'make soak-kill       1 000 kills of 8 to 16 writers; goes on likewise'
	@echo 'make soak-damage     20 000 damages (XTRADB_DAMAGES); likewise'
	@echo 'make bench     measures beside LMDB, RocksDB and others, writes docs/benchmarks.md (ROWS= ROUNDS= ONLY=)'
	@echo 'make fuzz, make sanitize, make miri   fuzz targets, sanitizers, Miri; need a nightly toolchain'
	@echo 'make build     the library, xtradb-host and xtradb-tpcc, in $(OUT)'
	@echo 'make check     format, lints, layers, documents, licences, exported symbols, headers'
	@echo 'make setup     installs what is missing (as root), or prints the command'
	@echo 'make install   DESTDIR=$(DESTDIR) PREFIX=$(PREFIX); make uninstall takes it out again'
	@echo 'make clean     removes what was built'
	@echo 'PROFILE=debug builds with assertions and latch-order checks'

setup:
	@tools/setup.sh

build:
	$(CARGO) build $(profile)

demo:
	@tools/setup.sh
	@$(MAKE) --no-print-directory build
	@tools/demo.sh $(OUT)

# A package of its own, which has the engine optimised, with all assertions. Dependencies are shared.
POWER = $(CARGO) test --manifest-path tests/power/Cargo.toml --target-dir '$(TARGET)'

# The tests run against the debug build: assertions and latch-order checks are on there.
test-build:
	@$(MAKE) --no-print-directory build PROFILE=debug

test: test-build
	$(CARGO) test --no-fail-fast && $(POWER) && $(CARGO) test --manifest-path tests/models/Cargo.toml

# Seed and progress of long runs.
SOAK_DIR ?= $(TARGET)

soak-powercut:
	XTRADB_SOAK_FILE='$(abspath $(SOAK_DIR))/soak-powercut.txt' $(POWER) -- \
	    power::soak --exact --ignored --nocapture

# Wants a fast build with all assertions.
soak-kill:
	$(CARGO) build --profile soak
	XTRADB_SOAK_FILE='$(abspath $(SOAK_DIR))/soak-kill.txt' $(CARGO) test --profile soak --test main -- \
	    crash::kill::soak --exact --ignored --nocapture

# Runs the host of the debug build: its assertions are on.
soak-damage: test-build
	XTRADB_SOAK_FILE='$(abspath $(SOAK_DIR))/soak-damage.txt' $(CARGO) test --test main -- \
	    corrupt::soak --exact --ignored --nocapture

# Parameters (ROWS, ROUNDS, ONLY and more) stand at the top of the script. Wants a quiet machine.
bench:
	@tools/bench.sh '$(TARGET)'

# These need a nightly toolchain; without it they say so and end with status 3 (make: Error 3).
fuzz:
	@tools/nightly.sh fuzz

sanitize:
	@tools/nightly.sh address
	@tools/nightly.sh thread

miri:
	@tools/nightly.sh miri

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	$(CARGO) fmt --check --manifest-path tests/power/Cargo.toml
	$(CARGO) clippy --all-targets --manifest-path tests/power/Cargo.toml --target-dir '$(TARGET)' -- -D warnings
	$(CARGO) test --quiet --test layers
	@bash -n .ci/run && for script in tools/*.sh; do bash -n $$script || exit 1; done
	@python3 -m compileall -q tools benches tests/tools tests/fixtures >/dev/null || { echo 'a Python script does not parse'; exit 1; }

check: lint test-build
	@python3 tools/check_links.py --self-test && python3 tools/check_links.py
	@python3 tools/check_licenses.py --self-test && python3 tools/check_licenses.py
	@tools/check_headers.sh
	@tools/check_symbols.sh $(TARGET)/debug/libxtradb.so

install: build
	install -d '$(DESTDIR)$(PREFIX)/lib/xtradb' '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/include' '$(DESTDIR)$(PREFIX)/share/doc/xtradb'
	install -m 755 $(OUT)/libxtradb.so '$(DESTDIR)$(PREFIX)/lib/xtradb/.libxtradb.so.new'
	mv -f '$(DESTDIR)$(PREFIX)/lib/xtradb/.libxtradb.so.new' '$(DESTDIR)$(PREFIX)/lib/xtradb/libxtradb.so'
	install -m 755 $(PROGRAMS:%=$(OUT)/%) '$(DESTDIR)$(PREFIX)/bin'
	cd include && find . -name '*.h' -exec install -D -m 644 {} '$(abspath $(DESTDIR)$(PREFIX))/include/{}' \;
	install -m 644 README.md CHANGELOG.md LICENSE '$(DESTDIR)$(PREFIX)/share/doc/xtradb'

# What install made, and its folders if nothing else is in them.
uninstall:
	rm -f '$(DESTDIR)$(PREFIX)/lib/xtradb/libxtradb.so' $(PROGRAMS:%='$(DESTDIR)$(PREFIX)/bin/%')
	cd include && find . -name '*.h' -exec rm -f '$(abspath $(DESTDIR)$(PREFIX))/include/{}' \;
	cd '$(DESTDIR)$(PREFIX)/share/doc/xtradb' 2>/dev/null && rm -f README.md CHANGELOG.md LICENSE || true
	rmdir '$(DESTDIR)$(PREFIX)/lib/xtradb' '$(DESTDIR)$(PREFIX)/include/xtradb' '$(DESTDIR)$(PREFIX)/share/doc/xtradb' 2>/dev/null || true

clean:
	$(CARGO) clean
