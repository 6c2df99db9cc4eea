# xtradb: build, demonstrate, test, check, install. `make help` lists the commands.

PROFILE ?= release
PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= cc
CFLAGS  ?= -O2 -g
CARGO   ?= cargo
JOBS    ?= $(shell nproc)

# Where cargo puts things; the host stands beside the library that it loads.
TARGET   := $(or $(CARGO_TARGET_DIR),target)
OUT      := $(TARGET)/$(PROFILE)
profile   = $(if $(filter release,$(PROFILE)),--release,)

HOST_SOURCES := $(wildcard c_shim/common/*.c c_shim/host/*.c)
HOST_OBJECTS := $(patsubst %.c,$(OUT)/host/%.o,$(notdir $(HOST_SOURCES)))
HOST         := $(if $(filter %/main.c,$(HOST_SOURCES)),$(OUT)/xtradb-host)
EDITLINE     := $(shell pkg-config --exists libedit 2>/dev/null && echo yes)
HOST_CFLAGS  := -std=gnu11 -Wall -Wextra -Werror -pthread -D_GNU_SOURCE -Iinclude -Ic_shim/common -Ic_shim/host \
                $(if $(EDITLINE),-DHAVE_LIBEDIT $(shell pkg-config --cflags libedit 2>/dev/null))
HOST_LIBS    := -ldl -lpthread -lm $(if $(EDITLINE),$(shell pkg-config --libs libedit 2>/dev/null))

TPCC_SOURCES := $(wildcard c_shim/tpcc/*.c)
TPCC_OBJECTS := $(patsubst c_shim/tpcc/%.c,$(OUT)/tpcc/%.o,$(TPCC_SOURCES))
TPCC         := $(OUT)/xtradb-tpcc
COMMON_OBJECTS := $(patsubst c_shim/common/%.c,$(OUT)/host/%.o,$(wildcard c_shim/common/*.c))

.PHONY: help setup build demo test check lint install clean library host tpcc test-build

help:
	@echo 'make demo      installs what is missing, builds, and shows the engine at work'
	@echo 'make test      all tests (builds what they need)'
	@echo 'make build     the library, the host and xtradb-tpcc, in $(OUT)'
	@echo 'make check     format, lints, layers, documents, licences, exported symbols, headers'
	@echo 'make setup     installs what is missing (as root), or prints the command'
	@echo 'make install   DESTDIR=$(DESTDIR) PREFIX=$(PREFIX)'
	@echo 'PROFILE=debug builds with assertions and latch-order checks'

setup:
	@tools/setup.sh

build: library host tpcc

library:
	$(CARGO) build $(profile)

host: $(HOST)

vpath %.c c_shim/common c_shim/host

$(OUT)/host/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo '  CC    $<'
	@$(CC) $(CFLAGS) $(HOST_CFLAGS) -MMD -MP -c $< -o $@

$(OUT)/xtradb-host: $(HOST_OBJECTS)
	@echo '  LINK  $@'
	@$(CC) $(CFLAGS) -rdynamic -pthread $^ -o $@.new $(HOST_LIBS)
	@mv -f $@.new $@

tpcc: $(TPCC)

$(OUT)/tpcc/%.o: c_shim/tpcc/%.c Makefile
	@mkdir -p $(@D)
	@echo '  CC    $<'
	@$(CC) $(CFLAGS) $(HOST_CFLAGS) -MMD -MP -c $< -o $@

$(TPCC): $(TPCC_OBJECTS) $(COMMON_OBJECTS)
	@echo '  LINK  $@'
	@$(CC) $(CFLAGS) -pthread $^ -o $@.new -ldl -lpthread -lm
	@mv -f $@.new $@

-include $(HOST_OBJECTS:.o=.d) $(TPCC_OBJECTS:.o=.d)

demo:
	@tools/setup.sh
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@tools/demo.sh $(OUT)

# The tests run against the debug build: assertions and latch-order checks are on there.
test-build:
	@$(MAKE) --no-print-directory -j$(JOBS) build PROFILE=debug

test: test-build
	$(CARGO) test --no-fail-fast

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	$(CARGO) test --quiet --test layers
	@bash -n .ci/run && for script in tools/*.sh; do bash -n $$script || exit 1; done
	@python3 -m compileall -q tools tests/tools tests/fixtures >/dev/null || { echo 'a Python script does not parse'; exit 1; }

check: lint test-build
	@python3 tools/check_links.py --self-test && python3 tools/check_links.py
	@python3 tools/check_licenses.py --self-test && python3 tools/check_licenses.py
	@tools/check_headers.sh
	@tools/check_symbols.sh $(TARGET)/debug/libxtradb.so

install: build
	install -d '$(DESTDIR)$(PREFIX)/lib/xtradb' '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/include' '$(DESTDIR)$(PREFIX)/share/doc/xtradb'
	install -m 755 $(OUT)/libxtradb.so '$(DESTDIR)$(PREFIX)/lib/xtradb/.libxtradb.so.new'
	mv -f '$(DESTDIR)$(PREFIX)/lib/xtradb/.libxtradb.so.new' '$(DESTDIR)$(PREFIX)/lib/xtradb/libxtradb.so'
	$(if $(HOST),install -m 755 $(HOST) '$(DESTDIR)$(PREFIX)/bin/xtradb-host')
	install -m 755 $(TPCC) '$(DESTDIR)$(PREFIX)/bin/xtradb-tpcc'
	cd include && find . -name '*.h' -exec install -D -m 644 {} '$(abspath $(DESTDIR)$(PREFIX))/include/{}' \;
	install -m 644 README.md CHANGELOG.md LICENSE '$(DESTDIR)$(PREFIX)/share/doc/xtradb'

clean:
	$(CARGO) clean
