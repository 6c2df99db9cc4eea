/* Statements and transactions, carried into every engine that takes part. */
#include "exec.h"

unsigned part_open(session *s, engine *e, struct part **out)
{
    struct part *p = &s->parts[e->slot];
    if (!p->es) {
        void *es = NULL;
        int rc = e->ops->session_open(e, s, &es);
        if (rc)
            return se_error(s, rc, NULL, NULL);
        pthread_mutex_lock(&s->tables_lock); /* other threads look: KILL, the script runner */
        *p = (struct part){.eng = e, .es = es};
        pthread_mutex_unlock(&s->tables_lock);
    }
    *out = p;
    return 0;
}

bool session_in_transaction(const session *s)
{
    return s->explicit_trx || !s->autocommit;
}

static unsigned part_begin(session *s, struct part *p)
{
    uint8_t level = s->next_isolation != 255 ? s->next_isolation : s->isolation;
    bool read_only = s->trx_read_only || s->next_read_only;
    int rc = p->eng->ops->begin(p->eng, p->es, level, read_only, s->trx_snapshot);
    if (rc)
        return se_error(s, rc, NULL, NULL);
    p->in_trx = true;
    return 0;
}

unsigned statement_begin(session *s, engine *e)
{
    struct part *p = NULL;
    unsigned code = part_open(s, e, &p);
    if (code)
        return code;
    if (!p->in_trx && (code = part_begin(s, p)))
        return code;
    if (p->in_statement)
        return 0;
    int rc = e->ops->statement_start(e, p->es);
    if (rc)
        return se_error(s, rc, NULL, NULL);
    p->in_statement = true;
    return 0;
}

/* What a transaction had for itself is over. */
static void transaction_over(session *s)
{
    s->explicit_trx = false;
    s->trx_snapshot = false;
    s->trx_read_only = false;
    s->next_isolation = 255;
    s->next_read_only = false;
    mdl_release_all(s, true);
}

unsigned transaction_commit(session *s)
{
    unsigned code = 0;
    for (uint32_t i = 0; i < MAX_ENGINES; i++) {
        struct part *p = &s->parts[i];
        if (!p->in_trx)
            continue;
        int rc = p->eng->ops->commit(p->eng, p->es);
        p->in_trx = false;
        if (rc && !code)
            code = sql_error(s, 1180, rc,
                             s->diag.engine_text[0] ? s->diag.engine_text : "the engine could not commit");
    }
    transaction_over(s);
    return code;
}

unsigned transaction_rollback(session *s)
{
    unsigned code = 0;
    for (uint32_t i = 0; i < MAX_ENGINES; i++) {
        struct part *p = &s->parts[i];
        if (!p->in_trx)
            continue;
        int rc = p->eng->ops->rollback(p->eng, p->es);
        p->in_trx = p->in_statement = false;
        if (rc && !code)
            code = se_error(s, rc, NULL, NULL);
    }
    transaction_over(s);
    return code;
}

void transaction_aborted(session *s)
{
    for (uint32_t i = 0; i < MAX_ENGINES; i++) {
        struct part *p = &s->parts[i];
        if (!p->in_trx)
            continue;
        if (p->in_statement)
            p->eng->ops->statement_end(p->eng, p->es, true);
        p->eng->ops->rollback(p->eng, p->es);
        p->in_trx = p->in_statement = false;
    }
    s->explicit_trx = false;
}

unsigned statement_finish(session *s, bool ok)
{
    unsigned code = 0;
    bool open = false;
    for (uint32_t i = 0; i < MAX_ENGINES; i++) {
        struct part *p = &s->parts[i];
        open |= p->in_trx;
        if (!p->in_statement)
            continue;
        p->in_statement = false;
        int rc = p->eng->ops->statement_end(p->eng, p->es, !ok);
        if (rc && !code)
            code = se_error(s, rc, NULL, NULL);
    }
    if (session_in_transaction(s))
        return code;
    if (!open) { /* nothing was touched: SET TRANSACTION waits for a statement that does */
        mdl_release_all(s, true);
        return code;
    }
    unsigned end = ok && !code ? transaction_commit(s) : transaction_rollback(s);
    return code ? code : end;
}
