//! The files in which agents register our hooks, for self-defence. It uses the table and variables of
//! `install` and opens none of the files; it lists a directory only where a call reaches for it.

use std::path::{Path, PathBuf};

use super::rows::{InstallRow, ROWS, json_files};
use crate::{agent::SettingsBase, process::Process};

impl InstallRow {
    /// The names of files that can have our hook, each with what it is below.
    fn names(&self) -> impl Iterator<Item = (SettingsBase, &'static str)> {
        let hooks = self.user.iter().filter(|file| file.kind.is_hook()).map(|file| file.path);
        let hooks = hooks.map(|name| (self.hooks_dir(), name));
        hooks.chain(self.watched.iter().map(|name| (self.base, *name)))
    }

    /// Whether a file at `place` can be one of these, by its name.
    fn can_be_at(&self, place: &Path) -> bool {
        let place = place.as_os_str().as_encoded_bytes();
        !self.each.is_empty() && place.ends_with(b".json")
            || self.names().any(|(_, name)| is_end(place, name))
            || self.project_names().any(|(_, name)| is_end(place, name))
    }

    /// The same below a project.
    fn project_names(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let written = self.project.iter().filter(|file| file.kind.is_hook());
        let written = written.map(|file| (self.project_dir, file.path));
        written.chain(self.watched_project.iter().map(|name| ("", *name)))
    }
}

/// The files that can have our hook and are at `place`, or, with `can_contain`, below it. A project
/// that goes as a whole takes its own hooks along, and is asked about as such.
///
/// `place` is absolute and without `.` and `..`. Every call that changes a file asks this, so nothing is
/// allocated for the many files that are elsewhere.
pub fn registrations_at(
    process: &Process<'_>,
    root: &Path,
    place: &Path,
    can_contain: bool,
) -> Vec<PathBuf> {
    let mut rows = ROWS.iter().filter(|row| can_contain || row.can_be_at(place)).peekable();
    if rows.peek().is_none() {
        return Vec::new();
    }
    let home = process.home_dir();
    let home_goes = home.is_some_and(|home| home.starts_with(place));
    let in_home = home.filter(|_| !home_goes).and_then(|home| Some((home, below(place, home)?)));
    let in_root = below(place, root).filter(|rest| !rest.is_empty());
    let mut search = HookFileSearch { place, can_contain, found: Vec::new() };
    for row in rows {
        if let Some((home, rest)) = in_home {
            search.by_default(row, home, rest);
        }
        if !home_goes {
            search.in_directories_of_variables(process, row);
        }
        if let Some(rest) = in_root {
            let met = row.project_names().filter(|it| meets_below(rest, *it, can_contain));
            search.found.extend(met.map(|(dir, name)| root.join(dir).join(name)));
        }
        search.elsewhere(row);
    }
    search.found
}

struct HookFileSearch<'a> {
    place: &'a Path,
    can_contain: bool,
    found: Vec<PathBuf>,
}

impl HookFileSearch<'_> {
    /// Files of the default directories. The place is at `rest` below `home`.
    fn by_default(&mut self, row: &InstallRow, home: &Path, rest: &[u8]) {
        let is_met = |(base, name): &(SettingsBase, &str)| {
            meets_below(rest, (base.dir, name), self.can_contain)
        };
        let met = row.names().filter(is_met);
        self.found.extend(met.map(|(base, name)| home.join(base.dir).join(name)));
        // What is listed is not known by name.
        let is_near = |dir: &str| inside(rest, dir).is_some() || meets(rest, dir, self.can_contain);
        for file in row.each.iter().filter(|file| is_near(file.path)) {
            let mut there = json_files(&home.join(file.path));
            there.retain(|file| is_at(self.place, file, self.can_contain));
            self.found.append(&mut there);
        }
    }

    /// Files of the directories that environment variables name.
    fn in_directories_of_variables(&mut self, process: &Process<'_>, row: &InstallRow) {
        let is_set =
            |base: &SettingsBase| base.var.is_some_and(|(name, _)| process.var(name).is_some());
        for (base, name) in row.names().filter(|(base, _)| is_set(base)) {
            let file = base.place(process).map(|dir| dir.join(name));
            self.found.extend(file.filter(|file| is_at(self.place, file, self.can_contain)));
        }
    }

    /// The place itself, if it can be such a file of another project or another home.
    fn elsewhere(&mut self, row: &InstallRow) {
        let whole = self.place.as_os_str().as_encoded_bytes();
        let is_default = |(dir, name): (&str, &str)| {
            let above = without_end(whole, name).and_then(|above| above.strip_suffix(b"/"));
            above.is_some_and(|above| dir.is_empty() || without_end(above, dir).is_some())
        };
        let names = row.names().map(|(base, name)| (base.dir, name));
        if row.project_names().chain(names).any(is_default) {
            self.found.push(self.place.to_owned());
        }
    }
}

fn is_end(place: &[u8], name: &str) -> bool {
    // Most names differ in the last letter.
    name.as_bytes().last() == place.last() && place.ends_with(name.as_bytes())
}

/// Whether `file` is at `place` or, with `can_contain`, below it.
fn is_at(place: &Path, file: &Path, can_contain: bool) -> bool {
    file == place || can_contain && file.starts_with(place)
}

/// What of `place` is below `dir`; empty if it is that directory.
fn below<'p>(place: &'p Path, dir: &Path) -> Option<&'p [u8]> {
    place.strip_prefix(dir).ok().map(|rest| rest.as_os_str().as_encoded_bytes())
}

/// The same of a path and a directory that are both below another; an empty one is the other itself.
fn inside<'p>(path: &'p [u8], dir: &str) -> Option<&'p [u8]> {
    if dir.is_empty() {
        return Some(path);
    }
    match path.strip_prefix(dir.as_bytes())? {
        [b'/', rest @ ..] => Some(rest),
        [] => Some(b""),
        _ => None,
    }
}

/// Whether `rest` is `name` below `dir` or, with `can_contain`, a directory with it.
fn meets_below(rest: &[u8], (dir, name): (&str, &str), can_contain: bool) -> bool {
    match inside(rest, dir) {
        Some(rest) => meets(rest, name, can_contain),
        None => meets(rest, dir, can_contain),
    }
}

/// Whether `rest` is `name` or, with `can_contain`, a directory with it.
fn meets(rest: &[u8], name: &str, can_contain: bool) -> bool {
    match name.as_bytes().strip_prefix(rest) {
        Some([]) => true,
        Some([b'/', ..]) => can_contain,
        Some(_) => can_contain && rest.is_empty(),
        None => false,
    }
}

/// What comes before the last names of a path, if those are `name`: nothing, or a path with a final slash.
fn without_end<'p>(path: &'p [u8], name: &str) -> Option<&'p [u8]> {
    path.strip_suffix(name.as_bytes()).filter(|above| above.is_empty() || above.ends_with(b"/"))
}
