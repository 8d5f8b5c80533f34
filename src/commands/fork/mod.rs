//! `beforehand fork`: another directory in which to try again from before a turn.

mod drop;
mod keep;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    Project, error_text, json_time, origin, print_json, print_text,
    restore::conversation::{self, ConversationFork},
    rows,
    rows::skipped_json,
    say, say_text,
};
use crate::{
    error::{Error, Result},
    fork::{ForkMade, ForkPlan, default_dir, place},
    forked::{self, ForkEntry},
    ledger,
    model::Checkpoint,
    process::{Exit, Process},
    restore::find_checkpoint,
    state::RootState,
    ui::{self, Clock},
};

/// So many of what is not held are named.
const NAMED_MAX: usize = 10;

/// Try again from before a turn, in a directory of its own.
///
/// Makes a directory with the files as they were before the turn, with a repository of its own, and a fork of
/// the conversation, and prints the command that goes on there. The project is only read. The directory
/// is NAME-fork-N beside the project, unless you name one.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
#[derive(clap::Args, Clone, Default)]
pub(crate) struct ForkArgs {
    /// The turn: a number from `beforehand list`, `latest`, or the start of an id
    #[arg(value_name = "TURN", required_unless_present_any = ["list", "drop", "keep"])]
    pub(crate) turn: Option<String>,
    /// The directory to create; an empty one may exist [default: NAME-fork-N beside the project]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// List the forks of this project
    #[arg(long, conflicts_with_all = ["turn", "drop", "keep", "dry_run", "yes"])]
    pub(crate) list: bool,
    /// Merge the changes of a fork into this project, or from inside a fork into its project
    #[arg(long, value_name = "FORK", num_args = 0..=1, conflicts_with_all = ["turn", "drop"])]
    pub(crate) keep: Option<Vec<PathBuf>>,
    /// With --keep: where both sides of a text conflict, write both with conflict markers
    #[arg(long, requires = "keep")]
    pub(crate) merge: bool,
    /// Save a fork in a checkpoint, except directories like `node_modules`, and remove its directory
    #[arg(long, value_name = "FORK", conflicts_with = "turn")]
    pub(crate) drop: Option<PathBuf>,
    /// Do not fork the conversation
    #[arg(long)]
    pub(crate) no_conversation: bool,
    /// With --drop: also remove what cannot be held
    #[arg(long, requires = "drop")]
    pub(crate) force: bool,
    /// Show the plan and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// With --keep: only these files and directories, or paths that match these patterns
    #[arg(last = true, value_name = "PATH", requires = "keep")]
    pub(crate) paths: Vec<PathBuf>,
}

pub(crate) fn run(process: &mut Process<'_>, args: &ForkArgs) -> Result<Exit> {
    let project = Project::open(process, None)?.into_present()?;
    if args.list {
        return list(process, &project, args.json);
    }
    if let Some(given) = &args.keep {
        return keep::run(process, project, given.first().map(PathBuf::as_path), args);
    }
    if let Some(name) = &args.drop {
        return drop::run(process, &project, name, args);
    }
    let given = args.turn.as_deref().unwrap_or_default();
    let found = find_checkpoint(&project, given);
    if matches!(found, Err(Error::NoSuchCheckpoint { .. })) {
        origin::say_if_known(process, &project);
    }
    let checkpoint = found?;
    origin::say_if_swapped(process, &project);
    let (checkpoint, number) = turn_of(&project, checkpoint)?;
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => default_dir(&project, number),
    };
    let dir = place(process, &project, &dir)?;
    let plan = ForkPlan::of(&project, &checkpoint, dir)?;
    let wish = ForkWish { project: &project, checkpoint: &checkpoint, number, plan: &plan };
    wish.carry_out(process, args)
}

/// The checkpoint as its newest turn uses it, and the number of the turn in the list that it is the beginning of.
fn turn_of(project: &Project, checkpoint: Checkpoint) -> Result<(Checkpoint, Option<usize>)> {
    let uses = ledger::uses(&project.state);
    let rows = rows(project.store.list()?, &uses);
    let has = |row: &super::TurnRow| row.checkpoints[0].id == checkpoint.id;
    let number = rows.iter().position(has).map(|row| row + 1);
    let mut adopted = [checkpoint];
    ledger::adopt(&mut adopted, &uses);
    let [checkpoint] = adopted;
    Ok((checkpoint, number))
}

/// A fork that is wanted.
struct ForkWish<'a> {
    project: &'a Project,
    checkpoint: &'a Checkpoint,
    number: Option<usize>,
    plan: &'a ForkPlan,
}

