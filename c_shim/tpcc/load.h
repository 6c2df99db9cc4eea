/* Making the database, and recognising one that was made before. */
#ifndef XTRADB_TPCC_LOAD_H
#define XTRADB_TPCC_LOAD_H

#include "connect.h"

/* What a directory has. */
enum loaded { LOADED_NOTHING, LOADED_PARTLY, LOADED_WHOLLY, LOADED_UNKNOWN };

/* Reads the size of a complete database into `size`. LOADED_UNKNOWN: an error was told. */
enum loaded load_examine(bench *b, shape *size);

/* Drops what is there, creates the tables and fills them, with several threads. False: said why. */
bool load_all(bench *b);

#endif
