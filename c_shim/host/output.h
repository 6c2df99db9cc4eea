/*
 * Results as the `mariadb` client prints them: boxed tables, one line per column (\G), or
 * tab-separated lines with escapes (--batch); and the lines around them ("1 row in set", "Query OK").
 *
 * An output is a sink: a session writes a statement's result into it. It belongs to one thread.
 * Boxed and vertical results are held until their end, since widths depend on every row; batch
 * results are written as they come.
 */
#ifndef XTRADB_HOST_OUTPUT_H
#define XTRADB_HOST_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "host.h"

enum output_form { OUTPUT_TABLE, OUTPUT_VERTICAL, OUTPUT_BATCH };

typedef struct output_style {
    enum output_form form;
    bool names;        /* column names in tables and batch */
    bool raw;          /* no escapes in batch */
    bool counts;       /* "Query OK", "n rows in set" */
    bool timing;       /* "(0.001 sec)" after them */
    bool line_numbers; /* "at line N" in errors */
} output_style;

typedef struct output output;

/* Results go to `out`, errors to `err`; both stay the caller's. */
output *output_new(FILE *out, FILE *err, const output_style *style);
void output_free(output *o);
sink *output_sink(output *o);

/* Before each statement: its line, and whether \G ended it. Starts the clock. */
void output_begin(output *o, unsigned line, bool vertical);

/* While quiet, a statement that succeeds prints nothing. */
void output_quiet(output *o, bool on);

/* A line of the client itself, where counts are printed too ("Database changed"). */
void output_line(output *o, const char *text);

/* What became of the statement since output_begin. */
unsigned output_error(const output *o);    /* SQL error number or 0 */
unsigned output_warnings(const output *o);

/* Columns that `bytes` of UTF-8 take on a terminal. */
size_t output_width(const char *bytes, size_t length);

#endif
