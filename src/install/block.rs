//! Our lines at the end of a settings file that is no JSON, between two comments by which they are
//! found again. Pure: text to text.

use serde_json::{Map, Value};

use super::{
    jsonc::JsonError,
    line,
    merge::{Entries, HookEntry, changed_key, fill},
    program::{OurPrograms, ProgramPath},
    trust::{disapprove, table},
};
use crate::agent::HookTemplate;

const BEGIN: &str = "# beforehand begins; `beforehand uninstall` takes this out";
const END: &str = "# beforehand ends";

/// What kind of file it is, and so what our lines are.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlockFormat {
    /// Codex's `config.toml`, for users who have their hooks there. The entries are the same as
    /// in its JSON.
    Toml(Entries<'static>),
    /// Hermes's `config.yaml`.
    Yaml {
        /// As in `--agent NAME`.
        agent: &'static str,
        /// The hooks of the agent.
        hooks: &'static HookTemplate,
    },
    /// A list of hooks in TOML.
    TomlList {
        /// As in `--agent NAME`.
        agent: &'static str,
        /// The hooks of the agent.
        hooks: &'static HookTemplate,
        /// The key of an entry that names its event.
        event_key: &'static str,
    },
}

impl BlockFormat {
    /// The text with our lines in it.
    pub(super) fn put(&self, text: &str, program: &ProgramPath) -> Result<String, JsonError> {
        let rest = without(text)?;
        self.check(&rest)?;
        let newline = if rest.contains("\r\n") { "\r\n" } else { "\n" };
        let lines = self.lines(program).replace('\n', newline);
        let gap = if rest.is_empty() || rest.ends_with('\n') { "" } else { newline };
        let whole = format!("{rest}{gap}{BEGIN}{newline}{lines}{END}{newline}");
        match self {
            Self::Toml(_) | Self::TomlList { .. } => drop(table(&whole)?),
            Self::Yaml { .. } => {}
        }
        // Where it already stands, it stays.
        Ok(if inner(text).is_some_and(|old| old == lines) { text.to_owned() } else { whole })
    }

    /// The text without anything of ours.
    pub(super) fn take(text: &str) -> Result<String, JsonError> {
        without(text).map(|rest| disapprove(&rest))
    }

    /// Refuses what our lines cannot be added to.
    fn check(&self, text: &str) -> Result<(), JsonError> {
        match self {
            Self::Toml(_) | Self::TomlList { .. } => table(text).map(drop),
            Self::Yaml { .. } => check_yaml(text),
        }
    }

    /// The lines with every hook, which run this program.
    pub(super) fn lines(&self, program: &ProgramPath) -> String {
        match self {
            Self::Toml(entries) => toml_lines(&entries.wanted(program)["hooks"]),
            Self::Yaml { agent, hooks } => {
                let mut text = "hooks:\n".to_owned();
                for event in hooks.events {
                    text.push_str(&format!("  {event}:\n"));
                    for (at, (key, value)) in filled(hooks, event, agent, program).enumerate() {
                        let lead = if at == 0 { "- " } else { "  " };
                        text.push_str(&format!("    {lead}{key}: {value}\n"));
                    }
                }
                text
            }
            Self::TomlList { agent, hooks, .. } => {
                let mut text = String::new();
                for event in hooks.events {
                    text.push_str("[[hooks]]\n");
                    for (key, value) in filled(hooks, event, agent, program) {
                        // Plain strings and numbers are written the same in JSON, YAML and TOML.
                        text.push_str(&format!("{key} = {value}\n"));
                    }
                }
                text
            }
        }
    }

    /// Every entry of ours.
    pub(super) fn look(&self, text: &str, ours: &OurPrograms) -> Result<Vec<HookEntry>, JsonError> {
        if let Self::Toml(entries) = self {
            let hooks = table(text)?.remove("hooks");
            let json = serde_json::json!({ "hooks": hooks }).to_string();
            return if hooks_are_there(text) { entries.look(&json, ours) } else { Ok(Vec::new()) };
        }
        let wanted = self.wanted();
        let found = self.items(text)?;
        Ok(found.iter().filter_map(|item| item.entry(self.agent(), &wanted, ours)).collect())
    }

