/* What INSERT and UPDATE share: storing with checks, comparing and describing rows. */
#include <stdio.h>
#include <string.h>

#include "exec.h"

static const char *type_word(const struct column *c)
{
    switch (c->type) {
    case CT_FLOAT:
    case CT_DOUBLE: return "double";
    case CT_DECIMAL: return "decimal";
    case CT_DATE: return "date";
    case CT_TIME: return "time";
    case CT_DATETIME:
    case CT_TIMESTAMP: return "datetime";
    case CT_UUID: return "uuid";
    case CT_INET4: return "inet4";
    case CT_INET6: return "inet6";
    case CT_CHAR: case CT_VARCHAR: case CT_TEXT: case CT_ENUM: case CT_SET: return "string";
    default: return "integer";
    }
}

/* The first byte that the column's character set cannot take, or the length. */
static size_t first_bad(const struct column *c, const struct value *t)
{
    uint8_t made[4];
    for (size_t p = 0; p < t->s.len;) {
        uint32_t code;
        unsigned n = coll_decode(t->collation, (const uint8_t *)t->s.ptr + p, t->s.len - p, &code);
        if (!n || !coll_encode(c->collation, code, made))
            return p;
        p += n;
    }
    return t->s.len;
}

/* A value for an error text: from what does not fit, bytes as \xNN. */
static const char *shown(struct arena *a, const struct column *column, const struct value *v)
{
    struct value t = value_to_text(a, v);
    struct strbuf b = {0};
    bool is_text = column->type == CT_CHAR || column->type == CT_VARCHAR ||
                   column->type == CT_TEXT || column->type == CT_JSON;
    size_t good = is_text && v->kind == V_STRING ? first_bad(column, &t) : t.s.len;
    for (size_t i = good < t.s.len ? good : 0; i < t.s.len && b.len < 100; i++) {
        unsigned char c = (unsigned char)t.s.ptr[i];
        if (c < 0x20 || (good < t.s.len && c >= 0x80))
            buf_printf(&b, "\\x%02X", c);
        else
            buf_char(&b, (char)c);
    }
    char *text = arena_strndup(a, b.data ? b.data : "", b.len);
    buf_free(&b);
    return text;
}

static unsigned warn(session *s, unsigned code, const char *a, const char *b, const table_def *def,
                     const struct column *c, bool as_error)
{
    unsigned long row = (unsigned long)s->row_number;
    if (code == 1366 || code == 1292) {
        if (as_error)
            return sql_error(s, code, a, b, def->db, def->name, c->name, row);
        sql_warning(s, code, a, b, def->db, def->name, c->name, row);
        return 0;
    }
    if (code == 1048) {
        if (as_error)
            return sql_error(s, code, c->name);
        sql_warning(s, code, c->name);
        return 0;
    }
    if (as_error)
        return sql_error(s, code, c->name, row);
    sql_warning(s, code, c->name, row);
    return 0;
}

/* NULL for a NOT NULL column where that is no error: the type's empty value. */
static void store_empty(session *s, const table_def *def, const struct column *c, uint8_t *row)
{
    struct value v = c->type >= CT_CHAR ? value_string("", 0, COLL_UTF8MB4) : value_int(0);
    (void)def;
    value_store(&s->arena, c, row, &v, 0);
}

static unsigned check_json(session *s, const table_def *def, const struct column *c, const uint8_t *row)
{
    uint32_t len;
    if (c->type != CT_JSON || rec_is_null(c, row))
        return 0;
    const uint8_t *text = rec_blob(c, row, &len);
    if (json_valid((const char *)text, len))
        return 0;
    return sql_error(s, 4025, def->name, c->name, def->db, def->name);
}

