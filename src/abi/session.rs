//! session.h: sessions, statements, transactions.

use std::cell::UnsafeCell;
use std::ffi::{CString, c_char, c_void};

use super::arguments::{array, array_mut, optional_text, out, read_struct, write_struct};
use super::c;
use super::edge::{Fault, Outcome, edge, guarded};
use super::engine::{EngineBox, with_engine};
use super::handle::{self, Handled};
use super::table::TableBox;
use crate::engine::{
    Interrupter, Isolation, Session, SessionConfig, StatementFlags, TrxFlags, Xid,
};
use crate::host::callbacks::SessionCtx;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::words::Error;

/// Behind an `xt_session`.
pub(super) struct SessionBox {
    owner: Arc<EngineBox>,
    /// A call is in the session.
    busy: AtomicBool,
    interrupter: Arc<Interrupter>,
    connection_id: u64,
    ctx: SessionCtx,
    /// Touched only by the call that set `busy`.
    inner: UnsafeCell<SessionInner>,
}

// SAFETY: `inner` is reached through `enter` only, which lets one thread in at a time; everything
// else is immutable or atomic, and all of it may move between threads.
unsafe impl Sync for SessionBox {}
// SAFETY: the engine's session and the shares inside may be used by any thread, one at a time.
unsafe impl Send for SessionBox {}

impl Handled for SessionBox {
    type Opaque = c::xt_session;
    const KIND: u64 = 2;
    const NAME: &'static str = "session";
}

/// What a session's calls work on.
pub(super) struct SessionInner {
    /// `None` once closed.
    session: Option<Session>,
    in_statement: bool,
    /// A call panicked: only session_close is accepted.
    broken: bool,
    error: Option<Fault>,
    /// What session_error handed out.
    error_text: CString,
    error_key: u32,
    /// Tables bound to the session.
    pub(super) tables: Vec<Arc<TableBox>>,
    /// Number of the uses that run now: a table that was bound under another number is not bound, even
    /// if it could not be told.
    pub(super) uses: u64,
}

/// One call inside a session.
pub(super) struct Entered<'s>(&'s SessionBox);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

impl Entered<'_> {
    pub(super) fn inner(&mut self) -> &mut SessionInner {
        // SAFETY: `busy` was false when `enter` set it, so this is the one call that is inside, and
        // `&mut self` makes this the one reference.
        unsafe { &mut *self.0.inner.get() }
    }
}

impl SessionBox {
    /// Goes in; an error if another call is inside.
    pub(super) fn enter(&self) -> Outcome<Entered<'_>> {
        if self.busy.swap(true, Ordering::Acquire) {
            return Err(Fault::wrong_order("the session is in use by another call"));
        }
        Ok(Entered(self))
    }

    /// Its engine.
    pub(super) fn owner(&self) -> &Arc<EngineBox> {
        &self.owner
    }

    /// Context for callbacks.
    pub(super) fn ctx(&self) -> SessionCtx {
        self.ctx
    }
}

impl SessionInner {
    /// The engine's session.
    pub(super) fn session(&mut self) -> Outcome<&mut Session> {
        if self.broken {
            return Err(Fault::Panic(
                "an earlier call of this session panicked; close it".into(),
            ));
        }
        self.session
            .as_mut()
            .ok_or_else(|| Fault::new(c::XT_BAD_HANDLE, "the session is closed"))
    }

    /// A statement has begun.
    pub(super) fn in_statement(&self) -> bool {
        self.in_statement
    }

    /// All uses of tables are over.
    fn unbind_all(&mut self) {
        self.uses += 1;
        for table in self.tables.drain(..) {
            table.unbind();
        }
    }

    /// Keeps the error of a call and gives its code.
    pub(super) fn ended(&mut self, outcome: Outcome, error_key: u32) -> c::xt_status {
        let Err(fault) = outcome else {
            return c::XT_OK as c::xt_status;
        };
        let code = fault.code();
        self.broken |= matches!(fault, Fault::Panic(_));
        self.error = Some(fault);
        self.error_key = error_key;
        code
    }
}

/// Looks the handle up, goes in, runs the body, keeps its error.
pub(super) fn with_session(
    session: *const c::xt_session,
    body: impl FnOnce(&mut SessionInner) -> Outcome,
) -> c::xt_status {
    let mut code = c::XT_OK as c::xt_status;
    let entered = edge(|| {
        let session = handle::look_up::<SessionBox>(session)?;
        let mut call = session.enter()?;
        let outcome = guarded(|| body(call.inner()));
        // The key as the host's definition counts: only index_add finds duplicates here.
        let key = match &outcome {
            Err(Fault::Engine(Error::DuplicateKey { index })) => u32::from(*index),
            _ => c::XT_NO_KEY,
        };
        code = call.inner().ended(outcome, key);
        Ok(())
    });
    if entered == c::XT_OK as c::xt_status {
        code
    } else {
        entered
    }
}

