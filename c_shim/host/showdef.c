/* A definition as text: SHOW CREATE TABLE, column types. */
#include <stdio.h>
#include <string.h>

#include "catalog.h"
#include "charset.h"

static const char *const plain_names[CT_TYPE_COUNT] = {
    [CT_TINYINT] = "tinyint", [CT_SMALLINT] = "smallint", [CT_MEDIUMINT] = "mediumint",
    [CT_INT] = "int", [CT_BIGINT] = "bigint", [CT_FLOAT] = "float", [CT_DOUBLE] = "double",
    [CT_DECIMAL] = "decimal", [CT_DATE] = "date", [CT_TIME] = "time", [CT_DATETIME] = "datetime",
    [CT_TIMESTAMP] = "timestamp", [CT_YEAR] = "year", [CT_CHAR] = "char", [CT_BINARY] = "binary",
    [CT_VARCHAR] = "varchar", [CT_VARBINARY] = "varbinary", [CT_TEXT] = "text", [CT_BLOB] = "blob",
    [CT_JSON] = "longtext", [CT_ENUM] = "enum", [CT_SET] = "set", [CT_BIT] = "bit",
    [CT_UUID] = "uuid", [CT_INET4] = "inet4", [CT_INET6] = "inet6", [CT_GEOMETRY] = "geometry"};

static void print_members(const struct column *c, struct strbuf *out)
{
    struct arena a = {0};
    buf_char(out, '(');
    for (uint32_t i = 0; i < c->value_count; i++) {
        bool lossy = false;
        struct value v = value_string(c->values[i], c->value_lens[i], c->collation);
        v = value_convert(&a, &v, COLL_UTF8MB4, &lossy);
        if (i)
            buf_char(out, ',');
        buf_sql_string(out, v.s.ptr, v.s.len);
    }
    buf_char(out, ')');
    arena_free(&a);
}

