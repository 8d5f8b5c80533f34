//! Named places where a test may kill us, or have us go wrong. Nothing at all in a release build.

/// Dies here as if killed, if a crash test asked for `name`, or for the nth time we come here with
/// `name:n`. Runs a shell command here first, if a test asked for that with `name:command`.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);
    run(name);
    #[expect(clippy::disallowed_methods, reason = "set by tests/crash.rs only")]
    let Some(wanted) = std::env::var_os("BEFOREHAND_TEST_CRASH_AT") else { return };
    let wanted = wanted.to_string_lossy();
    let (wanted, nth) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    if wanted == name && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == nth.parse().unwrap_or(1) {
        std::process::abort();
    }
}

/// Does what another process does at this very moment.
#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "for tests only")]
fn run(name: &str) {
    let Some(wanted) = std::env::var_os("BEFOREHAND_TEST_RUN_AT") else { return };
    let wanted = wanted.to_string_lossy();
    if let Some((_, command)) = wanted.split_once(':').filter(|(at, _)| *at == name) {
        let done = std::process::Command::new("sh").args(["-c", command]).status();
        assert!(done.is_ok_and(|status| status.success()), "`{command}` failed");
    }
}

/// Compiles to nothing.
#[cfg(not(debug_assertions))]
pub fn point(_name: &str) {}

/// Panics here as a bug would, if a test asked for it.
#[cfg(debug_assertions)]
pub fn bug(name: &str) {
    #[expect(clippy::disallowed_methods, reason = "set by tests only")]
    let wanted = std::env::var_os("BEFOREHAND_TEST_BUG_AT");
    assert!(wanted.is_none_or(|wanted| wanted != name), "a bug, as a test wished: {name}");
}

/// Compiles to nothing.
#[cfg(not(debug_assertions))]
pub fn bug(_name: &str) {}
