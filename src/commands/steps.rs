//! The steps of one turn: for `list --steps`, and for `show` of one of them.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    Project,
    compare::{Comparison, Counts},
    json_time, named_line, print_json, print_table, rows,
    rows::on_one_line,
    say,
};
use crate::{
    error::{Error, Result},
    ledger,
    model::{Checkpoint, CheckpointId},
    process::{Exit, Process},
    project::TurnRow,
    restore::{StepChanges, StepState, TurnStep, TurnSteps, find_checkpoint},
    ui::{self, Cell, Clock, Column, Cut, Paint, Table},
};

/// All the counting of one list.
const COUNT_TIME: Duration = Duration::from_millis(400);

/// Of more paths, only the number is shown.
const PATHS_SHOWN_MAX: usize = 12;

/// The number of the turn that the user means: one that is given as for `restore`, or else the newest.
///
/// # Errors
///
/// Fails if there is none.
pub(super) fn turn_number(project: &Project, given: Option<&str>) -> Result<usize> {
    let rows = rows(project.store.list()?, &ledger::uses(&project.state));
    let Some(given) = given else {
        let newest = rows.iter().position(|row| row.label(0).by.is_some());
        return newest.map(|at| at + 1).ok_or_else(|| {
            Error::other("no turns yet", "an agent's hook takes a checkpoint when one begins")
        });
    };
    let found = find_checkpoint(project, given)?;
    let has = |row: &TurnRow| row.checkpoints.iter().any(|step| step.id == found.id);
    rows.iter().position(has).map(|at| at + 1).ok_or_else(|| {
        Error::other(
            format!("checkpoint {} belongs to no turn", found.id.short()),
            "`beforehand list` shows the turns",
        )
    })
}

/// One step as a list tells it.
pub(super) struct StepRow {
    pub(super) step: TurnStep,
    /// The checkpoint that is what was there right before it.
    pub(super) exact: Option<CheckpointId>,
    /// What it changed, if that is known.
    pub(super) changes: Option<StepChanges>,
    /// What was there before it, or why that is not known.
    pub(super) state: Result<StepState>,
}

impl StepRow {
    pub(super) fn of(process: &Process<'_>, turn: &TurnSteps<'_>, step: &TurnStep) -> Self {
        Self {
            step: step.clone(),
            exact: turn.checkpoint(step).map(|one| one.id),
            changes: turn.changes(step),
            state: turn.state(process, step),
        }
    }

    /// Whether what was there before it is held, in a few words.
    fn held(&self) -> String {
        match &self.state {
            Ok(state) => match state.not_held().count() as u64 {
                0 => "held".to_owned(),
                count => format!("{} not held", ui::count(count, "file")),
            },
            Err(_) => "not held".to_owned(),
        }
    }

    /// The first paths that it changed.
    fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let changed = self.changes.iter().flat_map(|found| {
            let below = found.changes.iter().map(|change| change.path.as_path().to_owned());
            let outside = found.outside.iter().map(|change| change.path.at_top());
            below.chain(outside).chain(found.unknown_paths())
        });
        changed.take(PATHS_SHOWN_MAX)
    }

    /// How much it changed, if that is known and can be counted in time.
    pub(super) fn counts(&self, project: &Project, deadline: Instant) -> Option<Counts> {
        Comparison::count_changes(project, self.step.of, self.changes.as_ref()?, deadline)
    }

    /// The files it changed, in words, with the steps that ran at the same time and the number of later changes.
    fn changed(&self, turn: usize, counts: Option<Counts>) -> Option<String> {
        let mut words = counts?.words();
        let others: Vec<String> =
            self.step.overlaps.iter().map(|other| format!("{turn}.{other}")).collect();
        if !others.is_empty() {
            words += &format!(", or {} did", others.join(" or "));
        }
        match self.later() {
            0 => Some(words),
            later => Some(format!("{words}, {} later", ui::count(later, "file"))),
        }
    }

    /// How many files were changed after its end, by a process that it had started or by the user.
    fn later(&self) -> u64 {
        self.changes.as_ref().map_or(0, |found| found.later.len() as u64)
    }

    pub(super) fn json(&self, turn: usize, counts: Option<Counts>) -> Value {
        let step = &self.step;
        let lines = counts.and_then(|counts| counts.lines);
        json!({
            "number": number(turn, step),
            "time": json_time(step.at),
            "id": self.exact.map(|id| id.to_string()),
            "tool": step.tool,
            "summary": step.summary,
            "done": step.is_done,
            "changed": counts.map(|counts| counts.files),
            "added": lines.map(|lines| lines.added),
            "removed": lines.map(|lines| lines.removed),
            "overlaps": step.overlaps.iter().map(|other| format!("{turn}.{other}")).collect::<Vec<_>>(),
            "later": counts.map(|_| self.later()),
            "held": self.state.as_ref().is_ok_and(|state| state.not_held().next().is_none()),
            "not_held": self.state.as_ref().map(not_held_json).unwrap_or_default(),
            "why": self.state.as_ref().err().map(ToString::to_string),
        })
    }
}

