/*
 * A library behind the seams of host.h: converts and calls one slot of the library's table.
 *
 *   xt_engine.c   life of the engine, callbacks, sessions, statements, transactions
 *   xt_def.c      table definitions, there and back
 *   xt_table.c    handles: reading and writing; DDL
 *   xt_info.c     settings, status, monitor, INFORMATION_SCHEMA tables
 *
 * Rows and keys cross as they are: both sides use MariaDB's images. Numbers below 1000 of xt_status
 * are HA_ERR numbers, as are the SE_ numbers of the seams; the others become SE_GENERIC with a text.
 */
#ifndef XTRADB_HOST_XT_ENGINE_H
#define XTRADB_HOST_XT_ENGINE_H

#include <pthread.h>
#include <xtradb.h>

#include "host.h"
#include "loader.h"

#define QUERY_TEXT_MAX 1024
#define XT_NAME_MAX 1024 /* "database/table" in file-name encoding */

/* A collation as the library sees it; made when it asks, kept to the end. */
typedef struct xt_known_collation {
    struct xt_known_collation *next;
    xt_collation collation;
} xt_known_collation;

typedef struct xt_host_engine {
    engine base; /* first */
    host *h;
    const xt_api *api;
    xt_engine *xe;
    xt_host callbacks;
    pthread_mutex_t mutex; /* collations */
    xt_known_collation *collations;
} xt_host_engine;

struct xt_handle;

/* The engine's part of a session. */
typedef struct xt_part {
    xt_host_engine *engine;
    session *s;
    xt_session *xs;
    struct xt_handle *bound; /* handles that the statement uses */
    pthread_mutex_t mutex;   /* query: other sessions look at it */
    char query[QUERY_TEXT_MAX];
    uint32_t query_length;
} xt_part;

enum xt_place { XT_PLACE_NONE, XT_PLACE_SCAN, XT_PLACE_POSITION, XT_PLACE_INDEX };

typedef struct xt_handle {
    se_table base; /* first */
    xt_part *part;
    xt_table *table;
    struct xt_handle *next_bound;
    bool bound;
    enum xt_place place;
    uint32_t key; /* XT_PLACE_INDEX */
    uint32_t ref_length;
} xt_handle;

/* The library knows how long its descriptions are; a later one may say more than this host reads. */
static inline const xt_setting *xt_setting_at(const xt_setting *first, uint32_t index)
{
    return (const xt_setting *)(const void *)((const char *)first +
                                              (size_t)index * first->struct_size);
}

static inline xt_host_engine *xt_engine_of(engine *e)
{
    return (xt_host_engine *)e;
}

/* The SE_ number of a status; leaves the library's text in the session. */
int xt_result(const xt_part *part, xt_status status);

/* xt_table.c: ends the use of every handle that the statement bound. */
void xt_release_bound(xt_part *part);

/* xt_def.c */
typedef struct xt_template {
    xt_table_def def;
    xt_column *columns;
    xt_key *keys;
    xt_key_part *parts;
} xt_template;
void xt_template_make(xt_template *t, const table_def *def);
void xt_template_free(xt_template *t);
/* "database/table"; false: a name that no file can have. */
bool xt_table_name(char name[XT_NAME_MAX], const char *db, const char *table);
table_def *xt_def_from_description(const xt_description *description, const char *db,
                                   const char *name);
const char *xt_row_format_name(uint32_t row_format);

/* The functions of se_ops that other files hold; xt_engine.c puts the table together. */
void xt_table_ops(struct se_ops *ops);
void xt_info_ops(struct se_ops *ops);

#endif