    /// The events we ask for.
    pub(super) fn events(&self) -> Vec<String> {
        match self {
            Self::Toml(entries) => entries.events(),
            Self::Yaml { .. } | Self::TomlList { .. } => {
                self.wanted().into_iter().map(|item| item.event).collect()
            }
        }
    }

    /// As in `--agent NAME`.
    fn agent(&self) -> &'static str {
        match self {
            Self::Toml(entries) => entries.agent,
            Self::Yaml { agent, .. } | Self::TomlList { agent, .. } => agent,
        }
    }

    /// The hooks of the agent.
    fn wanted(&self) -> Vec<ListedHook> {
        match self {
            Self::Toml(_) => Vec::new(),
            Self::Yaml { hooks, .. } | Self::TomlList { hooks, .. } => {
                let wanted = hooks.events.iter().enumerate().map(|(at, event)| ListedHook {
                    event: (*event).to_owned(),
                    keys: hooks.hook(event).into(),
                    at,
                });
                wanted.collect()
            }
        }
    }

    /// Every hook of a file with a list of hooks for each event, or one for all events.
    fn items(&self, text: &str) -> Result<Vec<ListedHook>, JsonError> {
        match self {
            Self::Toml(_) => Ok(Vec::new()),
            Self::Yaml { .. } => Ok(yaml_hooks(text)),
            Self::TomlList { event_key, .. } => toml_hooks(text, event_key),
        }
    }
}

/// One hook of a list.
struct ListedHook {
    event: String,
    /// All its keys.
    keys: Value,
    /// Its place in the list.
    at: usize,
}

impl ListedHook {
    fn command(&self) -> String {
        self.keys["command"].as_str().unwrap_or_default().to_owned()
    }

    /// The hook as an entry, compared with ours for the same event; `None` if it is not ours.
    fn entry(&self, agent: &str, wanted: &[Self], ours: &OurPrograms) -> Option<HookEntry> {
        let wanted = wanted.iter().find(|wanted| wanted.event == self.event);
        let command = self.command();
        Some(HookEntry {
            event: self.event.clone(),
            program: line::program_in(&command, agent, ours)?,
            command,
            timeout: self.keys["timeout"].as_u64(),
            matcher: None,
            changed: wanted.and_then(|wanted| changed_key(&self.keys, &self.keys, &wanted.keys)),
            place: (self.at, 0),
        })
    }
}

/// The hooks of a list of tables called `hooks`.
fn toml_hooks(text: &str, event_key: &str) -> Result<Vec<ListedHook>, JsonError> {
    let hooks = table(text)?.remove("hooks");
    let hooks = serde_json::to_value(hooks).expect("TOML is JSON");
    let items = hooks.as_array().into_iter().flatten().enumerate();
    let hooks = items.map(|(at, keys)| {
        let event = keys[event_key].as_str().unwrap_or_default().to_owned();
        ListedHook { event, keys: keys.clone(), at }
    });
    Ok(hooks.collect())
}

/// The hooks in block style below the names of their events. Without a parser for YAML, others are not
/// found.
fn yaml_hooks(text: &str) -> Vec<ListedHook> {
    let mut event = String::new();
    let mut hooks: Vec<ListedHook> = Vec::new();
    let mut item_indent = None;
    for line in text.lines() {
        let bare = line.trim();
        let indent = line.len() - line.trim_start().len();
        let key = match bare.strip_prefix("- ") {
            Some(first) => {
                item_indent = Some(indent);
                let keys = Value::Object(Map::new());
                hooks.push(ListedHook { event: event.clone(), keys, at: hooks.len() });
                first
            }
            None if item_indent.is_some_and(|item| indent > item) => bare,
            None => {
                item_indent = None;
                if let Some(name) = bare.strip_suffix(':') {
                    name.clone_into(&mut event);
                }
                continue;
            }
        };
        if let Some((name, value)) = key.split_once(": ")
            && let Some(hook) = hooks.last_mut()
        {
            let value = value.trim();
            hook.keys[name.trim()] =
                serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        }
    }
    hooks
}

