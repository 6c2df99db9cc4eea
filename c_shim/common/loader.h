/*
 * Libraries of plugins: find, open, check, close.
 *
 * A library is opened once and counted: every plugin taken from it holds it, and the last one to go
 * closes it. A closed library must be gone from memory; one that cannot go (something pinned it) is
 * remembered, and its file is loaded the next time through a copy with a name of its own, so that a
 * new build never turns out to be the old one. Guarded by the registry's lock.
 */
#ifndef XTRADB_COMMON_LOADER_H
#define XTRADB_COMMON_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <xtradb.h>

#define LIBRARY_NAME_MAX 255

/* An SQL error on its way to a session or to the log. code 0: none. */
typedef struct host_error {
    unsigned code;
    char text[1024];
} host_error;

/* Fills in `error`; returns the code. */
unsigned host_error_set(host_error *error, unsigned code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

typedef struct library {
    struct library *next;
    char name[LIBRARY_NAME_MAX + 1]; /* with ".so", as SHOW PLUGINS prints it */
    char *path;                      /* the file that was opened: maybe a copy that is gone */
    void *handle;
    const xt_api *api;
    const xt_plugin *plugins;
    uint32_t plugin_count;
    unsigned holds;
} library;

typedef struct loader {
    const char *plugin_dir;
    const char *scratch_dir; /* for copies of libraries that could not be closed */
    library *libraries;
    unsigned copies;
} loader;

/* Where libraries are when nobody says: beside this program if libxtradb.so is there (a build), else in
 * ../lib/xtradb (an installation). Static. */
const char *loader_default_directory(void);

/* The name with ".so" at its end. False: the name has a directory part, is empty or too long. */
bool library_file_name(const char *soname, char name[LIBRARY_NAME_MAX + 1]);

/* A library that is open, by file name; does not hold it. */
library *library_find(loader *l, const char *soname);

/* Opens the library, or holds it once more. NULL with errors 1124, 1126 or 1127. */
library *library_hold(loader *l, const char *soname, host_error *error);

/* Gives up one hold; the last one closes the library. */
void library_release(loader *l, library *lib);

/* The library knows how long its descriptions are; a later one may say more than its host reads. */
static inline const xt_plugin *xt_plugin_at(const xt_plugin *first, uint32_t index)
{
    return (const xt_plugin *)(const void *)((const char *)first +
                                             (size_t)index * first->struct_size);
}

/* A plugin by position. */
const xt_plugin *library_plugin_at(const library *lib, uint32_t index);

/* Position of a plugin by name, case ignored; -1: none. */
int library_plugin(const library *lib, const char *name);

#endif
