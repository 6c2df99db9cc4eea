//! A gate that many pass at once and one may close: shared entry costs one atomic on a striped
//! word, exclusive entry waits until all stripes are empty.
//!
//! Shared holders must not wait for anything but memory: an exclusive caller waits for them.

use std::cell::Cell;

use super::Padded;
use super::futex;
use super::order::{self, Rank};
use super::raw::atomic::{AtomicU32, Ordering};
use super::raw::{Mutex, MutexGuard, spin_loop, thread_local};

/// Number of stripes over which threads are spread.
pub const STRIPES: usize = 16;
const SPINS: u32 = 200;

/// The gate.
#[derive(Debug)]
pub struct Gate {
    rank: Rank,
    stripes: [Padded<AtomicU32>; STRIPES],
    /// 1 while an exclusive caller wants or has the gate; shared callers sleep on it.
    closed: AtomicU32,
    /// Bumped when a shared holder leaves a closed gate.
    drained: AtomicU32,
    /// Exclusive callers queue here.
    exclusive: Mutex<()>,
}

/// Passage through a `Gate`, shared or exclusive.
#[derive(Debug)]
pub struct GateGuard<'a> {
    gate: &'a Gate,
    held: Held<'a>,
}

#[derive(Debug)]
enum Held<'a> {
    Shared(usize),
    Exclusive(#[expect(dead_code, reason = "held for its drop")] MutexGuard<'a, ()>),
}

thread_local! {
    /// This thread's stripe plus one; 0 = not chosen. Const-initialised, no destructor.
    static STRIPE: Cell<u32> = const { Cell::new(0) };
}

/// This thread's stripe, below `STRIPES`: for counters that threads should not share.
#[inline]
pub fn own_stripe() -> usize {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    STRIPE.with(|stripe| {
        if stripe.get() == 0 {
            // Relaxed: any spread of threads over stripes is right, an even one is faster.
            stripe.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES as u32 + 1);
        }
        stripe.get() as usize - 1
    })
}

impl Gate {
    /// An open gate.
    pub const fn new(rank: Rank) -> Gate {
        Gate {
            rank,
            stripes: [const { Padded(AtomicU32::new(0)) }; STRIPES],
            closed: AtomicU32::new(0),
            drained: AtomicU32::new(0),
            exclusive: Mutex::new(()),
        }
    }

    /// Enters together with other shared callers; waits while the gate is closed.
    #[track_caller]
    pub fn enter(&self) -> GateGuard<'_> {
        order::about_to_wait(self.rank);
        let stripe = own_stripe();
        loop {
            // SeqCst on both sides: either this caller sees the gate closed, or the closer sees
            // this caller in its stripe.
            self.stripes[stripe].fetch_add(1, Ordering::SeqCst);
            if self.closed.load(Ordering::SeqCst) == 0 {
                break;
            }
            self.leave_stripe(stripe);
            while self.closed.load(Ordering::SeqCst) != 0 {
                futex::wait(&self.closed, 1, None);
            }
        }
        order::acquired(self.rank);
        GateGuard {
            gate: self,
            held: Held::Shared(stripe),
        }
    }

    /// Enters alone: waits until every shared holder has left, keeps new ones out.
    #[track_caller]
    pub fn enter_exclusive(&self) -> GateGuard<'_> {
        order::about_to_wait(self.rank);
        let alone = self
            .exclusive
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        self.closed.store(1, Ordering::SeqCst);
        for stripe in &self.stripes {
            self.wait_until_empty(stripe);
        }
        order::acquired(self.rank);
        GateGuard {
            gate: self,
            held: Held::Exclusive(alone),
        }
    }

    fn wait_until_empty(&self, stripe: &AtomicU32) {
        for _ in 0..SPINS {
            if stripe.load(Ordering::SeqCst) == 0 {
                return;
            }
            spin_loop();
        }
        loop {
            let seen = self.drained.load(Ordering::SeqCst);
            if stripe.load(Ordering::SeqCst) == 0 {
                return;
            }
            futex::wait(&self.drained, seen, None);
        }
    }

    fn leave_stripe(&self, stripe: usize) {
        self.stripes[stripe].fetch_sub(1, Ordering::SeqCst);
        if self.closed.load(Ordering::SeqCst) != 0 {
            self.drained.fetch_add(1, Ordering::SeqCst);
            futex::wake_all(&self.drained);
        }
    }
}

impl GateGuard<'_> {
    /// True if nobody else is inside.
    pub fn is_exclusive(&self) -> bool {
        matches!(self.held, Held::Exclusive(_))
    }
}

impl Drop for GateGuard<'_> {
    fn drop(&mut self) {
        match self.held {
            Held::Shared(stripe) => self.gate.leave_stripe(stripe),
            Held::Exclusive(_) => {
                // The queue's mutex falls after this, with the field: the next exclusive caller
                // closes the gate again.
                self.gate.closed.store(0, Ordering::SeqCst);
                futex::wake_all(&self.gate.closed);
            }
        }
        order::released(self.gate.rank);
    }
}
