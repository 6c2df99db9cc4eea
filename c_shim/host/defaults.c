#include "defaults.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define INCLUDE_DEPTH_MAX 10

struct reader {
    const char *const *groups;
    defaults_option_fn option;
    void *ctx;
    int depth;
};

static int read_file(struct reader *reader, const char *path);

/* Cuts white space off both ends, in place. */
static char *trim(char *text)
{
    size_t length;

    while (isspace((unsigned char)*text))
        text++;
    length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return text;
}

/* Ends the line at the first "#" that stands outside quotes. */
static void cut_comment(char *line)
{
    char quote = '\0';

    for (char *p = line; *p != '\0'; p++) {
        if (*p == '\\' && p[1] != '\0')
            p++;
        else if (quote != '\0')
            quote = *p == quote ? '\0' : quote;
        else if (*p == '\'' || *p == '"')
            quote = *p;
        else if (*p == '#') {
            *p = '\0';
            return;
        }
    }
}

/* Takes quotes off and resolves escapes, in place. */
static void unquote(char *value)
{
    size_t length = strlen(value);
    char *out = value;

    if (length >= 2 && (value[0] == '\'' || value[0] == '"') && value[length - 1] == value[0]) {
        value[length - 1] = '\0';
        value++;
    }
    for (; *value != '\0'; value++) {
        static const char from[] = "bntrs\\\"'";
        static const char to[] = "\b\n\t\r \\\"'";
        const char *known = value[0] == '\\' && value[1] != '\0' ? strchr(from, value[1]) : NULL;

        if (known != NULL) {
            *out++ = to[known - from];
            value++;
        } else {
            *out++ = *value;
        }
    }
    *out = '\0';
}

static bool is_wanted(const struct reader *reader, const char *group)
{
    for (const char *const *g = reader->groups; *g != NULL; g++)
        if (strcmp(*g, group) == 0)
            return true;
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads every *.cnf of a directory, by name. */
static int read_directory(struct reader *reader, const char *path)
{
    DIR *directory = opendir(path);
    char *names[256];
    size_t count = 0;
    int result = 0;

    if (directory == NULL) {
        host_log(HOST_LOG_ERROR, "Can't read dir of '%s' (errno: %d \"%s\")", path, errno,
                 strerror(errno));
        return 1;
    }
    for (struct dirent *e; (e = readdir(directory)) != NULL && count < 256;) {
        size_t length = strlen(e->d_name);

        if (length > 4 && strcmp(e->d_name + length - 4, ".cnf") == 0)
            names[count++] = strdup(e->d_name);
    }
    closedir(directory);
    qsort(names, count, sizeof names[0], compare_names);
    for (size_t i = 0; i < count; i++) {
        char file[4096];

        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        if (result == 0)
            result = read_file(reader, file);
        free(names[i]);
    }
    return result;
}

/* "!include FILE" and "!includedir DIRECTORY". */
static int read_include(struct reader *reader, char *line)
{
    if (reader->depth >= INCLUDE_DEPTH_MAX) {
        host_log(HOST_LOG_ERROR, "skipping '%s' directive as maximum include recursion level was "
                 "reached", line);
        return 0;
    }
    if (strncmp(line, "!includedir", 11) == 0 && isspace((unsigned char)line[11]))
        return read_directory(reader, trim(line + 11));
    if (strncmp(line, "!include", 8) == 0 && isspace((unsigned char)line[8]))
        return read_file(reader, trim(line + 8));
    host_log(HOST_LOG_ERROR, "Wrong '%s' directive in an option file", line);
    return 1;
}

/* One line. `state`: -1 before the first group, else whether the group is wanted. */
static int read_line(struct reader *reader, char *line, int *state, const char *path, int number)
{
    line = trim(line);
    if (*line == '\0' || *line == '#' || *line == ';')
        return 0;
    if (*line == '!')
        return read_include(reader, line);
    if (*line == '[') {
        char *end = strchr(line, ']');

        if (end == NULL) {
            host_log(HOST_LOG_ERROR, "Wrong group definition in config file %s at line %d", path,
                     number);
            return 1;
        }
        *end = '\0';
        *state = is_wanted(reader, trim(line + 1));
        return 0;
    }
    if (*state < 0) {
        host_log(HOST_LOG_ERROR, "Found option without preceding group in config file %s at line "
                 "%d", path, number);
        return 1;
    }
    if (*state == 0)
        return 0;
    cut_comment(line);
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return reader->option(reader->ctx, trim(line), NULL);
    *equals = '\0';
    char *value = trim(equals + 1);
    unquote(value);
    return reader->option(reader->ctx, trim(line), value);
}

static int read_file(struct reader *reader, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    int state = -1, result = 0, number = 0;

    if (file == NULL) {
        host_log(HOST_LOG_ERROR, "Could not open required defaults file: %s (errno: %d \"%s\")",
                 path, errno, strerror(errno));
        return 1;
    }
    reader->depth++;
    while (result == 0 && getline(&line, &room, file) >= 0)
        result = read_line(reader, line, &state, path, ++number);
    reader->depth--;
    free(line);
    fclose(file);
    return result;
}

int defaults_read(const char *path, const char *const *groups, defaults_option_fn option, void *ctx)
{
    struct reader reader = { .groups = groups, .option = option, .ctx = ctx };

    return read_file(&reader, path);
}
