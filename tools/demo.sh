#!/usr/bin/env bash
# Shows the engine at work: `make demo`, or tools/demo.sh DIRECTORY-OF-THE-BUILD.
#
# Each step is announced in one line and checked; the first that does not hold ends the demo with status 1.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(cd "${1:-target/release}" && pwd)
host=$out/xtradb-host
library=$out/libxtradb.so
fixtures=tests/fixtures
plugins='innodb=libxtradb.so;innodb_trx=libxtradb.so;innodb_locks=libxtradb.so;innodb_lock_waits=libxtradb.so'
plugins+=';innodb_cmp=libxtradb.so;innodb_cmp_reset=libxtradb.so;innodb_cmpmem=libxtradb.so;innodb_cmpmem_reset=libxtradb.so'
work=$(mktemp -d "${TMPDIR:-/tmp}/xtradb-demo.XXXXXX")
steps=9
step=0
begin=$SECONDS
children=()

bold=
plain=
terminal=
if [ -t 1 ]; then
    terminal=yes
    bold=$(printf '\033[1m')
    plain=$(printf '\033[0m')
fi

finish() {
    local status=$?
    for child in "${children[@]}"; do kill -9 "$child" 2>/dev/null || true; done
    if [ "$status" -eq 0 ]; then
        rm -rf "$work"
        printf '\n%sAll %s steps held, in %s seconds.%s\n' "$bold" "$steps" "$((SECONDS - begin))" "$plain"
    else
        printf '\n%sStep %s did not hold. What it left: %s%s\n' "$bold" "$step" "$work" "$plain" >&2
    fi
}
trap finish EXIT

announce() {
    step=$((step + 1))
    printf '\n%s[%s/%s] %s%s\n' "$bold" "$step" "$steps" "$1" "$plain"
}

fail() {
    printf 'demo: %s\n' "$*" >&2
    exit 1
}

# run DATADIR [option ...]: the host with our engine as its InnoDB
run() { (become "$@"); }

# The same in place of this shell: for `become ... &`, so that $! is the host itself.
become() {
    local datadir=$1
    shift
    exec "$host" --no-defaults --datadir="$datadir" --plugin-dir="$work/plugins" --ignore-builtin-innodb \
        --plugin-load="$plugins" --log-error="$work/error.log" "$@"
}

[ -x "$host" ] && [ -f "$library" ] || fail "$host or $library is missing: run make build"
mkdir -p "$work/plugins" "$work/data" "$work/stock" "$work/killed/k"
cp "$library" "$work/plugins/libxtradb.so"

announce 'The plugin is loaded by the string that MySQL uses, and is the engine named InnoDB'
run "$work/data" --table -e 'SHOW ENGINES; SHOW PLUGINS' | tee "$work/engines"
grep -Eiq '^\| *InnoDB *\| *(YES|DEFAULT)' "$work/engines" || fail 'InnoDB is not among the engines'
[ "$(grep -c 'libxtradb.so' "$work/engines")" -eq 8 ] || fail 'not all eight plugins of the library are there'

announce 'A database is made from what the stock mariadb-dump wrote of a shop'
xz -dc "$fixtures/dump/shop.sql.xz" | run "$work/data"
run "$work/data" --table --database=shop <<'SQL' | tee "$work/shop"
SHOW TABLES;
SELECT COUNT(*), SUM(total) FROM orders;
SELECT id, name, balance, standing FROM customers WHERE id BETWEEN 4 AND 8;
SHOW CREATE TABLE customers\G
SQL
grep -q '| *1500 | *14071875.00 |' "$work/shop" || fail 'the orders are not all there'
grep -q 'ENGINE=InnoDB' "$work/shop" || fail 'the table is not in InnoDB'

announce 'A data directory that the stock server wrote is opened and read'
for file in ibdata1 undo001 undo002 ib_logfile0; do
    xz -dc "$fixtures/samples/mini/$file.xz" > "$work/stock/$file"
done
xz -dc "$fixtures/samples/mini/smp.tar.xz" | tar -x --no-same-owner -C "$work/stock"
run "$work/stock" --innodb-undo-tablespaces=2 --table --database=smp <<'SQL' | tee "$work/sample"
SELECT COUNT(*), MIN(id), MAX(id) FROM s_dynamic;
SELECT id, a, b FROM s_dynamic LIMIT 5;
SELECT id, kind FROM s_blob_dynamic;
SQL
grep -q '| *360 | *1 | *400 |' "$work/sample" && grep -q 'many pages' "$work/sample" || fail 'the rows of the sample are not there'

announce 'Four sessions commit, the process is killed in the middle, and the ledger is held against the files'
cc -std=gnu11 -O2 -pthread -Iinclude tests/crash/writers.c -o "$work/writers" -ldl
total=0
for kill in 1 2 3; do
    "$work/writers" "$work/plugins/libxtradb.so" "$work/killed" write 4 > "$work/ledger" 2>> "$work/error.log" &
    children=($!)
    for _ in 1 2 3 4; do
        sleep 1
        [ -z "$terminal" ] || printf '\r  acknowledged so far: %s ' "$(grep -c '^A' "$work/ledger" || true)"
    done
    kill -9 "${children[0]}" 2>/dev/null || fail "the writers ended by themselves: $(tail -n 1 "$work/ledger")"
    wait "${children[0]}" 2>/dev/null || true
    children=()
    acknowledged=$(grep -c '^A' "$work/ledger") || fail 'nothing was acknowledged'
    "$work/writers" "$work/plugins/libxtradb.so" "$work/killed" verify 4 > "$work/found" 2>> "$work/error.log" ||
        fail "the check after kill $kill: $(tail -n 1 "$work/found")"
    awk 'NR == FNR { if ($1 == "A") told[$2] = $3; next }
         $1 == "C" && $3 < told[$2] { print "writer " $2 ": " told[$2] " acknowledged, " $3 " found"; bad = 1 }
         END { exit bad }' "$work/ledger" "$work/found" || fail 'an acknowledged commit is lost'
    total=$((total + acknowledged))
    [ -z "$terminal" ] || printf '\r'
    printf '  kill %s: %s commits acknowledged, all found, no half transaction, all indexes agree\n' "$kill" "$acknowledged"