/// As `with_session`, for bodies that need only the engine's session.
fn with_engine_session(
    session: *const c::xt_session,
    body: impl FnOnce(&mut Session) -> Outcome,
) -> c::xt_status {
    with_session(session, |inner| body(inner.session()?))
}

fn isolation(number: u32) -> Outcome<Isolation> {
    match number {
        c::XT_ISOLATION_READ_UNCOMMITTED => Ok(Isolation::ReadUncommitted),
        c::XT_ISOLATION_READ_COMMITTED => Ok(Isolation::ReadCommitted),
        c::XT_ISOLATION_REPEATABLE_READ => Ok(Isolation::RepeatableRead),
        c::XT_ISOLATION_SERIALIZABLE => Ok(Isolation::Serializable),
        other => Err(Fault::invalid(format!("{other} is not an isolation level"))),
    }
}

/// # Safety
/// session.h: `config` is NULL or valid, `session` NULL or writable.
pub(super) unsafe extern "C" fn open(
    engine: *mut c::xt_engine,
    config: *const c::xt_session_config,
    session: *mut *mut c::xt_session,
) -> c::xt_status {
    let shared = handle::look_up::<EngineBox>(engine).map(|owner| owner.share());
    with_engine(engine, |owner| {
        // SAFETY: the caller's promises.
        let (config, session) = unsafe { (read_struct(config)?, out(session, "session")?) };
        let settings = SessionConfig {
            isolation: isolation(config.isolation)?,
            connection_id: config.connection_id,
            ctx: SessionCtx(config.session_ctx.expose_provenance()),
        };
        let engine = owner.engine()?;
        owner.session_enters(settings.connection_id)?;
        // From here on every way out must take the session out again.
        let opened = guarded(|| Ok(Session::open(&engine, settings)?));
        let published = opened.and_then(|opened| {
            let interrupter = opened.interrupter().clone();
            handle::publish(Arc::new(SessionBox {
                owner: shared?,
                busy: AtomicBool::new(false),
                interrupter,
                connection_id: settings.connection_id,
                ctx: settings.ctx,
                inner: UnsafeCell::new(SessionInner {
                    session: Some(opened),
                    in_statement: false,
                    broken: false,
                    error: None,
                    error_text: CString::default(),
                    error_key: c::XT_NO_KEY,
                    tables: Vec::new(),
                    uses: 0,
                }),
            }))
        });
        match published {
            Ok(handle) => {
                owner.host().context_opened(settings.ctx);
                *session = handle;
                Ok(())
            }
            Err(fault) => {
                owner.session_leaves(settings.connection_id);
                Err(fault)
            }
        }
    })
}

pub(super) extern "C" fn close(session: *mut c::xt_session) -> c::xt_status {
    if session.is_null() {
        return c::XT_OK as c::xt_status;
    }
    edge(|| {
        let open = handle::look_up::<SessionBox>(session)?.share();
        let mut call = open.enter()?;
        handle::close::<SessionBox>(session)?;
        let inner = call.inner();
        inner.unbind_all();
        let closing = inner.session.take();
        let closed = guarded(|| {
            if let Some(session) = closing {
                session.close();
            }
            Ok(())
        });
        drop(call);
        open.owner.host().context_closed(open.ctx);
        open.owner.session_leaves(open.connection_id);
        closed
    })
}

pub(super) extern "C" fn error(session: *const c::xt_session) -> *const c_char {
    let mut text: *const c_char = c"not an open session, or in use by another call".as_ptr();
    edge(|| {
        let session = handle::look_up::<SessionBox>(session)?;
        let mut call = session.enter()?;
        let inner = call.inner();
        let words = inner.error.as_ref().map(Fault::text).unwrap_or_default();
        inner.error_text = CString::new(words.replace('\0', "?")).unwrap_or_default();
        text = inner.error_text.as_ptr();
        Ok(())
    });
    text
}

pub(super) extern "C" fn error_key(session: *const c::xt_session) -> u32 {
    let mut key = c::XT_NO_KEY;
    edge(|| {
        let session = handle::look_up::<SessionBox>(session)?;
        key = session.enter()?.inner().error_key;
        Ok(())
    });
    key
}

pub(super) extern "C" fn interrupt(session: *mut c::xt_session) -> c::xt_status {
    edge(|| {
        handle::look_up::<SessionBox>(session)?
            .interrupter
            .interrupt();
        Ok(())
    })
}