unsigned store_checked(session *s, const table_def *def, uint32_t column, uint8_t *row,
                       const struct value *v, bool ignore)
{
    static const uint16_t codes[] = {[ST_OUT_OF_RANGE] = 1264, [ST_TOO_LONG] = 1406,
                                     [ST_TRUNCATED] = 1265,    [ST_BAD_VALUE] = 1366,
                                     [ST_BAD_TEMPORAL] = 1292, [ST_BAD_NULL] = 1048};
    const struct column *c = &def->columns[column];
    enum store_result r = value_store(&s->arena, c, row, v, s->zone_seconds);
    if (r == ST_OK)
        return check_json(s, def, c, row);
    if (r == ST_TRUNCATED_NOTE) {
        sql_note(s, 1265, c->name, (unsigned long)s->row_number);
        return check_json(s, def, c, row);
    }
    bool error = !ignore && (s->strict || r == ST_BAD_NULL);
    unsigned code = codes[r];
    bool temporal = c->type >= CT_DATE && c->type <= CT_TIMESTAMP;
    if (!error && (code == 1406 || (code == 1292 && temporal)))
        code = 1265; /* without strict mode a long value is "truncated" */
    const char *text = r == ST_BAD_VALUE || r == ST_BAD_TEMPORAL ? shown(&s->arena, c, v) : "";
    if (r == ST_BAD_NULL)
        store_empty(s, def, c, row);
    unsigned result = warn(s, code, type_word(c), text, def, c, error);
    return result ? result : check_json(s, def, c, row);
}

void rec_copy_blobs(struct arena *a, const table_def *def, uint8_t *row)
{
    for (uint32_t i = 0; i < def->column_count; i++) {
        const struct column *c = &def->columns[i];
        uint32_t len;
        if (!col_is_blob(c) || rec_is_null(c, row))
            continue;
        const uint8_t *p = rec_blob(c, row, &len);
        rec_set_blob(c, row, (const uint8_t *)arena_strndup(a, (const char *)p, len), len);
    }
}

bool rec_equal(const table_def *def, const uint8_t *a, const uint8_t *b)
{
    for (uint32_t i = 0; i < def->column_count; i++) {
        const struct column *c = &def->columns[i];
        bool null = rec_is_null(c, a);
        if (null != rec_is_null(c, b))
            return false;
        if (null)
            continue;
        const uint8_t *x = a + c->offset, *y = b + c->offset;
        uint32_t x_len = c->pack_length, y_len = c->pack_length;
        if (col_is_blob(c)) {
            x = rec_blob(c, a, &x_len);
            y = rec_blob(c, b, &y_len);
        } else if (c->length_bytes) {
            x_len = x[0] | (c->length_bytes == 2 ? (uint32_t)x[1] << 8 : 0);
            y_len = y[0] | (c->length_bytes == 2 ? (uint32_t)y[1] << 8 : 0);
            x += c->length_bytes;
            y += c->length_bytes;
        }
        if (x_len != y_len || (x_len && memcmp(x, y, x_len)))
            return false;
    }
    return true;
}

/* The entry of error 1062: the parts' values with '-' between them. */
char *key_text(struct arena *a, const table_def *def, uint32_t key, const uint8_t *row)
{
    const struct key *k = &def->keys[key];
    struct strbuf b = {0};
    for (uint32_t i = 0; i < k->part_count; i++) {
        const struct column *c = &def->columns[k->parts[i].col];
        struct value v = value_load(a, c, row, 0);
        bool lossy = false;
        if (i)
            buf_char(&b, '-');
        if (v.kind == V_NULL) {
            buf_str(&b, "NULL");
            continue;
        }
        v = value_to_text(a, &v);
        if (k->parts[i].prefix)
            v.s.len = coll_prefix(c->collation, (const uint8_t *)v.s.ptr, v.s.len,
                                  k->parts[i].length / coll_mbmaxlen(c->collation));
        if (coll_is_binary(v.collation)) {
            for (size_t n = 0; n < v.s.len; n++)
                buf_printf(&b, (unsigned char)v.s.ptr[n] < 0x20 || (unsigned char)v.s.ptr[n] > 0x7E
                                   ? "\\x%02X" : "%c", (unsigned char)v.s.ptr[n]);
            continue;
        }
        v = value_convert(a, &v, COLL_UTF8MB4, &lossy);
        buf_add(&b, v.s.ptr, v.s.len);
    }
    char *text = arena_strndup(a, b.data ? b.data : "", b.len > 180 ? 180 : b.len);
    buf_free(&b);
    return text;
}
