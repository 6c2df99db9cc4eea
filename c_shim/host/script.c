#include "script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"

#define POLL_NANOSECONDS 300000

enum actor_state { ACTOR_IDLE, ACTOR_RUNNING, ACTOR_DONE, ACTOR_LEAVING };

/* One session of the script, with its thread. */
typedef struct actor {
    struct actor *next;
    char *name;
    session *s;
    pthread_t thread;
    pthread_mutex_t mutex; /* state, sql, text */
    pthread_cond_t changed;
    enum actor_state state;
    char *sql;
    char *text; /* what the statement printed, lines */
    size_t length;
    bool blocked; /* "blocks" has been printed */
} actor;

typedef struct script {
    host *h;
    FILE *out;
    const char *database;
    uint64_t timeout;
    actor *actors; /* in order of appearance */
    unsigned line;
    bool failed;
} script;

/* ----------------------------------------------------------------- results, one line per row */

typedef struct line_sink {
    sink sink; /* first */
    FILE *out;
    size_t rows;
} line_sink;

static void print_value(FILE *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n')
            fputs("\\n", out);
        else
            putc(bytes[i], out);
    }
}

static void take_columns(sink *k, const struct sink_column *columns, size_t count)
{
    (void)k, (void)columns, (void)count; /* rows alone: scripts are about what is there */
}

static void take_row(sink *k, const struct sink_value *values, size_t count)
{
    line_sink *l = (line_sink *)k;

    l->rows++;
    for (size_t c = 0; c < count; c++) {
        if (c > 0)
            fputs(" | ", l->out);
        if (values[c].null)
            fputs("NULL", l->out);
        else
            print_value(l->out, values[c].ptr, values[c].len);
    }
    putc('\n', l->out);
}

static void take_end(sink *k, uint32_t warnings)
{
    line_sink *l = (line_sink *)k;

    (void)warnings;
    if (l->rows == 0)
        fputs("(no rows)\n", l->out);
}

static void take_ok(sink *k, const struct sink_ok *ok)
{
    line_sink *l = (line_sink *)k;

    fputs("ok", l->out);
    if (ok->affected > 0)
        fprintf(l->out, ", %llu row%s", (unsigned long long)ok->affected,
                ok->affected == 1 ? "" : "s");
    if (ok->warnings > 0)
        fprintf(l->out, ", %u warning%s", ok->warnings, ok->warnings == 1 ? "" : "s");
    putc('\n', l->out);
}

static void take_error(sink *k, unsigned code, const char *sqlstate, const char *message)
{
    fprintf(((line_sink *)k)->out, "ERROR %u (%s): %s\n", code, sqlstate, message);
}

static void run_statement(actor *a)
{
    char *text = NULL;
    size_t length = 0;
    line_sink l = { .sink = { .columns = take_columns, .row = take_row, .end = take_end,
                              .ok = take_ok, .error = take_error } };

    l.out = open_memstream(&text, &length);
    if (l.out == NULL)
        abort();
    session_run(a->s, a->sql, strlen(a->sql), &l.sink);
    fclose(l.out);
    pthread_mutex_lock(&a->mutex);
    a->text = text;
    a->length = length;
    a->state = ACTOR_DONE;
    pthread_mutex_unlock(&a->mutex);
}

/* ---------------------------------------------------------------------------------- actors */

static void *actor_main(void *argument)
{
    actor *a = argument;

    for (;;) {
        enum actor_state state;

        pthread_mutex_lock(&a->mutex);
        while (a->state != ACTOR_RUNNING && a->state != ACTOR_LEAVING)
            pthread_cond_wait(&a->changed, &a->mutex);
        state = a->state;
        pthread_mutex_unlock(&a->mutex);
        if (state == ACTOR_LEAVING)
            return NULL;
        run_statement(a);
    }
}

static actor *actor_find(script *sc, const char *name, size_t length)
{
    for (actor *a = sc->actors; a != NULL; a = a->next)
        if (strlen(a->name) == length && strncmp(a->name, name, length) == 0)
            return a;
    return NULL;
}

