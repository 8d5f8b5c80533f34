//! The stamps of the files with the objects that a root's cache relies on.
//!
//! A cache says that objects are stored, and a pack's index says that they are in the pack. Neither says that
//! the files are still there and as they were written. So the last save of a root records the stamps of these
//! files, and the next one compares them before it relies on anything: one stat for each file, and none is
//! opened. Files that are added later change nothing; a save that finds another difference verifies the files
//! and distrusts the cache.
//!
//! A file with another hard link is the user's as well: git updates its times, and its contents are lost only
//! if the user's repository loses them too. Of a pack with another link, only inode and size count; loose
//! objects with another link are represented by the stamp of their directory.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt::Write as _,
    io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    time::Instant,
};

use super::record;
use crate::{
    error::{Error, Result},
    fs::{self, Dir, Listed, Lock},
    model::{
        Kind, Stamp,
        escape::{escape, unescape},
    },
    scan::is_racy,
    state::{RootState, StateDir},
};

/// Enough for a hundred thousand files.
const SIZE_MAX_BYTES: u64 = 16 << 20;
/// The first word of the file.
const MAGIC: &str = "object-stamps-2";
/// The largest number of files in a directory that are looked at by their paths.
const STATS_BY_PATH_MAX: usize = 2;
/// The numbers of a stamp.
const STAMP_FIELDS: usize = 5;
/// Object directories of git extensions are not nested deeper.
const DEPTH_MAX: usize = 100;

