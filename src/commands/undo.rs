//! `beforehand undo` and `beforehand redo`: one step back, one step forward.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    Project, origin,
    restore::{Consent, RestoreSummary, carry_out, effect, picked},
    rows::CheckpointLabel,
    say, say_text,
};
use crate::{
    error::{Error, Result},
    ledger::{self, Use},
    model::{By, Checkpoint, Reason, TurnKey},
    plan::{self, Options, Picked},
    process::{Exit, Process},
    project::{TurnRow, rows},
    restore::{Restore, RestoreRequest, RestoreSource, is_interrupted, retain_steps},
    store::HeadMove,
    ui,
};

/// Undo the last turn, or the last restore. Shows what it will do and asks.
///
/// Branches, tags and stashes that the turn deleted are made again. Commits stay unless `--head` is given, or a
/// question about them is answered with yes.
#[derive(clap::Args, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    pub(crate) how: UndoOptions,
    /// Merge files that others have changed since, where there are no conflicts
    #[arg(long)]
    pub(crate) merge: bool,
    /// Also move the branch back to where it stood before the turn; its commits stay in the reflog
    #[arg(long, conflicts_with = "whole_session")]
    pub(crate) head: bool,
    /// Undo the last turn of this session: its id, or the first characters of it
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Undo everything that the last session in this project did, or the one in --session
    #[arg(long)]
    pub(crate) whole_session: bool,
    /// Choose what to undo hunk by hunk, as `git restore -p` does
    #[arg(short, long, conflicts_with_all = ["yes", "json"])]
    pub(crate) patch: bool,
    /// A path without the dashes, for the line that was meant
    #[arg(value_name = "PATH", hide = true)]
    pub(crate) path: Option<String>,
    /// Undo only the last change of these files and directories, or of paths that match these patterns
    #[arg(last = true, value_name = "PATH", conflicts_with_all = ["head", "whole_session"])]
    pub(crate) paths: Vec<PathBuf>,
}

// How a step along the line is taken. (A doc comment would become the help of both commands.)
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
#[derive(clap::Args, Clone, Default)]
pub(crate) struct UndoOptions {
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Show the plan and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also overwrite changes that were not made by the agent
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The project around this directory instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
}

/// The turn or restore that is undone, and what comes of it.
struct UndoTarget {
    checkpoint: Checkpoint,
    request: RestoreRequest,
    effect: RestoreSummary,
    /// How the turn moved HEAD, if it did; the error says why that cannot be taken back.
    head_move: Option<Result<HeadMove, String>>,
}

pub(crate) fn undo(process: &mut Process<'_>, args: &UndoArgs) -> Result<Exit> {
    let project = Project::open(process, args.how.root.as_deref())?.into_present()?;
    if let Some(given) = &args.path {
        let hint = match project.path_named(given) {
            Some(path) => format!("`beforehand undo -- {path}` takes back its last change"),
            None => {
                format!("`beforehand revert {}` is about another turn", ui::quote(given.as_bytes()))
            }
        };
        return Err(Error::usage("`undo` takes back the last turn as a whole", hint));
    }
    let mut checkpoints = steps(&project)?;
    ledger::adopt(&mut checkpoints, &ledger::uses(&project.state));
    let picked = picked(process, &project, &args.paths)?;
    let session = args.session.as_deref();
    let target = if args.whole_session {
        plan::session_target(&checkpoints, session)
            .map(|first| of_session(process, &project, first, args))
            .transpose()?
    } else {
        last_with_effect(process, &project, &checkpoints, &picked, args)?
    };
    let Some(mut target) = target else {
        origin::say_if_known(process, &project);
        say_elsewhere(process, &project, None);
        return Err(nothing_left(&checkpoints, args));
    };
    origin::say_if_swapped(process, &project);
    let can_ask = process.terminal.stdin
        && !(args.how.yes || args.how.dry_run || args.how.json || args.patch);
    if can_ask && target.effect.is_any {
        ask_about_interrupted(process, &mut target);
    }
    if let Some(Err(why)) = target.head_move.as_ref().filter(|_| !target.effect.is_any) {
        return Err(head_stays(&project, &target, why));
    }
    if args.head && target.head_move.as_ref().is_some_and(Result::is_ok) {
        target.request.head = true;
    } else if let Some(Ok(head_move)) = target.head_move.clone() {
        let question = format!("{}. Move it back too?", head_words(&target, &head_move));
        if can_ask && ui::ask(process, &question) {
            target.request.head = true;
        } else if !target.effect.is_any {
            return Err(only_commits(&project, &target, &head_move));
        }
    }
    let UndoTarget { checkpoint, request, .. } = target;
    let UndoOptions { dry_run, yes, json, .. } = args.how;
    let consent = Consent { dry_run, yes, json, patch: args.patch };
    let restore = Restore { project: &project, checkpoint: &checkpoint, request: &request };
    let exit = carry_out(process, restore, consent)?;
    // What this brought back in another root is not left to undo there.
    say_elsewhere(process, &project, Some(&checkpoint));
    Ok(exit)
}

