//! Removes what is in a directory, from open directories and never through a symlink, into another
//! file system, or what has changed since it was held.

use std::{
    ffi::CStr,
    io,
    path::{Path, PathBuf},
};

use crate::{
    fs::Dir,
    model::{Kind, RelPath, Stamp},
};

/// What stays where it is.
pub(crate) type Left = Vec<PathBuf>;
/// Whether something goes: by its path, relative to the top, and what the system says of it.
pub(crate) type Goes<'a> = dyn Fn(&RelPath, &Stamp) -> bool + 'a;

/// What [`clear`] would leave.
///
/// # Errors
///
/// Fails if something cannot be listed.
pub(crate) fn would_leave(top: &Path, goes: &Goes<'_>) -> io::Result<Left> {
    walk(top, goes, true)
}

/// Deeper than any path the system takes.
const DEPTH_MAX: usize = 2_000;

/// Removes all that is below `top` and that `goes` says yes to, directories when they are empty. Returns
/// what stays, relative to it; `top` itself stays in any case.
///
/// # Errors
///
/// Fails if something cannot be listed or removed.
pub(crate) fn clear(top: &Path, goes: &Goes<'_>) -> io::Result<Left> {
    walk(top, goes, false)
}

fn walk(top: &Path, goes: &Goes<'_>, is_dry: bool) -> io::Result<Left> {
    let dir = Dir::open(top)?;
    let (_, device) = dir.stat()?;
    let mut clear = ClearWalk { device, goes, is_dry, left: Vec::new() };
    clear.below(&dir, None, 0)?;
    Ok(clear.left)
}

struct ClearWalk<'a> {
    device: u64,
    goes: &'a Goes<'a>,
    is_dry: bool,
    left: Left,
}

impl ClearWalk<'_> {
    fn below(&mut self, dir: &Dir, above: Option<&RelPath>, depth: usize) -> io::Result<()> {
        let mut names = Vec::new();
        dir.listable()?.list(|listed| names.push(listed.name))?;
        for name in names {
            let mut path = above.map_or_else(Vec::new, |above| [above.as_bytes(), b"/"].concat());
            path.extend_from_slice(name.to_bytes());
            let path = RelPath::from_bytes(&path).map_err(|_| io::ErrorKind::InvalidInput)?;
            self.one(dir, &name, &path, depth)?;
        }
        Ok(())
    }

    fn one(&mut self, dir: &Dir, name: &CStr, path: &RelPath, depth: usize) -> io::Result<()> {
        let stamp = dir.stat_child(name)?;
        if !(self.goes)(path, &stamp) {
            self.left.push(path.as_path().to_owned());
            return Ok(());
        }
        if stamp.kind() != Some(Kind::Directory) {
            return if self.is_dry { Ok(()) } else { dir.remove_file(name) };
        }
        if stamp.permissions() & 0o700 != 0o700 && !self.is_dry {
            dir.set_permissions(name, Kind::Directory, stamp.permissions() | 0o700)?;
        }
        let inner = dir.open_child(name)?;
        if inner.stat()?.1 != self.device || depth > DEPTH_MAX {
            self.left.push(path.as_path().to_owned());
            return Ok(());
        }
        self.below(&inner, Some(path), depth + 1)?;
        if self.is_dry {
            return Ok(());
        }
        match dir.remove_dir(name) {
            // What stays in it has been named.
            Err(err) if err.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn what_may_go_goes_and_nothing_behind_a_symlink_does() {
        let top = std::env::temp_dir().join(format!("beforehand-clear-{}", std::process::id()));
        let (dir, outside) = (top.join("dir"), top.join("outside"));
        for path in [&dir.join("a/b"), &dir.join("closed"), &outside] {
            fs::create_dir_all(path).unwrap();
        }
        for path in [dir.join("a/b/c"), dir.join("a/keep"), outside.join("d"), dir.join("closed/x")]
        {
            crate::fs::replace(&path, b"x").unwrap();
        }
        symlink(&outside, dir.join("link")).unwrap();
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o500);
        fs::set_permissions(dir.join("closed"), closed).unwrap();
        let stays = |path: &RelPath, _: &Stamp| path.as_bytes() != b"a/keep";
        assert_eq!(would_leave(&dir, &stays).unwrap(), [Path::new("a/keep")]);
        assert_eq!(crate::fs::names_in(&dir).len(), 3, "nothing has gone yet");
        let left = clear(&dir, &stays).unwrap();
        assert_eq!(left, [Path::new("a/keep")]);
        assert_eq!(crate::fs::names_in(&dir), ["a"]);
        assert!(outside.join("d").is_file());
        crate::fs::remove_tree(&top).unwrap();
    }
}