/// What some steps found that no checkpoint holds.
pub(super) fn holding(project: Project, rows: &mut [StepRow]) -> Project {
    let mut contents = BTreeMap::new();
    for row in rows {
        contents.extend(row.changes.iter_mut().flat_map(|it| std::mem::take(&mut it.contents)));
        contents.extend(row.state.iter_mut().flat_map(|it| std::mem::take(&mut it.contents)));
    }
    project.holding(contents)
}

/// Prints the steps of a turn.
pub(super) fn list(
    process: &mut Process<'_>,
    project: Project,
    given: Option<&str>,
    is_json: bool,
) -> Result<Exit> {
    let turn = TurnSteps::of(&project, turn_number(&project, given)?)?;
    // A row of a person's has none.
    turn.step(1)?;
    let mut rows: Vec<StepRow> =
        turn.steps.iter().map(|step| StepRow::of(process, &turn, step)).collect();
    let (number, heading) = (turn.turn, heading(&turn));
    drop(turn);
    let project = holding(project, &mut rows);
    let deadline = Instant::now() + COUNT_TIME;
    let counts: Vec<_> = rows.iter().map(|row| row.counts(&project, deadline)).collect();
    if is_json {
        let rows = rows.iter().zip(counts);
        let rows: Vec<Value> = rows.map(|(row, counts)| row.json(number, counts)).collect();
        print_json(process, "steps", rows.into())?;
        return Ok(Exit::Ok);
    }
    let table = table(process, number, rows.iter().zip(counts));
    print_table(process, &heading, &table)?;
    let last = format!("{number}.{}", rows.len());
    let next =
        format!("beforehand show {last} · beforehand diff {last} · beforehand restore {last}");
    say(process, &format!("\n{next}"));
    Ok(Exit::Ok)
}

fn heading(turn: &TurnSteps<'_>) -> String {
    let asked = turn.row.label(0).by.and_then(|by| by.prompt.as_deref()).map(on_one_line);
    let asked = asked.filter(|asked| !asked.is_empty());
    let asked = asked.map(|it| format!(": {}", ui::escape(it.as_bytes()))).unwrap_or_default();
    format!("turn {}{asked} — {}\n\n", turn.turn, ui::count(turn.steps.len() as u64, "step"))
}

fn table<'r>(
    process: &Process<'_>,
    turn: usize,
    rows: impl Iterator<Item = (&'r StepRow, Option<Counts>)>,
) -> Table {
    let clock = Clock::local(process.now);
    let mut table = Table::new([
        Column::right("#"),
        Column::left("when"),
        Column::cut("step", Cut::End),
        Column::left("changed"),
        Column::left("before it"),
    ]);
    for (row, counts) in rows {
        let unseen = if row.step.is_done { "" } else { "not seen" };
        table.row([
            Cell::new(&number(turn, &row.step), Paint::Bold),
            clock.named(row.step.at).into(),
            words(&row.step).into(),
            row.changed(turn, counts).unwrap_or_else(|| unseen.to_owned()).into(),
            row.held().into(),
        ]);
    }
    table
}

/// A step as commands take it.
pub(super) fn number(turn: usize, step: &TurnStep) -> String {
    format!("{turn}.{}", step.number)
}

