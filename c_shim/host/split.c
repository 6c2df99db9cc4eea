/* Where a statement ends: used by the shell, which feeds text as it comes. */
#include <ctype.h>
#include <string.h>

#include "host.h"

/* Moves past a quoted piece or comment that begins at `p`; returns p itself when none begins there,
 * len + 1 when it does not end. */
static size_t skip_opaque(const char *text, size_t len, size_t p)
{
    char c = text[p];
    if (c == '\'' || c == '"' || c == '`') {
        size_t q = p + 1;
        while (q < len && text[q] != c)
            q += c != '`' && text[q] == '\\' ? 2 : 1;
        return q < len ? q + 1 : len + 1;
    }
    bool dash = c == '-' && p + 1 < len && text[p + 1] == '-' &&
                (p + 2 >= len || isspace((unsigned char)text[p + 2]));
    if (c == '#' || dash) {
        const char *nl = memchr(text + p, '\n', len - p);
        return nl ? (size_t)(nl - text) + 1 : len;
    }
    if (c == '/' && p + 1 < len && text[p + 1] == '*') {
        for (size_t q = p + 2; q + 1 < len; q++)
            if (text[q] == '*' && text[q + 1] == '/')
                return q + 2;
        return len + 1;
    }
    return p;
}

bool sql_split(const char *text, size_t len, const char *delimiter, size_t *end, size_t *next)
{
    size_t delimiter_len = strlen(delimiter);
    size_t p = 0;
    while (p < len) {
        if (len - p >= delimiter_len && !memcmp(text + p, delimiter, delimiter_len)) {
            *end = p;
            *next = p + delimiter_len;
            return true;
        }
        size_t q = skip_opaque(text, len, p);
        if (q > len)
            return false;
        p = q > p ? q : p + 1;
    }
    return false;
}

bool sql_is_blank(const char *text, size_t len)
{
    size_t p = 0;
    while (p < len) {
        if (isspace((unsigned char)text[p])) {
            p++;
            continue;
        }
        if (strchr("'\"`", text[p]))
            return false;
        bool executed = len - p > 3 && (!memcmp(text + p, "/*!", 3) || !memcmp(text + p, "/*M!", 4));
        size_t q = skip_opaque(text, len, p);
        if (q == p || q > len || executed)
            return false;
        p = q;
    }
    return true;
}
