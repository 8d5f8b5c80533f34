//! `beforehand restore`: plans, shows the plan, asks, and has the engine execute it.

mod brought;
mod choice;
pub(crate) mod conversation;
mod head;
mod interrupted;
mod into;
mod patch;
mod planned;
mod report;
mod selection;
mod server_fork;
mod show;
mod unchanged;

pub(crate) use head::commits;
pub(crate) use interrupted::say_if_interrupted;
pub(crate) use selection::{PlanOffer, Selection, carry_out_selection, part_text};
pub(crate) use unchanged::unheld_lines;

use std::path::PathBuf;

use super::{
    Project, error_text, known_roots, meant_a_path, origin, print_text, recover, say, say_text,
};
use crate::{
    error::{Error, Result},
    fs::without_dots,
    ledger,
    model::{Checkpoint, Completeness, RelPath, Selector, Skipped},
    plan::{Author, Options, Pick, Picked},
    process::{Exit, Process},
    restore::{NamedState, Prepared, Restore, RestoreRequest, RestoreSource, Toward},
    restore_log,
    ui::{self, picker::PickerPlan},
};

use planned::PlannedRestore;
use report::Came;

/// Restore files from a checkpoint.
///
/// Shows what it will do and asks. Whatever it overwrites or removes is held in a checkpoint
/// first, so `beforehand undo` takes it back. Only files that differ are touched.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
#[derive(clap::Args, Clone, Default)]
pub(crate) struct RestoreArgs {
    /// The checkpoint: a number from `beforehand list`, a step of a turn as in 2.3, `latest`, the start of
    /// an id, a message of `create -m`, or a time, which names the last state at or before it
    #[arg(value_name = "CHECKPOINT", required_unless_present_any = ["resume", "abort"])]
    pub(crate) checkpoint: Option<String>,
    /// Finish an interrupted restore
    #[arg(long = "continue", conflicts_with_all = ["checkpoint", "abort", "dry_run"])]
    pub(crate) resume: bool,
    /// Undo an interrupted restore
    #[arg(long, conflicts_with_all = ["checkpoint", "dry_run"])]
    pub(crate) abort: bool,
    /// Show the plan and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Also overwrite changes that were not made by the agent
    #[arg(long)]
    pub(crate) force: bool,
    /// In texts that others have changed since, undo only the agent's changes
    #[arg(long, conflicts_with = "force")]
    pub(crate) merge: bool,
    /// With --merge: where both sides conflict, write both with conflict markers
    #[arg(long, requires = "merge")]
    pub(crate) markers: bool,
    /// Also remove new files that were not made by the agent
    #[arg(long, conflicts_with = "keep_new")]
    pub(crate) exact: bool,
    /// Keep everything that was created since
    #[arg(long)]
    pub(crate) keep_new: bool,
    /// Write the files to this directory instead, which must be empty or new
    #[arg(long, value_name = "DIR", conflicts_with_all = ["force", "exact", "outside"])]
    pub(crate) into: Option<PathBuf>,
    /// Also fork the agent's conversation, cut before that turn, and print the command that resumes it
    #[arg(long, conflicts_with_all = ["into", "json"])]
    pub(crate) conversation: bool,
    /// Fork only the agent's conversation, cut before that turn, and do not change files
    #[arg(long, conflicts_with_all = [
        "conversation", "into", "json", "force", "merge", "exact", "keep_new", "head", "repository",
        "outside", "paths", "patch",
    ])]
    pub(crate) conversation_only: bool,
    /// Also move the branch back, if none of the commits made since was pushed
    #[arg(long, conflicts_with = "into")]
    pub(crate) head: bool,
    /// Also restore the repository: HEAD, branches, stashes, reflogs and configuration
    #[arg(long, conflicts_with = "into")]
    pub(crate) repository: bool,
    /// Do not restore git's index
    #[arg(long)]
    pub(crate) no_index: bool,
    /// Also restore files outside the project
    #[arg(long)]
    pub(crate) outside: bool,
    /// Choose what to restore hunk by hunk, as `git restore -p` does
    #[arg(short, long, conflicts_with_all = ["yes", "json", "into", "conversation", "head", "repository", "resume", "abort"])]
    pub(crate) patch: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The project around this directory, which may be deleted
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Only these files and directories, or paths that match these patterns
    #[arg(last = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

