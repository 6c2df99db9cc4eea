/* Tables that are made when they are read: INFORMATION_SCHEMA, sequences, lists of SHOW. */
#ifndef XTRADB_HOST_VIRTUAL_H
#define XTRADB_HOST_VIRTUAL_H

#include "exec.h"

/* Columns by name; a name that begins with # is a number, others are text. Lives in the arena. */
struct virtual_table *virtual_new(session *s, const char *name, const char *const *columns,
                                  uint32_t count);
void virtual_add(session *s, struct virtual_table *v, const struct is_value *values, size_t count);
void virtual_add_text(session *s, struct virtual_table *v, const char *const *values);
void virtual_sort(struct virtual_table *v); /* by the first column */
/* To the sink: rows that match LIKE (on column `like_column`) and WHERE of the statement. */
unsigned virtual_send(session *s, struct virtual_table *v, const struct stmt *st, uint32_t like_column);

/* A row_fn that adds; ctx is this. */
struct virtual_fill {
    session *s;
    struct virtual_table *v;
};
int virtual_take(void *ctx, const struct is_value *values, size_t count);

/* info_schema.c: the host's own tables. NULL: no such table. */
struct virtual_table *info_schema_open(session *s, const char *name);

#endif
