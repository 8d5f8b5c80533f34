//! What fuzz/ feeds with bytes from anywhere: the readers of what is in a repository.

use std::path::Path;

use gix::{ObjectId, hash::Kind as HashKind};

use super::{index, meta, modes, repo, repo::Repo, repository, tree};
use crate::{
    error::Result,
    model::{Root, RootKind},
};

/// Reads a tree object, as a restore does, and as an index's tree.
pub fn tree(bytes: &[u8]) {
    for hash in [HashKind::Sha1, HashKind::Sha256] {
        let id = ObjectId::null(hash);
        let _damaged = tree::directory(hash, &id, bytes);
    }
}

/// Reads the parts of a checkpoint that are blobs, and the index of a pack of ours.
pub fn parts(bytes: &[u8]) {
    let _damaged = meta::parse("meta", bytes).map(|meta| meta.checkpoint);
    let _order = meta::order(bytes);
    let _damaged = modes::parse(bytes);
    let _damaged = index::parse_extra(bytes);
    for hash in [HashKind::Sha1, HashKind::Sha256] {
        let _damaged = repository::rows(bytes, bytes.len() as u64, hash);
    }
}

/// A repository whose index is written and read again and again.
pub struct Index(Repo);

impl Index {
    /// The repository in `worktree`.
    ///
    /// # Errors
    ///
    /// Fails if there is none that can be used.
    pub fn of(worktree: &Path) -> Result<Self> {
        let git_dir = worktree.join(".git");
        let kind = RootKind::Git { common_dir: git_dir.clone(), git_dir };
        Repo::open(&Root::new(worktree.to_owned(), kind)).map(Self)
    }

    /// `bytes` with the checksum that git writes behind them.
    pub fn signed(&self, bytes: &[u8]) -> Vec<u8> {
        let mut hasher = gix::hash::hasher(self.0.hash);
        hasher.update(bytes);
        let sum = hasher.try_finalize().unwrap_or(ObjectId::null(self.0.hash));
        [bytes, sum.as_slice()].concat()
    }

    /// Reads the index that lies there, and makes its trees.
    pub fn read(&self) {
        let Ok(Some(file)) = index::read(&self.0) else { return };
        let name = |body: &[u8]| repo::name(self.0.hash, gix::objs::Kind::Tree, body);
        let _damaged = index::build(&self.0, &file, true, &mut |body| name(body));
    }
}