pub(crate) fn run(process: &mut Process<'_>, args: &RestoreArgs) -> Result<Exit> {
    let mut project = Project::open(process, args.root.as_deref())?;
    let Some(given) = &args.checkpoint else {
        let toward = if args.abort { Toward::Before } else { Toward::After };
        return interrupted::run(process, &project, toward, args.json);
    };
    let found = match NamedState::find(process, &project, given) {
        Err(none @ Error::NoSuchCheckpoint { .. }) => {
            project = match elsewhere(process, &project, given, args, none) {
                Err(none @ Error::NoSuchCheckpoint { .. }) => {
                    origin::say_if_known(process, &project);
                    return Err(meant_a_path(&project, given, none, "restore"));
                }
                found => found?,
            };
            NamedState::find(process, &project, given)?
        }
        found => found?,
    };
    origin::say_if_swapped(process, &project);
    project = project.holding(found.contents());
    let (checkpoint, source) = found.into_source();
    let mut adopted = [checkpoint];
    ledger::adopt(&mut adopted, &ledger::uses(&project.state));
    let [checkpoint] = adopted;
    if args.conversation_only {
        return conversation_alone(process, &project, &checkpoint, args.dry_run);
    }
    let (mut yes, mut made) = (args.yes, None);
    if project.is_gone && !args.dry_run && args.into.is_none() {
        let is_part = !args.paths.is_empty();
        match recover::recreate(process, &project, &checkpoint, args.yes, is_part)? {
            // A user who was asked about the whole directory is not asked about what is in it.
            Some(recreated) => {
                made = Some(recreated.root.path().to_owned());
                (project, yes) = (recreated, true);
            }
            None => return Ok(Exit::Failed),
        }
    }
    let done = go_back(process, &project, (&checkpoint, source), args, yes);
    if let (Some(made), true) = (made, done.is_err()) {
        let _has_something = std::fs::remove_dir(made);
    }
    done
}

/// Does what the arguments say in a project that is there, or shows it.
fn go_back(
    process: &mut Process<'_>,
    project: &Project,
    (checkpoint, source): (&Checkpoint, RestoreSource),
    args: &RestoreArgs,
    yes: bool,
) -> Result<Exit> {
    let picked = picked(process, project, &args.paths)?;
    let mut request = RestoreRequest { source, ..request(args, picked) };
    refuse_beyond_files(&request)?;
    // The index of the step's checkpoint is that of an earlier time.
    request.index &= request.step().is_none();
    let restore = Restore { project, checkpoint, request: &request };
    if let Some(dir) = &args.into {
        let how = into::IntoOptions { is_dry: args.dry_run, is_json: args.json };
        return into::run(process, restore, dir, how);
    }
    let consent = Consent { dry_run: args.dry_run, yes, json: args.json, patch: args.patch };
    if args.conversation {
        return with_conversation(process, restore, consent);
    }
    carry_out(process, restore, consent)
}

/// A checkpoint belongs to one root and worktree. The root of one that is not of this root, if it
/// is only written elsewhere; otherwise a refusal that names it.
fn elsewhere(
    process: &Process<'_>,
    project: &Project,
    given: &str,
    args: &RestoreArgs,
    none: Error,
) -> Result<Project> {
    if !matches!(given.parse(), Ok(Selector::Prefix(_))) {
        return Err(none);
    }
    for known in known_roots::known(&project.state)? {
        let Ok(there) = known.project(process) else { continue };
        let Ok(found) = there.find(given) else { continue };
        if args.into.is_some() {
            return Ok(there);
        }
        let (id, place) = (found.id.short(), ui::path(&known.path, project.home.as_deref()));
        return Err(Error::other(
            format!("checkpoint {id} is of {place}, and not of this project"),
            "restore it there, or write its files to another directory with `--into DIR`",
        ));
    }
    Err(none)
}

