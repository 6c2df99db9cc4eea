/*
 * Option files: groups, keys, values, comments and includes, read as mysqld's my_default does.
 *
 * "#" starts a comment anywhere outside quotes, ";" only at the start of a line.
 */
#ifndef XTRADB_HOST_DEFAULTS_H
#define XTRADB_HOST_DEFAULTS_H

/* Called for each option of a wanted group; `value` is NULL without "=". 0 or an exit code. */
typedef int (*defaults_option_fn)(void *ctx, const char *name, const char *value);

/* 0; 1 when the file cannot be read or is malformed (logged); else what `option` returned. */
int defaults_read(const char *path, const char *const *groups, defaults_option_fn option, void *ctx);

#endif
