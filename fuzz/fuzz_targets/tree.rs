//! Any bytes at all are a tree, or a part of a checkpoint, in a repository: read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use beforehand::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::tree(bytes);
    fuzzing::parts(bytes);
});
