//! Any text at all is a patch envelope: what it names are paths that can exist.

#![no_main]

use libfuzzer_sys::fuzz_target;
use beforehand::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::patch(&String::from_utf8_lossy(bytes)));
