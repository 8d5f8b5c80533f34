//! Copies single objects into a pack, from wherever a repository has them.

use std::io;

use gix::{ObjectId, objs::Find, odb::pack::Find as _};

use crate::{
    error::{Error, Result},
    store::git::{
        pack::{Deflater, Pack, Packed},
        repo::{Odb, Repo, open_odb},
    },
};

/// Copies objects from wherever a repository has them.
pub(super) struct Copy {
    odb: Odb,
    deflater: Deflater,
    buffer: Vec<u8>,
}

impl Copy {
    pub(super) fn new(repo: &Repo) -> Result<Self> {
        let mut odb = open_odb(&repo.objects(), &repo.common_dir, repo.hash)?;
        // Places in packs are only told while the packs stay open.
        odb.prevent_pack_unload();
        Ok(Self { odb, deflater: Deflater::new(), buffer: Vec::new() })
    }

    pub(super) fn has(&self, id: &ObjectId) -> bool {
        gix::objs::Exists::exists(&self.odb, id)
    }

    /// About how many bytes a copy takes.
    pub(super) fn size(&mut self, id: &ObjectId) -> u64 {
        match self.odb.location_by_oid(id, &mut self.buffer) {
            Ok(Some(location)) => location.entry_size as u64,
            Ok(None) | Err(_) => 0,
        }
    }

    /// Adds an object: as it lies in its pack where it is whole there, else made again.
    pub(super) fn add(&mut self, id: ObjectId, pack: &mut Pack) -> Result<()> {
        let failed = |err: io::Error| Error::Other {
            message: format!("cannot copy object {id}: {err}"),
            hint: None,
        };
        let location = self.odb.location_by_oid(&id, &mut self.buffer).ok().flatten();
        if let Some(entry) = location.and_then(|location| self.odb.entry_by_location(&location))
            && is_whole_entry(&entry.data)
        {
            return pack.push_raw(id, &entry.data).map_err(failed);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let found = Find::try_find(&self.odb, &id, &mut buffer);
        let packed = match found {
            Ok(Some(data)) => Packed::new(data.kind, id, data.data, &mut self.deflater),
            Ok(None) => return Err(Error::damaged(id.to_string(), "it went while it was copied")),
            Err(err) => return Err(Error::damaged(id.to_string(), err.to_string())),
        };
        self.buffer = buffer;
        pack.push(&packed).map_err(failed)
    }
}

/// Whether a pack entry is an object of its own, and no difference from another.
fn is_whole_entry(entry: &[u8]) -> bool {
    entry.first().is_some_and(|byte| (1..=4).contains(&(byte >> 4 & 7)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_of_its_own_is_copied_as_it_lies() {
        for (kind, is_whole) in [(1, true), (2, true), (3, true), (4, true), (6, false), (7, false)]
        {
            assert_eq!(is_whole_entry(&[kind << 4 | 0x85]), is_whole, "{kind}");
        }
        assert!(!is_whole_entry(&[]));
    }
}
