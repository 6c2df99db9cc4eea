/* Table definitions as the library wants them, and back from its dictionary. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "xt_engine.h"

#define BINARY_COLLATION 63

bool xt_table_name(char name[XT_NAME_MAX], const char *db, const char *table)
{
    size_t length;

    if (!filename_encode(db, name, XT_NAME_MAX / 2))
        return false;
    length = strlen(name);
    name[length++] = '/';
    return filename_encode(table, name + length, XT_NAME_MAX - length);
}

const char *xt_row_format_name(uint32_t row_format)
{
    static const char *const names[] = { "Dynamic", "Redundant", "Compact", "Dynamic",
                                         "Compressed" };

    return row_format < 5 ? names[row_format] : "Dynamic";
}

/* ------------------------------------------------------------------------------ the way there */

static uint8_t blob_type(uint8_t length_bytes)
{
    static const uint8_t types[] = { XT_TYPE_TINY_BLOB, XT_TYPE_BLOB, XT_TYPE_MEDIUM_BLOB,
                                     XT_TYPE_LONG_BLOB };

    return types[(length_bytes - 1) & 3];
}

static uint8_t column_type(const struct column *c)
{
    static const uint8_t types[CT_TYPE_COUNT] = {
        [CT_TINYINT] = XT_TYPE_TINY, [CT_SMALLINT] = XT_TYPE_SHORT,
        [CT_MEDIUMINT] = XT_TYPE_INT24, [CT_INT] = XT_TYPE_LONG, [CT_BIGINT] = XT_TYPE_LONGLONG,
        [CT_FLOAT] = XT_TYPE_FLOAT, [CT_DOUBLE] = XT_TYPE_DOUBLE,
        [CT_DECIMAL] = XT_TYPE_NEWDECIMAL, [CT_DATE] = XT_TYPE_NEWDATE, [CT_TIME] = XT_TYPE_TIME2,
        [CT_DATETIME] = XT_TYPE_DATETIME2, [CT_TIMESTAMP] = XT_TYPE_TIMESTAMP2,
        [CT_YEAR] = XT_TYPE_YEAR, [CT_CHAR] = XT_TYPE_STRING, [CT_BINARY] = XT_TYPE_STRING,
        [CT_VARCHAR] = XT_TYPE_VARCHAR, [CT_VARBINARY] = XT_TYPE_VARCHAR,
        [CT_ENUM] = XT_TYPE_ENUM, [CT_SET] = XT_TYPE_SET, [CT_BIT] = XT_TYPE_BIT,
        [CT_UUID] = XT_TYPE_STRING, [CT_INET4] = XT_TYPE_STRING, [CT_INET6] = XT_TYPE_STRING,
        [CT_GEOMETRY] = XT_TYPE_GEOMETRY,
    };

    if (c->type == CT_TEXT || c->type == CT_BLOB || c->type == CT_JSON)
        return blob_type(c->length_bytes);
    return types[c->type];
}

static bool has_collation(const struct column *c)
{
    return c->type == CT_CHAR || c->type == CT_VARCHAR || c->type == CT_TEXT || c->type == CT_JSON;
}

static uint32_t octets(const struct column *c)
{
    switch (c->type) {
    case CT_VARCHAR:
    case CT_VARBINARY:
        return c->length;
    case CT_TEXT:
    case CT_BLOB:
    case CT_JSON:
    case CT_GEOMETRY:
        return 0;
    default:
        return c->pack_length;
    }
}

/* UUID and INET are unsigned for a server, which tells them from BINARY in the dictionary. */
static bool is_unsigned(const struct column *c)
{
    return c->flags & COL_UNSIGNED || c->type == CT_UUID || c->type == CT_INET4 ||
           c->type == CT_INET6;
}

