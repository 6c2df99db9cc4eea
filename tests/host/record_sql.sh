#!/bin/sh
# Records tests/host/sql/*.out from a stock MariaDB 10.11.
#
#   tests/host/record_sql.sh SOCKET [NAME ...]
#
# SOCKET of a scratch server that may be written to: database cmpdb is dropped and made anew. The
# client prints the statement of an error between dashed lines; those are taken out, as are line
# numbers.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
socket=$1
shift
[ $# -gt 0 ] || set -- $(cd "$root/tests/host/sql" && ls *.sql | sed 's/\.sql$//')
client="mariadb --no-defaults --default-character-set=utf8mb4 -S $socket -uroot --force --batch --unbuffered"
for name; do
    $client -e 'drop database if exists cmpdb; drop database if exists d2'
    { cat "$root/tests/host/sql/prelude" "$root/tests/host/sql/$name.sql"; } | $client 2>&1 |
        sed -e '/^--------------$/,/^$/d' -e 's/ at line [0-9]*:/:/' > "$root/tests/host/sql/$name.out"
done
