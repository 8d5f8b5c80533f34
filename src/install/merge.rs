//! Our entries in a settings file of the user's: put in, brought up to date, taken out.
//! Pure: text to text.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{
    edit::{JsonLayout, append, remove, retell},
    jsonc::{Document, JsonError, JsonItem, JsonKind, JsonNode, parse},
    line,
    program::{OurPrograms, ProgramPath},
};
use crate::agent::HookTemplate;

/// Where a command stands in an entry.
const COMMAND_KEYS: &[&str] = &["command", "bash", "powershell"];

/// What we have in a settings file of one agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries<'a> {
    /// As in `--agent NAME`.
    pub(super) agent: &'a str,
    /// The hooks of the agent.
    pub(super) hooks: &'a HookTemplate,
    /// The key that holds the events; `None` if they are at the top.
    pub(super) holder: Option<&'a str>,
    /// Events that the agent here does not know yet.
    pub(super) left_out: &'a [&'a str],
}

/// A setting without which an agent does not read our hooks: their directory, or their plugin.
#[derive(Clone, Copy, Debug)]
pub(super) struct HookDirSetting {
    /// The keys that lead to it. All but the last are of objects.
    pub(super) path: &'static [&'static str],
    /// Its value, as JSON.
    pub(super) value: &'static str,
}

/// One entry of ours as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookEntry {
    /// The event it is for.
    pub event: String,
    /// The command as it is written.
    pub command: String,
    /// The program it runs.
    pub program: PathBuf,
    /// How long the agent waits, in the agent's own unit.
    pub timeout: Option<u64>,
    /// The matcher of its group.
    pub matcher: Option<String>,
    /// The first key by which it differs from our own entry, so that the agent may not run it before
    /// every call, or not wait for it.
    pub changed: Option<String>,
    /// Which group of the event it is in, and its place there.
    pub place: (usize, usize),
}