/// The keys of the hook for one event.
fn filled(
    hooks: &HookTemplate,
    event: &str,
    agent: &str,
    program: &ProgramPath,
) -> impl Iterator<Item = (String, Value)> {
    hooks.hook(event).into_iter().map(|(key, mut value)| {
        fill(&mut value, &key, agent, program);
        (key, value)
    })
}

/// The text without our lines. Codex, which puts what it adds before the last comment of a file,
/// may have put something between them: that stays.
fn without(text: &str) -> Result<String, JsonError> {
    let Some(start) = text.find(BEGIN) else { return Ok(text.to_owned()) };
    let end = text[start..].find(END).map(|end| start + end + END.len());
    let end = end.ok_or_else(|| JsonError::at(text, start, "our lines have no end"))?;
    let rest = &text[end..];
    let rest = rest.strip_prefix("\r\n").or(rest.strip_prefix('\n')).unwrap_or(rest);
    let foreign = inner(text).map_or("", foreign);
    Ok(format!("{}{foreign}{rest}", &text[..start]))
}

/// Tables between our comments that are not ours; they can only be at the end.
fn foreign(inner: &str) -> &str {
    let mut at = 0;
    for line in inner.split_inclusive('\n') {
        if line.starts_with('[') && !line.starts_with("[[hooks.") && !line.starts_with("[[hooks]]")
        {
            return &inner[at..];
        }
        at += line.len();
    }
    ""
}

/// Whether any hooks are in a `config.toml`, and not only what Codex remembers of them.
pub(super) fn hooks_are_there(text: &str) -> bool {
    let hooks = table(text).ok().and_then(|mut table| table.remove("hooks"));
    let hooks = hooks.as_ref().and_then(toml::Value::as_table);
    hooks.is_some_and(|hooks| hooks.values().any(toml::Value::is_array))
}

/// What is between our comments.
fn inner(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(BEGIN)?;
    let (lines, _) = rest.split_once(END)?;
    lines.strip_prefix("\r\n").or(lines.strip_prefix('\n'))
}

fn toml_lines(events: &Value) -> String {
    let mut text = String::new();
    for (event, groups) in events.as_object().into_iter().flatten() {
        for group in groups.as_array().into_iter().flatten() {
            text.push_str(&format!("[[hooks.{event}]]\n"));
            if let Some(matcher) = group.get("matcher") {
                text.push_str(&format!("matcher = {matcher}\n"));
            }
            for hook in group["hooks"].as_array().into_iter().flatten() {
                text.push_str(&format!("[[hooks.{event}.hooks]]\n"));
                for (key, value) in hook.as_object().into_iter().flatten() {
                    text.push_str(&format!("{key} = {value}\n"));
                }
            }
        }
    }
    text
}

