#!/usr/bin/env python3
"""Writes random SQL that the host and a stock server must answer alike.

    sql_fuzz.py SEED [STATEMENTS]

One table of random column types, keys (prefix, DESC, unique, several parts) and collations; inserts,
updates, deletes, and selects whose WHERE fits the keys. Every result is ordered completely, so it
can be compared line by line.
"""
import random
import sys

seed = int(sys.argv[1])
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 150
r = random.Random(seed)

INTS = ["tinyint", "smallint", "int", "bigint", "int unsigned", "mediumint"]
WORDS = ["", "a", "A", "ab", "abc", "Abd", "b", "ba", "z", "zz ", " x", "\u00e9", "e", "E", "\u00df", "ss",
         "\u4e2d", "a_c", "a%c", "a\\\\c", "0", "1", "10", "9", "aaaaaaaaaa", "aaaaaaaaab", "tab\\tx", "\u00c5", "\u00e4"]


def column(n):
    kind = r.choice(["int", "int", "int", "dec", "str", "str", "str", "bin", "date", "dt", "ts", "time", "dbl", "enum", "set",
                     "text", "blob", "year", "bit", "uuid", "inet4", "char"])
    if kind == "int":
        t = r.choice(INTS)
    elif kind == "dec":
        t = r.choice(["decimal(6,2)", "decimal(12,4)", "decimal(20,0)"])
    elif kind in ("str", "char"):
        size = r.choice([5, 10, 40])
        cs = r.choice(["", " character set latin1", " collate utf8mb4_bin", " collate utf8mb4_unicode_ci",
                       " character set utf8mb3", " character set ucs2", " character set latin1 collate latin1_bin",
                       " collate utf8mb4_general_nopad_ci"])
        t = f"{'varchar' if kind == 'str' else 'char'}({size}){cs}"
    elif kind == "bin":
        t = r.choice(["varbinary(10)", "varbinary(4)"])
    elif kind in ("dt", "ts", "time"):
        f = r.choice(["", "(3)", "(6)"])
        t = {"dt": "datetime", "ts": "timestamp", "time": "time"}[kind] + f
    else:
        t = {"date": "date", "dbl": "double", "enum": "enum('a','b','C','d e')", "set": "set('x','y','z')",
             "text": "text", "blob": "blob", "year": "year", "bit": "bit(10)", "uuid": "uuid", "inet4": "inet4"}[kind]
    null = r.random() < 0.7
    if kind == "ts" and null:
        t += " null"
    return {"name": f"c{n}", "kind": kind, "type": t, "null": null, "latin": "latin1" in t}


def literal(c, for_where=False):
    k = c["kind"]
    if r.random() < (0.1 if c["null"] or for_where else 0):
        return "null"
    if k == "int":
        v = r.choice([0, 1, 2, 3, 5, 7, 10, 50, 100, 127, -1, -5, -128])
        return str(abs(v)) if "unsigned" in c["type"] and not for_where else str(v)
    if k == "dec":
        return r.choice(["0", "1", "-1", "100", "9999"] + ([] if ",0" in c["type"] else ["1.5", "2.25", "-3.75"]))
    if k in ("str", "char", "text"):
        w = r.choice(WORDS)
        if c["latin"]:
            w = "".join(ch if ord(ch) < 256 else "?" for ch in w)
        if "(5)" in c["type"]:
            w = w[:5] if not w[:5].endswith("\\") else w[:4]
        return "'" + w + "'"
    if k in ("bin", "blob"):
        return r.choice(["''", "'a'", "'ab'", "x'01'", "x'0101'", "'zz'", "x'ff'"])
    if k == "date":
        return "'" + r.choice(["2024-01-01", "2024-02-29", "1999-12-31", "0000-00-00", "2038-01-19"]) + "'"
    if k in ("dt", "ts"):
        digits = 3 if "(3)" in c["type"] else 6 if "(6)" in c["type"] else -1
        return "'" + r.choice(["2024-01-01 00:00:00", "2024-02-29 12:34:56.789123"[:20 + digits],
                               "1999-12-31 23:59:59.999999"[:20 + digits], "2001-09-09 01:46:40"]) + "'"
    if k == "time":
        digits = 3 if "(3)" in c["type"] else 6 if "(6)" in c["type"] else -1
        return "'" + r.choice(["00:00:00", "12:34:56.500000"[:9 + digits], "-01:02:03", "838:59:59", "-838:59:59",
                               "23:59:59.999999"[:9 + digits]]) + "'"
    if k == "dbl":
        return r.choice(["0", "1.5", "-2.25", "1e10", "0.1", "-1e-5"])
    if k == "enum":
        return r.choice(["'a'", "'b'", "'c'", "'d e'"])
    if k == "set":
        return r.choice(["''", "'x'", "'x,y'", "'z'", "'x,y,z'"])
    if k == "year":
        return r.choice(["2000", "1999", "2155", "1901", "0"])
    if k == "bit":
        return r.choice(["b'0'", "b'1'", "b'1010101010'", "5", "1023"])
    if k == "uuid":
        return "'" + r.choice(["123e4567-e89b-12d3-a456-426655440000", "00000000-0000-0000-0000-000000000001",
                               "ffffffff-ffff-4fff-8fff-ffffffffffff"]) + "'"
    return "'" + r.choice(["0.0.0.0", "192.0.2.1", "10.0.0.7", "255.255.255.255"]) + "'"


