//! The files in which an agent reads settings and hooks, of every scope, as its row lists them.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::rows::InstallRow;
use crate::{agent::SettingsFile, process::Process};

/// How many names of one directory are read.
pub(super) const NAMES_MAX: usize = 256;

/// A file of a row on this machine, or several: a `*` stands for any part of one name.
pub(super) struct FilePattern {
    dir: PathBuf,
    /// Below the directory; empty for the directory's own path.
    pattern: &'static str,
    /// Whether an administrator writes it.
    pub(super) is_managed: bool,
}

/// The patterns of files that a row lists, in its order. Those of projects are looked up below each of
/// `projects`, the first one first.
pub(super) fn patterns<'f>(
    files: impl IntoIterator<Item = &'f SettingsFile>,
    row: &InstallRow,
    process: &Process<'_>,
    projects: &[&Path],
) -> Vec<FilePattern> {
    let home = process.home().filter(|home| home.is_absolute());
    let mut patterns = Vec::new();
    for file in files {
        let is_managed = matches!(file, SettingsFile::System(..) | SettingsFile::Managed(_));
        let mut add = |dir: PathBuf, pattern: &'static str| {
            patterns.push(FilePattern { dir, pattern, is_managed });
        };
        match *file {
            SettingsFile::System(pattern, variable) => {
                match variable.and_then(|name| process.var(name)) {
                    Some(path) => add(PathBuf::from(path), ""),
                    None => add(process.aside.system().to_owned(), pattern),
                }
            }
            SettingsFile::Project(pattern) => {
                for project in projects {
                    add((*project).to_owned(), pattern);
                }
            }
            SettingsFile::User(pattern) | SettingsFile::Managed(pattern) => {
                if let Some(dir) = row.dir(process) {
                    add(dir, pattern);
                }
            }
            SettingsFile::Home(pattern) => {
                if let Some(home) = &home {
                    add(home.clone(), pattern);
                }
            }
        }
    }
    patterns
}

/// Whether one of the files can be called `name`: if not, where they are need not be known.
pub(super) fn can_be_called(file: &SettingsFile, name: &OsStr) -> bool {
    let pattern = match file {
        SettingsFile::System(_, Some(_)) => return true,
        SettingsFile::System(pattern, None)
        | SettingsFile::Project(pattern)
        | SettingsFile::User(pattern)
        | SettingsFile::Managed(pattern)
        | SettingsFile::Home(pattern) => pattern,
    };
    let pattern = pattern.as_bytes();
    let end = pattern.iter().rposition(|byte| matches!(byte, b'/' | b'*')).map_or(0, |at| at + 1);
    name.as_encoded_bytes().ends_with(&pattern[end..])
}

impl FilePattern {
    /// The files; the last by name first, because it wins. A directory is listed only for a part with a
    /// `*`, so a file without one need not exist.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut places = vec![self.dir.clone()];
        for part in self.parts() {
            let Some((start, end)) = part.split_once('*') else {
                for place in &mut places {
                    place.push(part);
                }
                continue;
            };
            let mut next = Vec::new();
            for place in &places {
                let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
                for entry in entries.take(NAMES_MAX) {
                    let name = entry.file_name();
                    let Some(text) = name.to_str() else { continue };
                    if is_match(text, start, end) {
                        next.push(place.join(text));
                    }
                }
            }
            next.sort_by(|one, other| other.cmp(one));
            places = next;
        }
        places
    }

    /// Whether `place` is one of the files, there or not.
    pub(super) fn is_at(&self, place: &Path) -> bool {
        let Ok(rest) = place.strip_prefix(&self.dir) else { return false };
        let mut names = rest.iter();
        let fit = self.parts().all(|part| {
            let Some(name) = names.next().and_then(|name| name.to_str()) else { return false };
            match part.split_once('*') {
                Some((start, end)) => is_match(name, start, end),
                None => name == part,
            }
        });
        fit && names.next().is_none()
    }

    fn parts(&self) -> impl Iterator<Item = &'static str> {
        self.pattern.split('/').filter(|part| !part.is_empty())
    }
}

fn is_match(name: &str, start: &str, end: &str) -> bool {
    name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))
}
