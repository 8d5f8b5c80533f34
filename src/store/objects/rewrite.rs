//! Copies objects out of packs that are to go. What makes that safe is in [`sweep`](crate::store::sweep).

use std::{
    ffi::OsString,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use super::{
    Objects,
    pack::{Pack, is_name},
    remove_file,
};
use crate::{
    error::{Error, Result},
    model::ContentId,
};

/// A pack and everything that is in it.
#[derive(Debug)]
pub(in crate::store) struct PackContents {
    pack: Arc<Pack>,
    rows: Vec<(ContentId, Range<u64>)>,
}

impl PackContents {
    /// The objects in the pack.
    pub(in crate::store) fn ids(&self) -> impl Iterator<Item = &ContentId> {
        self.rows.iter().map(|(id, _)| id)
    }

    /// How many bytes those objects have that `is_wanted` selects.
    pub(in crate::store) fn bytes(&self, is_wanted: impl Fn(&ContentId) -> bool) -> u64 {
        let wanted = self.rows.iter().filter(|(id, _)| is_wanted(id));
        wanted.map(|(_, range)| range.end - range.start).sum()
    }

    /// The file.
    pub(in crate::store) fn path(&self) -> &Path {
        self.pack.path()
    }

    /// Removes the pack and returns the space it took; 0 if it is gone already.
    pub(in crate::store) fn remove(&self) -> Result<u64> {
        remove_file(self.pack.path())
    }
}

impl Objects {
    /// How many packs there are.
    pub(in crate::store) fn pack_count(&self) -> usize {
        let is_pack = |name: &OsString| name.to_str().is_some_and(is_name);
        let names = crate::fs::list_names(&self.packs_dir()).unwrap_or_default();
        names.iter().filter(|name| is_pack(name)).count()
    }

    /// What is in each pack, or why that cannot be told.
    pub(in crate::store) fn packs_read(&self) -> Result<Vec<Result<PackContents>>> {
        let read = |pack: &Arc<Pack>| {
            let rows = pack.rows()?;
            Ok(PackContents { pack: Arc::clone(pack), rows })
        };
        Ok(self.list_packs()?.iter().map(read).collect())
    }

    /// The packs of which it cannot be told what is in them, and why.
    pub(in crate::store) fn damaged_packs(&self) -> Result<Vec<(PathBuf, Error)>> {
        let damage = |pack: &Arc<Pack>| Some((pack.path().to_owned(), pack.rows().err()?));
        Ok(self.list_packs()?.iter().filter_map(damage).collect())
    }

    /// Puts the packs aside of which it cannot be told what is in them. Says what was done. The caller
    /// holds [`Objects::lock_exclusive`].
    pub(in crate::store) fn put_damaged_aside(&self) -> Result<Vec<String>> {
        let mut done = Vec::new();
        for pack in self.list_packs()?.iter() {
            if let Err(Error::Damaged { what, .. }) = pack.rows() {
                let aside = pack.path().with_extension("damaged");
                std::fs::rename(pack.path(), &aside).map_err(Error::io("put aside", &aside))?;
                done.push(format!("put {what} aside, as {}.damaged", pack.name()));
            }
        }
        Ok(done)
    }

    /// Adds the objects of `packs` that `stays` selects once more, in one new pack, and returns its
    /// size. A pack that is equal to the new one is taken from `packs`.
    ///
    /// It does so even if another pack has them: two processes at this would rely on each other's.
    ///
    /// # Errors
    ///
    /// Fails if something cannot be read or written. Nothing is lost then.
    pub(in crate::store) fn copy_out(
        &self,
        packs: &mut Vec<PackContents>,
        stays: impl Fn(&ContentId) -> bool,
        deadline: Instant,
    ) -> Result<u64> {
        if !packs.iter().any(|contents| contents.ids().any(&stays)) {
            return Ok(0);
        }
        let (batch, mut damaged) = (self.batch(deadline)?, Vec::new());
        for PackContents { pack, rows } in packs.iter() {
            let mut rows: Vec<_> = rows.iter().filter(|(id, _)| stays(id)).collect();
            rows.sort_unstable_by_key(|(_, range)| range.start);
            for (id, range) in rows {
                match pack.read(id) {
                    Ok(Some(bytes)) => batch.keep(*id, &bytes)?,
                    // Another process has just removed the pack: what is needed of it is elsewhere.
                    Ok(None) => (),
                    Err(Error::Damaged { .. }) => damaged.push((pack, id, range)),
                    Err(err) => return Err(err),
                }
            }
        }
        // Damaged bytes are the user's to look at, unless they are there intact.
        for (pack, id, range) in damaged {
            if self.verify(id).is_err() {
                let bytes = pack.bytes(range).map_err(Error::io("read", pack.path()))?;
                batch.keep(*id, &bytes)?;
            }
        }
        let Some(added) = batch.publish()?.pack else { return Ok(0) };
        packs.retain(|contents| contents.path() != added);
        Ok(crate::fs::stat_path(&added).map_or(0, |stamp| stamp.size))
    }
}