/// A step between two checkpoints has files alone: the rest is put back by turns.
fn refuse_beyond_files(request: &RestoreRequest) -> Result<()> {
    let Some(step) = request.step() else { return Ok(()) };
    let asked = [
        (request.head, "--head", "no place of HEAD"),
        (request.repository, "--repository", "no repository"),
    ];
    let Some((_, option, lacks)) = asked.into_iter().find(|(is_asked, ..)| *is_asked) else {
        return Ok(());
    };
    let (turn, number) = step.number;
    Err(Error::other(
        format!("step {turn}.{number} has no checkpoint of its own, and so {lacks}"),
        format!("`beforehand restore {turn} {option}` goes back to before the turn"),
    ))
}

/// What the flags of `restore` ask for.
fn request(args: &RestoreArgs, picked: Picked) -> RestoreRequest {
    // Who names it means it.
    let outside = args.outside || picked.names_outside();
    RestoreRequest {
        options: Options {
            exact: args.exact,
            keep_new: args.keep_new,
            force: args.force,
            merge: args.merge,
            unclear: false,
        },
        markers: args.markers,
        index: !args.no_index && !args.patch && args.paths.is_empty(),
        outside,
        head: args.head,
        repository: args.repository,
        ..RestoreRequest::of("restore", RestoreSource::Checkpoint, picked)
    }
}

/// Finds out what a restore would do, as it is shown before a yes without its heading, and does nothing.
///
/// # Errors
///
/// Fails if the checkpoint or the root cannot be read.
pub(crate) fn preview(process: &Process<'_>, restore: Restore<'_>) -> Result<PickerPlan> {
    let Restore { project, checkpoint, .. } = restore;
    if !project.root.path().is_dir() {
        return Ok(PickerPlan { text: recover::words(project, checkpoint, false), conflicts: 0 });
    }
    let prepared = &restore.prepare(process)?;
    let text = show::plan_text(PlannedRestore::of(restore, prepared));
    Ok(PickerPlan { text, conflicts: prepared.plan.conflicts().count() })
}

/// What `restore` without flags asks for, or with `--patch` if only a part is wanted.
pub(crate) fn plain_request(is_part: bool) -> RestoreRequest {
    let args = RestoreArgs { patch: is_part, ..RestoreArgs::default() };
    request(&args, Picked::All)
}

/// What a restore would come to.
pub(crate) struct RestoreSummary {
    /// Whether it would change anything, or keeps something that its user may want changed after
    /// all. What another author has made since is neither.
    pub(crate) is_any: bool,
    /// What is not as it was and stays so, a line each.
    pub(crate) left: Vec<String>,
    /// Whether files are gone, or HEAD lacks commits, that it does not bring back.
    pub(crate) is_lost: bool,
    /// Paths that stay because an interrupted call may have changed them, or somebody else.
    pub(crate) unclear: Vec<PathBuf>,
    /// The command line of such a call, if it has one.
    pub(crate) interrupted: Option<String>,
}

/// Finds out what a restore would come to.
///
/// # Errors
///
/// Fails if the checkpoint or the root cannot be read.
pub(crate) fn effect(process: &Process<'_>, restore: Restore<'_>) -> Result<RestoreSummary> {
    let prepared = &restore.prepare(process)?;
    let is_gone = |out: &Skipped| restore.project.is_gone(out);
    let is_lost = prepared.head.is_lost()
        || !prepared.others_left.is_empty()
        || !prepared.damaged.is_empty()
        || restore.checkpoint.completeness == Completeness::RecordLost
        || !report::barred(&prepared.plan).is_empty()
        || prepared.plan.not_covered.iter().any(is_gone);
    Ok(RestoreSummary {
        is_any: prepared.is_any(),
        left: unchanged::remaining(PlannedRestore::of(restore, prepared)),
        is_lost,
        unclear: report::paths_of(&prepared.plan, |step| {
            step.is_conflict() && step.author == Author::Unclear
        }),
        interrupted: prepared.interrupted.clone(),
    })
}

