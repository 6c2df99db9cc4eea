#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "defaults.h"
#include "loader.h"
#include "log.h"

enum kind {
    KIND_STRING,
    KIND_LIST,      /* may be repeated; every value is kept */
    KIND_LIST_NEW,  /* drops the values before it */
    KIND_BOOL,
    KIND_NOT,       /* a switch that clears a bool */
    KIND_COUNT,     /* a switch that counts */
    KIND_SIZE,
    KIND_PLUGIN,    /* ON, OFF, FORCE, FORCE_PLUS_PERMANENT */
    KIND_IGNORED,   /* of a real server, without meaning here */
};

struct definition {
    const char *name;
    char letter;
    unsigned char kind;
    size_t offset;
    const char *help;
};

#define AT(member) offsetof(host_options, member)

static const struct definition definitions[] = {
    { "batch", 'B', KIND_BOOL, AT(batch), "tab-separated output, no history" },
    { "column-names", 0, KIND_BOOL, AT(column_names), "column names in results (default)" },
    { "database", 'D', KIND_STRING, AT(database), "database to use" },
    { "datadir", 'h', KIND_STRING, AT(datadir), "data directory, must be there (default .)" },
    { "default-storage-engine", 0, KIND_STRING, AT(default_storage_engine),
      "engine of CREATE TABLE without ENGINE= (default InnoDB)" },
    { "execute", 'e', KIND_LIST, AT(execute), "statements to run; may be repeated" },
    { "force", 'f', KIND_BOOL, AT(force), "go on after an error" },
    { "help", '?', KIND_BOOL, AT(help), "this text" },
    { "ignore-builtin-innodb", 0, KIND_BOOL, AT(ignore_builtin_innodb),
      "leave the name InnoDB to a plugin" },
    { "innodb", 0, KIND_PLUGIN, AT(innodb), "ON, OFF, FORCE or FORCE_PLUS_PERMANENT" },
    { "log-error", 0, KIND_STRING, AT(log_error), "file of the error log (default stderr)" },
    { "log-warnings", 'W', KIND_SIZE, AT(log_warnings),
      "0 errors, 1 or 2 and warnings (default), 3 and notes" },
    { "plugin-dir", 0, KIND_STRING, AT(plugin_dir),
      "where libraries are (default: beside the host, or ../lib/xtradb)" },
    { "plugin-load", 0, KIND_LIST_NEW, AT(plugin_lists),
      "plugins to load: name=lib;name=lib;lib" },
    { "plugin-load-add", 0, KIND_LIST, AT(plugin_lists), "more of them; may be repeated" },
    { "prompt", 0, KIND_STRING, AT(prompt), "prompt of the interactive shell" },
    { "raw", 'r', KIND_BOOL, AT(raw), "no escapes in --batch output" },
    { "sessions", 0, KIND_STRING, AT(sessions), "run a script with several sessions" },
    { "show-warnings", 0, KIND_BOOL, AT(show_warnings), "print warnings after each statement" },
    { "silent", 's', KIND_COUNT, AT(silent), "less output; twice: no column names" },
    { "skip-column-names", 'N', KIND_NOT, AT(column_names), "no column names in results" },
    { "step-timeout", 0, KIND_SIZE, AT(step_timeout),
      "seconds a step of --sessions may run (default 60)" },
    { "table", 't', KIND_BOOL, AT(table), "boxed tables even when not interactive" },
    { "verbose", 'v', KIND_COUNT, AT(verbose),
      "print statements; twice: and row counts; three times: and times" },
    { "version", 'V', KIND_BOOL, AT(version), "print the version" },
    { "vertical", 'E', KIND_BOOL, AT(vertical), "one line per column" },
    /* what the my.cnf of a real server has, so that it can be read as it is */
    { "basedir", 0, KIND_IGNORED, 0, NULL },
    { "bind-address", 0, KIND_IGNORED, 0, NULL },
    { "character-set-server", 0, KIND_IGNORED, 0, NULL },
    { "collation-server", 0, KIND_IGNORED, 0, NULL },
    { "expire-logs-days", 0, KIND_IGNORED, 0, NULL },
    { "lc-messages-dir", 0, KIND_IGNORED, 0, NULL },
    { "max-allowed-packet", 0, KIND_IGNORED, 0, NULL },
    { "max-connections", 0, KIND_IGNORED, 0, NULL },
    { "pid-file", 0, KIND_IGNORED, 0, NULL },
    { "port", 0, KIND_IGNORED, 0, NULL },
    { "skip-grant-tables", 0, KIND_IGNORED, 0, NULL },
    { "skip-name-resolve", 0, KIND_IGNORED, 0, NULL },
    { "skip-networking", 0, KIND_IGNORED, 0, NULL },
    { "socket", 0, KIND_IGNORED, 0, NULL },
    { "tmpdir", 0, KIND_IGNORED, 0, NULL },
    { "user", 0, KIND_IGNORED, 0, NULL },
};

