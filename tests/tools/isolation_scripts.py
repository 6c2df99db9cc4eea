#!/usr/bin/env python3
"""Turns the stock server's isolation traces into scripts of the bundled host.

    isolation_scripts.py [DIRECTORY]        default: tests/scripts

One script per case and level. The result of each step is what the stock server answered.
"""
import json
import lzma
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests/fixtures/isolation"

LEVELS = {
    "RU": ("read_uncommitted", "READ UNCOMMITTED"),
    "RC": ("read_committed", "READ COMMITTED"),
    "RR": ("repeatable_read", "REPEATABLE READ"),
    "SER": ("serializable", "SERIALIZABLE"),
}

# The published lists' short names say little; these are the anomalies' own.
NAMES = {
    "g0_dirty_write": "dirty_write",
    "g1a_aborted_read": "dirty_read_of_an_aborted_change",
    "g1b_intermediate_read": "dirty_read_of_an_intermediate_change",
    "g1c_circular_info": "circular_information_flow",
    "otv_observed_vanishes": "observed_transaction_vanishes",
    "pmp_predicate_read": "phantom_by_predicate",
    "pmp_predicate_write": "write_by_predicate",
    "p4_lost_update": "lost_update",
    "gsingle_read_skew": "read_skew",
    "gsingle_predicate": "read_skew_by_predicate",
    "gsingle_write": "read_skew_by_write",
    "gsingle_write_rolled_back": "read_skew_by_waiting_write",
    "g2item_write_skew": "write_skew",
    "g2_predicate_skew": "write_skew_by_predicate",
    "g2_fekete_readonly": "read_only_anomaly",
}

MESSAGES = {
    1205: "ERROR 1205 (HY000): Lock wait timeout exceeded; try restarting transaction",
    1213: "ERROR 1213 (40001): Deadlock found when trying to get lock; try restarting transaction",
    1317: "ERROR 1317 (70100): Query execution was interrupted",
    1412: "ERROR 1412 (HY000): Table definition has changed, please retry transaction",
    1792: "ERROR 1792 (25006): Cannot execute statement in a READ ONLY transaction",
}

# The traces keep only the number; the key is the one that the schedule is about.
DUPLICATES = {
    "delete_then_gap": "Duplicate entry '20' for key 'PRIMARY'",
    "dup_waits_for_uncommitted": "Duplicate entry '30' for key 'u'",
    "dup_error_keeps_s_lock": "Duplicate entry '1' for key 'PRIMARY'",
    "odku_and_replace": "Duplicate entry '15' for key 'u'",
}

# Foreign keys and XA come with later parts: error 1235 until then, so there is nothing to replay.
LEFT_OUT = {"fk_child_locks_parent", "fk_parent_delete_blocks_child", "xa_prepared_keeps_locks"}

# Two equal waiters: which one the stock server makes the victim depends on who wakes first. Ours keep
# their order: the one that came first goes on.
EQUAL_WAITERS = {"dup_three_way_deadlock"}


def result_lines(case, result):
    kind = result[0]
    if kind == "ok":
        count = result[1]
        return ["ok" if count == 0 else f"ok, {count} row{'' if count == 1 else 's'}"]
    if kind == "rows":
        rows = [" | ".join("NULL" if v is None else str(v) for v in row) for row in result[1]]
        return rows or ["(no rows)"]
    code = result[1]
    if code == 1062:
        return [f"ERROR 1062 (23000): {DUPLICATES[case]}"]
    return [MESSAGES[code]]


def script(case, setup, level, trace):
    lines = [f"# {NAMES.get(case, case).replace('_', ' ').capitalize()} at {level}: "
             "as a stock MariaDB 10.11 answers."]
    for statement in setup:
        statement = statement.replace(" @E", " ENGINE=InnoDB")
        lines.append(f"setup: {statement}")
        rows = statement.count("),(") + 1
        lines.append("    ok" if statement.startswith("CREATE")
                     else "    " + result_lines(case, ["ok", rows])[0])
    seen = set()
    for session, statement, result, *released in trace:
        if result[0] == "skipped-session-blocked":
            continue
        if session not in seen:
            seen.add(session)
            lines += [f"{session}: SET SESSION TRANSACTION ISOLATION LEVEL {level}", "    ok"]
        if statement == "KILL ...":
            victim = "A" if case == "kill_connection_rolls_back" else released[0][1]
            lines.append(f"{'close' if victim == 'A' else 'kill'} {victim}")
        else:
            lines.append(f"{session}: {statement}")
            if result[0] == "BLOCK":
                lines.append(f"    {session} blocks")
            else:
                lines += ["    " + line for line in result_lines(case, result)]
        sessions = list(dict.fromkeys(s for s, *_ in trace))
        released.sort(key=lambda r: sessions.index(r[1]))
        if case in EQUAL_WAITERS:
            lates = sorted((late for _, _, late in released), key=lambda late: late[0] != "ok")
            released = [(what, name, late) for (what, name, _), late in zip(released, lates)]
        for _, name, late in released:
            lines.append(f"    {name} resumes")
            lines += ["        " + line for line in result_lines(case, late)]
    return "\n".join(lines) + "\n"


def main():
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/scripts"
    cases = json.loads(lzma.open(FIXTURES / "cases.json.xz").read())
    expected = json.loads(lzma.open(FIXTURES / "expected.json.xz").read())["cases"]
    for key, recorded in sorted(expected.items()):
        case, level = key.split("@")
        if case in LEFT_OUT or level not in LEVELS:
            continue
        if any(statement == "(end)" for _, statement, *_ in recorded["trace"]):
            continue  # somebody waits to the end: a script cannot say so
        folder, name = LEVELS[level]
        path = target / folder / (NAMES.get(case, case) + ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script(case, cases[case]["setup"], name, recorded["trace"]))


if __name__ == "__main__":
    main()
