//! Borrows the objects of a user's repository: links or copies them into a private one, so that
//! nothing the user's git does can take them away.
//!
//! Git never changes an object file once it has its name, so a hard link is enough unless a program
//! writes into the file itself. A small repository is copied, which is safe from that too. Where
//! hard links are impossible, objects are copied within a budget; the rest stays in the user's
//! repository only and is reported.

mod copies;
mod object_dirs;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    time::Instant,
};

use super::{
    alternates_of,
    damaged_packs::{is_sound, marked_damaged},
    names_of,
};
use crate::{
    error::{Error, Result},
    fs::{all_at_once, create_private_dirs, is_overlay, read_small, replace, stat_path, sync_dir},
    model::SkipReason,
    scan::is_racy,
    store::escape::{escape, unescape},
};
pub(super) use copies::copy_whole;
use copies::{make_dirs, share};
use object_dirs::DEPTH_MAX;
pub(super) use object_dirs::{ObjectDirKind, is_unfinished, linked_object_dirs, object_dirs};

/// A repository with at most this much in objects, in so few files, is copied right away: 5 ms.
const SMALL_MAX_BYTES: u64 = 4 << 20;
const SMALL_MAX_FILES: usize = 100;
/// How much is copied during a call where hard links are impossible: half a second on a slow disk.
const WAITING_MAX_BYTES: u64 = 32 << 20;
/// How much is copied in the background where hard links are impossible.
pub(super) const BACKGROUND_MAX_BYTES: u64 = 256 << 20;
/// Enough for a million object directories.
const SEEN_MAX_BYTES: u64 = 64 << 20;
/// How often packs are listed again if git replaces some meanwhile.
const TRIES: usize = 4;

/// Limits for one run.
#[derive(Clone, Copy, Default)]
pub(super) struct BorrowLimits {
    /// How much may be copied where hard links are impossible; `None` for the limit of a call.
    pub(super) budget_bytes: Option<u64>,
    /// When to stop, finished or not.
    pub(super) deadline: Option<Instant>,
}

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct BorrowReport {
    /// How many files were linked or copied.
    pub(super) new: usize,
    /// Why objects could be neither linked nor copied, and how many bytes they have, if known.
    pub(super) left_out: Option<(SkipReason, u64)>,
}

impl BorrowReport {
    fn leave_out(&mut self, reason: SkipReason, bytes: u64) {
        let (first, sum) = self.left_out.unwrap_or((reason, 0));
        self.left_out = Some((first, sum + bytes));
    }
}

/// Links or copies every object of the git directory `common_dir` into `linked`, unless it is there
/// already. `is_quiet` says that nothing in the git directory has changed since the last run: then
/// only the packs are checked.
///
/// # Errors
///
/// Fails if `linked` cannot be written.
pub(super) fn borrow(
    common_dir: &Path,
    linked: &Path,
    is_quiet: bool,
    limits: BorrowLimits,
) -> Result<BorrowReport> {
    let BorrowLimits { budget_bytes, deadline } = limits;
    let mut borrow = Borrow::new(linked, budget_bytes.unwrap_or(WAITING_MAX_BYTES));
    borrow.deadline = deadline;
    let packs = common_dir.join("objects/pack");
    if is_quiet && borrow.has_seen(b"objects/pack", &packs) && budget_bytes.is_none() {
        return Ok(BorrowReport::default());
    }
    create_private_dirs(linked)?;
    let dirs = object_dirs(common_dir);
    borrow.is_small = is_small(common_dir, &dirs);
    let mut alternates = Vec::new();
    for name in &dirs {
        let from = common_dir.join(OsStr::from_bytes(name));
        borrow.objects(&from, name)?;
        alternates.extend(alternates_of(&from));
    }
    alternates.sort();
    alternates.dedup();
    // Objects that come from another repository through alternates.
    for (name, from) in alternates {
        borrow.objects(&from, format!("alternates/{name}").as_bytes())?;
    }
    borrow.finish()
}