/// The call of a step in words. Not escaped.
pub(super) fn words(step: &TurnStep) -> String {
    let parts = [step.tool.as_deref(), step.summary.as_deref()];
    let words: Vec<&str> = parts.into_iter().flatten().collect();
    if words.is_empty() { "a call that is not known any more".to_owned() } else { words.join(" ") }
}

/// What of a state is not held, for JSON.
fn not_held_json(state: &StepState) -> Vec<Value> {
    let json = |(path, why): (Vec<u8>, &'static str)| json!({ "path": String::from_utf8_lossy(&path), "why": why });
    state.not_held().map(json).collect()
}

/// How the files before a step differ from its checkpoint, which is shown next.
fn before_words(state: &StepState) -> String {
    let (known, unknown) = (state.differs.len() as u64, state.not_held().count() as u64);
    match (known, unknown) {
        (0, 0) => "as in this checkpoint".to_owned(),
        (0, _) => format!("as in this checkpoint, except {} not held", ui::count(unknown, "path")),
        (_, 0) => format!("as in this checkpoint, except {} held apart", ui::count(known, "path")),
        (_, _) => format!(
            "as in this checkpoint, except {} held apart and {} not held",
            ui::count(known, "path"),
            ui::number(unknown)
        ),
    }
}

/// A step as `show` tells it.
pub(super) struct ShownStep {
    turn: usize,
    count: usize,
    row: StepRow,
    /// The checkpoint that its files are told from.
    pub(super) base: Checkpoint,
}

impl ShownStep {
    /// Finds a step by the number of its turn and its own.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or if the checkpoint that covers it is gone.
    pub(super) fn of(
        process: &Process<'_>,
        project: &Project,
        (turn, number): (usize, usize),
    ) -> Result<Self> {
        let turn = TurnSteps::of(project, turn)?;
        let row = StepRow::of(process, &turn, turn.step(number)?);
        let base = match &row.state {
            Ok(state) => state.base.clone(),
            Err(_) => project.find(&row.step.of.to_string())?,
        };
        Ok(Self { turn: turn.turn, count: turn.steps.len(), row, base })
    }

    /// Adds what it found, and no checkpoint holds, to a project.
    pub(super) fn holding(mut self, project: Project) -> (Option<Self>, Project) {
        let project = holding(project, std::slice::from_mut(&mut self.row));
        (Some(self), project)
    }

    pub(super) fn json(&self, project: &Project) -> Value {
        let counts = self.row.counts(project, Instant::now() + COUNT_TIME);
        self.row.json(self.turn, counts)
    }

    pub(super) fn text(&self, process: &Process<'_>, project: &Project) -> String {
        let (step, clock) = (&self.row.step, Clock::local(process.now));
        let mut text = String::new();
        let mut line = |name: &str, said: &str| text.push_str(&named_line(process, name, said));
        let number = number(self.turn, step);
        let words = words(step);
        line("step", &format!("{number} of {}, {}", self.count, ui::escape(words.as_bytes())));
        line("began", &format!("{} ({})", clock.when(step.at), clock.exact(step.at)));
        let counts = self.row.counts(project, Instant::now() + COUNT_TIME);
        let unseen = if step.is_done { "not counted" } else { "not known: it was not seen to end" };
        let changed = self.row.changed(self.turn, counts);
        line("changed", &changed.unwrap_or_else(|| unseen.to_owned()));
        for path in self.row.paths() {
            line("", &ui::escape_path(&path));
        }
        let later = self.row.changes.iter().flat_map(|found| &found.later);
        for path in later.take(PATHS_SHOWN_MAX) {
            let path = ui::escape_path(path.as_path());
            line("", &format!("{path}, after its end: by what it had started, or by you"));
        }
        match &self.row.state {
            Err(why) => line("before it", &format!("not held: {why}")),
            Ok(state) => {
                match (self.row.exact, state.not_held().next()) {
                    (Some(_), None) => line("before it", "held, by this checkpoint"),
                    (_, _) => line("before it", &before_words(state)),
                }
                for (at, (path, why)) in state.not_held().enumerate() {
                    let name = if at == 0 { "not held" } else { "" };
                    line(name, &format!("{}: {why}", ui::escape(&path)));
                }
            }
        }
        text + "\n"
    }
}
