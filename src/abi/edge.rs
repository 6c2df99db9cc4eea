//! The boundary of every call: errors to codes, panics to XT_INTERNAL.

use std::any::Any;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::c;
use super::status;
use crate::words::Error;

/// Why a call failed.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// The engine said so.
    Engine(Error),
    /// The boundary said so.
    Boundary(c::xt_status, Cow<'static, str>),
    /// A bug: the call panicked. What it worked on is not to be trusted any more.
    Panic(Box<str>),
}

/// What a call ends with.
pub(super) type Outcome<T = ()> = Result<T, Fault>;

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Engine(error)
    }
}

impl Fault {
    /// A fault of the boundary itself.
    #[cold]
    pub(super) fn new(code: u32, text: impl Into<Cow<'static, str>>) -> Fault {
        Fault::Boundary(code as c::xt_status, text.into())
    }

    /// A call at the wrong time.
    #[cold]
    pub(super) fn wrong_order(text: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(c::XT_WRONG_ORDER, text)
    }

    /// An unacceptable argument.
    #[cold]
    pub(super) fn invalid(text: impl Into<Cow<'static, str>>) -> Fault {
        Fault::new(c::XT_INVALID, text)
    }

    /// Its code.
    pub(super) fn code(&self) -> c::xt_status {
        match self {
            Fault::Engine(error) => status::code_of(error),
            Fault::Boundary(code, _) => *code,
            Fault::Panic(_) => c::XT_INTERNAL as c::xt_status,
        }
    }

    /// Its text.
    pub(super) fn text(&self) -> String {
        match self {
            Fault::Engine(error) => error.to_string(),
            Fault::Boundary(_, text) => text.to_string(),
            Fault::Panic(text) => format!("internal error (a bug, please report): {text}"),
        }
    }
}

/// Runs a body; a panic becomes a fault with the code XT_INTERNAL.
pub(super) fn guarded<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(outcome) => outcome,
        Err(payload) => Err(Fault::Panic(panic_text(&*payload).into())),
    }
}

/// Runs the body of a function that has no session to keep its error text.
pub(super) fn edge(body: impl FnOnce() -> Outcome) -> c::xt_status {
    match guarded(body) {
        Ok(()) => c::XT_OK as c::xt_status,
        Err(fault) => fault.code(),
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "a panic without text"
    }
}
