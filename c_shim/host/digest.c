/* MD5 (RFC 1321) and CRC-32, for the functions of the same name. */
#include "digest.h"

#include <math.h>
#include <string.h>

struct md5 {
    uint32_t state[4];
};

static uint32_t rotate(uint32_t v, unsigned n)
{
    return v << n | v >> (32 - n);
}

static void md5_block(struct md5 *m, const uint8_t *p)
{
    static const uint8_t shifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t a = m->state[0], b = m->state[1], c = m->state[2], d = m->state[3], word[16];
    for (unsigned i = 0; i < 16; i++)
        word[i] = p[4 * i] | (uint32_t)p[4 * i + 1] << 8 | (uint32_t)p[4 * i + 2] << 16 |
                  (uint32_t)p[4 * i + 3] << 24;
    for (unsigned i = 0; i < 64; i++) {
        uint32_t f;
        unsigned g;
        switch (i / 16) {
        case 0: f = (b & c) | (~b & d); g = i; break;
        case 1: f = (d & b) | (~d & c); g = (5 * i + 1) % 16; break;
        case 2: f = b ^ c ^ d; g = (3 * i + 5) % 16; break;
        default: f = c ^ (b | ~d); g = 7 * i % 16;
        }
        uint32_t constant = (uint32_t)(int64_t)floor(fabs(sin(i + 1.0)) * 4294967296.0);
        uint32_t next = b + rotate(a + f + constant + word[g], shifts[i / 16][i % 4]);
        a = d;
        d = c;
        c = b;
        b = next;
    }
    m->state[0] += a;
    m->state[1] += b;
    m->state[2] += c;
    m->state[3] += d;
}

void md5_digest(const uint8_t *data, size_t len, uint8_t out[16])
{
    struct md5 m = {{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476}};
    uint8_t tail[128] = {0};
    size_t whole = len / 64 * 64, rest = len - whole;
    for (size_t i = 0; i < whole; i += 64)
        md5_block(&m, data + i);
    if (rest)
        memcpy(tail, data + whole, rest);
    tail[rest] = 0x80;
    size_t end = rest < 56 ? 64 : 128;
    uint64_t bits = (uint64_t)len * 8;
    for (unsigned i = 0; i < 8; i++)
        tail[end - 8 + i] = (uint8_t)(bits >> (8 * i));
    for (size_t i = 0; i < end; i += 64)
        md5_block(&m, tail + i);
    for (unsigned i = 0; i < 16; i++)
        out[i] = (uint8_t)(m.state[i / 4] >> (8 * (i % 4)));
}

uint32_t crc32_digest(const uint8_t *data, size_t len)
{
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < len; i++) {
        crc ^= data[i];
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc;
}
