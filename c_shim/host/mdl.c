/* Names of tables as locks: statements hold them shared until their transaction ends, DDL holds
 * them exclusively. Whoever waits for an exclusive lock keeps newcomers out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec.h"

struct mdl_entry {
    struct mdl_entry *next;
    char *db, *name;
    uint32_t shared, waiting_exclusive, users;
    session *exclusive;
};
struct mdl_held {
    struct mdl_held *next;
    struct mdl_entry *entry;
    bool exclusive, kept; /* kept: LOCK TABLES */
};

/* One table of names per process: hosts of one process share it harmlessly (names carry no data). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct mdl_entry *entries;

static struct mdl_entry *entry_of(const char *db, const char *name)
{
    for (struct mdl_entry *e = entries; e; e = e->next)
        if (!strcmp(e->db, db) && !strcmp(e->name, name))
            return e;
    struct mdl_entry *e = mem_alloc(sizeof *e);
    e->db = mem_strdup(db);
    e->name = mem_strdup(name);
    e->next = entries;
    entries = e;
    return e;
}

static void entry_done(struct mdl_entry *e)
{
    if (--e->users)
        return;
    for (struct mdl_entry **p = &entries; *p; p = &(*p)->next)
        if (*p == e) {
            *p = e->next;
            break;
        }
    free(e->db);
    free(e->name);
    free(e);
}

static struct mdl_held *held_of(session *s, const struct mdl_entry *e)
{
    for (struct mdl_held *h = s->mdl; h; h = h->next)
        if (h->entry == e)
            return h;
    return NULL;
}

static bool grantable(session *s, const struct mdl_entry *e, const struct mdl_held *held,
                      enum mdl_mode mode)
{
    if (e->exclusive && e->exclusive != s)
        return false;
    if (mode == MDL_EXCLUSIVE)
        return e->shared == (held && !held->exclusive ? 1u : 0u);
    return held || !e->waiting_exclusive;
}

/* Waits until grantable. 0 or an error number. */
static unsigned wait_for(session *s, struct mdl_entry *e, const struct mdl_held *held,
                         enum mdl_mode mode)
{
    struct timespec until;
    long waited_ms = 0;
    unsigned code = 0;
    e->waiting_exclusive += mode == MDL_EXCLUSIVE;
    while (!grantable(s, e, held, mode) && !code) {
        atomic_store(&s->mdl_waiting, true);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50 * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (pthread_cond_timedwait(&changed, &lock, &until) == ETIMEDOUT)
            waited_ms += 50;
        if (atomic_load(&s->interrupted))
            code = 1317;
        else if (waited_ms / 1000 >= (long)s->metadata_wait_seconds)
            code = 1205;
    }
    atomic_store(&s->mdl_waiting, false);
    e->waiting_exclusive -= mode == MDL_EXCLUSIVE;
    return code;
}

bool mdl_lock(session *s, const char *db, const char *name, enum mdl_mode mode)
{
    pthread_mutex_lock(&lock);
    struct mdl_entry *e = entry_of(db, name);
    struct mdl_held *held = held_of(s, e);
    e->users++;
    unsigned code = held && (held->exclusive || mode == MDL_SHARED) ? 0 : wait_for(s, e, held, mode);
    if (code || (held && (held->exclusive || mode == MDL_SHARED))) {
        entry_done(e);
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        if (code)
            sql_error(s, code);
        return !code;
    }
    if (held) { /* shared becomes exclusive */
        e->shared--;
        e->users--;
    } else {
        held = mem_alloc(sizeof *held);
        held->entry = e;
        held->next = s->mdl;
        s->mdl = held;
    }
    held->exclusive = mode == MDL_EXCLUSIVE;
    if (held->exclusive)
        e->exclusive = s;
    else
        e->shared++;
    pthread_mutex_unlock(&lock);
    return true;
}

static void release(session *s, bool kept_too)
{
    pthread_mutex_lock(&lock);
    for (struct mdl_held **p = &s->mdl; *p;) {
        struct mdl_held *h = *p;
        if (h->kept && !kept_too) {
            p = &h->next;
            continue;
        }
        if (h->exclusive)
            h->entry->exclusive = NULL;
        else
            h->entry->shared--;
        entry_done(h->entry);
        *p = h->next;
        free(h);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void mdl_release_all(session *s, bool keep_explicit)
{
    if (s->mdl)
        release(s, !keep_explicit);
}

void mdl_make_explicit(session *s)
{
    for (struct mdl_held *h = s->mdl; h; h = h->next)
        h->kept = true;
}

void mdl_release_explicit(session *s)
{
    mdl_release_all(s, false);
}