impl Entries<'_> {
    /// The settings with the program in them.
    pub(super) fn wanted(&self, program: &ProgramPath) -> Value {
        let mut value = self.parsed();
        fill(&mut value, "", self.agent, program);
        value
    }

    /// The settings without the program, and without the events that are left out.
    fn parsed(&self) -> Value {
        self.hooks.settings(self.holder, self.left_out)
    }

    fn holder_of<'a>(&self, root: &'a JsonNode) -> Option<&'a JsonNode> {
        self.holder.map_or(Some(root), |key| root.get(key))
    }

    /// Refuses what we could add to, but the agent itself throws away: Claude Code ignores a file
    /// with a comment in it, hooks and all, without a word (2.1.329, run).
    pub(super) fn check_dialect(&self, text: &str) -> Result<(), JsonError> {
        if self.agent != "claude-code" || is_blank(text) {
            return Ok(());
        }
        let text = text.trim_start_matches('\u{feff}');
        serde_json::from_str::<serde::de::IgnoredAny>(text).map(drop).map_err(|err| JsonError {
            line: err.line(),
            why: "Claude Code reads no comments and no trailing commas, and ignores the whole file"
                .to_owned(),
        })
    }

    /// The text with our entries in it, all with this program.
    pub(super) fn put(
        &self,
        text: &str,
        program: &ProgramPath,
        ours: &OurPrograms,
    ) -> Result<String, JsonError> {
        // What was just put in must be known again: otherwise it would be put in for ever.
        let ours = &ours.and(program);
        let wanted = self.wanted(program);
        if is_blank(text) {
            let mut text = serde_json::to_string_pretty(&wanted).expect("JSON serializes");
            text.push('\n');
            return Ok(text);
        }
        let mut text = text.to_owned();
        loop {
            let document = parse(&text)?;
            self.check(&text, &document)?;
            match self.next(&text, &document, &wanted, program, ours) {
                Some(changed) => text = changed,
                None => return Ok(text),
            }
        }
    }

    /// Refuses what has another shape than the agent expects.
    fn check(&self, text: &str, document: &Document) -> Result<(), JsonError> {
        let root = &document.root;
        object(text, root, "the file")?;
        if let Some(key) = self.holder {
            single(text, root, key)?;
        }
        let Some(holder) = self.holder_of(root) else { return Ok(()) };
        object(text, holder, &format!("`{}`", self.holder.unwrap_or_default()))?;
        let wanted = self.parsed();
        for event in events(&wanted, self.holder).keys() {
            single(text, holder, event)?;
            if let Some(found) = holder.get(event)
                && !matches!(found.kind, JsonKind::Array(_))
            {
                return Err(JsonError::at(
                    text,
                    found.span.start,
                    format!("`{event}` is no array"),
                ));
            }
        }
        Ok(())
    }

    /// The text with one more thing right; `None` if all is.
    fn next(
        &self,
        text: &str,
        document: &Document,
        wanted: &Value,
        program: &ProgramPath,
        ours: &OurPrograms,
    ) -> Option<String> {
        let root = &document.root;
        let layout = JsonLayout::of(text, document);
        let other = |key: &&String| Some(key.as_str()) != self.holder && self.holder.is_some();
        let tops = wanted.as_object()?;
        if let Some(key) = tops.keys().filter(other).find(|key| root.get(key).is_none()) {
            return Some(append(&layout, root, Some(key), &tops[key]));
        }
        let Some(holder) = self.holder_of(root) else {
            let key = self.holder?;
            return Some(append(&layout, root, Some(key), &tops[key]));
        };
        if let Some(changed) = self.renew(text, holder, program, ours) {
            return Some(changed);
        }
        let found = self.found(holder, ours);
        let events = events(wanted, self.holder);
        let (event, groups) =
            events.iter().find(|(event, _)| !found.iter().any(|entry| entry.event == **event))?;
        match holder.get(event) {
            None => Some(append(&layout, holder, Some(event), groups)),
            Some(array) => Some(append(&layout, array, None, groups.get(0)?)),
        }
    }

    /// The text with one entry of ours that runs another program brought up to date.
    fn renew(
        &self,
        text: &str,
        holder: &JsonNode,
        program: &ProgramPath,
        ours: &OurPrograms,
    ) -> Option<String> {
        leaves(holder, self.agent, ours).into_iter().find_map(|chain| {
            let leaf = node_at(holder, &chain);
            let mut keys = COMMAND_KEYS.iter().filter_map(|key| Some((*key, leaf.get(key)?)));
            keys.find_map(|(key, node)| {
                let command = node.text()?;
                let told = line::line(program, self.agent, key);
                (line::program_in(command, self.agent, ours).is_some() && command != told)
                    .then(|| retell(text, node, &told))
            })
        })
    }

    /// The text without our entries, and without what held nothing else.
    pub(super) fn take(&self, text: &str, ours: &OurPrograms) -> Result<String, JsonError> {
        let mut text = text.to_owned();
        loop {
            if is_blank(&text) {
                return Ok(text);
            }
            let document = parse(&text)?;
            let Some(holder) = self.holder_of(&document.root) else { return Ok(text) };
            let Some(chain) = leaves(holder, self.agent, ours).pop() else { return Ok(text) };
            let at = self.holder.and_then(|key| document.root.members(key).next());
            let whole: Vec<usize> = at.into_iter().chain(chain).collect();
            text = without(&text, &document, whole);
        }
    }

    /// Every entry of ours.
    ///
    /// # Errors
    ///
    /// Fails if it is no JSON.
    pub(super) fn look(&self, text: &str, ours: &OurPrograms) -> Result<Vec<HookEntry>, JsonError> {
        if is_blank(text) {
            return Ok(Vec::new());
        }
        let document = parse(text)?;
        Ok(self
            .holder_of(&document.root)
            .map(|holder| self.found(holder, ours))
            .unwrap_or_default())
    }

    fn found(&self, holder: &JsonNode, ours: &OurPrograms) -> Vec<HookEntry> {
        let wanted = self.parsed();
        let entry = |chain: Vec<usize>| {
            let leaf = node_at(holder, &chain);
            let mut commands = COMMAND_KEYS.iter().filter_map(|key| leaf.get(key)?.text());
            let (command, program) = commands
                .find_map(|text| Some((text, line::program_in(text, self.agent, ours)?)))?;
            let event = &holder.items()[*chain.first()?].key;
            let group = node_at(holder, chain.get(..2)?);
            let timeout =
                ["timeout", "timeoutSec", "timeout_ms"].iter().find_map(|key| leaf.get(key));
            Some(HookEntry {
                event: event.clone(),
                command: command.to_owned(),
                program,
                timeout: timeout.and_then(|node| node.to_value().as_u64()),
                matcher: group.get("matcher").and_then(JsonNode::text).map(str::to_owned),
                changed: self.other_command(leaf, ours).or_else(|| {
                    let groups = events(&wanted, self.holder).get(event)?;
                    changed_key(&group.to_value(), &leaf.to_value(), groups)
                }),
                place: (chain[1], chain.get(3).copied().unwrap_or(0)),
            })
        };
        leaves(holder, self.agent, ours).into_iter().filter_map(entry).collect()
    }

    /// The key of a command that is not ours in an entry that has one of ours: which of them the agent
    /// runs depends on the system.
    fn other_command(&self, leaf: &JsonNode, ours: &OurPrograms) -> Option<String> {
        let mut keys = COMMAND_KEYS.iter().filter(|key| {
            let text = leaf.get(key).and_then(JsonNode::text);
            text.is_some_and(|text| line::program_in(text, self.agent, ours).is_none())
        });
        keys.next().map(|key| (*key).to_owned())
    }

    /// Whether nothing is left but what we would write around our entries.
    pub(super) fn is_bare(&self, text: &str) -> bool {
        let Ok(document) = parse(text) else { return false };
        let wanted = self.parsed();
        let is_ours = |item: &JsonItem| wanted.get(&item.key) == Some(&item.value.to_value());
        matches!(document.root.kind, JsonKind::Object(_))
            && document.root.items().iter().all(is_ours)
    }

    /// The events we ask for.
    pub(super) fn events(&self) -> Vec<String> {
        let wanted = self.parsed();
        events(&wanted, self.holder).keys().cloned().collect()
    }
}

