//! Switches in agents' own settings: those that keep a registered hook from running, and those by
//! which an agent answers a question for its user. Each agent's row has its files and keys; here they are
//! read. Changes nothing.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    HookEntry, HookStatus, jsonc,
    rows::{InstallRow, Site},
    settings, trust,
};
use crate::{
    agent::{Switch, SwitchValue},
    fs::read_small,
    process::Process,
    ui,
};

/// Larger than any settings a person wrote.
pub(super) const SIZE_MAX_BYTES: u64 = 2 << 20;

/// Why an agent does not run the hooks it has, and the one step that helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Off {
    /// What is in the way. Printable.
    pub message: String,
    /// What to do. Printable.
    pub hint: String,
}

/// Why the agent of `row` runs no hook of ours in the project at `root`, though `found` is there. With
/// nothing found, a package of the agent's brings them.
pub fn off(
    row: &InstallRow,
    process: &Process<'_>,
    root: Option<&Path>,
    found: &[(Site, HookStatus)],
) -> Option<Off> {
    AgentSettings::read(row, process, root).off(found)
}

/// Whether hooks of this agent can be switched off by what is written to `place`.
pub fn switches_at(process: &Process<'_>, agent: &str, root: &Path, place: &Path) -> bool {
    let Some(row) = super::ROWS.iter().find(|row| row.agent == agent) else { return false };
    let Some(name) = place.file_name() else { return false };
    // Every edit asks this, and few files have such a name.
    let files = row.dialect().settings.iter().filter(|file| settings::can_be_called(file, name));
    let patterns = settings::patterns(files, row, process, &[root]);
    patterns.iter().any(|pattern| pattern.is_at(place))
}

/// Whether an agent's settings say that it answers questions for its user.
pub fn answers_for_user(row: &InstallRow, process: &Process<'_>, root: &Path) -> bool {
    let switches = row.dialect().answers_for_user;
    if switches.is_empty() {
        return false;
    }
    let settings = AgentSettings::read(row, process, Some(root));
    switches.iter().any(|switch| settings.find(switch).is_some())
}

/// The environment variables that an agent's settings give to its hooks, each with the file that says so.
pub fn variables(
    row: &InstallRow,
    process: &Process<'_>,
    root: Option<&Path>,
) -> BTreeMap<String, (String, PathBuf)> {
    let mut variables = BTreeMap::new();
    for file in AgentSettings::read(row, process, root).files {
        let table = value_at(&file.value, &[row.dialect().variables]);
        let Some(table) = table.and_then(Value::as_object) else { continue };
        for (name, value) in table {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            variables.entry(name.clone()).or_insert_with(|| (value, file.path.clone()));
        }
    }
    variables
}

/// The settings of one agent.
struct AgentSettings<'a, 'p> {
    row: &'a InstallRow,
    process: &'a Process<'p>,
    /// The one that wins first.
    files: Vec<ReadSettings>,
}

/// A settings file that can be read.
struct ReadSettings {
    path: PathBuf,
    /// Whether an administrator writes it.
    is_managed: bool,
    value: Value,
}

impl<'a, 'p> AgentSettings<'a, 'p> {
    fn read(row: &'a InstallRow, process: &'a Process<'p>, root: Option<&Path>) -> Self {
        let projects: Vec<&Path> = root.into_iter().collect();
        let mut files: Vec<ReadSettings> = Vec::new();
        for pattern in settings::patterns(row.dialect().settings, row, process, &projects) {
            let is_managed = pattern.is_managed;
            let found = pattern.files().into_iter();
            files.extend(found.filter_map(|path| {
                let value = read(&path)?;
                Some(ReadSettings { path, is_managed, value })
            }));
        }
        Self { row, process, files }
    }

