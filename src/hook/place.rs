//! The directory of a call, what judging its command line needs to know there, and what it can reach.

use std::{
    borrow::Cow,
    fs, io,
    path::{Path, PathBuf},
};

use super::Hook;
use crate::{
    agent::Dialect,
    config::LoadedSettings,
    error::{Error, Result},
    fs::PathResolver,
    ledger::Ledger,
    model::{CallContext, Effect, Finding, Intent, Level, Reach, ToolCall},
    process::Process,
    reach::{self, Surroundings},
    shell,
    snapshot::LastCheckpoint,
    state::StateDir,
    transcript, ui,
};

/// The directory a call is made in: what the agent says if that is somewhere, else our own.
pub(super) fn working_directory(process: &Process<'_>, context: &CallContext) -> PathBuf {
    working_directory_by(&PathResolver::default(), process, context)
}

/// The same with a resolver that the caller shares.
pub(super) fn working_directory_by(
    real: &PathResolver,
    process: &Process<'_>,
    context: &CallContext,
) -> PathBuf {
    let said = context.cwd.iter().chain(&context.bases);
    let there = said.filter(|dir| dir.is_absolute()).find_map(|dir| directory(real, dir));
    there.or_else(|| process.cwd.clone()).unwrap_or_else(|| PathBuf::from("/"))
}

/// The directory at `dir`, or what may be one: only a plain "no" sends us on to another base,
/// whose files the call is not about.
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

/// What a call can do to files. A line that looks harmless is not, once an earlier line of the same
/// shell may have given its words another meaning.
pub(super) fn effect_of(
    process: &Process<'_>,
    loaded: &mut LoadedSettings,
    real: &PathResolver,
    dialect: &Dialect,
    call: &ToolCall,
) -> Effect {
    let scope = shell_scope(process, loaded);
    let effect = shell::effect(&call.intent, &scope);
    let Intent::Run { command, language } = &call.intent else { return effect };
    let is_trusted = match &effect {
        Effect::None | Effect::Touches(_) => dialect.keeps_shell,
        Effect::Destroys(_) | Effect::Unknown(_) => false,
    };
    let has_changed = || {
        let (state, session) = (loaded.state().ok()?, &call.context.session.0);
        Ledger::peek(real, &state, dialect.name, session).map(|it| it.has_changed_shell())
    };
    if is_trusted && has_changed() == Some(true) {
        let finding = shell::classify(command, *language, &scope);
        return Effect::Unknown(Finding { level: Level::Unknown, ..finding });
    }
    effect
}

/// A call with its directory, if the agent tells that to no hook.
pub(super) fn placed(call: &ToolCall) -> Cow<'_, ToolCall> {
    let Intent::Run { .. } = call.intent else { return Cow::Borrowed(call) };
    match transcript::workdir(call) {
        Some(dir) => {
            let intent = call.intent.clone().run_in(&dir);
            Cow::Owned(ToolCall { intent, ..call.clone() })
        }
        None => Cow::Borrowed(call),
    }
}

/// What judging needs to know. A pattern that is refused is noted, and switches nothing else off.
pub(super) fn shell_scope(
    process: &Process<'_>,
    loaded: &mut LoadedSettings,
) -> shell::ShellContext {
    let home = process.var("HOME").and_then(|home| home.to_str()).map(str::to_owned);
    let wanted = &loaded.settings.shell;
    let rules = shell::Patterns::parse(&wanted.always, &wanted.never).or_else(|why| {
        loaded.notes.push(format!("settings: `shell`: {why}; `shell.never` is left out"));
        shell::Patterns::parse(&wanted.always, &[])
    });
    shell::ShellContext { home, rules: rules.unwrap_or_default() }
}

impl Hook<'_, '_> {
    /// The directory the session works in: where it was first seen, if the call is made below that.
    pub(super) fn start(&self, home: &Path) -> PathBuf {
        if self.cwd.starts_with(home) { home.to_owned() } else { self.cwd.clone() }
    }

    /// What the call reaches, from the directory that its session works in.
    pub(super) fn reach(&mut self, start: &Path, state: &StateDir) -> Result<Reach> {
        let around = self.around.take().filter(|_| start == self.cwd);
        let surroundings = self.surroundings(state);
        let (context, what) = (&self.call.context, (&self.call.intent, &self.effect));
        if let Some(around) = around {
            return Ok(reach::reach_in(around, start, context, what, &surroundings));
        }
        let found = reach::reach(start, context, what, &surroundings)
            .or_else(|| reach::reach(&self.cwd, context, what, &surroundings));
        found.ok_or_else(|| Error::Other {
            message: format!("cannot find the directory `{}`", ui::escape_path(&self.cwd)),
            hint: None,
        })
    }

    /// What the call reaches of repositories below the root that the root's checkpoint leaves out:
    /// each is a root of its own, as a linked worktree in an ignored directory is.
    pub(super) fn within(&self, outer: &Reach, state: &StateDir) -> Vec<Reach> {
        let surroundings = self.surroundings(state);
        let (context, effect) = (&self.call.context, &self.effect);
        let found = reach::within(&self.cwd, &self.call.intent, effect, &outer.root, &surroundings);
        if found.is_empty() {
            return Vec::new();
        }
        let held = LastCheckpoint::of(&outer.root, &state.root(&outer.root));
        let left_out = found.into_iter().filter(|(root, _)| !held.has_directory(root.path()));
        let reach = |around| {
            let what = (&self.call.intent, effect);
            let mut reach = reach::reach_in(around, &self.cwd, context, what, &surroundings);
            // The outer root has what is elsewhere.
            reach.victims.retain(|place| place.starts_with(reach.root.path()));
            reach
        };
        left_out.map(reach).collect()
    }

    pub(super) fn surroundings<'s>(&'s self, state: &'s StateDir) -> Surroundings<'s> {
        Surroundings { home: self.home.as_deref(), state, real: &self.real }
    }
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
