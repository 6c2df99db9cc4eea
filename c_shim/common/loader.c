#include "loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

#define API_SYMBOL "xtradb_api"

unsigned host_error_set(host_error *error, unsigned code, const char *format, ...)
{
    va_list args;

    error->code = code;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return code;
}

bool library_file_name(const char *soname, char name[LIBRARY_NAME_MAX + 1])
{
    size_t length = strlen(soname);
    bool complete = length >= 3 && strcmp(soname + length - 3, ".so") == 0;

    if (strchr(soname, '/') != NULL || length + (complete ? 0 : 3) > LIBRARY_NAME_MAX)
        return false;
    snprintf(name, LIBRARY_NAME_MAX + 1, "%s%s", soname, complete ? "" : ".so");
    return true;
}

library *library_find(loader *l, const char *soname)
{
    char name[LIBRARY_NAME_MAX + 1];

    if (!library_file_name(soname, name))
        return NULL;
    for (library *lib = l->libraries; lib != NULL; lib = lib->next)
        if (strcmp(lib->name, name) == 0)
            return lib;
    return NULL;
}

const xt_plugin *library_plugin_at(const library *lib, uint32_t index)
{
    return xt_plugin_at(lib->plugins, index);
}

int library_plugin(const library *lib, const char *name)
{
    for (uint32_t i = 0; i < lib->plugin_count; i++)
        if (strcasecmp(library_plugin_at(lib, i)->name, name) == 0)
            return (int)i;
    return -1;
}

static bool is_resident(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);

    if (handle == NULL)
        return false;
    dlclose(handle); /* the reference that the question took */
    return true;
}

static bool copy_bytes(int from, int to)
{
    struct stat info;
    off_t at = 0;

    if (fstat(from, &info) != 0)
        return false;
    while (at < info.st_size) {
        ssize_t sent = sendfile(to, from, &at, (size_t)(info.st_size - at));

        if (sent <= 0)
            return false;
    }
    return true;
}

/*
 * Opens a copy of the file under a name that was never used, for the name of the file still belongs
 * to a build in memory. The copy is unlinked at once; the mapping keeps it.
 */
static void *open_copy(loader *l, const char *path, const char *name, char copy[PATH_MAX])
{
    int from = open(path, O_RDONLY | O_CLOEXEC), to = -1;
    void *handle = NULL;

    snprintf(copy, PATH_MAX, "%s/.%s.%ld.%u", l->scratch_dir, name, (long)getpid(),
             ++l->copies);
    if (from >= 0)
        to = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (to >= 0) {
        bool copied = copy_bytes(from, to);

        close(to);
        if (copied)
            handle = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
        unlink(copy);
    }
    if (from >= 0)
        close(from);
    if (handle != NULL)
        host_log(HOST_LOG_NOTE, "The old build of '%s' is still in memory; loaded a copy", path);
    return handle;
}

/* What a library of version 1.0 has; whoever uses a later member asks XT_API_HAS. */
#define API_1_0_BYTES offsetof(xt_api, bulk_refused)

