/* A table definition from CREATE TABLE: the table, its default values. Columns: tabledef_column.c;
 * keys: tabledef_key.c. */
#include "tabledef.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "charset.h"
#include "exec.h"

enum { ROW_BYTES_MAX = 65535, COLUMNS_MAX = 1017 };

/* charset and collate as written -> a collation; `fallback` when neither is. 0: error is set. */
uint32_t tabledef_collation(session *s, const char *charset, const char *collate, uint32_t fallback)
{
    uint32_t id = fallback;
    if (charset) {
        id = coll_default_of(charset);
        if (!id) {
            sql_error(s, 1115, charset);
            return 0;
        }
    }
    if (!collate)
        return id;
    uint32_t wanted = coll_by_name(collate);
    if (!wanted)
        sql_error(s, 1273, collate);
    else if (charset && !coll_same_charset(wanted, id))
        sql_error(s, 1253, collate, charset), wanted = 0;
    return wanted;
}

static uint8_t row_format_of(const char *text)
{
    static const char *const names[] = {"DEFAULT", "REDUNDANT", "COMPACT", "DYNAMIC", "COMPRESSED"};
    for (uint8_t i = 0; text && i < 5; i++)
        if (!strcasecmp(text, names[i]))
            return i;
    return RF_DEFAULT;
}

static bool build_options(session *s, const struct create_table *ct, table_def *def,
                          uint32_t db_collation)
{
    def->collation = tabledef_collation(s, ct->charset, ct->collate, db_collation);
    if (!def->collation)
        return false;
    engine *e = registry_engine(s->h, ct->engine ? ct->engine : "InnoDB");
    def->engine_name = mem_strdup(e ? e->name : ct->engine ? ct->engine : "InnoDB");
    if (!strcasecmp(def->engine_name, "InnoDB")) { /* the spelling that SHOW CREATE TABLE has */
        free(def->engine_name);
        def->engine_name = mem_strdup("InnoDB");
    }
    def->row_format = row_format_of(ct->row_format);
    def->key_block_size = (uint32_t)ct->key_block_size;
    def->autoinc_start = ct->auto_increment;
    def->comment = ct->comment && *ct->comment ? mem_strdup(ct->comment) : NULL;
    def->options = ct->options ? mem_strdup(ct->options) : NULL;
    return true;
}

/* The default of one column into def->defaults. BLOB bytes are malloc'd. */
static bool build_default(session *s, table_def *def, uint32_t i, const struct column_spec *spec)
{
    struct column *c = &def->columns[i];
    struct arena a = {0};
    struct value v = value_null();
    enum store_result result;
    if (spec->default_value) {
        struct scope sc = {.s = s};
        expr_bind(&sc, spec->default_value);
        v = expr_eval(&sc, spec->default_value);
        if (v.kind == V_NULL && !c->null_mask) {
            c->flags &= ~(uint32_t)COL_HAS_DEFAULT; /* a key column that said DEFAULT NULL */
            if (spec->flags & COL_NOT_NULL || spec->primary)
                sql_error(s, 1067, c->name);
            return !s->diag.error;
        }
        result = value_store(&a, c, def->defaults, &v, s->zone_seconds);
    } else if (c->null_mask) {
        rec_set_null(c, def->defaults, true);
        result = ST_OK;
    } else {
        bool text = c->type == CT_CHAR || c->type == CT_BINARY;
        v = value_string("", 0, COLL_UTF8MB4);
        result = ST_OK;
        if (text)
            value_store(&a, c, def->defaults, &v, 0);
        if (c->type == CT_ENUM)
            def->defaults[c->offset] = 1; /* the first member */
        if (c->type == CT_DECIMAL)
            v = value_int(0), value_store(&a, c, def->defaults, &v, 0);
        if (c->type == CT_TIME || c->type == CT_DATETIME) {
            v = (struct value){.kind = V_TEMPORAL};
            v.t.kind = c->type == CT_TIME ? TK_TIME : TK_DATETIME;
            value_store(&a, c, def->defaults, &v, 0);
        }
    }
    if (col_is_blob(c) && !rec_is_null(c, def->defaults)) {
        uint32_t len;
        const uint8_t *p = rec_blob(c, def->defaults, &len);
        rec_set_blob(c, def->defaults, (const uint8_t *)mem_strndup(len ? (const char *)p : "", len), len);
    }
    arena_free(&a);
    if (result != ST_OK && result != ST_TRUNCATED_NOTE)
        sql_error(s, 1067, c->name);
    return result == ST_OK || result == ST_TRUNCATED_NOTE;
}

static void default_text(struct column *c, const uint8_t *defaults, int zone_seconds)
{
    struct arena a = {0};
    struct strbuf b = {0};
    struct value v = value_load(&a, c, defaults, zone_seconds), text = value_to_text(&a, &v);
    bool lossy = false;
    if (v.kind == V_NULL) {
        buf_str(&b, "NULL");
    } else if (c->type == CT_BIT) {
        buf_str(&b, "b'");
        bool digit = false;
        for (uint32_t bit = 8 * c->pack_length; bit-- > 0;) {
            bool one = (uint8_t)v.s.ptr[c->pack_length - 1 - bit / 8] >> bit % 8 & 1;
            digit |= one || !bit;
            if (digit)
                buf_char(&b, one ? '1' : '0');
        }
        buf_char(&b, '\'');
    } else if (c->type <= CT_DECIMAL || c->type == CT_YEAR) {
        buf_add(&b, text.s.ptr, text.s.len);
    } else {
        text = value_convert(&a, &text, COLL_UTF8MB4, &lossy);
        buf_sql_string(&b, text.s.ptr, text.s.len);
    }
    c->default_text = mem_strdup(b.data);
    buf_free(&b);
    arena_free(&a);
}

static bool build_defaults(session *s, const struct create_table *ct, table_def *def)
{
    for (uint32_t i = 0; i < def->column_count; i++) {
        struct column *c = &def->columns[i];
        if (!build_default(s, def, i, &ct->columns[i]))
            return false;
        bool implicit_null = !(c->flags & (COL_HAS_DEFAULT | COL_DEFAULT_NOW | COL_AUTO_INC)) && c->null_mask;
        if (implicit_null)
            c->flags |= COL_HAS_DEFAULT;
        if (c->flags & COL_HAS_DEFAULT)
            default_text(c, def->defaults, s->zone_seconds);
    }
    return true;
}

static bool check_size(session *s, const table_def *def)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < def->column_count; i++)
        bytes += def->columns[i].pack_length;
    if (bytes > ROW_BYTES_MAX) {
        sql_error(s, 1118, (long)ROW_BYTES_MAX);
        return false;
    }
    return true;
}

table_def *tabledef_build(session *s, const struct create_table *ct, const char *db,
                          uint32_t db_collation)
{
    if (!ct->column_count || ct->column_count > COLUMNS_MAX) {
        ct->column_count ? sql_error(s, 1117) : sql_error(s, 1113);
        return NULL;
    }
    table_def *def = mem_alloc(sizeof *def);
    def->refs = 1;
    def->db = mem_strdup(db);
    def->name = mem_strdup(ct->table.name);
    def->primary_key = NO_KEY;
    def->autoinc_col = UINT32_MAX;
    if (build_options(s, ct, def, db_collation) && tabledef_columns(s, ct, def) &&
        tabledef_keys(s, ct, def)) {
        tabledef_layout(def);
        if (check_size(s, def) && build_defaults(s, ct, def))
            return def;
    }
    tabledef_free(def);
    return NULL;
}
