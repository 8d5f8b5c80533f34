//! A project that is made to be lost: a few files in a git repository of its own, beside a state
//! directory of its own. `doctor` takes and restores real checkpoints of it; nothing of it stays.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::super::restore;
use crate::{
    error::{Error, Result},
    fs::{create_private_dirs, read_small, remove_tree, replace_with},
    journal,
    process::{Exit, Process, ProcessContext, Terminal},
    state::StateDir,
};

/// The command of the pretended call.
pub(super) const COMMAND: &str = "rm -rf docs notes.txt";

/// A file of the project.
struct ScratchFile {
    path: &'static str,
    bytes: &'static [u8],
    permissions: u32,
}

const FILES: [ScratchFile; 4] = [
    ScratchFile { path: "notes.txt", bytes: b"one\ntwo\n", permissions: 0o644 },
    ScratchFile { path: "docs/plan.md", bytes: b"# Plan\r\n", permissions: 0o600 },
    ScratchFile { path: "docs/run.sh", bytes: b"#!/bin/sh\n", permissions: 0o755 },
    ScratchFile { path: "docs/image", bytes: &[0, 255, 13, 10, 0], permissions: 0o640 },
];

/// The project, until this is dropped.
pub(super) struct ScratchProject {
    dir: PathBuf,
}

impl ScratchProject {
    /// Makes it in a new directory below `parent`.
    ///
    /// # Errors
    ///
    /// Fails if something cannot be written there.
    pub(super) fn make(parent: &Path, name: &str) -> Result<Self> {
        let parent = fs::canonicalize(parent).map_err(Error::io("find", parent))?;
        let dir = parent.join(format!("beforehand-doctor-{}-{name}", std::process::id()));
        // Must be new: a directory that is there is not ours.
        let made = fs::DirBuilder::new().mode(0o700).create(&dir);
        made.map_err(Error::io("make", &dir))?;
        let project = Self { dir };
        for file in &FILES {
            let path = project.root().join(file.path);
            create_private_dirs(path.parent().unwrap_or(&path))?;
            replace_with(&path, file.bytes, file.permissions)?;
        }
        // It is a root of its own, wherever it lies.
        let root = project.root();
        let options = gix::create::Options::default();
        gix::create::into(&root, gix::create::Kind::WithWorktree, options)
            .map_err(|err| Error::Repository { path: root, why: err.to_string() })?;
        Ok(project)
    }

    /// The project.
    pub(super) fn root(&self) -> PathBuf {
        self.dir.join("project")
    }

    /// The environment of a hook that is called in it. It keeps no checkpoint among the user's own.
    pub(super) fn env(&self, process: &Process<'_>) -> BTreeMap<OsString, OsString> {
        // The last one is read by the plugins.
        let kept = ["HOME", "PATH", "XDG_CONFIG_HOME", "BEFOREHAND", "BEFOREHAND_BIN"];
        let kept = kept.into_iter().filter_map(|name| Some((name, process.var(name)?.to_owned())));
        let mut env: BTreeMap<OsString, OsString> =
            kept.map(|(name, value)| (name.into(), value)).collect();
        env.insert("BEFOREHAND_HOME".into(), self.dir.join("state").into());
        // Maintenance would go on when the directory is gone.
        env.insert("BEFOREHAND_AUTO_PRUNE".into(), "off".into());
        env
    }

    /// Runs something of ours as a process of its own in the project. Returns its result, and the text
    /// it printed on standard error.
    pub(super) fn inside<T>(
        &self,
        process: &Process<'_>,
        input: &[u8],
        act: impl FnOnce(&mut Process<'_>) -> T,
    ) -> (T, String) {
        let context =
            ProcessContext { cwd: Some(self.root()), env: self.env(process), now: process.now };
        let (result, printed) = context.run(input, Terminal::default(), &(), act);
        (result, printed.stderr)
    }

    /// Removes the files as the pretended call would.
    ///
    /// # Errors
    ///
    /// Fails if one cannot be removed.
    pub(super) fn lose(&self) -> Result<()> {
        let docs = self.root().join("docs");
        remove_tree(&docs).map_err(Error::io("remove", &docs))?;
        let notes = self.root().join("notes.txt");
        fs::remove_file(&notes).map_err(Error::io("remove", &notes))
    }

    /// Restores the files from the only checkpoint, and compares every byte and permission.
    ///
    /// # Errors
    ///
    /// Returns the reason if a single one is not as it was.
    pub(super) fn restore(&self, process: &Process<'_>) -> Result<(), String> {
        let args = restore::RestoreArgs {
            checkpoint: Some("1".to_owned()),
            yes: true,
            ..restore::RestoreArgs::default()
        };
        let (restored, said) = self.inside(process, b"", |inner| restore::run(inner, &args));
        match restored {
            Ok(Exit::Ok) => (),
            Ok(_) => return Err(format!("the restore failed: {}", said.trim())),
            Err(_) => return Err(self.trouble(process, "nothing was held")),
        }
        for file in &FILES {
            let path = self.root().join(file.path);
            let bytes = read_small(&path, 1 << 10).ok().flatten();
            let found = path.symlink_metadata();
            let permissions = found.map_or(0, |found| found.permissions().mode() & 0o7777);
            if bytes.as_deref() != Some(file.bytes) || permissions != file.permissions {
                return Err(format!("`{}` did not come back as it was", file.path));
            }
        }
        Ok(())
    }

    /// The trouble that the hook noted last, or else `fallback`.
    fn trouble(&self, process: &Process<'_>, fallback: &str) -> String {
        let state = StateDir::new(self.dir.join("state"));
        let last = journal::recent_trouble(&state, process.now).pop();
        last.map_or_else(|| fallback.to_owned(), |line| line.text)
    }
}

impl Drop for ScratchProject {
    fn drop(&mut self) {
        /// A hook may have started work in the background, which writes while this removes.
        const TRIES: usize = 20;
        // A directory that stays is beside the state or in a temporary directory, and its name says
        // whose it is.
        let _is_gone = (0..TRIES).any(|_| remove_tree(&self.dir).is_ok());
    }
}
