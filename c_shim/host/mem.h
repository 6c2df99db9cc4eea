/* Memory of the SQL half: an arena per statement, and a growing byte buffer.
 * Running out of memory ends the process: a host of the size of a laptop demo has nothing better. */
#ifndef XTRADB_HOST_MEM_H
#define XTRADB_HOST_MEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t size); /* zeroed; free() it */
void *mem_realloc(void *p, size_t size);
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t len);

struct arena_block;
struct arena {
    struct arena_block *block;
};
struct arena_mark {
    struct arena_block *block;
    size_t used;
};

void *arena_alloc(struct arena *a, size_t size);  /* zeroed, 16-byte aligned */
uint8_t *arena_bytes(struct arena *a, size_t size); /* not zeroed */
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct arena_mark arena_mark(struct arena *a);
void arena_release(struct arena *a, struct arena_mark mark); /* frees what came after the mark */
void arena_free(struct arena *a);

struct strbuf {
    char *data; /* always NUL-terminated once something was added */
    size_t len, cap;
};

void buf_add(struct strbuf *b, const void *data, size_t len);
void buf_char(struct strbuf *b, char c);
void buf_str(struct strbuf *b, const char *s);
void buf_printf(struct strbuf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct strbuf *b, const char *format, va_list args);
void buf_quoted(struct strbuf *b, const char *s, size_t len, char quote); /* quote doubled inside */
void buf_sql_string(struct strbuf *b, const char *s, size_t len); /* '…' with escapes, as SQL reads it */
void buf_free(struct strbuf *b);

#endif
