//! Files that have no name until they are whole: nobody can find them, remove them or trip over
//! them before, and a kill leaves nothing.
//!
//! Only some file systems have such files, and only on Linux; whoever wants one must be able to do
//! with a temporary name.

use std::{fs::File, io, path::Path};

/// Makes a file in the file system of `dir` that has no name. `None` where there is no such thing, or
/// no way to give it a name later.
#[cfg(target_os = "linux")]
pub(crate) fn create_unnamed(dir: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(dir, flags, Mode::from_raw_mode(0o600)).ok()?);
    place_of(&file).symlink_metadata().is_ok().then_some(file)
}

/// Gives such a file a name that nothing has, and puts it on the disk with that.
#[cfg(target_os = "linux")]
pub(crate) fn name_unnamed(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    linkat(CWD, place_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    file.sync_all()
}

/// Where the system shows an open file. Its name by descriptor alone takes a privilege.
#[cfg(target_os = "linux")]
pub(super) fn place_of(file: &File) -> std::path::PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn create_unnamed(_dir: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn name_unnamed(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn it_is_not_there_before_it_has_its_name_and_takes_nobodys() {
        let dir = std::env::temp_dir().join(format!("turnback-unnamed-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let names = || std::fs::read_dir(&dir).unwrap().count();
        let Some(mut file) = create_unnamed(&dir) else {
            return std::fs::remove_dir(&dir).unwrap();
        };
        file.write_all(b"whole").unwrap();
        assert_eq!(names(), 0);
        name_unnamed(&file, &dir.join("it")).unwrap();
        assert_eq!(std::fs::read(dir.join("it")).unwrap(), b"whole");
        let other = create_unnamed(&dir).unwrap();
        let taken = name_unnamed(&other, &dir.join("it")).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        drop(other);
        assert_eq!(names(), 1);
        crate::fs::remove_tree(&dir).unwrap();
    }
}
