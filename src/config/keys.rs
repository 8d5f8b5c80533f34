//! The table of settings: one row for each, from which parsing, display and documentation are
//! derived.

use super::values::{ParsedValue, Setting, SettingValue, Size};
use crate::model::Settings;

/// One setting.
pub struct SettingKey {
    /// Its name in the settings file, tables before dots.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// Where it may be set.
    pub scope: SettingScope,
    set: fn(&mut Settings, &SettingValue) -> ParsedValue<()>,
    show: fn(&Settings) -> SettingValue,
}

/// Where a setting may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingScope {
    /// For all directories together only, because it concerns something that they share.
    Shared,
    /// For one directory too.
    Directory,
}

impl SettingKey {
    /// Finds a setting by its name.
    pub fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The environment variable that sets it, as in `BEFOREHAND_TRIGGERS_BEFORE_SHELL`.
    pub fn variable(&self) -> String {
        format!("BEFOREHAND_{}", self.name.replace('.', "_").to_ascii_uppercase())
    }

    /// Whether `name` is the environment variable that sets it.
    pub(super) fn is_set_by(&self, name: &str) -> bool {
        let rest = name.strip_prefix("BEFOREHAND_").filter(|rest| rest.len() == self.name.len());
        rest.is_some_and(|rest| {
            let upper = |byte: u8| if byte == b'.' { b'_' } else { byte.to_ascii_uppercase() };
            rest.bytes().eq(self.name.bytes().map(upper))
        })
    }

    /// Its value in `settings`.
    pub fn value(&self, settings: &Settings) -> SettingValue {
        (self.show)(settings)
    }

    /// Its default.
    pub fn default(&self) -> SettingValue {
        self.value(&Settings::default())
    }

    /// Sets `value` in `settings`; an invalid one changes nothing.
    pub(super) fn set(&self, settings: &mut Settings, value: &SettingValue) -> ParsedValue<()> {
        (self.set)(settings, value)
    }

    /// Parses a value given as plain text, in the environment or as a flag: a list is separated by
    /// commas, and a switch may be given in words.
    pub(super) fn read_text(&self, text: &str) -> SettingValue {
        let text = text.trim();
        match self.default() {
            SettingValue::List(_) => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                SettingValue::List(items.map(str::to_owned).collect())
            }
            SettingValue::Switch(_) => match text.to_ascii_lowercase().as_str() {
                "true" | "on" | "yes" | "1" => SettingValue::Switch(true),
                "false" | "off" | "no" | "0" => SettingValue::Switch(false),
                _ => SettingValue::Text(text.to_owned()),
            },
            SettingValue::Number(_) | SettingValue::Text(_) => SettingValue::Text(text.to_owned()),
        }
    }
}

macro_rules! key {
    ($scope:ident, $name:literal, $($field:ident).+, $doc:literal) => {
        SettingKey {
            name: $name,
            doc: $doc,
            scope: SettingScope::$scope,
            set: |settings, value| {
                settings.$($field).+ = Setting::parse(value)?;
                Ok(())
            },
            show: |settings| settings.$($field).+.show(),
        }
    };
    ($scope:ident, $name:literal, size $field:ident, $doc:literal) => {
        SettingKey {
            name: $name,
            doc: $doc,
            scope: SettingScope::$scope,
            set: |settings, value| {
                settings.$field = Size::parse(value)?.0;
                Ok(())
            },
            show: |settings| Size(settings.$field).show(),
        }
    };
}

