#!/bin/sh
# Unit tests of the host's SQL half, and its answers against those of a stock server.
#
#   tests/host/run_unit.sh [HOST]      HOST: the xtradb-host to ask (default: one built here)
#
# Needs a C compiler and xz; no make, no server. SANITIZE=1 builds with address and undefined
# behaviour checks; OBJECTS=DIR takes the host's objects from there (build.rs leaves them) instead of
# compiling them. The expected answers in tests/host/sql/*.out were recorded from a stock server by
# tests/host/record_sql.sh.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=gnu11 -D_GNU_SOURCE -pthread -Wall -Wextra -Werror -O1 -g -I$root/include -I$root/c_shim/common -I$root/c_shim/host"
if [ "${SANITIZE:-0}" = 1 ]; then
    flags="$flags -Wno-format-truncation -fsanitize=address,undefined -fno-sanitize-recover"
    export ASAN_OPTIONS=detect_leaks=0
fi
status=0

edit=
if [ -n "${OBJECTS:-}" ]; then
    edit=$(pkg-config --libs libedit 2> /dev/null || true) # as build.rs compiles them
else
    OBJECTS=$work
    for source in "$root"/c_shim/common/*.c "$root"/c_shim/host/*.c; do
        ${CC:-cc} $flags -c "$source" -o "$work/$(basename "$source" .c).o"
    done
fi
objects=$(ls "$OBJECTS"/*.o | grep -v '[/-]main\.o$')
libraries="-rdynamic -ldl -lm $edit"
for test in values parser; do
    ${CC:-cc} $flags "$root/tests/host/unit_$test.c" $objects $libraries -o "$work/unit_$test"
done
if [ $# -gt 0 ]; then
    host=$1
else
    host=$work/xtradb-host
    ${CC:-cc} $flags $objects "$OBJECTS"/*main.o $libraries -o "$host"
fi

"$work/unit_values" || status=1
xz -dc "$root/tests/fixtures/dump/shop.sql.xz" > "$work/dump.sql"
"$work/unit_parser" "$root/tests/host/statements.txt" "$work/dump.sql" || status=1

# Sessions at once: on the builtin engine, and on ours where the library lies beside the host.
${CC:-cc} $flags "$root/tests/host/stress.c" $objects $libraries -o "$work/stress"
library=$(cd "$(dirname "$host")" && pwd)/libxtradb.so
mkdir "$work/heap" "$work/engine"
timeout 60 "$work/stress" 3 4 1 --datadir="$work/heap" || status=1
if [ -e "$library" ]; then
    timeout 120 "$work/stress" 5 4 1 --datadir="$work/engine" --plugin-dir="$(dirname "$library")" \
        --ignore-builtin-innodb --plugin-load=innodb=libxtradb.so || status=1
fi

for script in "$root"/tests/host/sql/*.sql; do
    name=$(basename "$script" .sql)
    rm -rf "$work/data"
    mkdir "$work/data"
    { cat "$root/tests/host/sql/prelude"; cat "$script"; } |
        timeout 120 "$host" --datadir="$work/data" --force --batch > "$work/$name.raw" 2>&1 || true
    sed 's/ at line [0-9]*:/:/' "$work/$name.raw" > "$work/$name.out"
    if diff "$root/tests/host/sql/$name.out" "$work/$name.out" > "$work/diff"; then
        echo "sql/$name: as the stock server answers"
    else
        echo "sql/$name: differs from the stock server:"
        head -40 "$work/diff"
        status=1
    fi
done
exit $status
