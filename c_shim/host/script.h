/*
 * Scripts with several sessions, for interleavings.
 *
 *   # a comment, kept
 *   t1: BEGIN
 *       ok
 *   t2: UPDATE t SET v = 12 WHERE id = 1
 *       t2 blocks
 *   t1: COMMIT
 *       ok
 *       t2 resumes
 *           ok, 1 row
 *   wait t2        until its statement has ended, whatever it waits for
 *   kill t2        interrupts its statement
 *   close t2       ends the session, with rollback
 *   system CMD     runs a shell command, which must succeed
 *
 * Indented lines are what is expected; they are not read. The run prints the whole script with what
 * really happened in their place: a script that passes prints itself. Each session is a thread that
 * lives to the end of the script. After each step every session has either finished or waits for a
 * lock - it is asked, no clock decides - so the output is the same each time.
 */
#ifndef XTRADB_HOST_SCRIPT_H
#define XTRADB_HOST_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "host.h"

/* Runs the script to its end. False: it is malformed, or a step took longer than `timeout` seconds
 * without waiting for a lock; stderr says which. `database` (may be NULL) is used by each session. */
bool script_run(host *h, FILE *script, FILE *out, const char *database, uint64_t timeout);

#endif
