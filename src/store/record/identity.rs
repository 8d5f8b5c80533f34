//! Finds the state of a directory again after the directory has moved.
//!
//! The [`Registry`] is `roots/`, with one entry for each root. An entry is itself a directory: its
//! name is a hash of the root's path, and `root.json` in it identifies the root by five keys:
//! `version`, `path` (escaped), `device`, `inode` and, if the file system records it, `birth`. If
//! other directories were at that path before, `former` lists their `device`, `inode` and `birth`.
//! Other keys are preserved.
//!
//! The path comes first: an entry under the hash of a path belongs to that path, whatever is there
//! now. Only a path without an entry is looked up by device, inode and birth time, which reads
//! every entry but happens only once for a new path.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::version::{FormatVersion, from_json, to_json};
use crate::{
    crash,
    error::{Error, Result},
    fs::{Lock, is_absent, nature, read_small, replace_synced, sync_dir},
    model::escape::{escape_path, parse_path},
    state::{StateDir, hash_name},
};

/// The file that describes a root, in its entry.
const ROOT_FILE: &str = "root.json";
/// Enough for a path and a few numbers.
const SIZE_MAX_BYTES: u64 = 64 << 10;
/// How long adopting an entry waits for a save that uses it: a hook has three seconds in all.
const LOCK_WAIT: Duration = Duration::from_secs(1);
/// How many former directories of a path are remembered.
const FORMER_MAX: usize = 8;

/// Identifies a directory independently of its path.
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

/// Whether two identities, one of them recorded earlier, belong to the same directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// They do.
    Same,
    /// They may be: a birth time is missing, or only the device differs, which can change when the
    /// computer restarts.
    Perhaps,
    /// They do not.
    Different,
}

/// How the entry of a directory was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityMatch {
    /// By its path.
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
    /// There is no entry, but the directory formerly at `from` may be this one. Nothing was
    /// changed: the user has to decide.
    Perhaps {
        /// Where that directory was.
        from: PathBuf,
    },
    /// There is no entry.
    Nowhere,
}

/// The directory of ours with one entry for each root.
#[derive(Clone, Debug)]
pub struct Registry {
    dir: PathBuf,
    /// The lock that a garbage collection of the objects holds. Renaming an entry takes it shared,
    /// after the entry's own lock, so that the collection does not miss an entry.
    deletions: PathBuf,
}

/// An entry of the [`Registry`].
#[derive(Clone, Debug)]
struct RegistryEntry {
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
    /// Fails if `path` does not exist or cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        let found = nature(path, true)?;
        Ok(Self { device: found.device, inode: found.inode, birth: found.birth_ns })
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

    /// The list of former directories of a path: `before`, extended by `last` if that was a
    /// different directory.
    pub(super) fn former(&self, last: &Self, mut before: Vec<Self>) -> Vec<Self> {
        // Without a birth time it could never be recognized.
        if last.birth.is_some() && last.likeness(self) == Likeness::Different {
            before.push(*last);
        }
        before.retain(|then| then.likeness(self) != Likeness::Same);
        before.split_off(before.len().saturating_sub(FORMER_MAX))
    }