/* Asks the library for its table and its plugins, and checks both. 0 or the code in `error`. */
static unsigned examine(library *lib, const char *path, host_error *error)
{
    xtradb_api_fn *get;
    void *symbol = dlsym(lib->handle, API_SYMBOL);

    if (symbol == NULL)
        return host_error_set(error, 1127, "Can't find symbol '%s' in library", API_SYMBOL);
    memcpy(&get, &symbol, sizeof get);
    lib->api = get(XT_ABI_MAJOR);
    if (lib->api == NULL)
        return host_error_set(error, 1126, "Can't open shared library '%s' (errno: 0, it does not "
                              "speak version %u of the interface)", path, XT_ABI_MAJOR);
    if (lib->api->abi_version >> 16 != XT_ABI_MAJOR || lib->api->struct_size < API_1_0_BYTES)
        return host_error_set(error, 1126, "Can't open shared library '%s' (errno: 0, interface "
                              "version %u.%u with %u bytes; this host needs %u.0 with %zu)", path,
                              lib->api->abi_version >> 16, lib->api->abi_version & 0xffff,
                              lib->api->struct_size, XT_ABI_MAJOR, API_1_0_BYTES);
    if (lib->api->plugins == NULL ||
        lib->api->plugins(&lib->plugins, &lib->plugin_count) != XT_OK || lib->plugin_count == 0)
        return host_error_set(error, 1126, "Can't open shared library '%s' (errno: 0, it lists no "
                              "plugins)", path);
    for (uint32_t i = 0; i < lib->plugin_count; i++)
        if (lib->plugins->struct_size < sizeof(xt_plugin) ||
            library_plugin_at(lib, i)->interface_version >> 16 != XT_ABI_MAJOR)
            return host_error_set(error, 1126, "Can't open shared library '%s' (errno: 0, API "
                                  "version of its plugin no. %u is too different)", path, i + 1);
    return 0;
}

/* Closes the library and looks whether it is gone. */
static void close_and_free(library *lib)
{
    if (lib->handle != NULL) {
        dlclose(lib->handle);
        if (is_resident(lib->path))
            host_log(HOST_LOG_WARNING, "'%s' was closed but stays in memory", lib->path);
    }
    free(lib->path);
    free(lib);
}

/* Opens the file, under a name of its own if the usual one still belongs to an old build. */
static void open_library(loader *l, library *lib, const char *path, host_error *error)
{
    char copy[PATH_MAX];
    bool copied;

    errno = 0;
    copied = is_resident(path);
    lib->handle = copied ? open_copy(l, path, lib->name, copy) : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    lib->path = strdup(copied ? copy : path);
    if (lib->path == NULL)
        abort();
    if (lib->handle == NULL) {
        const char *why = dlerror();
        int code = access(path, R_OK) == 0 ? 0 : errno;

        host_error_set(error, 1126, "Can't open shared library '%s' (errno: %d, %s)", path, code,
                       why != NULL ? why : strerror(code));
    }
}

/* Cuts the last part off a path; the root and a bare name become "". */
static void cut_last_part(char *path)
{
    char *slash = strrchr(path, '/');

    *(slash != NULL ? slash : path) = '\0';
}

const char *loader_default_directory(void)
{
    static char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "/lib/xtradb/libxtradb.so");
    size_t folder;

    path[length > 0 ? length : 0] = '\0';
    cut_last_part(path);
    folder = strlen(path);
    strcpy(path + folder, "/libxtradb.so");
    if (access(path, R_OK) == 0) {
        path[folder > 0 ? folder : 1] = '\0';
        return path;
    }
    path[folder] = '\0';
    cut_last_part(path);
    strcat(path, "/lib/xtradb");
    return path;
}

library *library_hold(loader *l, const char *soname, host_error *error)
{
    char name[LIBRARY_NAME_MAX + 1], path[PATH_MAX];
    library *lib;

    if (!library_file_name(soname, name)) {
        host_error_set(error, 1124, "No paths allowed for shared library");
        return NULL;
    }
    lib = library_find(l, name);
    if (lib != NULL) {
        lib->holds++;
        return lib;
    }
    lib = calloc(1, sizeof *lib);
    if (lib == NULL)
        abort();
    strcpy(lib->name, name);
    snprintf(path, sizeof path, "%s/%s", l->plugin_dir, name);
    open_library(l, lib, path, error);
    if (lib->handle == NULL || examine(lib, path, error) != 0) {
        close_and_free(lib);
        return NULL;
    }
    lib->holds = 1;
    lib->next = l->libraries;
    l->libraries = lib;
    return lib;
}

void library_release(loader *l, library *lib)
{
    library **link = &l->libraries;

    if (--lib->holds > 0)
        return;
    while (*link != lib)
        link = &(*link)->next;
    *link = lib->next;
    close_and_free(lib);
}
