//! The host's callbacks as the engine's traits.

use std::cmp::Ordering as Order;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use super::arguments::read_struct;
use super::c;
use super::edge::{Fault, Outcome};
use crate::host::callbacks::{Callbacks, Level, SessionCtx};
use crate::host::collation::{
    self, CharWidth, CollationSource, char_width, compare_padded, is_pad_space, prefix_len,
};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{Arc, Rank, RwLock};

/// Collation numbers are below this one.
const COLLATIONS_MAX: usize = 4096;

/// Stands for "the host does not know it" in the table of collations; never followed.
const UNKNOWN: *mut c::xt_collation = ptr::without_provenance_mut(1);

/// The callbacks of one host.
pub(super) struct HostShim {
    calls: c::xt_host,
    /// NULL: not asked yet; `UNKNOWN`; else the host's struct.
    collations: Box<[AtomicPtr<c::xt_collation>]>,
    /// Contexts of open sessions, with the number of sessions that have it.
    contexts: RwLock<HashMap<usize, u32>>,
    started: Instant,
}

// SAFETY: the pointers in `calls` are passed back to the host, whose header promises that callbacks
// may come from any thread; the collation structs are const for the host and for us.
unsafe impl Send for HostShim {}
// SAFETY: as above; what changes is atomic or behind a lock.
unsafe impl Sync for HostShim {}

impl HostShim {
    /// Copies the table of callbacks.
    ///
    /// # Safety
    /// `host` is NULL or a valid `xt_host`; its functions keep the promises of host.h until the shim
    /// is dropped.
    pub(super) unsafe fn new(host: *const c::xt_host) -> Outcome<Arc<HostShim>> {
        // SAFETY: the caller promises a valid struct.
        let calls = unsafe { read_struct(host) }?;
        if calls.abi_version >> 16 != c::XT_ABI_MAJOR {
            return Err(Fault::invalid(format!(
                "xt_host.abi_version says major {}, this library speaks {}",
                calls.abi_version >> 16,
                c::XT_ABI_MAJOR
            )));
        }
        if calls.collation.is_none() {
            return Err(Fault::new(c::XT_NULL_ARGUMENT, "xt_host.collation is NULL"));
        }
        let empty = || AtomicPtr::new(ptr::null_mut());
        Ok(Arc::new(HostShim {
            calls,
            collations: (0..COLLATIONS_MAX).map(|_| empty()).collect(),
            contexts: RwLock::new(Rank::None, HashMap::new()),
            started: Instant::now(),
        }))
    }

    /// A session with this context is open from now on.
    pub(super) fn context_opened(&self, ctx: SessionCtx) {
        *self.contexts.write().entry(ctx.0).or_default() += 1;
    }

    /// It is not any more; waits for a `query_text` under way.
    pub(super) fn context_closed(&self, ctx: SessionCtx) {
        let mut contexts = self.contexts.write();
        if let Some(count) = contexts.get_mut(&ctx.0) {
            *count -= 1;
            if *count == 0 {
                contexts.remove(&ctx.0);
            }
        }
    }

    /// The host's collation, asked for once.
    fn collation(&self, id: u16) -> Option<&c::xt_collation> {
        let slot = self.collations.get(id as usize)?;
        let mut found = slot.load(Ordering::Acquire);
        if found.is_null() {
            found = self.ask_collation(id);
            // Two threads may ask at once; the host gives both the same answer.
            slot.store(found, Ordering::Release);
        }
        if found == UNKNOWN {
            return None;
        }
        // SAFETY: host.h: the struct lives until engine_destroy, which outlives this shim's use, and
        // `ask_collation` checked its size.
        Some(unsafe { &*found })
    }

    fn ask_collation(&self, id: u16) -> *mut c::xt_collation {
        let Some(ask) = self.calls.collation else {
            return UNKNOWN;
        };
        // SAFETY: a callback of the host with the host's ctx, as host.h describes it.
        let given = unsafe { ask(self.calls.ctx, id as u32) };
        if given.is_null() {
            return UNKNOWN;
        }
        // SAFETY: host.h: a non-NULL answer is a valid xt_collation.
        let Ok(copy) = (unsafe { read_struct(given) }) else {
            return UNKNOWN;
        };
        let usable = copy.id == id as u32
            && copy.compare.is_some()
            && copy.sort_key.is_some()
            && (copy.prefix.is_some() || copy.mbmaxlen <= 1)
            && (1..=4).contains(&copy.mbminlen)
            && (copy.mbminlen..=8).contains(&copy.mbmaxlen);
        if !usable {
            self.log(
                Level::Warning,
                &format!("the host's collation {id} is unusable: ignored"),
            );
            return UNKNOWN;
        }
        given.cast_mut()
    }

    fn ctx_pointer(ctx: SessionCtx) -> *mut c_void {
        ptr::with_exposed_provenance_mut(ctx.0)
    }
}

impl CollationSource for HostShim {
    fn knows(&self, id: u16) -> bool {
        id == collation::BINARY || self.collation(id).is_some()
    }

    fn compare(&self, id: u16, a: &[u8], b: &[u8]) -> Order {
        match self.collation(id) {
            Some(c::xt_collation {
                compare: Some(compare),
                ..
            }) if id != collation::BINARY => {
                let own = self.collations[id as usize].load(Ordering::Acquire);
                // SAFETY: a leaf callback of the host with its own struct and two readable ranges.
                let order =
                    unsafe { compare(own, a.as_ptr(), a.len() as u32, b.as_ptr(), b.len() as u32) };
                order.cmp(&0)
            }
            // Binary; or a dictionary table before the host was asked.
            _ => compare_padded(
                a,
                b,
                |byte| byte,
                is_pad_space(id) && id != collation::BINARY,
            ),
        }
    }

