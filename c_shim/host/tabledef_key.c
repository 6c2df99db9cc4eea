/* Keys of a table definition: names, parts, order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exec.h"
#include "tabledef.h"

enum { KEY_BYTES_MAX = 3072 };

static uint32_t find_column(const table_def *def, const char *name)
{
    for (uint32_t i = 0; i < def->column_count; i++)
        if (!strcasecmp(def->columns[i].name, name))
            return i;
    return UINT32_MAX;
}

static bool name_taken(const table_def *def, const char *name)
{
    for (uint32_t i = 0; i < def->key_count; i++)
        if (!strcasecmp(def->keys[i].name, name))
            return true;
    return false;
}

/* Given name, PRIMARY, or the first column's with _2, _3 … behind it. */
static char *key_name(session *s, const struct key_spec *spec, const table_def *def)
{
    if (spec->flags & KEY_PRIMARY) {
        if (name_taken(def, "PRIMARY"))
            sql_error(s, 1068);
        return mem_strdup("PRIMARY");
    }
    if (spec->name) {
        if (!strcasecmp(spec->name, "PRIMARY"))
            sql_error(s, 1280, spec->name);
        else if (!strcasecmp(spec->name, "GEN_CLUST_INDEX")) /* the hidden one's */
            sql_error(s, 1280, "GEN_CLUST_INDEX");
        else if (name_taken(def, spec->name))
            sql_error(s, 1061, spec->name);
        return mem_strdup(spec->name);
    }
    char name[300];
    snprintf(name, sizeof name, "%s", spec->parts[0].column);
    for (unsigned n = 2; name_taken(def, name) || !strcasecmp(name, "PRIMARY"); n++)
        snprintf(name, sizeof name, "%s_%u", spec->parts[0].column, n);
    return mem_strdup(name);
}

static bool is_string(const struct column *c)
{
    return c->type == CT_CHAR || c->type == CT_BINARY || c->type == CT_VARCHAR ||
           c->type == CT_VARBINARY || col_is_blob(c);
}

static bool build_part(session *s, const table_def *def, const struct key_spec *spec, uint32_t i,
                       struct key *k)
{
    const struct key_part_spec *from = &spec->parts[i];
    struct key_part *part = &k->parts[i];
    part->col = find_column(def, from->column);
    if (part->col == UINT32_MAX) {
        sql_error(s, 1072, from->column);
        return false;
    }
    for (uint32_t j = 0; j < i; j++)
        if (k->parts[j].col == part->col) {
            sql_error(s, 1060, from->column);
            return false;
        }
    const struct column *c = &def->columns[part->col];
    uint64_t bytes = from->length * coll_mbmaxlen(c->collation);
    part->descending = from->descending;
    bool may_cut = !(spec->flags & KEY_UNIQUE);
    if (col_is_blob(c) && !from->length && !may_cut) {
        sql_error(s, 1170, c->name);
        return false;
    }
    if (from->length && (!is_string(c) || (!col_is_blob(c) && bytes > c->length))) {
        sql_error(s, 1089);
        return false;
    }
    bool whole_blob = col_is_blob(c) && !from->length;
    uint64_t used = from->length ? bytes : whole_blob ? UINT32_MAX : is_string(c) ? c->length : c->pack_length;
    part->length = from->length ? (uint32_t)bytes : 0;
    if (used <= KEY_BYTES_MAX)
        return true;
    if (!may_cut) {
        sql_error(s, 1071, KEY_BYTES_MAX);
        return false;
    }
    sql_note(s, 1071, KEY_BYTES_MAX); /* an index that only finds may hold the beginning */
    part->length = KEY_BYTES_MAX - KEY_BYTES_MAX % coll_mbmaxlen(c->collation);
    return true;
}

static bool build_key(session *s, const struct key_spec *spec, table_def *def)
{
    struct key *k = &def->keys[def->key_count];
    if (spec->part_count > MAX_KEY_PARTS) {
        sql_error(s, 1070, MAX_KEY_PARTS);
        return false;
    }
    k->flags = spec->flags;
    k->part_count = spec->part_count;
    k->parts = mem_alloc(k->part_count * sizeof *k->parts);
    k->name = key_name(s, spec, def);
    k->comment = spec->comment && *spec->comment ? mem_strdup(spec->comment) : NULL;
    def->key_count++;
    if (s->diag.error)
        return false;
    for (uint32_t i = 0; i < k->part_count; i++)
        if (!build_part(s, def, spec, i, k))
            return false;
    return true;
}

/* Columns of the primary key become NOT NULL, even where NULL was written. */
static void primary_not_null(table_def *def)
{
    for (uint32_t i = 0; i < def->key_count; i++)
        for (uint32_t j = 0; def->keys[i].flags & KEY_PRIMARY && j < def->keys[i].part_count; j++)
            def->columns[def->keys[i].parts[j].col].flags |= COL_NOT_NULL;
}

/* The server's order: primary key, unique without NULLs, unique, others; among the unique ones those
 * with prefixes last; else as written. */
static int key_rank(const table_def *def, const struct key *k)
{
    if (k->flags & KEY_PRIMARY)
        return 0;
    if (!(k->flags & KEY_UNIQUE))
        return 5;
    bool null = false, prefix = false;
    for (uint32_t i = 0; i < k->part_count; i++) {
        const struct column *c = &def->columns[k->parts[i].col];
        null |= !(c->flags & COL_NOT_NULL);
        prefix |= col_is_blob(c) || (k->parts[i].length && k->parts[i].length < c->length);
    }
    return 1 + 2 * null + prefix;
}

static void sort_keys(table_def *def)
{
    for (uint32_t i = 1; i < def->key_count; i++) /* insertion sort: stable, few keys */
        for (uint32_t j = i; j > 0 && key_rank(def, &def->keys[j]) < key_rank(def, &def->keys[j - 1]); j--) {
            struct key k = def->keys[j];
            def->keys[j] = def->keys[j - 1];
            def->keys[j - 1] = k;
        }
    if (def->key_count && def->keys[0].flags & KEY_PRIMARY)
        def->primary_key = 0;
}

static bool autoinc_has_key(const table_def *def)
{
    if (def->autoinc_col == UINT32_MAX)
        return true;
    for (uint32_t i = 0; i < def->key_count; i++)
        if (def->keys[i].parts[0].col == def->autoinc_col)
            return true;
    return false;
}

bool tabledef_keys(session *s, const struct create_table *ct, table_def *def)
{
    if (ct->key_count > MAX_KEYS) {
        sql_error(s, 1069, MAX_KEYS);
        return false;
    }
    def->keys = mem_alloc((ct->key_count + 1) * sizeof *def->keys);
    for (uint32_t i = 0; i < ct->key_count; i++)
        if (!build_key(s, &ct->keys[i], def))
            return false;
    primary_not_null(def);
    sort_keys(def);
    if (!autoinc_has_key(def)) {
        sql_error(s, 1075);
        return false;
    }
    return true;
}
