#!/usr/bin/env python3
"""Types at the host's prompt through a pseudo-terminal and checks what a person would see.

    prompt.py --host PATH --scratch DIR

Prints what went wrong and exits 1, or prints "ok".
"""
import argparse
import os
import pathlib
import pty
import re
import select
import signal
import sys
import time

PATIENCE = 20.0


class Terminal:
    def __init__(self, argv, env):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, env)

    def expect(self, text):
        """Reads until `text` appears; returns what came before it and forgets both."""
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], 0.1)
            if ready:
                try:
                    piece = os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    piece = ""
                if piece == "" and text not in self.seen:
                    raise AssertionError(f"the host ended; expected {text!r} in {self.seen!r}")
                # colours, cursor moves and carriage returns are not text
                self.seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\x07", "", piece)
            elif time.monotonic() > end:
                raise AssertionError(f"nothing like {text!r} came; seen: {self.seen!r}")
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def line(self, text, prompt):
        """Types a line and waits for the prompt after it."""
        self.type(text + "\n")
        return self.expect(prompt)

    def end(self):
        """Exit status, once the host has ended by itself."""
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid == self.pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError("the host did not end")


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def statements_and_continuation(t):
    t.expect("xtradb [(none)]> ")
    out = t.line("SELECT 1 AS a;", "xtradb [(none)]> ")
    check("| a |" in out and "1 row in set (" in out, f"a boxed table with a count: {out!r}")
    t.line("SELECT", "    -> ")
    t.line("'one", "    '> ")
    t.line("two' AS", "    -> ")
    t.line("/* a", "   /*> ")
    t.line("remark */ `b", "    `> ")
    out = t.line("c`;", "xtradb [(none)]> ")
    check("| one" in out and "1 row in set" in out, f"a statement over several lines: {out!r}")
    t.line("SELECT nonsense", "    -> ")
    out = t.line("\\c", "xtradb [(none)]> ")
    check("ERROR" not in out, f"\\c forgets the statement: {out!r}")
    out = t.line("SELECT 1 AS a\\G", "xtradb [(none)]> ")
    check("*** 1. row ***" in out and "a: 1" in out, f"\\G prints rows vertically: {out!r}")


def errors_do_not_end_it(t):
    out = t.line("NONSENSE;", "xtradb [(none)]> ")
    check("ERROR 1064 (42000): " in out, f"an error without a line number: {out!r}")
    out = t.line("SELECT 2 AS b;", "xtradb [(none)]> ")
    check("| b |" in out, "the prompt goes on after an error")


def databases(t):
    out = t.line("CREATE DATABASE people;", "xtradb [(none)]> ")
    check("Query OK, 1 row affected (" in out, f"Query OK: {out!r}")
    out = t.line("use people", "xtradb [people]> ")
    check("Database changed" in out, f"use: {out!r}")
    t.line("DROP DATABASE people;", "xtradb [(none)]> ")


def history(t):
    t.line("SELECT 'remembered' AS h;", "xtradb [(none)]> ")
    t.type("\x1b[A")
    t.expect("remembered")
    out = t.line("", "xtradb [(none)]> ")
    check("remembered" in out, f"the arrow key brings the statement back: {out!r}")


def interrupt(t):
    t.type("SELECT SLEEP(60);\n")
    t.expect("SLEEP(60);")
    time.sleep(0.5)  # too early only makes the statement run its minute, and the test fail
    begun = time.monotonic()
    t.type("\x03")
    t.expect("xtradb [(none)]> ")
    check(time.monotonic() - begun < 10, "control-C ends the running statement")


def leaving(t):
    t.type("\\q\n")
    t.expect("Bye")
    check(t.end() == 0, "exit status of \\q")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True, type=pathlib.Path)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    args = parser.parse_args()
    args.scratch.mkdir(parents=True, exist_ok=True)
    histfile = args.scratch / "history"
    env = dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8", XTRADB_HISTFILE=str(histfile))
    argv = [str(args.host.resolve()), "--no-defaults", f"--datadir={args.scratch}"]
    terminal = Terminal(argv, env)
    try:
        for step in (statements_and_continuation, errors_do_not_end_it, databases, interrupt):
            step(terminal)
        editing = has_editing(args.host)
        if editing:
            history(terminal)
        leaving(terminal)
        if editing:
            check("remembered" in histfile.read_text(), "the history is kept in its file")
    except AssertionError as why:
        print(why)
        return 1
    print("ok")
    return 0


def has_editing(host):
    """Was the host built with a line-editing library?"""
    return b"using_history" in host.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
