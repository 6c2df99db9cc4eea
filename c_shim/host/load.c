/* Row image -> value. */
#include <string.h>

#include "charset.h"
#include "value.h"

void rec_set_null(const struct column *c, uint8_t *row, bool null)
{
    if (null)
        row[c->null_byte] |= c->null_mask;
    else
        row[c->null_byte] &= (uint8_t)~c->null_mask;
}

static uint64_t get_le(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = bytes; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

const uint8_t *rec_blob(const struct column *c, const uint8_t *row, uint32_t *length)
{
    const uint8_t *data;
    *length = (uint32_t)get_le(row + c->offset, c->length_bytes);
    memcpy(&data, row + c->offset + c->length_bytes, sizeof data);
    return data;
}

void rec_set_blob(const struct column *c, uint8_t *row, const uint8_t *data, uint32_t length)
{
    for (unsigned i = 0; i < c->length_bytes; i++)
        row[c->offset + i] = (uint8_t)(length >> (8 * i));
    memcpy(row + c->offset + c->length_bytes, &data, sizeof data);
}

static struct value load_integer(const struct column *c, const uint8_t *p)
{
    uint64_t u = get_le(p, c->pack_length);
    uint8_t width = c->flags & COL_ZEROFILL ? (uint8_t)c->length : 0;
    if (c->flags & COL_UNSIGNED)
        return (struct value){.kind = V_UINT, .u = u, .shown = width};
    unsigned unused = 64 - 8 * c->pack_length;
    return (struct value){.kind = V_INT, .i = (int64_t)(u << unused) >> unused, .shown = width};
}

static struct value load_real(const struct column *c, const uint8_t *p)
{
    struct value v = {.kind = V_DOUBLE, .shown = c->type == CT_FLOAT};
    if (c->type == CT_FLOAT) {
        float f;
        memcpy(&f, p, sizeof f);
        v.d = f;
    } else {
        memcpy(&v.d, p, sizeof v.d);
    }
    if (c->decimals < 31)
        v.shown = (uint8_t)(2 + c->decimals);
    if (c->flags & COL_ZEROFILL)
        v.zeros = (uint8_t)c->length;
    return v;
}

static struct value load_temporal(const struct column *c, const uint8_t *p, int zone_seconds)
{
    struct value v = {.kind = V_TEMPORAL};
    if (c->type != CT_TIMESTAMP) {
        temporal_unpack(&v.t, c->type, c->decimals, p);
        return v;
    }
    uint32_t seconds = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    uint8_t as_time[8] = {0x80, 0, 0}; /* let the TIME format decode the fraction */
    memcpy(as_time + 3, p + 4, c->pack_length - 4);
    temporal_unpack(&v.t, CT_TIME, c->decimals, as_time);
    uint32_t micros = v.t.micros;
    if (seconds == 0 && micros == 0)
        v.t = (struct temporal){.kind = TK_DATETIME};
    else
        temporal_from_unix(&v.t, seconds, micros, zone_seconds);
    v.t.decimals = c->decimals;
    return v;
}

static struct value load_char(const struct column *c, const uint8_t *p)
{
    size_t len = c->pack_length;
    uint32_t min = coll_mbminlen(c->collation);
    if (c->type == CT_CHAR) {
        for (; len >= min; len -= min) {
            uint32_t code;
            const uint8_t *last = p + len - min;
            if (coll_decode(c->collation, last, min, &code) != min || code != ' ')
                break;
        }
    }
    return value_string((const char *)p, len, c->collation);
}

static struct value load_set(struct arena *a, const struct column *c, uint64_t bits)
{
    struct strbuf b = {0};
    uint8_t comma[4];
    unsigned comma_len = coll_encode(c->collation, ',', comma);
    for (uint32_t i = 0; i < c->value_count; i++)
        if (bits >> i & 1) {
            if (b.len)
                buf_add(&b, comma, comma_len);
            buf_add(&b, c->values[i], c->value_lens[i]);
        }
    struct value v = value_string(arena_strndup(a, b.data ? b.data : "", b.len), b.len, c->collation);
    v.has_index = true;
    v.index = bits;
    buf_free(&b);
    return v;
}

static struct value load_address(struct arena *a, const struct column *c, const uint8_t *p)
{
    char text[64];
    uint8_t uuid[16];
    size_t len = 36;
    if (c->type == CT_UUID) {
        uuid_from_stored(p, uuid);
        uuid_print(uuid, text);
    } else {
        len = c->type == CT_INET4 ? inet4_print(p, text) : inet6_print(p, text);
    }
    return value_string(arena_strndup(a, text, len), len, COLL_LATIN1);
}

struct value value_load(struct arena *a, const struct column *c, const uint8_t *row,
                        int zone_seconds)
{
    const uint8_t *p = row + c->offset;
    struct value v;
    uint32_t len;
    if (rec_is_null(c, row))
        return value_null();
    switch (c->type) {
    case CT_FLOAT:
    case CT_DOUBLE:
        return load_real(c, p);
    case CT_DECIMAL:
        v = (struct value){.kind = V_DECIMAL};
        v.dec = (struct decimal *)arena_bytes(a, sizeof *v.dec);
        dec_unpack(v.dec, c->length, c->decimals, p);
        if (c->flags & COL_ZEROFILL)
            v.zeros = (uint8_t)(c->length + (c->decimals > 0));
        return v;
    case CT_DATE:
    case CT_TIME:
    case CT_DATETIME:
    case CT_TIMESTAMP:
        return load_temporal(c, p, zone_seconds);
    case CT_YEAR:
        return (struct value){.kind = V_UINT, .u = p[0] ? 1900u + p[0] : 0, .shown = 4};
    case CT_CHAR:
    case CT_BINARY:
        return load_char(c, p);
    case CT_VARCHAR:
    case CT_VARBINARY:
        len = (uint32_t)get_le(p, c->length_bytes);
        return value_string((const char *)p + c->length_bytes, len, c->collation);
    case CT_TEXT:
    case CT_BLOB:
    case CT_JSON:
    case CT_GEOMETRY:
        p = rec_blob(c, row, &len);
        return value_string((const char *)p, len, c->collation);
    case CT_ENUM: {
        uint64_t n = get_le(p, c->pack_length);
        v = value_string("", 0, c->collation);
        if (n > 0 && n <= c->value_count)
            v = value_string(c->values[n - 1], c->value_lens[n - 1], c->collation);
        v.has_index = true;
        v.index = n;
        return v;
    }
    case CT_SET:
        return load_set(a, c, get_le(p, c->pack_length));
    case CT_BIT:
        v = value_string((const char *)p, c->pack_length, COLL_BINARY);
        v.from_hex = true;
        return v;
    case CT_UUID:
    case CT_INET4:
    case CT_INET6:
        return load_address(a, c, p);
    default:
        return load_integer(c, p);
    }
}
