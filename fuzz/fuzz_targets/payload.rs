//! Any bytes at all are a payload to every dialect: read or refused, and answered.

#![no_main]

use libfuzzer_sys::fuzz_target;
use beforehand::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::payload(bytes));