static void make_column(xt_column *to, const struct column *c, bool auto_increment)
{
    *to = (xt_column){
        .name = c->name,
        .offset = c->offset,
        .length = c->pack_length,
        .octets = octets(c),
        .collation = has_collation(c) ? c->collation : BINARY_COLLATION,
        .flags = (is_unsigned(c) ? XT_COLUMN_UNSIGNED : 0) |
                 (c->flags & COL_NOT_NULL ? XT_COLUMN_NOT_NULL : 0) |
                 (auto_increment ? XT_COLUMN_AUTO_INCREMENT : 0),
        .null_offset = c->null_byte,
        .null_mask = c->null_mask,
        .type = column_type(c),
        .length_bytes = c->length_bytes,
    };
    if (c->type == CT_DECIMAL || c->type == CT_TIME || c->type == CT_DATETIME ||
        c->type == CT_TIMESTAMP)
        to->decimals = c->decimals;
    if (c->type == CT_DECIMAL || c->type == CT_BIT)
        to->precision = c->length;
}

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);

    if (memory == NULL)
        abort();
    return memory;
}

void xt_template_make(xt_template *t, const table_def *def)
{
    uint32_t parts = 0, part = 0;

    for (uint32_t k = 0; k < def->key_count; k++)
        parts += def->keys[k].part_count;
    t->columns = zeroed(def->column_count, sizeof *t->columns);
    t->keys = zeroed(def->key_count, sizeof *t->keys);
    t->parts = zeroed(parts, sizeof *t->parts);
    for (uint32_t c = 0; c < def->column_count; c++)
        make_column(&t->columns[c], &def->columns[c], c == def->autoinc_col);
    for (uint32_t k = 0; k < def->key_count; k++) {
        const struct key *key = &def->keys[k];

        t->keys[k] = (xt_key){
            .name = key->name, .parts = &t->parts[part], .parts_count = key->part_count,
            .flags = (key->flags & KEY_UNIQUE ? XT_KEY_UNIQUE : 0) |
                     (key->flags & KEY_PRIMARY ? XT_KEY_PRIMARY | XT_KEY_UNIQUE : 0),
        };
        for (uint32_t p = 0; p < key->part_count; p++)
            t->parts[part++] = (xt_key_part){
                .column = key->parts[p].col, .length = key->parts[p].length,
                .flags = key->parts[p].descending ? XT_PART_DESC : 0,
            };
    }
    t->def = (xt_table_def){
        .struct_size = sizeof t->def, .columns = t->columns, .keys = t->keys,
        .columns_count = def->column_count, .keys_count = def->key_count,
        .row_length = def->row_length, .null_bytes = def->null_bytes,
    };
}

void xt_template_free(xt_template *t)
{
    free(t->columns);
    free(t->keys);
    free(t->parts);
}

/* ------------------------------------------------------------------------------ the way back */

static uint8_t type_back(const xt_column *c)
{
    bool binary = c->collation == BINARY_COLLATION;

    switch (c->type) {
    case XT_TYPE_TINY: return CT_TINYINT;
    case XT_TYPE_SHORT: return CT_SMALLINT;
    case XT_TYPE_INT24: return CT_MEDIUMINT;
    case XT_TYPE_LONG: return CT_INT;
    case XT_TYPE_LONGLONG: return CT_BIGINT;
    case XT_TYPE_FLOAT: return CT_FLOAT;
    case XT_TYPE_DOUBLE: return CT_DOUBLE;
    case XT_TYPE_YEAR: return CT_YEAR;
    case XT_TYPE_NEWDECIMAL: return CT_DECIMAL;
    case XT_TYPE_NEWDATE: return CT_DATE;
    case XT_TYPE_TIME2: return CT_TIME;
    case XT_TYPE_DATETIME2: return CT_DATETIME;
    case XT_TYPE_TIMESTAMP2: return CT_TIMESTAMP;
    case XT_TYPE_VARCHAR: return binary ? CT_VARBINARY : CT_VARCHAR;
    case XT_TYPE_BIT: return CT_BIT;
    case XT_TYPE_TINY_BLOB:
    case XT_TYPE_BLOB:
    case XT_TYPE_MEDIUM_BLOB:
    case XT_TYPE_LONG_BLOB: return binary ? CT_BLOB : CT_TEXT;
    case XT_TYPE_GEOMETRY: return CT_GEOMETRY;
    default: return binary ? CT_BINARY : CT_CHAR;
    }
}

