//! Answers for a process that is stuck: in a file system that hangs, or behind a lock that no deadline limits.
//!
//! The stuck thread cannot be interrupted, so another one waits beside it. Whichever of the two claims the
//! answer first gives it, and the other one says nothing.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};

/// An answer in the place of the one that did not come in time.
#[derive(Debug)]
pub struct LateAnswer {
    /// For standard output.
    pub stdout: Vec<u8>,
    /// For standard error.
    pub stderr: Vec<u8>,
    /// How the process ends.
    pub exit: u8,
}

/// A thread that answers unless its process does so in time.
#[derive(Debug, Default)]
pub struct Watch {
    is_claimed: Option<Arc<AtomicBool>>,
}

impl Watch {
    /// Watches this process: at `until`, writes the answer that `late` makes, and ends the process. `late` must
    /// not touch a file system.
    pub(super) fn begin(until: Instant, late: Box<dyn FnOnce() -> LateAnswer + Send>) -> Self {
        let is_claimed = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&is_claimed);
        // Without a thread the process is not watched, and everything else is as always.
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            loop {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                thread::sleep(left);
            }
            if !theirs.swap(true, Ordering::SeqCst) {
                give(&late());
            }
        });
        Self { is_claimed: thread.is_ok().then_some(is_claimed) }
    }

    /// Claims the answer. Does not return if the late one is being given.
    pub fn claim(&mut self) {
        let Some(is_claimed) = self.is_claimed.take() else { return };
        while is_claimed.swap(true, Ordering::SeqCst) {
            // The other thread ends the process.
            thread::park();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.claim();
    }
}

/// Enough to put together a few lines of text.
const STACK_BYTES: usize = 256 << 10;

/// Writes an answer and ends the process. The streams of the standard library may be locked by the thread that is
/// stuck.
#[expect(clippy::exit, reason = "no return reaches the thread that is stuck")]
fn give(answer: &LateAnswer) -> ! {
    // An agent that no longer listens is no reason to go on.
    let _ignored = write_all(&io::stdout(), &answer.stdout);
    let _ignored = write_all(&io::stderr(), &answer.stderr);
    std::process::exit(i32::from(answer.exit))
}

fn write_all(to: &impl std::os::fd::AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(to, bytes))?;
        bytes = &bytes[written..];
    }
    Ok(())
}