    /// Whether two identities read just now are the same: no two directories have the same inode at
    /// one time.
    fn is_same_now(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl Registry {
    /// The registry of all roots.
    pub fn roots(state: &StateDir) -> Self {
        Self { dir: state.roots(), deletions: state.objects().with_file_name("objects.lock") }
    }

    /// Finds the entry of the directory at `path`, which must be canonical, and moves it under that
    /// path if necessary. For a path that has an entry this costs one system call.
    ///
    /// If it is killed, the next call finds the entry in the same way.
    ///
    /// # Errors
    ///
    /// Fails if the entries cannot be listed, if one cannot be renamed, or if another process uses
    /// it for too long. Nothing is changed then.
    pub fn resolve(&self, path: &Path) -> Result<IdentityMatch> {
        let place = self.place_of(path);
        match fs::read_link(&place) {
            // Not a symlink: the usual case.
            Err(err) if err.kind() == io::ErrorKind::InvalidInput => {
                return Ok(IdentityMatch::ByPath);
            }
            Err(err) if err.kind() == io::ErrorKind::NotFound => (),
            Err(err) => return Err(Error::io("look at", &place)(err)),
            Ok(name) => match self.aliased(&name, path) {
                Some(of) => return Ok(IdentityMatch::Alias { of }),
                // The bind mount is gone, or the first path has moved on.
                None => fs::remove_file(&place).map_err(Error::io("remove", &place))?,
            },
        }
        // A path without a directory has no identity.
        let Ok(now) = Identity::of(path) else { return Ok(IdentityMatch::Nowhere) };
        match self.search(path, &now)? {
            Some((entry, Match::Moved)) => self.adopt(&entry, path, &now),
            Some((entry, Match::Alias)) => alias(&entry, &place),
            Some((entry, Match::Perhaps)) => Ok(IdentityMatch::Perhaps { from: entry.path }),
            // The entry now belongs to another directory; or another process renamed it to this
            // path while we searched.
            Some((_, Match::Former)) | None => {
                let is_here = fs::symlink_metadata(&place).is_ok_and(|found| found.is_dir());
                Ok(if is_here { IdentityMatch::ByPath } else { IdentityMatch::Nowhere })
            }
        }
    }

    /// The path of another entry that certainly or possibly belongs, or belonged, to the directory
    /// at `path`. Changes nothing.
    ///
    /// # Errors
    ///
    /// Fails if the entries cannot be listed.
    pub fn other_path(&self, path: &Path) -> Result<Option<(PathBuf, Likeness)>> {
        let Ok(now) = Identity::of(path) else { return Ok(None) };
        let likeness = |found| match found {
            Match::Moved | Match::Former => Some(Likeness::Same),
            Match::Perhaps => Some(Likeness::Perhaps),
            // It shares the entry that was already found.
            Match::Alias => None,
        };
        let found = self.search(path, &now)?;
        Ok(found.and_then(|(entry, found)| Some((entry.path, likeness(found)?))))
    }

    /// Where the entry of the directory at `path` is or would be.
    pub fn place_of(&self, path: &Path) -> PathBuf {
        self.dir.join(hash_name(&[path.as_os_str().as_bytes()]))
    }

    /// Searches the other entries for the one of the directory now at `path`.
    fn search(&self, path: &Path, now: &Identity) -> Result<Option<(RegistryEntry, Match)>> {
        let own = self.place_of(path);
        let mut best: Option<(RegistryEntry, Match)> = None;
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

    /// Reads an entry. One that cannot be read, or that a newer version wrote, is not moved.
    fn read(&self, name: &OsStr) -> Option<RegistryEntry> {
        let bytes = read_small(&self.dir.join(name).join(ROOT_FILE), SIZE_MAX_BYTES).ok()??;
        let file: EntryFile = from_json(ROOT_FILE, &bytes).ok()?;
        Some(RegistryEntry {
            name: name.to_owned(),
            path: parse_path(&file.path).ok()?,
            identity: file.identity,
            former: file.former,
        })
    }

    /// The path of the entry `name`, if its directory is also the one at `path`, or if nothing is
    /// at `path` and it cannot be determined.
    fn aliased(&self, name: &Path, path: &Path) -> Option<PathBuf> {
        let entry = self.read(name.as_os_str())?;
        let Ok(here) = Identity::of(path) else { return Some(entry.path) };
        let is_same = Identity::of(&entry.path).is_ok_and(|there| there.is_same_now(&here));
        is_same.then_some(entry.path)
    }

    /// Moves an entry to the name for the new path of its directory.
    ///
    /// The file is updated first. An entry with its old name and the new path is still found by
    /// identity and gives the correct path. In the other order, the entry would seem to belong to a
    /// directory that is gone, and would be removed in time.
    fn adopt(&self, entry: &RegistryEntry, path: &Path, now: &Identity) -> Result<IdentityMatch> {
        let (old, new) = (self.dir.join(&entry.name), self.place_of(path));
        let is_done = || new.symlink_metadata().is_ok();
        let deadline = Instant::now() + LOCK_WAIT;
        let _ignored_saves = match Lock::acquire(&old.join("lock"), deadline) {
            Ok(lock) => lock,
            // Another process was faster, and the old entry no longer exists.
            Err(_) if is_done() => return Ok(IdentityMatch::ByPath),
            Err(err) => return Err(err),
        };
        let _ignored_deletes = Lock::share(&self.deletions, deadline)?;
        if is_done() {
            return Ok(IdentityMatch::ByPath);
        }
        let again = self.read(&entry.name).filter(|again| again.identity == entry.identity);
        let Some(again) = again else { return Ok(IdentityMatch::Nowhere) };
        let file = old.join(ROOT_FILE);
        crash::point("adopt-describe");
        replace_synced(&file, &moved(&file, &again.path, path, now)?)?;
        crash::point("adopt-rename");
        fs::rename(&old, &new).map_err(Error::io("rename", &old))?;
        crash::point("adopt-sync");
        sync_dir(&self.dir)?;
        Ok(IdentityMatch::Moved { from: entry.path.clone() })
    }
}

/// How an entry under another path relates to a directory; greater values are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    /// It may belong to it.
    Perhaps,
    /// It belonged to it, before another directory took its path.
    Former,
    /// It belongs to it, and the directory is no longer at the entry's path.
    Moved,
    /// It belongs to it, and the directory is at the entry's path too.
    Alias,
}

impl RegistryEntry {
    fn compare(&self, path: &Path, now: &Identity) -> Option<Match> {
        if self.identity.likeness(now) == Likeness::Different {
            let is_it = |then: &Identity| then.likeness(now) == Likeness::Same;
            return self.former.iter().any(is_it).then_some(Match::Former);
        }
        if self.path == path && self.identity.is_same_now(now) {
            // It was being adopted; only the rename is missing.
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
fn alias(entry: &RegistryEntry, place: &Path) -> Result<IdentityMatch> {
    match symlink(&entry.name, place) {
        Ok(()) => (),
        // Another process was faster.
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => (),
        Err(err) => return Err(Error::io("link", place)(err)),
    }
    Ok(IdentityMatch::Alias { of: entry.path.clone() })
}

/// The names of all entries in `dir`, without the symlinks that stand for second paths.
///
/// # Errors
///
/// Fails if the directory cannot be listed. A missing one has no entries.
pub fn names(dir: &Path) -> Result<Vec<OsString>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(err) if is_absent(&err) => return Ok(Vec::new()),
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

/// Removes dangling symlinks in `dir`: their entry was adopted by another path, or removed.
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

/// What of an entry's file identifies its root.
#[derive(Deserialize)]
struct EntryFile {
    #[serde(rename = "version")]
    _version: FormatVersion,
    path: String,
    #[serde(flatten)]
    identity: Identity,
    #[serde(default)]
    former: Vec<Identity>,
}

/// The new content of an entry's file after its directory moved from `from` to `to`. Also updates
/// the recorded parent directory and a repository inside.
fn moved(file: &Path, from: &Path, to: &Path, now: &Identity) -> Result<Vec<u8>> {
    let bytes = read_small(file, SIZE_MAX_BYTES)?.unwrap_or_default();
    let mut json: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|err| Error::damaged(ROOT_FILE, err.to_string()))?;
    json.insert("path".to_owned(), escape_path(to).into());
    json.insert("device".to_owned(), now.device.into());
    json.insert("inode".to_owned(), now.inode.into());
    if let Some(birth) = now.birth {
        json.insert("birth".to_owned(), birth.into());
    }
    if json.contains_key("parent")
        && let Ok(above) = Identity::of(to.parent().unwrap_or(to))
    {
        json.insert("parent".to_owned(), vec![above.device, above.inode].into());
    }
    let git_dir = json.get("git_dir").and_then(Value::as_str).and_then(|it| parse_path(it).ok());
    if let Some(inside) = git_dir.as_deref().and_then(|it| it.strip_prefix(from).ok()) {
        json.insert("git_dir".to_owned(), escape_path(&to.join(inside)).into());
    }
    Ok(to_json(&json))
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
            // Without a birth time, it may be a removed directory with its inode reused.
            (Identity { birth: None, ..then }, Likeness::Perhaps),
            (Identity { birth: None, device: 4, ..then }, Likeness::Different),
            // Device numbers can change, and a snapshot of the file system has another one.
            (Identity { device: 4, ..then }, Likeness::Perhaps),
        ];
        for (now, expected) in cases {
            assert_eq!(then.likeness(&now), expected, "{now:?}");
            assert_eq!(now.likeness(&then), expected, "{now:?}");
        }
    }
}
