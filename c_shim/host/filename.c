/* Identifiers as file names: MariaDB's "filename" character set. Letters, digits and _ stand for
 * themselves; other characters are @ and two letters, or @ and four hex digits. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "catalog.h"

static const uint16_t short_names[] = {
#include "filename.inc"
};
enum { SHORT_COUNT = sizeof short_names / sizeof *short_names / 2 };

static const uint16_t *short_of(uint32_t code)
{
    size_t low = 0, high = SHORT_COUNT;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (short_names[2 * mid] == code)
            return &short_names[2 * mid];
        if (short_names[2 * mid] < code)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* As in MySQL: what follows is a file name that stands for no identifier (a partition). */
static const char literal[] = "#mysql50#";
enum { LITERAL = sizeof literal - 1 };

bool filename_encode(const char *name, char *out, size_t size)
{
    size_t len = strlen(name), n = 0;
    if (len > LITERAL && !strncmp(name, literal, LITERAL) && !strpbrk(name + LITERAL, "/.")) {
        if (len - LITERAL >= size)
            return false;
        strcpy(out, name + LITERAL);
        return true;
    }
    for (size_t p = 0; p < len;) {
        uint32_t code;
        unsigned used = coll_decode(COLL_UTF8MB4, (const uint8_t *)name + p, len - p, &code);
        if (!used || code > 0xFFFF || n + 6 >= size)
            return false;
        const uint16_t *s = short_of(code);
        if (code < 128 && (isalnum((int)code) || code == '_'))
            out[n++] = (char)code;
        else if (s)
            n += (size_t)sprintf(out + n, "@%c%c", s[1] >> 8, s[1] & 0xFF);
        else
            n += (size_t)sprintf(out + n, "@%04x", (unsigned)code);
        p += used;
    }
    out[n] = 0;
    return n > 0;
}

static uint32_t decode_at(const char *p, unsigned *used)
{
    unsigned code;
    if (strlen(p) >= 3) {
        uint16_t two = (uint16_t)((unsigned char)p[1] << 8 | (unsigned char)p[2]);
        for (size_t i = 0; i < SHORT_COUNT; i++)
            if (short_names[2 * i + 1] == two) {
                *used = 3;
                return short_names[2 * i];
            }
    }
    if (strlen(p) >= 5 && isxdigit((unsigned char)p[1]) && sscanf(p + 1, "%4x", &code) == 1) {
        *used = 5;
        return code;
    }
    *used = 1;
    return '@';
}

bool filename_decode(const char *file, char *out, size_t size)
{
    size_t n = 0;
    if (strchr(file, '#')) /* would be @0023 */
        return (size_t)snprintf(out, size, "%s%s", literal, file) < size;
    for (const char *p = file; *p;) {
        if (n + 5 >= size)
            return false;
        if (*p != '@') {
            out[n++] = *p++;
            continue;
        }
        unsigned used;
        n += coll_encode(COLL_UTF8MB4, decode_at(p, &used), (uint8_t *)out + n);
        p += used;
    }
    out[n] = 0;
    return n > 0;
}
