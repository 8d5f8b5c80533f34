//! The real terminal of the picker: keys, drawing, signals, and its restoration.
//!
//! However the picker ends, by a key, an error, a panic or a signal, the terminal gets its original
//! settings back. Each frame is one write, and contains only changed cells.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use ratatui::{
    Terminal, TerminalOptions, Viewport,
    crossterm::{
        cursor::{Hide, Show},
        event::{DisableBracketedPaste, EnableBracketedPaste},
        queue,
        style::ResetColor,
        terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen},
    },
    layout::Rect,
    prelude::CrosstermBackend,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{self, OptionalActions, Termios},
};
use signal_hook::{
    consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH},
    flag,
    low_level::{self, pipe},
};

use super::{model::Model, view::view};
use crate::{process::Tty, ui::Style};

/// The terminal while the picker has it.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Page>>,
    size: (u16, u16),
    style: Style,
    input: File,
    given: Arc<TerminalState>,
    /// The socket that wakes the loop for events other than keys.
    woken: UnixStream,
    signals: SignalFlags,
    may_suspend: bool,
}

/// The terminal and its original settings.
struct TerminalState {
    output: OwnedFd,
    before: Termios,
    enter: Vec<u8>,
    leave: Vec<u8>,
    /// Whether the terminal has its original settings.
    is_back: Arc<AtomicBool>,
}

/// What signal handlers have noted.
struct SignalFlags {
    /// To end, by this signal; 0 while there is none.
    end: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    resumed: Arc<AtomicBool>,
}

/// Wakes the picker's loop from a thread when there are results.
#[derive(Debug)]
pub struct Waker(UnixStream);

/// Why the picker's loop woke up.
pub(super) enum Woken {
    /// Keys, as the terminal sends them.
    Keys(Vec<u8>),
    /// News, or a new size.
    Else,
    /// The time limit passed.
    Quiet,
    /// The other end is closed.
    HungUp,
    /// A signal says to end.
    End(i32),
    /// A panic has given the terminal back already.
    Lost,
}

impl Waker {
    /// Wakes the picker's loop.
    pub fn wake(&self) {
        // If the socket is full, a wake-up is pending anyway.
        let _woken = (&self.0).write(&[0]);
    }
}

impl Screen {
    /// Takes over the terminal.
    pub(super) fn open(tty: Tty, style: Style, may_suspend: bool) -> io::Result<(Self, Waker)> {
        let before = termios::tcgetattr(&tty.input)?;
        let (woken, waker) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let is_back = Arc::new(AtomicBool::new(true));
        let (enter, leave) = switches()?;
        let given = Arc::new(TerminalState {
            output: tty.output,
            before,
            enter,
            leave,
            is_back: is_back.clone(),
        });
        let signals = SignalFlags::heed(&is_back, &waker)?;
        give_back_on_panic(&given, waker.try_clone()?);
        let size = given.size();
        let page = Page { given: given.clone(), bytes: Vec::new() };
        let viewport = Viewport::Fixed(area(size));
        let terminal =
            Terminal::with_options(CrosstermBackend::new(page), TerminalOptions { viewport })?;
        let input = File::from(tty.input);
        let screen = Self { terminal, size, style, input, given, woken, signals, may_suspend };
        screen.given.enter(&screen.input)?;
        Ok((screen, Waker(waker)))
    }

    /// Draws what has changed. After a change of size it draws everything.
    pub(super) fn draw(&mut self, model: &mut Model) -> io::Result<()> {
        let size = self.given.size();
        if size != self.size {
            self.size = size;
            self.redraw()?;
        }
        model.resize(size);
        let style = self.style;
        self.terminal.draw(|frame| view(frame, model, style))?;
        Ok(())
    }

    /// Forgets what is on the screen, so that all of it is drawn.
    pub(super) fn redraw(&mut self) -> io::Result<()> {
        self.terminal.resize(area(self.size))
    }

    /// Waits for keys or results, or until `limit` has passed.
    pub(super) fn wait(&mut self, limit: Option<Duration>) -> io::Result<Woken> {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut fds =
            [PollFd::new(&self.input, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
        let is_quiet = match poll(&mut fds, limit.as_ref()) {
            Ok(ready) => ready == 0,
            Err(rustix::io::Errno::INTR) => false,
            Err(err) => return Err(err.into()),
        };
        let has_keys = !fds[0].revents().is_empty();
        self.drain()?;
        let end = self.signals.end.load(SeqCst);
        if end != 0 {
            return Ok(Woken::End(i32::try_from(end).unwrap_or(SIGTERM)));
        }
        if self.signals.stop.swap(false, SeqCst) {
            self.suspend()?;
        }
        if self.given.is_back.load(SeqCst) {
            return Ok(Woken::Lost);
        }
        if self.signals.resumed.swap(false, SeqCst) {
            // The shell may have changed the terminal's settings meanwhile.
            self.given.enter(&self.input)?;
            self.redraw()?;
        }
        match (has_keys, is_quiet) {
            (true, _) => self.keys(),
            (false, true) => Ok(Woken::Quiet),
            (false, false) => Ok(Woken::Else),
        }
    }

    fn keys(&mut self) -> io::Result<Woken> {
        let mut bytes = vec![0; 4096];
        match self.input.read(&mut bytes) {
            Ok(0) => Ok(Woken::HungUp),
            Ok(length) => {
                bytes.truncate(length);
                Ok(Woken::Keys(bytes))
            }
            Err(err) if err.kind() == io::ErrorKind::Interrupted => Ok(Woken::Else),
            Err(err) if err.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                Ok(Woken::HungUp)
            }
            Err(err) => Err(err),
        }
    }

    fn drain(&mut self) -> io::Result<()> {
        let mut bytes = [0; 64];
        loop {
            match self.woken.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(_) => (),
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(err) if err.kind() == io::ErrorKind::Interrupted => (),
                Err(err) => return Err(err),
            }
        }
    }