impl HookDirSetting {
    /// The text with the setting in it.
    pub(super) fn put(&self, text: &str) -> Result<String, JsonError> {
        if is_blank(text) {
            let whole = self.below(0);
            let text = serde_json::to_string_pretty(&whole).expect("JSON serializes");
            return Ok(text + "\n");
        }
        let document = parse(text)?;
        let layout = JsonLayout::of(text, &document);
        let mut node = &document.root;
        let mut name = "the file".to_owned();
        for (depth, key) in self.path.iter().enumerate() {
            object(text, node, &name)?;
            single(text, node, key)?;
            let Some(inner) = node.get(key) else {
                return Ok(append(&layout, node, Some(key), &self.below(depth + 1)));
            };
            if depth + 1 == self.path.len() && !covers(&inner.to_value(), &self.wanted()) {
                let why = format!("`{key}` has another value in {name}");
                return Err(JsonError::at(text, inner.span.start, why));
            }
            name = format!("`{key}`");
            node = inner;
        }
        Ok(text.to_owned())
    }

    /// The text without it, and without objects that held nothing else.
    pub(super) fn take(&self, text: &str) -> Result<String, JsonError> {
        if is_blank(text) {
            return Ok(text.to_owned());
        }
        let document = parse(text)?;
        let chain = self.chain(&document.root);
        Ok(chain.map_or_else(|| text.to_owned(), |chain| without(text, &document, chain)))
    }

    /// Whether the agent reads our hooks.
    pub(super) fn is_set(&self, text: &str) -> Result<bool, JsonError> {
        Ok(!is_blank(text) && self.chain(&parse(text)?.root).is_some())
    }

    /// Where it is, if it is set.
    fn chain(&self, root: &JsonNode) -> Option<Vec<usize>> {
        let mut chain = Vec::with_capacity(self.path.len());
        let mut node = root;
        for key in self.path {
            let at = node.members(key).next()?;
            chain.push(at);
            node = &node.items()[at].value;
        }
        covers(&node.to_value(), &self.wanted()).then_some(chain)
    }

    fn wanted(&self) -> Value {
        serde_json::from_str(self.value).expect("a test reads every setting")
    }

    /// The setting with the keys that lead to it, from one of them on.
    fn below(&self, depth: usize) -> Value {
        let keys = self.path[depth..].iter().rev();
        keys.fold(self.wanted(), |value, key| json!({ *key: value }))
    }
}

/// Whether a value has all that is wanted; an agent may have added to an object.
fn covers(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| value.get(key).is_some_and(|value| covers(value, wanted))),
        _ => value == wanted,
    }
}

/// Whether a file is there with nothing in it.
fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}

fn object(text: &str, node: &JsonNode, name: &str) -> Result<(), JsonError> {
    match node.kind {
        JsonKind::Object(_) => Ok(()),
        JsonKind::Array(_) | JsonKind::Text(_) | JsonKind::Other(_) => {
            Err(JsonError::at(text, node.span.start, format!("{name} is no object")))
        }
    }
}

fn single(text: &str, node: &JsonNode, key: &str) -> Result<(), JsonError> {
    match node.members(key).nth(1) {
        Some(second) => {
            let start = node.items()[second].start;
            Err(JsonError::at(text, start, format!("`{key}` is there twice")))
        }
        None => Ok(()),
    }
}

