//! Reproducible random numbers for generated tests.

/// A small generator; the same seed gives the same numbers.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % count
    }

    /// True once in so many times.
    pub(crate) fn is(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    pub(crate) fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// A number from the environment, for more cases than the usual sample.
#[expect(clippy::disallowed_methods, reason = "set by hand, for tests alone")]
pub(crate) fn wished(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
