#!/usr/bin/env bash
# What `make bench` runs: builds, measures xtradb beside other engines, writes docs/benchmarks.md.
#
#   tools/bench.sh [target folder]      parameters come from the environment:
#
#   ONLY=points,device,memory,tpcc,recovery    the parts to run; the others' last figures stay
#   ROWS= ROUNDS= SECONDS_EACH= CACHE= ENGINES= CELLS= MEMORY_ROWS= MEMORY_ROUNDS=
#   WAREHOUSES= TPCC_SECONDS= THREADS= SETTINGS=name=value,...
#   RECOVERY_REDO= (MiB) RECOVERY_PAGES= RECOVERY_ROUNDS=
#   BENCH_DIR=   where data and figures go (target/bench)
#   DOCUMENT= PICTURE=   what is written (docs/benchmarks.md, docs/benchmarks.svg)
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:-target}
case "$target" in /*) target=$(realpath --relative-to=. "$target") ;; esac
only=${ONLY:-points,device,memory,tpcc,recovery}
work=${BENCH_DIR:-$target/bench}
peers=$target/peers/release/xtradb-peers

say() { printf 'bench: %s\n' "$*"; }
fail() { printf 'bench: %s\n' "$*" >&2; exit 1; }

# RocksDB is Debian's library: building it from source takes longer than measuring everything.
need_packages() {
    local package missing=()
    for package in librocksdb-dev; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    if [ "$(id -u)" != 0 ]; then
        say "missing: ${missing[*]}. Run this, then again what you ran:"
        printf '    sudo apt-get update && sudo apt-get install --no-install-recommends %s\n' "${missing[*]}"
        exit 1
    fi
    say "installing ${missing[*]}"
    apt-get -qq update || true
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "${missing[@]}" >/dev/null ||
        fail "apt-get could not install ${missing[*]}"
}

wanted() { case ",$only," in *",$1,"*) return 0 ;; *) return 1 ;; esac; }

measure() {
    say "$1"
    "$peers" "$1" "work=$work" "library=$PWD/$target/release/libxtradb.so" "programs=$target/release" \
        "rows=${ROWS:-}" "rounds=${ROUNDS:-}" "seconds=${SECONDS_EACH:-}" "cache=${CACHE:-}" \
        "engines=${ENGINES:-}" "cells=${CELLS:-}" "memory-rows=${MEMORY_ROWS:-}" \
        "memory-rounds=${MEMORY_ROUNDS:-}" "warehouses=${WAREHOUSES:-}" "tpcc-seconds=${TPCC_SECONDS:-}" \
        "threads=${THREADS:-}" "settings=${SETTINGS:-}" "document=${DOCUMENT:-}" "picture=${PICTURE:-}"
}

mkdir -p "$work"
say 'building'
cargo build --release
need_packages
cargo build --release --locked --manifest-path benches/peers/Cargo.toml --target-dir "$target/peers"
[ -e "$peers" ] || fail "$peers was not built"

bad=0
for part in device points memory tpcc; do
    if wanted "$part"; then measure "$part" || { say "$part did not get through"; bad=1; }; fi
done
if wanted recovery; then
    say 'recovery'
    python3 benches/recovery.py "$work" "$target/release" "redo=${RECOVERY_REDO:-}" "pages=${RECOVERY_PAGES:-}" \
        "rounds=${RECOVERY_ROUNDS:-}" || { say 'recovery did not get through'; bad=1; }
fi
measure report
exit $bad