    /// Restores the terminal, suspends the process, and takes the terminal over again afterwards.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        if !self.may_suspend {
            return Ok(());
        }
        self.given.leave();
        low_level::emulate_default_handler(SIGTSTP)?;
        self.given.enter(&self.input)?;
        self.signals.resumed.store(false, SeqCst);
        self.redraw()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.given.leave();
    }
}

/// Ends this process as the unhandled signal would.
pub(super) fn end_by(signal: i32) -> io::Result<()> {
    low_level::emulate_default_handler(signal)
}

impl TerminalState {
    fn enter(&self, input: &File) -> io::Result<()> {
        self.is_back.store(false, SeqCst);
        let mut raw = termios::tcgetattr(input)?;
        raw.make_raw();
        termios::tcsetattr(input, OptionalActions::Now, &raw)?;
        self.write(&self.enter)
    }

    /// Also called from a panic, so it must not fail and must not take a lock.
    fn leave(&self) {
        if !self.is_back.swap(true, SeqCst) {
            let _gone_perhaps = self.write(&self.leave);
            let _gone_perhaps =
                termios::tcsetattr(&self.output, OptionalActions::Now, &self.before);
        }
    }

    fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write(&self.output, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(rustix::io::Errno::INTR) => (),
                Err(rustix::io::Errno::AGAIN) => {
                    let mut fds = [PollFd::new(&self.output, PollFlags::OUT)];
                    let _ready = poll(&mut fds, None);
                }
                Err(err) => return Err(err.into()),
            }
        }
        Ok(())
    }

    fn size(&self) -> (u16, u16) {
        let known = termios::tcgetwinsize(&self.output).ok();
        let known = known.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        known.map_or((80, 24), |size| (size.ws_col, size.ws_row))
    }
}

/// What takes the screen over and what gives it back. Text that is pasted comes marked as such.
fn switches() -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (mut enter, mut leave) = (Vec::new(), Vec::new());
    queue!(enter, EnterAlternateScreen, Clear(ClearType::All), Hide, EnableBracketedPaste)?;
    queue!(leave, DisableBracketedPaste, ResetColor, Show, LeaveAlternateScreen)?;
    Ok((enter, leave))
}

/// A panic's message belongs on the user's normal screen.
fn give_back_on_panic(given: &Arc<TerminalState>, waker: UnixStream) {
    let given = given.clone();
    let print_panic = std::panic::take_hook();
    let waker = Waker(waker);
    std::panic::set_hook(Box::new(move |info| {
        given.leave();
        // It may come from another thread while the loop waits for keys.
        waker.wake();
        print_panic(info);
    }));
}

impl SignalFlags {
    /// While the picker owns the terminal, the loop handles signals; otherwise they have their
    /// normal effect.
    fn heed(is_back: &Arc<AtomicBool>, waker: &UnixStream) -> io::Result<Self> {
        let end = Arc::new(AtomicUsize::new(0));
        let [stop, resumed] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            flag::register_conditional_default(signal, is_back.clone())?;
            flag::register_usize(signal, end.clone(), usize::try_from(signal).unwrap_or(0))?;
            pipe::register(signal, waker.try_clone()?)?;
        }
        flag::register_conditional_default(SIGTSTP, is_back.clone())?;
        flag::register(SIGTSTP, stop.clone())?;
        flag::register(SIGCONT, resumed.clone())?;
        for signal in [SIGTSTP, SIGCONT, SIGWINCH] {
            pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(Self { end, stop, resumed })
    }
}

fn area((columns, rows): (u16, u16)) -> Rect {
    Rect::new(0, 0, columns, rows)
}

/// Collects a frame and writes it at once. Unflushed output is dropped: after a panic it would
/// appear on the user's normal screen.
struct Page {
    given: Arc<TerminalState>,
    bytes: Vec<u8>,
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        if self.given.is_back.load(SeqCst) { Ok(()) } else { self.given.write(&bytes) }
    }
}
