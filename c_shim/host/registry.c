#include "registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "log.h"
#include "plugin_load.h"

static void lock(host *h)
{
    pthread_mutex_lock(&h->lock);
}

static void unlock(host *h)
{
    pthread_mutex_unlock(&h->lock);
}

plugin *registry_find(registry *r, const char *name)
{
    for (plugin *p = r->plugins; p != NULL; p = p->next)
        if (strcasecmp(p->name, name) == 0)
            return p;
    return NULL;
}

/* -------------------------------------------------------------------------------- adding */

static plugin *append(host *h, const char *name)
{
    plugin *p = calloc(1, sizeof *p), **link = &registry_of(h)->plugins;

    if (p == NULL)
        abort();
    snprintf(p->name, sizeof p->name, "%s", name);
    lock(h);
    while (*link != NULL)
        link = &(*link)->next;
    *link = p;
    unlock(h);
    return p;
}

static void unlink_plugin(host *h, plugin *p)
{
    plugin **link = &registry_of(h)->plugins;

    lock(h);
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    unlock(h);
    if (p->lib != NULL)
        library_release(&registry_of(h)->loader, p->lib);
    free(p);
}

/* The new plugin takes over one hold on the library. */
static void add_one(host *h, library *lib, uint32_t index)
{
    const xt_plugin *described = library_plugin_at(lib, index);
    plugin *p = append(h, described->name);

    p->kind = described->kind;
    p->lib = lib;
    p->index = index;
    p->version = described->version;
    p->description = described->description;
    p->licence = described->licence;
    p->maturity = described->maturity;
    p->mode = strcasecmp(p->name, "InnoDB") == 0 ? registry_of(h)->options->innodb
                                                 : PLUGIN_MODE_ON;
}

static unsigned add_all(host *h, library *lib, unsigned *added, host_error *error)
{
    registry *r = registry_of(h);

    for (uint32_t i = 0; i < lib->plugin_count; i++) {
        const plugin *there = registry_find(r, library_plugin_at(lib, i)->name);

        if (there != NULL && there->lib != lib)
            return host_error_set(error, 1125, "Function '%s' already exists", there->name);
    }
    for (uint32_t i = 0; i < lib->plugin_count; i++) {
        if (registry_find(r, library_plugin_at(lib, i)->name) == NULL) {
            lib->holds++;
            add_one(h, lib, i);
            ++*added;
        }
    }
    return 0;
}

unsigned registry_add(host *h, const char *name, const char *soname, unsigned *added,
                      host_error *error)
{
    registry *r = registry_of(h);
    library *lib;
    int index;

    *added = 0;
    if (name != NULL && registry_find(r, name) != NULL)
        return host_error_set(error, 1968, "Plugin '%s' already installed", name);
    lib = library_hold(&r->loader, soname, error);
    if (lib == NULL)
        return error->code;
    if (name == NULL) {
        unsigned code = add_all(h, lib, added, error);

        library_release(&r->loader, lib);
        return code;
    }
    index = library_plugin(lib, name);
    if (index < 0) {
        library_release(&r->loader, lib);
        return host_error_set(error, 1127, "Can't find symbol '%s' in library", name);
    }
    add_one(h, lib, (uint32_t)index);
    *added = 1;
    return 0;
}

/* ---------------------------------------------------------------------- starting, stopping */

static plugin *engine_of_library(registry *r, const library *lib)
{
    for (plugin *p = r->plugins; p != NULL; p = p->next)
        if (p->lib == lib && p->kind == XT_PLUGIN_STORAGE_ENGINE)
            return p;
    return NULL;
}

static unsigned init_failed(plugin *p, const char *why, host_error *error)
{
    return host_error_set(error, 1123, "Can't initialize function '%s'; Plugin initialization "
                          "function failed.%s%s", p->name, *why != '\0' ? " " : "", why);
}

static unsigned start_engine(host *h, plugin *p, host_error *error)
{
    registry *r = registry_of(h);
    char why[900] = "";
    uint32_t slot = 0;
    engine *e;

    while (slot < MAX_ENGINES && r->engines[slot] != NULL)
        slot++;
    if (slot == MAX_ENGINES)
        return init_failed(p, "Too many storage engines!", error);
    if (p->lib == NULL) {
        e = heap_engine_new(h);
        if (e != NULL)
            plugin_options_apply_builtin(h, e);
    } else {
        plugin_options_apply(h, p->lib->api);
        e = xt_engine_new(h, p->lib->api, p->index, why, sizeof why);
    }
    if (e == NULL)
        return init_failed(p, why, error);
    lock(h);
    e->slot = slot;
    r->engines[slot] = e;
    p->eng = e;
    p->status = PLUGIN_ACTIVE;
    unlock(h);
    return 0;
}

