//! The files in `hooks/` speak of agents and events that we understand.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::*;

/// Every file below a directory of the project.
fn files(dir: &str) -> Vec<PathBuf> {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(dir)];
    let mut files = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The agent that a hook line names.
fn agent_in(text: &str) -> Option<&str> {
    text.split_once("hook --agent ")?
        .1
        .split(|char: char| char != '-' && !char.is_alphanumeric())
        .next()
}

/// Every event with the agent it is registered for: the innermost key above a hook line that is
/// an event's, not a part of its entry.
fn events(value: &Value, event: &str, found: &mut Vec<(String, String)>) {
    const PARTS: &[&str] = &["hooks", "command", "bash", "powershell", "turnback"];
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            let event = if PARTS.contains(&key.as_str()) { event } else { key };
            events(value, event, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| events(item, event, found)),
        Value::String(text) => {
            found.extend(agent_in(text).map(|agent| (agent.to_owned(), event.to_owned())));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Payloads of an agent for an event: those on record, or any other renamed to it.
fn payloads(agent: &str, event: &str) -> Vec<Vec<u8>> {
    let all = files(&format!("fixtures/payloads/{agent}"));
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let of_event = |path: &&PathBuf| {
        name(path).split(['-', '.']).next() == Some(event) && !name(path).contains(".invalid")
    };
    let recorded: Vec<_> =
        all.iter().filter(of_event).map(|path| fs::read(path).unwrap()).collect();
    if !recorded.is_empty() {
        return recorded;
    }
    let renamed = all.iter().filter_map(|path| {
        let mut payload: Value = serde_json::from_slice(&fs::read(path).unwrap()).ok()?;
        let fields = ["hook_event_name", "hookEventName", "event", "agent_action_name"];
        let field = fields.iter().find(|field| payload.get(field).is_some())?;
        payload[*field] = event.into();
        Some(serde_json::to_vec(&payload).unwrap())
    });
    renamed.take(1).collect()
}

#[test]
fn every_hook_line_names_an_agent_we_speak() {
    let mut named = std::collections::BTreeSet::new();
    for path in files("hooks") {
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|_| path.extension().is_none_or(|ext| ext != "md")) {
            if let Some(agent) = agent_in(line) {
                assert!(by_name(agent).is_some(), "{}: {agent}", path.display());
                named.insert(agent.to_owned());
            }
        }
    }
    // The plugin names its agent as an array of arguments.
    named.insert("opencode".to_owned());
    for dialect in DIALECTS {
        assert!(named.contains(dialect.name()), "nothing in hooks/ for {}", dialect.name());
    }
}

#[test]
fn every_event_asked_for_is_understood() {
    let mut seen = 0;
    for path in files("hooks").iter().filter(|path| path.extension() == Some("json".as_ref())) {
        let json: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let mut found = Vec::new();
        events(&json, "", &mut found);
        assert!(!found.is_empty(), "{} registers nothing", path.display());
        for (agent, event) in found {
            let payloads = payloads(&agent, &event);
            assert!(!payloads.is_empty(), "{agent} {event}: no payload to try");
            let dialect = by_name(&agent).unwrap();
            let understood = |payload: &Vec<u8>| {
                let parsed = dialect.parse(payload, &Markers::default()).unwrap();
                EventKind::from(&parsed) != EventKind::Other
            };
            assert!(payloads.iter().any(understood), "{agent} {event}");
            seen += 1;
        }
    }
    assert!(seen > 80, "only {seen} events were tried");
}

#[test]
fn slash_commands_paste_arguments_where_nothing_reads_them() {
    for path in files("hooks/commands") {
        let text = fs::read_to_string(&path).unwrap();
        let label = path.display();
        if text.contains("$ARGUMENTS") {
            let document = "<<'TURNBACK_ARGUMENTS_b7c1e94d'\n$ARGUMENTS\nTURNBACK_END\n\
                            TURNBACK_ARGUMENTS_b7c1e94d";
            assert!(text.contains(document), "{label}");
            assert_eq!(text.matches("$ARGUMENTS").count(), 1, "{label}");
        } else {
            // Quoted by the agent, but only inside its command.
            assert!(text.contains(" -- {{args}}}"), "{label}");
        }
        if path.extension() == Some("toml".as_ref()) {
            toml::from_str::<toml::Table>(&text).unwrap();
        }
    }
}