    fn off(&self, registered: &[(Site, HookStatus)]) -> Option<Off> {
        // Hooks that a package brings are not locked.
        let in_package = registered.is_empty();
        let switches = self.row.dialect().switches.iter();
        let mut switches =
            switches.filter(|switch| !in_package || switch.when != SwitchValue::LocksHooks);
        let found = switches.find_map(|switch| Some((switch, self.find(switch)?)));
        let off = found.map(|(switch, path)| self.switched_off(switch, path));
        off.or_else(|| match self.row.agent {
            "codex" => registered.iter().find_map(|(site, found)| self.untrusted(site, found)),
            "hermes" => registered.iter().find_map(|(_, found)| self.no_consent(found)),
            "factory-droid" => self.other_file(),
            _ => None,
        })
    }

    /// The file in which a switch has the value that counts.
    fn find(&self, switch: &Switch) -> Option<&Path> {
        let counted = self.files.iter().filter(|file| file.is_managed || !switch.is_managed);
        let mut known =
            counted.filter_map(|file| Some((&*file.path, value_at(&file.value, switch.key)?)));
        let (path, counts) = match &switch.when {
            SwitchValue::Is(wanted) => {
                known.next().map(|(path, it)| (path, it.as_bool() == Some(*wanted)))
            }
            SwitchValue::NamesUs => {
                known.find(|(_, it)| names_us(it)).map(|(path, _)| (path, true))
            }
            SwitchValue::LocksHooks => known.next().map(|(path, it)| (path, locks_hooks(it))),
        }?;
        counts.then_some(path)
    }

    fn shown(&self, path: &Path) -> String {
        ui::path(path, self.process.home().as_deref()).into_owned()
    }

    fn switched_off(&self, switch: &Switch, path: &Path) -> Off {
        let (key, place) = (switch.key.join("."), self.shown(path));
        match switch.when {
            SwitchValue::Is(value) => Off {
                message: format!("its hooks are switched off: `{key}` is {value} in {place}"),
                hint: format!("set `{key}` to {} in {place}", !value),
            },
            SwitchValue::NamesUs => Off {
                message: format!("beforehand's hooks are switched off by `{key}` in {place}"),
                hint: format!("take beforehand out of `{key}` in {place}"),
            },
            SwitchValue::LocksHooks => Off {
                message: format!("only plugins may have hooks: `{key}` in {place}"),
                hint: "install beforehand's plugin instead, or ask whoever manages that file"
                    .to_owned(),
            },
        }
    }

    /// Codex runs a hook only while its own record has the hash of it, and does not say it is off.
    fn untrusted(&self, site: &Site, found: &HookStatus) -> Option<Off> {
        let HookStatus::Entries(entries, _) = found else { return None };
        let path = self.row.dir(self.process)?.join("config.toml");
        let config = text(&path).unwrap_or_default();
        match trust::untrusted(&config, &site.path, entries) {
            Err(why) => Some(Off {
                message: format!("{}: {}", self.shown(&path), ui::escape(why.as_bytes())),
                hint: "put it right, then run this again".to_owned(),
            }),
            Ok(skipped) if !skipped.is_empty() => Some(Off {
                message: "the hook is registered but not trusted: codex skips it in silence"
                    .to_owned(),
                hint: "beforehand install codex --trust, or `/hooks` in codex".to_owned(),
            }),
            Ok(_) => trust::disabled(&config, &site.path, entries).map(|event| Off {
                message: format!("its hook for {} is switched off", ui::escape(event.as_bytes())),
                hint: "switch it on again in `/hooks` in codex".to_owned(),
            }),
        }
    }

