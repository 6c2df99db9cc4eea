/* Rows and keys without an engine: comparison and key images. */
#include <string.h>

#include "catalog.h"
#include "charset.h"
#include "host.h"
#include "value.h"

/* A key part's value: bytes of the data. */
struct part_value {
    bool null;
    const uint8_t *data;
    uint32_t length;
};

static bool is_text(const struct column *c)
{
    return c->type == CT_CHAR || c->type == CT_VARCHAR || c->type == CT_TEXT || c->type == CT_JSON;
}

static bool has_length_bytes(const struct column *c)
{
    return c->type == CT_VARCHAR || c->type == CT_VARBINARY || col_is_blob(c);
}

/* Cuts a value to what the key part holds: so many characters, or bytes. */
static void cut(const struct column *c, const struct key_part *part, struct part_value *v)
{
    uint32_t mbmaxlen = coll_mbmaxlen(c->collation);
    if (part->prefix && is_text(c) && mbmaxlen > 1)
        v->length = (uint32_t)coll_prefix(c->collation, v->data, v->length, part->length / mbmaxlen);
    else if (v->length > part->length)
        v->length = part->length;
}

static struct part_value row_part(const table_def *def, const struct key_part *part,
                                  const uint8_t *row)
{
    const struct column *c = &def->columns[part->col];
    struct part_value v = {rec_is_null(c, row), row + c->offset, c->pack_length};
    if (v.null)
        return v;
    if (col_is_blob(c)) {
        v.data = rec_blob(c, row, &v.length);
    } else if (has_length_bytes(c)) {
        v.length = c->length_bytes == 1 ? row[c->offset]
                                        : row[c->offset] | (uint32_t)row[c->offset + 1] << 8;
        v.data = row + c->offset + c->length_bytes;
    }
    cut(c, part, &v);
    return v;
}

/* Reads the part at `image` and moves on. */
static struct part_value image_part(const table_def *def, const struct key_part *part,
                                    const uint8_t **image)
{
    const uint8_t *p = *image;
    struct part_value v = {false, NULL, part->length};
    *image += part->store_length;
    if (part->nullable)
        v.null = *p++ != 0;
    if (has_length_bytes(&def->columns[part->col])) {
        v.length = p[0] | (uint32_t)p[1] << 8;
        p += 2;
    }
    v.data = p;
    if (!v.null)
        cut(&def->columns[part->col], part, &v);
    return v;
}

static int compare_number(const struct column *c, const uint8_t *a, const uint8_t *b)
{
    uint64_t x = 0, y = 0;
    for (unsigned i = c->pack_length; i-- > 0;) {
        x = x << 8 | a[i];
        y = y << 8 | b[i];
    }
    bool is_signed = c->type <= CT_BIGINT && !(c->flags & COL_UNSIGNED);
    if (is_signed) {
        uint64_t sign = (uint64_t)1 << (8 * c->pack_length - 1);
        x ^= sign;
        y ^= sign;
    }
    return x < y ? -1 : x > y;
}

static int compare_real(const struct column *c, const uint8_t *a, const uint8_t *b)
{
    double x, y;
    if (c->type == CT_FLOAT) {
        float f, g;
        memcpy(&f, a, sizeof f);
        memcpy(&g, b, sizeof g);
        x = f;
        y = g;
    } else {
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
    }
    return x < y ? -1 : x > y;
}

static int compare_part(const struct column *c, const struct part_value *a,
                        const struct part_value *b)
{
    switch (c->type) {
    case CT_TINYINT: case CT_SMALLINT: case CT_MEDIUMINT: case CT_INT: case CT_BIGINT:
    case CT_ENUM: case CT_SET: case CT_YEAR: case CT_DATE:
        return compare_number(c, a->data, b->data);
    case CT_FLOAT: case CT_DOUBLE:
        return compare_real(c, a->data, b->data);
    case CT_CHAR: case CT_VARCHAR: case CT_TEXT: case CT_JSON:
        return coll_compare(c->collation, a->data, a->length, b->data, b->length,
                            coll_pads(c->collation));
    default:
        return coll_compare(COLL_BINARY, a->data, a->length, b->data, b->length, false);
    }
}

static int compare_values(const table_def *def, const struct key_part *part,
                          const struct part_value *a, const struct part_value *b)
{
    int r;
    if (a->null || b->null)
        r = a->null == b->null ? 0 : a->null ? -1 : 1;
    else
        r = compare_part(&def->columns[part->col], a, b);
    return part->descending ? -r : r;
}

int rec_compare(const table_def *def, uint32_t key, const uint8_t *a, const uint8_t *b)
{
    const struct key *k = &def->keys[key];
    for (uint32_t i = 0; i < k->part_count; i++) {
        struct part_value x = row_part(def, &k->parts[i], a), y = row_part(def, &k->parts[i], b);
        int r = compare_values(def, &k->parts[i], &x, &y);
        if (r)
            return r;
    }
    return 0;
}

int rec_compare_key(const table_def *def, uint32_t key, const uint8_t *row, const uint8_t *image,
                    uint32_t key_length)
{
    const struct key *k = &def->keys[key];
    const uint8_t *p = image;
    for (uint32_t i = 0; i < k->part_count && (uint32_t)(p - image) < key_length; i++) {
        struct part_value x = row_part(def, &k->parts[i], row);
        struct part_value y = image_part(def, &k->parts[i], &p);
        int r = compare_values(def, &k->parts[i], &x, &y);
        if (r)
            return r;
    }
    return 0;
}

int image_compare(const table_def *def, uint32_t key, const uint8_t *a, const uint8_t *b,
                  uint32_t length)
{
    const struct key *k = &def->keys[key];
    const uint8_t *p = a, *q = b;
    for (uint32_t i = 0; i < k->part_count && (uint32_t)(p - a) < length; i++) {
        struct part_value x = image_part(def, &k->parts[i], &p), y = image_part(def, &k->parts[i], &q);
        int r = compare_values(def, &k->parts[i], &x, &y);
        if (r)
            return r;
    }
    return 0;
}

/* CHAR parts are padded to their length, as they are in rows. */
static void fill_blanks(const struct column *c, uint8_t *from, const uint8_t *end)
{
    uint8_t space[4];
    unsigned n = c->type == CT_CHAR ? coll_encode(c->collation, ' ', space) : 0;
    for (; n && from + n <= end; from += n)
        memcpy(from, space, n);
}

uint32_t rec_make_key(const table_def *def, uint32_t key, uint32_t parts, const uint8_t *row,
                      uint8_t *image)
{
    const struct key *k = &def->keys[key];
    uint8_t *p = image;
    for (uint32_t i = 0; i < parts && i < k->part_count; i++) {
        const struct key_part *part = &k->parts[i];
        struct part_value v = row_part(def, part, row);
        uint8_t *out = p;
        memset(p, 0, part->store_length);
        p += part->store_length;
        if (part->nullable)
            *out++ = v.null;
        if (v.null)
            continue;
        if (has_length_bytes(&def->columns[part->col])) {
            *out++ = (uint8_t)v.length;
            *out++ = (uint8_t)(v.length >> 8);
        }
        if (v.length)
            memcpy(out, v.data, v.length);
        fill_blanks(&def->columns[part->col], out + v.length, p);
    }
    return (uint32_t)(p - image);
}

bool rec_key_has_null(const table_def *def, uint32_t key, const uint8_t *row)
{
    const struct key *k = &def->keys[key];
    for (uint32_t i = 0; i < k->part_count; i++)
        if (rec_is_null(&def->columns[k->parts[i].col], row))
            return true;
    return false;
}