    fn char_width(&self, id: u16) -> CharWidth {
        // Known widths win: the files were made with them.
        char_width(id)
    }

    fn prefix_len(&self, id: u16, text: &[u8], chars: usize) -> usize {
        match self.collation(id) {
            Some(c::xt_collation {
                prefix: Some(prefix),
                mbmaxlen: 2..,
                ..
            }) => {
                let own = self.collations[id as usize].load(Ordering::Acquire);
                let chars = chars.min(u32::MAX as usize) as u32;
                // SAFETY: as in `compare`.
                let bytes = unsafe { prefix(own, text.as_ptr(), text.len() as u32, chars) };
                (bytes as usize).min(text.len())
            }
            _ => prefix_len(id, text, chars),
        }
    }
}

/// Text for a callback; a NUL inside ends it early.
fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

impl Callbacks for HostShim {
    fn log(&self, level: Level, text: &str) {
        let Some(log) = self.calls.log else { return };
        let text = c_text(text);
        let length = text.as_bytes().len() as u32;
        // SAFETY: a leaf callback with the host's ctx and a NUL-terminated text.
        unsafe { log(self.calls.ctx, level as u32, text.as_ptr(), length) }
    }

    fn wall_clock(&self) -> Duration {
        match self.calls.clock {
            // SAFETY: a leaf callback with the host's ctx.
            Some(clock) => Duration::from_micros(unsafe { clock(self.calls.ctx, 1) }),
            None => crate::host::callbacks::NoCallbacks.wall_clock(),
        }
    }

    fn monotonic(&self) -> Instant {
        match self.calls.clock {
            Some(clock) => {
                // SAFETY: a leaf callback with the host's ctx.
                let micros = unsafe { clock(self.calls.ctx, 0) };
                self.started
                    .checked_add(Duration::from_micros(micros))
                    .unwrap_or(self.started)
            }
            None => Instant::now(),
        }
    }

    fn kill_check(&self, session: SessionCtx) -> bool {
        match self.calls.kill_check {
            // SAFETY: a free callback; `session` is the context of the session that is being driven.
            Some(check) => unsafe { check(self.calls.ctx, HostShim::ctx_pointer(session)) != 0 },
            None => false,
        }
    }

    fn warning(&self, session: SessionCtx, level: Level, code: u32, text: &str) {
        let Some(warning) = self.calls.warning else {
            return;
        };
        let text = c_text(text);
        let ctx = HostShim::ctx_pointer(session);
        // SAFETY: a free callback; `session` is the context of the session that is being driven.
        unsafe { warning(self.calls.ctx, ctx, level as u32, code, text.as_ptr()) }
    }

    fn query_text(&self, session: SessionCtx, bytes_max: usize, text: &mut String) {
        let Some(query_text) = self.calls.query_text else {
            return;
        };
        let contexts = self.contexts.read();
        if !contexts.contains_key(&session.0) {
            return;
        }
        let mut buffer = vec![0u8; bytes_max.clamp(1, 64 << 10)];
        let size = buffer.len() as u32;
        let ctx = HostShim::ctx_pointer(session);
        // SAFETY: a free callback; the session cannot be closed while `contexts` is held, and the
        // buffer has `size` bytes.
        let length = unsafe { query_text(self.calls.ctx, ctx, buffer.as_mut_ptr().cast(), size) };
        drop(contexts);
        text.push_str(&String::from_utf8_lossy(
            &buffer[..(length.min(size)) as usize],
        ));
    }

    fn wait_report(&self, waiter: SessionCtx, blocker: Option<SessionCtx>) {
        let Some(report) = self.calls.wait_report else {
            return;
        };
        let blocker = blocker.map_or(ptr::null_mut(), HostShim::ctx_pointer);
        // SAFETY: a free callback with contexts that the host gave.
        unsafe { report(self.calls.ctx, HostShim::ctx_pointer(waiter), blocker) }
    }

    fn thread_attach(&self, name: &str) -> usize {
        let Some(attach) = self.calls.thread_attach else {
            return 0;
        };
        let name = c_text(name);
        // SAFETY: a free callback with the host's ctx and a NUL-terminated name.
        unsafe { attach(self.calls.ctx, name.as_ptr()) }.expose_provenance()
    }

    fn thread_detach(&self, token: usize) {
        let Some(detach) = self.calls.thread_detach else {
            return;
        };
        // SAFETY: a free callback; `token` came from this host's thread_attach.
        unsafe { detach(self.calls.ctx, ptr::with_exposed_provenance_mut(token)) }
    }
}

/// Hosts that get lines of the `log` macros.
static SINKS: RwLock<Vec<Arc<HostShim>>> = RwLock::new(Rank::None, Vec::new());

struct Sinks;

impl log::Log for Sinks {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Debug
    }

    fn log(&self, record: &log::Record<'_>) {
        let level = match record.level() {
            log::Level::Error => Level::Error,
            log::Level::Warn => Level::Warning,
            log::Level::Info => Level::Note,
            _ => Level::Debug,
        };
        let text = record.args().to_string();
        for sink in SINKS.read().iter() {
            sink.log(level, &text);
        }
    }

    fn flush(&self) {}
}

/// Lines of the `log` macros go to this host too. Hosts of several engines all get them.
pub(super) fn add_sink(host: &Arc<HostShim>) {
    SINKS.write().push(host.clone());
    if log::set_logger(&Sinks).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
}

/// No more.
pub(super) fn remove_sink(host: &Arc<HostShim>) {
    SINKS.write().retain(|sink| !Arc::ptr_eq(sink, host));
}

/// At unload.
pub(super) fn free_memory() {
    *SINKS.write() = Vec::new();
}
