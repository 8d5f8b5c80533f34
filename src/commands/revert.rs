//! `beforehand revert`: takes back what one turn did, and keeps what came after it.

use std::{collections::BTreeSet, path::PathBuf};

use super::{
    Project, meant_a_path, origin,
    restore::{Consent, carry_out, picked},
};
use crate::{
    error::{Error, Result},
    ledger::{self, Use},
    model::{Checkpoint, CheckpointId, Reason, Selector},
    plan::{Options, Picked},
    process::{Exit, Process},
    project::{TurnRow, rows},
    restore::{
        Restore, RestoreRequest, RestoreSource, RevertedTurn, find_checkpoint, step_numbers,
    },
};

/// Take back what one turn did, and keep everything done since.
///
/// Shows what it will do and asks. A file that was changed since is merged; where the same lines were
/// changed since, it stays as it is and is named. Whatever is overwritten or removed is held first, so
/// `beforehand undo` takes it back.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
#[derive(clap::Args, Clone, Default)]
pub(crate) struct RevertArgs {
    /// The turn: a number from `beforehand list`, `latest`, or the start of an id
    #[arg(value_name = "TURN")]
    pub(crate) turn: String,
    /// Show the plan and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Where the same lines were changed since, write both sides with conflict markers
    #[arg(long)]
    pub(crate) merge: bool,
    /// Also undo what the turn did outside the project
    #[arg(long)]
    pub(crate) outside: bool,
    /// Choose what to undo hunk by hunk, as `git restore -p` does
    #[arg(short, long, conflicts_with_all = ["yes", "json"])]
    pub(crate) patch: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The project around this directory instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Only these files and directories, or paths that match these patterns
    #[arg(last = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

pub(crate) fn run(process: &mut Process<'_>, args: &RevertArgs) -> Result<Exit> {
    let project = Project::open(process, args.root.as_deref())?.into_present()?;
    let found = find(process, &project, &args.turn);
    if matches!(found, Err(Error::NoSuchCheckpoint { .. })) {
        origin::say_if_known(process, &project);
    }
    let (first, turn) = found?;
    origin::say_if_swapped(process, &project);
    let picked = picked(process, &project, &args.paths)?;
    let request = request(args, picked, turn);
    let restore = Restore { project: &project, checkpoint: &first, request: &request };
    let consent =
        Consent { dry_run: args.dry_run, yes: args.yes, json: args.json, patch: args.patch };
    carry_out(process, restore, consent)
}

/// What `revert` without flags asks for, of the turn that begins with a checkpoint.
///
/// # Errors
///
/// Says why it cannot be reverted.
pub(crate) fn plain_request(
    process: &Process<'_>,
    project: &Project,
    id: CheckpointId,
) -> Result<(Checkpoint, RestoreRequest)> {
    let (first, turn) = find(process, project, &id.to_string())?;
    Ok((first, request(&RevertArgs::default(), Picked::All, turn)))
}

fn request(args: &RevertArgs, picked: Picked, turn: RevertedTurn) -> RestoreRequest {
    // Who names it means it.
    let outside = args.outside || picked.names_outside();
    RestoreRequest {
        options: Options { merge: true, ..Options::default() },
        markers: args.merge,
        outside,
        ..RestoreRequest::of("revert", RestoreSource::Turn(turn), picked)
    }
}

/// The turn the user means, and its first checkpoint.
fn find(
    process: &Process<'_>,
    project: &Project,
    given: &str,
) -> Result<(Checkpoint, RevertedTurn)> {
    if let Ok(Selector::Number(turn, _)) = given.parse()
        && given.contains('.')
    {
        return Err(Error::other(
            format!("`{given}` is a step of a turn, and `revert` takes back whole turns"),
            format!("nothing was changed; `beforehand revert {turn}` takes back the whole turn"),
        ));
    }
    let found = find_checkpoint(project, given);
    let found = found.map_err(|err| meant_a_path(project, given, err, "revert"))?;
    let (id, uses) = (found.id.short(), ledger::uses(&project.state));
    let rows = rows(project.store.list()?, &uses);
    let has = |steps: &[Checkpoint]| steps.iter().position(|step| step.id == found.id);
    let at = rows.iter().enumerate().find_map(|(row, it)| Some((row, has(&it.checkpoints)?)));
    let no_turn = |what: &str| {
        let shown = "nothing was changed; `beforehand list` shows the turns";
        Err(Error::other(format!("checkpoint {id} {what}"), shown))
    };
    let Some((row, step)) = at else {
        return no_turn("was taken before a restore or between turns: it begins no turn");
    };
    let (number, steps) = (row + 1, &rows[row].checkpoints);
    let first = steps[0].clone();
    if step > 0 {
        let step = step_numbers(project, &rows)?.get(&found.id).copied();
        let step = step.map_or_else(|| "in the middle".to_owned(), |step| format!("step {step}"));
        return Err(Error::other(
            format!("checkpoint {id} is {step} of turn {number}"),
            format!("nothing was changed; `beforehand revert {number}` takes back the whole turn"),
        ));
    }
    if first.cause.reason != Reason::Call || first.cause.by.is_none() {
        return no_turn("was taken by hand: it does not begin a turn");
    }
    if !first.completeness.is_whole() {
        return Err(Error::other(
            format!(
                "checkpoint {id} is partial: not all that was there before turn {number} is held"
            ),
            format!(
                "nothing was changed; `beforehand restore {number} -- PATH` brings back what is held"
            ),
        ));
    }
    let session = |row: &TurnRow| {
        row.checkpoints[0].cause.by.as_ref().map(|by| (by.agent, by.session.clone()))
    };
    // What an older turn of a session left open was cut off, or goes on in the background.
    let is_last = !rows[..row].iter().any(|newer| session(newer) == session(&rows[row]));
    let running = ledger::running(&project.state, process.now);
    if is_last && steps.iter().any(|step| running.contains(&step.id)) {
        return Err(Error::other(
            format!(
                "turn {number} is still running, or was interrupted: a command of it has not ended"
            ),
            "nothing was changed; try again when the agent has finished, or use `beforehand undo`",
        ));
    }
    whole(project, &uses, &rows[row], number)
}

/// All of the turn that a row is about, with its first checkpoint: one that a turn of another session
/// found as it was, too, stands in the list as that one's.
fn whole(
    project: &Project,
    uses: &[Use],
    row: &TurnRow,
    number: usize,
) -> Result<(Checkpoint, RevertedTurn)> {
    let turn = row.checkpoints[0].turn_key();
    let is_its = |used: &&Use| turn.is_some() && used.by.turn_key() == turn;
    let found = uses.iter().filter(is_its).map(|used| used.checkpoint);
    let checkpoints: BTreeSet<CheckpointId> =
        row.checkpoints.iter().map(|step| step.id).chain(found).collect();
    let mut all = project.store.list()?;
    all.retain(|one| checkpoints.contains(&one.id));
    let first = all.into_iter().min_by_key(|one| one.sequence);
    let cause = row.checkpoints[0].cause.clone();
    let first = first.map(|first| Checkpoint { cause, ..first });
    let turn = RevertedTurn { number };
    Ok((first.unwrap_or_else(|| row.checkpoints[0].clone()), turn))
}
