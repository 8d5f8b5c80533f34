//! Disposes of a repository that was replaced or removed: deletes it if a checkpoint holds it as it
//! is, and otherwise renames it to a visible name next to its path.
//!
//! The comparison comes after the exchange, when no program finds the repository at its path any
//! more and could change it. A commit made after the before-restore checkpoint, by another program
//! or while a restore was interrupted, is in no checkpoint.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Build, EntryKind, GONE, Held, HeldFiles, NEW, OLD, PrivateRepository, beside,
    held_paths::place_of, names_of, restore_index,
};
use crate::{
    crash,
    error::{Error, Result},
    fs::remove_tree,
    model::{CheckpointId, is_beside_repository, is_gits_own, names_in_git},
    root,
    state::StateDir,
    store::{
        plumbing::repo::Repo,
        record::{
            Record,
            identity::{Identity, Likeness},
        },
        repository::{
            administration,
            borrow::{self, BorrowLimits},
        },
    },
};

/// A replaced repository that no checkpoint holds as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Its original path.
    pub place: PathBuf,
    /// Its present path.
    pub now: PathBuf,
}

/// The two checkpoints of a restore: what one of them holds may be deleted.
pub struct Ends<'a> {
    /// The before-restore checkpoint.
    pub held: CheckpointId,
    /// Both records, as far as they can be read.
    pub records: &'a [Record],
}

