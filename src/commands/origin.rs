//! Says where the checkpoints of a directory are when they are kept under another path.
//!
//! A directory that moved brings its checkpoints along by itself. What is left is a directory that may
//! have moved but cannot prove it, one that moved to a path with checkpoints of its own, and a copy.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{Project, known_roots, say};
use crate::{
    cache::ScanTable,
    fs::stat_path,
    model::{Kind, Stamp},
    process::Process,
    store::record::{
        self,
        identity::{Identity, Likeness, Registry},
    },
    ui,
};

/// So many files of another root are compared to tell whether this one is a copy.
const SAMPLE: usize = 64;

/// Where a directory comes from.
#[derive(Debug, PartialEq, Eq)]
enum DirectoryOrigin {
    /// It was at this path, and its new one has checkpoints of another directory, or the old one has
    /// another directory by now.
    Moved(PathBuf),
    /// It may be the directory that was at this path.
    PerhapsMoved(PathBuf),
    /// It has the files of the directory at this path, with their times.
    Copied(PathBuf),
}

/// For a project without checkpoints: says on stderr where those of its original may be.
pub(super) fn say_if_known(process: &mut Process<'_>, project: &Project) {
    if let Some(origin) = of(project) {
        say_origin(process, project, &origin);
    }
}

/// For a project with checkpoints: says on stderr if its directory is not the one they were taken of,
/// and was at another path that has checkpoints.
pub(super) fn say_if_swapped(process: &mut Process<'_>, project: &Project) {
    let path = project.root.path();
    let recorded = record::read_location(&project.state.root(&project.root)).ok().flatten();
    let is_that = |then: Identity| {
        Identity::of(path).is_ok_and(|now| then.likeness(&now) != Likeness::Different)
    };
    if project.is_gone || recorded.is_none_or(|recorded| is_that(recorded.root)) {
        return;
    }
    if let Some(origin @ DirectoryOrigin::Moved(_)) = moved_from(project) {
        say_origin(process, project, &origin);
    }
}

fn of(project: &Project) -> Option<DirectoryOrigin> {
    if project.is_gone {
        return None;
    }
    moved_from(project).or_else(|| copied_from(project).map(DirectoryOrigin::Copied))
}

fn moved_from(project: &Project) -> Option<DirectoryOrigin> {
    let found = Registry::roots(&project.state).other_path(project.root.path()).ok()?;
    match found? {
        (from, Likeness::Same) => Some(DirectoryOrigin::Moved(from)),
        (from, Likeness::Perhaps) => Some(DirectoryOrigin::PerhapsMoved(from)),
        (_, Likeness::Different) => None,
    }
}

/// The root that shares most files with this one, down to the nanosecond of their last change, if it
/// shares half of those compared.
fn copied_from(project: &Project) -> Option<PathBuf> {
    let here = project.root.path();
    let others =
        known_roots::known(&project.state).ok()?.into_iter().filter(|known| known.path != here);
    let shared = others.filter_map(|known| {
        let table = ScanTable::load(&known.state.cache())?;
        let sample: Vec<_> = files(&table).take(SAMPLE).collect();
        let is_here = |(path, then): &&(PathBuf, Stamp)| {
            let now = stat_path(&here.join(path));
            now.is_ok_and(|now| (now.size, now.mtime_ns) == (then.size, then.mtime_ns))
        };
        let count = sample.iter().filter(is_here).count();
        (count > 0 && count * 2 >= sample.len()).then_some((count, known.path))
    });
    shared.max_by_key(|(count, _)| *count).map(|(_, path)| path)
}

/// The files of a root when it was last scanned.
fn files(table: &ScanTable) -> impl Iterator<Item = (PathBuf, Stamp)> + '_ {
    table.dirs().flat_map(|dir| {
        let above = Path::new(OsStr::from_bytes(dir.path));
        let files = dir.rows().filter(|row| row.kind() == Some(Kind::File));
        files.map(move |row| (above.join(OsStr::from_bytes(row.name)), row.stamp))
    })
}

fn say_origin(process: &mut Process<'_>, project: &Project, origin: &DirectoryOrigin) {
    let (DirectoryOrigin::Moved(path)
    | DirectoryOrigin::PerhapsMoved(path)
    | DirectoryOrigin::Copied(path)) = origin;
    let shown = ui::path(path, project.home.as_deref());
    let what = match origin {
        DirectoryOrigin::Moved(_) => format!("this directory was at {shown} before"),
        DirectoryOrigin::PerhapsMoved(_) => {
            format!("this directory may be the one that was at {shown}")
        }
        DirectoryOrigin::Copied(_) => {
            format!("this looks like a copy of {shown}, and has no part in its checkpoints")
        }
    };
    let text = path.to_string_lossy();
    let root = ui::escape(shell_words::quote(&text).as_bytes()).into_owned();
    say(
        process,
        &format!(
            "note: {what}\n\
         hint: `beforehand list --root {root}` lists the checkpoints taken there,\n      \
         `beforehand restore --root {root} ID --into DIR` writes the files of one to a new directory"
        ),
    );
}
