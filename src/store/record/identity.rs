//! Finds what we keep about a directory after the directory has moved.
//!
//! A [`Registry`] is a directory of ours with one entry for each directory of the user's. An entry
//! is a directory too: its name is a hash of the user's path, and a small JSON file in it says which
//! directory it is about, in five keys: `version`, `path` (escaped), `device`, `inode` and, where
//! the file system knows it, `birth`. Where other directories were at that path before, `former` lists
//! their `device`, `inode` and `birth`. Other keys are kept as they are. `roots/` is one registry, with
//! `root.json`; any other directory built in the same way can be one.
//!
//! The path comes first: an entry under the hash of a path belongs to that path, whatever is there
//! now. Only a path without an entry is looked up by device, inode and birth time. This takes reading
//! every entry, but happens once for a new path.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt, fs::symlink},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    version::{VERSION, Versioned, from_json, to_json},
    wire::{escape_path, parse_path},
};
use crate::{
    crash,
    error::{Error, Result},
    fs::{Lock, create_private_dirs, read_small, replace_synced, sync_dir},
    state::{State, hash_name},
};

/// A path, and a few numbers.
const SIZE_MAX_BYTES: u64 = 64 << 10;
/// How long adopting an entry waits for a save into it: a hook has three seconds for everything.
const LOCK_WAIT: Duration = Duration::from_secs(1);
/// So many directories are remembered that were at a path before.
const FORMER_MAX: usize = 8;

/// What tells a directory apart from all others, wherever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its device.
    pub device: u64,
    /// Its inode. File systems give the inode of a removed directory to the next new one, so it
    /// proves something only together with the birth time.
    pub inode: u64,
    /// When it was created, in nanoseconds since 1970; `None` where the file system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub birth: Option<i64>,
}

/// Whether two identities, one of them recorded earlier, are those of one directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// They are.
    Same,
    /// They may be: a birth time is missing, or only the device differs, which can change when the
    /// computer restarts.
    Perhaps,
    /// They are not.
    Different,
}

/// How the entry of a directory was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Under its path.
    ByPath,
    /// The directory was at `from` before. Its entry is now under its new path.
    Moved {
        /// Where it was.
        from: PathBuf,
    },
    /// The directory is at `of` as well, by a bind mount. Under its second path there is now a link
    /// to the entry of the first.
    Alias {
        /// Its first path.
        of: PathBuf,
    },
    /// There is none, but the one of the directory that was at `from` may be it. Nothing was
    /// changed: this is for the user to decide.
    Perhaps {
        /// Where that directory was.
        from: PathBuf,
    },
    /// There is none.
    Nowhere,
}

/// A directory of ours with an entry for each directory of the user's that we know.
#[derive(Clone, Debug)]
pub struct Registry {
    dir: PathBuf,
    file: &'static str,
    deletions: Option<PathBuf>,
}

/// An entry of a [`Registry`].
#[derive(Clone, Debug)]
struct Entry {
    /// The name of its directory.
    name: OsString,
    /// The path it is recorded under.
    path: PathBuf,
    identity: Identity,
    /// Directories that were at that path before.
    former: Vec<Identity>,
}

impl Identity {
    /// Reads the identity of the directory at `path`. Follows symlinks.
    ///
    /// # Errors
    ///
    /// Fails if there is nothing at `path`, or if it cannot be looked at.
    #[cfg(target_os = "linux")]
    pub fn of(path: &Path) -> io::Result<Self> {
        use rustix::{
            fs::{AtFlags, CWD, StatxFlags, makedev, statx},
            io::Errno,
        };
        // Not `Metadata::created`: std makes no use of statx with musl, which releases link to.
        match statx(CWD, path, AtFlags::empty(), StatxFlags::INO | StatxFlags::BTIME) {
            Ok(found) => {
                let time = found.stx_btime;
                let knows = found.stx_mask & StatxFlags::BTIME.bits() != 0 && time.tv_sec > 0;
                Ok(Self {
                    device: makedev(found.stx_dev_major, found.stx_dev_minor),
                    inode: found.stx_ino,
                    birth: knows.then(|| nanoseconds(time.tv_sec, time.tv_nsec)),
                })
            }
            // An old kernel, or a sandbox that allows no new system calls.
            Err(Errno::NOSYS | Errno::PERM) => Self::without_birth(path),
            Err(err) => Err(err.into()),
        }
    }

    /// Reads the identity of the directory at `path`. Follows symlinks.
    ///
    /// # Errors
    ///
    /// Fails if there is nothing at `path`, or if it cannot be looked at.
    #[cfg(not(target_os = "linux"))]
    pub fn of(path: &Path) -> io::Result<Self> {
        let created = fs::metadata(path)?.created().ok();
        let since = created.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let birth = since.and_then(|since| i64::try_from(since.as_nanos()).ok());
        Ok(Self { birth, ..Self::without_birth(path)? })
    }

