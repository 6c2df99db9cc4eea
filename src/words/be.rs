//! Big-endian integers in byte slices.
//!
//! `get`-style functions panic on a short slice and are for offsets that are known to lie inside
//! (fixed fields of a whole page); `try_`-style ones are for offsets that came from disk.

// Arrays of constant size, not `copy_from_slice`: each is a load or a store, and not a call.
macro_rules! int {
    ($read:ident, $write:ident, $try_read:ident, $ty:ty, $n:expr, $from:expr, $to:expr) => {
        /// Reads the integer at `at`; panics if it does not lie inside.
        #[inline(always)]
        pub fn $read(bytes: &[u8], at: usize) -> $ty {
            let from: fn([u8; $n]) -> $ty = $from;
            match bytes[at..at + $n].first_chunk::<$n>() {
                Some(raw) => from(*raw),
                None => unreachable!("so many bytes were taken"),
            }
        }

        /// Writes the integer at `at`; panics if it does not lie inside.
        #[inline(always)]
        pub fn $write(bytes: &mut [u8], at: usize, value: $ty) {
            let to: fn($ty) -> [u8; $n] = $to;
            if let Some(raw) = bytes[at..at + $n].first_chunk_mut::<$n>() {
                *raw = to(value);
            }
        }

        /// Reads the integer at `at`, or `None` if it does not lie inside.
        #[inline]
        pub fn $try_read(bytes: &[u8], at: usize) -> Option<$ty> {
            let end = at.checked_add($n)?;
            (end <= bytes.len()).then(|| $read(bytes, at))
        }
    };
    ($read:ident, $write:ident, $try_read:ident, $ty:ident, $n:expr) => {
        int!(
            $read,
            $write,
            $try_read,
            $ty,
            $n,
            $ty::from_be_bytes,
            $ty::to_be_bytes
        );
    };
}

int!(u16_at, put_u16, try_u16_at, u16, 2);
int!(
    u24_at,
    put_u24,
    try_u24_at,
    u32,
    3,
    |[a, b, c]| u32::from_be_bytes([0, a, b, c]),
    |value| {
        let [_, a, b, c] = value.to_be_bytes();
        [a, b, c]
    }
);
int!(u32_at, put_u32, try_u32_at, u32, 4);
int!(
    u48_at,
    put_u48,
    try_u48_at,
    u64,
    6,
    |[a, b, c, d, e, f]| u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
    |value| {
        let [_, _, a, b, c, d, e, f] = value.to_be_bytes();
        [a, b, c, d, e, f]
    }
);
int!(
    u56_at,
    put_u56,
    try_u56_at,
    u64,
    7,
    |[a, b, c, d, e, f, g]| u64::from_be_bytes([0, a, b, c, d, e, f, g]),
    |value| {
        let [_, a, b, c, d, e, f, g] = value.to_be_bytes();
        [a, b, c, d, e, f, g]
    }
);
int!(u64_at, put_u64, try_u64_at, u64, 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width_come_back() {
        let mut b = [0xEEu8; 12];
        put_u24(&mut b, 1, 0x010203);
        assert_eq!(b[..5], [0xEE, 1, 2, 3, 0xEE]);
        assert_eq!(u24_at(&b, 1), 0x010203);
        put_u48(&mut b, 2, 0x0102_0304_0506);
        assert_eq!(u48_at(&b, 2), 0x0102_0304_0506);
        put_u56(&mut b, 2, 0x80_0000_0000_0001);
        assert_eq!(u56_at(&b, 2), 0x80_0000_0000_0001);
        assert_eq!(try_u64_at(&b, 5), None);
        assert_eq!(try_u64_at(&b, usize::MAX), None);
    }
}
