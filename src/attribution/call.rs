//! Logs a call of an agent when it begins, and what it changed when it ends.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use memchr::memmem;

use super::{
    ChangeSummary, InBackground, LogEvent, LogLine, PathSide, SinceCheckpoint, after_edit,
    after_shell, append, append_again, at, recent_bytes, session_name, state_before,
};
use crate::{
    agent::{self, CallIds},
    error::Result,
    fs::{PATH_MAX_BYTES, link_count, stat_path, without_dots},
    ledger::OwnWrite,
    model::{
        Certainty, CheckpointId, Effect, Intent, Kind, Level, Reach, RelPath, Root, ScanScope,
        Target, TargetAction, ToolCall,
    },
    process::Process,
    state::{RootState, hash_name},
};

/// A call that begins.
#[derive(Clone, Copy)]
pub struct Begins<'a> {
    /// Our own files of its root.
    pub place: &'a RootState,
    /// The call.
    pub call: &'a ToolCall,
    /// What it can do.
    pub effect: &'a Effect,
    /// What it can reach.
    pub reach: &'a Reach,
    /// The checkpoint that covers it.
    pub of: CheckpointId,
    /// The directory it is made in.
    pub cwd: &'a Path,
    /// Whether it is an edit, and all it names is there and held: then nothing is looked at.
    pub is_held: bool,
    /// Whether the agent is known to say when it is done.
    pub tells: bool,
    /// Whether the whole root was compared with the checkpoint right before it.
    pub compared: bool,
}

impl Begins<'_> {
    /// Notes it, unless nothing of its root is ever noted.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be written.
    pub fn note(self, process: &Process<'_>) -> Result<()> {
        if self.reach.scope == ScanScope::Named {
            return Ok(());
        }
        append(self.place, &self.lines(process))
    }

    /// Notes it where something was noted before; for a call that is covered, in a root
    /// that was not looked at.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be written.
    pub fn note_again(self, process: &Process<'_>) -> Result<()> {
        append_again(self.place, &self.lines(process))
    }

    /// That it begins, and what was there before it of the files it names.
    fn lines(self, process: &Process<'_>) -> Vec<LogLine> {
        let Self { call, effect, reach, of, cwd, is_held, tells, compared, .. } = self;
        let (at, root) = (at(process), &reach.root);
        // What is held is known by its own name.
        let named = if is_held { held_paths(effect, root, cwd) } else { paths(effect, root, cwd) };
        let looked_at = named.as_deref().filter(|_| !is_held).unwrap_or_default();
        let makes = made_above(looked_at);
        let mut absent = if is_held { Vec::new() } else { absent(effect, root, cwd) };
        let is_new = |path: &&PathBuf| root.relative(path).is_ok() && stat_path(path).is_err();
        absent.extend(looked_at.iter().filter(is_new).cloned());
        let began = LogEvent::Began {
            of: of.to_string(),
            call: call_key(call),
            paths: named.as_deref().map(|paths| texts(root, paths)),
            names: texts(root, &targets(effect, root, cwd)),
            names_all: names_all(effect, cwd),
            makes: texts(root, &makes),
            absent: texts(root, &absent),
            tells,
            compared,
            tool: call.tool.clone(),
            summary: summary(&call.intent),
        };
        let by = session_name(call.context.agent, &call.context.session);
        let there = looked_at.iter().filter_map(|path| {
            let state = Some(state_before(path)?);
            let what = LogEvent::Left { path: PathSide::text_of(root, path)?, state };
            Some(LogLine { at, by: String::new(), what })
        });
        there.chain([LogLine { at, by: by.clone(), what: began }]).collect()
    }
}

/// Notes of a command that runs, covered by the checkpoint `of`, that its agent says when it is done:
/// when it began, that was not known.
///
/// # Errors
///
/// Fails if the log cannot be written.
pub fn note_reports_ends(
    process: &Process<'_>,
    place: &RootState,
    by: &str,
    call: &str,
    of: CheckpointId,
) -> Result<()> {
    let (of, call) = (of.to_string(), call.to_owned());
    let (names, makes, absent) = (Vec::new(), Vec::new(), Vec::new());
    let what = LogEvent::Began {
        of,
        call,
        paths: None,
        names,
        names_all: false,
        makes,
        absent,
        tells: true,
        compared: false,
        tool: String::new(),
        summary: String::new(),
    };
    append_again(place, &[LogLine { at: at(process), by: by.to_owned(), what }])
}

/// A command line is cut there for lists.
const SUMMARY_CHARS_MAX: usize = 300;

