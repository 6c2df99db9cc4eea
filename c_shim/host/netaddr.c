/* UUID, INET4 and INET6 values. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "value.h"

bool uuid_parse(const char *s, size_t len, uint8_t out[16])
{
    unsigned nibbles = 0;
    while (len && isspace((unsigned char)s[len - 1]))
        len--;
    for (size_t i = 0; i < len; i++) {
        int c = (unsigned char)s[i];
        if (c == '-' && nibbles % 2 == 0 && nibbles)
            continue;
        if (!isxdigit(c) || nibbles == 32)
            return false;
        unsigned v = (unsigned)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
        out[nibbles / 2] = (uint8_t)(nibbles % 2 ? out[nibbles / 2] | v : v << 4);
        nibbles++;
    }
    return nibbles == 32;
}

void uuid_print(const uint8_t in[16], char out[37])
{
    char *p = out;
    for (unsigned i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        p += sprintf(p, "%02x", in[i]);
    }
}

static void swap_segments(const uint8_t text[16], uint8_t stored[16])
{
    memcpy(stored, text + 10, 6);
    memcpy(stored + 6, text + 8, 2);
    memcpy(stored + 8, text + 6, 2);
    memcpy(stored + 10, text + 4, 2);
    memcpy(stored + 12, text, 4);
}

void uuid_to_stored(const uint8_t text[16], uint8_t stored[16])
{
    if (text[6] >= 0x01 && text[6] <= 0x5F && text[8] & 0x80)
        swap_segments(text, stored);
    else
        memcpy(stored, text, 16);
}

void uuid_from_stored(const uint8_t stored[16], uint8_t text[16])
{
    if (!(stored[6] & 0x80 && stored[8] >= 0x01 && stored[8] <= 0x5F)) {
        memcpy(text, stored, 16);
        return;
    }
    memcpy(text + 10, stored, 6);
    memcpy(text + 8, stored + 6, 2);
    memcpy(text + 6, stored + 8, 2);
    memcpy(text + 4, stored + 10, 2);
    memcpy(text, stored + 12, 4);
}

static bool address_parse(int family, const char *s, size_t len, uint8_t *out)
{
    char text[64];
    if (len >= sizeof text || memchr(s, 0, len))
        return false;
    memcpy(text, s, len);
    text[len] = 0;
    return inet_pton(family, text, out) == 1;
}

bool inet4_parse(const char *s, size_t len, uint8_t out[4])
{
    return address_parse(AF_INET, s, len, out);
}

bool inet6_parse(const char *s, size_t len, uint8_t out[16])
{
    return address_parse(AF_INET6, s, len, out);
}

size_t inet4_print(const uint8_t in[4], char *out)
{
    return (size_t)sprintf(out, "%u.%u.%u.%u", in[0], in[1], in[2], in[3]);
}

size_t inet6_print(const uint8_t in[16], char *out)
{
    inet_ntop(AF_INET6, in, out, INET6_ADDRSTRLEN);
    return strlen(out);
}