/* Makes the tables of a library anew, so that they read the engine that is there now, or none. */
static bool remake_tables(host *h, const library *lib, engine *eng)
{
    bool free_to_go = true;

    lock(h);
    for (plugin *p = registry_of(h)->plugins; p != NULL; p = p->next)
        if (p->lib == lib && p->pins > 0)
            free_to_go = false;
    for (plugin *p = registry_of(h)->plugins; free_to_go && p != NULL; p = p->next) {
        if (p->lib != lib || p->table == NULL)
            continue;
        xt_is_table_free(p->table);
        p->table = xt_is_table_new(h, lib->api, p->index, eng);
    }
    unlock(h);
    return free_to_go;
}

static unsigned start_table(host *h, plugin *p, host_error *error)
{
    plugin *owner = engine_of_library(registry_of(h), p->lib);
    is_table *table = xt_is_table_new(h, p->lib->api, p->index, owner != NULL ? owner->eng : NULL);

    if (table == NULL)
        return init_failed(p, "", error);
    lock(h);
    p->table = table;
    p->status = PLUGIN_ACTIVE;
    unlock(h);
    return 0;
}

unsigned registry_start(host *h, plugin *p, host_error *error)
{
    unsigned code;

    if (p->status != PLUGIN_INACTIVE)
        return 0;
    if (p->mode == PLUGIN_MODE_OFF) {
        p->status = PLUGIN_DISABLED;
        return 0;
    }
    if (p->kind == XT_PLUGIN_INFORMATION_SCHEMA)
        return start_table(h, p, error);
    if (p->kind != XT_PLUGIN_STORAGE_ENGINE)
        return init_failed(p, "This host knows no plugins of that type.", error);
    code = start_engine(h, p, error);
    if (code == 0 && p->lib != NULL)
        remake_tables(h, p->lib, p->eng);
    return code;
}

static bool tables_are_read(registry *r, const library *lib)
{
    for (plugin *p = r->plugins; p != NULL; p = p->next)
        if (p->lib == lib && p->pins > 0)
            return true;
    return false;
}

/* Takes the engine from the sessions, unless one uses it. Says who does. */
static unsigned take_from_sessions(host *h, plugin *p, const session *but, host_error *error)
{
    uint32_t user;
    bool read;

    lock(h);
    h->leaving = p->eng;
    user = session_engine_user(h, p->eng, but);
    read = tables_are_read(registry_of(h), p->lib);
    if (user == 0 && !read) {
        p->status = PLUGIN_LEAVING; /* from here on no session finds it */
        session_forget_engine(h, p->eng);
    }
    h->leaving = NULL;
    unlock(h);
    if (user != 0)
        return host_error_set(error, 1620, "Plugin '%s' is busy: session %u uses it. It stays "
                              "active; try again when that session's transaction has ended",
                              p->name, user);
    if (read)
        return host_error_set(error, 1620, "Plugin '%s' is busy: one of its INFORMATION_SCHEMA "
                              "tables is being read. It stays active; try again", p->name);
    return 0;
}

static unsigned stop_engine(host *h, plugin *p, const session *but, host_error *error)
{
    char why[900] = "";
    uint32_t slot = p->eng->slot;
    unsigned code = take_from_sessions(h, p, but, error);
    int stopped;

    if (code != 0)
        return code;
    /* nobody can begin to read the tables with the engine gone: they are remade under the lock */
    if (!remake_tables(h, p->lib, NULL))
        stopped = SE_GENERIC;
    else
        stopped = xt_engine_free(p->eng, why, sizeof why);
    lock(h);
    if (stopped == 0) {
        p->eng = NULL;
        p->status = PLUGIN_INACTIVE;
        registry_of(h)->engines[slot] = NULL;
    } else {
        p->status = PLUGIN_ACTIVE;
    }
    unlock(h);
    if (stopped == 0)
        return 0;
    remake_tables(h, p->lib, p->eng);
    return host_error_set(error, 1620, "Plugin '%s' is busy: %s. It stays active; try again",
                          p->name, why[0] != '\0' ? why : "its tables are being read");
}

static unsigned stop_table(host *h, plugin *p, host_error *error)
{
    is_table *table;
    bool read;

    lock(h);
    read = p->pins > 0;
    table = p->table;
    if (!read) {
        p->status = PLUGIN_INACTIVE;
        p->table = NULL;
    }
    unlock(h);
    if (read)
        return host_error_set(error, 1620, "Plugin '%s' is busy: a session reads it. It stays "
                              "active; try again", p->name);
    xt_is_table_free(table);
    return 0;
}

