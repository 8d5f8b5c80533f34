//! Whether a program that a hook runs is there, can be run, and is beforehand.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{
    fs::{open_regular, read_small},
    process::Process,
};

/// A registered program, by the file at its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// A beforehand.
    Ours,
    /// Nothing that can be run.
    Missing,
    /// A program without our mark.
    Other,
}

/// Every beforehand has it inside: its slash commands end their arguments with it. The launchers of
/// `hooks/packages` look for the same.
const MARK: &[u8] = b"BEFOREHAND_ARGUMENTS_b7c1e94d";

impl Program {
    /// Looks at a program as an agent would find it.
    pub(super) fn look(process: &Process<'_>, program: &Path) -> Self {
        /// No release comes near it.
        const SIZE_MAX_BYTES: u64 = 256 << 20;
        let Some(real) = Self::real(process, program) else { return Self::Missing };
        let own = process.program().and_then(|own| own.canonicalize());
        if own.is_ok_and(|own| own == real) {
            return Self::Ours;
        }
        let is_small = open_regular(&real).is_ok_and(|(_, stamp)| stamp.size <= SIZE_MAX_BYTES);
        let bytes = is_small.then(|| read_small(&real, SIZE_MAX_BYTES).ok().flatten()).flatten();
        match bytes {
            Some(bytes) if memchr::memmem::find(&bytes, MARK).is_none() => Self::Other,
            // One that may be run and not read is not known to be another.
            Some(_) | None => Self::Ours,
        }
    }

    /// A program that can be run, without links.
    pub(super) fn real(process: &Process<'_>, program: &Path) -> Option<PathBuf> {
        let path = match program.to_str() {
            Some(name) if !name.contains('/') => process.which(name)?,
            Some(_) | None => program.to_owned(),
        };
        let is_file = path.metadata().is_ok_and(|found| found.is_file());
        (path.is_absolute() && is_file && is_executable(&path))
            .then(|| path.canonicalize().ok())
            .flatten()
    }
}

/// Whether a file may be executed.
pub(super) fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}
