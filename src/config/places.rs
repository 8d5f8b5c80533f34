//! Where the user keeps our files: the state directory and the settings file.
//!
//! Neither is ever taken from inside the protected directory, where the agent can write. The one
//! exception is a protected directory that holds the user's whole home: our usual places are in
//! there too, and self-defence stands before them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    error::{Error, Result},
    process::Process,
    state::State,
    ui,
};

/// The places of one process, for one protected directory.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The state directory; `None` if there is no place for one.
    pub(super) state: Option<PathBuf>,
    /// The settings file, which need not exist.
    pub(super) file: Option<PathBuf>,
    /// The user's home.
    pub(super) home: Option<PathBuf>,
    /// What was not taken, and why.
    pub(super) notes: Vec<String>,
}

/// The state directory: `$TURNBACK_HOME`, or `turnback` in `$XDG_STATE_HOME`, which is
/// `~/.local/state` unless set. `root` is the protected directory, if there is one yet.
///
/// # Errors
///
/// Fails if none of these says where.
pub fn state(process: &Process<'_>, root: Option<&Path>) -> Result<State> {
    Places::of(process, root).state.map(State::new).ok_or_else(|| {
        Error::other(
            "there is no place for checkpoints: `HOME` is not set to an absolute path",
            "set `HOME`, or set `TURNBACK_HOME` to a directory of your own",
        )
    })
}

/// The settings file, which need not exist: `config.toml` in `$TURNBACK_HOME`, or in `turnback` in
/// `$XDG_CONFIG_HOME`, which is `~/.config` unless set. `None` if nothing says where, or if it
/// would be inside `root`.
pub fn settings_file(process: &Process<'_>, root: Option<&Path>) -> Option<PathBuf> {
    Places::of(process, root).file
}

impl Places {
    pub(super) fn of(process: &Process<'_>, root: Option<&Path>) -> Self {
        let mut notes = Vec::new();
        let home = process.var("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let is_inside = |dir: &Path| is_inside(dir, root, home.as_deref());
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
        let own = given("TURNBACK_HOME");
        let below_home = |rest| home.as_ref().map(|home| home.join(rest));
        let (state, mut file) = if let Some(own) = own {
            let file = own.join("config.toml");
            (Some(own), Some(file))
        } else {
            let state = given("XDG_STATE_HOME").or_else(|| below_home(".local/state"));
            let config = given("XDG_CONFIG_HOME").or_else(|| below_home(".config"));
            let file = config.map(|dir| dir.join("turnback/config.toml"));
            (state.map(|dir| dir.join("turnback")), file)
        };
        // Its own name may be a symlink. To see that it is missing costs least, so that is first.
        if let Some(inside) = file.take_if(|file| file.exists() && is_inside(file)) {
            let path = ui::escape_path(&inside);
            notes.push(format!("{path} is inside the protected directory; ignored"));
        }
        Self { state, file, home, notes }
    }
}

/// Whether `dir` is in the protected directory, but not because everything of the user's is.
fn is_inside(dir: &Path, root: Option<&Path>, home: Option<&Path>) -> bool {
    let Some(root) = root else { return false };
    let holds_home = home.is_some_and(|home| canonical(home).starts_with(root));
    !holds_home && (dir.starts_with(root) || canonical(dir).starts_with(root))
}

/// The path without symlinks, as far as it exists.
pub(super) fn canonical(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let Ok(found) = fs::canonicalize(above) {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { found } else { found.join(rest) };
        }
    }
    path.to_owned()
}
