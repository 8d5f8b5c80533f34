//! What the vault may let go of, and what it keeps on the disk.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use super::Vault;
use crate::{
    error::{Error, Result},
    fs::remove_tree,
    state::State,
    store::{own_bytes, record},
};

/// Vaults that nobody needs any more, under names that nobody looks for.
#[must_use = "they are on the disk until they are removed"]
#[derive(Debug, Default)]
pub(in crate::store) struct SetAside {
    freed: u64,
    dirs: Vec<PathBuf>,
}

impl SetAside {
    /// Removes them, and returns how many bytes all of it freed.
    ///
    /// # Errors
    ///
    /// Fails if something cannot be removed; the next one to set vaults aside tries again.
    pub(in crate::store) fn remove(self) -> Result<u64> {
        let mut freed = self.freed;
        for dir in self.dirs {
            freed += own_bytes(&dir);
            remove_tree(&dir).map_err(Error::io("remove", &dir))?;
        }
        Ok(freed)
    }
}

/// Sets vaults aside that no checkpoint needs, and drops packs that no checkpoint had. For whoever
/// keeps everybody else from saving (see `Objects::alone`), who need not while they are removed.
///
/// # Errors
///
/// Fails if the roots cannot be listed or something cannot be removed. A root with a record that
/// cannot be read keeps everything.
pub(in crate::store) fn set_aside(state: &State) -> Result<SetAside> {
    let mut aside = SetAside::default();
    for root in record::all_roots(state)? {
        let (vault, gone) = (root.vault(), root.vault().with_extension("gone"));
        if gone.is_dir() {
            // Its remover was killed.
            aside.dirs.push(gone.clone());
        }
        if !vault.is_dir() {
            continue;
        }
        let kept = record::read_all(&root)?;
        let Ok(records) = kept.into_iter().map(|kept| kept.record).collect::<Result<Vec<_>>>()
        else {
            continue;
        };
        let needed: Vec<Vault> = records.into_iter().filter_map(|record| record.vault).collect();
        if !needed.is_empty() {
            aside.freed += drop_packs(&vault.join("git"), b"", &needed)
                .map_err(Error::io("tidy up", &vault))?;
        } else if !gone.exists() {
            fs::rename(&vault, &gone).map_err(Error::io("set aside", &vault))?;
            aside.dirs.push(gone);
        }
    }
    Ok(aside)
}

/// Removes packs that the repository has given up and no checkpoint had.
fn drop_packs(dir: &Path, name: &[u8], needed: &[Vault]) -> io::Result<u64> {
    let mut freed = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let child = entry.file_name();
        let slash: &[u8] = if name.is_empty() { b"" } else { b"/" };
        let below = [name, slash, child.as_bytes()].concat();
        let data = entry.metadata()?;
        if data.is_dir() {
            freed += drop_packs(&entry.path(), &below, needed)?;
            continue;
        }
        let is_pack = name.ends_with(b"/pack") && child.as_bytes().starts_with(b"pack-");
        let at = below.iter().rposition(|&byte| byte == b'.').unwrap_or(below.len());
        let stem = &below[..at];
        if is_pack
            && data.nlink() == 1
            && !needed.iter().any(|it| it.packs.iter().any(|p| p == stem))
        {
            fs::remove_file(entry.path())?;
            freed += data.blocks() * 512;
        }
    }
    Ok(freed)
}
