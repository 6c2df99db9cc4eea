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
/// that differs, ended by `gap` or more equal bytes, which make two records cheaper than one. `gap` is
/// 8 at least, so that no range ends inside eight bytes of which the first and the last differ.
pub fn next_run(old: &[u8], new: &[u8], from: usize, gap: usize) -> Option<(usize, usize)> {
    debug_assert!(gap >= 8);
    let start = from + first(&old[from..], &new[from..])?;
    // Behind the last byte that is known to differ.
    let mut end = start + 1;
    let mut at = end;
    while let (Some(x), Some(y)) = (old[at..].first_chunk::<8>(), new[at..].first_chunk::<8>()) {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        let differs_at = at + difference.trailing_zeros() as usize / 8;
        if differs_at - end >= gap {
            return Some((start, end));
        }
        at += 8;
        if difference != 0 {
            end = at - difference.leading_zeros() as usize / 8;
        }
    }
    for i in at..old.len() {
        if i - end >= gap {
            break;
        }
        if old[i] != new[i] {
            end = i + 1;
        }
    }
    Some((start, end))
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
    fn runs_are_those_that_a_look_at_each_byte_finds() {
        let slow = |old: &[u8], new: &[u8], from: usize, gap: usize| {
            let start = (from..old.len()).find(|&i| old[i] != new[i])?;
            let mut end = start + 1;
            let mut at = end;
            while at < old.len() && at - end < gap {
                if old[at] != new[at] {
                    end = at + 1;
                }
                at += 1;
            }
            Some((start, end))
        };
        let mut x = 9u64;
        let mut random = move |below: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x % below
        };
        for round in 0..20_000 {
            let old = vec![0u8; random(80) as usize];
            let rare = 1 + random(20);
            let mut new = old.clone();
            new.iter_mut()
                .for_each(|byte| *byte = u8::from(random(rare) == 0));
            let from = random(old.len() as u64 + 1) as usize;
            let gap = 8 + random(6) as usize;
            let (fast, slow) = (next_run(&old, &new, from, gap), slow(&old, &new, from, gap));
            assert_eq!(fast, slow, "round {round}: {new:?} from {from}, gap {gap}");
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
