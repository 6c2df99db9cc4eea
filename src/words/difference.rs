//! Where two images of the same bytes differ, found eight bytes at a time.

/// Offset of the first byte that differs. Both have the same length.
#[inline]
pub fn first(a: &[u8], b: &[u8]) -> Option<usize> {
    debug_assert_eq!(a.len(), b.len());
    let mut at = 0;
    while let (Some(x), Some(y)) = (a[at..].first_chunk::<8>(), b[at..].first_chunk::<8>()) {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if difference != 0 {
            return Some(at + difference.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    (at..a.len()).find(|&i| a[i] != b[i])
}

/// The first range from `from` on that one log record should write: from a byte that differs to one
/// that differs, ended by `gap` or more equal bytes, which make two records cheaper than one.
pub fn next_run(old: &[u8], new: &[u8], from: usize, gap: usize) -> Option<(usize, usize)> {
    let start = from + first(&old[from..], &new[from..])?;
    let mut end = start + 1;
    loop {
        let near = (end + gap).min(old.len());
        match first(&old[end..near], &new[end..near]) {
            Some(equal) => end += equal + 1,
            None => return Some((start, end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found_wherever_it_is() {
        for len in 0..40 {
            let a: Vec<u8> = (0..len).collect();
            assert_eq!(first(&a, &a), None);
            for at in 0..a.len() {
                let mut b = a.clone();
                b[at..].iter_mut().for_each(|byte| *byte ^= 0x80);
                assert_eq!(first(&a, &b), Some(at), "of {len}");
            }
        }
    }

    #[test]
    fn a_run_goes_over_short_equal_stretches() {
        let old = vec![0u8; 4096];
        let mut new = old.clone();
        (new[100], new[105]) = (1, 2);
        new[200..300].fill(7);
        new[4095] = 9;
        assert_eq!(next_run(&old, &new, 24, 8), Some((100, 106)));
        assert_eq!(next_run(&old, &new, 106, 8), Some((200, 300)));
        assert_eq!(next_run(&old, &new, 300, 8), Some((4095, 4096)));
        assert_eq!(next_run(&old, &new, 4096, 8), None);
        new[300 + 7] = 1;
        assert_eq!(
            next_run(&old, &new, 106, 8),
            Some((200, 308)),
            "seven are short"
        );
        (new[307], new[308]) = (0, 1);
        assert_eq!(
            next_run(&old, &new, 106, 8),
            Some((200, 300)),
            "eight are not"
        );
    }
}
