#!/usr/bin/env bash
# Compiles every header of include/ alone, as C99 and as C++11, with warnings as errors.
set -euo pipefail
cd "$(dirname "$0")/.."
count=0
while IFS= read -r header; do
    name=${header#include/}
    for language in c c++; do
        standard=c99
        compiler=${CC:-cc}
        if [ "$language" = c++ ]; then
            standard=c++11
            compiler=${CXX:-c++}
        fi
        # Twice: the second time must be a no-op behind the include guard.
        printf '#include "%s"\n#include "%s"\n' "$name" "$name" |
            "$compiler" -x "$language" -std="$standard" -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only - ||
            { echo "check_headers: $header does not compile alone as $standard" >&2; exit 1; }
    done
    count=$((count + 1))
done < <(find include -name '*.h' 2>/dev/null | sort)
echo "check_headers: $count headers compile alone as C99 and C++11"