unsigned registry_remove(host *h, plugin *p, const session *but, host_error *error)
{
    unsigned code = 0;

    if (p->eng != NULL)
        code = stop_engine(h, p, but, error);
    else if (p->table != NULL)
        code = stop_table(h, p, error);
    if (code == 0)
        unlink_plugin(h, p);
    return code;
}

/* ----------------------------------------------------------------------------- start and end */

static void add_builtin(host *h)
{
    plugin *p = append(h, "InnoDB");

    p->kind = XT_PLUGIN_STORAGE_ENGINE;
    p->version = "1.0";
    p->description = "Builtin heap: rows in memory, table locks, gone at exit";
    p->licence = "GPL";
    p->maturity = XT_MATURITY_STABLE;
    p->mode = registry_of(h)->options->innodb;
}

static bool load_item(void *ctx, const char *name, const char *soname)
{
    host_error error = { 0 };
    unsigned added;

    if (registry_add(ctx, name, soname, &added, &error) == 0)
        return true;
    host_log(HOST_LOG_ERROR, "xtradb-host: %s", error.text);
    if (name == NULL)
        host_log(HOST_LOG_ERROR, "Couldn't load plugins from '%s'.", soname);
    else
        host_log(HOST_LOG_ERROR, "Couldn't load plugin '%s' from '%s'.", name, soname);
    return false;
}

/* What INSTALL PLUGIN made permanent. What an option has loaded already is only worth a note. */
static void load_installed(host *h)
{
    installed_list list;

    installed_read(h, &list);
    for (size_t i = 0; i < list.count; i++) {
        if (registry_find(registry_of(h), list.rows[i].name) != NULL)
            host_log(HOST_LOG_NOTE, "Plugin '%s' already installed", list.rows[i].name);
        else
            load_item(h, list.rows[i].name, list.rows[i].soname);
    }
    installed_free(&list);
}

/* Starts all plugins of a kind. False: one that was to be FORCEd did not start. */
static bool start_kind(host *h, uint32_t kind)
{
    plugin *next;

    for (plugin *p = registry_of(h)->plugins; p != NULL; p = next) {
        host_error error = { 0 };
        plugin_mode mode = p->mode;

        next = p->next;
        if (p->kind != kind || registry_start(h, p, &error) == 0)
            continue;
        host_log(HOST_LOG_ERROR, "%s", error.text);
        host_log(HOST_LOG_ERROR, "Plugin '%s' registration as a %s failed.", p->name,
                 kind == XT_PLUGIN_STORAGE_ENGINE ? "STORAGE ENGINE" : "INFORMATION SCHEMA");
        if (mode >= PLUGIN_MODE_FORCE) {
            host_log(HOST_LOG_ERROR, "Failed to initialize plugins.");
            return false;
        }
        unlink_plugin(h, p);
    }
    return true;
}

int registry_open(host *h, const host_options *options)
{
    registry *r = calloc(1, sizeof *r);
    int result;

    if (r == NULL)
        abort();
    pthread_mutex_init(&r->change, NULL);
    r->options = options;
    r->loader = (loader){ .plugin_dir = h->plugin_dir, .scratch_dir = h->datadir };
    h->registry = r;
    if (!options->ignore_builtin_innodb)
        add_builtin(h);
    for (size_t i = 0; i < options->plugin_lists.count; i++)
        if (plugin_list_walk(options->plugin_lists.items[i], load_item, h) == PLUGIN_LIST_TOO_LONG)
            host_log(HOST_LOG_ERROR, "plugin-load parameter too long");
    load_installed(h);
    result = plugin_options_check(h);
    if (result != 0)
        return result;
    if (!start_kind(h, XT_PLUGIN_STORAGE_ENGINE) || !start_kind(h, XT_PLUGIN_INFORMATION_SCHEMA))
        return 1;
    if (registry_engine(h, options->default_storage_engine) == NULL) {
        host_log(HOST_LOG_ERROR, "Unknown/unsupported storage engine: %s",
                 options->default_storage_engine);
        return 1;
    }
    return 0;
}

bool registry_close(host *h)
{
    registry *r = registry_of(h);
    bool all = true;

    pthread_mutex_lock(&r->change);
    for (int kind = XT_PLUGIN_INFORMATION_SCHEMA; kind >= XT_PLUGIN_STORAGE_ENGINE; kind--) {
        plugin *next;

        for (plugin *p = r->plugins; p != NULL; p = next) {
            host_error error = { 0 };

            next = p->next;
            if (p->kind != (uint32_t)kind)
                continue;
            if (p->lib == NULL) {
                if (p->eng != NULL)
                    heap_engine_free(p->eng);
                unlink_plugin(h, p);
            } else if (registry_remove(h, p, NULL, &error) != 0) {
                host_log(HOST_LOG_ERROR, "%s", error.text);
                all = false;
            }
        }
    }
    pthread_mutex_unlock(&r->change);
    if (all) {
        pthread_mutex_destroy(&r->change);
        free(r);
        h->registry = NULL;
    }
    return all;
}

