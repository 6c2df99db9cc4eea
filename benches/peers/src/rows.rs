//! The rows: keys in random order, values that do not compress.

pub const VALUE_BYTES: usize = 200;

pub type Value = [u8; VALUE_BYTES];

/// The `n`-th key: each number once, in no order (an odd factor is a permutation of all u64).
pub fn key(n: u64) -> u64 {
    scramble(n)
}

/// The key's bytes in the order of its number.
pub fn key_bytes(key: u64) -> [u8; 8] {
    key.to_be_bytes()
}

/// A permutation of the 64-bit numbers (the finisher of splitmix64).
fn scramble(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// The value under a key after its `version`-th update (0: as inserted).
pub fn fill(value: &mut Value, key: u64, version: u64) {
    let mut word = key ^ version.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for bytes in value.chunks_exact_mut(8) {
        bytes.copy_from_slice(&word.to_le_bytes());
        word = word.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
    }
}

/// Reads all of a value.
pub fn digest(value: &[u8]) -> u64 {
    let words = value.chunks_exact(8);
    words.fold(0, |sum, word| {
        sum ^ u64::from_le_bytes(word.try_into().expect("chunks of eight"))
    })
}

/// What `digest` gives for a value of `fill`.
pub fn digest_of(key: u64, version: u64) -> u64 {
    let mut value = [0; VALUE_BYTES];
    fill(&mut value, key, version);
    digest(&value)
}

/// Random numbers, the same for every engine (xorshift64*).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(scramble(seed.wrapping_add(0x1234_5678)) | 1)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let wide = u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(limit);
        (wide >> 64) as u64
    }
}
