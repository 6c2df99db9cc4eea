/* Facts that SHOW and INFORMATION_SCHEMA share. */
#ifndef XTRADB_HOST_SHOWROWS_H
#define XTRADB_HOST_SHOWROWS_H

#include "exec.h"

struct column_row { /* texts in the arena or static */
    const char *type, *null, *key, *default_text, *extra, *collation, *comment;
};
void column_row_make(session *s, const table_def *def, uint32_t column, struct column_row *out);
/* The engine's estimates. False: the engine is away or cannot open the table (no error is left). */
bool table_info(session *s, const table_def *def, struct se_info *out);
int status_list(session *s, row_fn fn, void *ctx); /* rows (name, value) */

#endif