static void use_database(session *s, const char *database)
{
    FILE *ignored = fopen("/dev/null", "we");
    line_sink l = { .sink = { .columns = take_columns, .row = take_row, .end = take_end,
                              .ok = take_ok, .error = take_error }, .out = ignored };
    char sql[300];
    int length = snprintf(sql, sizeof sql, "USE `%s`", database);

    if (ignored == NULL)
        abort();
    session_run(s, sql, (size_t)length, &l.sink);
    fclose(ignored);
}

static actor *actor_new(script *sc, const char *name, size_t length)
{
    actor *a = calloc(1, sizeof *a), **link = &sc->actors;

    if (a == NULL)
        abort();
    a->name = strndup(name, length);
    a->s = session_open(sc->h);
    if (a->name == NULL || a->s == NULL)
        abort();
    if (sc->database != NULL)
        use_database(a->s, sc->database);
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->changed, NULL);
    if (pthread_create(&a->thread, NULL, actor_main, a) != 0)
        abort();
    while (*link != NULL)
        link = &(*link)->next;
    *link = a;
    return a;
}

/* Ends the thread and the session; whatever it was doing is interrupted. */
static void actor_free(script *sc, actor *a)
{
    actor **link = &sc->actors;

    pthread_mutex_lock(&a->mutex);
    while (a->state == ACTOR_RUNNING) {
        pthread_mutex_unlock(&a->mutex);
        session_interrupt(a->s);
        nanosleep(&(struct timespec){ .tv_nsec = POLL_NANOSECONDS }, NULL);
        pthread_mutex_lock(&a->mutex);
    }
    a->state = ACTOR_LEAVING;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    pthread_join(a->thread, NULL);
    session_close(a->s);
    while (*link != a)
        link = &(*link)->next;
    *link = a->next;
    pthread_mutex_destroy(&a->mutex);
    pthread_cond_destroy(&a->changed);
    free(a->name);
    free(a->sql);
    free(a->text);
    free(a);
}

static enum actor_state state_of(actor *a)
{
    enum actor_state state;

    pthread_mutex_lock(&a->mutex);
    state = a->state;
    pthread_mutex_unlock(&a->mutex);
    return state;
}

/* ---------------------------------------------------------------------------------- settling */

/* Looks at every session once. True: each is idle, done or waiting; *done counts the finished. */
static bool look(script *sc, unsigned *done)
{
    bool settled = true;

    *done = 0;
    for (actor *a = sc->actors; a != NULL; a = a->next) {
        enum actor_state state = state_of(a);

        if (state == ACTOR_DONE)
            ++*done;
        else if (state == ACTOR_RUNNING && !session_waits_for_lock(a->s))
            settled = false;
    }
    return settled;
}

/*
 * Returns once nothing moves any more: two looks in a row at which all stood still and nobody had
 * finished in between (who finishes may let another go that was seen waiting before).
 */
static void settle(script *sc, const actor *until_done)
{
    uint64_t end = clock_us() / 1000 + sc->timeout * 1000;
    unsigned done, before = UINT32_MAX;

    for (;;) {
        bool settled = look(sc, &done);

        if (until_done != NULL && state_of((actor *)(uintptr_t)until_done) == ACTOR_RUNNING)
            settled = false;
        if (settled && done == before)
            return;
        before = settled ? done : UINT32_MAX;
        if (clock_us() / 1000 > end) {
            fprintf(stderr, "line %u: a statement neither ends nor waits for a lock\n", sc->line);
            sc->failed = true;
            return;
        }
        nanosleep(&(struct timespec){ .tv_nsec = POLL_NANOSECONDS }, NULL);
    }
}

/* ----------------------------------------------------------------------------------- output */

static void print_result(script *sc, actor *a, const char *indent)
{
    char *line = a->text, *end;

    for (; line != NULL && (end = strchr(line, '\n')) != NULL; line = end + 1)
        fprintf(sc->out, "%s%.*s\n", indent, (int)(end - line), line);
    free(a->text);
    a->text = NULL;
    pthread_mutex_lock(&a->mutex);
    a->state = ACTOR_IDLE;
    pthread_mutex_unlock(&a->mutex);
    a->blocked = false;
}