impl ForkWish<'_> {
    fn carry_out(&self, process: &mut Process<'_>, args: &ForkArgs) -> Result<Exit> {
        let Self { project, checkpoint, plan, .. } = self;
        // What can be wrong with the conversation is found out before anything is made.
        let talks = !args.no_conversation && conversation::has_conversation(project, checkpoint);
        let talk = talks.then(|| conversation::prepare_in(process, project, checkpoint, &plan.dir));
        if let Some(Err(why)) = &talk {
            say(process, &format!("note: the conversation is not forked: {why}"));
            if let Some(hint) = why.hint() {
                say(process, &format!("hint: {hint}"));
            }
        }
        self.say_missing(process);
        if args.dry_run {
            return self.tell_plan(process, talk.and_then(Result::ok).as_ref(), args.json);
        }
        if !checkpoint.completeness.is_whole()
            && !args.yes
            && !ui::ask(process, "Fork what is held?")
        {
            say(process, "nothing was created; --yes forks what is held");
            return Ok(Exit::Failed);
        }
        let is_silent = matches!(talk, Some(Err(_)));
        let talk = talk.and_then(Result::ok);
        let mut made = plan.make(process, project)?;
        let resume = talk.as_ref().map(ConversationFork::make).transpose();
        if let Ok(Some(resume)) = &resume {
            made.fork.resume.clone_from(resume);
            made.fork.write(&project.state.root_at(&plan.dir))?;
        }
        self.tell(process, &made, talk.as_ref(), args.json)?;
        if let Err(why) = &resume {
            let told = error_text(why, ui::Style::stderr(process));
            say_text(process, &told);
            say(process, "note: the files are there (see above), but not the conversation");
        }
        let is_whole = made.outcome.missed.is_empty() && !is_silent && resume.is_ok();
        Ok(if is_whole { Exit::Ok } else { Exit::Conflicts })
    }

    /// Names what the fork will not have.
    fn say_missing(&self, process: &mut Process<'_>) {
        let Self { project, checkpoint, plan, .. } = self;
        let running = ledger::running(&project.state, process.now);
        if running.contains(&checkpoint.id) {
            say(
                process,
                "note: that turn is still running, or was interrupted; the fork begins before it",
            );
        }
        if !checkpoint.completeness.is_whole() {
            let id = checkpoint.id.short();
            say(process, &format!("warning: checkpoint {id} is partial, and so is the fork"));
        }
        let missing = ui::left_out(&plan.missing).into_iter();
        let missing = missing.map(|line| format!("missing, because it was not held: {line}"));
        let more = |more| {
            let (more, id) = (ui::number(more), checkpoint.id.short());
            format!("missing: {more} more; `beforehand show {id}` names them")
        };
        for line in ui::at_most(missing.collect(), NAMED_MAX, more) {
            say(process, &format!("note: {line}"));
        }
        for id in &plan.damaged {
            let id = id.short();
            say(process, &format!("note: checkpoint {id} may hold more, and is damaged"));
        }
    }

    fn heading(&self) -> String {
        let id = self.checkpoint.id.short();
        match self.number {
            Some(number) => format!("before turn {number} ({id})"),
            None => format!("at {id}"),
        }
    }

    fn tell_plan(
        &self,
        process: &mut Process<'_>,
        talk: Option<&ConversationFork>,
        is_json: bool,
    ) -> Result<Exit> {
        if is_json {
            print_json(process, "fork", self.json(None, talk))?;
            return Ok(Exit::Ok);
        }
        let dir = ui::path(&self.plan.dir, self.project.home.as_deref()).into_owned();
        let files = ui::count(self.plan.count as u64, "file");
        let mut text = format!("would fork {files} as {} into {dir}\n", self.heading());
        if let Some(talk) = talk {
            let enter = format!("cd {} && ", quoted(&self.plan.dir));
            text.push_str(&format!("{}\n", talk.words(None, &enter)));
        }
        print_text(process, &text)?;
        say(process, "nothing was created; run this without --dry-run");
        Ok(Exit::Ok)
    }

    fn tell(
        &self,
        process: &mut Process<'_>,
        made: &ForkMade,
        talk: Option<&ConversationFork>,
        is_json: bool,
    ) -> Result<()> {
        for missed in &made.outcome.missed {
            let path = ui::escape_path(&missed.path).into_owned();
            let why = ui::escape_line(missed.why.as_bytes()).into_owned();
            say(process, &format!("warning: not made: {path}: {why}"));
        }
        if is_json {
            return print_json(process, "fork", self.json(Some(made), talk));
        }
        let home = self.project.home.as_deref();
        let dir = ui::path(&made.fork.dir, home);
        let files = ui::count(self.plan.count as u64, "file");
        let mut text = format!("forked {files} as {} into {dir}\n", self.heading());
        if let Some(talk) = talk.filter(|_| !made.fork.resume.is_empty()) {
            let line = talk.words(Some(&made.fork.resume), &enter(&made.fork));
            text.push_str(&format!("{line}\n"));
        } else {
            text.push_str(&format!("go on there with: cd {}\n", quoted(&made.fork.dir)));
        }
        let name = quoted(Path::new(made.fork.name()));
        text.push_str(&format!("remove it again with: beforehand fork --drop {name}\n"));
        print_text(process, &text)
    }

    fn json(&self, made: Option<&ForkMade>, talk: Option<&ConversationFork>) -> Value {
        let missed = made.iter().flat_map(|made| &made.outcome.missed);
        let missed = missed.map(|it| json!({ "path": it.path.to_string_lossy(), "why": it.why }));
        let repositories = made.map_or(&self.plan.repositories, |made| &made.repositories).iter();
        let conversation = match talk {
            None => "none",
            Some(ConversationFork::New { .. }) => "new",
            Some(ConversationFork::Written(_) | ConversationFork::Served { .. }) => "forked",
        };
        json!({
            "checkpoint": self.checkpoint.id.to_string(),
            "turn": self.number,
            "dir": self.plan.dir.to_string_lossy(),
            "files": self.plan.count,
            "repositories": repositories.map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
            "conversation": conversation,
            "resume": made.map(|made| made.fork.resume.clone()).unwrap_or_default(),
            "missing": self.plan.missing.iter().map(skipped_json).collect::<Vec<_>>(),
            "missed": missed.collect::<Vec<_>>(),
            "is_dry_run": made.is_none(),
        })
    }
}