done
printf '  in all %s acknowledged, 0 lost\n' "$total"

announce 'The same with the host: a transaction that was not committed is gone after kill -9'
mkfifo "$work/input"
become "$work/data" --batch --database=shop < "$work/input" > "$work/host.out" &
children=($!)
exec 7> "$work/input"
printf "%s\n" "INSERT INTO empty_table VALUES (1, 'committed');" 'BEGIN;' "INSERT INTO empty_table VALUES (2, 'open');" \
    "DELETE FROM orders;" "SELECT COUNT(*) AS left_over FROM orders;" >&7
for _ in $(seq 300); do
    grep -q left_over "$work/host.out" && break
    sleep 0.1
done
grep -q left_over "$work/host.out" || fail 'the host did not answer'
kill -9 "${children[0]}"
wait "${children[0]}" 2>/dev/null || true
children=()
exec 7>&-
run "$work/data" --table --database=shop -e 'SELECT * FROM empty_table; SELECT COUNT(*) FROM orders; CHECK TABLE orders EXTENDED' | tee "$work/after"
grep -q committed "$work/after" && ! grep -q open "$work/after" && grep -q 1500 "$work/after" ||
    fail 'the rows after the kill are not those that were committed'

announce 'The engine is replaced under the running host'
# The second build differs from the first in the version that it tells.
python3 - "$library" "$work/next.so" <<'PY'
import pathlib, re, sys
data = pathlib.Path(sys.argv[1]).read_bytes()
version = re.search(rb'(?m)^version = "(\d+\.\d+\.)(\d)"', pathlib.Path('Cargo.toml').read_bytes())
old, new = version.group(1) + version.group(2), version.group(1) + b'9'
other, count = re.subn(rb'(?<![\d.])' + re.escape(old) + rb'(?![\d.])', new, data)
assert old != new and count > 0, 'the library does not tell its version'
pathlib.Path(sys.argv[2]).write_bytes(other)
PY
chmod +x "$work/next.so"
mkfifo "$work/swap"
become "$work/data" --batch --database=shop < "$work/swap" > "$work/swap.out" 2> "$work/swap.err" &
children=($!)
exec 7> "$work/swap"
printf '%s\n' "SELECT COUNT(*) FROM customers;" "SELECT 'first' AS build, PLUGIN_VERSION, PLUGIN_DESCRIPTION FROM INFORMATION_SCHEMA.PLUGINS WHERE PLUGIN_NAME = 'InnoDB';" \
    "UNINSTALL SONAME 'libxtradb.so';" "SELECT 'taken out' AS step;" >&7
for _ in $(seq 300); do
    grep -q 'taken out' "$work/swap.out" && break
    kill -0 "${children[0]}" 2>/dev/null || fail "the swap: $(cat "$work/swap.err")"
    sleep 0.1
done
mv "$work/next.so" "$work/plugins/libxtradb.so"
printf '%s\n' "INSTALL SONAME 'libxtradb.so';" "SELECT COUNT(*) FROM customers;" \
    "SELECT 'second' AS build, PLUGIN_VERSION, PLUGIN_DESCRIPTION FROM INFORMATION_SCHEMA.PLUGINS WHERE PLUGIN_NAME = 'InnoDB';" >&7
exec 7>&-
wait "${children[0]}" || fail "the swap: $(cat "$work/swap.err")"
children=()
cat "$work/swap.out"
[ "$(grep -c '^600$' "$work/swap.out")" -eq 2 ] || fail 'the rows are not the same before and after the swap'
grep -q '^second.*\.9' "$work/swap.out" || fail 'the new build does not run'

announce 'TPC-C: 20 seconds of orders and payments, and the books balance afterwards'
"$out/xtradb-tpcc" --plugin-load='InnoDB=libxtradb.so' --plugin-dir="$work/plugins" --datadir="$work/tpcc" --warehouses=1 \
    --threads=4 --seconds=20 --warmup=2 --innodb-buffer-pool-size=512M --innodb-log-file-size=256M \
    --innodb-flush-log-at-trx-commit=2 --plot="$out/tpcc.svg" --json="$out/tpcc.json" || fail 'TPC-C'
printf '  The picture: %s\n' "$out/tpcc.svg"

announce 'The engine tells how it is'
run "$work/data" --batch --raw -e 'SHOW ENGINE INNODB STATUS' | tee "$work/status" | head -n 60
grep -q 'INNODB MONITOR OUTPUT' "$work/status" || fail 'no monitor text'

announce 'The stock server opens and checks what the engine wrote'
tools/stock_check.sh "$work/data" shop "$fixtures/dump/shop.sql.xz"