#define DEFINITION_COUNT (sizeof definitions / sizeof definitions[0])

/* Variables that 10.11 accepts and ignores itself. */
static const char *const removed[] = {
    "innodb-adaptive-max-sleep-delay", "innodb-buffer-pool-instances", "innodb-commit-concurrency",
    "innodb-concurrency-tickets", "innodb-file-format", "innodb-force-load-corrupted",
    "innodb-idle-flush-pct", "innodb-large-prefix", "innodb-lock-schedule-algorithm",
    "innodb-locks-unsafe-for-binlog", "innodb-log-checksums", "innodb-log-compressed-pages",
    "innodb-log-files-in-group", "innodb-log-optimize-ddl", "innodb-lru-flush-size",
    "innodb-page-cleaners", "innodb-purge-rseg-truncate-frequency", "innodb-replication-delay",
    "innodb-rollback-segments", "innodb-scrub-log", "innodb-scrub-log-speed",
    "innodb-stats-sample-pages", "innodb-sync-array-size", "innodb-thread-concurrency",
    "innodb-thread-sleep-delay", "innodb-undo-logs",
};

static bool same_letter(char a, char b)
{
    return a == b || (a == '-' && b == '_') || (a == '_' && b == '-');
}

/* Does `name` begin with `prefix`? */
static bool has_prefix(const char *name, const char *prefix)
{
    for (; *prefix != '\0'; name++, prefix++)
        if (!same_letter(*name, *prefix))
            return false;
    return true;
}

bool option_name_equal(const char *a, const char *b)
{
    return has_prefix(a, b) && strlen(a) == strlen(b);
}

bool option_is_removed(const char *name)
{
    for (size_t i = 0; i < sizeof removed / sizeof removed[0]; i++)
        if (option_name_equal(name, removed[i]))
            return true;
    return has_prefix(name, "innodb-background-scrub-data-");
}

bool option_parse_bool(const char *text, bool *value)
{
    static const char *const yes[] = { "1", "on", "true", "yes" };
    static const char *const no[] = { "0", "off", "false", "no" };

    for (size_t i = 0; i < 4; i++) {
        if (strcasecmp(text, yes[i]) == 0) {
            *value = true;
            return true;
        }
        if (strcasecmp(text, no[i]) == 0) {
            *value = false;
            return true;
        }
    }
    return false;
}

int option_parse_size(const char *text, uint64_t *value)
{
    static const char suffixes[] = "kmgtpe";
    char *end;
    const char *suffix;
    unsigned long long number;

    if (*text < '0' || *text > '9')
        return EXIT_OPTION_BAD_VALUE;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno != 0)
        return EXIT_OPTION_BAD_VALUE;
    if (*end != '\0') {
        char lower = (char)(*end | 0x20);

        suffix = strchr(suffixes, lower);
        if (end[1] != '\0' || suffix == NULL)
            return EXIT_OPTION_BAD_SUFFIX;
        for (long i = suffix - suffixes; i >= 0; i--) {
            if (number > UINT64_MAX / 1024)
                return EXIT_OPTION_BAD_VALUE;
            number *= 1024;
        }
    }
    *value = number;
    return 0;
}

static char *copy(const char *text)
{
    char *result = strdup(text);

    if (result == NULL)
        abort();
    return result;
}

