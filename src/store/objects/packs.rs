//! The packs of an object directory, as they were when it was listed.

use std::{path::Path, sync::Arc};

use super::{pack, pack::Pack};
use crate::{
    error::{Error, Result},
    fs::list_names,
    model::ContentId,
};

/// The packs at one moment, sorted by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Packs(Arc<Vec<Arc<Pack>>>);

impl Packs {
    /// Lists the packs in `dir`. Those in `known` are not opened again, unless they were damaged: an
    /// intact one may have taken the place of one.
    pub(super) fn list(dir: &Path, known: &Self) -> Result<Self> {
        let mut names = list_names(dir)?;
        names.retain(|name| name.to_str().is_some_and(pack::is_name));
        names.sort();
        let mut packs = Vec::with_capacity(names.len());
        for name in names {
            let is_it = |pack: &&Arc<Pack>| pack.name() == name && !pack.has_failed();
            let pack = known.0.iter().find(is_it).cloned();
            packs.push(pack.unwrap_or_else(|| Arc::new(Pack::new(dir.join(name)))));
        }
        Ok(Self(Arc::new(packs)))
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Pack>> {
        self.0.iter()
    }

    /// Whether the same packs are in both.
    pub(super) fn are(&self, others: &Self) -> bool {
        let is_same = |(one, other)| Arc::ptr_eq(one, other);
        self.0.len() == others.0.len() && self.iter().zip(others.iter()).all(is_same)
    }

    /// The size of an object; `None` if it is in none of them.
    pub(super) fn size(&self, id: &ContentId) -> Option<u64> {
        self.iter().find_map(|pack| pack.size(id))
    }

    /// The bytes of an object from the first pack that has them intact; `None` if it is in none.
    ///
    /// # Errors
    ///
    /// Fails if a pack has the object, and none has it intact.
    pub(super) fn read(&self, id: &ContentId) -> Result<Option<Vec<u8>>> {
        let mut failed = None;
        for pack in self.iter() {
            match pack.read(id) {
                Ok(Some(bytes)) => return Ok(Some(bytes)),
                Ok(None) => (),
                Err(err) => failed = Some(err),
            }
        }
        failed.map_or(Ok(None), Err)
    }

    /// Why an object that is in none of them may yet be in one.
    pub(super) fn fault(&self) -> Option<Error> {
        self.iter().find_map(|pack| pack.fault())
    }
}
