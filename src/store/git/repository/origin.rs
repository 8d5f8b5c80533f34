//! Which repository of the user's a private one is for. It is found by the path of the user's git
//! directory or, after that has moved, by the directory's identity.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gix::hash::Kind as HashKind;
use serde::{Deserialize, Serialize};

use super::{Private, SHA256};
use crate::{
    error::{Error, Result},
    fs::{read_small, replace},
    state::{State, hash_name},
    store::{
        escape::{escape, unescape},
        record::identity::{Identity, Likeness},
    },
};

/// So many directories are remembered that a restore made.
const REBUILT_MAX: usize = 64;
/// Far more than they take.
const ORIGIN_MAX_BYTES: u64 = 1 << 20;

/// `origin.json`.
#[derive(Serialize, Deserialize)]
struct Origin {
    version: u32,
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rebuilt: Vec<Rebuilt>,
}

/// A git directory that a restore made from what was held of another.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Rebuilt {
    made: Identity,
    from: Identity,
}

impl Origin {
    /// Where the repository was when it was last held.
    fn path(&self) -> Option<PathBuf> {
        let bytes = unescape(&self.path)?;
        Some(PathBuf::from(OsStr::from_bytes(&bytes))).filter(|path| path.is_absolute())
    }

    /// The directory from which that one was made, directly or by way of others.
    fn ancestor(&self, of: Identity) -> Identity {
        let mut first = of;
        for _ in &self.rebuilt {
            let is_it = |it: &&Rebuilt| it.made.likeness(&first) == Likeness::Same;
            match self.rebuilt.iter().find(is_it) {
                Some(rebuilt) => first = rebuilt.from,
                None => break,
            }
        }
        first
    }
}

impl Private {
    /// The private repository for the user's repository whose shared git directory is `common_dir`:
    /// the one of that path, or of that directory before it moved. It need not exist yet.
    pub(in crate::store) fn of(state: &State, common_dir: &Path, hash: HashKind) -> Self {
        let of_path = match Self::of_path(state, common_dir, hash) {
            private if private.exists() => return private,
            private => private,
        };
        let Ok(now) = Identity::of(common_dir) else { return of_path };
        // Once for a repository: every origin is read.
        for private in Self::all(state).unwrap_or_default() {
            let Some(origin) = private.read_origin().filter(|_| private.hash == hash) else {
                continue;
            };
            let is_it = |then: Identity| then.likeness(&now) == Likeness::Same;
            if origin.identity.is_some_and(is_it) {
                // Through a bind mount it is at both places.
                let is_there = origin.path().and_then(|path| Identity::of(&path).ok());
                if !is_there.is_some_and(is_it) {
                    // If it cannot be written, maintenance finds no repository at the old place.
                    let _later = private.describe(common_dir);
                }
                return private;
            }
        }
        of_path
    }

    /// The one that is recorded under a path, or the first name that is free for it: one that moved
    /// away keeps its own, which records name.
    fn of_path(state: &State, common_dir: &Path, hash: HashKind) -> Self {
        let path = common_dir.as_os_str().as_encoded_bytes();
        let mut number = 0_u64;
        loop {
            let mut name = match number {
                0 => hash_name(&[path]),
                number => hash_name(&[path, &number.to_le_bytes()]),
            };
            if hash == HashKind::Sha256 {
                name.push_str(SHA256);
            }
            let private = Self::named(state, &name);
            match private.origin() {
                Some(other) if other != common_dir && private.exists() => number += 1,
                Some(_) | None => return private,
            }
        }
    }

    /// The git directory it is for, as far as that is known.
    pub(super) fn origin(&self) -> Option<PathBuf> {
        self.read_origin()?.path()
    }

    /// The git directory it is for, if that is still at its place.
    pub(super) fn origin_now(&self) -> Option<PathBuf> {
        let origin = self.read_origin()?;
        let (path, then) = (origin.path()?, origin.identity?);
        let now = Identity::of(&path).ok()?;
        (then.likeness(&now) != Likeness::Different).then_some(path)
    }

    fn read_origin(&self) -> Option<Origin> {
        let json = read_small(&self.dir().join("origin.json"), ORIGIN_MAX_BYTES).ok()??;
        serde_json::from_slice(&json).ok()
    }

    /// Writes down which git directory it is for.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be written.
    pub(super) fn describe(&self, common_dir: &Path) -> Result<()> {
        let rebuilt = self.read_origin().map(|origin| origin.rebuilt).unwrap_or_default();
        self.write_origin(common_dir, rebuilt)
    }

    /// Writes down which directory is at `common_dir` now, should it be another.
    pub(super) fn follow(&self, common_dir: &Path) {
        let known = self.read_origin().and_then(|origin| origin.identity);
        if known != Identity::of(common_dir).ok() {
            // Until it can be written the repository is not found after it has moved.
            let _later = self.describe(common_dir);
        }
    }

    /// Writes down that the git directory now at `common_dir` was made from what was held of another.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be written.
    pub(super) fn describe_rebuilt(&self, common_dir: &Path, from: Option<Identity>) -> Result<()> {
        let mut rebuilt = self.read_origin().map(|origin| origin.rebuilt).unwrap_or_default();
        if let (Some(from), Ok(made)) = (from, Identity::of(common_dir)) {
            rebuilt.retain(|old| old.made != made);
            rebuilt.push(Rebuilt { made, from });
            let surplus = rebuilt.len().saturating_sub(REBUILT_MAX);
            rebuilt.drain(..surplus);
        }
        self.write_origin(common_dir, rebuilt)
    }

    fn write_origin(&self, common_dir: &Path, rebuilt: Vec<Rebuilt>) -> Result<()> {
        let path = escape(common_dir.as_os_str().as_encoded_bytes());
        let identity = Identity::of(common_dir).ok();
        let origin = Origin { version: 1, path, identity, rebuilt };
        let json = serde_json::to_vec_pretty(&origin).map_err(|err| Error::Other {
            message: format!("cannot write origin.json: {err}"),
            hint: None,
        })?;
        replace(&self.dir().join("origin.json"), &json)
    }

    /// How sure it is that the git directory with the identity `now` is the one that had `then`, or
    /// was made from it by restores.
    pub(super) fn likeness(&self, then: Identity, now: Identity) -> Likeness {
        let direct = then.likeness(&now);
        match self.read_origin() {
            Some(origin) if direct == Likeness::Different => {
                origin.ancestor(then).likeness(&origin.ancestor(now))
            }
            Some(_) | None => direct,
        }
    }
}
