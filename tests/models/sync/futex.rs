//! A futex for the scheduler: sleepers by address, no spurious wakes, so that a wake that nobody sends is a
//! deadlock which the scheduler reports.

use super::raw::atomic::{AtomicU32, Ordering};
use super::raw::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Default)]
struct Sleeper {
    woken: Mutex<bool>,
    changed: Condvar,
}

type Sleepers = BTreeMap<usize, Vec<Arc<Sleeper>>>;

shuttle::lazy_static! {
    /// New for each run of a model.
    static ref SLEEPERS: Mutex<Sleepers> = Mutex::new(BTreeMap::new());
}

/// Sleeps while `*word == expected`, until it is woken.
pub fn wait(word: &AtomicU32, expected: u32, _timeout: Option<Duration>) -> bool {
    let sleeper = Arc::new(Sleeper::default());
    let mut sleepers = SLEEPERS.lock().expect("no panic");
    // Looking and going to sleep are one step, as in the kernel.
    if word.load(Ordering::SeqCst) != expected {
        return true;
    }
    let address = std::ptr::from_ref(word) as usize;
    sleepers.entry(address).or_default().push(sleeper.clone());
    drop(sleepers);
    let mut woken = sleeper.woken.lock().expect("no panic");
    while !*woken {
        woken = sleeper.changed.wait(woken).expect("no panic");
    }
    true
}

/// Wakes at most `count` sleepers of the word at `word`.
pub fn wake_at(word: *const AtomicU32, count: u32) {
    let mut sleepers = SLEEPERS.lock().expect("no panic");
    let Some(here) = sleepers.get_mut(&(word as usize)) else {
        return;
    };
    let n = here.len().min(count as usize);
    for sleeper in here.drain(..n) {
        *sleeper.woken.lock().expect("no panic") = true;
        sleeper.changed.notify_one();
    }
}

/// Wakes one sleeper.
pub fn wake_one(word: &AtomicU32) {
    wake_at(word, 1);
}

/// Wakes all sleepers.
pub fn wake_all(word: &AtomicU32) {
    wake_at(word, u32::MAX);
}
