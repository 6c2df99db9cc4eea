/* INSTALL PLUGIN, INSTALL SONAME, UNINSTALL PLUGIN, UNINSTALL SONAME, and the file of what stays. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "log.h"
#include "registry.h"

/* ------------------------------------------------------------------------------- the file */

#define INSTALLED_FILE "xtradb-host.plugins"

/* One line per plugin: its name, a tab, its library. Lines of another shape are passed over. */
void installed_read(const host *h, installed_list *list)
{
    char path[PATH_MAX], line[512];
    FILE *file;

    *list = (installed_list){ 0 };
    snprintf(path, sizeof path, "%s/%s", h->datadir, INSTALLED_FILE);
    file = fopen(path, "re");
    if (file == NULL)
        return; /* nothing was ever installed */
    while (fgets(line, sizeof line, file) != NULL) {
        installed_row row;

        if (sscanf(line, "%63[^\t\n]\t%255[^\t\n]", row.name, row.soname) != 2)
            continue;
        list->rows = realloc(list->rows, (list->count + 1) * sizeof *list->rows);
        if (list->rows == NULL)
            abort();
        list->rows[list->count++] = row;
    }
    fclose(file);
}

bool installed_write(const host *h, const installed_list *list, host_error *error)
{
    char path[PATH_MAX], fresh[PATH_MAX];
    FILE *file;
    bool written;

    snprintf(path, sizeof path, "%s/%s", h->datadir, INSTALLED_FILE);
    snprintf(fresh, sizeof fresh, "%s/%s.new", h->datadir, INSTALLED_FILE);
    file = fopen(fresh, "we");
    written = file != NULL;
    for (size_t i = 0; written && i < list->count; i++)
        written = fprintf(file, "%s\t%s\n", list->rows[i].name, list->rows[i].soname) > 0;
    if (file != NULL) {
        written = fflush(file) == 0 && fsync(fileno(file)) == 0 && written;
        written = fclose(file) == 0 && written;
    }
    written = written && rename(fresh, path) == 0;
    if (!written)
        host_error_set(error, 3, "Error writing file '%s' (errno: %d \"%s\")", path, errno,
                       strerror(errno));
    return written;
}

void installed_free(installed_list *list)
{
    free(list->rows);
    *list = (installed_list){ 0 };
}

static void list_remove(installed_list *list, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++)
        if (strcasecmp(list->rows[i].name, name) != 0)
            list->rows[kept++] = list->rows[i];
    list->count = kept;
}

static void list_set(installed_list *list, const char *name, const char *soname)
{
    installed_row *row;

    list_remove(list, name);
    list->rows = realloc(list->rows, (list->count + 1) * sizeof *list->rows);
    if (list->rows == NULL)
        abort();
    row = &list->rows[list->count++];
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->soname, sizeof row->soname, "%s", soname);
}

/* -------------------------------------------------------------------------------- INSTALL */

/* Takes off again what a failed INSTALL has registered. */
static void undo_install(host *h, const library *lib, const session *s)
{
    plugin *next;

    for (plugin *p = registry_of(h)->plugins; p != NULL; p = next) {
        host_error ignored;

        next = p->next;
        if (p->lib == lib && p->status == PLUGIN_INACTIVE)
            registry_remove(h, p, s, &ignored);
    }
}

/* Starts what registry_add has put there, engines first, and writes it down. */
static unsigned start_added(host *h, const session *s, const char *soname, host_error *error)
{
    static const uint32_t kinds[] = { XT_PLUGIN_STORAGE_ENGINE, XT_PLUGIN_INFORMATION_SCHEMA };
    registry *r = registry_of(h);
    library *lib = library_find(&r->loader, soname);
    installed_list list;

    installed_read(h, &list);
    for (int k = 0; error->code == 0 && k < 2; k++) {
        for (plugin *p = r->plugins; error->code == 0 && p != NULL; p = p->next) {
            if (p->lib != lib || p->kind != kinds[k] || p->status != PLUGIN_INACTIVE)
                continue;
            if (registry_start(h, p, error) == 0)
                list_set(&list, p->name, lib->name);
        }
    }
    if (error->code == 0)
        installed_write(h, &list, error);
    installed_free(&list);
    if (error->code != 0)
        undo_install(h, lib, s);
    return error->code;
}

