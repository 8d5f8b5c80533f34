//! Where an event happens: its directory, the settings there, and our own files. Found once per
//! event; no step changes it.

use std::{
    borrow::Cow,
    fs, io,
    path::{Path, PathBuf},
};

use super::payload::INPUT_DEADLINE;
use crate::{
    agent::Dialect,
    config::{self, LoadedSettings},
    error::{Error, Result},
    fs::PathResolver,
    install,
    journal::{self, JournalLine, LineKind},
    ledger::Ledger,
    model::{CallContext, Decision, Settings, ToolCall},
    process::Process,
    reach::Surroundings,
    state::StateDir,
};

/// Where an event happens.
pub(super) struct EventSite<'h, 'p> {
    pub(super) process: &'h Process<'p>,
    pub(super) dialect: &'static Dialect,
    pub(super) context: &'h CallContext,
    /// The directory of the event.
    pub(super) cwd: PathBuf,
    /// The settings there.
    pub(super) loaded: LoadedSettings,
    /// The user's home.
    home: Option<PathBuf>,
    /// Resolves symlinks, and keeps the results for this event.
    pub(super) real: PathResolver,
}

impl<'h, 'p> EventSite<'h, 'p> {
    /// Finds the directory of an event, and reads the settings there.
    pub(super) fn of(
        process: &'h Process<'p>,
        dialect: &'static Dialect,
        context: &'h CallContext,
    ) -> Self {
        Self::by(PathResolver::within(process.cwd.as_deref()), process, dialect, context)
    }

    /// Finds the directory of a call. Looks up the directory of an edited file first: it is most often
    /// below the one the call is made in, and then one lookup answers for both.
    pub(super) fn of_call(
        process: &'h Process<'p>,
        dialect: &'static Dialect,
        call: &'h ToolCall,
    ) -> Self {
        let real = PathResolver::within(process.cwd.as_deref());
        let first = call.intent.edited().and_then(|paths| paths.first());
        if let Some(above) = first.filter(|it| it.is_absolute()).and_then(|it| it.parent()) {
            real.expect(above);
        }
        Self::by(real, process, dialect, &call.context)
    }

    fn by(
        real: PathResolver,
        process: &'h Process<'p>,
        dialect: &'static Dialect,
        context: &'h CallContext,
    ) -> Self {
        let cwd = working_directory(&real, process, context);
        let loaded = config::load_by(process, Some(&cwd), &real);
        let home = process.home();
        Self { process, dialect, context, cwd, loaded, home, real }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.loaded.settings
    }

    /// The settings for a root that the session works in.
    pub(super) fn settings_at(&self, root: &Path) -> Cow<'_, LoadedSettings> {
        if root == self.cwd {
            return Cow::Borrowed(&self.loaded);
        }
        Cow::Owned(config::load(self.process, Some(root)))
    }

    /// Whether another program's hook can rewrite the calls that ours has judged. Reads the agent's
    /// settings files, so the ledger keeps the answer until the next turn.
    pub(super) fn has_other_hooks(&self) -> bool {
        let row = install::ROWS.iter().find(|row| row.agent == self.dialect.name);
        row.is_some_and(|row| !install::other_hooks(row, self.process, &self.cwd).is_empty())
    }

    pub(super) fn surroundings<'s>(
        &'s self,
        state: impl Into<Option<&'s StateDir>>,
    ) -> Surroundings<'s> {
        Surroundings { home: self.home.as_deref(), state: state.into(), real: &self.real }
    }

    /// The agent and the session, by which a ledger is found.
    pub(super) fn session(&self) -> (&'static str, &'h str) {
        (self.dialect.name, &self.context.session.0)
    }

    /// Opens, changes and closes the ledger of the session.
    pub(super) fn with_ledger(&self, act: impl FnOnce(&mut Ledger)) -> Result<()> {
        let (agent, session) = self.session();
        let deadline = self.process.started + INPUT_DEADLINE;
        let mut ledger =
            Ledger::open_by(&self.real, &self.loaded.state()?, agent, session, deadline)?;
        ledger.home(&self.cwd);
        act(&mut ledger);
        ledger.close()
    }

    /// Writes a line to the journal.
    pub(super) fn write_journal(&self, kind: LineKind, text: &str) {
        if let Ok(state) = self.loaded.state() {
            let agent = Some(self.dialect.name.to_owned());
            let root = Some(self.cwd.to_string_lossy().into_owned());
            let text = text.to_owned();
            journal::append(&state, JournalLine { at: self.process.now, kind, agent, root, text });
        }
    }

    /// An event that is only bookkeeping: trouble with it goes to the journal, not to the user.
    pub(super) fn quiet(&self, done: Result<()>) -> Decision {
        if let Err(err) = done {
            self.write_journal(LineKind::Trouble, &said(&err));
        }
        Decision::NEUTRAL
    }
}

/// An error with its cause, on one line.
pub(super) fn said(err: &Error) -> String {
    use std::error::Error as _;
    match err.source() {
        Some(source) => format!("{err}: {source}"),
        None => err.to_string(),
    }
}

/// The directory of a call: the first that the agent names and that exists, otherwise our own.
fn working_directory(real: &PathResolver, process: &Process<'_>, context: &CallContext) -> PathBuf {
    let said = context.cwd.iter().chain(&context.bases);
    let there = said.filter(|dir| dir.is_absolute()).find_map(|dir| directory(real, dir));
    there.or_else(|| process.cwd.clone()).unwrap_or_else(|| PathBuf::from("/"))
}

/// The directory at `dir`; `None` only if it certainly does not exist. If it cannot be resolved for
/// another reason, it is kept: the call is not about the files of another base.
fn directory(real: &PathResolver, dir: &Path) -> Option<PathBuf> {
    use io::ErrorKind::{NotADirectory, NotFound};
    if real.expect(dir) {
        return Some(dir.to_owned());
    }
    let is_plain = |err: io::Error| matches!(err.kind(), NotFound | NotADirectory);
    let real = match real.of(dir) {
        Ok(real) => real,
        Err(err) => return (!is_plain(err)).then(|| dir.to_owned()),
    };
    let is_one = fs::metadata(&real).map_or_else(|err| !is_plain(err), |found| found.is_dir());
    is_one.then_some(real)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_plain_no_sends_a_call_to_another_base() {
        let dir = std::env::temp_dir().join(format!("beforehand-cwd-{}", std::process::id()));
        let (file, ring) = (dir.join("file"), dir.join("ring"));
        fs::create_dir_all(&dir).unwrap();
        fs::File::create(&file).unwrap();
        // A link to itself cannot be resolved, not even by root.
        symlink(&ring, &ring).unwrap();
        let directory = |dir: &Path| directory(&PathResolver::default(), dir);
        assert_eq!(directory(&dir), fs::canonicalize(&dir).ok());
        assert_eq!(directory(&dir.join("absent")), None);
        assert_eq!(directory(&file), None);
        assert_eq!(directory(&file.join("below")), None);
        assert_eq!(directory(&ring), Some(ring.clone()));
        let _gone = [fs::remove_file(&ring), fs::remove_file(&file), fs::remove_dir(&dir)];
    }
}
