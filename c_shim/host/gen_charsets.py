#!/usr/bin/env python3
"""Writes charset_bytes.inc and coll_bytes8.inc: the single-byte character sets but latin1 and ascii, and their collations.

    gen_charsets.py [CLIENT ARGUMENTS]      as `mariadb` takes them, to reach a stock 10.11 server

Left out are collations that weigh more than one byte at a time. The files are included in pieces, by macros:
BYTE_CHARSET(NAME, "name", default collation, _bin collation), BYTE_MAP(NAME, 256 code points, 0xFFFD = none),
BYTE_WEIGHTS(number, 256 weights), BYTE_COLLATION(id, "name", NAME, number of its weights or 0 for bytes).
"""
import pathlib
import subprocess
import sys

CONTRACTIONS = {"latin2_czech_cs", "cp1250_czech_cs", "tis620_thai_ci", "tis620_thai_nopad_ci"}


def query(sql):
    command = ["mariadb", "--no-defaults", "--batch", "--skip-column-names", *sys.argv[1:]]
    output = subprocess.run(command + ["-e", sql], check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in output.splitlines()]


def wrap(numbers):
    lines, line = [], "    "
    for number in numbers:
        word = f"{number},"
        if len(line) + len(word) > 100:
            lines.append(line)
            line = "    "
        line += word
    return "\n".join(lines + [line.rstrip(",")])


def bytes_of(expression):
    union = " UNION ALL ".join(f"SELECT {n} AS n" for n in range(256))
    return [row[0] for row in query(f"SELECT {expression} FROM ({union}) AS bytes ORDER BY n")]


sets, collations, maps, weights = [], [], [], []
for name, default in query("SELECT character_set_name, default_collate_name FROM information_schema.character_sets "
                           "WHERE maxlen = 1 AND character_set_name NOT IN ('latin1', 'ascii', 'binary', 'tis620') "
                           "ORDER BY 1"):
    ids = {c: int(i) for i, c in query("SELECT id, collation_name FROM information_schema.collations "
                                       f"WHERE character_set_name = '{name}' ORDER BY id")}
    sets.append(f'BYTE_CHARSET({name.upper()}, "{name}", {ids[default]}, {ids[name + "_bin"]})')
    codes = [int(code, 16) for code in bytes_of(f"HEX(CONVERT(CHAR(n USING {name}) USING utf32))")]
    codes = [0xFFFD if code == 0x3F and n != 0x3F else code for n, code in enumerate(codes)]
    maps.append(f"BYTE_MAP({name.upper()},\n{wrap(codes)})")
    for collation, number in ids.items():
        if collation in CONTRACTIONS:
            continue
        table = 0
        if not collation.endswith("_bin"):
            table = ids.get(collation.replace("_nopad_", "_"), number)
            if table == number:
                found = bytes_of(f"HEX(WEIGHT_STRING(CHAR(n USING {name}) COLLATE {collation}))")
                found = [int(w, 16) if w else n for n, w in enumerate(found)]
                weights.append(f"BYTE_WEIGHTS({number},\n{wrap(found)})")
        collations.append(f'BYTE_COLLATION({number}, "{collation}", {name.upper()}, {table})')

def write(file, what, *parts):
    text = f"/* Made by gen_charsets.py. {what} */\n"
    for macro, lines in parts:
        text += f"#ifdef BYTE_{macro}\n" + "\n".join(lines) + f"\n#undef BYTE_{macro}\n#endif\n"
    (pathlib.Path(__file__).parent / file).write_text(text)


write("charset_bytes.inc", "Single-byte character sets.", ("CHARSET", sets), ("MAP", maps))
write("coll_bytes8.inc", "Their collations.", ("WEIGHTS", weights), ("COLLATION", collations))
