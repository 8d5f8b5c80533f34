//! The way back from the vault: reading a repository that is gone, and making it again.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{DEPTH_MAX, Vault, copy_whole, is_object, link_or_copy, state::GitState};
use crate::{
    error::{Error, Result},
    fs::{Dir, read_small, remove_tree},
    model::{Kind, RelPath, Root, RootKind},
    scan::TEMPORARY_PREFIX,
    state::{RootState, State},
    store::{
        listing::Line,
        objects::Objects,
        record::{self, Record},
    },
};

/// How to read the checkpoints of the root at `path` although it has no `.git` any more: through
/// its git directory if that was elsewhere and is still there, else through the vault. `None` if it
/// never was a repository, still is one, or cannot be read in either way.
pub fn reader(state: &State, path: &Path) -> Option<Root> {
    let dot_git = path.join(".git");
    if dot_git.symlink_metadata().is_ok() && !lacks_its_frame(&dot_git) {
        return None;
    }
    let own = state.root_at(path);
    let git_dir = record::read_place(&own).ok()??.git_dir?;
    let kind = if git_dir.is_dir() && !git_dir.starts_with(path) {
        let pointer = read_small(&git_dir.join("commondir"), 64 << 10).ok().flatten();
        let common_dir = match pointer {
            Some(text) => {
                fs::canonicalize(git_dir.join(OsStr::from_bytes(text.trim_ascii_end()))).ok()?
            }
            None => git_dir.clone(),
        };
        RootKind::Git { git_dir, common_dir }
    } else {
        let view = own.vault().join("git/.git");
        view.join("HEAD").is_file().then_some(())?;
        RootKind::Git { git_dir: view.clone(), common_dir: view }
    };
    Some(Root::new(path.to_owned(), kind))
}

/// Whether a `.git` is a directory that no git takes for a repository any more.
fn lacks_its_frame(dot_git: &Path) -> bool {
    let is_there = |name: &str| dot_git.join(name).symlink_metadata().is_ok();
    dot_git.is_dir() && ["HEAD", "objects", "refs"].into_iter().any(|name| !is_there(name))
}

/// Whether there is a `.git` at `root` that its vault can mend. Branches that are gone from a
/// repository that is one are no damage: they are the user's to delete.
pub fn is_mendable(root: &Path) -> bool {
    lacks_its_frame(&root.join(".git"))
}

/// Puts back what the repository of `root` lacks of what the vault has. What is there stays as it
/// is.
///
/// # Errors
///
/// Fails if the vault lacks something, or if something cannot be made.
pub fn mend(state: &RootState, root: &Path, vault: &Vault) -> Result<()> {
    let held = read_state(state.state(), vault)?;
    let git_dir = RelPath::from_bytes(b".git").expect("a plain name is a path");
    let objects = Objects::new(state.state().objects());
    let place = root.join(".git");
    let builder = Rebuild { objects: &objects, held: &held, git_dir: &git_dir, temporary: &place };
    builder.build(state)?;
    let dir = Dir::open(&place).map_err(Error::io("open", &place))?;
    dir.sync_file_system().map_err(Error::io("sync", &place))
}

/// The vault to bring a repository back from for a checkpoint: its own, or that of the next
/// younger one that has any, or of the next older.
///
/// # Errors
///
/// Fails if the records cannot be listed.
pub fn fitting(state: &RootState, sequence: u64) -> Result<Option<Vault>> {
    let kept = record::read_all(state)?;
    let with_vault = |record: Record| Some((record.checkpoint.sequence, record.vault?));
    let mut all: Vec<(u64, Vault)> =
        kept.into_iter().filter_map(|kept| with_vault(kept.record.ok()?)).collect();
    all.sort_by_key(|(it, _)| (*it < sequence, it.abs_diff(sequence)));
    Ok(all.into_iter().next().map(|(_, vault)| vault))
}

/// The `.git`s that a vault holds and that are missing below `root`, the outermost ones.
///
/// # Errors
///
/// Fails if the vault's listing cannot be read.
pub fn missing(state: &State, root: &Path, vault: &Vault) -> Result<Vec<RelPath>> {
    let held = read_state(state, vault)?;
    let mut missing = Vec::new();
    for path in held.listing.keys() {
        let path = RelPath::from_bytes(path)
            .map_err(|_| Error::damaged("the vault", "a path leads out of the root"))?;
        let is_top =
            path.name() == b".git" && !missing.iter().any(|top: &RelPath| is_below(&path, top));
        if is_top && root.join(path.as_path()).symlink_metadata().is_err() {
            missing.push(path);
        }
    }
    Ok(missing)
}

fn is_below(path: &RelPath, top: &RelPath) -> bool {
    path.as_path().starts_with(top.as_path())
}

pub(super) fn read_state(state: &State, vault: &Vault) -> Result<GitState> {
    GitState::read(&Objects::new(state.objects()), &vault.state)
}

