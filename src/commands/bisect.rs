//! `beforehand bisect`: which turn broke something, by running a command in copies of the project as it was
//! before each turn.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    ffi::OsString,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Value, json};

use super::{
    Project, TurnRow,
    compare::{Comparison, Differing},
    diff, print_json, print_text,
    rows::{agent_name, agent_title},
    say,
};
use crate::{
    error::{Error, Result},
    fork::ScratchFork,
    ledger,
    model::{Cause, Checkpoint, Reason, ScanScope},
    plan::{self, NextProbe, StateVerdict},
    process::{Exit, Process, RunPlace},
    project::rows,
    restore::{FileHistory, step_named},
    ui,
};

/// Find the turn that broke something, by running a command on what was there before each turn.
///
/// The command's exit code says what a state is, as for `git bisect run`: 0 is good, 125 cannot be told, any
/// other up to 127 is bad, and a higher one ends the search. It runs in a copy that is made anew each time and
/// removed at the end, never in the project. Directories that a program makes again, such as `node_modules`, are
/// not there: `bisect -- sh -c 'npm ci && npm test'`.
#[derive(clap::Args)]
pub(crate) struct BisectArgs {
    /// The state before this turn is good [default: the oldest turn]
    #[arg(long, value_name = "TURN")]
    good: Option<String>,
    /// The state before this turn is bad [default: the current state]
    #[arg(long, value_name = "TURN")]
    bad: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// The command and its arguments; its output goes to standard error
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(process: &mut Process<'_>, args: &BisectArgs) -> Result<Exit> {
    let interrupted = process.heed_end();
    let project = Project::open(process, None)?.into_present()?;
    let (rows, states) = states(process, &project, args)?;
    let scratch = ScratchFork::begin(&project)?;
    let mut search = BisectSearch {
        project: &project,
        args,
        rows: &rows,
        states: &states,
        scratch: &scratch,
        interrupted,
        tried: Vec::new(),
    };
    let found = search.run(process)?;
    search.tell(process, &found)
}

/// A state of the project between two turns.
struct StateBetween {
    checkpoint: Checkpoint,
    /// The turn that began with it, and its number in the list; `None` for what was there between turns, and
    /// for what is there now.
    row: Option<(usize, TurnRow)>,
    is_now: bool,
}

/// The rows of the list, and the states from the good one to the bad one, oldest first.
fn states(
    process: &Process<'_>,
    project: &Project,
    args: &BisectArgs,
) -> Result<(Vec<TurnRow>, Vec<StateBetween>)> {
    let find = |given: &Option<String>| given.as_ref().map(|it| find(project, it)).transpose();
    let (good, bad) = (find(&args.good)?, find(&args.bad)?);
    let rows = rows(project.store.list()?, &ledger::uses(&project.state));
    if rows.is_empty() {
        let hint = "an agent's hook takes them, and `beforehand create`";
        return Err(Error::other("no checkpoints yet: there is nothing to search", hint));
    }
    let now = if bad.is_none() { Some(now(process, project)?) } else { None };
    let state = |(at, row): (usize, TurnRow)| StateBetween {
        checkpoint: row.checkpoints[0].clone(),
        row: Some((at + 1, row)),
        is_now: false,
    };
    let mut states: Vec<StateBetween> = rows.iter().cloned().enumerate().map(state).collect();
    let oldest = states.iter().map(|state| state.checkpoint.sequence).min();
    let beside = between(project, oldest.unwrap_or_default())?;
    states.extend(beside.filter(|it| now.as_ref().is_none_or(|now| now.id != it.checkpoint.id)));
    // Turns at the same time are listed by what they did last.
    states.sort_by_key(|state| Reverse(state.checkpoint.sequence));
    if let Some(good) = good {
        let at = place_of(&states, &good)?;
        states.truncate(at + 1);
    }
    if let Some(bad) = bad {
        let at = place_of(&states, &bad).map_err(|_| not_before())?;
        states.drain(..at);
    }
    states.reverse();
    states.extend(now.map(|checkpoint| StateBetween { checkpoint, row: None, is_now: true }));
    if states.len() < 2 { Err(not_before()) } else { Ok((rows, states)) }
}

/// The states that are held between turns, since a checkpoint: what the turn before left, or what a restore began
/// with.
fn between(project: &Project, since: u64) -> Result<impl Iterator<Item = StateBetween>> {
    let mut all = project.store.list()?;
    ledger::adopt(&mut all, &ledger::uses(&project.state));
    let is_between = move |one: &Checkpoint| {
        let is_of_none = matches!(one.cause.reason, Reason::Net | Reason::BeforeRestore);
        is_of_none && one.sequence > since && one.completeness.is_whole()
    };
    let states = all.into_iter().filter(is_between);
    Ok(states.map(|checkpoint| StateBetween { checkpoint, row: None, is_now: false }))
}

/// The checkpoint before a turn that the user names.
fn find(project: &Project, given: &str) -> Result<Checkpoint> {
    match step_named(given) {
        Some((turn, step)) if step > 1 => Err(Error::usage(
            format!("`{turn}.{step}` is a step of a turn, and `bisect` goes from turn to turn"),
            "name a turn, by its number from `beforehand list`",
        )),
        Some(_) | None => project.find(given),
    }
}

fn not_before() -> Error {
    Error::usage("the good turn has to come before the bad one", "`beforehand list` shows them")
}

/// Where the state is that begins a turn with a checkpoint.
fn place_of(states: &[StateBetween], checkpoint: &Checkpoint) -> Result<usize> {
    let has = |state: &StateBetween| {
        state.row.iter().any(|(_, row)| row.checkpoints.iter().any(|step| step.id == checkpoint.id))
    };
    states.iter().position(has).ok_or_else(|| {
        Error::other(
            format!("no turn begins with checkpoint {}", checkpoint.id.short()),
            "`beforehand list` shows the turns",
        )
    })
}

/// A checkpoint of what is there now, which is in no list.
fn now(process: &Process<'_>, project: &Project) -> Result<Checkpoint> {
    if project.scope == ScanScope::Named {
        let path = ui::path(project.root.path(), project.home.as_deref());
        let message = format!("`{path}` is never held as a whole");
        return Err(Error::other(message, "it works in a project"));
    }
    let cause = Cause { reason: Reason::Net, by: None, tool: None, summary: None, of: None };
    Ok(project.hold(process, cause, false)?.checkpoint)
}

/// A search under way.
struct BisectSearch<'a> {
    project: &'a Project,
    args: &'a BisectArgs,
    rows: &'a [TurnRow],
    states: &'a [StateBetween],
    scratch: &'a ScratchFork,
    interrupted: Arc<AtomicBool>,
    tried: Vec<TriedState>,
}

