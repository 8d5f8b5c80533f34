//! Looks for damage in a vault: whether what a record names is there and, if wanted, whether every
//! byte is what it should be.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, BufReader, Read},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use flate2::read::ZlibDecoder;
use gix::hash::Kind as HashKind;

use super::{OsStr, Vault, rebuild::read_state};
use crate::{
    model::ContentId,
    state::RootState,
    store::objects::{Objects, object},
};

/// What is wrong, and with what.
pub(in crate::store) type Fault = (String, String);

/// Looks at the vaults of one root, at what several share only once.
pub(in crate::store) struct Checker<'a> {
    state: &'a RootState,
    objects: Objects,
    read_data: bool,
    good: HashSet<ContentId>,
    packs: HashSet<Vec<u8>>,
    has_read_loose: bool,
}

impl<'a> Checker<'a> {
    /// One for the vaults of the root that `state` belongs to.
    pub(in crate::store) fn new(state: &'a RootState, read_data: bool) -> Self {
        Self {
            state,
            objects: Objects::new(state.state().objects()),
            read_data,
            good: HashSet::new(),
            packs: HashSet::new(),
            has_read_loose: false,
        }
    }

    /// Everything wrong with one vault that was not told of another.
    pub(in crate::store) fn check(&mut self, vault: &Vault) -> Vec<Fault> {
        let mut faults = Vec::new();
        match read_state(self.state.state(), vault) {
            Ok(state) => {
                for id in state.objects() {
                    faults.extend(self.object(id));
                }
            }
            Err(err) => faults.push(("the vault's listing".to_owned(), err.to_string())),
        }
        for pack in &vault.packs {
            if self.packs.insert(pack.clone()) {
                faults.extend(["pack", "idx"].iter().filter_map(|kind| self.pack(pack, kind)));
            }
        }
        if self.read_data && !self.has_read_loose {
            self.has_read_loose = true;
            loose_below(&self.state.vault().join("git"), &mut faults);
        }
        faults
    }

    fn object(&mut self, id: ContentId) -> Option<Fault> {
        if !self.good.insert(id) {
            return None;
        }
        let looked = if self.read_data {
            self.objects.verify(&id)
        } else {
            self.objects.size(&id).map(|_| ())
        };
        looked.err().map(|err| (object(&id), err.to_string()))
    }

    /// A file of a pack ends in the hash of all that is before.
    fn pack(&self, stem: &[u8], kind: &str) -> Option<Fault> {
        let name = [stem, b".", kind.as_bytes()].concat();
        let path = self.state.vault().join("git").join(OsStr::from_bytes(&name));
        let looked = if self.read_data { trailer_fits(&path) } else { is_file(&path) };
        let why = match looked {
            Ok(true) => return None,
            Ok(false) => "it is not what it was".to_owned(),
            Err(err) => err.to_string(),
        };
        Some((format!("vault/git/{}", String::from_utf8_lossy(&name)), why))
    }
}

fn is_file(path: &Path) -> io::Result<bool> {
    fs::symlink_metadata(path).map(|data| data.is_file())
}

/// The kind of hash that a name of an object or a pack is made of.
fn hash_of(hex: &str) -> Option<HashKind> {
    let kind = match hex.len() {
        40 => HashKind::Sha1,
        64 => HashKind::Sha256,
        _ => return None,
    };
    hex.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(kind)
}

fn trailer_fits(path: &Path) -> io::Result<bool> {
    let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let Some(kind) = stem.strip_prefix("pack-").and_then(hash_of) else { return is_file(path) };
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let Some(body) = size.checked_sub(kind.len_in_bytes() as u64) else { return Ok(false) };
    let mut reader = BufReader::new(file);
    let hash = hash_read(kind, &mut Read::by_ref(&mut reader).take(body))?;
    let mut trailer = Vec::new();
    reader.read_to_end(&mut trailer)?;
    Ok(hash.as_slice() == trailer)
}

fn hash_read(kind: HashKind, reader: &mut dyn Read) -> io::Result<gix::ObjectId> {
    let mut hasher = gix::hash::hasher(kind);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match reader.read(&mut buffer)? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    hasher.try_finalize().map_err(|err| io::Error::other(err.to_string()))
}

/// Reads every loose object below a directory.
fn loose_below(dir: &Path, faults: &mut Vec<Fault>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            loose_below(&path, faults);
        } else if let Some(name) = loose_name(&path) {
            let read = File::open(&path).and_then(|file| {
                let kind = hash_of(&name).unwrap_or(HashKind::Sha1);
                Ok(hash_read(kind, &mut ZlibDecoder::new(file))?.to_string())
            });
            let why = match read {
                Ok(found) if found == name => continue,
                Ok(_) => "it is not what its name says".to_owned(),
                Err(err) => err.to_string(),
            };
            faults.push((format!("object {name} in the vault"), why));
        }
    }
}

/// The name of the loose object at a path: that of its directory and its own.
fn loose_name(path: &Path) -> Option<String> {
    let fan = path.parent()?.file_name()?.to_str().filter(|fan| fan.len() == 2)?;
    let above = path.parent()?.parent()?;
    // Files of git-lfs lie two directories deep, and are not deflated.
    let name = format!("{fan}{}", path.file_name()?.to_str()?);
    (above.file_name()? == "objects" && hash_of(&name).is_some()).then_some(name)
}
