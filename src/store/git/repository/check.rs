//! Looks for damage in what is held of a repository: whether its files and objects are there and,
//! if wanted, whether every byte is what it should be.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use flate2::read::ZlibDecoder;
use gix::{hash::Kind as HashKind, objs::Kind as ObjectKind, objs::tree::EntryKind};

use super::{Held, Private, borrow, names_of};
use crate::{
    fs::stat_path,
    model::ContentId,
    state::State,
    store::git::{refs, repo::Repo, tree},
};

/// What is wrong, and with what.
type Fault = (String, String);

/// What was looked at already: several checkpoints share it.
#[derive(Default)]
pub(in crate::store) struct Checked {
    trees: HashSet<(String, ContentId)>,
    stores: HashSet<String>,
}

/// Everything wrong with what is held of one repository that was not told before.
pub(in crate::store) fn check(
    state: &State,
    held: &Held,
    is_own: bool,
    read_data: bool,
    checked: &mut Checked,
) -> Vec<Fault> {
    let private = Private::named(state, &held.store);
    let mut faults = Vec::new();
    let repo = private.repo();
    if checked.trees.insert((held.store.clone(), held.tree)) {
        let wrong = files(&repo, held);
        faults.extend(wrong.err().map(|err| (format!("{}/", shown(&held.path)), err)));
        if !is_own && !is_kept(&repo, held) {
            let name = format!("refs/repository/{}", held.tree);
            faults.push((name, "the ref is gone, or leads elsewhere".to_owned()));
        }
    }
    let is_new = checked.stores.insert(held.store.clone());
    if is_new {
        let odd = private.odd_files().into_iter();
        faults.extend(odd.map(|(name, why)| {
            (format!("repositories/{}/{name}", private.name()), why.to_owned())
        }));
    }
    if read_data && is_new {
        for dir in borrow::borrowed_dirs(&private.linked()) {
            borrowed(&dir, &mut faults);
        }
    }
    faults
}

/// Whether a ref keeps what is held: one of its own, or that of the checkpoint.
pub(super) fn is_kept(repo: &Repo, held: &Held) -> bool {
    let tree = repo.object_id(&held.tree);
    let names = refs::all(repo).unwrap_or_default();
    names.iter().any(|name| refs::read(repo, name).ok().flatten() == Some(tree))
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).escape_debug().to_string()
}

/// Reads every file of the administration.
fn files(repo: &Repo, held: &Held) -> Result<(), String> {
    let top = repo.object_id(&held.tree);
    let told = |err: crate::error::Error| err.to_string();
    let mut open: Vec<_> = tree::entries(repo, &top).map_err(told)?;
    open.retain(|(name, _, _)| name.starts_with(b"repository"));
    if open.is_empty() {
        return Err("nothing is held of it".to_owned());
    }
    while let Some((_, kind, id)) = open.pop() {
        match kind {
            EntryKind::Tree => open.extend(tree::entries(repo, &id).map_err(told)?),
            EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                repo.read_checked(&id, ObjectKind::Blob).map_err(told)?;
            }
            EntryKind::Commit => (),
        }
    }
    Ok(())
}

/// Reads the packs and loose objects in one directory of borrowed objects.
fn borrowed(objects: &Path, faults: &mut Vec<Fault>) {
    let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_file());
    let fault = |path: &Path, why: String| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (format!("{name}, borrowed from the user's repository"), why)
    };
    let packs = objects.join("pack");
    for name in names_of(&packs).unwrap_or_default() {
        let path = packs.join(&name);
        if !is_file(&path) {
            faults.push(fault(&path, "it is no file".to_owned()));
            continue;
        }
        let looked = trailer_fits(&path);
        match looked {
            Ok(true) => (),
            Ok(false) => faults.push(fault(&path, "it is not what it was".to_owned())),
            Err(err) => faults.push(fault(&path, err.to_string())),
        }
    }
    for fan in names_of(objects).unwrap_or_default() {
        let Some(fan) = fan.to_str().filter(|fan| fan.len() == 2) else { continue };
        for rest in names_of(&objects.join(fan)).unwrap_or_default() {
            let path: PathBuf = objects.join(fan).join(&rest);
            if !is_file(&path) {
                faults.push(fault(&path, "it is no file".to_owned()));
                continue;
            }
            let Some(name) = rest.to_str().map(|rest| format!("{fan}{rest}")) else { continue };
            let Some(kind) = hash_of(&name) else { continue };
            let read = File::open(&path)
                .and_then(|file| Ok(hash_read(kind, &mut ZlibDecoder::new(file))?.to_string()));
            match read {
                Ok(found) if found == name => (),
                Ok(_) => faults.push(fault(&path, "it is not what its name says".to_owned())),
                Err(err) => faults.push(fault(&path, err.to_string())),
            }
        }
    }
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

/// Whether a file of a pack ends in the hash of all that is before.
fn trailer_fits(path: &Path) -> io::Result<bool> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_hashed = path.extension().is_some_and(|end| end == "pack" || end == "idx");
    let kind = stem.strip_prefix("pack-").and_then(hash_of).filter(|_| is_hashed);
    let Some(kind) = kind else { return Ok(true) };
    let size = stat_path(path)?.size;
    let Some(body) = size.checked_sub(kind.len_in_bytes() as u64) else { return Ok(false) };
    let mut reader = BufReader::new(File::open(path)?);
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
