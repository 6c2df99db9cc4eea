/*
 * Options as mysqld spells them, and those of the command-line client.
 *
 * Dash and underscore are the same in a name; a unique prefix of a name will do (with a warning);
 * loose-, skip-, disable- and enable- may stand before a name; sizes end in K, M, G, T, P or E.
 * Sources, later ones win: the file of --defaults-file (groups [mysqld], [server], [mariadb] and
 * [xtradb-host]), then the command line. What no option of the host has as its name is kept in
 * `variables` for the engine, which is asked once its library is loaded.
 */
#ifndef XTRADB_HOST_OPTIONS_H
#define XTRADB_HOST_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes, as my_getopt and mysqld use them. */
enum {
    EXIT_OPTION_AMBIGUOUS = 3,
    EXIT_OPTION_NO_VALUE_ALLOWED = 4,
    EXIT_OPTION_VALUE_MISSING = 5,
    EXIT_OPTION_UNKNOWN = 7,
    EXIT_OPTION_BAD_SUFFIX = 9,
    EXIT_OPTION_BAD_VALUE = 13,
};

/* An option that is not the host's own: a variable of an engine, or a mistake. */
typedef struct engine_option {
    char *name;  /* underscores, without prefix */
    char *given; /* as it was spelt, prefix and value included */
    char *value; /* NULL when the option was given without one */
    bool loose;  /* unknown is a warning only */
} engine_option;

typedef struct string_list {
    char **items;
    size_t count;
} string_list;

/* What a plugin's own option (--innodb=…) says. */
typedef enum plugin_mode {
    PLUGIN_MODE_ON,
    PLUGIN_MODE_OFF,
    PLUGIN_MODE_FORCE,
    PLUGIN_MODE_PERMANENT,
} plugin_mode;

typedef struct host_options {
    /* server side */
    char *datadir;
    char *plugin_dir;
    string_list plugin_lists; /* in order; --plugin-load drops what came before */
    bool ignore_builtin_innodb;
    plugin_mode innodb;
    char *default_storage_engine;
    char *log_error;
    uint64_t log_warnings; /* 0: errors, 1 and 2: warnings too, 3: notes too */
    engine_option *variables;
    size_t variable_count;

    /* client side */
    char *database;
    string_list execute; /* -e, in order */
    string_list files;   /* script files, in order */
    char *sessions;      /* file of a script with several sessions */
    uint64_t step_timeout; /* seconds a step of such a script may take without waiting for a lock */
    bool batch;
    bool table;
    bool vertical;
    bool column_names;
    bool raw;
    bool force;
    bool show_warnings;
    unsigned silent;
    unsigned verbose; /* 1: statements, 2: and row counts, 3: and times */
    char *prompt;

    /* asked to do nothing but print */
    bool help;
    bool version;
} host_options;

/*
 * Reads defaults files and the command line. 0, or the exit code of the process; the reason is in
 * the log then. `options` is filled with defaults first and owns all its strings.
 */
int options_read(host_options *options, int argc, char **argv);

void options_free(host_options *options);

/* The text of --help, to stdout. */
void options_print_help(void);

/* Parses a number with an optional size suffix. 0, EXIT_OPTION_BAD_SUFFIX or EXIT_OPTION_BAD_VALUE. */
int option_parse_size(const char *text, uint64_t *value);

/* ON, OFF, TRUE, FALSE, 1, 0. False: none of these. */
bool option_parse_bool(const char *text, bool *value);

/* Options of real servers that mean nothing to this host or to any engine of today. */
bool option_is_removed(const char *name);

/* Compares names, dash and underscore being equal. */
bool option_name_equal(const char *a, const char *b);

#endif
