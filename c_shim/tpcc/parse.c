#include "parse.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader.h"

static const char *const help =
    "xtradb-tpcc: the TPC-C workload on a storage engine behind include/xtradb.h\n"
    "\n"
    "  xtradb-tpcc --datadir=DIR [options]      loads what is missing, runs, checks\n"
    "\n"
    "  --datadir=DIR        data directory; made if it is not there\n"
    "  --plugin-load=LIST   as MariaDB's: name=library;... or library   (InnoDB=libxtradb.so)\n"
    "  --plugin-dir=DIR     where libraries are                         (beside this program, or ../lib/xtradb)\n"
    "  --innodb-NAME=VALUE  a setting of the engine\n"
    "  --warehouses=N       to load                                     (1)\n"
    "  --items=N --customers=N   smaller than standard, for tests       (100000, 3000)\n"
    "  --threads=N          sessions that work                          (2)\n"
    "  --load-threads=N     sessions that load and check                (processors)\n"
    "  --load-by-row        fills tables row by row; else each is built at once\n"
    "  --seconds=N          to measure                                  (20)\n"
    "  --warmup=N           seconds before                              (2)\n"
    "  --isolation=LEVEL    read-committed, repeatable-read             (repeatable-read)\n"
    "  --one-statement      a transaction is one statement, not one for each SQL statement\n"
    "  --seed=N             of the random numbers                       (1)\n"
    "  --prepare-only       load, do not run\n"
    "  --check-only         check the consistency conditions, do not run\n"
    "  --no-check           run, do not check\n"
    "  --reload             drop what is there and load anew\n"
    "  --plot=FILE.svg      draws throughput and latency of each second\n"
    "  --json=FILE          all figures\n"
    "  --print-schema       the tables as SQL\n"
    "  --verbose            the engine's notes too\n"
    "\n"
    "Exit status: 0 all went well and the conditions hold; 1 not so; 2 wrong options.\n";

enum { OPT_DATADIR = 256, OPT_PLUGIN_LOAD, OPT_PLUGIN_DIR, OPT_WAREHOUSES, OPT_ITEMS, OPT_CUSTOMERS,
       OPT_THREADS, OPT_LOAD_THREADS, OPT_LOAD_BY_ROW, OPT_SECONDS, OPT_WARMUP, OPT_ISOLATION, OPT_ONE_STATEMENT,
       OPT_SEED, OPT_PREPARE_ONLY, OPT_CHECK_ONLY, OPT_NO_CHECK, OPT_RELOAD, OPT_PLOT, OPT_JSON,
       OPT_PRINT_SCHEMA, OPT_VERBOSE, OPT_HELP };

static const struct option long_options[] = {
    { "datadir", required_argument, NULL, OPT_DATADIR },
    { "plugin-load", required_argument, NULL, OPT_PLUGIN_LOAD },
    { "plugin-dir", required_argument, NULL, OPT_PLUGIN_DIR },
    { "warehouses", required_argument, NULL, OPT_WAREHOUSES },
    { "items", required_argument, NULL, OPT_ITEMS },
    { "customers", required_argument, NULL, OPT_CUSTOMERS },
    { "threads", required_argument, NULL, OPT_THREADS },
    { "load-threads", required_argument, NULL, OPT_LOAD_THREADS },
    { "load-by-row", no_argument, NULL, OPT_LOAD_BY_ROW },
    { "seconds", required_argument, NULL, OPT_SECONDS },
    { "warmup", required_argument, NULL, OPT_WARMUP },
    { "isolation", required_argument, NULL, OPT_ISOLATION },
    { "one-statement", no_argument, NULL, OPT_ONE_STATEMENT },
    { "seed", required_argument, NULL, OPT_SEED },
    { "prepare-only", no_argument, NULL, OPT_PREPARE_ONLY },
    { "check-only", no_argument, NULL, OPT_CHECK_ONLY },
    { "no-check", no_argument, NULL, OPT_NO_CHECK },
    { "reload", no_argument, NULL, OPT_RELOAD },
    { "plot", required_argument, NULL, OPT_PLOT },
    { "json", required_argument, NULL, OPT_JSON },
    { "print-schema", no_argument, NULL, OPT_PRINT_SCHEMA },
    { "verbose", no_argument, NULL, OPT_VERBOSE },
    { "help", no_argument, NULL, OPT_HELP },
    { NULL, 0, NULL, 0 },
};

/* Reads a number between two bounds. */
static bool number_in(const char *text, long low, long high, int *to)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (*text == '\0' || *end != '\0' || value < low || value > high) {
        fprintf(stderr, "xtradb-tpcc: '%s' is not a number from %ld to %ld\n", text, low, high);
        return false;
    }
    *to = (int)value;
    return true;
}

