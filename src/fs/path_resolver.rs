//! Resolves symlinks in paths and remembers the results, so that no name is looked up twice.
//!
//! Most paths contain no symlink. On Linux one call can prove that for a path and for every
//! directory above it. Other paths, and other systems, are resolved name by name.

use std::{
    cell::RefCell,
    fs::{self, File},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

use super::system::{self, path_only_resolved};

/// The results of earlier lookups. They hold as long as no directory is moved: for one hook call or
/// one command, not for anything that waits in between.
#[derive(Debug, Default)]
pub struct PathResolver {
    /// Directories known to be reached without a symlink, which also holds for those above them.
    plain: RefCell<Vec<PathBuf>>,
    /// Other paths, with what they resolve to.
    resolved: RefCell<Vec<(PathBuf, PathBuf)>>,
}

impl PathResolver {
    /// A resolver that knows the directory of this process, which the system names without symlinks.
    pub fn within(cwd: Option<&Path>) -> Self {
        let plain = cwd.filter(|cwd| is_normal(cwd)).map(Path::to_owned);
        Self { plain: RefCell::new(plain.into_iter().collect()), ..Self::default() }
    }

    /// The path without symlinks, as [`fs::canonicalize`] returns it.
    ///
    /// # Errors
    ///
    /// Fails if the path does not exist or cannot be followed.
    pub fn of(&self, path: &Path) -> io::Result<PathBuf> {
        if self.is_plain(path) {
            return Ok(path.to_owned());
        }
        let known = |(asked, real): &(PathBuf, PathBuf)| (asked == path).then(|| real.clone());
        if let Some(real) = self.resolved.borrow().iter().find_map(known) {
            return Ok(real);
        }
        match self.enter(path) {
            Ok(()) => return Ok(path.to_owned()),
            // No symlink came before the missing name.
            Err(missing @ Errno::NOENT) => return Err(missing.into()),
            Err(_) => (),
        }
        let real = fs::canonicalize(path)?;
        self.resolved.borrow_mut().push((path.to_owned(), real.clone()));
        Ok(real)
    }

    /// Resolves the part of the path that exists and appends the rest.
    pub fn resolve_existing(&self, path: &Path) -> PathBuf {
        for above in path.ancestors() {
            if let Ok(found) = self.of(above) {
                let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
                return if rest.as_os_str().is_empty() { found } else { found.join(rest) };
            }
        }
        path.to_owned()
    }

    /// Resolves the directory part of the path, but not its last name.
    pub fn place(&self, path: &Path) -> PathBuf {
        let above = path.parent().and_then(|above| self.of(above).ok());
        above.zip(path.file_name()).map_or_else(|| path.to_owned(), |(dir, name)| dir.join(name))
    }

    /// Whether the directory `path` is already known to be reached without a symlink.
    pub fn is_plain(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        let leads = |known: &PathBuf| {
            let rest = known.as_os_str().as_bytes().strip_prefix(path);
            rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
        };
        path.len() > 1 && self.plain.borrow().iter().any(leads)
    }

    /// Looks up a directory before paths below or above it are looked up, so that one call covers
    /// them all. Returns whether no symlink leads to it.
    pub fn expect(&self, path: &Path) -> bool {
        self.is_plain(path) || self.enter(path).is_ok()
    }

    /// Opens a file and remembers what that proves about its directory. Follows symlinks like any
    /// other open, unless `flags` say otherwise for the last name.
    ///
    /// # Errors
    ///
    /// Fails as the system call does.
    pub fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
        match open_plain(path, flags | OFlags::CLOEXEC, mode) {
            Ok(file) => {
                if let Some(above) = path.parent().filter(|above| !self.is_plain(above)) {
                    self.plain.borrow_mut().push(above.to_owned());
                }
                Ok(file)
            }
            Err(missing @ Errno::NOENT) => Err(missing.into()),
            Err(_) => Ok(openat(CWD, path, flags | OFlags::CLOEXEC, mode)?.into()),
        }
    }

    /// Opens a directory to prove that no symlink leads to it.
    fn enter(&self, path: &Path) -> Result<(), Errno> {
        open_plain(path, path_only_resolved(), Mode::empty())?;
        self.plain.borrow_mut().push(path.to_owned());
        Ok(())
    }
}