const char *geometry_name(uint32_t kind)
{
    static const char *const names[] = {"geometry", "point", "linestring", "polygon", "multipoint",
                                        "multilinestring", "multipolygon", "geometrycollection"};
    return kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

void column_type_print(const struct column *c, struct strbuf *out)
{
    static const char *const sizes[] = {"", "tiny", "", "medium", "long"};
    if (c->type == CT_TEXT || c->type == CT_BLOB)
        buf_str(out, sizes[c->length_bytes]);
    bool geometry = c->type == CT_GEOMETRY && geometry_name(c->decimals);
    buf_str(out, geometry ? geometry_name(c->decimals) : plain_names[c->type]);
    switch (c->type) {
    case CT_TINYINT: case CT_SMALLINT: case CT_MEDIUMINT: case CT_INT: case CT_BIGINT:
    case CT_YEAR: case CT_BIT:
        buf_printf(out, "(%u)", c->length);
        break;
    case CT_FLOAT: case CT_DOUBLE:
        if (c->decimals < 31)
            buf_printf(out, "(%u,%u)", c->length, c->decimals);
        break;
    case CT_DECIMAL: buf_printf(out, "(%u,%u)", c->length, c->decimals); break;
    case CT_TIME: case CT_DATETIME: case CT_TIMESTAMP:
        if (c->decimals)
            buf_printf(out, "(%u)", c->decimals);
        break;
    case CT_CHAR: case CT_BINARY: case CT_VARCHAR: case CT_VARBINARY:
        buf_printf(out, "(%u)", c->char_length);
        break;
    case CT_ENUM: case CT_SET: print_members(c, out); break;
    default: break;
    }
    if (c->flags & COL_UNSIGNED && c->type <= CT_DECIMAL)
        buf_str(out, " unsigned");
    if (c->flags & COL_ZEROFILL && c->type <= CT_DECIMAL)
        buf_str(out, " zerofill");
}

static void print_now(const struct column *c, struct strbuf *out)
{
    if (c->decimals)
        buf_printf(out, "current_timestamp(%u)", c->decimals);
    else
        buf_str(out, "current_timestamp()");
}

static void print_column(const table_def *def, const struct column *c, struct strbuf *out)
{
    buf_str(out, "  ");
    buf_quoted(out, c->name, strlen(c->name), '`');
    buf_char(out, ' ');
    column_type_print(c, out);
    if (!coll_is_binary(c->collation) && c->collation != def->collation)
        buf_printf(out, " CHARACTER SET %s COLLATE %s", coll_charset(c->collation),
                   coll_name(c->collation));
    if (!c->null_mask)
        buf_str(out, " NOT NULL");
    else if (c->type == CT_TIMESTAMP)
        buf_str(out, " NULL");
    if (c->flags & COL_DEFAULT_NOW) {
        buf_str(out, " DEFAULT ");
        print_now(c, out);
    } else if (c->flags & COL_HAS_DEFAULT && c->default_text) {
        buf_printf(out, " DEFAULT %s", c->default_text);
    }
    if (c->flags & COL_ON_UPDATE_NOW) {
        buf_str(out, " ON UPDATE ");
        print_now(c, out);
    }
    if (c->flags & COL_AUTO_INC)
        buf_str(out, " AUTO_INCREMENT");
    if (c->comment) {
        buf_str(out, " COMMENT ");
        buf_sql_string(out, c->comment, strlen(c->comment));
    }
    if (c->type == CT_JSON) {
        buf_str(out, " CHECK (json_valid(");
        buf_quoted(out, c->name, strlen(c->name), '`');
        buf_str(out, "))");
    }
}

static void print_key(const table_def *def, const struct key *k, struct strbuf *out)
{
    buf_str(out, ",\n  ");
    if (k->flags & KEY_PRIMARY) {
        buf_str(out, "PRIMARY KEY");
    } else {
        buf_str(out, k->flags & KEY_UNIQUE ? "UNIQUE KEY " : "KEY ");
        buf_quoted(out, k->name, strlen(k->name), '`');
    }
    buf_str(out, " (");
    for (uint32_t i = 0; i < k->part_count; i++) {
        const struct key_part *part = &k->parts[i];
        const struct column *c = &def->columns[part->col];
        if (i)
            buf_char(out, ',');
        buf_quoted(out, c->name, strlen(c->name), '`');
        if (part->prefix)
            buf_printf(out, "(%u)", part->length / coll_mbmaxlen(c->collation));
        if (part->descending)
            buf_str(out, " DESC");
    }
    buf_char(out, ')');
    if (k->comment) {
        buf_str(out, " COMMENT ");
        buf_sql_string(out, k->comment, strlen(k->comment));
    }
}

void tabledef_print(const table_def *def, const char *name, bool with_autoinc, uint64_t autoinc,
                    struct strbuf *out)
{
    static const char *const formats[] = {"", "REDUNDANT", "COMPACT", "DYNAMIC", "COMPRESSED"};
    buf_str(out, "CREATE TABLE ");
    buf_quoted(out, name, strlen(name), '`');
    buf_str(out, " (\n");
    for (uint32_t i = 0; i < def->column_count; i++) {
        if (i)
            buf_str(out, ",\n");
        print_column(def, &def->columns[i], out);
    }
    for (uint32_t i = 0; i < def->key_count; i++)
        print_key(def, &def->keys[i], out);
    buf_printf(out, "\n) ENGINE=%s", def->engine_name);
    if (with_autoinc && autoinc > 1 && def->autoinc_col != UINT32_MAX)
        buf_printf(out, " AUTO_INCREMENT=%llu", (unsigned long long)autoinc);
    buf_printf(out, " DEFAULT CHARSET=%s COLLATE=%s", coll_charset(def->collation),
               coll_name(def->collation));
    if (def->options)
        buf_str(out, def->options);
    if (def->row_format)
        buf_printf(out, " ROW_FORMAT=%s", formats[def->row_format]);
    if (def->key_block_size)
        buf_printf(out, " KEY_BLOCK_SIZE=%u", def->key_block_size);
    if (def->comment) {
        buf_str(out, " COMMENT=");
        buf_sql_string(out, def->comment, strlen(def->comment));
    }
}
