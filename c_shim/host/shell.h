/*
 * The command-line client: reads statements from a prompt, a stream or a string, and runs them.
 *
 * A statement ends at the delimiter, at \g or at \G outside quotes and comments. Commands: type \h. Errors go to the output; without --force the first one ends a batch.
 */
#ifndef XTRADB_HOST_SHELL_H
#define XTRADB_HOST_SHELL_H

#include <stdbool.h>
#include <stdio.h>

#include "host.h"
#include "output.h"

typedef struct shell_settings {
    bool interactive; /* a prompt with line editing, and errors do not end it */
    bool force;
    bool show_warnings;
    unsigned verbose; /* 1: echo statements */
    const char *prompt;
} shell_settings;

typedef struct shell shell;

shell *shell_new(session *s, output *o, const shell_settings *settings);
void shell_free(shell *sh);

/* Makes a database the current one, without a word. False: the error is printed, and ends things. */
bool shell_use(shell *sh, const char *database);

/* Each runs to the end of its input, or to the first error. False: an error ended it. */
bool shell_run_stream(shell *sh, FILE *input);
bool shell_run_string(shell *sh, const char *text);
bool shell_run_prompt(shell *sh);

/* True once \q was read or shell_stop was called: nothing more should be run. */
bool shell_quits(const shell *sh);

/* From the signal thread: interrupts what runs; `quit`: and ends the shell. */
void shell_stop(shell *sh, bool quit);

#endif