/* ---------------------------------------------------------------------------------- look-ups */

engine *registry_engine(host *h, const char *name)
{
    engine *found = NULL;

    lock(h);
    for (plugin *p = registry_of(h)->plugins; p != NULL; p = p->next)
        if (p->eng != NULL && p->status == PLUGIN_ACTIVE && strcasecmp(p->name, name) == 0)
            found = p->eng;
    unlock(h);
    return found;
}

engine *registry_engine_at(host *h, uint32_t slot)
{
    engine *found = NULL;

    lock(h);
    for (plugin *p = registry_of(h)->plugins; slot < MAX_ENGINES && p != NULL; p = p->next)
        if (p->eng != NULL && p->status == PLUGIN_ACTIVE && p->eng->slot == slot)
            found = p->eng;
    unlock(h);
    return found;
}

is_table *registry_is_table(host *h, const char *name)
{
    is_table *found = NULL;

    lock(h);
    for (plugin *p = registry_of(h)->plugins; p != NULL; p = p->next) {
        if (p->table != NULL && p->status == PLUGIN_ACTIVE && strcasecmp(p->name, name) == 0) {
            p->pins++;
            found = p->table;
        }
    }
    unlock(h);
    return found;
}

void registry_is_table_done(host *h, is_table *t)
{
    lock(h);
    for (plugin *p = registry_of(h)->plugins; p != NULL; p = p->next)
        if (p->table == t)
            p->pins--;
    unlock(h);
}

/* -------------------------------------------------------------------------------------- SHOW */

static struct is_value text(const char *s)
{
    return s == NULL ? (struct is_value){ .null = true }
                     : (struct is_value){ .ptr = s, .len = strlen(s) };
}

static const char *maturity_name(uint32_t maturity)
{
    static const char *const names[] = { "Unknown", "Experimental", "Alpha", "Beta", "Gamma",
                                         "Stable" };

    return names[maturity < 6 ? maturity : 0];
}

static int plugin_row(const plugin *p, row_fn fn, void *ctx)
{
    static const char *const status[] = { "INACTIVE", "ACTIVE", "DISABLED", "DELETED" };
    struct is_value values[] = {
        text(p->name),
        text(status[p->status]),
        text(p->kind == XT_PLUGIN_STORAGE_ENGINE ? "STORAGE ENGINE" : "INFORMATION SCHEMA"),
        text(p->lib != NULL ? p->lib->name : NULL),
        text(p->licence),
        text(p->version),
        text(maturity_name(p->maturity)),
        text(p->description),
    };

    return fn(ctx, values, sizeof values / sizeof values[0]);
}

int registry_plugins(host *h, row_fn fn, void *ctx)
{
    registry *r = registry_of(h);
    int result = 0;

    pthread_mutex_lock(&r->change);
    for (plugin *p = r->plugins; result == 0 && p != NULL; p = p->next)
        result = plugin_row(p, fn, ctx);
    pthread_mutex_unlock(&r->change);
    return result;
}

static int engine_row(const registry *r, const plugin *p, row_fn fn, void *ctx)
{
    const engine *e = p->eng;
    bool preferred = strcasecmp(p->name, r->options->default_storage_engine) == 0;
    struct is_value values[] = {
        text(p->name),
        text(e == NULL ? "NO" : preferred ? "DEFAULT" : "YES"),
        text(e == NULL ? p->description : e->comment),
        text(e == NULL ? NULL : e->transactional ? "YES" : "NO"),
        text(e == NULL ? NULL : e->xa ? "YES" : "NO"),
        text(e == NULL ? NULL : e->savepoints ? "YES" : "NO"),
    };

    return fn(ctx, values, sizeof values / sizeof values[0]);
}

int registry_engines(host *h, row_fn fn, void *ctx)
{
    registry *r = registry_of(h);
    int result = 0;

    pthread_mutex_lock(&r->change);
    for (plugin *p = r->plugins; result == 0 && p != NULL; p = p->next)
        if (p->kind == XT_PLUGIN_STORAGE_ENGINE)
            result = engine_row(r, p, fn, ctx);
    pthread_mutex_unlock(&r->change);
    return result;
}
