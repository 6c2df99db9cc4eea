/* Sessions: opening and closing, running one statement, user variables, and what UNINSTALL and the
 * script runner ask of them. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "clock.h"
#include "exec.h"

session *session_open(host *h)
{
    session *s = mem_alloc(sizeof *s);
    s->h = h;
    s->db = mem_strdup("");
    s->next_isolation = 255;
    s->isolation = SE_REPEATABLE_READ;
    s->autocommit = true;
    pthread_mutex_init(&s->tables_lock, NULL);
    sysvar_init(s);
    pthread_mutex_lock(&h->lock);
    s->id = ++h->next_session_id;
    s->next = h->sessions;
    h->sessions = s;
    pthread_mutex_unlock(&h->lock);
    return s;
}

static void part_close(session *s, uint32_t slot)
{
    struct part gone = s->parts[slot];
    pthread_mutex_lock(&s->tables_lock);
    s->parts[slot] = (struct part){0};
    pthread_mutex_unlock(&s->tables_lock);
    if (gone.es)
        gone.eng->ops->session_close(gone.eng, gone.es);
}

static void variables_free(struct variable *v)
{
    while (v) {
        struct variable *next = v->next;
        if (v->value.kind == V_STRING)
            free((char *)(uintptr_t)v->value.s.ptr);
        free(v->name);
        free(v);
        v = next;
    }
}

void locked_tables_forget(session *s)
{
    for (uint32_t i = 0; i < s->locked_count; i++) {
        free(s->locked[i].db);
        free(s->locked[i].name);
    }
    free(s->locked);
    s->locked = NULL;
    s->locked_count = 0;
    s->tables_locked = false;
}

void session_close(session *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->h->lock);
    for (session **p = &s->h->sessions; *p; p = &(*p)->next)
        if (*p == s) {
            *p = s->next;
            break;
        }
    pthread_mutex_unlock(&s->h->lock);
    transaction_rollback(s);
    tables_release(s);
    tables_close(s, NULL);
    for (uint32_t i = 0; i < MAX_ENGINES; i++)
        part_close(s, i);
    mdl_release_all(s, false);
    locked_tables_forget(s);
    variables_free(s->user_vars);
    variables_free(s->system_vars);
    diag_free(s);
    arena_free(&s->arena);
    pthread_mutex_destroy(&s->tables_lock);
    free(s->db);
    free(s);
}

uint32_t session_id(const session *s)
{
    return s->id;
}

host *session_host(const session *s)
{
    return s->h;
}

const char *session_db(const session *s)
{
    return s->db;
}

uint32_t session_collation(const session *s)
{
    return s->collation;
}

void session_interrupt(session *s)
{
    atomic_store(&s->interrupted, true);
    pthread_mutex_lock(&s->tables_lock);
    for (uint32_t i = 0; i < MAX_ENGINES; i++)
        if (s->parts[i].es && s->parts[i].eng->ops->interrupt)
            s->parts[i].eng->ops->interrupt(s->parts[i].eng, s->parts[i].es);
    pthread_mutex_unlock(&s->tables_lock);
}

bool session_waits_for_lock(session *s)
{
    if (atomic_load(&s->mdl_waiting))
        return true;
    bool waits = false;
    pthread_mutex_lock(&s->tables_lock);
    for (uint32_t i = 0; i < MAX_ENGINES; i++) {
        struct part *p = &s->parts[i];
        if (p->es && p->eng->ops->waits_for_lock)
            waits |= p->eng->ops->waits_for_lock(p->eng, p->es);
    }
    pthread_mutex_unlock(&s->tables_lock);
    return waits;
}

/* Gives host->lock back meanwhile. */
static void wait_a_millisecond(host *h)
{
    pthread_mutex_unlock(&h->lock);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    pthread_mutex_lock(&h->lock);
}

/* Has a transaction open in it, or its tables locked. One that does not run a statement cannot begin
 * one now (that takes host->lock), so its part of the engine may be asked. */
static bool session_holds(const session *s, const engine *e)
{
    const struct part *p = &s->parts[e->slot];

    if (s->tables_locked || (p->es && p->in_trx))
        return true;
    return p->es && e->ops->in_transaction && e->ops->in_transaction(p->eng, p->es);
}

/* Of several users the one that came first is named. Any running statement counts: it may be about to
 * use the engine. `works`: does one of them get on? */
