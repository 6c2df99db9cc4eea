#!/usr/bin/env python3
"""Recovery beside the stock server: each on a copy of the same crashed directory.

    recovery.py WORK PROGRAMS [name=value ...]

A stock server fills a table of PAGES pages, closes, opens again with a pool that holds all of it, and
changes every row until REDO MiB of log lie behind the checkpoint; then it is killed. For a large and a
small pool (a sixth of the changed pages) both servers open a copy, with the page cache emptied: time to
the first SELECT, and until all is applied. The stock server answers only when it has applied everything;
ours answers before, and has applied everything when XTRADB_RECOVERY says so. Then both scan the table, and
must find the same. How fast ours read the log is told, too.

WORK/recovery.txt gets the figures as `xtradb-peers report` reads them. Parameters: redo=1536 pages=90000
rounds=1 keep=0 (1: leave the crashed directory for the next time).
"""
import atexit
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

COLUMNS = 14           # of CHAR(250): four rows to a page of 16 KiB
ROWS_PER_PAGE = 4
CHANGED_COLUMNS = 5
CHUNK = 400            # rows per statement
PAGE_KIB = 16
POINT = "SELECT COUNT(*) FROM bench.wide WHERE id = 1"
SCAN = "SELECT COUNT(*), SUM(k) FROM bench.wide"
PENDING = "SELECT pages_pending FROM INFORMATION_SCHEMA.XTRADB_RECOVERY"
PLUGINS = "innodb=libxtradb.so;xtradb_recovery=libxtradb.so"


def say(text):
    print(f"recovery  {text}", flush=True)


class Stock:
    """A stock server on a directory; its socket and log beside it."""

    def __init__(self, work, datadir, pool_mib, log_mib, more=()):
        self.work = work
        self.socket = work / "stock.sock"
        self.log = work / "stock.log"
        self.socket.unlink(missing_ok=True)
        command = [
            "mariadbd", "--no-defaults", f"--datadir={datadir}", f"--socket={self.socket}",
            f"--pid-file={work}/stock.pid", f"--log-error={self.log}", f"--tmpdir={work}",
            "--skip-networking", "--skip-grant-tables", "--innodb-stats-persistent=0",
            f"--innodb-buffer-pool-size={pool_mib}M", f"--innodb-log-file-size={log_mib}M",
            "--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=O_DIRECT", *more,
        ]
        if os.getuid() == 0:
            command.append("--user=root")
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # Whatever goes wrong, no server is left behind.
        atexit.register(self.end, signal.SIGKILL)

    def sql(self, text, check=True):
        command = ["mariadb", "--no-defaults", "-S", str(self.socket), "-N", "-B"]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if check and done.returncode != 0:
            raise RuntimeError(f"the stock server: {done.stderr.strip()}")
        return done.stdout.strip() if done.returncode == 0 else None

    def wait(self, question="SELECT 1"):
        """Asks until there is an answer."""
        while True:
            answer = self.sql(question, check=False) if self.socket.exists() else None
            if answer is not None:
                return answer
            if self.process.poll() is not None:
                raise RuntimeError(f"the stock server ended: see {self.log}")
            time.sleep(0.01)

    def status(self, name):
        return int(self.sql(f"SHOW GLOBAL STATUS LIKE '{name}'").split("\t")[1])

    def end(self, how):
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()


def fill(stock, rows):
    columns = ", ".join(f"c{i} CHAR(250) NOT NULL" for i in range(COLUMNS))
    stock.sql("CREATE DATABASE IF NOT EXISTS bench")
    stock.sql(f"CREATE TABLE bench.wide (id INT PRIMARY KEY, k INT NOT NULL, {columns}) "
              "ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARSET=latin1 COLLATE=latin1_bin")
    values = ", ".join(f"REPEAT(CHAR(97 + (seq + {i}) % 26), 250)" for i in range(COLUMNS))
    step = 20000
    for first in range(1, rows + 1, step):
        last = min(rows, first + step - 1)
        stock.sql(f"USE bench; INSERT INTO wide SELECT seq, 0, {values} FROM seq_{first}_to_{last}")


