/* The command line. */
#ifndef XTRADB_TPCC_PARSE_H
#define XTRADB_TPCC_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "describe.h"

#define SETTINGS_MAX 128

enum { EXIT_HELD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

typedef struct options {
    const char *plugin_load;
    const char *plugin_dir;
    const char *datadir;
    const char *settings[SETTINGS_MAX]; /* "innodb_name=value" */
    uint32_t setting_count;
    shape size; /* 0 warehouses: what the directory has, or 1 */
    int threads;
    int load_threads;
    int seconds;
    int warmup;
    uint32_t isolation;
    uint64_t seed;
    bool load_by_row;   /* tables are filled row by row instead of being built at once */
    bool one_statement; /* a transaction is one statement instead of one for each of its SQL */
    bool prepare_only;
    bool check_only;
    bool no_check;
    bool reload;
    bool verbose;
    const char *plot; /* NULL: none */
    const char *json;
} options;

/* EXIT_HELD: go on; -1: all is done (--help, --print-schema); else the process' exit code. */
int options_parse(options *o, int argc, char **argv);

#endif