    fn without_birth(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self { device: found.dev(), inode: found.ino(), birth: None })
    }

    /// Compares a recorded identity with one of `now`.
    pub fn likeness(&self, now: &Self) -> Likeness {
        let (is_device, is_inode) = (self.device == now.device, self.inode == now.inode);
        match (self.birth, now.birth) {
            _ if !is_inode => Likeness::Different,
            (Some(then), Some(now)) if then != now => Likeness::Different,
            (Some(_), Some(_)) if is_device => Likeness::Same,
            (Some(_), Some(_)) => Likeness::Perhaps,
            (None, _) | (_, None) if is_device => Likeness::Perhaps,
            (None, _) | (_, None) => Likeness::Different,
        }
    }

    /// The directories that were at a path before this one, given which was there last, and which were
    /// there before that.
    pub(super) fn former(&self, last: &Self, mut before: Vec<Self>) -> Vec<Self> {
        // What has no birth time could never be recognized.
        if last.birth.is_some() && last.likeness(self) == Likeness::Different {
            before.push(*last);
        }
        before.retain(|then| then.likeness(self) != Likeness::Same);
        before.split_off(before.len().saturating_sub(FORMER_MAX))
    }

    /// Whether both are of one directory, given that both were read just now: no inode is in use
    /// twice at one time.
    fn is_same_now(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

#[cfg(target_os = "linux")]
fn nanoseconds(seconds: i64, rest: u32) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(rest))
}

impl Registry {
    /// The registry in the directory `dir`, whose entries say in `file` what they are about. An
    /// entry is changed under the lock of a file called `lock` in it.
    pub fn new(dir: PathBuf, file: &'static str) -> Self {
        Self { dir, file, deletions: None }
    }

    /// The same, where something is deleted if no entry needs it: no entry is renamed while that is
    /// found out under the lock `path`, or it would be missed. Taken shared, after that of the entry.
    #[must_use]
    pub fn with_deletions_under(self, path: PathBuf) -> Self {
        Self { deletions: Some(path), ..self }
    }

    /// The registry of all roots.
    pub fn roots(state: &State) -> Self {
        let objects_lock = state.objects().with_file_name("objects.lock");
        Self::new(state.roots(), "root.json").with_deletions_under(objects_lock)
    }

    /// Finds the entry of the directory at `path`, which must be canonical, and lets it be found
    /// under that path from now on. Costs one system call for a path that has an entry.
    ///
    /// Killed at any point, the entry is found by the next call in the same way.
    ///
    /// # Errors
    ///
    /// Fails if the entries cannot be listed, if one cannot be renamed, or if another process saves
    /// into it for too long. Then everything is as it was.
    pub fn resolve(&self, path: &Path) -> Result<Found> {
        let place = self.place_of(path);
        match fs::read_link(&place) {
            // It is no link: the usual case.
            Err(err) if err.kind() == io::ErrorKind::InvalidInput => return Ok(Found::ByPath),
            Err(err) if err.kind() == io::ErrorKind::NotFound => (),
            Err(err) => return Err(Error::io("look at", &place)(err)),
            Ok(name) => match self.aliased(&name, path) {
                Some(of) => return Ok(Found::Alias { of }),
                // Unmounted, or the first path has moved on.
                None => fs::remove_file(&place).map_err(Error::io("remove", &place))?,
            },
        }
        // A path where nothing is has no identity.
        let Ok(now) = Identity::of(path) else { return Ok(Found::Nowhere) };
        match self.search(path, &now)? {
            Some((entry, Match::Moved)) => self.adopt(&entry, path, &now),
            Some((entry, Match::Alias)) => alias(&entry, &place),
            Some((entry, Match::Perhaps)) => Ok(Found::Perhaps { from: entry.path }),
            // It is another directory's by now.
            Some((_, Match::Former)) | None => Ok(Found::Nowhere),
        }
    }

    /// Writes down which directory the entry of `path` is about, for a registry whose files say nothing
    /// else. Nothing is written if that is known, if the entry is shared with another path, or if a
    /// newer version wrote it.
    ///
    /// # Errors
    ///
    /// Fails if there is nothing at `path`, or if the entry cannot be read or written.
    pub fn describe(&self, path: &Path) -> Result<()> {
        let place = self.place_of(path);
        if place.is_symlink() {
            return Ok(());
        }
        let identity = Identity::of(path).map_err(Error::io("look at", path))?;
        let file = place.join(self.file);
        let known = match read_small(&file, SIZE_MAX_BYTES)? {
            Some(bytes) => match from_json::<EntryFile>(self.file, &bytes) {
                Err(Error::FormatTooNew { .. }) => return Ok(()),
                known => known.ok(),
            },
            None => None,
        };
        let path = escape_path(path);
        if known.as_ref().is_some_and(|known| known.path == path && known.identity == identity) {
            return Ok(());
        }
        let former = known.map_or_else(Vec::new, |it| identity.former(&it.identity, it.former));
        create_private_dirs(&place)?;
        replace_synced(&file, &to_json(&EntryFile { version: VERSION, path, identity, former })?)
    }

