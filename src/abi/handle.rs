//! Handles: numbers that look like pointers to the host.
//!
//! A handle names a cell of one static table and repeats the serial number that the cell got when it
//! was filled. Looking one up compares the whole number with the cell's, so that a handle that was
//! closed, belongs to another kind, or was never ours is found out without following it.
//!
//! ```text
//! bit 63..60  kind (1 engine, 2 session, 3 table, 4 description)
//! bit 59..20  serial number, never used twice
//! bit 19..0   cell
//! ```

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use super::c;
use super::edge::{Fault, Outcome};
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, Rank};

const CELL_BITS: u32 = 20;
const CELLS_MAX: usize = 1 << CELL_BITS;
const KIND_SHIFT: u32 = 60;

const _: () = assert!(size_of::<usize>() == 8, "a handle needs 64 bits");

struct Cell {
    /// The handle that names this cell now, or 0.
    handle: AtomicU64,
    /// `Arc::into_raw` of the object.
    object: AtomicPtr<()>,
}

/// Zero pages until used.
// SAFETY: a cell of zero bytes is a valid one: handle 0, object NULL. (Writing the array out as constants
// would make the compiler evaluate a million of them.)
static CELLS: [Cell; CELLS_MAX] = unsafe { MaybeUninit::zeroed().assume_init() };

struct Free {
    /// Cells below this one have been used.
    fresh: usize,
    /// Cells that were given back.
    returned: Vec<u32>,
    serial: u64,
}

static FREE: Mutex<Free> = Mutex::new(
    Rank::None,
    Free {
        fresh: 0,
        returned: Vec::new(),
        serial: 0,
    },
);

/// At unload: no handle is open any more.
pub(super) fn free_memory() {
    FREE.lock().returned = Vec::new();
}

/// An object that the host knows by handle.
pub(super) trait Handled: Sized {
    /// What the header calls it.
    type Opaque;
    /// Its kind, 1..=15.
    const KIND: u64;
    /// For messages.
    const NAME: &'static str;
}

/// A handle that was looked up; borrows the object, which only `close` gives back.
pub(super) struct Open<'h, T> {
    object: *const T,
    lifetime: PhantomData<&'h T>,
}

impl<T> std::ops::Deref for Open<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the pointer came out of a cell that held the handle, so `Arc::into_raw` made it and
        // the Arc has not been given back. Closing a handle while another call uses it breaks
        // the thread rule of the headers ("owner": the host orders the calls).
        unsafe { &*self.object }
    }
}

impl<T> Open<'_, T> {
    /// A share of the object.
    pub(super) fn share(&self) -> Arc<T> {
        // SAFETY: the pointer is one of `Arc::into_raw` whose count is at least one (see `deref`);
        // the count is raised before a second Arc is made from it.
        unsafe {
            Arc::increment_strong_count(self.object);
            Arc::from_raw(self.object)
        }
    }
}

/// Makes a handle for an object.
pub(super) fn publish<T: Handled>(object: Arc<T>) -> Outcome<*mut T::Opaque> {
    let mut free = FREE.lock();
    let cell = match free.returned.pop() {
        Some(cell) => cell as usize,
        None if free.fresh < CELLS_MAX => {
            free.fresh += 1;
            free.fresh - 1
        }
        None => return Err(Fault::new(c::XT_OUT_OF_MEMORY, "too many open handles")),
    };
    free.serial += 1;
    let serial = free.serial & ((1 << (KIND_SHIFT - CELL_BITS)) - 1);
    let handle = T::KIND << KIND_SHIFT | serial << CELL_BITS | cell as u64;
    CELLS[cell]
        .object
        .store(Arc::into_raw(object).cast_mut().cast(), Ordering::Relaxed);
    // Release: whoever sees the handle in the cell sees the object too.
    CELLS[cell].handle.store(handle, Ordering::Release);
    Ok(ptr::without_provenance_mut(handle as usize))
}

/// The object of a handle.
pub(super) fn look_up<'h, T: Handled>(handle: *const T::Opaque) -> Outcome<Open<'h, T>> {
    let number = handle.addr() as u64;
    let cell = &CELLS[number as usize % CELLS_MAX];
    if number == 0 {
        return Err(Fault::new(
            c::XT_NULL_ARGUMENT,
            format!("{} is NULL", T::NAME),
        ));
    }
    if number >> KIND_SHIFT != T::KIND || cell.handle.load(Ordering::Acquire) != number {
        return Err(Fault::new(
            c::XT_BAD_HANDLE,
            format!("not an open {}: closed already, or never opened", T::NAME),
        ));
    }
    let object = cell.object.load(Ordering::Relaxed).cast_const().cast();
    Ok(Open {
        object,
        lifetime: PhantomData,
    })
}

/// Takes the handle away from the host; the object goes with its last share.
pub(super) fn close<T: Handled>(handle: *const T::Opaque) -> Outcome<Arc<T>> {
    let object = look_up::<T>(handle)?.object;
    let number = handle.addr() as u64;
    let at = number as usize % CELLS_MAX;
    let cell = &CELLS[at];
    // Of two callers that close the same handle at once, one gets it.
    if cell
        .handle
        .compare_exchange(number, 0, Ordering::AcqRel, Ordering::Relaxed)
        .is_err()
    {
        return Err(Fault::new(
            c::XT_BAD_HANDLE,
            format!("the {} was closed twice", T::NAME),
        ));
    }
    cell.object.store(ptr::null_mut(), Ordering::Relaxed);
    FREE.lock().returned.push(at as u32);
    // SAFETY: `publish` made the pointer with `Arc::into_raw`, and the exchange above took the cell's
    // share: it is given back once.
    Ok(unsafe { Arc::from_raw(object) })
}