/* "--innodb-name=value", '-' and '_' alike; without a value: ON. */
static bool take_setting(options *o, const char *argument)
{
    size_t length = strlen(argument + 2);
    char *setting;

    if (o->setting_count == SETTINGS_MAX)
        return false;
    setting = malloc(length + sizeof "=ON"); /* lives as long as the process */
    if (setting == NULL)
        abort();
    memcpy(setting, argument + 2, length + 1);
    if (strchr(setting, '=') == NULL)
        memcpy(setting + length, "=ON", sizeof "=ON");
    o->settings[o->setting_count++] = setting;
    return true;
}

static bool isolation_of(const char *text, uint32_t *level)
{
    static const char *const names[] = { "read-uncommitted", "read-committed", "repeatable-read",
                                         "serializable" };

    for (*level = 0; *level < 4; ++*level)
        if (strcmp(text, names[*level]) == 0)
            return true;
    fprintf(stderr, "xtradb-tpcc: no isolation level '%s'\n", text);
    return false;
}

static bool take_value(options *o, int option, const char *value)
{
    int seed;

    switch (option) {
    case OPT_WAREHOUSES: return number_in(value, 1, 10000, &o->size.warehouses);
    case OPT_ITEMS: return number_in(value, 100, 1000000, &o->size.items);
    case OPT_CUSTOMERS: return number_in(value, 20, 100000, &o->size.customers);
    case OPT_THREADS: return number_in(value, 1, 4096, &o->threads);
    case OPT_LOAD_THREADS: return number_in(value, 1, 64, &o->load_threads);
    case OPT_SECONDS: return number_in(value, 1, 1000000, &o->seconds);
    case OPT_WARMUP: return number_in(value, 0, 100000, &o->warmup);
    case OPT_SEED:
        if (!number_in(value, 0, INT_MAX, &seed))
            return false;
        o->seed = (uint64_t)seed;
        return true;
    case OPT_ISOLATION: return isolation_of(value, &o->isolation);
    default: return false; /* getopt has told of it */
    }
}

static bool take_option(options *o, int option, const char *value)
{
    switch (option) {
    case OPT_DATADIR: o->datadir = value; return true;
    case OPT_PLUGIN_LOAD: o->plugin_load = value; return true;
    case OPT_PLUGIN_DIR: o->plugin_dir = value; return true;
    case OPT_LOAD_BY_ROW: o->load_by_row = true; return true;
    case OPT_ONE_STATEMENT: o->one_statement = true; return true;
    case OPT_PREPARE_ONLY: o->prepare_only = true; return true;
    case OPT_CHECK_ONLY: o->check_only = true; return true;
    case OPT_NO_CHECK: o->no_check = true; return true;
    case OPT_RELOAD: o->reload = true; return true;
    case OPT_PLOT: o->plot = value; return true;
    case OPT_JSON: o->json = value; return true;
    case OPT_VERBOSE: o->verbose = true; return true;
    default: return take_value(o, option, value);
    }
}

static void set_defaults(options *o)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    *o = (options){ .plugin_load = "InnoDB=libxtradb.so", .plugin_dir = loader_default_directory(),
                    .threads = 2, .load_threads = processors < 1 ? 1 : (int)processors,
                    .seconds = 20, .warmup = 2, .isolation = XT_ISOLATION_REPEATABLE_READ,
                    .seed = 1 };
    o->load_threads = o->load_threads > 64 ? 64 : o->load_threads;
}

/* Takes the engine's settings out of the arguments; returns how many are left. */
static int take_settings(options *o, int argc, char **argv)
{
    int left = 0;

    for (int i = 0; i < argc; i++) {
        if (i > 0 && (strncmp(argv[i], "--innodb-", 9) == 0 || strncmp(argv[i], "--innodb_", 9) == 0)) {
            if (!take_setting(o, argv[i]))
                return -1;
        } else {
            argv[left++] = argv[i];
        }
    }
    return left;
}

int options_parse(options *o, int argc, char **argv)
{
    int option;

    set_defaults(o);
    argc = take_settings(o, argc, argv);
    if (argc < 0)
        return EXIT_USAGE;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == OPT_HELP) {
            fputs(help, stdout);
            return -1;
        }
        if (option == OPT_PRINT_SCHEMA) {
            print_schema(stdout);
            return -1;
        }
        if (!take_option(o, option, optarg))
            return EXIT_USAGE;
    }
    if (optind < argc || o->datadir == NULL) {
        fprintf(stderr, "xtradb-tpcc: %s (--help lists the options)\n",
                optind < argc ? "unexpected argument" : "--datadir is missing");
        return EXIT_USAGE;
    }
    return EXIT_HELD;
}
