/* Columns of a table definition: lengths, character sets, members, AUTO_INCREMENT. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "charset.h"
#include "exec.h"
#include "tabledef.h"

static bool is_text(uint8_t type)
{
    return type == CT_CHAR || type == CT_VARCHAR || type == CT_TEXT || type == CT_ENUM || type == CT_SET;
}

static bool column_collation(session *s, const struct column_spec *spec, struct column *c,
                             uint32_t table_collation)
{
    if (c->type == CT_JSON) {
        c->collation = COLL_UTF8MB4_BIN;
        return true;
    }
    if (!is_text(c->type)) {
        c->collation = COLL_BINARY;
        return true;
    }
    if (spec->charset || spec->collate)
        c->flags |= COL_EXPLICIT_CHARSET;
    c->collation = tabledef_collation(s, spec->charset, spec->collate, table_collation);
    if (c->collation && spec->binary_attribute && !spec->collate)
        c->collation = coll_bin_of(coll_charset(c->collation));
    if (!coll_is_binary(c->collation))
        return c->collation != 0;
    /* CHARACTER SET binary turns text into bytes. */
    if (c->type == CT_CHAR || c->type == CT_VARCHAR)
        c->type++;
    if (c->type == CT_TEXT)
        c->type = CT_BLOB;
    return true;
}

static void number_length(const struct column_spec *spec, struct column *c)
{
    static const uint8_t widths[] = {4, 6, 9, 11, 20};
    bool is_unsigned = spec->flags & COL_UNSIGNED;
    c->length = spec->has_length ? (uint32_t)spec->length
                                 : widths[c->type] - (uint32_t)(is_unsigned && c->type != CT_BIGINT);
}

static bool real_length(const struct column_spec *spec, struct column *c)
{
    c->decimals = 31;
    if (spec->has_length && spec->has_decimals) {
        c->decimals = (uint8_t)(spec->decimals > 30 ? 30 : spec->decimals);
        c->length = (uint32_t)spec->length;
        return spec->length <= 255 && spec->decimals <= spec->length;
    }
    if (c->type == CT_FLOAT && spec->has_length && spec->length > 24)
        c->type = CT_DOUBLE;
    c->length = c->type == CT_FLOAT ? 12 : 22;
    return !spec->has_length || spec->length <= 53;
}

static bool string_length(session *s, const struct column_spec *spec, struct column *c)
{
    bool varying = c->type == CT_VARCHAR || c->type == CT_VARBINARY;
    uint32_t max = varying ? 65535 / coll_mbmaxlen(c->collation) : 255;
    if (varying && !spec->has_length) {
        sql_error(s, 1064, c->name, 1);
        return false;
    }
    c->char_length = spec->has_length ? (uint32_t)(spec->length > UINT32_MAX ? UINT32_MAX : spec->length) : 1;
    if (c->char_length > max) {
        sql_error(s, 1074, c->name, (unsigned long)max);
        return false;
    }
    return true;
}

/* Errors of lengths that a number type cannot have. */
static bool check_length(session *s, const struct column_spec *spec, const struct column *c)
{
    unsigned long width = c->type == CT_BIT ? 64 : 255;
    if (c->type == CT_DECIMAL && spec->length > DEC_MAX_DIGITS)
        sql_error(s, 1426, c->name, DEC_MAX_DIGITS);
    else if (c->type == CT_DECIMAL && spec->decimals > DEC_MAX_SCALE)
        sql_error(s, 1425, c->name, DEC_MAX_SCALE);
    else if (c->type >= CT_TIME && c->type <= CT_TIMESTAMP && spec->length > 6)
        sql_error(s, 1426, c->name, 6);
    else if ((c->type <= CT_DOUBLE || c->type == CT_BIT) && spec->length > width)
        sql_error(s, 1439, c->name, width);
    else if (c->type >= CT_FLOAT && c->type <= CT_DECIMAL && spec->has_decimals &&
             spec->decimals > spec->length)
        sql_error(s, 1427, c->name);
    else
        return true;
    return false;
}

static bool column_length(session *s, const struct column_spec *spec, struct column *c)
{
    bool ok = true;
    if (!check_length(s, spec, c))
        return false;
    switch (c->type) {
    case CT_TINYINT: case CT_SMALLINT: case CT_MEDIUMINT: case CT_INT: case CT_BIGINT:
        number_length(spec, c);
        break;
    case CT_FLOAT: case CT_DOUBLE: ok = real_length(spec, c); break;
    case CT_DECIMAL:
        c->length = spec->has_length && spec->length ? (uint32_t)spec->length : 10;
        c->decimals = (uint8_t)spec->decimals;
        break;
    case CT_TIME: case CT_DATETIME: case CT_TIMESTAMP:
        c->decimals = (uint8_t)spec->length;
        break;
    case CT_YEAR: c->length = 4; break;
    case CT_CHAR: case CT_BINARY: case CT_VARCHAR: case CT_VARBINARY:
        return string_length(s, spec, c);
    case CT_TEXT: case CT_BLOB: case CT_JSON: case CT_GEOMETRY:
        c->length = (uint32_t)spec->length; /* length bytes */
        if (c->type == CT_GEOMETRY)
            c->decimals = (uint8_t)spec->decimals;
        if (spec->has_length) {
            uint64_t bytes = spec->length * coll_mbmaxlen(c->collation);
            c->length = bytes < 1u << 8 ? 1 : bytes < 1u << 16 ? 2 : bytes < 1u << 24 ? 3 : 4;
        }
        break;
    case CT_BIT:
        c->length = spec->has_length && spec->length ? (uint32_t)spec->length : 1;
        break;
    default: break;
    }
    if (!ok)
        sql_error(s, 1063, c->name);
    return ok;
}

