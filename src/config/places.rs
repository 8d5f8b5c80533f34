//! Finds the state directory and the settings file.
//!
//! Neither is ever inside the protected directory, where the agent can write. The one exception is
//! a protected directory that contains the user's whole home: our default paths are in it too, and
//! self-defence protects them.

use std::path::{Path, PathBuf};

use crate::{
    error::{Error, Result},
    fs::{PathResolver, Small},
    process::Process,
    state::StateDir,
    ui,
};

/// The paths for one process and one protected directory.
#[derive(Debug, Default)]
pub(super) struct ConfigPaths {
    /// The state directory; `None` if there is no place for one.
    pub(super) state: Option<PathBuf>,
    /// The settings file, which need not exist.
    pub(super) file: Option<PathBuf>,
    /// The user's home.
    pub(super) home: Option<PathBuf>,
    /// What was ignored, and why.
    pub(super) notes: Vec<String>,
}

/// The state directory: `$BEFOREHAND_HOME`, or `beforehand` in `$XDG_STATE_HOME`, which is
/// `~/.local/state` unless set. `root` is the protected directory, if there is one yet.
///
/// # Errors
///
/// Fails if none of these, nor the user database, says where.
pub fn state(process: &Process<'_>, root: Option<&Path>) -> Result<StateDir> {
    state_at(ConfigPaths::of(process, root, &PathResolver::default()).state)
}

/// The state directory, at the place that was given.
pub(super) fn state_at(dir: Option<PathBuf>) -> Result<StateDir> {
    dir.map(StateDir::new).ok_or_else(|| {
        Error::other(
            "there is no place for checkpoints: `HOME` is not set to an absolute path, and the user \
             database has no home",
            "set `HOME`, or set `BEFOREHAND_HOME` to a directory of your own",
        )
    })
}

impl ConfigPaths {
    /// Where they are by the environment: the settings file is `config.toml` in `$BEFOREHAND_HOME`,
    /// or in `beforehand` in `$XDG_CONFIG_HOME`, which is `~/.config` unless set. Neither place is
    /// looked at, unless the environment names it.
    pub(super) fn of(process: &Process<'_>, root: Option<&Path>, real: &PathResolver) -> Self {
        let mut notes = Vec::new();
        let home = process.home();
        let is_inside = |dir: &Path| {
            is_in(dir, &|| real.resolve_existing(dir), root) && !holds(root, home.as_deref(), real)
        };
        let mut given = |name: &str| -> Option<PathBuf> {
            let path = PathBuf::from(process.var(name)?);
            let why = if !path.is_absolute() {
                "is not an absolute path"
            } else if is_inside(&path) {
                "is inside the protected directory"
            } else {
                return Some(path);
            };
            notes.push(format!("{name}: `{}` {why}; ignored", ui::escape_path(&path)));
            None
        };
        let own = given("BEFOREHAND_HOME");
        let below_home = |rest| home.as_ref().map(|home| home.join(rest));
        let (state, file) = if let Some(own) = own {
            let file = own.join("config.toml");
            (Some(own), Some(file))
        } else {
            let state = given("XDG_STATE_HOME").or_else(|| below_home(".local/state"));
            let config = given("XDG_CONFIG_HOME").or_else(|| below_home(".config"));
            let file = config.map(|dir| dir.join("beforehand/config.toml"));
            (state.map(|dir| dir.join("beforehand")), file)
        };
        Self { state, file, home, notes }
    }

    /// Opens the settings file, if there is one, and tells where that is with its links followed.
    /// One inside the protected directory is no settings file at all.
    pub(super) fn open(
        &mut self,
        root: Option<&Path>,
        real: &PathResolver,
    ) -> Option<(Small, PathBuf)> {
        let file = self.file.as_deref()?;
        let found = Small::open(file, real)?;
        // Its own name may be a symlink.
        let place = if found.is_link() { real.resolve_existing(file) } else { real.place(file) };
        if is_in(file, &|| place.clone(), root) && !holds(root, self.home.as_deref(), real) {
            let path = ui::escape_path(file);
            self.notes.push(format!("{path} is inside the protected directory; ignored"));
            self.file = None;
            return None;
        }
        Some((found, place))
    }
}

/// Whether `dir`, the resolved form of `place`, is in the protected directory.
fn is_in(dir: &Path, place: &dyn Fn() -> PathBuf, root: Option<&Path>) -> bool {
    root.is_some_and(|root| dir.starts_with(root) || place().starts_with(root))
}

/// Whether the protected directory contains the user's whole home.
fn holds(root: Option<&Path>, home: Option<&Path>, real: &PathResolver) -> bool {
    root.zip(home).is_some_and(|(root, home)| real.resolve_existing(home).starts_with(root))
}
