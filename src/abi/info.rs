//! info.h: rows and text through callbacks of the host.

use std::ffi::{c_char, c_void};

use super::arguments::text;
use super::c;
use super::edge::{Fault, Outcome, edge, guarded};
use super::engine::{EngineBox, with_engine};
use super::handle;
use super::session::SessionBox;
use crate::host::callbacks::{Callbacks, SessionCtx};
use crate::info::{self, Value};
use crate::words::Error;

/// Rows between two looks at whether the session was killed.
const ROWS_PER_KILL_CHECK: u32 = 64;

/// Values of a row that are converted on the stack.
const VALUES_MAX: usize = 32;

/// A row callback of the host.
pub(super) struct Emitter {
    emit: unsafe extern "C" fn(*mut c_void, *const c::xt_value, u32) -> u32,
    ctx: *mut c_void,
}

const EMPTY: c::xt_value = c::xt_value {
    kind: c::XT_VALUE_INT,
    is_null: 1,
    v: c::xt_value__bindgen_ty_1 { u: 0 },
    length: 0,
    reserved: 0,
};

fn convert(value: &Value<'_>) -> c::xt_value {
    type V = c::xt_value__bindgen_ty_1;
    let (kind, v, length) = match *value {
        Value::Null => return EMPTY,
        Value::Int(i) => (c::XT_VALUE_INT, V { i }, 0),
        Value::Uint(u) => (c::XT_VALUE_UINT, V { u }, 0),
        Value::Double(d) => (c::XT_VALUE_DOUBLE, V { d }, 0),
        Value::Text(s) => (
            c::XT_VALUE_STRING,
            V {
                s: s.as_ptr().cast(),
            },
            s.len() as u32,
        ),
        Value::Enum(u) => (c::XT_VALUE_ENUM, V { u: u as u64 }, 0),
        Value::DateTime(u) => (c::XT_VALUE_DATETIME, V { u }, 0),
    };
    c::xt_value {
        kind,
        is_null: 0,
        v,
        length,
        reserved: 0,
    }
}

fn cancelled() -> Fault {
    Fault::new(c::XT_CANCELLED, "the row callback asked to stop")
}

impl Emitter {
    /// The callback must be given.
    pub(super) fn new(emit: c::xt_emit_fn, ctx: *mut c_void) -> Outcome<Emitter> {
        let emit = emit.ok_or_else(|| Fault::new(c::XT_NULL_ARGUMENT, "emit is NULL"))?;
        Ok(Emitter { emit, ctx })
    }

    /// Hands one row over.
    pub(super) fn emit(&self, row: &[Value<'_>]) -> Outcome {
        let mut values = [EMPTY; VALUES_MAX];
        let values = &mut values[..row.len()];
        for (slot, value) in values.iter_mut().zip(row) {
            *slot = convert(value);
        }
        // SAFETY: info.h: the host's callback with its ctx; the values live for the call.
        match unsafe { (self.emit)(self.ctx, values.as_ptr(), values.len() as u32) } {
            0 => Ok(()),
            _ => Err(cancelled()),
        }
    }

    /// A sink for `info`. The fault of the host's refusal is kept in `stopped`, since `info` knows
    /// only the engine's errors.
    fn sink<'s>(
        &'s self,
        stopped: &'s mut Option<Fault>,
        mut killed: impl FnMut() -> bool + 's,
    ) -> impl FnMut(&[Value<'_>]) -> crate::words::Result<()> + 's {
        let mut rows = 0u32;
        move |row| {
            rows += 1;
            if rows % ROWS_PER_KILL_CHECK == 0 && killed() {
                return Err(Error::Interrupted);
            }
            self.emit(row).map_err(|fault| {
                *stopped = Some(fault);
                Error::Interrupted
            })
        }
    }
}

/// Runs an emission and tells the host's refusal from the engine's errors.
fn emission(run: impl FnOnce(&mut Option<Fault>) -> crate::words::Result<()>) -> Outcome {
    let mut stopped = None;
    let result = run(&mut stopped);
    match stopped {
        Some(fault) => Err(fault),
        None => Ok(result?),
    }
}

/// # Safety
/// info.h: `table` is a string, `emit` a callback of that kind.
pub(super) unsafe extern "C" fn fill(
    engine: *mut c::xt_engine,
    session: *mut c::xt_session,
    table: *const c_char,
    emit: c::xt_emit_fn,
    ctx: *mut c_void,
) -> c::xt_status {
    edge(|| {
        let owner = handle::look_up::<EngineBox>(engine)?;
        let asker = match session.is_null() {
            true => None,
            false => Some(handle::look_up::<SessionBox>(session)?),
        };
        // The session counts as in use; its error text is set.
        let mut call = asker.as_ref().map(|asker| asker.enter()).transpose()?;
        let asked_by: Option<SessionCtx> = asker.as_ref().map(|asker| asker.ctx());
        let outcome = guarded(|| {
            // SAFETY: the caller's promise.
            let name = unsafe { text(table, "table")? };
            let emitter = Emitter::new(emit, ctx)?;
            let table = info::find(name)
                .ok_or_else(|| Fault::invalid(format!("no INFORMATION_SCHEMA table {name}")))?;
            let engine = owner.engine()?;
            let killed = || asked_by.is_some_and(|ctx| owner.host().kill_check(ctx));
            emission(|stopped| info::fill(&engine, table, &mut emitter.sink(stopped, killed)))
        });
        match &mut call {
            Some(call) => {
                call.inner().ended(outcome.clone(), c::XT_NO_KEY);
                outcome
            }
            None => owner.call(|| outcome),
        }
    })
}

/// # Safety
/// info.h: `emit` is a callback of that kind.
pub(super) unsafe extern "C" fn status(
    engine: *mut c::xt_engine,
    emit: c::xt_emit_fn,
    ctx: *mut c_void,
) -> c::xt_status {
    with_engine(engine, |owner| {
        let emitter = Emitter::new(emit, ctx)?;
        let engine = owner.engine()?;
        emission(|stopped| info::status(&engine, &mut emitter.sink(stopped, || false)))
    })
}

/// # Safety
/// info.h: `emit` is a callback of that kind.
pub(super) unsafe extern "C" fn monitor(
    engine: *mut c::xt_engine,
    kind: u32,
    emit: c::xt_text_fn,
    ctx: *mut c_void,
) -> c::xt_status {
    with_engine(engine, |owner| {
        let emit = emit.ok_or_else(|| Fault::new(c::XT_NULL_ARGUMENT, "emit is NULL"))?;
        let text = match kind {
            c::XT_MONITOR_STATUS => info::monitor_text(&*owner.engine()?),
            // Latches are not counted one by one: nothing was waited for that could be named.
            c::XT_MONITOR_MUTEX => String::new(),
            other => return Err(Fault::invalid(format!("{other} is not a kind of monitor"))),
        };
        if text.is_empty() {
            return Ok(());
        }
        // SAFETY: info.h: the host's callback with its ctx; the text lives for the call.
        match unsafe { emit(ctx, text.as_ptr().cast(), text.len() as u32) } {
            0 => Ok(()),
            _ => Err(cancelled()),
        }
    })
}
