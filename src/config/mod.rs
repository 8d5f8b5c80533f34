//! Every setting, its default, where it came from.
//!
//! The weakest first: the default, the user's own settings file, its table for the directory (the
//! longest path last), the environment, flags. Nothing inside a protected directory configures us.
//!
//! Two ways in, over one reading. [`load`] is for hooks: what makes no sense is a note, and what
//! was true before stands, so that no slip ever turns protection off. [`load_strictly`] is for people: it
//! refuses at the first slip and says where it is.
//!
//! The environment variables of beforehand: `BEFOREHAND` (`off` turns it off for one run),
//! `BEFOREHAND_HOME` (state and settings in one place of your own) and one for each key, see
//! [`SettingKey::variable`]. Besides: `HOME`, `XDG_STATE_HOME`, `XDG_CONFIG_HOME`; and of `ui`:
//! `NO_COLOR`, `TERM`.

mod file;
mod keys;
mod places;
mod values;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    ops::Bound,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

pub use keys::{KEYS, SettingKey, SettingScope};
pub use places::state;
pub use values::SettingValue;

use self::{
    file::SettingLine,
    keys::did_you_mean,
    places::{ConfigPaths, state_at},
};
use crate::{
    error::{Error, Result},
    fs::PathResolver,
    model::Settings,
    process::Process,
    state::StateDir,
    ui,
};

/// The settings that hold, and how they came about.
#[derive(Clone, Debug, Default)]
pub struct LoadedSettings {
    /// What holds.
    pub settings: Settings,
    /// What was not taken, a line each, escaped. For the user, once.
    pub notes: Vec<String>,
    /// The settings file that was looked for; `None` if there is no place for one, or if it would
    /// be inside the protected directory.
    pub file: Option<PathBuf>,
    /// Every path by which that file is known without looking further, be it there or not.
    pub places: Vec<PathBuf>,
    /// The state directory, if anything says where.
    state: Option<PathBuf>,
    /// The user's home, if anything says where.
    pub home: Option<PathBuf>,
    /// Where each setting came from that is not the default.
    origins: BTreeMap<&'static str, SettingOrigin>,
}

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// The default.
    Default,
    /// The settings file.
    File {
        /// Its path.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The settings file, in the table of a directory.
    Directory {
        /// The directory, as it is written there.
        directory: PathBuf,
        /// The file's path.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The environment variable of this name.
    Environment(String),
    /// The flag of this name, as in `--deadline`.
    Flag(String),
}

impl SettingOrigin {
    /// Names it for people, with `~` for their home.
    pub fn words(&self, home: Option<&Path>) -> String {
        match self {
            Self::Default => "default".to_owned(),
            Self::File { path, line } => format!("{}:{line}", ui::path(path, home)),
            Self::Directory { directory, path, line } => {
                format!("{}:{line}, for {}", ui::path(path, home), ui::path(directory, home))
            }
            Self::Environment(name) | Self::Flag(name) => name.clone(),
        }
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words(None))
    }
}

/// One setting, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingRow {
    /// Its name.
    pub key: &'static str,
    /// Its value.
    pub value: SettingValue,
    /// Where that came from.
    pub origin: SettingOrigin,
    /// What it does.
    pub doc: &'static str,
}

/// Reads the settings for a hook or a command: `root` is the protected directory, if there is one.
///
/// Never fails. What makes no sense is in [`LoadedSettings::notes`]. Without a settings file this opens
/// nothing and parses nothing.
pub fn load(process: &Process<'_>, root: Option<&Path>) -> LoadedSettings {
    load_by(process, root, &PathResolver::default())
}

/// The same, for a caller that also resolves paths.
pub fn load_by(process: &Process<'_>, root: Option<&Path>, real: &PathResolver) -> LoadedSettings {
    let mut troubles = Troubles::default();
    let mut loaded = gather(process, root, real, &mut troubles);
    loaded.notes.extend(troubles.kept.iter().map(Trouble::note));
    if troubles.more > 0 {
        loaded.notes.push(format!("and {} more like these", troubles.more));
    }
    loaded
}

/// Reads the settings for `beforehand config`.
///
/// # Errors
///
/// Fails at the first key or value that makes no sense.
pub fn load_strictly(process: &Process<'_>, root: Option<&Path>) -> Result<LoadedSettings> {
    let mut troubles = Troubles::default();
    let loaded = gather(process, root, &PathResolver::default(), &mut troubles);
    match troubles.kept.into_iter().next() {
        Some(trouble) => Err(trouble.into()),
        None => Ok(loaded),
    }
}

