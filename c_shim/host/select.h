/* A SELECT that runs: shared by exec_select.c and select_rows.c. */
#ifndef XTRADB_HOST_SELECT_H
#define XTRADB_HOST_SELECT_H

#include "exec.h"

struct group; /* select_rows.c */
struct kept_row;

struct select_run {
    session *s;
    struct select *sel;
    struct scope scope;
    struct select_item *items;
    const char **headings;
    uint32_t item_count;
    struct open_table *table;
    struct virtual_table *virtual_table;
    struct plan plan;
    uint8_t *read_set;
    uint8_t isolation;
    bool grouped, sorted, to_sink;
    select_row_fn fn;
    void *ctx;
    uint64_t skipped, sent;
    struct arena kept;      /* rows that wait for sorting, groups */
    struct group *groups;
    uint32_t group_count;
    struct expr **aggregates; /* by number */
    struct kept_row *rows;
    size_t row_count;
};

unsigned select_prepare(struct select_run *r, session *s, struct select *sel);
void select_columns(struct select_run *r);              /* headings to the sink */
void select_start(struct select_run *r);
unsigned select_row(struct select_run *r, bool *done);  /* a row that passed WHERE */
unsigned select_finish(struct select_run *r);           /* groups, sorting */
void select_free(struct select_run *r);

#endif
