/*
 * Cuts client input into statements and client commands, line by line.
 *
 * Knows quotes ('', "", ``, backslash escapes), comments (-- , #, slash-star) and the delimiter. Text
 * in quotes and comments never ends a statement; a delimiter inside a versioned comment does not
 * either.
 */
#ifndef XTRADB_HOST_SPLITTER_H
#define XTRADB_HOST_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>

enum split_event {
    SPLIT_MORE,      /* the line is used up, the statement goes on */
    SPLIT_STATEMENT, /* a statement is complete */
    SPLIT_COMMAND,   /* a backslash command outside quotes: `command` is its letter */
};

typedef struct splitter {
    char *text; /* the statement so far, NUL-terminated */
    size_t length, room;
    char quote;        /* ' " ` while inside quotes, else 0 */
    char comment;      /* '*' plain, '!' versioned, else 0 */
    bool vertical;     /* \G ended the statement */
    char command;
    char delimiter[16];
    unsigned line;     /* of the first character of the statement */
} splitter;

void splitter_init(splitter *s);
void splitter_free(splitter *s);

/* Forgets the statement so far. */
void splitter_clear(splitter *s);

/* True when nothing but blanks and comments has been read of the next statement. */
bool splitter_is_empty(const splitter *s);

/* Reads on in `*line` (NUL-terminated, without newline), which is line `number` of the input, and
 * moves `*line` past what was used. */
enum split_event splitter_feed(splitter *s, const char **line, unsigned number);

#endif
