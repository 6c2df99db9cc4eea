/* Splits SQL text into statements and statements into tokens.
 *
 * Version comments: the body of `/ *!NNNNN … * /` and `/ *M!NNNNNN … * /` is read as SQL when the
 * version is not above ours; MySQL's 5.7 to 9.x numbers are skipped as MariaDB skips them. */
#include "lexer.h"

#include <ctype.h>
#include <string.h>

#include "host.h"

void lexer_open(struct lexer *lx, const char *sql, size_t len, struct arena *arena)
{
    *lx = (struct lexer){.sql = sql, .len = len, .arena = arena};
}

static int at(const struct lexer *lx, size_t ahead)
{
    return lx->pos + ahead < lx->len ? (unsigned char)lx->sql[lx->pos + ahead] : -1;
}

static bool is_word_char(int c)
{
    return c == '_' || c == '$' || c >= 0x80 || isalnum(c);
}

/* Length of a version comment's opening at the position, 0 if it is an ordinary comment;
 * *run says whether the body is to be executed. */
static size_t version_comment(const struct lexer *lx, bool *run)
{
    size_t n = 2;
    bool maria = at(lx, 2) == 'M' && at(lx, 3) == '!';
    if (maria)
        n = 4;
    else if (at(lx, 2) == '!')
        n = 3;
    else
        return 0;
    long version = 0;
    size_t digits = 0;
    while (digits < 6 && isdigit(at(lx, n + digits)))
        version = version * 10 + (at(lx, n + digits++) - '0');
    if (digits < 5) {
        digits = 0;
        version = 0;
    }
    *run = version <= HOST_VERSION_ID && (maria || version < 50700 || version > 99999);
    return n + digits;
}

static void skip_comment_body(struct lexer *lx)
{
    while (lx->pos < lx->len && !(at(lx, 0) == '*' && at(lx, 1) == '/'))
        lx->pos++;
    lx->pos = lx->pos + 2 <= lx->len ? lx->pos + 2 : lx->len;
}

static void skip_line(struct lexer *lx)
{
    while (lx->pos < lx->len && lx->sql[lx->pos] != '\n')
        lx->pos++;
}

static void skip_blank(struct lexer *lx)
{
    for (;;) {
        int c = at(lx, 0), d = at(lx, 1);
        if (c < 0)
            return;
        if (isspace(c)) {
            lx->pos++;
        } else if (c == '#' || (c == '-' && d == '-' && (at(lx, 2) < 0 || isspace(at(lx, 2))))) {
            skip_line(lx);
        } else if (c == '/' && d == '*') {
            bool run = false;
            size_t n = version_comment(lx, &run);
            if (n && run) {
                lx->pos += n;
                lx->in_version_comment++;
            } else {
                lx->pos += 2;
                skip_comment_body(lx);
            }
        } else if (c == '*' && d == '/' && lx->in_version_comment) {
            lx->pos += 2;
            lx->in_version_comment--;
        } else {
            return;
        }
    }
}

static void finish(struct lexer *lx, struct token *t, enum token_kind kind, const char *text,
                   size_t len)
{
    t->kind = kind;
    t->text = text;
    t->len = len;
    t->end = lx->pos;
}

static void bad(struct lexer *lx, struct token *t, const char *why)
{
    lx->pos = lx->len;
    finish(lx, t, T_BAD, why, strlen(why));
}

static char unescape(int c)
{
    switch (c) {
    case '0': return 0;
    case 'b': return '\b';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'Z': return 26;
    default: return (char)c;
    }
}

/* One quoted piece at the position, decoded to `out` (room for what is left). False: no end quote. */
static bool quoted_piece(struct lexer *lx, char *out, size_t *len, bool escapes)
{
    int quote = at(lx, 0);
    size_t n = *len;
    lx->pos++;
    for (;;) {
        int c = at(lx, 0);
        if (c < 0)
            return false;
        if (c == quote) {
            if (at(lx, 1) != quote)
                break;
            lx->pos++;
        } else if (c == '\\' && escapes) {
            lx->pos++;
            c = at(lx, 0);
            if (c < 0)
                return false;
            if (c == '%' || c == '_')
                out[n++] = '\\';
            else
                c = (unsigned char)unescape(c);
        }
        out[n++] = (char)c;
        lx->pos++;
    }
    lx->pos++;
    *len = n;
    return true;
}

