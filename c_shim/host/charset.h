/* Character sets: encoding of characters, names. Used by collation.c and the catalog. */
#ifndef XTRADB_HOST_CHARSET_H
#define XTRADB_HOST_CHARSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum charset {
    CS_BINARY, CS_LATIN1, CS_ASCII, CS_UTF8MB3, CS_UTF8MB4, CS_UCS2, CS_UTF16, CS_UTF16LE, CS_UTF32,
#define BYTE_CHARSET(id, name, ci, bin) CS_##id,
#include "charset_bytes.inc"
    CS_COUNT
};
enum order { ORDER_BYTES, ORDER_TABLE, ORDER_GENERAL, ORDER_UNICODE, ORDER_CODE };

struct collation_info {
    uint32_t id;
    const char *name;
    enum charset charset;
    enum order order;
    const uint8_t *table;
};

const struct collation_info *coll_info(uint32_t id); /* NULL: unknown */
const struct collation_info *coll_info_at(unsigned i); /* NULL past the last */
bool coll_pads(uint32_t id);                         /* PAD SPACE */

unsigned charset_decode(enum charset cs, const uint8_t *s, size_t len, uint32_t *code);
unsigned charset_encode(enum charset cs, uint32_t code, uint8_t *out);
uint32_t charset_minlen(enum charset cs);
uint32_t charset_maxlen(enum charset cs);

#endif