/// The stamps of all object files of a root, by directory. Paths are relative to the state directory.
#[derive(Debug, Default, PartialEq, Eq)]
struct ObjectStamps(BTreeMap<PathBuf, DirStamps>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct DirStamps {
    /// The stamp of the directory before it was listed.
    stamp: Stamp,
    /// Whether another change could have left the same stamp.
    is_racy: bool,
    /// Whether only this stamp represents some of its files.
    is_watched: bool,
    files: Vec<(OsString, FileStamp)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileStamp {
    /// A file of ours alone.
    Own(Stamp),
    /// A file that the user's repository has too.
    Linked(Stamp),
}

impl FileStamp {
    fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    fn is_same(&self, now: &Stamp) -> bool {
        match self {
            Self::Own(stamp) => stamp == now,
            Self::Linked(stamp) => {
                (stamp.inode, stamp.size, stamp.kind()) == (now.inode, now.size, now.kind())
            }
        }
    }
}

/// Which files are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StampScope {
    /// All files.
    All,
    /// Those that the user's repository does not have.
    Own,
}

/// Whether every object file is as the last save of the root recorded it.
pub(crate) fn stand(state: &RootState, scope: StampScope) -> bool {
    let mut is_same = true;
    let looked = ObjectStamps::read(state, scope)
        .and_then(|stamps| stamps.each_changed(state, scope, |_| is_same = false).ok());
    looked.is_some() && is_same
}

/// The stamps that the last save of a root recorded, compared with the present files.
#[derive(Debug)]
pub(in crate::store) struct CheckedStamps {
    /// The record; `None` if it cannot be read.
    recorded: Option<ObjectStamps>,
    /// The files and directories that are not as they were recorded, by absolute path.
    pub(in crate::store) changed: Vec<PathBuf>,
}

impl CheckedStamps {
    /// Compares the files of a root.
    pub(in crate::store) fn of(state: &RootState) -> Self {
        let recorded = ObjectStamps::read(state, StampScope::All);
        let changed = recorded.as_ref().map(|recorded| recorded.changed(state));
        match changed.transpose() {
            Ok(changed) => Self { recorded, changed: changed.unwrap_or_default() },
            Err(_) => Self { recorded: None, changed: Vec::new() },
        }
    }

    /// Whether every object file is as it was recorded.
    pub(in crate::store) fn stand(&self) -> bool {
        self.recorded.is_some() && self.changed.is_empty()
    }

    /// Records the present stamps of all files below `dirs`, for the next save. Those below the directories
    /// `untouched`, which this save has left alone, stay as they are recorded.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be listed or the file cannot be written.
    pub(in crate::store) fn write(
        &self,
        state: &RootState,
        dirs: &[PathBuf],
        untouched: &[PathBuf],
    ) -> Result<()> {
        let before = self.recorded.as_ref().filter(|_| self.stand());
        ObjectStamps::write(state, dirs, before, untouched)
    }
}

/// Packs of ours that maintenance replaces by one with all their objects.
pub(in crate::store) struct MergedPacks {
    state: StateDir,
    /// Their files, by path below the state directory, as they were before they were read.
    files: BTreeMap<PathBuf, Stamp>,
}

impl MergedPacks {
    /// Call it before the first of the files is read.
    pub(in crate::store) fn new(state: &StateDir, files: &[PathBuf]) -> Self {
        let mut stamps = BTreeMap::new();
        for path in files {
            if let (Ok(below), Ok(stamp)) = (path.strip_prefix(state.dir()), fs::stat_path(path)) {
                stamps.insert(below.to_owned(), stamp);
            }
        }
        Self { state: state.clone(), files: stamps }
    }

    /// Records the new pack for the roots that relied on the old ones and on nothing that has changed: otherwise
    /// the next save of each would verify all its objects. Call it once the old files are gone.
    ///
    /// A root that another process is using is left as it is.
    ///
    /// # Errors
    ///
    /// Fails if the roots cannot be listed or a file cannot be written.
    pub(in crate::store) fn record(&self) -> Result<()> {
        for root in record::all_roots(&self.state)? {
            let Some(_lock) = Lock::acquire_if_free(&root.lock(), Instant::now())? else {
                continue;
            };
            let Some(recorded) = ObjectStamps::read(&root, StampScope::All) else { continue };
            if let Some(now) = self.replaced_in(&recorded).map_err(Error::io("list", root.dir()))? {
                fs::replace(&root.object_stamps(), now.to_text().as_bytes())?;
            }
        }
        Ok(())
    }

    /// The stamps of a root with the new pack in place of the old ones. `None` if it relies on none of them, or if
    /// one of its other files has changed.
    fn replaced_in(&self, recorded: &ObjectStamps) -> io::Result<Option<ObjectStamps>> {
        let top = Dir::open(self.state.dir())?;
        let mut now = ObjectStamps(recorded.0.clone());
        let mut is_replaced = false;
        for (path, of_dir) in &recorded.0 {
            let mut rest = of_dir.files.clone();
            rest.retain(|(name, stamp)| {
                let then = self.files.get(&path.join(name));
                !then.is_some_and(|then| stamp.is_own() && stamp.is_same(then))
            });
            if rest.len() == of_dir.files.len() {
                continue;
            }
            is_replaced = true;
            let mut listed = ObjectStamps::default();
            listed.add(&top, path, None, 0)?;
            let listed = listed.0.remove(path).unwrap_or_else(|| of_dir.clone());
            if !rest.iter().all(|file| listed.files.contains(file)) {
                return Ok(None);
            }
            now.0.insert(path.clone(), listed);
        }
        Ok(is_replaced.then_some(now))
    }
}

impl ObjectStamps {
    /// The stamps that the last save of a root recorded; `None` if they cannot be read.
    fn read(state: &RootState, scope: StampScope) -> Option<Self> {
        let bytes = fs::read_small(&state.object_stamps(), SIZE_MAX_BYTES).ok()??;
        Self::parse(&bytes, scope)
    }

    fn changed(&self, state: &RootState) -> io::Result<Vec<PathBuf>> {
        let top = state.state().dir();
        let mut changed = Vec::new();
        self.each_changed(state, StampScope::All, |path| changed.push(top.join(path)))?;
        Ok(changed)
    }

    fn each_changed(
        &self,
        state: &RootState,
        scope: StampScope,
        mut each: impl FnMut(&Path),
    ) -> io::Result<()> {
        let dir = state.state().dir();
        // An edit looks at a few files. Their whole paths cost less than opening a directory.
        let top = match scope {
            StampScope::All => Some(Dir::open(dir)?),
            StampScope::Own => None,
        };
        // Names below an open directory cost less than paths: most directories are in the same one.
        let mut above: Option<(&Path, Dir)> = None;
        for (path, of_dir) in &self.0 {
            if of_dir.is_watched && scope == StampScope::All {
                let parent = path.parent().unwrap_or(path);
                if above.as_ref().is_none_or(|(path, _)| *path != parent) {
                    let entered = top.as_ref().and_then(|top| top.enter_below(parent).ok());
                    above = entered.map(|dir| (parent, dir));
                }
                let now = above.as_ref().zip(path.file_name());
                let now = now.map(|((_, dir), name)| dir.stat_child(name));
                if !now.is_some_and(|now| now.is_ok_and(|now| now == of_dir.stamp)) {
                    each(path);
                }
            }
            let files = of_dir.files.iter();
            let mut files =
                files.filter(|(_, stamp)| scope == StampScope::All || stamp.is_own()).peekable();
            if files.peek().is_none() {
                continue;
            }
            // To open a directory and close it again costs as much as two stats: most have one or two files.
            let is_small = of_dir.files.len() <= STATS_BY_PATH_MAX;
            let of_dir = match &top {
                _ if is_small => None,
                Some(top) => top.enter_below(&**path).ok(),
                None => Dir::open(&dir.join(path)).ok(),
            };
            for (name, stamp) in files {
                let now = match (&of_dir, &top) {
                    (Some(of_dir), _) => of_dir.stat_child(&**name),
                    (None, Some(top)) => top.stat_child(&*path.join(name)),
                    (None, None) => fs::stat_path(&dir.join(path).join(name)),
                };
                if !now.is_ok_and(|now| stamp.is_same(&now)) {
                    each(&path.join(name));
                }
            }
        }
        Ok(())
    }

    /// Directories that are as `before` says are not listed again: all files of `before` must be unchanged.
    fn write(
        state: &RootState,
        dirs: &[PathBuf],
        before: Option<&Self>,
        untouched: &[PathBuf],
    ) -> Result<()> {
        let path = state.state().dir();
        let top = Dir::open(path).map_err(Error::io("open", path))?;
        let mut now = Self::default();
        for dir in dirs {
            let below = dir.strip_prefix(path).unwrap_or(dir);
            if let Some(before) =
                before.filter(|it| untouched.contains(dir) && it.0.contains_key(below))
            {
                let known = before.0.iter().filter(|(path, _)| path.starts_with(below));
                now.0.extend(known.map(|(path, of_dir)| (path.clone(), of_dir.clone())));
                continue;
            }
            now.add(&top, below, before, 0).map_err(Error::io("list", dir))?;
        }
        if before == Some(&now) {
            return Ok(());
        }
        fs::replace(&state.object_stamps(), now.to_text().as_bytes())
    }

    fn add(
        &mut self,
        top: &Dir,
        dir: &Path,
        before: Option<&Self>,
        depth: usize,
    ) -> io::Result<()> {
        let looked_at = fs::now_ns();
        let stamp = match top.stat_child(dir) {
            Ok(stamp) if stamp.kind() == Some(Kind::Directory) && depth < DEPTH_MAX => stamp,
            Err(err) if !fs::is_absent(&err) => return Err(err),
            Ok(_) | Err(_) => return Ok(()),
        };
        let known = before.and_then(|before| before.0.get(dir));
        if let Some(known) = known.filter(|known| known.stamp == stamp && !known.is_racy) {
            self.0.insert(dir.to_owned(), known.clone());
            let others = before.into_iter().flat_map(|before| before.0.keys());
            for below in others.filter(|path| path.parent() == Some(dir)) {
                self.add(top, below, before, depth + 1)?;
            }
            return Ok(());
        }
        let mut listed = Vec::new();
        top.open_below(dir)?.list(|Listed { name, .. }| listed.push(name.into_bytes()))?;
        let mut of_dir = DirStamps {
            stamp,
            is_racy: is_racy(&stamp, looked_at),
            is_watched: false,
            files: Vec::new(),
        };
        for name in listed {
            let name = OsString::from_vec(name);
            let path = dir.join(&name);
            let (stamp, links) = match top.stat_child_and_links(&*path) {
                Err(err) if fs::is_absent(&err) => continue,
                found => found?,
            };
            match stamp.kind() {
                Some(Kind::Directory) => self.add(top, &path, before, depth + 1)?,
                Some(Kind::File) if !is_object_file(&name) => (),
                Some(Kind::File) if links < 2 => of_dir.files.push((name, FileStamp::Own(stamp))),
                Some(Kind::File) if is_of_pack(&name) => {
                    of_dir.files.push((name, FileStamp::Linked(stamp)));
                }
                Some(Kind::File) => of_dir.is_watched = true,
                Some(
                    Kind::Link | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice,
                )
                | None => (),
            }
        }
        of_dir.files.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.0.insert(dir.to_owned(), of_dir);
        Ok(())
    }

    /// A line for each directory, followed by one for each of its files. The directories with the user's objects
    /// are last. The first line counts the lines before them, and all.
    fn to_text(&self) -> String {
        let (own, linked): (Vec<_>, Vec<_>) = self.0.iter().partition(|(path, _)| !is_linked(path));
        let lines = |dirs: &[(&PathBuf, &DirStamps)]| {
            dirs.iter().map(|(_, dir)| 1 + dir.files.len()).sum::<usize>()
        };
        let count = lines(&own);
        let mut text = format!("{MAGIC} {count} {}\n", count + lines(&linked));
        for (path, dir) in own.into_iter().chain(linked) {
            let kind = match (dir.is_watched, dir.is_racy) {
                (false, false) => "dir",
                (false, true) => "racy-dir",
                (true, false) => "watched-dir",
                (true, true) => "racy-watched-dir",
            };
            put_line(&mut text, kind, &dir.stamp, path.as_os_str());
            for (name, stamp) in &dir.files {
                match stamp {
                    FileStamp::Own(stamp) => put_line(&mut text, "file", stamp, name),
                    FileStamp::Linked(stamp) => put_line(&mut text, "linked", stamp, name),
                }
            }
        }
        text
    }

    /// Parses the text of the file. For [`StampScope::Own`], nothing is read of the directories with the user's
    /// objects: an edit that its turn has covered waits for it. Also of a copy there, the user has the original.
    fn parse(text: &[u8], scope: StampScope) -> Option<Self> {
        let mut lines = text.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
        let counts = str::from_utf8(lines.next()?).ok()?.strip_prefix(MAGIC)?.strip_prefix(' ')?;
        let (own, all) = counts.split_once(' ')?;
        let count = match scope {
            StampScope::Own => own.parse().ok()?,
            StampScope::All => all.parse().ok().filter(|all| *all == lines.clone().count())?,
        };
        let mut all = Self::default();
        let mut read = 0;
        let mut open: Option<(PathBuf, DirStamps)> = None;
        for line in lines.take(count) {
            read += 1;
            let (kind, stamp, name) = parse_line(line, scope)?;
            let file = match kind {
                "file" => FileStamp::Own(stamp),
                "linked" => FileStamp::Linked(stamp),
                "dir" | "racy-dir" | "watched-dir" | "racy-watched-dir" => {
                    let (is_racy, is_watched) =
                        (kind.starts_with("racy"), kind.contains("watched"));
                    let dir = DirStamps { stamp, is_racy, is_watched, files: Vec::new() };
                    all.0.extend(open.replace((name.into(), dir)));
                    continue;
                }
                _ => return None,
            };
            open.as_mut()?.1.files.push((name, file));
        }
        all.0.extend(open);
        (read == count).then_some(all)
    }
}

/// Whether a directory has the user's objects.
fn is_linked(dir: &Path) -> bool {
    dir.iter().any(|name| name == "linked")
}

/// Whether objects are read with a file. A file that is being written has another name later.
fn is_object_file(name: &OsStr) -> bool {
    let is_temporary = name.as_bytes().starts_with(b"tmp");
    !is_temporary && !matches!(name.as_bytes(), b"seen" | b"missing")
}

fn is_of_pack(name: &OsStr) -> bool {
    name.as_bytes().ends_with(b".pack") || name.as_bytes().ends_with(b".idx")
}

fn put_line(text: &mut String, kind: &str, stamp: &Stamp, name: &OsStr) {
    let Stamp { mtime_ns, ctime_ns, inode, size, mode } = stamp;
    let name = escape(name.as_bytes());
    writeln!(text, "{kind} {mtime_ns} {ctime_ns} {inode} {size} {mode:o} {name}")
        .expect("a string takes every write");
}

/// Parses a line. Of a directory, [`StampScope::Own`] needs only the name.
fn parse_line(line: &[u8], scope: StampScope) -> Option<(&str, Stamp, OsString)> {
    let mut fields = line.split(|byte| *byte == b' ').map_while(|field| str::from_utf8(field).ok());
    let kind = fields.next()?;
    let stamp = if scope == StampScope::Own && kind.ends_with("dir") {
        fields.nth(STAMP_FIELDS - 1)?;
        Stamp::default()
    } else {
        Stamp {
            mtime_ns: fields.next()?.parse().ok()?,
            ctime_ns: fields.next()?.parse().ok()?,
            inode: fields.next()?.parse().ok()?,
            size: fields.next()?.parse().ok()?,
            mode: u32::from_str_radix(fields.next()?, 8).ok()?,
        }
    };
    let name = OsString::from_vec(unescape(fields.next()?)?);
    fields.next().is_none().then_some((kind, stamp, name))
}
