//! Any bytes at all are a record, ledger, log, listing or directory: read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use beforehand::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::records(bytes));
