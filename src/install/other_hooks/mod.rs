//! Hooks of other programs that run before an agent's tools, and so may rewrite a call after ours has
//! judged it. Reads the settings of every scope that the agent reads, as far as its row lists them; runs
//! nothing.
//!
//! A settings file that cannot be read, or is larger than settings are, names no hook.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    jsonc, line,
    program::{OurPrograms, ProgramPath},
    rows::{Edit, InstallRow},
    settings::{self, NAMES_MAX},
    trust,
};
use crate::{fs::read_small, process::Process};

/// Larger than any settings a person wrote; a turn must not wait for more.
const SIZE_MAX_BYTES: u64 = 1 << 20;
/// How many hooks are reported. One is enough to distrust a call.
const HOOKS_MAX: usize = 32;
/// How much of a command is shown.
const SHOWN_CHARS: usize = 80;
/// Hooks are nested no deeper than this in settings.
const DEPTH_MAX: usize = 8;

/// Events at which an agent asks a hook about a call, in the spellings of all agents. The answer can have
/// another input.
const EVENTS: &[&str] = &[
    "PreToolUse", "preToolUse", "pre_tool_use", "pre_tool_call", "pre_tool", "BeforeTool",
    "PermissionRequest", "permissionRequest", "beforeShellExecution", "beforeMCPExecution",
    "beforeReadFile",
];

/// The keys of a hook that name its command.
const COMMAND_KEYS: &[&str] = &["command", "bash", "powershell", "exec", "url", "prompt"];

/// Agents whose hooks are plugins.
const PLUGINS: &[PluginForm] = &[
    PluginForm { agent: "opencode", event: "tool.execute.before", lists: &["plugin"] },
    PluginForm { agent: "kilo", event: "tool.execute.before", lists: &["plugin"] },
    PluginForm { agent: "pi", event: "tool_call", lists: &["packages", "extensions"] },
    PluginForm { agent: "openclaw", event: "before_tool_call", lists: &[] },
];

/// How the plugins of an agent are recognised: programs of their own, in which our hook is a call of
/// this program.
struct PluginForm {
    agent: &'static str,
    /// The hook by which a plugin changes a call.
    event: &'static str,
    /// The lists of plugins in its settings.
    lists: &'static [&'static str],
}

/// Agents whose hooks cannot rewrite a call: Windsurf and Kiro read the exit code alone, and an answer to
/// Hermes has no key for it.
const WITHOUT_REWRITES: &[&str] = &["windsurf", "kiro", "hermes"];

/// A hook of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherHook {
    /// The file that registers it.
    pub file: PathBuf,
    /// The event, as the file spells it.
    pub event: String,
    /// The start of the command; for a hook without one, its kind. Not escaped.
    pub command: String,
}

/// The hooks of other programs that the agent of `row` runs before its tools in `cwd`, according to its
/// settings.
pub fn other_hooks(row: &InstallRow, process: &Process<'_>, cwd: &Path) -> Vec<OtherHook> {
    if WITHOUT_REWRITES.contains(&row.agent) {
        return Vec::new();
    }
    let running = process.program().ok().and_then(|path| ProgramPath::new(&path).ok());
    let ours = OurPrograms::new(running.into_iter().collect());
    let mut search = HookSearch { ours, plugins: BTreeMap::new(), found: Vec::new() };
    for file in files(row, process, cwd) {
        search.look_into(row.agent, &file);
    }
    if row.agent == "claude-code"
        && let Some(dir) = row.dir(process)
    {
        search.look_into_plugins(&dir.join("plugins/installed_plugins.json"));
    }
    search.found.truncate(HOOKS_MAX);
    search.found
}

/// How many directories above the one of the call can have settings of the project.
const LEVELS_MAX: usize = 24;

/// Every file in which the agent may have hooks, once. Not all of them exist.
fn files(row: &InstallRow, process: &Process<'_>, cwd: &Path) -> BTreeSet<PathBuf> {
    let home = process.home().filter(|home| home.is_absolute());
    // Stops at the home: its settings are the user's, and a project below it has none above it.
    let levels = cwd.ancestors().take(LEVELS_MAX);
    let levels: Vec<&Path> =
        levels.take_while(|level| home.as_ref().is_none_or(|home| level != home)).collect();
    let mut files = BTreeSet::new();
    if let Some(dir) = row.hooks_dir().place(process) {
        let own = row.user.iter().filter(|file| hooks_are_in(&row.edit(file)));
        files.extend(own.map(|file| dir.join(file.path)));
    }
    for own in row.project.iter().filter(|file| hooks_are_in(&row.edit(file))) {
        let below = Path::new(row.project_dir).join(own.path);
        files.extend(levels.iter().map(|level| level.join(&below)));
    }
    let dialect = row.dialect();
    for list in [dialect.settings, dialect.hook_files] {
        for pattern in settings::patterns(list, row, process, &levels) {
            files.extend(pattern.files());
        }
    }
    files
}