    /// The path of an entry, other than that of `path` itself, which is or was about the directory at
    /// `path`: certainly, or as far as can be told. Changes nothing.
    ///
    /// # Errors
    ///
    /// Fails if the entries cannot be listed.
    pub fn other_path(&self, path: &Path) -> Result<Option<(PathBuf, Likeness)>> {
        let Ok(now) = Identity::of(path) else { return Ok(None) };
        let likeness = |found| match found {
            Match::Moved | Match::Former => Some(Likeness::Same),
            Match::Perhaps => Some(Likeness::Perhaps),
            // It shares its entry, which was found.
            Match::Alias => None,
        };
        let found = self.search(path, &now)?;
        Ok(found.and_then(|(entry, found)| Some((entry.path, likeness(found)?))))
    }

    /// Where the entry of the directory at `path` is, or would be.
    pub fn place_of(&self, path: &Path) -> PathBuf {
        self.dir.join(hash_name(&[path.as_os_str().as_bytes()]))
    }

    /// Looks for the entry, not under `path`, of the directory that is at `path` now.
    fn search(&self, path: &Path, now: &Identity) -> Result<Option<(Entry, Match)>> {
        let own = self.place_of(path);
        let mut best: Option<(Entry, Match)> = None;
        for name in names(&self.dir)? {
            let is_own = own.file_name() == Some(&name);
            let entry = if is_own { None } else { self.read(&name) };
            let Some(entry) = entry else { continue };
            let Some(found) = entry.compare(path, now) else { continue };
            if best.as_ref().is_none_or(|(_, best)| found > *best) {
                best = Some((entry, found));
            }
        }
        Ok(best)
    }

    /// Reads an entry. One that cannot be read, or that a newer version wrote, is nothing to move.
    fn read(&self, name: &OsStr) -> Option<Entry> {
        let bytes = read_small(&self.dir.join(name).join(self.file), SIZE_MAX_BYTES).ok()??;
        let file: EntryFile = from_json(self.file, &bytes).ok()?;
        Some(Entry {
            name: name.to_owned(),
            path: parse_path(&file.path).ok()?,
            identity: file.identity,
            former: file.former,
        })
    }

    /// The path of the entry `name` if the directory it is about is, at this moment, the one at
    /// `path`, or if nobody can tell because nothing is at `path`.
    fn aliased(&self, name: &Path, path: &Path) -> Option<PathBuf> {
        let entry = self.read(name.as_os_str())?;
        let Ok(here) = Identity::of(path) else { return Some(entry.path) };
        let is_same = Identity::of(&entry.path).is_ok_and(|there| there.is_same_now(&here));
        is_same.then_some(entry.path)
    }

    /// Gives an entry the name that belongs to the new path of its directory.
    ///
    /// The file says the new path first. An entry that has its old name and the new path is found by
    /// its identity, and says correctly where its directory is; the other way round it would pass for
    /// that of a directory that is gone, and be removed with time.
    fn adopt(&self, entry: &Entry, path: &Path, now: &Identity) -> Result<Found> {
        let (old, new) = (self.dir.join(&entry.name), self.place_of(path));
        let is_done = || new.symlink_metadata().is_ok();
        let deadline = Instant::now() + LOCK_WAIT;
        let _nobody_saves = match Lock::acquire(&old.join("lock"), deadline) {
            Ok(lock) => lock,
            // Another process was first, and there is nothing to lock any more.
            Err(_) if is_done() => return Ok(Found::ByPath),
            Err(err) => return Err(err),
        };
        let deletions = self.deletions.as_deref();
        let _nobody_deletes = deletions.map(|path| Lock::share(path, deadline)).transpose()?;
        if is_done() {
            return Ok(Found::ByPath);
        }
        let again = self.read(&entry.name).filter(|again| again.identity == entry.identity);
        let Some(again) = again else { return Ok(Found::Nowhere) };
        let file = old.join(self.file);
        crash::point("adopt-describe");
        replace_synced(&file, &moved(&file, &again.path, path, now)?)?;
        crash::point("adopt-rename");
        fs::rename(&old, &new).map_err(Error::io("rename", &old))?;
        crash::point("adopt-sync");
        sync_dir(&self.dir)?;
        Ok(Found::Moved { from: entry.path.clone() })
    }
}