static void column_back(struct column *to, const xt_column *c)
{
    static const uint8_t widths[] = { 4, 6, 9, 11, 20 };
    uint32_t mbmaxlen = coll_mbmaxlen(c->collation);

    to->name = strdup(c->name);
    to->type = type_back(c);
    to->collation = c->collation;
    to->decimals = c->type == XT_TYPE_FLOAT || c->type == XT_TYPE_DOUBLE ? 31 : c->decimals;
    to->flags = (c->flags & XT_COLUMN_UNSIGNED && c->type != XT_TYPE_STRING ? COL_UNSIGNED : 0) |
                (c->flags & XT_COLUMN_NOT_NULL ? COL_NOT_NULL : 0) |
                (c->flags & XT_COLUMN_AUTO_INCREMENT ? COL_AUTO_INC : 0);
    if (c->type == XT_TYPE_NEWDECIMAL || c->type == XT_TYPE_BIT)
        to->length = c->precision;
    else if (to->type == CT_TEXT || to->type == CT_BLOB || to->type == CT_GEOMETRY)
        to->length = c->length_bytes;
    else if (to->type <= CT_BIGINT) /* the display widths that CREATE TABLE gives */
        to->length = widths[to->type] - (uint32_t)(to->flags & COL_UNSIGNED && to->type != CT_BIGINT);
    else
        to->length = to->type == CT_YEAR ? 4 : c->octets;
    to->char_length = c->octets / (mbmaxlen > 0 ? mbmaxlen : 1);
}

static void key_back(struct key *to, const xt_key *k, const table_def *def)
{
    to->name = strdup(k->name);
    to->flags = (k->flags & XT_KEY_UNIQUE ? KEY_UNIQUE : 0) |
                (k->flags & XT_KEY_PRIMARY ? KEY_PRIMARY : 0);
    to->part_count = k->parts_count;
    to->parts = zeroed(k->parts_count, sizeof *to->parts);
    for (uint32_t p = 0; p < k->parts_count; p++) {
        to->parts[p].col = k->parts[p].column < def->column_count ? k->parts[p].column : 0;
        to->parts[p].length = k->parts[p].length;
        to->parts[p].descending = k->parts[p].flags & XT_PART_DESC;
    }
}

table_def *xt_def_from_description(const xt_description *description, const char *db,
                                   const char *name)
{
    const xt_table_def *from = &description->def;
    table_def *def = zeroed(1, sizeof *def);

    def->db = strdup(db);
    def->name = strdup(name);
    def->engine_name = strdup("InnoDB");
    def->column_count = from->columns_count;
    def->columns = zeroed(from->columns_count, sizeof *def->columns);
    def->key_count = from->keys_count;
    def->keys = zeroed(from->keys_count, sizeof *def->keys);
    def->primary_key = NO_KEY;
    def->autoinc_col = UINT32_MAX;
    def->collation = BINARY_COLLATION;
    def->row_format = (uint8_t)description->row_format;
    def->from_engine = true;
    def->refs = 1;
    for (uint32_t c = 0; c < from->columns_count; c++) {
        column_back(&def->columns[c], &from->columns[c]);
        if (def->columns[c].flags & COL_AUTO_INC)
            def->autoinc_col = c;
    }
    for (uint32_t k = 0; k < from->keys_count; k++) {
        key_back(&def->keys[k], &from->keys[k], def);
        if (def->keys[k].flags & KEY_PRIMARY)
            def->primary_key = k;
    }
    tabledef_layout(def);
    return def;
}