def comparable(c):
    return c["kind"] not in ("bit", "enum", "set", "year", "uuid", "inet4")


def condition(cols):
    c = r.choice(cols)
    n = c["name"]
    if not comparable(c):
        return f"{n} = {literal(c, True)}" if c["kind"] not in ("uuid", "inet4") else f"{n} = {literal(c)}"
    x = r.random()
    if x < 0.3:
        return f"{n} = {literal(c, True)}"
    if x < 0.6:
        return f"{n} {r.choice(['<', '<=', '>', '>=', '<>'])} {literal(c, True)}"
    if x < 0.7:
        return f"{n} between {literal(c, True)} and {literal(c, True)}"
    if x < 0.8:
        return f"{n} in ({literal(c, True)}, {literal(c, True)}, {literal(c, True)})"
    if x < 0.85 and c["kind"] not in ("date", "dt", "ts"):
        return f"{n} is {r.choice(['', 'not '])}null"
    if x < 0.9:
        return f"{n} <=> {literal(c, True)}"
    if c["kind"] in ("str", "char", "text"):
        p = r.choice(["a%", "A%", "ab%", "%b", "_b%", "z%", "\u00e9%", "a\\\\_%", "a\\\\%c", "%", "b_", "0%", "aaaaa%", "e%", "\u00e4%", "s%"])
        return f"{n} like '{p}'"
    return f"{n} >= {literal(c, True)}"


def where(cols):
    if r.random() < 0.1:
        return ""
    parts = [condition(cols) for _ in range(r.choice([1, 1, 2, 2, 3]))]
    return " where " + " and ".join(parts)


def shown(cols):
    out = []
    for c in cols:
        if c["kind"] in ("bin", "blob", "bit") or "ucs2" in c["type"]:
            out.append(f"hex({c['name']})")
        elif c["kind"] in ("str", "char", "text"):
            out.append(f"concat('[', {c['name']}, ']')")
        else:
            out.append(c["name"])
    return ", ".join(out)


def key(cols, unique):
    parts = []
    for c in r.sample(cols, r.choice([1, 1, 2, 3]) if len(cols) > 2 else 1):
        p = c["name"]
        if c["kind"] in ("text", "blob"):
            p += f"({r.choice([1, 3, 10])})"
        elif c["kind"] in ("str", "char") and r.random() < 0.3:
            p += f"({r.choice([1, 3])})"
        if r.random() < 0.25:
            p += " desc"
        parts.append(p)
    return f"{'unique ' if unique else ''}key ({', '.join(parts)})"


cols = [column(i) for i in range(r.choice([2, 3, 4, 5]))]
keys = [key(cols, r.random() < 0.15) for _ in range(r.choice([1, 2, 3, 4]))]
defs = ["id int primary key"]
defs += [f"{c['name']} {c['type']}{'' if c['null'] else ' not null'}" for c in cols]
print(f"create table f ({', '.join(defs + keys)});")
names = ", ".join(c["name"] for c in cols)
next_id = 1
for _ in range(steps):
    x = r.random()
    if x < 0.35:
        rows = []
        for _ in range(r.choice([1, 1, 2, 4])):
            ident = str(next_id + r.choice([0, 0, 0, 0, -1]))
            next_id += 1
            rows.append("(" + ", ".join([ident] + [literal(c) for c in cols]) + ")")
        verb = r.choice(["insert", "insert", "insert", "insert ignore", "replace"])
        tail = ""
        if verb == "insert" and r.random() < 0.2:
            c = r.choice(cols)
            tail = f" on duplicate key update {c['name']} = {literal(c)}"
        print(f"{verb} into f (id, {names}) values {', '.join(rows)}{tail};\nselect row_count();")
    elif x < 0.45:
        c = r.choice(cols)
        value = literal(c)
        if c["kind"] == "int" and r.random() < 0.5:
            value = f"{c['name']} + 1"
        print(f"update f set {c['name']} = {value}{where(cols)};\nselect row_count();")
    elif x < 0.5:
        print(f"delete from f{where(cols)} order by id limit {r.choice([1, 2, 3])};\nselect row_count();")
    elif x < 0.6:
        c = r.choice(cols)
        print(f"select count(*), count({c['name']}), count(distinct {c['name']}) from f{where(cols)};")
    elif x < 0.65:
        c = r.choice([c for c in cols if comparable(c) and c["kind"] not in ("str", "char", "text")] or [{"name": "id"}])
        print(f"select hex(min({c['name']})), hex(max({c['name']})) from f{where(cols)};")
    else:
        order = "id"
        if r.random() < 0.4:
            c = r.choice(cols)
            order = f"{c['name']}{r.choice(['', ' desc'])}, id{r.choice(['', ' desc'])}"
        limit = f" limit {r.choice([1, 3, 10])}" if r.random() < 0.3 else ""
        print(f"select id, {shown(cols)} from f{where(cols)} order by {order}{limit};")
print(f"select id, {shown(cols)} from f order by id;")
print("show create table f;")
