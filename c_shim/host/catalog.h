/* Databases and table definitions. */
#ifndef XTRADB_HOST_CATALOG_H
#define XTRADB_HOST_CATALOG_H

#include "ast.h"
#include "host.h"
#include "value.h"

/* filename.c. False: no valid name, or no room. */
bool filename_encode(const char *name, char *out, size_t size);
bool filename_decode(const char *file, char *out, size_t size);

/* tabledef.c: a definition from CREATE TABLE. NULL after an error in the diagnostics. */
table_def *tabledef_build(session *s, const struct create_table *ct, const char *db,
                          uint32_t db_collation);
/* Computes offsets, null bits and key lengths from types; fills defaults with zero values. */
void tabledef_layout(table_def *def);
void column_layout(struct column *c); /* pack_length, length_bytes of one column */
void tabledef_free(table_def *def);
/* showdef.c: the CREATE TABLE text; type text of one column; default as text. */
void tabledef_print(const table_def *def, const char *name, bool with_autoinc, uint64_t autoinc,
                    struct strbuf *out);
const char *geometry_name(uint32_t kind); /* column->decimals of geometries; NULL past the last */
void column_type_print(const struct column *c, struct strbuf *out);

/* catalog.c. Names are as SQL has them. */
table_def *catalog_get(session *s, const char *db, const char *name); /* NULL: error is set */
/* Silent: NULL when there is no such table. */
table_def *catalog_find(session *s, const char *db, const char *name);
void catalog_ref(host *h, table_def *def);
void catalog_release(host *h, table_def *def);
/* Writes the .xtd file and publishes. False: error is set. Takes over the reference. */
bool catalog_store(session *s, table_def *def);
bool catalog_remove(session *s, const char *db, const char *name);
void catalog_forget(host *h, const char *db, const char *name); /* drop from the cache only */
bool catalog_db_exists(host *h, const char *db);
uint32_t catalog_db_collation(host *h, const char *db);
bool catalog_create_db(session *s, const char *db, uint32_t collation, bool if_not_exists);
bool catalog_remove_db(session *s, const char *db);
int catalog_list_dbs(host *h, row_fn fn, void *ctx);
/* Names of the tables of a database, sorted: .xtd files and what the engines know. */
int catalog_list_tables(session *s, const char *db, row_fn fn, void *ctx);

/* rec.c: two key images in index order; both have `length` bytes. */
int image_compare(const table_def *def, uint32_t key, const uint8_t *a, const uint8_t *b,
                  uint32_t length);

/* mdl.c: names of tables, locked shared by statements and exclusive by DDL. */
enum mdl_mode { MDL_SHARED, MDL_EXCLUSIVE };
/* False: error 1205 or 1317 is set. */
bool mdl_lock(session *s, const char *db, const char *name, enum mdl_mode mode);
void mdl_release_all(session *s, bool keep_explicit);
void mdl_make_explicit(session *s); /* what is held now stays until UNLOCK TABLES */
void mdl_release_explicit(session *s);

#endif
