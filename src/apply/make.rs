//! Creates new files under temporary names next to their targets.

use std::{
    cell::Cell,
    ffi::{CStr, CString},
    fs::File,
    io::{self, Write},
};

use super::{Apply, changed};
use crate::{
    error::Error,
    fs::{Dir, Holes, Owner, c_name, set_permissions},
    model::{CheckpointId, Content, Entry, Kind},
    plan::{Merged, PlanStep},
    scan::TEMPORARY_PREFIX,
    state::hash_name,
};

/// The temporary name of the new file for `path`.
pub(super) fn unfinished(id: CheckpointId, path: &[u8]) -> io::Result<CString> {
    c_name(format!("{TEMPORARY_PREFIX}{id}-{}", &hash_name(&[path])[..16]).as_bytes())
}

/// The file that a new one replaces, and inherits attributes from.
#[derive(Clone, Copy)]
pub(super) struct Instead<'a> {
    /// Its name in the same directory.
    pub(super) name: &'a CStr,
    /// Its owner.
    pub(super) owner: Owner,
    /// Set if the new file does not get all of its attributes.
    pub(super) is_shorn: &'a Cell<bool>,
}

impl Apply<'_> {
    pub(super) fn make_merged(
        &self,
        parent: &Dir,
        step: &PlanStep,
        merged: &Merged,
        instead: Option<Instead<'_>>,
    ) -> io::Result<u64> {
        let temporary = unfinished(self.id, step.path.as_bytes())?;
        let mut file = anew(parent, &temporary, |name| parent.create_file(name))?;
        let written = file.write_all(&merged.bytes).and_then(|()| {
            inherit(parent, &temporary, instead, Some(&file));
            set_permissions(&file, merged.permissions)
        });
        if let Err(err) = written {
            let _litter = parent.remove_file(&temporary);
            return Err(err);
        }
        Ok(merged.bytes.len() as u64)
    }

    /// Creates the file `temporary` for `entry`, if there is one, and returns its size.
    pub(super) fn make(
        &self,
        parent: &Dir,
        temporary: &CStr,
        entry: &Entry,
        instead: Option<Instead<'_>>,
    ) -> io::Result<u64> {
        let made = self.try_make(parent, temporary, entry, instead);
        if made.is_err() {
            let _litter = parent.remove_file(temporary);
        }
        made
    }

    fn try_make(
        &self,
        parent: &Dir,
        temporary: &CStr,
        entry: &Entry,
        instead: Option<Instead<'_>>,
    ) -> io::Result<u64> {
        match entry.kind {
            Kind::File => {
                let mut file = anew(parent, temporary, |name| parent.create_file(name))?;
                let mut holes = Holes::new(&mut file);
                let size = self.copy(entry.content, &mut holes)?;
                holes.finish()?;
                inherit(parent, temporary, instead, Some(&file));
                set_permissions(&file, entry.permissions)?;
                Ok(size)
            }
            Kind::Link => {
                let mut text = Vec::new();
                self.copy(entry.content, &mut text)?;
                anew(parent, temporary, |name| parent.create_link(name, &text))?;
                inherit(parent, temporary, instead, None);
                Ok(0)
            }
            Kind::Directory => Err(io::ErrorKind::InvalidInput.into()),
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                anew(parent, temporary, |name| {
                    parent.create_special(name, entry.kind, entry.device)
                })?;
                inherit(parent, temporary, instead, None);
                parent.set_permissions(temporary, entry.kind, entry.permissions).map(|()| 0)
            }
        }
    }

    fn copy(&self, content: Option<Content>, to: &mut dyn Write) -> io::Result<u64> {
        let content = content.ok_or_else(|| io::Error::other("the checkpoint lacks its bytes"))?;
        let mut from = (self.open)(&content).map_err(|err| as_io(&err))?;
        io::copy(&mut from, to).map_err(|err| match err.kind() {
            // What is compressed, or cut off, is damaged where it cannot be read.
            io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
                io::Error::new(io::ErrorKind::InvalidData, err)
            }
            _ => err,
        })
    }
}

/// Creates a file under a temporary name. Removes what an interrupted restore left there.
fn anew<T>(parent: &Dir, name: &CStr, make: impl Fn(&CStr) -> io::Result<T>) -> io::Result<T> {
    match make(name) {
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {
            parent.remove_file(name)?;
            make(name)
        }
        other => other,
    }
}

/// Gives a new file the owner and attributes of the one it replaces, or else the owner of its
/// directory. Must come before the permissions are set: a change of owner clears the set-user-ID
/// bits.
fn inherit(parent: &Dir, temporary: &CStr, instead: Option<Instead<'_>>, file: Option<&File>) {
    if let Some(owner) = instead.map(|instead| instead.owner).or_else(|| parent.new_owner()) {
        parent.give(temporary, owner);
    }
    if let (Some(instead), Some(file)) = (instead, file) {
        instead.is_shorn.set(!parent.copy_attributes(instead.name, file));
    }
}

/// Renames a temporary file to its target, which must not exist if it is `new`.
pub(super) fn place(parent: &Dir, temporary: &CStr, name: &CStr, new: bool) -> io::Result<()> {
    if new { rename_new(parent, temporary, name) } else { parent.rename(temporary, parent, name) }
}

/// Renames to a name that must not exist. If the system cannot guarantee that, an earlier check has
/// to do.
fn rename_new(parent: &Dir, from: &CStr, to: &CStr) -> io::Result<()> {
    match parent.rename_new(from, to) {
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Err(changed()),
        Err(err) if matches!(err.raw_os_error(), Some(22 | 38 | 95)) => {
            parent.rename(from, parent, to)
        }
        other => other,
    }
}

fn as_io(err: &Error) -> io::Error {
    use std::error::Error as _;
    let said = match err.source() {
        Some(source) => format!("{err}: {source}"),
        None => err.to_string(),
    };
    let is_damage = matches!(err, Error::Damaged { .. });
    io::Error::new(if is_damage { io::ErrorKind::InvalidData } else { io::ErrorKind::Other }, said)
}
