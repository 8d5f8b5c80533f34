//! Whether Codex runs the hooks we registered: it keeps a hash of each one its user approved in
//! its `config.toml`, and skips the rest in silence.
//!
//! Approving is the user's. [`approve`] notes in Codex's words what the user has said yes to, each
//! line with a comment by which [`disapprove`] finds it again, wherever Codex has moved it since.
//! Pure: text to text.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{jsonc::JsonError, merge::HookEntry};
use crate::state::hex;

/// Ends a line of ours.
const MARK: &str = " # approved through beforehand";
/// What Codex waits for a hook that does not say.
const TIMEOUT_S: u64 = 600;
/// Events that Codex gives no more than [`END_TIMEOUT_S`], whatever the file says. It warns at each
/// start ("clamping `SessionEnd` hook timeout to 3s") and hashes what it gives.
const END_EVENTS: &[&str] = &["SessionEnd", "Interrupt"];
const END_TIMEOUT_S: u64 = 3;

/// The events of entries that Codex would skip, by its `config.toml` and the path of the file with
/// its hooks.
///
/// # Errors
///
/// Fails if the file is no TOML, with what is wrong.
pub fn untrusted(config: &str, hooks: &Path, entries: &[HookEntry]) -> Result<Vec<String>, String> {
    let config = table(config).map_err(|fault| fault.to_string())?;
    let state = config.get("hooks").and_then(|hooks| hooks.get("state"));
    let real = std::fs::canonicalize(hooks).ok();
    let is_trusted = |entry: &&HookEntry| {
        let paths = [Some(hooks), real.as_deref()];
        paths.iter().flatten().any(|path| {
            let key = key(path, entry);
            let known = state.and_then(|state| state.get(&key)?.get("trusted_hash")?.as_str());
            known == Some(&*hash(entry))
        })
    };
    let skipped = entries.iter().filter(|entry| !is_trusted(entry));
    Ok(skipped.map(|entry| entry.event.clone()).collect())
}

/// The first event of these entries that its user has switched off in Codex's `/hooks`.
pub(super) fn disabled<'e>(
    config: &str,
    hooks: &Path,
    entries: &'e [HookEntry],
) -> Option<&'e str> {
    let config = table(config).ok()?;
    let state = config.get("hooks").and_then(|hooks| hooks.get("state"))?;
    let is_off = |entry: &&HookEntry| {
        let enabled = state.get(key(hooks, entry)).and_then(|state| state.get("enabled"));
        enabled.and_then(toml::Value::as_bool) == Some(false)
    };
    entries.iter().find(is_off).map(|entry| &*entry.event)
}

/// The `config.toml` with an approval of each entry, at its end or instead of one that has become
/// stale.
///
/// # Errors
///
/// Fails if the file is no TOML, or has its approvals in another form than Codex writes them.
pub(super) fn approve(
    config: &str,
    hooks: &Path,
    entries: &[HookEntry],
) -> Result<String, JsonError> {
    table(config)?;
    let newline = if config.contains("\r\n") { "\r\n" } else { "\n" };
    let mut text = config.to_owned();
    for entry in entries {
        let header = format!("[hooks.state.{}]", toml::Value::from(key(hooks, entry)));
        let approval = format!("trusted_hash = {:?}{MARK}", hash(entry));
        text = if let Some(at) = stale(&text, &header) {
            format!("{}{approval}{}", &text[..at.start], &text[at.end..])
        } else {
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
            format!("{text}{gap}{header}{newline}{approval}{newline}")
        };
    }
    table(&text)?;
    Ok(text)
}

/// Where the hash of a table of approvals stands, without the end of its line.
fn stale(text: &str, header: &str) -> Option<std::ops::Range<usize>> {
    let mut at = 0;
    let mut is_inside = false;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\r', '\n']);
        if bare.starts_with('[') {
            is_inside = bare.trim_end() == header;
        } else if is_inside && bare.trim_start().starts_with("trusted_hash") {
            return Some(at..at + bare.len());
        }
        at += line.len();
    }
    None
}

/// The `config.toml` without our approvals. A table that holds nothing else goes with its own.
pub(super) fn disapprove(text: &str) -> String {
    let is_ours = |line: &str| {
        line.trim_start().starts_with("trusted_hash") && line.trim_end().ends_with(MARK.trim_end())
    };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let ends = |line: Option<&&str>| line.is_none_or(|line| line.starts_with('['));
    let mut kept = String::new();
    for (at, line) in lines.iter().enumerate() {
        let is_bare_header = line.starts_with("[hooks.state.")
            && lines.get(at + 1).is_some_and(|next| is_ours(next))
            && ends(lines[at + 1..].iter().skip(1).find(|line| !line.trim().is_empty()));
        if !is_ours(line) && !is_bare_header {
            kept.push_str(line);
        }
    }
    kept
}

/// What Codex keeps an approval under.
fn key(hooks: &Path, entry: &HookEntry) -> String {
    let (group, index) = entry.place;
    format!("{}:{}:{group}:{index}", hooks.display(), snake(&entry.event))
}

/// Reads a text as TOML.
pub(super) fn table(text: &str) -> Result<toml::Table, JsonError> {
    text.parse().map_err(|err: toml::de::Error| {
        let at = err.span().map_or(0, |span| span.start);
        JsonError::at(text, at, err.message())
    })
}

