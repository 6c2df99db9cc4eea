#!/usr/bin/env python3
"""Checks that every dependency is usable under a licence that fits GPL-2.0-or-later.

What is linked into the library must be usable under MIT, BSD, Zlib, ISC, Unicode or a public-domain
dedication (Apache-2.0 alone does not go together with GPL-2). What only builds or tests it may be
Apache-2.0 alone as well.

    check_licenses.py            reads `cargo metadata` of the project
    check_licenses.py --self-test
"""
import json
import re
import subprocess
import sys

LINKED = {
    "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Zlib", "ISC", "Unicode-3.0",
    "Unicode-DFS-2016", "CC0-1.0", "Unlicense", "BSL-1.0",
}
TOOLS = LINKED | {"Apache-2.0"}


def usable(expression, allowed):
    """Whether an SPDX expression can be satisfied with the allowed licences alone."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def peek():
        return tokens[position] if position < len(tokens) else None

    def take():
        nonlocal position
        position += 1
        return tokens[position - 1]

    def term():
        token = take()
        if token == "(":
            value = any_of()
            if peek() != ")":
                raise ValueError(expression)
            take()
            return value
        value = token in allowed
        if peek() == "WITH":
            # An exception only ever adds permissions.
            take()
            take()
        return value

    def all_of():
        value = term()
        while peek() == "AND":
            take()
            value = term() and value
        return value

    def any_of():
        value = all_of()
        while peek() == "OR":
            take()
            value = all_of() or value
        return value

    value = any_of()
    if peek() is not None:
        raise ValueError(expression)
    return value


def linked_packages(metadata):
    """Ids of the packages that end up in the library: reached by normal dependencies alone."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    proc_macros = {
        package["id"] for package in metadata["packages"]
        if any("proc-macro" in target["kind"] for target in package["targets"])
    }
    seen, todo = set(), list(metadata["workspace_members"])
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for dependency in nodes[name]["deps"]:
            normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if normal and dependency["pkg"] not in proc_macros:
                todo.append(dependency["pkg"])
    return seen


def check(metadata):
    """One line for each package whose licence does not fit."""
    linked = linked_packages(metadata)
    members = set(metadata["workspace_members"])
    complaints = []
    for package in metadata["packages"]:
        if package["id"] in members:
            continue
        licence = package["license"] or ""
        allowed = LINKED if package["id"] in linked else TOOLS
        try:
            fits = bool(licence) and usable(licence, allowed)
        except (ValueError, IndexError):
            fits = False
        if not fits:
            where = "linked" if package["id"] in linked else "build or test"
            complaints.append(f"{package['name']} {package['version']} ({where}): {licence or 'no licence named'}")
    return complaints


def self_test():
    assert usable("MIT", LINKED)
    assert usable("MIT OR Apache-2.0", LINKED)
    assert usable("Apache-2.0/MIT", LINKED)
    assert usable("(MIT OR Apache-2.0) AND Unicode-3.0", LINKED)
    assert not usable("Apache-2.0", LINKED)
    assert usable("Apache-2.0", TOOLS)
    assert not usable("MIT AND GPL-3.0-only", LINKED)
    assert not usable("MPL-2.0", TOOLS)
    assert usable("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", LINKED)
    for broken in ["MIT OR", "(MIT", "MIT MIT"]:
        try:
            usable(broken, LINKED)
        except (ValueError, IndexError):
            continue
        raise AssertionError(broken)
    print("check_licenses: self-test passed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    text = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked"], check=True, capture_output=True, text=True
    ).stdout
    metadata = json.loads(text)
    complaints = check(metadata)
    for line in complaints:
        print(f"check_licenses: {line}", file=sys.stderr)
    if not complaints:
        print(f"check_licenses: {len(metadata['packages']) - 1} dependencies, all usable")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
