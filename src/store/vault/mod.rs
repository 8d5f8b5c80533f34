//! The vault: what it takes to bring a repository back when its `.git` is gone.
//!
//! Git's objects never change once they have their name, so they are hard-linked into the state
//! directory, or copied where that is another file system. Everything else in a `.git` is little
//! and changes: a listing among the private objects holds it, file by file. A checkpoint's record
//! names the listing; until then nothing here counts.

mod check;
mod rebuild;
mod state;
mod sweep;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

pub(super) use check::Checker;
pub use rebuild::{fitting, is_mendable, mend, missing, reader, rebuild};
pub(super) use state::GitState;
pub(super) use sweep::{SetAside, set_aside};

use super::{
    escape::{escape, unescape},
    listing::Line,
    objects::{Batch, Objects},
};
use crate::{
    error::{Error, Result},
    fs::{
        Dir, create_private_dirs, hand_over, protect_dir, read_small, replace, stat_path, sync_dir,
    },
    model::{ContentId, Entry, Kind, RelPath, SkipReason, Skipped},
    scan::is_racy,
    state::RootState,
};

/// No single file of git's own but objects comes near it.
const FILE_MAX_BYTES: u64 = 64 << 20;
/// What is copied at most in one go, where links cannot be made.
const COPY_MAX_BYTES: u64 = 256 << 20;
/// A million packs' names.
const SEEN_MAX_BYTES: u64 = 64 << 20;
/// As deep as anybody's refs are.
const DEPTH_MAX: usize = 100;
/// How often objects are listed again because git packed them meanwhile.
const TRIES: usize = 3;

/// What a record says of the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vault {
    /// The listing of everything in each `.git` but objects, by paths below the root.
    pub state: ContentId,
    /// The packs there were, by paths below the root, without what is behind the last dot.
    pub packs: Vec<Vec<u8>>,
}

/// A [`Vault`] as a record has it.
#[derive(Serialize, Deserialize)]
pub(super) struct VaultFile {
    state: String,
    #[serde(default)]
    packs: Vec<String>,
}

impl VaultFile {
    /// What is written of it.
    pub(super) fn of(vault: &Vault) -> Self {
        let packs = vault.packs.iter().map(|pack| escape(pack)).collect();
        Self { state: vault.state.to_string(), packs }
    }

    /// Reads it; why not, as a fragment.
    pub(super) fn into_vault(self) -> Result<Vault, &'static str> {
        let state = ContentId::parse(&self.state).ok_or("the vault's state is not an id")?;
        let packs: Option<Vec<_>> = self.packs.iter().map(|pack| unescape(pack)).collect();
        Ok(Vault { state, packs: packs.ok_or("a pack's name is not escaped as it should be")? })
    }
}

/// Puts everything in the repositories `git_dirs` but their objects into `batch`. What cannot be
/// held is added to `left`. `None` if there is nothing.
pub(super) fn hold_state(
    batch: &mut Batch<'_>,
    root: &Path,
    git_dirs: &[RelPath],
    left: &mut Vec<Skipped>,
) -> Result<Option<GitState>> {
    let mut holding = Holding { batch, left, state: GitState::default() };
    for git_dir in git_dirs {
        holding.add(&root.join(git_dir.as_path()), git_dir.as_bytes(), 0)?;
    }
    let state = holding.state;
    if state.listing.is_empty() {
        return Ok(None);
    }
    state.put_into(batch)?;
    Ok(Some(state))
}

/// Whether two states differ by no more than what git notes down for its own speed.
pub(super) fn is_same(objects: &Objects, old: &Vault, new: &GitState) -> bool {
    if old.state == new.id() {
        return true;
    }
    let Ok(GitState { mut listing, .. }) = GitState::read(objects, &old.state) else {
        return false;
    };
    let mut new = new.listing.clone();
    // What is staged is compared as a tree; the rest of the index is stamps. Our own refs come
    // with every checkpoint.
    let ours = b"/refs/turnback";
    let matters = |path: &[u8]| {
        !path.ends_with(b"/index")
            && !path.ends_with(b"/FETCH_HEAD")
            && !path.windows(ours.len()).any(|part| part == ours)
    };
    listing.retain(|path, _| matters(path));
    new.retain(|path, _| matters(path));
    listing == new
}

struct Holding<'h, 'b> {
    batch: &'h mut Batch<'b>,
    left: &'h mut Vec<Skipped>,
    state: GitState,
}