/// Whether it may be done.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
#[derive(Clone, Copy)]
pub(crate) struct Consent {
    /// Show, and do nothing.
    pub(crate) dry_run: bool,
    /// Do not ask.
    pub(crate) yes: bool,
    /// Show as JSON.
    pub(crate) json: bool,
    /// Let the user choose hunk by hunk, which is the yes to what is chosen.
    pub(crate) patch: bool,
}

/// Restores files as [`carry_out`] does, and forks the conversation of their turn. The fork is
/// made ready first and written last. Where it cannot be made, that is said before anything else,
/// and the files alone are restored, if that is wanted.
pub(crate) fn with_conversation(
    process: &mut Process<'_>,
    restore: Restore<'_>,
    consent: Consent,
) -> Result<Exit> {
    let talk = match conversation::prepare(process, restore.project, restore.checkpoint) {
        Ok(talk) => talk,
        Err(why) => return without_conversation(process, restore, consent, &why),
    };
    let carried = carry(process, restore, consent);
    let carried = carried.inspect_err(|_| {
        say(process, "note: the conversation was not forked");
    })?;
    if !carried.went && !consent.dry_run {
        return Ok(carried.exit);
    }
    let made = if consent.dry_run { None } else { Some(talk.make()) };
    let made = made.transpose().inspect_err(|_| {
        say(process, "note: the files are restored (see above), but:");
    })?;
    print_text(
        process,
        &format!("{}\n", talk.words(made.as_deref(), &restore.project.cd_prefix())),
    )?;
    Ok(carried.exit)
}

/// Forks the conversation of a turn and leaves the files alone. Nothing is overwritten, so nothing is
/// asked.
fn conversation_alone(
    process: &mut Process<'_>,
    project: &Project,
    checkpoint: &Checkpoint,
    dry_run: bool,
) -> Result<Exit> {
    let talk = conversation::prepare(process, project, checkpoint)?;
    let made = if dry_run { None } else { Some(talk.make()?) };
    print_text(process, &format!("{}\n", talk.words(made.as_deref(), &project.cd_prefix())))?;
    Ok(Exit::Ok)
}

/// Restores the files where the conversation cannot come along. What was done is then not all that
/// was asked for, and the exit says so.
fn without_conversation(
    process: &mut Process<'_>,
    restore: Restore<'_>,
    consent: Consent,
    why: &Error,
) -> Result<Exit> {
    let told = error_text(why, ui::Style::stderr(process));
    say_text(process, &told);
    let is_wanted = consent.yes || consent.dry_run;
    if !is_wanted && !ui::ask(process, "Restore the files without the conversation?") {
        say(process, "nothing was changed; --yes restores the files alone");
        return Ok(Exit::Failed);
    }
    let carried = carry(process, restore, consent)?;
    if carried.went {
        say(process, "note: the files are restored, the conversation is as it was");
    }
    Ok(if carried.exit == Exit::Ok { Exit::Conflicts } else { carried.exit })
}

/// Plans a restore, shows it, asks, holds what it overwrites, and does it.
pub(crate) fn carry_out(
    process: &mut Process<'_>,
    restore: Restore<'_>,
    consent: Consent,
) -> Result<Exit> {
    carry(process, restore, consent).map(|carried| carried.exit)
}

/// How a restore ended.
struct Carried {
    exit: Exit,
    /// Whether files are now as the plan says, as far as that could be.
    went: bool,
}

