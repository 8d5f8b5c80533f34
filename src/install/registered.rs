//! The files in which agents register our hooks, for self-defence. It uses the table and variables of
//! `install` and opens none of the files; it lists a directory only where a call reaches for it.

use std::path::{Path, PathBuf};

use super::{
    rows::{InstallRow, SettingsBase, json_files},
    table::ROWS,
};
use crate::process::Process;

impl SettingsBase {
    /// The directory that is used here, and the usual one if that is another.
    fn dirs(&self, process: &Process<'_>) -> impl Iterator<Item = PathBuf> {
        let used = self.dir(process);
        let default = process.var("HOME").map(|home| Path::new(home).join(self.dir));
        let other = default.filter(|default| used.as_ref() != Some(default));
        used.into_iter().chain(other)
    }
}

impl InstallRow {
    /// The names of files that can have our hook, each with what it is below.
    fn names(&self) -> impl Iterator<Item = (SettingsBase, &'static str)> {
        let hooks = self.user.iter().filter(|file| file.edit.is_hook()).map(|file| file.path);
        let hooks = hooks.map(|name| (self.hooks_base(), name));
        hooks.chain(self.watched.iter().map(|name| (self.base, *name)))
    }

    /// The same below a project.
    fn project_names(&self) -> impl Iterator<Item = &'static str> {
        let written = self.project.iter().filter(|file| file.edit.is_hook()).map(|file| file.path);
        written.chain(self.watched_project.iter().copied())
    }
}

/// The files that can have our hook and are at `place`, or, with `can_contain`, below it. A project
/// that goes as a whole takes its own hooks along, and is asked about as such.
pub fn registrations_at(
    process: &Process<'_>,
    root: &Path,
    place: &Path,
    can_contain: bool,
) -> Vec<PathBuf> {
    let is_near = |dir: &Path| place.starts_with(dir) || can_contain && dir.starts_with(place);
    let is_met = |file: &PathBuf| file == place || can_contain && file.starts_with(place);
    let is_home = process.var("HOME").is_some_and(|home| Path::new(home).starts_with(place));
    let mut found = Vec::new();
    for row in ROWS {
        for (base, name) in row.names().filter(|_| !is_home) {
            found.extend(base.dirs(process).filter(|dir| is_near(dir)).map(|dir| dir.join(name)));
        }
        let listed = row.each_dirs(process).filter(|dir| !is_home && is_near(dir));
        found.extend(listed.flat_map(|dir| json_files(&dir)));
        if place != root && place.starts_with(root) {
            found.extend(row.project_names().map(|name| root.join(name)));
        }
        // Another project, or another home.
        let is_named = |name: &str| ends_with(place, name);
        let is_usual = |(base, name): (SettingsBase, &str)| {
            place.ends_with(name) && ends_with(place, &format!("{}/{name}", base.dir))
        };
        if row.project_names().any(is_named) || row.names().any(is_usual) {
            found.push(place.to_owned());
        }
    }
    found.retain(is_met);
    found
}

/// Whether the last names of `place` are those of `name`.
fn ends_with(place: &Path, name: &str) -> bool {
    let above = place.as_os_str().as_encoded_bytes().strip_suffix(name.as_bytes());
    above.is_some_and(|above| above.is_empty() || above.ends_with(b"/"))
}