impl Holding<'_, '_> {
    fn add(&mut self, path: &Path, name: &[u8], depth: usize) -> Result<()> {
        let Ok(stamp) = stat_path(path) else { return Ok(()) };
        let line = |content, size| Line {
            entry: Entry {
                kind: stamp.kind().unwrap_or(Kind::Fifo),
                permissions: stamp.permissions(),
                content,
                device: 0,
            },
            size,
        };
        let held = match stamp.kind() {
            Some(Kind::File) if stamp.size > FILE_MAX_BYTES => None,
            Some(Kind::File) => self.state.keep_file(self.batch, path, stamp.size)?,
            Some(Kind::Link) => fs::read_link(path).ok().map(|text| {
                let text = text.into_os_string().into_encoded_bytes();
                let size = text.len() as u64;
                (self.state.keep(text), size)
            }),
            Some(Kind::Directory) => {
                self.state.add(name, line(None, 0));
                return self.directory(path, name, depth);
            }
            // A daemon's socket is its own.
            Some(Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice) | None => {
                return Ok(());
            }
        };
        if let Some((content, size)) = held {
            self.state.add(name, line(Some(content), size));
        } else {
            let large = stamp.size > FILE_MAX_BYTES;
            let reason = if large { SkipReason::TooLarge } else { SkipReason::Unreadable };
            self.left.push(Skipped { path: name.to_vec(), reason, size: stamp.size });
        }
        Ok(())
    }

    fn directory(&mut self, path: &Path, name: &[u8], depth: usize) -> Result<()> {
        let Ok(names) = names_of(path) else {
            let (path, reason) = (name.to_vec(), SkipReason::Unreadable);
            self.left.push(Skipped { path, reason, size: 0 });
            return Ok(());
        };
        for child in names.iter().filter(|_| depth < DEPTH_MAX) {
            let bytes = child.as_bytes();
            let below = [name, b"/", bytes].concat();
            if holds_objects(path, child) {
                let info = [&below[..], b"/info"].concat();
                let alternates = [&info[..], b"/alternates"].concat();
                self.add(&path.join(child).join("info/alternates"), &alternates, depth)?;
            } else if !bytes.ends_with(b".lock") && !bytes.starts_with(b"tmp_") {
                self.add(&path.join(child), &below, depth + 1)?;
            }
        }
        Ok(())
    }
}

fn names_of(dir: &Path) -> io::Result<Vec<OsString>> {
    let names: io::Result<Vec<OsString>> =
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect();
    let mut names = names?;
    names.sort();
    Ok(names)
}

/// Whether `dir/name` is where a repository, or an extension of git, keeps files that never change.
fn holds_objects(dir: &Path, name: &OsStr) -> bool {
    let above = dir.file_name();
    let is_extension = above == Some(OsStr::new("lfs")) || above == Some(OsStr::new("annex"));
    let is_there = |name: &str| dir.join(name).symlink_metadata().is_ok();
    // A repository that has lost its HEAD still has its objects.
    let is_repository =
        || is_there("HEAD") || is_there("config") || above == Some(OsStr::new(".git"));
    name == "objects" && (is_extension || is_repository())
}

/// Every directory of objects below a `.git`, by its path below the root.
fn object_dirs(path: &Path, name: &[u8], depth: usize, found: &mut Vec<Vec<u8>>) {
    let Ok(names) = names_of(path) else { return };
    for child in names {
        let below = [name, b"/", child.as_bytes()].concat();
        let is_dir = || path.join(&child).symlink_metadata().is_ok_and(|data| data.is_dir());
        let is_way = matches!(child.as_bytes(), b"modules" | b"lfs" | b"annex")
            || name.split(|&byte| byte == b'/').any(|part| part == b"modules");
        if holds_objects(path, &child) {
            found.push(below);
        } else if is_way && is_dir() && depth < DEPTH_MAX {
            object_dirs(&path.join(child), &below, depth + 1, found);
        }
    }
}