/// Brings one missing `.git` back: made beside its place, put on the disk, then renamed. What is
/// there by then is not touched.
///
/// # Errors
///
/// Fails if the vault lacks something, or if the place cannot be written. Nothing is at `git_dir`
/// then that was not there before.
pub fn rebuild(state: &RootState, root: &Path, vault: &Vault, git_dir: &RelPath) -> Result<()> {
    let held = read_state(state.state(), vault)?;
    let place = root.join(git_dir.as_path());
    let parent = place.parent().unwrap_or(root);
    fs::create_dir_all(parent).map_err(Error::io("make the directory", parent))?;
    let temporary = parent.join(format!("{TEMPORARY_PREFIX}vault"));
    remove_tree(&temporary).map_err(Error::io("remove", &temporary))?;
    let objects = Objects::new(state.state().objects());
    let builder = Rebuild { objects: &objects, held: &held, git_dir, temporary: &temporary };
    let built = builder.build(state).and_then(|()| {
        let dir = Dir::open(parent).map_err(Error::io("open", parent))?;
        dir.sync_file_system().map_err(Error::io("sync", parent))?;
        renameat_with(CWD, &temporary, CWD, &place, RenameFlags::NOREPLACE)
            .map_err(|err| Error::io("bring back", &place)(err.into()))
    });
    if built.is_err() {
        let _gone = remove_tree(&temporary);
    }
    built
}

struct Rebuild<'a> {
    objects: &'a Objects,
    held: &'a GitState,
    git_dir: &'a RelPath,
    temporary: &'a Path,
}

impl Rebuild<'_> {
    fn build(&self, state: &RootState) -> Result<()> {
        let top = self.git_dir.as_bytes();
        let lines = || {
            self.held.listing.iter().filter_map(|(path, line)| {
                let rest = path.strip_prefix(top)?;
                let rest = if rest.is_empty() { rest } else { rest.strip_prefix(b"/")? };
                is_plain(rest).then(|| (self.place(rest), line))
            })
        };
        let is_missing = |place: &Path| place.symlink_metadata().is_err();
        let missing: Vec<_> = lines().filter(|(place, _)| is_missing(place)).collect();
        for (place, line) in &missing {
            self.put(place, line).map_err(Error::io("make", place))??;
        }
        self.link_objects(&state.vault().join("git").join(self.git_dir.as_path()))
            .map_err(Error::io("link the objects into", self.temporary))?;
        // The innermost first: a directory may forbid what had to be done in it.
        let is_dir = |line: &Line| line.entry.kind == Kind::Directory;
        for (place, line) in missing.iter().rev().filter(|(_, line)| is_dir(line)) {
            let mode = fs::Permissions::from_mode(line.entry.permissions);
            fs::set_permissions(place, mode).map_err(Error::io("protect", place))?;
        }
        Ok(())
    }

    fn place(&self, rest: &[u8]) -> PathBuf {
        if rest.is_empty() {
            self.temporary.to_owned()
        } else {
            self.temporary.join(OsStr::from_bytes(rest))
        }
    }

    fn put(&self, place: &Path, line: &Line) -> io::Result<Result<()>> {
        let above = place.parent().filter(|above| above.starts_with(self.temporary));
        above.map_or(Ok(()), fs::create_dir_all)?;
        let Some(content) = line.entry.content else {
            return DirBuilder::new().mode(0o700).recursive(true).create(place).map(Ok);
        };
        let mut bytes = match self.held.open(self.objects, &content.id) {
            Ok(bytes) => bytes,
            Err(err) => return Ok(Err(err)),
        };
        if line.entry.kind == Kind::Link {
            let mut text = Vec::new();
            bytes.read_to_end(&mut text)?;
            return symlink(OsStr::from_bytes(&text), place).map(Ok);
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(place)?;
        io::copy(&mut bytes, &mut file)?;
        file.set_permissions(fs::Permissions::from_mode(line.entry.permissions))?;
        file.flush().map(Ok)
    }

    fn link_objects(&self, vault: &Path) -> io::Result<()> {
        if !self.temporary.is_dir() || !vault.is_dir() {
            return Ok(());
        }
        let mut dirs = Vec::new();
        kept_object_dirs(vault, Path::new(""), 0, &mut dirs)?;
        for rest in dirs {
            link_tree(&vault.join(&rest), &self.temporary.join(&rest), 0)?;
        }
        for (dir, below) in [("objects", "info"), ("objects", "pack"), ("refs", "heads")] {
            // Git takes a directory without them for no repository.
            if self.temporary.join(dir).is_dir() {
                fs::create_dir_all(self.temporary.join(dir).join(below))?;
            }
        }
        Ok(())
    }
}

/// Whether a path from a listing stays below where it is joined to.
fn is_plain(path: &[u8]) -> bool {
    path.is_empty()
        || path.split(|&byte| byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

/// Every directory of objects that a vault keeps for one repository, seen from that.
fn kept_object_dirs(
    top: &Path,
    name: &Path,
    depth: usize,
    found: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for entry in fs::read_dir(top.join(name))? {
        let entry = entry?;
        let below = name.join(entry.file_name());
        if entry.file_name() == "objects" {
            found.push(below);
        } else if entry.file_type()?.is_dir() && depth < DEPTH_MAX {
            kept_object_dirs(top, &below, depth + 1, found)?;
        }
    }
    Ok(())
}

fn link_tree(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, mut unlimited) = (entry?, 0);
        let (kind, to) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() && depth < DEPTH_MAX && entry.file_name() != "info" {
            link_tree(&entry.path(), &to, depth + 1)?;
        } else if kind.is_file() && is_object(entry.file_name().as_bytes()) {
            match link_or_copy(&entry.path(), &to, &mut unlimited) {
                Err(err) if err.kind() == io::ErrorKind::FileTooLarge => {
                    copy_whole(&entry.path(), &to)?;
                }
                linked => drop(linked?),
            }
        }
    }
    Ok(())
}