unsigned plugin_install(session *s, const char *name, const char *soname, bool if_not_exists)
{
    host *h = session_host(s);
    host_error error = { 0 };
    unsigned added;

    pthread_mutex_lock(&registry_of(h)->change);
    if (registry_add(h, name, soname, &added, &error) == 0 && added > 0)
        start_added(h, s, soname, &error);
    pthread_mutex_unlock(&registry_of(h)->change);
    if (error.code == 1968 && if_not_exists) {
        sql_note(s, error.code, name);
        return 0;
    }
    return error.code == 0 ? 0 : sql_error_text(s, error.code, error.text);
}

/* ------------------------------------------------------------------------------ UNINSTALL */

/* Why this plugin may not go, or 0. */
static unsigned refuse(const plugin *p, host_error *error)
{
    if (p->lib == NULL)
        return host_error_set(error, 1619, "Built-in plugins cannot be deleted");
    if (p->mode == PLUGIN_MODE_PERMANENT)
        return host_error_set(error, 1702, "Plugin '%s' is force_plus_permanent and can not be "
                              "unloaded", p->name);
    return 0;
}

static unsigned remove_named(host *h, const session *s, const char *name, installed_list *list,
                             host_error *error)
{
    plugin *p = registry_find(registry_of(h), name);

    if (p == NULL)
        return host_error_set(error, 1305, "PLUGIN %s does not exist", name);
    if (refuse(p, error) == 0 && registry_remove(h, p, s, error) == 0)
        list_remove(list, name);
    return error->code;
}

/* Takes every plugin of a library, the engine first: if that cannot go, all of them stay. */
static unsigned remove_library(host *h, const session *s, const char *soname, installed_list *list,
                               host_error *error)
{
    static const uint32_t kinds[] = { XT_PLUGIN_STORAGE_ENGINE, XT_PLUGIN_INFORMATION_SCHEMA };
    registry *r = registry_of(h);
    const library *lib = library_find(&r->loader, soname);

    if (lib == NULL)
        return host_error_set(error, 1305, "SONAME %s does not exist", soname);
    for (int k = 0; error->code == 0 && k < 2; k++) {
        plugin *next;

        for (plugin *p = r->plugins; error->code == 0 && p != NULL; p = next) {
            char name[64];

            next = p->next;
            strcpy(name, p->name);
            if (p->lib == lib && p->kind == kinds[k] && refuse(p, error) == 0 &&
                registry_remove(h, p, s, error) == 0)
                list_remove(list, name);
        }
    }
    return error->code;
}

unsigned plugin_uninstall(session *s, const char *name, const char *soname, bool if_exists)
{
    host *h = session_host(s);
    host_error error = { 0 }, unwritten = { 0 };
    installed_list list;

    pthread_mutex_lock(&registry_of(h)->change);
    installed_read(h, &list);
    size_t before = list.count;
    if (name != NULL)
        remove_named(h, s, name, &list, &error);
    else
        remove_library(h, s, soname, &list, &error);
    if (list.count != before && !installed_write(h, &list, &unwritten) && error.code == 0)
        error = unwritten;
    installed_free(&list);
    pthread_mutex_unlock(&registry_of(h)->change);
    if (error.code == 1305 && if_exists) {
        sql_note(s, error.code, name != NULL ? "PLUGIN" : "SONAME", name != NULL ? name : soname);
        return 0;
    }
    return error.code == 0 ? 0 : sql_error_text(s, error.code, error.text);
}
