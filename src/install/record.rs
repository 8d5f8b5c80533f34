//! What `install` wrote, so that `uninstall` can put back exact bytes: `installed.json` and the
//! backups beside it, in the state directory.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    error::{Error, Result},
    fs::{create_private_dirs, read_small, remove_if_there, remove_left_beside, replace_synced},
    state::{StateDir, hash_name, hex, version_of},
};

use super::program::{OurPrograms, ProgramPath};

const SIZE_MAX_BYTES: u64 = 4 << 20;
const VERSION: u32 = 1;

/// Everything that `install` wrote and `uninstall` did not take back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct InstallRecord {
    #[serde(default = "first_version")]
    version: u32,
    files: Vec<WrittenFile>,
    /// Directories that were made for these files.
    dirs: Vec<PathBuf>,
    /// The programs that were written into these files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    programs: Vec<PathBuf>,
}

impl Default for InstallRecord {
    fn default() -> Self {
        let (files, dirs, programs) = (Vec::new(), Vec::new(), Vec::new());
        Self { version: VERSION, files, dirs, programs }
    }
}

/// The first records had no version in them.
fn first_version() -> u32 {
    1
}

/// One file that was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WrittenFile {
    path: PathBuf,
    /// The SHA-256 of what was written.
    wrote: String,
    /// The name of the backup; `None` if there was no file.
    backup: Option<String>,
}

/// What a file was before we came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PriorFile {
    /// There is no word of it, or the file has changed since.
    Unknown,
    /// It was not there.
    Missing,
    /// It had these bytes.
    Bytes(Vec<u8>),
}

impl InstallRecord {
    /// Reads it. One that cannot be read is as good as none: files are then taken apart by what is
    /// in them.
    pub(super) fn open(state: &StateDir) -> Self {
        let bytes = read_small(&state.installed(), SIZE_MAX_BYTES).ok().flatten();
        let bytes = bytes.unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_else(|_| {
            let version = version_of(&bytes).unwrap_or(VERSION);
            Self { version, ..Self::default() }
        })
    }

    /// The same, to write it again.
    ///
    /// # Errors
    ///
    /// [`Error::FormatTooNew`] if a newer beforehand wrote it: what we do not know in it would be
    /// lost.
    pub(super) fn open_to_write(state: &StateDir) -> Result<Self> {
        let record = Self::open(state);
        if record.version > VERSION {
            let what = state.installed().display().to_string();
            return Err(Error::FormatTooNew { what, found: record.version, known: VERSION });
        }
        Ok(record)
    }

    /// What `path` was before us, if it still is what we wrote.
    pub(super) fn before(&self, state: &StateDir, path: &Path, now: &[u8]) -> PriorFile {
        let is_it = |file: &&WrittenFile| file.path == path && file.wrote == digest(now);
        match self.files.iter().find(is_it).map(|file| &file.backup) {
            None => PriorFile::Unknown,
            Some(None) => PriorFile::Missing,
            Some(Some(name)) => {
                let bytes = read_small(&state.backups().join(name), SIZE_MAX_BYTES);
                bytes.ok().flatten().map_or(PriorFile::Unknown, PriorFile::Bytes)
            }
        }
    }

    /// Whether we wrote into this file.
    pub(super) fn wrote(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file.path == path)
    }

    /// The files that we wrote.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| &*file.path)
    }

    /// Whether we made this file.
    pub(super) fn made(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file.path == path && file.backup.is_none())
    }

    /// The programs that are ours, by what was written.
    pub(super) fn ours(&self) -> OurPrograms {
        OurPrograms::new(
            self.programs.iter().filter_map(|path| ProgramPath::new(path).ok()).collect(),
        )
    }

    /// Writes down that a program is about to be written into files, with the next [`note`].
    ///
    /// [`note`]: Self::note
    pub(super) fn note_program(&mut self, program: &ProgramPath) {
        let is_known = self.programs.iter().any(|known| known == program.path());
        if !is_known && !program.is_on_path() {
            self.programs.push(program.path().to_owned());
        }
    }

    /// Writes down what is about to be written to `path`, and what was there.
    pub(super) fn note(
        &mut self,
        state: &StateDir,
        path: &Path,
        new: &[u8],
        before: Option<&[u8]>,
    ) -> Result<()> {
        let backup = match before {
            None => None,
            Some(bytes) => {
                let name = backup_name(path);
                self.make_dirs(&state.backups())?;
                replace_synced(&state.backups().join(&name), bytes)?;
                Some(name)
            }
        };
        // Before they are made: killed in between, the next one knows that they are ours.
        self.dirs.extend(path.parent().map(missing).unwrap_or_default());
        self.files.retain(|file| file.path != path);
        self.files.push(WrittenFile { path: path.to_owned(), wrote: digest(new), backup });
        self.save(state)
    }

    /// Makes a directory, and remembers which were not there.
    pub(super) fn make_dirs(&mut self, dir: &Path) -> Result<()> {
        self.dirs.extend(missing(dir));
        create_private_dirs(dir)
    }

    /// Forgets `path` and drops its backup: nothing of ours is there any more.
    pub(super) fn forget(&mut self, state: &StateDir, path: &Path) {
        // One that was killed may have made the backup and no note of it.
        let backup = state.backups().join(backup_name(path));
        let _left = fs::remove_file(&backup);
        remove_left_beside(&backup);
        self.files.retain(|file| file.path != path);
    }

    /// Forgets what was written down since `before`, but for directories, which may be in use.
    pub(super) fn back_to(&mut self, state: &StateDir, before: Self) {
        let is_known = |path: &Path| before.files.iter().any(|file| file.path == path);
        let new = self.files.iter().map(|file| file.path.clone()).filter(|path| !is_known(path));
        for path in new.collect::<Vec<_>>() {
            self.forget(state, &path);
        }
        self.files = before.files;
    }

    /// Writes it, or removes it and every directory that was made and is empty again.
    pub(super) fn close(mut self, state: &StateDir) -> Result<()> {
        remove_left_beside(&state.installed());
        if !self.files.is_empty() {
            self.clear_dirs();
            return self.save(state);
        }
        remove_if_there(&state.installed())?;
        self.clear_dirs();
        Ok(())
    }

    fn clear_dirs(&mut self) {
        self.dirs.sort();
        self.dirs.dedup();
        self.dirs.sort_by_key(|dir| std::cmp::Reverse(dir.as_os_str().len()));
        // One that is not empty stays, and so does what is above it.
        self.dirs.retain(|dir| fs::remove_dir(dir).is_err() && dir.is_dir());
    }

    fn save(&mut self, state: &StateDir) -> Result<()> {
        self.make_dirs(state.dir())?;
        let bytes = serde_json::to_vec_pretty(self).expect("a record always serializes");
        replace_synced(&state.installed(), &bytes)
    }
}

/// The directories on the way to `dir`, and itself, that are not there.
fn missing(dir: &Path) -> Vec<PathBuf> {
    let missing = dir.ancestors().take_while(|dir| dir.symlink_metadata().is_err());
    missing.map(Path::to_owned).collect()
}

/// Unlike any other, and still readable.
fn backup_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{}-{name}", hash_name(&[path.as_os_str().as_encoded_bytes()]))
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
