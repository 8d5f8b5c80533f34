//! What the vault may let go of, and what it keeps on the disk.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
};

use super::{Vault, rebuild::remove_tree};
use crate::{
    error::{Error, Result},
    state::State,
    store::record,
};

/// What vaults alone keep on the disk, in bytes: objects whose only name is the vault's.
pub fn own_bytes(state: &State) -> u64 {
    let roots = record::all_roots(state).unwrap_or_default();
    roots.iter().map(|root| own_bytes_below(&root.vault())).sum()
}

fn own_bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let data = entry.metadata().ok()?;
            if data.is_dir() {
                return Some(own_bytes_below(&entry.path()));
            }
            let is_alone = data.is_file() && data.nlink() == 1;
            Some(if is_alone { data.blocks() * 512 } else { 0 })
        })
        .sum()
}

/// Drops vaults that no checkpoint needs, and packs that no checkpoint had. For whoever keeps
/// everybody else from saving; see
/// `Objects::alone`. Returns how many bytes that freed.
///
/// # Errors
///
/// Fails if the roots cannot be listed or something cannot be removed. A root with a record that
/// cannot be read keeps everything.
pub(in crate::store) fn sweep(state: &State) -> Result<u64> {
    let mut freed = 0;
    for root in record::all_roots(state)? {
        let vault = root.vault();
        if !vault.is_dir() {
            continue;
        }
        let kept = record::read_all(&root)?;
        let Ok(records) = kept.into_iter().map(|kept| kept.record).collect::<Result<Vec<_>>>()
        else {
            continue;
        };
        let needed: Vec<Vault> = records.into_iter().filter_map(|record| record.vault).collect();
        if needed.is_empty() {
            freed += own_bytes_below(&vault);
            remove_tree(&vault).map_err(Error::io("remove", &vault))?;
        } else {
            freed += drop_packs(&vault.join("git"), b"", &needed)
                .map_err(Error::io("tidy up", &vault))?;
        }
    }
    Ok(freed)
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