/// Whether a path is absolute and has no empty, `.` or `..` component.
fn is_normal(path: &Path) -> bool {
    let names = path.as_os_str().as_bytes().strip_prefix(b"/");
    names.is_some_and(|names| {
        names.split(|&byte| byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
    })
}

fn open_plain(path: &Path, flags: OFlags, mode: Mode) -> Result<File, Errno> {
    if is_normal(path) { system::open_plain(path, flags, mode) } else { Err(Errno::LOOP) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// `a/b`, a file `a/file`, and links: `link` to `a`, `ring` to itself, `lost` to nothing.
    fn laid_out(name: &str) -> PathBuf {
        let top = fs::canonicalize(std::env::temp_dir()).unwrap();
        let top = top.join(format!("beforehand-real-{name}-{}", std::process::id()));
        fs::create_dir_all(top.join("a/b")).unwrap();
        File::create(top.join("a/file")).unwrap();
        for (text, link) in [("a", "link"), ("ring", "ring"), ("nothing", "lost")] {
            symlink(text, top.join(link)).unwrap();
        }
        top
    }

    fn clear(top: &Path) {
        crate::fs::remove_tree(top).unwrap();
    }

    #[test]
    fn a_path_leads_where_the_system_says() {
        let top = laid_out("says");
        let names = [
            "", "a", "a/b", "a/file", "a/none", "link", "link/b", "link/file", "ring", "lost",
            "a/../a/b", "a/./b", "a//b", "a/b/", "none/x", "link/../link/b", "a/file/x",
        ];
        // One order learns facts early that the other does not have.
        for order in [names.to_vec(), names.iter().rev().copied().collect()] {
            let real = PathResolver::default();
            for name in order {
                let path = top.join(name);
                let (ours, theirs) = (real.of(&path), fs::canonicalize(&path));
                let kinds = [&ours, &theirs].map(|it| it.as_ref().err().map(io::Error::kind));
                assert_eq!(kinds[0], kinds[1], "{name}");
                assert_eq!(ours.ok(), theirs.ok(), "{name}");
            }
        }
        let real = PathResolver::default();
        assert_eq!(real.of(Path::new("/")).unwrap(), Path::new("/"));
        assert_eq!(real.of(Path::new(".")).ok(), fs::canonicalize(".").ok());
        clear(&top);
    }

    #[test]
    fn what_a_link_leads_to_is_never_taken_for_plain() {
        let top = laid_out("plain");
        let real = PathResolver::default();
        assert!(!real.expect(&top.join("link/b")));
        assert!(!real.is_plain(&top));
        assert!(real.open(&top.join("link/file"), OFlags::RDONLY, Mode::empty()).is_ok());
        assert!(!real.is_plain(&top.join("link")) && !real.is_plain(&top));
        assert!(!real.expect(&top.join("a/file")), "no directory");
        clear(&top);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn one_look_answers_for_all_that_is_above() {
        let top = laid_out("above");
        let real = PathResolver::default();
        assert!(real.open(&top.join("a/file"), OFlags::RDONLY, Mode::empty()).is_ok());
        assert!(real.is_plain(&top.join("a")) && real.is_plain(&top));
        for other in ["a/b", "a/fil", "", "a/../a", "a/"] {
            let path = format!("{}/{other}", top.display());
            assert!(!real.is_plain(Path::new(&path)), "{other}");
        }
        assert!(real.expect(&top.join("a/b")));
        clear(&top);
    }

    #[test]
    fn what_is_missing_keeps_its_name() {
        let top = laid_out("missing");
        let real = PathResolver::default();
        assert_eq!(real.resolve_existing(&top.join("link/x/y")), top.join("a/x/y"));
        assert_eq!(real.resolve_existing(&top.join("a/b")), top.join("a/b"));
        clear(&top);
    }
}
