//! Any bytes behind the right head are a cache: believed or not, everything in it can be looked at.

#![no_main]

use libfuzzer_sys::fuzz_target;
use beforehand::fuzzing;

/// What a cache begins with; see `src/cache.rs`.
const MAGIC: &[u8] = b"tbcache1";

fuzz_target!(|body: &[u8]| {
    let sum = u64::from(crc32fast::hash(body));
    fuzzing::cache([MAGIC, &sum.to_le_bytes(), body].concat());
});