static void list_add(string_list *list, const char *value)
{
    list->items = realloc(list->items, (list->count + 1) * sizeof *list->items);
    if (list->items == NULL)
        abort();
    list->items[list->count++] = copy(value);
}

static void list_clear(string_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (string_list){ 0 };
}

static int set_plugin_mode(plugin_mode *mode, const char *name, const char *value)
{
    static const char *const words[] = { "ON", "OFF", "FORCE", "FORCE_PLUS_PERMANENT" };
    bool on;

    for (int i = 0; i < 4; i++) {
        if (value == NULL || strcasecmp(value, words[i]) == 0) {
            *mode = (plugin_mode)i;
            return 0;
        }
    }
    if (option_parse_bool(value, &on)) {
        *mode = on ? PLUGIN_MODE_ON : PLUGIN_MODE_OFF;
        return 0;
    }
    host_log(HOST_LOG_ERROR, "xtradb-host: Error while setting value '%s' to '%s': must be ON, OFF, "
             "FORCE or FORCE_PLUS_PERMANENT", value, name);
    return EXIT_OPTION_BAD_VALUE;
}

static int set_size(uint64_t *size, const char *name, const char *value)
{
    int result = option_parse_size(value, size);

    if (result == EXIT_OPTION_BAD_SUFFIX)
        host_log(HOST_LOG_ERROR, "xtradb-host: Unknown suffix used for variable '%s' (value '%s'). "
                 "Legal suffix characters are: K, M, G, T, P, E", name, value);
    else if (result != 0)
        host_log(HOST_LOG_ERROR, "xtradb-host: option '%s': '%s' is not an unsigned number", name,
                 value);
    return result;
}

static int set_bool(bool *target, const char *name, const char *value)
{
    if (value == NULL || option_parse_bool(value, target)) {
        *target = value == NULL ? true : *target;
        return 0;
    }
    host_log(HOST_LOG_ERROR, "xtradb-host: option '%s': boolean value '%s' wasn't recognized", name,
             value);
    return EXIT_OPTION_BAD_VALUE;
}

static void set_string(char **target, const char *value)
{
    free(*target);
    *target = copy(value);
}

static int set_option(host_options *o, const struct definition *d, const char *value)
{
    void *at = (char *)o + d->offset;
    bool switched;

    switch (d->kind) {
    case KIND_STRING:
        set_string(at, value);
        return 0;
    case KIND_LIST_NEW:
        list_clear(at);
        list_add(at, value);
        return 0;
    case KIND_LIST:
        list_add(at, value);
        return 0;
    case KIND_BOOL:
        return set_bool(at, d->name, value);
    case KIND_NOT:
        if (set_bool(&switched, d->name, value) != 0)
            return EXIT_OPTION_BAD_VALUE;
        *(bool *)at = !switched;
        return 0;
    case KIND_COUNT:
        if (value != NULL) {
            host_log(HOST_LOG_ERROR, "xtradb-host: option '--%s' cannot take an argument", d->name);
            return EXIT_OPTION_NO_VALUE_ALLOWED;
        }
        ++*(unsigned *)at;
        return 0;
    case KIND_SIZE:
        return set_size(at, d->name, value);
    case KIND_PLUGIN:
        return set_plugin_mode(at, d->name, value);
    default:
        host_log(HOST_LOG_NOTE, "xtradb-host: '%s' means nothing to this host", d->name);
        return 0;
    }
}

static bool needs_value(const struct definition *d)
{
    return d->kind == KIND_STRING || d->kind == KIND_LIST || d->kind == KIND_LIST_NEW ||
           d->kind == KIND_SIZE;
}

/*
 * Finds the definition by name, or by a prefix that only one name has. More than one: *ambiguous
 * is set to another one of them.
 */
static const struct definition *find(const char *name, const struct definition **ambiguous)
{
    const struct definition *found = NULL;

    *ambiguous = NULL;
    for (size_t i = 0; i < DEFINITION_COUNT; i++) {
        if (!has_prefix(definitions[i].name, name))
            continue;
        if (strlen(definitions[i].name) == strlen(name)) {
            *ambiguous = NULL;
            return &definitions[i];
        }
        if (found != NULL)
            *ambiguous = &definitions[i];
        found = found != NULL ? found : &definitions[i];
    }
    return found;
}

