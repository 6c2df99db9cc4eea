//! Random numbers that can be drawn again: every test that uses them prints its seed.

use std::time::{SystemTime, UNIX_EPOCH};

/// A small generator (splitmix64): same seed, same numbers, on every machine.
#[derive(Clone)]
pub struct Rng {
    state: u64,
}

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    /// The seed of `XTRADB_SEED`, or one from the clock; printed, so that a failure can be run again.
    pub fn announced(test: &str) -> Rng {
        let clock = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("the clock is past 1970")
            .as_nanos() as u64;
        Rng::announced_or(test, clock)
    }

    /// The seed of `XTRADB_SEED`, or `seed`: for a search that still finds what is to be mended.
    pub fn announced_or(test: &str, seed: u64) -> Rng {
        let seed = match std::env::var("XTRADB_SEED") {
            Ok(text) => text.parse().expect("XTRADB_SEED is a number"),
            Err(_) => seed,
        };
        println!("{test}: XTRADB_SEED={seed}");
        Rng::new(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// Letters and digits.
    pub fn text(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        (0..length)
            .map(|_| char::from(*self.pick(LETTERS)))
            .collect()
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let draw = |seed| {
        let mut rng = Rng::new(seed);
        (0..5).map(|_| rng.below(1000)).collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
}
