//! Which of the user's repositories a private one belongs to. It is found by the path of the user's
//! git directory or, after a move, by that directory's identity.

use std::path::{Path, PathBuf};

use gix::hash::Kind as HashKind;
use serde::{Deserialize, Serialize};

use super::{PrivateRepository, SHA256};
use crate::{
    error::Result,
    fs::{read_small, replace},
    model::escape::{escape_path, parse_path},
    state::{StateDir, hash_name},
    store::record::identity::{Identity, Likeness},
};

/// How many git directories created by restores are remembered.
const REBUILT_MAX: usize = 64;
/// Far more than the file needs.
const ORIGIN_MAX_BYTES: u64 = 1 << 20;

/// `origin.json`.
#[derive(Serialize, Deserialize)]
struct OriginFile {
    version: u32,
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rebuilt: Vec<Rebuilt>,
}

/// A git directory that a restore created from what was held of another.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Rebuilt {
    made: Identity,
    from: Identity,
}

impl OriginFile {
    /// The path of the repository when it was last held.
    fn path(&self) -> Option<PathBuf> {
        parse_path(&self.path).ok()
    }

    /// The original directory that a restored one goes back to, directly or through several
    /// restores.
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

/// A name for the git directory at `path`: that with the number 0, unless another one that was there has it.
fn name_for(path: &[u8], number: u64) -> String {
    match number {
        0 => hash_name(&[path]),
        number => hash_name(&[path, &number.to_le_bytes()]),
    }
}

impl PrivateRepository {
    /// The private repository for the git directory `common_dir`: found by that path, or by the
    /// directory's identity if it has moved. It need not exist yet.
    pub(in crate::store) fn of(state: &StateDir, common_dir: &Path, hash: HashKind) -> Self {
        let of_path = match Self::of_path(state, common_dir, hash) {
            private if private.exists() => return private,
            private => private,
        };
        let Ok(now) = Identity::of(common_dir) else { return of_path };
        // Reads every origin, but only once for a repository.
        for private in Self::all(state).unwrap_or_default() {
            let Some(origin) = private.read_origin().filter(|_| private.hash == hash) else {
                continue;
            };
            let is_it = |then: Identity| then.likeness(&now) == Likeness::Same;
            if origin.identity.is_some_and(is_it) {
                // With a bind mount, it is at both paths.
                let is_there = origin.path().and_then(|path| Identity::of(&path).ok());
                if !is_there.is_some_and(is_it) {
                    // If this fails, maintenance finds no repository at the old path, which is
                    // safe.
                    let _later = private.describe(common_dir);
                }
                return private;
            }
        }
        of_path
    }

    /// The private repositories that are recorded for a path, except the one called `own`: a repository that was made
    /// anew with another hash function has another one.
    pub(in crate::store) fn at_path(
        state: &StateDir,
        common_dir: &Path,
        own: Option<&str>,
    ) -> Vec<Self> {
        let path = common_dir.as_os_str().as_encoded_bytes();
        let mut found = Vec::new();
        for suffix in ["", SHA256] {
            for number in 0_u64.. {
                let name = name_for(path, number) + suffix;
                let private = Self::named(state, &name);
                if own == Some(&*name) || !private.exists() {
                    break;
                }
                if private.origin().as_deref() == Some(common_dir) {
                    found.push(private);
                    break;
                }
            }
        }
        found
    }

    /// The private repository recorded for a path, or the first free name for it. One that moved
    /// away keeps its name, because records contain it.
    fn of_path(state: &StateDir, common_dir: &Path, hash: HashKind) -> Self {
        let path = common_dir.as_os_str().as_encoded_bytes();
        let mut number = 0_u64;
        loop {
            let mut name = name_for(path, number);
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

    /// The git directory that it belongs to, if recorded.
    pub(super) fn origin(&self) -> Option<PathBuf> {
        self.read_origin()?.path()
    }

    /// The git directory that it belongs to, if it is still at its path.
    pub(super) fn origin_now(&self) -> Option<PathBuf> {
        let origin = self.read_origin()?;
        let (path, then) = (origin.path()?, origin.identity?);
        let now = Identity::of(&path).ok()?;
        (then.likeness(&now) != Likeness::Different).then_some(path)
    }

    fn read_origin(&self) -> Option<OriginFile> {
        let json = read_small(&self.dir().join("origin.json"), ORIGIN_MAX_BYTES).ok()??;
        serde_json::from_slice(&json).ok()
    }

    /// Records which git directory it belongs to.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be written.
    pub(super) fn describe(&self, common_dir: &Path) -> Result<()> {
        let rebuilt = self.read_origin().map(|origin| origin.rebuilt).unwrap_or_default();
        self.write_origin(common_dir, rebuilt)
    }

    /// Records the directory that is at `common_dir` now, if it is a different one.
    pub(super) fn follow(&self, common_dir: &Path) {
        let known = self.read_origin().and_then(|origin| origin.identity);
        if known != Identity::of(common_dir).ok() {
            // Until this is written, the repository is not found after a move.
            let _later = self.describe(common_dir);
        }
    }

    /// Records that a restore created the git directory at `common_dir` from what was held of
    /// another.
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
        let path = escape_path(common_dir);
        let identity = Identity::of(common_dir).ok();
        let origin = OriginFile { version: 1, path, identity, rebuilt };
        let json = serde_json::to_vec_pretty(&origin).expect("strings and numbers are always JSON");
        replace(&self.dir().join("origin.json"), &json)
    }

    /// How likely it is that the git directory with identity `now` is the one that had `then`, or
    /// was created from it by restores.
    pub(super) fn likeness(&self, then: Identity, now: Identity) -> Likeness {
        let direct = then.likeness(&now);
        if direct != Likeness::Different {
            return direct;
        }
        let ancestors = |origin: OriginFile| origin.ancestor(then).likeness(&origin.ancestor(now));
        self.read_origin().map_or(direct, ancestors)
    }
}