static uint32_t engine_user_now(host *h, const engine *e, const session *but, bool *works)
{
    uint32_t user = 0;

    *works = false;
    for (session *s = h->sessions; s; s = s->next) {
        bool busy = atomic_load(&s->busy);
        if (s == but || !(busy || session_holds(s, e)))
            continue;
        *works |= busy && !session_waits_for_lock(s);
        if (user == 0 || s->id < user)
            user = s->id;
    }
    return user;
}

uint32_t session_engine_user(host *h, const engine *e, const session *but)
{
    enum { PATIENCE_MS = 1000, SILENCE_MS = 50 };
    uint64_t begun = clock_us() / 1000, active = begun;
    uint32_t user;
    bool works;

    for (;; wait_a_millisecond(h)) {
        user = engine_user_now(h, e, but, &works);
        uint64_t now = clock_us() / 1000; /* asking who waits for a lock takes its time */
        if (works)
            active = now;
        if (user == 0 || now - active > SILENCE_MS || now - begun > PATIENCE_MS)
            return user;
    }
}

void session_forget_engine(host *h, engine *e)
{
    for (session *s = h->sessions; s; s = s->next) {
        tables_close(s, e);
        part_close(s, e->slot);
    }
}

static void statement_prepare(session *s, const char *sql, size_t len, sink *k)
{
    struct timespec now;
    pthread_mutex_lock(&s->h->lock); /* UNINSTALL looks at busy under this lock */
    while (s->h->leaving && !session_holds(s, s->h->leaving))
        wait_a_millisecond(s->h);
    atomic_store(&s->busy, true);
    pthread_mutex_unlock(&s->h->lock);
    atomic_store(&s->interrupted, false);
    clock_gettime(CLOCK_REALTIME, &now);
    s->now_seconds = now.tv_sec;
    s->now_micros = (uint32_t)(now.tv_nsec / 1000);
    s->sql = sql;
    s->sql_len = len;
    s->sink = k;
    s->row_number = 1;
    s->insert_id_now = 0;
    s->lock_wait_seconds = 0;
    s->skip_locked = false;
    s->writing = false;
}

static bool keeps_diagnostics(const struct stmt *st)
{
    return st && st->kind == STMT_SHOW && (st->show == SHOW_WARNINGS || st->show == SHOW_ERRORS);
}

unsigned session_run(session *s, const char *sql, size_t len, sink *k)
{
    statement_prepare(s, sql, len, k);
    struct diagnostics before = s->diag;
    memset(&s->diag, 0, sizeof s->diag);
    struct stmt *st = sql_parse(s, &s->arena, sql, len);
    struct diagnostics parsed = s->diag;
    if (keeps_diagnostics(st)) {
        s->diag = before;
        s->diag.error = 0;
        before = parsed;
    }
    unsigned code = st ? exec_statement(s, st) : s->diag.error;
    if (code)
        k->error(k, code, sql_state(code), s->diag.error_text);
    struct diagnostics now = s->diag;
    s->diag = before; /* what the statement before left is over */
    diag_free(s);
    s->diag = now;
    if (code)
        s->row_count = -1;
    if (s->insert_id_now)
        s->last_insert_id = s->insert_id_now;
    arena_free(&s->arena);
    s->sink = NULL;
    s->sql = NULL;
    s->sql_len = 0;
    pthread_mutex_lock(&s->h->lock);
    atomic_store(&s->busy, false);
    pthread_mutex_unlock(&s->h->lock);
    return code;
}

static struct variable *user_var(session *s, const char *name)
{
    for (struct variable *v = s->user_vars; v; v = v->next)
        if (!strcasecmp(v->name, name))
            return v;
    return NULL;
}

struct value user_var_get(session *s, const char *name)
{
    struct variable *v = user_var(s, name);
    if (!v)
        return value_null();
    struct value r = v->value;
    if (r.kind == V_STRING)
        r.s.ptr = arena_strndup(&s->arena, r.s.ptr, r.s.len);
    return r;
}

void user_var_set(session *s, const char *name, const struct value *value)
{
    struct variable *v = user_var(s, name);
    struct value copy = *value;
    if (copy.kind == V_DECIMAL || copy.kind == V_TEMPORAL)
        copy = value_to_text(&s->arena, value);
    if (copy.kind == V_STRING) {
        copy.s.ptr = mem_strndup(copy.s.ptr, copy.s.len);
        copy.literal = false;
    }
    if (!v) {
        v = mem_alloc(sizeof *v);
        v->name = mem_strdup(name);
        v->next = s->user_vars;
        s->user_vars = v;
    } else if (v->value.kind == V_STRING) {
        free((char *)(uintptr_t)v->value.s.ptr);
    }
    v->value = copy;
}