/// Whether all objects together are small enough to be copied.
fn is_small(common_dir: &Path, dirs: &[Vec<u8>]) -> bool {
    let mut left = (SMALL_MAX_FILES, SMALL_MAX_BYTES);
    dirs.iter().all(|name| fits(&common_dir.join(OsStr::from_bytes(name)), &mut left, 0))
}

/// Subtracts the files and bytes in a directory from `left`; returns whether they fit.
fn fits(dir: &Path, left: &mut (usize, u64), depth: usize) -> bool {
    let names = names_of(dir).unwrap_or_default();
    names.iter().all(|name| {
        let path = dir.join(name);
        let Ok(found) = fs::symlink_metadata(&path) else { return true };
        if found.is_dir() {
            return depth < DEPTH_MAX && fits(&path, left, depth + 1);
        }
        let files = left.0.checked_sub(1);
        let bytes = left.1.checked_sub(found.len());
        let fits = files.zip(bytes);
        *left = fits.unwrap_or_default();
        fits.is_some()
    })
}

/// The state of a directory when everything in it had been linked: its stamp, and the ctime of the
/// directory of ours with the links. While both are unchanged, there is nothing to link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Proof {
    mtime_ns: i64,
    ctime_ns: i64,
    inode: u64,
    ours_ns: i64,
}

struct Borrow<'a> {
    linked: &'a Path,
    /// Directories that need not be listed again, now and before this run.
    seen: BTreeMap<Vec<u8>, Proof>,
    seen_before: BTreeMap<Vec<u8>, Proof>,
    copied: u64,
    budget: u64,
    deadline: Option<Instant>,
    is_small: bool,
    can_link: Option<bool>,
    /// Whether the file system supports reflinks; `None` before the first try.
    can_share: Option<bool>,
    /// Directories with new names in them.
    changed: BTreeSet<PathBuf>,
    out: BorrowReport,
}

impl<'a> Borrow<'a> {
    fn new(linked: &'a Path, budget: u64) -> Self {
        let seen = read_small(&linked.join("seen"), SEEN_MAX_BYTES).ok().flatten();
        let seen: BTreeMap<_, _> = seen.as_deref().and_then(parse_seen).unwrap_or_default();
        Self {
            linked,
            seen_before: seen.clone(),
            seen,
            copied: 0,
            budget,
            deadline: None,
            is_small: false,
            can_link: None,
            can_share: None,
            changed: BTreeSet::new(),
            out: BorrowReport::default(),
        }
    }

    fn has_seen(&self, name: &[u8], dir: &Path) -> bool {
        self.proof_of(name, dir).is_some_and(|(proof, _)| self.seen.get(name) == Some(&proof))
    }

    /// The present proof for a directory, and whether its stamp is racy.
    fn proof_of(&self, name: &[u8], dir: &Path) -> Option<(Proof, bool)> {
        let theirs = stat_path(dir).ok()?;
        let ours = stat_path(&self.linked.join(OsStr::from_bytes(name)));
        let proof = Proof {
            mtime_ns: theirs.mtime_ns,
            ctime_ns: theirs.ctime_ns,
            inode: theirs.inode,
            ours_ns: ours.map_or(0, |ours| ours.ctime_ns),
        };
        Some((proof, is_racy(&theirs, crate::fs::now_ns())))
    }

    /// Whether the deadline has passed; the rest is then left out.
    fn is_late(&mut self) -> bool {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late && self.out.left_out.is_none() {
            self.out.leave_out(SkipReason::OutOfTime, 0);
        }
        is_late
    }

    /// Borrows one object directory: loose objects first, packs last, an index after its pack.
    /// Repeats if packs were added or removed meanwhile.
    fn objects(&mut self, from: &Path, name: &[u8]) -> Result<()> {
        let is_extension = super::is_extension(name);
        for _ in 0..TRIES {
            let packs = from.join("pack");
            let before = stat_path(&packs).ok();
            self.directory(from, name, is_extension, 0)?;
            if stat_path(&packs).ok() == before {
                return Ok(());
            }
            self.seen.remove(&[name, b"/pack"].concat());
        }
        self.out.leave_out(SkipReason::KeptChanging, 0);
        Ok(())
    }