fn hooks_are_in(edit: &Edit) -> bool {
    match edit {
        Edit::Merge(_) | Edit::Lines(_) => true,
        Edit::HookDir(_) | Edit::Whole(_) | Edit::Script(_) => false,
    }
}

/// A search through the files of one agent.
struct HookSearch {
    /// The programs that are beforehand.
    ours: OurPrograms,
    /// Claude Code's plugins that a settings file names, and whether any switches them on.
    plugins: BTreeMap<String, bool>,
    found: Vec<OtherHook>,
}

impl HookSearch {
    fn look_into(&mut self, agent: &str, file: &Path) {
        if agent == "cline" {
            self.script(file);
            return;
        }
        let end = file.extension().and_then(|end| end.to_str());
        let plugins = PLUGINS.iter().find(|plugins| plugins.agent == agent);
        if let Some(form) = plugins {
            if matches!(end, Some("js" | "ts" | "mjs" | "cjs")) {
                self.plugin_file(form, file);
            } else if let Some(text) = text(file) {
                self.named_plugins(form, file, &text);
            }
            return;
        }
        let Some(text) = text(file) else { return };
        // Few files name such an event at all.
        let is_named = EVENTS.iter().any(|event| text.contains(event));
        if !is_named && !text.contains("enabledPlugins") {
            return;
        }
        let Some(settings) = value(file, &text) else { return };
        if let Some(plugins) = settings.get("enabledPlugins").and_then(Value::as_object) {
            for (name, is_on) in plugins {
                let known = self.plugins.entry(name.clone()).or_default();
                *known |= is_on.as_bool() != Some(false);
            }
        }
        self.events(file, &settings, DEPTH_MAX);
    }

    /// Reads the list of Claude Code's plugins. A plugin that no settings name counts as enabled.
    fn look_into_plugins(&mut self, list: &Path) {
        let installed = text(list).and_then(|text| value(list, &text));
        let Some(Value::Object(mut list)) = installed else { return };
        let Some(Value::Object(plugins)) = list.remove("plugins") else { return };
        for (name, scopes) in plugins.into_iter().take(NAMES_MAX) {
            if self.plugins.get(&name) == Some(&false) {
                continue;
            }
            // An older list has one entry where a newer one has an array.
            let scopes = match scopes {
                Value::Array(scopes) => scopes,
                scope => vec![scope],
            };
            let places = scopes.iter().filter_map(|scope| scope.get("installPath")?.as_str());
            let places: BTreeSet<PathBuf> = places.map(PathBuf::from).collect();
            for place in places.iter().filter(|place| place.is_absolute()) {
                self.plugin(place);
            }
        }
    }

    fn plugin(&mut self, place: &Path) {
        let mut files = vec![place.join("hooks/hooks.json")];
        let manifest = place.join(".claude-plugin/plugin.json");
        if let Some(mut told) = text(&manifest).and_then(|text| value(&manifest, &text)) {
            match told.get_mut("hooks").map(Value::take) {
                Some(Value::String(name)) => files.push(place.join(name)),
                Some(Value::Array(names)) => {
                    files.extend(names.iter().filter_map(Value::as_str).map(|it| place.join(it)));
                }
                Some(inline) => self.events(&manifest, &inline, DEPTH_MAX),
                None => {}
            }
        }
        for file in files.into_iter().take(NAMES_MAX) {
            // No agent: the files of a plugin have the form that most agents share.
            self.look_into("", &file);
        }
    }

