//! What a call can destroy and no checkpoint holds.

use std::{
    ffi::OsStr,
    os::unix::{ffi::OsStrExt, fs::FileTypeExt},
    path::{Path, PathBuf},
};

use crate::{
    fs::PathResolver,
    model::{RelPath, Root, SkipReason, Skipped, Spares},
    reach::{self, AtRisk},
    scan,
};

/// Something that a call would destroy and no checkpoint holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheld {
    /// Which file or directory, absolute.
    pub path: PathBuf,
    /// Its size in bytes, if known.
    pub size: u64,
    /// Why it is not held, as a message fragment.
    pub why: &'static str,
    /// Whether the call names no more than where it may lie.
    pub is_guess: bool,
}

/// How well it is known that a call destroys something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Danger {
    Sure,
    Possible,
}

/// What a destructive call would remove and the checkpoint does not hold: what is both in `skipped`, which the
/// checkpoint left out, and at or below one of `at_risk`, which the call names. Leaves out what can be made again.
pub fn unheld(
    skipped: &[Skipped],
    at_risk: &[AtRisk],
    root: &Root,
    is_ignored: impl Fn(&RelPath) -> bool,
) -> Vec<Unheld> {
    let is_ignored = |path: &Path| {
        let mut above = std::iter::successors(root.relative(path).ok(), RelPath::parent);
        above.any(|path| is_ignored(&path))
    };
    // As scans name them.
    let real = PathResolver::default();
    let at_risk: Vec<AtRisk> = at_risk
        .iter()
        .map(|risk| AtRisk { path: real.place(&risk.path), ..risk.clone() })
        .collect();
    let named = at_risk.iter().filter(|risk| !risk.is_guess);
    let mut unheld: Vec<Unheld> = named.filter_map(|risk| disk(&risk.path)).collect();
    for Skipped { path, reason, size } in skipped.iter().filter(|it| it.reason.matters()) {
        let path = root.path().join(OsStr::from_bytes(path));
        // A repository is held by itself, whatever of its files is not.
        let is_repository =
            *reason == SkipReason::TooMany && path.file_name() == Some(".git".as_ref());
        if is_repository || unheld.iter().any(|known| known.path == path) {
            continue;
        }
        let around = at_risk.iter().filter(|risk| path.starts_with(&risk.path));
        let Some(danger) = around.filter_map(|risk| danger(risk, &path, &is_ignored)).min() else {
            continue;
        };
        let why = match reason {
            SkipReason::TooLarge => "over max_victim_size",
            SkipReason::TooMany => "too much to hold",
            other => other.words(),
        };
        unheld.push(Unheld { path, size: *size, why, is_guess: danger == Danger::Possible });
    }
    unheld
}

/// Whether a call destroys what is at `path`, at or below the place that it names; `None` if it spares that.
fn danger(risk: &AtRisk, path: &Path, is_ignored: &dyn Fn(&Path) -> bool) -> Option<Danger> {
    let named = if risk.is_guess { Danger::Possible } else { Danger::Sure };
    let seen = |is_sure| if is_sure { named } else { Danger::Possible };
    match &risk.spares {
        Spares::Nothing | Spares::Directories | Spares::Uncommitted => Some(named),
        Spares::Ignored => (!is_ignored(path)).then_some(named),
        // What is found while the call runs, whatever was known of the place, is what has such a name.
        Spares::OtherNames(pattern) => reach::has_name(&risk.path, path, pattern)
            .map(|has_it| if has_it { Danger::Sure } else { Danger::Possible }),
        // One that stands for too many files of a pattern is no more than a guess.
        Spares::OtherKinds => Some(if path == risk.path { named } else { Danger::Possible }),
        Spares::NotPacked(archive) => {
            reach::is_unpacked_over(path, &risk.path, Path::new(archive)).map(seen)
        }
        Spares::NotIn(source) => {
            let source = Path::new(source);
            let below = path.strip_prefix(&risk.path).ok()?;
            if below == Path::new("") && !path.is_dir() {
                return Some(named);
            }
            if source.symlink_metadata().is_err() {
                // The line itself may make it.
                return Some(Danger::Possible);
            }
            reach::has_some_of(path, &source.join(below)).map(seen)
        }
    }
}

/// What a partial checkpoint lacks because the deadline was reached.
pub fn unread(skipped: &[Skipped], root: &Root) -> Vec<Unheld> {
    let late = skipped.iter().filter(|it| it.reason == SkipReason::OutOfTime);
    late.map(|Skipped { path, reason, size }| {
        let path = root.path().join(OsStr::from_bytes(path));
        Unheld { path, size: *size, why: reason.words(), is_guess: false }
    })
    .collect()
}

/// What of `at_risk` is there and would be lost if nothing at all could be saved.
pub fn unheld_at_risk(at_risk: &[AtRisk]) -> Vec<Unheld> {
    let named = at_risk.iter().filter(|risk| !risk.is_guess).map(|risk| &risk.path);
    let there = named.filter(|risk| !scan::is_made_again(risk));
    there
        .filter_map(|risk| {
            let data = risk.symlink_metadata().ok()?;
            let size = if data.is_file() { data.len() } else { 0 };
            let (path, why) = (risk.clone(), "nothing could be saved");
            Some(Unheld { path, size, why, is_guess: false })
        })
        .collect()
}

/// A disk: its device node is held, its content never is.
fn disk(risk: &Path) -> Option<Unheld> {
    let is_disk = risk.symlink_metadata().is_ok_and(|data| data.file_type().is_block_device());
    let (path, why) = (risk.to_owned(), "a whole disk");
    is_disk.then_some(Unheld { path, size: 0, why, is_guess: false })
}
