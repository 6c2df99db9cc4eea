#!/usr/bin/env bash
# Lets a stock MariaDB server open a data directory that the engine wrote, and check its tables.
#
#   tools/stock_check.sh DATADIR DATABASE DUMP.sql[.xz]
#
# The dump gives the definitions (.frm files), made by a scratch server. DATADIR itself is not touched: the
# server works on a copy. Prints one line per table; exits 1 when one is not OK.
set -euo pipefail

datadir=${1:?usage: stock_check.sh DATADIR DATABASE DUMP}
database=$2
dump=$3
command -v mariadbd >/dev/null || { echo 'stock_check: no mariadbd here; run make setup' >&2; exit 1; }
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || stop; rm -rf "$work"' EXIT
as_root=()
[ "$(id -u)" != 0 ] || as_root=(--user=root)

start() {
    rm -f "$work/s"
    mariadbd --no-defaults "${as_root[@]}" --datadir="$1" --socket="$work/s" --pid-file="$work/pid" \
        --log-error="$work/log" --tmpdir="$work" --skip-networking --skip-grant-tables \
        --innodb-stats-persistent=0 --character-set-server=utf8mb4 --open-files-limit=4096 2>/dev/null &
    server=$!
    for _ in $(seq 600); do
        sql 'SELECT 1' >/dev/null 2>&1 && return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    echo 'stock_check: the stock server does not come up:' >&2
    tail -n 20 "$work/log" >&2
    exit 1
}

stop() {
    # Silently: a shell tells of children that are killed when it waits for them.
    { kill -9 "$server"; wait "$server" || true; } 2>/dev/null
    server=
}

sql() { mariadb --no-defaults -S "$work/s" --batch --skip-column-names --default-character-set=utf8mb4 -e "$@"; }

unpack() { case $dump in *.xz) xz -dc "$dump" ;; *) cat "$dump" ;; esac; }

mkdir "$work/scratch"
start "$work/scratch"
unpack | grep -av '^INSERT INTO' | sed -n '/^CREATE \|^USE \|^DROP TABLE/,/;/p' |
    mariadb --no-defaults -S "$work/s" --default-character-set=utf8mb4
stop
cp -r "$datadir" "$work/data"
cp "$work/scratch/$database"/*.frm "$work/data/$database/"
start "$work/data"
status=0
while read -r table; do
    rows=$(sql "SELECT COUNT(*) FROM \`$table\`" "$database") || status=1
    said=$(sql "CHECK TABLE \`$table\` EXTENDED" "$database" | tail -n 1 | cut -f 4)
    printf '  %-20s %8s rows   CHECK TABLE EXTENDED: %s\n' "$table" "$rows" "$said"
    [ "$said" = OK ] || status=1
done < <(sql "SELECT table_name FROM information_schema.tables WHERE table_schema = '$database' ORDER BY 1")
exit $status