    /// Hermes runs a hook only after its user has said yes to that event and command.
    fn no_consent(&self, found: &HookStatus) -> Option<Off> {
        let HookStatus::Entries(entries, _) = found else { return None };
        let dir = self.row.dir(self.process)?;
        let config = text(&dir.join("config.yaml"))?;
        let is_accepted =
            config.lines().filter(|line| !line.starts_with([' ', '\t', '#'])).any(|line| {
                let told = line.split_once(':').map(|(key, value)| (key.trim(), value.trim()));
                told.is_some_and(|(key, value)| {
                    key == "hooks_auto_accept" && value.split(' ').next() == Some("true")
                })
            });
        if is_accepted {
            return None;
        }
        let allowed = read(&dir.join("shell-hooks-allowlist.json"));
        let allowed = allowed.as_ref().and_then(|it| it.get("approvals")?.as_array());
        let is_allowed = |hook: &HookEntry| {
            allowed.into_iter().flatten().any(|entry| {
                entry.get("event").and_then(Value::as_str) == Some(&hook.event)
                    && entry.get("command").and_then(Value::as_str) == Some(&hook.command)
            })
        };
        let missing = entries.iter().find(|hook| !is_allowed(hook))?;
        Some(Off {
            message: format!(
                "Hermes has no consent for the hook of `{}`, and skips it wherever it cannot ask",
                ui::escape(missing.event.as_bytes())
            ),
            hint: "start `hermes chat` in a terminal and say yes to each hook".to_owned(),
        })
    }

    /// Factory Droid takes the hooks of an event from `hooks.json`, if it has any there, and passes
    /// over those of the settings beside it (run with 0.225.2).
    fn other_file(&self) -> Option<Off> {
        let dir = self.row.dir(self.process)?;
        let other = dir.join("hooks.json");
        let hooks = |path: &Path| read(path)?.get_mut("hooks").map(Value::take);
        let of_event = |hooks: &Value, event: &str| hooks.get(event).map(Value::to_string);
        let (ours, theirs) = (hooks(&dir.join("settings.json"))?, hooks(&other)?);
        let is_ours = |text: &String| text.contains("hook --agent factory-droid");
        let mut events = ours.as_object()?.keys();
        let event = events.find(|event| {
            let there = of_event(&theirs, event).filter(|there| there != "[]");
            of_event(&ours, event).is_some_and(|here| is_ours(&here))
                && there.is_some_and(|there| !is_ours(&there))
        })?;
        let (event, other) = (ui::escape(event.as_bytes()), self.shown(&other));
        Some(Off {
            message: format!(
                "Droid takes its hooks for {event} from {other} and passes over those in \
                 settings.json"
            ),
            hint: format!("move beforehand's entries for {event} into {other}"),
        })
    }
}

/// Whether a list has our hook in it, by its name or its command.
fn names_us(list: &Value) -> bool {
    let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.into_iter().any(|word| word == "beforehand" || word.contains("beforehand hook"))
}

/// Whether a lock on everything that is no package's is one on hooks.
fn locks_hooks(lock: &Value) -> bool {
    match lock {
        Value::Bool(is_set) => *is_set,
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "hooks"),
        Value::Object(kinds) => kinds.get("hooks") == Some(&Value::Bool(true)),
        Value::Null | Value::Number(_) | Value::String(_) => false,
    }
}

/// The value of a key, from the outside in.
pub(super) fn value_at<'v>(value: &'v Value, key: &[&str]) -> Option<&'v Value> {
    key.iter().try_fold(value, |value, part| value.as_object()?.get(*part))
}

