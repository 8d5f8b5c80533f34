//! Any bytes at all are judged without a panic, an abort or a hang.
//!
//! `sh fuzz/seeds.sh && cargo +nightly fuzz run classify`

#![no_main]

use libfuzzer_sys::fuzz_target;
use turnback::model::Language;
use turnback::shell::{Scope, classify};

fuzz_target!(|bytes: &[u8]| {
    let line = String::from_utf8_lossy(bytes);
    classify(&line, Language::Shell, &Scope::default());
});
