//! Entry points for fuzz/: the parsers of everything in a repository.

use std::path::Path;

use gix::{ObjectId, hash::Kind as HashKind};

use super::{Record, index, modes, repo, repo::Repo, repository, tree};
use crate::{
    error::Result,
    model::{Root, RootKind},
};

/// Parses a tree object as a restore does, and as the tree of an index.
pub fn tree(bytes: &[u8]) {
    for hash in [HashKind::Sha1, HashKind::Sha256] {
        let id = ObjectId::null(hash);
        let _damaged = tree::directory(hash, &id, bytes);
    }
}

/// Parses the blobs of a checkpoint, and the index of one of our packs.
pub fn parts(bytes: &[u8]) {
    let _damaged = Record::from_json("meta", bytes);
    let _damaged = modes::parse(bytes);
    let _damaged = index::parse_extra(bytes);
    for hash in [HashKind::Sha1, HashKind::Sha256] {
        let _damaged = repository::rows(bytes, bytes.len() as u64, hash);
    }
}

/// A repository in which an index is written and read repeatedly.
pub struct IndexRoundTrip(Repo);

impl IndexRoundTrip {
    /// The repository in `worktree`.
    ///
    /// # Errors
    ///
    /// Fails if there is no usable repository.
    pub fn of(worktree: &Path) -> Result<Self> {
        let git_dir = worktree.join(".git");
        let kind = RootKind::Git { common_dir: git_dir.clone(), git_dir };
        Repo::open(&Root::new(worktree.to_owned(), kind)).map(Self)
    }

    /// Appends the checksum that git would write to `bytes`.
    pub fn signed(&self, bytes: &[u8]) -> Vec<u8> {
        let mut hasher = gix::hash::hasher(self.0.hash);
        hasher.update(bytes);
        let sum = hasher.try_finalize().unwrap_or(ObjectId::null(self.0.hash));
        [bytes, sum.as_slice()].concat()
    }

    /// Reads the index in the repository and builds its trees.
    pub fn read(&self) {
        let Ok(Some(file)) = index::open(&self.0) else { return };
        let name = |body: &[u8]| repo::name(self.0.hash, gix::objs::Kind::Tree, body);
        let _damaged = index::build(&self.0, &file, true, &mut |body| name(body));
    }
}