    /// Finds the events, at any depth.
    fn events(&mut self, file: &Path, value: &Value, depth: usize) {
        if depth == 0 {
            return;
        }
        match value {
            Value::Object(members) => {
                // In a list of hooks, each says at which event it runs.
                let named = ["event", "type"].iter().filter_map(|key| members.get(*key)?.as_str());
                if let Some(event) = named.into_iter().find(|name| EVENTS.contains(name)) {
                    self.hooks(file, event, value, depth);
                    return;
                }
                for (key, value) in members {
                    if EVENTS.contains(&key.as_str()) {
                        self.hooks(file, key, value, depth);
                    } else {
                        self.events(file, value, depth - 1);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.events(file, item, depth - 1);
                }
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Finds the hooks of an event, in groups or without them.
    fn hooks(&mut self, file: &Path, event: &str, value: &Value, depth: usize) {
        if depth == 0 || self.found.len() > HOOKS_MAX {
            return;
        }
        match value {
            Value::Array(items) => {
                for item in items {
                    self.hooks(file, event, item, depth - 1);
                }
            }
            Value::Object(hook) => {
                if let Some(hooks) = hook.get("hooks") {
                    self.hooks(file, event, hooks, depth - 1);
                }
                let commands = COMMAND_KEYS.iter().filter_map(|key| hook.get(*key)?.as_str());
                let commands: Vec<&str> = commands.collect();
                if commands.iter().any(|command| self.is_ours(command)) {
                    return;
                }
                // A hook without a command is a prompt, or a tool of a server.
                let kind = hook.get("type").and_then(Value::as_str);
                if let Some(command) = commands.first().copied().or(kind) {
                    self.add(file, event, command);
                }
            }
            Value::String(command) if !self.is_ours(command) => self.add(file, event, command),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Whether a line is one of ours, for any agent: agents run each other's hooks.
    fn is_ours(&self, command: &str) -> bool {
        let Some((_, rest)) = command.rsplit_once("--agent ") else { return false };
        let end = rest.find(|char: char| char != '-' && !char.is_ascii_alphanumeric());
        let agent = &rest[..end.unwrap_or(rest.len())];
        line::program_in(command, agent, &self.ours).is_some()
    }

    /// Reads a script that Cline runs. One that cannot be read counts.
    fn script(&mut self, file: &Path) {
        match read_small(file, SIZE_MAX_BYTES) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                let text = String::from_utf8_lossy(&bytes);
                if line::program_in_script(&text, "cline", &self.ours).is_none() {
                    let first =
                        text.lines().find(|line| !line.is_empty() && !line.starts_with('#'));
                    self.add(file, "PreToolUse", first.unwrap_or_default());
                }
            }
            Err(_) => self.add(file, "PreToolUse", ""),
        }
    }

    /// A file that is a plugin. One that is too large to read may have any hook.
    fn plugin_file(&mut self, form: &PluginForm, file: &Path) {
        let may_change_a_call = match text(file) {
            Some(text) => {
                let call = format!("\"hook\", \"--agent\", \"{}\"", form.agent);
                !text.contains(&call) && text.contains(form.event)
            }
            None => file.is_file(),
        };
        if may_change_a_call {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            self.add(file, form.event, &name);
        }
    }

    /// The plugins that settings name. One from a registry may have any hook.
    fn named_plugins(&mut self, form: &PluginForm, file: &Path, text: &str) {
        if !form.lists.iter().any(|list| text.contains(list)) {
            return;
        }
        let Some(settings) = value(file, text) else { return };
        let plugins = form.lists.iter().filter_map(|list| settings.get(list)?.as_array());
        for plugin in plugins.flatten().take(NAMES_MAX) {
            // With options, it is an array that begins with the name, or an object.
            let name = plugin.as_str().or_else(|| plugin.get(0)?.as_str());
            let Some(name) = name.or_else(|| plugin.get("source")?.as_str()) else { continue };
            let path = name.strip_prefix("file://").unwrap_or(name);
            let is_ours = path == "beforehand"
                || path.starts_with("beforehand@")
                || path.ends_with("/beforehand/opencode.mjs");
            if is_ours {
                continue;
            }
            if path.starts_with(['/', '.']) {
                self.plugin_file(form, &file.parent().unwrap_or(file).join(path));
            } else {
                self.add(file, "plugin", name);
            }
        }
    }

    fn add(&mut self, file: &Path, event: &str, command: &str) {
        let command = command.chars().take(SHOWN_CHARS).collect();
        self.found.push(OtherHook { file: file.to_owned(), event: event.to_owned(), command });
    }
}

/// The text of a file; `None` if it is missing, too large, or not UTF-8.
fn text(file: &Path) -> Option<String> {
    String::from_utf8(read_small(file, SIZE_MAX_BYTES).ok()??).ok()
}

/// The settings in a text, JSON with comments or TOML.
fn value(file: &Path, text: &str) -> Option<Value> {
    if file.extension().is_some_and(|end| end == "toml") {
        return serde_json::to_value(trust::table(text).ok()?).ok();
    }
    Some(jsonc::parse(text).ok()?.root.to_value())
}

#[cfg(test)]
mod tests;