pub(super) extern "C" fn set_isolation(session: *mut c::xt_session, level: u32) -> c::xt_status {
    with_engine_session(session, |session| {
        Ok(session.set_isolation(isolation(level)?)?)
    })
}

/// # Safety
/// session.h: `info` is NULL or valid and writable.
pub(super) unsafe extern "C" fn state(
    session: *const c::xt_session,
    info: *mut c::xt_session_info,
) -> c::xt_status {
    with_session(session, |inner| {
        let in_statement = inner.in_statement;
        let is = inner.session()?.state();
        let bits = [
            (is.in_trx, c::XT_SESSION_IN_TRX),
            (is.changed, c::XT_SESSION_TRX_CHANGED),
            (is.prepared, c::XT_SESSION_TRX_PREPARED),
            (is.aborted, c::XT_SESSION_TRX_ABORTED),
            (is.has_locks, c::XT_SESSION_HAS_LOCKS),
            (is.has_view, c::XT_SESSION_HAS_VIEW),
            (in_statement, c::XT_SESSION_IN_STATEMENT),
        ];
        let flags = bits
            .iter()
            .filter(|(on, _)| *on)
            .fold(0, |flags, (_, bit)| flags | bit);
        let trx_id = is.trx_id.map_or(0, |id| id.0);
        // SAFETY: the caller's promise.
        unsafe {
            write_struct(
                info,
                &c::xt_session_info {
                    struct_size: 0,
                    flags,
                    trx_id,
                },
            )
        }
    })
}

pub(super) extern "C" fn statement_begin(session: *mut c::xt_session, bits: u32) -> c::xt_status {
    with_session(session, |inner| {
        let flags = StatementFlags {
            autocommit: bits & c::XT_STATEMENT_AUTOCOMMIT != 0,
            read_only: bits & c::XT_STATEMENT_READ_ONLY != 0,
            no_foreign_keys: bits & c::XT_STATEMENT_NO_FOREIGN_KEYS != 0,
            relaxed_unique: bits & c::XT_STATEMENT_RELAXED_UNIQUE != 0,
        };
        if inner.in_statement {
            return Err(Fault::wrong_order("a statement is open: end it first"));
        }
        inner.session()?.statement_begin(flags)?;
        inner.in_statement = true;
        Ok(())
    })
}

fn statement_over(
    session: *mut c::xt_session,
    end: impl FnOnce(&mut Session) -> crate::words::Result<()>,
) -> c::xt_status {
    with_session(session, |inner| {
        if !inner.in_statement {
            return Err(Fault::wrong_order("no statement is open"));
        }
        // Over even if ending it fails.
        inner.in_statement = false;
        inner.unbind_all();
        Ok(end(inner.session()?)?)
    })
}

pub(super) extern "C" fn statement_end(session: *mut c::xt_session) -> c::xt_status {
    statement_over(session, Session::statement_end)
}

pub(super) extern "C" fn statement_rollback(session: *mut c::xt_session) -> c::xt_status {
    statement_over(session, Session::statement_rollback)
}

pub(super) extern "C" fn trx_begin(session: *mut c::xt_session, bits: u32) -> c::xt_status {
    with_engine_session(session, |session| {
        let flags = TrxFlags {
            read_only: bits & c::XT_TRX_READ_ONLY != 0,
            consistent_snapshot: bits & c::XT_TRX_CONSISTENT_SNAPSHOT != 0,
        };
        if session.state().in_trx {
            return Err(Fault::wrong_order(
                "a transaction is open: commit or roll back first",
            ));
        }
        Ok(session.begin(flags)?)
    })
}

/// Commit and rollback end the statement too, whatever the host forgot.
fn trx_over(
    session: *mut c::xt_session,
    end: impl FnOnce(&mut Session) -> crate::words::Result<()>,
) -> c::xt_status {
    with_session(session, |inner| {
        inner.unbind_all();
        if std::mem::take(&mut inner.in_statement) {
            inner.session()?.statement_end()?;
        }
        Ok(end(inner.session()?)?)
    })
}

pub(super) extern "C" fn trx_commit(session: *mut c::xt_session) -> c::xt_status {
    trx_over(session, Session::commit)
}

pub(super) extern "C" fn trx_rollback(session: *mut c::xt_session) -> c::xt_status {
    trx_over(session, Session::rollback)
}

/// # Safety
/// session.h: `binlog_file` is NULL or a string.
pub(super) unsafe extern "C" fn trx_commit_ordered(
    session: *mut c::xt_session,
    binlog_file: *const c_char,
    binlog_offset: u64,
) -> c::xt_status {
    with_engine_session(session, |session| {
        // SAFETY: the caller's promise.
        let file = unsafe { optional_text(binlog_file, "binlog_file")? };
        Ok(session.commit_ordered(file.map(|file| (file, binlog_offset)))?)
    })
}

