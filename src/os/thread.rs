//! Engine threads: made by pthread_create, joined before the library may go.
//!
//! std's spawn, current and park register thread-local destructors in the *calling* thread, which
//! may be the host's, and so pin the library or crash the host after dlclose. A raw thread is free
//! of that; inside it std may do what it likes, since it ends before the library goes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sync::{Arc, Mutex, Rank};
use crate::words::{Error, Result};

type Body = Box<dyn FnOnce() + Send>;

/// Called with the thread's name and the panic's text when an engine thread panics.
pub type OnPanic = Arc<dyn Fn(&str, &str) + Send + Sync>;

const STACK_BYTES: usize = 2 << 20;

/// The threads of one engine.
pub struct Threads {
    running: Mutex<Vec<Running>>,
    on_panic: OnPanic,
}

struct Running {
    name: String,
    handle: libc::pthread_t,
}

struct Start {
    name: String,
    body: Body,
    on_panic: OnPanic,
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.running.lock().iter().map(|thread| &thread.name))
            .finish()
    }
}

impl Threads {
    /// None yet.
    pub fn new(on_panic: OnPanic) -> Threads {
        Threads {
            running: Mutex::new(Rank::Leaf, Vec::new()),
            on_panic,
        }
    }

    /// Starts a thread; `name` shows in the system's tools (15 bytes of it). Any thread may call
    /// this. Signals are blocked in the new thread: they are the host's business.
    pub fn start(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
        let start = Box::new(Start {
            name: name.to_string(),
            body: Box::new(body),
            on_panic: self.on_panic.clone(),
        });
        let handle = create(start)?;
        self.running.lock().push(Running {
            name: name.to_string(),
            handle,
        });
        Ok(())
    }

    /// Waits until all threads have ended, also those started meanwhile. Their bodies must have been
    /// told to end. Not to be called by one of them.
    pub fn join_all(&self) {
        loop {
            let Some(thread) = self.running.lock().pop() else {
                return;
            };
            // SAFETY: the handle came from `pthread_create`, was not detached, and is joined once:
            // it was taken off the list under the mutex.
            unsafe { libc::pthread_join(thread.handle, std::ptr::null_mut()) };
        }
    }

    /// Number of threads that were started and not joined.
    pub fn count(&self) -> usize {
        self.running.lock().len()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.join_all();
    }
}

/// Runs `body` on `count` threads, the calling one among them, and returns when all have ended. Fewer
/// run it if the system has no more threads to give.
///
/// Errors: `Internal` with the text of a panic in one of them.
pub fn in_parallel(name: &str, count: usize, body: &(dyn Fn() + Sync)) -> Result<()> {
    let panicked = Arc::new(Mutex::new(Rank::Leaf, None::<String>));
    let report = panicked.clone();
    let threads = Threads::new(Arc::new(move |name, text| {
        *report.lock() = Some(format!("thread {name} panicked: {text}"));
    }));
    // SAFETY: only the lifetime changes. No thread has the reference any more when this function
    // returns: `join_all` stands behind everything that may unwind, and waits for all of them.
    let lent =
        unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(body) };
    for _ in 1..count {
        if threads.start(name, lent).is_err() {
            break;
        }
    }
    let own = catch_unwind(AssertUnwindSafe(body));
    threads.join_all();
    if let Err(panic) = own {
        return Err(Error::internal(panic_text(&*panic)));
    }
    match panicked.lock().take() {
        Some(text) => Err(Error::internal(text)),
        None => Ok(()),
    }
}

fn create(start: Box<Start>) -> Result<libc::pthread_t> {
    let argument = Box::into_raw(start);
    let mut handle: libc::pthread_t = 0;
    // SAFETY: all out-parameters are locals that live for the calls; `attr` and the signal sets are
    // initialised by the init and fill functions before use; `run` takes over `argument`, which came
    // from `Box::into_raw`, exactly if the creation succeeded.
    let rc = unsafe {
        let mut attr: libc::pthread_attr_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attr);
        libc::pthread_attr_setstacksize(&mut attr, STACK_BYTES);
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let rc = libc::pthread_create(&mut handle, &attr, run, argument.cast());
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        libc::pthread_attr_destroy(&mut attr);
        rc
    };
    if rc != 0 {
        // SAFETY: the thread was not created, so nobody else has the pointer.
        drop(unsafe { Box::from_raw(argument) });
        return Err(Error::io("pthread_create", "an engine thread", rc));
    }
    Ok(handle)
}

extern "C" fn run(argument: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: `create` passed a pointer from `Box::into_raw` of this very type, once.
    let start = unsafe { Box::from_raw(argument.cast::<Start>()) };
    let Start {
        name,
        body,
        on_panic,
    } = *start;
    set_name(&name);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        let text = panic_text(&*panic);
        // A panic in the report has nobody left to tell; it must not cross the C frame below.
        let _ = catch_unwind(AssertUnwindSafe(|| on_panic(&name, &text)));
    }
    std::ptr::null_mut()
}

fn set_name(name: &str) {
    let mut short = [0u8; 16];
    let bytes = name.as_bytes();
    let len = bytes.len().min(15);
    short[..len].copy_from_slice(&bytes[..len]);
    // SAFETY: `short` is NUL-terminated and lives for the call; the thread names itself.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), short.as_ptr().cast()) };
}

/// What a panic's payload says.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text.to_string()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without text".to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn threads_run_report_their_panics_and_are_joined() {
        let (ran, panics) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = panics.clone();
        let threads = Threads::new(Arc::new(move |name, text| {
            assert_eq!((name, text), ("bad", "on purpose"));
            seen.fetch_add(1, Ordering::SeqCst);
        }));
        for _ in 0..5 {
            let ran = ran.clone();
            threads
                .start("good", move || {
                    ran.fetch_add(1, Ordering::SeqCst);
                })
                .expect("a thread");
        }
        threads
            .start("bad", || panic!("on purpose"))
            .expect("a thread");
        threads.join_all();
        assert_eq!(
            (ran.load(Ordering::SeqCst), panics.load(Ordering::SeqCst)),
            (5, 1)
        );
        assert_eq!(threads.count(), 0);
    }

    #[test]
    fn a_body_that_borrows_runs_on_several_threads_and_its_panic_is_an_error() {
        let ran = AtomicUsize::new(0);
        let body = || {
            ran.fetch_add(1, Ordering::SeqCst);
        };
        in_parallel("borrows", 4, &body).expect("no panic");
        assert_eq!(ran.load(Ordering::SeqCst), 4);
        let bad = || {
            if ran.fetch_add(1, Ordering::SeqCst) == 5 {
                panic!("on purpose");
            }
        };
        let error = in_parallel("bad", 3, &bad).expect_err("a panic");
        assert!(error.to_string().contains("on purpose"), "{error}");
        assert_eq!(ran.load(Ordering::SeqCst), 7);
    }
}