/// What leads a shell into a fork, before the command that goes on there.
fn enter(fork: &ForkEntry) -> String {
    format!("cd {} && ", quoted(&fork.dir))
}

fn quoted(path: &Path) -> String {
    ui::quote(path.as_os_str().as_encoded_bytes())
}

/// The fork that is called so: by the name of its directory, or by its path.
fn find(process: &Process<'_>, project: &Project, given: &Path) -> Result<(ForkEntry, RootState)> {
    let forks = forked::forks(&project.state, project.root.path())?;
    let cwd = process.cwd.clone().unwrap_or_default();
    let path = std::fs::canonicalize(cwd.join(given)).unwrap_or_else(|_| cwd.join(given));
    let is_name = |fork: &ForkEntry| fork.dir.file_name() == Some(given.as_os_str());
    let at = forks.iter().position(|(fork, _)| fork.dir == path);
    let named: Vec<usize> = (0..forks.len()).filter(|at| is_name(&forks[*at].0)).collect();
    let shown = ui::escape_path(given).into_owned();
    let only = at.or(named.first().copied().filter(|_| named.len() == 1));
    match only.and_then(|at| forks.into_iter().nth(at)) {
        Some(found) => Ok(found),
        None if named.is_empty() => Err(none(project, &shown)),
        None => Err(Error::other(
            format!("{} forks are called `{shown}`", named.len()),
            "name one by its path; `beforehand fork --list` shows them",
        )),
    }
}

/// Says where the fork's project is, for who stands in the fork.
fn none(project: &Project, shown: &str) -> Error {
    let own = project.state.root(&project.root);
    match ForkEntry::read(&own) {
        Ok(Some(fork)) => {
            let origin = ui::path(&fork.origin, project.home.as_deref()).into_owned();
            Error::other(
                format!("this is itself a fork, of {origin}"),
                "run it there: a fork is kept or dropped from its project",
            )
        }
        Ok(None) | Err(_) => Error::other(
            format!("this project has no fork `{shown}`"),
            "`beforehand fork --list` shows what there is",
        ),
    }
}

/// `beforehand fork --list`: the forks of a project.
fn list(process: &mut Process<'_>, project: &Project, is_json: bool) -> Result<Exit> {
    let forks = forked::forks(&project.state, project.root.path())?;
    if is_json {
        let forks: Vec<_> = forks.iter().map(|(fork, _)| as_json(fork)).collect();
        print_json(process, "forks", json!({ "forks": forks }))?;
        return Ok(Exit::Ok);
    }
    let mut text = String::new();
    for (fork, _) in &forks {
        let name = ui::escape_path(Path::new(fork.dir.file_name().unwrap_or_default()));
        let dir = ui::path(&fork.dir, project.home.as_deref());
        let when = Clock::local(process.now).when(fork.at);
        text.push_str(&format!("{name}  {dir}  from {}, {when}{}\n", fork.of.short(), badge(fork)));
        if fork.is_there() && fork.is_finished() {
            let resume = match fork.resume.join(" ") {
                command if command.is_empty() => format!("cd {}", quoted(&fork.dir)),
                command => format!("{}{command}", enter(fork)),
            };
            text.push_str(&format!("  go on with: {resume}\n"));
        }
    }
    if text.is_empty() {
        text.push_str("no forks; `beforehand fork N` makes one from before turn N\n");
    }
    print_text(process, &text)?;
    Ok(Exit::Ok)
}

/// What is wrong with a fork.
fn badge(fork: &ForkEntry) -> &'static str {
    match (fork.is_finished(), fork.is_there()) {
        (true, true) => "",
        (true, false) => ", gone",
        (false, _) => ", unfinished",
    }
}

fn as_json(fork: &ForkEntry) -> Value {
    json!({
        "name": fork.dir.file_name().unwrap_or_default().to_string_lossy(),
        "dir": fork.dir.to_string_lossy(),
        "checkpoint": fork.of.to_string(),
        "made_at": json_time(fork.at),
        "is_finished": fork.is_finished(),
        "is_there": fork.is_there(),
        "resume": fork.resume,
    })
}
