//! Asks the agent's server for a fork of a conversation that it keeps.
//!
//! It asks only a server on this machine, with a short time limit, and never from a hook.

use std::{ffi::OsStr, io::Read, path::Path};

use crate::{
    agent::transcript::{self, Asked},
    error::{Error, Result},
    process::{Process, RunningProgram},
};

/// Longer than a server that is up takes to find a message.
pub(super) const LOOK_MAX_SECONDS: u64 = 2;
/// One that was just started has to read all it keeps first.
pub(super) const FIRST_LOOK_MAX_SECONDS: u64 = 60;
/// Copying a month of talk takes a while.
const FORK_MAX_SECONDS: u64 = 15;
/// A message with pictures in it.
const ANSWER_MAX_BYTES: u64 = 16 << 20;
/// More than any of its answers begins with.
const HEAD_MAX_BYTES: usize = 64 << 10;

/// Starts the agent's own server, for as long as what is given back lives, and tells its address.
/// It reads what the agent keeps on the disk.
///
/// # Errors
///
/// Why it cannot be started, as a fragment.
pub(super) fn start(
    process: &Process<'_>,
    root: &Path,
) -> Result<(RunningProgram, String), String> {
    let [program, args @ ..] = transcript::SERVE;
    let found = process.which(program).ok_or("it is not running, and not on the PATH either")?;
    let command: Vec<&OsStr> =
        std::iter::once(found.as_os_str()).chain(args.map(OsStr::new)).collect();
    let started = process.aside.listen(&command, root, "http://");
    started.map_err(|err| format!("it is not running, and cannot be started: {err}"))
}

/// Whether the server has the message the turn begins with.
///
/// # Errors
///
/// Why it does not, as a fragment.
pub(super) fn look(asked: &Asked, seconds: u64) -> Result<(), String> {
    answer(minreq::get(&asked.message).with_timeout(seconds)).map(|_| ())
}

/// Makes the fork and returns the command that takes it up.
///
/// # Errors
///
/// Fails if the server does not, or makes none that we know of.
pub(super) fn fork(asked: &Asked, session: &str) -> Result<Vec<String>> {
    let request = minreq::post(&asked.fork)
        .with_header("Content-Type", "application/json")
        .with_body(asked.body.as_str())
        .with_timeout(FORK_MAX_SECONDS);
    let made = answer(request)
        .and_then(|text| transcript::resume(&text, session).map_err(|why| why.to_string()));
    made.map_err(|why| {
        Error::other(
            format!("the agent's server did not fork the conversation: {why}"),
            "the conversation is as it was; `beforehand undo` takes the files back",
        )
    })
}

/// What the server says, if it is what was asked for.
fn answer(request: minreq::Request) -> Result<Vec<u8>, String> {
    let request = request.with_follow_redirects(false).with_max_headers_size(HEAD_MAX_BYTES);
    let sent = request.send_lazy().map_err(|err| err.to_string())?;
    if !(200..300).contains(&sent.status_code) {
        return Err(format!("it answered {}", sent.status_code));
    }
    let mut text = Vec::new();
    let read = sent.take(ANSWER_MAX_BYTES).read_to_end(&mut text);
    read.map(|_| text).map_err(|err| err.to_string())
}