/// The error where there is no turn and no restore to undo.
fn nothing_left(checkpoints: &[Checkpoint], args: &UndoArgs) -> Error {
    let session = args.session.as_deref();
    let was_skipped = plan::undo_target(checkpoints, &[], session, args.goes_again()).is_some();
    let turn = session.map_or_else(
        || "no turn and no restore".to_owned(),
        |session| format!("no turn of a session `{}…`", ui::escape(session.as_bytes())),
    );
    let none = match (was_skipped, args.paths.is_empty()) {
        (true, true) => format!("of {turn} is anything left to undo"),
        (true, false) => format!("of {turn} is anything left to undo at these paths"),
        (false, _) => format!("there is {turn} to undo"),
    };
    Error::other(none, "`beforehand list` shows what there is")
}

impl UndoArgs {
    /// Whether files that an earlier undo kept because of conflicts are tried again.
    fn goes_again(&self) -> bool {
        self.how.force || self.merge
    }
}

/// Asks about files that an interrupted call may have changed.
fn ask_about_interrupted(process: &mut Process<'_>, target: &mut UndoTarget) {
    let unclear = &target.effect.unclear;
    if unclear.is_empty() || target.request.options.force {
        return;
    }
    let files = ui::count(unclear.len() as u64, "file");
    let call = target.effect.interrupted.as_deref().filter(|call| !call.is_empty());
    let call = call.map_or_else(
        || "a call".to_owned(),
        |call| format!("`{}`", ui::escape(super::rows::on_one_line(call).as_bytes())),
    );
    let named: Vec<_> = unclear.iter().map(|path| ui::escape_path(path).into_owned()).collect();
    let named = ui::at_most(named, 5, |more| format!("{more} more")).join(", ");
    let question = format!(
        "{files} changed while {call} ran and was interrupted: {named}. Take them back too?"
    );
    target.request.options.unclear = ui::ask(process, &question);
}

/// Says which commits a turn made.
fn head_words(target: &UndoTarget, head_move: &HeadMove) -> String {
    let what = target.request.undoes.as_deref().unwrap_or("the turn");
    let commits = ui::count(head_move.count, "commit");
    let branch = short_branch(head_move);
    match head_move.count {
        0 => format!("{what} moved {branch}"),
        _ => format!("{what} made {commits} on {branch}"),
    }
}

fn short_branch(head_move: &HeadMove) -> String {
    let branch = &head_move.branch;
    ui::escape(branch.strip_prefix("refs/heads/").unwrap_or(branch).as_bytes()).into_owned()
}

/// The error for a turn whose only effect is on the branch, where nobody can be asked.
fn only_commits(project: &Project, target: &UndoTarget, head_move: &HeadMove) -> Error {
    let to = head_move.to.get(..7).unwrap_or_default();
    let cd_prefix = project.cd_prefix();
    let branch = short_branch(head_move);
    Error::other(
        format!("{}, and changed nothing else that is left to undo", head_words(target, head_move)),
        format!(
            "nothing was changed; `{cd_prefix}beforehand undo --head` moves {branch} back to {to}; {}",
            further_words(project)
        ),
    )
}

/// The error for a turn whose only effect is on HEAD, and that cannot be taken back.
fn head_stays(project: &Project, target: &UndoTarget, why: &str) -> Error {
    let what = target.request.undoes.as_deref().unwrap_or("the turn");
    let why = ui::escape(why.as_bytes());
    Error::other(
        format!(
            "{what} moved HEAD, and changed nothing else that is left to undo; HEAD stays: {why}"
        ),
        format!("nothing was changed; {}", further_words(project)),
    )
}

