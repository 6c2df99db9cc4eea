/* The parser alone: a corpus of statements, and a dump that mariadb-dump wrote.
 *
 *     unit_parser CORPUS [DUMP]
 *
 * Corpus: lines "ok STATEMENT" or "NUMBER STATEMENT" (the error it must give); # begins a comment.
 * Every statement is also parsed cut off after each of its bytes and with each byte changed: an
 * error or a statement, no crash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "splitter.h"

static unsigned checks, failures;

static unsigned parse(session *s, const char *sql, size_t len)
{
    struct arena a = {0};
    diag_reset(s);
    struct stmt *st = sql_parse(s, &a, sql, len);
    unsigned code = st ? 0 : s->diag.error ? s->diag.error : 1;
    arena_free(&a);
    return code;
}

static void torture(session *s, const char *sql)
{
    size_t len = strlen(sql);
    char *copy = malloc(len + 1);
    for (size_t n = 0; n <= len; n++) {
        char *cut = malloc(n ? n : 1); /* of its own, so that reading past the end shows */
        memcpy(cut, sql, n);
        parse(s, cut, n);
        free(cut);
    }
    for (size_t n = 0; n < len; n++)
        for (const char *c = "'\"`(*/\\;0 "; *c; c++) {
            memcpy(copy, sql, len + 1);
            copy[n] = *c;
            parse(s, copy, len);
        }
    free(copy);
    checks++;
}

static void corpus(session *s, const char *file)
{
    char line[4096];
    FILE *f = fopen(file, "r");
    if (!f) {
        perror(file);
        exit(2);
    }
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *sql = strchr(line, ' ');
        if (!sql || line[0] == '#')
            continue;
        *sql++ = 0;
        unsigned want = strcmp(line, "ok") ? (unsigned)atoi(line) : 0;
        unsigned code = parse(s, sql, strlen(sql));
        checks++;
        if (code != want) {
            printf("%s\n    gave %u (%s), expected %u\n", sql, code, code ? s->diag.error_text : "parsed", want);
            failures++;
        }
        torture(s, sql);
    }
    fclose(f);
}

static void dump(session *s, const char *file)
{
    FILE *f = fopen(file, "r");
    char *line = NULL;
    size_t room = 0;
    unsigned number = 0;
    splitter sp;
    if (!f) {
        perror(file);
        exit(2);
    }
    splitter_init(&sp);
    while (getline(&line, &room, f) >= 0) {
        line[strcspn(line, "\n")] = 0;
        const char *rest = line;
        number++;
        while (splitter_feed(&sp, &rest, number) == SPLIT_STATEMENT) {
            unsigned code = parse(s, sp.text, strlen(sp.text));
            checks++;
            if (code) {
                printf("%s:%u: %s\n", file, number, s->diag.error_text);
                failures++;
            }
            splitter_clear(&sp);
        }
    }
    splitter_free(&sp);
    free(line);
    fclose(f);
}

int main(int argc, char **argv)
{
    static host h;
    pthread_mutex_init(&h.lock, NULL);
    h.datadir = (char *)"/nonexistent";
    session *s = session_open(&h);
    if (argc < 2)
        return 2;
    corpus(s, argv[1]);
    if (argc > 2)
        dump(s, argv[2]);
    session_close(s);
    printf("parser: %u checks, %u failed\n", checks, failures);
    return failures != 0;
}
