/* A column of CREATE TABLE: type and attributes. */
#include <string.h>
#include <strings.h>

#include "exec.h"
#include "parser.h"

static const struct type_name {
    const char *word;
    uint8_t type;
    uint32_t length; /* lengths of the TEXT and BLOB family: their length bytes */
} type_names[] = {
    {"TINYINT", CT_TINYINT, 0},       {"SMALLINT", CT_SMALLINT, 0},   {"MEDIUMINT", CT_MEDIUMINT, 0},
    {"INT", CT_INT, 0},               {"INTEGER", CT_INT, 0},         {"BIGINT", CT_BIGINT, 0},
    {"INT1", CT_TINYINT, 0},          {"INT2", CT_SMALLINT, 0},       {"INT3", CT_MEDIUMINT, 0},
    {"INT4", CT_INT, 0},              {"INT8", CT_BIGINT, 0},         {"FLOAT", CT_FLOAT, 0},
    {"DOUBLE", CT_DOUBLE, 0},         {"REAL", CT_DOUBLE, 0},         {"DECIMAL", CT_DECIMAL, 0},
    {"NUMERIC", CT_DECIMAL, 0},       {"DEC", CT_DECIMAL, 0},         {"FIXED", CT_DECIMAL, 0},
    {"DATE", CT_DATE, 0},             {"TIME", CT_TIME, 0},           {"DATETIME", CT_DATETIME, 0},
    {"TIMESTAMP", CT_TIMESTAMP, 0},   {"YEAR", CT_YEAR, 0},           {"CHAR", CT_CHAR, 0},
    {"BINARY", CT_BINARY, 0},         {"VARCHAR", CT_VARCHAR, 0},     {"VARBINARY", CT_VARBINARY, 0},
    {"TINYTEXT", CT_TEXT, 1},         {"TEXT", CT_TEXT, 2},           {"MEDIUMTEXT", CT_TEXT, 3},
    {"LONGTEXT", CT_TEXT, 4},         {"TINYBLOB", CT_BLOB, 1},       {"BLOB", CT_BLOB, 2},
    {"MEDIUMBLOB", CT_BLOB, 3},       {"LONGBLOB", CT_BLOB, 4},       {"JSON", CT_JSON, 4},
    {"ENUM", CT_ENUM, 0},             {"SET", CT_SET, 0},             {"BIT", CT_BIT, 0},
    {"UUID", CT_UUID, 0},             {"INET4", CT_INET4, 0},         {"INET6", CT_INET6, 0},
    {"BOOL", CT_TINYINT, 101},        {"BOOLEAN", CT_TINYINT, 101},   {"NCHAR", CT_CHAR, 102},
    {"NVARCHAR", CT_VARCHAR, 102},    {"CHARACTER", CT_CHAR, 0},        {"GEOMETRY", CT_GEOMETRY, 4},   {"POINT", CT_GEOMETRY, 4},
    {"LINESTRING", CT_GEOMETRY, 4},   {"POLYGON", CT_GEOMETRY, 4},   {"MULTIPOINT", CT_GEOMETRY, 4},
    {"MULTILINESTRING", CT_GEOMETRY, 4}, {"MULTIPOLYGON", CT_GEOMETRY, 4},
    {"GEOMETRYCOLLECTION", CT_GEOMETRY, 4},
};

static void p_members(struct parser *p, struct column_spec *c)
{
    uint32_t n = 0;
    p_expect_op(p, "(");
    do {
        uint32_t len = (uint32_t)p->token.len;
        P_PUSH(p, c->values, c->value_count) = p_text(p);
        P_PUSH(p, c->value_lens, n) = len;
    } while (p_accept_op(p, ",") && !p->failed);
    p_expect_op(p, ")");
}

static void p_type_length(struct parser *p, struct column_spec *c)
{
    if (!p_accept_op(p, "("))
        return;
    c->length = p_number(p);
    c->has_length = true;
    if (p_accept_op(p, ",")) {
        c->decimals = (uint32_t)p_number(p);
        c->has_decimals = true;
    }
    p_expect_op(p, ")");
}

bool p_column_type(struct parser *p, struct column_spec *c)
{
    const struct type_name *t = NULL;
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names && !t; i++)
        if (p_is(p, type_names[i].word))
            t = &type_names[i];
    if (!t)
        return false;
    p_advance(p);
    c->type = t->type;
    if (t->type == CT_DOUBLE)
        p_accept(p, "PRECISION");
    if (t->type == CT_CHAR && p_accept(p, "VARYING"))
        c->type = CT_VARCHAR;
    if (t->type == CT_ENUM || t->type == CT_SET) {
        p_members(p, c);
    } else if (c->type == CT_TEXT || c->type == CT_BLOB || c->type == CT_JSON || c->type == CT_GEOMETRY) {
        for (uint32_t i = 1; c->type == CT_GEOMETRY && geometry_name(i); i++)
            if (!strcasecmp(t->word, geometry_name(i)))
                c->decimals = i;
        p_type_length(p, c); /* TEXT(n): the smallest that holds n characters */
        if (!c->has_length)
            c->length = t->length;
    } else {
        p_type_length(p, c);
    }
    if (t->length == 101) {
        c->length = 1;
        c->has_length = true;
    } else if (t->length == 102) {
        c->charset = "utf8mb3";
    }
    for (;;) {
        if (p_accept(p, "UNSIGNED"))
            c->flags |= COL_UNSIGNED;
        else if (p_accept(p, "ZEROFILL"))
            c->flags |= COL_ZEROFILL | COL_UNSIGNED;
        else if (p_accept2(p, "CHARACTER", "SET") || p_accept(p, "CHARSET"))
            c->charset = p_name_or_text(p);
        else if (p_is(p, "BINARY") && c->type != CT_BINARY)
            p_advance(p), c->binary_attribute = true;
        else if (!p_accept(p, "SIGNED"))
            return true;
    }
}