/// A state that was looked at.
struct TriedState {
    at: usize,
    verdict: StateVerdict,
    why: Option<String>,
}

/// Who may have broken it.
struct BisectSuspects {
    /// Turns with their numbers in the list, the first to begin first.
    rows: Vec<(usize, TurnRow)>,
    /// Whether the user, a restore or something else may have.
    others: bool,
}

/// The last good state and the first bad one, with what cannot be told between.
struct FoundBetween {
    good: usize,
    bad: usize,
}

impl BisectSearch<'_> {
    fn run(&mut self, process: &mut Process<'_>) -> Result<FoundBetween> {
        let last = self.states.len() - 1;
        self.must_be(process, last, StateVerdict::Bad)?;
        self.must_be(process, 0, StateVerdict::Good)?;
        let mut known = vec![None; self.states.len()];
        (known[0], known[last]) = (Some(StateVerdict::Good), Some(StateVerdict::Bad));
        loop {
            match plan::probe(&known) {
                NextProbe::Try(at) => known[at] = Some(self.try_one(process, at)?),
                NextProbe::Found { good, bad } => return Ok(FoundBetween { good, bad }),
            }
        }
    }

    /// Looks at one end, which has to be so for there to be something to find.
    fn must_be(
        &mut self,
        process: &mut Process<'_>,
        at: usize,
        wanted: StateVerdict,
    ) -> Result<()> {
        let verdict = self.try_one(process, at)?;
        if verdict == wanted {
            return Ok(());
        }
        let name = self.name(at);
        let (message, hint) = match (wanted, verdict) {
            (StateVerdict::Bad, StateVerdict::Good) => {
                (format!("it is good {name}"), "there is nothing to find")
            }
            (StateVerdict::Good, StateVerdict::Bad) => (
                format!("it was bad {name} already"),
                "--good N names a turn before which it was good",
            ),
            (_, _) => (format!("it cannot be told {name}"), "try it with another command"),
        };
        Err(Error::other(message, hint))
    }

    /// Runs the command in one state, and says what came of it.
    fn try_one(&mut self, process: &mut Process<'_>, at: usize) -> Result<StateVerdict> {
        let checkpoint = &self.states[at].checkpoint;
        let copied = if checkpoint.completeness.is_whole() {
            self.scratch.fill(self.project, checkpoint).map_err(|err| err.to_string())
        } else {
            Err("it is partial: not all of it is held".to_owned())
        };
        self.heed()?;
        let (verdict, why) = match copied {
            Err(why) => (StateVerdict::Skip, Some(why)),
            Ok(()) => (self.verdict(process)?, None),
        };
        let because = why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        say(process, &format!("{}: {}{because}", self.name(at), verdict.word()));
        self.tried.push(TriedState { at, verdict, why });
        Ok(verdict)
    }

    fn heed(&self) -> Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Error::other("interrupted", "nothing was changed"));
        }
        Ok(())
    }

    fn verdict(&self, process: &mut Process<'_>) -> Result<StateVerdict> {
        let place = RunPlace { dir: Some(&self.scratch.dir), is_quiet: true };
        let program = self.args.command.first().cloned().unwrap_or_default();
        let program = ui::escape(program.as_encoded_bytes()).into_owned();
        let code = process.run_program(&self.args.command, place).map_err(|err| {
            let hint = "a shell runs more than one command: beforehand bisect -- sh -c '…'";
            Error::other(format!("cannot run `{program}`: {err}"), hint)
        })?;
        self.heed()?;
        StateVerdict::of_exit(code).ok_or_else(|| {
            let hint = "0 is good, 125 cannot be told, any other up to 127 is bad";
            Error::other(format!("`{program}` ended with {code}, which ends the search"), hint)
        })
    }

    /// Which state it is, in words.
    fn name(&self, at: usize) -> String {
        let state = &self.states[at];
        match &state.row {
            Some((number, row)) if row.label(0).by.is_some() => format!("before turn {number}"),
            Some((number, _)) => format!("at checkpoint {number}"),
            None if state.is_now => "now".to_owned(),
            None => format!("at checkpoint {} (between turns)", state.checkpoint.id.short()),
        }
    }

    fn tell(&self, process: &mut Process<'_>, found: &FoundBetween) -> Result<Exit> {
        let [from, to] = [found.good, found.bad].map(|at| &self.states[at].checkpoint);
        let mut all = self.project.store.list()?;
        ledger::adopt(&mut all, &ledger::uses(&self.project.state));
        let comparison = Comparison::between(self.project, &all, from, to)?;
        let suspects = self.suspects(found, &comparison)?;
        if self.args.json {
            print_json(process, "bisect", self.json(found, &suspects, &comparison)?)?;
        } else {
            print_text(process, &format!("{}\n", self.words(found, &suspects)))?;
            diff::in_full(process, &comparison)?;
            let from = from.id.short();
            let is_now = self.states[found.bad].is_now;
            let to = if is_now { String::new() } else { format!(" {}", to.id.short()) };
            say(process, &format!("see it again with: beforehand diff {from}{to}"));
        }
        Ok(if suspects.rows.len() <= 1 { Exit::Ok } else { Exit::Failed })
    }

    /// Who may have broken it: of all turns that ran between the two states, those that changed something.
    fn suspects(
        &self,
        found: &FoundBetween,
        comparison: &Comparison<'_>,
    ) -> Result<BisectSuspects> {
        let [from, to] = [found.good, found.bad].map(|at| &self.states[at]);
        let history = FileHistory::of(self.project)?;
        let paths = comparison.found.iter().filter_map(Differing::below);
        let until = (!to.is_now).then_some(&to.checkpoint);
        let by = history.changed_by(paths, &from.checkpoint, until);
        let is_elsewhere = comparison.found.iter().any(|one| one.below().is_none());
        let is_unsure = by.any || is_elsewhere || !comparison.unheld.is_empty();
        let numbers = by.turns.iter().map(|turn| history.turns[*turn].number);
        // A turn that is not in the list any more cannot be named.
        let others = by.others || is_unsure || numbers.clone().any(|number| number.is_none());
        let numbers: BTreeSet<usize> = numbers.flatten().collect();
        let begins = self.states[found.good..found.bad].iter().filter_map(|it| it.row.as_ref());
        let is_turn = |row: &TurnRow| row.label(0).by.is_some();
        let begins: BTreeSet<usize> = begins
            .filter(|(_, row)| is_unsure || others && numbers.is_empty() && !is_turn(row))
            .map(|(number, _)| *number)
            .collect();
        let mut rows: Vec<(usize, TurnRow)> = numbers
            .union(&begins)
            .filter_map(|number| Some((*number, self.rows.get(number - 1)?.clone())))
            .collect();
        rows.sort_by_key(|(_, row)| row.checkpoints[0].sequence);
        Ok(BisectSuspects { rows, others })
    }

    fn words(&self, found: &FoundBetween, suspects: &BisectSuspects) -> String {
        let lines: Vec<String> = suspects.rows.iter().map(suspect).collect();
        let bad = &self.states[found.bad];
        let until = match &bad.row {
            Some((number, _)) => format!("until turn {number} began"),
            None if bad.is_now => "until now".to_owned(),
            None => format!("until checkpoint {}", bad.checkpoint.id.short()),
        };
        match (&lines[..], suspects.others) {
            ([], _) => {
                let since = self.name(found.good);
                format!(
                    "no turn broke it: something else did, after the state {since} and {until}\n"
                )
            }
            ([one], false) => format!("broken by {one}\n"),
            ([one], true) => format!("broken by {one}\nor by what else was done {until}\n"),
            (more, others) => {
                let others = if others {
                    format!(", or by what else was done {until}")
                } else {
                    String::new()
                };
                format!("broken by one of these{others}:\n  {}\n", more.join("\n  "))
            }
        }
    }

    fn json(
        &self,
        found: &FoundBetween,
        suspects: &BisectSuspects,
        comparison: &Comparison<'_>,
    ) -> Result<Value> {
        let tried = self.tried.iter().map(|it| {
            json!({
                "state": state_json(&self.states[it.at]),
                "verdict": it.verdict.word(),
                "why": it.why,
            })
        });
        let state = |at: usize| state_json(&self.states[at]);
        Ok(json!({
            "suspects": suspects.rows.iter().map(row_json).collect::<Vec<_>>(),
            "others": suspects.others,
            "good": state(found.good),
            "bad": state(found.bad),
            "tried": tried.collect::<Vec<_>>(),
            "files": diff::files_json(comparison)?,
        }))
    }
}

fn state_json(state: &StateBetween) -> Value {
    let row = state.row.as_ref().map(|(number, row)| (*number, row));
    json_of(&state.checkpoint, row)
}

fn row_json((number, row): &(usize, TurnRow)) -> Value {
    json_of(&row.checkpoints[0], Some((*number, row)))
}

fn json_of(checkpoint: &Checkpoint, row: Option<(usize, &TurnRow)>) -> Value {
    let by = row.and_then(|(_, row)| row.label(0).by);
    json!({
        "number": row.map(|(number, _)| number),
        "checkpoint": checkpoint.id.to_string(),
        "agent": by.map(|by| agent_name(by.agent)),
        "session": by.map(|by| &by.session.0),
        "turn": by.and_then(|by| Some(&by.turn.as_ref()?.0)),
        "prompt": by.and_then(|by| by.prompt.as_ref()),
    })
}

/// A turn that may have broken it, in words.
fn suspect((number, row): &(usize, TurnRow)) -> String {
    let label = row.label(0);
    let words = ui::escape(label.turn().as_bytes()).into_owned();
    match label.by {
        Some(by) => format!("turn {number}: {words} ({})", agent_title(by.agent)),
        None => format!("what followed checkpoint {number}: {words}"),
    }
}
