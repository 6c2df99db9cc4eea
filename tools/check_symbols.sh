#!/usr/bin/env bash
# Looks into a built libxtradb.so: one exported symbol, and no thread-local with a destructor.
#
#   tools/check_symbols.sh target/debug/libxtradb.so
#
# A thread-local with a destructor pins the library to every host thread that touched it: after
# UNINSTALL PLUGIN glibc keeps the old build mapped, or the host crashes in it. The standard library
# carries one of its own (the output capture of its test harness, never set in a host); any other
# `destroy` function of its thread-local machinery comes from our code or from a dependency.
set -euo pipefail

library=${1:?usage: check_symbols.sh LIBRARY}
[ -f "$library" ] || { echo "check_symbols: $library is missing; run make build" >&2; exit 1; }
status=0

exported=$(nm -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | sort)
if [ "$exported" != xtradb_api ]; then
    echo "check_symbols: $library must export xtradb_api alone, but exports:" >&2
    printf '    %s\n' ${exported:-nothing} >&2
    status=1
fi

if [ -z "$(nm "$library" 2>/dev/null | head -n 1)" ]; then
    echo "check_symbols: $library is stripped; thread-locals cannot be checked" >&2
    exit 1
fi
destructors=$(nm -C "$library" | grep -E 'thread_local.*::(native|os|statik|fast_local|os_local)::.*destroy' |
    grep -vF 'eager::destroy::<core::cell::Cell<core::option::Option<alloc::sync::Arc<std::sync::poison::mutex::Mutex<alloc::vec::Vec<u8>>>>>>' || true)
if [ -n "$destructors" ]; then
    echo "check_symbols: $library has thread-locals with destructors:" >&2
    printf '%s\n' "$destructors" | sed 's/^/    /' >&2
    status=1
fi
# C and C++ code registers them under these names directly.
if nm -D --undefined-only "$library" | grep -qE '__cxa_thread_atexit$'; then
    echo "check_symbols: $library registers a C++ thread-local destructor" >&2
    status=1
fi
[ $status -ne 0 ] || echo "check_symbols: $library exports xtradb_api alone; no thread-local destructors"
exit $status