/// # Safety
/// `name` has `length` bytes.
unsafe fn with_savepoint(
    session: *mut c::xt_session,
    name: *const c_void,
    length: u32,
    act: impl FnOnce(&mut Session, &[u8]) -> crate::words::Result<()>,
) -> c::xt_status {
    with_engine_session(session, |session| {
        if length == 0 || length > 1024 {
            return Err(Fault::invalid("a savepoint's name has 1 to 1024 bytes"));
        }
        // SAFETY: the caller's promise.
        let name = unsafe { array(name.cast::<u8>(), length as usize, "name")? };
        Ok(act(session, name)?)
    })
}

/// # Safety
/// session.h: `name` has `length` bytes.
pub(super) unsafe extern "C" fn savepoint_set(
    session: *mut c::xt_session,
    name: *const c_void,
    length: u32,
) -> c::xt_status {
    // SAFETY: the caller's promise.
    unsafe { with_savepoint(session, name, length, Session::savepoint_set) }
}

/// # Safety
/// session.h: `name` has `length` bytes.
pub(super) unsafe extern "C" fn savepoint_rollback(
    session: *mut c::xt_session,
    name: *const c_void,
    length: u32,
) -> c::xt_status {
    // SAFETY: the caller's promise.
    unsafe { with_savepoint(session, name, length, Session::savepoint_rollback) }
}

/// # Safety
/// session.h: `name` has `length` bytes.
pub(super) unsafe extern "C" fn savepoint_release(
    session: *mut c::xt_session,
    name: *const c_void,
    length: u32,
) -> c::xt_status {
    // SAFETY: the caller's promise.
    unsafe { with_savepoint(session, name, length, Session::savepoint_release) }
}

/// # Safety
/// `xid` is NULL or valid.
unsafe fn xid(given: *const c::xt_xid) -> Outcome<Xid> {
    // SAFETY: the caller's promise.
    let given = unsafe { array(given, 1, "xid")? }[0];
    let sound =
        given.format_id != -1 && (1..=64).contains(&given.gtrid_length) && given.bqual_length <= 64;
    if !sound {
        return Err(Fault::invalid("the XID has a bad format id or length"));
    }
    Ok(Xid {
        format_id: given.format_id,
        gtrid_length: given.gtrid_length,
        bqual_length: given.bqual_length,
        data: given.data,
    })
}

/// # Safety
/// session.h: `id` is NULL or valid.
pub(super) unsafe extern "C" fn trx_prepare(
    session: *mut c::xt_session,
    id: *const c::xt_xid,
) -> c::xt_status {
    with_engine_session(session, |session| {
        // SAFETY: the caller's promise.
        let id = unsafe { xid(id)? };
        Ok(session.prepare(&id)?)
    })
}

/// # Safety
/// session.h: `id` is NULL or valid.
pub(super) unsafe extern "C" fn prepared_commit(
    engine: *mut c::xt_engine,
    id: *const c::xt_xid,
) -> c::xt_status {
    with_engine(engine, |owner| {
        // SAFETY: the caller's promise.
        let id = unsafe { xid(id)? };
        Ok(owner.engine()?.prepared_decide(&id, true)?)
    })
}

/// # Safety
/// session.h: `id` is NULL or valid.
pub(super) unsafe extern "C" fn prepared_rollback(
    engine: *mut c::xt_engine,
    id: *const c::xt_xid,
) -> c::xt_status {
    with_engine(engine, |owner| {
        // SAFETY: the caller's promise.
        let id = unsafe { xid(id)? };
        Ok(owner.engine()?.prepared_decide(&id, false)?)
    })
}

/// # Safety
/// session.h: `xids` has room for `capacity`, `count` is NULL or writable.
pub(super) unsafe extern "C" fn prepared_list(
    engine: *mut c::xt_engine,
    first: u32,
    xids: *mut c::xt_xid,
    capacity: u32,
    count: *mut u32,
) -> c::xt_status {
    with_engine(engine, |owner| {
        // SAFETY: the caller's promises.
        let (room, count) = unsafe {
            (
                array_mut(xids, capacity as usize, "xids")?,
                out(count, "count")?,
            )
        };
        let all = owner.engine()?.prepared();
        let wanted = all.iter().skip(first as usize);
        *count = 0;
        for (slot, xid) in room.iter_mut().zip(wanted) {
            *slot = c::xt_xid {
                format_id: xid.format_id,
                gtrid_length: xid.gtrid_length,
                bqual_length: xid.bqual_length,
                data: xid.data,
            };
            *count += 1;
        }
        Ok(())
    })
}
