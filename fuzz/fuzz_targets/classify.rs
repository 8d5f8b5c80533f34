//! Any bytes at all are judged without a panic that gets out, an abort or a hang.

#![no_main]

use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use beforehand::model::Language;
use beforehand::shell::{ShellContext, classify};

fuzz_target!(|bytes: &[u8]| {
    // The parser panics on some lines, which is caught and means `Unknown`; libFuzzer's own hook
    // would end the process before that.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| ())));
    let line = String::from_utf8_lossy(bytes);
    classify(&line, Language::Shell, &ShellContext::default());
});