fn events<'a>(wanted: &'a Value, holder: Option<&str>) -> &'a serde_json::Map<String, Value> {
    let events = holder.map_or(Some(wanted), |key| wanted.get(key)).and_then(Value::as_object);
    events.expect("events are an object")
}

/// Keys of an entry that change nothing of when it runs: its command and timeout are judged by themselves,
/// the others are for people.
const KEYS_ASIDE: &[&str] = &[
    "command", "bash", "powershell", "timeout", "timeoutSec", "timeout_ms", "name", "description",
    "statusMessage", "hooks",
];

/// The first key by which an entry, or the group around it, differs from the template's. A matcher that
/// matches everything is as good as none, and so is a switch that is on.
pub(super) fn changed_key(group: &Value, leaf: &Value, template: &Value) -> Option<String> {
    let wanted_group = template.get(0).unwrap_or(template);
    let wanted_leaf =
        wanted_group.get("hooks").and_then(|hooks| hooks.get(0)).unwrap_or(wanted_group);
    for (found, wanted) in [(group, wanted_group), (leaf, wanted_leaf)] {
        for (key, value) in found.as_object().into_iter().flatten() {
            let changes_nothing = match key.as_str() {
                "matcher" | "match" => matches!(value.as_str(), Some("" | "*" | ".*")),
                "enabled" => value == true,
                "disabled" => value == false,
                other => KEYS_ASIDE.contains(&other),
            };
            if !changes_nothing && wanted.get(key) != Some(value) {
                return Some(key.clone());
            }
        }
    }
    None
}

/// Puts the lines that run a program into hooks.
pub(super) fn fill(value: &mut Value, key: &str, agent: &str, program: &ProgramPath) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                fill(value, key, agent, program);
            }
        }
        Value::Array(items) => {
            for value in items {
                fill(value, key, agent, program);
            }
        }
        Value::String(text) if text == HookTemplate::LINE => {
            *text = line::line(program, agent, key);
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => (),
    }
}

/// Where entries of ours are below `holder`: event, group, and within the group its `hooks` and
/// the place there, if the agent's shape has them.
fn leaves(holder: &JsonNode, agent: &str, ours: &OurPrograms) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    let is_ours = |node: &JsonNode| {
        let mut commands = COMMAND_KEYS.iter().filter_map(|key| node.get(key)?.text());
        commands.any(|text| line::program_in(text, agent, ours).is_some())
    };
    let arrays = holder.items().iter().enumerate();
    for (event, array) in arrays.filter(|(_, item)| matches!(item.value.kind, JsonKind::Array(_))) {
        for (group, item) in array.value.items().iter().enumerate() {
            if is_ours(&item.value) {
                found.push(vec![event, group]);
            }
            for hooks in item.value.members("hooks") {
                let inner = item.value.items()[hooks].value.items().iter().enumerate();
                let inner = inner.filter(|(_, item)| is_ours(&item.value));
                found.extend(inner.map(|(leaf, _)| vec![event, group, hooks, leaf]));
            }
        }
    }
    found
}

fn node_at<'a>(root: &'a JsonNode, chain: &[usize]) -> &'a JsonNode {
    chain.iter().fold(root, |node, at| &node.items()[*at].value)
}

/// The text without what the chain leads to. What then holds nothing goes with it, up to the top.
fn without(text: &str, document: &Document, mut chain: Vec<usize>) -> String {
    let root = &document.root;
    while chain.len() > 1 {
        let above = node_at(root, &chain[..chain.len() - 1]);
        let is_group = chain.len() > 2
            && matches!(above.kind, JsonKind::Object(_))
            && matches!(node_at(root, &chain[..chain.len() - 2]).kind, JsonKind::Array(_));
        // Comments of the user's in an otherwise empty place are worth keeping the place for.
        let is_emptied = above.items().len() == 1 && !has_comment(text, above);
        if !is_group && !is_emptied {
            break;
        }
        chain.pop();
    }
    let at = chain.pop().expect("a chain has a leaf");
    remove(text, document, node_at(root, &chain), at)
}

/// Whether anything but blanks and a comma stands around the only item of a container.
fn has_comment(text: &str, container: &JsonNode) -> bool {
    let Some(JsonItem { start, value, .. }) = container.items().first() else { return false };
    let around =
        [&text[container.span.start + 1..*start], &text[value.span.end..container.span.end - 1]];
    around.iter().any(|part| part.contains('/'))
}
