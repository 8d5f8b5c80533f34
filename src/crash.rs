//! Named places where a test may kill us. Nothing at all in a release build.

/// Waits here to be killed, if a crash test asked for `name`.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    #[expect(clippy::disallowed_methods, reason = "set by tests/crash.rs only")]
    let wanted = std::env::var_os("TURNBACK_TEST_CRASH_AT");
    if wanted.is_some_and(|wanted| wanted == name) {
        loop {
            std::thread::park();
        }
    }
}

/// Compiles to nothing.
#[cfg(not(debug_assertions))]
pub fn point(_name: &str) {}
