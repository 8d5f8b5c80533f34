//! A conversation that the agent's server keeps: what to ask the server, and how to read its answer.
//!
//! Only `OpenCode` has such a server. It copies its session up to a message, under a new name. Pure:
//! another module sends the request, and only to this machine.

use std::{fmt::Write as _, path::Path};

use serde::Deserialize;

use super::NoFork;
use crate::model::Agent;

/// What a server is to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Where the message is that the turn begins with: answers only if all of it is there.
    pub message: String,
    /// Where the fork is made.
    pub fork: String,
    /// What is sent there, as JSON.
    pub body: String,
}

/// What starts such a server, on any free port, which it then prints.
pub const SERVE: [&str; 6] = ["opencode", "serve", "--hostname", "127.0.0.1", "--port", "0"];

/// Whether conversations of this agent are kept by a server of its own.
pub fn is_served(agent: Agent) -> bool {
    agent == Agent::OpenCode
}

/// What to ask the server at `address` for a fork of `session` before `turn`, for files in `root`.
/// `None` if there is no such server on this machine, or the names are none it gives.
pub fn ask(address: &str, session: &str, turn: &str, root: &Path) -> Option<Asked> {
    let plain = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let (session, turn) = Some((session, turn)).filter(|(session, turn)| {
        [session, turn].into_iter().all(|it| !it.is_empty() && plain(it))
    })?;
    let (base, root) = (base(address)?, escaped(root.as_os_str().as_encoded_bytes()));
    Some(Asked {
        message: format!("{base}/session/{session}/message/{turn}?directory={root}"),
        fork: format!("{base}/session/{session}/fork?directory={root}"),
        body: format!("{{\"messageID\":\"{turn}\"}}"),
    })
}

/// What takes up the fork that the server told of.
///
/// # Errors
///
/// Fails if that is no answer to [`Asked::fork`].
pub fn resume(answer: &[u8], session: &str) -> Result<Vec<String>, NoFork> {
    #[derive(Deserialize)]
    struct ServedSession {
        id: String,
    }
    let made: ServedSession = serde_json::from_slice(answer).map_err(|_| NoFork::NotJson(1))?;
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if made.id.is_empty() || made.id == session || !made.id.bytes().all(is_plain) {
        return Err(NoFork::OtherSession);
    }
    Ok(["opencode", "-s", &made.id].map(str::to_owned).to_vec())
}

/// The address without what may follow it; `None` unless it is one of this machine's own.
fn base(address: &str) -> Option<String> {
    let rest = address.strip_prefix("http://")?.trim_end_matches('/');
    let (host, port) = rest.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    // One that listens everywhere listens here.
    let host = match host {
        "127.0.0.1" | "localhost" | "0.0.0.0" => "127.0.0.1",
        "[::1]" | "[::]" => "[::1]",
        _ => return None,
    };
    Some(format!("http://{host}:{port}"))
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, &byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            _ => write!(text, "%{byte:02X}").expect("a string takes every write"),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_asked_and_only_for_plain_names() {
        let asked = ask("http://localhost:4096/", "ses_1", "msg_2", Path::new("/a b/ü")).unwrap();
        assert_eq!(
            asked.message,
            "http://127.0.0.1:4096/session/ses_1/message/msg_2?directory=%2Fa%20b%2F%C3%BC"
        );
        assert_eq!(
            asked.fork,
            "http://127.0.0.1:4096/session/ses_1/fork?directory=%2Fa%20b%2F%C3%BC"
        );
        assert_eq!(asked.body, r#"{"messageID":"msg_2"}"#);
        for address in [
            "http://example.org:4096",
            "https://127.0.0.1:4096",
            "http://127.0.0.1",
            "http://127.0.0.1:4096/x",
            "http://127.0.0.1:4096@example.org:80",
            "127.0.0.1:4096",
            "",
            "http://127.0.0.1:99999",
            "http://[fe80::1]:4096",
        ] {
            assert_eq!(ask(address, "ses_1", "msg_2", Path::new("/a")), None, "{address}");
        }
        for (session, turn) in [("", "msg"), ("ses", ""), ("ses/../x", "msg"), ("ses", "m\"")] {
            assert_eq!(ask("http://[::1]:1", session, turn, Path::new("/a")), None);
        }
    }

    #[test]
    fn a_fork_has_a_name_of_its_own() {
        let command = resume(br#"{"id":"ses_new","title":"x"}"#, "ses_old");
        assert_eq!(command.unwrap(), ["opencode", "-s", "ses_new"]);
        assert_eq!(resume(br#"{"id":"ses_old"}"#, "ses_old"), Err(NoFork::OtherSession));
        assert_eq!(resume(br#"{"id":"x; rm"}"#, "ses_old"), Err(NoFork::OtherSession));
        assert_eq!(resume(b"<html>", "ses_old"), Err(NoFork::NotJson(1)));
    }
}
