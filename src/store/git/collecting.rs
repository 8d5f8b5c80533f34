//! Whether git is throwing away, right now, what nothing refers to: a `git gc --prune=now`.
//!
//! What was written before it looked at the refs, and is named by a ref only afterwards, goes. So
//! beside such a gc new objects go into a pack that git is told to keep (see `pack::Keep`). Any
//! other gc spares what is younger than two weeks, and is nobody's business here.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use super::repo::Repo;
use crate::fs::read_small;

/// A number and the name of a host.
const PID_MAX_BYTES: u64 = 1 << 10;
/// How long a save without a deadline waits.
const PATIENCE: Duration = Duration::from_secs(30);
/// Short, because the next gc may begin as soon as this one ends.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits while git throws objects away, until `deadline`; tells whether it is over.
pub(super) fn is_over(repo: &Repo, deadline: Option<Instant>) -> bool {
    let until = deadline.unwrap_or_else(|| Instant::now() + PATIENCE);
    while is_under_way(repo) {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

/// Whether git throws objects away right now. It notes down which process does, and removes the
/// note when that ends.
pub(super) fn is_under_way(repo: &Repo) -> bool {
    is_noted(&repo.common_dir)
}

fn is_noted(common_dir: &Path) -> bool {
    let Ok(Some(note)) = read_small(&common_dir.join("gc.pid"), PID_MAX_BYTES) else {
        return false;
    };
    let pid = note.split(u8::is_ascii_whitespace).next();
    let pid = pid.and_then(|pid| str::from_utf8(pid).ok()?.parse().ok().filter(|&pid| pid > 0));
    let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else { return false };
    match fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())) {
        Ok(command) => prunes(&command),
        Err(_) if Path::new("/proc/self").exists() => false,
        // Where a process's command line cannot be had, that it lives must do.
        Err(_) => rustix::process::test_kill_process(pid).is_ok(),
    }
}

/// Whether a command line, its words ended by NULs, says from which age on things may go.
fn prunes(command: &[u8]) -> bool {
    let command = command.to_ascii_lowercase();
    command.split(|&byte| byte == 0).any(|word| {
        let setting = b"gc.pruneexpire=";
        word.starts_with(b"--prune=") || word.windows(setting.len()).any(|part| part == setting)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gc_that_names_an_age_is_waited_for() {
        assert!(prunes(b"git\0gc\0-q\0--prune=now\0"));
        assert!(prunes(b"git\0-c\0gc.pruneExpire=now\0gc\0"));
        assert!(!prunes(b"git\0gc\0--auto\0--detach\0"));
        assert!(!prunes(b"git\0gc\0--prune\0"));
        assert!(!prunes(b""));
    }

    #[test]
    fn a_note_of_the_dead_is_none() {
        let dir = std::env::temp_dir().join(format!("turnback-gc-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        assert!(!is_noted(&dir));
        for note in ["", "x", "-1 host", "0 host", "2147483000 host", &"9".repeat(5000)] {
            crate::fs::replace(&dir.join("gc.pid"), note.as_bytes()).unwrap();
            assert!(!is_noted(&dir), "{note}");
        }
        fs::remove_file(dir.join("gc.pid")).and_then(|()| fs::remove_dir(&dir)).unwrap();
    }
}
