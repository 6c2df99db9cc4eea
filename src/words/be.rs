//! Big-endian integers in byte slices.
//!
//! `get`-style functions panic on a short slice and are for offsets that are known to lie inside
//! (fixed fields of a whole page); `try_`-style ones are for offsets that came from disk.

macro_rules! int {
    ($read:ident, $write:ident, $try_read:ident, $ty:ty, $n:expr) => {
        /// Reads the integer at `at`; panics if it does not lie inside.
        #[inline]
        pub fn $read(bytes: &[u8], at: usize) -> $ty {
            let mut raw = [0u8; std::mem::size_of::<$ty>()];
            raw[std::mem::size_of::<$ty>() - $n..].copy_from_slice(&bytes[at..at + $n]);
            <$ty>::from_be_bytes(raw)
        }

        /// Writes the integer at `at`; panics if it does not lie inside.
        #[inline]
        pub fn $write(bytes: &mut [u8], at: usize, value: $ty) {
            let raw = value.to_be_bytes();
            bytes[at..at + $n].copy_from_slice(&raw[std::mem::size_of::<$ty>() - $n..]);
        }

        /// Reads the integer at `at`, or `None` if it does not lie inside.
        #[inline]
        pub fn $try_read(bytes: &[u8], at: usize) -> Option<$ty> {
            let end = at.checked_add($n)?;
            (end <= bytes.len()).then(|| $read(bytes, at))
        }
    };
}

int!(u16_at, put_u16, try_u16_at, u16, 2);
int!(u24_at, put_u24, try_u24_at, u32, 3);
int!(u32_at, put_u32, try_u32_at, u32, 4);
int!(u48_at, put_u48, try_u48_at, u64, 6);
int!(u56_at, put_u56, try_u56_at, u64, 7);
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
