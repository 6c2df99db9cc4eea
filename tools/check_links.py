#!/usr/bin/env python3
"""Checks that every relative link and every named source file in the Markdown files exists.

Links `[text](path)` are looked up from the file that holds them, anchors against that file's headings.
In docs/ and README.md a path in backticks that begins with src/, tests/, tools/, include/, c_shim/,
examples/, benches/ or docs/ must exist as well (a trailing `/` names a folder; `*` and `…` are patterns).

    check_links.py             the repository that the script stands in
    check_links.py --self-test
"""
import pathlib
import re
import subprocess
import sys
import tempfile

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
NAMED = re.compile(r"`((?:src|tests|tools|include|c_shim|examples|benches|docs)/[^`\s]*)`")


def anchors(text):
    """GitHub's anchors of the headings of a page."""
    found = set()
    for line in text.splitlines():
        match = re.match(r"#+\s+(.*)", line)
        if match:
            title = re.sub(r"[^\w\- ]", "", match.group(1).strip().lower())
            found.add(title.replace(" ", "-"))
    return found


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)


def check(root, files):
    """One line for each link or named file that leads nowhere."""
    complaints = []
    for file in files:
        path = root / file
        text = without_code(path.read_text(encoding="utf-8"))
        for target in LINK.findall(text):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            aim = (path.parent / name) if name else path
            if not aim.exists():
                complaints.append(f"{file}: link to {target}, which does not exist")
            elif anchor and aim.suffix == ".md" and anchor not in anchors(aim.read_text(encoding="utf-8")):
                complaints.append(f"{file}: link to {target}, which has no such heading")
        for name in NAMED.findall(text):
            name = re.sub(r":\d+$", "", name.split("::")[0]).rstrip(".,;:")
            if any(mark in name for mark in "*…<>{}$"):
                continue
            if not (root / name).exists():
                complaints.append(f"{file}: names {name}, which does not exist")
    return complaints


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        (root / "docs/a.md").write_text("# One two\n[b](b.md) [c](../README.md#nowhere) `src/gone.rs` `src/*.rs`\n")
        (root / "README.md").write_text("# Title\n[a](docs/a.md#one-two) [web](https://example.org/x)\n")
        complaints = check(root, ["docs/a.md", "README.md"])
        assert len(complaints) == 3, complaints
    print("check_links: self-test passed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(__file__).resolve().parent.parent
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=root, check=True, capture_output=True, text=True,
    ).stdout.split()
    files = [file for file in listed if not file.startswith("tests/fixtures/") and (root / file).exists()]
    complaints = check(root, files)
    for line in complaints:
        print(f"check_links: {line}", file=sys.stderr)
    if not complaints:
        print(f"check_links: {len(files)} pages, all links lead somewhere")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