/// The command that goes past a turn that stays.
fn further_words(project: &Project) -> String {
    let cd_prefix = project.cd_prefix();
    format!("`{cd_prefix}beforehand restore N` goes back to before turn N of `beforehand list`")
}

/// All that a session did, which begins with a checkpoint.
fn of_session(
    process: &Process<'_>,
    project: &Project,
    first: &Checkpoint,
    args: &UndoArgs,
) -> Result<UndoTarget> {
    let undoes = Some("all that the session did".to_owned());
    let of_turn = request(first, "undo", &args.how, Picked::All);
    let request = RestoreRequest { whole_session: true, undoes, ..of_turn };
    target(process, project, first.clone(), with_args(request, args))
}

/// A request with the flags of the command.
fn with_args(request: RestoreRequest, args: &UndoArgs) -> RestoreRequest {
    RestoreRequest {
        options: Options { merge: args.merge, ..request.options },
        index: request.index && !args.patch && args.paths.is_empty(),
        ..request
    }
}

/// Finds out what a request would come to.
fn target(
    process: &Process<'_>,
    project: &Project,
    checkpoint: Checkpoint,
    request: RestoreRequest,
) -> Result<UndoTarget> {
    let restore = Restore { project, checkpoint: &checkpoint, request: &request };
    let effect = effect(process, restore)?;
    let is_turn = matches!(request.source, RestoreSource::Checkpoint);
    let is_whole = is_turn && request.picked == Picked::All && !request.whole_session;
    let head_move = if is_whole { restore.head_moved_by_turn() } else { None };
    Ok(UndoTarget { checkpoint, request, effect, head_move })
}

/// Where the next undo goes back to: before the last turn or restore with an effect that is still there, or the
/// last turn of a session. Says which it passed over. One in which files were lost is passed over only if the
/// user will be asked.
fn last_with_effect(
    process: &mut Process<'_>,
    project: &Project,
    checkpoints: &[Checkpoint],
    picked: &Picked,
    args: &UndoArgs,
) -> Result<Option<UndoTarget>> {
    let UndoArgs { how, session, .. } = args;
    let is_interrupted = is_interrupted(project)?;
    let turns = rows(project.store.list()?, &ledger::uses(&project.state));
    let mut passed = Vec::new();
    loop {
        let next =
            plan::undo_target(checkpoints, &passed, session.as_deref(), args.goes_again()).cloned();
        let Some(next) = next else { return Ok(None) };
        let of_next = request(&next, "undo", how, picked.clone());
        let row =
            turns.iter().position(|row| row.checkpoints.iter().any(|step| step.id == next.id));
        let undoes = Some(title(process, &next, row.map(|at| (at + 1, &turns[at]))));
        let of_next = with_args(RestoreRequest { undoes, ..of_next }, args);
        let found = target(process, project, next, of_next)?;
        // What an interrupted restore has done so far is taken back before anything else.
        if is_interrupted || found.effect.is_any || found.head_move.is_some() {
            return Ok(Some(found));
        }
        let what = found.request.undoes.as_deref().unwrap_or("the turn");
        let id = found.checkpoint.id;
        if how.yes && found.effect.is_lost {
            let left = found.effect.left.join("; ");
            return Err(Error::other(
                format!("{what}, after checkpoint {}, cannot be undone: {left}", id.short()),
                "nothing was changed; `beforehand undo` in a terminal shows what would be undone \
                 before it, and asks; `beforehand restore N` goes back as far as you say",
            ));
        }
        // Turns that did not touch the named paths are not worth a word.
        if *picked == Picked::All {
            let mut told = format!("note: skipped {what}: nothing is left to undo\n");
            for line in &found.effect.left {
                told.push_str(&format!("  {line}\n"));
            }
            if how.dry_run && found.effect.is_lost {
                told.push_str("  with --yes, undo stops here and changes nothing\n");
            }
            say_text(process, &told);
        }
        passed.push(id);
    }
}

