//! Where paths lead when every link on them is followed, without asking about the same names twice.
//!
//! Most paths go through no symlink at all, and where the system can open them on that condition,
//! one call proves it of the path and of every directory above it. Elsewhere, and for the others,
//! it is name by name.

use std::{
    cell::RefCell,
    fs::{self, File},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat, readlinkat},
    io::Errno,
};

/// What one call found out about paths. True for as long as no directory is moved: for one hook
/// call or one command, not for what waits in between.
#[derive(Debug, Default)]
pub struct PathResolver {
    /// Directories that no symlink leads to. None of those above them is one either.
    plain: RefCell<Vec<PathBuf>>,
    /// What others lead to.
    resolved: RefCell<Vec<(PathBuf, PathBuf)>>,
}

impl PathResolver {
    /// The path without symlinks, as [`fs::canonicalize`] has it.
    ///
    /// # Errors
    ///
    /// Fails if there is nothing, or if it cannot be followed.
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
            // No link stood in the way before the name that is missing.
            Err(missing @ Errno::NOENT) => return Err(missing.into()),
            Err(_) => (),
        }
        let real = fs::canonicalize(path)?;
        self.resolved.borrow_mut().push((path.to_owned(), real.clone()));
        Ok(real)
    }

    /// The path without symlinks as far as it exists.
    pub fn resolve_existing(&self, path: &Path) -> PathBuf {
        for above in path.ancestors() {
            if let Ok(found) = self.of(above) {
                let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
                return if rest.as_os_str().is_empty() { found } else { found.join(rest) };
            }
        }
        path.to_owned()
    }

    /// The place with links on the way followed, but not the last name.
    pub fn place(&self, path: &Path) -> PathBuf {
        let above = path.parent().and_then(|above| self.of(above).ok());
        above.zip(path.file_name()).map_or_else(|| path.to_owned(), |(dir, name)| dir.join(name))
    }

    /// Whether no symlink leads to the directory `path`, as far as is known already.
    pub fn is_plain(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        let leads = |known: &PathBuf| {
            let rest = known.as_os_str().as_bytes().strip_prefix(path);
            rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
        };
        path.len() > 1 && self.plain.borrow().iter().any(leads)
    }

    /// Looks at a directory from which others will be asked about: at the deepest first, so that
    /// one call answers for those above it. Tells whether it is one that no symlink leads to.
    pub fn expect(&self, path: &Path) -> bool {
        self.is_plain(path) || self.enter(path).is_ok()
    }

    /// Opens a file whose directory may be asked about next. Follows links like any other open,
    /// unless `flags` say otherwise of its own name.
    ///
    /// # Errors
    ///
    /// As the system says.
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

    /// Opens a directory, to see that no symlink leads there.
    fn enter(&self, path: &Path) -> Result<(), Errno> {
        open_plain(path, path_only(), Mode::empty())?;
        self.plain.borrow_mut().push(path.to_owned());
        Ok(())
    }
}

/// Whether a path could be one without symlinks: absolute, without anything that says nothing.
fn is_normal(path: &Path) -> bool {
    let names = path.as_os_str().as_bytes().strip_prefix(b"/");
    names.is_some_and(|names| {
        names.split(|&byte| byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
    })
}

#[cfg(target_os = "linux")]
fn open_plain(path: &Path, flags: OFlags, mode: Mode) -> Result<File, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    if !is_normal(path) {
        return Err(Errno::LOOP);
    }
    if flags.contains(OFlags::CREATE) {
        return openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS).map(File::from);
    }
    // One call more than with `openat2`: tracers do not show the flags of that call, and would count
    // it as a write.
    let file = File::from(openat(CWD, path, flags, mode)?);
    let resolved = readlinkat(CWD, place_of(&file), Vec::new())?;
    if resolved.as_bytes() == path.as_os_str().as_bytes() { Ok(file) } else { Err(Errno::LOOP) }
}

/// Where the system shows an open file.
#[cfg(target_os = "linux")]
fn place_of(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

#[cfg(target_os = "linux")]
fn path_only() -> OFlags {
    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// Elsewhere nothing can be proven by opening.
#[cfg(not(target_os = "linux"))]
fn open_plain(path: &Path, _: OFlags, _: Mode) -> Result<File, Errno> {
    Err(if is_normal(path) { Errno::NOSYS } else { Errno::LOOP })
}

#[cfg(not(target_os = "linux"))]
fn path_only() -> OFlags {
    OFlags::DIRECTORY | OFlags::CLOEXEC
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// `a/b`, a file `a/file`, and links: `link` to `a`, `ring` to itself, `lost` to nothing.
    fn laid_out(name: &str) -> PathBuf {
        let top = fs::canonicalize(std::env::temp_dir()).unwrap();
        let top = top.join(format!("turnback-real-{name}-{}", std::process::id()));
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
        // In the one order something is known that in the other is not.
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
