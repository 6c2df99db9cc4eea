/* Parts of tabledef_build. */
#ifndef XTRADB_HOST_TABLEDEF_H
#define XTRADB_HOST_TABLEDEF_H

#include "catalog.h"

uint32_t tabledef_collation(session *s, const char *charset, const char *collate, uint32_t fallback);
bool tabledef_columns(session *s, const struct create_table *ct, table_def *def);
bool tabledef_keys(session *s, const struct create_table *ct, table_def *def);

#endif