/// What Codex calls an event inside, as in `pre_tool_use`.
fn snake(event: &str) -> String {
    let mut name = String::new();
    for (at, c) in event.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// How long Codex waits for a hook: what the file says, within its own bounds.
fn timeout_s(entry: &HookEntry) -> u64 {
    let told = entry.timeout.unwrap_or(TIMEOUT_S).max(1);
    if ends_a_session(&entry.event) { told.min(END_TIMEOUT_S) } else { told }
}

/// Whether Codex cuts the timeout of this event short, so that a longer one changes nothing.
pub fn ends_a_session(event: &str) -> bool {
    END_EVENTS.contains(&event)
}

/// The hash Codex 0.169 takes of a hook: of JSON without blanks, its keys in order.
fn hash(entry: &HookEntry) -> String {
    let hook = json!({
        "async": false,
        "command": entry.command,
        "timeout": timeout_s(entry),
        "type": "command",
    });
    let mut whole = json!({ "event_name": snake(&entry.event), "hooks": [hook] });
    if let Some(matcher) = &entry.matcher {
        whole["matcher"] = Value::from(matcher.as_str());
    }
    format!("sha256:{}", hex(&Sha256::digest(whole.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOKS: &str = "/c/hooks.json";

    fn entry(event: &str) -> HookEntry {
        HookEntry {
            event: event.to_owned(),
            command: "/opt/beforehand hook --agent codex".to_owned(),
            program: "/opt/beforehand".into(),
            timeout: Some(30),
            matcher: Some("*".to_owned()),
            changed: None,
            place: (1, 0),
        }
    }

    fn skipped(config: &str, entry: &HookEntry) -> Vec<String> {
        untrusted(config, Path::new(HOOKS), std::slice::from_ref(entry)).unwrap()
    }

    #[test]
    fn a_changed_command_is_no_longer_trusted() {
        let before = entry("PreToolUse");
        let config = format!(
            "model = 1\n[hooks.state.\"/c/hooks.json:pre_tool_use:1:0\"]\ntrusted_hash = {:?}\n",
            hash(&before)
        );
        assert!(skipped(&config, &before).is_empty());
        let moved =
            HookEntry { command: "/new/beforehand hook --agent codex".to_owned(), ..before };
        assert_eq!(skipped(&config, &moved), ["PreToolUse"]);
        let broken = untrusted("a = 1\nb", Path::new(HOOKS), &[]);
        assert!(broken.unwrap_err().starts_with("line 2: "));
    }

    #[test]
    fn the_hash_is_of_the_timeout_that_codex_gives() {
        let of = |event: &str, timeout| hash(&HookEntry { timeout, ..entry(event) });
        assert_eq!(of("SessionEnd", Some(30)), of("SessionEnd", Some(3)));
        assert_eq!(of("SessionEnd", None), of("SessionEnd", Some(3)));
        assert_eq!(of("Interrupt", Some(9)), of("Interrupt", Some(3)));
        assert_ne!(of("SessionEnd", Some(2)), of("SessionEnd", Some(3)));
        assert_ne!(of("Stop", Some(30)), of("Stop", Some(3)));
        assert_eq!(of("Stop", Some(0)), of("Stop", Some(1)));
        let told = r#"{"event_name":"session_end","hooks":[{"async":false,"command":"/opt/beforehand hook --agent codex","timeout":3,"type":"command"}],"matcher":"*"}"#;
        let digest = hex(&Sha256::digest(told));
        assert_eq!(of("SessionEnd", Some(30)), format!("sha256:{digest}"));
        // What an earlier install noted was of the 30 seconds in the file: Codex skips that hook.
        let ends = entry("SessionEnd");
        let config = "[hooks.state.\"/c/hooks.json:session_end:1:0\"]\ntrusted_hash = \
                      \"sha256:hash-of-30-seconds\"\n";
        assert_eq!(skipped(config, &ends), ["SessionEnd"]);
    }

    #[test]
    fn an_approval_is_what_codex_looks_for_and_comes_out_again() {
        let both = [entry("PreToolUse"), entry("Stop")];
        for config in ["", "model = 1", "# mine\n[a]\nb = 1 # c\n", "a = 1\r\n"] {
            let text = approve(config, Path::new(HOOKS), &both).unwrap();
            assert!(text.starts_with(config));
            assert!(both.iter().all(|entry| skipped(&text, entry).is_empty()), "{text}");
            assert_eq!(disapprove(&text).trim_end(), config.trim_end());
            let more = format!("{text}[projects.\"/p\"]\ntrust_level = \"trusted\"\n");
            assert!(disapprove(&more).ends_with("[projects.\"/p\"]\ntrust_level = \"trusted\"\n"));
            assert!(!disapprove(&more).contains("hooks"), "{}", disapprove(&more));
        }
    }

    #[test]
    fn a_stale_approval_is_replaced_and_what_else_is_said_of_the_hook_stays() {
        let config = "[hooks.state.\"/c/hooks.json:stop:1:0\"]\nenabled = true\n\
                      trusted_hash = \"sha256:old\"\n[b]\n";
        let text = approve(config, Path::new(HOOKS), &[entry("Stop")]).unwrap();
        assert!(skipped(&text, &entry("Stop")).is_empty());
        let left = disapprove(&text);
        assert_eq!(left, "[hooks.state.\"/c/hooks.json:stop:1:0\"]\nenabled = true\n[b]\n");
        let other = "[hooks]\nstate = { \"/c/hooks.json:stop:1:0\" = { trusted_hash = \"x\" } }\n";
        assert!(approve(other, Path::new(HOOKS), &[entry("Stop")]).is_err());
    }
}
