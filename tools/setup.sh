#!/usr/bin/env bash
# Brings what building and testing need: compilers, libclang, line editing, and a stock MariaDB.
#
#   tools/setup.sh            install what is missing (as root), or print the exact command
#   tools/setup.sh --check    exit 0 when nothing is missing, else say what is and exit 1
#   tools/setup.sh --version  print the MariaDB version that is (or would be) used
#
# All MariaDB pieces are of ONE version: the newest one for which server, client, backup, test suite,
# -dev packages and the source package can all be fetched (the adapter is built from that source's
# headers, and a plugin of another patch release is refused by the server). A MariaDB that is already
# installed is kept at its version, running or not. No server is started by the installation.
set -euo pipefail

plain=(build-essential libclang-14-dev libedit-dev pkg-config valgrind xz-utils python3)
mariadb=(mariadb-server mariadb-client mariadb-backup mariadb-test)
mariadb_dev=(libmariadb-dev libmariadbd-dev)

mode=install
case "${1:-}" in
    '') ;;
    --check) mode=check ;;
    --version) mode=version ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
installed_version() { installed "$1" && dpkg-query -W -f '${Version}' "$1"; }

if [ "$mode" != version ]; then
    command -v cargo >/dev/null || fail "no Rust toolchain: install one with rustup (https://rustup.rs), version 1.86 or newer"
fi
command -v apt-get >/dev/null || fail "this script knows Debian 12; install by hand: ${plain[*]} ${mariadb[*]}"

missing=()
# Any libclang that bindgen can load will do; libclang-cpp is another library.
have_libclang() { compgen -G '/usr/lib/llvm-*/lib/libclang.so*' >/dev/null || compgen -G '/usr/lib/llvm-*/lib/libclang-[0-9]*.so*' >/dev/null; }
for package in "${plain[@]}"; do
    if [ "$package" = libclang-14-dev ] && have_libclang; then continue; fi
    installed "$package" || missing+=("$package")
done
mariadb_missing=()
for package in "${mariadb[@]}"; do
    installed "$package" || mariadb_missing+=("$package")
done

if [ "$mode" = check ]; then
    [ ${#missing[@]} -eq 0 ] && [ ${#mariadb_missing[@]} -eq 0 ] && exit 0
    say "missing: ${missing[*]} ${mariadb_missing[*]}"
    exit 1
fi

work=$(mktemp -d)
policy=
cleanup() {
    rm -rf "$work"
    if [ -n "$policy" ]; then rm -f "$policy"; fi
}
trap cleanup EXIT

# A private apt state with source entries beside the binary ones: the machine's own is left alone.
source_options() {
    mkdir -p "$work/parts" "$work/lists/partial" "$work/fetch"
    local file
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] && sed 's/^Types: *deb *$/Types: deb deb-src/' "$file" > "$work/parts/$(basename "$file")"
    done
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$file" ] && sed -n 's/^deb\(-src\)\{0,1\} \(.*\)$/deb \2\ndeb-src \2/p' "$file" | sort -u > "$work/parts/$(basename "$file" .list).list"
    done
    apt_source=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/parts"
        -o "Dir::State::lists=$work/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
        -o APT::Sandbox::User=root)
    apt-get -qq "${apt_source[@]}" update >/dev/null 2>&1 || true
}

# Whether the source package of this version can really be fetched: an index may list one that is gone.
source_there() {
    (cd "$work/fetch" && apt-get -qq "${apt_source[@]}" source --download-only --dsc-only "mariadb=$1") >/dev/null 2>&1
}

# Lines "package version" of all that can be installed; one call, since each reads all indexes anew.
list_offers() {
    apt-cache "${apt_source[@]}" madison "${mariadb[@]}" "${mariadb_dev[@]}" |
        awk -F'|' '{gsub(/ /,"",$1); gsub(/ /,"",$2); print $1, $2}' > "$work/offers"
}

binaries_there() {
    local package
    for package in "${mariadb[@]}" "${mariadb_dev[@]}"; do
        grep -Fxq "$package $1" "$work/offers" || return 1
    done
}

newest_complete_version() {
    local version
    say 'looking for the newest MariaDB of which everything can be fetched (a minute or two)' >&2
    source_options
    list_offers
    for version in $(awk '$1 == "mariadb-server" { print $2 }' "$work/offers" | sort -uVr); do
        if binaries_there "$version" && source_there "$version"; then
            printf '%s\n' "$version"
            return 0
        fi
    done
    return 1
}

chosen_version() {
    local package
    for package in mariadb-server-core mariadb-server mariadb-client-core mariadb-test; do
        if installed_version "$package"; then return 0; fi
    done
    newest_complete_version
}

if [ "$mode" = version ]; then
    chosen_version || fail "no MariaDB version has all of: ${mariadb[*]} ${mariadb_dev[*]} and its source"
    exit 0
fi

if [ ${#missing[@]} -eq 0 ] && [ ${#mariadb_missing[@]} -eq 0 ]; then
    say "nothing is missing (MariaDB $(installed_version mariadb-server))"
    exit 0
fi

if [ ${#mariadb_missing[@]} -gt 0 ]; then
    if [ "$(id -u)" = 0 ]; then apt-get -qq update || true; fi
    version=$(chosen_version) || fail "no MariaDB version has all of: ${mariadb[*]} ${mariadb_dev[*]} and its source"
    if pgrep -x 'mariadbd|mysqld' >/dev/null 2>&1 && ! installed mariadb-server-core; then
        fail "a MariaDB that no package installed is running here; stop it, or install by hand: ${mariadb_missing[*]} in version $version"
    fi
    say "MariaDB $version: ${mariadb_missing[*]}"
    # Every package of that source at that version, so that no newer core is pulled in beside it.
    printf 'Package: src:mariadb\nPin: version %s\nPin-Priority: 1001\n' "$version" > "$work/pin"
else
    : > "$work/pin"
fi

install=(apt-get -y -o "Dir::Etc::Preferences=$work/pin" install --no-install-recommends
    "${missing[@]}" "${mariadb_missing[@]/%/${version:+=$version}}")

if [ "$(id -u)" != 0 ]; then
    say "not root. Run this, then again what you ran:"
    if [ ${#mariadb_missing[@]} -gt 0 ]; then
        printf "    printf 'Package: src:mariadb\\\\nPin: version %s\\\\nPin-Priority: 1001\\\\n' | sudo tee /etc/apt/preferences.d/mariadb-one-version\n" "$version"
    fi
    printf '    sudo apt-get update && sudo apt-get install --no-install-recommends %s\n' \
        "${missing[*]} ${mariadb_missing[*]/%/${version:+=$version}}"
    exit 1
fi

say "installing ${missing[*]} ${mariadb_missing[*]}"
[ ${#mariadb_missing[@]} -gt 0 ] || apt-get -qq update || true
if [ ! -e /usr/sbin/policy-rc.d ]; then
    policy=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
fi
log=$work/install.log
if ! DEBIAN_FRONTEND=noninteractive "${install[@]}" > "$log" 2>&1 < /dev/null; then
    tail -n 30 "$log" >&2
    fail "apt-get could not install ${missing[*]} ${mariadb_missing[*]}"
fi
say "done"