/* What the step has done: to the session that took it first, then to the others. */
static void report(script *sc, actor *stepped)
{
    if (stepped != NULL && !stepped->blocked) {
        if (state_of(stepped) == ACTOR_DONE) {
            print_result(sc, stepped, "    ");
        } else if (state_of(stepped) == ACTOR_RUNNING) {
            fprintf(sc->out, "    %s blocks\n", stepped->name);
            stepped->blocked = true;
        }
    }
    for (actor *a = sc->actors; a != NULL; a = a->next) {
        if (a->blocked && state_of(a) == ACTOR_DONE) {
            fprintf(sc->out, "    %s resumes\n", a->name);
            print_result(sc, a, "        ");
        }
    }
    fflush(sc->out);
}

/* ------------------------------------------------------------------------------------ steps */

static bool misuse(script *sc, const char *why)
{
    fprintf(stderr, "line %u: %s\n", sc->line, why);
    sc->failed = true;
    return false;
}

static bool step_statement(script *sc, const char *line, size_t name_length)
{
    actor *a = actor_find(sc, line, name_length);
    const char *sql = line + name_length + 1;
    size_t length;

    if (a == NULL)
        a = actor_new(sc, line, name_length);
    if (a->blocked)
        return misuse(sc, "the session's statement has not ended");
    while (isspace((unsigned char)*sql))
        sql++;
    length = strlen(sql);
    while (length > 0 && (isspace((unsigned char)sql[length - 1]) || sql[length - 1] == ';'))
        length--;
    pthread_mutex_lock(&a->mutex);
    free(a->sql);
    a->sql = strndup(sql, length);
    if (a->sql == NULL)
        abort();
    a->state = ACTOR_RUNNING;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    settle(sc, NULL);
    report(sc, a);
    return !sc->failed;
}

static bool step_system(script *sc, const char *command)
{
    fflush(sc->out);
    return system(command) == 0 || misuse(sc, "the system command failed");
}

static bool step_directive(script *sc, const char *line)
{
    static const char *const words[] = { "wait", "kill", "close" };
    size_t length = strcspn(line, " \t");
    const char *name = line + length + strspn(line + length, " \t");
    actor *a = actor_find(sc, name, strcspn(name, " \t"));
    int word = 0;

    if (strncmp(line, "system ", 7) == 0)
        return step_system(sc, line + 7);
    while (word < 3 && (strlen(words[word]) != length || strncmp(line, words[word], length) != 0))
        word++;
    if (word == 3)
        return misuse(sc, "neither \"session: statement\" nor wait, kill, close or system");
    if (a == NULL)
        return misuse(sc, "no such session");
    if (word == 1)
        session_interrupt(a->s);
    if (word == 2)
        actor_free(sc, a);
    settle(sc, word == 0 ? a : NULL);
    report(sc, NULL);
    return !sc->failed;
}

/* Length of the name before the colon, or 0. */
static size_t session_name(const char *line)
{
    size_t length = 0;

    while (isalnum((unsigned char)line[length]) || line[length] == '_')
        length++;
    return line[length] == ':' ? length : 0;
}

static bool step(script *sc, const char *line)
{
    size_t name_length;

    if (*line == ' ' || *line == '\t')
        return true; /* what was expected */
    fprintf(sc->out, "%s\n", line);
    if (*line == '\0' || *line == '#')
        return true;
    name_length = session_name(line);
    return name_length > 0 ? step_statement(sc, line, name_length) : step_directive(sc, line);
}

bool script_run(host *h, FILE *file, FILE *out, const char *database, uint64_t timeout)
{
    script sc = { .h = h, .out = out, .database = database, .timeout = timeout };
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    while (!sc.failed && (length = getline(&line, &room, file)) >= 0) {
        sc.line++;
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = '\0';
        step(&sc, line);
    }
    free(line);
    for (actor *a = sc.actors; a != NULL; a = a->next)
        if (a->blocked)
            fprintf(out, "%s still waits\n", a->name);
    while (sc.actors != NULL)
        actor_free(&sc, sc.actors);
    fflush(out);
    return !sc.failed;
}