/// Without a parser for YAML: one document, a mapping in block style, without `hooks` of its own.
fn check_yaml(text: &str) -> Result<(), JsonError> {
    let mut at = 0;
    let mut is_first = true;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        let is_told = !bare.is_empty() && !bare.trim_start().starts_with('#');
        let is_start = is_first && bare == "---";
        if is_told && !is_start && !line.starts_with([' ', '\t', '-', ']', '}']) {
            let key = bare.split(':').next().unwrap_or_default().trim_matches(['"', '\'', ' ']);
            if key == "hooks" {
                let why = "`hooks` is there already; merge hooks/hermes.yaml into it by hand";
                return Err(JsonError::at(text, at, why));
            }
            if !bare.contains(':') || bare.starts_with(['{', '[', '%', '&', '!', '|', '>', '?']) {
                return Err(JsonError::at(text, at, "not a plain mapping"));
            }
        } else if is_told && !is_start && (is_first || bare.starts_with("---")) {
            return Err(JsonError::at(text, at, "not one plain mapping"));
        }
        if bare == "..." || bare.contains('\0') {
            return Err(JsonError::at(text, at, "not one plain mapping"));
        }
        is_first &= !is_told;
        at += line.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{super::rows::Edit, *};

    /// The lines of one agent in a file of the user's.
    fn block(agent: &str) -> BlockFormat {
        let row = super::super::ROWS.iter().find(|row| row.agent == agent).unwrap();
        let edits = row.user.iter().map(|file| row.edit(file));
        let mut blocks = edits.filter_map(|edit| match edit {
            Edit::Lines(block) => Some(block),
            Edit::Merge(_) | Edit::HookDir(_) | Edit::Whole(_) | Edit::Script(_) => None,
        });
        blocks.next().unwrap()
    }

    fn program(path: &str) -> ProgramPath {
        ProgramPath::new(Path::new(path)).unwrap()
    }

    /// The program of every hook in our lines.
    fn program_of(text: &str) -> std::path::PathBuf {
        let found = block("hermes").look(text, &OurPrograms::default()).unwrap();
        let events: Vec<_> = found.iter().map(|entry| entry.event.clone()).collect();
        assert_eq!(events, block("hermes").events());
        assert!(found.iter().all(|entry| entry.changed.is_none() && entry.timeout == Some(30)));
        found[0].program.clone()
    }

    #[test]
    fn our_lines_go_to_the_end_and_come_out_again() {
        for text in ["", "---\nmodel: x # y\nlist:\n- a\nmore:\n  hooks: 1\n", "a: 1\r\n"] {
            let new = block("hermes").put(text, &program("/opt/it's/beforehand")).unwrap();
            assert!(new.starts_with(text));
            assert_eq!(program_of(&new), Path::new("/opt/it's/beforehand"));
            assert_eq!(block("hermes").put(&new, &program("/opt/it's/beforehand")).unwrap(), new);
            assert_eq!(BlockFormat::take(&new).unwrap(), text);
            let moved = block("hermes").put(&new, &program("/new/beforehand")).unwrap();
            assert_eq!(program_of(&moved), Path::new("/new/beforehand"));
            assert_eq!(BlockFormat::take(&moved).unwrap(), text);
        }
    }

    #[test]
    fn hooks_in_toml_stay_beside_ours() {
        let text = "model = \"o\"\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\n\
                    command = \"lint\" # mine\n\n[other]\na = 1\n";
        let new = block("codex").put(text, &program("/opt/my own/beforehand")).unwrap();
        let found = block("codex").look(&new, &OurPrograms::default()).unwrap();
        assert_eq!(found.len(), block("codex").events().len());
        let before = found.iter().find(|entry| entry.event == "PreToolUse").unwrap();
        assert_eq!(before.place, (1, 0));
        assert_eq!(block("codex").put(&new, &program("/opt/my own/beforehand")).unwrap(), new);
        assert_eq!(BlockFormat::take(&new).unwrap(), text);
        assert!(hooks_are_there(text));
        assert!(!hooks_are_there("[hooks.state.\"x\"]\ntrusted_hash = \"y\"\n"));
        assert!(block("codex").look("a = 1", &OurPrograms::default()).unwrap().is_empty());
    }

    #[test]
    fn what_codex_put_between_our_lines_stays() {
        let new = block("codex").put("a = 1\n", &program("/t/beforehand")).unwrap();
        let project = "[projects.\"/p\"]\ntrust_level = \"trusted\"\n";
        let moved = new.replace(END, &format!("{project}{END}"));
        assert_eq!(BlockFormat::take(&moved).unwrap(), format!("a = 1\n{project}"));
    }

    #[test]
    fn what_cannot_be_added_to_is_refused_with_its_line() {
        for (text, line) in [
            ("a: 1\nhooks:\n  x: 1\n", 2),
            ("a: 1\n\"hooks\" : {}\n", 2),
            ("{a: 1}\n", 1),
            ("- a\n", 1),
            ("# x\n  a: 1\n", 2),
            ("a: 1\n---\nb: 1\n", 2),
            ("a: 1\n...\n", 2),
            ("word\n", 1),
        ] {
            assert_eq!(
                block("hermes").put(text, &program("/t/beforehand")).unwrap_err().line,
                line,
                "{text}"
            );
        }
        for (text, line) in [("a = 1\nb\n", 2), ("[hooks]\nPreToolUse = []\n", 3)] {
            let fault = block("codex").put(text, &program("/t/beforehand")).unwrap_err();
            assert!(fault.line >= line, "{text}: {fault}");
        }
    }
}