def change(stock, rows, redo_mib):
    """Updates every row, over and over, until the log behind the checkpoint is long enough."""
    changes = ", ".join(f"c{i} = REPEAT(CHAR(65 + (id + k + {i}) % 26), 250)" for i in range(CHANGED_COLUMNS))
    chunks = (rows + CHUNK - 1) // CHUNK
    # An odd step through the chunks: all of them, in no order.
    step = next(s for s in range(int(chunks * 0.618) | 1, 3 * chunks, 2) if shares_no_factor(s, chunks))
    for number in range(100 * chunks):
        first = number * step % chunks * CHUNK + 1
        stock.sql(f"UPDATE bench.wide SET k = k + 1, {changes} WHERE id BETWEEN {first} AND {first + CHUNK - 1}")
        if number >= chunks - 1 and number % 10 == 0 and age_mib(stock) >= redo_mib:
            return
        if number % max(1, chunks // 10) == 0:
            say(f"{age_mib(stock)} MiB of redo, {stock.status('Innodb_buffer_pool_pages_dirty')} pages changed")


def shares_no_factor(a, b):
    while b:
        a, b = b, a % b
    return a == 1


def age_mib(stock):
    return stock.status("Innodb_checkpoint_age") >> 20


def prepare(work, crashed, redo_mib, pages):
    say(f"filling {pages} pages")
    shutil.rmtree(crashed, ignore_errors=True)
    crashed.mkdir(parents=True)
    pool_mib = pages * PAGE_KIB // 1024 * 2 + 512
    log_mib = redo_mib * 3 // 2 + 256
    rows = pages * ROWS_PER_PAGE
    stock = Stock(work, crashed, pool_mib, log_mib)
    stock.wait()
    fill(stock, rows)
    stock.end(signal.SIGTERM)
    held_back = ["--innodb-max-dirty-pages-pct=99.9", "--innodb-max-dirty-pages-pct-lwm=0",
                 "--innodb-adaptive-flushing=OFF"]
    stock = Stock(work, crashed, pool_mib, log_mib, held_back)
    stock.wait()
    change(stock, rows, redo_mib)
    made = {"redo": age_mib(stock), "pages": stock.status("Innodb_buffer_pool_pages_dirty"),
            "rows": rows, "answer": stock.sql(SCAN)}
    stock.end(signal.SIGKILL)
    (work / "crashed.txt").write_text(repr(made))
    return made


def copy(crashed, to):
    """A copy that nothing of is cached."""
    shutil.rmtree(to, ignore_errors=True)
    subprocess.run(["cp", "-a", "--reflink=auto", str(crashed), str(to)], check=True)
    for path in to.rglob("*"):
        if path.is_file():
            with open(path, "rb+") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def recover_stock(work, datadir, pool_mib, log_mib, made):
    started = time.monotonic()
    stock = Stock(work, datadir, pool_mib, log_mib)
    stock.wait(POINT)
    first = time.monotonic() - started
    answer = stock.sql(SCAN)
    stock.end(signal.SIGKILL)
    if answer != made["answer"]:
        raise RuntimeError(f"the stock server answers {answer} instead of {made['answer']}")
    return first, first


def recover_ours(programs, datadir, pool_mib, log_mib, made):
    started = time.monotonic()
    log = open(datadir / "host.err", "w+")
    host = subprocess.Popen(
        [str(programs / "xtradb-host"), "--no-defaults", f"--datadir={datadir}", "--ignore-builtin-innodb",
         f"--plugin-load={PLUGINS}", f"--innodb-buffer-pool-size={pool_mib}M", "--log-warnings=3",
         f"--innodb-log-file-size={log_mib}M", "--innodb-flush-log-at-trx-commit=2", "--batch", "-N"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)

    def logged():
        log.seek(0)
        return log.read().strip()

    def ask(question):
        host.stdin.write(question + ";\n")
        host.stdin.flush()
        answer = host.stdout.readline().strip()
        if not answer:
            host.kill()
            raise RuntimeError(f"xtradb-host: {logged()[-300:]}")
        return answer, time.monotonic() - started

    _, first = ask(POINT)
    while True:
        pending, applied = ask(PENDING)
        if pending == "0":
            break
        time.sleep(0.02)
    answer, _ = ask(SCAN)
    host.kill()
    host.wait()
    for line in logged().splitlines():
        if "scanned" in line:
            say(line.partition("; ")[2])
    if answer != made["answer"]:
        raise RuntimeError(f"xtradb answers {answer} instead of {made['answer']}")
    return first, applied


def measure(work, programs, made, rounds, lines):
    large = made["pages"] * PAGE_KIB // 1024 * 2 + 512
    small = max(24, made["pages"] * PAGE_KIB // 1024 // 6)
    log_mib = os.path.getsize(work / "crashed" / "ib_logfile0") >> 20
    lines += [f"fact large\t{large}", f"fact small\t{small}"]
    for round_number in range(rounds):
        for pool, pool_mib in (("large", large), ("small", small)):
            # The one who is first changes with the round.
            for who in ("stock", "xtradb") if round_number % 2 == 0 else ("xtradb", "stock"):
                copy(work / "crashed", work / "copy")
                try:
                    if who == "stock":
                        times = recover_stock(work, work / "copy", pool_mib, log_mib, made)
                    else:
                        times = recover_ours(programs, work / "copy", pool_mib, log_mib, made)
                except RuntimeError as error:
                    say(f"{who} with {pool_mib} MiB failed: {error}")
                    lines.append(f"failed {who}-{pool}\t" + " ".join(str(error).split()))
                    continue
                say(f"{who:6} with {pool_mib} MiB: first SELECT {times[0]:.2f} s, all applied {times[1]:.2f} s")
                lines += [f"figure {who} select-{pool} {times[0]} 0 0", f"figure {who} applied-{pool} {times[1]} 0 0"]


def main():
    work, programs = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    values = {"redo": 1536, "pages": 90000, "rounds": 1, "keep": 0}
    for argument in sys.argv[3:]:
        name, _, value = argument.partition("=")
        if value:
            values[name] = int(value)
    results = work / "recovery.txt"
    work = work / "recovery"
    work.mkdir(parents=True, exist_ok=True)
    if not shutil.which("mariadbd"):
        say("not run: no stock server here (make setup)")
        results.unlink(missing_ok=True)
        return 0
    if values["keep"] and (work / "crashed.txt").exists():
        made = eval((work / "crashed.txt").read_text())  # written by us: a dictionary
    else:
        made = prepare(work, work / "crashed", values["redo"], values["pages"])
    say(f"crashed with {made['redo']} MiB of redo over {made['pages']} pages")
    version = subprocess.run(["mariadbd", "--version"], capture_output=True, text=True).stdout.split()
    lines = [f"fact redo\t{made['redo']}", f"fact pages\t{made['pages']}",
             f"fact stock\tMariaDB {version[2] if len(version) > 2 else ''}",
             "fact made\tupdates of five of fourteen CHAR(250) columns, by the stock server, then kill -9",
             "fact date\t" + time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())]
    measure(work, programs, made, values["rounds"], lines)
    results.write_text("\n".join(lines) + "\n")
    shutil.rmtree(work / "copy", ignore_errors=True)
    if not values["keep"]:
        shutil.rmtree(work)
    return 1 if any(line.startswith("failed") for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