static bool p_now(struct parser *p)
{
    if (!p_accept(p, "CURRENT_TIMESTAMP") && !p_accept(p, "NOW") && !p_accept(p, "LOCALTIMESTAMP") &&
        !p_accept(p, "LOCALTIME"))
        return false;
    if (p_accept_op(p, "(")) {
        if (!p_is_op(p, ")"))
            p_number(p);
        p_expect_op(p, ")");
    }
    return true;
}

static void p_default(struct parser *p, struct column_spec *c)
{
    if (p_now(p)) {
        c->flags |= COL_DEFAULT_NOW;
        return;
    }
    bool minus = p_accept_op(p, "-");
    if (!minus)
        p_accept_op(p, "+");
    c->default_value = p_literal(p);
    if (!c->default_value) {
        p_error(p, 1235, "DEFAULT with an expression");
    } else if (minus) {
        struct expr *e = p_new_expr(p, E_NEGATE);
        P_PUSH(p, e->args, e->arg_count) = c->default_value;
        c->default_value = e;
    }
    c->flags |= COL_HAS_DEFAULT;
}

/* CHECK (json_valid(`column`)) is how the server writes JSON; other checks are not kept. */
static void p_check_clause(struct parser *p, struct column_spec *c)
{
    p_expect_op(p, "(");
    struct expr *e = p_expr(p);
    p_expect_op(p, ")");
    if (p->failed)
        return;
    bool json = e->kind == E_FUNCTION && !strcasecmp(e->name, "json_valid") && e->arg_count == 1 &&
                e->args[0]->kind == E_COLUMN && !strcasecmp(e->args[0]->name, c->name);
    if (json && c->type == CT_TEXT && c->length == 4)
        c->type = CT_JSON;
    else if (!json || c->type != CT_JSON)
        p_error(p, 1235, "CHECK");
}

static bool p_key_attribute(struct parser *p, struct column_spec *c)
{
    if (p_accept(p, "PRIMARY")) {
        p_accept(p, "KEY");
        c->primary = true;
    } else if (p_accept(p, "UNIQUE")) {
        p_accept(p, "KEY");
        c->unique = true;
    } else if (p_accept(p, "KEY")) {
        c->primary = true;
    } else {
        return false;
    }
    return true;
}

static bool p_attribute(struct parser *p, struct column_spec *c)
{
    if (p_accept2(p, "NOT", "NULL")) {
        c->flags |= COL_NOT_NULL;
    } else if (p_accept(p, "NULL")) {
        c->null_given = true;
    } else if (p_accept(p, "DEFAULT")) {
        p_default(p, c);
    } else if (p_accept(p, "AUTO_INCREMENT")) {
        c->flags |= COL_AUTO_INC;
    } else if (p_accept(p, "COMMENT")) {
        c->comment = p_text(p);
    } else if (p_accept(p, "COLLATE")) {
        c->collate = p_name_or_text(p);
    } else if (p_accept2(p, "CHARACTER", "SET") || p_accept(p, "CHARSET")) {
        c->charset = p_name_or_text(p);
    } else if (p_accept(p, "ON")) {
        p_expect(p, "UPDATE");
        if (!p_now(p))
            p_syntax_error(p);
        c->flags |= COL_ON_UPDATE_NOW;
    } else if (p_accept(p, "CHECK")) {
        p_check_clause(p, c);
    } else if (p_is(p, "GENERATED") || p_is(p, "AS")) {
        p_error(p, 1235, "generated columns");
    } else if (p_is(p, "REFERENCES")) {
        p_error(p, 1235, "FOREIGN KEY");
    } else {
        return p_key_attribute(p, c);
    }
    return true;
}

void p_column_spec(struct parser *p, struct column_spec *c, struct create_table *ct)
{
    if (p_accept(p, "SERIAL")) { /* BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE */
        c->type = CT_BIGINT;
        c->flags = COL_UNSIGNED | COL_NOT_NULL | COL_AUTO_INC;
        c->unique = true;
    } else if (!p_column_type(p, c)) {
        if (p->token.kind == T_WORD)
            p_error(p, 4161, p->token.text);
        p_syntax_error(p);
    }
    while (!p->failed && p_attribute(p, c))
        continue;
    if (!c->primary && !c->unique)
        return;
    struct key_spec k = {.flags = KEY_UNIQUE | (c->primary ? KEY_PRIMARY : 0)};
    P_PUSH(p, k.parts, k.part_count).column = c->name;
    P_PUSH(p, ct->keys, ct->key_count) = k;
}
