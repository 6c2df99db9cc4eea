/* Where columns and key parts lie in row and key images. */
#include <stdlib.h>
#include <string.h>

#include "catalog.h"

static uint32_t set_bytes(uint32_t members)
{
    uint32_t n = (members + 7) / 8;
    return n > 4 ? 8 : n;
}

/* Column lengths that follow from the type. Times: `decimals`; strings: char_length and collation. */
void column_layout(struct column *c)
{
    static const uint8_t int_bytes[] = {1, 2, 3, 4, 8};
    c->length_bytes = 0;
    switch (c->type) {
    case CT_TINYINT: case CT_SMALLINT: case CT_MEDIUMINT: case CT_INT: case CT_BIGINT:
        c->pack_length = int_bytes[c->type - CT_TINYINT];
        break;
    case CT_FLOAT: c->pack_length = 4; break;
    case CT_DOUBLE: c->pack_length = 8; break;
    case CT_DECIMAL: c->pack_length = dec_packed_size(c->length, c->decimals); break;
    case CT_DATE: case CT_TIME: case CT_DATETIME: case CT_TIMESTAMP:
        c->pack_length = temporal_pack_size(c->type, c->decimals);
        break;
    case CT_YEAR: c->pack_length = 1; break;
    case CT_CHAR: case CT_BINARY:
        c->length = c->char_length * coll_mbmaxlen(c->collation);
        c->pack_length = c->length;
        break;
    case CT_VARCHAR: case CT_VARBINARY:
        c->length = c->char_length * coll_mbmaxlen(c->collation);
        c->length_bytes = c->length < 256 ? 1 : 2;
        c->pack_length = c->length + c->length_bytes;
        break;
    case CT_TEXT: case CT_BLOB: case CT_JSON: case CT_GEOMETRY:
        c->length_bytes = (uint8_t)c->length; /* 1..4 as given */
        c->pack_length = c->length_bytes + 8u;
        break;
    case CT_ENUM: c->pack_length = c->value_count < 256 ? 1 : 2; break;
    case CT_SET: c->pack_length = set_bytes(c->value_count); break;
    case CT_BIT: c->pack_length = (c->length + 7) / 8; break;
    case CT_INET4: c->pack_length = 4; break;
    default: c->pack_length = 16; /* UUID, INET6 */
    }
}

static void key_layout(table_def *def, struct key *k)
{
    k->length = 0;
    for (uint32_t i = 0; i < k->part_count; i++) {
        struct key_part *part = &k->parts[i];
        const struct column *c = &def->columns[part->col];
        bool varying = c->type == CT_VARCHAR || c->type == CT_VARBINARY || col_is_blob(c);
        part->nullable = c->null_mask != 0;
        uint32_t whole = c->type == CT_VARCHAR || c->type == CT_VARBINARY ? c->length : c->pack_length;
        if (!part->length || (!col_is_blob(c) && part->length >= whole)) {
            part->length = whole;
            part->prefix = false;
        } else {
            part->prefix = true;
        }
        part->store_length = part->length + (varying ? 2 : 0) + (part->nullable ? 1 : 0);
        k->length += part->store_length;
    }
}

void tabledef_layout(table_def *def)
{
    uint32_t bit = 1; /* bit 0 is the filler */
    for (uint32_t i = 0; i < def->column_count; i++) {
        struct column *c = &def->columns[i];
        column_layout(c);
        c->null_mask = 0;
        if (c->flags & COL_NOT_NULL)
            continue;
        c->null_byte = bit / 8;
        c->null_mask = (uint8_t)(1u << bit % 8);
        bit++;
    }
    def->null_bytes = (bit + 7) / 8;
    uint32_t offset = def->null_bytes;
    for (uint32_t i = 0; i < def->column_count; i++) {
        def->columns[i].offset = offset;
        offset += def->columns[i].pack_length;
    }
    def->row_length = offset;
    for (uint32_t i = 0; i < def->key_count; i++)
        key_layout(def, &def->keys[i]);
    free(def->defaults);
    def->defaults = mem_alloc(def->row_length);
    def->defaults[0] = 1;
}

void tabledef_free(table_def *def)
{
    if (!def)
        return;
    for (uint32_t i = 0; i < def->column_count; i++) {
        struct column *c = &def->columns[i];
        for (uint32_t v = 0; v < c->value_count; v++)
            free(c->values[v]);
        free(c->values);
        free(c->value_lens);
        free(c->name);
        free(c->comment);
        free(c->default_text);
        if (col_is_blob(c) && def->defaults) {
            uint32_t len;
            free((void *)(uintptr_t)rec_blob(c, def->defaults, &len));
        }
    }
    for (uint32_t i = 0; i < def->key_count; i++) {
        free(def->keys[i].name);
        free(def->keys[i].parts);
        free(def->keys[i].comment);
    }
    free(def->columns);
    free(def->keys);
    free(def->defaults);
    free(def->db);
    free(def->name);
    free(def->engine_name);
    free(def->comment);
    free(def->options);
    free(def);
}
