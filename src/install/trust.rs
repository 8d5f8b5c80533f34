//! Whether Codex runs the hooks we registered: it keeps a hash of each one its user approved in
//! its `config.toml`, and skips the rest in silence. Only read here, never written: approving is
//! the user's.

use std::{fmt::Write as _, path::Path};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::merge::Entry;

/// What Codex waits for a hook that does not say.
const TIMEOUT_S: u64 = 600;

/// The events of entries that Codex would skip, by its `config.toml` and the path of the file with
/// its hooks.
///
/// # Errors
///
/// Fails if the file is no TOML, with what is wrong.
pub fn untrusted(config: &str, hooks: &Path, entries: &[Entry]) -> Result<Vec<String>, String> {
    let config: toml::Table = config.parse().map_err(|err: toml::de::Error| {
        let line = err.span().map_or(1, |span| config[..span.start].matches('\n').count() + 1);
        format!("line {line}: {}", err.message())
    })?;
    let state = config.get("hooks").and_then(|hooks| hooks.get("state"));
    let real = std::fs::canonicalize(hooks).ok();
    let is_trusted = |entry: &&Entry| {
        let paths = [Some(hooks), real.as_deref()];
        paths.iter().flatten().any(|path| {
            let (group, index) = entry.place;
            let key = format!("{}:{}:{group}:{index}", path.display(), snake(&entry.event));
            let known = state.and_then(|state| state.get(&key)?.get("trusted_hash")?.as_str());
            known == Some(&*hash(entry))
        })
    };
    let skipped = entries.iter().filter(|entry| !is_trusted(entry));
    Ok(skipped.map(|entry| entry.event.clone()).collect())
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

/// The hash Codex 0.169 takes of a hook: of JSON without blanks, its keys in order.
fn hash(entry: &Entry) -> String {
    let timeout = entry.timeout.unwrap_or(TIMEOUT_S);
    let hook = json!({
        "async": false,
        "command": entry.command,
        "timeout": timeout,
        "type": "command",
    });
    let mut whole = json!({ "event_name": snake(&entry.event), "hooks": [hook] });
    if let Some(matcher) = &entry.matcher {
        whole["matcher"] = Value::from(matcher.as_str());
    }
    let digest = Sha256::digest(whole.to_string());
    digest.iter().fold("sha256:".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes every write");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_command_is_no_longer_trusted() {
        let entry = Entry {
            event: "PreToolUse".to_owned(),
            command: "/opt/turnback hook --agent codex".to_owned(),
            program: "/opt/turnback".into(),
            timeout: Some(30),
            matcher: Some("*".to_owned()),
            place: (1, 0),
        };
        let config = format!(
            "model = 1\n[hooks.state.\"/c/hooks.json:pre_tool_use:1:0\"]\ntrusted_hash = {:?}\n",
            hash(&entry)
        );
        let hooks = Path::new("/c/hooks.json");
        let skipped = |entry: &Entry| untrusted(&config, hooks, std::slice::from_ref(entry));
        assert_eq!(skipped(&entry), Ok(Vec::new()));
        let moved = Entry { command: "/new/turnback hook --agent codex".to_owned(), ..entry };
        assert_eq!(skipped(&moved), Ok(vec!["PreToolUse".to_owned()]));
        assert!(untrusted("a = 1\nb", hooks, &[]).unwrap_err().starts_with("line 2: "));
    }
}