/* Keeps an option for the engine. Underscores, as variables are spelt in SQL. */
static void keep_variable(host_options *o, const char *name, const char *value, bool loose,
                          const char *spelt, const char *spelt_value)
{
    engine_option *v;
    size_t size = strlen(spelt) + (spelt_value != NULL ? strlen(spelt_value) : 0) + 2;

    o->variables = realloc(o->variables, (o->variable_count + 1) * sizeof *o->variables);
    if (o->variables == NULL)
        abort();
    v = &o->variables[o->variable_count++];
    v->name = copy(name);
    for (char *p = v->name; *p != '\0'; p++)
        if (*p == '-')
            *p = '_';
    v->value = value == NULL ? NULL : copy(value);
    v->loose = loose;
    v->given = malloc(size);
    if (v->given == NULL)
        abort();
    snprintf(v->given, size, "%s%s%s", spelt, spelt_value != NULL ? "=" : "",
             spelt_value != NULL ? spelt_value : "");
}

/* Strips "skip-" and the like where the rest is what the option is called. */
static const char *strip_switch(const char *name, const char **value)
{
    const struct definition *other;

    if (find(name, &other) != NULL)
        return name; /* skip-column-names, skip-networking … are names of their own */
    if (has_prefix(name, "skip-")) {
        *value = *value == NULL ? "0" : *value;
        return name + 5;
    }
    if (has_prefix(name, "disable-")) {
        *value = *value == NULL ? "0" : *value;
        return name + 8;
    }
    if (has_prefix(name, "enable-")) {
        *value = *value == NULL ? "1" : *value;
        return name + 7;
    }
    return name;
}

/* One option by its long name. */
static int take_option(void *ctx, const char *name, const char *value)
{
    host_options *o = ctx;
    const struct definition *d, *ambiguous;
    bool loose = has_prefix(name, "loose-");
    const char *spelt = name, *spelt_value = value;

    if (loose)
        name += 6;
    name = strip_switch(name, &value);
    d = find(name, &ambiguous);
    /* a name of the engine may be the start of one of ours: "innodb" is, "innodb-x" is not */
    if (d == NULL || *name == '\0') {
        keep_variable(o, name, value, loose, spelt, spelt_value);
        return 0;
    }
    if (ambiguous != NULL) {
        host_log(HOST_LOG_ERROR, "xtradb-host: ambiguous option '--%s' (%s, %s)", name, d->name,
                 ambiguous->name);
        return EXIT_OPTION_AMBIGUOUS;
    }
    if (strlen(d->name) != strlen(name))
        host_log(HOST_LOG_WARNING, "xtradb-host: Using unique option prefix '%s' is error-prone and "
                 "can break in the future. Please use the full name '%s' instead.", name, d->name);
    if (needs_value(d) && value == NULL) {
        host_log(HOST_LOG_ERROR, "xtradb-host: option '--%s' requires an argument", d->name);
        return EXIT_OPTION_VALUE_MISSING;
    }
    return set_option(o, d, value);
}

static const struct definition *find_letter(char letter)
{
    for (size_t i = 0; i < DEFINITION_COUNT; i++)
        if (letter != '\0' && definitions[i].letter == letter)
            return &definitions[i];
    return NULL;
}

/* A cluster of single letters: -BN, -eSELECT, -e SELECT. *next is the argument after it. */
static int take_letters(host_options *o, const char *letters, char **next, int *used_next)
{
    for (; *letters != '\0'; letters++) {
        const struct definition *d = find_letter(*letters);
        int result;

        if (d == NULL) {
            host_log(HOST_LOG_ERROR, "xtradb-host: unknown option '-%c'", *letters);
            return EXIT_OPTION_UNKNOWN;
        }
        if (!needs_value(d)) {
            result = set_option(o, d, NULL);
            if (result != 0)
                return result;
            continue;
        }
        if (letters[1] == '\0' && *next == NULL) {
            host_log(HOST_LOG_ERROR, "xtradb-host: option '-%c' requires an argument", *letters);
            return EXIT_OPTION_VALUE_MISSING;
        }
        *used_next = letters[1] == '\0';
        return set_option(o, d, letters[1] == '\0' ? *next : letters + 1);
    }
    return 0;
}

