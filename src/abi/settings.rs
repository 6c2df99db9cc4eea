//! engine.h, second half: reading and changing settings.

use std::ffi::c_char;

use super::arguments::{copy_text, text};
use super::c;
use super::edge::{Fault, Outcome, edge, guarded};
use super::engine::with_engine;
use super::session::with_session;
use crate::settings::{SettingId, flags};

/// # Safety
/// engine.h: `name` is a string, `buffer` has `size` bytes, `needed` is NULL or writable.
pub(super) unsafe extern "C" fn get(
    engine: *mut c::xt_engine,
    session: *mut c::xt_session,
    name: *const c_char,
    buffer: *mut c_char,
    size: u32,
    needed: *mut u32,
) -> c::xt_status {
    let give = |value: String| -> Outcome {
        // SAFETY: the caller's promises.
        unsafe {
            if let Some(needed) = needed.as_mut() {
                *needed = value.len() as u32 + 1;
            }
            if value.len() >= size as usize || buffer.is_null() {
                let why = format!("the value has {} bytes", value.len() + 1);
                return Err(Fault::new(c::XT_BUFFER_SHORT, why));
            }
            copy_text(&value, buffer, size);
        }
        Ok(())
    };
    // SAFETY: the caller's promise.
    let find = || -> Outcome<SettingId> { Ok(SettingId::find(unsafe { text(name, "name")? })?) };
    if session.is_null() {
        return with_engine(engine, |owner| {
            let id = find()?;
            give(owner.engine()?.settings().get_text(id))
        });
    }
    with_session(session, |inner| {
        let id = find()?;
        let engine = inner.session()?.engine().clone();
        give(inner.session()?.settings().get_text(id, engine.settings()))
    })
}

/// # Safety
/// engine.h: `name` and `value` are strings.
pub(super) unsafe extern "C" fn set(
    engine: *mut c::xt_engine,
    session: *mut c::xt_session,
    name: *const c_char,
    value: *const c_char,
) -> c::xt_status {
    let arguments = || -> Outcome<(SettingId, &str)> {
        // SAFETY: the caller's promises.
        let (name, value) = unsafe { (text(name, "name")?, text(value, "value")?) };
        Ok((SettingId::find(name)?, value))
    };
    if session.is_null() {
        return with_engine(engine, |owner| {
            let (id, value) = arguments()?;
            Ok(owner.engine()?.set_global(id, value)?)
        });
    }
    with_session(session, |inner| {
        let (id, value) = arguments()?;
        if !id.definition().has(flags::SESSION) {
            let name = id.definition().name;
            let why = format!("{name} is global: a session has no value of its own");
            return Err(Fault::new(c::XT_SETTING_READ_ONLY, why));
        }
        Ok(inner.session()?.set(id, value)?)
    })
}

/// # Safety
/// engine.h: `name` and `value` are strings, `buffer` has `size` bytes.
pub(super) unsafe extern "C" fn check(
    name: *const c_char,
    value: *const c_char,
    buffer: *mut c_char,
    size: u32,
) -> c::xt_status {
    edge(|| {
        let checked = guarded(|| {
            // SAFETY: the caller's promises.
            let (name, value) = unsafe { (text(name, "name")?, text(value, "value")?) };
            SettingId::find(name)?.definition().parse(value)?;
            Ok(())
        });
        let why = checked.as_ref().err().map(Fault::text).unwrap_or_default();
        // SAFETY: the caller's promise.
        unsafe { copy_text(&why, buffer, size) };
        checked
    })
}
