/*
 * What is loaded: plugins, the engines and INFORMATION_SCHEMA tables made from them, and the list
 * of those that INSTALL made permanent.
 *
 *   registry.c         the list, start and end, what SHOW PLUGINS and SHOW ENGINES print
 *   plugin_install.c   INSTALL and UNINSTALL
 *   plugin_options.c   which engine an option of the command line belongs to
 *
 * Locks: `change` is held while plugins come and go (engines start and stop under it, sessions go
 * on); host->lock, taken inside it for moments, guards the list itself.
 */
#ifndef XTRADB_HOST_REGISTRY_H
#define XTRADB_HOST_REGISTRY_H

#include "host.h"
#include "loader.h"
#include "options.h"

enum plugin_status { PLUGIN_INACTIVE, PLUGIN_ACTIVE, PLUGIN_DISABLED, PLUGIN_LEAVING };

typedef struct plugin {
    struct plugin *next;
    char name[64]; /* as the library spells it */
    uint32_t kind; /* XT_PLUGIN_* */
    library *lib;  /* NULL: builtin */
    uint32_t index;
    enum plugin_status status;
    plugin_mode mode;
    const char *version, *description, *licence; /* of the library, while it is held */
    uint32_t maturity;
    engine *eng;
    is_table *table;
    unsigned pins; /* sessions that read `table` now */
} plugin;

typedef struct registry {
    pthread_mutex_t change;
    loader loader;
    const host_options *options;
    plugin *plugins; /* in order of registration */
    engine *engines[MAX_ENGINES];
} registry;

static inline registry *registry_of(host *h)
{
    return h->registry;
}

/*
 * Loads everything that the options and the data directory name, and starts it. 0, or the exit code
 * of the process with the reasons in the log. `options` must outlive the registry.
 */
int registry_open(host *h, const host_options *options);

/* Stops engines and closes libraries; sessions are closed already. False: an engine did not stop. */
bool registry_close(host *h);

/* --- within the registry; `change` is held --- */

plugin *registry_find(registry *r, const char *name);

/*
 * Registers one plugin, or (name NULL) all plugins of the library that are not there yet. Nothing is
 * started. *added counts them. Errors: 1124, 1125, 1126, 1127, 1968.
 */
unsigned registry_add(host *h, const char *name, const char *soname, unsigned *added,
                      host_error *error);

/* Starts what is registered but inactive, engines first. The first failure ends it: 1123. */
unsigned registry_start(host *h, plugin *p, host_error *error);

/* Stops a plugin and takes it off the list. 1620 when somebody uses it; it stays active then. */
unsigned registry_remove(host *h, plugin *p, const session *but, host_error *error);

/* The file that stands for mysql.plugin. Write: all rows at once, atomically. */
typedef struct installed_row {
    char name[64];
    char soname[LIBRARY_NAME_MAX + 1];
} installed_row;
typedef struct installed_list {
    installed_row *rows;
    size_t count;
} installed_list;
void installed_read(const host *h, installed_list *list);
bool installed_write(const host *h, const installed_list *list, host_error *error);
void installed_free(installed_list *list);

/* plugin_options.c: gives each variable to the engine that knows it. 0 or an exit code. */
int plugin_options_check(host *h);
/* Sets host->settings to what the engine of this library knows. */
void plugin_options_apply(host *h, const xt_api *api);
/* Sets what the builtin engine knows. */
void plugin_options_apply_builtin(host *h, engine *e);

#endif