/// The turn or restore after a checkpoint, in words: `turn 2, "fix the parser" (5 minutes ago)`. Escaped. `row` is
/// the turn in the list, with its number.
fn title(process: &Process<'_>, checkpoint: &Checkpoint, row: Option<(usize, &TurnRow)>) -> String {
    let clock = ui::Clock::local(process.now);
    if checkpoint.cause.reason == Reason::BeforeRestore {
        let verb = checkpoint.cause.tool.as_deref().unwrap_or("restore");
        let verb = verb.split(' ').next().unwrap_or(verb);
        let when = clock.when(checkpoint.taken_at);
        return format!("the {} ({when})", ui::escape(verb.as_bytes()));
    }
    let (name, label) = match row {
        Some((number, row)) => (format!("turn {number}"), row.label(0)),
        None => ("a turn".to_owned(), CheckpointLabel::alone(checkpoint)),
    };
    let (words, when) = (label.turn(), clock.when(label.at));
    format!("{name}, \"{}\" ({when})", ui::escape(words.as_bytes()))
}

/// Says in which other roots an undo would take back something of the turn, or else of the last one of this root:
/// each goes back by itself.
fn say_elsewhere(process: &mut Process<'_>, project: &Project, target: Option<&Checkpoint>) {
    let uses = ledger::uses(&project.state);
    let last = || uses.iter().find(|used| used.root == project.root.path())?.by.turn_key();
    let turn = target.map_or_else(last, Checkpoint::turn_key);
    let Some(turn) = turn else { return };
    let is_same = |by: &By| by.turn_key().as_ref() == Some(&turn);
    let same = uses.iter().filter(|used| is_same(&used.by) && used.root != project.root.path());
    let roots: BTreeSet<&Path> = same.map(|used| used.root.as_path()).collect();
    let is_next = |root: &&Path| is_next_in(process, root, &uses, &turn).unwrap_or_default();
    let roots: Vec<&Path> = roots.into_iter().filter(is_next).collect();
    for root in roots {
        let root = ui::path(root, project.home.as_deref());
        let note = format!("note: the turn also changed {root}; run `beforehand undo` there");
        say(process, &note);
    }
}

/// Whether an undo in a root would take back something of a turn. One that is gone comes back with what it lies in.
fn is_next_in(process: &Process<'_>, root: &Path, uses: &[Use], turn: &TurnKey) -> Result<bool> {
    let there = Project::open(process, Some(root))?;
    if there.is_gone {
        return Ok(false);
    }
    let mut checkpoints = steps(&there)?;
    ledger::adopt(&mut checkpoints, uses);
    let next = plan::undo_target(&checkpoints, &[], None, false);
    let Some(next) = next.filter(|next| next.turn_key().as_ref() == Some(turn)) else {
        return Ok(false);
    };
    let request = request(next, "undo", &UndoOptions::default(), Picked::All);
    let restore = Restore { project: &there, checkpoint: next, request: &request };
    Ok(effect(process, restore)?.is_any)
}

/// Every checkpoint but those of restores that were not done.
fn steps(project: &Project) -> Result<Vec<Checkpoint>> {
    let mut checkpoints = project.store.list()?;
    retain_steps(project, &mut checkpoints)?;
    Ok(checkpoints)
}

/// Puts back exactly the files that the last undo took away. Files that people made or changed since stay.
pub(crate) fn redo(process: &mut Process<'_>, how: &UndoOptions) -> Result<Exit> {
    let project = Project::open(process, how.root.as_deref())?.into_present()?;
    let checkpoints = steps(&project)?;
    let target = plan::redo_target(&checkpoints).cloned();
    let target = target.ok_or_else(|| {
        Error::other(
            "there is nothing to redo",
            "only an undo can be redone, and only until something else happens",
        )
    })?;
    let UndoOptions { dry_run, yes, json, .. } = *how;
    let consent = Consent { dry_run, yes, json, patch: false };
    let request = request(&target, "redo", how, Picked::All);
    carry_out(
        process,
        Restore { project: &project, checkpoint: &target, request: &request },
        consent,
    )
}

fn request(
    target: &Checkpoint,
    verb: &'static str,
    how: &UndoOptions,
    picked: Picked,
) -> RestoreRequest {
    let is_restore = target.cause.reason == Reason::BeforeRestore;
    let undone = target.cause.of.filter(|_| is_restore);
    let source = undone.map_or(RestoreSource::Checkpoint, RestoreSource::Undone);
    RestoreRequest {
        options: Options { force: how.force, ..Options::default() },
        index: true,
        outside: true,
        ..RestoreRequest::of(verb, source, picked)
    }
}