/// The settings of a process that has these environment variables besides, by name. Mistakes in them
/// change nothing.
pub fn with_variables(settings: &Settings, variables: &BTreeMap<OsString, OsString>) -> Settings {
    let mut loaded = LoadedSettings { settings: settings.clone(), ..LoadedSettings::default() };
    from_environment(variables, &mut loaded, &mut Troubles::default());
    loaded.settings
}

impl LoadedSettings {
    /// The state directory, as [`state`] has it.
    ///
    /// # Errors
    ///
    /// As [`state`].
    pub fn state(&self) -> Result<StateDir> {
        state_at(self.state.clone())
    }

    /// Where the setting called `key` came from.
    pub fn origin(&self, key: &str) -> SettingOrigin {
        self.origins.get(key).cloned().unwrap_or(SettingOrigin::Default)
    }

    /// Every setting, in the order of [`KEYS`].
    pub fn rows(&self) -> Vec<SettingRow> {
        let row = |key: &SettingKey| SettingRow {
            key: key.name,
            value: key.value(&self.settings),
            origin: self.origin(key.name),
            doc: key.doc,
        };
        KEYS.iter().map(row).collect()
    }

    /// Sets `key` from a flag, which is stronger than everything else.
    ///
    /// # Errors
    ///
    /// Fails if there is no such key or the value makes no sense; then nothing changes.
    pub fn set_flag(&mut self, flag: &str, key: &str, text: &str) -> Result<()> {
        let Some(found) = SettingKey::find(key) else {
            let meant = did_you_mean(key, KEYS.iter().map(|key| key.name));
            return Err(Trouble::unknown(flag.to_owned(), "key", key, meant).into());
        };
        found
            .set(&mut self.settings, &found.read_text(text))
            .map_err(|why| Trouble::new(flag.to_owned(), why))?;
        self.origins.insert(found.name, SettingOrigin::Flag(flag.to_owned()));
        Ok(())
    }

    /// The settings that the environment decided, as `(key, variable)`. What starts an agent can
    /// switch us off there, so the user gets to see it.
    pub fn set_by_environment(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.origins.iter().filter_map(|(key, origin)| match origin {
            SettingOrigin::Environment(name) => Some((*key, name.as_str())),
            SettingOrigin::Default
            | SettingOrigin::File { .. }
            | SettingOrigin::Directory { .. }
            | SettingOrigin::Flag(_) => None,
        })
    }

    fn set(&mut self, line: &SettingLine, origin: SettingOrigin) {
        line.key
            .set(&mut self.settings, &line.value)
            .expect("a line has been tried when the file was read");
        self.origins.insert(line.key.name, origin);
    }
}

fn gather(
    process: &Process<'_>,
    root: Option<&Path>,
    real: &PathResolver,
    troubles: &mut Troubles,
) -> LoadedSettings {
    let mut places = ConfigPaths::of(process, root, real);
    let found = places.open(root, real);
    let ConfigPaths { file, home, notes, state } = places;
    let mut loaded = LoadedSettings { notes, file, state, home, ..LoadedSettings::default() };
    loaded.places.extend(loaded.file.clone());
    if let (Some((found, place)), Some(path)) = (found, loaded.file.clone()) {
        loaded.places.extend(Some(place).filter(|place| *place != path));
        let said = file::read(found, &path, loaded.home.as_deref(), troubles);
        for line in &said.shared {
            loaded.set(line, SettingOrigin::File { path: path.clone(), line: line.line });
        }
        for (directory, lines) in root.map_or(Vec::new(), |root| of_root(&said, root, real)) {
            for line in lines {
                let (directory, path) = (directory.clone(), path.clone());
                loaded.set(line, SettingOrigin::Directory { directory, path, line: line.line });
            }
        }
    }
    from_environment(&process.env, &mut loaded, troubles);
    loaded
}

/// The tables that hold for `root`: those of itself and of directories above, the nearest last.
fn of_root<'a>(
    said: &'a file::FileSettings,
    root: &Path,
    real: &PathResolver,
) -> Vec<&'a (PathBuf, Vec<SettingLine>)> {
    let mut matching: Vec<_> = said
        .directories
        .iter()
        .map(|table| (real.resolve_existing(&table.0), table))
        .filter(|(directory, _)| root.starts_with(directory))
        .collect();
    matching.sort_by_key(|(directory, _)| directory.components().count());
    matching.into_iter().map(|(_, table)| table).collect()
}