/* An argument that begins with "--". */
static int take_long(host_options *o, const char *argument, char **next, int *used_next)
{
    char *name = copy(argument + 2);
    char *equals = strchr(name, '=');
    const char *value = NULL;
    const struct definition *d, *ambiguous;
    int result;

    if (equals != NULL) {
        *equals = '\0';
        value = equals + 1;
    }
    /* "--datadir DIR" as well as "--datadir=DIR" */
    d = find(name, &ambiguous);
    if (value == NULL && d != NULL && ambiguous == NULL && needs_value(d) && *next != NULL) {
        value = *next;
        *used_next = 1;
    }
    result = take_option(o, name, value);
    free(name);
    return result;
}

static int read_command_line(host_options *o, int argc, char **argv)
{
    bool only_files = false;

    for (int i = 0; i < argc; i++) {
        int used_next = 0, result = 0;

        if (only_files || argv[i][0] != '-' || argv[i][1] == '\0')
            list_add(&o->files, argv[i]);
        else if (strcmp(argv[i], "--") == 0)
            only_files = true;
        else if (argv[i][1] == '-')
            result = take_long(o, argv[i], &argv[i + 1], &used_next);
        else
            result = take_letters(o, argv[i] + 1, &argv[i + 1], &used_next);
        if (result != 0)
            return result;
        i += used_next;
    }
    return 0;
}

/* --defaults-file, --defaults-extra-file and --no-defaults: before any other option. */
static int read_defaults(host_options *o, int *argc, char ***argv)
{
    static const char *const groups[] = { "mysqld", "server", "mariadb", "xtradb-host", NULL };
    static const char *const names[] = { "--defaults-file=", "--defaults-extra-file=" };

    while (*argc > 0) {
        int result = 0;

        if (strcmp(**argv, "--no-defaults") != 0) {
            const char *path = NULL;

            for (int i = 0; i < 2; i++)
                if (strncmp(**argv, names[i], strlen(names[i])) == 0)
                    path = **argv + strlen(names[i]);
            if (path == NULL)
                return 0;
            result = defaults_read(path, groups, take_option, o);
        }
        if (result != 0)
            return result;
        --*argc;
        ++*argv;
    }
    return 0;
}

int options_read(host_options *o, int argc, char **argv)
{
    int result;

    *o = (host_options){ .column_names = true, .step_timeout = 60, .log_warnings = 2 };
    o->datadir = copy(".");
    o->default_storage_engine = copy("InnoDB");
    o->plugin_dir = copy(loader_default_directory());
    argc--;
    argv++;
    result = read_defaults(o, &argc, &argv);
    return result != 0 ? result : read_command_line(o, argc, argv);
}

void options_free(host_options *o)
{
    char *strings[] = { o->datadir, o->plugin_dir, o->default_storage_engine, o->log_error,
                        o->database, o->sessions, o->prompt };

    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        free(strings[i]);
    for (size_t i = 0; i < o->variable_count; i++) {
        free(o->variables[i].name);
        free(o->variables[i].value);
        free(o->variables[i].given);
    }
    free(o->variables);
    list_clear(&o->plugin_lists);
    list_clear(&o->execute);
    list_clear(&o->files);
    *o = (host_options){ 0 };
}

void options_print_help(void)
{
    puts("Usage: xtradb-host [--defaults-file=FILE] [OPTIONS] [SCRIPT ...]\n"
         "\n"
         "Runs statements of -e, of script files, of standard input, or of a prompt.\n"
         "Options that the host does not know are variables of the engine (--innodb-...).\n");
    for (size_t i = 0; i < DEFINITION_COUNT; i++) {
        const struct definition *d = &definitions[i];
        char name[64];

        if (d->kind == KIND_IGNORED)
            continue;
        snprintf(name, sizeof name, "%c%c%s--%s%s", d->letter ? '-' : ' ',
                 d->letter ? d->letter : ' ', d->letter ? ", " : "  ", d->name,
                 needs_value(d) ? "=..." : "");
        printf("  %-34s%s\n", name, d->help);
    }
}
