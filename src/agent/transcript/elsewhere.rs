//! A conversation that goes on in another directory: where its agent looks for it there, and the paths
//! in it. Pure.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::find_bytes;
use crate::model::Agent;

/// Longer names are cut and given a hash by Claude Code, which then looks for what begins like it.
const NAME_MAX_BYTES: usize = 200;

/// Where the agent looks for conversations of the directory `to`, if `dir` is where it keeps those of
/// `from`, or of a directory in it.
pub fn place_for(agent: Agent, dir: &Path, from: &Path, to: &Path) -> PathBuf {
    if from == to {
        return dir.to_owned();
    }
    let names = |name: &[u8]| match agent {
        Agent::ClaudeCode | Agent::QwenCode => {
            let rest = name.strip_prefix(&dashed(from)[..])?;
            let is_it = rest.is_empty() || rest.starts_with(b"-");
            // The session may have begun in a directory of the project; it goes on at the top.
            is_it.then(|| dashed(to))
        }
        // Read by every version: a newer one moves it to a name of its own.
        Agent::GeminiCli => Some(hashed(to)),
        Agent::Pi => (name == named_by_pi(from)).then(|| named_by_pi(to)),
        _ => None,
    };
    let mut place = PathBuf::new();
    for component in dir.components() {
        let name = component.as_os_str().as_bytes();
        let above = place.file_name().map(OsStrExt::as_bytes);
        let is_its = match agent {
            Agent::GeminiCli => {
                above == Some(b"tmp") && dir.ends_with(place.join(name_of(name)).join("chats"))
            }
            Agent::Pi => above == Some(b"sessions"),
            _ => above == Some(b"projects"),
        };
        match names(name).filter(|_| is_its) {
            Some(new) => place.push(OsString::from_vec(new)),
            None => place.push(component),
        }
    }
    place
}

fn name_of(name: &[u8]) -> OsString {
    OsString::from_vec(name.to_vec())
}

/// A path as Claude Code and Qwen Code name a directory for it.
fn dashed(path: &Path) -> Vec<u8> {
    let text = path.to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    text.chars().map(plain).take(NAME_MAX_BYTES).collect::<String>().into_bytes()
}

/// A path as pi names a directory for it.
fn named_by_pi(path: &Path) -> Vec<u8> {
    let text = path.to_string_lossy();
    let inner = text.trim_start_matches('/').replace(['/', '\\', ':'], "-");
    format!("--{inner}--").into_bytes()
}

/// A path as Gemini CLI names a directory for it.
fn hashed(path: &Path) -> Vec<u8> {
    let digest = Sha256::digest(path.as_os_str().as_bytes());
    digest.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}")).into_bytes()
}

/// Puts the directory `to` in the place of `from` wherever a text of a conversation names it or something in
/// it: else the model would go on in the original. What is signed, such as a model's thoughts, stays, but for
/// the working directory of its line.
pub fn moved(text: &[u8], from: &Path, to: &Path) -> Vec<u8> {
    if from == to {
        return text.to_vec();
    }
    let escaped = |path: &Path| {
        let quoted = serde_json::to_string(&path.to_string_lossy()).unwrap_or_default();
        quoted.trim_matches('"').to_owned().into_bytes()
    };
    let (from, to) = (escaped(from), escaped(to));
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let is_signed = SIGNED.iter().any(|mark| find_bytes(line, mark).is_some());
        replace_path(line, &from, &to, is_signed, &mut out);
    }
    out
}

/// Marks of lines with parts that an agent's server checks.
const SIGNED: [&[u8]; 4] = [
    b"\"signature\":",
    b"\"thoughtSignature\":",
    b"\"encrypted_content\":",
    b"\"redacted_thinking\"",
];