    fn directory(
        &mut self,
        from: &Path,
        name: &[u8],
        is_extension: bool,
        depth: usize,
    ) -> Result<()> {
        let Some((proof, is_young)) = self.proof_of(name, from) else { return Ok(()) };
        if self.seen.get(name) == Some(&proof) || self.is_late() {
            return Ok(());
        }
        let names = match names_of(from) {
            Ok(names) => names,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) => {
                self.out.leave_out(SkipReason::Unreadable, 0);
                return Ok(());
            }
        };
        let place =
            if is_extension { ObjectDirKind::Extension } else { ObjectDirKind::of(name, depth) };
        let to = self.linked.join(OsStr::from_bytes(name));
        let (mut is_leaf, mut is_whole, mut files, mut dirs) = (true, true, Vec::new(), Vec::new());
        for child in names {
            match fs::symlink_metadata(from.join(&child)) {
                Ok(found) if found.is_dir() && place.has_directory(child.as_bytes()) => {
                    dirs.push(child);
                }
                Ok(found) if found.is_file() && place.has_object(child.as_bytes(), found.len()) => {
                    files.push((child, found.len()));
                }
                Ok(_) | Err(_) => (),
            }
        }
        // An index comes after its pack, so that a concurrent reader never finds one without the
        // other.
        files.sort_by_key(|(name, _)| name.as_bytes().ends_with(b".idx"));
        if !files.is_empty() {
            make_dirs(self.linked, &to)?;
        }
        for (child, size) in files {
            if self.is_late() {
                return Ok(());
            }
            is_whole &= self.file(&from.join(&child), &to.join(&child), size)?;
        }
        for child in dirs {
            is_leaf = false;
            let below = [name, b"/", child.as_bytes()].concat();
            if depth < DEPTH_MAX {
                self.directory(&from.join(&child), &below, is_extension, depth + 1)?;
            } else {
                self.out.leave_out(SkipReason::TooDeep, 0);
            }
        }
        if is_leaf && is_whole && !is_young {
            let ours_ns = stat_path(&to).map_or(0, |ours| ours.ctime_ns);
            self.seen.insert(name.to_vec(), Proof { ours_ns, ..proof });
        }
        Ok(())
    }

    /// Borrows one file; returns whether it is here now.
    fn file(&mut self, from: &Path, to: &Path, size: u64) -> Result<bool> {
        match self.link_or_copy(from, to, size) {
            Ok(is_new) => {
                if is_new {
                    self.out.new += 1;
                    self.changed.extend(to.parent().map(Path::to_owned));
                }
                Ok(true)
            }
            // Git has packed it since the listing; the pack is borrowed too.
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(err) if is_not_to_be_had(&err) => {
                let is_large = err.kind() == io::ErrorKind::FileTooLarge;
                let reason = if is_large { SkipReason::TooLarge } else { SkipReason::Unreadable };
                self.out.leave_out(reason, size);
                Ok(false)
            }
            Err(err) => Err(Error::io("link", to)(err)),
        }
    }

    fn link_or_copy(&mut self, from: &Path, to: &Path, size: u64) -> io::Result<bool> {
        let is_index = from.extension().is_some_and(|end| end == "idx");
        // A hard link tells by itself that the file is there already.
        let links = !self.is_small && self.can_share == Some(false) && self.can_link(from);
        if (is_index || !links) && to.symlink_metadata().is_ok() {
            return Ok(false);
        }
        if is_index && !is_sound(from) {
            return self.link_or_copy_as(from, &marked_damaged(to), size);
        }
        self.link_or_copy_as(from, to, size)
    }

    fn link_or_copy_as(&mut self, from: &Path, to: &Path, size: u64) -> io::Result<bool> {
        // A reflink is better than a hard link: with a hard link, a write in place changes both.
        if !self.is_small && self.shares(from, to)? {
            return Ok(true);
        }
        if !self.is_small && self.can_link(from) {
            match fs::hard_link(from, to) {
                Ok(()) => return Ok(true),
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
                Err(err) if err.kind() == io::ErrorKind::NotFound => return Err(err),
                Err(err) if !is_unlinkable(&err) => return Err(err),
                Err(err) => {
                    // Another file system, or a file of another user.
                    if err.kind() == io::ErrorKind::CrossesDevices {
                        self.can_link = Some(false);
                    }
                }
            }
        }
        if self.copied.saturating_add(size) > self.budget {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.copied += size;
        copy_whole(from, to).map(|()| true)
    }

    /// Creates `to` as a reflink of `from`, where the file system supports that.
    fn shares(&mut self, from: &Path, to: &Path) -> io::Result<bool> {
        if self.can_share == Some(false) {
            return Ok(false);
        }
        let shared = share(from, to)?;
        self.can_share = Some(shared);
        Ok(shared)
    }

    /// Not on overlayfs, which copies a file whole before it links it.
    fn can_link(&mut self, from: &Path) -> bool {
        *self.can_link.get_or_insert_with(|| !is_overlay(from))
    }

    /// Syncs the new names, and only then records what need not be listed again.
    fn finish(mut self) -> Result<BorrowReport> {
        if self.out.left_out.is_some() {
            // The next run must look at everything that may not be here yet.
            self.seen.remove(&b"objects/pack"[..]);
        }
        // Copies are on the disk already. Not syncfs, because other programs may be writing.
        let changed: Vec<&PathBuf> = self.changed.iter().collect();
        all_at_once(&changed, |dir| sync_dir(dir))?;
        if self.seen != self.seen_before {
            let mut text = String::new();
            for (name, Proof { mtime_ns, ctime_ns, inode, ours_ns }) in &self.seen {
                let name = escape(name);
                text.push_str(&format!("{mtime_ns} {ctime_ns} {inode} {ours_ns} {name}\n"));
            }
            // Without it, the next run lists everything again.
            let _slower = replace(&self.linked.join("seen"), text.as_bytes());
        }
        Ok(self.out)
    }
}