/// The beginning of a command line. What an edit is about, its paths say.
fn summary(intent: &Intent) -> String {
    match intent {
        Intent::Run { command, .. } => command.chars().take(SUMMARY_CHARS_MAX).collect(),
        Intent::Unknown(tool) => tool.arguments().chars().take(SUMMARY_CHARS_MAX).collect(),
        Intent::Write(_) | Intent::Edit(_) | Intent::Read => String::new(),
    }
}

/// Of more, the rest is as if the command had not named it.
const NAMES_MAX: usize = 20;

/// The paths that a command names and changes, there or not.
fn targets(effect: &Effect, root: &Root, cwd: &Path) -> Vec<PathBuf> {
    let (Effect::Destroys(finding) | Effect::Unknown(finding)) = effect else { return Vec::new() };
    let exact = finding
        .targets()
        .filter(|it| it.certainty == Certainty::Exact && it.action != TargetAction::Git);
    exact.take(NAMES_MAX).filter_map(|it| physical(&cwd.join(&it.path), root)).collect()
}

/// Whether a command changes no more than what it names. What leads to a file by another name, or into a
/// directory, may change others.
fn names_all(effect: &Effect, cwd: &Path) -> bool {
    let Effect::Destroys(finding) = effect else { return false };
    let can_change = finding.commands.iter().filter(|simple| simple.level != Level::ReadOnly);
    let changes_alone = |target: &Target| match stat_path(&cwd.join(&target.path)) {
        Err(err) => err.kind() == io::ErrorKind::NotFound,
        Ok(stamp) => match stamp.kind() {
            Some(Kind::File) => link_count(&cwd.join(&target.path)) == Some(1),
            Some(Kind::Directory) => {
                matches!(target.action, TargetAction::Delete | TargetAction::Move)
            }
            _ => matches!(target.action, TargetAction::Delete | TargetAction::Move),
        },
    };
    let is_exact = |target: &Target| {
        target.certainty == Certainty::Exact && target.action != TargetAction::Git
    };
    finding.level == Level::Destroys
        && !finding.in_background
        && can_change.clone().all(|simple| !simple.targets.is_empty())
        && finding.targets().count() <= NAMES_MAX
        && finding.targets().all(|target| is_exact(target) && changes_alone(target))
}

/// Of more missing paths outside the root, the rest has no author of record and is kept.
const ABSENT_MAX: usize = 100;

/// What a call may make outside the root: the paths it names where nothing is, and what is missing
/// above them.
fn absent(effect: &Effect, root: &Root, cwd: &Path) -> Vec<PathBuf> {
    let is_made = |target: &&Target| {
        let is_gone = matches!(target.action, TargetAction::Delete | TargetAction::Git);
        target.certainty != Certainty::Glob && !is_gone
    };
    let named: Vec<&Path> = match effect {
        Effect::None => Vec::new(),
        Effect::Touches(paths) => paths.iter().map(PathBuf::as_path).collect(),
        Effect::Destroys(finding) | Effect::Unknown(finding) => {
            finding.targets().filter(is_made).map(|target| Path::new(&target.path)).collect()
        }
    };
    let missing = |path: &Path| {
        let path = cwd.join(path);
        let path = behind(&path).unwrap_or(path);
        let is_outside = root.relative(&path).is_err() && stat_path(&path).is_err();
        is_outside.then(|| physical(&path, root)).flatten()
    };
    let mut absent: Vec<PathBuf> = named.into_iter().filter_map(missing).take(ABSENT_MAX).collect();
    absent.extend(above_while(&absent, |dir| stat_path(dir).is_err()));
    absent.retain(|path| root.relative(path).is_err());
    absent
}

fn texts(root: &Root, paths: &[PathBuf]) -> Vec<String> {
    paths.iter().filter_map(|path| PathSide::text_of(root, path)).collect()
}

/// The directories on the way to some paths that a write has to make: nothing is there, or something
/// else.
fn made_above(paths: &[PathBuf]) -> Vec<PathBuf> {
    above_while(paths, |dir| match stat_path(dir).map(|stamp| stamp.kind()) {
        Ok(Some(Kind::Directory)) => false,
        Ok(Some(Kind::Link)) => !dir.is_dir(),
        Ok(_) | Err(_) => true,
    })
}

