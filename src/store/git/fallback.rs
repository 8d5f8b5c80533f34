//! Finds objects in all places that a root's checkpoints use. There are several if its repository
//! was recreated, or if it had none for a time.

use std::{collections::BTreeSet, rc::Rc};

use super::{GitStore, LocatedCheckpoint, PrivateRepository, repo::Repo};
use crate::{
    error::{Error, Result},
    model::ContentId,
};

impl GitStore {
    /// Reads an object from wherever the root has it: its private repository, the copies, or its
    /// earlier repositories.
    pub(super) fn read_from_any<T>(
        &self,
        id: &ContentId,
        read: impl Fn(&Repo) -> Result<T>,
        read_copy: impl Fn() -> Result<T>,
    ) -> Result<T> {
        let width = self.repo.hash.len_in_bytes();
        let first = if id.has_width(width) { read(&self.repo) } else { read_copy() };
        let err = match first {
            Err(err @ Error::Damaged { .. }) => err,
            // There is no private repository yet.
            Err(err) if !self.private.exists() => err,
            first => return first,
        };
        // The object may have been added or packed after the packs were listed.
        if let Ok(found) = read(&self.repo.refreshed()) {
            return Ok(found);
        }
        if let Ok(found) = read_copy() {
            return Ok(found);
        }
        for other in self.earlier_repos()? {
            if id.has_width(other.hash.len_in_bytes())
                && let Ok(found) = read(&other)
            {
                return Ok(found);
            }
        }
        Err(err)
    }

    /// Other private repositories with checkpoints of the root, from an earlier path or repository.
    fn earlier_names(&self) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for entry in self.records.all()? {
            let Ok(record) = &entry.record else { continue };
            if let Some(name) = record.store.as_ref().filter(|name| **name != self.private.name()) {
                names.insert(name.clone());
            }
        }
        Ok(names)
    }

    /// The other private repositories that are recorded for the path of the user's repository. Those that only
    /// records name may belong to another root by now.
    pub(super) fn others_at_path(&self) -> Vec<Rc<Repo>> {
        let dot_git = self.root.path().join(".git");
        let common_dir = self.user.as_ref().map_or(&dot_git, |user| &user.common_dir);
        let own = Some(self.private.name());
        let others = PrivateRepository::at_path(self.state.state(), common_dir, own);
        others.iter().map(|private| self.repo_named(private.name())).collect()
    }

    /// An earlier private repository, opened once.
    pub(super) fn repo_named(&self, name: &str) -> Rc<Repo> {
        let mut earlier = self.earlier.borrow_mut();
        let private = PrivateRepository::named(self.state.state(), name);
        earlier.entry(name.to_owned()).or_insert_with(|| private.repo().into()).clone()
    }

    fn earlier_repos(&self) -> Result<Vec<Rc<Repo>>> {
        Ok(self.earlier_names()?.iter().map(|name| self.repo_named(name)).collect())
    }

    /// This store with each earlier private repository.
    pub(super) fn earlier(&self) -> Result<Vec<Self>> {
        let view = |name: String| {
            let private = PrivateRepository::named(self.state.state(), &name);
            let made =
                Self::made_of(None, private, self.refs.clone(), &self.root, self.state.state());
            Self { records: self.records.clone(), ..made }
        };
        Ok(self.earlier_names()?.into_iter().map(view).collect())
    }

    /// The git command that shows the files of a checkpoint: by its ref or, if that is missing, by
    /// its tree.
    pub(super) fn shown_by_git(&self, at: &LocatedCheckpoint) -> String {
        let LocatedCheckpoint { id, record, repo } = at;
        let tree = || Some(repo.object_id(&record.as_ref()?.tree?).to_string());
        let name = self.refs.find(repo, *id).ok().flatten().or_else(tree);
        let name = name.unwrap_or_else(|| self.refs.name(*id));
        let dir = shell_words::quote(&repo.common_dir.to_string_lossy()).into_owned();
        format!("git --git-dir={dir} show {name}:files/PATH")
    }
}