/// Links every object of the repositories `git_dirs` into the vault of `state`, those that are not
/// there yet. Returns the packs there are. What cannot be held is added to `left`.
///
/// # Errors
///
/// Fails if the vault cannot be written.
pub(super) fn hold_objects(
    state: &RootState,
    root: &Path,
    git_dirs: &[RelPath],
    left: &mut Vec<Skipped>,
) -> Result<Vec<Vec<u8>>> {
    let vault = state.vault();
    create_private_dirs(&vault)?;
    let mut dirs = Vec::new();
    for git_dir in git_dirs {
        object_dirs(&root.join(git_dir.as_path()), git_dir.as_bytes(), 0, &mut dirs);
    }
    let mut mirror = Mirror::new(&vault);
    for _ in 0..TRIES {
        mirror.again = false;
        mirror.packs.clear();
        mirror.left.clear();
        for name in &dirs {
            let to = vault.join("git").join(OsStr::from_bytes(name));
            create_private_dirs(&to)?;
            mirror.directory(&root.join(OsStr::from_bytes(name)), &to, name, 0)?;
        }
        if !mirror.again {
            break;
        }
    }
    left.append(&mut mirror.left);
    mirror.finish()?;
    let mut packs = std::mem::take(&mut mirror.packs);
    packs.sort();
    packs.dedup();
    write_view(&vault, root)?;
    Ok(packs)
}

/// A copy of a tree of immutable files in the making.
struct Mirror {
    vault: PathBuf,
    seen: BTreeMap<Vec<u8>, (i64, u64)>,
    packs: Vec<Vec<u8>>,
    left: Vec<Skipped>,
    copied: u64,
    new: usize,
    again: bool,
}

impl Mirror {
    fn new(vault: &Path) -> Self {
        let seen = read_small(&vault.join("seen"), SEEN_MAX_BYTES).ok().flatten();
        Self {
            vault: vault.to_owned(),
            seen: seen.as_deref().and_then(parse_seen).unwrap_or_default(),
            packs: Vec::new(),
            left: Vec::new(),
            copied: 0,
            new: 0,
            again: false,
        }
    }

    fn directory(&mut self, from: &Path, to: &Path, name: &[u8], depth: usize) -> Result<()> {
        let is_pack_dir = name.ends_with(b"/pack");
        let Ok(stamp) = stat_path(from) else { return Ok(()) };
        let proof = (stamp.mtime_ns, stamp.inode);
        if !is_pack_dir && self.seen.get(name) == Some(&proof) {
            return Ok(());
        }
        let Ok(entries) = fs::read_dir(from) else {
            let (path, reason) = (name.to_vec(), SkipReason::Unreadable);
            self.left.push(Skipped { path, reason, size: 0 });
            return Ok(());
        };
        let (mut is_leaf, before) = (true, self.left.len());
        for entry in entries.flatten() {
            let child = entry.file_name();
            let below = [name, b"/", child.as_bytes()].concat();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    is_leaf = false;
                    if child != "info" && depth < DEPTH_MAX {
                        let to = to.join(&child);
                        make_dir(&to)?;
                        self.directory(&entry.path(), &to, &below, depth + 1)?;
                    }
                }
                Ok(kind) if kind.is_file() && is_object(child.as_bytes()) => {
                    self.file(&entry.path(), &to.join(&child), &below)?;
                }
                Ok(_) | Err(_) => (),
            }
        }
        if is_leaf && self.left.len() == before && !is_racy(&stamp, crate::fs::now_ns()) {
            self.seen.insert(name.to_vec(), proof);
        }
        Ok(())
    }

    fn file(&mut self, from: &Path, to: &Path, name: &[u8]) -> Result<()> {
        if let Some(stem) = name.strip_suffix(b".pack") {
            self.packs.push(stem.to_vec());
        }
        match link_or_copy(from, to, &mut self.copied) {
            Ok(true) => self.new += 1,
            Ok(false) => (),
            Err(err) if err.kind() == io::ErrorKind::NotFound => self.again = true,
            Err(err) if err.kind() == io::ErrorKind::FileTooLarge => {
                let size = stat_path(from).map_or(0, |stamp| stamp.size);
                let (path, reason) = (name.to_vec(), SkipReason::TooLarge);
                self.left.push(Skipped { path, reason, size });
            }
            Err(err) if err.kind() == io::ErrorKind::PermissionDenied => {
                let (path, reason) = (name.to_vec(), SkipReason::Unreadable);
                self.left.push(Skipped { path, reason, size: 0 });
            }
            Err(err) => return Err(Error::io("link into the vault", to)(err)),
        }
        Ok(())
    }

    /// Puts the names on the disk, and only then notes what need not be looked at again.
    fn finish(&mut self) -> Result<()> {
        if self.new > 0 {
            // One is enough for journals that keep the order of what is done.
            sync_dir(&self.vault)?;
            let dir = Dir::open(&self.vault).map_err(Error::io("open", &self.vault))?;
            if self.copied > 0 {
                dir.sync_file_system().map_err(Error::io("sync", &self.vault))?;
            }
        }
        let mut text = String::new();
        for (name, (mtime, inode)) in &self.seen {
            text.push_str(&format!("{mtime} {inode} {}\n", escape(name)));
        }
        let path = self.vault.join("seen");
        if read_small(&path, SEEN_MAX_BYTES).ok().flatten().as_deref() == Some(text.as_bytes()) {
            return Ok(());
        }
        replace(&path, text.as_bytes())
    }
}

