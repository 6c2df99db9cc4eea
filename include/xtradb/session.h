/* xtradb/session.h - sessions, statements, transactions.
 *
 * A session is one connection of the host; it carries at most one transaction. The transaction
 * starts by itself with the first table_use after the last commit or rollback, or by trx_begin.
 *
 * One statement:
 *   statement_begin            once, before the first table_use
 *   table_use ...              each table of the statement (table.h)
 *   reads and writes
 *   table_release ...          each table
 *   statement_end              the statement succeeded: its changes stay in the transaction
 *   or statement_rollback      it failed: its changes are undone, the transaction goes on
 *   trx_commit / trx_rollback  in autocommit after each statement
 */
#ifndef XTRADB_SESSION_H
#define XTRADB_SESSION_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct xt_session_config {
  uint32_t struct_size;
  /** XT_ISOLATION_*; can be changed later. */
  uint32_t isolation;
  /** The host's connection id: INNODB_TRX.trx_mysql_thread_id. */
  uint64_t connection_id;
  /** Given to the callbacks that concern this session; may be NULL. */
  void *session_ctx;
} xt_session_config;

#define XT_ISOLATION_READ_UNCOMMITTED 0
#define XT_ISOLATION_READ_COMMITTED 1
#define XT_ISOLATION_REPEATABLE_READ 2
#define XT_ISOLATION_SERIALIZABLE 3

/** Opens a session.
 *  Owner: caller; session_close. Thread: any. Codes: common, XT_BUSY (engine is closing). */
typedef xt_status xt_session_open_fn(xt_engine *engine, const xt_session_config *config,
                                     xt_session **session);

/** Rolls back an open transaction (a prepared one is kept, for prepared_commit), unbinds its tables
 *  (they stay open and may be bound to another session), frees the session. NULL is allowed.
 *  Thread: owner; no session_interrupt may be under way. Codes: common. */
typedef xt_status xt_session_close_fn(xt_session *session);

/** Text of the session's last error, NUL-terminated; "" if there was none. Lives until the next call
 *  on the session. Thread: owner. */
typedef const char *xt_session_error_fn(const xt_session *session);

/** After XT_DUPLICATE_KEY: the key's position in the template's keys; XT_NO_KEY if it is not one of
 *  them (or nothing happened). Thread: owner. */
typedef uint32_t xt_session_error_key_fn(const xt_session *session);
#define XT_NO_KEY 0xFFFFFFFFu

/** Ends the running statement of the session as soon as possible: a lock wait ends at once, the
 *  call returns XT_INTERRUPTED. With nothing running it hits the next statement's first wait or
 *  long step, unless statement_begin comes first. Sets a flag and signals; never blocks.
 *  Thread: any, while the host makes sure that the session is not closed. Codes: common. */
typedef xt_status xt_session_interrupt_fn(xt_session *session);

/** Isolation of the next transaction, or of the running one if it has not read yet.
 *  Thread: owner. Codes: common. */
typedef xt_status xt_session_set_isolation_fn(xt_session *session, uint32_t isolation);

/** xt_session_state.flags */
#define XT_SESSION_IN_TRX 1u         /* a transaction is open */
#define XT_SESSION_TRX_CHANGED 2u    /* it changed something */
#define XT_SESSION_TRX_PREPARED 4u
#define XT_SESSION_TRX_ABORTED 8u    /* only trx_rollback is accepted */
#define XT_SESSION_HAS_LOCKS 16u     /* it holds row or table locks (metadata locks must stay) */
#define XT_SESSION_HAS_VIEW 32u      /* it has a read view */
#define XT_SESSION_IN_STATEMENT 64u  /* between statement_begin and statement_end */

typedef struct xt_session_info {
  uint32_t struct_size;
  /** XT_SESSION_* */
  uint32_t flags;
  /** 0 if the transaction has none (yet). */
  uint64_t trx_id;
} xt_session_info;

/** Thread: owner. Codes: common. */
typedef xt_status xt_session_state_fn(const xt_session *session, xt_session_info *info);

/* ---- statements ------------------------------------------------------------------------------ */

/** statement_begin flags */
#define XT_STATEMENT_AUTOCOMMIT 1u        /* a transaction of its own */
#define XT_STATEMENT_READ_ONLY 2u
#define XT_STATEMENT_NO_FOREIGN_KEYS 4u   /* foreign_key_checks = 0 */
#define XT_STATEMENT_RELAXED_UNIQUE 8u    /* unique_checks = 0 */

/** Notes the point to which statement_rollback goes back, clears an old interrupt; at READ
 *  COMMITTED and below the read view is renewed.
 *  Thread: owner. Codes: common, XT_TRX_ABORTED. */
