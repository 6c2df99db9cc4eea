#!/usr/bin/env python3
"""Checks that every dependency is usable under a licence that fits GPL-2.0-or-later.

What is linked into the library must be usable under MIT, BSD, Zlib, ISC, Unicode or a public-domain
dedication (Apache-2.0 alone does not go together with GPL-2). What only builds or tests it may be
Apache-2.0 or NCSA alone as well; so may the dependencies of packages that are never distributed.

    check_licenses.py            reads `cargo metadata` of the project and of its other packages
    check_licenses.py --self-test
"""
import json
import re
import subprocess
import sys
from pathlib import Path

LINKED = {
    "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Zlib", "ISC", "Unicode-3.0",
    "Unicode-DFS-2016", "CC0-1.0", "Unlicense", "BSL-1.0",
}
TOOLS = LINKED | {"Apache-2.0", "NCSA"}
# Packages beside the project's own that link the library, or parts of it, and are never distributed.
APART = ["benches/peers", "fuzz", "tests/models", "tests/power"]


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


def check(metadata, distributed):
    """How many dependencies there are, and one line for each whose licence does not fit."""
    linked = linked_packages(metadata) if distributed else set()
    # What has no source is a package of ours.
    packages = [package for package in metadata["packages"] if package["source"]]
    complaints = []
    for package in packages:
        licence = package["license"] or ""
        allowed = LINKED if package["id"] in linked else TOOLS
        try:
            fits = bool(licence) and usable(licence, allowed)
        except (ValueError, IndexError):
            fits = False
        if not fits:
            where = "linked" if package["id"] in linked else "build or test"
            complaints.append(f"{package['name']} {package['version']} ({where}): {licence or 'no licence named'}")
    return len(packages), complaints


def packages_apart():
    """Folders of the packages that are no members of the project's workspace."""
    manifests = [*Path().glob("*/Cargo.toml"), *Path().glob("*/*/Cargo.toml")]
    return sorted(str(path.parent) for path in manifests if path.parts[0] != "target")


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
    package = {"id": "a", "name": "a", "version": "1", "source": "registry", "license": "Apache-2.0", "targets": []}
    ours = {"id": "b", "name": "b", "version": "1", "source": None, "license": None, "targets": []}
    needs = {"pkg": "a", "dep_kinds": [{"kind": None}]}
    nodes = [{"id": "a", "deps": []}, {"id": "b", "deps": [needs]}]
    metadata = {"packages": [package, ours], "workspace_members": ["b"], "resolve": {"nodes": nodes}}
    assert check(metadata, True) == (1, ["a 1 (linked): Apache-2.0"])
    assert check(metadata, False) == (1, [])
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
    if packages_apart() != APART:
        print(f"check_licenses: APART does not name the packages {packages_apart()}", file=sys.stderr)
        return 1
    total, failed = 0, False
    for folder in ["."] + APART:
        command = ["cargo", "metadata", "--format-version", "1", "--locked", "--manifest-path", f"{folder}/Cargo.toml"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        count, complaints = check(json.loads(text), folder == ".")
        total += count
        for line in complaints:
            print(f"check_licenses: {folder}: {line}", file=sys.stderr)
        failed |= bool(complaints)
    if not failed:
        print(f"check_licenses: {total} dependencies of {1 + len(APART)} packages, all usable")
    return failed


if __name__ == "__main__":
    sys.exit(main())