/* Bytes that the quoted piece at the position takes at most, so that the arena gives no more. */
static size_t quoted_room(const struct lexer *lx)
{
    char quote = lx->sql[lx->pos];
    size_t p = lx->pos + 1;
    while (p < lx->len && lx->sql[p] != quote)
        p += lx->sql[p] == '\\' ? 2 : 1;
    return p - lx->pos;
}

static void lex_string(struct lexer *lx, struct token *t)
{
    char *out = NULL;
    size_t len = 0;
    for (;;) {
        /* A doubled quote ends quoted_room early, so a piece may need several rooms: measure all. */
        struct lexer probe = *lx;
        size_t room = 0;
        do {
            size_t n = quoted_room(&probe);
            room += n + 1;
            probe.pos += n + 1;
        } while (probe.pos < probe.len && probe.sql[probe.pos] == lx->sql[lx->pos]);
        char *grown = (char *)arena_bytes(lx->arena, len + room + 1);
        if (len)
            memcpy(grown, out, len);
        out = grown;
        if (!quoted_piece(lx, out, &len, true)) {
            bad(lx, t, "a string has no end");
            return;
        }
        struct lexer after = *lx;
        skip_blank(lx);
        if (at(lx, 0) != '\'' && at(lx, 0) != '"') {
            *lx = after;
            break;
        }
    }
    out[len] = 0;
    finish(lx, t, T_STRING, out, len);
}

static void lex_quoted_name(struct lexer *lx, struct token *t)
{
    struct lexer probe = *lx;
    size_t len = 0;
    while (probe.pos < probe.len && (probe.pos == lx->pos || probe.sql[probe.pos] != '\n'))
        probe.pos++;
    char *out = (char *)arena_bytes(lx->arena, probe.pos - lx->pos + 512);
    if (!memchr(lx->sql + lx->pos + 1, '`', lx->len - lx->pos - 1) ||
        !quoted_piece(lx, out, &len, false)) {
        bad(lx, t, "a quoted name has no end");
        return;
    }
    out[len] = 0;
    finish(lx, t, T_QUOTED, out, len);
}

