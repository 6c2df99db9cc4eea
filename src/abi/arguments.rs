//! Checks of what comes in: NULL, struct sizes, strings, arrays.

use std::ffi::{CStr, c_char};

use super::c;
use super::edge::{Fault, Outcome};

/// A struct of the headers that begins with `struct_size`.
///
/// # Safety
/// The type is `repr(C)`, its first member is `struct_size: u32`, and every bit pattern of its other
/// members is valid.
pub(super) unsafe trait SizedStruct: Copy {
    /// Bytes in version 1.0.
    const BYTES_1_0: usize;
    /// For messages.
    const NAME: &'static str;
}

macro_rules! sized {
    ($($name:ident = $bytes:literal),* $(,)?) => {
        $(
            // SAFETY: bindgen made the type from the header: repr(C), integers, floats and pointers
            // only, `struct_size` first (the offset is asserted).
            unsafe impl SizedStruct for c::$name {
                const BYTES_1_0: usize = $bytes;
                const NAME: &'static str = stringify!($name);
            }
            const _: () = assert!(std::mem::offset_of!(c::$name, struct_size) == 0);
            const _: () = assert!(size_of::<c::$name>() >= $bytes);
        )*
    };
}

sized! {
    xt_host = 88,
    xt_collation = 64,
    xt_engine_config = 32,
    xt_limits = 32,
    xt_session_config = 24,
    xt_session_info = 16,
    xt_table_def = 40,
    xt_table_info = 40,
    xt_table_use = 24,
    xt_batch = 40,
    xt_table_stats = 72,
    xt_create_options = 64,
}

#[cold]
fn null(what: &str) -> Fault {
    Fault::new(c::XT_NULL_ARGUMENT, format!("{what} is NULL"))
}

fn check_size<T: SizedStruct>(given: u32) -> Outcome {
    if (given as usize) < T::BYTES_1_0 {
        return Err(Fault::new(
            c::XT_SHORT_STRUCT,
            format!(
                "{}.struct_size is {given}, version 1.0 has {}",
                T::NAME,
                T::BYTES_1_0
            ),
        ));
    }
    Ok(())
}

/// A copy of a struct of the host; members that its version lacks are zero.
///
/// # Safety
/// `pointer` is NULL or points to at least `struct_size` readable bytes, and to at least 4.
pub(super) unsafe fn read_struct<T: SizedStruct>(pointer: *const T) -> Outcome<T> {
    if pointer.is_null() {
        return Err(null(T::NAME));
    }
    // SAFETY: the caller promises 4 readable bytes; `struct_size` is the first member.
    let given = unsafe { pointer.cast::<u32>().read() };
    check_size::<T>(given)?;
    let bytes = (given as usize).min(size_of::<T>());
    // SAFETY: zeros are a valid value of T (see `SizedStruct`), and so is whatever the host wrote
    // over its first `bytes` bytes, which the caller promises to be readable.
    unsafe {
        let mut copy: T = std::mem::zeroed();
        std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut copy).cast(), bytes);
        Ok(copy)
    }
}

/// Writes a struct back to the host, as much of it as the host's version has; `struct_size` stays.
///
/// # Safety
/// As for `read_struct`, and writable.
pub(super) unsafe fn write_struct<T: SizedStruct>(pointer: *mut T, value: &T) -> Outcome {
    if pointer.is_null() {
        return Err(null(T::NAME));
    }
    // SAFETY: as in `read_struct`.
    let given = unsafe { pointer.cast::<u32>().read() };
    check_size::<T>(given)?;
    let bytes = (given as usize).min(size_of::<T>());
    // SAFETY: `bytes` is at most what the caller promises and at most the size of T; the first four
    // bytes are left as the host set them.
    unsafe {
        let from = (&raw const *value).cast::<u8>();
        std::ptr::copy_nonoverlapping(from.add(4), pointer.cast::<u8>().add(4), bytes - 4);
    }
    Ok(())
}

/// An out-parameter.
///
/// # Safety
/// `pointer` is NULL or valid for a write of T.
pub(super) unsafe fn out<'a, T>(pointer: *mut T, what: &str) -> Outcome<&'a mut T> {
    // SAFETY: the caller promises a non-null pointer to be valid for writes, and T is a plain C type.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// A string that must be given.
///
/// # Safety
/// `pointer` is NULL or a NUL-terminated string that lives as long as the call.
pub(super) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Outcome<&'a str> {
    // SAFETY: the same promise.
    unsafe { optional_text(pointer, what) }?.ok_or_else(|| null(what))
}

/// A string that may be NULL.
///
/// # Safety
/// As for `text`.
pub(super) unsafe fn optional_text<'a>(
    pointer: *const c_char,
    what: &str,
) -> Outcome<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller promises a NUL-terminated string that lives as long as the call.
    let text = unsafe { CStr::from_ptr(pointer) };
    match text.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(Fault::invalid(format!("{what} is not UTF-8"))),
    }
}

/// An array; NULL is allowed if it has no elements.
///
/// # Safety
/// `pointer` is NULL or points to `count` valid elements that live as long as the call.
pub(super) unsafe fn array<'a, T>(pointer: *const T, count: usize, what: &str) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(what));
    }
    if count
        .checked_mul(size_of::<T>())
        .is_none_or(|bytes| bytes > isize::MAX as usize)
    {
        return Err(Fault::invalid(format!("{what} has {count} elements")));
    }
    // SAFETY: not NULL, the size does not overflow, and the caller promises the elements.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// An array to be written; NULL is allowed if it has no elements.
///
/// # Safety
/// As for `array`, writable, and nobody else uses it during the call.
pub(super) unsafe fn array_mut<'a, T>(
    pointer: *mut T,
    count: usize,
    what: &str,
) -> Outcome<&'a mut [T]> {
    // SAFETY: the same promises; the checks are `array`'s.
    let checked = unsafe { array(pointer, count, what) }?;
    if checked.is_empty() {
        return Ok(&mut []);
    }
    // SAFETY: `array` accepted pointer and count, and the caller promises exclusive use.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

/// Copies text to a buffer of the host, NUL-terminated, cut to its size at a character.
///
/// # Safety
/// `buffer` is NULL or valid for `size` bytes of writing.
pub(super) unsafe fn copy_text(text: &str, buffer: *mut c_char, size: u32) -> u32 {
    if !buffer.is_null() && size > 0 {
        let mut cut = (size as usize - 1).min(text.len());
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        // SAFETY: `cut` + 1 is at most `size`, which the caller promises to be writable.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), cut);
            buffer.add(cut).write(0);
        }
    }
    text.len() as u32
}

/// The dictionary's name of a table: the last two components of what the host gave.
pub(super) fn table_name(given: &str) -> Outcome<&str> {
    let bad = || {
        Fault::invalid(format!(
            "'{given}' is not a table name of the form database/table"
        ))
    };
    let (rest, table) = given.rsplit_once('/').ok_or_else(bad)?;
    let database = rest.rsplit('/').next().unwrap_or(rest);
    if database.is_empty() || database == "." || database == ".." || table.is_empty() {
        return Err(bad());
    }
    Ok(&given[given.len() - table.len() - 1 - database.len()..])
}