/// Not keys, but ours all the same.
const OTHER_VARIABLES: [&str; 3] =
    ["BEFOREHAND_HOME", "BEFOREHAND_TEST_CRASH_AT", "BEFOREHAND_TEST_RUN_AT"];

fn from_environment(
    env: &BTreeMap<OsString, OsString>,
    loaded: &mut LoadedSettings,
    troubles: &mut Troubles,
) {
    let from = (Bound::Included(OsStr::new("BEFOREHAND_")), Bound::Unbounded);
    let ours = env.range::<OsStr, _>(from);
    for (name, value) in ours.take_while(|(name, _)| name.as_bytes().starts_with(b"BEFOREHAND_")) {
        let Some(name) = name.to_str().filter(|name| !OTHER_VARIABLES.contains(name)) else {
            continue;
        };
        match KEYS.iter().find(|key| key.is_set_by(name)) {
            Some(_) if value.is_empty() => (),
            Some(key) => from_variable(key, name, value, loaded, troubles),
            None => slip_of_variable(name, troubles),
        }
    }
    // The shortest word is the strongest: `BEFOREHAND=off` is meant.
    let strongest = env.get(OsStr::new("BEFOREHAND")).filter(|value| !value.is_empty());
    if let (Some(value), Some(key)) = (strongest, SettingKey::find("enabled")) {
        from_variable(key, "BEFOREHAND", value, loaded, troubles);
    }
}

fn from_variable(
    key: &'static SettingKey,
    name: &str,
    value: &OsStr,
    loaded: &mut LoadedSettings,
    troubles: &mut Troubles,
) {
    let set = match value.to_str() {
        Some(text) => key.set(&mut loaded.settings, &key.read_text(text)),
        None => Err("is not UTF-8 text".to_owned()),
    };
    match set {
        Ok(()) => {
            drop(loaded.origins.insert(key.name, SettingOrigin::Environment(name.to_owned())));
        }
        Err(why) => troubles.push(|| Trouble::new(name.to_owned(), why)),
    }
}

/// Other programs may have variables that begin like ours; only a slip of one of ours is trouble.
fn slip_of_variable(name: &str, troubles: &mut Troubles) {
    let variables: Vec<_> = KEYS.iter().map(SettingKey::variable).collect();
    let rest = name.strip_prefix("BEFOREHAND_").unwrap_or(name);
    let rests = variables.iter().filter_map(|name| name.strip_prefix("BEFOREHAND_"));
    let lower: Vec<_> = rests.map(str::to_ascii_lowercase).collect();
    if let Some(meant) = did_you_mean(rest, lower.iter().map(String::as_str)) {
        let meant = format!("BEFOREHAND_{}", meant.to_ascii_uppercase());
        let place = "the environment".to_owned();
        troubles.push(|| Trouble::unknown(place, "variable", name, Some(&meant)));
    }
}

/// One thing that makes no sense.
struct Trouble {
    place: String,
    why: String,
    hint: Option<String>,
}

/// All that makes no sense. A hostile file has no end of it.
#[derive(Default)]
struct Troubles {
    kept: Vec<Trouble>,
    more: usize,
}

/// As many as a person reads.
const TROUBLES_MAX: usize = 8;

impl Troubles {
    fn push(&mut self, trouble: impl FnOnce() -> Trouble) {
        if self.kept.len() < TROUBLES_MAX {
            self.kept.push(trouble());
        } else {
            self.more += 1;
        }
    }
}

impl Trouble {
    fn new(place: String, why: String) -> Self {
        Self { place, why, hint: None }
    }

    fn unknown(place: String, what: &str, given: &str, meant: Option<&str>) -> Self {
        let mut given = ui::escape(given.as_bytes()).into_owned();
        if given.chars().count() > 60 {
            given = given.chars().take(60).chain(['…']).collect();
        }
        let hint = meant.map(|meant| format!("did you mean `{meant}`?"));
        Self { place, why: format!("unknown {what} `{given}`"), hint }
    }

    fn note(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}: {}; ignored — {hint}", self.place, self.why),
            None => format!("{}: {}; ignored", self.place, self.why),
        }
    }
}

impl From<Trouble> for Error {
    fn from(Trouble { place, why, hint }: Trouble) -> Self {
        Self::Setting { place, why, hint }
    }
}

#[cfg(test)]
mod tests;