typedef xt_status xt_statement_begin_fn(xt_session *session, uint32_t flags);

/** Ends a successful statement: gives back the AUTO-INC lock; at READ COMMITTED and below the read
 *  view is closed. Thread: owner. Codes: common, XT_WRONG_ORDER. */
typedef xt_status xt_statement_end_fn(xt_session *session);

/** Undoes the statement's changes, keeps the row locks; then as statement_end.
 *  Thread: owner. Codes: common, XT_WRONG_ORDER, XT_CRASHED. */
typedef xt_status xt_statement_rollback_fn(xt_session *session);

/* ---- transactions ---------------------------------------------------------------------------- */

/** trx_begin flags */
#define XT_TRX_READ_ONLY 1u
#define XT_TRX_CONSISTENT_SNAPSHOT 2u   /* open the read view now (at REPEATABLE READ and above) */

/** Starts a transaction. Thread: owner. Codes: common, XT_WRONG_ORDER (one is open). */
typedef xt_status xt_trx_begin_fn(xt_session *session, uint32_t flags);

/** Commits: visible, locks released, durable as innodb_flush_log_at_trx_commit says. Without a
 *  transaction: nothing to do, XT_OK. On an error nothing was acknowledged; the transaction's fate
 *  is decided by the log at the next start. XT_INVALID: rows that a table collected (bulk_begin) were
 *  not put into it by bulk_end; the transaction is open still, and to be rolled back.
 *  Thread: owner. Codes: common, XT_TRX_ABORTED, XT_INVALID, XT_IO. */
typedef xt_status xt_trx_commit_fn(xt_session *session);

/** First half of a commit in binlog order: the transaction becomes visible and its locks are
 *  released; no waiting for the log. trx_commit must follow. `binlog_file` may be NULL; else it and
 *  `binlog_offset` are stored with the commit.
 *  Thread: owner - and the owner's place may be taken by the group-commit leader while the owner
 *  waits. Codes: common, XT_WRONG_ORDER (not prepared). */
typedef xt_status xt_trx_commit_ordered_fn(xt_session *session, const char *binlog_file,
                                           uint64_t binlog_offset);

/** Rolls the whole transaction back. Without a transaction: XT_OK.
 *  Thread: owner. Codes: common, XT_CRASHED. */
typedef xt_status xt_trx_rollback_fn(xt_session *session);

/** Sets a savepoint. `name` is any bytes (a SQL name, an address), compared bytewise; one of the
 *  same name is replaced. Thread: owner. Codes: common. */
typedef xt_status xt_savepoint_set_fn(xt_session *session, const void *name, uint32_t length);

/** Undoes everything since; younger savepoints are forgotten, this one stays; locks stay.
 *  Thread: owner. Codes: common, XT_NO_SAVEPOINT, XT_CRASHED. */
typedef xt_status xt_savepoint_rollback_fn(xt_session *session, const void *name, uint32_t length);

/** Forgets the savepoint and all younger ones. Thread: owner. Codes: common, XT_NO_SAVEPOINT. */
typedef xt_status xt_savepoint_release_fn(xt_session *session, const void *name, uint32_t length);

/* ---- two-phase commit ------------------------------------------------------------------------ */

/** X/Open XID, as MySQL keeps it. */
typedef struct xt_xid {
  int32_t format_id;
  uint32_t gtrid_length; /* 1..64 */
  uint32_t bqual_length; /* 0..64 */
  uint8_t data[128];     /* gtrid, then bqual; rest zero */
} xt_xid;

/** Prepares the session's transaction under `xid`: after XT_OK it survives a crash.
 *  Thread: owner. Codes: common, XT_WRONG_ORDER, XT_UNSUPPORTED (a version without XA), XT_IO. */
typedef xt_status xt_trx_prepare_fn(xt_session *session, const xt_xid *xid);

/** Commits or rolls back a prepared transaction that no session owns.
 *  Thread: any. Codes: common, XT_XID_UNKNOWN, XT_BUSY (a session owns it), XT_UNSUPPORTED. */
typedef xt_status xt_prepared_commit_fn(xt_engine *engine, const xt_xid *xid);
typedef xt_status xt_prepared_rollback_fn(xt_engine *engine, const xt_xid *xid);

/** Copies the XIDs of prepared transactions, from the `first`-th on, at most `capacity`; `*count`
 *  gets the number copied. Thread: any. Codes: common. */
typedef xt_status xt_prepared_list_fn(xt_engine *engine, uint32_t first, xt_xid *xids,
                                      uint32_t capacity, uint32_t *count);

#ifdef __cplusplus
}
#endif

#endif /* XTRADB_SESSION_H */