/// What a settings file says, JSON with comments or TOML. What cannot be read says nothing.
pub(super) fn read(path: &Path) -> Option<Value> {
    let text = text(path)?;
    if path.extension().is_some_and(|extension| extension == "toml") {
        return serde_json::to_value(trust::table(&text).ok()?).ok();
    }
    let value = jsonc::parse(&text).ok()?.root.to_value();
    // A file for hooks alone stands for that part of the settings.
    let is_hooks_alone = path.file_name().is_some_and(|name| name == "hooks.json");
    Some(if is_hooks_alone { json!({ "hooks": value }) } else { value })
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(read_small(path, SIZE_MAX_BYTES).ok()??).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the files of a test are its own")]

    use std::{collections::BTreeMap, fs};

    use super::{super::ROWS, *};
    use crate::process::{Aside, ProcessContext, Terminal};

    /// A machine with settings of its own, below this directory.
    struct Machine(PathBuf);

    impl Aside for Machine {
        fn start(
            &self,
            _: &[std::ffi::OsString],
            _: &BTreeMap<std::ffi::OsString, std::ffi::OsString>,
        ) -> std::io::Result<()> {
            Ok(())
        }

        fn system(&self) -> &Path {
            &self.0
        }
    }

    #[test]
    fn what_an_administrator_says_wins() {
        let dir = std::env::temp_dir().join(format!("beforehand-managed-{}", std::process::id()));
        let system = dir.join("system");
        fs::create_dir_all(dir.join("home/.claude")).unwrap();
        fs::create_dir_all(system.join("etc/claude-code")).unwrap();
        let users = dir.join("home/.claude/settings.json");
        let managed = system.join("etc/claude-code/managed-settings.json");
        let env = BTreeMap::from([("HOME".into(), dir.join("home").into())]);
        let context = ProcessContext { cwd: None, env, now: chrono::DateTime::UNIX_EPOCH };
        let row = ROWS.iter().find(|row| row.agent == "claude-code").unwrap();
        let site = row.project_sites(&dir).into_iter().find(Site::is_hook).unwrap();
        fs::create_dir_all(system.join("etc/claude-code/managed-settings.d")).unwrap();
        let dropped_in = system.join("etc/claude-code/managed-settings.d/10-a.json");
        fs::write(&dropped_in, "{\"disableAllHooks\": false}").unwrap();
        fs::write(dropped_in.with_file_name("20-b.json"), "{\"disableAllHooks\": true}").unwrap();
        fs::write(dropped_in.with_file_name("30-c.txt"), "{\"disableAllHooks\": false}").unwrap();
        let machine = Machine(system.clone());
        let registered = [(site.clone(), HookStatus::HookDir)];
        let find = |process: &mut Process<'_>| off(row, process, None, &registered);
        let (off_by_last, _) = context.clone().run(b"", Terminal::default(), &machine, find);
        assert!(off_by_last.unwrap().message.contains("managed-settings.d/20-b.json"));
        fs::remove_dir_all(dropped_in.parent().unwrap()).unwrap();
        for (managed_says, user_says, told) in [
            ("{\"disableAllHooks\": false}", "{\"disableAllHooks\": true}", None),
            ("{\"disableAllHooks\": true}", "{}", Some("`disableAllHooks` is true in ")),
            (
                "{\"allowManagedHooksOnly\": true}",
                "{}",
                Some("`allowManagedHooksOnly` is true in "),
            ),
            (
                "{\"strictPluginOnlyCustomization\": true}",
                "{}",
                Some("only plugins may have hooks"),
            ),
            (
                "{\"strictPluginOnlyCustomization\": [\"mcp\", \"hooks\"]}",
                "{}",
                Some("only plugins may have hooks"),
            ),
            ("{\"strictPluginOnlyCustomization\": [\"mcp\"]}", "{}", None),
            ("{\"strictPluginOnlyCustomization\": false}", "{}", None),
            ("{}", "{\"strictPluginOnlyCustomization\": true}", None),
            ("{}", "{\"disableAllHooks\": true}", Some("in ~/.claude/settings.json")),
            ("{", "{}", None),
        ] {
            fs::write(&managed, managed_says).unwrap();
            fs::write(&users, user_says).unwrap();
            let machine = Machine(system.clone());
            let registered = [(site.clone(), HookStatus::HookDir)];
            let find = |process: &mut Process<'_>| off(row, process, None, &registered);
            let (off, _) = context.clone().run(b"", Terminal::default(), &machine, find);
            let is_told = match (&off, told) {
                (None, None) => true,
                (Some(off), Some(told)) => off.message.contains(told),
                _ => false,
            };
            assert!(is_told, "{managed_says} {user_says}: {off:?}");
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
