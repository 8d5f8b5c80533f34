//! What a call can reach: the root, how much of it, and the paths that the call names.

mod archive;
mod around;
mod glob;
mod links;
mod named_paths;
mod raw_text;
#[cfg(test)]
mod tests;

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    fs::{PATH_MAX_BYTES, without_dots},
    model::{CallContext, Effect, Intent, Reach, Root, ScanScope, Spares},
};

pub use archive::is_unpacked_over;
pub use around::{Surroundings, look_around_real, path_around, root_around};
pub use glob::{expand as matching, has_name, has_some_of};
pub use named_paths::{AtRisk, plausible};
use named_paths::{meant_by, places};
use raw_text::RawText;

/// What a call can reach from `start`, the directory its session works in.
pub fn reach(
    start: &Path,
    context: &CallContext,
    what: (&Intent, &Effect),
    surroundings: &Surroundings<'_>,
) -> Option<Reach> {
    Some(reach_in(root_around(start, surroundings)?, start, context, what, surroundings))
}

/// The same, with the root around `start` at hand.
pub fn reach_in(
    (root, scope): (Root, ScanScope),
    start: &Path,
    context: &CallContext,
    (intent, effect): (&Intent, &Effect),
    surroundings: &Surroundings<'_>,
) -> Reach {
    let bases = bases(start, context, &root);
    let mut victims = places(effect, &bases, &root);
    if let Some(line) = named_paths::unresolved(intent, effect) {
        let text = RawText::look(&line, &bases, surroundings.home, &root);
        victims.extend(text.places);
        if named_paths::loses_unseen(effect) {
            victims.extend(text.inner);
        }
    }
    let over_links = links::over_links(effect, &bases, root.path()).into_iter();
    victims.extend(over_links.filter(|place| named_paths::is_worth_a_copy(place)));
    // What works in a part of another repository may change all of it: its index, and whatever a
    // `git reset` there replaces.
    let worked_in = named_paths::worked_in(effect, &bases, &root).into_iter();
    victims.extend(worked_in.filter_map(|dir| around::worktree_around(&dir, surroundings)));
    victims.sort();
    victims.dedup();
    let checkout = named_paths::checkout(intent, effect, &bases, &root);
    Reach { root, scope, victims, checkout }
}

/// The places a call names, exactly or by a glob, for something to be lost there: what has to be
/// held, or the user is asked. Less than [`Reach::victims`]: a target that is a mere guess never
/// leads to a question, and neither does what a `find` may or may not find.
pub fn at_risk(
    start: &Path,
    context: &CallContext,
    (intent, effect): (&Intent, &Effect),
    root: &Root,
) -> Vec<AtRisk> {
    let bases = bases(start, context, root);
    let mut at_risk = named_paths::at_risk(intent, effect, &bases, root);
    if at_risk.iter().any(|risk| !risk.is_guess) || named_paths::loses_unseen(effect) {
        let risk = |path| AtRisk { path, is_guess: false, spares: Spares::Nothing };
        at_risk.extend(links::over_links(effect, &bases, root.path()).into_iter().map(risk));
    }
    at_risk
}

/// The repositories below `root` that a call works in or names something of, by its words or by
/// what they do, other than the root's own.
pub fn within(
    cwd: &Path,
    intent: &Intent,
    effect: &Effect,
    root: &Root,
    surroundings: &Surroundings<'_>,
) -> Vec<(Root, ScanScope)> {
    let mut places: Vec<PathBuf> = named_paths::mentioned(intent, effect)
        .filter_map(|path| absolute(cwd, path))
        .chain([cwd.to_owned()])
        .filter_map(|place| repository_below(&place, root.path()))
        .collect();
    places.sort();
    places.dedup();
    let found = places.iter().filter_map(|place| root_around(place, surroundings));
    found.filter(|(inner, _)| root.relative(inner.path()).is_ok()).collect()
}

/// The directory of the repository that a place below `root` lies in, unless that is the root's.
fn repository_below(place: &Path, root: &Path) -> Option<PathBuf> {
    let below = place.starts_with(root).then(|| place.ancestors())?;
    let mut dirs = below.take_while(|dir| *dir != root);
    dirs.find(|dir| dir.join(".git").symlink_metadata().is_ok()).map(Path::to_owned)
}

/// Every place that the paths of an edit may mean, whether there is something or not.
pub fn edited(paths: &[PathBuf], start: &Path, context: &CallContext, root: &Root) -> Vec<PathBuf> {
    let bases = bases(start, context, root);
    let mut places: Vec<PathBuf> = paths.iter().flat_map(|path| meant_by(path, &bases)).collect();
    places.sort();
    places.dedup();
    places
}

/// Where a relative path of the call may be meant from.
fn bases<'a>(start: &'a Path, context: &'a CallContext, root: &'a Root) -> Vec<&'a Path> {
    let said = context.cwd.iter().chain(&context.bases).map(PathBuf::as_path);
    let mut bases: Vec<&Path> = said.filter(|base| base.is_absolute()).collect();
    bases.extend([start, root.path()]);
    bases.dedup();
    bases
}

/// `path` as seen from `base`, without `.` and `..`. A name before `..` is taken for a directory,
/// as everything but the kernel does; see `places::physical`.
fn absolute(base: &Path, path: &Path) -> Option<PathBuf> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.contains(&0) {
        return None;
    }
    let path = without_dots(&base.join(path));
    let can_be = path.is_absolute() && path.as_os_str().len() <= PATH_MAX_BYTES;
    can_be.then_some(path)
}
