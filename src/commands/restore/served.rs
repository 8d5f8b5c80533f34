//! Asks the agent's own server for a fork of a conversation that it keeps.
//!
//! Nobody is asked but a server on this machine, and nobody waits for it longer than a moment. The
//! call is never on a hook's way.

use std::io::Read;

use crate::{
    agent::transcript::{self, Asked},
    error::{Error, Result},
};

/// Longer than any server here takes to find a message.
const LOOK_MAX_SECONDS: u64 = 2;
/// Copying a month of talk takes a while.
const FORK_MAX_SECONDS: u64 = 15;
/// A message with pictures in it.
const ANSWER_MAX_BYTES: u64 = 16 << 20;
/// More than any of its answers begins with.
const HEAD_MAX_BYTES: usize = 64 << 10;

/// Whether the server has the message the turn begins with.
///
/// # Errors
///
/// Why it does not, as a fragment.
pub(super) fn look(asked: &Asked) -> Result<(), String> {
    answer(minreq::get(&asked.message).with_timeout(LOOK_MAX_SECONDS)).map(|_| ())
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
            "the conversation is as it was; `turnback undo` takes the files back",
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