/// What an entry under another path has to do with a directory; a greater one is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    /// It may be about it.
    Perhaps,
    /// It was about it, before another directory took its path.
    Former,
    /// It is about it, and the directory is no longer at the path of the entry.
    Moved,
    /// It is about it, and the directory is at the path of the entry as well.
    Alias,
}

impl Entry {
    fn compare(&self, path: &Path, now: &Identity) -> Option<Match> {
        if self.identity.likeness(now) == Likeness::Different {
            let is_it = |then: &Identity| then.likeness(now) == Likeness::Same;
            return self.former.iter().any(is_it).then_some(Match::Former);
        }
        if self.path == path && self.identity.is_same_now(now) {
            // Adopted, but for the name.
            return Some(Match::Moved);
        }
        if Identity::of(&self.path).is_ok_and(|there| there.is_same_now(now)) {
            return Some(Match::Alias);
        }
        match self.identity.likeness(now) {
            Likeness::Same => Some(Match::Moved),
            Likeness::Perhaps => Some(Match::Perhaps),
            Likeness::Different => None,
        }
    }
}

/// Makes `place` a second name of an entry.
fn alias(entry: &Entry, place: &Path) -> Result<Found> {
    match symlink(&entry.name, place) {
        Ok(()) => (),
        // Another process was first.
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => (),
        Err(err) => return Err(Error::io("link", place)(err)),
    }
    Ok(Found::Alias { of: entry.path.clone() })
}

/// The names of all entries in the directory `dir`, without the links that stand for a second path.
///
/// # Errors
///
/// Fails if the directory cannot be listed. One that is not there has no entries.
pub fn names(dir: &Path) -> Result<Vec<OsString>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(err)
            if matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(Vec::new());
        }
        Err(err) => return Err(Error::io("list", dir)(err)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io("list", dir))?;
        if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            names.push(entry.file_name());
        }
    }
    Ok(names)
}

/// Removes the links in `dir` that lead nowhere: the entry was adopted by another path, or removed.
///
/// # Errors
///
/// Fails if the directory cannot be listed, or a link cannot be removed.
pub fn remove_dangling(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) && !path.exists() {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}

/// What every entry says, whatever else is in its file.
#[derive(Serialize, Deserialize)]
struct EntryFile {
    version: u32,
    path: String,
    #[serde(flatten)]
    identity: Identity,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former: Vec<Identity>,
}

impl Versioned for EntryFile {
    fn version(&self) -> u32 {
        self.version
    }
}

/// The bytes of an entry's file for a directory that was at `from` and is at `to`. What else it says
/// of places is set right as well: the directory above, and a repository inside.
fn moved(file: &Path, from: &Path, to: &Path, now: &Identity) -> Result<Vec<u8>> {
    let what = || file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = read_small(file, SIZE_MAX_BYTES)?.unwrap_or_default();
    let mut json: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|err| Error::damaged(what(), err.to_string()))?;
    json.insert("path".to_owned(), escape_path(to).into());
    json.insert("device".to_owned(), now.device.into());
    json.insert("inode".to_owned(), now.inode.into());
    if let Some(birth) = now.birth {
        json.insert("birth".to_owned(), birth.into());
    }
    if json.contains_key("parent_inode")
        && let Ok(above) = Identity::of(to.parent().unwrap_or(to))
    {
        json.insert("parent_device".to_owned(), above.device.into());
        json.insert("parent_inode".to_owned(), above.inode.into());
    }
    let git_dir = json.get("git_dir").and_then(Value::as_str).and_then(|it| parse_path(it).ok());
    if let Some(inside) = git_dir.as_deref().and_then(|it| it.strip_prefix(from).ok()) {
        json.insert("git_dir".to_owned(), escape_path(&to.join(inside)).into());
    }
    to_json(&json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_equal_numbers_are_a_proof() {
        let then = Identity { device: 1, inode: 2, birth: Some(3) };
        let cases = [
            (then, Likeness::Same),
            (Identity { birth: Some(4), ..then }, Likeness::Different),
            (Identity { inode: 4, ..then }, Likeness::Different),
            (Identity { inode: 4, birth: None, ..then }, Likeness::Different),
            // What says nothing of its birth may be what was removed, with its inode used again.
            (Identity { birth: None, ..then }, Likeness::Perhaps),
            (Identity { birth: None, device: 4, ..then }, Likeness::Different),
            // Numbers of devices change, and a snapshot has another one.
            (Identity { device: 4, ..then }, Likeness::Perhaps),
        ];
        for (now, expected) in cases {
            assert_eq!(then.likeness(&now), expected, "{now:?}");
            assert_eq!(now.likeness(&then), expected, "{now:?}");
        }
    }
}
