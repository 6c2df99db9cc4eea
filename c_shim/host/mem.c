/* Arena and growing buffer; see mem.h. */
#include "mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void out_of_memory(size_t size)
{
    fprintf(stderr, "xtradb-host: out of memory (%zu bytes)\n", size);
    exit(1);
}

void *mem_alloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);
    if (!p)
        out_of_memory(size);
    return p;
}

void *mem_realloc(void *p, size_t size)
{
    void *q = realloc(p, size ? size : 1);
    if (!q)
        out_of_memory(size);
    return q;
}

char *mem_strndup(const char *s, size_t len)
{
    char *p = mem_alloc(len + 1);
    memcpy(p, s, len);
    return p;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

struct arena_block {
    struct arena_block *prev;
    size_t used, size;
    _Alignas(16) uint8_t data[];
};

enum { BLOCK_SIZE = 64 * 1024 - 64 };

uint8_t *arena_bytes(struct arena *a, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    struct arena_block *b = a->block;
    if (!b || b->size - b->used < size) {
        size_t want = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        b = malloc(sizeof *b + want);
        if (!b)
            out_of_memory(size);
        b->prev = a->block;
        b->used = 0;
        b->size = want;
        a->block = b;
    }
    uint8_t *p = b->data + b->used;
    b->used += size;
    return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
    return memset(arena_bytes(a, size), 0, size);
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
    char *p = (char *)arena_bytes(a, len + 1);
    if (len)
        memcpy(p, s, len);
    p[len] = 0;
    return p;
}

char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *p = (char *)arena_bytes(a, (size_t)len + 1);
    vsnprintf(p, (size_t)len + 1, format, again);
    va_end(again);
    return p;
}

struct arena_mark arena_mark(struct arena *a)
{
    return (struct arena_mark){a->block, a->block ? a->block->used : 0};
}

void arena_release(struct arena *a, struct arena_mark mark)
{
    while (a->block != mark.block) {
        struct arena_block *b = a->block;
        a->block = b->prev;
        free(b);
    }
    if (a->block)
        a->block->used = mark.used;
}

void arena_free(struct arena *a)
{
    arena_release(a, (struct arena_mark){NULL, 0});
}

static void buf_room(struct strbuf *b, size_t more)
{
    if (b->cap - b->len > more)
        return;
    size_t cap = b->cap ? b->cap : 64;
    while (cap - b->len <= more)
        cap *= 2;
    b->data = mem_realloc(b->data, cap);
    b->cap = cap;
}

void buf_add(struct strbuf *b, const void *data, size_t len)
{
    buf_room(b, len + 1);
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = 0;
}

void buf_char(struct strbuf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_str(struct strbuf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_vprintf(struct strbuf *b, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    buf_room(b, (size_t)len + 1);
    vsnprintf(b->data + b->len, (size_t)len + 1, format, args);
    b->len += (size_t)len;
}

void buf_printf(struct strbuf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vprintf(b, format, args);
    va_end(args);
}

void buf_quoted(struct strbuf *b, const char *s, size_t len, char quote)
{
    buf_char(b, quote);
    for (size_t i = 0; i < len; i++) {
        if (s[i] == quote)
            buf_char(b, quote);
        buf_char(b, s[i]);
    }
    buf_char(b, quote);
}

void buf_sql_string(struct strbuf *b, const char *s, size_t len)
{
    buf_char(b, '\'');
    for (size_t i = 0; i < len; i++) {
        switch (s[i]) {
        case 0: buf_str(b, "\\0"); break;
        case '\n': buf_str(b, "\\n"); break;
        case '\r': buf_str(b, "\\r"); break;
        case '\\': buf_str(b, "\\\\"); break;
        case '\'': buf_str(b, "''"); break;
        default: buf_char(b, s[i]);
        }
    }
    buf_char(b, '\'');
}

void buf_free(struct strbuf *b)
{
    free(b->data);
    *b = (struct strbuf){0};
}