/// The directories on the way to some paths, up to one that is there.
fn above_while(paths: &[PathBuf], is_missing: impl Fn(&PathBuf) -> bool) -> Vec<PathBuf> {
    let above =
        |path: &'_ PathBuf| path.ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>();
    let missing = paths.iter().flat_map(|path| above(path).into_iter().take_while(&is_missing));
    missing.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Notes what a call left in a root, and counts what a command did. Adds to `held` what an edit left and
/// is held for the steps of its turn. What it started may go on in the `background`.
///
/// # Errors
///
/// Fails if the root cannot be read, or the log not written.
pub fn ended(
    since: SinceCheckpoint<'_, '_>,
    (call, effect): (&ToolCall, &Effect),
    cwd: &Path,
    background: Option<InBackground>,
    held: &mut Vec<OwnWrite>,
) -> Result<Option<ChangeSummary>> {
    let (name, paths) = (call_key(call), paths(effect, since.root, cwd));
    let place = since.state.root(since.root);
    // An edit that the session makes in another root is noted there. Without an id of its own, an edit may be told of by
    // another name when it has ended.
    let has_begun = || memmem::find(&recent_bytes(&place), name.as_bytes()).is_some();
    let is_elsewhere = || call.id.is_some() && !has_begun();
    if paths.as_ref().is_some_and(|paths| paths.is_empty() || is_elsewhere()) {
        return Ok(None);
    }
    let ended = LogEvent::Ended { call: name.clone(), background };
    let line = LogLine { at: at(since.process), by: since.by.to_owned(), what: ended };
    append(&place, &[line])?;
    match paths {
        Some(paths) => {
            held.extend(after_edit(since, &name, &paths)?);
            Ok(None)
        }
        None => after_shell(since, Some(&[name])),
    }
}

/// The paths that a call changes, there or not, and what symlinks lead to; `None` for one that may change any.
fn paths(effect: &Effect, root: &Root, cwd: &Path) -> Option<Vec<PathBuf>> {
    let named = plain_paths(effect, cwd)?.into_iter().filter_map(|path| physical(&path, root));
    let with_target = |path: PathBuf| {
        let target = behind(&path).and_then(|target| physical(&target, root));
        [Some(path), target].into_iter().flatten()
    };
    Some(named.flat_map(with_target).collect())
}

/// The paths that a call names, if it changes nothing else.
fn plain_paths(effect: &Effect, cwd: &Path) -> Option<Vec<PathBuf>> {
    let Effect::Touches(paths) = effect else { return None };
    let paths = paths.iter().map(|path| cwd.join(path));
    let can_be = |path: &PathBuf| without_dots(path).as_os_str().len() <= PATH_MAX_BYTES;
    Some(paths.filter(can_be).collect())
}

/// The same if all of them are files that are held: there is no symlink, nor on the way.
fn held_paths(effect: &Effect, root: &Root, cwd: &Path) -> Option<Vec<PathBuf>> {
    let real = |path: PathBuf| {
        if root.relative(&path).is_ok() { Some(path) } else { physical(&path, root) }
    };
    Some(plain_paths(effect, cwd)?.into_iter().filter_map(real).collect())
}

/// Where a write to a path goes if a symlink is there: that may be nothing yet.
fn behind(path: &Path) -> Option<PathBuf> {
    /// As many as the system follows.
    const LINKS_MAX: usize = 40;
    let next = |at: &PathBuf| {
        let target = std::fs::read_link(at).ok()?;
        Some(at.parent()?.join(target))
    };
    let last = std::iter::successors(Some(path.to_owned()), next).take(LINKS_MAX).last()?;
    (last != path).then_some(last)
}

/// A path as checkpoints have it, though its directory may be reached through a link or `..`, and
/// may not exist yet.
fn physical(path: &Path, root: &Root) -> Option<PathBuf> {
    if let Ok(below) = root.relative(path) {
        let dirs = below.above();
        let is_link = |dir: RelPath| std::fs::read_link(root.join(&dir)).is_ok();
        if !dirs.into_iter().any(is_link) {
            return Some(root.join(&below));
        }
    }
    let mut above = path.ancestors().skip(1);
    let (dir, real) = above.find_map(|dir| Some((dir, std::fs::canonicalize(dir).ok()?)))?;
    Some(without_dots(&real.join(path.strip_prefix(dir).ok()?)))
}

/// The name of a call in the log: the agent's own id or, if not every event has that, the content.
pub fn call_key(call: &ToolCall) -> String {
    match &call.id {
        Some(id) if agent::by_agent(call.context.agent).call_ids == CallIds::AllOrNone => {
            hash_name(&[id.as_bytes()])
        }
        // The directory that a line runs in is given in one event as an argument, in another as its own.
        Some(_) | None => match call.intent.own_line() {
            Some(line) => hash_name(&[call.tool.as_bytes(), line.as_bytes()]),
            None => hash_name(&[call.tool.as_bytes(), format!("{:?}", call.intent).as_bytes()]),
        },
    }
}
