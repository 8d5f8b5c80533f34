//! Restores paths outside the root. They are only ever brought back, never removed.

use std::{io, os::unix::ffi::OsStrExt, path::Path};

use super::{
    Apply, changed,
    make::{Instead, place, unfinished},
};
use crate::{
    fs::{Dir, c_name},
    model::{Kind, RelPath},
    plan::OutsideStep,
};

impl Apply<'_> {
    /// Brings back a path outside the root.
    pub(super) fn outside(&mut self, step: &OutsideStep) {
        if let Err(err) = self.try_outside(step) {
            self.miss(&step.path, &err);
        } else {
            self.outcome.done += 1;
        }
    }

    fn try_outside(&self, step: &OutsideStep) -> io::Result<()> {
        let below = step.path.strip_prefix("/").map_err(io::Error::other)?;
        let path = RelPath::from_bytes(below.as_os_str().as_bytes())
            .map_err(|why| io::Error::other(why.to_string()))?;
        if path.is_git_private() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is git's own"));
        }
        let parent = Dir::open(Path::new("/"))?.parent_of(&path)?;
        let name = c_name(path.name())?;
        if step.then.kind == Kind::Directory {
            return match parent.create_dir(&name, step.then.permissions) {
                Err(err) if err.kind() != io::ErrorKind::AlreadyExists => Err(err),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        let seen = parent.stat_child(&name).ok();
        if seen.map(|stamp| stamp.kind()) == Some(Some(Kind::Directory)) {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "a directory is there"));
        }
        if seen != step.seen {
            return Err(changed());
        }
        let temporary = unfinished(self.id, path.as_bytes())?;
        let owner = parent.owner_of(&name).ok();
        let instead = owner.map(|(owner, _)| Instead { name: &name, owner });
        self.make(&parent, &temporary, &step.then, instead)?;
        let placed = parent
            .sync_file_system()
            .and_then(|()| place(&parent, &temporary, &name, seen.is_none()));
        if placed.is_err() {
            let _litter = parent.remove_file(&temporary);
        }
        placed
    }
}
