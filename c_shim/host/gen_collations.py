#!/usr/bin/env python3
"""Writes coll_bytes.inc, coll_general.inc, coll_unicode_1.inc, coll_unicode_2.inc, filename.inc.

Input: what a stock MariaDB 10.11 says, in the current directory:
  w.tsv    SELECT seq, HEX(WEIGHT_STRING(CONVERT(CHAR(seq USING utf32) USING utf8mb4) COLLATE utf8mb4_unicode_ci)),
           HEX(WEIGHT_STRING(CONVERT(CHAR(seq USING utf32) USING utf8mb4) COLLATE utf8mb4_general_ci))
           FROM mysql.seq_0_to_65535 WHERE seq NOT BETWEEN 55296 AND 57343
  l<N>.tsv SELECT seq, HEX(WEIGHT_STRING(CHAR(seq USING latin1) COLLATE <collation number N>))
           FROM mysql.seq_0_to_255 (l11.tsv: ascii, 0 to 127)
  fn.tsv   SELECT seq, HEX(CONVERT(CONVERT(CHAR(seq USING utf32) USING utf8mb4) USING filename))
           FROM mysql.seq_1_to_65535 WHERE seq NOT BETWEEN 55296 AND 57343
"""
import sys

out = sys.argv[1] if len(sys.argv) > 1 else "."


def wrap(words, sep=","):
    lines, line = [], ""
    for w in words:
        if len(line) + len(w) + 1 > 99:
            lines.append(line)
            line = ""
        line += w + sep
    return "\n".join(lines + [line]) + "\n"


def rows(name):
    for line in open(name):
        p = line.rstrip("\n").split("\t")
        yield int(p[0]), p[1:]


text = "/* Made by gen_collations.py. Weights of single-byte collations. */\n"
for n in (5, 8, 15, 48, 49, 94, 11):
    w = {c: v[0] for c, v in rows(f"l{n}.tsv")}
    table = [int(w.get(i, "") or "%02X" % i, 16) for i in range(256)]
    text += f"static const uint8_t weights_{n}[256] = {{\n" + wrap(map(str, table)) + "};\n"


open(f"{out}/coll_bytes.inc", "w").write(text)

general, uca = {}, {}
for c, v in rows("w.tsv"):
    uca[c] = [int(v[0][i:i + 4], 16) for i in range(0, len(v[0]), 4)]
    general[c] = int(v[1], 16)

pairs = [(c, w) for c, w in sorted(general.items()) if c != w]
text = "/* Made by gen_collations.py. general_ci: characters whose weight is another one. */\n"
text += wrap(f"{c},{w}" for c, w in pairs)
open(f"{out}/coll_general.inc", "w").write(text)


def implicit(c):
    base = 0xFB40 if 0x4E00 <= c <= 0x9FA5 else 0xFB80 if 0x3400 <= c <= 0x4DB5 else 0xFBC0
    return [base + (c >> 15), (c & 0x7FFF) | 0x8000]


# A run: first character, number of characters, then for each its weights; a word 0xFFF0 + n stands
# before n weights where n is not 1.
words, run, last = [], None, None
for c in sorted(uca):
    if uca[c] == implicit(c):
        continue
    if last is None or c != last + 1:
        words += [c, 0]
        run = len(words) - 1
    words[run] += 1
    last = c
    if len(uca[c]) != 1:
        words.append(0xFFF0 + len(uca[c]))
    words += uca[c]
lines = wrap(map(str, words)).split("\n")
half = len(lines) // 2
head = "/* Made by gen_collations.py. unicode_ci (UCA 4.0.0) weights, part %d. */\n"
open(f"{out}/coll_unicode_1.inc", "w").write(head % 1 + "\n".join(lines[:half]) + "\n")
open(f"{out}/coll_unicode_2.inc", "w").write(head % 2 + "\n".join(lines[half:]))

short = {c: bytes.fromhex(v[0]).decode() for c, v in rows("fn.tsv")}
text = "/* Made by gen_collations.py. Characters whose file name is @ and two letters. */\n"
text += wrap(f"{c},{ord(n[1]) << 8 | ord(n[2])}" for c, n in sorted(short.items()) if len(n) == 3)
open(f"{out}/filename.inc", "w").write(text)
