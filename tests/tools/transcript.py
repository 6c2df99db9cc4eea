#!/usr/bin/env python3
"""Replays a transcript of shell commands and prints it with what they print today.

    transcript.py --host PATH --scratch DIR [--record] FILE...

A transcript that passes prints itself; otherwise the difference is shown and the exit status is 1.
Lines that begin with "$ " are commands, with the lines up to END if they have <<'END' in them; "#" and
blank lines stay; everything else is output (standard output, then standard error) and is not read. `host` in a command is the bundled host with a data
directory and a plugin directory of its own; both are fresh for each transcript. In the output, dates
of log lines are cut and the scratch directory appears as DIR. "exit N" stands where a command fails.
"""
import argparse
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DUMMIES = ROOT / "tests/host/dummy"
PRELUDE = """
host() { "$HOST" --no-defaults --datadir="$DATA" --plugin-dir="$PLUGINS" "$@"; }
bare() { "$HOST" "$@"; }
"""


def build_dummies(plugins):
    """Compiles every dummy library, and newer builds of toy.so into plugins/2 and plugins/pinned."""
    def cc(source, target, *flags):
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *flags,
                        "-I", str(ROOT / "include"), str(source), "-o", str(target)], check=True)

    for source in sorted(DUMMIES.glob("*.c")):
        cc(source, plugins / (source.stem + ".so"))
    cc(DUMMIES / "toy.c", plugins / "2" / "toy.so", '-DTOY_VERSION="2.0"')
    cc(DUMMIES / "toy.c", plugins / "pinned" / "toy.so", "-Wl,-z,nodelete")
    (plugins / "broken.so").write_bytes(b"this is not a library\n")


def normalise(text, scratch):
    text = re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \d+ ", "", text, flags=re.M)
    text = re.sub(r"\(\d+\.\d\d\d sec\)", "(0.000 sec)", text)
    return text.replace(str(scratch), "DIR")


def replay(path, host, scratch):
    plugins, data = scratch / "plugins", scratch / "data"
    shutil.rmtree(scratch, ignore_errors=True)
    data.mkdir(parents=True)
    build_dummies(plugins)
    env = dict(os.environ, HOST=str(host), DATA=str(data), PLUGINS=str(plugins), DIR=str(scratch),
               LC_ALL="C.UTF-8")
    lines = []
    source = iter(path.read_text().splitlines())
    for line in source:
        if line == "" or line.startswith("#"):
            lines.append(line)
        elif line.startswith("$ "):
            lines.append(line)
            command = line[2:]
            while "<<'END'" in command and not command.endswith("\nEND"):
                lines.append(next(source))
                command += "\n" + lines[-1]
            run = subprocess.run(["sh", "-c", PRELUDE + command], env=env, cwd=scratch, timeout=120,
                                 stdin=subprocess.DEVNULL, capture_output=True)
            output = normalise((run.stdout + run.stderr).decode(errors="replace"), scratch)
            # output that looks like a line of the transcript itself is set apart
            lines += ["." + o if o == "" or o[0] in "#$" else o for o in output.splitlines()]
            if run.returncode != 0:
                lines.append(f"exit {run.returncode}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True, type=pathlib.Path)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    failed = False
    for path in args.files:
        actual = replay(path, args.host.resolve(), args.scratch.resolve())
        expected = path.read_text()
        if args.record:
            path.write_text(actual)
        elif actual != expected:
            failed = True
            sys.stdout.writelines(difflib.unified_diff(
                expected.splitlines(True), actual.splitlines(True), str(path), "today"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