static int hex_digit(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = tolower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void hex_bytes(struct lexer *lx, struct token *t, const char *digits, size_t n)
{
    uint8_t *out = arena_bytes(lx->arena, n / 2 + 2);
    size_t len = 0, i = 0;
    if (n % 2)
        out[len++] = (uint8_t)hex_digit(digits[i++]);
    for (; i < n; i += 2)
        out[len++] = (uint8_t)(hex_digit(digits[i]) << 4 | hex_digit(digits[i + 1]));
    finish(lx, t, T_HEX, (char *)out, len);
}

static void bit_bytes(struct lexer *lx, struct token *t, const char *digits, size_t n)
{
    size_t len = (n + 7) / 8;
    uint8_t *out = arena_alloc(lx->arena, len + 1);
    for (size_t i = 0; i < n; i++)
        if (digits[n - 1 - i] == '1')
            out[len - 1 - i / 8] |= (uint8_t)(1u << (i % 8));
    finish(lx, t, T_BITS, (char *)out, len);
}

/* x'…', b'…', 0x…, 0b… at the position. */
static bool lex_bytes(struct lexer *lx, struct token *t)
{
    int c = tolower(at(lx, 0)), d = at(lx, 1);
    bool hex;
    size_t digits = 0;
    if ((c == 'x' || c == 'b') && d == '\'') {
        hex = c == 'x';
        while (at(lx, 2 + digits) >= 0 && at(lx, 2 + digits) != '\'')
            digits++;
        for (size_t i = 0; i < digits; i++)
            if (hex ? hex_digit(at(lx, 2 + i)) < 0 : (at(lx, 2 + i) & ~1) != '0')
                return false;
        if (at(lx, 2 + digits) < 0 || (hex && digits % 2))
            return false;
        const char *from = lx->sql + lx->pos + 2;
        lx->pos += digits + 3;
        hex ? hex_bytes(lx, t, from, digits) : bit_bytes(lx, t, from, digits);
        return true;
    }
    if (c != '0' || (d != 'x' && d != 'b'))
        return false;
    hex = d == 'x';
    while (hex ? hex_digit(at(lx, 2 + digits)) >= 0 : (at(lx, 2 + digits) & ~1) == '0')
        digits++;
    if (!digits || is_word_char(at(lx, 2 + digits)))
        return false;
    const char *from = lx->sql + lx->pos + 2;
    lx->pos += digits + 2;
    hex ? hex_bytes(lx, t, from, digits) : bit_bytes(lx, t, from, digits);
    return true;
}

/* A number, or a word that begins with digits (`1a` is a name). */
static void lex_number(struct lexer *lx, struct token *t)
{
    size_t start = lx->pos, n = 0;
    enum token_kind kind = T_INTEGER;
    while (isdigit(at(lx, n)))
        n++;
    if (at(lx, n) == '.') {
        kind = T_DECIMAL;
        n++;
        while (isdigit(at(lx, n)))
            n++;
    }
    if (tolower(at(lx, n)) == 'e') {
        size_t e = n + 1;
        if (at(lx, e) == '+' || at(lx, e) == '-')
            e++;
        if (isdigit(at(lx, e))) {
            kind = T_FLOAT;
            n = e;
            while (isdigit(at(lx, n)))
                n++;
        }
    }
    if (kind == T_INTEGER && is_word_char(at(lx, n))) {
        kind = T_WORD;
        while (is_word_char(at(lx, n)))
            n++;
    }
    lx->pos += n;
    finish(lx, t, kind, arena_strndup(lx->arena, lx->sql + start, n), n);
}

static void lex_variable(struct lexer *lx, struct token *t)
{
    bool system = at(lx, 1) == '@';
    lx->pos += system ? 2 : 1;
    int c = at(lx, 0);
    if (!system && (c == '`' || c == '\'' || c == '"')) {
        if (c == '`')
            lex_quoted_name(lx, t);
        else
            lex_string(lx, t);
        if (t->kind != T_BAD)
            t->kind = T_USER_VAR;
        return;
    }
    size_t start = lx->pos;
    while (is_word_char(at(lx, 0)) || at(lx, 0) == '.')
        lx->pos++;
    finish(lx, t, system ? T_SYS_VAR : T_USER_VAR,
           arena_strndup(lx->arena, lx->sql + start, lx->pos - start), lx->pos - start);
}

static void lex_operator(struct lexer *lx, struct token *t)
{
    static const char *const ops[] = {"<=>", "<=", ">=", "<>", "!=", ":=", "&&", "||", "<<", ">>"};
    size_t n = 1;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        size_t len = strlen(ops[i]);
        if (lx->len - lx->pos >= len && !memcmp(lx->sql + lx->pos, ops[i], len)) {
            n = len;
            break;
        }
    }
    const char *text = arena_strndup(lx->arena, lx->sql + lx->pos, n);
    lx->pos += n;
    finish(lx, t, T_OP, text, n);
}

void lexer_next(struct lexer *lx, struct token *t)
{
    skip_blank(lx);
    t->offset = lx->pos;
    int c = at(lx, 0);
    if (c < 0) {
        finish(lx, t, T_END, "", 0);
    } else if (c == '\'' || c == '"') {
        lex_string(lx, t);
    } else if ((c == 'n' || c == 'N') && at(lx, 1) == '\'') {
        lx->pos++; /* a national string: utf8 as all others */
        lex_string(lx, t);
    } else if (c == '`') {
        lex_quoted_name(lx, t);
    } else if (c == '@') {
        lex_variable(lx, t);
    } else if (lex_bytes(lx, t)) {
        return;
    } else if (isdigit(c) || (c == '.' && isdigit(at(lx, 1)))) {
        lex_number(lx, t);
    } else if (is_word_char(c)) {
        size_t start = lx->pos;
        while (is_word_char(at(lx, 0)))
            lx->pos++;
        finish(lx, t, T_WORD, arena_strndup(lx->arena, lx->sql + start, lx->pos - start),
               lx->pos - start);
    } else {
        lex_operator(lx, t);
    }
}
