/* Files of the catalog: paths, whole-file reads, atomic replacement. */
#ifndef XTRADB_HOST_CATALOG_FILE_H
#define XTRADB_HOST_CATALOG_FILE_H

#include "catalog.h"
#include "mem.h"

/* DATADIR/db[/name SUFFIX], encoded. name NULL: the directory. */
bool catalog_path(host *h, char *out, size_t size, const char *db, const char *name,
                  const char *suffix);
bool is_directory(const char *path);
bool file_read(const char *path, struct strbuf *out);
/* Writes beside, syncs, renames, syncs the directory. errno tells on failure. */
bool file_replace(const char *path, const char *data, size_t len);

#endif