/// Every setting, in display order.
pub const KEYS: &[SettingKey] = &[
    key!(
        Directory,
        "enabled",
        enabled,
        "Whether hooks take checkpoints. `create` and `run` always do."
    ),
    key!(
        Directory,
        "triggers.before_write",
        triggers.before_write,
        "Take one before a tool writes a file."
    ),
    key!(
        Directory,
        "triggers.before_edit",
        triggers.before_edit,
        "Take one before a tool edits a file."
    ),
    key!(
        Directory,
        "triggers.before_shell",
        triggers.before_shell,
        "Take one before a command that may change files (`mutating`), only before one that is \
         known to destroy (`destructive`), or `never`."
    ),
    key!(
        Directory,
        "triggers.session_start",
        triggers.session_start,
        "Take one in the background when a session begins, when a turn that changed something \
         ends, and when the next turn begins."
    ),
    key!(
        Directory,
        "shell.always",
        shell.always,
        "Command patterns that always count as destructive, as in `make clean*`."
    ),
    key!(
        Directory,
        "shell.never",
        shell.never,
        "Command patterns that never count, as in `npm test*`."
    ),
    key!(
        Directory,
        "dedupe",
        dedupe,
        "Once per turn and again before new work is destroyed (`turn`), once per turn and no more \
         (`strict`), or before every call that can change files (`call`)."
    ),
    key!(
        Directory,
        "retention",
        retention,
        "How long every checkpoint is kept. Those of `create` have no age limit."
    ),
    key!(
        Directory,
        "keep_turns",
        keep_turns,
        "How long the first checkpoint of each turn is kept."
    ),
    key!(
        Directory,
        "keep_sessions",
        keep_sessions,
        "How long the first checkpoint of each session is kept."
    ),
    key!(
        Directory,
        "max_file_size",
        size max_file_size,
        "A larger untracked file is held like an ignored one: up to 20 MB, within 64 MB for all."
    ),
    key!(
        Directory,
        "max_victim_size",
        size max_victim_size,
        "The largest file that is held because a command names it."
    ),
    key!(Directory, "max_files", max_files, "How many files one checkpoint may hold."),
    key!(
        Shared,
        "max_total_size",
        size max_total_size,
        "How much disk space all checkpoints of all projects may take."
    ),
    key!(
        Directory,
        "exclude",
        exclude,
        "Untracked files that are never held with their directory, as in a `.gitignore`."
    ),
    key!(
        Directory,
        "on_trouble",
        on_trouble,
        "When a checkpoint cannot be taken: say so (`note`), `ask` before the call runs, or `deny` \
         it."
    ),
    key!(Directory, "deadline", deadline, "How long one hook call may take."),
    key!(
        Directory,
        "notify",
        notify,
        "When to say something in the agent: on `trouble`, `always` (each checkpoint) or `never`."
    ),
    key!(Shared, "auto_prune", auto_prune, "Whether the limits are applied automatically."),
    key!(Shared, "prune_interval", prune_interval, "The least time between two maintenance runs."),
    key!(
        Shared,
        "delete_orphans",
        delete_orphans,
        "Whether checkpoints of deleted projects are dropped."
    ),
    key!(
        Directory,
        "private",
        private,
        "Names of files that no ref of a checkpoint reaches, as in a `.gitignore`: they are held below `refs/private`."
    ),
    key!(
        Shared,
        "free_space_floor",
        free_space_floor,
        "How much of the disk stays free: a size, a share, or with `or` whichever is less."
    ),
    key!(
        Directory,
        "cannot_hold",
        cannot_hold,
        "When a call would destroy a file that cannot be held: `ask`, `deny` it, or say so \
         (`note`)."
    ),
    key!(
        Directory,
        "store",
        store,
        "How checkpoints of git repositories are kept: as git objects in a private repository \
         (`auto`), or as plain copies (`files`)."
    ),
    key!(
        Shared,
        "self_defence",
        self_defence,
        "When a call reaches for beforehand's own files: `ask`, `deny` it, or say so (`note`)."
    ),
    key!(
        Directory,
        "on_session_end",
        on_session_end,
        "Whether a session's checkpoints stay when it ends (`keep`) or all but the newest go \
         (`prune`)."
    ),
    key!(
        Directory,
        "tell_model",
        tell_model,
        "After a restore, tell the model with your next prompt, once, which files were put back."
    ),
    key!(
        Directory,
        "notice.files",
        notice.files,
        "Say so when a command has changed or deleted more files than this; 0 for never."
    ),
    key!(
        Directory,
        "notice.untracked",
        notice.untracked,
        "Say so when a command has deleted a file that git does not track."
    ),
];

/// The name in `names` that `given` is probably a misspelling of.
pub(super) fn did_you_mean<'a>(
    given: &str,
    names: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    // No setting is half as long, and the cost grows with the product of both lengths.
    if given.len() > 64 {
        return None;
    }
    let given = given.to_ascii_lowercase().replace('-', "_");
    let last = |name: &'a str| name.rsplit('.').next().unwrap_or(name);
    names
        .map(|name| (distance(&given, name).min(distance(&given, last(name))), name))
        .filter(|(distance, _)| distance * 3 <= given.len().max(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The number of letters to insert, delete or change to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let changed = corner + usize::from(a != *b);
            corner = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_whole() {
        for key in KEYS {
            assert!(key.doc.ends_with('.'), "{}", key.name);
            assert_eq!(
                SettingKey::find(key.name).map(|found| found.doc),
                Some(key.doc),
                "{}",
                key.name
            );
            let mut settings = Settings::default();
            key.set(&mut settings, &key.default()).unwrap();
            assert_eq!(settings, Settings::default(), "{}", key.name);
        }
    }

    #[test]
    fn a_slip_finds_its_key() {
        let meant = |given| did_you_mean(given, KEYS.iter().map(|key| key.name));
        assert_eq!(meant("max_fil_size"), Some("max_file_size"));
        assert_eq!(meant("before_shell"), Some("triggers.before_shell"));
        assert_eq!(meant("Max-Files"), Some("max_files"));
        assert_eq!(meant("enable"), Some("enabled"));
        assert_eq!(meant("colour"), None);
        assert_eq!(meant(&"x".repeat(1 << 20)), None);
    }
}
