//! Signals while a program runs that a person started through us.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::{
    consts::{SIGINT, SIGQUIT, SIGTERM},
    flag, low_level,
};

/// Signals that no longer end us.
pub(super) struct Signals {
    /// The last one that is to be passed on; 0 for none.
    sent: Arc<AtomicUsize>,
    /// A byte for each of them, and one for the end.
    woken: UnixStream,
    wakes: UnixStream,
}

impl Signals {
    /// From now on a key of the terminal is for the program alone, which gets it as we do, and
    /// what is sent to us to end it is kept for it.
    ///
    /// # Errors
    ///
    /// Fails if the system has no room for a handler or a socket.
    pub(super) fn pass_on() -> io::Result<Self> {
        for by_key in [SIGINT, SIGQUIT] {
            flag::register(by_key, Arc::new(AtomicBool::new(false)))?;
        }
        let sent = Arc::new(AtomicUsize::new(0));
        let (woken, wakes) = UnixStream::pair()?;
        let number = usize::try_from(SIGTERM).map_err(io::Error::other)?;
        flag::register_usize(SIGTERM, sent.clone(), number)?;
        low_level::pipe::register(SIGTERM, wakes.try_clone()?)?;
        Ok(Self { sent, woken, wakes })
    }

    /// Passes signals on until the process `pid`, a child of ours, has ended. It can be waited for
    /// afterwards.
    ///
    /// # Errors
    ///
    /// Fails if there is no such child.
    pub(super) fn until_end(self, pid: u32) -> io::Result<()> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
        let Self { sent, mut woken, mut wakes } = self;
        // It stays a zombie, and no other process gets its number, while we may still signal it.
        let end = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let waiting = thread::spawn(move || {
            let ended = loop {
                match waitid(WaitId::Pid(pid), end) {
                    Err(rustix::io::Errno::INTR) => (),
                    ended => break ended.map(drop),
                }
            };
            let _woken = wakes.write_all(b"E");
            ended
        });
        let mut byte = [0];
        while woken.read_exact(&mut byte).is_ok() && byte != *b"E" {
            if sent.swap(0, Ordering::Relaxed) != 0 {
                let _gone = kill_process(pid, Signal::TERM);
            }
        }
        let ended = waiting.join().map_err(|_| io::Error::other("the wait for it ended"))?;
        Ok(ended?)
    }
}
