#!/usr/bin/env bash
# What needs a nightly toolchain: tools/nightly.sh fuzz | address | thread | miri
# Where it is missing: says so and the command that installs it, exit status 3. Never a silent pass.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=never
host=x86_64-unknown-linux-gnu
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

# not_run WHAT COMMAND
not_run() {
    echo "not run: needs $1"
    echo "    $2"
    exit 3
}

need_nightly() {
    rustc +nightly --version >/dev/null 2>&1 || not_run nightly 'rustup toolchain install nightly'
    local component
    for component in "$@"; do
        rustup component list --toolchain nightly --installed 2>/dev/null | grep -q "^$component" ||
            not_run "nightly with $component" "rustup component add --toolchain nightly $component"
    done
}

fuzz() {
    need_nightly
    cargo +nightly fuzz --version >/dev/null 2>&1 ||
        not_run 'nightly and cargo-fuzz' 'rustup toolchain install nightly && cargo install cargo-fuzz'
    local name
    for name in ${FUZZ_TARGETS:-$(sed -n 's/^name = "\([a-z_]*\)"$/\1/p' fuzz/Cargo.toml | grep -v entries)}; do
        echo "== fuzz $name, ${FUZZ_SECONDS:-60} s"
        # What is new goes beside the build; the committed corpus is only read.
        mkdir -p "$target/fuzz/corpus/$name"
        cargo +nightly fuzz run --target-dir "$target/fuzz" "$name" "$target/fuzz/corpus/$name" "fuzz/corpus/$name" -- \
            -max_total_time="${FUZZ_SECONDS:-60}" -max_len=80000 -timeout=20 -rss_limit_mb=2048
    done
}

# The unit tests under a sanitizer. The standard library is built, too: thread sees its locks only so.
sanitize() {
    need_nightly rust-src
    echo "== $1 sanitizer"
    # Planted bugs run other tests to see them fail.
    RUSTFLAGS="-Zsanitizer=$1" CARGO_TARGET_DIR="$target/$1-sanitizer" XTRADB_SEEDS=6 \
        ASAN_OPTIONS=detect_leaks=1 TSAN_OPTIONS=halt_on_error=0 \
        cargo +nightly test -Zbuild-std --target $host --lib -- --skip planted ${SANITIZE_TESTS:-}
}

# The modules without I/O. Left out: tests that unpack samples of the stock server, which starts xz, and
# one that makes 100 000 checksums.
miri() {
    need_nightly miri rust-src
    CARGO_TARGET_DIR="$target/miri" MIRIFLAGS='-Zmiri-disable-isolation' \
        cargo +nightly miri test --lib -- ${MIRI_TESTS:-words:: format:: schema::} \
        --skip format::tests --skip pages_tests --skip undo_tests --skip any_covered_flipped_bit
}

case ${1:-} in
fuzz) fuzz ;;
address | thread) sanitize "$1" ;;
miri) miri ;;
*) sed -n 2,3p "$0" >&2; exit 2 ;;
esac