fn carry(process: &mut Process<'_>, restore: Restore<'_>, consent: Consent) -> Result<Carried> {
    let Restore { project, request, .. } = restore;
    if consent.patch {
        patch::refuse_without_terminal(process, request.verb)?;
    }
    let place = project.state.root(&project.root);
    let _alone = if consent.dry_run { None } else { Some(restore_log::lock(&place)?) };
    if let Some(done) = interrupted::before(process, project, request, consent)? {
        return Ok(Carried { exit: done, went: false });
    }
    let mut prepared = restore.prepare(process)?;
    if consent.patch {
        if let Some(exit) = patch::choose(process, restore, &mut prepared)? {
            return Ok(Carried { exit, went: false });
        }
        if consent.dry_run {
            show::plan(process, PlannedRestore::of(restore, &prepared), false)?;
            say(process, "nothing was changed; without --dry-run what is chosen is done");
            return Ok(Carried { exit: Exit::Ok, went: false });
        }
    } else if (consent.dry_run || !consent.yes)
        && let Some(exit) = ask(process, PlannedRestore::of(restore, &prepared), consent)?
    {
        return Ok(Carried { exit, went: exit == Exit::Ok && !consent.dry_run });
    }
    let exit = execute(process, restore, prepared, consent)?;
    Ok(Carried { exit, went: true })
}

/// Does what was agreed to, and says what came of it.
fn execute(
    process: &mut Process<'_>,
    restore: Restore<'_>,
    mut prepared: Prepared,
    consent: Consent,
) -> Result<Exit> {
    let report = restore.execute(process, &mut prepared, !consent.yes)?;
    let shown = PlannedRestore::of(restore, &prepared);
    let came = Came { shown, report, way_back: shown.way_back(), was_shown: !consent.yes };
    report::report(process, came, consent.json)
}

/// Shows a plan and asks. The exit if it is not to be carried out.
fn ask(
    process: &mut Process<'_>,
    shown: PlannedRestore<'_>,
    consent: Consent,
) -> Result<Option<Exit>> {
    let PlannedRestore { restore: Restore { request, .. }, prepared, .. } = shown;
    show::plan(process, shown, consent.json)?;
    if prepared.is_empty() {
        let is_barred = !report::barred(&prepared.plan).is_empty();
        return Ok(Some(match (consent.dry_run, is_barred) {
            (false, true) => Exit::Failed,
            (false, false)
                if !report::conflicts(&prepared.plan).is_empty()
                    || shown.restore.checkpoint.completeness == Completeness::RecordLost =>
            {
                Exit::Conflicts
            }
            (true, _) | (false, false) => Exit::Ok,
        }));
    }
    if consent.dry_run {
        say(process, "nothing was changed; without --dry-run this asks first");
        return Ok(Some(Exit::Ok));
    }
    let what = match prepared.count() {
        0 if prepared.head.moves.is_some() => "the branch".to_owned(),
        0 if prepared.stages() => "the index".to_owned(),
        count => ui::count(count as u64, "path"),
    };
    if ui::ask(process, &format!("{} {what}?", show::capitalized(request.verb))) {
        return Ok(None);
    }
    say(process, "nothing was changed; --yes does it without a question");
    Ok(Some(Exit::Failed))
}

/// The paths the user named, seen from where they are.
pub(crate) fn picked(
    process: &Process<'_>,
    project: &Project,
    paths: &[PathBuf],
) -> Result<Picked> {
    if paths.is_empty() {
        return Ok(Picked::All);
    }
    let cwd = process.cwd.clone().unwrap_or_else(|| project.root.path().to_owned());
    let cwd = std::fs::canonicalize(&cwd).unwrap_or(cwd);
    let mut picked = Vec::new();
    for path in paths {
        let absolute = without_dots(&cwd.join(path));
        if absolute == project.root.path() {
            return Ok(Picked::All);
        }
        picked.push(match project.root.relative(&absolute) {
            Ok(below) => Pick::of(below),
            Err(_) => Pick::outside(RelPath::from_top(&absolute).map_err(|_| {
                let path = ui::escape_path(path).into_owned();
                Error::usage(format!("`{path}` names no file"), "name files or directories")
            })?),
        });
    }
    Ok(Picked::Paths(picked))
}