static int member_order(const struct column *c, uint32_t i, uint32_t j)
{
    return coll_compare(c->collation, (uint8_t *)c->values[i], c->value_lens[i], (uint8_t *)c->values[j],
                        c->value_lens[j], coll_pads(c->collation));
}

static int member_compare(const void *a, const void *b, void *column)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    int order = member_order(column, i, j);
    return order ? order : (i > j) - (i < j);
}

/* The first member that equals one before it; the number of members if there is none. Sorted, since an
 * ENUM may have 65535. */
static uint32_t column_member_twice(struct column *c)
{
    uint32_t twice = c->value_count, *sorted = mem_alloc(c->value_count * sizeof *sorted);
    for (uint32_t i = 0; i < c->value_count; i++)
        sorted[i] = i;
    qsort_r(sorted, c->value_count, sizeof *sorted, member_compare, c);
    for (uint32_t i = 1; i < c->value_count; i++)
        if (sorted[i] < twice && !member_order(c, sorted[i - 1], sorted[i]))
            twice = sorted[i];
    free(sorted);
    return twice;
}

static bool column_members(session *s, const struct column_spec *spec, struct column *c)
{
    struct arena a = {0};
    if (!spec->value_count || (c->type == CT_SET && spec->value_count > 64))
        return !spec->value_count || (sql_error(s, 1063, c->name), false);
    c->value_count = spec->value_count;
    c->values = mem_alloc(c->value_count * sizeof *c->values);
    c->value_lens = mem_alloc(c->value_count * sizeof *c->value_lens);
    for (uint32_t i = 0; i < c->value_count; i++) {
        bool lossy = false;
        struct value v = value_string(spec->values[i], spec->value_lens[i], s->collation);
        while (v.s.len && v.s.ptr[v.s.len - 1] == ' ')
            v.s.len--;
        v = value_convert(&a, &v, c->collation, &lossy);
        c->values[i] = mem_strndup(v.s.ptr, v.s.len);
        c->value_lens[i] = (uint32_t)v.s.len;
    }
    arena_free(&a);
    uint32_t twice = column_member_twice(c);
    if (twice == c->value_count)
        return true;
    sql_error(s, 1291, c->name, c->values[twice], c->type == CT_ENUM ? "ENUM" : "SET");
    return false;
}

static bool column_autoinc(session *s, table_def *def, uint32_t i)
{
    struct column *c = &def->columns[i];
    if (!(c->flags & COL_AUTO_INC))
        return true;
    c->flags |= COL_NOT_NULL;
    if (c->type > CT_DOUBLE || c->flags & COL_HAS_DEFAULT) {
        sql_error(s, 1063, c->name);
        return false;
    }
    if (def->autoinc_col != UINT32_MAX) {
        sql_error(s, 1075);
        return false;
    }
    def->autoinc_col = i;
    return true;
}

static bool column_name(session *s, const table_def *def, uint32_t i, const char *name)
{
    size_t len = strlen(name);
    if (!len || name[len - 1] == ' ') {
        sql_error(s, 1166, name);
        return false;
    }
    if (coll_char_count(COLL_UTF8MB4, (const uint8_t *)name, len) > 64) {
        sql_error(s, 1059, name);
        return false;
    }
    for (uint32_t j = 0; j < i; j++)
        if (!strcasecmp(def->columns[j].name, name)) {
            sql_error(s, 1060, name);
            return false;
        }
    return true;
}

bool tabledef_columns(session *s, const struct create_table *ct, table_def *def)
{
    def->columns = mem_alloc(ct->column_count * sizeof *def->columns);
    for (uint32_t i = 0; i < ct->column_count; i++) {
        const struct column_spec *spec = &ct->columns[i];
        struct column *c = &def->columns[i];
        def->column_count = i + 1;
        c->name = mem_strdup(spec->name);
        c->type = spec->type;
        c->flags = spec->flags;
        c->comment = spec->comment && *spec->comment ? mem_strdup(spec->comment) : NULL;
        if (spec->primary)
            c->flags |= COL_NOT_NULL;
        bool can_now = c->type == CT_TIMESTAMP || c->type == CT_DATETIME;
        if (!can_now && c->flags & (COL_DEFAULT_NOW | COL_ON_UPDATE_NOW)) {
            sql_error(s, 1067, c->name);
            return false;
        }
        if (!column_name(s, def, i, spec->name) ||
            !column_collation(s, spec, c, def->collation) || !column_length(s, spec, c) ||
            !column_members(s, spec, c) || !column_autoinc(s, def, i))
            return false;
        column_layout(c);
    }
    return true;
}