fn parse_seen(bytes: &[u8]) -> Option<BTreeMap<Vec<u8>, Proof>> {
    let parse = |line: &str| {
        let mut fields = line.splitn(5, ' ');
        let proof = Proof {
            mtime_ns: fields.next()?.parse().ok()?,
            ctime_ns: fields.next()?.parse().ok()?,
            inode: fields.next()?.parse().ok()?,
            ours_ns: fields.next()?.parse().ok()?,
        };
        Some((unescape(fields.next()?)?, proof))
    };
    str::from_utf8(bytes).ok()?.lines().map(parse).collect()
}

/// Whether an error means that the file cannot be hard-linked there.
fn is_unlinkable(err: &io::Error) -> bool {
    matches!(
        err.kind(),
        io::ErrorKind::CrossesDevices
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::Unsupported
            | io::ErrorKind::TooManyLinks
    )
}

/// Whether an error concerns this file only, so that the others can still be borrowed.
fn is_not_to_be_had(err: &io::Error) -> bool {
    matches!(err.kind(), io::ErrorKind::FileTooLarge | io::ErrorKind::PermissionDenied)
}

/// Whether a directory is unchanged since everything in it was borrowed.
pub(super) fn has_seen(linked: &Path, name: &[u8], dir: &Path) -> bool {
    Borrow::new(linked, 0).has_seen(name, dir)
}

/// How many bytes below a directory are in files with other hard links: a write in place there
/// changes them here too.
pub(super) fn shared_bytes(dir: &Path) -> u64 {
    let below = |name: OsString| match fs::symlink_metadata(dir.join(&name)) {
        Ok(found) if found.is_dir() => shared_bytes(&dir.join(name)),
        Ok(found) if found.nlink() > 1 => found.len(),
        Ok(_) | Err(_) => 0,
    };
    names_of(dir).unwrap_or_default().into_iter().map(below).sum()
}

/// Whether everything borrowed is small enough to be copied.
pub(super) fn is_little(linked: &Path) -> bool {
    is_small(linked, &[b"objects".to_vec()])
}