/// Replaces a path where it is one of its own, not a part of a name; only as a whole string if `is_whole`.
fn replace_path(line: &[u8], from: &[u8], to: &[u8], is_whole: bool, out: &mut Vec<u8>) {
    let mut done = 0;
    while let Some(at) = find_bytes(&line[done..], from).map(|at| done + at) {
        let end = at + from.len();
        let is_it = if is_whole {
            line[..at].ends_with(b"\"") && line[end..].starts_with(b"\"")
        } else {
            begins_name(&line[..at]) && ends_name(&line[end..])
        };
        out.extend_from_slice(&line[done..at]);
        out.extend_from_slice(if is_it { to } else { from });
        done = end;
    }
    out.extend_from_slice(&line[done..]);
}

fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || byte >= 128
}

/// Whether a path can begin after this text: not after the rest of a longer one, but after `\n`.
fn begins_name(before: &[u8]) -> bool {
    match before {
        [.., b'\\', b'n' | b't' | b'r' | b'b' | b'f'] => true,
        [.., last] => !is_of_a_name(*last),
        [] => true,
    }
}

/// Whether a name ends before this text; a dot may end a sentence.
fn ends_name(after: &[u8]) -> bool {
    match after {
        [b'.', next, ..] => !next.is_ascii_alphanumeric() && !b"._-".contains(next),
        [next, ..] => *next == b'.' || !is_of_a_name(*next),
        [] => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> (&'static Path, &'static Path) {
        (Path::new("/home/u/shop"), Path::new("/home/u/shop-fork-1"))
    }

    #[test]
    fn each_agent_finds_the_conversation_in_the_other_directory() {
        let (from, to) = paths();
        let place = |agent, dir: &str| place_for(agent, Path::new(dir), from, to);
        let claude = "/home/u/.claude/projects/-home-u-shop";
        let other = "/home/u/.claude/projects/-home-u-shop-fork-1";
        assert_eq!(place(Agent::ClaudeCode, claude), Path::new(other));
        assert_eq!(place(Agent::ClaudeCode, &format!("{claude}-src")), Path::new(other));
        let codex = "/home/u/.codex/sessions/2026/11/24";
        assert_eq!(place(Agent::Codex, codex), Path::new(codex));
        let pi = place(Agent::Pi, "/home/u/.pi/agent/sessions/--home-u-shop--");
        assert_eq!(pi, Path::new("/home/u/.pi/agent/sessions/--home-u-shop-fork-1--"));
        let gemini = place(Agent::GeminiCli, "/home/u/.gemini/tmp/shop/chats");
        let name = gemini.iter().nth(5).unwrap();
        assert!(name.len() == 64 && gemini.ends_with("chats"), "{}", gemini.display());
    }

    #[test]
    fn a_conversation_names_the_other_directory() {
        let (from, to) = paths();
        let move_text = |text: &str| String::from_utf8(moved(text.as_bytes(), from, to)).unwrap();
        for (before, after) in [
            (r#""cwd":"/home/u/shop""#, r#""cwd":"/home/u/shop-fork-1""#),
            (
                "cat /home/u/shop/a /home/u/shop/b",
                "cat /home/u/shop-fork-1/a /home/u/shop-fork-1/b",
            ),
            (r"a\n/home/u/shop\n", r"a\n/home/u/shop-fork-1\n"),
            ("in /home/u/shop.", "in /home/u/shop-fork-1."),
            (
                "/home/u/shop-old /home/u/shop.git /home/u/shopping",
                "/home/u/shop-old /home/u/shop.git /home/u/shopping",
            ),
            ("/mnt/home/u/shop", "/mnt/home/u/shop"),
        ] {
            assert_eq!(move_text(before), after);
        }
        assert_eq!(move_text("/home/u/shop-old"), "/home/u/shop-old");
    }

    #[test]
    fn what_is_signed_is_left_but_for_its_working_directory() {
        let (from, to) = paths();
        let line = r#"{"cwd":"/home/u/shop","thinking":"in /home/u/shop/a","signature":"x"}"#;
        let after =
            r#"{"cwd":"/home/u/shop-fork-1","thinking":"in /home/u/shop/a","signature":"x"}"#;
        assert_eq!(moved(line.as_bytes(), from, to), after.as_bytes());
    }
}
