//! Copies single objects into a pack, from wherever a repository has them.

use std::io;

use gix::{
    ObjectId,
    objs::{Find, Kind},
    odb::pack::Find as _,
};

use crate::{
    error::{Error, Result},
    store::plumbing::{
        pack::{Deflater, GitPackWriter, Packed},
        repo::{Odb, Repo, name, open_odb},
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
        // Locations in packs are available only while the packs stay loaded.
        odb.prevent_pack_unload();
        Ok(Self { odb, deflater: Deflater::new(), buffer: Vec::new() })
    }

    pub(super) fn has(&self, id: &ObjectId) -> bool {
        gix::objs::Exists::exists(&self.odb, id)
    }

    /// The approximate size of a copy.
    pub(super) fn size(&mut self, id: &ObjectId) -> u64 {
        match self.odb.location_by_oid(id, &mut self.buffer) {
            Ok(Some(location)) => location.entry_size as u64,
            Ok(None) | Err(_) => 0,
        }
    }

    /// Adds an object: the raw pack entry if it is a whole object, else compressed again. Returns
    /// whether it could be read. A damaged object is not copied; `check` reports it.
    pub(super) fn add(&mut self, id: ObjectId, pack: &mut GitPackWriter) -> Result<bool> {
        let failed = |err: io::Error| Error::Other {
            message: format!("cannot copy object {id}: {err}"),
            hint: None,
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        let found = Find::try_find(&self.odb, &id, &mut buffer).ok().flatten();
        let found = found.map(|data| (data.kind, data.data.len()));
        let is_it = |(kind, length): &(Kind, usize)| {
            name(id.kind(), *kind, &buffer[..*length]).is_ok_and(|name| name == id)
        };
        let Some((kind, length)) = found.filter(is_it) else {
            self.buffer = buffer;
            return Ok(false);
        };
        let location = self.odb.location_by_oid(&id, &mut self.buffer).ok().flatten();
        let entry = location.and_then(|location| self.odb.entry_by_location(&location));
        let added = match entry.filter(|entry| is_whole_entry(&entry.data)) {
            Some(entry) => pack.push_raw(id, &entry.data),
            None => pack.push(&Packed::new(kind, id, &buffer[..length], &mut self.deflater)),
        };
        self.buffer = buffer;
        added.map_err(failed).map(|()| true)
    }
}

/// Whether a pack entry is a whole object, not a delta.
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