fn make_dir(to: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(to) {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io("make the directory", to)(err))
        }
        Ok(()) => protect_dir(to).map_err(Error::io("protect", to)),
        Err(_) => Ok(()),
    }
}

fn parse_seen(bytes: &[u8]) -> Option<BTreeMap<Vec<u8>, (i64, u64)>> {
    let lines = str::from_utf8(bytes).ok()?.lines();
    lines
        .map(|line| {
            let mut fields = line.splitn(3, ' ');
            let proof = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            Some((unescape(fields.next()?)?, proof))
        })
        .collect()
}

/// Whether a file among objects is one: not half of one, and nothing git makes again.
fn is_object(name: &[u8]) -> bool {
    let made_again = [&b"multi-pack-index"[..], b"commit-graph", b"packs"];
    !name.starts_with(b"tmp_")
        && !name.starts_with(b".")
        && !name.ends_with(b".lock")
        && !made_again.iter().any(|begin| name.starts_with(begin))
}

/// Gives a file that never changes a second name; tells whether it had none yet. Where no link can
/// be made it is copied, up to a limit on all copies: beyond it, [`io::ErrorKind::FileTooLarge`].
fn link_or_copy(from: &Path, to: &Path, copied: &mut u64) -> io::Result<bool> {
    let err = match fs::hard_link(from, to) {
        Ok(()) => return Ok(true),
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Err(err),
        Err(err) => err,
    };
    let may_copy = matches!(
        err.kind(),
        io::ErrorKind::CrossesDevices
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::Unsupported
            | io::ErrorKind::TooManyLinks
    );
    if !may_copy {
        return Err(err);
    }
    if to.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let size = fs::symlink_metadata(from)?.len();
    if copied.saturating_add(size) > COPY_MAX_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    *copied += size;
    copy_whole(from, to).map(|()| true)
}

fn copy_whole(from: &Path, to: &Path) -> io::Result<()> {
    let mut beside = to.as_os_str().to_owned();
    beside.push(format!(".tmp-{}", std::process::id()));
    let _gone = fs::remove_file(&beside);
    let copied = File::open(from).and_then(|mut source| {
        let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&beside)?;
        hand_over(&copy, Path::new(&beside));
        io::copy(&mut source, &mut copy)?;
        copy.sync_data()?;
        fs::rename(&beside, to)
    });
    if copied.is_err() {
        let _gone = fs::remove_file(&beside);
    }
    copied
}

/// What makes the vault's copy of the root's own repository one that can be read: its HEAD, its
/// configuration, and where else it has objects.
fn write_view(vault: &Path, root: &Path) -> Result<()> {
    let (from, to) = (root.join(".git"), vault.join("git/.git"));
    if !to.join("objects").is_dir() {
        return Ok(());
    }
    create_private_dirs(&to.join("refs"))?;
    for name in ["HEAD", "config"] {
        let Some(bytes) = read_small(&from.join(name), FILE_MAX_BYTES).ok().flatten() else {
            continue;
        };
        let path = to.join(name);
        if read_small(&path, FILE_MAX_BYTES).ok().flatten().as_ref() != Some(&bytes) {
            replace(&path, &bytes)?;
        }
    }
    let alternates = from.join("objects/info/alternates");
    let Some(bytes) = read_small(&alternates, FILE_MAX_BYTES).ok().flatten() else { return Ok(()) };
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let resolved = lines.map(|line| from.join("objects").join(OsStr::from_bytes(line)));
    let mut text = Vec::new();
    for path in resolved {
        text.extend_from_slice(path.as_os_str().as_bytes());
        text.push(b'\n');
    }
    create_private_dirs(&to.join("objects/info"))?;
    replace(&to.join("objects/info/alternates"), &text)
}
