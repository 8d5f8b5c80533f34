//! Where else an object may be: a root whose repository was made anew, or that had none for a time,
//! has checkpoints in more than one place.

use super::{GitStore, Private, repo::Repo};
use crate::{
    error::{Error, Result},
    model::ContentId,
    store::record,
};

impl GitStore {
    /// Reads an object wherever the root has one of that name: in its private repository, among the
    /// copies, or in the repository it had before.
    pub(super) fn anywhere<T>(
        &self,
        id: &ContentId,
        read: impl Fn(&Repo) -> Result<T>,
        read_copy: impl Fn() -> Result<T>,
    ) -> Result<T> {
        let width = self.repo.hash.len_in_bytes();
        let first = if id.has_width(width) { read(&self.repo) } else { read_copy() };
        let err = match first {
            Err(err @ Error::Damaged { .. }) => err,
            // There is none yet: what there is, is elsewhere.
            Err(err) if !self.private.exists() => err,
            first => return first,
        };
        // It may have been added, or packed, after we looked which packs there are.
        if let Ok(found) = read(&self.repo.refreshed()) {
            return Ok(found);
        }
        if let Ok(found) = read_copy() {
            return Ok(found);
        }
        let kept = record::read_all(&self.state)?;
        let mut names: Vec<String> =
            kept.into_iter().filter_map(|kept| kept.record.ok()?.store).collect();
        names.sort_unstable();
        names.dedup();
        for name in names.iter().filter(|name| *name != self.private.name()) {
            let other = Private::named(self.state.state(), name).repo();
            if id.has_width(other.hash.len_in_bytes())
                && let Ok(found) = read(&other)
            {
                return Ok(found);
            }
        }
        Err(err)
    }
}
