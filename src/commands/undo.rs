//! `beforehand undo` and `beforehand redo`: one step back, one step forward.

use std::{collections::BTreeSet, path::Path};

use super::{
    Project, origin,
    restore::{Consent, carry_out, effect},
    say, say_text,
};
use crate::{
    error::{Error, Result},
    ledger::{self, Use},
    model::{By, Checkpoint, Reason, TurnKey},
    plan::{self, Options, Picked},
    process::{Exit, Process},
    restore::{Restore, RestoreRequest, RestoreSource, is_interrupted, retain_steps},
    ui,
};

/// Undo the last turn, or the last restore. Shows what it will do and asks.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    pub(crate) how: UndoOptions,
    /// Undo the last turn of this session: its id, or the first characters of it
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Undo everything that the last session in this project did, or the one in --session
    #[arg(long)]
    pub(crate) whole_session: bool,
    /// Choose what to undo hunk by hunk, as `git restore -p` does
    #[arg(short, long, conflicts_with_all = ["yes", "json"])]
    pub(crate) patch: bool,
    /// A path that was meant, for the line that restores it
    #[arg(value_name = "PATH", hide = true)]
    pub(crate) path: Option<String>,
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
}

pub(crate) fn undo(process: &mut Process<'_>, args: &UndoArgs) -> Result<Exit> {
    let project = Project::open(process, None)?.into_present()?;
    if let Some(given) = &args.path {
        let hint = match project.path_named(given) {
            Some(path) => format!("`beforehand revert 1 -- {path}` takes it back in one file"),
            None => {
                format!("`beforehand revert {}` is about another turn", ui::quote(given.as_bytes()))
            }
        };
        return Err(Error::usage("`undo` takes back the last turn as a whole", hint));
    }
    let mut checkpoints = steps(&project)?;
    ledger::adopt(&mut checkpoints, &ledger::uses(&project.state));
    let (session, force) = (args.session.as_deref(), args.how.force);
    let target = if args.whole_session {
        plan::session_target(&checkpoints, session).cloned()
    } else {
        last_with_effect(process, &project, &checkpoints, session, &args.how)?
    };
    if target.is_none() {
        origin::say_if_known(process, &project);
    }
    let Some(target) = target else {
        say_elsewhere(process, &project, None);
        let was_skipped = plan::undo_target(&checkpoints, &[], session, force).is_some();
        let turn = session.map_or_else(
            || "no turn and no restore".to_owned(),
            |session| format!("no turn of a session `{}…`", ui::escape(session.as_bytes())),
        );
        let none = if was_skipped {
            format!("of {turn} is anything left to undo")
        } else {
            format!("there is {turn} to undo")
        };
        return Err(Error::other(none, "`beforehand list` shows what there is"));
    };
    origin::say_if_swapped(process, &project);
    let of_session = args.whole_session;
    let exit = step(process, &project, &target, ("undo", of_session), (&args.how, args.patch))?;
    // What this brought back in another root is not left to undo there.
    say_elsewhere(process, &project, Some(&target));
    Ok(exit)
}

/// Where the next undo goes back to: before the last turn or restore that changed something, or the
/// last turn of `session`. Says which it passed over. One in which files were lost is passed over
/// only if the user will be asked.
fn last_with_effect(
    process: &mut Process<'_>,
    project: &Project,
    checkpoints: &[Checkpoint],
    session: Option<&str>,
    how: &UndoOptions,
) -> Result<Option<Checkpoint>> {
    let is_interrupted = is_interrupted(project)?;
    let mut passed = Vec::new();
    while let Some(target) = plan::undo_target(checkpoints, &passed, session, how.force).cloned() {
        // What an interrupted restore has done so far is taken back before anything else.
        if is_interrupted {
            return Ok(Some(target));
        }
        let request = request(&target, "undo", how);
        let effect = effect(process, Restore { project, checkpoint: &target, request: &request })?;
        if effect.is_any {
            return Ok(Some(target));
        }
        let what = match target.cause.reason {
            Reason::BeforeRestore => "restore",
            Reason::Call | Reason::Net | Reason::Asked => "turn",
        };
        if how.yes && effect.is_lost {
            return Err(Error::other(
                format!(
                    "the last {what}, after checkpoint {}, cannot be undone: {}",
                    target.id.short(),
                    effect.left.join("; ")
                ),
                "nothing was changed; `beforehand undo` in a terminal shows what would be undone \
                 before it, and asks; `beforehand restore N` goes back as far as you say",
            ));
        }
        let mut told = format!(
            "note: skipped the {what} after checkpoint {}: nothing is left to undo\n",
            target.id.short()
        );
        for line in &effect.left {
            told.push_str(&format!("  {line}\n"));
        }
        if how.dry_run && effect.is_lost {
            told.push_str("  with --yes, undo stops here and changes nothing\n");
        }
        say_text(process, &told);
        passed.push(target.id);
    }
    Ok(None)
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
    let request = request(next, "undo", &UndoOptions::default());
    let restore = Restore { project: &there, checkpoint: next, request: &request };
    Ok(effect(process, restore)?.is_any)
}

/// Every checkpoint but those of restores that were not done.
fn steps(project: &Project) -> Result<Vec<Checkpoint>> {
    let mut checkpoints = project.store.list()?;
    retain_steps(project, &mut checkpoints)?;
    Ok(checkpoints)
}

pub(crate) fn redo(process: &mut Process<'_>, how: &UndoOptions) -> Result<Exit> {
    let project = Project::open(process, None)?.into_present()?;
    let checkpoints = steps(&project)?;
    let target = plan::redo_target(&checkpoints).cloned();
    let target = target.ok_or_else(|| {
        Error::other(
            "there is nothing to redo",
            "only an undo can be redone, and only until something else happens",
        )
    })?;
    step(process, &project, &target, ("redo", false), (how, false))
}

/// A step along the line puts back exactly what was there; what people made or changed since
/// stays.
fn step(
    process: &mut Process<'_>,
    project: &Project,
    target: &Checkpoint,
    (verb, whole_session): (&'static str, bool),
    (how, patch): (&UndoOptions, bool),
) -> Result<Exit> {
    let consent = Consent { dry_run: how.dry_run, yes: how.yes, json: how.json, patch };
    let request = RestoreRequest { index: !patch, whole_session, ..request(target, verb, how) };
    carry_out(process, Restore { project, checkpoint: target, request: &request }, consent)
}

fn request(target: &Checkpoint, verb: &'static str, how: &UndoOptions) -> RestoreRequest {
    let is_restore = target.cause.reason == Reason::BeforeRestore;
    let undone = target.cause.of.filter(|_| is_restore);
    let source = undone.map_or(RestoreSource::Checkpoint, RestoreSource::Undone);
    RestoreRequest {
        options: Options { force: how.force, ..Options::default() },
        index: true,
        outside: true,
        ..RestoreRequest::of(verb, source, Picked::All)
    }
}