impl Ends<'_> {
    /// Deletes `old`, which was at `place`, or renames it.
    ///
    /// # Errors
    ///
    /// Fails if it can be neither deleted nor renamed.
    pub(super) fn retire(
        &self,
        state: &StateDir,
        root: &Path,
        place: &Path,
        old: &Path,
    ) -> Result<Option<SetAside>> {
        if old.symlink_metadata().is_err() {
            return Ok(None);
        }
        let mut is_rest_empty = true;
        if place.is_dir() && old.is_dir() {
            let kept = keep_besides(old, place, b"");
            is_rest_empty = kept.map_err(Error::io("keep what is no part of", place))?;
        }
        // What cannot be read is not known to be held.
        if is_rest_empty && self.is_held(state, root, place, old).unwrap_or(false) {
            // Half of it would look like another repository, which is set aside.
            let gone = beside(self.held, place, GONE);
            fs::rename(old, &gone).map_err(Error::io("rename", old))?;
            crash::point("repository-retired");
            return remove_tree(&gone).map(|()| None).map_err(Error::io("remove", &gone));
        }
        let now = self.free_name(place);
        fs::rename(old, &now).map_err(Error::io("set aside", old))?;
        Ok(Some(SetAside { place: place.to_owned(), now }))
    }

    fn free_name(&self, place: &Path) -> PathBuf {
        let mut name = place.as_os_str().to_owned();
        name.push(format!(".before-restore-{}", self.held.short()));
        let mut free = PathBuf::from(&name);
        let mut number = 1_u64;
        while free.symlink_metadata().is_ok() {
            number += 1;
            let mut next = name.clone();
            next.push(format!("-{number}"));
            free = next.into();
        }
        free
    }

    /// Whether one of the checkpoints holds the repository of `place` as it is now at `old`.
    /// Borrows objects that were added since.
    fn is_held(&self, state: &StateDir, root: &Path, place: &Path, old: &Path) -> Result<bool> {
        let found = fs::symlink_metadata(old).map_err(Error::io("look at", old))?;
        if !found.is_dir() {
            return Ok(self.is_held_pointer(root, place, old) || found.len() == 0);
        }
        for record in self.records {
            for held in record.repositories.iter().filter(|it| place_of(root, it) == place) {
                if is_as_held(state, root, record, held, old)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The paths of repositories in the checkpoints, and of `.git` files that point to one.
    fn places(&self, root: &Path) -> BTreeSet<PathBuf> {
        let mut places = BTreeSet::new();
        for record in self.records {
            let pointers = record.pointers();
            places.extend(pointers.map(|(path, _)| root.join(OsStr::from_bytes(path))));
            places.extend(record.repositories.iter().map(|held| place_of(root, held)));
        }
        places
    }

    /// Whether `left` is an unfinished repository of a restore: a directory that none of the
    /// checkpoints holds.
    fn is_unfinished(&self, state: &StateDir, left: &Path) -> bool {
        let Ok(now) = Identity::of(left) else { return false };
        let is_another = |held: &Held| {
            let private = PrivateRepository::named(state, &held.store);
            let likeness = held.identity.map(|then| private.likeness(then, now));
            likeness.is_none_or(|likeness| likeness == Likeness::Different)
        };
        let mut repositories = self.records.iter().flat_map(|record| &record.repositories);
        !left.is_symlink() && left.is_dir() && repositories.all(is_another)
    }

    fn is_held_pointer(&self, root: &Path, place: &Path, old: &Path) -> bool {
        let text = root::pointer_text(old);
        let mut pointers = self.records.iter().flat_map(Record::pointers);
        pointers.any(|(path, then)| {
            root.join(OsStr::from_bytes(path)) == place && Some(then) == text.as_ref()
        })
    }
}

fn is_as_held(
    state: &StateDir,
    root: &Path,
    record: &Record,
    held: &Held,
    old: &Path,
) -> Result<bool> {
    let private = PrivateRepository::named(state, &held.store);
    let repo = private.repo();
    let mut now = administration::files(&repo, old)?;
    let mut is_same = true;
    if let Some((path, entries)) = Build::new(&private, &repo, held)?.staged(root, record)? {
        let dir = old.join(path.parent().unwrap_or(Path::new("")));
        is_same = !restore_index::differs(&Repo::at(&dir, repo.hash), &entries);
        now.remove(path.as_os_str().as_bytes());
    }
    HeldFiles::open(&repo, held)?.each(&mut |path, kind, id| {
        if kind != EntryKind::Tree {
            is_same &= now.remove(path) == Some(id);
        }
        Ok(())
    })?;
    if !is_same || !now.is_empty() {
        return Ok(false);
    }
    let _shared = private.share(None)?;
    let borrowed = borrow::borrow(old, &private.linked(), false, BorrowLimits::default())?;
    Ok(borrowed.left_out.is_none())
}

/// Cleans up after an interrupted restore, next to repositories: deletes unfinished ones, and
/// deletes or sets aside old ones.
pub fn remove_unfinished(state: &StateDir, root: &Path, ends: &Ends<'_>) -> Vec<SetAside> {
    let mut aside = Vec::new();
    for place in ends.places(root) {
        // A checkpoint holds it. If this fails, the next restore tries again.
        let _later = remove_tree(&beside(ends.held, &place, GONE));
        let old = beside(ends.held, &place, OLD);
        if place.symlink_metadata().is_err() && old.exists() {
            // The restore was interrupted between two renames, so the old repository goes back.
            let _later = fs::rename(&old, &place);
        }
        // If this fails, the next restore tries again.
        for left in [beside(ends.held, &place, NEW), old] {
            if ends.is_unfinished(state, &left) {
                let _later = remove_tree(&left);
            } else {
                aside.extend(ends.retire(state, root, &place, &left).ok().flatten());
            }
        }
        let _later = remove_tree(&beside(ends.held, &place.join("part"), NEW));
    }
    aside
}

/// Moves what no checkpoint holds from a git directory, or what is at `path` in it, to its replacement: what is no object among the
/// objects, pipes and sockets. Locks would stop git there, so they stay. Returns whether all that stays is
/// part of the repository, or has no bytes.
fn keep_besides(old: &Path, new: &Path, path: &[u8]) -> io::Result<bool> {
    let mut is_rest_empty = true;
    for name in names_of(old).unwrap_or_default() {
        let (from, to) = (old.join(&name), new.join(&name));
        let path = [path, b"/", name.as_bytes()].concat();
        let found = fs::symlink_metadata(&from)?;
        if found.is_dir() {
            is_rest_empty &= keep_besides(&from, &to, &path)?;
            continue;
        }
        let below = [b".git", &path[..]].concat();
        let is_special = !found.is_file() && !found.is_symlink();
        if (is_special || !is_gits_own(&below)) && to.symlink_metadata().is_err() {
            fs::create_dir_all(new)?;
            fs::rename(&from, &to)?;
        } else if names_in_git(&below).is_some_and(|names| is_beside_repository(&names)) {
            is_rest_empty &= found.len() == 0;
        }
    }
    Ok(is_rest_empty)
}
